//! Deterministic policy gradients of several agents, with a critic that sees all of them. See README.md.

mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    Choose, Data, Identity, Learner, LearnerParams, Learning, Model, Now, Replayed, Seen, Start, TeamBatch, Teams,
    Trained, best, check_positive, check_weights, logs_of, one_hot, own_first,
};
use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_nn::{Array, Mlp, NotFinite, Weights, clip, gradients, outputs};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Maddpg>>(files);
}

/// A learner.
pub struct Maddpg {
    params: Params,
    teams: Teams,
    policy: Mlp,
    critic: Mlp,
    /// The number of matrices of weights of the policy, which come first.
    of_policy: usize,
}

/// Returns numbers by which logits are moved so that the greatest is that of a choice drawn by its probability.
fn gumbels(like: &Array, draws: &mut Draws) -> Array {
    let mut gumbel = || -libm::log(-libm::log(draws.open_unit())) as f32;
    Array::new(like.rows(), like.columns(), like.data().iter().map(|_| gumbel()).collect())
}

impl Maddpg {
    /// Moves the weights against the gradient of the sum of two means over decisions: of (Q(v, a) - y)² / 2, with v what the critic sees, a
    /// what those whom it sees chose, y = r + γ Q'(v', a'), and a' and Q' by the weights of some time ago; and of -Q(v, ã), where in ã the
    /// agent's own choice is drawn anew from its policy, with the gradient of a softmax, and Q is held.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    fn update(
        &self,
        model: &Model,
        target: &Weights,
        batch: &TeamBatch,
        draws: &mut Draws,
    ) -> Result<Model, NotFinite> {
        let (mut model, params, seats) = (model.clone(), &self.params, self.teams.seats());
        let (n, choices) = (batch.choices.len(), batch.masks.columns());
        let logs = logs_of(&self.policy, target, &batch.then, &batch.then_masks);
        let moved = logs.zip(&gumbels(&logs, draws), |x, y| x + y);
        let then = own_first(&one_hot((0..n).map(|row| usize::from(best(moved.row(row)))), choices), seats);
        let then_views = own_first(&batch.then, seats);
        let [later] = outputs(target, n, |tape, rows| {
            let (view, chosen) = (tape.input(then_views.part(rows.clone())), tape.input(then.part(rows)));
            let both = tape.join(&[view, chosen]);
            [self.critic.on(tape, both)]
        });
        let goal = |row: usize| {
            let then = if batch.ended[row / seats] { 0.0 } else { later.data()[row] };
            batch.rewards[row] * params.reward_scale as f32 + params.discount as f32 * then
        };
        let goals: Vec<f32> = (0..n).map(goal).collect();
        let views = own_first(&batch.inputs, seats);
        let chosen = own_first(&one_hot(batch.choices.iter().map(|choice| *choice as usize), choices), seats);
        let noise = gumbels(&batch.masks, draws);
        let names = ["the loss", "the critic's loss", "the policy's loss"];
        let mut found = gradients(&model.weights, n, names, |tape, rows| {
            let column = |numbers: &[f32]| Array::column(numbers[rows.clone()].to_vec());
            let (view, goal) = (tape.input(views.part(rows.clone())), tape.input(column(&goals)));
            let turns = tape.input(column(&batch.turns));
            let all = tape.input(chosen.part(rows.clone()));
            let both = tape.join(&[view, all]);
            let value = self.critic.on(tape, both);
            let error = tape.subtract(value, goal);
            let error = tape.multiply(error, turns);
            let square = tape.square(error);
            let sum = tape.sum(square);
            let critic_loss = tape.scale(sum, 0.5 / n as f32);

            let (x, mask) = (tape.input(batch.inputs.part(rows.clone())), tape.input(batch.masks.part(rows.clone())));
            let free = self.policy.on(tape, x);
            let logits = tape.add(free, mask);
            let noise = tape.input(noise.part(rows));
            let logits = tape.add(logits, noise);
            let soft = tape.scale(logits, (1.0 / params.temperature) as f32);
            let soft = tape.log_softmax(soft);
            let soft = tape.exp(soft);
            // The critic sees the choice itself, and the gradient is that of the soft one.
            let p = tape.value(soft);
            let hard = one_hot((0..p.rows()).map(|row| usize::from(best(p.row(row)))), choices);
            let to_hard = tape.input(hard.zip(p, |hard, soft| hard - soft));
            let own = tape.add(soft, to_hard);
            let mut parts = vec![view, own];
            if seats > 1 {
                parts.push(tape.columns(all, choices, (seats - 1) * choices));
            }
            let both = tape.join(&parts);
            let value = self.critic.frozen_on(tape, both);
            let value = tape.multiply(value, turns);
            let sum = tape.sum(value);
            let gain = tape.scale(sum, -1.0 / n as f32);
            let square = tape.square(free);
            let sum = tape.sum(square);
            let held = tape.scale(sum, (params.logit_weight / (n * choices) as f64) as f32);
            let policy_loss = tape.add(gain, held);
            [tape.add(critic_loss, policy_loss), critic_loss, policy_loss]
        })?;
        let (of_policy, of_critic) = found.of.split_at_mut(self.of_policy);
        clip(of_policy, params.max_grad_norm as f32);
        clip(of_critic, params.max_grad_norm as f32);
        model.descend(found, params.learning_rate, f64::MAX)?;
        Ok(model)
    }
}

impl Learner for Maddpg {
    const NAME: &'static str = "maddpg";
    const SUMMARY: &'static str =
        "Learns by policy gradients through a critic that sees all agents of an episode (Lowe et al. 2017)";
    type Params = Params;
    type Memory = Trained<Replayed>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        check_positive(&[("temperature", params.temperature)])?;
        check_weights(&[("logit_weight", params.logit_weight)])?;
        let teams = Teams::open(params.critic, setup)?;
        let mut start = Start::open(Self::NAME, &params.keys(), Identity::Seat, setup)?;
        let (inputs, choices) = (start.inputs(), start.choices());
        let policy = start.net("policy", [inputs, choices], 0.01);
        let of_policy = start.first.len();
        let critic = start.net("critic", [teams.seats() * (inputs + choices), 1], 1.0);
        Ok((Maddpg { params, teams, policy, critic, of_policy }, start))
    }

    fn begin(&self, first: &Weights) -> Trained<Replayed> {
        Trained::new(first, Replayed::new(first))
    }

    fn memory_bytes(&self, row: usize) -> usize {
        self.params.buffer_rounds as usize * (row + 4)
    }

    fn step(&self, memory: &mut Trained<Replayed>, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let logs = logs_of(&self.policy, &memory.model.weights, &seen.inputs, &seen.mask);
        let choices = now.chosen(seen, &logs, Choose::Best);
        memory.experience.replay.push(seen.clone(), choices, now.learns, self.params.buffer_rounds);
        let teams = (self.params.minibatch as usize).div_ceil(self.teams.seats());
        let from = (&Data::default(), &self.teams, teams);
        memory.train_teams(&self.params.schedule(), now, from, |model, target, batch, draws| {
            self.update(model, target, batch, draws)
        })
    }
}
