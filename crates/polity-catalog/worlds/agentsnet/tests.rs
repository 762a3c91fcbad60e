//! Scores against a plain recount, rounds against distances, and algorithms on networks of every kind.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{AgentsNet, Network, Params, Problem};
use crate::testing::{metric, open, play, refused};
use polity_kernel::declare::Declare;
use polity_kernel::population::Population;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use polity_kernel::topology::{Topology, TopologySpec, generate};
use polity_kernel::world::{World, WorldSetup};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PROBLEMS: [&str; 5] = ["coloring", "vertex-cover", "matching", "leader-election", "consensus"];

fn scenario(agents: u32, topology: &Value, world: Value) -> Value {
    let mut world = world;
    world["kind"] = "agentsnet".into();
    json!({
        "seed": 1, "rounds": 20_000, "agents": agents, "topology": topology, "world": world,
        "cohorts": [{"policy": {"kind": "local"}}], "metrics": [{"kind": "mean", "of": "answer"}],
    })
}

fn last(scenario: &Value, name: &str) -> f64 {
    metric(play(scenario).rounds.last().unwrap(), name)
}

/// The topology of a scenario with seed 1, without its `kind`.
fn network(agents: u32, topology: &Value) -> Topology {
    let mut parameters = topology.clone();
    let kind = parameters.as_object_mut().unwrap().remove("kind").unwrap();
    let spec: TopologySpec = serde_json::from_value(json!({kind.as_str().unwrap(): parameters})).unwrap();
    generate(&spec, agents, &Population::empty(agents), 1).unwrap()
}

/// Distances from everybody to everybody, by relaxation.
fn distances(topology: &Topology) -> Vec<Vec<u32>> {
    let n = topology.n();
    let mut all: Vec<Vec<u32>> = (0..n).map(|i| (0..n).map(|j| if i == j { 0 } else { 1_000_000 }).collect()).collect();
    loop {
        let before = all.clone();
        for i in 0..n {
            for j in topology.neighbours(i) {
                let through = before[j as usize].iter().map(|distance| distance + 1);
                all[i as usize].iter_mut().zip(through).for_each(|(known, through)| *known = through.min(*known));
            }
        }
        if all == before {
            return all;
        }
    }
}

fn small_networks() -> [(u32, Value); 6] {
    [
        (4, json!({"kind": "complete"})),
        (24, json!({"kind": "ring", "neighbours": 2})),
        (30, json!({"kind": "grid", "width": 6})),
        (32, json!({"kind": "barabasi-albert", "links": 1})),
        (16, json!({"kind": "watts-strogatz", "neighbours": 4, "rewire": 0.4})),
        (100, json!({"kind": "barabasi-albert", "links": 2})),
    ]
}

/// The published scores, edge by edge, and removing each agent of a cover once.
fn recount(problem: Problem, topology: &Topology, answers: &[Option<i64>]) -> f64 {
    let n = topology.n();
    let edges: Vec<(usize, usize)> = (0..n)
        .flat_map(|i| topology.neighbours(i).filter(move |j| i < *j).map(move |j| (i as usize, j as usize)))
        .collect();
    let share = |fits: &dyn Fn(&&(usize, usize)) -> bool| edges.iter().filter(fits).count() as f64 / edges.len() as f64;
    match problem {
        Problem::Coloring if answers.contains(&None) => 0.0,
        Problem::Coloring => share(&|(i, j)| answers[*i] != answers[*j]),
        Problem::VertexCover => {
            let coverage = |answers: &[Option<i64>]| share(&|(i, j)| answers[*i] == Some(1) || answers[*j] == Some(1));
            let size = answers.iter().filter(|answer| **answer == Some(1)).count();
            let needed = (0..n as usize).filter(|i| answers[*i] == Some(1)).filter(|i| {
                let mut without = answers.to_vec();
                without[*i] = Some(0);
                coverage(&without) < 1.0
            });
            if size == 0 { 0.0 } else { coverage(answers) * needed.count() as f64 / size as f64 }
        }
        Problem::Matching => {
            let mut inconsistent = 0;
            for (i, answer) in answers.iter().enumerate() {
                let neighbours: Vec<usize> = topology.neighbours(i as u32).map(|j| j as usize).collect();
                inconsistent += match answer {
                    Some(-1) => u32::from(neighbours.iter().any(|j| answers[*j] == Some(-1))),
                    Some(j) if neighbours.contains(&(*j as usize)) => u32::from(answers[*j as usize] != Some(i as i64)),
                    _ => 1,
                };
            }
            f64::from(n - inconsistent) / f64::from(n)
        }
        Problem::LeaderElection => {
            let yes = answers.iter().filter(|answer| **answer == Some(1)).count();
            f64::from(u8::from(yes == 1 && !answers.contains(&None)))
        }
        Problem::Consensus => {
            f64::from(u8::from(answers.iter().all(|answer| answer.is_some() && *answer == answers[0])))
        }
    }
}

#[test]
fn scores_are_those_of_a_plain_recount() {
    let kinds =
        [Problem::Coloring, Problem::VertexCover, Problem::Matching, Problem::LeaderElection, Problem::Consensus];
    let topology = network(7, &json!({"kind": "erdos-renyi", "probability": 0.4}));
    let (population, texts) = (Population::empty(7), BTreeMap::new());
    let setup =
        WorldSetup { agents: 7, population: &population, topology: &topology, lag: 0, seats: &[], texts: &texts };
    let mut draws = Draws::new(5, Stream::Turn, 0, 0);
    let mut seen = [[0; 2]; 5];
    for (k, problem) in kinds.into_iter().enumerate() {
        let params = Params { problem, ..Params::default() };
        let world = AgentsNet::open(params, &setup, &mut Declare::default()).unwrap();
        let mut state: Network = world.init_state(&setup, &mut draws);
        for _ in 0..20_000 {
            // Mostly answers that fit, so that problems are sometimes solved by chance.
            let bold = draws.chance(0.5);
            state.answers = (0..7u32)
                .map(|i| {
                    let neighbours: Vec<u32> = topology.neighbours(i).collect();
                    match problem {
                        _ if draws.chance(0.01) => None,
                        Problem::Coloring => Some(1 + draws.below(3) as i64),
                        Problem::Matching if draws.chance(0.3) || neighbours.is_empty() => Some(-1),
                        Problem::Matching => Some(i64::from(neighbours[draws.below(neighbours.len() as u64) as usize])),
                        _ => Some(i64::from(draws.chance(if bold { 0.15 } else { 0.6 }))),
                    }
                })
                .collect();
            let (found, plain) = (world.verdict(&state).score, recount(problem, &topology, &state.answers));
            assert!((found - plain).abs() < 1e-12, "{problem:?}: {found} is not {plain} for {:?}", state.answers);
            seen[k][usize::from(plain >= 1.0)] += 1;
        }
    }
    assert!(seen.iter().flatten().all(|count| *count > 0), "{seen:?}");
    // Nobody began with 1: all agree, but not validly.
    let params = Params { problem: Problem::Consensus, zeros: Some(7), ..Params::default() };
    let world = AgentsNet::open(params, &setup, &mut Declare::default()).unwrap();
    let mut state = world.init_state(&setup, &mut draws);
    let mut agreed = |value| {
        state.answers = vec![Some(value); 7];
        world.verdict(&state).score
    };
    assert_eq!((agreed(1), agreed(0)), (0.0, 1.0));
}

/// The published number of rounds is enough for every problem.
#[test]
fn enough_rounds_solve_every_problem() {
    for (agents, topology) in small_networks() {
        for problem in PROBLEMS {
            for seed in 1..=10 {
                let mut scenario = scenario(agents, &topology, json!({"problem": problem}));
                scenario["seed"] = seed.into();
                let round = play(&scenario).rounds.pop().unwrap();
                let found = ["score", "solved"].map(|name| metric(&round, name));
                assert_eq!(found, [1.0, 1.0], "{problem} with seed {seed} on {agents} in {topology}");
            }
        }
    }
}

/// A single agent begins with 0. All know after as many rounds as it is far from the last of them, and not before.
#[test]
fn agreement_takes_as_many_rounds_as_the_eccentricity() {
    for (agents, topology) in small_networks() {
        let distances = distances(&network(agents, &topology));
        let diameter = distances.iter().flatten().max().copied().unwrap();
        for rounds in 0..=diameter + 1 {
            let world = json!({"problem": "consensus", "zeros": 1, "rounds": rounds});
            let played = play(&scenario(agents, &topology, world));
            assert_eq!(played.rounds.len(), rounds as usize + 1);
            let lots = played.society.column(1);
            let zero = lots.iter().position(|lot| *lot == 0.0).unwrap();
            let needed = distances[zero].iter().max().copied().unwrap();
            let solved = metric(played.rounds.last().unwrap(), "solved");
            assert_eq!(solved, f64::from(u8::from(rounds >= needed)), "{rounds} of {needed} rounds in {topology}");
        }
    }
}

/// After t rounds the leaders are those with the greatest lot of all that are at most t ties away.
#[test]
fn leaders_are_the_greatest_as_far_as_they_hear() {
    for (agents, topology) in small_networks() {
        let distances = distances(&network(agents, &topology));
        for rounds in [0, 1, 2, 3, 5] {
            let played = play(&scenario(agents, &topology, json!({"problem": "leader-election", "rounds": rounds})));
            let (answers, lots) = (played.society.column(0), played.society.column(1));
            for (i, answer) in answers.iter().enumerate() {
                let near = lots.iter().zip(&distances[i]).filter(|(_, distance)| **distance <= rounds);
                let greatest = near.map(|(lot, _)| *lot).fold(0.0, f64::max);
                assert_eq!(*answer, f64::from(u8::from(lots[i] == greatest)));
            }
        }
    }
}

/// On a ring and on a torus everybody is as far from the last as the diameter, so that one round too few never does.
#[test]
fn one_round_too_few_fails() {
    for (topology, agents, diameter) in
        [(json!({"kind": "ring", "neighbours": 2}), 64, 32), (json!({"kind": "grid", "torus": true}), 64, 8)]
    {
        for seed in 1..=10 {
            let solved = |rounds: u32| {
                let world = json!({"problem": "consensus", "zeros": 1, "rounds": rounds});
                let mut scenario = scenario(agents, &topology, world);
                scenario["seed"] = seed.into();
                last(&scenario, "solved")
            };
            assert_eq!((solved(diameter), solved(diameter - 1)), (1.0, 0.0));
        }
    }
}

#[test]
fn placebos_fail() {
    let topology = json!({"kind": "watts-strogatz", "neighbours": 4, "rewire": 0.4});
    let solved = |problem: &str, messages: &str| {
        let mut scenario = scenario(100, &topology, json!({"problem": problem}));
        scenario["cohorts"][0]["policy"]["messages"] = messages.into();
        last(&scenario, "solved")
    };
    for problem in PROBLEMS {
        assert_eq!((solved(problem, "neighbours"), solved(problem, "blank")), (1.0, 0.0), "{problem}");
    }
    for problem in &PROBLEMS[..3] {
        assert_eq!(solved(problem, "strangers"), 0.0, "{problem}");
    }
    // What all need to know comes from anybody.
    for problem in &PROBLEMS[3..] {
        assert_eq!(solved(problem, "strangers"), 1.0, "{problem}");
    }
}

#[test]
fn two_thousand_agents_solve_every_problem() {
    for problem in PROBLEMS {
        let topology = json!({"kind": "watts-strogatz", "neighbours": 6, "rewire": 0.4});
        let played = play(&scenario(2_000, &topology, json!({"problem": problem, "rounds": 40})));
        let end = played.rounds.last().unwrap();
        assert_eq!(metric(end, "solved"), 1.0, "{problem}");
        if problem == "coloring" {
            let most = (0..2_000).map(|i| network(2_000, &topology).degree(i)).max().unwrap_or(0);
            assert!(metric(end, "colours") <= f64::from(most + 1));
        }
    }
}

/// `cargo test --release -p polity-worlds agentsnet -- --ignored --nocapture` prints the time.
#[test]
#[ignore = "a measurement"]
fn ten_thousand_agents() {
    let topologies = [
        json!({"kind": "watts-strogatz", "neighbours": 6, "rewire": 0.4}),
        json!({"kind": "barabasi-albert", "links": 3}),
        json!({"kind": "grid"}),
    ];
    for topology in topologies {
        let rounds = if topology["kind"] == "grid" { 198 } else { 40 };
        for problem in PROBLEMS {
            let begun = std::time::Instant::now();
            let solved = last(&scenario(10_000, &topology, json!({"problem": problem, "rounds": rounds})), "solved");
            println!("{topology} {problem}: solved {solved}, {rounds} rounds, {:.2} s", begun.elapsed().as_secs_f64());
            assert_eq!(solved, 1.0);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let ring = json!({"kind": "ring", "neighbours": 2});
    let late = {
        let mut late = scenario(10, &ring, json!({}));
        late["answers"] = json!({"lag": 1});
        late
    };
    assert!(refused(&late).contains("lag"), "{}", refused(&late));
    assert!(refused(&scenario(10, &ring, json!({"zeros": 11}))).contains("must lie in 0..=10, is 11"));
    assert!(refused(&scenario(10, &ring, json!({"problem": "colouring"}))).contains("coloring"));
    assert!(refused(&scenario(50_000, &ring, json!({}))).contains("set `rounds`"));
    assert!(open(&scenario(10, &ring, json!({})), &Inputs::default(), 3).is_ok());
    // Nobody gives a valid answer: halves are no colours.
    let mut noise = scenario(10, &ring, json!({"rounds": 1}));
    noise["cohorts"][0]["policy"] = json!({"kind": "noise"});
    let end = play(&noise).rounds.pop().unwrap();
    assert_eq!(["score", "colours", "rounds"].map(|name| metric(&end, name)), [0.0, 0.0, 1.0]);
}
