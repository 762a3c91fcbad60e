//! The paper's rule on scripted samples.

use crate::official::{Official, answer, play};

#[test]
fn acts_by_the_rule_of_the_paper() {
    Official::compare(include_str!("official.json"), include_str!("README.md"), &[], &|case| {
        let samples: Vec<Option<String>> = serde_json::from_value(case.replies.clone()).unwrap();
        let who = |_: usize, effect: &polity_kernel::ask::Effect| (effect.id.round, effect.id.actor.into(), "answer");
        play("self-consistency", &case.settings, &who, &|(_, member, _), marker| {
            answer(marker, samples[member.as_u64().unwrap() as usize].as_ref())
        })
    });
}
