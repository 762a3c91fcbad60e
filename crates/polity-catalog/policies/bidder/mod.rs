//! Bid a share of a good's value, on every good. See README.md.

use polity_kernel::Invalid;
use polity_kernel::ask::ResponseFormat;
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Bidder>(files);
}

/// Parameters of bidding.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Share of its value to bid, 0 to 1. By default, the equilibrium of risk-neutral bidders with uniform values: all of it at second
    /// price, and (n-1)/n of it at first price among n bidders.
    share: Option<f64>,
}

/// Bids a share of a good's value.
pub struct Bidder {
    share: Option<f64>,
    second_price: NumberSlot,
    reserve: NumberSlot,
    bidders: NumberSlot,
    offers: TableSlot,
    value: usize,
    bid: u16,
    goods: Vec<String>,
}

#[derive(Serialize)]
struct Bid<'a> {
    good: &'a str,
    price: f64,
}

impl Policy for Bidder {
    const NAME: &'static str = "bidder";
    const SUMMARY: &'static str = "For every good, bid a share of what it is worth";
    type Params = Params;
    type State = ();

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        if let Some(share) = params.share {
            Invalid::within(0.0..=1.0, "share", share)?;
        }
        let (bid, argument) = setup.act("bid")?;
        let goods = match argument {
            ActionArgument::Record(ResponseFormat::Record(fields)) => {
                fields.into_iter().find_map(|(name, response_format)| match response_format {
                    ResponseFormat::Choice(goods) if name == "good" => Some(goods),
                    _ => None,
                })
            }
            _ => None,
        };
        let message = format!("the bids of the world `{}` do not name a good from a list", setup.world);
        let goods = goods.ok_or_else(|| Invalid { key: "kind".into(), message })?;
        let (offers, [value]) = setup.table("offers", ["value"])?;
        let number = |name| setup.number(name);
        let (second_price, reserve, bidders) = (number("second-price")?, number("reserve")?, number("bidders")?);
        Ok(Bidder { share: params.share, second_price, reserve, bidders, offers, value, bid, goods })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let observation = turn.observation;
        let n = observation.number(self.bidders);
        let equilibrium = if observation.number(self.second_price) > 0.5 { 1.0 } else { (n - 1.0) / n };
        let share = self.share.unwrap_or(equilibrium);
        for (good, offer) in self.goods.iter().zip(observation.table(self.offers)) {
            let price = share * offer[self.value];
            if price >= observation.number(self.reserve) {
                turn.act_record(self.bid, &Bid { good, price })?;
            }
        }
        Ok(())
    }
}
