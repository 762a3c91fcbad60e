//! Vehicles that serve customers from a depot, all at the same time or in turns. See README.md.

mod params;
mod routes;
#[cfg(test)]
mod tests;

pub use params::{Communication, Cost, Decoding, Params, Priority};
pub use routes::Routes;

use params::LARGEST_DEMAND;
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use routes::{DEPOT, Team, Vehicle};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<VehicleRouting>(files);
}

/// What an agent sees of a place.
const SEEN: [(&str, &str); 10] = [
    ("x", "how far the place is to the right of the vehicle"),
    ("y", "how far it is above the vehicle"),
    ("time", "the time that the vehicle needs to go there"),
    ("home", "the time that it needs from there to the depot"),
    ("demand", "the demand there, as a share of what the vehicle can still carry; at most 1"),
    ("near", "the distance from there to the nearest other customer who is left, or to the depot"),
    (
        "way",
        "the time of the vehicle's whole way, there and then home, less the mean of the other vehicles' ways with the ways home",
    ),
    ("rival", "the least time that another vehicle needs to go there"),
    ("nearer", "share of the other vehicles that need less time; of equals the one on the earlier seat"),
    ("wanted", "share of the other vehicles for which it is the nearest customer that they can serve"),
];

/// Problems.
pub struct VehicleRouting {
    params: Params,
    /// What an agent sees of each place.
    seen: Vec<[NumberSlot; SEEN.len()]>,
    /// Which vehicle of its team it is.
    vehicle: Vec<NumberSlot>,
    customers: TableSlot,
}

/// What a vehicle is shown of the others.
struct Others<'a> {
    team: &'a Team,
    /// Which vehicle it is itself.
    vehicle: usize,
    /// The others, and the nearest customer of each.
    wants: Vec<(usize, Option<usize>)>,
}

impl Others<'_> {
    fn mean(&self, of: impl Fn(usize, Option<usize>) -> f64) -> f64 {
        self.wants.iter().map(|(other, wanted)| of(*other, *wanted)).sum::<f64>() / self.wants.len() as f64
    }

    /// Returns the last three numbers of [`SEEN`] for a place.
    fn seen(&self, routes: &Routes, place: usize) -> [f64; 3] {
        let leg = |vehicle| routes.leg(self.team, vehicle, place);
        let own = leg(self.vehicle);
        let is_nearer = |other| leg(other) < own || (leg(other) == own && other < self.vehicle);
        [
            self.wants.iter().map(|(other, _)| leg(*other)).fold(f64::INFINITY, f64::min),
            self.mean(|other, _| f64::from(u8::from(is_nearer(other)))),
            self.mean(|_, wanted| f64::from(u8::from(wanted == Some(place)))),
        ]
    }
}

impl VehicleRouting {
    /// Returns the team of a seat, and which vehicle of it this is.
    fn place_of(&self, seat: Seat) -> (usize, usize) {
        (seat as usize / self.params.vehicles, seat as usize % self.params.vehicles)
    }

    fn has_turn(&self, team: &Team, vehicle: usize) -> bool {
        let order = |a: &Vehicle, b: &Vehicle| (a.stayed.cmp(&b.stayed)).then(a.time.total_cmp(&b.time));
        let next = || team.vehicles.iter().enumerate().min_by(|a, b| order(a.1, b.1));
        !team.is_done() && (self.params.decoding == Decoding::Parallel || next().is_some_and(|x| x.0 == vehicle))
    }

    fn cost(&self, routes: &Routes, team: &Team) -> f64 {
        let ways = (0..self.params.vehicles).map(|vehicle| routes.way(team, vehicle));
        match self.params.cost {
            Cost::Longest => ways.fold(0.0, f64::max),
            Cost::Total => ways.sum(),
        }
    }

    /// Returns the mean over the teams.
    fn mean(&self, routes: &Routes, of: impl Fn(&Team) -> f64) -> f64 {
        routes.teams.iter().map(of).sum::<f64>() / self.params.teams as f64
    }

    /// Returns what a vehicle is shown of the others; `None` if it is nothing.
    fn others<'a>(&self, routes: &Routes, team: &'a Team, vehicle: usize) -> Option<Others<'a>> {
        let shown = self.params.communication != Communication::None && self.params.vehicles > 1;
        let all = (0..self.params.vehicles).filter(|other| *other != vehicle);
        shown.then(|| {
            let wants = all.map(|other| (other, routes.nearest(team, other))).collect();
            Others { team, vehicle, wants }
        })
    }

    /// Returns who may go where it has chosen to, by vehicle of a team.
    fn settle(&self, routes: &Routes, team: &Team, chosen: &[Option<usize>], draws: &mut Draws) -> Vec<bool> {
        let lots: Vec<f64> = match self.params.priority {
            Priority::Random => chosen.iter().map(|_| draws.unit()).collect(),
            _ => Vec::new(),
        };
        let rank = |vehicle: usize, place: usize| match self.params.priority {
            Priority::Nearest => routes.leg(team, vehicle, place),
            Priority::Shortest => routes.way_by(team, vehicle, place),
            Priority::First => vehicle as f64,
            Priority::Random => lots[vehicle],
        };
        let may = |(vehicle, place): (usize, &Option<usize>)| match *place {
            None => false,
            Some(DEPOT) => true,
            Some(at) => {
                let rivals = (0..chosen.len()).filter(|other| chosen[*other] == *place);
                rivals.min_by(|a, b| rank(*a, at).total_cmp(&rank(*b, at))) == Some(vehicle)
            }
        };
        chosen.iter().enumerate().map(may).collect()
    }

    /// Lets the vehicles of a team choose. A vehicle without a move goes to the nearest customer whom it can serve, or else home.
    fn play(&self, routes: &mut Routes, team: usize, moves: &[Move], draws: &mut Draws) {
        let n = self.params.vehicles;
        let now = &routes.teams[team];
        let made = |vehicle| moves.iter().find(|made| made.seat as usize == team * n + vehicle);
        let choose = |vehicle| {
            let place = made(vehicle).map(|made| usize::from(made.action));
            place.or_else(|| routes.nearest(now, vehicle)).unwrap_or(DEPOT)
        };
        let chosen: Vec<Option<usize>> =
            (0..n).map(|vehicle| self.has_turn(now, vehicle).then(|| choose(vehicle))).collect();
        let settled = self.settle(routes, now, &chosen, draws);
        routes.teams[team].rounds += 1;
        for (vehicle, place) in chosen.into_iter().enumerate() {
            match place {
                Some(place) if settled[vehicle] => routes.go(team, vehicle, place),
                Some(_) => routes.teams[team].conflicts += 1,
                None => {}
            }
        }
    }

    fn fits(&self, routes: &Routes, team: &Team) -> bool {
        let places = self.params.customers + 1;
        let proper = |vehicle: usize| {
            let Vehicle { at, left, time, .. } = team.vehicles[vehicle];
            let (at, capacity) = (usize::from(at), routes.capacities[vehicle]);
            let loaded = match at {
                DEPOT => left == capacity,
                _ => at < places && team.served[at] && left.saturating_add(routes.demands[at]) <= capacity,
            };
            let alone = at == DEPOT || (0..vehicle).all(|other| team.at(other) != at);
            loaded && alone && (0.0..=1e6).contains(&time)
        };
        let sized = team.vehicles.len() == self.params.vehicles && team.served.len() == places && !team.served[DEPOT];
        sized
            && team.rounds <= routes.rounds
            && team.conflicts <= 16 * routes.rounds
            && (0..self.params.vehicles).all(proper)
    }
}

impl Environment for VehicleRouting {
    const NAME: &'static str = "vehicle-routing";
    const SUMMARY: &'static str = "Vehicles serve customers from a depot; all choose at the same time, or in turns";
    type Params = Params;
    type State = Routes;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        params.check()?;
        let name = |place| if place == DEPOT { "depot".to_owned() } else { format!("customer-{place}") };
        let of = |place: usize| SEEN.map(|(what, doc)| (format!("{}-{what}", name(place)), doc));
        let seen = (0..=params.customers).map(|at| of(at).map(|(name, doc)| declare.number_slot(name, doc))).collect();
        let which = |k: usize| (format!("vehicle-{k}"), "1 for this vehicle of a team, 0 for others");
        let vehicle = (0..params.vehicles).map(which).map(|(name, doc)| declare.number_slot(name, doc)).collect();
        let doc = "what the vehicle can still carry, as a share of what it can carry at most";
        declare.number("load", doc, |of: &VehicleRouting, routes: &Routes, seat| {
            let (team, vehicle) = of.place_of(*seat);
            f64::from(routes.teams[team].vehicles[vehicle].left) / f64::from(routes.capacities[vehicle])
        });
        let doc = "what it can carry at most, as a share of what any vehicle can";
        declare.number("capacity", doc, |of, routes, seat| {
            f64::from(routes.capacities[of.place_of(*seat).1]) / f64::from(of.params.most_capacity)
        });
        declare.number("speed", "its speed", |of, routes, seat| routes.speeds[of.place_of(*seat).1]);
        declare.number("left", "share of the customers who are left", |of, routes, seat| {
            let served = &routes.teams[of.place_of(*seat).0].served[1..];
            served.iter().filter(|served| !**served).count() as f64 / of.params.customers as f64
        });
        let doc = "the customers whom the vehicle can serve: number, the times to go there and from there home, the demand as a share of a full load, the least time that another vehicle needs to go there";
        let customers = declare.table_slot("customers", ["customer", "time", "home", "demand", "rival"], doc);
        declare.action("depot", ActionArgument::Nothing, "go to the depot, or stay there");
        for place in 1..=params.customers {
            declare.action(name(place), ActionArgument::Nothing, "go to this customer");
        }
        let doc = "the time of the vehicle's way so far, with the way home";
        declare.column("travel", doc, None, |of, routes, seat| {
            let (team, vehicle) = of.place_of(*seat);
            routes.way(&routes.teams[team], vehicle)
        });
        declare.scalar("travel-cost", "the cost so far, a mean over the teams", |of, routes| {
            of.mean(routes, |team| of.cost(routes, team))
        });
        declare.scalar(
            "decoding-steps",
            "rounds until all customers were served, a mean over the teams",
            |of, routes| of.mean(routes, |team| f64::from(team.rounds)),
        );
        let doc = "choices of a team so far that another vehicle's went before, a mean over the teams";
        declare.scalar("conflicts", doc, |of, routes| of.mean(routes, |team| f64::from(team.conflicts)));
        Ok(VehicleRouting { params, seen, vehicle, customers })
    }

    fn seats(&self) -> u32 {
        (self.params.teams * self.params.vehicles) as u32
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Routes {
        let Params { customers, vehicles, teams, least_capacity, most_capacity, slowest, fastest, .. } = self.params;
        let places = (0..=customers).map(|_| [draws.unit(), draws.unit()]).collect();
        let demand = |place| if place == DEPOT { 0 } else { 1 + draws.below(u64::from(LARGEST_DEMAND)) as u32 };
        let demands = (0..=customers).map(demand).collect();
        let span = u64::from(most_capacity - least_capacity) + 1;
        let capacities: Vec<u32> = (0..vehicles).map(|_| least_capacity + draws.below(span) as u32).collect();
        let speeds = (0..vehicles).map(|_| draws.range(slowest, fastest)).collect();
        let start = |left: &u32| Vehicle { at: DEPOT as u8, left: *left, time: 0.0, stayed: false };
        let vehicles = capacities.iter().map(start).collect();
        let team = Team { vehicles, served: vec![false; customers + 1], rounds: 0, conflicts: 0 };
        Routes { places, demands, capacities, speeds, teams: vec![team; teams], rounds: 0 }
    }

    fn accepts(&self, routes: &Routes) -> Result<(), String> {
        let Params { customers, vehicles, teams, .. } = self.params;
        let sizes = [routes.places.len(), routes.demands.len(), routes.capacities.len(), routes.speeds.len()];
        if sizes != [customers + 1, customers + 1, vehicles, vehicles] || routes.teams.len() != teams {
            return Err(format!("there are {customers} customers, {vehicles} vehicles and {teams} teams"));
        }
        let placed = routes.places.iter().flatten().all(|x| (0.0..=1.0).contains(x));
        let demanded =
            routes.demands[DEPOT] == 0 && routes.demands[1..].iter().all(|x| (1..=LARGEST_DEMAND).contains(x));
        let carried = routes.capacities.iter().all(|x| (LARGEST_DEMAND..=1_000).contains(x));
        let driven = routes.speeds.iter().all(|x| (0.1..=10.0).contains(x));
        if !(placed && demanded && carried && driven) {
            return Err(format!(
                "places lie in a square of side 1, demands are 1 to {LARGEST_DEMAND}, no capacity is below that, and speeds are 0.1 to 10"
            ));
        }
        let early = routes.rounds < self.params.most_rounds();
        let sound = early && routes.teams.iter().all(|team| self.fits(routes, team));
        match sound && (self.params.even_length || !routes.teams.iter().all(Team::is_done)) {
            true => Ok(()),
            false => Err("some customer is left, a vehicle is in the depot with nothing used, or alone at a customer whom it has served, and no more rounds are over than can be".into()),
        }
    }

    fn observe(&self, routes: &Routes, seat: Seat, observation: &mut ObservationRow<'_>) {
        let (team, vehicle) = self.place_of(seat);
        let team = &routes.teams[team];
        let others = self.others(routes, team, vehicle);
        let scrambled = self.params.communication == Communication::Scrambled;
        let compared = others.as_ref().filter(|_| !scrambled);
        let ways = compared.map_or(0.0, |others| others.mean(|other, _| routes.way(team, other)));
        let at = |place: usize| {
            let [x, y] = [0, 1].map(|axis| routes.places[place][axis] - routes.places[team.at(vehicle)][axis]);
            let time = routes.leg(team, vehicle, place);
            let home = routes.distance(place, DEPOT);
            let demand = f64::from(routes.demands[place]) / f64::from(team.vehicles[vehicle].left.max(1));
            let left = (1..=self.params.customers).filter(|other| *other != place && !team.served[*other]);
            let near = left.map(|other| routes.distance(place, other)).reduce(f64::min).unwrap_or(home);
            let way = routes.way_by(team, vehicle, place) - ways;
            let shown = if scrambled { (place + 1) % self.seen.len() } else { place };
            let [rival, nearer, wanted] = others.as_ref().map_or([0.0; 3], |others| others.seen(routes, shown));
            [x, y, time, home / routes.speeds[vehicle], demand.min(1.0), near, way, rival, nearer, wanted]
        };
        let seen: Vec<_> = (0..=self.params.customers).map(at).collect();
        for (slots, values) in self.seen.iter().zip(&seen) {
            slots.iter().zip(values).for_each(|(slot, value)| observation.number(*slot, *value));
        }
        observation.number(self.vehicle[vehicle], 1.0);
        observation.table(self.customers, |rows| {
            for place in (1..=self.params.customers).filter(|place| routes.can_go(team, vehicle, *place)) {
                let [_, _, time, home, _, _, _, rival, ..] = seen[place];
                let share = f64::from(routes.demands[place]) / f64::from(routes.capacities[vehicle]);
                rows.extend([place as f64, time, home, share, rival]);
            }
        });
    }

    fn offers(&self, routes: &Routes, seat: Seat, action: u16) -> bool {
        let (team, vehicle) = self.place_of(seat);
        let team = &routes.teams[team];
        self.has_turn(team, vehicle) && routes.can_go(team, vehicle, usize::from(action))
    }

    fn step(&self, routes: &mut Routes, moves: &[Move], draws: &mut Draws) -> StepResult {
        let mut rewards = Vec::with_capacity(self.seats() as usize);
        routes.rounds += 1;
        for team in 0..self.params.teams {
            let before = self.cost(routes, &routes.teams[team]);
            if !routes.teams[team].is_done() {
                self.play(routes, team, moves, draws);
            }
            let reward = before - self.cost(routes, &routes.teams[team]);
            rewards.extend(std::iter::repeat_n(reward, self.params.vehicles));
        }
        let waits = self.params.even_length && routes.rounds < self.params.most_rounds();
        let done = !waits && routes.teams.iter().all(Team::is_done);
        StepResult { rewards, results: vec![String::new(); moves.len()], done }
    }
}
