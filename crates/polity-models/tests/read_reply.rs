//! The reply parser: what it accepts, what it refuses, and that nothing breaks it.

use polity_kernel::ask::{Outcome, ResponseFormat, Value};
use polity_models::models::read_reply;
use proptest::prelude::*;

fn record() -> ResponseFormat {
    ResponseFormat::Record(vec![
        ("answer".into(), ResponseFormat::Text),
        ("sure".into(), ResponseFormat::number(0.0, 1.0)),
        ("vote".into(), ResponseFormat::Choice(vec!["yes".into(), "no".into()])),
    ])
}

/// Why the reply is refused.
fn why(response_format: &ResponseFormat, reply: &str) -> String {
    match read_reply(response_format, reply) {
        Outcome::Invalid { why, raw } if raw == reply => why,
        other => panic!("{reply:?} gave {other:?}"),
    }
}

fn value(response_format: &ResponseFormat, reply: &str) -> Value {
    match read_reply(response_format, reply) {
        Outcome::Reply { value, raw, .. } if raw == reply => value,
        other => panic!("{reply:?} gave {other:?}"),
    }
}

#[test]
fn replies_that_fit() {
    let fields = Value::Record(vec![Value::Text("42".into()), Value::Number(0.5), Value::Choice(1)]);
    assert_eq!(value(&record(), r#"{"answer":"42","sure":0.5,"vote":"no"}"#), fields);
    assert_eq!(value(&record(), " {\"vote\": \" no\", \"more\": [1], \"sure\": 5e-1, \"answer\": \"42\"}\n"), fields);
    assert_eq!(value(&ResponseFormat::Text, "  a text \n"), Value::Text("a text".into()));
    assert_eq!(value(&ResponseFormat::Text, "null"), Value::Text("null".into()));
    assert_eq!(value(&ResponseFormat::Choice(vec!["a".into(), "A".into()]), "A"), Value::Choice(1));
    assert_eq!(value(&ResponseFormat::number(-5.0, 5.0), "-5"), Value::Number(-5.0));
    let nested = ResponseFormat::Record(vec![(
        "inner".into(),
        ResponseFormat::Record(vec![("x".into(), ResponseFormat::Text)]),
    )]);
    let inner = Value::Record(vec![Value::Record(vec![Value::Text(String::new())])]);
    assert_eq!(value(&nested, r#"{"inner": {"x": ""}}"#), inner);
}

#[test]
fn replies_that_do_not_fit() {
    let number = ResponseFormat::number(0.0, 10.0);
    let choice = ResponseFormat::Choice(vec!["red".into(), "green".into()]);
    let deep = "[".repeat(100_000);
    let long = "x".repeat(1_000_000);
    let html = "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>";
    let record = record();
    let cases: &[(&ResponseFormat, &str, &str)] = &[
        (&record, "", "the reply is empty"),
        (&record, " \n\t ", "the reply is empty"),
        (&ResponseFormat::Text, " ", "the reply is empty"),
        (&record, "null", "wanted a JSON object, got \"null\""),
        (&record, html, "wanted a JSON object, got \"<!DOCTYPE"),
        (&record, r#"{"answer":"42","sure":0."#, "EOF"),
        (&record, r#"{"answer":"42","sure":0.5,"vote":"n"#, "EOF"),
        (&record, "The answer is 42.", "wanted a JSON object"),
        (&record, r#"["42",0.5,"no"]"#, "wanted a JSON object, got"),
        (&record, r#"{"answer":"42","vote":"no"}"#, "the field `sure` is missing"),
        (&record, r#"{"answer":42,"sure":0.5,"vote":"no"}"#, "field `answer`: wanted a text, got \"42\""),
        (&record, r#"{"answer":null,"sure":0.5,"vote":"no"}"#, "field `answer`: wanted a text, got \"null\""),
        (&record, r#"{"answer":"42","sure":1.5,"vote":"no"}"#, "field `sure`: 1.5 lies outside 0 to 1"),
        (&record, r#"{"answer":"42","sure":1e999,"vote":"no"}"#, "wanted a JSON object"),
        (&record, r#"{"answer":"42","sure":0.5,"vote":"maybe"}"#, "field `vote`: \"maybe\" is none of the 2 options"),
        (&record, r#"{"answer":"42","sure":0.5,"vote":1}"#, "field `vote`: wanted one of the options"),
        (&record, &deep, "recursion limit"),
        (&record, r#"{"answer":"42","sure":0.5,"vote":"no","answer":"43"}"#, "the key \"answer\" has two values"),
        (&number, "seven", "wanted a number, got \"seven\""),
        (&number, "7 apples", "wanted a number"),
        (&number, "11", "11 lies outside 0 to 10"),
        (&number, "1e999", "inf lies outside 0 to 10"),
        (&number, "NaN", "NaN lies outside 0 to 10"),
        (&number, "null", "wanted a number"),
        (&choice, "blue", "\"blue\" is none of the 2 options"),
        (&choice, "red or green", "is none of the 2 options"),
        (&choice, &long, "is none of the 2 options"),
    ];
    for (response_format, reply, expected) in cases {
        let why = why(response_format, reply);
        assert!(why.contains(expected), "{reply:.60}: {why}");
        assert!(why.len() < 300, "a message quotes no more than the start of a reply");
    }
}

/// The value of a repaired reply.
fn repaired(response_format: &ResponseFormat, reply: &str) -> Value {
    match read_reply(response_format, reply) {
        Outcome::Reply { value, raw, repaired: true } if raw == reply => value,
        other => panic!("{reply:?} gave {other:?}"),
    }
}

#[test]
fn the_form_is_mended() {
    let fields = Value::Record(vec![Value::Text("42".into()), Value::Number(0.5), Value::Choice(1)]);
    let json = r#"{"answer":"42","sure":0.5,"vote":"no"}"#;
    let ways = [
        format!("```json\n{json}\n```"),
        format!("```\n{json}\n```\n"),
        format!("Sure! It's \"here\":\n\n{json}\n\nDo you need anything else? [1]"),
        json.replace('}', ",}"),
        json.replace('"', "'"),
        json.replace('"', "\u{201d}"),
        json.replace('}', ""),
        format!("```json\n{}\n```", json.replace('}', "")),
        json.replace('}', ", "),
        r#"{"answer":"42","vote":"no","sure":0.5 "#.into(),
        r#"{answer: "42", sure: 0.5, vote: no}"#.into(),
        r#"{"answer":"42","sure":0.5,"vote":"no" // it's "so", I'd {say}
}"#
        .into(),
        r#"{/* well */"answer":"42" "sure":0.5, "vote":"no", # and so on
"more": [True, None, NaN]}"#
            .into(),
        r#"{"answer":"42","sure":"0.5","vote":"NO."}"#.into(),
        r#"{"answer":"42","sure":".50","vote":" **No** "}"#.into(),
    ];
    for reply in &ways {
        assert_eq!(repaired(&record(), reply), fields, "{reply}");
    }
    let said = Value::Record(vec![Value::Text("I'd say \"hi\" there".into())]);
    let text = ResponseFormat::Record(vec![("words".into(), ResponseFormat::Text)]);
    assert_eq!(repaired(&text, "{\"words\": \"I'd say \"hi\" there\"}"), said);
    let list = ResponseFormat::List { of: Box::new(ResponseFormat::number(0.0, 9.0)), least: 1, most: 3 };
    let two = Value::List(vec![Value::Number(1.0), Value::Number(2.0)]);
    for reply in ["[1, 2,]", "[1 2]", "Here: [1, 2].", "```\n[\"1\", '2']\n```", "[1, // one\n2]"] {
        assert_eq!(repaired(&list, reply), two, "{reply}");
    }
    let number = ResponseFormat::number(0.0, 100.0);
    for reply in ["\"42\"", "42.", "**42**", "`42`", " '42.'\n", "**\"42\"**.", "```\n42\n```"] {
        assert_eq!(repaired(&number, reply), Value::Number(42.0), "{reply}");
    }
    let choice = ResponseFormat::Choice(vec!["Red".into(), "green".into(), "U.S.".into(), "a".into(), "A".into()]);
    for (reply, i) in [("red", 0), ("\"Red\"", 0), ("RED.", 0), ("'green'.", 1), ("**green**", 1), ("u.s.", 2)] {
        assert_eq!(repaired(&choice, reply), Value::Choice(i), "{reply}");
    }
    // Of two options that differ only in form, neither is preferred.
    assert!(why(&choice, "\"a\"").contains("is none of the 5 options"));
}

#[test]
fn what_was_said_is_not_mended() {
    let one = |response_format| ResponseFormat::Record(vec![("answer".into(), response_format)]);
    let (number, text) = (one(ResponseFormat::number(0.0, 1000.0)), one(ResponseFormat::Text));
    let list = ResponseFormat::List { of: Box::new(ResponseFormat::number(0.0, 999.0)), least: 0, most: 9 };
    let words = ResponseFormat::List { of: Box::new(ResponseFormat::Text), least: 0, most: 9 };
    let choice = one(ResponseFormat::Choice(vec!["yes".into(), "yes, but".into()]));
    let (bare, sure) = (ResponseFormat::number(0.0, 1000.0), record());
    let long = format!("{{'answer': '{}'}}", "x".repeat(100_000));
    let cases: &[(&ResponseFormat, &str)] = &[
        // Cut: the number, text, word or list may continue.
        (&number, r#"{"answer": 12"#),
        (&number, "{'answer': 12"),
        (&number, r#"{"answer": 1e"#),
        (&number, r#"{"answer": -"#),
        (&number, r#"{"answer":"#),
        (&number, r#"{"answer": "12"#),
        (&text, r#"{"answer": "I thi"#),
        (&text, r#"{"answer": "I think \""#),
        (&text, r#"{"answer": "say "hi" and ""#),
        (&text, "{answer: I thi"),
        (&text, "{answer: I thi "),
        (&choice, "{answer: yes"),
        (&choice, r#"{"answer": "yes"#),
        (&list, "[1, 2, 3"),
        (&list, "[1, 2, 3 "),
        (&list, "[1, 2,"),
        (&words, r#"["a", "b""#),
        (&words, r#"["a", "b", ..."#),
        (&words, r#"["a", "b", ...]"#),
        (&list, "[1, 2, 3, \u{2026}]"),
        // Invalid numbers, or more than one.
        (&number, r#"{"answer": 1e}"#),
        (&number, r#"{"answer": -}"#),
        (&number, r#"{"answer": 1,000}"#),
        (&list, "[1,000]"),
        (&number, r#"{"answer": 5 or 6}"#),
        (&number, r#"{"answer": 5-6}"#),
        (&number, r#"{"answer": 1/2}"#),
        (&number, r#"{"answer": 12 apples}"#),
        (&number, r#"{"answer": "12 apples"}"#),
        (&number, r#"{"answer": "1,000"}"#),
        (&number, r#"{"answer": "inf"}"#),
        (&number, r#"{"answer": NaN}"#),
        (&number, r#"{"answer": null}"#),
        (&number, r#"{"answer": true}"#),
        (&number, r#"{"answer": [12]}"#),
        (&number, r#"{'answer': 1001}"#),
        (&number, r#"{'answer': 1, 'answer': 2}"#),
        (&number, r#"{"answer": 1, "more": {"x": 1, "x": 2}}"#),
        (&bare, "I would say 5 or 6"),
        (&bare, "The answer is 42"),
        (&bare, "42%"),
        (&bare, "4 2"),
        (&bare, "**1001**"),
        (&bare, "[42]"),
        (&bare, "\"\""),
        (&bare, "..."),
        // Missing values, or values of another kind.
        (&sure, r#"{'answer': '42', 'vote': 'no'}"#),
        (&sure, r#"{'Answer': '42', 'sure': 0.5, 'vote': 'no'}"#),
        (&sure, r#"{'answer': 42, 'sure': 0.5, 'vote': 'no'}"#),
        (&sure, r#"{'answer': '42', 'sure': 0.5, 'vote': 'maybe'}"#),
        (&sure, r#"{'answer': '42', 'sure': , 'vote': 'no'}"#),
        (&sure, "{}"),
        (&sure, "```json\n```"),
        // More than one, or nested.
        (&number, r#"{"answer": 1} {"answer": 2}"#),
        (&number, r#"Not {"answer": 1} but {"answer": 2}"#),
        (&number, r#"[{"answer": 1}]"#),
        (&number, r#"{"result": {"answer": 1}}"#),
        (&list, "[1] or [2]"),
        (&list, r#"{"numbers": [1, 2],}"#),
        (&text, &long),
    ];
    for (response_format, reply) in cases {
        why(response_format, reply);
    }
    // The error is about the content rather than the syntax.
    assert_eq!(why(&sure, "```\n{\"answer\": \"42\"}\n```"), "the field `sure` is missing");
    assert_eq!(why(&number, "{'answer': 1001,}"), "field `answer`: 1001 lies outside 0 to 1000");
}

/// Text that is almost JSON: fragments in any order, some repeated to great length.
fn almost_json() -> impl Strategy<Value = String> {
    const BITS: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "'",
        "\\",
        "a",
        "1",
        "0",
        "-",
        ".",
        "e",
        " ",
        "\n",
        "True",
        "None",
        "NaN",
        "/*",
        "*/",
        "//",
        "```",
        "json",
        "\u{e9}",
        "\u{201c}",
        "\u{201d}",
        "\0",
        "\\u12",
        "(",
        ")",
        "#",
        "`",
        "...",
        "\u{2026}",
        "+",
        "\u{1f600}",
        "\"a\":",
        "null",
        "<",
        "\\\"",
        "\",\"",
        "http://",
        "*",
        "=",
        ";",
        "\u{feff}",
    ];
    let bit = || prop::sample::select(BITS);
    let some = |n| prop::collection::vec(bit(), 0..n).prop_map(|bits| bits.concat());
    let long = (some(4), some(6), prop_oneof![Just(1usize), Just(500), Just(4_000)], some(4))
        .prop_map(|(start, bits, times, end)| format!("{start}{}{end}", bits.repeat(times)));
    prop_oneof![3 => some(60), 1 => long, 1 => any::<String>()]
}

/// More cases than a test run has time for: `PROPTEST_CASES=100000`.
#[test]
fn nothing_breaks_the_mending() {
    let cases = ProptestConfig::default().cases.max(2_000);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let wants = [
        record(),
        ResponseFormat::Record(vec![("a".into(), ResponseFormat::number(0.0, 10.0))]),
        ResponseFormat::List { of: Box::new(ResponseFormat::Text), least: 0, most: 1000 },
        ResponseFormat::number(0.0, 10.0),
        ResponseFormat::Choice(vec!["a".into(), "None".into()]),
    ];
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let done = runner.run(&(prop::sample::select(wants.to_vec()), almost_json()), |(response_format, reply)| {
        let began = std::time::Instant::now();
        if let Outcome::Reply { value, .. } = read_reply(&response_format, &reply) {
            prop_assert!(fits(&response_format, &value), "{:?}", value);
        }
        // Generous, for busy machines.
        prop_assert!(began.elapsed().as_secs() < 10, "it takes too long");
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}

/// Parsing is fast, however long and deep a reply is.
#[test]
fn long_replies_are_read_in_time() {
    let bits = [
        "{",
        "[",
        "{'a':",
        "\"",
        "'",
        "\\",
        "\\\"*/ ",
        "{a:1},",
        "[1,",
        "\"a\" ",
        "//",
        "/*",
        "```",
        "1",
        "\\\"&\n...,",
    ];
    for bit in bits {
        for start in ["", "{", "[", "{'a': ["] {
            let reply = format!("{start}{}", bit.repeat(1_000_000 / bit.len()));
            let began = std::time::Instant::now();
            for response_format in [
                record(),
                ResponseFormat::List { of: Box::new(record()), least: 0, most: 9 },
                ResponseFormat::number(0.0, 1.0),
            ] {
                why(&response_format, &reply);
            }
            assert!(began.elapsed().as_secs() < 10, "{start}{bit}");
        }
    }
}

/// A reply that was cut anywhere never becomes another value.
#[test]
fn a_cut_reply_is_no_other_reply() {
    let list = ResponseFormat::List { of: Box::new(ResponseFormat::number(0.0, 1e6)), least: 0, most: 9 };
    let response_format = ResponseFormat::Record(vec![
        (
            "inner".into(),
            ResponseFormat::Record(vec![
                ("x".into(), ResponseFormat::number(-1e6, 1e6)),
                ("y".into(), ResponseFormat::Text),
            ]),
        ),
        ("many".into(), list),
        ("last".into(), ResponseFormat::number(0.0, 1e6)),
    ]);
    let whole = r#"{"inner": {"x": -12.5e3, "y": "it's \"so\", {I} say"}, "many": [1, 23, 456], "last": 123.5}"#;
    let expected = value(&response_format, whole);
    for whole in [whole.to_owned(), format!("```json\n{whole}\n```"), whole.replace('"', "'").replace("it's", "its")] {
        for (end, _) in whole.char_indices() {
            if let Outcome::Reply { value, .. } = read_reply(&response_format, &whole[..end]) {
                assert!(
                    whole[..end].contains("123.5") && whole[..end].ends_with(['}', '\n', '`']),
                    "{}",
                    &whole[..end]
                );
                if whole.contains("\\\"") {
                    assert_eq!(value, expected, "{}", &whole[..end]);
                }
            }
        }
    }
}

fn any_want() -> impl Strategy<Value = ResponseFormat> {
    let leaf = prop_oneof![
        Just(ResponseFormat::Text),
        prop::collection::vec("[a-c]{0,2}", 0..4).prop_map(ResponseFormat::Choice),
        (any::<f64>(), any::<f64>()).prop_map(|(low, high)| ResponseFormat::number(low, high)),
    ];
    leaf.prop_recursive(3, 12, 3, |response_format| {
        prop::collection::vec(("[a-c]{0,2}", response_format), 0..4).prop_map(ResponseFormat::Record)
    })
}

fn fits(response_format: &ResponseFormat, value: &Value) -> bool {
    match (response_format, value) {
        (ResponseFormat::Text, Value::Text(_)) => true,
        (ResponseFormat::Choice(options), Value::Choice(i)) => (*i as usize) < options.len(),
        (ResponseFormat::Number { low, high, .. }, Value::Number(x)) => x.is_finite() && low <= x && x <= high,
        (ResponseFormat::Record(fields), Value::Record(values)) => {
            fields.len() == values.len()
                && fields.iter().zip(values).all(|((_, response_format), value)| fits(response_format, value))
        }
        (ResponseFormat::List { of, least, most }, Value::List(values)) => {
            (*least as usize..=*most as usize).contains(&values.len()) && values.iter().all(|value| fits(of, value))
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
    fn nothing_breaks_the_reader(response_format in any_want(), reply in prop_oneof![any::<String>(), any_json()]) {
        match read_reply(&response_format, &reply) {
            Outcome::Reply { value, raw, .. } => {
                prop_assert!(fits(&response_format, &value));
                prop_assert_eq!(raw, reply);
            }
            Outcome::Invalid { raw, .. } => prop_assert_eq!(raw, reply),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn values_written_as_json_are_read_back((response_format, value) in want_and_value()) {
        let response_format = ResponseFormat::Record(vec![("it".into(), response_format)]);
        let value = Value::Record(vec![value]);
        let json = value.to_json(&response_format).to_string();
        let read = read_reply(&response_format, &json);
        prop_assert_eq!(read, Outcome::Reply { value: value.clone(), raw: json.clone(), repaired: false });
        // Also in a fence and without its last brace.
        let mended = format!("```json\n{}\n```", json.strip_suffix('}').unwrap());
        let ends_inside = matches!(&value, Value::Record(values) if matches!(values[0], Value::Text(_) | Value::Record(_)));
        match read_reply(&response_format, &mended) {
            Outcome::Reply { value: again, repaired: true, .. } => prop_assert_eq!(again, value),
            other => prop_assert!(!ends_inside, "{:?}", other),
        }
    }
}

/// A form, and a matching value.
fn want_and_value() -> impl Strategy<Value = (ResponseFormat, Value)> {
    let leaf = prop_oneof![
        any::<String>().prop_map(|text| (ResponseFormat::Text, Value::Text(text))),
        (1u32..4).prop_flat_map(|n| (Just(n), 0..n)).prop_map(|(n, i)| {
            let options = (0..n).map(|i| format!("option \"{i}\"\\ \u{e9}'")).collect();
            (ResponseFormat::Choice(options), Value::Choice(i))
        }),
        (0u32..2).prop_map(|i| (ResponseFormat::yes_or_no(), Value::Choice(i))),
        any::<f64>()
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(|x| (ResponseFormat::number(x, x), Value::Number(x))),
        any::<i32>().prop_map(f64::from).prop_map(|x| {
            (ResponseFormat::Number { low: x - 1.0, high: f64::INFINITY, whole: true }, Value::Number(x))
        }),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let fields = prop::collection::vec(inner.clone(), 0..4).prop_map(|fields| {
            let (wants, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
            let names = ["a", "b \"c\"", "{d}", ""].map(String::from);
            (ResponseFormat::Record(names.into_iter().zip(wants).collect()), Value::Record(values))
        });
        let list = (inner, 0u32..4).prop_map(|((of, value), n)| {
            let response_format = ResponseFormat::List { of: Box::new(of), least: n, most: n + 1 };
            (response_format, Value::List(vec![value; n as usize]))
        });
        prop_oneof![fields, list]
    })
}
