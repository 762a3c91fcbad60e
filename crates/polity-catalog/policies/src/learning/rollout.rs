//! Decisions that wait to be learned from.

use super::{Decision, Experience, Seen, Teams};
use polity_kernel::AgentId;
use polity_kernel::digest::DigestVec;
use polity_nn::Array;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a cohort saw in a round and what it decided, for each of its agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(bound = "D: Decision")]
pub struct Step<D = u16> {
    /// What it saw.
    pub seen: Seen,
    /// The decisions; [`Decision::none`] for agents whose turn it was not.
    pub choices: Vec<D>,
    /// The logarithms of their probabilities.
    pub logs: Vec<f32>,
    /// What the agents could expect, as the learner estimated it.
    pub values: Vec<f32>,
}

/// The last rounds of a cohort. Copies are cheap, and only new rounds are hashed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "D: Decision")]
pub struct Rollout<D = u16>(DigestVec<Arc<Step<D>>>);

impl<D> Default for Rollout<D> {
    fn default() -> Self {
        Rollout(DigestVec::default())
    }
}

/// The decisions of a rollout, in order, and what came of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisions<C = u32> {
    /// What the agents saw.
    pub inputs: Array,
    /// What their teams saw, if they are learned from ([`Teams::views`]).
    pub views: Option<Array>,
    /// Their masks ([`Seen::mask`]).
    pub masks: Array,
    /// What they decided.
    pub choices: Vec<C>,
    /// The logarithms of the probabilities of that.
    pub logs: Vec<f32>,
    /// What they could expect.
    pub values: Vec<f32>,
    /// What they got until their next decision.
    pub rewards: Vec<f32>,
    /// What they could expect after that; 0 at the end of an episode, unless that was only cut off.
    pub then: Vec<f32>,
    /// The next decision of the same agent in the same episode, if the rollout has it.
    pub next: Vec<Option<u32>>,
    /// Whose they were, and in which round of the rollout, from 0.
    pub of: Vec<(AgentId, u32)>,
}

impl<D: Decision> Rollout<D> {
    /// Returns the number of rounds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns its rounds, the oldest first.
    pub fn steps(&self) -> impl Iterator<Item = &Step<D>> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Adds a round.
    pub fn push(&mut self, step: Step<D>) {
        self.0.push(Arc::new(step));
    }

    /// Drops all rounds.
    pub fn clear(&mut self) {
        *self = Rollout::default();
    }

    /// Returns all decisions and what came of them. `last`: what the cohort sees now, with what it can expect (`values`). `teams`:
    /// whose views are put together. `learns`: whose decisions count.
    #[must_use]
    pub fn decisions(
        &self,
        last: &Seen,
        values: &[f32],
        teams: Option<&Teams>,
        learns: impl Fn(AgentId) -> bool,
    ) -> Decisions<D::Batched> {
        let mut all = Decisions { views: teams.map(|_| Array::EMPTY), ..Decisions::default() };
        let mut open: BTreeMap<AgentId, usize> = BTreeMap::new();
        for (round, step) in (0u32..).zip(self.0.iter()) {
            all.hear(&mut open, &step.seen);
            let views = teams.map(|teams| teams.views(&step.seen));
            let learned = |(row, choice): (usize, &D)| Some((row, choice.batched()?));
            let learned = step.choices.iter().enumerate().filter_map(learned);
            for (row, choice) in learned.filter(|(row, _)| learns(step.seen.agents[*row])) {
                let this = all.choices.len();
                all.inputs.push(step.seen.inputs.row(row));
                if let Some((all, views)) = all.views.as_mut().zip(views.as_ref()) {
                    all.push(views.row(row));
                }
                all.masks.push(step.seen.mask.row(row));
                all.choices.push(choice);
                all.logs.push(step.logs[row]);
                all.values.push(step.values[row]);
                all.rewards.push(0.0);
                all.then.push(0.0);
                all.next.push(None);
                all.of.push((step.seen.agents[row], round));
                if let Some(before) = open.insert(step.seen.agents[row], this) {
                    all.next[before] = Some(this as u32);
                    all.then[before] = step.values[row];
                }
            }
        }
        all.hear(&mut open, last);
        for (who, value) in last.agents.iter().zip(values) {
            if let Some(before) = open.get(who) {
                all.then[*before] = *value;
            }
        }
        all
    }
}

impl<D: Decision> Experience for Rollout<D> {
    type Decision = D;

    fn decided(&self, who: AgentId) -> Option<D> {
        let step = self.0.last()?;
        step.choices.get(step.seen.row(who)?).filter(|choice| choice.batched().is_some()).cloned()
    }
}

impl<C> Default for Decisions<C> {
    fn default() -> Self {
        Decisions {
            inputs: Array::EMPTY,
            views: None,
            masks: Array::EMPTY,
            choices: Vec::new(),
            logs: Vec::new(),
            values: Vec::new(),
            rewards: Vec::new(),
            then: Vec::new(),
            next: Vec::new(),
            of: Vec::new(),
        }
    }
}

impl<C> Decisions<C> {
    /// Adds the rewards of a round to the decisions before it, and closes those whose episodes ended.
    fn hear(&mut self, open: &mut BTreeMap<AgentId, usize>, seen: &Seen) {
        for (row, who) in seen.agents.iter().enumerate() {
            let Some(decision) = open.get(who).copied() else { continue };
            self.rewards[decision] += seen.rewards[row];
            if seen.ended[row] {
                open.remove(who);
            }
            if seen.cut[row] {
                // Nobody has seen the end, which is about as good as what was seen last.
                self.then[decision] = self.values[decision];
            }
        }
    }

    /// Returns the number of decisions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.choices.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }
}

/// Returns how much better each decision was than expected (Schulman et al. 2016, GAE): with δ = r + γV' - V, it is the sum over the
/// decisions from this one on of (γλ)^k δ.
#[must_use]
pub fn generalised_advantages<C>(decisions: &Decisions<C>, discount: f32, lambda: f32) -> Vec<f32> {
    let mut advantages = vec![0.0f32; decisions.len()];
    for i in (0..decisions.len()).rev() {
        let delta = decisions.rewards[i] + discount * decisions.then[i] - decisions.values[i];
        let later = decisions.next[i].map_or(0.0, |next| advantages[next as usize]);
        advantages[i] = delta + discount * lambda * later;
    }
    advantages
}
