//! Rate stocks by one's own sources, then debate. See README.md.

use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Analyst>(files);
}

/// Parameters of analysts.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Risk aversion: this part of the standard deviation of a period's return is taken from what a stock is expected to earn; 0 to 5.
    aversion: f64,
    /// Weight of the mean of the others' ratings in a round of debate; 0 to 1.
    yields: f64,
    /// The expected return at which a rating is 1; above 0, up to 1.
    scale: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { aversion: 0.0, yields: 0.5, scale: 0.1 }
    }
}

/// Rates stocks.
pub struct Analyst {
    params: Params,
    days: NumberSlot,
    noise: NumberSlot,
    phase: NumberSlot,
    stocks: TableSlot,
    columns: [usize; 5],
    /// The action of the first stock; the others follow.
    rate: u16,
}

impl Policy for Analyst {
    const NAME: &'static str = "analyst";
    const SUMMARY: &'static str =
        "Rate stocks by one's own sources and tolerance of risk, then yield to others in debate";
    type Params = Params;
    type State = ();

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0.0..=5.0, "aversion", params.aversion)?;
        Invalid::within(0.0..=1.0, "yields", params.yields)?;
        let fits = params.scale > 0.0 && params.scale <= 1.0;
        Invalid::unless(fits, "scale", format!("must be above 0, up to 1, is {}", params.scale))?;
        let (stocks, columns) = setup.table("stocks", ["signal", "volatility", "own", "first", "second"])?;
        Ok(Analyst {
            params,
            days: setup.number("days")?,
            noise: setup.number("noise")?,
            phase: setup.number("phase")?,
            stocks,
            columns,
            rate: setup.act("rate-stock-1")?.0,
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let Params { aversion, yields, scale } = self.params;
        let seen = turn.observation;
        let (days, noise) = (seen.number(self.days), seen.number(self.noise));
        let [signal, volatility, own, first, second] = self.columns;
        let rating = |row: &[f64]| {
            if seen.number(self.phase) > 0.0 {
                return row[own] + yields * (0.5 * (row[first] + row[second]) - row[own]);
            }
            // The mean of what it tells of, given a signal whose error has `noise` times its spread.
            let expected = row[signal] / (1.0 + noise * noise);
            (expected - aversion * row[volatility] * days.sqrt()) / scale
        };
        let ratings: Vec<f64> = seen.table(self.stocks).map(rating).collect();
        for (action, rating) in (self.rate..).zip(ratings) {
            turn.act(action, rating.clamp(-1.0, 1.0));
        }
        Ok(())
    }
}
