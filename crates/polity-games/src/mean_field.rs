//! A mean-field game of congestion, its regularised equilibrium, and agents who learn it by policy mirror ascent on one path.
//!
//! After Yardim, Cayci, Geist and He, "Policy mirror ascent for efficient and independent learning in mean field games" (ICML 2023). Agents
//! are at places on a ring. Each step they stay or move to the next place; a place is worth less the more are there. Payoffs are
//! regularised by the entropy of the policy.

use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};

/// The number of actions: stay, or move on.
const ACTIONS: usize = 2;

/// A game of congestion.
#[derive(Clone, Debug, PartialEq)]
pub struct Congestion {
    /// What each place is worth.
    pub worth: Vec<f64>,
    /// What a place loses of its worth when all are there.
    pub crowding: f64,
    /// What a move costs.
    pub fare: f64,
    /// The probability that an agent comes to a place at random, whatever it does; above 0.
    pub noise: f64,
    /// The discount of the next step, below 1.
    pub discount: f64,
    /// The weight of the entropy, above 0.
    pub temperature: f64,
}

/// A policy: for each place the probabilities of staying and moving.
pub type Policy = Vec<[f64; ACTIONS]>;

/// What agents feel of the crowd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Crowd {
    /// The part of all agents who are at their place.
    #[default]
    All,
    /// A placebo: the part of four agents, themselves and three others, however many there are.
    Four,
}

/// How agents learn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learning {
    /// The number of agents.
    pub agents: u32,
    /// Updates of the policies.
    pub epochs: u32,
    /// Steps of the path before each update.
    pub steps: u32,
    /// The step of an update.
    pub rate: f64,
    /// What agents feel of the crowd.
    pub crowd: Crowd,
}

/// How near agents came to the equilibrium: distances are means over places of the sums of absolute differences of probabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// The distance of the mean of all policies.
    pub distance: f64,
    /// The mean distance of an agent's policy.
    pub own: f64,
    /// The distance of the first policies, which are uniform.
    pub first: f64,
}

impl Congestion {
    fn places(&self) -> usize {
        self.worth.len()
    }

    fn target(&self, place: usize, action: usize) -> usize {
        (place + action) % self.places()
    }

    fn reward(&self, place: usize, action: usize, crowd: f64) -> f64 {
        self.worth[place] - self.crowding * crowd - self.fare * action as f64
    }

    /// Moves a distribution over places to the one in which a policy keeps the population.
    fn settle(&self, policy: &Policy, population: &mut Vec<f64>) {
        let places = self.places();
        for _ in 0..10_000 {
            let mut next = vec![self.noise / places as f64; places];
            for (place, p) in population.iter().enumerate() {
                for (action, q) in policy[place].iter().enumerate() {
                    next[self.target(place, action)] += (1.0 - self.noise) * p * q;
                }
            }
            let moved = population.iter().zip(&next).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            *population = next;
            if moved < 1e-15 {
                break;
            }
        }
    }

    /// What the entropy of a policy adds at each place.
    fn bonuses(&self, policy: &Policy) -> Vec<f64> {
        let entropy = |own: &[f64; ACTIONS]| -own.iter().map(|p| p * libm::log(p.max(1e-300))).sum::<f64>();
        policy.iter().map(|own| self.temperature * entropy(own)).collect()
    }

    /// Moves action values to the regularised ones of a policy in a population that stays as it is.
    fn evaluate(&self, policy: &Policy, population: &[f64], values: &mut Policy) {
        let places = self.places();
        let bonuses = self.bonuses(policy);
        for _ in 0..10_000 {
            let of: Vec<f64> = (0..places).map(|place| bonuses[place] + mean(policy[place], values[place])).collect();
            let anywhere = of.iter().sum::<f64>() / places as f64;
            let mut moved = 0.0f64;
            for place in 0..places {
                for action in 0..ACTIONS {
                    let next = (1.0 - self.noise) * of[self.target(place, action)] + self.noise * anywhere;
                    let new = self.reward(place, action, population[place]) + self.discount * next;
                    moved = moved.max((new - values[place][action]).abs());
                    values[place][action] = new;
                }
            }
            if moved < 1e-14 {
                break;
            }
        }
    }

    /// A step of mirror ascent with the entropy as the mirror.
    fn ascend(&self, policy: &mut Policy, values: &Policy, rate: f64) {
        let keep = 1.0 / (1.0 + rate * self.temperature);
        for (own, values) in policy.iter_mut().zip(values) {
            let logs = [0, 1].map(|action: usize| keep * (libm::log(own[action].max(1e-300)) + rate * values[action]));
            let most = logs[0].max(logs[1]);
            let weights = logs.map(|log| libm::exp(log - most));
            let sum = weights[0] + weights[1];
            *own = weights.map(|w| w / sum);
        }
    }

    /// Finds the regularised equilibrium of infinitely many agents: mirror ascent with exact values, until it stays.
    ///
    /// # Errors
    /// Numbers out of range, or no convergence.
    pub fn equilibrium(&self) -> Result<Policy, String> {
        let within = self.places() >= 2 && self.noise > 0.0 && self.noise <= 1.0 && (0.0..1.0).contains(&self.discount);
        if !within || self.temperature <= 0.0 {
            return Err(
                "a game of congestion needs two places, noise above 0, a discount below 1 and a temperature above 0"
                    .into(),
            );
        }
        let places = self.places();
        let mut policy = vec![[0.5; ACTIONS]; places];
        let mut population = vec![1.0 / places as f64; places];
        let mut values = vec![[0.0; ACTIONS]; places];
        for _ in 0..5_000 {
            let before = policy.clone();
            self.settle(&policy, &mut population);
            self.evaluate(&policy, &population, &mut values);
            self.ascend(&mut policy, &values, 0.5);
            if distance(&before, &policy) < 1e-12 {
                return Ok(policy);
            }
        }
        Err("mirror ascent with exact values did not come to rest".into())
    }

    /// Lets agents learn by themselves on one path of all of them: each learns its action values from what it meets, and then all take a
    /// step of mirror ascent. What they learn is compared with `exact`, the equilibrium.
    ///
    /// # Errors
    /// No agents, or an equilibrium of another number of places.
    pub fn learn(&self, exact: &Policy, learning: Learning, draws: &mut Draws) -> Result<Learned, String> {
        let (places, agents) = (self.places(), learning.agents as usize);
        if agents == 0 || exact.len() != places {
            return Err(format!("somebody must learn, and the equilibrium must have {places} places"));
        }
        let uniform = vec![[0.5; ACTIONS]; places];
        let mut policies = vec![uniform.clone(); agents];
        let mut values = vec![vec![[0.0; ACTIONS]; places]; agents];
        let mut at: Vec<usize> = (0..agents).map(|_| draws.below(places as u64) as usize).collect();
        for _ in 0..learning.epochs {
            let mut visits = vec![vec![[0.0; ACTIONS]; places]; agents];
            let bonuses: Vec<Vec<f64>> = policies.iter().map(|policy| self.bonuses(policy)).collect();
            for _ in 0..learning.steps {
                let mut counts = vec![0.0; places];
                at.iter().for_each(|place| counts[*place] += 1.0);
                let before = at.clone();
                for agent in 0..agents {
                    let place = before[agent];
                    let crowd = match learning.crowd {
                        Crowd::All => counts[place] / agents as f64,
                        Crowd::Four => {
                            let four = (0..4).map(|i| before[(agent + i) % agents]);
                            four.filter(|other| *other == place).count() as f64 / 4.0
                        }
                    };
                    let action = usize::from(draws.unit() >= policies[agent][place][0]);
                    let next = match draws.chance(self.noise) {
                        true => draws.below(places as u64) as usize,
                        false => self.target(place, action),
                    };
                    let worth = bonuses[agent][next] + mean(policies[agent][next], values[agent][next]);
                    let visit = &mut visits[agent][place][action];
                    *visit += 1.0;
                    // Steps fall as those of a mean over the epoch; the first are bounded.
                    let step = 2.0 / (*visit + 20.0);
                    let old = &mut values[agent][place][action];
                    *old += step * (self.reward(place, action, crowd) + self.discount * worth - *old);
                    at[agent] = next;
                }
            }
            for (policy, values) in policies.iter_mut().zip(&values) {
                self.ascend(policy, values, learning.rate);
            }
        }
        let mut mixed = vec![[0.0; ACTIONS]; places];
        for policy in &policies {
            for (sum, own) in mixed.iter_mut().zip(policy) {
                [0, 1].iter().for_each(|i| sum[*i] += own[*i] / agents as f64);
            }
        }
        let own = policies.iter().map(|policy| distance(policy, exact)).sum::<f64>() / agents as f64;
        Ok(Learned { distance: distance(&mixed, exact), own, first: distance(&uniform, exact) })
    }
}

/// The mean of action values under a policy.
fn mean(policy: [f64; ACTIONS], values: [f64; ACTIONS]) -> f64 {
    policy[0] * values[0] + policy[1] * values[1]
}

/// The mean over places of the sum of absolute differences.
#[must_use]
pub fn distance(one: &Policy, other: &Policy) -> f64 {
    let sum: f64 = one.iter().flatten().zip(other.iter().flatten()).map(|(a, b)| (a - b).abs()).sum();
    sum / one.len() as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Congestion, Crowd, Learning, distance};
    use polity_base::rng::{Draws, Stream};

    fn game() -> Congestion {
        let worth = vec![1.0, 0.4, 0.2];
        Congestion { worth, crowding: 1.5, fare: 0.1, noise: 0.2, discount: 0.7, temperature: 0.3 }
    }

    /// In the equilibrium the policy is the softmax of its own values, and the population is the one that it keeps.
    #[test]
    fn the_equilibrium_is_its_own_softmax() {
        let game = game();
        let policy = game.equilibrium().unwrap();
        let mut population = vec![1.0, 0.0, 0.0];
        game.settle(&policy, &mut population);
        let mut values = vec![[0.0; 2]; 3];
        game.evaluate(&policy, &population, &mut values);
        for (own, values) in policy.iter().zip(&values) {
            let odds = libm::exp((values[0] - values[1]) / game.temperature);
            assert!((own[0] - odds / (1.0 + odds)).abs() < 1e-9);
        }
        let sum: f64 = population.iter().sum();
        assert!((sum - 1.0).abs() < 1e-12);
    }

    /// Without crowding the game is a Markov decision process; with all places alike nobody pays for moving.
    #[test]
    fn without_differences_the_fare_alone_decides() {
        let game = Congestion { worth: vec![0.5; 4], crowding: 0.0, ..game() };
        let policy = game.equilibrium().unwrap();
        let odds = libm::exp(game.fare / game.temperature);
        assert!(policy.iter().all(|own| (own[0] - odds / (1.0 + odds)).abs() < 1e-9));
    }

    #[test]
    fn many_agents_come_nearer_than_few() {
        let exact = game().equilibrium().unwrap();
        let of = |agents, crowd| {
            let learning = Learning { agents, epochs: 30, steps: 500, rate: 0.5, crowd };
            let all: Vec<f64> = (0..6)
                .map(|seed| {
                    game().learn(&exact, learning, &mut Draws::new(seed, Stream::World, 0, 0)).unwrap().distance
                })
                .collect();
            all.iter().sum::<f64>() / 6.0
        };
        let (few, many) = (of(4, Crowd::All), of(64, Crowd::All));
        assert!(many < 0.5 * few, "{few} {many}");
        assert!(of(64, Crowd::Four) > 2.0 * many);
        assert!(Congestion { noise: 0.0, ..game() }.equilibrium().is_err());
        assert_eq!(distance(&vec![[0.5, 0.5]], &vec![[1.0, 0.0]]), 1.0);
    }
}
