//! Defects of surveys, and the rules that find them in the text. The rules look at wording only, so they miss some defects and find some
//! that are none; README.md says which.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A survey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// Its title, which names its topic.
    pub title: String,
    /// Its questions, in order.
    pub questions: Vec<Question>,
}

/// A question of a survey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its words.
    pub text: String,
    /// Its options; none if it is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// A kind of defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// A question that repeats an earlier one.
    Repeated,
    /// A question whose wording leads to an answer.
    Leading,
    /// Options that exclude each other only in part.
    Overlap,
    /// Options with a gap between them.
    Gap,
    /// A question beside the topic.
    Beside,
}

/// The share of content words that two questions must have in common to be the same.
const SAME: f64 = 0.6;
/// Words that say nothing about the content of a question.
const STOP: &str = " a an the of in on at to for with and or do does did you your is are was were it its how what which when would \
                    will have has be as that this there from by we our please tell us survey ";
/// Wording that leads, or seems to.
const LEADS: [&str; 7] = ["don't you", "agree that", "surely", "wonderful", "excellent", "terrible", "great"];
/// Words of questions about the respondent, which belong to no topic.
const PERSONAL: [&str; 3] = ["old", "live", "household"];

impl Defect {
    /// All of them.
    pub const ALL: [Defect; 5] = [Defect::Repeated, Defect::Leading, Defect::Overlap, Defect::Gap, Defect::Beside];

    /// How a reader names it: `Question 3 repeats an earlier one.`
    pub fn words(self) -> &'static str {
        match self {
            Defect::Repeated => "repeats an earlier one",
            Defect::Leading => "leads to an answer",
            Defect::Overlap => "has options that overlap",
            Defect::Gap => "has a gap between its options",
            Defect::Beside => "is beside the topic",
        }
    }

    /// Whether it counts for an aspect: one of its words stands in the aspect.
    pub fn concerns(self, aspect: &str) -> bool {
        let of: &[&str] = match self {
            Defect::Repeated => &["diversity", "coherence", "engagement"],
            Defect::Leading => &["fairness", "tone"],
            Defect::Overlap | Defect::Gap => &["accuracy", "understandability"],
            Defect::Beside => &["relevance", "coherence", "engagement"],
        };
        of.iter().any(|word| aspect.contains(word))
    }

    /// Whether the rule finds it in the question at this place.
    pub fn at(self, survey: &Survey, place: usize) -> bool {
        let Some(question) = survey.questions.get(place) else { return false };
        let text = question.text.to_lowercase();
        match self {
            Defect::Repeated => survey.questions.iter().take(place).any(|earlier| same(&earlier.text, &text)),
            Defect::Leading => LEADS.iter().any(|words| text.contains(words)),
            Defect::Overlap => neighbours(&question.options).any(|(before, next)| next.0 <= before.1),
            Defect::Gap => neighbours(&question.options).any(|(before, next)| next.0 > before.1.saturating_add(1)),
            Defect::Beside => beside(&survey.title, &text),
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().into_iter()
}

fn content(text: &str) -> BTreeSet<String> {
    words(text).filter(|word| !STOP.contains(&format!(" {word} "))).collect()
}

fn same(a: &str, b: &str) -> bool {
    let (a, b) = (content(a), content(b));
    let all = a.union(&b).count() as f64;
    all > 0.0 && a.intersection(&b).count() as f64 / all >= SAME
}

/// A question is about the topic if it shares a word with the title, or says "it" or "there".
fn beside(title: &str, text: &str) -> bool {
    let topic = content(title);
    !words(text).any(|word| {
        topic.contains(&word) || ["it", "there"].contains(&word.as_str()) || PERSONAL.contains(&word.as_str())
    })
}

/// The ranges of consecutive options, in the order of the ranges; nothing unless all options are ranges of whole numbers.
fn neighbours(options: &[String]) -> impl Iterator<Item = ((i64, i64), (i64, i64))> {
    let mut ranges = options.iter().map(|option| range(option)).collect::<Option<Vec<_>>>().unwrap_or_default();
    ranges.sort_unstable();
    let next = ranges.clone().into_iter().skip(1);
    ranges.into_iter().zip(next)
}

/// The whole numbers that an option stands for: `18 to 30`, `65 and older`, `more than 10`, `under 5`, `3`.
fn range(option: &str) -> Option<(i64, i64)> {
    let words: Vec<String> = words(option).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<i64>().ok();
    match words[..] {
        [one] => number(one).map(|n| (n, n)),
        [from, "to", to] => number(from).zip(number(to)),
        [from, "and" | "or", _] => number(from).map(|n| (n, i64::MAX)),
        ["more", "than", n] => number(n).map(|n| (n.saturating_add(1), i64::MAX)),
        ["under", n] => number(n).map(|n| (i64::MIN, n.saturating_sub(1))),
        _ => None,
    }
}
