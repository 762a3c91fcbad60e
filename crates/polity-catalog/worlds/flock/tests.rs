//! Tests of `flock` and `boid` against a plain loop over all pairs.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing;

use crate::testing::{open, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use polity_kernel::society::Society;
use serde_json::{Value, json};

fn birds(agents: u32, rounds: u32, more: Value) -> Value {
    let mut world = json!({"kind": "flock"});
    world.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"seed": 4, "rounds": rounds, "agents": agents, "world": world, "cohorts": [{"policy": {"kind": "boid"}}]})
}

#[derive(Clone, Copy, Debug)]
struct Bird {
    place: [f64; 2],
    heading: [f64; 2],
}

fn all(society: &Society) -> Vec<Bird> {
    let columns: Vec<Vec<f64>> = (0..4).map(|i| society.column(i)).collect();
    let bird = |i: usize| Bird { place: [columns[0][i], columns[1][i]], heading: [columns[2][i], columns[3][i]] };
    (0..columns[0].len()).map(bird).collect()
}

/// Returns the vector between two birds on a torus, by trying its nine copies.
fn way(from: Bird, to: Bird, side: f64) -> [f64; 2] {
    let axis = |i: usize| {
        let ways = [-side, 0.0, side].map(|shift| to.place[i] + shift - from.place[i]);
        ways.into_iter().min_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap()
    };
    [axis(0), axis(1)]
}

/// Headings after a round, and the number of neighbours before it.
fn plain(birds: &[Bird], side: f64, vision: f64, separation: f64) -> (Vec<[f64; 2]>, Vec<f64>) {
    let mut headings = Vec::new();
    let mut numbers = Vec::new();
    for (i, own) in birds.iter().enumerate() {
        let (mut n, mut sums) = (0.0, [[0.0; 2]; 3]);
        for (j, other) in birds.iter().enumerate() {
            let [dx, dy] = way(*own, *other, side);
            let distance = (dx * dx + dy * dy).sqrt();
            if i == j || distance > vision {
                continue;
            }
            n += 1.0;
            for (axis, d) in [dx, dy].into_iter().enumerate() {
                sums[0][axis] += d;
                sums[1][axis] += other.heading[axis];
                sums[2][axis] -= if distance < separation { d } else { 0.0 };
            }
        }
        let by = f64::max(n, 1.0);
        let wanted = [0, 1].map(|a| own.heading[a] + (0.03 * sums[0][a] + 0.05 * sums[1][a] + 0.015 * sums[2][a]) / by);
        let length = wanted[0].hypot(wanted[1]);
        headings.push(wanted.map(|x| x / length));
        numbers.push(n);
    }
    (headings, numbers)
}

#[test]
fn agrees_with_a_plain_loop_over_all_pairs() {
    // Tori from two cells a side to many.
    for (agents, vision, density) in [(40u32, 9.0, 0.1), (300, 15.0, 0.0178), (700, 3.0, 0.2), (500, 4.0, 0.05)] {
        for shards in [1, 3] {
            let side = (f64::from(agents) / density).sqrt();
            let scenario = birds(agents, 12, json!({"vision": vision, "density": density, "separation": vision / 3.0}));
            let mut society = open(&scenario, &Inputs::default(), shards).unwrap();
            let mut seen = 0.0;
            loop {
                let before = all(&society);
                let (headings, numbers) = plain(&before, side, vision, vision / 3.0);
                assert_eq!(society.column(4), numbers, "the sets of neighbours are exact");
                seen += numbers.iter().sum::<f64>();
                if !matches!(society.poll(Vec::new()).unwrap().then, Then::Round(_)) {
                    break;
                }
                for (i, bird) in all(&society).into_iter().enumerate() {
                    let near = |axis: usize| {
                        let place = (before[i].place[axis] + bird.heading[axis]).rem_euclid(side);
                        let off = (bird.place[axis] - place).abs();
                        (bird.heading[axis] - headings[i][axis]).abs() < 1e-9
                            && (off < 1e-9 || (side - off).abs() < 1e-9)
                    };
                    assert!(near(0) && near(1), "bird {i}");
                }
            }
            assert!(seen > 1000.0, "there was something to see");
        }
    }
}

#[test]
fn a_flock_comes_to_order() {
    let mut scenario = birds(100, 300, json!({}));
    scenario["cohorts"][0]["policy"] = json!({"kind": "boid", "cohere": 0.01, "align": 0.5});
    let mut society = open(&scenario, &Inputs::default(), 1).unwrap();
    let mut order = Vec::new();
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        order.push(testing::metric(&report, "order"));
    }
    assert!(order[0] < 0.3 && order[order.len() - 1] > 0.8, "{} to {}", order[0], order[order.len() - 1]);
}

#[test]
fn refusals_say_what_to_do() {
    assert!(refused(&birds(400, 1, json!({"vision": -1.0}))).contains("greater than 0"));
    assert!(refused(&birds(4, 1, json!({}))).contains("a bird would see another twice"));
    assert!(refused(&birds(400, 1, json!({"separation": 16.0}))).contains("birds see no farther"));
}
