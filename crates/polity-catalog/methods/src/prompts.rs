//! Every method lists its prompts: each of them can be changed, reaches a model, and nothing else tells members what to do.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::exchange::{drive, open};
use crate::testing::registry;
use polity_kernel::ask::tool::{Ended, Ran};
use polity_kernel::ask::{Effect, Outcome, ResponseFormat, Value};
use polity_kernel::method::Prompt;
use polity_kernel::tool::{Arguments, ToolCall};
use serde_json::{Value as Json, json};
use std::cell::Cell;
use std::collections::BTreeSet;

/// A task in which a method uses some of its prompts: changes of the common one.
fn tasks(method: &str) -> Vec<Json> {
    let code = json!({"items": {"file": "items", "shape": "humaneval"}});
    let own = match method {
        "agentcoder" | "codecor" => vec![code],
        "metagpt" => vec![json!({"items": code["items"], "agents": 5})],
        "agentverse" => vec![
            json!({"method": {"discussion": "horizontal"}}),
            json!({"method": {"discussion": "vertical"}, "items": code["items"]}),
        ],
        "agentwrite" => vec![
            json!({"team": [{"name": "Writer"}, {"name": "Judge", "role": "judge"}]}),
            json!({"method": {"order": "whole"}}),
        ],
        "crew" => vec![json!({"tools": ["calculator"], "agents": 2,
            "method": {"tasks": [{"member": 0, "task": "Begin."}, {"member": 1, "task": ""}]}})],
        "debate" => vec![json!({"method": {"aggregate": "judge"}}), json!({"agents": 1})],
        "discussion" => {
            vec![json!({"method": {"decision": "judge"}}), json!({"method": {"decision": "ranked-voting"}})]
        }
        "dylan" => vec![json!({"agents": 5, "method": {"keep": 2, "stop_early": false}})],
        "interviewed-discussion" => {
            vec![json!({"method": {"instruction": "debate"}}), json!({"method": {"instruction": "collaborate"}})]
        }
        "judge" => ["pairwise", "debate", "critic"]
            .map(|way| json!({"method": {"way": way}, "items": {"file": "items", "shape": "preference"}}))
            .to_vec(),
        "machine-som" => vec![json!({"method": {"patterns": ["debate", "reflection"]}})],
        "plangen" => vec![json!({"method": {"search": "selected"}})],
        "react" => vec![json!({"tools": ["calculator"], "agents": 1}), json!({"agents": 1})],
        "remembered-chat" => vec![json!({"items": {"distractor": "wrong"}, "team": [
            {"name": "Ann", "adversarial": true}, {"name": "Ben"}, {"name": "Cy", "role": "guardian"}]})],
        "sageval" => vec![json!({"team": [{"name": "Ann"}, {"name": "Ben", "role": "critic"}]})],
        "sparse-moa" => vec![json!({"method": {"roles": true, "stop_early": true}, "rounds": 4})],
        "symbolic-moe" => {
            vec![json!({"method": {"skills": "annotated", "profiles": {"test/any": {"sums": 1.0}}, "experts": 2}})]
        }
        "toolchain" => vec![
            json!({"environment": "api-plans", "method": {"proposals": 2, "nodes": 3}, "agents": 1,
                "items": {"file": "items", "answer": null}}),
            json!({"agents": 1}),
        ],
        "tree-of-thoughts" => vec![json!({"method": {"evaluate": "vote"}}), json!({"method": {"evaluate": "value"}})],
        "workflow" => [
            json!([
                {"id": "a", "ask": "Answer.", "samples": 2},
                {"id": "b", "act": "Act.", "most": 2},
                {"id": "c", "choose": ["a", "b"]},
                {"id": "d", "review": "c"},
                {"id": "d", "review": "c"},
                {"route": "Choose.", "branches": {"x": [{"text": "x"}], "y": [{"text": "y"}]}},
                {"hand_off": "Work.", "most": 2},
                {"chat": "Talk.", "most": 2},
            ]),
            json!([
                {"id": "a", "ask": "Answer."},
                {"id": "b", "review": "a"},
                {"revise": "a", "after": "b"},
                {"id": "b", "review": "a"},
                {"revise": "a", "after": "b"},
            ]),
        ]
        .map(|steps| json!({"tools": ["calculator"], "method": {"steps": steps}}))
        .to_vec(),
        _ => vec![json!({})],
    };
    let with_adversary = |task: &Json| {
        let mut task = task.clone();
        match task.get_mut("team") {
            Some(team) => team[0]["adversarial"] = true.into(),
            None => task["team"] = json!([{"adversarial": true}]),
        }
        task
    };
    let adversarial = with_adversary(&own[0]);
    own.into_iter().chain([adversarial]).collect()
}

/// The scenario of a task, with these prompts.
fn scenario(method: &str, task: &Json, prompts: &Json) -> Json {
    let usual = registry().facts(method).unwrap().usual;
    let mut scenario = json!({
        "rounds": usual.rounds.clamp(3, 6), "agents": usual.members.max(3), "model": "test/any",
        "method": {"kind": method, "prompts": prompts}, "items": {"file": "items", "answer": "answer"},
    });
    if let Some(team) = task["team"].as_array().filter(|team| team.len() > 1) {
        scenario["agents"] = team.len().into();
    }
    for (key, value) in task.as_object().unwrap() {
        match value {
            Json::Object(inner) if scenario[key].is_object() && inner.get("shape").is_none() => {
                inner.iter().for_each(|(key_in, value)| scenario[key][key_in] = value.clone());
            }
            value => scenario[key] = value.clone(),
        }
    }
    if let Some(items) = scenario["items"].as_object_mut() {
        items.retain(|_, value| !value.is_null());
    }
    scenario
}

/// A value of a format; different ones by number.
fn value(format: &ResponseFormat, n: u32) -> Value {
    match format {
        ResponseFormat::Text => Value::Text(format!("text {n}")),
        ResponseFormat::Choice(options) => Value::Choice(n % options.len() as u32),
        ResponseFormat::Number { low, high, .. } => Value::Number(if n.is_multiple_of(2) { *low } else { *high }),
        ResponseFormat::List { of, least, most } => {
            Value::List((0..2.clamp(*least, *most)).map(|i| value(of, n + i)).collect())
        }
        ResponseFormat::Record(fields) => Value::Record(fields.iter().map(|(_, format)| value(format, n)).collect()),
        ResponseFormat::Calls(tools) => {
            let calls = tools.iter().filter(|tool| n.is_multiple_of(3) || &*tool.name != "answer");
            let calls = calls.map(|tool| ToolCall::new(&*tool.name, &Arguments::new())).collect();
            Value::Calls { text: String::new(), calls }
        }
        ResponseFormat::Vector => panic!("no method asks for a vector"),
    }
}

/// The requests of a task. `silent`: whether no member ever gives a reply that fits.
fn asked(method: &str, task: &Json, prompts: &Json, silent: bool) -> Vec<Effect> {
    let scenario = scenario(method, task, prompts);
    let cells = |cells: [&str; 2]| cells.map(String::from).to_vec();
    let columns = [
        ("question", cells(["What is two plus two?", "What is six minus one?"])),
        ("answer", cells(["4", "5"])),
        ("wrong", cells(["text 1", "text 2"])),
        ("task_id", cells(["one", "two"])),
        ("prompt", cells(["def add(a, b):\n", "def sub(a, b):\n"])),
        ("test", cells(["def check(f):\n    assert f(1, 2) == 3\n", "def check(f):\n    assert f(2, 1) == 1\n"])),
        ("entry_point", cells(["add", "sub"])),
        ("canonical_solution", cells(["    return a + b\n", "    return a - b\n"])),
        ("answer_a", cells(["four", "five"])),
        ("answer_b", cells(["three", "six"])),
        ("label", cells(["A", "A"])),
    ];
    let machine =
        open(&scenario, &columns, &registry()).unwrap_or_else(|error| panic!("{method}: {error}: {scenario}"));
    let n = Cell::new(0u32);
    let reply = |effect: &Effect| {
        n.set(n.get() + 1);
        let number = n.get() / 2;
        let value = match effect.request.model.starts_with("tool/") {
            // Every other program fails.
            true => match number.is_multiple_of(2) {
                true => Ran { ended: Ended::Failed, status: 1, output: String::new(), errors: "failed".into() }.value(),
                false => {
                    Ran { ended: Ended::Finished, status: 0, output: String::new(), errors: String::new() }.value()
                }
            },
            false if silent => return Outcome::Invalid { raw: String::new(), why: "no reply".into() },
            false => value(&effect.request.response_format, number),
        };
        // The first try of a document does not fit.
        let is_document = effect.request.purpose == "write"
            && effect.request.messages.iter().any(|message| {
                message.rendered().contains("<document>") && !message.rendered().contains("<not-accepted>")
            });
        if is_document && number.is_multiple_of(2) {
            return Outcome::Invalid { raw: String::new(), why: "too short".into() };
        }
        Outcome::Reply { value, raw: String::new(), repaired: false }
    };
    let (effects, _) = drive(machine, &reply).unwrap_or_else(|bug| panic!("{method}: {bug}"));
    effects.into_iter().filter(|effect| !effect.request.model.starts_with("tool/")).collect()
}

/// A text in the place of a prompt, with all its placeholders.
fn marked(prompt: &Prompt) -> String {
    let places: Vec<String> = prompt.placeholders().iter().map(|name| format!("{{{{ {name} }}}}")).collect();
    format!("<{}> {}", prompt.name, places.join(" "))
}

/// The longest part of a prompt between its placeholders.
fn longest(prompt: &Prompt) -> &'static str {
    let parts = prompt.text.split("{{").map(|part| part.split_once("}}").map_or(part, |(_, rest)| rest).trim());
    parts.max_by_key(|part| part.len()).unwrap_or_default()
}

#[test]
fn every_prompt_is_listed_can_be_changed_and_reaches_a_model() {
    let mut missing = Vec::new();
    for card in registry().methods() {
        let prompts = registry().facts(card.name).unwrap().prompts;
        let names: BTreeSet<&str> = prompts.iter().map(|prompt| prompt.name).collect();
        assert_eq!(names.len(), prompts.len(), "{}: names of prompts are unique", card.name);
        let changed: Json = prompts.iter().map(|prompt| (prompt.name, marked(prompt))).collect();
        let mut seen = BTreeSet::new();
        for (task, silent) in tasks(card.name).into_iter().flat_map(|task| [(task.clone(), false), (task, true)]) {
            for effect in asked(card.name, &task, &changed, silent) {
                let request = format!(
                    "{}{}",
                    effect.request.messages.iter().map(|message| message.rendered()).collect::<Vec<_>>().join("\n"),
                    json!(effect.request.response_format)
                );
                seen.extend(names.iter().copied().filter(|name| request.contains(&format!("<{name}>"))));
                assert!(
                    request.contains('<') || card.name == "workflow",
                    "{}: no prompt tells what to do: {request}",
                    card.name
                );
                let left =
                    prompts.iter().find(|prompt| longest(prompt).len() > 15 && request.contains(longest(prompt)));
                assert_eq!(
                    left.map(|prompt| prompt.name),
                    None,
                    "{}: a prompt was changed, and is still used",
                    card.name
                );
            }
        }
        missing.extend(names.difference(&seen).map(|name| format!("{}: {name}", card.name)));
    }
    assert!(missing.is_empty(), "these prompts reach no model:\n{}", missing.join("\n"));
}

#[test]
fn a_changed_prompt_replaces_the_methods_own_words() {
    let own = asked("debate", &json!({}), &json!({}), false);
    assert!(own[0].request.messages[0].rendered().contains("as short as it can be"));
    let longer = asked("debate", &json!({}), &json!({"length": "in about 120 words"}), false);
    assert_eq!(
        own[0].request.messages[0].rendered().replace("as short as it can be", "in about 120 words"),
        longer[0].request.messages[0].rendered()
    );
}
