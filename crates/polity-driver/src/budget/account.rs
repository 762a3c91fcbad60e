//! One budget of several processes: what they tell each other whenever none of them can go on alone.

use super::{Amount, Asked, Gate};
use polity_kernel::ask::Effect;
use polity_kernel::scenario::Assembled;
use serde::{Deserialize, Serialize};

/// What a process tells the others. It does so when it begins to ask in a round, when its calls wait for a decision and none is in flight,
/// and when it has done its part of the round. All processes then wait for each other. So all know what is spent, and decide as one
/// process would.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Account {
    /// The round in which this process begins to ask.
    opens: Option<u32>,
    /// By scope: how many of its groups ask in this round, and what it has spent since it was started.
    scopes: Vec<(u64, Amount)>,
    /// Its calls to be decided.
    asked: Vec<Asked>,
}

impl Gate {
    /// What this process tells the others.
    pub fn account(&self, machine: &Assembled) -> Account {
        let of = |scope: &super::Scope| (if self.opens.is_some() { scope.groups.len() as u64 } else { 0 }, scope.own);
        Account { opens: self.opens, scopes: self.scopes.iter().map(of).collect(), asked: self.asked(machine) }
    }

    /// Takes the accounts of all other processes, and computes shares or decides calls. Returns whether all processes have done their part
    /// of the round, so that nothing was left to decide, and the calls that this process may make, in order of id.
    pub fn agree(&mut self, others: &[Account], machine: &Assembled) -> (bool, Vec<Effect>) {
        let of = |account: &Account, i: usize| account.scopes.get(i).copied().unwrap_or_default();
        for (i, scope) in self.scopes.iter_mut().enumerate() {
            scope.elsewhere = others.iter().fold(Amount::default(), |sum, account| sum.and(of(account, i).1));
        }
        let own = self.opens.take();
        if let Some(round) = others.iter().filter_map(|account| account.opens).chain(own).max() {
            if own.is_none() {
                self.round = Some(round);
                self.scopes.iter_mut().for_each(|scope| scope.groups.clear());
            }
            let groups: Vec<u64> =
                (0..self.scopes.len()).map(|i| others.iter().map(|account| of(account, i).0).sum()).collect();
            self.share_with(round, &groups, machine);
            return (false, Vec::new());
        }
        let mut asked: Vec<Asked> = others.iter().flat_map(|account| account.asked.iter().copied()).collect();
        asked.extend(self.asked(machine));
        if asked.is_empty() {
            return (true, Vec::new());
        }
        asked.sort_by_key(|call| call.id);
        (false, self.decide_among(&asked))
    }
}
