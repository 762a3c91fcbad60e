//! Whole episodes, and what their decisions are worth.

use super::params::{Baseline, Learns};
use crate::learning::{NONE, Parts, Rollout, Seen, Step, Teams, normalised};
use polity_kernel::AgentId;
use polity_kernel::rng::Draws;
use polity_nn::Array;
use std::ops::Range;

/// The decisions of whole episodes, and what came after each until the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Played {
    pub inputs: Array,
    pub masks: Array,
    pub choices: Vec<u32>,
    pub returns: Vec<f32>,
    /// The episodes, by agent.
    pub episodes: Vec<Episode>,
}

/// An episode of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episode {
    /// The agent.
    pub who: AgentId,
    /// Its decisions, the last one first.
    pub decisions: Range<usize>,
    /// All its rewards, added.
    pub total: f32,
}

impl Played {
    /// Gathers the episodes that parts of a rollout name. `last`: what is seen now.
    pub fn gather(rollout: &Rollout, parts: &Parts, last: &Seen, discount: f32) -> Self {
        let mut all = Played::default();
        let steps: Vec<&Step> = rollout.steps().collect();
        let seen = |at: usize| steps.get(at).map_or(last, |step| &step.seen);
        for (who, from, to) in parts.played() {
            let (first, mut total) = (all.choices.len(), 0.0);
            let (mut gain, mut after) = (0.0f32, 0.0f32);
            for at in (from as usize..to as usize).rev() {
                if let Some(row) = seen(at + 1).row(who) {
                    gain += seen(at + 1).rewards[row];
                    total += seen(at + 1).rewards[row];
                }
                let Some(row) = steps[at].seen.row(who) else { continue };
                if steps[at].choices[row] != NONE {
                    after = gain + discount * after;
                    gain = 0.0;
                    all.inputs.push(steps[at].seen.inputs.row(row));
                    all.masks.push(steps[at].seen.mask.row(row));
                    all.choices.push(u32::from(steps[at].choices[row]));
                    all.returns.push(after);
                }
            }
            all.episodes.push(Episode { who, decisions: first..all.choices.len(), total });
        }
        all
    }

    /// Keeps the decisions whose advantage is not 0. Episodes are then empty.
    pub fn keep(&mut self, advantages: &mut Vec<f32>) {
        let rows: Vec<u32> =
            (0u32..).zip(&*advantages).filter(|(_, advantage)| **advantage != 0.0).map(|x| x.0).collect();
        let of = |numbers: &[f32]| rows.iter().map(|row| numbers[*row as usize]).collect();
        *self = Played {
            inputs: self.inputs.pick(&rows),
            masks: self.masks.pick(&rows),
            choices: rows.iter().map(|row| self.choices[*row as usize]).collect(),
            returns: of(&self.returns),
            episodes: Vec::new(),
        };
        *advantages = of(advantages);
    }

    /// Adds further rewards for what decisions led to, and what they are worth to the decisions before. `reward`: that of the state in which
    /// the next decision of an episode was taken, given as the place of that decision.
    pub fn add_rewards(&mut self, discount: f32, reward: impl Fn(&Episode, usize) -> f32) {
        for episode in &self.episodes {
            let mut after = 0.0;
            for decision in episode.decisions.clone().skip(1) {
                after = reward(episode, decision - 1) + discount * after;
                self.returns[decision] += after;
            }
        }
    }

    /// Returns the policy that each decision followed, of so many. `scrambled`: one drawn by lot for each episode instead.
    pub fn policies(&self, of: u32, mut scrambled: Option<&mut Draws>) -> Vec<u32> {
        let mut all = vec![0; self.choices.len()];
        for episode in &self.episodes {
            let drawn = scrambled.as_mut().map(|draws| draws.below(u64::from(of)) as u32);
            all[episode.decisions.clone()].fill(drawn.unwrap_or(episode.who % of));
        }
        all
    }

    /// Returns the advantage of each decision. `teams`: who played the same episode of the world; needed for `learns: best` and
    /// `baseline: episode`.
    pub fn advantages(&self, learns: Learns, baseline: Baseline, teams: Option<&Teams>) -> Vec<f32> {
        match (learns, baseline, teams) {
            (Learns::Best, _, Some(teams)) => self.by_team(teams, |totals, own| {
                let second = totals.iter().enumerate().filter(|(i, _)| *i != own).map(|(_, total)| *total);
                let lead = totals[own] - second.fold(f32::NEG_INFINITY, f32::max);
                // An agent that plays alone has no second.
                if lead.is_finite() { lead.max(0.0) } else { 0.0 }
            }),
            (_, Baseline::Episode, Some(teams)) => {
                self.by_team(teams, |totals, own| totals[own] - totals.iter().sum::<f32>() / totals.len() as f32)
            }
            (_, Baseline::None, _) => self.returns.clone(),
            (_, Baseline::Step, _) => normalised(&self.above_same_step()),
            (_, Baseline::Batch | Baseline::Episode, _) => normalised(&self.returns),
        }
    }

    /// Returns how much more came after each decision than after those as late in their episodes, in the mean.
    fn above_same_step(&self) -> Vec<f32> {
        let mut by_step: Vec<Vec<usize>> = Vec::new();
        for episode in &self.episodes {
            for (step, decision) in episode.decisions.clone().rev().enumerate() {
                if by_step.len() == step {
                    by_step.push(Vec::new());
                }
                by_step[step].push(decision);
            }
        }
        let mut above = self.returns.clone();
        for decisions in by_step {
            let mean = decisions.iter().map(|of| self.returns[*of]).sum::<f32>() / decisions.len() as f32;
            decisions.into_iter().for_each(|of| above[of] -= mean);
        }
        above
    }

    /// Returns for each decision what `of` makes of the rewards of all agents of the same episode of the world and the place of its own.
    fn by_team(&self, teams: &Teams, of: impl Fn(&[f32], usize) -> f32) -> Vec<f32> {
        let mut all = vec![0.0; self.choices.len()];
        for together in self.episodes.chunk_by(|one, next| teams.of(one.who) == teams.of(next.who)) {
            let totals: Vec<f32> = together.iter().map(|episode| episode.total).collect();
            for (own, episode) in together.iter().enumerate() {
                all[episode.decisions.clone()].fill(of(&totals, own));
            }
        }
        all
    }
}
