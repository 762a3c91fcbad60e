//! Parameters of simulated models, fitted to recorded answers: skill and difficulty response by maximum likelihood, correlation and
//! lure by the method of moments. The simulated models document what the parameters mean.

use polity_kernel::rng::{normal_cdf, normal_quantile};
use serde::Serialize;
use std::collections::BTreeMap;

/// A value and its standard error.
type Sure = (f64, f64);

/// An answer that a model gave alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The item.
    pub item: u32,
    /// Its difficulty.
    pub difficulty: f64,
    /// Whether it is right.
    pub right: bool,
    /// The answer, in the form used for comparison.
    pub answer: String,
}

/// The parameters that fit a model's answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Number of answers.
    pub answers: usize,
    /// Share of right answers.
    pub accuracy: f64,
    /// Log-odds of a right answer to an item of difficulty 0, and its standard error.
    pub skill: Sure,
    /// Log-odds lost per unit of difficulty, and its standard error; `None` if all items are equally difficult.
    pub difficulty_response: Option<Sure>,
    /// Correlation of the latent luck of two answers to one item; `None` without an item with two answers.
    pub correlation: Option<f64>,
    /// Probability that a wrong answer is the item's tempting one, assuming 19 other, equally likely wrong answers; `None` without
    /// an item with two wrong answers.
    pub lure: Option<f64>,
}

/// Wrong answers besides the tempting one.
const OTHERS: f64 = 19.0;
/// Maximum number of steps of Newton's method.
const STEPS: u32 = 50;

/// Fits the parameters. `None`: there are no answers, or difficulty separates right and wrong ones perfectly (all are right, say)
/// and the likelihood has no maximum.
#[must_use]
pub fn fit(answers: &[Answered]) -> Option<Fit> {
    let first = answers.first()?;
    let varied = answers.iter().any(|answer| answer.difficulty != first.difficulty);
    let (skill, response) = logistic(answers, varied)?;
    let mastery = |difficulty: f64| {
        let odds = skill.0 - response.map_or(0.0, |(b, _)| b) * difficulty;
        1.0 / (1.0 + libm::exp(-odds))
    };
    let mut by_item: BTreeMap<u32, Vec<&Answered>> = BTreeMap::new();
    answers.iter().for_each(|answer| by_item.entry(answer.item).or_default().push(answer));
    Some(Fit {
        answers: answers.len(),
        accuracy: answers.iter().filter(|answer| answer.right).count() as f64 / answers.len() as f64,
        skill,
        difficulty_response: response,
        correlation: correlation(&by_item, mastery),
        lure: lure(&by_item),
    })
}

/// Returns intercept and (negative) slope of a logistic regression on difficulty, each with its standard error.
fn logistic(answers: &[Answered], varied: bool) -> Option<(Sure, Option<Sure>)> {
    let (mut a, mut b) = (0.0, if varied { 1.0 } else { 0.0 });
    for _ in 0..STEPS {
        let (mut ga, mut gb, mut haa, mut hab, mut hbb) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for Answered { difficulty: d, right, .. } in answers {
            let p = 1.0 / (1.0 + libm::exp(b * d - a));
            let (off, w) = (f64::from(u8::from(*right)) - p, p * (1.0 - p));
            ga += off;
            gb -= off * d;
            haa += w;
            hab -= w * d;
            hbb += w * d * d;
        }
        if !varied {
            (gb, hab, hbb) = (0.0, 0.0, 1.0);
        }
        let det = haa * hbb - hab * hab;
        if !(det > 1e-12 && det.is_finite()) {
            return None;
        }
        let (da, db) = ((ga * hbb - gb * hab) / det, (gb * haa - ga * hab) / det);
        a += da;
        b += db;
        if !(a.abs() < 50.0 && b.abs() < 50.0) {
            return None;
        }
        if da.abs() < 1e-10 && db.abs() < 1e-10 {
            let errors = (libm::sqrt(hbb / det), libm::sqrt(haa / det));
            return Some(((a, errors.0), varied.then_some((b, errors.1))));
        }
    }
    None
}

/// Returns the probability that two answers are both right, each with probability `p`, if their luck has correlation `c`.
fn both_right(p: f64, c: f64) -> f64 {
    let z = normal_quantile(p);
    const POINTS: u32 = 200;
    let width = 16.0 / f64::from(POINTS);
    let (shared, own) = (libm::sqrt(c), libm::sqrt(1.0 - c));
    (0..POINTS)
        .map(|i| {
            let t = -8.0 + (f64::from(i) + 0.5) * width;
            let density = libm::exp(-t * t / 2.0) / libm::sqrt(std::f64::consts::TAU);
            let right = normal_cdf((z - shared * t) / own);
            density * right * right * width
        })
        .sum()
}

/// Returns the correlation at which the expected number of pairs with both answers right equals the observed number.
fn correlation(by_item: &BTreeMap<u32, Vec<&Answered>>, mastery: impl Fn(f64) -> f64) -> Option<f64> {
    let (mut both, mut expected): (f64, BTreeMap<u64, (f64, f64)>) = (0.0, BTreeMap::new());
    for answers in by_item.values().filter(|answers| answers.len() > 1) {
        let (n, right) = (answers.len() as f64, answers.iter().filter(|answer| answer.right).count() as f64);
        both += right * (right - 1.0) / 2.0;
        let difficulty = answers[0].difficulty;
        expected.entry(difficulty.to_bits()).or_insert((mastery(difficulty), 0.0)).1 += n * (n - 1.0) / 2.0;
    }
    if expected.is_empty() {
        return None;
    }
    let at = |c: f64| expected.values().map(|(p, pairs)| both_right(*p, c) * pairs).sum::<f64>();
    Some(root(|c| at(c) - both, 0.0, 0.999))
}

fn lure(by_item: &BTreeMap<u32, Vec<&Answered>>) -> Option<f64> {
    let (mut same, mut pairs) = (0.0, 0.0);
    for answers in by_item.values() {
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        answers
            .iter()
            .filter(|answer| !answer.right)
            .for_each(|a| *counts.entry(a.answer.as_str()).or_default() += 1.0);
        let wrong: f64 = counts.values().sum();
        pairs += wrong * (wrong - 1.0) / 2.0;
        same += counts.values().map(|n| n * (n - 1.0) / 2.0).sum::<f64>();
    }
    let share = |l: f64| l * l + (1.0 - l) * (1.0 - l) / OTHERS;
    // Below 1 / 20 the share falls again: nothing is less alike than chance.
    (pairs > 0.0).then(|| root(|l| share(l) - same / pairs, 1.0 / (OTHERS + 1.0), 1.0))
}

/// Finds the zero of a rising function by bisection; returns an end of the interval if there is none.
fn root(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(item: u32, difficulty: f64, right: bool, answer: &str) -> Answered {
        Answered { item, difficulty, right, answer: answer.into() }
    }

    #[test]
    fn one_difficulty_gives_the_log_odds() {
        let answers: Vec<Answered> = (0..40).map(|i| answered(i, 1.0, i < 30, "x")).collect();
        let fit = fit(&answers).unwrap();
        // logit(3/4), with the standard error 1 / sqrt(n p (1 - p)).
        assert!((fit.skill.0 - f64::ln(3.0)).abs() < 1e-9 && (fit.skill.1 - 1.0 / f64::sqrt(7.5)).abs() < 1e-9);
        assert_eq!((fit.difficulty_response, fit.correlation, fit.lure), (None, None, None));
    }

    #[test]
    fn two_difficulties_give_a_line_through_both_log_odds() {
        let share = |d: f64, right: u32| (0..100).map(move |i| answered(i, d, i < right, "x"));
        let answers: Vec<Answered> = share(0.0, 80).chain(share(2.0, 50)).collect();
        let fit = fit(&answers).unwrap();
        assert!((fit.skill.0 - f64::ln(4.0)).abs() < 1e-9);
        assert!((fit.difficulty_response.unwrap().0 - f64::ln(4.0) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn all_right_and_nothing_have_no_fit() {
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[answered(0, 0.0, true, "1"), answered(1, 1.0, true, "1")]), None);
    }

    #[test]
    fn both_right_as_sheppard_has_it() {
        for c in [0.0, 0.3, 0.8] {
            let exact = 0.25 + f64::asin(c) / std::f64::consts::TAU;
            assert!((both_right(0.5, c) - exact).abs() < 1e-6, "{c}");
        }
        assert!((both_right(0.7, 0.0) - 0.49).abs() < 1e-9);
    }
}
