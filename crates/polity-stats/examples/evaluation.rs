//! Prints the figures of `polity_stats::evaluation` of scores on standard input, for `scripts/rliable.sh`, which compares them with rliable's.
//!
//! Input: a line for each task of the first learner with its scores, an empty line, the same for the second one, an empty line, and
//! a line of thresholds. Output: lines `NAME FIGURE LOW HIGH`.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    reason = "a program for a script, which sees what is wrong"
)]

use polity_stats::Estimate;
use polity_stats::evaluation::{Scores, aggregates, performance_profile, probability_of_improvement};
use std::io::Read;

fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

fn print(name: &str, found: Estimate) {
    let shown = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:?}"));
    println!("{name} {} {} {}", shown(found.mean), shown(found.low), shown(found.high));
}

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("text on standard input");
    let blocks: Vec<Vec<Vec<f64>>> = text.split("\n\n").map(|block| block.lines().map(numbers).collect()).collect();
    let [first, second, thresholds] = blocks.as_slice() else { panic!("three blocks") };
    let first: Vec<&[f64]> = first.iter().map(Vec::as_slice).collect();
    let second: Vec<&[f64]> = second.iter().map(Vec::as_slice).collect();
    let tell = |name: &str, scores: &Scores<'_>| {
        let found = aggregates(scores, 1.0).expect("scores");
        print(&format!("{name}.iqm"), found.iqm);
        print(&format!("{name}.mean"), found.mean);
        print(&format!("{name}.median"), found.median);
        print(&format!("{name}.optimality_gap"), found.optimality_gap);
        let profile = performance_profile(scores, &thresholds[0]).expect("scores");
        for (at, point) in profile.into_iter().enumerate() {
            print(&format!("{name}.profile.{at}"), point);
        }
    };
    tell("x", &first);
    tell("y", &second);
    print("improvement", probability_of_improvement(&first, &second).expect("scores"));
}
