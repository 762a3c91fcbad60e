//! Simulated prices of stocks. What moves a stock: its quality, the sentiment of the time, the closing of the gap between value and price, the market, and
//! chance.

use super::params::Params;
use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};

/// Standard deviations of the daily drift by quality and by sentiment, and of the logarithm of value over price.
const QUALITY: f64 = 0.001;
const SENTIMENT: f64 = 0.001;
const GAP: f64 = 0.05;
/// The part of sentiment that is left after a period, and the part of the gap that closes in a day.
const KEEPS: f64 = 0.5;
const CLOSES: f64 = 0.02;
/// Standard deviation of the market's daily return, and the range of that of stocks beside it.
const MARKET: f64 = 0.008;
const OWN: [f64; 2] = [0.005, 0.03];

/// A stock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stock {
    quality: f64,
    sentiment: f64,
    gap: f64,
    deviation: f64,
    /// Standard deviation of the daily returns of the last period: what is known of its risk.
    pub(super) volatility: f64,
    /// The logarithmic return of the last period.
    pub(super) last: f64,
    /// The daily logarithmic returns of the coming period, which nobody sees before it is over.
    pub(super) coming: Vec<f64>,
}

impl Stock {
    fn new(draws: &mut Draws) -> Self {
        Stock {
            quality: QUALITY * draws.normal(),
            sentiment: SENTIMENT * draws.normal(),
            gap: GAP * draws.normal(),
            deviation: draws.range(OWN[0], OWN[1]),
            volatility: 0.0,
            last: 0.0,
            coming: Vec::new(),
        }
    }

    /// What its quality, its sentiment and its gap are expected to add to the return of the coming period, and the standard deviation of each over stocks.
    pub(super) fn parts(&self, days: u32) -> [(f64, f64); 3] {
        let closed = 1.0 - libm::pow(1.0 - CLOSES, f64::from(days));
        let days = f64::from(days);
        [
            (days * self.quality, days * QUALITY),
            (days * self.sentiment, days * SENTIMENT),
            (closed * self.gap, closed * GAP),
        ]
    }
}

/// All stocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Market {
    pub(super) stocks: Vec<Stock>,
}

impl Market {
    /// Begins with a period before the first, from which volatilities are known.
    pub(super) fn new(params: &Params, draws: &mut Draws) -> Self {
        let mut market = Market { stocks: (0..params.stocks).map(|_| Stock::new(draws)).collect() };
        market.draw(params, 1.0, draws);
        market.pass(draws);
        market
    }

    /// Draws the returns of the coming period. `sign` is that of all shocks.
    pub(super) fn draw(&mut self, params: &Params, sign: f64, draws: &mut Draws) {
        self.stocks.iter_mut().for_each(|stock| stock.coming.clear());
        for _ in 0..params.days {
            let common = sign * MARKET * draws.normal();
            for stock in &mut self.stocks {
                let closes = CLOSES * stock.gap;
                let shock = common + sign * stock.deviation * draws.normal();
                stock.coming.push(stock.quality + stock.sentiment + closes + shock);
                stock.gap -= closes;
            }
        }
    }

    /// Ends the period whose returns were drawn.
    pub(super) fn pass(&mut self, draws: &mut Draws) {
        for stock in &mut self.stocks {
            let n = stock.coming.len().max(1) as f64;
            let mean = stock.coming.iter().sum::<f64>() / n;
            stock.volatility = (stock.coming.iter().map(|gain| (gain - mean) * (gain - mean)).sum::<f64>() / n).sqrt();
            stock.last = stock.coming.iter().sum();
            stock.sentiment = KEEPS * stock.sentiment + (1.0 - KEEPS * KEEPS).sqrt() * SENTIMENT * draws.normal();
            // The value moves, too.
            stock.gap += GAP * 0.5 * draws.normal();
        }
    }
}
