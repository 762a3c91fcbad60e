//! The travelling salesman problem. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Tsp>(files);
}

/// Parameters of an episode.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Cities; 3 to 100.
    cities: usize,
    /// Agents who each make a tour through the same cities; 1 to 256.
    players: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { cities: 20, players: 1 }
    }
}

/// Problems.
pub struct Tsp {
    params: Params,
    /// What an agent sees of each city but the first.
    seen: Vec<[NumberSlot; 6]>,
    left: NumberSlot,
    cities: TableSlot,
}

/// What an agent sees of a city.
const SEEN: [(&str, &str); 6] = [
    ("x", "how far the city is to the right of the agent"),
    ("y", "how far it is above the agent"),
    ("distance", "its distance from the agent"),
    ("home", "its distance from the first city"),
    ("near", "its distance from the nearest other city that is left, or from the first if none is"),
    ("others", "its mean distance from the other cities that are left; 0 if none is"),
];

/// The tours of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// Where the cities are, in a square of side 1.
    cities: Vec<[f64; 2]>,
    /// The cities that each agent has been in, in order.
    tours: Vec<Vec<u8>>,
}

impl Map {
    fn distance(&self, from: usize, to: usize) -> f64 {
        let [x, y] = [0, 1].map(|axis| self.cities[to][axis] - self.cities[from][axis]);
        libm::sqrt(x * x + y * y)
    }

    /// Returns where an agent is.
    fn at(&self, seat: Seat) -> usize {
        self.tours[seat as usize].last().copied().map_or(0, usize::from)
    }

    fn has_been(&self, seat: Seat, city: usize) -> bool {
        self.tours[seat as usize].contains(&(city as u8))
    }

    /// Returns the cities that an agent has not been in.
    fn left(&self, seat: Seat) -> Vec<usize> {
        (0..self.cities.len()).filter(|city| !self.has_been(seat, *city)).collect()
    }

    fn is_whole(&self, seat: Seat) -> bool {
        self.tours[seat as usize].len() == self.cities.len()
    }

    /// Returns the length of an agent's way so far, with the way home if it has been everywhere.
    fn length(&self, seat: Seat) -> f64 {
        let tour = &self.tours[seat as usize];
        let home = if self.is_whole(seat) { self.distance(self.at(seat), 0) } else { 0.0 };
        tour.windows(2).map(|leg| self.distance(usize::from(leg[0]), usize::from(leg[1]))).sum::<f64>() + home
    }
}

impl Environment for Tsp {
    const NAME: &'static str = "tsp";
    const SUMMARY: &'static str = "The travelling salesman problem; several agents can work on the same one";
    type Params = Params;
    type State = Map;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(3..=100, "cities", params.cities)?;
        Invalid::within(1..=256, "players", params.players)?;
        let of = |city: usize| SEEN.map(|(what, doc)| (format!("city-{city}-{what}"), doc));
        let seen = (1..params.cities).map(|city| of(city).map(|(name, doc)| declare.number_slot(name, doc))).collect();
        let left = declare.number_slot("left", "share of the cities that the agent has not been in");
        let doc = "the cities that the agent has not been in: number, columns of their distances from the agent and from the first city";
        let cities = declare.table_slot("cities", ["city", "distance", "home"], doc);
        for city in 1..params.cities {
            declare.action(format!("city-{city}"), ActionArgument::Nothing, "go to this city");
        }
        declare.column("length", "the length of the agent's way so far", None, |_, map: &Map, seat| map.length(*seat));
        let lengths = |tsp: &Tsp, map: &Map| (0..tsp.params.players).map(|seat| map.length(seat)).collect();
        let doc = "the length of the shortest way of the agents of an episode so far";
        declare.scalar("shortest", doc, move |tsp: &Tsp, map| {
            let lengths: Vec<f64> = lengths(tsp, map);
            lengths.into_iter().fold(f64::INFINITY, f64::min)
        });
        declare.scalar("mean-length", "the mean length of these ways", move |tsp, map| {
            let lengths: Vec<f64> = lengths(tsp, map);
            lengths.iter().sum::<f64>() / lengths.len() as f64
        });
        Ok(Tsp { params, seen, left, cities })
    }

    fn seats(&self) -> u32 {
        self.params.players
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Map {
        let cities = (0..self.params.cities).map(|_| [draws.unit(), draws.unit()]).collect();
        Map { cities, tours: vec![vec![0]; self.params.players as usize] }
    }

    fn accepts(&self, map: &Map) -> Result<(), String> {
        let Params { cities, players } = self.params;
        if map.cities.len() != cities || map.tours.len() != players as usize {
            return Err(format!("there are {cities} cities and {players} players"));
        }
        if !map.cities.iter().flatten().all(|x| x.is_finite()) {
            return Err("places of cities must be finite".into());
        }
        let proper = |tour: &Vec<u8>| {
            let mut sorted = tour.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let known = tour.iter().all(|city| usize::from(*city) < cities);
            tour.first() == Some(&0) && sorted.len() == tour.len() && tour.len() < cities && known
        };
        let alike = map.tours.windows(2).all(|pair| pair[0].len() == pair[1].len());
        match alike && map.tours.iter().all(proper) {
            true => Ok(()),
            false => {
                Err("tours begin in city 0, are in each city once at most, and none is whole or longer than others"
                    .into())
            }
        }
    }

    fn observe(&self, map: &Map, seat: Seat, observation: &mut ObservationRow<'_>) {
        let (at, left) = (map.at(seat), map.left(seat));
        for (city, slots) in (1..).zip(&self.seen) {
            let [x, y] = [0, 1].map(|axis| map.cities[city][axis] - map.cities[at][axis]);
            let others = left.iter().filter(|other| **other != city).map(|other| map.distance(city, *other));
            let (n, near, sum) =
                others.fold((0u32, f64::INFINITY, 0.0), |(n, near, sum), d| (n + 1, f64::min(near, d), sum + d));
            let home = map.distance(city, 0);
            let (near, mean) = if n == 0 { (home, 0.0) } else { (near, sum / f64::from(n)) };
            let values = [x, y, map.distance(at, city), home, near, mean];
            slots.iter().zip(values).for_each(|(slot, value)| observation.number(*slot, value));
        }
        observation.number(self.left, left.len() as f64 / map.cities.len() as f64);
        observation.table(self.cities, |rows| {
            left.iter().for_each(|city| rows.extend([*city as f64, map.distance(at, *city), map.distance(*city, 0)]));
        });
    }

    fn offers(&self, map: &Map, seat: Seat, action: u16) -> bool {
        !map.has_been(seat, usize::from(action) + 1)
    }

    /// An agent without a move goes to the nearest city.
    fn step(&self, map: &mut Map, moves: &[Move], _: &mut Draws) -> StepResult {
        let mut rewards = Vec::with_capacity(map.tours.len());
        for seat in 0..self.params.players {
            let before = map.length(seat);
            let made = moves.iter().find(|made| made.seat == seat).map(|made| usize::from(made.action) + 1);
            let at = map.at(seat);
            let nearest =
                || map.left(seat).into_iter().min_by(|a, b| map.distance(at, *a).total_cmp(&map.distance(at, *b)));
            if let Some(city) = made.or_else(nearest) {
                map.tours[seat as usize].push(city as u8);
            }
            rewards.push(before - map.length(seat));
        }
        StepResult { rewards, results: vec![String::new(); moves.len()], done: map.is_whole(0) }
    }
}
