//! What a method does once a run, before the first item ([`Method::prepare`]).

use super::{ABSENT, Brief, Member, Method, Prompts, SAMPLES, TeamContext, prompts};
use crate::ask::{
    Answer, Ask, AskError, Asker, Book, Effect, Hidden, Question, Reply, Request, Settings, Task, poll_once,
};
use crate::items::{Item, recorded_model};
use crate::policy::Fault;
use crate::{AgentId, Bug};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

/// The context in which a method prepares a run ([`Method::prepare`]): the team and the whole data set. Its questions are asked once a
/// run, by [`Asker::Preparation`] in round 0; they are charged to the first item of the data set. Placebos and planted faults do not
/// reach them.
#[derive(Debug)]
pub struct Preparation<'a> {
    /// The team.
    pub team: &'a [Member],
    /// The data set, in its order. For the team of an agent: what it works on in this turn.
    pub items: &'a [Item],
    retries: u8,
    ask: Ask<'a>,
    /// The agent of a society that the team acts for.
    agent: Option<AgentId>,
    kept: Option<Vec<u8>>,
    pub(super) prompts: Arc<Prompts>,
    /// A prompt that was used but not listed: a fault of the method.
    pub(super) unlisted: Cell<Option<&'static str>>,
}

/// How far a preparation is.
pub(crate) enum Prepared {
    /// These questions have no answer yet.
    Waits(Vec<Effect>),
    /// It has ended, and kept this for all items.
    Ended(Option<Vec<u8>>),
}

/// What a preparation works on.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'a> {
    pub team: &'a [Member],
    pub items: &'a [Item],
    pub retries: u8,
    /// The answers so far, sorted by id.
    pub answers: &'a [Answer],
}

impl Preparation<'_> {
    /// Returns the members that work on items: those without a role.
    #[must_use]
    pub fn workers(&self) -> Vec<usize> {
        workers(self.team)
    }

    /// Returns the first member with that role, else the first member who is not absent.
    #[must_use]
    pub fn cast(&self, role: &str) -> usize {
        cast(self.team, role)
    }

    /// Asks members together, as [`TeamContext::ask_all`] does. A simulated model replies to [`Task::Write`]; it knows no right answer here.
    pub async fn ask_all(&mut self, briefs: Vec<Brief>) -> Vec<Reply> {
        let questions = briefs.into_iter().map(|brief| self.question(brief)).collect();
        self.ask.ask_all(questions).await
    }

    /// Asks one member.
    pub async fn ask(&mut self, brief: Brief) -> Reply {
        self.ask_all(vec![brief]).await.pop().unwrap_or_else(|| Err(AskError::Failed("no answer was recorded".into())))
    }

    /// Keeps a value for all items, which read it with [`TeamContext::prepared`]. A second value replaces the first.
    pub fn keep<T: Serialize>(&mut self, value: &T) -> Result<(), Fault> {
        let bytes = postcard::to_allocvec(value);
        self.kept = Some(bytes.map_err(|e| Fault(format!("what was prepared cannot be saved: {e}")))?);
        Ok(())
    }

    /// Returns who is asked, and the question.
    fn question(&self, Brief { member, messages, response_format, task, sample, .. }: Brief) -> (u32, Question) {
        let asked = self.team.get(member);
        let of_agent = self.agent.map_or(0, |agent| agent.wrapping_mul(SAMPLES));
        let request = Request {
            settings: asked.map_or(Settings::default(), |member| member.settings),
            sample: of_agent + (member as u32 + sample * self.team.len() as u32),
            purpose: task.name().into(),
            ..Request::new(asked.map_or("", |member| member.model.as_str()), messages, response_format)
        };
        let not_recorded = || Err("no answer is recorded to what is asked once a run".to_owned());
        let recorded = recorded_model(&request.model).map(|_| not_recorded());
        let hidden =
            (task == Task::Write || recorded.is_some()).then(|| Hidden { task, recorded, ..Hidden::default() });
        let question = Question::new(request).hidden(hidden).retries(self.retries);
        (self.agent.unwrap_or(member as u32), question)
    }
}

/// Runs a method's preparation from its start, with the answers so far.
pub(super) fn prepare<M: Method>(method: &M, prompts: &Arc<Prompts>, whole: Whole<'_>) -> Result<Prepared, Bug> {
    let Whole { team, items, retries, answers } = whole;
    let mut book = Book::default();
    let ask = Ask::new(Asker::Preparation, 0, 0, answers, &mut book);
    let (prompts, unlisted) = (prompts.clone(), Cell::new(None));
    let mut context = Preparation { team, items, retries, ask, agent: None, kept: None, prompts, unlisted };
    let done = poll_once(method.prepare(&mut context));
    let Preparation { ask, kept, unlisted, .. } = context;
    let wanted = ask.close()?;
    let bug = |message: String| Bug::Method { item: 0, round: 0, message };
    if let Some(name) = unlisted.get() {
        return Err(bug(prompts::unlisted(name)));
    }
    match done {
        Some(Ok(())) => Ok(Prepared::Ended(kept)),
        Some(Err(fault)) => Err(bug(fault.0)),
        None if wanted.is_empty() => Err(bug("the preparation awaits something other than its own context".into())),
        None => Ok(Prepared::Waits(wanted)),
    }
}

impl TeamContext<'_> {
    /// Returns what the method prepared for all items ([`Preparation::keep`]); `None` if it kept nothing.
    pub fn prepared<T: DeserializeOwned>(&self) -> Result<Option<T>, Fault> {
        let Some(bytes) = &self.prepared else { return Ok(None) };
        let read = postcard::from_bytes(bytes);
        read.map(Some).map_err(|e| Fault(format!("what was prepared cannot be read: {e}")))
    }

    /// Prepares for this item alone: the team acts for an agent, in its turn.
    pub(super) async fn prepare_alone<M: Method>(&mut self, method: &M) -> Result<(), Fault> {
        let (team, items, retries, agent) = (self.team, std::slice::from_ref(self.item), self.retries, self.agent);
        let (prompts, unlisted) = (self.prompts.clone(), Cell::new(None));
        let mut context =
            Preparation { team, items, retries, ask: self.ask.lend(), agent, kept: None, prompts, unlisted };
        method.prepare(&mut context).await?;
        let Preparation { kept, unlisted, .. } = context;
        self.unlisted.set(unlisted.get());
        self.prepared = kept.map(Cow::Owned);
        Ok(())
    }
}

/// The members that work on items.
pub(super) fn workers(team: &[Member]) -> Vec<usize> {
    (0..team.len()).filter(|i| team[*i].role.is_none()).collect()
}

/// The first member with that role, else the first member who is not absent.
pub(super) fn cast(team: &[Member], role: &str) -> usize {
    let place = |fits: &dyn Fn(&Option<String>) -> bool| team.iter().position(|member| fits(&member.role));
    let has = place(&|own| own.as_deref() == Some(role));
    has.or_else(|| place(&|own| own.as_deref() != Some(ABSENT))).unwrap_or(0)
}
