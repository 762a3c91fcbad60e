//! Core users and ordinary users, as on platforms where a few have most of the followers (Yang et al., "OASIS: Open Agent Social
//! Interaction Simulations with One Million Agents", 2024, section 2.6, appendix E.2, and `generator/twitter/network.py` in forks of its
//! repository, which has 0.2 for `follow` as section 2.6; the appendix has 0.1).

use super::skips::rectangle;
use super::{Csr, Plan, TopologyError, affordable, within};
use crate::rng::{Draws, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The first `core` agents are core users, each with one topic, in rotation. Every ordinary user has `interests` different topics,
/// drawn evenly, and follows each core user of these topics with probability `follow`. Ordinary users have no followers. Directed.
///
/// In OASIS the followees of core users come from data, which a generator does not have. Here core users follow other core users of
/// their own topic with the same probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoreOrdinary {
    /// How many are core users; OASIS has 196.
    pub core: u32,
    /// Topics.
    #[serde(default = "topics")]
    pub topics: u32,
    /// Topics of an ordinary user, 100 at most.
    #[serde(default = "interests")]
    pub interests: u32,
    /// The probability of following a core user of one's topic.
    #[serde(default = "follow")]
    pub follow: f64,
}

fn topics() -> u32 {
    9
}

fn interests() -> u32 {
    2
}

fn follow() -> f64 {
    0.2
}

/// Most topics of one user: they are drawn without a table.
const MOST: u32 = 100;

impl CoreOrdinary {
    pub(super) fn plan(&self, n: u32, seed: u64, left: f64) -> Result<Plan<'_>, TopologyError> {
        let CoreOrdinary { core, topics, interests, follow } = *self;
        within("follow", follow, 1.0, " (a probability)")?;
        if core > n {
            return Err(TopologyError::range("core", core, format!("0 to {n} with {n} agents")));
        }
        if topics == 0 {
            return Err(TopologyError::range("topics", topics, "1 or more"));
        }
        let most = topics.min(MOST);
        if interests > most {
            return Err(TopologyError::range("interests", interests, format!("0 to {most} with {topics} topics")));
        }
        let each = f64::from(interests.max(1)) * f64::from(core) / f64::from(topics) * follow;
        // One arc a tie, and `affordable` counts two.
        affordable("core", f64::from(n) * each / 2.0, left, "use fewer core users or a smaller `follow`")?;
        // Core users follow the others of one topic; the first `larger` topics have one core user more.
        let (users, larger) = (f64::from(core / topics), f64::from(core % topics));
        let pairs = larger * (users + 1.0) * users + (f64::from(topics) - larger) * users * (users - 1.0);
        let of_ordinary = f64::from(n - core) * f64::from(interests) * f64::from(core) / f64::from(topics);
        Ok(Plan::of(n, follow * (pairs + of_ordinary), move || {
            Csr::directed(n, |edge| (0..n).for_each(|who| self.follows(who, seed, edge)))
        }))
    }

    /// Visits the followees of an agent.
    fn follows(&self, who: u32, seed: u64, edge: &mut dyn FnMut(u32, u32)) {
        for (i, topic) in (1..).zip(self.topics_of(who, seed)) {
            // The core users of a topic are `topic`, `topic + topics`, and so on.
            let users = self.core.saturating_sub(topic).div_ceil(self.topics);
            rectangle(1, users, self.follow, Draws::new(seed, Stream::Topology, i, who), |_, nth| {
                let whom = topic + nth * self.topics;
                if whom != who {
                    edge(who, whom);
                }
            });
        }
    }

    fn topics_of(&self, who: u32, seed: u64) -> Vec<u32> {
        if who < self.core {
            return vec![who % self.topics];
        }
        // Each of all sets with the same probability (Floyd; Bentley, "Programming pearls", Communications of the ACM 30, 1987).
        let mut draws = Draws::new(seed, Stream::Topology, 0, who);
        let mut chosen = Vec::with_capacity(self.interests as usize);
        for last in self.topics - self.interests..self.topics {
            let topic = draws.below(u64::from(last) + 1) as u32;
            chosen.push(if chosen.contains(&topic) { last } else { topic });
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like_oasis(core: u32) -> CoreOrdinary {
        CoreOrdinary { core, topics: topics(), interests: interests(), follow: follow() }
    }

    #[test]
    fn core_users_are_followed_by_who_shares_their_topic() {
        for seed in 0..5 {
            let n = 20_000;
            let oasis = like_oasis(196);
            let csr = oasis.plan(n, seed, f64::INFINITY).and_then(Plan::csr).unwrap();
            assert_eq!(csr, oasis.plan(n, seed, f64::INFINITY).and_then(Plan::csr).unwrap());
            let mut of_topic = [0u32; 9];
            for who in 0..n {
                let mut topics: Vec<u32> = csr.neighbours(who).iter().map(|whom| whom % 9).collect();
                topics.sort_unstable();
                topics.dedup();
                assert!(csr.neighbours(who).iter().all(|whom| *whom < 196 && *whom != who));
                match who < 196 {
                    true => assert!(topics.iter().all(|topic| *topic == who % 9)),
                    false => {
                        assert!(topics.len() <= 2, "{who}: {topics:?}");
                        oasis.topics_of(who, seed).iter().for_each(|topic| of_topic[*topic as usize] += 1);
                    }
                }
            }
            // Two different topics of nine for each; a fifth of those with a topic follow each of its core users.
            assert_eq!(of_topic.iter().sum::<u32>(), 2 * (n - 196));
            let followers = csr.reversed();
            for (topic, users) in of_topic.iter().enumerate() {
                let (p, all) = (2.0 / 9.0, f64::from(n - 196));
                assert!((f64::from(*users) - p * all).abs() < 5.0 * (all * p * (1.0 - p)).sqrt(), "{topic}: {users}");
                let (found, trials) = (topic..196).step_by(9).fold((0, 0), |(found, trials), core| {
                    let ordinary = followers.neighbours(core as u32).iter().filter(|who| **who >= 196).count();
                    (found + ordinary, trials + users)
                });
                let (found, trials) = (found as f64, f64::from(trials));
                assert!(
                    (found - 0.2 * trials).abs() < 5.0 * (trials * 0.16).sqrt(),
                    "topic {topic}: {found} of {trials}"
                );
            }
        }
    }

    #[test]
    fn everybody_of_all_topics_follows_all_core_users() {
        let all = CoreOrdinary { core: 7, topics: 3, interests: 3, follow: 1.0 };
        let csr = all.plan(30, 1, f64::INFINITY).and_then(Plan::csr).unwrap();
        assert!((7..30).all(|who| csr.neighbours(who) == [0, 1, 2, 3, 4, 5, 6]));
        assert_eq!(csr.neighbours(1), [4]);
        assert_eq!(like_oasis(0).plan(30, 1, f64::INFINITY).and_then(Plan::csr).unwrap().arcs(), 0);
        assert_eq!(
            CoreOrdinary { follow: 0.0, ..like_oasis(20) }
                .plan(30, 1, f64::INFINITY)
                .and_then(Plan::csr)
                .unwrap()
                .arcs(),
            0
        );
        // More topics than core users: some topics have no core user.
        assert!(
            CoreOrdinary { topics: 50, ..like_oasis(3) }
                .plan(300, 1, f64::INFINITY)
                .and_then(Plan::csr)
                .unwrap()
                .arcs()
                < 100
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let told = |wrong: CoreOrdinary| wrong.plan(100, 1, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string();
        assert_eq!(told(like_oasis(101)), "core: 101 is not possible; allowed: 0 to 100 with 100 agents");
        assert!(told(CoreOrdinary { follow: 1.5, ..like_oasis(5) }).starts_with("follow: 1.5 is not possible"));
        assert!(told(CoreOrdinary { topics: 0, ..like_oasis(5) }).starts_with("topics: 0 is not possible"));
        assert!(told(CoreOrdinary { interests: 10, ..like_oasis(5) }).ends_with("allowed: 0 to 9 with 9 topics"));
        let dense = CoreOrdinary { core: 1_000_000, topics: 1, interests: 1, follow: 1.0 };
        assert!(
            dense
                .plan(1_000_000, 1, f64::INFINITY)
                .and_then(Plan::csr)
                .unwrap_err()
                .to_string()
                .contains("use fewer core users")
        );
    }
}
