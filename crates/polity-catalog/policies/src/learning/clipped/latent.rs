//! A latent state that also learns to predict what comes next.

use crate::learning::{Decisions, Start, Teams, check_weights};
use polity_kernel::rng::Draws;
use polity_kernel::{AgentId, Invalid};
use polity_nn::{Array, Mlp, Tape, Var};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A latent state from which agents decide, and which also learns to predict what comes next (Huh and Mohapatra 2024). A common critic sees the
/// latent states of all agents of the episode.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatentSource {
    /// Numbers that a network with the layers `hidden` makes of what an agent sees; 1 to 1,024.
    pub size: usize,
    /// Weight of the error in predicting what the agent sees next, and its reward; at least 0.
    #[serde(default = "one")]
    pub reconstruct: f64,
    /// Weight of the error in predicting the next latent state; at least 0.
    #[serde(default = "one")]
    pub predict: f64,
    /// Whether to predict what came after another decision, as a placebo: the same work, but nothing is learned about the world.
    #[serde(default)]
    pub shuffled: bool,
}

fn one() -> f64 {
    1.0
}

/// The networks of a latent state.
#[derive(Clone, Debug)]
pub struct Latent {
    source: LatentSource,
    encoder: Mlp,
    /// From the latent states and decisions of a team to the next latent state of its first agent.
    dynamics: Mlp,
    /// From a latent state to what is seen, and the reward.
    decoder: Mlp,
    teams: Option<Teams>,
    choices: usize,
}

/// What came after the decisions of a rollout.
#[derive(Debug)]
pub struct Next {
    /// One-hot choices of the agent, then of its teammates; zeros for one without a decision.
    acts: Array,
    /// The next decision of the same agent in the episode; its own number if there is none.
    pub(super) after: Vec<u32>,
    /// 1 if there is one.
    known: Vec<f32>,
    rewards: Vec<f32>,
}

impl Latent {
    /// Makes the networks.
    ///
    /// # Errors
    /// A number out of range.
    pub fn open(source: LatentSource, teams: Option<&Teams>, start: &mut Start) -> Result<Self, Invalid> {
        Invalid::within(1..=1_024, "latent.size", source.size)?;
        check_weights(&[("latent.reconstruct", source.reconstruct), ("latent.predict", source.predict)])?;
        let (inputs, choices, seats) = (start.inputs(), start.choices(), teams.map_or(1, Teams::seats));
        let encoder = start.net("latent", [inputs, source.size], std::f64::consts::SQRT_2);
        let dynamics = start.net("dynamics", [seats * (source.size + choices), source.size], 1.0);
        let decoder = start.net("decoder", [source.size, inputs + 1], 1.0);
        Ok(Latent::new(source, [encoder, dynamics, decoder], teams, choices))
    }

    pub(super) fn new(
        source: LatentSource,
        [encoder, dynamics, decoder]: [Mlp; 3],
        teams: Option<&Teams>,
        choices: usize,
    ) -> Self {
        Latent { source, encoder, dynamics, decoder, teams: teams.cloned(), choices }
    }

    /// Returns the latent states that belong to what a critic sees, the agent's own first.
    pub fn of(&self, tape: &mut Tape<'_>, view: Var) -> Var {
        let seats = self.teams.as_ref().map_or(1, Teams::seats);
        let width = tape.value(view).columns() / seats;
        let mut states = Vec::with_capacity(seats);
        for seat in 0..seats {
            let seen = if seats == 1 { view } else { tape.columns(view, seat * width, width) };
            let state = self.encoder.on(tape, seen);
            states.push(tape.tanh(state));
        }
        if seats == 1 { states[0] } else { tape.join(&states) }
    }

    /// Returns an agent's own latent state among those of its team.
    pub fn own(&self, tape: &mut Tape<'_>, states: Var) -> Var {
        if self.teams.is_none() { states } else { tape.columns(states, 0, self.source.size) }
    }

    /// Gathers what came after each decision.
    pub fn next(&self, decisions: &Decisions, draws: &mut Draws) -> Next {
        let mut after: Vec<u32> = (0..).zip(&decisions.next).map(|(own, next)| next.unwrap_or(own)).collect();
        if self.source.shuffled {
            let known: Vec<usize> = (0..decisions.len()).filter(|i| decisions.next[*i].is_some()).collect();
            let mut drawn: Vec<u32> = known.iter().map(|i| after[*i]).collect();
            draws.shuffle(&mut drawn);
            known.into_iter().zip(drawn).for_each(|(i, next)| after[i] = next);
        }
        let number: BTreeMap<(AgentId, u32), usize> =
            decisions.of.iter().enumerate().map(|(i, (who, round))| ((*who, *round), i)).collect();
        let mut acts = Array::EMPTY;
        for (who, round) in &decisions.of {
            let team = self.teams.as_ref().map_or_else(|| vec![*who], |teams| teams.from(*who));
            let mut row = vec![0.0; team.len() * self.choices];
            for (seat, member) in team.iter().enumerate() {
                if let Some(i) = number.get(&(*member, *round)) {
                    row[seat * self.choices + decisions.choices[*i] as usize] = 1.0;
                }
            }
            acts.push(&row);
        }
        let known = decisions.next.iter().map(|next| f32::from(u8::from(next.is_some()))).collect();
        Next { acts, after, known, rewards: decisions.rewards.clone() }
    }

    /// Returns the weighed errors of a batch, summed over its rows. `states`: the latent states of each decision ([`Latent::of`]).
    pub fn loss(&self, tape: &mut Tape<'_>, states: Var, next: &Next, decisions: &Decisions, batch: &[u32]) -> Var {
        let column = |of: &[f32]| Array::column(batch.iter().map(|i| of[*i as usize]).collect());
        let after: Vec<u32> = batch.iter().map(|i| next.after[*i as usize]).collect();
        let seen = decisions.inputs.pick(&after);
        let known = tape.input(column(&next.known));
        let acts = tape.input(next.acts.pick(batch));
        let from = tape.join(&[states, acts]);
        let told = self.dynamics.on(tape, from);
        let told = tape.tanh(told);

        let input = tape.input(seen.clone());
        let goal = self.encoder.frozen_on(tape, input);
        let goal = tape.tanh(goal);
        let predict = error(tape, told, goal, known, self.source.predict);

        let rewards = tape.input(column(&next.rewards));
        let goal = tape.join(&[input, rewards]);
        let decoded = self.decoder.on(tape, told);
        let reconstruct = error(tape, decoded, goal, known, self.source.reconstruct);
        tape.add(predict, reconstruct)
    }
}

/// Returns the sum over rows of the mean square of differences, for the rows that count.
fn error(tape: &mut Tape<'_>, told: Var, goal: Var, counts: Var, weight: f64) -> Var {
    let columns = tape.value(goal).columns();
    let difference = tape.subtract(told, goal);
    let square = tape.square(difference);
    let sums = tape.row_sums(square);
    let sums = tape.multiply(sums, counts);
    let sum = tape.sum(sums);
    tape.scale(sum, weight as f32 / columns as f32)
}
