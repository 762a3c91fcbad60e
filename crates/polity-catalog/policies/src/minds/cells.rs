//! Groups of similar agents: by fixed attributes, and by observations, which change.

use super::names::{RIGHT, invalid};
use super::templates::plain;
use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, Observation};
use polity_kernel::policy::{Person, PolicySetup};
use polity_kernel::population::Column;
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum number of groups.
pub const MOST: usize = 1000;
/// Maximum number of different values of a numeric column without `bins`.
const MOST_VALUES: usize = 100;

/// A criterion for groups: a column of the population, or an observed number.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct By {
    /// A column of the population. Each word is a level; numbers use `bins`, or each number is a level.
    column: Option<String>,
    /// A number that the agent observes, with `bins`.
    observation: Option<String>,
    /// Boundaries of number levels, ascending: [18, 65] gives `..18`, `18..65` and `65..`, each including its lower end.
    bins: Option<Vec<f64>>,
    /// Names of the levels, in order.
    labels: Option<Vec<String>>,
}

/// One criterion.
struct Dimension {
    name: String,
    labels: Vec<String>,
    /// Distance between successive levels, in cells.
    stride: usize,
}

/// Cells: one for every combination of levels, even if empty.
pub struct Cells {
    dimensions: Vec<Dimension>,
    /// The attributes' part of a cell's number, by row of the population's table; empty without attributes.
    of_row: Vec<u16>,
    /// Observed criteria: slot, boundaries, and the distance between successive levels.
    seen: Vec<(NumberSlot, Vec<f64>, usize)>,
    len: usize,
}

/// Returns the level of a number: how many boundaries it has reached.
fn level(bins: &[f64], x: f64) -> usize {
    bins.iter().take_while(|end| x >= **end).count()
}

impl By {
    /// Returns the key of the list entry with an error.
    fn key(i: usize, key: &str) -> String {
        format!("by[{i}].{key}")
    }

    fn checked_bins(&self, i: usize) -> Result<Option<&[f64]>, Invalid> {
        let Some(bins) = self.bins.as_deref() else { return Ok(None) };
        let rising = bins.windows(2).all(|pair| pair[0] < pair[1]) && bins.iter().all(|end| end.is_finite());
        Invalid::unless(
            rising && !bins.is_empty(),
            &By::key(i, "bins"),
            "must be one or more numbers in ascending order",
        )?;
        Ok(Some(bins))
    }

    /// Returns the names of the levels: the scenario's, or the default ones.
    fn names(&self, i: usize, own: Vec<String>) -> Result<Vec<String>, Invalid> {
        let Some(labels) = &self.labels else { return Ok(own) };
        let message = format!("there are {} levels ({}) but {} labels", own.len(), own.join(", "), labels.len());
        Invalid::unless(labels.len() == own.len(), &By::key(i, "labels"), message)?;
        Ok(labels.clone())
    }
}

/// Formats levels between boundaries, as the scenario's shares write them.
fn ranges(bins: &[f64]) -> Vec<String> {
    let end = |i: Option<usize>| i.and_then(|i| bins.get(i)).map_or(String::new(), |x| plain(*x));
    (0..=bins.len()).map(|i| format!("{}..{}", end(i.checked_sub(1)), end(Some(i)))).collect()
}

impl Cells {
    /// Binds the criteria to the population and the world's observations.
    ///
    /// # Errors
    /// Unknown names, bins that do not rise, more than [`MOST`] cells.
    pub fn open(by: &[By], setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let table = setup.shared_context.population.table();
        let mut cells = Cells { dimensions: Vec::new(), of_row: Vec::new(), seen: Vec::new(), len: 1 };
        for (i, of) in by.iter().enumerate() {
            let bins = of.checked_bins(i)?;
            let stride = cells.len;
            let (name, own) = match (&of.column, &of.observation) {
                (Some(name), None) => {
                    let wrong = |message: String| invalid(&By::key(i, "column"), message);
                    let index = table.index(name).map_err(|error| wrong(error.to_string()))?;
                    let Some((_, column)) = table.columns().nth(index) else { continue };
                    let (own, levels) = levels(column, bins).map_err(wrong)?;
                    cells.grow(i, own.len())?;
                    cells.of_row.resize(table.rows(), 0);
                    for (cell, level) in cells.of_row.iter_mut().zip(levels) {
                        *cell += (level * stride) as u16;
                    }
                    (name, own)
                }
                (None, Some(name)) => {
                    let wrong = |message: String| invalid(&By::key(i, "observation"), message);
                    let slot = setup.interface.number(setup.world, name).map_err(wrong)?;
                    Invalid::unless(
                        !name.starts_with(RIGHT),
                        &By::key(i, "observation"),
                        "agents cannot be grouped by right answers",
                    )?;
                    let Some(bins) = bins else {
                        return Err(invalid(
                            &By::key(i, "bins"),
                            "an observation is a number: give the boundaries of its levels",
                        ));
                    };
                    cells.grow(i, bins.len() + 1)?;
                    cells.seen.push((slot, bins.to_vec(), stride));
                    (name, ranges(bins))
                }
                _ => {
                    return Err(invalid(&format!("by[{i}]"), "write either `column: NAME` or `observation: NAME`"));
                }
            };
            let labels = of.names(i, own)?;
            cells.dimensions.push(Dimension { name: name.clone(), labels, stride });
        }
        Ok(cells)
    }

    fn grow(&mut self, i: usize, levels: usize) -> Result<(), Invalid> {
        let len = self.len * levels;
        let message =
            format!("{len} groups are too many (at most {MOST}): each may need a question per round; use fewer levels");
        Invalid::unless(len <= MOST, &format!("by[{i}]"), message)?;
        self.len = len;
        Ok(())
    }

    /// Returns the number of cells.
    #[must_use]
    pub fn count(&self) -> usize {
        self.len
    }

    /// Returns the cell of an agent with this observation.
    #[inline]
    #[must_use]
    pub fn of(&self, person: Person<'_>, observation: Observation<'_>) -> usize {
        let kept = match self.of_row.is_empty() {
            true => 0,
            false => usize::from(self.of_row[person.population.row(person.id) as usize]),
        };
        self.seen.iter().fold(kept, |cell, (slot, bins, stride)| cell + level(bins, observation.number(*slot)) * stride)
    }

    /// Returns what its agents have in common: (criterion, level), in the order declared.
    pub fn traits(&self, cell: usize) -> impl Iterator<Item = (&str, &str)> {
        self.dimensions.iter().map(move |dimension| {
            let level = cell / dimension.stride % dimension.labels.len();
            (dimension.name.as_str(), dimension.labels[level].as_str())
        })
    }

    /// Returns the names of the criteria, in the order declared.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.dimensions.iter().map(|dimension| dimension.name.as_str())
    }
}

/// Returns the levels of a column, and that of each row.
fn levels(column: &Column, bins: Option<&[f64]>) -> Result<(Vec<String>, Vec<usize>), String> {
    match (column, bins) {
        (Column::Text { .. }, Some(_)) => Err("it holds words, but `bins` are for numbers".into()),
        (Column::Text { codes, words }, None) => Ok((words.clone(), codes.iter().map(|code| *code as usize).collect())),
        (Column::Number(values), Some(bins)) => {
            Ok((ranges(bins), values.iter().map(|value| level(bins, *value)).collect()))
        }
        (Column::Number(values), None) => {
            let mut different = values.clone();
            different.sort_unstable_by(f64::total_cmp);
            different.dedup();
            if different.len() > MOST_VALUES {
                return Err(format!(
                    "it has {} different numbers; give the boundaries of levels with `bins`",
                    different.len()
                ));
            }
            let of_value = |value: &f64| different.partition_point(|other| other < value);
            Ok((different.iter().map(|value| plain(*value)).collect(), values.iter().map(of_value).collect()))
        }
    }
}
