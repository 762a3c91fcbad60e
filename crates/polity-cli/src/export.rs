//! `polity export`: a table as CSV or JSON lines, or the ties between agents as a network.

use super::args::{Format, NetworkFormat};
use super::failure::{Exit, Failure};
use super::output::{self, note, print_data};
use super::several::several;
use polity_driver::comparison::is_comparison;
use polity_driver::results;
use polity_driver::sweep::is_sweep;
use polity_store::disk::{Disk, RealDisk};
use polity_store::network::Network;
use polity_store::spreadsheet::inert;
use polity_store::tables::{ColumnData, TableError};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// One cell, as JSON; a missing one is null.
fn cell(data: &ColumnData, row: usize) -> serde_json::Value {
    use serde_json::json;
    let value = match data {
        ColumnData::U32(v) => v.get(row).copied().flatten().map(|x| json!(x)),
        ColumnData::U64(v) => v.get(row).copied().flatten().map(|x| json!(x)),
        ColumnData::F64(v) => v.get(row).copied().flatten().map(|x| json!(x)),
        ColumnData::Bool(v) => v.get(row).copied().flatten().map(|x| json!(x)),
        ColumnData::Text(v) => v.get(row).and_then(|t| t.as_ref()).map(|x| json!(x)),
        ColumnData::Category { words, codes } => {
            codes.get(row).copied().flatten().and_then(|code| words.get(code as usize)).map(|x| json!(x))
        }
    };
    value.unwrap_or_default()
}

/// A part of an export: a table of a run, with what tells the run apart.
struct Page {
    about: Vec<(&'static str, serde_json::Value)>,
    data: Vec<(String, ColumnData)>,
}

impl Page {
    fn alone(data: Vec<(String, ColumnData)>) -> Page {
        Page { about: Vec::new(), data }
    }

    fn rows(&self) -> usize {
        self.data.first().map_or(0, |(_, column)| column.rows())
    }

    /// The cells of some columns; `None` where this run has no such column. A column of the table comes before what tells the run apart.
    fn cells(&self, columns: &[&str]) -> Vec<Option<Cells<'_>>> {
        let of = |column: &&str| {
            let own = self.data.iter().find(|(name, _)| name == column).map(|(_, data)| Cells::Own(data));
            own.or_else(|| self.about.iter().find(|(name, _)| name == column).map(|(_, value)| Cells::About(value)))
        };
        columns.iter().map(of).collect()
    }
}

/// The cells of a column of a page.
enum Cells<'a> {
    /// A column of the table.
    Own(&'a ColumnData),
    /// What tells the run apart, the same in every row.
    About(&'a serde_json::Value),
}

impl Cells<'_> {
    fn at(&self, row: usize) -> serde_json::Value {
        match self {
            Cells::Own(data) => cell(data, row),
            Cells::About(value) => (*value).clone(),
        }
    }
}

pub fn export(
    run: &Path,
    table: Option<&str>,
    format: Format,
    raw: bool,
    out: Option<&Path>,
    limit: Option<usize>,
) -> Result<Exit, Failure> {
    let pages = pages(run, table, limit.unwrap_or(usize::MAX))?;
    let out = opened(out)?;
    let written = match format {
        Format::Csv => write_csv(&pages, raw, out),
        Format::Jsonl => write_jsonl(&pages, out).map(|()| 0),
    };
    if let Ok(escaped @ 1..) = written {
        note(&format!(
            "{escaped} texts that a spreadsheet would take for formulas got a leading apostrophe; --raw leaves them \
             unchanged"
        ));
    }
    done(written.map(|_| ()))
}

fn opened(out: Option<&Path>) -> Result<Box<dyn Write>, Failure> {
    Ok(match out {
        Some(path) => {
            let file = File::create(path).map_err(|e| Failure::new(Exit::Disk, format!("{}: {e}", path.display())))?;
            Box::new(BufWriter::new(file))
        }
        None => Box::new(BufWriter::new(Standard)),
    })
}

fn done(written: io::Result<()>) -> Result<Exit, Failure> {
    match written {
        // The reader has seen enough (`| head`).
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(e) => Err(Failure::new(Exit::Disk, format!("the export cannot be written: {e}"))),
        Ok(()) => Ok(Exit::Done),
    }
}

/// Exports the ties of a society. Nodes are agents, with the columns of the table `agents`.
pub fn network(run: &Path, format: NetworkFormat, out: Option<&Path>) -> Result<Exit, Failure> {
    let tables = results::open(&RealDisk, run)?;
    let read = |table: &str| {
        tables.table(table, &[], usize::MAX).map_err(|error| match error {
            TableError::Rounds { .. } => {
                let why = why_not_there(run, table);
                let message =
                    format!("{why}; a network needs the ties of a society: `record: {{{table}: true}}` records them");
                Failure::new(Exit::Folder, message)
            }
            error => error.into(),
        })
    };
    let ties = read("ties")?;
    let ids = |name: &str| match ties.iter().find(|(other, _)| other == name) {
        Some((_, ColumnData::U32(ids))) => ids.iter().copied().flatten().collect(),
        _ => Vec::new(),
    };
    let (agent, hears): (Vec<u32>, Vec<u32>) = (ids("agent"), ids("hears"));
    let arcs = agent.into_iter().zip(hears).collect();
    let attributes = match format {
        NetworkFormat::Edges => Vec::new(),
        NetworkFormat::Graphml | NetworkFormat::Gexf => read("agents")?,
    };
    // The ids of nodes are agents.
    let nodes = attributes.first().map_or(0, |(_, column)| column.rows());
    let attributes = attributes.into_iter().filter(|(name, _)| name != "agent").collect();
    let network = Network::of_arcs(nodes, attributes, arcs);
    let out = opened(out)?;
    done(match format {
        NetworkFormat::Graphml => network.graphml(out),
        NetworkFormat::Gexf => network.gexf(out),
        NetworkFormat::Edges => network.edges(out),
    })
}

/// Reads a table of a run or of a sweep; of a comparison, and if only the runs of a sweep have it, that of every run.
fn pages(run: &Path, table: Option<&str>, limit: usize) -> Result<Vec<Page>, Failure> {
    let sweep = is_sweep(&RealDisk, run);
    let table = table.unwrap_or(match (sweep, is_comparison(&RealDisk, run)) {
        (true, _) => "summary",
        (_, true) => "items",
        (false, false) => "metrics",
    });
    let gone = |folder: &Path| Failure::new(Exit::Folder, why_not_there(folder, table));
    let of_the_sweep = sweep && (table == "summary" || own_tables(run).iter().any(|name| name == table));
    let members = if of_the_sweep { None } else { several(run, None)? };
    let Some(members) = members else {
        return Ok(vec![Page::alone(of_run(run, table, limit)?.ok_or_else(|| gone(run))?)]);
    };
    let (mut pages, mut left, mut missing) = (Vec::new(), limit, None);
    for member in members {
        match of_run(&member.folder, table, left)? {
            Some(data) => {
                let page = Page { about: member.about, data };
                left -= page.rows().min(left);
                pages.push(page);
            }
            // Of a run under way, or of a method without such a table.
            None => {
                let why = gone(&member.folder);
                note(&format!("left out: {}", why.message));
                missing.get_or_insert(why);
            }
        }
        if left == 0 {
            break;
        }
    }
    match missing {
        Some(failure) if pages.is_empty() => Err(failure),
        _ => Ok(pages),
    }
}

/// Reads a table of a run; `None` if it is not there, or not yet.
fn of_run(run: &Path, table: &str, limit: usize) -> Result<Option<Vec<(String, ColumnData)>>, Failure> {
    let tables = results::open(&RealDisk, run)?;
    match tables.table(table, &[], limit) {
        Err(TableError::Rounds { .. }) => Ok(None),
        read => Ok(Some(read?)),
    }
}

/// The names of the tables in a folder.
fn own_tables(run: &Path) -> Vec<String> {
    RealDisk.list(&run.join("tables")).unwrap_or_default()
}

/// Standard output.
struct Standard;

impl Write for Standard {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        print_data(data).map(|()| data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Explains why a table is missing.
fn why_not_there(run: &Path, table: &str) -> String {
    let have = own_tables(run);
    if have.iter().any(|name| name == table) {
        format!(
            "the table `{table}` cannot be read yet: rounds since the last save are in the journal alone; `polity resume {}` continues \
             the run, and its tables are closed when it saves and when it ends",
            run.display()
        )
    } else if table == "cascades" && have.iter().any(|name| name == "posts") {
        format!("{} has no table `cascades`; a cascade is the rows of `posts` with one `root`", run.display())
    } else {
        format!("{} has no table `{table}`; it has {}", run.display(), have.join(", "))
    }
}

/// The columns of all pages: what tells them apart, then their own in the order in which they first occur.
fn columns(pages: &[Page]) -> Vec<&str> {
    let mut columns: Vec<&str> = Vec::new();
    let about = pages.iter().flat_map(|page| page.about.iter().map(|(name, _)| *name));
    let own = pages.iter().flat_map(|page| page.data.iter().map(|(name, _)| name.as_str()));
    for name in about.chain(own) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    columns
}

/// Writes CSV. Unless `raw`, texts that a spreadsheet would take for formulas get a leading apostrophe; returns how many do.
fn write_csv(pages: &[Page], raw: bool, out: impl Write) -> io::Result<u64> {
    let mut escaped = 0;
    let mut field = |value: serde_json::Value| match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) if raw => text,
        serde_json::Value::String(text) => {
            let shown = inert(&text);
            escaped += u64::from(matches!(shown, Cow::Owned(_)));
            shown.into_owned()
        }
        other => other.to_string(),
    };
    let mut out = csv::Writer::from_writer(out);
    let columns = columns(pages);
    out.write_record(columns.iter().map(|name| field((*name).into())))?;
    for page in pages {
        let cells = page.cells(&columns);
        for row in 0..page.rows() {
            let values = cells.iter().map(|cells| cells.as_ref().map(|cells| cells.at(row)).unwrap_or_default());
            out.write_record(values.map(&mut field))?;
        }
    }
    out.flush()?;
    Ok(escaped)
}

fn write_jsonl(pages: &[Page], mut out: impl Write) -> io::Result<()> {
    let columns = columns(pages);
    for page in pages {
        let cells = page.cells(&columns);
        for row in 0..page.rows() {
            let own = columns.iter().zip(&cells);
            let own = own.filter_map(|(name, cells)| Some(((*name).to_owned(), cells.as_ref()?.at(row))));
            let object: serde_json::Map<String, serde_json::Value> = own.collect();
            writeln!(out, "{}", output::json(&object))?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_what_it_must_and_leaves_missing_cells_empty() {
        let data = vec![
            ("a,b".to_string(), ColumnData::Text(vec![Some("x\"y".into()), None])),
            ("n".to_string(), ColumnData::F64(vec![Some(1.5), None])),
        ];
        let (mut csv, mut jsonl) = (Vec::new(), Vec::new());
        let pages = [Page::alone(data)];
        write_csv(&pages, false, &mut csv).unwrap();
        write_jsonl(&pages, &mut jsonl).unwrap();
        assert_eq!(String::from_utf8(csv).unwrap(), "\"a,b\",n\n\"x\"\"y\",1.5\n,\n");
        assert_eq!(String::from_utf8(jsonl).unwrap().lines().last(), Some("{\"a,b\":null,\"n\":null}"));
    }

    #[test]
    fn tables_of_several_runs_are_stacked_with_all_their_columns() {
        let page = |seed: u64, columns: &[(&str, f64)]| Page {
            about: vec![("arm", "=a".into()), ("seed", seed.into())],
            data: columns.iter().map(|(name, x)| ((*name).to_owned(), ColumnData::F64(vec![Some(*x)]))).collect(),
        };
        let pages = [page(1, &[("x", 1.5), ("y", 2.5)]), page(2, &[("z", 3.5), ("x", 4.5)])];
        let (mut csv, mut jsonl) = (Vec::new(), Vec::new());
        assert_eq!(write_csv(&pages, false, &mut csv).unwrap(), 2);
        write_jsonl(&pages, &mut jsonl).unwrap();
        assert_eq!(String::from_utf8(csv).unwrap(), "arm,seed,x,y,z\n'=a,1,1.5,2.5,\n'=a,2,4.5,,3.5\n");
        let lines =
            "{\"arm\":\"=a\",\"seed\":1,\"x\":1.5,\"y\":2.5}\n{\"arm\":\"=a\",\"seed\":2,\"x\":4.5,\"z\":3.5}\n";
        assert_eq!(String::from_utf8(jsonl).unwrap(), lines);
    }

    #[test]
    fn formulas_are_texts_and_numbers_are_numbers() {
        let texts = ["=HYPERLINK(\"http://x\",\"y\")", "-1.5", "- a point", "@x", "plain"];
        let data = vec![
            ("=text".to_string(), ColumnData::Text(texts.map(|text| Some(text.to_string())).to_vec())),
            ("n".to_string(), ColumnData::F64(vec![Some(-1.5), Some(-2.0), None, None, Some(1e300)])),
        ];
        let pages = [Page::alone(data)];
        let written = |raw| {
            let mut out = Vec::new();
            let escaped = write_csv(&pages, raw, &mut out).unwrap();
            (String::from_utf8(out).unwrap(), escaped)
        };
        let inert =
            "'=text,n\n\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\",-1.5\n-1.5,-2.0\n'- a point,\n'@x,\nplain,1e+300\n";
        assert_eq!(written(false), (inert.to_string(), 4));
        assert_eq!(written(true), (inert.replace('\'', ""), 0));
        let mut jsonl = Vec::new();
        write_jsonl(&pages, &mut jsonl).unwrap();
        assert!(String::from_utf8(jsonl).unwrap().contains("{\"=text\":\"@x\""), "JSON is no spreadsheet");
    }
}
