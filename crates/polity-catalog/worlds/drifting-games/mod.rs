//! Games that change while their equilibria are learned. See README.md.

#[cfg(test)]
mod tests;

use crate::concept::Concept;
use crate::trials::{Experiment, Measure, Setting, Trials};
use polity_games::drifting::{self, Drifting};
use polity_games::normal::Game;
use polity_kernel::Invalid;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::WorldSetup;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.split_world::<Trials<Params>>(files);
}

/// The learner that is wrapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Learner {
    /// Plays all profiles alike often, and solves the game of the mean rewards.
    #[default]
    Explore,
    /// Two players without regret meet; the mean of their play is nearly coarse correlated.
    SelfPlay,
}

/// When the learner is restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Restarts {
    /// Never: the learner alone.
    Never,
    /// At regular times, which follow from the drift.
    Known,
    /// When a test finds that a player would gain by another strategy.
    #[default]
    Tested,
    /// A placebo: tests are made, and it is restarted as often, at times drawn at random.
    Random,
    /// Tests are made and change nothing.
    Ignored,
}

/// Parameters of the games and their learner.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Games, one after the other, 1 to 1,000. Each begins at a round drawn at random. Payoffs are drawn uniformly from 0 to 1.
    games: u32,
    /// Strategies of each of the two players, 2 to 5.
    strategies: u32,
    /// Rounds, 1,000 to 1,000,000.
    rounds: u32,
    /// The learner that is wrapped.
    learner: Learner,
    /// The kind of equilibrium that is learned.
    concept: Concept,
    /// When the learner is restarted.
    restarts: Restarts,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            games: 8,
            strategies: 2,
            rounds: 60_000,
            learner: Learner::Explore,
            concept: Concept::Nash,
            restarts: Restarts::Tested,
        }
    }
}

impl Setting for Params {
    const NAME: &'static str = "drifting-games";
    const SUMMARY: &'static str = "Games that change while a learner, restarted or not, looks for their equilibria";
    type Memory = ();

    fn open(self, _: &WorldSetup<'_>) -> Result<Box<dyn Experiment>, Invalid> {
        Invalid::unless((1..=1_000).contains(&self.games), "games", "must be 1 to 1,000")?;
        Invalid::unless((2..=5).contains(&self.strategies), "strategies", "must be 2 to 5")?;
        Invalid::unless((1_000..=1_000_000).contains(&self.rounds), "rounds", "must be 1,000 to 1,000,000")?;
        Ok(Box::new(self))
    }
}

impl Experiment for Params {
    fn measures(&self) -> &'static [Measure] {
        &[
            (
                "regret",
                "mean gap of a round: the most that a player would gain against what is played, in the game of the round",
            ),
            (
                "slope",
                "logarithm of the ratio of all regret to that of an eighth of the rounds with the same games, by that of 8: 1 if it is linear",
            ),
            ("restarts", "restarts of the learner"),
            ("testing", "part of the rounds in which a test was made"),
            ("learning", "part of the rounds in which the learner was learning"),
            ("drift", "sum of the greatest changes of a payoff"),
        ]
    }

    fn trial(&self, (): &mut (), _: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let size = self.strategies as usize;
        let names = |count: usize| (1..=count).map(|i| format!("s{i}")).collect::<Vec<_>>();
        let mut games = Vec::new();
        for _ in 0..self.games {
            let payoffs = (0..2 * size * size).map(|_| draws.unit()).collect();
            games.push(Game::new("drifting", names(2), vec![names(size); 2], payoffs)?);
        }
        let mut times: Vec<f64> = (1..self.games).map(|_| draws.unit()).collect();
        times.sort_by(f64::total_cmp);
        let over = |rounds: u32| {
            let begin = |time: &f64| (time * f64::from(rounds)) as u32;
            let begins = std::iter::once(0).chain(times.iter().map(begin)).collect();
            Drifting { games: games.clone(), begins, rounds }
        };
        let concept = self.concept.into();
        let kind = match self.learner {
            Learner::Explore => drifting::Kind::Explore,
            Learner::SelfPlay => drifting::Kind::SelfPlay,
        };
        let restarts = match self.restarts {
            Restarts::Never => drifting::Restarts::Never,
            Restarts::Known => drifting::Restarts::Known,
            Restarts::Tested => drifting::Restarts::Tested,
            Restarts::Random => drifting::Restarts::Random,
            Restarts::Ignored => drifting::Restarts::Ignored,
        };
        let whole = over(self.rounds);
        let long = drifting::play(&whole, kind, concept, restarts, draws)?;
        let short = drifting::play(&over(self.rounds / 8), kind, concept, restarts, draws)?;
        let rounds = f64::from(self.rounds);
        Ok(vec![
            long.regret / rounds,
            libm::log(long.regret.max(1e-9) / short.regret.max(1e-9)) / libm::log(8.0),
            f64::from(long.restarts),
            f64::from(long.testing) / rounds,
            f64::from(long.learning) / rounds,
            whole.variation(),
        ])
    }
}
