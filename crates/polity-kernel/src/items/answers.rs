//! Extraction of the final answer from a reply.

/// Returns the last number in a text, without thousands separators, currency signs and a trailing full stop; `None` if the text
/// contains no number.
#[must_use]
pub fn last_number(text: &str) -> Option<String> {
    let digit = |c: char| c.is_ascii_digit();
    let end = text.rfind(digit)? + 1;
    let part = |c: char| digit(c) || matches!(c, '.' | ',');
    let start = text[..end].rfind(|c| !part(c)).map_or(0, |i| i + text[i..].chars().next().map_or(1, char::len_utf8));
    let number = text[start..end].trim_start_matches(['.', ',']).replace(',', "");
    // A minus belongs to the number unless something directly precedes it, as in `5-3`. A currency sign may be in between.
    let before = text[..start].trim_end_matches(['$', '€', '£']);
    let minus = before.strip_suffix(['-', '−']).is_some_and(|rest| !rest.ends_with(|c: char| c.is_alphanumeric()));
    let value: f64 = number.parse().ok()?;
    Some(if minus { -value } else { value }.to_string())
}

/// Returns the content of the last `\boxed{...}` of a text.
#[must_use]
pub fn boxed(text: &str) -> Option<&str> {
    let start = text.rfind("\\boxed{")? + "\\boxed{".len();
    let mut depth = 1;
    for (i, c) in text[start..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(start..start + i);
        }
    }
    None
}

/// Normalises a formula, removing differences in notation only: the usual normalisation of MATH's graders, abridged.
pub(super) fn formula(text: &str) -> String {
    let inner = boxed(text).unwrap_or(text).trim().trim_matches('$').trim().trim_end_matches('.');
    let mut out = inner.to_owned();
    for (from, to) in [
        ("\\left", ""),
        ("\\right", ""),
        ("\\!", ""),
        ("\\,", ""),
        ("\\;", ""),
        ("\\ ", ""),
        ("\\dfrac", "\\frac"),
        ("\\tfrac", "\\frac"),
        ("^{\\circ}", ""),
        ("^\\circ", ""),
        ("\\%", ""),
        ("%", ""),
        ("\\$", ""),
        (" ", ""),
    ] {
        out = out.replace(from, to);
    }
    // Remove words beside a formula: `5\text{ cm}`.
    while let Some(start) = out.find("\\text{") {
        let Some(length) = out[start..].find('}') else { break };
        let inside = out[start + "\\text{".len()..start + length].to_owned();
        let alone = start == 0 && start + length + 1 == out.len();
        out.replace_range(start..=start + length, if alone { &inside } else { "" });
    }
    fraction(&out).unwrap_or(out)
}

/// Evaluates `\frac{a}{b}` and `a/b` of numbers to one number.
fn fraction(text: &str) -> Option<String> {
    let (sign, rest) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let (a, b) = match rest.strip_prefix("\\frac{") {
        Some(rest) => rest.strip_suffix('}')?.split_once("}{")?,
        None => rest.split_once('/')?,
    };
    let (a, b): (f64, f64) = (a.parse().ok()?, b.parse().ok()?);
    (b != 0.0).then(|| (sign * a / b).to_string())
}

/// Returns the letter of the option that an answer names: `B`, `(B)`, `B) text`, `the answer is B`, or the option's text.
pub(super) fn letter(answer: &str, options: &[String]) -> Option<String> {
    let known = |c: char| (c as usize).checked_sub('A' as usize).is_some_and(|i| i < options.len());
    let text = answer.trim();
    if let Some(i) = options.iter().position(|option| same_answer(option, text)) {
        return letter_of(i);
    }
    let bare: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let single = |word: &&str| {
        let mut letters = word.chars();
        letters.next().filter(|c| letters.next().is_none() && known(c.to_ascii_uppercase()))
    };
    // At the beginning the letter may have any case. Elsewhere take the last standalone capital, because `A` is also a word.
    if let Some(c) = bare
        .first()
        .and_then(single)
        .filter(|c| bare.len() == 1 || c.is_uppercase() && bare.len() > 1 && text_marks(text))
    {
        return Some(c.to_ascii_uppercase().to_string());
    }
    bare.iter().rev().find_map(single).filter(|c| c.is_uppercase()).map(String::from)
}

/// Returns whether a text begins with a letter marked as an option: `B)`, `(B)`, `B.`, `B:`.
fn text_marks(text: &str) -> bool {
    let rest = text.trim_start_matches(['(', '[', '*', '"']);
    let mut letters = rest.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic()) && letters.next().is_some_and(|c| ")].:*\"".contains(c))
}

/// Returns the letter of option `i`.
pub(super) fn letter_of(i: usize) -> Option<String> {
    u8::try_from(i).ok().filter(|i| *i < 26).map(|i| char::from(b'A' + i).to_string())
}

/// Returns whether two answers are the same: equal as numbers, or as text without regard to case and surrounding space.
#[must_use]
pub fn same_answer(a: &str, b: &str) -> bool {
    let number = |s: &str| s.trim().replace(',', "").parse::<f64>().ok();
    match (number(a), number(b)) {
        (Some(x), Some(y)) => x == y,
        _ => a.trim().eq_ignore_ascii_case(b.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_sentences() {
        for (text, number) in [
            ("18", Some("18")),
            ("She makes $18 every day.", Some("18")),
            ("#### 1,234.50", Some("1234.5")),
            ("-3", Some("-3")),
            ("it is −$4.20.", Some("-4.2")),
            ("5-3", Some("3")),
            ("minus 7 °C", Some("7")),
            ("from 3 to 5 apples", Some("5")),
            ("none", None),
            ("", None),
            ("1e3", Some("3")),
            ("0.50€ each", Some("0.5")),
            ("größer als 12", Some("12")),
        ] {
            assert_eq!(last_number(text).as_deref(), number, "{text}");
        }
    }

    #[test]
    fn formulas_that_only_look_different_are_the_same() {
        for (a, b) in [
            ("\\boxed{\\dfrac{1}{2}}", "1/2"),
            ("$\\frac{3}{4}$", "0.75"),
            ("so \\boxed{x^{2}+1}.", "x^{2} + 1"),
            ("\\left(1, 2\\right)", "(1,2)"),
            ("5\\text{ cm}", "5"),
            ("\\text{even}", "even"),
            ("90^\\circ", "90"),
        ] {
            assert_eq!(formula(a), formula(b), "{a} and {b}");
        }
        assert_ne!(formula("\\boxed{1}"), formula("2"));
        assert_eq!(boxed("\\boxed{1} then \\boxed{\\frac{a}{b}}"), Some("\\frac{a}{b}"));
        assert_eq!(boxed("\\boxed{never closed"), None);
    }

    #[test]
    fn letters_of_options_are_read_as_people_write_them() {
        let options: Vec<String> = ["Paris", "Rome", "A city", "Oslo"].map(String::from).to_vec();
        for (answer, expected) in [
            ("B", Some("B")),
            ("b", Some("B")),
            ("(C)", Some("C")),
            ("B) Rome", Some("B")),
            ("D. Oslo", Some("D")),
            ("The answer is C.", Some("C")),
            ("A good guess is B", Some("B")),
            ("rome", Some("B")),
            ("A city", Some("C")),
            ("E", None),
            ("I do not know", None),
            ("", None),
        ] {
            assert_eq!(letter(answer, &options).as_deref(), expected, "{answer}");
        }
    }
}
