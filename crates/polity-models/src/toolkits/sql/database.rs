//! A SQLite database that is queried within limits.

use super::outcome::{Limit, SqlError};
use super::table::{Cell, Table, orders_its_rows};
use polity_kernel::tree::nearest;
use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit as Setting;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, MAIN_DB, OpenFlags};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// First bytes of every database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Bytes of a database's header.
const HEADER: usize = 100;
/// Instructions between two looks at the limits.
const STRIDE: i32 = 1_000;
/// Heap of SQLite in the whole process, in bytes. It protects the machine; results do not depend on it unless it is reached.
const HEAP: i64 = 1 << 30;
/// Maximum bytes of one value and of one stored row.
const VALUE: i32 = 1_000_000;
/// Maximum bytes of a database that is changed: every version is a whole copy.
pub(super) const WRITABLE: usize = 64 << 20;
/// Example rows of a table.
const EXAMPLES: usize = 3;

/// What one statement may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Rows that are kept. Further rows are counted.
    pub rows: usize,
    /// Bytes of values that are kept.
    pub bytes: usize,
    /// Instructions of SQLite's virtual machine, in thousands. The same statement on the same database stops at the same instruction.
    pub kilo_steps: u64,
    /// Seconds by the clock, a safety net for slow machines.
    pub seconds: u64,
}

impl Default for Limits {
    /// 1,000,000 rows, 64 MiB, 100,000,000 instructions, 30 s: enough to compare whole results.
    fn default() -> Self {
        Limits { rows: 1_000_000, bytes: 64 << 20, kilo_steps: 100_000, seconds: 30 }
    }
}

/// A database. It is never changed: [`Database::run`] only reads, [`Database::edit`] returns a changed copy.
///
/// ```
/// use polity_models::toolkits::sql::{Cell, Database, Limits, SqlError};
///
/// # fn main() -> Result<(), SqlError> {
/// let database = Database::empty()?;
/// let (_, changed) = database.edit("CREATE TABLE t AS SELECT 1 AS a", &Limits::default())?;
/// let table = Database::open_bytes(changed)?.run("SELECT a + 1 FROM t", &Limits::default())?;
/// assert_eq!(table.rows, [[Cell::Integer(2)]]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Database(Source);

#[derive(Clone, Debug)]
enum Source {
    File { path: PathBuf, uri: String, seen: (u64, Option<SystemTime>) },
    Bytes(Arc<[u8]>),
}

/// What a statement may do.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    Reads,
    Writes,
}

impl Database {
    /// Opens a file. It must not change as long as the database is used, and no other program may have unfinished changes to it.
    ///
    /// # Errors
    /// It cannot be read, is no database, is cut, or has a journal beside it.
    pub fn open_file(path: &Path) -> Result<Self, SqlError> {
        let unreadable = |error: std::io::Error| SqlError::Unusable(format!("{}: {error}", path.display()));
        let path = path.canonicalize().map_err(unreadable)?;
        if !fs::metadata(&path).map_err(unreadable)?.is_file() {
            return Err(SqlError::Unusable(format!("{} is no regular file", path.display())));
        }
        for end in ["-wal", "-journal"] {
            let mut beside = path.clone().into_os_string();
            beside.push(end);
            if fs::metadata(&beside).is_ok_and(|about| about.len() > 0) {
                return Err(SqlError::Unusable(format!(
                    "another program has changes to {} that are not in it yet: they are in {}. Close that program, or \
                     open the database once with `sqlite3` and run PRAGMA wal_checkpoint(TRUNCATE)",
                    path.display(),
                    Path::new(&beside).display()
                )));
            }
        }
        let mut header = Vec::new();
        let seen = state_of(&path).map_err(unreadable)?;
        File::open(&path).and_then(|file| file.take(HEADER as u64).read_to_end(&mut header)).map_err(unreadable)?;
        check_header(&header, seen.0).map_err(|why| SqlError::Unusable(format!("{}: {why}", path.display())))?;
        let url = url::Url::from_file_path(&path)
            .map_err(|()| SqlError::Unusable(format!("{} is no absolute path", path.display())))?;
        Database(Source::File { path, uri: format!("{url}?mode=ro&immutable=1"), seen }).tried()
    }

    /// Opens the bytes of a database file.
    ///
    /// # Errors
    /// They are no database.
    pub fn open_bytes(mut bytes: Vec<u8>) -> Result<Self, SqlError> {
        check_header(&bytes, bytes.len() as u64).map_err(SqlError::Unusable)?;
        // In memory no write-ahead log can exist, and SQLite refuses files that ask for one.
        for version in &mut bytes[18..20] {
            *version = 1;
        }
        Database(Source::Bytes(bytes.into())).tried()
    }

    /// Makes a database without tables.
    ///
    /// # Errors
    /// SQLite has no memory.
    pub fn empty() -> Result<Self, SqlError> {
        let bytes = || {
            let mut memory = Connection::open_in_memory()?;
            memory.execute_batch("CREATE TABLE t(a); DROP TABLE t; VACUUM")?;
            rusqlite::Result::Ok(memory.serialize(MAIN_DB)?.to_vec())
        };
        Database::open_bytes(bytes().map_err(|error: rusqlite::Error| SqlError::Unusable(error.to_string()))?)
    }

    /// Reads its schema, so that a damaged file is refused when it is opened.
    fn tried(self) -> Result<Self, SqlError> {
        self.run("SELECT count(*) FROM sqlite_schema", &Limits::default())?;
        Ok(self)
    }

    /// Runs one statement that reads. The result does not depend on earlier statements.
    ///
    /// # Errors
    /// The statement is wrong, refused or beyond a limit; or the file has changed.
    pub fn run(&self, sql: &str, limits: &Limits) -> Result<Table, SqlError> {
        let result = Open::new(self, Access::Reads, limits)?.query(sql, limits.rows);
        self.unchanged()?;
        result
    }

    /// Runs one statement that may change data and schema. Returns its rows and the bytes of the changed copy.
    ///
    /// # Errors
    /// As [`Database::run`]; also the database is a file, or the copy would become larger than 64 MiB.
    pub fn edit(&self, sql: &str, limits: &Limits) -> Result<(Table, Vec<u8>), SqlError> {
        let mut open = Open::new(self, Access::Writes, limits)?;
        let table = open.query(sql, limits.rows)?;
        match open.connection.serialize(MAIN_DB) {
            Ok(bytes) => Ok((table, bytes.to_vec())),
            Err(error) => Err(SqlError::of(&error, sql)),
        }
    }

    /// Describes all tables and views, or one: the CREATE statement, the number of rows, and up to 3 of them.
    ///
    /// # Errors
    /// There is no such table; or as [`Database::run`].
    pub fn schema(&self, table: Option<&str>, limits: &Limits) -> Result<String, SqlError> {
        let open = Open::new(self, Access::Reads, limits)?;
        let listed = "SELECT type, name, sql, tbl_name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
                      ORDER BY name";
        let all = open.query(listed, usize::MAX)?;
        let text = |cell: &Cell| if let Cell::Text(text) = cell { text.clone() } else { String::new() };
        let all: Vec<[String; 4]> = all
            .rows
            .iter()
            .filter_map(|row| <[String; 4]>::try_from(row.iter().map(text).collect::<Vec<_>>()).ok())
            .collect();
        let is_table = |kind: &str| matches!(kind, "table" | "view");
        let known: Vec<&str> =
            all.iter().filter(|[kind, ..]| is_table(kind)).map(|[_, name, ..]| name.as_str()).collect();
        if let Some(table) = table
            && !known.iter().any(|name| name.eq_ignore_ascii_case(table))
        {
            let meant = nearest(table, known.iter().copied()).map(|near| format!(", did you mean `{near}`?"));
            let (meant, have) = (meant.unwrap_or_default(), known.join(", "));
            return Err(SqlError::Refused(format!("there is no table `{table}`{meant} (there are: {have})")));
        }
        let mut out = String::new();
        for [kind, name, sql, _] in &all {
            if !is_table(kind) || table.is_some_and(|table| !name.eq_ignore_ascii_case(table)) {
                continue;
            }
            let _ = writeln!(out, "{sql};");
            let indexes = all.iter().filter(|[kind, _, sql, of]| kind == "index" && of == name && !sql.is_empty());
            indexes.for_each(|[_, _, sql, _]| out.push_str(&format!("{sql};\n")));
            out.push_str(&open.examples(kind, name)?);
            out.push('\n');
        }
        self.unchanged()?;
        if out.is_empty() { Ok("The database has no tables.".into()) } else { Ok(out.trim_end().into()) }
    }

    /// Refuses results of a file that is not the one that was opened.
    fn unchanged(&self) -> Result<(), SqlError> {
        let Source::File { path, seen, .. } = &self.0 else { return Ok(()) };
        if state_of(path).ok().as_ref() == Some(seen) {
            return Ok(());
        }
        Err(SqlError::Unusable(format!("{} was changed while it was used", path.display())))
    }
}

/// Length and time of the last change.
fn state_of(path: &Path) -> std::io::Result<(u64, Option<SystemTime>)> {
    fs::metadata(path).map(|about| (about.len(), about.modified().ok()))
}

/// Says what is wrong with a database's first bytes, given its length (<https://sqlite.org/fileformat2.html>).
fn check_header(header: &[u8], length: u64) -> Result<(), String> {
    let Some(header) = header.get(..HEADER).filter(|header| header.starts_with(MAGIC)) else {
        return Err("this is no SQLite database: it does not begin with `SQLite format 3`".into());
    };
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let page = match u64::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => 65_536,
        page => page,
    };
    // Old versions do not keep the number of pages; they also do not copy the counter.
    let needs = if number(24) == number(92) { page * u64::from(number(28)) } else { page };
    match length < needs {
        true => Err(format!("the database is cut: it has {length} of {needs} bytes. Is it still being written?")),
        false => Ok(()),
    }
}

/// A connection for statements that share their limits of instructions and time.
struct Open {
    connection: Connection,
    limits: Limits,
    /// The limit that was reached.
    reached: Arc<Mutex<Option<Limit>>>,
    /// Why the last statement was refused.
    refused: Arc<Mutex<Option<String>>>,
}

impl Open {
    fn new(database: &Database, access: Access, limits: &Limits) -> Result<Open, SqlError> {
        let reached = Arc::default();
        let refused = Arc::default();
        let connection = match connect(database, access) {
            Ok(connection) => connection,
            Err(error) => return Err(SqlError::Unusable(error.to_string())),
        };
        let mut open = Open { connection, limits: *limits, reached, refused };
        open.guard(access).map_err(|error| SqlError::Unusable(error.to_string()))?;
        Ok(open)
    }

    /// Sets all limits; from here on the connection runs statements of models.
    fn guard(&mut self, access: Access) -> rusqlite::Result<()> {
        let Open { connection, limits, reached, refused } = self;
        connection.execute_batch(&format!(
            "PRAGMA hard_heap_limit={HEAP}; PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON"
        ))?;
        if access == Access::Writes {
            let page: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
            connection.execute_batch(&format!("PRAGMA max_page_count={}", WRITABLE as i64 / page.max(1)))?;
        }
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false)?;
        for (setting, most) in [
            (Setting::SQLITE_LIMIT_LENGTH, VALUE),
            (Setting::SQLITE_LIMIT_SQL_LENGTH, 100_000),
            (Setting::SQLITE_LIMIT_EXPR_DEPTH, 200),
            (Setting::SQLITE_LIMIT_COMPOUND_SELECT, 200),
            (Setting::SQLITE_LIMIT_VDBE_OP, 1_000_000),
            (Setting::SQLITE_LIMIT_ATTACHED, 0),
            (Setting::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
            (Setting::SQLITE_LIMIT_TRIGGER_DEPTH, 30),
            (Setting::SQLITE_LIMIT_WORKER_THREADS, 0),
        ] {
            connection.set_limit(setting, most)?;
        }
        let (most, until, reached) = (limits.kilo_steps, Duration::from_secs(limits.seconds), Arc::clone(reached));
        let (began, mut steps) = (Instant::now(), 0);
        connection.progress_handler(
            STRIDE,
            Some(move || {
                steps += 1;
                let limit = match () {
                    () if steps > most => Limit::Steps(most),
                    () if began.elapsed() > until => Limit::Time(until.as_secs()),
                    () => return false,
                };
                *reached.lock().unwrap_or_else(PoisonError::into_inner) = Some(limit);
                true
            }),
        )?;
        let refused = Arc::clone(refused);
        connection.authorizer(Some(move |context: AuthContext<'_>| match refusal(&context.action, access) {
            None => Authorization::Allow,
            Some(why) => {
                refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
                Authorization::Deny
            }
        }))
    }

    /// Runs one statement and keeps at most `most` rows.
    fn query(&self, sql: &str, most: usize) -> Result<Table, SqlError> {
        if sql.contains('\0') {
            return Err(SqlError::Refused("the statement contains a NUL character".into()));
        }
        let mut batch = Batch::new(&self.connection, sql);
        let statement = batch.next().map_err(|error| self.explain(&error, sql))?;
        let Some(mut statement) = statement else {
            return Err(SqlError::Refused("there is no statement: write one SELECT".into()));
        };
        if !matches!(batch.next(), Ok(None)) {
            return Err(SqlError::Refused("there is more than one statement: run them one by one".into()));
        }
        let columns: Vec<String> = statement.column_names().map(ToString::to_string).collect();
        let mut table = Table { columns, ordered: orders_its_rows(sql), ..Table::default() };
        let reads = statement.readonly();
        let mut rows = statement.query([]).map_err(|error| self.explain(&error, sql))?;
        let (mut total, mut bytes, mut full) = (0, 0, false);
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => break table.total = Some(total),
                // What is shown is complete up to here; only the number of further rows is unknown.
                Err(_) if full && reads && self.limit().is_some() => break,
                Err(error) => return Err(self.explain(&error, sql)),
            };
            total += 1;
            if full {
                continue;
            }
            let values: Result<Vec<ValueRef<'_>>, _> = (0..table.columns.len()).map(|at| row.get_ref(at)).collect();
            let values = values.map_err(|error| self.explain(&error, sql))?;
            bytes += values.iter().map(size).sum::<usize>();
            full = table.rows.len() >= most || bytes > self.limits.bytes;
            if !full {
                table.rows.push(values.into_iter().map(Cell::from).collect());
            }
        }
        Ok(table)
    }

    fn examples(&self, kind: &str, name: &str) -> Result<String, SqlError> {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let mut out = String::new();
        // A view may be wrong or slow: that is no reason to show nothing.
        let rows = match self.query(&format!("SELECT * FROM {quoted} LIMIT {EXAMPLES}"), EXAMPLES) {
            Ok(rows) => rows,
            Err(error @ SqlError::Unusable(_)) => return Err(error),
            Err(error) => return Ok(format!("-- its rows cannot be read: {error}\n")),
        };
        if kind == "table" {
            match self.query(&format!("SELECT count(*) FROM {quoted}"), 1).map(|table| table.rows.concat()) {
                Ok(count) => count.iter().for_each(|count| out.push_str(&format!("-- {count} rows\n"))),
                Err(error) => out.push_str(&format!("-- its rows cannot be counted: {error}\n")),
            }
        }
        if !rows.rows.is_empty() {
            for line in rows.lines() {
                let _ = writeln!(out, "-- {line}");
            }
        }
        Ok(out)
    }

    fn limit(&self) -> Option<Limit> {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn explain(&self, error: &rusqlite::Error, sql: &str) -> SqlError {
        if let Some(limit) = self.limit() {
            return SqlError::Limit(limit);
        }
        match self.refused.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(why) => SqlError::Refused(why),
            None => SqlError::of(error, sql),
        }
    }
}

fn size(value: &ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => 16 + bytes.len(),
        _ => 16,
    }
}

fn connect(database: &Database, access: Access) -> Result<Connection, rusqlite::Error> {
    match (&database.0, access) {
        (Source::File { uri, .. }, Access::Reads) => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(uri, flags)
        }
        (Source::Bytes(bytes), access) => {
            let mut memory = Connection::open_in_memory()?;
            let size = bytes.len();
            memory.deserialize_read_exact(MAIN_DB, &mut &bytes[..], size, access == Access::Reads)?;
            Ok(memory)
        }
        (Source::File { path, .. }, Access::Writes) => Err(rusqlite::Error::InvalidPath(path.clone())),
    }
}

/// Pragmas that only tell something.
const TELLING: [&str; 13] = [
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "foreign_key_check",
    "integrity_check",
    "quick_check",
    "collation_list",
    "function_list",
    "data_version",
];

/// Why a statement that does this is refused, if it is.
fn refusal(action: &AuthAction<'_>, access: Access) -> Option<String> {
    use AuthAction as A;
    let why = match action {
        A::Select | A::Read { .. } | A::Recursive => return None,
        A::Function { function_name: name } => match name.to_ascii_lowercase().as_str() {
            "random" | "randomblob" => {
                format!("the function `{name}` is refused: the same query must give the same result")
            }
            "load_extension" | "readfile" | "writefile" | "edit" | "fts3_tokenizer" => {
                format!("the function `{name}` is refused: it reaches outside of the database")
            }
            _ => return None,
        },
        A::Pragma { pragma_name: name, .. } if TELLING.contains(&name.to_ascii_lowercase().as_str()) => return None,
        A::Pragma { pragma_name: name, .. } => {
            let known = TELLING.join(", ");
            format!("PRAGMA {name} is refused: only those that describe the database are allowed ({known})")
        }
        A::Attach { .. } | A::Detach { .. } => {
            "ATTACH, DETACH and VACUUM are refused: there is this one database".into()
        }
        A::Transaction { .. } | A::Savepoint { .. } => {
            "transactions are refused: every statement is a transaction of its own".into()
        }
        _ if access == Access::Reads => "the database is open for reading only: write a SELECT".into(),
        A::CreateTempTable { .. }
        | A::CreateTempView { .. }
        | A::CreateTempTrigger { .. }
        | A::CreateTempIndex { .. } => {
            "temporary tables are refused: nothing of them would be left for the next statement".into()
        }
        A::CreateVtable { .. } | A::DropVtable { .. } | A::Unknown { .. } => "virtual tables are refused".into(),
        _ => return None,
    };
    Some(why)
}
