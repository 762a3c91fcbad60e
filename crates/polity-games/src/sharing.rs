//! Bandits whose arms are shared: several selfish players pull arms, and those who pull the same arm get equal parts of its reward, on
//! average.
//!
//! After Xu, Wang, Zhang, Li and Cui, "Competing for shareable arms in multi-player multi-armed bandits" (ICML 2023; repository
//! windxrz/SMAA): the Nash allocation, and the players who follow SMAA.

use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};

/// An allocation of players to arms in which nobody gains by another arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// The number of players on each arm.
    pub players: Vec<u32>,
    /// The least share that a player has.
    pub least: f64,
}

/// Finds the Nash allocation: player after player takes the arm with the greatest share. Of equal arms it is the first.
#[must_use]
pub fn nash(means: &[f64], players: u32) -> Allocation {
    let mut counts = vec![0u32; means.len()];
    for _ in 0..players {
        let share = |arm: usize| means[arm] / f64::from(counts[arm] + 1);
        let best = (0..means.len()).fold(0, |best, arm| if share(arm) > share(best) { arm } else { best });
        if let Some(count) = counts.get_mut(best) {
            *count += 1;
        }
    }
    let shares = means.iter().zip(&counts).filter(|(_, count)| **count > 0);
    let least = shares.map(|(mean, count)| mean / f64::from(*count)).fold(f64::INFINITY, f64::min);
    Allocation { players: counts, least }
}

/// How players play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// SMAA: take turns on the arms of the Nash allocation of the estimated means; one of them explores arms that may be better.
    #[default]
    Smaa,
    /// As SMAA, but take turns on the best arms, one player each, as if all were there to raise the total.
    Total,
}

/// What the first player does instead of following the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deviation {
    /// It follows the rule.
    #[default]
    None,
    /// It knows all means and what the others pull, and always takes the greatest share.
    Informed,
    /// It always pulls the best arm by its own estimates.
    BestArm,
    /// It always pulls the best arm by the true means, whoever is there: it keeps the others from its reward.
    Spoiler,
}

/// What players learn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feedback {
    /// The reward of the arm that they pulled.
    #[default]
    Own,
    /// A placebo: the reward of an arm drawn at random.
    Random,
}

/// A contest.
#[derive(Clone, Debug, PartialEq)]
pub struct Contest {
    /// The mean reward of each arm; rewards are 0 or 1.
    pub means: Vec<f64>,
    /// Players.
    pub players: u32,
    /// Rounds.
    pub rounds: u32,
    /// The rule of all players.
    pub rule: Rule,
    /// What the first does instead.
    pub deviation: Deviation,
    /// What they learn from.
    pub feedback: Feedback,
    /// The weight of exploration.
    pub exploration: f64,
}

/// How a contest went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The part of rounds in which the players were on the arms as in the Nash allocation; of each quarter of the contest.
    pub at_nash: [f64; 4],
    /// Regret of a player a round: how much more it would have had, by the true means, on the best other arm; of each quarter.
    pub regret: [f64; 4],
    /// Expected reward of each player a round.
    pub rewards: Vec<f64>,
}

/// A player's estimates, and its plan for as many rounds as there are players.
#[derive(Clone, Debug)]
struct Player {
    sums: Vec<f64>,
    counts: Vec<f64>,
    turns: Vec<usize>,
    candidates: Vec<usize>,
    explores: Option<usize>,
}

impl Player {
    fn means(&self) -> Vec<f64> {
        self.sums.iter().zip(&self.counts).map(|(sum, count)| if *count > 0.0 { sum / count } else { 1.0 }).collect()
    }

    /// Makes the plan for the coming rounds.
    fn plan(&mut self, contest: &Contest, round: u32) {
        let means = self.means();
        let allocation = match contest.rule {
            Rule::Smaa => nash(&means, contest.players),
            Rule::Total => total(&means, contest.players),
        };
        let arms = allocation.players.iter().enumerate();
        self.turns = arms.flat_map(|(arm, count)| std::iter::repeat_n(arm, *count as usize)).collect();
        let log = libm::log(f64::from(round) + 1.0);
        let limit = contest.exploration * (log + 4.0 * libm::log(log.max(1.0)));
        let may_be_better = |arm: &usize| {
            allocation.players[*arm] == 0 && self.counts[*arm] * divergence(means[*arm], allocation.least) <= limit
        };
        self.candidates = (0..means.len()).filter(may_be_better).collect();
        // The last of the turns on an arm that gives the least share.
        let share = |arm: usize| means[arm] / f64::from(allocation.players[arm]);
        self.explores = self.turns.iter().rposition(|arm| share(*arm) <= allocation.least + 1e-9);
    }

    fn choose(&mut self, contest: &Contest, round: u32, rank: u32, draws: &mut Draws) -> usize {
        let arms = contest.means.len() as u32;
        // First every arm once, and then up to a whole number of turns at random.
        if round < arms {
            return ((round + rank) % arms) as usize;
        }
        if round < arms.div_ceil(contest.players) * contest.players {
            return draws.below(u64::from(arms)) as usize;
        }
        if round.is_multiple_of(contest.players) || self.turns.is_empty() {
            self.plan(contest, round);
        }
        let turn = ((rank + round) % contest.players) as usize;
        if self.explores == Some(turn) && !self.candidates.is_empty() && draws.chance(0.5) {
            return self.candidates[draws.below(self.candidates.len() as u64) as usize];
        }
        self.turns[turn]
    }
}

/// One player on each of the best arms; those who find none left join the arm with the greatest share.
fn total(means: &[f64], players: u32) -> Allocation {
    let mut order: Vec<usize> = (0..means.len()).collect();
    order.sort_by(|a, b| means[*b].total_cmp(&means[*a]));
    let mut counts = vec![0u32; means.len()];
    for arm in order.iter().take(players as usize) {
        counts[*arm] = 1;
    }
    for _ in means.len() as u32..players {
        let share = |arm: usize| means[arm] / f64::from(counts[arm] + 1);
        let best = (0..means.len()).fold(0, |best, arm| if share(arm) > share(best) { arm } else { best });
        counts[best] += 1;
    }
    let taken = means.iter().zip(&counts).filter(|(_, count)| **count > 0);
    let least = taken.map(|(mean, count)| mean / f64::from(*count)).fold(f64::INFINITY, f64::min);
    Allocation { players: counts, least }
}

/// The Kullback-Leibler divergence of two coins.
fn divergence(p: f64, q: f64) -> f64 {
    const LEAST: f64 = 1e-9;
    let (p, q) = (p.clamp(LEAST, 1.0 - LEAST), q.clamp(LEAST, 1.0 - LEAST));
    p * libm::log(p / q) + (1.0 - p) * libm::log((1.0 - p) / (1.0 - q))
}

/// Plays a contest.
///
/// # Errors
/// Fewer than one arm or two players; a mean outside of 0 to 1; or fewer than four rounds.
pub fn play(contest: &Contest, draws: &mut Draws) -> Result<Outcome, String> {
    let (arms, players) = (contest.means.len(), contest.players as usize);
    if arms == 0 || players < 2 || contest.rounds < 4 || contest.means.iter().any(|mean| !(0.0..=1.0).contains(mean)) {
        return Err("a contest needs an arm, two players, four rounds, and means from 0 to 1".into());
    }
    let equilibrium = nash(&contest.means, contest.players);
    let new = Player {
        sums: vec![0.0; arms],
        counts: vec![0.0; arms],
        turns: Vec::new(),
        candidates: Vec::new(),
        explores: None,
    };
    let mut all = vec![new; players];
    let mut outcome = Outcome { at_nash: [0.0; 4], regret: [0.0; 4], rewards: vec![0.0; players] };
    let mut sizes = [0.0; 4];
    let (mut choices, mut rewards) = (vec![0; players], vec![0.0; arms]);
    for round in 0..contest.rounds {
        for (rank, player) in (0u32..).zip(&mut all) {
            choices[rank as usize] = player.choose(contest, round, rank, draws);
        }
        let mut counts = vec![0u32; arms];
        choices.iter().skip(usize::from(contest.deviation != Deviation::None)).for_each(|arm| counts[*arm] += 1);
        let best = |value: &dyn Fn(usize) -> f64| {
            (0..arms).fold(0, |best, arm| if value(arm) > value(best) { arm } else { best })
        };
        let chosen = match contest.deviation {
            Deviation::None => None,
            Deviation::Informed => Some(best(&|arm| contest.means[arm] / f64::from(counts[arm] + 1))),
            Deviation::BestArm => {
                let means = all[0].means();
                Some(best(&|arm| means[arm]))
            }
            Deviation::Spoiler => Some(best(&|arm| contest.means[arm])),
        };
        if let Some(arm) = chosen {
            choices[0] = arm;
            counts[arm] += 1;
        }
        let quarter = (u64::from(round) * 4 / u64::from(contest.rounds)) as usize;
        sizes[quarter] += 1.0;
        outcome.at_nash[quarter] += f64::from(u8::from(counts == equilibrium.players));
        for (reward, mean) in rewards.iter_mut().zip(&contest.means) {
            *reward = f64::from(u8::from(draws.chance(*mean)));
        }
        // The share of the next player on each arm; somebody already there would share with one less.
        let next = |arm: usize| contest.means[arm] / f64::from(counts[arm] + 1);
        let most = (0..arms).map(next).fold(0.0, f64::max);
        for (rank, player) in all.iter_mut().enumerate() {
            let arm = choices[rank];
            let own = contest.means[arm] / f64::from(counts[arm]);
            outcome.rewards[rank] += own;
            outcome.regret[quarter] += (most - own).max(0.0) / players as f64;
            let seen = match contest.feedback {
                Feedback::Own => rewards[arm],
                Feedback::Random => rewards[draws.below(arms as u64) as usize],
            };
            player.sums[arm] += seen;
            player.counts[arm] += 1.0;
        }
    }
    for (quarter, size) in sizes.into_iter().enumerate() {
        outcome.at_nash[quarter] /= size;
        outcome.regret[quarter] /= size;
    }
    outcome.rewards.iter_mut().for_each(|reward| *reward /= f64::from(contest.rounds));
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Contest, Deviation, Feedback, Rule, divergence, nash, play};
    use polity_base::rng::{Draws, Stream};

    /// All allocations of players to arms.
    fn allocations(arms: usize, players: u32) -> Vec<Vec<u32>> {
        if arms == 1 {
            return vec![vec![players]];
        }
        let with = |first: u32| {
            allocations(arms - 1, players - first).into_iter().map(move |mut rest| {
                rest.insert(0, first);
                rest
            })
        };
        (0..=players).flat_map(with).collect()
    }

    #[test]
    fn the_allocation_is_the_only_one_from_which_nobody_moves() {
        for seed in 0..50 {
            let mut draws = Draws::new(seed, Stream::World, 0, 0);
            let means: Vec<f64> = (0..4).map(|_| draws.unit()).collect();
            let stable = |counts: &Vec<u32>| {
                (0..4).all(|from| {
                    counts[from] == 0
                        || (0..4).all(|to| {
                            from == to || means[from] / f64::from(counts[from]) >= means[to] / f64::from(counts[to] + 1)
                        })
                })
            };
            let all: Vec<Vec<u32>> = allocations(4, 6).into_iter().filter(stable).collect();
            assert_eq!(all, [nash(&means, 6).players]);
        }
    }

    #[test]
    fn divergences_are_those_of_coins() {
        assert!(divergence(0.3, 0.3).abs() < 1e-12);
        assert!((divergence(0.5, 0.25) - 0.5 * libm::log(4.0 / 3.0)).abs() < 1e-12);
    }

    fn contest(rule: Rule, deviation: Deviation) -> Contest {
        let means = vec![0.9, 0.62, 0.4, 0.25, 0.1];
        Contest { means, players: 4, rounds: 20_000, rule, deviation, feedback: Feedback::Own, exploration: 0.1 }
    }

    #[test]
    fn players_settle_at_the_allocation_and_take_turns() {
        let outcome = play(&contest(Rule::Smaa, Deviation::None), &mut Draws::new(1, Stream::World, 0, 0)).unwrap();
        assert!(outcome.at_nash[3] > 0.95, "{outcome:?}");
        assert!(outcome.regret[3] < 0.1 * outcome.regret[0].max(0.002), "{outcome:?}");
        // Two on the best arm, one on each of the next two: all get the mean of the rewards of three arms by turns.
        let each = (0.9 + 0.62 + 0.4) / 4.0;
        assert!(outcome.rewards.iter().all(|reward| (reward - each).abs() < 0.01), "{outcome:?}");
    }

    #[test]
    fn without_feedback_they_do_not() {
        let placebo = Contest { feedback: Feedback::Random, ..contest(Rule::Smaa, Deviation::None) };
        assert!(play(&placebo, &mut Draws::new(1, Stream::World, 0, 0)).unwrap().at_nash[3] < 0.5);
    }

    #[test]
    fn an_informed_deviator_gains_where_players_spread_out() {
        let reward = |rule, deviation| {
            play(&contest(rule, deviation), &mut Draws::new(2, Stream::World, 0, 0)).unwrap().rewards[0]
        };
        let smaa = reward(Rule::Smaa, Deviation::Informed) / reward(Rule::Smaa, Deviation::None);
        let total = reward(Rule::Total, Deviation::Informed) / reward(Rule::Total, Deviation::None);
        assert!(smaa < 1.02 && total > 1.05, "{smaa} {total}");
        let wrong = Contest { players: 1, ..contest(Rule::Smaa, Deviation::None) };
        assert!(play(&wrong, &mut Draws::new(2, Stream::World, 0, 0)).is_err());
    }
}
