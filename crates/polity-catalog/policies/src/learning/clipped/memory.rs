//! What agents remember: a recurrent layer between what they see and what they decide.

use super::contrast::Pairs;
use super::league::Versions;
use super::perturb::Ranked;
use crate::learning::{Decisions, Experience, Rollout, Seen, Start};
use polity_kernel::digest::DigestVec;
use polity_kernel::{AgentId, Invalid};
use polity_nn::{Array, Dense, Gru, Tape, Var};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What agents remember from round to round of an episode.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemorySource {
    /// Numbers in the state of a recurrent layer with gates (GRU); 1 to 1,024.
    pub gru: usize,
    /// Whether the state is 0 at the start of every round, as a placebo: the same work, but nothing is remembered.
    #[serde(default)]
    pub forgets: bool,
    /// What the layer learns from.
    #[serde(default)]
    pub learns_from: LearnsFrom,
}

/// What a recurrent layer learns from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LearnsFrom {
    /// From rewards, like the layers after it.
    #[default]
    Rewards,
    /// From a contrastive loss (Ma et al. 2024). An episode is cut in two, and the memories of both parts become similar to each other and
    /// different from those of other agents. The layers after it learn from rewards.
    Contrast,
    /// From nothing, as a control: its weights stay random.
    Nothing,
}

/// A recurrent layer.
#[derive(Clone, Copy, Debug)]
pub struct Recurrent {
    gru: Gru,
    size: usize,
    forgets: bool,
    learns_from: LearnsFrom,
    /// The projection of the contrastive loss.
    compared: Option<Dense>,
}

/// The last rounds of a cohort, and what its agents remember.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lived {
    /// The rounds that wait to be learned from.
    pub rollout: Rollout,
    /// What agents remembered at the start of each of these rounds; empty if they remember nothing.
    entered: DigestVec<Arc<Array>>,
    /// Who was there in the last round.
    agents: Vec<AgentId>,
    /// What each of them remembered at its end.
    left: Array,
    /// Weights of the past, which opponents play.
    pub versions: Versions,
    /// Weights of the past, from which perturbations are drawn.
    pub kept: Ranked,
}

impl Experience for Lived {
    type Decision = u16;

    fn decided(&self, who: AgentId) -> Option<u16> {
        self.rollout.decided(who)
    }
}

impl Lived {
    /// Drops all rounds. What agents remember is kept.
    pub fn clear(&mut self) {
        self.rollout.clear();
        self.entered = DigestVec::default();
    }

    /// Notes what agents remembered at the start of a round and at its end.
    pub fn remember(&mut self, seen: &Seen, entered: Array, left: Array) {
        self.entered.push(Arc::new(entered));
        (self.agents, self.left) = (seen.agents.clone(), left);
    }
}

impl Recurrent {
    /// Makes a layer from what an agent sees.
    ///
    /// # Errors
    /// A size out of range.
    pub fn open(source: &MemorySource, start: &mut Start) -> Result<Self, Invalid> {
        Invalid::within(1..=1_024, "memory.gru", source.gru)?;
        let gru = start.gru("memory", source.gru);
        let compares = source.learns_from == LearnsFrom::Contrast;
        let compared = compares.then(|| start.dense("memory-compared", [source.gru, source.gru]));
        Ok(Recurrent { compared, ..Recurrent::new(gru, source) })
    }

    pub(super) fn new(gru: Gru, source: &MemorySource) -> Self {
        let MemorySource { gru: size, forgets, learns_from } = *source;
        Recurrent { gru, size, forgets, learns_from, compared: None }
    }

    /// Returns the projection of the contrastive loss, if the layer learns from it.
    pub fn compared(&self) -> Option<&Dense> {
        self.compared.as_ref()
    }

    /// Returns what the layers after it see. No gradient flows back unless the layer learns from rewards.
    pub fn shown(&self, tape: &mut Tape<'_>, state: Var) -> Var {
        match self.learns_from {
            LearnsFrom::Rewards => state,
            LearnsFrom::Contrast | LearnsFrom::Nothing => {
                let constant = tape.value(state).clone();
                tape.input(constant)
            }
        }
    }

    /// Returns the numbers in its state.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns whether an agent remembers nothing at the start of a round, because an episode begins.
    fn begins(&self, seen: &Seen, row: usize) -> bool {
        self.forgets || seen.ended[row]
    }

    /// Returns what each agent remembers at the start of a round.
    pub fn entering(&self, lived: &Lived, seen: &Seen) -> Array {
        let mut states = Array::zeros(seen.agents.len(), self.size);
        for (row, who) in seen.agents.iter().enumerate().filter(|(row, _)| !self.begins(seen, *row)) {
            if let Ok(before) = lived.agents.binary_search(who) {
                states.data_mut()[row * self.size..][..self.size].copy_from_slice(lived.left.row(before));
            }
        }
        states
    }

    /// Returns what agents remember after a round.
    pub fn on(&self, tape: &mut Tape<'_>, x: Var, state: Var) -> Var {
        self.gru.on(tape, x, state)
    }

    /// Goes through the rounds of some agents again. Returns what each remembered at the end of the rounds in which it decided, agent by agent.
    /// `pairs`: says at which decisions memories begin anew.
    pub fn again(
        &self,
        tape: &mut Tape<'_>,
        lived: &Lived,
        sequences: &Sequences,
        which: &[u32],
        pairs: Option<&Pairs>,
    ) -> Var {
        let first = lived.rollout.steps().next().map(|step| &step.seen);
        let mut start = Array::zeros(which.len(), self.size);
        if let (Some(seen), Some(entered)) = (first, lived.entered.first()) {
            for (i, agent) in which.iter().enumerate() {
                if let Some(row) = seen.row(sequences.agents[*agent as usize]) {
                    start.data_mut()[i * self.size..][..self.size].copy_from_slice(entered.row(row));
                }
            }
        }
        let mut state = tape.input(start);
        let mut states = Vec::with_capacity(lived.rollout.len());
        for (round, step) in lived.rollout.steps().enumerate() {
            let seen = &step.seen;
            let mut inputs = Array::zeros(which.len(), seen.inputs.columns());
            let mut keeps = Array::new(which.len(), self.size, vec![1.0; which.len() * self.size]);
            let mut all_keep = true;
            for (i, agent) in which.iter().enumerate() {
                let row = seen.row(sequences.agents[*agent as usize]);
                if let Some(row) = row {
                    let columns = inputs.columns();
                    inputs.data_mut()[i * columns..][..columns].copy_from_slice(seen.inputs.row(row));
                }
                let cut = |pairs: &Pairs| {
                    sequences.decision(*agent, round as u32).is_some_and(|decision| pairs.cuts(decision))
                };
                let forgets = pairs.is_some_and(cut);
                if round > 0 && (forgets || row.is_none_or(|row| self.begins(seen, row))) {
                    keeps.data_mut()[i * self.size..][..self.size].fill(0.0);
                    all_keep = false;
                }
            }
            if !all_keep {
                let keeps = tape.input(keeps);
                state = tape.multiply(state, keeps);
            }
            let x = tape.input(inputs);
            state = self.on(tape, x, state);
            states.push(state);
        }
        let all = tape.stack(&states);
        let place = |(i, agent): (usize, &u32)| {
            let rounds = &sequences.rounds[*agent as usize];
            rounds.iter().map(move |round| round * which.len() as u32 + i as u32)
        };
        let places = which.iter().enumerate().flat_map(place).collect();
        tape.rows(all, places)
    }
}

/// The decisions of each agent, in order.
#[derive(Clone, Debug, Default)]
pub struct Sequences {
    /// Who they are.
    agents: Vec<AgentId>,
    /// The rounds in which each decided.
    rounds: Vec<Vec<u32>>,
    /// Its decisions then.
    decisions: Vec<Vec<u32>>,
}

impl Sequences {
    /// Puts the decisions of a rollout together by agent.
    pub fn of(decisions: &Decisions) -> Self {
        let mut by_agent: BTreeMap<AgentId, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        for (decision, (who, round)) in (0u32..).zip(&decisions.of) {
            let (rounds, own) = by_agent.entry(*who).or_default();
            rounds.push(*round);
            own.push(decision);
        }
        let mut all = Sequences::default();
        for (who, (rounds, own)) in by_agent {
            all.agents.push(who);
            all.rounds.push(rounds);
            all.decisions.push(own);
        }
        all
    }

    /// Returns the number of agents.
    pub fn len(&self) -> usize {
        self.agents.len()
    }

    /// Returns what an agent decided in a round.
    fn decision(&self, agent: u32, round: u32) -> Option<u32> {
        let at = self.rounds[agent as usize].binary_search(&round).ok()?;
        Some(self.decisions[agent as usize][at])
    }

    /// Returns the decisions of an agent.
    pub fn decisions(&self, agent: u32) -> &[u32] {
        &self.decisions[agent as usize]
    }
}
