//! Jobs that are lost and found (the flow approach to labour markets). See README.md.

use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Jobs, and how they are lost and found. Rates are per day.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Employment {
    /// Share of the agents in the labour force, drawn by the seed; 0 to 1.
    participation: f64,
    /// Share of the labour force whose job can be done at home, drawn by the seed; 0 to 1.
    remote: f64,
    /// Rate at which a worker loses the job.
    separation: f64,
    /// Rate at which a worker who stays at home loses a job that cannot be done there, in addition to `separation`.
    layoff: f64,
    /// Rate at which an unemployed agent finds a job. Those who stay at home find only jobs that can be done there.
    finding: f64,
}

impl Default for Employment {
    fn default() -> Self {
        Employment { participation: 0.6, remote: 0.37, separation: 0.00114, layoff: 0.02, finding: 0.0197 }
    }
}

/// An agent's place in the labour market; `remote` says whether its job, or the one it looks for, can be done at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Not in the labour force.
    Outside,
    /// Has a job.
    Employed {
        /// Whether the job can be done at home.
        remote: bool,
    },
    /// Looks for a job.
    Unemployed {
        /// Whether the job can be done at home.
        remote: bool,
    },
}

impl Work {
    /// Returns 0 outside the labour force, 1 for the employed, and 2 for the unemployed.
    pub fn status(self) -> f64 {
        match self {
            Work::Outside => 0.0,
            Work::Employed { .. } => 1.0,
            Work::Unemployed { .. } => 2.0,
        }
    }
}

/// Agents in the labour force, and how many of them are unemployed; or how these numbers change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    workforce: i64,
    unemployed: i64,
}

impl Jobs {
    /// Counts an agent of the labour force.
    pub fn enter(&mut self, work: Work) {
        self.workforce += 1;
        self.unemployed += i64::from(matches!(work, Work::Unemployed { .. }));
    }

    /// Counts a change of the number of the unemployed.
    pub fn change(&mut self, unemployed: i64) {
        self.unemployed += unemployed;
    }

    /// Returns both counts.
    pub fn plus(self, other: Jobs) -> Jobs {
        Jobs { workforce: self.workforce + other.workforce, unemployed: self.unemployed + other.unemployed }
    }

    /// Returns the share of the labour force that is unemployed, 0 if nobody is in it.
    pub fn unemployment(self) -> f64 {
        self.unemployed as f64 / self.workforce.max(1) as f64
    }
}

impl Employment {
    /// Checks the parameters.
    pub fn check(&self) -> Result<(), Invalid> {
        Invalid::within(0.0..=1.0, "employment.participation", self.participation)?;
        Invalid::within(0.0..=1.0, "employment.remote", self.remote)?;
        for (key, rate) in [("separation", self.separation), ("layoff", self.layoff), ("finding", self.finding)] {
            Invalid::within(0.0..=100.0, &format!("employment.{key}"), rate)?;
        }
        if self.clock() == 0.0 {
            let message = "one of `separation`, `layoff` and `finding` must be greater than 0".into();
            return Err(Invalid { key: "employment".into(), message });
        }
        Ok(())
    }

    /// Draws an agent's place at the start. The rate of unemployment is that of the steady state without isolation.
    pub fn init(&self, draws: &mut Draws) -> Work {
        if !draws.chance(self.participation) {
            return Work::Outside;
        }
        let remote = draws.chance(self.remote);
        let unemployed = self.separation / (self.separation + self.finding).max(f64::MIN_POSITIVE);
        if draws.chance(unemployed) { Work::Unemployed { remote } } else { Work::Employed { remote } }
    }

    /// Draws the time until the next tick of an agent's clock. The clock ticks at the highest rate of all, and at a tick the event of the
    /// agent's state happens with the ratio of its rate to this one (uniformisation): exact, whatever changes between ticks.
    pub fn tick(&self, draws: &mut Draws) -> f64 {
        draws.exponential(self.clock())
    }

    /// Draws whether a job is lost or found at a tick, and returns by how much the number of the unemployed changes.
    pub fn event(&self, work: &mut Work, at_home: bool, draws: &mut Draws) -> i64 {
        let (rate, next, change) = match *work {
            Work::Outside => return 0,
            Work::Employed { remote } => {
                let layoff = if at_home && !remote { self.layoff } else { 0.0 };
                (self.separation + layoff, Work::Unemployed { remote }, 1)
            }
            Work::Unemployed { remote } => {
                let finding = if at_home && !remote { 0.0 } else { self.finding };
                (finding, Work::Employed { remote }, -1)
            }
        };
        if !draws.chance(rate / self.clock()) {
            return 0;
        }
        *work = next;
        change
    }

    fn clock(&self) -> f64 {
        (self.separation + self.layoff).max(self.finding)
    }
}
