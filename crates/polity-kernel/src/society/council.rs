//! Councils in the round: agents are counted on all shards, each cohort confers on shard 0, what comes of it goes to all shards.

use super::answers::Answers;
use super::{Society, Stage, decode, encode, in_force};
use crate::Bug;
use crate::ask::{Answer, Effect};
use crate::council::{Conferred, SharedBox, TallyBox};
use crate::policy::PolicyHost;
use crate::transport::Frame;
use crate::world::Split;
use std::sync::Arc;

/// A cohort that confers.
pub(super) struct Sitting {
    cohort: u16,
    tally: TallyBox,
    pub answers: Answers,
    /// What it has come to.
    done: Option<SharedBox>,
}

impl Society {
    /// What each cohort shares at the start; `None` for those that hold no council.
    pub(super) fn share_first(&mut self) {
        let policies = in_force(&self.policies, 0);
        for shard in &mut self.shards {
            shard.shared = policies.iter().map(|policy| policy.council().map(|council| council.begin())).collect();
        }
    }

    /// Whether any cohort holds council.
    pub(super) fn holds_council(&self) -> bool {
        in_force(&self.policies, self.round).iter().any(|policy| policy.council().is_some())
    }

    /// Counts the agents of the cohorts that hold council, with what they see now. The tallies of runs of agents are merged in order: a
    /// tree that depends on the number of runs alone.
    pub(super) fn convene(&mut self) -> Result<Vec<Sitting>, Bug> {
        if self.split == Split::None {
            self.carry_sights()?;
        }
        let policies = in_force(&self.policies, self.round);
        let mut tallies: Vec<Vec<TallyBox>> = policies.iter().map(|_| Vec::new()).collect();
        let council = |cohort: u16| {
            let policy = policies.get(cohort as usize).and_then(|policy| policy.council());
            policy.ok_or_else(|| Bug::internal("a cohort that holds no council was counted"))
        };
        let mut frames = Vec::new();
        for shard in &mut self.shards {
            let of_runs = shard.count(self.round, &self.dead, policies, &self.commons, &self.interface, self.split)?;
            if shard.index == 0 {
                of_runs.into_iter().for_each(|(cohort, tally)| tallies[cohort as usize].push(tally));
            } else {
                let mut bytes: Vec<(u16, Vec<u8>)> = Vec::with_capacity(of_runs.len());
                for (cohort, tally) in of_runs {
                    bytes.push((cohort, council(cohort)?.encode_tally(&tally)?));
                }
                frames.push(Frame { from: shard.index, to: 0, bytes: encode(&bytes)? });
            }
        }
        for frame in self.transport.exchange(frames)? {
            let of_runs: Vec<(u16, Vec<u8>)> = decode(&frame.bytes)?;
            for (cohort, bytes) in of_runs {
                tallies[cohort as usize].push(council(cohort)?.decode_tally(&bytes)?);
            }
        }
        let mut sittings = Vec::new();
        for (cohort, (policy, tallies)) in policies.iter().zip(tallies).enumerate() {
            if let Some(council) = policy.council() {
                let tally = council.merge(tallies)?;
                sittings.push(Sitting { cohort: cohort as u16, tally, answers: Answers::default(), done: None });
            }
        }
        Ok(sittings)
    }

    /// Hands answers to the cohorts that confer, and goes on with those that wait for nothing. When the last has come to its end, the
    /// agents take their turns.
    pub(super) fn confer(&mut self, answers: &[Answer]) -> Result<Vec<Effect>, Bug> {
        let Society { stage, shards, policies, commons, round, .. } = self;
        let Stage::Conferring(sittings) = stage else { return Ok(Vec::new()) };
        let policies = in_force(policies, *round);
        let mut asked = Vec::new();
        for sitting in sittings.iter_mut() {
            sitting.answers.hear(answers);
            if sitting.done.is_some() || !sitting.answers.open.is_empty() {
                continue;
            }
            let Sitting { cohort, tally, answers, .. } = &*sitting;
            let missing = || Bug::internal("a cohort confers that holds no council");
            let council = policies.get(*cohort as usize).and_then(|policy| policy.council()).ok_or_else(missing)?;
            let shared = shards[0].shared.get(*cohort as usize).and_then(Option::as_ref).ok_or_else(missing)?;
            match council.confer(shared, tally, &answers.heard, (*cohort, *round), commons)? {
                Conferred::Done(shared) => sitting.done = Some(shared),
                Conferred::Asks(open) => {
                    sitting.answers.wait_for(&open);
                    asked.extend(open);
                }
            }
        }
        if sittings.iter().all(|sitting| sitting.done.is_some()) {
            let done = std::mem::take(sittings).into_iter().filter_map(|sitting| Some((sitting.cohort, sitting.done?)));
            let done: Vec<(u16, SharedBox)> = done.collect();
            self.share(done)?;
            self.begin_turns(true)?;
        }
        Ok(asked)
    }

    /// Tells all shards what cohorts share from now on.
    fn share(&mut self, done: Vec<(u16, SharedBox)>) -> Result<(), Bug> {
        for (cohort, shared) in done {
            self.shards[0].shared[cohort as usize] = Some(shared);
        }
        let bytes = if self.shards.len() > 1 { encode(&self.save_shared()?)? } else { Vec::new() };
        let frames = (1..self.shards.len()).map(|to| Frame { from: 0, to, bytes: bytes.clone() }).collect();
        for frame in self.transport.exchange(frames)? {
            self.load_shared(&decode::<Vec<Vec<u8>>>(&frame.bytes)?, frame.to, self.round)?;
        }
        Ok(())
    }

    /// What all cohorts share, as bytes; empty for those that hold no council.
    pub(super) fn save_shared(&self) -> Result<Vec<Vec<u8>>, Bug> {
        let policies = in_force(&self.policies, self.round);
        let of_cohort = |(policy, shared): (&Arc<dyn PolicyHost>, &Option<SharedBox>)| match (policy.council(), shared)
        {
            (Some(council), Some(shared)) => council.save(shared),
            _ => Ok(Vec::new()),
        };
        policies.iter().zip(&self.shards[0].shared).map(of_cohort).collect()
    }

    /// Puts what [`Society::save_shared`] has saved onto a shard. `round`: the next one.
    pub(super) fn load_shared(&mut self, bytes: &[Vec<u8>], shard: usize, round: u32) -> Result<(), Bug> {
        let policies = in_force(&self.policies, round);
        let of_cohort = |(policy, bytes): (&Arc<dyn PolicyHost>, &Vec<u8>)| {
            policy.council().map(|council| council.load(bytes)).transpose()
        };
        self.shards[shard].shared = policies.iter().zip(bytes).map(of_cohort).collect::<Result<_, Bug>>()?;
        Ok(())
    }
}
