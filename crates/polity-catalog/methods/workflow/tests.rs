//! Workflows against a scripted model: what is done, who is shown what, and errors of the keys.
#![allow(clippy::panic, clippy::unwrap_used)]

use super::plan::places;
use crate::testing::{evaluation, play_evaluation};
use polity_kernel::ask::tool::{Ended, Ran};
use polity_kernel::ask::{Effect, ResponseFormat, Value};
use polity_kernel::machine::ItemReport;
use polity_kernel::tool::ToolCall;
use serde_json::{Value as Json, json};
use std::cell::RefCell;

fn scenario(method: Json) -> Json {
    json!({"rounds": 1, "model": "test/scripted", "method": method, "tools": ["calculator"],
        "team": [{"name": "Writer"}, {"name": "Critic", "tools": []}],
        "items": {"file": "items", "answer": "answer", "checker": "check.py"}})
}

fn workflow(steps: Json) -> Json {
    scenario(json!({"kind": "workflow", "steps": steps}))
}

/// The result of a function of the checker file.
fn checked(passed: bool, text: &str, measures: &Json) -> Value {
    let json = json!({"passed": passed, "text": text, "score": f64::from(u8::from(passed)), "measures": measures});
    let output = format!("noise\n\u{1e}checked {json}\n");
    Ran { ended: Ended::Finished, status: 0, output, errors: String::new() }.value()
}

/// The function that is called, and the texts that it is given.
fn called(effect: &Effect) -> Option<(String, Vec<String>)> {
    let program = effect.request.messages[0].rendered();
    let line = program.lines().find_map(|line| line.strip_prefix("_value = _main("))?;
    let mut values = serde_json::Deserializer::from_str(line).into_iter::<String>();
    values.next()?.ok()?;
    let rest = &line[values.byte_offset() + 2..];
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let function = values.next()?.ok()?;
    let texts = rest.rsplit_once("json.loads(")?.1.trim_end_matches("))").to_owned();
    let texts: String = serde_json::from_str(&texts).ok()?;
    Some((function, serde_json::from_str(&texts).ok()?))
}

fn play(scenario: &Json, model: impl Fn(&Effect) -> Value, break_at: Option<u32>) -> (Vec<ItemReport>, String) {
    let rows = [("What is it?".to_owned(), "right".to_owned()), ("And that?".to_owned(), "right".to_owned())];
    let (items, digest, _) = play_evaluation(scenario, &rows, model, break_at);
    (items, digest)
}

fn is_run(effect: &Effect) -> bool {
    effect.request.model.starts_with("tool/")
}

/// The prompt's parts after the question.
fn shown(effect: &Effect) -> String {
    effect.request.messages.iter().map(|message| message.rendered()).collect::<Vec<_>>().join("\n--\n")
}

fn answer(text: &str) -> Value {
    Value::Record(vec![Value::Text("because".into()), Value::Text(text.into())])
}

/// Scores an answer that is `right`.
fn scored(effect: &Effect) -> Value {
    let (function, texts) = called(effect).unwrap();
    assert_eq!(function, "check");
    checked(texts == ["right"], "scored", &json!({"value": 7}))
}

#[test]
fn documents_are_shown_and_findings_lead_to_another_try() {
    let steps = json!([
        {"id": "design", "part": "design", "ask": "Design it."},
        {"id": "program", "ask": "Write {question} after {design}.", "see": ["design"]},
        {"repeat": [
            {"id": "tested", "run": "try_out", "with": ["program", "design"]},
            {"revise": "program", "after": "tested"},
        ], "until": "tested", "most": 4},
    ]);
    let seen = RefCell::new(Vec::new());
    let model = |effect: &Effect| {
        if is_run(effect) {
            let (function, texts) = called(effect).unwrap();
            return match function.as_str() {
                "try_out" => {
                    assert_eq!(texts[1], "a plan");
                    checked(texts[0] == "right", "expected: right", &json!({"recall": 0.5}))
                }
                _ => scored(effect),
            };
        }
        if effect.request.response_format == ResponseFormat::Text {
            return Value::Text("a plan".into());
        }
        let shown = shown(effect);
        assert!(shown.contains("design:\na plan") && shown.contains("after a plan."), "{shown}");
        seen.borrow_mut().push(shown.contains("expected: right"));
        answer(if shown.contains("expected: right") { "right" } else { "wrong" })
    };
    let scenario = workflow(steps);
    let (items, digest) = play(&scenario, model, None);
    assert!(items.iter().all(|item| item.correct == Some(true)), "{items:?}");
    // Tool calls, steps (two questions, two runs and a revision), recall, and what the score measures.
    assert_eq!(items[0].measured, [Some(0.0), Some(5.0), Some(0.5), None, None, None, None, Some(7.0)]);
    assert_eq!(*seen.borrow(), [false, false, true, true]);
    for at in 0..4 {
        assert_eq!(play(&scenario, model, Some(at)).1, digest, "broken off after round {at}");
    }
}

#[test]
fn each_element_is_worked_on_and_named_in_templates() {
    let steps = json!([
        {"id": "files", "part": "files", "ask": "List them."},
        {"id": "code", "each": "files", "as": "file", "steps": [
            {"id": "draft", "part": "file:{file}", "ask": "Write {file}.", "member": "Critic"},
            {"id": "final", "text": "{draft}!"},
        ]},
        {"id": "joined", "text": "{row.answer}|{code}"},
    ]);
    let model = |effect: &Effect| {
        if is_run(effect) {
            let (_, texts) = called(effect).unwrap();
            return checked(texts == ["right|### a.py\nof a!\n### b.py\nof b!\n"], "", &json!({}));
        }
        let shown = shown(effect);
        Value::Text(match effect.id.actor {
            0 => " a.py\n\nb.py ".into(),
            _ => {
                if shown.contains("Write a.py.") {
                    "of a".into()
                } else {
                    "of b".to_owned()
                }
            }
        })
    };
    let (items, _) = play(&workflow(steps), model, None);
    assert!(items.iter().all(|item| item.correct == Some(true)), "{items:?}");
}

#[test]
fn votes_choices_reviews_and_conditions_decide() {
    let steps = json!([
        {"id": "drafts", "ask": "Try.", "samples": 3},
        {"id": "voted", "vote": ["drafts"]},
        {"id": "chosen", "choose": ["drafts", "voted"], "member": "Critic"},
        {"id": "checked", "review": "voted", "member": "Critic", "see": ["chosen"]},
        {"id": "last", "text": "right", "when": {"failed": "checked", "has": ["chosen", "B"], "lacks": ["voted", "c"]}},
        {"id": "never", "text": "never", "when": {"passed": "checked"}},
    ]);
    let model = |effect: &Effect| {
        if is_run(effect) {
            return scored(effect);
        }
        let chooses = |value: u32| Value::Record(vec![Value::Text("so".into()), Value::Choice(value)]);
        match effect.request.purpose.as_str() {
            "choose" => chooses(1),
            "check" => {
                assert!(shown(effect).contains("chosen:\nb"), "{}", shown(effect));
                chooses(1)
            }
            // Samples of the first of two members are 0, 2 and 4.
            _ => answer(if effect.request.sample == 0 { "a" } else { "b" }),
        }
    };
    let (items, _) = play(&workflow(steps), model, None);
    assert!(
        items.iter().all(|item| item.answer.as_deref() == Some("right") && item.correct == Some(true)),
        "{items:?}"
    );
}

#[test]
fn tools_are_called_by_the_workflow_and_by_members() {
    let steps = json!([
        {"id": "sum", "call": "calculate", "arguments": {"expression": "40 + 2"}},
        {"id": "bad", "call": "calculate", "arguments": {"expression": "40 +"}},
        {"id": "acted", "act": "Use {sum}.", "most": 2, "when": {"failed": "bad"}},
    ]);
    let model = |effect: &Effect| {
        if is_run(effect) {
            return scored(effect);
        }
        let shown = shown(effect);
        assert!(shown.contains("Use 42."), "{shown}");
        let (tool, arguments) = match shown.contains("Result") {
            true => ("answer", json!({"answer": "right"})),
            false => ("calculate", json!({"expression": "1 + 1"})),
        };
        Value::Calls { text: String::new(), calls: vec![ToolCall::new(tool, arguments.as_object().unwrap())] }
    };
    let scenario = workflow(steps);
    let (items, digest) = play(&scenario, model, None);
    assert!(items.iter().all(|item| item.correct == Some(true)), "{items:?}");
    assert_eq!(items[0].measured[..2], [Some(3.0), Some(3.0)]);
    for at in 0..4 {
        assert_eq!(play(&scenario, model, Some(at)).1, digest, "broken off after round {at}");
    }
}

#[test]
fn placebos_cover_outputs_and_draw_results() {
    let steps = json!([
        {"id": "design", "part": "design", "ask": "Design it in 3 steps."},
        {"id": "program", "ask": "Write.", "see": ["design"]},
        {"id": "tested", "run": "try_out", "with": ["program"]},
        {"id": "passed", "text": "right", "when": {"passed": "tested"}},
    ]);
    let model = |effect: &Effect| match () {
        () if is_run(effect) => match called(effect).unwrap().0.as_str() {
            "try_out" => checked(false, "no", &json!({})),
            _ => scored(effect),
        },
        () if effect.request.response_format == ResponseFormat::Text => Value::Text("plan 12, a".into()),
        () => {
            assert!(shown(effect).contains("design:\nxxxx 00, x"), "{}", shown(effect));
            answer("wrong")
        }
    };
    let method = |drawn: Json| json!({"kind": "workflow", "steps": steps, "blank": ["design"], "drawn": drawn});
    let (items, _) = play(&scenario(method(json!([]))), model, None);
    assert!(items.iter().all(|item| item.correct == Some(false)), "{items:?}");
    let seeds = (0..8).map(|seed| {
        let mut scenario = scenario(method(json!(["tested"])));
        scenario["seed"] = json!(seed);
        play(&scenario, model, None).0.iter().filter(|item| item.correct == Some(true)).count()
    });
    let passed: usize = seeds.sum();
    assert!((1..16).contains(&passed), "{passed} of 16 by lot");
}

#[test]
fn a_checker_scores_any_method() {
    let mut scenario = scenario(json!("direct"));
    scenario["team"] = json!([{"name": "Writer"}]);
    let model = |effect: &Effect| if is_run(effect) { scored(effect) } else { Value::Text("right".into()) };
    let (items, _) = play(&scenario, model, None);
    assert!(items.iter().all(|item| item.correct == Some(true) && item.note.as_deref() == Some("scored")), "{items:?}");
}

#[test]
fn errors_name_the_step_and_what_there_is() {
    let refused = |steps: Json| {
        let rows = [("?".to_owned(), "right".to_owned())];
        let opened = std::panic::catch_unwind(|| evaluation(&workflow(steps), &rows)).err().unwrap();
        opened.downcast_ref::<String>().unwrap().clone()
    };
    for (steps, message) in [
        (json!([]), "a workflow needs at least one step"),
        (json!([{"id": "a"}]), "this one has none"),
        (json!([{"ask": "x", "text": "y"}]), "this one has ask and text"),
        (json!([{"id": "a", "ask": "x", "see": ["b"]}]), "there is no step `b`; the steps are a"),
        (json!([{"repeat": [{"id": "a", "text": "{b}"}]}]), "`{b}` is neither a step"),
        (json!([{"id": "a", "text": "x"}, {"revise": "a"}]), "`revise` needs the step with the finding"),
        (json!([{"id": "a", "ask": "x", "samples": 0}]), "samples"),
    ] {
        let said = refused(steps);
        assert!(said.contains(message), "{said}");
    }
    assert_eq!(places("{a} {b c} {{d}} {").iter().map(|(_, _, name)| *name).collect::<Vec<_>>(), ["a", "d"]);
}
