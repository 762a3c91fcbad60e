//! Runs of a plan that steers a vehicle from a mixture to a normal distribution.

use super::super::memory::{Memory, OTHER};
use super::super::params::{Chosen, Steering};
use crate::trials::{Experiment, Measure};
use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use polity_learn::linear::dot;
use polity_learn::steering::{Plan, Problem, vehicle};

pub(super) struct Vehicles {
    params: Steering,
    problem: Problem,
    plan: Plan,
}

impl Vehicles {
    pub(super) fn open(params: Steering) -> Result<Vehicles, Invalid> {
        params.check()?;
        let problem = vehicle(params.steps as usize, params.risk);
        let plan = problem.plan().map_err(|why| Invalid {
            key: "study.steering.risk".into(),
            message: format!("there is no plan with this risk and these steps: {why}"),
        })?;
        Ok(Vehicles { params, problem, plan })
    }
}

impl Experiment<Memory> for Vehicles {
    fn measures(&self) -> &'static [Measure] {
        &[
            ("within", "1 if the vehicle is between the walls"),
            ("weak", "1 if no entry of its acceleration is too large"),
            ("distance", "squared distance from the mean of the target, in its deviations; 4 on average in the target"),
            ("distance-squared", "its square; 24 on average in the target"),
            ("offset", "sum of the standardised entries, divided by 2; 0 on average in the target"),
            ("spent", "sum of squared accelerations so far"),
            ("excess", "what was spent, less what is planned for all steps, as a share of it"),
            ("planned", "expected sum of squared accelerations of the whole plan"),
        ]
    }

    fn rounds(&self) -> Option<u32> {
        Some(self.params.steps)
    }

    fn begin(&self, draws: &mut Draws) -> Memory {
        let state = self.problem.draw(draws);
        let weights = match self.params.component {
            Chosen::Posterior => self.problem.posterior(&state),
            Chosen::Prior => self.problem.first.iter().map(|(weight, _)| *weight).collect(),
        };
        let component = draws.weighted(&weights).unwrap_or(0);
        let first = self.problem.first[component].1.standardise(&state);
        Memory::Vehicle { state, component: component as u32, first, spent: 0.0 }
    }

    fn trial(&self, memory: &mut Memory, round: u32, _: &mut Draws) -> Result<Vec<f64>, String> {
        let Memory::Vehicle { state, component, first, spent } = memory else { return Err(OTHER.into()) };
        let step = self.plan.controls.get(*component as usize).and_then(|c| c.get(round as usize));
        let step = step.ok_or("the plan has no such step")?;
        let control = step.at(first);
        *state = self.problem.step(state, &control);
        *spent += dot(&control, &control);
        let standard = self.problem.last.standardise(state);
        let distance = dot(&standard, &standard);
        Ok(vec![
            f64::from(u8::from(self.problem.is_within(state))),
            f64::from(u8::from(self.problem.is_weak(&control))),
            distance,
            distance * distance,
            standard.iter().sum::<f64>() / 2.0,
            *spent,
            *spent / self.plan.cost - 1.0,
            self.plan.cost,
        ])
    }

    fn memory_bytes(&self) -> usize {
        120
    }
}
