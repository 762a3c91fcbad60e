//! Exact learners of finite decision processes, without neural networks. See README.md.

mod params;

use params::{Algorithm, Config};
use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, Observation, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_learn::learner::{Baseline, Batch, Play, Step, Task, View};
use polity_learn::process::{Objective, Process};
use polity_learn::{aggregation, concerns, conservative, improper, joint, multilevel, value_mapping};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<TabularLearner>(files);
}

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// What learns.
    algorithm: Algorithm,
}

/// A learner.
pub struct TabularLearner {
    config: Config,
    slots: Slots,
    acts: Acts,
}

struct Slots {
    states: NumberSlot,
    horizon: NumberSlot,
    discount: NumberSlot,
    known: NumberSlot,
    floor: NumberSlot,
    baseline_value: NumberSlot,
    seats: TableSlot,
    features: TableSlot,
    channels: TableSlot,
    initial: TableSlot,
    transitions: TableSlot,
    dynamics: TableSlot,
    payoffs: TableSlot,
    baseline: TableSlot,
}

struct Acts {
    play: u16,
    play_instead: u16,
    instead: u16,
    target: u16,
    estimate: u16,
    sample: u16,
}

/// What an agent has learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Learnt {
    /// Values in mapped spaces.
    ValueMapping(value_mapping::ValueMapping),
    /// Nothing: it plans.
    Aggregation,
    /// Counts.
    Conservative(conservative::Conservative),
    /// A joint policy.
    Joint(joint::Joint),
    /// Shares of controllers.
    Improper(improper::Improper),
    /// Actor and critic.
    MultiLevel(multilevel::MultiLevel),
    /// Values of several learners.
    Concerns(concerns::Concerns),
}

impl TabularLearner {
    fn task(&self, seen: &Observation<'_>) -> Task {
        let column = |slot: TableSlot, place: usize| seen.table(slot).map(move |row| row[place]);
        let whole = |slot: TableSlot| column(slot, 0).map(|size| size as usize).collect();
        let horizon = seen.number(self.slots.horizon) as usize;
        let discount = seen.number(self.slots.discount);
        let objective = match horizon {
            0 if discount < 1.0 => Objective::Discounted { discount },
            0 => Objective::Average,
            horizon => Objective::Episodic { horizon, discounts: column(self.slots.channels, 1).collect() },
        };
        Task {
            states: seen.number(self.slots.states) as usize,
            moves: whole(self.slots.seats),
            features: whole(self.slots.features),
            initial: column(self.slots.initial, 0).collect(),
            objective,
            weights: column(self.slots.channels, 0).collect(),
        }
    }

    fn batch(&self, seen: &Observation<'_>) -> Batch {
        let mut batch = Batch::default();
        for row in seen.table(self.slots.transitions) {
            batch.steps.push(Step {
                state: row[0] as u32,
                action: row[1] as u32,
                next: row[2] as u32,
                ends: row[3] > 0.5,
            });
            batch.rewards.extend(&row[4..]);
        }
        batch
    }

    /// The process, if it is known.
    fn model(&self, seen: &Observation<'_>, task: &Task) -> Option<Process> {
        if seen.number(self.slots.known) == 0.0 {
            return None;
        }
        let mut process = Process {
            states: task.states,
            moves: task.moves.clone(),
            channels: task.weights.len(),
            next: vec![Vec::new(); task.states * task.actions()],
            initial: task.initial.clone(),
            terminal: vec![false; task.states],
            features: task.features.clone(),
            ..Process::default()
        };
        for row in seen.table(self.slots.dynamics) {
            let ends = row[1] < 0.0;
            let to = if ends { -1.0 - row[1] } else { row[1] } as u32;
            process.terminal[to as usize] |= ends;
            process.next[row[0] as usize].push((to, row[2]));
        }
        seen.table(self.slots.payoffs).for_each(|row| process.rewards.extend(&row[1..]));
        Some(process)
    }

    /// What the algorithm needs of the task.
    fn check(&self, task: &Task, model: Option<&Process>, baseline: bool) -> Result<(), Fault> {
        let unless = |fits: bool, message: &str| if fits { Ok(()) } else { Err(Fault(message.into())) };
        let episodes = matches!(task.objective, Objective::Episodic { .. });
        match &self.config {
            Config::ValueMapping(config) => value_mapping::check(&config.channels, &task.weights).map_err(Fault),
            Config::Aggregation(_) => unless(
                model.is_some() && episodes,
                "the algorithm `aggregation` needs a known process with episodes: `known: true`, `objective: {kind: episodic, ...}`",
            ),
            Config::Conservative(_) => unless(
                baseline && episodes,
                "the algorithm `conservative` needs a baseline and episodes: `baseline: {...}`, `objective: {kind: episodic, ...}`",
            ),
            Config::Joint(config) => unless(
                model.is_some() || config.recorded.is_some(),
                "the algorithm `joint` needs a known process (`known: true`) or `recorded`",
            ),
            Config::Improper(config) => improper::check(&config.controllers, task.actions()).map_err(Fault),
            Config::MultiLevel(_) => unless(
                task.objective == Objective::Average,
                "the algorithm `multi-level` is for the mean reward: `objective: {kind: average}`",
            ),
            Config::Concerns(config) => {
                concerns::check(&config.concerns, &task.moves, &task.features, task.weights.len()).map_err(Fault)
            }
        }
    }
}

impl Policy for TabularLearner {
    const NAME: &'static str = "tabular-learner";
    const SUMMARY: &'static str = "Exact learners and planners for finite decision processes and cooperative games";
    type Params = Params;
    type State = Learnt;

    const COLUMNS: &'static [StateColumn<Self>] = &[
        StateColumn {
            name: "edges",
            doc: "edges of the learnt graph that are not cut; 0 without a graph",
            range: None,
            value: |_, learnt| if let Learnt::Joint(joint) = learnt { joint.edges() as f64 } else { 0.0 },
        },
        StateColumn {
            name: "first-share",
            doc: "share of the first of several controllers; 0 for other learners",
            range: Some((0.0, 1.0)),
            value: |_, learnt| match learnt {
                Learnt::Improper(improper) => improper.shares().first().copied().unwrap_or(0.0),
                _ => 0.0,
            },
        },
    ];

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let config = params.algorithm.read()?;
        let table = |name: &str, column: &str| setup.table(name, [column]).map(|(slot, _)| slot);
        let slots = Slots {
            states: setup.number("states")?,
            horizon: setup.number("horizon")?,
            discount: setup.number("discount")?,
            known: setup.number("known")?,
            floor: setup.number("floor")?,
            baseline_value: setup.number("baseline-value")?,
            seats: table("seats", "moves")?,
            features: table("features", "size")?,
            channels: table("channels", "weight")?,
            initial: table("initial", "probability")?,
            transitions: table("transitions", "state")?,
            dynamics: table("dynamics", "pair")?,
            payoffs: table("payoffs", "pair")?,
            baseline: table("baseline", "probability")?,
        };
        let act = |name: &str| setup.act(name).map(|(act, _)| act);
        let acts = Acts {
            play: act("play")?,
            play_instead: act("play-instead")?,
            instead: act("instead")?,
            target: act("target")?,
            estimate: act("estimate")?,
            sample: act("sample")?,
        };
        Ok(TabularLearner { config, slots, acts })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Learnt {
        match self.config {
            Config::ValueMapping(_) => Learnt::ValueMapping(Default::default()),
            Config::Aggregation(_) => Learnt::Aggregation,
            Config::Conservative(_) => Learnt::Conservative(Default::default()),
            Config::Joint(_) => Learnt::Joint(Default::default()),
            Config::Improper(_) => Learnt::Improper(Default::default()),
            Config::MultiLevel(_) => Learnt::MultiLevel(Default::default()),
            Config::Concerns(_) => Learnt::Concerns(Default::default()),
        }
    }

    fn memory_bytes(&self) -> usize {
        1_000
    }

    async fn act(&self, learnt: &mut Learnt, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let seen = turn.observation;
        let task = self.task(&seen);
        let batch = self.batch(&seen);
        let model = self.model(&seen, &task);
        let policy: Vec<f64> = seen.table(self.slots.baseline).map(|row| row[0]).collect();
        let [value, floor] = [self.slots.baseline_value, self.slots.floor].map(|slot| seen.number(slot));
        let baseline = (!policy.is_empty()).then_some(Baseline { policy, value, floor });
        if turn.round == 0 {
            self.check(&task, model.as_ref(), baseline.is_some())?;
        }
        let view = View { task: &task, batch: &batch, model: model.as_ref(), baseline: baseline.as_ref() };
        let play = match (&self.config, learnt) {
            (Config::ValueMapping(config), Learnt::ValueMapping(learner)) => learner.play(config, &view),
            (Config::Aggregation(scheme), Learnt::Aggregation) => match (view.model, &task.objective) {
                (Some(process), Objective::Episodic { horizon, discounts }) => Play {
                    policy: aggregation::plan(process, *horizon, discounts, &task.weights, *scheme),
                    ..Play::default()
                },
                _ => Play::default(),
            },
            (Config::Conservative(config), Learnt::Conservative(learner)) => learner.play(config, &view),
            (Config::Joint(config), Learnt::Joint(learner)) => learner.play(config, &view, &mut turn.draws),
            (Config::Improper(config), Learnt::Improper(learner)) => learner.play(config, &view),
            (Config::MultiLevel(config), Learnt::MultiLevel(learner)) => learner.play(config, &view, &mut turn.draws),
            (Config::Concerns(config), Learnt::Concerns(learner)) => learner.play(config, &view),
            _ => return Err(Fault("what the agent has learnt is of another algorithm".into())),
        };
        let acts = &self.acts;
        let (weight, instead) = play.other.unwrap_or_default();
        for (act, numbers) in [
            (acts.play, &play.policy),
            (acts.play_instead, &instead),
            (acts.target, &play.target.unwrap_or_default()),
            (acts.estimate, &play.estimate.unwrap_or_default()),
        ] {
            numbers.iter().for_each(|number| turn.act(act, *number));
        }
        if !instead.is_empty() {
            turn.act(acts.instead, weight);
        }
        if let Some(steps) = play.steps {
            turn.act(acts.sample, f64::from(steps));
        }
        Ok(())
    }
}
