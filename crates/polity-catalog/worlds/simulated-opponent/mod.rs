//! Random games in which one player may pay to simulate the other. See README.md.

#[cfg(test)]
mod tests;

use crate::trials::{Experiment, Measure, Setting, Trials};
use polity_games::normal::Game;
use polity_games::simulation::{self, Sight};
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

/// A family of random games.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Family {
    /// Trust or leave; the other honours trust or betrays it.
    #[default]
    Trust,
    /// Trust fully, trust in part or leave; the other honours trust or betrays it.
    Scalable,
    /// As `scalable`, and the other sees how far it is trusted before it honours or betrays.
    Observed,
}

/// What a simulation shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Shown {
    /// The mixed strategy of the other, but not what it will draw.
    #[default]
    Mixed,
    /// What the other will do.
    Pure,
    /// A placebo: a move that is drawn at random, whatever the other does.
    Random,
}

/// Parameters of the games.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The family of the games.
    family: Family,
    /// What a simulation shows.
    shown: Shown,
    /// What a simulation costs, where honoured trust is worth 1; 0 or more.
    cost: f64,
    /// With partial trust, the loss by betrayal is this fraction of the gain by honoured trust, compared with full trust: 1 if both shrink
    /// alike, below 1 if partial trust risks less for what it brings; above 0 and at most 1.
    caution: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { family: Family::Trust, shown: Shown::Mixed, cost: 0.02, caution: 0.3 }
    }
}

impl Params {
    /// Draws a game. Whoever leaves gets 0, and so does the other.
    fn game(&self, draws: &mut Draws) -> Result<Game, String> {
        // Full trust: (1, honoured) or (-lost, tempted), with tempted above honoured.
        let honoured = draws.range(0.5, 1.5);
        let tempted = honoured + draws.range(0.2, 1.5);
        let lost = draws.range(1.0, 5.0);
        // Partial trust brings a part of that to each player.
        let (own, others) = (draws.range(0.3, 0.7), draws.range(0.1, 0.5));
        let full = [[1.0, honoured], [-lost, tempted]];
        let partial = [[own, others * honoured], [-lost * own * self.caution, others * tempted]];
        let none = [[0.0, 0.0]; 2];
        let rows = match self.family {
            Family::Trust => vec![full, none],
            Family::Scalable | Family::Observed => vec![full, partial, none],
        };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let first = if rows.len() == 2 { names(&["trust", "leave"]) } else { names(&["full", "part", "leave"]) };
        let second = match self.family {
            // What it does under full trust and under partial trust.
            Family::Observed => names(&["honour both", "betray full", "betray part", "betray both"]),
            Family::Trust | Family::Scalable => names(&["honour", "betray"]),
        };
        let observed = self.family == Family::Observed;
        Game::from_fn("trust", names(&["the truster", "the trusted"]), vec![first, second], |profile| {
            let betrays = if observed { usize::from(profile[1] >> profile[0] & 1 == 1) } else { profile[1] };
            rows[profile[0]][betrays].to_vec()
        })
    }
}

impl Setting for Params {
    const NAME: &'static str = "simulated-opponent";
    const SUMMARY: &'static str =
        "Random trust games in which one player may pay to simulate the other, solved with and without";
    type Memory = ();

    fn open(self, _: &WorldSetup<'_>) -> Result<Box<dyn Experiment>, Invalid> {
        Invalid::unless(self.cost >= 0.0 && self.cost.is_finite(), "cost", "must be 0 or more, and finite")?;
        Invalid::unless(self.caution > 0.0 && self.caution <= 1.0, "caution", "must be above 0 and at most 1")?;
        Ok(Box::new(self))
    }
}

impl Experiment for Params {
    fn measures(&self) -> &'static [Measure] {
        &[
            (
                "gain",
                "what both players gain by simulation: the least of both gains, in the best equilibrium with simulation; 0 for none",
            ),
            ("helps", "1 if simulation helps both players"),
            ("simulates", "the probability of a simulation in that equilibrium"),
            ("equilibria", "extreme equilibria of the game"),
            ("equilibria-with", "extreme equilibria of the game with simulation"),
            ("regret", "the most that a player could gain in any of them by another strategy"),
        ]
    }

    fn trial(&self, (): &mut (), _: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let sight = match self.shown {
            Shown::Mixed => Sight::Mixed,
            Shown::Pure => Sight::Pure,
            Shown::Random => Sight::Random,
        };
        let found = simulation::compare(&self.game(draws)?, self.cost, sight)?;
        let helps = found.gain > 1e-7;
        let regret = found.without.equilibria.iter().chain(&found.with.equilibria).map(|one| one.regret);
        Ok(vec![
            if helps { found.gain } else { 0.0 },
            f64::from(u8::from(helps)),
            if helps { found.simulates } else { 0.0 },
            found.without.equilibria.len() as f64,
            found.with.equilibria.len() as f64,
            regret.fold(0.0, f64::max),
        ])
    }
}
