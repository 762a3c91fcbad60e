//! Birds on a torus that see each other up to a distance. See README.md.

#[cfg(test)]
mod tests;

use crate::spaces::plane::Plane;
use polity_kernel::interface::{ActionArgument, Axis, NumberSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use polity_kernel::{AgentId, Invalid};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Flock>(files);
}

/// Parameters of the world.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Agents per unit of area; the torus is a square of the resulting size.
    density: f64,
    /// Maximum distance of a neighbour.
    vision: f64,
    /// Neighbours nearer than this are too near; at most `vision`.
    separation: f64,
    /// Distance flown per round.
    speed: f64,
}

impl Default for Params {
    fn default() -> Self {
        // The density of 400 birds on 150 x 150.
        Params { density: 400.0 / (150.0 * 150.0), vision: 15.0, separation: 4.0, speed: 1.0 }
    }
}

/// Birds on a torus.
pub struct Flock {
    params: Params,
    plane: Plane,
    /// A bird's observations, in the order in which `observe` writes them.
    seen: [NumberSlot; 9],
    head_x: u16,
}

/// Position and heading of a bird.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Bird {
    x: f64,
    y: f64,
    /// A unit vector.
    vx: f64,
    vy: f64,
}

/// All birds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Air {
    birds: Vec<Bird>,
    /// The birds again, sorted by cell and id, as they were when the round began, so that neighbours are adjacent.
    #[serde(skip)]
    sorted: Vec<Bird>,
    /// Start of each cell in `sorted`.
    #[serde(skip)]
    starts: Vec<u32>,
    /// Position of each bird in `sorted`.
    #[serde(skip)]
    places: Vec<u32>,
    /// Each bird's view, in the order of `sorted`: birds of a cell look at the same others, which are in the cache by then.
    #[serde(skip)]
    views: Vec<View>,
}

impl Air {
    fn bird(&self, who: AgentId) -> Bird {
        self.birds[who as usize]
    }

    fn view(&self, who: AgentId) -> View {
        self.views[self.places[who as usize] as usize]
    }
}

/// A bird's view of its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct View {
    n: f64,
    /// Sum of their headings.
    match_x: f64,
    match_y: f64,
    /// Sum of the vectors to them.
    cohere_x: f64,
    cohere_y: f64,
    /// Sum of the vectors away from those that are too near.
    apart_x: f64,
    apart_y: f64,
}

impl Flock {
    /// Declares a bird's observations, and its action `head-x`.
    fn declare(declare: &mut DeclareWorld<Self>, side: f64) -> ([NumberSlot; 9], u16) {
        let seen = [
            ("neighbours", "birds within sight"),
            ("heading-x", "own heading (a unit vector), x"),
            ("heading-y", "own heading, y"),
            ("match-x", "mean heading of the neighbours, x; 0 without any"),
            ("match-y", "mean heading of the neighbours, y"),
            ("cohere-x", "mean way to the neighbours, x"),
            ("cohere-y", "mean way to the neighbours, y"),
            ("apart-x", "way from the neighbours that are too near, summed and divided by all neighbours, x"),
            ("apart-y", "the same, y"),
        ];
        let seen = seen.map(|(name, doc)| declare.number_slot(name, doc));
        let any = || ActionArgument::Number { low: f64::MIN, high: f64::MAX };
        let head_x = declare.action("head-x", any(), "fly along this x; with head-y a direction, of any length");
        declare.action("head-y", any(), "fly along this y");
        declare.coordinate(Axis::X, "x", "position, x", (0.0, side), |_, air, who| air.bird(*who).x);
        declare.coordinate(Axis::Y, "y", "position, y", (0.0, side), |_, air, who| air.bird(*who).y);
        declare.coordinate(Axis::HeadingX, "heading-x", "heading, x", (-1.0, 1.0), |_, air, who| air.bird(*who).vx);
        declare.coordinate(Axis::HeadingY, "heading-y", "heading, y", (-1.0, 1.0), |_, air, who| air.bird(*who).vy);
        declare.column("neighbours", "birds within sight", None, |_, air, who| air.view(*who).n);
        let doc = "length of the mean heading: 1 when all fly in one direction, near 0 without order";
        declare.scalar("order", doc, |_, air| {
            let (x, y) = air.birds.iter().fold((0.0, 0.0), |(x, y), bird| (x + bird.vx, y + bird.vy));
            (x * x + y * y).sqrt() / air.birds.len().max(1) as f64
        });
        (seen, head_x)
    }

    fn see(&self, air: &Air, own: Bird) -> View {
        let (far, near) = (self.params.vision * self.params.vision, self.params.separation * self.params.separation);
        let (cell, cells) = (self.plane.cell(own.x, own.y), self.plane.cells);
        let (columns, rows) = (self.plane.runs(cell % cells), self.plane.runs(cell / cells));
        let mut view = View::default();
        for (rows, up) in rows {
            for row in rows {
                for (columns, right) in &columns {
                    let start = air.starts[row * cells + columns.start] as usize;
                    let end = air.starts[row * cells + columns.end] as usize;
                    for other in &air.sorted[start..end] {
                        let (dx, dy) = (other.x + right - own.x, other.y + up - own.y);
                        let distance = dx * dx + dy * dy;
                        // Birds too far away are added as zeros: a branch would cost more.
                        let seen = f64::from(u8::from(distance <= far));
                        let close = f64::from(u8::from(distance < near));
                        view.n += seen;
                        view.match_x += seen * other.vx;
                        view.match_y += seen * other.vy;
                        view.cohere_x += seen * dx;
                        view.cohere_y += seen * dy;
                        view.apart_x -= close * dx;
                        view.apart_y -= close * dy;
                    }
                }
            }
        }
        // The bird itself was included; its vectors are 0.
        view.n -= 1.0;
        view.match_x -= own.vx;
        view.match_y -= own.vy;
        view
    }
}

impl World for Flock {
    const NAME: &'static str = "flock";
    const SUMMARY: &'static str = "Birds on a torus that see each other up to a distance (boids)";
    type Params = Params;
    type State = Air;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let Params { density, vision, separation, speed } = params;
        for (key, value) in [("density", density), ("vision", vision), ("separation", separation), ("speed", speed)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Invalid { key: key.into(), message: format!("must be greater than 0, is {value}") });
            }
        }
        if separation > vision {
            let message = format!("must be at most `vision` ({vision}), is {separation}: birds see no farther");
            return Err(Invalid { key: "separation".into(), message });
        }
        let side = (f64::from(setup.agents) / density).sqrt();
        if vision * 2.0 > side {
            let message = format!(
                "must be at most half the side of the torus ({side:.1}), is {vision}: a bird would see another twice; \
                 use more agents or a lower density"
            );
            return Err(Invalid { key: "vision".into(), message });
        }
        let (seen, head_x) = Flock::declare(declare, side);
        Ok(Flock { params, plane: Plane::new(side, vision, setup.agents), seen, head_x })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> Air {
        let bird = |draws: &mut Draws| {
            let (x, y) = (draws.range(0.0, self.plane.side), draws.range(0.0, self.plane.side));
            // A uniformly random direction: a point of the unit disc, but not its centre.
            loop {
                let (vx, vy) = (draws.range(-1.0, 1.0), draws.range(-1.0, 1.0));
                let length = (vx * vx + vy * vy).sqrt();
                if length > 1e-3 && length <= 1.0 {
                    return Bird { x, y, vx: vx / length, vy: vy / length };
                }
            }
        };
        let mut air = Air { birds: (0..setup.agents).map(|_| bird(draws)).collect(), ..Air::default() };
        self.restore(&mut air);
        air
    }

    fn observe(&self, air: &Air, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let (own, view) = (air.bird(person.id), air.view(person.id));
        let by = 1.0 / view.n.max(1.0);
        let values = [
            view.n,
            own.vx,
            own.vy,
            view.match_x * by,
            view.match_y * by,
            view.cohere_x * by,
            view.cohere_y * by,
            view.apart_x * by,
            view.apart_y * by,
        ];
        for (slot, value) in self.seen.into_iter().zip(values) {
            observation.number(slot, value);
        }
    }

    fn apply(&self, air: &mut Air, actions: &AgentActions<'_>, _: &mut Future) {
        let bird = &mut air.birds[actions.person.id as usize];
        let (mut x, mut y) = (bird.vx, bird.vy);
        for act in actions.acts() {
            *(if act.kind == self.head_x { &mut x } else { &mut y }) = act.value;
        }
        let length = (x * x + y * y).sqrt();
        // A bird that names no direction keeps its own.
        if length > 0.0 && length.is_finite() {
            (bird.vx, bird.vy) = (x / length, y / length);
        }
    }

    fn end_round(&self, air: &mut Air, _: &mut Draws) -> Option<String> {
        for bird in &mut air.birds {
            let fly = |x: f64, v: f64| self.plane.along(x, self.params.speed * v);
            (bird.x, bird.y) = (fly(bird.x, bird.vx), fly(bird.y, bird.vy));
        }
        self.restore(air);
        None
    }

    /// Sorts the birds by cell and computes their views.
    fn restore(&self, air: &mut Air) {
        let Air { birds, sorted, starts, places, .. } = air;
        self.plane.sort(starts, places, birds.iter().map(|bird| (bird.x, bird.y)));
        sorted.resize(birds.len(), Bird::default());
        for (bird, place) in birds.iter().zip(places.iter()) {
            sorted[*place as usize] = *bird;
        }
        let mut views = std::mem::take(&mut air.views);
        let seen = air.sorted.par_iter().with_min_len(1024).map(|bird| self.see(air, *bird));
        seen.collect_into_vec(&mut views);
        air.views = views;
    }
}
