//! The report's sections on model calls: their use, and what became of the answers. A fold of the run's tables.

use polity_arena::report::{DataTable, Section};
use polity_driver::health::DEFAULTS;
use polity_kernel::ask::Resolution;
use polity_store::tables::{ColumnData, Reader, TableError};
use std::collections::BTreeMap;
use std::path::Path;

/// The columns that are read; texts are not.
const COLUMNS: [&str; 11] = [
    "agent",
    "model",
    "outcome",
    "resolution",
    "tokens_in",
    "tokens_out",
    "tokens_cached",
    "tokens_thinking",
    "cost_usd",
    "latency_ms",
    "shared",
];

/// Calls of one model, in a society by one cohort.
#[derive(Clone, Debug, Default)]
struct Sums {
    answers: u64,
    /// Calls for which a provider was asked.
    calls: u64,
    shared: u64,
    denied: u64,
    /// In, out, cached, thinking; of calls, as the dollars.
    tokens: [f64; 4],
    cost_usd: f64,
    latencies: Vec<f64>,
    /// In the order of [`Resolution::ALL`].
    resolutions: [u64; 6],
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.answers += other.answers;
        self.calls += other.calls;
        self.shared += other.shared;
        self.denied += other.denied;
        self.cost_usd += other.cost_usd;
        self.latencies.extend(&other.latencies);
        self.tokens.iter_mut().zip(other.tokens).for_each(|(sum, more)| *sum += more);
        self.resolutions.iter_mut().zip(other.resolutions).for_each(|(sum, more)| *sum += more);
    }

    fn resolution(&self, resolution: Resolution) -> u64 {
        Resolution::ALL.iter().position(|r| *r == resolution).map_or(0, |i| self.resolutions[i])
    }

    /// Number of finished questions.
    fn questions(&self) -> u64 {
        self.resolutions.iter().sum::<u64>() - self.resolution(Resolution::Again)
    }

    /// Returns the milliseconds within which this share of the calls was answered.
    fn latency(&self, share: f64) -> String {
        let mut sorted = self.latencies.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).map_or(String::new(), |ms| format!("{ms:.0}"))
    }
}

/// By (cohort, model); no cohort in an evaluation, or where the agents are not recorded.
type Groups = BTreeMap<(String, String), Sums>;

fn read(tables: &Reader<'_>) -> Result<Groups, TableError> {
    let data = tables.closed("calls", &COLUMNS, usize::MAX)?;
    // In an evaluation agents have no cohort, and without `record: {agents: true}` there is no such table.
    let cohorts = match tables.closed("agents", &["agent", "cohort"], usize::MAX) {
        Ok(agents) => agents.into_iter().find(|(name, _)| name == "cohort").map_or(Vec::new(), |(_, c)| c.texts()),
        Err(TableError::Spec { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let find = |name: &str| data.iter().find(|(column, _)| column == name).map(|(_, column)| column);
    let texts = |name: &str| find(name).map_or(Vec::new(), ColumnData::texts);
    let numbers = |name: &str| find(name).map_or(Vec::new(), ColumnData::numbers);
    let (models, outcomes, resolutions) = (texts("model"), texts("outcome"), texts("resolution"));
    let (agents, shared) = (numbers("agent"), numbers("shared"));
    let tokens = COLUMNS[4..8].iter().map(|name| numbers(name)).collect::<Vec<_>>();
    let (costs, latencies) = (numbers("cost_usd"), numbers("latency_ms"));
    let number = |column: &[Option<f64>], i: usize| column.get(i).copied().flatten().unwrap_or(0.0);
    let mut groups = Groups::new();
    for (i, model) in models.iter().enumerate() {
        let cohort = cohorts.get(number(&agents, i) as usize).cloned().flatten().unwrap_or_default();
        let sums = groups.entry((cohort, model.clone().unwrap_or_default())).or_default();
        let is = |column: &[Option<String>], word: &str| column.get(i).is_some_and(|w| w.as_deref() == Some(word));
        sums.resolutions
            .iter_mut()
            .zip(Resolution::ALL)
            .filter(|(_, resolution)| is(&resolutions, resolution.name()))
            .for_each(|(n, _)| *n += 1);
        if is(&outcomes, "denied") {
            sums.denied += 1;
            continue;
        }
        sums.answers += 1;
        if number(&shared, i) > 0.0 {
            sums.shared += 1;
            continue;
        }
        sums.calls += 1;
        sums.tokens.iter_mut().zip(&tokens).for_each(|(sum, column)| *sum += number(column, i));
        sums.cost_usd += number(&costs, i);
        sums.latencies.push(number(&latencies, i));
    }
    Ok(groups)
}

/// Returns the report's sections for a run that made calls; `priced`: whether calls without cost were free.
pub fn sections(tables: &Reader<'_>, run: &Path, simulated: bool, priced: bool) -> Result<Vec<Section>, TableError> {
    let section = |title: &str, text: String, table: Option<DataTable>| Section {
        title: title.into(),
        text: Some(text),
        figures: Vec::new(),
        table,
    };
    let groups = read(tables)?;
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = Sums::default();
    groups.values().for_each(|sums| all.add(sums));
    let by_cohort = groups.keys().any(|(cohort, _)| !cohort.is_empty());
    let mut rows: Vec<(Vec<String>, &Sums)> = Vec::new();
    for ((cohort, model), sums) in &groups {
        let names = if by_cohort { vec![cohort.clone(), model.clone()] } else { vec![model.clone()] };
        rows.push((names, sums));
    }
    if groups.len() > 1 {
        rows.push((if by_cohort { vec!["all".into(), String::new()] } else { vec!["all".into()] }, &all));
    }
    let names: Vec<&str> = if by_cohort { vec!["cohort", "model"] } else { vec!["model"] };
    let latency = match simulated {
        true => {
            "Latencies of simulated models are declared, and the run does not wait for them; their prices are made up."
        }
        false => "Latencies are measured and differ from run to run.",
    };
    let text = format!(
        "The table calls holds every prompt and answer; the command “polity calls {}” shows them. Tokens and dollars count \
         calls only, that is, answers for which a provider was asked. {latency}",
        run.display()
    );
    let spent = |sums: &Sums| match priced || sums.cost_usd > 0.0 {
        true => format!("{:.4}", sums.cost_usd),
        false => "not known".to_string(),
    };
    let tokens = |i: usize| move |sums: &Sums| sums.tokens[i].to_string();
    let taken: Vec<Column<'_>> = vec![
        ("answers", Box::new(|sums| sums.answers.to_string())),
        ("calls", Box::new(|sums| sums.calls.to_string())),
        ("shared", Box::new(|sums| sums.shared.to_string())),
        ("denied", Box::new(|sums| sums.denied.to_string())),
        ("tokens in", Box::new(tokens(0))),
        ("tokens out", Box::new(tokens(1))),
        ("of these cached", Box::new(tokens(2))),
        ("of these thinking", Box::new(tokens(3))),
        ("dollars", Box::new(spent)),
        ("median ms", Box::new(|sums| sums.latency(0.5))),
        ("95 % within ms", Box::new(|sums| sums.latency(0.95))),
    ];
    let caption = if by_cohort { "Use of models, by cohort." } else { "Use of models." };
    let mut sections = vec![section("Model calls", text, Some(table(&names, &rows, taken, caption)))];
    let of = |resolution: Resolution| move |sums: &Sums| sums.resolution(resolution).to_string();
    let lost = |sums: &Sums| {
        (sums.resolution(Resolution::Default) + sums.resolution(Resolution::None)) as f64
            / sums.questions().max(1) as f64
    };
    let became: Vec<Column<'_>> = vec![
        ("questions", Box::new(|sums| sums.questions().to_string())),
        ("fit", Box::new(of(Resolution::Fit))),
        ("repaired", Box::new(of(Resolution::Repaired))),
        ("reasked", Box::new(of(Resolution::Reasked))),
        ("default", Box::new(of(Resolution::Default))),
        ("none", Box::new(of(Resolution::None))),
        ("default or none, %", Box::new(move |sums| format!("{:.2}", 100.0 * lost(sums)))),
        ("put again", Box::new(of(Resolution::Again))),
    ];
    let text = format!(
        "Of {} questions {:.2} % ended in their default or without an answer (above {:.0} % there is an alarm). A \
         reply fits as it came, after its form was repaired, or after the question was asked again. Otherwise the \
         question's declared default applies; if none is declared, the asker continues without an answer.",
        all.questions(),
        100.0 * lost(&all),
        100.0 * DEFAULTS
    );
    let caption = "Outcomes of the questions.";
    sections.push(section("Model answers", text, Some(table(&names, &rows, became, caption))));
    Ok(sections)
}

/// A column: its name, and its cell in a row.
type Column<'a> = (&'a str, Box<dyn Fn(&Sums) -> String + 'a>);

/// Returns a table of groups, without optional columns that are 0 throughout.
fn table(names: &[&str], rows: &[(Vec<String>, &Sums)], columns: Vec<Column<'_>>, caption: &str) -> DataTable {
    const OPTIONAL: [&str; 4] = ["shared", "denied", "of these cached", "of these thinking"];
    let shown: Vec<Column<'_>> = columns
        .into_iter()
        .filter(|(name, cell)| !OPTIONAL.contains(name) || rows.iter().any(|(_, sums)| cell(sums) != "0"))
        .collect();
    let cells = |(names, sums): &(Vec<String>, &Sums)| {
        names.iter().cloned().chain(shown.iter().map(|(_, cell)| cell(sums))).collect()
    };
    DataTable {
        columns: names.iter().copied().chain(shown.iter().map(|(name, _)| *name)).map(String::from).collect(),
        rows: rows.iter().map(cells).collect(),
        caption: caption.into(),
        links: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use polity_store::disk::SimDisk;
    use polity_store::tables::{Batch, Column as Cells, ColumnSpec, Kind, Parts, TableSpec, Tables, Value};
    use std::sync::Arc;

    /// Four answers of three agents: one fits, one is shared, one is the default, one is retried.
    fn run(simulated: bool) -> Vec<Section> {
        let disk = Arc::new(SimDisk::default());
        let spec = |name: &str, columns: Vec<(&str, Kind)>| TableSpec {
            name: name.into(),
            doc: String::new(),
            columns: columns.into_iter().map(|(name, kind)| ColumnSpec::new(name, kind, "")).collect(),
            volatile: false,
            only_with_rows: false,
        };
        let words = |words: &[&str]| Kind::Category(words.iter().map(|word| (*word).to_string()).collect());
        let kinds = [
            Kind::U32,
            Kind::Text,
            words(&["reply", "invalid"]),
            words(&Resolution::ALL.map(Resolution::name)),
            Kind::U64,
            Kind::U64,
            Kind::U64,
            Kind::U64,
            Kind::F64,
            Kind::F64,
            Kind::Bool,
        ];
        let calls = spec("calls", COLUMNS.into_iter().zip(kinds).collect());
        let agents = spec("agents", vec![("agent", Kind::U32), ("cohort", words(&["old", "young"]))]);
        let mut tables = Tables::open(disk.clone(), Path::new("run/tables"), vec![calls, agents]).unwrap();
        let zeros = || Cells::Same(Value::U64(0));
        let columns = vec![
            Cells::U32(vec![0, 1, 2, 2]),
            Cells::Same(Value::Text("some/model".into())),
            Cells::Code(vec![0, 0, 1, 1]),
            Cells::Code(vec![0, 0, 4, 3]),
            Cells::U64(vec![10, 10, 20, 30]),
            Cells::U64(vec![1, 1, 2, 3]),
            zeros(),
            zeros(),
            Cells::F64(if simulated { vec![0.5, 0.5, 0.25, 0.25] } else { vec![0.0; 4] }),
            Cells::F64(vec![7.0, 9.0, 100.0, 200.0]),
            Cells::Bool(vec![false, true, false, false]),
        ];
        tables.push(0, Batch { rows: 4, columns }).unwrap();
        tables.push(1, Batch { rows: 3, columns: vec![Cells::Range(0..3), Cells::Code(vec![0, 0, 1])] }).unwrap();
        let mut parts = Parts::new();
        for part in tables.close_parts(0, 0).unwrap() {
            parts.entry(part.table.clone()).or_default().push(part);
        }
        tables.publish(true).unwrap();
        tables.finish().unwrap();
        let tables = Reader::of_parts(disk.as_ref(), Path::new("run/tables"), parts);
        sections(&tables, Path::new("run"), simulated, simulated).unwrap()
    }

    #[test]
    fn calls_are_summed_by_cohort_and_what_was_shared_is_not_paid_twice() {
        let sections = run(true);
        let [taken, became] = [0, 1].map(|i| sections[i].table.clone().unwrap());
        let head = "cohort,model,answers,calls,shared,tokens in,tokens out,dollars,median ms,95 % within ms";
        assert_eq!(taken.columns.join(","), head);
        let rows: Vec<String> = taken.rows.iter().map(|row| row.join(",")).collect();
        assert_eq!(
            rows,
            [
                "old,some/model,2,1,1,10,1,0.5000,7,7",
                "young,some/model,2,2,0,50,5,0.5000,100,200",
                "all,,4,3,1,60,6,1.0000,100,200"
            ]
        );
        let rows: Vec<String> = became.rows.iter().map(|row| row.join(",")).collect();
        let expected =
            ["old,some/model,2,2,0,0,0,0,0.00,0", "young,some/model,1,0,0,0,1,0,100.00,1", "all,,3,2,0,0,1,0,33.33,1"];
        assert_eq!(rows, expected);
        assert!(sections[1].text.as_ref().unwrap().starts_with("Of 3 questions 33.33 % ended"));
        let unpriced = run(false)[0].table.clone().unwrap();
        assert_eq!(unpriced.rows[0][7], "not known");
    }

    #[test]
    fn who_asked_nobody_has_no_section() {
        let disk = SimDisk::default();
        let nothing = Reader::of_parts(&disk, Path::new("run/tables"), Parts::new());
        assert!(sections(&nothing, Path::new("run"), true, true).unwrap().is_empty());
    }

    #[test]
    fn latencies_are_those_of_ranks() {
        let sums = Sums { latencies: (1..=20).rev().map(f64::from).collect(), ..Sums::default() };
        assert_eq!((sums.latency(0.5), sums.latency(0.95)), ("10".into(), "19".into()));
        assert_eq!(Sums { latencies: vec![7.0], ..Sums::default() }.latency(0.95), "7");
        assert_eq!(Sums::default().latency(0.5), "");
    }
}
