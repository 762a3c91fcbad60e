//! Parameters of the market.

use polity_kernel::Invalid;
use schemars::JsonSchema;
use serde::Deserialize;

/// What traders are shown of the posts of those whom they hear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Feed {
    /// Their mean.
    #[default]
    Neighbours,
    /// A placebo: their mean with a sign drawn by lot for each reader and session. As large, but without information.
    SignsByLot,
    /// Nothing: 0.
    Blank,
}

/// Parameters of the market.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// First price, and first fundamental value, of a share; 1 to 10,000.
    pub(super) price: f64,
    /// Money of each trader at the start.
    pub(super) cash: f64,
    /// Shares of each trader at the start.
    pub(super) shares: u32,
    /// Standard deviation of the change of the logarithm of the value in a session; 0 to 1.
    pub(super) news: f64,
    /// Standard deviation, over traders, of the error in the logarithm of the value that each of them believes in; 0 to 1.
    pub(super) dispersion: f64,
    /// Whether traders see the tone of the day, a number from the standard normal distribution that has nothing to do with the value.
    pub(super) rumours: bool,
    /// What traders are shown of the posts of those whom they hear.
    pub(super) feed: Feed,
}

impl Default for Params {
    fn default() -> Self {
        let feed = Feed::default();
        Params { price: 100.0, cash: 100_000.0, shares: 1_000, news: 0.005, dispersion: 0.1, rumours: true, feed }
    }
}

impl Params {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        Invalid::within(1.0..=10_000.0, "price", self.price)?;
        Invalid::within(0.0..=1e9, "cash", self.cash)?;
        Invalid::within(0..=1_000_000, "shares", self.shares)?;
        Invalid::within(0.0..=1.0, "news", self.news)?;
        Invalid::within(0.0..=1.0, "dispersion", self.dispersion)
    }
}
