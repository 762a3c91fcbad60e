//! A model as the judge of traces: it is asked which failure modes the record of an item shows. The runs are only read.

use super::diagnose::ended;
use super::engine::{Engine, Recorded};
use super::folder::Folder;
use crate::budget::{Fit, Purse};
use crate::diagnosis::{Ratings, Subject};
use polity_kernel::ask::{
    Answer, Asker, ChatMessage, Effect, EffectId, Outcome, Request, Resolution, ResponseFormat, Role, TargetKind, Value,
};
use polity_kernel::failure::FailureMode;
use polity_kernel::items::Item;
use polity_kernel::method::Member;
use polity_kernel::scenario::{Assembled, Scenario};
use polity_models::models::prices::Prices;
use polity_store::DriveError;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a judge says of an item, or of an agent of a society.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The run folder.
    pub run: PathBuf,
    /// The item or agent.
    #[serde(flatten)]
    pub subject: Subject,
    /// The failure modes that it names; `None` if its reply does not fit.
    pub modes: Option<BTreeSet<FailureMode>>,
    /// Its reasons, or why there are none.
    pub reasons: String,
}

/// What a judge says of runs, and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The model.
    pub judge: String,
    /// Whether it is simulated. Then its verdicts say nothing about the runs.
    pub simulated: bool,
    /// The verdicts, by run and subject, on all it was asked about.
    pub verdicts: Vec<Verdict>,
    /// Number of items or agents that it was not asked about.
    pub left: usize,
    /// Why not.
    pub why_left: Option<String>,
    /// Number of answers.
    pub calls: usize,
    /// Tokens of requests and replies.
    pub tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
}

/// How often a waiting judge checks whether to stop.
const TICK: Duration = Duration::from_millis(100);
/// Longest text of what a step was shown or replied, in characters.
const LONGEST_TEXT: usize = 2_000;
/// Longest record of an item or agent, in characters.
const LONGEST_RECORD: usize = 100_000;
const INSTRUCTION: &str = include_str!("../diagnosis/judge.md");

impl Engine<'_> {
    /// Asks a model which failure modes a run shows, or all runs of a sweep or a comparison. Of an evaluation it is shown the question and steps of each item
    /// that has ended, and neither the right answer nor the score. Of a society it is shown, for each agent, what models were asked for it
    /// and replied. A reply that does not fit is not asked for again. The budget of this engine holds for all questions together; they are
    /// put in the order of runs and items or agents.
    ///
    /// # Errors
    /// As [`Engine::diagnose`]; [`DriveError::Model`] for a model that cannot be asked; [`DriveError::Lost`] if it no longer answers.
    pub fn judge(&self, dir: &Path, model: &str) -> Result<Judged, DriveError> {
        let runs = self.runs_in(dir)?;
        let mut scenario = None;
        let (mut questions, mut subjects) = (VecDeque::new(), BTreeMap::new());
        for (n, run) in runs.iter().enumerate() {
            let (of_run, requests) = self.to_judge(run, model)?;
            scenario.get_or_insert(of_run);
            let effect = |(subject, request): (Subject, Request)| {
                let id = EffectId { item: subject.number(), round: 0, actor: n as u32, asker: Asker::Scorer, n: 0 };
                subjects.insert((id.actor, id.item), subject);
                Effect { id, request, hidden: None, default: None }
            };
            questions.extend(requests.into_iter().map(effect));
        }
        let Some(scenario) = scenario else { return Err(DriveError::Folder(format!("{}: no runs", dir.display()))) };
        if Request::new(model, Vec::new(), ResponseFormat::Text).model.kind() != TargetKind::Model {
            return Err(DriveError::Model(format!("`{model}` is no model; a judge is named `provider/model`")));
        }
        let asked = self.check_models(vec![model.to_owned()], Vec::new(), &scenario)?;
        let prices = asked.prices.with(&Prices::from(self.outside.prices.clone()));
        self.check_prices_of(vec![model.to_owned()], &self.budget, &prices)?;
        let (answers, left, why_left) = self.in_order(questions, &scenario, &prices)?;
        let mut judged = Judged {
            judge: model.to_owned(),
            simulated: asked.simulated,
            verdicts: Vec::new(),
            left,
            why_left,
            calls: answers.len(),
            tokens: 0,
            cost_usd: 0.0,
        };
        for answer in answers {
            let EffectId { actor, item, .. } = answer.id;
            let (Some(run), Some(subject)) = (runs.get(actor as usize), subjects.get(&(actor, item))) else { continue };
            judged.tokens += answer.usage.tokens_in + answer.usage.tokens_out;
            judged.cost_usd += answer.usage.cost_usd;
            let (modes, reasons) = verdict(&answer.outcome);
            judged.verdicts.push(Verdict { run: run.clone(), subject: *subject, modes, reasons });
        }
        Ok(judged)
    }

    /// Whether a run is a society, or the runs of a sweep are.
    ///
    /// # Errors
    /// [`DriveError::Folder`] for a folder that is not a run.
    pub fn is_society(&self, dir: &Path) -> Result<bool, DriveError> {
        let Some(run) = self.runs_in(dir)?.into_iter().next() else { return Ok(false) };
        let folder = Folder::read(self.disk.clone(), &run)?;
        Ok(Scenario::read(&folder.prepared(&folder.manifest()?)?.tree)?.items.is_none())
    }

    /// The agents of a society, or of all runs of a sweep, that a model was asked for. A run is named as in [`Ratings`].
    ///
    /// # Errors
    /// [`DriveError::Folder`] and [`DriveError::Journal`] for damaged runs.
    pub fn asked_agents(&self, dir: &Path) -> Result<BTreeSet<(String, Subject)>, DriveError> {
        let mut found = BTreeSet::new();
        for run in self.runs_in(dir)? {
            let Recorded { story, .. } = self.recorded(&Folder::read(self.disk.clone(), &run)?)?;
            let agents = story.past.answers.values().filter(|answer| is_step_of_agent(answer));
            found.extend(agents.map(|answer| (Ratings::name_of(dir, &run), Subject::Agent(answer.id.actor))));
        }
        Ok(found)
    }

    /// The questions to a judge about a run, by item or agent.
    fn to_judge(&self, dir: &Path, model: &str) -> Result<(Scenario, Vec<(Subject, Request)>), DriveError> {
        let folder = Folder::read(self.disk.clone(), dir)?;
        let Recorded { prepared, story, .. } = self.recorded(&folder)?;
        let scenario = Scenario::read(&prepared.tree)?;
        let mut steps: BTreeMap<u32, Vec<&Answer>> = BTreeMap::new();
        let question = |record: String| {
            let messages = vec![ChatMessage::text(Role::System, told()), ChatMessage::text(Role::User, record)];
            Request { purpose: "judge".into(), ..Request::new(model, messages, form()) }
        };
        if scenario.items.is_none() {
            for answer in story.past.answers.values().filter(|answer| is_step_of_agent(answer)) {
                steps.entry(answer.id.actor).or_default().push(answer);
            }
            let asked = |(agent, steps): (u32, Vec<&Answer>)| {
                (Subject::Agent(agent), question(record_of_agent(agent, &scenario, &steps)))
            };
            let questions = steps.into_iter().map(asked).collect();
            return Ok((scenario, questions));
        }
        let Assembled::Evaluation(evaluation) = self.assemble(&prepared)? else {
            return Err(DriveError::Folder(format!("{}: its scenario has `items`, but no team", dir.display())));
        };
        let mut ended = ended(&story.inventory.results(self.disk.as_ref(), folder.path()))?;
        for answer in story.past.answers.values() {
            let of_team = matches!(answer.id.asker, Asker::Member | Asker::Method);
            if of_team && answer.resolution() != Resolution::Again {
                steps.entry(answer.id.item).or_default().push(answer);
            }
        }
        let asked = |(i, steps): (u32, Vec<&Answer>)| {
            let (item, ended) = (evaluation.items().get(i as usize)?, ended.remove(&i)?);
            Some((Subject::Item(i), question(record_of_item(item, evaluation.team(), &steps, ended.answer.as_deref()))))
        };
        let questions = steps.into_iter().filter_map(asked).collect();
        Ok((scenario, questions))
    }

    /// Asks questions in their order, within the budget. Returns the answers in this order, how many were not asked, and why.
    fn in_order(
        &self,
        mut questions: VecDeque<Effect>,
        scenario: &Scenario,
        prices: &Prices,
    ) -> Result<(Vec<Answer>, usize, Option<String>), DriveError> {
        let began = Instant::now();
        let late = || self.budget.seconds.is_some_and(|most| began.elapsed().as_secs_f64() >= most);
        let mut purse = Purse::new(&self.budget, self.providers.clone(), prices.clone());
        let mut source = self.source(scenario, prices, None, None);
        let mut answers: BTreeMap<(u32, u32), Answer> = BTreeMap::new();
        let mut why_left = None;
        loop {
            if self.stop.asked() {
                why_left = Some("a stop was asked for".into());
                break;
            }
            if late() && !questions.is_empty() {
                why_left = Some("the time is over".into());
                break;
            }
            let mut fitting = Vec::new();
            while let Some(next) = questions.front() {
                match purse.fit(next) {
                    Fit::Now => fitting.extend(questions.pop_front()),
                    Fit::Later => break,
                    Fit::Never(why) => {
                        why_left = Some(why);
                        break;
                    }
                }
            }
            source.start(fitting);
            if purse.in_flight() == 0 {
                break;
            }
            for answer in source.wait(TICK) {
                purse.settle(&answer);
                answers.insert((answer.id.actor, answer.id.item), answer);
            }
            for broken in source.broken() {
                purse.broken(&broken);
                if broken.again {
                    questions.push_front(broken.effect);
                }
            }
            if let Some(why) = source.lost() {
                return Err(DriveError::Lost(why.to_string()));
            }
        }
        let left = questions.len() + if why_left.is_some() { purse.in_flight() } else { 0 };
        Ok((answers.into_values().collect(), left, why_left))
    }
}

/// The field of a mode in a judge's reply.
fn field(mode: FailureMode) -> String {
    mode.name().replace('-', "_")
}

/// The form of a judge's reply: reasons, and yes or no for each mode.
fn form() -> ResponseFormat {
    let modes = FailureMode::ALL.into_iter().map(|mode| (field(mode), ResponseFormat::yes_or_no()));
    ResponseFormat::Record(std::iter::once(("reasons".to_owned(), ResponseFormat::Text)).chain(modes).collect())
}

/// The instruction to a judge, with what the modes mean.
fn told() -> String {
    let mut text = INSTRUCTION.trim_end().replace('\n', " ");
    for mode in FailureMode::ALL {
        text.push_str(&format!("\n- `{}` ({}): {}", field(mode), mode.number(), mode.meaning()));
    }
    text
}

/// Whether this is a question of an agent of a society, or one that was put for it, and its last try.
fn is_step_of_agent(answer: &Answer) -> bool {
    !matches!(answer.id.asker, Asker::Scorer | Asker::Preparation) && answer.resolution() != Resolution::Again
}

/// The record of an item for a judge: the question, every step with the end of what was shown and the reply, and the team's answer.
fn record_of_item(item: &Item, team: &[Member], steps: &[&Answer], answer: Option<&str>) -> String {
    let mut text = format!("The task:\n{}\n\nThe steps, by round and member:\n", item.question);
    let name = |actor: u32| team.get(actor as usize).map_or("the method".into(), |member| member.name.as_str().into());
    tell(steps, name, &mut text);
    text.push_str(&format!("\nThe team's answer: {}\n", answer.unwrap_or("none")));
    text
}

/// The record of an agent for a judge: what it was told to be, and every step with the end of what was shown and the reply.
fn record_of_agent(agent: u32, scenario: &Scenario, steps: &[&Answer]) -> String {
    let world = scenario.world.as_ref().and_then(|world| world.split_kind("world").ok());
    let world = world.map_or(String::new(), |(kind, _)| format!(" in the world `{}`", kind.name));
    let mut text = format!("Agent {agent} of a society{world}. It has no task with a right answer.\n");
    let first = steps.first().and_then(|step| step.request.messages.first());
    if let Some(message) = first.filter(|message| message.role == Role::System) {
        text.push_str(&format!("\nWhat it was told first:\n{}\n", tail(&message.rendered(), LONGEST_TEXT)));
    }
    text.push_str("\nIts steps, by round:\n");
    tell(steps, |_| format!("agent {agent}").into(), &mut text);
    text
}

/// Writes steps, as far as there is room.
fn tell<'a>(steps: &[&Answer], name: impl Fn(u32) -> Cow<'a, str>, text: &mut String) {
    for Answer { id, request, outcome, .. } in steps {
        let shown = request.messages.last().map_or_else(String::new, |message| message.rendered());
        text.push_str(&format!(
            "\n[round {}, {}, {}]\nasked:\n{}\nreplied ({}):\n{}\n",
            id.round,
            name(id.actor),
            request.purpose,
            tail(&shown, LONGEST_TEXT),
            outcome.name(),
            tail(outcome.words(), LONGEST_TEXT)
        ));
        if text.len() > LONGEST_RECORD {
            text.push_str("\n[the rest is left out]\n");
            break;
        }
    }
}

/// Returns the end of a text, with a mark if something is missing before it.
fn tail(text: &str, most: usize) -> String {
    let n = text.chars().count();
    match n > most {
        true => format!("…{}", text.chars().skip(n - most).collect::<String>()),
        false => text.to_owned(),
    }
}

/// Reads a judge's reply: the modes, and the reasons.
fn verdict(outcome: &Outcome) -> (Option<BTreeSet<FailureMode>>, String) {
    let Outcome::Reply { value, .. } = outcome else { return (None, outcome.words().to_owned()) };
    // Yes is the first of the two.
    let named = |(i, mode): (usize, FailureMode)| (value.field(i + 1) == Some(&Value::Choice(0))).then_some(mode);
    let modes = FailureMode::ALL.into_iter().enumerate().filter_map(named).collect();
    (Some(modes), value.field(0).and_then(Value::as_text).unwrap_or_default().to_owned())
}
