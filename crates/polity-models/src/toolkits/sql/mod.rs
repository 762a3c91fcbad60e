//! `sql`: a SQLite database as tools, read within limits or changed version by version. README.md says what is refused.

mod database;
mod outcome;
mod table;
#[cfg(test)]
mod tests;
mod versions;

pub use database::{Database, Limits};
pub use outcome::{Limit, SqlError};
pub use table::{Cell, Table, same_result};

use super::{Calling, Toolkit};
use crate::models::ProviderError;
use polity_kernel::Invalid;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::tool::{Arguments, EffectClass, OutsideToolkit, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use versions::Versions;

/// The toolkit's name.
pub const NAME: &str = "sql";
/// Bytes of values that a query keeps while its result is written.
const KEPT: usize = 16 << 20;

/// What a scenario may set.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlParams {
    /// The SQLite database. The file itself is never changed.
    pub file: PathBuf,
    /// Whether statements may change data and schema. Each change makes a new version, which belongs to the session.
    #[serde(default)]
    pub write: bool,
    /// Rows of a result that are shown, at most 10,000.
    #[serde(default = "default_rows")]
    pub rows: usize,
    /// Bytes of a result that are shown, 100 to 1,000,000.
    #[serde(default = "default_bytes")]
    pub bytes: usize,
    /// Instructions of SQLite that a call may take, in millions, 1 to 10,000.
    #[serde(default = "default_steps")]
    pub million_steps: u64,
    /// Seconds that a call may take, 1 to 300; a safety net, because `million_steps` is the same on every machine.
    #[serde(default = "default_seconds")]
    pub seconds: u64,
}

fn default_rows() -> usize {
    100
}

fn default_bytes() -> usize {
    20_000
}

fn default_steps() -> u64 {
    50
}

fn default_seconds() -> u64 {
    5
}

/// Adds the declaration.
pub(super) fn register(registry: &mut Registry) {
    registry.outside_toolkit::<Sql>(LeafFiles { readme: include_str!("README.md"), ..LeafFiles::default() });
}

impl OutsideToolkit for Sql {
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "A SQLite database, read within limits or changed version by version";
    type Params = SqlParams;

    fn tools(params: SqlParams, _: Option<&[ToolSpec]>) -> Result<Vec<ToolSpec>, Invalid> {
        let extension = params.file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let known = ["db", "sqlite", "sqlite3"].contains(&extension.to_ascii_lowercase().as_str());
        Invalid::unless(
            known,
            "file",
            "must name a SQLite database: a file that ends in `.db`, `.sqlite` or `.sqlite3`",
        )?;
        Ok(specs(params.write))
    }
}

/// The toolkit.
pub struct Sql(Arc<Inner>);

struct Inner {
    data: Data,
    limits: Limits,
    /// Bytes of a result.
    bytes: usize,
}

enum Data {
    Fixed(Database),
    Versioned(Versions),
}

impl Sql {
    /// Opens the database of `params.file`. With `write`, versions are kept in the folder `store`, which is made if need be; otherwise it is
    /// not touched.
    ///
    /// # Errors
    /// The parameter that does not fit: a limit out of range, or what is wrong with the file.
    pub fn open(params: &SqlParams, store: &Path) -> Result<Self, Invalid> {
        Invalid::within(1..=10_000, "rows", params.rows)?;
        Invalid::within(100..=1_000_000, "bytes", params.bytes)?;
        Invalid::within(1..=10_000, "million_steps", params.million_steps)?;
        Invalid::within(1..=300, "seconds", params.seconds)?;
        let of_file = |message: String| Invalid { key: "file".into(), message };
        let database = Database::open_file(&params.file).map_err(|error| of_file(error.to_string()))?;
        let data = match params.write {
            false => Data::Fixed(database),
            true => Data::Versioned(Versions::begin(&params.file, store).map_err(of_file)?),
        };
        let kilo_steps = params.million_steps * 1_000;
        let limits = Limits { rows: params.rows, bytes: KEPT, kilo_steps, seconds: params.seconds };
        Ok(Sql(Arc::new(Inner { data, limits, bytes: params.bytes })))
    }
}

/// The tools of a database that may be written, or not.
fn specs(write: bool) -> Vec<ToolSpec> {
    let schema = json!({
        "type": "object",
        "properties": {"table": {"type": "string", "description": "one table; all if left out"}},
        "additionalProperties": false,
    });
    let query = json!({
        "type": "object",
        "properties": {"sql": {"type": "string", "description": "one statement in the dialect of SQLite"}},
        "required": ["sql"],
        "additionalProperties": false,
    });
    let (runs, effect) = match write {
        false => ("Runs one SELECT and shows its rows.", EffectClass::Reads),
        true => ("Runs one statement, which may change the database, and shows its rows.", EffectClass::Writes),
    };
    let tells = "Shows tables: their CREATE statements, numbers of rows and example rows.";
    let specs = [
        ToolSpec::new("sql_schema", tells, &schema, EffectClass::Reads),
        ToolSpec::new("sql_query", runs, &query, effect),
    ];
    match write {
        false => specs.into(),
        true => specs.map(|spec| spec.in_session(NAME)).into(),
    }
}

impl Toolkit for Sql {
    fn tools(&self) -> Vec<ToolSpec> {
        specs(matches!(self.0.data, Data::Versioned(_)))
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Arguments, state: &'a str) -> Calling<'a> {
        let text = |name: &str| arguments.get(name).and_then(|value| value.as_str()).map(str::to_string);
        let (inner, state) = (Arc::clone(&self.0), state.to_string());
        let work: Box<dyn FnOnce() -> Result<ToolOutput, ProviderError> + Send> = match (tool, text("sql")) {
            ("sql_schema", _) => {
                let table = text("table");
                Box::new(move || inner.schema(table.as_deref(), state))
            }
            ("sql_query", Some(sql)) => Box::new(move || inner.query(&sql, state)),
            ("sql_query", None) => Box::new(|| Ok(ToolOutput { state, ..ToolOutput::error("`sql` is missing") })),
            (other, _) => {
                let why = format!("the toolkit `{NAME}` has no tool `{other}`");
                Box::new(move || Err(ProviderError::Never { why }))
            }
        };
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(work).await;
            done.unwrap_or_else(|error| Err(ProviderError::Never { why: format!("`{NAME}` broke off: {error}") }))
        })
    }
}

impl Inner {
    fn schema(&self, table: Option<&str>, state: String) -> Result<ToolOutput, ProviderError> {
        let shown = match &self.data {
            Data::Fixed(database) => database.schema(table, &self.limits),
            Data::Versioned(versions) => versions.database(&state)?.schema(table, &self.limits),
        };
        let cut = |text: String| match text.len() > self.bytes {
            false => text,
            true => {
                let end = text.floor_char_boundary(self.bytes);
                format!("{}\n(cut at {} bytes: ask for one `table`)", &text[..end], self.bytes)
            }
        };
        outcome(shown.map(|text| (cut(polity_store::printable::printable(&text).into_owned()), state.clone())), state)
    }

    fn query(&self, sql: &str, state: String) -> Result<ToolOutput, ProviderError> {
        let done = match &self.data {
            Data::Fixed(database) => database.run(sql, &self.limits).map(|table| (table, String::new())),
            Data::Versioned(versions) => match versions.database(&state)?.edit(sql, &self.limits) {
                Err(error) => Err(error),
                Ok((table, bytes)) => Ok((table, versions.keep(&bytes)?)),
            },
        };
        outcome(done.map(|(table, after)| (table.show(self.bytes), after)), state)
    }
}

/// What a call returns: a text and the state after it, or an error that leaves the state before.
fn outcome(done: Result<(String, String), SqlError>, before: String) -> Result<ToolOutput, ProviderError> {
    match done {
        Ok((text, state)) => Ok(ToolOutput { text, error: false, state }),
        Err(SqlError::Unusable(why)) => Err(ProviderError::Fatal { why: format!("`{NAME}`: {why}") }),
        Err(error) => Ok(ToolOutput { state: before, ..ToolOutput::error(error.to_string()) }),
    }
}
