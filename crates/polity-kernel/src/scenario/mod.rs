//! Scenarios: plain data that, with a seed and a build, fully determines a run.

mod assemble;
mod budget;
mod design;
mod memory_budget;
pub mod migrate;
mod people;
mod schema;
mod span;
mod text;
mod validation;

pub use assemble::{Assembled, Inputs, assemble, assemble_within};
pub use budget::{Budget, Limits, Price};
pub use design::{Arm, Design, DesignSource, Factor, Reading};
pub use memory_budget::{MemoryBudget, PROCESS_BYTES, bytes_in_words};
pub use people::{MarginalSource, PopulationSource};
pub use schema::schema;
pub use span::Span;
pub use text::TextSource;
pub use validation::{At, Check, Distance, checks};

use crate::ask::Settings;
use crate::items::{Scorer, Shape};
use crate::tree::{Node, TreeError};
use crate::world::Activation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the scenario format that this build writes and reads.
pub const VERSION: u32 = 1;

/// A society in a world, or a method at work on a data set. With a seed and a build it fully determines a run.
// The parts that leaves read are still unread.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of the scenario format; without it the newest.
    #[serde(default = "version")]
    #[schemars(range(min = 1, max = VERSION))]
    pub polity: u32,
    /// Name of the scenario.
    pub name: Option<String>,
    /// What it is about, for people.
    pub description: Option<String>,
    /// Seed of all random numbers; 0 to 2^63 - 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Rounds to run.
    pub rounds: u32,
    /// Number of agents; for a method, members of the team.
    pub agents: Option<u32>,
    /// Who the agents are.
    pub population: Option<PopulationSource>,
    /// Who can hear whom: `{kind: ...}`.
    #[serde(default)]
    #[schemars(schema_with = "schema::topology")]
    pub topology: Option<Node>,
    /// The world: `{kind: ...}`.
    #[serde(default)]
    #[schemars(schema_with = "schema::world")]
    pub world: Option<Node>,
    /// Cohorts of agents.
    pub cohorts: Option<Vec<CohortSource>>,
    /// What is measured: a list of `{kind: ..., of: ...}`.
    #[serde(default)]
    #[schemars(schema_with = "schema::metrics")]
    pub metrics: Vec<Node>,
    /// What is compared with data: a list of `{of: ..., against: {file: ..., column: ...}}`.
    #[serde(default)]
    #[schemars(with = "Vec<validation::Source>")]
    pub validate: Vec<Node>,
    /// What is recorded in tables.
    #[serde(default)]
    pub record: Record,
    /// When the state is saved.
    #[serde(default)]
    pub snapshot: SnapshotPlan,
    /// When agents act: `simultaneous`, `random-order` or `event-time`. Without it, as the world has it.
    pub activation: Option<Activation>,
    /// Whether a round waits for the answers of models.
    #[serde(default)]
    pub answers: Answers,
    /// How people are asked who play in place of a model (`model: human/NAME`).
    #[serde(default)]
    pub people: People,
    /// What may be spent on models.
    #[serde(default)]
    pub budget: Budget,
    /// How long a question is asked again while its provider cannot be reached or fails: `90s`, `30m`, `24h` or `7d`; `1h` without it.
    /// Then the run stops and can be resumed. It never reaches a result.
    #[schemars(with = "Option<String>", regex(pattern = span::PATTERN))]
    pub patience: Option<Span>,
    /// The method of an evaluation: `{kind: ...}`.
    #[serde(default)]
    #[schemars(schema_with = "schema::method")]
    pub method: Option<Node>,
    /// The model of every member of a team, and of every mind, that names none: `provider/model`.
    pub model: Option<String>,
    /// How models are to sample, as far as a member or a mind does not say.
    #[serde(default)]
    pub settings: Settings,
    /// What models cost, by name, where the shipped table of prices does not say or is not right.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    /// The members of the team.
    pub team: Option<Vec<MemberSource>>,
    /// The data set of an evaluation.
    pub items: Option<ItemSource>,
    /// Items under way at once.
    pub window: Option<u32>,
    /// Parameters that change at the border of a round.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// The runs of a sweep. `polity run` is the same with and without it.
    #[schemars(with = "Option<DesignSource>")]
    pub design: Option<Node>,
}

fn version() -> u32 {
    VERSION
}

fn one() -> u64 {
    1
}

/// A cohort: agents with one policy.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CohortSource {
    /// Its name.
    pub name: Option<String>,
    /// Its share of the agents that no fixed cohort takes; the shares of a scenario sum to 1.
    pub share: Option<f64>,
    /// Its number of agents: `count: 50` scales with `--agents`, `count: {fixed: 5}` does not.
    pub count: Option<Count>,
    /// How urgent its questions are where `--schedule priority` says whose turn it is; the highest comes first. It can not reach a result.
    #[serde(default)]
    pub priority: i32,
    /// How its agents behave: `{kind: ...}`.
    #[schemars(schema_with = "schema::policy")]
    pub policy: Node,
}

/// The size of a cohort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Count {
    /// Scales with the number of agents.
    Scaled(u32),
    /// Stays.
    Fixed {
        /// Number of agents.
        fixed: u32,
    },
}

impl<'de> Deserialize<'de> for Count {
    // By hand: an untagged enum would lose the place of an error.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> serde::de::Visitor<'de> for Read {
            type Value = Count;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number of agents, or {fixed: NUMBER}")
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Count, E> {
                u32::try_from(n).map(Count::Scaled).map_err(|_| E::custom("more agents than ids (4,294,967,295)"))
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Count, E> {
                u64::try_from(n)
                    .map_err(|_| E::custom("a number of agents can not be negative"))
                    .and_then(|n| self.visit_u64(n))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Count, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Fixed {
                    fixed: u32,
                }
                let Fixed { fixed } = Fixed::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Count::Fixed { fixed })
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// What is recorded in tables. The digest covers everything, recorded or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// One row an act.
    pub acts: bool,
    /// One row an agent.
    pub agents: bool,
    /// One row a letter.
    pub messages: bool,
    /// One row an answer of a model, with what was asked and what came.
    pub calls: bool,
    /// The world's own tables, if it has some: a platform's posts.
    pub world: bool,
}

impl Default for Record {
    fn default() -> Self {
        Record { acts: true, agents: true, messages: false, calls: true, world: true }
    }
}

/// When the state is saved, so that a resumed run need not begin from the start. Never reaches a result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotPlan {
    /// Every so many rounds.
    pub rounds: Option<u32>,
    /// Every so many seconds of wall time.
    pub seconds: f64,
}

impl Default for SnapshotPlan {
    fn default() -> Self {
        SnapshotPlan { rounds: None, seconds: 20.0 }
    }
}

/// Whether a round waits for the answers of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answers {
    /// A round ends when every turn that asks has its answers.
    #[default]
    Wait,
    /// A turn that asks completes so many rounds later; its agent sleeps in between.
    Lag(u32),
}

impl Answers {
    /// Rounds that an answer may take; 0: the round waits.
    #[must_use]
    pub fn lag(self) -> u32 {
        match self {
            Answers::Wait => 0,
            Answers::Lag(lag) => lag,
        }
    }
}

/// How people are asked who play in place of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct People {
    /// How long a question waits, from when it was first put: `90s`, `30m`, `24h` or `7d`. Then its declared default holds. Without it a
    /// question waits as long as it takes.
    #[schemars(with = "Option<String>", regex(pattern = span::PATTERN))]
    pub timeout: Option<Span>,
}

/// A member of a team.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberSource {
    /// Its name, as others hear it.
    pub name: Option<String>,
    /// `provider/model`.
    pub model: Option<String>,
    /// Standing instructions.
    #[serde(default)]
    pub persona: String,
    /// Its place in the method, where that has places of their own (`judge`, `aggregator`); members without one work on the items.
    pub role: Option<String>,
    /// Whether it argues for wrong answers: it is told to, and a simulated model does.
    #[serde(default)]
    pub misleads: bool,
    /// How its model is to sample.
    #[serde(default)]
    pub settings: Settings,
}

/// The data set of an evaluation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemSource {
    /// A CSV, TSV or JSONL file, relative to the scenario.
    pub file: String,
    /// How it is written; that says which columns are read and how answers are scored.
    #[serde(default)]
    pub shape: Shape,
    /// The column with the question, where it is not the usual one of the shape.
    pub question: Option<String>,
    /// The column with the right answer, likewise; plain items without it are not scored.
    pub answer: Option<String>,
    /// The column with the difficulty, on the scale of the simulated models' skill.
    pub difficulty: Option<String>,
    /// The column with a tempting wrong answer.
    pub lure: Option<String>,
    /// The column with the topic.
    pub topic: Option<String>,
    /// How answers are read and compared, where it is not as usual for the shape.
    pub scorer: Option<Scorer>,
    /// With `scorer: judge` the model that scores the answers, `provider/model`. What it takes is no part of what the method takes.
    pub judge: Option<String>,
    /// Number of items: fewer than the file has takes the first, more draws by seed.
    pub count: Option<u32>,
}

/// Parameters that change at the border of a round: what a fork is, and what an intervention is.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The first round with the new values.
    pub at: u32,
    /// Paths and values, `world.fraction: 0.5`.
    pub set: BTreeMap<String, Node>,
}

/// The keys that every metric has beside its own parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricKeys {
    /// What is measured: a column of the world, or an act.
    pub of: String,
    /// Measured every so many rounds; without it in every round.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub every: Option<u32>,
}

impl Scenario {
    /// Reads a scenario from its tree.
    pub fn read(tree: &Node) -> Result<Scenario, TreeError> {
        // First of all: a newer format may have keys that this build does not know.
        match migrate::stated_format(tree)? {
            Some(format) if format < VERSION => Err(TreeError {
                message: format!("this scenario is of format {format}, this build reads format {VERSION}"),
                path: "polity".into(),
                origin: tree.get("polity").map_or(tree.origin.clone(), |node| node.origin.clone()),
                help: Some("`polity migrate FILE` rewrites it".into()),
            }),
            _ => tree.read(""),
        }
    }

    /// The files that the scenario names, each once.
    #[must_use]
    pub fn files(&self) -> Vec<FileWish> {
        let mut files = Vec::new();
        files.extend(self.population.iter().flat_map(PopulationSource::files));
        if let Some(items) = &self.items {
            files.push(FileWish { path: items.file.clone(), key: "items.file".into(), kind: FileKind::Table });
        }
        if let Some(topology) = &self.topology
            && let Ok((kind, rest)) = topology.split_kind("topology")
            && kind.name == "file"
            && let Some(Node { value: crate::tree::Value::Text(path), .. }) = rest.get("path")
        {
            files.push(FileWish { path: path.clone(), key: "topology.path".into(), kind: FileKind::Edges });
        }
        for (i, cohort) in self.cohorts.iter().flatten().enumerate() {
            let texts = text::files_in(&cohort.policy, &format!("cohorts[{i}].policy"));
            files.extend(texts.into_iter().map(|(key, path)| FileWish { path, key, kind: FileKind::Text }));
        }
        files.extend(validation::files(&self.validate));
        // Whatever names a file again shares what was read for the first.
        let mut once: Vec<FileWish> = Vec::new();
        for wish in files {
            if !once.iter().any(|other| other.path == wish.path && other.kind == wish.kind) {
                once.push(wish);
            }
        }
        once
    }
}

/// A file that a scenario names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWish {
    /// As written.
    pub path: String,
    /// The key it is written under.
    pub key: String,
    /// What it holds.
    pub kind: FileKind,
}

/// What an input file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Rows and columns.
    Table,
    /// Pairs of agents.
    Edges,
    /// Text.
    Text,
}
