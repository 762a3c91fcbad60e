//! Sealed-bid auctions of several goods, each with a private value for everybody. See README.md.

use polity_kernel::ask::Want;
use polity_kernel::declare::DeclareWorld;
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::sight::{ActArgument, NumberSlot, TableSlot};
use polity_kernel::world::{Deeds, Future, Setup, SightRow, World};
use polity_kernel::{AgentId, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Auction>(files);
}

/// What the winner pays.
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
    /// What is sold in every round, one of each: names in small letters, digits and hyphens.
    goods: Vec<String>,
    /// What the winner pays.
    rule: Rule,
    /// Bids below this are refused; 0 to 1.
    reserve: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { goods: vec!["good".into()], rule: Rule::default(), reserve: 0.0 }
    }
}

/// Sealed-bid auctions.
pub struct Auction {
    params: Params,
    bidders: NumberSlot,
    offers: TableSlot,
}

/// A bid, as agents write it.
#[derive(Debug, Deserialize)]
struct Bid {
    good: String,
    price: f64,
}

/// The best bids on a good so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Best {
    /// Who bids most; of equal bids the one with the lowest id.
    by: Option<AgentId>,
    price: f64,
    /// The highest bid of somebody else.
    second: f64,
}

/// How a good was sold in the last round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sale {
    sold: bool,
    price: f64,
    /// What it was worth to the winner, and at most to anybody.
    value: f64,
    highest: f64,
}

/// Values, bids and sales.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Market {
    /// What the goods are worth to each agent in this round, good by good, from 0 to 1.
    values: Vec<f64>,
    best: Vec<Best>,
    sales: Vec<Sale>,
    /// What each agent has won, less what it has paid.
    earned: Vec<f64>,
    refused: u32,
    refused_last: u32,
}

impl Market {
    /// What the goods are worth to an agent.
    fn values(&self, who: AgentId) -> &[f64] {
        let goods = self.best.len();
        self.values.get(who as usize * goods..(who as usize + 1) * goods).unwrap_or_default()
    }

    /// The mean over all goods.
    fn mean(&self, of: impl Fn(&Sale) -> f64) -> f64 {
        self.sales.iter().map(of).sum::<f64>() / self.sales.len().max(1) as f64
    }
}

impl Auction {
    fn declare(declare: &mut DeclareWorld<Self>, goods: &[String]) -> (NumberSlot, TableSlot) {
        let bidders = declare.number_slot("bidders", "how many agents may bid");
        let doc = "1 when the winner pays the highest bid of the others, 0 when it pays its own";
        declare
            .shared_number("second-price", doc, |world, _| f64::from(u8::from(world.params.rule == Rule::SecondPrice)));
        declare.shared_number("reserve", "lowest bid that is taken", |world, _| world.params.reserve);
        let doc = "the goods, by name and in the order of the action's choice: what each is worth to the agent, and its price in the last round (0: not sold)";
        let offers = declare.table_slot("offers", ["value", "last-price"], doc);
        let bid = [("good".to_owned(), Want::Choice(goods.to_vec())), ("price".to_owned(), Want::number(0.0, 1.0))];
        let doc = "bid a price for a good; the highest bid of a turn on each good counts";
        declare.action("bid", ActArgument::Record(Want::Record(bid.into())), doc);
        let doc = "what the agent has won, less what it has paid";
        declare.column("earned", doc, None, |_, market, who| market.earned[*who as usize]);
        declare.scalar("revenue", "mean price of the goods; 0 for those not sold", |_, market| {
            market.mean(|sale| sale.price)
        });
        let doc = "what the winners get out of the goods, divided by the most that anybody could have";
        declare.scalar("efficiency", doc, |_, market| {
            market.mean(|sale| sale.value) / market.mean(|sale| sale.highest).max(f64::MIN_POSITIVE)
        });
        declare.scalar("refused", "bids of the round on no good, below the reserve or above 1", |_, market| {
            f64::from(market.refused_last)
        });
        for (i, good) in goods.iter().enumerate() {
            let doc = format!("price of {good}; 0 if it was not sold");
            declare.scalar(format!("price-{good}"), doc, move |_, market| market.sales[i].price);
        }
        (bidders, offers)
    }
}

impl World for Auction {
    const NAME: &'static str = "auction";
    const SUMMARY: &'static str = "Sealed-bid auctions of several goods with private values (first or second price)";
    type Params = Params;
    type State = Market;

    fn open(params: Params, _: &Setup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let Params { goods, reserve, .. } = &params;
        Invalid::unless((1..=100).contains(&goods.len()), "goods", format!("1 to 100 goods, not {}", goods.len()))?;
        for (i, good) in goods.iter().enumerate() {
            let fits = good.starts_with(|c: char| c.is_ascii_lowercase())
                && good.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            let key = format!("goods[{i}]");
            Invalid::unless(
                fits,
                &key,
                format!("`{good}` must begin with a small letter and hold only those, digits and hyphens"),
            )?;
            Invalid::unless(!goods[..i].contains(good), &key, format!("`{good}` stands here twice"))?;
        }
        Invalid::within(0.0..=1.0, "reserve", *reserve)?;
        let (bidders, offers) = Auction::declare(declare, goods);
        Ok(Auction { params, bidders, offers })
    }

    fn begin(&self, setup: &Setup<'_>, draws: &mut Draws) -> Market {
        let (agents, goods) = (setup.agents as usize, self.params.goods.len());
        Market {
            values: (0..agents * goods).map(|_| draws.unit()).collect(),
            best: vec![Best::default(); goods],
            sales: vec![Sale::default(); goods],
            earned: vec![0.0; agents],
            refused: 0,
            refused_last: 0,
        }
    }

    fn observe(&self, market: &Market, person: Person<'_>, sight: &mut SightRow<'_>) {
        sight.number(self.bidders, market.earned.len() as f64);
        let offers = market.values(person.id).iter().zip(&market.sales).zip(&self.params.goods);
        sight.table(self.offers, |rows| {
            for ((value, sale), good) in offers {
                rows.extend([*value, sale.price]);
                rows.text(good.clone());
            }
        });
    }

    fn apply(&self, market: &mut Market, deeds: &Deeds<'_>, _: &mut Future) {
        let who = deeds.person.id;
        for i in 0..deeds.acts().len() {
            let bid = deeds.record::<Bid>(i).filter(|bid| (self.params.reserve..=1.0).contains(&bid.price));
            let good = bid.as_ref().and_then(|bid| self.params.goods.iter().position(|good| *good == bid.good));
            let (Some(Bid { price, .. }), Some(good)) = (bid, good) else {
                market.refused += 1;
                continue;
            };
            let best = &mut market.best[good];
            match best.by {
                Some(by) if by == who => best.price = best.price.max(price),
                Some(_) if price <= best.price => best.second = best.second.max(price),
                _ => *best = Best { by: Some(who), price, second: best.price },
            }
        }
    }

    fn settle(&self, market: &mut Market, draws: &mut Draws) -> Option<String> {
        let goods = self.params.goods.len();
        for good in 0..goods {
            let best = std::mem::take(&mut market.best[good]);
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
        market.values.fill_with(|| draws.unit());
        market.refused_last = std::mem::take(&mut market.refused);
        None
    }
}
