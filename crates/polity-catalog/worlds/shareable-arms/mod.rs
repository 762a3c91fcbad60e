//! Selfish players on arms that they share. See README.md.

#[cfg(test)]
mod tests;

use crate::trials::{Experiment, Measure, Setting, Trials};
use polity_games::sharing::{self, Contest};
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

/// How all players play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Rule {
    /// SMAA: turns on the arms of the Nash allocation of the estimated means, and exploration by one of them.
    #[default]
    Smaa,
    /// The same turns and exploration on the best arms, one player each, as for the greatest total.
    Total,
}

/// What the first player does in the second contest of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Deviation {
    /// It knows all means and what the others pull, and takes the greatest share.
    #[default]
    Informed,
    /// It pulls the best arm by its own estimates.
    BestArm,
    /// It pulls the best arm by the true means, and so keeps the others from its reward.
    Spoiler,
}

/// What players learn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Feedback {
    /// The reward of the arm that they pulled.
    #[default]
    Own,
    /// A placebo: the reward of an arm drawn at random.
    Random,
}

/// Parameters of the contests.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Arms, 2 to 100. Their mean rewards are drawn uniformly from 0 to 1.
    arms: u32,
    /// Players, 2 to 100.
    players: u32,
    /// Rounds of a contest, 4 to 1,000,000.
    rounds: u32,
    /// How all players play.
    rule: Rule,
    /// What the first player does in the second contest.
    deviation: Deviation,
    /// What players learn from.
    feedback: Feedback,
    /// The weight of exploration; 1 in the paper's theorem, 0.1 in its experiments; 0 to 10.
    exploration: f64,
    /// Means are drawn anew until the Nash allocation is clear: a player who moves to another arm would lose at least this fraction; 0 to 0.2.
    margin: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            arms: 5,
            players: 4,
            rounds: 20_000,
            rule: Rule::Smaa,
            deviation: Deviation::Informed,
            feedback: Feedback::Own,
            exploration: 1.0,
            margin: 0.05,
        }
    }
}

impl Params {
    /// Draws means whose Nash allocation is clear.
    fn means(&self, draws: &mut Draws) -> Result<Vec<f64>, String> {
        for _ in 0..10_000 {
            let means: Vec<f64> = (0..self.arms).map(|_| draws.unit()).collect();
            let allocation = sharing::nash(&means, self.players);
            let next = means.iter().zip(&allocation.players).map(|(mean, count)| mean / f64::from(count + 1));
            if next.fold(0.0, f64::max) <= (1.0 - self.margin) * allocation.least {
                return Ok(means);
            }
        }
        Err("no means with so clear a Nash allocation were drawn".into())
    }
}

impl Setting for Params {
    const NAME: &'static str = "shareable-arms";
    const SUMMARY: &'static str =
        "Selfish players on bandit arms whose rewards they share (SMAA), with and without one who deviates";
    type Memory = ();

    fn open(self, _: &WorldSetup<'_>) -> Result<Box<dyn Experiment>, Invalid> {
        Invalid::unless((2..=100).contains(&self.arms), "arms", "must be 2 to 100")?;
        Invalid::unless((2..=100).contains(&self.players), "players", "must be 2 to 100")?;
        Invalid::unless((4..=1_000_000).contains(&self.rounds), "rounds", "must be 4 to 1,000,000")?;
        Invalid::within(0.0..=10.0, "exploration", self.exploration)?;
        Invalid::within(0.0..=0.2, "margin", self.margin)?;
        Ok(Box::new(self))
    }
}

impl Experiment for Params {
    fn measures(&self) -> &'static [Measure] {
        &[
            (
                "at-nash",
                "part of the rounds of the last quarter in which the players were on the arms as in the Nash allocation",
            ),
            ("at-nash-first", "the same of the first quarter"),
            ("regret", "what a player would have had more on the best other arm, in a round of the last quarter"),
            ("regret-first", "the same of the first quarter"),
            (
                "slope",
                "logarithm of the ratio of all regret to that of the first quarter, by that of 4: 1 if it is linear",
            ),
            ("reward", "expected reward of a player in a round"),
            ("nash-reward", "the same in the Nash allocation"),
            ("gain", "what the first player gains by its deviation, as a fraction of what it has without"),
            ("harm", "what each of the others loses by it, as a fraction"),
        ]
    }

    fn trial(&self, (): &mut (), _: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let means = self.means(draws)?;
        let honest = Contest {
            means: means.clone(),
            players: self.players,
            rounds: self.rounds,
            rule: match self.rule {
                Rule::Smaa => sharing::Rule::Smaa,
                Rule::Total => sharing::Rule::Total,
            },
            deviation: sharing::Deviation::None,
            feedback: match self.feedback {
                Feedback::Own => sharing::Feedback::Own,
                Feedback::Random => sharing::Feedback::Random,
            },
            exploration: self.exploration,
        };
        let deviation = match self.deviation {
            Deviation::Informed => sharing::Deviation::Informed,
            Deviation::BestArm => sharing::Deviation::BestArm,
            Deviation::Spoiler => sharing::Deviation::Spoiler,
        };
        let with = sharing::play(&honest, draws)?;
        let against = sharing::play(&Contest { deviation, ..honest }, draws)?;
        let players = f64::from(self.players);
        let others = |rewards: &[f64]| rewards[1..].iter().sum::<f64>() / (players - 1.0);
        let allocation = sharing::nash(&means, self.players);
        let taken = means.iter().zip(&allocation.players).filter(|(_, count)| **count > 0);
        let first = |rewards: &[f64]| rewards.iter().sum::<f64>() / players;
        Ok(vec![
            with.at_nash[3],
            with.at_nash[0],
            with.regret[3],
            with.regret[0],
            libm::log((with.regret.iter().sum::<f64>() + 1e-9) / (with.regret[0] + 1e-9)) / libm::log(4.0),
            first(&with.rewards),
            taken.map(|(mean, _)| mean).sum::<f64>() / players,
            against.rewards[0] / with.rewards[0] - 1.0,
            1.0 - others(&against.rewards) / others(&with.rewards),
        ])
    }
}
