//! What a scenario says of a server, and the limits on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The parameters of a server: a program to start, or the URL of a running one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The program and its arguments, which speaks the protocol over stdin and stdout. It gets of the environment PATH, HOME and LANG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// What is added to the environment of the program.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The URL of a running server, which speaks streamable HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers for the requests to the URL, such as `Authorization: Bearer TOKEN`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The tools to use, by the names that the server gives them; all of them if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Hashes of definitions of tools, by name. A tool whose definition has another hash is refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pinned: BTreeMap<String, String>,
}

/// The limits on a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Time to start, to connect and to list the tools.
    pub start: Duration,
    /// Time for a call.
    pub call: Duration,
    /// Maximum bytes of a message.
    pub message: usize,
    /// Maximum bytes of everything that the server sends between two requests.
    pub traffic: usize,
    /// Maximum bytes of a result.
    pub result: usize,
    /// Maximum tools, resources and prompts, each.
    pub entries: usize,
    /// Maximum bytes of all definitions of tools.
    pub definitions: usize,
    /// Maximum characters of a description.
    pub description: usize,
    /// Maximum answers of a model that a server gets for one call.
    pub samples: usize,
    /// How often a server that is gone is started again without having answered a call in between.
    pub restarts: u32,
    /// Time after which the definitions are compared again with the approved ones, at the next call. They are compared as well when the
    /// server says that they changed, and after it was started again.
    pub compare: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            start: Duration::from_secs(30),
            call: Duration::from_secs(60),
            message: 8 << 20,
            traffic: 32 << 20,
            result: 256 << 10,
            entries: 256,
            definitions: 1 << 20,
            description: 2000,
            samples: 16,
            restarts: 3,
            compare: Duration::from_secs(60),
        }
    }
}
