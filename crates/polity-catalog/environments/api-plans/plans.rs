//! Interfaces, the cheapest plan of a task, and a lower bound of its cost.

use polity_kernel::rng::Draws;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Most kinds that an interface needs.
const MOST_INPUTS: u64 = 3;
/// The highest cost of a call.
const MOST_COST: u64 = 9;

/// An interface: from all its inputs it makes its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    pub name: String,
    /// The kinds that it needs, a bit each.
    pub inputs: u32,
    pub output: u32,
    pub cost: u32,
}

impl Api {
    /// Whether a call is possible and brings something new.
    pub fn applies(&self, have: u32) -> bool {
        have & self.inputs == self.inputs && have & (1 << self.output) == 0
    }

    pub fn doc(&self) -> String {
        let inputs: Vec<String> = (0..u32::BITS).filter(|k| self.inputs & (1 << k) != 0).map(kind).collect();
        format!("needs {}; gives {}; costs {}", inputs.join(" and "), kind(self.output), self.cost)
    }
}

/// The name of a kind.
pub fn kind(kind: u32) -> String {
    char::from_u32('A' as u32 + kind).unwrap_or('?').to_string()
}

/// All interfaces.
#[derive(Clone, Debug)]
pub struct Interfaces {
    pub kinds: u32,
    pub apis: Vec<Api>,
}

impl Interfaces {
    pub fn drawn(kinds: u32, apis: u32, draws: &mut Draws) -> Self {
        let api = |i: u32| {
            let output = draws.below(u64::from(kinds)) as u32;
            let mut inputs = 0;
            for _ in 0..=draws.below(MOST_INPUTS) {
                let input = draws.below(u64::from(kinds)) as u32;
                if input != output {
                    inputs |= 1 << input;
                }
            }
            if inputs == 0 {
                inputs = 1 << ((output + 1) % kinds);
            }
            let cost = 1 + draws.below(MOST_COST) as u32;
            Api { name: format!("api_{:02}", i + 1), inputs, output, cost }
        };
        Interfaces { kinds, apis: (0..apis).map(api).collect() }
    }

    /// The least cost of reaching the goal without broken interfaces, with a plan of that cost; `None` if there is none (Dijkstra's
    /// algorithm over sets of kinds).
    pub fn cheapest(&self, have: u32, goal: u32, broken: u64) -> Option<(u32, Vec<usize>)> {
        let mut best: BTreeMap<u32, u32> = BTreeMap::from([(have, 0)]);
        let mut from: BTreeMap<u32, (u32, usize)> = BTreeMap::new();
        let mut open = BinaryHeap::from([Reverse((0, have))]);
        while let Some(Reverse((cost, set))) = open.pop() {
            if set & (1 << goal) != 0 {
                let mut plan = Vec::new();
                let mut at = set;
                while let Some((before, api)) = from.get(&at) {
                    plan.push(*api);
                    at = *before;
                }
                plan.reverse();
                return Some((cost, plan));
            }
            if best.get(&set).is_some_and(|known| *known < cost) {
                continue;
            }
            for (i, api) in self.apis.iter().enumerate().filter(|(i, api)| broken & (1 << i) == 0 && api.applies(set)) {
                let (next, cost) = (set | 1 << api.output, cost + api.cost);
                if best.get(&next).is_none_or(|known| cost < *known) {
                    best.insert(next, cost);
                    from.insert(next, (set, i));
                    open.push(Reverse((cost, next)));
                }
            }
        }
        None
    }

    /// A lower bound of that cost: the heuristic h_max (Bonet and Geffner, "Planning as heuristic search", 2001), for which a call costs
    /// as much as the dearest of its inputs and its own cost. `None`: the goal cannot be reached.
    pub fn bound(&self, have: u32, goal: u32, broken: u64) -> Option<u32> {
        let mut costs: Vec<Option<u32>> = (0..self.kinds).map(|k| (have & (1 << k) != 0).then_some(0)).collect();
        loop {
            let mut changed = false;
            for (_, api) in self.apis.iter().enumerate().filter(|(i, _)| broken & (1 << i) == 0) {
                let inputs = (0..self.kinds).filter(|k| api.inputs & (1 << k) != 0);
                let dearest = inputs.map(|k| costs[k as usize]).try_fold(0, |dearest, cost| Some(dearest.max(cost?)));
                let Some(cost) = dearest.map(|dearest| dearest + api.cost) else { continue };
                let known = &mut costs[api.output as usize];
                if known.is_none_or(|known| cost < known) {
                    *known = Some(cost);
                    changed = true;
                }
            }
            if !changed {
                return costs.get(goal as usize).copied().flatten();
            }
        }
    }
}
