//! The answers of a simulated model: wrong ones, and placeholders if the right one is unknown.

use polity_kernel::ask::{Hidden, ResponseFormat};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::method::same_answer;
use polity_kernel::rng::Draws;

/// Maximum distance of wrong answers from the right number, in steps.
const STEPS: i32 = 10;
/// Bounds of made-up numbers if the request sets none.
const FAR: f64 = 1e9;

/// Parses a finite number as people write it, like `same_answer`.
pub(super) fn number(text: &str) -> Option<f64> {
    text.trim().replace(',', "").parse().ok().filter(|x: &f64| x.is_finite())
}

/// The field of a record that holds the answer, else its first field.
pub(super) fn answer_field(fields: &[(String, ResponseFormat)]) -> usize {
    fields.iter().position(|(name, _)| name == "answer").unwrap_or(0)
}

/// The part of the requested form that is the answer itself.
pub(super) fn answer_want(response_format: &ResponseFormat) -> &ResponseFormat {
    match response_format {
        ResponseFormat::Record(fields) => fields
            .get(answer_field(fields))
            .map_or(response_format, |(_, response_format)| answer_want(response_format)),
        ResponseFormat::List { of, .. } => answer_want(of),
        _ => response_format,
    }
}

/// Wrong answers of the requested kind: other options, numbers near the right one, or made-up words. A wrong text never contains the
/// right one, which must not enter a prompt that way.
fn wrong_answers(response_format: &ResponseFormat, hidden: &Hidden) -> Vec<String> {
    let Hidden { gold, wrong, .. } = hidden;
    let candidates = match (response_format, number(gold)) {
        _ if !wrong.is_empty() => wrong.to_vec(),
        (ResponseFormat::Choice(options), _) => options.clone(),
        (ResponseFormat::Number { low, high, whole }, Some(right)) => {
            let step = step(right).min((high - low) / f64::from(STEPS));
            near(right, step).map(|x| fit(tidy(x), *low, *high, *whole).to_string()).collect()
        }
        (_, Some(right)) => near(right, step(right)).map(|x| tidy(x).to_string()).collect(),
        (_, None) => (1..=2 * STEPS).map(|k| format!("simulated wrong answer {k}")).collect(),
    };
    candidates.into_iter().filter(|candidate| !same_answer(candidate, gold)).collect()
}

fn fit(x: f64, low: f64, high: f64, whole: bool) -> f64 {
    match whole {
        true => x.round().max(low.ceil()).min(high.floor()),
        false => x.max(low).min(high),
    }
}

fn step(right: f64) -> f64 {
    (right.abs() / f64::from(STEPS)).round().max(1.0)
}

fn near(right: f64, step: f64) -> impl Iterator<Item = f64> {
    (1..=STEPS).flat_map(move |k| [right - f64::from(k) * step, right + f64::from(k) * step])
}

/// Rounds off binary fractions where possible.
fn tidy(x: f64) -> f64 {
    if x.abs() < FAR { (x * 1e6).round() / 1e6 } else { x }
}

/// A wrong answer other than `but`; falls back to `but`, then to the right answer.
pub(super) fn wrong(response_format: &ResponseFormat, hidden: &Hidden, but: Option<&str>, draws: &mut Draws) -> String {
    let gold = &hidden.gold;
    let mut candidates = wrong_answers(response_format, hidden);
    candidates.retain(|candidate| but.is_none_or(|but| !same_answer(candidate, but)));
    match candidates.is_empty() {
        true => but.unwrap_or(gold).to_owned(),
        false => candidates.swap_remove(draws.below(candidates.len() as u64) as usize),
    }
}

/// An answer if the right one is unknown: uniform over the options or the bounds, or a numbered phrase.
pub(super) fn placeholder(response_format: &ResponseFormat, draws: &mut Draws) -> String {
    match response_format {
        ResponseFormat::Choice(options) => {
            options.get(draws.below(options.len() as u64) as usize).cloned().unwrap_or_default()
        }
        ResponseFormat::Number { low, high, whole } => {
            let x = draws.range(low.max(-FAR), high.min(FAR));
            fit((x * 100.0).round() / 100.0, *low, *high, *whole).to_string()
        }
        ResponseFormat::Text
        | ResponseFormat::List { .. }
        | ResponseFormat::Record(_)
        | ResponseFormat::Calls(_)
        | ResponseFormat::Vector => {
            format!("simulated reply {}", draws.below(1000))
        }
    }
}

/// Reasons of about `mean` tokens (half to one and a half times as many): readable but meaningless.
pub(super) fn reasons(mean: u32, draws: &mut Draws) -> String {
    const PHRASES: [&str; 8] = [
        "I went through the question step by step.",
        "Each quantity follows from the one before it.",
        "I checked the units and they agree.",
        "Doing it the other way round gives the same.",
        "The wording leaves one reading only.",
        "I left out what the question does not ask for.",
        "A rough estimate is of the same size.",
        "I compared this with what was said before.",
    ];
    let letters = (f64::from(mean) * draws.range(0.5, 1.5) * 4.0) as usize;
    let mut text = String::with_capacity(letters + 64);
    let mut phrase = draws.below(PHRASES.len() as u64) as usize;
    while text.len() < letters {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(PHRASES[phrase % PHRASES.len()]);
        phrase += 1;
    }
    text.truncate(letters);
    text.truncate(text.trim_end().len());
    text
}

/// Default length of a text's embedding.
pub(crate) const DIMENSIONS: usize = 256;

/// An embedding: every word adds to one dimension, up or down. Texts with common words are near each other.
pub(crate) fn embedding(text: &str, dimensions: usize) -> Vec<f32> {
    let mut vector = vec![0.0f32; dimensions];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash = RowHash::new(Kind::Request, 0).bytes(word.to_lowercase().as_bytes()).finish();
        if let Some(place) = vector.get_mut((hash % dimensions as u128) as usize) {
            *place += if hash >> 127 == 0 { 1.0 } else { -1.0 };
        }
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    match length > 0.0 {
        true => vector.iter_mut().for_each(|x| *x /= length),
        // A text without words needs a vector, too.
        false => vector.iter_mut().take(1).for_each(|x| *x = 1.0),
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_common_words_are_near() {
        let near = |a: &str, b: &str| {
            let (a, b) = (embedding(a, 256), embedding(b, 256));
            a.iter().zip(&b).map(|(x, y)| x * y).sum::<f32>()
        };
        assert!((near("a red house", "A RED house!") - 1.0).abs() < 1e-5);
        assert!(near("a red house", "a red car") > near("a red house", "ten loud dogs"));
        assert_eq!(embedding("", 4), [1.0, 0.0, 0.0, 0.0]);
    }
}
