//! Plan an income tax: by formula, by trial over the years, or knowing all. See README.md.

mod search;
#[cfg(test)]
mod tests;

use polity_games::taxation::{self, Economy, Schedule};
use polity_kernel::Invalid;
use polity_kernel::ask::ResponseFormat;
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use search::Search;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<TaxPlanner>(files);
}

/// How a planner finds its schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Plan {
    /// It keeps to `rates`, or to the law as it is.
    Keep,
    /// Saez's formula at the middle of each bracket, from last year's incomes.
    Saez,
    /// Saez's argument for a whole bracket at a time, from last year's incomes.
    SaezBrackets,
    /// It changes one rate in a year, and keeps what raised welfare.
    #[default]
    Search,
    /// The best schedule on a grid, computed from all skills: the Stackelberg optimum, for comparisons.
    Grid,
}

/// Parameters of planners.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How it finds its schedule.
    plan: Plan,
    /// The rates of `keep`; 0 to 1. Default: the law as it is.
    rates: Option<Vec<f64>>,
    /// How much of the way from the law to the formula it goes in a year; above 0, up to 1.
    adjust: f64,
    /// The first step of a search; 0.001 to 1.
    step: f64,
    /// A search ends when its step is below this; 0.0001 to 1.
    least: f64,
    /// Steps of the grid from 0 to 1; 1 to 1000.
    grid: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { plan: Plan::Search, rates: None, adjust: 0.5, step: 0.16, least: 0.01, grid: 10 }
    }
}

/// What a planner remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    search: Search,
    /// The optimum, once it is known.
    known: Option<Vec<f64>>,
}

#[derive(Serialize)]
struct Proposal {
    rates: Vec<f64>,
}

/// Plans an income tax.
pub struct TaxPlanner {
    params: Params,
    may_propose: NumberSlot,
    welfare: NumberSlot,
    elasticity: NumberSlot,
    aversion: NumberSlot,
    schedule: (TableSlot, [usize; 2]),
    workers: (TableSlot, [usize; 3]),
    propose: u16,
}

impl Policy for TaxPlanner {
    const NAME: &'static str = "tax-planner";
    const SUMMARY: &'static str = "Plan an income tax by Saez's formula, by search over tax years, or on a grid";
    type Params = Params;
    type State = Memory;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let fits = params.adjust > 0.0 && params.adjust <= 1.0;
        Invalid::unless(fits, "adjust", format!("must be above 0 and at most 1, is {}", params.adjust))?;
        Invalid::within(0.001..=1.0, "step", params.step)?;
        Invalid::within(0.0001..=1.0, "least", params.least)?;
        Invalid::within(1..=1000, "grid", params.grid)?;
        let (propose, argument) = setup.act("propose")?;
        let brackets = match argument {
            ActionArgument::Record(ResponseFormat::Record(fields)) => match fields.as_slice() {
                [(name, ResponseFormat::List { most, .. })] if name == "rates" => Some(*most),
                _ => None,
            },
            _ => None,
        };
        let message = format!("the proposals of the world `{}` are no list of rates", setup.world);
        let brackets = brackets.ok_or_else(|| Invalid { key: "kind".into(), message })?;
        if let Some(rates) = &params.rates {
            taxation::check_rates(rates, brackets as usize)
                .map_err(|message| Invalid { key: "rates".into(), message })?;
        }
        if params.plan == Plan::Grid {
            taxation::check_grid(brackets as usize, params.grid)
                .map_err(|message| Invalid { key: "grid".into(), message })?;
        }
        Ok(TaxPlanner {
            params,
            may_propose: setup.number("may-propose")?,
            welfare: setup.number("welfare")?,
            elasticity: setup.number("elasticity")?,
            aversion: setup.number("aversion")?,
            schedule: setup.table("schedule", ["threshold", "rate"])?,
            workers: setup.table("workers", ["income", "utility", "skill"])?,
            propose,
        })
    }

    fn init_state(&self, person: Person<'_>, _: &mut Draws) -> Memory {
        // Several planners begin with different rates.
        Memory { search: Search::new(person.id, self.params.step), known: None }
    }

    async fn act(&self, memory: &mut Memory, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let seen = turn.observation;
        if seen.number(self.may_propose) == 0.0 {
            return Ok(());
        }
        let economy = Economy { elasticity: seen.number(self.elasticity), aversion: seen.number(self.aversion) };
        let (table, [threshold, rate]) = self.schedule;
        let brackets = seen.table(table).map(|row| (row[threshold], row[rate]));
        let schedule = Schedule::of_brackets(brackets).map_err(Fault)?;
        let (thresholds, law) = (schedule.thresholds(), schedule.rates());
        let (table, [income, utility, skill]) = self.workers;
        let of = |column: usize| seen.table(table).map(|row| row[column]).collect::<Vec<f64>>();
        let toward = |goal: Vec<f64>| -> Vec<f64> {
            law.iter().zip(goal).map(|(law, goal)| law + self.params.adjust * (goal - law)).collect()
        };
        let rates = match self.params.plan {
            Plan::Keep => self.params.rates.clone().unwrap_or_else(|| law.to_vec()),
            Plan::Saez => toward(economy.saez(&of(income), &of(utility), thresholds)),
            Plan::SaezBrackets => toward(economy.saez_of_brackets(&of(income), &of(utility), thresholds)),
            Plan::Search => {
                memory.search.learn(law, seen.number(self.welfare), self.params.least);
                memory.search.propose(self.params.least)
            }
            Plan::Grid => match &memory.known {
                Some(known) => known.clone(),
                None => {
                    let found = economy.best_on_grid(&of(skill), thresholds, self.params.grid).map_err(Fault)?;
                    let rates = found.0.rates().to_vec();
                    memory.known = Some(rates.clone());
                    rates
                }
            },
        };
        turn.act_record(self.propose, &Proposal { rates })
    }
}
