//! Adaptive pacing: bids for a budget in repeated second-price auctions (Balseiro and Gur 2019).

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a pacer cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum PacingError {
    /// The step is not above 0 and finite.
    #[error("the step must be above 0 and finite; it is {0}")]
    Step(f64),
    /// The rate is not above 0 and finite.
    #[error("what may be spent in an auction must be above 0 and finite; it is {0}")]
    Rate(f64),
}

/// A bidder with a budget: it bids its value over 1 plus a multiplier, the price of its money. The multiplier rises after an auction in which it
/// spent more than its rate, and falls after one in which it spent less.
///
/// ```
/// use polity_learn::pacing::Pacer;
///
/// // Against a price of 0.5, a bidder with a value of 1 and a rate of 0.25 learns to buy every other time.
/// let mut pacer = Pacer::new(0.25, 1_000, 0.05)?;
/// let mut bought = 0;
/// for _ in 0..1_000 {
///     let wins = pacer.bid(1.0) >= 0.5;
///     bought += u32::from(wins);
///     pacer.pay(if wins { 0.5 } else { 0.0 });
/// }
/// assert!((490..=500).contains(&bought));
/// # Ok::<(), polity_learn::pacing::PacingError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pacer {
    multiplier: f64,
    step: f64,
    rate: f64,
    left: f64,
}

impl Pacer {
    /// Makes a bidder that may spend `rate` times `auctions` in all, and changes its multiplier by `step` times what it spent beyond the rate.
    ///
    /// # Errors
    /// A step or a rate that is not above 0 and finite.
    pub fn new(rate: f64, auctions: u32, step: f64) -> Result<Self, PacingError> {
        let fits = |x: f64| x > 0.0 && x.is_finite();
        if !fits(step) {
            return Err(PacingError::Step(step));
        }
        if !fits(rate) {
            return Err(PacingError::Rate(rate));
        }
        Ok(Pacer { multiplier: 0.0, step, rate, left: rate * f64::from(auctions) })
    }

    /// The bid for something of this value; never more than what is left.
    #[must_use]
    pub fn bid(&self, value: f64) -> f64 {
        (value / (1.0 + self.multiplier)).min(self.left)
    }

    /// Learns what an auction cost; 0 if it was lost.
    pub fn pay(&mut self, spent: f64) {
        self.left = (self.left - spent).max(0.0);
        self.multiplier = (self.multiplier + self.step * (spent - self.rate)).max(0.0);
    }

    /// What is left of the budget.
    #[must_use]
    pub fn left(&self) -> f64 {
        self.left
    }

    /// The multiplier.
    #[must_use]
    pub fn multiplier(&self) -> f64 {
        self.multiplier
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use polity_base::rng::{Draws, Stream};

    #[test]
    fn a_pacer_spends_its_budget_and_no_more_and_nears_the_best_fixed_multiplier() {
        // Values and prices uniform on 0 to 1. With multiplier m a bidder wins with probability 1 / (2 (1 + m)) and pays 1 / (6 (1 + m)^2) on average.
        for rate in [0.02, 0.05, 0.1] {
            // Long, since what is spent while the multiplier is still low counts.
            let auctions = 200_000;
            let mut pacer = Pacer::new(rate, auctions, 0.05).unwrap();
            let mut draws = Draws::new(1, Stream::World, 0, 0);
            let (mut gained, mut spent) = (0.0, 0.0);
            for _ in 0..auctions {
                let (value, price) = (draws.unit(), draws.unit());
                let paid = if pacer.bid(value) >= price { price } else { 0.0 };
                gained += if paid > 0.0 { value - paid } else { 0.0 };
                spent += paid;
                pacer.pay(paid);
            }
            let budget = rate * f64::from(auctions);
            assert!(spent <= budget && spent > 0.97 * budget, "{rate}: {spent} of {budget}");
            // 1 + m = sqrt(1 / (6 rate)); the gain is E[v; won] - rate, and E[v; won] = 1 / (3 (1 + m)).
            let best = (6.0 * rate).sqrt() / 3.0 - rate;
            assert!((gained / f64::from(auctions) - best).abs() < 0.03 * best + 0.002, "{rate}: {gained} {best}");
        }
    }

    #[test]
    fn budgets_and_steps_that_do_not_fit_are_refused() {
        assert_eq!(Pacer::new(0.1, 10, 0.0), Err(PacingError::Step(0.0)));
        assert_eq!(Pacer::new(-1.0, 10, 0.1), Err(PacingError::Rate(-1.0)));
        let mut poor = Pacer::new(0.1, 2, 0.1).unwrap();
        poor.pay(0.15);
        assert!(poor.bid(1.0) <= 0.05 + 1e-12);
    }
}
