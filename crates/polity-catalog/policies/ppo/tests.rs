//! Learners of tasks whose solutions are known.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::learning::testing::weights_are_the_same_again;
use crate::learning::{Decisions, Experience, NONE, Rollout, Seen, Step, generalised_advantages};
use crate::testing::{metric, open, play, play_with, refused};
use polity_kernel::machine::Machine;
use polity_kernel::scenario::Inputs;
use polity_nn::Array;
use serde_json::{Value, json};

/// Learners of a world, with these parameters.
fn learners(seed: u64, rounds: u32, agents: u32, world: &Value, policy: &Value) -> Value {
    let mut policy = policy.clone();
    policy["kind"] = json!("ppo");
    json!({"seed": seed, "rounds": rounds, "agents": agents, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}]})
}

fn balancing(seed: u64, rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"horizon": 32, "minibatch": 128, "learning_rate": 0.002});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    let mut scenario = learners(seed, rounds, 16, &json!({"kind": "cart-pole"}), &policy);
    scenario["metrics"] = json!([{"kind": "mean", "of": "episode-return"}]);
    scenario
}

fn reached(scenario: &Value) -> f64 {
    metric(play(scenario).rounds.last().unwrap(), "episode-return.mean")
}

/// Three rounds of two agents: the first one's episode ends after its second decision, the second one has no turn in the second round.
fn rollout() -> (Rollout, Seen) {
    let seen = |rewards: [f32; 2], ended: [bool; 2]| Seen {
        agents: vec![4, 9],
        inputs: Array::new(2, 1, rewards.to_vec()),
        rewards: rewards.to_vec(),
        ended: ended.to_vec(),
        cut: vec![false, ended[1]],
        active: vec![true, true],
        mask: Array::zeros(2, 2),
    };
    let mut rollout = Rollout::default();
    let steps = [
        (seen([50.0, 60.0], [true, true]), [0, 1], [1.0, 2.0]),
        (seen([0.5, 0.25], [false, false]), [1, NONE], [3.0, 0.0]),
        (seen([7.0, 1.0], [true, false]), [1, 0], [4.0, 5.0]),
    ];
    for (seen, choices, values) in steps {
        rollout.push(Step { seen, choices: choices.to_vec(), logs: vec![0.0; 2], values: values.to_vec() });
    }
    (rollout, seen([0.125, 2.0], [false, true]))
}

#[test]
fn decisions_get_what_comes_until_the_next_one() {
    let (rollout, last) = rollout();
    let decisions = rollout.decisions(&last, &[8.0, 9.0], None, |_| true);
    assert_eq!(decisions.choices, [0, 1, 1, 1, 0]);
    assert_eq!(decisions.rewards, [0.5, 1.25, 7.0, 0.125, 2.0]);
    // The second decision of agent 4 ends an episode, and another begins. The episode of agent 9 is cut off after its last decision, which
    // was worth 5.
    assert_eq!(decisions.then, [3.0, 5.0, 0.0, 8.0, 5.0]);
    assert_eq!(decisions.next, [Some(2), Some(4), None, None, None]);
    assert_eq!((rollout.decided(4), rollout.decided(9), rollout.decided(5)), (Some(1), Some(0), None));
}

#[test]
fn advantages_are_weighted_sums_of_surprises() {
    let n = 6;
    let numbers = |by: f32| (0..n).map(|i| (i as f32 * by).sin()).collect::<Vec<f32>>();
    let next: Vec<Option<u32>> = vec![Some(1), Some(3), Some(4), None, Some(5), None];
    let decisions = Decisions {
        choices: vec![0; n],
        values: numbers(1.3),
        rewards: numbers(0.7),
        then: numbers(2.1),
        next: next.clone(),
        ..Decisions::default()
    };
    let (discount, lambda) = (0.9f32, 0.8f32);
    let found = generalised_advantages(&decisions, discount, lambda);
    for (i, found) in found.iter().enumerate() {
        let (mut at, mut weight, mut sum) = (Some(i), 1.0f32, 0.0f32);
        while let Some(now) = at {
            sum += weight * (decisions.rewards[now] + discount * decisions.then[now] - decisions.values[now]);
            weight *= discount * lambda;
            at = next[now].map(|next| next as usize);
        }
        assert!((found - sum).abs() < 1e-6, "{i}: {found}, not {sum}");
    }
}

#[test]
fn poles_are_balanced_by_those_who_look_ahead() {
    let learned = reached(&balancing(1, 1_000, &json!({})));
    assert!(learned > 120.0, "{learned}");
    // Every step gives 1: only what comes later tells choices apart.
    let blind = reached(&balancing(1, 1_000, &json!({"discount": 0.0})));
    assert!(blind < 45.0, "{blind}");
}

#[test]
fn players_of_a_common_interest_find_it() {
    let game = "NFG 1 R \"common\" { \"a\" \"b\" } { { \"x\" \"y\" } { \"x\" \"y\" } } \"\" 2 2 1 1 1 1 0 0";
    let policy = json!({"horizon": 8, "learning_rate": 0.01, "entropy_weight": 0.0});
    let mut scenario = learners(3, 400, 20, &json!({"kind": "matrix-game", "game": game}), &policy);
    scenario["metrics"] = json!([{"kind": "mean", "of": "played-x"}]);
    let played = metric(play(&scenario).rounds.last().unwrap(), "played-x.mean");
    assert!(played > 0.94, "{played}");
}

#[test]
fn weights_are_the_same_for_any_number_of_shards_and_after_a_snapshot() {
    weights_are_the_same_again(&balancing(5, 80, &json!({})), [50, 80]);
}

#[test]
fn a_loss_that_is_no_number_stops_the_run_and_is_named() {
    let mut society = open(&balancing(1, 200, &json!({"learning_rate": 1e38})), &Inputs::default(), 1).unwrap();
    let error = loop {
        match society.poll(Vec::new()) {
            Ok(_) => assert!(society.next_round() < 199),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("update 1 of `ppo`") && error.contains("is not a finite number"), "{error}");
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let pole = json!({"kind": "cart-pole"});
    let why = refused(&learners(1, 1, 1, &pole, &json!({"observe": ["weather"]})));
    assert!(why.contains("weather") && why.contains("observe"), "{why}");
    let why = refused(&learners(1, 1, 1, &pole, &json!({"hidden": [4096]})));
    assert!(why.contains("hidden"), "{why}");
    let why = refused(&learners(1, 1, 1, &pole, &json!({"clip": 0.0})));
    assert!(why.contains("clip"), "{why}");
    let why = refused(&learners(1, 1, 2, &json!({"kind": "opinion"}), &json!({"reward": "opinion"})));
    assert!(why.contains("no action"), "{why}");
}

/// A corridor with a fork: which way is right is shown at the start alone.
fn fork(seed: u64, rounds: u32, more: &Value) -> Value {
    let world = json!({"kind": "formula-game", "players": 1, "rounds": 5,
        "variables": {"way": {"initial": "1 if chance(0.5) else -1"}},
        "actions": {"turn": {"options": ["left", "right"]}},
        "phases": [{"actions": ["turn"]}],
        "payoff": "0 if round < rounds - 1 else way * (1 if turn == 'right' else -1)",
        "observations": {"cue": {"value": "way if round == 0 else 0", "doc": "the right way, at the start"}}});
    let mut policy = json!({"observe": ["cue", "played"], "horizon": 20, "minibatch": 320, "learning_rate": 0.003,
        "hidden": [32], "entropy_weight": 0.0});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    let mut scenario = learners(seed, rounds, 64, &world, &policy);
    scenario["metrics"] = json!([{"kind": "mean", "of": "episode-return"}]);
    scenario
}

#[test]
fn only_those_who_remember_find_the_way() {
    let remembered = reached(&fork(1, 1_200, &json!({"memory": {"gru": 16}})));
    let (forgotten, plain) = (
        reached(&fork(1, 1_200, &json!({"memory": {"gru": 16, "forgets": true}}))),
        reached(&fork(1, 1_200, &json!({}))),
    );
    assert!(remembered > 0.9, "{remembered}");
    // Chance is 0, with a standard error of 1/8.
    assert!(forgotten.abs() < 0.5 && plain.abs() < 0.5, "{forgotten} {plain}");
}

#[test]
fn memories_are_the_same_for_any_number_of_shards_and_are_not_played_by_others() {
    let scenario = fork(2, 50, &json!({"memory": {"gru": 4}}));
    let one = play_with(&scenario, &Inputs::default(), 1);
    assert_eq!(one.outcome.digest, play_with(&scenario, &Inputs::default(), 2).outcome.digest);
    let bytes = one.society.weights().unwrap().remove(0).1;
    let inputs = Inputs { bytes: [("w.safetensors".to_owned(), bytes.into())].into(), ..Inputs::default() };
    let mut scenario = fork(2, 5, &json!({"memory": {"gru": 4}, "weights": {"file": "w.safetensors"}, "stop": 0}));
    assert!(open(&scenario, &inputs, 1).is_ok());
    scenario["cohorts"][0]["policy"] = json!({"kind": "learned", "weights": {"file": "w.safetensors"}});
    let why = open(&scenario, &inputs, 1).err().unwrap().to_string();
    assert!(why.contains("memory: {gru: 4}"), "{why}");
    let why = refused(&fork(2, 5, &json!({"memory": {"gru": 0}})));
    assert!(why.contains("memory.gru"), "{why}");
}

#[test]
fn opponents_of_a_league_play_the_past_and_teach_nothing() {
    let world = json!({"kind": "formula-game", "players": 2, "rounds": 1,
        "actions": {"take": {"options": ["much", "little"]}}, "phases": [{"actions": ["take"]}],
        "payoff": "1 if take == \"much\" else 0",
        "measures": {
            "first": {"value": "1 if take.p1 == \"much\" else 0", "aggregate": "last"},
            "second": {"value": "1 if take.p2 == \"much\" else 0", "aggregate": "last"}}});
    let played = |league: &Value| {
        let policy = json!({"horizon": 2, "hidden": [8], "learning_rate": 0.004, "league": league});
        let played = play(&learners(3, 120, 200, &world, &policy));
        let last = played.rounds.last().unwrap();
        ["first", "second"].map(|who| metric(last, who))
    };
    // Opponents who play the first weights choose by lot; those who play the present ones have learned.
    let [learner, past] = played(&json!({"seats": 1, "every": 1_000_000, "latest": 0}));
    assert!(learner > 0.95 && (0.3..0.7).contains(&past), "{learner} {past}");
    let [learner, present] = played(&json!({"seats": 1, "keep": 0}));
    assert!(learner > 0.95 && present > 0.9, "{learner} {present}");
    // Versions of all times are between these.
    let [learner, mixed] = played(&json!({"seats": 1, "every": 1, "latest": 0}));
    assert!(learner > 0.95 && mixed > past + 0.1 && mixed < present, "{learner} {mixed}");

    for (league, why) in [
        (json!({"seats": 2}), "below 2"),
        (json!({"seats": 1, "latest": 2}), "league.latest"),
        (json!({"seats": 1, "every": 0}), "league.every"),
    ] {
        let message = refused(&learners(3, 1, 4, &world, &json!({"league": league})));
        assert!(message.contains(why), "{message}");
    }
    let message = refused(&learners(3, 1, 4, &json!({"kind": "cart-pole"}), &json!({"league": {"seats": 1}})));
    assert!(message.contains("below 1"), "{message}");
}

/// Two tasks in one game: the right number is the one that is shown, or the other one.
fn two_tasks(policy: &Value, rounds: u32) -> Value {
    let world = json!({"kind": "formula-game", "players": 1, "rounds": 1,
        "actions": {"say": {"options": ["zero", "one"]}},
        "variables": {"bit": {"initial": "1 if chance(0.5) else 0"}, "same": {"initial": "1 if chance(0.5) else 0"}},
        "phases": [{"actions": ["say"]}],
        "payoff": "1 if (say == \"one\") == ((bit == 1) == (same == 1)) else 0",
        "observations": {"bit": {"value": "2 * bit - 1"}, "same": {"value": "same"}, "other": {"value": "1 - same"}}});
    let mut scenario = learners(5, rounds, 200, &world, policy);
    scenario["cohorts"][0]["policy"]["observe"] = json!(["bit", "same", "other"]);
    scenario["cohorts"][0]["policy"]["horizon"] = json!(4);
    scenario["cohorts"][0]["policy"]["learning_rate"] = json!(0.005);
    scenario["metrics"] = json!([{"kind": "mean", "of": "episode-return"}]);
    scenario
}

#[test]
fn experts_learn_tasks_that_contradict_each_other() {
    let by = json!(["same", "other"]);
    for experts in [
        json!({"count": 2, "size": 8, "by": by}),
        json!({"count": 2, "size": 8, "by": by, "orthogonal": true}),
        json!({"count": 2, "size": 8, "by": by, "gate": "own", "then": [8]}),
        json!({"count": 2, "size": 8, "by": by, "gate": "softmax"}),
        json!({"count": 4, "size": 16, "gate": "softmax", "then": [8]}),
    ] {
        let got = reached(&two_tasks(&json!({"hidden": [8], "experts": experts}), 300));
        assert!(got > 0.95, "{experts}: {got}");
    }
    for (experts, why) in [
        (json!({"count": 3, "size": 8, "by": by, "gate": "own"}), "experts.count"),
        (json!({"count": 2, "size": 8, "by": ["task"]}), "`task` is not among the numbers"),
        (json!({"count": 2, "size": 8, "by": []}), "name at least one"),
        (json!({"count": 9, "size": 8, "by": by, "orthogonal": true}), "experts.size"),
    ] {
        let message = refused(&two_tasks(&json!({"experts": experts}), 1));
        assert!(message.contains(why), "{message}");
    }
    let message = refused(&two_tasks(&json!({"experts": {"count": 2, "size": 8, "by": by}, "memory": {"gru": 2}}), 1));
    assert!(message.contains("does not go with"), "{message}");
}

#[test]
fn perturbations_of_no_size_change_nothing() {
    let got = |perturb: Value| reached(&two_tasks(&json!({"hidden": [8], "perturb": perturb}), 60));
    let none = got(json!(null));
    assert_eq!(got(json!({"every": 2, "share": 0})), none);
    assert_ne!(got(json!({"every": 2, "share": 0.5})), none);
    let message = refused(&two_tasks(&json!({"perturb": {"every": 2, "keep": 1}}), 1));
    assert!(message.contains("perturb.keep"), "{message}");
}

#[test]
fn frozen_layers_stay_as_they_were() {
    let policy = json!({"hidden": [8]});
    let played = play(&two_tasks(&policy, 200));
    let bytes = played.society.weights().unwrap().remove(0).1;
    let inputs = Inputs { bytes: [("w.safetensors".to_owned(), bytes.clone().into())].into(), ..Inputs::default() };
    let of = |bytes: &[u8]| polity_nn::read(bytes).unwrap().0;
    let again = |frozen: bool| {
        let transfer = json!({"weights": {"file": "w.safetensors"}, "layers": ["policy"], "frozen": frozen});
        let played = play_with(&two_tasks(&json!({"hidden": [8], "transfer": transfer}), 40), &inputs, 1);
        of(&played.society.weights().unwrap().remove(0).1)
    };
    let (first, kept, moved) = (of(&bytes), again(true), again(false));
    for (i, tensor) in first.iter().enumerate() {
        let policy = tensor.name.starts_with("policy.");
        assert_eq!(kept[i].array == tensor.array, policy, "{}", tensor.name);
        assert_ne!(moved[i].array, tensor.array, "{}", tensor.name);
    }
    let missing = json!({"weights": {"file": "w.safetensors"}, "layers": ["memory"]});
    let scenario = two_tasks(&json!({"hidden": [8], "transfer": missing}), 1);
    let message = open(&scenario, &inputs, 1).err().unwrap().to_string();
    assert!(message.contains("no layers `memory`") && message.contains("policy"), "{message}");
    let other = json!({"hidden": [9], "transfer": {"weights": {"file": "w.safetensors"}}});
    let message = open(&two_tasks(&other, 1), &inputs, 1).err().unwrap().to_string();
    assert!(message.contains("[3, 8]") && message.contains("[3, 9]"), "{message}");
}

#[test]
fn rewards_are_weighed_and_an_episode_can_be_a_part_of_a_longer_game() {
    let game = json!({"kind": "formula-game", "players": 1, "rounds": 40, "actions": {"go": {"options": ["a", "b"]}},
        "variables": {"done": {"initial": 0}}, "payoff": 7,
        "phases": [{"actions": ["go"], "update": [{"set": "done", "to": "1 if round % 5 == 4 else 0"}]}],
        "objectives": {"gold": {"value": "1"}, "time": {"value": "-(round % 5)"}},
        "observations": {"part-over": {"value": "done"}}});
    let utility = json!({"last-reward-gold": 3, "last-reward-time": 0.5});
    let mut scenario = learners(3, 40, 4, &game, &json!({"reward": utility, "ended": "part-over", "horizon": 8}));
    scenario["metrics"] = json!([{"kind": "mean", "of": "episode-return"}]);
    let returns: Vec<f64> = play(&scenario).rounds.iter().map(|report| metric(report, "episode-return.mean")).collect();
    // Five rounds of 3 for gold and 0, -1, -2, -3, -4 halved for time; agents see the end of a part in the round after it.
    for (round, found) in returns.iter().enumerate() {
        assert_eq!(*found, if round < 5 { 0.0 } else { 10.0 }, "round {round}");
    }
    let refusal = |key: &str, value: Value| {
        let mut scenario = scenario.clone();
        scenario["cohorts"][0]["policy"][key] = value;
        refused(&scenario)
    };
    assert!(refusal("ended", json!("part-ended")).contains("it reads the number `part-ended`"));
    assert!(refusal("reward", json!({})).contains("name at least one number"));
    assert!(refusal("reward", json!({"gold": 1})).contains("it reads the number `gold`"));
}

#[test]
fn pictures_are_learned_from() {
    let map = json!(["@..1", "....", "1..1"]);
    let gathering = |world: &Value, more: &Value| {
        let mut policy = json!({"horizon": 16, "minibatch": 128, "learning_rate": 0.003, "discount": 0.8, "hidden": [16], "activation": "relu"});
        more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
        let mut scenario = learners(2, 640, 32, world, &policy);
        scenario["metrics"] = json!([{"kind": "mean", "of": "episode-return"}]);
        scenario
    };
    let world = json!({"kind": "item-gathering", "map": map, "steps": 8});
    let learned = reached(&gathering(&world, &json!({"convolution": {"filters": [4, 4], "side": 2}})));
    assert!(learned > 2.5, "{learned} of 3 items");
    let cases = [
        (&world, json!({"convolution": {"filters": []}}), "convolution.filters"),
        (&world, json!({"convolution": {"filters": [0]}}), "convolution.filters"),
        (&world, json!({"convolution": {"filters": [4], "side": 4}}), "4 by 3 cells"),
        (&world, json!({"convolution": {"filters": [4]}, "latent": {"size": 2}}), "`latent`"),
        (&world, json!({"convolution": {"filters": [4]}, "observe": ["place"]}), "`CHANNEL-X-Y`"),
        (&world, json!({"convolution": {"filters": [4], "side": 1}, "observe": ["own-0-0", "own-1-1"]}), "`own-1-0`"),
    ];
    for (world, policy, expected) in cases {
        let message = refused(&gathering(world, &policy));
        assert!(message.contains(expected), "{expected}: {message}");
    }
}
