#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;
use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::sync::LazyLock;

const MADE: &str = "CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, height REAL, photo BLOB);
    CREATE INDEX by_name ON person(name);
    INSERT INTO person VALUES (1, 'Ada', 1.5, x'00ff'), (2, 'Bo' || char(10) || 'b', NULL, NULL), (3, 'C | d', 2.0, NULL);
    CREATE VIEW tall AS SELECT name FROM person WHERE height > 1.6;
    CREATE TABLE empty(a, b);";

fn bounds() -> Limits {
    Limits { rows: 100, bytes: KEPT, kilo_steps: 5_000, seconds: 60 }
}

/// A folder with the database `a.db`.
fn made() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    Connection::open(&path).unwrap().execute_batch(MADE).unwrap();
    (folder, path)
}

fn people() -> Database {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let (_folder, path) = made();
        fs::read(path).unwrap()
    });
    Database::open_bytes(BYTES.clone()).unwrap()
}

fn error(sql: &str) -> SqlError {
    people().run(sql, &bounds()).unwrap_err()
}

fn cells(sql: &str) -> Vec<Vec<Cell>> {
    people().run(sql, &bounds()).unwrap().rows
}

fn call(sql: &Sql, tool: &str, arguments: Value, state: &str) -> Result<ToolOutput, ProviderError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(sql.call(tool, arguments.as_object().unwrap(), state))
}

fn opened(params: Value, store: &Path) -> Result<Sql, Invalid> {
    Sql::open(&serde_json::from_value(params).unwrap(), store)
}

#[test]
fn values_of_all_kinds_are_read_and_shown() {
    let all = people().run("SELECT * FROM person ORDER BY id", &bounds()).unwrap();
    assert_eq!(all.rows[0][3], Cell::Blob(vec![0, 255]));
    assert_eq!(
        all.show(10_000),
        "id | name | height | photo\n1 | Ada | 1.5 | blob of 2 bytes: 00ff\n2 | Bo\\nb | NULL | NULL\n\
         3 | 'C | d' | 2.0 | NULL\n(3 rows)"
    );
    assert_eq!(people().run("SELECT a, b FROM empty", &bounds()).unwrap().show(100), "a | b\n(0 rows)");
    let hidden = people().run("SELECT 'a' || char(27) || '[31m' || char(8238), 'NULL', '', 1e400", &bounds()).unwrap();
    assert!(hidden.show(1_000).contains("a\\u{1b}[31m\\u{202e} | 'NULL' | '' | inf\n"), "{}", hidden.show(1_000));
    let long = people().run("SELECT printf('%.*c', 5000, 'x'), zeroblob(100)", &bounds()).unwrap().show(1_000);
    assert!(long.contains("x... (5000 characters) | blob of 100 bytes: 0000"), "{long}");
    // A text that is no UTF-8.
    assert_eq!(cells("SELECT CAST(x'41ff42' AS TEXT)"), [[Cell::Text("A\u{fffd}B".into())]]);
}

#[test]
fn a_wrong_statement_is_told_with_its_place() {
    let said = |sql: &str| match error(sql) {
        SqlError::Wrong(why) => why,
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(
        said("SELECT name,\n  hight FROM person"),
        "no such column: hight, at line 2, column 3: `hight FROM person`"
    );
    assert_eq!(said("SELECT * FROM persons"), "no such table: persons");
    assert!(said("SELEC 1").starts_with("near \"SELEC\": syntax error, at line 1, column 1"));
    assert!(said("SELECT (1").contains("incomplete input"));
    assert!(said("SELECT abs(-9223372036854775808)").contains("integer overflow"));
    assert!(said("SELECT zeroblob(2000000)").contains("too big"));
    assert!(matches!(error(" -- nothing\n"), SqlError::Refused(why) if why.contains("no statement")));
    for two in ["SELECT 1; SELECT 2", "SELECT 1;; DROP TABLE person", "SELECT 1; nonsense"] {
        assert!(matches!(error(two), SqlError::Refused(why) if why.contains("more than one")), "{two}");
    }
    assert_eq!(cells("SELECT 1; -- the end"), [[Cell::Integer(1)]]);
    assert!(matches!(error("SELECT 1\0"), SqlError::Refused(_)));
    // Thousands of statements use no stack.
    assert!(matches!(error(&"VALUES(1);".repeat(9_000)), SqlError::Refused(_)));
    assert!(matches!(error(&format!("SELECT {}", "1,".repeat(60_000))), SqlError::Wrong(_)));
    assert!(matches!(error(&format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000))), SqlError::Wrong(_)));
}

#[test]
fn what_reaches_out_or_changes_something_is_refused() {
    let (folder, path) = made();
    let before = fs::read(&path).unwrap();
    let database = Database::open_file(&path).unwrap();
    let out = folder.path().join("out.db");
    let (attach, into) = (format!("ATTACH '{}' AS o", out.display()), format!("VACUUM INTO '{}'", out.display()));
    for sql in [
        attach.as_str(),
        into.as_str(),
        "VACUUM",
        "DETACH main",
        "INSERT INTO person(name) VALUES ('x')",
        "UPDATE person SET name = 'x'",
        "DELETE FROM person",
        "WITH w AS (SELECT 1) DELETE FROM person",
        "CREATE TABLE x(a)",
        "CREATE TEMP TABLE x(a)",
        "CREATE VIRTUAL TABLE x USING fts5(a)",
        "DROP TABLE person",
        "ALTER TABLE person RENAME TO p",
        "REINDEX",
        "ANALYZE",
        "BEGIN EXCLUSIVE",
        "SAVEPOINT s",
        "PRAGMA user_version=3",
        "PRAGMA writable_schema=ON",
        "PRAGMA journal_mode=WAL",
        "PRAGMA temp_store_directory='/tmp'",
        "PRAGMA database_list",
        "PRAGMA hard_heap_limit=1",
        "SELECT load_extension('/tmp/x.so')",
        "SELECT random()",
        "SELECT hex(randomblob(3))",
        "SELECT * FROM pragma_database_list",
    ] {
        assert!(
            matches!(database.run(sql, &bounds()), Err(SqlError::Refused(_))),
            "{sql}: {:?}",
            database.run(sql, &bounds())
        );
    }
    // Functions that are not there at all.
    for sql in ["SELECT readfile('/etc/passwd')", "SELECT writefile('/tmp/x', 'y')"] {
        assert!(matches!(database.run(sql, &bounds()), Err(SqlError::Wrong(_) | SqlError::Refused(_))), "{sql}");
    }
    assert!(database.run("PRAGMA table_info(person)", &bounds()).unwrap().rows.len() == 4);
    assert!(database.run("SELECT name FROM pragma_table_info('person')", &bounds()).unwrap().rows.len() == 4);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing lies beside the database");
}

#[test]
fn endless_work_stops_at_the_same_place_each_time() {
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT ";
    for what in ["count(*) FROM n", "max(a.i) FROM n a, n b", "* FROM n ORDER BY i DESC LIMIT 1"] {
        assert_eq!(error(&format!("{endless}{what}")), SqlError::Limit(Limit::Steps(5_000)), "{what}");
    }
    let cross = "SELECT count(*) FROM person a, person b, person c, person d, person e, person f, person g, person h, \
                 person i, person j, person k, person l, person m, person n, person o, person p";
    assert_eq!(error(cross), SqlError::Limit(Limit::Steps(5_000)));
    // References that double: the work is in compiling.
    let doubling: Vec<String> = (1..60).map(|at| format!("c{at} AS (SELECT * FROM c{0}, c{0})", at - 1)).collect();
    let doubling = format!("WITH c0 AS (SELECT 1), {} SELECT * FROM c59", doubling.join(", "));
    assert!(people().run(&doubling, &bounds()).is_err());
    let shown = people().run(&format!("{endless}i FROM n"), &bounds()).unwrap();
    assert_eq!((shown.rows.len(), shown.total), (100, None));
    assert_eq!(people().run(&format!("{endless}i FROM n"), &bounds()).unwrap(), shown);
    assert!(
        shown
            .show(10_000)
            .ends_with("(100 rows of more; their number is not known, because counting them takes too long)")
    );
    let slow = Limits { seconds: 0, kilo_steps: u64::MAX, ..bounds() };
    assert_eq!(people().run(&format!("{endless}count(*) FROM n"), &slow), Err(SqlError::Limit(Limit::Time(0))));
}

#[test]
fn long_results_are_cut_and_counted() {
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i, 'text' FROM n";
    let table = people().run(many, &bounds()).unwrap();
    assert_eq!((table.rows.len(), table.total), (100, Some(5_000)));
    assert!(table.show(10_000).ends_with("\n100 | text\n(100 of 5000 rows)"));
    let shown = table.show(50);
    assert!(shown.starts_with("i | 'text'\n1 | text\n") && shown.contains("of 5000 rows) Select fewer"), "{shown}");
    let large = "SELECT zeroblob(1000000) FROM (VALUES (1), (2), (3), (4))";
    let table = people().run(large, &Limits { bytes: 2_500_000, ..bounds() }).unwrap();
    assert_eq!((table.rows.len(), table.total), (2, Some(4)));
    let table = people().run(large, &Limits { bytes: 1_000, ..bounds() }).unwrap();
    assert!(table.show(1_000).contains("(0 of 4 rows) Select fewer columns"), "{}", table.show(1_000));
}

#[test]
fn unusable_files_are_told_apart() {
    let (folder, path) = made();
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let why = |path: &Path| match Database::open_file(path) {
        Err(SqlError::Unusable(why)) => why,
        other => panic!("{}: {other:?}", path.display()),
    };
    let whole = fs::read(&path).unwrap();
    assert!(why(&folder.path().join("none.db")).contains("No such file"));
    assert!(why(folder.path()).contains("no regular file"));
    assert!(why(&put("text.db", b"id,name\n1,Ada\n")).contains("no SQLite database"));
    assert!(why(&put("nothing.db", b"")).contains("no SQLite database"));
    assert!(why(&put("cut.db", &whole[..whole.len() - 1])).contains("is cut"));
    let mut damaged = whole.clone();
    damaged[100..4_096].fill(0x5a);
    assert!(why(&put("damaged.db", &damaged)).contains("damaged"));
    assert!(matches!(Database::open_bytes(damaged), Err(SqlError::Unusable(_))));
    // An odd name is no part of the URI.
    let odd = put("a?mode=rwc#%41.db", &whole);
    assert_eq!(Database::open_file(&odd).unwrap().run("SELECT count(*) FROM person", &bounds()).unwrap().rows.len(), 1);
}

#[test]
fn a_file_that_another_program_changes_is_refused() {
    let (folder, path) = made();
    let database = Database::open_file(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA cache_spill=1; BEGIN EXCLUSIVE; INSERT INTO empty VALUES (1, 2)").unwrap();
    // The change is not in the file yet, but its journal is there.
    let why = Database::open_file(&path).unwrap_err().to_string();
    assert!(why.contains("another program has changes") && why.contains("-journal"), "{why}");
    assert_eq!(database.run("SELECT * FROM empty", &bounds()).unwrap().total, Some(0));
    other.execute_batch(&format!("INSERT INTO empty VALUES ('{}', 2); COMMIT", "x".repeat(100_000))).unwrap();
    let why = database.run("SELECT * FROM empty", &bounds()).unwrap_err();
    assert!(matches!(&why, SqlError::Unusable(why) if why.contains("was changed")), "{why}");
    drop(other);
    let wal = folder.path().join("wal.db");
    let other = Connection::open(&wal).unwrap();
    other.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t AS SELECT 1 AS a").unwrap();
    assert!(Database::open_file(&wal).unwrap_err().to_string().contains("-wal"));
    drop(other);
    let one = Ok(vec![vec![Cell::Integer(1)]]);
    assert_eq!(Database::open_file(&wal).unwrap().run("SELECT a FROM t", &bounds()).map(|table| table.rows), one);
    let bytes = Database::open_bytes(fs::read(&wal).unwrap()).unwrap();
    assert_eq!(bytes.run("SELECT a FROM t", &bounds()).map(|table| table.rows), one);
    assert!(!folder.path().join("wal.db-shm").exists());
}

#[test]
fn results_are_compared_as_multisets_unless_the_gold_one_is_ordered() {
    let same = |gold: &str, other: &str| {
        let run = |sql: &str| people().run(sql, &bounds()).unwrap();
        same_result(&run(gold), &run(other))
    };
    let (up, down) = ("SELECT id FROM person ORDER BY id", "SELECT id FROM person ORDER BY id DESC");
    let inner = "SELECT id FROM (SELECT id FROM person ORDER BY id DESC)";
    assert_eq!(same(up, down), Some(false));
    assert_eq!(same(up, "SELECT id AS x FROM person WHERE id < 9"), Some(true));
    assert_eq!(same(inner, up), Some(true), "an ORDER BY in parentheses orders nothing");
    assert_eq!(same("SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 2", "VALUES (1), (2), (2)"), Some(false));
    assert_eq!(same("VALUES (1, NULL), (2, 'a')", "VALUES (2, 'a'), (1, NULL)"), Some(true));
    for (gold, other, equal) in [
        ("SELECT 1", "SELECT 1.0", true),
        ("SELECT 0.1 + 0.2", "SELECT 0.3", true),
        ("SELECT 0.0", "SELECT -0.0", true),
        ("SELECT 2.9999999999999996", "SELECT 3", true),
        ("SELECT 0.1", "SELECT 0.10001", false),
        ("SELECT 1", "SELECT '1'", false),
        ("SELECT NULL", "SELECT ''", false),
        ("SELECT 'a'", "SELECT x'61'", false),
        ("SELECT 1234567890123456", "SELECT 1234567890123457", false),
        ("SELECT 1234567890123456.0", "SELECT 1234567890123456", true),
        ("SELECT 1 WHERE 0", "SELECT 1, 2 WHERE 0", false),
    ] {
        assert_eq!(same(gold, other), Some(equal), "{gold} and {other}");
    }
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    assert_eq!(same(endless, endless), None, "cut results say nothing");
}

#[test]
fn order_by_is_found_outside_of_parentheses_texts_and_comments() {
    for sql in ["SELECT a FROM t ORDER BY a", "select a from t order\n by a", "SELECT ')' FROM t ORDER/* x */BY a"] {
        assert!(table::orders_its_rows(sql), "{sql}");
    }
    for sql in [
        "SELECT 'it''s ORDER BY' FROM t",
        "SELECT a FROM t -- ORDER BY a",
        "SELECT rank() OVER (ORDER BY a) FROM t",
        "SELECT \"order by\" FROM [order by]",
        "SELECT border_by FROM t WHERE '",
        "SELECT reorder by FROM é",
    ] {
        assert!(!table::orders_its_rows(sql), "{sql}");
    }
}

proptest! {
    #[test]
    fn shuffled_rows_are_the_same_result(rows in proptest::collection::vec((0_i64..4, "[a-c]{0,2}"), 0..12), turn in 0_usize..12) {
        let table = |rows: &[(i64, String)]| Table {
            columns: vec!["n".into(), "t".into()],
            rows: rows.iter().map(|(n, t)| vec![Cell::Integer(*n), Cell::Text(t.clone())]).collect(),
            total: Some(rows.len()),
            ordered: false,
        };
        let mut turned = rows.clone();
        turned.rotate_left(if rows.is_empty() { 0 } else { turn % rows.len() });
        prop_assert_eq!(same_result(&table(&rows), &table(&turned)), Some(true));
        if let Some(first) = turned.first_mut() {
            first.0 += 10;
            prop_assert_eq!(same_result(&table(&rows), &table(&turned)), Some(false));
        }
    }

    #[test]
    fn no_statement_breaks_the_reader(sql in "(SELECT|ORDER BY|\\(|\\)|'|\"|--|/\\*|é|;|,|a|1| |\n){0,30}") {
        let _ = people().run(&sql, &bounds());
        let _ = table::orders_its_rows(&sql);
    }
}

#[test]
fn the_schema_shows_tables_with_rows() {
    let (folder, path) = made();
    let sql = opened(serde_json::json!({"file": path}), folder.path()).unwrap();
    let whole = call(&sql, "sql_schema", serde_json::json!({}), "").unwrap();
    for part in
        ["CREATE TABLE person(", "-- 3 rows\n-- id | name", "CREATE INDEX by_name", "CREATE VIEW tall", "-- 0 rows"]
    {
        assert!(whole.text.contains(part), "{part} in {}", whole.text);
    }
    let one = call(&sql, "sql_schema", serde_json::json!({"table": "EMPTY"}), "").unwrap();
    assert_eq!(one.text, "CREATE TABLE empty(a, b);\n-- 0 rows");
    let none = call(&sql, "sql_schema", serde_json::json!({"table": "persn"}), "").unwrap();
    assert!(none.error && none.text.contains("did you mean `person`?"), "{}", none.text);
    let wrong = call(&sql, "sql_query", serde_json::json!({"sql": "SELECT x"}), "").unwrap();
    assert!(wrong.error && wrong.state.is_empty());
    assert!(sql.tools().iter().all(|tool| tool.effect == EffectClass::Reads && tool.session.is_none()));
}

#[test]
fn each_change_is_a_version_and_older_ones_stay() {
    let (folder, path) = made();
    let before = fs::read(&path).unwrap();
    let store = folder.path().join("versions");
    let sql = opened(serde_json::json!({"file": path, "write": true}), &store).unwrap();
    let run = |query: &str, state: &str| call(&sql, "sql_query", serde_json::json!({"sql": query}), state).unwrap();
    let count = |state: &str| run("SELECT count(*) FROM person", state);
    let first = run("INSERT INTO person(name) VALUES ('D')", "");
    assert!(!first.error && first.text.starts_with("Done"), "{}", first.text);
    let second = run("DELETE FROM person WHERE id < 3", &first.state);
    assert_eq!(
        ["", &first.state, &second.state].map(|state| count(state).text.lines().nth(1).unwrap().to_string()),
        ["3", "4", "2"]
    );
    assert_eq!(count(&second.state).state, second.state, "a SELECT makes no version");
    assert_eq!(
        run("INSERT INTO person(name) VALUES ('D')", "").state,
        first.state,
        "the same change, the same version"
    );
    for refused in [
        "INSERT INTO person(id) VALUES (3), (1)",
        "BEGIN",
        "CREATE TEMP TABLE x(a)",
        "SELECT x",
        "VACUUM INTO '/tmp/x'",
    ] {
        let output = run(refused, &first.state);
        assert!(output.error && output.state == first.state, "{refused}: {}", output.text);
    }
    let out = folder.path().join("out.db");
    for reaching in [format!("ATTACH '{}' AS o", out.display()), format!("VACUUM INTO '{}'", out.display())] {
        let output = run(&reaching, &first.state);
        assert!(output.error && output.text.contains("there is this one database"), "{reaching}: {}", output.text);
    }
    assert!(!out.exists());
    let grown = run(
        "CREATE TABLE big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100) \
                     SELECT zeroblob(900000) AS b FROM n",
        "",
    );
    assert!(grown.error && grown.text.contains("larger than 64 MiB"), "{}", grown.text);
    assert_eq!(fs::read(&path).unwrap(), before, "the file itself stays");
    assert!(sql.tools().iter().all(|tool| tool.session.as_deref() == Some("sql")));
    // What is wrong with the store is no output.
    let fatal = |state: &str| match call(&sql, "sql_query", serde_json::json!({"sql": "SELECT 1"}), state) {
        Err(ProviderError::Fatal { why }) => why,
        other => panic!("{other:?}"),
    };
    assert!(fatal("../../etc/passwd").contains("no version"));
    assert!(fatal(&"0".repeat(32)).contains("missing"));
    let file = store.join(format!("{}.db", second.state));
    let mut bytes = fs::read(&file).unwrap();
    bytes[200] ^= 1;
    fs::write(&file, bytes).unwrap();
    assert!(fatal(&second.state).contains("damaged"));
}

#[test]
fn wrong_parameters_are_named() {
    let (folder, path) = made();
    let key = |params: Value| opened(params, folder.path()).err().unwrap().key;
    assert_eq!(key(serde_json::json!({"file": path, "rows": 0})), "rows");
    assert_eq!(key(serde_json::json!({"file": path, "bytes": 1})), "bytes");
    assert_eq!(key(serde_json::json!({"file": path, "million_steps": 0})), "million_steps");
    assert_eq!(key(serde_json::json!({"file": path, "seconds": 1000})), "seconds");
    assert_eq!(key(serde_json::json!({"file": "/nowhere.db"})), "file");
    assert!(serde_json::from_value::<SqlParams>(serde_json::json!({"file": "a", "writes": true})).is_err());
    assert!(serde_json::to_value(schemars::schema_for!(SqlParams)).unwrap()["properties"]["write"].is_object());
}
