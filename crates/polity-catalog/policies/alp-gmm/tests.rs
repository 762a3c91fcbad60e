//! Students learn more from a teacher that looks for progress.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, play, refused};
use serde_json::{Value, json};

fn teaching(world: &Value, policy: &Value) -> Value {
    let mut policy = policy.clone();
    policy["kind"] = json!("alp-gmm");
    json!({"seed": 3, "rounds": 3_000, "agents": 4, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "mastered"}]})
}

#[test]
fn a_student_learns_more_from_tasks_on_which_it_makes_progress() {
    let world = json!({"kind": "task-space", "cells": 8, "learnable": 0.25});
    let reached = |policy: &Value| metric(play(&teaching(&world, policy)).rounds.last().unwrap(), "mastered.mean");
    let taught = reached(&json!({"fit_every": 100}));
    let (random, placebo) = (reached(&json!({"explore": 1})), reached(&json!({"fit_every": 100, "shuffled": true})));
    assert!(taught > 2.0 * random && taught > 1.5 * placebo, "{taught} {random} {placebo}");
}

#[test]
fn what_is_no_space_of_tasks_is_refused() {
    let world = json!({"kind": "task-space"});
    for (policy, key) in [
        (json!({"fit_every": 5}), "fit_every"),
        (json!({"explore": 2}), "explore"),
        (json!({"components": 1}), "components"),
        (json!({"act": "teach"}), "teach"),
        (json!({"reward": "marks"}), "marks"),
    ] {
        let why = refused(&teaching(&world, &policy));
        assert!(why.contains(key), "{why}");
    }
    let why = refused(&teaching(&json!({"kind": "cart-pole"}), &json!({"act": "left"})));
    assert!(why.contains("no task") && why.contains("`left`"), "{why}");
}
