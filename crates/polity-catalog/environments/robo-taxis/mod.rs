//! A fleet of vehicles that serves requests for trips in a city. See README.md.

mod city;
mod flow;
#[cfg(test)]
mod tests;

use city::{City, Day};
use polity_kernel::Invalid;
use polity_kernel::ask::Value;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<RoboTaxis>(files);
}

/// The largest number that a region can name.
const MOST: f64 = 3.0;

/// By which trips vehicles get to where they are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trips {
    /// With the least driving in all: a minimum-cost flow.
    Shortest,
    /// From the first region that has too many to the first that wants more, as a comparison.
    InOrder,
}

/// Parameters of an episode, which is a day.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Regions from left to right; 1 to 8.
    width: u8,
    /// Regions from top to bottom; 1 to 8. There are at least two regions.
    height: u8,
    /// Vehicles that wait in each region in the morning; 1 to 1,000.
    vehicles: u32,
    /// Steps of a day; 2 to 288.
    steps: u32,
    /// Requests in a step for each region, in the mean; 0.01 to 1,000.
    demand: f64,
    /// How strongly trips go to the middle in the morning and away from it in the evening; 0 to 10.
    tide: f64,
    /// What a step of driving without a passenger costs; 0 to 10. A passenger pays 1, and 1 for each step.
    cost: f64,
    /// By which trips vehicles get to where they are wanted.
    trips: Trips,
    /// Whether each region sees what another one should see, drawn anew in every step, as a placebo.
    scrambled: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            width: 3,
            height: 3,
            vehicles: 8,
            steps: 20,
            demand: 2.0,
            tide: 5.0,
            cost: 0.25,
            trips: Trips::Shortest,
            scrambled: false,
        }
    }
}

/// A fleet in a city.
pub struct RoboTaxis {
    city: City,
    own: [NumberSlot; 4],
    near: [NumberSlot; 4],
}

/// What a region sees of itself, and as a mean of the regions beside it.
const SEEN: [(&str, &str); 4] = [
    ("waiting", "vehicles that wait, as a part of those in the morning"),
    ("coming", "vehicles on their way there, as a part of those in the morning"),
    ("demand", "requests expected in the next step, as a part of the mean of all regions"),
    ("later", "the same for the three steps after it"),
];

impl Environment for RoboTaxis {
    const NAME: &'static str = "robo-taxis";
    const SUMMARY: &'static str = "Regions of a city share out the waiting vehicles of a fleet, which serves requests";
    type Params = Params;
    type State = Day;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(1..=8, "width", params.width)?;
        Invalid::within(1..=8, "height", params.height)?;
        Invalid::unless(params.width * params.height > 1, "width", "a city has at least two regions")?;
        Invalid::within(1..=1_000, "vehicles", params.vehicles)?;
        Invalid::within(2..=288, "steps", params.steps)?;
        Invalid::within(0.01..=1_000.0, "demand", params.demand)?;
        Invalid::within(0.0..=10.0, "tide", params.tide)?;
        Invalid::within(0.0..=10.0, "cost", params.cost)?;
        let own = SEEN.map(|(name, doc)| declare.number_slot(name, doc));
        let near = SEEN.map(|(name, doc)| {
            declare.number_slot(format!("near-{name}"), format!("{doc}; mean of the regions beside it"))
        });
        let doc = "share of the day that has passed";
        declare.shared_number("time", doc, move |_, day: &Day| f64::from(day.step) / f64::from(params.steps));
        let idle = |taxis: &RoboTaxis, day: &Day| f64::from(day.waiting.iter().sum::<u32>()) / taxis.city.fleet();
        declare.shared_number("idle", "share of the fleet that waits", idle);
        let doc = "how strongly the region wants vehicles; 1 more is e times as many of those that wait";
        declare.action("want", ActionArgument::Number { low: -MOST, high: MOST }, doc);
        let doc = "vehicles that wait in the region";
        declare.column("waiting", doc, None, |_, day, seat| f64::from(day.waiting[*seat as usize]));
        declare.scalar("served", "share of the day's requests so far that were served", |_, day| {
            day.sums.served as f64 / day.sums.requests.max(1) as f64
        });
        let doc = "the day's profit so far, for each vehicle";
        declare.scalar("profit", doc, |taxis, day| taxis.city.profit(day));
        let doc = "the day's steps of driving without a passenger so far, for each vehicle";
        declare.scalar("empty", doc, |taxis, day| day.sums.empty as f64 / taxis.city.fleet());
        Ok(RoboTaxis { city: City::new(params), own, near })
    }

    fn seats(&self) -> u32 {
        self.city.regions() as u32
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Day {
        self.city.begin(draws)
    }

    fn accepts(&self, day: &Day) -> Result<(), String> {
        self.city.check(day)
    }

    fn observe(&self, day: &Day, seat: Seat, observation: &mut ObservationRow<'_>) {
        for (i, (own, near)) in self.city.view(day, seat as usize).into_iter().enumerate() {
            observation.number(self.own[i], own);
            observation.number(self.near[i], near);
        }
    }

    /// A region without a move keeps the vehicles that wait there.
    fn step(&self, day: &mut Day, moves: &[Move], draws: &mut Draws) -> StepResult {
        let mut named = vec![None; self.city.regions()];
        for made in moves {
            if let Value::Number(number) = made.argument {
                named[made.seat as usize] = Some(number.clamp(-MOST, MOST));
            }
        }
        let reward = self.city.step(day, &named, draws);
        let rewards = vec![reward; self.city.regions()];
        StepResult { rewards, results: vec![String::new(); moves.len()], done: self.city.is_over(day) }
    }
}
