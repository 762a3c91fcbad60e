//! Tests of mechanisms against all vertices of small programs, all deviations, and of the learner's regret.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::*;
use crate::linear;
use polity_base::rng::{Draws, Stream};

fn draws(seed: u64) -> Draws {
    Draws::new(seed, Stream::World, 0, 0)
}

fn distribution(n: usize, draws: &mut Draws) -> Vec<f64> {
    let parts: Vec<f64> = (0..n).map(|_| draws.range(0.05, 1.0)).collect();
    let sum: f64 = parts.iter().sum();
    parts.iter().map(|part| part / sum).collect()
}

/// A random problem whose first effort costs nothing.
fn random(agents: usize, seed: u64) -> Problem {
    let mut draws = draws(seed);
    let joint = 1 << agents;
    let law = (0..joint * 2).flat_map(|_| distribution(joint, &mut draws)).collect();
    let costs = (0..agents).map(|_| vec![0.0, draws.range(0.005, 0.03)]).collect();
    let worth = vec![vec![1.0, 0.0], vec![0.0, 1.0]];
    Problem { prior: distribution(2, &mut draws), worth, costs, signals: vec![2; agents], law, cap: 0.5 }
}

/// All functions from signals to reports of an agent with two signals.
const REPORTS: [[usize; 2]; 4] = [[0, 1], [0, 0], [1, 1], [1, 0]];

/// The least expected payment that makes an agent obey for certain in one combination of efforts, by enumeration of all vertices.
fn cheapest(problem: &Problem, agent: usize, efforts: usize) -> Option<f64> {
    let (signals, states) = (problem.joint_signals(), problem.prior.len());
    let n = signals * states;
    let place = |reports: usize, state: usize| reports * states + state;
    let paid = |effort: usize, reports: [usize; 2]| -> Vec<f64> {
        let mut row = vec![0.0; n];
        let real = problem.with_effort(efforts, agent, effort);
        for seen in 0..signals {
            let said = problem.with_signal(seen, agent, reports[problem.signal(seen, agent)]);
            for state in 0..states {
                row[place(said, state)] += problem.joint(real, state, seen);
            }
        }
        row
    };
    let own = problem.effort(efforts, agent);
    let honest = paid(own, REPORTS[0]);
    // Rows a x >= b.
    let mut rows: Vec<(Vec<f64>, f64)> = Vec::new();
    for effort in 0..problem.costs[agent].len() {
        for reports in REPORTS {
            if effort != own || reports != REPORTS[0] {
                let row = honest.iter().zip(paid(effort, reports)).map(|(a, b)| a - b).collect();
                rows.push((row, problem.costs[agent][own] - problem.costs[agent][effort]));
            }
        }
    }
    for i in 0..n {
        let unit = |sign: f64| (0..n).map(|j| if i == j { sign } else { 0.0 }).collect::<Vec<f64>>();
        rows.push((unit(1.0), 0.0));
        rows.push((unit(-1.0), -problem.cap));
    }
    let mut best: Option<f64> = None;
    let mut chosen: Vec<usize> = (0..n).collect();
    loop {
        let matrix = chosen.iter().map(|row| rows[*row].0.clone()).collect();
        if let Some(x) = linear::solve(matrix, chosen.iter().map(|row| rows[*row].1).collect(), 1e-9) {
            let dot = |row: &[f64]| row.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>();
            if rows.iter().all(|(row, least)| dot(row) >= least - 1e-9) {
                let cost = dot(&honest);
                best = Some(best.map_or(cost, |best: f64| best.min(cost)));
            }
        }
        // The next combination.
        let Some(at) = (0..n).rev().find(|at| chosen[*at] < rows.len() - n + at) else { return best };
        chosen[at] += 1;
        for later in at + 1..n {
            chosen[later] = chosen[later - 1] + 1;
        }
    }
}

#[test]
fn payments_to_one_agent_are_the_cheapest_of_all_vertices() {
    let mut enforced = 0;
    for seed in 0..20 {
        let problem = random(1, seed);
        let found = fixed(&problem, &[0.0, 1.0], Margins::default()).unwrap();
        let cheapest = cheapest(&problem, 0, 1);
        match (&found, cheapest) {
            (Some(found), Some(cheapest)) => {
                assert!((found.value - (problem.informed(1) - cheapest)).abs() < 1e-8, "{seed}: {cheapest}");
                enforced += 1;
            }
            (None, None) => {}
            other => panic!("{seed}: {other:?}"),
        }
        // With one agent it is best never to mix.
        let idle = problem.informed(0);
        let best = found.map_or(idle, |found| found.value.max(idle));
        assert!((optimal(&problem, Margins::default()).unwrap().value - best).abs() < 1e-8, "{seed}");
    }
    assert!(enforced >= 5, "{enforced}");
}

#[test]
fn payments_to_two_agents_are_the_cheapest_of_all_vertices() {
    let problem = Problem::pair(0.7, 0.8, [0.02, 0.03], 0.4);
    let found = fixed(&problem, &[0.0, 0.0, 0.0, 1.0], Margins::default()).unwrap().unwrap();
    let cost: f64 = (0..2).map(|agent| cheapest(&problem, agent, 3).unwrap()).sum();
    assert!((found.value - (problem.informed(3) - cost)).abs() < 1e-8, "{} {cost}", found.value);
}

#[test]
fn no_grid_of_efforts_beats_the_optimum_and_nobody_gains_by_any_deviation() {
    for problem in [
        Problem::pair(0.7, 1.0, [0.03, 0.03], 0.3),
        Problem::pair(0.8, 0.5, [0.02, 0.05], 0.3),
        random(2, 3),
        random(2, 8),
    ] {
        let best = optimal(&problem, Margins::default()).unwrap();
        let again = fixed(&problem, &best.weights, Margins::default()).unwrap().unwrap();
        assert!((best.value - again.value).abs() < 1e-7);
        let mut most = f64::NEG_INFINITY;
        for i in 0..=10u32 {
            for j in 0..=10 - i {
                for k in 0..=10 - i - j {
                    let weights = [i, j, k, 10 - i - j - k].map(|part| f64::from(part) / 10.0);
                    if let Some(found) = fixed(&problem, &weights, Margins::default()).unwrap() {
                        most = most.max(found.value);
                    }
                }
            }
        }
        assert!(most <= best.value + 1e-8 && most > best.value - 0.02, "{most} {}", best.value);
        for agent in 0..2 {
            for recommended in 0..2 {
                assert_eq!(problem.reply(&best, agent, recommended).gain, 0.0);
                // Every deviation, one by one: what the agent gets in all.
                let gets = |effort: usize, reports: [usize; 2]| {
                    let mut sum = 0.0;
                    for efforts in (0..4).filter(|efforts| problem.effort(*efforts, agent) == recommended) {
                        let real = problem.with_effort(efforts, agent, effort);
                        sum -= best.weights[efforts] * problem.costs[agent][effort];
                        for seen in 0..4 {
                            let said = problem.with_signal(seen, agent, reports[problem.signal(seen, agent)]);
                            for state in 0..2 {
                                sum += best.weights[efforts]
                                    * problem.joint(real, state, seen)
                                    * problem.payment(&best, agent, efforts, said, state);
                            }
                        }
                    }
                    sum
                };
                let honest = gets(recommended, REPORTS[0]);
                for effort in 0..2 {
                    for reports in REPORTS {
                        assert!(gets(effort, reports) <= honest + 1e-7);
                    }
                }
            }
        }
        assert!((problem.value(&problem, &best, |_, _| true) - best.value).abs() < 1e-7);
    }
}

#[test]
fn correlated_efforts_are_worth_more_and_agents_who_are_not_paid_shirk() {
    for accuracy in [0.65, 0.75] {
        let problem = Problem::pair(accuracy, 1.0, [0.03, 0.03], 0.3);
        let best = optimal(&problem, Margins::default()).unwrap();
        let apart = uncorrelated(&problem, 10).unwrap();
        assert!(best.value > apart.value + 1e-3, "{} {}", best.value, apart.value);
        let (p, q) = (best.weights[1] + best.weights[3], best.weights[2] + best.weights[3]);
        assert!((best.weights[3] - p * q).abs() > 0.01);
        let unpaid = Mechanism { payments: vec![vec![0.0; 32]; 2], ..best.clone() };
        assert_eq!(problem.reply(&unpaid, 0, 1).effort, 0);
        // Nobody works: the decision is a guess.
        assert!((problem.value(&problem, &unpaid, |_, _| true) - 0.5).abs() < 1e-9);
    }
}

#[test]
fn exploring_keeps_a_margin() {
    let problem = Problem::pair(0.7, 1.0, [0.03, 0.03], 0.3);
    for efforts in 0..4 {
        let found = exploring(&problem, efforts).unwrap().unwrap();
        for agent in 0..2 {
            assert_eq!(problem.reply(&found, agent, problem.effort(efforts, agent)).gain, 0.0, "{efforts}");
        }
    }
    assert!(exploring(&Problem::pair(0.7, 1.0, [0.9, 0.9], 0.3), 3).unwrap().is_none());
}

/// The regret after each of some horizons that double from `first`.
fn regrets(problem: &Problem, first: u64, horizons: u32, margin: f64, seed: u64) -> Vec<(f64, f64)> {
    let best = optimal(problem, Margins::default()).unwrap();
    let mut learner = Learner::new(problem);
    let mut draws = draws(seed);
    let (mut regret, mut rounds, mut points) = (0.0, 0, Vec::new());
    for horizon in 0..horizons {
        for phase in Learner::phases(problem, first << horizon, 1.0) {
            let (mechanism, believed) = match phase.explores {
                Some(efforts) => (exploring(problem, efforts).unwrap().unwrap(), problem.clone()),
                None => (learner.commit(problem, margin).unwrap(), learner.believed(problem)),
            };
            let value = problem.value(&believed, &mechanism, |_, _| true);
            regret += phase.rounds as f64 * (best.value - value);
            rounds += phase.rounds;
            let Some(efforts) = phase.explores else { continue };
            for _ in 0..phase.rounds {
                let state = draws.weighted(&problem.prior).unwrap();
                let law: Vec<f64> =
                    (0..problem.joint_signals()).map(|s| problem.likelihood(efforts, state, s)).collect();
                learner.see(problem, efforts, state, draws.weighted(&law).unwrap(), 1);
            }
        }
        points.push((rounds as f64, regret));
    }
    points
}

#[test]
fn regret_grows_with_the_power_two_thirds_of_rounds() {
    let problem = Problem::pair(0.75, 0.5, [0.03, 0.03], 0.3);
    let slopes: Vec<f64> = (1..=6).map(|seed| slope(&regrets(&problem, 8_000, 9, 2.0, seed))).collect();
    let mean = slopes.iter().sum::<f64>() / 6.0;
    assert!((0.55..0.75).contains(&mean), "{slopes:?}");
    // Without a margin agents depart, however long the principal has learnt.
    let loose: Vec<f64> = (1..=6).map(|seed| slope(&regrets(&problem, 8_000, 9, 0.0, seed))).collect();
    assert!(loose.iter().sum::<f64>() / 6.0 > mean + 0.05, "{loose:?} {slopes:?}");
}

#[test]
fn problems_that_do_not_fit_are_refused() {
    let good = Problem::pair(0.7, 1.0, [0.03, 0.03], 0.3);
    for (change, says) in [
        (&|p: &mut Problem| p.prior = vec![0.5, 0.6], "add up to 1"),
        (&|p: &mut Problem| p.costs[0][1] = -1.0, "costs"),
        (&|p: &mut Problem| p.cap = 0.0, "largest payment"),
        (&|p: &mut Problem| p.law.truncate(3), "need 32"),
        (&|p: &mut Problem| p.signals = vec![2], "each agent"),
        (&|p: &mut Problem| p.signals = vec![200, 200], "too large"),
    ] as [(&dyn Fn(&mut Problem), &str); 6]
    {
        let mut bad = good.clone();
        change(&mut bad);
        let found = optimal(&bad, Margins::default()).unwrap_err();
        assert!(found.contains(says), "{found}");
    }
    assert!(fixed(&good, &[1.0], Margins::default()).is_err());
    assert!(exploring(&good, 9).is_err());
    assert!(uncorrelated(&random(1, 1), 3).unwrap_err().contains("two agents"));
}
