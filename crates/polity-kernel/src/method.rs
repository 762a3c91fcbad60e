//! Methods: how a team works on a task together.
//!
//! A method is straight-line code over a [`Desk`]: ask these members, tell that one, close the round. It is run again from its last
//! checkpoint with the answers so far whenever some have come, and never kept as a future.

use crate::Bug;
use crate::ask::schema::typed;
use crate::ask::tool::Ran;
use crate::ask::{Answer, Asker, Effect, Heard, Message, Part, Request, Settings, Task, Unanswered, Want};
use crate::door::{Ask, Book, Door, one, poll_once};
pub use crate::items::same_answer;
use crate::items::{Item, Scorer, Tested, judged};
use crate::policy::Fault;
use crate::rng::{Draws, Stream};
use crate::sight::{Act, Acts};
use crate::topology::Topology;
use crate::tree::Invalid;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its name, as others hear it.
    pub name: String,
    /// `provider/model`.
    pub model: String,
    /// Standing instructions; may be empty.
    pub persona: String,
    /// Its place in the method, where that has places of their own; members without one work on the items.
    pub role: Option<String>,
    /// Whether it argues for wrong answers.
    pub misleads: bool,
    /// How its model is to sample.
    pub settings: Settings,
}

/// What a team concludes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The answer; `None` when the team has none.
    pub answer: Option<String>,
}

/// What an answer is worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// What was read in it: what stands there for the answer itself.
    pub extracted: Option<String>,
    /// Whether it is right; `None` where nobody can tell.
    pub correct: Option<bool>,
    /// What its tests or its judge said, where there are such.
    pub note: Option<String>,
}

/// The team that a method works with where nothing else is said, as its paper has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Usual {
    /// Members.
    pub members: u32,
    /// Rounds.
    pub rounds: u32,
}

/// How a method's agents collaborate: the five dimensions of Tran et al., "Multi-Agent Collaboration Mechanisms: A Survey of LLMs", 2025 (the
/// actors are the first: [`Usual`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Form {
    /// Whose goals they have.
    pub kind: Kind,
    /// Who hears whom.
    pub structure: Structure,
    /// What tells them what to do.
    pub strategy: Strategy,
    /// Whether who does what is settled before the work or by it.
    pub coordination: Coordination,
}

/// Whose goals agents have.
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

/// What tells agents what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // The words of the survey.
pub enum Strategy {
    Rule,
    Role,
    Model,
}

/// Whether who does what is settled before the work or by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // The words of the survey.
pub enum Coordination {
    Static,
    Dynamic,
}

/// What a list says of a method besides its card.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Facts {
    /// What tables of results call it, where that is shorter than its name.
    pub short: Option<&'static str>,
    /// Its usual team.
    pub usual: Usual,
    /// Its form of collaboration, where that is declared.
    pub form: Option<Form>,
    /// Tools that it may ask.
    pub tools: &'static [&'static str],
    /// What it measures of every item.
    pub quantities: &'static [Quantity],
    /// What it records.
    #[serde(skip)]
    pub records: &'static [Records],
}

/// A question to a member.
#[derive(Clone, Debug)]
pub struct Brief {
    /// Whom it is put to.
    pub member: usize,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The kind of answer wanted.
    pub want: Want,
    /// What kind of work it is.
    pub task: Task,
    /// Tells several samples of one member apart.
    pub sample: u32,
}

impl Brief {
    /// A question to solve the item, the first sample.
    #[must_use]
    pub fn new(member: usize, messages: Vec<Message>, want: Want) -> Self {
        Brief { member, messages, want, task: Task::Solve, sample: 0 }
    }

    /// The same as another kind of work.
    #[must_use]
    pub fn task(self, task: Task) -> Self {
        Brief { task, ..self }
    }

    /// The same as another sample.
    #[must_use]
    pub fn sample(self, sample: u32) -> Self {
        Brief { sample, ..self }
    }
}

/// A kind of act that a method records, e.g. a member's answer of a round.
#[derive(Clone, Copy, Debug)]
pub struct Records {
    /// Its name.
    pub name: &'static str,
    /// One line: what it means.
    pub doc: &'static str,
}

/// A quantity that a method measures of every item, e.g. the share of members that changed their minds. An item's value is the last one
/// that was measured; in a run's metrics it is the mean over the items that have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantity {
    /// Its name: of the metric and of the column in the table of items, in words with hyphens.
    pub name: &'static str,
    /// One line: what it means, with its unit.
    pub doc: &'static str,
}

/// How a group works on a task together.
#[allow(async_fn_in_trait)] // Futures are polled in place and never leave their thread.
pub trait Method: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What it records. The first is the members' standing answer, which accuracy and agreement are measured on.
    const RECORDS: &'static [Records];
    /// What it measures of every item, besides what is measured of every method.
    const QUANTITIES: &'static [Quantity] = &[];
    /// What tables of results call it (`sc`), where that is shorter; command lines understand it, scenarios do not.
    const SHORT: Option<&'static str> = None;
    /// The team that it works with where nothing else is said.
    const USUAL: Usual = Usual { members: 3, rounds: 1 };
    /// How its agents collaborate.
    const FORM: Option<Form> = None;
    /// Tools that it may ask, `tool/...`: a run says before its start whether they can be had.
    const TOOLS: &'static [&'static str] = &[];
    /// What a scenario may set.
    type Params: DeserializeOwned + schemars::JsonSchema;

    /// Opens the method for teams of `members`, working `rounds` rounds, or says what does not fit.
    fn open(params: Self::Params, members: usize, rounds: u32) -> Result<Self, Invalid>;

    /// Whether it can work on such an item; if not, what it needs.
    fn suits(item: &Item) -> Result<(), &'static str> {
        let _ = item;
        Ok(())
    }

    /// Works on one item. May await only the desk.
    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault>;
}

/// What a team did in a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Log {
    pub acts: Acts,
    /// (from, to, text), in order.
    pub letters: Vec<(u32, u32, String)>,
    /// (quantity, value), in order.
    pub measured: Vec<(u16, f64)>,
}

/// Where a method works on one item.
#[derive(Debug)]
pub struct Desk<'a> {
    /// The item.
    pub item: &'a Item,
    /// The team.
    pub team: &'a [Member],
    /// Who can hear whom within the team.
    pub topology: &'a Topology,
    seed: u64,
    round: u32,
    restored: Option<&'a [u8]>,
    door: Door<'a>,
    log: Log,
    /// Logs of the rounds that ended during this run of the code.
    ended: Vec<(u32, Log)>,
    checkpoint: Option<Vec<u8>>,
    hold_at: Option<u32>,
}

impl Desk<'_> {
    /// The round under way, from 0.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.round
    }

    /// The state that the last [`Desk::end_round`] kept; `None` at the start. Call it once, first.
    pub fn restore<T: DeserializeOwned>(&self) -> Result<Option<T>, Fault> {
        match self.restored {
            None => Ok(None),
            Some(bytes) => match postcard::from_bytes(bytes) {
                Ok(state) => Ok(Some(state)),
                Err(e) => Err(Fault(format!("the method's checkpoint can not be read: {e}"))),
            },
        }
    }

    /// Ends the round and keeps `state`: from now on the method starts here when it is run again.
    pub async fn end_round<T: Serialize>(&mut self, state: &T) -> Result<(), Fault> {
        let bytes =
            postcard::to_allocvec(state).map_err(|e| Fault(format!("the method's state can not be kept: {e}")))?;
        self.checkpoint = Some(bytes);
        self.ended.push((self.round, std::mem::take(&mut self.log)));
        self.round += 1;
        self.door.set_round(self.round);
        if self.hold_at == Some(self.round) {
            // The scenario changes at this border: the rest of the method runs with the new parameters.
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    /// Whom `member` hears, in order.
    #[must_use]
    pub fn hears(&self, member: usize) -> Vec<usize> {
        self.topology.neighbours(member as u32).map(|other| other as usize).collect()
    }

    /// Random numbers of this item and round, for choices that the method makes itself.
    #[must_use]
    pub fn draws(&self) -> Draws {
        Draws::new(self.seed, Stream::Desk, self.round, self.item.index)
    }

    /// The members that work on the item: those without a place of their own.
    #[must_use]
    pub fn workers(&self) -> Vec<usize> {
        (0..self.team.len()).filter(|i| self.team[*i].role.is_none()).collect()
    }

    /// Who has a place in the method: the first member with that role, else the first member.
    #[must_use]
    pub fn cast(&self, role: &str) -> usize {
        self.team.iter().position(|member| member.role.as_deref() == Some(role)).unwrap_or(0)
    }

    /// Asks members together. The answers come in the order asked.
    pub async fn ask_all(&mut self, briefs: Vec<Brief>) -> Vec<Heard> {
        let asks = briefs
            .into_iter()
            .map(|Brief { member, messages, want, task, sample }| {
                let asked = self.team.get(member);
                let task = match task {
                    Task::Solve if asked.is_some_and(|asked| asked.misleads) => Task::Mislead,
                    task => task,
                };
                let reads = messages.iter().flat_map(|m| &m.parts).any(|part| !matches!(part, Part::Text(_)));
                let request = Request {
                    settings: asked.map_or(Settings::default(), |m| m.settings),
                    sample: member as u32 + sample * self.team.len() as u32,
                    purpose: if reads && task == Task::Solve { "reconsider" } else { task.name() }.into(),
                    ..Request::new(asked.map_or("", |m| m.model.as_str()), messages, want)
                };
                Ask { actor: member as u32, request, hidden: self.item.hidden(task), default: None }
            })
            .collect();
        self.door.ask_all(asks).await
    }

    /// Asks one member.
    pub async fn ask(&mut self, brief: Brief) -> Heard {
        one(self.ask_all(vec![brief]).await)
    }

    /// Asks a member for a value of a Rust type, which the brief's want is replaced by. A type that can not be asked for ([`Want::of`]) is a
    /// fault of the method.
    pub async fn ask_as<T: JsonSchema + DeserializeOwned>(
        &mut self,
        brief: Brief,
    ) -> Result<Result<T, Unanswered>, Fault> {
        let want = Want::of::<T>().map_err(Fault)?;
        let heard = self.ask(Brief { want: want.clone(), ..brief }).await;
        Ok(typed(heard, &want))
    }

    /// The last round in which the method did something: one that was begun, and in which nothing happened, is none.
    fn last_round(&self) -> u32 {
        let busy = self.log != Log::default() || self.door.has_asked() || self.round == 0;
        if busy { self.round } else { self.round - 1 }
    }

    /// What an answer is worth. What is asked for that is asked in the method's last round ([`Asker::Scorer`]).
    async fn scored(&mut self, verdict: &Verdict) -> Score {
        let Some(answer) = &verdict.answer else {
            return Score { correct: self.item.gold.as_ref().map(|_| false), ..Score::default() };
        };
        let extracted = self.item.extracted(answer);
        let scorer = self.team.len() as u32 + 1;
        self.door.set_round(self.last_round());
        if let Some(request) = self.item.to_judge(answer) {
            let hidden = self.item.hidden(Task::Check);
            let ask = Ask { actor: scorer, request, hidden, default: None };
            let heard = one(self.door.ask_for(Asker::Scorer, vec![ask]).await);
            return match heard.as_ref().map(judged) {
                Ok(Some((right, why))) => Score { extracted, correct: Some(right), note: Some(why.into()) },
                Ok(None) => {
                    Score { extracted, correct: None, note: Some("the judge said neither right nor wrong".into()) }
                }
                Err(why) => Score { extracted, correct: None, note: Some(why.to_string()) },
            };
        }
        let Some(program) = self.item.program.as_ref().filter(|_| self.item.scorer == Scorer::Code) else {
            return Score { extracted, correct: self.item.is_right(answer), note: None };
        };
        let ran = self.test_for(Asker::Scorer, scorer, &program.scored(answer)).await;
        let note = match &ran {
            Ok(Ran { ended, errors, .. }) => {
                let last = errors.trim().lines().last().map(|line| format!(": {line}"));
                format!("{}{}", ended.name(), last.unwrap_or_default())
            }
            Err(why) => why.to_string(),
        };
        // Whose tests could not be run is neither right nor wrong.
        Score { extracted, correct: ran.ok().map(|ran| ran.is_right()), note: Some(note) }
    }

    /// Runs a Python program with its tests in the sandbox ([`Ran::PYTHON`]). Who asks is the method ([`Asker::Method`]).
    pub async fn test(&mut self, tested: &Tested) -> Result<Ran, Unanswered> {
        self.test_for(Asker::Method, self.team.len() as u32, tested).await
    }

    async fn test_for(&mut self, asker: Asker, actor: u32, tested: &Tested) -> Result<Ran, Unanswered> {
        let request = Request { purpose: "run".into(), ..Ran::tested(tested) };
        let ask = Ask { actor, request, hidden: None, default: None };
        let value = one(self.door.ask_for(asker, vec![ask]).await)?;
        Ran::read(&value).map_err(|why| Unanswered::Invalid { raw: format!("{value:?}"), why })
    }

    /// Records an act of a member: kind is an index into the method's `RECORDS`.
    pub fn record(&mut self, member: usize, kind: u16, text: impl Into<String>) {
        self.log.acts.push(Act { who: member as u32, kind, value: 0.0 }, Some(text.into()));
    }

    /// Measures a quantity of the item in this round: an index into the method's `QUANTITIES`, and a finite value.
    pub fn measure(&mut self, quantity: u16, value: f64) {
        self.log.measured.push((quantity, value));
    }

    /// Measures a share of so many; of none there is none, and nothing is measured.
    pub fn measure_share(&mut self, quantity: u16, n: usize, of: usize) {
        if of > 0 {
            self.measure(quantity, n as f64 / of as f64);
        }
    }

    /// Records that one member's words were shown to another.
    pub fn tell(&mut self, from: usize, to: usize, text: impl Into<String>) {
        self.log.letters.push((from as u32, to as u32, text.into()));
    }
}

/// How a run of a method's code ended.
pub(crate) struct Worked {
    pub verdict: Option<(Verdict, Score)>,
    /// Rounds that ended, with what happened in them; a finished method's last, open round is among them if anything happened.
    pub ended: Vec<(u32, Log)>,
    pub round: u32,
    pub checkpoint: Option<Vec<u8>>,
    /// Questions that wait for answers; none for a finished method and for one that is held.
    pub wanted: Vec<Effect>,
    /// The last round in which the method did something, once it has ended and only its score is waited for.
    pub scoring: Option<u32>,
}

/// Everything a method starts from.
pub(crate) struct Start<'a> {
    pub item: &'a Item,
    pub team: &'a [Member],
    pub topology: &'a Topology,
    pub seed: u64,
    pub round: u32,
    pub checkpoint: Option<&'a [u8]>,
    pub answers: &'a [Answer],
    pub hold_at: Option<u32>,
}

/// A method with its type erased; called once a run of its code.
pub(crate) trait MethodHost: Send + Sync {
    fn run(&self, start: Start<'_>) -> Result<Worked, Bug>;
    fn records(&self) -> &'static [Records];
    fn quantities(&self) -> &'static [Quantity];
    fn tools(&self) -> &'static [&'static str];
    fn suits(&self, item: &Item) -> Result<(), &'static str>;
}

pub(crate) struct Host<M: Method>(pub M);

impl<M: Method> MethodHost for Host<M> {
    fn run(&self, start: Start<'_>) -> Result<Worked, Bug> {
        let Start { item, team, topology, seed, round, checkpoint, answers, hold_at } = start;
        let mut book = Book::default();
        let mut desk = Desk {
            item,
            team,
            topology,
            seed,
            round,
            restored: checkpoint,
            door: Door::new(Asker::Member, item.index, round, answers, &mut book),
            log: Log::default(),
            ended: Vec::new(),
            checkpoint: None,
            hold_at,
        };
        let mut last = None;
        let done = poll_once(async {
            let verdict = self.0.run(&mut desk).await?;
            last = Some(desk.last_round());
            let score = desk.scored(&verdict).await;
            Ok::<_, Fault>((verdict, score))
        });
        let Desk { round, door, log, mut ended, checkpoint, .. } = desk;
        let wanted = door.close()?;
        let bug = |message: String| Bug::Method { item: item.index, round, message };
        let mut measured = ended.iter().flat_map(|(_, log)| &log.measured).chain(&log.measured);
        if let Some((quantity, value)) = measured.find(|(_, value)| !value.is_finite()) {
            let name = M::QUANTITIES.get(usize::from(*quantity)).map_or("a quantity", |quantity| quantity.name);
            return Err(bug(format!("it measured `{name}` as {value}, which is no number to go on with")));
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
                Err(bug("the method awaits something that is not its own desk".into()))
            }
            None => Ok(Worked { verdict: None, ended, round, checkpoint, wanted, scoring: last }),
        }
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
}
