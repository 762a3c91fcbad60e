//! The task that makes a run's calls: as many at once as allowed, and reports the results. `scheduler/` decides what is sent when;
//! `batches.rs` sends what is batched.

use super::batches::{Asked, Batches, Done, Words};
use super::cache::{Cache, Key};
use super::scheduler::{After, Call, Rules, Scheduler};
use super::{Broken, FormChange, Notes};
use polity_kernel::ask::{Answer, Constrain, Effect, EffectId, Request, TargetKind, Usage};
use polity_kernel::event::Sent;
use polity_models::models::prices::Prices;
use polity_models::models::{Exchange, ProviderError, Providers};
use polity_store::printable::counted;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinError, JoinSet};

/// Time without news after which people are told who is awaited.
const QUIET: Duration = Duration::from_secs(4);
/// Time without events after which the task checks its state.
const IDLE: Duration = Duration::from_secs(3600);
/// Why a call with an effect outside is not made again.
pub(super) const MAY_BE_DONE: &str = "the call may have been made, so it is not made again";

/// A request of the run.
pub(super) struct Asking {
    pub effect: Effect,
    /// Identifies requests that may share its answer.
    pub key: Option<Key>,
    /// Its priority, if the schedule uses it.
    pub rank: i32,
}

/// A command from the run.
pub(super) enum Command {
    /// Send these; requests with the same key share an answer.
    Ask(Vec<Asking>),
    /// The run cannot proceed without an answer: send what was gathered.
    Flush,
    /// Start nothing more.
    Hold,
    /// Set the maximum calls in flight; none during a pause.
    Connections(usize),
    /// The run has taken this many answers and broken requests.
    Taken(usize),
    /// Report all requests held here, wherever they wait.
    Census(Sender<BTreeSet<EffectId>>),
    /// Return requests that were never sent, with those that share them.
    TakeBack(Sender<Vec<Effect>>),
}

/// What the run is told.
#[derive(Default)]
pub(super) struct News {
    pub answers: Vec<Answer>,
    pub broken: Vec<Broken>,
    /// Effects without a future answer, because nothing more is started.
    pub dropped: Vec<EffectId>,
    /// Changes in the constraint modes of models.
    pub forms: Vec<FormChange>,
    pub lost: Option<String>,
}

impl News {
    fn is_empty(&self) -> bool {
        let Self { answers, broken, dropped, forms, lost } = self;
        answers.is_empty() && broken.is_empty() && dropped.is_empty() && forms.is_empty() && lost.is_none()
    }
}

/// The status of calls, for people.
#[derive(Clone, Debug)]
pub(super) struct Status {
    asking: usize,
    queued: usize,
    /// Of these, those not gathered for a batch.
    pub(super) waiting: usize,
    following: usize,
    pausing: usize,
    /// Rate limits that calls wait for.
    limits: Vec<String>,
    /// The last error since an answer arrived.
    trouble: Option<String>,
    /// Time of the last news: an answer or an error.
    news: Instant,
    /// The servers called.
    whom: BTreeSet<String>,
    /// The status of batches.
    pub(super) batches: Words,
}

impl Default for Status {
    fn default() -> Self {
        let whom = BTreeSet::new();
        Status {
            asking: 0,
            queued: 0,
            waiting: 0,
            following: 0,
            pausing: 0,
            limits: Vec::new(),
            trouble: None,
            news: Instant::now(),
            whom,
            batches: Words::default(),
        }
    }
}

impl Status {
    /// Records which server is called.
    pub(super) fn asks(&mut self, whom: String) {
        if !self.whom.contains(&whom) {
            self.whom.insert(whom);
        }
    }

    /// Why answers are awaited.
    pub(super) fn words(&self) -> String {
        let batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reason = batches.values().cloned().collect::<Vec<_>>().join(", ");
        if reason.is_empty() || self.asking > 0 {
            let and = if reason.is_empty() { "" } else { ", and " };
            reason.push_str(&format!("{and}{} in flight", counted(self.asking, "call")));
        }
        if !self.whom.is_empty() && (self.asking > 0 || batches.is_empty()) {
            reason.push_str(&format!(" to {}", self.whom.iter().cloned().collect::<Vec<_>>().join(", ")));
        }
        let silent = self.news.elapsed().as_secs();
        if silent > 0 && self.asking > 0 {
            reason.push_str(&format!(", no news for {silent} s"));
        }
        for (n, what) in [
            (self.queued, "queued for a connection"),
            (self.following, "waiting for the answer to an identical request"),
            (self.pausing, "waiting to be retried"),
        ] {
            if n > 0 {
                reason.push_str(&format!(", {n} {what}"));
            }
        }
        for limit in &self.limits {
            reason.push_str(&format!(", slowed by {limit}"));
        }
        if let Some(trouble) = &self.trouble {
            reason.push_str(&format!("; retrying after: {trouble}"));
        }
        reason
    }
}

/// See the module docs.
pub(super) struct Calling {
    providers: Arc<Providers>,
    prices: Prices,
    cache: Option<Arc<Cache>>,
    notes: Notes,
    seed: u64,
    scheduler: Scheduler,
    asking: JoinSet<Asked>,
    /// Requests in progress.
    asked: BTreeSet<EffectId>,
    /// Where requests are journaled before they are sent.
    ledger: Option<Ledger>,
    /// Refused constraint modes, by model.
    refused: BTreeMap<String, BTreeMap<Constrain, String>>,
    batches: Option<Batches>,
    /// Batches in progress.
    batching: JoinSet<Done>,
    /// Whether the run cannot proceed without an answer.
    stands: bool,
    words: Words,
    told: News,
    /// Reported answers and broken requests that the run has not taken yet: a busy run has not journaled them.
    untaken: usize,
    connections: usize,
    tells: Sender<News>,
    trouble: Option<String>,
    news: Instant,
    /// When people were last told that nothing arrives.
    reminded: Instant,
    status: Arc<Mutex<Status>>,
}

impl Calling {
    #[expect(clippy::too_many_arguments, reason = "what a run calls with")]
    pub(super) fn new(
        providers: Arc<Providers>,
        prices: Prices,
        cache: Option<Arc<Cache>>,
        notes: Notes,
        seed: u64,
        rules: Rules,
        batches: Option<Batches>,
        ledger: Option<Ledger>,
        tells: Sender<News>,
        status: Arc<Mutex<Status>>,
    ) -> Self {
        let words = status.lock().unwrap_or_else(PoisonError::into_inner).batches.clone();
        Calling {
            providers,
            prices,
            cache,
            notes,
            seed,
            scheduler: Scheduler::new(rules.clone()),
            asking: JoinSet::new(),
            asked: BTreeSet::new(),
            ledger,
            refused: BTreeMap::new(),
            batches,
            batching: JoinSet::new(),
            stands: false,
            words,
            told: News::default(),
            untaken: 0,
            connections: rules.connections,
            tells,
            trouble: None,
            news: Instant::now(),
            reminded: Instant::now(),
            status,
        }
    }

    /// Makes calls until the run hangs up. Calls in progress are then aborted.
    pub(super) async fn serve(mut self, mut commands: UnboundedReceiver<Command>) {
        loop {
            let due = self.due();
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                Some(asked) = self.asking.join_next() => self.joined(asked),
                Some(done) = self.batching.join_next() => self.collected(done),
                () = tokio::time::sleep_until(due.into()) => {}
            }
            while let Ok(command) = commands.try_recv() {
                self.obey(command);
            }
            // Simultaneous results are reported together, but no connection waits for that.
            while let Some(asked) = self.asking.try_join_next() {
                self.joined(asked);
            }
            self.pump();
            self.tell();
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Ask(effects) => {
                self.stands = false;
                self.scheduler.batch();
                effects.into_iter().for_each(|asking| self.begin(asking));
            }
            Command::Flush => self.stands = true,
            Command::Hold => self.drop_waiting(),
            Command::Taken(taken) => self.untaken = self.untaken.saturating_sub(taken),
            Command::Census(hands) => {
                let waiting = self.scheduler.held().chain(self.batches.iter().flat_map(Batches::claims));
                // Fresh news is reported after this.
                let News { answers, broken, dropped, .. } = &self.told;
                let come = answers.iter().map(|answer| answer.id).chain(broken.iter().map(|broken| broken.effect.id));
                let come = come.chain(dropped.iter().copied());
                // The receiver is missing only if the run has ended.
                let _ = hands.send(waiting.chain(self.asked.iter().copied()).chain(come).collect());
            }
            Command::Connections(most) => {
                self.connections = most;
                self.scheduler.connections(most);
            }
            Command::TakeBack(hands) => {
                // The receiver is missing only if the run has ended.
                let _ = hands.send(self.scheduler.take_back());
            }
        }
    }

    fn begin(&mut self, Asking { effect, key, rank }: Asking) {
        let now = Instant::now();
        if let Some(batches) = &mut self.batches {
            if batches.gathers(&effect.request.model) {
                self.scheduler.gathers(&effect.request.model);
            }
            if let Some(place) = batches.sent(&effect) {
                if let Some(call) = self.scheduler.begin_sent(effect, key, now) {
                    batches.claim(place, call);
                }
                return;
            }
        }
        self.scheduler.begin(effect, key, rank, now);
    }

    /// Drops everything not in progress. Batched requests stay in their batches.
    fn drop_waiting(&mut self) {
        self.told.dropped.extend(self.scheduler.drop_waiting());
        if let Some(batches) = &mut self.batches {
            batches.hold();
            let claims = batches.drop_claims();
            self.told.dropped.extend(self.scheduler.left(claims));
        }
    }

    /// Sends gathered requests, once the run cannot proceed without them.
    fn send_batches(&mut self) {
        let Some(batches) = self.batches.as_mut().filter(|_| self.stands && self.connections > 0) else { return };
        let mut ready = batches.take_sent();
        let mut refused = Vec::new();
        for questions in self.scheduler.gathered(Instant::now()) {
            let (made, not) = batches.make(questions);
            ready.extend(made);
            refused.extend(not);
        }
        for batch in ready {
            self.asked.extend(batch.effects());
            self.batching.spawn(batch.ask(self.words.clone()));
        }
        refused.into_iter().for_each(|asked| self.take(asked));
    }

    fn collected(&mut self, done: Result<Done, JoinError>) {
        match done {
            Ok(Done { asked, unsent, left }) => {
                asked.into_iter().for_each(|asked| self.take(asked));
                for call in unsent {
                    self.asked.remove(&call.effect.id);
                    self.scheduler.unsent(call);
                }
                for call in &left {
                    self.asked.remove(&call.effect.id);
                }
                self.told.dropped.extend(self.scheduler.left(left));
            }
            Err(error) => self.give_up(format!("a batch was aborted by a defect: {error}")),
        }
    }

    /// The time of the next task if nothing arrives.
    fn due(&mut self) -> Instant {
        let quiet = (!self.asking.is_empty()).then(|| self.news.max(self.reminded) + QUIET);
        let due = if self.has_room() { self.scheduler.next_due(Instant::now()) } else { None };
        let gathered = if self.stands && self.connections > 0 { self.scheduler.gathered_due() } else { None };
        quiet.into_iter().chain(due).chain(gathered).min().unwrap_or_else(|| Instant::now() + IDLE)
    }

    /// Whether the run allows more requests: untaken answers are lost with the process, so their number is limited.
    fn has_room(&self) -> bool {
        self.untaken < self.connections
    }

    /// Starts as many calls as allowed.
    fn pump(&mut self) {
        self.send_batches();
        let mut calls = Vec::new();
        while self.has_room()
            && let Some(call) = self.scheduler.next(Instant::now())
        {
            calls.push(call);
        }
        if calls.is_empty() {
            return;
        }
        if self.asking.is_empty() {
            self.news = Instant::now();
        }
        // A sent request is paid for, whatever happens to this process.
        if let Some(ledger) = &self.ledger {
            // Tools cost nothing, but calls with an effect outside must be known of.
            let entered = |request: &Request| request.model.kind() != TargetKind::Tool || !self.repeatable(request);
            let entered = calls.iter().filter(|call| entered(&call.effect.request));
            let sent = entered.map(|call| Sent { id: call.effect.id, most: self.most(&call.effect) }).collect();
            if let Err(why) = ledger(sent) {
                self.told.dropped.extend(self.scheduler.left(calls));
                return self.give_up(why);
            }
        }
        for call in calls {
            self.asked.insert(call.effect.id);
            self.asking.spawn(ask(self.providers.clone(), call, self.seed));
        }
    }

    fn joined(&mut self, asked: Result<Asked, JoinError>) {
        match asked {
            Ok(asked) => self.take(asked),
            Err(error) => self.give_up(format!("a call was aborted by a defect: {error}")),
        }
    }

    fn take(&mut self, (call, result): Asked) {
        let (waited, now) = (self.news.elapsed(), Instant::now());
        self.news = now;
        self.asked.remove(&call.effect.id);
        let model = call.effect.request.model.name();
        if let Ok(provider) = self.providers.for_model(model) {
            if let Some(told) = provider.limits(model) {
                self.scheduler.told(model, told, now);
            }
            let refused = provider.refused(model);
            if self.refused.get(model).map_or(!refused.is_empty(), |known| *known != refused) {
                let known = self.refused.insert(model.to_owned(), refused.clone()).unwrap_or_default();
                self.tell_forms(model, &known, &refused);
            }
        }
        match result {
            Ok(Exchange { outcome, usage, reasoning }) => {
                if self.trouble.take().is_some() && waited >= QUIET {
                    self.notes.tell("answers are arriving again");
                }
                let usage = self.prices.applied_as(&call.effect.request.model, usage, call.batched);
                let exchange = Exchange { outcome, usage, reasoning };
                if let (Some(cache), Some(key)) = (&self.cache, &call.key) {
                    cache.put(key, &exchange);
                }
                if usage.estimated {
                    let address = self.providers.for_model(model).ok().and_then(|provider| provider.address(model));
                    self.notes.tell(&format!(
                        "{} does not report how many tokens `{model}` uses; each call is counted as the most \
                         it can use",
                        address.unwrap_or_default()
                    ));
                }
                self.told.answers.extend(self.scheduler.answered(call, exchange, now));
            }
            Err(ProviderError::Anew { why }) => {
                self.notes.tell(&why);
                self.scheduler.anew(call, now);
            }
            Err(ProviderError::Retry { why, charged: true, .. }) if !self.repeatable(&call.effect.request) => {
                let why = format!("{MAY_BE_DONE}: {why}");
                self.notes.tell(&why);
                self.told.answers.extend(self.scheduler.never(call, &why));
            }
            Err(ProviderError::Retry { why, after_ms, charged }) => {
                self.notes.tell(&format!("{why}; the question is asked again"));
                let most = charged.then(|| self.most(&call.effect));
                let after = self.scheduler.retry(call, &why, after_ms, most, now);
                self.failed(after, why);
            }
            Err(ProviderError::RateLimited { why, after_ms }) => {
                self.notes.tell(&format!("{why}; the question is asked again, with fewer calls at once"));
                let after = self.scheduler.turned_away(call, &why, after_ms, now);
                self.failed(after, why);
            }
            Err(ProviderError::Never { why }) => {
                self.notes.tell(&why);
                self.told.answers.extend(self.scheduler.never(call, &why));
            }
            Err(ProviderError::Fatal { why }) => self.give_up(why),
        }
    }

    fn repeatable(&self, request: &Request) -> bool {
        self.providers.for_model(&request.model).is_ok_and(|provider| provider.repeatable(request))
    }

    fn failed(&mut self, after: After, why: String) {
        match after {
            After::Again => {}
            After::Lost(why) => self.give_up(why),
        }
        self.trouble = Some(why);
    }

    /// Reports changes in the constraint modes of a model.
    fn tell_forms(&mut self, model: &str, known: &BTreeMap<Constrain, String>, refused: &BTreeMap<Constrain, String>) {
        let change =
            |way: Constrain, used, why: &str| FormChange { model: model.to_owned(), way, used, why: why.to_owned() };
        let new = refused.iter().filter(|(way, _)| !known.contains_key(way));
        let over = known.keys().filter(|way| !refused.contains_key(way));
        let mut changes: Vec<FormChange> = new.map(|(way, why)| change(*way, false, why)).collect();
        changes.extend(over.map(|way| change(*way, true, "it was accepted when it was tried again")));
        for FormChange { way, used, why, .. } in &changes {
            let way = way.name();
            self.notes.tell(&match used {
                false => {
                    format!("replies of `{model}` are no longer constrained by `{way}`, which was refused twice: {why}")
                }
                true => format!("replies of `{model}` are constrained by `{way}` again"),
            });
        }
        self.told.forms.extend(changes);
    }

    fn most(&self, effect: &Effect) -> Usage {
        let model = &effect.request.model;
        let most = self.providers.for_model(model).map(|provider| provider.most(&effect.request));
        self.prices.applied(model, most.unwrap_or_default())
    }

    fn give_up(&mut self, why: String) {
        self.drop_waiting();
        self.told.lost.get_or_insert(why);
    }

    /// Reports news to the run, and to people if there is none for long.
    fn tell(&mut self) {
        self.told.broken.extend(self.scheduler.take_broken());
        if !self.told.is_empty() {
            // No one listens once the run has ended.
            self.untaken += self.told.answers.len() + self.told.broken.len();
            let _ = self.tells.send(std::mem::take(&mut self.told));
        }
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        (status.asking, status.queued) = (self.scheduler.asking(), self.scheduler.queued());
        status.waiting = self.scheduler.waiting();
        (status.following, status.pausing) = (self.scheduler.following(), self.scheduler.pausing());
        status.limits = self.scheduler.limits(Instant::now());
        status.trouble.clone_from(&self.trouble);
        status.news = self.news;
        if !self.asking.is_empty() && self.news.max(self.reminded).elapsed() >= QUIET {
            self.reminded = Instant::now();
            self.notes.remind(&format!("still waiting: {}", status.words()));
        }
    }
}

/// Journals requests about to be sent. The error says why they must not be.
pub(crate) type Ledger = Arc<dyn Fn(Vec<Sent>) -> Result<(), String> + Send + Sync>;

async fn ask(providers: Arc<Providers>, call: Call, seed: u64) -> Asked {
    let result = match providers.for_model(&call.effect.request.model) {
        Ok(provider) => provider.answer(&call.effect, seed).await,
        Err(why) => Err(ProviderError::Fatal { why }),
    };
    (call, result)
}
