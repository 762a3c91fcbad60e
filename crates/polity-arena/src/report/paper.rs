//! Figures and tables of a report as files for papers: every figure as SVG, PDF and CSV, every table as CSV, LaTeX and Markdown.

use super::drawing::{Drawing, INK, PAPER, SOFT, Shape, Step, attribute, colour, unescape};
use super::figure::{self, Parts};
use super::page::{DataTable, Figure, Report};
use super::svg::{self, Anchor, WIDE};
use super::{pdf, text};
use polity_store::spreadsheet::inert;

/// Space around a figure, and between charts side by side, in pixels.
const MARGIN: f64 = 12.0;
const GAP: f64 = 10.0;
/// Height of a line of text, and of the title.
const LINE: f64 = 17.0;
const TITLE: f64 = 26.0;
/// The width of charts side by side: three small ones, or two pictures of agents.
const SMALL: f64 = svg::SMALL.width;
const PICTURE: f64 = 425.0;

/// What stands below a figure or a table whose numbers come from simulated models.
const SIMULATED: &str = "Simulated models: no evidence about any real model.";

/// A file: its name and its bytes.
pub type File = (String, Vec<u8>);

/// Every figure of a report as `figure-1-title.svg`, `.pdf` and `.csv`. A figure without data has no `.csv`, one without anything to draw
/// only that.
#[must_use]
pub fn figures(report: &Report) -> Vec<File> {
    let mut files = Vec::new();
    let all = report.sections.iter().flat_map(|section| &section.figures);
    for (i, figure) in all.enumerate() {
        let parts = figure::parts(figure, "figure", usize::MAX);
        let stem = format!("figure-{}-{}", i + 1, slug(&parts.title));
        if let Some(drawing) = drawn(figure, &parts, report.simulated) {
            files.push((format!("{stem}.svg"), drawing.svg().into_bytes()));
            files.push((format!("{stem}.pdf"), pdf::file(&drawing, &parts.title)));
        }
        let (columns, rows) = figure::data(figure, parts);
        if !columns.is_empty() {
            files.push((format!("{stem}.csv"), csv(&columns, &rows).into_bytes()));
        }
    }
    files
}

/// Every table of a report as `table-1-title.csv`, `.tex` and `.md`.
#[must_use]
pub fn tables(report: &Report) -> Vec<File> {
    let mut files = Vec::new();
    let all = report.sections.iter().filter_map(|section| Some((&section.title, section.table.as_ref()?)));
    for (i, (title, table)) in all.enumerate() {
        let stem = format!("table-{}-{}", i + 1, slug(title));
        let caption = if report.simulated { format!("{} {SIMULATED}", table.caption) } else { table.caption.clone() };
        files.push((format!("{stem}.csv"), csv(&table.columns, &table.rows).into_bytes()));
        files.push((format!("{stem}.tex"), latex(table, &caption).into_bytes()));
        files.push((format!("{stem}.md"), markdown(table, &caption).into_bytes()));
    }
    files
}

/// Whether [`figures`] and [`tables`] give their files such names.
#[must_use]
pub fn is_for_papers(name: &str) -> bool {
    let rest = name.strip_prefix("figure-").or_else(|| name.strip_prefix("table-"));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// A title as a part of a file's name.
fn slug(title: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let words: String = title.chars().map(plain).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    text::first(&words.join("-"), 60).trim_end_matches(['…', '-']).to_owned()
}

/// The figure with its title and legend.
fn drawn(figure: &Figure, parts: &Parts, simulated: bool) -> Option<Drawing> {
    let charts = Drawing::read_all(parts.charts.as_deref()?);
    let mut page = Drawing { width: WIDE.width + 2.0 * MARGIN, ..Drawing::default() };
    let mut top = MARGIN;
    page.text((MARGIN, top + 14.0), 14.0, true, INK, &text::cut(&parts.title, WIDE.width, 14.0));
    top += TITLE;
    let own = |(class, name): &(String, String)| (vec![Key::Line(class.clone())], name.clone());
    // A wide chart may name its series itself.
    let own: Vec<Entry> = if parts.named { Vec::new() } else { parts.legend.iter().map(own).collect() };
    for line in [own].into_iter().chain(entries(&parts.key)) {
        top = legend(&mut page, top, &line);
    }
    match figure {
        Figure::Panels { panels, .. } => {
            let titles: Vec<(&str, &str)> = panels.iter().map(|p| (p.title.as_str(), p.note.as_str())).collect();
            top = side_by_side(&mut page, top, charts, &titles);
        }
        // The first chart is the wide one.
        _ => {
            if let Some(chart) = charts.into_iter().next() {
                let height = chart.height;
                page.place(chart, (MARGIN, top), 1.0);
                top += height;
            }
        }
    }
    if simulated {
        top += LINE;
        page.text((MARGIN, top), 11.0, false, SOFT, SIMULATED);
    }
    if let Figure::Panels { x_label, .. } = figure
        && !x_label.is_empty()
    {
        top += LINE;
        page.text((MARGIN, top), 11.0, false, SOFT, &format!("Horizontal axis: {}", text::first(x_label, 100)));
    }
    page.height = top + MARGIN;
    page.width = page.width.min(right_edge(&page) + MARGIN);
    let mut whole = Drawing { width: page.width, height: page.height, shapes: Vec::new() };
    whole.rect((0.0, 0.0), (page.width, page.height), PAPER);
    whole.place(page, (0.0, 0.0), 1.0);
    Some(whole)
}

/// Where the drawing ends on the right.
fn right_edge(page: &Drawing) -> f64 {
    let of = |shape: &Shape| match shape {
        Shape::Text(words) => match words.anchor {
            Anchor::Start => words.at.0 + text::width(&words.text, words.size),
            Anchor::Middle => words.at.0 + text::width(&words.text, words.size) / 2.0,
            Anchor::End => words.at.0,
        },
        Shape::Path { steps, .. } => steps.iter().fold(0.0, |edge: f64, step| match step {
            Step::Move(x, _) | Step::Line(x, _) => edge.max(*x),
            Step::Curve([_, _, (x, _)]) => edge.max(*x),
            Step::Close => edge,
        }),
    };
    page.shapes.iter().map(of).fold(0.0, f64::max)
}

/// Small charts in rows, each below its title; returns where they end.
fn side_by_side(page: &mut Drawing, mut top: f64, charts: Vec<Drawing>, titles: &[(&str, &str)]) -> f64 {
    let pictures = charts.iter().any(|chart| chart.width != SMALL);
    let (cell, across) = if pictures { (PICTURE, 2) } else { (SMALL, 3) };
    let mut charts = charts.into_iter().zip(titles).peekable();
    while charts.peek().is_some() {
        let mut height = 0.0_f64;
        for column in 0..across {
            let Some((chart, (title, note))) = charts.next() else { break };
            let left = MARGIN + f64::from(column) * (cell + GAP);
            let mut at = top + 13.0;
            page.text((left, at), 12.0, true, INK, &text::cut(title, cell, 12.0));
            if !note.is_empty() {
                at += LINE;
                page.text((left, at), 11.0, false, SOFT, &text::cut(note, cell, 11.0));
            }
            at += 6.0;
            // A small chart keeps its size, so that its letters do.
            let scale =
                if pictures && chart.width != SMALL { (cell / chart.width).min(cell / chart.height) } else { 1.0 };
            height = height.max(at - top + chart.height * scale);
            page.place(chart, (left, at), scale);
        }
        top += height + GAP;
    }
    top
}

/// A mark in a legend.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    Line(String),
    Swatch(String),
    Letter(String),
}

/// An entry of a legend: its marks and its words.
type Entry = (Vec<Key>, String);

/// The legends that a figure has on the page as HTML: a list each.
fn entries(html: &str) -> Vec<Vec<Entry>> {
    let mut lists = Vec::new();
    for list in html.split("<ul ").skip(1) {
        // What happened stands on a line each.
        let is_long = attribute(list, "class").is_some_and(|classes| classes.contains("marks"));
        let items = list.split("<li").skip(1).filter_map(|item| item.split_once('>')?.1.split("</li>").next());
        let mut own: Vec<Entry> = Vec::new();
        for item in items {
            let (mut keys, mut words) = (Vec::new(), String::new());
            for (i, piece) in item.split('<').enumerate() {
                let (tag, plain) = if i == 0 { ("", piece) } else { piece.split_once('>').unwrap_or((piece, "")) };
                match attribute(tag, "class").and_then(|classes| classes.split_once(' ')) {
                    Some(("swatch", class)) => keys.push(Key::Swatch(class.to_owned())),
                    Some((_, class)) => keys.push(Key::Line(class.to_owned())),
                    None if tag == "b" => {
                        keys.push(Key::Letter(plain.to_owned()));
                        continue;
                    }
                    None => {}
                }
                words.push_str(plain);
            }
            // The ends of a scale stand before and behind its colours.
            let between = if keys.len() > 1 { " to " } else { " " };
            let words = unescape(&words).split_whitespace().collect::<Vec<_>>().join(between);
            if is_long {
                lists.push(vec![(keys, words)]);
            } else {
                own.push((keys, words));
            }
        }
        lists.push(own);
    }
    lists
}

/// Draws a legend, on several lines if it must; returns where it ends.
fn legend(page: &mut Drawing, top: f64, entries: &[Entry]) -> f64 {
    if entries.is_empty() {
        return top;
    }
    let (mut left, mut base) = (MARGIN, top + 12.0);
    for (keys, words) in entries {
        let marks = keys.iter().map(|key| if matches!(key, Key::Swatch(_)) { 14.0 } else { 20.0 }).sum::<f64>();
        let words = text::cut(words, WIDE.width - marks - 8.0, 12.0);
        let room = marks + 4.0 + text::width(&words, 12.0);
        if left > MARGIN && left + room > MARGIN + WIDE.width {
            (left, base) = (MARGIN, base + LINE);
        }
        let mut at = left;
        for key in keys {
            match key {
                Key::Line(class) => {
                    let own = colour(class.split(' ').next().unwrap_or_default());
                    page.line((at, base - 4.0), (at + 16.0, base - 4.0), own, 2.0, class.contains("dashed"));
                    at += 20.0;
                }
                Key::Swatch(class) => {
                    page.rect((at, base - 9.0), (14.0, 10.0), colour(class));
                    at += 14.0;
                }
                Key::Letter(letter) => {
                    page.text((at, base), 12.0, true, colour("c1"), letter);
                    at += 20.0;
                }
            }
        }
        page.text((at + 4.0, base), 12.0, false, INK, &words);
        left += room + 18.0;
    }
    base + LINE * 0.6
}

/// Columns and rows as CSV; texts that a spreadsheet would read as formulas get an apostrophe.
fn csv(columns: &[String], rows: &[Vec<String>]) -> String {
    let cell = |text: &String| {
        // Numbers as programs read them: a plain sign, no space between thousands, `2e-4`.
        let plain = text.replace('\u{2212}', "-").replace('\u{202f}', "");
        let scientific = plain.split_once("×10").and_then(|(mantissa, power)| {
            let power: Option<String> = power.chars().map(text::lowered).collect();
            Some(format!("{mantissa}e{}", power?))
        });
        let number = scientific.unwrap_or(plain);
        let text = if number.parse::<f64>().is_ok() { &number } else { text };
        let text = inert(text);
        match text.contains(['"', ',', '\n', '\r']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.into_owned(),
        }
    };
    let line = |cells: &[String]| cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
    [line(columns)].into_iter().chain(rows.iter().map(|row| line(row))).collect()
}

fn markdown(table: &DataTable, caption: &str) -> String {
    let width = table.columns.len();
    let line = |cells: &[String]| {
        let cell = |i: usize| cells.get(i).map_or(String::new(), |cell| cell.replace('|', "\\|").replace('\n', " "));
        format!("| {} |\n", (0..width).map(cell).collect::<Vec<_>>().join(" | "))
    };
    let rule = vec!["---".to_owned(); width];
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    format!("{}{}{rows}\n{caption}\n", line(&table.columns), line(&rule))
}

/// Escapes text for LaTeX; signs that are not in every font become commands.
pub(crate) fn tex(text: &str) -> String {
    let of = |c: char| match c {
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => format!("\\{c}"),
        '~' => "\\textasciitilde{}".into(),
        '^' => "\\textasciicircum{}".into(),
        '\\' => "\\textbackslash{}".into(),
        '\u{2212}' => "$-$".into(),
        '×' => "$\\times$".into(),
        '–' => "--".into(),
        '“' => "``".into(),
        '”' => "''".into(),
        '\u{202f}' | '\u{2009}' => "\\,".into(),
        '\n' => " ".into(),
        // At the beginning of a row they would belong to the `\\` before it.
        '[' | '*' => format!("{{{c}}}"),
        c => match text::lowered(c) {
            Some('-') => "\\textsuperscript{$-$}".into(),
            Some(digit) => format!("\\textsuperscript{{{digit}}}"),
            None => c.to_string(),
        },
    };
    text.chars().map(of).collect()
}

fn latex(table: &DataTable, caption: &str) -> String {
    let width = table.columns.len();
    let line = |cells: &[String]| {
        let cell = |i: usize| cells.get(i).map_or(String::new(), |cell| tex(cell));
        format!("  {} \\\\\n", (0..width).map(cell).collect::<Vec<_>>().join(" & "))
    };
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    format!(
        "% needs \\usepackage{{booktabs}}\n\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{l{}}}\n\\toprule\n{}\\midrule\n{rows}\
         \\bottomrule\n\\end{{tabular}}\n\\caption{{{}}}\n\\end{{table}}\n",
        "r".repeat(width.saturating_sub(1)),
        line(&table.columns),
        tex(caption)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::page::{Agents, Bar, Chart, Mark, Panel, Place, Section, Series};
    use super::*;

    #[test]
    fn latex_reads_signs_as_they_are() {
        assert_eq!(tex("95 % of a_b^2 & {c}\\"), "95 \\% of a\\_b\\textasciicircum{}2 \\& \\{c\\}\\textbackslash{}");
    }

    fn report(simulated: bool) -> Report {
        let series = |name: &str| Series {
            name: name.into(),
            points: (0..300).map(|i| (f64::from(i), f64::from(i % 7))).collect(),
            ..Series::default()
        };
        let lines = Figure::Lines {
            title: "Opinion: mean & level".into(),
            x_label: "round".into(),
            y_label: "opinion".into(),
            series: vec![series("a"), series("=b")],
            caption: "c".into(),
        };
        let place = |i: u32| Place { x: f64::from(i), y: 1.0, heading: None, value: f64::from(i) };
        let range = ((0.0, 2.0), (0.0, 2.0));
        let agents = Agents { range, places: (0..3).map(place).collect(), ties: vec![(0, 1)], ..Agents::default() };
        let panel = |title: &str, chart| Panel { title: title.into(), note: "a note".into(), chart };
        let panels = Figure::Panels {
            title: "Side by side".into(),
            x_label: "round".into(),
            panels: vec![panel("first", Chart::Lines(vec![series("a")])), panel("town", Chart::Agents(agents))],
            marks: vec![Mark { at: 3.0, label: "rate = 1".into() }],
            shade: "opinion".into(),
            caption: String::new(),
        };
        let bars = Figure::Bars {
            title: "Bars".into(),
            x_label: "arm".into(),
            y_label: "value".into(),
            bars: vec![Bar { label: "x, y".into(), value: 1.5, interval: Some((1.0, 2.0)) }],
            caption: String::new(),
        };
        let table = DataTable {
            columns: vec!["arm".into(), "value".into()],
            rows: vec![
                vec!["a_b|c".into(), "−1.5".into()],
                vec!["[d]".into(), "2×10⁻⁴".into()],
                vec!["2×104".into(), "1".into()],
            ],
            caption: "What it holds.".into(),
            links: Vec::new(),
        };
        let section =
            Section { title: "Means".into(), text: None, figures: vec![lines, panels, bars], table: Some(table) };
        Report { simulated, sections: vec![section], ..Report::default() }
    }

    fn text_of<'a>(files: &'a [File], name: &str) -> &'a str {
        std::str::from_utf8(&files.iter().find(|(other, _)| other == name).unwrap().1).unwrap()
    }

    #[test]
    fn every_figure_is_a_picture_twice_and_its_data() {
        let files = figures(&report(true));
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let stems = ["figure-1-opinion-mean-level", "figure-2-side-by-side", "figure-3-bars"];
        let wanted: Vec<String> =
            stems.iter().flat_map(|stem| ["svg", "pdf", "csv"].map(|end| format!("{stem}.{end}"))).collect();
        assert_eq!(names, wanted);
        for stem in stems {
            let svg = text_of(&files, &format!("{stem}.svg"));
            assert!(svg.contains(SIMULATED) && !svg.contains("class="), "{stem}");
            assert!(text_of(&files, &format!("{stem}.pdf")).contains("no evidence about any real model"), "{stem}");
        }
        // All rows, and no formula.
        let data = text_of(&files, "figure-1-opinion-mean-level.csv");
        assert_eq!((data.lines().count(), data.lines().next()), (301, Some("round,a,'=b")));
        assert!(text_of(&files, "figure-3-bars.csv").contains("\"x, y\",1.5,1,2"));
        let panels = text_of(&files, "figure-2-side-by-side.svg");
        for part in ["first", "town", "a note", ">A<", "round 3: rate = 1", "axis: round"] {
            assert!(panels.contains(part), "{part}");
        }
        // Dots of the three agents, a path for each colour, and the tie of two of them.
        assert_eq!([5.0, 0.8].map(|width| panels.matches(&format!("stroke-width=\"{width}\"")).count()), [3, 1]);
        assert!(!figures(&report(false)).iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains("Simulated")));
    }

    #[test]
    fn every_column_of_data_has_a_name() {
        let series = Series { name: "a".into(), points: vec![(0.0, 1.0)], ..Series::default() };
        let chart = Chart::Levels { names: vec!["low".into()], series: vec![series], joined: false };
        let means = Figure::Panels {
            title: "Means".into(),
            x_label: "arm".into(),
            panels: vec![Panel { title: "m".into(), note: String::new(), chart }],
            marks: Vec::new(),
            shade: String::new(),
            caption: String::new(),
        };
        let section = Section { title: "Means".into(), figures: vec![means], ..Section::default() };
        let files = figures(&Report { sections: vec![section], ..Report::default() });
        let data = text_of(&files, "figure-1-means.csv");
        assert!(data.starts_with("chart,arm,series,value,low,high\nm,low,a,1,"), "{data}");
    }

    #[test]
    fn every_table_is_written_three_times() {
        let files = tables(&report(true));
        assert_eq!(text_of(&files, "table-1-means.csv"), "arm,value\na_b|c,-1.5\n[d],2e-4\n2×104,1\n");
        let md = text_of(&files, "table-1-means.md");
        assert!(
            md.starts_with("| arm | value |\n| --- | --- |\n| a_b\\|c | −1.5 |\n| [d] | 2×10⁻⁴ |\n| 2×104 | 1 |\n\n")
                && md.contains("\nWhat it holds. Simulated models"),
            "{md}"
        );
        let tex = text_of(&files, "table-1-means.tex");
        assert!(
            tex.contains(
                "  a\\_b|c & $-$1.5 \\\\\n  {[}d] & 2$\\times$10\\textsuperscript{$-$}\\textsuperscript{4} \\\\\n"
            ) && tex.contains("\\caption{What it holds. Simulated"),
            "{tex}"
        );
    }
}
