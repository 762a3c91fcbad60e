//! Guess a fraction of the average (the p-beauty contest). See README.md for the source and the equations.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
use polity_kernel::interface::ActionArgument;
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareSplit, Future, SplitWorld, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.split_world::<GuessAverage>(files);
}

/// Information announced after a round.
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
    /// Information announced after a round.
    announce: Announce,
}

impl Default for Params {
    fn default() -> Self {
        Params { fraction: 2.0 / 3.0, low: 0.0, high: 100.0, announce: Announce::Mean }
    }
}

/// The p-beauty contest.
pub struct GuessAverage(Params);

/// The shared state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    /// Mean guess of the last round; the middle of the range before the first.
    mean: f64,
    /// The winning number: the fraction times the mean.
    target: f64,
    /// Rounds played.
    played: u32,
}

/// Sum of the guesses of a run of agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guesses {
    sum: f64,
    n: u64,
}

impl GuessAverage {
    /// Returns whether results of the last round were announced.
    fn told(&self, contest: &Contest) -> bool {
        contest.played > 0 && self.0.announce != Announce::Nothing
    }

    /// Returns the mean guess of the last round, if agents can know it; else the middle of the range.
    fn mean(&self, contest: &Contest) -> f64 {
        // The target and the fraction give the mean, unless the fraction is 0.
        let knows = self.told(contest) && (self.0.announce == Announce::Mean || self.0.fraction > 0.0);
        if knows { contest.mean } else { f64::midpoint(self.0.low, self.0.high) }
    }

    fn declare(declare: &mut DeclareSplit<Self>, Params { fraction, low, high, .. }: Params) {
        declare.shared_number("fraction", "the target is this fraction of the mean guess", move |_, _| fraction);
        declare.shared_number("low", "smallest allowed guess", move |_, _| low);
        declare.shared_number("high", "largest allowed guess", move |_, _| high);
        declare.shared_number("played", "rounds played so far", |_, contest| f64::from(contest.played));
        let doc = "1 when the results of the last round were announced";
        declare.shared_number("announced", doc, |world, contest| f64::from(u8::from(world.told(contest))));
        let doc = "mean guess of the last round, as far as it can be told from what was announced";
        declare.shared_number("last-mean", doc, Self::mean);
        declare.shared_number("last-target", "the fraction of it that won", move |world, contest| {
            if world.told(contest) { contest.target } else { fraction * f64::midpoint(low, high) }
        });
        let doc = "the best reply to the last mean, for simulated models";
        declare
            .shared_number("right-guess", doc, move |world, contest| (fraction * world.mean(contest)).clamp(low, high));
        let doc = "name a number; values outside the range count as its border";
        declare.action("guess", ActionArgument::Number { low, high }, doc);
        declare.column("last-guess", "the agent's last guess", Some((low, high)), |_, _, guess| *guess);
        let doc =
            "minus the distance of the last guess from the target, as a share of the range; 0 before the first round";
        declare.reward(doc, move |_, contest, guess| match contest.played {
            0 => 0.0,
            _ => -(guess - contest.target).abs() / (high - low),
        });
        let doc = "the target of the round: the fraction of the mean guess";
        declare.scalar("target", doc, |_, contest| contest.target);
    }
}

impl SplitWorld for GuessAverage {
    const NAME: &'static str = "guess-average";
    const SUMMARY: &'static str = "Guess a fraction of the average guess (p-beauty contest)";
    type Params = Params;
    /// The last guess; the middle of the range before the first.
    type Row = f64;
    type Common = Contest;
    type Tally = Guesses;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        let Params { fraction, low, high, .. } = params;
        Invalid::within(0.0..=2.0, "fraction", fraction)?;
        if !(low < high && (high - low).is_finite()) {
            return Err(Invalid {
                key: "high".into(),
                message: format!("must be greater than low ({low}), is {high}"),
            });
        }
        GuessAverage::declare(declare, params);
        Ok(GuessAverage(params))
    }

    fn init_common(&self) -> Contest {
        let mean = f64::midpoint(self.0.low, self.0.high);
        Contest { mean, target: self.0.fraction * mean, played: 0 }
    }

    fn init_row(&self, _: Person<'_>, _: &mut Draws) -> f64 {
        f64::midpoint(self.0.low, self.0.high)
    }

    fn tally(&self) -> Guesses {
        Guesses { sum: 0.0, n: 0 }
    }

    fn apply(&self, _: &Contest, row: &mut f64, actions: &AgentActions<'_>, tally: &mut Guesses, _: &mut Future) {
        // The last guess of a turn counts.
        if let Some(guess) = actions.acts().last() {
            *row = guess.value.clamp(self.0.low, self.0.high);
            tally.sum += *row;
            tally.n += 1;
        }
    }

    fn merge(&self, left: Guesses, right: Guesses) -> Guesses {
        Guesses { sum: left.sum + right.sum, n: left.n + right.n }
    }

    fn end_round(&self, common: &mut Contest, tally: Guesses, _: &mut Draws) -> Option<String> {
        if tally.n > 0 {
            common.mean = tally.sum / tally.n as f64;
            common.target = self.0.fraction * common.mean;
        }
        common.played += 1;
        None
    }
}
