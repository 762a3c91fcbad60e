//! Fits of a mixture of logistic experts to more and more points.

use super::super::Memory;
use super::super::params::{GateInput, Gating};
use crate::trials::{Experiment, Measure, Slope};
use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use polity_learn::gating::{Expert, Gate, fit, log_likelihood, loss, near, sample, truth};

pub(super) struct Fits {
    params: Gating,
    truth: [Expert; 2],
    gate: Gate,
}

impl Fits {
    pub(super) fn open(params: Gating) -> Result<Fits, Invalid> {
        params.check()?;
        let gate = match params.gate {
            GateInput::Plain => Gate::Plain,
            GateInput::Modified => Gate::Modified,
        };
        Ok(Fits { params, truth: truth(params.slope), gate })
    }
}

impl Experiment<Memory> for Fits {
    fn measures(&self) -> &'static [Measure] {
        &[
            ("points", "points of the round"),
            ("loss", "weighted squared distance of the two fitted experts from the true one that they share"),
            ("gain", "how far the log-likelihood of the fit is above that of the truth"),
        ]
    }

    fn slopes(&self) -> &'static [Slope] {
        &[Slope { name: "slope-loss", doc: "slope of the loss over the points, in logarithms", over: 0, of: 1 }]
    }

    fn rounds(&self) -> Option<u32> {
        Some(self.params.rounds)
    }

    fn trial(&self, _: &mut Memory, round: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let n = libm::pow(10.0, f64::from(self.params.first + round));
        let shares = sample(&self.truth, self.gate, n, draws);
        let start = near(&self.truth, self.params.spread, draws);
        let fitted = fit(&start, &self.truth, self.gate, &shares, self.params.iterations as usize);
        let likely = |experts: &[Expert]| log_likelihood(experts, self.gate, &shares);
        Ok(vec![n, loss(&fitted, &self.truth), n * (likely(&fitted) - likely(&self.truth))])
    }
}
