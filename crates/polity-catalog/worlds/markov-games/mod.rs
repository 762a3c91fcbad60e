//! Random Markov games whose equilibria are learned from play. See README.md.

#[cfg(test)]
mod tests;

use crate::concept::Concept;
use crate::trials::{Experiment, Measure, Setting, Trials};
use polity_games::markov::{self, MarkovGame};
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

/// What the learner sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Sight {
    /// The rewards that were paid.
    #[default]
    Own,
    /// A placebo: rewards of the same step and state, of actions drawn at random.
    Random,
}

/// Parameters of the games and their learner.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// States; at least 1.
    states: u32,
    /// Steps of an episode; at least 1.
    steps: u32,
    /// Actions of each of the two players; at least 1. A player has at most 64 pure policies: actions to the power of 1 + states · (steps - 1).
    actions: u32,
    /// Episodes, 4 to 100,000.
    episodes: u32,
    /// The kind of equilibrium that is learned.
    concept: Concept,
    /// Whether payoffs are regularised, so that what is little known looks good; otherwise they are those of the estimated game.
    regularised: bool,
    /// What the learner sees.
    sight: Sight,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            states: 2,
            steps: 2,
            actions: 2,
            episodes: 2_000,
            concept: Concept::Nash,
            regularised: true,
            sight: Sight::Own,
        }
    }
}

impl Setting for Params {
    const NAME: &'static str = "markov-games";
    const SUMMARY: &'static str =
        "Random general-sum Markov games whose Nash, correlated and coarse equilibria are learned from play";
    type Memory = ();

    fn open(self, _: &WorldSetup<'_>) -> Result<Box<dyn Experiment>, Invalid> {
        let sizes = [("states", self.states), ("steps", self.steps), ("actions", self.actions)];
        for (key, size) in sizes {
            Invalid::unless((1..=64).contains(&size), key, "must be 1 to 64")?;
        }
        let places = 1 + self.states * (self.steps - 1);
        let policies = (0..places).try_fold(1u32, |all, _| all.checked_mul(self.actions).filter(|all| *all <= 64));
        let message = "give a player more than 64 pure policies, with these states and steps";
        Invalid::unless(policies.is_some(), "actions", message)?;
        Invalid::unless((4..=100_000).contains(&self.episodes), "episodes", "must be 4 to 100,000")?;
        Ok(Box::new(self))
    }
}

impl Experiment for Params {
    fn measures(&self) -> &'static [Measure] {
        &[
            (
                "regret",
                "mean gap of an episode of the last quarter: the most that a player would gain by another policy",
            ),
            ("regret-first", "mean gap of an episode of the first quarter"),
            (
                "slope",
                "logarithm of the ratio of all regret to that of the first quarter, by that of 4: 1 if it is linear",
            ),
            ("gap", "gap of the last solution"),
            ("solved", "games of payoffs that the oracle solved"),
        ]
    }

    fn trial(&self, (): &mut (), _: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let [states, steps, actions] = [self.states, self.steps, self.actions].map(|size| size as usize);
        let game = MarkovGame::random(states, steps, actions, draws)?;
        let sight = match self.sight {
            Sight::Own => markov::Sight::Own,
            Sight::Random => markov::Sight::Random,
        };
        let curve = markov::learn(&game, self.concept.into(), self.episodes, self.regularised, sight, draws)?;
        let quarter = f64::from(self.episodes) / 4.0;
        // A game whose first solution is exact has no regret at all.
        let growth = (curve.regret[3] + 1e-9) / (curve.regret[0] + 1e-9);
        Ok(vec![
            (curve.regret[3] - curve.regret[2]) / quarter,
            curve.regret[0] / quarter,
            libm::log(growth) / libm::log(4.0),
            curve.last,
            f64::from(curve.solved),
        ])
    }
}
