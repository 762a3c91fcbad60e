//! Worlds in which every agent repeats an experiment by itself.
//!
//! Such a world has two parts: the [`Setting`] that a scenario writes, and the [`Experiment`] that it opens. Nothing passes from one agent
//! to another, so one run with many agents gives as many replicates, and a mean over agents is a mean over replicates.

use polity_kernel::interface::ActionArgument;
use polity_kernel::policy::Person;
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareSplit, Future, SplitWorld, WorldSetup};
use polity_kernel::{Invalid, Plain};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A number that a trial gives: its name, and what it means.
pub type Measure = (&'static str, &'static str);

/// The slope of the mean of one measure over the mean of another, both in logarithms, over all rounds.
#[derive(Clone, Copy, Debug)]
pub struct Slope {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// The place of the measure on the axis.
    pub over: usize,
    /// The place of the measure that grows or falls.
    pub of: usize,
}

/// An experiment that agents repeat. `Memory` is what an agent keeps from one trial to the next.
pub trait Experiment<Memory: Default = ()>: Send + Sync {
    /// Returns what a trial measures.
    fn measures(&self) -> &'static [Measure];
    /// Returns slopes of measures.
    fn slopes(&self) -> &'static [Slope] {
        &[]
    }
    /// Returns the number of rounds after which the run ends, if the experiment has an end. No agent does more trials.
    fn rounds(&self) -> Option<u32> {
        None
    }
    /// Returns what an agent starts with.
    fn begin(&self, draws: &mut Draws) -> Memory {
        let _ = draws;
        Memory::default()
    }
    /// Returns the approximate size of an agent's memory in bytes.
    fn memory_bytes(&self) -> usize {
        0
    }
    /// Does a trial, numbered from 0 for each agent. Returns one number for each measure.
    ///
    /// # Errors
    /// A solver that did not end, in words. The agent's results stay as they were, and its `failed` rises.
    fn trial(&self, memory: &mut Memory, number: u32, draws: &mut Draws) -> Result<Vec<f64>, String>;
}

/// What a scenario sets in a world of trials.
pub trait Setting: DeserializeOwned + JsonSchema + 'static {
    /// The name of the world.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What an agent keeps from one trial to the next.
    type Memory: Plain + Default;

    /// Opens the experiment.
    ///
    /// # Errors
    /// A value that does not fit.
    fn open(self, setup: &WorldSetup<'_>) -> Result<Box<dyn Experiment<Self::Memory>>, Invalid>;
}

/// An agent: what it remembers, and what its trials have given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record<Memory> {
    memory: Memory,
    /// The results of the last trial that did not fail; zeros before the first.
    results: Vec<f64>,
    trials: u32,
    failed: u32,
}

/// What is known of all agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    rounds: u32,
    /// Trials of the last round.
    trials: u32,
    /// Means of the results after the last round, and the least of these means so far.
    means: Vec<f64>,
    least: Vec<f64>,
    /// For each slope: n, and the sums of x, y, x^2 and x y, of logarithms.
    fits: Vec<[f64; 5]>,
}

/// Sums over agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    agents: u32,
    trials: u32,
    results: Vec<f64>,
}

/// A world in which every agent repeats an experiment.
pub struct Trials<S: Setting>(Box<dyn Experiment<S::Memory>>);

impl<S: Setting> SplitWorld for Trials<S> {
    const NAME: &'static str = S::NAME;
    const SUMMARY: &'static str = S::SUMMARY;
    type Params = S;
    type Row = Record<S::Memory>;
    type Common = Summary;
    type Tally = Sums;

    fn open(setting: S, setup: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        let experiment = setting.open(setup)?;
        let at = |values: &[f64], place: usize| values.get(place).copied().unwrap_or_default();
        declare.number("trials", "trials that the agent has done", |_, _, record| f64::from(record.trials));
        declare.action("run", ActionArgument::Nothing, "do a trial; several in one turn are one");
        for (i, (name, doc)) in experiment.measures().iter().enumerate() {
            let of = move |_: &Self, _: &Summary, record: &Record<S::Memory>| at(&record.results, i);
            declare.column(*name, format!("of the agent's last trial: {doc}"), None, of);
            declare.scalar(*name, format!("mean over agents: {doc}"), move |_, summary| at(&summary.means, i));
            if experiment.rounds().is_some() {
                let doc = format!("the least mean after a round so far: {doc}");
                declare.scalar(format!("least-{name}"), doc, move |_, summary| at(&summary.least, i));
            }
        }
        for (i, slope) in experiment.slopes().iter().enumerate() {
            let of = move |_: &Self, summary: &Summary| summary.fits.get(i).map_or(0.0, rise);
            declare.scalar(slope.name, slope.doc, of);
        }
        let doc = "the agent's trials in which a solver did not end; they change no other column";
        declare.column("failed", doc, None, |_, _, record| f64::from(record.failed));
        declare.scalar("trials", "trials in the round", |_, summary| f64::from(summary.trials));
        Ok(Trials(experiment))
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes() + 8 * self.0.measures().len()
    }

    fn init_common(&self) -> Summary {
        let zeros = vec![0.0; self.0.measures().len()];
        let fits = vec![[0.0; 5]; self.0.slopes().len()];
        Summary { rounds: 0, trials: 0, means: zeros.clone(), least: zeros, fits }
    }

    fn init_row(&self, _: Person<'_>, draws: &mut Draws) -> Record<S::Memory> {
        let results = vec![0.0; self.0.measures().len()];
        Record { memory: self.0.begin(draws), results, trials: 0, failed: 0 }
    }

    fn tally(&self) -> Sums {
        Sums { agents: 0, trials: 0, results: vec![0.0; self.0.measures().len()] }
    }

    fn apply(
        &self,
        _: &Summary,
        record: &mut Record<S::Memory>,
        actions: &AgentActions<'_>,
        tally: &mut Sums,
        _: &mut Future,
    ) {
        if !actions.acts().is_empty() && self.0.rounds().is_none_or(|rounds| record.trials < rounds) {
            match self.0.trial(&mut record.memory, record.trials, &mut actions.draws()) {
                Ok(results) => record.results = results,
                Err(_) => record.failed += 1,
            }
            record.trials += 1;
            tally.trials += 1;
        }
        tally.agents += 1;
        add(&mut tally.results, &record.results);
    }

    fn merge(&self, mut left: Sums, right: Sums) -> Sums {
        left.agents += right.agents;
        left.trials += right.trials;
        add(&mut left.results, &right.results);
        left
    }

    fn end_round(&self, summary: &mut Summary, tally: Sums, _: &mut Draws) -> Option<String> {
        let agents = f64::from(tally.agents.max(1));
        summary.trials = tally.trials;
        summary.means = tally.results.iter().map(|sum| sum / agents).collect();
        for (least, mean) in summary.least.iter_mut().zip(&summary.means) {
            *least = if summary.rounds == 0 { *mean } else { least.min(*mean) };
        }
        for (fit, slope) in summary.fits.iter_mut().zip(self.0.slopes()) {
            let (x, y) = (summary.means[slope.over], summary.means[slope.of]);
            if x > 0.0 && y > 0.0 {
                let (x, y) = (libm::log(x), libm::log(y));
                add(fit, &[1.0, x, y, x * x, x * y]);
            }
        }
        summary.rounds += 1;
        let rounds = self.0.rounds().filter(|rounds| summary.rounds >= *rounds);
        rounds.map(|rounds| format!("the {rounds} rounds of the experiment are over"))
    }
}

fn add(sums: &mut [f64], values: &[f64]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// Returns the slope of the line through points with these sums, by least squares; 0 for fewer than two points.
fn rise(sums: &[f64; 5]) -> f64 {
    let [n, x, y, xx, xy] = *sums;
    let spread = n * xx - x * x;
    if n < 2.0 || spread <= 1e-9 * n * n { 0.0 } else { (n * xy - x * y) / spread }
}

/// For the tests of worlds of trials.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub mod testing {
    use super::Experiment;
    use crate::testing::refused;
    use polity_kernel::rng::{Draws, Stream};
    use serde_json::{Value, json};

    /// Returns the results of trials, each with its own random numbers.
    pub fn results(experiment: impl Experiment, seed: u64, trials: u32) -> Vec<Vec<f64>> {
        let draws = |i| Draws::new(seed, Stream::World, 0, i);
        (0..trials).map(|i| experiment.trial(&mut (), 0, &mut draws(i)).unwrap()).collect()
    }

    /// Returns the mean results of trials.
    pub fn means(experiment: impl Experiment, trials: u32) -> Vec<f64> {
        let all = results(experiment, 2, trials);
        (0..all[0].len()).map(|i| all.iter().map(|trial| trial[i]).sum::<f64>() / f64::from(trials)).collect()
    }

    /// Asserts that the world refuses each of these values, and names its key.
    pub fn refuses(world: &str, cases: &[(&str, Value)]) {
        for (key, value) in cases {
            let policy = json!({"kind": "rule", "actions": [{"act": "run"}]});
            let world = json!({"kind": world, *key: value});
            let message = refused(&json!({"rounds": 1, "agents": 1, "world": world, "cohorts": [{"policy": policy}]}));
            assert!(message.contains(&format!("world.{key}")), "{message}");
        }
    }
}
