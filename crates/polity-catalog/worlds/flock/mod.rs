//! Birds on a torus that see each other up to a distance. See README.md.

use polity_kernel::declare::DeclareWorld;
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::sight::{ActArgument, NumberSlot};
use polity_kernel::world::{Deeds, Future, Setup, SightRow, World};
use polity_kernel::{AgentId, Invalid};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Flock>(files);
}

/// Parameters of the world.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Agents a unit of area; the torus is a square of the size that follows.
    density: f64,
    /// Who is at most so far away is a neighbour.
    vision: f64,
    /// Neighbours nearer than this are too near; at most `vision`.
    separation: f64,
    /// Way made in a round.
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
    side: f64,
    /// Cells in a row of the cell list; a cell is at least half as wide as agents see.
    cells: usize,
    /// What a bird sees, in the order in which `observe` writes it.
    seen: [NumberSlot; 9],
    head_x: u16,
}

/// Where a bird is and where it flies.
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
    /// The birds once more, in order of cell and id, as they were when the round began: neighbours lie side by side.
    #[serde(skip)]
    sorted: Vec<Bird>,
    /// Where each cell begins in `sorted`.
    #[serde(skip)]
    starts: Vec<u32>,
    /// Where each bird lies in `sorted`.
    #[serde(skip)]
    places: Vec<u32>,
    /// What each bird sees, in the order of `sorted`: birds of a cell look at the same others, which are in the cache by then.
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

/// What a bird sees of its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct View {
    n: f64,
    /// Sum of their headings.
    match_x: f64,
    match_y: f64,
    /// Sum of the ways to them.
    cohere_x: f64,
    cohere_y: f64,
    /// Sum of the ways away from those that are too near.
    apart_x: f64,
    apart_y: f64,
}

impl Flock {
    /// What a bird sees, and its action `head-x`.
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
        let any = || ActArgument::Number { low: f64::MIN, high: f64::MAX };
        let head_x = declare.action("head-x", any(), "fly along this x; with head-y a direction, of any length");
        declare.action("head-y", any(), "fly along this y");
        declare.column("x", "place, x", Some((0.0, side)), |_, air, who| air.bird(*who).x);
        declare.column("y", "place, y", Some((0.0, side)), |_, air, who| air.bird(*who).y);
        declare.column("heading-x", "heading, x", Some((-1.0, 1.0)), |_, air, who| air.bird(*who).vx);
        declare.column("heading-y", "heading, y", Some((-1.0, 1.0)), |_, air, who| air.bird(*who).vy);
        declare.column("neighbours", "birds within sight", None, |_, air, who| air.view(*who).n);
        let doc = "length of the mean heading: 1 when all fly one way, near 0 without order";
        declare.scalar("order", doc, |_, air| {
            let (x, y) = air.birds.iter().fold((0.0, 0.0), |(x, y), bird| (x + bird.vx, y + bird.vy));
            (x * x + y * y).sqrt() / air.birds.len().max(1) as f64
        });
        (seen, head_x)
    }

    fn cell(&self, bird: &Bird) -> usize {
        let index = |x: f64| ((x / self.side * self.cells as f64) as usize).min(self.cells - 1);
        index(bird.y) * self.cells + index(bird.x)
    }

    /// The cells that lie at most two from `i` along one axis, as runs of neighbouring cells, each with what must be added to a place in
    /// them to see it from here. Fewer than five cells are one run, seen from three sides.
    fn runs(&self, i: usize) -> [(Range<usize>, f64); 3] {
        let (n, side) = (self.cells, self.side);
        if n < 5 {
            return [(0..n, -side), (0..n, 0.0), (0..n, side)];
        }
        [
            (if i < 2 { n + i - 2..n } else { 0..0 }, -side),
            (i.saturating_sub(2)..(i + 3).min(n), 0.0),
            (if i + 2 >= n { 0..i + 3 - n } else { 0..0 }, side),
        ]
    }

    fn see(&self, air: &Air, own: Bird) -> View {
        let (far, near) = (self.params.vision * self.params.vision, self.params.separation * self.params.separation);
        let cell = self.cell(&own);
        let (columns, rows) = (self.runs(cell % self.cells), self.runs(cell / self.cells));
        let mut view = View::default();
        for (rows, up) in rows {
            for row in rows {
                for (columns, right) in &columns {
                    let start = air.starts[row * self.cells + columns.start] as usize;
                    let end = air.starts[row * self.cells + columns.end] as usize;
                    for other in &air.sorted[start..end] {
                        let (dx, dy) = (other.x + right - own.x, other.y + up - own.y);
                        let distance = dx * dx + dy * dy;
                        // Those too far away are added as zeros: to step around them costs more.
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
        // The bird itself was among them; its ways are 0.
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

    fn open(params: Params, setup: &Setup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let Params { density, vision, separation, speed } = params;
        for (key, value) in [("density", density), ("vision", vision), ("separation", separation), ("speed", speed)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Invalid { key: key.into(), message: format!("must be greater than 0, is {value}") });
            }
        }
        if separation > vision {
            let message = format!("nobody sees farther than `vision` ({vision}), is {separation}");
            return Err(Invalid { key: "separation".into(), message });
        }
        let side = (f64::from(setup.agents) / density).sqrt();
        if vision * 2.0 > side {
            let message = format!(
                "must be at most half the side of the torus ({side:.1}), is {vision}: a bird would see another twice; take more \
                 agents or a lower density"
            );
            return Err(Invalid { key: "vision".into(), message });
        }
        // Small cells cost memory, not correctness: no more than four a bird.
        let most = (2.0 * f64::from(setup.agents).sqrt()).ceil();
        let cells = (2.0 * side / vision).floor().clamp(1.0, most) as usize;
        let (seen, head_x) = Flock::declare(declare, side);
        Ok(Flock { params, side, cells, seen, head_x })
    }

    fn begin(&self, setup: &Setup<'_>, draws: &mut Draws) -> Air {
        let bird = |draws: &mut Draws| {
            let (x, y) = (draws.range(0.0, self.side), draws.range(0.0, self.side));
            // A direction, each as likely as any other: a point of the unit disc, but not its middle.
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

    fn observe(&self, air: &Air, person: Person<'_>, sight: &mut SightRow<'_>) {
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
            sight.number(slot, value);
        }
    }

    fn apply(&self, air: &mut Air, deeds: &Deeds<'_>, _: &mut Future) {
        let bird = &mut air.birds[deeds.person.id as usize];
        let (mut x, mut y) = (bird.vx, bird.vy);
        for act in deeds.acts() {
            *(if act.kind == self.head_x { &mut x } else { &mut y }) = act.value;
        }
        let length = (x * x + y * y).sqrt();
        // Who names no direction keeps its own.
        if length > 0.0 && length.is_finite() {
            (bird.vx, bird.vy) = (x / length, y / length);
        }
    }

    fn settle(&self, air: &mut Air, _: &mut Draws) -> Option<String> {
        for bird in &mut air.birds {
            let fly = |x: f64, v: f64| {
                let to = (x + self.params.speed * v).rem_euclid(self.side);
                // The remainder of a tiny negative number is rounded up to the side itself.
                if to >= self.side { 0.0 } else { to }
            };
            (bird.x, bird.y) = (fly(bird.x, bird.vx), fly(bird.y, bird.vy));
        }
        self.restore(air);
        None
    }

    /// Sorts the birds by cell, by counting: it keeps the order of ids. And lets them look around.
    fn restore(&self, air: &mut Air) {
        let Air { birds, sorted, starts, places, .. } = air;
        starts.clear();
        starts.resize(self.cells * self.cells + 1, 0);
        birds.iter().for_each(|bird| starts[self.cell(bird) + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        sorted.resize(birds.len(), Bird::default());
        places.clear();
        for bird in birds.iter() {
            let place = &mut next[self.cell(bird)];
            sorted[*place as usize] = *bird;
            places.push(*place);
            *place += 1;
        }
        let mut views = std::mem::take(&mut air.views);
        let seen = air.sorted.par_iter().with_min_len(1024).map(|bird| self.see(air, *bird));
        seen.collect_into_vec(&mut views);
        air.views = views;
    }
}
