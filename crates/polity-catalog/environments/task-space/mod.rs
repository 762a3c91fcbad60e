//! A student with a competence for every kind of task, to whom a teacher gives tasks. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
use polity_kernel::ask::{ResponseFormat, Value};
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, StepResult};
use polity_kernel::interface::ActionArgument;
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::WorldSetup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<TaskSpace>(files);
}

/// The highest competence for a kind of task, and the one that suffices for harder kinds.
const MOST: u8 = 100;
const ENOUGH: u8 = 75;

/// Parameters of a student.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Numbers of a task, each from 0 to 1; 1 to 10.
    dimensions: u32,
    /// Kinds of tasks along each dimension; at most 1,000,000 in all.
    cells: u32,
    /// The share of the first dimension whose tasks can be learned; above 0, at most 1.
    learnable: f64,
    /// Tasks of an episode; 1 to 10,000,000.
    steps: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { dimensions: 2, cells: 10, learnable: 1.0, steps: 10_000 }
    }
}

/// A space of tasks.
pub struct TaskSpace {
    params: Params,
    dimensions: usize,
    cells: usize,
    /// Kinds along the first dimension that can be learned.
    learnable: usize,
}

/// What a student knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Student {
    /// Its competence for each kind of task, in row order.
    competences: Vec<u8>,
    /// Kinds that it has mastered: those with a competence above the one that suffices for harder kinds.
    mastered: u32,
    steps: u32,
}

impl TaskSpace {
    /// Returns the number of kinds of tasks.
    fn kinds(&self) -> usize {
        self.cells.pow(self.dimensions as u32)
    }

    /// Returns the share of the learnable kinds that a student has mastered.
    fn mastered(&self, student: &Student) -> f64 {
        f64::from(student.mastered) / (self.kinds() / self.cells * self.learnable) as f64
    }

    /// Returns the cell of a task along each dimension.
    fn place(&self, task: &[f64]) -> Vec<usize> {
        task.iter().map(|x| ((x * self.cells as f64) as usize).min(self.cells - 1)).collect()
    }

    fn kind(&self, place: &[usize]) -> usize {
        place.iter().fold(0, |kind, at| kind * self.cells + at)
    }

    /// Returns whether a student can make progress here: in the corner, and where its competence suffices for a kind that is one easier along
    /// some dimensions.
    fn is_open(&self, student: &Student, place: &[usize]) -> bool {
        if place[0] >= self.learnable {
            return false;
        }
        // Each number is a set of dimensions.
        place.iter().all(|at| *at == 0)
            || (1..1u32 << self.dimensions).any(|some| {
                let down = |(i, at): (usize, &usize)| at.checked_sub((some >> i) as usize & 1);
                let easier: Option<Vec<usize>> = place.iter().enumerate().map(down).collect();
                easier.is_some_and(|easier| student.competences[self.kind(&easier)] >= ENOUGH)
            })
    }

    /// Lets a student work on a task. Returns its competence for it afterwards, from 0 to 1.
    fn study(&self, student: &mut Student, task: &[f64]) -> f64 {
        let place = self.place(task);
        let kind = self.kind(&place);
        let before = student.competences[kind];
        if before < MOST && self.is_open(student, &place) {
            student.competences[kind] += 1;
            student.mastered += u32::from(before == ENOUGH);
        }
        f64::from(student.competences[kind]) / f64::from(MOST)
    }
}

impl Environment for TaskSpace {
    const NAME: &'static str = "task-space";
    const SUMMARY: &'static str = "A student learns tasks that a teacher gives it, harder ones after easier ones";
    type Params = Params;
    type State = Student;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(1..=10, "dimensions", params.dimensions)?;
        Invalid::unless(params.cells > 0, "cells", "must be at least 1")?;
        let kinds = params.cells.checked_pow(params.dimensions).filter(|kinds| *kinds <= 1_000_000);
        let message = format!("gives more than 1,000,000 kinds of tasks in {} dimensions", params.dimensions);
        Invalid::unless(kinds.is_some(), "cells", message)?;
        let fits = params.learnable > 0.0 && params.learnable <= 1.0;
        Invalid::unless(fits, "learnable", format!("must be above 0 and at most 1, is {}", params.learnable))?;
        Invalid::within(1..=10_000_000, "steps", params.steps)?;
        let number = ResponseFormat::Number { low: 0.0, high: 1.0, whole: false };
        let task = ResponseFormat::List { of: number.into(), least: params.dimensions, most: params.dimensions };
        let argument = ActionArgument::Record(ResponseFormat::Record(vec![("task".to_owned(), task)]));
        declare.action("give", argument, "give the student a task");
        declare.number("given", "tasks that the student has worked on", |_, student: &Student, _| {
            f64::from(student.steps)
        });
        let doc = "share of the learnable kinds of tasks that the student has mastered";
        declare.column("mastered", doc, Some((0.0, 1.0)), |space: &TaskSpace, student: &Student, _| {
            space.mastered(student)
        });
        let cells = params.cells as usize;
        let learnable = ((params.learnable * cells as f64).round() as usize).max(1);
        Ok(TaskSpace { params, dimensions: params.dimensions as usize, cells, learnable })
    }

    fn reset(&self, _: &Item, _: &mut Draws) -> Student {
        Student { competences: vec![0; self.kinds()], ..Student::default() }
    }

    fn accepts(&self, student: &Student) -> Result<(), String> {
        let kinds = self.kinds();
        let mastered = student.competences.iter().filter(|known| **known > ENOUGH).count();
        match student.competences.len() == kinds && student.competences.iter().all(|known| *known <= MOST) {
            true if mastered == student.mastered as usize => Ok(()),
            true => Err(format!("{mastered} kinds of tasks are mastered, not {}", student.mastered)),
            false => Err(format!("a student has {kinds} competences from 0 to {MOST}")),
        }
    }

    fn cut(&self, _: &Student) -> bool {
        true
    }

    /// Without a task, nothing is learned.
    fn step(&self, student: &mut Student, moves: &[Move], _: &mut Draws) -> StepResult {
        let reward = match moves.first().map(|made| &made.argument) {
            Some(Value::Record(fields)) => match fields.as_slice() {
                [Value::List(numbers)] if numbers.len() == self.dimensions => {
                    let number = |of: &Value| if let Value::Number(number) = of { *number } else { 0.0 };
                    let task: Vec<f64> = numbers.iter().map(number).collect();
                    self.study(student, &task)
                }
                _ => 0.0,
            },
            _ => 0.0,
        };
        student.steps += 1;
        let done = student.steps >= self.params.steps;
        StepResult { rewards: vec![reward], results: vec![String::new(); moves.len()], done }
    }
}
