//! Tests of `epidemic` against one queue of all events, the final-size equation and the differential equations.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn epidemic(agents: u32, rounds: u32, topology: Value, world: Value, policy: Value) -> Value {
    let mut all = json!({"kind": "epidemic"});
    all.as_object_mut().unwrap().extend(world.as_object().unwrap().clone());
    json!({"seed": 9, "rounds": rounds, "agents": agents, "topology": topology, "world": all,
        "cohorts": [{"policy": policy}]})
}

fn nobody() -> Value {
    json!({"kind": "isolate"})
}

const NAMES: [&str; 5] = ["susceptible", "exposed", "infectious", "recovered", "new"];

/// Simulates the same epidemic with one queue for everybody, in order of time, without windows: (counts by health and new infections) by
/// round. Only the random numbers depend on rounds.
fn plain(
    hears: &[Vec<u32>],
    seed: u64,
    rounds: u32,
    [rate, latent, infectious, initial, step]: [f64; 5],
) -> Vec<[u32; 5]> {
    let n = hears.len();
    let mut health = vec![0usize; n];
    let mut times = vec![(0.0, 0.0); n];
    // Keys: the bits of a non-negative time sort like the time; then the order of entry.
    let mut queue: BTreeMap<(u64, u64), (u32, &str)> = BTreeMap::new();
    let mut entered = 0u64;
    let mut put = |queue: &mut BTreeMap<(u64, u64), (u32, &'static str)>, at: f64, who: u32, what: &'static str| {
        entered += 1;
        queue.insert((at.to_bits(), entered), (who, what));
    };
    for who in 0..n as u32 {
        let mut draws = Draws::new(seed, Stream::Seat, 0, who);
        if draws.chance(initial) {
            health[who as usize] = 1;
            let recovery = step + draws.exponential(1.0 / infectious);
            times[who as usize] = (step, recovery);
            put(&mut queue, 0.0, who, "plan");
            put(&mut queue, step, who, "onset");
            put(&mut queue, recovery, who, "recovery");
        }
    }
    let mut counts = Vec::new();
    let mut draws_of: BTreeMap<u32, Draws> = BTreeMap::new();
    for round in 0..rounds {
        draws_of.clear();
        let mut new = 0;
        while let Some(((at, _), _)) = queue.first_key_value() {
            let at = f64::from_bits(*at);
            if at >= f64::from(round + 1) * step {
                break;
            }
            let (_, (who, what)) = queue.pop_first().unwrap();
            let i = who as usize;
            let draws = draws_of.entry(who).or_insert_with(|| Draws::new(seed, Stream::World, round, who));
            match what {
                "contact" if health[i] == 0 => {
                    health[i] = 1;
                    new += 1;
                    let onset = at + step + if latent > step { draws.exponential(1.0 / (latent - step)) } else { 0.0 };
                    let recovery = onset + draws.exponential(1.0 / infectious);
                    times[i] = (onset, recovery);
                    put(&mut queue, onset - step, who, "plan");
                    put(&mut queue, onset, who, "onset");
                    put(&mut queue, recovery, who, "recovery");
                }
                "plan" => {
                    let (onset, recovery) = times[i];
                    let (from, until) = (f64::max(at + step, onset), f64::min(at + 2.0 * step, recovery));
                    let degree = hears[i].len();
                    if until > from && degree > 0 {
                        for _ in 0..draws.poisson(rate * degree as f64 * (until - from)) {
                            let other = hears[i][draws.below(degree as u64) as usize];
                            let when = draws.range(from, until);
                            put(&mut queue, when, other, "contact");
                        }
                    }
                    if recovery > at + 2.0 * step {
                        put(&mut queue, at + step, who, "plan");
                    }
                }
                "onset" => health[i] = 2,
                "recovery" => health[i] = 3,
                _ => {}
            }
        }
        let of = |which: usize| health.iter().filter(|h| **h == which).count() as u32;
        counts.push([of(0), of(1), of(2), of(3), new]);
        if of(1) + of(2) == 0 {
            break;
        }
    }
    counts
}

#[test]
fn agrees_with_one_queue_of_all_events() {
    for (values, shards, topology) in [
        ([0.1, 2.0, 4.0, 0.01, 0.5], 1, json!({"kind": "barabasi-albert", "links": 4})),
        ([0.1, 2.0, 4.0, 0.01, 0.5], 3, json!({"kind": "barabasi-albert", "links": 4})),
        // SIR: infectious one step after the infection.
        ([0.3, 0.25, 2.0, 0.002, 0.25], 2, json!({"kind": "watts-strogatz", "neighbours": 6, "rewire": 0.2})),
        ([0.05, 9.0, 1.0, 0.05, 3.0], 1, json!({"kind": "erdos-renyi", "mean_degree": 15})),
    ] {
        let [rate, latent, infectious, initial, step] = values;
        let world = json!({"rate": rate, "latent": latent, "infectious": infectious, "initial": initial, "step": step});
        // More than one block, so that several lanes plan for each other.
        let scenario = epidemic(9_000, 80, topology, world, nobody());
        let mut society = open(&scenario, &Inputs::default(), shards).unwrap();
        let hears: Vec<Vec<u32>> =
            (0..9_000).map(|i| society.shared_context().topology.neighbours(i).collect()).collect();
        let mut got = Vec::new();
        while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
            got.push(NAMES.map(|name| metric(&report, name) as u32));
        }
        let expected = plain(&hears, 9, 80, values);
        assert_eq!(got, expected);
        assert!(expected.last().unwrap()[3] > 1000, "it spreads: {:?}", expected.last());
    }
}

/// Share infected in the end: z = 1 - (1 - a) exp(-k T z), with T = beta / (beta + gamma) the probability that an infectious agent
/// infects a given neighbour (Newman 2002), k the mean degree of a random graph and a the share infected at the start.
#[test]
fn the_final_size_is_that_of_the_equation() {
    for (rate, degree) in [(0.05, 10.0), (0.02, 20.0), (0.1, 10.0)] {
        let (infectious, initial) = (5.0, 0.01);
        let world = json!({"rate": rate, "infectious": infectious, "initial": initial, "latent": 2.0, "step": 0.5});
        let topology = json!({"kind": "erdos-renyi", "mean_degree": degree});
        let played = play(&epidemic(20_000, 2_000, topology, world, nobody()));
        assert!(played.outcome.reason.is_some(), "it ends by itself");
        let got = metric(played.rounds.last().unwrap(), "recovered") / 20_000.0;
        let chance = rate / (rate + 1.0 / infectious);
        let mut expected = 1.0;
        for _ in 0..1_000 {
            expected = 1.0 - (1.0 - initial) * f64::exp(-degree * chance * expected);
        }
        // The spread between seeds at this size is below 0.01.
        assert!((got - expected).abs() < 0.02, "rate {rate}, degree {degree}: {got} and {expected}");
    }
}

/// Prevalence against the differential equations of a well-mixed population, in small steps:
/// S' = -b S I, and who is infected at t becomes infectious at t + step plus an exponential time.
#[test]
fn the_course_is_that_of_the_differential_equations() {
    let (degree, infectious, latent, step, initial) = (100.0, 5.0, 3.0, 0.5, 0.01);
    let rate = 2.5 / infectious / degree;
    let world = json!({"rate": rate, "infectious": infectious, "initial": initial, "latent": latent, "step": step});
    let topology = json!({"kind": "erdos-renyi", "mean_degree": degree});
    let played = play(&epidemic(40_000, 200, topology, world, nobody()));
    let dt = 0.005;
    let lag = (step / dt) as usize;
    let (mut s, mut e, mut i) = (1.0 - initial, 0.0, 0.0);
    let mut infections: Vec<f64> = Vec::new();
    let (mut worst, mut peak) = (0.0f64, 0.0f64);
    for (round, report) in played.rounds.iter().enumerate() {
        for _ in 0..lag {
            let n = infections.len();
            // Those infected from the start become infectious at `step`.
            let seeds = if n == lag { initial } else { 0.0 };
            // A neighbour is infected once: on ties the rate falls by the ties already used, here by the one that infected.
            let new = rate * (degree - 1.0) * s * i * dt;
            let late = if n >= lag { infections[n - lag] } else { 0.0 };
            let onset = e / (latent - step) * dt;
            s -= new;
            e += late - onset;
            i += seeds + onset - i / infectious * dt;
            infections.push(new);
        }
        let got = metric(report, "infectious") / 40_000.0;
        worst = worst.max((got - i).abs());
        peak = peak.max(i);
        if round == 0 {
            assert_eq!(got, 0.0, "nobody is infectious before the first window has passed");
        }
    }
    assert!(peak > 0.1 && worst < 0.08 * peak, "off by {worst}, peak {peak}");
}

#[test]
fn isolation_makes_it_smaller() {
    let world = json!({"rate": 0.06, "initial": 0.01, "isolation": 1.0, "step": 0.5});
    let size = |policy: Value| {
        let topology = json!({"kind": "erdos-renyi", "mean_degree": 10});
        let played = play(&epidemic(5_000, 2_000, topology, world.clone(), policy));
        metric(played.rounds.last().unwrap(), "recovered") / 5_000.0
    };
    let sizes = [0.0, 0.5, 1.0].map(|share| size(json!({"kind": "isolate", "compliance": share})));
    let alarmed = size(json!({"kind": "isolate", "compliance": 1.0, "alarm": 0.02}));
    assert!(sizes[0] > sizes[1] + 0.1 && sizes[1] > sizes[2] + 0.1 && alarmed <= sizes[2], "{sizes:?}, {alarmed}");
}

/// Without isolation, unemployment is constant at s / (s + f): as many jobs are lost as found.
#[test]
fn unemployment_is_that_of_the_flows() {
    for (separation, finding) in [(0.02, 0.1), (0.05, 0.05)] {
        let work = json!({"separation": separation, "finding": finding, "layoff": 0.3, "participation": 0.8});
        let world = json!({"rate": 0.1, "initial": 0.01, "infectious": 20.0, "employment": work});
        let played = play(&epidemic(20_000, 60, json!({"kind": "erdos-renyi", "mean_degree": 10}), world, nobody()));
        for report in &played.rounds {
            let (got, expected) = (metric(report, "unemployment"), separation / (separation + finding));
            assert!((got - expected).abs() < 0.015, "{got} and {expected}");
        }
    }
}

/// If everybody stays at home from the start, jobs that cannot be done there are only lost: u(t) = 1 - (1 - u(0)) exp(-(s + l) t). The others
/// are lost and found as ever.
#[test]
fn staying_at_home_costs_jobs_that_cannot_be_done_there() {
    let (separation, layoff, finding) = (0.01, 0.04, 0.05);
    let at_first = separation / (separation + finding);
    for remote in [0.0, 0.5, 1.0] {
        let work = json!({"separation": separation, "layoff": layoff, "finding": finding, "remote": remote});
        let world = json!({"rate": 0.0, "initial": 0.01, "infectious": 1e6, "employment": work});
        let policy = json!({"kind": "isolate", "compliance": 1.0, "alarm": 0.0});
        let played = play(&epidemic(40_000, 40, json!({"kind": "erdos-renyi", "mean_degree": 4}), world, policy));
        // Somebody is infectious from the end of round 0 on, and people learn of it at their next event; so the clock of jobs starts late.
        let got = metric(played.rounds.last().unwrap(), "unemployment");
        let lost = 1.0 - (1.0 - at_first) * f64::exp(-(separation + layoff) * 40.0);
        let expected = remote * at_first + (1.0 - remote) * lost;
        assert!((got - expected).abs() < 0.02, "remote {remote}: {got} and {expected}");
    }
}

#[test]
fn refusals_say_what_to_do() {
    let wrong = |world: Value| refused(&epidemic(100, 5, json!({"kind": "complete"}), world, nobody()));
    assert!(wrong(json!({"rate": -1.0})).contains("be 0 or more"));
    assert!(wrong(json!({"step": 0.0})).contains("greater than 0"));
    assert!(wrong(json!({"latent": 0.5})).contains("at least `step`"));
    assert!(wrong(json!({"initial": 2.0})).contains("0..=1"));
    assert!(wrong(json!({"employment": {"remote": 2.0}})).contains("employment.remote"));
    assert!(wrong(json!({"employment": {"separation": 0, "layoff": 0, "finding": 0}})).contains("greater than 0"));
    let mut scenario = epidemic(100, 5, json!({"kind": "complete"}), json!({}), nobody());
    scenario["activation"] = json!("simultaneous");
    assert!(refused(&scenario).contains("runs in event time"));
    scenario.as_object_mut().unwrap().remove("activation");
    scenario["changes"] = json!([{"at": 2, "set": {"world.step": 0.5}}]);
    assert!(refused(&scenario).contains("cannot change"));
}
