//! A principal hires two agents to gather information. See README.md.

#[cfg(test)]
mod tests;

use polity_games::hiring::{Learner, Margins, Mechanism, Phase, Problem, exploring, optimal, slope, uncorrelated};
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Hiring>(files);
}

/// How the principal chooses efforts and payments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// By the optimal incentive-compatible mechanism.
    #[default]
    Optimal,
    /// By the best one in which the efforts of the two are drawn independently.
    Uncorrelated,
    /// The efforts of the optimal one, and each agent is paid the cost of its effort, whatever it reports.
    Flat,
    /// It does not know the signals: it explores, then commits itself, over horizons that double.
    Learner,
}

/// Parameters of hiring.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How the principal chooses efforts and payments.
    mechanism: Kind,
    /// Probability with which an agent who works sees the state; 0.5 to 1.
    accuracy: f64,
    /// Probability with which two agents who work make the same error; else each makes its own. 0 to 1.
    common: f64,
    /// The cost of work for each of the two agents; 0 to 1.
    costs: [f64; 2],
    /// The largest payment to an agent in a round; above 0, up to 10.
    cap: f64,
    /// Steps of an episode, each of `batch` rounds with the same mechanism. A learner has its own steps.
    steps: u32,
    /// Rounds of a step. A learner has its own.
    batch: u32,
    /// Rounds of a learner's first horizon; 8 to 1,000,000.
    first: u32,
    /// A learner's horizons, each twice as long as the one before; 2 to 16.
    horizons: u32,
    /// A learner explores in this many times T^(2/3) of the T rounds of a horizon; 0.01 to 1,000.
    share: f64,
    /// By how much obedience must beat deviations by a learner's estimates: this many times the largest payment over the root of the number of
    /// observations; 0 to 10.
    margin: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            mechanism: Kind::Optimal,
            accuracy: 0.75,
            common: 0.5,
            costs: [0.03, 0.03],
            cap: 0.3,
            steps: 10,
            batch: 100,
            first: 8_000,
            horizons: 9,
            share: 1.0,
            margin: 2.0,
        }
    }
}

/// The principal's problem and mechanisms.
pub struct Hiring {
    params: Params,
    problem: Problem,
    /// What the optimal mechanism is worth.
    optimum: f64,
    /// The mechanism of a principal that does not learn.
    known: Mechanism,
    /// Of a learner: the mechanism with which it explores each combination of efforts.
    exploring: Vec<Mechanism>,
    gain: NumberSlot,
    expects: NumberSlot,
    work: NumberSlot,
}

/// The state of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    learner: Option<Learner>,
    /// Of a learner: the horizon, from 0, and the phases that are left of it, the current one last.
    horizon: u32,
    phases: Vec<Phase>,
    /// The mechanism to which a learner has committed itself in this phase.
    committed: Option<Mechanism>,
    steps: u32,
    rounds: u64,
    /// Sums over rounds of what the principal expected.
    gained: f64,
    /// Turns of agents, and those in which one departed and gained by it.
    turns: u32,
    departures: u32,
    /// After each horizon: rounds and regret so far.
    points: Vec<(f64, f64)>,
}

impl Relation {
    fn regret(&self, optimum: f64) -> f64 {
        optimum * self.rounds as f64 - self.gained
    }
}

impl Hiring {
    fn current<'a>(&'a self, relation: &'a Relation) -> &'a Mechanism {
        match relation.phases.last() {
            Some(Phase { explores: Some(efforts), .. }) => self.exploring.get(*efforts).unwrap_or(&self.known),
            Some(_) => relation.committed.as_ref().unwrap_or(&self.known),
            None => &self.known,
        }
    }

    /// The most that an agent gains by a reply to any recommendation, in a round in which it gets it.
    fn gain(&self, relation: &Relation, seat: Seat) -> f64 {
        let reply = |effort: usize| self.problem.reply(self.current(relation), seat as usize, effort).gain;
        (0..2).map(reply).fold(0.0, f64::max)
    }

    /// The phases of a horizon that have rounds, the first one last.
    fn phases(&self, horizon: u32) -> Vec<Phase> {
        let mut phases = Learner::phases(&self.problem, u64::from(self.params.first) << horizon, self.params.share);
        phases.retain(|phase| phase.rounds > 0);
        phases.reverse();
        phases
    }

    /// Begins the current phase of a learner: commits it, if it has explored.
    fn begin(&self, relation: &mut Relation) {
        relation.committed = None;
        if let (Some(learner), Some(Phase { explores: None, .. })) = (&relation.learner, relation.phases.last()) {
            // A problem that was solved with its true law has a solution with any: that nobody works.
            relation.committed = learner.commit(&self.problem, self.params.margin).ok();
        }
    }

    /// Lets a learner see the rounds of a phase of exploration.
    fn explore(&self, relation: &mut Relation, efforts: usize, rounds: u64, draws: &mut Draws) {
        let Some(learner) = &mut relation.learner else { return };
        for _ in 0..rounds {
            let state = draws.weighted(&self.problem.prior).unwrap_or_default();
            let law: Vec<f64> =
                (0..self.problem.joint_signals()).map(|seen| self.problem.likelihood(efforts, state, seen)).collect();
            learner.see(&self.problem, efforts, state, draws.weighted(&law).unwrap_or_default(), 1);
        }
    }
}

fn check(params: &Params) -> Result<(), Invalid> {
    Invalid::within(0.5..=1.0, "accuracy", params.accuracy)?;
    Invalid::within(0.0..=1.0, "common", params.common)?;
    for (i, cost) in params.costs.iter().enumerate() {
        Invalid::within(0.0..=1.0, &format!("costs[{i}]"), *cost)?;
    }
    let fits = params.cap > 0.0 && params.cap <= 10.0;
    Invalid::unless(fits, "cap", format!("must be above 0, up to 10, is {}", params.cap))?;
    Invalid::within(1..=100_000, "steps", params.steps)?;
    Invalid::within(1..=1_000_000, "batch", params.batch)?;
    Invalid::within(8..=1_000_000, "first", params.first)?;
    Invalid::within(2..=16, "horizons", params.horizons)?;
    Invalid::within(0.01..=1_000.0, "share", params.share)?;
    Invalid::within(0.0..=10.0, "margin", params.margin)
}

impl Environment for Hiring {
    const NAME: &'static str = "hiring";
    const SUMMARY: &'static str = "A principal hires two agents to gather information, by scoring rules";
    type Params = Params;
    type State = Relation;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        check(&params)?;
        let problem = Problem::pair(params.accuracy, params.common, params.costs, params.cap);
        let within = |message: String| Invalid { key: "mechanism".into(), message };
        let best = optimal(&problem, Margins::default()).map_err(within)?;
        let optimum = best.value;
        let known = match params.mechanism {
            Kind::Optimal | Kind::Learner => best,
            Kind::Uncorrelated => uncorrelated(&problem, 8).map_err(within)?,
            Kind::Flat => problem.flat(&best.weights),
        };
        let mut explorers = Vec::new();
        if params.mechanism == Kind::Learner {
            for efforts in 0..problem.joint_efforts() {
                let found = exploring(&problem, efforts).map_err(within)?;
                let message =
                    "some efforts cannot be enforced by any payments: make the cap larger or the costs smaller";
                explorers.push(found.ok_or_else(|| within(message.into()))?);
            }
        }
        let gain = declare.number_slot("gain", "the most that the agent can gain in a round by not obeying");
        let expects = declare.number_slot("expects", "what it expects of a round if both obey: payment less cost");
        let work = declare.number_slot("work", "probability with which it is told to work");
        let doc = "do what is told, and report what is seen, in all rounds of the step";
        declare.action("obey", ActionArgument::Nothing, doc);
        let doc = "do and report what is best for oneself, if the other obeys, in all rounds of the step";
        declare.action("depart", ActionArgument::Nothing, doc);
        let a_round = |relation: &Relation| relation.gained / relation.rounds.max(1) as f64;
        let doc = "what the principal expected of a round, mean over all rounds of the episode";
        declare.scalar("value", doc, move |_, relation| a_round(relation));
        let doc = "what the optimal mechanism is worth in a round";
        declare.scalar("optimum", doc, |hiring: &Hiring, _| hiring.optimum);
        declare.scalar("shortfall", "optimum less value", move |hiring, relation| hiring.optimum - a_round(relation));
        let doc = "optimum less value, summed over all rounds of the episode";
        declare.scalar("regret", doc, |hiring, relation| relation.regret(hiring.optimum));
        let doc = "slope of regret over rounds, both as logarithms, over the horizons so far";
        declare.scalar("slope", doc, |_, relation| slope(&relation.points));
        let doc = "share of turns in which an agent departed and gained by it";
        declare
            .scalar("departures", doc, |_, relation| f64::from(relation.departures) / f64::from(relation.turns.max(1)));
        Ok(Hiring { params, problem, optimum, known, exploring: explorers, gain, expects, work })
    }

    fn seats(&self) -> u32 {
        2
    }

    fn reset(&self, _: &Item, _: &mut Draws) -> Relation {
        let learns = self.params.mechanism == Kind::Learner;
        let mut relation = Relation {
            learner: learns.then(|| Learner::new(&self.problem)),
            horizon: 0,
            phases: if learns { self.phases(0) } else { Vec::new() },
            committed: None,
            steps: 0,
            rounds: 0,
            gained: 0.0,
            turns: 0,
            departures: 0,
            points: Vec::new(),
        };
        self.begin(&mut relation);
        relation
    }

    fn observe(&self, relation: &Relation, seat: Seat, observation: &mut ObservationRow<'_>) {
        let mechanism = self.current(relation);
        let outcome = self.problem.outcome(&self.problem, mechanism, |_, _| false);
        observation.number(self.gain, self.gain(relation, seat));
        observation.number(self.expects, outcome.agents.get(seat as usize).copied().unwrap_or_default());
        let told = mechanism.weights.iter().enumerate();
        let works = told.filter(|(efforts, _)| self.problem.effort(*efforts, seat as usize) == 1);
        observation.number(self.work, works.map(|(_, weight)| weight).sum());
    }

    /// An agent without a move obeys.
    fn step(&self, relation: &mut Relation, moves: &[Move], draws: &mut Draws) -> StepResult {
        let departs = |agent: usize| moves.iter().any(|made| made.seat as usize == agent && made.action == 1);
        let phase = relation.phases.last().copied();
        let rounds = phase.map_or(u64::from(self.params.batch), |phase| phase.rounds);
        let believed = match (&relation.learner, phase) {
            (Some(learner), Some(Phase { explores: None, .. })) => learner.believed(&self.problem),
            _ => self.problem.clone(),
        };
        let outcome = self.problem.outcome(&believed, self.current(relation), |agent, _| departs(agent));
        relation.turns += 2;
        relation.departures +=
            (0..2).filter(|seat| departs(*seat as usize) && self.gain(relation, *seat) > 0.0).count() as u32;
        relation.rounds += rounds;
        relation.gained += rounds as f64 * outcome.principal;
        relation.steps += 1;
        let mut done = relation.learner.is_none() && relation.steps >= self.params.steps;
        if let Some(phase) = phase {
            if let Some(efforts) = phase.explores {
                self.explore(relation, efforts, rounds, draws);
            }
            relation.phases.pop();
            if relation.phases.is_empty() {
                relation.points.push((relation.rounds as f64, relation.regret(self.optimum)));
                relation.horizon += 1;
                done = relation.horizon >= self.params.horizons;
                relation.phases = if done { Vec::new() } else { self.phases(relation.horizon) };
            }
            self.begin(relation);
        }
        StepResult { rewards: outcome.agents, results: vec![String::new(); moves.len()], done }
    }
}
