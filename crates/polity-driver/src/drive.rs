//! Drives a machine: passes it answers, journals them before use, records its rounds, saves its state.

mod learned;
mod orders;
mod pace;
mod together;

pub use crate::past::Past;
pub use crate::totals::{Resolutions, Totals};
pub(crate) use learned::{LEARNED, Learned};
pub(crate) use orders::Orders;
pub use pace::{Pace, Paced};

use crate::budget::Gate;
use crate::recorder::Recorder;
use crate::source::{Broken, FormChange, Ledger, Source};
use crate::spread::Others;
use polity_kernel::ask::{Answer, Effect, EffectId, TargetKind};
use polity_kernel::digest::Digest;
use polity_kernel::event::Event;
use polity_kernel::journal::{MAX_PAYLOAD, RECORD_HEADER};
use polity_kernel::machine::{Machine, Outcome, RoundReport, Then};
use polity_kernel::scenario::{Assembled, SnapshotPlan};
use polity_store::DriveError;
use polity_store::journal::Journal;
use polity_store::snapshots::Snapshots;
use polity_store::tables::Parts;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// How long answers are collected into one commit once someone can proceed.
const LINGER: Duration = Duration::from_millis(2);
/// How long a driver waiting for its disk listens for answers at a time.
const GLANCE: Duration = Duration::from_millis(1);
/// How often a waiting driver checks its stop flag.
const TICK: Duration = Duration::from_millis(100);
/// Maximum time without a word to watchers, while answers keep arriving.
const TELL: Duration = Duration::from_secs(1);
/// Default time that a stopping run waits for calls in flight.
pub const GRACE: Duration = Duration::from_secs(30);
/// Maximum answers per journal record, and their bytes: a record has a maximum length, a batch of answers has none.
const ANSWERS_A_RECORD: usize = 1024;
const BYTES_A_RECORD: usize = 16 << 20;
/// Reason of a run stopped by its time limit.
pub(crate) const TIME_UP: &str = "the time limit of this process is reached";
/// Reason while a run is paused.
pub const PAUSED: &str = "paused; `polity ctl RUN resume` continues it";

/// A person's stop request: 0 none, 1 finish what is in flight and save, 2 stop now.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Requests a stop; returns the number of requests so far.
    pub fn ask(&self) -> u8 {
        self.0.fetch_add(1, Ordering::SeqCst).saturating_add(1)
    }

    /// Whether to go on waiting for others: until a stop has been requested twice.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        self.0.load(Ordering::SeqCst) < 2
    }

    /// Whether a stop has been requested.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// What a watcher sees.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Progress {
    /// Rounds complete.
    pub rounds: u32,
    /// Rounds planned.
    pub planned: u32,
    /// Living agents, or items in progress.
    pub agents: u32,
    /// Items with a verdict, and all items; 0 in a society.
    #[serde(skip_serializing_if = "is_of_society")]
    pub items: (usize, usize),
    /// Answers received in this process.
    pub answers: u64,
    /// US dollars so far; `None` if there are answers and none is known to have cost anything.
    pub cost_usd: Option<f64>,
    /// Why nothing moves, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// Whether the last round was only recomputed from the journal, as the first rounds of a resumed run are.
    #[serde(skip)]
    pub recomputed: bool,
}

fn is_of_society(items: &(usize, usize)) -> bool {
    items.1 == 0
}

/// Receives the events of a run.
pub trait Watch {
    /// Called after every round and now and then while waiting.
    fn progress(&mut self, progress: &Progress);
    /// Called with every answer from outside (not from the record), as it arrives.
    fn heard(&mut self, answer: &Answer, machine: &Assembled) {
        let _ = (answer, machine);
    }
    /// Called with every finished round, before it is recorded.
    fn round(&mut self, report: &RoundReport) {
        let _ = report;
    }
}

/// Watches nothing.
pub struct Unwatched;

impl Watch for Unwatched {
    fn progress(&mut self, _: &Progress) {}
}

/// How a drive ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The machine has ended.
    Done(Outcome),
    /// A person stopped it; `polity resume` continues.
    Stopped,
    /// The time limit of the process is reached; `polity resume` continues.
    TimeUp,
    /// Its budget is used up, with the reason; `polity resume` continues with a larger one.
    Exhausted(String),
    /// Its parameters were changed; it is to be resumed at once.
    Changed,
}

/// Where a run is written; a replay has none.
pub struct Writing {
    /// The journal.
    pub journal: Journal,
    /// The tables.
    pub recorder: Recorder,
    /// What has been saved.
    pub saved: Snapshots,
    /// When to save, besides after a number of rounds ([`Drive::saves`]).
    pub snapshots: SnapshotPlan,
    /// Where weights go at the end.
    pub(crate) learned: Learned,
}

impl Writing {
    fn append(&mut self, event: &Event) -> Result<(), DriveError> {
        append(&self.journal, event)
    }

    /// Saves the state between two rounds: tables, then the snapshot, then the record that names both.
    fn save(&mut self, machine: &dyn Machine, seed: u64) -> Result<(), DriveError> {
        let next = machine.next_round();
        let parts = self.recorder.close_parts(next)?;
        let bytes = self.saved.save(machine, seed)?;
        // The parts count from here on, under any name.
        self.append(&Event::Snapshot { round: next, bytes, parts })?;
        self.journal.commit()?;
        self.recorder.publish(false)?;
        self.saved.clear()
    }
}

/// Appends a record.
pub(crate) fn append(journal: &Journal, event: &Event) -> Result<(), DriveError> {
    let payload =
        event.encode().map_err(|e| DriveError::Differs(format!("a journal record cannot be written: {e}")))?;
    Ok(journal.append(event.kind(), &payload)?)
}

/// A ledger that enters requests into a shared journal.
pub(crate) fn ledger(journal: &Journal) -> Ledger {
    let journal = journal.clone();
    Arc::new(move |sent| {
        let event = Event::Sent(sent);
        let payload = event.encode().map_err(|error| error.to_string())?;
        match journal.append_for_others(event.kind(), &payload) {
            true => Ok(()),
            false => Err("the journal accepts no more records".into()),
        }
    })
}

/// Appends answers, in as many records as needed; returns them.
pub(crate) fn append_answers(journal: &Journal, mut answers: Vec<Answer>) -> Result<Vec<Answer>, DriveError> {
    let mut written = Vec::with_capacity(answers.len());
    while !answers.is_empty() {
        let rest = answers.split_off(in_a_record(&answers, BYTES_A_RECORD, MAX_PAYLOAD)?);
        let event = Event::Answers(answers);
        append(journal, &event)?;
        if let Event::Answers(answers) = event {
            written.extend(answers);
        }
        answers = rest;
    }
    Ok(written)
}

/// Number of answers for a record of about `target` bytes: at least one, which must not exceed `longest`.
fn in_a_record(answers: &[Answer], target: usize, longest: usize) -> Result<usize, DriveError> {
    let mut sum = 0usize;
    for (n, answer) in answers.iter().take(ANSWERS_A_RECORD).enumerate() {
        let bytes = postcard::serialize_with_flavor(answer, postcard::ser_flavors::Size::default())
            .map_err(|e| DriveError::Differs(format!("an answer cannot be written to the journal: {e}")))?;
        // The record's kind and the number of answers come first.
        if bytes + RECORD_HEADER > longest {
            return Err(DriveError::Input(format!(
                "the question {} and its answer have {bytes} bytes, but a journal record holds at most {longest}; \
                 shorten the conversation. Everything before this question is kept",
                answer.id
            )));
        }
        sum += bytes;
        if sum > target && n > 0 {
            return Ok(n);
        }
    }
    Ok(answers.len().min(ANSWERS_A_RECORD))
}

/// A machine with its environment.
pub struct Drive<'a> {
    /// The machine.
    pub machine: &'a mut Assembled,
    /// The contents of the journal.
    pub past: Past,
    /// The source of new answers; `None` in a strict replay.
    pub source: &'a mut dyn Source,
    /// Decides which calls are made, if limited.
    pub(crate) gate: Option<Gate>,
    /// Orders during the run; `None` in a replay.
    pub(crate) orders: Option<Orders<'a>>,
    /// When the run stops unconditionally.
    pub deadline: Option<Instant>,
    /// How long it then waits for calls in flight.
    pub(crate) grace: Duration,
    /// Since when it is stopping, waiting only for calls in flight; `None` at first.
    pub(crate) stopping_since: Option<Instant>,
    /// When watchers were last told how far the run is; at first, when it began.
    pub(crate) told: Instant,
    /// Where the run is written; `None` in a replay.
    pub writing: Option<Writing>,
    /// The other processes of the run, if there are any.
    pub(crate) others: Option<Others>,
    /// After how many rounds the state is saved, if after a number of them.
    pub saves: Option<u32>,
    /// The run's seed, for messages.
    pub seed: u64,
    /// Rounds planned, for progress.
    pub planned: u32,
    /// A person's stop request.
    pub stop: Stop,
    /// The watcher.
    pub watch: &'a mut dyn Watch,
    /// Whether a round that differs from the record is only noted (a replay) or stops the run (a resume).
    pub tolerate: bool,
    /// Whether calls are forbidden: an unrecorded answer is then an error, unless an earlier round differs.
    pub strict: bool,
}

/// Unanswered requests.
#[derive(Default)]
struct Open {
    /// The group of each effect; a group's answers are used together.
    effects: BTreeMap<EffectId, u32>,
    /// Number of missing answers per group.
    left: BTreeMap<u32, usize>,
    /// Answers that arrived while earlier ones were made durable: journaled, but not to be used yet.
    late: Vec<Answer>,
    /// In a strict drive: the first request without a recorded answer, in words.
    unrecorded: Option<String>,
}

impl Open {
    fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    fn begin(&mut self, id: EffectId, group: u32) {
        if self.effects.insert(id, group).is_none() {
            *self.left.entry(group).or_default() += 1;
        }
    }

    /// Removes an answer's effect; returns whether it was open, and whether its group is complete.
    fn end(&mut self, id: EffectId) -> (bool, bool) {
        let Some(group) = self.effects.remove(&id) else { return (false, false) };
        let Some(left) = self.left.get_mut(&group) else { return (true, false) };
        *left -= 1;
        let complete = *left == 0;
        if complete {
            self.left.remove(&group);
        }
        (true, complete)
    }
}

/// The result of a drive.
#[derive(Debug)]
pub struct Driven {
    /// How it ended.
    pub ending: Ending,
    /// Totals of its answers.
    pub totals: Totals,
    /// The first round whose digest differs from the record.
    pub first_difference: Option<u32>,
    /// Chain up to the last round driven; `None` if there was none.
    pub chain: Option<Digest>,
    /// Commits of the journal.
    pub commits: u64,
    /// Milliseconds per round driven.
    pub round_ms: Vec<f64>,
    /// The parts of the run's tables, if it is written.
    pub parts: Parts,
}

impl Drive<'_> {
    /// Drives to the end, or until stopped.
    pub fn run(mut self) -> Result<Driven, DriveError> {
        let mut driven = Driven {
            ending: Ending::Stopped,
            totals: self.past.totals(),
            first_difference: None,
            chain: None,
            commits: 0,
            round_ms: Vec::new(),
            parts: Parts::new(),
        };
        let result = self.run_inner(&mut driven);
        match (result, self.writing) {
            (Ok(()), Some(mut writing)) => {
                let next = self.machine.next_round();
                match &driven.ending {
                    Ending::Done(outcome) => {
                        writing.learned.write(self.machine, self.seed)?;
                        for (id, charged) in self.others.iter_mut().flat_map(Others::take_broken) {
                            writing.append(&Event::Broke { id, charged })?;
                        }
                        let parts = writing.recorder.close_last(self.machine, next)?;
                        writing.append(&Event::Ended { outcome: outcome.clone(), parts })?;
                        writing.journal.commit()?;
                        let Writing { journal, recorder, .. } = writing;
                        driven.commits = journal.commits();
                        driven.parts = recorder.finish()?;
                        journal.close()?;
                    }
                    unfinished => {
                        writing.append(&match unfinished {
                            Ending::Exhausted(reason) => Event::Exhausted { reason: reason.clone() },
                            Ending::TimeUp => Event::Stopped { reason: TIME_UP.into() },
                            Ending::Changed => Event::Stopped { reason: "its parameters were changed".into() },
                            _ => Event::Stopped { reason: "stopped by the user".into() },
                        })?;
                        writing.journal.commit()?;
                        driven.commits = writing.journal.commits();
                        driven.parts = writing.recorder.abandon();
                    }
                }
                Ok(driven)
            }
            (Ok(()), None) => Ok(driven),
            (Err(error), writing) => {
                if let Some(writing) = writing {
                    if matches!(error, DriveError::Peers(_)) {
                        writing.journal.commit()?;
                    }
                    drop(writing.recorder.abandon());
                }
                Err(error)
            }
        }
    }

    fn run_inner(&mut self, driven: &mut Driven) -> Result<(), DriveError> {
        let mut ready: Vec<Answer> = Vec::new();
        let mut asked: Vec<Effect> = Vec::new();
        let mut open = Open::default();
        let mut began = Instant::now();
        let mut saved = Instant::now();
        let mut progress = Progress { rounds: self.machine.next_round(), planned: self.planned, ..Progress::default() };
        // A restored machine already waits for some answers.
        let restored = self.machine.open_effects();
        self.begin(restored, &mut ready, &mut open)?;
        loop {
            let seed = self.seed;
            let step = self.machine.poll(std::mem::take(&mut ready)).map_err(|bug| DriveError::Bug { seed, bug })?;
            asked.extend(step.start);
            if matches!(step.then, Then::More) && self.gate.as_ref().is_some_and(Gate::bounded) {
                // The budget decides on everything that a round asks first.
                continue;
            }
            self.begin(std::mem::take(&mut asked), &mut ready, &mut open)?;
            match step.then {
                Then::More => self.meanwhile(&mut open, driven)?,
                Then::Exchange(frames) => self.carry(frames, driven, saved)?,
                Then::Done(outcome) => {
                    if driven.round_ms.is_empty() {
                        self.gather_at_end()?;
                    }
                    driven.ending = Ending::Done(outcome);
                    return Ok(());
                }
                Then::Round(report) => {
                    let wall_ms = began.elapsed().as_secs_f64() * 1000.0;
                    driven.round_ms.push(wall_ms);
                    driven.chain = Some(report.chain);
                    self.check(&report, &mut driven.first_difference)?;
                    progress.rounds = report.round + 1;
                    progress.agents = report.agents;
                    self.tell(&mut progress, driven.totals, None);
                    self.watch.round(&report);
                    if let Some(orders) = &mut self.orders {
                        orders.round(report.round, &report.metrics);
                    }
                    let agreed = self.gather()?;
                    self.record(*report, wall_ms, agreed.save, &mut saved)?;
                    self.stand_still(&mut ready, &mut open, driven, &mut progress)?;
                    // Several processes stop together or not at all.
                    if if self.others.is_some() { agreed.stop } else { self.stopping(driven) } {
                        self.save()?;
                        return Ok(());
                    }
                    if self.orders.as_ref().is_some_and(Orders::changes) {
                        driven.ending = Ending::Changed;
                        self.save()?;
                        return Ok(());
                    }
                    // A society finishes its round with its agents' actions without an answer.
                    if let Some(reason) = self.gate.as_ref().and_then(Gate::exhausted)
                        && progress.rounds < self.planned
                    {
                        driven.ending = Ending::Exhausted(reason.into());
                        self.save()?;
                        return Ok(());
                    }
                    if !open.is_empty() && ready.is_empty() {
                        // Turns with a lag are active: take what has arrived, do not wait.
                        let answers = self.listen(Duration::ZERO, &mut driven.totals)?;
                        self.hear(answers, &mut ready, &mut open, &mut driven.totals)?;
                        self.commit(&ready)?;
                    }
                    began = Instant::now();
                }
                Then::Wait => {
                    if ready.is_empty() {
                        if let Some(what) = open.unrecorded.take() {
                            // After a differing round, different requests are expected.
                            return driven.first_difference.map(|_| ()).ok_or(DriveError::Differs(what));
                        }
                        self.wait(&mut ready, &mut open, driven, &mut progress)?;
                        if ready.is_empty() {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }

    /// Starts effects; those with recorded answers are answered at once.
    fn begin(&mut self, effects: Vec<Effect>, ready: &mut Vec<Answer>, open: &mut Open) -> Result<(), DriveError> {
        let mut fresh = Vec::new();
        let shared = self.shares_budget();
        if let Some(gate) = &mut self.gate
            && gate.batch(&effects, self.machine)
        {
            match shared {
                true => drop(self.agree()?),
                false => gate.share(self.machine),
            }
        }
        for effect in effects {
            let unrecorded = match self.past.answers.remove(&effect.id) {
                Some(answer) if answer.request == effect.request => {
                    if let Some(gate) = &mut self.gate {
                        gate.used(&answer, self.machine);
                    }
                    ready.push(answer);
                    continue;
                }
                Some(answer) => Some(
                    polity_kernel::Bug::Mismatch {
                        id: effect.id,
                        journaled: Box::new(answer.request),
                        asked: Box::new(effect.request.clone()),
                    }
                    .to_string(),
                ),
                None if self.strict => Some(format!(
                    "the journal has no answer to the request {}, and a replay makes no calls: the answer was removed. \
                     Request: {:?}",
                    effect.id, effect.request
                )),
                None => None,
            };
            match unrecorded {
                Some(what) if self.strict => {
                    // Not an error yet: earlier rounds may still complete, and a run may end with open requests.
                    open.unrecorded.get_or_insert(what);
                }
                Some(what) => return Err(DriveError::Differs(what)),
                None => {
                    open.begin(effect.id, self.machine.group(effect.id));
                    fresh.push(effect);
                }
            }
        }
        if let Some(gate) = &mut self.gate {
            fresh = gate.ask(fresh, self.machine);
        }
        if !fresh.is_empty() {
            self.source.start(fresh);
        }
        Ok(())
    }

    /// Whether the time limit is reached; records it if so.
    fn out_of_time(&self, driven: &mut Driven) -> bool {
        let up = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if up {
            driven.ending = Ending::TimeUp;
        }
        up
    }

    /// Decides calls delayed by a budget, once nothing is in flight and no one can proceed.
    fn decide(&mut self) -> Result<(), DriveError> {
        let shared = self.shares_budget();
        let Some(gate) = self.gate.as_mut().filter(|gate| gate.waits()) else { return Ok(()) };
        let made = if shared { self.agree()?.1 } else { gate.decide(self.machine) };
        if made.is_empty() {
            return Ok(());
        }
        if let Some(journal) = self.journal() {
            append(&journal, &Event::Wave(made.iter().map(|effect| effect.id).collect()))?;
        }
        self.source.start(made);
        Ok(())
    }

    /// Waits for answers. Requests without one are counted, and retried as far as the budget allows.
    fn listen(&mut self, patience: Duration, totals: &mut Totals) -> Result<Vec<Answer>, DriveError> {
        let answers = self.source.wait(patience);
        let mut again = Vec::new();
        for Broken { effect, charged, again: may } in self.source.broken() {
            if effect.request.model.kind() == TargetKind::Tool {
                again.extend(may.then_some(effect));
                continue;
            }
            totals.broke(charged.as_ref());
            if let Some(journal) = self.journal() {
                append(&journal, &Event::Broke { id: effect.id, charged })?;
            }
            if let Some(others) = &mut self.others {
                others.broke(effect.id, charged);
            }
            match &mut self.gate {
                Some(gate) => {
                    gate.broke(&effect, charged.as_ref(), self.machine);
                    if may && self.stopping_since.is_none() {
                        again.extend(gate.again(effect, self.machine));
                    }
                }
                None => again.extend(may.then_some(effect)),
            }
        }
        if !again.is_empty() && self.stopping_since.is_none() {
            self.source.start(again);
        }
        for FormChange { model, way, used, why } in self.source.forms() {
            if let Some(writing) = &mut self.writing {
                writing.append(&Event::Form { model, way, used, why })?;
            }
        }
        Ok(answers)
    }

    /// Takes arrived answers and journals new ones. Returns whether some group is complete.
    fn hear(
        &mut self,
        mut answers: Vec<Answer>,
        ready: &mut Vec<Answer>,
        open: &mut Open,
        totals: &mut Totals,
    ) -> Result<bool, DriveError> {
        let mut complete = false;
        answers.retain(|answer| {
            let (new, last) = open.end(answer.id);
            complete |= last;
            new
        });
        if answers.is_empty() {
            return Ok(false);
        }
        for answer in &answers {
            totals.count(answer);
            if let Some(gate) = &mut self.gate {
                gate.heard(answer, self.machine);
            }
            self.watch.heard(answer, self.machine);
        }
        if let Some(others) = &mut self.others {
            others.heard(&answers);
        }
        // Written at once, so that a killed process never pays twice; synced before use.
        if let Some(journal) = self.journal() {
            answers = append_answers(&journal, answers)?;
        }
        if let Some(writing) = &mut self.writing {
            writing.recorder.heard(&answers);
        }
        ready.extend(answers);
        Ok(complete)
    }

    /// Makes answers durable before use. Meanwhile arrivals are journaled, and calls waiting for a connection are made.
    fn commit_and_listen(&mut self, ready: &[Answer], open: &mut Open, totals: &mut Totals) -> Result<(), DriveError> {
        let Some(journal) = self.journal().filter(|_| !ready.is_empty()) else { return Ok(()) };
        let Some(commit) = journal.commit_beside()? else { return Ok(()) };
        loop {
            let idle = self.source.in_flight() == 0;
            if let Some(synced) = commit.wait(if idle { TICK } else { Duration::ZERO }) {
                return Ok(journal.committed(synced)?);
            }
            if !idle {
                let answers = self.listen(GLANCE, totals)?;
                let mut late = std::mem::take(&mut open.late);
                self.hear(answers, &mut late, open, totals)?;
                open.late = late;
            }
        }
    }

    /// While turns start: takes arrivals, since calls stop when no one does; and leaves the processors to calls for a while once enough
    /// requests wait.
    fn meanwhile(&mut self, open: &mut Open, driven: &mut Driven) -> Result<(), DriveError> {
        let until = Instant::now() + TICK;
        while let Some(sated) = self.source.is_sated() {
            let answers = self.listen(if sated { GLANCE } else { Duration::ZERO }, &mut driven.totals)?;
            let mut late = std::mem::take(&mut open.late);
            self.hear(answers, &mut late, open, &mut driven.totals)?;
            open.late = late;
            // Requests may wait longer, such as for a rate limit: the turns start anyway.
            if !sated || self.stop.asked() || Instant::now() >= until {
                break;
            }
        }
        Ok(())
    }

    fn commit(&mut self, ready: &[Answer]) -> Result<(), DriveError> {
        if let Some(journal) = self.journal().filter(|_| !ready.is_empty()) {
            journal.commit()?;
        }
        Ok(())
    }

    /// Where answers are durable before use: the run's journal, or the log of a process that helps.
    fn journal(&self) -> Option<Journal> {
        let log = || self.others.as_ref().and_then(|others| others.log.clone());
        self.writing.as_ref().map(|writing| writing.journal.clone()).or_else(log)
    }

    /// Waits until someone can proceed; one commit for all answers so far. Leaves `ready` empty if the run is to stop.
    fn wait(
        &mut self,
        ready: &mut Vec<Answer>,
        open: &mut Open,
        driven: &mut Driven,
        progress: &mut Progress,
    ) -> Result<(), DriveError> {
        let asked_nobody = || DriveError::Differs("the machine waits for answers, but no request is open".into());
        if open.is_empty() && open.late.is_empty() {
            return Err(asked_nobody());
        }
        ready.append(&mut open.late);
        let mut can_move = (!ready.is_empty()).then(Instant::now);
        let mut stopping = false;
        while !open.is_empty() {
            self.obey(&driven.totals)?;
            stopping = self.stopping(driven);
            if stopping {
                let since = *self.stopping_since.get_or_insert_with(Instant::now);
                self.source.hold();
                // Calls still in flight then count at their maximum, as after a kill.
                if since.elapsed() >= self.grace {
                    break;
                }
            }
            let mut answers = self.gate.as_mut().map(Gate::take_denied).unwrap_or_default();
            if answers.is_empty() && self.source.in_flight() == 0 {
                // Arrived answers may let someone proceed, and only then is it known who waits.
                if stopping || !ready.is_empty() {
                    break;
                }
                self.decide()?;
                answers = self.gate.as_mut().map(Gate::take_denied).unwrap_or_default();
                if answers.is_empty() && self.source.in_flight() == 0 && self.shares_budget() {
                    // Only calls of other processes were allowed, or shares computed.
                    continue;
                }
                if answers.is_empty() && self.source.in_flight() == 0 {
                    let Some(reason) = self.gate.as_ref().and_then(Gate::exhausted) else {
                        return Err(asked_nobody());
                    };
                    driven.ending = Ending::Exhausted(reason.into());
                    return Ok(());
                }
            }
            let patience = if can_move.is_some() { LINGER } else { TICK };
            if can_move.is_none() && ready.is_empty() {
                self.source.flush();
            }
            if answers.is_empty() {
                answers = self.listen(patience, &mut driven.totals)?;
            }
            let none = answers.is_empty();
            if self.hear(answers, ready, open, &mut driven.totals)? {
                can_move.get_or_insert_with(Instant::now);
            }
            if let Some(why) = self.source.lost() {
                let why = why.to_string();
                self.commit(ready)?;
                return Err(DriveError::Lost(why));
            }
            let ends = !stopping && can_move.is_some_and(|since| none || since.elapsed() >= LINGER);
            if (none && !ends) || self.told.elapsed() >= TELL {
                let reason = match (self.paused(), self.stopping_since) {
                    (_, Some(since)) => {
                        let left = self.grace.saturating_sub(since.elapsed()).as_secs();
                        format!("stopping in at most {left} s: {}", self.source.reason())
                    }
                    (true, None) => PAUSED.into(),
                    (false, None) => self.source.reason(),
                };
                self.tell(progress, driven.totals, Some(reason));
            }
            if ends {
                break;
            }
        }
        self.commit_and_listen(ready, open, &mut driven.totals)?;
        if stopping {
            ready.clear();
        }
        Ok(())
    }

    /// Compares a round with the record.
    fn check(&mut self, report: &RoundReport, first_difference: &mut Option<u32>) -> Result<(), DriveError> {
        let Some((sum, chain)) = self.past.rounds.get(&report.round) else {
            if self.strict {
                first_difference.get_or_insert(report.round);
            }
            return Ok(());
        };
        if *sum == report.sum && *chain == report.chain {
            return Ok(());
        }
        first_difference.get_or_insert(report.round);
        if self.tolerate {
            return Ok(());
        }
        Err(DriveError::Differs(format!(
            "round {} differs from its record (digest {}, recorded {sum}): the journal was changed, or this build \
             computes different results; resume with the build that began the run (see manifest.json)",
            report.round, report.sum
        )))
    }

    /// Records a round. `save`: whether the processes of the run agreed to save its state.
    fn record(&mut self, report: RoundReport, wall_ms: f64, save: bool, saved: &mut Instant) -> Result<(), DriveError> {
        let round = report.round;
        let by_rounds = self.saves.is_some_and(|n| (round + 1).is_multiple_of(n));
        let Some(writing) = &mut self.writing else {
            return if by_rounds || save { self.save() } else { Ok(()) };
        };
        if !self.past.rounds.contains_key(&round) {
            writing.append(&Event::Round { round, sum: report.sum, chain: report.chain })?;
        }
        writing.recorder.round(report, self.machine, wall_ms)?;
        let by_time = match &self.others {
            Some(_) => save,
            None => saved.elapsed().as_secs_f64() >= writing.snapshots.seconds,
        };
        if by_rounds || by_time {
            self.save()?;
            *saved = Instant::now();
        }
        Ok(())
    }

    fn tell(&mut self, progress: &mut Progress, totals: Totals, waiting: Option<String>) {
        progress.answers = totals.answers;
        progress.cost_usd = totals.known_usd(totals.answers == 0);
        // A replay does nothing else, so its recomputed rounds count.
        let is_recorded = |round: u32| self.past.rounds.contains_key(&round);
        progress.recomputed =
            !self.strict && waiting.is_none() && progress.rounds.checked_sub(1).is_some_and(is_recorded);
        progress.waiting = waiting;
        self.told = Instant::now();
        if let Some(evaluation) = self.machine.evaluation() {
            progress.items = (evaluation.finished(), evaluation.items().len());
        }
        if let Some(orders) = &mut self.orders {
            orders.note(progress);
        }
        self.watch.progress(progress);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use polity_kernel::ask::{self, Asker, Request, ResponseFormat, Usage};
    use polity_store::disk::{Disk, SimDisk};
    use polity_store::journal::{JournalWriter, read_all};
    use std::path::Path;

    fn answer(n: u32, bytes: usize) -> Answer {
        let outcome = ask::Outcome::Invalid { raw: "x".repeat(bytes), why: "long".into() };
        let id = EffectId { item: 0, round: 0, actor: n, asker: Asker::Agent, n: 0 };
        Answer {
            id,
            request: Request::new("m", Vec::new(), ResponseFormat::Text),
            outcome,
            usage: Usage::default(),
            reasoning: None,
        }
    }

    #[test]
    fn long_answers_have_records_that_a_journal_can_hold() {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        let dir = Path::new("journal");
        let journal = Journal::from(JournalWriter::create(disk.clone(), dir).unwrap());
        // Twelve of the longest answers a provider may send, and many short ones.
        let answers: Vec<Answer> =
            (0..12).map(|n| answer(n, 10_000_000)).chain((12..3_000).map(|n| answer(n, 10))).collect();
        assert_eq!(append_answers(&journal, answers.clone()).unwrap(), answers);
        journal.commit().unwrap();
        let records = read_all(disk, dir).unwrap().0;
        let mut found = Vec::new();
        for (kind, payload) in &records {
            assert!(payload.len() <= BYTES_A_RECORD + 100);
            match Event::decode(*kind, payload).unwrap() {
                Event::Answers(answers) => found.extend(answers),
                other => panic!("{other:?}"),
            }
        }
        assert!(found == answers);
        assert_eq!(records.len(), 12 + 2);
    }

    #[test]
    fn records_are_cut_by_bytes_and_one_that_is_too_long_is_an_error() {
        let answers: Vec<Answer> =
            [100, 100, 100, 5_000, 100].into_iter().zip(0..).map(|(b, n)| answer(n, b)).collect();
        assert_eq!(in_a_record(&answers, 500, 10_000).unwrap(), 3);
        assert_eq!(in_a_record(&answers[3..], 400, 10_000).unwrap(), 1);
        assert_eq!(in_a_record(&answers[4..], 400, 10_000).unwrap(), 1);
        let error = in_a_record(&answers[3..], 400, 5_000).unwrap_err().to_string();
        assert!(error.contains("agent 3") && error.contains("holds at most 5000"), "{error}");
    }
}
