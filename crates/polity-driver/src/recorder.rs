//! From round reports to tables.

use crate::DriveError;
use crate::calls::{self, Pending};
use crate::disk::Disk;
use crate::health::{Finding, Health};
use crate::tables::{Batch, Column, ColumnSpec, Kind, Parts, Reader, TableSpec, Tables, Value, remove_parts_after};
use polity_kernel::ask::Answer;
use polity_kernel::event::Part;
use polity_kernel::machine::{ItemReport, RoundReport};
use polity_kernel::mail::Body;
use polity_kernel::population;
use polity_kernel::scenario::{Assembled, At, Check, Scenario};
use polity_kernel::sight::{Acts, CellKind, Cells, TableKind};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// What a table of acts needs to know of the machine.
struct Shape {
    /// Whether acts carry numbers, texts.
    numbers: bool,
    texts: bool,
    evaluation: bool,
}

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

/// The checks of one moment, made on the society as it is.
fn checked(checks: &[Check], at: At, machine: &Assembled) -> Vec<Checked> {
    let Assembled::Society(society) = machine else { return Vec::new() };
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

/// Writes the tables of a run.
pub struct Recorder {
    tables: Tables,
    shape: Shape,
    acts: Option<usize>,
    agents: Option<usize>,
    messages: Option<usize>,
    /// The world's own tables, in its order.
    world: Vec<usize>,
    metrics: usize,
    rounds: usize,
    items: Option<usize>,
    health: usize,
    watch: Health,
    marginals: Option<usize>,
    validation: Option<usize>,
    calls: Option<usize>,
    pending: Pending,
    checks: Vec<Check>,
    /// Rows of checks made before the first round; written with the last.
    checked_first: Vec<Checked>,
    /// World columns before the first round, for the table of agents.
    first: Vec<Vec<f64>>,
    next_part: u32,
    /// All parts so far.
    parts: Parts,
}

fn column(name: &str, kind: Kind, doc: &str) -> ColumnSpec {
    ColumnSpec::new(name, kind, doc)
}

/// The columns of a world's own table.
fn own_columns(table: &TableKind) -> Vec<ColumnSpec> {
    let own = table.columns.iter().map(|of| match &of.kind {
        CellKind::Whole => column(&of.name, Kind::U32, &of.doc).nullable(),
        CellKind::Number => column(&of.name, Kind::F64, &of.doc),
        CellKind::Word(words) => {
            column(&of.name, Kind::Category(words.iter().map(ToString::to_string).collect()), &of.doc)
        }
        CellKind::Text => column(&of.name, Kind::Text, &of.doc).nullable(),
    });
    [column("round", Kind::U32, "round, from 0")].into_iter().chain(own).collect()
}

impl Recorder {
    /// Opens the tables of a run that goes on with round `next`. `machine` is as it was before round 0; `before`: the tables as they are,
    /// up to that round.
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
        let record = scenario.record;
        let mut specs: Vec<TableSpec> = Vec::new();
        let mut add = |name: &str, doc: &str, columns: Vec<ColumnSpec>| {
            let doc = if simulated { format!("{doc} Answers come from simulated models.") } else { doc.to_string() };
            specs.push(TableSpec { name: name.into(), doc, columns, volatile: false, only_with_rows: false });
            specs.len() - 1
        };
        let round = || column("round", Kind::U32, "round, from 0");
        let mut first = Vec::new();
        let (shape, acts, agents, messages, items);
        let mut world = Vec::new();
        match machine {
            Assembled::Society(society) => {
                let interface = society.interface();
                let texts = interface.acts.iter().any(|a| a.argument.has_text());
                let numbers = interface.acts.iter().any(|a| a.argument.has_number());
                shape = Shape { numbers, texts, evaluation: false };
                let kinds = interface.acts.iter().map(|a| a.name.to_string()).collect();
                let mut columns = vec![column("agent", Kind::U32, "who acted"), round()];
                if numbers {
                    columns.push(column("value", Kind::F64, "the number, or the index of the choice"));
                }
                columns.push(column("kind", Kind::Category(kinds), "kind of act"));
                if texts {
                    columns.push(column("text", Kind::Text, "the text, for acts that carry one").nullable());
                }
                acts = record.acts.then(|| add("acts", "One row an act, in order of round and agent.", columns));
                agents = record.agents.then(|| {
                    let mut columns = vec![
                        column("agent", Kind::U32, "id"),
                        column("cohort", Kind::Category(society.cohorts().to_vec()), "cohort"),
                        column("alive", Kind::Bool, "whether the agent was alive at the end"),
                    ];
                    for (name, data) in society.commons().population.columns() {
                        let kind = match data {
                            population::Column::Number(_) => Kind::F64,
                            population::Column::Text { .. } => Kind::Text,
                        };
                        columns.push(column(name, kind, "attribute from the population"));
                    }
                    for (i, spec) in interface.columns.iter().enumerate() {
                        first.push(society.column(i));
                        let doc = format!("{}: before the first round", spec.doc);
                        columns.push(column(&format!("{}.first", spec.name), Kind::F64, &doc).nullable());
                        let doc = format!("{}: after the last round", spec.doc);
                        let last = column(&format!("{}.last", spec.name), Kind::F64, &doc);
                        columns.push(if society.is_of_policies(i) { last.nullable() } else { last });
                    }
                    add("agents", "One row an agent.", columns)
                });
                messages = record.messages.then(|| {
                    add(
                        "messages",
                        "One row a letter, in order of round, recipient, sender and number.",
                        vec![
                            round(),
                            column("from", Kind::U32, "sender"),
                            column("to", Kind::U32, "recipient"),
                            column("channel", Kind::U32, "channel"),
                            column("value", Kind::F64, "the number, for letters that carry one").nullable(),
                            column("text", Kind::Text, "the text, for letters that carry one").nullable(),
                        ],
                    )
                });
                if record.world {
                    world =
                        interface.tables.iter().map(|table| add(&table.name, &table.doc, own_columns(table))).collect();
                }
                items = None;
            }
            Assembled::Evaluation(evaluation) => {
                shape = Shape { numbers: false, texts: true, evaluation: true };
                let kinds = evaluation.records().iter().map(|r| r.name.to_string()).collect();
                let item = || column("item", Kind::U32, "row of the data set");
                acts = record.acts.then(|| {
                    let columns = vec![
                        item(),
                        round(),
                        column("agent", Kind::U32, "member of the team"),
                        column("kind", Kind::Category(kinds), "what was recorded"),
                        column("text", Kind::Text, "its text").nullable(),
                    ];
                    add("acts", "One row a recorded act, in order of round and item.", columns)
                });
                agents = record.agents.then(|| {
                    let columns = vec![
                        column("agent", Kind::U32, "member of the team"),
                        column("name", Kind::Text, "its name"),
                        column("model", Kind::Text, "its model"),
                    ];
                    add("agents", "One row a member of the team.", columns)
                });
                messages = record.messages.then(|| {
                    let columns = vec![
                        item(),
                        round(),
                        column("from", Kind::U32, "whose words"),
                        column("to", Kind::U32, "who was shown them"),
                        column("text", Kind::Text, "the words"),
                    ];
                    add("messages", "One row a message shown, in order of round and item.", columns)
                });
                let mut columns = vec![
                    item(),
                    column("question", Kind::Text, "the question"),
                    column("answer", Kind::Text, "the team's answer").nullable(),
                    column("gold", Kind::Text, "the right answer").nullable(),
                    column("correct", Kind::Bool, "whether it is right").nullable(),
                    column("rounds", Kind::U32, "rounds the method took"),
                    column("asks", Kind::U32, "questions put to models and tools"),
                    column("extracted", Kind::Text, "what was read in the answer, and compared").nullable(),
                    column("note", Kind::Text, "what its tests said, where there are tests").nullable(),
                ];
                let measured = evaluation.quantities().iter();
                columns.extend(measured.map(|quantity| column(quantity.name, Kind::F64, quantity.doc).nullable()));
                let doc = "One row an item with a verdict, in order of the round of the verdict.";
                items = Some(add("items", doc, columns));
            }
        }
        let metrics = add(
            "metrics",
            "One row a metric and round.",
            vec![round(), column("name", Kind::Text, "quantity and metric"), column("value", Kind::F64, "its value")],
        );
        let rounds = add(
            "rounds",
            "One row a round.",
            vec![
                round(),
                column("agents", Kind::U32, "agents alive when it began (in an evaluation: items at work)"),
                column("acts", Kind::U64, "acts"),
                column("letters", Kind::U64, "letters sent"),
                column("births", Kind::U32, "agents born"),
                column("deaths", Kind::U32, "agents that died"),
                column("digest", Kind::Text, "sum over the rows of the round"),
                column("chain", Kind::Text, "digest of the run up to and with this round"),
                column("wall_ms", Kind::F64, "milliseconds it took").volatile(),
            ],
        );
        let health = add(
            "health",
            "What a run shows for the first time, and its texts; alarms are made of it.",
            vec![
                round(),
                column("subject", Kind::Text, "a cohort, a member of the team, the team, or all"),
                column(
                    "measure",
                    Kind::Text,
                    "agents (at the start); acted, compared (two acts in a round), varied (two that differ), for the first time; \
                     texts, repeated (texts that another agent gave too), of the round; questions, unanswered (those that ended in \
                     their default or in nothing), of the turns that this round completes",
                ),
                column("value", Kind::F64, "its value"),
            ],
        );
        let has_shares = matches!(machine, Assembled::Society(s) if !s.commons().population.shares().is_empty());
        let marginals = has_shares.then(|| {
            add(
                "marginals",
                "One row a share of the population that the scenario asks for.",
                vec![
                    column("column", Kind::Text, "the attribute, or several"),
                    column("level", Kind::Text, "the level, as the scenario writes it"),
                    column("asked", Kind::F64, "the share asked for, of all agents"),
                    column("agents", Kind::U32, "agents that have it at the start"),
                    column("obtained", Kind::F64, "their share of all agents"),
                ],
            )
        });
        let validation = (!checks.is_empty()).then(|| {
            add(
                "validation",
                "One row a distance between the society and data.",
                vec![
                    column(
                        "at",
                        Kind::Text,
                        "first (before the first round), last (after the last), or after that round",
                    ),
                    column("of", Kind::Text, "the quantity"),
                    column("against", Kind::Text, "file and column it is compared with"),
                    column("distance", Kind::Text, "ks, wasserstein (in the unit of the quantity) or total-variation"),
                    column("value", Kind::F64, "its value"),
                    column("agents", Kind::U32, "agents compared"),
                    column("reference", Kind::U32, "rows they are compared with"),
                ],
            )
        });
        let evaluation = shape.evaluation;
        let calls = record.calls.then(|| {
            add(
                "calls",
                "One row an answer of a model that was used, in order of round, item, agent and n. With a lag, answers whose turn the run \
                 did not complete are left out: it ended, or the agent died.",
                calls::columns(evaluation),
            )
        });
        // A run that asks nobody has no such table.
        if let Some(spec) = calls.and_then(|table| specs.get_mut(table)) {
            spec.only_with_rows = true;
        }
        let lag = match machine {
            Assembled::Society(_) => scenario.answers.lag(),
            Assembled::Evaluation(_) => 0,
        };
        let pending = Pending::new(lag, evaluation, record.calls);
        remove_parts_after(disk.as_ref(), dir, next.checked_sub(1))?;
        let (mut watch, first_findings) = Health::new(machine);
        if next > 0 {
            watch.recall(before)?;
        }
        let tables = Tables::open(disk, dir, specs)?;
        let checked_first = checked(&checks, At::First, machine);
        let mut recorder = Recorder {
            tables,
            shape,
            acts,
            agents,
            messages,
            world,
            metrics,
            rounds,
            items,
            health,
            watch,
            marginals,
            validation,
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
        }
        Ok(recorder)
    }

    /// Takes answers in: those that the journal of an interrupted run holds, and new ones.
    pub fn heard<'a>(&mut self, answers: impl IntoIterator<Item = &'a Answer>) {
        self.pending.take_in(answers, self.next_part);
    }

    /// The calls of all turns that a round completes, and what they show of health.
    fn push_calls(&mut self, report: &RoundReport, machine: &Assembled) -> Result<(), DriveError> {
        let mut calls = self.pending.used_by(report.round);
        if let Assembled::Society(society) = machine
            && self.pending.lags()
        {
            // Who died while a turn waited never completed it; whether its answers came depends on their arrival.
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

    fn push_marginals(&mut self, machine: &Assembled) -> Result<(), DriveError> {
        let (Some(table), Assembled::Society(society)) = (self.marginals, machine) else { return Ok(()) };
        let shares = society.commons().population.shares();
        let columns = vec![
            Column::Text(shares.iter().map(|share| share.column.clone()).collect()),
            Column::Text(shares.iter().map(|share| share.level.clone()).collect()),
            Column::F64(shares.iter().map(|share| share.asked).collect()),
            Column::U32(shares.iter().map(|share| share.agents).collect()),
            Column::F64(shares.iter().map(|share| share.obtained).collect()),
        ];
        Ok(self.tables.push(table, Batch { rows: shares.len(), columns })?)
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
                Column::U64(vec![report.letters]),
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
        self.push_own(round, machine)?;
        if let (Some(table), Assembled::Evaluation(evaluation)) = (self.items, machine)
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
            let value = |item: &ItemReport, q: usize| item.measured.get(q).copied().flatten();
            let quantities = 0..evaluation.quantities().len();
            columns.extend(quantities.map(|q| Column::MaybeF64(items.iter().map(|i| value(i, q)).collect())));
            self.tables.push(table, Batch { rows: items.len(), columns })?;
        }
        Ok(())
    }

    fn push_acts(&mut self, table: usize, round: u32, machine: &Assembled) -> Result<(), DriveError> {
        // Blocks go in runs of about 128k rows: large enough for the writer, small enough to overlap with the next round.
        const RUN: usize = 1 << 17;
        let blocks: Vec<(u32, &Acts)> = match machine {
            Assembled::Society(society) => society.acts().map(|acts| (0, acts)).collect(),
            Assembled::Evaluation(evaluation) => evaluation.acts().iter().map(|(item, acts)| (*item, acts)).collect(),
        };
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

    /// Rows of the world's own tables.
    fn push_own(&mut self, round: u32, machine: &Assembled) -> Result<(), DriveError> {
        let Assembled::Society(society) = machine else { return Ok(()) };
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

    fn acts_batch(&self, round: u32, run: &[(u32, &Acts)], rows: usize) -> Batch {
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
                society.each_letter(|recipient, mail| {
                    from.push(mail.from);
                    to.push(recipient);
                    channel.push(u32::from(mail.channel));
                    match mail.body {
                        Body::Number(number) => {
                            value.push(Some(number));
                            text.push(None);
                        }
                        Body::Text(words) => {
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
                let letters = evaluation.letters();
                if letters.is_empty() {
                    return Ok(());
                }
                let columns = vec![
                    Column::U32(letters.iter().map(|l| l.0).collect()),
                    round,
                    Column::U32(letters.iter().map(|l| l.1).collect()),
                    Column::U32(letters.iter().map(|l| l.2).collect()),
                    Column::Text(letters.iter().map(|l| l.3.clone()).collect()),
                ];
                Ok(self.tables.push(table, Batch { rows: letters.len(), columns })?)
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

    /// Gives the parts that were closed last their names, once they are recorded.
    pub fn publish(&mut self, durably: bool) -> Result<(), DriveError> {
        Ok(self.tables.publish(durably)?)
    }

    /// Writes the tables of agents, of marginals and of the last validations, and closes the last parts.
    pub fn close_last(&mut self, machine: &Assembled, next: u32) -> Result<Vec<Part>, DriveError> {
        if let Some(table) = self.agents {
            self.push_agents(table, machine)?;
        }
        self.push_marginals(machine)?;
        let mut rows = std::mem::take(&mut self.checked_first);
        rows.extend(checked(&self.checks, At::Last, machine));
        self.push_checked(rows)?;
        // Also a run without rounds, or with a snapshot after its last, has its table of agents in a part of its own.
        let parts = self.tables.close_parts(self.next_part, (next.max(1) - 1).max(self.next_part))?;
        Ok(self.count(parts))
    }

    /// Ends, once the last parts are recorded; hands all parts over.
    pub fn finish(mut self) -> Result<Parts, DriveError> {
        self.publish(true)?;
        self.tables.finish()?;
        Ok(self.parts)
    }

    /// Ends without the table of agents; rows that lie in no closed part are dropped, a resumed run makes them again. Hands the parts over
    /// that there are.
    pub fn abandon(self) -> Parts {
        let Recorder { tables, parts, .. } = self;
        drop(tables);
        parts
    }

    fn push_agents(&mut self, table: usize, machine: &Assembled) -> Result<(), DriveError> {
        match machine {
            Assembled::Society(society) => {
                let n = society.born();
                let rows = n as usize;
                let mut columns = vec![
                    Column::Range(0..n),
                    Column::Code(society.cohort_of_each()),
                    Column::Bool((0..n).map(|who| !society.is_dead(who)).collect()),
                ];
                let people = &society.commons().population;
                for (i, (_, data)) in people.columns().enumerate() {
                    columns.push(match data {
                        population::Column::Number(values) => {
                            Column::F64((0..n).map(|who| values[people.row(who) as usize]).collect())
                        }
                        population::Column::Text { .. } => {
                            Column::Text((0..n).map(|who| people.cell(i, who).to_string()).collect())
                        }
                    });
                }
                for (i, first) in std::mem::take(&mut self.first).into_iter().enumerate() {
                    let of_policies = society.is_of_policies(i);
                    // Not every policy shows something of its agents' states.
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
