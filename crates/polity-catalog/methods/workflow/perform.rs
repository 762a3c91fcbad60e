//! A workflow is performed step by step. What a step came to is kept in the checkpoint; steps that were done are not done again.

use super::outputs::{Asked, Output, Outputs};
use super::plan::{self, Step, When};
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
pub(super) struct State {
    /// Outputs of the steps that were done, in order.
    pub done: Vec<Output>,
    /// The member's work on the step at hand, if it acts.
    pub course: Course,
    pub replies: u32,
    /// What was said in the step at hand, if members talk or hand their work on, and who goes on.
    pub thread: Vec<Stand>,
    pub next: Option<usize>,
}

/// A workflow on one item.
pub(super) struct Performance<'p, 'c, 't> {
    params: &'p Params,
    pub context: &'c mut TeamContext<'t>,
    pub state: State,
    /// How many steps of the checkpoint have been gone through.
    next: usize,
    pub outputs: Outputs,
    pub last: Option<String>,
}

pub(super) type Done<'a> = Pin<Box<dyn Future<Output = Result<(), Fault>> + 'a>>;

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

    pub fn holds(&self, When { passed, failed, has, lacks, is: equals, at_least, below }: &When) -> bool {
        let is =
            |id: &Option<String>, wanted: bool| id.as_ref().is_none_or(|id| self.outputs.passed(id) == Some(wanted));
        let has_text =
            |(id, text): &(String, String)| self.outputs.given(id).to_lowercase().contains(&text.to_lowercase());
        is(passed, true)
            && is(failed, false)
            && has.as_ref().is_none_or(has_text)
            && lacks.as_ref().is_none_or(|lacks| !has_text(lacks))
            && equals
                .as_ref()
                .is_none_or(|(id, text)| self.outputs.given(id).trim().to_lowercase() == text.trim().to_lowercase())
            && at_least.as_ref().is_none_or(|(id, least)| self.outputs.number(id).is_some_and(|x| x >= *least))
            && below.as_ref().is_none_or(|(id, most)| self.outputs.number(id).is_some_and(|x| x < *most))
    }

    pub async fn step(&mut self, step: &Step) -> Result<(), Fault> {
        if !step.repeat.is_empty() {
            for _ in 0..step.most.unwrap_or(PASSES) {
                self.all(&step.repeat).await?;
                let passed = step.until.as_ref().is_some_and(|until| self.outputs.passed(until) == Some(true));
                if passed || step.stop_when.as_ref().is_some_and(|when| self.holds(when)) {
                    break;
                }
            }
            return Ok(());
        }
        if let Some(over) = &step.each {
            return self.each(step, over).await;
        }
        if !step.parallel.is_empty() {
            return self.parallel(step).await;
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
        let output = match self.recalled() {
            Some(done) => done,
            None => {
                let output = self.done(step).await?;
                self.keep(&[(step, &output)]).await?;
                output
            }
        };
        let branch = step.branches.get(output.text.as_str());
        self.put(step, output);
        match branch {
            Some(branch) => self.all(branch).await,
            None => Ok(()),
        }
    }

    /// The output of the next step that the checkpoint has.
    pub fn recalled(&mut self) -> Option<Output> {
        let done = self.state.done.get(self.next).cloned()?;
        self.next += 1;
        Some(done)
    }

    /// Keeps outputs of steps that were done together in a checkpoint.
    pub async fn keep(&mut self, done: &[(&Step, &Output)]) -> Result<(), Fault> {
        for (step, output) in done {
            self.record(step, output);
            self.state.done.push((*output).clone());
        }
        self.next = self.state.done.len();
        self.state = State { done: std::mem::take(&mut self.state.done), ..State::default() };
        self.context.measure(TOOL_CALLS, f64::from(self.context.calls()));
        self.context.measure(STEPS, self.state.done.len() as f64);
        self.context.end_round(&self.state).await
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
            let text = self.last_given().unwrap_or_default();
            whole.push_str(&format!("### {element}\n{}\n", text.trim_end()));
            all.push(text);
            if step.element.is_some() {
                self.outputs.leave();
            }
        }
        self.put(step, Output { text: whole, all, ..Output::default() });
        Ok(())
    }

    pub fn put(&mut self, step: &Step, output: Output) {
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
            () if step.ask.is_some() => Ok(self.ask(vec![(step, asked)]).await.pop().unwrap_or_default()),
            () if step.act.is_some() => self.act(step, asked).await,
            () if step.call.is_some() => self.call(step, asked).await,
            () if step.run.is_some() => self.run(step).await,
            () if !step.vote.is_empty() => Ok(self.vote(step)),
            () if !step.choose.is_empty() => Ok(self.choose(step, asked).await),
            () if step.review.is_some() => Ok(self.review(step, asked).await),
            () if step.route.is_some() => Ok(self.route(step, asked).await),
            () if step.hand_off.is_some() => self.hand_off(step, asked).await,
            () if step.chat.is_some() => self.chat(step, asked).await,
            () => Ok(self.revise(step).await),
        }
    }

    /// Who is asked for what.
    pub fn asked(&self, step: &Step) -> Result<Asked, Fault> {
        let item = self.context.item;
        let member = match &step.member {
            None => self.context.workers().first().copied().unwrap_or(0),
            Some(name) => self.member(step, name)?,
        };
        let texts = [&step.ask, &step.act, &step.route, &step.hand_off, &step.chat];
        let text = texts.into_iter().flatten().next().map(|text| self.outputs.filled(text, item));
        let part = step.part.as_ref().map(|part| self.outputs.filled(part, item));
        let (instruction, want) = (text.unwrap_or_default(), step.want.clone());
        Ok(Asked { member, instruction, part, see: step.see.clone(), want })
    }

    /// The place of a member that a step names.
    pub fn member(&self, step: &Step, name: &str) -> Result<usize, Fault> {
        let name = self.outputs.filled(name, self.context.item);
        let id = step.id.as_deref().unwrap_or("without an id");
        let known = |why: String| Fault(format!("step `{id}`: {why}"));
        plan::place_of(self.context.team, name.trim()).map_err(known)
    }

    /// Outputs as documents for a prompt.
    pub fn documents(&self, see: &[String]) -> Vec<Part> {
        let shown = see.iter().filter(|id| self.outputs.get(id).is_some());
        shown.map(|id| Part::Text(format!("{id}:\n{}", self.outputs.shown(id).trim_end()))).collect()
    }

    /// The question of a step. Without a part or a form of its own it asks for the item's answer, with reasons.
    fn brief(&self, asked: &Asked) -> Brief {
        let (instruction, format) = match (&asked.part, &asked.want) {
            (Some(_), _) => (asked.instruction.clone(), ResponseFormat::Text),
            (None, Some(want)) => (asked.instruction.clone(), want.clone()),
            (None, None) => (format!("{}\n{}", asked.instruction.trim_end(), form(self.context)), wanted(self.context)),
        };
        let messages = talk(self.context, asked.member, &self.documents(&asked.see), instruction.trim());
        let brief = Brief::new(asked.member, messages, format).part(asked.part.clone());
        if asked.want.is_some() { brief.task(Task::Write) } else { brief }
    }

    /// Asks, and reads texts, values or answers. The reason for a reply without one is recorded.
    async fn stands(&mut self, asked: &[(&Asked, Brief)]) -> Vec<Option<Stand>> {
        let heard = self.context.ask_all(asked.iter().map(|(_, brief)| brief.clone()).collect()).await;
        let mut stands = Vec::with_capacity(asked.len());
        for ((asked, _), heard) in asked.iter().zip(heard) {
            let Asked { member, part, want, .. } = asked;
            let format = match (part, want) {
                (Some(_), _) => ResponseFormat::Text,
                (None, Some(want)) => want.clone(),
                (None, None) => {
                    stands.push(stand(self.context, *member, heard));
                    continue;
                }
            };
            stands.push(match heard.map_err(|why| why.to_string()).and_then(|value| written(&value, &format)) {
                Ok(answer) => {
                    let by = self.context.team.get(*member).map_or_else(String::new, |member| member.name.clone());
                    Some(Stand { by, answer, reasons: String::new() })
                }
                Err(why) => {
                    self.context.record(*member, NO_ANSWER, why);
                    None
                }
            });
        }
        stands
    }

    /// Asks the members of steps together, and returns the outputs in the same order.
    pub async fn ask(&mut self, steps: Vec<(&Step, Asked)>) -> Vec<Output> {
        let samples = |step: &Step| step.samples.unwrap_or(1);
        let mut briefs = Vec::new();
        for (step, asked) in &steps {
            let brief = self.brief(asked);
            briefs.extend((0..samples(step)).map(|k| (asked, brief.clone().sample(k))));
        }
        let mut stands = self.stands(&briefs).await.into_iter();
        let mut outputs = Vec::with_capacity(steps.len());
        for (step, asked) in &steps {
            let given: Vec<Stand> = stands.by_ref().take(samples(step) as usize).flatten().collect();
            let all = match samples(step) {
                1 => Vec::new(),
                _ => given.iter().map(|stand| stand.answer.clone()).collect(),
            };
            outputs.push(match given.into_iter().next() {
                Some(Stand { answer, reasons, .. }) => {
                    Output { text: answer, reasons, all, passed: None, asked: Some(asked.clone()) }
                }
                None => Output { asked: Some(asked.clone()), ..Output::failed("") },
            });
        }
        outputs
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

    pub fn is_drawn(&self, step: &Step) -> bool {
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
        let mut brief = refine::again(self.context, self.brief(&asked), &held, &finding);
        self.show(&mut brief, &step.see);
        match self.stands(&[(&asked, brief)]).await.pop().flatten() {
            Some(Stand { answer, reasons, .. }) => {
                Output { text: answer, reasons, asked: Some(asked), ..Output::default() }
            }
            None => before,
        }
    }
}

/// The text of a reply in a form of its own: a text as it is, an option, a number, or JSON.
pub(super) fn written(value: &Value, format: &ResponseFormat) -> Result<String, String> {
    match (value, format) {
        (Value::Text(text), _) if !text.trim().is_empty() => Ok(text.clone()),
        (Value::Text(_), _) => Err("the reply is empty".into()),
        (Value::Choice(place), ResponseFormat::Choice(options)) => {
            options.get(*place as usize).cloned().ok_or_else(|| "the reply names no option".into())
        }
        (_, ResponseFormat::Text) => Err("the reply is not a text".into()),
        (Value::Number(number), _) => Ok(number.to_string()),
        (value, format) => Ok(value.to_json(format).to_string()),
    }
}
