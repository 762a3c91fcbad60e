//! Mountain car: a car in a valley whose motor is too weak for the slope, as in Gymnasium's MountainCar-v0.
//!
//! Source: A. Moore, "Efficient Memory-based Learning for Robot Control" (1990); the constants are those of Gymnasium.

use serde::{Deserialize, Serialize};

/// The smallest and the largest position.
pub const POSITIONS: (f64, f64) = (-1.2, 0.6);
/// The largest speed, in positions a step.
pub const FASTEST: f64 = 0.07;
/// The position of the goal.
pub const GOAL: f64 = 0.5;
/// Where an episode begins, at rest.
pub const START: (f64, f64) = (-0.6, -0.4);
/// What a push adds to the velocity.
const FORCE: f64 = 0.001;
/// What the steepest slope adds to it.
const GRAVITY: f64 = 0.0025;

/// A car.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Car {
    /// Where it is.
    pub position: f64,
    /// Positions a step; to the right above 0.
    pub velocity: f64,
}

impl Car {
    /// Moves for a step with a push: -1 to the left, 0 none, 1 to the right. The left end stops the car.
    pub fn step(&mut self, push: f64) {
        let slope = libm::cos(3.0 * self.position);
        self.velocity = (self.velocity + push * FORCE - slope * GRAVITY).clamp(-FASTEST, FASTEST);
        self.position = (self.position + self.velocity).clamp(POSITIONS.0, POSITIONS.1);
        if self.position == POSITIONS.0 && self.velocity < 0.0 {
            self.velocity = 0.0;
        }
    }

    /// Returns whether it is at the goal, with at least this velocity.
    #[must_use]
    pub fn has_reached(&self, velocity: f64) -> bool {
        self.position >= GOAL && self.velocity >= velocity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded by `mountain_car_gymnasium.py`.
    const RECORDED: &str = include_str!("mountain_car_gymnasium.txt");

    #[test]
    fn every_recorded_step_of_gymnasium_is_the_same() {
        let mut car = Car { position: 0.0, velocity: 0.0 };
        let (mut episodes, mut steps, mut ends, mut cuts, mut stopped) = (0, 0, 0, 0, 0);
        for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
            let numbers: Vec<f64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            match numbers[..] {
                [position, velocity] => {
                    car = Car { position, velocity };
                    (episodes, steps) = (episodes + 1, 0);
                }
                [action, position, velocity, terminated, truncated] => {
                    car.step(action - 1.0);
                    steps += 1;
                    let near = (car.position - position).abs() < 1e-10 && (car.velocity - velocity).abs() < 1e-10;
                    assert!(near, "{line}: {car:?}");
                    assert_eq!(car.has_reached(0.0), terminated == 1.0, "{line}");
                    assert_eq!(steps == 200, truncated == 1.0, "{line}");
                    ends += u32::from(terminated == 1.0);
                    cuts += u32::from(truncated == 1.0);
                    stopped += u32::from(car.position == POSITIONS.0);
                }
                _ => panic!("{line}"),
            }
        }
        assert_eq!((episodes, ends, cuts), (6, 3, 3));
        assert!(stopped > 0, "no car met the left end");
    }

    #[test]
    fn a_car_at_the_bottom_stays_and_small_swings_have_the_period_of_a_spring() {
        // At -pi/6 the slope is 0. Near it the force is -3 * 0.0025 times the distance: a period of 2 pi / sqrt(0.0075) = 72.6 steps.
        let bottom = -std::f64::consts::FRAC_PI_6;
        let mut car = Car { position: bottom, velocity: 0.0 };
        (0..1_000).for_each(|_| car.step(0.0));
        assert!((car.position - bottom).abs() < 1e-9);
        car.position = bottom + 0.01;
        let mut crossings = Vec::new();
        for step in 0..2_000 {
            let before = car.position;
            car.step(0.0);
            if before < bottom && car.position >= bottom {
                crossings.push(step);
            }
        }
        let period = f64::from(crossings[crossings.len() - 1] - crossings[0]) / (crossings.len() - 1) as f64;
        assert!((period - std::f64::consts::TAU / 0.0075_f64.sqrt()).abs() < 0.2, "{period}");
    }

    #[test]
    fn full_throttle_fails_and_pushing_along_the_velocity_reaches_the_goal() {
        let steps = |push: fn(f64) -> f64| {
            let mut car = Car { position: -0.5, velocity: 0.0 };
            (1..=10_000).find(|_| {
                car.step(push(car.velocity));
                car.has_reached(0.0)
            })
        };
        assert_eq!(steps(|_| 1.0), None);
        // Energy grows: the car gets there, later than the 110 steps that count as solved.
        assert!(matches!(steps(|velocity| if velocity >= 0.0 { 1.0 } else { -1.0 }), Some(110..=140)));
    }
}
