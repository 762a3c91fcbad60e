//! A teacher that gives tasks on which a student makes progress. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
use polity_kernel::ask::ResponseFormat;
use polity_kernel::interface::{ActionArgument, NumberSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_learn::teacher::{Settings, Teacher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<AlpGmm>(files);
}

/// Parameters of a teacher.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The action that gives a task, as a list of numbers within bounds.
    act: String,
    /// The number that shows the student's reward for the last task.
    reward: String,
    /// Tasks from one fit of the mixture to the next. As many are fitted, and as many are drawn uniformly at first; 10 to 100,000.
    fit_every: u32,
    /// The share of tasks that are drawn uniformly afterwards; 1 for a random teacher.
    explore: f64,
    /// The most components of the mixture; 2 to 50.
    components: u32,
    /// Whether progress is shuffled among tasks before a fit, as a placebo: the same work, but no information.
    shuffled: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            act: "give".into(),
            reward: "last-reward".into(),
            fit_every: 250,
            explore: 0.2,
            components: 10,
            shuffled: false,
        }
    }
}

/// A teacher.
pub struct AlpGmm {
    settings: Settings,
    /// The bounds of all numbers of a task.
    bounds: (f64, f64),
    give: u16,
    /// The field of the record that holds the task.
    field: String,
    reward: NumberSlot,
}

/// What a teacher knows, and the task that it gave last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Given {
    teacher: Teacher,
    last: Vec<f64>,
}

impl Policy for AlpGmm {
    const NAME: &'static str = "alp-gmm";
    const SUMMARY: &'static str =
        "Gives tasks on which a student makes progress, by Gaussian mixtures (Portelas et al. 2019)";
    type Params = Params;
    type State = Given;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(10..=100_000, "fit_every", params.fit_every)?;
        Invalid::within(0.0..=1.0, "explore", params.explore)?;
        Invalid::within(2..=50, "components", params.components)?;
        let (give, argument) = setup.act(&params.act)?;
        let task = match argument {
            ActionArgument::Record(ResponseFormat::Record(fields)) => match fields.as_slice() {
                [(field, ResponseFormat::List { of, least, most })] if least == most => match of.as_ref() {
                    ResponseFormat::Number { low, high, whole: false } => Some((field.clone(), *most, (*low, *high))),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        let message = format!(
            "`{}` of the world `{}` is no task: it takes no list of a fixed number of bounded numbers",
            params.act, setup.world
        );
        let (field, dimensions, bounds) = task.ok_or(Invalid { key: "act".into(), message })?;
        let settings = Settings {
            dimensions: dimensions as usize,
            fit_every: params.fit_every as usize,
            explore: params.explore,
            components: params.components as usize,
            shuffled: params.shuffled,
        };
        Ok(AlpGmm { settings, bounds, give, field, reward: setup.number(&params.reward)? })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Given {
        Given::default()
    }

    async fn act(&self, given: &mut Given, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let reward = turn.observation.number(self.reward);
        if !given.last.is_empty() {
            given.teacher.learn(&self.settings, &given.last, reward, &mut turn.draws);
        }
        given.last = given.teacher.propose(&self.settings, &mut turn.draws);
        let (low, high) = self.bounds;
        let task: Vec<f64> = given.last.iter().map(|x| low + x * (high - low)).collect();
        turn.act_record(self.give, &serde_json::json!({ &*self.field: task }))
    }
}
