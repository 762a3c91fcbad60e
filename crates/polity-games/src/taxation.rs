//! Taxes on labour income in brackets: how workers respond, how much welfare a schedule gives, and which schedule is best.
//!
//! A worker of skill n (the income that it would earn without taxes) who earns z and consumes c has the utility
//! c - n (z/n)^(1 + 1/e) / (1 + 1/e), with elasticity e of income to the share that is kept. Revenue is redistributed in equal parts.
//! Welfare is the equally distributed equivalent of utilities with inequality aversion a (Atkinson 1970), so it is in units of income.
//! Without income effects Saez's formula is exact for a smooth schedule: E. Saez, "Using Elasticities to Derive Optimal Income Tax
//! Rates", Review of Economic Studies 68 (2001). The planner who knows how workers respond is a Stackelberg leader.

use serde::{Deserialize, Serialize};

/// Utilities below this count as this much in welfare, in units of income.
pub const LEAST: f64 = 1.0;

/// Largest number of schedules that [`Economy::best_on_grid`] tries in one pass.
pub const MOST: f64 = 2e6;

/// Marginal rates by bracket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    thresholds: Vec<f64>,
    rates: Vec<f64>,
}

impl Schedule {
    /// Makes a schedule: incomes from which brackets begin, the first 0, and the marginal rate of each.
    ///
    /// # Errors
    /// No bracket, thresholds that do not rise from 0, another number of rates than of brackets, or a rate outside of 0 to 1.
    pub fn new(thresholds: Vec<f64>, rates: Vec<f64>) -> Result<Self, String> {
        if thresholds.first() != Some(&0.0) {
            return Err("the first bracket must begin at 0".into());
        }
        let falls = |two: &[f64]| !(two[0] < two[1] && two[1].is_finite());
        if let Some(i) = thresholds.windows(2).position(falls) {
            let (before, start) = (thresholds[i], thresholds[i + 1]);
            return Err(format!(
                "bracket {} must begin above {before}, where the one before begins, not at {start}",
                i + 2
            ));
        }
        check_rates(&rates, thresholds.len())?;
        Ok(Schedule { thresholds, rates })
    }

    /// Makes a schedule of brackets: from which income each begins, and its marginal rate.
    ///
    /// # Errors
    /// As for [`Schedule::new`].
    pub fn of_brackets(brackets: impl Iterator<Item = (f64, f64)>) -> Result<Self, String> {
        let (thresholds, rates) = brackets.unzip();
        Schedule::new(thresholds, rates)
    }

    /// Returns a schedule with the same brackets and these rates.
    ///
    /// # Errors
    /// Another number of rates than of brackets, or a rate outside of 0 to 1.
    pub fn with_rates(&self, rates: Vec<f64>) -> Result<Self, String> {
        Schedule::new(self.thresholds.clone(), rates)
    }

    /// Returns the incomes from which brackets begin.
    #[must_use]
    pub fn thresholds(&self) -> &[f64] {
        &self.thresholds
    }

    /// Returns the marginal rates.
    #[must_use]
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// Returns the brackets: where each begins and ends, and its rate.
    fn brackets(&self) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        let ends = self.thresholds.iter().skip(1).copied().chain([f64::INFINITY]);
        self.thresholds.iter().zip(ends).zip(&self.rates).map(|((low, high), rate)| (*low, high, *rate))
    }

    /// Returns the tax due on an income.
    #[must_use]
    pub fn due(&self, income: f64) -> f64 {
        self.brackets().map(|(low, high, rate)| rate * (income.min(high) - low).max(0.0)).sum()
    }
}

/// Checks the marginal rates of this many brackets.
///
/// # Errors
/// Another number of rates than of brackets, or a rate outside of 0 to 1.
pub fn check_rates(rates: &[f64], brackets: usize) -> Result<(), String> {
    if rates.len() != brackets {
        return Err(format!("there are {brackets} brackets and {} rates", rates.len()));
    }
    match rates.iter().position(|rate| !(0.0..=1.0).contains(rate)) {
        Some(i) => Err(format!("the rate of bracket {} must lie in 0..=1, is {}", i + 1, rates[i])),
        None => Ok(()),
    }
}

/// Checks the size of a grid for [`Economy::best_on_grid`].
///
/// # Errors
/// No step, or more schedules than [`MOST`].
pub fn check_grid(brackets: usize, steps: u32) -> Result<(), String> {
    if steps == 0 {
        return Err("the grid needs at least 1 step".into());
    }
    let size = libm::pow(f64::from(steps) + 1.0, brackets as f64);
    if size > MOST {
        let rates = steps + 1;
        return Err(format!(
            "a grid of {brackets} brackets with {rates} rates each has {size:.0} schedules, more than {MOST:.0}"
        ));
    }
    Ok(())
}

/// How workers respond to taxes, and how welfare weighs them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Economy {
    /// Elasticity of income to the share that is kept; above 0.
    pub elasticity: f64,
    /// Inequality aversion; 0 is the mean of utilities, 1 their geometric mean.
    pub aversion: f64,
}

/// What comes of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The income of each worker, before taxes.
    pub incomes: Vec<f64>,
    /// The utility of each worker, in units of income.
    pub utilities: Vec<f64>,
    /// What each gets of the revenue.
    pub rebate: f64,
    /// The equally distributed equivalent of utilities.
    pub welfare: f64,
}

impl Economy {
    /// Returns what it costs a worker of this skill to earn an income, in units of income.
    #[must_use]
    pub fn cost(&self, skill: f64, income: f64) -> f64 {
        let power = 1.0 + 1.0 / self.elasticity;
        if skill > 0.0 { skill * libm::pow(income / skill, power) / power } else { 0.0 }
    }

    /// Returns the utility of a worker of this skill who earns an income under a schedule, and gets a rebate.
    #[must_use]
    pub fn utility(&self, skill: f64, income: f64, schedule: &Schedule, rebate: f64) -> f64 {
        income - schedule.due(income) + rebate - self.cost(skill, income)
    }

    /// Returns the best income of a worker of this skill. In each bracket it is the income at which the marginal cost is what is kept,
    /// or an end of the bracket; a tie goes to the smaller one.
    #[must_use]
    pub fn income(&self, skill: f64, schedule: &Schedule) -> f64 {
        let (mut best, mut most, mut due) = (0.0, f64::NEG_INFINITY, 0.0);
        for (low, high, rate) in schedule.brackets() {
            let income = (skill * libm::pow(1.0 - rate, self.elasticity)).clamp(low, high);
            let utility = income - due - rate * (income - low) - self.cost(skill, income);
            if utility > most {
                (best, most) = (income, utility);
            }
            due += rate * (high - low);
        }
        best
    }

    /// Returns the equally distributed equivalent of utilities: if all had as much, welfare would be the same.
    #[must_use]
    pub fn welfare(&self, utilities: &[f64]) -> f64 {
        let n = utilities.len().max(1) as f64;
        let mean = |of: &dyn Fn(f64) -> f64| utilities.iter().map(|utility| of(utility.max(LEAST))).sum::<f64>() / n;
        let power = 1.0 - self.aversion;
        match power == 0.0 {
            true => libm::exp(mean(&libm::log)),
            false => libm::pow(mean(&|utility| libm::pow(utility, power)), 1.0 / power),
        }
    }

    /// Returns what comes of a schedule if all workers respond as is best for them.
    #[must_use]
    pub fn outcome(&self, skills: &[f64], schedule: &Schedule) -> Outcome {
        let incomes: Vec<f64> = skills.iter().map(|skill| self.income(*skill, schedule)).collect();
        let revenue: f64 = incomes.iter().map(|income| schedule.due(*income)).sum();
        let rebate = revenue / skills.len().max(1) as f64;
        let utility = |(skill, income): (&f64, &f64)| self.utility(*skill, *income, schedule, rebate);
        let utilities: Vec<f64> = skills.iter().zip(&incomes).map(utility).collect();
        let welfare = self.welfare(&utilities);
        Outcome { incomes, utilities, rebate, welfare }
    }

    /// Returns the weight in welfare of a little more income for each worker; their mean is 1.
    fn weights(&self, utilities: &[f64]) -> Vec<f64> {
        let weights: Vec<f64> = utilities.iter().map(|utility| libm::pow(utility.max(LEAST), -self.aversion)).collect();
        let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
        weights.iter().map(|weight| weight / mean).collect()
    }

    /// Returns rates by Saez's formula, (1 - G) / (1 - G + a e), at the middle of each bracket, from the incomes and utilities of
    /// workers. G is the mean weight of those above it; a is z f(z) / (1 - F(z)), with a density that is estimated with a Gaussian
    /// kernel over log incomes. In the last bracket a is m / (m - s), with the mean income m above its start s.
    #[must_use]
    pub fn saez(&self, incomes: &[f64], utilities: &[f64], thresholds: &[f64]) -> Vec<f64> {
        let (n, weights) = (incomes.len() as f64, self.weights(utilities));
        let logs: Vec<f64> = incomes.iter().map(|income| libm::log(income.max(LEAST))).collect();
        let mean = logs.iter().sum::<f64>() / n.max(1.0);
        let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / (n - 1.0).max(1.0);
        // Scott's rule.
        let width = (variance.sqrt() * libm::pow(n.max(1.0), -0.2)).max(1e-9);
        let mut rates: Vec<f64> = Vec::with_capacity(thresholds.len());
        for (i, start) in thresholds.iter().enumerate() {
            let above = |z: f64| {
                let of = incomes.iter().zip(&weights).filter(move |(income, _)| **income >= z);
                of.fold((0.0, 0.0, 0.0), |(count, sum, weight), (income, own)| {
                    (count + 1.0, sum + income, weight + own)
                })
            };
            let (count, weight, tail) = match thresholds.get(i + 1) {
                Some(end) => {
                    let z = f64::midpoint(*start, *end);
                    let (count, _, weight) = above(z);
                    let kernel = |log: &f64| {
                        let x = (libm::log(z) - log) / width;
                        libm::exp(-0.5 * x * x)
                    };
                    // The density of log incomes is z f(z).
                    let density = logs.iter().map(kernel).sum::<f64>() / (n * width * core::f64::consts::TAU.sqrt());
                    (count, weight, density * n / count)
                }
                None => {
                    let (count, sum, weight) = above(*start);
                    (count, weight, sum / (sum - count * start).max(LEAST))
                }
            };
            // Nobody is above: the rate before goes on.
            rates.push(match count > 0.0 {
                true => {
                    let gap = (1.0 - weight / count).max(0.0);
                    if gap > 0.0 { gap / (gap + tail * self.elasticity) } else { 0.0 }
                }
                false => rates.last().copied().unwrap_or_default(),
            });
        }
        rates
    }

    /// Returns rates at which a small change in one bracket changes nothing to first order: what the others pay less, weighted, is what
    /// those inside it no longer earn (Saez's argument for brackets of finite width). Workers at the ends of brackets do not respond.
    #[must_use]
    pub fn saez_of_brackets(&self, incomes: &[f64], utilities: &[f64], thresholds: &[f64]) -> Vec<f64> {
        let weights = self.weights(utilities);
        let mut rates: Vec<f64> = Vec::with_capacity(thresholds.len());
        for (i, low) in thresholds.iter().enumerate() {
            let high = thresholds.get(i + 1).copied().unwrap_or(f64::INFINITY);
            let (mut gain, mut base, mut taxed) = (0.0, 0.0, 0.0);
            for (income, weight) in incomes.iter().zip(&weights) {
                let part = (income.min(high) - low).max(0.0);
                gain += (1.0 - weight) * part;
                taxed += part;
                if *income > low * (1.0 + 1e-9) && *income < high * (1.0 - 1e-9) {
                    base += income;
                }
            }
            rates.push(match taxed > 0.0 {
                true if gain <= 0.0 => 0.0,
                true => gain / (gain + self.elasticity * base),
                false => rates.last().copied().unwrap_or_default(),
            });
        }
        rates
    }

    /// Finds the best schedule by trying all rates that are multiples of 1/`steps`, then finer ones around the best: three times, all
    /// combinations of the best rates and those a third of a step below and above.
    ///
    /// # Errors
    /// Thresholds that are no brackets, no step, or more schedules than [`MOST`].
    pub fn best_on_grid(&self, skills: &[f64], thresholds: &[f64], steps: u32) -> Result<(Schedule, f64), String> {
        let schedule = Schedule::new(thresholds.to_vec(), vec![0.0; thresholds.len()])?;
        check_grid(thresholds.len(), steps)?;
        let all: Vec<f64> = (0..=steps).map(|step| f64::from(step) / f64::from(steps)).collect();
        let mut best = self.best_among(skills, &schedule, &vec![all; thresholds.len()]);
        let mut step = 1.0 / f64::from(steps);
        for _ in 0..3 {
            step /= 3.0;
            let around = |rate: &f64| {
                let near = [-step, 0.0, step].map(|by| rate + by);
                near.into_iter().filter(|rate| (0.0..=1.0).contains(rate)).collect()
            };
            let near: Vec<Vec<f64>> = best.0.rates.iter().map(around).collect();
            best = self.best_among(skills, &schedule, &near);
        }
        Ok(best)
    }

    /// Returns the best of all combinations of these rates, and its welfare; a tie goes to the first.
    fn best_among(&self, skills: &[f64], like: &Schedule, options: &[Vec<f64>]) -> (Schedule, f64) {
        let mut schedule = like.clone();
        let (mut best, mut most) = (like.clone(), f64::NEG_INFINITY);
        let mut places = vec![0; options.len()];
        loop {
            for (rate, (place, options)) in schedule.rates.iter_mut().zip(places.iter().zip(options)) {
                *rate = options[*place];
            }
            let welfare = self.outcome(skills, &schedule).welfare;
            if welfare > most {
                (best, most) = (schedule.clone(), welfare);
            }
            // The next combination, the first bracket fastest.
            let Some(i) = (0..places.len()).find(|i| places[*i] + 1 < options[*i].len()) else { return (best, most) };
            places[i] += 1;
            places[..i].fill(0);
        }
    }
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pareto(n: u32, shape: f64) -> Vec<f64> {
        (0..n).map(|i| 1e4 * libm::pow((f64::from(i) + 0.5) / f64::from(n), -1.0 / shape)).collect()
    }

    fn schedule(thresholds: &[f64], rates: &[f64]) -> Schedule {
        Schedule::new(thresholds.to_vec(), rates.to_vec()).unwrap()
    }

    #[test]
    fn the_response_is_the_best_of_all_incomes() {
        let economy = Economy { elasticity: 0.4, aversion: 1.0 };
        for rates in [[0.1, 0.5, 0.2], [0.0, 0.3, 0.9], [0.6, 0.0, 1.0]] {
            let schedule = schedule(&[0.0, 20_000.0, 60_000.0], &rates);
            for skill in [500.0, 19_000.0, 23_000.0, 40_000.0, 75_000.0, 300_000.0] {
                let utility = |income: f64| income - schedule.due(income) - economy.cost(skill, income);
                let chosen = economy.income(skill, &schedule);
                for i in 0..=20_000 {
                    let other = skill * f64::from(i) / 10_000.0;
                    assert!(utility(chosen) >= utility(other) - 1e-6, "{skill} {rates:?}: {chosen} and {other}");
                }
            }
        }
    }

    #[test]
    fn a_flat_tax_has_a_closed_form() {
        // All earn n (1 - t)^e, and what a tax brings is largest at 1 / (1 + e).
        let (e, skills) = (0.25, pareto(500, 2.0));
        let economy = Economy { elasticity: e, aversion: 0.0 };
        let mean = skills.iter().sum::<f64>() / 500.0;
        let revenue = |rate: f64| economy.outcome(&skills, &schedule(&[0.0], &[rate])).rebate;
        for rate in [0.0, 0.3, 0.8] {
            let expected = rate * mean * libm::pow(1.0 - rate, e);
            assert!((revenue(rate) - expected).abs() < 1e-6 * mean);
        }
        let top = (0..1000).map(|i| f64::from(i) / 1000.0).max_by(|a, b| revenue(*a).total_cmp(&revenue(*b))).unwrap();
        assert!((top - 1.0 / (1.0 + e)).abs() < 1e-9);
        // Who does not mind inequality takes no taxes.
        assert_eq!(economy.best_on_grid(&skills, &[0.0, 3e4], 10).unwrap().0.rates(), [0.0, 0.0]);
    }

    #[test]
    fn the_top_rate_is_the_formula_of_a_pareto_tail() {
        // Diamond and Saez: with a Pareto tail and no weight on the top the rate is 1 / (1 + a e), whatever the brackets below.
        let economy = Economy { elasticity: 0.25, aversion: 4.0 };
        let skills = pareto(4000, 2.0);
        let under = schedule(&[0.0, 1e5], &[0.4, 0.6]);
        let outcome = economy.outcome(&skills, &under);
        let rates = economy.saez(&outcome.incomes, &outcome.utilities, &[0.0, 1e5]);
        assert!((rates[1] - 1.0 / 1.5).abs() < 0.05, "{rates:?}");
    }

    #[test]
    fn at_the_flat_optimum_the_bracket_formula_gives_the_same_rate() {
        // With one bracket the first-order condition is exact: the grid's best rate is its fixed point.
        let economy = Economy { elasticity: 0.3, aversion: 1.0 };
        let skills = pareto(300, 1.8);
        let (best, welfare) = economy.best_on_grid(&skills, &[0.0], 1000).unwrap();
        let outcome = economy.outcome(&skills, &best);
        let rate = economy.saez_of_brackets(&outcome.incomes, &outcome.utilities, &[0.0])[0];
        assert!((rate - best.rates()[0]).abs() < 2e-3, "{rate} {best:?}");
        assert!((welfare - outcome.welfare).abs() < 1e-9);
    }

    #[test]
    fn the_grid_finds_what_plain_loops_find() {
        let economy = Economy { elasticity: 0.5, aversion: 1.5 };
        let skills = pareto(40, 1.5);
        let thresholds = [0.0, 15_000.0, 40_000.0];
        let plain = |rates: [f64; 3]| {
            // Written out: the best of 4,000 incomes for each worker.
            let due = |z: f64| {
                rates[0] * z.min(15_000.0)
                    + rates[1] * (z.min(40_000.0) - 15_000.0).max(0.0)
                    + rates[2] * (z - 40_000.0).max(0.0)
            };
            let earn = |n: f64| {
                let of = |i: i32| n * f64::from(i) / 4000.0;
                let worth = |z: f64| z - due(z) - n * (z / n).powi(3) / 3.0;
                of((0..=4000).max_by(|a, b| worth(of(*a)).total_cmp(&worth(of(*b)))).unwrap())
            };
            let earned: Vec<f64> = skills.iter().map(|n| earn(*n)).collect();
            let rebate = earned.iter().map(|z| due(*z)).sum::<f64>() / 40.0;
            let parts = skills.iter().zip(&earned).map(|(n, z)| {
                let utility: f64 = z - due(*z) + rebate - n * (z / n).powi(3) / 3.0;
                utility.max(LEAST).powf(-0.5)
            });
            (parts.sum::<f64>() / 40.0).powf(-2.0)
        };
        let mut best = (f64::NEG_INFINITY, [0.0; 3]);
        for a in 0..=5 {
            for b in 0..=5 {
                for c in 0..=5 {
                    let rates = [a, b, c].map(|step| f64::from(step) / 5.0);
                    let welfare = plain(rates);
                    let ours = economy.outcome(&skills, &schedule(&thresholds, &rates)).welfare;
                    assert!((ours / welfare - 1.0).abs() < 2e-3, "{rates:?}: {ours} and {welfare}");
                    if welfare > best.0 {
                        best = (welfare, rates);
                    }
                }
            }
        }
        let all: Vec<f64> = (0..=5).map(|step| f64::from(step) / 5.0).collect();
        let like = schedule(&thresholds, &[0.0; 3]);
        assert_eq!(economy.best_among(&skills, &like, &vec![all; 3]).0.rates(), best.1);
        let (_, refined) = economy.best_on_grid(&skills, &thresholds, 5).unwrap();
        assert!(refined >= best.0 * 0.998, "{refined} {}", best.0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused =
            |thresholds: &[f64], rates: &[f64]| Schedule::new(thresholds.to_vec(), rates.to_vec()).unwrap_err();
        assert!(refused(&[1.0], &[0.1]).contains("begin at 0"));
        assert!(refused(&[0.0, 5.0, 5.0], &[0.1; 3]).contains("bracket 3 must begin above 5"));
        assert!(refused(&[0.0, 5.0], &[0.1]).contains("2 brackets and 1 rates"));
        assert!(refused(&[0.0], &[1.1]).contains("0..=1"));
        let economy = Economy { elasticity: 0.3, aversion: 1.0 };
        let large = economy.best_on_grid(&[1.0], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 10).unwrap_err();
        assert!(large.contains("19487171 schedules"), "{large}");
    }
}
