//! A round robin of all strategies: `cargo run --release -p polity-games --example tournament`.
//!
//! Without arguments it prints the ranking, and how many turns it plays in a second. For `scripts/axelrod.sh`, `--json [TURNS]` prints
//! the moves of all matches between deterministic strategies, and `--scores [TURNS]` the scores of all matches, summed over 300
//! repetitions.
#![allow(clippy::print_stdout, clippy::expect_used)]

use polity_games::iterated::{Conditions, Length, Tournament, all};
use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let turns = |place: usize| words.get(place).map_or(Ok(200), |turns| turns.parse()).expect("turns are a number");
    if let Some(what) = words.first() {
        let moves = what == "--json";
        assert!(moves || what == "--scores", "it is --json or --scores, not {what}");
        let mut tournament = tournament(turns(1), 0.0, if moves { 1 } else { 300 });
        tournament.strategies.retain(|strategy| !moves || !strategy.is_random());
        println!("{}", serde_json::to_string(&tournament.run(moves)).expect("results are plain data"));
        return;
    }
    let results = tournament(200, 0.0, 10).run(false);
    println!("{:<26} {:>7} {:>12} {:>5}", "strategy", "score", "cooperation", "wins");
    for rank in &results.ranking {
        println!("{:<26} {:>7.3} {:>12.3} {:>5}", rank.name, rank.score, rank.cooperation, rank.wins);
    }
    let strategies = results.ranking.len();
    println!("\n{strategies} strategies, {} pairs, 200 turns each; the best of 3 runs", results.pairs.len());
    // Matches whose moves are kept are played to the end; the others are counted from the first cycle on.
    for (what, noise, repetitions, moves) in [
        ("every turn played, moves kept", 0.0, 1, true),
        ("with noise 0.01: every turn played", 0.01, 20, false),
        ("without noise: cycles counted", 0.0, 20, false),
    ] {
        let tournament = tournament(200, noise, repetitions);
        let rate = |_| {
            let begun = Instant::now();
            let results = tournament.run(moves);
            let turns: u64 = results.pairs.iter().map(|pair| pair.turns).sum();
            turns as f64 / begun.elapsed().as_secs_f64()
        };
        println!("{what}: {:.1} million turns/s", (0..3).map(rate).fold(0.0, f64::max) / 1e6);
    }
}

fn tournament(turns: u32, noise: f64, repetitions: u32) -> Tournament {
    let conditions = Conditions { length: Length::Turns(turns), noise, ..Conditions::default() };
    let (strategies, missing) = all(&conditions.payoffs);
    assert!(missing.is_empty(), "the prisoner's dilemma has all strategies");
    Tournament { strategies, conditions, repetitions, self_play: true, seed: 1 }
}
