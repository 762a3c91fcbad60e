//! Hard limits: a call is made only if the most it can cost fits what is left of the budget.
//!
//! Which calls are denied must not depend on the order of answers. So while a round stays within budget, every group (an agent in a
//! society, an item in an evaluation) has its share of the rest, and calls within it start at once. A call above its group's share waits
//! until nothing is in flight. Then the spending is known, and all waiting calls are decided together, in order of id: those that fit are
//! made; if none fits, all are denied. After the first such decision, the rest of the round is decided this way. Reasons:
//! `docs/decisions/a-budget-is-a-wall.md`.
//!
//! The processes of a society over several tell each other what they have spent and which calls wait, and all decide the same
//! ([`account::Account`]).

mod account;
mod purse;

pub(crate) use purse::{Fit, Purse};

use crate::drive::Totals;
use crate::past::Past;
use polity_kernel::ask::{Answer, Asker, Effect, EffectId, Outcome, TargetKind, Usage};
use polity_kernel::scenario::{Assembled, Budget, Limits};
use polity_kernel::world::Activation;
use polity_models::models::Providers;
use polity_models::models::prices::Prices;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::sync::Arc;

/// The quantities of an [`Amount`], as budgets name them.
const KEYS: [&str; 5] = ["cost_usd", "tokens", "calls", "requests", "tool_calls"];

/// The cost of calls, in whole numbers, so that sums do not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Amount {
    /// Billionths of a dollar.
    nano_usd: u64,
    tokens: u64,
    /// Requests that were answered or may have been.
    calls: u64,
    /// All requests.
    requests: u64,
    /// Tool calls.
    tool_calls: u64,
}

impl Amount {
    const ENDLESS: Amount =
        Amount { nano_usd: u64::MAX, tokens: u64::MAX, calls: u64::MAX, requests: u64::MAX, tool_calls: u64::MAX };
    /// The cost of a rejected request.
    const TURNED_AWAY: Amount = Amount { nano_usd: 0, tokens: 0, calls: 0, requests: 1, tool_calls: 0 };
    /// The cost of a tool call.
    const TOOL_CALL: Amount = Amount { nano_usd: 0, tokens: 0, calls: 0, requests: 0, tool_calls: 1 };

    fn of(usage: &Usage) -> Amount {
        // Rounded up, so that the count is never below the spending. Saturates, as float casts do.
        let nano_usd = (usage.cost_usd * 1e9).ceil() as u64;
        let tokens = usage.tokens_in.saturating_add(usage.tokens_out);
        Amount { nano_usd, tokens, calls: 1, requests: 1, tool_calls: 0 }
    }

    /// The cost of a request without an answer.
    fn of_broken(charged: Option<&Usage>) -> Amount {
        charged.map_or(Amount::TURNED_AWAY, Amount::of)
    }

    /// The cost of a whole run.
    pub(crate) fn of_totals(totals: &Totals) -> Amount {
        Amount {
            nano_usd: (totals.cost_usd * 1e9).ceil() as u64,
            tokens: totals.tokens_in.saturating_add(totals.tokens_out),
            calls: totals.calls.saturating_add(totals.charged),
            requests: totals.requests,
            tool_calls: totals.tools,
        }
    }

    /// Only what another amount limits.
    pub(crate) fn of_limited(self, limit: Amount) -> Amount {
        self.each(limit, |own, limit| if limit == u64::MAX { 0 } else { own })
    }

    /// The first quantity that exceeds a limit together with what is taken: its key, and the limit, what is taken and what more is needed in
    /// words. `None` for a need without a limit.
    pub(crate) fn over(
        limit: Amount,
        taken: Amount,
        more: Amount,
    ) -> Option<(&'static str, String, String, Option<String>)> {
        let [limits, takens, mores] = [limit, taken, more].map(Amount::all);
        let at = (0..KEYS.len()).find(|at| takens[*at].saturating_add(mores[*at]) > limits[*at])?;
        let words = |amount: u64| Amount::in_words(KEYS[at], amount);
        let more = (mores[at] != u64::MAX).then(|| words(mores[at]));
        Some((KEYS[at], words(limits[at]), words(takens[at]), more))
    }

    /// In the order of [`KEYS`].
    fn all(self) -> [u64; 5] {
        let Amount { nano_usd, tokens, calls, requests, tool_calls } = self;
        [nano_usd, tokens, calls, requests, tool_calls]
    }

    /// One of its quantities, in billionths of a dollar or whole numbers.
    pub(crate) fn of_key(self, key: &str) -> u64 {
        KEYS.iter().position(|other| *other == key).map_or(0, |at| self.all()[at])
    }

    /// An amount of one quantity, with its unit.
    pub(crate) fn in_words(key: &str, amount: u64) -> String {
        match key {
            "cost_usd" => format!("{:.4} USD", amount as f64 / 1e9),
            key => format!("{amount} {}", key.replace('_', " ")),
        }
    }

    pub(crate) fn limit(limits: &Limits) -> Amount {
        Amount {
            nano_usd: limits.cost_usd.map_or(u64::MAX, |usd| (usd * 1e9).floor() as u64),
            tokens: limits.tokens.unwrap_or(u64::MAX),
            calls: limits.calls.unwrap_or(u64::MAX),
            requests: limits.requests.unwrap_or(u64::MAX),
            tool_calls: limits.tool_calls.unwrap_or(u64::MAX),
        }
    }

    fn each(self, other: Amount, of: impl Fn(u64, u64) -> u64) -> Amount {
        Amount {
            nano_usd: of(self.nano_usd, other.nano_usd),
            tokens: of(self.tokens, other.tokens),
            calls: of(self.calls, other.calls),
            requests: of(self.requests, other.requests),
            tool_calls: of(self.tool_calls, other.tool_calls),
        }
    }

    pub(crate) fn and(self, other: Amount) -> Amount {
        self.each(other, u64::saturating_add)
    }

    fn less(self, other: Amount) -> Amount {
        self.each(other, u64::saturating_sub)
    }

    /// An equal part for one of `n`; unlimited stays unlimited.
    fn part(self, n: u64) -> Amount {
        self.each(self, |all, _| if all == u64::MAX { all } else { all / n.max(1) })
    }

    pub(crate) fn within(self, limit: Amount) -> bool {
        let Amount { nano_usd, tokens, calls, requests, tool_calls } = self;
        nano_usd <= limit.nano_usd
            && tokens <= limit.tokens
            && calls <= limit.calls
            && requests <= limit.requests
            && tool_calls <= limit.tool_calls
    }

    /// Whether `more` fits within a limit on top of this. A tool call costs nothing, so no other limit applies to it.
    fn leaves(self, more: Amount, limit: Amount) -> bool {
        let all = self.and(more);
        if more.tool_calls > 0 { all.tool_calls <= limit.tool_calls } else { all.within(limit) }
    }

    /// The rest of a limit; unlimited stays unlimited.
    fn left(self, spent: Amount) -> Amount {
        self.each(spent, |limit, spent| if limit == u64::MAX { limit } else { limit.saturating_sub(spent) })
    }

    /// Names the limit that `more` exceeds on top of the spending.
    fn why(limit: Amount, spent: Amount, more: Amount) -> String {
        let usd = |nano: u64| nano as f64 / 1e9;
        let all = spent.and(more);
        let tools = || format!("{} tool calls, of which {} have been made", limit.tool_calls, spent.tool_calls);
        if more.tool_calls > 0 {
            return tools();
        }
        if all.nano_usd > limit.nano_usd {
            if more.nano_usd == u64::MAX {
                return format!("{:.4} USD, but the price of the model is unknown", usd(limit.nano_usd));
            }
            let [limit, spent, more] = [limit, spent, more].map(|amount| usd(amount.nano_usd));
            return format!(
                "{limit:.4} USD, of which {spent:.4} have been spent, and the next call may cost up to {more:.4}"
            );
        }
        if all.tokens > limit.tokens {
            let [limit, spent, more] = [limit, spent, more].map(|amount| amount.tokens);
            return format!("{limit} tokens, of which {spent} have been used, and the next call may use up to {more}");
        }
        if all.calls > limit.calls {
            return format!("{} calls, of which {} have been made", limit.calls, spent.calls);
        }
        if all.requests > limit.requests {
            return format!("{} requests, of which {} have been made", limit.requests, spent.requests);
        }
        tools()
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        *self = self.and(other);
    }
}

/// The run or one of its cohorts, with a limit.
struct Scope {
    what: String,
    /// `None`: all.
    cohort: Option<u16>,
    limit: Amount,
    /// Cost of answers, by the round of their requests.
    settled: BTreeMap<u32, Amount>,
    /// The part of it that this process has spent since it was started, and what the other processes of the run have spent since then.
    own: Amount,
    elsewhere: Amount,
    /// In flight.
    reserved: Amount,
    /// What a group may spend in this round without waiting.
    share: Amount,
    /// The groups that share: those that made requests in this round.
    groups: BTreeSet<u32>,
    /// What groups have spent or reserved in this round.
    taken: BTreeMap<u32, Amount>,
}

impl Scope {
    /// What all processes have spent.
    fn spent(&self) -> Amount {
        self.settled.values().fold(self.elsewhere, |sum, amount| sum.and(*amount))
    }

    /// What all processes had spent before a round, of which none has been asked yet.
    fn spent_before(&self, round: u32) -> Amount {
        self.settled.range(..round).fold(self.elsewhere, |sum, (_, amount)| sum.and(*amount))
    }

    /// Whether calls of a cohort count.
    fn has(&self, cohort: Option<u16>) -> bool {
        self.cohort.is_none() || self.cohort == cohort
    }
}

/// A call to be decided.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Asked {
    id: EffectId,
    cohort: Option<u16>,
    /// The most it can cost.
    most: Amount,
}

/// How a call is counted.
#[derive(Clone, Copy)]
struct Reserved {
    group: u32,
    cohort: Option<u16>,
    amount: Amount,
}

/// Decides which calls are made.
pub(crate) struct Gate {
    providers: Arc<Providers>,
    prices: Prices,
    /// Earlier requests without an answer, which count against the shares of their rounds.
    charges: Vec<(EffectId, Amount)>,
    scopes: Vec<Scope>,
    /// The limit of each agent, and what each has spent or reserved.
    agent: Option<Amount>,
    of_agent: BTreeMap<u32, Amount>,
    /// Whether at most one turn is active: then all spending is known at every request.
    in_order: bool,
    /// Number of items of an evaluation: it has one share for all its rounds.
    items: Option<u64>,
    /// The round whose shares apply.
    round: Option<u32>,
    /// The same, until its shares are computed.
    opens: Option<u32>,
    /// Whether this round's calls are decided together whenever nothing is in flight.
    waves: bool,
    waiting: BTreeMap<EffectId, Effect>,
    reserved: BTreeMap<EffectId, Reserved>,
    /// In flight while nothing is limited; their maximum cost is computed once a limit is set.
    free: BTreeMap<EffectId, Effect>,
    /// Calls decided before the run was interrupted, and the rounds with such decisions.
    recorded: BTreeSet<EffectId>,
    waved: BTreeSet<u32>,
    denied: Vec<Answer>,
    /// Why the run's own limit allows no further call.
    exhausted: Option<String>,
}

impl Gate {
    /// Creates the gate of a run. Without limits it only counts, in case a limit is set later. `past`: earlier answers and decisions.
    pub fn new(budget: &Budget, machine: &Assembled, providers: Arc<Providers>, prices: Prices, past: &Past) -> Gate {
        let scope = |what: String, cohort, limits: &Limits| Scope {
            what,
            cohort,
            limit: Amount::limit(limits),
            settled: BTreeMap::new(),
            own: Amount::default(),
            elsewhere: Amount::default(),
            reserved: Amount::default(),
            share: Amount::ENDLESS,
            groups: BTreeSet::new(),
            taken: BTreeMap::new(),
        };
        let mut scopes = vec![scope("the run".into(), None, &budget.run())];
        let mut in_order = false;
        let items = machine.evaluation().map(|evaluation| evaluation.items().len() as u64);
        if let Some(society) = machine.society() {
            in_order = society.activation() == Activation::RandomOrder;
            for (i, name) in society.cohorts().iter().enumerate() {
                if let Some(limits) = budget.cohorts.get(name).filter(|limits| limits.any()) {
                    scopes.push(scope(format!("the cohort `{name}`"), Some(i as u16), limits));
                }
            }
        }
        let mut gate = Gate {
            providers,
            prices,
            charges: past.broken.iter().map(|(id, charged)| (*id, Amount::of_broken(charged.as_ref()))).collect(),
            scopes,
            agent: budget.agent.filter(Limits::any).map(|limits| Amount::limit(&limits)),
            of_agent: BTreeMap::new(),
            in_order,
            items,
            round: None,
            opens: None,
            waves: false,
            waiting: BTreeMap::new(),
            reserved: BTreeMap::new(),
            free: BTreeMap::new(),
            // An evaluation denies nothing, so it need not repeat its decisions.
            recorded: if items.is_some() { BTreeSet::new() } else { past.waves.clone() },
            waved: past.waved.clone(),
            denied: Vec::new(),
            exhausted: None,
        };
        for answer in past.answers.values() {
            gate.settle(answer, machine.cohort(answer.id));
        }
        for (id, amount) in gate.charges.clone() {
            gate.spend(id, machine.cohort(id), amount);
        }
        gate.scopes.iter_mut().for_each(|scope| scope.own = Amount::default());
        gate
    }

    /// Whether anything is limited.
    pub fn bounded(&self) -> bool {
        self.agent.is_some() || self.scopes.iter().any(|scope| scope.limit != Amount::ENDLESS)
    }

    /// Whether the costs of these models are known.
    pub fn knows_costs(&self, models: &[String]) -> bool {
        let known = |model: &String| self.providers.for_model(model).is_ok_and(|provider| provider.tells_costs());
        models.iter().all(|model| self.prices.know(model) || known(model))
    }

    /// Replaces the given limits of the run. Effects in `back`, which passed but have not been sent, are decided again. Returns those
    /// that may be sent, and the reason to stop if more is already spent.
    ///
    /// The rest, without calls in flight, is shared again. When a call in flight ends, its group's share regains at most what was
    /// reserved for the call outside of the share, so that all together stay within the limit.
    pub fn limit(
        &mut self,
        limits: &Limits,
        mut back: Vec<Effect>,
        machine: &Assembled,
    ) -> (Vec<Effect>, Option<String>) {
        for effect in &back {
            self.release(effect.id);
        }
        for effect in std::mem::take(&mut self.free).into_values() {
            let (group, cohort) = (self.group(effect.id), machine.cohort(effect.id));
            self.reserve(effect.id, Reserved { group, cohort, amount: self.most(&effect) });
        }
        let Some(run) = self.scopes.first_mut() else { return (back, None) };
        let Limits { cost_usd, tokens, calls, requests, tool_calls } = *limits;
        let (old, new) = (run.limit, Amount::limit(limits));
        run.limit = Amount {
            nano_usd: if cost_usd.is_some() { new.nano_usd } else { old.nano_usd },
            tokens: if tokens.is_some() { new.tokens } else { old.tokens },
            calls: if calls.is_some() { new.calls } else { old.calls },
            requests: if requests.is_some() { new.requests } else { old.requests },
            tool_calls: if tool_calls.is_some() { new.tool_calls } else { old.tool_calls },
        };
        let spent = run.spent();
        let groups = self.items.unwrap_or(run.groups.len() as u64);
        run.share = run.limit.left(spent).left(run.reserved).part(groups);
        run.taken.clear();
        let over = (!spent.within(run.limit))
            .then(|| format!("the budget of the run is {}", Amount::why(run.limit, spent, Amount::default())));
        self.exhausted = None;
        back.extend(std::mem::take(&mut self.waiting).into_values());
        back.sort_by_key(|effect| effect.id);
        (self.ask(back, machine), over)
    }

    /// Starts a batch, whether answered by the record or not. `effects`: all of it. Returns whether it begins a round (in an evaluation,
    /// everything); [`Gate::share`] then computes its shares.
    pub fn batch(&mut self, effects: &[Effect], machine: &Assembled) -> bool {
        let Some(first) = effects.first() else { return false };
        let evaluation = self.items.is_some();
        let new = match evaluation {
            true => self.round.is_none(),
            false => self.round.is_none_or(|round| first.id.round > round),
        };
        // Without limits, a round sends its requests slice by slice. With limits, a group that comes later has no share.
        if !new && (evaluation || self.bounded()) {
            return false;
        }
        let tools = self.limits_tools();
        for scope in &mut self.scopes {
            if new {
                scope.groups.clear();
            }
            let counts = |effect: &&Effect| scope.has(machine.cohort(effect.id)) && counts(effect, tools);
            let asking: Vec<u32> = effects.iter().filter(counts).map(|effect| effect.id.actor).collect();
            scope.groups.extend(asking);
        }
        if new {
            // An evaluation has one share of what is left after everything in its record.
            let round = if evaluation { u32::MAX } else { first.id.round };
            (self.round, self.opens) = (Some(round), Some(round));
        }
        new
    }

    /// Computes the shares of a round that a batch of this process has begun.
    pub fn share(&mut self, machine: &Assembled) {
        if let Some(round) = self.opens.take() {
            self.share_with(round, &[], machine);
        }
    }

    /// Computes the shares of a round. `groups`: how many groups of other processes ask in it, by scope.
    fn share_with(&mut self, round: u32, groups: &[u64], machine: &Assembled) {
        // Once a wave has spent parts of others' shares, a resumed round continues in waves, as it would have.
        self.waves = self.in_order || self.waved.contains(&round);
        for (i, scope) in self.scopes.iter_mut().enumerate() {
            let groups = scope.groups.len() as u64 + groups.get(i).copied().unwrap_or_default();
            scope.share = scope.limit.left(scope.spent_before(round)).part(self.items.unwrap_or(groups));
            scope.taken.clear();
        }
        for (id, amount) in std::mem::take(&mut self.charges) {
            match id.round == round {
                true => self.take(self.group(id), machine.cohort(id), amount),
                false => self.charges.push((id, amount)),
            }
        }
    }

    /// Counts a recorded answer used by a turn of this round.
    pub fn used(&mut self, answer: &Answer, machine: &Assembled) {
        // In an evaluation, the whole record is counted before shares are computed.
        if self.items.is_none() {
            self.take_answer(answer, machine);
        }
    }

    fn take_answer(&mut self, answer: &Answer, machine: &Assembled) {
        if !matches!(answer.outcome, Outcome::Denied { .. }) {
            let (group, cohort) = (self.group(answer.id), machine.cohort(answer.id));
            self.take(group, cohort, self.amount(answer));
        }
    }

    fn group(&self, id: EffectId) -> u32 {
        if self.items.is_some() { id.item } else { id.actor }
    }

    fn take(&mut self, group: u32, cohort: Option<u16>, amount: Amount) {
        for scope in self.scopes.iter_mut().filter(|scope| scope.has(cohort)) {
            *scope.taken.entry(group).or_default() += amount;
        }
    }

    /// Accepts requests; returns those that may be sent at once.
    pub fn ask(&mut self, effects: Vec<Effect>, machine: &Assembled) -> Vec<Effect> {
        let mut now = Vec::new();
        let (bounded, tools) = (self.bounded(), self.limits_tools());
        for effect in effects {
            if !counts(&effect, tools) {
                now.push(effect);
                continue;
            }
            if !bounded {
                self.free.insert(effect.id, effect.clone());
                now.push(effect);
                continue;
            }
            let most = self.most(&effect);
            let (group, cohort) = (self.group(effect.id), machine.cohort(effect.id));
            if let Some(limit) = self.agent {
                let taken = self.of_agent.entry(effect.id.actor).or_default();
                if !taken.leaves(most, limit) {
                    let why = format!("the budget of an agent is {}", Amount::why(limit, *taken, most));
                    self.denied.push(denial(effect, why));
                    continue;
                }
            }
            let fits = |scope: &Scope| {
                let taken = scope.taken.get(&group).copied().unwrap_or_default();
                let shares = self.items.is_some() || scope.groups.contains(&group);
                !scope.has(cohort) || shares && taken.leaves(most, scope.share)
            };
            if self.recorded.remove(&effect.id) || !self.waves && self.scopes.iter().all(fits) {
                self.reserve(effect.id, Reserved { group, cohort, amount: most });
                now.push(effect);
            } else {
                self.waiting.insert(effect.id, effect);
            }
        }
        now
    }

    /// Whether tool calls are limited.
    fn limits_tools(&self) -> bool {
        let mut limits = self.scopes.iter().map(|scope| scope.limit).chain(self.agent);
        limits.any(|limit| limit.tool_calls != u64::MAX)
    }

    fn most(&self, effect: &Effect) -> Amount {
        most(&self.providers, &self.prices, effect)
    }

    fn reserve(&mut self, id: EffectId, reserved: Reserved) {
        let Reserved { group, cohort, amount } = reserved;
        self.take(group, cohort, amount);
        for scope in self.scopes.iter_mut().filter(|scope| scope.has(cohort)) {
            scope.reserved += amount;
        }
        if self.agent.is_some() {
            *self.of_agent.entry(id.actor).or_default() += amount;
        }
        self.reserved.insert(id, reserved);
    }

    /// Counts an answer that has arrived.
    pub fn heard(&mut self, answer: &Answer, machine: &Assembled) {
        if self.release(answer.id) {
            self.take_answer(answer, machine);
        }
        self.settle(answer, machine.cohort(answer.id));
    }

    /// Counts a request without an answer. If it may have been charged, its reservation is spent, and nothing is reserved for a retry. If
    /// it was rejected, only the request itself counts.
    pub fn broke(&mut self, effect: &Effect, charged: Option<&Usage>, machine: &Assembled) {
        if effect.request.model.kind() != TargetKind::Model {
            return;
        }
        let id = effect.id;
        let (cohort, amount) = (machine.cohort(id), Amount::of_broken(charged));
        let limited = if charged.is_some() { self.release(id) } else { self.reserved.contains_key(&id) };
        if limited {
            self.take(self.group(id), cohort, amount);
        }
        self.spend(id, cohort, amount);
    }

    /// Takes a request that was rejected and has a retry reserved; returns it if the request limits allow a retry.
    pub fn again(&mut self, effect: Effect, machine: &Assembled) -> Option<Effect> {
        let Some(Reserved { group, cohort, .. }) = self.reserved.get(&effect.id).copied() else {
            return self.ask(vec![effect], machine).pop();
        };
        let holds = |scope: &Scope| {
            let taken = scope.taken.get(&group).copied().unwrap_or_default();
            let all = scope.spent().and(scope.reserved);
            !scope.has(cohort)
                || all.requests <= scope.limit.requests && (self.waves || taken.requests <= scope.share.requests)
        };
        let own = self.of_agent.get(&effect.id.actor).copied().unwrap_or_default();
        if self.scopes.iter().all(holds) && self.agent.is_none_or(|limit| own.requests <= limit.requests) {
            return Some(effect);
        }
        self.release(effect.id);
        self.ask(vec![effect], machine).pop()
    }

    /// Releases a call's reservation, if any.
    fn release(&mut self, id: EffectId) -> bool {
        if self.free.remove(&id).is_some() {
            return false;
        }
        let Some(Reserved { group, cohort, amount }) = self.reserved.remove(&id) else { return false };
        for scope in self.scopes.iter_mut().filter(|scope| scope.has(cohort)) {
            scope.reserved = scope.reserved.less(amount);
            if let Some(taken) = scope.taken.get_mut(&group) {
                *taken = taken.less(amount);
            }
        }
        if let Some(taken) = self.of_agent.get_mut(&id.actor) {
            *taken = taken.less(amount);
        }
        true
    }

    /// The cost of an answer. If no price was known at the time, uses present prices.
    fn amount(&self, answer: &Answer) -> Amount {
        match answer.request.model.kind() {
            TargetKind::Tool if answer.id.asker != Asker::Scorer => return Amount::TOOL_CALL,
            TargetKind::Tool | TargetKind::Human => return Amount::default(),
            TargetKind::Model => {}
        }
        let told = Amount::of(&answer.usage);
        let known = Amount::of(&self.prices.applied(&answer.request.model, answer.usage));
        Amount { nano_usd: told.nano_usd.max(known.nano_usd), ..told }
    }

    fn settle(&mut self, answer: &Answer, cohort: Option<u16>) {
        if matches!(answer.outcome, Outcome::Denied { .. }) {
            return;
        }
        self.spend(answer.id, cohort, self.amount(answer));
    }

    fn spend(&mut self, id: EffectId, cohort: Option<u16>, amount: Amount) {
        for scope in self.scopes.iter_mut().filter(|scope| scope.has(cohort)) {
            *scope.settled.entry(id.round).or_default() += amount;
            scope.own += amount;
        }
        if self.agent.is_some() {
            *self.of_agent.entry(id.actor).or_default() += amount;
        }
    }

    /// Denied answers not yet returned.
    pub fn take_denied(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.denied)
    }

    /// Whether calls are waiting for a decision.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Decides the waiting calls, once nothing is in flight and no one can proceed. An evaluation denies nothing: the run stops instead,
    /// and continues with a larger budget as if it had never stopped.
    /// Returns the calls to make, in order of id.
    pub fn decide(&mut self, machine: &Assembled) -> Vec<Effect> {
        let asked = self.asked(machine);
        self.decide_among(&asked)
    }

    /// The waiting calls, in order of id.
    fn asked(&self, machine: &Assembled) -> Vec<Asked> {
        let asked =
            |effect: &Effect| Asked { id: effect.id, cohort: machine.cohort(effect.id), most: self.most(effect) };
        self.waiting.values().map(asked).collect()
    }

    /// Decides calls, in order of id, some of which may be those of other processes. Returns those of this process to make.
    fn decide_among(&mut self, asked: &[Asked]) -> Vec<Effect> {
        self.waves = true;
        let mut taken: Vec<Amount> = self.scopes.iter().map(|scope| scope.spent().and(scope.reserved)).collect();
        let mut allowed = Vec::new();
        for call in asked {
            let mut over = self.scopes.iter_mut().zip(&mut taken).filter(|(scope, _)| scope.has(call.cohort));
            if over.all(|(scope, taken)| taken.leaves(call.most, scope.limit)) {
                let counts = self.scopes.iter().zip(&mut taken).filter(|(scope, _)| scope.has(call.cohort));
                counts.for_each(|(_, taken)| *taken += call.most);
                allowed.push(*call);
            }
        }
        if !allowed.is_empty() {
            let made = allowed.into_iter().filter_map(|Asked { id, cohort, most }| {
                let effect = self.waiting.remove(&id)?;
                self.reserve(id, Reserved { group: self.group(id), cohort, amount: most });
                Some(effect)
            });
            return made.collect();
        }
        for Asked { id, cohort, most } in asked {
            let full = |scope: &&Scope| scope.has(*cohort) && !scope.spent().leaves(*most, scope.limit);
            let Some(scope) = self.scopes.iter().find(full) else { continue };
            let why = format!("the budget of {} is {}", scope.what, Amount::why(scope.limit, scope.spent(), *most));
            if scope.cohort.is_none() {
                self.exhausted.get_or_insert_with(|| why.clone());
            }
            if self.items.is_none()
                && let Some(effect) = self.waiting.remove(id)
            {
                self.denied.push(denial(effect, why));
            }
        }
        Vec::new()
    }

    /// Why the run stops at the end of the round (an evaluation: at once).
    pub fn exhausted(&self) -> Option<&str> {
        self.exhausted.as_deref()
    }
}

/// Whether limits apply to a request: those to models, and those to tools if tool calls are limited. Scoring an answer is not a call of
/// the team.
fn counts(effect: &Effect, tools: bool) -> bool {
    match effect.request.model.kind() {
        TargetKind::Model => true,
        TargetKind::Tool => tools && effect.id.asker != Asker::Scorer,
        TargetKind::Human => false,
    }
}

fn denial(effect: Effect, why: String) -> Answer {
    Answer {
        id: effect.id,
        request: effect.request,
        outcome: Outcome::Denied { why },
        usage: Usage::default(),
        reasoning: None,
    }
}

/// The most that a call can cost.
fn most(providers: &Providers, prices: &Prices, effect: &Effect) -> Amount {
    let model = &effect.request.model;
    if model.kind() == TargetKind::Tool {
        return Amount::TOOL_CALL;
    }
    // A model without a provider fails without a call.
    let Ok(provider) = providers.for_model(model) else { return Amount::default() };
    let most = Amount::of(&prices.applied(model, provider.most(&effect.request)));
    match provider.tells_costs() || prices.know(model) {
        true => most,
        // No price was required for a model that its policy did not declare; calls never fit a dollar limit.
        false => Amount { nano_usd: u64::MAX, ..most },
    }
}
