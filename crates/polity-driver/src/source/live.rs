//! Answers from providers. The one place where waiting for the outside happens.

use super::Source;
use crate::models::{Exchange, Providers, Trouble};
use polity_kernel::ask::{Answer, Effect, Outcome, Usage};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Tries of one effect before it counts as failed.
const TRIES: u32 = 5;
/// Wait after the first failed try; doubled after each.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// An answer, or why none can come whatever is asked.
type Asked = Result<Answer, String>;
type Asking = Pin<Box<dyn Future<Output = Asked> + Send>>;

/// What the calls of a run know of each other.
#[derive(Default)]
struct Shared {
    /// Exchanges that came about.
    answered: AtomicU64,
    /// The last trouble since then.
    trouble: Mutex<Option<String>>,
}

impl Shared {
    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        // A text is whole whoever panicked while it was replaced.
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Live providers, at most so many connections at once.
pub struct Live {
    runtime: Runtime,
    providers: Arc<Providers>,
    seed: u64,
    connections: usize,
    queue: VecDeque<Effect>,
    asking: JoinSet<Asked>,
    ready: Vec<Answer>,
    shared: Arc<Shared>,
    lost: Option<String>,
}

impl Live {
    /// Opens no connection yet. `seed` reaches simulated models only.
    pub fn new(providers: Arc<Providers>, seed: u64, connections: usize) -> std::io::Result<Self> {
        Ok(Live {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            providers,
            seed,
            connections: connections.max(1),
            queue: VecDeque::new(),
            asking: JoinSet::new(),
            ready: Vec::new(),
            shared: Arc::default(),
            lost: None,
        })
    }

    fn take(&mut self, asked: Asked) {
        match asked {
            Ok(answer) => self.ready.push(answer),
            Err(why) => {
                self.queue.clear();
                self.lost.get_or_insert(why);
            }
        }
    }

    /// Starts what the limit allows. An answer that is there at once (a simulated model's) needs no task.
    fn pump(&mut self) {
        let _in_runtime = self.runtime.enter();
        while self.asking.len() < self.connections
            && let Some(effect) = self.queue.pop_front()
        {
            let mut asking: Asking = Box::pin(ask(self.providers.clone(), effect, self.seed, self.shared.clone()));
            match asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(asked) => self.take(asked),
                Poll::Pending => {
                    self.asking.spawn_on(asking, self.runtime.handle());
                }
            }
        }
    }
}

/// Asks until there is an answer or the tries are used up. If nobody had an answer in all that time, it is not the question.
async fn ask(providers: Arc<Providers>, effect: Effect, seed: u64, shared: Arc<Shared>) -> Asked {
    let before = shared.answered.load(Ordering::SeqCst);
    let mut pause = FIRST_PAUSE;
    let mut last = String::new();
    let provider = match providers.for_model(&effect.request.model) {
        Ok(provider) => provider,
        Err(why) => return Err(why),
    };
    for attempt in 0..TRIES {
        if attempt > 0 {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        match provider.answer(&effect, seed).await {
            Ok(Exchange { outcome, usage }) => {
                shared.answered.fetch_add(1, Ordering::SeqCst);
                shared.trouble().take();
                return Ok(Answer { id: effect.id, request: effect.request, outcome, usage });
            }
            Err(Trouble::Retry { why, after_ms }) => {
                if let Some(ms) = after_ms {
                    pause = Duration::from_millis(ms);
                }
                shared.trouble().replace(why.clone());
                last = why;
            }
            Err(Trouble::Never { why }) => return Ok(failed(effect, why)),
            Err(Trouble::Fatal { why }) => return Err(why),
        }
    }
    let why = format!("{TRIES} tries failed; the last: {last}");
    match shared.answered.load(Ordering::SeqCst) == before {
        true => Err(why),
        false => Ok(failed(effect, why)),
    }
}

fn failed(effect: Effect, why: String) -> Answer {
    Answer { id: effect.id, request: effect.request, outcome: Outcome::Failed { why }, usage: Usage::default() }
}

impl Source for Live {
    fn start(&mut self, effects: Vec<Effect>) {
        self.queue.extend(effects);
        self.pump();
    }

    fn in_flight(&self) -> usize {
        self.queue.len() + self.asking.len() + self.ready.len()
    }

    fn wait(&mut self, patience: Duration) -> Vec<Answer> {
        self.pump();
        if self.ready.is_empty() && !self.asking.is_empty() {
            let asking = &mut self.asking;
            let first = self.runtime.block_on(async { tokio::time::timeout(patience, asking.join_next()).await });
            let first = first.ok().flatten().and_then(Result::ok);
            first.into_iter().for_each(|asked| self.take(asked));
            while let Some(done) = self.asking.try_join_next() {
                done.into_iter().for_each(|asked| self.take(asked));
            }
            self.pump();
        }
        std::mem::take(&mut self.ready)
    }

    fn hold(&mut self) {
        self.queue.clear();
    }

    fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn reason(&self) -> String {
        let mut reason = format!("{} calls in flight", self.asking.len());
        if !self.queue.is_empty() {
            reason.push_str(&format!(", {} queued for a connection", self.queue.len()));
        }
        if let Some(trouble) = self.shared.trouble().as_ref() {
            reason.push_str(&format!("; tried again after: {trouble}"));
        }
        reason
    }
}
