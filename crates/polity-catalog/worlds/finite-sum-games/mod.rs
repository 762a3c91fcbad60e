//! Zero-sum games that are means of many, solved by Halpern's iteration. See README.md.

#[cfg(test)]
mod tests;

use crate::trials::{Experiment, Measure, Setting, Trials};
use polity_games::halpern::{self, FiniteSum, Stopped};
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

/// How the operator of the game is estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Estimator {
    /// All games in every step: plain Halpern iteration.
    Full,
    /// All games ever more seldom; else the last estimate, corrected by what a sample says of the step.
    #[default]
    Reduced,
    /// All games as often; else a sample alone, at the same cost.
    Fresh,
}

/// Parameters of the games and of their solution.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How the operator is estimated.
    estimator: Estimator,
    /// The games in the mean of the first problem of a trial; at least 2.
    few: u32,
    /// The games in the mean of the second, more than `few`; at most 10,000.
    many: u32,
    /// The strategies of each player; 1 to 50.
    strategies: u32,
    /// The standard deviation of the games' payoffs about those of their mean, which lie between -0.5 and 0.5; 0 to 10.
    spread: f64,
    /// The residual at which the iteration stops; 0.000001 to 1.
    tolerance: f64,
    /// The most evaluations, in units of the number of games; at most 1,000,000.
    most: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            estimator: Estimator::Reduced,
            few: 16,
            many: 256,
            strategies: 3,
            spread: 0.2,
            tolerance: 1e-4,
            most: 200_000,
        }
    }
}

impl Params {
    fn solve(&self, games: u32, draws: &mut Draws) -> Result<(Stopped, f64, f64), String> {
        let size = self.strategies as usize;
        let mean: Vec<f64> = (0..size * size).map(|_| draws.range(-0.5, 0.5)).collect();
        let parts = (0..games).map(|_| mean.iter().map(|a| a + self.spread * draws.normal()).collect()).collect();
        let game = FiniteSum::new(size, parts)?;
        let estimator = match self.estimator {
            Estimator::Full => halpern::Estimator::Full,
            Estimator::Reduced => halpern::Estimator::Reduced,
            Estimator::Fresh => halpern::Estimator::Fresh,
        };
        let most = u64::from(self.most) * u64::from(games);
        let stopped = game.iterate(estimator, self.tolerance, most, draws);
        let exact = game.equilibrium();
        let far = stopped.last.iter().zip(&exact).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        let residual = game.residual(&stopped.last);
        Ok((stopped, residual, far))
    }
}

impl Setting for Params {
    const NAME: &'static str = "finite-sum-games";
    const SUMMARY: &'static str =
        "Zero-sum games that are means of many, solved by Halpern's iteration, plain or with variance reduction";
    type Memory = ();

    fn open(self, _: &WorldSetup<'_>) -> Result<Box<dyn Experiment>, Invalid> {
        Invalid::unless(self.few >= 2, "few", "must be at least 2")?;
        Invalid::unless(
            self.many > self.few && self.many <= 10_000,
            "many",
            "must be more than `few` and at most 10,000",
        )?;
        Invalid::unless((1..=50).contains(&self.strategies), "strategies", "must be 1 to 50")?;
        Invalid::within(0.0..=10.0, "spread", self.spread)?;
        Invalid::within(1e-6..=1.0, "tolerance", self.tolerance)?;
        Invalid::unless((1..=1_000_000).contains(&self.most), "most", "must be 1 to 1,000,000")?;
        Ok(Box::new(self))
    }
}

impl Experiment for Params {
    fn measures(&self) -> &'static [Measure] {
        &[
            ("evaluations-few", "evaluations of single games until the iteration stopped, with `few` games"),
            ("evaluations-many", "as many, with `many` games"),
            (
                "slope",
                "logarithm of the ratio of evaluations, by that of the numbers of games: 1 if they grow in proportion",
            ),
            ("residual", "the greater residual of both last iterates, computed anew from all games"),
            ("distance", "the greater distance of both last iterates from the equilibrium"),
            ("reached", "the part of both problems in which the residual reached the tolerance"),
        ]
    }

    fn trial(&self, (): &mut (), _: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let (few, few_residual, few_distance) = self.solve(self.few, draws)?;
        let (many, many_residual, many_distance) = self.solve(self.many, draws)?;
        let (less, more) = (few.evaluations as f64, many.evaluations as f64);
        Ok(vec![
            less,
            more,
            libm::log(more / less) / libm::log(f64::from(self.many) / f64::from(self.few)),
            few_residual.max(many_residual),
            few_distance.max(many_distance),
            f64::midpoint(f64::from(u8::from(few.reached)), f64::from(u8::from(many.reached))),
        ])
    }
}
