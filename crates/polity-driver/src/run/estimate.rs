//! Estimates the cost of a run in advance: from a sample of calls, from an earlier run, or from bounds alone.
//!
//! The whole run is rehearsed in memory ([`crate::source`]'s rehearsal): the number of requests and the growth of prompts come from the
//! machine itself, and only replies are sampled. The uncertainty comes from the mean over units (agents, items), of which only a few are
//! called, and from differences between run and rehearsal. Reasons and measurements: `docs/decisions/an-estimate-is-a-rehearsal.md`.

use super::engine::{Engine, Recorded, ranks};
use super::folder::Folder;
use super::prepare::Prepared;
use crate::drive::{Drive, Driven, Ending, GRACE, Past, Watch};
use crate::source::{Donors, Live, Rehearsal};
use polity_kernel::ask::{TargetKind, Usage};
use polity_kernel::scenario::{Budget, Scenario};
use polity_kernel::society::Society;
use polity_models::models::prices::Prices;
use polity_store::DriveError;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// The nominal probability that the interval contains the cost of the run.
pub const COVERAGE: f64 = 0.9;
/// The corresponding quantile of the normal distribution.
const QUANTILE: f64 = 1.645;
/// Standard deviation of the log ratio of a run's cost to its rehearsal's, for any sample: one donor represents many rounds and units.
const OF_THE_METHOD: f64 = 0.08;
/// Assumed relative standard deviation of a unit's cost, and its weight in units: two units that happen to be alike must not suggest that
/// all are.
const SPREAD_OF_UNITS: f64 = 0.35;
const ASSUMED: f64 = 3.0;
/// The simulated answers of the sample differ from the run's, as a real model also answers differently each time.
const OTHER_SEED: u64 = 0x5a4d_504c;

/// The basis of an estimate.
#[derive(Clone, Copy, Debug)]
pub enum Basis<'a> {
    /// A sample, with a limit in US dollars.
    Sample(f64),
    /// The answers of an earlier run of the same or a similar scenario.
    Run(&'a Path),
    /// Nothing: no calls.
    Bounds,
}

/// The estimated cost of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Lower end of the interval.
    pub low: f64,
    /// The expected cost; `None` if there are only bounds.
    pub expected: Option<f64>,
    /// Upper end.
    pub high: f64,
    /// The probability that the interval contains the truth; `None` for bounds.
    pub coverage: Option<f64>,
    /// `USD`.
    pub currency: &'static str,
    /// Expected calls (for bounds: the upper one).
    pub calls: u64,
    /// Tokens of requests, likewise.
    pub tokens_in: u64,
    /// Tokens of replies, likewise.
    pub tokens_out: u64,
    /// Hidden thinking tokens among them.
    pub tokens_thinking: u64,
    /// `sample`, `run` or `bounds`.
    pub basis: &'static str,
    /// Requests sent for the estimate.
    pub asked: u64,
    /// Their cost in US dollars.
    pub asked_usd: f64,
    /// Whether answers come from simulated models.
    pub simulated: bool,
}

/// The result of a rehearsal.
struct Rehearsed {
    calls: f64,
    usage: Usage,
    /// Relative standard deviation of its cost, due to the sample.
    deviation: f64,
    asked: (u64, f64),
}

impl Engine<'_> {
    /// Estimates the cost of a run of the scenario; `None` if a person stopped it. Nothing is recorded.
    ///
    /// # Errors
    /// As [`Engine::run`], and [`DriveError::Input`] if the sample's money is too little for one request, or the earlier run has no
    /// similar one. A model without a known price is refused, as with a dollar limit.
    pub fn estimate(
        &self,
        prepared: &Prepared,
        basis: Basis<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Forecast>, DriveError> {
        let scenario = Scenario::read(&prepared.tree)?;
        let engine = self.with_models_of(prepared, &scenario, None)?;
        let machine = self.assemble(prepared)?;
        let asked = engine.check_models_of(&machine, &scenario)?;
        // Same requirement as for a dollar limit: prices must be known.
        let dollars = Budget { cost_usd: Some(0.0), ..Budget::default() };
        engine.check_prices(&machine, &dollars, &asked.prices)?;
        let prices = asked.prices.clone().with(&engine.told_prices(&asked.models)?);
        let mut rehearse = |donors| engine.rehearse(prepared, &scenario, donors, &prices, watch);
        let (name, low, found) = match basis {
            Basis::Sample(limit) => {
                let seed = scenario.seed ^ OTHER_SEED;
                let live = Live::new(engine.providers.clone(), seed, self.connections, &self.outside);
                let live = live.with_prices(prices.clone());
                let live = match ranks(&scenario, &machine) {
                    Some(ranks) => live.with_ranks(ranks),
                    None => live,
                };
                ("sample", None, rehearse(Donors::Asked(Box::new(live), limit))?)
            }
            Basis::Run(dir) => {
                let folder = Folder::read(self.disk.clone(), dir)?;
                let Recorded { story, .. } = self.recorded(&folder)?;
                ("run", None, rehearse(Donors::Recorded(story.past.answers.into_values().collect()))?)
            }
            Basis::Bounds => {
                let Some(least) = rehearse(Donors::Shortest)? else { return Ok(None) };
                ("bounds", Some(least.usage.cost_usd), rehearse(Donors::Longest)?)
            }
        };
        let Some(Rehearsed { calls, usage, deviation, asked: (questions, asked_usd) }) = found else {
            return Ok(None);
        };
        let spread = (QUANTILE * (deviation.powi(2) + OF_THE_METHOD.powi(2)).sqrt()).exp();
        // The run stops at its own limit.
        let walled = |usd: f64| scenario.budget.with(&self.budget).cost_usd.map_or(usd, |wall| usd.min(wall));
        let cost = usage.cost_usd;
        let (low, expected, high) = match low {
            Some(low) => (low, None, cost),
            None => (cost / spread, Some(walled(cost)), cost * spread),
        };
        Ok(Some(Forecast {
            low: walled(low),
            expected,
            high: walled(high),
            coverage: expected.map(|_| COVERAGE),
            currency: "USD",
            calls: calls.round() as u64,
            tokens_in: usage.tokens_in,
            tokens_out: usage.tokens_out,
            tokens_thinking: usage.tokens_thinking,
            basis: name,
            asked: questions,
            asked_usd,
            simulated: asked.simulated,
        }))
    }

    /// The prices of models whose providers report costs.
    fn told_prices(&self, models: &[String]) -> Result<Prices, DriveError> {
        let mut prices = std::collections::BTreeMap::new();
        for model in models {
            let provider = self.providers.for_model(model).map_err(DriveError::Model)?;
            // People cost nothing.
            if !provider.tells_costs() || TargetKind::of(model) == TargetKind::Human {
                continue;
            }
            let Some(price) = provider.list_price(model) else {
                let what = format!("`{model}`: its provider reports the cost of a call only when it is made");
                return Err(DriveError::Model(what));
            };
            prices.insert(model.clone(), price);
        }
        Ok(Prices::from(prices))
    }

    fn rehearse(
        &self,
        prepared: &Prepared,
        scenario: &Scenario,
        donors: Donors,
        prices: &Prices,
        watch: &mut dyn Watch,
    ) -> Result<Option<Rehearsed>, DriveError> {
        let mut machine = self.assemble(prepared)?;
        let cohorts = machine.society().map(Society::cohort_of_each);
        let mut source = Rehearsal::new(donors, self.providers.clone(), prices.clone(), cohorts);
        let drive = Drive {
            machine: &mut machine,
            past: Past::default(),
            source: &mut source,
            gate: None,
            orders: None,
            deadline: None,
            grace: self.outside.grace.unwrap_or(GRACE),
            stopping_since: None,
            told: Instant::now(),
            writing: None,
            others: None,
            saves: None,
            seed: scenario.seed,
            planned: scenario.rounds,
            stop: self.stop.clone(),
            watch,
            tolerate: false,
            strict: false,
        };
        match drive.run() {
            Ok(Driven { ending: Ending::Done(_), .. }) => Ok(Some(summed(&source))),
            Ok(_) => Ok(None),
            Err(error) => Err(source.short().map_or(error, |why| DriveError::Input(why.into()))),
        }
    }
}

/// Sums over all units. The variance is that of the donors' means, each weighted by the units it represents, and of the units themselves.
fn summed(source: &Rehearsal) -> Rehearsed {
    let (mut calls, mut usage, mut variance) = (0.0, Usage::default(), 0.0);
    for shares in source.shares() {
        let mut costs = Vec::with_capacity(shares.len());
        let mut units = 0.0;
        for share in shares {
            let mut cost = 0.0;
            for (model, sums) in &share.by_model {
                let of_model = source.usage(model, sums);
                calls += sums.calls;
                usage.tokens_in += of_model.tokens_in;
                usage.tokens_out += of_model.tokens_out;
                usage.tokens_thinking += of_model.tokens_thinking;
                cost += of_model.cost_usd;
            }
            usage.cost_usd += cost;
            units += f64::from(share.units);
            costs.push(cost / f64::from(share.units));
        }
        variance += units * (1.0 + units / (costs.len() as f64).max(1.0)) * of_units(&costs);
    }
    let deviation = if usage.cost_usd > 0.0 { variance.sqrt() / usage.cost_usd } else { 0.0 };
    Rehearsed { calls, usage, deviation, asked: source.asked() }
}

/// The variance of a unit's cost: from the observed units and, as if [`ASSUMED`] more had been observed, from the assumption. It is
/// increased for Student's 90 % quantile exceeding the normal one in small samples.
fn of_units(costs: &[f64]) -> f64 {
    let n = costs.len() as f64;
    let mean = costs.iter().sum::<f64>() / n.max(1.0);
    let seen: f64 = costs.iter().map(|cost| (cost - mean).powi(2)).sum();
    let freedom = ASSUMED + (n - 1.0).max(0.0);
    let variance = (seen + ASSUMED * (SPREAD_OF_UNITS * mean).powi(2)) / freedom;
    // Approximately: (t / z)^2 is 2.05, 1.68, 1.50 for 3 to 5 degrees of freedom, and 1.21 for 10.
    variance * (1.0 + 2.5 / (freedom - 0.6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_few_units_little_is_known_and_of_many_what_is_seen() {
        let seen = |n: usize| -> Vec<f64> { (0..n).map(|i| if i % 2 == 0 { 0.9 } else { 1.1 }).collect() };
        let (one, two, many) = (of_units(&[1.0]), of_units(&seen(2)), of_units(&seen(2000)));
        assert!(one > two && two > many, "{one} {two} {many}");
        assert!((one - 2.04 * SPREAD_OF_UNITS.powi(2)).abs() < 0.01, "{one}");
        assert!((many - 0.01).abs() < 0.001, "{many}");
        assert_eq!(of_units(&[]), 0.0);
    }
}
