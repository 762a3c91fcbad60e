//! Cohort steps in the round: agents are counted on all shards, each cohort takes its step on shard 0, and the result goes to all
//! shards.

use super::answers::Answers;
use super::plan::in_force;
use super::state::{CohortRound, Society, Stage};
use crate::Bug;
use crate::ask::{Answer, Effect};
use crate::cohort::{CohortHost, CohortProgress, SharedBox, TallyBox};
use crate::layout::{Frame, decode, encode};
use crate::policy::PolicyHost;
use crate::world::Split;
use std::sync::Arc;

impl Society {
    /// Sets what each cohort shares at the start; `None` for those without a cohort step.
    pub(super) fn share_first(&mut self) {
        let policies = in_force(&self.policies, 0);
        for shard in &mut self.shards {
            shard.shared = policies
                .iter()
                .map(|policy| policy.cohort_host().map(|cohort_host| cohort_host.init_shared()))
                .collect();
        }
    }

    /// Returns whether any cohort has a cohort step.
    pub(super) fn has_cohort_steps(&self) -> bool {
        in_force(&self.policies, self.round).iter().any(|policy| policy.cohort_host().is_some())
    }

    /// Counts the agents of the cohorts with a cohort step, with their current observations, and gives the tallies to the first shard
    /// of every process.
    pub(super) fn begin_cohort_steps(&mut self) -> Result<(), Bug> {
        if self.split == Split::None {
            self.carry_observations()?;
        }
        let policies = in_force(&self.policies, self.round);
        let mut tallies: Vec<Vec<TallyBox>> = policies.iter().map(|_| Vec::new()).collect();
        let mut frames = Vec::new();
        let first = self.layout.own().start;
        for shard in &mut self.shards {
            let of_runs =
                shard.count(self.round, &self.dead, policies, &self.shared_context, &self.interface, self.split)?;
            let others: Vec<usize> = self.layout.leaders().filter(|to| *to != shard.index).collect();
            if !others.is_empty() {
                let mut bytes: Vec<(u16, Vec<u8>)> = Vec::with_capacity(of_runs.len());
                for (cohort, tally) in &of_runs {
                    bytes.push((*cohort, host(policies, *cohort)?.encode_tally(tally)?));
                }
                let bytes = encode(&bytes)?;
                frames.extend(others.into_iter().map(|to| Frame { from: shard.index, to, bytes: bytes.clone() }));
            }
            if shard.index == first {
                of_runs.into_iter().for_each(|(cohort, tally)| tallies[cohort as usize].push(tally));
            }
        }
        self.send(frames);
        self.stage = Stage::Counting(tallies);
        Ok(())
    }

    /// Merges the tallies of runs of agents in order, in a tree that depends on the number of runs alone.
    pub(super) fn merge_tallies(&mut self, own: Vec<Vec<TallyBox>>, frames: Vec<Frame>) -> Result<(), Bug> {
        let policies = in_force(&self.policies, self.round);
        let first = self.layout.own().start;
        let mut tallies: Vec<Vec<TallyBox>> = policies.iter().map(|_| Vec::new()).collect();
        let mut own = Some(own);
        let mut take_own = |tallies: &mut Vec<Vec<TallyBox>>| {
            let own = own.take().unwrap_or_default();
            tallies.iter_mut().zip(own).for_each(|(all, mut own)| all.append(&mut own));
        };
        for frame in frames {
            if frame.from > first {
                take_own(&mut tallies);
            }
            let of_runs: Vec<(u16, Vec<u8>)> = decode(&frame.bytes)?;
            for (cohort, bytes) in of_runs {
                tallies[cohort as usize].push(host(policies, cohort)?.decode_tally(&bytes)?);
            }
        }
        take_own(&mut tallies);
        let mut cohort_rounds = Vec::new();
        for (cohort, (policy, tallies)) in policies.iter().zip(tallies).enumerate() {
            if let Some(cohort_host) = policy.cohort_host() {
                let tally = cohort_host.merge(tallies)?;
                cohort_rounds.push(CohortRound {
                    cohort: cohort as u16,
                    tally,
                    answers: Answers::default(),
                    done: None,
                });
            }
        }
        self.stage = Stage::CohortStep(cohort_rounds);
        if !self.layout.leads() {
            // The steps are taken, and questions asked, by the process of shard 0.
            self.send(Vec::new());
            self.stage = Stage::Sharing;
        }
        Ok(())
    }

    /// Gives answers to the cohorts that are taking their step, and continues those that wait for nothing. When the last is done,
    /// the agents take their turns.
    pub(super) fn cohort_step(&mut self, answers: &[Answer]) -> Result<Vec<Effect>, Bug> {
        let Society { stage, shards, policies, shared_context, round, .. } = self;
        let Stage::CohortStep(cohort_rounds) = stage else { return Ok(Vec::new()) };
        let policies = in_force(policies, *round);
        let mut asked = Vec::new();
        for cohort_round in cohort_rounds.iter_mut() {
            cohort_round.answers.hear(answers);
            if cohort_round.done.is_some() || !cohort_round.answers.open.is_empty() {
                continue;
            }
            let CohortRound { cohort, tally, answers, .. } = &*cohort_round;
            let missing = || Bug::internal("a cohort steps that no cohort step");
            let cohort_host =
                policies.get(*cohort as usize).and_then(|policy| policy.cohort_host()).ok_or_else(missing)?;
            let shared = shards[0].shared.get(*cohort as usize).and_then(Option::as_ref).ok_or_else(missing)?;
            match cohort_host.cohort_step(shared, tally, &answers.heard, (*cohort, *round), shared_context)? {
                CohortProgress::Done(shared) => cohort_round.done = Some(shared),
                CohortProgress::Asks(open) => {
                    cohort_round.answers.wait_for(&open);
                    asked.extend(open);
                }
            }
        }
        if cohort_rounds.iter().all(|cohort_round| cohort_round.done.is_some()) {
            let done = std::mem::take(cohort_rounds)
                .into_iter()
                .filter_map(|cohort_round| Some((cohort_round.cohort, cohort_round.done?)));
            let done: Vec<(u16, SharedBox)> = done.collect();
            self.share(done)?;
            self.stage = Stage::Sharing;
        }
        Ok(asked)
    }

    /// Sends all shards what cohorts share from now on.
    fn share(&mut self, done: Vec<(u16, SharedBox)>) -> Result<(), Bug> {
        for (cohort, shared) in done {
            self.shards[0].shared[cohort as usize] = Some(shared);
        }
        let bytes = if self.layout.count() > 1 { encode(&self.save_shared()?)? } else { Vec::new() };
        let frames = (1..self.layout.count()).map(|to| Frame { from: 0, to, bytes: bytes.clone() }).collect();
        self.send(frames);
        Ok(())
    }

    /// Takes what cohorts share from now on, and begins the turns.
    pub(super) fn take_shared(&mut self, frames: Vec<Frame>) -> Result<(), Bug> {
        let first = self.layout.own().start;
        for frame in frames.into_iter().filter(|frame| frame.from == 0) {
            self.load_shared(&decode::<Vec<Vec<u8>>>(&frame.bytes)?, frame.to - first, self.round)?;
        }
        self.begin_turns(true)
    }

    /// Returns what all cohorts share, as bytes; empty for those without a cohort step.
    pub(super) fn save_shared(&self) -> Result<Vec<Vec<u8>>, Bug> {
        let policies = in_force(&self.policies, self.round);
        let of_cohort =
            |(policy, shared): (&Arc<dyn PolicyHost>, &Option<SharedBox>)| match (policy.cohort_host(), shared) {
                (Some(cohort_host), Some(shared)) => cohort_host.save(shared),
                _ => Ok(Vec::new()),
            };
        policies.iter().zip(&self.shards[0].shared).map(of_cohort).collect()
    }

    /// Returns what cohorts have learned, as files of weights, by number of cohort.
    ///
    /// # Errors
    /// Weights that cannot be written: a defect of the policy.
    pub fn weights(&self) -> Result<Vec<(u16, Vec<u8>)>, Bug> {
        // After the last round, the policies are still those of that round.
        let policies = in_force(&self.policies, self.round.saturating_sub(1));
        let mut learned = Vec::new();
        for (cohort, (policy, shared)) in (0u16..).zip(policies.iter().zip(&self.shards[0].shared)) {
            if let (Some(cohort_host), Some(shared)) = (policy.cohort_host(), shared) {
                learned.extend(cohort_host.weights(shared)?.map(|bytes| (cohort, bytes)));
            }
        }
        Ok(learned)
    }

    /// Loads what [`Society::save_shared`] has saved onto a shard of this process, by its place. `round`: the next one.
    pub(super) fn load_shared(&mut self, bytes: &[Vec<u8>], shard: usize, round: u32) -> Result<(), Bug> {
        let policies = in_force(&self.policies, round);
        let of_cohort = |(policy, bytes): (&Arc<dyn PolicyHost>, &Vec<u8>)| {
            policy.cohort_host().map(|cohort_host| cohort_host.load(bytes)).transpose()
        };
        self.shards[shard].shared = policies.iter().zip(bytes).map(of_cohort).collect::<Result<_, Bug>>()?;
        Ok(())
    }
}

/// The cohort step of a cohort.
fn host(policies: &[Arc<dyn PolicyHost>], cohort: u16) -> Result<&dyn CohortHost, Bug> {
    let host = policies.get(cohort as usize).and_then(|policy| policy.cohort_host());
    host.ok_or_else(|| Bug::internal("a cohort that no cohort step was counted"))
}
