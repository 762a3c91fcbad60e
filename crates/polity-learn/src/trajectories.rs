//! Mixtures of Markov decision processes, learned from short trajectories without labels.
//!
//! After Kausik, Tan and Tewari, "Learning Mixtures of Markov Chains and MDPs" (ICML 2023), and the program of its authors. For each state
//! and action a subspace is estimated in which the next-state probabilities of all processes lie. Two trajectories are similar if no state and
//! action tells their next states apart: for each, the differences in an early and in a late part of the trajectories, projected on the
//! subspace, are multiplied, so that noise has mean 0. Spectral clustering gives labels; EM refines them. Only pairs of a state and an action
//! that both trajectories have visited in both parts are compared; trajectories without one are half similar.

use crate::linear::{dot, symmetric_eigen};
use crate::spectral;
use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A step: the state, the action, the next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The state.
    pub state: u16,
    /// The action.
    pub action: u16,
    /// The state after it.
    pub next: u16,
}

/// A trajectory.
pub type Trajectory = Vec<Step>;

/// Sizes of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Number of states.
    pub states: usize,
    /// Number of actions.
    pub actions: usize,
}

impl Sizes {
    fn pair(self, step: &Step) -> usize {
        usize::from(step.state) * self.actions + usize::from(step.action)
    }

    /// Returns the number of pairs of a state and an action.
    #[must_use]
    pub fn pairs(self) -> usize {
        self.states * self.actions
    }
}

/// A process with a finite number of states: for each pair of a state and an action, the probabilities of next states.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Its sizes.
    pub sizes: Sizes,
    /// Probabilities of next states, by state, action and next state.
    pub next: Vec<f64>,
}

impl Process {
    /// Draws a trajectory of `length` steps from a uniformly drawn state under a policy, by state and action.
    pub fn walk(&self, policy: &[f64], length: usize, draws: &mut Draws) -> Trajectory {
        let Sizes { states, actions } = self.sizes;
        let mut state = draws.below(states as u64) as usize;
        (0..length)
            .map(|_| {
                let action = draws.weighted(&policy[state * actions..(state + 1) * actions]).unwrap_or(0);
                let row = (state * actions + action) * states;
                let next = draws.weighted(&self.next[row..row + states]).unwrap_or(state);
                let step = Step { state: state as u16, action: action as u16, next: next as u16 };
                state = next;
                step
            })
            .collect()
    }
}

/// The gridworld of the paper: 8 by 8 cells, the last of them absorbing, with a slip of `slip` to each other direction; two processes whose
/// moves are those of the grid, mixed with weight `mix` with those of the action that leads to the highest or the lowest value. Returns the two
/// and the behaviour policy, the same for both.
#[must_use]
pub fn gridworld(slip: f64, mix: f64) -> ([Process; 2], Vec<f64>) {
    const SIDE: usize = 8;
    const STATES: usize = SIDE * SIDE;
    // Rewards: `.` costs 0.01, `f` costs 0.005, `h` costs 0.5, `g` is the goal.
    const MAP: [&[u8; SIDE]; SIDE] =
        [b"........", b"..f.h...", b"...h..f.", b".f...h.f", b"...h..f.", b".hh.f.h.", b".h..h.h.", b"...h.f.g"];
    let sizes = Sizes { states: STATES, actions: 4 };
    let reward = |state: usize| match MAP[state / SIDE][state % SIDE] {
        b'f' => -0.005,
        b'h' => -0.5,
        b'g' => 1.0,
        _ => -0.01,
    };
    // Left, right, up, down.
    let neighbour = |state: usize, direction: usize| match direction {
        0 if !state.is_multiple_of(SIDE) => state - 1,
        1 if state % SIDE < SIDE - 1 => state + 1,
        2 if state >= SIDE => state - SIDE,
        3 if state + SIDE < STATES => state + SIDE,
        _ => state,
    };
    let mut plain = vec![0.0; STATES * 4 * STATES];
    for state in 0..STATES {
        for action in 0..4 {
            let row = (state * 4 + action) * STATES;
            if state == STATES - 1 {
                plain[row + state] = 1.0;
                continue;
            }
            for direction in 0..4 {
                let share = if direction == action { 1.0 - 3.0 * slip } else { slip };
                plain[row + neighbour(state, direction)] += share;
            }
        }
    }
    // The value of moves at random, discounted by 0.98, after 100 sweeps.
    let mut value = vec![0.0; STATES];
    for _ in 0..100 {
        value = (0..STATES)
            .map(|state| {
                let of = |action: usize| -> f64 {
                    let row = (state * 4 + action) * STATES;
                    let gain = |next: usize| if state == STATES - 1 { 0.0 } else { reward(next) } + 0.98 * value[next];
                    (0..STATES).map(|next| plain[row + next] * gain(next)).sum()
                };
                (0..4).map(of).sum::<f64>() / 4.0
            })
            .collect();
    }
    let outlook = |state: usize, action: usize| {
        let row = (state * 4 + action) * STATES;
        dot(&plain[row..row + STATES], &value)
    };
    // The first of several equal ones.
    let extreme = |state: usize, sign: f64| {
        (1..4).fold(0, |best, a| if sign * outlook(state, a) > sign * outlook(state, best) { a } else { best })
    };
    let towards = |sign: f64| {
        let mut next = plain.clone();
        for state in 0..STATES {
            let pull = (state * 4 + extreme(state, sign)) * STATES;
            for action in 0..4 {
                let row = (state * 4 + action) * STATES;
                for to in 0..STATES {
                    next[row + to] = (1.0 - mix) * plain[row + to] + mix * plain[pull + to];
                }
            }
        }
        Process { sizes, next }
    };
    // The mean of the two confounded policies of the authors' program.
    let mut policy = vec![0.0; STATES * 4];
    for state in 0..STATES {
        for sign in [1.0, -1.0] {
            let weight = |action: usize| {
                let base = [0.4, 0.1, 0.1, 0.4][action];
                let up = if action == extreme(state, 1.0) { 0.2 } else { -0.2 };
                f64::max(base + sign * up, 0.0) + 0.05
            };
            let total: f64 = (0..4).map(weight).sum();
            (0..4).for_each(|action| policy[state * 4 + action] += 0.5 * weight(action) / total);
        }
    }
    ([towards(1.0), towards(-1.0)], policy)
}

/// Shares of next states by pair of state and action, in a part of a trajectory.
type Part = BTreeMap<usize, Vec<(u16, f64)>>;

fn part(steps: &[Step], sizes: Sizes) -> Part {
    let mut counts: BTreeMap<usize, BTreeMap<u16, f64>> = BTreeMap::new();
    for step in steps {
        *counts.entry(sizes.pair(step)).or_default().entry(step.next).or_default() += 1.0;
    }
    let shares = |next: BTreeMap<u16, f64>| {
        let total: f64 = next.values().sum();
        next.into_iter().map(|(state, count)| (state, count / total)).collect()
    };
    counts.into_iter().map(|(pair, next)| (pair, shares(next))).collect()
}

/// The second and the last quarter of a trajectory.
fn parts(trajectory: &Trajectory, sizes: Sizes) -> [Part; 2] {
    let quarter = trajectory.len() / 4;
    [part(&trajectory[quarter..2 * quarter], sizes), part(&trajectory[3 * quarter..], sizes)]
}

/// The subspace of a pair: next states that occur, and `k` vectors over them, one a row.
#[derive(Clone, Debug, Default, PartialEq)]
struct Subspace {
    states: Vec<u16>,
    vectors: Vec<f64>,
}

impl Subspace {
    fn project(&self, shares: &[(u16, f64)], k: usize) -> Vec<f64> {
        let n = self.states.len();
        let mut place = vec![0.0; k];
        for (state, share) in shares {
            if let Ok(at) = self.states.binary_search(state) {
                (0..self.vectors.len() / n.max(1)).for_each(|i| place[i] += share * self.vectors[i * n + at]);
            }
        }
        place
    }
}

/// Estimates, for each pair, the space of the `k` largest eigenvalues of the summed products of early and late shares.
fn subspaces(early_late: &[[Part; 2]], sizes: Sizes, k: usize) -> Vec<Subspace> {
    (0..sizes.pairs())
        .map(|pair| {
            let both: Vec<_> = early_late.iter().filter_map(|[a, b]| Some((a.get(&pair)?, b.get(&pair)?))).collect();
            let mut states: Vec<u16> = both.iter().flat_map(|(a, b)| a.iter().chain(*b)).map(|(s, _)| *s).collect();
            states.sort_unstable();
            states.dedup();
            let n = states.len();
            let at = |state: &u16| states.binary_search(state).unwrap_or(0);
            let mut matrix = vec![0.0; n * n];
            for (a, b) in both {
                for (i, x) in a {
                    for (j, y) in b {
                        matrix[at(i) * n + at(j)] += x * y;
                        matrix[at(j) * n + at(i)] += x * y;
                    }
                }
            }
            let (_, vectors) = symmetric_eigen(&matrix, n);
            let vectors = vectors[n.saturating_sub(k) * n..].to_vec();
            Subspace { states, vectors }
        })
        .collect()
}

/// What a trajectory looks like in the subspaces: its early and its late place, for each pair of a state and an action that it visits in both
/// parts, in order.
type Seen = Vec<(usize, Vec<f64>, Vec<f64>)>;

/// How the similarity of two trajectories is computed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clustering {
    /// Trajectories are similar if their statistic is below this.
    pub threshold: f64,
    /// A placebo: clusters are dealt out anew among the trajectories.
    pub placebo: bool,
}

/// Labels trajectories without any label: the first third serves to estimate the subspaces, the others are clustered by similarity; models
/// that are estimated from the clusters label the first third.
#[must_use]
pub fn cluster(trajectories: &[Trajectory], sizes: Sizes, k: usize, how: Clustering, draws: &mut Draws) -> Vec<usize> {
    let third = trajectories.len() / 3;
    let early_late: Vec<[Part; 2]> = trajectories.iter().map(|t| parts(t, sizes)).collect();
    let spaces = subspaces(&early_late[..third], sizes, k);
    let places: Vec<Seen> = early_late[third..]
        .iter()
        .map(|[early, late]| {
            let both = early.iter().filter_map(|(pair, shares)| Some((*pair, shares, late.get(pair)?)));
            both.map(|(pair, a, b)| (pair, spaces[pair].project(a, k), spaces[pair].project(b, k))).collect()
        })
        .collect();
    let n = places.len();
    let mut similarity = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            // Of trajectories that have visited nothing in common nothing is known.
            let close = statistic(&places[i], &places[j]).map_or(0.5, |far| f64::from(u8::from(far < how.threshold)));
            similarity[i * n + j] = close;
            similarity[j * n + i] = close;
        }
    }
    let mut clustered = spectral::cluster(&similarity, n, k, draws);
    if how.placebo {
        draws.shuffle(&mut clustered);
    }
    let sure: Vec<f64> = clustered.iter().flat_map(|label| one_hot(*label, k)).collect();
    let model = Model::fit(&trajectories[third..], &sure, sizes, k);
    let first = trajectories[..third].iter().map(|t| largest(&model.log_likelihoods(t)));
    first.chain(clustered).collect()
}

/// The largest product of projected differences over the pairs that both have visited; `None` without one.
fn statistic(a: &Seen, b: &Seen) -> Option<f64> {
    let (mut i, mut j, mut most) = (0, 0, None);
    while let (Some((x, e1, l1)), Some((y, e2, l2))) = (a.get(i), b.get(j)) {
        if x == y {
            let value = e1.iter().zip(e2).zip(l1.iter().zip(l2)).map(|((a, b), (c, d))| (a - b) * (c - d)).sum();
            most = Some(most.map_or(value, |most| f64::max(most, value)));
        }
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    most
}

fn one_hot(label: usize, k: usize) -> impl Iterator<Item = f64> {
    (0..k).map(move |i| f64::from(u8::from(i == label)))
}

fn largest(values: &[f64]) -> usize {
    (1..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

/// Probabilities below this count as this in logarithms.
const FLOOR: f64 = 1e-12;

/// A mixture of processes, each with a policy and probabilities of first states.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    sizes: Sizes,
    k: usize,
    /// Logarithms: of the weight, of the first state, of the action and the next state.
    weights: Vec<f64>,
    first: Vec<f64>,
    steps: Vec<f64>,
}

impl Model {
    /// Estimates by weighted counts. `sure` holds, for each trajectory, how likely it is of each process.
    fn fit(trajectories: &[Trajectory], sure: &[f64], sizes: Sizes, k: usize) -> Model {
        let (pairs, states) = (sizes.pairs(), sizes.states);
        let mut weights = vec![0.0; k];
        let mut first = vec![0.0; k * states];
        let mut visits = vec![0.0; k * states];
        // By process, pair and next state: the joint probability of action and next state, given the state.
        let mut steps = vec![0.0; k * pairs * states];
        for (trajectory, sure) in trajectories.iter().zip(sure.chunks(k)) {
            for (i, share) in sure.iter().enumerate() {
                weights[i] += share;
                if let Some(step) = trajectory.first() {
                    first[i * states + usize::from(step.state)] += share;
                }
                for step in trajectory {
                    visits[i * states + usize::from(step.state)] += share;
                    steps[(i * pairs + sizes.pair(step)) * states + usize::from(step.next)] += share;
                }
            }
        }
        let log = |share: f64| libm::log(share.max(FLOOR));
        let total: f64 = weights.iter().sum();
        for i in 0..k {
            for pair in 0..pairs {
                let visits = visits[i * states + pair / sizes.actions];
                let row = (i * pairs + pair) * states;
                for share in &mut steps[row..row + states] {
                    *share = if *share > 0.0 { log(*share / visits) } else { libm::log(FLOOR) };
                }
            }
            (0..states).for_each(|s| first[i * states + s] = log(first[i * states + s] / weights[i].max(FLOOR)));
        }
        let weights = weights.iter().map(|weight| log(weight / total)).collect();
        Model { sizes, k, weights, first, steps }
    }

    fn log_likelihoods(&self, trajectory: &Trajectory) -> Vec<f64> {
        let (pairs, states) = (self.sizes.pairs(), self.sizes.states);
        (0..self.k)
            .map(|i| {
                let first = trajectory.first().map_or(0.0, |s| self.first[i * states + usize::from(s.state)]);
                let steps = trajectory
                    .iter()
                    .map(|step| self.steps[(i * pairs + self.sizes.pair(step)) * states + usize::from(step.next)]);
                self.weights[i] + first + steps.sum::<f64>()
            })
            .collect()
    }
}

/// The result of EM.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// For each trajectory, how likely it is of each process.
    pub sure: Vec<f64>,
    /// The log-likelihood of all trajectories after each iteration.
    pub log_likelihoods: Vec<f64>,
}

impl Fitted {
    /// Returns the likeliest process of each trajectory.
    #[must_use]
    pub fn labels(&self, k: usize) -> Vec<usize> {
        self.sure.chunks(k).map(largest).collect()
    }
}

/// Refines labels by EM: `iterations` times at most, until the log-likelihood gains less than 1e-6 a trajectory.
#[must_use]
pub fn em(trajectories: &[Trajectory], start: Vec<f64>, sizes: Sizes, k: usize, iterations: usize) -> Fitted {
    let mut sure = start;
    let mut log_likelihoods: Vec<f64> = Vec::new();
    for _ in 0..iterations {
        let model = Model::fit(trajectories, &sure, sizes, k);
        let mut total = 0.0;
        for (trajectory, sure) in trajectories.iter().zip(sure.chunks_mut(k)) {
            let logs = model.log_likelihoods(trajectory);
            let most = logs[largest(&logs)];
            let sum: f64 = logs.iter().map(|log| libm::exp(log - most)).sum();
            total += most + libm::log(sum);
            sure.iter_mut().zip(&logs).for_each(|(share, log)| *share = libm::exp(log - most) / sum);
        }
        let gain = log_likelihoods.last().map_or(f64::INFINITY, |last| total - last);
        log_likelihoods.push(total);
        if gain < 1e-6 * trajectories.len() as f64 {
            break;
        }
    }
    Fitted { sure, log_likelihoods }
}

/// Starts EM at labels, of which each is held to be right with a probability of 0.9 (with two processes).
#[must_use]
pub fn soften(labels: &[usize], k: usize) -> Vec<f64> {
    labels.iter().flat_map(|label| one_hot(*label, k).map(move |x| 0.8 * x + 0.2 / k as f64)).collect()
}

/// Starts EM at random.
#[must_use]
pub fn random_start(n: usize, k: usize, draws: &mut Draws) -> Vec<f64> {
    (0..n)
        .flat_map(|_| {
            let parts: Vec<f64> = (0..k).map(|_| draws.open_unit()).collect();
            let total: f64 = parts.iter().sum();
            parts.into_iter().map(move |part| part / total)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_base::rng::Stream;

    fn draws(agent: u32) -> Draws {
        Draws::new(11, Stream::World, 0, agent)
    }

    #[test]
    fn the_grid_has_probabilities_and_two_opposite_pulls() {
        let (processes, policy) = gridworld(0.04, 0.6);
        for process in &processes {
            assert!(process.next.chunks(64).all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-12));
        }
        assert!(policy.chunks(4).all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-12));
        // Beside the goal one process goes in, the other away.
        let into_goal = |process: &Process| process.next[(62 * 4) * 64 + 63];
        assert!(into_goal(&processes[0]) > 0.5 && into_goal(&processes[1]) < 0.1);
        // Without a pull they are the same.
        let (same, _) = gridworld(0.04, 0.0);
        assert_eq!(same[0], same[1]);
    }

    /// Two small processes and their trajectories, with labels.
    fn small(n: usize, draws: &mut Draws) -> (Vec<Trajectory>, Vec<usize>, Sizes) {
        let sizes = Sizes { states: 3, actions: 2 };
        let process = |stay: f64| {
            let row = |state: usize| (0..3).map(move |to| if to == state { stay } else { (1.0 - stay) / 2.0 });
            Process { sizes, next: (0..6).flat_map(|pair| row(pair / 2)).collect() }
        };
        let both = [process(0.9), process(0.1)];
        let labels: Vec<usize> = (0..n).map(|_| draws.below(2) as usize).collect();
        let walks = labels.iter().map(|label| both[*label].walk(&[0.5; 6], 160, draws)).collect();
        (walks, labels, sizes)
    }

    #[test]
    fn small_mixtures_are_told_apart_and_a_placebo_is_not() {
        let mut draws = draws(1);
        let (walks, labels, sizes) = small(150, &mut draws);
        let how = Clustering { threshold: 0.3, placebo: false };
        let found = cluster(&walks, sizes, 2, how, &mut draws);
        assert!(spectral::two_group_accuracy(&found, &labels) > 0.9);
        let blind = cluster(&walks, sizes, 2, Clustering { placebo: true, ..how }, &mut draws);
        assert!(spectral::two_group_accuracy(&blind, &labels) < 0.75);
        let fitted = em(&walks, soften(&found, 2), sizes, 2, 100);
        assert!(spectral::two_group_accuracy(&fitted.labels(2), &labels) > 0.99);
        // The likelihood never falls.
        assert!(
            fitted.log_likelihoods.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9),
            "{:?}",
            fitted.log_likelihoods
        );
    }

    #[test]
    fn em_at_the_truth_is_the_bayes_rule_of_counted_models() {
        // A plain second E-step: products of counted shares, without logarithms.
        let mut draws = draws(2);
        let (walks, labels, sizes) = small(60, &mut draws);
        let walks: Vec<Trajectory> = walks.into_iter().map(|walk| walk[..6].to_vec()).collect();
        let start = soften(&labels, 2);
        let fitted = em(&walks, start.clone(), sizes, 2, 1);
        let share = |hit: &dyn Fn(&Step) -> bool, base: &dyn Fn(&Step) -> bool, i: usize| {
            let (mut hits, mut all) = (0.0, 0.0);
            for (walk, sure) in walks.iter().zip(start.chunks(2)) {
                for step in walk {
                    hits += if hit(step) { sure[i] } else { 0.0 };
                    all += if base(step) { sure[i] } else { 0.0 };
                }
            }
            hits / all
        };
        for (at, walk) in walks.iter().enumerate().take(10) {
            let likely: Vec<f64> = (0..2)
                .map(|i| {
                    let weight: f64 = start.chunks(2).map(|sure| sure[i]).sum();
                    let begins = |w: &Trajectory| w[0].state == walk[0].state;
                    let same: f64 =
                        walks.iter().zip(start.chunks(2)).filter(|(w, _)| begins(w)).map(|(_, s)| s[i]).sum();
                    let steps: f64 =
                        walk.iter().map(|step| share(&|s| s == step, &|s| s.state == step.state, i)).product();
                    weight * (same / weight) * steps
                })
                .collect();
            let expected = likely[0] / (likely[0] + likely[1]);
            assert!((fitted.sure[at * 2] - expected).abs() < 1e-9);
        }
    }
}
