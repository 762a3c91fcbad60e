//! The order book of a session and its call auction: one price for all, at which most is traded.

use polity_kernel::AgentId;
use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// A limit order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub(super) who: AgentId,
    pub(super) buys: bool,
    /// The most that a buyer pays for a share, the least that a seller takes, in cents.
    pub(super) limit: i64,
    /// Shares; above 0.
    pub(super) quantity: i64,
}

/// The result of a call auction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clearing {
    /// The price of all trades, in cents; the price before if nothing is traded.
    pub price: i64,
    /// Shares that change hands.
    pub volume: i64,
    /// What is filled of which orders: place in the list, shares.
    pub fills: Vec<(usize, i64)>,
}

/// Clears orders at the price at which most is traded. Of several such prices it is the one that leaves the smallest difference between the shares that are asked for and offered at it, and of
/// several of these the one nearest to the price before. On the side with too many shares better limits go first, and equal ones by lot.
pub(super) fn clear(orders: &[Order], before: i64, draws: &mut Draws) -> Clearing {
    let mut places: Vec<usize> = (0..orders.len()).collect();
    draws.shuffle(&mut places);
    let (mut buys, mut sells): (Vec<usize>, Vec<usize>) = places.into_iter().partition(|place| orders[*place].buys);
    buys.sort_by_key(|place| Reverse(orders[*place].limit));
    sells.sort_by_key(|place| orders[*place].limit);
    let mut bought = vec![0; buys.len()];
    let mut sold = vec![0; sells.len()];
    let (mut i, mut j, mut volume, mut range) = (0, 0, 0, None);
    while let (Some(buy), Some(sell)) = (buys.get(i), sells.get(j)) {
        let (buy, sell) = (&orders[*buy], &orders[*sell]);
        if buy.limit < sell.limit {
            break;
        }
        // At each price between the limits of the last pair as much is traded as at any.
        range = Some((sell.limit, buy.limit));
        let both = (buy.quantity - bought[i]).min(sell.quantity - sold[j]);
        bought[i] += both;
        sold[j] += both;
        volume += both;
        i += usize::from(bought[i] == buy.quantity);
        j += usize::from(sold[j] == sell.quantity);
    }
    let price = range.map_or(before, |(low, high)| balanced(orders, low, high, before));
    let both = buys.into_iter().zip(bought).chain(sells.into_iter().zip(sold));
    Clearing { price, volume, fills: both.filter(|(_, filled)| *filled > 0).collect() }
}

/// Returns the price from `low` to `high` with the smallest difference of demand and supply; of several, the one nearest to the price before.
fn balanced(orders: &[Order], low: i64, high: i64, before: i64) -> i64 {
    // The difference at the lowest price, and the prices from which on it is smaller.
    let mut difference = 0;
    let mut falls: Vec<(i64, i64)> = Vec::new();
    for order in orders {
        if order.buys && order.limit >= low {
            difference += order.quantity;
            if order.limit < high {
                falls.push((order.limit + 1, order.quantity));
            }
        } else if !order.buys && order.limit <= low {
            difference -= order.quantity;
        } else if !order.buys && order.limit <= high {
            falls.push((order.limit, order.quantity));
        }
    }
    falls.sort_unstable();
    let (mut best, mut from) = ((i64::MAX, i64::MAX, before), low);
    let mut look = |difference: i64, from: i64, to: i64| {
        let price = before.clamp(from, to);
        best = best.min((difference.abs(), (price - before).abs(), price));
    };
    for (at, quantity) in falls {
        if at > from {
            look(difference, from, at - 1);
            from = at;
        }
        difference -= quantity;
    }
    look(difference, from, high);
    best.2
}
