//! Tests of `schelling` against a plain town that moves one agent after the other.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{open, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn town(agents: u32, rounds: u32, world: Value, policy: Value) -> Value {
    json!({"seed": 11, "rounds": rounds, "agents": agents, "world": world, "cohorts": [{"policy": policy}]})
}

/// A town as a table of rows; `None`: an empty cell.
struct Plain {
    width: i64,
    cells: Vec<Vec<Option<u32>>>,
    /// Empty cells, (row, column).
    vacant: Vec<(i64, i64)>,
    place: Vec<(i64, i64)>,
    groups: u32,
    radius: i64,
}

impl Plain {
    fn new(agents: u32, seed: u64, width: i64, height: i64, groups: u32, radius: i64) -> Self {
        let mut all: Vec<(i64, i64)> = (0..height).flat_map(|y| (0..width).map(move |x| (y, x))).collect();
        Draws::new(seed, Stream::Seat, 0, u32::MAX).shuffle(&mut all);
        let vacant = all.split_off(agents as usize);
        let mut cells = vec![vec![None; width as usize]; height as usize];
        for (agent, (y, x)) in (0..).zip(&all) {
            cells[*y as usize][*x as usize] = Some(agent);
        }
        Plain { width, cells, vacant, place: all, groups, radius }
    }

    fn around(&self, agent: u32) -> (u32, u32) {
        let (y, x) = self.place[agent as usize];
        let (mut like, mut all) = (0, 0);
        for dy in -self.radius..=self.radius {
            for dx in -self.radius..=self.radius {
                let row = (y + dy).rem_euclid(self.cells.len() as i64) as usize;
                let column = (x + dx).rem_euclid(self.width) as usize;
                if let Some(other) = self.cells[row][column]
                    && other != agent
                {
                    all += 1;
                    like += u32::from(other % self.groups == agent % self.groups);
                }
            }
        }
        (like, all)
    }

    /// Runs one round; returns the agents that moved, in order.
    fn round(&mut self, seed: u64, round: u32, content: impl Fn(u32, u32) -> bool) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.place.len() as u32).collect();
        Draws::new(seed, Stream::Order, round, u32::MAX).shuffle(&mut order);
        let mut moved = Vec::new();
        for agent in order {
            let (like, all) = self.around(agent);
            if content(like, all) {
                continue;
            }
            let pick = Draws::new(seed, Stream::World, round, agent).below(self.vacant.len() as u64) as usize;
            let (from, to) = (self.place[agent as usize], self.vacant[pick]);
            self.cells[from.0 as usize][from.1 as usize] = None;
            self.cells[to.0 as usize][to.1 as usize] = Some(agent);
            self.place[agent as usize] = to;
            self.vacant[pick] = from;
            moved.push(agent);
        }
        moved
    }
}

#[test]
fn agrees_with_a_plain_town_move_by_move() {
    for (agents, width, height, groups, radius, least) in
        [(800u32, 32, 32, 2u32, 1i64, Some(0.5)), (750, 32, 30, 3, 2, None), (4500, 75, 75, 2, 3, Some(0.6))]
    {
        for shards in [1, 3] {
            let world = json!({"kind": "schelling", "density": f64::from(agents) / f64::from(width * height),
                "radius": radius, "groups": groups});
            let policy = match least {
                Some(share) => json!({"kind": "relocate", "least_share": share}),
                None => json!({"kind": "relocate", "least_count": 8}),
            };
            let scenario = town(agents, 8, world, policy);
            let mut society = open(&scenario, &Inputs::default(), shards).unwrap();
            let mut plain = Plain::new(agents, 11, i64::from(width), i64::from(height), groups, radius);
            let mut moves = 0;
            for round in 0.. {
                let Then::Round(report) = society.poll(Vec::new()).unwrap().then else { break };
                let mut moved = plain.round(11, round, |like, all| match least {
                    Some(share) => f64::from(like) >= share * f64::from(all),
                    None => like >= 8,
                });
                moves += moved.len();
                assert_eq!(report.acts, moved.len() as u64);
                // The table of acts is sorted by agent.
                moved.sort_unstable();
                let acted: Vec<u32> = society.acts().flat_map(|acts| acts.rows.iter().map(|act| act.who)).collect();
                assert_eq!(acted, moved, "round {round}");
                let (x, y) = (society.column(2), society.column(3));
                let expected =
                    |of: fn(&(i64, i64)) -> i64| plain.place.iter().map(of).map(|i| i as f64).collect::<Vec<_>>();
                assert_eq!((x, y), (expected(|p| p.1), expected(|p| p.0)), "round {round}");
            }
            assert!(moves > 500, "there was something to compare: {moves}");
        }
    }
}

#[test]
fn neighbourhoods_become_more_alike_than_anybody_asks_for() {
    // Schelling 1971: mild preferences, strong segregation.
    let scenario = town(2500, 60, json!({"kind": "schelling"}), json!({"kind": "relocate", "least_share": 0.375}));
    let mut society = open(&scenario, &Inputs::default(), 1).unwrap();
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let before = mean(society.column(1));
    while !matches!(society.poll(Vec::new()).unwrap().then, Then::Done(_)) {}
    let after = mean(society.column(1));
    assert!((0.47..0.53).contains(&before) && after > 0.7, "{before} to {after}");
}

#[test]
fn seeing_a_frozen_round_is_not_the_same() {
    let mut digests = Vec::new();
    for mode in ["random-order", "simultaneous"] {
        let mut scenario = town(800, 6, json!({"kind": "schelling"}), json!({"kind": "relocate"}));
        scenario["activation"] = json!(mode);
        let mut society = open(&scenario, &Inputs::default(), 1).unwrap();
        loop {
            if let Then::Done(outcome) = society.poll(Vec::new()).unwrap().then {
                digests.push(outcome.digest);
                break;
            }
        }
    }
    assert_ne!(digests[0], digests[1]);
}

#[test]
fn refusals_say_what_to_do() {
    let relocate = || json!({"kind": "relocate"});
    let world = |more: Value| {
        let mut world = json!({"kind": "schelling"});
        world.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        refused(&town(100, 1, world, relocate()))
    };
    assert!(world(json!({"density": 0.0})).contains("above 0 and at most 1"));
    assert!(world(json!({"radius": 0})).contains("1..=10"));
    assert!(world(json!({"radius": 6})).contains("reach around the torus"));
    assert!(world(json!({"groups": 0})).contains("1..=20"));
    let policy = |policy: Value| refused(&town(100, 1, json!({"kind": "schelling"}), policy));
    assert!(policy(json!({"kind": "relocate", "least_share": 1.5})).contains("0..=1"));
    assert!(policy(json!({"kind": "relocate", "least_share": 0.5, "least_count": 3})).contains("not both"));
    let mut scenario = town(100, 1, json!({"kind": "schelling"}), relocate());
    scenario["activation"] = json!("event-time");
    assert!(refused(&scenario).contains("no event time"));
    scenario["activation"] = json!("random-order");
    scenario["answers"] = json!({"lag": 2});
    assert!(refused(&scenario).contains("none can act rounds later"));
}
