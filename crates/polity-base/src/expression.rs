//! Arithmetic expressions, by recursive descent.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = unary { ("*" | "/" | "%") unary }
//! unary   = { "-" | "+" } power
//! power   = operand [ ("^" | "**") unary ]
//! operand = number | constant | function "(" sum { "," sum } ")" | "(" sum ")"
//! ```

use crate::EXACT;
use crate::tree::nearest;
use std::fmt;

/// Maximum nesting of parentheses, signs and powers.
const DEEPEST: usize = 50;
/// Maximum length of an expression, in characters.
const LONGEST: usize = 1_000;
/// The names of all functions.
pub const FUNCTIONS: [&str; 13] =
    ["sqrt", "abs", "min", "max", "round", "floor", "ceil", "ln", "log10", "exp", "sin", "cos", "tan"];

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The character, from 1.
    pub character: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "character {}: {}", self.character, self.message)
    }
}

impl std::error::Error for Wrong {}

/// Makes an error at a character, counted from 0.
pub(crate) fn wrong<T>(at: usize, message: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { character: at + 1, message: message.into() })
}

/// Returns the value of an expression, which is finite.
///
/// # Errors
/// Unreadable text, unknown names, operations without a finite result, and expressions that are too long or too deep.
pub fn value(text: &str) -> Result<f64, Wrong> {
    let plain = |c: char| match c {
        '×' | '·' => '*',
        '÷' => '/',
        '−' | '–' => '-',
        other => other,
    };
    let characters: Vec<char> = text.chars().map(plain).collect();
    if characters.len() > LONGEST {
        return wrong(
            LONGEST,
            format!("an expression has at most {LONGEST} characters, this one {}", characters.len()),
        );
    }
    let mut parser = Parser { characters, at: 0, depth: 0 };
    let value = parser.sum()?;
    match parser.next() {
        None => Ok(value),
        Some(_) => parser.unexpected(),
    }
}

/// Writes a value with at most 15 significant digits, which hides the rounding of binary fractions. Whole numbers are exact.
#[must_use]
pub fn shown(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return (value as i64).to_string();
    }
    let rounded = format!("{value:.14e}").parse().unwrap_or(value);
    match rounded.abs() {
        1e-5..1e15 => rounded.to_string(),
        _ => format!("{rounded:e}"),
    }
}

struct Parser {
    characters: Vec<char>,
    /// The next character.
    at: usize,
    depth: usize,
}

impl Parser {
    /// Returns the next character after spaces, which stays the next one.
    fn next(&mut self) -> Option<char> {
        while self.characters.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.characters.get(self.at).copied()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.next() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// Makes the error that the next character stands where an operator or the end was expected.
    fn unexpected<T>(&mut self) -> Result<T, Wrong> {
        match self.next() {
            None => wrong(self.at, "a `)` is missing"),
            Some(')') => wrong(self.at, "there is no `(` for this `)`"),
            Some(',') => {
                wrong(self.at, "`,` only separates the arguments of min, max and round; write 1000 instead of 1,000")
            }
            Some(c) if c.is_alphanumeric() || matches!(c, '(' | '.' | '_') => {
                wrong(self.at, format!("an operator is missing before `{c}`; write 2 * (3) instead of 2(3)"))
            }
            Some(c) => wrong(self.at, format!("`{c}` is unexpected")),
        }
    }

    fn sum(&mut self) -> Result<f64, Wrong> {
        let mut value = self.product()?;
        loop {
            let at = self.at;
            if self.eat('+') {
                value = finite(value + self.product()?, at)?;
            } else if self.eat('-') {
                value = finite(value - self.product()?, at)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, Wrong> {
        let mut value = self.unary()?;
        loop {
            let next = self.next();
            let at = self.at;
            let Some(operator @ ('*' | '/' | '%')) = next else { return Ok(value) };
            self.at += 1;
            if operator == '%' && self.next().is_none_or(|c| ")*/%^,".contains(c)) {
                let message =
                    "`%` is the remainder of a division and needs a number after it; for percent, divide by 100";
                return wrong(at, message);
            }
            let by = self.unary()?;
            if by == 0.0 && operator != '*' {
                return wrong(at, "a division by 0");
            }
            let result = match operator {
                '*' => value * by,
                '/' => value / by,
                _ => remainder(value, by),
            };
            value = finite(result, at)?;
        }
    }

    fn unary(&mut self) -> Result<f64, Wrong> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return wrong(self.at, format!("parentheses, signs and powers are nested deeper than {DEEPEST} levels"));
        }
        let value = match (self.eat('-'), self.eat('+')) {
            (true, _) => -self.unary()?,
            (_, true) => self.unary()?,
            _ => self.power()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn power(&mut self) -> Result<f64, Wrong> {
        let base = self.operand()?;
        let next = self.next();
        let at = self.at;
        match next {
            Some('^') => self.at += 1,
            Some('*') if self.characters.get(at + 1) == Some(&'*') => self.at += 2,
            _ => return Ok(base),
        }
        let exponent = self.unary()?;
        if base == 0.0 && exponent < 0.0 {
            return wrong(at, "0 to a negative power is a division by 0");
        }
        if base < 0.0 && exponent.fract() != 0.0 {
            return wrong(at, "a negative number to a power that is not whole has no real value");
        }
        finite(libm::pow(base, exponent), at)
    }

    fn operand(&mut self) -> Result<f64, Wrong> {
        match self.next() {
            Some('(') => {
                self.at += 1;
                let value = self.sum()?;
                if self.eat(')') { Ok(value) } else { self.unexpected() }
            }
            Some('π') => {
                self.at += 1;
                Ok(std::f64::consts::PI)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() => self.name(),
            Some(')') => wrong(self.at, "a number is missing before `)`"),
            Some(c) => wrong(self.at, format!("`{c}` is unexpected; a number, a name or `(` is needed here")),
            None => wrong(self.at, "the expression ends too early; a number, a name or `(` is needed here"),
        }
    }

    fn number(&mut self) -> Result<f64, Wrong> {
        let start = self.at;
        self.at = number_end(&self.characters, start);
        let digits: String = self.characters[start..self.at].iter().collect();
        match digits.parse() {
            Ok(value) => finite(value, start),
            Err(_) => wrong(start, format!("`{digits}` is not a number")),
        }
    }

    fn name(&mut self) -> Result<f64, Wrong> {
        let start = self.at;
        while self.characters.get(self.at).is_some_and(|c| c.is_alphanumeric() || *c == '_') {
            self.at += 1;
        }
        let name: String = self.characters[start..self.at].iter().collect::<String>().to_lowercase();
        match name.as_str() {
            "pi" => return Ok(std::f64::consts::PI),
            "e" => return Ok(std::f64::consts::E),
            _ => {}
        }
        if !FUNCTIONS.contains(&name.as_str()) {
            let known = || FUNCTIONS.into_iter().chain(["pi", "e"]);
            let near = nearest(&name, known()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            let all = known().collect::<Vec<_>>().join(", ");
            return wrong(start, format!("there is no function or constant `{name}`{near} (there are {all})"));
        }
        if !self.eat('(') {
            return wrong(self.at, format!("a `(` is missing after `{name}`"));
        }
        let mut arguments = vec![self.sum()?];
        while self.eat(',') {
            arguments.push(self.sum()?);
        }
        if !self.eat(')') {
            return self.unexpected();
        }
        finite(apply(&name, &arguments, start)?, start)
    }
}

/// Applies a function to at least one argument.
fn apply(name: &str, arguments: &[f64], at: usize) -> Result<f64, Wrong> {
    let domain = |fits: bool, needs: &str| if fits { Ok(()) } else { wrong(at, format!("{name} needs {needs}")) };
    let most = match name {
        "min" | "max" => usize::MAX,
        "round" => 2,
        _ => 1,
    };
    domain(arguments.len() <= most, &format!("at most {most} argument{}", if most == 1 { "" } else { "s" }))?;
    let x = arguments[0];
    Ok(match name {
        "sqrt" => {
            domain(x >= 0.0, "a number that is not negative")?;
            x.sqrt()
        }
        "ln" | "log10" => {
            domain(x > 0.0, "a number above 0")?;
            if name == "ln" { libm::log(x) } else { libm::log10(x) }
        }
        "min" => arguments.iter().copied().fold(x, f64::min),
        "max" => arguments.iter().copied().fold(x, f64::max),
        "round" => {
            let digits = arguments.get(1).copied().unwrap_or_default();
            domain(digits.fract() == 0.0 && (0.0..=15.0).contains(&digits), "a whole number of digits from 0 to 15")?;
            let unit = libm::pow(10.0, digits);
            let scaled = x * unit;
            // Larger numbers have no digits to cut.
            if scaled.is_finite() { scaled.round() / unit } else { x }
        }
        "abs" => x.abs(),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "exp" => libm::exp(x),
        "sin" => libm::sin(x),
        "cos" => libm::cos(x),
        "tan" => libm::tan(x),
        _ => return wrong(at, format!("there is no function `{name}`")),
    })
}

/// Returns where the number that begins at `start` ends. It has digits, points and an exponent; whether it is a number is not checked.
pub(crate) fn number_end(characters: &[char], start: usize) -> usize {
    let is_digit = |at: usize| characters.get(at).is_some_and(char::is_ascii_digit);
    let mut end = start;
    while is_digit(end) || characters.get(end) == Some(&'.') {
        end += 1;
    }
    if matches!(characters.get(end), Some('e' | 'E')) {
        let sign = usize::from(matches!(characters.get(end + 1), Some('+' | '-')));
        if is_digit(end + 1 + sign) {
            end += 1 + sign;
            while is_digit(end) {
                end += 1;
            }
        }
    }
    end
}

/// Returns the remainder with the sign of the divisor; NaN if the divisor is 0.
pub(crate) fn remainder(value: f64, by: f64) -> f64 {
    let remainder = libm::fmod(value, by);
    if remainder != 0.0 && (remainder < 0.0) != (by < 0.0) { remainder + by } else { remainder }
}

fn finite(value: f64, at: usize) -> Result<f64, Wrong> {
    if value.is_finite() { Ok(value) } else { wrong(at, "the result is too large") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::f64::consts::{E, PI};

    #[test]
    fn expressions_have_their_values() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("-4 - -4", 0.0),
            ("10 / 4 / 5", 0.5),
            ("--2 + +3", 5.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("2 ** 3 ** 2", 512.0),
            ("-2 ^ 2", -4.0),
            ("(-2) ^ 2", 4.0),
            ("2 ^ -1", 0.5),
            ("2 * 3 ^ 2", 18.0),
            ("(-8) ^ 3", -512.0),
            ("0 ^ 0", 1.0),
            ("7 % 3", 1.0),
            ("-7 % 3", 2.0),
            ("7 % -3", -2.0),
            ("-7 % -3", -1.0),
            ("6 % -3", 0.0),
            ("5.5 % 2", 1.5),
            ("2 * 7 % 4", 2.0),
            (".5 + 1.", 1.5),
            ("1e3 + 2.5E-1 + 1e+1", 1010.25),
            ("2 × 3 ÷ 4 − 1 · 1", 0.5),
            ("pi - π", 0.0),
            ("2 * e", 2.0 * E),
            ("sqrt(16) + abs(-3)", 7.0),
            ("min(3, 1, 2) + max(4) + max(1, 2 + 3)", 10.0),
            ("round(2.5) + round(-2.5) + round(2.4)", 2.0),
            ("round(2.718, 2)", 2.72),
            ("round(1e300, 15)", 1e300),
            ("floor(-1.5) + ceil(-1.5)", -3.0),
            ("ln(e) + log10(1000) + exp(0)", 5.0),
            ("sin(pi / 6)", (PI / 6.0).sin()),
            ("cos(0) + tan(0)", 1.0),
            (" SQRT ( 9 ) ", 3.0),
        ] {
            let found = value(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!((found - expected).abs() <= 1e-14 * expected.abs(), "{text}: {found}");
        }
    }

    #[test]
    fn errors_say_where_and_what_to_do() {
        for (text, expected) in [
            ("", "character 1: the expression ends too early; a number, a name or `(` is needed here"),
            ("1 +", "character 4: the expression ends too early; a number, a name or `(` is needed here"),
            ("1 + * 2", "character 5: `*` is unexpected; a number, a name or `(` is needed here"),
            ("1 2", "character 3: an operator is missing before `2`; write 2 * (3) instead of 2(3)"),
            ("2(3)", "character 2: an operator is missing before `(`; write 2 * (3) instead of 2(3)"),
            ("2pi", "character 2: an operator is missing before `p`; write 2 * (3) instead of 2(3)"),
            (
                "1,000 + 1",
                "character 2: `,` only separates the arguments of min, max and round; write 1000 instead of 1,000",
            ),
            ("(1 + 2", "character 7: a `)` is missing"),
            ("1)", "character 2: there is no `(` for this `)`"),
            ("()", "character 2: a number is missing before `)`"),
            ("1 = 1", "character 3: `=` is unexpected"),
            ("1..2", "character 1: `1..2` is not a number"),
            ("4 / (2 - 2)", "character 3: a division by 0"),
            ("4 % 0", "character 3: a division by 0"),
            (
                "20% * 50",
                "character 3: `%` is the remainder of a division and needs a number after it; for percent, divide by 100",
            ),
            ("0 ^ -1", "character 3: 0 to a negative power is a division by 0"),
            ("(-8) ^ 0.5", "character 6: a negative number to a power that is not whole has no real value"),
            ("1 + sqrt(-1)", "character 5: sqrt needs a number that is not negative"),
            ("ln(0)", "character 1: ln needs a number above 0"),
            ("sqrt(1, 2)", "character 1: sqrt needs at most 1 argument"),
            ("round(1, 2, 3)", "character 1: round needs at most 2 arguments"),
            ("round(1, 0.5)", "character 1: round needs a whole number of digits from 0 to 15"),
            ("sqrt 2", "character 6: a `(` is missing after `sqrt`"),
            ("sqrt()", "character 6: a number is missing before `)`"),
            ("min(1 2)", "character 7: an operator is missing before `2`; write 2 * (3) instead of 2(3)"),
            ("exp(1000)", "character 1: the result is too large"),
            ("2 ^ 99999", "character 3: the result is too large"),
            ("1e999", "character 1: the result is too large"),
            (
                "sqr(4)",
                "character 1: there is no function or constant `sqr`; did you mean `sqrt`? (there are sqrt, abs, min, max, round, \
                 floor, ceil, ln, log10, exp, sin, cos, tan, pi, e)",
            ),
        ] {
            assert_eq!(value(text).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn long_and_deep_expressions_are_refused() {
        let nested = |n: usize, open: &str, close: &str| format!("{}1{}", open.repeat(n), close.repeat(n));
        for (open, close) in [("(", ")"), ("-", ""), ("1^", ""), ("abs(", ")")] {
            assert!(value(&nested(49, open, close)).is_ok(), "{open}");
            let error = value(&nested(50, open, close)).unwrap_err().message;
            assert_eq!(error, "parentheses, signs and powers are nested deeper than 50 levels", "{open}");
        }
        assert_eq!(value(&format!("1{}", "+1".repeat(499))), Ok(500.0));
        let error = value(&format!("1{}", "+1".repeat(500))).unwrap_err().to_string();
        assert_eq!(error, "character 1001: an expression has at most 1000 characters, this one 1001");
    }

    #[test]
    fn values_are_written_for_people() {
        for (value, expected) in [
            (0.1 + 0.2, "0.3"),
            (-0.0, "0"),
            (1.0 / 3.0, "0.333333333333333"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (-12.5, "-12.5"),
            (1e21, "1e21"),
            (1.5e-7, "1.5e-7"),
            (123_456.789, "123456.789"),
        ] {
            assert_eq!(shown(value), expected);
        }
    }

    /// An expression and its value, by construction.
    fn known() -> impl Strategy<Value = (String, f64)> {
        let leaf = (0u32..1_000).prop_map(|n| (format!("{n}"), f64::from(n)));
        leaf.prop_recursive(4, 24, 2, |inner| {
            (inner.clone(), inner, 0..4usize).prop_map(|((a, x), (b, y), operator)| match operator {
                0 => (format!("({a} + {b})"), x + y),
                1 => (format!("({a}-{b})"), x - y),
                2 => (format!("(({a})*{b})"), x * y),
                _ => (format!("max({a}, -{b})"), x.max(-y)),
            })
        })
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9a-z+*/^%().,πé -]{0,40}|.{0,40}") {
            match value(&text) {
                Ok(value) => prop_assert!(value.is_finite()),
                Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.character), "{}", error),
            }
        }

        #[test]
        fn words_of_the_language_never_panic(parts in proptest::collection::vec(proptest::sample::select(vec![
            "1", "2.5", "(", ")", "+", "-", "*", "/", "^", "%", ",", "sqrt(", "min(", "round(", "ln(", "pi", "e", "1e9", " ",
        ]), 0..40)) {
            if let Ok(value) = value(&parts.concat()) {
                prop_assert!(value.is_finite());
            }
        }

        #[test]
        fn built_expressions_have_the_value_they_were_built_with((text, expected) in known()) {
            prop_assume!(text.chars().count() <= LONGEST);
            prop_assert_eq!(value(&text), Ok(expected));
        }
    }
}
