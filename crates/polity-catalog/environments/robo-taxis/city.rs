//! What happens on a day: requests, trips of empty vehicles, arrivals, and who is served.

use super::flow;
use super::{Params, Trips};
use crate::grid::{Cell, EAST, NORTH, SOUTH, Size, WEST};
use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::f64::consts::PI;

/// The steps after the next one whose requests are shown together.
const LATER: usize = 3;
/// How busy regions are on a day: the least and the most.
const BUSY: (f64, f64) = (0.5, 1.5);

/// The requests of a step: from one region to another there are `from` of the one times `to` of the other, in the mean.
struct Hour {
    from: Vec<f64>,
    to: Vec<f64>,
    /// All from a region.
    all: Vec<f64>,
}

/// A city.
pub(super) struct City {
    params: Params,
    size: Size,
    cells: Vec<Cell>,
    hours: Vec<Hour>,
}

/// Sums of a day so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    pub(super) requests: u64,
    pub(super) served: u64,
    pub(super) fares: u64,
    /// Steps of driving without a passenger.
    pub(super) empty: u64,
}

/// A day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Day {
    pub(super) step: u32,
    /// The factor of each region's requests on this day.
    pub(super) busy: Vec<f64>,
    /// Vehicles that wait in each region.
    pub(super) waiting: Vec<u32>,
    /// Vehicles that arrive in each region in the next step, in the one after it, and so on.
    pub(super) coming: Vec<Vec<u32>>,
    /// Whose view each region sees.
    pub(super) shown: Vec<u8>,
    pub(super) sums: Sums,
}

impl Day {
    /// Lets a step pass, after which vehicles arrive.
    fn arrive(&mut self) {
        self.coming.rotate_left(1);
        if let Some(arrivals) = self.coming.last_mut() {
            self.waiting.iter_mut().zip(&*arrivals).for_each(|(waiting, n)| *waiting += n);
            arrivals.fill(0);
        }
    }
}

/// Returns the requests of each step of a day, without the factors of regions. They are in proportion to e to the power of the tide, times how far
/// a trip leads away from the middle (-1 to 1), times a sway that goes from -1 in the morning to 1 in the evening.
fn hours(params: &Params, cells: &[Cell]) -> Vec<Hour> {
    let (right, down) = (i32::from(params.width) - 1, i32::from(params.height) - 1);
    let off = |cell: &Cell| (2 * i32::from(cell.x) - right).abs() + (2 * i32::from(cell.y) - down).abs();
    let lean: Vec<f64> = cells.iter().map(|cell| f64::from(off(cell)) / f64::from(right + down)).collect();
    let hour = |step: u32| {
        let sway = -libm::cos(PI * f64::from(step) / f64::from(params.steps - 1));
        let weigh =
            |away: f64| -> Vec<f64> { lean.iter().map(|lean| libm::exp(params.tide * sway * away * lean)).collect() };
        let (from, to) = (weigh(-1.0), weigh(1.0));
        let ends: f64 = to.iter().sum();
        let all: Vec<f64> = from.iter().zip(&to).map(|(from, to)| from * (ends - to)).collect();
        let scale = params.demand * cells.len() as f64 / all.iter().sum::<f64>();
        let scaled = |weights: Vec<f64>| weights.into_iter().map(|weight| weight * scale).collect();
        Hour { from: scaled(from), to, all: scaled(all) }
    };
    (0..params.steps).map(hour).collect()
}

/// Returns how many vehicles each region should have: those that wait in regions with a weight are shared out by weights, and the largest
/// remainders are rounded up. Regions without a weight keep theirs.
pub(super) fn wanted(waiting: &[u32], weights: &[Option<f64>]) -> Vec<u32> {
    let total: u32 = waiting.iter().zip(weights).filter(|(_, weight)| weight.is_some()).map(|(n, _)| n).sum();
    let sum: f64 = weights.iter().flatten().sum();
    let mut wanted = waiting.to_vec();
    let mut rests = Vec::new();
    for (region, weight) in weights.iter().enumerate().filter_map(|(region, weight)| Some((region, (*weight)?))) {
        let part = f64::from(total) * weight / sum;
        wanted[region] = part as u32;
        rests.push((region, part.fract()));
    }
    rests.sort_by(|one, other| other.1.total_cmp(&one.1));
    let given: u32 = rests.iter().map(|(region, _)| wanted[*region]).sum();
    rests.iter().take(total.saturating_sub(given) as usize).for_each(|(region, _)| wanted[*region] += 1);
    wanted
}

impl City {
    pub fn new(params: Params) -> City {
        let size = Size { width: params.width, height: params.height };
        let cells: Vec<Cell> = size.all().collect();
        let hours = hours(&params, &cells);
        City { params, size, cells, hours }
    }

    pub fn regions(&self) -> usize {
        self.cells.len()
    }

    pub fn fleet(&self) -> f64 {
        f64::from(self.params.vehicles) * self.regions() as f64
    }

    pub fn is_over(&self, day: &Day) -> bool {
        day.step >= self.params.steps
    }

    /// Returns the profit of the day so far, for each vehicle.
    pub fn profit(&self, day: &Day) -> f64 {
        (day.sums.fares as f64 - self.params.cost * day.sums.empty as f64) / self.fleet()
    }

    fn distance(&self, from: usize, to: usize) -> u32 {
        self.cells[from].steps_to(self.cells[to])
    }

    fn longest(&self) -> usize {
        usize::from(self.params.width + self.params.height) - 2
    }

    pub fn begin(&self, draws: &mut Draws) -> Day {
        let n = self.regions();
        let mut day = Day {
            step: 0,
            busy: (0..n).map(|_| draws.range(BUSY.0, BUSY.1)).collect(),
            waiting: vec![self.params.vehicles; n],
            coming: vec![vec![0; n]; self.longest()],
            shown: (0..n as u8).collect(),
            sums: Sums::default(),
        };
        self.scramble(&mut day, draws);
        day
    }

    fn scramble(&self, day: &mut Day, draws: &mut Draws) {
        if self.params.scrambled {
            draws.shuffle(&mut day.shown);
        }
    }

    /// Returns why a day does not belong to the city.
    pub fn check(&self, day: &Day) -> Result<(), String> {
        let (n, longest) = (self.regions(), self.longest());
        let of_all = [day.busy.len(), day.waiting.len(), day.shown.len()] == [n; 3];
        if !of_all || day.coming.len() != longest || day.coming.iter().any(|arrivals| arrivals.len() != n) {
            return Err(format!("there are {n} regions, and trips of up to {longest} steps"));
        }
        if self.is_over(day) {
            return Err(format!("a day has {} steps, and this one has not ended", self.params.steps));
        }
        let vehicles: u64 = day.waiting.iter().chain(day.coming.iter().flatten()).map(|n| u64::from(*n)).sum();
        if vehicles != u64::from(self.params.vehicles) * n as u64 {
            return Err(format!("{vehicles} vehicles are not the fleet"));
        }
        let mut shown = day.shown.clone();
        shown.sort_unstable();
        let Sums { requests, served, fares, empty } = day.sums;
        let small = served <= requests && [requests, fares, empty].iter().all(|sum| *sum <= 1 << 50);
        match shown.into_iter().eq(0..n as u8) && small && day.busy.iter().all(|x| (BUSY.0..=BUSY.1).contains(x)) {
            true => Ok(()),
            false => {
                Err("each region is seen once, is busy by 0.5 to 1.5, and serves what was requested at most".into())
            }
        }
    }

    /// Returns what there is to see of a region.
    fn seen(&self, day: &Day, region: usize) -> [f64; 4] {
        let vehicles = |n: u32| f64::from(n) / f64::from(self.params.vehicles);
        let demand = |step: usize| {
            self.hours.get(step).map_or(0.0, |hour| day.busy[region] * hour.all[region] / self.params.demand)
        };
        let next = day.step as usize;
        let later = (1..=LATER).map(|ahead| demand(next + ahead)).sum::<f64>() / LATER as f64;
        let coming = day.coming.iter().map(|arrivals| arrivals[region]).sum();
        [vehicles(day.waiting[region]), vehicles(coming), demand(next), later]
    }

    /// Returns what a region sees of itself, and as a mean of the regions beside it.
    pub fn view(&self, day: &Day, region: usize) -> [(f64, f64); 4] {
        let region = usize::from(day.shown[region]);
        let around = self.size.around(self.cells[region], &[NORTH, EAST, SOUTH, WEST]);
        let around: Vec<[f64; 4]> = around.map(|cell| self.seen(day, self.size.index(cell))).collect();
        let own = self.seen(day, region);
        std::array::from_fn(|i| (own[i], around.iter().map(|seen| seen[i]).sum::<f64>() / around.len() as f64))
    }

    /// Sends waiting vehicles to where they are wanted: by e to the power of what regions name.
    fn rebalance(&self, day: &mut Day, named: &[Option<f64>]) {
        let weights: Vec<Option<f64>> = named.iter().map(|number| number.map(libm::exp)).collect();
        let wanted = wanted(&day.waiting, &weights);
        let over = |some: &[u32], others: &[u32]| -> Vec<u32> {
            some.iter().zip(others).map(|(one, other)| one.saturating_sub(*other)).collect()
        };
        let (surplus, need) = (over(&day.waiting, &wanted), over(&wanted, &day.waiting));
        let trips = match self.params.trips {
            Trips::Shortest => flow::cheapest(&surplus, &need, |from, to| self.distance(from, to)),
            Trips::InOrder => flow::in_order(&surplus, &need),
        };
        for (from, to, n) in trips {
            let steps = self.distance(from, to);
            day.waiting[from] -= n;
            day.coming[steps as usize - 1][to] += n;
            day.sums.empty += u64::from(n) * u64::from(steps);
        }
    }

    /// Draws requests, and serves those that waiting vehicles can serve. Passengers who pay most come first; the others are lost.
    fn serve(&self, day: &mut Day, draws: &mut Draws) {
        let hour = &self.hours[day.step as usize];
        for from in 0..self.regions() {
            let others = (0..self.regions()).filter(|to| *to != from);
            let mut requests: Vec<(usize, u64)> =
                others.map(|to| (to, draws.poisson(day.busy[from] * hour.from[from] * hour.to[to]))).collect();
            requests.sort_by_key(|(to, _)| Reverse(self.distance(from, *to)));
            for (to, asked) in requests {
                let steps = self.distance(from, to);
                let served = asked.min(u64::from(day.waiting[from]));
                day.waiting[from] -= served as u32;
                day.coming[steps as usize - 1][to] += served as u32;
                day.sums.requests += asked;
                day.sums.served += served;
                day.sums.fares += served * (1 + u64::from(steps));
            }
        }
    }

    /// Takes a step, and returns its profit for each vehicle.
    pub fn step(&self, day: &mut Day, named: &[Option<f64>], draws: &mut Draws) -> f64 {
        let before = self.profit(day);
        self.rebalance(day, named);
        day.arrive();
        self.serve(day, draws);
        day.step += 1;
        self.scramble(day, draws);
        self.profit(day) - before
    }
}
