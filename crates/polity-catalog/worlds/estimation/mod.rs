//! Independent replicates of a statistical study: every agent gets its own samples of a stated model and estimates. See README.md.

mod params;
mod studies;
mod study;
#[cfg(test)]
mod tests;

pub use params::{Kind, Params};
pub use study::Memory;

use polity_kernel::Invalid;
use polity_kernel::interface::ActionArgument;
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareSplit, Future, SplitWorld, WorldSetup};
use serde::{Deserialize, Serialize};
use study::Study;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.split_world::<Estimation>(files);
}

/// Replicates of a study.
pub struct Estimation {
    study: Box<dyn Study>,
    sample: u16,
}

/// An agent: what it keeps, and its figures of the last round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replicate {
    /// Rounds in which it has taken samples.
    round: u32,
    memory: Memory,
    figures: Vec<f64>,
}

/// What is known of all replicates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    round: u32,
    /// Means of the figures in the last round, and the least of these means so far.
    means: Vec<f64>,
    least: Vec<f64>,
    /// For each slope: n, sums of x, y, x^2, x y, of logarithms.
    fits: Vec<[f64; 5]>,
}

/// Sums of figures, and the number of agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    agents: u32,
    sums: Vec<f64>,
}

impl SplitWorld for Estimation {
    const NAME: &'static str = "estimation";
    const SUMMARY: &'static str =
        "Replicates of a statistical study, each with its own samples: mixtures, filters, steering";
    type Params = Params;
    type Row = Replicate;
    type Common = Results;
    type Tally = Sums;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        let study = studies::open(params.study, setup)?;
        declare.shared_number("rounds-over", "rounds that are over", |_, results| f64::from(results.round));
        for (i, figure) in study.figures().iter().enumerate() {
            declare.column(figure.name, figure.doc, None, move |_, _, row: &Replicate| {
                row.figures.get(i).copied().unwrap_or_default()
            });
            let doc = format!("mean over agents: {}", figure.doc);
            declare.scalar(figure.name, doc, move |_, results: &Results| {
                results.means.get(i).copied().unwrap_or_default()
            });
            let doc = format!("least mean of a round so far: {}", figure.doc);
            declare.scalar(format!("least-{}", figure.name), doc, move |_, results: &Results| {
                results.least.get(i).copied().unwrap_or_default()
            });
        }
        for (i, slope) in study.slopes().iter().enumerate() {
            declare.scalar(slope.name, slope.doc, move |_, results: &Results| results.fits.get(i).map_or(0.0, rise));
        }
        let doc =
            "take the samples of a round and learn from them; without this act the agent waits, and its figures stay";
        let sample = declare.action("sample", ActionArgument::Nothing, doc);
        Ok(Estimation { study, sample })
    }

    fn memory_bytes(&self) -> usize {
        self.study.bytes() + 8 * self.study.figures().len()
    }

    fn init_common(&self) -> Results {
        let figures = self.study.figures().len();
        Results {
            round: 0,
            means: vec![0.0; figures],
            least: vec![0.0; figures],
            fits: vec![[0.0; 5]; self.study.slopes().len()],
        }
    }

    fn init_row(&self, _: Person<'_>, draws: &mut Draws) -> Replicate {
        Replicate { round: 0, memory: self.study.begin(draws), figures: vec![0.0; self.study.figures().len()] }
    }

    fn tally(&self) -> Sums {
        Sums { agents: 0, sums: vec![0.0; self.study.figures().len()] }
    }

    fn apply(&self, _: &Results, row: &mut Replicate, actions: &AgentActions<'_>, tally: &mut Sums, _: &mut Future) {
        if actions.acts().iter().any(|act| act.kind == self.sample) && row.round < self.study.rounds() {
            self.study.step(&mut row.memory, row.round, &mut actions.draws(), &mut row.figures);
            row.round += 1;
        }
        tally.agents += 1;
        tally.sums.iter_mut().zip(&row.figures).for_each(|(sum, figure)| *sum += figure);
    }

    fn merge(&self, mut left: Sums, right: Sums) -> Sums {
        left.agents += right.agents;
        left.sums.iter_mut().zip(&right.sums).for_each(|(sum, other)| *sum += other);
        left
    }

    fn end_round(&self, results: &mut Results, tally: Sums, _: &mut Draws) -> Option<String> {
        let agents = f64::from(tally.agents.max(1));
        results.means = tally.sums.iter().map(|sum| sum / agents).collect();
        for (least, mean) in results.least.iter_mut().zip(&results.means) {
            *least = if results.round == 0 { *mean } else { least.min(*mean) };
        }
        for (fit, slope) in results.fits.iter_mut().zip(self.study.slopes()) {
            let (x, y) = (results.means[slope.over], results.means[slope.of]);
            if x > 0.0 && y > 0.0 {
                let (x, y) = (libm::log(x), libm::log(y));
                fit.iter_mut().zip([1.0, x, y, x * x, x * y]).for_each(|(sum, value)| *sum += value);
            }
        }
        results.round += 1;
        (results.round >= self.study.rounds()).then(|| format!("the study of {} rounds is over", results.round))
    }
}

/// Returns the slope of the line through points with these sums, by least squares; 0 for fewer than two points.
fn rise(sums: &[f64; 5]) -> f64 {
    let [n, x, y, xx, xy] = *sums;
    let spread = n * xx - x * x;
    if n < 2.0 || spread <= 1e-9 * n * n { 0.0 } else { (n * xy - x * y) / spread }
}
