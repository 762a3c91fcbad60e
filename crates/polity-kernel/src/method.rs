//! Methods: how a team works on a task together.
//!
//! A method is straight-line code over a [`Desk`]: ask these members, tell that one, close the round. It is run again from its last
//! checkpoint with the answers so far whenever some have come, and never kept as a future.

use crate::Bug;
use crate::ask::schema::typed;
use crate::ask::{Answer, Effect, Heard, Hidden, Message, Request, Settings, Unanswered, Want};
use crate::door::{Ask, Book, Door, poll_once};
use crate::policy::Fault;
use crate::rng::{Draws, Stream};
use crate::sight::{Act, Acts};
use crate::topology::Topology;
use crate::tree::Invalid;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// An item of a data set, as a team is given it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Row of the data set.
    pub index: u32,
    /// The question.
    pub question: String,
    /// The right answer, where the data set names one; for scoring and for simulated models, never for a prompt.
    pub gold: Option<String>,
    /// Difficulty on the scale of the simulated models' skill.
    pub difficulty: f64,
    /// The tempting wrong answer, where the data set names one.
    pub lure: Option<String>,
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its name, as others hear it.
    pub name: String,
    /// `provider/model`.
    pub model: String,
    /// Standing instructions; may be empty.
    pub persona: String,
    /// How its model is to sample.
    pub settings: Settings,
}

/// What a team concludes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The answer; `None` when the team has none.
    pub answer: Option<String>,
}

/// A kind of act that a method records, e.g. a member's answer of a round.
pub struct Records {
    /// Its name.
    pub name: &'static str,
    /// One line: what it means.
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
    /// What a scenario may set.
    type Params: DeserializeOwned + schemars::JsonSchema;

    /// Opens the method for teams of `members`, working `rounds` rounds, or says what does not fit.
    fn open(params: Self::Params, members: usize, rounds: u32) -> Result<Self, Invalid>;

    /// Works on one item. May await only the desk.
    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault>;
}

/// What a team did in a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Log {
    pub acts: Acts,
    /// (from, to, text), in order.
    pub letters: Vec<(u32, u32, String)>,
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

    /// Asks members together: (member, conversation, wanted). The answers come in the order asked.
    pub async fn ask_all(&mut self, asks: Vec<(usize, Vec<Message>, Want)>) -> Vec<Heard> {
        let hidden = self.item.gold.as_ref().map(|gold| Hidden {
            gold: gold.clone(),
            difficulty: self.item.difficulty,
            lure: self.item.lure.clone(),
        });
        let asks = asks
            .into_iter()
            .map(|(member, messages, want)| {
                let model = self.team.get(member).map_or(String::new(), |m| m.model.clone());
                let settings = self.team.get(member).map_or(Settings::default(), |m| m.settings);
                let request = Request { settings, sample: member as u32, ..Request::new(model, messages, want) };
                Ask { actor: member as u32, request, hidden: hidden.clone(), default: None }
            })
            .collect();
        self.door.ask_all(asks).await
    }

    /// Asks a member for a value of a Rust type. A type that can not be asked for ([`Want::of`]) is a fault of the method.
    pub async fn ask_as<T: JsonSchema + DeserializeOwned>(
        &mut self,
        member: usize,
        messages: Vec<Message>,
    ) -> Result<Result<T, Unanswered>, Fault> {
        let want = Want::of::<T>().map_err(Fault)?;
        let heard = self.ask_all(vec![(member, messages, want.clone())]).await.pop();
        let none = || Err(Unanswered::Failed("no answer was recorded".into()));
        Ok(typed(heard.unwrap_or_else(none), &want))
    }

    /// Records an act of a member: kind is an index into the method's `RECORDS`.
    pub fn record(&mut self, member: usize, kind: u16, text: impl Into<String>) {
        self.log.acts.push(Act { who: member as u32, kind, value: 0.0 }, Some(text.into()));
    }

    /// Records that one member's words were shown to another.
    pub fn tell(&mut self, from: usize, to: usize, text: impl Into<String>) {
        self.log.letters.push((from as u32, to as u32, text.into()));
    }
}

/// How a run of a method's code ended.
pub(crate) struct Ran {
    pub verdict: Option<Verdict>,
    /// Rounds that ended, with what happened in them; a finished method's last, open round is among them if anything happened.
    pub ended: Vec<(u32, Log)>,
    pub round: u32,
    pub checkpoint: Option<Vec<u8>>,
    /// Questions that wait for answers; none for a finished method and for one that is held.
    pub wanted: Vec<Effect>,
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
    fn run(&self, start: Start<'_>) -> Result<Ran, Bug>;
    fn records(&self) -> &'static [Records];
}

pub(crate) struct Host<M: Method>(pub M);

impl<M: Method> MethodHost for Host<M> {
    fn run(&self, start: Start<'_>) -> Result<Ran, Bug> {
        let Start { item, team, topology, seed, round, checkpoint, answers, hold_at } = start;
        let mut book = Book::default();
        let mut desk = Desk {
            item,
            team,
            topology,
            seed,
            round,
            restored: checkpoint,
            door: Door::new(item.index, round, answers, &mut book),
            log: Log::default(),
            ended: Vec::new(),
            checkpoint: None,
            hold_at,
        };
        let done = poll_once(self.0.run(&mut desk));
        let Desk { round, door, log, mut ended, checkpoint, .. } = desk;
        let wanted = door.close()?;
        let bug = |message: String| Bug::Method { item: item.index, round, message };
        match done {
            Some(Ok(verdict)) => {
                if log != Log::default() || ended.is_empty() && round == 0 {
                    ended.push((round, log));
                }
                Ok(Ran { verdict: Some(verdict), ended, round, checkpoint, wanted: Vec::new() })
            }
            Some(Err(fault)) => Err(bug(fault.0)),
            None if wanted.is_empty() && hold_at != Some(round) => {
                Err(bug("the method awaits something that is not its own desk".into()))
            }
            None => Ok(Ran { verdict: None, ended, round, checkpoint, wanted }),
        }
    }

    fn records(&self) -> &'static [Records] {
        M::RECORDS
    }
}

/// Whether two answers are the same: equal as numbers, or as text without regard to case and surrounding space.
#[must_use]
pub fn same_answer(a: &str, b: &str) -> bool {
    let number = |s: &str| s.trim().replace(',', "").parse::<f64>().ok();
    match (number(a), number(b)) {
        (Some(x), Some(y)) => x == y,
        _ => a.trim().eq_ignore_ascii_case(b.trim()),
    }
}
