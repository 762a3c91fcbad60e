//! The declared parameters of a simulated model.

use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::rng::{Draws, Stream};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A simulated model. README.md explains each number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Log-odds added, in a field of knowledge, to its skill and to its ability to judge.
    pub topics: BTreeMap<String, f64>,
    /// How it judges answers.
    pub critic: Critic,
    /// How it reads what it is shown, and calls tools.
    #[serde(default)]
    pub reading: Reading,
    /// Mean length of its reasons, in tokens.
    pub verbosity: u32,
    /// Declared latency; nothing waits for it.
    pub latency_ms: Latency,
    /// US dollars per million tokens.
    pub price: Price,
    /// Probabilities of the failures, which are mutually exclusive.
    pub failures: Failures,
}

/// How a model judges answers: a signal-detection model (Green and Swets 1966).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Critic {
    /// Distance of right from wrong answers to an item of difficulty 0, in standard deviations of its impression (d'). Below 0 it prefers
    /// wrong ones.
    pub sensitivity: f64,
    /// How far its criterion is below the middle between the two: above 0 it lets too much pass.
    pub leniency: f64,
    /// Probability that it accepts a wrong answer that it would have given itself.
    pub blindness: f64,
    /// Added to its impression of the first of several answers.
    pub first_bias: f64,
    /// Probability to try again when its own answer is found wrong.
    pub heed: f64,
}

/// How a model reads evidence and calls tools, on items with a plan ([`polity_kernel::items::Item::plan`]). These rates are declared and
/// not fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reading {
    /// Probability of a right answer when it has seen everything that the item needs.
    pub comprehension: f64,
    /// Probability to overlook a piece of evidence that it is shown.
    pub unread: f64,
    /// Added to that for every shown piece of evidence that does not help.
    pub distraction: f64,
    /// Added to that for every thousand tokens that stand after the piece.
    pub forgetting: f64,
    /// Probability to answer without the evidence while some is missing.
    pub closed_book: f64,
    /// Probability that a call has meaningless arguments.
    pub wrong_call: f64,
    /// Probability to know an answer as far as its skill goes although some evidence is missing. Otherwise the answer is wrong.
    pub memory: f64,
}

impl Default for Reading {
    fn default() -> Self {
        Reading {
            comprehension: 0.95,
            unread: 0.05,
            distraction: 0.01,
            forgetting: 0.02,
            closed_book: 0.05,
            wrong_call: 0.1,
            memory: 1.0,
        }
    }
}

/// A log-normal latency, plus time for the reply's length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Milliseconds for each token of the reply.
    pub per_token: f64,
    /// Median of the time before the reply, in milliseconds.
    pub median: f64,
    /// Standard deviation of its logarithm.
    pub spread: f64,
}

/// US dollars per million tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Of the request.
    pub input: f64,
    /// Of the reply.
    pub output: f64,
}

/// Probabilities of bad replies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failures {
    /// Invalid JSON; only if a record is requested.
    pub broken_json: f64,
    /// A refusal.
    pub refusal: f64,
    /// A reply cut off at the token limit.
    pub truncation: f64,
    /// A call of a tool that was not offered.
    pub wrong_tool: f64,
    /// A choice in prose, wrapped, or not among the options; only if nothing but words constrains the model.
    #[serde(default)]
    pub off_form: f64,
}

impl Model {
    /// What a field of knowledge adds to its log-odds.
    fn at_home(&self, topic: Option<&str>) -> f64 {
        topic.and_then(|topic| self.topics.get(topic)).copied().unwrap_or(0.0)
    }

    /// Probability of a right answer without hearing others: the logistic function of skill minus weighted difficulty.
    #[must_use]
    pub fn mastery(&self, difficulty: f64, topic: Option<&str>) -> f64 {
        let skill = self.skill + self.at_home(topic);
        1.0 / (1.0 + libm::exp(self.difficulty_response * difficulty - skill))
    }

    /// Perceived distance of right from wrong answers, in standard deviations. Difficulty cannot bring it below 0, but a model that prefers
    /// wrong answers keeps what it has.
    #[must_use]
    pub fn sensitivity(&self, difficulty: f64, topic: Option<&str>) -> f64 {
        (self.critic.sensitivity + self.at_home(topic) - self.difficulty_response * difficulty / 2.0)
            .max(self.critic.sensitivity.min(0.0))
    }

    /// Another model of the same kind: the `nth` draw of parameters around these, for testing whether a result depends on their values.
    /// Log-odds move by normal draws of deviation 0.3, probabilities by 0.4 on their log-odds (0 and 1 stay), positive sizes by 0.2 on
    /// their logarithm. Prices, latencies, lengths and failures stay.
    #[must_use]
    pub fn drawn(&self, name: &str, nth: u32) -> Model {
        let key = RowHash::new(Kind::Input, nth).bytes(name.as_bytes()).finish() as u64;
        let mut draws = Draws::new(key, Stream::Model, nth, 0);
        let mut odds = |x: f64| x + 0.3 * draws.normal();
        let (skill, leniency) = (odds(self.skill), odds(self.critic.leniency));
        let topics = self.topics.iter().map(|(topic, x)| (topic.clone(), odds(*x))).collect();
        let mut size = |x: f64| x * libm::exp(0.2 * draws.normal());
        let (difficulty_response, sensitivity) = (size(self.difficulty_response), size(self.critic.sensitivity));
        let mut share = |p: f64| {
            let z = 0.4 * draws.normal();
            if p <= 0.0 || p >= 1.0 { p } else { 1.0 / (1.0 + libm::exp(-libm::log(p / (1.0 - p)) - z)) }
        };
        let mut model = Model {
            skill,
            difficulty_response,
            topics,
            correlation: share(self.correlation),
            lure: share(self.lure),
            conformity: share(self.conformity),
            persuadability: share(self.persuadability),
            discernment: share(self.discernment),
            critic: Critic {
                sensitivity,
                leniency,
                blindness: share(self.critic.blindness),
                heed: share(self.critic.heed),
                first_bias: self.critic.first_bias,
            },
            ..self.clone()
        };
        // Last, so that the other parameters are those of before.
        model.reading = Reading {
            comprehension: share(self.reading.comprehension),
            unread: share(self.reading.unread),
            distraction: share(self.reading.distraction),
            forgetting: share(self.reading.forgetting),
            closed_book: share(self.reading.closed_book),
            wrong_call: share(self.reading.wrong_call),
            memory: share(self.reading.memory),
        };
        model
    }

    /// The same with other values of some parameters: `correlation=0.75&critic.sensitivity=0`.
    pub(super) fn with(&self, changes: &str) -> Result<Model, String> {
        let mut json = serde_json::to_value(self).map_err(|error| error.to_string())?;
        for change in changes.split('&') {
            let (key, value) = change.split_once('=').ok_or_else(|| format!("`{change}` must be PARAMETER=VALUE"))?;
            let number: f64 =
                value.parse().map_err(|_| format!("the value of `{key}` must be a number, not `{value}`"))?;
            let place = json.pointer_mut(&format!("/{}", key.replace('.', "/"))).filter(|place| place.is_number());
            let place = place.ok_or_else(|| format!("a simulated model has no parameter `{key}`"))?;
            *place = if place.is_u64() { serde_json::json!(number as u64) } else { serde_json::json!(number) };
        }
        let model: Model = serde_json::from_value(json).map_err(|error| error.to_string())?;
        model.fault().map_or(Ok(model), Err)
    }

    fn fault(&self) -> Option<String> {
        let Failures { broken_json, refusal, truncation, wrong_tool, off_form } = self.failures;
        let probabilities = [
            ("correlation", self.correlation),
            ("lure", self.lure),
            ("conformity", self.conformity),
            ("persuadability", self.persuadability),
            ("discernment", self.discernment),
            ("reading.comprehension", self.reading.comprehension),
            ("reading.unread", self.reading.unread),
            ("reading.distraction", self.reading.distraction),
            ("reading.forgetting", self.reading.forgetting),
            ("reading.closed_book", self.reading.closed_book),
            ("reading.wrong_call", self.reading.wrong_call),
            ("critic.blindness", self.critic.blindness),
            ("critic.heed", self.critic.heed),
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
        let sensitivity = self.critic.sensitivity;
        if !(-10.0..=1e6).contains(&sensitivity) {
            return Some(format!("critic.sensitivity must lie in -10 to 1,000,000, is {sensitivity}"));
        }
        let sizes = [
            ("latency_ms.per_token", self.latency_ms.per_token),
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
