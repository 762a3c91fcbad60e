//! One society over several processes: what their drivers tell each other.
//!
//! Process 0 alone writes the run folder, and it is the folder that one process would have written. The others compute their agents, ask
//! their models, and log the answers before use; they give process 0 what it records. See
//! `docs/decisions/one-society-over-processes.md`.

use crate::past::Past;
use polity_kernel::Bug;
use polity_kernel::ask::{Answer, Effect, EffectId, Usage};
use polity_kernel::layout::{Frame, Layout};
use polity_kernel::machine::{Machine, Outcome, Step};
use polity_kernel::saved::Sink;
use polity_kernel::scenario::{Assembled, Budget};
use polity_kernel::society::Gather;
use polity_peers::{Broken, Group, Peers};
use polity_store::DriveError;
use polity_store::journal::Journal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a process finds the others of its run.
#[derive(Clone)]
pub struct Spread {
    index: usize,
    count: usize,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Network {
        addresses: Vec<String>,
        token: String,
        patience: Duration,
        silence: Duration,
    },
    /// The connections of a thread, until a run takes them.
    Memory(Arc<Mutex<Option<Peers>>>),
}

impl Spread {
    /// Default time to wait for the other processes to start.
    pub const PATIENCE: Duration = Duration::from_secs(120);
    /// Default time after which a process without a sign of life is lost.
    pub const SILENCE: Duration = Duration::from_secs(8);

    /// A process at `addresses[index]` of a network. `token`: what only the processes of this run know.
    ///
    /// # Errors
    /// An index without an address, or an address twice.
    pub fn over(addresses: Vec<String>, index: usize, token: String) -> Result<Self, String> {
        if index >= addresses.len() {
            return Err(format!("process {index} has no address among {}", addresses.join(",")));
        }
        let twice = addresses.iter().enumerate().find(|(i, address)| addresses[..*i].contains(address));
        if let Some((_, address)) = twice {
            return Err(format!("the address {address} is given twice; each process needs one of its own"));
        }
        let (patience, silence) = (Self::PATIENCE, Self::SILENCE);
        let count = addresses.len();
        Ok(Spread { index, count, way: Way::Network { addresses, token, patience, silence } })
    }

    /// The processes of a run that are threads of this process, for tests.
    #[must_use]
    pub fn threads(n: usize) -> Vec<Self> {
        let place = |peers: Peers| Spread {
            index: peers.index(),
            count: peers.count(),
            way: Way::Memory(Arc::new(Mutex::new(Some(peers)))),
        };
        Peers::in_memory(n).into_iter().map(place).collect()
    }

    /// Sets how long to wait for the others to start, and after how long without a sign of life one is lost.
    #[must_use]
    pub fn waiting(mut self, to_start: Duration, for_life: Duration) -> Self {
        if let Way::Network { patience, silence, .. } = &mut self.way {
            (*patience, *silence) = (to_start, for_life);
        }
        self
    }

    /// Returns the number of this process, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns which part of the society this process computes.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout::process(self.index, self.count)
    }

    /// Connects this process to the others.
    pub(crate) fn join(&self, build: &str, run: &str, note: impl FnMut(&str)) -> Result<Peers, DriveError> {
        match &self.way {
            Way::Network { addresses, token, patience, silence } => {
                let group = Group {
                    addresses: addresses.clone(),
                    index: self.index,
                    token: token.clone(),
                    build: build.into(),
                    run: run.into(),
                    patience: *patience,
                    silence: *silence,
                };
                group.join(note).map_err(|error| DriveError::Peers(error.to_string()))
            }
            Way::Memory(peers) => {
                let taken = peers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
                taken.ok_or_else(|| DriveError::Peers("these threads have run already".into()))
            }
        }
    }
}

/// What a process tells every other one with each exchange.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Word {
    /// Whether it wants to stop at the end of the round.
    stop: bool,
    /// Of process 0: whether the state is saved at the end of the round.
    save: bool,
    /// Of process 0: what it records of this round, and what if this round is the last.
    gather: (Gather, Gather),
    /// For process 0: what has happened since the last exchange.
    told: Told,
}

/// What a process that helps tells process 0.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Told {
    pub answers: Vec<Answer>,
    /// Requests without an answer, with the most they can have cost if they may have been answered.
    pub broken: Vec<Broke>,
}

type Broke = (EffectId, Option<Usage>);

/// What process 0 tells the others at the start.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Start {
    /// The state to go on from; none at the beginning of the run.
    pub state: Option<Vec<u8>>,
    /// Whether the run has just begun, so that older logs belong to another one.
    pub begins: bool,
    /// The budget of the run.
    pub budget: Budget,
    /// Everything that any process has recorded.
    pub logged: Logged,
    /// How the run ended, if it has: then there is nothing to do.
    pub ended: Option<Outcome>,
}

/// What a process has logged before, or several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Logged {
    pub answers: Vec<Answer>,
    /// Requests without an answer, with the most they can have cost if they may have been answered.
    pub broken: Vec<Broke>,
    /// Calls delayed and then allowed by a budget, and the rounds with such calls.
    pub waves: BTreeSet<EffectId>,
    pub waved: BTreeSet<u32>,
}

impl Logged {
    /// Everything in the record of a run.
    pub fn of(past: &Past) -> Logged {
        let Past { answers, rounds: _, waves, waved, broken } = past;
        let answers = answers.values().cloned().collect();
        Logged { answers, broken: broken.clone(), waves: waves.clone(), waved: waved.clone() }
    }

    /// The same as a record without rounds.
    pub fn into_past(self) -> Past {
        let Logged { answers, broken, waves, waved } = self;
        let answers = answers.into_iter().map(|answer| (answer.id, answer)).collect();
        Past { answers, rounds: Default::default(), waves, waved, broken }
    }
}

/// The other processes of a run, for the driver of this one.
pub(crate) struct Others {
    peers: Peers,
    /// Where this process logs its answers; process 0 has its journal.
    pub log: Option<Journal>,
    /// What process 0 has not been told yet.
    news: Told,
    /// Of process 0: requests of the others without an answer, which only their logs have.
    broken: Vec<Broke>,
    /// What all processes have agreed on for the end of this round.
    agreed: Agreed,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Agreed {
    pub stop: bool,
    pub save: bool,
    pub gather: (Gather, Gather),
}

/// What this process wants at the end of the round.
#[derive(Default)]
pub(crate) struct Wanted {
    pub stop: bool,
    /// Of process 0 only.
    pub save: bool,
    pub gather: (Gather, Gather),
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, DriveError> {
    postcard::to_stdvec(value).map_err(|error| DriveError::Peers(format!("a word to another process: {error}")))
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DriveError> {
    postcard::from_bytes(bytes).map_err(|error| DriveError::Peers(format!("a word of another process: {error}")))
}

impl Others {
    /// Tells process 0 what the logs on this process's disk hold, and returns what it says.
    pub fn follow(
        mut peers: Peers,
        logged: &[Logged],
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(Self, Start), DriveError> {
        let others = peers.count() - 1;
        let mut frames = vec![Vec::new(); others];
        frames[0] = encode(&logged)?;
        exchange(&mut peers, frames, go_on)?;
        let frames = exchange(&mut peers, vec![Vec::new(); others], go_on)?;
        Ok((Others::new(peers), decode(&frames[0])?))
    }

    /// Returns what the logs on the disks of the other processes hold, in order of their numbers.
    pub fn ask_all(peers: &mut Peers, go_on: &mut dyn FnMut() -> bool) -> Result<Vec<Logged>, DriveError> {
        let empty = vec![Vec::new(); peers.count() - 1];
        let told: Result<Vec<Vec<Logged>>, _> =
            exchange(peers, empty, go_on)?.iter().map(|frame| decode(frame)).collect();
        Ok(told?.into_iter().flatten().collect())
    }

    /// Tells all other processes where to go on from.
    pub fn lead(mut peers: Peers, start: &Start, go_on: &mut dyn FnMut() -> bool) -> Result<Self, DriveError> {
        let frames = vec![encode(start)?; peers.count() - 1];
        exchange(&mut peers, frames, go_on)?;
        Ok(Others::new(peers))
    }

    fn new(peers: Peers) -> Self {
        Others { peers, log: None, news: Told::default(), broken: Vec::new(), agreed: Agreed::default() }
    }

    /// Remembers answers for process 0.
    pub fn heard(&mut self, answers: &[Answer]) {
        if self.peers.index() > 0 {
            self.news.answers.extend_from_slice(answers);
        }
    }

    /// Remembers a request without an answer for process 0.
    pub fn broke(&mut self, id: EffectId, charged: Option<Usage>) {
        if self.peers.index() > 0 {
            self.news.broken.push((id, charged));
        }
    }

    /// Returns, of process 0, the requests of other processes without an answer since the start.
    pub fn take_broken(&mut self) -> Vec<Broke> {
        std::mem::take(&mut self.broken)
    }

    /// Tells all other processes the same, and returns what they tell.
    pub fn tell<T: Serialize + DeserializeOwned>(
        &mut self,
        what: &T,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<T>, DriveError> {
        let frames = vec![encode(what)?; self.peers.count() - 1];
        exchange(&mut self.peers, frames, go_on)?.iter().map(|frame| decode(frame)).collect()
    }

    /// Carries the frames of a society, and what this process wants. Returns the frames of the others, and, to process 0, their news.
    pub fn carry(
        &mut self,
        frames: Vec<Frame>,
        wanted: Wanted,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(Vec<Frame>, Told), DriveError> {
        let Wanted { stop, save, gather } = wanted;
        let own = self.peers.index();
        let mut out = Vec::with_capacity(frames.len());
        for Frame { to, mut bytes, .. } in frames {
            let told = if to == 0 { std::mem::take(&mut self.news) } else { Told::default() };
            let word = encode(&Word { stop, save, gather, told })?;
            // Behind the frame, which may be large: neither end has to move it.
            bytes.extend_from_slice(&word);
            bytes.extend((word.len() as u64).to_le_bytes());
            out.push(bytes);
        }
        let others = (0..self.peers.count()).filter(|process| *process != own);
        let mut received = Vec::with_capacity(out.len());
        let mut news = Told::default();
        self.agreed.stop |= stop;
        if own == 0 {
            self.agreed.save |= save;
            self.agreed.gather = gather;
        }
        for (from, mut frame) in others.zip(exchange(&mut self.peers, out, go_on)?) {
            let short = || DriveError::Peers("a word of another process is cut short".into());
            let (rest, length) = frame.split_last_chunk::<8>().ok_or_else(short)?;
            let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
            let start = rest.len().checked_sub(length).ok_or_else(short)?;
            let word: Word = decode(&rest[start..])?;
            frame.truncate(start);
            self.agreed.stop |= word.stop;
            if from == 0 {
                self.agreed.save |= word.save;
                self.agreed.gather = word.gather;
            }
            news.answers.extend(word.told.answers);
            news.broken.extend(word.told.broken);
            received.push(Frame { from, to: own, bytes: frame });
        }
        self.broken.extend_from_slice(&news.broken);
        Ok((received, news))
    }

    /// What was agreed on for the end of this round; forgotten after.
    pub fn agreed(&mut self) -> Agreed {
        std::mem::take(&mut self.agreed)
    }

    /// Shows process 0 what it records of the agents of all others.
    pub fn gather(
        &mut self,
        machine: &mut Assembled,
        what: Gather,
        seed: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), DriveError> {
        let Assembled::Society(society) = machine else { return Ok(()) };
        let bug = |bug| DriveError::Bug { seed, bug };
        let mut frames = vec![Vec::new(); self.peers.count() - 1];
        if self.peers.index() > 0 {
            frames[0] = society.show(what).map_err(bug)?;
        }
        let shown = exchange(&mut self.peers, frames, go_on)?;
        match self.peers.index() {
            0 => society.take_shown(shown.iter().map(Vec::as_slice)).map_err(bug),
            _ => Ok(()),
        }
    }

    /// Gives process 0 the state of this process's agents. Returns, to process 0, the state of the others'.
    pub fn states(
        &mut self,
        machine: &Assembled,
        seed: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Vec<u8>>, DriveError> {
        let mut frames = vec![Vec::new(); self.peers.count() - 1];
        if self.peers.index() > 0 {
            frames[0] = machine.snapshot().map_err(|bug| DriveError::Bug { seed, bug })?;
        }
        exchange(&mut self.peers, frames, go_on)
    }
}

fn exchange(
    peers: &mut Peers,
    frames: Vec<Vec<u8>>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<Vec<u8>>, DriveError> {
    peers.exchange(frames, go_on).map_err(|error| match error {
        Broken::Lost(lost) => DriveError::Peers(lost.to_string()),
        Broken::GivenUp => DriveError::Peers("stopped while waiting for the other processes".into()),
    })
}

/// A society whose agents are in several processes, to be saved as if they were in one.
pub(crate) struct Joined<'a> {
    pub machine: &'a Assembled,
    /// The state of the other processes' agents, in order.
    pub others: Vec<Vec<u8>>,
}

impl Machine for Joined<'_> {
    fn poll(&mut self, _: Vec<Answer>) -> Result<Step, Bug> {
        Err(Bug::Transport("a joined state is only saved".into()))
    }

    fn save(&self, to: &mut dyn Sink) -> Result<(), Bug> {
        self.machine.save(to)?;
        self.others.iter().for_each(|state| to.take(state));
        Ok(())
    }

    fn next_round(&self) -> u32 {
        self.machine.next_round()
    }

    fn open_effects(&self) -> Vec<Effect> {
        Vec::new()
    }
}
