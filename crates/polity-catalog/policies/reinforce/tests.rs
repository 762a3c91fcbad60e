//! Returns by hand, and a task whose solution is known.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::Episodes;
use super::params::{Baseline, Learns};
use super::played::{Episode, Played};
use crate::learning::{NONE, Seen, Step, Teams, Together};
use crate::testing::{metric, play, play_with, refused};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use polity_nn::Array;
use serde_json::{Value, json};

fn seen(rewards: [f32; 2], ended: [bool; 2]) -> Seen {
    Seen {
        agents: vec![4, 9],
        inputs: Array::column(rewards.to_vec()),
        rewards: rewards.to_vec(),
        ended: ended.to_vec(),
        cut: vec![false; 2],
        active: vec![true; 2],
        mask: Array::zeros(2, 2),
    }
}

#[test]
fn returns_are_those_of_the_first_whole_episode_of_each_agent() {
    let mut episodes = Episodes::default();
    // Agent 4 is in an episode that began before; its first whole one has the rounds 1 and 2. That of agent 9 has the rounds 0 to 2, and it
    // has no turn in round 1.
    let rounds = [
        (seen([9.0, 9.0], [false, true]), [0, 1]),
        (seen([9.0, 1.0], [true, false]), [1, NONE]),
        (seen([2.0, 4.0], [false, false]), [0, 0]),
    ];
    for (seen, choices) in rounds {
        assert!(!episodes.note(&seen, 1));
        episodes.rollout.push(Step { seen, choices: choices.to_vec(), ..Step::default() });
    }
    let last = seen([8.0, 16.0], [true, true]);
    assert!(episodes.note(&last, 1));
    assert_eq!(episodes.parts.played().collect::<Vec<_>>(), [(4, 1, 3), (9, 0, 3)]);
    let played = Played::gather(&episodes.rollout, &episodes.parts, &last, 0.5);
    assert_eq!(played.choices, [0, 1, 0, 1]);
    assert_eq!(played.returns, [8.0, 2.0 + 0.5 * 8.0, 16.0, 1.0 + 4.0 + 0.5 * 16.0]);
}

fn balancing(rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "reinforce"});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": 32, "topology": {"kind": "none"}, "world": {"kind": "cart-pole"},
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

#[test]
fn poles_are_balanced_by_those_who_look_ahead() {
    let reached = |more| metric(play(&balancing(4_000, &more)).rounds.last().unwrap(), "episode-return.mean");
    let learned = reached(json!({}));
    assert!(learned > 100.0, "{learned}");
    let blind = reached(json!({"discount": 0.0}));
    assert!(blind < 45.0, "{blind}");
}

fn totals(of: &[(u32, f32)]) -> Played {
    let episode =
        |(i, (who, total)): (usize, &(u32, f32))| Episode { who: *who, decisions: 2 * i..2 * i + 2, total: *total };
    let episodes: Vec<Episode> = of.iter().enumerate().map(episode).collect();
    let n = 2 * of.len();
    Played { choices: vec![0; n], returns: (0..n).map(|i| i as f32).collect(), episodes, ..Played::default() }
}

#[test]
fn only_the_best_of_an_episode_learns_from_its_lead() {
    let teams = Teams::new(4, 6, 3, Together::Episode);
    let played = totals(&[(4, 1.0), (5, 5.0), (6, 3.0), (7, -2.0), (8, -2.0), (9, -3.0)]);
    let advantages = |learns, baseline| played.advantages(learns, baseline, Some(&teams));
    // A lead that is shared is none.
    let expected = [0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(advantages(Learns::Best, Baseline::Batch), expected);
    let expected = [-2.0, -2.0, 2.0, 2.0, 0.0, 0.0].map(|gain: f32| gain);
    assert_eq!(advantages(Learns::All, Baseline::Episode)[..6], expected);
    assert_eq!(advantages(Learns::All, Baseline::None), played.returns);
    // The first decisions, which come last, have the returns 1, 3, 5 and so on; the others 0, 2, 4 and so on.
    let above = advantages(Learns::All, Baseline::Step);
    assert!(above.chunks(2).all(|pair| pair[0] == pair[1]) && above.iter().sum::<f32>().abs() < 1e-6, "{above:?}");
}

#[test]
fn later_states_reward_the_decisions_before_them() {
    // The last decision comes first; it led to no state in which something was decided.
    let mut played = totals(&[(0, 9.0), (1, 1.0)]);
    played.add_rewards(0.5, |episode, next| if episode.total > 5.0 { 100.0 + next as f32 } else { 0.0 });
    assert_eq!(played.returns, [0.0, 1.0 + 100.0, 2.0, 3.0]);
    let mut long = totals(&[(0, 1.0), (0, 1.0)]);
    long.episodes = vec![Episode { who: 7, decisions: 0..4, total: 1.0 }];
    long.returns.fill(0.0);
    long.add_rewards(0.5, |_, next| next as f32 + 1.0);
    assert_eq!(long.returns, [0.0, 1.0, 2.5, 3.0 + 1.25]);
    assert_eq!(long.policies(4, None), [3; 4]);
    let mut draws = Draws::new(1, Stream::Learner, 0, 0);
    assert!((0..50).map(|_| long.policies(4, Some(&mut draws))[0]).any(|policy| policy != 3));
}

/// Four agents who make round tours through the same six cities. `more`: further keys of the policy.
fn touring(rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "reinforce", "hidden": [32], "discount": 1.0});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": 32, "topology": {"kind": "none"},
        "world": {"kind": "tsp", "cities": 6, "players": 4}, "cohorts": [{"policy": policy}],
        "metrics": [{"kind": "mean", "of": "length"}]})
}

#[test]
fn networks_that_see_one_choice_at_a_time_learn_short_tours() {
    let reached = |more| metric(play(&touring(3_000, &more)).rounds.last().unwrap(), "mean-length");
    let learned = reached(json!({"per_choice": true, "baseline": "episode", "stop": 2_900}));
    // The mean of random tours is 6 times 0.52, that of the shortest ones about 2.3.
    assert!(learned < 2.55, "{learned}");
    let still = reached(json!({"per_choice": true, "baseline": "episode", "learning_rate": 1e-9}));
    assert!(still > 2.9, "{still}");
}

#[test]
fn weights_of_several_policies_are_played_by_learned_agents() {
    for more in [json!({"policies": 4, "per_choice": true, "stop": 0}), json!({"policies": 4, "stop": 0})] {
        let mut scenario = touring(12, &more);
        scenario["metrics"] = json!([{"kind": "mean", "of": "length"}]);
        let lengths = |played: &[crate::testing::Round]| {
            played.iter().map(|round| [metric(round, "shortest"), metric(round, "mean-length")]).collect::<Vec<_>>()
        };
        let first = play(&scenario);
        let weights = first.society.weights().unwrap().remove(0).1;
        scenario["cohorts"][0]["policy"] = json!({"kind": "learned", "weights": {"file": "weights.safetensors"}});
        let inputs = Inputs { bytes: [("weights.safetensors".to_owned(), weights.into())].into(), ..Inputs::default() };
        let again = lengths(&play_with(&scenario, &inputs, 1).rounds);
        assert_eq!(lengths(&first.rounds), again);
        // Four policies that have not learned make different tours.
        assert!(again.last().is_some_and(|[shortest, mean]| shortest < mean), "{again:?}");
    }
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let why = refused(&balancing(1, &json!({"learning_rate": 0.0})));
    assert!(why.contains("learning_rate"), "{why}");
    let mut scenario = balancing(1, &json!({"reward": "own-score"}));
    scenario["world"] = json!({"kind": "dilemma"});
    let why = refused(&scenario);
    assert!(why.contains("dilemma"), "{why}");
    let why = refused(&balancing(1, &json!({"per_choice": true})));
    assert!(why.contains("per_choice") && why.contains("`left`"), "{why}");
    let why = refused(&balancing(1, &json!({"diversity": {"weight": 1, "from_return": 0}})));
    assert!(why.contains("policies"), "{why}");
}
