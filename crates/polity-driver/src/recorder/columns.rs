//! The columns of a run's tables.

use polity_kernel::evaluation::Evaluation;
use polity_kernel::interface::{CellKind, TableKind};
use polity_kernel::population;
use polity_kernel::scenario::Record;
use polity_kernel::society::Society;
use polity_store::tables::{ColumnSpec, Kind, TableSpec};

/// What a table of acts depends on.
#[derive(Default)]
pub(super) struct Shape {
    /// Whether acts carry numbers, texts.
    pub numbers: bool,
    pub texts: bool,
    pub evaluation: bool,
}

/// Tables that are declared one after the other.
pub(super) struct Specs {
    pub all: Vec<TableSpec>,
    /// Whether answers come from simulated models; then every table says so.
    pub simulated: bool,
}

impl Specs {
    /// Declares a table; returns its number.
    pub fn add(&mut self, name: &str, doc: &str, columns: Vec<ColumnSpec>) -> usize {
        let doc = if self.simulated { format!("{doc} Answers come from simulated models.") } else { doc.to_string() };
        self.all.push(TableSpec { name: name.into(), doc, columns, volatile: false, only_with_rows: false });
        self.all.len() - 1
    }
}

/// The table of states: its number, and the rounds from one row of an agent to the next.
#[derive(Clone, Copy)]
pub(super) struct States {
    pub table: usize,
    pub every: u32,
}

/// The tables of what a machine did, by their numbers.
#[derive(Default)]
pub(super) struct MachineTables {
    pub shape: Shape,
    pub acts: Option<usize>,
    pub agents: Option<usize>,
    pub states: Option<States>,
    pub ties: Option<usize>,
    pub messages: Option<usize>,
    pub steps: Option<usize>,
    pub world: Vec<usize>,
    pub items: Option<usize>,
    /// Columns of agents before the first round, if a table needs them.
    pub first: Vec<Vec<f64>>,
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

fn round() -> ColumnSpec {
    column("round", Kind::U32, "round, from 0")
}

/// The tables of a society.
pub(super) fn of_society(specs: &mut Specs, society: &Society, record: Record, rounds: u32) -> MachineTables {
    let mut tables = MachineTables::default();
    let interface = society.interface();
    let texts = interface.acts.iter().any(|a| a.argument.has_text());
    let numbers = interface.acts.iter().any(|a| a.argument.has_number());
    tables.shape = Shape { numbers, texts, evaluation: false };
    let kinds = interface.acts.iter().map(|a| a.name.to_string()).collect();
    let mut columns = vec![column("agent", Kind::U32, "who acted"), round()];
    if numbers {
        columns.push(column("value", Kind::F64, "the number, or the index of the choice"));
    }
    columns.push(column("kind", Kind::Category(kinds), "kind of act"));
    if texts {
        columns.push(column("text", Kind::Text, "the text, for acts that carry one").nullable());
    }
    tables.acts = record.acts.then(|| specs.add("acts", "One row per act, in order of round and agent.", columns));
    if record.agents || record.has_network(&society.shared_context().topology) {
        tables.first = (0..interface.columns.len()).map(|i| society.column(i)).collect();
    }
    tables.agents = record.agents.then(|| {
        let mut columns = vec![
            column("agent", Kind::U32, "id"),
            column("cohort", Kind::Category(society.cohorts().to_vec()), "cohort"),
            column("alive", Kind::Bool, "whether the agent was alive at the end"),
        ];
        for (name, data) in society.shared_context().population.columns() {
            let kind = match data {
                population::Column::Number(_) if is_count(data) => Kind::U64,
                population::Column::Number(_) => Kind::F64,
                population::Column::Text { .. } => Kind::Text,
            };
            let spec = column(name, kind, "attribute from the population");
            columns.push(if has_gaps(data) { spec.nullable() } else { spec });
        }
        for (i, spec) in interface.columns.iter().enumerate() {
            let doc = format!("{}: before the first round", spec.doc);
            columns.push(column(&format!("{}.first", spec.name), Kind::F64, &doc).nullable().like(spec));
            let doc = format!("{}: after the last round", spec.doc);
            let last = column(&format!("{}.last", spec.name), Kind::F64, &doc).like(spec);
            columns.push(if society.is_of_policies(i) { last.nullable() } else { last });
        }
        specs.add("agents", "One row per agent.", columns)
    });
    tables.states = record.states_every(society.ids_assigned(), interface.columns.len(), rounds).map(|every| {
        let mut columns = vec![round(), column("agent", Kind::U32, "id")];
        columns.extend(interface.columns.iter().enumerate().map(|(i, spec)| {
            let column = column(&spec.name, Kind::F64, &spec.doc).like(spec);
            if society.is_of_policies(i) { column.nullable() } else { column }
        }));
        let doc = match every {
            1 => "One row per living agent and round: its state after the round.".into(),
            n => format!("One row per living agent after every {n} rounds: its state then."),
        };
        States { table: specs.add("states", &doc, columns), every }
    });
    tables.steps = record.steps.then(|| {
        let mut columns = vec![
            round(),
            column("agent", Kind::U32, "id"),
            column("cohort", Kind::Category(society.cohorts().to_vec()), "cohort"),
            column(
                "choice",
                Kind::Text,
                "its first act in the round, with the option if the act has options; missing if it did nothing",
            )
            .nullable(),
            column("value", Kind::F64, "the number of that act").nullable(),
        ];
        let seen =
            interface.numbers().map(|field| column(&format!("observation.{}", field.name), Kind::F64, &field.doc));
        columns.extend(seen);
        specs.add("steps", "One row per living agent and round: the numbers that it saw, and what it chose.", columns)
    });
    tables.ties = record.has_ties(society.shared_context().topology.arcs()).then(|| {
        let doc = "One row per tie at the start: `agent` hears `hears`. A tie that goes both ways has two rows.";
        specs.add("ties", doc, vec![column("agent", Kind::U32, "who hears"), column("hears", Kind::U32, "whom")])
    });
    tables.messages = record.messages.then(|| {
        specs.add(
            "messages",
            "One row per message, in order of round, recipient, sender and number.",
            vec![
                round(),
                column("from", Kind::U32, "sender"),
                column("to", Kind::U32, "recipient"),
                column("channel", Kind::U32, "channel"),
                column("value", Kind::F64, "the number, for messages that carry one").nullable(),
                column(
                    "text",
                    Kind::Text,
                    "the text, for messages that carry one; a record as JSON, a vector as a list",
                )
                .nullable(),
            ],
        )
    });
    if record.world {
        tables.world =
            interface.tables.iter().map(|table| specs.add(&table.name, &table.doc, own_columns(table))).collect();
    }
    tables
}

/// The tables of an evaluation.
pub(super) fn of_evaluation(specs: &mut Specs, evaluation: &Evaluation, record: Record) -> MachineTables {
    let shape = Shape { numbers: false, texts: true, evaluation: true };
    let mut tables = MachineTables { shape, ..MachineTables::default() };
    let kinds = evaluation.records().iter().map(|r| r.name.to_string()).collect();
    let item = || column("item", Kind::U32, "row of the data set");
    tables.acts = record.acts.then(|| {
        let columns = vec![
            item(),
            round(),
            column("agent", Kind::U32, "member of the team"),
            column("kind", Kind::Category(kinds), "what was recorded"),
            column("text", Kind::Text, "its text").nullable(),
        ];
        specs.add("acts", "One row per recorded act, in order of round and item.", columns)
    });
    tables.agents = record.agents.then(|| {
        let columns = vec![
            column("agent", Kind::U32, "member of the team"),
            column("name", Kind::Text, "its name"),
            column("model", Kind::Text, "its model"),
        ];
        specs.add("agents", "One row per member of the team.", columns)
    });
    tables.messages = record.messages.then(|| {
        let columns = vec![
            item(),
            round(),
            column("from", Kind::U32, "author of the message"),
            column("to", Kind::U32, "who was shown it"),
            column("text", Kind::Text, "its text"),
        ];
        specs.add("messages", "One row per message shown, in order of round and item.", columns)
    });
    let mut columns = vec![
        item(),
        column("question", Kind::Text, "the question"),
        column("answer", Kind::Text, "the team's answer").nullable(),
        column("gold", Kind::Text, "the right answer").nullable(),
        column("correct", Kind::Bool, "whether it is right").nullable(),
        column("rounds", Kind::U32, "rounds the method took"),
        column("asks", Kind::U32, "questions to models and tools"),
        column("extracted", Kind::Text, "what was extracted from the answer and compared").nullable(),
        column("note", Kind::Text, "what its tests reported, if it has tests").nullable(),
    ];
    if evaluation.items().iter().any(|item| item.checker.is_some()) {
        columns.push(column("score", Kind::F64, "the score of the checker, from 0 to 1").nullable());
    }
    let measured = evaluation.quantities().iter();
    columns.extend(measured.map(|quantity| column(quantity.name, Kind::F64, quantity.doc).nullable()));
    let doc = "One row per item with a verdict, in order of the round of the verdict.";
    tables.items = Some(specs.add("items", doc, columns));
    tables
}

/// The columns of the table `metrics`.
pub(super) fn metrics() -> Vec<ColumnSpec> {
    vec![round(), column("name", Kind::Text, "quantity and metric"), column("value", Kind::F64, "its value")]
}

/// The columns of the table `rounds`.
pub(super) fn rounds() -> Vec<ColumnSpec> {
    vec![
        round(),
        column("agents", Kind::U32, "agents alive when it began (in an evaluation: items in progress)"),
        column("acts", Kind::U64, "acts"),
        column("messages", Kind::U64, "messages sent"),
        column("births", Kind::U32, "agents born"),
        column("deaths", Kind::U32, "agents that died"),
        column("digest", Kind::Text, "sum of the hashes of the rows of the round"),
        column("chain", Kind::Text, "digest of the run up to and including this round"),
        column("wall_ms", Kind::F64, "milliseconds it took").volatile(),
    ]
}

/// The columns of the table `health`.
pub(super) fn health() -> Vec<ColumnSpec> {
    vec![
        round(),
        column("subject", Kind::Text, "a cohort, a member of the team, the team, or all"),
        column(
            "measure",
            Kind::Text,
            "agents: their number at the start; acted, compared, varied: 1 when the subject first acts, has two acts \
             in a round, has two that differ; texts, repeated: texts of the round, and those that another agent gave \
             too; questions, unanswered: questions of the turns that this round completes, and those that ended in \
             their default or without an answer",
        ),
        column("value", Kind::F64, "its value"),
    ]
}

/// Returns whether all values of an attribute are whole numbers that are not negative, such as ids.
pub(super) fn is_count(data: &population::Column) -> bool {
    match data {
        population::Column::Number(values) => {
            data.is_whole() && values.iter().all(|value| value.is_nan() || !value.is_sign_negative())
        }
        population::Column::Text { .. } => false,
    }
}

/// Returns whether some values of an attribute are missing.
pub(super) fn has_gaps(data: &population::Column) -> bool {
    matches!(data, population::Column::Number(values) if values.iter().any(|value| value.is_nan()))
}

/// The columns of the table `census`.
pub(super) fn census() -> Vec<ColumnSpec> {
    vec![
        column("quantity", Kind::Text, "what is counted"),
        column("column", Kind::Text, "the column of the file, for missing values").nullable(),
        column("value", Kind::F64, "how many"),
    ]
}

/// The columns of the table `marginals`.
pub(super) fn marginals() -> Vec<ColumnSpec> {
    vec![
        column("column", Kind::Text, "the attribute or attributes"),
        column("level", Kind::Text, "the level, as written in the scenario"),
        column("asked", Kind::F64, "requested share of all agents"),
        column("agents", Kind::U32, "agents that have it at the start"),
        column("obtained", Kind::F64, "their share of all agents"),
    ]
}

/// The columns of the table `validation`.
pub(super) fn validation() -> Vec<ColumnSpec> {
    vec![
        column(
            "at",
            Kind::Text,
            "first (before the first round), last (after the last round), or the round after which it is measured",
        ),
        column("of", Kind::Text, "the quantity"),
        column("against", Kind::Text, "file and column it is compared with"),
        column("distance", Kind::Text, "ks, wasserstein (in the unit of the quantity) or total-variation"),
        column("value", Kind::F64, "its value"),
        column("agents", Kind::U32, "agents compared"),
        column("reference", Kind::U32, "rows they are compared with"),
    ]
}

/// The columns of the table `network`.
pub(super) fn network() -> Vec<ColumnSpec> {
    vec![
        column(
            "quantity",
            Kind::Text,
            "agents; ties; directed (1 if some tie goes one way only; then ties are counted by direction); mean-degree, \
             degree-variance, max-degree: of the number of agents that an agent hears; in-degree-variance, max-in-degree: of \
             the number of agents that hear an agent; reciprocity: share of ties that go both ways; transitivity: share of \
             pairs of ties at one agent that are closed to a triangle; mean-clustering: mean over agents of that share; \
             components; largest-component: share of the agents in it; mean-distance: mean number of ties on the shortest \
             way between two agents of one component; distance-sources: number of agents from which distances are measured; \
             assortativity (-1 to 1, 0 as at random), modularity: how far ties stay inside groups; numeric-assortativity: \
             correlation of a number over the two ends of ties",
        ),
        column(
            "by",
            Kind::Text,
            "the attribute by which agents are groups or have a number, or their state before the first round (.first) or \
             after the last (.last); there are groups if 2 to 50 values occur, fewer than agents",
        )
        .nullable(),
        column("value", Kind::F64, "its value"),
    ]
}
