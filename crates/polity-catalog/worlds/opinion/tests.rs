//! Tests of the opinion world with its policies: against second plain implementations, closed forms and known results.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{Played, acts, mean, metric, open, people, play, play_with, ties};
use polity_kernel::rng::{Stream, philox};
use polity_kernel::scenario::Inputs;
use polity_kernel::topology::Matching;
use serde_json::{Value, json};
use std::cell::Cell;

fn society(agents: u32, rounds: u32, seed: u64, topology: Value, policy: Value) -> Value {
    json!({
        "seed": seed, "rounds": rounds, "agents": agents, "topology": topology, "world": {"kind": "opinion"},
        "cohorts": [{"policy": policy}],
    })
}

/// Replays a society with a plain rule, (round, opinions before, who hears whom) to opinions after, and compares every opinion of every
/// round. Round 0 changes nothing: nobody has heard anything.
fn compare(played: &Played, rule: impl Fn(u32, &[f64], &[Vec<usize>]) -> Vec<f64>) {
    let n = played.start.len();
    let topology = &played.society.shared_context().topology;
    let hears: Vec<Vec<usize>> = (0..n).map(|i| topology.neighbours(i as u32).map(|j| j as usize).collect()).collect();
    let mut plain = played.start.clone();
    for (round, report) in played.rounds.iter().enumerate() {
        let before = plain.clone();
        if round > 0 {
            plain = rule(round as u32, &plain, &hears);
        }
        let got = acts(report);
        assert_eq!(got.len(), n);
        for (i, (got, plain)) in got.iter().zip(&plain).enumerate() {
            assert!((got - plain).abs() < 1e-9, "round {round}, agent {i}: {got}, and plainly {plain}");
        }
        let largest = plain.iter().zip(&before).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!((metric(report, "largest-change") - largest).abs() < 1e-9);
    }
    assert_eq!(played.society.column(0), acts(played.rounds.last().unwrap()));
    assert!(plain.iter().zip(&played.start).any(|(a, b)| a != b), "nothing has moved: the comparison says nothing");
}

/// The stationary distribution of a row-stochastic matrix by plain power iteration from the left.
fn left_eigenvector(w: &[Vec<f64>]) -> Vec<f64> {
    let n = w.len();
    let mut pi = vec![1.0 / n as f64; n];
    for _ in 0..20_000 {
        pi = (0..n).map(|j| (0..n).map(|i| pi[i] * w[i][j]).sum()).collect();
    }
    pi
}

/// One-way ties, follower first: agent 0 is heard by everybody indirectly, but by few directly.
const ONE_WAY: [(u32, u32); 10] = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 0), (3, 0), (4, 1), (2, 5)];

#[test]
fn degroot_reaches_the_left_eigenvectors_mean_also_when_ties_go_one_way() {
    let topology = json!({"kind": "file", "file": "ties", "directed": true});
    let scenario = society(6, 400, 9, topology, json!({"kind": "degroot", "self_weight": 0.3}));
    let played = play_with(&scenario, &ties(&ONE_WAY), 1);
    let mut w = vec![vec![0.0; 6]; 6];
    for (i, row) in w.iter_mut().enumerate() {
        let heard: Vec<usize> = ONE_WAY.iter().filter(|(a, _)| *a as usize == i).map(|(_, b)| *b as usize).collect();
        row[i] = 0.3;
        heard.iter().for_each(|j| row[*j] = 0.7 / heard.len() as f64);
    }
    let pi = left_eigenvector(&w);
    let limit: f64 = pi.iter().zip(&played.start).map(|(p, x)| p * x).sum();
    // Otherwise a rule that hears in the wrong direction, or everybody alike, could pass.
    assert!((limit - mean(&played.start)).abs() > 0.01);
    for opinion in played.society.column(0) {
        assert!((opinion - limit).abs() < 1e-10, "{opinion} is not {limit}");
    }
    compare(&played, |_, x, hears| {
        let others = |i: usize| hears[i].iter().map(|j| x[*j]).sum::<f64>() / hears[i].len() as f64;
        (0..6).map(|i| 0.3 * x[i] + 0.7 * others(i)).collect()
    });
}

#[test]
fn degroot_on_two_way_ties_weights_agents_by_their_degree() {
    let scenario = society(60, 600, 4, json!({"kind": "barabasi-albert", "links": 2}), json!({"kind": "degroot"}));
    let played = play(&scenario);
    let topology = &played.society.shared_context().topology;
    let degrees: Vec<f64> = (0..60).map(|i| f64::from(topology.degree(i))).collect();
    let limit = degrees.iter().zip(&played.start).map(|(d, x)| d * x).sum::<f64>() / degrees.iter().sum::<f64>();
    assert!((limit - mean(&played.start)).abs() > 1e-3);
    assert!(played.society.column(0).iter().all(|x| (x - limit).abs() < 1e-9));
}

#[test]
fn a_run_stops_when_opinions_stand_still() {
    let mut scenario = society(50, 10_000, 1, json!({"kind": "ring", "neighbours": 6}), json!({"kind": "degroot"}));
    scenario["world"]["stop_below"] = json!(1e-6);
    let played = play(&scenario);
    let (last, before) = (&played.rounds[played.rounds.len() - 1], &played.rounds[played.rounds.len() - 2]);
    assert!(played.outcome.rounds > 10 && played.outcome.rounds < 10_000);
    assert!(played.outcome.reason.as_ref().is_some_and(|reason| reason.contains("no opinion changed by 0.000001")));
    assert!(metric(last, "largest-change") < 1e-6 && metric(before, "largest-change") >= 1e-6);
}

#[test]
fn agents_who_hear_nobody_keep_their_opinion() {
    for policy in [
        json!({"kind": "degroot"}),
        json!({"kind": "voter"}),
        json!({"kind": "hegselmann-krause", "epsilon": 1}),
        json!({"kind": "deffuant-weisbuch", "epsilon": 1}),
    ] {
        let played = play(&society(30, 5, 2, json!({"kind": "none"}), policy));
        assert_eq!(played.start, played.society.column(0));
    }
}

#[test]
fn hegselmann_krause_agrees_with_a_plain_loop() {
    for (topology, epsilon) in
        [(json!({"kind": "complete"}), 0.15), (json!({"kind": "erdos-renyi", "mean_degree": 9}), 0.3)]
    {
        let policy = json!({"kind": "hegselmann-krause", "epsilon": epsilon});
        let played = play(&society(120, 12, 3, topology, policy));
        compare(&played, |_, x, hears| {
            (0..x.len())
                .map(|i| {
                    let mut near: Vec<f64> =
                        hears[i].iter().map(|j| x[*j]).filter(|y| (y - x[i]).abs() <= epsilon).collect();
                    near.push(x[i]);
                    mean(&near)
                })
                .collect()
        });
    }
}

/// Moves each pair towards each other.
fn approach(x: &[f64], pairs: &[(usize, usize)], epsilon: f64, mu: f64) -> Vec<f64> {
    let mut next = x.to_vec();
    for (i, j) in pairs {
        let distance = x[*j] - x[*i];
        if distance.abs() <= epsilon {
            next[*i] = x[*i] + mu * distance;
            next[*j] = x[*j] - mu * distance;
        }
    }
    next
}

#[test]
fn deffuant_weisbuch_agrees_with_a_plain_loop_when_everybody_hears_everybody() {
    // An odd number: one agent stays out.
    let policy = json!({"kind": "deffuant-weisbuch", "epsilon": 0.25, "mu": 0.3});
    let played = play(&society(101, 40, 77, json!({"kind": "complete"}), policy));
    compare(&played, |round, x, _| {
        let matching = Matching::new(101, 77, round - 1);
        let pairs: Vec<(usize, usize)> =
            (0..101).filter_map(|i| matching.partner(i).filter(|j| i < *j).map(|j| (i as usize, j as usize))).collect();
        assert_eq!(pairs.len(), 50);
        approach(x, &pairs, 0.25, 0.3)
    });
}

#[test]
fn deffuant_weisbuch_agrees_with_a_plain_loop_on_a_graph() {
    let policy = json!({"kind": "deffuant-weisbuch", "epsilon": 0.4});
    let seed = 1 << 40 | 5;
    let played = play(&society(200, 30, seed, json!({"kind": "barabasi-albert", "links": 3}), policy));
    let met = Cell::new(0);
    compare(&played, |round, x, hears| {
        let priority = |i: usize, j: usize| {
            let tie = (i.max(j) as u64) << 32 | i.min(j) as u64;
            philox([tie, (Stream::Matching as u64) << 32 | u64::from(round - 1)], seed)[0]
        };
        // A tie is a pair when it comes before every other tie of either end.
        let mut pairs = Vec::new();
        for i in 0..x.len() {
            for &j in hears[i].iter().filter(|j| i < **j) {
                let this = priority(i, j);
                let first = |end: usize, not: usize| hears[end].iter().all(|k| *k == not || priority(end, *k) > this);
                if first(i, j) && first(j, i) {
                    pairs.push((i, j));
                }
            }
        }
        met.set(met.get() + pairs.len());
        approach(x, &pairs, 0.4, 0.5)
    });
    // A matching that pairs almost nobody would be poor: on average a quarter to half of the agents meet.
    let share = 2.0 * met.get() as f64 / (200.0 * 29.0);
    assert!((0.25..0.6).contains(&share), "{share}");
}

#[test]
fn deffuant_weisbuch_keeps_the_mean_and_never_spreads() {
    for topology in [
        json!({"kind": "complete"}),
        json!({"kind": "barabasi-albert", "links": 4}),
        json!({"kind": "watts-strogatz", "neighbours": 6, "rewire": 0.1}),
    ] {
        let policy = json!({"kind": "deffuant-weisbuch", "epsilon": 0.3});
        let mut scenario = society(1000, 60, 8, topology, policy);
        scenario["metrics"] = json!([{"kind": "mean", "of": "opinion"}, {"kind": "variance", "of": "opinion"}]);
        let played = play(&scenario);
        let mut spread = f64::INFINITY;
        for round in &played.rounds {
            assert!((metric(round, "opinion.mean") - mean(&played.start)).abs() < 1e-14);
            let variance = metric(round, "opinion.variance");
            assert!(variance <= spread + 1e-15);
            spread = variance;
        }
        assert!(spread < 0.06, "the variance began at 1/12: {spread}");
    }
}

#[test]
fn deffuant_weisbuch_needs_ties_that_go_both_ways() {
    let policy = json!({"kind": "deffuant-weisbuch", "epsilon": 1});
    let topology = json!({"kind": "file", "file": "ties", "directed": true});
    let one_way: Vec<(u32, u32)> = (0..20).map(|i| (i, (i + 1) % 20)).collect();
    let played = play_with(&society(20, 20, 1, topology.clone(), policy.clone()), &ties(&one_way), 1);
    assert_eq!(played.start, played.society.column(0));
    let both: Vec<(u32, u32)> = one_way.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
    let played = play_with(&society(20, 20, 1, topology, policy), &ties(&both), 1);
    assert_ne!(played.start, played.society.column(0));
}

/// Returns the numbers of groups of at least 2% of the agents at the end, for several seeds.
fn groups(seeds: u64, agents: u32, rounds: u32, policy: &Value) -> Vec<f64> {
    (0..seeds)
        .map(|seed| {
            let mut scenario = society(agents, rounds, seed, json!({"kind": "complete"}), policy.clone());
            scenario["metrics"] = json!([{"kind": "clusters", "of": "opinion", "share": 0.02, "every": 1000}]);
            metric(play(&scenario).rounds.last().unwrap(), "opinion.clusters")
        })
        .collect()
}

#[test]
fn pairs_with_bounded_confidence_end_in_about_one_over_two_epsilon_groups() {
    for epsilon in [0.5, 0.25, 0.1, 0.05] {
        let counts = groups(16, 1000, 120, &json!({"kind": "deffuant-weisbuch", "epsilon": epsilon}));
        let expected = 0.5 / epsilon;
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        println!("epsilon {epsilon}: {mean} groups on average, 1 / (2 epsilon) = {expected}: {counts:?}");
        assert!((mean / expected - 1.0).abs() <= 0.2, "epsilon {epsilon}: {mean} groups on average: {counts:?}");
    }
}

/// Known to give slightly more than 1 / (2 epsilon) groups: one group from about epsilon = 0.2 on, and up to 2 less than 5 at 0.1.
#[test]
fn bounded_confidence_all_at_once_ends_in_somewhat_fewer_groups() {
    for (epsilon, wanted) in [(0.3, 1.0..=1.0), (0.1, 3.0..=5.0)] {
        let counts = groups(4, 120, 12, &json!({"kind": "hegselmann-krause", "epsilon": epsilon}));
        assert!(counts.iter().all(|n| wanted.contains(n)), "epsilon {epsilon}: {counts:?}");
    }
}

/// Ten agents, half of them at each end of the scale.
fn split_society(rounds: u32, seed: u64) -> Played {
    let mut scenario = society(10, rounds, seed, json!({"kind": "complete"}), json!({"kind": "voter"}));
    scenario["population"] = json!({"file": "people"});
    scenario["world"]["initial"] = json!({"column": "side"});
    scenario["metrics"] = json!([{"kind": "agreement", "of": "opinion"}]);
    play_with(&scenario, &people("side", (0..10).map(|i| f64::from(i % 2)).collect()), 1)
}

#[test]
fn voters_reach_consensus_and_their_mean_is_a_martingale() {
    let seeds = 400u32;
    let (mut early, mut late) = (0.0, 0.0);
    for seed in 0..seeds {
        let played = split_society(100, u64::from(seed));
        assert_eq!(played.start, [0.0, 1.0].repeat(5));
        early += mean(&acts(&played.rounds[3]));
        let end = played.society.column(0);
        assert!(end.iter().all(|x| *x == end[0]) && (end[0] == 0.0 || end[0] == 1.0), "seed {seed}: {end:?}");
        assert_eq!(metric(played.rounds.last().unwrap(), "opinion.agreement"), 1.0);
        assert_eq!(metric(&played.rounds[0], "opinion.agreement"), 0.5);
        late += end[0];
    }
    // In the end a coin of value 0 or 1: standard error 0.5 / 20. Four of them.
    let [early, late] = [early, late].map(|sum| sum / f64::from(seeds));
    assert!((late - 0.5).abs() < 0.1, "{late}");
    assert!((early - 0.5).abs() < 0.1, "{early}");
}

#[test]
fn voters_pick_evenly_among_those_they_hear() {
    // Agent 0 hears 1, 2, 3, who hear nobody and keep their opinions.
    let mut scenario =
        society(4, 3001, 6, json!({"kind": "file", "file": "ties", "directed": true}), json!({"kind": "voter"}));
    scenario["population"] = json!({"file": "people"});
    scenario["world"]["initial"] = json!({"column": "side"});
    let mut inputs = people("side", vec![0.9, 0.1, 0.2, 0.3]);
    inputs.edges = ties(&[(0, 1), (0, 2), (0, 3)]).edges;
    let played = play_with(&scenario, &inputs, 1);
    let taken: Vec<f64> = played.rounds[1..].iter().map(|round| acts(round)[0]).collect();
    for source in [0.1, 0.2, 0.3] {
        // 1,000 expected, standard deviation 26.
        let count = taken.iter().filter(|x| **x == source).count();
        assert!((870..1130).contains(&count), "{count} of 3000 took {source}");
    }
    scenario["cohorts"][0]["policy"]["rate"] = json!(0.0);
    assert_eq!(play_with(&scenario, &inputs, 1).society.column(0), [0.9, 0.1, 0.2, 0.3]);
}

#[test]
fn first_opinions_come_from_the_column_the_value_or_the_scale() {
    let start = |world: Value, inputs: &Inputs| {
        let mut scenario = json!({
            "rounds": 1, "agents": 5000, "world": world, "cohorts": [{"policy": {"kind": "voter"}}],
            "population": {"file": "people"},
        });
        scenario["world"]["kind"] = json!("opinion");
        open(&scenario, inputs, 1).unwrap().column(0)
    };
    let column: Vec<f64> = (0..5000).map(|i| f64::from(1 + i % 7)).collect();
    let inputs = people("selfLR", column.clone());
    let scale = |initial: Value, jitter: f64| json!({"low": 1, "high": 7, "initial": initial, "jitter": jitter});
    assert_eq!(start(scale(json!({"column": "selfLR"}), 0.0), &inputs), column);
    assert!(start(scale(json!({"value": 2.5}), 0.0), &inputs).iter().all(|x| *x == 2.5));
    for initial in [json!("uniform"), json!({"uniform": null})] {
        let uniform = start(scale(initial, 0.0), &inputs);
        assert!(uniform.iter().all(|x| (1.0..=7.0).contains(x)));
        // The standard error is 6 / sqrt(12 * 5000) = 0.0245.
        assert!((mean(&uniform) - 4.0).abs() < 0.12, "{}", mean(&uniform));
    }
    // Jitter spreads to both sides and, at the ends, only inwards and evenly.
    let jittered = start(scale(json!({"column": "selfLR"}), 0.5), &inputs);
    let offsets = |level: f64| -> Vec<f64> {
        column.iter().zip(&jittered).filter(|(x, _)| **x == level).map(|(x, y)| y - x).collect()
    };
    for (level, low, high) in [(1.0, 0.0, 0.5), (4.0, -0.5, 0.5), (7.0, -0.5, 0.0)] {
        let offsets = offsets(level);
        assert!(offsets.iter().all(|d| (low..=high).contains(d)));
        // About 714 of them: the standard error is at most 1 / sqrt(12 * 714) = 0.011.
        assert!((mean(&offsets) - (low + high) / 2.0).abs() < 0.055, "{level}: {}", mean(&offsets));
    }
}

#[test]
fn wrong_parameters_are_refused_where_they_stand() {
    let inputs = people("selfLR", vec![1.0, 7.0, 8.0]);
    let refused = |world: Value, policy: Value| {
        let scenario = json!({
            "rounds": 1, "population": {"file": "people"}, "world": world, "cohorts": [{"policy": policy}],
        });
        let error = open(&scenario, &inputs, 1).err().unwrap_or_else(|| panic!("accepted: {scenario}"));
        error.to_string()
    };
    let world = |extra: Value| {
        let mut world = json!({"kind": "opinion"});
        world.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        refused(world, json!({"kind": "voter"}))
    };
    for (extra, wanted) in [
        (json!({"low": 1}), "world.high: must be greater than low (1), is 1"),
        (
            json!({"low": 1, "high": 7, "initial": {"column": "selfLR"}}),
            "world.initial.column: the scale is 1..=7, but agent 2 has 8 in column `selfLR`; widen the scale or recode the column",
        ),
        (json!({"initial": {"column": "selfRL"}}), "world.initial.column: column `selfRL`: there is no such column"),
        (json!({"initial": {"value": 2}}), "world.initial.value: must lie on the scale 0..=1, is 2"),
        (json!({"initial": {"valu": 2}}), "world.initial.valu: unknown choice `valu`"),
        (json!({"initial": {"uniform": {"from": 0}}}), "world.initial.uniform: expected nothing, found a map"),
        (json!({"jitter": 0.1}), "world.jitter: uniform opinions are already spread out"),
        (json!({"initial": {"value": 0.5}, "jitter": -0.1}), "world.jitter: must lie in 0..=1, is -0.1"),
        (json!({"stop_below": 0}), "world.stop_below: must be greater than 0, is 0"),
        (json!({"stopbelow": 1}), "world.stopbelow: unknown key `stopbelow`"),
    ] {
        let message = world(extra);
        assert!(message.starts_with(wanted), "{message}");
    }
    for (policy, wanted) in [
        (json!({"kind": "degroot", "self_weight": 1.5}), "cohorts[0].policy.self_weight: must lie in 0..=1, is 1.5"),
        (json!({"kind": "voter", "rate": -1}), "cohorts[0].policy.rate: must lie in 0..=1, is -1"),
        (json!({"kind": "hegselmann-krause", "epsilon": -1}), "cohorts[0].policy.epsilon: must be 0 or more, is -1"),
        (json!({"kind": "hegselmann-krause"}), "cohorts[0].policy: the key `epsilon` is missing"),
        (json!({"kind": "deffuant-weisbuch", "epsilon": -1}), "cohorts[0].policy.epsilon: must be 0 or more, is -1"),
        (
            json!({"kind": "deffuant-weisbuch", "epsilon": 1, "mu": 0.6}),
            "cohorts[0].policy.mu: must be above 0 and at most 0.5, is 0.6",
        ),
        (
            json!({"kind": "level-k"}),
            "cohorts[0].policy.kind: the policy `level-k` does not fit this world: it reads the number `fraction`, which the \
             world `opinion` does not show",
        ),
    ] {
        let message = refused(json!({"kind": "opinion"}), policy);
        assert!(message.starts_with(wanted), "{message}");
    }
}

#[test]
fn shards_do_not_change_a_run() {
    for (topology, policy) in [
        (json!({"kind": "barabasi-albert", "links": 3}), json!({"kind": "degroot"})),
        (json!({"kind": "erdos-renyi", "mean_degree": 6}), json!({"kind": "hegselmann-krause", "epsilon": 0.2})),
        (json!({"kind": "complete"}), json!({"kind": "deffuant-weisbuch", "epsilon": 0.2})),
        (json!({"kind": "barabasi-albert", "links": 3}), json!({"kind": "deffuant-weisbuch", "epsilon": 0.2})),
        (json!({"kind": "watts-strogatz", "neighbours": 4, "rewire": 0.3}), json!({"kind": "voter", "rate": 0.5})),
    ] {
        let mut scenario = society(10_000, 4, 12, topology, policy);
        let kinds = ["mean", "variance", "quantiles", "gini", "histogram", "clusters", "agreement", "bimodality"];
        scenario["metrics"] = kinds.iter().map(|kind| json!({"kind": kind, "of": "opinion"})).collect();
        let [one, three, seven] = [1, 3, 7].map(|shards| play_with(&scenario, &Inputs::default(), shards));
        assert_eq!(one.rounds[3].metrics.len(), 1 + 1 + 1 + 3 + 1 + 10 + 1 + 1 + 1);
        let moved = acts(&one.rounds[2]).into_iter().zip(acts(&one.rounds[3])).map(|(a, b)| (a - b).abs());
        assert_eq!(metric(&one.rounds[3], "largest-change"), moved.fold(0.0, f64::max));
        for other in [three, seven] {
            assert_eq!(one.outcome.digest, other.outcome.digest);
            assert_eq!(one.rounds[3].metrics, other.rounds[3].metrics);
            assert_eq!(one.society.column(0), other.society.column(0));
        }
    }
}
