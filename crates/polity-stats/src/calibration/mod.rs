//! Parameters of simulated models, fitted to answers that models gave: alone ([`fit`]), after they heard others ([`influence::fit`]), and as
//! judges of pairs ([`judging::fit`]). The simulated models document what the parameters mean.

pub mod influence;
pub mod judging;
mod misfit;

pub use misfit::{Misfit, misfits};

use polity_kernel::rng::{normal_cdf, normal_quantile};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A value and its standard error.
type Sure = (f64, f64);

/// An answer that a model gave alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The item.
    pub item: u32,
    /// Its difficulty.
    pub difficulty: f64,
    /// Wrong answers besides the tempting one that the model can give: two less than the options, or [`OPEN`].
    pub others: u32,
    /// Whether it is right.
    pub right: bool,
    /// The answer, in the form used for comparison.
    pub answer: String,
}

/// Wrong answers besides the tempting one to an item without options, as the simulated models have them.
pub const OPEN: u32 = 19;

/// The parameters that fit a model's answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Number of answers.
    pub answers: usize,
    /// Share of right answers.
    pub accuracy: f64,
    /// Log-odds of a right answer to an item of difficulty 0, and its standard error, which counts items as independent.
    pub skill: Sure,
    /// Log-odds lost per unit of difficulty, and its standard error; `None` if all items are equally difficult.
    pub difficulty_response: Option<Sure>,
    /// Correlation of the latent luck of two answers to one item; `None` if no item has a second answer, by it or by another model.
    pub correlation: Option<f64>,
    /// Probability that a wrong answer is the item's tempting one; `None` if no item has a second wrong answer.
    pub lure: Option<f64>,
}

impl Fit {
    /// Probability of a right answer to an item of this difficulty.
    #[must_use]
    pub fn mastery(&self, difficulty: f64) -> f64 {
        let odds = self.skill.0 - self.difficulty_response.map_or(0.0, |(b, _)| b) * difficulty;
        1.0 / (1.0 + libm::exp(-odds))
    }
}

/// Maximum number of steps of Newton's method.
const STEPS: u32 = 50;
/// Steps of the iterations over models.
const SWEEPS: u32 = 300;
/// Highest correlation.
const HIGHEST: f64 = 0.999;

/// Fits the parameters of models that answered the same items: skill and difficulty response by maximum likelihood, the others by the
/// method of moments from all pairs of answers to one item. Two models correlate with the root of the product of their correlations,
/// so pairs of different models say as much as pairs of one. `None` for a model without a fit: it has no answers, or difficulty
/// separates right and wrong ones perfectly (all are right, say) and the likelihood has no maximum.
#[must_use]
pub fn fit(models: &[Vec<Answered>]) -> Vec<Option<Fit>> {
    let mut fits: Vec<Option<Fit>> = models.iter().map(|answers| alone(answers)).collect();
    let pairs = Pairs::of(models, &fits);
    let (loadings, lures) = (pairs.loadings(), pairs.lures());
    for (m, fit) in fits.iter_mut().enumerate() {
        if let Some(fit) = fit {
            fit.correlation = loadings[m].map(|loading| (loading * loading).min(HIGHEST));
            fit.lure = lures[m];
        }
    }
    fits
}

/// What a model's own answers say: all but correlation and lure.
fn alone(answers: &[Answered]) -> Option<Fit> {
    let first = answers.first()?;
    let varied = answers.iter().any(|answer| answer.difficulty != first.difficulty);
    let (skill, difficulty_response) = logistic(answers, varied)?;
    let accuracy = answers.iter().filter(|answer| answer.right).count() as f64 / answers.len() as f64;
    Some(Fit { answers: answers.len(), accuracy, skill, difficulty_response, correlation: None, lure: None })
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

/// What pairs of answers to one item say, by pairs of models `a <= b`.
struct Pairs {
    models: usize,
    /// The number of pairs, and the correlation at which as many are expected to be both right as are.
    correlations: BTreeMap<(usize, usize), (f64, f64)>,
    /// Of pairs that are both wrong: their number, how many are the same, and the mean of `1 / others`.
    wrong: BTreeMap<(usize, usize), (f64, f64, f64)>,
}

impl Pairs {
    fn of(models: &[Vec<Answered>], fits: &[Option<Fit>]) -> Self {
        let mut by_item: BTreeMap<u32, Vec<(usize, &Answered)>> = BTreeMap::new();
        for (m, answers) in models.iter().enumerate().filter(|(m, _)| fits[*m].is_some()) {
            answers.iter().for_each(|answer| by_item.entry(answer.item).or_default().push((m, answer)));
        }
        // Pairs that are both right, and all pairs by difficulty in tenths.
        let mut right: BTreeMap<(usize, usize), (f64, BTreeMap<i64, f64>)> = BTreeMap::new();
        let mut wrong: BTreeMap<(usize, usize), (f64, f64, f64)> = BTreeMap::new();
        for answers in by_item.values() {
            for (i, (a, one)) in answers.iter().enumerate() {
                for (b, other) in &answers[..i] {
                    let pair = ((*a).min(*b), (*a).max(*b));
                    let (both, all) = right.entry(pair).or_default();
                    *both += f64::from(u8::from(one.right && other.right));
                    *all.entry(tenths(one.difficulty)).or_default() += 1.0;
                    if !one.right && !other.right {
                        let (n, same, share) = wrong.entry(pair).or_default();
                        *n += 1.0;
                        *same += f64::from(u8::from(one.answer == other.answer));
                        *share += 1.0 / f64::from(one.others.max(1));
                    }
                }
            }
        }
        wrong.values_mut().for_each(|(n, _, share)| *share /= *n);
        let mastery = |m: usize, d: i64| fits[m].map_or(0.5, |fit| fit.mastery(d as f64 / 10.0));
        let correlations = right.iter().map(|((a, b), (both, all))| {
            let expected =
                |c: f64| -> f64 { all.iter().map(|(d, n)| both_right(mastery(*a, *d), mastery(*b, *d), c) * n).sum() };
            ((*a, *b), (all.values().sum(), root(|c| expected(c) - both, 0.0, HIGHEST)))
        });
        Pairs { models: models.len(), correlations: correlations.collect(), wrong }
    }

    /// The roots of the models' correlations: one factor, by least squares over pairs.
    fn loadings(&self) -> Vec<Option<f64>> {
        let mut found = vec![HIGHEST.sqrt() / 2.0; self.models];
        for _ in 0..SWEEPS {
            let mut sums = vec![(0.0, 0.0); self.models];
            for ((a, b), (n, r)) in &self.correlations {
                for (one, other) in twice(*a, *b) {
                    sums[one].0 += n * r * found[other];
                    sums[one].1 += n * found[other] * found[other];
                }
            }
            for (loading, (above, below)) in found.iter_mut().zip(&sums) {
                if *below > 1e-12 {
                    // Halfway: a pair of one model moves both of its sides.
                    *loading = f64::midpoint(*loading, above / below).min(HIGHEST.sqrt());
                }
            }
        }
        let paired: BTreeSet<usize> = self.correlations.keys().flat_map(|(a, b)| [*a, *b]).collect();
        found.into_iter().enumerate().map(|(m, loading)| paired.contains(&m).then_some(loading)).collect()
    }

    /// Shares of tempting answers among wrong ones, such that as many pairs of wrong answers are expected to be the same as are.
    fn lures(&self) -> Vec<Option<f64>> {
        let mut found = vec![0.5; self.models];
        for _ in 0..SWEEPS {
            let mut sums = vec![(0.0, 0.0, 1.0f64); self.models];
            for ((a, b), (n, same, share)) in &self.wrong {
                for (one, other) in twice(*a, *b) {
                    // Expected: l l' + (1 - l) (1 - l') / others, which is linear in l.
                    let not = (1.0 - found[other]) * share;
                    sums[one].0 += same - n * not;
                    sums[one].1 += n * (found[other] - not);
                    sums[one].2 = sums[one].2.min(share / (1.0 + share));
                }
            }
            for (lure, (above, below, chance)) in found.iter_mut().zip(&sums) {
                if *below > 1e-12 {
                    // Nothing is less alike than chance.
                    *lure = f64::midpoint(*lure, (above / below).clamp(*chance, 1.0));
                }
            }
        }
        let paired: BTreeSet<usize> = self.wrong.keys().flat_map(|(a, b)| [*a, *b]).collect();
        found.into_iter().enumerate().map(|(m, lure)| paired.contains(&m).then_some(lure)).collect()
    }
}

fn tenths(difficulty: f64) -> i64 {
    libm::round(difficulty * 10.0) as i64
}

/// Both views of a pair; one, if it is of one model.
fn twice(a: usize, b: usize) -> impl Iterator<Item = (usize, usize)> {
    std::iter::once((a, b)).chain((a != b).then_some((b, a)))
}

/// Returns the probability that two answers with the probabilities `p` and `q` are both right, if their luck has correlation `c`.
fn both_right(p: f64, q: f64, c: f64) -> f64 {
    let (y, z) = (normal_quantile(p), normal_quantile(q));
    const POINTS: u32 = 200;
    let width = 16.0 / f64::from(POINTS);
    let (shared, own) = (libm::sqrt(c), libm::sqrt(1.0 - c));
    (0..POINTS)
        .map(|i| {
            let t = -8.0 + (f64::from(i) + 0.5) * width;
            let density = libm::exp(-t * t / 2.0) / libm::sqrt(std::f64::consts::TAU);
            density * normal_cdf((y - shared * t) / own) * normal_cdf((z - shared * t) / own) * width
        })
        .sum()
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
mod tests;
