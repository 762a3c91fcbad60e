//! The task that makes the calls of a run: it asks as many at once as it may, and tells what came of it. What is asked when is decided in
//! `traffic/`; what goes together in batches is sent by `batches.rs`.

use super::batches::{Asked, Batches, Done, Words};
use super::cache::{Cache, Key};
use super::traffic::{After, Call, Rules, Traffic};
use super::{Broken, FormChange, Notes};
use crate::models::prices::Prices;
use crate::models::{Exchange, Providers, Trouble};
use crate::tools::is_tool;
use polity_kernel::ask::{Answer, Constrain, Effect, EffectId, Usage};
use polity_kernel::event::Sent;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinError, JoinSet};

/// After so long without any news people are told who is waited for.
const QUIET: Duration = Duration::from_secs(4);
/// How long nothing at all may take: the task looks around.
const IDLE: Duration = Duration::from_secs(3600);

/// A question of the run.
pub(super) struct Asking {
    pub effect: Effect,
    /// Of what may share its answer.
    pub key: Option<Key>,
    /// How urgent it is, where the schedule looks at that.
    pub rank: i32,
}

/// What the run wants.
pub(super) enum Command {
    /// That these are asked; those with the same key share an answer.
    Ask(Vec<Asking>),
    /// That it can not move on without an answer: what was gathered is sent.
    Flush,
    /// That nothing more is begun.
    Hold,
    /// That so many calls may be in flight; none in a pause.
    Connections(usize),
    /// That it has so many answers and broken requests now.
    Taken(usize),
    /// Which questions are here, wherever they wait.
    Census(Sender<BTreeSet<EffectId>>),
    /// What has never been asked, with what shares it.
    TakeBack(Sender<Vec<Effect>>),
}

/// What the run is told.
#[derive(Default)]
pub(super) struct News {
    pub answers: Vec<Answer>,
    pub broken: Vec<Broken>,
    /// Effects that will have no answer, because nothing more is begun.
    pub dropped: Vec<EffectId>,
    /// Changes in how models are held to a form.
    pub forms: Vec<FormChange>,
    pub lost: Option<String>,
}

impl News {
    fn is_empty(&self) -> bool {
        let Self { answers, broken, dropped, forms, lost } = self;
        answers.is_empty() && broken.is_empty() && dropped.is_empty() && forms.is_empty() && lost.is_none()
    }
}

/// How things stand, for people.
#[derive(Clone, Debug)]
pub(super) struct Status {
    asking: usize,
    queued: usize,
    /// Of these, those that are not gathered for a batch.
    pub(super) waiting: usize,
    following: usize,
    pausing: usize,
    /// Limits that calls wait for.
    limits: Vec<String>,
    /// The last trouble since an answer came.
    trouble: Option<String>,
    /// When there last was news: an answer, or trouble.
    news: Instant,
    /// Who is asked.
    whom: BTreeSet<String>,
    /// How batches stand.
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
    /// Notes who is asked.
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
            reason.push_str(&format!("{and}{} calls in flight", self.asking));
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
            (self.following, "share the answer to another"),
            (self.pausing, "are tried again soon"),
        ] {
            if n > 0 {
                reason.push_str(&format!(", {n} {what}"));
            }
        }
        for limit in &self.limits {
            reason.push_str(&format!(", kept within {limit}"));
        }
        if let Some(trouble) = &self.trouble {
            reason.push_str(&format!("; tried again after: {trouble}"));
        }
        reason
    }
}

/// See the module.
pub(super) struct Calling {
    providers: Arc<Providers>,
    prices: Prices,
    cache: Option<Arc<Cache>>,
    notes: Notes,
    seed: u64,
    traffic: Traffic,
    asking: JoinSet<Asked>,
    /// The questions that are being asked.
    asked: BTreeSet<EffectId>,
    /// Where requests are journaled before they are sent.
    ledger: Option<Ledger>,
    /// By model, the ways of holding it to a form that its server is known to refuse.
    refused: BTreeMap<String, BTreeMap<Constrain, String>>,
    batches: Option<Batches>,
    /// Those under way.
    batching: JoinSet<Done>,
    /// Whether the run can not move on without an answer.
    stands: bool,
    words: Words,
    told: News,
    /// Answers and broken requests that were told and that the run has not taken yet: a run that is busy has them in no journal.
    untaken: usize,
    connections: usize,
    tells: Sender<News>,
    trouble: Option<String>,
    news: Instant,
    /// When people were last told that nothing comes.
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
            traffic: Traffic::new(rules),
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

    /// Makes calls until the run hangs up. Calls that are under way then are broken off.
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
            // What has come together is told together, but no connection waits for that.
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
                self.traffic.batch();
                effects.into_iter().for_each(|asking| self.begin(asking));
            }
            Command::Flush => self.stands = true,
            Command::Hold => self.drop_waiting(),
            Command::Taken(taken) => self.untaken = self.untaken.saturating_sub(taken),
            Command::Census(hands) => {
                let waiting = self.traffic.held().chain(self.batches.iter().flat_map(Batches::claims));
                // What has just come is told after this.
                let News { answers, broken, dropped, .. } = &self.told;
                let come = answers.iter().map(|answer| answer.id).chain(broken.iter().map(|broken| broken.effect.id));
                let come = come.chain(dropped.iter().copied());
                // Who does not wait for it has ended.
                let _ = hands.send(waiting.chain(self.asked.iter().copied()).chain(come).collect());
            }
            Command::Connections(most) => {
                self.connections = most;
                self.traffic.connections(most);
            }
            Command::TakeBack(hands) => {
                // Who does not wait for it has ended.
                let _ = hands.send(self.traffic.take_back());
            }
        }
    }

    fn begin(&mut self, Asking { effect, key, rank }: Asking) {
        let now = Instant::now();
        if let Some(batches) = &mut self.batches {
            if batches.gathers(&effect.request.model) {
                self.traffic.gathers(&effect.request.model, now);
            }
            if let Some(place) = batches.sent(&effect) {
                if let Some(call) = self.traffic.begin_sent(effect, key, now) {
                    batches.claim(place, call);
                }
                return;
            }
        }
        self.traffic.begin(effect, key, rank, now);
    }

    /// Drops all that is not under way. What is in batches stays there.
    fn drop_waiting(&mut self) {
        self.told.dropped.extend(self.traffic.drop_waiting());
        if let Some(batches) = &mut self.batches {
            batches.hold();
            let claims = batches.drop_claims();
            self.told.dropped.extend(self.traffic.left(claims));
        }
    }

    /// Sends what was gathered, once the run can not move on without it.
    fn send_batches(&mut self) {
        let Some(batches) = self.batches.as_mut().filter(|_| self.stands && self.connections > 0) else { return };
        let mut ready = batches.take_sent();
        let mut refused = Vec::new();
        for questions in self.traffic.gathered(Instant::now()) {
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
                    self.traffic.unsent(call);
                }
                for call in &left {
                    self.asked.remove(&call.effect.id);
                }
                self.told.dropped.extend(self.traffic.left(left));
            }
            Err(error) => self.give_up(format!("a batch was broken off by a defect: {error}")),
        }
    }

    /// When there is something to do even if nothing comes.
    fn due(&mut self) -> Instant {
        let quiet = (!self.asking.is_empty()).then(|| self.news.max(self.reminded) + QUIET);
        let due = if self.has_room() { self.traffic.next_due(Instant::now()) } else { None };
        let gathered = if self.stands && self.connections > 0 { self.traffic.gathered_due() } else { None };
        quiet.into_iter().chain(due).chain(gathered).min().unwrap_or_else(|| Instant::now() + IDLE)
    }

    /// Whether more may be asked as far as the run is concerned: what it has not taken is lost with the process, and is not to grow.
    fn has_room(&self) -> bool {
        self.untaken < self.connections
    }

    /// Begins what the limit allows.
    fn pump(&mut self) {
        self.send_batches();
        let mut calls = Vec::new();
        while self.has_room()
            && let Some(call) = self.traffic.next(Instant::now())
        {
            calls.push(call);
        }
        if calls.is_empty() {
            return;
        }
        if self.asking.is_empty() {
            self.news = Instant::now();
        }
        // What is sent is paid, whatever becomes of this process.
        if let Some(ledger) = &self.ledger {
            let models = calls.iter().filter(|call| !is_tool(&call.effect.request.model));
            let sent = models.map(|call| Sent { id: call.effect.id, most: self.most(&call.effect) }).collect();
            if let Err(why) = ledger(sent) {
                self.told.dropped.extend(self.traffic.left(calls));
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
            Err(error) => self.give_up(format!("a call was broken off by a defect: {error}")),
        }
    }

    fn take(&mut self, (call, result): Asked) {
        let (waited, now) = (self.news.elapsed(), Instant::now());
        self.news = now;
        self.asked.remove(&call.effect.id);
        let model = &call.effect.request.model;
        if let Ok(provider) = self.providers.for_model(model) {
            if let Some(told) = provider.limits(model) {
                self.traffic.told(model, told, now);
            }
            let refused = provider.refused(model);
            if self.refused.get(model).map_or(!refused.is_empty(), |known| *known != refused) {
                let known = self.refused.insert(model.clone(), refused.clone()).unwrap_or_default();
                self.tell_forms(&model.clone(), &known, &refused);
            }
        }
        match result {
            Ok(Exchange { outcome, usage }) => {
                if self.trouble.take().is_some() && waited >= QUIET {
                    self.notes.tell("answers come again");
                }
                let usage = self.prices.applied_as(&call.effect.request.model, usage, call.batched);
                if let (Some(cache), Some(key)) = (&self.cache, &call.key) {
                    cache.put(key, &outcome, &usage);
                }
                if usage.estimated {
                    let address = self.providers.for_model(model).ok().and_then(|provider| provider.address(model));
                    self.notes.tell(&format!(
                        "{} does not tell how many tokens `{model}` takes: they are counted at the most that a call can take",
                        address.unwrap_or_default()
                    ));
                }
                self.told.answers.extend(self.traffic.answered(call, Exchange { outcome, usage }, now));
            }
            Err(Trouble::Anew { why }) => {
                self.notes.tell(&why);
                self.traffic.anew(call, now);
            }
            Err(Trouble::Retry { why, after_ms, charged }) => {
                self.notes.tell(&format!("{why}; it is asked again"));
                let most = charged.then(|| self.most(&call.effect));
                let after = self.traffic.retry(call, &why, after_ms, most, now);
                self.failed(after, why);
            }
            Err(Trouble::Crowded { why, after_ms }) => {
                self.notes.tell(&format!("{why}; it is asked again, and less at once"));
                let after = self.traffic.turned_away(call, &why, after_ms, now);
                self.failed(after, why);
            }
            Err(Trouble::Never { why }) => {
                self.notes.tell(&why);
                self.told.answers.extend(self.traffic.never(call, &why));
            }
            Err(Trouble::Fatal { why }) => self.give_up(why),
        }
    }

    fn failed(&mut self, after: After, why: String) {
        match after {
            After::Again => {}
            After::Lost(why) => self.give_up(why),
        }
        self.trouble = Some(why);
    }

    /// Says what has changed in how a model is held to a form.
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

    /// Tells the run what there is to tell, and people if there is nothing for long.
    fn tell(&mut self) {
        self.told.broken.extend(self.traffic.take_broken());
        if !self.told.is_empty() {
            // Nobody listens any more when the run has ended.
            self.untaken += self.told.answers.len() + self.told.broken.len();
            let _ = self.tells.send(std::mem::take(&mut self.told));
        }
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        (status.asking, status.queued) = (self.traffic.asking(), self.traffic.queued());
        status.waiting = self.traffic.waiting();
        (status.following, status.pausing) = (self.traffic.following(), self.traffic.pausing());
        status.limits = self.traffic.limits(Instant::now());
        status.trouble.clone_from(&self.trouble);
        status.news = self.news;
        if !self.asking.is_empty() && self.news.max(self.reminded).elapsed() >= QUIET {
            self.reminded = Instant::now();
            self.notes.remind(&format!("still waiting: {}", status.words()));
        }
    }
}

/// Journals requests that are about to be sent. The error says why they must not be.
pub(crate) type Ledger = Arc<dyn Fn(Vec<Sent>) -> Result<(), String> + Send + Sync>;

async fn ask(providers: Arc<Providers>, call: Call, seed: u64) -> Asked {
    let result = match providers.for_model(&call.effect.request.model) {
        Ok(provider) => provider.answer(&call.effect, seed).await,
        Err(why) => Err(Trouble::Fatal { why }),
    };
    (call, result)
}
