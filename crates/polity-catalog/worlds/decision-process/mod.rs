//! Finite decision processes and cooperative Markov games: agents submit policies, sample from them, and are judged exactly. See README.md.

mod life;
mod params;
#[cfg(test)]
mod tests;

pub use life::{Life, Solved};
pub use params::Params;

use life::Told;
use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, TableSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::world::{AgentActions, DeclareSplit, Future, ObservationRow, SplitWorld, WorldSetup};
use polity_learn::process::{LARGEST, Objective, Process};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.split_world::<DecisionProcess>(files);
}

/// A finite decision process for each agent.
pub struct DecisionProcess {
    params: Params,
    objective: Objective,
    weights: Vec<f64>,
    /// The processes that all agents share: the first, and the one after the change. Where processes are drawn, an example.
    shared: Vec<Solved>,
    slots: Slots,
}

/// The tables that agents see.
struct Slots {
    seats: TableSlot,
    features: TableSlot,
    channels: TableSlot,
    initial: TableSlot,
    transitions: TableSlot,
    dynamics: TableSlot,
    payoffs: TableSlot,
    baseline: TableSlot,
}

/// The largest number of transitions that are drawn for an agent, and of values of stages, states and actions.
const MOST: usize = 2_000_000;

/// The actions, by number.
const PLAY: u16 = 0;
const INSTEAD: u16 = 1;
const INSTEAD_PROBABILITY: u16 = 2;
const TARGET: u16 = 3;
const ESTIMATE: u16 = 4;

impl DecisionProcess {
    /// The process of an agent in a round.
    fn solved<'a>(&'a self, round: u32, life: &'a Life) -> &'a Solved {
        life.own.as_deref().unwrap_or_else(|| self.common(round))
    }

    /// The process that all agents have in a round, where none is drawn.
    fn common(&self, round: u32) -> &Solved {
        &self.shared[usize::from(self.changed(round)).min(self.shared.len() - 1)]
    }

    fn changed(&self, round: u32) -> bool {
        self.params.change.as_ref().is_some_and(|change| round >= change.round)
    }

    fn solve(&self, process: Process) -> Solved {
        Solved::new(process, &self.objective, &self.weights, self.params.baseline)
    }

    fn declare(declare: &mut DeclareSplit<Self>, params: &Params, process: &Process, objective: &Objective) -> Slots {
        let (states, horizon, discount) = match objective {
            Objective::Episodic { horizon, .. } => (process.states, *horizon, 1.0),
            Objective::Discounted { discount } => (process.states, 0, *discount),
            Objective::Average => (process.states, 0, 1.0),
        };
        for (name, doc, value) in [
            ("states", "number of states", states as f64),
            ("horizon", "steps of an episode; 0: there are no episodes", horizon as f64),
            ("discount", "discount factor of tasks without episodes; 1: the mean reward counts", discount),
            ("known", "1 if the process itself is shown", f64::from(u8::from(params.known))),
        ] {
            declare.shared_number(name, doc, move |_, _| value);
        }
        let floor = params.baseline.map_or(0.0, |known| known.floor);
        let doc = "what an episode must be worth in expectation";
        declare
            .number("floor", doc, move |world: &Self, round, life| floor * world.solved(*round, life).baseline_value);
        let doc = "what the known policy is worth";
        declare.number("baseline-value", doc, |world, round, life| world.solved(*round, life).baseline_value);
        let seats = declare.table_slot(
            "seats",
            ["moves"],
            "for each seat the number of its moves; the first seat's move changes slowest in a joint action",
        );
        let features = declare.table_slot(
            "features",
            ["size"],
            "sizes of the features that a state is made of, the slowest first",
        );
        let channels = declare.table_slot(
            "channels",
            ["weight", "discount"],
            "for each channel of reward its weight and its discount factor",
        );
        let initial = declare.table_slot(
            "initial",
            ["probability"],
            "for each state the probability that an episode begins there",
        );
        let names = |first: &[&str]| -> Vec<String> {
            let rewards = (1..=process.channels).map(|channel| format!("reward-{channel}"));
            first.iter().map(|name| (*name).to_owned()).chain(rewards).collect()
        };
        let doc = "what the agent sampled in the last round, step by step: state, joint action, next state, whether the episode ended, rewards";
        let transitions = declare.table_slot("transitions", names(&["state", "action", "next", "ends"]), doc);
        let doc = "the process, if it is known: for each pair of a state and a joint action, by number, next states and probabilities";
        let dynamics = declare.table_slot("dynamics", ["pair", "next", "probability"], doc);
        let payoffs =
            declare.table_slot("payoffs", names(&["pair"]), "for each pair its rewards, if the process is known");
        let doc = "the known policy: for each stage, state and joint action a probability";
        let baseline = declare.table_slot("baseline", ["probability"], doc);
        let share = || ActionArgument::Number { low: 0.0, high: 1.0 };
        let doc = "a probability of the policy that acts, in order of stage (or for all stages alike), state and joint action: one act for each";
        declare.action("play", share(), doc);
        declare.action("play-instead", share(), "likewise, of a policy that may act in an episode in its place");
        declare.action("instead", share(), "the probability with which it does");
        let doc = "likewise, of the policy that the agent holds to be best; without it, the one that acts";
        declare.action("target", share(), doc);
        let any = ActionArgument::Number { low: -1e12, high: 1e12 };
        declare.action("estimate", any, "an action value as the agent estimates it, in the same order");
        let steps = ActionArgument::Number { low: 0.0, high: f64::from(params.max_batch) };
        declare.action("sample", steps, "how many episodes, or steps where there are none, to sample in this round");
        Slots { seats, features, channels, initial, transitions, dynamics, payoffs, baseline }
    }

    fn declare_results(declare: &mut DeclareSplit<Self>) {
        let one = |is: bool| f64::from(u8::from(is));
        declare.reward("mean reward a step in the round", |_, _, life| life.reward);
        declare.column("value", "what the agent's best policy is worth, exactly", None, |_, _, life| life.value);
        declare.column("optimum", "what the best of all policies is worth", None, |world, round, life| {
            world.solved(round.saturating_sub(1), life).optimum
        });
        declare.column("gap", "optimum less value", None, |world, round, life| {
            world.solved(round.saturating_sub(1), life).optimum - life.value
        });
        let doc = "1 if the gap is within the tolerance";
        declare.column("solved", doc, Some((0.0, 1.0)), move |world, round, life| {
            one(life.solved(world.solved(round.saturating_sub(1), life), world.params.tolerance))
        });
        let doc = "rounds of the task until the gap was within the tolerance; all of them if it never was";
        declare.column("rounds-to-solve", doc, None, |_, _, life| life.rounds_to_solve());
        declare.column("error", "largest error of the agent's action values", None, |_, _, life| life.error);
        let doc = "sum over rounds of the optimum less what the acting policy was worth";
        declare.column("regret", doc, None, |_, _, life| life.regret);
        let doc = "exponent with which regret grew over the last doubling of the rounds, up to a power of two";
        declare.column("regret-growth", doc, None, |_, _, life| life.growth());
        let doc = "rounds in which the acting policy was worth less than the floor";
        declare.column("violations", doc, None, |_, _, life| f64::from(life.violations));
        declare.column("samples", "steps sampled so far", None, |_, _, life| life.samples);
        let doc = "share of the situations that can be reached in which the best policy contradicts the objectives";
        declare.column("inconsistent", doc, Some((0.0, 1.0)), |_, _, life| life.inconsistent);
        let doc = "by how much both objectives could be improved at once";
        declare.column("dominated", doc, None, |_, _, life| life.dominated);
    }
}

impl SplitWorld for DecisionProcess {
    const NAME: &'static str = "decision-process";
    const SUMMARY: &'static str =
        "A finite Markov decision process or cooperative Markov game for each agent, with exact measures";
    type Params = Params;
    type Row = Life;
    /// Rounds played.
    type Common = u32;
    type Tally = ();

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        params.check()?;
        let build = |kind: &params::Kind, key: &str| {
            let (states, actions) = kind.size();
            let small = states.checked_mul(actions).is_some_and(|pairs| pairs <= LARGEST);
            let why = format!(
                "{states} states and {actions} joint actions are too many; at most {LARGEST} pairs can be solved"
            );
            Invalid::unless(small, key, why)?;
            let transitions = if kind.dense() { states * actions * states } else { 0 };
            let why = format!("{transitions} transitions are too many; at most {MOST} can be drawn for each agent");
            Invalid::unless(transitions <= MOST, key, why)?;
            let process = kind.build(&mut Draws::new(0, Stream::Seat, 0, 0));
            process.check().map_err(|message| Invalid { key: key.into(), message })?;
            Ok(process)
        };
        let process = build(&params.process, "process")?;
        let (objective, weights) = params.objective(process.channels)?;
        let values = Process::stages(&objective) * process.pairs();
        let why = format!("{values} values of stages, states and actions are too many; at most {MOST}");
        Invalid::unless(values <= MOST, "objective", why)?;
        if let Some(change) = &params.change {
            let fixed = !change.process.drawn() && !params.process.drawn();
            Invalid::unless(fixed, "change", "only processes of which nothing is drawn can change")?;
            let other = build(&change.process, "change.process")?;
            let same = (&other.moves, &other.features, other.channels);
            let fits = same == (&process.moves, &process.features, process.channels);
            Invalid::unless(fits, "change.process", "must have the states, moves and channels of the first")?;
        }
        let slots = DecisionProcess::declare(declare, &params, &process, &objective);
        DecisionProcess::declare_results(declare);
        let after = params.change.as_ref().map(|change| change.process.build(&mut Draws::new(0, Stream::Seat, 0, 0)));
        let mut world = DecisionProcess { params, objective, weights, shared: Vec::new(), slots };
        world.shared = [Some(process), after].into_iter().flatten().map(|process| world.solve(process)).collect();
        Ok(world)
    }

    fn memory_bytes(&self) -> usize {
        let process = &self.shared[0].process;
        let transitions: usize = process.next.iter().map(|next| 16 * next.len() + 24).sum();
        let steps = match self.params.objective {
            params::Horizon::Episodic { steps, .. } => steps,
            _ => 1,
        };
        let own = if self.params.process.drawn() { transitions + 24 * process.pairs() } else { 0 };
        own + self.params.batch as usize * steps * (16 + 8 * process.channels)
    }

    fn init_common(&self) -> u32 {
        0
    }

    fn init_row(&self, _: Person<'_>, draws: &mut Draws) -> Life {
        let own = self.params.process.drawn().then(|| Box::new(self.solve(self.params.process.build(draws))));
        let mut life = Life::default();
        life.own = own;
        life
    }

    fn observe(&self, round: &u32, life: &Life, _: Person<'_>, observation: &mut ObservationRow<'_>) {
        let solved = self.solved(*round, life);
        let (process, slots) = (&solved.process, &self.slots);
        observation.table(slots.seats, |rows| rows.extend(process.moves.iter().map(|n| *n as f64)));
        observation.table(slots.features, |rows| rows.extend(process.features.iter().map(|n| *n as f64)));
        observation.table(slots.channels, |rows| {
            for (channel, weight) in self.weights.iter().enumerate() {
                let discount = match &self.objective {
                    Objective::Episodic { discounts, .. } => discounts[channel],
                    Objective::Discounted { discount } => *discount,
                    Objective::Average => 1.0,
                };
                rows.extend([*weight, discount]);
            }
        });
        observation.table(slots.initial, |rows| rows.extend(process.initial.iter().copied()));
        observation.table(slots.transitions, |rows| {
            for (step, rewards) in life.batch.iter() {
                let ends = f64::from(u8::from(step.ends));
                rows.extend([f64::from(step.state), f64::from(step.action), f64::from(step.next), ends]);
                rows.extend(rewards.iter().copied());
            }
        });
        observation.table(slots.baseline, |rows| rows.extend(solved.baseline.iter().copied()));
        if self.params.known {
            observation.table(slots.dynamics, |rows| {
                for (pair, next) in process.next.iter().enumerate() {
                    for (to, p) in next {
                        // A state that ends the episode is told by its number below 0.
                        let to = f64::from(*to);
                        let to = if process.terminal[to as usize] { -1.0 - to } else { to };
                        rows.extend([pair as f64, to, *p]);
                    }
                }
            });
            observation.table(slots.payoffs, |rows| {
                for (pair, rewards) in process.rewards.chunks(process.channels).enumerate() {
                    rows.extend([pair as f64]);
                    rows.extend(rewards.iter().copied());
                }
            });
        }
    }

    fn tally(&self) {}

    fn apply(&self, round: &u32, life: &mut Life, actions: &AgentActions<'_>, (): &mut (), _: &mut Future) {
        let mut told = Told::default();
        for act in actions.acts() {
            match act.kind {
                PLAY => told.policy.push(act.value.clamp(0.0, 1.0)),
                INSTEAD => told.instead.push(act.value.clamp(0.0, 1.0)),
                INSTEAD_PROBABILITY => told.instead_probability = act.value.clamp(0.0, 1.0),
                TARGET => told.target.push(act.value.clamp(0.0, 1.0)),
                ESTIMATE => told.estimate.push(act.value),
                _ => told.steps = Some(act.value),
            }
        }
        if self.params.change.as_ref().is_some_and(|change| *round == change.round && *round > 0) {
            life.change();
        }
        // The process is taken out while the rest of the row changes.
        let own = life.own.take();
        let solved = own.as_deref().unwrap_or_else(|| self.common(*round));
        life.round(solved, &self.params, (&self.objective, &self.weights), &told, &mut actions.draws());
        life.own = own;
    }

    fn merge(&self, (): (), (): ()) {}

    fn end_round(&self, round: &mut u32, (): (), _: &mut Draws) -> Option<String> {
        *round += 1;
        None
    }
}
