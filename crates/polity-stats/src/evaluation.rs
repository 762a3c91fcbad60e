//! Evaluation of learners over few seeds and several tasks, by the definitions of rliable (Agarwal, Schwarzer, Castro, Courville and
//! Bellemare: "Deep Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS 2021).
//!
//! Scores are given by task, and within a task by run; tasks may have different numbers of runs. Where several tasks are summed up, their
//! scores must be on one scale. Intervals are stratified percentile bootstraps: each task's runs are resampled by themselves, of two
//! learners each by itself ([`RESAMPLES`] times, [`CONFIDENCE`]). They need at least two runs of every task. The draws are counter-based:
//! the same scores have the same intervals in every process.
//!
//! Figures are compared with the package rliable in `scripts/rliable.sh`.

use crate::{CONFIDENCE, Estimate, RESAMPLES, mean, quantile};
use polity_kernel::rng::{Draws, Stream};

/// Scores by task and run.
pub type Scores<'a> = [&'a [f64]];

/// Aggregate scores of a learner, each over all tasks and runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggregates {
    /// The interquartile mean: that of the middle half of all scores. Less biased by outliers than the mean, and more certain than the
    /// median.
    pub iqm: Estimate,
    /// The mean over tasks of the mean over runs.
    pub mean: Estimate,
    /// The median over tasks of the mean over runs.
    pub median: Estimate,
    /// By how much scores fall short of the target on average; what is above it does not count.
    pub optimality_gap: Estimate,
}

/// Returns the aggregate scores of a learner. `target`: the score (gamma in rliable) beyond which more does not matter, usually 1 on a
/// normalised scale. `None` if a task has no runs, or there is no task.
/// ```
/// // rliable.metrics on np.array([[0.1, 0.9], [0.2, 0.4], [0.8, 0.6], [0.7, 1.4], [0.3, 1.1]])
/// let tasks: [&[f64]; 2] = [&[0.1, 0.2, 0.8, 0.7, 0.3], &[0.9, 0.4, 0.6, 1.4, 1.1]];
/// let found = polity_stats::evaluation::aggregates(&tasks, 1.0).unwrap();
/// let close = |found: polity_stats::Estimate, wanted: f64| (found.mean.unwrap() - wanted).abs() < 1e-12;
/// assert!(close(found.iqm, 0.6166666666666667) && close(found.optimality_gap, 0.4));
/// ```
#[must_use]
pub fn aggregates(tasks: &Scores<'_>, target: f64) -> Option<Aggregates> {
    let of = |tasks: &[Vec<f64>]| {
        let by_task: Vec<f64> = tasks.iter().filter_map(|task| mean(task)).collect();
        let mut all: Vec<f64> = tasks.iter().flatten().copied().collect();
        let capped: Vec<f64> = all.iter().map(|x| x.min(target)).collect();
        let gap = target - mean(&capped).unwrap_or(f64::NAN);
        vec![trimmed_mean(&mut all), mean(&by_task).unwrap_or(f64::NAN), median(by_task), gap]
    };
    let found: [Estimate; 4] = estimates(tasks, &of)?.try_into().ok()?;
    let [iqm, mean, median, optimality_gap] = found;
    Some(Aggregates { iqm, mean, median, optimality_gap })
}

/// Returns the interquartile mean of a learner's scores alone. `None` as of [`aggregates`].
#[must_use]
pub fn interquartile_mean(tasks: &Scores<'_>) -> Option<Estimate> {
    let of = |tasks: &[Vec<f64>]| vec![trimmed_mean(&mut tasks.iter().flatten().copied().collect::<Vec<f64>>())];
    estimates(tasks, &of)?.pop()
}

/// Returns the probability that a run of one learner has a higher score than a run of another one, on a task drawn at random: the mean over
/// tasks of Mann and Whitney's U, as a part of all pairs, in which ties count half. It says nothing about how much higher. `None` if the
/// tasks are not the same number, or one has no runs.
#[must_use]
pub fn probability_of_improvement(of: &Scores<'_>, over: &Scores<'_>) -> Option<Estimate> {
    if of.len() != over.len() {
        return None;
    }
    let tasks = of.len();
    let all: Vec<&[f64]> = of.iter().chain(over).copied().collect();
    let probability = |scores: &[Vec<f64>]| {
        let (of, over) = scores.split_at(tasks);
        let by_task: Vec<f64> = of.iter().zip(over).map(|(of, over)| above(of, over)).collect();
        vec![mean(&by_task).unwrap_or(f64::NAN)]
    };
    let found = estimates(&all, &probability)?.pop()?;
    let n = of.iter().chain(over).map(|task| task.len()).min().unwrap_or(0);
    Some(Estimate { n, ..found })
}

/// Returns a performance profile (the run-score distribution): for each threshold the part of all runs on all tasks whose score is above
/// it. A curve above another one everywhere shows a learner that is better in every respect. `None` as of [`aggregates`].
#[must_use]
pub fn performance_profile(tasks: &Scores<'_>, thresholds: &[f64]) -> Option<Vec<Estimate>> {
    let of = |tasks: &[Vec<f64>]| {
        let n = tasks.iter().map(Vec::len).sum::<usize>().max(1) as f64;
        let part = |tau: &f64| tasks.iter().flatten().filter(|score| *score > tau).count() as f64 / n;
        thresholds.iter().map(part).collect()
    };
    estimates(tasks, &of)
}

/// The part of pairs in which the first is higher; ties count half.
fn above(of: &[f64], over: &[f64]) -> f64 {
    let pairs = of.iter().flat_map(|x| over.iter().map(move |y| (x, y)));
    let won: f64 = pairs
        .map(|(x, y)| match x.total_cmp(y) {
            _ if x == y => 0.5,
            std::cmp::Ordering::Greater => 1.0,
            _ => 0.0,
        })
        .sum();
    won / (of.len() * over.len()).max(1) as f64
}

/// The mean without the lowest and the highest quarter, as scipy.stats.trim_mean(scores, 0.25) has it.
fn trimmed_mean(scores: &mut [f64]) -> f64 {
    scores.sort_unstable_by(f64::total_cmp);
    let cut = scores.len() / 4;
    mean(&scores[cut..scores.len() - cut]).unwrap_or(f64::NAN)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    quantile(&values, 0.5).unwrap_or(f64::NAN)
}

/// Statistics of the scores, with intervals.
fn estimates(tasks: &Scores<'_>, of: &dyn Fn(&[Vec<f64>]) -> Vec<f64>) -> Option<Vec<Estimate>> {
    if tasks.is_empty() || tasks.iter().any(|task| task.is_empty()) {
        return None;
    }
    let n = tasks.iter().map(|task| task.len()).sum();
    let mut scores: Vec<Vec<f64>> = tasks.iter().map(|task| task.to_vec()).collect();
    let found = of(&scores);
    let whole = |mean: &f64| Estimate { mean: Some(*mean), n, ..Estimate::NONE };
    if tasks.iter().any(|task| task.len() < 2) {
        return Some(found.iter().map(whole).collect());
    }
    let mut resampled = vec![Vec::with_capacity(RESAMPLES as usize); found.len()];
    for b in 0..RESAMPLES {
        let mut draws = Draws::new(1, Stream::Bootstrap, n as u32, b);
        for (scores, task) in scores.iter_mut().zip(tasks) {
            scores.iter_mut().for_each(|score| *score = task[draws.below(task.len() as u64) as usize]);
        }
        resampled.iter_mut().zip(of(&scores)).for_each(|(all, one)| all.push(one));
    }
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let interval = |(mean, mut all): (&f64, Vec<f64>)| {
        all.sort_unstable_by(f64::total_cmp);
        Estimate { low: quantile(&all, tail), high: quantile(&all, 1.0 - tail), ..whole(mean) }
    };
    Some(found.iter().zip(resampled).map(interval).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const X: [&[f64]; 2] = [&[0.12, 0.25, 0.83, 0.71, 0.33, 0.58], &[0.95, 0.41, 0.64, 1.42, 1.13, 0.77]];
    const Y: [&[f64]; 2] = [&[0.31, 0.12, 0.44, 0.62, 0.29, 0.18], &[0.52, 0.41, 0.88, 0.35, 0.93, 0.61]];

    fn is(found: Estimate, [mean, low, high]: [f64; 3], what: &str) {
        let close = |found: Option<f64>, wanted: f64, within: f64| (found.unwrap() - wanted).abs() <= within;
        assert!(close(found.mean, mean, 1e-12), "{what}: {found:?}, not {mean}");
        // The ends are those of 20,000 other resamples.
        let within = 0.04 * (high - low);
        assert!(close(found.low, low, within) && close(found.high, high, within), "{what}: {found:?} {low} {high}");
    }

    /// Recorded from rliable 1.2.0 with 20,000 resamples; `scripts/rliable.sh` compares more.
    #[test]
    fn figures_are_those_of_rliable() {
        let x = aggregates(&X, 1.0).unwrap();
        is(x.iqm, [0.6566666666666666, 0.46, 0.843375], "iqm");
        is(x.mean, [0.6783333333333333, 0.5141666666666667, 0.845], "mean");
        is(x.median, [0.6783333333333333, 0.5158333333333334, 0.8458333333333333], "median");
        is(x.optimality_gap, [0.3675, 0.2366666666666667, 0.5025], "optimality gap");
        let y = aggregates(&Y, 1.0).unwrap();
        is(y.iqm, [0.44, 0.3333333333333333, 0.5866666666666667], "iqm");
        is(y.optimality_gap, [0.5283333333333333, 0.415, 0.6341666666666665], "optimality gap");
        assert_eq!(interquartile_mean(&X), Some(x.iqm));
        let profile = performance_profile(&X, &[0.25, 0.5, 0.75, 1.0]).unwrap();
        let wanted = [10.0, 8.0, 5.0, 2.0].map(|n: f64| n / 12.0);
        for (found, (wanted, low)) in profile.iter().zip(wanted.into_iter().zip([8.0, 5.0, 2.0, 0.0])) {
            assert!((found.mean.unwrap() - wanted).abs() < 1e-12, "{found:?}");
            // A part of twelve runs moves in steps of a twelfth.
            assert!((found.low.unwrap() - low / 12.0).abs() < 1.01 / 12.0, "{found:?}");
        }
        is(probability_of_improvement(&X, &Y).unwrap(), [0.7083333333333333, 0.47916667, 0.90277778], "improvement");
    }

    #[test]
    fn an_improvement_is_a_part_of_pairs() {
        let by_hand = |of: &[f64], over: &[f64]| {
            let pairs: Vec<(f64, f64)> = of.iter().flat_map(|x| over.iter().map(|y| (*x, *y))).collect();
            let won = pairs.iter().filter(|(x, y)| x > y).count() as f64
                + 0.5 * pairs.iter().filter(|(x, y)| x == y).count() as f64;
            won / pairs.len() as f64
        };
        let both = probability_of_improvement(&X, &Y).unwrap().mean.unwrap();
        assert!((both - (by_hand(X[0], Y[0]) + by_hand(X[1], Y[1])) / 2.0).abs() < 1e-12);
        let back = probability_of_improvement(&Y, &X).unwrap().mean.unwrap();
        assert!((both + back - 1.0).abs() < 1e-12);
        let same = probability_of_improvement(&X, &X).unwrap();
        assert_eq!(same.mean, Some(0.5));
        // Ties alone.
        let ties = probability_of_improvement(&[&[1.0, 1.0]], &[&[1.0, 1.0, 1.0]]).unwrap();
        assert_eq!((ties.mean, ties.low, ties.high, ties.n), (Some(0.5), Some(0.5), Some(0.5), 2));
    }

    #[test]
    fn nothing_is_said_of_too_few_scores() {
        assert_eq!(aggregates(&[], 1.0), None);
        assert_eq!(interquartile_mean(&[&[1.0], &[]]), None);
        assert_eq!(probability_of_improvement(&[&[1.0]], &[&[1.0], &[2.0]]), None);
        let one = interquartile_mean(&[&[1.0, 2.0], &[3.0]]).unwrap();
        assert_eq!((one.mean, one.low, one.n), (Some(2.0), None, 3));
        let few = performance_profile(&[&[0.5]], &[0.0, 0.5]).unwrap();
        assert_eq!((few[0].mean, few[1].mean, few[0].high), (Some(1.0), Some(0.0), None));
    }
}
