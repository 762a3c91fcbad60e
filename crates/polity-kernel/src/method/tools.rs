//! Tools of a team: what a member may call, and its calls.

use super::{Placebo, TeamContext};
use crate::Bug;
use crate::ask::{ResponseFormat, Value};
use crate::environment::{Episode, Offered, Seat};
use crate::policy::Fault;
use crate::tool::{EffectClass, ToolCall, ToolOutput, ToolResult, ToolSpec};
use crate::toolbox::{RESULT_TOKENS, ToolSession, bytes};

/// The name under which a member's `tools` allow all actions of the environment.
pub(crate) const ENVIRONMENT: &str = "environment";
/// The seat of a team in its episode.
const SEAT: Seat = 0;

/// What a team's tools have done so far: a place to which a search can go back ([`TeamContext::go_back`]).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ToolMark {
    session: ToolSession,
    episode: Option<Vec<u8>>,
}

impl ToolMark {
    /// Returns bytes that are equal for equal states of the episode and of the tools.
    ///
    /// # Errors
    /// A state that cannot be saved.
    pub fn key(&self) -> Result<Vec<u8>, Fault> {
        let state = (self.session.states(), &self.episode);
        postcard::to_allocvec(&state).map_err(|error| Fault(format!("the state of tools cannot be saved: {error}")))
    }
}

impl TeamContext<'_> {
    /// Returns the tools that a member may call now: the offered actions of the episode, then those of the scenario's `tools`, as far as
    /// the member's own `tools` allow them.
    ///
    /// # Errors
    /// A fault of the environment.
    pub fn tools(&self, member: usize) -> Result<Vec<ToolSpec>, Fault> {
        let allowed = self.team.get(member).and_then(|member| member.tools.as_deref());
        let mut tools = Vec::new();
        if let Some(episode) = &self.episode {
            let may = |name: &str| {
                allowed.is_none_or(|names| names.iter().any(|known| known == name || known == ENVIRONMENT))
            };
            tools.extend(episode.offered(SEAT)?.iter().filter(|offer| may(&offer.name)).map(spec));
        }
        tools.extend(self.toolbox.offered(&self.session, allowed));
        Ok(tools)
    }

    /// Makes calls on behalf of a member, and returns them with their ids, and their results in the same order. Calls that need nothing
    /// from each other are made together. A failing call has a result that says so.
    ///
    /// # Errors
    /// A fault of the environment.
    pub async fn call(
        &mut self,
        member: usize,
        mut calls: Vec<ToolCall>,
    ) -> Result<(Vec<ToolCall>, Vec<ToolResult>), Fault> {
        self.session.number(&mut calls);
        let offered = self.tools(member)?;
        let offers = match &self.episode {
            Some(episode) => episode.offered(SEAT)?,
            None => Vec::new(),
        };
        let is_action = |call: &ToolCall| offers.iter().any(|offer| offer.name == call.tool);
        let may = |call: &ToolCall| offered.iter().any(|tool| *tool.name == call.tool);
        let boxed: Vec<ToolCall> = calls.iter().filter(|call| may(call) && !is_action(call)).cloned().collect();
        let actor = self.name_of(member as u32);
        let mut done = self.toolbox.call_all(&mut self.session, &mut self.ask, actor, &boxed).await.into_iter();
        let mut results = Vec::with_capacity(calls.len());
        for call in &calls {
            let most = bytes(RESULT_TOKENS);
            let result = match (may(call), is_action(call)) {
                (true, false) => done.next(),
                (true, true) => {
                    let output = act(self.episode.as_mut(), call)?;
                    Some(self.session.result(call, output, most))
                }
                (false, _) => None,
            };
            let result = result.unwrap_or_else(|| {
                let output = ToolOutput::error(format!("`{}` is not offered to you now", call.tool));
                self.session.result(call, output, most)
            });
            results.push(if self.placebos.contains(&Placebo::Tools) { blank(result) } else { result });
        }
        Ok((calls, results))
    }

    /// Returns the number of calls of tools so far.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.session.calls()
    }

    /// Marks the state of the episode and of all tools.
    ///
    /// # Errors
    /// A state that cannot be saved.
    pub fn mark(&self) -> Result<ToolMark, Fault> {
        let episode = self.episode.as_ref().map(Episode::save).transpose()?;
        Ok(ToolMark { session: self.session.clone(), episode })
    }

    /// Takes up the state of a checkpoint.
    pub(super) fn resume_tools(&mut self, mark: ToolMark) -> Result<(), Bug> {
        if let (Some(episode), Some(saved)) = (&mut self.episode, &mark.episode) {
            episode.load(saved)?;
        }
        self.session = mark.session;
        Ok(())
    }

    /// Goes back to a mark: the next call works on the state of that time. What happened outside of the run stays as it is. Numbers of
    /// calls go on, so that every result keeps its own id.
    ///
    /// # Errors
    /// A mark of another environment.
    pub fn go_back(&mut self, mark: &ToolMark) -> Result<(), Fault> {
        self.session.go_back(&mark.session);
        if let (Some(episode), Some(saved)) = (&mut self.episode, &mark.episode) {
            episode.load(saved)?;
        }
        Ok(())
    }
}

/// Returns an offered action as a tool.
fn spec(offer: &Offered) -> ToolSpec {
    let arguments = ResponseFormat::Record(offer.arguments.clone()).to_schema(true);
    ToolSpec::new(&offer.name, &offer.doc, &arguments, EffectClass::Pure)
}

/// Takes an offered action in the episode.
fn act(episode: Option<&mut Episode>, call: &ToolCall) -> Result<ToolOutput, Bug> {
    let Some(episode) = episode else { return Ok(ToolOutput::error("there is no episode")) };
    // An earlier call of the same reply may have changed what is offered.
    let Some(offer) = episode.offered(SEAT)?.into_iter().find(|offer| offer.name == call.tool) else {
        return Ok(ToolOutput::error(format!("`{}` is no longer offered", call.tool)));
    };
    let arguments = call.read();
    let mut values = Vec::with_capacity(offer.arguments.len());
    for (name, format) in &offer.arguments {
        match arguments.get(name).and_then(|json| Value::from_json(json, format)) {
            Some(value) => values.push(value),
            None => return Ok(ToolOutput::error(format!("`{name}` is missing, or is not {}", format.to_schema(true)))),
        }
    }
    let result = episode.step(&[offer.with(SEAT, values)])?;
    let reward = result.rewards.first().copied().unwrap_or_default();
    let text = match result.results.into_iter().next().filter(|text| !text.is_empty()) {
        Some(text) => text,
        None => format!("Done. Reward: {reward}."),
    };
    Ok(ToolOutput::text(text))
}

/// Returns a result of the same shape that carries no information: every letter is an `x`, every digit a `0`.
fn blank(result: ToolResult) -> ToolResult {
    let cover = |c: char| match c {
        c if c.is_numeric() => '0',
        c if c.is_alphabetic() => 'x',
        c => c,
    };
    ToolResult { text: result.text.chars().map(cover).collect(), ..result }
}
