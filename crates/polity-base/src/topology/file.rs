//! A topology from a list of edges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A list of edges in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// A CSV or TSV file with a header and two columns of agent ids: the one who hears, then the one who is heard.
    pub file: String,
    /// Whether only the first of the two hears the second. If not, both hear each other.
    #[serde(default)]
    pub directed: bool,
    /// What becomes of edges that tie an agent to itself. Repeated edges always count once.
    #[serde(default)]
    pub self_loops: SelfLoops,
}

/// What becomes of edges that tie an agent to itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SelfLoops {
    /// They are an error.
    #[default]
    Refuse,
    /// They are left out. The run says how many.
    Drop,
}

impl File {
    /// Returns the number of edges of an agent with itself that are left out.
    #[must_use]
    pub fn dropped(&self, edges: &[(u32, u32)]) -> usize {
        match self.self_loops {
            SelfLoops::Refuse => 0,
            SelfLoops::Drop => edges.iter().filter(|(a, b)| a == b).count(),
        }
    }
}
