//! The task: a file of items, and the scenario in which a method works on them.

use super::Entrant;
use super::entrant::folder_name;
use polity_driver::run::{Manifest, Prepared, prepare};
use polity_kernel::items::Shape;
use polity_kernel::population::Table;
use polity_kernel::scenario::Scenario;
use polity_kernel::tree::{Node, Value};
use polity_store::disk::Disk;
use polity_store::files::Reach;
use polity_store::files::table::read_table;
use polity_store::{DriveError, Fault};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Columns of plain items that are used under their own names.
const PLAIN: [&str; 2] = ["answer", "difficulty"];

/// Returns a task's name for people: the file's, without its extension.
pub(super) fn task_name(file: &Path) -> String {
    file.file_stem().map_or("task".into(), |stem| stem.to_string_lossy().into_owned())
}

/// A file of items.
#[derive(Clone, Debug)]
pub struct Task {
    path: PathBuf,
    /// Its name in the scenario, without the folder, so that the same task gives the same scenario from anywhere.
    file: String,
    /// Its format, inferred from its columns.
    pub shape: Shape,
    /// Rows.
    pub rows: u32,
    /// The columns in [`PLAIN`] that a plain file has.
    columns: Vec<&'static str>,
}

impl Task {
    /// Reads a file. Errors: [`DriveError::Input`] if it cannot be read or is empty.
    pub fn read(path: &Path) -> Result<Task, DriveError> {
        let table = read_table(path).map_err(|error| DriveError::Input(error.to_string()))?;
        let shape = Shape::of(&table);
        let fits = |name: &&str| match *name {
            "difficulty" => table.number_column(name).is_ok(),
            name => table.index(name).is_ok(),
        };
        let columns = if shape == Shape::Plain { PLAIN.into_iter().filter(fits).collect() } else { Vec::new() };
        Ok(Task {
            path: path.to_path_buf(),
            file: path.file_name().map_or("items".into(), |name| name.to_string_lossy().into_owned()),
            shape,
            rows: rows(&table, path)?,
            columns,
        })
    }

    /// The file, as given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name for people: the file's, without its extension.
    #[must_use]
    pub fn name(&self) -> String {
        task_name(&self.path)
    }

    /// The name of the folder of its runs.
    pub(super) fn folder(&self) -> String {
        folder_name(&self.name())
    }

    /// Describes the file.
    #[must_use]
    pub fn words(&self) -> String {
        let columns = match self.columns.as_slice() {
            [] => String::new(),
            columns => format!(", with the columns {}", columns.join(" and ")),
        };
        format!("{}: {} items of the shape `{}`{columns}", self.path.display(), self.rows, self.shape_word())
    }

    /// The shape as scenarios write it.
    #[must_use]
    pub fn shape_word(&self) -> String {
        let word = serde_json::to_value(self.shape).unwrap_or_default();
        word.as_str().unwrap_or("plain").to_owned()
    }

    /// Returns the number of items to use. Errors: [`DriveError::Input`] for none, and for more than there are.
    pub fn count(&self, limit: Option<u32>) -> Result<u32, DriveError> {
        match limit {
            None => Ok(self.rows),
            Some(0) => Err(DriveError::Input("--limit 0: at least one item is needed".into())),
            Some(limit) if limit > self.rows => Err(DriveError::Input(format!(
                "--limit {limit}: {} has only {} items. (To draw more with replacement, set `items.count` of a \
                 scenario: -P items.count={limit})",
                self.path.display(),
                self.rows
            ))),
            Some(limit) => Ok(limit),
        }
    }

    /// Returns the scenario in which a method works on the first `count` items, ready to run in `out`. The method's own parameters come
    /// after `edits`, which are those of all methods. Relative paths in both start at `from`, the folder of the command that gives them.
    ///
    /// Errors: those of scenarios; [`DriveError::Input`] for items without right answers.
    pub fn scenario(
        &self,
        entrant: &Entrant,
        model: &str,
        (edits, from): (&[(String, Node)], &Path),
        (count, seed): (u32, u64),
        out: &Path,
    ) -> Result<Prepared, DriveError> {
        let mut items = json!({ "file": self.file, "shape": self.shape_word(), "count": count });
        self.columns.iter().for_each(|column| items[*column] = (*column).into());
        let tree = scenario_on(entrant, model, edits, &self.name(), items, seed)?;
        let source = out.join(SCENARIO).display().to_string();
        let reach = Reach::from(self.path.parent().unwrap_or(Path::new("."))).with_edits_from(from);
        let edits = edits.iter().chain(&entrant.set).cloned().collect();
        let mut prepared = prepare(tree, &source, reach, "eval", edits)?;
        // They are part of the scenario stored with the run.
        prepared.edits.clear();
        let read = Scenario::read(&prepared.tree)?;
        if read.items.is_none_or(|items| items.shape == Shape::Plain && items.answer.is_none()) {
            return Err(DriveError::Input(format!(
                "{} names no right answers, so nothing can be scored; name the column that holds them: \
                 -P items.answer=COLUMN",
                self.path.display()
            )));
        }
        Ok(prepared)
    }
}

/// Returns the scenario in which a method works on these items, before the changes `edits`. `task` names the items.
pub(crate) fn scenario_on(
    entrant: &Entrant,
    model: &str,
    edits: &[(String, Node)],
    task: &str,
    items: serde_json::Value,
    seed: u64,
) -> Result<Node, DriveError> {
    let tree = json!({
        "polity": polity_kernel::scenario::VERSION,
        "name": format!("{} on {task}", entrant.slug()),
        "seed": seed,
        "rounds": entrant.rounds,
        "agents": entrant.members,
        "model": model,
        "method": { "kind": entrant.method },
        "items": items,
    });
    let mut tree = Node::from_json(&tree);
    // A listed team states its own size.
    if !entrant.sized
        && let Some((_, Node { value: Value::List(team), .. })) = edits.iter().find(|(path, _)| path == "team")
    {
        tree.edit("agents", Node::built(Value::Int(team.len() as i64)))?;
    }
    Ok(tree)
}

/// The name of the scenario file beside a run. It uses the run's own copy of the items, so that it needs nothing else.
pub(super) const SCENARIO: &str = "scenario.yaml";

/// Returns the text of that file. JSON is also YAML.
pub(super) fn scenario_beside(manifest: &Manifest) -> Result<String, DriveError> {
    let mut scenario = manifest.scenario.clone();
    if let Some(file) = scenario.pointer_mut("/items/file")
        && let Some(entry) = manifest.inputs.iter().find(|entry| Some(entry.path.as_str()) == file.as_str())
    {
        *file = format!("inputs/{}", entry.stored).into();
    }
    let text = serde_json::to_string_pretty(&scenario);
    text.map(|text| text + "\n").map_err(|e| DriveError::Folder(format!("{SCENARIO} cannot be written: {e}")))
}

/// Returns what is wrong with the scenario beside a run, if it has one.
///
/// Errors: [`DriveError::Disk`].
pub fn scenario_fault(disk: &dyn Disk, run: &Path, manifest: &Manifest) -> Result<Option<Fault>, DriveError> {
    let path = run.join(SCENARIO);
    if !disk.exists(&path).map_err(DriveError::disk(&path))? {
        return Ok(None);
    }
    let there = disk.read(&path).map_err(DriveError::disk(&path))?;
    let what = "it is not the scenario of this run; delete it, and the command that made the run writes it again";
    Ok((there != scenario_beside(manifest)?.as_bytes()).then(|| Fault::new(path, what)))
}

fn rows(table: &Table, path: &Path) -> Result<u32, DriveError> {
    match u32::try_from(table.rows()) {
        Ok(0) => Err(DriveError::Input(format!("{} has no rows", path.display()))),
        Ok(rows) => Ok(rows),
        Err(_) => Err(DriveError::Input(format!("{} has more rows than there are numbers for items", path.display()))),
    }
}
