//! Answers from providers. A run sends and listens here; the calls are made by a separate task (`calling.rs`), so that a free connection
//! is used at once, however busy the run is.

use super::batches::Batches;
use super::cache::{Cache, Key};
use super::calling::{Asking, Calling, Command, Ledger, MAY_BE_DONE, News, Status};
use super::scheduler::{Declared, Rules, Schedule, SharedLimits};
use super::{Broken, FormChange, Notes, Source};
use crate::traces::Traces;
use polity_kernel::ask::{Answer, Effect, EffectId, Outcome, Request, Usage};
use polity_kernel::scenario::Price;
use polity_models::models::prices::Prices;
use polity_models::models::{Exchange, Providers};
use polity_store::disk::{Disk, RealDisk};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// How providers are called, besides the number of connections.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// Prices that replace those recorded by a run.
    pub prices: BTreeMap<String, Price>,
    /// The folder of the cache across runs.
    pub cache: Option<PathBuf>,
    /// Limits of every model, besides those reported by its provider.
    pub declared: Declared,
    /// The runs that share the declared limits: all of the process, unless another scope is set.
    pub shared: Arc<SharedLimits>,
    /// The order of requests when not all can be sent at once.
    pub schedule: Schedule,
    /// How long a request is retried while its provider fails; by default from the scenario.
    pub patience: Option<Duration>,
    /// How long a stopping run waits for calls in flight; [`GRACE`](crate::drive::GRACE) by default.
    pub grace: Option<Duration>,
    /// Whether requests are sent in batches, if the provider supports them; by default as at the start of the run.
    pub batch: Option<bool>,
    /// Wait before a batch is first polled, ten seconds by default; it grows to thirty times that.
    pub batch_pause: Option<Duration>,
    /// Whether the scenario's tools may start programs and ask the hosts that it lists.
    pub allow_tools: bool,
    /// Where errors are reported to people.
    pub notes: Notes,
    /// Where spans of requests are sent, if anywhere.
    pub traces: Option<Traces>,
}

/// The priority of a request.
pub type Ranks = Arc<dyn Fn(&Effect) -> i32 + Send + Sync>;

/// Live providers, with limited connections.
pub struct Live {
    providers: Arc<Providers>,
    prices: Prices,
    cache: Option<Arc<Cache>>,
    notes: Notes,
    seed: u64,
    rules: Rules,
    ranks: Option<Ranks>,
    /// Held until the task starts, which takes them.
    batches: Option<Batches>,
    ledger: Option<Ledger>,
    /// Whether something was started since the task was last told that the run waits.
    fresh: bool,
    /// Connection to the task that makes calls; it starts with the first call.
    line: Option<Line>,
    /// Effects passed to the task, without a result yet.
    under_way: BTreeSet<EffectId>,
    ready: Vec<Answer>,
    broken: Vec<Broken>,
    forms: Vec<FormChange>,
    /// Broken requests returned since the task was last told.
    taken: usize,
    /// When the task last reported something, or was asked for its state.
    heard: Instant,
    /// The status of calls and the servers called, for people.
    status: Arc<Mutex<Status>>,
    lost: Option<String>,
    /// Requests that an earlier process sent and that may have been answered.
    in_doubt: BTreeSet<EffectId>,
}

struct Line {
    commands: UnboundedSender<Command>,
    news: Receiver<News>,
}

impl Live {
    /// Creates it without opening a connection. `seed` only affects simulated models.
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
                shared: outside.shared.clone(),
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
            in_doubt: BTreeSet::new(),
        }
    }

    /// Sets requests that an earlier process sent and that may have been answered. Those that must not be repeated fail.
    #[must_use]
    pub(crate) fn with_doubts(self, in_doubt: BTreeSet<EffectId>) -> Self {
        Live { in_doubt, ..self }
    }

    /// Sets prices, used for the cost of answers if the provider does not report it.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Live { prices, ..self }
    }

    /// Sets priorities, for the schedule that uses them.
    #[must_use]
    pub fn with_ranks(self, ranks: Ranks) -> Self {
        Live { ranks: Some(ranks), ..self }
    }

    /// Sets batches, if requested or sent before.
    #[must_use]
    pub(crate) fn with_batches(self, batches: Batches) -> Self {
        Live { batches: Some(batches), ..self }
    }

    /// Sets a ledger, in which requests are entered before they are sent.
    #[must_use]
    pub(crate) fn with_ledger(self, ledger: Ledger) -> Self {
        Live { ledger: Some(ledger), ..self }
    }

    /// An immediate answer, from a simulated or recorded model.
    fn at_once(&self, effect: &Effect) -> Option<Exchange> {
        let provider = self.providers.for_model(&effect.request.model).ok().filter(|provider| provider.immediate())?;
        match provider.answer(effect, self.seed).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(exchange)) => Some(exchange),
            // Anything else is sent again like other requests.
            Poll::Ready(Err(_)) | Poll::Pending => None,
        }
    }

    fn repeatable(&self, request: &Request) -> bool {
        self.providers.for_model(&request.model).is_ok_and(|provider| provider.repeatable(request))
    }

    /// The key for sharing an answer; `None` for simulated and recorded models, which answer each effect separately.
    fn key(&mut self, effect: &Effect) -> Option<Key> {
        let provider = self.providers.for_model(&effect.request.model).ok()?;
        let address = provider.address(&effect.request.model).filter(|_| !provider.immediate())?;
        let key = Key::of(&address, &effect.request);
        self.status().asks(address);
        key
    }

    fn line(&mut self) -> Result<&Line, String> {
        if self.line.is_none() {
            let runtime = self.providers.runtime().map_err(|e| format!("a thread for calls cannot be started: {e}"))?;
            let (commands, obeys) = tokio::sync::mpsc::unbounded_channel();
            let (tells, news) = std::sync::mpsc::channel();
            let calling = Calling::new(
                self.providers.clone(),
                self.prices.clone(),
                self.cache.clone(),
                self.notes.clone(),
                self.seed,
                self.rules.clone(),
                self.batches.take(),
                self.ledger.take(),
                tells,
                self.status.clone(),
            );
            runtime.spawn(calling.serve(obeys));
            self.line = Some(Line { commands, news });
        }
        self.line.as_ref().ok_or_else(|| "there is no thread for calls".into())
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        // The guarded data is valid even after a panic.
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

    /// Nothing has arrived for long: compares what is awaited here with what the task holds. What it has lost can never arrive.
    fn look_around(&mut self) {
        self.heard = Instant::now();
        let (hands, told) = std::sync::mpsc::channel();
        self.send(Command::Census(hands));
        // A task too busy to reply is asked again later.
        let Ok(there) = told.recv_timeout(ROUND_TRIP) else { return };
        // What it reported before it was asked.
        let heard: Vec<News> = self.line.iter().flat_map(|line| line.news.try_iter()).collect();
        heard.into_iter().for_each(|news| self.take(news));
        let mut missing = self.under_way.difference(&there);
        if let Some(first) = missing.next() {
            let n = 1 + missing.count();
            self.lost.get_or_insert(format!(
                "{n} questions that were asked are neither waiting nor being answered; the first is {first}. This is a \
                 defect in Polity; please report it. Nothing is lost: a resumed run asks them again"
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

/// Waiting requests per connection above which more would only wait longer.
const SATED: usize = 4;
/// Time without news after which it is checked whether the task still holds what is awaited.
const SILENCE: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 5_000 });
/// How long the task may take to reply.
const ROUND_TRIP: Duration = Duration::from_secs(2);
const DEFECT: &str = "the calls were aborted by a defect";

impl Source for Live {
    fn start(&mut self, effects: Vec<Effect>) {
        let mut calls = Vec::new();
        for effect in effects {
            // No new calls during a pause.
            let at_once = if self.rules.connections > 0 { self.at_once(&effect) } else { None };
            if let Some(Exchange { outcome, usage, reasoning }) = at_once {
                let usage = self.prices.applied(&effect.request.model, Usage { retries: 0, ..usage });
                self.ready.push(Answer { id: effect.id, request: effect.request, outcome, usage, reasoning });
                continue;
            }
            if self.in_doubt.contains(&effect.id) && !self.repeatable(&effect.request) {
                let why = format!("{MAY_BE_DONE}: the run ended before its result was recorded");
                let outcome = Outcome::Failed { why };
                self.ready.push(Answer {
                    id: effect.id,
                    request: effect.request,
                    outcome,
                    usage: Usage::default(),
                    reasoning: None,
                });
                continue;
            }
            let key = self.key(&effect);
            let kept = self.cache.as_ref().zip(key.as_ref()).and_then(|(cache, key)| cache.get(key));
            match kept {
                Some(Exchange { outcome, usage, reasoning }) => {
                    // Volatile values are the present ones: no call was made, and prices are this run's.
                    let usage = Usage { retries: 0, shared: true, ..usage };
                    let usage = self.prices.applied(&effect.request.model, usage);
                    self.ready.push(Answer { id: effect.id, request: effect.request, outcome, usage, reasoning });
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
        // By now, returned requests have been started again, or never will be.
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
        // A crashed task returns nothing, which is reported when it is awaited.
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
    use polity_kernel::ask::{Asker, EffectId, Outcome, Request, ResponseFormat, Value};
    use polity_models::models::{Answering, Provider};
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
            Box::pin(std::future::ready(Ok(Exchange { outcome, usage: Usage::default(), reasoning: None })))
        }
    }

    #[test]
    fn a_run_that_is_busy_is_not_asked_for_without_end_and_goes_on_when_it_listens() {
        let asked = Arc::new(AtomicUsize::new(0));
        let providers = Arc::new(Providers::of(vec![Box::new(Quick(asked.clone()))]));
        let mut live = Live::new(providers, 1, 4, &Outside::default());
        let effect = |actor| Effect {
            id: EffectId { item: 0, round: 0, actor, asker: Asker::Agent, n: 0 },
            request: Request::new("quick/m", Vec::new(), ResponseFormat::Text),
            hidden: None,
            default: None,
        };
        live.start((0..100).map(effect).collect());
        // Untaken answers would be lost with the process: no more than calls in progress are allowed.
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
        let request = Request::new("quick/m", Vec::new(), ResponseFormat::Text);
        let id = EffectId { item: 0, round: 0, actor: 7, asker: Asker::Agent, n: 0 };
        live.start(vec![Effect { id, request, hidden: None, default: None }]);
        while live.in_flight() > 0 {
            live.wait(Duration::from_secs(5));
        }
        assert_eq!(live.lost(), None);
        // Simulates a defect: the run awaits a request that the task never received.
        live.under_way.insert(id);
        while live.lost().is_none() {
            assert!(live.wait(Duration::from_millis(100)).is_empty());
        }
        assert!(live.lost().is_some_and(|why| why.contains("agent 7") && why.contains("asks them again")));
    }
}
