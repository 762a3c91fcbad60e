//! Oscillators that synchronise, although each sees few others. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
use polity_kernel::ask::Value;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::ActionArgument;
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::WorldSetup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Kuramoto>(files);
}

/// Parameters of an episode.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Oscillators of an episode; 2 to 1,000,000.
    players: u32,
    /// Steps of an episode; 1 to 100,000.
    steps: u32,
    /// Others that each oscillator sees in a step, drawn uniformly each time; 1 to 1,000.
    peers: u32,
    /// The angle by which `forward` and `back` change a phase, in radians; 0 to π.
    shift: f64,
    /// The standard deviation of the noise that is added to a phase in each step, in radians; 0 to 10.
    noise: f64,
    /// The share of the circle on which the first phases lie; 0 to 1.
    arc: f64,
    /// Whether what an agent sees is rotated by a uniformly drawn angle, as a placebo: the same work, but no information.
    scrambled: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { players: 20, steps: 50, peers: 1, shift: 0.2, noise: 0.2, arc: 0.75, scrambled: false }
    }
}

/// Oscillators.
pub struct Kuramoto {
    params: Params,
}

/// A point of the plane: the mean of points on the unit circle.
type Point = [f64; 2];

/// Phases, and what is seen of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// The phase of each oscillator, from 0 to 2π.
    phases: Vec<f64>,
    /// What each oscillator sees: the mean of the points of its peers, relative to its own phase.
    seen: Vec<Point>,
    /// The mean of all points.
    centre: Point,
    steps: u32,
}

/// Returns the point of the unit circle at a phase.
fn point(phase: f64) -> Point {
    [libm::cos(phase), libm::sin(phase)]
}

impl Phases {
    /// Returns the order parameter: 1 if all phases are equal, about 0 if they are spread uniformly.
    fn order(&self) -> f64 {
        let [x, y] = self.centre;
        (x * x + y * y).sqrt()
    }

    /// Returns the mean cosine of the differences between all phases and that of a seat.
    fn agreement(&self, seat: Seat) -> f64 {
        let ([x, y], [cosine, sine]) = (self.centre, point(self.phases[seat as usize]));
        x * cosine + y * sine
    }
}

impl Kuramoto {
    /// Computes the mean of all points, and draws the peers that each oscillator sees.
    fn look(&self, state: &mut Phases, draws: &mut Draws) {
        let n = state.phases.len();
        let mut sum = [0.0; 2];
        for [x, y] in state.phases.iter().copied().map(point) {
            sum = [sum[0] + x, sum[1] + y];
        }
        state.centre = sum.map(|sum| sum / n as f64);
        state.seen.clear();
        for (own, phase) in state.phases.iter().enumerate() {
            let mut sum = [0.0; 2];
            for _ in 0..self.params.peers {
                let other = draws.below(n as u64 - 1) as usize;
                let other = if other < own { other } else { other + 1 };
                let [x, y] = point(state.phases[other] - phase);
                sum = [sum[0] + x, sum[1] + y];
            }
            let [x, y] = sum.map(|sum| sum / f64::from(self.params.peers));
            let [cosine, sine] = if self.params.scrambled { point(draws.range(0.0, TAU)) } else { [1.0, 0.0] };
            state.seen.push([x * cosine - y * sine, x * sine + y * cosine]);
        }
    }
}

impl Environment for Kuramoto {
    const NAME: &'static str = "kuramoto";
    const SUMMARY: &'static str = "Oscillators synchronise, although each sees few others";
    type Params = Params;
    type State = Phases;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(2..=1_000_000, "players", params.players)?;
        Invalid::within(1..=100_000, "steps", params.steps)?;
        Invalid::within(1..=1_000, "peers", params.peers)?;
        Invalid::within(0.0..=TAU / 2.0, "shift", params.shift)?;
        Invalid::within(0.0..=10.0, "noise", params.noise)?;
        Invalid::within(0.0..=1.0, "arc", params.arc)?;
        for (axis, name, rest) in [(0, "cosine", ""), (1, "sine", "; above 0 if they are ahead")] {
            let doc = format!("mean {name} of the differences between the phases of the peers and the agent's{rest}");
            declare.number(name, doc, move |_, state: &Phases, seat| state.seen[*seat as usize][axis]);
        }
        let ways = ["back", "keep", "forward"].map(str::to_owned).to_vec();
        declare.action("shift", ActionArgument::Choice(ways), "shift the phase back, keep it, or shift it forward");
        let doc =
            "order parameter of the agent's episode: 1 if all phases are equal, about 0 if they are spread uniformly";
        declare.column("order", doc, Some((0.0, 1.0)), |_, state: &Phases, _| state.order());
        let doc = "mean cosine of the differences between all phases of the episode and the agent's";
        declare.column("agreement", doc, Some((-1.0, 1.0)), |_, state: &Phases, seat| state.agreement(*seat));
        Ok(Kuramoto { params })
    }

    fn seats(&self) -> u32 {
        self.params.players
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Phases {
        let phases = (0..self.params.players).map(|_| draws.range(0.0, TAU * self.params.arc)).collect();
        let mut state = Phases { phases, ..Phases::default() };
        self.look(&mut state, draws);
        state
    }

    fn accepts(&self, state: &Phases) -> Result<(), String> {
        let (n, players) = (state.phases.len(), self.params.players as usize);
        let numbers = state.phases.iter().chain(state.seen.iter().flatten()).chain(&state.centre);
        match (n, state.seen.len()) == (players, players) && numbers.into_iter().all(|number| number.is_finite()) {
            true => Ok(()),
            false => Err(format!("an episode has {players} phases, all of which are finite numbers")),
        }
    }

    fn cut(&self, _: &Phases) -> bool {
        true
    }

    /// An oscillator without a move keeps its phase.
    fn step(&self, state: &mut Phases, moves: &[Move], draws: &mut Draws) -> StepResult {
        for Move { seat, argument, .. } in moves {
            if let (Value::Choice(way), Some(phase)) = (argument, state.phases.get_mut(*seat as usize)) {
                *phase += (f64::from(*way) - 1.0) * self.params.shift;
            }
        }
        for phase in &mut state.phases {
            let moved = (*phase + self.params.noise * draws.normal()) % TAU;
            *phase = if moved < 0.0 { moved + TAU } else { moved };
        }
        self.look(state, draws);
        state.steps += 1;
        StepResult {
            rewards: (0..self.params.players).map(|seat| state.agreement(seat)).collect(),
            results: vec![String::new(); moves.len()],
            done: state.steps >= self.params.steps,
        }
    }
}
