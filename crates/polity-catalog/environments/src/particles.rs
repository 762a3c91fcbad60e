//! Bodies on a plane, as in the multi-agent particle environments: agents push themselves, touch each other and obstacles, and lose speed.
//!
//! Lowe and others (arXiv 1706.02275); the numbers are those of the program mpe2 1.1.1. Each environment on it has a [`Scene`] as its state, or
//! as a part of it ([`HasScene`]).

use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat};
use polity_kernel::interface::{ActionArgument, TableSlot};
use polity_kernel::rng::Draws;
use polity_kernel::world::ObservationRow;
use serde::{Deserialize, Serialize};

/// Duration of a step, and the part of the velocity that is lost in it.
const STEP: f64 = 0.1;
const DAMPING: f64 = 0.25;
/// How hard bodies that touch push each other away, and how softly contact begins.
const CONTACT: f64 = 100.0;
const MARGIN: f64 = 1e-3;
/// The five ways to push, with their directions.
const WAYS: [(&str, [f64; 2], &str); 5] = [
    ("stay", [0.0, 0.0], "do not push"),
    ("left", [-1.0, 0.0], "push to the left"),
    ("right", [1.0, 0.0], "push to the right"),
    ("down", [0.0, -1.0], "push down"),
    ("up", [0.0, 1.0], "push up"),
];

/// A place or a direction: x to the right, y up.
pub type Pair = [f64; 2];

/// A body: its place and its velocity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Body {
    /// Where its centre is.
    pub at: Pair,
    /// Its velocity, a unit of time.
    pub velocity: Pair,
}

/// What does not change about a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Its radius.
    pub radius: f64,
    /// The force of its push.
    pub push: f64,
    /// The speed that it cannot exceed, if there is one.
    pub top_speed: Option<f64>,
}

/// Agents and landmarks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scene {
    /// The agents, by seat.
    pub agents: Vec<Body>,
    /// Places that stay.
    pub landmarks: Vec<Pair>,
    /// Steps of the episode so far.
    pub steps: u32,
}

/// A state that contains a scene.
pub trait HasScene {
    /// Returns the scene.
    fn scene(&self) -> &Scene;
}

impl HasScene for Scene {
    fn scene(&self) -> &Scene {
        self
    }
}

/// Returns the distance between two places.
#[must_use]
pub fn distance(from: Pair, to: Pair) -> f64 {
    let (dx, dy) = (from[0] - to[0], from[1] - to[1]);
    (dx * dx + dy * dy).sqrt()
}

/// Returns the place of one thing as seen from another.
#[must_use]
pub fn seen_from(own: Pair, at: Pair) -> Pair {
    [at[0] - own[0], at[1] - own[1]]
}

/// Returns the force with which a body at one place pushes another away (softplus of how deep they are in each other). `touch`: the
/// distance at which they begin to touch.
fn contact(own: Pair, other: Pair, touch: f64) -> Pair {
    let apart = distance(own, other);
    if apart == 0.0 {
        return [0.0; 2];
    }
    let z = (touch - apart) / MARGIN;
    let depth = MARGIN * (z.max(0.0) + libm::log1p(libm::exp(-z.abs())));
    [0, 1].map(|axis| CONTACT * (own[axis] - other[axis]) / apart * depth)
}

impl Scene {
    /// Places agents and landmarks evenly in squares around the origin, agents first. `reach`: how far landmarks can be from it.
    pub fn scatter(agents: usize, landmarks: usize, reach: f64, draws: &mut Draws) -> Scene {
        let mut place = |reach: f64| [(); 2].map(|()| draws.range(-reach, reach));
        let agents = (0..agents).map(|_| Body { at: place(1.0), velocity: [0.0; 2] }).collect();
        Scene { agents, landmarks: (0..landmarks).map(|_| place(reach)).collect(), steps: 0 }
    }

    /// Returns the number of agents and of landmarks, and whether all places and velocities are numbers.
    pub fn fits(&self, agents: usize, landmarks: usize) -> Result<(), String> {
        let (n, marks) = (self.agents.len(), self.landmarks.len());
        if (n, marks) != (agents, landmarks) {
            return Err(format!("there are {agents} agents and {landmarks} landmarks, not {n} and {marks}"));
        }
        let bodies = self.agents.iter().flat_map(|body| [body.at, body.velocity]);
        match bodies.chain(self.landmarks.iter().copied()).flatten().all(f64::is_finite) {
            true => Ok(()),
            false => Err("places and velocities must be finite numbers".into()),
        }
    }

    /// Moves all agents for a step: by their velocities, which then change by the pushes and by contact. `obstacles`: the radius of the
    /// landmarks, if agents cannot pass them.
    pub fn step(&mut self, pushes: &[Pair], kind: impl Fn(usize) -> Kind, obstacles: Option<f64>) {
        let mut forces = pushes.to_vec();
        for a in 0..self.agents.len() {
            for b in a + 1..self.agents.len() {
                let force = contact(self.agents[a].at, self.agents[b].at, kind(a).radius + kind(b).radius);
                for (axis, force) in force.into_iter().enumerate() {
                    forces[a][axis] += force;
                    forces[b][axis] -= force;
                }
            }
            if let Some(radius) = obstacles {
                for mark in &self.landmarks {
                    let force = contact(self.agents[a].at, *mark, kind(a).radius + radius);
                    forces[a].iter_mut().zip(force).for_each(|(sum, force)| *sum += force);
                }
            }
        }
        for (i, (body, force)) in self.agents.iter_mut().zip(&forces).enumerate() {
            for ((at, velocity), force) in body.at.iter_mut().zip(&mut body.velocity).zip(force) {
                *at += *velocity * STEP;
                *velocity = *velocity * (1.0 - DAMPING) + force * STEP;
            }
            let [x, y] = body.velocity;
            let speed = (x * x + y * y).sqrt();
            if let Some(top) = kind(i).top_speed.filter(|top| speed > *top) {
                body.velocity = [x, y].map(|along| along / speed * top);
            }
        }
        self.steps += 1;
    }

    /// Returns whether two agents touch.
    #[must_use]
    pub fn touch(&self, a: usize, b: usize, kind: impl Fn(usize) -> Kind) -> bool {
        distance(self.agents[a].at, self.agents[b].at) < kind(a).radius + kind(b).radius
    }

    /// Returns the agents beside one, by seat.
    pub fn others(&self, seat: Seat) -> impl Iterator<Item = (usize, &Body)> {
        self.agents.iter().enumerate().filter(move |(other, _)| *other != seat as usize)
    }
}

/// Declares the five pushes. Their numbers follow those of the actions declared before.
pub fn declare_pushes<E: Environment>(declare: &mut DeclareEnvironment<E>) {
    for (name, _, doc) in WAYS {
        declare.action(name, ActionArgument::Nothing, doc);
    }
}

/// Returns the push of each agent: `first` is the number of the first of the five actions. An agent without a move does not push.
#[must_use]
pub fn pushes(moves: &[Move], agents: usize, first: u16, kind: impl Fn(usize) -> Kind) -> Vec<Pair> {
    let mut pushes = vec![[0.0; 2]; agents];
    for Move { seat, action, .. } in moves {
        let way = action.checked_sub(first).and_then(|way| WAYS.get(usize::from(way)));
        if let (Some((_, direction, _)), Some(push)) = (way, pushes.get_mut(*seat as usize)) {
            *push = direction.map(|along| along * kind(*seat as usize).push);
        }
    }
    pushes
}

/// Returns the name of a number about the i-th of several things.
pub fn named(what: &str, i: usize, axis: usize) -> String {
    format!("{what}-{i}-{}", ["x", "y"][axis])
}

/// Declares an agent's velocity and its place.
pub fn declare_own<E: Environment<State: HasScene>>(declare: &mut DeclareEnvironment<E>) {
    for axis in 0..2 {
        let name = ["velocity-x", "velocity-y"][axis];
        declare.number(name, "the agent's velocity", move |_, state: &E::State, seat| {
            state.scene().agents[*seat as usize].velocity[axis]
        });
    }
    for axis in 0..2 {
        declare.number(["x", "y"][axis], "the agent's place", move |_, state, seat| {
            state.scene().agents[*seat as usize].at[axis]
        });
    }
}

/// Declares where the landmarks are.
pub fn declare_landmarks<E: Environment<State: HasScene>>(declare: &mut DeclareEnvironment<E>, landmarks: usize) {
    for (i, axis) in (0..landmarks).flat_map(|i| [(i, 0), (i, 1)]) {
        let doc = "where a landmark is, as seen from the agent";
        declare.number(named("landmark", i, axis), doc, move |_, state: &E::State, seat| {
            let scene = state.scene();
            scene.landmarks[i][axis] - scene.agents[*seat as usize].at[axis]
        });
    }
}

/// Declares where the other agents are.
pub fn declare_others<E: Environment<State: HasScene>>(declare: &mut DeclareEnvironment<E>, agents: usize) {
    for (i, axis) in (0..agents - 1).flat_map(|i| [(i, 0), (i, 1)]) {
        let doc = "where another agent is, as seen from the agent";
        declare.number(named("other", i, axis), doc, move |_, state: &E::State, seat| {
            let (scene, own) = (state.scene(), *seat as usize);
            let other = if i < own { i } else { i + 1 };
            scene.agents[other].at[axis] - scene.agents[own].at[axis]
        });
    }
}

/// Writes places, as seen from an agent, as the rows of a table.
pub fn write_places(
    table: TableSlot,
    scene: &Scene,
    seat: Seat,
    places: impl Iterator<Item = Pair>,
    observation: &mut ObservationRow<'_>,
) {
    let own = scene.agents[seat as usize].at;
    observation.table(table, |rows| places.for_each(|at| rows.extend(seen_from(own, at))));
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISC: Kind = Kind { radius: 0.05, push: 3.0, top_speed: Some(1.0) };

    #[test]
    fn bodies_keep_their_speed_limits_and_obstacles_stay() {
        let body = Body { at: [0.0, 0.0], velocity: [4.0, 3.0] };
        let mut scene = Scene { agents: vec![body], landmarks: vec![[0.3, 0.3]], steps: 0 };
        scene.step(&[[0.0, 0.0]], |_| DISC, Some(0.2));
        let [x, y] = scene.agents[0].velocity;
        assert!((x * x + y * y - 1.0).abs() < 1e-12 && scene.landmarks == [[0.3, 0.3]], "{x} {y}");
        assert!(scene.fits(1, 1).is_ok() && scene.fits(2, 1).is_err());
        scene.agents[0].at[0] = f64::NAN;
        assert!(scene.fits(1, 1).unwrap_err().contains("finite"));
    }

    #[test]
    fn a_push_of_contact_is_equal_and_opposite() {
        let body = |x: f64| Body { at: [x, 0.0], velocity: [0.0; 2] };
        let mut scene = Scene { agents: vec![body(0.0), body(0.06)], landmarks: Vec::new(), steps: 0 };
        assert!(scene.touch(0, 1, |_| DISC));
        let free = Kind { top_speed: None, ..DISC };
        scene.step(&[[0.0; 2]; 2], |_| free, None);
        assert_eq!(scene.agents[0].velocity[0], -scene.agents[1].velocity[0]);
        // Bodies that are 0.04 deep in each other are pushed by 100 times that for 0.1.
        assert!((scene.agents[1].velocity[0] - 0.4).abs() < 1e-9, "{:?}", scene.agents);
    }
}
