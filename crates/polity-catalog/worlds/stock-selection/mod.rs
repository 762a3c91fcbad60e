//! Committees of three analysts debate which stocks to hold, and are backtested on simulated prices. See README.md.

mod params;
mod prices;
#[cfg(test)]
mod tests;

pub use params::{Debate, Params, Signals};
pub use prices::Market;

use polity_kernel::Invalid;
use polity_kernel::digest::DigestVec;
use polity_kernel::interface::{ActionArgument, CellColumn, CellKind, Cells, NumberSlot, TableKind, TableSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use serde::{Deserialize, Serialize};

/// The roles on a committee, in order of seat.
const ROLES: [&str; 3] = ["fundamental", "sentiment", "valuation"];
/// The portfolios of a backtest: those of the committees, those of each role alone, and all stocks.
const PORTFOLIOS: [&str; 5] = ["committee", "fundamental", "sentiment", "valuation", "benchmark"];
/// Trading days of a year.
const YEAR: f64 = 252.0;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<StockSelection>(files);
}

/// Stock selection.
pub struct StockSelection {
    params: Params,
    slots: Slots,
}

/// What `observe` writes, and the first action.
struct Slots {
    role: NumberSlot,
    stocks: TableSlot,
    rate: u16,
}

/// A committee.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Committee {
    /// By role, then by stock: signals of this period, ratings before this round, and those given in it.
    signals: Vec<Vec<f64>>,
    ratings: Vec<Vec<f64>>,
    given: Vec<Vec<f64>>,
    /// By role: its portfolio by its first ratings of the period.
    alone: Vec<Vec<u32>>,
    /// The portfolio of the last period.
    picks: Vec<u32>,
}

/// Sums of daily returns, of a kind of portfolio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    sum: f64,
    squares: f64,
    days: u64,
    /// Mean return of the last period over all of these portfolios.
    last: f64,
}

impl Record {
    fn mean(&self) -> f64 {
        self.sum / self.days.max(1) as f64
    }

    fn deviation(&self) -> f64 {
        (self.squares / self.days.max(1) as f64 - self.mean() * self.mean()).max(0.0).sqrt()
    }

    fn sharpe(&self) -> f64 {
        let deviation = self.deviation();
        if deviation > 0.0 { self.mean() / deviation * YEAR.sqrt() } else { 0.0 }
    }
}

/// The state of stock selection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    period: u32,
    /// The round of the period: 0 for first ratings, then those of debate.
    phase: u32,
    market: Market,
    /// By stock: the stock whose signal, or volatility, is shown in its place, if that is drawn at random.
    instead: Vec<u32>,
    committees: DigestVec<Committee>,
    /// In order of [`PORTFOLIOS`].
    records: Vec<Record>,
    /// Share of committees' stocks of whose sign all three analysts were agreed at the end of the last period.
    agreed: f64,
    /// A number that tells the choices so far from others.
    code: u64,
    /// Whether a period has ended in the last round.
    ended: bool,
}

/// The `picks` stocks with the highest ratings; of equal ones the first.
fn top(ratings: &[f64], picks: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..ratings.len() as u32).collect();
    order.sort_by(|a, b| ratings[*b as usize].total_cmp(&ratings[*a as usize]).then(a.cmp(b)));
    order.truncate(picks as usize);
    order.sort_unstable();
    order
}

impl StockSelection {
    fn name(stock: u32) -> String {
        format!("stock-{}", stock + 1)
    }

    fn declare(declare: &mut DeclareWorld<Self>, params: &Params) -> Slots {
        let Params { stocks, days, noise, picks, .. } = *params;
        let fixed = [
            ("days", "days of a period", f64::from(days)),
            ("picks", "stocks that the committee selects", f64::from(picks)),
            ("noise", "standard deviation of a signal's error, in units of that of what it tells of", noise),
        ];
        for (name, doc, value) in fixed {
            declare.shared_number(name, doc, move |_, _| value);
        }
        declare.shared_number("period", "the period, from 0", |_, state| f64::from(state.period));
        let doc = "0 in the round of first ratings; in those of debate, the number of the round";
        declare.shared_number("phase", doc, |_, state| f64::from(state.phase));
        let role = declare.number_slot("role", "the agent's role: 0 fundamental, 1 sentiment, 2 valuation");
        let columns = ["signal", "volatility", "last-return", "own", "first", "second"];
        let doc = "the stocks, by name: what the agent's sources say of the return of the coming period; standard deviation of daily returns in the last period; return of the last period; its own last rating and those of the two others (0 in the round of first ratings)";
        let stocks_slot = declare.table_slot("stocks", columns, doc);
        let mut rate = 0;
        for stock in 0..stocks {
            let doc = "rate the stock, from -1 (sell) to 1 (buy)";
            let name = format!("rate-{}", Self::name(stock));
            let action = declare.action(name, ActionArgument::Number { low: -1.0, high: 1.0 }, doc);
            rate = if stock == 0 { action } else { rate };
        }
        Slots { role, stocks: stocks_slot, rate }
    }

    fn declare_results(declare: &mut DeclareWorld<Self>) {
        let mean = |place: usize| move |_: &Self, state: &State| state.records.get(place).map_or(0.0, Record::mean);
        for (place, name) in PORTFOLIOS.iter().enumerate() {
            let doc = format!("mean daily return of the portfolio: {name}");
            declare.scalar(format!("return-{name}"), doc, mean(place));
            let doc = format!("standard deviation of its daily return: {name}");
            declare.scalar(format!("volatility-{name}"), doc, move |_, state| {
                state.records.get(place).map_or(0.0, Record::deviation)
            });
            let doc = format!("its mean over its standard deviation, in a year: {name}");
            declare.scalar(format!("sharpe-{name}"), doc, move |_, state| {
                state.records.get(place).map_or(0.0, Record::sharpe)
            });
        }
        let doc = "mean daily return of committees less that of all stocks";
        declare.scalar("excess", doc, |_, state| state.records[0].mean() - state.records[4].mean());
        let doc = "mean daily return of committees less the mean of those of the three roles alone";
        declare.scalar("excess-over-roles", doc, |_, state| {
            state.records[0].mean() - state.records[1..4].iter().map(Record::mean).sum::<f64>() / 3.0
        });
        let doc = "share of stocks on whose sign all three analysts agreed in the last period, mean of committees";
        declare.scalar("agreed", doc, |_, state| state.agreed);
        let doc = "a number from 0 to 1 that tells the committees' choices so far from others";
        declare.scalar("choice-code", doc, |_, state| (state.code >> 11) as f64 / (1u64 << 53) as f64);
        let column =
            |name: &'static str, kind, doc: &'static str| CellColumn { name: name.into(), kind, doc: doc.into() };
        let columns = vec![
            column(
                "portfolio",
                CellKind::Word(PORTFOLIOS.iter().map(|name| (*name).into()).collect()),
                "the portfolio",
            ),
            column("return", CellKind::Number, "its return in the period"),
        ];
        let table = TableKind { name: "backtest".into(), doc: "a portfolio in a period".into(), columns };
        declare.table(table, |_, state| {
            let rows = if state.ended { PORTFOLIOS.len() } else { 0 };
            let returns = state.records.iter().take(rows).map(|record| record.last).collect();
            vec![Cells::Word((0..rows as u16).collect()), Cells::Number(returns)]
        });
    }

    /// Draws the signals of a period.
    fn signal(&self, state: &mut State, draws: &mut Draws) {
        let Params { days, noise, signals, leak, .. } = self.params;
        let n = state.market.stocks.len();
        state.instead = (0..n as u32).collect();
        if signals != Signals::Own {
            draws.shuffle(&mut state.instead);
        }
        let parts: Vec<[(f64, f64); 3]> = state.market.stocks.iter().map(|stock| stock.parts(days)).collect();
        let coming: Vec<f64> = state.market.stocks.iter().map(|stock| stock.coming.iter().sum()).collect();
        for place in 0..state.committees.len() {
            let drawn: Vec<Vec<f64>> = (0..ROLES.len())
                .map(|role| {
                    let signal = |stock: usize| {
                        let from = if signals == Signals::Shuffled { state.instead[stock] as usize } else { stock };
                        let (part, deviation) = parts[from][role];
                        part + noise * deviation * draws.normal() + if leak { coming[from] } else { 0.0 }
                    };
                    (0..n).map(signal).collect()
                })
                .collect();
            state.committees.change(place, |committee| {
                committee.signals = drawn;
                committee.ratings = vec![vec![0.0; n]; ROLES.len()];
                committee.given = committee.ratings.clone();
            });
        }
    }

    /// Draws the returns of the period to come, which no choice may depend on, and its signals.
    fn prepare(&self, state: &mut State, draws: &mut Draws) {
        // Signals of drifts as they are before the period.
        let mirrored = self.params.mirror_from.is_some_and(|from| state.period >= from);
        let before = state.market.clone();
        state.market.draw(&self.params, if mirrored { -1.0 } else { 1.0 }, draws);
        let after = std::mem::replace(&mut state.market, before);
        for (stock, later) in state.market.stocks.iter_mut().zip(&after.stocks) {
            stock.coming.clone_from(&later.coming);
        }
        self.signal(state, draws);
        state.market = after;
    }

    /// Lets committees select, and their portfolios be held for the period.
    fn hold(&self, state: &mut State) {
        let picks = self.params.picks;
        let (mut agreed, stocks) = (0u64, state.market.stocks.len());
        let daily = |market: &Market, held: &[u32], day: usize| {
            let gain = |stock: &u32| libm::expm1(market.stocks[*stock as usize].coming[day]);
            held.iter().map(gain).sum::<f64>() / held.len().max(1) as f64
        };
        let all: Vec<u32> = (0..stocks as u32).collect();
        let days = self.params.days as usize;
        let mut totals = vec![0.0; PORTFOLIOS.len()];
        for place in 0..state.committees.len() {
            let market = &state.market;
            let code = &mut state.code;
            let records = &mut state.records;
            state.committees.change(place, |committee| {
                let mean = |stock: usize| committee.ratings.iter().map(|own| own[stock]).sum::<f64>() / 3.0;
                let ratings: Vec<f64> = (0..stocks).map(mean).collect();
                committee.picks = top(&ratings, picks);
                let sign = |stock: usize, above: bool| committee.ratings.iter().all(|own| (own[stock] > 0.0) == above);
                agreed += (0..stocks).filter(|stock| sign(*stock, true) || sign(*stock, false)).count() as u64;
                for pick in &committee.picks {
                    *code = (*code ^ u64::from(*pick)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
                }
                let held = [&committee.picks].into_iter().chain(&committee.alone).chain([&all]);
                for ((held, record), total) in held.zip(records.iter_mut()).zip(&mut totals) {
                    let mut growth = 1.0;
                    for day in 0..days {
                        let gain = daily(market, held, day);
                        growth *= 1.0 + gain;
                        record.sum += gain;
                        record.squares += gain * gain;
                        record.days += 1;
                    }
                    *total += growth - 1.0;
                }
            });
        }
        let committees = state.committees.len().max(1) as f64;
        state.agreed = agreed as f64 / (committees * stocks.max(1) as f64);
        for (record, total) in state.records.iter_mut().zip(totals) {
            record.last = total / committees;
        }
    }
}

impl World for StockSelection {
    const NAME: &'static str = "stock-selection";
    const SUMMARY: &'static str =
        "Committees of analysts debate which stocks to hold; a backtest on simulated prices (AlphaAgents)";
    type Params = Params;
    type State = State;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        params.check(setup.agents)?;
        let slots = StockSelection::declare(declare, &params);
        StockSelection::declare_results(declare);
        Ok(StockSelection { params, slots })
    }

    fn memory_bytes(&self) -> usize {
        (self.params.stocks as usize) * 40 + 200
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> State {
        let committee = Committee {
            signals: Vec::new(),
            ratings: Vec::new(),
            given: Vec::new(),
            alone: vec![Vec::new(); ROLES.len()],
            picks: Vec::new(),
        };
        let mut state = State {
            period: 0,
            phase: 0,
            market: Market::new(&self.params, draws),
            instead: Vec::new(),
            committees: vec![committee; (setup.agents / 3) as usize].into(),
            records: vec![Record::default(); PORTFOLIOS.len()],
            agreed: 0.0,
            code: 0,
            ended: false,
        };
        self.prepare(&mut state, draws);
        state
    }

    fn observe(&self, state: &State, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let (place, role) = ((person.id / 3) as usize, (person.id % 3) as usize);
        let Some(committee) = state.committees.get(place) else { return };
        observation.number(self.slots.role, role as f64);
        let others = [(role + 1) % 3, (role + 2) % 3].map(|other| match self.params.debate {
            Debate::Heard => other,
            Debate::Echo => role,
        });
        observation.table(self.slots.stocks, |rows| {
            for (i, stock) in state.market.stocks.iter().enumerate() {
                let shown = match self.params.signals {
                    Signals::ShuffledRisk => &state.market.stocks[state.instead[i] as usize],
                    Signals::Own | Signals::Shuffled => stock,
                };
                let rating = |role: usize| committee.ratings[role][i];
                let signal = committee.signals[role][i];
                rows.extend([signal, shown.volatility, stock.last, rating(role), rating(others[0]), rating(others[1])]);
                rows.text(Self::name(i as u32));
            }
        });
    }

    fn apply(&self, state: &mut State, actions: &AgentActions<'_>, _: &mut Future) {
        let (place, role): (usize, usize) = ((actions.person.id / 3) as usize, (actions.person.id % 3) as usize);
        if state.committees.get(place).is_none() {
            return;
        }
        let first = self.slots.rate;
        state.committees.change(place, |committee| {
            for act in actions.acts() {
                let stock = usize::from(act.kind - first);
                if let Some(rating) = committee.given.get_mut(role).and_then(|own| own.get_mut(stock)) {
                    *rating = act.value.clamp(-1.0, 1.0);
                }
            }
        });
    }

    fn end_round(&self, state: &mut State, draws: &mut Draws) -> Option<String> {
        let (phase, picks) = (state.phase, self.params.picks);
        for place in 0..state.committees.len() {
            state.committees.change(place, |committee| {
                committee.ratings.clone_from(&committee.given);
                if phase == 0 {
                    committee.alone = committee.ratings.iter().map(|own| top(own, picks)).collect();
                }
            });
        }
        state.ended = state.phase == self.params.talk;
        if !state.ended {
            state.phase += 1;
            return None;
        }
        self.hold(state);
        state.market.pass(draws);
        (state.period, state.phase) = (state.period + 1, 0);
        if state.period == self.params.periods {
            return Some(format!("{} periods are over", self.params.periods));
        }
        self.prepare(state, draws);
        None
    }
}
