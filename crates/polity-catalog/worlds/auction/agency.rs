//! An agency that bids for clients with budgets in second-price auctions.

use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use polity_learn::pacing::Pacer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fixed multipliers with which the best independent bidding of a client is found in hindsight.
const MULTIPLIERS: usize = 24;
/// The step between them.
const MULTIPLIER: f64 = 0.125;

/// How an agency bids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// For every client, as if each bid for itself.
    Independent,
    /// Only for the client whose paced value is highest.
    #[default]
    Coordinated,
    /// Only for the client who would bid highest if each bid for itself; its bid is paced by what it really pays.
    Hybrid,
    /// A placebo: only for a client that is drawn by lot.
    ByLot,
}

/// An agency and its clients.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgencyParams {
    /// Clients: the agents with the lowest ids. Their bids are what they tell the agency that a good is worth.
    clients: u32,
    /// How it bids.
    #[serde(default)]
    way: Way,
    /// What a client may spend in an auction on average, by client; the list is repeated if there are more.
    budgets: Vec<f64>,
    /// Auctions that budgets are for.
    auctions: u32,
    /// By how much pacing follows what was spent; above 0, up to 1.
    #[serde(default = "step")]
    step: f64,
}

fn step() -> f64 {
    0.05
}

impl AgencyParams {
    pub(super) fn check(&self, agents: u32) -> Result<(), Invalid> {
        let most = agents.min(1_000);
        let fits = (1..=most).contains(&self.clients);
        Invalid::unless(fits, "agency.clients", format!("must be 1 to {most} here, is {}", self.clients))?;
        Invalid::unless(!self.budgets.is_empty(), "agency.budgets", "needs at least one budget")?;
        for (i, budget) in self.budgets.iter().enumerate() {
            let fits = *budget > 0.0 && *budget <= 1.0;
            Invalid::unless(fits, &format!("agency.budgets[{i}]"), format!("must be above 0, up to 1, is {budget}"))?;
        }
        Invalid::unless(self.auctions > 0, "agency.auctions", "must be at least 1")?;
        let fits = self.step > 0.0 && self.step <= 1.0;
        Invalid::unless(fits, "agency.step", format!("must be above 0, up to 1, is {}", self.step))
    }

    pub(super) fn clients(&self) -> u32 {
        self.clients
    }

    fn budget(&self, client: usize) -> f64 {
        self.budgets.get(client % self.budgets.len().max(1)).copied().unwrap_or_default()
    }

    pub(super) fn open(&self) -> Desk {
        let pacer = |client: usize| Pacer::new(self.budget(client), self.auctions, self.step).ok();
        let client = |client: usize| Some(Client::new(pacer(client)?, self.budget(client) * f64::from(self.auctions)));
        Desk { clients: (0..self.clients as usize).filter_map(client).collect(), ..Desk::default() }
    }
}

/// What a bidder has gained, and what is left of its budget, with a fixed multiplier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Fixed {
    gained: f64,
    left: f64,
}

/// A client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Client {
    /// What the agency really does for it.
    pacer: Pacer,
    gained: f64,
    /// What would have happened if all clients had bid for themselves, with pacing.
    alone: Pacer,
    gained_alone: f64,
    /// The same with fixed multipliers of this client.
    fixed: Vec<Fixed>,
}

impl Client {
    fn new(pacer: Pacer, budget: f64) -> Self {
        let fixed = vec![Fixed { gained: 0.0, left: budget }; MULTIPLIERS];
        Client { pacer, gained: 0.0, alone: pacer, gained_alone: 0.0, fixed }
    }

    /// The most that it would have gained by bidding for itself.
    fn best_alone(&self) -> f64 {
        self.fixed.iter().fold(self.gained_alone, |best, fixed| best.max(fixed.gained))
    }
}

/// The agency's books.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Desk {
    clients: Vec<Client>,
    /// By fixed multiplier: what the coalition would gain if it paid 1 plus the multiplier times each price.
    bound: Vec<f64>,
}

/// The highest and the second highest of some bids: who, how much; how much.
fn top(bids: &[f64]) -> (Option<usize>, f64, f64) {
    let (mut who, mut first, mut second) = (None, 0.0, 0.0);
    for (client, bid) in bids.iter().enumerate() {
        if *bid > first {
            (who, second, first) = (Some(client), first, *bid);
        } else if *bid > second {
            second = *bid;
        }
    }
    (who, first, second)
}

/// The result of an auction for the agency.
pub(super) struct Outcome {
    /// The client who wins, and what it pays.
    pub won: Option<(usize, f64)>,
    /// The highest bid that the agency made.
    pub highest: f64,
}

impl Desk {
    /// Bids in one auction with what clients say that the good is worth, against the highest bid of all others or the reserve price.
    pub(super) fn bid(&mut self, params: &AgencyParams, values: &[f64], outside: f64, draws: &mut Draws) -> Outcome {
        let alone: Vec<f64> = self.clients.iter().zip(values).map(|(client, value)| client.alone.bid(*value)).collect();
        let paced: Vec<f64> = self.clients.iter().zip(values).map(|(client, value)| client.pacer.bid(*value)).collect();
        let (first_alone, highest_alone, second_alone) = top(&alone);
        let (first, highest, second) = top(&paced);
        let (elected, rival) = match params.way {
            Way::Independent => (first, second),
            Way::Coordinated => (first, 0.0),
            Way::Hybrid => (first_alone, 0.0),
            Way::ByLot => (Some(draws.below(values.len() as u64) as usize), 0.0),
        };
        let bid = elected.map_or(0.0, |client| paced[client]);
        let price = outside.max(rival);
        let won = elected.filter(|_| bid > 0.0 && bid >= outside).map(|client| (client, price));
        for (i, (client, value)) in self.clients.iter_mut().zip(values).enumerate() {
            let paid = won.filter(|(winner, _)| *winner == i).map(|(_, price)| price);
            client.gained += paid.map_or(0.0, |paid| value - paid);
            client.pacer.pay(paid.unwrap_or_default());
            let rivals = if first_alone == Some(i) { second_alone } else { highest_alone };
            let price = rivals.max(outside);
            for (place, fixed) in client.fixed.iter_mut().enumerate() {
                let bid = (value / (1.0 + MULTIPLIER * place as f64)).min(fixed.left);
                if bid > 0.0 && bid >= price {
                    fixed.gained += value - price;
                    fixed.left -= price;
                }
            }
            let wins = first_alone == Some(i) && highest_alone >= outside;
            client.gained_alone += if wins { value - price } else { 0.0 };
            client.alone.pay(if wins { price } else { 0.0 });
        }
        let best = values.iter().copied().fold(0.0, f64::max);
        self.bound.resize(MULTIPLIERS, 0.0);
        for (place, sum) in self.bound.iter_mut().enumerate() {
            *sum += (best - (1.0 + MULTIPLIER * place as f64) * outside).max(0.0);
        }
        Outcome { won, highest: if params.way == Way::Independent { highest } else { bid } }
    }

    /// What is left of a client's budget.
    pub(super) fn left(&self, client: usize) -> f64 {
        self.clients.get(client).map_or(0.0, |client| client.pacer.left())
    }

    /// What a client has gained.
    pub(super) fn gained(&self, client: usize) -> f64 {
        self.clients.get(client).map_or(0.0, |client| client.gained)
    }

    /// The least, over clients, by which what it gained exceeds its best bidding for itself, as a share of the latter.
    pub(super) fn least_advantage(&self) -> f64 {
        let advantage = |client: &Client| client.gained / client.best_alone().max(1e-12) - 1.0;
        self.clients.iter().map(advantage).fold(f64::INFINITY, f64::min).min(1e6)
    }

    /// What all clients have gained.
    pub(super) fn welfare(&self) -> f64 {
        self.clients.iter().map(|client| client.gained).sum()
    }

    /// What they would have gained by bidding each for itself, with pacing.
    pub(super) fn welfare_alone(&self) -> f64 {
        self.clients.iter().map(|client| client.gained_alone).sum()
    }

    /// An upper bound of what any coordination could have gained: the dual of the problem with one budget for all.
    pub(super) fn bound(&self, params: &AgencyParams) -> f64 {
        let budget =
            (0..self.clients.len()).map(|client| params.budget(client)).sum::<f64>() * f64::from(params.auctions);
        let priced = self.bound.iter().enumerate().map(|(place, sum)| sum + MULTIPLIER * place as f64 * budget);
        priced.fold(f64::INFINITY, f64::min)
    }
}
