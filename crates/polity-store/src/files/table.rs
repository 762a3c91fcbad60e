//! Tables of people or of items, from CSV, TSV and JSON lines.

use super::data::{DataError, Format, MOST_COLUMNS, Source, read_bytes};
use polity_kernel::EXACT;
use polity_kernel::population::{Column, Table, TableError, TextBuilder, is_missing};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;

/// Reads a table; the file extension gives the format.
///
/// `.csv`, `.tsv`: a header, then rows with the same number of cells; cells are trimmed. The header shows which separator a file uses: a
/// comma, a semicolon, a tab or a bar. A column is numeric if every cell is a number or missing (empty, NA, N/A, NaN, null), and some
/// cell is a number; missing numbers are NaN. Where cells are not separated by commas, a column may have decimal commas. Any other
/// column is text.
///
/// `.parquet`: columns of numbers, texts, switches or categories; a missing text is an empty one.
///
/// `.jsonl`: each line is an object with the keys of the first; values are numbers, texts, true and false (kept as words), or lists and objects (kept as JSON).
///
/// # Errors
/// Names file, line and column: missing file, a folder, more than [`super::MAX_DATA_BYTES`], not UTF-8, unknown extension, no rows,
/// missing or duplicate column names, ragged rows, infinite numbers, nested values.
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
/// As [`read_table`].
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
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet")) {
        let columns = super::columnar::parquet(path, bytes)?;
        let columns = if cells == Cells::Texts { columns.into_iter().map(in_words).collect() } else { columns };
        let fail = |error: TableError| DataError {
            path: path.into(),
            line: None,
            column: error.column.clone(),
            message: error.message,
        };
        return Table::new(columns).map_err(fail);
    }
    let source = Source::of(path, bytes)?;
    let (columns, lines) = match source.format()? {
        Format::Separated(separator) => separated(&source, separator, cells)?,
        Format::JsonLines => json_lines(&source, cells)?,
    };
    let table = Table::new(columns).map_err(|error| source.error(None, error.column.as_deref(), error.message))?;
    Ok(table.from_lines(lines))
}

type Columns = Vec<(String, Column)>;

/// Returns a column as texts; a missing number is an empty one.
fn in_words((name, column): (String, Column)) -> (String, Column) {
    let mut builder = TextBuilder::default();
    match &column {
        Column::Number(values) => {
            values
                .iter()
                .for_each(|value| builder.push(&if value.is_nan() { String::new() } else { value.to_string() }));
        }
        Column::Text { .. } => return (name, column),
    }
    (name, builder.finish())
}

/// What a cell of a separated file can be.
enum Cell {
    Number(f64),
    /// Not finite.
    Infinite,
    /// A number with a decimal comma.
    Comma(f64),
    /// A placeholder for a missing value in a numeric column.
    Missing,
    Word,
}

/// `commas`: whether a number may have a decimal comma.
fn cell(text: &str, commas: bool) -> Cell {
    match text.parse::<f64>() {
        // An id of so many digits would become another number.
        Ok(value)
            if value.abs() >= EXACT && text.trim_start_matches(['+', '-']).bytes().all(|b| b.is_ascii_digit()) =>
        {
            Cell::Word
        }
        Ok(value) if value.is_finite() => Cell::Number(value),
        Ok(value) if value.is_nan() => Cell::Missing,
        Ok(_) => Cell::Infinite,
        Err(_) if is_missing(text) => Cell::Missing,
        Err(_) => match text.split_once(',').filter(|(whole, _)| commas && !whole.contains('.')) {
            Some((whole, part)) if part.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("{whole}.{part}").parse().map_or(Cell::Word, Cell::Comma)
            }
            _ => Cell::Word,
        },
    }
}

/// What the first pass learns about a column.
#[derive(Default)]
struct Guess {
    words: bool,
    numbers: bool,
    /// Whether a number has a decimal point, or a decimal comma.
    points: bool,
    commas: bool,
    /// The first number that is not finite, in case the column is numeric: its line and text.
    infinite: Option<(Option<u64>, String)>,
}

impl Guess {
    /// Whether the column is numeric. With both decimal points and commas, one of them means something else.
    fn numeric(&self) -> bool {
        !self.words && self.numbers && !(self.points && self.commas)
    }
}

/// A column being filled.
enum Filling {
    /// A number of missing values, of a type that is not known yet.
    Unknown(usize),
    Numbers(Vec<f64>),
    Words(TextBuilder),
}

impl Filling {
    fn finish(self) -> Column {
        match self {
            Filling::Numbers(values) => Column::Number(values),
            Filling::Words(builder) => builder.finish(),
            Filling::Unknown(rows) => {
                let mut builder = TextBuilder::default();
                (0..rows).for_each(|_| builder.push(""));
                builder.finish()
            }
        }
    }
}

/// Returns the separator that a header uses: the usual one of its format, unless that makes a single column of it.
fn separator_of(source: &Source<'_>, usual: u8) -> u8 {
    let Some(Ok(header)) = source.records(usual).next() else { return usual };
    let only = if header.len() == 1 { header.get(0).unwrap_or_default() } else { "" };
    [b';', b'\t', b'|', b','].into_iter().find(|other| only.as_bytes().contains(other)).unwrap_or(usual)
}

/// Makes two passes over the text, the first one for the types: a text column must keep `1.0` and `1` apart, which parsed numbers would
/// have lost.
fn separated(source: &Source<'_>, usual: u8, cells: Cells) -> Result<(Columns, Vec<u32>), DataError> {
    let separator = separator_of(source, usual);
    let commas = separator != b',';
    let names = header(source, separator)?;
    let broken = |error: csv::Error| source.error(None, None, format!("it cannot be parsed: {error}"));
    let mut guesses: Vec<Guess> = names.iter().map(|_| Guess::default()).collect();
    guesses.iter_mut().for_each(|guess| guess.words = cells == Cells::Texts);
    let mut rows = 0usize;
    let mut last = csv::StringRecord::new();
    for record in source.records(separator).skip(1) {
        let record = record.map_err(broken)?;
        if record.len() != names.len() {
            return Err(source.ragged(&record, names.len()));
        }
        for (text, guess) in record.iter().zip(&mut guesses).filter(|(_, guess)| !guess.words) {
            match cell(text, commas) {
                Cell::Number(_) => {
                    guess.numbers = true;
                    guess.points |= text.contains('.');
                }
                Cell::Comma(_) => (guess.numbers, guess.commas) = (true, true),
                Cell::Word => guess.words = true,
                Cell::Missing => {}
                Cell::Infinite => {
                    guess.infinite.get_or_insert_with(|| (source.line_of(&record), text.to_owned()));
                }
            }
        }
        rows += 1;
        last = record;
    }
    if rows == 0 {
        return Err(source.error(None, None, "there are no rows below the header"));
    }
    source.check_end(&last)?;
    for (name, guess) in names.iter().zip(&guesses).filter(|(_, guess)| guess.numeric()) {
        if let Some((line, text)) = &guess.infinite {
            return Err(source.error(
                *line,
                Some(name),
                format!("{text} is not a finite number; correct it, or leave it empty"),
            ));
        }
    }
    let filling = |guess: &Guess| match guess.numeric() {
        true => Filling::Numbers(Vec::with_capacity(rows)),
        false => Filling::Words(TextBuilder::default()),
    };
    let mut columns: Vec<Filling> = guesses.iter().map(filling).collect();
    let mut lines = source.lines();
    let mut line_of_row = Vec::with_capacity(rows);
    for record in source.records(separator).skip(1) {
        let record = record.map_err(broken)?;
        line_of_row.push(lines.of(&record));
        for (text, column) in record.iter().zip(&mut columns) {
            match column {
                Filling::Numbers(values) => values.push(match cell(text, commas) {
                    Cell::Number(value) | Cell::Comma(value) => value,
                    Cell::Infinite | Cell::Missing | Cell::Word => f64::NAN,
                }),
                Filling::Words(builder) => builder.push(text),
                Filling::Unknown(rows) => *rows += 1,
            }
        }
    }
    Ok((names.into_iter().zip(columns.into_iter().map(Filling::finish)).collect(), line_of_row))
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

fn json_lines(source: &Source<'_>, cells: Cells) -> Result<(Columns, Vec<u32>), DataError> {
    let mut names: Vec<String> = Vec::new();
    let mut place: HashMap<String, usize> = HashMap::new();
    let mut columns: Vec<Filling> = Vec::new();
    let mut line_of_row = Vec::new();
    let lines = source.text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty());
    for (row, (i, text)) in lines.enumerate() {
        let line = i as u64 + 1;
        line_of_row.push(line as u32);
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
                    columns.push(match cells {
                        Cells::Typed => Filling::Unknown(0),
                        Cells::Texts => Filling::Words(TextBuilder::default()),
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
    Ok((names.into_iter().zip(columns.into_iter().map(Filling::finish)).collect(), line_of_row))
}

fn length(column: &Filling) -> usize {
    match column {
        Filling::Unknown(rows) => *rows,
        Filling::Numbers(values) => values.len(),
        Filling::Words(builder) => builder.len(),
    }
}

fn put(column: &mut Filling, value: &Value) -> Result<(), String> {
    let mixed =
        |what: &str, others: &str| Err(format!("{what} among {others}; write all values of a column in the same way"));
    if let Filling::Unknown(rows) = *column
        && !value.is_null()
    {
        *column = match value {
            Value::Number(_) => Filling::Numbers(vec![f64::NAN; rows]),
            _ => {
                let mut builder = TextBuilder::default();
                (0..rows).for_each(|_| builder.push(""));
                Filling::Words(builder)
            }
        };
    }
    match (column, value) {
        (Filling::Unknown(rows), _) => {
            *rows += 1;
            Ok(())
        }
        // A missing value.
        (Filling::Numbers(values), Value::Null) => {
            values.push(f64::NAN);
            Ok(())
        }
        (Filling::Words(builder), Value::Null) => {
            builder.push("");
            Ok(())
        }
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

    /// The texts of all cells: NaN has no equal.
    fn cells(name: &str, text: &str) -> Vec<Vec<String>> {
        let table = read(name, text.as_bytes()).unwrap();
        let column = |column: &Column| (0..column.len()).map(|row| column.cell(row).to_string()).collect();
        table.columns().map(|(_, data)| column(data)).collect()
    }

    #[test]
    fn missing_numbers_are_marked_and_words_stay() {
        let expected = [["36", "missing", "missing", "7"], ["x", "", "NA", "y"]];
        assert_eq!(cells("a.csv", "age,b\n36,x\n,\nNA,NA\n7,y\n"), expected);
        assert_eq!(cells("a.csv", "age,b\n36,x\nNaN,\nnull,NA\n7,y\n"), expected);
        let text = "{\"age\":36,\"b\":\"x\"}\n{\"age\":null,\"b\":null}\n{\"age\":null,\"b\":\"NA\"}\n{\"age\":7,\"b\":\"y\"}\n";
        assert_eq!(cells("a.jsonl", text), expected);
        assert_eq!(cells("a.jsonl", "{\"a\":null,\"b\":null}\n{\"a\":1,\"b\":\"x\"}\n"), [["missing", "1"], ["", "x"]]);
        // Long ids stay as they are; large numbers with an exponent are measurements.
        assert_eq!(
            cells("a.csv", "a,b\n9007199254740993,1\n2,9e15\n"),
            [["9007199254740993", "2"], ["1", "9000000000000000"]]
        );
        assert_eq!(cells("a.csv", "a\n1e300\n"), [[1e300.to_string()]]);
        // Nothing says that a column of gaps holds numbers.
        assert_eq!(cells("a.csv", "a,b\n,1\nNA,2\n"), [["", "NA"], ["1", "2"]]);
        assert_eq!(cells("a.jsonl", "{\"a\":null}\n"), [[""]]);
    }

    #[test]
    fn separators_and_decimal_commas_are_recognised() {
        let expected = [["0.5", "-1.25", "3"], ["a", "b,c", "d"]];
        assert_eq!(cells("a.csv", "x;y\n0,5;a\n-1,25;b,c\n3;d\n"), expected);
        assert_eq!(cells("a.csv", "x\ty\n0,5\ta\n-1,25\tb,c\n3\td\n"), expected);
        assert_eq!(cells("a.tsv", "x|y\n0.5|a\n-1.25|b,c\n3|d\n"), expected);
        // With points as well, commas mean something else; and between commas there are no decimal commas.
        assert_eq!(cells("a.csv", "x;y\n0,5;a\n1.5;b\n"), [["0,5", "1.5"], ["a", "b"]]);
        assert_eq!(cells("a.csv", "x,y\n\"0,5\",a\n\"1,5\",b\n"), [["0,5", "1,5"], ["a", "b"]]);
        assert_eq!(cells("a.csv", "x;y\n1.000,5;a\n2;b\n"), [["1.000,5", "2"], ["a", "b"]]);
    }

    /// A file of our own writer is read back; files of others are read in `scripts/python-tests.sh`.
    #[test]
    fn parquet_files_are_read() {
        use arrow_array::{BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
        let columns: Vec<(&str, arrow_array::ArrayRef)> = vec![
            ("id", std::sync::Arc::new(Int64Array::from(vec![7, 8, 9]))),
            ("income", std::sync::Arc::new(Float64Array::from(vec![Some(1.5), None, Some(2.0)]))),
            ("party", std::sync::Arc::new(StringArray::from(vec![Some("red"), Some("green"), None]))),
            ("works", std::sync::Arc::new(BooleanArray::from(vec![true, false, true]))),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, data)| (name, data, true)))
                .unwrap();
        let mut bytes = Vec::new();
        let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let table = read("a.parquet", &bytes).unwrap();
        let names: Vec<&str> = table.columns().map(|(name, _)| name).collect();
        assert_eq!(names, ["id", "income", "party", "works"]);
        let cells = |column: usize| {
            let (_, data) = table.columns().nth(column).unwrap();
            (0..3).map(|row| data.cell(row).to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            (cells(0), cells(1)),
            (vec!["7".into(), "8".into(), "9".into()], vec!["1.5".into(), "missing".into(), "2".into()])
        );
        assert_eq!(
            (cells(2), cells(3)),
            (vec!["red".into(), "green".into(), String::new()], vec!["true".into(), "false".into(), "true".into()])
        );
        assert!(read("a.parquet", b"PAR1 and nothing else PAR1").unwrap_err().contains("cannot be read as Parquet"));
        bytes.truncate(bytes.len() / 2);
        assert!(read("a.parquet", &bytes).is_err());
    }

    #[test]
    fn rows_know_their_lines() {
        let lines = |name: &str, text: &str| {
            let table = read(name, text.as_bytes()).unwrap();
            (0..table.rows()).map(|row| table.place(row)).collect::<Vec<_>>()
        };
        assert_eq!(lines("a.csv", "a,b\n1,x\r\n\n2,\"y\nz\"\r3,x"), ["line 2", "line 4", "line 6"]);
        assert_eq!(lines("a.jsonl", "{\"a\":1}\n\n{\"a\":2}\n"), ["line 1", "line 3"]);
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
            (b"age,b\n1,x\n-inf,x\n", "line 3, column age: -inf is not a finite number; correct it, or leave it empty"),
            (
                b"age,b\n1,x\n1e999,x\n",
                "line 3, column age: 1e999 is not a finite number; correct it, or leave it empty",
            ),
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
        assert!(
            read("a.txt", b"a\n1\n").unwrap_err().starts_with("the name must end in .csv, .tsv, .jsonl or .parquet")
        );
        #[cfg(unix)]
        assert_eq!(message(Path::new("/dev/zero")), "this is not a regular file; copy its contents into one");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), end in 0..4usize) {
            let _ = read(["a.csv", "a.tsv", "a.jsonl", "a.parquet"][end], &bytes);
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
