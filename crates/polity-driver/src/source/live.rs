//! Answers from providers. A run asks and listens here; the calls themselves are made by a task of their own (`calling.rs`), so that a
//! connection that has become free asks again whatever the run is busy with.

use super::batches::Batches;
use super::cache::{Cache, Key};
use super::calling::{Asking, Calling, Command, Ledger, News, Status};
use super::traffic::{Declared, Rules, Schedule};
use super::{Broken, FormChange, Notes, Source};
use crate::disk::{Disk, RealDisk};
use crate::models::prices::Prices;
use crate::models::{Exchange, Providers};
use crate::traces::Traces;
use polity_kernel::ask::{Answer, Effect, EffectId, Usage};
use polity_kernel::scenario::Price;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// How providers are asked, besides how many calls are in flight.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// Prices in place of those that a run has recorded.
    pub prices: BTreeMap<String, Price>,
    /// A folder of answers that outlive runs.
    pub cache: Option<PathBuf>,
    /// Limits of every model, besides those that its provider tells.
    pub declared: Declared,
    /// Whose turn it is when not all can be asked at once.
    pub schedule: Schedule,
    /// How long a question is tried again while its provider is in trouble; as the scenario has it, if nothing is said.
    pub patience: Option<Duration>,
    /// How long a run that is to stop waits for what is in flight; [`GRACE`](crate::drive::GRACE), if nothing is said.
    pub grace: Option<Duration>,
    /// Whether questions go together in batches, where their provider has them; as the run was begun, if nothing is said.
    pub batch: Option<bool>,
    /// How long a batch is left alone before it is looked at, ten seconds by default; the pause grows to thirty times that.
    pub batch_pause: Option<Duration>,
    /// Where people are told of trouble.
    pub notes: Notes,
    /// Where spans of what is asked go, if anywhere.
    pub traces: Option<Traces>,
}

/// How urgent a question is.
pub type Ranks = Arc<dyn Fn(&Effect) -> i32 + Send + Sync>;

/// Live providers, at most so many connections at once.
pub struct Live {
    providers: Arc<Providers>,
    prices: Prices,
    cache: Option<Arc<Cache>>,
    notes: Notes,
    seed: u64,
    rules: Rules,
    ranks: Option<Ranks>,
    /// Until the task begins, which has them then.
    batches: Option<Batches>,
    ledger: Option<Ledger>,
    /// Whether something has been begun since the task was last told that the run stands.
    fresh: bool,
    /// To the task that makes calls; it begins with the first call.
    line: Option<Line>,
    /// Effects that the task has, and has told nothing of yet.
    under_way: BTreeSet<EffectId>,
    ready: Vec<Answer>,
    broken: Vec<Broken>,
    forms: Vec<FormChange>,
    /// Broken requests that were handed out since the task was last told of any.
    taken: usize,
    /// When the task last told something, or was asked what it has.
    heard: Instant,
    /// How calls stand, and whom they ask, for people.
    status: Arc<Mutex<Status>>,
    lost: Option<String>,
}

struct Line {
    commands: UnboundedSender<Command>,
    news: Receiver<News>,
}

impl Live {
    /// Opens no connection yet. `seed` reaches simulated models only.
    #[must_use]
    pub fn new(providers: Arc<Providers>, seed: u64, connections: usize, outside: &Outside) -> Self {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let cache = outside.cache.as_ref().map(|folder| Arc::new(Cache::new(disk, folder, outside.notes.clone())));
        Live {
            providers,
            prices: Prices::default(),
            cache,
            notes: outside.notes.clone(),
            seed,
            rules: Rules {
                connections: connections.max(1),
                declared: outside.declared,
                schedule: outside.schedule,
                patience: outside.patience,
            },
            ranks: None,
            batches: None,
            ledger: None,
            fresh: false,
            line: None,
            under_way: BTreeSet::new(),
            ready: Vec::new(),
            broken: Vec::new(),
            forms: Vec::new(),
            taken: 0,
            heard: Instant::now(),
            status: Arc::default(),
            lost: None,
        }
    }

    /// With prices, by which the cost of an answer is told where its provider does not tell it.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Live { prices, ..self }
    }

    /// With priorities, for the schedule that looks at them.
    #[must_use]
    pub fn with_ranks(self, ranks: Ranks) -> Self {
        Live { ranks: Some(ranks), ..self }
    }

    /// With batches, where they are wanted or were sent before.
    #[must_use]
    pub(crate) fn with_batches(self, batches: Batches) -> Self {
        Live { batches: Some(batches), ..self }
    }

    /// With a ledger, in which requests are entered before they are sent.
    #[must_use]
    pub(crate) fn with_ledger(self, ledger: Ledger) -> Self {
        Live { ledger: Some(ledger), ..self }
    }

    /// An answer that is there at once: a simulated model's.
    fn at_once(&self, effect: &Effect) -> Option<Exchange> {
        let provider = self.providers.for_model(&effect.request.model).ok().filter(|provider| provider.simulated())?;
        match provider.answer(effect, self.seed).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(exchange)) => Some(exchange),
            // Whatever it is, it is asked again like others.
            Poll::Ready(Err(_)) | Poll::Pending => None,
        }
    }

    /// What may share an answer: nothing of simulated models, which answer each effect for itself.
    fn key(&mut self, effect: &Effect) -> Option<Key> {
        let provider = self.providers.for_model(&effect.request.model).ok()?;
        let address = provider.address(&effect.request.model).filter(|_| !provider.simulated())?;
        let key = Key::of(&address, &effect.request);
        self.status().asks(address);
        key
    }

    fn line(&mut self) -> Result<&Line, String> {
        if self.line.is_none() {
            let runtime = self.providers.runtime().map_err(|e| format!("no thread for calls can be started: {e}"))?;
            let (commands, obeys) = tokio::sync::mpsc::unbounded_channel();
            let (tells, news) = std::sync::mpsc::channel();
            let calling = Calling::new(
                self.providers.clone(),
                self.prices.clone(),
                self.cache.clone(),
                self.notes.clone(),
                self.seed,
                self.rules,
                self.batches.take(),
                self.ledger.take(),
                tells,
                self.status.clone(),
            );
            runtime.spawn(calling.serve(obeys));
            self.line = Some(Line { commands, news });
        }
        self.line.as_ref().ok_or_else(|| "no thread for calls is there".into())
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        // Numbers and names are behind it: they are as good after a panic as before.
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&mut self, news: News) {
        let News { answers, broken, dropped, forms, lost } = news;
        let answered = answers.iter().map(|answer| answer.id);
        for id in answered.chain(broken.iter().map(|broken| broken.effect.id)).chain(dropped) {
            self.under_way.remove(&id);
        }
        self.ready.extend(answers);
        self.broken.extend(broken);
        self.forms.extend(forms);
        if let Some(why) = lost {
            self.lost.get_or_insert(why);
        }
    }

    /// Nothing has come for long: compares what is under way here with what the task has. What it has lost can never come.
    fn look_around(&mut self) {
        self.heard = Instant::now();
        let (hands, told) = std::sync::mpsc::channel();
        self.send(Command::Census(hands));
        // A task that has too much to do to answer is asked again later.
        let Ok(there) = told.recv_timeout(ROUND_TRIP) else { return };
        // What it told before it was asked.
        let heard: Vec<News> = self.line.iter().flat_map(|line| line.news.try_iter()).collect();
        heard.into_iter().for_each(|news| self.take(news));
        let mut missing = self.under_way.difference(&there);
        if let Some(first) = missing.next() {
            let n = 1 + missing.count();
            self.lost.get_or_insert(format!(
                "{n} questions that were asked are neither waiting nor being answered; the first is {first}. This is a defect of Polity, \
                 please report it. Nothing is lost: a resumed run asks them again"
            ));
        }
    }

    fn send(&mut self, command: Command) {
        let sent = self.line().and_then(|line| line.commands.send(command).map_err(|_| DEFECT.to_owned()));
        if let Err(why) = sent {
            self.lost.get_or_insert(why);
        }
    }
}

/// With so many questions waiting for each connection more of them would only wait longer.
const SATED: usize = 4;
/// After so long without news it is looked whether what is waited for is there at all.
const SILENCE: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 5_000 });
/// How long the task may take to say what it has.
const ROUND_TRIP: Duration = Duration::from_secs(2);
const DEFECT: &str = "the calls were broken off by a defect";

impl Source for Live {
    fn start(&mut self, effects: Vec<Effect>) {
        let mut calls = Vec::new();
        for effect in effects {
            // In a pause nobody is asked.
            let at_once = if self.rules.connections > 0 { self.at_once(&effect) } else { None };
            if let Some(Exchange { outcome, usage }) = at_once {
                let usage = self.prices.applied(&effect.request.model, Usage { retries: 0, ..usage });
                self.ready.push(Answer { id: effect.id, request: effect.request, outcome, usage });
                continue;
            }
            let key = self.key(&effect);
            let kept = self.cache.as_ref().zip(key.as_ref()).and_then(|(cache, key)| cache.get(key));
            match kept {
                Some((outcome, usage)) => {
                    // Of volatile things what holds now: nobody was asked, and prices are this run's.
                    let usage = Usage { retries: 0, shared: true, ..usage };
                    let usage = self.prices.applied(&effect.request.model, usage);
                    self.ready.push(Answer { id: effect.id, request: effect.request, outcome, usage });
                }
                None => {
                    let rank = self.ranks.as_ref().map_or(0, |rank| rank(&effect));
                    calls.push(Asking { effect, key, rank });
                }
            }
        }
        if !calls.is_empty() {
            self.under_way.extend(calls.iter().map(|asking| asking.effect.id));
            self.heard = Instant::now();
            self.fresh = true;
            self.send(Command::Ask(calls));
        }
    }

    fn in_flight(&self) -> usize {
        self.under_way.len() + self.ready.len() + self.broken.len()
    }

    fn wait(&mut self, patience: Duration) -> Vec<Answer> {
        // By now those that were handed out have been begun again, or never will be.
        let mut taken = std::mem::take(&mut self.taken);
        if taken > 0 {
            self.send(Command::Taken(taken));
            taken = 0;
        }
        if let Some(Line { news, .. }) = &self.line {
            let mut heard: Vec<News> = news.try_iter().collect();
            if heard.is_empty() && self.ready.is_empty() && self.broken.is_empty() && !self.under_way.is_empty() {
                match news.recv_timeout(patience) {
                    Ok(more) => heard.push(more),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        self.lost.get_or_insert_with(|| DEFECT.into());
                    }
                }
                heard.extend(news.try_iter());
            }
            taken += heard.iter().map(|news| news.answers.len()).sum::<usize>();
            if !heard.is_empty() {
                self.heard = Instant::now();
            }
            heard.into_iter().for_each(|news| self.take(news));
            if taken > 0 {
                self.send(Command::Taken(taken));
            }
            if !self.under_way.is_empty() && self.lost.is_none() && self.heard.elapsed() >= SILENCE {
                self.look_around();
            }
        }
        std::mem::take(&mut self.ready)
    }

    fn is_sated(&self) -> Option<bool> {
        Some(self.status().waiting >= SATED.saturating_mul(self.rules.connections))
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.fresh) {
            self.send(Command::Flush);
        }
    }

    fn broken(&mut self) -> Vec<Broken> {
        self.taken += self.broken.len();
        std::mem::take(&mut self.broken)
    }

    fn forms(&mut self) -> Vec<FormChange> {
        std::mem::take(&mut self.forms)
    }

    fn hold(&mut self) {
        self.broken.iter_mut().for_each(|broken| broken.again = false);
        if self.line.is_some() {
            self.send(Command::Hold);
        }
    }

    fn connections(&mut self, most: usize) {
        self.rules.connections = most;
        if self.line.is_some() {
            self.send(Command::Connections(most));
        }
    }

    fn take_back(&mut self) -> Vec<Effect> {
        if self.line.is_none() {
            return Vec::new();
        }
        let (hands, back) = std::sync::mpsc::channel();
        self.send(Command::TakeBack(hands));
        // Nothing comes from a task that has broken down, which is told when it is waited for.
        let back = back.recv().unwrap_or_default();
        for effect in &back {
            self.under_way.remove(&effect.id);
        }
        back
    }

    fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn reason(&self) -> String {
        self.status().words()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Answering, Provider};
    use polity_kernel::ask::{Asker, EffectId, Outcome, Request, Value, Want};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Answers at once, and counts.
    struct Quick(Arc<AtomicUsize>);

    impl Provider for Quick {
        fn name(&self) -> &'static str {
            "quick"
        }

        fn check(&self, _: &str) -> Result<(), String> {
            Ok(())
        }

        fn most(&self, _: &Request) -> Usage {
            Usage::default()
        }

        fn simulated(&self) -> bool {
            false
        }

        fn answer<'a>(&'a self, _: &'a Effect, _: u64) -> Answering<'a> {
            self.0.fetch_add(1, Ordering::SeqCst);
            let outcome = Outcome::Reply { value: Value::Text("x".into()), raw: "x".into(), repaired: false };
            Box::pin(std::future::ready(Ok(Exchange { outcome, usage: Usage::default() })))
        }
    }

    #[test]
    fn a_run_that_is_busy_is_not_asked_for_without_end_and_goes_on_when_it_listens() {
        let asked = Arc::new(AtomicUsize::new(0));
        let providers = Arc::new(Providers::of(vec![Box::new(Quick(asked.clone()))]));
        let mut live = Live::new(providers, 1, 4, &Outside::default());
        let effect = |actor| Effect {
            id: EffectId { item: 0, round: 0, actor, asker: Asker::Agent, n: 0 },
            request: Request::new("quick/m", Vec::new(), Want::Text),
            hidden: None,
            default: None,
        };
        live.start((0..100).map(effect).collect());
        // What has been answered and not taken would be lost with the process: as much as is under way, and no more.
        std::thread::sleep(Duration::from_millis(200));
        let busy = asked.load(Ordering::SeqCst);
        assert!((1..=2 * 4).contains(&busy), "{busy}");
        assert_eq!(live.is_sated(), Some(true), "{} wait", live.status().waiting);
        let mut answers = 0;
        while live.in_flight() > 0 {
            answers += live.wait(Duration::from_secs(5)).len();
        }
        assert_eq!((answers, asked.load(Ordering::SeqCst)), (100, 100));
        assert_eq!(live.is_sated(), Some(false));
    }

    #[test]
    fn what_is_waited_for_and_is_nowhere_ends_the_run() {
        let providers = Arc::new(Providers::of(vec![Box::new(Quick(Arc::default()))]));
        let mut live = Live::new(providers, 1, 4, &Outside::default());
        let request = Request::new("quick/m", Vec::new(), Want::Text);
        let id = EffectId { item: 0, round: 0, actor: 7, asker: Asker::Agent, n: 0 };
        live.start(vec![Effect { id, request, hidden: None, default: None }]);
        while live.in_flight() > 0 {
            live.wait(Duration::from_secs(5));
        }
        assert_eq!(live.lost(), None);
        // As a defect would have it: the run counts on a question that the task has never heard of.
        live.under_way.insert(id);
        while live.lost().is_none() {
            assert!(live.wait(Duration::from_millis(100)).is_empty());
        }
        assert!(live.lost().is_some_and(|why| why.contains("agent 7") && why.contains("asks them again")));
    }
}
