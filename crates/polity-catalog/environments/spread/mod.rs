//! Agents that spread over landmarks without bumping into each other. See README.md.

#[cfg(test)]
mod tests;

use crate::particles::{
    Body, Kind, Pair, Scene, declare_landmarks, declare_others, declare_own, declare_pushes, distance, pushes,
    write_places,
};
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::TableSlot;
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Spread>(files);
}

/// What an agent is.
const AGENT: Kind = Kind { radius: 0.15, push: 5.0, top_speed: None };
/// A landmark with an agent nearer than this is covered.
const COVER: f64 = 0.1;

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Agents of an episode, and landmarks; 1 to 20.
    players: u32,
    /// Steps of an episode; 1 to 100,000.
    steps: u32,
    /// Quarter turns to the left by which all places are turned at the start; 0 to 3. For tests of policies that treat them alike.
    turned: u32,
    /// Weight of an agent's own collisions in its reward, beside what all agents share; 0 to 1.
    own: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { players: 3, steps: 25, turned: 0, own: 0.5 }
    }
}

/// Agents and landmarks.
pub struct Spread {
    params: Params,
    landmarks: TableSlot,
    others: TableSlot,
}

/// Returns the distance of each landmark to the nearest agent.
fn gaps(scene: &Scene) -> impl Iterator<Item = f64> + '_ {
    let nearest = |mark: &Pair| scene.agents.iter().map(|body| distance(body.at, *mark)).fold(f64::INFINITY, f64::min);
    scene.landmarks.iter().map(nearest)
}

/// Returns the number of agents that an agent touches.
fn collisions(scene: &Scene, seat: Seat) -> f64 {
    let touches = |(other, _): &(usize, &Body)| scene.touch(seat as usize, *other, |_| AGENT);
    scene.others(seat).filter(touches).count() as f64
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
        Invalid::within(0..=3, "turned", params.turned)?;
        Invalid::within(0.0..=1.0, "own", params.own)?;
        let players = params.players as usize;
        declare_own(declare);
        declare_landmarks(declare, players);
        declare_others(declare, players);
        let landmarks = declare.table_slot("landmarks", ["x", "y"], "all landmarks, as seen from the agent");
        let others = declare.table_slot("others", ["x", "y"], "all other agents, as seen from the agent");
        declare_pushes(declare);
        declare.column("collisions", "agents that the agent touches", None, |_, scene, seat| collisions(scene, *seat));
        let doc = "share of landmarks with an agent nearer than 0.1";
        declare.scalar("covered", doc, |_, scene| {
            gaps(scene).filter(|gap| *gap < COVER).count() as f64 / scene.landmarks.len().max(1) as f64
        });
        let doc = "distance of a landmark to the nearest agent";
        declare.scalar("gap", doc, |_, scene| gaps(scene).sum::<f64>() / scene.landmarks.len().max(1) as f64);
        Ok(Spread { params, landmarks, others })
    }

    fn seats(&self) -> u32 {
        self.params.players
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Scene {
        let n = self.params.players as usize;
        let mut scene = Scene::scatter(n, n, 1.0, draws);
        for _ in 0..self.params.turned {
            let places = scene.agents.iter_mut().map(|body| &mut body.at).chain(&mut scene.landmarks);
            places.for_each(|at| *at = [-at[1], at[0]]);
        }
        scene
    }

    fn accepts(&self, scene: &Scene) -> Result<(), String> {
        scene.fits(self.params.players as usize, self.params.players as usize)
    }

    fn cut(&self, _: &Scene) -> bool {
        true
    }

    /// The same places as the numbers have, for words.
    fn observe(&self, scene: &Scene, seat: Seat, observation: &mut ObservationRow<'_>) {
        write_places(self.landmarks, scene, seat, scene.landmarks.iter().copied(), observation);
        write_places(self.others, scene, seat, scene.others(seat).map(|(_, body)| body.at), observation);
    }

    /// An agent without a move does not push.
    fn step(&self, scene: &mut Scene, moves: &[Move], _: &mut Draws) -> StepResult {
        let pushes = pushes(moves, scene.agents.len(), 0, |_| AGENT);
        scene.step(&pushes, |_| AGENT, None);
        let shared = -gaps(scene).sum::<f64>();
        let own = self.params.own;
        let reward = |seat: Seat| shared * (1.0 - own) - collisions(scene, seat) * own;
        StepResult {
            rewards: (0..self.params.players).map(reward).collect(),
            results: vec![String::new(); moves.len()],
            done: scene.steps >= self.params.steps,
        }
    }
}
