//! Answers from providers. The one place where waiting for the outside happens.

use super::Source;
use crate::models::{Exchange, Providers, Trouble};
use polity_kernel::ask::{Answer, Effect, Outcome, Usage};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Tries of one effect before it counts as failed.
const TRIES: u32 = 5;
/// Wait after the first failed try; doubled after each.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

type Asking = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Live providers, at most so many connections at once.
pub struct Live {
    runtime: Runtime,
    providers: Arc<Providers>,
    seed: u64,
    connections: usize,
    queue: VecDeque<Effect>,
    asking: JoinSet<Answer>,
    ready: Vec<Answer>,
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
        })
    }

    /// Starts what the limit allows. An answer that is there at once (a simulated model's) needs no task.
    fn pump(&mut self) {
        let _in_runtime = self.runtime.enter();
        while self.asking.len() < self.connections
            && let Some(effect) = self.queue.pop_front()
        {
            let mut asking: Asking = Box::pin(ask(self.providers.clone(), effect, self.seed));
            match asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => self.ready.push(answer),
                Poll::Pending => {
                    self.asking.spawn_on(asking, self.runtime.handle());
                }
            }
        }
    }
}

/// Asks until there is an answer or the tries are used up.
async fn ask(providers: Arc<Providers>, effect: Effect, seed: u64) -> Answer {
    let mut pause = FIRST_PAUSE;
    let mut last = String::new();
    let provider = match providers.for_model(&effect.request.model) {
        Ok(provider) => provider,
        Err(why) => return failed(effect, why),
    };
    for attempt in 0..TRIES {
        if attempt > 0 {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        match provider.answer(&effect, seed).await {
            Ok(Exchange { outcome, usage }) => {
                return Answer { id: effect.id, request: effect.request, outcome, usage };
            }
            Err(Trouble::Retry { why, after_ms }) => {
                if let Some(ms) = after_ms {
                    pause = Duration::from_millis(ms);
                }
                last = why;
            }
            Err(Trouble::Fatal { why }) => return failed(effect, why),
        }
    }
    failed(effect, format!("{TRIES} tries failed; the last: {last}"))
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
            if let Ok(Some(Ok(answer))) = first {
                self.ready.push(answer);
            }
            while let Some(done) = self.asking.try_join_next() {
                self.ready.extend(done.ok());
            }
            self.pump();
        }
        std::mem::take(&mut self.ready)
    }

    fn hold(&mut self) {
        self.queue.clear();
    }

    fn reason(&self) -> String {
        match self.queue.len() {
            0 => format!("{} calls in flight", self.asking.len()),
            queued => format!("{} calls in flight, {queued} queued for a connection", self.asking.len()),
        }
    }
}
