//! Learners, and what all of them have in common as policies.

use super::{
    About, Choose, Chooser, Decision, Identity, Returns, RewardSource, Seen, Senses, any_offered, best, episode_return,
    net,
};
use polity_kernel::cohort::{CohortContext, CohortPolicy};
use polity_kernel::interface::Observation;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::WeightsSource;
use polity_kernel::{AgentId, Invalid, Plain};
use polity_nn::{
    Activation, Adam, Array, Attention, Convolution, Dense, Gradients, Gru, Mlp, NotFinite, SoftExperts, Weights, clip,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A policy that learns: its parameters, its networks, how it acts and how it learns. All else is done by [`Learning`].
pub trait Learner: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a scenario may set.
    type Params: DeserializeOwned + schemars::JsonSchema;
    /// What its cohort keeps from round to round.
    type Memory: Memory;

    /// Binds the learner to a world, and makes its networks.
    ///
    /// # Errors
    /// A parameter, or a part of the world, that does not fit.
    fn open(params: Self::Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid>;

    /// Returns what the cohort keeps before the first round, with the weights that its networks begin with.
    fn begin(&self, first: &Weights) -> Self::Memory;

    /// Returns the bytes that the cohort keeps for each agent. `row`: those of what an agent sees in a round.
    fn memory_bytes(&self, row: usize) -> usize;

    /// Learns if it is time ([`Now::learns`]), and decides for all agents.
    ///
    /// # Errors
    /// The first loss, gradient or weight that is not a finite number.
    fn step(&self, memory: &mut Self::Memory, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite>;
}

/// What a cohort of learners keeps.
pub trait Memory: Plain {
    /// What an agent decides.
    type Decision: Decision;

    /// Returns what an agent decided in this round.
    fn decided(&self, who: AgentId) -> Option<Self::Decision>;

    /// Returns the weights, if they are learned here.
    fn weights(&self) -> Option<&Weights>;

    /// Returns the number of updates so far.
    fn updates(&self) -> u32;
}

/// A network and the state of its optimiser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The weights.
    pub weights: Weights,
    /// The optimiser.
    pub adam: Adam,
}

impl Model {
    /// Begins with these weights.
    #[must_use]
    pub fn new(first: &Weights) -> Self {
        Model { weights: first.clone(), adam: Adam::new(first) }
    }

    /// Moves the weights against their gradients, which are scaled down to `longest` if they are longer.
    ///
    /// # Errors
    /// The first weights that are not finite afterwards.
    pub fn descend<const N: usize>(
        &mut self,
        mut found: Gradients<N>,
        rate: f64,
        longest: f64,
    ) -> Result<(), NotFinite> {
        clip(&mut found.of, longest as f32);
        self.adam.step(&mut self.weights, &found.of, rate as f32);
        self.weights.finite()
    }
}

/// The keys that all learners have.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// Numbers that the network sees; by default all, except those about turns and rewards.
    pub observe: Option<&'a [String]>,
    /// The numbers that make up the reward.
    pub reward: &'a RewardSource,
    /// The number that is 1 when an episode has ended; by default that of the world.
    pub ended: Option<&'a str>,
    /// Sizes of hidden layers.
    pub hidden: &'a [usize],
    /// The function after each hidden layer.
    pub activation: Activation,
    /// The round from which nothing is learned.
    pub stop: Option<u32>,
}

/// Checks that these are sizes of hidden layers: up to 8 of up to 1,024.
///
/// # Errors
/// The key, with what its value must be.
pub fn check_layers(key: &str, sizes: &[usize]) -> Result<(), Invalid> {
    Invalid::unless(sizes.len() <= 8, key, "must be at most 8 layers")?;
    sizes.iter().try_for_each(|size| Invalid::within(1..=1_024, key, *size))
}

/// Checks that numbers are above 0.
///
/// # Errors
/// The first key whose value is not.
pub fn check_positive(keys: &[(&str, f64)]) -> Result<(), Invalid> {
    keys.iter().try_for_each(|(key, value)| {
        let fits = *value > 0.0 && value.is_finite();
        Invalid::unless(fits, key, format!("must be above 0, is {value}"))
    })
}

/// Checks that numbers are at least 0.
///
/// # Errors
/// The first key whose value is not.
pub fn check_weights(keys: &[(&str, f64)]) -> Result<(), Invalid> {
    keys.iter().try_for_each(|(key, value)| {
        let fits = *value >= 0.0 && value.is_finite();
        Invalid::unless(fits, key, format!("must be at least 0, is {value}"))
    })
}

/// Checks that numbers are from 0 to 1.
///
/// # Errors
/// The first key whose value is not.
pub fn check_shares(keys: &[(&str, f64)]) -> Result<(), Invalid> {
    keys.iter().try_for_each(|(key, value)| Invalid::within(0.0..=1.0, key, *value))
}

/// Checks that counts are from 1 to a million.
///
/// # Errors
/// The first key whose value is not.
pub fn check_counts(keys: &[(&str, u32)]) -> Result<(), Invalid> {
    keys.iter().try_for_each(|(key, value)| Invalid::within(1..=1_000_000, key, *value))
}

/// What a learner begins with: what it sees and chooses from, and the weights of its networks.
#[derive(Clone, Debug)]
pub struct Start {
    /// What it sees of the world.
    pub senses: Senses,
    /// What its file of weights says; `None`: it learns no weights.
    pub about: Option<About>,
    /// The weights that it begins with.
    pub first: Weights,
    /// Random numbers with which these are made.
    draws: Draws,
    stop: Option<u32>,
    seed: u64,
    /// The first agent of the cohort, which tells its random numbers from those of other cohorts.
    whose: AgentId,
    rounds: u32,
}

impl Start {
    /// Binds senses to a cohort whose learner has no networks yet.
    #[must_use]
    pub fn new(senses: Senses, setup: &PolicySetup<'_>) -> Self {
        let (seed, whose, rounds) = (setup.shared_context.seed, setup.cohort.start, setup.rounds);
        let draws = Draws::new(seed, Stream::Learner, 0, whose);
        Start { senses, about: None, first: Weights::default(), draws, stop: None, seed, whose, rounds }
    }

    /// Binds a learner to a world. `identity`: what an agent sees of itself by default.
    ///
    /// # Errors
    /// Keys that do not fit the world.
    pub fn open(name: &str, keys: &Keys<'_>, identity: Identity, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Start::open_for::<u16>(name, keys, identity, setup)
    }

    /// Does the same for a learner whose agents decide by a `D`.
    ///
    /// # Errors
    /// Keys that do not fit the world.
    pub fn open_for<D: Decision>(
        name: &str,
        keys: &Keys<'_>,
        identity: Identity,
        setup: &PolicySetup<'_>,
    ) -> Result<Self, Invalid> {
        check_layers("hidden", keys.hidden)?;
        let senses = Senses::open::<D>(keys.observe, keys.reward, keys.ended, identity, setup)?;
        let about = About { continuous: D::NUMBERS, ..About::new(name, setup, &senses, keys.hidden, keys.activation) };
        Ok(Start { about: Some(about), stop: keys.stop, ..Start::new(senses, setup) })
    }

    /// Notes that the network gives values of choices, and no logits of probabilities.
    #[must_use]
    pub fn of_values(mut self) -> Self {
        self.about.iter_mut().for_each(|about| about.values = true);
        self
    }

    /// Returns the number of inputs of a network that sees what an agent sees.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.senses.numbers().len()
    }

    /// Returns the number of choices, or of numbers that are chosen.
    #[must_use]
    pub fn choices(&self) -> usize {
        self.senses.choices().len()
    }

    /// Makes the network `policy`, which gives each choice a logit. `per_choice`: whether it sees each choice alone, with the numbers about it.
    ///
    /// # Errors
    /// Choices that do not have the same numbers.
    pub fn chooser(&mut self, per_choice: bool) -> Result<Chooser, Invalid> {
        let wrong = || Invalid { key: "kind".into(), message: "a learner without weights has no network".into() };
        let about = self.about.as_mut().ok_or_else(wrong)?;
        about.per_choice = per_choice;
        Chooser::new(about, 0.01, &mut self.first, &mut self.draws)
    }

    /// Makes a network from these inputs to these outputs, with the hidden layers of the keys. `gain`: that of the last layer.
    pub fn net(&mut self, name: &str, sizes: [usize; 2], gain: f64) -> Mlp {
        let about = self.about.as_ref();
        let (hidden, activation) =
            about.map_or((Vec::new(), Activation::Tanh), |of| (of.hidden.clone(), of.activation));
        net(&mut self.first, name, sizes, (hidden.as_slice(), activation), gain, &mut self.draws)
    }

    /// Begins with weights from a file, instead of those of the networks that were made so far.
    ///
    /// # Errors
    /// A file without such weights, or weights that were learned from something else than the learner sees here.
    pub fn take(&mut self, source: &WeightsSource, setup: &PolicySetup<'_>) -> Result<(), Invalid> {
        let (weights, of) = About::read(setup.weights(source)?)?;
        of.fits(&self.senses, setup.world)?;
        self.first.take(&weights).map_err(|error| Invalid { key: "weights".into(), message: error.to_string() })
    }

    /// Begins with some layers from a file: all tensors whose names begin with `NAME.` for one of these names. Returns the numbers of these
    /// tensors.
    ///
    /// # Errors
    /// A name that no tensor has; a file without such tensors, or with tensors of other shapes.
    pub fn take_layers(
        &mut self,
        source: &WeightsSource,
        names: &[String],
        setup: &PolicySetup<'_>,
    ) -> Result<Vec<usize>, Invalid> {
        let (weights, _) = About::read(setup.weights(source)?)?;
        let wrong = |message: String| Invalid { key: "layers".into(), message };
        let mut taken = Vec::new();
        for name in names {
            let before = taken.len();
            let ours: Vec<usize> =
                (0..self.first.len()).filter(|i| self.first[*i].name.starts_with(&format!("{name}."))).collect();
            for i in ours {
                let tensor = &self.first[i].name;
                let found = weights.iter().find(|of| of.name == *tensor);
                let found = found.ok_or_else(|| wrong(format!("`{}` has no `{tensor}`", source.file)))?;
                let [here, there] = [self.first[i].array.shape(), found.array.shape()];
                let message = || format!("`{tensor}` of `{}` is {there:?}, and here it is {here:?}", source.file);
                Invalid::unless(here == there, "layers", message())?;
                let array = found.array.clone();
                self.first.arrays_mut().nth(i).into_iter().for_each(|of| *of = array.clone());
                taken.push(i);
            }
            let known: Vec<&str> = self.first.iter().filter_map(|of| of.name.split('.').next()).collect();
            let message = format!("there are no layers `{name}`; there are {}", known.join(", "));
            Invalid::unless(taken.len() > before, "layers", message)?;
        }
        Ok(taken)
    }

    /// Makes a recurrent layer from what an agent sees to a state of so many numbers.
    pub fn gru(&mut self, name: &str, size: usize) -> Gru {
        self.about.iter_mut().for_each(|about| about.memory = Some(size));
        let inputs = self.inputs();
        Gru::new(&mut self.first, name, [inputs, size], &mut self.draws)
    }

    /// Makes a dense layer.
    pub fn dense(&mut self, name: &str, sizes: [usize; 2]) -> Dense {
        Dense::new(&mut self.first, name, sizes, 1.0, &mut self.draws)
    }

    /// Makes a convolution of pictures of this height, width and number of channels, with patches of this side and so many filters.
    pub fn convolution(&mut self, name: &str, size: [usize; 3], [side, filters]: [usize; 2]) -> Convolution {
        Convolution::new(&mut self.first, name, size, [side, filters], &mut self.draws)
    }

    /// Makes an attention layer from a query and entities to so many numbers.
    pub fn attention(&mut self, name: &str, sizes: [usize; 3]) -> Attention {
        Attention::new(&mut self.first, name, sizes, 1, &mut self.draws)
    }

    /// Makes a soft mixture of experts, each with one layer.
    pub fn soft_experts(&mut self, name: &str, [token, to]: [usize; 2], experts: usize) -> SoftExperts {
        SoftExperts::new(&mut self.first, name, &[token, to], experts, Activation::Relu, &mut self.draws)
    }

    /// Makes weights from normal numbers with this standard deviation, and returns their number.
    pub fn normal(&mut self, name: &str, [rows, columns]: [usize; 2], deviation: f64) -> usize {
        let numbers = (0..rows * columns).map(|_| (deviation * self.draws.normal()) as f32).collect();
        self.first.push(name, Array::new(rows, columns, numbers))
    }

    /// Adds standard normal numbers to these outputs of a network, by its last bias.
    pub fn scatter(&mut self, net: &Mlp, columns: impl Iterator<Item = usize>) {
        if let Some(bias) = net.last_bias().and_then(|number| self.first.arrays_mut().nth(number)) {
            columns.for_each(|column| bias.data_mut()[column] += self.draws.normal() as f32);
        }
    }

    /// Makes a network with hidden layers of its own. `gain`: that of the last layer.
    pub fn net_with(&mut self, name: &str, sizes: [usize; 2], layers: (&[usize], Activation), gain: f64) -> Mlp {
        net(&mut self.first, name, sizes, layers, gain, &mut self.draws)
    }
}

/// A round, for a learner.
#[derive(Debug)]
pub struct Now<'a> {
    context: &'a CohortContext<'a>,
    /// The round.
    pub round: u32,
    /// The rounds of the run.
    pub rounds: u32,
    /// Whether the learner still learns. After that it takes the best choices.
    pub learns: bool,
    seed: u64,
    whose: AgentId,
}

impl Now<'_> {
    /// Returns random numbers of the cohort in this round.
    #[must_use]
    pub fn draws(&self) -> Draws {
        Draws::new(self.seed, Stream::Learner, self.round, self.whose)
    }

    /// Returns the decision of each agent ([`Decision::none`] where it has no turn). `choose` is given a row, and random numbers of its agent.
    pub fn choices<D: Decision>(&self, seen: &Seen, choose: impl Fn(usize, &mut Draws) -> D) -> Vec<D> {
        let of = |(row, who): (usize, &AgentId)| match seen.active[row] {
            true => choose(row, &mut self.context.draws(*who)),
            false => D::none(),
        };
        seen.agents.iter().enumerate().map(of).collect()
    }

    /// Returns the choice of each agent from the logarithms of the probabilities: by lot, or as `then` says when nothing is learned any
    /// more.
    #[must_use]
    pub fn chosen(&self, seen: &Seen, logs: &Array, then: Choose) -> Vec<u16> {
        let how = if self.learns { Choose::Sampled } else { then };
        self.choices(seen, |row, draws| how.of(logs.row(row), draws))
    }

    /// Returns the choice of each agent from the values of choices: with probability `epsilon` any that is offered, else the best one.
    #[must_use]
    pub fn greedy(&self, seen: &Seen, values: &Array, epsilon: f64) -> Vec<u16> {
        self.choices(seen, |row, draws| match self.learns && draws.chance(epsilon) {
            true => any_offered(seen.mask.row(row), draws),
            false => best(values.row(row)),
        })
    }
}

/// A learner as a policy.
pub struct Learning<L> {
    learner: L,
    start: Start,
}

impl<L: Learner> Policy for Learning<L> {
    const NAME: &'static str = L::NAME;
    const SUMMARY: &'static str = L::SUMMARY;
    type Params = L::Params;
    type State = Returns;
    const COLUMNS: &'static [StateColumn<Self>] = &[episode_return()];

    fn open(params: L::Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let (learner, start) = L::open(params, setup)?;
        Ok(Learning { learner, start })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Returns {
        Returns::default()
    }

    fn memory_bytes(&self) -> usize {
        self.learner.memory_bytes(self.start.senses.row_bytes())
    }

    async fn act(&self, returns: &mut Returns, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let decision = turn.shared::<L::Memory>()?.decided(turn.who);
        self.start.senses.act(returns, turn, decision);
        Ok(())
    }
}

impl<L: Learner> CohortPolicy for Learning<L> {
    type Tally = Seen;
    type Shared = L::Memory;

    fn init_shared(&self) -> L::Memory {
        self.learner.begin(&self.start.first)
    }

    fn tally(&self) -> Seen {
        Seen::default()
    }

    fn count(&self, seen: &mut Seen, _: u32, _: &Returns, person: Person<'_>, observation: Observation<'_>) {
        self.start.senses.count(seen, person.id, observation);
    }

    fn merge(&self, left: Seen, right: Seen) -> Seen {
        left.merged(right)
    }

    async fn cohort_step(
        &self,
        memory: &mut L::Memory,
        seen: &Seen,
        context: &mut CohortContext<'_>,
    ) -> Result<(), Fault> {
        let Start { stop, seed, whose, rounds, .. } = self.start;
        let round = context.round;
        let learns = stop.is_none_or(|stop| round < stop);
        let now = Now { context, round, rounds, learns, seed, whose };
        let done = self.learner.step(memory, seen, &now);
        done.map_err(|error| Fault(format!("update {} of `{}`: {error}", memory.updates() + 1, L::NAME)))
    }

    fn weights(&self, memory: &L::Memory) -> Result<Option<Vec<u8>>, Fault> {
        let both = self.start.about.as_ref().zip(memory.weights());
        both.map(|(about, weights)| about.write(weights)).transpose()
    }
}

/// What a cohort keeps that learns one model from its experience.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "X: Plain")]
pub struct Trained<X> {
    /// The networks.
    pub model: super::Kept<Model>,
    /// What it has lived through.
    pub experience: X,
    /// Updates so far.
    pub updates: u32,
}

/// What a cohort has lived through.
pub trait Experience: Plain {
    /// What an agent decides.
    type Decision: Decision;

    /// Returns what an agent decided in the last round.
    fn decided(&self, who: AgentId) -> Option<Self::Decision>;
}

impl<X: Experience> Trained<X> {
    /// Begins with these weights.
    pub fn new(first: &Weights, experience: X) -> Self {
        Trained { model: super::Kept::new(Model::new(first)), experience, updates: 0 }
    }

    /// Takes a model that has learned.
    pub fn learned(&mut self, model: Model) {
        self.model.set(model);
        self.updates += 1;
    }
}

impl<X: Experience> Memory for Trained<X> {
    type Decision = X::Decision;

    fn decided(&self, who: AgentId) -> Option<X::Decision> {
        self.experience.decided(who)
    }

    fn weights(&self) -> Option<&Weights> {
        Some(&self.model.weights)
    }

    fn updates(&self) -> u32 {
        self.updates
    }
}
