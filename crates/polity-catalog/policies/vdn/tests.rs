//! The two-step game of the paper on QMIX, a game whose solution is a sum, and learning from data.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::learning::mixed::testing::{self, reached};
use crate::learning::testing::recorded;
use crate::testing::{metric, open, play_with, refused};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn playing(world: &Value, rounds: u32, more: &Value) -> Value {
    testing::playing("vdn", world, rounds, more)
}

#[test]
fn a_sum_cannot_hold_what_needs_both() {
    // Fitted to all payoffs, the sum says that 6.5 is to be had after `b`, and 7 after `a`.
    assert_eq!(reached(&playing(&json!({"kind": "two-step-game"}), 802, &json!({}))), 7.0);
    // These payoffs are sums.
    let world = json!({"kind": "two-step-game", "after_b": [[0, 4], [4, 8]]});
    assert_eq!(reached(&playing(&world, 802, &json!({}))), 8.0);
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let game = json!({"kind": "two-step-game"});
    for (more, key) in [
        (json!({"buffer_rounds": 1}), "buffer_rounds"),
        (json!({"mixer": {"embedding": 8}}), "embedding"),
        (json!({"together": "friends"}), "together"),
        (json!({"observe": ["seat-2"]}), "seat-2"),
    ] {
        let why = refused(&playing(&game, 5, &more));
        assert!(why.contains(key), "{why}");
    }
}

/// A team whose reward is the share of its members who work. One in five of the recorded ones did.
fn team(players: u32, policy: &Value, agents: u32, rounds: u32) -> Value {
    let world = json!({"kind": "formula-game", "players": players, "rounds": 1, "phases": [{"actions": ["do"]}],
        "actions": {"do": {"options": ["rest", "work"]}}, "payoff": "do.work / players"});
    json!({"seed": 4, "rounds": rounds, "agents": agents, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "reward"}]})
}

fn at_random() -> Value {
    json!({"kind": "rule", "actions": [{"act": "do", "value": "1 if chance(0.2) else 0"}]})
}

fn recorded_team(players: u32) -> Inputs {
    recorded(&team(players, &at_random(), 30 * players, 40))
}

fn from_data(players: u32, penalty: &str, outcomes: &str) -> f64 {
    let policy = json!({"kind": "vdn", "hidden": [16], "gradient_steps": 4, "learning_rate": 0.003, "target_update": 50,
        "data": {"steps": {"file": "steps.csv"}, "outcomes": outcomes},
        "mixer": {"conservative": {"alpha": 0.2, "penalty": penalty}}});
    let scenario = team(players, &policy, 2 * players, 400);
    metric(play_with(&scenario, &recorded_team(players), 1).rounds.last().unwrap(), "reward.mean")
}

/// Let p be the share that works, d the value of work minus that of rest, and N the size of a team. The loss with the joint penalty is least
/// where N p (1 - p) (d - 1/N) + α N (σ(d) - p) = 0. So d is above 0 if N < p (1 - p) / α / (1/2 - p), here 2.7. With the counterfactual
/// penalty, the second N is 1, and d is above 0 for every N.
#[test]
fn the_joint_penalty_outweighs_rewards_in_larger_teams_and_the_counterfactual_one_does_not() {
    for (players, penalty, best) in [
        (2, "joint", 1.0),
        (4, "joint", 0.0),
        (8, "joint", 0.0),
        (2, "counterfactual", 1.0),
        (8, "counterfactual", 1.0),
    ] {
        assert_eq!(from_data(players, penalty, "recorded"), best, "{players} {penalty}");
    }
    assert!(from_data(8, "counterfactual", "shuffled") < 1.0);
}

#[test]
fn recorded_agents_make_up_whole_teams() {
    let policy = json!({"kind": "vdn", "data": {"steps": {"file": "steps.csv"}, "cohort": "there"}});
    let learning = team(4, &policy, 8, 20);
    let record = |first: u32, agents: u32| {
        let after = 8 - (first + agents) % 4;
        let mut scenario = team(4, &at_random(), first + agents + after, 3);
        let cohort = |name: &str, count: u32| json!({"name": name, "count": count, "policy": at_random()});
        scenario["cohorts"] = json!([cohort("before", first), cohort("there", agents), cohort("after", after)]);
        recorded(&scenario)
    };
    let message = |inputs: &Inputs| open(&learning, inputs, 1).err().map(|error| error.to_string());
    assert_eq!(message(&record(8, 12)), None);
    let why = message(&record(8, 2)).unwrap();
    assert!(why.contains("data.steps") && why.contains("agent 8 is not the first of a whole team"), "{why}");
    let why = message(&record(6, 8)).unwrap();
    assert!(why.contains("agent 6"), "{why}");
}

#[test]
fn penalties_that_do_not_fit_are_refused() {
    let game = json!({"kind": "two-step-game"});
    let why = refused(&playing(&game, 5, &json!({"mixer": {"conservative": {"alpha": -1}}})));
    assert!(why.contains("mixer.conservative.alpha"), "{why}");
    let mut scenario = playing(&game, 5, &json!({"mixer": {"conservative": {}}}));
    scenario["cohorts"][0]["policy"]["kind"] = json!("qmix");
    let why = refused(&scenario);
    assert!(why.contains("conservative"), "{why}");
}
