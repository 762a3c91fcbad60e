//! The tools of a scenario, opened, and what an agent's calls of them return.
//!
//! A toolbox is the same for all agents and does not change. What changes in an episode is its [`ToolSession`]: states of toolkits,
//! numbers of results, and the rest of results that were cut. It is a value, so it is part of a checkpoint, and a search can go back to
//! an earlier one.

use crate::ask::{Ask, AskError, ChatMessage, Part, Question, Reply, Request, ResponseFormat, Role, Value};
use crate::tool::{Arguments, AskingToolkit, EffectClass, PureToolkit, ToolCall, ToolOutput, ToolResult, ToolSpec};
use crate::tree::nearest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The provider of toolkits whose calls are effects: they are asked as `toolkit/NAME`.
pub const PROVIDER: &str = "toolkit";
/// The tool that returns more of a result that was cut.
pub const MORE: &str = "read_result";
/// Maximum tokens of a result, unless the scenario says otherwise. The rest can be read with [`MORE`].
pub const RESULT_TOKENS: u32 = 2_000;
/// Bytes of a token, about.
const TOKEN: usize = 4;
/// Maximum number of bytes of a result that are kept.
const KEPT: usize = 1 << 20;
/// Maximum number of cut results whose rest can still be read; older ones are forgotten.
const CUT: usize = 16;

/// A pure toolkit with its type erased.
pub(crate) trait PureHost: Send + Sync {
    fn call(&self, tool: &str, arguments: &Arguments) -> ToolOutput;
}

/// A toolkit that asks, with its type erased.
pub(crate) trait AskingHost: Send + Sync {
    fn targets(&self) -> Vec<String>;
    fn question(&self, tool: &str, arguments: &Arguments) -> Result<Request, String>;
}

impl<T: AskingToolkit> AskingHost for T {
    fn targets(&self) -> Vec<String> {
        AskingToolkit::targets(self)
    }

    fn question(&self, tool: &str, arguments: &Arguments) -> Result<Request, String> {
        AskingToolkit::question(self, tool, arguments)
    }
}

/// Who makes the calls of a toolkit.
pub(crate) enum Host {
    /// The machine itself.
    Pure(Box<dyn PureHost>),
    /// Whoever it asks.
    Asking(Box<dyn AskingHost>),
    /// The driver.
    Outside,
}

impl<T: PureToolkit> PureHost for T {
    fn call(&self, tool: &str, arguments: &Arguments) -> ToolOutput {
        PureToolkit::call(self, tool, arguments)
    }
}

/// A toolkit of a scenario.
pub(crate) struct Kit {
    /// The name of its entry.
    pub name: String,
    pub tools: Vec<ToolSpec>,
    /// What stands before the names of its tools: nothing, or the name of its entry.
    pub prefix: String,
    /// Maximum bytes of a result.
    pub most: usize,
    pub host: Host,
}

/// The toolkits of a scenario.
#[derive(Default)]
pub struct Toolbox {
    kits: Vec<Kit>,
    tools: Arc<Vec<ToolSpec>>,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox").field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// What calls have done so far in an episode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSession {
    /// The states of toolkits with one.
    states: BTreeMap<String, String>,
    /// Number of calls.
    calls: u32,
    /// Results that were cut, by their number.
    cut: BTreeMap<u32, String>,
}

impl ToolSession {
    /// Returns the states of toolkits with one.
    pub(crate) fn states(&self) -> &BTreeMap<String, String> {
        &self.states
    }

    /// Returns the number of calls so far.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Goes back to an earlier session, but numbers calls on.
    pub(crate) fn go_back(&mut self, to: &ToolSession) {
        self.states.clone_from(&to.states);
        self.cut.clone_from(&to.cut);
    }

    /// Numbers calls, which a model makes without ids.
    pub fn number(&mut self, calls: &mut [ToolCall]) {
        for call in calls {
            self.calls += 1;
            // Nine letters and digits: some providers take no other ids.
            call.id = format!("call{:05}", self.calls);
        }
    }

    /// Makes the result of a numbered call, cut to `most` bytes.
    pub fn result(&mut self, call: &ToolCall, output: ToolOutput, most: usize) -> ToolResult {
        let number = call.id.trim_start_matches("call").parse().unwrap_or(self.calls);
        let evidence = format!("E{number}");
        let ToolOutput { mut text, error, .. } = output;
        if text.len() > KEPT {
            let all = text.len();
            text.truncate(text.floor_char_boundary(KEPT));
            text.push_str(&format!("\n[The result had {all} bytes; the rest was not kept.]"));
        }
        let shown = match text.len() > most {
            false => text,
            true => {
                let shown = part(&text, &evidence, 0, most);
                self.cut.insert(number, text);
                while self.cut.len() > CUT {
                    self.cut.pop_first();
                }
                shown
            }
        };
        ToolResult { call: call.id.clone(), tool: call.tool.clone(), evidence, text: shown, error }
    }

    /// Returns the tool that reads more of a cut result, if there is one to read.
    fn more(&self) -> Option<ToolSpec> {
        let arguments = serde_json::json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "the id of the result, such as E1"},
                "from": {"type": "integer", "minimum": 0, "description": "the byte at which to continue"},
            },
            "required": ["id", "from"],
            "additionalProperties": false,
        });
        let doc = "Returns more of an earlier result that was cut";
        (!self.cut.is_empty()).then(|| ToolSpec::new(MORE, doc, &arguments, EffectClass::Pure))
    }

    fn read_more(&self, arguments: &Arguments, most: usize) -> ToolOutput {
        let id = arguments.get("id").and_then(|id| id.as_str()).unwrap_or_default();
        let from = arguments.get("from").and_then(serde_json::Value::as_u64).unwrap_or_default() as usize;
        match id.strip_prefix('E').and_then(|n| n.parse().ok()).and_then(|n: u32| self.cut.get(&n)) {
            Some(text) if from < text.len() => ToolOutput::text(part(text, id, from, most)),
            Some(text) => ToolOutput::error(format!("[{id}] has {} bytes; `from` must be smaller", text.len())),
            None => {
                let known: Vec<String> = self.cut.keys().map(|n| format!("E{n}")).collect();
                ToolOutput::error(format!("no result `{id}` was cut; these were: {}", known.join(", ")))
            }
        }
    }
}

/// Returns a part of a text, and says how to get the next.
fn part(text: &str, evidence: &str, from: usize, most: usize) -> String {
    let from = text.floor_char_boundary(from);
    let end = text.floor_char_boundary((from + most).min(text.len())).max(from);
    let shown = text.get(from..end).unwrap_or_default();
    if end == text.len() {
        return shown.to_owned();
    }
    let call = format!("{MORE}({{\"id\": \"{evidence}\", \"from\": {end}}})");
    format!("{shown}\n[{evidence}: bytes {from} to {end} of {}; {call} returns more]", text.len())
}

/// Returns the name of a tool as models see it.
fn named(kit: &Kit, tool: &ToolSpec) -> Arc<str> {
    format!("{}{}", kit.prefix, tool.name).into()
}

impl Toolbox {
    /// Puts toolkits together, whose tools have names of their own ([`Toolbox::check_names`]).
    pub(crate) fn new(kits: Vec<Kit>) -> Self {
        let named = |kit: &Kit, tool: &ToolSpec| ToolSpec { name: named(kit, tool), ..tool.clone() };
        let tools = kits.iter().flat_map(|kit| kit.tools.iter().map(move |tool| named(kit, tool))).collect();
        Toolbox { kits, tools: Arc::new(tools) }
    }

    /// Checks that no two tools share a name.
    pub(crate) fn check_names(kits: &[Kit]) -> Result<(), String> {
        let mut known: Vec<(Arc<str>, &str)> = vec![(MORE.into(), "the scenario")];
        for kit in kits {
            for tool in &kit.tools {
                let name = named(kit, tool);
                if let Some((_, other)) = known.iter().find(|(other, _)| *other == name) {
                    return Err(format!(
                        "both `{other}` and `{}` have a tool `{name}`; give one of them a `name`, which is put before the names of its \
                         tools",
                        kit.name
                    ));
                }
                known.push((name, &kit.name));
            }
        }
        Ok(())
    }

    /// Returns whether it holds no tool.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns all its tools.
    #[must_use]
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// Returns the targets of its effects.
    #[must_use]
    pub fn targets(&self) -> Vec<String> {
        let of = |kit: &Kit| match &kit.host {
            Host::Pure(_) => Vec::new(),
            Host::Asking(host) => host.targets(),
            Host::Outside => vec![format!("{PROVIDER}/{}", kit.name)],
        };
        self.kits.iter().flat_map(of).collect()
    }

    /// Checks a list of names of tools and toolkits; the error names the first that is neither.
    ///
    /// # Errors
    /// An unknown name.
    pub fn check(&self, names: &[String]) -> Result<(), String> {
        if self.kits.iter().any(|kit| kit.tools.is_empty()) {
            // A toolkit that has not listed its tools yet may have any.
            return Ok(());
        }
        let kits = self.kits.iter().map(|kit| kit.name.as_str());
        let known: Vec<&str> = kits.chain(self.tools.iter().map(|tool| &*tool.name)).collect();
        let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
        let near =
            nearest(name, known.iter().copied()).map_or(String::new(), |near| format!(", did you mean `{near}`?"));
        Err(format!("there is no tool or toolkit `{name}`{near} (the scenario's `tools` have {})", known.join(", ")))
    }

    /// Returns the tools that an agent may call now. `allowed`: names of tools and toolkits; `None` allows all.
    #[must_use]
    pub fn offered(&self, session: &ToolSession, allowed: Option<&[String]>) -> Vec<ToolSpec> {
        let may = |kit: &Kit, tool: &str| {
            allowed.is_none_or(|names| names.iter().any(|name| *name == kit.name || name == tool))
        };
        let mut tools = self.tools.iter();
        let mut offered = Vec::with_capacity(self.tools.len());
        for kit in &self.kits {
            offered.extend(tools.by_ref().take(kit.tools.len()).filter(|tool| may(kit, &tool.name)).cloned());
        }
        offered.extend(session.more());
        offered
    }

    /// Returns the toolkit of a tool, and the tool as the toolkit knows it.
    fn find(&self, tool: &str) -> Option<(&Kit, &ToolSpec)> {
        self.kits.iter().find_map(|kit| {
            let own = tool.strip_prefix(kit.prefix.as_str())?;
            Some((kit, kit.tools.iter().find(|known| *known.name == *own)?))
        })
    }

    /// Makes numbered calls on behalf of an actor; the results are in their order. Calls without a session are made together. Calls of one
    /// session are made one after the other.
    pub(crate) async fn call_all(
        &self,
        session: &mut ToolSession,
        ask: &mut Ask<'_>,
        actor: u32,
        calls: &[ToolCall],
    ) -> Vec<ToolResult> {
        let mut outputs: Vec<Option<(ToolOutput, usize)>> = vec![None; calls.len()];
        let mut together = Vec::new();
        for (place, call) in calls.iter().enumerate() {
            let Some((kit, tool)) = self.find(&call.tool).filter(|(_, tool)| tool.session.is_none()) else { continue };
            match &kit.host {
                Host::Pure(_) => {}
                Host::Outside => together.push((place, kit.most, (actor, request(kit, tool, call, "")))),
                Host::Asking(host) => match host.question(&tool.name, &call.read()) {
                    Ok(question) => together.push((place, kit.most, (actor, Question::new(question)))),
                    Err(why) => outputs[place] = Some((ToolOutput::error(why), kit.most)),
                },
            }
        }
        let (places, questions): (Vec<_>, Vec<_>) =
            together.into_iter().map(|(place, most, q)| ((place, most), q)).unzip();
        for ((place, most), reply) in places.into_iter().zip(ask.ask_all(questions).await) {
            outputs[place] = Some((output(reply), most));
        }
        let mut results = Vec::with_capacity(calls.len());
        for (call, done) in calls.iter().zip(outputs) {
            let (output, most) = match (done, self.find(&call.tool)) {
                (Some(done), _) => done,
                (None, Some((kit, tool))) => match (&kit.host, &tool.session) {
                    (Host::Pure(pure), _) => (pure.call(&tool.name, &call.read()), kit.most),
                    (_, Some(name)) => {
                        let state = session.states.get(&**name).cloned().unwrap_or_default();
                        let reply = ask.ask(actor, request(kit, tool, call, &state)).await;
                        let output = output(reply);
                        // A call that was not made leaves the state as it was.
                        if !output.state.is_empty() {
                            session.states.insert(name.to_string(), output.state.clone());
                        }
                        (output, kit.most)
                    }
                    (_, None) => (ToolOutput::error("the call was not made"), kit.most),
                },
                (None, None) => {
                    let most = RESULT_TOKENS as usize * TOKEN;
                    (session.read_more(&call.read(), most), most)
                }
            };
            results.push(session.result(call, output, most));
        }
        results
    }
}

/// The question to the driver that makes a call.
fn request(kit: &Kit, tool: &ToolSpec, call: &ToolCall, state: &str) -> Question {
    let parts = [&*tool.name, &call.arguments, state].map(|text| Part::Text(text.to_owned())).to_vec();
    let messages = vec![ChatMessage { role: Role::User, parts }];
    let target = format!("{PROVIDER}/{}", kit.name);
    Question::new(Request { purpose: "call".into(), ..Request::new(target, messages, output_format()) })
}

/// Returns the format of the answer of a toolkit: the same as [`ResponseFormat::of`] a [`ToolOutput`].
#[must_use]
pub fn output_format() -> ResponseFormat {
    ResponseFormat::Record(vec![
        ("text".into(), ResponseFormat::Text),
        ("error".into(), ResponseFormat::yes_or_no()),
        ("state".into(), ResponseFormat::Text),
    ])
}

/// Returns what a reply of the driver means for the model.
fn output(reply: Reply) -> ToolOutput {
    match reply {
        Ok(Value::Text(text)) => ToolOutput::text(text),
        Ok(value) => value.read(&output_format()).unwrap_or_else(ToolOutput::error),
        Err(AskError::Denied(why)) => ToolOutput::error(format!("not called: {why}")),
        Err(why) => ToolOutput::error(format!("the call failed: {why}")),
    }
}

/// Returns the maximum bytes of a result of so many tokens.
pub(crate) fn bytes(tokens: u32) -> usize {
    tokens as usize * TOKEN
}
