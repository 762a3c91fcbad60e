//! Compares the platform with a real cascade: `cargo run --release -p polity --example cascade -- ../shared/data cascade.html`. The
//! curves are drawn in the file of that name, if one is given.
//!
//! 111 users of one rumour and their follow graph; scale, depth and largest breadth by minute, for 500 minutes (Twitter15, as distributed
//! with OASIS). The frequency of looks, its inequality between people, and the readiness to share are fitted to the first 100 minutes.
//! The rest is compared, also with a constant and a logistic curve that were fitted to the same minutes.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::expect_used, clippy::indexing_slicing)]

use polity::report::{Figure, Report, Section, Series, render};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::population::{Column, Table};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::transport::InMemory;
use polity_kernel::tree::Node;
use rayon::prelude::*;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

const USERS: u32 = 111;
const ROOT: u32 = 32;
const MINUTES: usize = 500;
/// Number of fitted minutes.
const SEEN: usize = 100;
/// Number of runs with other seeds, of which the mean is taken.
const SEEDS: u64 = 16;
const NAMES: [&str; 3] = ["scale", "depth", "breadth"];

/// Scale, depth and breadth by minute.
type Curves = [Vec<f64>; 3];

fn read(path: &Path) -> Option<Vec<Vec<f64>>> {
    let text = std::fs::read_to_string(path).ok()?;
    let row = |line: &str| line.split(',').map(|cell| cell.trim().parse().ok()).collect();
    text.lines().skip(1).filter(|line| !line.is_empty()).map(row).collect()
}

/// The fitted parameters: the probability of a look at the feed within a minute, its inequality between people (the standard deviation of
/// its logarithm), and the probability that a look leads to a share (these three by the scale); and the share of shares credited to the
/// post itself (by depth and breadth).
type Fit = (f64, f64, f64, f64);

fn simulated((look, unequal, share, credit): Fit, edges: &Arc<Vec<(u32, u32)>>, seed: u64) -> Curves {
    let mut draws = Draws::new(seed, Stream::Population, 0, 0);
    let activity = |_| {
        // Capped, so that probabilities do not exceed one.
        (unequal * draws.normal() - unequal * unequal / 2.0).exp().min(1.0 / look)
    };
    let people = Table::new(vec![("activity".into(), Column::Number((0..USERS).map(activity).collect()))]);
    let mut inputs = Inputs::default();
    inputs.tables.insert("people".into(), Arc::new(people.expect("a table")));
    inputs.edges.insert("follows".into(), edges.clone());
    let scenario = json!({
        "seed": seed, "rounds": MINUTES, "agents": USERS,
        "topology": {"kind": "file", "file": "follows", "directed": true},
        "population": {"file": "people"},
        "world": {
            "kind": "platform", "minutes": 1, "hours": vec![look; 24], "activity": "activity", "learning": 0, "credit": credit,
            "weights": {"followed": 1, "interest": 0, "hot": 0, "recent": 0, "random": 0.01}, "seeds": [{"author": ROOT}],
        },
        "cohorts": [{"policy": {
            "kind": "user", "share": share, "tolerance": 2, "like": 0, "dislike": 0, "comment": 0, "post": 0, "pull": 0, "follow": 0,
        }}],
    });
    let machine = assemble(&Node::from_json(&scenario), &polity::registry(), &inputs, 1, Box::new(InMemory::default()));
    let mut society = match machine {
        Ok(Assembled::Society(society)) => society,
        Ok(Assembled::Evaluation(_)) => unreachable!("it has a world"),
        Err(error) => unreachable!("{error}"),
    };
    // Before the first minute there is only the post.
    let mut curves: Curves = [vec![1.0], vec![0.0], vec![0.0]];
    while let Then::Round(report) = society.poll(Vec::new()).expect("a run without defects").then {
        for (curve, name) in curves.iter_mut().zip(NAMES) {
            let of = format!("cascade-{name}");
            let value = report.metrics.iter().find(|(metric, _)| *metric == of).map_or(0.0, |(_, value)| *value);
            curve.push(value);
        }
    }
    curves.map(|mut curve| {
        curve.truncate(MINUTES);
        curve
    })
}

fn mean_of(fit: Fit, edges: &Arc<Vec<(u32, u32)>>, first: u64) -> Curves {
    let runs: Vec<Curves> = (first..first + SEEDS).into_par_iter().map(|seed| simulated(fit, edges, seed)).collect();
    std::array::from_fn(|i| {
        (0..MINUTES).map(|t| runs.iter().map(|run| run[i][t]).sum::<f64>() / runs.len() as f64).collect()
    })
}

/// Returns the root of the mean squared error, divided by the largest value of the real curve.
fn error(of: &[f64], real: &[f64], minutes: std::ops::Range<usize>) -> f64 {
    let n = minutes.len() as f64;
    let largest = real.iter().copied().fold(0.0, f64::max);
    let squares: f64 = minutes.map(|t| (of[t] - real[t]).powi(2)).sum();
    (squares / n).sqrt() / largest
}

/// Returns the logistic curve closest to the fitted minutes, by search in ever finer steps.
fn logistic(real: &[f64]) -> Vec<f64> {
    let curve = |[most, rate, middle]: [f64; 3]| -> Vec<f64> {
        (0..MINUTES).map(|t| most / (1.0 + (-rate * (t as f64 - middle)).exp())).collect()
    };
    let mut best = ([real[SEEN - 1], 0.1, 10.0], f64::INFINITY);
    let mut step = [real[SEEN - 1].max(1.0) / 2.0, 0.1, 20.0];
    for _ in 0..60 {
        let from = best.0;
        for code in 0..125u32 {
            let at = |i: u32| f64::from(code / 5u32.pow(i) % 5) - 2.0;
            let tried: [f64; 3] = std::array::from_fn(|i| from[i] + step[i] * at(i as u32) / 2.0);
            let off = error(&curve(tried), real, 0..SEEN);
            if off < best.1 {
                best = (tried, off);
            }
        }
        step = step.map(|step| step * 0.8);
    }
    curve(best.0)
}

/// Draws a page with a chart for each of scale, depth and breadth.
fn drawn(all: &[(&str, &Curves)]) -> String {
    let figure = |i: usize| {
        let series = all.iter().map(|(name, curves)| Series {
            name: (*name).into(),
            points: curves[i].iter().enumerate().map(|(minute, value)| (minute as f64, *value)).collect(),
            ..Series::default()
        });
        Figure::Lines {
            title: format!("{} of the cascade", ["Scale", "Depth", "Largest breadth"][i]),
            x_label: "minute".into(),
            y_label: ["users", "shares from the post", "users at one depth"][i].into(),
            series: series.collect(),
            caption: format!(
                "Fitted to the first {SEEN} minutes; the platform's curve is the mean of {SEEDS} runs with other seeds \
                 than those of the fit."
            ),
        }
    };
    let section = Section { title: "Curves".into(), figures: (0..3).map(figure).collect(), ..Section::default() };
    render(&Report {
        kind: "Comparison with data".into(),
        title: "A real cascade and the platform".into(),
        description: Some("One rumour among 111 users (Twitter15, as distributed with OASIS), and users by rules on the same follow graph.".into()),
        sections: vec![section],
        ..Report::default()
    })
}

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "../shared/data".into());
    let file = |what: &str| Path::new(&folder).join(format!("cascade-false-business-0-{what}.csv"));
    let (Some(follows), Some(rows)) = (read(&file("follows")), read(&file("curves"))) else {
        eprintln!("{} or the file of curves beside it cannot be read; name their folder", file("follows").display());
        return ExitCode::FAILURE;
    };
    let edges = Arc::new(follows.iter().map(|row| (row[0] as u32, row[1] as u32)).collect::<Vec<_>>());
    let real: Curves = std::array::from_fn(|i| rows.iter().map(|row| row[i + 1]).collect());
    let mut grid = Vec::new();
    for look in [0.05, 0.1, 0.2, 0.4, 0.6, 0.8] {
        for unequal in [0.0, 1.0, 1.5, 2.0, 2.5, 3.0] {
            for share in [0.1, 0.2, 0.4, 0.6, 0.8, 1.0] {
                grid.push((look, unequal, share, 0.0));
            }
        }
    }
    let seen = |curves: &Curves, which: &[usize]| {
        which.iter().map(|i| error(&curves[*i], &real[*i], 0..SEEN)).sum::<f64>() / which.len() as f64
    };
    let closest = |grid: &[Fit], which: &[usize]| {
        let tried = grid.iter().map(|fit| (*fit, seen(&mean_of(*fit, &edges, 1), which)));
        tried.min_by(|a, b| a.1.total_cmp(&b.1)).expect("a grid")
    };
    let (by_scale, off_scale) = closest(&grid, &[0]);
    let credits: Vec<Fit> = [0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0]
        .iter()
        .map(|credit| (by_scale.0, by_scale.1, by_scale.2, *credit))
        .collect();
    let (fit, off) = closest(&credits, &[1, 2]);
    println!(
        "fitted to the first {SEEN} minutes, {SEEDS} seeds per setting. The best of {} settings by scale: {} looks per \
         minute, an inequality of {}, {} shares per look (normalised error {off_scale:.3}). The best of {} settings by \
         depth and breadth: {} of the shares credited to the post itself ({off:.3})",
        grid.len(),
        fit.0,
        fit.1,
        fit.2,
        credits.len(),
        fit.3
    );
    // Other seeds than those of the fit.
    let found = mean_of(fit, &edges, 1001);
    println!("{:>8} {:>22} {:>22} {:>22}", "minute", "real s/d/b", "platform", "logistic");
    let curves: Curves = std::array::from_fn(|i| logistic(&real[i]));
    for t in [1, 5, 10, 20, 40, 80, 100, 150, 200, 300, 400, 499] {
        let show = |of: &Curves| format!("{:.1} / {:.1} / {:.1}", of[0][t], of[1][t], of[2][t]);
        println!("{t:>8} {:>22} {:>22} {:>22}", show(&real), show(&found), show(&curves));
    }
    if let Some(file) = std::env::args().nth(2) {
        let all = [("real", &real), ("platform", &found), ("logistic curve", &curves)];
        if let Err(error) = std::fs::write(&file, drawn(&all)) {
            eprintln!("{file} cannot be written: {error}");
            return ExitCode::FAILURE;
        }
    }
    println!("normalised RMSE of minutes {SEEN} to {MINUTES}, which nothing was fitted to:");
    println!("{:>8} {:>9} {:>9} {:>9}  the best", "", "platform", "constant", "logistic");
    for (i, name) in NAMES.iter().enumerate() {
        let constant = vec![real[i][SEEN - 1]; MINUTES];
        let off = [&found[i], &constant, &curves[i]].map(|of| error(of, &real[i], SEEN..MINUTES));
        let best =
            (0..3).min_by(|a, b| off[*a].total_cmp(&off[*b])).map_or("", |i| ["platform", "constant", "logistic"][i]);
        println!("{name:>8} {:>9.4} {:>9.4} {:>9.4}  {best}", off[0], off[1], off[2]);
    }
    ExitCode::SUCCESS
}
