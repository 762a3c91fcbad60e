//! Plan and paragraphs: what each call shows, how long the text gets, and what the scores are.

use super::{length_score, words};
use crate::exchange::{one_question, opened, says, watched};
use polity_kernel::ask::{Effect, Outcome, ResponseFormat, Value};
use polity_kernel::machine::{ItemReport, RoundReport};
use serde_json::json;

/// No call of this model writes more words.
const CAP: usize = 1000;
const PLANNED: [u32; 25] = [800; 25];

fn reply(value: Value) -> Outcome {
    Outcome::Reply { value, raw: String::new(), repaired: false }
}

fn told(effect: &Effect) -> String {
    effect.request.rendered()
}

fn paragraph(n: usize) -> String {
    format!("Paragraph {}: point number {} (800 words)", n + 1, n + 1)
}

/// Plans 25 paragraphs of 800 words and keeps to the count it is given, up to its cap. Words of a call name the call.
fn answer(effect: &Effect) -> Outcome {
    match &effect.request.response_format {
        ResponseFormat::Record(fields) if fields[0].0 == "paragraphs" => {
            let step = |(n, words): (usize, &u32)| {
                Value::Record(vec![Value::Text(format!("point number {}", n + 1)), Value::Number(f64::from(*words))])
            };
            reply(Value::Record(vec![Value::List(PLANNED.iter().enumerate().map(step).collect())]))
        }
        ResponseFormat::Record(_) => says("fluent", Value::Number(4.0)),
        _ => {
            let told = told(effect);
            let asked = (0..PLANNED.len()).rev().find(|n| told.ends_with(&paragraph(*n)));
            let (name, n) = asked.map_or(("whole".into(), 20_000), |n| (format!("w{n}"), PLANNED[n] as usize));
            reply(Value::Text(vec![name; n.min(CAP)].join(" ")))
        }
    }
}

fn run(order: &str) -> (Vec<Effect>, ItemReport) {
    let scenario =
        json!({"rounds": 1, "team": [{}, {"role": "judge"}], "method": {"kind": "agentwrite", "order": order}});
    let (asked, reports): (_, Vec<RoundReport>) = one_question(&scenario, &answer);
    let items: Vec<ItemReport> = reports.into_iter().flat_map(|report| report.items).collect();
    assert_eq!(items.len(), 1);
    (asked, items[0].clone())
}

fn writing(asked: &[Effect]) -> Vec<String> {
    asked.iter().filter(|effect| effect.request.response_format == ResponseFormat::Text).map(told).collect()
}

#[test]
fn a_plan_writes_more_than_one_call_can() {
    let (asked, item) = run("sequential");
    assert_eq!(asked.len(), 1 + 25 + 6, "plan, paragraphs, and six marks");
    assert_eq!(item.measured, [20_000.0, 20_000.0, 25.0, 100.0, 75.0].map(Some));
    let text = item.answer.unwrap();
    let firsts: Vec<&str> = text.split("\n\n").filter_map(|part| part.split(' ').next()).collect();
    assert_eq!(firsts, (0..25).map(|n| format!("w{n}")).collect::<Vec<_>>(), "in the order of the plan");
    let (asked, item) = run("whole");
    assert_eq!(asked.len(), 1 + 6);
    assert_eq!(item.measured, [Some(1000.0), None, None, None, Some(75.0)], "without a plan the cap is the end");
}

#[test]
fn each_call_shows_the_task_the_plan_and_all_that_is_written() {
    let (asked, _) = run("sequential");
    for (n, told) in writing(&asked).iter().enumerate() {
        assert!(told.contains("What is the capital of Australia?") && told.ends_with(&paragraph(n)), "{n}");
        assert!((0..25).all(|step| told.contains(&paragraph(step))), "the plan is whole in call {n}");
        for other in 0..25 {
            assert_eq!(told.contains(&format!("w{other} w{other}")), other < n, "call {n} and paragraph {other}");
        }
    }
}

#[test]
fn in_parallel_as_many_calls_show_nothing_that_is_written() {
    let (asked, item) = run("parallel");
    let told = writing(&asked);
    assert_eq!(told.len(), 25);
    assert!(told.iter().all(|told| told.contains(&paragraph(24)) && !told.contains("w0 w0")));
    assert_eq!(item.measured[0], Some(20_000.0));
}

/// The number of coins in the last sentence about the chest, if there is one.
fn last_balance(text: &str) -> Option<i64> {
    text.rsplit_once("the chest holds ")?.1.split(' ').next()?.parse().ok()
}

/// Coins that come in with a paragraph.
fn change(n: usize) -> i64 {
    (n as i64 * 37) % 23 + 1
}

/// Writes a chronicle of a chest of coins. Each paragraph continues from the last balance in the text that it is shown. The first
/// balance is 100.
fn chronicle(effect: &Effect) -> Outcome {
    let told = told(effect);
    match (0..PLANNED.len()).rev().find(|n| told.ends_with(&paragraph(*n))) {
        Some(n) if matches!(effect.request.response_format, ResponseFormat::Text) => {
            let balance = last_balance(&told).unwrap_or(100) + change(n);
            reply(Value::Text(format!("{} coins come in, and the chest holds {balance} coins.", change(n))))
        }
        _ => answer(effect),
    }
}

/// The number of paragraphs that contradict the one before them.
fn contradictions(text: &str) -> usize {
    let balances: Vec<i64> = text.split("\n\n").map(|paragraph| last_balance(paragraph).unwrap()).collect();
    let before = std::iter::once(100).chain(balances.iter().copied());
    before.zip(&balances).enumerate().filter(|(n, (before, now))| before + change(*n) != **now).count()
}

#[test]
fn what_is_written_in_order_agrees_with_itself() {
    let text = |order: &str| {
        let scenario = json!({"rounds": 1, "agents": 1, "method": {"kind": "agentwrite", "order": order}});
        let (asked, reports) = one_question(&scenario, &chronicle);
        let item = reports.iter().flat_map(|report| &report.items).next().unwrap();
        (asked.len(), item.answer.clone().unwrap())
    };
    let (calls, sequential) = text("sequential");
    assert_eq!((calls, contradictions(&sequential)), (26, 0));
    // As many calls without what is written contradict each other; only the first paragraph has nothing before it.
    let (calls, parallel) = text("parallel");
    assert_eq!((calls, contradictions(&parallel)), (26, 24));
}

#[test]
fn every_paragraph_has_its_scores() {
    // Paragraph n has n words too many, and the judge's mark of a paragraph is 1 + n % 5; that of the text is 5.
    let writes = |effect: &Effect| {
        let told = told(effect);
        if let ResponseFormat::Record(fields) = &effect.request.response_format
            && fields[0].0 != "paragraphs"
        {
            let shown = (0..PLANNED.len()).filter(|n| told.contains(&format!("w{n} "))).collect::<Vec<_>>();
            let mark = if shown.len() == 1 { 1 + shown[0] % 5 } else { 5 };
            return says("fluent", Value::Number(mark as f64));
        }
        match (0..PLANNED.len()).rev().find(|n| told.ends_with(&paragraph(*n))) {
            Some(n) => reply(Value::Text(vec![format!("w{n}"); 800 + n].join(" "))),
            None => answer(effect),
        }
    };
    let method = json!({"kind": "agentwrite", "judge_paragraphs": true});
    let scenario = json!({"rounds": 1, "team": [{}, {"role": "judge"}], "method": method});
    let mut lines: Vec<String> = Vec::new();
    let (asked, reports) = watched(opened(&scenario), &writes, &mut |machine| {
        let acts = machine.acts().iter().flat_map(|(_, acts)| acts.rows.iter().enumerate().map(move |row| (acts, row)));
        let scores = acts.filter(|(_, (_, act))| act.kind == super::SCORES);
        lines.extend(scores.map(|(acts, (n, _))| acts.text(n).unwrap().to_owned()));
    })
    .unwrap();
    assert_eq!(asked.len(), 1 + 25 + 25 * 6 + 6);
    let item = reports.iter().flat_map(|report| &report.items).next().unwrap();
    assert_eq!(item.measured[4], Some(100.0), "the quality of the text");
    let scores: Vec<serde_json::Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = (0..25).map(|n| {
        let length = 100.0 * (1.0 - (n as f64 / 800.0) / 3.0);
        (n + 1, 800, 800 + n, length, 25.0 * (n % 5) as f64)
    });
    let found = scores.iter().map(|it| {
        let number = |key: &str| it[key].as_f64().unwrap();
        let whole = |key: &str| it[key].as_u64().unwrap() as usize;
        (whole("paragraph"), whole("planned-words"), whole("words"), number("length-score"), number("quality"))
    });
    for (found, expected) in found.zip(expected) {
        assert!((found.3 - expected.3).abs() < 1e-9 && (found.4 - expected.4).abs() < 1e-9, "{found:?} {expected:?}");
        assert_eq!((found.0, found.1, found.2), (expected.0, expected.1, expected.2));
    }
    assert_eq!(scores.len(), 25);
}

#[test]
fn a_missing_paragraph_leaves_no_text() {
    let scenario = json!({"rounds": 1, "agents": 1, "method": {"kind": "agentwrite"}});
    let (asked, reports) = one_question(&scenario, &|effect| match told(effect).ends_with(&paragraph(2)) {
        true => Outcome::Refused { raw: "no".into() },
        false => answer(effect),
    });
    assert_eq!(asked.len(), 4, "nothing is written after it");
    let item = reports.iter().flat_map(|report| &report.items).next().unwrap();
    assert_eq!((item.answer.clone(), item.measured[0]), (None, None));
}

#[test]
fn lengths_score_as_in_longbench_write() {
    for (wanted, found, score) in [
        (500, 500, 100.0),
        (500, 1000, 100.0 * 2.0 / 3.0),
        (500, 2000, 0.0),
        (500, 250, 50.0),
        (600, 200, 0.0),
        (500, 0, 0.0),
    ] {
        assert!((length_score(f64::from(wanted), f64::from(found)) - score).abs() < 1e-9, "{wanted} {found}");
    }
    assert_eq!(words("Two words, - and \u{65e5}\u{672c} too."), 6);
}
