//! Opinions on a bounded scale. The world stores them; policies change them. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
use polity_kernel::interface::ActionArgument;
use polity_kernel::policy::Person;
use polity_kernel::population::NumberColumn;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareSplit, Future, SplitWorld, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.split_world::<Opinion>(files);
}

/// The source of the initial opinions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Initial {
    /// Drawn uniformly from the scale.
    Uniform,
    /// A column of the population, unchanged: numbers on the scale.
    Column(String),
    /// The same for everybody.
    Value(f64),
}

/// Parameters of the world.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Lower end of the scale.
    low: f64,
    /// Upper end of the scale.
    high: f64,
    /// The source of the initial opinions.
    initial: Initial,
    /// Maximum deviation of each initial opinion from its column or value, drawn uniformly within the scale.
    jitter: f64,
    /// End the run after the first round, except the opening round, in which no opinion changed by this much.
    stop_below: Option<f64>,
}

impl Default for Params {
    fn default() -> Self {
        Params { low: 0.0, high: 1.0, initial: Initial::Uniform, jitter: 0.0, stop_below: None }
    }
}

#[derive(Clone, Copy)]
enum First {
    Uniform,
    Column(NumberColumn),
    Value(f64),
}

/// Opinions on a bounded scale.
pub struct Opinion {
    low: f64,
    high: f64,
    first: First,
    jitter: f64,
    stop_below: Option<f64>,
}

/// The shared state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Movement {
    /// Largest change of an opinion in the last round.
    largest: f64,
    /// Rounds completed.
    rounds: u32,
}

fn invalid(key: &str, message: String) -> Invalid {
    Invalid { key: key.into(), message }
}

impl SplitWorld for Opinion {
    const NAME: &'static str = "opinion";
    const SUMMARY: &'static str = "Opinions on a bounded scale";
    type Params = Params;
    /// The opinion.
    type Row = f64;
    type Common = Movement;
    /// Largest change of an opinion.
    type Tally = f64;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        let Params { low, high, initial, jitter, stop_below } = params;
        if !(low < high && (high - low).is_finite()) {
            return Err(invalid("high", format!("must be greater than low ({low}), is {high}")));
        }
        let first = match initial {
            Initial::Uniform => First::Uniform,
            Initial::Value(value) if (low..=high).contains(&value) => First::Value(value),
            Initial::Value(value) => {
                return Err(invalid("initial.value", format!("must lie on the scale {low}..={high}, is {value}")));
            }
            Initial::Column(name) => {
                let people = setup.population;
                let column =
                    people.table().number_column(&name).map_err(|e| invalid("initial.column", e.to_string()))?;
                let off = (0..people.len()).find(|who| !(low..=high).contains(&people.number(column, *who)));
                if let Some(who) = off {
                    let message = format!(
                        "the scale is {low}..={high}, but agent {who} has {} in column `{name}`; widen the scale or \
                         recode the column",
                        people.number(column, who)
                    );
                    return Err(invalid("initial.column", message));
                }
                First::Column(column)
            }
        };
        Invalid::within(0.0..=high - low, "jitter", jitter)?;
        if jitter > 0.0 && matches!(first, First::Uniform) {
            let message = "uniform opinions are already spread out; use `jitter` with a `column` or a `value`";
            return Err(invalid("jitter", message.into()));
        }
        declare.number("opinion", "the agent's own opinion", |_, _, opinion| *opinion);
        declare.shared_number("low", "lower end of the scale", move |_, _| low);
        declare.shared_number("high", "upper end of the scale", move |_, _| high);
        let doc = "take this opinion; values off the scale count as its nearest end";
        declare.action("opinion", ActionArgument::Number { low, high }, doc);
        declare.column("opinion", "the agent's opinion", Some((low, high)), |_, _, opinion| *opinion);
        declare.scalar("largest-change", "largest change of an opinion in the round", |_, movement| movement.largest);
        match stop_below {
            Some(least) if !(least > 0.0 && least.is_finite()) => {
                Err(invalid("stop_below", format!("must be greater than 0, is {least}")))
            }
            _ => Ok(Opinion { low, high, first, jitter, stop_below }),
        }
    }

    fn init_common(&self) -> Movement {
        Movement { largest: 0.0, rounds: 0 }
    }

    fn init_row(&self, person: Person<'_>, draws: &mut Draws) -> f64 {
        let centre = match self.first {
            First::Uniform => return draws.range(self.low, self.high),
            First::Column(column) => person.number(column),
            First::Value(value) => value,
        };
        if self.jitter > 0.0 {
            // Restrict the range before drawing: clamping draws afterwards would accumulate them at the ends.
            draws.range((centre - self.jitter).max(self.low), (centre + self.jitter).min(self.high))
        } else {
            centre
        }
    }

    fn tally(&self) -> f64 {
        0.0
    }

    fn apply(&self, _: &Movement, row: &mut f64, actions: &AgentActions<'_>, largest: &mut f64, _: &mut Future) {
        // The last opinion of a turn counts.
        if let Some(act) = actions.acts().last() {
            let opinion = act.value.clamp(self.low, self.high);
            *largest = largest.max((opinion - *row).abs());
            *row = opinion;
        }
    }

    fn merge(&self, left: f64, right: f64) -> f64 {
        left.max(right)
    }

    fn end_round(&self, common: &mut Movement, largest: f64, _: &mut Draws) -> Option<String> {
        common.largest = largest;
        common.rounds += 1;
        // Nobody has heard anything in the opening round, so nothing moves whatever the rules are.
        let least = self.stop_below.filter(|least| common.rounds > 1 && largest < *least)?;
        Some(format!("no opinion changed by {least} or more (the largest change was {largest})"))
    }
}
