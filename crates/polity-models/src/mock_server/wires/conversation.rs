//! What all wires share about tools: offered tools, calls, and the results that clients send back.

use super::Head;
use polity_kernel::ask::{ChatMessage, Part, Role};
use polity_kernel::tool::{EffectClass, ToolCall, ToolResult, ToolSpec};
use serde_json::{Value as Json, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a request says about tools.
#[derive(Default)]
pub(in crate::mock_server) struct Tools {
    /// Tools that may be called; none if the request forbids calls.
    pub offered: Arc<Vec<ToolSpec>>,
    /// The tool that must be called, with the schema of its arguments.
    pub forced: Option<(String, String)>,
    /// Whether a reply has at most one call.
    pub single: bool,
}

/// Whether and which tools must be called.
pub(super) enum Choice<'a> {
    Free,
    None,
    Any,
    Named(&'a str),
}

impl Tools {
    /// Reads the tools of a request. The error says what is wrong with the choice.
    pub(super) fn read(offered: Vec<ToolSpec>, choice: &Choice<'_>) -> Result<Tools, String> {
        let forced = match choice {
            Choice::Free | Choice::None => None,
            Choice::Any => Some(offered.first()),
            Choice::Named(name) => Some(offered.iter().find(|tool| *tool.name == **name)),
        };
        let forced = match forced {
            None => None,
            Some(None) => return Err("`tool_choice` asks for a tool that is not among `tools`".into()),
            Some(Some(tool)) => Some((tool.name.to_string(), tool.arguments.to_string())),
        };
        let offered = if matches!(choice, Choice::None) { Vec::new() } else { offered };
        Ok(Tools { offered: Arc::new(offered), forced, single: false })
    }
}

/// An offered tool. A schema that is left out allows no arguments.
pub(super) fn tool(function: &Json, schema: &Json) -> Result<ToolSpec, String> {
    let name = function["name"].as_str().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| format!("a tool has no name: {function}"))?;
    let nothing = json!({"type": "object", "properties": {}});
    let schema = if schema.is_null() { &nothing } else { schema };
    if !schema.is_object() {
        return Err(format!("the parameters of the tool `{name}` are no JSON Schema of an object: {schema}"));
    }
    let description = function["description"].as_str().unwrap_or_default();
    Ok(ToolSpec::new(name, description, schema, EffectClass::Outside))
}

/// A call with arguments as an object.
pub(super) fn call(id: &str, name: &Json, arguments: &Json) -> Result<ToolCall, String> {
    let name = name.as_str().ok_or("a call names no tool")?;
    let arguments = if arguments.is_null() { &json!({}) } else { arguments };
    if !arguments.is_object() {
        return Err(format!("the arguments of a call of `{name}` are no object: {arguments}"));
    }
    Ok(ToolCall { id: id.to_owned(), tool: name.to_owned(), arguments: arguments.to_string() })
}

/// A result; [`linked`] names its tool.
pub(super) fn result(call: &str, tool: &str, text: String, error: bool) -> Part {
    Part::Result(ToolResult { call: call.to_owned(), tool: tool.to_owned(), evidence: String::new(), text, error })
}

/// A message of a text, unless it is empty, and of other parts.
pub(super) fn message(role: Role, text: String, others: Vec<Part>) -> ChatMessage {
    let text = (!text.is_empty() || others.is_empty()).then_some(Part::Text(text));
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for part in others {
        if matches!(part, Part::Result(_)) { before.push(part) } else { after.push(part) }
    }
    ChatMessage { role, parts: before.into_iter().chain(text).chain(after).collect() }
}

/// Gives every result its tool and its number. Results without an id belong to the first open call of their tool. As real servers do, it
/// refuses results without a call, and calls without a result.
pub(super) fn linked(mut messages: Vec<ChatMessage>) -> Result<Vec<ChatMessage>, String> {
    let mut open: VecDeque<ToolCall> = VecDeque::new();
    let mut results = 0;
    let without = |open: &VecDeque<ToolCall>| {
        open.front().map(|call| format!("the call `{}` of the tool `{}` has no result after it", call.id, call.tool))
    };
    for message in &mut messages {
        let answers = message.parts.iter().any(|part| matches!(part, Part::Result(_)));
        if let Some(why) = without(&open).filter(|_| !answers) {
            return Err(why);
        }
        for part in &mut message.parts {
            match part {
                Part::Calls(calls) => open.extend(calls.iter().cloned()),
                Part::Result(result) => {
                    let meant = |call: &ToolCall| match result.call.is_empty() {
                        true => call.tool == result.tool,
                        false => call.id == result.call,
                    };
                    let place = open.iter().position(meant);
                    let call = place.and_then(|place| open.remove(place)).ok_or_else(|| {
                        let of = if result.call.is_empty() { &result.tool } else { &result.call };
                        format!("a result belongs to no call before it: `{of}`")
                    })?;
                    results += 1;
                    (result.call, result.tool) = (call.id, call.tool);
                    result.evidence = format!("E{results}");
                }
                Part::Text(_) | Part::Said { .. } | Part::Finding { .. } => {}
            }
        }
    }
    without(&open).map_or(Ok(messages), Err)
}

/// The id of a call of a reply.
pub(super) fn call_id(prefix: &str, head: &Head, nth: usize) -> String {
    format!("{prefix}{:032x}", head.key.wrapping_add(nth as u128))
}

/// Arguments as an object; a text that was cut is none.
pub(super) fn object(arguments: &str) -> Json {
    serde_json::from_str(arguments).unwrap_or_else(|_| json!({}))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn calls(ids: &[(&str, &str)]) -> ChatMessage {
        let calls = ids.iter().map(|(id, tool)| call(id, &json!(tool), &Json::Null).unwrap()).collect();
        message(Role::Assistant, String::new(), vec![Part::Calls(calls)])
    }

    fn answer(call: &str, tool: &str) -> ChatMessage {
        message(Role::User, String::new(), vec![result(call, tool, "fine".into(), false)])
    }

    #[test]
    fn results_find_their_calls() {
        let both = calls(&[("a", "search"), ("b", "now")]);
        let whole = linked(vec![both.clone(), answer("b", ""), answer("", "search")]).unwrap();
        let found = whole.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::Result(result) => Some((result.call.as_str(), result.tool.as_str(), result.evidence.as_str())),
            _ => None,
        });
        let found: Vec<_> = found.collect();
        assert_eq!(found, [("b", "now", "E1"), ("a", "search", "E2")]);
        let why = |messages: Vec<ChatMessage>| linked(messages).unwrap_err();
        assert!(why(vec![answer("a", "")]).contains("no call before it"));
        assert!(why(vec![both.clone(), answer("a", ""), answer("a", "")]).contains("no call before it"));
        assert!(why(vec![both.clone(), answer("a", "")]).contains("`b` of the tool `now` has no result"));
        assert!(why(vec![both, ChatMessage::text(Role::User, "Go on.")]).contains("has no result"));
    }
}
