//! Compares the platform with recorded cascades: `python3 scripts/cascades.py cascades` fetches them, and
//! `cargo run --release -p polity --example cascade -- cascades/twitter.csv cascades/tideh.csv` forecasts each from its first 100
//! minutes. The errors of each cascade are written beside its table (`twitter.errors.csv`).
//!
//! A forecast continues what a cascade has reached at minute 100: it multiplies it by a growth. The platform's growth is the mean of runs
//! of one setting, which is fitted to other cascades (each tenth is held out of the fit) or to the cascade's own first part. Its rivals:
//! a constant, a hyperbola of two parameters fitted to the same first part, and the median growth of the other cascades.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::expect_used, clippy::indexing_slicing)]

use polity_kernel::layout::Layout;
use polity_kernel::machine::{Machine, Then};
use polity_kernel::population::{Column, Table};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::tree::Node;
use polity_stats::student;
use rayon::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

const USERS: u32 = 200;
/// Number of others that each user follows, besides the author.
const FRIENDS: usize = 5;
const MINUTES: usize = 500;
/// Number of minutes that a forecast may use.
const SEEN: usize = 100;
/// Number of users within these minutes from which on a cascade is compared.
const LEAST: f64 = 100.0;
/// Number of runs of a setting, of which the mean is taken.
const SEEDS: u64 = 3;
const FOLDS: usize = 10;
const NAMES: [&str; 3] = ["scale", "depth", "breadth"];
const RIVALS: [&str; 5] = ["constant", "hyperbola", "growth", "others", "own"];

/// Curves by minute: scale, and depth and largest breadth if they are recorded.
type Curves = Vec<Vec<f64>>;

/// The probability of a look at the feed in a minute, its inequality between people (the standard deviation of its logarithm), the
/// probability that a look leads to a share, the share of users who follow the author, and the share of shares credited to the post.
#[derive(Clone, Copy, Debug)]
struct Setting {
    look: f64,
    unequal: f64,
    share: f64,
    fans: f64,
    credit: f64,
}

fn settings() -> Vec<Setting> {
    let mut all = Vec::new();
    for look in [0.003, 0.01, 0.03, 0.1] {
        for unequal in [0.0, 1.5, 3.0] {
            for share in [0.1, 0.5] {
                for fans in [0.1, 0.5, 1.0] {
                    for credit in [0.5, 0.95] {
                        all.push(Setting { look, unequal, share, fans, credit });
                    }
                }
            }
        }
    }
    all
}

/// Reads the cascades that are large enough, by number: each row is a user, with the minute and the depth.
fn read(file: &str) -> Result<Vec<(u32, Curves)>, csv::Error> {
    let mut users: BTreeMap<u32, Vec<(f64, Option<usize>)>> = BTreeMap::new();
    for row in csv::Reader::from_path(file)?.deserialize() {
        let (cascade, minute, depth) = row?;
        users.entry(cascade).or_default().push((minute, depth));
    }
    let curves = users.into_iter().map(|(cascade, users)| (cascade, recorded(&users)));
    Ok(curves.filter(|(_, curves)| curves[0][SEEN - 1] >= LEAST).collect())
}

fn recorded(users: &[(f64, Option<usize>)]) -> Curves {
    let mut arrivals = vec![Vec::new(); MINUTES];
    for (minute, depth) in users {
        if let Some(minute) = arrivals.get_mut(minute.ceil() as usize) {
            minute.push(*depth);
        }
    }
    let (mut scale, mut at) = (0, Vec::<u32>::new());
    let mut curves: Curves = vec![Vec::new(); if users.iter().all(|(_, depth)| depth.is_some()) { 3 } else { 1 }];
    for new in arrivals {
        scale += new.len();
        for depth in new.into_iter().flatten() {
            at.resize(at.len().max(depth + 1), 0);
            at[depth] += 1;
        }
        let breadth = at.iter().skip(1).max().copied().unwrap_or(0);
        let now = [scale as f64, at.len().saturating_sub(1) as f64, f64::from(breadth)];
        curves.iter_mut().zip(now).for_each(|(curve, value)| curve.push(value));
    }
    curves
}

/// Returns who follows whom: a share of all the author, agent 0, and everybody some others, drawn at random.
fn follows(fans: f64) -> Vec<(u32, u32)> {
    let mut draws = Draws::new(1, Stream::Population, 0, 0);
    let mut edges = Vec::new();
    for user in 1..USERS {
        if draws.chance(fans) {
            edges.push((user, 0));
        }
        let others = (0..FRIENDS).map(|_| (user, 1 + draws.below(u64::from(USERS) - 1) as u32));
        edges.extend(others.filter(|(user, other)| user != other));
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

fn simulated(Setting { look, unequal, share, fans, credit }: Setting, seed: u64) -> Curves {
    let mut draws = Draws::new(seed, Stream::Population, 0, 0);
    let activity = |_| {
        // Capped, so that probabilities do not exceed one.
        (unequal * draws.normal() - unequal * unequal / 2.0).exp().min(1.0 / look)
    };
    let people = Table::new(vec![("activity".into(), Column::Number((0..USERS).map(activity).collect()))]);
    let mut inputs = Inputs::default();
    inputs.tables.insert("people".into(), Arc::new(people.expect("a table")));
    inputs.edges.insert("follows".into(), Arc::new(follows(fans).into()));
    let scenario = json!({
        "seed": seed, "rounds": MINUTES, "agents": USERS,
        "topology": {"kind": "file", "file": "follows", "directed": true},
        "population": {"file": "people"},
        "world": {
            "kind": "platform", "minutes": 1, "hours": vec![look; 24], "activity": "activity", "learning": 0, "credit": credit,
            "weights": {"followed": 1, "interest": 0, "hot": 0, "recent": 0, "random": 0}, "seeds": [{"author": 0}],
        },
        "cohorts": [{"policy": {
            "kind": "user", "share": share, "tolerance": 2, "like": 0, "dislike": 0, "comment": 0, "post": 0, "pull": 0, "follow": 0,
        }}],
    });
    let machine = assemble(&Node::from_json(&scenario), &polity::registry(), &inputs, Layout::default());
    let mut society = match machine {
        Ok(Assembled::Society(society)) => society,
        Ok(Assembled::Evaluation(_)) => unreachable!("it has a world"),
        Err(error) => unreachable!("{error}"),
    };
    // Before the first minute there is only the post.
    let mut curves = vec![vec![1.0], vec![0.0], vec![0.0]];
    while let Then::Round(report) = society.poll(Vec::new()).expect("a run without defects").then {
        for (curve, name) in curves.iter_mut().zip(NAMES) {
            let of = format!("cascade-{name}");
            let value = report.metrics.iter().find(|(metric, _)| *metric == of).map_or(0.0, |(_, value)| *value);
            curve.push(value);
        }
    }
    curves
}

/// Returns the mean curves of a setting.
fn run(setting: &Setting) -> Curves {
    let runs: Vec<Curves> = (1..=SEEDS).map(|seed| simulated(*setting, seed)).collect();
    let mean = |i: usize, t: usize| runs.iter().map(|run| run[i][t]).sum::<f64>() / runs.len() as f64;
    (0..3).map(|i| (0..MINUTES).map(|t| mean(i, t)).collect()).collect()
}

/// Returns a curve multiplied so that it meets the recorded one in the last minute seen; a constant if it is 0 there.
fn continued(curve: &[f64], real: &[f64]) -> Vec<f64> {
    let (reached, at) = (real[SEEN - 1], curve[SEEN - 1]);
    curve.iter().map(|value| if at > 0.0 { reached * value / at } else { reached }).collect()
}

/// Returns the root of the mean squared error in these minutes, divided by the last recorded value in them.
fn error(curve: &[f64], real: &[f64], minutes: std::ops::Range<usize>) -> f64 {
    let (n, last) = (minutes.len() as f64, real[minutes.end - 1].max(1.0));
    let squares: f64 = minutes.map(|t| (curve[t] - real[t]).powi(2)).sum();
    (squares / n).sqrt() / last
}

/// Returns the hyperbola from the first value on that is closest to the minutes seen.
fn hyperbola(real: &[f64]) -> Vec<f64> {
    let start = real[0];
    let fits = (0..60).map(|i| {
        let half = 0.5 * 1.15f64.powi(i);
        let x: Vec<f64> = (0..MINUTES).map(|t| t as f64 / (half + t as f64)).collect();
        let (xy, xx) = (0..SEEN).fold((0.0, 0.0), |(xy, xx), t| (xy + x[t] * (real[t] - start), xx + x[t] * x[t]));
        let curve: Vec<f64> = x.iter().map(|x| start + xy / xx * x).collect();
        (error(&curve, real, 0..SEEN), curve)
    });
    fits.min_by(|a, b| a.0.total_cmp(&b.0)).expect("a curve").1
}

/// Returns by minute the median of how much these cascades have grown since the last minute seen.
fn growth(cascades: &[&Curves], i: usize) -> Vec<f64> {
    let median = |t: usize| {
        let mut all: Vec<f64> = cascades.iter().map(|real| real[i][t] / real[i][SEEN - 1].max(1.0)).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    (0..MINUTES).map(median).collect()
}

fn average(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    polity_stats::mean(&values).expect("values")
}

/// The errors of all forecasts of a cascade, by measure.
type Errors = Vec<[f64; 5]>;

/// Forecasts every cascade. The setting of `others` and the median growth are of the cascades outside its fold.
fn forecast(cascades: &[(u32, Curves)], grid: &[Setting], runs: &[Curves]) -> Vec<Errors> {
    let mean_off = |real: &Curves, run: &Curves, minutes: &std::ops::Range<usize>| {
        average(real.iter().zip(run).map(|(real, run)| error(&continued(run, real), real, minutes.clone())))
    };
    let off = |minutes: std::ops::Range<usize>| -> Vec<Vec<f64>> {
        let of = |(_, real): &(u32, Curves)| runs.iter().map(|run| mean_off(real, run, &minutes)).collect();
        cascades.par_iter().map(of).collect()
    };
    let (first, rest) = (off(0..SEEN), off(SEEN..MINUTES));
    let least = |of: &dyn Fn(usize) -> f64| (0..grid.len()).min_by(|a, b| of(*a).total_cmp(&of(*b))).expect("a grid");
    let measures = cascades[0].1.len();
    let mut all = vec![Errors::new(); cascades.len()];
    for fold in 0..FOLDS.min(cascades.len()) {
        let others: Vec<usize> = (0..cascades.len()).filter(|of| of % FOLDS != fold).collect();
        let best = least(&|setting| others.iter().map(|of| rest[*of][setting]).sum());
        println!("fold {fold}: {:?}", grid[best]);
        let curves: Vec<&Curves> = others.iter().map(|of| &cascades[*of].1).collect();
        let growths: Curves = (0..measures).map(|i| growth(&curves, i)).collect();
        for of in (fold..cascades.len()).step_by(FOLDS) {
            let own = least(&|setting| first[of][setting]);
            let off = |(i, real): (usize, &Vec<f64>)| {
                let rivals = [&vec![1.0; MINUTES], &hyperbola(real), &growths[i], &runs[best][i], &runs[own][i]];
                rivals.map(|curve| error(&continued(curve, real), real, SEEN..MINUTES))
            };
            all[of] = cascades[of].1.iter().enumerate().map(off).collect();
        }
    }
    all
}

/// Prints the mean errors by measure, and who wins.
fn print(errors: &[Errors]) {
    println!(
        "error over minutes {SEEN} to {MINUTES} (root mean square, as a share of the last value), mean over cascades:"
    );
    println!("{:>8}{}", "", RIVALS.map(|name| format!("{name:>12}")).concat());
    for (i, name) in NAMES.iter().enumerate().take(errors[0].len()) {
        let of = |rival: usize| average(errors.iter().map(|errors| errors[i][rival]));
        println!("{name:>8}{}", std::array::from_fn::<_, 5, _>(|rival| format!("{:>12.4}", of(rival))).concat());
    }
    println!(
        "error of the platform less a rival's (mean over cascades, 95 % interval), and the share of cascades in which it is less:"
    );
    for (i, name) in NAMES.iter().enumerate().take(errors[0].len()) {
        for (ours, rival) in [3, 4].into_iter().flat_map(|ours| [0, 1, 2].map(|rival| (ours, rival))) {
            let less: Vec<f64> = errors.iter().map(|errors| errors[i][ours] - errors[i][rival]).collect();
            let closer = less.iter().filter(|less| **less < 0.0).count() as f64 / less.len() as f64;
            let found = student(&less);
            let [mean, low, high] = [found.mean, found.low, found.high].map(|value| value.expect("several cascades"));
            let said = if high < 0.0 {
                "the platform wins"
            } else if low > 0.0 {
                "the rival wins"
            } else {
                "not told apart"
            };
            let (ours, rival) = (RIVALS[ours], RIVALS[rival]);
            println!("{name:>8} {ours:>6} - {rival:<9} {mean:+.4} [{low:+.4}, {high:+.4}] {closer:.2}  {said}");
        }
    }
}

/// Returns the errors of each cascade as a table.
fn listed(cascades: &[(u32, Curves)], errors: &[Errors]) -> String {
    let mut text = format!("cascade,measure,{}\n", RIVALS.join(","));
    for ((cascade, _), errors) in cascades.iter().zip(errors) {
        for (name, errors) in NAMES.iter().zip(errors) {
            let _ = writeln!(text, "{cascade},{name},{}", errors.map(|error| format!("{error:.5}")).join(","));
        }
    }
    text
}

fn main() -> ExitCode {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        files = vec!["cascades/twitter.csv".into(), "cascades/tideh.csv".into()];
    }
    let mut all = Vec::new();
    for file in files {
        match read(&file) {
            Ok(cascades) if cascades.len() > FOLDS => all.push((file, cascades)),
            Ok(cascades) => {
                let n = cascades.len();
                eprintln!(
                    "{file}: more than {FOLDS} cascades of {LEAST} users in {SEEN} minutes are needed; there are {n}"
                );
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("{file} cannot be read: {error}\nmake it with scripts/cascades.py");
                return ExitCode::FAILURE;
            }
        }
    }
    let grid = settings();
    println!("{} settings of the platform, {SEEDS} runs each", grid.len());
    let runs: Vec<Curves> = grid.par_iter().map(run).collect();
    for (file, cascades) in all {
        println!("\n{file}: {} cascades of at least {LEAST} users in {SEEN} minutes", cascades.len());
        let errors = forecast(&cascades, &grid, &runs);
        print(&errors);
        let each = Path::new(&file).with_extension("errors.csv");
        if let Err(error) = std::fs::write(&each, listed(&cascades, &errors)) {
            eprintln!("{} cannot be written: {error}", each.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
