//! Workers choose how much to work, planners set the brackets of the income tax, and revenue is shared out. See README.md.

mod params;
#[cfg(test)]
mod tests;

pub use params::{Feedback, Params, Skills};

use polity_games::taxation::{Economy, Schedule};
use polity_kernel::ask::ResponseFormat;
use polity_kernel::digest::DigestVec;
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use polity_kernel::{AgentId, Invalid};
use serde::{Deserialize, Serialize};

/// The most that a worker can work, as a multiple of what it would work without taxes.
const MOST_LABOUR: f64 = 2.0;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Tax>(files);
}

/// An economy with an income tax.
pub struct Tax {
    params: Params,
    /// The law at the start.
    law: Schedule,
    economy: Economy,
    slots: Slots,
}

/// What `observe` writes, and the actions.
struct Slots {
    schedule: TableSlot,
    candidates: TableSlot,
    workers: TableSlot,
    active: NumberSlot,
    may: [NumberSlot; 3],
    propose: u16,
    vote: u16,
}

/// A worker; of a planner all is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Worker {
    /// What it would earn without taxes.
    skill: f64,
    /// How much it works, as a multiple of what it would work without taxes.
    labour: f64,
    income: f64,
    consumption: f64,
    utility: f64,
}

/// The part of a tax year.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    Proposal,
    Vote,
    Work,
}

/// A schedule proposed by a planner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Candidate {
    by: AgentId,
    schedule: Schedule,
    /// What each worker would get, if incomes stay as they are.
    rebate: f64,
    votes: u32,
}

/// The economy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    workers: DigestVec<Worker>,
    law: Schedule,
    candidates: Vec<Candidate>,
    phase: Phase,
    year: u32,
    step: u32,
    rebate: f64,
    /// Welfare of the last round of work, and without any tax.
    welfare: f64,
    untaxed: f64,
    /// Welfare of past years, and the one that planners are shown.
    past: Vec<f64>,
    shown: f64,
    /// Whether the round that has just ended was one of work.
    worked: bool,
    /// The planner whose proposal became law.
    elected: Option<AgentId>,
    refused: u32,
    refused_last: u32,
}

/// What a planner proposes.
#[derive(Debug, Deserialize)]
struct Proposal {
    rates: Vec<f64>,
}

/// Returns what each worker gets of the revenue.
fn rebate(law: &Schedule, incomes: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = incomes.len().max(1) as f64;
    incomes.map(|income| law.due(income)).sum::<f64>() / n
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl Tax {
    fn is_planner(&self, who: AgentId) -> bool {
        who < self.params.planners
    }

    /// Returns whether it is an agent's turn.
    fn is_active(&self, state: &State, who: AgentId) -> bool {
        self.is_planner(who) == (state.phase == Phase::Proposal)
    }

    /// Pays workers, takes taxes, shares out the revenue.
    fn settle(&self, state: &mut State) {
        let first = self.params.planners as usize;
        state.rebate = rebate(&state.law, state.workers.iter().skip(first).map(|w| w.skill * w.labour));
        let mut utilities = Vec::with_capacity(state.workers.len() - first);
        for i in first..state.workers.len() {
            let Worker { skill, labour, .. } = state.workers[i];
            let income = skill * labour;
            let consumption = income - state.law.due(income) + state.rebate;
            let utility = consumption - self.economy.cost(skill, income);
            state.workers.set(i, Worker { skill, labour, income, consumption, utility });
            utilities.push(utility);
        }
        state.welfare = self.economy.welfare(&utilities);
    }

    fn declare_rules(declare: &mut DeclareWorld<Self>, params: &Params) {
        let mut fixed = |name: &'static str, doc: &'static str, value: f64| {
            declare.shared_number(name, doc, move |_, _| value);
        };
        fixed("elasticity", "elasticity of income to the share that is kept", params.elasticity);
        fixed("aversion", "inequality aversion of welfare; 0: welfare is the mean of utilities", params.aversion);
        fixed("steps", "rounds of work in a tax year", f64::from(params.steps));
        fixed("years", "tax years", f64::from(params.years));
        fixed("voting", "1 if workers vote on proposals", truth(params.vote));
        declare.shared_number("year", "the tax year, from 0", |_, state| f64::from(state.year));
        let doc = "the part of the year: 0 proposals, 1 votes, 2 work";
        declare.shared_number("phase", doc, |_, state| f64::from(state.phase as u8));
        declare.shared_number("step", "rounds of work that are over in this year", |_, state| f64::from(state.step));
        declare.shared_number("rebate", "what each worker got of the revenue in the last round of work", |_, state| {
            state.rebate
        });
        let doc = "welfare of the last year, in units of income; in the first year that under the initial rates";
        declare.shared_number("welfare", doc, |_, state| state.shown);
        declare.number("planner", "1 if the agent is a planner", |world, _, who| truth(world.is_planner(*who)));
        type Of = fn(&Worker) -> f64;
        let own: [(&'static str, &'static str, Of); 5] = [
            ("skill", "what the agent would earn without taxes", |w| w.skill),
            ("labour", "how much it works, as a multiple of what it would work without taxes", |w| w.labour),
            ("income", "what it earned in the last round of work, before taxes", |w| w.income),
            ("consumption", "what it had left of it after taxes, with the rebate", |w| w.consumption),
            ("utility", "consumption less the cost of labour, in units of income", |w| w.utility),
        ];
        for (name, doc, of) in own {
            declare.number(name, doc, move |_, state, who| of(&state.workers[*who as usize]));
            declare.column(name, doc, None, move |_, state, who| of(&state.workers[*who as usize]));
        }
    }

    fn declare_acts(declare: &mut DeclareWorld<Self>, params: &Params) -> Slots {
        let schedule = declare.table_slot(
            "schedule",
            ["threshold", "rate"],
            "the law: income from which each bracket begins, and its marginal rate",
        );
        let doc =
            "when workers vote: the rate of each bracket of each candidate, and the rebate if incomes stay as they are";
        let candidates = declare.table_slot("candidates", ["candidate", "rate", "rebate"], doc);
        let doc = "for planners: income and utility of each worker; the skill is for benchmarks only";
        let workers = declare.table_slot("workers", ["income", "utility", "skill"], doc);
        let active = declare.number_slot("active", "1 if it is the agent's turn");
        let may = ["propose", "vote", "work"]
            .map(|act| declare.number_slot(format!("may-{act}"), format!("1 if the agent may {act} now")));
        let brackets = params.thresholds.len() as u32;
        let rates =
            ResponseFormat::List { of: Box::new(ResponseFormat::number(0.0, 1.0)), least: brackets, most: brackets };
        let argument = ActionArgument::Record(ResponseFormat::Record(vec![("rates".to_owned(), rates)]));
        let propose =
            declare.action("propose", argument, "propose the marginal rates of all brackets, from the lowest");
        let most = f64::from(params.planners.max(1) - 1);
        let doc = "vote for a candidate, by number";
        let vote = declare.action("vote", ActionArgument::Number { low: 0.0, high: most }, doc);
        let doc = "work this much, as a multiple of what the agent would work without taxes; without an act, as before";
        declare.action("work", ActionArgument::Number { low: 0.0, high: MOST_LABOUR }, doc);
        declare.alternatives();
        Slots { schedule, candidates, workers, active, may, propose, vote }
    }

    fn declare_results(declare: &mut DeclareWorld<Self>, params: &Params) {
        let doc = "utility of the round of work, in units of income; 0 in other rounds and for planners";
        declare.reward(doc, |_, state, who| if state.worked { state.workers[*who as usize].utility } else { 0.0 });
        let doc =
            "welfare in the last round of work: the equally distributed equivalent of utilities, in units of income";
        declare.scalar("welfare", doc, |_, state| state.welfare);
        let doc = "welfare above that without any tax, as a share of it";
        declare.scalar("gain", doc, |_, state| state.welfare / state.untaxed - 1.0);
        declare.scalar("rebate", "what each worker got of the revenue", |_, state| state.rebate);
        declare.scalar("output", "mean income before taxes", |world, state| {
            let workers = state.workers.iter().skip(world.params.planners as usize);
            workers.map(|w| w.income).sum::<f64>() / (state.workers.len() as f64 - f64::from(world.params.planners))
        });
        declare.scalar("year", "tax years that are over", |_, state| f64::from(state.year));
        let doc = "the planner whose proposal is the law; -1 for none";
        declare.scalar("elected", doc, |_, state| state.elected.map_or(-1.0, f64::from));
        for i in 0..params.thresholds.len() {
            declare.scalar(
                format!("rate-{}", i + 1),
                "a marginal rate of the law, from the lowest bracket",
                move |_, s| s.law.rates()[i],
            );
        }
        declare.scalar(
            "refused",
            "acts of the round that did not count: of others than those whose turn it was, or unusable",
            |_, s| f64::from(s.refused_last),
        );
    }
}

impl World for Tax {
    const NAME: &'static str = "tax";
    const SUMMARY: &'static str =
        "Workers under an income tax in brackets that planners set, with votes (LLM Economist)";
    type Params = Params;
    type State = State;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let law = params.check(setup.agents)?;
        let economy = Economy { elasticity: params.elasticity, aversion: params.aversion };
        Tax::declare_rules(declare, &params);
        let slots = Tax::declare_acts(declare, &params);
        Tax::declare_results(declare, &params);
        Ok(Tax { params, law, economy, slots })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> State {
        let mut worker = |who: AgentId| match self.is_planner(who) {
            true => Worker::default(),
            false => Worker { skill: self.params.skills.draw(draws), labour: 1.0, ..Worker::default() },
        };
        let workers: Vec<Worker> = (0..setup.agents).map(&mut worker).collect();
        // Without taxes all work 1.
        let utility = |w: &Worker| w.skill - self.economy.cost(w.skill, w.skill);
        let utilities: Vec<f64> = workers.iter().skip(self.params.planners as usize).map(utility).collect();
        let untaxed = self.economy.welfare(&utilities);
        let mut state = State {
            workers: workers.into(),
            law: self.law.clone(),
            candidates: Vec::new(),
            phase: if self.params.planners > 0 { Phase::Proposal } else { Phase::Work },
            year: 0,
            step: 0,
            rebate: 0.0,
            welfare: 0.0,
            untaxed,
            past: Vec::new(),
            shown: 0.0,
            worked: false,
            elected: None,
            refused: 0,
            refused_last: 0,
        };
        self.settle(&mut state);
        state.shown = state.welfare;
        state
    }

    fn observe(&self, state: &State, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let who = person.id;
        let active = self.is_active(state, who);
        observation.number(self.slots.active, truth(active));
        if active {
            observation.number(self.slots.may[state.phase as usize], 1.0);
        }
        observation.table(self.slots.schedule, |rows| {
            let both = state.law.thresholds().iter().zip(state.law.rates());
            rows.extend(both.flat_map(|(threshold, rate)| [*threshold, *rate]));
        });
        if state.phase == Phase::Vote && active {
            observation.table(self.slots.candidates, |rows| {
                for (i, candidate) in state.candidates.iter().enumerate() {
                    rows.extend(candidate.schedule.rates().iter().flat_map(|rate| [i as f64, *rate, candidate.rebate]));
                }
            });
        }
        if state.phase == Phase::Proposal && active {
            observation.table(self.slots.workers, |rows| {
                let workers = state.workers.iter().skip(self.params.planners as usize);
                rows.extend(workers.flat_map(|w| [w.income, w.utility, w.skill]));
            });
        }
    }

    fn apply(&self, state: &mut State, actions: &AgentActions<'_>, _: &mut Future) {
        let who = actions.person.id;
        let active = self.is_active(state, who);
        for (i, act) in actions.acts().iter().enumerate() {
            let fits = match state.phase {
                _ if !active => false,
                Phase::Proposal if act.kind == self.slots.propose => {
                    let proposal = actions.record::<Proposal>(i);
                    let schedule = proposal.and_then(|proposal| self.law.with_rates(proposal.rates).ok());
                    let fits = schedule.is_some();
                    if let Some(schedule) = schedule {
                        // The last proposal of a planner counts.
                        state.candidates.retain(|candidate| candidate.by != who);
                        state.candidates.push(Candidate { by: who, schedule, rebate: 0.0, votes: 0 });
                    }
                    fits
                }
                Phase::Vote if act.kind == self.slots.vote => {
                    match state.candidates.get_mut(act.value.max(0.0).round() as usize) {
                        Some(candidate) => {
                            candidate.votes += 1;
                            true
                        }
                        None => false,
                    }
                }
                Phase::Work if act.kind != self.slots.propose && act.kind != self.slots.vote => {
                    let labour = act.value.clamp(0.0, MOST_LABOUR);
                    state.workers.change(who as usize, |worker| worker.labour = labour);
                    true
                }
                _ => false,
            };
            state.refused += u32::from(!fits);
        }
    }

    fn end_round(&self, state: &mut State, draws: &mut Draws) -> Option<String> {
        state.refused_last = std::mem::take(&mut state.refused);
        state.worked = state.phase == Phase::Work;
        if state.phase == Phase::Proposal {
            // In random order, planners propose in another order.
            state.candidates.sort_by_key(|candidate| candidate.by);
            if self.params.vote && !state.candidates.is_empty() {
                let first = self.params.planners as usize;
                let State { workers, candidates, .. } = state;
                for candidate in candidates {
                    candidate.rebate = rebate(&candidate.schedule, workers.iter().skip(first).map(|w| w.income));
                }
                state.phase = Phase::Vote;
                return None;
            }
        }
        if state.phase != Phase::Work {
            // A tie goes to the planner with the lowest id.
            let most = state.candidates.iter().map(|candidate| candidate.votes).max();
            if let Some(law) = state.candidates.iter().find(|candidate| Some(candidate.votes) == most) {
                (state.law, state.elected) = (law.schedule.clone(), Some(law.by));
            }
            state.candidates.clear();
            (state.phase, state.step) = (Phase::Work, 0);
            return None;
        }
        self.settle(state);
        state.step += 1;
        if state.step < self.params.steps {
            return None;
        }
        (state.step, state.year) = (0, state.year + 1);
        state.past.push(state.welfare);
        state.shown = match self.params.feedback {
            Feedback::True => state.welfare,
            Feedback::Shuffled => state.past[draws.below(state.past.len() as u64) as usize],
        };
        if state.year >= self.params.years {
            return Some(format!("{} tax years are over", self.params.years));
        }
        if self.params.planners > 0 {
            state.phase = Phase::Proposal;
        }
        None
    }
}
