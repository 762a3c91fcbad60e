//! Costs, loads and views of played episodes against a plain computation, conflicts, turns, and refusals.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Routes, VehicleRouting};
use crate::testing::{metric, play, refused, registry};
use polity_kernel::ask::Value;
use polity_kernel::environment::{Env, Environment as _, Episode, Move};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::tree::Node;
use serde_json::{Value as Json, json};

fn world(more: &Json) -> Json {
    let mut world = json!({"kind": "vehicle-routing", "customers": 8});
    more.as_object().unwrap().iter().for_each(|(key, value)| world[key] = value.clone());
    world
}

fn environment(more: &Json) -> Env {
    registry().make_env(&Node::from_json(&world(more))).unwrap_or_else(|error| panic!("{error}"))
}

fn go(seat: u32, place: u16) -> Move {
    Move { seat, action: place, argument: Value::Record(Vec::new()) }
}

fn state(episode: &Episode) -> Routes {
    serde_json::from_value(episode.state().unwrap()).unwrap()
}

/// Every vehicle with a turn goes where the lot says.
fn random_moves(episode: &Episode, seats: u32, draws: &mut Draws) -> Vec<Move> {
    let mut moves = Vec::new();
    for seat in 0..seats {
        let offered = episode.offered(seat).unwrap();
        if !offered.is_empty() {
            moves.push(go(seat, offered[draws.below(offered.len() as u64) as usize].action));
        }
    }
    moves
}

fn gap(routes: &Routes, from: usize, to: usize) -> f64 {
    (routes.places[from][0] - routes.places[to][0]).hypot(routes.places[from][1] - routes.places[to][1])
}

#[test]
fn costs_loads_and_views_are_those_of_a_plain_computation() {
    for (seed, decoding, cost) in [(1, "parallel", "longest"), (2, "sequential", "longest"), (3, "parallel", "total")] {
        let environment = environment(
            &json!({"teams": 2, "slowest": 0.5, "least_capacity": 9, "most_capacity": 20, "decoding": decoding, "cost": cost}),
        );
        let mut episode = environment.begin(&Default::default(), seed, 0);
        let mut draws = Draws::new(seed, Stream::Learner, 0, 0);
        let problem = state(&episode);
        let mut ways = vec![vec![0usize]; 6];
        let mut totals = [0.0; 6];
        while !episode.is_done() {
            let before = state(&episode);
            for (seat, way) in (0u32..).zip(&ways) {
                let (vehicle, mates) = (seat as usize % 3, seat as usize / 3 * 3);
                let (at, speed) = (*way.last().unwrap(), problem.speeds[vehicle]);
                for place in 1..9 {
                    let legs: Vec<f64> = (0..3)
                        .map(|other| gap(&problem, *ways[mates + other].last().unwrap(), place) / problem.speeds[other])
                        .collect();
                    let others = || (0..3).filter(|other| *other != vehicle);
                    let expected = [
                        ("time", gap(&problem, at, place) / speed),
                        ("home", gap(&problem, place, 0) / speed),
                        ("rival", others().map(|other| legs[other]).fold(f64::INFINITY, f64::min)),
                        ("nearer", others().filter(|o| (legs[*o], *o) < (legs[vehicle], vehicle)).count() as f64 / 2.0),
                    ];
                    for (what, expected) in expected {
                        let slot = environment.interface().number("", &format!("customer-{place}-{what}")).unwrap();
                        let found = episode.observe(seat, |seen| seen.number(slot)).unwrap();
                        assert!((found - expected).abs() < 1e-12, "{place} {what}: {found}, not {expected}");
                    }
                }
            }
            let moves = random_moves(&episode, 6, &mut draws);
            let result = episode.step(&moves).unwrap();
            let after = state(&episode);
            for (seat, way) in ways.iter_mut().enumerate() {
                totals[seat] += result.rewards[seat];
                let [was, is] = [&before, &after].map(|routes| &routes.teams[seat / 3].vehicles[seat % 3]);
                if was.time != is.time {
                    way.push(usize::from(is.at));
                }
            }
        }
        for (team, total) in totals.chunks(3).enumerate() {
            let times: Vec<f64> = (0..3)
                .map(|vehicle| {
                    let round: Vec<usize> = ways[3 * team + vehicle].iter().copied().chain([0]).collect();
                    let capacity = problem.capacities[vehicle];
                    let loads = round.split(|place| *place == 0);
                    let loads = loads.map(|trip| trip.iter().map(|place| problem.demands[*place]).sum::<u32>());
                    assert!(loads.max().unwrap() <= capacity);
                    round.windows(2).map(|leg| gap(&problem, leg[0], leg[1])).sum::<f64>() / problem.speeds[vehicle]
                })
                .collect();
            let most = times.iter().copied().fold(0.0, f64::max);
            let expected = if cost == "longest" { most } else { times.iter().sum() };
            assert!(total.iter().all(|total| (expected + total).abs() < 1e-9), "{expected} {total:?}");
            let mut visited: Vec<usize> = ways[3 * team..3 * team + 3].concat();
            visited.retain(|place| *place != 0);
            visited.sort_unstable();
            assert_eq!(visited, (1..9).collect::<Vec<_>>());
        }
    }
}

/// Three vehicles, two of them on their way, and one customer whom all choose. Returns the seats of those who went there.
fn conflict(priority: &str, index: u32) -> Vec<usize> {
    let environment = environment(&json!({"customers": 4, "priority": priority}));
    let mut episode = environment.begin(&Default::default(), 1, index);
    let vehicle = |at, left, time: f64| json!({"at": at, "left": left, "time": time, "stayed": false});
    let begun = json!({"places": [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [0.6, 0.0], [0.0, 1.0]], "demands": [0, 5, 5, 5, 5],
        "capacities": [20, 20, 20], "speeds": [1.0, 1.0, 1.0], "rounds": 1,
        "teams": [{"vehicles": [vehicle(0, 20, 0.0), vehicle(1, 15, 1.5), vehicle(2, 15, 1.0)],
            "served": [false, true, true, false, false], "rounds": 1, "conflicts": 0}]});
    episode.begin_from(&begun).unwrap();
    let result = episode.step(&[go(0, 3), go(1, 3), go(2, 3)]).unwrap();
    let after = state(&episode);
    assert_eq!((after.teams[0].conflicts, after.teams[0].rounds, result.done), (2, 2, false));
    (0..3).filter(|vehicle| after.teams[0].vehicles[*vehicle].at == 3).collect()
}

#[test]
fn one_of_those_who_choose_the_same_customer_goes() {
    assert_eq!(conflict("nearest", 0), [1]);
    assert_eq!(conflict("shortest", 0), [0]);
    assert_eq!(conflict("first", 0), [0]);
    let mut went = [0; 3];
    (0..300).for_each(|index| conflict("random", index).into_iter().for_each(|vehicle| went[vehicle] += 1));
    assert!(went.iter().sum::<i32>() == 300 && went.iter().all(|n| (70..130).contains(n)), "{went:?}");
}

#[test]
fn in_turns_the_one_with_the_shortest_way_is_next() {
    let environment = environment(&json!({"decoding": "sequential"}));
    let mut episode = environment.begin(&Default::default(), 1, 0);
    let mut draws = Draws::new(1, Stream::Learner, 0, 0);
    let mut stays = 0;
    while !episode.is_done() {
        let routes = state(&episode);
        let on_turn: Vec<u32> = (0..3).filter(|seat| !episode.offered(*seat).unwrap().is_empty()).collect();
        let key = |seat: u32| {
            let vehicle = routes.teams[0].vehicles[seat as usize];
            (vehicle.stayed, vehicle.time, seat)
        };
        assert_eq!(on_turn.len(), 1);
        assert!((0..3).all(|seat| key(on_turn[0]) <= key(seat)));
        let moves = random_moves(&episode, 3, &mut draws);
        stays += u32::from(moves[0].action == 0 && routes.teams[0].vehicles[moves[0].seat as usize].at == 0);
        episode.step(&moves).unwrap();
        let after = state(&episode);
        assert_eq!(after.teams[0].vehicles.iter().filter(|vehicle| vehicle.stayed).count() as u32, stays);
    }
}

#[test]
fn with_one_vehicle_both_ways_of_choosing_are_the_same() {
    let [one, other] = ["parallel", "sequential"].map(|decoding| {
        let environment = environment(&json!({"vehicles": 1, "teams": 2, "decoding": decoding}));
        let mut episode = environment.begin(&Default::default(), 5, 0);
        let mut draws = Draws::new(5, Stream::Learner, 0, 0);
        let mut states = Vec::new();
        while !episode.is_done() {
            let moves = random_moves(&episode, 2, &mut draws);
            episode.step(&moves).unwrap();
            states.push(state(&episode));
        }
        states
    });
    assert_eq!(one, other);
}

#[test]
fn what_is_seen_of_others_can_be_scrambled_or_nothing() {
    let [full, scrambled, none] = ["full", "scrambled", "none"].map(|communication| {
        let environment = environment(&json!({"communication": communication}));
        let mut episode = environment.begin(&Default::default(), 4, 0);
        episode.step(&[go(0, 3), go(1, 5), go(2, 6)]).unwrap();
        let of = |place: usize, what: &str| {
            let name = if place == 0 { format!("depot-{what}") } else { format!("customer-{place}-{what}") };
            let slot = environment.interface().number("", &name).unwrap();
            episode.observe(1, |seen| seen.number(slot)).unwrap()
        };
        let all = (0..9).map(|place| ["time", "way", "rival", "nearer", "wanted"].map(|what| of(place, what)));
        all.collect::<Vec<_>>()
    });
    for place in 0..9 {
        let [time, way, rival, nearer, wanted] = scrambled[place];
        assert_eq!([rival, nearer, wanted], full[(place + 1) % 9][2..]);
        assert_eq!([time, way, 0.0, 0.0, 0.0], none[place]);
        assert!(time == full[place][0] && way > full[place][1]);
    }
}

#[test]
fn no_episode_has_more_rounds_than_can_be() {
    for decoding in ["parallel", "sequential"] {
        let most = 2 * 8 + 3;
        let free = environment(&json!({"decoding": decoding, "least_capacity": 9, "most_capacity": 9}));
        let even = environment(
            &json!({"decoding": decoding, "least_capacity": 9, "most_capacity": 9, "teams": 2, "even_length": true}),
        );
        let mut longest = 0;
        for index in 0..200 {
            let mut draws = Draws::new(7, Stream::Learner, 0, index);
            for (environment, seats) in [(&free, 3), (&even, 6)] {
                let mut episode = environment.begin(&Default::default(), 7, index);
                while !episode.is_done() {
                    let moves = random_moves(&episode, seats, &mut draws);
                    episode.step(&moves).unwrap();
                }
                assert!(seats == 3 || episode.steps() == most);
                longest = longest.max(episode.steps());
            }
        }
        assert!(longest <= most);
    }
}

#[test]
fn vehicles_without_moves_serve_all_customers() {
    let scenario = json!({"seed": 1, "rounds": 19, "agents": 30, "topology": {"kind": "none"},
        "world": world(&json!({"even_length": true})),
        "cohorts": [{"policy": {"kind": "rule", "state": {"n": 0}, "update": {"n": "n + 1"}}}], "metrics": []});
    let round = play(&scenario).rounds.pop().unwrap();
    assert_eq!(metric(&round, "episodes"), 10.0);
    let steps = metric(&round, "decoding-steps");
    assert!((8.0 / 3.0..8.0).contains(&steps), "{steps}");
}

#[test]
fn bad_states_and_keys_are_refused() {
    for (key, value) in [
        ("customers", json!(1)),
        ("vehicles", json!(0)),
        ("teams", json!(65)),
        ("least_capacity", json!(8)),
        ("most_capacity", json!(19)),
        ("slowest", json!(0.0)),
        ("fastest", json!(0.5)),
    ] {
        let scenario = json!({"seed": 1, "rounds": 1, "agents": 3, "topology": {"kind": "none"},
            "world": world(&json!({key: value})), "cohorts": [{"policy": {"kind": "noise"}}]});
        let why = refused(&scenario);
        assert!(why.contains(key), "{why}");
    }
    let environment = environment(&json!({}));
    let mut episode = environment.begin(&Default::default(), 1, 0);
    let good = episode.state().unwrap();
    let mut takes = |path: &str, value: Json| {
        let mut bad = good.clone();
        *bad.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value;
        episode.begin_from(&bad).is_ok()
    };
    assert!(takes("/rounds", json!(0)) && takes("/teams/0/vehicles/0/time", json!(2.5)));
    for (path, value) in [
        ("/places", json!([[0.0, 0.0]])),
        ("/places/1", json!([0.0, 2.0])),
        ("/demands/0", json!(1)),
        ("/demands/3", json!(10)),
        ("/capacities/0", json!(8)),
        ("/speeds/2", json!(0.0)),
        ("/teams", json!([])),
        ("/teams/0/vehicles", json!([])),
        ("/teams/0/served", json!([])),
        ("/teams/0/served", json!([true, false, false, false, false, false, false, false, false])),
        ("/teams/0/served", json!([false, true, true, true, true, true, true, true, true])),
        ("/teams/0/vehicles/0/left", json!(0)),
        ("/teams/0/vehicles/0/at", json!(1)),
        ("/teams/0/vehicles/0/at", json!(9)),
        ("/teams/0/vehicles/0/time", json!(-1.0)),
        ("/teams/0/rounds", json!(1)),
        ("/rounds", json!(19)),
    ] {
        assert!(!takes(path, value.clone()), "{path} {value}");
    }
    assert_eq!(VehicleRouting::NAME, "vehicle-routing");
}
