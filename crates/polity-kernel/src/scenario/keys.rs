//! The keys of a scenario.

use super::budget::{Budget, Price};
use super::design::DesignSource;
use super::files::{FileKind, FileWish, Inputs};
use super::migrate::{self, VERSION};
use super::people::PopulationSource;
use super::span::Span;
use super::{kinds, span, text, toolbox, validation_source};
use crate::ask::Settings;
use crate::items::{Scorer, Shape};
use crate::method::{PROMPTS, Placebo, PlantedFault};
use crate::population::groups::By;
use crate::topology::{self, Topology};
use crate::tree::{Node, TreeError, Value};
use crate::world::Activation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A society in a world, or a method that works on a data set. With a seed and a build it fully determines a run.
// The parts that leaves read are still untyped.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of the scenario format. Default: the newest.
    #[serde(default = "version")]
    #[schemars(range(min = VERSION, max = VERSION))]
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
    #[schemars(schema_with = "kinds::topology")]
    pub topology: Option<Node>,
    /// The world: `{kind: ...}`.
    #[serde(default)]
    #[schemars(schema_with = "kinds::world")]
    pub world: Option<Node>,
    /// Cohorts of agents.
    pub cohorts: Option<Vec<CohortSource>>,
    /// What is measured: a list of `{kind: ..., of: ...}`.
    #[serde(default)]
    #[schemars(schema_with = "kinds::metrics")]
    pub metrics: Vec<Node>,
    /// What is compared with data: a list of `{of: ..., against: {file: ..., column: ...}}`.
    #[serde(default)]
    #[schemars(with = "Vec<validation_source::Source>")]
    pub validate: Vec<Node>,
    /// What is recorded in tables.
    #[serde(default)]
    pub record: Record,
    /// When the state is saved.
    #[serde(default)]
    pub snapshot: SnapshotPlan,
    /// When agents act: `simultaneous`, `random-order` or `event-time`. Default: the world's.
    pub activation: Option<Activation>,
    /// Whether a round waits for the answers of models.
    #[serde(default)]
    pub answers: Answers,
    /// Settings for human participants (`model: human/NAME`).
    #[serde(default)]
    pub humans: People,
    /// What may be spent on models.
    #[serde(default)]
    pub budget: Budget,
    /// How long a question is retried while its provider cannot be reached or fails: `90s`, `30m`, `24h` or `7d`. Default: `1h`.
    /// Then the run stops and can be resumed. It does not affect results.
    #[schemars(with = "Option<String>", regex(pattern = span::PATTERN))]
    pub patience: Option<Span>,
    /// The method of an evaluation: `{kind: ...}`.
    #[serde(default)]
    #[schemars(schema_with = "kinds::method")]
    pub method: Option<Node>,
    /// The environment of the team: `{kind: ...}`. In a society an environment is a `world`.
    #[serde(default)]
    #[schemars(schema_with = "kinds::environment")]
    pub environment: Option<Node>,
    /// The tools that members of teams may call: a list of `{kind: ...}` or names alone.
    #[serde(default)]
    #[schemars(schema_with = "kinds::tools")]
    pub tools: Vec<Node>,
    /// The default model of team members and minds: `provider/model`.
    pub model: Option<String>,
    /// Default sampling settings of team members and minds.
    #[serde(default)]
    pub settings: Settings,
    /// Prices of models by name, if the built-in table lacks them or is wrong.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    /// A JSON file with simulated models of your own, relative to the scenario: their parameters by name, as `polity calibrate --out`
    /// writes them. Model NAME is used as `sim/NAME`.
    pub simulated: Option<String>,
    /// The members of the team.
    pub team: Option<Vec<MemberSource>>,
    /// The data set of an evaluation.
    pub items: Option<ItemSource>,
    /// Items in progress at once. Default: 1000.
    pub max_concurrent: Option<u32>,
    /// How often a team member is asked again, with the error, when its reply is unusable; 0 to 10. Default: 0.
    #[schemars(range(max = 10))]
    pub max_retries: Option<u8>,
    /// Mechanisms of the method that run and ask as always, but carry no information: `choose`, `rate`, `check`, `run`, `said` or
    /// `items`. For
    /// comparing a method with its placebo.
    #[serde(default)]
    pub placebo: Vec<Placebo>,
    /// Faults that are planted in the work of the team, to measure what `polity diagnose` finds:
    /// `faults: [{mode: step-repetition, member: 1}]`.
    #[serde(default)]
    pub faults: Vec<PlantedFault>,
    /// Parameters that change at the start of a round.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Messages sent in the first round besides those that agents send. A change sends some in its round:
    /// `changes: [{at: 5, set: {messages: [{from: 7, text: ...}]}}]`.
    #[serde(default)]
    pub messages: Vec<MessageSource>,
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
    /// Its agents, as a condition on attributes: `party == "green" and age < 30`. An agent belongs to the first cohort whose condition it
    /// meets; cohorts without one share the others.
    #[serde(rename = "where")]
    pub condition: Option<String>,
    /// Its share of the agents that are not in fixed cohorts, or that meet no condition. These shares sum to 1.
    pub share: Option<f64>,
    /// Its number of agents: `count: 50` scales with `--agents`, `count: {fixed: 5}` does not.
    pub count: Option<Count>,
    /// How many seats of each episode of the world its agents take. The first cohort takes the first seats, the next one those after them.
    /// All cohorts then have this key.
    pub seats: Option<u32>,
    /// Priority of its questions with `--schedule priority`; the highest comes first. It does not affect results.
    #[serde(default)]
    pub priority: i32,
    /// How its agents behave: `{kind: ...}`.
    #[schemars(schema_with = "kinds::policy")]
    pub policy: Node,
}

/// The size of a cohort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Count {
    /// Scales with the number of agents.
    Scaled(u32),
    /// Does not scale.
    Fixed {
        /// Number of agents.
        fixed: u32,
    },
}

impl<'de> Deserialize<'de> for Count {
    // Manual, because an untagged enum would lose the location of an error.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> serde::de::Visitor<'de> for Read {
            type Value = Count;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number of agents, or {fixed: NUMBER}")
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Count, E> {
                u32::try_from(n)
                    .map(Count::Scaled)
                    .map_err(|_| E::custom("there are more agents than ids (4,294,967,295)"))
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Count, E> {
                u64::try_from(n)
                    .map_err(|_| E::custom("a number of agents cannot be negative"))
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

impl CohortSource {
    /// Its number of agents, if that does not depend on the number of agents of the society.
    pub fn fixed(&self) -> Option<u32> {
        match self.count {
            Some(Count::Fixed { fixed }) => Some(fixed),
            _ => None,
        }
    }
}

/// What is recorded in tables. The digest covers everything, recorded or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// One row per act.
    pub acts: bool,
    /// One row per agent.
    pub agents: bool,
    /// One row per message.
    pub messages: bool,
    /// One row per answer of a model, with question and reply.
    pub calls: bool,
    /// The world's own tables, if any: for example a platform's posts.
    pub world: bool,
    /// One row per living agent and round: the numbers that it saw, and what it chose. Policies that learn from data read this table.
    pub steps: bool,
    /// One row per agent after every N-th round: the columns of the world and of the policies. 0 records none. Without a number, the
    /// smallest N is chosen that keeps the table below two million values.
    pub states: Option<u32>,
    /// One row per tie between two agents at the start. By default up to 200,000 ties are recorded.
    pub ties: Option<bool>,
    /// Measures of the network of ties: degrees, clustering, components, distances, and how ties follow attributes and states. By
    /// default networks of up to 200,000 ties are measured.
    pub network: Option<bool>,
}

impl Record {
    /// Values of the table of states up to which the interval is chosen.
    const STATES: u64 = 2_000_000;
    /// Ties that are recorded by default.
    const TIES: u64 = 200_000;

    /// The rounds from one row of an agent in the table of states to the next; `None`: there is no such table.
    #[must_use]
    pub fn states_every(&self, agents: u32, columns: usize, rounds: u32) -> Option<u32> {
        let each = u64::from(agents) * columns as u64;
        match self.states {
            _ if columns == 0 => None,
            Some(every) => (every > 0).then_some(every),
            None if each > Self::STATES => None,
            None => Some((each * u64::from(rounds)).div_ceil(Self::STATES).max(1) as u32),
        }
    }

    /// Whether the ties of a society are recorded.
    #[must_use]
    pub fn has_ties(&self, ties: u64) -> bool {
        ties > 0 && self.ties.unwrap_or(ties <= Self::TIES)
    }

    /// Whether the network of a society is measured. It has none if everybody hears everybody, or nobody.
    #[must_use]
    pub fn has_network(&self, topology: &Topology) -> bool {
        let ties = topology.arcs();
        matches!(topology, Topology::Graph(_)) && ties > 0 && self.network.unwrap_or(ties <= Self::TIES)
    }
}

impl Default for Record {
    fn default() -> Self {
        Record {
            acts: true,
            agents: true,
            messages: false,
            calls: true,
            world: true,
            steps: false,
            states: None,
            ties: None,
            network: None,
        }
    }
}

/// When the state is saved, so that a resumed run need not start over. It does not affect results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotPlan {
    /// Save after this many rounds.
    pub rounds: Option<u32>,
    /// Save after this many seconds of wall time.
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
    /// A turn that asks completes this many rounds later; its agent sleeps in between.
    Lag(u32),
}

impl Answers {
    /// Returns the number of rounds that an answer may take; 0: the round waits.
    #[must_use]
    pub fn lag(self) -> u32 {
        match self {
            Answers::Wait => 0,
            Answers::Lag(lag) => lag,
        }
    }
}

/// Settings for people who play in place of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct People {
    /// How long a question waits, from when it was first asked: `90s`, `30m`, `24h` or `7d`. Then its declared default holds.
    /// Default: no limit.
    #[schemars(with = "Option<String>", regex(pattern = span::PATTERN))]
    pub timeout: Option<Span>,
}

/// A member of a team.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberSource {
    /// Its name, as other members see it.
    pub name: Option<String>,
    /// `provider/model`.
    pub model: Option<String>,
    /// System instructions.
    #[serde(default)]
    pub persona: String,
    /// Its role in the method, if the method has roles (`judge`, `aggregator`; `polity list methods --json` names them), or `absent` to take it
    /// out. Members without one work on the items.
    pub role: Option<String>,
    /// Whether it argues for wrong answers. Models are instructed to; simulated models do it.
    #[serde(default)]
    pub adversarial: bool,
    /// Sampling settings of its model.
    #[serde(default)]
    pub settings: Settings,
    /// The tools that it may call: names of the scenario's `tools` or of single tools in them; `environment` and names of its actions.
    /// Default: all.
    pub tools: Option<Vec<String>>,
}

/// The data set of an evaluation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemSource {
    /// A CSV, TSV, JSONL or Parquet file, relative to the scenario.
    pub file: String,
    /// Its format, which determines the columns and how answers are scored.
    #[serde(default)]
    pub shape: Shape,
    /// The column with the question. Default: that of the format.
    pub question: Option<String>,
    /// The column with the right answer. Default: that of the format. Plain items without it are not scored.
    pub answer: Option<String>,
    /// The column with the difficulty, on the scale of the simulated models' skill.
    pub difficulty: Option<String>,
    /// The column with a tempting wrong answer.
    pub distractor: Option<String>,
    /// The column with the topic.
    pub topic: Option<String>,
    /// The column with the id of each item. Default: `id`, if there is such a column.
    pub id: Option<String>,
    /// The column with the calls of tools that find what the answer needs: a JSON list of `{"tool", "arguments", "finds"}`. Simulated
    /// models that read act on it; no prompt contains it.
    pub plan: Option<String>,
    /// The column with wrong answers that simulated models draw from: a JSON list of texts.
    pub wrong: Option<String>,
    /// The column with parts of the work: a JSON object of `{"gold", "wrong", "difficulty", "topic", "plan"}` by name. Simulated models
    /// that are asked for a part know it from there; no prompt contains it.
    pub parts: Option<String>,
    /// A Python file whose function `check(row, answer)` scores answers, in the sandbox, relative to the scenario.
    pub checker: Option<String>,
    /// A table with answers that models once gave to these items, relative to the scenario. Its models are named `recorded/NAME`.
    pub recorded: Option<String>,
    /// How answers are read and compared. Default: that of the format.
    pub scorer: Option<Scorer>,
    /// With `scorer: judge`, the model that scores the answers, `provider/model`. It does not count towards the method's usage.
    pub judge: Option<String>,
    /// Number of items: a smaller number takes the first, a larger one draws by seed.
    pub count: Option<u32>,
}

/// Parameters that change at the start of a round, for forks and interventions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The first round with the new values.
    pub at: u32,
    /// Paths and values, `world.fraction: 0.5`.
    pub set: BTreeMap<String, Node>,
}

/// A text that is sent in the name of an agent, for interventions. Recipients read it in the next round.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageSource {
    /// The agent in whose name it is sent.
    pub from: u32,
    /// The agents that read it. Default: the neighbours of the sender.
    pub to: Option<Vec<u32>>,
    /// Its text, at most 100,000 bytes.
    pub text: String,
}

/// The keys that every metric has beside its own parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricKeys {
    /// What is measured: a column of the world, an act, or an attribute of the population. A list of several, if the metric describes them
    /// together.
    pub of: By,
    /// Measure each group apart: an attribute of the population, or a list of attributes, whose values make the groups, or `cohort`. The
    /// metric `opinion.mean` becomes `opinion.mean[party=green]`, and so on.
    #[serde(default)]
    pub by: Option<By>,
    /// Measure every this many rounds. Default: every round.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub every: Option<u32>,
}

/// The keys that every toolkit has beside its own parameters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolkitKeys {
    /// The name of the entry, which is also put before the names of its tools: `shop` makes `shop_sql_query` of `sql_query`. Default: the
    /// kind, and nothing is put before the names of tools.
    pub name: Option<String>,
    /// The tools that are offered, by their own names. Default: all.
    pub only: Option<Vec<String>>,
    /// Maximum number of tokens of a result. The rest can be read with the tool `read_result`. Default: 2000.
    #[schemars(range(min = 1))]
    pub result_tokens: Option<u32>,
}

/// Says where a key belongs that stands at the top and is one of a cohort.
fn of_cohorts(mut error: TreeError, tree: &Node) -> TreeError {
    const KEYS: [&str; 3] = ["policy", "share", "count"];
    if KEYS.contains(&error.path.as_str()) && error.message.starts_with("unknown key") {
        let key = &error.path;
        let first = match tree.get("cohorts").map(|cohorts| &cohorts.value) {
            Some(Value::List(cohorts)) => cohorts.first(),
            _ => None,
        };
        let cohort = match first.and_then(|cohort| cohort.get("name")).map(|name| &name.value) {
            Some(Value::Text(name)) => format!("cohorts.{name}"),
            _ => "cohorts[0]".to_owned(),
        };
        // `-P policy.epsilon=3` made a map with one key.
        let within = match tree.get(key).map(|node| &node.value) {
            Some(Value::Map(entries)) => match entries.as_slice() {
                [(inner, _)] => format!(".{}", inner.name),
                _ => String::new(),
            },
            _ => String::new(),
        };
        error.message = format!("unknown key `{key}`; it belongs to a cohort: `{cohort}.{key}{within}`");
        error.help = None;
    }
    error
}

impl Scenario {
    /// Reads a scenario from its tree.
    pub fn read(tree: &Node) -> Result<Scenario, TreeError> {
        // First, because a newer format may have keys that this build does not know.
        match migrate::stated_format(tree)? {
            Some(format) if format < VERSION => Err(TreeError {
                message: format!("this scenario has format {format}, but this build reads format {VERSION}"),
                path: "polity".into(),
                origin: tree.get("polity").map_or(tree.origin.clone(), |node| node.origin.clone()),
                help: Some("`polity migrate FILE` rewrites it".into()),
            }),
            _ => tree.read("").map_err(|error| of_cohorts(error, tree)),
        }
    }

    /// Returns the edges that the topology leaves out on request, and the file.
    #[must_use]
    pub fn dropped_edges(&self, inputs: &Inputs) -> Option<(topology::Unwanted, String)> {
        let (kind, rest) = self.topology.as_ref()?.split_kind("topology").ok()?;
        let file: topology::File = (kind.name == "file").then(|| rest.read("topology").ok())??;
        let unwanted = file.unwanted(inputs.edges.get(&file.file)?);
        (unwanted != topology::Unwanted::default()).then_some((unwanted, file.file))
    }

    /// Returns the files that the scenario names, each once.
    #[must_use]
    pub fn files(&self) -> Vec<FileWish> {
        let mut files = Vec::new();
        files.extend(self.population.iter().flat_map(PopulationSource::files));
        if let Some(items) = &self.items {
            files.push(FileWish { path: items.file.clone(), key: "items.file".into(), kind: FileKind::Table });
            let recorded = items.recorded.iter().cloned();
            files.extend(recorded.map(|path| FileWish { path, key: "items.recorded".into(), kind: FileKind::Texts }));
            let checker = items.checker.iter().cloned();
            files.extend(checker.map(|path| FileWish { path, key: "items.checker".into(), kind: FileKind::Text }));
        }
        let simulated = self.simulated.iter().cloned();
        files.extend(simulated.map(|path| FileWish { path, key: "simulated".into(), kind: FileKind::Text }));
        if let Some(topology) = &self.topology
            && let Ok((kind, rest)) = topology.split_kind("topology")
            && kind.name == "file"
            && let Some(Node { value: crate::tree::Value::Text(path), .. }) = rest.get("file")
        {
            let kind = if rest.get("id").is_some() { FileKind::NamedEdges } else { FileKind::Edges };
            files.push(FileWish { path: path.clone(), key: "topology.file".into(), kind });
        }
        let cohorts = self.cohorts.iter().flatten().enumerate();
        let policies = cohorts.map(|(i, cohort)| (&cohort.policy, format!("cohorts[{i}].policy")));
        let world = self.world.iter().map(|world| (world, "world".to_owned()));
        let environment = self.environment.iter().map(|environment| (environment, "environment".to_owned()));
        // The other parameters of a method may hold `{file: ...}` without naming a file of the scenario: as the argument of a tool.
        let prompts = self.method.iter().filter_map(|method| method.get(PROMPTS));
        let prompts = prompts.map(|prompts| (prompts, crate::tree::child("method", PROMPTS)));
        for (node, key) in policies.chain(world).chain(environment).chain(prompts) {
            let texts = text::files_in(node, &key);
            files.extend(texts.into_iter().map(|(key, path)| FileWish { kind: text::kind_of(&key, &path), path, key }));
        }
        files.extend(toolbox::files(&self.tools));
        files.extend(validation_source::files(&self.validate));
        // A file that is named again shares what was read the first time.
        let mut once: Vec<FileWish> = Vec::new();
        for wish in files {
            if !once.iter().any(|other| other.path == wish.path && other.kind == wish.kind) {
                once.push(wish);
            }
        }
        once
    }
}
