//! Verbs and flags.

use super::output::LogFormat;
use clap::builder::TypedValueParser;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use polity_driver::source::Schedule;
use polity_kernel::scenario::Span;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// Societies of agents, from three models that debate to a million citizens: recorded, replayable, measured.
#[derive(Debug, Parser)]
#[command(name = "polity", version, arg_required_else_help = true)]
pub struct Args {
    /// How notes, progress and errors are written on standard error: text, or one JSON object a line.
    #[arg(long, global = true, value_enum, env = "POLITY_LOG_FORMAT", default_value_t, value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Threads or shards: more than there are cores make nothing faster, and each shard has a world of its own.
fn few() -> impl TypedValueParser<Value = NonZeroUsize> {
    clap::value_parser!(u16).range(1..=1024).try_map(|n| NonZeroUsize::try_from(usize::from(n)))
}

/// Flags that runs, resumes, replays and forks share.
#[derive(Debug, ClapArgs)]
pub struct Common {
    /// Print one JSON object as the last line on standard output.
    #[arg(long)]
    pub json: bool,
    /// Threads (default: all cores). Never reaches a result.
    #[arg(long, env = "POLITY_THREADS", value_parser = few())]
    pub threads: Option<NonZeroUsize>,
    /// Shards of a society. Never reaches a result.
    #[arg(long, env = "POLITY_SHARDS", default_value = "1", value_parser = few())]
    pub shards: NonZeroUsize,
    /// Memory in MB for a run, or for all runs of a sweep together (default: free memory; half of it for a sweep). A run whose estimate is
    /// larger does not start. Never reaches a result.
    #[arg(long, value_name = "MB", env = "POLITY_MEMORY")]
    pub memory: Option<u64>,
    /// Model calls in flight at most.
    #[arg(long, env = "POLITY_MAX_CONNECTIONS", default_value = "100")]
    pub max_connections: NonZeroUsize,
    /// Write no report.html.
    #[arg(long, env = "POLITY_NO_REPORT", value_parser = clap::builder::BoolishValueParser::new())]
    pub no_report: bool,
}

/// On how much methods are tried.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct Trying {
    /// Items: the first so many (default: all).
    #[arg(long, value_name = "N", env = "POLITY_LIMIT")]
    pub limit: Option<u32>,
    /// Runs of each method, each with a seed of its own; from two on there is pass^k, too.
    #[arg(long, value_name = "K", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
}

/// What `run` and `sweep` change in a scenario.
#[derive(Debug, ClapArgs)]
pub struct Edits {
    /// Change a value of the scenario (in a sweep: in every arm, or of the design): -P world.fraction=0.5
    #[arg(short = 'P', value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Number of agents; the population is resampled, generated topologies are made anew.
    #[arg(long, env = "POLITY_AGENTS")]
    pub agents: Option<u32>,
    /// Number of rounds.
    #[arg(long, env = "POLITY_ROUNDS")]
    pub rounds: Option<u32>,
    /// The model of all: of every member of a team and of every mind, whatever the scenario says.
    #[arg(long, value_name = "PROVIDER/MODEL", env = "POLITY_MODEL")]
    pub model: Option<String>,
    /// Seed of all random numbers, in a sweep the first seed (0 to 2^63 - 1).
    #[arg(long, env = "POLITY_SEED", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
}

/// Which files a scenario may read.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct FileAccess {
    /// A folder whose files the scenario may read; repeatable. By default a scenario reads files below its own folder, or below the nearest
    /// parent with a file `.polity-root`. Files named with -P may be anywhere.
    #[arg(long = "allow-read", value_name = "FOLDER")]
    pub allowed: Vec<PathBuf>,
}

/// What a run may spend on models.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
pub struct Spending {
    /// US dollars that the run may spend on models; no call is made that might not fit.
    #[arg(long, value_name = "USD", env = "POLITY_MAX_COST")]
    pub max_cost: Option<f64>,
    /// Tokens of requests and replies that the run may take.
    #[arg(long, value_name = "TOKENS", env = "POLITY_MAX_TOKENS")]
    pub max_tokens: Option<u64>,
    /// Calls of models that the run may make: requests that are answered, or may have been.
    #[arg(long, value_name = "CALLS", env = "POLITY_MAX_CALLS")]
    pub max_calls: Option<u64>,
    /// Requests to providers that the run may make, tries that fail among them.
    #[arg(long, value_name = "REQUESTS", env = "POLITY_MAX_REQUESTS")]
    pub max_requests: Option<u64>,
    /// Calls of tools that the run may make, for instance programs that it may run.
    #[arg(long, value_name = "CALLS", env = "POLITY_MAX_TOOL_CALLS")]
    pub max_tool_calls: Option<u64>,
    /// Seconds that this process may take; then it finishes what is in flight, saves and stops.
    #[arg(long, value_name = "SECONDS", env = "POLITY_MAX_TIME")]
    pub max_time: Option<f64>,
}

/// What models cost, and what is known of their answers.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct Answering {
    /// What a model costs, in US dollars for a million tokens of requests, of replies and of requests that the provider has in its
    /// cache: --price openai/gpt-4.1-mini=0.4,1.6,0.1. May be given several times.
    #[arg(long, value_name = "NAME=INPUT,OUTPUT[,CACHED]")]
    pub price: Vec<String>,
    /// Folder of answers that are kept across runs: the same request to the same address is asked once, whichever run asks it. Made if it
    /// is missing.
    #[arg(long, value_name = "FOLDER", env = "POLITY_CACHE")]
    pub cache: Option<PathBuf>,
    /// Requests a minute to one model at most. Limits that its provider tells are kept without this.
    #[arg(long, value_name = "N", env = "POLITY_REQUESTS_PER_MINUTE")]
    pub requests_per_minute: Option<NonZeroU32>,
    /// Tokens a minute to and from one model at most, likewise.
    #[arg(long, value_name = "N", env = "POLITY_TOKENS_PER_MINUTE")]
    pub tokens_per_minute: Option<NonZeroU32>,
    /// How long a question is tried again while its provider cannot be reached or fails, for instance 90s, 30m or 24h (default: `patience`
    /// of the scenario, else 1h, and five tries before the first answer). Then the run stops and can be resumed.
    #[arg(long, value_name = "TIME", env = "POLITY_PATIENCE", value_parser = span)]
    pub patience: Option<Duration>,
    /// How long a run that is to stop (Ctrl-C, --max-time, ctl stop) waits for requests in flight (default: 30s). What is still in flight
    /// then is counted at its most.
    #[arg(long, value_name = "TIME", env = "POLITY_GRACE", value_parser = span)]
    pub grace: Option<Duration>,
    /// How long the answer to one request may take (default: 5m).
    #[arg(long, value_name = "TIME", env = "POLITY_REQUEST_TIMEOUT", value_parser = span)]
    pub request_timeout: Option<Duration>,
    /// Whose turn it is when not all can be asked at once: fifo, fair (each asker in turn), priority (`priority` of cohorts), or none
    /// (everybody at once, whatever limits there are: a baseline). Never reaches a result.
    #[arg(long, value_name = "ORDER", env = "POLITY_SCHEDULE", default_value = "fifo")]
    pub schedule: Schedule,
    /// Send questions together as batches, to models whose provider has them (OpenAI, Anthropic): answered within a day, at half the
    /// price. `polity resume` keeps to it; --batch=false takes it back.
    #[arg(
        long, value_name = "BOOL", env = "POLITY_BATCH", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = clap::builder::BoolishValueParser::new()
    )]
    pub batch: Option<bool>,
    /// Milliseconds before a batch is first looked at; for tests with a stand-in.
    #[arg(long, hide = true, value_name = "N", env = "POLITY_BATCH_PAUSE_MS")]
    pub batch_pause_ms: Option<u64>,
    /// Send spans of the run, its rounds and its calls to a receiver of OpenTelemetry (OTLP over HTTP), for instance
    /// http://127.0.0.1:4318; `env`: to the one that OTEL_EXPORTER_OTLP_ENDPOINT names. Never reaches a result.
    #[arg(long, value_name = "URL|env", env = "POLITY_OTLP")]
    pub otlp: Option<String>,
    /// With --otlp: send prompts and answers, too.
    #[arg(long, env = "POLITY_OTLP_CONTENT", value_parser = clap::builder::BoolishValueParser::new())]
    pub otlp_content: bool,
}

/// A length of time: `90s`, `30m`, `24h`, `7d`.
fn span(text: &str) -> Result<Duration, String> {
    Span::read(text).map(|span| Duration::from_secs_f64(span.seconds()))
}

/// How people reach a run that asks them.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
pub struct Listening {
    /// Take the answers of people over HTTP, too, at this address of this machine: 127.0.0.1:8080 (port 0: a free one, which is printed).
    /// Requests carry the token that is printed, or the one in POLITY_TOKEN.
    #[arg(long, value_name = "ADDRESS", env = "POLITY_LISTEN")]
    pub listen: Option<SocketAddr>,
}

/// What may be ordered of a run that is under way.
#[derive(Debug, Subcommand)]
pub enum Ordered {
    /// Ask nothing new and let no round begin. What is in flight is recorded.
    Pause,
    /// Go on after a pause.
    Resume,
    /// Finish what is in flight, save and stop, as Ctrl-C does.
    Stop,
    /// Set limits: max-connections=8 max-cost=0.50 max-tokens=100000 max-calls=1000
    /// max-requests=1200
    Set {
        /// Which limits, and their values.
        #[arg(required = true, value_name = "KEY=VALUE")]
        limits: Vec<String>,
    },
}

/// What a sweep may use.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct SweepLimits {
    /// In a sweep: runs at once, at most (default: as many as threads). Never reaches a result.
    #[arg(long, env = "POLITY_JOBS")]
    pub jobs: Option<NonZeroUsize>,
}

/// What can be done with published systems.
#[derive(Debug, Subcommand)]
pub enum Systems {
    /// List all systems that the project knows, with what is there of each.
    List {
        #[command(flatten)]
        systems: SystemsFolder,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a system: its paper, what composes it, its claims.
    Show {
        /// Its name, or the number of its row.
        name: String,
        #[command(flatten)]
        systems: SystemsFolder,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run what the claims of systems are about, and say of each claim what was expected, what was measured and whether it holds.
    Check {
        /// Names of systems, or numbers of their rows.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        names: Vec<String>,
        /// All systems that are there.
        #[arg(long)]
        all: bool,
        /// Fewer items and seeds, and no other draws of the simulated models: says only what is plain.
        #[arg(long)]
        quick: bool,
        /// Break every mechanism in the ways that the systems name, too: their claims must not hold then.
        #[arg(long)]
        breaks: bool,
        /// Run nothing: check that every arm could be run, and say how many runs there are.
        #[arg(long)]
        dry_run: bool,
        /// Folder of the runs (default: a new one below runs/). A check that was stopped goes on in its folder; runs of another build that
        /// are there are taken as they are.
        #[arg(long, env = "POLITY_OUT")]
        out: Option<PathBuf>,
        #[command(flatten)]
        limits: SweepLimits,
        #[command(flatten)]
        systems: SystemsFolder,
        #[command(flatten)]
        access: FileAccess,
        #[command(flatten)]
        common: Common,
    },
    /// Print the JSON Schema of system.yaml, for editors.
    Schema,
}

/// Where systems are.
#[derive(Clone, Debug, ClapArgs)]
pub struct SystemsFolder {
    /// The folder of systems (default: `systems`, here or above).
    #[arg(long, value_name = "FOLDER", env = "POLITY_SYSTEMS")]
    pub systems: Option<PathBuf>,
}

/// What a stand-in for a provider serves.
#[derive(Debug, ClapArgs)]
pub struct Mock {
    /// Port on 127.0.0.1 (0: a free one, which is printed).
    #[arg(long, default_value = "0")]
    pub port: u16,
    /// The simulated model that answers. Requests for another one by its name (`large`) are answered by that.
    #[arg(long, default_value = "sim/medium")]
    pub model: String,
    /// Requests a minute, beyond which there is a 429.
    #[arg(long, value_name = "N")]
    pub requests_per_minute: Option<NonZeroU32>,
    /// Tokens a minute, likewise.
    #[arg(long, value_name = "N")]
    pub tokens_per_minute: Option<NonZeroU32>,
    /// Calls under way at once, beyond which there is a 503.
    #[arg(long, value_name = "N")]
    pub at_once: Option<NonZeroU32>,
    /// Milliseconds before an answer.
    #[arg(long, value_name = "N", default_value = "0")]
    pub latency_ms: u64,
    /// Milliseconds before a batch is answered.
    #[arg(long, value_name = "N", default_value = "0")]
    pub batch_delay: u64,
    /// So many of the first batches expire when half of their lines are answered.
    #[arg(long, value_name = "N", default_value = "0")]
    pub batch_expires: u64,
    /// What goes wrong, and how often, for instance 500=0.1; may be given several times. An unknown kind names all that there are.
    #[arg(long, value_name = "KIND=PROBABILITY")]
    pub fault: Vec<String>,
    /// Seed of faults and answers.
    #[arg(long, default_value = "1")]
    pub seed: u64,
    /// How its models can be held to a form, of schema, choice, grammar and logprobs; the rest is refused with a 400.
    #[arg(long, value_name = "WAYS", value_delimiter = ',', default_value = "schema,logprobs")]
    pub offers: Vec<String>,
}

/// What polity can do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Check scenario files without running them.
    Validate {
        /// Scenario files, and folders: of these all *.yaml below.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        access: FileAccess,
        /// Print one JSON object as the last line on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Run a scenario in a new run folder.
    Run {
        /// Scenario file (YAML).
        file: PathBuf,
        #[command(flatten)]
        common: Common,
        /// Run folder (default: runs/NAME-SEED).
        #[arg(long, env = "POLITY_OUT")]
        out: Option<PathBuf>,
        #[command(flatten)]
        access: FileAccess,
        #[command(flatten)]
        edits: Edits,
        #[command(flatten)]
        spending: Spending,
        #[command(flatten)]
        answering: Answering,
        #[command(flatten)]
        listening: Listening,
    },
    /// Say what a run of a scenario will cost, before it is made: an interval, from a few agents (or items) that are really asked.
    Estimate {
        /// Scenario file (YAML).
        file: PathBuf,
        /// US dollars that the sample may cost; no call is made that might not fit.
        #[arg(long, value_name = "USD", default_value_t = super::estimate::SAMPLE_USD)]
        max_cost: f64,
        /// Ask nobody: take the answers of an earlier run of this scenario, or of one like it.
        #[arg(long, value_name = "RUN", conflicts_with_all = ["no_ask", "max_cost"])]
        from: Option<PathBuf>,
        /// Ask nobody: say bounds, which are wide.
        #[arg(long, conflicts_with = "max_cost")]
        no_ask: bool,
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        access: FileAccess,
        #[command(flatten)]
        edits: Edits,
        #[command(flatten)]
        answering: Answering,
    },
    /// Run the design of a scenario: every arm with every seed, in parallel, with intervals and contrasts.
    Sweep {
        /// Scenario file (YAML) with a `design:`.
        file: PathBuf,
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        limits: SweepLimits,
        /// Sweep folder (default: runs/NAME-sweep-SEED).
        #[arg(long, env = "POLITY_OUT")]
        out: Option<PathBuf>,
        #[command(flatten)]
        access: FileAccess,
        #[command(flatten)]
        edits: Edits,
        /// Number of seeds of every arm.
        #[arg(long, env = "POLITY_SEEDS")]
        seeds: Option<u32>,
        #[command(flatten)]
        answering: Answering,
    },
    /// Let a method work on the items of a file, and say how many it solves and what that takes. The same command with the same --out goes
    /// on where it was interrupted.
    Eval {
        /// Name of the method (polity list methods), with the number of members of its team if it is not to be the usual one: debate, sc@8
        #[arg(long, value_name = "NAME[@MEMBERS]")]
        method: String,
        /// What it works on.
        #[arg(long, value_name = "FILE")]
        task: PathBuf,
        #[command(flatten)]
        trying: Trying,
        /// Run folder; with --repeats a folder of runs (default: runs/eval-METHOD-SEED).
        #[arg(long, env = "POLITY_OUT")]
        out: Option<PathBuf>,
        #[command(flatten)]
        edits: Edits,
        #[command(flatten)]
        spending: Spending,
        #[command(flatten)]
        answering: Answering,
        #[command(flatten)]
        common: Common,
    },
    /// Compare methods on the same items (with --task): accuracy against cost, with intervals, and which differences are real. Or compare
    /// runs: parameters that differ, metrics side by side, the first round whose digests differ.
    Compare {
        /// Methods, as for eval: single sc@8 debate. Or run folders.
        #[arg(required = true, value_name = "METHOD|RUN")]
        what: Vec<String>,
        /// What methods work on.
        #[arg(long, value_name = "FILE")]
        task: Option<PathBuf>,
        /// Give all methods the budget that the most expensive one uses: those whose number of members nobody said get as many as come
        /// closest, by a pilot on a tenth of the items.
        #[arg(long, value_enum, default_value = "none", requires = "task")]
        equal: Equal,
        /// Items of that pilot (default: a tenth, but five at least). Methods that stop early need more.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        pilot: Option<u32>,
        #[command(flatten)]
        trying: Trying,
        /// Folder of the comparison (default: runs/compare-TASK-SEED).
        #[arg(long, env = "POLITY_OUT")]
        out: Option<PathBuf>,
        #[command(flatten)]
        edits: Edits,
        #[command(flatten)]
        spending: Spending,
        #[command(flatten)]
        answering: Answering,
        #[command(flatten)]
        common: Common,
    },
    /// Go on with a run or a sweep that was killed or stopped.
    Resume {
        /// Run folder, or sweep folder.
        run: PathBuf,
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        limits: SweepLimits,
        #[command(flatten)]
        spending: Spending,
        #[command(flatten)]
        answering: Answering,
        #[command(flatten)]
        listening: Listening,
    },
    /// Show what people are asked in a run, or answer it. Also while no process works on the run: it goes on with the answer.
    Answer {
        /// Run folder.
        run: PathBuf,
        /// Which question; without it all that wait are listed.
        id: Option<String>,
        /// The answer; of a question for several values, one each in its order, or one JSON object. Without it they are read from standard
        /// input, a line each.
        #[arg(value_name = "VALUE", allow_negative_numbers = true)]
        values: Vec<String>,
        /// Print the questions, or what was taken, as JSON on the last line of standard output.
        #[arg(long)]
        json: bool,
    },
    /// Order something of a run that is under way in another process, and wait until it has taken the order.
    Ctl {
        /// Run folder.
        run: PathBuf,
        /// What.
        #[command(subcommand)]
        order: Ordered,
    },
    /// Recompute a run from its journal, asking nobody, and compare every round's digest.
    Replay {
        /// Run folder.
        run: PathBuf,
        #[command(flatten)]
        common: Common,
    },
    /// Run a recorded run again up to a round, and go on from there with other parameters.
    Fork {
        /// Run folder.
        run: PathBuf,
        /// The first round that may differ.
        #[arg(long)]
        at: u32,
        /// Folder of the new run (default: beside the old one).
        #[arg(long)]
        out: Option<PathBuf>,
        /// Change a value of the scenario from that round on: -P world.fraction=0.5
        #[arg(short = 'P', value_name = "KEY=VALUE")]
        set: Vec<String>,
        /// Number of rounds of the new run.
        #[arg(long)]
        rounds: Option<u32>,
        #[command(flatten)]
        spending: Spending,
        #[command(flatten)]
        answering: Answering,
        #[command(flatten)]
        listening: Listening,
        #[command(flatten)]
        common: Common,
    },
    /// Show what an agent would be sent in the first round, without sending it; write the templates of its prompts as files.
    Prompts {
        /// Scenario file (YAML).
        file: PathBuf,
        /// Whose prompt (default: of the first that asks); in an evaluation the member of the team.
        #[arg(long, value_name = "ID")]
        agent: Option<u32>,
        /// Write the templates into this folder, to be changed; it says how the scenario takes them.
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        #[command(flatten)]
        access: FileAccess,
        #[command(flatten)]
        edits: Edits,
    },
    /// Ask agents of a recorded run a question, as they were at some moment. The run stays as it is.
    Interview {
        /// Run folder.
        run: PathBuf,
        /// Whom to ask; may be given several times.
        #[arg(long = "agent", value_name = "ID", required = true)]
        agents: Vec<u32>,
        /// The question.
        #[arg(value_name = "QUESTION")]
        question: String,
        /// As they were before this round (default: after the last complete one).
        #[arg(long, value_name = "ROUND")]
        at: Option<u32>,
        /// Append the answers to this file, as JSON lines.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        answering: Answering,
        #[command(flatten)]
        common: Common,
    },
    /// List what this build knows.
    List {
        /// Which kind.
        #[arg(value_name = "worlds|methods|policies|metrics|topologies|models")]
        what: Listed,
        /// Print JSON, with the schema of every leaf's parameters.
        #[arg(long)]
        json: bool,
    },
    /// Published systems: which there are, what their papers claim, and whether that holds here.
    #[command(subcommand)]
    Systems(Systems),
    /// Print a table of a run as CSV or JSON lines.
    Export {
        /// Run folder, or sweep folder.
        run: PathBuf,
        /// Name of the table (acts, agents, metrics, rounds, ...; default: metrics, of a sweep summary).
        #[arg(long)]
        table: Option<String>,
        /// Format.
        #[arg(long, value_enum, default_value = "csv")]
        format: Format,
        /// In CSV, leave texts as they are that a spreadsheet would take for formulas (those that begin with =, +, -, @, a tab or a line
        /// break). Without it they get an apostrophe in front.
        #[arg(long)]
        raw: bool,
        /// File (default: standard output).
        #[arg(long)]
        out: Option<PathBuf>,
        /// Rows at most.
        #[arg(long)]
        limit: Option<usize>,
    },
    /// How far judges agree with labels and with each other (Cohen's and Fleiss' kappa), and whether they lean to what is shown first.
    Agreement {
        /// Run folder of an evaluation.
        run: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Parameters of a simulated model that fit the answers of a recorded evaluation, by model.
    Calibrate {
        /// Run folder of an evaluation.
        run: PathBuf,
        /// Print one JSON object a model.
        #[arg(long)]
        json: bool,
    },
    /// Show what models were asked and what came back, also of a run that is under way or was killed.
    Calls {
        /// Run folder.
        run: PathBuf,
        /// Only of this agent, or member of the team.
        #[arg(long, value_name = "N")]
        agent: Option<u32>,
        /// Only of turns that began in this round.
        #[arg(long, value_name = "R")]
        round: Option<u32>,
        /// Only on this item of an evaluation.
        #[arg(long, value_name = "I")]
        item: Option<u32>,
        /// Only for this purpose.
        #[arg(long)]
        purpose: Option<String>,
        /// Calls at most.
        #[arg(long)]
        limit: Option<usize>,
        /// Print one JSON object a call, with the columns of the table `calls`.
        #[arg(long)]
        json: bool,
        /// Show whole prompts and answers.
        #[arg(long)]
        full: bool,
    },
    /// Check that a run, a sweep, a comparison, or a folder of these is as it was written: journals, manifests, inputs, snapshots and
    /// every part of every table. Nothing is recomputed (that is replay).
    Verify {
        /// The folder.
        folder: PathBuf,
        /// Print one JSON object as the last line on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Write the report of a run or a sweep anew.
    Report {
        /// Run folder, or sweep folder.
        run: PathBuf,
    },
    /// Make a crate with a leaf of your own, in a new folder here.
    New {
        /// Which kind.
        #[arg(value_name = "world|policy|method")]
        kind: Own,
        /// Its name, as scenarios and Cargo will call it: rock-pool
        name: String,
        /// Source of Polity: the folder of a checkout, or the URL of a git repository (default: the checkout that this program was
        /// built from).
        #[arg(long, value_name = "PATH-OR-URL", env = "POLITY_SOURCE")]
        polity: Option<String>,
    },
    /// Rewrite scenarios of an older format, comments kept.
    Migrate {
        /// Scenario files, and folders: of these all *.yaml below.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The format of files that do not state one (default: the newest).
        #[arg(long, value_name = "FORMAT")]
        from: Option<u32>,
        /// Write nothing; say what would change.
        #[arg(long)]
        dry_run: bool,
    },
    /// Serve the wires of all providers on this machine from a simulated model, with limits and faults, to try things without key and network.
    MockProvider(Mock),
    /// Print the JSON Schema of a scenario, for editors.
    Schema,
    /// Check what runs need: cores, memory, disk, a folder that can be written.
    Doctor {
        /// Folder in which runs will be.
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Print one JSON object as the last line on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Print completions for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all verbs into a folder.
    Man {
        /// Folder, made if it is missing.
        folder: Option<PathBuf>,
    },
    /// Print the chapter of the book that describes scenarios.
    #[command(hide = true)]
    Reference,
}

impl Verb {
    /// Whether the last line of standard output is to be JSON.
    #[must_use]
    pub fn json(&self) -> bool {
        match self {
            Verb::Validate { json, .. }
            | Verb::List { json, .. }
            | Verb::Calls { json, .. }
            | Verb::Agreement { json, .. }
            | Verb::Calibrate { json, .. }
            | Verb::Verify { json, .. }
            | Verb::Answer { json, .. }
            | Verb::Doctor { json, .. } => *json,
            Verb::Run { common, .. }
            | Verb::Eval { common, .. }
            | Verb::Compare { common, .. }
            | Verb::Estimate { common, .. }
            | Verb::Sweep { common, .. }
            | Verb::Resume { common, .. }
            | Verb::Replay { common, .. }
            | Verb::Fork { common, .. }
            | Verb::Interview { common, .. } => common.json,
            Verb::Systems(systems) => match systems {
                Systems::List { json, .. } | Systems::Show { json, .. } => *json,
                Systems::Check { common, .. } => common.json,
                Systems::Schema => false,
            },
            Verb::Export { .. }
            | Verb::Ctl { .. }
            | Verb::Prompts { .. }
            | Verb::Report { .. }
            | Verb::New { .. }
            | Verb::Migrate { .. }
            | Verb::MockProvider(_)
            | Verb::Schema
            | Verb::Completions { .. }
            | Verb::Man { .. }
            | Verb::Reference => false,
        }
    }
}

/// In what budgets are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Equal {
    /// Tokens of requests and replies.
    Tokens,
    /// Calls of models.
    Calls,
    /// US dollars.
    Usd,
    /// In nothing: each method has its usual team.
    None,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Environments.
    Worlds,
    /// Ways a team works on a task.
    Methods,
    /// Ways an agent behaves.
    Policies,
    /// Numbers that describe a round.
    Metrics,
    /// Who can hear whom.
    Topologies,
    /// Models that can be asked.
    Models,
}

/// Leaves that a crate of one's own may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Own {
    /// An environment.
    World,
    /// How an agent behaves.
    Policy,
    /// How a team works on a task.
    Method,
}

/// Formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// One JSON object a line.
    Jsonl,
}
