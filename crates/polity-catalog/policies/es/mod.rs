//! Evolution strategies. See README.md.

mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    Experience, Identity, Learner, LearnerParams, Learning, Model, Now, Parts, Replay, Seen, Start, Trained,
    check_positive, check_weights, logs_of,
};
use params::{Params, Ranks};
use polity_kernel::policy::{PolicySetup, Seating};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::{AgentId, Invalid};
use polity_nn::{Array, Gradients, Mlp, NotFinite, Weights};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Es>>(files);
}

/// A learner.
pub struct Es {
    params: Params,
    policy: Mlp,
    /// The agents of an episode, who play the same weights.
    seating: Seating,
    seed: u64,
}

/// A generation: what each member has got with its weights in its first whole episode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generation {
    parts: Parts,
    scores: BTreeMap<AgentId, f32>,
    /// Rounds since it began.
    rounds: u32,
    /// The last decisions.
    last: Replay,
}

impl Experience for Generation {
    type Decision = u16;

    fn decided(&self, who: AgentId) -> Option<u16> {
        self.last.decided(who)
    }
}

/// Returns the ranks of numbers from -0.5 for the lowest to 0.5 for the highest. Equal ones have the mean of their ranks.
fn centred_ranks(scores: &[f32]) -> Vec<f32> {
    let last = scores.len().saturating_sub(1).max(1) as f32;
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|one, other| scores[*one].total_cmp(&scores[*other]));
    let mut ranks = vec![0.0; scores.len()];
    let mut below = 0;
    for same in order.chunk_by(|one, other| scores[*one] == scores[*other]) {
        let rank = (below as f32 + (same.len() as f32 - 1.0) / 2.0) / last - 0.5;
        same.iter().for_each(|i| ranks[*i] = rank);
        below += same.len();
    }
    ranks
}

impl Es {
    /// Returns what a pair of members adds to the weights and takes from them, in units of σ. It is drawn again whenever it is needed.
    fn noise(&self, first: &Weights, generation: u32, pair: AgentId) -> Vec<Array> {
        let mut draws = Draws::new(self.seed, Stream::Learner, generation, u32::MAX - (self.seating.first + pair));
        let array = |of: &Array| {
            let numbers = (0..of.data().len()).map(|_| draws.normal() as f32).collect();
            Array::new(of.rows(), of.columns(), numbers)
        };
        first.iter().map(|of| &of.array).map(array).collect()
    }

    /// Returns the logarithms of the probabilities of all choices, for each agent by the weights of its member.
    fn logs(&self, weights: &Weights, generation: u32, seen: &Seen) -> Array {
        let mut logs = Array::EMPTY;
        let mut from = 0;
        while from < seen.agents.len() {
            let member = self.seating.episode(seen.agents[from]);
            let of_member = seen.agents[from..].iter().take_while(|who| self.seating.episode(**who) == member).count();
            let by = if member.is_multiple_of(2) { self.params.noise } else { -self.params.noise } as f32;
            let mut own = weights.clone();
            for (array, noise) in own.arrays_mut().zip(self.noise(weights, generation, member / 2)) {
                array.data_mut().iter_mut().zip(noise.data()).for_each(|(w, noise)| *w += by * noise);
            }
            let rows = from..from + of_member;
            logs.append(&logs_of(&self.policy, &own, &seen.inputs.part(rows.clone()), &seen.mask.part(rows)));
            from += of_member;
        }
        logs
    }

    /// Returns the mean score of the agents of each member, for those pairs of which both have one.
    fn scores(&self, generation: &Generation) -> Vec<(AgentId, [f32; 2])> {
        let mut members: BTreeMap<AgentId, (f32, f32)> = BTreeMap::new();
        for (who, ..) in generation.parts.played() {
            let (sum, n) = members.entry(self.seating.episode(who)).or_default();
            *sum += generation.scores.get(&who).copied().unwrap_or_default();
            *n += 1.0;
        }
        let score = |member: AgentId| members.get(&member).map(|(sum, n)| sum / n);
        let pairs = members.keys().filter(|member| member.is_multiple_of(2));
        pairs.filter_map(|member| Some((member / 2, [score(*member)?, score(member + 1)?]))).collect()
    }

    /// Moves the weights along the mean over members of F ε, less the decay times the weights. F: the rank of a member's score, centred; ε: what
    /// was added to its weights, in units of σ.
    ///
    /// # Errors
    /// The first score or weight that is not a finite number.
    fn update(
        &self,
        model: &Model,
        generation: &Generation,
        number: u32,
        draws: &mut Draws,
    ) -> Result<Model, NotFinite> {
        let mut model = model.clone();
        let pairs = self.scores(generation);
        let scores: Vec<f32> = pairs.iter().flat_map(|(_, both)| *both).collect();
        if !scores.iter().all(|score| score.is_finite()) {
            return Err(NotFinite("the return of an episode".into()));
        }
        let mut ranks = centred_ranks(&scores);
        if self.params.ranks == Ranks::Shuffled {
            draws.shuffle(&mut ranks);
        }
        let decay = self.params.weight_decay as f32;
        let mut slope: Vec<Array> = model.weights.iter().map(|of| of.array.map(|w| decay * w)).collect();
        for ((pair, _), ranks) in pairs.iter().zip(ranks.chunks_exact(2)) {
            let by = (ranks[0] - ranks[1]) / scores.len() as f32;
            for (slope, noise) in slope.iter_mut().zip(self.noise(&model.weights, number, *pair)) {
                slope.add(&noise.map(|noise| -by * noise));
            }
        }
        model.descend(Gradients { losses: [], of: slope }, self.params.learning_rate, f64::INFINITY)?;
        Ok(model)
    }
}

impl Learner for Es {
    const NAME: &'static str = "es";
    const SUMMARY: &'static str = "Learns by evolution strategies: its agents try weights with noise, and the better ones count (Salimans et al. 2017)";
    type Params = Params;
    type Memory = Trained<Generation>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        check_positive(&[("noise", params.noise), ("learning_rate", params.learning_rate)])?;
        check_weights(&[("weight_decay", params.weight_decay)])?;
        let mut start = Start::open(Self::NAME, &params.keys(), Identity::Shared, setup)?;
        start.senses.check_episodes(setup)?;
        let seating = setup.seating.unwrap_or(Seating { first: 0, seats: 1 });
        let (seats, first, end) = (seating.seats, setup.cohort.start, setup.cohort.end);
        let message = format!(
            "pairs of members play weights with opposite noise, and a member has {seats} agents, so a cohort begins and ends at a multiple \
             of {}; this one has the agents {first} to {}",
            2 * seats,
            end.saturating_sub(1),
        );
        let pairs = Seating { seats: 2 * seats, ..seating };
        Invalid::unless(pairs.fills(setup.cohort), "kind", message)?;
        let policy = start.net("policy", [start.inputs(), start.choices()], 0.01);
        Ok((Es { params, policy, seating, seed: setup.shared_context.seed }, start))
    }

    fn begin(&self, first: &Weights) -> Trained<Generation> {
        Trained::new(first, Generation::default())
    }

    fn memory_bytes(&self, row: usize) -> usize {
        2 * (row + 32)
    }

    fn step(&self, memory: &mut Trained<Generation>, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let Generation { parts, scores, rounds, .. } = &mut memory.experience;
        if now.learns {
            for (row, who) in seen.agents.iter().enumerate().filter(|(_, who)| parts.is_playing(**who)) {
                *scores.entry(*who).or_default() += seen.rewards[row];
            }
            if parts.note(seen, *rounds, memory.updates == 0 && *rounds == 0) {
                let model = self.update(&memory.model, &memory.experience, memory.updates, &mut now.draws())?;
                memory.learned(model);
                let last = std::mem::take(&mut memory.experience.last);
                memory.experience = Generation { last, ..Generation::default() };
                memory.experience.parts.note(seen, 0, false);
            }
            memory.experience.rounds += 1;
        }
        let weights = &memory.model.weights;
        let logs = match now.learns {
            true => self.logs(weights, memory.updates, seen),
            false => logs_of(&self.policy, weights, &seen.inputs, &seen.mask),
        };
        let choices = now.choices(seen, |row, draws| self.params.choose.of(logs.row(row), draws));
        memory.experience.last.push(seen.clone(), choices, false, 1);
        Ok(())
    }
}
