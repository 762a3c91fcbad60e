//! A circle of agents.

use super::{Csr, Plan, TopologyError, affordable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Agents in a circle, each tied to the nearest ones on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ring {
    /// How many neighbours each agent has: an even number, half of them on each side.
    pub neighbours: u32,
}

/// Checks the neighbours of a ring of `n`; returns those on one side.
pub(super) fn one_side(neighbours: u32, n: u32, left: f64) -> Result<u32, TopologyError> {
    if neighbours < 2 || neighbours % 2 == 1 || neighbours >= n {
        let most = n.saturating_sub(1) & !1;
        let allowed = match most {
            0 => format!("none with {n} agents; a ring needs at least 3"),
            _ => format!("an even number from 2 to {most} with {n} agents"),
        };
        return Err(TopologyError::range("neighbours", neighbours, allowed));
    }
    affordable("neighbours", f64::from(n) * f64::from(neighbours / 2), left, "use fewer neighbours")?;
    Ok(neighbours / 2)
}

/// The agent `steps` further round a ring of `n`.
#[inline]
pub(super) fn onward(i: u32, steps: u32, n: u32) -> u32 {
    let left = n - i;
    if steps < left { i + steps } else { steps - left }
}

impl Ring {
    pub(super) fn plan(&self, n: u32, left: f64) -> Result<Plan<'_>, TopologyError> {
        let side = one_side(self.neighbours, n, left)?;
        Ok(Plan::of(n, f64::from(n) * f64::from(self.neighbours), move || {
            Csr::undirected(n, |edge| (0..n).for_each(|i| (1..=side).for_each(|step| edge(i, onward(i, step, n)))))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_on_both_sides() {
        let csr = Ring { neighbours: 4 }.plan(7, f64::INFINITY).and_then(Plan::csr).unwrap();
        assert_eq!(csr.neighbours(0), [1, 2, 5, 6]);
        assert_eq!(csr.neighbours(5), [0, 3, 4, 6]);
        for (n, neighbours) in [(3, 2), (5, 4), (6, 4), (100, 98), (101, 100)] {
            let csr = Ring { neighbours }.plan(n, f64::INFINITY).and_then(Plan::csr).unwrap();
            assert!((0..n).all(|i| csr.neighbours(i).len() as u32 == neighbours), "{n} {neighbours}");
        }
    }

    #[test]
    fn out_of_range() {
        let error =
            |neighbours, n| Ring { neighbours }.plan(n, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string();
        assert_eq!(error(3, 10), "neighbours: 3 is not possible; allowed: an even number from 2 to 8 with 10 agents");
        assert_eq!(error(0, 11), "neighbours: 0 is not possible; allowed: an even number from 2 to 10 with 11 agents");
        assert_eq!(error(10, 10), "neighbours: 10 is not possible; allowed: an even number from 2 to 8 with 10 agents");
        assert_eq!(error(2, 2), "neighbours: 2 is not possible; allowed: none with 2 agents; a ring needs at least 3");
        assert!(
            error(1_000_000, 1_000_001)
                .starts_with("neighbours: this would make about 5.000e11 ties, but at most 2.000e9")
        );
    }
}
