//! A small driving game: two cars come to a crossing that has room for one, and each has a way to drive.
//!
//! Every car begins 2 to 5 cells before the crossing, all starts equally likely. In a step it drives on or waits. A car is in the crossing
//! from the step in which it arrives: a fast car for one step, a slow one for two. If both are in it in the same step they crash. If both
//! wait for each other, a coin decides who drives on.

use serde::{Deserialize, Serialize};

/// The nearest and the farthest start, in cells before the crossing.
const STARTS: std::ops::RangeInclusive<i32> = 2..=5;

/// A way to drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// Cells in a step, 1 or 2.
    pub speed: i32,
    /// It waits before the crossing while the other is at most this many cells before it, or in it; 0: it never waits.
    pub gap: i32,
}

/// All ways to drive that differ.
#[must_use]
pub fn drivers() -> Vec<Driver> {
    [1, 2].into_iter().flat_map(|speed| [0, 1, 2, 4].map(|gap| Driver { speed, gap })).collect()
}

/// What a meeting of two drivers comes to, on average over all starts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encounter {
    /// Steps until each car has arrived.
    pub delays: [f64; 2],
    /// The probability of a crash.
    pub crash: f64,
}

/// Lets two drivers meet, from all starts and with both sides of the coin.
#[must_use]
pub fn meet(drivers: [Driver; 2]) -> Encounter {
    let mut sum = Encounter { delays: [0.0; 2], crash: 0.0 };
    let mut meetings = 0.0;
    for first in STARTS {
        for second in STARTS {
            for coin in 0..2 {
                let arrived = drive(drivers, [first, second], coin);
                meetings += 1.0;
                sum.delays[0] += f64::from(arrived[0]);
                sum.delays[1] += f64::from(arrived[1]);
                sum.crash += f64::from(u8::from(crashed(drivers, arrived)));
            }
        }
    }
    Encounter { delays: sum.delays.map(|delay| delay / meetings), crash: sum.crash / meetings }
}

/// The steps in which the cars arrive.
fn drive(drivers: [Driver; 2], starts: [i32; 2], coin: usize) -> [u32; 2] {
    let (mut left, mut arrived) = (starts, [None::<u32>; 2]);
    let mut step = 0;
    while arrived.iter().any(Option::is_none) {
        step += 1;
        let (seen, there) = (left, arrived);
        let waits = |own: usize| {
            let (driver, other) = (drivers[own], 1 - own);
            let inside = there[other].is_some_and(|at| step < at + stay(drivers[other]));
            let near = seen[other] > 0 && seen[other] <= driver.gap;
            there[own].is_none() && driver.gap > 0 && seen[own] <= driver.speed && (near || inside)
        };
        let both = waits(0) && waits(1);
        for own in 0..2 {
            if there[own].is_some() || (waits(own) && !(both && own == coin)) {
                continue;
            }
            left[own] -= drivers[own].speed;
            if left[own] <= 0 {
                arrived[own] = Some(step);
            }
        }
    }
    arrived.map(|at| at.unwrap_or(step))
}

/// Steps that a car is in the crossing.
fn stay(driver: Driver) -> u32 {
    if driver.speed > 1 { 1 } else { 2 }
}

fn crashed(drivers: [Driver; 2], arrived: [u32; 2]) -> bool {
    arrived[0] < arrived[1] + stay(drivers[1]) && arrived[1] < arrived[0] + stay(drivers[0])
}

#[cfg(test)]
mod tests {
    use super::{Driver, drive, drivers, meet};

    const FAST: Driver = Driver { speed: 2, gap: 0 };
    const SLOW: Driver = Driver { speed: 1, gap: 0 };
    const CAREFUL: Driver = Driver { speed: 2, gap: 4 };

    #[test]
    fn two_who_never_wait_crash_if_they_arrive_together() {
        // Starts 2 to 5 at two cells a step: arrival in steps 1, 2, 2, 3, so 6 of 16 starts arrive in the same step.
        assert_eq!(meet([FAST, FAST]).crash, 6.0 / 16.0);
        assert_eq!(meet([FAST, FAST]).delays, [2.0, 2.0]);
        // At one cell a step, with a stay of two steps: the same or neighbouring distances, 4 + 6 of 16.
        assert_eq!(meet([SLOW, SLOW]).crash, 10.0 / 16.0);
    }

    #[test]
    fn who_waits_lets_the_other_pass() {
        assert_eq!(drive([CAREFUL, FAST], [2, 2], 0), [2, 1]);
        // Both wait, and the coin lets the second go first.
        assert_eq!(drive([CAREFUL, CAREFUL], [2, 2], 1), [2, 1]);
        assert_eq!((meet([CAREFUL, CAREFUL]).crash, meet([CAREFUL, FAST]).crash), (0.0, 0.0));
    }

    #[test]
    fn a_meeting_is_the_same_from_the_other_side() {
        for first in drivers() {
            for second in drivers() {
                let (one, other) = (meet([first, second]), meet([second, first]));
                assert_eq!((one.crash, one.delays[0]), (other.crash, other.delays[1]), "{first:?} {second:?}");
            }
        }
    }
}
