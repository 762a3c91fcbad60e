//! Work as much as is best under the tax, and vote for the candidate under whom one is best off. See README.md.

#[cfg(test)]
mod tests;

use polity_games::taxation::{Economy, Schedule};
use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Worker>(files);
}

/// Parameters of workers.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How much of the way to the best labour a worker goes in a round; 0 to 1.
    adjust: f64,
    /// Standard deviation of a normal error, as a share of labour; 0 to 1.
    error: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { adjust: 1.0, error: 0.0 }
    }
}

/// Works as much as is best.
pub struct Worker {
    params: Params,
    skill: NumberSlot,
    labour: NumberSlot,
    elasticity: NumberSlot,
    may_work: NumberSlot,
    may_vote: NumberSlot,
    schedule: (TableSlot, [usize; 2]),
    candidates: (TableSlot, [usize; 3]),
    work: u16,
    vote: u16,
}

impl Policy for Worker {
    const NAME: &'static str = "worker";
    const SUMMARY: &'static str = "Work as much as is best under an income tax, and vote for one's own good";
    type Params = Params;
    type State = ();

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0.0..=1.0, "adjust", params.adjust)?;
        Invalid::within(0.0..=1.0, "error", params.error)?;
        Ok(Worker {
            params,
            skill: setup.number("skill")?,
            labour: setup.number("labour")?,
            elasticity: setup.number("elasticity")?,
            may_work: setup.number("may-work")?,
            may_vote: setup.number("may-vote")?,
            schedule: setup.table("schedule", ["threshold", "rate"])?,
            candidates: setup.table("candidates", ["candidate", "rate", "rebate"])?,
            work: setup.act("work")?.0,
            vote: setup.act("vote")?.0,
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let seen = turn.observation;
        let skill = seen.number(self.skill);
        let (works, votes) = (seen.number(self.may_work) > 0.0, seen.number(self.may_vote) > 0.0);
        if skill <= 0.0 || !(works || votes) {
            return Ok(());
        }
        let economy = Economy { elasticity: seen.number(self.elasticity), aversion: 0.0 };
        let (table, [threshold, rate]) = self.schedule;
        let brackets = seen.table(table).map(|row| (row[threshold], row[rate]));
        let law = Schedule::of_brackets(brackets).map_err(Fault)?;
        if works {
            let best = economy.income(skill, &law) / skill;
            let labour = seen.number(self.labour);
            let mut labour = labour + self.params.adjust * (best - labour);
            if self.params.error > 0.0 {
                labour *= 1.0 + self.params.error * turn.draws.normal();
            }
            turn.act(self.work, labour);
            return Ok(());
        }
        let (table, [candidate, rate, rebate]) = self.candidates;
        let rows: Vec<&[f64]> = seen.table(table).collect();
        let mut best: Option<(f64, f64)> = None;
        for option in rows.chunk_by(|a, b| a[candidate] == b[candidate]) {
            let schedule = law.with_rates(option.iter().map(|row| row[rate]).collect()).map_err(Fault)?;
            let utility = economy.utility(skill, economy.income(skill, &schedule), &schedule, option[0][rebate]);
            // A tie goes to the first candidate.
            if best.is_none_or(|(most, _)| utility > most) {
                best = Some((utility, option[0][candidate]));
            }
        }
        if let Some((_, candidate)) = best {
            turn.act(self.vote, candidate);
        }
        Ok(())
    }
}
