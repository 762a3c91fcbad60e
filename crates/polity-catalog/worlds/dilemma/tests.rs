//! The stages against a second, plain population, closed forms, the placebo.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn society(seed: u64, agents: u32, world: &Value, actions: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("dilemma");
    json!({"seed": seed, "rounds": 4_000, "agents": agents, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "rule", "actions": actions}}]})
}

/// Keeps, cooperates and punishes by lot.
fn by_lot() -> Value {
    json!([
        {"act": "keep", "when": "stage == 0 and chance(0.8)"},
        {"act": "cooperate", "when": "stage == 1 and chance(0.5)"},
        {"act": "punish", "when": "stage > 1 and chance(0.3)"}
    ])
}

#[test]
fn a_plain_population_agrees_on_rewards_and_partners() {
    const N: usize = 10;
    let world =
        json!({"selection": true, "direct": true, "third_party": true, "cost": 0.5, "impact": 2.0, "cycles": 40});
    let mut society = open(&society(3, N as u32, &world, &by_lot()), &Inputs::default(), 1).unwrap();
    let column = |society: &polity_kernel::society::Society, name: &str| {
        let place = society.interface().columns.iter().position(|column| &*column.name == name).unwrap();
        society.column(place)
    };
    let whole = |values: Vec<f64>| values.into_iter().map(|value| value as usize).collect::<Vec<_>>();
    let (mut stage, mut kept_pairs, mut rounds) = (1, 0, 0);
    let mut partner = whole(column(&society, "partner"));
    let mut cooperated = vec![false; N];
    let mut cooperation = Vec::new();
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        let mut acted = [false; N];
        for act in society.acts().flat_map(|acts| acts.rows.to_vec()) {
            assert_eq!(act.kind, [0, 2, 4, 4][stage], "the action of the stage");
            acted[act.who as usize] = true;
        }
        let (rewards, now) = (column(&society, "reward"), whole(column(&society, "partner")));
        assert!((0..N).all(|who| now[now[who]] == who && now[who] != who), "pairs");
        match stage {
            0 => {
                for who in 0..N {
                    if acted[who] && acted[partner[who]] {
                        assert_eq!(now[who], partner[who], "both keep");
                        kept_pairs += 1;
                    }
                }
                assert!(rewards.iter().all(|reward| *reward == 0.0));
            }
            1 => {
                cooperated = acted.to_vec();
                cooperation.extend_from_slice(&acted);
                for who in 0..N {
                    let expected = match (acted[who], acted[partner[who]]) {
                        (true, true) => 3.0,
                        (false, true) => 4.0,
                        (true, false) => 0.0,
                        (false, false) => 1.0,
                    };
                    assert_eq!(rewards[who], expected);
                }
            }
            2 => {
                for who in 0..N {
                    let expected = if acted[who] { -0.5 } else { 0.0 } - if acted[partner[who]] { 2.0 } else { 0.0 };
                    assert_eq!(rewards[who], expected);
                }
            }
            _ => {
                let punishers = acted.iter().filter(|acted| **acted).count() as f64;
                assert!((rewards.iter().sum::<f64>() + 2.5 * punishers).abs() < 1e-9);
                // Nobody outside the pair can tell who was watched, but a punisher never punishes its own pair: alone it loses no more.
                if punishers == 1.0 {
                    let who = acted.iter().position(|acted| *acted).unwrap();
                    assert_eq!((rewards[who], rewards[partner[who]]), (-0.5, 0.0));
                }
            }
        }
        assert_eq!(
            column(&society, "cooperated"),
            cooperated.iter().map(|is| f64::from(u8::from(*is))).collect::<Vec<_>>()
        );
        let all = cooperation.iter().filter(|is| **is).count() as f64 / cooperation.len() as f64;
        assert!((metric(&report, "cooperation-rate") - all).abs() < 1e-12);
        (partner, stage, rounds) = (now, (stage + 1) % 4, rounds + 1);
    }
    assert_eq!(rounds, 40 * 4 - 1);
    assert!(kept_pairs > 100, "{kept_pairs}");
}

#[test]
fn only_pairs_in_which_both_keep_each_other_know_each_other() {
    const N: usize = 12;
    // Whether they know their partner is read from what they do.
    let actions = json!([{"act": "keep", "when": "stage == 0 and chance(0.6)"}, {"act": "cooperate", "when": "stage == 1 and seen == 0"}]);
    let mut society =
        open(&society(8, N as u32, &json!({"selection": true, "cycles": 30}), &actions), &Inputs::default(), 1)
            .unwrap();
    let place = society.interface().columns.iter().position(|column| &*column.name == "partner").unwrap();
    let (mut partner, mut kept, mut stage) = (society.column(place), [false; N], 1);
    let mut one_sided = 0;
    while let Then::Round(_) = society.poll(Vec::new()).unwrap().then {
        let mut acted = [false; N];
        for act in society.acts().flat_map(|acts| acts.rows.to_vec()) {
            acted[act.who as usize] = true;
        }
        if stage == 0 {
            kept = std::array::from_fn(|who| acted[who] && acted[partner[who] as usize]);
            one_sided += (0..N).filter(|who| acted[*who] != acted[partner[*who] as usize]).count();
        } else {
            assert_eq!(acted, kept.map(|kept| !kept));
        }
        (partner, stage) = (society.column(place), 1 - stage);
    }
    assert!(one_sided > 50, "{one_sided}");
}

#[test]
fn what_is_seen_depends_on_the_switches() {
    // They cooperate at first, and then only with those whose last act they do not know: with a reputation never again.
    let wary = json!([{"act": "cooperate", "when": "stage == 1 and seen == 0"}]);
    let rate = |world: Value| metric(play(&society(1, 8, &world, &wary)).rounds.last().unwrap(), "cooperation-rate");
    assert_eq!(rate(json!({"cycles": 10})), 1.0);
    assert_eq!(rate(json!({"cycles": 10, "reputation": true})), 0.1);
    // Partners who keep each other know each other.
    let mut keepers = wary.as_array().unwrap().clone();
    keepers.push(json!({"act": "keep", "when": "stage == 0"}));
    let world = json!({"cycles": 10, "selection": true});
    let kept = play(&society(1, 8, &world, &json!(keepers)));
    assert_eq!(metric(kept.rounds.last().unwrap(), "cooperation-rate"), 0.1);
}

#[test]
fn societies_of_one_kind_get_what_they_must() {
    let last = |world: Value, actions: Value, name: &str| {
        metric(play(&society(2, 12, &world, &actions)).rounds.last().unwrap(), name)
    };
    let all = json!([{"act": "cooperate", "when": "stage == 1"}, {"act": "punish", "when": "stage > 1 and seen == 2"}]);
    let switches = json!({"direct": true, "third_party": true, "cycles": 6});
    assert_eq!(last(switches.clone(), all.clone(), "welfare"), 3.0);
    // Nobody cooperates, and everybody punishes: 1 less two times cost and impact.
    let angry = json!([{"act": "punish", "when": "stage > 1 and seen == 2"}]);
    assert!((last(switches.clone(), angry.clone(), "welfare") - (1.0 - 2.0 * 6.1)).abs() < 1e-9);
    let mut placebo = switches;
    placebo["effect"] = json!(false);
    assert!((last(placebo.clone(), angry.clone(), "welfare") - (1.0 - 2.0 * 0.1)).abs() < 1e-9);
    assert_eq!(last(placebo, angry, "punishment-rate"), 2.0);
}

#[test]
fn games_that_are_no_dilemma_and_odd_societies_are_refused() {
    let why = refused(&society(1, 7, &json!({}), &by_lot()));
    assert!(why.contains("there are 7"), "{why}");
    let why = refused(&society(1, 8, &json!({"temptation": 2.0}), &by_lot()));
    assert!(why.contains("temptation"), "{why}");
    let why = refused(&society(1, 8, &json!({"count_from": 1_000}), &by_lot()));
    assert!(why.contains("count_from"), "{why}");
}
