//! Capabilities of models, as far as they can be known for free.

use polity_kernel::ask::Constrain;
use serde::{Deserialize, Serialize};

/// What a model supports at its server. `None` is unknown before it is tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Whether the server reported anything about the model; if not, only the wire's features are known.
    pub known: bool,
    /// Replies constrained to a JSON schema.
    pub schema: Option<bool>,
    /// Replies constrained to a list of options.
    pub choice: Option<bool>,
    /// Replies constrained by a grammar.
    pub grammar: Option<bool>,
    /// Calls of tools in the provider's own form.
    pub tools: Option<bool>,
    /// Log-probabilities of tokens.
    pub logprobs: Option<bool>,
    /// Weights on tokens.
    pub logit_bias: Option<bool>,
    /// Seeds of its sampling.
    pub seed: Option<bool>,
    /// Maximum tokens of a request and its reply together, or of a request if replies have a separate limit.
    pub context: Option<u64>,
    /// For a model in a file: the SHA-256 of its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
}

impl Capabilities {
    /// Whether a choice can be constrained in this mode.
    #[must_use]
    pub fn offers(&self, way: Constrain) -> Option<bool> {
        match way {
            Constrain::Schema => self.schema,
            Constrain::Choice => self.choice,
            Constrain::Grammar => self.grammar,
            Constrain::Logprobs => self.logprobs,
            Constrain::Words => Some(true),
            Constrain::Tools => self.tools,
        }
    }

    /// On one line, for people.
    #[must_use]
    pub fn words(&self) -> String {
        let offers = [
            ("calls of tools", self.tools),
            ("schemas", self.schema),
            ("lists of options", self.choice),
            ("grammars", self.grammar),
            ("log-probabilities", self.logprobs),
            ("logit bias", self.logit_bias),
            ("seeds", self.seed),
        ];
        let of = |wanted: Option<bool>| {
            let names: Vec<&str> = offers.iter().filter(|(_, has)| *has == wanted).map(|(name, _)| *name).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        let parts = [
            of(Some(true)),
            of(Some(false)).map(|names| format!("no {names}")),
            of(None).map(|names| format!("not known: {names}")),
            self.context.map(|tokens| format!("{tokens} tokens of context")),
            self.weights.as_ref().map(|sum| format!("SHA-256 {sum}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}
