//! Tools that agents call: what a tool is, a call of it, and what the call returns.
//!
//! A *toolkit* is a leaf that offers one or more tools: `sql` offers `sql_schema` and `sql_query`. Toolkits of two kinds exist. A
//! [`PureToolkit`] computes its results from its arguments and from the files that the scenario names, so its calls are not journaled and
//! a replay computes them again. The calls of every other toolkit are effects: they go to a provider, and what they return is journaled
//! before it is used. See `docs/decisions/tools-are-data.md`.

use crate::Invalid;
use crate::ask::Request;
use crate::scenario::Inputs;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a call of a tool does besides returning a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectClass {
    /// Nothing: the result follows from the arguments and from files of the scenario.
    Pure,
    /// Nothing, but the result depends on something outside. The call may be repeated.
    Reads,
    /// It changes the state of the team's session, which is versioned. The call may be repeated on the version that it began with.
    Writes,
    /// It changes something outside of the run. A call that may have been made is never repeated.
    #[default]
    Outside,
}

/// A tool, as models see it.
///
/// ```
/// use polity_kernel::tool::{EffectClass, ToolSpec};
///
/// let arguments = serde_json::json!({
///     "type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"], "additionalProperties": false,
/// });
/// let tool = ToolSpec::new("sql_query", "Runs one SELECT", &arguments, EffectClass::Reads);
/// assert_eq!(tool.schema(), arguments);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: Arc<str>,
    /// What it does, in one or two sentences.
    pub description: Arc<str>,
    /// The JSON Schema of its arguments, an object; as JSON text.
    pub arguments: Arc<str>,
    /// What a call does besides returning a result.
    pub effect: EffectClass,
    /// The session in which it works, if it has one. Calls of one session are made one after the other, each on the state that the one
    /// before left. A session with the name of the toolkit's kind belongs to one entry of a scenario; toolkits that name another one
    /// share it.
    pub session: Option<Arc<str>>,
}

impl ToolSpec {
    /// Makes a tool without a session.
    #[must_use]
    pub fn new(name: &str, description: &str, arguments: &serde_json::Value, effect: EffectClass) -> Self {
        let arguments = arguments.to_string().into();
        ToolSpec { name: name.into(), description: description.into(), arguments, effect, session: None }
    }

    /// Makes it work in a session.
    #[must_use]
    pub fn in_session(self, session: &str) -> Self {
        ToolSpec { session: Some(session.into()), ..self }
    }

    /// Returns the JSON Schema of its arguments; `true` if the text is no JSON.
    #[must_use]
    pub fn schema(&self) -> serde_json::Value {
        serde_json::from_str(&self.arguments).unwrap_or(serde_json::Value::Bool(true))
    }
}

/// A call of a tool, as a model makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id, unique in the conversation.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// Its arguments: the JSON text of an object.
    pub arguments: String,
}

impl ToolCall {
    /// Makes a call. The id is given by the conversation ([`crate::toolbox`]).
    #[must_use]
    pub fn new(tool: impl Into<String>, arguments: &Arguments) -> Self {
        let arguments = serde_json::to_string(arguments).unwrap_or_default();
        ToolCall { id: String::new(), tool: tool.into(), arguments }
    }

    /// Returns its arguments; empty if the text is no JSON object, which a checked call never has.
    #[must_use]
    pub fn read(&self) -> Arguments {
        serde_json::from_str(&self.arguments).unwrap_or_default()
    }

    /// Returns an upper bound of its size in a message, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.id.len() + self.tool.len() + self.arguments.len() + "Call : ()\n".len()
    }
}

impl fmt::Display for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call {}: {}({})", self.id, self.tool, self.arguments)
    }
}

/// The result of a call, as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub call: String,
    /// The name of the tool.
    pub tool: String,
    /// The id by which it can be cited, unique in the episode: `E1`.
    pub evidence: String,
    /// The result, cut to the limit of the toolkit; or what went wrong.
    pub text: String,
    /// Whether the tool reports an error.
    pub error: bool,
}

impl ToolResult {
    /// Returns an upper bound of its size in a message, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let ToolResult { call, tool, evidence, text, .. } = self;
        call.len()
            + tool.len()
            + evidence.len()
            + text.len()
            + "Error of call  of  []:\n\nEnd of []".len()
            + evidence.len()
    }
}

/// The result between marks, for a model that does not know calls by itself.
impl fmt::Display for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.error { "Error" } else { "Result" };
        write!(f, "{what} of call {} of {} [{}]:\n{}", self.call, self.tool, self.evidence, self.text)?;
        write!(f, "\nEnd of [{}]", self.evidence)
    }
}

/// What a toolkit listed itself before a run, for toolkits whose parameters do not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its tools.
    pub tools: Vec<ToolSpec>,
    /// A hash of the definition of each tool, by the toolkit's own name of it. A run goes on only with these definitions.
    pub pins: BTreeMap<String, String>,
}

/// The arguments of a call, by name.
pub type Arguments = serde_json::Map<String, serde_json::Value>;

/// What a call returns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolOutput {
    /// The result, or what went wrong and what to do about it.
    pub text: String,
    /// Whether the tool reports an error. The model sees it and can go on.
    pub error: bool,
    /// The state of the session after the call, for tools with one: an opaque text, at most a few kilobytes. Equal texts mean equal states.
    /// Empty for tools without a session.
    pub state: String,
}

impl ToolOutput {
    /// Makes a result of a tool without a session.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutput { text: text.into(), ..ToolOutput::default() }
    }

    /// Makes an error that the model sees.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        ToolOutput { text: text.into(), error: true, ..ToolOutput::default() }
    }
}

/// A toolkit whose results follow from the arguments and from files of the scenario.
///
/// Its calls are neither asked nor journaled: a thousand of them in an episode cost nothing but their own time.
pub trait PureToolkit: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a scenario may set.
    type Params: DeserializeOwned + JsonSchema;

    /// Opens the toolkit; or returns which parameter does not fit. `inputs`: the contents of the files that the parameters name.
    fn open(params: Self::Params, inputs: &Inputs) -> Result<Self, Invalid>;
    /// Returns its tools.
    fn tools(&self) -> Vec<ToolSpec>;
    /// Calls a tool. The arguments fit its schema.
    fn call(&self, tool: &str, arguments: &Arguments) -> ToolOutput;
}

/// A toolkit whose calls are questions to models or people: a call asks, and the reply is its result.
pub trait AskingToolkit: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a scenario may set.
    type Params: DeserializeOwned + JsonSchema;

    /// Opens the toolkit; or returns which parameter does not fit. `model`: the scenario's own, if it names one.
    fn open(params: Self::Params, model: Option<&str>) -> Result<Self, Invalid>;
    /// Returns its tools.
    fn tools(&self) -> Vec<ToolSpec>;
    /// Returns the full names of the models and people that it may ask.
    fn targets(&self) -> Vec<String>;
    /// Returns the question of a call; or what is wrong with its arguments. The reply must be a text.
    fn question(&self, tool: &str, arguments: &Arguments) -> Result<Request, String>;
}

/// The declaration of a toolkit whose calls are effects. The driver's side makes the calls.
pub trait OutsideToolkit: 'static {
    /// The name a scenario uses.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a scenario may set.
    type Params: DeserializeOwned + JsonSchema;

    /// Returns its tools; or which parameter does not fit. `listed`: the tools that the toolkit itself listed before the run, for
    /// toolkits whose parameters do not tell ([`Inputs::tools`]). `None`: it was not asked yet, as when a scenario is only checked. Then such
    /// a toolkit has no tools.
    fn tools(params: Self::Params, listed: Option<&[ToolSpec]>) -> Result<Vec<ToolSpec>, Invalid>;
}
