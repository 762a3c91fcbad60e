//! Evidence on the quality of a run: alarms, requested and obtained shares, distances from data. Read from the run folder alone.

use polity_arena::report::{DataTable, Section};
use polity_driver::health::{Alarm, alarms};
use polity_store::tables::{ColumnData, Reader, TableError};

/// The report's text for a run without alarms.
const NO_ALARM: &str = "No alarm. The checks look for cohorts that never acted, cohorts whose acts were always equal, \
                        metrics (if any are measured) that have not changed over the last ten rounds, questions to \
                        models that ended in their default or without an answer, and texts of four words or more that \
                        repeat another agent's.";

/// Maximum attributes in the line about the network.
const MOST_ATTRIBUTES: usize = 3;

/// Maximum rows of a table on a page or a terminal.
const MOST_ROWS: usize = 200;

/// The names of a table's columns, and its rows as texts.
type Rows = (Vec<String>, Vec<Vec<String>>);

/// Returns the rows of a table; `None` if the run has no such table.
fn rows(data: &[(String, ColumnData)]) -> Option<Rows> {
    let columns = data.iter().map(|(name, _)| name.clone()).collect();
    let cells: Vec<Vec<Option<String>>> = data.iter().map(|(_, column)| column.texts()).collect();
    let rows = data.first().map_or(0, |(_, column)| column.rows());
    let row = |i: usize| cells.iter().map(|column| column.get(i).cloned().flatten().unwrap_or_default()).collect();
    (rows > 0).then(|| (columns, (0..rows).map(row).collect()))
}

/// Returns the share furthest from the requested one: its column, its level, and the difference.
fn furthest(marginals: &[(String, ColumnData)]) -> Option<(String, String, f64)> {
    let find = |name: &str| marginals.iter().find(|(n, _)| n == name).map(|(_, data)| data);
    let (column, level) = (find("column")?.texts(), find("level")?.texts());
    let (asked, obtained) = (find("asked")?.numbers(), find("obtained")?.numbers());
    let mut furthest: Option<(String, String, f64)> = None;
    for (((column, level), asked), obtained) in column.into_iter().zip(level).zip(asked).zip(obtained) {
        let off = (asked? - obtained?).abs();
        if furthest.as_ref().is_none_or(|(_, _, most)| off > *most) {
            furthest = Some((column?, level?, off));
        }
    }
    furthest
}

fn in_words((column, level, off): &(String, String, f64)) -> String {
    match 100.0 * off {
        points if points < 0.0005 => "every share is met to within 0.0005 percentage points".into(),
        points => format!("the largest error is {points:.3} percentage points ({level} of {column})"),
    }
}

/// Says how the rows of a population's file became agents; `None` if every row is one agent, or there was no file.
fn census(tables: &Reader<'_>) -> Result<Option<String>, TableError> {
    let data = tables.closed("census", &[], usize::MAX)?;
    let find = |name: &str| data.iter().find(|(n, _)| n == name).map(|(_, data)| data);
    let (Some(quantity), Some(column), Some(value)) = (find("quantity"), find("column"), find("value")) else {
        return Ok(None);
    };
    let (quantity, column, value) = (quantity.texts(), column.texts(), value.numbers());
    let rows = || quantity.iter().zip(&column).zip(&value);
    let of = |name: &str| {
        rows().find(|((quantity, _), _)| quantity.as_deref() == Some(name)).and_then(|(_, value)| *value).unwrap_or(0.0)
    };
    let (all, eligible, used, most) = (of("rows"), of("eligible"), of("used"), of("most-agents-of-a-row"));
    if all == used && most == 1.0 {
        return Ok(None);
    }
    let mut words = format!("{used} of the {all} rows of the file became agents");
    if eligible < all {
        let missing = rows().filter(|((quantity, _), _)| quantity.as_deref() == Some("missing"));
        let parts: Vec<String> = missing
            .filter_map(|((_, column), value)| Some(format!("{} in {}", column.as_deref()?, (*value)?)))
            .collect();
        words.push_str(&format!(
            "; {} were left out because a value is missing ({})",
            all - eligible,
            parts.join(", ")
        ));
    }
    if most > 1.0 {
        let effective = of("effective-sample-size");
        words.push_str(&format!("; up to {most} agents share a row (effective sample size {effective:.0})"));
    }
    Ok(Some(words))
}

/// The measures of a network, as the table `network` has them: quantity, attribute, value.
struct Network(Vec<(String, Option<String>, f64)>);

impl Network {
    /// Reads them; none if the run has no network, or has not ended.
    fn read(tables: &Reader<'_>) -> Result<Self, TableError> {
        let data = tables.closed("network", &["quantity", "by", "value"], usize::MAX)?;
        let column = |name: &str| data.iter().find(|(other, _)| other == name).map(|(_, data)| data);
        let (Some(quantity), Some(by), Some(value)) = (column("quantity"), column("by"), column("value")) else {
            return Ok(Network(Vec::new()));
        };
        let rows = quantity.texts().into_iter().zip(by.texts()).zip(value.numbers());
        Ok(Network(rows.filter_map(|((quantity, by), value)| Some((quantity?, by, value?))).collect()))
    }

    fn value(&self, wanted: &str, attribute: Option<&str>) -> Option<f64> {
        let found = self.0.iter().find(|(quantity, by, _)| quantity == wanted && by.as_deref() == attribute);
        found.map(|(_, _, value)| *value)
    }

    /// One line about the whole network, and how ties follow each attribute.
    fn in_words(&self) -> Option<String> {
        let of = |quantity| self.value(quantity, None);
        let ties = if of("directed")? > 0.0 { "directed ties" } else { "ties" };
        let mut words = format!(
            "{} agents, {} {ties}; degree {:.2} (variance {:.2}, at most {}); clustering {:.3}; ",
            of("agents")?,
            of("ties")?,
            of("mean-degree")?,
            of("degree-variance")?,
            of("max-degree")?,
            of("mean-clustering")?,
        );
        let components = of("components")?;
        words.push_str(&if components == 1.0 {
            "1 component".into()
        } else {
            format!("{components} components, the largest with {:.1} %", 100.0 * of("largest-component")?)
        });
        if let (Some(distance), Some(sources)) = (of("mean-distance"), of("distance-sources")) {
            words.push_str(&format!("; mean distance {distance:.2}"));
            if sources < of("agents")? {
                words.push_str(&format!(" from {sources} agents drawn at random"));
            }
        }
        let mut attributes: Vec<&str> = self.0.iter().filter_map(|(_, by, _)| by.as_deref()).collect();
        attributes.dedup();
        // Those that ties follow most come first.
        let strength = |by: &str| {
            let of = |measure| self.value(measure, Some(by)).map_or(0.0, f64::abs);
            of("assortativity").max(of("numeric-assortativity"))
        };
        attributes.sort_by(|a, b| strength(b).total_cmp(&strength(a)));
        for by in attributes.iter().take(MOST_ATTRIBUTES) {
            let measures = ["assortativity", "numeric-assortativity", "modularity", "same"];
            let values = measures.iter().filter_map(|measure| Some((measure, self.value(measure, Some(*by))?)));
            let values: Vec<String> = values.map(|(measure, value)| format!("{measure} {value:.3}")).collect();
            words.push_str(&format!("; by {by}: {}", values.join(", ")));
        }
        if attributes.len() > MOST_ATTRIBUTES {
            let more = attributes.len() - MOST_ATTRIBUTES;
            words.push_str(&format!("; {more} more in the table `network`"));
        }
        Some(words)
    }
}

/// Formats a number of a table with at most four decimals.
fn short(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) if number.fract() != 0.0 => format!("{number:.4}"),
        _ => text.to_string(),
    }
}

/// Returns the lines for the terminal.
pub fn facts(tables: &Reader<'_>, health: &[Alarm]) -> Result<Vec<String>, TableError> {
    let mut facts: Vec<String> = census(tables)?.into_iter().map(|words| format!("people: {words}")).collect();
    let marginals = tables.closed("marginals", &[], usize::MAX)?;
    facts.extend(furthest(&marginals).map(|furthest| format!("marginals: {}", in_words(&furthest))));
    if let Some((_, rows)) = rows(&tables.closed("validation", &[], usize::MAX)?) {
        // The distances of one comparison are in one line, one after the other.
        for check in rows.chunk_by(|a, b| a[..3] == b[..3]).take(MOST_ROWS) {
            if let [at, of, against, ..] = check[0].as_slice() {
                let distance = |row: &Vec<String>| format!("{} {}", row[3], short(&row[4]));
                let distances: Vec<String> = check.iter().map(distance).collect();
                facts.push(format!("validation: {of} ({at}) against {against}: {}", distances.join(", ")));
            }
        }
    }
    facts.extend(Network::read(tables)?.in_words().map(|words| format!("network: {words}")));
    match health {
        [] => facts.push("health: no alarm".into()),
        alarms => facts.extend(alarms.iter().map(|alarm| format!("health: {}: {}", alarm.kind, alarm.message))),
    }
    Ok(facts)
}

/// Returns the report's sections after the results.
pub fn sections(tables: &Reader<'_>) -> Result<Vec<Section>, TableError> {
    let mut sections = Vec::new();
    let section = |title: &str, text: String, table: Option<DataTable>| Section {
        title: title.into(),
        text: Some(text),
        figures: Vec::new(),
        table,
    };
    let census = census(tables)?.map(|words| format!("People: {words}."));
    let marginals = tables.closed("marginals", &[], usize::MAX)?;
    let met = furthest(&marginals).map(|furthest| format!("Marginals: {}.", in_words(&furthest)));
    let shares = rows(&marginals);
    if census.is_some() || shares.is_some() {
        let text = census.into_iter().chain(met).collect::<Vec<_>>().join(" ");
        let caption = "Requested and obtained shares of the population.";
        sections.push(section("Population", text, shares.map(|(columns, rows)| shortened(columns, rows, caption))));
    }
    if let Some((columns, rows)) = rows(&tables.closed("validation", &[], usize::MAX)?) {
        let text = "Distances between the agents and data: ks is the two-sample Kolmogorov–Smirnov statistic, \
                    wasserstein the Wasserstein-1 distance in the unit of the quantity, total-variation the share of \
                    agents who would have to change category.";
        sections.push(section("Validation", text.into(), Some(shortened(columns, rows, "Distances from data."))));
    }
    if let Some(words) = Network::read(tables)?.in_words() {
        let (columns, rows) = rows(&tables.closed("network", &[], usize::MAX)?).unwrap_or_default();
        let caption = "Measures of the ties between agents.";
        let text = format!(
            "The network of ties: {words}. Ties are those at the start. Assortativity is Newman's coefficient, for numbers \
             the correlation over the two ends of ties; `.first` and `.last` are states before the first and after the last \
             round."
        );
        sections.push(section("Network", text, Some(shortened(columns, rows, caption))));
    }
    let alarms = alarms(tables)?;
    let text = match alarms.is_empty() {
        true => NO_ALARM.to_owned(),
        false => "Signs that the run, or a part of it, is uninformative.".to_owned(),
    };
    let rows: Vec<Vec<String>> = alarms
        .iter()
        .map(|alarm| {
            let number = |x: f64| short(&x.to_string());
            vec![
                alarm.kind.into(),
                alarm.subject.clone(),
                number(alarm.figure),
                number(alarm.threshold),
                alarm.message.clone(),
            ]
        })
        .collect();
    let columns = ["alarm", "of", "figure", "threshold", "what"].map(String::from).to_vec();
    let table = (!rows.is_empty()).then(|| DataTable { columns, rows, caption: "Alarms.".into(), links: Vec::new() });
    sections.push(section("Health", text, table));
    Ok(sections)
}

fn shortened(columns: Vec<String>, rows: Vec<Vec<String>>, caption: &str) -> DataTable {
    let cut = match rows.len() > MOST_ROWS {
        true => format!(" The first {MOST_ROWS} of {} rows; the tables of the run have all of them.", rows.len()),
        false => String::new(),
    };
    let row = |row: Vec<String>| row.iter().map(|cell| short(cell)).collect();
    let rows = rows.into_iter().take(MOST_ROWS).map(row).collect();
    DataTable { columns, rows, caption: format!("{caption}{cut}"), links: Vec::new() }
}
