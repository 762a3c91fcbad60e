//! Mazes against a plain search, a walk by hand, and what pairs of agents solve.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::maze::{Maze, walk};
use crate::testing::{metric, play, refused, registry};
use polity_kernel::ask::Value;
use polity_kernel::environment::Move;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::tree::Node;
use serde_json::{Value as Json, json};

fn mazes(world: &Json, policy: &Json, agents: u32) -> f64 {
    let (mut world, mut policy) = (world.clone(), policy.clone());
    world["kind"] = json!("relay-maze");
    policy["kind"] = json!("maze-partner");
    let scenario = json!({"seed": 5, "rounds": 60, "agents": agents, "world": world, "topology": {"kind": "none"},
        "cohorts": [{"policy": policy}]});
    metric(play(&scenario).rounds.last().unwrap(), "solved")
}

/// Distances by relaxing all cells again and again.
fn plainly(maze: &Maze) -> Vec<Option<u32>> {
    let n = maze.size as i64;
    let mut far = vec![u32::MAX; (n * n) as usize];
    far[maze.goal as usize] = 0;
    for _ in 0..n * n {
        for cell in 0..n * n {
            let (row, column) = (cell / n, cell % n);
            for (r, c) in [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)] {
                let free = (0..n).contains(&r) && (0..n).contains(&c) && !maze.walls[cell as usize];
                if free && far[(r * n + c) as usize] != u32::MAX {
                    far[cell as usize] = far[cell as usize].min(far[(r * n + c) as usize] + 1);
                }
            }
        }
    }
    far.into_iter().map(|far| (far != u32::MAX).then_some(far)).collect()
}

#[test]
fn every_maze_has_a_path_and_a_plain_search_agrees_on_its_length() {
    for index in 0..60 {
        let mut draws = Draws::new(7, Stream::Episode, 0, index);
        let (size, walls) = (4 + index % 4, 0.1 * f64::from(index % 7));
        let maze = Maze::drawn(size, walls, 5, &mut draws);
        assert_eq!(maze.distances(maze.goal), plainly(&maze), "{maze:?}");
        assert_eq!(plainly(&maze)[maze.start as usize], Some(maze.distance));
        assert!(maze.distance >= 5 && !maze.walls[maze.start as usize] && !maze.walls[maze.goal as usize]);
    }
    // The most walls that a maze may have are not too many for a path.
    let corner = Maze::drawn(4, 1.0, 6, &mut Draws::new(7, Stream::Episode, 0, 0));
    assert_eq!((corner.distance, corner.walls.contains(&true)), (6, false));
}

#[test]
fn a_path_is_walked_by_hand() {
    // S # .
    // . # G
    // . . .
    let walls = [0, 1, 0, 0, 1, 0, 0, 0, 0].map(|wall| wall == 1).to_vec();
    let maze = Maze { size: 3, walls, start: 0, goal: 5, distance: 5 };
    assert_eq!(maze.distances(5)[0], Some(5));
    assert_eq!(walk(&maze, &[2, 2, 1, 1, 0]), Some(5));
    assert_eq!(walk(&maze, &[2, 2]), Some(6));
    assert_eq!((walk(&maze, &[1]), walk(&maze, &[0])), (None, None));
}

#[test]
fn a_move_needs_both_and_an_objection_is_seen() {
    let world = json!({"kind": "relay-maze", "walls": 0.0, "size": 4, "least": 1, "talk": 0, "turns": 9});
    let environment = registry().make_env(&Node::from_json(&world)).unwrap_or_else(|error| panic!("{error}"));
    let mut episode = environment.begin(&Default::default(), 2, 0);
    let offered = |episode: &polity_kernel::environment::Episode, seat: u32| -> Vec<String> {
        episode.offered(seat).unwrap().into_iter().map(|offer| offer.name).collect()
    };
    assert_eq!((offered(&episode, 0), offered(&episode, 1)), (vec!["propose".to_owned()], vec![]));
    let propose = |seat, way| Move { seat, action: 1, argument: Value::Choice(way) };
    let map = |episode: &polity_kernel::environment::Episode| {
        let slot = environment.interface().text("relay-maze", "map").unwrap();
        episode.observe(0, |seen| seen.text(slot).to_owned()).unwrap()
    };
    let number = |episode: &polity_kernel::environment::Episode, name: &str, seat| {
        let slot = environment.interface().number("relay-maze", name).unwrap();
        episode.observe(seat, |seen| seen.number(slot)).unwrap()
    };
    let before = map(&episode);
    let at = before.replace('\n', "").find('@').unwrap();
    // A way that stays inside, and back.
    let (way, back) = if at % 4 < 3 { (1, 3) } else { (3, 1) };
    episode.step(&[propose(0, way)]).unwrap();
    assert_eq!((map(&episode), number(&episode, "proposal", 1)), (before.clone(), way as f64));
    assert_eq!(offered(&episode, 1), ["propose", "agree"]);
    episode.step(&[propose(1, back)]).unwrap();
    assert_eq!((number(&episode, "objected", 0), number(&episode, "objected", 1)), (way as f64, -1.0));
    episode.step(&[propose(0, way)]).unwrap();
    episode.step(&[propose(1, way)]).unwrap();
    let place = map(&episode).replace('\n', "").find('@').unwrap() as i64 - at as i64;
    assert_eq!(place, if way == 1 { 1 } else { -1 });
}

#[test]
fn what_pairs_solve_depends_on_how_they_count() {
    let weak = json!({});
    assert_eq!(mazes(&json!({"pairing": "solo"}), &weak, 60), 1.0);
    let pairs = |policy: Json| mazes(&json!({}), &policy, 200);
    assert_eq!(pairs(json!({"habits": 1})), 1.0);
    assert_eq!(pairs(json!({"first": "strong", "second": "strong"})), 1.0);
    assert_eq!(pairs(json!({"relay": 1})), 1.0);
    let (alone, late) = (pairs(weak), pairs(json!({"relay": 1, "relay_from": 1})));
    let placebo = pairs(json!({"relay": 1, "stated": false}));
    println!(
        "solved by weak pairs {alone}, with a relay after the first message {late}, without a statement {placebo}"
    );
    assert!(alone < 0.75 && late < 0.9 && placebo == alone, "{alone} {late} {placebo}");
}

#[test]
fn mazes_that_do_not_fit_are_refused() {
    let refused = |world: Json| {
        refused(&json!({"rounds": 1, "agents": 2, "topology": {"kind": "none"}, "world": world,
            "cohorts": [{"policy": {"kind": "maze-partner"}}]}))
    };
    let why = refused(json!({"kind": "relay-maze", "least": 11}));
    assert!(why.contains("least") && why.contains("1 to 10"), "{why}");
    let why = refused(json!({"kind": "relay-maze", "turns": 2}));
    assert!(why.contains("turns") && why.contains("2 turns of talk"), "{why}");
    assert!(refused(json!({"kind": "relay-maze", "walls": 0.7})).contains("walls"));
}
