//! Social behaviours against scripted members: what `polity diagnose` tags is exactly what the script plants, in two methods.

use crate::harness::{arg, polity, scratch};
use polity::kernel::ask::{Part, Request, ResponseFormat, Role};
use polity::{RunStatus, Simulation};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The right answer to every item.
const RIGHT: &str = "4";
const WRONG: &str = "7";
const ITEMS: u32 = 24;

/// The number of the item that is asked about.
fn case(request: &Request) -> u32 {
    let text = request.rendered();
    let (_, after) = text.split_once("Case ").unwrap();
    after.split(':').next().unwrap().parse().unwrap()
}

/// Whether the member has answered before.
fn spoke(request: &Request) -> bool {
    request.messages.iter().any(|message| message.role == Role::Assistant)
}

/// A reply in the form asked for: this answer, and the first of two options or the second.
fn reply(form: &ResponseFormat, answer: &str, first: bool) -> Value {
    match form {
        ResponseFormat::Record(fields) => {
            let text = |name: &str| if name == "answer" { answer } else { "It follows." };
            fields.iter().map(|(name, form)| (name.clone(), reply(form, text(name), first))).collect()
        }
        ResponseFormat::List { of, least, .. } => vec![reply(of, "an expert", first); *least as usize].into(),
        ResponseFormat::Choice(options) => options[usize::from(!first)].clone().into(),
        _ => answer.into(),
    }
}

/// (item, behaviour, turn, member)
type Tag = (u64, String, u64, u64);

fn planted(tags: &[(&str, u64, u64)], item: u32) -> Vec<Tag> {
    tags.iter().map(|(what, turn, member)| (u64::from(item), (*what).to_owned(), *turn, *member)).collect()
}

/// Runs scripted members and returns what is tagged.
fn tagged(
    folder: &Path,
    scenario: Value,
    has_reviews: bool,
    members: impl Fn(Simulation) -> Simulation,
) -> BTreeSet<Tag> {
    let item = |i: u32| json!({"question": format!("Case {i}: how many are there?"), "answer": RIGHT}).to_string();
    fs::write(folder.join("items.jsonl"), (0..ITEMS).map(item).collect::<Vec<_>>().join("\n")).unwrap();
    let run = folder.join("run");
    let simulation = Simulation::from_value(scenario).unwrap().relative_to(folder).out(&run);
    assert_eq!(members(simulation).run().unwrap().status(), RunStatus::Done);
    let said = polity(&["diagnose", arg(&run)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let run = &said.json["runs"][0];
    // Only a reviewer can give an answer that nobody asked for.
    let undecided = run["undecided_behaviours"].as_array().unwrap();
    assert_eq!(undecided.iter().any(|it| it["behaviour"] == "volunteer"), !has_reviews);
    let behaviours = run["behaviours"].as_array().unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let tag = |it: &Value| {
        assert_eq!((&it["call"]["round"], &it["call"]["agent"]), (&it["turn"], &it["member"]));
        (number(&it["item"]), it["behaviour"].as_str().unwrap().to_owned(), number(&it["turn"]), number(&it["member"]))
    };
    let tags: BTreeSet<Tag> = behaviours.iter().map(tag).collect();
    assert_eq!(tags.len(), behaviours.len());
    println!("{} behaviours are tagged", tags.len());
    tags
}

fn items() -> Value {
    json!({"file": "items.jsonl", "answer": "answer", "scorer": "number"})
}

/// A solver, a reviewer and an evaluator. By item: the first answer, the revised one, whether the reviewer accepts, its words, and what is
/// planted. In two of six kinds of items the reviewer objects without effect. In one of these two it names only the answer that it was shown
/// and a number of the question.
#[test]
fn in_a_group_that_reviews_what_is_tagged_is_what_is_planted() {
    type Kind = (&'static str, &'static str, bool, &'static str, &'static [(&'static str, u64, u64)]);
    const KINDS: [Kind; 6] = [
        (RIGHT, RIGHT, true, "It follows.", &[]),
        (WRONG, RIGHT, false, "I get 4.", &[("conformity", 0, 0), ("volunteer", 0, 1)]),
        (RIGHT, WRONG, false, "It does not follow.", &[("conformity", 0, 0), ("destructive", 0, 1)]),
        (RIGHT, RIGHT, false, "It is not 4, in case CASE.", &[]),
        // The evaluator sends it back, and another group revises it.
        (WRONG, RIGHT, true, "It follows.", &[("conformity", 1, 0)]),
        (WRONG, WRONG, false, "I get 50, not 7. So: 50", &[("volunteer", 0, 1)]),
    ];
    let kind = |request: &Request| KINDS[case(request) as usize % 6];
    let folder = scratch("behaviours-group");
    let scenario = json!({
        "polity": 2, "seed": 1, "rounds": 3, "method": {"kind": "agentverse", "reviews": 1},
        "team": [{"model": "script/solver"}, {"model": "script/reviewer"}, {"model": "script/evaluator", "role": "evaluator"}],
        "items": items(),
    });
    let found = tagged(&folder, scenario, true, |simulation| {
        let solver = move |request: &Request| {
            let (first, revised, ..) = kind(request);
            reply(&request.response_format, if spoke(request) { revised } else { first }, true)
        };
        let reviewer = move |request: &Request| {
            let (_, _, accepts, words, _) = kind(request);
            let mut said = reply(&request.response_format, "", accepts);
            said["reasons"] = words.replace("CASE", &case(request).to_string()).into();
            said
        };
        // It sends back the wrong answers that the reviewer lets pass.
        let evaluator = move |request: &Request| {
            let wrong = |part: &Part| matches!(part, Part::Said { answer, .. } if answer == WRONG);
            let shown = request.messages.iter().flat_map(|message| &message.parts).any(wrong);
            reply(&request.response_format, "", !(shown && kind(request).2))
        };
        simulation
            .model("script/solver", solver)
            .model("script/reviewer", reviewer)
            .model("script/evaluator", evaluator)
    });
    let all: BTreeSet<Tag> = (0..ITEMS).flat_map(|item| planted(KINDS[item as usize % 6].4, item)).collect();
    assert_eq!(found, all);
}

/// A discussion of three. By item: what the third member says first and later, what the others say later, and what is planted.
#[test]
fn in_a_discussion_what_is_tagged_is_what_is_planted() {
    type Kind = (&'static str, &'static str, &'static str, &'static [(&'static str, u64, u64)]);
    const KINDS: [Kind; 4] = [
        (RIGHT, RIGHT, RIGHT, &[]),
        // The first gives in to one of two, the second to both others.
        (WRONG, WRONG, WRONG, &[("conformity", 1, 1), ("destructive", 0, 2)]),
        (WRONG, RIGHT, RIGHT, &[("conformity", 1, 2)]),
        // Nobody gives in, and the last proposal stands.
        (WRONG, WRONG, RIGHT, &[("destructive", 0, 2)]),
    ];
    let kind = |request: &Request| KINDS[case(request) as usize % 4];
    let folder = scratch("behaviours-discussion");
    let scenario = json!({
        "polity": 2, "seed": 1, "rounds": 3, "method": {"kind": "discussion", "decision": "unanimity-consensus"},
        "team": [{"model": "script/most"}, {"model": "script/most"}, {"model": "script/third"}],
        "items": items(),
    });
    let found = tagged(&folder, scenario, false, |simulation| {
        let most = move |request: &Request| {
            reply(&request.response_format, if spoke(request) { kind(request).2 } else { RIGHT }, true)
        };
        let third = move |request: &Request| {
            let (first, later, ..) = kind(request);
            reply(&request.response_format, if spoke(request) { later } else { first }, true)
        };
        simulation.model("script/most", most).model("script/third", third)
    });
    let all: BTreeSet<Tag> = (0..ITEMS).flat_map(|item| planted(KINDS[item as usize % 4].3, item)).collect();
    assert_eq!(found, all);
}
