//! Where vehicles are, and how they move.

use serde::{Deserialize, Serialize};

/// The place that is the depot; the others are customers.
pub const DEPOT: usize = 0;

/// A problem, and how far each team is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Routes {
    /// Where the depot and the customers are, in a square of side 1.
    pub places: Vec<[f64; 2]>,
    /// What each of them demands; the depot nothing.
    pub demands: Vec<u32>,
    /// What each vehicle of a team can carry.
    pub capacities: Vec<u32>,
    /// The speed of each.
    pub speeds: Vec<f64>,
    /// The teams.
    pub teams: Vec<Team>,
    /// Rounds of the episode so far.
    pub rounds: u32,
}

/// The vehicles of a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Team {
    pub vehicles: Vec<Vehicle>,
    /// By place: whether the customer is served.
    pub served: Vec<bool>,
    /// Rounds until all were.
    pub rounds: u32,
    /// Choices that another vehicle's went before.
    pub conflicts: u32,
}

/// A vehicle on its way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vehicle {
    /// Where it is.
    pub at: u8,
    /// What it can still carry.
    pub left: u32,
    /// For how long it has travelled.
    pub time: f64,
    /// Whether it stayed in the depot at its last turn.
    pub stayed: bool,
}

impl Team {
    pub fn is_done(&self) -> bool {
        self.served[1..].iter().all(|served| *served)
    }

    pub fn at(&self, vehicle: usize) -> usize {
        usize::from(self.vehicles[vehicle].at)
    }
}

impl Routes {
    /// Returns the distance between two places.
    pub fn distance(&self, from: usize, to: usize) -> f64 {
        let [x, y] = [0, 1].map(|axis| self.places[to][axis] - self.places[from][axis]);
        libm::sqrt(x * x + y * y)
    }

    /// Returns the time that a vehicle needs from where it is to a place.
    pub fn leg(&self, team: &Team, vehicle: usize, to: usize) -> f64 {
        self.distance(team.at(vehicle), to) / self.speeds[vehicle]
    }

    /// Returns the time of a vehicle's way so far, with the way home.
    pub fn way(&self, team: &Team, vehicle: usize) -> f64 {
        team.vehicles[vehicle].time + self.leg(team, vehicle, DEPOT)
    }

    /// Returns the time of a vehicle's way, if it goes to a place and then home.
    pub fn way_by(&self, team: &Team, vehicle: usize, place: usize) -> f64 {
        let home = self.distance(place, DEPOT) / self.speeds[vehicle];
        team.vehicles[vehicle].time + self.leg(team, vehicle, place) + home
    }

    /// Returns whether a vehicle can go to a place: to a customer who is left and whom it has enough for, or to the depot, unless all
    /// vehicles are there.
    pub fn can_go(&self, team: &Team, vehicle: usize, place: usize) -> bool {
        match place {
            DEPOT => team.vehicles.iter().any(|other| usize::from(other.at) != DEPOT),
            _ => !team.served[place] && self.demands[place] <= team.vehicles[vehicle].left,
        }
    }

    /// Returns the nearest customer whom a vehicle can serve.
    pub fn nearest(&self, team: &Team, vehicle: usize) -> Option<usize> {
        let open = (1..self.places.len()).filter(|place| self.can_go(team, vehicle, *place));
        open.min_by(|a, b| self.leg(team, vehicle, *a).total_cmp(&self.leg(team, vehicle, *b)))
    }

    /// Moves a vehicle of a team.
    pub fn go(&mut self, team: usize, vehicle: usize, place: usize) {
        let time = self.leg(&self.teams[team], vehicle, place);
        let team = &mut self.teams[team];
        let moved = &mut team.vehicles[vehicle];
        moved.stayed = place == DEPOT && usize::from(moved.at) == DEPOT;
        moved.at = place as u8;
        moved.time += time;
        if place == DEPOT {
            moved.left = self.capacities[vehicle];
        } else {
            moved.left -= self.demands[place];
            team.served[place] = true;
        }
    }
}
