//! A topology from a list of edges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A list of edges in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// A CSV or TSV file with a header and two columns of agent ids: the one who hears, then the one who is heard.
    pub path: String,
    /// Whether only the first of the two hears the second. If not, both hear each other.
    #[serde(default)]
    pub directed: bool,
}
