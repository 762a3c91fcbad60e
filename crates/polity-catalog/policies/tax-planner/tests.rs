//! Planners in the world `tax`: the grid against theory, what formula and search reach, a shuffled feedback.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, play, refused};
use polity_games::taxation::Economy;
use serde_json::{Value, json};

fn society(seed: u64, world: &Value, planner: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("tax");
    let cohorts = json!([{"count": 1, "policy": planner}, {"count": 60, "policy": "worker"}]);
    json!({"seed": seed, "rounds": 1000, "agents": 61, "topology": {"kind": "none"}, "world": world, "cohorts": cohorts})
}

fn world(years: u32) -> Value {
    json!({"thresholds": [0.0, 47_150.0, 191_950.0], "rates": [0.12, 0.22, 0.35], "years": years})
}

/// The gain in the last year.
fn gain(seed: u64, world: &Value, planner: &Value) -> f64 {
    metric(play(&society(seed, world, planner)).rounds.last().unwrap(), "gain")
}

#[test]
fn the_grid_is_the_optimum_of_the_theory() {
    let played = play(&society(3, &world(1), &json!({"kind": "tax-planner", "plan": "grid"})));
    let place = played.society.interface().columns.iter().position(|column| &*column.name == "skill").unwrap();
    let skills = played.society.column(place)[1..].to_vec();
    let economy = Economy { elasticity: 0.25, aversion: 1.0 };
    let (best, welfare) = economy.best_on_grid(&skills, &[0.0, 47_150.0, 191_950.0], 10).unwrap();
    let last = played.rounds.last().unwrap();
    assert!((metric(last, "welfare") / welfare - 1.0).abs() < 1e-9);
    for (i, rate) in best.rates().iter().enumerate() {
        assert_eq!(metric(last, &format!("rate-{}", i + 1)), *rate);
    }
}

#[test]
fn search_learns_what_the_grid_knows_and_shuffled_welfare_teaches_nothing() {
    let (mut search, mut formula, mut brackets, mut grid, mut shuffled) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for seed in 0..8 {
        let of = |plan: &str, world: &Value| gain(seed, world, &json!({"kind": "tax-planner", "plan": plan}));
        let mut placebo = world(100);
        placebo["feedback"] = json!("shuffled");
        search += of("search", &world(100)) / 8.0;
        formula += of("saez", &world(30)) / 8.0;
        brackets += of("saez-brackets", &world(30)) / 8.0;
        grid += of("grid", &world(2)) / 8.0;
        shuffled += of("search", &placebo) / 8.0;
    }
    println!("gains: search {search}, Saez {formula}, Saez by brackets {brackets}, grid {grid}, shuffled {shuffled}");
    assert!(search > 0.97 * grid && search < 1.01 * grid, "{search} {grid}");
    assert!(search > formula, "{search} {formula}");
    assert!(shuffled < 0.95 * grid, "{shuffled} {grid}");
}

#[test]
fn one_who_keeps_its_rates_changes_nothing_and_large_grids_are_refused() {
    let keep = json!({"kind": "tax-planner", "plan": "keep"});
    let played = play(&society(1, &world(3), &keep));
    assert_eq!(metric(played.rounds.last().unwrap(), "rate-2"), 0.22);
    assert_eq!(metric(played.rounds.last().unwrap(), "elected"), 0.0);
    let found = refused(&society(1, &json!({}), &json!({"kind": "tax-planner", "plan": "grid"})));
    assert!(found.contains("19487171 schedules"), "{found}");
    let found = refused(&society(1, &world(1), &json!({"kind": "tax-planner", "rates": [0.1]})));
    assert!(found.contains("3 brackets and 1 rates"), "{found}");
}
