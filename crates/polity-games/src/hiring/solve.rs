//! Linear programs for mechanisms. The variables are probabilities of efforts, payments times these, and, for each deviation and signal, the most that a
//! misreport brings.

use super::{Mechanism, Problem};
use crate::simplex::{self, MOST_NUMBERS};

/// By how much obedience must beat deviations of agents whose effort costs something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Margins {
    /// Against another effort.
    pub effort: f64,
    /// Against another report, for each signal.
    pub report: f64,
}

/// The program of a problem: the place of each variable.
struct Program<'a> {
    problem: &'a Problem,
    /// The columns of probabilities: one for each combination of efforts, or one for all, if their weights are given.
    weights: Option<&'a [f64]>,
    /// Whether the margin, the last column, is what is maximised.
    widest: bool,
    margins: Margins,
    rows: Vec<Vec<f64>>,
    columns: usize,
}

impl<'a> Program<'a> {
    fn new(problem: &'a Problem, weights: Option<&'a [f64]>, margins: Margins, widest: bool) -> Result<Self, String> {
        let (efforts, signals, states) = (problem.joint_efforts(), problem.joint_signals(), problem.prior.len());
        let chances = if weights.is_some() { 1 } else { efforts };
        let misreports = chances + problem.agents() * efforts * signals * states;
        let deviations =
            |agent: usize| problem.costs[agent].len() * problem.costs[agent].len() * problem.signals[agent];
        let columns = misreports + (0..problem.agents()).map(deviations).sum::<usize>() + usize::from(widest);
        let rows = problem.agents() * efforts * signals * states
            + (0..problem.agents()).map(|i| deviations(i) * (problem.signals[i] + 1)).sum::<usize>();
        let numbers = simplex::numbers(columns, rows);
        if numbers > MOST_NUMBERS {
            return Err(format!(
                "the problem is too large: its linear program has {numbers} numbers, and at most {MOST_NUMBERS} are allowed"
            ));
        }
        let mut program = Program { problem, weights, widest, margins, rows: Vec::new(), columns };
        program.caps();
        let mut column = misreports;
        for agent in 0..problem.agents() {
            for recommended in 0..problem.costs[agent].len() {
                for instead in 0..problem.costs[agent].len() {
                    program.deviation(agent, recommended, instead, column);
                    column += problem.signals[agent];
                }
            }
        }
        Ok(program)
    }

    /// Adds to a row a multiple of the probability of efforts.
    fn chance(&self, row: &mut [f64], efforts: usize, times: f64) {
        match self.weights {
            Some(weights) => row[0] += times * weights[efforts],
            None => row[efforts] += times,
        }
    }

    /// Whether efforts have a weight that is given.
    fn is_given(&self, efforts: usize) -> bool {
        self.weights.is_some_and(|weights| weights[efforts] > 0.0)
    }

    /// The column of a payment, in units of the cap and times the probability of the efforts.
    fn payment(&self, agent: usize, efforts: usize, reports: usize, state: usize) -> usize {
        let (all, signals, states) =
            (self.problem.joint_efforts(), self.problem.joint_signals(), self.problem.prior.len());
        let first = if self.weights.is_some() { 1 } else { all };
        first + ((agent * all + efforts) * signals + reports) * states + state
    }

    /// No payment is above the cap.
    fn caps(&mut self) {
        for agent in 0..self.problem.agents() {
            for efforts in 0..self.problem.joint_efforts() {
                for reports in 0..self.problem.joint_signals() {
                    for state in 0..self.problem.prior.len() {
                        let mut row = vec![0.0; self.columns];
                        row[self.payment(agent, efforts, reports, state)] = 1.0;
                        self.chance(&mut row, efforts, -1.0);
                        self.rows.push(row);
                    }
                }
            }
        }
    }

    /// An agent with a recommendation gains nothing by another effort, whatever it then reports. The misreports' columns begin at `column`.
    fn deviation(&mut self, agent: usize, recommended: usize, instead: usize, column: usize) {
        let problem = self.problem;
        let told: Vec<usize> =
            (0..problem.joint_efforts()).filter(|efforts| problem.effort(*efforts, agent) == recommended).collect();
        let costs = &problem.costs[agent];
        let mut obedience = vec![0.0; self.columns];
        for efforts in &told {
            for signals in 0..problem.joint_signals() {
                for state in 0..problem.prior.len() {
                    let paid = problem.joint(*efforts, state, signals) * problem.cap;
                    obedience[self.payment(agent, *efforts, signals, state)] -= paid;
                }
            }
            self.chance(&mut obedience, *efforts, costs[recommended] - costs[instead]);
            if costs[recommended] > 0.0 && instead != recommended {
                self.chance(&mut obedience, *efforts, self.margins.effort);
                if self.widest && self.is_given(*efforts) {
                    obedience[self.columns - 1] = 1.0;
                }
            }
        }
        for signal in 0..problem.signals[agent] {
            obedience[column + signal] = 1.0;
            for report in 0..problem.signals[agent] {
                let mut row = vec![0.0; self.columns];
                row[column + signal] = -1.0;
                for efforts in &told {
                    let real = problem.with_effort(*efforts, agent, instead);
                    for seen in (0..problem.joint_signals()).filter(|seen| problem.signal(*seen, agent) == signal) {
                        let reports = problem.with_signal(seen, agent, report);
                        for state in 0..problem.prior.len() {
                            let paid = problem.joint(real, state, seen) * problem.cap;
                            row[self.payment(agent, *efforts, reports, state)] += paid;
                        }
                    }
                    if costs[recommended] > 0.0 && instead == recommended && report != signal {
                        self.chance(&mut row, *efforts, self.margins.report);
                        if self.widest && self.is_given(*efforts) {
                            row[self.columns - 1] = 1.0 / problem.signals[agent] as f64;
                        }
                    }
                }
                self.rows.push(row);
            }
        }
        self.rows.push(obedience);
    }

    fn solve(self) -> Result<Option<Mechanism>, String> {
        if self.widest {
            return self.solve_for_margin();
        }
        let problem = self.problem;
        let (all, signals, states) = (problem.joint_efforts(), problem.joint_signals(), problem.prior.len());
        let mut objective = vec![0.0; self.columns];
        let mut parts = vec![0.0; self.columns];
        for efforts in 0..all {
            self.chance(&mut objective, efforts, problem.informed(efforts));
            for agent in 0..problem.agents() {
                for reports in 0..signals {
                    for state in 0..states {
                        let paid = problem.joint(efforts, state, reports) * problem.cap;
                        objective[self.payment(agent, efforts, reports, state)] = -paid;
                    }
                }
            }
        }
        let chances = if self.weights.is_some() { 1 } else { all };
        parts[..chances].fill(1.0);
        match simplex::normalised(&objective, &self.rows, &parts) {
            Ok(found) => Ok(Some(self.mechanism(&found))),
            Err(simplex::Trouble::Infeasible) => Ok(None),
            Err(trouble) => Err(trouble.to_string()),
        }
    }

    /// Maximises the margin, as the cap less a slack that is minimised; `None` if it is below 0.
    fn solve_for_margin(mut self) -> Result<Option<Mechanism>, String> {
        let last = self.columns - 1;
        for row in &mut self.rows {
            let times = std::mem::take(&mut row[last]);
            if times != 0.0 {
                row[0] += times * self.problem.cap;
                row[last] = -times;
            }
        }
        let mut objective = vec![0.0; self.columns];
        objective[last] = -1.0;
        let mut parts = vec![0.0; self.columns];
        parts[0] = 1.0;
        match simplex::normalised(&objective, &self.rows, &parts) {
            Ok(found) => Ok((found[last] <= self.problem.cap).then(|| self.mechanism(&found))),
            Err(simplex::Trouble::Infeasible) => Ok(None),
            Err(trouble) => Err(trouble.to_string()),
        }
    }

    fn mechanism(&self, found: &[f64]) -> Mechanism {
        let problem = self.problem;
        let (all, signals, states) = (problem.joint_efforts(), problem.joint_signals(), problem.prior.len());
        let weights: Vec<f64> = match self.weights {
            Some(weights) => weights.to_vec(),
            None => crate::equilibrium::normalised(found[..all].to_vec()),
        };
        let mut payments = Vec::new();
        let mut value: f64 =
            weights.iter().enumerate().map(|(efforts, weight)| weight * problem.informed(efforts)).sum();
        for agent in 0..problem.agents() {
            let mut own = Vec::new();
            for (efforts, weight) in weights.iter().enumerate() {
                for reports in 0..signals {
                    for state in 0..states {
                        let share = found[self.payment(agent, efforts, reports, state)];
                        let paid =
                            if *weight > 1e-12 { (problem.cap * share / weight).clamp(0.0, problem.cap) } else { 0.0 };
                        value -= weight * problem.joint(efforts, state, reports) * paid;
                        own.push(paid);
                    }
                }
            }
            payments.push(own);
        }
        Mechanism { weights, payments, value }
    }
}

/// Finds the mechanism that is best for the principal among those in which every agent obeys and reports truthfully, with margins. Without margins it
/// always exists: nobody works and nobody is paid.
///
/// ```
/// use polity_games::hiring::{Margins, Problem, optimal};
///
/// // One agent at a time works, and sometimes both, so that each can be checked by the other.
/// let found = optimal(&Problem::pair(0.7, 1.0, [0.03, 0.03], 0.3), Margins::default())?;
/// assert!(found.weights[1] > 0.1 && found.weights[2] > 0.1 && found.weights[3] > 0.01);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// A problem that does not fit ([`Problem::check`]) or is too large; rounding kept the solver from ending.
pub fn optimal(problem: &Problem, margins: Margins) -> Result<Mechanism, String> {
    problem.check()?;
    let found = Program::new(problem, None, margins, false)?.solve()?;
    found.ok_or_else(|| "no mechanism keeps these margins".into())
}

/// Finds the best payments with given probabilities of efforts; `None` if no payments make agents obey.
///
/// # Errors
/// As [`optimal`]; probabilities that do not fit.
pub fn fixed(problem: &Problem, weights: &[f64], margins: Margins) -> Result<Option<Mechanism>, String> {
    problem.check()?;
    let fits = weights.len() == problem.joint_efforts()
        && weights.iter().all(|weight| *weight >= 0.0)
        && (weights.iter().sum::<f64>() - 1.0).abs() < 1e-9;
    if !fits {
        return Err("there must be a probability for each combination of efforts, and they must add up to 1".into());
    }
    Program::new(problem, Some(weights), margins, false)?.solve()
}

/// Finds, for one combination of efforts, the payments with which obedience beats all deviations by most; `None` if none makes agents obey.
///
/// # Errors
/// As [`optimal`].
pub fn exploring(problem: &Problem, efforts: usize) -> Result<Option<Mechanism>, String> {
    problem.check()?;
    let mut weights = vec![0.0; problem.joint_efforts()];
    *weights.get_mut(efforts).ok_or("there is no such combination of efforts")? = 1.0;
    Program::new(problem, Some(&weights), Margins::default(), true)?.solve()
}

/// Finds the best mechanism of two agents with two efforts each whose efforts are drawn independently: a search over a grid of `steps` steps, refined
/// four times around its best point.
///
/// # Errors
/// As [`optimal`]; another number of agents or efforts.
pub fn uncorrelated(problem: &Problem, steps: u32) -> Result<Mechanism, String> {
    problem.check()?;
    if problem.agents() != 2 || problem.costs.iter().any(|own| own.len() != 2) {
        return Err("efforts are drawn independently only for two agents with two efforts each".into());
    }
    let mut best: Option<([f64; 2], Mechanism)> = None;
    let look = |best: &mut Option<([f64; 2], Mechanism)>, p: f64, q: f64| -> Result<(), String> {
        let (p, q) = (p.clamp(0.0, 1.0), q.clamp(0.0, 1.0));
        let weights = [(1.0 - p) * (1.0 - q), p * (1.0 - q), (1.0 - p) * q, p * q];
        if let Some(found) = fixed(problem, &weights, Margins::default())?
            && best.as_ref().is_none_or(|(_, best)| found.value > best.value + 1e-12)
        {
            *best = Some(([p, q], found));
        }
        Ok(())
    };
    let mut step = 1.0 / f64::from(steps.max(1));
    for i in 0..=steps.max(1) {
        for j in 0..=steps.max(1) {
            look(&mut best, f64::from(i) * step, f64::from(j) * step)?;
        }
    }
    for _ in 0..4 {
        step /= 2.0;
        let [p, q] = best.as_ref().map(|(at, _)| *at).unwrap_or_default();
        for (i, j) in
            [(-1.0, -1.0), (-1.0, 0.0), (-1.0, 1.0), (0.0, -1.0), (0.0, 1.0), (1.0, -1.0), (1.0, 0.0), (1.0, 1.0)]
        {
            look(&mut best, p + i * step, q + j * step)?;
        }
    }
    best.map(|(_, found)| found).ok_or_else(|| "no independent efforts can be enforced".into())
}
