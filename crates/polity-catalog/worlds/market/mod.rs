//! A market of one share with a call auction in every session, and a feed of what traders expect. See README.md.

mod book;
mod facts;
mod params;
#[cfg(test)]
mod tests;

pub use book::Order;
pub use facts::Facts;
pub use params::{Feed, Params};

use polity_kernel::AgentId;
use polity_kernel::Invalid;
use polity_kernel::digest::DigestVec;
use polity_kernel::interface::{ActionArgument, NumberSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use serde::{Deserialize, Serialize};

/// Weight of the last session in the trend that traders see.
const TREND: f64 = 0.1;
/// Weight of the last session in the volatility that traders see.
const VOLATILITY: f64 = 0.25;
/// The volatility before the first session.
const FIRST_VOLATILITY: f64 = 0.01;
/// The largest order, in shares.
const MOST_SHARES: f64 = 1e6;
/// The highest limit of an order.
const MOST_PRICE: f64 = 1e6;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Market>(files);
}

/// A market of one share.
pub struct Market {
    params: Params,
    slots: Slots,
}

/// What `observe` writes, and the actions.
struct Slots {
    value: NumberSlot,
    sentiment: NumberSlot,
    cash: NumberSlot,
    shares: NumberSlot,
    cost: NumberSlot,
    trade: u16,
    limit: u16,
}

/// What a trader owns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Holding {
    /// In cents.
    cash: i64,
    shares: i64,
    /// What a share has cost it on average, in cents.
    cost: f64,
}

/// How often traders sold and did not sell, with a gain and with a loss on paper (Odean 1998).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Realised {
    /// Sessions of a trader whose shares were worth more than their cost: all of them, and those with a sale.
    gains: [u64; 2],
    /// The same with less.
    losses: [u64; 2],
}

impl Realised {
    fn share([all, sold]: [u64; 2]) -> f64 {
        sold as f64 / all.max(1) as f64
    }
}

/// The state of the market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    session: u32,
    /// In cents.
    price: i64,
    /// The logarithm of the fundamental value, in units of money.
    value: f64,
    /// Of the last session: logarithmic return and shares traded.
    change: f64,
    volume: i64,
    trend: f64,
    volatility: f64,
    tone: f64,
    /// The key of the signs that are drawn by lot in this session.
    lot: u64,
    holdings: DigestVec<Holding>,
    /// The error of each trader in the logarithm of the value.
    errors: DigestVec<f64>,
    /// Each trader's last post, from -1 to 1.
    posts: DigestVec<f64>,
    orders: Vec<Order>,
    facts: Facts,
    realised: Realised,
}

impl State {
    fn holding(&self, who: AgentId) -> Holding {
        self.holdings.get(who as usize).copied().unwrap_or(Holding { cash: 0, shares: 0, cost: 0.0 })
    }

    fn log_price(&self) -> f64 {
        libm::log(cents(self.price))
    }
}

/// Cents in units of money.
fn cents(cents: i64) -> f64 {
    cents as f64 / 100.0
}

impl Market {
    fn declare(declare: &mut DeclareWorld<Self>) -> Slots {
        declare.shared_number("session", "the session, from 0", |_, state| f64::from(state.session));
        declare.shared_number("price", "price of a share in the last session", |_, state| cents(state.price));
        declare.shared_number("last-return", "logarithmic return of the last session", |_, state| state.change);
        let doc = "mean return of the last sessions, with weights that fall by a tenth each session";
        declare.shared_number("trend", doc, |_, state| state.trend);
        let doc = "mean absolute return of the last sessions, with weights that fall by a quarter each session";
        declare.shared_number("volatility", doc, |_, state| state.volatility);
        declare.shared_number("volume", "shares traded in the last session", |_, state| state.volume as f64);
        let doc = "tone of the day's rumours, about -3 to 3, which says nothing of the value; 0 without rumours";
        declare.shared_number("tone", doc, |_, state| state.tone);
        let value = declare.number_slot("value", "what the agent believes that a share is worth");
        let doc = "mean of the last posts of those whom it hears, -1 (it falls) to 1; 0 if there are none";
        let sentiment = declare.number_slot("sentiment", doc);
        let cash = declare.number_slot("cash", "money of the agent");
        let shares = declare.number_slot("shares", "shares of the agent");
        let cost = declare.number_slot("cost", "what its shares have cost on average");
        let doc =
            "buy this many shares, or sell them if it is below 0; the last number of a turn counts, in whole shares";
        let trade = declare.action("trade", ActionArgument::Number { low: -MOST_SHARES, high: MOST_SHARES }, doc);
        let doc = "the most to pay for a share, or the least to take for it; without it, the last price";
        let limit = declare.action("limit", ActionArgument::Number { low: 0.01, high: MOST_PRICE }, doc);
        let doc = "tell those who hear the agent what it expects: -1 (the price falls) to 1 (it rises)";
        declare.action("post", ActionArgument::Number { low: -1.0, high: 1.0 }, doc);
        Slots { value, sentiment, cash, shares, cost, trade, limit }
    }

    fn declare_results(declare: &mut DeclareWorld<Self>) {
        declare.column("cash", "money of the agent", None, |_, state, who| cents(state.holding(*who).cash));
        declare.column("shares", "its shares", None, |_, state, who| state.holding(*who).shares as f64);
        declare.column("wealth", "its money, and its shares at the last price", None, |_, state, who| {
            let own = state.holding(*who);
            cents(own.cash + own.shares * state.price)
        });
        declare.column("post", "its last post, -1 to 1", Some((-1.0, 1.0)), |_, state, who| {
            state.posts.get(*who as usize).copied().unwrap_or_default()
        });
        declare.scalar("price", "price of a share", |_, state| cents(state.price));
        declare.scalar("value", "fundamental value of a share", |_, state| libm::exp(state.value));
        declare.scalar("volume", "shares traded in the session", |_, state| state.volume as f64);
        declare.scalar("return", "logarithmic return of the session", |_, state| state.change);
        let doc = "logarithm of price over value";
        declare.scalar("mispricing", doc, |_, state| state.log_price() - state.value);
        let of = |of: fn(&Facts) -> f64| move |_: &Market, state: &State| of(&state.facts);
        declare.scalar("deviation", "standard deviation of returns so far", of(Facts::deviation));
        declare.scalar("kurtosis", "excess kurtosis of returns so far", of(Facts::kurtosis));
        let doc = "autocorrelation of returns so far, one session apart";
        declare.scalar("return-memory", doc, of(|facts| facts.autocorrelation(1, false)));
        let doc = "autocorrelation of absolute returns so far, mean over 1 to 10 sessions apart";
        declare.scalar("volatility-memory", doc, of(Facts::memory));
        let doc = "by how much the autocorrelation of absolute returns exceeds the size of that of returns, mean over 1 to 10 sessions apart";
        declare.scalar("clustering", doc, of(Facts::clustering));
        let doc = "correlation of volume and absolute return so far";
        declare.scalar("volume-volatility", doc, of(Facts::volume_volatility));
        declare.scalar("peak", "largest logarithm of price over value so far", of(|facts| facts.peak));
        let doc = "deepest fall of the logarithm of the price within ten sessions so far";
        declare.scalar("crash", doc, of(|facts| facts.crash));
        let doc = "share of sessions so far in which the logarithm of price over value was above 0.2";
        declare.scalar("overpriced", doc, of(Facts::overpriced));
        let doc = "share of gains on paper that were realised less that of losses, so far";
        declare.scalar("disposition", doc, |_, state| {
            Realised::share(state.realised.gains) - Realised::share(state.realised.losses)
        });
        declare.scalar("all-cash", "money of all traders", |_, state| {
            cents(state.holdings.iter().map(|own| own.cash).sum())
        });
        declare.scalar("all-shares", "shares of all traders", |_, state| {
            state.holdings.iter().map(|own| own.shares).sum::<i64>() as f64
        });
    }

    /// Trades at one price, and returns who sold.
    fn trade(state: &mut State, draws: &mut Draws) -> Vec<AgentId> {
        let orders = std::mem::take(&mut state.orders);
        let cleared = book::clear(&orders, state.price, draws);
        let mut sellers = Vec::new();
        for (place, filled) in &cleared.fills {
            let order = &orders[*place];
            let money = filled * cleared.price;
            state.holdings.change(order.who as usize, |own| {
                if order.buys {
                    let before = own.shares as f64 * own.cost;
                    own.cash -= money;
                    own.shares += filled;
                    own.cost = (before + money as f64) / own.shares as f64;
                } else {
                    own.cash += money;
                    own.shares -= filled;
                }
            });
            if !order.buys {
                sellers.push(order.who);
            }
        }
        sellers.sort_unstable();
        state.volume = cleared.volume;
        state.change = libm::log(cleared.price as f64 / state.price as f64);
        state.price = cleared.price;
        sellers
    }
}

impl World for Market {
    const NAME: &'static str = "market";
    const SUMMARY: &'static str =
        "A market of one share: limit orders, a call auction in every session, a feed of sentiment (TwinMarket)";
    type Params = Params;
    type State = State;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        params.check()?;
        let slots = Market::declare(declare);
        Market::declare_results(declare);
        Ok(Market { params, slots })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> State {
        let Params { price, cash, shares, dispersion, rumours, .. } = self.params;
        let agents = setup.agents as usize;
        let price = (price * 100.0).round() as i64;
        let own = Holding { cash: (cash * 100.0).round() as i64, shares: i64::from(shares), cost: price as f64 };
        let errors: Vec<f64> = (0..agents).map(|_| dispersion * draws.normal()).collect();
        State {
            session: 0,
            price,
            value: libm::log(cents(price)),
            change: 0.0,
            volume: 0,
            trend: 0.0,
            volatility: FIRST_VOLATILITY,
            tone: if rumours { draws.normal() } else { 0.0 },
            lot: draws.u64(),
            holdings: vec![own; agents].into(),
            errors: errors.into(),
            posts: vec![0.0; agents].into(),
            orders: Vec::new(),
            facts: Facts::default(),
            realised: Realised::default(),
        }
    }

    fn observe(&self, state: &State, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let own = state.holding(person.id);
        let error = state.errors.get(person.id as usize).copied().unwrap_or_default();
        observation.number(self.slots.value, libm::exp(state.value + error));
        observation.number(self.slots.cash, cents(own.cash));
        observation.number(self.slots.shares, own.shares as f64);
        observation.number(self.slots.cost, own.cost / 100.0);
        if self.params.feed == Feed::Blank {
            return;
        }
        let heard = observation.neighbours().filter_map(|who| state.posts.get(who as usize));
        let (sum, posts) = heard.fold((0.0, 0u32), |(sum, posts), post| (sum + post, posts + 1));
        let by_lot = || Draws::new(state.lot, Stream::World, state.session, person.id).chance(0.5);
        let sign = if self.params.feed == Feed::SignsByLot && by_lot() { -1.0 } else { 1.0 };
        observation.number(self.slots.sentiment, sign * sum / f64::from(posts.max(1)));
    }

    fn apply(&self, state: &mut State, actions: &AgentActions<'_>, _: &mut Future) {
        let who = actions.person.id;
        let (mut trade, mut limit) = (0, state.price);
        for act in actions.acts() {
            if act.kind == self.slots.trade {
                trade = act.value.clamp(-MOST_SHARES, MOST_SHARES).round() as i64;
            } else if act.kind == self.slots.limit {
                limit = ((act.value.clamp(0.01, MOST_PRICE) * 100.0).round() as i64).max(1);
            } else if state.posts.get(who as usize).is_some() {
                state.posts.set(who as usize, act.value.clamp(-1.0, 1.0));
            }
        }
        let own = state.holding(who);
        let buys = trade > 0;
        let quantity = if buys { trade.min(own.cash / limit) } else { (-trade).min(own.shares) };
        if quantity > 0 {
            state.orders.push(Order { who, buys, limit, quantity });
        }
    }

    fn end_round(&self, state: &mut State, draws: &mut Draws) -> Option<String> {
        let before = state.price as f64;
        let with_shares = |own: &Holding| (own.shares > 0).then_some(own.cost);
        let costs: Vec<Option<f64>> = state.holdings.iter().map(with_shares).collect();
        let sellers = Market::trade(state, draws);
        let mut sellers = sellers.into_iter().peekable();
        for (who, cost) in (0..).zip(costs) {
            let sold = sellers.next_if_eq(&who).is_some();
            let Some(cost) = cost.filter(|cost| *cost != before) else { continue };
            let count = if cost < before { &mut state.realised.gains } else { &mut state.realised.losses };
            count[0] += 1;
            count[1] += u64::from(sold);
        }
        state.session += 1;
        state.trend += TREND * (state.change - state.trend);
        state.volatility += VOLATILITY * (state.change.abs() - state.volatility);
        state.facts.add(state.change, state.volume as f64, state.log_price(), state.value);
        state.value += self.params.news * draws.normal();
        state.tone = if self.params.rumours { draws.normal() } else { 0.0 };
        state.lot = draws.u64();
        None
    }
}
