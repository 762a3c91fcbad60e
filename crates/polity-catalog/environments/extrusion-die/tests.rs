//! The flow against exact solutions and plain sums, the gap against Bernstein's sum, and rewards against spreads.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::flow::{ACROSS, ALONG, outflow, pressures};
use super::{Die, ExtrusionDie, FARTHEST, gap};
use crate::testing::{metric, play, refused, registry};
use polity_kernel::ask::Value;
use polity_kernel::environment::{Environment as _, Move};
use polity_kernel::tree::Node;
use serde_json::{Value as Json, json};

/// A rough die with its inlet off the middle.
const POINTS: [f64; 5] = [0.5, -0.3, -0.7, 0.2, 0.6];
const INLET: [f64; 2] = [0.23, 0.47];

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found}, not {expected}");
}

#[test]
fn flow_is_exact_where_it_is_known() {
    let whole = [0.0, 1.0];
    outflow(|_, _| 1.0, whole).into_iter().for_each(|speed| near(speed, 1.0, 1e-12));
    // Of slots side by side each has its own flow: the speed goes with the square of the height.
    let slots = |across: f64| 1.0 + 0.5 * (5.0 * across).sin();
    for (row, speed) in outflow(|_, across| slots(across), whole).into_iter().enumerate() {
        near(speed, slots((row as f64 + 0.5) / ACROSS as f64).powi(2), 1e-12);
    }
    // The melt is pressed through a wedge: 1 / ∫ h⁻³ flows, at the speed 1 / h of this. Cells make an error.
    let wedge = |along: f64| 1.0 + 0.3 * along;
    let resistance = (1.0 - 1.3_f64.powi(-2)) / (2.0 * 0.3);
    outflow(|along, _| wedge(along), whole).into_iter().for_each(|speed| near(speed * 1.3 * resistance, 1.0, 0.003));
}

#[test]
fn no_mass_is_lost() {
    let p = pressures(&|along, across| gap(&POINTS, along, across), INLET);
    let at = |along: usize, row: usize| p[row * ALONG + along];
    let cubed = |along: f64, across: f64| gap(&POINTS, along / ALONG as f64, across / ACROSS as f64).powi(3);
    let (mut inflow, mut leaves) = (0.0, 0.0);
    for row in 0..ACROSS {
        let y = row as f64 + 0.5;
        let open = (INLET[1].min((row + 1) as f64 / 20.0) - INLET[0].max(row as f64 / 20.0)).max(0.0) * 20.0;
        for along in 0..ALONG {
            let (x, here) = (along as f64 + 0.5, at(along, row));
            let mut out = 0.0;
            match along {
                0 => {
                    let flow = 2.0 * cubed(0.0, y) * open * (1.0 - here);
                    inflow += flow;
                    out -= flow;
                }
                _ => out += cubed(x - 0.5, y) * (here - at(along - 1, row)),
            }
            match along + 1 {
                ALONG => {
                    let flow = 2.0 * cubed(ALONG as f64, y) * here;
                    leaves += flow;
                    out += flow;
                }
                next => out += cubed(x + 0.5, y) * (here - at(next, row)),
            }
            if row > 0 {
                out += cubed(x, y - 0.5) * (here - at(along, row - 1));
            }
            if row + 1 < ACROSS {
                out += cubed(x, y + 0.5) * (here - at(along, row + 1));
            }
            near(out, 0.0, 1e-12);
        }
    }
    assert!(inflow > 0.1, "{inflow}");
    near(inflow, leaves, 1e-12);
    // The outlet has the height 1, so what leaves is the sum of its speeds.
    let speeds = outflow(|along, across| gap(&POINTS, along, across), INLET);
    near(speeds.iter().sum::<f64>() / ALONG as f64, leaves, 1e-12);
}

#[test]
fn a_mirrored_die_has_the_mirrored_flow() {
    let speeds = outflow(|along, across| gap(&POINTS, along, across), INLET);
    let mirrored: Vec<f64> = POINTS.iter().rev().copied().collect();
    let other = outflow(|along, across| gap(&mirrored, along, across), [1.0 - INLET[1], 1.0 - INLET[0]]);
    speeds.iter().zip(other.iter().rev()).for_each(|(one, other)| near(*one, *other, 1e-12));
    assert!((speeds[0] - speeds[19]).abs() > 0.1, "{speeds:?}");
}

/// Sederberg and Parry 1986: a place is moved by the sum over points of B(along) B(across) times how far the point is moved.
#[test]
fn the_gap_is_the_bernstein_sum_over_the_lattice() {
    let choose = |n: usize, k: usize| (0..k).fold(1.0, |product, i| product * (n - i) as f64 / (i + 1) as f64);
    let basis = |n: usize, k: usize, t: f64| choose(n, k) * t.powi(k as i32) * (1.0 - t).powi((n - k) as i32);
    for (along, across) in [(0.0, 0.3), (0.25, 0.0), (0.5, 0.5), (0.7, 0.9), (0.9, 1.0), (1.0, 0.4)] {
        let lattice = [[0.0; 5], POINTS, [0.0; 5]];
        let mut height = 1.0;
        for (i, row) in lattice.iter().enumerate() {
            for (j, point) in row.iter().enumerate() {
                height += basis(2, i, along) * basis(4, j, across) * point;
            }
        }
        near(gap(&POINTS, along, across), height, 1e-12);
    }
    // All points as far down as they go leave a gap.
    near(gap(&[-FARTHEST; 5], 0.5, 0.3), 0.6, 1e-12);
}

#[test]
fn rewards_add_up_to_the_fall_of_the_spread() {
    for moves in ["numbers", "choices"] {
        let world = json!({"kind": "extrusion-die", "points": 4, "sweeps": 2, "moves": moves, "reach": 0.3});
        let environment = registry().make_env(&Node::from_json(&world)).unwrap_or_else(|error| panic!("{error}"));
        let mut episode = environment.begin(&Default::default(), 5, 0);
        let die = |state: Json| -> Die { serde_json::from_value(state).unwrap() };
        let spread = |die: &Die| {
            let n = die.speeds.len() as f64;
            let mean = die.speeds.iter().sum::<f64>() / n;
            (die.speeds.iter().map(|speed| (speed - mean).powi(2)).sum::<f64>() / n).sqrt() / mean
        };
        let first = die(episode.state().unwrap());
        let mut expected = first.points.clone();
        for step in 0..8 {
            let before = die(episode.state().unwrap());
            let see = |name: &str| {
                let slot = environment.interface().number("extrusion-die", name).unwrap();
                episode.observe(0, |seen| seen.number(slot)).unwrap()
            };
            for (k, expected) in expected.iter().enumerate() {
                near(see(&format!("position-{}", k + 1)), *expected, 1e-12);
                near(see(&format!("turn-{}", k + 1)), f64::from(u8::from(step % 4 == k)), 0.0);
            }
            let mean = before.speeds.iter().sum::<f64>() / 20.0;
            for k in 0..10 {
                let pair = (before.speeds[2 * k] + before.speeds[2 * k + 1]) / 2.0;
                near(see(&format!("speed-{}", k + 1)), (pair - mean) / mean, 1e-12);
            }
            near(see("left"), 1.0 - step as f64 / 8.0, 1e-12);
            let by = if step < 5 { 0.3 } else { -0.3 };
            let argument = match moves {
                "numbers" => Value::Number(by),
                _ => Value::Choice(if step < 5 { 2 } else { 0 }),
            };
            let result = episode.step(&[Move { seat: 0, action: 0, argument }]).unwrap();
            expected[step % 4] = (expected[step % 4] + by).clamp(-FARTHEST, FARTHEST);
            let after = die(episode.state().unwrap());
            near(result.rewards[0], spread(&before) - spread(&after), 1e-12);
            assert_eq!(result.done, step == 7);
        }
        let last = die(episode.state().unwrap());
        near(episode.total_reward(0), spread(&first) - spread(&last), 1e-12);
        assert!((spread(&last) - spread(&first)).abs() > 0.01);
    }
}

fn scenario(world: &Json, policy: &Json, rounds: u32) -> Json {
    json!({"seed": 1, "rounds": rounds, "agents": 32, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}],
        "metrics": [{"kind": "mean", "of": "spread"}]})
}

#[test]
fn points_moved_against_the_speeds_beside_them_even_out_the_flow() {
    let beside =
        "turn_1 * speed_1 + turn_2 * speed_3 + turn_3 * (speed_5 + speed_6) / 2 + turn_4 * speed_8 + turn_5 * speed_10";
    let world = json!({"kind": "extrusion-die"});
    let spread = |times: f64| {
        let value = format!("clamp({times} * ({beside}), -0.4, 0.4)");
        let policy = json!({"kind": "rule", "actions": [{"act": "move", "value": value}]});
        let round = play(&scenario(&world, &policy, 10)).rounds.pop().unwrap();
        metric(&round, "spread.mean")
    };
    let (untouched, even, uneven) = (spread(0.0), spread(-2.0), spread(2.0));
    assert!(even < 0.5 * untouched && uneven > untouched, "{untouched} {even} {uneven}");
}

#[test]
fn bad_states_and_keys_are_refused() {
    let policy = json!({"kind": "noise"});
    for (key, value) in [
        ("points", json!(1)),
        ("sweeps", json!(0)),
        ("reach", json!(0)),
        ("rough", json!(0.9)),
        ("inlet", json!(0)),
        ("offset", json!(0.41)),
    ] {
        let mut world = json!({"kind": "extrusion-die"});
        world[key] = value;
        let why = refused(&scenario(&world, &policy, 1));
        assert!(why.contains(key), "{why}");
    }
    let environment = registry().make_env(&Node::from_json(&json!({"kind": "extrusion-die", "points": 2}))).unwrap();
    let mut episode = environment.begin(&Default::default(), 1, 0);
    let state = episode.state().unwrap();
    let mut fits = |key: &str, value: Json| {
        let mut state = state.clone();
        state[key] = value;
        episode.begin_from(&state).is_ok()
    };
    assert!(fits("steps", json!(3)));
    let speeds = state["speeds"].as_array().unwrap();
    for (key, value) in [
        ("steps", json!(4)),
        ("points", json!([0.1])),
        ("points", json!([0.1, 0.9])),
        ("inlet", json!(0.75)),
        ("speeds", json!([])),
        ("speeds", json!(speeds[1..])),
        ("speeds", json!(vec![1.0; 20])),
        ("points", json!([0.1, 0.1])),
    ] {
        assert!(!fits(key, value.clone()), "{key}: {value}");
    }
    assert_eq!(ExtrusionDie::NAME, "extrusion-die");
}
