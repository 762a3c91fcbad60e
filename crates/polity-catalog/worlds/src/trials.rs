//! Worlds of independent trials: every agent repeats an experiment of its own, and its columns show the result of its last trial.
//!
//! An [`Experiment`] is all that such a world has to write. Nothing passes from one agent to another, so one run with many agents gives
//! as many replicates, and a mean over agents is a mean over replicates.

use polity_kernel::Invalid;
use polity_kernel::interface::ActionArgument;
use polity_kernel::policy::Person;
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareSplit, Future, SplitWorld, WorldSetup};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// An experiment that agents repeat; its fields are what a scenario may set.
pub trait Experiment: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The name of the world.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a trial measures: names of columns and what they mean.
    const COLUMNS: &'static [(&'static str, &'static str)];

    /// Checks what the scenario has set.
    ///
    /// # Errors
    /// A value that does not fit.
    fn check(&self) -> Result<(), Invalid>;

    /// Does one trial. Returns one number for each column.
    ///
    /// # Errors
    /// A solver that did not end, in words. The agent's columns stay as they were, and its `failed` rises.
    fn trial(&self, draws: &mut Draws) -> Result<Vec<f64>, String>;
}

/// What an agent's trials have given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The results of the last trial that did not fail; zeros before the first.
    results: Vec<f64>,
    trials: u32,
    failed: u32,
}

/// A world in which every agent repeats an experiment.
pub struct Trials<E>(E);

impl<E: Experiment> SplitWorld for Trials<E> {
    const NAME: &'static str = E::NAME;
    const SUMMARY: &'static str = E::SUMMARY;
    type Params = E;
    type Row = Record;
    /// Trials of the last round.
    type Common = u32;
    /// Trials of the round.
    type Tally = u32;

    fn open(experiment: E, _: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        experiment.check()?;
        declare.number("trials", "trials that the agent has done", |_, _, record| f64::from(record.trials));
        declare.action("run", ActionArgument::Nothing, "do a trial; several in one turn are one");
        for (place, (name, doc)) in E::COLUMNS.iter().enumerate() {
            let of = move |_: &Self, _: &u32, record: &Record| record.results.get(place).copied().unwrap_or_default();
            declare.column(*name, format!("of the agent's last trial: {doc}"), None, of);
        }
        let doc = "the agent's trials in which a solver did not end; they change no other column";
        declare.column("failed", doc, None, |_, _, record| f64::from(record.failed));
        declare.scalar("trials", "trials in the round", |_, trials| f64::from(*trials));
        Ok(Trials(experiment))
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(E::COLUMNS)
    }

    fn init_common(&self) -> u32 {
        0
    }

    fn init_row(&self, _: Person<'_>, _: &mut Draws) -> Record {
        Record { results: vec![0.0; E::COLUMNS.len()], trials: 0, failed: 0 }
    }

    fn tally(&self) -> u32 {
        0
    }

    fn apply(&self, _: &u32, record: &mut Record, actions: &AgentActions<'_>, tally: &mut u32, _: &mut Future) {
        if actions.acts().is_empty() {
            return;
        }
        *tally += 1;
        record.trials += 1;
        match self.0.trial(&mut actions.draws()) {
            Ok(results) => record.results = results,
            Err(_) => record.failed += 1,
        }
    }

    fn merge(&self, left: u32, right: u32) -> u32 {
        left + right
    }

    fn end_round(&self, trials: &mut u32, tally: u32, _: &mut Draws) -> Option<String> {
        *trials = tally;
        None
    }
}
