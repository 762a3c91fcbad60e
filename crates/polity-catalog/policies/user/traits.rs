//! Personality traits: columns of the population that multiply a user's probabilities.

use polity_kernel::Invalid;
use polity_kernel::policy::{Person, PolicySetup};
use polity_kernel::population::{Column, NumberColumn, TextColumn};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum distance of a trait from the mean, in standard deviations; a larger one indicates another scale.
const FARTHEST: f64 = 10.0;
/// Maximum factor per standard deviation, and its inverse the minimum.
const MOST: f64 = 100.0;

/// Factors per standard deviation of a trait; 1: no effect.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rates {
    /// Factor of liking a post.
    pub like: f64,
    /// Factor of disliking a post.
    pub dislike: f64,
    /// Factor of sharing a post.
    pub share: f64,
    /// Factor of commenting on a post.
    pub comment: f64,
    /// Factor of writing a post.
    pub post: f64,
    /// Factor of following an author.
    pub follow: f64,
    /// Factor of being aroused by a post outside `tolerance`.
    pub arousal: f64,
    /// Factor of calming down.
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

/// A personality trait that is a column of the population.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trait {
    /// The column: standard scores (0 the mean, 1 a standard deviation above it), or words.
    column: String,
    /// The standard score of each word, if the column holds words.
    levels: Option<BTreeMap<String, f64>>,
    /// Factors per standard deviation.
    rates: Rates,
}

/// The source of a user's standard score.
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
    /// Missing columns, invalid standard scores, words without a score, unreasonable factors.
    pub fn open(traits: Vec<Trait>, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let of = |(i, of): (usize, Trait)| {
            let at = |key: &str| format!("traits[{i}].{key}");
            let mut rates = of.rates;
            for (name, rate) in rates.all() {
                Invalid::within(1.0 / MOST..=MOST, &at(&format!("rates.{name}")), *rate)?;
            }
            Ok((score(&of.column, of.levels, &at, setup)?, rates))
        };
        Ok(Traits(traits.into_iter().enumerate().map(of).collect::<Result<_, Invalid>>()?))
    }

    /// Returns a user's factors: the product over all traits of the factor to the power of the score.
    pub fn of(&self, person: Person<'_>) -> Rates {
        let mut all = Rates::default();
        for (score, rates) in &self.0 {
            let score = match score {
                Score::Number(column) => person.number(*column),
                Score::Words(column, levels) => levels.get(person.text(*column)).copied().unwrap_or(0.0),
            };
            let mut rates = *rates;
            for ((_, all), (_, rate)) in all.all().into_iter().zip(rates.all()) {
                // A factor of 1 changes nothing, not even by rounding.
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
    setup: &PolicySetup<'_>,
) -> Result<Score, Invalid> {
    let table = setup.shared_context.population.table();
    let wrong = |key: &str, message: String| Invalid { key: at(key), message };
    let index = table.index(name).map_err(|error| wrong("column", error.to_string()))?;
    let near = |x: &f64| x.abs() <= FARTHEST;
    match (table.columns().nth(index).map(|(_, column)| column), levels) {
        (Some(Column::Number(values)), None) => {
            if let Some(value) = values.iter().find(|value| !near(value)) {
                let message = format!(
                    "`{name}` holds {value}; expected standard scores from -{FARTHEST} to {FARTHEST}, 0 for the mean \
                     and 1 for a standard deviation above it"
                );
                return Err(wrong("column", message));
            }
            let column = table.number_column(name).map_err(|error| wrong("column", error.to_string()))?;
            Ok(Score::Number(column))
        }
        (Some(Column::Number(_)), Some(_)) => {
            Err(wrong("levels", format!("`{name}` holds numbers, which already are the scores")))
        }
        (Some(Column::Text { words, .. }), Some(levels)) => {
            if let Some(word) = words.iter().find(|word| !levels.contains_key(*word)) {
                return Err(wrong(
                    "levels",
                    format!("there is no score for `{word}`; `{name}` has {}", words.join(", ")),
                ));
            }
            if let Some((word, score)) = levels.iter().find(|(_, score)| !near(score)) {
                let key = format!("levels.{word}");
                return Err(wrong(&key, format!("must lie in -{FARTHEST}..={FARTHEST}, is {score}")));
            }
            let column = table.text_column(name).map_err(|error| wrong("column", error.to_string()))?;
            Ok(Score::Words(column, levels))
        }
        (Some(Column::Text { words, .. }), None) => {
            let message = format!("`{name}` holds words; give a score for each of {}", words.join(", "));
            Err(wrong("levels", message))
        }
        (None, _) => Err(wrong("column", format!("there is no column `{name}`"))),
    }
}
