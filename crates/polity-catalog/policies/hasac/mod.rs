//! Soft actor-critic of several agents, which improve their policies one after another. See README.md.

mod params;
#[cfg(test)]
mod tests;

use crate::learning::{
    Choose, Data, Identity, Learner, LearnerParams, Learning, Model, Now, Replayed, Seen, Start, TeamBatch, Teams,
    Trained, Twin, check_positive, logs_of, logs_on, one_hot, own_first, sampled,
};
use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_nn::{Array, Mlp, NotFinite, Weights, gradients, outputs};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Learning<Hasac>>(files);
}

/// A learner.
pub struct Hasac {
    params: Params,
    teams: Teams,
    policy: Mlp,
    q: Twin,
}

impl Hasac {
    /// Returns the lesser of both values of what teams choose, for each member. `views`, `chosen`: own first ([`own_first`]).
    fn values(&self, weights: &Weights, views: &Array, chosen: &Array) -> Array {
        let [values] = outputs(weights, views.rows(), |tape, rows| {
            let (view, chosen) = (tape.input(views.part(rows.clone())), tape.input(chosen.part(rows)));
            let both = tape.join(&[view, chosen]);
            [self.q.least(tape, both, |_, value| value)]
        });
        values
    }

    /// Returns the values of all choices of each member, beside those that the others of its team have in `chosen`.
    fn values_of_own(&self, weights: &Weights, views: &Array, chosen: &Array, choices: usize) -> Array {
        let mut all = Array::zeros(views.rows(), choices);
        let mut chosen = chosen.clone();
        let width = chosen.columns();
        for own in 0..choices {
            for row in chosen.data_mut().chunks_exact_mut(width) {
                row[..choices].fill(0.0);
                row[own] = 1.0;
            }
            let values = self.values(weights, views, &chosen);
            for (row, value) in all.data_mut().chunks_exact_mut(choices).zip(values.data()) {
                row[own] = *value;
            }
        }
        all
    }

    /// Draws a choice for each row; returns them, own first, and the logarithms of their probabilities.
    fn drawn(&self, weights: &Weights, (inputs, masks): (&Array, &Array), draws: &mut Draws) -> (Array, Vec<f32>) {
        let logs = logs_of(&self.policy, weights, inputs, masks);
        let choices: Vec<usize> = (0..logs.rows()).map(|row| usize::from(sampled(logs.row(row), draws))).collect();
        let of = choices.iter().enumerate().map(|(row, choice)| logs.row(row)[*choice]).collect();
        (own_first(&one_hot(choices.into_iter(), logs.columns()), self.teams.seats()), of)
    }

    /// Returns what members should have expected: r + γ (Q'(v', a') - α Σ log p(a')), with a' drawn anew, the sum over all members who
    /// have a turn, and Q' by the weights of some time ago.
    fn goals(&self, weights: &Weights, target: &Weights, batch: &TeamBatch, draws: &mut Draws) -> Vec<f32> {
        let (params, seats) = (&self.params, self.teams.seats());
        let (then, logs) = self.drawn(weights, (&batch.then, &batch.then_masks), draws);
        let later = self.values(target, &own_first(&batch.then, seats), &then);
        let goal = |row: usize| {
            let team = row / seats * seats..(row / seats + 1) * seats;
            let surprise: f32 = team.map(|member| batch.then_turns[member] * logs[member]).sum();
            let then = later.data()[row] - params.alpha as f32 * surprise;
            let then = if batch.ended[row / seats] { 0.0 } else { then };
            batch.rewards[row] * params.reward_scale as f32 + params.discount as f32 * then
        };
        (0..batch.choices.len()).map(goal).collect()
    }

    /// Improves the policy of one seat after the other, in an order drawn at random. Each step moves the weights against the gradient of the
    /// sum of
    ///
    /// - the means of (Q₁(v, a) - y)² / 2 and (Q₂(v, a) - y)² / 2, over all members;
    /// - the mean of Σ p (α log p - Q), over the members on this seat, with Q held, the sum over their choices, and the choices of the others
    ///   drawn anew from their policies, which have improved if their seats came before.
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
        let (n, choices, alpha) = (batch.choices.len(), batch.masks.columns(), params.alpha as f32);
        let goals = self.goals(&model.weights, target, batch, draws);
        let views = own_first(&batch.inputs, seats);
        let taken = own_first(&one_hot(batch.choices.iter().map(|choice| *choice as usize), choices), seats);
        let mut order: Vec<usize> = (0..seats).collect();
        draws.shuffle(&mut order);
        for seat in order {
            let (beside, _) = self.drawn(&model.weights, (&batch.inputs, &batch.masks), draws);
            let values = self.values_of_own(&model.weights, &views, &beside, choices);
            // 1 for all choices of the members whose policy improves now.
            let improves = |row: usize| if row % seats == seat { batch.turns[row] } else { 0.0 };
            let improving = (0..n).flat_map(|row| std::iter::repeat_n(improves(row), choices)).collect();
            let improving = Array::new(n, choices, improving);
            let names = ["the loss", "the values' loss", "the policy's loss"];
            let found = gradients(&model.weights, n, names, |tape, rows| {
                let column = |numbers: &[f32]| Array::column(numbers[rows.clone()].to_vec());
                let (view, goal) = (tape.input(views.part(rows.clone())), tape.input(column(&goals)));
                let turns = tape.input(column(&batch.turns));
                let taken = tape.input(taken.part(rows.clone()));
                let both = tape.join(&[view, taken]);
                let errors = self.q.squares(tape, both, |tape, value| {
                    let error = tape.subtract(value, goal);
                    tape.multiply(error, turns)
                });
                let values_loss = tape.scale(errors, 0.5 / n as f32);

                let x = tape.input(batch.inputs.part(rows.clone()));
                let mask = tape.input(batch.masks.part(rows.clone()));
                let (values, improving) = (tape.input(values.part(rows.clone())), tape.input(improving.part(rows)));
                let logs = logs_on(tape, &self.policy, x, mask);
                let p = tape.exp(logs);
                let surprise = tape.scale(logs, alpha);
                let regret = tape.subtract(surprise, values);
                let regret = tape.multiply(p, regret);
                let regret = tape.multiply(regret, improving);
                let sum = tape.sum(regret);
                let policy_loss = tape.scale(sum, seats as f32 / n as f32);
                [tape.add(values_loss, policy_loss), values_loss, policy_loss]
            })?;
            model.descend(found, params.learning_rate, params.max_grad_norm)?;
        }
        Ok(model)
    }
}

impl Learner for Hasac {
    const NAME: &'static str = "hasac";
    const SUMMARY: &'static str =
        "Learns by soft actor-critic of several agents, whose policies improve one after another (Liu et al. 2024)";
    type Params = Params;
    type Memory = Trained<Replayed>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        check_positive(&[("alpha", params.alpha)])?;
        let teams = Teams::open(params.critic, setup)?;
        let mut start = Start::open(Self::NAME, &params.keys(), Identity::Seat, setup)?;
        let (inputs, choices) = (start.inputs(), start.choices());
        let policy = start.net("policy", [inputs, choices], 0.01);
        if let Some(source) = &params.weights {
            start.take(source, setup)?;
        }
        let q = Twin::new(&mut start, [teams.seats() * (inputs + choices), 1]);
        Ok((Hasac { params, teams, policy, q }, start))
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
