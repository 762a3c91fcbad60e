//! One hard budget over runs that may be made at the same time.
//!
//! A run is lent a part of what is left. If that is not enough, it stops as any run whose budget is used up, waits until no other run is
//! under way, and continues with all that is left. So the runs together never spend more than the budget, and a run is refused only if the
//! rest would not have been enough for it alone.

use polity_driver::drive::Totals;
use polity_driver::run::{RunStatus, Summary};
use polity_kernel::scenario::Budget;
use polity_store::DriveError;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Instant;

/// The part of what is left that a run is lent at first: one of this many.
const PARTS: u64 = 8;

/// What runs spend, counted as a budget counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Spending {
    cost_usd: f64,
    tokens: u64,
    calls: u64,
    requests: u64,
    tool_calls: u64,
}

impl Spending {
    fn of(totals: &Totals) -> Self {
        Spending {
            cost_usd: totals.cost_usd,
            tokens: totals.tokens_in.saturating_add(totals.tokens_out),
            calls: totals.calls.saturating_add(totals.charged),
            requests: totals.requests,
            tool_calls: totals.tools,
        }
    }

    /// What a run that got this loan may have spent at most.
    fn most(loan: &Budget) -> Self {
        Spending {
            cost_usd: loan.cost_usd.unwrap_or_default(),
            tokens: loan.tokens.unwrap_or_default(),
            calls: loan.calls.unwrap_or_default(),
            requests: loan.requests.unwrap_or_default(),
            tool_calls: loan.tool_calls.unwrap_or_default(),
        }
    }

    fn add(&mut self, other: &Spending) {
        self.cost_usd += other.cost_usd;
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.calls = self.calls.saturating_add(other.calls);
        self.requests = self.requests.saturating_add(other.requests);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
    }

    fn remove(&mut self, other: &Spending) {
        self.cost_usd = (self.cost_usd - other.cost_usd).max(0.0);
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.calls = self.calls.saturating_sub(other.calls);
        self.requests = self.requests.saturating_sub(other.requests);
        self.tool_calls = self.tool_calls.saturating_sub(other.tool_calls);
    }
}

/// How a run continues with a loan.
pub(super) enum Stage {
    /// It begins.
    Begin,
    /// The run continues with a larger loan.
    GoOn,
}

/// What all runs may spend together.
pub(super) struct Purse {
    whole: Budget,
    began: Instant,
    /// What is spent or lent.
    taken: Mutex<Spending>,
    /// Held for reading by runs that were lent a part, for writing by one that was lent all.
    lending: RwLock<()>,
}

impl Purse {
    pub fn new(whole: Budget) -> Self {
        Purse { whole, began: Instant::now(), taken: Mutex::default(), lending: RwLock::default() }
    }

    /// Returns the limit that allows nothing any more, if there is one.
    pub fn is_empty(&self) -> Option<&'static str> {
        let left = self.left();
        let none = |limit: Option<u64>| limit == Some(0);
        let limits = [
            (none(left.calls), "all its calls have been made"),
            (none(left.tokens), "all its tokens have been used"),
            (left.cost_usd.is_some_and(|usd| usd <= 0.0), "all its dollars have been spent"),
            (none(left.requests), "all its requests to providers have been made"),
            (left.seconds.is_some_and(|seconds| seconds <= 0.0), "its time is over"),
        ];
        limits.into_iter().find_map(|(empty, why)| empty.then_some(why))
    }

    /// Runs something with a part of what is left, and again with all of it if the part was not enough. `known`: what the run has spent
    /// when it failed, if that is recorded.
    pub fn spend(
        &self,
        mut run: impl FnMut(Stage, Budget) -> Result<Summary, DriveError>,
        known: impl Fn() -> Option<Totals>,
    ) -> Result<Summary, DriveError> {
        let first = {
            let _shared = self.lending.read().unwrap_or_else(PoisonError::into_inner);
            let loan = self.lend(PARTS);
            let result = run(Stage::Begin, loan.clone());
            self.settle(&loan, &Spending::default(), &result, &known);
            result?
        };
        let is_over = self.whole.seconds.is_some_and(|seconds| self.began.elapsed().as_secs_f64() >= seconds);
        if first.status != RunStatus::Budget || is_over {
            return Ok(first);
        }
        let _alone = self.lending.write().unwrap_or_else(PoisonError::into_inner);
        let before = Spending::of(&first.totals);
        let loan = self.lend(1);
        // The limits of a run count all its processes.
        let result = run(Stage::GoOn, with(&loan, &before));
        self.settle(&loan, &before, &result, &known);
        result
    }

    fn left(&self) -> Budget {
        self.part(&self.taken.lock().unwrap_or_else(PoisonError::into_inner), 1)
    }

    /// Takes out a part of what is left.
    fn lend(&self, parts: u64) -> Budget {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let loan = self.part(&taken, parts);
        taken.add(&Spending::most(&loan));
        loan
    }

    fn part(&self, taken: &Spending, parts: u64) -> Budget {
        let Budget { cost_usd, tokens, calls, requests, tool_calls, seconds, .. } = self.whole;
        let part = |limit: Option<u64>, taken: u64| limit.map(|limit| limit.saturating_sub(taken) / parts);
        Budget {
            cost_usd: cost_usd.map(|limit| (limit - taken.cost_usd).max(0.0) / parts as f64),
            tokens: part(tokens, taken.tokens),
            calls: part(calls, taken.calls),
            requests: part(requests, taken.requests),
            tool_calls: part(tool_calls, taken.tool_calls),
            // All runs share the same clock.
            seconds: seconds.map(|limit| (limit - self.began.elapsed().as_secs_f64()).max(0.0)),
            ..Budget::default()
        }
    }

    /// Puts back what a run did not spend of its loan.
    fn settle(
        &self,
        loan: &Budget,
        before: &Spending,
        result: &Result<Summary, DriveError>,
        known: &impl Fn() -> Option<Totals>,
    ) {
        let totals = match result {
            Ok(summary) => Some(summary.totals),
            Err(_) => known(),
        };
        let Some(totals) = totals else { return };
        let mut spent = Spending::of(&totals);
        spent.remove(before);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.remove(&Spending::most(loan));
        taken.add(&spent);
    }
}

/// Returns a loan with what was spent before on top.
fn with(loan: &Budget, before: &Spending) -> Budget {
    Budget {
        cost_usd: loan.cost_usd.map(|usd| usd + before.cost_usd),
        tokens: loan.tokens.map(|n| n.saturating_add(before.tokens)),
        calls: loan.calls.map(|n| n.saturating_add(before.calls)),
        requests: loan.requests.map(|n| n.saturating_add(before.requests)),
        tool_calls: loan.tool_calls.map(|n| n.saturating_add(before.tool_calls)),
        ..loan.clone()
    }
}
