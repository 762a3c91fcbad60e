//! A hidden state, followed by two particle filters on the same observations.

use super::super::memory::{Memory, OTHER};
use super::super::params::Filter;
use crate::trials::{Experiment, Measure};
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

impl Experiment<Memory> for Tracking {
    fn measures(&self) -> &'static [Measure] {
        &[
            ("effective-bootstrap", "effective sample size of the bootstrap filter, as a share of its particles"),
            ("effective-fitted", "the same of the filter with the fitted proposal"),
            ("effective-lead", "the latter less the former"),
            (
                "error-bootstrap",
                "squared error of the bootstrap filter's mean against the reference, mean over the steps so far",
            ),
            ("error-fitted", "the same of the filter with the fitted proposal"),
            ("error-lead", "the former less the latter"),
            (
                "miss-bootstrap",
                "squared error against the hidden state, mean over the steps so far, of the bootstrap filter",
            ),
            ("miss-fitted", "the same of the filter with the fitted proposal"),
        ]
    }

    fn rounds(&self) -> Option<u32> {
        Some(self.params.steps)
    }

    fn begin(&self, draws: &mut Draws) -> Memory {
        let hidden = Growth::FIRST.sqrt() * draws.normal();
        let plain = Particles::first(self.params.particles as usize, draws);
        let fitted = Particles::first(self.params.particles as usize, draws);
        let grid = self.params.reference.then(Grid::first);
        Memory::Tracking { hidden, plain, fitted, grid, sums: vec![0.0; 4] }
    }

    fn trial(&self, memory: &mut Memory, round: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let Memory::Tracking { hidden, plain, fitted, grid, sums } = memory else { return Err(OTHER.into()) };
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
        Ok(vec![
            one.effective,
            two.effective,
            two.effective - one.effective,
            mean(0),
            mean(1),
            mean(0) - mean(1),
            mean(2),
            mean(3),
        ])
    }

    fn memory_bytes(&self) -> usize {
        8 * (2 * self.params.particles as usize + if self.params.reference { 401 } else { 0 } + 8)
    }
}
