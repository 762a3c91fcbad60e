//! Views by hand, and tasks whose solutions are known.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::learning::{NONE, Replay, Seen, Teams, Together};
use crate::testing::{metric, open, play, refused};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use polity_nn::Array;
use serde_json::{Value, json};

fn spreading(seed: u64, rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "mappo", "hidden": [32], "horizon": 25, "minibatch": 256, "learning_rate": 0.003,
        "discount": 0.95, "reward_scale": 0.3});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": seed, "rounds": rounds, "agents": 48, "topology": {"kind": "none"}, "world": {"kind": "spread"},
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

/// Six agents in episodes of three, from agent 6 on; each sees its number plus 100 times the round.
fn seen(round: u32, active: bool, ended: bool) -> Seen {
    let agents: Vec<u32> = (6..12).collect();
    Seen {
        inputs: Array::column(agents.iter().map(|who| (100 * round + who) as f32).collect()),
        rewards: agents.iter().map(|who| (10 * round + who) as f32).collect(),
        ended: vec![ended; 6],
        cut: vec![false; 6],
        active: vec![active; 6],
        mask: Array::zeros(6, 2),
        agents,
    }
}

#[test]
fn agents_of_an_episode_or_strangers_are_seen_together() {
    let views = |together| Teams::new(6, 6, 3, together).views(&seen(0, true, false));
    let own = views(Together::Episode);
    assert_eq!([own.row(0), own.row(1), own.row(5)], [[6.0, 7.0, 8.0], [7.0, 8.0, 6.0], [11.0, 9.0, 10.0]]);
    // A team of strangers has the first seat of an episode, the second of the next, the third of the one after that.
    let strange = views(Together::Strangers);
    assert_eq!(
        [strange.row(0), strange.row(1), strange.row(5)],
        [[6.0, 10.0, 8.0], [7.0, 11.0, 9.0], [11.0, 9.0, 7.0]]
    );
    assert_eq!(views(Together::Alone).row(5), [11.0]);
    // An agent that is not there is seen as zeros.
    let mut few = seen(0, true, false);
    few.agents.remove(1);
    few.inputs = few.inputs.pick(&[0, 2, 3, 4, 5]);
    let few = Teams::new(6, 6, 3, Together::Episode).views(&few);
    assert_eq!([few.row(0), few.row(1)], [[6.0, 0.0, 8.0], [8.0, 6.0, 0.0]]);
}

#[test]
fn a_batch_has_whole_teams_and_what_came_of_their_decisions() {
    let mut replay = Replay::default();
    // In round 1 the second seat has no turn; in round 2 nobody has one; round 3 ends the episodes.
    let rounds = [(true, [0, 1, 1, 0, 0, 1]), (true, [1, NONE, 0, 0, NONE, 0]), (false, [NONE; 6]), (true, [0; 6])];
    for (round, (active, choices)) in (0u32..).zip(rounds) {
        replay.push(seen(round, active, round == 3), choices.to_vec(), true, 10);
    }
    let teams = Teams::new(6, 6, 3, Together::Episode);
    let batch = replay.team_batch(&teams, 200, &mut Draws::new(1, Stream::Learner, 0, 0));
    let n = batch.ended.len();
    // Two of three rounds are left out: after round 1 nobody has a turn, and in round 2 nobody has one.
    assert!((30..110).contains(&n) && batch.choices.len() == 3 * n, "{n}");
    for team in 0..n {
        let first = batch.inputs.row(3 * team)[0];
        assert!(first == 6.0 || first == 9.0, "{first}");
        for seat in 0..3 {
            let row = 3 * team + seat;
            let who = first + seat as f32;
            assert_eq!((batch.inputs.row(row)[0], batch.then.row(row)[0]), (who, 100.0 + who));
            assert_eq!((batch.rewards[row], batch.turns[row], batch.then_turns[row]), (10.0 + who, 1.0, 1.0));
        }
        let chosen = if first == 6.0 { [0, 1, 1] } else { [0, 0, 1] };
        assert_eq!((&batch.choices[3 * team..3 * team + 3], batch.ended[team]), (&chosen[..], false));
    }
}

#[test]
fn agents_spread() {
    // Of the last ten episodes of all agents.
    let reached = |more| {
        let rounds = play(&spreading(1, 2_000, &more)).rounds;
        let ends = rounds.iter().rev().step_by(25).take(10);
        ends.map(|round| metric(round, "episode-return.mean")).sum::<f64>() / 10.0
    };
    let learned = reached(json!({}));
    let blind = reached(json!({"observe": ["velocity-x"]}));
    assert!(learned > blind + 3.0, "{learned}, {blind}");
}

#[test]
fn a_cohort_must_hold_whole_episodes() {
    let mut scenario = spreading(1, 1, &json!({}));
    let policy = scenario["cohorts"][0]["policy"].clone();
    scenario["cohorts"] = json!([{"count": 16, "policy": policy}, {"count": 32, "policy": policy}]);
    let why = refused(&scenario);
    assert!(why.contains("3 seats") && why.contains("whole episodes"), "{why}");
    // Without a team it need not.
    for cohort in 0..2 {
        scenario["cohorts"][cohort]["policy"]["critic"] = json!("alone");
    }
    assert!(open(&scenario, &Inputs::default(), 1).is_ok());
    let mut scenario = spreading(1, 1, &json!({"reward": "own-score"}));
    scenario["world"] = json!({"kind": "dilemma"});
    let why = refused(&scenario);
    assert!(why.contains("no episodes"), "{why}");
}

/// Pairs who guess what the other one has. `more`: further keys of the policy.
fn guessing(rounds: u32, more: &Value) -> Value {
    let mut scenario = spreading(1, rounds, more);
    scenario["cohorts"][0]["policy"]["observe"] = json!(["bit"]);
    scenario["world"] = json!({
        "kind": "formula-game", "players": 2, "rounds": 1,
        "actions": {"guess": {"options": ["zero", "one"], "doc": "what the other has"}},
        "variables": {"bit": {"initial": "1 if chance(0.5) else 0"}},
        "phases": [{"actions": ["guess"]}],
        "payoff": "1 if (guess == \"one\") == (bit.sum - bit > 0) else 0",
        "observations": {"bit": {"value": "bit", "doc": "what you have"}},
    });
    scenario
}

#[test]
fn what_others_see_is_known_by_their_messages_alone() {
    let reached = |more: Value| metric(play(&guessing(1_500, &more)).rounds.last().unwrap(), "episode-return.mean");
    let told = reached(json!({"messages": {"size": 4}, "stop": 1_400}));
    assert!(told > 0.95, "{told}");
    for (why, more) in [
        ("no messages", json!({"stop": 1_400})),
        (
            "messages of others who play elsewhere",
            json!({"messages": {"size": 4}, "critic": "strangers", "stop": 1_400}),
        ),
    ] {
        let guessed = reached(more);
        assert!(guessed < 0.8, "{why}: {guessed}");
    }
    let why = refused(&guessing(1, &json!({"messages": {"size": 4}, "critic": "alone"})));
    assert!(why.contains("messages") && why.contains("critic: episode"), "{why}");
    for (messages, expected) in
        [(json!({"size": 4, "senders": 2}), "messages.senders"), (json!({"size": 0}), "messages.size")]
    {
        let why = refused(&guessing(1, &json!({"messages": messages})));
        assert!(why.contains(expected), "{why}");
    }
    let blind = json!({"messages": {"size": 4, "senders": 1}, "observe": ["bit"]});
    let why = refused(&guessing(1, &blind));
    assert!(why.contains("seat-0"), "{why}");
    let why = refused(&guessing(1, &json!({"symmetry": "quarter-turns"})));
    assert!(why.contains("symmetry") && why.contains("`up`"), "{why}");
}

#[test]
fn weights_of_networks_that_only_their_learner_has_are_refused_by_others() {
    let mut scenario = guessing(30, &json!({"messages": {"size": 4}}));
    let weights = play(&scenario).society.weights().unwrap().remove(0).1;
    let inputs =
        || Inputs { bytes: [("weights.safetensors".to_owned(), weights.clone().into())].into(), ..Inputs::default() };
    scenario["cohorts"][0]["policy"] = json!({"kind": "learned", "weights": {"file": "weights.safetensors"}});
    let why = open(&scenario, &inputs(), 1).err().unwrap().to_string();
    assert!(why.contains("{kind: mappo, messages: ..., weights: ..., stop: 0}"), "{why}");
}
