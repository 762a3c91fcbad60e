use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::*;
use crate::files::{MAX_NODES, position, render};

fn value(text: &str) -> Json {
    parse(text).unwrap().to_json()
}

/// The position and message of the error for a text.
fn refused(text: &str) -> (usize, usize, String) {
    let error = parse(text).unwrap_err();
    let Origin::File { start, .. } = error.origin else { panic!("{error} has no place") };
    let (line, column) = position(text, start);
    (line, column, error.to_string())
}

#[test]
fn scalars_mean_what_they_say() {
    let cases = [
        ("no", json!("no")),
        ("yes", json!("yes")),
        ("on", json!("on")),
        ("y", json!("y")),
        ("true", json!(true)),
        ("False", json!(false)),
        ("tRUE", json!("tRUE")),
        ("", json!(null)),
        ("~", json!(null)),
        ("null", json!(null)),
        ("'null'", json!("null")),
        ("\"true\"", json!("true")),
        ("'12'", json!("12")),
        ("12", json!(12)),
        ("+12", json!(12)),
        ("-12", json!(-12)),
        ("0", json!(0)),
        ("-0", json!(0)),
        ("9223372036854775807", json!(i64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("1.5", json!(1.5)),
        ("-.5", json!(-0.5)),
        ("5.", json!(5.0)),
        ("0.5", json!(0.5)),
        ("1e3", json!(1000.0)),
        ("1E-2", json!(0.01)),
        ("012", json!("012")),
        ("-012", json!("-012")),
        ("00.5", json!("00.5")),
        ("0x10", json!("0x10")),
        ("0o17", json!("0o17")),
        ("0b1", json!("0b1")),
        ("1_000", json!("1_000")),
        ("1:30", json!("1:30")),
        ("2024-01-01", json!("2024-01-01")),
        ("1.2.3", json!("1.2.3")),
        ("e5", json!("e5")),
        (".", json!(".")),
        ("-", json!([null])),
        ("--", json!("--")),
        ("nan", json!("nan")),
        ("inf", json!("inf")),
        ("infinity", json!("infinity")),
        ("gpt-4o", json!("gpt-4o")),
        ("sim/small@1", json!("sim/small@1")),
        ("|\n  a\n  b\n", json!("a\nb\n")),
        (">\n  a\n  b\n", json!("a b\n")),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn files_keep_their_order_and_copy_their_anchors() {
    let text = "b: &base {k: [1, two], e: }\na: *base\n# end\n\"1\": x\n2: y\ntrue: z\n";
    let tree = parse(text).unwrap();
    let expected = r#"{"b":{"k":[1,"two"],"e":null},"a":{"k":[1,"two"],"e":null},"1":"x","2":"y","true":"z"}"#;
    assert_eq!(tree.to_json().to_string(), expected);
    assert_eq!(tree.get("a").unwrap().origin, tree.get("b").unwrap().origin);
}

#[test]
fn every_part_knows_where_it_was_written() {
    let text = "world:\n  kind: 'x y'\n  list:\n  - {é: 🔑}   # note\n  - |\n    long\n    text\n\n\n# more\nend: []\n";
    let tree = parse(text).unwrap();
    let written = |node: &Node| match node.origin {
        Origin::File { start, end } => text[start..end].to_owned(),
        _ => panic!(),
    };
    let world = tree.get("world").unwrap();
    let Value::List(items) = &world.get("list").unwrap().value else { panic!() };
    assert_eq!(written(world.get("kind").unwrap()), "'x y'");
    assert_eq!(written(&items[0]), "{é: 🔑}");
    assert_eq!(written(items[0].get("é").unwrap()), "🔑");
    assert_eq!(written(&items[1]), "long\n    text");
    assert_eq!(written(world.get("list").unwrap()), "{é: 🔑}   # note\n  - |\n    long\n    text");
    assert!(written(world).starts_with("kind:") && written(world).ends_with("text"));
    assert_eq!(written(tree.get("end").unwrap()), "[]");
    assert_eq!(written(&tree), text.trim_end());
    let Value::Map(entries) = &tree.value else { panic!() };
    assert_eq!(entries[1].0.origin, Origin::File { start: text.find("end").unwrap(), end: text.len() - 5 });
}

#[test]
fn wrong_yaml_says_where_and_what() {
    let cases = [
        ("a: 1\nb: 2\na: 3\n", 3, 1, "a: this key is given twice in one map"),
        ("x:\n- {a: 1, a: 2}\n", 2, 10, "x[0].a: this key is given twice in one map"),
        ("a: .nan", 1, 4, "a: a number must be finite, found `.nan`"),
        ("a:\n  b: [1, -.inf]", 2, 10, "a.b[1]: a number must be finite, found `-.inf`"),
        ("a: 1e999", 1, 4, "a: this number is too large"),
        ("a: 9223372036854775808", 1, 4, "a: this whole number is too large"),
        ("a: !!str 12", 1, 4, "a: tags are not supported"),
        ("a: !thing {b: 1}", 1, 4, "a: tags are not supported"),
        ("a: !!seq [1]", 1, 4, "a: tags are not supported"),
        ("d: &d {a: 1}\ne:\n  <<: *d", 3, 3, "e: merge keys (`<<`) are not supported: write the keys out"),
        ("? [a]\n: b", 1, 3, "a key must be a name, not a list or a map"),
        ("a: &x 1\n*x : 2", 2, 1, "an alias is not supported as a key"),
        ("&k a: 1", 1, 4, "an anchor on a key is not supported: put it on the value"),
        (": x", 1, 1, "a key is missing before this `:`"),
        ("a: 1\n---\nb: 2", 2, 1, "a second document begins here"),
        ("a: *nope", 1, 4, "there is no anchor of this name above"),
        ("a: &a [*a]", 1, 8, "a[0]: this alias is inside its own anchor"),
        ("a: [1, 2", 1, 4, "this `[` is not closed"),
        ("a: 'x", 1, 4, "this quote is not closed"),
        ("a: b: c", 1, 5, "a `:` is not allowed here"),
        ("a: @x", 1, 4, "a plain word cannot begin with `@`"),
        ("a:\n\tb: 1", 2, 2, "tabs cannot be used for indentation"),
    ];
    for (text, line, column, message) in cases {
        assert_eq!(refused(text), (line, column, message.to_owned()), "{text}");
    }
}

#[test]
fn a_second_key_names_the_line_of_the_first() {
    let help = parse("a: 1\nb: 2\na: 3\n").unwrap_err().help;
    assert_eq!(help.as_deref(), Some("it was first given on line 1"));
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct World {
    kind: String,
    fraction: f64,
    #[serde(default)]
    rounds: u32,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Cohort {
    name: String,
    count: u32,
    #[serde(default)]
    shares: std::collections::BTreeMap<String, Vec<f64>>,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Scenario {
    seed: u64,
    world: World,
    cohorts: Vec<Cohort>,
}

const GOOD: &str = "\
seed: 7
world:
  kind: beauty-contest
  fraction: 0.5   # of the mean
  rounds: 10
cohorts:
  - name: thinkers
    count: 20
  - name: crowd
    count: 80
    shares: {left: [0.5, 0.5], right: [1]}
";

#[test]
fn wrong_scenarios_are_found_where_they_were_written() {
    parse(GOOD).unwrap().read::<Scenario>("").unwrap();
    let cases = [
        ("seed: 7", "sede: 7", 1, 1, "sede: unknown key `sede`; did you mean `seed`?"),
        ("fraction:", "frction:", 4, 3, "world.frction: unknown key `frction`; did you mean `fraction`?"),
        ("fraction: 0.5", "fraction: half", 4, 13, "world.fraction: expected a number, found text `half`"),
        ("fraction: 0.5", "{}: 0.5", 4, 3, "world: a key must be a name, not a list or a map"),
        ("  fraction: 0.5", "", 3, 3, "world: the key `fraction` is missing"),
        ("rounds: 10", "rounds: 012", 5, 11, "world.rounds: expected a whole number, found text `012`"),
        ("rounds: 10", "rounds: 0x10", 5, 11, "world.rounds: expected a whole number, found text `0x10`"),
        ("rounds: 10", "rounds: 1.5", 5, 11, "world.rounds: expected a whole number, found the number 1.5"),
        ("count: 80", "coutn: 80", 10, 5, "cohorts[1].coutn: unknown key `coutn`; did you mean `count`?"),
        ("name: crowd", "name: 12", 9, 11, "cohorts[1].name: expected text, found the number 12"),
        ("0.5]", "x]", 11, 26, "cohorts[1].shares.left[1]: expected a number, found text `x`"),
        ("[1]", "1", 11, 39, "cohorts[1].shares.right: expected a list, found the number 1"),
    ];
    for (from, to, line, column, message) in cases {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = parse(&text).and_then(|tree| tree.read::<Scenario>("")).unwrap_err();
        let Origin::File { start, .. } = error.origin else { panic!("{error} has no place") };
        assert_eq!((error.to_string().as_str(), position(&text, start)), (message, (line, column)), "{to}");
    }
    let lower = GOOD.replacen("rounds: 10", "rounds: 1e3", 1);
    assert_eq!(parse(&lower).unwrap().read::<Scenario>("").unwrap().world.rounds, 1000);
}

#[test]
fn edits_are_parsed_and_shown_when_wrong() {
    let cases = [
        ("a.b=1", "a.b", json!(1)),
        ("a=", "a", json!(null)),
        ("a = x y ", "a", json!("x y")),
        ("a=b=c", "a", json!("b=c")),
        ("a=[1, {b: 2}]", "a", json!([1, {"b": 2}])),
        ("a='no: text # here'", "a", json!("no: text # here")),
        ("a=no", "a", json!("no")),
        ("models.\"x=y\".z=0.5", "models.\"x=y\".z", json!(0.5)),
    ];
    for (text, path, expected) in cases {
        let (found, node) = parse_edit(text).unwrap();
        assert_eq!((found.as_str(), node.to_json()), (path, expected), "{text}");
        assert_eq!(node.origin, Origin::Edit(text.into()));
    }
    let wrong = [
        ("seed", "an edit must be PATH=VALUE, but this has no `=`"),
        ("=1", "a step of the path is empty"),
        ("a..b=1", "a..b: a step of the path is empty"),
        ("a=b: c", "a: the value is a map, by YAML's rules"),
        ("a=- b", "a: the value is a list of 1 entry, by YAML's rules"),
        ("a=#fff", "a: a part of the value is a comment, by YAML's rules"),
        ("a=issue #3", "a: a part of the value is a comment, by YAML's rules"),
        ("a=[1, 2", "a: this `[` is not closed"),
        ("a=.nan", "a: a number must be finite, found `.nan`"),
    ];
    for (text, message) in wrong {
        let error = parse_edit(text).unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
        assert_eq!(error.origin, Origin::Edit(text.into()));
        assert!(error.help.is_some());
    }
}

#[test]
fn a_mistyped_edit_is_blamed_on_the_edit() {
    let mut tree = parse(GOOD).unwrap();
    for edit in ["cohorts.crowd.count=3", "world.frction=0.4"] {
        let (path, node) = parse_edit(edit).unwrap();
        tree.edit(&path, node).unwrap();
    }
    let error = tree.read::<Scenario>("").unwrap_err();
    assert_eq!(error.to_string(), "world.frction: unknown key `frction`; did you mean `fraction`?");
    assert_eq!(error.origin, Origin::Edit("world.frction=0.4".into()));
}

/// Parses an invalid text and checks how long that takes.
fn refused_in_time(what: &str, text: &str) -> String {
    let start = Instant::now();
    let error = parse(text).unwrap_err();
    let taken = start.elapsed();
    assert!(taken < Duration::from_secs(30), "{what} took {taken:?}");
    println!("{what}: {taken:?}, {error}");
    error.message
}

#[test]
fn hostile_files_are_refused_in_bounded_time_and_memory() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..20 {
        let copies = vec![format!("*a{}", n - 1); 10].join(", ");
        bomb.push_str(&format!("a{n}: &a{n} [{copies}]\n"));
    }
    assert!(refused_in_time("alias bomb", &bomb).contains("more than 200000 values"));

    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(100_000));
    assert!(refused_in_time("alias bomb of text", &long).contains("bytes of text"));

    let mut deep = "a0: &a0 [x]\n".to_owned();
    (1..100).for_each(|n| deep.push_str(&format!("a{n}: &a{n} [*a{}]\n", n - 1)));
    assert!(refused_in_time("aliases nested", &deep).contains("more than 64 deep"));

    for (what, open) in [("brackets", "["), ("braces", "{a: "), ("dashes", "- ")] {
        assert!(refused_in_time(what, &open.repeat(100_000)).contains("more than 64 deep"), "{what}");
    }
    let stairs: String = (0..1000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert!(refused_in_time("stairs", &stairs).contains("more than 64 deep"));

    let many = "- 1\n".repeat(MAX_NODES);
    assert!(refused_in_time("many values", &many).contains("more than 200000 values"));
    assert!(parse(&"- 1\n".repeat(MAX_NODES - 1)).is_ok());

    let garbage: String =
        (0..10_000_000_u32).map(|n| char::from((n.wrapping_mul(2_654_435_761) >> 25) as u8)).collect();
    assert!(refused_in_time("10 MB of garbage", &garbage).contains("the limit is 4194304"));
    for part in [
        "a", "[", "\"", "'", "- ", "? ", "&a ", "*a ", "{", "a: ", "\n", " ", "#", "|\n", "%", "\u{feff}", "é", "]",
        "\\", "a:\n",
    ] {
        let start = Instant::now();
        let outcome = parse(&part.repeat(MAX_BYTES / part.len())).map(|_| ());
        assert!(start.elapsed() < Duration::from_secs(30), "{part:?} took {:?}", start.elapsed());
        println!("4 MiB of {part:?}: {:?}, {:?}", start.elapsed(), outcome.err().map(|error| error.message));
    }
}

#[test]
fn nesting_up_to_the_limit_is_read() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    assert!(parse(&nested(MAX_DEPTH + 1)).is_err());
    let block = |depth: usize| (0..depth).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>();
    assert!(parse(&block(MAX_DEPTH)).is_ok());
    assert!(parse(&block(MAX_DEPTH + 1)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_or_refused_and_shown(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn any_yaml_like_text_is_parsed_or_refused_and_shown(text in "([a-c:,#&*!|>'\"{}\\[\\]%@`?~.0-9 -]|\\n|\\n  |\\t|: |- |é){0,60}") {
        check(&text);
    }

    #[test]
    fn a_damaged_scenario_is_read_or_refused_and_shown(
        cut in 0..GOOD.len(), len in 0..12_usize, put in "([a-z:,&*'\"{}\\[\\] -]|\\n|\\t|é){0,6}",
    ) {
        let end = (cut + len).min(GOOD.len());
        check(&format!("{}{put}{}", &GOOD[..cut], &GOOD[end..]));
    }

    #[test]
    fn any_edit_is_parsed_or_refused(edit in "([a-z.=:#\"'\\[\\]{}0-9 -]|é){0,20}") {
        if let Ok((path, node)) = parse_edit(&edit) {
            let _ = parse(GOOD).unwrap().edit(&path, node);
        }
    }
}

/// Any text gives a result: positions lie in the text and can be rendered.
fn check(text: &str) {
    let outcome = parse(text).and_then(|tree| {
        within(&tree, text);
        tree.read::<Scenario>("")
    });
    if let Err(error) = outcome {
        assert!(render(&error, "demo.yaml", text, false).contains("demo.yaml:"));
    }
}

fn within(node: &Node, text: &str) {
    let Origin::File { start, end } = node.origin else { panic!("a node without a place") };
    assert!(start <= end && text.get(start..end).is_some(), "{start}..{end} of {text:?}");
    match &node.value {
        Value::List(items) => items.iter().for_each(|item| within(item, text)),
        Value::Map(entries) => entries.iter().for_each(|(_, item)| within(item, text)),
        _ => {}
    }
}
