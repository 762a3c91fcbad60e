#![allow(clippy::panic, clippy::unwrap_used)]

use super::*;
use crate::rng::Stream;
use proptest::prelude::*;

/// A person: age 25, income missing, party green, two texts.
struct People {
    parties: Vec<String>,
    draw: bool,
}

fn people() -> People {
    People { parties: ["red", "green", "blue"].map(String::from).to_vec(), draw: false }
}

impl Names for People {
    fn find(&self, name: &str) -> Option<Name<'_>> {
        Some(match name {
            "age" => Name::Number(0),
            "household income" => Name::Number(1),
            "employed" => Name::Truth(2),
            "party" => Name::Text(3, &self.parties),
            _ => return None,
        })
    }

    fn known(&self) -> Vec<String> {
        ["age", "household income", "employed", "party"].map(String::from).to_vec()
    }

    fn may_draw(&self) -> bool {
        self.draw
    }
}

fn read(name: u32) -> f64 {
    [25.0, f64::NAN, 1.0, 1.0][name as usize]
}

fn value(text: &str) -> f64 {
    let formula = Formula::of_any_kind(text, &people()).unwrap_or_else(|error| panic!("{text}: {error}"));
    formula.value(&read, None)
}

#[test]
fn formulas_have_their_values() {
    for (text, expected) in [
        ("1 + 2 * 3", 7.0),
        ("-2 ^ 2", -4.0),
        ("2 ** 3 ^ 2", 512.0),
        ("-7 % 3", 2.0),
        ("age / 10", 2.5),
        ("min(age, 30, 20) + max(1)", 21.0),
        ("clamp(age, 0, 20) + clamp(-1, 0, 1)", 20.0),
        ("round(2.5) + floor(-0.5) + ceil(0.5)", 3.0),
        ("sqrt(16) + abs(-3) + ln(exp(1)) + log10(100)", 10.0),
        ("0.1 if age < 30 else 0.2", 0.1),
        ("1 if age < 20 else 2 if age < 30 else 3", 2.0),
        ("1 / 0 if age > 30 else 5", 5.0),
    ] {
        assert!((value(text) - expected).abs() < 1e-12, "{text}: {}", value(text));
    }
}

#[test]
fn truths_hold_or_not() {
    for (text, expected) in [
        ("age < 30 and party == \"green\"", true),
        ("age >= 25 and age <= 25 and not age > 25 and not age < 25", true),
        ("party != 'green' or employed", true),
        ("party in (\"red\", \"blue\")", false),
        ("party not in (\"red\", \"blue\")", true),
        ("age in (24, 25, -1)", true),
        ("not (employed and false)", true),
        ("missing(`household income`)", true),
        ("missing(`household income` < 10 or `household income` >= 10)", true),
        ("missing(`household income` != 10)", true),
        ("missing(`household income` in (10, 20)) and missing(`household income` not in (10, 20))", true),
        ("missing(not `household income` == 10) and missing(1 if `household income` > 10 else 2)", true),
        ("`household income` > 10 and age > 30 or age < 30", true),
        ("missing(`household income` > 10 and age < 30) and missing(`household income` > 10 or age > 30)", true),
        ("not (`household income` > 10 and age > 30)", true),
        ("`household income` > 10 or age < 30", true),
        ("age < 30 if missing(`household income`) else `household income` > 10", true),
        ("missing(min(`household income`, 5)) and missing(min(5, `household income`))", true),
        ("missing(max(`household income`, 5)) and missing(max(5, `household income`))", true),
        ("missing(clamp(`household income`, 0, 1)) and missing(clamp(0, `household income`, 1))", true),
        ("missing(age)", false),
        ("(\"a\" if employed else \"b\") == \"a\"", true),
    ] {
        assert_eq!(value(text) == 1.0, expected, "{text}");
    }
}

#[test]
fn texts_are_positions_in_the_formulas_list() {
    let formula = Formula::read("'young' if age < 30 else party", &people(), Kind::Text).unwrap();
    assert_eq!(formula.texts()[formula.value(&read, None) as usize], "young");
    let old = |name: u32| if name == 0 { 50.0 } else { read(name) };
    assert_eq!(formula.texts()[formula.value(&old, None) as usize], "green");
}

#[test]
fn draws_are_taken_from_the_given_sequence() {
    let names = People { draw: true, ..people() };
    let formula =
        Formula::read("uniform(2, 4) + normal(0, 0.001) + (1 if chance(0.5) else 0)", &names, Kind::Number).unwrap();
    assert!(formula.draws());
    let mut draws = Draws::new(7, Stream::Turn, 0, 0);
    let mut again = Draws::new(7, Stream::Turn, 0, 0);
    let expected = 2.0 + 2.0 * again.unit() + 0.001 * again.normal() + f64::from(u8::from(again.unit() < 0.5));
    assert!((formula.value(&read, Some(&mut draws)) - expected).abs() < 1e-12);
    // Every evaluation takes the same draws, whichever side is chosen.
    let formula = Formula::read("uniform() if age < 30 else uniform()", &names, Kind::Number).unwrap();
    let mut draws = Draws::new(7, Stream::Turn, 0, 0);
    let first = formula.value(&read, Some(&mut draws));
    assert_eq!(first, Draws::new(7, Stream::Turn, 0, 0).unit());
    assert_eq!(formula.value(&|_| 50.0, Some(&mut Draws::new(7, Stream::Turn, 0, 0))), {
        let mut draws = Draws::new(7, Stream::Turn, 0, 0);
        draws.unit();
        draws.unit()
    });
}

#[test]
fn errors_say_where_and_what_to_do() {
    for (text, expected) in [
        ("", "character 1: the formula ends too early; a number, a name, a text or `(` is needed here"),
        (
            "aeg < 30",
            "character 1: there is no quantity `aeg`; did you mean `age`? (there are age, household income, employed, party)",
        ),
        ("age = 30", "character 5: write `==` to compare"),
        ("age < 30 && employed", "character 10: write `and`"),
        ("18 <= age < 30", "character 11: a comparison has two sides; write `18 <= age and age < 30`"),
        ("party == \"gren\"", "character 10: it is never `gren`; did you mean `green`? (it is red, green, blue)"),
        (
            "party in (\"red\", \"gren\")",
            "character 18: it is never `gren`; did you mean `green`? (it is red, green, blue)",
        ),
        ("party == 3", "character 7: a text cannot be compared with a number"),
        ("party < \"red\"", "character 1: the left of `<` must be a number, but it is a text"),
        ("age and employed", "character 1: the left of `and` must be true or false, but it is a number"),
        ("employed + 1", "character 1: the left of `+` must be a number, but it is true or false"),
        ("1 if age else 2", "character 6: the condition after `if` must be true or false, but it is a number"),
        ("1 if employed", "character 14: an `else` is missing; write `A if CONDITION else B`"),
        (
            "1 if employed else \"a\"",
            "character 20: both sides of `if … else` must be of one kind, but these are a number and a text",
        ),
        ("sqrt(1, 2)", "character 1: sqrt needs 1 argument, not 2"),
        ("uniform(1, 2)", "character 1: `uniform` draws a random number, which is not possible here"),
        ("squrt(2)", "character 1: there is no function `squrt`; did you mean `sqrt`?"),
        ("0,5", "character 2: a `,` only separates arguments; write decimals with a point, 0.5"),
        ("\"open", "character 1: the closing \" is missing"),
        ("1..2", "character 1: `1..2` is not a number"),
        ("(1", "character 3: a `)` is missing"),
        ("2 3", "character 3: an operator is missing here"),
        ("age in (age)", "character 9: the list after `in` holds numbers or texts"),
        ("and", "character 1: a number, a name, a text or `(` is needed before `and`"),
    ] {
        let error = Formula::of_any_kind(text, &people()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let of_kind = |text: &str, kind| Formula::read(text, &people(), kind).unwrap_err().to_string();
    let wanted = "character 1: the formula gives a number, but true or false is needed; compare it with something, as in `age < 30`";
    assert_eq!(of_kind("age", Kind::Truth), wanted);
    assert!(of_kind("employed", Kind::Number).contains("write `1 if … else 0`"));
}

#[test]
fn long_and_deep_formulas_are_refused() {
    let nested = |n: usize| format!("{}1{}", "(".repeat(n), ")".repeat(n));
    assert_eq!(value(&nested(50)), 1.0);
    assert!(Formula::of_any_kind(&nested(51), &people()).unwrap_err().message.contains("nested deeper"));
    // The values that wait for their operator.
    let waiting = |n: usize| format!("{}1{}", "1 - (".repeat(n), ")".repeat(n));
    assert_eq!(value(&waiting(31)), 0.0);
    assert!(Formula::of_any_kind(&waiting(32), &people()).unwrap_err().message.contains("too deep"));
    assert!(Formula::of_any_kind(&"1+".repeat(1_001), &people()).unwrap_err().message.contains("at most 2000"));
}

/// A second, plain evaluation: formulas are built together with their values.
fn known() -> impl Strategy<Value = (String, f64)> {
    let leaf = prop_oneof![(0u32..1_000).prop_map(|n| (format!("{n}"), f64::from(n))), Just(("age".to_owned(), 25.0)),];
    leaf.prop_recursive(5, 40, 3, |inner| {
        (inner.clone(), inner.clone(), inner, 0..7usize).prop_map(|((a, x), (b, y), (c, z), operator)| match operator {
            0 => (format!("({a} + {b})"), x + y),
            1 => (format!("({a}-{b})"), x - y),
            2 => (format!("(({a})*{b})"), x * y),
            3 => (format!("max({a}, -{b}, {c})"), x.max(-y).max(z)),
            4 => (format!("({a} if {b} < {c} else {b})"), if y < z { x } else { y }),
            5 => (format!("({a} if not {b} >= {c} or {a} == {b} else {c})"), if y < z || x == y { x } else { z }),
            _ => (
                format!("clamp({a}, 0, abs({b}))"),
                if x < 0.0 {
                    0.0
                } else if x > y.abs() {
                    y.abs()
                } else {
                    x
                },
            ),
        })
    })
}

proptest! {
    #[test]
    fn built_formulas_have_the_value_they_were_built_with((text, expected) in known()) {
        prop_assume!(text.chars().count() <= 2_000);
        match Formula::of_any_kind(&text, &people()) {
            Ok(formula) => prop_assert_eq!(formula.value(&read, None), expected),
            Err(error) => prop_assert!(error.message.contains("deep"), "{}: {}", text, error),
        }
    }

    #[test]
    fn no_text_panics(parts in prop::collection::vec(prop::sample::select(vec![
        "1", "2.5", "(", ")", "+", "-", "*", "/", "^", "%", ",", "sqrt(", "min(", "clamp(", "uniform()", "age", "party", "employed",
        "'red'", "\"x\"", "`", " in ", " not ", " and ", " or ", " if ", " else ", "==", "<", ">=", "!=", "=", "é", " ",
    ]), 0..40)) {
        let names = People { draw: true, ..people() };
        if let Ok(formula) = Formula::of_any_kind(&parts.concat(), &names) {
            let _ = formula.value(&read, Some(&mut Draws::new(1, Stream::Turn, 0, 0)));
        }
    }
}
