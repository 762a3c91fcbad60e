//! Judgements on answers: the best of several, whether one is right, marks for all.

use super::{Instruction, Stand, talk};
use polity_kernel::ask::{Part, ResponseFormat, Task, Value};
use polity_kernel::items::{judged, right_or_wrong};
use polity_kernel::method::{Brief, Prompt, TeamContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Asks a judge for the best of several answers.
pub const CHOOSE: Prompt =
    Prompt::new("choose", "asks a judge for the best of several answers", include_str!("prompts/choose.md"));
/// Asks whether an answer is right.
pub const CHECK: Prompt = Prompt::new("check", "asks whether an answer is right", include_str!("prompts/check.md"));
/// Asks for marks of several answers.
pub const MARK: Prompt = Prompt::new("mark", "asks for marks of several answers", include_str!("prompts/mark.md"))
    .may_hold(&["low", "high"]);
/// Asks for a mark of one answer by one criterion.
pub const RATE: Prompt =
    Prompt::new("rate", "asks for a mark of one answer by one criterion", include_str!("prompts/rate.md"))
        .must_hold(&["criterion"])
        .may_hold(&["low", "high"]);

/// Replaces names, so that answers are judged anonymously.
fn anonymous(stands: &[Stand]) -> Vec<Stand> {
    stands.iter().enumerate().map(|(i, stand)| stand.named(format!("Answer {}", i + 1))).collect()
}

fn said(stands: &[Stand]) -> Vec<Part> {
    stands.iter().map(Stand::said).collect()
}

/// Builds a question for the best of the answers; its options are their numbers.
#[must_use]
pub fn to_choose(context: &TeamContext<'_>, judge: usize, stands: &[Stand], sample: u32) -> Brief {
    let named = anonymous(stands);
    let options = named.iter().map(|stand| stand.by.clone()).collect();
    let response_format = ResponseFormat::Record(vec![
        ("reasons".into(), ResponseFormat::Text),
        ("answer".into(), ResponseFormat::Choice(options)),
    ]);
    Brief::new(judge, talk(context, judge, &said(&named), CHOOSE), response_format).task(Task::Choose).sample(sample)
}

/// Returns the index of the answer that a reply names.
#[must_use]
pub fn choice(value: &Value) -> Option<usize> {
    match value.field(1) {
        Some(Value::Choice(i)) => Some(*i as usize),
        _ => None,
    }
}

/// Returns the index of the answer that a judge finds best. A single answer is not judged. `None` without a judgement.
pub async fn best(context: &mut TeamContext<'_>, judge: usize, stands: &[Stand]) -> Option<usize> {
    if stands.len() < 2 {
        return (!stands.is_empty()).then_some(0);
    }
    let brief = to_choose(context, judge, stands, 0);
    context.ask(brief).await.ok().and_then(|value| choice(&value)).filter(|i| *i < stands.len())
}

/// Returns the winner of a knockout of pairs, each judged in both orders. A split decision goes to the first in the list. Takes 2 (n - 1)
/// judgements.
pub async fn tournament(context: &mut TeamContext<'_>, judge: usize, stands: &[Stand]) -> Option<usize> {
    let mut left: Vec<usize> = (0..stands.len()).collect();
    let mut sample = 0;
    while left.len() > 1 {
        let pairs: Vec<(usize, usize)> = left.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let mut briefs = Vec::new();
        for (a, b) in &pairs {
            for (first, second) in [(a, b), (b, a)] {
                briefs.push(to_choose(context, judge, &[stands[*first].clone(), stands[*second].clone()], sample));
                sample += 1;
            }
        }
        let verdicts: Vec<Option<usize>> =
            context.ask_all(briefs).await.into_iter().map(|heard| heard.ok().and_then(|v| choice(&v))).collect();
        let odd = left.chunks_exact(2).remainder().to_vec();
        left = pairs
            .iter()
            .zip(verdicts.chunks_exact(2))
            .map(|((a, b), verdict)| if verdict == [Some(1), Some(0)] { *b } else { *a })
            .chain(odd)
            .collect();
    }
    left.first().copied()
}

/// Builds a question on whether an answer is right; [`judged`] reads the reply.
pub fn to_check<'a>(
    context: &TeamContext<'_>,
    judge: usize,
    stand: &Stand,
    instruction: impl Into<Instruction<'a>>,
) -> Brief {
    let instruction = format!("{}\n{}", context.prompt(&CHECK), instruction.into().words(context));
    let shown = said(&anonymous(std::slice::from_ref(stand)));
    Brief::new(judge, talk(context, judge, &shown, instruction.trim_end()), right_or_wrong()).task(Task::Check)
}

/// Returns whether a judge finds an answer right, and its reasons; `None` without a judgement.
pub async fn check(
    context: &mut TeamContext<'_>,
    judge: usize,
    stand: &Stand,
    instruction: impl Into<Instruction<'_>>,
) -> Option<(bool, String)> {
    let brief = to_check(context, judge, stand, instruction);
    let judgement = context.ask(brief).await.ok()?;
    judged(&judgement).map(|(right, why)| (right, why.to_owned()))
}

/// Builds a question for marks of all answers on a scale.
pub fn to_mark(context: &TeamContext<'_>, judge: usize, stands: &[Stand], low: f64, high: f64) -> Brief {
    to_mark_by(context, judge, stands, (low, high), MARK)
}

/// The same with another instruction, whose placeholders `low` and `high` are the ends of the scale.
pub fn to_mark_by(
    context: &TeamContext<'_>,
    judge: usize,
    stands: &[Stand],
    (low, high): (f64, f64),
    instruction: Prompt,
) -> Brief {
    let n = stands.len() as u32;
    let mark = ResponseFormat::Number { low, high, whole: false };
    let response_format =
        ResponseFormat::Record(vec![("marks".into(), ResponseFormat::List { of: Box::new(mark), least: n, most: n })]);
    let instruction = context.filled(&instruction, &[("low", &low.to_string()), ("high", &high.to_string())]);
    Brief::new(judge, talk(context, judge, &said(&anonymous(stands)), &instruction), response_format).task(Task::Rate)
}

/// Returns the marks of a reply, in the order in which the answers were shown.
#[must_use]
pub fn marked(value: &Value) -> Option<Vec<f64>> {
    match value.field(0) {
        Some(Value::List(marks)) => {
            marks.iter().map(|mark| if let Value::Number(x) = mark { Some(*x) } else { None }).collect()
        }
        _ => None,
    }
}

/// Returns a judge's marks for all answers, `low` to `high`; `None` without a judgement.
pub async fn marks(
    context: &mut TeamContext<'_>,
    judge: usize,
    stands: &[Stand],
    low: f64,
    high: f64,
) -> Option<Vec<f64>> {
    if stands.is_empty() {
        return Some(Vec::new());
    }
    let brief = to_mark(context, judge, stands, low, high);
    context.ask(brief).await.ok().and_then(|value| marked(&value))
}

/// What decides which answers are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prune {
    /// The judge's marks.
    #[default]
    Marks,
    /// Nothing: all are kept, and the judge is not asked (the ablation).
    None,
}

/// How outputs are pruned.
#[derive(Clone, Copy, Debug)]
pub struct Pruning {
    /// What decides.
    pub prune: Prune,
    /// Number of outputs that are kept.
    pub keep: usize,
    /// The scale of the judge's marks.
    pub scale: (f64, f64),
    /// The instruction to the judge; by default that for answers.
    pub instruction: Option<Prompt>,
}

/// Returns the outputs with the highest marks, best first; ties go to the earlier. Without a judgement all are kept.
pub async fn kept(context: &mut TeamContext<'_>, judge: usize, stands: Vec<Stand>, pruning: Pruning) -> Vec<Stand> {
    if pruning.prune == Prune::None || stands.is_empty() {
        return stands;
    }
    let brief = to_mark_by(context, judge, &stands, pruning.scale, pruning.instruction.unwrap_or(MARK));
    let Some(marks) = context.ask(brief).await.ok().and_then(|value| marked(&value)) else { return stands };
    let mut order: Vec<usize> = (0..stands.len().min(marks.len())).collect();
    order.sort_by(|a, b| marks[*b].total_cmp(&marks[*a]));
    order.into_iter().take(pruning.keep).map(|i| stands[i].clone()).collect()
}

/// A mark for one answer by one criterion, and the reasons for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// The mark.
    pub mark: f64,
    /// The reasons.
    pub why: String,
}

/// Builds a question for a mark of one answer by one criterion. The placeholders of the instruction are `criterion`, `low` and `high`.
#[must_use]
pub fn to_rate(
    context: &TeamContext<'_>,
    judge: usize,
    stand: &Stand,
    criterion: &str,
    (low, high): (f64, f64),
    (shown, instruction): (&[Part], Prompt),
) -> Brief {
    let mut parts = shown.to_vec();
    parts.push(stand.named("The answer").said());
    let (lowest, highest) = (low.to_string(), high.to_string());
    let values = [("criterion", criterion), ("low", lowest.as_str()), ("high", highest.as_str())];
    let instruction = context.filled(&instruction, &values);
    let mark = ResponseFormat::Number { low, high, whole: false };
    let response_format =
        ResponseFormat::Record(vec![("reasons".into(), ResponseFormat::Text), ("answer".into(), mark)]);
    Brief::new(judge, talk(context, judge, &parts, &instruction), response_format).task(Task::Rate)
}

/// Reads a rating.
#[must_use]
pub fn rating(value: &Value) -> Option<Rating> {
    let Some(Value::Number(mark)) = value.field(1) else { return None };
    Some(Rating { mark: *mark, why: value.field(0).and_then(Value::as_text)?.to_owned() })
}

/// Returns a judge's ratings of one answer, a question for each criterion; `None` where there is no judgement.
pub async fn rated<C: AsRef<str>>(
    context: &mut TeamContext<'_>,
    judge: usize,
    stand: &Stand,
    criteria: &[C],
    scale: (f64, f64),
) -> Vec<Option<Rating>> {
    let brief = |(n, criterion): (usize, &C)| {
        to_rate(context, judge, stand, criterion.as_ref(), scale, (&[], RATE)).sample(n as u32)
    };
    let briefs = criteria.iter().enumerate().map(brief).collect();
    context.ask_all(briefs).await.into_iter().map(|heard| rating(&heard.ok()?)).collect()
}
