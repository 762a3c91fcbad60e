//! A die that melt flows through, and whose gap is deformed until it leaves evenly. See README.md.

mod flow;
#[cfg(test)]
mod tests;

use flow::{ACROSS, outflow};
use polity_kernel::Invalid;
use polity_kernel::ask::Value;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, TableSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<ExtrusionDie>(files);
}

/// How far a point can be from its place in a flat gap of height 1.
const FARTHEST: f64 = 0.8;
/// Parts of the outlet whose speeds are seen.
const SEGMENTS: usize = 10;

/// Parameters of an episode.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Points across the die that can be moved; 2 to 9.
    points: usize,
    /// How often each point is moved in an episode; 1 to 100.
    sweeps: u32,
    /// How far a point can be moved at once; above 0, at most 1.6. The flat gap has the height 1.
    reach: f64,
    /// What a move is.
    moves: Moves,
    /// How far points can be from their places in a flat gap at first; 0 to 0.8.
    rough: f64,
    /// Width of the inlet; 0.05 to 1. The outlet has the width 1.
    inlet: f64,
    /// How far from the middle the inlet can be, at most as far as the die's sides allow.
    offset: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { points: 5, sweeps: 2, reach: 0.4, moves: Moves::Numbers, rough: 0.4, inlet: 0.2, offset: 0.2 }
    }
}

/// What a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Moves {
    /// A number of at most `reach` either way.
    Numbers,
    /// By `reach` down, not at all, or by `reach` up.
    Choices,
}

/// Dies.
pub struct ExtrusionDie {
    params: Params,
    points: TableSlot,
    outlet: TableSlot,
}

/// A die.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Die {
    /// How far each point is from its place in a flat gap, above 0 if the gap is higher there.
    points: Vec<f64>,
    /// The middle of the inlet, from 0 to 1.
    inlet: f64,
    /// The speeds at which the melt leaves, from the side at 0 to that at 1. They follow from the rest.
    speeds: Vec<f64>,
    steps: u32,
}

impl Die {
    fn mean(&self) -> f64 {
        self.speeds.iter().sum::<f64>() / self.speeds.len() as f64
    }

    /// Returns the coefficient of variation of the speeds.
    fn spread(&self) -> f64 {
        let mean = self.mean();
        let square = |speed: &f64| (speed / mean - 1.0) * (speed / mean - 1.0);
        libm::sqrt(self.speeds.iter().map(square).sum::<f64>() / self.speeds.len() as f64)
    }

    /// Returns how much faster than in the mean the melt leaves in a segment, as a part of the mean.
    fn excess(&self, segment: usize) -> f64 {
        let cells = ACROSS / SEGMENTS;
        let sum: f64 = self.speeds.iter().skip(segment * cells).take(cells).sum();
        sum / cells as f64 / self.mean() - 1.0
    }

    /// Returns the point whose turn it is.
    fn turn(&self) -> usize {
        self.steps as usize % self.points.len()
    }
}

/// Returns a Bernstein polynomial at a place from 0 to 1, by de Casteljau's scheme.
fn bernstein(coefficients: &[f64], at: f64) -> f64 {
    let mut left = coefficients.to_vec();
    for last in (1..left.len()).rev() {
        for k in 0..last {
            left[k] += at * (left[k + 1] - left[k]);
        }
    }
    left.first().copied().unwrap_or_default()
}

/// Returns the height of the gap at a place: 1, deformed by a lattice of points in three rows from inlet to outlet. Those of the first
/// and the last row stay, so inlet and outlet keep their height.
fn gap(points: &[f64], along: f64, across: f64) -> f64 {
    1.0 + bernstein(&[0.0, bernstein(points, across), 0.0], along)
}

impl ExtrusionDie {
    fn steps(&self) -> u32 {
        self.params.points as u32 * self.params.sweeps
    }

    /// Returns the speeds at which the melt leaves.
    fn speeds(&self, points: &[f64], inlet: f64) -> Vec<f64> {
        let half = self.params.inlet / 2.0;
        outflow(|along, across| gap(points, along, across), [inlet - half, inlet + half])
    }
}

impl Environment for ExtrusionDie {
    const NAME: &'static str = "extrusion-die";
    const SUMMARY: &'static str = "A die whose gap is deformed, point by point, until melt leaves it evenly";
    type Params = Params;
    type State = Die;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(2..=9, "points", params.points)?;
        Invalid::within(1..=100, "sweeps", params.sweeps)?;
        Invalid::within(1e-6..=2.0 * FARTHEST, "reach", params.reach)?;
        Invalid::within(0.0..=FARTHEST, "rough", params.rough)?;
        Invalid::within(0.05..=1.0, "inlet", params.inlet)?;
        Invalid::within(0.0..=(1.0 - params.inlet) / 2.0, "offset", params.offset)?;
        for k in 0..params.points {
            let doc = "how far the point is from its place in a flat gap of height 1, above 0 if the gap is higher";
            declare.number(format!("position-{}", k + 1), doc, move |_, die: &Die, _| die.points[k]);
        }
        for k in 0..params.points {
            declare.number(format!("turn-{}", k + 1), "1 if this point is to be moved now", move |_, die, _| {
                f64::from(u8::from(die.turn() == k))
            });
        }
        for k in 0..SEGMENTS {
            let doc = "how much faster than in the mean the melt leaves in this segment, as a part of the mean";
            declare.number(format!("speed-{}", k + 1), doc, move |_, die, _| die.excess(k));
        }
        declare.number("left", "share of the moves that are left", |die: &ExtrusionDie, state, _| {
            1.0 - f64::from(state.steps) / f64::from(die.steps())
        });
        let doc = "the points across the die: number, position as above, 1 if it is to be moved now";
        let points = declare.table_slot("points", ["point", "position", "turn"], doc);
        let doc = "the segments of the outlet: middle, from 0 to 1, and speed as above";
        let outlet = declare.table_slot("outlet", ["middle", "speed"], doc);
        let argument = match params.moves {
            Moves::Numbers => ActionArgument::Number { low: -params.reach, high: params.reach },
            Moves::Choices => ActionArgument::Choice(["lower", "keep", "higher"].map(str::to_owned).to_vec()),
        };
        declare.action("move", argument, "move the point whose turn it is; above 0 the gap becomes higher");
        let doc = "standard deviation of the speeds at the outlet, as a part of their mean";
        declare.column("spread", doc, None, |_, die: &Die, _| die.spread());
        let doc = "melt that leaves, as a part of what flows through a flat gap with an inlet as wide as the outlet";
        declare.column("throughput", doc, None, |_, die: &Die, _| die.mean());
        Ok(ExtrusionDie { params, points, outlet })
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Die {
        let Params { points, rough, offset, .. } = self.params;
        let points: Vec<f64> = (0..points).map(|_| draws.range(-rough, rough)).collect();
        let inlet = 0.5 + draws.range(-offset, offset);
        Die { speeds: self.speeds(&points, inlet), points, inlet, steps: 0 }
    }

    fn accepts(&self, die: &Die) -> Result<(), String> {
        let Params { points, offset, .. } = self.params;
        let within = |x: &f64, most: f64| x.abs() <= most;
        if die.points.len() != points || !die.points.iter().all(|x| within(x, FARTHEST)) {
            return Err(format!("there are {points} points, each at most {FARTHEST} from its place"));
        }
        if !within(&(die.inlet - 0.5), offset) || die.steps >= self.steps() {
            return Err(format!("the inlet is at most {offset} from the middle, and {} moves end it", self.steps()));
        }
        let speeds = self.speeds(&die.points, die.inlet);
        let near = speeds.iter().zip(&die.speeds).all(|(speed, given)| within(&(speed - given), 1e-9));
        match near && speeds.len() == die.speeds.len() {
            true => Ok(()),
            false => Err("the speeds are not those of the flow through the die".into()),
        }
    }

    fn observe(&self, die: &Die, _: Seat, observation: &mut ObservationRow<'_>) {
        observation.table(self.points, |rows| {
            for (k, position) in die.points.iter().enumerate() {
                rows.extend([(k + 1) as f64, *position, f64::from(u8::from(die.turn() == k))]);
            }
        });
        observation.table(self.outlet, |rows| {
            (0..SEGMENTS).for_each(|k| rows.extend([(k as f64 + 0.5) / SEGMENTS as f64, die.excess(k)]));
        });
    }

    /// Without a move the point stays.
    fn step(&self, die: &mut Die, moves: &[Move], _: &mut Draws) -> StepResult {
        let reach = self.params.reach;
        let by = match moves.first().map(|made| &made.argument) {
            Some(Value::Number(by)) => by.clamp(-reach, reach),
            Some(Value::Choice(way)) => (f64::from(*way) - 1.0) * reach,
            _ => 0.0,
        };
        let (before, turn) = (die.spread(), die.turn());
        if let Some(point) = die.points.get_mut(turn) {
            *point = (*point + by).clamp(-FARTHEST, FARTHEST);
        }
        die.speeds = self.speeds(&die.points, die.inlet);
        die.steps += 1;
        StepResult {
            rewards: vec![before - die.spread()],
            results: vec![String::new(); moves.len()],
            done: die.steps >= self.steps(),
        }
    }
}
