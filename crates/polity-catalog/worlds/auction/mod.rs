//! Sealed-bid auctions of several goods, with private values. See README.md.

mod agency;
#[cfg(test)]
mod tests;

pub use agency::{AgencyParams, Desk, Way};

use polity_kernel::ask::ResponseFormat;
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use polity_kernel::{AgentId, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Auction>(files);
}

/// The winner's payment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Its own bid.
    #[default]
    FirstPrice,
    /// The highest bid of the others, or the reserve price (Vickrey).
    SecondPrice,
}

/// Parameters of the world.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Goods sold in every round, one of each: names in lower-case letters, digits and hyphens.
    goods: Vec<String>,
    /// The winner's payment.
    rule: Rule,
    /// Bids below this are refused; 0 to 1.
    reserve: f64,
    /// An agency that bids for clients with budgets, at second price. Default: none.
    agency: Option<AgencyParams>,
}

impl Default for Params {
    fn default() -> Self {
        Params { goods: vec!["good".into()], rule: Rule::default(), reserve: 0.0, agency: None }
    }
}

/// Sealed-bid auctions.
pub struct Auction {
    params: Params,
    bidders: NumberSlot,
    budget_left: NumberSlot,
    offers: TableSlot,
}

/// A bid of an agent.
#[derive(Debug, Deserialize)]
struct Bid {
    good: String,
    price: f64,
}

/// The best bids on a good so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Best {
    /// The highest bidder; ties go to the lowest id.
    by: Option<AgentId>,
    price: f64,
    /// The highest bid of another agent.
    second: f64,
}

/// The sale of a good in the last round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sale {
    sold: bool,
    price: f64,
    /// Its value to the winner, and the highest value to anybody.
    value: f64,
    highest: f64,
}

/// Values, bids and sales.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Market {
    /// The goods' values to each agent in this round, good by good, from 0 to 1.
    values: Vec<f64>,
    best: Vec<Best>,
    sales: Vec<Sale>,
    /// Each agent's winnings minus its payments.
    earned: Vec<f64>,
    refused: u32,
    refused_last: u32,
    /// The agency's books, and what its clients told it in this round that goods are worth, good by good.
    desk: Desk,
    told: Vec<f64>,
}

impl Market {
    /// Returns the goods' values to an agent.
    fn values(&self, who: AgentId) -> &[f64] {
        let goods = self.best.len();
        self.values.get(who as usize * goods..(who as usize + 1) * goods).unwrap_or_default()
    }

    /// Returns the mean over all goods.
    fn mean(&self, of: impl Fn(&Sale) -> f64) -> f64 {
        self.sales.iter().map(of).sum::<f64>() / self.sales.len().max(1) as f64
    }
}

impl Auction {
    fn declare(
        declare: &mut DeclareWorld<Self>,
        goods: &[String],
        agency: bool,
    ) -> (NumberSlot, NumberSlot, TableSlot) {
        let bidders = declare.number_slot("bidders", "how many agents may bid");
        let doc = "1 when the winner pays the highest bid of the others, 0 when it pays its own";
        declare
            .shared_number("second-price", doc, |world, _| f64::from(u8::from(world.params.rule == Rule::SecondPrice)));
        declare.shared_number("reserve", "lowest bid that is taken", |world, _| world.params.reserve);
        let budget_left =
            declare.number_slot("budget-left", "what is left of the budget of an agency's client; else 0");
        let doc = "the goods, by name and in the order of the action's choice: what each is worth to the agent, and its price in the last round (0: not sold)";
        let offers = declare.table_slot("offers", ["value", "last-price"], doc);
        let bid = [
            ("good".to_owned(), ResponseFormat::Choice(goods.to_vec())),
            ("price".to_owned(), ResponseFormat::number(0.0, 1.0)),
        ];
        let doc = "bid a price for a good; the highest bid of a turn on each good counts";
        declare.action("bid", ActionArgument::Record(ResponseFormat::Record(bid.into())), doc);
        let doc = "what the agent has won, less what it has paid";
        declare.column("earned", doc, None, |_, market, who| market.earned[*who as usize]);
        declare.scalar("revenue", "mean price of the goods; unsold goods count as 0", |_, market| {
            market.mean(|sale| sale.price)
        });
        let doc = "value of the goods to the winners, divided by the highest possible value";
        declare.scalar("efficiency", doc, |_, market| {
            market.mean(|sale| sale.value) / market.mean(|sale| sale.highest).max(f64::MIN_POSITIVE)
        });
        declare.scalar(
            "refused",
            "bids of the round that name no good, or lie below the reserve or above 1",
            |_, market| f64::from(market.refused_last),
        );
        for (i, good) in goods.iter().enumerate() {
            let doc = format!("price of {good}; 0 if it was not sold");
            declare.scalar(format!("price-{good}"), doc, move |_, market| market.sales[i].price);
        }
        if agency {
            Auction::declare_agency(declare);
        }
        (bidders, budget_left, offers)
    }

    fn declare_agency(declare: &mut DeclareWorld<Self>) {
        let doc = "least advantage of a client over its best bidding for itself, as a share of what that gains";
        declare.scalar("least-advantage", doc, |_, market| market.desk.least_advantage());
        let doc = "1 if every client has gained more than by its best bidding for itself";
        declare.scalar("all-gain", doc, |_, market| f64::from(u8::from(market.desk.least_advantage() > 0.0)));
        declare.scalar("welfare", "what all clients have gained", |_, market| market.desk.welfare());
        let doc = "what they would have gained by bidding each for itself, with pacing";
        declare.scalar("welfare-alone", doc, |_, market| market.desk.welfare_alone());
        let doc = "what all clients have gained, as a share of an upper bound for any coordination";
        declare.scalar("welfare-of-bound", doc, |world, market| {
            let bound = world.params.agency.as_ref().map_or(0.0, |agency| market.desk.bound(agency));
            market.desk.welfare() / bound.max(f64::MIN_POSITIVE)
        });
        declare.scalar("first-gain", "what the first client has gained", |_, market| market.desk.gained(0));
    }

    /// The number of the agency's clients.
    fn clients(&self) -> usize {
        self.params.agency.as_ref().map_or(0, |agency| agency.clients() as usize)
    }

    /// Lets the agency bid for a good, against the best bids of all others.
    fn represent(&self, market: &mut Market, good: usize, best: &mut Best, draws: &mut Draws) {
        let Some(agency) = &self.params.agency else { return };
        let goods = self.params.goods.len();
        let told: Vec<f64> = market.told.iter().skip(good).step_by(goods).copied().collect();
        let outcome = market.desk.bid(agency, &told, best.price.max(self.params.reserve), draws);
        match outcome.won {
            Some((client, price)) => {
                *best = Best { by: Some(client as AgentId), price: outcome.highest, second: price }
            }
            None => best.second = best.second.max(outcome.highest),
        }
    }
}

impl World for Auction {
    const NAME: &'static str = "auction";
    const SUMMARY: &'static str = "Sealed-bid auctions of several goods with private values (first or second price)";
    type Params = Params;
    type State = Market;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let Params { goods, reserve, .. } = &params;
        Invalid::unless(
            (1..=100).contains(&goods.len()),
            "goods",
            format!("needs 1 to 100 goods, has {}", goods.len()),
        )?;
        for (i, good) in goods.iter().enumerate() {
            let fits = good.starts_with(|c: char| c.is_ascii_lowercase())
                && good.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            let key = format!("goods[{i}]");
            Invalid::unless(
                fits,
                &key,
                format!(
                    "`{good}` must begin with a lower-case letter and hold only lower-case letters, digits and hyphens"
                ),
            )?;
            Invalid::unless(!goods[..i].contains(good), &key, format!("`{good}` appears twice"))?;
        }
        Invalid::within(0.0..=1.0, "reserve", *reserve)?;
        if let Some(agency) = &params.agency {
            agency.check(setup.agents)?;
            let at = "an agency bids only at second price";
            Invalid::unless(params.rule == Rule::SecondPrice, "rule", at)?;
        }
        let (bidders, budget_left, offers) = Auction::declare(declare, goods, params.agency.is_some());
        Ok(Auction { params, bidders, budget_left, offers })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> Market {
        let (agents, goods) = (setup.agents as usize, self.params.goods.len());
        Market {
            values: (0..agents * goods).map(|_| draws.unit()).collect(),
            best: vec![Best::default(); goods],
            sales: vec![Sale::default(); goods],
            earned: vec![0.0; agents],
            refused: 0,
            refused_last: 0,
            desk: self.params.agency.as_ref().map(AgencyParams::open).unwrap_or_default(),
            told: vec![0.0; self.clients() * goods],
        }
    }

    fn observe(&self, market: &Market, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        observation.number(self.bidders, market.earned.len() as f64);
        observation.number(self.budget_left, market.desk.left(person.id as usize));
        let offers = market.values(person.id).iter().zip(&market.sales).zip(&self.params.goods);
        observation.table(self.offers, |rows| {
            for ((value, sale), good) in offers {
                rows.extend([*value, sale.price]);
                rows.text(good.clone());
            }
        });
    }

    fn apply(&self, market: &mut Market, actions: &AgentActions<'_>, _: &mut Future) {
        let who = actions.person.id;
        for i in 0..actions.acts().len() {
            let bid = actions.record::<Bid>(i).filter(|bid| (self.params.reserve..=1.0).contains(&bid.price));
            let good = bid.as_ref().and_then(|bid| self.params.goods.iter().position(|good| *good == bid.good));
            let (Some(Bid { price, .. }), Some(good)) = (bid, good) else {
                market.refused += 1;
                continue;
            };
            if (who as usize) < self.clients() {
                let told = &mut market.told[who as usize * self.params.goods.len() + good];
                *told = told.max(price);
                continue;
            }
            let best = &mut market.best[good];
            match best.by {
                Some(by) if by == who => best.price = best.price.max(price),
                Some(_) if price <= best.price => best.second = best.second.max(price),
                _ => *best = Best { by: Some(who), price, second: best.price },
            }
        }
    }

    fn end_round(&self, market: &mut Market, draws: &mut Draws) -> Option<String> {
        let goods = self.params.goods.len();
        for good in 0..goods {
            let mut best = std::mem::take(&mut market.best[good]);
            self.represent(market, good, &mut best, draws);
            let highest = market.values.iter().skip(good).step_by(goods).fold(0.0, |most: f64, value| most.max(*value));
            market.sales[good] = match best.by {
                None => Sale { highest, ..Sale::default() },
                Some(by) => {
                    let price = match self.params.rule {
                        Rule::FirstPrice => best.price,
                        Rule::SecondPrice => best.second.max(self.params.reserve),
                    };
                    let value = market.values(by).get(good).copied().unwrap_or_default();
                    market.earned[by as usize] += value - price;
                    Sale { sold: true, price, value, highest }
                }
            };
        }
        market.told.fill(0.0);
        market.values.fill_with(|| draws.unit());
        market.refused_last = std::mem::take(&mut market.refused);
        None
    }
}
