//! Levels of reasoning: a Poisson cognitive hierarchy. See README.md for the source and the equations.

use polity_kernel::Invalid;
use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::OnceLock;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<LevelK>(files);
}

/// Parameters of the hierarchy.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Mean number of steps of reasoning (tau); 0 to 20. Camerer, Ho and Chong estimate about 1.5.
    mean: f64,
    /// Levels above this are redrawn; 0 to 100.
    most: u32,
    /// Standard deviation of a normal error on every guess of levels above 0, in units of the range; 0 to 1.
    noise: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { mean: 1.5, most: 20, noise: 0.0 }
    }
}

/// A Poisson cognitive hierarchy that names a number.
pub struct LevelK {
    params: Params,
    /// Poisson weights of the levels.
    weights: Vec<f64>,
    /// Factors of all levels for the first fraction; if the fraction changes later, they are recomputed each time.
    factors: OnceLock<(f64, Vec<f64>)>,
    slots: [NumberSlot; 5],
    act: u16,
}

/// Returns the guess of a level as a factor of level 0's mean guess. Level k responds to the mix of the levels below it, in the
/// proportions in which they occur, and neglects its own influence on the average.
pub fn factor(weights: &[f64], fraction: f64, level: u32) -> f64 {
    let (mut mass, mut sum) = (0.0, 0.0);
    let mut guess = 1.0;
    for weight in weights.iter().take(level as usize) {
        mass += weight;
        sum += weight * guess;
        guess = if mass > 0.0 { fraction * sum / mass } else { fraction * guess };
    }
    guess
}

impl LevelK {
    fn factor(&self, fraction: f64, level: u32) -> f64 {
        let all = || (0..=self.params.most).map(|k| factor(&self.weights, fraction, k)).collect();
        let (of, factors) = self.factors.get_or_init(|| (fraction, all()));
        match factors.get(level as usize) {
            Some(known) if *of == fraction => *known,
            _ => factor(&self.weights, fraction, level),
        }
    }
}

impl Policy for LevelK {
    const NAME: &'static str = "level-k";
    const SUMMARY: &'static str = "Respond to reasoners of lower levels (Poisson cognitive hierarchy)";
    type Params = Params;
    /// The number of steps of reasoning.
    type State = u32;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0.0..=20.0, "mean", params.mean)?;
        Invalid::within(0..=100, "most", params.most)?;
        Invalid::within(0.0..=1.0, "noise", params.noise)?;
        let mut weights = vec![libm::exp(-params.mean)];
        for k in 1..=params.most {
            weights.push(weights[k as usize - 1] * params.mean / f64::from(k));
        }
        let slot = |name| setup.number(name);
        Ok(LevelK {
            params,
            weights,
            factors: OnceLock::new(),
            slots: [slot("fraction")?, slot("low")?, slot("high")?, slot("announced")?, slot("last-mean")?],
            act: setup.number_act()?.0,
        })
    }

    fn init_state(&self, _: Person<'_>, draws: &mut Draws) -> u32 {
        draws.weighted(&self.weights).unwrap_or(0) as u32
    }

    async fn act(&self, level: &mut u32, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let see = |i: usize| turn.observation.number(self.slots[i]);
        let (fraction, low, high, announced, last_mean) = (see(0), see(1), see(2), see(3), see(4));
        // Without an announced mean, level 0 guesses at random; later it repeats the last mean (Nagel 1995).
        let known = announced > 0.0;
        let anchor = if known { last_mean } else { f64::midpoint(low, high) };
        let mut guess = match *level {
            0 if !known => turn.draws.range(low, high),
            level => self.factor(fraction, level) * anchor,
        };
        if *level > 0 && self.params.noise > 0.0 {
            guess += self.params.noise * (high - low) * turn.draws.normal();
        }
        turn.act(self.act, guess.clamp(low, high));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, written out: b_k = p * sum_{h<k} f(h) b_h / sum_{h<k} f(h).
    #[test]
    fn responses_match_the_definition() {
        let weights: Vec<f64> = [0.22, 0.33, 0.25, 0.13].to_vec();
        let mut by_level: Vec<f64> = vec![50.0];
        for k in 1..=4 {
            let mass: f64 = weights[..k].iter().sum();
            let sum: f64 = weights[..k].iter().zip(&by_level).map(|(f, b)| f * b).sum();
            by_level.push(2.0 / 3.0 * sum / mass);
        }
        for (k, expected) in by_level.iter().enumerate() {
            let got = 50.0 * factor(&weights, 2.0 / 3.0, k as u32);
            assert!((got - expected).abs() < 1e-12, "level {k}: {got} and {expected}");
        }
    }
}
