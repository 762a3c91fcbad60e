//! A pendulum that a weak motor swings up. See README.md.

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
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Pendulum>(files);
}

/// Mass in kg and length in m.
const MASS: f64 = 1.0;
const LENGTH: f64 = 1.0;
/// Seconds of a step.
const STEP: f64 = 0.05;
/// The strongest torque in N m, and the fastest turn in rad/s.
const STRONGEST: f64 = 2.0;
const FASTEST: f64 = 8.0;

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Steps after which an episode is cut; 1 to 1,000,000.
    steps: u32,
    /// Gravity in m/s²; 0 to 100.
    gravity: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { steps: 200, gravity: 10.0 }
    }
}

/// A pendulum.
pub struct Pendulum {
    params: Params,
}

/// The state of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Swing {
    /// Angle from upright in radians, not wrapped at full turns, and its speed in rad/s.
    angle: f64,
    speed: f64,
    steps: u32,
}

/// Returns an angle between -π and π.
fn folded(angle: f64) -> f64 {
    (angle + PI).rem_euclid(2.0 * PI) - PI
}

impl Swing {
    /// Turns for one step under a torque, and returns the cost of the state before it.
    fn turn(&mut self, torque: f64, gravity: f64) -> f64 {
        let off = folded(self.angle);
        let cost = off * off + 0.1 * (self.speed * self.speed) + 0.001 * (torque * torque);
        let pull = 3.0 * gravity / (2.0 * LENGTH) * libm::sin(self.angle) + 3.0 / (MASS * (LENGTH * LENGTH)) * torque;
        self.speed = (self.speed + pull * STEP).clamp(-FASTEST, FASTEST);
        self.angle += self.speed * STEP;
        self.steps += 1;
        cost
    }
}

impl Environment for Pendulum {
    const NAME: &'static str = "pendulum";
    const SUMMARY: &'static str =
        "A pendulum that a weak motor swings up and holds upright, as Gymnasium's Pendulum-v1";
    type Params = Params;
    type State = Swing;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(1..=1_000_000, "steps", params.steps)?;
        Invalid::within(0.0..=100.0, "gravity", params.gravity)?;
        declare.number("cosine", "cosine of the angle: 1 upright, -1 hanging", |_, swing: &Swing, _| {
            libm::cos(swing.angle)
        });
        declare.number("sine", "sine of the angle, above 0 to the left", |_, swing, _| libm::sin(swing.angle));
        declare.number("speed", "speed of the angle in rad/s, above 0 to the left", |_, swing, _| swing.speed);
        let argument = ActionArgument::Number { low: -STRONGEST, high: STRONGEST };
        declare.action("torque", argument, "turn with this torque in N m, above 0 to the left");
        let doc = "angle from upright in radians, either way";
        declare.column("lean", doc, Some((0.0, PI)), |_, swing, _| folded(swing.angle).abs());
        Ok(Pendulum { params })
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Swing {
        Swing { angle: draws.range(-PI, PI), speed: draws.range(-1.0, 1.0), steps: 0 }
    }

    fn accepts(&self, swing: &Swing) -> Result<(), String> {
        match swing.angle.is_finite() && (-FASTEST..=FASTEST).contains(&swing.speed) {
            true => Ok(()),
            false => Err(format!("the angle is finite and the speed between -{FASTEST} and {FASTEST}")),
        }
    }

    fn cut(&self, _: &Swing) -> bool {
        true
    }

    /// Without a move the motor is off.
    fn step(&self, swing: &mut Swing, moves: &[Move], _: &mut Draws) -> StepResult {
        let torque = match moves.first().map(|made| &made.argument) {
            Some(Value::Number(torque)) => torque.clamp(-STRONGEST, STRONGEST),
            _ => 0.0,
        };
        let cost = swing.turn(torque, self.params.gravity);
        let done = swing.steps >= self.params.steps;
        StepResult { rewards: vec![-cost], results: vec![String::new(); moves.len()], done }
    }
}
