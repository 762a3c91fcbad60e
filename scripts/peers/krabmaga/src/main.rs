//! Flocking and segregation on krABMaga, written against its public interface the way its examples are: a schedule of boxed agents,
//! fields that are read as they were and written for the next step.
//!
//! `peer-krabmaga flock|schelling AGENTS STEPS` prints the milliseconds of a step.

use krabmaga::engine::agent::Agent;
use krabmaga::engine::fields::dense_number_grid_2d::DenseNumberGrid2D;
use krabmaga::engine::fields::field::Field;
use krabmaga::engine::fields::field_2d::{Field2D, Location2D, toroidal_distance, toroidal_transform};
use krabmaga::engine::location::{Int2D, Real2D};
use krabmaga::engine::schedule::Schedule;
use krabmaga::engine::state::State;
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Instant;

/// A small generator, so that nothing but krABMaga is needed (splitmix64).
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u32 << 24) as f32
    }
}

macro_rules! state {
    () => {
        fn as_any_mut(&mut self) -> &mut dyn Any {
            self
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
        fn as_state_mut(&mut self) -> &mut dyn State {
            self
        }
        fn as_state(&self) -> &dyn State {
            self
        }
        fn reset(&mut self) {}
    };
}

// ------------------------------------------------------------------ flock

#[derive(Clone, Copy)]
struct Bird {
    id: u32,
    place: Real2D,
    heading: Real2D,
}

impl Hash for Bird {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.id.hash(hasher);
    }
}

impl PartialEq for Bird {
    fn eq(&self, other: &Bird) -> bool {
        self.id == other.id
    }
}

impl Eq for Bird {}

impl fmt::Display for Bird {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)
    }
}

impl Location2D<Real2D> for Bird {
    fn get_location(self) -> Real2D {
        self.place
    }

    fn set_location(&mut self, place: Real2D) {
        self.place = place;
    }
}

const VISION: f32 = 15.0;

struct Air {
    field: Field2D<Bird>,
    agents: u32,
    side: f32,
    seen: std::cell::Cell<u64>,
}

impl State for Air {
    state!();

    fn init(&mut self, schedule: &mut Schedule) {
        let mut random = Random(1);
        for id in 0..self.agents {
            let place = Real2D { x: self.side * random.unit(), y: self.side * random.unit() };
            let angle = random.unit() * std::f32::consts::TAU;
            let bird = Bird { id, place, heading: Real2D { x: angle.cos(), y: angle.sin() } };
            self.field.set_object_location(bird, place);
            schedule.schedule_repeating(Box::new(bird), 0.0, 0);
        }
        self.field.lazy_update();
    }

    fn update(&mut self, _: u64) {
        self.field.lazy_update();
    }
}

impl Agent for Bird {
    fn step(&mut self, state: &mut dyn State) {
        let air = state.as_any().downcast_ref::<Air>().expect("the flock's state");
        let mut sums = [0.0f32; 6];
        let mut n = 0.0f32;
        for other in air.field.get_neighbors_within_distance(self.place, VISION) {
            if other.id == self.id {
                continue;
            }
            let dx = toroidal_distance(other.place.x, self.place.x, air.side);
            let dy = toroidal_distance(other.place.y, self.place.y, air.side);
            n += 1.0;
            sums[0] += dx;
            sums[1] += dy;
            sums[2] += other.heading.x;
            sums[3] += other.heading.y;
            if dx * dx + dy * dy < 16.0 {
                sums[4] -= dx;
                sums[5] -= dy;
            }
        }
        air.seen.set(air.seen.get() + n as u64);
        let by = 1.0 / n.max(1.0);
        let x = self.heading.x + (0.03 * sums[0] + 0.05 * sums[2] + 0.015 * sums[4]) * by;
        let y = self.heading.y + (0.03 * sums[1] + 0.05 * sums[3] + 0.015 * sums[5]) * by;
        let length = (x * x + y * y).sqrt().max(1e-6);
        self.heading = Real2D { x: x / length, y: y / length };
        self.place = Real2D {
            x: toroidal_transform(self.place.x + self.heading.x, air.side),
            y: toroidal_transform(self.place.y + self.heading.y, air.side),
        };
        air.field.set_object_location(*self, self.place);
    }
}

// ------------------------------------------------------------------ schelling

struct Town {
    grid: DenseNumberGrid2D<u8>,
    agents: u32,
    width: i32,
}

impl State for Town {
    state!();

    fn init(&mut self, schedule: &mut Schedule) {
        let mut random = Random(2);
        let mut cells: Vec<i32> = (0..self.width * self.width).collect();
        for i in (1..cells.len()).rev() {
            cells.swap(i, random.next() as usize % (i + 1));
        }
        for id in 0..self.agents {
            let cell = cells[id as usize];
            let place = Int2D { x: cell % self.width, y: cell / self.width };
            let group = (id % 2) as u8;
            self.grid.set_value_location(group, &place);
            schedule.schedule_repeating(Box::new(Person { group, place, random: Random(u64::from(id)) }), 0.0, 0);
        }
        self.grid.lazy_update();
    }

    fn update(&mut self, _: u64) {
        self.grid.lazy_update();
    }
}

#[derive(Clone)]
struct Person {
    group: u8,
    place: Int2D,
    random: Random,
}

impl Agent for Person {
    fn step(&mut self, state: &mut dyn State) {
        let town = state.as_any().downcast_ref::<Town>().expect("the town's state");
        let mut like = 0;
        for dy in -2..=2 {
            for dx in -2..=2 {
                let at = Int2D {
                    x: (self.place.x + dx).rem_euclid(town.width),
                    y: (self.place.y + dy).rem_euclid(town.width),
                };
                if (dx, dy) != (0, 0) && town.grid.get_value(&at) == Some(self.group) {
                    like += 1;
                }
            }
        }
        let mut to = self.place;
        // By trial: the grid's own choice of an empty cell looks at every cell, which is twenty times slower.
        while like < 8 {
            let cell = (self.random.next() % (town.width as u64 * town.width as u64)) as i32;
            let free = Int2D { x: cell % town.width, y: cell / town.width };
            if town.grid.get_value(&free).is_none() {
                to = free;
                break;
            }
        }
        town.grid.set_value_location(self.group, &to);
        self.place = to;
    }
}

fn run(mut state: Box<dyn State>, steps: u32) -> (Box<dyn State>, f64) {
    let mut schedule = Schedule::new();
    state.init(&mut schedule);
    let began = Instant::now();
    for _ in 0..steps {
        schedule.step(state.as_state_mut());
    }
    (state, began.elapsed().as_secs_f64() * 1000.0 / f64::from(steps))
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize| args.get(i).and_then(|text| text.parse::<u32>().ok());
    let (Some(which), Some(agents), Some(steps)) = (args.get(1), number(2), number(3)) else {
        eprintln!("peer-krabmaga flock|schelling AGENTS STEPS");
        std::process::exit(2);
    };
    let ms = if which == "flock" {
        let side = (agents as f32 * 150.0 * 150.0 / 400.0).sqrt();
        let air = Air { field: Field2D::new(side, side, VISION, true), agents, side, seen: 0.into() };
        let (state, ms) = run(Box::new(air), steps);
        let air = state.as_any().downcast_ref::<Air>().expect("the flock's state");
        eprintln!("mean neighbours {:.1}", air.seen.get() as f64 / f64::from(agents) / f64::from(steps));
        ms
    } else {
        let width = (f64::from(agents) / 0.8).sqrt().ceil() as i32;
        run(Box::new(Town { grid: DenseNumberGrid2D::new(width, width), agents, width }), steps).1
    };
    println!("{ms:.3}");
}
