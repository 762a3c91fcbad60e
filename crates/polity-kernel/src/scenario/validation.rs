//! Validation: distances between the results of a society and data.

use super::validation_source::{At, Distance, Reference, Source};
use super::{Inputs, Scenario};
use crate::distance::{kolmogorov_smirnov, total_variation, wasserstein};
use crate::interface::{Interface, WorldColumn};
use crate::population::{Column, Table};
use crate::society::Society;
use crate::tree::{Invalid, Node, TreeError, item, nearest};

/// A quantity of every agent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    World(usize),
    Attribute(usize),
}

/// Values, sorted.
#[derive(Clone, Debug, PartialEq)]
enum Sample {
    Numbers(Vec<f64>),
    Words(Vec<String>),
}

impl Sample {
    fn numbers(mut values: Vec<f64>) -> Self {
        // Agents without a value are not compared; NaN has no order.
        values.retain(|value| !value.is_nan());
        // Adding zero makes -0 and 0 one value.
        values.iter_mut().for_each(|value| *value += 0.0);
        values.sort_unstable_by(f64::total_cmp);
        Sample::Numbers(values)
    }

    fn words(mut words: Vec<String>) -> Self {
        words.sort_unstable();
        Sample::Words(words)
    }

    fn len(&self) -> usize {
        match self {
            Sample::Numbers(values) => values.len(),
            Sample::Words(words) => words.len(),
        }
    }
}

/// Equal bins. Values outside count in the first or the last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bins {
    low: f64,
    high: f64,
    n: u32,
}

/// One comparison of a society with data.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The quantity: a column of the world, or an attribute of the population.
    pub of: String,
    /// When.
    pub at: At,
    /// The reference: file and column.
    pub against: String,
    quantity: Quantity,
    reference: Sample,
    distances: Vec<Distance>,
    bins: Option<Bins>,
}

impl Check {
    /// Returns the number of values in the reference.
    #[must_use]
    pub fn reference_rows(&self) -> usize {
        self.reference.len()
    }

    /// Returns the distances of the living agents, and their number. Empty if no agent lives.
    #[must_use]
    pub fn measure(&self, society: &Society) -> (usize, Vec<(Distance, f64)>) {
        let people = &society.shared_context().population;
        let living = || (0..society.ids_assigned()).filter(|agent| !society.is_dead(*agent));
        let sample = match (self.quantity, &self.reference) {
            (Quantity::World(column), _) => {
                let values = society.column(column);
                Sample::numbers(
                    living()
                        .filter_map(|agent| values.get(agent as usize).copied())
                        .filter(|value| !value.is_nan())
                        .collect(),
                )
            }
            (Quantity::Attribute(column), Sample::Words(_)) => {
                Sample::words(living().map(|agent| people.cell(column, agent).to_string()).collect())
            }
            (Quantity::Attribute(column), Sample::Numbers(_)) => {
                let number = |agent| match people.cell(column, agent) {
                    crate::population::Cell::Number(value) => Some(value),
                    crate::population::Cell::Text(_) => None,
                };
                Sample::numbers(living().filter_map(number).collect())
            }
        };
        let distance = |distance: &Distance| Some((*distance, self.distance(*distance, &sample)?));
        (sample.len(), self.distances.iter().filter_map(distance).collect())
    }

    fn distance(&self, distance: Distance, sample: &Sample) -> Option<f64> {
        match (sample, &self.reference) {
            (Sample::Words(a), Sample::Words(b)) => total_variation(a, b),
            (Sample::Numbers(a), Sample::Numbers(b)) => match (distance, self.bins) {
                (Distance::Ks, _) => kolmogorov_smirnov(a, b),
                (Distance::Wasserstein, _) => wasserstein(a, b),
                (Distance::TotalVariation, None) => total_variation(a, b),
                (Distance::TotalVariation, Some(bins)) => {
                    let binned = |values: &[f64]| values.iter().map(|value| bins.of(*value)).collect::<Vec<u32>>();
                    total_variation(&binned(a), &binned(b))
                }
            },
            _ => None,
        }
    }
}

impl Bins {
    fn of(&self, value: f64) -> u32 {
        // As in the metric `histogram`, the cast maps everything below to 0.
        (((value - self.low) * f64::from(self.n) / (self.high - self.low)) as u32).min(self.n - 1)
    }
}

/// Returns the scenario's validations, ready to run on its society.
///
/// # Errors
/// An unknown quantity or column (the nearest is named), numbers against words, distances that words do not have, bins without a
/// range, a round that is never reached.
pub fn checks(scenario: &Scenario, inputs: &Inputs, society: &Society) -> Result<Vec<Check>, TreeError> {
    checks_of(scenario, inputs, society.shared_context().population.table(), society.interface())
}

/// Does the same for a society that has not been built.
pub(super) fn checks_of(
    scenario: &Scenario,
    inputs: &Inputs,
    people: &Table,
    interface: &Interface,
) -> Result<Vec<Check>, TreeError> {
    let read = |(i, node): (usize, &Node)| {
        let path = item("validate", i);
        let source: Source = node.read(&path)?;
        check(source, scenario, inputs, people, &interface.columns)
            .map_err(|invalid| TreeError { help: None, ..node.blame(&path, invalid) })
    };
    scenario.validate.iter().enumerate().map(read).collect()
}

fn check(
    source: Source,
    scenario: &Scenario,
    inputs: &Inputs,
    people: &Table,
    columns: &[WorldColumn],
) -> Result<Check, Invalid> {
    let invalid = |key: &str, message: String| Invalid { key: key.into(), message };
    let Source { of, at, against, distances, bins, range } = source;
    let attribute = people.columns().position(|(name, _)| name == of);
    let quantity = match (columns.iter().position(|column| column.name == of), attribute) {
        (Some(i), _) => Quantity::World(i),
        (None, Some(i)) => Quantity::Attribute(i),
        (None, None) => {
            let known: Vec<&str> = columns
                .iter()
                .map(|column| column.name.as_ref())
                .chain(people.columns().map(|(name, _)| name))
                .collect();
            let near = nearest(&of, known.iter().copied()).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            let message = format!("agents have no quantity `{of}`{near} (they have {})", known.join(", "));
            return Err(invalid("of", message));
        }
    };
    if let At::Round(round) = at
        && round >= scenario.rounds
    {
        return Err(invalid(
            "at",
            format!(
                "round {round} is never reached: the last of {} rounds is {}",
                scenario.rounds,
                i64::from(scenario.rounds) - 1
            ),
        ));
    }
    let (reference, mixture) = reference(&against, inputs)?;
    let of_words = match quantity {
        Quantity::World(_) => false,
        Quantity::Attribute(i) => matches!(people.columns().nth(i), Some((_, Column::Text { .. }))),
    };
    let words = matches!(reference, Sample::Words(_));
    if of_words != words {
        let kind = |words| if words { "words" } else { "numbers" };
        let message = format!(
            "column `{}` of `{}` holds {}, but `{of}` holds {}; compare like with like{mixture}",
            against.column,
            against.file,
            kind(words),
            kind(of_words)
        );
        return Err(invalid("against.column", message));
    }
    let distances = match distances {
        Some(distances) if distances.is_empty() => return Err(invalid("distances", "the list is empty".into())),
        Some(distances) => distances,
        None if words => vec![Distance::TotalVariation],
        // Numbers that are not categories hardly ever agree to the last digit: without bins all would differ.
        None if bins.is_none() => vec![Distance::Ks, Distance::Wasserstein],
        None => vec![Distance::Ks, Distance::Wasserstein, Distance::TotalVariation],
    };
    if let Some(i) = distances.iter().position(|distance| words && *distance != Distance::TotalVariation) {
        let message =
            format!("words have no order, so `{}` does not apply to them; use total-variation", distances[i].name());
        return Err(invalid(&item("distances", i), message));
    }
    let declared = match quantity {
        Quantity::World(i) => columns[i].range,
        Quantity::Attribute(_) => None,
    };
    let bins = match (bins, range.or(declared)) {
        (Some(_), _) if words => return Err(invalid("bins", "words are already categories and have no bins".into())),
        (Some(n), _) if !(1..=100_000).contains(&n) => {
            return Err(invalid("bins", format!("must lie in 1..=100000, is {n}")));
        }
        (Some(_), None) => {
            return Err(invalid(
                "bins",
                format!("`{of}` has no declared range; give one, for instance `range: [0, 1]`"),
            ));
        }
        (Some(n), Some((low, high))) if low < high && (high - low).is_finite() => Some(Bins { low, high, n }),
        (Some(_), Some((low, high))) => {
            return Err(invalid("range", format!("must be two numbers, the smaller first, is [{low}, {high}]")));
        }
        (None, _) if range.is_some() => return Err(invalid("range", "a range needs `bins`; give their number".into())),
        (None, _) => None,
    };
    let against = format!("{}:{}", against.file, against.column);
    Ok(Check { of, at, against, quantity, reference, distances, bins })
}

/// Returns the reference data, and an addition to error messages about them.
fn reference(against: &Reference, inputs: &Inputs) -> Result<(Sample, String), Invalid> {
    let invalid = |key: &str, message: String| Invalid { key: key.into(), message };
    let table: &Table = inputs
        .tables
        .get(&against.file)
        .ok_or_else(|| invalid("against.file", format!("`{}` was not read", against.file)))?;
    let index = table.index(&against.column).map_err(|error| invalid("against.column", error.to_string()))?;
    let column = table.columns().nth(index);
    let mixture = table.mixture(index);
    let sample = match column {
        Some((_, Column::Number(values))) => Sample::numbers(values.clone()),
        Some((_, Column::Text { codes, words })) => {
            Sample::words(codes.iter().filter_map(|code| words.get(*code as usize).cloned()).collect())
        }
        None => Sample::Numbers(Vec::new()),
    };
    match sample.len() {
        0 => Err(invalid("against.file", format!("`{}` has no rows to compare with", against.file))),
        _ => Ok((sample, mixture)),
    }
}
