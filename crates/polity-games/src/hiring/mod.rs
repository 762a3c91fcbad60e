//! A principal hires several agents to gather information: optimal incentive-compatible scoring rules with correlated effort, and a learner that does not
//! know the signals (Cacciamani, Castiglioni and Gatti 2023).
//!
//! The principal draws a combination of efforts, recommends to each agent its own, and announces payments that depend on the combination, on all reports
//! and on the state that comes true. Each agent chooses an effort, sees a signal, and reports one. Then the principal decides.

mod learner;
mod solve;
#[cfg(test)]
mod tests;

pub use learner::{Learner, Phase, slope};
pub use solve::{Margins, exploring, fixed, optimal, uncorrelated};

use serde::{Deserialize, Serialize};

/// A problem of hiring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// The probability of each state.
    pub prior: Vec<f64>,
    /// By decision, then by state: what it is worth to the principal.
    pub worth: Vec<Vec<f64>>,
    /// By agent, then by effort: its cost, 0 or more.
    pub costs: Vec<Vec<f64>>,
    /// By agent: the number of its signals.
    pub signals: Vec<usize>,
    /// By combination of efforts, state and combination of signals, one after the other: the probability of the signals. In combinations the first
    /// agent's number changes fastest.
    pub law: Vec<f64>,
    /// The largest payment to an agent.
    pub cap: f64,
}

/// A mechanism: efforts that are recommended together, and payments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mechanism {
    /// The probability of each combination of efforts.
    pub weights: Vec<f64>,
    /// By agent, combination of efforts, combination of reports and state: what the agent gets.
    pub payments: Vec<Vec<f64>>,
    /// What the principal expects: the worth of its decision less all payments, if all obey and report truthfully.
    pub value: f64,
}

/// What an agent does best with a recommendation, if the others obey and report truthfully.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Its effort.
    pub effort: usize,
    /// What it reports for each signal.
    pub reports: Vec<usize>,
    /// How much more it expects than by obeying, given the recommendation; 0 if it obeys.
    pub gain: f64,
}

/// What principal and agents expect of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The worth of the decision less all payments.
    pub principal: f64,
    /// By agent: its payment less the cost of its effort.
    pub agents: Vec<f64>,
}

/// What counts as a gain from deviating.
const GAIN: f64 = 1e-7;
/// The most probabilities in a problem's law.
const MOST: usize = 4_096;

impl Problem {
    /// Checks that all numbers fit each other.
    ///
    /// # Errors
    /// A part that is missing or of another size, probabilities that do not add up to 1, a negative cost or cap, a problem with more than 4,096
    /// probabilities.
    pub fn check(&self) -> Result<(), String> {
        let Problem { prior, worth, costs, signals, law, cap } = self;
        let sums_to_one = |p: &[f64]| p.iter().all(|p| *p >= 0.0) && (p.iter().sum::<f64>() - 1.0).abs() < 1e-9;
        let sizes = [prior.len(), worth.len(), costs.len()];
        if sizes.contains(&0) || costs.len() != signals.len() || signals.contains(&0) || costs.iter().any(Vec::is_empty)
        {
            return Err("a problem needs states, decisions and agents, and each agent efforts and signals".into());
        }
        let size = self.size().filter(|size| *size <= MOST);
        let Some(size) = size else {
            return Err(format!("the problem is too large: at most {MOST} probabilities of signals are allowed"));
        };
        if law.len() != size {
            return Err(format!("the signals need {size} probabilities, {} are given", law.len()));
        }
        if !sums_to_one(prior) || !law.chunks(self.joint_signals()).all(sums_to_one) {
            return Err("probabilities must be 0 or more and add up to 1".into());
        }
        if worth.iter().any(|row| row.len() != prior.len() || row.iter().any(|worth| !worth.is_finite())) {
            return Err("every decision needs a worth, a finite number, in every state".into());
        }
        let fits = |cost: &f64| *cost >= 0.0 && cost.is_finite();
        if !(costs.iter().flatten().all(fits) && *cap > 0.0 && cap.is_finite()) {
            return Err("costs must be 0 or more, and the largest payment above 0".into());
        }
        Ok(())
    }

    fn size(&self) -> Option<usize> {
        let efforts = self.costs.iter().try_fold(self.prior.len(), |size, own| size.checked_mul(own.len()))?;
        self.signals.iter().try_fold(efforts, |size, own| size.checked_mul(*own))
    }

    /// Two agents who each can work or shirk, two states that are equally likely, and two signals. Who works sees the state with probability
    /// `accuracy`; if both work, they make the same error with probability `common`, else each its own. Who shirks sees noise. A right decision is
    /// worth 1.
    #[must_use]
    pub fn pair(accuracy: f64, common: f64, costs: [f64; 2], cap: f64) -> Problem {
        let hit = |signal: usize, state: usize| if signal == state { accuracy } else { 1.0 - accuracy };
        let mut law = Vec::new();
        for efforts in 0..4 {
            for state in 0..2 {
                for signals in 0..4 {
                    let (a, b) = (signals % 2, signals / 2);
                    law.push(match efforts {
                        0 => 0.25,
                        1 => 0.5 * hit(a, state),
                        2 => 0.5 * hit(b, state),
                        _ => {
                            let same = if a == b { hit(a, state) } else { 0.0 };
                            common * same + (1.0 - common) * hit(a, state) * hit(b, state)
                        }
                    });
                }
            }
        }
        let worth = vec![vec![1.0, 0.0], vec![0.0, 1.0]];
        let costs = costs.iter().map(|cost| vec![0.0, *cost]).collect();
        Problem { prior: vec![0.5; 2], worth, costs, signals: vec![2; 2], law, cap }
    }

    fn agents(&self) -> usize {
        self.costs.len()
    }

    /// The number of combinations of efforts.
    #[must_use]
    pub fn joint_efforts(&self) -> usize {
        self.costs.iter().map(Vec::len).product()
    }

    /// The number of combinations of signals.
    #[must_use]
    pub fn joint_signals(&self) -> usize {
        self.signals.iter().product()
    }

    /// The effort of an agent in a combination.
    #[must_use]
    pub fn effort(&self, efforts: usize, agent: usize) -> usize {
        let stride: usize = self.costs[..agent].iter().map(Vec::len).product();
        efforts / stride % self.costs[agent].len()
    }

    fn with_effort(&self, efforts: usize, agent: usize, effort: usize) -> usize {
        let stride: usize = self.costs[..agent].iter().map(Vec::len).product();
        efforts - self.effort(efforts, agent) * stride + effort * stride
    }

    fn signal(&self, signals: usize, agent: usize) -> usize {
        let stride: usize = self.signals[..agent].iter().product();
        signals / stride % self.signals[agent]
    }

    fn with_signal(&self, signals: usize, agent: usize, signal: usize) -> usize {
        let stride: usize = self.signals[..agent].iter().product();
        signals - self.signal(signals, agent) * stride + signal * stride
    }

    /// The probability of signals, given efforts and the state.
    #[must_use]
    pub fn likelihood(&self, efforts: usize, state: usize, signals: usize) -> f64 {
        self.law[(efforts * self.prior.len() + state) * self.joint_signals() + signals]
    }

    /// The probability of signals and state, given efforts.
    fn joint(&self, efforts: usize, state: usize, signals: usize) -> f64 {
        self.prior[state] * self.likelihood(efforts, state, signals)
    }

    /// The best decision after reports, if all obeyed and were truthful.
    fn decision(&self, efforts: usize, reports: usize) -> usize {
        let expected = |decision: usize| -> f64 {
            (0..self.prior.len()).map(|state| self.joint(efforts, state, reports) * self.worth[decision][state]).sum()
        };
        let better = |best: usize, decision: usize| if expected(decision) > expected(best) { decision } else { best };
        (0..self.worth.len()).fold(0, better)
    }

    /// What the principal's decision is worth with these efforts.
    fn informed(&self, efforts: usize) -> f64 {
        let mut sum = 0.0;
        for reports in 0..self.joint_signals() {
            let decision = self.decision(efforts, reports);
            for state in 0..self.prior.len() {
                sum += self.joint(efforts, state, reports) * self.worth[decision][state];
            }
        }
        sum
    }

    fn payment(&self, mechanism: &Mechanism, agent: usize, efforts: usize, reports: usize, state: usize) -> f64 {
        mechanism.payments[agent][(efforts * self.joint_signals() + reports) * self.prior.len() + state]
    }

    /// Finds what an agent does best with a recommendation.
    #[must_use]
    pub fn reply(&self, mechanism: &Mechanism, agent: usize, recommended: usize) -> Reply {
        let signals = self.signals[agent];
        let obey = Reply { effort: recommended, reports: (0..signals).collect(), gain: 0.0 };
        let told: Vec<usize> = (0..self.joint_efforts())
            .filter(|efforts| self.effort(*efforts, agent) == recommended && mechanism.weights[*efforts] > 0.0)
            .collect();
        let mass: f64 = told.iter().map(|efforts| mechanism.weights[*efforts]).sum();
        if mass <= 1e-9 {
            return obey;
        }
        // The expected payment with an effort, for each signal and report.
        let paid = |effort: usize, signal: usize, report: usize| -> f64 {
            let mut sum = 0.0;
            for efforts in &told {
                let real = self.with_effort(*efforts, agent, effort);
                for seen in (0..self.joint_signals()).filter(|seen| self.signal(*seen, agent) == signal) {
                    let reports = self.with_signal(seen, agent, report);
                    for state in 0..self.prior.len() {
                        sum += mechanism.weights[*efforts] / mass
                            * self.joint(real, state, seen)
                            * self.payment(mechanism, agent, *efforts, reports, state);
                    }
                }
            }
            sum
        };
        let cost = |effort: usize| self.costs[agent][effort];
        let honest = (0..signals).map(|s| paid(recommended, s, s)).sum::<f64>() - cost(recommended);
        let mut best = obey;
        for effort in 0..self.costs[agent].len() {
            let (mut reports, mut total) = (Vec::new(), -cost(effort));
            for signal in 0..signals {
                let (mut report, mut most) = (signal, paid(effort, signal, signal));
                for other in 0..signals {
                    let more = paid(effort, signal, other);
                    if more > most + 1e-12 {
                        (report, most) = (other, more);
                    }
                }
                reports.push(report);
                total += most;
            }
            let gain = total - honest;
            if gain > GAIN && gain > best.gain {
                best = Reply { effort, reports, gain };
            }
        }
        best
    }

    /// Returns what principal and agents expect, if the principal decides by the law that it believes in, and each agent of whom `departs` says so, by
    /// agent and recommendation, gives its reply instead of obeying.
    #[must_use]
    pub fn outcome(
        &self,
        believed: &Problem,
        mechanism: &Mechanism,
        departs: impl Fn(usize, usize) -> bool,
    ) -> Outcome {
        let agents = self.agents();
        let mut replies: Vec<Vec<Option<Reply>>> = Vec::new();
        for agent in 0..agents {
            let of = |effort: usize| departs(agent, effort).then(|| self.reply(mechanism, agent, effort));
            replies.push((0..self.costs[agent].len()).map(of).collect());
        }
        let mut outcome = Outcome { principal: 0.0, agents: vec![0.0; agents] };
        for (efforts, weight) in mechanism.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let chosen: Vec<Option<&Reply>> =
                (0..agents).map(|agent| replies[agent][self.effort(efforts, agent)].as_ref()).collect();
            let departing = || chosen.iter().enumerate().filter_map(|(agent, reply)| Some((agent, (*reply)?)));
            let real = departing().fold(efforts, |real, (agent, reply)| self.with_effort(real, agent, reply.effort));
            for (agent, gets) in outcome.agents.iter_mut().enumerate() {
                *gets -= weight * self.costs[agent][self.effort(real, agent)];
            }
            for seen in 0..self.joint_signals() {
                let said = |reports: usize, (agent, reply): (usize, &Reply)| {
                    self.with_signal(reports, agent, reply.reports[self.signal(seen, agent)])
                };
                let reports = departing().fold(seen, said);
                let decision = believed.decision(efforts, reports);
                for state in 0..self.prior.len() {
                    let chance = weight * self.joint(real, state, seen);
                    outcome.principal += chance * self.worth[decision][state];
                    for (agent, gets) in outcome.agents.iter_mut().enumerate() {
                        let paid = chance * self.payment(mechanism, agent, efforts, reports, state);
                        *gets += paid;
                        outcome.principal -= paid;
                    }
                }
            }
        }
        outcome
    }

    /// Returns what the principal expects; see [`Problem::outcome`].
    #[must_use]
    pub fn value(&self, believed: &Problem, mechanism: &Mechanism, departs: impl Fn(usize, usize) -> bool) -> f64 {
        self.outcome(believed, mechanism, departs).principal
    }

    /// A mechanism that pays each agent what its effort costs, whatever it reports. Nobody has a reason to obey.
    #[must_use]
    pub fn flat(&self, weights: &[f64]) -> Mechanism {
        let each = self.joint_signals() * self.prior.len();
        let own = |agent: usize| {
            let cost = move |efforts: usize| self.costs[agent][self.effort(efforts, agent)].min(self.cap);
            (0..self.joint_efforts()).flat_map(move |efforts| vec![cost(efforts); each]).collect()
        };
        let mut flat =
            Mechanism { weights: weights.to_vec(), payments: (0..self.agents()).map(own).collect(), value: 0.0 };
        flat.value = self.value(self, &flat, |_, _| false);
        flat
    }
}
