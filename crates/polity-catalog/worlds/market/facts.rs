//! Running statistics of prices: the stylised facts of a market.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The lags, in sessions, over which autocorrelations are averaged.
pub(super) const LAGS: usize = 10;
/// A price this far above the value, as a logarithm, counts as a bubble: about 22 %.
pub(super) const BUBBLE: f64 = 0.2;
/// The sessions over which a crash is measured.
pub(super) const CRASH: usize = 10;

/// Sums over sessions, from which the statistics follow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    sessions: u32,
    /// Sums of the powers 1 to 4 of logarithmic returns.
    powers: [f64; 4],
    /// Sums of absolute returns, of volumes, of their squares, and of their products.
    absolute: f64,
    volume: f64,
    squared_volume: f64,
    volume_absolute: f64,
    /// The last returns, newest first.
    last: VecDeque<f64>,
    /// By lag from 1: the sums of products of returns, and of absolute returns, that far apart; and how many there are.
    products: Vec<[f64; 2]>,
    pairs: Vec<u32>,
    /// The logarithms of the last prices, newest first.
    prices: VecDeque<f64>,
    /// The largest logarithm of price over value, the deepest fall within [`CRASH`] sessions, and the sessions above [`BUBBLE`].
    pub(super) peak: f64,
    pub(super) crash: f64,
    bubbles: u32,
}

impl Facts {
    /// Adds a session: its logarithmic return, its volume, the logarithms of price and value.
    pub(super) fn add(&mut self, gain: f64, volume: f64, price: f64, value: f64) {
        self.sessions += 1;
        let mut power = 1.0;
        for sum in &mut self.powers {
            power *= gain;
            *sum += power;
        }
        self.absolute += gain.abs();
        self.volume += volume;
        self.squared_volume += volume * volume;
        self.volume_absolute += volume * gain.abs();
        self.products.resize(LAGS, [0.0; 2]);
        self.pairs.resize(LAGS, 0);
        for ((before, sums), pairs) in self.last.iter().zip(&mut self.products).zip(&mut self.pairs) {
            sums[0] += gain * before;
            sums[1] += (gain * before).abs();
            *pairs += 1;
        }
        self.last.push_front(gain);
        self.last.truncate(LAGS);
        if let Some(first) = self.prices.get(CRASH - 1) {
            self.crash = self.crash.max(first - price);
        }
        self.prices.push_front(price);
        self.prices.truncate(CRASH);
        self.peak = self.peak.max(price - value);
        self.bubbles += u32::from(price - value > BUBBLE);
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / f64::from(self.sessions.max(1))
    }

    fn variance(&self) -> f64 {
        let mean = self.mean(self.powers[0]);
        self.mean(self.powers[1]) - mean * mean
    }

    /// The standard deviation of returns.
    pub(super) fn deviation(&self) -> f64 {
        self.variance().max(0.0).sqrt()
    }

    /// The excess kurtosis of returns: 0 for a normal distribution, more for fatter tails.
    pub(super) fn kurtosis(&self) -> f64 {
        let [mean, second, third, fourth] = self.powers.map(|sum| self.mean(sum));
        let variance = self.variance();
        let central = fourth - 4.0 * mean * third + 6.0 * mean * mean * second - 3.0 * mean * mean * mean * mean;
        if variance > 0.0 { central / (variance * variance) - 3.0 } else { 0.0 }
    }

    /// The autocorrelation of returns, or of absolute returns, at a lag from 1.
    pub(super) fn autocorrelation(&self, lag: usize, absolute: bool) -> f64 {
        let (mean, variance) = if absolute {
            let mean = self.mean(self.absolute);
            (mean, self.mean(self.powers[1]) - mean * mean)
        } else {
            (self.mean(self.powers[0]), self.variance())
        };
        match (self.products.get(lag - 1), self.pairs.get(lag - 1)) {
            (Some(sums), Some(pairs)) if *pairs > 0 && variance > 0.0 => {
                (sums[usize::from(absolute)] / f64::from(*pairs) - mean * mean) / variance
            }
            _ => 0.0,
        }
    }

    /// The mean over all lags of the autocorrelation of absolute returns.
    pub(super) fn memory(&self) -> f64 {
        (1..=LAGS).map(|lag| self.autocorrelation(lag, true)).sum::<f64>() / LAGS as f64
    }

    /// The mean over all lags by which the autocorrelation of absolute returns exceeds the size of that of returns.
    pub(super) fn clustering(&self) -> f64 {
        let plain: f64 = (1..=LAGS).map(|lag| self.autocorrelation(lag, false).abs()).sum();
        self.memory() - plain / LAGS as f64
    }

    /// The correlation of volume and absolute return.
    pub(super) fn volume_volatility(&self) -> f64 {
        let (volume, absolute) = (self.mean(self.volume), self.mean(self.absolute));
        let of_volume = self.mean(self.squared_volume) - volume * volume;
        let of_absolute = self.mean(self.powers[1]) - absolute * absolute;
        let scale = (of_volume * of_absolute).max(0.0).sqrt();
        if scale > 0.0 { (self.mean(self.volume_absolute) - volume * absolute) / scale } else { 0.0 }
    }

    /// The share of sessions in which the price was above the value by more than [`BUBBLE`].
    pub(super) fn overpriced(&self) -> f64 {
        f64::from(self.bubbles) / f64::from(self.sessions.max(1))
    }
}
