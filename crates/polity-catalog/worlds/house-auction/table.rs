//! A table: bidders who compete for the houses of a season, one after the other, in ascending auctions.

use super::params::{FEATURES, Params};
use polity_kernel::rng::Draws;
use polity_learn::linear::dot;
use serde::{Deserialize, Serialize};

/// The most sales that bidders are shown.
const MEMORY: usize = 20;

/// A house, and what it is worth to each bidder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct House {
    pub(super) features: [f64; FEATURES],
    pub(super) worth: Vec<f64>,
}

/// A sale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Sale {
    pub(super) features: [f64; FEATURES],
    /// The buyer's seat; `None` if nobody paid the reserve price.
    pub(super) buyer: Option<u32>,
    pub(super) price: f64,
    /// By seat: the price that it did not pay any more. `None`: it bought, or took no part.
    pub(super) left: Vec<Option<f64>>,
}

/// The state of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub(super) season: u32,
    /// The house that is sold now, from 0.
    pub(super) house: u32,
    pub(super) price: f64,
    /// Whether the price has not risen yet.
    pub(super) opens: bool,
    /// By seat: whether it is in this auction, says that it stays, has bought in this season; what it left at.
    pub(super) within: Vec<bool>,
    pub(super) stays: Vec<bool>,
    pub(super) bought: Vec<bool>,
    left: Vec<Option<f64>>,
    pub(super) houses: Vec<House>,
    /// The last sales, newest last.
    pub(super) sales: Vec<Sale>,
}

impl Table {
    pub(super) fn new(params: &Params, personas: &[u32], draws: &mut Draws) -> Self {
        let seats = params.seats as usize;
        let mut table = Table {
            season: 0,
            house: 0,
            price: params.reserve,
            opens: true,
            within: vec![true; seats],
            stays: vec![false; seats],
            bought: vec![false; seats],
            left: vec![None; seats],
            houses: Vec::new(),
            sales: Vec::new(),
        };
        table.offer(params, personas, draws);
        table
    }

    /// Draws the houses of a season.
    fn offer(&mut self, params: &Params, personas: &[u32], draws: &mut Draws) {
        let mut house = || {
            let features: [f64; FEATURES] = std::array::from_fn(|_| draws.unit());
            let worth = |persona: &u32| {
                let weights = &params.personas[*persona as usize].weights;
                dot(weights, &features) + params.taste * draws.normal()
            };
            let worth = personas.iter().map(worth).collect();
            House { features, worth }
        };
        self.houses = (0..params.houses).map(|_| house()).collect();
    }

    pub(super) fn is_over(&self, params: &Params) -> bool {
        self.season >= params.seasons
    }

    /// Ends a round. Returns who bought the house that was sold, and for how much less than it is worth.
    pub(super) fn call(&mut self, params: &Params, personas: &[u32], draws: &mut Draws) -> Option<(usize, f64)> {
        let before = self.within.clone();
        for (seat, within) in self.within.iter_mut().enumerate() {
            let stays = std::mem::take(&mut self.stays[seat]);
            let affords = self.price <= params.personas[personas[seat] as usize].budget;
            if *within && !(stays && affords) {
                *within = false;
                self.left[seat] = Some(self.price);
            }
        }
        let stay: Vec<usize> = (0..before.len()).filter(|seat| self.within[*seat]).collect();
        let sold = match stay.as_slice() {
            [_, _, ..] => {
                self.price += params.step;
                self.opens = false;
                return None;
            }
            [buyer] => Some((*buyer, self.price)),
            [] if self.opens => None,
            // All who were left gave up at once: one of them has the house at the last price that they agreed to.
            [] => {
                let last: Vec<usize> = (0..before.len()).filter(|seat| before[*seat]).collect();
                let lot = draws.below(last.len() as u64) as usize;
                self.left[last[lot]] = None;
                Some((last[lot], self.price - params.step))
            }
        };
        let house = &self.houses[self.house as usize];
        let gain = sold.map(|(buyer, price)| (buyer, house.worth[buyer] - price));
        let (buyer, price) = (sold.map(|(buyer, _)| buyer as u32), sold.map_or(0.0, |(_, price)| price));
        let seats = before.len();
        let left = std::mem::replace(&mut self.left, vec![None; seats]);
        if self.sales.len() == MEMORY {
            self.sales.remove(0);
        }
        self.sales.push(Sale { features: house.features, buyer, price, left });
        if let Some((buyer, _)) = sold {
            self.bought[buyer] = true;
        }
        self.house += 1;
        if self.house == params.houses || self.bought.iter().all(|bought| *bought) {
            (self.season, self.house) = (self.season + 1, 0);
            self.bought.fill(false);
            self.offer(params, personas, draws);
        }
        self.within = self.bought.iter().map(|bought| !bought).collect();
        (self.price, self.opens) = (params.reserve, true);
        gain
    }
}
