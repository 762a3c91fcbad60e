//! Text on the page: escaping, estimated widths, cutting, and numbers as people read them.

use polity_store::printable::printable;
use std::borrow::Cow;

/// The maximum length of the full name in a hover title, in characters.
const LONGEST_TITLE: usize = 500;

/// `text` made safe inside HTML text and inside double-quoted attributes.
///
/// Control characters that HTML forbids become U+FFFD, so that hostile output cannot upset a parser.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    // Direction marks would reorder the text around them.
    printable(&safe).into_owned()
}

/// The estimated width of `text` in pixels at a font size in pixels.
///
/// The page uses the reader's own sans-serif font, so this is an upper middle of the common ones, not a measurement.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 't' | 'f' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '(' | ')' => 0.33,
            'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' | '—' => 0.92,
            'A'..='Z' => 0.7,
            c if u32::from(c) >= 0x1100 && !('\u{2000}'..='\u{2bff}').contains(&c) => 1.05,
            _ => 0.58,
        })
        .sum();
    ems * size
}

/// `text` if it fits into `room` pixels, else its beginning, an ellipsis and its end, since names of arms differ at their ends.
pub(super) fn cut(text: &str, room: f64, size: f64) -> Cow<'_, str> {
    if width(text, size) <= room {
        return Cow::Borrowed(text);
    }
    let (mut begin, mut end) = (String::new(), Vec::new());
    let mut used = width("…", size);
    let mut chars = text.chars();
    // Take characters from both sides in turn. They never run out, or the whole text would have fitted.
    while let Some(c) = if begin.chars().count() <= end.len() { chars.next() } else { chars.next_back() } {
        used += width(c.encode_utf8(&mut [0; 4]), size);
        if used > room {
            break;
        }
        match begin.chars().count() <= end.len() {
            true => begin.push(c),
            false => end.push(c),
        }
    }
    let end: String = end.into_iter().rev().collect();
    Cow::Owned(format!("{}…{}", begin.trim_end(), end.trim_start()))
}

/// The first `limit` characters of `text`, with an ellipsis when there are more.
pub(super) fn first(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The escaped full name for a hover title.
pub(super) fn full(text: &str) -> String {
    escape(&first(text, LONGEST_TITLE))
}

/// A number for reading: six significant digits, grouped thousands, a true minus sign.
pub(super) fn shown(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let (mantissa, exponent) = parts(value, 5);
    if value == 0.0 || (-5..9).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return grouped(&trimmed(&format!("{value:.decimals$}")), 5);
    }
    scientific(&trimmed(&mantissa), exponent)
}

/// A number in a sentence or beside a line: three significant digits, and no digit of a whole number left out.
pub fn short(value: f64) -> String {
    rounded(value, 2)
}

/// A number with its interval in view: two digits of half the interval's width, but at least three significant ones. A value and
/// the ends of its interval have the same number of decimals.
pub fn measured(value: f64, interval: Option<(f64, f64)>) -> String {
    let Some((low, high)) = interval.filter(|(low, high)| low.is_finite() && high > low) else { return short(value) };
    let (_, of_middle) = parts((low + high) / 2.0, 2);
    let (_, of_half) = parts((high - low) / 2.0, 1);
    let decimals = usize::try_from((2 - of_middle).min(6).max(1 - of_half)).unwrap_or(0);
    let plain = value.is_finite() && decimals <= 8 && value.abs() < 1e9;
    if plain { grouped(&format!("{:.decimals$}", value + 0.0), 5) } else { short(value) }
}

/// A number with `digits` digits after its first one.
fn rounded(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let (mantissa, exponent) = parts(value, digits);
    if value == 0.0 || (-4..9).contains(&exponent) {
        let decimals = usize::try_from(i32::try_from(digits).unwrap_or(2) - exponent).unwrap_or(0);
        return grouped(&trimmed(&format!("{value:.decimals$}")), 5);
    }
    scientific(&trimmed(&mantissa), exponent)
}

/// A number for copying: the shortest text that reads back as the same value; empty for a missing value.
pub(super) fn plain(value: f64) -> String {
    if !value.is_finite() {
        return String::new();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e15).contains(&size) { format!("{value:e}") } else { format!("{}", value + 0.0) }
}

/// A value in per cent with its sign, such as `12.3 %`.
pub(super) fn percent(value: f64) -> String {
    let decimals = if value > 0.0 && value < 0.1 { 3 } else { 1 };
    format!("{}\u{202f}%", trimmed(&format!("{value:.decimals$}")))
}

/// `value` with a fixed number of decimals; `group` says whether thousands are grouped, alike for all ticks of an axis.
pub(super) fn fixed(value: f64, decimals: usize, group: bool) -> String {
    grouped(&format!("{:.decimals$}", value + 0.0), if group { 4 } else { usize::MAX })
}

/// Mantissa with `digits` decimals and decimal exponent, through the formatter: exact on every platform, which `log10` is not.
pub(super) fn parts(value: f64, digits: usize) -> (String, i32) {
    let text = format!("{value:.digits$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse().unwrap_or(0)),
        None => (text, 0),
    }
}

fn trimmed(number: &str) -> String {
    let short = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// The digits of exponents.
const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

fn scientific(mantissa: &str, exponent: i32) -> String {
    let power: String = exponent
        .to_string()
        .chars()
        .map(|c| match c.to_digit(10) {
            Some(digit) => RAISED[digit as usize % 10],
            None => '⁻',
        })
        .collect();
    format!("{}×10{power}", mantissa.replace('-', "−"))
}

/// Returns the digit or the sign that a character of an exponent stands for; `None` for any other character.
pub(super) fn lowered(c: char) -> Option<char> {
    let digit = RAISED.iter().position(|raised| *raised == c);
    digit.map(|digit| char::from(b'0' + digit as u8)).or_else(|| (c == '⁻').then_some('-'))
}

/// Thousands grouped from `least` digits on, so that years and round numbers stay plain.
fn grouped(number: &str, least: usize) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |rest| ("−", rest));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let mut text = sign.to_owned();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && whole.len() >= least && (whole.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (0.1 + 0.2, "0.3"),
            (-2.5, "−2.5"),
            (1234.0, "1234"),
            (1_234_567.0, "1,234,567"),
            (2.0 / 3.0, "0.666667"),
            (1.5e12, "1.5×10¹²"),
            (-3e-9, "−3×10⁻⁹"),
            (999_999.96, "1,000,000"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(shown(value), text, "{value}");
        }
        assert_eq!(percent(12.34), "12.3\u{202f}%");
        assert_eq!(percent(0.01), "0.01\u{202f}%");
    }

    #[test]
    fn numbers_in_sentences_have_three_digits() {
        let cases = [
            (0.0, "0"),
            (2.0 / 3.0, "0.667"),
            (13.5256, "13.5"),
            (5000.0, "5000"),
            (12_345.6, "12,346"),
            (-0.00052, "−0.00052"),
            (5.2e-6, "5.2×10⁻⁶"),
            (0.9999, "1"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text, "{value}");
        }
        assert_eq!(measured(0.423_555, Some((0.32, 0.52))), "0.424");
        assert_eq!(measured(0.423_555, Some((0.4234, 0.4236))), "0.42356");
        assert_eq!(measured(-2.3, Some((-2.56, -2.3))), "−2.30");
        assert_eq!(measured(-12.3456, None), "−12.3");
    }

    #[test]
    fn plain_numbers_read_back() {
        for value in [0.1 + 0.2, -1e300, 5e-324, 1.0 / 3.0, 1e15, 123_456_789.125] {
            assert_eq!(plain(value).parse::<f64>(), Ok(value));
        }
        assert_eq!(plain(f64::INFINITY), "");
        assert_eq!(plain(-0.0), "0");
    }

    #[test]
    fn long_names_are_cut_to_their_room() {
        let long = "a cohort with a very long name indeed ".repeat(40);
        let short = cut(&long, 100.0, 12.0);
        assert!(short.contains('…') && width(&short, 12.0) <= 100.0, "{short}");
        let long = format!("{}=5", "cohorts[0].policy.epsilon".repeat(3));
        assert!(cut(&long, 100.0, 12.0).ends_with("=5"));
        assert_eq!(cut("mean", 100.0, 12.0), "mean");
        assert_eq!(first("añb", 2), "añ…");
        assert_eq!(first("añb", 3), "añb");
    }
}
