//! The files in a comparison's folder: tables for people, papers and programs, figures, references, logs.

use super::comparison::joined;
use super::tables::OVERALL;
use super::{COORDINATION, Comparison, Duel, Grid, Score, TaskOf, inspect, tables};
use crate::report::{DataTable, Figure, Point, Report, Section, render, short, svg_file, tex};
use polity_driver::comparison::COMPARISON_FILE;
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
    if !comparison.overall.is_empty() {
        put("overall.jsonl", lines(comparison.overall.iter())?.into());
    }
    put("table.md", markdown(comparison).into());
    put("table.tex", latex(comparison).into());
    put("frontier.svg", svg_file(&frontiers(comparison)).into());
    put("references.bib", references(comparison, registry).into());
    put("methods.parquet", parquet(&comparison.methods)?);
    for (i, (score, sheets)) in comparison.methods.iter().zip(&comparison.sheets).enumerate() {
        let log = serde_json::to_string(&inspect::log(i, score, sheets)).map_err(unwritten)?;
        put(&format!("{LOGS}/{}", inspect::name(i, score)), log.into());
    }
    let mut listing = Listing::default();
    files.iter().for_each(|(name, bytes)| listing.add(name.as_str(), bytes));
    let record = out.join(COMPARISON_FILE);
    listing.add(COMPARISON_FILE, &disk.read(&record).map_err(DriveError::disk(&record))?);
    let of_methods = comparison.methods.iter().zip(&comparison.sheets);
    let of_methods =
        of_methods.flat_map(|(score, sheets)| score.runs.iter().zip(sheets.iter().map(|sheet| &sheet.digest)));
    let of_pilots = comparison.pilots.iter().flat_map(|pilot| &pilot.trials).map(|trial| (&trial.run, &trial.digest));
    of_methods.chain(of_pilots).for_each(|(run, digest)| listing.add_run(run, digest));
    // A damaged listing has no information on older files; it is rewritten.
    let before = match Listing::read(disk.as_ref(), out) {
        Err(DriveError::Folder(_)) => None,
        read => read?,
    };
    let before = before.unwrap_or_default();
    listing.write(disk.as_ref(), out)?;
    let logs = out.join(LOGS);
    create_dir_durably(disk.as_ref(), &logs).map_err(DriveError::disk(&logs))?;
    // Files of other requests, from an earlier command, do not belong to this comparison.
    for path in before.files().filter(|path| *path != COMPARISON_FILE && !files.contains_key(*path)) {
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
        put("report.html", render(&report_of(disk.as_ref(), comparison, registry)).as_bytes())?;
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
    task: &'a str,
    model: &'a str,
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
            let Score { task, model, method, members, .. } = score;
            sheet.rows.iter().map(move |row| Answered { task, model, method, members: *members, seed, row })
        })
    })
}

/// The table of methods as one file.
fn parquet(scores: &[Score]) -> Result<Vec<u8>, DriveError> {
    let text = |name: &str, doc: &str| ColumnSpec::new(name, Kind::Text, doc);
    let whole = |name: &str, doc: &str| ColumnSpec::new(name, Kind::U64, doc);
    let real = |name: &str, doc: &str| ColumnSpec::new(name, Kind::F64, doc);
    let columns = vec![
        text("task", "name of the task's file"),
        text("model", "model of all members"),
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
        real("cost_usd", "US dollars; missing if a price is not known").nullable(),
        real("coordination", "share of the tokens that were not spent on solving"),
        real("of_allowance", "use as a share of the allowance").nullable(),
        whole("unscored", "answers that could not be scored"),
        whole("unanswered", "items without an answer"),
        ColumnSpec::new("simulated", Kind::Bool, "whether answers came from simulated models"),
        text("run", "folder of the run, from the comparison's"),
    ];
    let texts = |of: &dyn Fn(&Score) -> String| Column::Text(scores.iter().map(of).collect());
    let wholes = |of: &dyn Fn(&Score) -> u64| Column::U64(scores.iter().map(of).collect());
    let maybe = |of: &dyn Fn(&Score) -> Option<f64>| Column::MaybeF64(scores.iter().map(of).collect());
    let reals = |of: &dyn Fn(&Score) -> f64| Column::F64(scores.iter().map(of).collect());
    let data = vec![
        texts(&|s| s.task.clone()),
        texts(&|s| s.model.clone()),
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
        maybe(&|s| s.spent.cost_usd),
        reals(&|s| s.coordination),
        maybe(&|s| s.of_allowance),
        wholes(&|s| s.unscored as u64),
        wholes(&|s| s.unanswered as u64),
        Column::Bool(scores.iter().map(|s| s.simulated).collect()),
        texts(&|s| s.run.clone()),
    ];
    let doc = "One row per method, task and model of a comparison.".to_owned();
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
    let Comparison { items, models, seed, repeats, .. } = comparison;
    let of_models = match (comparison.simulated, models.len()) {
        (true, 1) => " (a simulated model, no evidence about any real one)",
        (true, _) => " (some simulated, and these are no evidence about any real model)",
        (false, _) => "",
    };
    let repeats = if *repeats == 1 { String::new() } else { format!(", {repeats} runs each") };
    let (tasks, models) = (comparison.task_names(), joined(models.iter().map(String::as_str)));
    format!("{items} items of {tasks}, {models}{of_models}, seed {seed}{repeats}.")
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
    if !comparison.overall.is_empty() {
        out.push_str(&format!("\n## Over all tasks\n\n{OVERALL}\n\n{}", table(&tables::overall(comparison))));
    }
    if !comparison.compared.is_empty() {
        out.push_str(&format!("\n## Differences\n\n{}", table(&tables::duels(comparison))));
        tables::despite(comparison).iter().for_each(|why| out.push_str(&format!("\n{why}.\n")));
    }
    if !comparison.pilots.is_empty() {
        let lines = tables::allowances(comparison);
        out.push_str(&format!("\n## Pilot\n\n{}.\n\n{}", lines.join(".\n\n"), table(&tables::pilot(comparison))));
    }
    out.push_str(&format!("\n## Who spent what\n\n{COORDINATION}\n\n{}", table(&tables::ledger(&comparison.methods))));
    out
}

/// The tables for a paper: the methods, their means over the tasks, and the differences.
fn latex(comparison: &Comparison) -> String {
    let mut out = "% needs \\usepackage{booktabs}\n".to_owned();
    let mut add = |grid: &Grid, texts: usize, caption: &str| {
        let line = |cells: &[String]| {
            format!("  {} \\\\\n", cells.iter().map(|cell| tex(cell)).collect::<Vec<_>>().join(" & "))
        };
        let rows: String = grid.rows.iter().map(|row| line(row)).collect();
        out.push_str(&format!(
            "\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{{}{}}}\n\\toprule\n{}\\midrule\n{rows}\\bottomrule\n\
             \\end{{tabular}}\n\\caption{{{}}}\n\\end{{table}}\n",
            "l".repeat(texts),
            "r".repeat(grid.columns.len().saturating_sub(texts)),
            line(&grid.columns),
            tex(caption)
        ));
    };
    // The columns of text: the places and the name.
    let texts = |grid: &Grid, name: &str| grid.columns.iter().position(|column| column == name).map_or(1, |at| at + 1);
    let grid = tables::methods(&comparison.methods);
    add(&grid, texts(&grid, "method"), &format!("{} {INTERVALS}.", basis(comparison)));
    if !comparison.overall.is_empty() {
        let grid = tables::overall(comparison);
        add(&grid, texts(&grid, "method"), OVERALL);
    }
    if !comparison.compared.is_empty() {
        let grid = tables::duels(comparison);
        let mut caption = format!(
            "Differences in accuracy on the same items, {} of them. p is from the exact McNemar test (with repeats: the sign \
             test over items), corrected for {} tests by Holm's method.",
            comparison.items,
            comparison.compared.len()
        );
        tables::despite(comparison).iter().for_each(|why| caption.push_str(&format!(" {why}.")));
        add(&grid, texts(&grid, "pair"), &caption);
    }
    out
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

/// Plots accuracy against tokens, and against dollars if they are known: a figure for each task.
fn frontiers(comparison: &Comparison) -> Vec<Figure> {
    let figure = |task: &TaskOf, what: &str, unit: &str, of: &dyn Fn(&Score) -> f64| Figure::Scatter {
        title: match comparison.tasks.len() {
            1 => format!("Accuracy against {what}"),
            _ => format!("{}: accuracy against {what}", task.task),
        },
        x_label: unit.to_owned(),
        y_label: "accuracy".into(),
        points: comparison
            .methods
            .iter()
            .filter(|score| score.task == task.task)
            .map(|score| Point {
                label: match comparison.models.len() {
                    1 => score.method.clone(),
                    _ => format!("{}, {}", score.method, score.model),
                },
                x: of(score) / score.tries(),
                y: score.accuracy.unwrap_or(f64::NAN),
                interval: score.low.zip(score.high),
            })
            .collect(),
        caption: format!(
            "{INTERVALS}. The line joins the methods that no other method beats with equal or lower use. {}",
            basis(comparison)
        ),
    };
    let known = comparison.methods.iter().all(|score| score.spent.cost_usd.is_some());
    let of_task = |task| {
        let tokens = figure(task, "tokens", "tokens per item", &|score| score.spent.tokens() as f64);
        let dollars = |score: &Score| score.spent.cost_usd.unwrap_or(f64::NAN);
        let dollars = known.then(|| figure(task, "dollars", "US dollars per item", &dollars));
        std::iter::once(tokens).chain(dollars)
    };
    comparison.tasks.iter().flat_map(of_task).collect()
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

/// Whether dollars are shown: those of simulated models are made up, and some models cost nothing.
fn has_dollars(comparison: &Comparison) -> bool {
    !comparison.simulated && comparison.methods.iter().any(|score| score.spent.cost_usd.is_some_and(|usd| usd > 0.0))
}

/// The address of a method's run, from the comparison's folder: its report, if it has one.
fn link(disk: &dyn Disk, comparison: &Comparison, score: &Score) -> String {
    let page = Path::new(&comparison.folder).join(&score.run).join("report.html");
    let page = if disk.exists(&page).unwrap_or(false) { "report.html" } else { "" };
    format!("{}/{page}", score.run)
}

/// What the comparison shows, in sentences.
fn finding(comparison: &Comparison) -> Vec<String> {
    let mut found: Vec<String> = comparison.unsolved.iter().map(|why| format!("{why}.")).collect();
    if found.is_empty() {
        found.extend(comparison.tasks.iter().map(|task| best(comparison, task)));
    }
    let place = |duel: &Duel| comparison.place(&duel.task, duel.model.as_deref());
    let real: Vec<String> = comparison
        .compared
        .iter()
        .filter(|duel| duel.verdict == "real")
        .map(|duel| match duel.difference {
            Some(difference) if difference < 0.0 => format!("{} and {}{}", duel.b, duel.a, place(duel)),
            _ => format!("{} and {}{}", duel.a, duel.b, place(duel)),
        })
        .collect();
    match (real.len(), comparison.compared.len()) {
        (_, 0) => {}
        (0, _) => found.push(format!("These items are too few to tell any two of the {} apart.", comparison.sides())),
        (_, _) => found.push(format!("The differences are real between {} (the better one first).", real.join(", "))),
    }
    found
}

/// The most accurate method on a task, and the others.
fn best(comparison: &Comparison, task: &TaskOf) -> String {
    let several = comparison.tasks.len() > 1;
    let place = if several { format!("On {}, ", task.task) } else { String::new() };
    let ranked: Vec<(&Score, f64)> = tables::ranked(&comparison.methods)
        .into_iter()
        .filter(|score| score.task == task.task)
        .filter_map(|score| Some((score, score.accuracy?)))
        .collect();
    let Some((best, accuracy)) = ranked.first() else {
        return if several {
            format!("{place}no answer could be scored.")
        } else {
            "No answer could be scored.".into()
        };
    };
    let name = |score: &Score| match comparison.models.len() {
        1 => score.method.clone(),
        _ => format!("{} with {}", score.method, score.model),
    };
    let tokens = |score: &Score| short(score.spent.tokens() as f64 / score.tries());
    let percent = |share: f64| format!("{} %", short((1000.0 * share).round() / 10.0));
    let others: Vec<String> = ranked[1..]
        .iter()
        .map(|(score, accuracy)| format!("{} {} with {} tokens", name(score), percent(*accuracy), tokens(score)))
        .collect();
    let others = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
    format!(
        "{place}{} answered {} of the items correctly, with {} tokens an item{others}.",
        name(best),
        percent(*accuracy),
        tokens(best)
    )
}

/// A table of the report.
fn on_page(grid: Grid, caption: &str) -> DataTable {
    let Grid { columns, rows } = fitted(grid);
    DataTable { columns, rows, caption: caption.into(), links: Vec::new() }
}

fn section(title: &str, text: String, figures: Vec<Figure>, grid: Grid, caption: &str) -> Section {
    Section { title: title.into(), text: Some(text), figures, table: Some(on_page(grid, caption)) }
}

fn sections(disk: &dyn Disk, comparison: &Comparison) -> Vec<Section> {
    let warnings: Vec<String> = comparison.warnings().iter().map(|warning| format!("{warning}.")).collect();
    let dollars = has_dollars(comparison);
    let is_shown =
        |figure: &Figure| dollars || !matches!(figure, Figure::Scatter { x_label, .. } if x_label.contains("dollars"));
    let mut first = section(
        "Accuracy and cost",
        warnings.join("\n\n"),
        frontiers(comparison).into_iter().filter(is_shown).collect(),
        tables::methods(&comparison.methods),
        "The methods, with 95 % intervals of their accuracy. Use is per item and run; dollars are the total of all items \
         and runs.",
    );
    if let Some(table) = &mut first.table {
        table.links = tables::ranked(&comparison.methods).iter().map(|score| link(disk, comparison, score)).collect();
    }
    let mut sections = vec![first];
    if !comparison.overall.is_empty() {
        let grid = tables::overall(comparison);
        sections.push(section(
            "Over all tasks",
            OVERALL.into(),
            Vec::new(),
            grid,
            "Means over the tasks, and of differences.",
        ));
    }
    if !comparison.compared.is_empty() {
        let mut text = format!(
            "Differences are taken on the same items, so chance that both {} share cancels out. p is from the exact McNemar \
             test (with repeats: the sign test over items), and p (Holm) is p corrected for the number of pairs, in all \
             tasks and with all models. A difference counts as real if p (Holm) is below {}. Intervals are not corrected \
             for the number of pairs: one may exclude 0 although its pair is not told apart.",
            comparison.sides(),
            super::LEVEL
        );
        tables::despite(comparison).iter().for_each(|why| text.push_str(&format!("\n\n{why}.")));
        let caption = format!("All pairs of {}.", comparison.sides());
        sections.push(section("Differences", text, Vec::new(), tables::duels(comparison), &caption));
    }
    sections.push(section(
        "Who spent what",
        COORDINATION.into(),
        Vec::new(),
        tables::ledger(&comparison.methods),
        "Use by member and kind of work; the share is of the method's tokens.",
    ));
    if !comparison.pilots.is_empty() {
        let text = format!(
            "{}. Methods named without a number of members have the number that came closest on these items.",
            tables::allowances(comparison).join(". ")
        );
        sections.push(section("Pilot", text, Vec::new(), tables::pilot(comparison), "Teams tried in the pilot."));
    }
    sections
}

/// The report of a comparison. The disk is asked which of its runs have reports.
#[must_use]
pub fn report_of(disk: &dyn Disk, comparison: &Comparison, registry: &Registry) -> Report {
    let about = |label: &str| {
        let of_label = || comparison.methods.iter().filter(move |score| score.method == label);
        let Some(score) = of_label().next() else { return String::new() };
        let card = registry.methods().into_iter().find(|card| card.name == score.kind);
        let mut sizes: Vec<u32> = of_label().map(|score| score.members).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
        let members = joined(sizes.iter().map(String::as_str));
        let own = match score.parameters.as_slice() {
            [] => String::new(),
            parameters => format!("; {}", parameters.join(", ")),
        };
        format!("{label} ({}; {members} members{own})", card.map_or("", |card| card.summary))
    };
    let methods: Vec<String> = comparison.labels().into_iter().map(about).collect();
    let models = joined(comparison.models.iter().map(String::as_str));
    let tasks: Vec<String> = comparison
        .tasks
        .iter()
        .map(|task| format!("{} items of {} (shape {})", task.items, task.task, task.shape))
        .collect();
    let with = if comparison.models.len() == 1 { "the same model" } else { "each of the models" };
    let tested = match comparison.compared.len() {
        0 => String::new(),
        n => format!("; differences were tested in pairs (exact McNemar test) with Holm's correction for {n} tests"),
    };
    Report {
        kind: if methods.len() == 1 && comparison.models.len() == 1 { "Evaluation" } else { "Comparison of methods" }
            .into(),
        title: comparison.labels().join(", "),
        description: Some(basis(comparison)),
        finding: finding(comparison),
        simulated: comparison.simulated,
        status: "finished".into(),
        facts: vec![
            (if tasks.len() == 1 { "task" } else { "tasks" }.into(), comparison.task_names()),
            ("items".into(), comparison.items.to_string()),
            (if comparison.models.len() == 1 { "model" } else { "models" }.into(), models.clone()),
            ("seed".into(), comparison.seed.to_string()),
            ("runs per method".into(), comparison.repeats.to_string()),
            ("build".into(), format!("polity {}", env!("CARGO_PKG_VERSION"))),
        ],
        sections: sections(disk, comparison),
        scenario_yaml_or_json: String::new(),
        reproduce: vec![comparison.command.clone()],
        methods: format!(
            "We compared {}. Each worked on the same {}, with {with} ({models}) and seed {}. {INTERVALS} ({RESAMPLES} \
             resamples){tested}.",
            methods.join(", "),
            joined(tasks.iter().map(String::as_str)),
            comparison.seed
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Grid, fitted};

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
}
