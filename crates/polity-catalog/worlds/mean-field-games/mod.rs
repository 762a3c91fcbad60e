//! Games of congestion whose regularised mean-field equilibrium agents learn on one path. See README.md.

#[cfg(test)]
mod tests;

use crate::trials::{Experiment, Measure, Setting, Trials};
use polity_games::mean_field::{self, Congestion, Learned, Learning};
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

/// What players feel of the crowd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Crowd {
    /// The part of all players who are at their place.
    #[default]
    All,
    /// A placebo: the part of four players, themselves and three others, however many there are.
    Four,
}

/// Parameters of the games and of their players.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Places on the ring, 2 to 20. Their worth is drawn uniformly from 0 to 1.
    places: u32,
    /// What a place loses of its worth when all are there; 0 to 10.
    crowding: f64,
    /// The weight of the entropy of a policy; 0.05 to 10.
    temperature: f64,
    /// Players of the first game of a trial; 1 to 10,000.
    few: u32,
    /// Players of the second, more than `few`.
    many: u32,
    /// Updates of the policies; 1 to 10,000.
    epochs: u32,
    /// Steps of the path before each update; 1 to 100,000.
    steps: u32,
    /// The step of an update of mirror ascent; 0.001 to 10.
    rate: f64,
    /// What players feel of the crowd.
    crowd: Crowd,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            places: 3,
            crowding: 1.5,
            temperature: 0.3,
            few: 4,
            many: 64,
            epochs: 30,
            steps: 500,
            rate: 0.5,
            crowd: Crowd::All,
        }
    }
}

impl Setting for Params {
    const NAME: &'static str = "mean-field-games";
    const SUMMARY: &'static str =
        "Games of congestion whose mean-field equilibrium few and many players learn by mirror ascent on one path";
    type Memory = ();

    fn open(self, _: &WorldSetup<'_>) -> Result<Box<dyn Experiment>, Invalid> {
        Invalid::unless((2..=20).contains(&self.places), "places", "must be 2 to 20")?;
        Invalid::within(0.0..=10.0, "crowding", self.crowding)?;
        Invalid::within(0.05..=10.0, "temperature", self.temperature)?;
        Invalid::unless((1..=10_000).contains(&self.few), "few", "must be 1 to 10,000")?;
        Invalid::unless(
            self.many > self.few && self.many <= 10_000,
            "many",
            "must be more than `few` and at most 10,000",
        )?;
        Invalid::unless((1..=10_000).contains(&self.epochs), "epochs", "must be 1 to 10,000")?;
        Invalid::unless((1..=100_000).contains(&self.steps), "steps", "must be 1 to 100,000")?;
        Invalid::within(0.001..=10.0, "rate", self.rate)?;
        Ok(Box::new(self))
    }
}

impl Experiment for Params {
    fn measures(&self) -> &'static [Measure] {
        &[
            (
                "error-few",
                "distance of the mean policy of few players from the regularised equilibrium of infinitely many",
            ),
            ("error-many", "the same of many"),
            (
                "slope",
                "logarithm of the ratio of both errors, by that of the numbers of players: -1 if the error falls as their inverse",
            ),
            ("own-few", "mean distance of the policy of one of few players"),
            ("own-many", "the same of many"),
            ("first", "distance of the uniform policies with which all begin"),
        ]
    }

    fn trial(&self, (): &mut (), _: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let game = Congestion {
            worth: (0..self.places).map(|_| draws.unit()).collect(),
            crowding: self.crowding,
            fare: 0.1,
            noise: 0.2,
            discount: 0.7,
            temperature: self.temperature,
        };
        let crowd = match self.crowd {
            Crowd::All => mean_field::Crowd::All,
            Crowd::Four => mean_field::Crowd::Four,
        };
        let exact = game.equilibrium()?;
        let mut learn = |agents: u32| {
            let learning = Learning { agents, epochs: self.epochs, steps: self.steps, rate: self.rate, crowd };
            game.learn(&exact, learning, draws)
        };
        let few: Learned = learn(self.few)?;
        let many = learn(self.many)?;
        let ratio = (many.distance + 1e-12) / (few.distance + 1e-12);
        let slope = libm::log(ratio) / libm::log(f64::from(self.many) / f64::from(self.few));
        Ok(vec![few.distance, many.distance, slope, few.own, many.own, few.first])
    }
}
