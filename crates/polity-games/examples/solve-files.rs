//! Solves games from `.nfg` files by the methods that `scripts/solvers.sh` compares, and prints one JSON object for each game.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, clippy::expect_used)]

use polity_games::correlated::{Aim, coarse, correlated};
use polity_games::{nash, normal, quantal, stackelberg};
use serde_json::{Value, json};

fn or_error<T: serde::Serialize>(result: Result<T, String>) -> Value {
    result.map_or_else(|error| json!({ "error": error }), |found| json!(found))
}

fn main() {
    for file in std::env::args().skip(1) {
        let game = normal::read(&std::fs::read_to_string(&file).expect("a file")).expect("a game");
        let two = game.players.len() == 2;
        let labels = if two { game.sizes().iter().sum() } else { 0 };
        let line = json!({
            "file": file,
            "nash": or_error(nash::all(&game)),
            "pure": nash::pure(&game),
            "lemke_howson": (0..labels).map(|label| or_error(nash::lemke_howson(&game, label))).collect::<Vec<_>>(),
            "traced": or_error(nash::traced(&game)),
            "zero_sum": nash::is_zero_sum(&game).then(|| or_error(nash::zero_sum(&game))),
            "correlated": or_error(correlated(&game, Aim::Welfare)),
            "coarse": or_error(coarse(&game, Aim::Welfare)),
            "quantal": or_error(quantal::logit(&game, 0.5)),
            "stackelberg": two.then(|| or_error(stackelberg::strong(&game, 0))),
        });
        println!("{line}");
    }
}
