//! Trade on value, trend, the feed, rumours and noise, with the biases of investors. See README.md.

use polity_kernel::Invalid;
use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest change of the price that a trader expects, as a logarithm.
const MOST: f64 = 0.5;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Trader>(files);
}

/// Parameters of traders.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Probability of trading and posting in a session; 0 to 1.
    activity: f64,
    /// Share of its money, or of its shares, that it trades; 0 to 1.
    stake: f64,
    /// Share of the gap between value and price that it expects to close in a session; 0 to 1. This weight and the next three are means: each trader's own
    /// is drawn between 0 and twice that.
    fundamental: f64,
    /// Weight of the trend; 0 to 10. This and the next three count in units of the move that a trader thinks usual.
    trend: f64,
    /// Weight of the posts of those whom it hears; 0 to 10.
    herd: f64,
    /// Weight of the tone of rumours; 0 to 10.
    tone: f64,
    /// Standard deviation of its own error; 0 to 10.
    noise: f64,
    /// The move of the price in a session that it thinks usual where nothing has moved; 0 to 0.1.
    calm: f64,
    /// By how much of the volatility of the last sessions it thinks larger moves usual; 0 to 2.
    attention: f64,
    /// Disposition effect: it expects a fall of this part of its gain on paper, and a rise of this part of its loss, so that it sells winners and keeps losers; 0 to 1.
    disposition: f64,
    /// Taste for lotteries: it pays more by this part of the volatility; 0 to 10.
    lottery: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            activity: 0.3,
            stake: 0.1,
            fundamental: 0.0,
            trend: 0.3,
            herd: 2.0,
            tone: 1.0,
            noise: 1.0,
            calm: 0.004,
            attention: 0.8,
            disposition: 0.0,
            lottery: 0.0,
        }
    }
}

/// A trader: its own weights, and what it expected last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Own {
    fundamental: f64,
    trend: f64,
    herd: f64,
    tone: f64,
    expected: f64,
}

/// Trades on what it expects.
pub struct Trader {
    params: Params,
    price: NumberSlot,
    value: NumberSlot,
    trend: NumberSlot,
    volatility: NumberSlot,
    sentiment: NumberSlot,
    tone: NumberSlot,
    cash: NumberSlot,
    shares: NumberSlot,
    cost: NumberSlot,
    trade: u16,
    limit: u16,
    post: u16,
}

impl Policy for Trader {
    const NAME: &'static str = "trader";
    const SUMMARY: &'static str = "Trade on value, trend, the feed, rumours and noise, with the biases of investors";
    type Params = Params;
    type State = Own;

    const COLUMNS: &'static [StateColumn<Self>] = &[StateColumn {
        name: "expected",
        doc: "logarithm of the price that the agent expected when it last traded, over the price then",
        range: Some((-MOST, MOST)),
        value: |_, own| own.expected,
    }];

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let Params { activity, stake, fundamental, trend, herd, tone, noise, calm, attention, disposition, lottery } =
            params;
        for (key, most, value) in [
            ("activity", 1.0, activity),
            ("stake", 1.0, stake),
            ("fundamental", 1.0, fundamental),
            ("trend", 10.0, trend),
            ("herd", 10.0, herd),
            ("tone", 10.0, tone),
            ("noise", 10.0, noise),
            ("calm", 0.1, calm),
            ("attention", 2.0, attention),
            ("disposition", 1.0, disposition),
            ("lottery", 10.0, lottery),
        ] {
            Invalid::within(0.0..=most, key, value)?;
        }
        let number = |name| setup.number(name);
        Ok(Trader {
            params,
            price: number("price")?,
            value: number("value")?,
            trend: number("trend")?,
            volatility: number("volatility")?,
            sentiment: number("sentiment")?,
            tone: number("tone")?,
            cash: number("cash")?,
            shares: number("shares")?,
            cost: number("cost")?,
            trade: setup.act("trade")?.0,
            limit: setup.act("limit")?.0,
            post: setup.act("post")?.0,
        })
    }

    fn init_state(&self, _: Person<'_>, draws: &mut Draws) -> Own {
        let mut around = |mean: f64| mean * draws.range(0.0, 2.0);
        Own {
            fundamental: around(self.params.fundamental),
            trend: around(self.params.trend),
            herd: around(self.params.herd),
            tone: around(self.params.tone),
            expected: 0.0,
        }
    }

    async fn act(&self, own: &mut Own, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let Params { activity, stake, noise, calm, attention, disposition, lottery, .. } = self.params;
        if !turn.draws.chance(activity) {
            return Ok(());
        }
        let seen = turn.observation;
        let number = |slot| seen.number(slot);
        let (price, volatility, shares, cost) =
            (number(self.price), number(self.volatility), number(self.shares), number(self.cost));
        let usual = calm + attention * volatility;
        let trend = if volatility > 0.0 { number(self.trend) / volatility } else { 0.0 };
        let social = own.trend * trend + own.herd * number(self.sentiment) + own.tone * number(self.tone);
        let gap = libm::log(number(self.value) / price);
        let on_paper = if shares > 0.0 && cost > 0.0 { libm::log(price / cost) } else { 0.0 };
        let expected = own.fundamental * gap + usual * (social + noise * turn.draws.normal()) + lottery * volatility
            - disposition * on_paper;
        own.expected = expected.clamp(-MOST, MOST);
        let limit = price * libm::exp(own.expected);
        let quantity = if own.expected > 0.0 {
            (stake * number(self.cash) / price).min(number(self.cash) / limit).floor()
        } else {
            -(stake * shares).ceil()
        };
        if quantity != 0.0 {
            turn.act(self.trade, quantity);
            turn.act(self.limit, limit);
        }
        turn.act(self.post, if usual > 0.0 { libm::tanh(own.expected / usual) } else { 0.0 });
        Ok(())
    }
}
