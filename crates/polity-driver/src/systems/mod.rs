//! Published systems: the index of all systems known to the project (`systems/index.tsv`), and the implemented ones
//! (`systems/NAME/system.yaml`), whose claims can be checked.

mod check;
pub mod entry;
mod outcome;
mod plan;

pub use check::{ArmMean, Asked, CLAIMS_FILE, Checked, ClaimReport, DRAWS, REGION, Variant};
pub use outcome::QUANTITIES;
pub use plan::{CHECK_FILE, CheckPlan, is_check};

use self::entry::{CONSENT, System};
use crate::run::Engine;
use polity_kernel::registry::Registry;
use polity_kernel::tree::{Invalid, TreeError, nearest};
use polity_store::DriveError;
use polity_store::files::{self, read_bytes};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The file of a system in its folder.
const FILE: &str = "system.yaml";
/// The index of all systems.
const INDEX: &str = "index.tsv";
/// The columns of the index.
const COLUMNS: [&str; 5] = ["id", "name", "group", "role", "works_when"];

/// A row of the index; it does not imply an implementation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number.
    pub id: u32,
    /// Its common name.
    pub name: String,
    /// What kind of system it is.
    pub group: String,
    /// Its intended role in the project.
    pub role: String,
    /// What must be shown for it to count as working.
    pub works_when: String,
}

/// An implemented system.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of its folder.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The contents of its file.
    pub system: System,
}

impl Entry {
    /// What this process lacks of what the system needs.
    fn lacks(&self, engine: &Engine<'_>) -> Option<String> {
        self.system.needs.iter().find_map(|need| match need.as_str() {
            CONSENT => (!engine.outside.allow_tools)
                .then(|| "its tools start programs or ask hosts; --allow-tools allows that".to_owned()),
            need => engine.providers.for_model(need).and_then(|provider| provider.check(need)).err(),
        })
    }
}

/// All systems of a folder.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// The rows of the index, in order.
    pub rows: Vec<Row>,
    /// Implemented systems, by name.
    pub entries: Vec<Entry>,
}

impl Catalogue {
    /// Reads the index and all systems of a folder.
    ///
    /// # Errors
    /// With file and location: unreadable files, systems that match no row or no leaf.
    pub fn read(folder: &Path, registry: &Registry) -> Result<Catalogue, DriveError> {
        let rows = read_index(&folder.join(INDEX))?;
        let unreadable = |error: std::io::Error| {
            DriveError::Input(format!("the folder {} cannot be read: {error}", folder.display()))
        };
        let mut names = Vec::new();
        for found in std::fs::read_dir(folder).map_err(unreadable)? {
            let found = found.map_err(unreadable)?;
            if found.path().join(FILE).is_file() {
                names.push(found.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let known: BTreeSet<u32> = rows.iter().map(|row| row.id).collect();
        let mut taken: BTreeMap<u32, String> = BTreeMap::new();
        let mut entries = Vec::new();
        for name in &names {
            let folder = folder.join(name);
            let check = |system: &System| {
                for (i, id) in system.ids.iter().enumerate() {
                    let at = format!("ids[{i}]");
                    Invalid::unless(known.contains(id), &at, format!("{INDEX} has no row {id}"))?;
                    if let Some(other) = taken.get(id) {
                        return Err(Invalid {
                            key: at,
                            message: format!("row {id} already belongs to the system `{other}`"),
                        });
                    }
                }
                check_map(system, name, &all)?;
                check_leaves(system, registry)
            };
            let system = read_system(&folder.join(FILE), &check)?;
            taken.extend(system.ids.iter().map(|id| (*id, name.clone())));
            entries.push(Entry { name: name.clone(), folder, system });
        }
        Ok(Catalogue { rows, entries })
    }

    /// The implemented system of a row, if any.
    #[must_use]
    pub fn of(&self, id: u32) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.system.ids.contains(&id))
    }

    /// The system of this name or row.
    ///
    /// # Errors
    /// Names the nearest one, or says that it is only planned.
    pub fn find(&self, name: &str) -> Result<&Entry, DriveError> {
        let found = self.entries.iter().find(|entry| entry.name == name);
        if let Some(entry) = found.or_else(|| self.of(name.parse().ok()?)) {
            return Ok(entry);
        }
        if let Some(row) = self.row(name) {
            let what =
                format!("`{name}` is only planned: this build does not implement {} ({})", row.name, row.works_when);
            return Err(DriveError::Input(what));
        }
        let names = self.entries.iter().map(|entry| entry.name.as_str());
        let meant = nearest(name, names).map_or(String::new(), |near| format!(", did you mean `{near}`?"));
        Err(DriveError::Input(format!("there is no system `{name}`{meant}; `polity systems list` lists all")))
    }

    /// The row with this number or name.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| name.parse() == Ok(row.id) || row.name == name)
    }
}

fn read_index(path: &Path) -> Result<Vec<Row>, DriveError> {
    let wrong = |what: String| DriveError::Input(format!("{}: {what}", path.display()));
    let bytes = read_bytes(path).map_err(|error| DriveError::Input(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text".into()))?;
    let mut lines = text.lines();
    if lines.next() != Some(COLUMNS.join("\t").as_str()) {
        return Err(wrong(format!("its first line must be the columns {}, separated by tabs", COLUMNS.join(", "))));
    }
    let mut rows: Vec<Row> = Vec::new();
    for (i, line) in lines.enumerate() {
        let at = |what: &str| wrong(format!("line {}: {what}", i + 2));
        let cells: Vec<&str> = line.split('\t').collect();
        let [id, name, group, role, works_when] = cells[..] else {
            return Err(at(&format!("it has {} cells, not {}", cells.len(), COLUMNS.len())));
        };
        let id = id.parse().map_err(|_| at("the id is not a whole number"))?;
        if rows.last().is_some_and(|row| row.id >= id) {
            return Err(at("ids must increase from line to line"));
        }
        let text = |cell: &str| cell.to_string();
        rows.push(Row { id, name: text(name), group: text(group), role: text(role), works_when: text(works_when) });
    }
    Ok(rows)
}

/// An error in a file, shown with its location.
fn shown(error: &TreeError, path: &Path, text: &str) -> DriveError {
    let shown = files::render(error, &path.display().to_string(), text, false);
    DriveError::Input(shown.trim_end().to_string())
}

fn read_system(path: &Path, check: &dyn Fn(&System) -> Result<(), Invalid>) -> Result<System, DriveError> {
    let (text, tree) =
        files::read_file(path).map_err(|error| DriveError::Input(error.render(false).trim_end().to_string()))?;
    let checked = System::read(&tree).and_then(|system| match check(&system) {
        Ok(()) => Ok(system),
        Err(invalid) => Err(tree.blame("", invalid)),
    });
    checked.map_err(|error| shown(&error, path, &text))
}

/// Checks that the examples on the map of a survey are other entries.
fn check_map(system: &System, own: &str, names: &BTreeSet<&str>) -> Result<(), Invalid> {
    for (i, feature) in system.map.iter().enumerate() {
        for (j, name) in feature.systems.iter().enumerate() {
            let meant =
                nearest(name, names.iter().copied()).map_or(String::new(), |n| format!(", did you mean `{n}`?"));
            let at = format!("map[{i}].systems[{j}]");
            Invalid::unless(names.contains(name.as_str()), &at, format!("there is no system `{name}`{meant}"))?;
            Invalid::unless(name != own, &at, "a survey is no example of itself; name its claims under `claims`")?;
        }
    }
    Ok(())
}

fn check_leaves(system: &System, registry: &Registry) -> Result<(), Invalid> {
    let known: Vec<String> = registry
        .leaves()
        .iter()
        .flat_map(|(kind, cards)| cards.iter().map(move |card| format!("{kind}/{}", card.name)))
        .collect();
    for (i, leaf) in system.leaves.iter().enumerate() {
        let meant =
            nearest(leaf, known.iter().map(String::as_str)).map_or(String::new(), |n| format!(", did you mean `{n}`?"));
        Invalid::unless(known.contains(leaf), &format!("leaves[{i}]"), format!("there is no leaf `{leaf}`{meant}"))?;
    }
    Ok(())
}
