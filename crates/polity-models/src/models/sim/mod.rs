//! Simulated models: answers with declared properties, a pure function of (seed, effect). See README.md.

mod answers;
mod call;
mod parameters;
mod reading;

pub use call::Hold;
pub use parameters::{Critic, Failures, Latency, Model, Price};

pub(crate) use answers::{DIMENSIONS, embedding};

use super::provider::{Answering, Provider, ProviderError};
use call::Call;
use polity_kernel::ask::{Effect, Request, Usage};
use polity_kernel::tree::nearest;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The declared parameters of all built-in models.
pub const MODELS: &str = include_str!("models.json");

/// The provider `sim`.
pub struct Sim(Result<BTreeMap<String, Model>, String>);

impl Sim {
    /// The models of `models.json`.
    #[must_use]
    pub fn standard() -> Self {
        Sim(parameters::read(MODELS))
    }

    /// Other models: JSON in the format of `models.json`. The error names the model and the value.
    pub fn from_json(text: &str) -> Result<Self, String> {
        parameters::read(text).map(|models| Sim(Ok(models)))
    }

    /// The models of `models.json` and further ones: JSON in the same format. The error names the model and the value. A further model
    /// cannot have the name of a built-in one.
    pub fn standard_and(text: &str) -> Result<Self, String> {
        let mut models = parameters::read(MODELS)?;
        for (name, model) in parameters::read(text)? {
            let fits = !name.is_empty() && !name.contains(['~', '?', '/']) && !name.contains(char::is_whitespace);
            if !fits {
                return Err(format!(
                    "model `{name}`: a name has at least one character, and no space, `/`, `~` or `?`"
                ));
            }
            if models.insert(name.clone(), model).is_some() {
                return Err(format!("model `{name}`: there is a built-in model `sim/{name}`; choose another name"));
            }
        }
        Ok(Sim(Ok(models)))
    }

    /// The parameters of a model, by its full name (`sim/medium`). `sim/medium?correlation=0.75&critic.sensitivity=0` has other values of
    /// some parameters. `sim/medium~3` is the third draw of parameters around it.
    pub fn model(&self, name: &str) -> Result<Cow<'_, Model>, String> {
        let models = self.0.as_ref().map_err(|why| format!("the simulated models cannot be read: {why}"))?;
        let short = name.strip_prefix("sim/").unwrap_or(name);
        let (short, nth) = match short.split_once('~') {
            None => (short, None),
            Some((short, nth)) => {
                let wrong = || {
                    format!(
                        "`{name}`: the number of a draw must follow `~`, starting from 1, for instance `sim/{short}~1`"
                    )
                };
                (short, Some(nth.parse().ok().filter(|nth| *nth > 0).ok_or_else(wrong)?))
            }
        };
        let (short, changes) = short.split_once('?').map_or((short, None), |(short, changes)| (short, Some(changes)));
        let model = models.get(short).ok_or_else(|| {
            let known = self.models().join(", ");
            match nearest(short, models.keys().map(String::as_str)) {
                Some(near) => format!("there is no model `{name}`, did you mean `sim/{near}`? (known: {known})"),
                None => format!("there is no model `{name}` (known: {known})"),
            }
        })?;
        let model = match changes {
            None => Cow::Borrowed(model),
            Some(changes) => Cow::Owned(model.with(changes).map_err(|why| format!("`{name}`: {why}"))?),
        };
        Ok(nth.map_or(model.clone(), |nth| Cow::Owned(model.drawn(short, nth))))
    }
}

impl Sim {
    /// Answers, constrained or not.
    pub(crate) fn held(&self, effect: &Effect, seed: u64, hold: Hold) -> Result<super::Exchange, String> {
        Ok(Call::new(&*self.model(&effect.request.model)?, effect, seed, hold).exchange())
    }

    /// The likeliest first tokens of a reply that is an option's letter, with natural log-probabilities, the likeliest first; and the
    /// chosen one. The request's `want` is a choice of these letters.
    pub(crate) fn alternatives(&self, effect: &Effect, seed: u64) -> Result<(Vec<(String, f64)>, String), String> {
        Ok(Call::new(&*self.model(&effect.request.model)?, effect, seed, Hold::Form).alternatives())
    }
}

impl Provider for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn models(&self) -> Vec<String> {
        self.0.iter().flat_map(|models| models.keys()).map(|name| format!("sim/{name}")).collect()
    }

    fn check(&self, model: &str) -> Result<(), String> {
        self.model(model).map(|_| ())
    }

    fn makes_vectors(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn most(&self, request: &Request) -> Usage {
        self.model(&request.model).map(|model| call::most(&model, request)).unwrap_or_default()
    }

    fn list_price(&self, model: &str) -> Option<polity_kernel::scenario::Price> {
        let Price { input, output } = self.model(model).ok()?.price;
        Some(polity_kernel::scenario::Price { input, output, cached: None })
    }

    fn simulated(&self) -> bool {
        true
    }

    fn answer<'a>(&'a self, effect: &'a Effect, seed: u64) -> Answering<'a> {
        Box::pin(async move {
            match self.model(&effect.request.model) {
                Ok(model) => Ok(Call::new(&model, effect, seed, Hold::Words).exchange()),
                Err(why) => Err(ProviderError::Fatal { why }),
            }
        })
    }
}
