//! The field by hand and in long runs, and what foragers of each kind do to it.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::equality;
use super::field::{Deed, Field, Rules, Shape};
use crate::testing::{metric, play, refused};
use polity_kernel::rng::{Draws, Stream};
use serde_json::{Value, json};

fn rules(regrowth: &[f64]) -> Rules {
    Rules { regrowth: regrowth.to_vec(), away: 4, cool: 2, leave: 3 }
}

fn game(seed: u64, agents: u32, world: &Value, policy: &Value) -> Value {
    let (mut world, mut policy) = (world.clone(), policy.clone());
    world["kind"] = json!("harvest");
    policy["kind"] = json!("forager");
    let rounds = world.get("rounds").and_then(Value::as_u64).unwrap_or(500);
    json!({"seed": seed, "rounds": rounds, "agents": agents, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}]})
}

#[test]
fn patches_are_as_drawn_by_hand() {
    let shape = Shape::new(2, 1);
    assert_eq!((shape.width, shape.height, shape.sites.len()), (14, 11, 26));
    let row = |y: i32| (0..14).map(|x| if shape.site((x, y)).is_some() { 'A' } else { '.' }).collect::<String>();
    let drawn: Vec<String> = (0..7).map(row).collect();
    let expected = [
        "..............",
        "...A......A...",
        "..AAA....AAA..",
        ".AAAAA..AAAAA.",
        "..AAA....AAA..",
        "...A......A...",
        "..............",
    ];
    assert_eq!(drawn, expected);
    assert!((7..11).all(|y| row(y) == ".".repeat(14)));
    // Near the centre are all 12 others; near the tip of a patch are the three below it, and the centre.
    let near = |at: (i32, i32)| shape.near[shape.site(at).unwrap()].len();
    assert_eq!((near((3, 3)), near((3, 1))), (12, 4));
    // Plainly: over all pairs.
    for (i, a) in shape.sites.iter().enumerate() {
        let far = |b: &(i32, i32)| f64::hypot(f64::from(a.0 - b.0), f64::from(a.1 - b.1));
        assert_eq!(shape.near[i].len(), shape.sites.iter().filter(|b| far(b) > 0.0 && far(b) <= 2.0).count());
    }
}

#[test]
fn apples_grow_back_at_the_stated_rates_and_never_from_nothing() {
    let shape = Shape::new(1, 1);
    let centre = shape.site((3, 3)).unwrap();
    let rates = [0.0, 0.1, 0.2, 0.4];
    for left in 0..5usize {
        let (mut grown, mut tries) = (0, 0);
        for index in 0..4_000 {
            let mut draws = Draws::new(1, Stream::World, left as u32, index);
            let mut field = Field::new(&shape, 1, &mut draws);
            field.apples.fill(false);
            for other in &shape.near[centre][..left] {
                field.apples[*other] = true;
            }
            let before = field.apples.clone();
            assert_eq!(field.near(&shape, centre), left);
            field.play(&shape, &rules(&rates), &[Deed::Nothing], &mut draws);
            tries += 1;
            grown += u32::from(field.apples[centre]);
            assert!(left > 0 || field.apples == before, "nothing grows from nothing");
        }
        let (rate, p) = (f64::from(grown) / f64::from(tries), rates[left.min(3)]);
        assert!((rate - p).abs() < 4.0 * (p * (1.0 - p) / 4_000.0).sqrt() + 1e-12, "{left}: {rate}");
    }
}

#[test]
fn a_beam_goes_three_cells_ahead_and_one_to_each_side() {
    for (way, to) in [(0u8, (0, -3)), (1, (3, 0)), (2, (0, 3)), (3, (-3, 0))] {
        assert!(Shape::hits((0, 0), way, to) && !Shape::hits((0, 0), (way + 2) % 4, to), "{way}");
    }
    let hit: Vec<(i32, i32)> =
        (-5..=5).flat_map(|x| (-5..=5).map(move |y| (x, y))).filter(|to| Shape::hits((0, 0), 0, *to)).collect();
    assert_eq!(hit.len(), 9);
    assert!(hit.iter().all(|(x, y)| x.abs() <= 1 && (-3..=-1).contains(y)));
}

#[test]
fn who_is_zapped_is_away_and_comes_back_in_the_yard() {
    let shape = Shape::new(2, 1);
    let mut draws = Draws::new(4, Stream::World, 0, 0);
    let mut field = Field::new(&shape, 2, &mut draws);
    (field.players[0].at, field.players[1].at) = ((5, 8), (5, 6));
    let rules = rules(&[0.0]);
    field.play(&shape, &rules, &[Deed::Zap, Deed::Go(0)], &mut draws);
    assert_eq!((field.players[1].away, field.players[1].at, field.players[0].cools), (4, (5, 6), 2));
    for left in [3, 2, 1, 0] {
        // It is not there: its cell is free, and what it does counts for nothing.
        field.play(&shape, &rules, &[Deed::Nothing, Deed::Go(0)], &mut draws);
        assert_eq!(field.players[1].away, left);
    }
    assert!(field.players[1].at.1 >= 7 && field.lost == 5, "{field:?}");
    // Two who want the same cell: one gets it.
    (field.players[0].at, field.players[1].at) = ((5, 8), (7, 8));
    field.play(&shape, &rules, &[Deed::Go(1), Deed::Go(3)], &mut draws);
    let taken = [field.players[0].at, field.players[1].at].iter().filter(|at| **at == (6, 8)).count();
    assert_eq!(taken, 1);
}

#[test]
fn equality_is_that_of_all_pairs() {
    for numbers in [vec![3, 3, 3], vec![0, 0, 6], vec![1, 5, 2, 9, 0], vec![0, 0]] {
        let n = numbers.len() as f64;
        let all: f64 = numbers.iter().map(|x| f64::from(*x)).sum();
        let pairs: f64 =
            numbers.iter().flat_map(|a| numbers.iter().map(move |b| (f64::from(*a) - f64::from(*b)).abs())).sum();
        let expected = if all == 0.0 { 1.0 } else { 1.0 - pairs / (2.0 * n * all) };
        assert!((equality(&numbers) - expected).abs() < 1e-12, "{numbers:?}");
    }
}

#[test]
fn greed_leaves_bare_patches_and_restraint_does_not() {
    let world = json!({"rounds": 400});
    let mean = |policy: Value, name: &str| metric(play(&game(2, 20, &world, &policy)).rounds.last().unwrap(), name);
    let kinds = [json!({}), json!({"memory": false}), json!({"appetite": "greedy"})];
    for policy in &kinds {
        let names = ["efficiency", "restraint", "sustainability", "equality", "apples"];
        println!("{policy}: {:?}", names.map(|name| (name, mean(policy.clone(), name))));
    }
    let of = |name: &str| kinds.clone().map(|policy| mean(policy, name));
    let (restraint, apples) = (of("restraint"), of("apples"));
    assert!(restraint[0] > restraint[2] && apples[0] > apples[2], "{restraint:?} {apples:?}");
    // Memory changes what they do, and hardly their restraint.
    assert!(mean(json!({}), "efficiency") != mean(json!({"memory": false}), "efficiency"));
    assert_eq!(mean(json!({}), "peace"), 1.0);
    assert!(mean(json!({"appetite": "greedy", "zap": 1.0}), "peace") < 1.0);
}

#[test]
fn fields_that_do_not_fit_are_refused() {
    let why = refused(&game(1, 28, &json!({"players": 28, "columns": 1, "rows": 1}), &json!({})));
    assert!(why.contains("28 players have no room in a yard of 28"), "{why}");
    let why = refused(&game(1, 5, &json!({"regrowth": [0.0, 2.0]}), &json!({})));
    assert!(why.contains("regrowth"), "{why}");
}

#[test]
fn the_words_say_all_that_the_table_shows() {
    let world = json!({"rounds": 120, "view": 5});
    let all = |world: &Value, policy: Value| {
        let played = play(&game(6, 10, world, &policy));
        played
            .rounds
            .iter()
            .map(|round| (metric(round, "efficiency"), metric(round, "apples"), metric(round, "zaps")))
            .collect::<Vec<_>>()
    };
    let by = |reads: &str| json!({"reads": reads, "zap": 0.5, "appetite": "greedy"});
    let numbers = all(&world, by("table"));
    assert_eq!(all(&world, by("words")), numbers);
    let mut blank = world;
    blank["words"] = json!(false);
    assert_ne!(all(&blank, by("words")), numbers);
    assert_eq!(all(&blank, by("table")), numbers);
}
