//! A Gaussian mixture that is learned from a stream of points.

use super::super::memory::{Memory, OTHER};
use super::super::params::{Grows, Stream};
use super::form;
use crate::trials::{Experiment, Measure, Slope};
use polity_kernel::rng::Draws;
use polity_learn::incremental::{Drift, Mixture, Settings};

/// Distance of neighbouring clusters; their own standard deviation is 1.
const APART: f64 = 20.0;

impl Stream {
    /// Returns the dimensions, clusters and points of a round.
    fn sizes(&self, round: u32) -> [u32; 3] {
        let Stream { dimensions, clusters, points, grows, .. } = *self;
        let times = |what: Grows| if grows == Some(what) { round + 1 } else { 1 };
        [dimensions * times(Grows::Dimensions), clusters * times(Grows::Clusters), points * times(Grows::Points)]
    }

    /// Draws a point. Cluster k lies at `APART` k on the diagonal; dimensions of a cluster have correlations of one half.
    fn point(dimensions: u32, cluster: u32, draws: &mut Draws) -> Vec<f64> {
        let common = draws.normal();
        let centre = APART * f64::from(cluster);
        let half = 0.5_f64.sqrt();
        (0..dimensions).map(|_| centre + half * (common + draws.normal())).collect()
    }
}

impl Experiment<Memory> for Stream {
    fn measures(&self) -> &'static [Measure] {
        &[
            ("components", "components of the mixture"),
            ("error", "root of the mean squared distance of the clusters from the nearest means, per dimension"),
            ("operations", "multiplications and additions of matrix entries in the round, as counted"),
            ("dimensions", "dimensions of a point"),
            ("points", "points of the round"),
        ]
    }

    fn slopes(&self) -> &'static [Slope] {
        if self.grows.is_none() {
            return &[];
        }
        &[
            Slope {
                name: "slope-dimensions",
                doc: "slope of operations over dimensions, in logarithms",
                over: 3,
                of: 2,
            },
            Slope {
                name: "slope-components",
                doc: "slope of operations over components, in logarithms",
                over: 0,
                of: 2,
            },
            Slope { name: "slope-points", doc: "slope of operations over points, in logarithms", over: 4, of: 2 },
        ]
    }

    fn rounds(&self) -> Option<u32> {
        Some(self.rounds)
    }

    fn begin(&self, _: &mut Draws) -> Memory {
        Memory::Mixture(Mixture::default())
    }

    fn trial(&self, memory: &mut Memory, round: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let Memory::Mixture(mixture) = memory else { return Err(OTHER.into()) };
        let [dimensions, clusters, points] = self.sizes(round);
        if self.grows.is_some() {
            *mixture = Mixture::default();
        }
        let settings = Settings {
            form: form(self.form),
            variances: vec![1.0; dimensions as usize],
            novelty: 1e-4,
            most: clusters as usize,
            age: 0,
            weight: 0.0,
            drift: Drift::default(),
        };
        let before = mixture.operations;
        for i in 0..points {
            // When sizes grow, each cluster has its first point early, so that all components are there from the start.
            let early = self.grows.is_some() && i < clusters;
            let cluster = if early { i } else { draws.below(u64::from(clusters)) as u32 };
            mixture.learn(&settings, &Stream::point(dimensions, cluster, draws));
        }
        let far = |cluster: u32| {
            let centre = APART * f64::from(cluster);
            let from = |mean: &Vec<f64>| mean.iter().map(|x| (x - centre) * (x - centre)).sum::<f64>();
            mixture.components.iter().map(|component| from(&component.mean)).fold(f64::INFINITY, f64::min)
        };
        let square: f64 = (0..clusters).map(far).sum::<f64>() / f64::from(clusters * dimensions);
        Ok(vec![
            mixture.components.len() as f64,
            square.sqrt(),
            (mixture.operations - before) as f64,
            f64::from(dimensions),
            f64::from(points),
        ])
    }

    fn memory_bytes(&self) -> usize {
        let [dimensions, clusters, _] = self.sizes(self.rounds - 1);
        8 * (clusters * (dimensions * dimensions + dimensions + 4)) as usize
    }
}
