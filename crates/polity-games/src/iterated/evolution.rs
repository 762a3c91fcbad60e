//! Evolution in large and small mixed populations: replicator dynamics and the Moran process.
//!
//! A game between `n` types is a square matrix: `payoffs[i][j]` is what type `i` gets from an encounter with type `j`. The mean payoffs
//! of a [`Tournament`](super::Tournament) are one.

use polity_base::rng::{Draws, Stream};

/// Refuses a matrix that is not square or has numbers that are not finite, and a start with another number of types.
pub(super) fn check(payoffs: &[Vec<f64>], start: usize) -> Result<(), String> {
    let n = payoffs.len();
    if n == 0 || payoffs.iter().any(|row| row.len() != n || row.iter().any(|x| !x.is_finite())) {
        return Err("payoffs are a square matrix of finite numbers".into());
    }
    match start == n {
        true => Ok(()),
        false => Err(format!("a matrix of {n} types needs {n} numbers to start from, not {start}")),
    }
}

/// Checks shares, and scales them to the sum 1.
fn shares(start: &[f64]) -> Result<Vec<f64>, String> {
    let sum: f64 = start.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) || start.iter().any(|x| *x < 0.0) {
        return Err("shares are at least 0, and at least one is above 0".into());
    }
    Ok(start.iter().map(|x| x / sum).collect())
}

/// The mean payoff of each type in a mixed population.
fn fitness(payoffs: &[Vec<f64>], shares: &[f64]) -> Vec<f64> {
    payoffs.iter().map(|row| row.iter().zip(shares).map(|(payoff, share)| payoff * share).sum()).collect()
}

/// Integrates the replicator equation `x'_i = x_i · (f_i − Σ x_j f_j)` (Taylor and Jonker 1978) by the classical method of Runge and
/// Kutta, and returns the shares at the beginning and after each step.
///
/// `start`: shares, scaled to sum to 1; a type with share 0 never appears. `step`: the length of a step in time, so that payoffs times step
/// stay below about 1.
///
/// # Errors
/// The matrix is not square, the shares do not fit, or the step is so long that a share becomes negative.
///
/// ```
/// use polity_games::iterated::evolution::replicator;
///
/// // Hawks and doves for a prize of 2 and a cost of 4: half are hawks at rest.
/// let path = replicator(&[vec![-1.0, 2.0], vec![0.0, 1.0]], &[0.1, 0.9], 0.1, 500)?;
/// assert!((path[500][0] - 0.5).abs() < 1e-9);
/// # Ok::<(), String>(())
/// ```
pub fn replicator(payoffs: &[Vec<f64>], start: &[f64], step: f64, steps: usize) -> Result<Vec<Vec<f64>>, String> {
    check(payoffs, start.len())?;
    if !(step > 0.0 && step.is_finite()) {
        return Err(format!("a step is a time above 0, not {step}"));
    }
    let slope = |x: &[f64]| -> Vec<f64> {
        let f = fitness(payoffs, x);
        let mean: f64 = f.iter().zip(x).map(|(f, x)| f * x).sum();
        f.iter().zip(x).map(|(f, x)| x * (f - mean)).collect()
    };
    let ahead =
        |x: &[f64], slope: &[f64], h: f64| -> Vec<f64> { x.iter().zip(slope).map(|(x, k)| x + h * k).collect() };
    let mut path = vec![shares(start)?];
    for _ in 0..steps {
        let x = &path[path.len() - 1];
        let k1 = slope(x);
        let k2 = slope(&ahead(x, &k1, step / 2.0));
        let k3 = slope(&ahead(x, &k2, step / 2.0));
        let k4 = slope(&ahead(x, &k3, step));
        let next = (0..x.len()).map(|i| x[i] + step / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]));
        let next: Vec<f64> = next.collect();
        let next = shares(&next).map_err(|_| format!("the step {step} is too long for these payoffs"))?;
        path.push(next);
    }
    Ok(path)
}

/// A Moran process: in each step an individual, chosen by fitness, has a descendant, which replaces a uniformly chosen individual
/// (Moran 1958; with payoffs by frequency Nowak, Sasaki, Taylor and Fudenberg 2004).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moran {
    /// Intensity of selection, at least 0: fitness is `exp(selection · mean payoff)` (Traulsen, Shoresh and Nowak 2008). 0 is neutral.
    pub selection: f64,
    /// The maximum number of steps.
    pub steps: u64,
}

/// The result of a Moran process.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Individuals of each type at the end.
    pub counts: Vec<u64>,
    /// Steps made.
    pub steps: u64,
    /// The type that all individuals have at the end, if there is one: the process ends there.
    pub fixed: Option<usize>,
}

impl Moran {
    /// Runs the process from numbers of individuals. An individual meets all others, not itself. `run` numbers independent courses of
    /// one seed.
    ///
    /// # Errors
    /// The matrix is not square, the numbers do not fit it, there are fewer than two individuals, or a parameter is out of range.
    ///
    /// ```
    /// use polity_games::iterated::evolution::Moran;
    ///
    /// let moran = Moran { selection: 0.0, steps: 1_000_000 };
    /// let course = moran.run(&[vec![1.0, 1.0], vec![1.0, 1.0]], &[1, 9], 7, 0)?;
    /// assert_eq!(course.counts.iter().sum::<u64>(), 10);
    /// assert!(course.fixed.is_some());
    /// # Ok::<(), String>(())
    /// ```
    pub fn run(&self, payoffs: &[Vec<f64>], start: &[u64], seed: u64, run: u32) -> Result<Course, String> {
        check(payoffs, start.len())?;
        let size: u64 = start.iter().sum();
        if size < 2 {
            return Err("a population has at least 2 individuals".into());
        }
        if !(0.0..=f64::MAX).contains(&self.selection) {
            return Err("selection is at least 0".into());
        }
        let mut draws = Draws::new(seed, Stream::Population, run, 0);
        let mut counts = start.to_vec();
        let mut weights = vec![0.0; counts.len()];
        let fixed = |counts: &[u64]| counts.iter().position(|count| *count == size);
        let mut steps = 0;
        while steps < self.steps && fixed(&counts).is_none() {
            self.weigh(payoffs, &counts, size, &mut weights);
            let Some(parent) = draws.weighted(&weights) else {
                return Err("selection times payoffs is too large a number".into());
            };
            let mut place = draws.below(size);
            let dead = counts.iter().position(|count| {
                let found = place < *count;
                place = place.wrapping_sub(*count);
                found
            });
            counts[dead.unwrap_or_default()] -= 1;
            counts[parent] += 1;
            steps += 1;
        }
        let fixed = fixed(&counts);
        Ok(Course { counts, steps, fixed })
    }

    /// Sets the weight of each type in the choice of a parent; that of an extinct type is 0. The greatest fitness is 1, so that no
    /// exponential overflows.
    fn weigh(&self, payoffs: &[Vec<f64>], counts: &[u64], size: u64, weights: &mut [f64]) {
        let mut best = f64::NEG_INFINITY;
        for (i, weight) in weights.iter_mut().enumerate().filter(|(i, _)| counts[*i] > 0) {
            let all: f64 = payoffs[i].iter().zip(counts).map(|(payoff, count)| payoff * *count as f64).sum();
            *weight = self.selection * (all - payoffs[i][i]) / (size - 1) as f64;
            best = best.max(*weight);
        }
        for (weight, count) in weights.iter_mut().zip(counts) {
            *weight = if *count == 0 { 0.0 } else { *count as f64 * libm::exp(*weight - best) };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn selection_between_two_types_follows_the_logistic_curve() {
        // Type 1 has 0.8 more than type 0, whoever it meets.
        let path = replicator(&[vec![1.0, 0.2], vec![1.8, 1.0]], &[0.9, 0.1], 0.05, 200).unwrap();
        for (step, x) in path.iter().enumerate() {
            let time = 0.05 * step as f64;
            let exact = 1.0 / (1.0 + 9.0 * (-0.8 * time).exp());
            assert!((x[1] - exact).abs() < 1e-7, "{time}: {} {exact}", x[1]);
        }
    }

    #[test]
    fn rock_paper_scissors_goes_round() {
        let game = [vec![0.0, -1.0, 1.0], vec![1.0, 0.0, -1.0], vec![-1.0, 1.0, 0.0]];
        let path = replicator(&game, &[0.5, 0.3, 0.2], 0.05, 2000).unwrap();
        // The product of shares is constant (Hofbauer and Sigmund 1998).
        assert!(path.iter().all(|x| (x.iter().product::<f64>() - 0.03).abs() < 1e-6));
        assert!(path.iter().any(|x| x[0] < 0.2) && path.iter().any(|x| x[1] > 0.5));
    }

    fn rows(entries: &[f64]) -> Vec<Vec<f64>> {
        entries.chunks(4).map(<[f64]>::to_vec).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn shares_stay_shares(
            game in prop::collection::vec(-2.0..2.0f64, 16),
            start in prop::collection::vec(0.0..1.0f64, 4),
        ) {
            prop_assume!(start.iter().sum::<f64>() > 0.0);
            for x in replicator(&rows(&game), &start, 0.1, 300).unwrap() {
                prop_assert!(x.iter().all(|x| *x >= 0.0) && (x.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn where_a_path_rests_no_type_does_better_than_the_mean() {
        let mut rested = 0;
        for game in 0..40 {
            let mut draws = Draws::new(1, Stream::Design, game, 0);
            let entries: Vec<f64> = (0..16).map(|_| draws.range(-2.0, 2.0)).collect();
            let start: Vec<f64> = (0..4).map(|_| draws.range(0.1, 1.0)).collect();
            // Long enough for a type that had almost died out to come back.
            let path = replicator(&rows(&entries), &start, 0.25, 8000).unwrap();
            let (x, before) = (&path[8000], &path[7900]);
            if x.iter().zip(before).all(|(x, y)| (x - y).abs() < 1e-9) {
                let f = fitness(&rows(&entries), x);
                let mean: f64 = f.iter().zip(x).map(|(f, x)| f * x).sum();
                assert!(f.iter().all(|f| *f < mean + 0.02), "{f:?} at {x:?}");
                rested += 1;
            }
        }
        assert!(rested > 30, "{rested}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(replicator(&[vec![1.0]], &[1.0, 1.0], 0.1, 1).unwrap_err().contains("of 1 types needs 1 numbers"));
        assert!(replicator(&[vec![1.0]], &[0.0], 0.1, 1).unwrap_err().contains("above 0"));
        let steep = [vec![0.0, 100.0], vec![300.0, 100.0]];
        assert!(replicator(&steep, &[0.5, 0.5], 0.1, 100).unwrap_err().contains("step 0.1 is too long"));
    }

    /// The share of courses in which one mutant of type 1 among `size` takes over.
    fn fixation(game: &[Vec<f64>], selection: f64, size: u64, runs: u32) -> f64 {
        let moran = Moran { selection, steps: u64::MAX };
        let fixed = |run: &u32| moran.run(game, &[size - 1, 1], 3, *run).unwrap().fixed == Some(1);
        (0..runs).filter(fixed).count() as f64 / f64::from(runs)
    }

    #[test]
    fn a_mutant_takes_over_as_often_as_theory_says() {
        let runs = 20_000;
        let tolerance = |p: f64| 4.0 * (p * (1.0 - p) / f64::from(runs)).sqrt();
        let neutral = fixation(&[vec![1.0, 7.0], vec![3.0, 2.0]], 0.0, 10, runs);
        assert!((neutral - 0.1).abs() < tolerance(0.1), "{neutral}");
        // With relative fitness r: (1 - 1/r) / (1 - 1/r^N) (Moran 1958).
        let (r, advantage) = (1.5f64, 1.5f64.ln());
        let exact = (1.0 - 1.0 / r) / (1.0 - r.powi(-10));
        let favoured = fixation(&[vec![0.0, 0.0], vec![1.0, 1.0]], advantage, 10, runs);
        assert!((favoured - exact).abs() < tolerance(exact), "{favoured} {exact}");
    }

    #[test]
    fn a_course_is_that_of_its_seed_and_run() {
        let moran = Moran { selection: 0.0, steps: 20 };
        let game = vec![vec![0.0; 2]; 2];
        assert_eq!(moran.run(&game, &[25, 25], 1, 3), moran.run(&game, &[25, 25], 1, 3));
        let different: std::collections::BTreeSet<Vec<u64>> =
            (0..20).map(|run| moran.run(&game, &[25, 25], 1, run).unwrap().counts).collect();
        assert!(different.len() > 3, "{different:?}");
        assert!(moran.run(&game, &[1, 0], 1, 0).unwrap_err().contains("at least 2"));
        let huge = [vec![1e300, 0.0], vec![0.0, 1e300]];
        assert!(Moran { selection: 1e300, ..moran }.run(&huge, &[5, 5], 1, 0).unwrap_err().contains("too large"));
        assert!(Moran { selection: -1.0, ..moran }.run(&game, &[5, 5], 1, 0).unwrap_err().contains("at least 0"));
    }
}
