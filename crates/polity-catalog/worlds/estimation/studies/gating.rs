//! Fits of a mixture of logistic experts to more and more points.

use super::super::params::{GateInput, Gating};
use super::super::study::{Figure, Memory, Slope, Study};
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

impl Study for Fits {
    fn figures(&self) -> &'static [Figure] {
        &[
            Figure { name: "points", doc: "points of the round" },
            Figure {
                name: "loss",
                doc: "weighted squared distance of the two fitted experts from the true one that they share",
            },
            Figure { name: "gain", doc: "how far the log-likelihood of the fit is above that of the truth" },
        ]
    }

    fn slopes(&self) -> &'static [Slope] {
        &[Slope { name: "slope-loss", doc: "slope of the loss over the points, in logarithms", over: 0, of: 1 }]
    }

    fn rounds(&self) -> u32 {
        self.params.rounds
    }

    fn begin(&self, _: &mut Draws) -> Memory {
        Memory::Nothing
    }

    fn step(&self, _: &mut Memory, round: u32, draws: &mut Draws, figures: &mut [f64]) {
        let n = libm::pow(10.0, f64::from(self.params.first + round));
        let shares = sample(&self.truth, self.gate, n, draws);
        let start = near(&self.truth, self.params.spread, draws);
        let fitted = fit(&start, &self.truth, self.gate, &shares, self.params.iterations as usize);
        let likely = |experts: &[Expert]| log_likelihood(experts, self.gate, &shares);
        figures.copy_from_slice(&[n, loss(&fitted, &self.truth), n * (likely(&fitted) - likely(&self.truth))]);
    }

    fn bytes(&self) -> usize {
        0
    }
}
