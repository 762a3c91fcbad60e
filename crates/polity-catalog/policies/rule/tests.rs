//! Rules against the built-in policies that do the same, bit for bit; what is refused; what a million turns cost.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// All acts and all columns of the world after each round, as bits.
type History = Vec<(Vec<(u32, u16, u64)>, Vec<Vec<u64>>)>;

fn history(scenario: &Value, shards: usize) -> History {
    let mut society = open(scenario, &Inputs::default(), shards).unwrap_or_else(|error| panic!("{error}"));
    let mut history = Vec::new();
    loop {
        match society.poll(Vec::new()).unwrap().then {
            Then::Round(_) => {
                let rows = society
                    .acts()
                    .flat_map(|block| block.rows.iter().map(|act| (act.who, act.kind, act.value.to_bits())));
                let acts = rows.collect();
                let of_world = (0..society.interface().columns.len()).filter(|i| !society.is_of_policies(*i));
                let columns = of_world.map(|i| society.column(i).into_iter().map(f64::to_bits).collect()).collect();
                history.push((acts, columns));
            }
            Then::Done(_) => return history,
            Then::More | Then::Wait | Then::Exchange(_) => panic!("rules ask nobody"),
        }
    }
}

fn with(base: &Value, policies: Value) -> Value {
    let mut scenario = base.clone();
    let policies = policies.as_array().unwrap();
    let cohorts = policies.iter().map(|policy| json!({"share": 1.0 / policies.len() as f64, "policy": policy}));
    scenario["cohorts"] = cohorts.collect();
    scenario
}

fn same(base: &Value, built_in: Value, rules: Value) {
    let expected = history(&with(base, built_in), 1);
    assert!(expected.iter().any(|(acts, _)| !acts.is_empty()), "nobody acts: the comparison says nothing");
    for shards in [1, 3] {
        let found = history(&with(base, rules.clone()), shards);
        assert_eq!(found.len(), expected.len());
        for (round, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!(found == expected, "round {round} differs");
        }
    }
}

fn schelling(agents: u32, rounds: u32) -> Value {
    json!({"seed": 3, "rounds": rounds, "agents": agents, "world": {"kind": "schelling", "density": 0.8, "radius": 2, "groups": 3}})
}

fn epidemic(agents: u32, rounds: u32) -> Value {
    json!({
        "seed": 2, "rounds": rounds, "agents": agents, "topology": {"kind": "erdos-renyi", "mean_degree": 12},
        "world": {"kind": "epidemic", "rate": 0.06, "initial": 0.01},
    })
}

fn opinions(agents: u32, rounds: u32) -> Value {
    json!({
        "seed": 5, "rounds": rounds, "agents": agents, "topology": {"kind": "watts-strogatz", "neighbours": 6, "rewire": 0.1},
        "world": {"kind": "opinion"},
    })
}

fn move_if(condition: &str) -> Value {
    json!({"kind": "rule", "actions": [{"act": "move", "when": condition}]})
}

fn isolate() -> Value {
    json!({
        "kind": "rule", "state": {"complies": "chance(0.9)"},
        "actions": [{"act": "isolate", "when": "complies", "value": "health == 2 or prevalence > 0.02"}],
    })
}

fn degroot() -> Value {
    json!({
        "kind": "rule", "state": {"next": 0},
        "heard": {"drift": {"take": "mean", "of": "heard - opinion"}},
        "update": {"next": "clamp(opinion if missing(drift) else opinion + 0.4 * drift, low, high)"},
        "actions": [{"act": "opinion", "value": "next"}],
        "tell": "next",
    })
}

#[test]
fn schellings_rule_is_relocate() {
    let base = schelling(700, 12);
    let built_in = json!([{"kind": "relocate", "least_share": 0.35}, {"kind": "relocate", "least_count": 7}]);
    same(&base, built_in, json!([move_if("like < 0.35 * neighbours"), move_if("like < 7")]));
    let rotated = with(&base, json!([move_if("like < 0.36 * neighbours"), move_if("like < 7")]));
    assert_ne!(
        history(&rotated, 1),
        history(&with(&base, json!([move_if("like < 0.35 * neighbours"), move_if("like < 7")])), 1)
    );
}

#[test]
fn a_threshold_rule_is_isolate() {
    same(&epidemic(1500, 40), json!([{"kind": "isolate", "compliance": 0.9, "alarm": 0.02}]), json!([isolate()]));
}

#[test]
fn averaging_is_degroot() {
    same(&opinions(500, 30), json!([{"kind": "degroot", "self_weight": 0.6}]), json!([degroot()]));
}

/// What an agent gathers, against plain loops over those it hears.
#[test]
fn what_is_heard_becomes_numbers() {
    let heard = json!({
        "count": {"take": "count", "where": "heard > 0.5"}, "share": {"take": "share", "where": "heard > 0.5"},
        "total": {"take": "sum", "of": "heard * 2"}, "mean": {"take": "mean"}, "low_one": {"take": "min"}, "high_one": {"take": "max"},
        "some": {"take": "one", "where": "heard > 0.5"}, "near": {"take": "mean", "where": "abs(heard - opinion) < 0.2"},
    });
    let names = ["count", "share", "total", "mean", "low_one", "high_one", "some", "near"];
    let state: serde_json::Map<String, Value> = names.iter().map(|name| (format!("s_{name}"), json!(0))).collect();
    let update = |name: &&str| (format!("s_{name}"), json!(format!("-1 if missing({name}) else {name}")));
    let update: serde_json::Map<String, Value> = names.iter().map(update).collect();
    let rule = json!({"kind": "rule", "state": state, "heard": heard, "update": update, "tell": "opinion"});
    let played = play(&with(&opinions(120, 2), json!([rule])));
    let society = &played.society;
    let column = |name: &str| {
        let place = society.interface().columns.iter().position(|column| column.name == format!("s_{name}")).unwrap();
        society.column(place)
    };
    let all: Vec<Vec<f64>> = names.iter().map(|name| column(name)).collect();
    // Nobody acts: opinions stay as they were told.
    let opinion = &played.start;
    let mut chosen = 0;
    for who in 0..120usize {
        let numbers: Vec<f64> =
            society.shared_context().topology.neighbours(who as u32).map(|other| opinion[other as usize]).collect();
        let above: Vec<f64> = numbers.iter().copied().filter(|x| *x > 0.5).collect();
        let near: Vec<f64> = numbers.iter().copied().filter(|x| (x - opinion[who]).abs() < 0.2).collect();
        let mean = |of: &[f64]| if of.is_empty() { -1.0 } else { of.iter().sum::<f64>() / of.len() as f64 };
        let expected = [
            above.len() as f64,
            above.len() as f64 / numbers.len() as f64,
            numbers.iter().map(|x| x * 2.0).sum(),
            mean(&numbers),
            numbers.iter().copied().fold(f64::INFINITY, f64::min),
            numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ];
        for (i, expected) in expected.into_iter().enumerate() {
            assert_eq!(all[i][who], expected, "{} of agent {who}", names[i]);
        }
        assert!(if above.is_empty() { all[6][who] == -1.0 } else { above.contains(&all[6][who]) }, "agent {who}");
        chosen += usize::from(above.len() > 1 && all[6][who] != above[0]);
        assert_eq!(all[7][who], mean(&near));
    }
    assert!(chosen > 20, "the first is always drawn: {chosen}");
}

#[test]
fn updates_read_the_state_before_the_turn() {
    let rule = json!({"kind": "rule", "state": {"a": 1, "b": 2}, "update": {"a": "b", "b": "a + round"}});
    let played = play(&with(&opinions(10, 3), json!([rule])));
    let column = |name: &str| {
        let place = played.society.interface().columns.iter().position(|column| column.name == name).unwrap();
        played.society.column(place)[0]
    };
    // (1, 2), (2, 1), (1, 3), (3, 3).
    assert_eq!((column("a"), column("b")), (3.0, 3.0));
}

#[test]
fn mistakes_are_found_before_the_run() {
    let mut base = opinions(30, 2);
    base["population"] = json!({"marginals": [{"column": "party", "shares": {"red": 0.5, "blue": 0.5}}]});
    let error = |mut rule: Value| {
        rule["kind"] = json!("rule");
        refused(&with(&base, json!([rule])))
    };
    let cases = [
        (json!({}), "cohorts[0].policy.actions", "a rule needs `actions`, `update` or `tell`"),
        (
            json!({"tell": "opinoin"}),
            "cohorts[0].policy.tell",
            "character 1: there is no quantity `opinoin`; did you mean `opinion`?",
        ),
        (json!({"tell": "opinion +"}), "cohorts[0].policy.tell", "character 10"),
        (json!({"tell": "heard"}), "cohorts[0].policy.tell", "there is no quantity `heard`"),
        (json!({"tell": "party"}), "cohorts[0].policy.tell", "gives a text, but a number is needed"),
        (json!({"tell": "1 if party == 'reed' else 0"}), "cohorts[0].policy.tell", "did you mean `red`?"),
        (json!({"update": {"x": "1"}}), "cohorts[0].policy.update.x", "the state has no quantity `x` (it has none)"),
        (
            json!({"state": {"x": "opinion"}, "tell": "x"}),
            "cohorts[0].policy.state.x",
            "there is no quantity `opinion`",
        ),
        (
            json!({"state": {"opinion": 0}, "tell": "1"}),
            "cohorts[0].policy.state.opinion",
            "the world shows a quantity of this name",
        ),
        (json!({"state": {"party": 0}, "tell": "1"}), "cohorts[0].policy.state.party", "an attribute has this name"),
        (json!({"state": {"x": "party"}, "tell": "1"}), "cohorts[0].policy.state.x", "not a text"),
        (
            json!({"state": {"x": "1 / 0"}, "tell": "1"}),
            "cohorts[0].policy.state.x",
            "the value would be inf for row 0",
        ),
        (
            json!({"state": {"x": true}, "update": {"x": "1 + 1"}}),
            "cohorts[0].policy.update.x",
            "but true or false is needed",
        ),
        (json!({"actions": [{"act": "vote"}]}), "cohorts[0].policy.actions[0].act", "`vote`"),
        (json!({"actions": [{"act": "opinion"}]}), "cohorts[0].policy.actions[0].act", "needs a `value`"),
        (
            json!({"actions": [{"act": "opinion", "value": 1, "when": "opinion"}]}),
            "actions[0].when",
            "but true or false is needed",
        ),
        (
            json!({"heard": {"x": {"take": "share"}}, "tell": "x"}),
            "cohorts[0].policy.heard.x.take",
            "a share needs `where`",
        ),
        (json!({"heard": {"x": {"take": "count", "of": "heard"}}, "tell": "x"}), "heard.x.of", "only counted"),
        (
            json!({"heard": {"x": {"take": "mean", "of": "uniform()"}}, "tell": "x"}),
            "heard.x.of",
            "draws a random number",
        ),
        (json!({"heard": {"x": {"take": "mean", "of": "x"}}, "tell": "x"}), "heard.x.of", "there is no quantity `x`"),
        (json!({"heard": {"round": {"take": "mean"}}, "tell": "1"}), "heard.round", "a meaning of its own"),
    ];
    for (rule, path, message) in cases {
        let found = error(rule.clone());
        assert!(found.contains(path) && found.contains(message), "{rule}: {found}");
    }
    let many: serde_json::Map<String, Value> = (0..9).map(|i| (format!("x{i}"), json!(0))).collect();
    assert!(error(json!({"state": many, "tell": "1"})).contains("at most 8 quantities are possible, not 9"));
    let mut changing = with(&opinions(30, 2), json!([{"kind": "rule", "state": {"x": 0}, "tell": "1"}]));
    changing["changes"] = json!([{"at": 1, "set": {"cohorts[0].policy.state": {"a": 1, "x": 0}}}]);
    let found = refused(&changing);
    assert!(found.contains("the columns of the state of the cohort `cohort-0` cannot change (in round 1)"), "{found}");
    let moving = |act: Value| refused(&with(&schelling(100, 1), json!([{"kind": "rule", "actions": [act]}])));
    assert!(moving(json!({"act": "move", "value": 1})).contains("the action `move` has no value"));
    let ill = |value: &str| {
        refused(&with(&epidemic(100, 1), json!([{"kind": "rule", "actions": [{"act": "isolate", "value": value}]}])))
    };
    assert!(ill("'perhaps'").contains("`perhaps` is not an option of the action, which has "), "{}", ill("'perhaps'"));
}

#[test]
fn a_value_that_is_no_number_stops_the_run() {
    let stopped_of = |agents: u32, rule: Value| {
        let mut society = open(&with(&opinions(agents, 3), json!([rule])), &Inputs::default(), 1).unwrap();
        loop {
            match society.poll(Vec::new()) {
                Err(error) => return error.to_string(),
                Ok(step) if matches!(step.then, Then::Round(_)) => {}
                Ok(_) => panic!("it ended"),
            }
        }
    };
    let stopped = |rule: Value| stopped_of(10, rule);
    assert_eq!(
        stopped(json!({"kind": "rule", "state": {"x": 1}, "update": {"x": "1 / (1 - round)"}})),
        "agent 0, round 1: the state `x` would become inf, by `1 / (1 - round)`"
    );
    let mean = json!({"heard": {"m": {"take": "mean"}}, "kind": "rule", "actions": [{"act": "opinion", "value": "m"}]});
    assert_eq!(
        stopped(mean),
        "agent 0, round 0: the value of an action would be NaN, which is not a finite number, by `m`"
    );
    let infinite = json!({"kind": "rule", "actions": [{"act": "opinion", "value": "1 / round"}]});
    assert!(
        stopped(infinite).contains("the value of an action would be inf, which is not a finite number, by `1 / round`")
    );
    assert!(
        stopped(json!({"kind": "rule", "tell": "ln(-opinion)"}))
            .contains("the agent would tell NaN, by `ln(-opinion)`")
    );
    let rare = json!({"kind": "rule", "state": {"x": "1 / 0 if chance(0.002) else 1"}, "tell": "1"});
    assert!(stopped_of(5000, rare).contains("the state `x` is inf from birth"));
}

/// `cargo test --release -p polity-policies cost_of_a_million -- --ignored --nocapture` prints the cost of a round of a million agents.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_million_agents() {
    const ROUNDS: u32 = 5;
    let cases = [
        (
            "Schelling's rule",
            schelling(1_000_000, ROUNDS),
            json!([{"kind": "relocate"}]),
            move_if("like < 0.5 * neighbours"),
        ),
        (
            "thresholds",
            epidemic(1_000_000, ROUNDS),
            json!([{"kind": "isolate", "compliance": 0.9, "alarm": 0.02}]),
            isolate(),
        ),
        ("averages", opinions(1_000_000, ROUNDS), json!([{"kind": "degroot", "self_weight": 0.6}]), degroot()),
    ];
    for (name, base, built_in, rule) in cases {
        let time = |policies: Value| {
            let mut society =
                open(&with(&base, policies), &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
            let (start, mut last) = (Instant::now(), Duration::ZERO);
            while let Then::Round(_) = society.poll(Vec::new()).unwrap().then {
                last = start.elapsed();
            }
            last / ROUNDS
        };
        let (built_in, rule) = (time(built_in), time(json!([rule])));
        println!(
            "{name}: {:.0} ms a round built in, {:.0} ms as formulas",
            built_in.as_secs_f64() * 1e3,
            rule.as_secs_f64() * 1e3
        );
    }
}
