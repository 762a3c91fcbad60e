//! Hard limits of questions that are asked outside of a run, in a fixed order.

use super::{Amount, most};
use crate::source::Broken;
use polity_kernel::ask::{Answer, Effect, EffectId};
use polity_kernel::scenario::Budget;
use polity_models::models::Providers;
use polity_models::models::prices::Prices;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What may still be spent. A question is asked if the most it can cost fits beside what is spent and in flight. As no question overtakes
/// another, which ones are asked does not depend on the order of answers.
pub(crate) struct Purse {
    providers: Arc<Providers>,
    prices: Prices,
    limit: Amount,
    spent: Amount,
    reserved: BTreeMap<EffectId, Amount>,
}

/// Whether the next question is asked.
pub(crate) enum Fit {
    /// Now; its cost is reserved.
    Now,
    /// Perhaps once others are answered.
    Later,
    /// Never, because of this limit.
    Never(String),
}

impl Purse {
    pub fn new(budget: &Budget, providers: Arc<Providers>, prices: Prices) -> Purse {
        let limit = Amount::limit(&budget.run());
        Purse { providers, prices, limit, spent: Amount::default(), reserved: BTreeMap::new() }
    }

    /// Decides about the next question.
    pub fn fit(&mut self, effect: &Effect) -> Fit {
        let most = most(&self.providers, &self.prices, effect);
        let reserved = self.reserved.values().fold(Amount::default(), |sum, amount| sum.and(*amount));
        if self.spent.and(reserved).leaves(most, self.limit) {
            self.reserved.insert(effect.id, most);
            return Fit::Now;
        }
        match self.reserved.is_empty() {
            false => Fit::Later,
            true => Fit::Never(format!("the budget is {}", Amount::why(self.limit, self.spent, most))),
        }
    }

    /// Number of questions in flight.
    pub fn in_flight(&self) -> usize {
        self.reserved.len()
    }

    /// Counts an answer.
    pub fn settle(&mut self, answer: &Answer) {
        self.reserved.remove(&answer.id);
        let told = Amount::of(&answer.usage);
        let known = Amount::of(&self.prices.applied(&answer.request.model, answer.usage));
        self.spent += Amount { nano_usd: told.nano_usd.max(known.nano_usd), ..told };
    }

    /// Counts a request without an answer. If it is to be made again, it is no longer in flight.
    pub fn broken(&mut self, broken: &Broken) {
        if broken.again {
            self.reserved.remove(&broken.effect.id);
        }
        self.spent += Amount::of_broken(broken.charged.as_ref());
    }
}
