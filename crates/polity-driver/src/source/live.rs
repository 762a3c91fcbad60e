//! Answers from providers. The one place where waiting for the outside happens; what is asked when is decided in `traffic.rs`.

use super::cache::{Cache, Key};
use super::traffic::{After, Call, Traffic};
use super::{Broken, Notes, Source};
use crate::disk::{Disk, RealDisk};
use crate::models::prices::Prices;
use crate::models::{Exchange, Providers, Trouble};
use polity_kernel::ask::{Answer, Effect, Usage};
use polity_kernel::scenario::Price;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// After so long without any news people are told who is waited for.
const QUIET: Duration = Duration::from_secs(4);

/// How providers are asked, besides how many calls are in flight.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// Prices in place of those that a run has recorded.
    pub prices: BTreeMap<String, Price>,
    /// A folder of answers that outlive runs.
    pub cache: Option<PathBuf>,
    /// Where people are told of trouble.
    pub notes: Notes,
}

/// What came of asking.
type Asked = (Call, Result<Exchange, Trouble>);
type Asking = Pin<Box<dyn Future<Output = Asked> + Send>>;

/// Live providers, at most so many connections at once.
pub struct Live {
    runtime: Runtime,
    providers: Arc<Providers>,
    prices: Prices,
    cache: Option<Cache>,
    notes: Notes,
    seed: u64,
    connections: usize,
    traffic: Traffic,
    asking: JoinSet<Asked>,
    ready: Vec<Answer>,
    /// The last trouble since an answer came.
    trouble: Option<String>,
    /// Whom it asks, for people.
    whom: BTreeSet<String>,
    /// When there last was news: an answer, or trouble.
    news: Instant,
    lost: Option<String>,
}

impl Live {
    /// Opens no connection yet. `seed` reaches simulated models only.
    pub fn new(providers: Arc<Providers>, seed: u64, connections: usize, outside: &Outside) -> std::io::Result<Self> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let cache = outside.cache.as_ref().map(|folder| Cache::new(disk, folder, outside.notes.clone()));
        Ok(Live {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            providers,
            prices: Prices::default(),
            cache,
            notes: outside.notes.clone(),
            seed,
            connections: connections.max(1),
            traffic: Traffic::default(),
            asking: JoinSet::new(),
            ready: Vec::new(),
            trouble: None,
            whom: BTreeSet::new(),
            news: Instant::now(),
            lost: None,
        })
    }

    /// With prices, by which the cost of an answer is told where its provider does not tell it.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Live { prices, ..self }
    }

    /// What may share an answer: nothing of simulated models, which answer each effect for itself.
    fn key(&mut self, effect: &Effect) -> Option<Key> {
        let provider = self.providers.for_model(&effect.request.model).ok()?;
        let address = provider.address().filter(|_| !provider.simulated())?;
        let key = Key::of(&address, &effect.request);
        if !self.whom.contains(&address) {
            self.whom.insert(address);
        }
        key
    }

    fn take(&mut self, (call, result): Asked) {
        let waited = self.news.elapsed();
        self.news = Instant::now();
        match result {
            Ok(Exchange { outcome, usage }) => {
                if self.trouble.take().is_some() && waited >= QUIET {
                    self.notes.tell("answers come again");
                }
                let usage = self.prices.applied(&call.effect.request.model, usage);
                if let (Some(cache), Some(key)) = (&self.cache, &call.key) {
                    cache.put(key, &outcome, &usage);
                }
                self.ready.extend(self.traffic.answered(call, Exchange { outcome, usage }));
            }
            Err(Trouble::Retry { why, after_ms, charged }) => {
                self.notes.tell(&format!("{why}; it is asked again"));
                let most = charged.then(|| self.most(&call.effect));
                match self.traffic.retry(call, &why, after_ms, most, Instant::now()) {
                    After::Again => {}
                    After::Failed(answers) => self.ready.extend(answers),
                    After::Lost(why) => self.give_up(why),
                }
                self.trouble = Some(why);
            }
            Err(Trouble::Never { why }) => {
                self.notes.tell(&why);
                self.ready.extend(self.traffic.never(call, &why));
            }
            Err(Trouble::Fatal { why }) => self.give_up(why),
        }
    }

    fn most(&self, effect: &Effect) -> Usage {
        let model = &effect.request.model;
        let most = self.providers.for_model(model).map(|provider| provider.most(&effect.request));
        self.prices.applied(model, most.unwrap_or_default())
    }

    fn give_up(&mut self, why: String) {
        self.traffic.drop_waiting();
        self.lost.get_or_insert(why);
    }

    /// Starts what the limit allows. An answer that is there at once (a simulated model's) needs no task.
    fn pump(&mut self) {
        let runtime = self.runtime.handle().clone();
        let _in_runtime = runtime.enter();
        while let Some(call) = self.traffic.next(self.asking.len(), self.connections, Instant::now()) {
            if self.asking.is_empty() {
                self.news = Instant::now();
            }
            let mut asking: Asking = Box::pin(ask(self.providers.clone(), call, self.seed));
            match asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(asked) => self.take(asked),
                Poll::Pending => {
                    self.asking.spawn_on(asking, &runtime);
                }
            }
        }
    }

    /// Waits for news of a call, or for the end of a pause, at most `patience`.
    fn listen(&mut self, patience: Duration) {
        let due = self.traffic.next_due().filter(|_| self.connections > 0);
        let pause = due.map(|due| due.saturating_duration_since(Instant::now()));
        let patience = pause.map_or(patience, |pause| pause.min(patience));
        let asking = &mut self.asking;
        let first = self.runtime.block_on(async {
            match asking.is_empty() {
                true => {
                    tokio::time::sleep(patience).await;
                    None
                }
                false => tokio::time::timeout(patience, asking.join_next()).await.ok().flatten(),
            }
        });
        let mut done: Vec<_> = first.into_iter().collect();
        while let Some(more) = self.asking.try_join_next() {
            done.push(more);
        }
        for asked in done {
            match asked {
                Ok(asked) => self.take(asked),
                Err(error) => self.give_up(format!("a call was broken off by a defect: {error}")),
            }
        }
    }
}

async fn ask(providers: Arc<Providers>, call: Call, seed: u64) -> Asked {
    let result = match providers.for_model(&call.effect.request.model) {
        Ok(provider) => provider.answer(&call.effect, seed).await,
        Err(why) => Err(Trouble::Fatal { why }),
    };
    (call, result)
}

impl Source for Live {
    fn start(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let key = self.key(&effect);
            let kept = self.cache.as_ref().zip(key.as_ref()).and_then(|(cache, key)| cache.get(key));
            match kept {
                Some((outcome, usage)) => {
                    // Of volatile things what holds now: nobody was asked, and prices are this run's.
                    let usage = Usage { retries: 0, shared: true, ..usage };
                    let usage = self.prices.applied(&effect.request.model, usage);
                    self.ready.push(Answer { id: effect.id, request: effect.request, outcome, usage });
                }
                None => self.traffic.begin(effect, key),
            }
        }
        self.pump();
    }

    fn in_flight(&self) -> usize {
        let Live { traffic, asking, ready, .. } = self;
        let broken = usize::from(traffic.has_broken());
        traffic.queued() + traffic.pausing() + traffic.following() + asking.len() + ready.len() + broken
    }

    fn wait(&mut self, patience: Duration) -> Vec<Answer> {
        self.pump();
        // Where nobody new may be asked, what is queued waits, too.
        let held = self.connections == 0 && self.traffic.queued() > 0;
        let under_way = !self.asking.is_empty() || self.traffic.pausing() > 0 || held;
        if self.ready.is_empty() && !self.traffic.has_broken() && under_way {
            self.listen(patience);
            self.pump();
            if self.ready.is_empty() && !self.asking.is_empty() && self.news.elapsed() >= QUIET {
                self.notes.tell(&format!("still waiting: {}", self.reason()));
            }
        }
        std::mem::take(&mut self.ready)
    }

    fn broken(&mut self) -> Vec<Broken> {
        self.traffic.take_broken()
    }

    fn hold(&mut self) {
        self.traffic.drop_waiting();
    }

    fn connections(&mut self, most: usize) {
        self.connections = most;
    }

    fn take_back(&mut self) -> Vec<Effect> {
        self.traffic.take_back()
    }

    fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn reason(&self) -> String {
        let mut reason = format!("{} calls in flight", self.asking.len());
        if !self.whom.is_empty() {
            reason.push_str(&format!(" to {}", self.whom.iter().cloned().collect::<Vec<_>>().join(", ")));
        }
        let silent = self.news.elapsed().as_secs();
        if silent > 0 && !self.asking.is_empty() {
            reason.push_str(&format!(", no news for {silent} s"));
        }
        let Live { traffic, .. } = self;
        for (n, what) in [
            (traffic.queued(), "queued for a connection"),
            (traffic.following(), "share the answer to another"),
            (traffic.pausing(), "are tried again soon"),
        ] {
            if n > 0 {
                reason.push_str(&format!(", {n} {what}"));
            }
        }
        if let Some(trouble) = &self.trouble {
            reason.push_str(&format!("; tried again after: {trouble}"));
        }
        reason
    }
}
