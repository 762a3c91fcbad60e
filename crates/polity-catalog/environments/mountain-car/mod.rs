//! Mountain car: a car swings up out of a valley, as in Gymnasium's MountainCar-v0. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
use polity_kernel::ask::Value;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, StepResult};
use polity_kernel::interface::ActionArgument;
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::WorldSetup;
use polity_learn::mountain_car::{Car, FASTEST, POSITIONS, START};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<MountainCar>(files);
}

/// Parameters of a drive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Steps after which an episode is cut; at least 1.
    limit: u32,
    /// The smallest velocity at the goal that counts as reaching it.
    goal_velocity: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { limit: 200, goal_velocity: 0.0 }
    }
}

/// A valley.
pub struct MountainCar {
    params: Params,
}

/// A drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drive {
    car: Car,
    steps: u32,
}

impl Environment for MountainCar {
    const NAME: &'static str = "mountain-car";
    const SUMMARY: &'static str =
        "A car too weak for the slope swings up to the hill, as in Gymnasium's MountainCar-v0";
    type Params = Params;
    type State = Drive;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::unless(params.limit > 0, "limit", "must be at least 1 step")?;
        Invalid::within(0.0..=FASTEST, "goal-velocity", params.goal_velocity)?;
        declare
            .number("position", "where the car is, -1.2 to 0.6; the goal is at 0.5", |_, drive, _| drive.car.position);
        declare.number("velocity", "positions a step, -0.07 to 0.07; above 0 to the right", |_, drive, _| {
            drive.car.velocity
        });
        declare.number("step", "steps of the episode so far", |_, drive, _| f64::from(drive.steps));
        declare.shared_number("limit", "steps after which an episode is cut", |valley: &MountainCar, _| {
            f64::from(valley.params.limit)
        });
        let ways = ["left", "none", "right"].map(str::to_owned).to_vec();
        declare.action("push", ActionArgument::Choice(ways), "push the car to a side, or let it roll");
        let doc = "where the car is";
        declare.column("position", doc, Some(POSITIONS), |_, drive: &Drive, _| drive.car.position);
        let doc = "1 if the car is at the goal";
        declare.column("reached", doc, Some((0.0, 1.0)), |valley: &MountainCar, drive, _| {
            f64::from(u8::from(valley.has_reached(drive)))
        });
        Ok(MountainCar { params })
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Drive {
        Drive { car: Car { position: draws.range(START.0, START.1), velocity: 0.0 }, steps: 0 }
    }

    fn accepts(&self, drive: &Drive) -> Result<(), String> {
        let ((left, right), fast) = (POSITIONS, FASTEST);
        match (left..=right).contains(&drive.car.position) && (-fast..=fast).contains(&drive.car.velocity) {
            true => Ok(()),
            false => Err(format!("a car is between {left} and {right}, with a velocity between -{fast} and {fast}")),
        }
    }

    /// It is cut at the limit, unless the car gets there in that step.
    fn cut(&self, drive: &Drive) -> bool {
        !self.has_reached(drive)
    }

    /// A car without a move rolls.
    fn step(&self, drive: &mut Drive, moves: &[Move], _: &mut Draws) -> StepResult {
        let push = match moves.first().map(|made| &made.argument) {
            Some(Value::Choice(way)) => f64::from(*way) - 1.0,
            _ => 0.0,
        };
        drive.car.step(push);
        drive.steps += 1;
        let done = self.has_reached(drive) || drive.steps >= self.params.limit;
        StepResult { rewards: vec![-1.0], results: vec![String::new(); moves.len()], done }
    }

    fn solved(&self, drive: &Drive, _: Option<&str>) -> Option<bool> {
        Some(self.has_reached(drive))
    }
}

impl MountainCar {
    fn has_reached(&self, drive: &Drive) -> bool {
        drive.car.has_reached(self.params.goal_velocity)
    }
}
