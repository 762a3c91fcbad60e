use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Array, Float64Array, StringArray, UInt32Array};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use tempfile::TempDir;

use crate::disk::{Disk, DiskFile, EntryKind, RealDisk};
use polity_kernel::digest::FileHash;

use super::*;

fn real() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

fn names(folder: &Path) -> Vec<String> {
    RealDisk.list(folder).unwrap()
}

fn words(words: &[&str]) -> Kind {
    Kind::Category(words.iter().map(|word| word.to_string()).collect())
}

/// A table with every kind of column, both complete and with missing values.
fn every_kind() -> TableSpec {
    let kinds = [
        ("u32", Kind::U32),
        ("u64", Kind::U64),
        ("f64", Kind::F64),
        ("bool", Kind::Bool),
        ("text", Kind::Text),
        ("word", words(&["nie", "häufig", "常に", "unused"])),
    ];
    let columns = kinds.into_iter().flat_map(|(name, kind)| {
        let full = ColumnSpec::new(name, kind.clone(), format!("A {name}."));
        [full, ColumnSpec::new(format!("{name}.maybe"), kind, "In seconds; “maybe”.").nullable().volatile()]
    });
    TableSpec {
        name: "every_kind".into(),
        doc: "Jede Zeile.".into(),
        columns: columns.collect(),
        volatile: false,
        only_with_rows: false,
    }
}

const TEXTS: [&str; 5] = ["", "plain", "日本語のテキスト", "🙂 with \0 and \"quotes\"\n", "e\u{301}"];

fn some<T>(i: usize, value: T) -> Option<T> {
    (!i.is_multiple_of(3)).then_some(value)
}

/// Rows of [`every_kind`] unique to each seed, with the edge cases of every kind.
fn rows(seed: usize, rows: usize) -> Batch {
    let mix = move |i: usize| (i + 1 + seed * 1_000_003).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let n = move || 0..rows;
    let u64s = move |i: usize| if i.is_multiple_of(7) { u64::MAX } else { mix(i) as u64 };
    let u32s = move |i: usize| (u64s(i) >> 32) as u32;
    let f64s = move |i: usize| [0.0, -0.0, f64::INFINITY, f64::MIN_POSITIVE, mix(i) as f64 / 3.0][mix(i) % 5];
    let text = move |i: usize| format!("{}{}", TEXTS[mix(i) % 5], if i.is_multiple_of(2) { "" } else { "…" });
    let columns = vec![
        Column::U32(n().map(u32s).collect()),
        Column::MaybeU32(n().map(|i| some(i, u32s(i))).collect()),
        Column::U64(n().map(u64s).collect()),
        Column::MaybeU64(n().map(|i| some(i, u64s(i))).collect()),
        Column::F64(n().map(f64s).collect()),
        Column::MaybeF64(n().map(|i| some(i, f64s(i))).collect()),
        Column::Bool(n().map(|i| mix(i).is_multiple_of(2)).collect()),
        Column::MaybeBool(n().map(|i| some(i, mix(i).is_multiple_of(2))).collect()),
        Column::Text(n().map(text).collect()),
        Column::MaybeText(n().map(|i| some(i, text(i))).collect()),
        Column::Code(n().map(|i| mix(i) as u16 % 3).collect()),
        Column::MaybeCode(n().map(|i| some(i, mix(i) as u16 % 3)).collect()),
    ];
    Batch { rows, columns }
}

/// Rows of [`every_kind`] with one repeated value per column.
fn same(rows: usize, missing: bool) -> Batch {
    let values = [
        Value::U32(u32::MAX),
        Value::U64(1 << 63),
        Value::F64(0.1),
        Value::Bool(true),
        Value::Text("常".into()),
        Value::Code(1),
    ];
    let columns = values
        .into_iter()
        .flat_map(|v| [Column::Same(v.clone()), Column::Same(if missing { Value::Missing } else { v })]);
    Batch { rows, columns: columns.collect() }
}

/// The batch in the form in which it is read back.
fn append(data: &mut [(String, ColumnData)], batch: &Batch) {
    for ((_, data), column) in data.iter_mut().zip(&batch.columns) {
        let repeat = batch.rows;
        match (data, column.clone()) {
            (ColumnData::U32(to), Column::U32(v)) => to.extend(v.into_iter().map(Some)),
            (ColumnData::U32(to), Column::Range(v)) => to.extend(v.map(Some)),
            (ColumnData::U32(to), Column::MaybeU32(v)) => to.extend(v),
            (ColumnData::U32(to), Column::Same(Value::U32(v))) => to.extend(vec![Some(v); repeat]),
            (ColumnData::U64(to), Column::U64(v)) => to.extend(v.into_iter().map(Some)),
            (ColumnData::U64(to), Column::MaybeU64(v)) => to.extend(v),
            (ColumnData::U64(to), Column::Same(Value::U64(v))) => to.extend(vec![Some(v); repeat]),
            (ColumnData::F64(to), Column::F64(v)) => to.extend(v.into_iter().map(Some)),
            (ColumnData::F64(to), Column::MaybeF64(v)) => to.extend(v),
            (ColumnData::F64(to), Column::Same(Value::F64(v))) => to.extend(vec![Some(v); repeat]),
            (ColumnData::Bool(to), Column::Bool(v)) => to.extend(v.into_iter().map(Some)),
            (ColumnData::Bool(to), Column::MaybeBool(v)) => to.extend(v),
            (ColumnData::Bool(to), Column::Same(Value::Bool(v))) => to.extend(vec![Some(v); repeat]),
            (ColumnData::Text(to), Column::Text(v)) => to.extend(v.into_iter().map(Some)),
            (ColumnData::Text(to), Column::MaybeText(v)) => to.extend(v),
            (ColumnData::Text(to), Column::Same(Value::Text(v))) => to.extend(vec![Some(v); repeat]),
            (ColumnData::Category { codes, .. }, Column::Code(v)) => codes.extend(v.into_iter().map(Some)),
            (ColumnData::Category { codes, .. }, Column::MaybeCode(v)) => codes.extend(v),
            (ColumnData::Category { codes, .. }, Column::Same(Value::Code(v))) => codes.extend(vec![Some(v); repeat]),
            (ColumnData::U32(to), Column::Same(Value::Missing)) => to.extend(vec![None; repeat]),
            (ColumnData::U64(to), Column::Same(Value::Missing)) => to.extend(vec![None; repeat]),
            (ColumnData::F64(to), Column::Same(Value::Missing)) => to.extend(vec![None; repeat]),
            (ColumnData::Bool(to), Column::Same(Value::Missing)) => to.extend(vec![None; repeat]),
            (ColumnData::Text(to), Column::Same(Value::Missing)) => to.extend(vec![None; repeat]),
            (ColumnData::Category { codes, .. }, Column::Same(Value::Missing)) => codes.extend(vec![None; repeat]),
            (data, column) => panic!("{column:?} is no {data:?}"),
        }
    }
}

fn expected(spec: &TableSpec, batches: &[Batch]) -> Vec<(String, ColumnData)> {
    let mut data: Vec<_> =
        spec.columns.iter().map(|column| (column.name.clone(), ColumnData::empty(&column.kind))).collect();
    batches.iter().for_each(|batch| append(&mut data, batch));
    data
}

/// Writes the batches of each inner list as one part of one round; returns the records.
fn write(dir: &Path, spec: &TableSpec, parts: &[Vec<Batch>]) -> Parts {
    let mut tables = Tables::open(real(), dir, vec![spec.clone()]).unwrap();
    let mut recorded = Parts::new();
    for (part, batches) in (0..).zip(parts) {
        batches.iter().for_each(|batch| tables.push(0, batch.clone()).unwrap());
        close(&mut tables, part, part, &mut recorded);
    }
    tables.finish().unwrap();
    recorded
}

/// Closes the parts of these rounds, records them and names them.
fn close(tables: &mut Tables, first: u32, last: u32, recorded: &mut Parts) {
    for part in tables.close_parts(first, last).unwrap() {
        recorded.entry(part.table.clone()).or_default().push(part);
    }
    tables.publish(true).unwrap();
}

fn reader(dir: &Path, recorded: &Parts) -> Reader<'static> {
    Reader::of_parts(&RealDisk, dir, recorded.clone())
}

/// Reads a whole table by its recorded parts.
fn read_all(dir: &Path, table: &str, recorded: &Parts) -> Vec<(String, ColumnData)> {
    reader(dir, recorded).table(table, &[], usize::MAX).unwrap()
}

#[test]
fn everything_written_is_read_back() {
    let dir = TempDir::new().unwrap();
    let spec = every_kind();
    let parts = [
        vec![rows(1, 1000), rows(2, 0), same(500, false), rows(3, 1), same(40, true)],
        vec![],
        vec![same(100, true)],
        vec![same(9, false), rows(4, 9000)],
        // Nothing repeats and nothing is missing: the nullable columns are full.
        vec![Batch {
            rows: 5000,
            columns: rows(5, 5000).columns.chunks(2).flat_map(|pair| [pair[0].clone(), pair[0].clone()]).collect(),
        }],
    ];
    let recorded = write(dir.path(), &spec, &parts);
    let read = read_all(dir.path(), "every_kind", &recorded);
    let rows: Vec<u64> = recorded["every_kind"].iter().map(|part| part.rows).collect();
    assert_eq!(rows, [1541, 100, 9009, 5000]);
    assert_eq!(read, expected(&spec, &parts.concat()));
    // -0.0 == 0.0, so compare the signs separately.
    let signs = |data: &ColumnData| match data {
        ColumnData::F64(v) => v.iter().map(|v| v.map(f64::is_sign_negative)).collect::<Vec<_>>(),
        _ => panic!("doubles"),
    };
    assert_eq!(signs(&read[4].1), signs(&expected(&spec, &parts.concat())[4].1));
    assert_eq!(
        names(&dir.path().join("every_kind")),
        [
            "part-000000-000000.parquet",
            "part-000002-000002.parquet",
            "part-000003-000003.parquet",
            "part-000004-000004.parquet"
        ]
    );
}

#[test]
fn not_a_number_survives() {
    let dir = TempDir::new().unwrap();
    let spec = TableSpec { columns: vec![ColumnSpec::new("x", Kind::F64, "")], ..every_kind() };
    let recorded =
        write(dir.path(), &spec, &[vec![Batch { rows: 2, columns: vec![Column::F64(vec![f64::NAN, 1.0])] }]]);
    match &read_all(dir.path(), "every_kind", &recorded)[0].1 {
        ColumnData::F64(v) => assert!(v[0].unwrap().is_nan() && v[1] == Some(1.0)),
        other => panic!("{other:?}"),
    }
}

/// The acts of a society, as the driver passes them.
fn acts() -> TableSpec {
    let columns = vec![
        ColumnSpec::new("agent", Kind::U32, "Who."),
        ColumnSpec::new("round", Kind::U32, "When."),
        ColumnSpec::new("value", Kind::F64, "How much."),
        ColumnSpec::new("kind", words(&["none", "post", "like"]), "What."),
    ];
    TableSpec { name: "acts".into(), doc: "An act.".into(), columns, volatile: false, only_with_rows: false }
}

fn act(round: u32, agents: std::ops::Range<u32>) -> Batch {
    let values = agents.clone().map(|i| f64::from(i ^ round).sqrt()).collect();
    let kinds = agents.clone().map(|i| ((i / 5 + round) % 2) as u16 * 2).collect();
    let columns =
        vec![Column::Range(agents.clone()), Column::Same(Value::U32(round)), Column::F64(values), Column::Code(kinds)];
    Batch { rows: agents.len(), columns }
}

#[test]
fn row_groups_are_cut_across_batches() {
    let dir = TempDir::new().unwrap();
    let columns = [0, 3].map(|index| acts().columns[index].clone()).to_vec();
    let spec = TableSpec { columns, ..acts() };
    let batches = [(0, 0..2_600_000), (1, 7..100), (2, 0..900_000), (3, 0..900_000)].map(|(round, agents)| {
        let mut batch = act(round, agents);
        batch.columns.drain(1..3);
        batch
    });
    let recorded = write(dir.path(), &spec, &[batches.to_vec()]);
    let read = read_all(dir.path(), "acts", &recorded);
    assert!(read == expected(&spec, &batches), "a value differs");
    let file = fs::File::open(dir.path().join("acts/part-000000-000000.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [1_000_000, 1_000_000, 1_000_000, 1_400_093]);
}

/// Selected rounds are the rows that a filter of the whole table gives, across parts and row groups.
#[test]
fn selected_rounds_are_those_of_the_whole_table() {
    let dir = TempDir::new().unwrap();
    let of = |rounds: std::ops::Range<u32>| rounds.map(|round| act(round, 0..700 + round)).collect::<Vec<_>>();
    let mut tables = Tables::open(real(), dir.path(), vec![acts()]).unwrap();
    let mut recorded = Parts::new();
    for rounds in [0..3, 3..4, 4..9] {
        of(rounds.clone()).into_iter().for_each(|batch| tables.push(0, batch).unwrap());
        close(&mut tables, rounds.start, rounds.end - 1, &mut recorded);
    }
    tables.finish().unwrap();
    let reader = reader(dir.path(), &recorded);
    let values = |selected: &Selected, column: usize| -> Vec<f64> {
        let each = selected.batches.iter().flat_map(|batch| {
            let values = batch.column(column).as_any().downcast_ref::<Float64Array>().unwrap();
            values.values().to_vec()
        });
        each.collect()
    };
    for rounds in [0..=0, 2..=3, 3..=3, 5..=7, 0..=8, 8..=u32::MAX, 9..=20] {
        let selected = reader.select("acts", &["value", "round"], Some(rounds.clone())).unwrap();
        let names: Vec<&str> = selected.spec.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["round", "value"], "in the table's order");
        let expected: Vec<f64> = (0..9u32)
            .filter(|round| rounds.contains(round))
            .flat_map(|round| (0..700 + round).map(move |i| f64::from(i ^ round).sqrt()))
            .collect();
        assert!(values(&selected, 1) == expected, "{rounds:?}");
    }
    assert_eq!(reader.describe("acts").unwrap().1, (0..9).map(|round| 700 + round).sum::<u64>());
    assert!(matches!(reader.select("acts", &["nothing"], None), Err(TableError::Spec { .. })));
}

#[test]
fn a_part_says_what_it_is_to_any_reader() {
    let dir = TempDir::new().unwrap();
    let spec = every_kind();
    write(dir.path(), &spec, &[vec![rows(1, 100), same(5, true)]]);
    let open = || fs::File::open(dir.path().join("every_kind/part-000000-000000.parquet")).unwrap();

    let reader = SerializedFileReader::new(open()).unwrap();
    let entries = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let json = entries.iter().find(|entry| entry.key == METADATA_KEY).unwrap().value.as_ref().unwrap();
    assert_eq!(serde_json::from_str::<TableSpec>(json).unwrap(), spec);

    let group = reader.metadata().row_group(0);
    match group.column(0).statistics().unwrap() {
        Statistics::Int32(s) => {
            assert_eq!(s.max_opt().map(|max| max.cast_unsigned()), Some(u32::MAX), "compared as unsigned")
        }
        other => panic!("{other:?}"),
    }
    match group.column(11).statistics().unwrap() {
        Statistics::ByteArray(s) => {
            assert_eq!(s.min_opt().unwrap().as_utf8().unwrap(), "häufig");
            assert_eq!(s.max_opt().unwrap().as_utf8().unwrap(), "常に");
            assert_eq!(s.null_count_opt(), Some(34 + 5));
        }
        other => panic!("{other:?}"),
    }

    // Without our hints: unsigned numbers, and words as plain text.
    let batch = ParquetRecordBatchReaderBuilder::try_new(open()).unwrap().build().unwrap().next().unwrap().unwrap();
    let first = batch.column(0).as_any().downcast_ref::<UInt32Array>().unwrap();
    assert_eq!(first.value(0), u32::MAX);
    let text = batch.column(10).as_any().downcast_ref::<StringArray>().unwrap();
    assert!(text.iter().flatten().all(|word| ["nie", "häufig", "常に"].contains(&word)));
    assert_eq!(text.null_count(), 0);
}

#[test]
fn limits_and_columns_are_kept_to() {
    let dir = TempDir::new().unwrap();
    let recorded = write(dir.path(), &acts(), &[vec![act(0, 0..10)], vec![act(1, 0..10)]]);
    let reader = reader(dir.path(), &recorded);
    let read = |columns: &[&str], limit| reader.table("acts", columns, limit);
    let picked = read(&["round", "agent"], 13).unwrap();
    let agents: Vec<Option<u32>> = (0..10).chain(0..3).map(Some).collect();
    let rounds: Vec<Option<u32>> = [vec![Some(0); 10], vec![Some(1); 3]].concat();
    assert_eq!(
        picked,
        [("agent".to_string(), ColumnData::U32(agents)), ("round".to_string(), ColumnData::U32(rounds))]
    );
    assert_eq!(read(&[], 0).unwrap()[3].1.rows(), 0);
    assert!(read(&["kinds"], 1).unwrap_err().to_string().contains("agent, round, value, kind"));
    for table in ["messages", "../acts", "/etc", ""] {
        let missing = reader.table(table, &[], 1).unwrap_err();
        assert!(matches!(missing, TableError::Rounds { .. }), "{missing}");
        assert!(missing.to_string().contains("no closed part"), "{missing}");
        assert!(reader.closed(table, &[], usize::MAX).unwrap().is_empty());
    }
}

#[test]
fn a_table_without_rows_has_its_columns() {
    let dir = TempDir::new().unwrap();
    let recorded = write(dir.path(), &acts(), &[vec![], vec![]]);
    assert_eq!(names(&dir.path().join("acts")), ["part-000000-000000.parquet"]);
    assert_eq!(read_all(dir.path(), "acts", &recorded), expected(&acts(), &[]));
}

#[test]
fn parts_appear_only_when_closed_and_leftovers_go() {
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("acts");
    let mut tables = Tables::open(real(), dir.path(), vec![acts()]).unwrap();
    tables.push(0, act(0, 0..2_000_000)).unwrap();
    // The writer starts the file within ten seconds, or never.
    for _ in 0..1000 {
        if names(&folder).is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    assert_eq!(names(&folder), ["open.parquet.tmp"]);
    let parts = tables.close_parts(0, 0).unwrap();
    assert_eq!(names(&folder), ["open.parquet.tmp"], "a part has its name once it is recorded");
    let recorded = Parts::from([("acts".to_string(), parts)]);
    let rows = read_all(dir.path(), "acts", &recorded)[0].1.rows();
    assert_eq!(rows, 2_000_000, "and is read by its record");
    tables.publish(false).unwrap();
    assert_eq!(names(&folder), ["part-000000-000000.parquet"]);
    assert_eq!(read_all(dir.path(), "acts", &recorded)[0].1.rows(), rows);
    tables.push(0, act(1, 0..2_000_000)).unwrap();
    assert!(tables.finish().unwrap_err().to_string().contains("2000000 rows"));
    assert_eq!(names(&folder), ["part-000000-000000.parquet"], "rows of no closed part are gone");

    fs::write(folder.join("open.parquet.tmp"), "cut off").unwrap();
    let tables = Tables::open(real(), dir.path(), vec![acts()]).unwrap();
    assert_eq!(names(&folder), ["part-000000-000000.parquet"]);
    tables.finish().unwrap();
}

#[test]
fn parts_do_not_overlap() {
    let dir = TempDir::new().unwrap();
    let recorded = write(dir.path(), &acts(), &[vec![act(0, 0..3)], vec![act(1, 0..3)]]);
    for (first, last) in [(1, 5), (0, 0), (3, 2)] {
        let mut tables = Tables::open(real(), dir.path(), vec![acts()]).unwrap();
        tables.push(0, act(first, 0..3)).unwrap();
        assert!(matches!(tables.close_parts(first, last), Err(TableError::Rounds { .. })), "{first} {last}");
    }
    assert_eq!(read_all(dir.path(), "acts", &recorded), expected(&acts(), &[act(0, 0..3), act(1, 0..3)]));
}

#[test]
fn resuming_removes_the_parts_after_its_snapshot() {
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("acts");
    remove_parts_after(&RealDisk, &dir.path().join("nothing yet"), None).unwrap();
    let mut recorded = Parts::new();
    let mut tables = Tables::open(real(), dir.path(), vec![acts(), every_kind()]).unwrap();
    for (first, last) in [(0, 9), (10, 10), (11, 1_234_567)] {
        tables.push(0, act(first, 0..3)).unwrap();
        close(&mut tables, first, last, &mut recorded);
    }
    tables.finish().unwrap();
    fs::write(folder.join("notes.txt"), "kept").unwrap();
    fs::write(dir.path().join("readme"), "kept").unwrap();
    let all = ["notes.txt", "part-000000-000009.parquet", "part-000010-000010.parquet", "part-000011-1234567.parquet"];

    assert!(matches!(remove_parts_after(&RealDisk, dir.path(), Some(12)), Err(TableError::Rounds { .. })));
    assert_eq!(names(&folder), all, "nothing is removed where a part would be cut");
    remove_parts_after(&RealDisk, dir.path(), Some(1_234_567)).unwrap();
    assert_eq!(names(&folder), all);
    remove_parts_after(&RealDisk, dir.path(), Some(9)).unwrap();
    assert_eq!(names(&folder), all[..2]);
    assert_eq!(names(&dir.path().join("every_kind")), ["part-000000-000009.parquet"]);

    let mut tables = Tables::open(real(), dir.path(), vec![acts(), every_kind()]).unwrap();
    tables.push(0, act(10, 5..8)).unwrap();
    recorded.get_mut("acts").unwrap().truncate(1);
    close(&mut tables, 10, 10, &mut recorded);
    tables.finish().unwrap();
    assert_eq!(read_all(dir.path(), "acts", &recorded), expected(&acts(), &[act(0, 0..3), act(10, 5..8)]));
    remove_parts_after(&RealDisk, dir.path(), None).unwrap();
    assert_eq!(names(&folder), all[..1]);
}

#[test]
fn rows_that_do_not_fit_are_refused_and_the_tables_stay_usable() {
    let dir = TempDir::new().unwrap();
    let mut tables = Tables::open(real(), dir.path(), vec![acts()]).unwrap();
    let change = |index: usize, column: Column| {
        let mut batch = act(0, 0..3);
        batch.columns[index] = column;
        batch
    };
    let wrong = [
        (change(0, Column::U64(vec![1, 2, 3])), "agent"),
        (change(0, Column::U32(vec![1, 2])), "2 values"),
        (change(0, Column::Range(0..4)), "4 values"),
        (change(0, Column::MaybeU32(vec![Some(1); 3])), "nullable"),
        (change(1, Column::Same(Value::Missing)), "nullable"),
        (change(2, Column::Same(Value::U32(1))), "doubles"),
        (change(3, Column::Code(vec![0, 3, 1])), "code 3"),
        (change(3, Column::Same(Value::Code(3))), "code 3"),
        (change(3, Column::Text(vec!["post".into(); 3])), "codes of words"),
        (Batch { rows: 3, columns: act(0, 0..3).columns[..3].to_vec() }, "3 columns"),
    ];
    for (batch, says) in wrong {
        let error = tables.push(0, batch).unwrap_err().to_string();
        assert!(error.contains("`acts`") && error.contains(says), "{error}");
    }
    assert!(matches!(tables.push(1, act(0, 0..3)), Err(TableError::Batch { .. })));
    tables.push(0, act(0, 0..3)).unwrap();
    let mut recorded = Parts::new();
    close(&mut tables, 0, 0, &mut recorded);
    tables.finish().unwrap();
    assert_eq!(read_all(dir.path(), "acts", &recorded), expected(&acts(), &[act(0, 0..3)]));
}

#[test]
fn tables_that_can_not_be_stored_are_refused() {
    let dir = TempDir::new().unwrap();
    let column = |name: &str, kind| ColumnSpec::new(name, kind, "");
    let wrong = [
        TableSpec { name: "../acts".into(), ..acts() },
        TableSpec { name: String::new(), ..acts() },
        TableSpec { columns: vec![], ..acts() },
        TableSpec { columns: vec![column("a", Kind::U32), column("a", Kind::U64)], ..acts() },
        TableSpec { columns: vec![column("a", words(&[]))], ..acts() },
        TableSpec { columns: vec![column("a", words(&["x", "x"]))], ..acts() },
    ];
    for spec in wrong {
        assert!(matches!(Tables::open(real(), dir.path(), vec![spec]), Err(TableError::Spec { .. })));
    }
    assert!(matches!(Tables::open(real(), dir.path(), vec![acts(), acts()]), Err(TableError::Spec { .. })));
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn the_same_batches_give_the_same_bytes() {
    let bytes = || {
        let dir = TempDir::new().unwrap();
        write(dir.path(), &every_kind(), &[vec![rows(1, 7000), same(3, true), rows(2, 7000)]]);
        fs::read(dir.path().join("every_kind/part-000000-000000.parquet")).unwrap()
    };
    assert!(bytes() == bytes());
}

/// The machine's disk, failing after a number of written bytes or calls.
struct Failing {
    bytes: Arc<AtomicUsize>,
    error: io::ErrorKind,
}

struct FailingFile(Box<dyn DiskFile>, Arc<AtomicUsize>, io::ErrorKind);

fn spend(budget: &AtomicUsize, cost: usize, error: io::ErrorKind) -> io::Result<()> {
    match budget.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(cost)) {
        Ok(_) => Ok(()),
        Err(_) => Err(error.into()),
    }
}

impl Write for FailingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        spend(&self.1, bytes.len(), self.2)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl DiskFile for FailingFile {
    fn sync(&mut self) -> io::Result<()> {
        spend(&self.1, 1, self.2)?;
        self.0.sync()
    }
}

impl Disk for Failing {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        spend(&self.bytes, 1, self.error)?;
        Ok(Box::new(FailingFile(RealDisk.create(path)?, self.bytes.clone(), self.error)))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.append(path)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        RealDisk.len(path)
    }

    fn kind(&self, path: &Path) -> io::Result<EntryKind> {
        RealDisk.kind(path)
    }

    fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        RealDisk.truncate(path, len)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_dir_all(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealDisk.exists(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>> {
        RealDisk.lock(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        RealDisk.read(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        spend(&self.bytes, 1, self.error)?;
        RealDisk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_file(path)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        RealDisk.create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        spend(&self.bytes, 1, self.error)?;
        RealDisk.sync_dir(dir)
    }
}

#[test]
fn a_disk_that_fails_says_so_and_the_parts_before_stay() {
    let good = act(0, 0..30_000);
    let size = {
        let dir = TempDir::new().unwrap();
        write(dir.path(), &acts(), &[vec![good.clone()]]);
        fs::metadata(dir.path().join("acts/part-000000-000000.parquet")).unwrap().len() as usize
    };
    // Open syncs the folder; a part costs its bytes and a create, a sync of its own and of the folder, a rename and another sync of the
    // folder. Then every call of the second part fails once, and so do writes at bytes throughout it.
    let first_part = 1 + size + 5;
    let failing_at = (0..4).chain((5..size).step_by(size / 9)).chain(size - 3..size + 5);
    for (after, error) in failing_at.zip([io::ErrorKind::StorageFull, io::ErrorKind::Other].into_iter().cycle()) {
        let dir = TempDir::new().unwrap();
        let disk = Failing { bytes: Arc::new(AtomicUsize::new(first_part + after)), error };
        let mut tables = Tables::open(Arc::new(disk), dir.path(), vec![acts()]).unwrap();
        tables.push(0, good.clone()).unwrap();
        let mut recorded = Parts::new();
        close(&mut tables, 0, 0, &mut recorded);
        tables.push(0, good.clone()).unwrap();
        let failure = tables.close_parts(1, 1).and_then(|_| tables.publish(true)).unwrap_err();
        assert_eq!(matches!(failure, TableError::Full { .. }), error == io::ErrorKind::StorageFull, "{failure:?}");
        let says = failure.to_string();
        assert!(says.contains("`acts`") && says.contains("polity resume") && says.contains("closed before"), "{says}");
        assert_eq!(tables.push(0, good.clone()).unwrap_err().to_string(), says, "the failure stays");
        assert_eq!(tables.finish().unwrap_err().to_string(), says);

        remove_parts_after(&RealDisk, dir.path(), Some(0)).unwrap();
        let read = read_all(dir.path(), "acts", &recorded);
        assert_eq!(read, expected(&acts(), std::slice::from_ref(&good)), "after {after} bytes");
        Tables::open(real(), dir.path(), vec![acts()]).unwrap().finish().unwrap();
        assert_eq!(names(&dir.path().join("acts")), ["part-000000-000000.parquet"]);
    }
}

/// A spoiled part, and what was done to the table's folder.
fn spoiled(dir: &Path, recorded: &Parts) -> String {
    let faults = reader(dir, recorded).check().unwrap_err().to_string();
    let read = reader(dir, recorded).table("every_kind", &[], usize::MAX).unwrap_err().to_string();
    assert_eq!(faults, read, "whoever reads a table is told what a check tells");
    read
}

#[test]
fn a_part_that_is_not_as_it_was_written_is_an_error_that_names_it() {
    let dir = TempDir::new().unwrap();
    let recorded = write(dir.path(), &every_kind(), &[vec![rows(1, 300)], vec![rows(2, 300)], vec![rows(3, 300)]]);
    let paths: Vec<PathBuf> =
        (0..3).map(|part| dir.path().join(format!("every_kind/part-{part:06}-{part:06}.parquet"))).collect();
    let whole: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    let mend = || paths.iter().zip(&whole).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    reader(dir.path(), &recorded).check().unwrap();
    // Truncated anywhere.
    for length in [0, 7, whole[1].len() / 2, whole[1].len() - 1] {
        fs::write(&paths[1], &whole[1][..length]).unwrap();
        let error = spoiled(dir.path(), &recorded);
        assert!(
            error.contains("part-000001-000001.parquet") && error.contains("do not have the recorded digest"),
            "{error}"
        );
    }
    // Any bit flipped.
    for at in (0..whole[1].len()).step_by(29) {
        let mut bytes = whole[1].clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&paths[1], &bytes).unwrap();
        let error = spoiled(dir.path(), &recorded);
        assert!(error.contains("part-000001-000001.parquet"), "{error}");
    }
    // Copied over another.
    fs::write(&paths[1], &whole[2]).unwrap();
    assert!(spoiled(dir.path(), &recorded).contains("part-000001-000001.parquet"));
    // Exchanged.
    fs::write(&paths[2], &whole[1]).unwrap();
    assert!(spoiled(dir.path(), &recorded).contains("part-000001-000001.parquet"));
    mend();
    // Gone.
    fs::remove_file(&paths[1]).unwrap();
    let error = spoiled(dir.path(), &recorded);
    assert!(error.contains("part-000001-000001.parquet") && error.contains("it is gone: 300 rows"), "{error}");
    mend();
    // Added, under our naming scheme or another name that programs take for a part.
    for name in ["part-000003-000003.parquet", "part-0000001-000001.parquet", "x.parquet"] {
        let more = dir.path().join("every_kind").join(name);
        fs::write(&more, &whole[0]).unwrap();
        let error = spoiled(dir.path(), &recorded);
        assert!(error.contains(name) && error.contains("added"), "{error}");
        fs::remove_file(more).unwrap();
    }
    // A table that was never written.
    fs::create_dir(dir.path().join("more")).unwrap();
    let more = dir.path().join("more/part-000000-000000.parquet");
    fs::write(&more, &whole[0]).unwrap();
    let error = reader(dir.path(), &recorded).table("more", &[], 1).unwrap_err().to_string();
    assert!(error.contains("more/part-000000-000000.parquet"), "{error}");
    assert!(reader(dir.path(), &recorded).check().is_err());
    fs::remove_dir_all(dir.path().join("more")).unwrap();
    reader(dir.path(), &recorded).check().unwrap();
}

#[test]
fn a_part_that_was_made_to_fit_its_record_ends_nothing() {
    // The digest does not protect against someone who forges both: any bytes give an error or other values, never a panic.
    let dir = TempDir::new().unwrap();
    let mut recorded = write(dir.path(), &every_kind(), &[vec![rows(1, 300)]]);
    let path = dir.path().join("every_kind/part-000000-000000.parquet");
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(29) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&path, &bytes).unwrap();
        recorded.get_mut("every_kind").unwrap()[0].digest = FileHash::of(&bytes);
        let _ = reader(dir.path(), &recorded).table("every_kind", &[], usize::MAX);
    }
}

#[test]
fn a_part_whose_name_a_kill_prevented_gets_it_when_the_run_goes_on() {
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("acts");
    let mut tables = Tables::open(real(), dir.path(), vec![acts()]).unwrap();
    tables.push(0, act(0, 0..9)).unwrap();
    let part = tables.close_parts(0, 0).unwrap().remove(0);
    // What a process does that is stopped in between.
    drop(tables);
    assert_eq!(names(&folder), ["open.parquet.tmp"], "the part may be recorded");
    let other = Part { digest: FileHash::of(b"other"), ..part.clone() };
    settle(&RealDisk, dir.path(), &other).unwrap();
    assert_eq!(names(&folder), ["open.parquet.tmp"], "it is not the one that is recorded");
    settle(&RealDisk, dir.path(), &part).unwrap();
    settle(&RealDisk, dir.path(), &part).unwrap();
    assert_eq!(names(&folder), ["part-000000-000000.parquet"]);
    let recorded = Parts::from([("acts".to_string(), vec![part])]);
    assert_eq!(read_all(dir.path(), "acts", &recorded), expected(&acts(), &[act(0, 0..9)]));
}

#[test]
fn a_run_that_saves_while_it_is_read_is_looked_at_again() {
    let dir = TempDir::new().unwrap();
    let recorded = write(dir.path(), &acts(), &[vec![act(0, 0..3)], vec![act(1, 0..3)]]);
    let mut before = recorded.clone();
    before.get_mut("acts").unwrap().truncate(1);
    let known = |parts: &Parts| Known { parts: parts.clone(), ..Known::default() };
    // The reader was opened before the second part existed.
    let now = known(&recorded);
    let late = Reader::new(&RealDisk, dir.path(), known(&before), Some(Box::new(move || Ok(now.clone()))));
    let read = late.table("acts", &[], usize::MAX).unwrap();
    assert_eq!(read, expected(&acts(), &[act(0, 0..3), act(1, 0..3)]));
    // A finished run gets no more parts.
    let ended = Reader::new(&RealDisk, dir.path(), known(&before), None);
    assert!(ended.table("acts", &[], usize::MAX).unwrap_err().to_string().contains("part-000001-000001.parquet"));
}
