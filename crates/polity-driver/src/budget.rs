//! The wall: no call is made unless the most that it can take fits what is left.
//!
//! Which calls are denied must not depend on which answers came first. So, as long as a round goes well, every group (an agent in a
//! society, an item in an evaluation) has its share of what is left, and asks within it at once. A call that does not fit the share
//! of its group waits until nothing is in flight. Then what is spent is known, and all that wait are decided together, in order of
//! id: those that fit are made, and if none fits, all are denied. From the first such decision on the rest of the round is decided so.
//! `docs/decisions/a-budget-is-a-wall.md` has the reasons.

use crate::drive::Past;
use crate::models::Providers;
use crate::models::human::is_person;
use crate::models::prices::Prices;
use crate::tools::is_tool;
use polity_kernel::ask::{Answer, Asker, Effect, EffectId, Outcome, Usage};
use polity_kernel::scenario::{Assembled, Budget, Limits};
use polity_kernel::world::Activation;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::sync::Arc;

/// What calls take. In whole numbers, because their sum must not depend on its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    /// Billionths of a dollar.
    nano_usd: u64,
    tokens: u64,
    /// Requests that were answered, or may have been.
    calls: u64,
    /// All requests.
    requests: u64,
    /// Calls of tools.
    tool_calls: u64,
}

impl Amount {
    const ENDLESS: Amount =
        Amount { nano_usd: u64::MAX, tokens: u64::MAX, calls: u64::MAX, requests: u64::MAX, tool_calls: u64::MAX };
    /// What a request takes that was turned away.
    const TURNED_AWAY: Amount = Amount { nano_usd: 0, tokens: 0, calls: 0, requests: 1, tool_calls: 0 };
    /// What a call of a tool takes.
    const TOOL_CALL: Amount = Amount { nano_usd: 0, tokens: 0, calls: 0, requests: 0, tool_calls: 1 };

    fn of(usage: &Usage) -> Amount {
        // Rounded up: what is counted is never less than what is spent. Saturates, as casts of floats do.
        let nano_usd = (usage.cost_usd * 1e9).ceil() as u64;
        let tokens = usage.tokens_in.saturating_add(usage.tokens_out);
        Amount { nano_usd, tokens, calls: 1, requests: 1, tool_calls: 0 }
    }

    /// What a request takes that brought no answer.
    fn of_broken(charged: Option<&Usage>) -> Amount {
        charged.map_or(Amount::TURNED_AWAY, Amount::of)
    }

    fn limit(limits: &Limits) -> Amount {
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

    fn and(self, other: Amount) -> Amount {
        self.each(other, u64::saturating_add)
    }

    fn less(self, other: Amount) -> Amount {
        self.each(other, u64::saturating_sub)
    }

    /// The equal part of one of `n`; what has no limit has none in parts.
    fn part(self, n: u64) -> Amount {
        self.each(self, |all, _| if all == u64::MAX { all } else { all / n.max(1) })
    }

    fn within(self, limit: Amount) -> bool {
        let Amount { nano_usd, tokens, calls, requests, tool_calls } = self;
        nano_usd <= limit.nano_usd
            && tokens <= limit.tokens
            && calls <= limit.calls
            && requests <= limit.requests
            && tool_calls <= limit.tool_calls
    }

    /// Whether a limit holds `more` on top of this. A call of a tool costs nothing, so no other limit is in its way.
    fn leaves(self, more: Amount, limit: Amount) -> bool {
        let all = self.and(more);
        if more == Amount::TOOL_CALL { all.tool_calls <= limit.tool_calls } else { all.within(limit) }
    }

    /// What is left of a limit. What has none has none afterwards.
    fn left(self, spent: Amount) -> Amount {
        self.each(spent, |limit, spent| if limit == u64::MAX { limit } else { limit.saturating_sub(spent) })
    }

    /// In words: the limit that does not hold `more` on top of what is spent.
    fn why(limit: Amount, spent: Amount, more: Amount) -> String {
        let usd = |nano: u64| nano as f64 / 1e9;
        let all = spent.and(more);
        if all.tool_calls > limit.tool_calls && (more == Amount::TOOL_CALL || more == Amount::default()) {
            return format!("{} calls of tools, and {} are made", limit.tool_calls, spent.tool_calls);
        }
        if all.nano_usd > limit.nano_usd {
            if more.nano_usd == u64::MAX {
                return format!("{:.4} USD, and no price is known of the model that is asked", usd(limit.nano_usd));
            }
            let [limit, spent, more] = [limit, spent, more].map(|amount| usd(amount.nano_usd));
            return format!("{limit:.4} USD, of which {spent:.4} are spent, and the next call may take {more:.4}");
        }
        if all.tokens > limit.tokens {
            let [limit, spent, more] = [limit, spent, more].map(|amount| amount.tokens);
            return format!("{limit} tokens, of which {spent} are spent, and the next call may take {more}");
        }
        match all.calls > limit.calls {
            true => format!("{} calls, and {} are made", limit.calls, spent.calls),
            false => format!("{} requests, and {} are made", limit.requests, spent.requests),
        }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        *self = self.and(other);
    }
}

/// The run, or a cohort of it, with a limit.
struct Scope {
    what: String,
    /// `None`: all.
    cohort: Option<u16>,
    limit: Amount,
    /// What answers took, by the round in which they were asked for.
    settled: BTreeMap<u32, Amount>,
    /// In flight.
    reserved: Amount,
    /// What a group may take in this round without waiting.
    share: Amount,
    /// Among whom it is shared: who has asked in this round.
    groups: BTreeSet<u32>,
    /// What groups have taken or reserved in this round.
    taken: BTreeMap<u32, Amount>,
}

impl Scope {
    fn spent(&self) -> Amount {
        self.settled.values().fold(Amount::default(), |sum, amount| sum.and(*amount))
    }
}

/// What a call is counted as.
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
    /// Requests of the past that brought no answer, and count against the shares of their rounds.
    charges: Vec<(EffectId, Amount)>,
    scopes: Vec<Scope>,
    /// The limit of each agent, and what each has taken or reserved.
    agent: Option<Amount>,
    of_agent: BTreeMap<u32, Amount>,
    /// Whether at most one turn is under way: then everything is known whenever something is asked.
    in_order: bool,
    /// Items of an evaluation: it has one share for all its rounds.
    items: Option<u64>,
    /// The round whose shares are in force.
    round: Option<u32>,
    /// Whether calls of this round are decided together, each time nothing is in flight.
    waves: bool,
    waiting: BTreeMap<EffectId, Effect>,
    reserved: BTreeMap<EffectId, Reserved>,
    /// In flight while nothing is limited: what they may take is reckoned when something is.
    free: BTreeMap<EffectId, Effect>,
    /// Decided before the run was interrupted, and the rounds in which anything was.
    recorded: BTreeSet<EffectId>,
    waved: BTreeSet<u32>,
    denied: Vec<Answer>,
    /// Why the run's own limit holds no further call.
    exhausted: Option<String>,
}

impl Gate {
    /// The gate of a run. Where nothing is limited it only counts, for a limit that may be set later. `past`: what it has had and decided.
    pub fn new(budget: &Budget, machine: &Assembled, providers: Arc<Providers>, prices: Prices, past: &Past) -> Gate {
        let scope = |what: String, cohort, limits: &Limits| Scope {
            what,
            cohort,
            limit: Amount::limit(limits),
            settled: BTreeMap::new(),
            reserved: Amount::default(),
            share: Amount::ENDLESS,
            groups: BTreeSet::new(),
            taken: BTreeMap::new(),
        };
        let mut scopes = vec![scope("the run".into(), None, &budget.run())];
        let (mut in_order, mut items) = (false, None);
        match machine {
            Assembled::Society(society) => {
                in_order = society.activation() == Activation::RandomOrder;
                for (i, name) in society.cohorts().iter().enumerate() {
                    if let Some(limits) = budget.cohorts.get(name).filter(|limits| limits.any()) {
                        scopes.push(scope(format!("the cohort `{name}`"), Some(i as u16), limits));
                    }
                }
            }
            Assembled::Evaluation(evaluation) => items = Some(evaluation.items().len() as u64),
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
            waves: false,
            waiting: BTreeMap::new(),
            reserved: BTreeMap::new(),
            free: BTreeMap::new(),
            // An evaluation denies nothing, so that it need not decide again as it had.
            recorded: if items.is_some() { BTreeSet::new() } else { past.waves.clone() },
            waved: past.waved.clone(),
            denied: Vec::new(),
            exhausted: None,
        };
        for answer in past.answers.values() {
            gate.settle(answer, cohort_of(machine, answer.id));
        }
        for (id, amount) in gate.charges.clone() {
            gate.spend(id, cohort_of(machine, id), amount);
        }
        gate
    }

    /// Whether anything is limited.
    pub fn bounded(&self) -> bool {
        self.agent.is_some() || self.scopes.iter().any(|scope| scope.limit != Amount::ENDLESS)
    }

    /// Whether it is known what these models cost.
    pub fn knows_costs(&self, models: &[String]) -> bool {
        let known = |model: &String| self.providers.for_model(model).is_ok_and(|provider| provider.tells_costs());
        models.iter().all(|model| self.prices.know(model) || known(model))
    }

    /// Other limits of the run from now on, where they are given. Effects that were let through and have not been sent, `back`, are decided
    /// anew; returns those that may be asked, and why the run must stop if more is spent already.
    ///
    /// What is left beside the calls in flight is shared anew. A group whose call in flight ends gives back to its share at most what was
    /// set aside for that call outside of it, so that all together stay within the limit.
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
            let (group, cohort) = (self.group(effect.id), cohort_of(machine, effect.id));
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

    /// Begins a batch, answered by the record or not. `effects`: all of it.
    pub fn batch(&mut self, effects: &[Effect], machine: &Assembled) {
        let Some(first) = effects.first() else { return };
        let evaluation = self.items.is_some();
        let new = match evaluation {
            true => self.round.is_none(),
            false => self.round.is_none_or(|round| first.id.round > round),
        };
        let tools = self.limits_tools();
        let joins = |scope: &mut Scope| {
            let counts = |effect: &&Effect| {
                let ours = scope.cohort.is_none() || scope.cohort == cohort_of(machine, effect.id);
                ours && counts(effect, tools)
            };
            let asking: Vec<u32> = effects.iter().filter(counts).map(|effect| effect.id.actor).collect();
            scope.groups.extend(asking);
        };
        if !new {
            // Where nothing is limited a round asks slice by slice.
            if !evaluation {
                self.scopes.iter_mut().for_each(joins);
            }
            return;
        }
        // An evaluation has one share for what is left after all that its record holds.
        let round = if evaluation { u32::MAX } else { first.id.round };
        self.round = Some(round);
        // Once a wave has spent what others' shares had held, a resumed round goes on in waves, as it would have.
        self.waves = self.in_order || self.waved.contains(&round);
        for scope in &mut self.scopes {
            scope.groups.clear();
            joins(scope);
            let before = scope.settled.range(..round).fold(Amount::default(), |sum, (_, amount)| sum.and(*amount));
            scope.share = scope.limit.left(before).part(self.items.unwrap_or(scope.groups.len() as u64));
            scope.taken.clear();
        }
        for (id, amount) in std::mem::take(&mut self.charges) {
            match id.round == round {
                true => self.take(self.group(id), cohort_of(machine, id), amount),
                false => self.charges.push((id, amount)),
            }
        }
    }

    /// Counts an answer of the record that a turn of this round uses.
    pub fn used(&mut self, answer: &Answer, machine: &Assembled) {
        // Of an evaluation all of the record is counted before shares are made.
        if self.items.is_none() {
            self.take_answer(answer, machine);
        }
    }

    fn take_answer(&mut self, answer: &Answer, machine: &Assembled) {
        if !matches!(answer.outcome, Outcome::Denied { .. }) {
            let (group, cohort) = (self.group(answer.id), cohort_of(machine, answer.id));
            self.take(group, cohort, self.amount(answer));
        }
    }

    fn group(&self, id: EffectId) -> u32 {
        if self.items.is_some() { id.item } else { id.actor }
    }

    fn take(&mut self, group: u32, cohort: Option<u16>, amount: Amount) {
        for scope in self.scopes.iter_mut().filter(|scope| scope.cohort.is_none() || scope.cohort == cohort) {
            *scope.taken.entry(group).or_default() += amount;
        }
    }

    /// Takes questions; returns those that may be asked at once.
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
            let (group, cohort) = (self.group(effect.id), cohort_of(machine, effect.id));
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
                scope.cohort.is_some() && scope.cohort != cohort || taken.leaves(most, scope.share)
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

    /// Whether calls of tools are limited.
    fn limits_tools(&self) -> bool {
        let mut limits = self.scopes.iter().map(|scope| scope.limit).chain(self.agent);
        limits.any(|limit| limit.tool_calls != u64::MAX)
    }

    fn most(&self, effect: &Effect) -> Amount {
        let model = &effect.request.model;
        if is_tool(model) {
            return Amount::TOOL_CALL;
        }
        // A model that nobody has fails without a call.
        let Ok(provider) = self.providers.for_model(model) else { return Amount::default() };
        let most = Amount::of(&self.prices.applied(model, provider.most(&effect.request)));
        match provider.tells_costs() || self.prices.know(model) {
            true => most,
            // Of a model that its policy did not declare no price was asked for; no wall of dollars holds its calls.
            false => Amount { nano_usd: u64::MAX, ..most },
        }
    }

    fn reserve(&mut self, id: EffectId, reserved: Reserved) {
        let Reserved { group, cohort, amount } = reserved;
        self.take(group, cohort, amount);
        for scope in self.scopes.iter_mut().filter(|scope| scope.cohort.is_none() || scope.cohort == cohort) {
            scope.reserved += amount;
        }
        if self.agent.is_some() {
            *self.of_agent.entry(id.actor).or_default() += amount;
        }
        self.reserved.insert(id, reserved);
    }

    /// Counts an answer that has come.
    pub fn heard(&mut self, answer: &Answer, machine: &Assembled) {
        if self.release(answer.id) {
            self.take_answer(answer, machine);
        }
        self.settle(answer, cohort_of(machine, answer.id));
    }

    /// Counts a request that brought no answer. One that may have been charged has spent what was set aside for it, and nothing is set
    /// aside for another one. One that was turned away has spent nothing but itself.
    pub fn broke(&mut self, effect: &Effect, charged: Option<&Usage>, machine: &Assembled) {
        if !is_call(&effect.request.model) {
            return;
        }
        let id = effect.id;
        let (cohort, amount) = (cohort_of(machine, id), Amount::of_broken(charged));
        let limited = if charged.is_some() { self.release(id) } else { self.reserved.contains_key(&id) };
        if limited {
            self.take(self.group(id), cohort, amount);
        }
        self.spend(id, cohort, amount);
    }

    /// Takes a question of which a request was turned away, and which has what another one takes set aside; returns it if the limits on
    /// requests hold another one.
    pub fn again(&mut self, effect: Effect, machine: &Assembled) -> Option<Effect> {
        let Some(Reserved { group, cohort, .. }) = self.reserved.get(&effect.id).copied() else {
            return self.ask(vec![effect], machine).pop();
        };
        let holds = |scope: &Scope| {
            let taken = scope.taken.get(&group).copied().unwrap_or_default();
            let all = scope.spent().and(scope.reserved);
            scope.cohort.is_some() && scope.cohort != cohort
                || all.requests <= scope.limit.requests && (self.waves || taken.requests <= scope.share.requests)
        };
        let own = self.of_agent.get(&effect.id.actor).copied().unwrap_or_default();
        if self.scopes.iter().all(holds) && self.agent.is_none_or(|limit| own.requests <= limit.requests) {
            return Some(effect);
        }
        self.release(effect.id);
        self.ask(vec![effect], machine).pop()
    }

    /// Gives back what was set aside for a call, if anything was.
    fn release(&mut self, id: EffectId) -> bool {
        if self.free.remove(&id).is_some() {
            return false;
        }
        let Some(Reserved { group, cohort, amount }) = self.reserved.remove(&id) else { return false };
        for scope in self.scopes.iter_mut().filter(|scope| scope.cohort.is_none() || scope.cohort == cohort) {
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

    /// What an answer took. One that was had while no price was known takes what it costs by those that are.
    fn amount(&self, answer: &Answer) -> Amount {
        if is_tool(&answer.request.model) && answer.id.asker != Asker::Scorer {
            return Amount::TOOL_CALL;
        }
        if !is_call(&answer.request.model) {
            return Amount::default();
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
        for scope in self.scopes.iter_mut().filter(|scope| scope.cohort.is_none() || scope.cohort == cohort) {
            *scope.settled.entry(id.round).or_default() += amount;
        }
        if self.agent.is_some() {
            *self.of_agent.entry(id.actor).or_default() += amount;
        }
    }

    /// Answers that were decided here and not handed out yet.
    pub fn take_denied(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.denied)
    }

    /// Whether calls wait for a decision.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Decides what waits, once nothing is in flight and nobody can move. In an evaluation nothing is denied: the run stops instead, and
    /// goes on with a greater budget as if it had never stopped.
    /// Returns what is to be made, in order of id.
    pub fn decide(&mut self, machine: &Assembled) -> Vec<Effect> {
        self.waves = true;
        let mut made = Vec::new();
        let ids: Vec<EffectId> = self.waiting.keys().copied().collect();
        for id in &ids {
            let Some(effect) = self.waiting.get(id) else { continue };
            let (most, cohort) = (self.most(effect), cohort_of(machine, *id));
            let holds = |scope: &Scope| {
                scope.cohort.is_some() && scope.cohort != cohort
                    || scope.spent().and(scope.reserved).leaves(most, scope.limit)
            };
            if self.scopes.iter().all(holds)
                && let Some(effect) = self.waiting.remove(id)
            {
                self.reserve(*id, Reserved { group: self.group(*id), cohort, amount: most });
                made.push(effect);
            }
        }
        if !made.is_empty() {
            return made;
        }
        for id in ids {
            let Some(effect) = self.waiting.get(&id) else { continue };
            let (most, cohort) = (self.most(effect), cohort_of(machine, id));
            let full = |scope: &&Scope| {
                (scope.cohort.is_none() || scope.cohort == cohort) && !scope.spent().leaves(most, scope.limit)
            };
            let Some(scope) = self.scopes.iter().find(full) else { continue };
            let why = format!("the budget of {} is {}", scope.what, Amount::why(scope.limit, scope.spent(), most));
            if scope.cohort.is_none() {
                self.exhausted.get_or_insert_with(|| why.clone());
            }
            if self.items.is_none()
                && let Some(effect) = self.waiting.remove(&id)
            {
                self.denied.push(denial(effect, why));
            }
        }
        made
    }

    /// Why the run stops at the end of the round (an evaluation: at once).
    pub fn exhausted(&self) -> Option<&str> {
        self.exhausted.as_deref()
    }
}

/// Whether a model is asked: people and tools cost nothing, and are no calls.
fn is_call(model: &str) -> bool {
    !is_person(model) && !is_tool(model)
}

/// Whether limits hold a question: those to models, and to tools where their calls are limited. What scores an answer is no call of the team.
fn counts(effect: &Effect, tools: bool) -> bool {
    match is_tool(&effect.request.model) {
        true => tools && effect.id.asker != Asker::Scorer,
        false => is_call(&effect.request.model),
    }
}

fn cohort_of(machine: &Assembled, id: EffectId) -> Option<u16> {
    match machine {
        Assembled::Society(society) => society.cohort(id.actor),
        Assembled::Evaluation(_) => None,
    }
}

fn denial(effect: Effect, why: String) -> Answer {
    Answer { id: effect.id, request: effect.request, outcome: Outcome::Denied { why }, usage: Usage::default() }
}
