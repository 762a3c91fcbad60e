//! Choices constrained without a schema, for servers of small models: by a list of options, by a grammar, or by the log-probabilities of
//! letters that label the options.

use polity_kernel::ask::{ChatMessage, Outcome, Request, Value};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::rng::{Draws, Stream};
use std::fmt::Write as _;

/// Maximum number of lettered options: servers report no more alternatives per token.
pub(super) const MOST_LETTERS: usize = 20;

/// The constraint of a choice.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// The list of options.
    To(Vec<String>),
    /// A grammar in GBNF (llama.cpp, `grammars/README.md`).
    By(String),
    /// None: the prompt labels the options with letters, and one token's log-probabilities are requested.
    Letters,
}

impl Held {
    /// The grammar that derives exactly the options.
    pub(crate) fn in_grammar(options: &[String]) -> Self {
        let mut grammar = String::from("root ::= ");
        for (i, option) in options.iter().enumerate() {
            grammar.push_str(if i > 0 { " | \"" } else { "\"" });
            for letter in option.chars() {
                match letter {
                    '"' | '\\' => grammar.extend(['\\', letter]),
                    '\n' => grammar.push_str("\\n"),
                    '\r' => grammar.push_str("\\r"),
                    '\t' => grammar.push_str("\\t"),
                    letter => grammar.push(letter),
                }
            }
            grammar.push('"');
        }
        Held::By(grammar)
    }
}

/// The options in words, if the server does the rest.
pub(super) fn listed(options: &[String]) -> String {
    format!("Reply with one of these, and with nothing else: {}", options.join(" | "))
}

/// The letter of an option.
fn letter(i: usize) -> char {
    char::from(b'A' + i as u8)
}

/// The options labelled with letters.
pub(super) fn in_letters(options: &[String]) -> String {
    let mut words = String::new();
    for (i, option) in options.iter().enumerate() {
        let _ = writeln!(words, "{}) {option}", letter(i));
    }
    words.push_str("\nReply with the letter of one option, and with nothing else.");
    words
}

/// The option whose letter is likeliest among a token's alternatives (with log-probabilities); ties go to the first. At a temperature
/// above 0 it is drawn, with a key that depends only on the request, since equal requests may share an answer. If no option's letter is
/// among them, there is no reply.
pub(super) fn chosen(
    options: &[String],
    alternatives: &[(String, f64)],
    temperature: Option<f64>,
    request: &Request,
    seed: u64,
) -> Outcome {
    // A letter may occur with and without a leading space.
    let weight = |i: usize| {
        let own = alternatives.iter().filter(|(token, _)| token.trim().chars().eq([letter(i)]));
        own.map(|(_, logprob)| libm::exp(*logprob)).filter(|p| p.is_finite()).sum::<f64>()
    };
    let weights: Vec<f64> = (0..options.len()).map(weight).collect();
    let raw: Vec<String> = alternatives.iter().map(|(token, logprob)| format!("{token:?} {logprob:.4}")).collect();
    let raw = raw.join(", ");
    let best = weights.iter().copied().fold(0.0, f64::max);
    if best <= 0.0 {
        let why = match alternatives.is_empty() {
            true => "the server told no log-probabilities of the first token".into(),
            false => format!("none of the {} letters is among the likeliest first tokens", options.len()),
        };
        return Outcome::Invalid { raw, why };
    }
    let chosen = match temperature.filter(|temperature| *temperature > 0.0) {
        None => weights.iter().position(|weight| *weight >= best).unwrap_or(0),
        Some(temperature) => {
            let weights = weights.iter().map(|weight| libm::pow(weight / best, 1.0 / temperature));
            draws(request, seed).weighted(&weights.collect::<Vec<_>>()).unwrap_or(0)
        }
    };
    Outcome::Reply { value: Value::Choice(chosen as u32), raw, repaired: false }
}

/// Random draws of a request: equal for equal words, settings and sample number.
pub(super) fn draws(request: &Request, seed: u64) -> Draws {
    let key = RowHash::new(Kind::Request, 0).bytes(request.model.as_bytes());
    let said = |key: RowHash, message: &ChatMessage| key.word(message.role as u64).bytes(message.rendered().as_bytes());
    let key = request.messages.iter().fold(key, said).word(request.settings.seed.unwrap_or(0));
    Draws::new(seed ^ key.finish() as u64, Stream::Model, 0, request.sample)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use polity_kernel::ask::{ResponseFormat, Role};

    fn options() -> Vec<String> {
        ["one", "two", "three"].map(String::from).to_vec()
    }

    fn request(sample: u32) -> Request {
        let response_format = ResponseFormat::Choice(options());
        Request { sample, ..Request::new("m", vec![ChatMessage::text(Role::User, "?")], response_format) }
    }

    fn told(tokens: &[(&str, f64)]) -> Vec<(String, f64)> {
        tokens.iter().map(|(token, p)| ((*token).to_owned(), p.ln())).collect()
    }

    fn choice(outcome: &Outcome) -> Option<u32> {
        match outcome {
            Outcome::Reply { value: Value::Choice(i), repaired: false, .. } => Some(*i),
            _ => None,
        }
    }

    #[test]
    fn the_likeliest_letter_counts_and_nothing_else_does() {
        let found = |tokens: &[(&str, f64)]| choice(&chosen(&options(), &told(tokens), None, &request(0), 1));
        assert_eq!(found(&[("The", 0.6), ("A", 0.1), ("B", 0.3)]), Some(1));
        // A letter counts together with its space-prefixed form.
        assert_eq!(found(&[("B", 0.3), ("A", 0.2), (" A", 0.2)]), Some(0));
        assert_eq!(found(&[("B", 0.3), ("A", 0.3)]), Some(0));
        // Neither other letters nor words that start with one.
        for tokens in
            [&[("The", 0.6), ("D", 0.4)][..], &[("Answer", 1.0)], &[("a", 1.0)], &[("AB", 1.0)], &[("A", 0.0)], &[]]
        {
            assert!(
                matches!(chosen(&options(), &told(tokens), None, &request(0), 1), Outcome::Invalid { .. }),
                "{tokens:?}"
            );
        }
    }

    #[test]
    fn at_a_temperature_letters_are_drawn_by_their_probabilities() {
        let alternatives = told(&[("A", 0.1), ("B", 0.2), ("C", 0.3), ("Well", 0.4)]);
        let shares = |temperature| {
            let mut counts = [0; 3];
            for sample in 0..6000 {
                let outcome = chosen(&options(), &alternatives, Some(temperature), &request(sample), 1);
                counts[choice(&outcome).unwrap() as usize] += 1;
            }
            counts.map(|count| f64::from(count) / 6000.0)
        };
        // One standard error is below 0.0065; squared shares at half the temperature.
        for (temperature, expected) in [(1.0, [1.0, 2.0, 3.0]), (0.5, [1.0, 4.0, 9.0])] {
            let all: f64 = expected.iter().sum();
            let near = |(share, expected): (f64, f64)| (share - expected / all).abs() < 0.025;
            assert!(shares(temperature).into_iter().zip(expected).all(near), "{:?}", shares(temperature));
        }
        let same = |seed| chosen(&options(), &alternatives, Some(1.0), &request(7), seed);
        assert_eq!(same(3), same(3));
    }
}
