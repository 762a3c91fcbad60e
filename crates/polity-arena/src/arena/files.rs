//! The files in a comparison's folder: tables for people, papers and programs, figures, references, logs.

use super::{COORDINATION, Comparison, Grid, Score, inspect, tables};
use crate::report::{DataTable, Figure, Point, Report, Section, render, short, svg_file};
use polity_kernel::registry::Registry;
use polity_stats::RESAMPLES;
use polity_store::DriveError;
use polity_store::disk::{Disk, SimDisk, create_dir_durably, write_atomically};
use polity_store::listing::Listing;
use polity_store::tables::{Batch, Column, ColumnSpec, Kind, TableSpec, Tables};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The folder of logs for Inspect AI.
const LOGS: &str = "inspect";

/// Writes all files of a comparison into its folder. The same comparison gives the same bytes.
///
/// Errors: [`DriveError::Disk`], [`DriveError::Tables`].
pub fn write(
    disk: &Arc<dyn Disk>,
    out: &Path,
    comparison: &Comparison,
    registry: &Registry,
    with_report: bool,
) -> Result<(), DriveError> {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut put = |name: &str, bytes: Vec<u8>| drop(files.insert(name.to_owned(), bytes));
    put("methods.jsonl", lines(comparison.methods.iter())?.into());
    put("pairs.jsonl", lines(comparison.compared.iter())?.into());
    put("items.jsonl", lines(items(comparison))?.into());
    put("table.md", markdown(comparison).into());
    put("table.tex", latex(comparison).into());
    put("frontier.svg", svg_file(&frontiers(comparison)).into());
    put("references.bib", references(comparison, registry).into());
    put("methods.parquet", parquet(&comparison.methods)?);
    for (score, sheets) in comparison.methods.iter().zip(&comparison.sheets) {
        let log = serde_json::to_string(&inspect::log(comparison, score, sheets)).map_err(unwritten)?;
        put(&format!("{LOGS}/{}", inspect::name(score)), log.into());
    }
    let mut listing = Listing::default();
    files.iter().for_each(|(name, bytes)| listing.add(name.as_str(), bytes));
    let of_methods = comparison.methods.iter().zip(&comparison.sheets);
    let of_methods =
        of_methods.flat_map(|(score, sheets)| score.runs.iter().zip(sheets.iter().map(|sheet| &sheet.digest)));
    let of_pilot = comparison.pilot.iter().flat_map(|pilot| &pilot.trials).map(|trial| (&trial.run, &trial.digest));
    for (run, digest) in of_methods.chain(of_pilot) {
        if let Ok(below) = Path::new(run).strip_prefix(out) {
            listing.add_run(below.to_string_lossy(), digest);
        }
    }
    // A damaged listing has no information on older files; it is rewritten.
    let before = match Listing::read(disk.as_ref(), out) {
        Err(DriveError::Folder(_)) => None,
        read => read?,
    };
    let before = before.unwrap_or_default();
    listing.write(disk.as_ref(), out)?;
    let logs = out.join(LOGS);
    create_dir_durably(disk.as_ref(), &logs).map_err(DriveError::disk(&logs))?;
    // Logs of other teams, from an earlier command, do not belong to this comparison.
    for path in before.files().filter(|path| path.starts_with(LOGS) && !files.contains_key(*path)) {
        let path = out.join(path);
        if disk.exists(&path).map_err(DriveError::disk(&path))? {
            disk.remove_file(&path).map_err(DriveError::disk(&path))?;
        }
    }
    let put = |name: &str, bytes: &[u8]| {
        let path = out.join(name);
        write_atomically(disk.as_ref(), &path, bytes).map_err(DriveError::disk(&path))
    };
    files.iter().try_for_each(|(name, bytes)| put(name, bytes))?;
    if with_report {
        put("report.html", render(&report(disk.as_ref(), comparison, registry)).as_bytes())?;
    }
    Ok(())
}

fn unwritten(error: impl std::fmt::Display) -> DriveError {
    DriveError::Folder(format!("a file of the comparison cannot be written: {error}"))
}

fn lines<T: Serialize>(rows: impl Iterator<Item = T>) -> Result<String, DriveError> {
    rows.map(|row| serde_json::to_string(&row).map(|line| line + "\n").map_err(unwritten)).collect()
}

/// An answer to an item.
#[derive(Serialize)]
struct Answered<'a> {
    method: &'a str,
    members: u32,
    seed: u64,
    #[serde(flatten)]
    row: &'a super::Row,
}

fn items(comparison: &Comparison) -> impl Iterator<Item = Answered<'_>> {
    let methods = comparison.methods.iter().zip(&comparison.sheets);
    methods.flat_map(|(score, sheets)| {
        sheets.iter().zip(comparison.seed..).flat_map(move |(sheet, seed)| {
            sheet.rows.iter().map(move |row| Answered { method: &score.method, members: score.members, seed, row })
        })
    })
}

/// The table of methods as one file.
fn parquet(scores: &[Score]) -> Result<Vec<u8>, DriveError> {
    let text = |name: &str, doc: &str| ColumnSpec::new(name, Kind::Text, doc);
    let whole = |name: &str, doc: &str| ColumnSpec::new(name, Kind::U64, doc);
    let real = |name: &str, doc: &str| ColumnSpec::new(name, Kind::F64, doc);
    let columns = vec![
        text("method", "method as it was named"),
        text("kind", "name of the method"),
        whole("members", "members of its team"),
        whole("rounds", "rounds at most"),
        whole("items", "items"),
        real("accuracy", "mean over items of the share of right answers").nullable(),
        real("low", "lower end of its 95 % interval").nullable(),
        real("high", "upper end of its 95 % interval").nullable(),
        whole("calls", "answers of models"),
        whole("tokens_in", "tokens of their requests"),
        whole("tokens_out", "tokens of the replies"),
        real("cost_usd", "US dollars"),
        real("coordination", "share of the tokens that were not spent on solving"),
        real("of_allowance", "use as a share of the allowance").nullable(),
        whole("unscored", "answers that could not be scored"),
        whole("unanswered", "items without an answer"),
        ColumnSpec::new("simulated", Kind::Bool, "whether answers came from simulated models"),
        text("run", "folder of the run"),
    ];
    let texts = |of: &dyn Fn(&Score) -> String| Column::Text(scores.iter().map(of).collect());
    let wholes = |of: &dyn Fn(&Score) -> u64| Column::U64(scores.iter().map(of).collect());
    let maybe = |of: &dyn Fn(&Score) -> Option<f64>| Column::MaybeF64(scores.iter().map(of).collect());
    let reals = |of: &dyn Fn(&Score) -> f64| Column::F64(scores.iter().map(of).collect());
    let data = vec![
        texts(&|s| s.method.clone()),
        texts(&|s| s.kind.to_owned()),
        wholes(&|s| s.members.into()),
        wholes(&|s| s.rounds.into()),
        wholes(&|s| s.items as u64),
        maybe(&|s| s.accuracy),
        maybe(&|s| s.low),
        maybe(&|s| s.high),
        wholes(&|s| s.spent.calls),
        wholes(&|s| s.spent.tokens_in),
        wholes(&|s| s.spent.tokens_out),
        reals(&|s| s.spent.cost_usd),
        reals(&|s| s.coordination),
        maybe(&|s| s.of_allowance),
        wholes(&|s| s.unscored as u64),
        wholes(&|s| s.unanswered as u64),
        Column::Bool(scores.iter().map(|s| s.simulated).collect()),
        texts(&|s| s.run.clone()),
    ];
    let doc = "One row per method of a comparison.".to_owned();
    let spec = TableSpec { name: "methods".into(), doc, columns, volatile: false, only_with_rows: false };
    // A table is a folder of parts; this one is written to memory and has one part.
    let (disk, folder): (Arc<dyn Disk>, _) = (Arc::new(SimDisk::default()), Path::new("tables"));
    let mut table = Tables::open(disk.clone(), folder, vec![spec])?;
    table.push(0, Batch { rows: scores.len(), columns: data })?;
    table.close_parts(0, 0)?;
    table.publish(false)?;
    table.finish()?;
    let folder = folder.join("methods");
    let names = disk.list(&folder).map_err(DriveError::disk(&folder))?;
    let part = names.first().map(|name| folder.join(name)).ok_or_else(|| unwritten("its table has no part"))?;
    disk.read(&part).map_err(DriveError::disk(&part))
}

/// Describes the data behind the figures of a comparison, in a sentence.
fn basis(comparison: &Comparison) -> String {
    let Comparison { task, items, model, seed, repeats, .. } = comparison;
    let of_models = if comparison.simulated { "a simulated model, no evidence about any real one" } else { "a model" };
    let repeats = if *repeats == 1 { String::new() } else { format!(", {repeats} runs each") };
    format!("{items} items of {task}, {model} ({of_models}), seed {seed}{repeats}.")
}

const INTERVALS: &str = "Intervals are 95 % percentile bootstrap over items";

fn markdown(comparison: &Comparison) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let table = |grid: &Grid| {
        let rule: Vec<String> = grid.columns.iter().map(|_| "---".to_owned()).collect();
        let rows: String = grid.rows.iter().map(|row| line(row)).collect();
        line(&grid.columns) + &line(&rule) + &rows
    };
    let mut out = format!("# Methods compared\n\n{} {INTERVALS} ({RESAMPLES} resamples).\n\n", basis(comparison));
    out.push_str(&table(&tables::methods(&comparison.methods)));
    comparison.warnings().iter().for_each(|warning| out.push_str(&format!("\n{warning}.\n")));
    out.push_str(&format!("\n## Differences\n\n{}", table(&tables::duels(comparison))));
    if let Some(pilot) = &comparison.pilot {
        out.push_str(&format!(
            "\n## Pilot\n\nThe allowance is {:.6} {} per item, which is what {} uses on the first {} items. The pilot \
             took {} calls and {} tokens.\n\n{}",
            pilot.allowance,
            pilot.unit.word(),
            pilot.set_by,
            pilot.items,
            pilot.spent.calls,
            pilot.spent.tokens(),
            table(&tables::pilot(comparison))
        ));
    }
    out.push_str(&format!("\n## Who spent what\n\n{COORDINATION}\n\n{}", table(&tables::ledger(&comparison.methods))));
    out
}

/// Escapes text for LaTeX.
fn tex(text: &str) -> String {
    let of = |c: char| match c {
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => format!("\\{c}"),
        '~' => "\\textasciitilde{}".into(),
        '^' => "\\textasciicircum{}".into(),
        '\\' => "\\textbackslash{}".into(),
        c => c.to_string(),
    };
    text.chars().map(of).collect()
}

fn latex(comparison: &Comparison) -> String {
    let grid = tables::methods(&comparison.methods);
    let line =
        |cells: &[String]| format!("  {} \\\\\n", cells.iter().map(|cell| tex(cell)).collect::<Vec<_>>().join(" & "));
    let rows: String = grid.rows.iter().map(|row| line(row)).collect();
    format!(
        "% needs \\usepackage{{booktabs}}\n\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{l{}}}\n\\toprule\n{}\\midrule\n{rows}\\bottomrule\n\
         \\end{{tabular}}\n\\caption{{{} {}.}}\n\\end{{table}}\n",
        "r".repeat(grid.columns.len().saturating_sub(1)),
        line(&grid.columns),
        tex(&basis(comparison)),
        tex(INTERVALS)
    )
}

/// Returns the methods' BibTeX, each entry once.
fn references(comparison: &Comparison, registry: &Registry) -> String {
    let mut entries: Vec<&str> = Vec::new();
    for card in registry.methods() {
        let cite = card.files.cite.trim();
        if !cite.is_empty()
            && comparison.methods.iter().any(|score| score.kind == card.name)
            && !entries.contains(&cite)
        {
            entries.push(cite);
        }
    }
    entries.iter().map(|entry| format!("{entry}\n\n")).collect::<String>().trim_end().to_owned() + "\n"
}

/// Plots accuracy against tokens, and against dollars.
fn frontiers(comparison: &Comparison) -> Vec<Figure> {
    let figure = |what: &str, unit: &str, of: &dyn Fn(&Score) -> f64| Figure::Scatter {
        title: format!("Accuracy against {what}"),
        x_label: unit.to_owned(),
        y_label: "accuracy".into(),
        points: comparison
            .methods
            .iter()
            .map(|score| Point {
                label: score.method.clone(),
                x: of(score) / (score.items * score.runs.len()).max(1) as f64,
                y: score.accuracy.unwrap_or(f64::NAN),
                interval: score.low.zip(score.high),
            })
            .collect(),
        caption: format!(
            "{INTERVALS}. The line joins the methods that no other method beats with equal or lower use. {}",
            basis(comparison)
        ),
    };
    vec![
        figure("tokens", "tokens per item", &|score| score.spent.tokens() as f64),
        figure("dollars", "US dollars per item", &|score| score.spent.cost_usd),
    ]
}

/// The same grid for a page's width: an interval in one column, the verdict beside it, small numbers without an exponent that breaks.
fn fitted(grid: Grid) -> Grid {
    let interval = grid.columns.windows(2).position(|pair| pair == ["low", "high"]);
    let verdict = grid.columns.iter().position(|column| column == "verdict");
    let cell = |cell: &String| match cell.parse::<f64>() {
        Ok(number) if cell.contains('e') => short(number),
        Ok(_) => cell.replace('-', "−"),
        Err(_) => cell.clone(),
    };
    let fit = |row: &Vec<String>, together: &str| {
        let mut cells: Vec<String> = row.iter().map(cell).collect();
        if let Some(at) = interval {
            let words = if together.is_empty() {
                format!("{} to {}", cell(&row[at]), cell(&row[at + 1]))
            } else {
                together.to_owned()
            };
            if let Some(verdict) = verdict.filter(|verdict| *verdict > at + 1) {
                let verdict = cells.remove(verdict);
                cells.insert(at + 2, verdict);
            }
            cells.splice(at..at + 2, [words]);
        }
        cells
    };
    Grid { columns: fit(&grid.columns, "95 % interval"), rows: grid.rows.iter().map(|row| fit(row, "")).collect() }
}

/// Whether dollars were paid; those of simulated models are made up.
fn has_dollars(comparison: &Comparison) -> bool {
    !comparison.simulated && comparison.methods.iter().any(|score| score.spent.cost_usd > 0.0)
}

/// The address of a method's run, from the comparison's folder: its report, if it has one.
fn link(disk: &dyn Disk, comparison: &Comparison, score: &Score) -> String {
    let run = Path::new(&score.run);
    let Ok(below) = run.strip_prefix(&comparison.folder) else { return String::new() };
    let page = if disk.exists(&run.join("report.html")).unwrap_or(false) { "report.html" } else { "" };
    format!("{}/{page}", below.to_string_lossy())
}

/// What the comparison shows, in sentences.
fn finding(comparison: &Comparison) -> Vec<String> {
    let mut ranked: Vec<(&Score, f64)> =
        comparison.methods.iter().filter_map(|score| Some((score, score.accuracy?))).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let Some((best, accuracy)) = ranked.first() else {
        return vec!["No answer could be scored.".into()];
    };
    let tokens = |score: &Score| short(score.spent.tokens() as f64 / (score.items * score.runs.len()).max(1) as f64);
    let percent = |share: f64| format!("{} %", short((1000.0 * share).round() / 10.0));
    let others: Vec<String> = ranked[1..]
        .iter()
        .map(|(score, accuracy)| format!("{} {} with {}", score.method, percent(*accuracy), tokens(score)))
        .collect();
    let others = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
    let first = format!(
        "{} answered {} of the items correctly, with {} tokens an item{others}.",
        best.method,
        percent(*accuracy),
        tokens(best)
    );
    let real: Vec<String> = comparison
        .compared
        .iter()
        .filter(|duel| duel.verdict == "real")
        .map(|duel| match duel.difference {
            Some(difference) if difference < 0.0 => format!("{} and {}", duel.b, duel.a),
            _ => format!("{} and {}", duel.a, duel.b),
        })
        .collect();
    let second = match (real.len(), comparison.compared.len()) {
        (_, 0) => return vec![first],
        (0, _) => "These items are too few to tell any two of the methods apart.".to_owned(),
        (_, _) => format!("The differences are real between {} (the better one first).", real.join(", ")),
    };
    vec![first, second]
}

fn report(disk: &dyn Disk, comparison: &Comparison, registry: &Registry) -> Report {
    let table = |grid: Grid, caption: &str| {
        let Grid { columns, rows } = fitted(grid);
        DataTable { columns, rows, caption: caption.into(), links: Vec::new() }
    };
    let section = |title: &str, text: String, figures: Vec<Figure>, grid: Grid, caption: &str| Section {
        title: title.into(),
        text: Some(text),
        figures,
        table: Some(table(grid, caption)),
    };
    let warnings: Vec<String> = comparison.warnings().iter().map(|warning| format!("{warning}.")).collect();
    let pairs = format!(
        "Differences are taken on the same items, so chance that both methods share cancels out. p is from the exact \
         McNemar test (with repeats: the sign test over items), and p (Holm) is p corrected for the number of pairs. A \
         difference counts as real if p (Holm) is below {}. Intervals are not corrected for the number of pairs: one may \
         exclude 0 although its pair is not told apart.",
        super::LEVEL
    );
    let mut sections = vec![
        section(
            "Accuracy and cost",
            warnings.join("\n\n"),
            frontiers(comparison).into_iter().take(if has_dollars(comparison) { 2 } else { 1 }).collect(),
            tables::methods(&comparison.methods),
            "The methods, with 95 % intervals of their accuracy. Use is per item and run; dollars are the total of all \
             items and runs.",
        ),
        section("Differences", pairs, Vec::new(), tables::duels(comparison), "All pairs of methods."),
        section(
            "Who spent what",
            COORDINATION.into(),
            Vec::new(),
            tables::ledger(&comparison.methods),
            "Use by member and kind of work; the share is of the method's tokens.",
        ),
    ];
    if let Some(table) = &mut sections[0].table {
        table.links = comparison.methods.iter().map(|score| link(disk, comparison, score)).collect();
    }
    if let Some(pilot) = &comparison.pilot {
        let text = format!(
            "Budgets are equal in {}: the allowance is {:.6} per item, which is what {} uses on the first {} items, \
             more than any other method. Methods named without a number of members have the number that came closest \
             on these items. The pilot took {} calls, {} tokens and {:.4} US dollars, which do not count as use of the \
             methods.",
            pilot.unit.word(),
            pilot.allowance,
            pilot.set_by,
            pilot.items,
            pilot.spent.calls,
            pilot.spent.tokens(),
            pilot.spent.cost_usd
        );
        sections.push(section("Pilot", text, Vec::new(), tables::pilot(comparison), "Teams tried in the pilot."));
    }
    let about = |score: &Score| {
        let card = registry.methods().into_iter().find(|card| card.name == score.kind);
        format!("{} ({}; {} members)", score.method, card.map_or("", |card| card.summary), score.members)
    };
    let methods: Vec<String> = comparison.methods.iter().map(about).collect();
    Report {
        kind: "Comparison of methods".into(),
        title: comparison.methods.iter().map(|score| score.method.as_str()).collect::<Vec<_>>().join(", "),
        description: Some(basis(comparison)),
        finding: finding(comparison),
        simulated: comparison.simulated,
        status: "finished".into(),
        facts: vec![
            ("task".into(), comparison.task.clone()),
            ("items".into(), comparison.items.to_string()),
            ("model".into(), comparison.model.clone()),
            ("seed".into(), comparison.seed.to_string()),
            ("runs per method".into(), comparison.repeats.to_string()),
            ("build".into(), format!("polity {}", env!("CARGO_PKG_VERSION"))),
        ],
        sections,
        scenario_yaml_or_json: String::new(),
        reproduce: vec![comparison.command.clone()],
        methods: format!(
            "We compared {}. Each worked on the same {} items of {} (shape {}), with the same model ({}) and seed {}. {INTERVALS} \
             ({RESAMPLES} resamples); differences were tested in pairs (exact McNemar test) with Holm's correction.",
            methods.join(", "),
            comparison.items,
            comparison.task,
            comparison.shape,
            comparison.model,
            comparison.seed
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Grid, fitted, tex};

    #[test]
    fn a_verdict_stands_beside_its_interval() {
        let row = |cells: [&str; 6]| cells.map(str::to_owned).to_vec();
        let grid = Grid {
            columns: row(["pair", "difference", "low", "high", "p", "verdict"]),
            rows: vec![row(["a - b", "+0.1", "-0.1", "+0.3", "5.2e-4", "not told apart"])],
        };
        let fitted = fitted(grid);
        assert_eq!(fitted.columns.join("|"), "pair|difference|95 % interval|verdict|p");
        assert_eq!(fitted.rows[0].join("|"), "a - b|+0.1|−0.1 to +0.3|not told apart|0.00052");
    }

    #[test]
    fn latex_reads_signs_as_they_are() {
        assert_eq!(tex("95 % of a_b^2 & {c}\\"), "95 \\% of a\\_b\\textasciicircum{}2 \\& \\{c\\}\\textbackslash{}");
    }
}
