//! Weights that were learned, played in other runs; weights that do not fit.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, open, play, play_with};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn inputs(bytes: &[u8]) -> Inputs {
    Inputs { bytes: [("w.safetensors".to_owned(), bytes.into())].into(), ..Inputs::default() }
}

fn scenario(world: &Value, rounds: u32, policy: &Value) -> Value {
    json!({"seed": 9, "rounds": rounds, "agents": 16, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "episode-return"}]})
}

fn learned(choose: &str) -> Value {
    json!({"kind": "learned", "weights": {"file": "w.safetensors"}, "choose": choose})
}

fn trained() -> Vec<u8> {
    let ppo = json!({"kind": "ppo", "horizon": 32, "minibatch": 128, "learning_rate": 0.002});
    let played = play(&scenario(&json!({"kind": "cart-pole"}), 1_000, &ppo));
    played.society.weights().unwrap().remove(0).1
}

#[test]
fn what_was_learned_is_played_and_what_does_not_fit_is_refused() {
    let (bytes, pole) = (trained(), json!({"kind": "cart-pole"}));
    for choose in ["best", "sampled"] {
        let played = play_with(&scenario(&pole, 600, &learned(choose)), &inputs(&bytes), 1);
        let reached = metric(played.rounds.last().unwrap(), "episode-return.mean");
        assert!(reached > 100.0, "{choose}: {reached}");
        assert!(played.society.weights().unwrap().is_empty());
    }
    let refused = |world: &Value, policy: &Value, bytes: &[u8]| {
        open(&scenario(world, 1, policy), &inputs(bytes), 1).err().unwrap().to_string()
    };
    let game = json!({"kind": "matrix-game"});
    let why = refused(&game, &learned("best"), &bytes);
    assert!(why.contains("`cart-pole`") && why.contains("position"), "{why}");
    let why = refused(&game, &json!({"kind": "ppo", "weights": {"file": "w.safetensors"}}), &bytes);
    assert!(why.contains("position, speed, angle, turn") && why.contains("cart-pole"), "{why}");
    let why = refused(&pole, &json!({"kind": "ppo", "hidden": [32, 32], "weights": {"file": "w.safetensors"}}), &bytes);
    assert!(why.contains("`policy.0.weight` is 4 by 64, and must be 4 by 32"), "{why}");
    let taught = json!({"kind": "ppo", "teacher": {"weights": {"file": "w.safetensors"}}});
    let why = refused(&game, &taught, &bytes);
    assert!(why.contains("position, speed, angle, turn") && why.contains("teacher.weights"), "{why}");
    assert!(open(&scenario(&pole, 1, &taught), &inputs(&bytes), 1).is_ok());
    let why = refused(&pole, &learned("best"), &bytes[..bytes.len() - 1]);
    assert!(why.contains("safetensors"), "{why}");
    let why = refused(&pole, &json!({"kind": "learned", "weights": {"file": "w.txt"}}), &bytes);
    assert!(why.contains("`.safetensors`"), "{why}");
}
