//! Think, act, observe: a member calls tools and sees their results, step by step.

use super::{LENGTH, NO_ANSWER};
use polity_kernel::ask::{ChatMessage, Part, ResponseFormat, Role, Task, Value};
use polity_kernel::method::{Brief, Prompt, TeamContext};
use polity_kernel::policy::Fault;
use polity_kernel::tool::{EffectClass, ToolCall, ToolResult, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The tool by which a member gives the final answer, if the episode has no action of its own for that.
pub const ANSWER_TOOL: &str = "answer";

/// What the tool for answers is for, as members read it.
pub const ANSWER_DOC: Prompt = Prompt::new(
    "answer-tool",
    "describes the tool by which a member gives its final answer",
    "Gives the final answer, alone and {{ length }}, and ends the work",
)
.may_hold(&["length"]);
/// What the reasons of that tool are for.
pub const REASONS_DOC: Prompt = Prompt::new(
    "answer-reasons",
    "describes the reasons that a member gives with its final answer",
    "why, with the ids of the evidence, such as [E1]",
);

/// What a member has done so far, as it is shown to the member again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// A step: what the member said, the calls that it made, and their results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What it said besides.
    pub thought: String,
    /// Its calls, with their ids.
    pub calls: Vec<ToolCall>,
    /// Their results, in the same order.
    pub results: Vec<ToolResult>,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Acted {
    /// Tools were called; their results are in the course.
    Called,
    /// The member gave an answer. A call of the tool [`ANSWER_TOOL`] is one, and so is a reply without calls.
    Answered {
        /// The answer alone.
        answer: String,
        /// The reasons given with it; may be empty.
        reasons: String,
    },
    /// There was no usable reply; the reason was recorded.
    Nothing,
}

impl Course {
    /// Formats the steps as messages that continue a conversation.
    #[must_use]
    pub fn messages(&self) -> Vec<ChatMessage> {
        let mut messages = Vec::with_capacity(2 * self.steps.len());
        for Step { thought, calls, results } in &self.steps {
            let thought = Some(Part::Text(thought.clone())).filter(|_| !thought.is_empty());
            let parts = thought.into_iter().chain([Part::Calls(calls.clone())]).collect();
            messages.push(ChatMessage { role: Role::Assistant, parts });
            let parts = results.iter().cloned().map(Part::Result).collect();
            messages.push(ChatMessage { role: Role::User, parts });
        }
        messages
    }
}

/// A member takes one step after the opening of a conversation ([`super::talk`]). `may`: the tools that it is offered now; see [`offers`].
/// `part`: the part of the item that it works on; `None` is the item itself.
///
/// # Errors
/// A fault of the environment.
pub async fn step(
    context: &mut TeamContext<'_>,
    member: usize,
    course: &mut Course,
    opening: Vec<ChatMessage>,
    may: Vec<ToolSpec>,
    part: Option<String>,
) -> Result<Acted, Fault> {
    let mut messages = opening;
    messages.extend(course.messages());
    let brief = Brief::new(member, messages, ResponseFormat::Calls(may.into())).task(Task::Solve).part(part);
    let (thought, calls) = match context.ask(brief).await {
        Ok(Value::Calls { text, calls }) => (text.trim().to_owned(), calls),
        Ok(_) => return Ok(nothing(context, member, "the reply is neither a text nor calls")),
        Err(why) => return Ok(nothing(context, member, &why.to_string())),
    };
    if calls.is_empty() {
        return Ok(Acted::Answered { answer: thought, reasons: String::new() });
    }
    let is_answer = |call: &&ToolCall| call.tool == ANSWER_TOOL && context.episode_ref().is_none();
    if let Some(call) = calls.iter().find(is_answer) {
        let arguments = call.read();
        let text =
            |name: &str| arguments.get(name).and_then(|text| text.as_str()).unwrap_or_default().trim().to_owned();
        return Ok(Acted::Answered { answer: text("answer"), reasons: text("reasons") });
    }
    let (calls, results) = context.call(member, calls).await?;
    course.steps.push(Step { thought, calls, results });
    Ok(Acted::Called)
}

/// Records the calls of the last step and their results, as acts of these kinds.
pub fn record(context: &mut TeamContext<'_>, member: usize, course: &Course, [call_kind, result_kind]: [u16; 2]) {
    let Some(step) = course.steps.last() else { return };
    for (call, result) in step.calls.iter().zip(&step.results) {
        context.record(member, call_kind, format!("{} {}", call.tool, call.arguments));
        context.record(member, result_kind, result.text.clone());
    }
}

fn nothing(context: &mut TeamContext<'_>, member: usize, why: &str) -> Acted {
    context.record(member, NO_ANSWER, why);
    Acted::Nothing
}

/// Returns the tools that a member may call now, and, if the episode does not decide what is solved, one to answer with.
///
/// # Errors
/// A fault of the environment.
pub fn offers(context: &TeamContext<'_>, member: usize) -> Result<Vec<ToolSpec>, Fault> {
    let mut tools = context.tools(member)?;
    if context.episode_ref().is_none() {
        tools.extend(answer_only(context));
    }
    Ok(tools)
}

/// Returns the tool by which a final answer is given, alone.
#[must_use]
pub fn answer_only(context: &TeamContext<'_>) -> Vec<ToolSpec> {
    let letters = context.item.letters();
    let answer =
        if letters.is_empty() { json!({"type": "string"}) } else { json!({"type": "string", "enum": letters}) };
    let reasons = json!({"type": "string", "description": context.prompt(&REASONS_DOC)});
    let arguments = json!({
        "type": "object",
        "properties": {"answer": answer, "reasons": reasons},
        "required": ["answer"],
        "additionalProperties": false,
    });
    let doc = context.filled(&ANSWER_DOC, &[("length", context.prompt(&LENGTH))]);
    vec![ToolSpec::new(ANSWER_TOOL, &doc, &arguments, EffectClass::Pure)]
}
