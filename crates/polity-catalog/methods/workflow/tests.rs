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
    let mut team = vec![json!({"name": "Writer"})];
    team.extend(method.to_string().contains("Critic").then(|| json!({"name": "Critic", "tools": []})));
    json!({"rounds": 1, "model": "test/scripted", "method": method, "tools": ["calculator"], "team": team,
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

/// A scripted model for flows without programs: the checker scores by itself.
fn scripted(reply: impl Fn(&Effect, &str) -> Value) -> impl Fn(&Effect) -> Value {
    move |effect| if is_run(effect) { scored(effect) } else { reply(effect, &shown(effect)) }
}

/// Plays a flow, and again from the checkpoint after each round.
fn played(steps: Json, model: impl Fn(&Effect) -> Value) -> Vec<ItemReport> {
    let scenario = workflow(steps);
    let (items, digest) = play(&scenario, &model, None);
    for at in 0..6 {
        assert_eq!(play(&scenario, &model, Some(at)).1, digest, "broken off after round {at}");
    }
    items
}

#[test]
fn a_router_chooses_the_branch_that_is_done() {
    let steps = json!([
        {"id": "desk", "route": "Whose is it?", "member": "Critic", "branches": {
            "billing": [{"id": "reply", "text": "wrong"}],
            "technical": [{"id": "reply", "ask": "Mend it."}, {"id": "reply", "text": "{reply}"}],
        }},
        {"id": "last", "text": "{reply}", "when": {"is": ["desk", "Technical"]}},
    ]);
    let items = played(
        steps,
        scripted(|effect, shown| match &effect.request.response_format {
            ResponseFormat::Record(fields)
                if fields[1].1 == ResponseFormat::Choice(vec!["billing".into(), "technical".into()]) =>
            {
                assert!(shown.contains("Whose is it?") && effect.id.actor == 1, "{shown}");
                Value::Record(vec![Value::Text("so".into()), Value::Choice(1)])
            }
            _ => answer("right"),
        }),
    );
    assert!(items.iter().all(|item| item.correct == Some(true)), "{items:?}");
}

#[test]
fn under_the_placebo_a_router_chooses_by_lot() {
    let steps = json!([{"id": "desk", "route": "Whose is it?", "branches": {
        "billing": [{"text": "right"}],
        "technical": [{"text": "wrong"}],
    }}]);
    let model = scripted(|_, _| Value::Record(vec![Value::Text("so".into()), Value::Choice(1)]));
    let right = |seed: u64| {
        let mut scenario = scenario(json!({"kind": "workflow", "steps": steps, "drawn": ["desk"]}));
        scenario["seed"] = json!(seed);
        play(&scenario, &model, None).0.iter().filter(|item| item.correct == Some(true)).count()
    };
    let right: usize = (0..8).map(right).sum();
    assert!((1..16).contains(&right), "{right} of 16 by lot");
}

#[test]
fn branches_are_asked_together_and_joined() {
    let steps = json!([
        {"id": "views", "parallel": {
            "con": [{"id": "against", "ask": "Argue against.", "member": "Critic", "want": "text"}, {"text": "{against}!"}],
            "pro": [{"id": "for", "ask": "Argue for.", "want": "text"}],
            "idle": [{"id": "never", "text": "x", "when": {"passed": "views"}}],
        }},
        {"id": "joined", "text": "{views}", "when": {"has": ["views", "yes"]}},
        {"id": "best", "vote": ["views"]},
    ]);
    let rounds = RefCell::new(Vec::new());
    let items = played(steps, |effect: &Effect| {
        if is_run(effect) {
            return checked(true, "", &json!({}));
        }
        rounds.borrow_mut().push(effect.id.round);
        Value::Text(if shown(effect).contains("Argue for.") { "yes".into() } else { "no".to_owned() })
    });
    assert!(rounds.borrow().iter().all(|round| *round == 0), "both questions of a wave belong to one round");
    // The votes: `no!`, nothing, `yes`; the first of the most frequent.
    assert!(items.iter().all(|item| item.answer.as_deref() == Some("no!")), "{items:?}");
}

#[test]
fn replies_have_forms_and_conditions_read_them() {
    let steps = json!([
        {"id": "ticket", "ask": "Read it.", "want": {"record": [["severity", {"number": {"low": 0.0, "high": 10.0, "whole": true}}], ["owner", {"choice": ["Ann", "Ben"]}]]}},
        {"repeat": [{"id": "mark", "ask": "Mark {ticket.owner}.", "want": {"number": {"low": 0.0, "high": 10.0}}}],
            "stop_when": {"at_least": ["mark", 8.0]}, "most": 5},
        {"id": "last", "text": "right", "when": {"is": ["ticket.owner", "ben"], "at_least": ["ticket.severity", 7.0], "below": ["mark", 9.0]}},
    ]);
    let marks = RefCell::new(0.0);
    let scenario = workflow(steps);
    let model = scripted(|effect, shown| match &effect.request.response_format {
        ResponseFormat::Record(_) => Value::Record(vec![Value::Number(7.0), Value::Choice(1)]),
        _ => {
            assert!(shown.contains("Mark Ben."), "{shown}");
            *marks.borrow_mut() += if effect.id.item == 0 { 2.0 } else { 0.0 };
            Value::Number(2.0 * f64::from(effect.id.round) + 2.0)
        }
    });
    let (items, _) = play(&scenario, model, None);
    assert!(items.iter().all(|item| item.correct == Some(true)), "{items:?}");
    // Marks 4, 6 and 8 in the rounds 1 to 3.
    assert_eq!((*marks.borrow(), items[0].measured[1]), (6.0, Some(4.0)));
}

#[test]
fn work_is_handed_from_member_to_member_until_nobody_is_named() {
    let steps = json!([{"id": "work", "hand_off": "Do it.", "member": "Critic", "most": 9}]);
    let items = played(
        steps,
        scripted(|effect, shown| {
            let ResponseFormat::Record(fields) = &effect.request.response_format else { panic!("{effect:?}") };
            let others = |name: &str| ResponseFormat::Choice(vec![name.into(), "nobody".into()]);
            // The critic, the writer, the critic again, who ends it.
            match (effect.id.round, effect.id.actor) {
                (0, 1) => assert_eq!(fields[1].1, others("Writer")),
                (1, 0) => assert!(fields[1].1 == others("Critic") && shown.contains("draft 0"), "{shown}"),
                (2, 1) => assert!(shown.contains("draft 0") && shown.contains("draft 1"), "{shown}"),
                other => panic!("{other:?}"),
            }
            let (text, next) =
                if effect.id.round == 2 { ("right".into(), 1) } else { (format!("draft {}", effect.id.round), 0) };
            Value::Record(vec![Value::Text(text), Value::Choice(next)])
        }),
    );
    assert!(items.iter().all(|item| item.correct == Some(true)), "{items:?}");
}

#[test]
fn a_moderator_names_the_speakers_of_a_chat_and_ends_it() {
    let steps = json!([
        {"id": "talk", "chat": "Discuss it.", "member": "Chair"},
        {"id": "last", "text": "right", "when": {"has": ["talk", "Writer: one\n\nCritic: two"]}},
    ]);
    let mut scenario = workflow(steps);
    scenario["team"] =
        json!([{"name": "Writer"}, {"name": "Critic", "tools": []}, {"name": "Chair", "persona": "You chair."}]);
    let model = scripted(|effect, shown| match (&effect.request.response_format, effect.id.actor) {
        (ResponseFormat::Record(fields), 2) => {
            let names = ["Writer", "Critic", "end"].map(String::from).to_vec();
            assert_eq!(fields[1].1, ResponseFormat::Choice(names));
            Value::Record(vec![Value::Text("so".into()), Value::Choice(effect.id.round)])
        }
        (ResponseFormat::Text, 0) => Value::Text("one".into()),
        (ResponseFormat::Text, 1) => {
            assert!(shown.contains("one"), "{shown}");
            Value::Text("two".into())
        }
        other => panic!("{other:?}"),
    });
    let (items, digest) = play(&scenario, &model, None);
    assert!(items.iter().all(|item| item.correct == Some(true)), "{items:?}");
    for at in 0..3 {
        assert_eq!(play(&scenario, &model, Some(at)).1, digest, "broken off after round {at}");
    }
}

#[test]
fn members_that_no_step_is_for_and_unknown_members_are_refused() {
    let refused = |steps: Json| {
        let rows = [("?".to_owned(), "right".to_owned())];
        let mut scenario = workflow(steps);
        scenario["team"] = json!([{"name": "Writer"}, {"name": "Critic"}]);
        let opened = std::panic::catch_unwind(|| evaluation(&scenario, &rows)).err().unwrap();
        opened.downcast_ref::<String>().unwrap().clone()
    };
    for (steps, message) in [
        (json!([{"ask": "x"}]), "team[1]: `Critic` can never act: no step is for it"),
        (json!([{"ask": "x"}, {"vote": ["a"], "id": "a", "member": "Critic"}]), "`Critic` can never act"),
        (
            json!([{"id": "a", "ask": "x", "member": "Critic"}, {"id": "b", "review": "a", "member": "Critic"}, {"revise": "a", "after": "b"}]),
            "team[0]: `Writer` can never act",
        ),
        (
            json!([{"ask": "x", "member": "Critik"}]),
            "method.steps[0].member: there is no member `Critik`; the team has Writer, Critic",
        ),
        (json!([{"chat": "x", "among": ["Writer", "Ben"]}]), "method.steps[0].among: there is no member `Ben`"),
        (json!([{"route": "x", "branches": {"a": [{"text": "x"}]}}]), "`route` needs two `branches` or more"),
        (json!([{"ask": "x", "among": ["Writer"]}]), "only `hand_off` and `chat` have members"),
        (json!([{"text": "x", "want": "text"}]), "only `ask` and `hand_off` have a form"),
        (json!([{"ask": "x", "want": {"choice": []}}]), "a choice has at least one option"),
    ] {
        let said = refused(steps);
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn absent_members_need_no_step_and_no_step_can_be_for_them() {
    let model = scripted(|_, _| answer("right"));
    let mut scenario = workflow(json!([{"ask": "x"}]));
    scenario["team"] = json!([{"name": "Writer"}, {"name": "Critic", "role": "absent"}]);
    let (items, _) = play(&scenario, &model, None);
    assert!(items.iter().all(|item| item.correct == Some(true)), "{items:?}");
    scenario["method"]["steps"][0]["member"] = json!("Critic");
    let rows = [("?".to_owned(), "right".to_owned())];
    let opened = std::panic::catch_unwind(|| evaluation(&scenario, &rows)).err().unwrap();
    let said = opened.downcast_ref::<String>().unwrap();
    assert!(said.contains("method.steps[0].member: `Critic` is absent from the team"), "{said}");
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
