//! Perturbations: now and then all weights move a part of the way to random ones.

use crate::learning::{Now, check_shares};
use polity_kernel::Invalid;
use polity_kernel::digest::DigestVec;
use polity_kernel::rng::{Draws, Stream};
use polity_nn::Weights;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Perturbations of the weights: now and then all weights move a part of the way to random ones (Ash and Adams 2020).
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerturbSource {
    /// Updates from one perturbation to the next; at least 1.
    pub every: u32,
    /// The part of the way that weights move; 0 to 1.
    #[serde(default = "tenth")]
    pub share: f64,
    /// Where the random weights are drawn from.
    #[serde(default)]
    pub from: Candidates,
    /// How many of the best weights are kept, 2 to 100.
    #[serde(default = "ten")]
    pub keep: u32,
}

fn tenth() -> f64 {
    0.1
}

fn ten() -> u32 {
    10
}

/// Where random weights are drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Candidates {
    /// From a normal distribution with the mean and the deviation of each weight among the best ones so far, by mean reward from one
    /// update to the next (Huang et al. 2024).
    #[default]
    Best,
    /// From a normal distribution with the mean 0 and, for each matrix, the deviation of the first weights; as a control, since they hold
    /// no information.
    Noise,
    /// As `best`, but from any of the weights so far, as a control: they are kept by lot.
    Any,
}

/// The weights from which random ones are drawn, with their ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ranked(DigestVec<(f32, Arc<Weights>)>);

/// A source of perturbations.
#[derive(Clone, Debug)]
pub struct Perturb {
    source: PerturbSource,
    first: Weights,
}

impl Perturb {
    /// Opens it. `first`: the weights at the start.
    ///
    /// # Errors
    /// A number out of range.
    pub fn open(source: PerturbSource, first: &Weights) -> Result<Self, Invalid> {
        Invalid::within(1..=1_000_000, "perturb.every", source.every)?;
        Invalid::within(2..=100, "perturb.keep", source.keep)?;
        check_shares(&[("perturb.share", source.share)])?;
        Ok(Perturb { source, first: first.clone() })
    }

    /// Ranks weights by the rewards that they got, and keeps them if they are among the best.
    pub fn keep(&self, kept: &mut Ranked, weights: &Weights, rewards: &[f32], draws: &mut Draws) {
        let rank = match self.source.from {
            Candidates::Best => rewards.iter().sum::<f32>() / rewards.len().max(1) as f32,
            Candidates::Any => draws.unit() as f32,
            Candidates::Noise => return,
        };
        let kept = &mut kept.0;
        if kept.len() < self.source.keep as usize {
            kept.push((rank, Arc::new(weights.clone())));
            return;
        }
        let ranks = kept.iter().map(|(rank, _)| *rank).enumerate();
        if let Some((worst, least)) = ranks.min_by(|a, b| a.1.total_cmp(&b.1))
            && least < rank
        {
            kept.set(worst, (rank, Arc::new(weights.clone())));
        }
    }

    /// Moves weights if it is time after so many updates.
    pub fn perturb(&self, kept: &Ranked, weights: &mut Weights, updates: u32, draws: &mut Draws) {
        if !updates.is_multiple_of(self.source.every) {
            return;
        }
        let best: Vec<&Weights> = kept.0.iter().map(|(_, weights)| &**weights).collect();
        let n = best.len() as f64;
        let mut to = self.first.clone();
        for (tensor, matrix) in to.arrays_mut().enumerate() {
            let noise = deviation(matrix.data().iter().map(|x| f64::from(*x)), 0.0);
            for (i, number) in matrix.data_mut().iter_mut().enumerate() {
                let among = best.iter().map(|weights| f64::from(weights[tensor].array.data()[i]));
                let (mean, deviation) = match self.source.from {
                    Candidates::Noise => (0.0, noise),
                    Candidates::Best | Candidates::Any => {
                        let mean = among.clone().sum::<f64>() / n.max(1.0);
                        (mean, deviation(among, mean))
                    }
                };
                *number = (mean + deviation * draws.normal()) as f32;
            }
        }
        weights.approach(&to, self.source.share as f32);
    }
}

/// Returns the standard deviation of numbers from their mean; 0 if there are none.
fn deviation(numbers: impl Iterator<Item = f64> + Clone, mean: f64) -> f64 {
    let n = numbers.clone().count().max(1) as f64;
    libm::sqrt(numbers.map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
}

/// Returns random numbers of a round that the learner does not use otherwise.
pub(super) fn draws(now: &Now<'_>) -> Draws {
    Draws::new(now.draws().below(u64::MAX), Stream::Learner, now.round, 2)
}
