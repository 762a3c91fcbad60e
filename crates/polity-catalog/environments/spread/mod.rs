//! Agents that spread over landmarks without bumping into each other. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
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
    registry.environment::<Spread>(files);
}

/// Duration of a step, and the part of the velocity that is lost in it.
const STEP: f64 = 0.1;
const DAMPING: f64 = 0.25;
/// Force of a push, and how hard bodies that touch push each other away.
const PUSH: f64 = 5.0;
const CONTACT: f64 = 100.0;
/// How softly contact begins.
const MARGIN: f64 = 1e-3;
/// Two bodies that are nearer than this collide: twice the radius of an agent.
const TOUCH: f64 = 0.3;
/// A landmark with an agent nearer than this is covered.
const COVER: f64 = 0.1;
/// The actions, with their directions.
const PUSHES: [(&str, [f64; 2], &str); 5] = [
    ("stay", [0.0, 0.0], "do not push"),
    ("left", [-PUSH, 0.0], "push to the left"),
    ("right", [PUSH, 0.0], "push to the right"),
    ("down", [0.0, -PUSH], "push down"),
    ("up", [0.0, PUSH], "push up"),
];

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Agents of an episode, and landmarks; 1 to 20.
    players: u32,
    /// Steps of an episode; 1 to 100,000.
    steps: u32,
    /// Weight of an agent's own collisions in its reward, beside what all agents share; 0 to 1.
    own: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { players: 3, steps: 25, own: 0.5 }
    }
}

/// Agents and landmarks.
pub struct Spread {
    params: Params,
    landmarks: TableSlot,
    others: TableSlot,
}

/// A body: its place and its velocity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Body {
    at: [f64; 2],
    velocity: [f64; 2],
}

/// The state of an episode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scene {
    agents: Vec<Body>,
    landmarks: Vec<[f64; 2]>,
    steps: u32,
}

fn distance(from: [f64; 2], to: [f64; 2]) -> f64 {
    let (dx, dy) = (from[0] - to[0], from[1] - to[1]);
    (dx * dx + dy * dy).sqrt()
}

/// Returns the force with which a body at one place pushes another away (softplus of how deep they are in each other).
fn contact(own: [f64; 2], other: [f64; 2]) -> [f64; 2] {
    let apart = distance(own, other);
    if apart == 0.0 {
        return [0.0; 2];
    }
    let z = (TOUCH - apart) / MARGIN;
    let depth = MARGIN * (z.max(0.0) + libm::log1p(libm::exp(-z.abs())));
    [0, 1].map(|axis| CONTACT * (own[axis] - other[axis]) / apart * depth)
}

impl Scene {
    /// Moves all bodies for a step: by their velocities, which then change by the pushes and by contact.
    fn step(&mut self, pushes: &[[f64; 2]]) {
        let mut forces = pushes.to_vec();
        for a in 0..self.agents.len() {
            for b in a + 1..self.agents.len() {
                let force = contact(self.agents[a].at, self.agents[b].at);
                for (axis, force) in force.into_iter().enumerate() {
                    forces[a][axis] += force;
                    forces[b][axis] -= force;
                }
            }
        }
        for (body, force) in self.agents.iter_mut().zip(&forces) {
            for ((at, velocity), force) in body.at.iter_mut().zip(&mut body.velocity).zip(force) {
                *at += *velocity * STEP;
                *velocity = *velocity * (1.0 - DAMPING) + force * STEP;
            }
        }
        self.steps += 1;
    }

    /// Returns the distance of each landmark to the nearest agent.
    fn gaps(&self) -> impl Iterator<Item = f64> + '_ {
        let nearest =
            |mark: &[f64; 2]| self.agents.iter().map(|body| distance(body.at, *mark)).fold(f64::INFINITY, f64::min);
        self.landmarks.iter().map(nearest)
    }

    /// Returns the agents that an agent touches.
    fn collisions(&self, seat: usize) -> f64 {
        let own = self.agents[seat].at;
        let touches = |(other, body): &(usize, &Body)| *other != seat && distance(own, body.at) < TOUCH;
        self.agents.iter().enumerate().filter(touches).count() as f64
    }
}

/// Returns the name of a number about the i-th of several things.
fn named(what: &str, i: usize, axis: usize) -> String {
    format!("{what}-{i}-{}", ["x", "y"][axis])
}

impl Environment for Spread {
    const NAME: &'static str = "spread";
    const SUMMARY: &'static str =
        "Agents cover landmarks without collisions (simple_spread of the multi-agent particle environments)";
    type Params = Params;
    type State = Scene;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(1..=20, "players", params.players)?;
        Invalid::within(1..=100_000, "steps", params.steps)?;
        Invalid::within(0.0..=1.0, "own", params.own)?;
        let players = params.players as usize;
        for axis in 0..2 {
            let name = ["velocity-x", "velocity-y"][axis];
            declare.number(name, "the agent's velocity", move |_, scene: &Scene, seat| {
                scene.agents[*seat as usize].velocity[axis]
            });
        }
        for axis in 0..2 {
            declare.number(["x", "y"][axis], "the agent's place", move |_, scene, seat| {
                scene.agents[*seat as usize].at[axis]
            });
        }
        for (i, axis) in (0..players).flat_map(|i| [(i, 0), (i, 1)]) {
            let doc = "where a landmark is, as seen from the agent";
            declare.number(named("landmark", i, axis), doc, move |_, scene, seat| {
                scene.landmarks[i][axis] - scene.agents[*seat as usize].at[axis]
            });
        }
        for (i, axis) in (0..players - 1).flat_map(|i| [(i, 0), (i, 1)]) {
            let doc = "where another agent is, as seen from the agent";
            declare.number(named("other", i, axis), doc, move |_, scene, seat| {
                let own = *seat as usize;
                let other = if i < own { i } else { i + 1 };
                scene.agents[other].at[axis] - scene.agents[own].at[axis]
            });
        }
        let landmarks = declare.table_slot("landmarks", ["x", "y"], "all landmarks, as seen from the agent");
        let others = declare.table_slot("others", ["x", "y"], "all other agents, as seen from the agent");
        for (name, _, doc) in PUSHES {
            declare.action(name, ActionArgument::Nothing, doc);
        }
        declare.column("collisions", "agents that the agent touches", None, |_, scene, seat| {
            scene.collisions(*seat as usize)
        });
        let doc = "share of landmarks with an agent nearer than 0.1";
        declare.scalar("covered", doc, |_, scene| {
            scene.gaps().filter(|gap| *gap < COVER).count() as f64 / scene.landmarks.len().max(1) as f64
        });
        let doc = "distance of a landmark to the nearest agent";
        declare.scalar("gap", doc, |_, scene| scene.gaps().sum::<f64>() / scene.landmarks.len().max(1) as f64);
        Ok(Spread { params, landmarks, others })
    }

    fn seats(&self) -> u32 {
        self.params.players
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Scene {
        let mut place = || [(); 2].map(|()| draws.range(-1.0, 1.0));
        let n = self.params.players as usize;
        let agents = (0..n).map(|_| Body { at: place(), velocity: [0.0; 2] }).collect();
        Scene { agents, landmarks: (0..n).map(|_| place()).collect(), steps: 0 }
    }

    fn cut(&self, _: &Scene) -> bool {
        true
    }

    /// The same places as the numbers have, for words.
    fn observe(&self, scene: &Scene, seat: Seat, observation: &mut ObservationRow<'_>) {
        let own = seat as usize;
        let from = |at: [f64; 2]| [0, 1].map(|axis| at[axis] - scene.agents[own].at[axis]);
        observation.table(self.landmarks, |rows| {
            scene.landmarks.iter().for_each(|mark| rows.extend(from(*mark)));
        });
        observation.table(self.others, |rows| {
            let others = scene.agents.iter().enumerate().filter(|(other, _)| *other != own);
            others.for_each(|(_, body)| rows.extend(from(body.at)));
        });
    }

    /// An agent without a move does not push.
    fn step(&self, scene: &mut Scene, moves: &[Move], _: &mut Draws) -> StepResult {
        let mut pushes = vec![[0.0; 2]; scene.agents.len()];
        for Move { seat, action, .. } in moves {
            pushes[*seat as usize] = PUSHES[usize::from(*action)].1;
        }
        scene.step(&pushes);
        let shared = -scene.gaps().sum::<f64>();
        let own = self.params.own;
        let reward = |seat: Seat| shared * (1.0 - own) - scene.collisions(seat as usize) * own;
        StepResult {
            rewards: (0..self.params.players).map(reward).collect(),
            results: vec![String::new(); moves.len()],
            done: scene.steps >= self.params.steps,
        }
    }
}
