//! Bid a share of what a good is worth, on every good. See README.md.

use polity_kernel::Invalid;
use polity_kernel::ask::Want;
use polity_kernel::policy::{Binding, Fault, Person, Policy, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::sight::{ActArgument, NumberSlot, TableSlot};
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
    /// Part of its value that is bid, 0 to 1. Without it the equilibrium of risk-neutral bidders with even values: all of it at second price,
    /// and (n-1)/n of it at first price among n bidders.
    share: Option<f64>,
}

/// Bids a share of what a good is worth.
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
    const SUMMARY: &'static str = "Bid a share of what a good is worth, on every good";
    type Params = Params;
    type State = ();

    fn open(params: Params, binding: &Binding<'_>) -> Result<Self, Invalid> {
        if let Some(share) = params.share {
            Invalid::within(0.0..=1.0, "share", share)?;
        }
        let (bid, argument) = binding.act("bid")?;
        let goods = match argument {
            ActArgument::Record(Want::Record(fields)) => fields.into_iter().find_map(|(name, want)| match want {
                Want::Choice(goods) if name == "good" => Some(goods),
                _ => None,
            }),
            _ => None,
        };
        let message = format!("the bids of the world `{}` name no good of a list", binding.world);
        let goods = goods.ok_or_else(|| Invalid { key: "kind".into(), message })?;
        let (offers, [value]) = binding.table("offers", ["value"])?;
        let number = |name| binding.number(name);
        let (second_price, reserve, bidders) = (number("second-price")?, number("reserve")?, number("bidders")?);
        Ok(Bidder { share: params.share, second_price, reserve, bidders, offers, value, bid, goods })
    }

    fn born(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let sight = turn.sight;
        let n = sight.number(self.bidders);
        let equilibrium = if sight.number(self.second_price) > 0.5 { 1.0 } else { (n - 1.0) / n };
        let share = self.share.unwrap_or(equilibrium);
        for (good, offer) in self.goods.iter().zip(sight.table(self.offers)) {
            let price = share * offer[self.value];
            if price >= sight.number(self.reserve) {
                turn.act_record(self.bid, &Bid { good, price })?;
            }
        }
        Ok(())
    }
}
