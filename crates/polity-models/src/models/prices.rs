//! Prices of models: the shipped table, a scenario's own prices, and the only place where usage becomes dollars.
//!
//! Providers that know the cost of a call (`sim`) keep theirs. Reasons: `docs/decisions/prices-are-data.md`.

use super::provider::Provider;
use polity_kernel::ask::Usage;
use polity_kernel::scenario::Price;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Cost of a batched request relative to a single one, at OpenAI (<https://platform.openai.com/docs/guides/batch>) and Anthropic
/// (<https://platform.claude.com/docs/en/build-with-claude/batch-processing>), for all of its tokens.
pub const OF_A_BATCH: f64 = 0.5;

/// The shipped table, with its date and sources.
pub const PRICES: &str = include_str!("prices.json");

/// The format of `prices.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The date of its prices.
    pub date: String,
    /// The day on which they were read.
    pub read: String,
    /// The source.
    pub source: String,
    /// What the prices apply to.
    pub about: String,
    /// By full name (`openai/gpt-4o`).
    pub models: BTreeMap<String, Price>,
}

/// The shipped table. An error is a defect of the build.
pub fn table() -> Result<&'static Table, &'static str> {
    static TABLE: OnceLock<Result<Table, String>> = OnceLock::new();
    let read = || serde_json::from_str(PRICES).map_err(|error| format!("the table of prices cannot be read: {error}"));
    TABLE.get_or_init(read).as_ref().map_err(String::as_str)
}

/// The shipped price of a model, by full name. It applies at the provider's own address.
#[must_use]
pub fn listed(model: &str) -> Option<Price> {
    named(&table().ok()?.models, model)
}

/// The price for a name; a dated name (`gpt-4o-mini-2024-07-18`) falls back to the name without the date.
fn named(prices: &BTreeMap<String, Price>, model: &str) -> Option<Price> {
    prices.get(model).or_else(|| prices.get(undated(model)?)).copied()
}

fn undated(model: &str) -> Option<&str> {
    let without = |form: &str| {
        let (name, date) = model.split_at_checked(model.len().checked_sub(form.len())?)?;
        let alike = |(c, like): (char, char)| if like == '-' { c == '-' } else { c.is_ascii_digit() };
        date.chars().zip(form.chars()).all(alike).then_some(name)
    };
    without("-2024-07-18").or_else(|| without("-20240718"))
}

/// Parses prices of the flag `--price`: `0.15,0.6` or `0.15,0.6,0.075`.
#[must_use]
pub fn words(price: &Price) -> String {
    let cached = price.cached.map_or(String::new(), |cached| format!(",{cached}"));
    format!("{},{}{cached}", price.input, price.output)
}

/// The known prices of a run's models by full name, except for providers that report costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    by_name: BTreeMap<String, Price>,
    /// Models called in batches.
    batched: BTreeSet<String>,
}

impl Prices {
    /// The price of every model, whose `provider` is looked up by name. `given` overrides the shipped table.
    #[must_use]
    pub fn of<'a>(
        models: &[String],
        given: &BTreeMap<String, Price>,
        provider: impl Fn(&str) -> Result<&'a dyn Provider, String>,
    ) -> Prices {
        let price = |model: &String| {
            let provider = provider(model).ok().filter(|provider| !provider.tells_costs())?;
            Some((model.clone(), named(given, model).or_else(|| provider.list_price(model))?))
        };
        Prices { by_name: models.iter().filter_map(price).collect(), ..Prices::default() }
    }

    /// Prices by full name.
    #[must_use]
    pub fn by_name(&self) -> &BTreeMap<String, Price> {
        &self.by_name
    }

    /// Overrides prices with the given ones.
    #[must_use]
    pub fn with(mut self, other: &Prices) -> Prices {
        self.by_name.extend(other.by_name.clone());
        self
    }

    /// Marks these models as called in batches.
    #[must_use]
    pub fn in_batches(self, batched: BTreeSet<String>) -> Prices {
        Prices { batched, ..self }
    }

    /// Whether the price of a model is known.
    #[must_use]
    pub fn know(&self, model: &str) -> bool {
        self.by_name.contains_key(model)
    }

    /// Adds the cost to a usage, in the way the run calls the model. Without a known price it stays as reported.
    #[must_use]
    pub fn applied(&self, model: &str, usage: Usage) -> Usage {
        self.applied_as(model, usage, self.batched.contains(model))
    }

    /// The same for a batched or single request.
    #[must_use]
    pub fn applied_as(&self, model: &str, usage: Usage, batched: bool) -> Usage {
        let Some(price) = self.by_name.get(model) else { return usage };
        let cached = usage.tokens_cached.min(usage.tokens_in);
        // Thinking tokens are included in the reply's tokens.
        let dollars = (usage.tokens_in - cached) as f64 * price.input
            + cached as f64 * price.cached.unwrap_or(price.input)
            + usage.tokens_out as f64 * price.output;
        let part = if batched { OF_A_BATCH } else { 1.0 };
        Usage { cost_usd: dollars / 1e6 * part, ..usage }
    }
}

impl From<BTreeMap<String, Price>> for Prices {
    fn from(by_name: BTreeMap<String, Price>) -> Self {
        Prices { by_name, ..Prices::default() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_shipped_table_is_whole() {
        let table = table().unwrap();
        assert!(table.source.starts_with("https://") && table.date.len() == 10 && table.read >= table.date);
        for (name, price) in &table.models {
            assert!(["openai/", "anthropic/"].iter().any(|provider| name.starts_with(provider)), "{name}");
            assert!(price.input > 0.0 && price.output > price.input && price.cached.is_none_or(|c| c < price.input));
        }
    }

    #[test]
    fn names_with_a_date_have_the_price_of_those_without() {
        assert_eq!(undated("openai/gpt-4o-mini-2024-07-18"), Some("openai/gpt-4o-mini"));
        assert_eq!(listed("openai/gpt-4o-mini-2024-07-18"), listed("openai/gpt-4o-mini"));
        assert!(listed("openai/gpt-4o-mini").is_some());
        assert_eq!(undated("anthropic/claude-sonnet-4-5-20250929"), Some("anthropic/claude-sonnet-4-5"));
        assert!(listed("anthropic/claude-haiku-4-5-20251001").is_some());
        // A dated entry in the table wins.
        assert_ne!(listed("openai/gpt-4o-2024-05-13"), listed("openai/gpt-4o"));
        for name in ["openai/gpt-4o-mini-2024-07-1x", "gpt-4o-mini", "openai/gpt-4o-minü-07-18", "", "openai/other"] {
            assert_eq!(listed(name), None, "{name}");
        }
    }

    #[test]
    fn cached_tokens_cost_what_cached_ones_do_and_thinking_is_part_of_the_reply() {
        let price = |cached| Price { input: 2.0, output: 8.0, cached };
        let usage =
            Usage { tokens_in: 1_000, tokens_out: 100, tokens_cached: 400, tokens_thinking: 60, ..Usage::default() };
        let cost = |cached, usage| {
            let prices = Prices::from(BTreeMap::from([("m".to_string(), price(cached))]));
            prices.applied("m", usage).cost_usd * 1e6
        };
        assert!((cost(Some(0.5), usage) - (600.0 * 2.0 + 400.0 * 0.5 + 100.0 * 8.0)).abs() < 1e-6);
        assert!((cost(None, usage) - (1_000.0 * 2.0 + 100.0 * 8.0)).abs() < 1e-6);
        // More cached than sent: must be a mistake of the server.
        let wrong = Usage { tokens_cached: 5_000, ..usage };
        assert!((cost(Some(0.5), wrong) - (1_000.0 * 0.5 + 100.0 * 8.0)).abs() < 1e-6);
        let prices =
            Prices::from(BTreeMap::from([("m".to_string(), price(None))])).in_batches(["m".to_string()].into());
        let half = (1_000.0 * 2.0 + 100.0 * 8.0) / 2.0;
        assert!((prices.applied("m", usage).cost_usd * 1e6 - half).abs() < 1e-6);
        assert!((prices.applied_as("m", usage, false).cost_usd * 1e6 - 2.0 * half).abs() < 1e-6);
        assert_eq!(Prices::default().applied("m", Usage { cost_usd: 3.0, ..usage }).cost_usd, 3.0);
    }
}
