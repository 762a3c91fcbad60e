//! Writes round reports to tables.

mod census;
mod columns;
mod network;

use self::columns::{MachineTables, Shape, Specs, States};
use crate::calls::{self, Pending};
use crate::health::{Finding, Health};
use polity_kernel::ask::Answer;
use polity_kernel::event::Part;
use polity_kernel::interface::{Actions, Cells};
use polity_kernel::machine::{ItemReport, RoundReport};
use polity_kernel::messages::Body;
use polity_kernel::population;
use polity_kernel::scenario::{Assembled, At, Check, Scenario};
use polity_kernel::society::{Gather, Steps};
use polity_kernel::topology::Topology;
use polity_store::DriveError;
use polity_store::disk::Disk;
use polity_store::tables::{Batch, Column, Parts, Reader, TableSpec, Tables, Value, remove_parts_after};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A row of the table `validation`.
struct Checked {
    at: String,
    of: String,
    against: String,
    distance: &'static str,
    value: f64,
    agents: u32,
    reference: u32,
}

/// The checks due at one moment, made on the present society.
fn checked(checks: &[Check], at: At, machine: &Assembled) -> Vec<Checked> {
    let Some(society) = machine.society() else { return Vec::new() };
    let mut rows = Vec::new();
    for check in checks.iter().filter(|check| check.at == at) {
        let (agents, distances) = check.measure(society);
        rows.extend(distances.into_iter().map(|(distance, value)| Checked {
            at: match at {
                At::First => "first".into(),
                At::Last => "last".into(),
                At::Round(round) => round.to_string(),
            },
            of: check.of.clone(),
            against: check.against.clone(),
            distance: distance.name(),
            value,
            agents: agents as u32,
            reference: check.reference_rows() as u32,
        }));
    }
    rows
}

/// The tables of a run, declared, by their numbers.
struct Declared {
    specs: Specs,
    machine: MachineTables,
    metrics: usize,
    rounds: usize,
    health: usize,
    census: Option<usize>,
    marginals: Option<usize>,
    validation: Option<usize>,
    network: Option<usize>,
    calls: Option<usize>,
}

impl Declared {
    /// `has_checks`: whether the scenario compares the society with data.
    fn of(machine: &Assembled, scenario: &Scenario, has_checks: bool, simulated: bool) -> Self {
        let record = scenario.record;
        let mut specs = Specs { all: Vec::new(), simulated };
        let of_machine = match machine {
            Assembled::Society(society) => columns::of_society(&mut specs, society, record, scenario.rounds),
            Assembled::Evaluation(evaluation) => columns::of_evaluation(&mut specs, evaluation, record),
        };
        let metrics = specs.add("metrics", "One row per metric and round.", columns::metrics());
        let rounds = specs.add("rounds", "One row per round.", columns::rounds());
        let health =
            specs.add("health", "The counts and first occurrences from which alarms are computed.", columns::health());
        let has_census =
            machine.society().is_some_and(|society| society.shared_context().population.census().is_some());
        let census = has_census.then(|| {
            specs.add("census", "How the rows of the population's file became the first agents.", columns::census())
        });
        let has_shares =
            machine.society().is_some_and(|society| !society.shared_context().population.shares().is_empty());
        let marginals = has_shares.then(|| {
            specs.add(
                "marginals",
                "One row per share of the population that the scenario requests.",
                columns::marginals(),
            )
        });
        let validation = has_checks.then(|| {
            specs.add("validation", "One row per distance between the society and data.", columns::validation())
        });
        let network = machine
            .society()
            .is_some_and(|society| record.has_network(&society.shared_context().topology))
            .then(|| specs.add("network", "One row per measure of the ties between agents.", columns::network()));
        let evaluation = of_machine.shape.evaluation;
        let calls = record.calls.then(|| {
            specs.add(
                "calls",
                "One row per answer of a model that was used, in order of round, item, agent and n. With a lag, \
                 answers are left out if the run did not complete their turn, because it ended or the agent died.",
                calls::columns(evaluation),
            )
        });
        // A run without calls has no such table.
        if let Some(spec) = calls.and_then(|table| specs.all.get_mut(table)) {
            spec.only_with_rows = true;
        }
        Declared { specs, machine: of_machine, metrics, rounds, health, census, marginals, validation, network, calls }
    }
}

/// Returns what the tables of a run of this scenario declare, whether or not they will have rows.
#[must_use]
pub fn table_specs(machine: &Assembled, scenario: &Scenario) -> Vec<TableSpec> {
    Declared::of(machine, scenario, !scenario.validate.is_empty(), false).specs.all
}

/// Writes the tables of a run.
pub struct Recorder {
    tables: Tables,
    shape: Shape,
    acts: Option<usize>,
    agents: Option<usize>,
    states: Option<States>,
    messages: Option<usize>,
    steps: Option<usize>,
    /// The world's own tables, in its order.
    world: Vec<usize>,
    metrics: usize,
    rounds: usize,
    items: Option<usize>,
    health: usize,
    watch: Health,
    census: Option<usize>,
    marginals: Option<usize>,
    validation: Option<usize>,
    network: Option<usize>,
    calls: Option<usize>,
    pending: Pending,
    checks: Vec<Check>,
    /// Rows of checks made before the first round; written with the last ones.
    checked_first: Vec<Checked>,
    /// Columns before the first round, for the tables of agents and of the network.
    first: Vec<Vec<f64>>,
    next_part: u32,
    /// All parts so far.
    parts: Parts,
}

impl Recorder {
    /// Opens the tables of a run that continues with round `next`. `machine` is in its state before round 0; `before`: the existing
    /// tables up to that round.
    #[expect(clippy::too_many_arguments, reason = "what tables need to know of a run")]
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        machine: &Assembled,
        scenario: &Scenario,
        checks: Vec<Check>,
        simulated: bool,
        next: u32,
        before: &Reader<'_>,
    ) -> Result<Self, DriveError> {
        let Declared {
            specs,
            machine: of_machine,
            metrics,
            rounds,
            health,
            census,
            marginals,
            validation,
            network,
            calls,
        } = Declared::of(machine, scenario, !checks.is_empty(), simulated);
        let MachineTables { shape, acts, agents, states, ties, messages, steps, world, items, first } = of_machine;
        let (record, evaluation) = (scenario.record, shape.evaluation);
        let lag = machine.society().map_or(0, |_| scenario.answers.lag());
        let pending = Pending::new(lag, evaluation, record.calls);
        remove_parts_after(disk.as_ref(), dir, next.checked_sub(1))?;
        let (mut watch, first_findings) = Health::new(machine);
        if next > 0 {
            watch.recall(before)?;
        }
        let tables = Tables::open(disk, dir, specs.all)?;
        let checked_first = checked(&checks, At::First, machine);
        let mut recorder = Recorder {
            tables,
            shape,
            acts,
            agents,
            states,
            messages,
            steps,
            world,
            metrics,
            rounds,
            items,
            health,
            watch,
            census,
            marginals,
            validation,
            network,
            calls,
            pending,
            checks,
            checked_first,
            first,
            next_part: next,
            parts: before.parts(),
        };
        if next == 0 {
            recorder.push_findings(0, first_findings)?;
            if let (Some(table), Some(society)) = (ties, machine.society()) {
                recorder.push_ties(table, &society.shared_context().topology)?;
            }
        }
        Ok(recorder)
    }

    /// Sets the models whose price is not known: what their calls cost is missing in the table `calls`.
    pub fn unpriced(&mut self, models: Vec<String>) {
        self.pending.unpriced(models);
    }

    /// Takes answers: those in the journal of an interrupted run, and new ones.
    pub fn heard<'a>(&mut self, answers: impl IntoIterator<Item = &'a Answer>) {
        self.pending.take_in(answers, self.next_part);
    }

    /// Writes the calls of all turns completed by a round, and their health findings.
    fn push_calls(&mut self, report: &RoundReport, machine: &Assembled) -> Result<(), DriveError> {
        let mut calls = self.pending.used_by(report.round);
        if let Some(society) = machine.society()
            && self.pending.lags()
        {
            // An agent that died while a turn waited never completed it; whether its answers came depends on timing.
            let now: BTreeSet<u32> = report.deaths.iter().copied().collect();
            calls.retain(|call| !society.is_dead(call.agent) || now.contains(&call.agent));
        }
        let questions = calls.iter().filter(|call| call.ends()).count();
        if questions > 0 {
            let unanswered = calls.iter().filter(|call| call.is_lost()).count();
            self.push_findings(report.round, Health::questions(questions, unanswered))?;
        }
        if let Some(table) = self.calls {
            for batch in calls::Batches::of(calls) {
                self.tables.push(table, batch)?;
            }
        }
        Ok(())
    }

    fn push_findings(&mut self, round: u32, found: Vec<Finding>) -> Result<(), DriveError> {
        if found.is_empty() {
            return Ok(());
        }
        let columns = vec![
            Column::Same(Value::U32(round)),
            Column::Text(found.iter().map(|f| f.subject.clone()).collect()),
            Column::Text(found.iter().map(|f| f.measure.to_string()).collect()),
            Column::F64(found.iter().map(|f| f.value).collect()),
        ];
        Ok(self.tables.push(self.health, Batch { rows: found.len(), columns })?)
    }

    fn push_checked(&mut self, rows: Vec<Checked>) -> Result<(), DriveError> {
        let Some(table) = self.validation.filter(|_| !rows.is_empty()) else { return Ok(()) };
        let columns = vec![
            Column::Text(rows.iter().map(|row| row.at.clone()).collect()),
            Column::Text(rows.iter().map(|row| row.of.clone()).collect()),
            Column::Text(rows.iter().map(|row| row.against.clone()).collect()),
            Column::Text(rows.iter().map(|row| row.distance.to_string()).collect()),
            Column::F64(rows.iter().map(|row| row.value).collect()),
            Column::U32(rows.iter().map(|row| row.agents).collect()),
            Column::U32(rows.iter().map(|row| row.reference).collect()),
        ];
        Ok(self.tables.push(table, Batch { rows: rows.len(), columns })?)
    }

    /// Writes how the rows of the population's file became agents.
    fn push_census(&mut self, machine: &Assembled) -> Result<(), DriveError> {
        let (Some(table), Some(society)) = (self.census, machine.society()) else { return Ok(()) };
        let Some((rows, columns)) = census::columns(&society.shared_context().population, society.began_with()) else {
            return Ok(());
        };
        Ok(self.tables.push(table, Batch { rows, columns })?)
    }

    fn push_marginals(&mut self, machine: &Assembled) -> Result<(), DriveError> {
        let (Some(table), Some(society)) = (self.marginals, machine.society()) else { return Ok(()) };
        let shares = society.shared_context().population.shares();
        let columns = vec![
            Column::Text(shares.iter().map(|share| share.column.clone()).collect()),
            Column::Text(shares.iter().map(|share| share.level.clone()).collect()),
            Column::F64(shares.iter().map(|share| share.asked).collect()),
            Column::U32(shares.iter().map(|share| share.agents).collect()),
            Column::F64(shares.iter().map(|share| share.obtained).collect()),
        ];
        Ok(self.tables.push(table, Batch { rows: shares.len(), columns })?)
    }

    /// What is recorded of the agents after a round, and what if it is the last one: a society over several processes gathers that.
    #[must_use]
    pub fn gathers(&self, round: u32) -> (Gather, Gather) {
        let checks = |at: At| self.checks.iter().any(|check| check.at == at);
        let states = self.states.is_some_and(|states| (round + 1).is_multiple_of(states.every));
        let gather = Gather {
            acts: self.acts.is_some() || self.steps.is_some() || self.watch.needs_acts(),
            messages: self.messages.is_some(),
            columns: states || checks(At::Round(round)),
            seen: self.steps.is_some(),
        };
        let at_end = self.agents.is_some() || self.network.is_some() || checks(At::Last);
        (gather, Gather { columns: gather.columns || at_end, ..gather })
    }

    /// Records a round.
    pub fn round(&mut self, report: RoundReport, machine: &Assembled, wall_ms: f64) -> Result<(), DriveError> {
        let round = report.round;
        let same = |value: u32| Column::Same(Value::U32(value));
        let batch = Batch {
            rows: 1,
            columns: vec![
                same(round),
                same(report.agents),
                Column::U64(vec![report.acts]),
                Column::U64(vec![report.messages]),
                same(report.births.len() as u32),
                same(report.deaths.len() as u32),
                Column::Text(vec![report.sum.to_string()]),
                Column::Text(vec![report.chain.to_string()]),
                Column::F64(vec![wall_ms]),
            ],
        };
        self.tables.push(self.rounds, batch)?;
        let (names, values): (Vec<String>, Vec<f64>) = report.metrics.iter().cloned().unzip();
        if !names.is_empty() {
            let columns = vec![same(round), Column::Text(names), Column::F64(values.clone())];
            self.tables.push(self.metrics, Batch { rows: values.len(), columns })?;
        }
        let found = self.watch.round(machine);
        self.push_findings(round, found)?;
        self.push_checked(checked(&self.checks, At::Round(round), machine))?;
        self.push_calls(&report, machine)?;
        if let Some(table) = self.acts {
            self.push_acts(table, round, machine)?;
        }
        if let Some(table) = self.messages {
            self.push_messages(table, round, machine)?;
        }
        if let Some(table) = self.steps {
            self.push_steps(table, &report, machine)?;
        }
        self.push_own(round, machine)?;
        self.push_states(round, machine)?;
        if let (Some(table), Some(evaluation)) = (self.items, machine.evaluation())
            && !report.items.is_empty()
        {
            let items = report.items;
            let question =
                |i: u32| evaluation.items().get(i as usize).map_or(String::new(), |item| item.question.clone());
            let mut columns = vec![
                Column::U32(items.iter().map(|i| i.item).collect()),
                Column::Text(items.iter().map(|i| question(i.item)).collect()),
                Column::MaybeText(items.iter().map(|i| i.answer.clone()).collect()),
                Column::MaybeText(items.iter().map(|i| i.gold.clone()).collect()),
                Column::MaybeBool(items.iter().map(|i| i.correct).collect()),
                Column::U32(items.iter().map(|i| i.rounds).collect()),
                Column::U32(items.iter().map(|i| i.asks).collect()),
                Column::MaybeText(items.iter().map(|i| i.extracted.clone()).collect()),
                Column::MaybeText(items.iter().map(|i| i.note.clone()).collect()),
            ];
            if evaluation.items().iter().any(|item| item.checker.is_some()) {
                columns.push(Column::MaybeF64(items.iter().map(|i| i.points).collect()));
            }
            let value = |item: &ItemReport, q: usize| item.measured.get(q).copied().flatten();
            let quantities = 0..evaluation.quantities().len();
            columns.extend(quantities.map(|q| Column::MaybeF64(items.iter().map(|i| value(i, q)).collect())));
            self.tables.push(table, Batch { rows: items.len(), columns })?;
        }
        Ok(())
    }

    fn push_acts(&mut self, table: usize, round: u32, machine: &Assembled) -> Result<(), DriveError> {
        // Blocks are written in runs of about 128k rows: large enough for the writer, small enough to overlap with the next round.
        const RUN: usize = 1 << 17;
        let blocks = machine.acts();
        let mut rest = blocks.as_slice();
        while !rest.is_empty() {
            let mut rows = 0;
            let full = rest.iter().position(|(_, acts)| {
                rows += acts.rows.len();
                rows >= RUN
            });
            let (run, later) = rest.split_at(full.map_or(rest.len(), |i| i + 1));
            if rows > 0 {
                let batch = self.acts_batch(round, run, rows);
                self.tables.push(table, batch)?;
            }
            rest = later;
        }
        Ok(())
    }

    /// What the agents saw in a round, and what they chose.
    fn push_steps(&mut self, table: usize, report: &RoundReport, machine: &Assembled) -> Result<(), DriveError> {
        let Some(society) = machine.society() else { return Ok(()) };
        let Steps { agents, cohorts, choices, values, seen } = society.steps(report);
        let rows = agents.len();
        let mut columns = vec![
            Column::Same(Value::U32(report.round)),
            Column::U32(agents),
            Column::Code(cohorts),
            Column::MaybeText(choices),
            Column::MaybeF64(values),
        ];
        columns.extend(seen.into_iter().map(Column::F64));
        Ok(self.tables.push(table, Batch { rows, columns })?)
    }

    /// Rows of the world's own tables.
    fn push_own(&mut self, round: u32, machine: &Assembled) -> Result<(), DriveError> {
        let Some(society) = machine.society() else { return Ok(()) };
        for (i, table) in self.world.iter().enumerate() {
            let cells = society.rows(i);
            let rows = cells.first().map_or(0, Cells::rows);
            if rows == 0 {
                continue;
            }
            let own = cells.into_iter().map(|cells| match cells {
                Cells::Whole(values) => Column::MaybeU32(values),
                Cells::Number(values) => Column::F64(values),
                Cells::Word(values) => Column::Code(values),
                Cells::Text(values) if values.iter().all(Option::is_none) => Column::Same(Value::Missing),
                Cells::Text(values) => Column::MaybeText(values),
            });
            let columns = [Column::Same(Value::U32(round))].into_iter().chain(own).collect();
            self.tables.push(*table, Batch { rows, columns })?;
        }
        Ok(())
    }

    /// The states of the agents after a round.
    fn push_states(&mut self, round: u32, machine: &Assembled) -> Result<(), DriveError> {
        let (Some(states), Some(society)) = (self.states, machine.society()) else { return Ok(()) };
        if !(round + 1).is_multiple_of(states.every) {
            return Ok(());
        }
        let n = society.ids_assigned();
        let alive: Option<Vec<bool>> =
            (society.alive() < n).then(|| (0..n).map(|agent| !society.is_dead(agent)).collect());
        let living = |agent: usize| alive.as_ref().is_none_or(|alive| alive[agent]);
        let mut columns = vec![
            Column::Same(Value::U32(round)),
            match &alive {
                None => Column::Range(0..n),
                Some(_) => Column::U32((0..n).filter(|agent| living(*agent as usize)).collect()),
            },
        ];
        for i in 0..society.interface().columns.len() {
            let values = society.column(i).into_iter().enumerate().filter(|(agent, _)| living(*agent));
            let values = values.map(|(_, value)| value);
            columns.push(match society.is_of_policies(i) {
                // Not every policy exposes its agents' states.
                true => Column::MaybeF64(values.map(|value| (!value.is_nan()).then_some(value)).collect()),
                false => Column::F64(values.collect()),
            });
        }
        Ok(self.tables.push(states.table, Batch { rows: society.alive() as usize, columns })?)
    }

    /// The ties between agents at the start.
    fn push_ties(&mut self, table: usize, topology: &Topology) -> Result<(), DriveError> {
        const RUN: usize = 1 << 17;
        let mut arcs = (0..topology.n()).flat_map(|agent| topology.neighbours(agent).map(move |hears| (agent, hears)));
        loop {
            let (agents, hears): (Vec<u32>, Vec<u32>) = arcs.by_ref().take(RUN).unzip();
            if agents.is_empty() {
                return Ok(());
            }
            let rows = agents.len();
            self.tables.push(table, Batch { rows, columns: vec![Column::U32(agents), Column::U32(hears)] })?;
        }
    }

    fn acts_batch(&self, round: u32, run: &[(u32, &Actions)], rows: usize) -> Batch {
        let each = || run.iter().flat_map(|(_, acts)| acts.rows.iter());
        let who = Column::U32(each().map(|a| a.who).collect());
        let kind = Column::Code(each().map(|a| a.kind).collect());
        let texts = || {
            if run.iter().all(|(_, acts)| acts.texts.is_empty()) {
                return Column::Same(Value::Missing);
            }
            let mut texts = Vec::with_capacity(rows);
            for (_, acts) in run {
                texts.extend((0..acts.rows.len()).map(|i| acts.text(i).map(str::to_string)));
            }
            Column::MaybeText(texts)
        };
        let round = Column::Same(Value::U32(round));
        if self.shape.evaluation {
            let item = run.iter().flat_map(|(item, acts)| std::iter::repeat_n(*item, acts.rows.len()));
            return Batch { rows, columns: vec![Column::U32(item.collect()), round, who, kind, texts()] };
        }
        let mut columns = vec![who, round];
        if self.shape.numbers {
            columns.push(Column::F64(each().map(|a| a.value).collect()));
        }
        columns.push(kind);
        if self.shape.texts {
            columns.push(texts());
        }
        Batch { rows, columns }
    }

    fn push_messages(&mut self, table: usize, round: u32, machine: &Assembled) -> Result<(), DriveError> {
        const RUN: usize = 1 << 17;
        let round = Column::Same(Value::U32(round));
        match machine {
            Assembled::Society(society) => {
                let (mut from, mut to, mut channel) = (Vec::new(), Vec::new(), Vec::new());
                let (mut value, mut text) = (Vec::new(), Vec::new());
                let mut error = None;
                let mut flush = |from: &mut Vec<u32>,
                                 to: &mut Vec<u32>,
                                 channel: &mut Vec<u32>,
                                 value: &mut Vec<Option<f64>>,
                                 text: &mut Vec<Option<String>>| {
                    if from.is_empty() || error.is_some() {
                        return;
                    }
                    let rows = from.len();
                    let columns = vec![
                        round.clone(),
                        Column::U32(std::mem::take(from)),
                        Column::U32(std::mem::take(to)),
                        Column::U32(std::mem::take(channel)),
                        Column::MaybeF64(std::mem::take(value)),
                        Column::MaybeText(std::mem::take(text)),
                    ];
                    error = self.tables.push(table, Batch { rows, columns }).err();
                };
                society.each_message(|recipient, inbox| {
                    from.push(inbox.from);
                    to.push(recipient);
                    channel.push(u32::from(inbox.channel));
                    match inbox.body {
                        Body::Number(number) => {
                            value.push(Some(number));
                            text.push(None);
                        }
                        words => {
                            value.push(None);
                            text.push(Some(words.to_string()));
                        }
                    }
                    if from.len() >= RUN {
                        flush(&mut from, &mut to, &mut channel, &mut value, &mut text);
                    }
                });
                flush(&mut from, &mut to, &mut channel, &mut value, &mut text);
                match error {
                    Some(error) => Err(error.into()),
                    None => Ok(()),
                }
            }
            Assembled::Evaluation(evaluation) => {
                let messages = evaluation.messages();
                if messages.is_empty() {
                    return Ok(());
                }
                let columns = vec![
                    Column::U32(messages.iter().map(|l| l.0).collect()),
                    round,
                    Column::U32(messages.iter().map(|l| l.1).collect()),
                    Column::U32(messages.iter().map(|l| l.2).collect()),
                    Column::Text(messages.iter().map(|l| l.3.clone()).collect()),
                ];
                Ok(self.tables.push(table, Batch { rows: messages.len(), columns })?)
            }
        }
    }

    /// Closes the parts of all rounds before `next`: they are durable, and count once they are recorded.
    pub fn close_parts(&mut self, next: u32) -> Result<Vec<Part>, DriveError> {
        if next <= self.next_part {
            return Ok(Vec::new());
        }
        let parts = self.tables.close_parts(self.next_part, next - 1)?;
        self.next_part = next;
        Ok(self.count(parts))
    }

    fn count(&mut self, parts: Vec<Part>) -> Vec<Part> {
        parts.iter().for_each(|part| self.parts.entry(part.table.clone()).or_default().push(part.clone()));
        parts
    }

    /// Gives the parts closed last their names, once they are recorded.
    pub fn publish(&mut self, durably: bool) -> Result<(), DriveError> {
        Ok(self.tables.publish(durably)?)
    }

    fn push_network(&mut self, machine: &Assembled) -> Result<(), DriveError> {
        let (Some(table), Some(society)) = (self.network, machine.society()) else { return Ok(()) };
        let rows = network::measured(society, &self.first);
        let columns = vec![
            Column::Text(rows.iter().map(|row| row.quantity.to_string()).collect()),
            Column::MaybeText(rows.iter().map(|row| row.by.clone()).collect()),
            Column::F64(rows.iter().map(|row| row.value).collect()),
        ];
        Ok(self.tables.push(table, Batch { rows: rows.len(), columns })?)
    }

    /// Writes the tables of agents, of marginals, of the network and of the last validations, and closes the last parts.
    pub fn close_last(&mut self, machine: &Assembled, next: u32) -> Result<Vec<Part>, DriveError> {
        // Before the table of agents, which takes their first values.
        self.push_network(machine)?;
        if let Some(table) = self.agents {
            self.push_agents(table, machine)?;
        }
        self.push_census(machine)?;
        self.push_marginals(machine)?;
        let mut rows = std::mem::take(&mut self.checked_first);
        rows.extend(checked(&self.checks, At::Last, machine));
        self.push_checked(rows)?;
        // A run without rounds, or with a snapshot after its last, also gets its table of agents in a separate part.
        let parts = self.tables.close_parts(self.next_part, (next.max(1) - 1).max(self.next_part))?;
        Ok(self.count(parts))
    }

    /// Finishes after the last parts are recorded; returns all parts.
    pub fn finish(mut self) -> Result<Parts, DriveError> {
        self.publish(true)?;
        self.tables.finish()?;
        Ok(self.parts)
    }

    /// Stops without the table of agents. Rows outside closed parts are dropped; a resumed run computes them again. Returns the existing
    /// parts.
    pub fn abandon(self) -> Parts {
        let Recorder { tables, parts, .. } = self;
        drop(tables);
        parts
    }

    fn push_agents(&mut self, table: usize, machine: &Assembled) -> Result<(), DriveError> {
        match machine {
            Assembled::Society(society) => {
                let n = society.ids_assigned();
                let rows = n as usize;
                let mut columns = vec![
                    Column::Range(0..n),
                    Column::Code(society.cohort_of_each()),
                    Column::Bool((0..n).map(|who| !society.is_dead(who)).collect()),
                ];
                let people = &society.shared_context().population;
                for (i, (_, data)) in people.columns().enumerate() {
                    columns.push(match data {
                        population::Column::Number(values) => {
                            let value = |who: u32| values[people.row(who) as usize];
                            let known = |who: u32| Some(value(who)).filter(|value| !value.is_nan());
                            match (columns::is_count(data), columns::has_gaps(data)) {
                                (true, false) => Column::U64((0..n).map(|who| value(who) as u64).collect()),
                                (true, true) => {
                                    Column::MaybeU64((0..n).map(|who| known(who).map(|value| value as u64)).collect())
                                }
                                (false, false) => Column::F64((0..n).map(value).collect()),
                                (false, true) => Column::MaybeF64((0..n).map(known).collect()),
                            }
                        }
                        population::Column::Text { .. } => {
                            Column::Text((0..n).map(|who| people.cell(i, who).to_string()).collect())
                        }
                    });
                }
                for (i, first) in std::mem::take(&mut self.first).into_iter().enumerate() {
                    let of_policies = society.is_of_policies(i);
                    // Not every policy exposes its agents' states.
                    let known = |value: f64| (!of_policies || !value.is_nan()).then_some(value);
                    if first.len() == rows && !of_policies {
                        columns.push(Column::F64(first));
                    } else {
                        let mut first: Vec<Option<f64>> = first.into_iter().map(known).collect();
                        first.resize(rows, None);
                        columns.push(Column::MaybeF64(first));
                    }
                    let last = society.column(i);
                    columns.push(match of_policies {
                        true => Column::MaybeF64(last.into_iter().map(known).collect()),
                        false => Column::F64(last),
                    });
                }
                Ok(self.tables.push(table, Batch { rows, columns })?)
            }
            Assembled::Evaluation(evaluation) => {
                let team = evaluation.team();
                let columns = vec![
                    Column::Range(0..team.len() as u32),
                    Column::Text(team.iter().map(|m| m.name.clone()).collect()),
                    Column::Text(team.iter().map(|m| m.model.clone()).collect()),
                ];
                Ok(self.tables.push(table, Batch { rows: team.len(), columns })?)
            }
        }
    }
}
