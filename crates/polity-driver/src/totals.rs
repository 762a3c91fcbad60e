//! Totals of a run's answers.

use polity_kernel::ask::{Answer, Outcome, Resolution, TargetKind, Usage};
use serde::{Deserialize, Serialize};

/// Totals of a run's answers, over all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Answers.
    pub answers: u64,
    /// Answers for which a provider was called.
    pub calls: u64,
    /// Requests to providers, including those without an answer.
    pub requests: u64,
    /// Requests without an answer that may have been answered: they broke off, or were in flight when a process was killed. They count as
    /// calls against a limit, and in tokens and dollars at their maximum.
    pub charged: u64,
    /// Calls with unreported tokens: they are counted at their maximum.
    pub estimated: u64,
    /// Answers of people, including timeouts. They are not calls.
    pub people: u64,
    /// Answers of tools, such as executed programs. They are not calls.
    pub tools: u64,
    /// Answers from the cache, or shared with another request of the same words.
    pub cache_hits: u64,
    /// Calls denied by a budget.
    pub denied: u64,
    /// Request tokens of calls.
    pub tokens_in: u64,
    /// Reply tokens of calls.
    pub tokens_out: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// Failed tries that were repeated.
    pub retries: u64,
    /// How requests were resolved.
    pub resolutions: Resolutions,
}

/// Number of answers by [`Resolution`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolutions {
    /// Fitted unchanged.
    pub fit: u64,
    /// Fitted after repair.
    pub repaired: u64,
    /// Fitted unchanged after a retry.
    pub reasked: u64,
    /// Did not fit, and the request was retried.
    pub again: u64,
    /// Did not fit, and the declared default applies.
    pub default: u64,
    /// Did not fit, and the asker saw that.
    pub none: u64,
}

impl Resolutions {
    /// Resolved requests.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.fit + self.repaired + self.reasked + self.default + self.none
    }

    fn of(&mut self, resolution: Resolution) -> &mut u64 {
        match resolution {
            Resolution::Fit => &mut self.fit,
            Resolution::Repaired => &mut self.repaired,
            Resolution::Reasked => &mut self.reasked,
            Resolution::Again => &mut self.again,
            Resolution::Default => &mut self.default,
            Resolution::None => &mut self.none,
        }
    }
}

/// A sum of prices, to the next trillionth of a dollar. Prices a token are multiples of that, so answers can be added in any order.
fn dollars(sum: f64) -> f64 {
    (sum * 1e12).round() / 1e12
}

impl Totals {
    /// Returns the US dollars spent; `None` if none are known to be, and not all prices are known. `priced`: whether they are.
    #[must_use]
    pub fn known_usd(&self, priced: bool) -> Option<f64> {
        (priced || self.cost_usd > 0.0).then_some(self.cost_usd)
    }

    /// Adds the totals of another run.
    pub fn add(&mut self, other: &Totals) {
        self.answers += other.answers;
        self.calls += other.calls;
        self.requests += other.requests;
        self.charged += other.charged;
        self.estimated += other.estimated;
        self.people += other.people;
        self.tools += other.tools;
        self.cache_hits += other.cache_hits;
        let mut resolutions = other.resolutions;
        for resolution in Resolution::ALL {
            *self.resolutions.of(resolution) += *resolutions.of(resolution);
        }
        self.denied += other.denied;
        self.tokens_in += other.tokens_in;
        self.tokens_out += other.tokens_out;
        self.cost_usd = dollars(self.cost_usd + other.cost_usd);
        self.retries += other.retries;
    }

    fn spend(&mut self, usage: &Usage) {
        self.tokens_in += usage.tokens_in;
        self.tokens_out += usage.tokens_out;
        self.cost_usd = dollars(self.cost_usd + usage.cost_usd);
    }

    pub(super) fn broke(&mut self, charged: Option<&Usage>) {
        self.requests += 1;
        if let Some(usage) = charged {
            self.charged += 1;
            self.spend(usage);
        }
    }

    pub(super) fn count(&mut self, answer: &Answer) {
        *self.resolutions.of(answer.resolution()) += 1;
        if matches!(answer.outcome, Outcome::Denied { .. }) {
            self.denied += 1;
            return;
        }
        self.answers += 1;
        match answer.request.model.kind() {
            TargetKind::Human => {
                self.people += 1;
                return;
            }
            TargetKind::Tool => {
                self.tools += 1;
                return;
            }
            TargetKind::Model => {}
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
