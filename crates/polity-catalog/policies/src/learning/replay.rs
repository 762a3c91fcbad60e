//! The memory of what was done, from which batches are drawn.

use super::{Data, Decision, Experience, Kept, Model, NONE, Now, Seen, Teams, Trained};
use polity_kernel::AgentId;
use polity_kernel::digest::DigestVec;
use polity_kernel::rng::Draws;
use polity_nn::{Array, NotFinite, Weights};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a cohort saw in a round, and what each of its agents decided.
type Step<D> = (Seen, Vec<D>);

/// The last rounds. What came of a decision is in the round after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "D: Decision")]
pub struct Replay<D = u16>(DigestVec<Arc<Step<D>>>);

impl<D> Default for Replay<D> {
    fn default() -> Self {
        Replay(DigestVec::default())
    }
}

/// Decisions and what came of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch<C = u32> {
    /// What the agents saw.
    pub inputs: Array,
    /// Which choices they were offered ([`Seen::mask`]).
    pub masks: Array,
    /// What they decided.
    pub choices: Vec<C>,
    /// What they got for it.
    pub rewards: Vec<f32>,
    /// Whether it ended their episodes.
    pub ended: Vec<bool>,
    /// What they saw then.
    pub then: Array,
    /// Which choices they were offered then ([`Seen::mask`]).
    pub then_masks: Array,
}

impl<C> Default for Batch<C> {
    fn default() -> Self {
        Batch {
            inputs: Array::EMPTY,
            masks: Array::EMPTY,
            choices: Vec::new(),
            rewards: Vec::new(),
            ended: Vec::new(),
            then: Array::EMPTY,
            then_masks: Array::EMPTY,
        }
    }
}

/// Decisions of whole teams and what came of them. Rows are members, team by team, in order of seat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TeamBatch {
    /// What the members saw.
    pub inputs: Array,
    /// Which choices they were offered ([`Seen::mask`]).
    pub masks: Array,
    /// What they chose; 0 for those who had no turn.
    pub choices: Vec<u32>,
    /// 1 for those who had a turn, 0 for others.
    pub turns: Vec<f32>,
    /// What they got for it.
    pub rewards: Vec<f32>,
    /// Whether it ended the episode, for each team.
    pub ended: Vec<bool>,
    /// What they saw then, which choices they were offered, and whether they had a turn.
    pub then: Array,
    /// See `masks`.
    pub then_masks: Array,
    /// See `turns`.
    pub then_turns: Vec<f32>,
}

impl<D: Decision> Replay<D> {
    /// Adds a round and drops the oldest ones, so that at most `most` are left; or only this one, when nothing is learned any more.
    pub fn push(&mut self, seen: Seen, choices: Vec<D>, learns: bool, most: u32) {
        self.0.push(Arc::new((seen, choices)));
        let most = if learns { most.max(1) as usize } else { 1 };
        let more = self.0.len().saturating_sub(most);
        if more > 0 {
            self.0.drop_first(more);
        }
    }

    /// Returns whether nothing was done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Shuffles rewards and ends of episodes among agents and rounds.
    pub fn shuffle_outcomes(&mut self, draws: &mut Draws) {
        let all = self.0.iter().flat_map(|step| (0..step.0.agents.len()).map(|row| (&step.0, row)));
        let mut outcomes: Vec<(f32, bool, bool)> =
            all.map(|(seen, row)| (seen.rewards[row], seen.ended[row], seen.cut[row])).collect();
        draws.shuffle(&mut outcomes);
        let mut outcomes = outcomes.into_iter();
        let shuffled = |step: &Arc<Step<D>>| {
            let (mut seen, choices) = step.as_ref().clone();
            for (row, (reward, ended, cut)) in (0..seen.agents.len()).zip(&mut outcomes) {
                (seen.rewards[row], seen.ended[row], seen.cut[row]) = (reward, ended, cut);
            }
            Arc::new((seen, choices))
        };
        self.0 = self.0.iter().map(shuffled).collect::<Vec<_>>().into();
    }

    /// Draws decisions, each with the same probability. Those after which an agent had no turn in the next
    /// round are left out, and those after which an episode was cut off: what came then was not seen.
    #[must_use]
    pub fn batch(&self, n: usize, draws: &mut Draws) -> Batch<D::Batched> {
        let mut batch = Batch::default();
        let Some(last) = self.0.len().checked_sub(1).filter(|last| *last > 0) else { return batch };
        for _ in 0..n {
            let at = draws.below(last as u64) as usize;
            let ((seen, choices), (next, _)) = (self.0[at].as_ref(), self.0[at + 1].as_ref());
            if seen.agents.is_empty() {
                continue;
            }
            let row = draws.below(seen.agents.len() as u64) as usize;
            let Ok(then) = next.agents.binary_search(&seen.agents[row]) else { continue };
            let Some(choice) = choices[row].batched() else { continue };
            if next.cut[then] || !(next.active[then] || next.ended[then]) {
                continue;
            }
            batch.inputs.push(seen.inputs.row(row));
            batch.masks.push(seen.mask.row(row));
            batch.choices.push(choice);
            batch.rewards.push(next.rewards[then]);
            batch.ended.push(next.ended[then]);
            batch.then.push(next.inputs.row(then));
            batch.then_masks.push(next.mask.row(then));
        }
        batch
    }
}

impl Replay {
    /// Draws rounds of teams, each with the same probability. Left out are those in which none of the team had a turn, then or in the next
    /// round, and those after which an episode was cut off: what came then was not seen.
    #[must_use]
    pub fn team_batch(&self, teams: &Teams, n: usize, draws: &mut Draws) -> TeamBatch {
        let mut batch = TeamBatch::default();
        let Some(last) = self.0.len().checked_sub(1).filter(|last| *last > 0) else { return batch };
        for _ in 0..n {
            let at = draws.below(last as u64) as usize;
            let team = draws.below(teams.count().max(1) as u64) as usize;
            let ((seen, choices), (next, _)) = (self.0[at].as_ref(), self.0[at + 1].as_ref());
            let all = |seen: &Seen| teams.rows(team, seen).into_iter().collect::<Option<Vec<usize>>>();
            let (Some(rows), Some(later)) = (all(seen), all(next)) else { continue };
            let ended = later.iter().any(|row| next.ended[*row]);
            let had_turns = rows.iter().any(|row| choices[*row] != NONE);
            if !had_turns || next.cut[later[0]] || !(ended || later.iter().any(|row| next.active[*row])) {
                continue;
            }
            batch.ended.push(ended);
            for (row, then) in rows.into_iter().zip(later) {
                let chosen = Some(choices[row]).filter(|choice| *choice != NONE);
                batch.inputs.push(seen.inputs.row(row));
                batch.masks.push(seen.mask.row(row));
                batch.choices.push(chosen.map_or(0, u32::from));
                batch.turns.push(f32::from(u8::from(chosen.is_some())));
                batch.rewards.push(next.rewards[then]);
                batch.then.push(next.inputs.row(then));
                batch.then_masks.push(next.mask.row(then));
                batch.then_turns.push(f32::from(u8::from(next.active[then])));
            }
        }
        batch
    }
}

impl<D: Decision> Experience for Replay<D> {
    type Decision = D;

    fn decided(&self, who: AgentId) -> Option<D> {
        let (seen, choices) = self.0.last()?.as_ref();
        choices.get(seen.row(who)?).filter(|choice| **choice != D::none()).cloned()
    }
}

/// What was done, and the weights of some time ago, by which later rewards are estimated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "D: Decision")]
pub struct Replayed<D = u16> {
    /// The weights of some time ago.
    pub target: Kept<Weights>,
    /// What was done.
    pub replay: Replay<D>,
}

impl<D> Replayed<D> {
    /// Begins with these weights.
    #[must_use]
    pub fn new(first: &Weights) -> Self {
        Replayed { target: Kept::new(first.clone()), replay: Replay::default() }
    }
}

impl<D: Decision> Experience for Replayed<D> {
    type Decision = D;

    fn decided(&self, who: AgentId) -> Option<D> {
        self.replay.decided(who)
    }
}

/// When a learner from a memory learns.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The round before which nothing is learned.
    pub starts: u32,
    /// Rounds from one update to the next.
    pub every: u32,
    /// Steps of the optimiser in an update.
    pub steps: u32,
    /// How the target network follows.
    pub refresh: Refresh,
}

/// How the target network follows the network that learns.
#[derive(Clone, Copy, Debug)]
pub enum Refresh {
    /// It becomes the same after so many steps of the optimiser.
    Every(u32),
    /// It comes nearer by this part of the difference after every step.
    Towards(f64),
}

impl Default for Schedule {
    /// One step of the optimiser in every round, without a target network.
    fn default() -> Self {
        Schedule { starts: 0, every: 1, steps: 1, refresh: Refresh::Every(u32::MAX) }
    }
}

impl Trained<Replayed> {
    /// Learns from rounds of whole teams if it is time: from data, or from the memory if there are no data. `n`: teams in a step of the
    /// optimiser; `step`: one such step.
    ///
    /// # Errors
    /// The first loss, gradient or weight that is not a finite number.
    pub fn train_teams(
        &mut self,
        schedule: &Schedule,
        now: &Now<'_>,
        (data, teams, n): (&Data, &Teams, usize),
        step: impl Fn(&Model, &Weights, &TeamBatch, &mut Draws) -> Result<Model, NotFinite>,
    ) -> Result<(), NotFinite> {
        self.train(schedule, now, |model, Replayed { target, replay }, draws| {
            let batch = data.or(replay).team_batch(teams, n, draws);
            (!batch.ended.is_empty()).then(|| step(model, target, &batch, draws)).transpose()
        })
    }
}

impl<D: Decision> Trained<Replayed<D>> {
    /// Learns from the memory if it is time. `step` is one step of the optimiser; `None`: the memory holds nothing to learn from.
    ///
    /// # Errors
    /// The first loss, gradient or weight that is not a finite number.
    pub fn train(
        &mut self,
        schedule: &Schedule,
        now: &Now<'_>,
        step: impl Fn(&Model, &Replayed<D>, &mut Draws) -> Result<Option<Model>, NotFinite>,
    ) -> Result<(), NotFinite> {
        if !now.learns || now.round < schedule.starts || !now.round.is_multiple_of(schedule.every) {
            return Ok(());
        }
        let mut draws = now.draws();
        for _ in 0..schedule.steps {
            let Some(model) = step(&self.model, &self.experience, &mut draws)? else { break };
            self.learned(model);
            match schedule.refresh {
                Refresh::Every(steps) if !self.updates.is_multiple_of(steps) => {}
                Refresh::Every(_) => self.experience.target.set(self.model.weights.clone()),
                Refresh::Towards(part) => {
                    let mut target = Weights::clone(&self.experience.target);
                    target.approach(&self.model.weights, part as f32);
                    self.experience.target.set(target);
                }
            }
        }
        Ok(())
    }
}
