//! Kinds of equilibria, as scenarios name them.

use polity_games::drifting;
use schemars::JsonSchema;
use serde::Deserialize;

/// A kind of equilibrium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Concept {
    /// Nash.
    #[default]
    Nash,
    /// Correlated.
    Correlated,
    /// Coarse correlated.
    Coarse,
}

impl From<Concept> for drifting::Concept {
    fn from(concept: Concept) -> drifting::Concept {
        match concept {
            Concept::Nash => drifting::Concept::Nash,
            Concept::Correlated => drifting::Concept::Correlated,
            Concept::Coarse => drifting::Concept::Coarse,
        }
    }
}
