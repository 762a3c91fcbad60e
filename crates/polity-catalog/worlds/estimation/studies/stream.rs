//! A Gaussian mixture that is learned from a stream of points.

use super::super::params::{Grows, Stream};
use super::super::study::{Figure, Memory, Slope, Study};
use super::form;
use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use polity_learn::incremental::{Drift, Mixture, Settings};

/// Distance of neighbouring clusters; their own standard deviation is 1.
const APART: f64 = 20.0;

pub(super) struct Points {
    params: Stream,
}

impl Points {
    pub(super) fn open(params: Stream) -> Result<Points, Invalid> {
        params.check()?;
        Ok(Points { params })
    }

    /// Returns the dimensions, clusters and points of a round.
    fn sizes(&self, round: u32) -> [u32; 3] {
        let Stream { dimensions, clusters, points, grows, .. } = self.params;
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

impl Study for Points {
    fn figures(&self) -> &'static [Figure] {
        &[
            Figure { name: "components", doc: "components of the mixture" },
            Figure {
                name: "error",
                doc: "root of the mean squared distance of the clusters from the nearest means, per dimension",
            },
            Figure {
                name: "operations",
                doc: "multiplications and additions of matrix entries in the round, as counted",
            },
            Figure { name: "dimensions", doc: "dimensions of a point" },
            Figure { name: "points", doc: "points of the round" },
        ]
    }

    fn slopes(&self) -> &'static [Slope] {
        if self.params.grows.is_none() {
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

    fn rounds(&self) -> u32 {
        self.params.rounds
    }

    fn begin(&self, _: &mut Draws) -> Memory {
        Memory::Mixture(Mixture::default())
    }

    fn step(&self, memory: &mut Memory, round: u32, draws: &mut Draws, figures: &mut [f64]) {
        let Memory::Mixture(mixture) = memory else { return };
        let [dimensions, clusters, points] = self.sizes(round);
        if self.params.grows.is_some() {
            *mixture = Mixture::default();
        }
        let settings = Settings {
            form: form(self.params.form),
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
            let early = self.params.grows.is_some() && i < clusters;
            let cluster = if early { i } else { draws.below(u64::from(clusters)) as u32 };
            mixture.learn(&settings, &Points::point(dimensions, cluster, draws));
        }
        let far = |cluster: u32| {
            let centre = APART * f64::from(cluster);
            let from = |mean: &Vec<f64>| mean.iter().map(|x| (x - centre) * (x - centre)).sum::<f64>();
            mixture.components.iter().map(|component| from(&component.mean)).fold(f64::INFINITY, f64::min)
        };
        let square: f64 = (0..clusters).map(far).sum::<f64>() / f64::from(clusters * dimensions);
        figures[0] = mixture.components.len() as f64;
        figures[1] = square.sqrt();
        figures[2] = (mixture.operations - before) as f64;
        figures[3] = f64::from(dimensions);
        figures[4] = f64::from(points);
    }

    fn bytes(&self) -> usize {
        let [dimensions, clusters, _] = self.sizes(self.params.rounds - 1);
        8 * (clusters * (dimensions * dimensions + dimensions + 4)) as usize
    }
}
