//! Q-learning of teams: the value of what a team does is mixed from values of what its members do.

mod mixer;
mod params;
#[cfg(test)]
pub(crate) mod testing;

use super::{
    Data, Identity, Learner, LearnerParams, Model, Now, Replayed, Seen, Start, TeamBatch, Teams, Trained, any_offered,
    best, logs_on, values_of,
};
pub use mixer::{Concave, Conservative, Hyper, Mixed, Mixer, MixerKeys, Monotonic, Penalty, Sum};
pub use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_kernel::rng::Draws;
use polity_nn::{Array, Mlp, NotFinite, Weights, gradients, outputs};
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// A kind of mixing.
pub trait Kind: Send + Sync + 'static {
    /// The name a scenario uses.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// The key `mixer`.
    type Keys: MixerKeys + DeserializeOwned + schemars::JsonSchema;
}

/// A learner.
pub struct Mixing<K: Kind> {
    params: Params<K::Keys>,
    teams: Teams,
    data: Data,
    /// The teams to learn from: those of the data, or `teams`.
    teams_of_data: Teams,
    /// The values of choices.
    q: Mlp,
    mixer: Mixer,
    /// What agents do by themselves, if the best choices of a team are not the best ones of each member.
    policy: Option<Mlp>,
    kind: PhantomData<K>,
}

/// What teams see, and which choices they are offered.
struct Sight<'a> {
    inputs: &'a Array,
    masks: &'a Array,
    turns: &'a [f32],
    /// What all members of a team see, in a row.
    state: Array,
}

impl<K: Kind> Mixing<K> {
    fn sight<'a>(&self, inputs: &'a Array, masks: &'a Array, turns: &'a [f32]) -> Sight<'a> {
        let seats = self.teams.seats();
        let state = Array::new(inputs.rows() / seats, seats * inputs.columns(), inputs.data().to_vec());
        Sight { inputs, masks, turns, state }
    }

    /// Returns the best choices of all members of teams, as the weights have it.
    fn best(&self, weights: &Weights, sight: &Sight<'_>, draws: &mut Draws) -> Vec<u32> {
        let q = values_of(&self.q, weights, sight.inputs, sight.masks);
        let each: Vec<u16> = (0..q.rows()).map(|row| best(q.row(row))).collect();
        let Mixer::Concave { hyper, slope, starts, sweeps } = &self.mixer else {
            return each.into_iter().map(u32::from).collect();
        };
        let seats = self.teams.seats();
        let mixed = Mixed::new(hyper, slope, weights, &sight.state);
        let mut all = Vec::with_capacity(each.len());
        for team in 0..sight.state.rows() {
            let rows = team * seats..(team + 1) * seats;
            // Those without a turn have one choice, with the value 0.
            let q: Vec<&[f32]> =
                rows.clone().map(|row| if sight.turns[row] > 0.0 { q.row(row) } else { &[0.0] }).collect();
            let mut top: Option<(Vec<u16>, f32)> = None;
            for start in 0..*starts {
                let choice = |(q, row): (&&[f32], usize)| match start {
                    _ if q.len() == 1 => 0,
                    0 => each[row],
                    _ => any_offered(sight.masks.row(row), draws),
                };
                let from: Vec<u16> = q.iter().zip(rows.clone()).map(choice).collect();
                let found = mixed.climb(team, &q, from, *sweeps);
                if top.as_ref().is_none_or(|top| found.1 > top.1) {
                    top = Some(found);
                }
            }
            all.extend(top.into_iter().flat_map(|(choices, _)| choices).map(u32::from));
        }
        all
    }

    /// Returns the values of what teams do, as a column.
    fn values(&self, weights: &Weights, sight: &Sight<'_>, choices: &[u32]) -> Array {
        let seats = self.teams.seats();
        let [values] = outputs(weights, sight.state.rows(), |tape, teams| {
            let rows = teams.start * seats..teams.end * seats;
            let (x, state) = (tape.input(sight.inputs.part(rows.clone())), tape.input(sight.state.part(teams)));
            let turns = tape.input(Array::column(sight.turns[rows.clone()].to_vec()));
            let q = self.q.on(tape, x);
            let q = tape.pick(q, choices[rows].to_vec());
            let q = tape.multiply(q, turns);
            let q = tape.reshape(q, seats);
            [self.mixer.on(tape, q, state)]
        });
        values
    }

    /// Moves the weights against the gradient of the mean of (Q - y)² / 2 over teams, where Q is the value of what a team did, and
    /// y = r + γ Q', with Q' that of what is best then, judged by the weights of some time ago. If agents have a policy of their own, the
    /// mean of -log p is added, with p the probability that it gives to what is best.
    ///
    /// With a joint conservative penalty, the mean of α Σ (log Σ exp q(·) - q(a)) over teams is added, with q and a the values and the choice
    /// of a member. Since a team's value is the sum of its members', this compares what the team did with all that it could have done. With a
    /// counterfactual penalty it is the mean over members instead of the sum: it compares a member's choice with its other choices beside
    /// what the others did.
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
        let mut model = model.clone();
        let (n, seats) = (batch.ended.len(), self.teams.seats());
        let then = self.sight(&batch.then, &batch.then_masks, &batch.then_turns);
        let later = self.best(&model.weights, &then, draws);
        let later = self.values(target, &then, &later);
        let goal = |team: usize| {
            let reward = batch.rewards[team * seats..(team + 1) * seats].iter().sum::<f32>() / seats as f32;
            let then = if batch.ended[team] { 0.0 } else { later.data()[team] };
            reward + self.params.discount as f32 * then
        };
        let goals: Vec<f32> = (0..n).map(goal).collect();
        let now = self.sight(&batch.inputs, &batch.masks, &batch.turns);
        let taught = self.policy.as_ref().map(|policy| (policy, self.best(&model.weights, &now, draws)));
        let beside = if taught.is_some() { "the policy's loss" } else { "the conservative loss" };
        let names = ["the loss", "the values' loss", beside];
        let found = gradients(&model.weights, n, names, |tape, teams| {
            let rows = teams.start * seats..teams.end * seats;
            let x = tape.input(now.inputs.part(rows.clone()));
            let state = tape.input(now.state.part(teams.clone()));
            let turns = tape.input(Array::column(now.turns[rows.clone()].to_vec()));
            let goal = tape.input(Array::column(goals[teams].to_vec()));
            let q = self.q.on(tape, x);
            let q = tape.pick(q, batch.choices[rows.clone()].to_vec());
            let q = tape.multiply(q, turns);
            let q = tape.reshape(q, seats);
            let value = self.mixer.on(tape, q, state);
            let error = tape.subtract(value, goal);
            let square = tape.square(error);
            let sum = tape.sum(square);
            let values_loss = tape.scale(sum, 0.5 / n as f32);
            // Minus the mean logarithm of the probabilities that a network gives to choices.
            let mut cross_entropy = |net: &Mlp, choices: &[u32], weight: f32| {
                let mask = tape.input(now.masks.part(rows.clone()));
                let logs = logs_on(tape, net, x, mask);
                let log = tape.pick(logs, choices[rows.clone()].to_vec());
                let log = tape.multiply(log, turns);
                let sum = tape.sum(log);
                tape.scale(sum, -weight / (n * seats) as f32)
            };
            let beside = match (&taught, &self.mixer) {
                (Some((policy, taught)), _) => cross_entropy(policy, taught, 1.0),
                (None, Mixer::Sum(Some(conservative))) => {
                    cross_entropy(&self.q, &batch.choices, conservative.weight(seats))
                }
                _ => return [values_loss; 3],
            };
            [tape.add(values_loss, beside), values_loss, beside]
        })?;
        model.descend(found, self.params.learning_rate, self.params.max_grad_norm)?;
        Ok(model)
    }
}

impl<K: Kind> Learner for Mixing<K> {
    const NAME: &'static str = K::NAME;
    const SUMMARY: &'static str = K::SUMMARY;
    type Params = Params<K::Keys>;
    type Memory = Trained<Replayed>;

    fn open(params: Params<K::Keys>, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check_shared()?;
        let teams = Teams::open(params.together, setup)?;
        let mut start = Start::open(K::NAME, &params.keys(), Identity::Seat, setup)?;
        let sizes = [start.inputs(), start.choices()];
        // What agents do by themselves is in the file of weights as `policy`.
        let q = start.net("policy", sizes, 1.0);
        let mixer = params.mixer.build(&mut start, sizes[0] * teams.seats(), teams.seats())?;
        let (q, policy) = match mixer {
            Mixer::Concave { .. } => (start.net("value", sizes, 1.0), Some(q)),
            _ => (q, None),
        };
        if policy.is_none() {
            start = start.of_values();
        }
        let data = Data::open(params.data.as_ref(), &start.senses, setup)?;
        let teams_of_data = data.teams(&teams)?;
        Ok((Mixing { params, teams, data, teams_of_data, q, mixer, policy, kind: PhantomData }, start))
    }

    fn begin(&self, first: &Weights) -> Trained<Replayed> {
        Trained::new(first, Replayed::new(first))
    }

    fn memory_bytes(&self, row: usize) -> usize {
        self.data.remembers(self.params.buffer_rounds) as usize * (row + 4)
    }

    fn step(&self, memory: &mut Trained<Replayed>, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let net = self.policy.as_ref().unwrap_or(&self.q);
        let values = values_of(net, &memory.model.weights, &seen.inputs, &seen.mask);
        // Who learns from data need not try anything.
        let epsilon = if self.data.is_given() { 0.0 } else { self.params.exploration().at(now.round) };
        let choices = now.greedy(seen, &values, epsilon);
        let most = self.data.remembers(self.params.buffer_rounds);
        memory.experience.replay.push(seen.clone(), choices, now.learns, most);
        let from = (&self.data, &self.teams_of_data, self.params.minibatch as usize);
        memory.train_teams(&self.params.schedule(), now, from, |model, target, batch, draws| {
            self.update(model, target, batch, draws)
        })
    }
}
