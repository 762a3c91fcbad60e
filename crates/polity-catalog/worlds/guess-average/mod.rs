//! Guess a fraction of the average (the p-beauty contest). See README.md for the source and the equations.

use polity_kernel::Invalid;
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::sight::{ActArgument, ActKind, Field, Interface, WorldColumn};
use polity_kernel::world::{Deeds, Future, Setup, SplitWorld};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.split_world::<GuessAverage>(files);
}

/// What is told to everybody after a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Announce {
    /// The mean guess and the target.
    #[default]
    Mean,
    /// The target alone.
    Target,
    /// Nothing.
    Nothing,
}

/// Parameters of the contest.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The target is this fraction of the mean guess (p); 0 to 2.
    fraction: f64,
    /// Smallest allowed guess.
    low: f64,
    /// Largest allowed guess.
    high: f64,
    /// What is told to everybody after a round.
    announce: Announce,
}

impl Default for Params {
    fn default() -> Self {
        Params { fraction: 2.0 / 3.0, low: 0.0, high: 100.0, announce: Announce::Mean }
    }
}

/// The p-beauty contest.
pub struct GuessAverage(Params);

/// What everybody shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    /// Mean guess of the last round; the middle of the range before the first.
    mean: f64,
    /// The fraction of it that wins.
    target: f64,
    /// Rounds played.
    played: u32,
}

/// Guesses of a run of agents, summed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guesses {
    sum: f64,
    n: u64,
}

impl SplitWorld for GuessAverage {
    const NAME: &'static str = "guess-average";
    const SUMMARY: &'static str = "Guess a fraction of the average guess (p-beauty contest)";
    type Params = Params;
    /// The last guess; the middle of the range before the first.
    type Row = f64;
    type Common = Contest;
    type Tally = Guesses;

    fn open(params: Params, _: &Setup<'_>) -> Result<Self, Invalid> {
        let Params { fraction, low, high, .. } = params;
        Invalid::within(0.0..=2.0, "fraction", fraction)?;
        if !(low < high && (high - low).is_finite()) {
            return Err(Invalid {
                key: "high".into(),
                message: format!("must be greater than low ({low}), is {high}"),
            });
        }
        Ok(GuessAverage(params))
    }

    fn interface(&self) -> Interface {
        let Params { low, high, .. } = self.0;
        Interface {
            sight: vec![
                Field::number("fraction", "the target is this fraction of the mean guess"),
                Field::number("low", "smallest allowed guess"),
                Field::number("high", "largest allowed guess"),
                Field::number("played", "rounds played so far"),
                Field::number("announced", "1 when the results of the last round were announced"),
                Field::number(
                    "last-mean",
                    "mean guess of the last round, as far as it can be told from what was announced",
                ),
                Field::number("last-target", "the fraction of it that won"),
                Field::number("right-guess", "the best reply to the last mean, for simulated models"),
            ],
            acts: vec![ActKind {
                name: "guess",
                argument: ActArgument::Number { low, high },
                doc: "name a number; values outside the range count as its border",
            }],
            columns: vec![WorldColumn { name: "last-guess", doc: "the agent's last guess", range: Some((low, high)) }],
            scalars: vec![Field::number("target", "the fraction of the mean guess that won the round")],
            ..Interface::default()
        }
    }

    fn begin(&self) -> Contest {
        let mean = f64::midpoint(self.0.low, self.0.high);
        Contest { mean, target: self.0.fraction * mean, played: 0 }
    }

    fn seat(&self, _: Person<'_>, _: &mut Draws) -> f64 {
        f64::midpoint(self.0.low, self.0.high)
    }

    fn observe_all(&self, common: &Contest, show: &mut dyn FnMut(usize, f64)) {
        let Params { fraction, low, high, announce } = self.0;
        let told = common.played > 0 && announce != Announce::Nothing;
        // Who knows the target and the fraction knows the mean, unless the fraction is 0.
        let knows_mean = told && (announce == Announce::Mean || fraction > 0.0);
        let middle = f64::midpoint(low, high);
        let values = [
            fraction,
            low,
            high,
            f64::from(common.played),
            f64::from(u8::from(told)),
            if knows_mean { common.mean } else { middle },
            if told { common.target } else { fraction * middle },
            (fraction * if knows_mean { common.mean } else { middle }).clamp(low, high),
        ];
        values.into_iter().enumerate().for_each(|(slot, value)| show(slot, value));
    }

    fn tally(&self) -> Guesses {
        Guesses { sum: 0.0, n: 0 }
    }

    fn apply(&self, _: &Contest, row: &mut f64, deeds: &Deeds<'_>, tally: &mut Guesses, _: &mut Future) {
        // The last guess of a turn counts.
        if let Some(guess) = deeds.acts().last() {
            *row = guess.value.clamp(self.0.low, self.0.high);
            tally.sum += *row;
            tally.n += 1;
        }
    }

    fn merge(&self, left: Guesses, right: Guesses) -> Guesses {
        Guesses { sum: left.sum + right.sum, n: left.n + right.n }
    }

    fn settle(&self, common: &mut Contest, tally: Guesses, _: &mut Draws) -> Option<String> {
        if tally.n > 0 {
            common.mean = tally.sum / tally.n as f64;
            common.target = self.0.fraction * common.mean;
        }
        common.played += 1;
        None
    }

    fn column(&self, _: &Contest, row: &f64, _: usize) -> f64 {
        *row
    }

    fn scalar(&self, common: &Contest, _: usize) -> f64 {
        common.target
    }
}
