//! Random games and a driving game, solved by players who avoid risk. See README.md.

#[cfg(test)]
mod tests;

use crate::trials::{Experiment, Measure, Setting, Trials};
use polity_games::crossing;
use polity_games::normal::Game;
use polity_games::psro;
use polity_games::risk::{self, Attitude};
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

/// A family of games.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Family {
    /// Stag hunts in which hunting the stag is best for all and hunting hares is less risky: the hare is risk-dominant, the stag dominant in
    /// payoffs. Of all equilibria in pure strategies the players take the one with the most welfare.
    #[default]
    StagHunt,
    /// Games of two players with three strategies each and payoffs drawn from a normal distribution.
    Random,
    /// Two cars at a crossing. Populations of drivers grow by best replies to the solution of the game between them.
    Crossing,
}

/// Parameters of the games.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The family of the games.
    family: Family,
    /// The weight of the variance in the objective of the players, per unit of payoff; 0 for players to whom only the mean counts.
    aversion: f64,
    /// The probability with which a player expects the others to choose at random; 0 to 1.
    tremble: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { family: Family::StagHunt, aversion: 2.0, tremble: 0.1 }
    }
}

/// What a trial found.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    risk_dominant: f64,
    variance: f64,
    welfare: f64,
    crash: f64,
    delay: f64,
    policies: f64,
    regret: f64,
}

impl Params {
    fn attitude(&self) -> Attitude {
        Attitude { aversion: self.aversion, tremble: self.tremble }
    }

    fn stag_hunt(&self, draws: &mut Draws) -> Result<Found, String> {
        // Together on the stag, alone on it, and the hare; the hare is less than the stag and more than what the stag gives against a
        // partner who tosses a coin.
        let (together, alone) = (draws.range(3.0, 5.0), draws.range(-1.0, 1.0));
        let coin = f64::midpoint(together, alone);
        let hare = coin + draws.range(0.05, 0.95) * (together - coin);
        let game = two("stag hunt", &["stag", "hare"], |own, other| match (own, other) {
            (0, 0) => together,
            (0, _) => alone,
            _ => hare,
        })?;
        let welfare = |profile: &[usize]| game.payoff(profile, 0) + game.payoff(profile, 1);
        let equilibria = risk::pure(&game, self.attitude())?;
        let chosen = equilibria.into_iter().max_by(|one, other| welfare(one).total_cmp(&welfare(other)));
        let chosen = chosen.ok_or("the game has no equilibrium in pure strategies")?;
        Ok(Found {
            risk_dominant: f64::from(u8::from(chosen == [1, 1])),
            welfare: welfare(&chosen),
            ..Found::default()
        })
    }

    fn random(&self, draws: &mut Draws) -> Result<Found, String> {
        let payoffs = (0..18).map(|_| draws.normal()).collect();
        let game = Game::new("random", names(&["first", "second"]), vec![names(&["a", "b", "c"]); 2], payoffs)?;
        let solved = risk::equilibrium(&game, self.attitude())?;
        Ok(Found {
            variance: solved.variances.iter().sum(),
            welfare: solved.equilibrium.welfare(),
            regret: solved.equilibrium.regret,
            ..Found::default()
        })
    }

    fn crossing(&self, draws: &mut Draws) -> Result<Found, String> {
        // What a crash costs each driver, in steps of delay.
        let cost = draws.range(4.0, 12.0);
        let drivers = crossing::drivers();
        let met: Vec<Vec<crossing::Encounter>> =
            drivers.iter().map(|own| drivers.iter().map(|other| crossing::meet([*own, *other])).collect()).collect();
        let payoffs = |a: usize, b: usize| {
            let one = met[a][b];
            [0, 1].map(|player: usize| -one.delays[player] - cost * one.crash)
        };
        // Both begin with the driver who is fast and never waits.
        let first = drivers.iter().position(|driver| driver.speed == 2 && driver.gap == 0).unwrap_or_default();
        let grown = psro::grow(drivers.len(), [first; 2], self.attitude(), payoffs)?;
        let mut found = Found {
            policies: (grown.policies[0].len() + grown.policies[1].len()) as f64 / 2.0,
            regret: grown.gap,
            ..Found::default()
        };
        for (a, p) in grown.policies[0].iter().zip(&grown.mixtures[0]) {
            for (b, q) in grown.policies[1].iter().zip(&grown.mixtures[1]) {
                let one = met[*a][*b];
                found.crash += p * q * one.crash;
                found.delay += p * q * f64::midpoint(one.delays[0], one.delays[1]);
                found.welfare += p * q * payoffs(*a, *b).iter().sum::<f64>();
            }
        }
        Ok(found)
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A symmetric game of two players.
fn two(title: &str, strategies: &[&str], payoff: impl Fn(usize, usize) -> f64) -> Result<Game, String> {
    Game::from_fn(title, names(&["first", "second"]), vec![names(strategies); 2], |profile| {
        vec![payoff(profile[0], profile[1]), payoff(profile[1], profile[0])]
    })
}

impl Setting for Params {
    const NAME: &'static str = "risk-averse-games";
    const SUMMARY: &'static str = "Stag hunts, random games and a driving game, solved by players who avoid risk";
    type Memory = ();

    fn open(self, _: &WorldSetup<'_>) -> Result<Box<dyn Experiment>, Invalid> {
        Invalid::unless(
            self.aversion >= 0.0 && self.aversion.is_finite(),
            "aversion",
            "must be 0 or more, and finite",
        )?;
        Invalid::within(0.0..=1.0, "tremble", self.tremble)?;
        Ok(Box::new(self))
    }
}

impl Experiment for Params {
    fn measures(&self) -> &'static [Measure] {
        &[
            ("risk-dominant", "1 if both hunt hares, which is risk-dominant (`stag-hunt`)"),
            ("variance", "variance of both players' payoffs that the other's play causes (`random`)"),
            ("welfare", "both players' expected payoffs"),
            ("crash", "probability of a crash (`crossing`)"),
            ("delay", "steps until a car has arrived (`crossing`)"),
            ("policies", "drivers in a population (`crossing`)"),
            ("regret", "the most that a player could still gain in its objective (`random`, `crossing`)"),
        ]
    }

    fn trial(&self, (): &mut (), _: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let found = match self.family {
            Family::StagHunt => self.stag_hunt(draws),
            Family::Random => self.random(draws),
            Family::Crossing => self.crossing(draws),
        }?;
        let Found { risk_dominant, variance, welfare, crash, delay, policies, regret } = found;
        Ok(vec![risk_dominant, variance, welfare, crash, delay, policies, regret])
    }
}
