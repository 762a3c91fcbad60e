//! Validation: distances between what a society shows and data.

use super::{FileKind, FileWish, Inputs, Scenario};
use crate::distance::{kolmogorov_smirnov, total_variation, wasserstein};
use crate::population::{Column, Table};
use crate::society::Society;
use crate::tree::{Invalid, Node, TreeError, Value, item, nearest};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::fmt;

/// When a society is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Before the first round.
    First,
    /// After the last round.
    Last,
    /// After this round, counted from 0.
    Round(u32),
}

impl<'de> Deserialize<'de> for At {
    // By hand, as `Count`: an untagged enum would lose the place of an error.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl serde::de::Visitor<'_> for Read {
            type Value = At;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`first`, `last` or the number of a round")
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<At, E> {
                match word {
                    "first" => Ok(At::First),
                    "last" => Ok(At::Last),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(word), &self)),
                }
            }
            fn visit_u64<E: serde::de::Error>(self, round: u64) -> Result<At, E> {
                u32::try_from(round).map(At::Round).map_err(|_| E::custom("there is no such round"))
            }
            fn visit_i64<E: serde::de::Error>(self, round: i64) -> Result<At, E> {
                u32::try_from(round).map(At::Round).map_err(|_| E::custom("there is no such round"))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// How far apart two samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// Two-sample Kolmogorov–Smirnov statistic.
    Ks,
    /// Wasserstein-1 distance, in the unit of the values.
    Wasserstein,
    /// Total variation over categories, or over bins where they are declared.
    TotalVariation,
}

impl Distance {
    /// Its name in scenarios and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Distance::Ks => "ks",
            Distance::Wasserstein => "wasserstein",
            Distance::TotalVariation => "total-variation",
        }
    }
}

/// A comparison of a society with data.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ValidationSource")]
pub(super) struct Source {
    /// What is compared: a column of the world, or an attribute of the population.
    of: String,
    /// When: `first`, `last` or the number of a round. Default: `last`.
    #[serde(default = "last")]
    #[schemars(schema_with = "at")]
    at: At,
    /// The data it is compared with.
    against: Reference,
    /// How the distance is measured. Default: total-variation for words, ks and wasserstein for numbers, all three with `bins`.
    distances: Option<Vec<Distance>>,
    /// Bins of a total variation of numbers. Without it, numbers have none.
    bins: Option<u32>,
    /// The ends of the bins. Default: the smallest and the largest value of both samples.
    range: Option<(f64, f64)>,
}

fn at(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "enum": ["first", "last"] }, { "type": "integer", "minimum": 0 }] })
}

fn last() -> At {
    At::Last
}

/// A column of a table.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Reference {
    /// A CSV, TSV or JSONL file, relative to the scenario.
    file: String,
    /// Its column.
    column: String,
}

/// The files that validations name.
pub(super) fn files(validations: &[Node]) -> impl Iterator<Item = FileWish> + '_ {
    validations.iter().enumerate().filter_map(|(i, node)| match node.get("against").and_then(|a| a.get("file")) {
        Some(Node { value: Value::Text(path), .. }) => {
            let key = format!("{}.against.file", item("validate", i));
            Some(FileWish { path: path.clone(), key, kind: FileKind::Table })
        }
        _ => None,
    })
}

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
        // Who has no value is not compared; NaN has no place among numbers.
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

/// Equal bins; what lies outside is counted in the first or the last.
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
    /// What with: file and column.
    pub against: String,
    quantity: Quantity,
    reference: Sample,
    distances: Vec<Distance>,
    bins: Option<Bins>,
}

impl Check {
    /// The number of values that the reference has.
    #[must_use]
    pub fn reference_rows(&self) -> usize {
        self.reference.len()
    }

    /// The distances of the living agents, and how many those are. Empty when nobody lives.
    #[must_use]
    pub fn measure(&self, society: &Society) -> (usize, Vec<(Distance, f64)>) {
        let people = &society.commons().population;
        let living = || (0..society.born()).filter(|agent| !society.is_dead(*agent));
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
        // As the metric `histogram` does it: the cast takes everything below to 0.
        (((value - self.low) * f64::from(self.n) / (self.high - self.low)) as u32).min(self.n - 1)
    }
}

/// The scenario's validations, ready to be made on its society.
///
/// # Errors
/// A quantity or a column that is not there (the nearest is named), numbers against words, distances that words do not have, bins
/// without a range, a round that is never reached.
pub fn checks(scenario: &Scenario, inputs: &Inputs, society: &Society) -> Result<Vec<Check>, TreeError> {
    let read = |(i, node): (usize, &Node)| {
        let path = item("validate", i);
        let source: Source = node.read(&path)?;
        check(source, scenario, inputs, society)
            .map_err(|invalid| TreeError { help: None, ..node.blame(&path, invalid) })
    };
    scenario.validate.iter().enumerate().map(read).collect()
}

fn check(source: Source, scenario: &Scenario, inputs: &Inputs, society: &Society) -> Result<Check, Invalid> {
    let invalid = |key: &str, message: String| Invalid { key: key.into(), message };
    let Source { of, at, against, distances, bins, range } = source;
    let people = society.commons().population.table();
    let columns = &society.interface().columns;
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
                "round {round} is never reached: the last of {} is {}",
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
            "column `{}` of `{}` holds {}, and `{of}` {}; compare like with like{mixture}",
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
        // Numbers that are no categories hardly ever agree to the last digit: without bins all would differ.
        None if bins.is_none() => vec![Distance::Ks, Distance::Wasserstein],
        None => vec![Distance::Ks, Distance::Wasserstein, Distance::TotalVariation],
    };
    if let Some(i) = distances.iter().position(|distance| words && *distance != Distance::TotalVariation) {
        let message =
            format!("words have no order, so `{}` says nothing of them; take total-variation", distances[i].name());
        return Err(invalid(&item("distances", i), message));
    }
    let declared = match quantity {
        Quantity::World(i) => columns[i].range,
        Quantity::Attribute(_) => None,
    };
    let bins = match (bins, range.or(declared)) {
        (Some(_), _) if words => return Err(invalid("bins", "words are categories already, and have no bins".into())),
        (Some(n), _) if !(1..=100_000).contains(&n) => {
            return Err(invalid("bins", format!("must lie in 1..=100000, is {n}")));
        }
        (Some(_), None) => {
            return Err(invalid("bins", format!("`{of}` has no declared range; give one, `range: [0, 1]`")));
        }
        (Some(n), Some((low, high))) if low < high && (high - low).is_finite() => Some(Bins { low, high, n }),
        (Some(_), Some((low, high))) => {
            return Err(invalid("range", format!("must be two numbers, the smaller first, is [{low}, {high}]")));
        }
        (None, _) if range.is_some() => return Err(invalid("range", "a range is that of `bins`; say how many".into())),
        (None, _) => None,
    };
    let against = format!("{}:{}", against.file, against.column);
    Ok(Check { of, at, against, quantity, reference, distances, bins })
}

/// The data, and what a message adds about them.
fn reference(against: &Reference, inputs: &Inputs) -> Result<(Sample, String), Invalid> {
    let invalid = |key: &str, message: String| Invalid { key: key.into(), message };
    let table: &Table = inputs
        .tables
        .get(&against.file)
        .ok_or_else(|| invalid("against.file", format!("`{}` was not read", against.file)))?;
    let index = table.index(&against.column).map_err(|error| invalid("against.column", error.to_string()))?;
    let column = table.columns().nth(index);
    let mixture = column.map_or(String::new(), |(_, column)| column.mixture());
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
