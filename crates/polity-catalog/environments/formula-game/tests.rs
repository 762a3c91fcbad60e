//! Games defined in a scenario: against plain second implementations, another world and closed forms; what is refused.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{acts, metric, open, play, refused};
use polity_kernel::interface::NumberSlot;
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

/// A scenario of one kind of player.
fn scenario(seed: u64, agents: u32, rounds: u32, game: &Value, policy: Value) -> Value {
    let mut world = game.clone();
    world["kind"] = json!("formula-game");
    json!({"seed": seed, "rounds": rounds, "agents": agents, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}]})
}

fn rule(actions: Value) -> Value {
    json!({"kind": "rule", "actions": actions})
}

/// The columns of all agents after each round, by name.
fn columns(scenario: &Value, names: &[&str]) -> Vec<Vec<Vec<f64>>> {
    let mut society = open(scenario, &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    let places: Vec<usize> = names
        .iter()
        .map(|name| society.interface().columns.iter().position(|column| column.name == *name).unwrap())
        .collect();
    let mut rounds = Vec::new();
    loop {
        match society.poll(Vec::new()).unwrap().then {
            Then::Round(_) => rounds.push(places.iter().map(|place| society.column(*place)).collect()),
            Then::Done(_) => return rounds,
            Then::More | Then::Wait | Then::Exchange(_) => panic!("rules ask nobody"),
        }
    }
}

/// The numbers that all agents saw in each round, by name.
fn seen(scenario: &Value, names: &[&str]) -> Vec<Vec<Vec<f64>>> {
    let mut society = open(scenario, &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    let slots: Vec<NumberSlot> =
        names.iter().map(|name| society.interface().number("formula-game", name).unwrap()).collect();
    let mut rounds = Vec::new();
    while let Then::Round(_) = society.poll(Vec::new()).unwrap().then {
        rounds.push(slots.iter().map(|slot| society.seen(*slot)).collect());
    }
    rounds
}

/// Guess a fraction of the average, with what `level-k` wants to see.
fn contest() -> Value {
    json!({"players": 500, "rounds": 12, "constants": {"low": 0, "high": 100, "fraction": "2 / 3"},
        "actions": {"guess": {"low": "low", "high": "high"}},
        "phases": [{"actions": ["guess"], "update": [
            {"set": "miss", "to": "abs(guess - fraction * guess.mean)"},
            {"set": "won", "to": "miss == miss.min"}]}],
        "payoff": "1 / miss.min_count if won else 0",
        "observations": {"announced": {"value": "round > 0"}, "last-mean": {"value": "last.guess.mean", "default": 50},
            "last-target": {"value": "fraction * last.guess.mean", "default": 33}},
        "measures": {"mean-guess": {"value": "guess.mean"}}, "score": "100 * (high - mean_guess) / (high - low)"})
}

#[test]
fn the_world_guess_average_plays_the_same_game_bit_for_bit() {
    for policy in [json!({"kind": "level-k"}), json!({"kind": "noise"})] {
        let game = play(&scenario(3, 500, 12, &contest(), policy.clone()));
        let mut world = scenario(3, 500, 12, &json!({}), policy);
        world["world"] = json!({"kind": "guess-average"});
        let world = play(&world);
        let mut means = Vec::new();
        for (ours, theirs) in game.rounds.iter().zip(&world.rounds) {
            assert_eq!(acts(ours), acts(theirs));
            means.push(acts(theirs).iter().sum::<f64>() / 500.0);
            // The published score: 100 minus the mean of all means so far, as a share of the range.
            let score = 100.0 - means.iter().sum::<f64>() / means.len() as f64;
            assert!((metric(ours, "score") - score).abs() < 1e-9);
            assert_eq!(metric(ours, "welfare").round(), 1.0, "one prize is shared");
        }
        assert!(means.len() == 12 && means[0] > 20.0);
    }
}

/// A public good with fines that each player pays for naming the seat of another.
fn good() -> Value {
    json!({"players": 4, "rounds": 3, "constants": {"factor": 1.6},
        "actions": {"give": {"low": 0, "high": 20, "integer": true}, "punish": {"low": 0, "high": 4, "integer": true}},
        "phases": [{"actions": ["give"]}, {"actions": ["punish"], "active_players": "give > give.mean", "order": "sequential"},
            {"update": [{"set": "fined", "to": "6 * punish.received"}, {"set": "paid", "to": "punish > 0"}]}],
        "payoff": "20 - give + factor * give.sum / players - fined - (0 if missing(paid) else 2 if paid else 0)",
        "max_welfare": "factor * 80", "measures": {"given": {"value": "give.sum", "aggregate": "sum"}}})
}

#[test]
fn a_plain_public_good_with_punishment_agrees() {
    let policy = rule(json!([
        {"act": "give", "when": "phase == 0", "value": "uniform(0, 20)"},
        {"act": "punish", "when": "phase == 1", "value": "uniform(0, 4)"}]));
    let mut fines = 0;
    for seed in 0..20 {
        let (mut given, mut gains) = (vec![0.0; 4], vec![0.0; 4]);
        let (mut sum, mut before) = (0.0, None);
        let mut society = open(&scenario(seed, 4, 18, &good(), policy.clone()), &Inputs::default(), 1).unwrap();
        let mut punishes: Vec<(usize, usize)> = Vec::new();
        while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
            let rows: Vec<(usize, u16, f64)> = society
                .acts()
                .flat_map(|block| {
                    block.rows.iter().map(|act| (act.who as usize, act.kind, act.value)).collect::<Vec<_>>()
                })
                .collect();
            // A round that has just begun: the last one is over.
            if rows.iter().all(|(_, kind, _)| *kind == 0) {
                given = rows.iter().map(|(.., value)| value.round()).collect();
                punishes.clear();
                if before == Some(3.0) {
                    gains = vec![0.0; 4];
                    sum = 0.0;
                }
                sum += given.iter().sum::<f64>();
            } else {
                // Every player says something in the phase of punishment; only the one whose turn it is counts.
                let mean = given.iter().sum::<f64>() / 4.0;
                let able: Vec<usize> = (0..4).filter(|seat| given[*seat] > mean).collect();
                let who = able[punishes.len()];
                let named = rows.iter().find(|(seat, ..)| *seat == who).unwrap().2.round() as usize;
                punishes.push((who, named));
                assert_eq!(metric(&report, "refused"), 3.0);
            }
            let mean = given.iter().sum::<f64>() / 4.0;
            let able = given.iter().filter(|given| **given > mean).count();
            if punishes.len() == able {
                let total: f64 = given.iter().sum();
                for seat in 0..4 {
                    let fined = 6.0 * punishes.iter().filter(|(_, named)| *named == seat + 1).count() as f64;
                    fines += fined as u32;
                    let paid = if punishes.iter().any(|(who, named)| *who == seat && *named > 0) { 2.0 } else { 0.0 };
                    gains[seat] += 20.0 - given[seat] + 1.6 * total / 4.0 - fined - paid;
                }
                before = Some(metric(&report, "rounds-played"));
                let found = society.column(society.interface().columns.iter().position(|c| c.name == "gain").unwrap());
                assert!(found.iter().zip(&gains).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} {gains:?}");
                assert!((metric(&report, "given") - sum).abs() < 1e-9);
                let best = 128.0 * before.unwrap();
                assert!((metric(&report, "efficiency") - gains.iter().sum::<f64>() / best).abs() < 1e-9);
            }
        }
    }
    assert!(fines > 0);
}

#[test]
fn the_highest_bid_wins_and_ties_are_broken_at_random() {
    let game = json!({"players": 3, "rounds": 1, "actions": {"bid": {"low": 0, "high": 9, "integer": true}},
        "variables": {"value": {"each_round": "3 * seat"}},
        "phases": [{"actions": ["bid"], "update": [
            {"set": "place", "to": "uniform() if bid == bid.max else -1"}, {"set": "won", "to": "place == place.max"}]}],
        "payoff": "value - bid.second if won else 0", "observations": {"value": {"value": "value"}}});
    // The second and the third bid the same: each wins half of the time and pays the same.
    let bids = rule(json!([{"act": "bid", "value": "min(value, 6)"}]));
    let played = columns(&scenario(5, 3_000, 1, &game, bids), &["reward", "bid"]);
    let wins = |seat: usize| played[0][0].iter().skip(seat).step_by(3).filter(|reward| **reward != 0.0).count();
    assert_eq!(wins(0), 0);
    // The second would get nothing (6 - 6), the third 9 - 6.
    assert_eq!(wins(1), 0);
    let third = wins(2) as f64;
    assert!((third - 500.0).abs() < 4.0 * 250f64.sqrt(), "{third}");
    assert!(played[0][0].iter().all(|reward| *reward == 0.0 || *reward == 3.0));
    // Truthful bids: the highest value wins and pays the second.
    let truthful = rule(json!([{"act": "bid", "value": "value"}]));
    let played = columns(&scenario(5, 3, 1, &game, truthful), &["reward"]);
    assert_eq!(played[0][0], [0.0, 0.0, 3.0]);
}

#[test]
fn a_share_is_named_step_by_step_and_voted_on() {
    // The first names a share for each other; the rest is its own. The others accept at least 2.
    let game = json!({"players": 4, "rounds": 3, "single_episode": true, "constants": {"gold": 10},
        "variables": {"share": {"initial": "0"}},
        "actions": {"give": {"low": 0, "high": 10, "integer": true}, "vote": {"options": ["reject", "accept"]}},
        "phases": [
            {"update": [{"set": "share", "to": "0"}]},
            {"actions": ["give"], "active_players": "seat == round + 1", "repeat": "players - round - 1",
                "update": [{"set": "share", "to": "min(give.sum, gold - share.sum) if seat == round + 2 + iteration else share"}]},
            {"update": [{"set": "share", "to": "gold - share.sum if seat == round + 1 else share"}]},
            {"actions": ["vote"], "active_players": "seat > round + 1"},
            {"update": [{"set": "accepted", "to": "vote.accept + 1 >= 0.5 * (players - round)"}]}],
        "end_if": "accepted.min == 1", "payoff": "share if accepted else 0",
        "observations": {"share": {"value": "share"}}});
    let mean = rule(json!([
        {"act": "give", "when": "phase == 1", "value": "2 if played == 1 and iteration == 0 else 0"},
        {"act": "vote", "when": "phase == 3", "value": "'accept' if share >= 2 else 'reject'"}]));
    let played = columns(&scenario(1, 4, 12, &game, mean), &["share", "reward", "return"]);
    // Round 0: three steps of naming, then a vote that fails (1 of 4). Round 1: two steps and a vote: 2 of 3.
    let at = |step: usize| played[step][0].clone();
    assert_eq!(at(2), [10.0, 0.0, 0.0, 0.0]);
    assert_eq!(at(5), [0.0, 8.0, 2.0, 0.0]);
    assert_eq!(played[6][1], [0.0, 8.0, 2.0, 0.0]);
    // The game is over, and stays so.
    assert!(played[7..].iter().all(|columns| columns[1] == [0.0; 4] && columns[2] == [0.0, 8.0, 2.0, 0.0]));
}

#[test]
fn roles_are_assigned_at_random() {
    let game = json!({"players": 3, "rounds": 1, "roles": [{"name": "liar", "players": 1}, {"name": "honest", "players": 2}],
        "random_roles": true, "actions": {"go": {}}, "phases": [{"actions": ["go"], "active_players": "role == 'liar'"}],
        "payoff": "1 if go == 1 else 0"});
    let mut counts = [0; 3];
    for round in columns(&scenario(1, 3, 3_000, &game, rule(json!([{"act": "go"}]))), &["return"]) {
        counts[round[0].iter().position(|reward| *reward == 1.0).unwrap()] += 1;
        assert_eq!(round[0].iter().sum::<f64>(), 1.0, "one liar, who alone may act");
    }
    assert!(counts.iter().all(|count: &i32| (count - 1_000).abs() < 4 * 26), "{counts:?}");
}

#[test]
fn quantities_of_the_group_are_those_of_a_plain_list() {
    let game = json!({"players": 5, "rounds": 2, "actions": {"x": {"low": -9, "high": 9, "integer": true}},
        "phases": [{"actions": ["x"], "active_players": "seat != 3", "update": [
            {"set": "mean", "to": "x.mean"}, {"set": "second", "to": "x.second"}, {"set": "count", "to": "x.count"},
            {"set": "most", "to": "x.max_count"}, {"set": "least", "to": "x.min_count"}, {"set": "rank", "to": "x.rank"},
            {"set": "first", "to": "x.p1"}, {"set": "named", "to": "x.received"}, {"set": "before", "to": "last.x.max"}]}],
        "payoff": "x"});
    let names = ["x", "mean", "second", "count", "most", "least", "rank", "first", "named", "before"];
    let policy = rule(json!([{"act": "x", "value": "uniform(-3, 6)"}]));
    for seed in 0..30 {
        let mut largest = 0.0;
        for (round, found) in columns(&scenario(seed, 5, 2, &game, policy.clone()), &names).into_iter().enumerate() {
            let x: Vec<f64> = (0..5).filter(|seat| *seat != 2).map(|seat| found[0][seat]).collect();
            let mut sorted = x.clone();
            sorted.sort_by(f64::total_cmp);
            let count = |value: f64| x.iter().filter(|other| **other == value).count() as f64;
            assert_eq!(found[1], [x.iter().sum::<f64>() / 4.0; 5]);
            assert_eq!(found[2], [sorted[2]; 5]);
            assert_eq!(found[3], [4.0; 5]);
            assert_eq!(found[4], [count(sorted[3]); 5]);
            assert_eq!(found[5], [count(sorted[0]); 5]);
            assert_eq!(found[7], [x[0]; 5]);
            for (seat, own) in found[0].iter().enumerate() {
                let rank = 1.0 + x.iter().filter(|other| *other > own).count() as f64;
                // The third has not acted.
                assert_eq!(found[6][seat], if seat == 2 { 0.0 } else { rank });
                assert_eq!(found[8][seat], count((seat + 1) as f64));
            }
            if round == 1 {
                assert_eq!(found[9], [largest; 5]);
            }
            largest = sorted[3];
        }
    }
}

#[test]
fn equality_is_that_of_all_pairs_and_payoffs_without_a_value_count_as_nothing() {
    let game = json!({"players": 4, "rounds": 1, "actions": {"x": {"low": 0, "high": 9}},
        "phases": [{"actions": ["x"]}], "payoff": "x / (seat - 1)"});
    let mut by_seat = scenario(1, 4, 1, &game, rule(json!([{"act": "x", "value": "seat * seat / 2"}])));
    let played = play(&by_seat);
    let report = played.rounds.last().unwrap();
    // 2 / 1, 4.5 / 2, 8 / 3, and 0.5 / 0 counts as nothing.
    let gains = [0.0, 2.0, 2.25, 8.0 / 3.0];
    let pairs: f64 = gains.iter().flat_map(|a: &f64| gains.iter().map(move |b| (a - b).abs())).sum();
    let expected = 1.0 - pairs / (2.0 * 4.0 * gains.iter().sum::<f64>());
    assert!((metric(report, "equality") - expected).abs() < 1e-12);
    assert_eq!(metric(report, "without-value"), 1.0);
    by_seat["world"]["payoff"] = json!("0");
    assert_eq!(metric(play(&by_seat).rounds.last().unwrap(), "equality"), 1.0);
}

#[test]
fn games_that_do_not_fit_are_refused() {
    for (change, says) in [
        (json!({"payoff": "gvie"}), "world.payoff: character 1: there is no quantity `gvie`; did you mean `give`?"),
        (json!({"measures": {"m": {"value": "give"}}}), "world.measures.m.value"),
        (json!({"players": 0}), "world.players"),
        (json!({"rounds": 20_000}), "world.rounds"),
        (
            json!({"roles": [{"name": "a", "players": 3}]}),
            "world.roles: the roles are for 3 players, but the game has 4",
        ),
        (json!({"constants": {"seat": 3}}), "seat"),
        (json!({"actions": {"give": {"low": 2, "high": 1}}}), "world.actions.give.high: must be above `low` (2), is 1"),
        (json!({"actions": {"give": {"low": 2}}}), "world.actions.give: give both"),
        (json!({"actions": {"give": {"options": ["a"]}}}), "at least two options"),
        (json!({"variables": {"give": {"initial": 1}}}), "world.variables.give: the name `give` is already in use"),
        (json!({"variables": {"q": {}}}), "world.variables.q: give `initial`, `each_round`, or both"),
        (json!({"phases": [{"update": []}]}), "at least one phase needs an action"),
        (
            json!({"phases": [{"actions": ["giv"]}]}),
            "world.phases[0].actions: there is no action `giv`; known actions: give",
        ),
        (
            json!({"phases": [{"actions": ["give"], "update": [{"set": "give", "to": 1}]}]}),
            "only players choose its value",
        ),
        (
            json!({"phases": [{"actions": ["give"], "update": [{"set": "a", "to": 1}, {"set": "a", "to": "give > 1"}]}]}),
            "world.phases[0].update[1].to: `a` is a number, but the formula gives a truth value",
        ),
        (json!({"phases": [{"actions": ["give"], "order": "sequential", "repeat": 2}]}), "world.phases[0].repeat"),
        (json!({"observations": {"g": {"value": "uniform()"}}}), "world.observations.g.value"),
        (json!({"observations": {"seat": {"value": "1"}}}), "two observed values called `seat`"),
    ] {
        let found = refused(&scenario(1, 4, 2, &change, rule(json!([{"act": "give", "value": 1}]))));
        assert!(found.contains(says), "{change}: {found}");
    }
}

#[test]
fn a_vector_reward_is_shown_after_each_round_and_summed_up_over_a_game() {
    // Players move twice in a round, and are rewarded after the second time.
    let game = json!({"players": 2, "rounds": 3,
        "actions": {"give": {"low": 0, "high": 9, "integer": true}, "look": {}},
        "phases": [{"actions": ["give"]}, {"actions": ["look"]}], "payoff": "give",
        "objectives": {"own": {"value": "9 - give"}, "others": {"value": "give.sum - give", "doc": "what others gave"},
            "luck": {"value": "last.give"}}});
    let scenario = scenario(5, 4, 12, &game, json!({"kind": "noise"}));
    let names = ["reward", "return", "give", "return-own", "return-others", "return-luck"];
    let rounds = columns(&scenario, &names);
    let shown = seen(&scenario, &["last-reward", "last-reward-own", "last-reward-others", "last-reward-luck"]);
    let mut sums = [[0.0; 4]; 4];
    for (i, columns) in rounds.iter().enumerate() {
        let second = i % 2 == 1;
        let last = if i % 6 > 1 { rounds[i - 2][2].clone() } else { vec![0.0; 4] };
        for agent in 0..4 {
            let (give, other) = (columns[2][agent], columns[2][agent ^ 1]);
            let gained = if second { [give, 9.0 - give, other, last[agent]] } else { [0.0; 4] };
            if i % 6 == 0 {
                sums[agent] = [0.0; 4];
            }
            (0..4).for_each(|k| sums[agent][k] += gained[k]);
            let found = [1, 3, 4, 5].map(|column: usize| columns[column][agent]);
            assert_eq!((columns[0][agent], found), (gained[0], sums[agent]), "agent {agent} in round {i}");
            // Agents see in a round what the last one gave, also if it ended the game.
            if let Some(shown) = shown.get(i + 1) {
                assert_eq!([0, 1, 2, 3].map(|k: usize| shown[k][agent]), gained, "agent {agent} after round {i}");
            }
        }
    }
    assert!(sums.iter().all(|sum| sum[3] > 0.0));
}

#[test]
fn a_phase_without_actions_is_skipped_when_nobody_is_active() {
    let game = json!({"players": 2, "rounds": 6, "actions": {"go": {}}, "variables": {"counted": {"initial": 0}},
        "phases": [{"actions": ["go"]},
            {"active_players": "round % 3 == 2 and seat == 1", "update": [{"set": "counted", "to": "counted + 1"}]}],
        "payoff": 0});
    let rounds = columns(&scenario(5, 2, 6, &game, rule(json!([{"act": "go"}]))), &["counted"]);
    let counted: Vec<f64> = rounds.iter().map(|columns| columns[0][1]).collect();
    assert_eq!(counted, [0.0, 0.0, 1.0, 1.0, 1.0, 2.0]);
}
