//! Tests of `estimation`: the studies against the learners run by hand, and what is refused.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, play, refused};
use serde_json::{Value, json};

fn study(seed: u64, agents: u32, study: &Value) -> Value {
    json!({
        "seed": seed, "rounds": 2000, "agents": agents, "world": {"kind": "estimation", "study": study},
        "cohorts": [{"policy": {"kind": "rule", "actions": [{"act": "run"}]}}], "metrics": [{"kind": "mean", "of": "error"}],
    })
}

fn without_error(mut scenario: Value, of: &str) -> Value {
    scenario["metrics"] = json!([{"kind": "mean", "of": of}]);
    scenario
}

fn last(scenario: &Value, name: &str) -> f64 {
    metric(play(scenario).rounds.last().unwrap(), name)
}

#[test]
fn scalars_are_means_of_columns_and_the_least_of_them() {
    let scenario = study(3, 40, &json!({"gaussian-stream": {"rounds": 12}}));
    let played = play(&scenario);
    assert_eq!(played.rounds.len(), 12);
    let mut least = f64::INFINITY;
    for round in &played.rounds {
        let mean = metric(round, "error");
        assert!((mean - metric(round, "error.mean")).abs() < 1e-12);
        least = least.min(mean);
        assert_eq!(metric(round, "least-error"), least);
    }
    assert_eq!(metric(played.rounds.last().unwrap(), "components"), 2.0);
}

#[test]
fn errors_of_means_fall_as_one_over_the_root_of_points() {
    // Two clusters of standard deviation 1: the mean of n points misses by 1 / sqrt(n) in each dimension.
    let scenario = study(4, 400, &json!({"gaussian-stream": {"rounds": 40, "points": 20, "dimensions": 3}}));
    let error = last(&scenario, "error");
    let expected = 1.0 / 400.0_f64.sqrt();
    assert!((error / expected - 1.0).abs() < 0.1, "{error} {expected}");
}

#[test]
fn slopes_are_those_of_exact_powers() {
    let of = |grows: &str, form: &str, name: &str| {
        let study_of =
            json!({"gaussian-stream": {"rounds": 6, "points": 40, "dimensions": 8, "grows": grows, "form": form}});
        last(&study(5, 1, &study_of), name)
    };
    assert!((of("points", "precision", "slope-points") - 1.0).abs() < 0.05);
    assert!((of("dimensions", "precision", "slope-dimensions") - 2.0).abs() < 1e-6);
    assert!(of("dimensions", "covariance", "slope-dimensions") > 2.5);
}

#[test]
fn digits_are_read_in_base_17_and_wrong_lines_are_named() {
    // Two images that are alike but for one pixel.
    let images: String = (0..40).map(|i| if i % 2 == 0 { "3g00\n" } else { "7000\n" }).collect();
    let scenario = without_error(study(6, 3, &json!({"digits": {"images": images, "novelty": 0.0}})), "accuracy");
    assert_eq!(last(&scenario, "accuracy"), 1.0);
    for (images, what) in [("3g0\n7000\n", "line 2"), ("x000\n", "label"), ("3h00\n", "pixel"), ("", "too few")] {
        let scenario = without_error(study(6, 3, &json!({"digits": {"images": images}})), "accuracy");
        let error = refused(&scenario);
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn the_truth_bounds_what_em_finds_and_equal_processes_cannot_be_told_apart() {
    let of = |start: &str, pull: f64| {
        let params = json!({"decision-processes": {"trajectories": 200, "steps": 40, "start": start, "pull": pull}});
        last(&without_error(study(7, 3, &params), "accuracy"), "accuracy")
    };
    assert!(of("truth", 0.6) > 0.95);
    assert!(of("random", 0.6) < 0.9);
    assert!(of("spectral", 0.0) < 0.65);
}

#[test]
fn a_fit_that_sees_the_observation_has_a_larger_effective_sample_than_one_that_does_not() {
    let of = |blind: bool| {
        let params = json!({"particle-filter": {"steps": 20, "blind": blind, "reference": false}});
        last(&without_error(study(8, 30, &params), "effective-lead"), "effective-lead")
    };
    let (seeing, blind) = (of(false), of(true));
    assert!(seeing > 0.1 && blind < 0.05, "{seeing} {blind}");
}

#[test]
fn vehicles_end_in_the_target_distribution_if_they_follow_their_own_component() {
    let of = |component: &str, name: &str| {
        let params = json!({"steering": {"component": component}});
        last(&without_error(study(9, 2000, &params), "within"), name)
    };
    // Squared standardised distances of four entries: chi-square, whose mean is 4 and whose mean square is 24.
    assert!(
        (of("posterior", "distance") - 4.0).abs() < 0.25 && (of("posterior", "distance-squared") - 24.0).abs() < 3.0
    );
    assert!(of("prior", "distance") > 4.5);
    // What is spent is what was planned.
    assert!((of("posterior", "spent") / of("posterior", "planned") - 1.0).abs() < 0.01);
}

#[test]
fn losses_of_a_regular_mixture_fall_as_the_root_of_points() {
    let params = json!({"softmax-gating": {"slope": 2.0, "first": 7, "rounds": 3}});
    let scenario = without_error(study(10, 20, &params), "loss");
    let slope = last(&scenario, "slope-loss");
    assert!((-0.75..-0.3).contains(&slope), "{slope}");
    assert!(last(&scenario, "gain") >= 0.0);
}

#[test]
fn what_does_not_fit_is_refused_with_its_key() {
    for (params, key) in [
        (json!({"gaussian-stream": {"dimensions": 0}}), "dimensions"),
        (json!({"gaussian-stream": {"dimensions": 64, "rounds": 5, "grows": "dimensions"}}), "rounds"),
        (json!({"particle-filter": {"particles": 1}}), "particles"),
        (json!({"softmax-gating": {"rounds": 1}}), "rounds"),
        (json!({"steering": {"risk": 0.0001}}), "no point lies within all cones"),
        (json!({"decision-processes": {"pull": 2}}), "pull"),
        (json!({"digits": {"images": "3g", "pixel": 0}}), "pixel"),
    ] {
        let error = refused(&study(1, 2, &params));
        assert!(error.contains(key), "{error}");
    }
}

#[test]
fn a_full_buffer_changes_the_answer_to_the_last_query() {
    let of = |more: &Value, name: &str| {
        let mut buffers = json!({"victims": 30});
        more.as_object().unwrap().iter().for_each(|(key, value)| buffers[key] = value.clone());
        last(&without_error(study(6, 4, &json!({"expert-buffers": buffers})), name), name)
    };
    assert!(of(&json!({}), "accuracy") > 0.98);
    assert_eq!(of(&json!({}), "dropped"), 1.0);
    assert!(of(&json!({}), "flipped") > 0.5);
    // An attack on another expert leaves room for the victim, and so do buffers for all and batches of one.
    for none in [json!({"misled": true}), json!({"capacity_factor": 4}), json!({"others": "none"})] {
        assert_eq!((of(&none, "dropped"), of(&none, "flipped")), (0.0, 0.0), "{none}");
    }
    let mixed = of(&json!({"others": "mixed"}), "dropped");
    assert!(mixed > 0.0 && mixed < 0.3, "{mixed}");
    let why = refused(&study(1, 1, &json!({"expert-buffers": {"capacity_factor": 0}})));
    assert!(why.contains("study.expert-buffers.capacity_factor"), "{why}");
}
