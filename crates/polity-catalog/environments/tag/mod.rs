//! Slow chasers hunt a faster runner among obstacles. See README.md.

#[cfg(test)]
mod tests;

use crate::particles::{
    HasScene, Kind, Pair, Scene, declare_landmarks, declare_others, declare_own, declare_pushes, pushes, write_places,
};
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{Axis, NumberSlot, TableSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Tag>(files);
}

/// What a chaser and a runner are.
const CHASER: Kind = Kind { radius: 0.075, push: 3.0, top_speed: Some(1.0) };
const RUNNER: Kind = Kind { radius: 0.05, push: 4.0, top_speed: Some(1.3) };
/// The radius of an obstacle, and how far from the origin it can be in each direction.
const OBSTACLE: f64 = 0.2;
const REACH: f64 = 0.9;
/// What a runner loses, and every chaser gets, for each chaser that touches a runner.
const CATCH: f64 = 10.0;

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Chasers of an episode; 1 to 20. They have the first seats.
    chasers: u32,
    /// Runners of an episode; 1 to 20.
    runners: u32,
    /// Obstacles of an episode; 0 to 20.
    obstacles: u32,
    /// Steps of an episode; 1 to 100,000.
    steps: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { chasers: 3, runners: 1, obstacles: 2, steps: 25 }
    }
}

/// Chasers, runners and obstacles.
pub struct Tag {
    params: Params,
    velocities: Vec<NumberSlot>,
    obstacles: TableSlot,
    chasers: TableSlot,
    runners: TableSlot,
}

/// Returns what a runner loses for a coordinate: nothing on the field, more and more beyond it.
fn beyond(along: f64) -> f64 {
    match along.abs() {
        x if x < 0.9 => 0.0,
        x if x < 1.0 => (x - 0.9) * 10.0,
        x => libm::exp(2.0 * x - 2.0).min(10.0),
    }
}

impl Tag {
    fn chasers(&self) -> usize {
        self.params.chasers as usize
    }

    fn agents(&self) -> usize {
        (self.params.chasers + self.params.runners) as usize
    }

    fn kind(&self, agent: usize) -> Kind {
        if agent < self.chasers() { CHASER } else { RUNNER }
    }

    /// Returns the chasers that touch a runner.
    fn touching(&self, scene: &Scene, runner: usize) -> f64 {
        (0..self.chasers()).filter(|chaser| scene.touch(runner, *chaser, |agent| self.kind(agent))).count() as f64
    }

    /// Returns the pairs of a chaser and a runner that touch.
    fn catches(&self, scene: &Scene) -> f64 {
        (self.chasers()..self.agents()).map(|runner| self.touching(scene, runner)).sum()
    }

    fn reward(&self, scene: &Scene, agent: usize) -> f64 {
        if agent < self.chasers() {
            return CATCH * self.catches(scene);
        }
        let [x, y]: Pair = scene.agents[agent].at;
        -CATCH * self.touching(scene, agent) - beyond(x) - beyond(y)
    }
}

impl Environment for Tag {
    const NAME: &'static str = "tag";
    const SUMMARY: &'static str =
        "Slow chasers hunt a faster runner among obstacles (simple_tag of the multi-agent particle environments)";
    type Params = Params;
    type State = Scene;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(1..=20, "chasers", params.chasers)?;
        Invalid::within(1..=20, "runners", params.runners)?;
        Invalid::within(0..=20, "obstacles", params.obstacles)?;
        Invalid::within(1..=100_000, "steps", params.steps)?;
        let (chasers, runners) = (params.chasers, params.runners);
        declare_own(declare);
        declare_landmarks(declare, params.obstacles as usize);
        declare_others(declare, (chasers + runners) as usize);
        let doc = "velocity of another runner; 0 for one that is not there";
        let velocities = (0..runners)
            .flat_map(|i| ["x", "y"].map(|axis| declare.number_slot(format!("runner-{i}-velocity-{axis}"), doc)))
            .collect();
        declare
            .number("chases", "1 for a chaser, 0 for a runner", move |_, _, seat| f64::from(u8::from(*seat < chasers)));
        let obstacles = declare.table_slot("obstacles", ["x", "y"], "all obstacles, as seen from the agent");
        let chasers = declare.table_slot("chasers", ["x", "y"], "all other chasers, as seen from the agent");
        let doc = "all other runners, as seen from the agent, with their velocities";
        let runners = declare.table_slot("runners", ["x", "y", "velocity-x", "velocity-y"], doc);
        declare_pushes(declare);
        for (axis, name, along) in [(Axis::X, "at-x", 0), (Axis::Y, "at-y", 1)] {
            declare.coordinate(axis, name, "the agent's place", (-1.5, 1.5), move |_, scene: &Scene, seat| {
                scene.agents[*seat as usize].at[along]
            });
        }
        declare.scalar("catches", "pairs of a chaser and a runner that touch", |tag: &Tag, scene| tag.catches(scene));
        Ok(Tag { params, velocities, obstacles, chasers, runners })
    }

    fn seats(&self) -> u32 {
        self.params.chasers + self.params.runners
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Scene {
        Scene::scatter(self.agents(), self.params.obstacles as usize, REACH, draws)
    }

    fn accepts(&self, scene: &Scene) -> Result<(), String> {
        scene.fits(self.agents(), self.params.obstacles as usize)
    }

    fn cut(&self, _: &Scene) -> bool {
        true
    }

    fn observe(&self, scene: &Scene, seat: Seat, observation: &mut ObservationRow<'_>) {
        let others = || scene.scene().others(seat);
        let runners = || others().filter(|(other, _)| *other >= self.chasers());
        let velocities = runners().flat_map(|(_, body)| body.velocity);
        for (slot, velocity) in self.velocities.iter().zip(velocities) {
            observation.number(*slot, velocity);
        }
        write_places(self.obstacles, scene, seat, scene.landmarks.iter().copied(), observation);
        let chasers = others().filter(|(other, _)| *other < self.chasers()).map(|(_, body)| body.at);
        write_places(self.chasers, scene, seat, chasers, observation);
        let own = scene.agents[seat as usize].at;
        observation.table(self.runners, |rows| {
            for (_, body) in runners() {
                let [x, y] = crate::particles::seen_from(own, body.at);
                rows.extend([x, y, body.velocity[0], body.velocity[1]]);
            }
        });
    }

    /// An agent without a move does not push.
    fn step(&self, scene: &mut Scene, moves: &[Move], _: &mut Draws) -> StepResult {
        let pushes = pushes(moves, scene.agents.len(), 0, |agent| self.kind(agent));
        scene.step(&pushes, |agent| self.kind(agent), Some(OBSTACLE));
        StepResult {
            rewards: (0..self.agents()).map(|agent| self.reward(scene, agent)).collect(),
            results: vec![String::new(); moves.len()],
            done: scene.steps >= self.params.steps,
        }
    }
}
