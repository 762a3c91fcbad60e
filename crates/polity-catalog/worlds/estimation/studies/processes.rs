//! Trajectories of two decision processes, labelled without labels.

use super::super::Memory;
use super::super::params::{Processes, Start};
use crate::trials::{Experiment, Measure};
use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use polity_learn::spectral::two_group_accuracy;
use polity_learn::trajectories::{Clustering, Process, Trajectory, cluster, em, gridworld, random_start, soften};

/// Iterations of EM at most.
const ITERATIONS: usize = 100;
/// Slip to each other direction, as in the paper.
const SLIP: f64 = 0.04;

pub(super) struct Labels {
    params: Processes,
    processes: [Process; 2],
    policy: Vec<f64>,
}

impl Labels {
    pub(super) fn open(params: Processes) -> Result<Labels, Invalid> {
        params.check()?;
        let (processes, policy) = gridworld(SLIP, params.pull);
        Ok(Labels { params, processes, policy })
    }
}

impl Experiment<Memory> for Labels {
    fn measures(&self) -> &'static [Measure] {
        &[
            ("accuracy", "share of trajectories whose label is right, up to the names of labels"),
            ("clustered", "the same before EM; 0 if EM does not start from clusters"),
            ("iterations", "iterations of EM, over all restarts"),
        ]
    }

    fn rounds(&self) -> Option<u32> {
        Some(1)
    }

    fn trial(&self, _: &mut Memory, _: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let Processes { trajectories: n, steps, start, threshold, restarts, .. } = self.params;
        let sizes = self.processes[0].sizes;
        let labels: Vec<usize> = (0..n).map(|_| draws.below(2) as usize).collect();
        let walk = |label: &usize| self.processes[*label].walk(&self.policy, steps as usize, draws);
        let walks: Vec<Trajectory> = labels.iter().map(walk).collect();
        let (mut accuracy, mut clustered, mut iterations) = (0.0, 0.0, 0.0);
        let starts: Vec<Vec<f64>> = match start {
            Start::Spectral | Start::Placebo => {
                let how = Clustering { threshold, placebo: start == Start::Placebo };
                let found = cluster(&walks, sizes, 2, how, draws);
                clustered = two_group_accuracy(&found, &labels);
                vec![soften(&found, 2)]
            }
            Start::Random => (0..restarts).map(|_| random_start(walks.len(), 2, draws)).collect(),
            Start::Truth => vec![soften(&labels, 2)],
        };
        let runs = starts.len() as f64;
        for start in starts {
            let fitted = em(&walks, start, sizes, 2, ITERATIONS);
            accuracy += two_group_accuracy(&fitted.labels(2), &labels) / runs;
            iterations += fitted.log_likelihoods.len() as f64;
        }
        Ok(vec![accuracy, clustered, iterations])
    }
}
