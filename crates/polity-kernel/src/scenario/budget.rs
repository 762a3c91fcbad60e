//! What a run may spend on models.

use crate::tree::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest plausible number of dollars or seconds; more is taken for a mistake.
const MOST: f64 = 1e9;

/// What a run may spend on models. A call is made only if its maximum cost fits, so nothing is ever overspent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens of requests and replies.
    pub tokens: Option<u64>,
    /// Calls: requests that were answered or may have been.
    pub calls: Option<u64>,
    /// Requests to providers, including failed tries.
    pub requests: Option<u64>,
    /// Tool calls, for instance runs of programs.
    pub tool_calls: Option<u64>,
    /// Seconds of wall time of a process. Then it finishes what is in flight, saves and stops.
    pub seconds: Option<f64>,
    /// What each agent of a society may spend.
    pub agent: Option<Limits>,
    /// What cohorts may spend, by name.
    pub cohorts: BTreeMap<String, Limits>,
}

/// Limits of a part of a society.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens of requests and replies.
    pub tokens: Option<u64>,
    /// Calls: requests that were answered, or may have been.
    pub calls: Option<u64>,
    /// Requests to providers, including failed tries.
    pub requests: Option<u64>,
    /// Tool calls, for instance runs of programs.
    pub tool_calls: Option<u64>,
}

/// Prices of a model in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens of requests.
    pub input: f64,
    /// Tokens of replies, including thinking.
    pub output: f64,
    /// Tokens of requests that the provider had in its cache. Default: the price of other tokens.
    pub cached: Option<f64>,
}

impl Price {
    /// Refuses invalid prices.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        let prices = [("input", Some(self.input)), ("output", Some(self.output)), ("cached", self.cached)];
        for (key, price) in prices {
            if let Some(price) = price
                && !(0.0..=1e6).contains(&price)
            {
                let message = format!("must lie in 0 to 1,000,000 US dollars for a million tokens, is {price}");
                return Err(Invalid { key: key.into(), message });
            }
        }
        match self.cached {
            // Otherwise the maximum cost of a call would be unknown.
            Some(cached) if cached > self.input => {
                let message = format!("tokens from a cache cannot cost more than others, which cost {}", self.input);
                Err(Invalid { key: "cached".into(), message })
            }
            _ => Ok(()),
        }
    }
}

impl Budget {
    /// Returns the limits of the whole run.
    #[must_use]
    pub fn run(&self) -> Limits {
        Limits {
            cost_usd: self.cost_usd,
            tokens: self.tokens,
            calls: self.calls,
            requests: self.requests,
            tool_calls: self.tool_calls,
        }
    }

    /// Returns the budget with other limits of the run, where given.
    #[must_use]
    pub fn with(&self, other: &Budget) -> Budget {
        Budget {
            cost_usd: other.cost_usd.or(self.cost_usd),
            tokens: other.tokens.or(self.tokens),
            calls: other.calls.or(self.calls),
            requests: other.requests.or(self.requests),
            tool_calls: other.tool_calls.or(self.tool_calls),
            seconds: other.seconds.or(self.seconds),
            ..self.clone()
        }
    }

    /// Returns whether calls are limited.
    #[must_use]
    pub fn bounds_calls(&self) -> bool {
        self.run().any() || self.agent.is_some_and(|limits| limits.any()) || self.cohorts.values().any(Limits::any)
    }

    /// Returns whether dollars are limited.
    #[must_use]
    pub fn bounds_dollars(&self) -> bool {
        let mut parts = self.agent.iter().chain(self.cohorts.values());
        self.cost_usd.is_some() || parts.any(|limits| limits.cost_usd.is_some())
    }

    /// Refuses limits that cannot be enforced. `lag`: whether turns may take rounds; `cohorts`: names of a society's, `None` in an
    /// evaluation.
    pub(super) fn check(&self, lag: bool, cohorts: Option<&[String]>) -> Result<(), Invalid> {
        let invalid = |key: &str, message: String| Err(Invalid { key: key.into(), message });
        let mut amounts = vec![("cost_usd".to_string(), self.cost_usd), ("seconds".to_string(), self.seconds)];
        amounts.push(("agent.cost_usd".into(), self.agent.and_then(|limits| limits.cost_usd)));
        amounts.extend(self.cohorts.iter().map(|(name, limits)| (format!("cohorts.{name}.cost_usd"), limits.cost_usd)));
        for (key, amount) in amounts {
            if let Some(amount) = amount
                && !(0.0..=MOST).contains(&amount)
            {
                return invalid(&key, format!("must lie in 0 to 1,000,000,000, is {amount}"));
            }
        }
        let Some(known) = cohorts else {
            return match (&self.agent, self.cohorts.keys().next()) {
                (Some(_), _) => {
                    invalid("agent", "an evaluation has a team and no agents; limit the whole run instead".into())
                }
                (_, Some(_)) => invalid("cohorts", "an evaluation has no cohorts; limit the whole run instead".into()),
                _ => Ok(()),
            };
        };
        if let Some(name) = self.cohorts.keys().find(|name| !known.contains(name)) {
            return invalid(
                &format!("cohorts.{name}"),
                format!("there is no cohort `{name}` (there are {})", known.join(", ")),
            );
        }
        if lag && self.bounds_calls() {
            let message = "calls that are answered rounds later cannot be counted against a limit when they are decided; write \
                           `answers: wait`";
            return invalid("", message.into());
        }
        Ok(())
    }
}

impl Limits {
    /// Returns the limits, overridden by those of the other that are set.
    #[must_use]
    pub fn with(self, other: &Limits) -> Limits {
        Limits {
            cost_usd: other.cost_usd.or(self.cost_usd),
            tokens: other.tokens.or(self.tokens),
            calls: other.calls.or(self.calls),
            requests: other.requests.or(self.requests),
            tool_calls: other.tool_calls.or(self.tool_calls),
        }
    }

    /// Refuses invalid limits; the message names the key.
    pub fn check(&self) -> Result<(), String> {
        match self.cost_usd {
            Some(usd) if !(0.0..=MOST).contains(&usd) => {
                Err(format!("max-cost must lie in 0 to 1,000,000,000, is {usd}"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether any limit is set.
    #[must_use]
    pub fn any(&self) -> bool {
        let whole = [self.tokens, self.calls, self.requests, self.tool_calls];
        self.cost_usd.is_some() || whole.iter().any(Option::is_some)
    }
}
