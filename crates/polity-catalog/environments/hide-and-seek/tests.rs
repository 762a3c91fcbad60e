//! Lines of sight and views against a plain computation, pushes and locks by hand, and a rule that closes the door.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Crate, Room, Team, is_clear};
use crate::grid::{Cell, Size};
use crate::testing::{metric, play, refused, registry};
use polity_kernel::environment::{Env, Episode, StepResult};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::tree::Node;
use serde_json::{Value, json};

/// Whether nothing hides one cell from another, with fractions: in each column or row on the way, a cell whose centre is at most half a cell
/// from the line hides nothing.
fn plainly_clear(from: [i32; 2], to: [i32; 2], hides: &dyn Fn(i32, i32) -> bool) -> bool {
    let way = [to[0] - from[0], to[1] - from[1]];
    let long = usize::from(way[1].abs() > way[0].abs());
    let n = way[long].abs();
    (1..n).all(|i| {
        let along = from[long] + i * way[long].signum();
        let across = f64::from(from[1 - long]) + f64::from(way[1 - long]) * f64::from(i) / f64::from(n);
        (-1..40).filter(|cell| (f64::from(*cell) - across).abs() < 0.5 + 1e-9).any(|cell| match long {
            0 => !hides(along, cell),
            _ => !hides(cell, along),
        })
    })
}

fn pair(cell: Cell) -> [i32; 2] {
    [cell.x, cell.y].map(i32::from)
}

#[test]
fn lines_of_sight_are_those_of_a_plain_computation_and_symmetric() {
    let size = Size::square(11);
    let (mut clear, mut total) = (0, 0);
    for index in 0..4 {
        let mut draws = Draws::new(7, Stream::Episode, 0, index);
        let walls: Vec<bool> = (0..size.cells()).map(|_| draws.chance(0.25)).collect();
        let hides = |cell: Cell| walls[size.index(cell)];
        let plain = |x: i32, y: i32| walls[(y * 11 + x) as usize];
        let turned = |cell: Cell| walls[size.index(Cell { x: cell.y, y: 10 - cell.x })];
        for from in size.all() {
            for to in size.all() {
                let found = is_clear(size, from, to, hides);
                assert_eq!(found, plainly_clear(pair(from), pair(to), &plain), "{from:?} {to:?}");
                assert_eq!(found, is_clear(size, to, from, hides), "{from:?} {to:?}");
                let turn = |cell: Cell| Cell { x: 10 - cell.y, y: cell.x };
                assert_eq!(found, is_clear(size, turn(from), turn(to), turned), "{from:?} {to:?}");
                (clear, total) = (clear + u32::from(found), total + 1);
            }
        }
    }
    assert!(clear * 10 > total && clear * 2 < total, "{clear} of {total}");
}

#[test]
fn a_closed_room_hides_all_who_are_in_it() {
    let size = Size::square(12);
    let seen = |door: Cell| {
        let wall = |cell: Cell| cell.x.min(cell.y) == 6 && cell != door;
        let (inside, outside): (Vec<Cell>, Vec<Cell>) =
            size.all().filter(|cell| cell.x.min(cell.y) != 6).partition(|cell| cell.x.min(cell.y) > 6);
        inside
            .iter()
            .map(|one| outside.iter().filter(|other| is_clear(size, *one, **other, wall)).count())
            .sum::<usize>()
    };
    assert_eq!(seen(Cell { x: 0, y: 0 }), 0);
    assert!(seen(Cell { x: 6, y: 8 }) > 50);
}

fn env(more: &Value) -> Env {
    let mut world = json!({"kind": "hide-and-seek"});
    more.as_object().unwrap().iter().for_each(|(key, value)| world[key] = value.clone());
    registry().make_env(&Node::from_json(&world)).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads rooms of seven rows: `#` walls, `.` floor, `D` the door, H hiders, S seekers, o a box, L one that hiders have locked, B one in the
/// door.
fn drawn(rows: [&str; 7], steps: u32) -> Room {
    let mut room =
        Room { door: Cell { x: 3, y: 4 }, agents: Vec::new(), boxes: Vec::new(), hidden: 0, pushes: 0, steps };
    let mut seekers = Vec::new();
    for (y, row) in (0..).zip(rows) {
        for (x, mark) in (0..).zip(row.chars()) {
            let at = Cell { x, y };
            match mark {
                'H' => room.agents.push(at),
                'S' => seekers.push(at),
                'o' | 'B' => room.boxes.push(Crate { at, lock: None }),
                'L' => room.boxes.push(Crate { at, lock: Some(Team::Hiders) }),
                _ => {}
            }
        }
    }
    room.agents.extend(seekers);
    room
}

fn room(episode: &Episode) -> Room {
    serde_json::from_value(episode.state().unwrap()).unwrap()
}

fn begun(env: &Env, room: &Room) -> Episode {
    let mut episode = env.begin(&Default::default(), 1, 0);
    episode.begin_from(&serde_json::to_value(room).unwrap()).unwrap_or_else(|error| panic!("{error}"));
    episode
}

fn names(episode: &Episode, seat: u32) -> Vec<String> {
    episode.offered(seat).unwrap().into_iter().map(|offer| offer.name).collect()
}

fn step(episode: &mut Episode, names: &[&str]) -> StepResult {
    let of = |(seat, name): (u32, &&str)| {
        let offered = episode.offered(seat).unwrap();
        let offer = offered.iter().find(|offer| offer.name == *name);
        offer.unwrap_or_else(|| panic!("seat {seat} is not offered {name}")).with(seat, Vec::new())
    };
    let moves: Vec<_> = (0..).zip(names).map(of).collect();
    episode.step(&moves).unwrap()
}

const HALL: [&str; 7] = [
    ".......", //
    ".......", "..S....", "...####", "..SDoH.", "...#...", "...#H..",
];

#[test]
fn boxes_are_pushed_into_the_door_and_locked_by_a_team() {
    let env = env(&json!({"preparation": 2}));
    let mut episode = begun(&env, &drawn(HALL, 0));
    assert_eq!(names(&episode, 0), ["up", "down", "left", "right", "stay", "lock"][1..]);
    // Seekers wait. The box cannot be pushed at the wall above it.
    assert_eq!(names(&episode, 2), ["stay"]);
    assert_eq!(step(&mut episode, &["left", "stay", "stay", "stay"]).rewards, [0.0; 4]);
    let now = room(&episode);
    assert_eq!((now.boxes[0].at, now.agents[0], now.pushes), (now.door, Cell { x: 4, y: 4 }, 1));
    // A seeker stands behind the box in the door, so it cannot be pushed on.
    assert!(!names(&episode, 0).contains(&"left".to_string()));
    step(&mut episode, &["lock", "up", "stay", "stay"]);
    assert_eq!(room(&episode).boxes[0].lock, Some(Team::Hiders));
    // The preparation is over. Seekers can neither push nor unlock it, hiders can unlock it.
    assert_eq!(names(&episode, 3), ["up", "down", "left", "stay"]);
    assert!(names(&episode, 0).contains(&"lock".to_string()));
    assert_eq!(step(&mut episode, &["right", "stay", "left", "stay"]).rewards, [1.0, 1.0, -1.0, -1.0]);
    step(&mut episode, &["left", "stay", "stay", "stay"]);
    step(&mut episode, &["lock", "stay", "stay", "stay"]);
    assert_eq!(room(&episode).boxes[0].lock, None);
    // Now the seekers can lock it, and hiders not unlock it.
    step(&mut episode, &["stay", "stay", "stay", "lock"]);
    assert_eq!(room(&episode).boxes[0].lock, Some(Team::Seekers));
    assert!(!names(&episode, 0).contains(&"lock".to_string()));
    let result = step(&mut episode, &["right", "stay", "stay", "lock"]);
    assert_eq!((room(&episode).boxes[0].lock, result.rewards), (None, vec![1.0, 1.0, -1.0, -1.0]));
    // A seeker pushes it into the room and sees a hider.
    let result = step(&mut episode, &["stay", "stay", "stay", "right"]);
    assert_eq!((room(&episode).boxes[0].at, result.rewards), (Cell { x: 4, y: 4 }, vec![-1.0, -1.0, 1.0, 1.0]));
}

#[test]
fn the_first_of_two_who_want_a_cell_gets_it() {
    let env = env(&json!({}));
    let mut episode =
        begun(&env, &drawn(["......S", ".......", "......S", "...####", "...D..o", "...#.H.", "...#H.."], 30));
    step(&mut episode, &["left", "up", "down", "up"]);
    let at = |x, y| Cell { x, y };
    assert_eq!(room(&episode).agents, [at(4, 5), at(4, 6), at(6, 1), at(6, 2)]);
}

#[test]
fn what_agents_see_is_that_of_a_plain_computation() {
    let env =
        env(&json!({"size": 10, "hiders": 3, "seekers": 2, "boxes": 2, "range": 4, "steps": 60, "preparation": 15}));
    let (mut seen_steps, mut pushes, mut locks) = (0, 0, 0);
    for index in 0..20 {
        let mut draws = Draws::new(3, Stream::Turn, 0, index);
        let mut episode = env.begin(&Default::default(), 5, index);
        let mut hidden = 0;
        for n in 1..=60 {
            let moves: Vec<_> = (0..5)
                .map(|seat| {
                    let offered = episode.offered(seat).unwrap();
                    assert!(n > 15 || seat < 3 || offered.len() == 1, "{offered:?}");
                    offered[draws.below(offered.len() as u64) as usize].with(seat, Vec::new())
                })
                .collect();
            let result = episode.step(&moves).unwrap();
            let now = room(&episode);
            let hides = |x: i32, y: i32| {
                let at = [x, y];
                (x.min(y) == 5 && pair(now.door) != at) || now.boxes.iter().any(|one| pair(one.at) == at)
            };
            let sees = |one: Cell, other: Cell| {
                let [dx, dy] = one.offset(other);
                f64::from(dx).hypot(f64::from(dy)) <= 4.0 && plainly_clear(pair(one), pair(other), &hides)
            };
            let (hiders, seekers) = now.agents.split_at(3);
            let seen = hiders.iter().any(|hider| seekers.iter().any(|seeker| sees(*seeker, *hider)));
            let expected = if n <= 15 {
                0.0
            } else if seen {
                -1.0
            } else {
                1.0
            };
            assert_eq!(result.rewards, [expected, expected, expected, -expected, -expected]);
            hidden += u32::from(n > 15 && !seen);
            assert_eq!((now.hidden, result.done), (hidden, n == 60));
            (seen_steps, locks) = (
                seen_steps + u32::from(n > 15 && seen),
                locks + now.boxes.iter().filter(|one| one.lock.is_some()).count(),
            );
            if n == 60 {
                pushes += now.pushes;
                continue;
            }
            // A room on the way is a room to begin with.
            begun(&env, &now);
            for seat in 0..5u32 {
                let own = now.agents[seat as usize];
                let number = |name: &str| {
                    let slot = env.interface().number("hide-and-seek", name).unwrap();
                    episode.observe(seat, |seen| seen.number(slot)).unwrap()
                };
                let close = |name: &str, expected: f64| {
                    let found = number(name);
                    assert!((found - expected).abs() < 1e-12, "{name} of {seat}: {found}, not {expected}");
                };
                close("x", f64::from(own.x) / 9.0);
                close("time-left", 1.0 - f64::from(n) / 60.0);
                close("preparing", f64::max(0.0, 1.0 - f64::from(n) / 15.0));
                close("door-y", f64::from(own.offset(now.door)[1]) / 9.0);
                let mut free = 0;
                while own.y < 9 - free && !hides(i32::from(own.x), i32::from(own.y + free + 1)) {
                    free += 1;
                }
                close("free-down", f64::from(free) / 9.0);
                let others = now.agents.iter().enumerate().filter(|(other, _)| *other != seat as usize);
                let things = others.map(|(_, at)| ("other", *at)).chain(now.boxes.iter().map(|one| ("box", one.at)));
                for (i, (what, at)) in things.enumerate() {
                    let name = format!("{what}-{}", if what == "box" { i - 4 } else { i });
                    let seen = f64::from(u8::from(sees(own, at)));
                    let [x, y] = own.offset(at).map(|cells| seen * f64::from(cells) / 9.0);
                    for (of, value) in [("seen", seen), ("x", x), ("y", y)] {
                        close(&format!("{name}-{of}"), value);
                    }
                }
            }
        }
    }
    assert!(seen_steps > 100 && seen_steps < 800 && pushes > 20 && locks > 100, "{seen_steps} {pushes} {locks}");
}

#[test]
fn maps_show_what_is_in_sight() {
    let env = env(&json!({}));
    let episode =
        begun(&env, &drawn(["....S..", ".......", ".......", "...####", "S..DH.L", "...#...", "...#.H."], 30));
    let map = |seat| {
        let slot = env.interface().text("hide-and-seek", "map").unwrap();
        episode.observe(seat, |seen| seen.text(slot).to_owned()).unwrap()
    };
    assert_eq!(map(0), ".......\n.......\n.......\n...####\nS...@.L\n...#...\n...#.H.");
    assert_eq!(map(3), "....S..\n.......\n.......\n...####\n@...H.X\n...#...\n...#...");
    assert_eq!(map(2), "....@..\n.......\n.......\n...####\nS......\n...#...\n...#...");
}

/// Seekers walk about at random. The hiders do what is given.
fn scenario(hiders: &Value) -> Value {
    let way = |(i, act): (usize, &str)| json!({"act": act, "when": format!("dir == {i}")});
    let about: Vec<Value> = ["left", "right", "up", "down"].into_iter().enumerate().map(way).collect();
    let seekers =
        json!({"kind": "rule", "state": {"dir": 0}, "update": {"dir": "floor(4 * uniform())"}, "actions": about});
    json!({"seed": 1, "rounds": 100, "agents": 400, "topology": {"kind": "none"}, "world": {"kind": "hide-and-seek"},
        "cohorts": [{"seats": 2, "policy": hiders}, {"seats": 2, "policy": seekers}]})
}

fn idle() -> Value {
    json!({"kind": "rule", "actions": [{"act": "stay"}]})
}

/// The rule of `scenario.yaml`.
fn closing() -> Value {
    let act = |act: &str, when: &str| json!({"act": act, "when": when});
    json!({"kind": "rule",
        "state": {"dir": 0, "left_wall": false, "gap_x": 0, "gap_y": 0, "near_x": 0, "near_y": 0},
        "update": {"dir": "floor(4 * uniform())", "left_wall": "abs(x + door_x - 0.5) < 0.01",
            "gap_x": "box_0_x - door_x", "gap_y": "box_0_y - door_y",
            "near_x": "box_0_x if box_0_y == 0 and abs(box_0_x) < 0.2 else 0",
            "near_y": "box_0_y if box_0_x == 0 and abs(box_0_y) < 0.2 else 0"},
        "actions": [
            act("lock", "may_lock == 1 and box_0_lock == 0 and abs(gap_x) + abs(gap_y) < 0.01"),
            act("left", "near_x < 0 and gap_x > 0.01 and (abs(gap_y) < 0.01 or not left_wall)"),
            act("right", "near_x > 0 and gap_x < -0.01"),
            act("up", "near_y < 0 and gap_y > 0.01 and (abs(gap_x) < 0.01 or left_wall)"),
            act("down", "near_y > 0 and gap_y < -0.01"),
            act("left", "dir == 0 and x > 0.7 and near_x >= 0"),
            act("right", "dir == 1 and near_x <= 0"),
            act("up", "dir == 2 and y > 0.7 and near_y >= 0"),
            act("down", "dir == 3 and near_y <= 0")]})
}

#[test]
fn a_rule_that_closes_the_door_hides_and_one_that_stays_is_seen() {
    let [[closing, closed, pushes], [idle, open, _]] = [closing(), idle()].map(|hiders| {
        let round = play(&scenario(&hiders)).rounds.pop().unwrap();
        ["hidden", "closed", "pushes"].map(|name| metric(&round, name))
    });
    // In a few rooms the preparation is too short for hiders who get to the box by chance.
    assert!(closing > 0.87 && closed > 0.8 && (1.0..4.0).contains(&pushes), "{closing} {closed} {pushes}");
    assert!(idle < 0.65 && open == 0.0, "{idle} {open}");
}

#[test]
fn bad_states_and_keys_are_refused() {
    let keys =
        [("size", 6), ("hiders", 0), ("seekers", 21), ("boxes", 21), ("steps", 1), ("preparation", 50), ("range", 0)];
    for (key, value) in keys {
        let mut wrong = scenario(&idle());
        wrong["world"][key] = json!(value);
        let why = refused(&wrong);
        assert!(why.contains(key) && why.contains("must lie in"), "{why}");
    }
    for (key, value) in [("boxes", 2), ("hiders", 4)] {
        let mut wrong = scenario(&idle());
        wrong["world"][key] = json!(value);
        let why = refused(&wrong);
        assert!(why.contains("3 times 3 cells"), "{why}");
    }
    let env = env(&json!({}));
    let good = drawn(HALL, 30);
    let fits = |change: &dyn Fn(&mut Room)| {
        let mut room = good.clone();
        change(&mut room);
        env.begin(&Default::default(), 1, 0).begin_from(&serde_json::to_value(&room).unwrap()).is_ok()
    };
    assert!(fits(&|_| {}) && fits(&|room| room.hidden = 10) && fits(&|room| room.pushes = 120));
    let wrong: [&dyn Fn(&mut Room); 10] = [
        &|room| room.door = Cell { x: 3, y: 3 },
        &|room| room.door = Cell { x: 3, y: 7 },
        &|room| room.door = Cell { x: 2, y: 4 },
        &|room| room.agents.truncate(3),
        &|room| room.boxes.clear(),
        &|room| room.agents[1] = room.agents[2],
        &|room| room.boxes[0].at = Cell { x: 3, y: 6 },
        &|room| room.agents[0] = Cell { x: 7, y: 0 },
        &|room| room.hidden = 11,
        &|room| (room.steps, room.pushes) = (50, 0),
    ];
    for (i, change) in wrong.into_iter().enumerate() {
        assert!(!fits(change), "{i}");
    }
    assert!(!fits(&|room| room.pushes = 121));
}
