//! `polity export`: a table as CSV or JSON lines.

use super::args::Format;
use super::output::{self, note, print_data};
use super::{Exit, Failure, failure};
use polity_driver::disk::{Disk, RealDisk};
use polity_driver::results;
use polity_driver::spreadsheet::inert;
use polity_driver::sweep::is_sweep;
use polity_driver::tables::{ColumnData, TableError};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
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

/// Fields of CSV lines.
struct Fields {
    /// Whether texts stay as they are, also those that a spreadsheet would take for formulas.
    raw: bool,
    /// Texts that were marked as none.
    marked: u64,
}

impl Fields {
    /// A field, quoted where it must be.
    fn field(&mut self, value: &serde_json::Value) -> String {
        match value {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(text) => {
                let text = if self.raw { Cow::Borrowed(text.as_str()) } else { inert(text) };
                self.marked += u64::from(matches!(text, Cow::Owned(_)));
                match text.contains([',', '"', '\n', '\r']) {
                    true => format!("\"{}\"", text.replace('"', "\"\"")),
                    false => text.into_owned(),
                }
            }
            other => other.to_string(),
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
    let table = table.unwrap_or(if is_sweep(&RealDisk, run) { "summary" } else { "metrics" });
    let tables = results::open(&RealDisk, run).map_err(|error| failure(&error, None))?;
    let data = tables.table(table, &[], limit.unwrap_or(usize::MAX)).map_err(|error| match error {
        TableError::Rounds { .. } => Failure::new(Exit::Folder, unread(run, table)),
        error => failure(&error.into(), None),
    })?;
    let mut fields = Fields { raw, marked: 0 };
    let written = match out {
        Some(path) => {
            let file = File::create(path).map_err(|e| Failure::new(Exit::Disk, format!("{}: {e}", path.display())))?;
            write(&data, format, &mut fields, BufWriter::new(file))
        }
        None => write(&data, format, &mut fields, BufWriter::new(Standard)),
    };
    if fields.marked > 0 {
        note(&format!(
            "{} texts that a spreadsheet would take for formulas have an apostrophe in front; --raw leaves them as they are",
            fields.marked
        ));
    }
    match written {
        // The reader has seen enough (`| head`).
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(e) => Err(Failure::new(Exit::Disk, format!("the export can not be written: {e}"))),
        Ok(()) => Ok(Exit::Done),
    }
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

/// Why a table is not there.
fn unread(run: &Path, table: &str) -> String {
    let have = RealDisk.list(&run.join("tables")).unwrap_or_default();
    if have.iter().any(|name| name == table) {
        format!("nothing of the table `{table}` can be read yet: parts of it close when the run saves and when it ends")
    } else {
        format!("{} has no table `{table}`; it has {}", run.display(), have.join(", "))
    }
}

fn write(
    data: &[(String, ColumnData)],
    format: Format,
    fields: &mut Fields,
    mut out: impl Write,
) -> std::io::Result<()> {
    let rows = data.first().map_or(0, |(_, column)| column.rows());
    if format == Format::Csv {
        let names: Vec<String> = data.iter().map(|(name, _)| fields.field(&name.as_str().into())).collect();
        writeln!(out, "{}", names.join(","))?;
    }
    for row in 0..rows {
        match format {
            Format::Csv => {
                let cells: Vec<String> = data.iter().map(|(_, column)| fields.field(&cell(column, row))).collect();
                writeln!(out, "{}", cells.join(","))?;
            }
            Format::Jsonl => {
                let object: serde_json::Map<String, serde_json::Value> =
                    data.iter().map(|(name, column)| (name.clone(), cell(column, row))).collect();
                writeln!(out, "{}", output::json(&object))?;
            }
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
        let written = |format| {
            let mut out = Vec::new();
            write(&data, format, &mut Fields { raw: false, marked: 0 }, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(Format::Csv), "\"a,b\",n\n\"x\"\"y\",1.5\n,\n");
        assert_eq!(written(Format::Jsonl).lines().last(), Some("{\"a,b\":null,\"n\":null}"));
    }

    #[test]
    fn formulas_are_texts_and_numbers_are_numbers() {
        let texts = ["=HYPERLINK(\"http://x\",\"y\")", "-1.5", "- a point", "@x", "plain"];
        let data = vec![
            ("=text".to_string(), ColumnData::Text(texts.map(|text| Some(text.to_string())).to_vec())),
            ("n".to_string(), ColumnData::F64(vec![Some(-1.5), Some(-2.0), None, None, Some(1e300)])),
        ];
        let written = |raw, format| {
            let (mut out, mut fields) = (Vec::new(), Fields { raw, marked: 0 });
            write(&data, format, &mut fields, &mut out).unwrap();
            (String::from_utf8(out).unwrap(), fields.marked)
        };
        let inert =
            "'=text,n\n\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\",-1.5\n-1.5,-2.0\n'- a point,\n'@x,\nplain,1e+300\n";
        assert_eq!(written(false, Format::Csv), (inert.to_string(), 4));
        assert_eq!(written(true, Format::Csv), (inert.replace('\'', ""), 0));
        assert!(written(false, Format::Jsonl).0.contains("{\"=text\":\"@x\""), "JSON is no spreadsheet");
    }
}
