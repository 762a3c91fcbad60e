//! A student's competences against a plain second computation, and what cannot be learned.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::{Params, Student, TaskSpace};
use crate::testing::refused;
use polity_kernel::ask::Value as Argument;
use polity_kernel::environment::{Environment, Move};
use polity_kernel::items::Item;
use polity_kernel::rng::{Draws, Stream};
use serde_json::json;
use std::collections::BTreeMap;

fn space(params: Params) -> (TaskSpace, Student) {
    let (dimensions, cells) = (params.dimensions as usize, params.cells as usize);
    let learnable = ((params.learnable * cells as f64).round() as usize).max(1);
    let space = TaskSpace { params, dimensions, cells, learnable };
    let student = space.reset(&Item::default(), &mut Draws::new(1, Stream::World, 0, 0));
    (space, student)
}

fn give(space: &TaskSpace, student: &mut Student, task: &[f64]) -> f64 {
    let numbers = task.iter().map(|x| Argument::Number(*x)).collect();
    let argument = Argument::Record(vec![Argument::List(numbers)]);
    let moves = [Move { seat: 0, action: 0, argument }];
    space.step(student, &moves, &mut Draws::new(1, Stream::World, 0, 0)).rewards[0]
}

#[test]
fn competences_are_those_of_a_plain_computation() {
    let (space, mut student) = space(Params { dimensions: 3, cells: 3, learnable: 0.7, steps: 100_000 });
    let mut known: BTreeMap<[i32; 3], u32> = BTreeMap::new();
    let mut draws = Draws::new(5, Stream::World, 1, 0);
    for _ in 0..20_000 {
        // Easy tasks are given more often.
        let task: Vec<f64> = (0..3).map(|_| draws.unit() * draws.unit()).collect();
        let at = [0, 1, 2].map(|i| (task[i] * 3.0).floor() as i32);
        let reaches = |by: [i32; 3]| known.get(&[0, 1, 2].map(|i| at[i] - by[i])).copied().unwrap_or(0) >= 75;
        let steps = [[0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]];
        if at[0] < 2 && (at == [0; 3] || steps.into_iter().any(reaches)) {
            let now = known.entry(at).or_default();
            *now = (*now + 1).min(100);
        }
        let expected = f64::from(known.get(&at).copied().unwrap_or(0)) / 100.0;
        assert_eq!(give(&space, &mut student, &task), expected, "{at:?}");
    }
    let mastered = known.values().filter(|known| **known > 75).count();
    assert!(mastered > 6 && space.accepts(&student).is_ok());
    assert_eq!(space.mastered(&student), mastered as f64 / 18.0);
}

/// Tasks, and the competences that the authors' program returns for them (`systems/alp-gmm/official.py`).
#[test]
fn competences_are_those_of_the_authors_program() {
    let (space, mut student) = space(Params { cells: 4, ..Params::default() });
    let mut lines = 0;
    for line in include_str!("official.jsonl").lines() {
        let (task, competence): ([f64; 2], f64) = serde_json::from_str(line).unwrap();
        assert_eq!(give(&space, &mut student, &task), competence, "{line}");
        lines += 1;
    }
    assert!(lines == 1_500 && space.mastered(&student) > 0.2);
}

#[test]
fn harder_tasks_come_after_easier_ones_and_some_are_never_learned() {
    let (space, mut student) = space(Params { cells: 2, learnable: 0.5, ..Params::default() });
    assert_eq!(give(&space, &mut student, &[0.2, 0.9]), 0.0);
    for n in 1..=75 {
        assert_eq!(give(&space, &mut student, &[0.2, 0.2]), f64::from(n) / 100.0);
    }
    assert_eq!(space.mastered(&student), 0.0);
    assert_eq!(give(&space, &mut student, &[0.2, 0.9]), 0.01);
    assert_eq!(give(&space, &mut student, &[1.0, 0.2]), 0.0);
    assert_eq!(give(&space, &mut student, &[0.0, 0.0]), 0.76);
    assert_eq!(space.mastered(&student), 0.5);
    (0..100).for_each(|_| assert!(give(&space, &mut student, &[0.1, 0.1]) <= 1.0));
    student.mastered = 2;
    assert!(space.accepts(&student).is_err());
}

#[test]
fn what_does_not_fit_is_refused() {
    for (key, value) in [
        ("dimensions", json!(0)),
        ("cells", json!(0)),
        ("cells", json!(100_000)),
        ("learnable", json!(0)),
        ("steps", json!(0)),
    ] {
        let scenario = json!({"seed": 1, "rounds": 1, "agents": 1, "topology": {"kind": "none"},
            "world": {"kind": "task-space", key: value}, "cohorts": [{"policy": {"kind": "alp-gmm"}}]});
        let why = refused(&scenario);
        assert!(why.contains(key), "{why}");
    }
}
