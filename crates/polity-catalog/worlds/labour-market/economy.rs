//! What firms demand at given prices.

use super::params::Params;

/// Exponents of the production function, and the size of firms. A firm makes Z R^a S^b of routine work R and skilled work S, with
/// decreasing returns: a + b < 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Technology {
    /// The exponent of routine work.
    pub(super) routine: f64,
    /// The exponent of skilled work.
    pub(super) skilled: f64,
    /// Routine and skilled work of a firm of size 1 at the prices of the start.
    pub(super) work: [f64; 2],
}

/// Prices that a firm pays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    /// A unit of routine work, by people and AI together.
    pub(super) routine: f64,
    /// A unit of skilled work.
    pub(super) skilled: f64,
}

impl Technology {
    /// Exponents at which the demand of all firms at the start is what the employed supply.
    pub(super) fn new(params: &Params, individuals: u32) -> Self {
        let Params { skilled, premium, returns, employed, firms, .. } = *params;
        let bill = 1.0 - skilled + skilled * premium;
        let each = f64::from(individuals) * employed / f64::from(firms);
        Technology {
            routine: returns * (1.0 - skilled) / bill,
            skilled: returns * skilled * premium / bill,
            work: [(1.0 - skilled) * each, skilled * each],
        }
    }

    /// Returns how much routine and skilled work gives a firm of this size the most profit.
    pub(super) fn demand(&self, size: f64, prices: Prices, start: Prices) -> [f64; 2] {
        let (routine, skilled) = (prices.routine / start.routine, prices.skilled / start.skilled);
        // Output of the best plan is (Z routine^-a skilled^-b)^(1 / (1 - a - b)), and each kind of work costs its exponent's share of it.
        let power = -1.0 / (1.0 - self.routine - self.skilled);
        let output = libm::pow(routine, power * self.routine) * libm::pow(skilled, power * self.skilled);
        [size * self.work[0] * output / routine, size * self.work[1] * output / skilled]
    }
}
