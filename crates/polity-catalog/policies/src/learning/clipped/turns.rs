//! Networks that are equivariant under quarter turns: a turned world gets the turned choices.

use polity_kernel::Invalid;
use polity_nn::{Array, Tape, Var};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A symmetry of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Symmetry {
    /// Quarter turns of the plane. The numbers `NAME-x` and `NAME-y` are a vector, and `left`, `right`, `up` and `down` are choices.
    QuarterTurns,
    /// None, as a placebo: the same work, but all four turns leave everything as it is.
    Identity,
}

impl Symmetry {
    /// The name a scenario uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Symmetry::QuarterTurns => "quarter-turns",
            Symmetry::Identity => "identity",
        }
    }
}

/// What quarter turns do with what an agent sees and with its choices.
#[derive(Clone, Debug)]
pub struct Turns {
    /// For each number after a quarter turn to the left, which number it is before, and with which sign.
    numbers: Vec<(usize, f32)>,
    /// For each choice, the one that it becomes.
    choices: Vec<usize>,
}

impl Turns {
    /// Finds vectors and directions by their names.
    ///
    /// # Errors
    /// A vector without one of its numbers, or a direction that is no choice.
    pub fn of(symmetry: Symmetry, numbers: &[String], choices: &[String]) -> Result<Self, Invalid> {
        if symmetry == Symmetry::Identity {
            let same = (0..numbers.len()).map(|number| (number, 1.0)).collect();
            return Ok(Turns { numbers: same, choices: (0..choices.len()).collect() });
        }
        let wrong = |message: String| Invalid { key: "symmetry".into(), message };
        let place = |names: &[String], wanted: &str| {
            let missing = || wrong(format!("needs `{wanted}`; there are {}", names.join(", ")));
            names.iter().position(|name| name == wanted).ok_or_else(missing)
        };
        let turned = |(i, name): (usize, &String)| {
            let along = |axis: &str| name.strip_suffix(axis).filter(|stem| stem.is_empty() || stem.ends_with('-'));
            match (along("x"), along("y")) {
                // (x, y) becomes (-y, x).
                (Some(stem), _) => Ok((place(numbers, &format!("{stem}y"))?, -1.0)),
                (_, Some(stem)) => Ok((place(numbers, &format!("{stem}x"))?, 1.0)),
                _ => Ok((i, 1.0)),
            }
        };
        let ways = ["right", "up", "left", "down"];
        let mut becomes: Vec<usize> = (0..choices.len()).collect();
        for (i, way) in ways.iter().enumerate() {
            becomes[place(choices, way)?] = place(choices, ways[(i + 1) % 4])?;
        }
        let numbers = numbers.iter().enumerate().map(turned).collect::<Result<_, Invalid>>()?;
        Ok(Turns { numbers, choices: becomes })
    }

    /// Returns what is seen after a quarter turn, by one agent or by several side by side.
    #[must_use]
    pub fn seen(&self, seen: &Array) -> Array {
        let agents = seen.data().chunks_exact(self.numbers.len().max(1));
        let turned = agents.flat_map(|of| self.numbers.iter().map(|(from, sign)| sign * of[*from]));
        Array::new(seen.rows(), seen.columns(), turned.collect())
    }

    /// Returns the mean of what a network makes of what is seen after each of four turns. Its first output is logits, whose columns are
    /// turned back.
    pub fn mean<const N: usize>(
        &self,
        tape: &mut Tape<'_>,
        seen: [Var; N],
        network: impl Fn(&mut Tape<'_>, [Var; N]) -> [Var; 2],
    ) -> [Var; 2] {
        let mut back: Vec<usize> = (0..self.choices.len()).collect();
        let mut turned = seen;
        let [mut logits, mut value] = network(tape, seen);
        for _ in 1..4 {
            turned = turned.map(|seen| {
                let seen = self.seen(tape.value(seen));
                tape.input(seen)
            });
            back.iter_mut().for_each(|choice| *choice = self.choices[*choice]);
            let [of_turned, value_of_turned] = network(tape, turned);
            let columns: Vec<Var> = back.iter().map(|choice| tape.columns(of_turned, *choice, 1)).collect();
            let turned_back = tape.join(&columns);
            logits = tape.add(logits, turned_back);
            value = tape.add(value, value_of_turned);
        }
        [logits, value].map(|sum| tape.scale(sum, 0.25))
    }
}
