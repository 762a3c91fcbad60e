//! Personalities: columns of the population that multiply what a user is likely to do.

use polity_kernel::Invalid;
use polity_kernel::policy::{Binding, Person};
use polity_kernel::population::{Column, NumberColumn, TextColumn};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A trait lies at most so many standard deviations from the mean: what is farther is another scale.
const FARTHEST: f64 = 10.0;
/// A standard deviation multiplies by at most so much, and divides by no more.
const MOST: f64 = 100.0;

/// What a standard deviation of a trait multiplies probabilities by; 1: nothing.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rates {
    /// That of liking a post.
    pub like: f64,
    /// That of disliking one.
    pub dislike: f64,
    /// That of passing one on.
    pub share: f64,
    /// That of commenting on one.
    pub comment: f64,
    /// That of writing a post.
    pub post: f64,
    /// That of following an author.
    pub follow: f64,
    /// That of being raised by a post too far away.
    pub arousal: f64,
    /// That of calming down.
    pub calm: f64,
}

impl Default for Rates {
    fn default() -> Self {
        let one = 1.0;
        Rates { like: one, dislike: one, share: one, comment: one, post: one, follow: one, arousal: one, calm: one }
    }
}

impl Rates {
    fn all(&mut self) -> [(&'static str, &mut f64); 8] {
        let Rates { like, dislike, share, comment, post, follow, arousal, calm } = self;
        [
            ("like", like),
            ("dislike", dislike),
            ("share", share),
            ("comment", comment),
            ("post", post),
            ("follow", follow),
            ("arousal", arousal),
            ("calm", calm),
        ]
    }
}

/// A trait of personality that is a column of the population.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trait {
    /// The column: standard scores (0 the mean, 1 a standard deviation above it), or words.
    column: String,
    /// The standard score of each word, where the column holds words.
    levels: Option<BTreeMap<String, f64>>,
    /// What a standard deviation multiplies.
    rates: Rates,
}

/// Where the standard score of somebody stands.
enum Score {
    Number(NumberColumn),
    Words(TextColumn, BTreeMap<String, f64>),
}

/// The traits of users.
pub struct Traits(Vec<(Score, Rates)>);

impl Traits {
    /// Binds them to the population.
    ///
    /// # Errors
    /// Columns that are not there, scores that are none, words without a score, rates that multiply by nothing sensible.
    pub fn open(traits: Vec<Trait>, binding: &Binding<'_>) -> Result<Self, Invalid> {
        let of = |(i, of): (usize, Trait)| {
            let at = |key: &str| format!("traits[{i}].{key}");
            let mut rates = of.rates;
            for (name, rate) in rates.all() {
                Invalid::within(1.0 / MOST..=MOST, &at(&format!("rates.{name}")), *rate)?;
            }
            Ok((score(&of.column, of.levels, &at, binding)?, rates))
        };
        Ok(Traits(traits.into_iter().enumerate().map(of).collect::<Result<_, Invalid>>()?))
    }

    /// What multiplies the probabilities of somebody: of each trait the rate to the power of the score, all together.
    pub fn of(&self, person: Person<'_>) -> Rates {
        let mut all = Rates::default();
        for (score, rates) in &self.0 {
            let score = match score {
                Score::Number(column) => person.number(*column),
                Score::Words(column, levels) => levels.get(person.text(*column)).copied().unwrap_or(0.0),
            };
            let mut rates = *rates;
            for ((_, all), (_, rate)) in all.all().into_iter().zip(rates.all()) {
                // What changes nothing is left exactly as it is.
                if *rate != 1.0 {
                    *all *= libm::pow(*rate, score);
                }
            }
        }
        all
    }
}

fn score(
    name: &str,
    levels: Option<BTreeMap<String, f64>>,
    at: &impl Fn(&str) -> String,
    binding: &Binding<'_>,
) -> Result<Score, Invalid> {
    let table = binding.commons.population.table();
    let wrong = |key: &str, message: String| Invalid { key: at(key), message };
    let index = table.index(name).map_err(|error| wrong("column", error.to_string()))?;
    let near = |x: &f64| x.abs() <= FARTHEST;
    match (table.columns().nth(index).map(|(_, column)| column), levels) {
        (Some(Column::Number(values)), None) => {
            if let Some(value) = values.iter().find(|value| !near(value)) {
                let message = format!(
                    "`{name}` holds {value}: standard scores are wanted, 0 for the mean and 1 for a standard deviation above it, at most {FARTHEST}"
                );
                return Err(wrong("column", message));
            }
            let column = table.number_column(name).map_err(|error| wrong("column", error.to_string()))?;
            Ok(Score::Number(column))
        }
        (Some(Column::Number(_)), Some(_)) => {
            Err(wrong("levels", format!("`{name}` holds numbers, which are their own scores")))
        }
        (Some(Column::Text { words, .. }), Some(levels)) => {
            if let Some(word) = words.iter().find(|word| !levels.contains_key(*word)) {
                return Err(wrong("levels", format!("which score has `{word}`? `{name}` has {}", words.join(", "))));
            }
            if let Some((word, score)) = levels.iter().find(|(_, score)| !near(score)) {
                let key = format!("levels.{word}");
                return Err(wrong(&key, format!("must lie in -{FARTHEST}..={FARTHEST}, is {score}")));
            }
            let column = table.text_column(name).map_err(|error| wrong("column", error.to_string()))?;
            Ok(Score::Words(column, levels))
        }
        (Some(Column::Text { words, .. }), None) => {
            let message = format!("`{name}` holds words: which score has each of {}?", words.join(", "));
            Err(wrong("levels", message))
        }
        (None, _) => Err(wrong("column", format!("there is no column `{name}`"))),
    }
}
