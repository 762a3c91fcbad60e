//! Parameters of stock selection.

use polity_kernel::Invalid;
use schemars::JsonSchema;
use serde::Deserialize;

/// What analysts are shown of the ratings of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Debate {
    /// The last ratings of the two others on the committee.
    #[default]
    Heard,
    /// A placebo: as many ratings, and all are the analyst's own.
    Echo,
}

/// What analysts are shown of stocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Signals {
    /// Each stock's own signal and volatility.
    #[default]
    Own,
    /// A placebo: the signal of another stock, drawn at random in every period.
    Shuffled,
    /// A placebo: the volatility of another stock, drawn at random in every period; signals are those of the stock.
    ShuffledRisk,
}

/// Parameters of stock selection.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Stocks; 2 to 200.
    pub(super) stocks: u32,
    /// Stocks that a committee selects, in equal parts; at least 1, fewer than there are.
    pub(super) picks: u32,
    /// Periods, in each of which committees select anew; 1 to 1,000.
    pub(super) periods: u32,
    /// Days of a period; 2 to 250.
    pub(super) days: u32,
    /// Rounds of debate before a selection; 0 to 10. A period takes one round more.
    pub(super) talk: u32,
    /// Standard deviation of a signal's error, in units of that of what it tells of; 0 to 10.
    pub(super) noise: f64,
    /// What analysts are shown of the ratings of others.
    pub(super) debate: Debate,
    /// What analysts are shown of stocks.
    pub(super) signals: Signals,
    /// The period, from 0, from which on the shocks of prices have the opposite sign, to see whether earlier choices change. Default: none.
    pub(super) mirror_from: Option<u32>,
    /// A flaw, to see whether it is found: signals hold the return of the coming period.
    pub(super) leak: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            stocks: 15,
            picks: 5,
            periods: 12,
            days: 21,
            talk: 2,
            noise: 1.0,
            debate: Debate::Heard,
            signals: Signals::Own,
            mirror_from: None,
            leak: false,
        }
    }
}

impl Params {
    pub(super) fn check(&self, agents: u32) -> Result<(), Invalid> {
        Invalid::within(2..=200, "stocks", self.stocks)?;
        Invalid::within(1..=self.stocks - 1, "picks", self.picks)?;
        Invalid::within(1..=1_000, "periods", self.periods)?;
        Invalid::within(2..=250, "days", self.days)?;
        Invalid::within(0..=10, "talk", self.talk)?;
        Invalid::within(0.0..=10.0, "noise", self.noise)?;
        let message =
            format!("a committee has 3 analysts, and {agents} agents do not fill a whole number of committees");
        Invalid::unless(agents.is_multiple_of(3), "kind", message)
    }
}
