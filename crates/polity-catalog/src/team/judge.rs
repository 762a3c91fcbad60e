//! Judgements on answers: the best of several, whether one is right, marks for all.

use super::{Stand, talk};
use polity_kernel::ask::{Part, Task, Value, Want};
use polity_kernel::items::{judged, right_or_wrong};
use polity_kernel::method::{Brief, Desk};

const CHOOSE: &str = include_str!("prompts/choose.md");
const CHECK: &str = include_str!("prompts/check.md");
const MARK: &str = include_str!("prompts/mark.md");

/// Names under which answers are judged, so that nobody is judged by name.
fn anonymous(stands: &[Stand]) -> Vec<Stand> {
    stands.iter().enumerate().map(|(i, stand)| stand.named(format!("Answer {}", i + 1))).collect()
}

fn said(stands: &[Stand]) -> Vec<Part> {
    stands.iter().map(Stand::said).collect()
}

/// A question which of the answers is best; its options are their numbers.
fn to_choose(desk: &Desk<'_>, judge: usize, stands: &[Stand], sample: u32) -> Brief {
    let named = anonymous(stands);
    let options = named.iter().map(|stand| stand.by.clone()).collect();
    let want = Want::Record(vec![("reasons".into(), Want::Text), ("answer".into(), Want::Choice(options))]);
    Brief::new(judge, talk(desk, judge, &said(&named), CHOOSE), want).task(Task::Choose).sample(sample)
}

fn choice(value: &Value) -> Option<usize> {
    match value.field(1) {
        Some(Value::Choice(i)) => Some(*i as usize),
        _ => None,
    }
}

/// The index of the answer that a judge finds best. One answer is not judged; without a judgement there is none.
pub async fn best(desk: &mut Desk<'_>, judge: usize, stands: &[Stand]) -> Option<usize> {
    if stands.len() < 2 {
        return (!stands.is_empty()).then_some(0);
    }
    let brief = to_choose(desk, judge, stands, 0);
    desk.ask(brief).await.ok().and_then(|value| choice(&value)).filter(|i| *i < stands.len())
}

/// The winner of a knockout of pairs, each judged in both orders; who wins in one order only wins by coming first in the list. It takes
/// 2 (n - 1) judgements.
pub async fn tournament(desk: &mut Desk<'_>, judge: usize, stands: &[Stand]) -> Option<usize> {
    let mut left: Vec<usize> = (0..stands.len()).collect();
    let mut sample = 0;
    while left.len() > 1 {
        let pairs: Vec<(usize, usize)> = left.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let mut briefs = Vec::new();
        for (a, b) in &pairs {
            for (first, second) in [(a, b), (b, a)] {
                briefs.push(to_choose(desk, judge, &[stands[*first].clone(), stands[*second].clone()], sample));
                sample += 1;
            }
        }
        let verdicts: Vec<Option<usize>> =
            desk.ask_all(briefs).await.into_iter().map(|heard| heard.ok().and_then(|v| choice(&v))).collect();
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

/// A question whether an answer is right; [`judged`] reads what is said.
pub fn to_check(desk: &Desk<'_>, judge: usize, stand: &Stand, instruction: &str) -> Brief {
    let instruction = format!("{}\n{}", CHECK.trim_end(), instruction.trim_end());
    let shown = said(&anonymous(std::slice::from_ref(stand)));
    Brief::new(judge, talk(desk, judge, &shown, instruction.trim_end()), right_or_wrong()).task(Task::Check)
}

/// Whether a judge finds an answer right, and its reasons; `None` without a judgement.
pub async fn check(desk: &mut Desk<'_>, judge: usize, stand: &Stand) -> Option<(bool, String)> {
    let brief = to_check(desk, judge, stand, "");
    let judgement = desk.ask(brief).await.ok()?;
    judged(&judgement).map(|(right, why)| (right, why.to_owned()))
}

/// A question for marks of all answers on a scale.
pub fn to_mark(desk: &Desk<'_>, judge: usize, stands: &[Stand], low: f64, high: f64) -> Brief {
    let n = stands.len() as u32;
    let mark = Want::Number { low, high, whole: false };
    let want = Want::Record(vec![("marks".into(), Want::List { of: Box::new(mark), least: n, most: n })]);
    let instruction = MARK.trim_end().replace("LOW", &low.to_string()).replace("HIGH", &high.to_string());
    Brief::new(judge, talk(desk, judge, &said(&anonymous(stands)), &instruction), want).task(Task::Rate)
}

/// The marks of a reply, in the order in which the answers were shown.
#[must_use]
pub fn marked(value: &Value) -> Option<Vec<f64>> {
    match value.field(0) {
        Some(Value::List(marks)) => {
            marks.iter().map(|mark| if let Value::Number(x) = mark { Some(*x) } else { None }).collect()
        }
        _ => None,
    }
}

/// A judge's marks for all answers, `low` to `high`; `None` without a judgement.
pub async fn marks(desk: &mut Desk<'_>, judge: usize, stands: &[Stand], low: f64, high: f64) -> Option<Vec<f64>> {
    if stands.is_empty() {
        return Some(Vec::new());
    }
    let brief = to_mark(desk, judge, stands, low, high);
    desk.ask(brief).await.ok().and_then(|value| marked(&value))
}
