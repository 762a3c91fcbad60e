//! Points against recounts of what agents did, the shape's distance against all assignments, and the rules of the grid.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::arena::{BOX, FREE, Goal, Ground, OUT, WALL};
use super::shape;
use crate::testing::{metric, open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

const TASKS: [&str; 5] = ["pursuit", "synchronize", "forage", "flock", "transport"];

fn scenario(task: &str, seed: u32, world: Value) -> Value {
    let mut world = world;
    world["kind"] = "swarm".into();
    world["task"] = task.into();
    json!({
        "seed": seed, "rounds": 100, "agents": 10, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "swarmer"}}], "metrics": [{"kind": "mean", "of": "lit"}],
    })
}

fn draws(n: u32) -> Draws {
    Draws::new(7, Stream::Turn, 0, n)
}

/// The places (column, row) and lights of all agents after a round, and the score.
type Scene = (Vec<(f64, f64)>, Vec<f64>, f64);

fn watch(scenario: &Value) -> Vec<Scene> {
    let mut society = open(scenario, &Inputs::default(), 1).unwrap();
    let mut seen = Vec::new();
    loop {
        let score = match society.poll(Vec::new()).unwrap().then {
            Then::Round(report) => metric(&report, "score"),
            Then::Done(_) => return seen,
            Then::More | Then::Wait | Then::Exchange(_) => panic!("nobody is asked"),
        };
        let places = society.column(0).into_iter().zip(society.column(1)).collect();
        seen.push((places, society.column(2), score));
    }
}

/// No two agents share a cell, nobody goes further than one cell or into the wall.
#[test]
fn agents_keep_to_the_rules_of_the_grid() {
    for task in TASKS {
        for seed in 1..=5 {
            let rounds = watch(&scenario(task, seed, json!({"view": 7})));
            for (places, ..) in &rounds {
                let mut there: Vec<_> = places.iter().filter(|place| place.0 >= 0.0).collect();
                let all = there.len();
                there.sort_by(|a, b| a.partial_cmp(b).unwrap());
                there.dedup();
                assert_eq!(there.len(), all, "{task}");
                let inside = |x: f64| (1.0..=10.0).contains(&x);
                assert!(there.iter().all(|(x, y)| inside(*x) && inside(*y)), "{task}: {there:?}");
            }
            for pair in rounds.windows(2) {
                for ((x, y), (u, v)) in pair[0].0.iter().zip(&pair[1].0) {
                    assert!(*u < 0.0 || (x - u).abs() + (y - v).abs() <= 1.0, "{task}");
                }
            }
        }
    }
}

#[test]
fn points_are_a_recount_of_what_agents_did() {
    for seed in 1..=5 {
        // A piece of food is delivered when an agent no longer carries it.
        let rounds = watch(&scenario("forage", seed, json!({"view": 9})));
        let delivered = |pair: &[(_, Vec<f64>, _)]| pair[0].1.iter().zip(&pair[1].1).filter(|(a, b)| a > b).count();
        assert_eq!(rounds.windows(2).map(delivered).sum::<usize>() as f64, rounds.last().unwrap().2);
        assert!(rounds.last().unwrap().2 > 0.0);
        // All lights on, then all off, and so on.
        let rounds = watch(&scenario("synchronize", seed, json!({})));
        let mut same: Vec<f64> = rounds
            .iter()
            .filter(|(_, lit, _)| lit.iter().all(|light| *light == lit[0]))
            .map(|(_, lit, _)| lit[0])
            .collect();
        same.dedup();
        assert_eq!(same.len() as f64, rounds.last().unwrap().2);
        assert!(same.len() > 30);
        // Who has left in round t counts (100 - t) / 100.
        let rounds = watch(&scenario("transport", seed, json!({"view": 9})));
        let left = |t: usize, i: usize| t > 0 && rounds[t].0[i].0 < 0.0 && rounds[t - 1].0[i].0 >= 0.0;
        let share = |t: usize| (0..10).filter(|i| left(t, *i)).count() as f64 * (100 - t) as f64 / 100.0;
        let points: f64 = (0..rounds.len()).map(share).sum();
        assert!((points - rounds.last().unwrap().2).abs() < 1e-9 && points > 5.0, "{points}");
    }
}

/// Every assignment of the smaller side to the larger, by recursion.
fn least(costs: &[Vec<i64>], taken: &mut Vec<usize>) -> i64 {
    let Some(row) = costs.get(taken.len()) else { return 0 };
    let mut best = i64::MAX;
    for (column, cost) in row.iter().enumerate() {
        if !taken.contains(&column) {
            taken.push(column);
            let rest = least(costs, taken);
            taken.pop();
            best = best.min(cost + rest);
        }
    }
    best
}

#[test]
fn the_distance_is_the_least_over_all_shifts_and_assignments() {
    let mut draws = draws(0);
    for agents in [4, 5, 6, 7] {
        let shape = shape::ring(agents);
        for _ in 0..10 {
            let places: Vec<(i32, i32)> = (0..agents).map(|_| (draws.below(7) as i32, draws.below(7) as i32)).collect();
            let cost = |dx: i32, dy: i32| {
                let way = |(x, y): (i32, i32), (u, v): (i32, i32)| i64::from((x - u - dx).abs() + (y - v - dy).abs());
                let costs: Vec<Vec<i64>> = match places.len() <= shape.len() {
                    true => places.iter().map(|a| shape.iter().map(|b| way(*a, *b)).collect()).collect(),
                    false => shape.iter().map(|b| places.iter().map(|a| way(*a, *b)).collect()).collect(),
                };
                least(&costs, &mut Vec::new())
            };
            let plain = (-8..=8).flat_map(|dx| (-8..=8).map(move |dy| (dx, dy))).map(|(dx, dy)| cost(dx, dy)).min();
            assert_eq!(Some(i64::from(shape::distance(&places, &shape))), plain);
        }
    }
    // The shape itself, anywhere.
    let shape = shape::ring(12);
    assert_eq!(shape.len(), 12);
    let moved: Vec<(i32, i32)> = shape.iter().map(|(x, y)| (x + 3, y - 1)).collect();
    assert_eq!(shape::distance(&moved, &shape), 0);
}

#[test]
fn a_prey_without_a_way_out_is_caught_and_another_flees() {
    let ground = Ground { width: 12, height: 12, goal: Goal::Pursuit, rounds: 100 };
    let mut arena = ground.set_up(4, &mut draws(1));
    let at = |x: u32, y: u32| y * 12 + x;
    // In a corner two agents do.
    arena.prey = at(1, 1);
    arena.at = vec![at(2, 1), at(1, 2), at(8, 8), at(9, 8)];
    let stay = [0; 4];
    ground.play(&mut arena, &stay, 0, &mut draws(2));
    assert_eq!(arena.score, 1.0);
    assert_ne!(arena.prey, at(1, 1));
    // It runs two cells from an agent beside it, and is not caught.
    arena.prey = at(5, 5);
    arena.at = vec![at(4, 5), at(2, 2), at(2, 8), at(2, 5)];
    ground.play(&mut arena, &stay, 1, &mut draws(3));
    assert_eq!((arena.prey, arena.score), (at(7, 5), 1.0));
}

#[test]
fn the_box_takes_five() {
    let ground = Ground { width: 12, height: 12, goal: Goal::Transport, rounds: 100 };
    let mut arena = ground.set_up(5, &mut draws(4));
    arena.cells = vec![FREE; 144];
    (0..12).for_each(|x| arena.cells[x] = WALL);
    (3..8).for_each(|x| arena.cells[x] = BOX);
    arena.at = vec![15, 16, 17, 18, 19];
    ground.play(&mut arena, &[1, 1, 1, 1, 0], 0, &mut draws(5));
    assert_eq!((arena.cells[3], arena.score), (BOX, 0.0));
    ground.play(&mut arena, &[1, 1, 1, 1, 1], 20, &mut draws(6));
    // They go with it, and are out.
    assert_eq!((arena.cells[3], arena.done), (OUT, true));
    assert!((arena.score - 4.0).abs() < 1e-12, "{}", arena.score);
    let mut four = scenario("transport", 1, json!({"view": 9}));
    four["agents"] = 4.into();
    assert_eq!(metric(play(&four).rounds.last().unwrap(), "score"), 0.0);
}

#[test]
fn neither_views_of_elsewhere_nor_blank_messages_help() {
    let mean = |task: &str, world: Value, policy: Value| {
        let score = |seed| {
            let mut scenario = scenario(task, seed, world.clone());
            scenario["cohorts"][0]["policy"] = policy.clone();
            metric(play(&scenario).rounds.last().unwrap(), "score")
        };
        (1..=8).map(score).sum::<f64>() / 8.0
    };
    let (own, blank) = (json!({"kind": "swarmer"}), json!({"kind": "swarmer", "blank": true}));
    for task in ["pursuit", "forage", "transport"] {
        let there = mean(task, json!({"view": 9}), own.clone());
        let elsewhere = mean(task, json!({"view": 9, "elsewhere": true}), own.clone());
        assert!(there > 2.0 && elsewhere < 1.0, "{task}: {there} and {elsewhere}");
    }
    // Clocks that begin anywhere agree by messages alone, and only as far as they reach.
    assert!(mean("synchronize", json!({}), own.clone()) > 40.0);
    assert_eq!(mean("synchronize", json!({}), blank), 0.0);
    assert_eq!(mean("synchronize", json!({"view": 1}), own), 0.0);
}

/// Two swarms play as two, and their score is the mean.
#[test]
fn swarms_do_not_meet() {
    let mut two = scenario("synchronize", 1, json!({"size": 5}));
    let rounds = watch(&two);
    let points = |lights: &dyn Fn(&Scene) -> Vec<f64>| {
        let all = rounds.iter().map(lights).filter(|lit| lit.iter().all(|light| *light == lit[0]));
        let mut same: Vec<f64> = all.map(|lit| lit[0]).collect();
        same.dedup();
        same.len() as f64
    };
    let mean = (points(&|scene| scene.1[..5].to_vec()) + points(&|scene| scene.1[5..].to_vec())) / 2.0;
    assert_eq!(rounds.last().unwrap().2, mean);
    // Four and one of five cannot push a box out.
    two["world"] = json!({"kind": "swarm", "task": "transport", "size": 4, "view": 9});
    assert_eq!(watch(&two).last().unwrap().2, 0.0);
    // Some agents of different swarms stand in cells of the same number.
    two["world"] = json!({"kind": "swarm", "task": "synchronize", "size": 2});
    let meet = |scene: &Scene| (0..10).any(|i| (0..i).any(|j| scene.0[i] == scene.0[j]));
    assert!(watch(&two).iter().any(meet));
}

#[test]
fn what_does_not_fit_is_refused() {
    for (world, word) in [
        (json!({"view": 4}), "odd"),
        (json!({"width": 8}), "width"),
        (json!({"height": 2000}), "height"),
        (json!({"rounds": 0}), "rounds"),
    ] {
        let error = refused(&scenario("forage", 1, world));
        assert!(error.contains(word), "{error}");
    }
    assert!(refused(&scenario("flock", 1, json!({"size": 51}))).contains("at most 50"));
    assert!(refused(&scenario("flock", 1, json!({"size": 101, "width": 40}))).contains("size"));
    let mut late = scenario("flock", 1, json!({}));
    late["answers"] = json!({"lag": 1});
    assert!(refused(&late).contains("lag"));
}
