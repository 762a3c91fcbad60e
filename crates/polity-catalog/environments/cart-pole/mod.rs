//! A pole on a cart that is pushed left or right. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
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
    registry.environment::<CartPole>(files);
}

/// Gravity in m/s².
const GRAVITY: f64 = 9.8;
/// Mass of the pole, and of cart and pole together, in kg.
const POLE: f64 = 0.1;
const TOTAL: f64 = 1.0 + POLE;
/// Half the length of the pole in m.
const LENGTH: f64 = 0.5;
/// Force of a push in N.
const FORCE: f64 = 10.0;
/// Seconds of a step.
const TAU: f64 = 0.02;
/// The largest angle in radians, and the largest distance from the centre in m.
const STEEPEST: f64 = 12.0 * 2.0 * PI / 360.0;
const FARTHEST: f64 = 2.4;
/// At the start each number of the state is at most this, either way.
const START: f64 = 0.05;

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Steps after which an episode ends even if the pole stands; 1 to 1,000,000.
    steps: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { steps: 500 }
    }
}

/// A pole on a cart.
pub struct CartPole {
    steps: u32,
}

/// The state of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cart {
    /// Position of the cart in m, and its speed in m/s.
    x: f64,
    speed: f64,
    /// Angle of the pole from upright in radians, and its angular speed in rad/s.
    angle: f64,
    turn: f64,
    steps: u32,
}

impl Cart {
    /// Moves for one step under a force (Barto, Sutton and Anderson 1983, by Euler's method).
    fn push(&mut self, force: f64) {
        let (sine, cosine) = (libm::sin(self.angle), libm::cos(self.angle));
        let part = (force + POLE * LENGTH * (self.turn * self.turn) * sine) / TOTAL;
        let turning = (GRAVITY * sine - cosine * part) / (LENGTH * (4.0 / 3.0 - POLE * (cosine * cosine) / TOTAL));
        let pulling = part - POLE * LENGTH * turning * cosine / TOTAL;
        self.x += TAU * self.speed;
        self.speed += TAU * pulling;
        self.angle += TAU * self.turn;
        self.turn += TAU * turning;
        self.steps += 1;
    }

    fn stands(&self) -> bool {
        self.x.abs() <= FARTHEST && self.angle.abs() <= STEEPEST
    }
}

impl Environment for CartPole {
    const NAME: &'static str = "cart-pole";
    const SUMMARY: &'static str = "A pole on a cart that is pushed left or right, as Gymnasium's CartPole-v1";
    type Params = Params;
    type State = Cart;

    fn open(
        Params { steps }: Params,
        _: &WorldSetup<'_>,
        declare: &mut DeclareEnvironment<Self>,
    ) -> Result<Self, Invalid> {
        Invalid::within(1..=1_000_000, "steps", steps)?;
        declare.number("position", "position of the cart in m, 0 in the middle", |_, cart: &Cart, _| cart.x);
        declare.number("speed", "speed of the cart in m/s, to the right", |_, cart, _| cart.speed);
        declare.number("angle", "angle of the pole from upright in radians, to the right", |_, cart, _| cart.angle);
        declare.number("turn", "angular speed of the pole in rad/s", |_, cart, _| cart.turn);
        declare.action("left", ActionArgument::Nothing, "push the cart to the left");
        declare.action("right", ActionArgument::Nothing, "push the cart to the right");
        declare.column("steps", "steps of the episode so far", None, |_, cart, _| f64::from(cart.steps));
        Ok(CartPole { steps })
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Cart {
        let [x, speed, angle, turn] = [(); 4].map(|()| draws.range(-START, START));
        Cart { x, speed, angle, turn, steps: 0 }
    }

    fn accepts(&self, cart: &Cart) -> Result<(), String> {
        match [cart.x, cart.speed, cart.angle, cart.turn].iter().all(|number| number.is_finite()) {
            true => Ok(()),
            false => Err("the numbers of a cart must be finite".into()),
        }
    }

    fn cut(&self, cart: &Cart) -> bool {
        cart.stands()
    }

    /// Without a move the cart rolls on.
    fn step(&self, cart: &mut Cart, moves: &[Move], _: &mut Draws) -> StepResult {
        let force = match moves.first().map(|made| made.action) {
            Some(0) => -FORCE,
            Some(_) => FORCE,
            None => 0.0,
        };
        cart.push(force);
        let done = !cart.stands() || cart.steps >= self.steps;
        StepResult { rewards: vec![1.0], results: vec![String::new(); moves.len()], done }
    }
}
