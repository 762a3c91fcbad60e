//! Methods: how a team works on a task together.
//!
//! A method is straight-line code over a [`TeamContext`]: ask these members, tell that one, end the round. It is never kept as a
//! future. Whenever answers have arrived, it runs again from its last checkpoint with the answers so far.

mod placebo;
mod planted;
mod prepare;
mod prompts;
mod score;
mod team;
mod tools;

pub use placebo::Placebo;
use planted::{Course, passing};
pub use planted::{PlantedFault, PlantedMode};
pub use prepare::Preparation;
pub(crate) use prepare::{Prepared, Whole};
pub use prompts::Prompt;
pub(crate) use prompts::{PROMPTS, Prompts, schema_of};
pub use score::Score;
pub(crate) use team::{MOST_MEMBERS, MOST_RETRIES, Methods, TeamSetup, all_act, members, roles_exist, tools_exist};
pub use team::{Team, TeamSource};
pub(crate) use tools::ENVIRONMENT;
pub use tools::ToolMark;

use crate::ask::schema::typed;
use crate::ask::{
    Answer, Ask, AskError, Asker, Book, ChatMessage, Effect, Hidden, Part, Question, Reply, Request, ResponseFormat,
    Settings, Task, poll_once,
};
use crate::digest::{self, RowHash};
use crate::environment::{Env, Episode};
use crate::interface::{Action, Actions};
pub use crate::items::same_answer;
use crate::items::{Item, Lookup, in_other_order, recorded_model};
use crate::policy::Fault;
use crate::rng::{Draws, Stream};
use crate::toolbox::{ToolSession, Toolbox};
use crate::topology::Topology;
use crate::tree::Invalid;
use crate::{AgentId, Bug};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The role of a member that takes no part, whatever the method. Compares teams of the same size with and without a member.
pub const ABSENT: &str = "absent";

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its name, as other members see it.
    pub name: String,
    /// `provider/model`.
    pub model: String,
    /// System instructions; may be empty.
    pub persona: String,
    /// Its role in the method: one of [`Method::ROLES`], or [`ABSENT`]. Members without one work on the items.
    pub role: Option<String>,
    /// Whether it argues for wrong answers.
    pub adversarial: bool,
    /// Sampling settings of its model.
    pub settings: Settings,
    /// The tools that it may call, by their names or by those of their toolkits; `None` allows all.
    pub tools: Option<Vec<String>>,
}

impl Member {
    /// Returns whether it takes no part ([`ABSENT`]).
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.role.as_deref() == Some(ABSENT)
    }
}

/// The conclusion of a team.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The answer; `None` when the team has none.
    pub answer: Option<String>,
}

/// The default team of a method, as in its paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DefaultTeam {
    /// Members.
    pub members: u32,
    /// Rounds.
    pub rounds: u32,
}

/// How a method's agents collaborate: the five dimensions of Tran et al., "Multi-Agent Collaboration Mechanisms: A Survey of LLMs",
/// 2025 (the first, the actors, is [`DefaultTeam`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Taxonomy {
    /// Whose goals they pursue: the survey's "type".
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Who hears whom.
    pub structure: Structure,
    /// What determines their actions.
    pub strategy: Strategy,
    /// Whether roles are fixed before the work or emerge from it.
    pub coordination: Coordination,
}

/// Whose goals agents pursue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // The words of the survey.
pub enum Kind {
    Cooperation,
    Competition,
    Coopetition,
}

/// Who hears whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // The words of the survey.
pub enum Structure {
    Single,
    Centralised,
    Decentralised,
    Hierarchical,
}

/// What determines the agents' actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // The words of the survey.
pub enum Strategy {
    Rule,
    Role,
    Model,
}

/// Whether roles are fixed before the work or emerge from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // The words of the survey.
pub enum Coordination {
    Static,
    Dynamic,
}

/// Facts of a method for lists, besides its card.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Facts {
    /// Its name in tables of results, if shorter.
    pub short: Option<&'static str>,
    /// Its default team.
    pub usual: DefaultTeam,
    /// Its form of collaboration, if declared.
    pub form: Option<Taxonomy>,
    /// Tools that it may use.
    pub tools: &'static [&'static str],
    /// The roles that members may have.
    pub roles: &'static [&'static str],
    /// What it measures for every item.
    pub quantities: &'static [Quantity],
    /// What it records.
    #[serde(skip)]
    pub records: &'static [Records],
    /// What it sends to models.
    #[serde(skip)]
    pub prompts: &'static [Prompt],
}

impl Facts {
    /// The five dimensions of [`Taxonomy`], by the survey's names.
    pub const DIMENSIONS: [&'static str; 5] = ["actors", "type", "structure", "strategy", "coordination"];

    /// Returns the method's value of one of the [dimensions](Facts::DIMENSIONS), as in JSON; for `actors`, the members of its
    /// default team. `None` if there is no such dimension, or if the method does not declare it.
    #[must_use]
    pub fn dimension(&self, name: &str) -> Option<String> {
        if name == "actors" {
            return Some(self.usual.members.to_string());
        }
        let declared = serde_json::to_value(self.form?).ok()?;
        declared.get(name)?.as_str().map(str::to_owned)
    }
}

/// A question to a member.
#[derive(Clone, Debug)]
pub struct Brief {
    /// The member that is asked.
    pub member: usize,
    /// The conversation.
    pub messages: Vec<ChatMessage>,
    /// The format of the answer.
    pub response_format: ResponseFormat,
    /// The kind of work.
    pub task: Task,
    /// Distinguishes samples of one member.
    pub sample: u32,
    /// The part of the item that is asked for ([`crate::items::ItemPart`]); `None` is the item itself.
    pub part: Option<String>,
}

impl Brief {
    /// Makes a question that asks to solve the item, first sample.
    #[must_use]
    pub fn new(member: usize, messages: Vec<ChatMessage>, response_format: ResponseFormat) -> Self {
        Brief { member, messages, response_format, task: Task::Solve, sample: 0, part: None }
    }

    /// Sets the kind of work.
    #[must_use]
    pub fn task(self, task: Task) -> Self {
        Brief { task, ..self }
    }

    /// Sets the sample.
    #[must_use]
    pub fn sample(self, sample: u32) -> Self {
        Brief { sample, ..self }
    }

    /// Sets the part of the item that is asked for.
    #[must_use]
    pub fn part(self, part: Option<String>) -> Self {
        Brief { part, ..self }
    }
}

/// A kind of act that a method records, e.g. a member's answer in a round.
#[derive(Clone, Copy, Debug)]
pub struct Records {
    /// Its name.
    pub name: &'static str,
    /// One line: what it means.
    pub doc: &'static str,
}

/// A quantity that a method measures for every item, e.g. the share of members that changed their minds. The last value measured
/// counts for an item. A run's metric is the mean over the items that have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantity {
    /// Its name, of the metric and of the column in the table of items: words with hyphens.
    pub name: &'static str,
    /// One line: what it means, with its unit.
    pub doc: &'static str,
}

/// A method by which a group works on a task together. This is the simplest method, a baseline for all others. `polity new method`
/// writes one that asks its members.
///
/// ```
/// use polity_kernel::method::{TeamContext, Method, Records, Verdict};
/// use polity_kernel::policy::Fault;
/// use polity_kernel::registry::{LeafFiles, Registry};
/// use polity_kernel::tree::Invalid;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Always {
///     /// What is answered, whatever is asked.
///     answer: String,
/// }
///
/// impl Method for Always {
///     const NAME: &'static str = "always";
///     const SUMMARY: &'static str = "The same answer to everything";
///     const RECORDS: &'static [Records] = &[Records { name: "answer", doc: "the answer" }];
///     type Params = Always;
///
///     fn open(method: Always, _: usize, _: u32) -> Result<Self, Invalid> {
///         Ok(method)
///     }
///     async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
///         context.record(0, 0, &self.answer);
///         context.end_round(&()).await?;
///         Ok(Verdict { answer: Some(self.answer.clone()) })
///     }
/// }
///
/// let mut registry = Registry::new();
/// registry.method::<Always>(LeafFiles::default());
/// assert_eq!(registry.method_named("always"), Some("always"));
/// ```
#[allow(async_fn_in_trait)] // Futures are polled in place and never leave their thread.
pub trait Method: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// The acts that it records. The first is the members' current answer, from which accuracy and agreement are measured.
    const RECORDS: &'static [Records];
    /// The quantities that it measures for every item, besides those of every method.
    const QUANTITIES: &'static [Quantity] = &[];
    /// Its name in tables of results (`sc`), if shorter. Command lines accept it, scenarios do not.
    const SHORT: Option<&'static str> = None;
    /// The default team.
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 3, rounds: 1 };
    /// How its agents collaborate.
    const TAXONOMY: Option<Taxonomy> = None;
    /// Tools that it may use, `tool/...`. A run reports before its start whether they are available.
    const TOOLS: &'static [&'static str] = &[];
    /// The roles that members may have. A scenario that gives another one is refused.
    const ROLES: &'static [&'static str] = &[];
    /// The texts that it sends to models ([`TeamContext::prompt`]). A scenario can change each of them.
    const PROMPTS: &'static [Prompt] = &[];
    /// What a scenario may set.
    type Params: DeserializeOwned + schemars::JsonSchema;

    /// Opens the method for teams of `members`, working `rounds` rounds; or returns what does not fit.
    fn open(params: Self::Params, members: usize, rounds: u32) -> Result<Self, Invalid>;

    /// Checks whether it can work on such an item.
    fn suits(item: &Item) -> Result<(), &'static str> {
        let _ = item;
        Ok(())
    }

    /// Checks whether it can work with this team, for instance whether members exist that its parameters name.
    ///
    /// # Errors
    /// What does not fit, with the key of its parameters.
    fn check_team(&self, team: &[Member]) -> Result<(), Invalid> {
        let _ = team;
        Ok(())
    }

    /// Returns why a member of the team can never act with these parameters; `None` if it can. A scenario that lists such a member is
    /// refused. Absent members are not asked about. By default members without a role act, and the first member of each role that is used.
    fn idle(&self, team: &[Member], member: usize) -> Option<String> {
        let role = team.get(member)?.role.as_deref()?;
        let unused = self.unused_role().filter(|(unused, _)| *unused == role);
        unused.map(|(_, why)| why.to_owned()).or_else(|| team::second_of_role(Self::NAME, team, member))
    }

    /// Returns a role that is not used with these parameters, and why: "`validate: false` asks no validator". By default all are.
    fn unused_role(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Does what is done once a run, before the first item, e.g. writing roles for a data set. Every item can read what it keeps
    /// ([`TeamContext::prepared`]), and no item begins before it has ended. Its questions are journaled, so that a resumed run does not ask
    /// them again; a change of the method's parameters does not repeat it. In the team of an agent it is done in every turn. May await
    /// only the context.
    async fn prepare(&self, context: &mut Preparation<'_>) -> Result<(), Fault> {
        let _ = context;
        Ok(())
    }

    /// Works on one item. May await only the context.
    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault>;
}

/// The log of a team in a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Log {
    pub acts: Actions,
    /// (from, to, text), in order.
    pub messages: Vec<(u32, u32, String)>,
    /// (quantity, value), in order.
    pub measured: Vec<(u16, f64)>,
}

/// The context in which a method works on one item.
#[derive(Debug)]
pub struct TeamContext<'a> {
    /// The item.
    pub item: &'a Item,
    /// The team.
    pub team: &'a [Member],
    /// Who can hear whom within the team.
    pub topology: &'a Topology,
    seed: u64,
    round: u32,
    restored: Option<Cow<'a, [u8]>>,
    prepared: Option<Cow<'a, [u8]>>,
    ask: Ask<'a>,
    log: Log,
    /// Logs of the rounds that ended during this run of the code.
    ended: Vec<(u32, Log)>,
    checkpoint: Option<Vec<u8>>,
    hold_at: Option<u32>,
    retries: u8,
    placebos: &'a [Placebo],
    faults: &'a [PlantedFault],
    /// Whether a planted fault has stopped the team.
    stopped: bool,
    /// Replies drawn by lot since the round began.
    lots: u32,
    /// The environment in which the team works, if any.
    environment: Option<&'a Env>,
    episode: Option<Episode>,
    toolbox: &'a Toolbox,
    /// What its tools have done so far.
    session: ToolSession,
    /// The agent of a society that the team acts for. All its questions are on behalf of the agent and belong to its turn.
    agent: Option<AgentId>,
    prompts: Arc<Prompts>,
    /// A prompt that was used but not listed: a fault of the method.
    unlisted: Cell<Option<&'static str>>,
}

/// Maximum number of samples of an agent's team. It keeps questions of two agents in the same words distinct.
const SAMPLES: u32 = 1 << 12;

impl<'a> TeamContext<'a> {
    /// Makes the context of a team that is an agent of a society, in its turn.
    pub(crate) fn of_agent(team: &'a Team, item: &'a Item, agent: AgentId, seed: u64, ask: Ask<'a>) -> Self {
        let Team { members, topology, retries, toolbox, .. } = team;
        let start = Start {
            item,
            team: members,
            topology,
            seed,
            round: 0,
            checkpoint: None,
            prepared: None,
            answers: &[],
            hold_at: None,
            retries: *retries,
            placebos: &[],
            faults: &[],
            environment: None,
            toolbox,
        };
        TeamContext { agent: Some(agent), ..TeamContext::at(start, ask) }
    }

    fn at(start: Start<'a>, ask: Ask<'a>) -> Self {
        let Start {
            item,
            team,
            topology,
            seed,
            round,
            checkpoint,
            prepared,
            hold_at,
            retries,
            placebos,
            faults,
            environment,
            toolbox,
            ..
        } = start;
        TeamContext {
            item,
            team,
            topology,
            seed,
            round,
            restored: checkpoint.map(Cow::Borrowed),
            prepared: prepared.map(Cow::Borrowed),
            ask,
            log: Log::default(),
            ended: Vec::new(),
            checkpoint: None,
            hold_at,
            retries,
            placebos,
            faults,
            stopped: false,
            lots: 0,
            environment,
            episode: None,
            toolbox,
            session: ToolSession::default(),
            agent: None,
            prompts: Arc::default(),
            unlisted: Cell::new(None),
        }
    }

    /// Whether checkpoints hold an episode or the state of tools.
    fn has_tools(&self) -> bool {
        self.environment.is_some() || !self.toolbox.is_empty()
    }

    /// Begins the episode of the item and the session of its tools, or restores them from the checkpoint.
    fn begin_episode(&mut self) -> Result<(), Bug> {
        if !self.has_tools() {
            return Ok(());
        }
        self.episode = self.environment.map(|environment| environment.begin(self.item, self.seed, self.item.index));
        if let Some(bytes) = &self.restored {
            let wrong = |error: postcard::Error| Bug::Snapshot { what: "a checkpoint".into(), why: error.to_string() };
            let (mark, state): (ToolMark, Vec<u8>) = postcard::from_bytes(bytes).map_err(wrong)?;
            self.resume_tools(mark)?;
            self.restored = Some(Cow::Owned(state));
        }
        Ok(())
    }

    /// Returns the actor in whose name `actor` of the team asks.
    fn name_of(&self, actor: u32) -> u32 {
        self.agent.unwrap_or(actor)
    }
}

impl TeamContext<'_> {
    /// Returns the current round, from 0.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Returns the state that the last [`TeamContext::end_round`] saved; `None` at the start. Call it once, first.
    pub fn restore<T: DeserializeOwned>(&self) -> Result<Option<T>, Fault> {
        match &self.restored {
            None => Ok(None),
            Some(bytes) => match postcard::from_bytes(bytes) {
                Ok(state) => Ok(Some(state)),
                Err(e) => Err(Fault(format!("the method's checkpoint cannot be read: {e}"))),
            },
        }
    }

    /// Ends the round and saves `state`: from now on the method resumes here when it runs again.
    pub async fn end_round<T: Serialize>(&mut self, state: &T) -> Result<(), Fault> {
        if self.stops_here() {
            self.stopped = true;
            std::future::pending::<()>().await;
        }
        let kept = |e: postcard::Error| Fault(format!("the method's state cannot be saved: {e}"));
        let mut bytes = postcard::to_allocvec(state).map_err(kept)?;
        if self.has_tools() {
            bytes = postcard::to_allocvec(&(self.mark()?, bytes)).map_err(kept)?;
        }
        self.checkpoint = Some(bytes);
        self.ended.push((self.round, std::mem::take(&mut self.log)));
        self.round += 1;
        self.lots = 0;
        if self.agent.is_none() {
            self.ask.set_round(self.round);
        }
        if self.hold_at == Some(self.round) {
            // The scenario changes after this round: the rest of the method runs with the new parameters.
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    /// Returns the episode of the item, if the scenario names an environment.
    pub fn episode(&mut self) -> Option<&mut Episode> {
        self.episode.as_mut()
    }

    /// Returns the same to look at.
    #[must_use]
    pub fn episode_ref(&self) -> Option<&Episode> {
        self.episode.as_ref()
    }

    /// Returns the members that `member` hears, in order.
    #[must_use]
    pub fn hears(&self, member: usize) -> Vec<usize> {
        self.topology.neighbours(member as u32).map(|other| other as usize).collect()
    }

    /// Returns random numbers of this item and round, for choices of the method itself.
    #[must_use]
    pub fn draws(&self) -> Draws {
        Draws::new(self.seed, Stream::Method, self.round, self.item.index)
    }

    /// Returns the members that work on the item: those without a role.
    #[must_use]
    pub fn workers(&self) -> Vec<usize> {
        prepare::workers(self.team)
    }

    /// Returns the first member with that role, else the first member who is not absent.
    #[must_use]
    pub fn cast(&self, role: &str) -> usize {
        prepare::cast(self.team, role)
    }

    /// Asks members together. Answers are in the order of the questions. A question with an unusable reply is asked again as often
    /// as the scenario says (`max_retries`).
    pub async fn ask_all(&mut self, briefs: Vec<Brief>) -> Vec<Reply> {
        let mut works = Vec::with_capacity(briefs.len());
        let mut questions = Vec::with_capacity(briefs.len());
        for brief in briefs {
            let (Brief { member, messages, response_format, task, sample, part }, course) = self.misled(brief);
            works.push((member, task, response_format.clone(), course));
            let times = match course {
                Course::Once => 1,
                Course::Twice => 2,
                Course::Skipped => continue,
            };
            let question = self.question(Brief { member, messages, response_format, task, sample, part });
            questions.extend(std::iter::repeat_n((self.name_of(member as u32), question), times));
        }
        let mut heard = self.ask.ask_all(questions).await.into_iter();
        let mut replies = Vec::with_capacity(works.len());
        for (member, task, form, course) in works {
            let missing = || Err(AskError::Failed("no answer was recorded".into()));
            let reply = match course {
                Course::Once => heard.next().unwrap_or_else(missing),
                Course::Twice => heard.nth(1).unwrap_or_else(missing),
                Course::Skipped => Ok(passing(&form)),
            };
            let reply = match reply {
                Ok(value) if !self.placebos.is_empty() => {
                    Ok(placebo::blinded(self.placebos, task, &form, value, &mut self.lot()))
                }
                reply => reply,
            };
            replies.push(self.misheard(member, task, reply));
        }
        replies
    }

    /// Makes the question of a brief, with what a simulated or recorded model may know about it.
    fn question(&self, Brief { member, messages, response_format, task, sample, part }: Brief) -> Question {
        let asked = self.team.get(member);
        let task = match task {
            Task::Solve if asked.is_some_and(|asked| asked.adversarial) => Task::Mislead,
            task => task,
        };
        let reads = messages.iter().flat_map(|m| &m.parts).any(|part| !matches!(part, Part::Text(_)));
        let (nth, sample) = (
            sample,
            self.agent.map_or(0, |agent| agent.wrapping_mul(SAMPLES))
                + (member as u32 + sample * self.team.len() as u32),
        );
        let mut request = Request {
            settings: asked.map_or(Settings::default(), |m| m.settings),
            sample,
            purpose: if reads && task == Task::Solve { "reconsider" } else { task.name() }.into(),
            ..Request::new(asked.map_or("", |m| m.model.as_str()), messages, response_format)
        };
        if task == Task::Solve && self.placebos.contains(&Placebo::Said) {
            placebo::unsaid(&mut request);
        }
        let hidden = match &part {
            Some(part) => self.item.hidden_part(part, task),
            None => self.hidden(member, nth, task, &request),
        };
        let hidden = self.deluded(member, task, &request, hidden);
        Question::new(request).hidden(hidden).retries(self.retries)
    }

    /// Returns random numbers for the next reply that is drawn by lot.
    fn lot(&mut self) -> Draws {
        self.lots += 1;
        // Apart from the method's own choices.
        let seed = self.seed ^ RowHash::new(digest::Kind::Request, self.lots).finish() as u64;
        Draws::new(seed, Stream::Method, self.round, self.item.index)
    }

    /// What a simulated or recorded model may know about a question to a member. Members with one recorded model share its samples.
    fn hidden(&self, member: usize, nth: u32, task: Task, request: &Request) -> Option<Hidden> {
        let hidden = self.item.hidden(task);
        let (Some(recording), Some(model)) = (&self.item.recording, recorded_model(&request.model)) else {
            return hidden;
        };
        let same = |members: &[Member]| members.iter().filter(|other| other.model == *request.model).count() as u32;
        // A judge asked in both orders is asked for the first time in each.
        let nth = if self.item.pair && in_other_order(request) { nth.saturating_sub(1) } else { nth };
        let sample = nth * same(self.team) + same(self.team.get(..member).unwrap_or_default());
        let Item { id, pair, .. } = self.item;
        let other = self.placebos.contains(&Placebo::Items).then(|| recording.other(id, model)).flatten();
        let item = other.unwrap_or(id);
        let lookup = Lookup { item, pair: *pair, model, sample, round: self.round, task, request };
        let recorded = Some(recording.answer(&lookup));
        Some(Hidden { task, recorded, ..hidden.unwrap_or_default() })
    }

    /// Asks one member.
    pub async fn ask(&mut self, brief: Brief) -> Reply {
        self.ask_all(vec![brief]).await.pop().unwrap_or_else(|| Err(AskError::Failed("no answer was recorded".into())))
    }

    /// Asks a member for a value of a Rust type, which replaces the format of the brief. A type that cannot be asked for
    /// ([`ResponseFormat::of`]) is a fault of the method.
    pub async fn ask_as<T: JsonSchema + DeserializeOwned>(
        &mut self,
        brief: Brief,
    ) -> Result<Result<T, AskError>, Fault> {
        let response_format = ResponseFormat::of::<T>().map_err(Fault)?;
        let heard = self.ask(Brief { response_format: response_format.clone(), ..brief }).await;
        Ok(typed(heard, &response_format))
    }

    /// Returns the last round in which the method did something. A round in which nothing has happened yet does not count.
    fn last_round(&self) -> u32 {
        let busy = self.log != Log::default() || self.ask.has_asked() || self.round == 0;
        if busy { self.round } else { self.round - 1 }
    }

    /// Records an act of a member; `kind` is an index into the method's `RECORDS`.
    pub fn record(&mut self, member: usize, kind: u16, text: impl Into<String>) {
        self.log.acts.push(Action { who: member as u32, kind, value: 0.0 }, Some(text.into()));
    }

    /// Measures a quantity of the item in this round, given an index into the method's `QUANTITIES` and a finite value.
    pub fn measure(&mut self, quantity: u16, value: f64) {
        self.log.measured.push((quantity, value));
    }

    /// Measures the share of `n` in `of`. If `of` is 0, nothing is measured.
    pub fn measure_share(&mut self, quantity: u16, n: usize, of: usize) {
        if of > 0 {
            self.measure(quantity, n as f64 / of as f64);
        }
    }

    /// Records that one member's words were shown to another.
    pub fn tell(&mut self, from: usize, to: usize, text: impl Into<String>) {
        self.log.messages.push((from as u32, to as u32, text.into()));
    }
}

/// How a run of a method's code ended.
pub(crate) struct Worked {
    pub verdict: Option<(Verdict, Score)>,
    /// Ended rounds with their logs. A finished method's last, open round is included if anything happened in it.
    pub ended: Vec<(u32, Log)>,
    pub round: u32,
    pub checkpoint: Option<Vec<u8>>,
    /// Questions without answers; empty for a finished or paused method.
    pub wanted: Vec<Effect>,
    /// The last round in which the method did something, once it has ended and only its score is open.
    pub scoring: Option<u32>,
}

/// The inputs of a method.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub item: &'a Item,
    pub team: &'a [Member],
    pub topology: &'a Topology,
    pub seed: u64,
    pub round: u32,
    pub checkpoint: Option<&'a [u8]>,
    /// What the method prepared for all items.
    pub prepared: Option<&'a [u8]>,
    pub answers: &'a [Answer],
    pub hold_at: Option<u32>,
    /// How often a member is asked again when its reply is unusable.
    pub retries: u8,
    /// What carries no information.
    pub placebos: &'a [Placebo],
    /// What goes wrong on purpose.
    pub faults: &'a [PlantedFault],
    /// The environment in which the team works, if any.
    pub environment: Option<&'a Env>,
    /// The tools of the scenario.
    pub toolbox: &'a Toolbox,
}

/// A method with its type erased. Called once per run of its code.
pub(crate) trait MethodHost: Send + Sync {
    /// Does what is done once a run.
    fn prepare(&self, whole: Whole<'_>) -> Result<Prepared, Bug>;
    fn run(&self, start: Start<'_>) -> Result<Worked, Bug>;
    /// Works on one item as part of another computation, which waits for it.
    fn work<'a>(
        &'a self,
        context: &'a mut TeamContext<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Verdict, Fault>> + 'a>>;
    fn records(&self) -> &'static [Records];
    fn quantities(&self) -> &'static [Quantity];
    fn tools(&self) -> &'static [&'static str];
    fn suits(&self, item: &Item) -> Result<(), &'static str>;
    fn check_team(&self, team: &[Member]) -> Result<(), Invalid>;
    fn idle(&self, team: &[Member], member: usize) -> Option<String>;
}

pub(crate) struct Host<M: Method> {
    pub method: M,
    pub prompts: Arc<Prompts>,
}

impl<M: Method> MethodHost for Host<M> {
    fn prepare(&self, whole: Whole<'_>) -> Result<Prepared, Bug> {
        prepare::prepare(&self.method, &self.prompts, whole)
    }

    fn run(&self, start: Start<'_>) -> Result<Worked, Bug> {
        let Start { item, round, answers, hold_at, .. } = start;
        let mut book = Book::default();
        let ask = Ask::new(Asker::Member, item.index, round, answers, &mut book);
        let mut context = TeamContext { prompts: self.prompts.clone(), ..TeamContext::at(start, ask) };
        context.begin_episode()?;
        let mut last = None;
        let done = poll_once(async {
            let verdict = match poll_once(self.method.run(&mut context)) {
                Some(verdict) => verdict?,
                None if context.stopped => Verdict { answer: context.standing() },
                None => std::future::pending().await,
            };
            last = Some(context.last_round());
            let score = context.scored(&verdict).await;
            Ok::<_, Fault>((verdict, score))
        });
        let TeamContext { round, ask, log, mut ended, checkpoint, unlisted, .. } = context;
        let wanted = ask.close()?;
        let bug = |message: String| Bug::Method { item: item.index, round, message };
        if let Some(name) = unlisted.get() {
            return Err(bug(prompts::unlisted(name)));
        }
        let mut measured = ended.iter().flat_map(|(_, log)| &log.measured).chain(&log.measured);
        if let Some((quantity, value)) = measured.find(|(_, value)| !value.is_finite()) {
            let name = M::QUANTITIES.get(usize::from(*quantity)).map_or("a quantity", |quantity| quantity.name);
            return Err(bug(format!("it measured `{name}` as {value}, which is not a finite number")));
        }
        match done {
            Some(Ok((verdict, score))) => {
                if last == Some(round) {
                    ended.push((round, log));
                }
                let verdict = Some((verdict, score));
                Ok(Worked { verdict, ended, round, checkpoint, wanted: Vec::new(), scoring: None })
            }
            Some(Err(fault)) => Err(bug(fault.0)),
            None if wanted.is_empty() && hold_at != Some(round) => {
                Err(bug("the method awaits something other than its own context".into()))
            }
            None => Ok(Worked { verdict: None, ended, round, checkpoint, wanted, scoring: last }),
        }
    }

    fn work<'a>(
        &'a self,
        context: &'a mut TeamContext<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Verdict, Fault>> + 'a>> {
        Box::pin(async move {
            context.prompts = self.prompts.clone();
            context.prepare_alone(&self.method).await?;
            let verdict = self.method.run(context).await?;
            match context.unlisted.get() {
                Some(name) => Err(Fault(prompts::unlisted(name))),
                None => Ok(verdict),
            }
        })
    }

    fn records(&self) -> &'static [Records] {
        M::RECORDS
    }

    fn quantities(&self) -> &'static [Quantity] {
        M::QUANTITIES
    }

    fn tools(&self) -> &'static [&'static str] {
        M::TOOLS
    }

    fn suits(&self, item: &Item) -> Result<(), &'static str> {
        M::suits(item)
    }

    fn check_team(&self, team: &[Member]) -> Result<(), Invalid> {
        self.method.check_team(team)
    }

    fn idle(&self, team: &[Member], member: usize) -> Option<String> {
        self.method.idle(team, member)
    }
}
