//! A hidden state, followed by two particle filters on the same observations.

use super::super::params::Filter;
use super::super::study::{Figure, Memory, Study};
use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use polity_learn::filter::{Fitting, Grid, Growth, Particles};

pub(super) struct Tracking {
    params: Filter,
    model: Growth,
    fitting: Fitting,
}

impl Tracking {
    pub(super) fn open(params: Filter) -> Result<Tracking, Invalid> {
        params.check()?;
        let fitting = Fitting {
            experts: params.experts as usize,
            iterations: params.iterations,
            samples: params.samples as usize,
            defence: params.defence,
            blind: params.blind,
        };
        let model = Growth { state: params.state_noise, observation: params.observation_noise };
        Ok(Tracking { params, model, fitting })
    }
}

impl Study for Tracking {
    fn figures(&self) -> &'static [Figure] {
        &[
            Figure {
                name: "effective-bootstrap",
                doc: "effective sample size of the bootstrap filter, as a share of its particles",
            },
            Figure { name: "effective-fitted", doc: "the same of the filter with the fitted proposal" },
            Figure { name: "effective-lead", doc: "the latter less the former" },
            Figure {
                name: "error-bootstrap",
                doc: "squared error of the bootstrap filter's mean against the reference, mean over the steps so far",
            },
            Figure { name: "error-fitted", doc: "the same of the filter with the fitted proposal" },
            Figure { name: "error-lead", doc: "the former less the latter" },
            Figure {
                name: "miss-bootstrap",
                doc: "squared error against the hidden state, mean over the steps so far, of the bootstrap filter",
            },
            Figure { name: "miss-fitted", doc: "the same of the filter with the fitted proposal" },
        ]
    }

    fn rounds(&self) -> u32 {
        self.params.steps
    }

    fn begin(&self, draws: &mut Draws) -> Memory {
        let hidden = Growth::FIRST.sqrt() * draws.normal();
        let plain = Particles::first(self.params.particles as usize, draws);
        let fitted = Particles::first(self.params.particles as usize, draws);
        let grid = self.params.reference.then(Grid::first);
        Memory::Tracking { hidden, plain, fitted, grid, sums: vec![0.0; 4] }
    }

    fn step(&self, memory: &mut Memory, round: u32, draws: &mut Draws, figures: &mut [f64]) {
        let Memory::Tracking { hidden, plain, fitted, grid, sums } = memory else { return };
        let t = round + 1;
        let (next, seen) = self.model.step(*hidden, t, draws);
        *hidden = next;
        let exact = grid.as_mut().map(|grid| grid.step(&self.model, t, seen));
        let one = plain.bootstrap(&self.model, t, seen, draws);
        let two = fitted.adaptive(&self.model, t, seen, &self.fitting, draws);
        let square = |mean: f64, target: f64| (mean - target) * (mean - target);
        let errors = [(one.mean, exact), (two.mean, exact), (one.mean, Some(next)), (two.mean, Some(next))];
        for (sum, (mean, target)) in sums.iter_mut().zip(errors) {
            *sum += target.map_or(0.0, |target| square(mean, target));
        }
        let mean = |i: usize| sums[i] / f64::from(t);
        figures.copy_from_slice(&[
            one.effective,
            two.effective,
            two.effective - one.effective,
            mean(0),
            mean(1),
            mean(0) - mean(1),
            mean(2),
            mean(3),
        ]);
    }

    fn bytes(&self) -> usize {
        8 * (2 * self.params.particles as usize + if self.params.reference { 401 } else { 0 } + 8)
    }
}
