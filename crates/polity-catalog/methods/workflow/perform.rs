//! A workflow is performed step by step. What a step came to is kept in the checkpoint; steps that were done are not done again.

use super::outputs::{Asked, Output, Outputs};
use super::plan::{Step, When};
use super::{CALL, OUTPUT, Params, RESULT, STEPS, TOOL_CALLS, Workflow};
use crate::team::act::{self, Acted, Course};
use crate::team::{NO_ANSWER, Stand, form, judge, refine, stand, talk, vote, wanted};
use polity_kernel::ask::{AskError, Part, ResponseFormat, Task, Value};
use polity_kernel::items::judged;
use polity_kernel::method::{Brief, Method, TeamContext};
use polity_kernel::policy::Fault;
use polity_kernel::tool::{Arguments, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::future::Future;
use std::pin::Pin;

/// Replies of `act`, and passes of `repeat`, unless the step says otherwise.
const REPLIES: u32 = 8;
const PASSES: u32 = 3;

/// What is kept in a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    /// Outputs of the steps that were done, in order.
    done: Vec<Output>,
    /// The member's work on the step at hand, if it acts.
    course: Course,
    replies: u32,
}

/// A workflow on one item.
pub(super) struct Performance<'p, 'c, 't> {
    params: &'p Params,
    context: &'c mut TeamContext<'t>,
    state: State,
    /// How many steps of the checkpoint have been gone through.
    next: usize,
    outputs: Outputs,
    last: Option<String>,
}

type Done<'a> = Pin<Box<dyn Future<Output = Result<(), Fault>> + 'a>>;

impl<'p, 'c, 't> Performance<'p, 'c, 't> {
    pub fn new(params: &'p Params, context: &'c mut TeamContext<'t>) -> Result<Self, Fault> {
        let state = context.restore()?.unwrap_or_default();
        Ok(Performance { params, context, state, next: 0, outputs: Outputs::new(&params.blank), last: None })
    }

    /// The output that is the answer.
    pub fn answer(&self) -> Option<String> {
        let id = self.params.answer.as_deref().or(self.last.as_deref())?;
        Some(self.outputs.get(id)?.text.clone())
    }

    /// Does steps in order.
    pub fn all<'a>(&'a mut self, steps: &'a [Step]) -> Done<'a> {
        Box::pin(async move {
            for step in steps {
                if step.when.as_ref().is_none_or(|when| self.holds(when)) {
                    self.step(step).await?;
                }
            }
            Ok(())
        })
    }

    fn holds(&self, When { passed, failed, has, lacks }: &When) -> bool {
        let is =
            |id: &Option<String>, wanted: bool| id.as_ref().is_none_or(|id| self.outputs.passed(id) == Some(wanted));
        let has_text =
            |(id, text): &(String, String)| self.outputs.given(id).to_lowercase().contains(&text.to_lowercase());
        is(passed, true)
            && is(failed, false)
            && has.as_ref().is_none_or(has_text)
            && lacks.as_ref().is_none_or(|lacks| !has_text(lacks))
    }

    async fn step(&mut self, step: &Step) -> Result<(), Fault> {
        if !step.repeat.is_empty() {
            for _ in 0..step.most.unwrap_or(PASSES) {
                self.all(&step.repeat).await?;
                if step.until.as_ref().is_some_and(|until| self.outputs.passed(until) == Some(true)) {
                    break;
                }
            }
            return Ok(());
        }
        if let Some(over) = &step.each {
            return self.each(step, over).await;
        }
        if let Some(text) = &step.text {
            let text = self.outputs.filled(text, self.context.item);
            self.put(step, Output::text(text));
            return Ok(());
        }
        if let (Some(revised), Some(after)) = (&step.revise, &step.after)
            && self.outputs.passed(after) != Some(false)
        {
            if let Some(output) = self.outputs.get(revised).cloned() {
                self.put(step, output);
            }
            return Ok(());
        }
        let output = match self.state.done.get(self.next) {
            Some(done) => done.clone(),
            None => {
                let output = self.done(step).await?;
                self.record(step, &output);
                self.state.done.push(output.clone());
                (self.state.course, self.state.replies) = (Course::default(), 0);
                self.context.measure(TOOL_CALLS, f64::from(self.context.calls()));
                self.context.measure(STEPS, self.state.done.len() as f64);
                self.context.end_round(&self.state).await?;
                output
            }
        };
        self.next += 1;
        self.put(step, output);
        Ok(())
    }

    async fn each(&mut self, step: &Step, over: &str) -> Result<(), Fault> {
        let elements = self.outputs.elements(over);
        let (mut all, mut whole) = (Vec::new(), String::new());
        for element in elements {
            if let Some(name) = &step.element {
                self.outputs.enter(name, &element);
            }
            self.last = None;
            self.all(&step.steps).await?;
            let last = self.last.as_ref().and_then(|id| self.outputs.get(id));
            let text = last.map_or_else(String::new, |output| output.text.clone());
            whole.push_str(&format!("### {element}\n{}\n", text.trim_end()));
            all.push(text);
            if step.element.is_some() {
                self.outputs.leave();
            }
        }
        self.put(step, Output { text: whole, all, ..Output::default() });
        Ok(())
    }

    fn put(&mut self, step: &Step, output: Output) {
        // What is revised replaces the output, unless the step has an id of its own.
        let Some(id) = step.id.as_ref().or(step.revise.as_ref()) else {
            self.outputs.put("", output);
            self.last = Some(String::new());
            return;
        };
        self.outputs.put(id, output);
        self.last = Some(id.clone());
    }

    fn record(&mut self, step: &Step, output: &Output) {
        let id = step.id.as_deref().or(step.revise.as_deref()).unwrap_or("step");
        let state = match output.passed {
            Some(true) => " (passed)",
            Some(false) => " (failed)",
            None => "",
        };
        let member = output.asked.as_ref().map_or(0, |asked| asked.member);
        self.context.record(member, OUTPUT, format!("{id}{state}: {}", output.text));
    }

    /// Does a step that takes a question, a call or a run.
    async fn done(&mut self, step: &Step) -> Result<Output, Fault> {
        let asked = self.asked(step)?;
        match () {
            () if step.ask.is_some() => Ok(self.ask(step, asked).await),
            () if step.act.is_some() => self.act(step, asked).await,
            () if step.call.is_some() => self.call(step, asked).await,
            () if step.run.is_some() => self.run(step).await,
            () if !step.vote.is_empty() => Ok(self.vote(step)),
            () if !step.choose.is_empty() => Ok(self.choose(step, asked).await),
            () if step.review.is_some() => Ok(self.review(step, asked).await),
            () => Ok(self.revise(step).await),
        }
    }

    /// Who is asked for what.
    fn asked(&self, step: &Step) -> Result<Asked, Fault> {
        let item = self.context.item;
        let member = match &step.member {
            None => self.context.workers().first().copied().unwrap_or(0),
            Some(name) => {
                let name = self.outputs.filled(name, item);
                let names: Vec<&str> = self.context.team.iter().map(|member| member.name.as_str()).collect();
                let place = names.iter().position(|known| *known == name.trim());
                let id = step.id.as_deref().unwrap_or("without an id");
                place.ok_or_else(|| {
                    Fault(format!("step `{id}` names the member `{name}`; the team has {}", names.join(", ")))
                })?
            }
        };
        let text = step.ask.as_ref().or(step.act.as_ref()).map(|text| self.outputs.filled(text, item));
        let part = step.part.as_ref().map(|part| self.outputs.filled(part, item));
        Ok(Asked { member, instruction: text.unwrap_or_default(), part, see: step.see.clone() })
    }

    /// Outputs as documents for a prompt.
    fn documents(&self, see: &[String]) -> Vec<Part> {
        let shown = see.iter().filter(|id| self.outputs.get(id).is_some());
        shown.map(|id| Part::Text(format!("{id}:\n{}", self.outputs.shown(id).trim_end()))).collect()
    }

    /// The question of a step. Without a part it asks for the item's answer, with reasons.
    fn brief(&self, asked: &Asked) -> Brief {
        let (instruction, format) = match asked.part {
            Some(_) => (asked.instruction.clone(), ResponseFormat::Text),
            None => (format!("{}\n{}", asked.instruction.trim_end(), form(self.context)), wanted(self.context)),
        };
        let messages = talk(self.context, asked.member, &self.documents(&asked.see), instruction.trim());
        Brief::new(asked.member, messages, format).part(asked.part.clone())
    }

    /// Asks, and reads texts or answers. Empty replies are left out, and the reason is recorded.
    async fn stands(&mut self, briefs: Vec<Brief>) -> Vec<Stand> {
        let whose: Vec<(usize, bool)> = briefs.iter().map(|brief| (brief.member, brief.part.is_some())).collect();
        let heard = self.context.ask_all(briefs).await;
        let mut stands = Vec::new();
        for ((member, is_part), heard) in whose.into_iter().zip(heard) {
            if !is_part {
                stands.extend(stand(self.context, member, heard));
                continue;
            }
            match heard.map_err(|why| why.to_string()).and_then(written) {
                Ok(answer) => {
                    let by = self.context.team.get(member).map_or_else(String::new, |member| member.name.clone());
                    stands.push(Stand { by, answer, reasons: String::new() });
                }
                Err(why) => self.context.record(member, NO_ANSWER, why),
            }
        }
        stands
    }

    async fn ask(&mut self, step: &Step, asked: Asked) -> Output {
        let samples = step.samples.unwrap_or(1);
        let brief = self.brief(&asked);
        let stands = self.stands((0..samples).map(|k| brief.clone().sample(k)).collect()).await;
        let all = if samples > 1 { stands.iter().map(|stand| stand.answer.clone()).collect() } else { Vec::new() };
        match stands.into_iter().next() {
            Some(Stand { answer, reasons, .. }) => {
                Output { text: answer, reasons, all, passed: None, asked: Some(asked) }
            }
            None => Output { asked: Some(asked), ..Output::failed("") },
        }
    }

    async fn act(&mut self, step: &Step, asked: Asked) -> Result<Output, Fault> {
        let most = step.most.unwrap_or(REPLIES);
        let shown = self.documents(&asked.see);
        while self.state.replies < most {
            let opening = talk(self.context, asked.member, &shown, &asked.instruction);
            let may = match self.state.replies + 1 < most {
                true => act::offers(self.context, asked.member)?,
                false => act::answer_only(self.context),
            };
            self.state.replies += 1;
            let part = asked.part.clone();
            match act::step(self.context, asked.member, &mut self.state.course, opening, may, part).await? {
                Acted::Called => {
                    act::record(self.context, asked.member, &self.state.course, [CALL, RESULT]);
                    self.context.measure(TOOL_CALLS, f64::from(self.context.calls()));
                    self.context.end_round(&self.state).await?;
                }
                Acted::Answered { answer, reasons } => {
                    return Ok(Output { text: answer, reasons, asked: Some(asked), ..Output::default() });
                }
                Acted::Nothing => break,
            }
        }
        Ok(Output { asked: Some(asked), ..Output::failed("") })
    }

    async fn call(&mut self, step: &Step, asked: Asked) -> Result<Output, Fault> {
        let fill = |value: &Json| match value.as_str() {
            Some(text) => Json::from(self.outputs.filled(text, self.context.item)),
            None => value.clone(),
        };
        let arguments: Arguments = step.arguments.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        let call = ToolCall::new(step.call.clone().unwrap_or_default(), &arguments);
        let (calls, results) = self.context.call(asked.member, vec![call]).await?;
        let (Some(call), Some(result)) = (calls.first(), results.into_iter().next()) else {
            return Ok(Output::failed("the call has no result"));
        };
        self.context.record(asked.member, CALL, format!("{} {}", call.tool, call.arguments));
        Ok(Output { text: result.text, passed: Some(!result.error), asked: Some(asked), ..Output::default() })
    }

    async fn run(&mut self, step: &Step) -> Result<Output, Fault> {
        let texts: Vec<String> = step.with.iter().map(|id| self.outputs.given(id)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let function = step.run.clone().unwrap_or_default();
        let checked = match self.context.run_checker(&function, &texts).await {
            Ok(checked) => checked,
            Err(AskError::Invalid { why, .. }) => return Err(Fault(why)),
            // It says nothing about the texts: the step has neither passed nor failed.
            Err(why) => {
                self.context.record(0, NO_ANSWER, why.to_string());
                return Ok(Output::default());
            }
        };
        for (name, value) in &checked.measures {
            let place = Workflow::QUANTITIES.iter().position(|quantity| quantity.name == name).ok_or_else(|| {
                let known: Vec<&str> = Workflow::QUANTITIES.iter().skip(2).map(|quantity| quantity.name).collect();
                Fault(format!("`{function}` measures `{name}`; a workflow has {}", known.join(", ")))
            })?;
            self.context.measure(place as u16, *value);
        }
        let passed = if self.is_drawn(step) { self.context.draws().chance(0.5) } else { checked.passed };
        Ok(Output { text: checked.text, passed: Some(passed), ..Output::default() })
    }

    fn is_drawn(&self, step: &Step) -> bool {
        step.id.as_ref().is_some_and(|id| self.params.drawn.contains(id))
    }

    /// The candidates of a vote or a choice: the outputs of the steps, with all their samples.
    fn candidates(&self, ids: &[String]) -> Vec<Stand> {
        let mut candidates = Vec::new();
        for id in ids {
            let texts = self.outputs.get(id).map(Output::texts).unwrap_or_default();
            let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
            candidates.extend(texts.map(|text| Stand { by: id.clone(), answer: text.into(), reasons: String::new() }));
        }
        candidates
    }

    fn drawn(&self, candidates: &[Stand]) -> Output {
        let place = self.context.draws().below(candidates.len().max(1) as u64) as usize;
        candidates.get(place).map_or_else(|| Output::failed(""), |stand| Output::text(stand.answer.clone()))
    }

    fn vote(&self, step: &Step) -> Output {
        let candidates = self.candidates(&step.vote);
        if self.is_drawn(step) {
            return self.drawn(&candidates);
        }
        let stands: Vec<Option<Stand>> = candidates.into_iter().map(Some).collect();
        vote::plurality(self.context.item, &stands).map_or_else(|| Output::failed(""), Output::text)
    }

    async fn choose(&mut self, step: &Step, asked: Asked) -> Output {
        let candidates = self.candidates(&step.choose);
        if candidates.len() < 2 {
            return candidates
                .into_iter()
                .next()
                .map_or_else(|| Output::failed(""), |stand| Output::text(stand.answer));
        }
        let mut brief = judge::to_choose(self.context, asked.member, &candidates, 0).part(asked.part.clone());
        self.show(&mut brief, &asked.see);
        let heard = self.context.ask(brief).await;
        if self.is_drawn(step) {
            return self.drawn(&candidates);
        }
        let chosen = heard.ok().and_then(|value| judge::choice(&value)).and_then(|place| candidates.get(place));
        match chosen {
            Some(stand) => Output { asked: Some(asked), ..Output::text(stand.answer.clone()) },
            None => Output { asked: Some(asked), ..Output::failed("") },
        }
    }

    async fn review(&mut self, step: &Step, asked: Asked) -> Output {
        let id = step.review.clone().unwrap_or_default();
        let text = self.outputs.given(&id);
        let reviewed = Stand { by: id, answer: text, reasons: String::new() };
        let mut brief = judge::to_check(self.context, asked.member, &reviewed, "").part(asked.part.clone());
        self.show(&mut brief, &asked.see);
        let heard = self.context.ask(brief).await;
        let Some((passed, why)) = heard.as_ref().ok().and_then(judged).map(|(right, why)| (right, why.to_owned()))
        else {
            return Output { asked: Some(asked), ..Output::default() };
        };
        let passed = if self.is_drawn(step) { self.context.draws().chance(0.5) } else { passed };
        Output { text: why, passed: Some(passed), asked: Some(asked), ..Output::default() }
    }

    /// Puts documents into the last message of a brief, after its first part: the question, or a finding.
    fn show(&self, brief: &mut Brief, see: &[String]) {
        let documents = self.documents(see);
        if let Some(message) = brief.messages.last_mut() {
            let place = 1.min(message.parts.len());
            message.parts.splice(place..place, documents);
        }
    }

    async fn revise(&mut self, step: &Step) -> Output {
        let (revised, after) = (step.revise.clone().unwrap_or_default(), step.after.clone().unwrap_or_default());
        let Some(before) = self.outputs.get(&revised).cloned() else { return Output::failed("") };
        let Some(asked) = before.asked.clone() else { return before };
        let by = self.context.team.get(asked.member).map_or_else(String::new, |member| member.name.clone());
        let held = Stand { by, answer: before.text.clone(), reasons: before.reasons.clone() };
        let finding = refine::Finding { by: after.clone(), right: false, words: self.outputs.shown(&after) };
        let mut brief = refine::again(self.brief(&asked), &held, &finding).task(Task::Solve);
        self.show(&mut brief, &step.see);
        match self.stands(vec![brief]).await.pop() {
            Some(Stand { answer, reasons, .. }) => {
                Output { text: answer, reasons, asked: Some(asked), ..Output::default() }
            }
            None => before,
        }
    }
}

/// The text of a reply that asks for a part.
fn written(value: Value) -> Result<String, String> {
    match value {
        Value::Text(text) if !text.trim().is_empty() => Ok(text),
        Value::Text(_) => Err("the reply is empty".into()),
        _ => Err("the reply is not a text".into()),
    }
}
