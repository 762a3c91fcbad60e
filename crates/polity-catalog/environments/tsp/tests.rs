//! Lengths and views against a plain computation, and tours to the nearest city against the literature.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Map, Params, Tsp};
use crate::testing::{metric, play, refused, registry};
use polity_kernel::ask::Value;
use polity_kernel::environment::{Environment as _, Move};
use polity_kernel::interface::Observation;
use polity_kernel::tree::Node;
use serde_json::json;

fn gap(one: [f64; 2], other: [f64; 2]) -> f64 {
    (one[0] - other[0]).hypot(one[1] - other[1])
}

#[test]
fn rewards_add_up_to_the_length_of_the_round_tour() {
    let world = json!({"kind": "tsp", "cities": 7, "players": 2});
    let environment = registry().make_env(&Node::from_json(&world)).unwrap_or_else(|error| panic!("{error}"));
    let mut episode = environment.begin(&Default::default(), 3, 0);
    let places = {
        let map: Map = serde_json::from_value(episode.state().unwrap()).unwrap();
        map.cities
    };
    let ways = [[3, 1, 2, 6, 5, 4], [1, 2, 3, 4, 5, 6]];
    let mut totals = [0.0; 2];
    for step in 0..6 {
        for (seat, way) in (0u32..).zip(&ways) {
            let here = if step == 0 { 0 } else { way[step - 1] };
            let number =
                |name: &str, seen: Observation<'_>| seen.number(environment.interface().number("tsp", name).unwrap());
            let left: Vec<usize> = (1..7).filter(|city| !way[..step].contains(city)).collect();
            for city in 1..7 {
                let others: Vec<f64> = left
                    .iter()
                    .filter(|other| **other != city)
                    .map(|other| gap(places[city], places[*other]))
                    .collect();
                let home = gap(places[city], places[0]);
                let near = others.iter().copied().reduce(f64::min).unwrap_or(home);
                let mean = if others.is_empty() { 0.0 } else { others.iter().sum::<f64>() / others.len() as f64 };
                let expected = [
                    ("x", places[city][0] - places[here][0]),
                    ("y", places[city][1] - places[here][1]),
                    ("distance", gap(places[here], places[city])),
                    ("home", home),
                    ("near", near),
                    ("others", mean),
                ];
                for (what, expected) in expected {
                    let found = episode.observe(seat, |seen| number(&format!("city-{city}-{what}"), seen)).unwrap();
                    assert!((found - expected).abs() < 1e-12, "city {city} {what}: {found}, not {expected}");
                }
            }
            let offered = episode.offered(seat).unwrap().len();
            assert_eq!(offered, left.len());
        }
        let moves = [0, 1].map(|seat: usize| Move {
            seat: seat as u32,
            action: ways[seat][step] as u16 - 1,
            argument: Value::Record(Vec::new()),
        });
        let result = episode.step(&moves).unwrap();
        totals.iter_mut().zip(&result.rewards).for_each(|(total, reward)| *total += reward);
        assert_eq!(result.done, step == 5);
    }
    for (way, total) in ways.iter().zip(totals) {
        let round: Vec<usize> = std::iter::once(0).chain(way.iter().copied()).chain([0]).collect();
        let length: f64 = round.windows(2).map(|leg| gap(places[leg[0]], places[leg[1]])).sum();
        assert!((length + total).abs() < 1e-12, "{length} {total}");
    }
}

#[test]
fn the_nearest_city_gives_tours_as_long_as_in_the_literature() {
    let scenario = json!({"seed": 1, "rounds": 19, "agents": 1_000, "topology": {"kind": "none"},
        "world": {"kind": "tsp"}, "cohorts": [{"policy": {"kind": "rule", "state": {"n": 0}, "update": {"n": "n + 1"}}}],
        "metrics": [{"kind": "mean", "of": "length"}]});
    let round = play(&scenario).rounds.pop().unwrap();
    let length = metric(&round, "length.mean");
    // 4.50 in Kool and others 2019; the standard error is 0.017 here.
    assert!((length - 4.5).abs() < 0.05, "{length}");
    assert_eq!((metric(&round, "shortest"), metric(&round, "mean-length")), (length, length));
}

#[test]
fn bad_states_and_keys_are_refused() {
    let tours = |cities, players| {
        json!({"seed": 1, "rounds": 1, "agents": 2, "topology": {"kind": "none"},
        "world": {"kind": "tsp", "cities": cities, "players": players}, "cohorts": [{"policy": {"kind": "noise"}}]})
    };
    assert!(refused(&tours(2, 1)).contains("cities"));
    assert!(refused(&tours(9, 0)).contains("players"));
    let environment = registry().make_env(&Node::from_json(&json!({"kind": "tsp", "cities": 3}))).unwrap();
    let map = |tour: &[u8]| json!({"cities": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], "tours": [tour]});
    for (tour, fits) in [(&[0u8, 2][..], true), (&[0, 0], false), (&[1], false), (&[0, 1, 2], false), (&[0, 7], false)]
    {
        let mut episode = environment.begin(&Default::default(), 1, 0);
        assert_eq!(episode.begin_from(&map(tour)).is_ok(), fits, "{tour:?}");
    }
    assert_eq!((Params::default().cities, Tsp::NAME), (20, "tsp"));
}
