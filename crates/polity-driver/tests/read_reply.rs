//! The reader of replies: what it takes, what it refuses, and that nothing breaks it.
#![allow(clippy::panic)] // clippy.toml lets tests fail loudly; their helpers are no tests to it.

use polity_driver::models::read_reply;
use polity_kernel::ask::{Outcome, Value, Want};
use proptest::prelude::*;

fn record() -> Want {
    Want::Record(vec![
        ("answer".into(), Want::Text),
        ("sure".into(), Want::number(0.0, 1.0)),
        ("vote".into(), Want::Choice(vec!["yes".into(), "no".into()])),
    ])
}

/// Why the reply is refused.
fn why(want: &Want, reply: &str) -> String {
    match read_reply(want, reply) {
        Outcome::Invalid { why, raw } if raw == reply => why,
        other => panic!("{reply:?} gave {other:?}"),
    }
}

fn value(want: &Want, reply: &str) -> Value {
    match read_reply(want, reply) {
        Outcome::Reply { value, raw, .. } if raw == reply => value,
        other => panic!("{reply:?} gave {other:?}"),
    }
}

#[test]
fn replies_that_fit() {
    let fields = Value::Record(vec![Value::Text("42".into()), Value::Number(0.5), Value::Choice(1)]);
    assert_eq!(value(&record(), r#"{"answer":"42","sure":0.5,"vote":"no"}"#), fields);
    assert_eq!(value(&record(), " {\"vote\": \" no\", \"more\": [1], \"sure\": 5e-1, \"answer\": \"42\"}\n"), fields);
    assert_eq!(value(&Want::Text, "  a text \n"), Value::Text("a text".into()));
    assert_eq!(value(&Want::Text, "null"), Value::Text("null".into()));
    assert_eq!(value(&Want::Choice(vec!["a".into(), "A".into()]), "A"), Value::Choice(1));
    assert_eq!(value(&Want::number(-5.0, 5.0), "-5"), Value::Number(-5.0));
    let nested = Want::Record(vec![("inner".into(), Want::Record(vec![("x".into(), Want::Text)]))]);
    let inner = Value::Record(vec![Value::Record(vec![Value::Text(String::new())])]);
    assert_eq!(value(&nested, r#"{"inner": {"x": ""}}"#), inner);
}

#[test]
fn replies_that_do_not_fit() {
    let number = Want::number(0.0, 10.0);
    let choice = Want::Choice(vec!["red".into(), "green".into()]);
    let deep = "[".repeat(100_000);
    let long = "x".repeat(1_000_000);
    let html = "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>";
    let record = record();
    let cases: &[(&Want, &str, &str)] = &[
        (&record, "", "the reply is empty"),
        (&record, " \n\t ", "the reply is empty"),
        (&Want::Text, " ", "the reply is empty"),
        (&record, "null", "wanted a JSON object, got \"null\""),
        (&record, html, "wanted a JSON object, got \"<!DOCTYPE"),
        (&record, r#"{"answer":"42","sure":0."#, "EOF"),
        (&record, r#"{"answer":"42","sure":0.5,"vote":"n"#, "EOF"),
        (&record, r#"{"answer":"42","sure":0.5,"vote":"no"} done"#, "trailing characters"),
        (&record, "```json\n{\"answer\":\"42\",\"sure\":0.5,\"vote\":\"no\"}\n```", "wanted a JSON object"),
        (&record, "The answer is 42.", "wanted a JSON object"),
        (&record, r#"["42",0.5,"no"]"#, "wanted a JSON object, got"),
        (&record, r#"{"answer":"42","vote":"no"}"#, "the field `sure` is missing"),
        (&record, r#"{"answer":42,"sure":0.5,"vote":"no"}"#, "field `answer`: wanted a text, got \"42\""),
        (&record, r#"{"answer":null,"sure":0.5,"vote":"no"}"#, "field `answer`: wanted a text, got \"null\""),
        (&record, r#"{"answer":"42","sure":"0.5","vote":"no"}"#, "field `sure`: wanted a number"),
        (&record, r#"{"answer":"42","sure":1.5,"vote":"no"}"#, "field `sure`: 1.5 lies outside 0 to 1"),
        (&record, r#"{"answer":"42","sure":1e999,"vote":"no"}"#, "wanted a JSON object"),
        (&record, r#"{"answer":"42","sure":0.5,"vote":"maybe"}"#, "field `vote`: \"maybe\" is none of the 2 options"),
        (&record, r#"{"answer":"42","sure":0.5,"vote":1}"#, "field `vote`: wanted one of the options"),
        (&record, &deep, "recursion limit"),
        (&number, "seven", "wanted a number, got \"seven\""),
        (&number, "7 apples", "wanted a number"),
        (&number, "11", "11 lies outside 0 to 10"),
        (&number, "1e999", "inf lies outside 0 to 10"),
        (&number, "NaN", "NaN lies outside 0 to 10"),
        (&number, "null", "wanted a number"),
        (&choice, "blue", "\"blue\" is none of the 2 options"),
        (&choice, "Red", "is none of the 2 options"),
        (&choice, "red or green", "is none of the 2 options"),
        (&choice, &long, "is none of the 2 options"),
    ];
    for (want, reply, expected) in cases {
        let why = why(want, reply);
        assert!(why.contains(expected), "{reply:.60}: {why}");
        assert!(why.len() < 300, "a message quotes no more than the start of a reply");
    }
}

fn any_want() -> impl Strategy<Value = Want> {
    let leaf = prop_oneof![
        Just(Want::Text),
        prop::collection::vec("[a-c]{0,2}", 0..4).prop_map(Want::Choice),
        (any::<f64>(), any::<f64>()).prop_map(|(low, high)| Want::number(low, high)),
    ];
    leaf.prop_recursive(3, 12, 3, |want| prop::collection::vec(("[a-c]{0,2}", want), 0..4).prop_map(Want::Record))
}

fn fits(want: &Want, value: &Value) -> bool {
    match (want, value) {
        (Want::Text, Value::Text(_)) => true,
        (Want::Choice(options), Value::Choice(i)) => (*i as usize) < options.len(),
        (Want::Number { low, high, .. }, Value::Number(x)) => x.is_finite() && low <= x && x <= high,
        (Want::Record(fields), Value::Record(values)) => {
            fields.len() == values.len() && fields.iter().zip(values).all(|((_, want), value)| fits(want, value))
        }
        _ => false,
    }
}

/// JSON that often has the right fields.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<f64>().prop_map(serde_json::Value::from),
        "[a-c]{0,2}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |json| {
        prop::collection::btree_map("[a-c]{0,2}", json, 0..4).prop_map(|map| map.into_iter().collect())
    })
    .prop_map(|json| json.to_string())
}

proptest! {
    #[test]
    fn nothing_breaks_the_reader(want in any_want(), reply in prop_oneof![any::<String>(), any_json()]) {
        match read_reply(&want, &reply) {
            Outcome::Reply { value, raw, .. } => {
                prop_assert!(fits(&want, &value));
                prop_assert_eq!(raw, reply);
            }
            Outcome::Invalid { raw, .. } => prop_assert_eq!(raw, reply),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
