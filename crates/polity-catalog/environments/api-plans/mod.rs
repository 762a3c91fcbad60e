//! Programming interfaces that turn things into other things, each call at a cost. See README.md.

mod plans;
#[cfg(test)]
mod tests;

use plans::{Api, Interfaces};
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, TextSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<ApiPlans>(files);
}

/// The estimate of the remaining cost that a search gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimate {
    /// A lower bound of it.
    #[default]
    Bound,
    /// A number below 1, the least cost of a call, drawn for each state: never too high, and no information.
    Drawn,
}

/// Parameters of the interfaces and of the tasks.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Number of kinds of things.
    #[schemars(range(min = 4, max = 14))]
    kinds: u32,
    /// Number of interfaces.
    #[schemars(range(min = 4, max = 64))]
    apis: u32,
    /// Seed of the interfaces. Tasks are drawn with the seed of the run.
    interfaces: u64,
    /// Fewest calls of the cheapest plan of a task.
    #[schemars(range(min = 1, max = 8))]
    least_calls: u32,
    /// How many interfaces of the cheapest plan are broken: their first call costs as always and fails, and they are not offered again.
    broken: u32,
    /// Maximum number of calls.
    most_calls: u32,
    /// Whether a task is solved only by a plan of the least possible cost. Else every plan that reaches the goal solves it.
    cheapest: bool,
    /// The estimate of the remaining cost that a search gets.
    estimate: Estimate,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            kinds: 12,
            apis: 30,
            interfaces: 1,
            least_calls: 3,
            broken: 0,
            most_calls: 20,
            cheapest: true,
            estimate: Estimate::Bound,
        }
    }
}

/// Interfaces with costs.
pub struct ApiPlans {
    params: Params,
    interfaces: Interfaces,
    task: TextSlot,
    result: TextSlot,
}

/// An episode: what is at hand, and what is wanted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The kinds at hand, a bit each.
    have: u32,
    goal: u32,
    /// The cost so far.
    cost: u32,
    calls: u32,
    /// The least cost of the task, as far as no interface is broken.
    least: u32,
    /// Interfaces that fail, and those that are known to, a bit each.
    broken: u64,
    known_broken: u64,
    result: String,
    over: bool,
}

impl Work {
    fn is_reached(&self) -> bool {
        self.have & (1 << self.goal) != 0
    }
}

impl Environment for ApiPlans {
    const NAME: &'static str = "api-plans";
    const SUMMARY: &'static str = "Interfaces that turn things into other things at a cost, for plans of several calls";
    type Params = Params;
    type State = Work;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(4..=14, "kinds", params.kinds)?;
        Invalid::within(4..=64, "apis", params.apis)?;
        Invalid::within(1..=8, "least_calls", params.least_calls)?;
        Invalid::unless(params.most_calls > 0, "most_calls", "must be at least 1")?;
        let mut draws = Draws::new(params.interfaces, Stream::Episode, 0, 0);
        let interfaces = Interfaces::drawn(params.kinds, params.apis, &mut draws);
        for api in &interfaces.apis {
            declare.action(api.name.clone(), ActionArgument::Nothing, api.doc());
        }
        declare.alternatives();
        let task = declare.text_slot("task", "what is at hand and what is wanted");
        let result = declare.text_slot("result", "what the last call returned");
        declare.column("cost", "cost so far", None, |_, work, _| f64::from(work.cost));
        Ok(ApiPlans { params, interfaces, task, result })
    }

    /// The task is drawn: two kinds at hand, and a goal whose cheapest plan has enough calls, as far as there is one.
    fn reset(&self, _: &Item, draws: &mut Draws) -> Work {
        let n = u64::from(self.params.kinds);
        let mut best: Option<(usize, Work)> = None;
        for _ in 0..200 {
            let have = (1 << draws.below(n)) | (1 << draws.below(n));
            let goal = draws.below(n) as u32;
            let Some((least, plan)) = self.interfaces.cheapest(have, goal, 0) else { continue };
            if best.as_ref().is_none_or(|(calls, _)| *calls < plan.len()) {
                let mut broken = 0;
                for place in (0..plan.len()).rev().take(self.params.broken as usize) {
                    // Only what has a way around it may break.
                    let with = broken | 1 << plan[place];
                    if self.interfaces.cheapest(have, goal, with).is_some() {
                        broken = with;
                    }
                }
                best = Some((plan.len(), Work { have, goal, least, broken, ..Work::default() }));
            }
            if best.as_ref().is_some_and(|(calls, _)| *calls >= self.params.least_calls as usize) {
                break;
            }
        }
        // Without any plan the goal is at hand.
        let mut work = best.map_or_else(|| Work { have: 1, ..Work::default() }, |(_, work)| work);
        work.over = work.is_reached();
        work
    }

    fn observe(&self, work: &Work, _: Seat, observation: &mut ObservationRow<'_>) {
        let at_hand: Vec<String> =
            (0..self.params.kinds).filter(|k| work.have & (1 << k) != 0).map(plans::kind).collect();
        let task = format!("At hand: {}. Wanted: {}.", at_hand.join(", "), plans::kind(work.goal));
        observation.text(self.task, task);
        observation.text(self.result, work.result.clone());
    }

    /// An interface is offered if its inputs are at hand, its output is not, and it is not known to be broken.
    fn offers(&self, work: &Work, _: Seat, action: u16) -> bool {
        let api = self.interfaces.apis.get(usize::from(action));
        !work.over && work.known_broken & (1 << action) == 0 && api.is_some_and(|api| api.applies(work.have))
    }

    fn step(&self, work: &mut Work, moves: &[Move], _: &mut Draws) -> StepResult {
        let Some(made) = moves.first() else { return StepResult::default() };
        let Some(api) = self.interfaces.apis.get(usize::from(made.action)) else { return StepResult::default() };
        let Api { cost, output, .. } = *api;
        work.calls += 1;
        work.cost += cost;
        if work.broken & (1 << made.action) != 0 {
            work.known_broken |= 1 << made.action;
            work.result = format!("error: {} is out of order", api.name);
        } else {
            work.have |= 1 << output;
            work.result = format!("{} is at hand; cost so far {}", plans::kind(output), work.cost);
        }
        work.over = work.is_reached() || work.calls >= self.params.most_calls;
        StepResult { rewards: vec![-f64::from(cost)], results: vec![work.result.clone()], done: work.over }
    }

    fn solved(&self, work: &Work, _: Option<&str>) -> Option<bool> {
        Some(work.is_reached() && (!self.params.cheapest || work.cost <= work.least))
    }

    /// The most expensive of the kinds that the goal needs one after the other, as if all others came for nothing: never above the real
    /// cost.
    fn estimate(&self, work: &Work) -> Option<f64> {
        if self.params.estimate == Estimate::Drawn && !work.is_reached() {
            let mut draws = Draws::new(self.params.interfaces, Stream::Episode, work.have, work.goal);
            return Some(draws.unit());
        }
        Some(self.interfaces.bound(work.have, work.goal, work.known_broken).map_or(f64::INFINITY, f64::from))
    }
}
