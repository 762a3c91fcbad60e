//! What the answers of a run came to, counted.

use crate::models::human::is_person;
use crate::tools::is_tool;
use polity_kernel::ask::{Answer, Outcome, Rung, Usage};
use serde::Serialize;

/// What the answers of a run came to, whichever process asked for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Answers.
    pub answers: u64,
    /// Those for which a provider was asked.
    pub calls: u64,
    /// Requests to providers, those that brought no answer among them.
    pub requests: u64,
    /// Requests that brought no answer and may have been answered: they broke off, or were in flight when a process was killed. They count
    /// as calls against a limit, and in tokens and dollars at their most.
    pub charged: u64,
    /// Calls whose tokens the server did not tell: they are counted at the most that they can have taken.
    pub estimated: u64,
    /// Those of people, given or not in time. They are no calls.
    pub people: u64,
    /// Those of tools, for instance programs that were run. They are no calls.
    pub tools: u64,
    /// Those that were there already, or on their way to another question of the very same words.
    pub cache_hits: u64,
    /// Calls that were not made because a budget did not hold them.
    pub denied: u64,
    /// Tokens of requests, of calls.
    pub tokens_in: u64,
    /// Tokens of replies, of calls.
    pub tokens_out: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// Tries that failed and were made again.
    pub retries: u64,
    /// What became of questions with their answers.
    pub rungs: Rungs,
}

/// How many answers came to what ([`Rung`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rungs {
    /// Fitted as they came.
    pub fit: u64,
    /// Fitted once their form was mended.
    pub repaired: u64,
    /// Fitted as they came, to a question put again.
    pub reasked: u64,
    /// Did not fit, and the question was put again.
    pub again: u64,
    /// Did not fit, and the question's declared default holds.
    pub default: u64,
    /// Did not fit, and whoever asked saw that.
    pub none: u64,
}

impl Rungs {
    /// Questions that have ended, whichever way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.fit + self.repaired + self.reasked + self.default + self.none
    }

    fn of(&mut self, rung: Rung) -> &mut u64 {
        match rung {
            Rung::Fit => &mut self.fit,
            Rung::Repaired => &mut self.repaired,
            Rung::Reasked => &mut self.reasked,
            Rung::Again => &mut self.again,
            Rung::Default => &mut self.default,
            Rung::None => &mut self.none,
        }
    }
}

impl Totals {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Totals) {
        self.answers += other.answers;
        self.calls += other.calls;
        self.requests += other.requests;
        self.charged += other.charged;
        self.estimated += other.estimated;
        self.people += other.people;
        self.tools += other.tools;
        self.cache_hits += other.cache_hits;
        let mut rungs = other.rungs;
        for rung in Rung::ALL {
            *self.rungs.of(rung) += *rungs.of(rung);
        }
        self.denied += other.denied;
        self.tokens_in += other.tokens_in;
        self.tokens_out += other.tokens_out;
        self.cost_usd += other.cost_usd;
        self.retries += other.retries;
    }

    fn spend(&mut self, usage: &Usage) {
        self.tokens_in += usage.tokens_in;
        self.tokens_out += usage.tokens_out;
        self.cost_usd += usage.cost_usd;
    }

    pub(super) fn broke(&mut self, charged: Option<&Usage>) {
        self.requests += 1;
        if let Some(usage) = charged {
            self.charged += 1;
            self.spend(usage);
        }
    }

    pub(super) fn count(&mut self, answer: &Answer) {
        *self.rungs.of(answer.rung()) += 1;
        if matches!(answer.outcome, Outcome::Denied { .. }) {
            self.denied += 1;
            return;
        }
        self.answers += 1;
        if is_person(&answer.request.model) {
            self.people += 1;
            return;
        }
        if is_tool(&answer.request.model) {
            self.tools += 1;
            return;
        }
        if answer.usage.shared {
            self.cache_hits += 1;
            return;
        }
        self.calls += 1;
        self.requests += 1;
        self.estimated += u64::from(answer.usage.estimated);
        self.retries += u64::from(answer.usage.retries);
        self.spend(&answer.usage);
    }
}
