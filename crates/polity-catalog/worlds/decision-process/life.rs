//! What happens to one agent: its process, what it samples, and how its policies are judged.

use super::params::{Horizon, Known, Params};
use polity_kernel::rng::Draws;
use polity_learn::aggregation;
use polity_learn::learner::{Batch, Step};
use polity_learn::process::{Objective, Process, softmax};
use serde::{Deserialize, Serialize};

/// A process with what is known of it: the best policy's worth, and the baseline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Solved {
    pub(super) process: Process,
    /// The best policy's worth.
    pub(super) optimum: f64,
    /// The best action values.
    best: Vec<f64>,
    /// The baseline's probabilities; empty if there is none.
    pub(super) baseline: Vec<f64>,
    /// What the baseline is worth.
    pub(super) baseline_value: f64,
}

impl Solved {
    pub(super) fn new(process: Process, objective: &Objective, weights: &[f64], baseline: Option<Known>) -> Self {
        let optimum = process.optimum(objective, weights);
        let mut solved = Solved { optimum: optimum.value, best: optimum.q, process, ..Solved::default() };
        if let Some(known) = baseline {
            let soft = |q: &[f64]| softmax(&q.iter().map(|q| q / known.temperature).collect::<Vec<f64>>());
            solved.baseline = solved.best.chunks(solved.process.actions()).flat_map(soft).collect();
            solved.baseline_value = solved.process.evaluate(objective, weights, &solved.baseline).value;
        }
        solved
    }
}

/// What an agent has told the world in a round.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub policy: Vec<f64>,
    pub instead: Vec<f64>,
    pub instead_probability: f64,
    pub target: Vec<f64>,
    pub estimate: Vec<f64>,
    pub steps: Option<f64>,
}

/// An agent's part of the state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// The agent's own process; empty where all agents have the same one.
    pub(super) own: Option<Box<Solved>>,
    /// Where it is, in tasks without episodes.
    at: Option<u32>,
    /// What it sampled in the last round.
    pub(super) batch: Batch,
    /// Rounds played.
    rounds: u32,
    /// Steps sampled so far.
    pub(super) samples: f64,
    /// The mean reward a step in the last round.
    pub(super) reward: f64,
    /// What the target policy is worth, at the last evaluation.
    pub(super) value: f64,
    /// The largest error of the estimated action values.
    pub(super) error: f64,
    /// The sum of what acting policies fell short of the optimum, by episode or by round.
    pub(super) regret: f64,
    /// It, after half of the rounds of the last power of two, and after all of them.
    marks: [f64; 2],
    /// Rounds in which the acting policy was worth less than the floor.
    pub(super) violations: u32,
    /// Rounds until the target policy was first as good as the tolerance asks, since the task last changed; 0 if it never was.
    pub(super) reached: u32,
    /// Share of the situations in which the target policy contradicts the objectives.
    pub(super) inconsistent: f64,
    /// By how much all objectives could be improved at once.
    pub(super) dominated: f64,
    /// Round of the last change of the task.
    began: u32,
}

/// The policy that the numbers tell: each state's add up to 1. Uniform if there are not as many as there must be.
fn read(told: &[f64], process: &Process, stages: usize) -> Vec<f64> {
    let actions = process.actions();
    if told.len() != process.pairs() && told.len() != stages * process.pairs() {
        return vec![1.0 / actions as f64; process.pairs()];
    }
    let mut policy = told.to_vec();
    for row in policy.chunks_mut(actions) {
        let sum: f64 = row.iter().sum();
        match sum > 0.0 {
            true => row.iter_mut().for_each(|p| *p /= sum),
            false => row.fill(1.0 / actions as f64),
        }
    }
    policy
}

fn choose(policy: &[f64], process: &Process, stage: usize, state: usize, draws: &mut Draws) -> usize {
    let (actions, pairs) = (process.actions(), process.pairs());
    let start = if policy.len() > pairs { stage * pairs } else { 0 } + state * actions;
    let mut left = draws.unit();
    for (action, p) in policy[start..start + actions].iter().enumerate() {
        left -= p;
        if left < 0.0 {
            return action;
        }
    }
    actions - 1
}

impl Life {
    /// How fast regret grows: the exponent between the last two marks.
    pub(super) fn growth(&self) -> f64 {
        match self.marks {
            [half, whole] if half > 0.0 && whole > 0.0 => libm::log2(whole / half),
            _ => 0.0,
        }
    }

    fn step(&mut self, process: &Process, noise: f64, [state, action]: [usize; 2], draws: &mut Draws) -> usize {
        let pair = state * process.actions() + action;
        let next = process.draw_next(pair, draws);
        let ends = process.terminal[next];
        self.batch.steps.push(Step { state: state as u32, action: action as u32, next: next as u32, ends });
        for reward in &process.rewards[pair * process.channels..(pair + 1) * process.channels] {
            let off = if noise > 0.0 { noise * draws.normal() } else { 0.0 };
            self.batch.rewards.push(reward + off);
        }
        next
    }

    fn sample(&mut self, solved: &Solved, params: &Params, told: &Told, policies: [&[f64]; 2], draws: &mut Draws) {
        let process = &solved.process;
        let asked = told.steps.map_or(params.batch, |steps| steps.clamp(0.0, f64::from(params.max_batch)) as u32);
        self.batch = Batch::default();
        if let Horizon::Episodic { steps, .. } = params.objective {
            for _ in 0..asked {
                let instead = !told.instead.is_empty() && draws.chance(told.instead_probability);
                let policy = policies[usize::from(instead)];
                let mut state = process.begin(draws);
                for stage in 0..steps {
                    if process.terminal[state] {
                        break;
                    }
                    let action = choose(policy, process, stage, state, draws);
                    state = self.step(process, params.noise, [state, action], draws);
                }
                if let Some(last) = self.batch.steps.last_mut() {
                    last.ends = true;
                }
            }
        } else {
            let mut state = self.at.map_or_else(|| process.begin(draws), |at| at as usize);
            for _ in 0..asked {
                let action = choose(policies[0], process, 0, state, draws);
                state = self.step(process, params.noise, [state, action], draws);
                if process.terminal[state] {
                    state = process.begin(draws);
                }
            }
            self.at = Some(state as u32);
        }
        self.samples += self.batch.steps.len() as f64;
    }

    /// A round: judges what the agent has told, and samples with its policy.
    pub(super) fn round(
        &mut self,
        solved: &Solved,
        params: &Params,
        (objective, weights): (&Objective, &[f64]),
        told: &Told,
        draws: &mut Draws,
    ) {
        let process = &solved.process;
        let stages = Process::stages(objective);
        let policy = read(&told.policy, process, stages);
        let instead = if told.instead.is_empty() { Vec::new() } else { read(&told.instead, process, stages) };
        self.rounds += 1;
        if params.track {
            let mut value = process.evaluate(objective, weights, &policy).value;
            if !instead.is_empty() {
                let other = process.evaluate(objective, weights, &instead).value;
                value += told.instead_probability * (other - value);
            }
            let floor = params.baseline.map_or(f64::NEG_INFINITY, |known| known.floor * solved.baseline_value);
            self.violations += u32::from(value < floor - 1e-9);
            self.regret += solved.optimum - value;
            if self.rounds.is_power_of_two() {
                self.marks = [self.marks[1], self.regret];
            }
        }
        if self.rounds.is_multiple_of(params.evaluate) {
            let target = if told.target.is_empty() { policy.clone() } else { read(&told.target, process, stages) };
            self.value = process.evaluate(objective, weights, &target).value;
            let near = solved.optimum - self.value <= params.tolerance * solved.optimum.abs().max(1e-9);
            if near && self.reached == 0 {
                self.reached = self.rounds - self.began;
            }
            if told.estimate.len() == solved.best.len() {
                let off = told.estimate.iter().zip(&solved.best).map(|(told, best)| (told - best).abs());
                self.error = off.fold(0.0, f64::max);
            }
            if let Objective::Episodic { horizon, discounts } = objective
                && discounts.iter().any(|discount| *discount != discounts[0])
            {
                let (wrong, all) = aggregation::inconsistencies(process, *horizon, discounts, weights, &target);
                self.inconsistent = wrong as f64 / all.max(1) as f64;
                self.dominated = aggregation::dominance(process, *horizon, discounts, &target);
            }
        }
        self.sample(solved, params, told, [&policy, &instead], draws);
        let sum: f64 = self.batch.iter().map(|(_, r)| r.iter().zip(weights).map(|(r, w)| r * w).sum::<f64>()).sum();
        self.reward = sum / self.batch.steps.len().max(1) as f64;
    }

    /// Another task begins.
    pub(super) fn change(&mut self) {
        self.at = None;
        self.reached = 0;
        self.began = self.rounds;
    }

    /// Whether the task is solved, up to the tolerance.
    pub(super) fn solved(&self, solved: &Solved, tolerance: f64) -> bool {
        solved.optimum - self.value <= tolerance * solved.optimum.abs().max(1e-9)
    }

    /// Rounds until the task was solved; all rounds so far if it was not.
    pub(super) fn rounds_to_solve(&self) -> f64 {
        f64::from(if self.reached > 0 { self.reached } else { self.rounds - self.began })
    }
}
