//! Agents on squared paper.

use super::{Csr, Plan, TopologyError, affordable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Agents on a rectangle, row by row: agent `y * width + x` stands at `(x, y)`. A side that is not given is derived from the
/// number of agents; when neither is, the rectangle is the one closest to a square.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Agents in a row.
    #[serde(default)]
    pub width: Option<u32>,
    /// The number of rows.
    #[serde(default)]
    pub height: Option<u32>,
    /// Whether opposite borders touch.
    #[serde(default)]
    pub torus: bool,
    /// Who is a neighbour.
    #[serde(default)]
    pub neighbourhood: Neighbourhood,
}

/// Who is a neighbour on a grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbourhood {
    /// The four that share a side.
    #[default]
    VonNeumann,
    /// The eight that share a side or a corner.
    Moore,
}

/// A derived rectangle may be this many times as long as wide; beyond, the request is taken for a mistake (a prime number of
/// agents would make a line).
const LONGEST: u32 = 4;

impl Grid {
    pub(super) fn plan(&self, n: u32, left: f64) -> Result<Plan<'_>, TopologyError> {
        let (width, height) = self.sides(n)?;
        if self.torus {
            for (key, side) in [("width", width), ("height", height)] {
                if side < 3 {
                    return Err(TopologyError::range(
                        key,
                        side,
                        "3 or more on a torus, so that no agent meets another twice",
                    ));
                }
            }
        }
        // Half of the neighbourhood: the other half are the same ties seen from the other end.
        let steps: &'static [(i64, i64)] = match self.neighbourhood {
            Neighbourhood::VonNeumann => &[(1, 0), (0, 1)],
            Neighbourhood::Moore => &[(1, 0), (0, 1), (1, 1), (-1, 1)],
        };
        affordable("neighbourhood", f64::from(n) * steps.len() as f64, left, "use fewer agents")?;
        let (torus, w, h) = (self.torus, i64::from(width), i64::from(height));
        // On a rectangle without a torus, ties that would lead across a border are missing.
        let ties = steps.iter().map(|(dx, dy)| if torus { w * h } else { (w - dx.abs()) * (h - dy) } as f64);
        Ok(Plan::of(n, 2.0 * ties.sum::<f64>(), move || {
            Csr::undirected(n, |edge| {
                for y in 0..h {
                    for x in 0..w {
                        for (dx, dy) in steps {
                            let (mut to_x, mut to_y) = (x + dx, y + dy);
                            if torus {
                                (to_x, to_y) = (to_x.rem_euclid(w), to_y.rem_euclid(h));
                            }
                            if (0..w).contains(&to_x) && (0..h).contains(&to_y) {
                                edge((y * w + x) as u32, (to_y * w + to_x) as u32);
                            }
                        }
                    }
                }
            })
        }))
    }

    fn sides(&self, n: u32) -> Result<(u32, u32), TopologyError> {
        let other = |key: &str, side: u32| match n.checked_rem(side) {
            Some(0) if n > 0 => Ok(n / side),
            _ => Err(TopologyError::range(key, side, format!("a divisor of the number of agents, {n}"))),
        };
        match (self.width, self.height) {
            (Some(width), Some(height)) if u64::from(width) * u64::from(height) == u64::from(n) => Ok((width, height)),
            (Some(width), Some(height)) => Err(TopologyError::at(
                "width",
                format!(
                    "{width} x {height} is {}, but there are {n} agents; leave one side out to have it derived",
                    u64::from(width) * u64::from(height)
                ),
            )),
            (Some(width), None) => Ok((width, other("width", width)?)),
            (None, Some(height)) => Ok((other("height", height)?, height)),
            (None, None) => squarest(n).ok_or_else(|| {
                let near = |mut candidates: Box<dyn Iterator<Item = u32>>| candidates.find_map(squarest);
                let shown = |sides: Option<(u32, u32)>| {
                    sides.map(|(w, h)| format!("{} ({w} x {h})", u64::from(w) * u64::from(h)))
                };
                let fits = [shown(near(Box::new((1..n).rev()))), shown(near(Box::new(n.saturating_add(1)..)))];
                let fits = fits.into_iter().flatten().collect::<Vec<_>>().join(" or ");
                TopologyError::at(
                    "width",
                    format!("{n} agents do not fill a rectangle close to a square; use {fits} agents, or give `width`"),
                )
            }),
        }
    }
}

/// The rectangle of `n` closest to a square, width first, unless it is too long.
fn squarest(n: u32) -> Option<(u32, u32)> {
    let short = (1..=n.isqrt()).rev().find(|side| n.is_multiple_of(*side))?;
    let long = n / short;
    (long <= LONGEST.saturating_mul(short)).then_some((long, short))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(width: Option<u32>, height: Option<u32>) -> Grid {
        Grid { width, height, ..Grid::default() }
    }

    #[test]
    fn corners_borders_and_inside() {
        let counts = |neighbourhood, torus| {
            let csr = Grid { width: Some(5), height: Some(4), torus, neighbourhood }
                .plan(20, f64::INFINITY)
                .and_then(Plan::csr)
                .unwrap();
            let mut counts = [0; 9];
            (0..20).for_each(|i| counts[csr.neighbours(i).len()] += 1);
            counts
        };
        assert_eq!(counts(Neighbourhood::VonNeumann, false), [0, 0, 4, 10, 6, 0, 0, 0, 0]);
        assert_eq!(counts(Neighbourhood::Moore, false), [0, 0, 0, 4, 0, 10, 0, 0, 6]);
        assert_eq!(counts(Neighbourhood::VonNeumann, true)[4], 20);
        assert_eq!(counts(Neighbourhood::Moore, true)[8], 20);
    }

    #[test]
    fn row_by_row() {
        let csr = grid(Some(5), None).plan(20, f64::INFINITY).and_then(Plan::csr).unwrap();
        assert_eq!(csr.neighbours(7), [2, 6, 8, 12]);
        let torus = Grid { width: Some(3), height: None, torus: true, neighbourhood: Neighbourhood::Moore };
        assert_eq!(torus.plan(9, f64::INFINITY).and_then(Plan::csr).unwrap().neighbours(0), [1, 2, 3, 4, 5, 6, 7, 8]);
        let torus = Grid { width: Some(5), height: None, torus: true, neighbourhood: Neighbourhood::VonNeumann };
        assert_eq!(torus.plan(20, f64::INFINITY).and_then(Plan::csr).unwrap().neighbours(0), [1, 4, 5, 15]);
    }

    #[test]
    fn sides_are_derived() {
        assert_eq!(grid(None, Some(4)).sides(20), Ok((5, 4)));
        assert_eq!(grid(None, None).sides(1_000_000), Ok((1000, 1000)));
        assert_eq!(grid(None, None).sides(1000), Ok((40, 25)));
        assert_eq!(grid(None, None).sides(2), Ok((2, 1)));
    }

    #[test]
    fn bad_sides() {
        let error = |grid: Grid, n| grid.plan(n, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string();
        assert_eq!(
            error(grid(Some(7), None), 20),
            "width: 7 is not possible; allowed: a divisor of the number of agents, 20"
        );
        assert_eq!(
            error(grid(None, Some(0)), 20),
            "height: 0 is not possible; allowed: a divisor of the number of agents, 20"
        );
        assert_eq!(
            error(grid(Some(3), Some(4)), 20),
            "width: 3 x 4 is 12, but there are 20 agents; leave one side out to have it derived"
        );
        assert_eq!(
            error(grid(None, None), 997),
            "width: 997 agents do not fill a rectangle close to a square; use 992 (32 x 31) or 999 (37 x 27) agents, or give `width`"
        );
        let torus = Grid { torus: true, ..grid(Some(2), None) };
        assert!(error(torus, 20).starts_with("width: 2 is not possible; allowed: 3 or more on a torus"));
    }
}
