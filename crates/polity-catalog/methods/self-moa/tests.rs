//! Samples and windows on scripted replies, against the program of the mixture and the paper's rule.

use crate::official::{Official, answer, play};
use serde_json::Value as Json;

#[test]
fn acts_as_the_mixture_of_one_model_and_by_the_rule_of_the_paper() {
    Official::compare(include_str!("official.json"), include_str!("README.md"), &[], &|case| {
        let texts = |key: &str| -> Vec<Option<String>> { serde_json::from_value(case.replies[key].clone()).unwrap() };
        let (samples, said) = (texts("answers"), texts("aggregator"));
        // The samples are asked first, then windows.
        let who = |n: usize, _: &polity_kernel::ask::Effect| match n.checked_sub(samples.len()) {
            None => (0, n.into(), "answer"),
            Some(window) => (1, format!("aggregator {window}").into(), "aggregate"),
        };
        let played = play("self-moa", &case.settings, &who, &|(_, member, _), marker| match member {
            Json::Number(n) => answer(marker, samples[n.as_u64().unwrap() as usize].as_ref()),
            other => {
                answer(marker, said[other.as_str().unwrap()["aggregator ".len()..].parse::<usize>().unwrap()].as_ref())
            }
        });
        // All calls go to the best member, who is the first here.
        assert!(played.actors.iter().all(|actor| *actor == 0));
        played
    });
}
