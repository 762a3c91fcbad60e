//! Groups of agents that are alike: by attributes, which an agent keeps, and by what it sees, which changes.

use super::templates::plain;
use super::{RIGHT, invalid};
use polity_kernel::Invalid;
use polity_kernel::policy::{Binding, Person};
use polity_kernel::population::Column;
use polity_kernel::sight::{NumberSlot, Sight};
use schemars::JsonSchema;
use serde::Deserialize;

/// Most groups.
pub const MOST: usize = 1000;
/// Most different numbers of a column that are groups of their own without `bins`.
const MOST_VALUES: usize = 100;

/// What tells agents apart: a column of the population, or a number that the world shows.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct By {
    /// A column of the population. Of words each is a level; numbers take `bins`, or each is a level.
    column: Option<String>,
    /// A number that the agent sees, with `bins`.
    sight: Option<String>,
    /// Where levels of numbers meet, ascending: [18, 65] makes `..18`, `18..65` and `65..`, each with its lower end.
    bins: Option<Vec<f64>>,
    /// What the levels are called instead, in order.
    labels: Option<Vec<String>>,
}

/// One thing that tells agents apart.
struct Dimension {
    name: String,
    labels: Vec<String>,
    /// From a level to the next, counted in cells.
    stride: usize,
}

/// Cells: every combination of levels is one, also if nobody is in it.
pub struct Cells {
    dimensions: Vec<Dimension>,
    /// The part of a cell's number that attributes make, by row of the population's table; empty where no attribute does.
    of_row: Vec<u16>,
    /// What is seen and tells agents apart: where, where its levels meet, and from a level to the next.
    seen: Vec<(NumberSlot, Vec<f64>, usize)>,
    len: usize,
}

/// The level of a number: how many ends it has reached.
fn level(bins: &[f64], x: f64) -> usize {
    bins.iter().take_while(|end| x >= **end).count()
}

impl By {
    /// The key of the list's entry that an error is about.
    fn key(i: usize, key: &str) -> String {
        format!("by[{i}].{key}")
    }

    fn checked_bins(&self, i: usize) -> Result<Option<&[f64]>, Invalid> {
        let Some(bins) = self.bins.as_deref() else { return Ok(None) };
        let rising = bins.windows(2).all(|pair| pair[0] < pair[1]) && bins.iter().all(|end| end.is_finite());
        Invalid::unless(rising && !bins.is_empty(), &By::key(i, "bins"), "must be numbers that rise, one at least")?;
        Ok(Some(bins))
    }

    /// The names of the levels: the scenario's, or their own.
    fn names(&self, i: usize, own: Vec<String>) -> Result<Vec<String>, Invalid> {
        let Some(labels) = &self.labels else { return Ok(own) };
        let message = format!("there are {} levels ({}) and {} labels", own.len(), own.join(", "), labels.len());
        Invalid::unless(labels.len() == own.len(), &By::key(i, "labels"), message)?;
        Ok(labels.clone())
    }
}

/// Levels between ends, as the scenario's shares write them.
fn ranges(bins: &[f64]) -> Vec<String> {
    let end = |i: Option<usize>| i.and_then(|i| bins.get(i)).map_or(String::new(), |x| plain(*x));
    (0..=bins.len()).map(|i| format!("{}..{}", end(i.checked_sub(1)), end(Some(i)))).collect()
}

impl Cells {
    /// Binds what tells agents apart to the population and to what the world shows.
    ///
    /// # Errors
    /// Names that are not there, bins that do not rise, more than [`MOST`] cells.
    pub fn open(by: &[By], binding: &Binding<'_>) -> Result<Self, Invalid> {
        let table = binding.commons.population.table();
        let mut cells = Cells { dimensions: Vec::new(), of_row: Vec::new(), seen: Vec::new(), len: 1 };
        for (i, of) in by.iter().enumerate() {
            let bins = of.checked_bins(i)?;
            let stride = cells.len;
            let (name, own) = match (&of.column, &of.sight) {
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
                    let wrong = |message: String| invalid(&By::key(i, "sight"), message);
                    let slot = binding.interface.number(binding.world, name).map_err(wrong)?;
                    Invalid::unless(!name.starts_with(RIGHT), &By::key(i, "sight"), "right answers tell nobody apart")?;
                    let Some(bins) = bins else {
                        return Err(invalid(
                            &By::key(i, "bins"),
                            "what is seen is a number: where do its levels meet?",
                        ));
                    };
                    cells.grow(i, bins.len() + 1)?;
                    cells.seen.push((slot, bins.to_vec(), stride));
                    (name, ranges(bins))
                }
                _ => return Err(invalid(&format!("by[{i}]"), "write `column: NAME` or `sight: NAME`, one of the two")),
            };
            let labels = of.names(i, own)?;
            cells.dimensions.push(Dimension { name: name.clone(), labels, stride });
        }
        Ok(cells)
    }

    fn grow(&mut self, i: usize, levels: usize) -> Result<(), Invalid> {
        let len = self.len * levels;
        let message = format!("{len} groups are more than {MOST}: each may be a question a round; take fewer levels");
        Invalid::unless(len <= MOST, &format!("by[{i}]"), message)?;
        self.len = len;
        Ok(())
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.len
    }

    /// The cell of an agent that sees this.
    #[inline]
    #[must_use]
    pub fn of(&self, person: Person<'_>, sight: Sight<'_>) -> usize {
        let kept = match self.of_row.is_empty() {
            true => 0,
            false => usize::from(self.of_row[person.population.row(person.id) as usize]),
        };
        self.seen.iter().fold(kept, |cell, (slot, bins, stride)| cell + level(bins, sight.number(*slot)) * stride)
    }

    /// What its agents have in common: (what, level), in the order declared.
    pub fn traits(&self, cell: usize) -> impl Iterator<Item = (&str, &str)> {
        self.dimensions.iter().map(move |dimension| {
            let level = cell / dimension.stride % dimension.labels.len();
            (dimension.name.as_str(), dimension.labels[level].as_str())
        })
    }

    /// What tells agents apart, in the order declared.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.dimensions.iter().map(|dimension| dimension.name.as_str())
    }
}

/// The levels of a column, and that of each row.
fn levels(column: &Column, bins: Option<&[f64]>) -> Result<(Vec<String>, Vec<usize>), String> {
    match (column, bins) {
        (Column::Text { .. }, Some(_)) => Err("it holds words, which have no bins".into()),
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
                    "it has {} different numbers; say where levels meet, with `bins`",
                    different.len()
                ));
            }
            let of_value = |value: &f64| different.partition_point(|other| other < value);
            Ok((different.iter().map(|value| plain(*value)).collect(), values.iter().map(of_value).collect()))
        }
    }
}
