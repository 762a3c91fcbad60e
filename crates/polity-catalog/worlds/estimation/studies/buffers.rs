//! A mixture of experts of limited capacity, and a query whose batch somebody else fills.

use super::super::Memory;
use super::super::params::{Buffers, Others};
use crate::trials::{Experiment, Measure};
use polity_kernel::Invalid;
use polity_kernel::rng::{Draws, Stream};
use polity_nn::{Activation, Adam, Array, Dense, Experts, Tape, Var, Weights, argmax, gradients, outputs};
use std::f64::consts::PI;

/// Clusters of points on a circle. Opposite ones are of the same class, so that no straight line tells classes apart.
const CLUSTERS: u64 = 8;
const CLASSES: usize = 4;
/// Standard deviation of the points of a cluster; the circle has radius 1.
const NOISE: f64 = 0.1;
/// Numbers between the layers.
const WIDTH: usize = 8;
/// Steps of the optimiser, and points of each.
const STEPS: u32 = 400;
const POINTS: usize = 256;
const RATE: f32 = 0.01;
/// Weight of the loss that keeps the experts equally busy.
const BALANCE: f32 = 0.05;
/// Points on which the classifier is tested.
const TESTED: usize = 500;
/// Standard deviation of a change that the attacker tries.
const CHANGE: f64 = 0.3;

/// What is asked: a point.
type Query = [f32; 2];

pub(super) struct Queries {
    params: Buffers,
    embed: Dense,
    experts: Experts,
    head: Dense,
}

impl Queries {
    pub(super) fn open(params: Buffers) -> Result<Queries, Invalid> {
        params.check()?;
        // The layers are the same for all agents; each agent has weights of its own.
        let mut draws = Draws::new(0, Stream::Learner, 0, 0);
        Ok(Queries::layers(params, &mut Weights::default(), &mut draws))
    }

    fn layers(params: Buffers, weights: &mut Weights, draws: &mut Draws) -> Self {
        let embed = Dense::new(weights, "embed", [2, WIDTH], 1.0, draws);
        let sizes = [WIDTH, WIDTH, WIDTH];
        let experts = Experts::new(weights, "experts", &sizes, [params.experts as usize, 1], Activation::Relu, draws);
        let head = Dense::new(weights, "head", [WIDTH, CLASSES], 1.0, draws);
        Queries { params, embed, experts, head }
    }

    /// Returns the number of queries that an expert serves in a batch.
    fn capacity(&self, batch: usize) -> usize {
        let share = batch as f64 / f64::from(self.params.experts);
        (libm::ceil(self.params.capacity_factor * share) as usize).max(1)
    }

    /// Returns the logits of all classes, the logarithms of the gates, and which experts serve which queries.
    fn on(&self, tape: &mut Tape<'_>, queries: Array, capacity: Option<usize>) -> (Var, Var, Array) {
        let x = tape.input(queries);
        let state = self.embed.on(tape, x);
        let gates = self.experts.gates(tape, state);
        let served = self.experts.served(tape.value(gates), capacity);
        let made = self.experts.on(tape, state, gates, served.clone());
        let sum = tape.add(state, made);
        (self.head.on(tape, sum), gates, served)
    }

    /// Learns a classifier.
    fn learn(&self, draws: &mut Draws) -> Result<Weights, String> {
        let mut weights = Weights::default();
        Queries::layers(self.params, &mut weights, draws);
        let mut adam = Adam::new(&weights);
        for _ in 0..STEPS {
            let (queries, mut classes): (Vec<Query>, Vec<u32>) = (0..POINTS).map(|_| point(draws)).unzip();
            if self.params.shuffled {
                draws.shuffle(&mut classes);
            }
            let queries = batch(&queries);
            let found = gradients(&weights, POINTS, ["the loss"], |tape, rows| {
                let (logits, gates, served) = self.on(tape, queries.part(rows.clone()), None);
                let logs = tape.log_softmax(logits);
                let log = tape.pick(logs, classes[rows.clone()].to_vec());
                let log = tape.sum(log);
                // Fedus and others 2021: what each expert serves times its mean probability.
                let busy = served.column_sums();
                let n = rows.len() as f32;
                let each = busy.data().iter().map(|served| served * busy.columns() as f32 / n);
                let busy: Vec<f32> = each.collect();
                let busy = Array::new(rows.len(), busy.len(), busy.repeat(rows.len()));
                let (busy, p) = (tape.input(busy), tape.exp(gates));
                let balance = tape.multiply(busy, p);
                let balance = tape.sum(balance);
                let balance = tape.scale(balance, BALANCE);
                let loss = tape.subtract(balance, log);
                [tape.scale(loss, 1.0 / POINTS as f32)]
            });
            adam.step(&mut weights, &found.map_err(|error| error.to_string())?.of, RATE);
        }
        Ok(weights)
    }

    /// Returns the class of the last of some queries, and whether no expert serves it. `capacity`: the most queries that an expert serves.
    fn answer(&self, weights: &Weights, queries: &[Query], capacity: Option<usize>) -> (usize, bool) {
        let mut tape = Tape::new(weights);
        let (logits, _, served) = self.on(&mut tape, batch(queries), capacity);
        let last = queries.len() - 1;
        (argmax(tape.value(logits).row(last)), served.row(last).iter().all(|served| *served == 0.0))
    }

    /// Returns the logarithm of the probability of each expert for a query.
    fn gates(&self, weights: &Weights, query: Query) -> Vec<f32> {
        let mut tape = Tape::new(weights);
        let (_, gates, _) = self.on(&mut tape, batch(&[query]), None);
        tape.value(gates).row(0).to_vec()
    }

    /// Changes a random query again and again, so that it goes to this expert.
    fn aimed(&self, weights: &Weights, expert: usize, draws: &mut Draws) -> Query {
        let mut best = point(draws).0;
        let mut most = self.gates(weights, best)[expert];
        for _ in 0..self.params.tries {
            let changed = best.map(|x| x + (CHANGE * draws.normal()) as f32);
            let found = self.gates(weights, changed)[expert];
            if found > most {
                (best, most) = (changed, found);
            }
        }
        best
    }

    /// Returns the queries that come before a victim's in its batch.
    fn before(&self, weights: &Weights, victim: Query, draws: &mut Draws) -> Vec<Query> {
        let others = self.params.batch as usize - 1;
        let (expert, experts) = (argmax(&self.gates(weights, victim)), self.params.experts as usize);
        let other = if self.params.misled { 1 + draws.below(experts as u64 - 1) as usize } else { 0 };
        let aim = (expert + other) % experts;
        let mut attack = || (0..others).map(|_| self.aimed(weights, aim, draws)).collect::<Vec<_>>();
        match self.params.others {
            Others::Attacker => attack(),
            Others::None => Vec::new(),
            Others::Users => (0..others).map(|_| point(draws).0).collect(),
            Others::Mixed => {
                let mut pool = attack();
                pool.extend((0..3 * others).map(|_| point(draws).0));
                draws.shuffle(&mut pool);
                // The victim's place is random, and those after it do not matter to it.
                pool.truncate(draws.below(others as u64 + 1) as usize);
                pool
            }
        }
    }
}

/// Draws a point and its class.
fn point(draws: &mut Draws) -> (Query, u32) {
    let cluster = draws.below(CLUSTERS);
    let angle = 2.0 * PI * cluster as f64 / CLUSTERS as f64;
    let near = |x: f64, draws: &mut Draws| (x + NOISE * draws.normal()) as f32;
    let query = [near(libm::cos(angle), draws), near(libm::sin(angle), draws)];
    (query, (cluster % CLASSES as u64) as u32)
}

fn batch(queries: &[Query]) -> Array {
    Array::new(queries.len(), 2, queries.iter().flatten().copied().collect())
}

impl Experiment<Memory> for Queries {
    fn measures(&self) -> &'static [Measure] {
        &[
            ("accuracy", "share of points whose class is found without limits of capacity"),
            ("flipped", "share of victims' queries that get another class than without such limits"),
            ("dropped", "share of them that no expert serves"),
        ]
    }

    fn rounds(&self) -> Option<u32> {
        Some(1)
    }

    fn trial(&self, _: &mut Memory, _: u32, draws: &mut Draws) -> Result<Vec<f64>, String> {
        let weights = self.learn(draws)?;
        let (queries, classes): (Vec<Query>, Vec<u32>) = (0..TESTED).map(|_| point(draws)).unzip();
        let queries = batch(&queries);
        let [logits] = outputs(&weights, TESTED, |tape, rows| [self.on(tape, queries.part(rows), None).0]);
        let right = (0..TESTED).filter(|row| argmax(logits.row(*row)) == classes[*row] as usize).count();
        let size = if self.params.others == Others::None { 1 } else { self.params.batch as usize };
        let (mut flipped, mut dropped) = (0, 0);
        for _ in 0..self.params.victims {
            let victim = point(draws).0;
            let mut queries = self.before(&weights, victim, draws);
            queries.push(victim);
            let (free, _) = self.answer(&weights, &[victim], None);
            let (limited, none) = self.answer(&weights, &queries, Some(self.capacity(size)));
            flipped += u32::from(limited != free);
            dropped += u32::from(none);
        }
        let share = |n: u32| f64::from(n) / f64::from(self.params.victims);
        Ok(vec![right as f64 / TESTED as f64, share(flipped), share(dropped)])
    }
}
