//! What models offer, as far as it can be known without paying.

use polity_kernel::ask::Constrain;
use serde::{Deserialize, Serialize};

/// What a model offers at the server that is asked. What is `None` nobody knows before it is tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Whether the server told anything of the model; if not, only what the wire has is known.
    pub known: bool,
    /// Replies in the form of a JSON schema.
    pub schema: Option<bool>,
    /// Replies that are one of a list of options.
    pub choice: Option<bool>,
    /// Replies that a grammar derives.
    pub grammar: Option<bool>,
    /// Log-probabilities of tokens.
    pub logprobs: Option<bool>,
    /// Weights on tokens.
    pub logit_bias: Option<bool>,
    /// Seeds of its sampling.
    pub seed: Option<bool>,
    /// Tokens of a request and its reply together, at most; where requests and replies have limits of their own, of a request.
    pub context: Option<u64>,
    /// Of a model in a file: the SHA-256 of its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
}

impl Capabilities {
    /// Whether a choice can be constrained so.
    #[must_use]
    pub fn offers(&self, way: Constrain) -> Option<bool> {
        match way {
            Constrain::Schema => self.schema,
            Constrain::Choice => self.choice,
            Constrain::Grammar => self.grammar,
            Constrain::Logprobs => self.logprobs,
            Constrain::Words => Some(true),
        }
    }

    /// On one line, for people.
    #[must_use]
    pub fn words(&self) -> String {
        let offers = [
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
