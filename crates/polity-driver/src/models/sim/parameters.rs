//! What is declared of a simulated model.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A simulated model. README.md says what each number does.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Log-odds of a right answer to an item of difficulty 0.
    pub skill: f64,
    /// Log-odds lost per unit of difficulty.
    pub difficulty_response: f64,
    /// Correlation of the latent luck of two calls on one item, 0 to 1.
    pub correlation: f64,
    /// Probability that a wrong answer is the item's tempting one.
    pub lure: f64,
    /// Probability to follow a unanimous majority, right or wrong.
    pub conformity: f64,
    /// Probability to follow a right argument.
    pub persuadability: f64,
    /// How far it sees through a wrong argument about what it masters, 0 to 1.
    pub discernment: f64,
    /// Mean length of its reasons, in tokens.
    pub verbosity: u32,
    /// Declared latency; nothing waits for it.
    pub latency_ms: Latency,
    /// US dollars per million tokens.
    pub price: Price,
    /// Probabilities of the failures, which exclude each other.
    pub failures: Failures,
}

/// A log-normal latency.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Median, in milliseconds.
    pub median: f64,
    /// Standard deviation of its logarithm.
    pub spread: f64,
}

/// US dollars per million tokens.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Of the request.
    pub input: f64,
    /// Of the reply.
    pub output: f64,
}

/// Probabilities of bad replies.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failures {
    /// JSON that can not be read; only where a record is wanted.
    pub broken_json: f64,
    /// A refusal.
    pub refusal: f64,
    /// A reply cut off at the limit of tokens.
    pub truncation: f64,
    /// A call of a tool that was not offered.
    pub wrong_tool: f64,
    /// A choice in prose, wrapped up, or of none of the options; only where nothing but words holds the model to them.
    #[serde(default)]
    pub off_form: f64,
}

impl Model {
    /// Probability of a right answer without hearing anybody: the logistic function of skill less weighted difficulty.
    #[must_use]
    pub fn mastery(&self, difficulty: f64) -> f64 {
        1.0 / (1.0 + libm::exp(self.difficulty_response * difficulty - self.skill))
    }

    fn fault(&self) -> Option<String> {
        let Failures { broken_json, refusal, truncation, wrong_tool, off_form } = self.failures;
        let probabilities = [
            ("correlation", self.correlation),
            ("lure", self.lure),
            ("conformity", self.conformity),
            ("persuadability", self.persuadability),
            ("discernment", self.discernment),
            ("failures.broken_json", broken_json),
            ("failures.refusal", refusal),
            ("failures.truncation", truncation),
            ("failures.wrong_tool", wrong_tool),
            ("failures.off_form", off_form),
            ("the sum of failures", broken_json + refusal + truncation + wrong_tool + off_form),
        ];
        if let Some((name, value)) = probabilities.into_iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            return Some(format!("{name} must lie in 0 to 1, is {value}"));
        }
        let sizes = [
            ("latency_ms.median", self.latency_ms.median),
            ("latency_ms.spread", self.latency_ms.spread),
            ("price.input", self.price.input),
            ("price.output", self.price.output),
        ];
        if let Some((name, value)) = sizes.into_iter().find(|(_, value)| !(0.0..=1e6).contains(value)) {
            return Some(format!("{name} must lie in 0 to 1,000,000, is {value}"));
        }
        let verbosity = f64::from(self.verbosity);
        (verbosity > 10_000.0).then(|| format!("verbosity must be at most 10,000 tokens, is {verbosity}"))
    }
}

/// Reads models by name from JSON.
pub(super) fn read(text: &str) -> Result<BTreeMap<String, Model>, String> {
    let models: BTreeMap<String, Model> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match models.iter().find_map(|(name, model)| Some((name, model.fault()?))) {
        Some((name, fault)) => Err(format!("model `{name}`: {fault}")),
        None => Ok(models),
    }
}
