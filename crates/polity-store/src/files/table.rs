//! Tables of people or of items, from CSV, TSV and JSON lines.

use super::data::{DataError, Format, MOST_COLUMNS, Source, read_bytes};
use polity_kernel::population::{Column, Table, TextBuilder};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;

/// Reads a table; the file extension gives the format.
///
/// `.csv`, `.tsv`: a header, then rows with the same number of cells; cells are trimmed. A column is numeric if every cell is a number. A
/// missing value among numbers (an empty cell, NaN, NA, null, an infinity) is an error rather than a guess. Any other column is text.
///
/// `.jsonl`: each line is an object with the keys of the first; values are numbers, texts, true and false (kept as words), or lists and objects (kept as JSON).
///
/// # Errors
/// Names file, line and column: missing file, a folder, more than [`super::MAX_DATA_BYTES`], not UTF-8, unknown extension, no rows,
/// missing or duplicate column names, ragged rows, missing values, nested values.
pub fn read_table(path: &Path) -> Result<Table, DataError> {
    table_from_bytes(path, &read_bytes(path)?)
}

/// Reads a table from the bytes of the file at `path`, as [`read_table`] does.
///
/// # Errors
/// As [`read_table`].
pub fn table_from_bytes(path: &Path, bytes: &[u8]) -> Result<Table, DataError> {
    read_cells(path, bytes, Cells::Typed)
}

/// Reads a table whose cells are all texts, as they stand; an empty cell is an empty text.
///
/// # Errors
/// As [`read_table`], except for missing values.
pub fn texts_from_bytes(path: &Path, bytes: &[u8]) -> Result<Table, DataError> {
    read_cells(path, bytes, Cells::Texts)
}

/// How cells are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cells {
    /// A column is numeric if every cell is a number.
    Typed,
    /// Every cell is a text.
    Texts,
}

fn read_cells(path: &Path, bytes: &[u8], cells: Cells) -> Result<Table, DataError> {
    let source = Source::of(path, bytes)?;
    let columns = match source.format()? {
        Format::Separated(separator) => separated(&source, separator, cells)?,
        Format::JsonLines => json_lines(&source, cells)?,
    };
    Table::new(columns).map_err(|error| source.error(None, error.column.as_deref(), error.message))
}

type Columns = Vec<(String, Column)>;

const FILL: &str = "remove the row or fill it";

/// What a cell of a separated file can be.
enum Cell {
    Number(f64),
    /// A placeholder for a missing value in a numeric column.
    Missing,
    Word,
}

fn cell(text: &str) -> Cell {
    const MARKS: [&str; 4] = ["", "na", "n/a", "null"];
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Cell::Number(value),
        Ok(_) => Cell::Missing,
        Err(_) if MARKS.iter().any(|mark| text.eq_ignore_ascii_case(mark)) => Cell::Missing,
        Err(_) => Cell::Word,
    }
}

/// What the first pass learns about a column.
struct Guess {
    words: bool,
    /// The first missing value, in case the column is numeric: its line and text.
    missing: Option<(Option<u64>, String)>,
}

/// A column being filled.
enum Filling {
    Numbers(Vec<f64>),
    Words(TextBuilder),
}

impl Filling {
    fn finish(self) -> Column {
        match self {
            Filling::Numbers(values) => Column::Number(values),
            Filling::Words(builder) => builder.finish(),
        }
    }
}

/// Makes two passes over the text, the first one for the types: a text column must keep `1.0` and `1` apart, which parsed numbers would
/// have lost.
fn separated(source: &Source<'_>, separator: u8, cells: Cells) -> Result<Columns, DataError> {
    let names = header(source, separator)?;
    if let [only] = names.as_slice()
        && let Some(other) = [';', '\t', '|', ','].into_iter().find(|other| only.contains(*other))
    {
        let wanted = if separator == b',' { "commas" } else { "tabs" };
        let words = format!(
            "its header is one column, `{only}`; its cells seem to be separated by {other:?}, and this file is read \
             with {wanted}: save it again with {wanted}, or rename a file with tabs to .tsv"
        );
        return Err(source.error(Some(1), None, words));
    }
    let broken = |error: csv::Error| source.error(None, None, format!("it cannot be parsed: {error}"));
    let unknown = |_| Guess { words: cells == Cells::Texts, missing: None };
    let mut guesses: Vec<Guess> = names.iter().map(unknown).collect();
    let mut rows = 0usize;
    let mut last = csv::StringRecord::new();
    for record in source.records(separator).skip(1) {
        let record = record.map_err(broken)?;
        if record.len() != names.len() {
            return Err(source.ragged(&record, names.len()));
        }
        for (text, guess) in record.iter().zip(&mut guesses).filter(|(_, guess)| !guess.words) {
            match cell(text) {
                Cell::Number(_) => {}
                Cell::Word => guess.words = true,
                Cell::Missing if guess.missing.is_none() => {
                    guess.missing = Some((source.line_of(&record), text.to_owned()))
                }
                Cell::Missing => {}
            }
        }
        rows += 1;
        last = record;
    }
    if rows == 0 {
        return Err(source.error(None, None, "there are no rows below the header"));
    }
    source.check_end(&last)?;
    for (name, guess) in names.iter().zip(&guesses).filter(|(_, guess)| !guess.words) {
        if let Some((line, text)) = &guess.missing {
            let what = if text.is_empty() { "the cell is empty".into() } else { format!("{text} is not a value") };
            return Err(source.error(*line, Some(name), format!("{what}; {FILL}")));
        }
    }
    let mut columns: Vec<Filling> = guesses
        .iter()
        .map(|guess| {
            if guess.words {
                Filling::Words(TextBuilder::default())
            } else {
                Filling::Numbers(Vec::with_capacity(rows))
            }
        })
        .collect();
    for record in source.records(separator).skip(1) {
        for (text, column) in record.map_err(broken)?.iter().zip(&mut columns) {
            match (column, cell(text)) {
                (Filling::Numbers(values), Cell::Number(value)) => values.push(value),
                (Filling::Numbers(_), _) => {}
                (Filling::Words(builder), _) => builder.push(text),
            }
        }
    }
    Ok(names.into_iter().zip(columns.into_iter().map(Filling::finish)).collect())
}

/// The column names.
fn header(source: &Source<'_>, separator: u8) -> Result<Vec<String>, DataError> {
    let Some(record) = source.records(separator).next() else {
        return Err(source.error(None, None, "the file is empty; a header and rows are needed"));
    };
    let record = record.map_err(|error| source.error(None, None, format!("it cannot be parsed: {error}")))?;
    let line = source.line_of(&record);
    if record.len() > MOST_COLUMNS {
        return Err(source.error(line, None, too_wide(record.len())));
    }
    if record.iter().all(|name| name.parse::<f64>().is_ok()) {
        return Err(source.error(line, None, "the names of the columns are all numbers; is the header missing?"));
    }
    let mut seen = HashSet::new();
    for (i, name) in record.iter().enumerate() {
        if name.is_empty() {
            return Err(source.error(line, None, format!("column {} has no name; name every column", i + 1)));
        }
        if !seen.insert(name) {
            return Err(source.error(line, Some(name), "the name is used twice; rename one of the two"));
        }
    }
    Ok(record.iter().map(str::to_owned).collect())
}

fn too_wide(columns: usize) -> String {
    format!("there are {columns} columns; a table can have at most {MOST_COLUMNS}: leave out those that are not needed")
}

/// A JSON object with its keys in order, including duplicates.
struct Object(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

fn json_lines(source: &Source<'_>, cells: Cells) -> Result<Columns, DataError> {
    let mut names: Vec<String> = Vec::new();
    let mut place: HashMap<String, usize> = HashMap::new();
    let mut columns: Vec<Filling> = Vec::new();
    let lines = source.text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty());
    for (row, (i, text)) in lines.enumerate() {
        let line = i as u64 + 1;
        let Object(entries) = serde_json::from_str(text).map_err(|error| {
            // The parser counts lines within its input, which is always one line.
            let what = error.to_string();
            let what = what.split(" at line 1 column ").next().unwrap_or_default();
            source.error(
                line,
                None,
                format!("{what} (character {}); each line must be one JSON object", error.column()),
            )
        })?;
        if entries.len() > MOST_COLUMNS {
            return Err(source.error(line, None, too_wide(entries.len())));
        }
        for (name, value) in entries {
            let at = match place.get(&name) {
                Some(at) => *at,
                None if row == 0 => {
                    place.insert(name.clone(), names.len());
                    columns.push(match value {
                        Value::Number(_) if cells == Cells::Typed => Filling::Numbers(Vec::new()),
                        _ => Filling::Words(TextBuilder::default()),
                    });
                    names.push(name.clone());
                    names.len() - 1
                }
                None => {
                    return Err(source.error(
                        line,
                        Some(&name),
                        "the first line has no such key; give all lines the same keys",
                    ));
                }
            };
            if length(&columns[at]) > row {
                return Err(source.error(line, Some(&name), "the key is given twice; rename one of the two"));
            }
            let value = match (cells, value) {
                (Cells::Texts, Value::Null) => Value::from(""),
                (Cells::Texts, Value::Number(number)) => Value::from(number.to_string()),
                (_, value) => value,
            };
            put(&mut columns[at], &value).map_err(|message| source.error(line, Some(&name), message))?;
        }
        if let Some(at) = columns.iter().position(|column| length(column) <= row) {
            return Err(source.error(line, Some(&names[at]), "the key is missing; give all lines the same keys"));
        }
    }
    if names.is_empty() {
        return Err(source.error(
            None,
            None,
            "there are no rows; each line must be one JSON object with at least one key",
        ));
    }
    Ok(names.into_iter().zip(columns.into_iter().map(Filling::finish)).collect())
}

fn length(column: &Filling) -> usize {
    match column {
        Filling::Numbers(values) => values.len(),
        Filling::Words(builder) => builder.len(),
    }
}

fn put(column: &mut Filling, value: &Value) -> Result<(), String> {
    let mixed =
        |what: &str, others: &str| Err(format!("{what} among {others}; write all values of a column in the same way"));
    match (column, value) {
        (_, Value::Null) => Err(format!("null is not a value; {FILL}")),
        // A list or an object stays together, as JSON.
        (Filling::Words(builder), Value::Array(_) | Value::Object(_)) => {
            builder.push(&value.to_string());
            Ok(())
        }
        (Filling::Numbers(values), Value::Number(number)) => match number.as_f64() {
            Some(value) if value.is_finite() => {
                values.push(value);
                Ok(())
            }
            _ => Err(format!("{number} is too large a number")),
        },
        (Filling::Numbers(_), _) => mixed("words", "numbers"),
        (Filling::Words(_), Value::Number(_)) => mixed("a number", "words"),
        (Filling::Words(builder), Value::String(text)) => {
            builder.push(text);
            Ok(())
        }
        (Filling::Words(builder), Value::Bool(yes)) => {
            builder.push(if *yes { "true" } else { "false" });
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(name: &str, bytes: &[u8]) -> Result<Table, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        read_table(&path).map_err(|error| {
            assert_eq!(error.path, path);
            error.to_string().strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
        })
    }

    #[test]
    fn cells_of_texts_stay_as_they_stand() {
        let texts = |name: &str, text: &str| {
            let table = texts_from_bytes(Path::new(name), text.as_bytes()).unwrap();
            table.columns().map(|(name, column)| (name.to_owned(), column.clone())).collect::<Columns>()
        };
        let expected = [words("a", &[0, 1], &["1.0", ""]), words("b", &[0, 1], &["NA", "x"])];
        assert_eq!(texts("t.csv", "a,b\n1.0,NA\n,x\n"), expected);
        assert_eq!(texts("t.jsonl", "{\"a\":\"1.0\",\"b\":\"NA\"}\n{\"a\":null,\"b\":\"x\"}\n"), expected);
        assert_eq!(texts("t.jsonl", "{\"a\":1.5}\n"), [words("a", &[0], &["1.5"])]);
    }

    fn columns(name: &str, text: &str) -> Columns {
        read(name, text.as_bytes()).unwrap().columns().map(|(name, column)| (name.to_owned(), column.clone())).collect()
    }

    fn numbers(name: &str, values: &[f64]) -> (String, Column) {
        (name.into(), Column::Number(values.to_vec()))
    }

    fn words(name: &str, codes: &[u32], words: &[&str]) -> (String, Column) {
        (name.into(), Column::Text { codes: codes.to_vec(), words: words.iter().map(|w| (*w).to_owned()).collect() })
    }

    #[test]
    fn separated_files() {
        let expected = vec![numbers("age", &[36.0, 20.5, -1e3]), words("party", &[0, 1, 0], &["green", "red, dark"])];
        assert_eq!(columns("a.csv", "age, party\n36,green\n20.5,\"red, dark\"\n-1e3, green\n"), expected);
        assert_eq!(columns("a.TSV", "\u{feff}age\tparty\r\n36\tgreen\r\n20.5\tred, dark\r\n\r\n-1e3\tgreen"), expected);
        // Words keep their spelling, and may be empty or look like a missing value.
        let expected =
            vec![words("code", &[0, 1, 2, 3], &["1", "1.0", "NA", "x"]), words("note", &[0, 1, 0, 0], &["", "y"])];
        assert_eq!(columns("a.csv", "code,note\n1,\n1.0,y\nNA,\nx,\n"), expected);
    }

    #[test]
    fn json_lines() {
        let expected = vec![
            words("q", &[0, 1], &["a\nb", "c"]),
            numbers("n", &[1.0, 2.5]),
            words("ok", &[0, 1], &["true", "false"]),
        ];
        let text = "{\"q\":\"a\\nb\",\"n\":1,\"ok\":true}\n\n{\"n\":2.5,\"q\":\"c\",\"ok\":false}\n";
        assert_eq!(columns("a.jsonl", text), expected);
    }

    #[test]
    fn real_respondents() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/anes96.tsv"));
        let table = read_table(path).unwrap();
        assert_eq!((table.rows(), table.columns().len()), (944, 10));
        let Some((name, Column::Number(ages))) = table.columns().nth(6) else { panic!("no column of ages") };
        assert_eq!((name, ages[0], ages[1]), ("age", 36.0, 20.0));
        assert!(table.columns().all(|(_, column)| matches!(column, Column::Number(_))));
    }

    #[test]
    fn bad_separated_files() {
        let cases: &[(&[u8], &str)] = &[
            (b"", "the file is empty; a header and rows are needed"),
            (b"\n\n", "the file is empty; a header and rows are needed"),
            (b"a,b\n", "there are no rows below the header"),
            (b"1,2\n3,4\n", "line 1: the names of the columns are all numbers; is the header missing?"),
            (b"a,,b\n1,2,3\n", "line 1: column 2 has no name; name every column"),
            (b"a,b,a\n1,2,3\n", "line 1, column a: the name is used twice; rename one of the two"),
            (b"a,b\n1,2\n3\n", "line 3: 1 cell where the first line has 2 cells"),
            (b"a,b\r\n1,2\r\n\r\n3,4,5\r\n", "line 4: 3 cells where the first line has 2 cells"),
            (b"a,b\r1,2\r3\r", "line 3: 1 cell where the first line has 2 cells"),
            (b"a,b\n1,2\n1,\"2\n3,4\n5,6\n", "line 3: a quote is not closed before the end of the file"),
            (b"a,b\n\"1,2\n3,4\n", "line 2: 1 cell where the first line has 2 cells; is a quote not closed?"),
            (b"age,b\n1,x\n2,x\nNaN,x\n", "line 4, column age: NaN is not a value; remove the row or fill it"),
            (b"age,b\n1,x\n-inf,x\n", "line 3, column age: -inf is not a value; remove the row or fill it"),
            (b"age,b\n1,x\n1e999,x\n", "line 3, column age: 1e999 is not a value; remove the row or fill it"),
            (b"age,b\nNA,x\n1,x\n", "line 2, column age: NA is not a value; remove the row or fill it"),
            (b"age,b\n1,x\n ,x\n", "line 3, column age: the cell is empty; remove the row or fill it"),
            (
                b"age,b\n1,x\n2,caf\xe9\n",
                "line 3: byte 15 (counted from 0), 0xe9, is not UTF-8; save the file as UTF-8",
            ),
            (b"\xef\xbb\xbfa\n\xe9\n", "line 2: byte 5 (counted from 0), 0xe9, is not UTF-8; save the file as UTF-8"),
            (b"\xff\xfea\0", "line 1: this is UTF-16; save the file as UTF-8"),
        ];
        for (bytes, message) in cases {
            assert_eq!(read("a.csv", bytes).unwrap_err(), *message, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn bad_json_lines() {
        let cases = [
            ("\n", "there are no rows; each line must be one JSON object with at least one key"),
            ("{}\n{}\n", "there are no rows; each line must be one JSON object with at least one key"),
            ("{\"a\":1}\n{\"a\":1,}\n", "line 2: trailing comma (character 8); each line must be one JSON object"),
            (
                "[1]\n",
                "line 1: invalid type: sequence, expected an object (character 0); each line must be one JSON object",
            ),
            (
                "{\"a\":1}\n\n{\"b\":1}\n",
                "line 3, column b: the first line has no such key; give all lines the same keys",
            ),
            ("{\"a\":1,\"b\":2}\n{\"b\":1}\n", "line 2, column a: the key is missing; give all lines the same keys"),
            ("{\"a\":1,\"a\":2}\n", "line 1, column a: the key is given twice; rename one of the two"),
            ("{\"a\":null}\n", "line 1, column a: null is not a value; remove the row or fill it"),
            (
                "{\"a\":1}\n{\"a\":\"x\"}\n",
                "line 2, column a: words among numbers; write all values of a column in the same way",
            ),
            (
                "{\"a\":\"x\"}\n{\"a\":1}\n",
                "line 2, column a: a number among words; write all values of a column in the same way",
            ),
            ("{\"a\":1e999}\n", "line 1: number out of range (character 10); each line must be one JSON object"),
            ("{\"\":1}\n", "a column has no name; name every column"),
        ];
        for (text, message) in cases {
            assert_eq!(read("a.jsonl", text.as_bytes()).unwrap_err(), message, "{text:?}");
        }
        let deep = format!("{{\"a\":{}", "[".repeat(1_000_000));
        assert!(read("a.jsonl", deep.as_bytes()).unwrap_err().starts_with("line 1: recursion limit exceeded"));
    }

    #[test]
    fn bad_paths() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| read_table(path).unwrap_err().message;
        assert_eq!(message(&folder.path().join("none.csv")), "there is no such file");
        assert_eq!(message(folder.path()), "this is a folder; name a file in it");
        assert!(read("a.txt", b"a\n1\n").unwrap_err().starts_with("the name must end in .csv, .tsv or .jsonl"));
        #[cfg(unix)]
        assert_eq!(message(Path::new("/dev/zero")), "this is not a regular file; copy its contents into one");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), end in 0..3usize) {
            let _ = read(["a.csv", "a.tsv", "a.jsonl"][end], &bytes);
        }

        /// Fragments of tables reach further than random bytes.
        #[test]
        fn no_pieces_panic(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "a", "b", ",", "\n", "\r", "\"", "1", "NaN", "\t", "{\"a\":", "}", "[", "null", " ", "é", "\u{feff}", "1e999",
            ]), 0..60),
            end in 0..3usize,
        ) {
            let _ = read(["a.csv", "a.tsv", "a.jsonl"][end], pieces.concat().as_bytes());
        }

        /// Round trip: what is written is read back.
        #[test]
        fn tables_come_back(rows in prop::collection::vec((-1e9f64..1e9, "[a-z ,\"\n]{0,6}x"), 1..20)) {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(["number", "word"]).unwrap();
            rows.iter().for_each(|(number, word)| writer.write_record([&number.to_string(), word.trim()]).unwrap());
            let table = read("a.csv", &writer.into_inner().unwrap()).unwrap();
            let population = polity_kernel::population::Population::from_table(table.into());
            prop_assert_eq!(population.len() as usize, rows.len());
            for (i, (number, word)) in rows.iter().enumerate() {
                prop_assert_eq!(population.cell(0, i as u32).to_string(), number.to_string());
                prop_assert_eq!(population.cell(1, i as u32).to_string(), word.trim());
            }
        }
    }
}
