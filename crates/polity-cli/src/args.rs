//! Commands and flags of the command line.

use super::numbers::{decimal, positive, seed, whole};
use super::output::LogFormat;
use clap::builder::TypedValueParser;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use polity_driver::source::Schedule;
use polity_kernel::scenario::Span;
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// Simulate societies of agents, from three debating models to a million citizens: recorded, replayable, measured.
#[derive(Debug, Parser)]
#[command(name = "polity", version, arg_required_else_help = true)]
pub struct Args {
    /// Format of notes, progress and errors on standard error: text, or one JSON object per line.
    #[arg(long, global = true, value_enum, env = "POLITY_LOG_FORMAT", default_value_t, value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// The command to run.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Parse a number of threads or shards. More than the number of cores is no faster, and each shard holds its own world.
fn few() -> impl TypedValueParser<Value = NonZeroUsize> {
    clap::value_parser!(u16).range(1..=1024).try_map(|n| NonZeroUsize::try_from(usize::from(n)))
}

/// Flags shared by run, resume, replay and fork.
#[derive(Debug, ClapArgs)]
pub struct Common {
    /// Print one JSON object as the last line on standard output.
    #[arg(long)]
    pub json: bool,
    /// Number of threads (default: all cores). Does not affect results.
    #[arg(long, env = "POLITY_THREADS", value_parser = few())]
    pub threads: Option<NonZeroUsize>,
    /// Number of shards of a society. Does not affect results.
    #[arg(long, env = "POLITY_SHARDS", default_value = "1", value_parser = few())]
    pub shards: NonZeroUsize,
    /// Memory limit in MB for a run, or for all runs of a sweep together (default: free memory; half of it for a sweep). A run whose
    /// estimate is larger does not start. Does not affect results.
    #[arg(long, value_name = "MB", env = "POLITY_MEMORY", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub memory: Option<u64>,
    /// Maximum number of model calls in flight.
    #[arg(long, env = "POLITY_MAX_CONNECTIONS", default_value = "100")]
    pub max_connections: NonZeroUsize,
    /// Do not write report.html.
    #[arg(long, env = "POLITY_NO_REPORT", value_parser = clap::builder::BoolishValueParser::new())]
    pub no_report: bool,
}

/// How methods are compared.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct Comparing {
    /// Give all methods the budget of the most expensive one. Methods named without a team size get the size that comes closest to
    /// it, measured in a pilot on a tenth of the items.
    #[arg(long, value_enum, default_value = "none", requires = "task")]
    pub equal: Equal,
    /// Number of items in that pilot (default: a tenth, but at least five). Methods that stop early need more.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pilot: Option<u32>,
    /// Recompute each run from its journal before it counts: every request to a model and every digest must be those recorded.
    #[arg(long, requires = "task")]
    pub replay: bool,
}

/// How many items and repeats methods are tried on.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct Trying {
    /// Use only the first N items (default: all).
    #[arg(long, value_name = "N", env = "POLITY_LIMIT", value_parser = whole::<u32>, allow_negative_numbers = true)]
    pub limit: Option<u32>,
    /// Runs of each method, each with its own seed; with two or more, pass^k is also reported.
    #[arg(long, value_name = "K", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
}

/// Changes that `run` and `sweep` make to a scenario.
#[derive(Debug, ClapArgs)]
pub struct Edits {
    /// Set a value of the scenario (in a sweep: in every arm, or in the design): -P world.fraction=0.5
    #[arg(short = 'P', value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Number of agents. The population is resampled and generated topologies are regenerated.
    #[arg(long, env = "POLITY_AGENTS", value_parser = whole::<u32>, allow_negative_numbers = true)]
    pub agents: Option<u32>,
    /// Number of rounds.
    #[arg(long, env = "POLITY_ROUNDS", value_parser = whole::<u32>, allow_negative_numbers = true)]
    pub rounds: Option<u32>,
    /// Use this model for all team members and minds, whatever the scenario says.
    #[arg(long, value_name = "PROVIDER/MODEL", env = "POLITY_MODEL")]
    pub model: Option<String>,
    /// Seed of all random numbers (0 to 2^63 - 1); in a sweep, the first seed.
    #[arg(long, env = "POLITY_SEED", value_parser = seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
}

/// Which files a scenario may read.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct FileAccess {
    /// Allow the scenario to read files in this folder; repeatable. By default a scenario may read files below its own folder, or below
    /// the nearest parent with a file `.polity-root`. Files named with -P may be anywhere.
    #[arg(long = "allow-read", value_name = "FOLDER")]
    pub allowed: Vec<PathBuf>,
}

/// What a run may spend on models.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
pub struct Spending {
    /// Maximum cost of the run's model calls, in US dollars. A call that might exceed it is not made.
    #[arg(long, value_name = "USD", env = "POLITY_MAX_COST", value_parser = decimal, allow_negative_numbers = true)]
    pub max_cost: Option<f64>,
    /// Maximum number of tokens, in requests and replies together.
    #[arg(long, value_name = "TOKENS", env = "POLITY_MAX_TOKENS", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub max_tokens: Option<u64>,
    /// Maximum number of model calls: requests that were answered, or may have been.
    #[arg(long, value_name = "CALLS", env = "POLITY_MAX_CALLS", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub max_calls: Option<u64>,
    /// Maximum number of requests to providers, including failed tries.
    #[arg(long, value_name = "REQUESTS", env = "POLITY_MAX_REQUESTS", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub max_requests: Option<u64>,
    /// Maximum number of tool calls, such as programs that the run executes.
    #[arg(long, value_name = "CALLS", env = "POLITY_MAX_TOOL_CALLS", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub max_tool_calls: Option<u64>,
    /// Maximum running time of this process, in seconds. Then it finishes what is in flight, saves and stops.
    #[arg(long, value_name = "SECONDS", env = "POLITY_MAX_TIME", value_parser = decimal, allow_negative_numbers = true)]
    pub max_time: Option<f64>,
}

/// Prices of models, and how calls are sent, limited, cached and traced.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct Answering {
    /// Price of a model, in US dollars per million tokens of input, output and cached input: --price openai/gpt-4.1-mini=0.4,1.6,0.1. May
    /// be given several times.
    #[arg(long, value_name = "NAME=INPUT,OUTPUT[,CACHED]")]
    pub price: Vec<String>,
    /// Folder of answers that are shared between runs. The same request to the same address is sent only once, whichever run makes it.
    /// The folder is created if it is missing.
    #[arg(long, value_name = "FOLDER", env = "POLITY_CACHE")]
    pub cache: Option<PathBuf>,
    /// Maximum number of requests per minute to one model. Limits that the provider announces are always respected.
    #[arg(long, value_name = "N", env = "POLITY_REQUESTS_PER_MINUTE", value_parser = positive, allow_negative_numbers = true)]
    pub requests_per_minute: Option<NonZeroU32>,
    /// Maximum number of tokens per minute to and from one model.
    #[arg(long, value_name = "N", env = "POLITY_TOKENS_PER_MINUTE", value_parser = positive, allow_negative_numbers = true)]
    pub tokens_per_minute: Option<NonZeroU32>,
    /// How long to retry a question while its provider is unreachable or failing, for instance 90s, 30m or 24h (default: `patience` of
    /// the scenario, else 1h, and five tries before the first answer). Then the run stops and can be resumed.
    #[arg(long, value_name = "TIME", env = "POLITY_PATIENCE", value_parser = span)]
    pub patience: Option<Duration>,
    /// How long a stopping run (Ctrl-C, --max-time, ctl stop) waits for requests in flight (default: 30s). Requests still in flight after
    /// that are counted at their maximum cost.
    #[arg(long, value_name = "TIME", env = "POLITY_GRACE", value_parser = span)]
    pub grace: Option<Duration>,
    /// Timeout of one request (default: 5m).
    #[arg(long, value_name = "TIME", env = "POLITY_REQUEST_TIMEOUT", value_parser = span)]
    pub request_timeout: Option<Duration>,
    /// Order of calls when limits make them wait: fifo, fair (each asker in turn), priority (`priority` of cohorts), or none (all at
    /// once, ignoring the limits; a baseline). Does not affect results.
    #[arg(long, value_name = "ORDER", env = "POLITY_SCHEDULE", default_value = "fifo")]
    pub schedule: Schedule,
    /// Send questions as batches to models whose provider supports them (OpenAI, Anthropic): answered within a day, at half the price.
    /// `polity resume` keeps this setting; --batch=false turns it off.
    #[arg(
        long, value_name = "BOOL", env = "POLITY_BATCH", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = clap::builder::BoolishValueParser::new()
    )]
    pub batch: Option<bool>,
    /// Milliseconds before a batch is first polled; for tests with a mock server.
    #[arg(long, hide = true, value_name = "N", env = "POLITY_BATCH_PAUSE_MS", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub batch_pause_ms: Option<u64>,
    /// Send spans of the run, its rounds and its calls to an OpenTelemetry receiver (OTLP over HTTP), for instance http://127.0.0.1:4318;
    /// `env` uses OTEL_EXPORTER_OTLP_ENDPOINT. Does not affect results.
    #[arg(long, value_name = "URL|env", env = "POLITY_OTLP")]
    pub otlp: Option<String>,
    /// With --otlp: also send prompts and answers.
    #[arg(long, env = "POLITY_OTLP_CONTENT", value_parser = clap::builder::BoolishValueParser::new())]
    pub otlp_content: bool,
}

/// Parse a duration: `90s`, `30m`, `24h`, `7d`.
fn span(text: &str) -> Result<Duration, String> {
    Span::read(text).map(|span| Duration::from_secs_f64(span.seconds()))
}

/// How people can answer the questions of a run.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
pub struct Listening {
    /// Also accept people's answers over HTTP, at this address of this machine: 127.0.0.1:8080 (port 0: a free port, which is printed).
    /// Requests must carry the token that is printed, or the one in POLITY_TOKEN.
    #[arg(long, value_name = "ADDRESS", env = "POLITY_LISTEN")]
    pub listen: Option<SocketAddr>,
}

/// Where the viewer listens.
#[derive(Clone, Debug, ClapArgs)]
pub struct Serving {
    /// Port; 0 chooses a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Address of this machine to listen at. One that other machines can reach needs --token.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Token that requests must carry: at least 16 characters. It is part of the printed URL.
    #[arg(long, env = "POLITY_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Do not open a browser.
    #[arg(long)]
    pub no_open: bool,
}

/// A team that is offered as a model.
#[derive(Clone, Debug, ClapArgs)]
pub struct Served {
    /// Folder of the runs of the team, one for each request (default: runs/serve-METHOD-SEED).
    #[arg(long, env = "POLITY_OUT")]
    pub out: Option<PathBuf>,
    /// Maximum number of requests that are answered at the same time; others wait.
    #[arg(long, value_name = "N", default_value = "8", value_parser = few())]
    pub jobs: NonZeroUsize,
}

/// Commands for a run in progress.
#[derive(Debug, Subcommand)]
pub enum Ordered {
    /// Ask no new questions and start no new round. What is in flight is recorded.
    Pause,
    /// Continue after a pause.
    Resume,
    /// Finish what is in flight, save and stop, as Ctrl-C does.
    Stop,
    /// Continue for some rounds, then pause.
    Step {
        /// How many rounds.
        #[arg(default_value_t = 1)]
        rounds: u32,
    },
    /// Tell how far the run is, and what it waits for.
    Status,
    /// Change parameters from the next round on: world.fraction=0.5
    Change {
        /// Edits of the scenario, as in `-P`.
        #[arg(required = true, value_name = "PATH=VALUE")]
        edits: Vec<String>,
    },
    /// Send a message in the name of an agent in the next round: --from 7 --to 3,4 "Vote for Ann"
    Message {
        /// The agent in whose name it is sent.
        #[arg(long, value_name = "AGENT")]
        from: u32,
        /// The agents that read it; without it, the neighbours of the sender.
        #[arg(long, value_name = "AGENTS", value_delimiter = ',')]
        to: Option<Vec<u32>>,
        /// Its text.
        #[arg(value_name = "TEXT")]
        text: String,
    },
    /// Set limits: max-connections=8 max-cost=0.50 max-tokens=100000 max-calls=1000 max-requests=1200
    Set {
        /// The limits and their values.
        #[arg(required = true, value_name = "KEY=VALUE")]
        limits: Vec<String>,
    },
}

/// Limits of a sweep.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct SweepLimits {
    /// In a sweep: maximum number of parallel runs (default: the number of threads). Does not affect results.
    #[arg(long, env = "POLITY_JOBS")]
    pub jobs: Option<NonZeroUsize>,
}

/// Commands on published systems.
#[derive(Debug, Subcommand)]
pub enum Systems {
    /// List all known systems, with what is implemented of each.
    List {
        #[command(flatten)]
        systems: SystemsFolder,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a system: its paper, its components, its claims.
    Show {
        /// Name of the system, or the number of its row.
        name: String,
        #[command(flatten)]
        systems: SystemsFolder,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Test the claims of systems: run the experiments, and report for each claim the expected value, the measured value and whether it
    /// holds.
    Check {
        /// Names of systems, or numbers of their rows.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        names: Vec<String>,
        /// Check all implemented systems.
        #[arg(long)]
        all: bool,
        /// Use fewer items and seeds, and no other draws of the simulated models. Detects only clear effects.
        #[arg(long)]
        quick: bool,
        /// Also break every mechanism in the ways that the systems name. Their claims must not hold then.
        #[arg(long)]
        breaks: bool,
        /// Run nothing: check that every arm can be run, and print the number of runs.
        #[arg(long)]
        dry_run: bool,
        /// Folder of the runs (default: a new one below runs/). A check that was stopped continues in its folder. Existing runs of
        /// another build are reused as they are.
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

/// Commands that take over what other programs recorded.
#[derive(Debug, Subcommand)]
pub enum Import {
    /// Take answers of models from logs, so that `polity run` can play them: writes items.jsonl, answers.tsv and scenario.yaml.
    Recorded {
        /// Inspect logs (.eval, .json), samples of lm-evaluation-harness (samples_TASK_DATE.jsonl), or run folders of evaluations.
        #[arg(required = true, value_name = "LOG")]
        logs: Vec<PathBuf>,
        /// Output folder. It must not exist yet.
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
        /// Name of the model in the table of answers (default: its name in the log).
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// The scorer (Inspect) or the filter (lm-evaluation-harness) whose answers are taken (default: the first).
        #[arg(long, value_name = "NAME")]
        scorer: Option<String>,
        /// Print one JSON object as the last line on standard output.
        #[arg(long)]
        json: bool,
    },
}

/// The location of the systems.
#[derive(Clone, Debug, ClapArgs)]
pub struct SystemsFolder {
    /// Folder of the systems (default: `systems` in this folder or a parent).
    #[arg(long, value_name = "FOLDER", env = "POLITY_SYSTEMS")]
    pub systems: Option<PathBuf>,
}

/// Settings of the mock server.
#[derive(Debug, ClapArgs)]
pub struct Mock {
    /// Port on 127.0.0.1 (0: a free port, which is printed).
    #[arg(long, default_value = "0")]
    pub port: u16,
    /// The simulated model that answers. A request that names another one (`large`) is answered by that one.
    #[arg(long, default_value = "sim/medium")]
    pub model: String,
    /// Maximum number of requests per minute; more are answered with a 429.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    pub requests_per_minute: Option<NonZeroU32>,
    /// Maximum number of tokens per minute; more are answered with a 429.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    pub tokens_per_minute: Option<NonZeroU32>,
    /// Maximum number of calls in flight; more are answered with a 503.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    pub at_once: Option<NonZeroU32>,
    /// Delay of an answer, in milliseconds.
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub latency_ms: u64,
    /// Delay of a batch, in milliseconds.
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub batch_delay: u64,
    /// Number of batches, from the first on, that expire when half of their lines are answered.
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub batch_expires: u64,
    /// Fault to inject and its probability, for instance 500=0.1; may be given several times. An unknown kind prints the list of kinds.
    #[arg(long, value_name = "KIND=PROBABILITY")]
    pub fault: Vec<String>,
    /// Seed of faults and answers.
    #[arg(long, default_value = "1", value_parser = seed, allow_negative_numbers = true)]
    pub seed: u64,
    /// Constraints on answers that the models support: schema, choice, grammar, logprobs. Others are refused with a 400.
    #[arg(long, value_name = "WAYS", value_delimiter = ',', default_value = "schema,logprobs")]
    pub offers: Vec<String>,
}

/// Commands of polity.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Check scenario files without running them.
    Validate {
        /// Scenario files, or folders, in which all *.yaml files are checked.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        access: FileAccess,
        /// Build each society with all its people and ties, as a run does. This also detects a topology `configuration` whose
        /// numbers of ties no graph can have, and worlds that refuse the topology or a combination of an agent's attributes.
        #[arg(long)]
        full: bool,
        /// Print one JSON object as the last line on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Run a scenario in a new run folder.
    Run {
        /// Scenario file (YAML), or the name of a leaf (`polity list worlds`), which has an example in the box.
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
    /// Estimate the cost of a run before it is made: an interval, from a sample of agents (or items) that are actually asked.
    Estimate {
        /// Scenario file (YAML).
        file: PathBuf,
        /// Maximum cost of the sample, in US dollars. A call that might exceed it is not made.
        #[arg(long, value_name = "USD", default_value_t = super::estimate::SAMPLE_USD, value_parser = decimal, allow_negative_numbers = true)]
        max_cost: f64,
        /// Make no calls: use the answers of an earlier run of this or a similar scenario.
        #[arg(long, value_name = "RUN", conflicts_with_all = ["no_ask", "max_cost"])]
        from: Option<PathBuf>,
        /// Make no calls: print bounds, which are wide.
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
        /// Number of seeds per arm.
        #[arg(long, env = "POLITY_SEEDS", value_parser = whole::<u32>, allow_negative_numbers = true)]
        seeds: Option<u32>,
        #[command(flatten)]
        answering: Answering,
    },
    /// Run a method on the items of a file, and report how many it solves and at what cost. Repeat the command with the same --out to
    /// continue an interrupted run.
    Eval {
        /// Name of the method (polity list methods), optionally with the size of its team: debate, sc@8
        #[arg(long, value_name = "NAME[@MEMBERS]")]
        method: String,
        /// File with the items.
        #[arg(long, value_name = "FILE")]
        task: PathBuf,
        #[command(flatten)]
        trying: Trying,
        /// Run folder; with --repeats, a folder of runs (default: runs/eval-METHOD-SEED).
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
    /// runs: parameters that differ, metrics side by side, methods as chains of conditional probabilities, the first round with different
    /// digests.
    Compare {
        /// Methods, as for eval: single sc@8 debate; `all` means all that can work on the items. Or run folders.
        #[arg(required = true, value_name = "METHOD|RUN")]
        what: Vec<String>,
        /// File with the items that the methods work on.
        #[arg(long, value_name = "FILE")]
        task: Option<PathBuf>,
        #[command(flatten)]
        comparing: Comparing,
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
    /// Continue a run or a sweep that was killed or stopped.
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
    /// Show the questions that a run asks people, or answer one. This also works while no process is working on the run: it uses the
    /// answer once it is resumed.
    Answer {
        /// Run folder.
        run: PathBuf,
        /// Id of the question; without it, all open questions are listed.
        id: Option<String>,
        /// The answer. For a question with several values: one argument each, in order, or one JSON object. Without it, values are read
        /// from standard input, one per line.
        #[arg(value_name = "VALUE", allow_negative_numbers = true)]
        values: Vec<String>,
        /// Print the questions, or the accepted answer, as JSON on the last line of standard output.
        #[arg(long)]
        json: bool,
    },
    /// Send a command to a run in another process, and wait until it has taken effect.
    Ctl {
        /// Run folder.
        run: PathBuf,
        /// The command.
        #[command(subcommand)]
        order: Ordered,
    },
    /// Recompute a run from its journal, without model calls, and compare the digest of every round.
    Replay {
        /// Run folder.
        run: PathBuf,
        #[command(flatten)]
        common: Common,
    },
    /// Rerun a recorded run up to a round, and continue from there with other parameters.
    Fork {
        /// Run folder.
        run: PathBuf,
        /// First round that may differ.
        #[arg(long, value_parser = whole::<u32>, allow_negative_numbers = true)]
        at: u32,
        /// Folder of the new run (default: next to the old one).
        #[arg(long)]
        out: Option<PathBuf>,
        /// Set a value of the scenario from that round on: -P world.fraction=0.5
        #[arg(short = 'P', value_name = "KEY=VALUE")]
        set: Vec<String>,
        /// Number of rounds of the new run.
        #[arg(long, value_parser = whole::<u32>, allow_negative_numbers = true)]
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
    /// Show what an agent would be sent in the first round, without sending it; or write its prompt templates to files.
    Prompts {
        /// Scenario file (YAML).
        file: PathBuf,
        /// Agent whose prompt is shown (default: the first that asks a model); in an evaluation, the team member.
        #[arg(long, value_name = "ID", value_parser = whole::<u32>, allow_negative_numbers = true)]
        agent: Option<u32>,
        /// Write the templates into this folder for editing, and print how to use them in the scenario.
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        #[command(flatten)]
        access: FileAccess,
        #[command(flatten)]
        edits: Edits,
    },
    /// Ask agents of a recorded run a question, as they were at a given round. The run is not changed.
    Interview {
        /// Run folder.
        run: PathBuf,
        /// Agent to ask; may be given several times.
        #[arg(long = "agent", value_name = "ID", required = true, value_parser = whole::<u32>, allow_negative_numbers = true)]
        agents: Vec<u32>,
        /// The question.
        #[arg(value_name = "QUESTION")]
        question: String,
        /// Ask the agents as they were before this round (default: after the last complete one).
        #[arg(long, value_name = "ROUND", value_parser = whole::<u32>, allow_negative_numbers = true)]
        at: Option<u32>,
        /// Append the answers to this file, as JSON lines.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        answering: Answering,
        #[command(flatten)]
        common: Common,
    },
    /// List the worlds, methods, policies, metrics, topologies or models of this build, or templates of systems of agents.
    List {
        /// What to list.
        #[arg(value_name = "worlds|methods|policies|metrics|topologies|models|templates")]
        what: Listed,
        /// List only methods with this value of a dimension: actors, type, structure, strategy or coordination; or templates, by kind,
        /// tools, memory or decomposition. May be given several times.
        #[arg(long = "where", value_name = "DIMENSION=VALUE")]
        filters: Vec<String>,
        /// Print JSON, with the schema of every leaf's parameters.
        #[arg(long)]
        json: bool,
    },
    /// Published systems: list them, show the claims of their papers, and check whether these hold here.
    #[command(subcommand)]
    Systems(Systems),
    /// Take over what other programs recorded.
    #[command(subcommand)]
    Import(Import),
    /// Print a table of a run as CSV or JSON lines.
    Export {
        /// Run folder, or sweep folder.
        run: PathBuf,
        /// Name of the table (acts, agents, metrics, rounds, ...; default: metrics, for a sweep: summary).
        #[arg(long)]
        table: Option<String>,
        /// Output format.
        #[arg(long, value_enum, default_value = "csv")]
        format: Format,
        /// In CSV, do not escape text that a spreadsheet would take for a formula (beginning with =, +, -, @, a tab or a line break). By
        /// default such text gets a leading apostrophe.
        #[arg(long)]
        raw: bool,
        /// Output file (default: standard output).
        #[arg(long)]
        out: Option<PathBuf>,
        /// Maximum number of rows.
        #[arg(long)]
        limit: Option<usize>,
    },
    /// Measure how far judges agree with labels and with each other (Cohen's and Fleiss' kappa), and whether they favour the answer shown
    /// first.
    Agreement {
        /// Run folder of an evaluation.
        run: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Name the ways in which teams failed, with the calls that show them. Of a sweep, count how often each planted fault is named.
    Diagnose {
        /// Run folder of an evaluation, or sweep folder.
        run: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Fit the parameters of a simulated model to the answers of a recorded evaluation, per model.
    Calibrate {
        /// Run folder of an evaluation.
        run: PathBuf,
        /// Print one JSON object per model.
        #[arg(long)]
        json: bool,
    },
    /// Show the requests to models and their answers, also of a run that is in progress or was killed.
    Calls {
        /// Run folder.
        run: PathBuf,
        /// Only calls of this agent or team member.
        #[arg(long, value_name = "N", value_parser = whole::<u32>, allow_negative_numbers = true)]
        agent: Option<u32>,
        /// Only calls of turns that began in this round.
        #[arg(long, value_name = "R", value_parser = whole::<u32>, allow_negative_numbers = true)]
        round: Option<u32>,
        /// Only calls on this item of an evaluation.
        #[arg(long, value_name = "I", value_parser = whole::<u32>, allow_negative_numbers = true)]
        item: Option<u32>,
        /// Only calls with this purpose.
        #[arg(long)]
        purpose: Option<String>,
        /// Maximum number of calls.
        #[arg(long)]
        limit: Option<usize>,
        /// Print one JSON object per call, with the columns of the table `calls`.
        #[arg(long)]
        json: bool,
        /// Show prompts and answers in full.
        #[arg(long)]
        full: bool,
    },
    /// Check that a run, a sweep, a comparison, or a folder of these is unchanged: journals, manifests, inputs, snapshots and every part
    /// of every table. Nothing is recomputed (use replay for that).
    Verify {
        /// The folder.
        folder: PathBuf,
        /// Print one JSON object as the last line on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Rewrite the report of a run or a sweep.
    Report {
        /// Run folder, or sweep folder.
        run: PathBuf,
    },
    /// Show a run, finished or in progress, in the browser.
    View {
        /// Run folder.
        run: PathBuf,
        #[command(flatten)]
        serving: Serving,
    },
    /// Show all runs in a folder, for a browser. Or, with --method, offer a team to clients of the OpenAI API, as if it were a model:
    /// every request is one run of the method. All other flags but --port, --host, --token and --no-open are for a team.
    Serve {
        /// Folder that holds runs, at any depth up to six.
        #[arg(required_unless_present = "method", conflicts_with = "method")]
        folder: Option<PathBuf>,
        /// Name of the method that answers (polity list methods), optionally with the size of its team: moa, sc@8
        #[arg(long, value_name = "NAME[@MEMBERS]")]
        method: Option<String>,
        #[command(flatten)]
        serving: Serving,
        #[command(flatten)]
        served: Served,
        #[command(flatten)]
        edits: Edits,
        #[command(flatten)]
        spending: Spending,
        #[command(flatten)]
        answering: Answering,
        #[command(flatten)]
        common: Common,
    },
    /// Create a crate with your own world, policy or method, in a new folder here.
    New {
        /// Kind of leaf.
        #[arg(value_name = "world|policy|method")]
        kind: Own,
        /// Name, as used in scenarios and by Cargo, for instance rock-pool.
        name: String,
        /// Source of Polity: the folder of a checkout, or the URL of a git repository (default: the checkout that this program was built
        /// from).
        #[arg(long, value_name = "PATH-OR-URL", env = "POLITY_SOURCE")]
        polity: Option<String>,
    },
    /// Convert scenarios of an older format, keeping comments.
    Migrate {
        /// Scenario files, or folders, in which all *.yaml files are converted.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Format of files that do not state one (default: the newest).
        #[arg(long, value_name = "FORMAT", value_parser = whole::<u32>, allow_negative_numbers = true)]
        from: Option<u32>,
        /// Write nothing; print what would change.
        #[arg(long)]
        dry_run: bool,
    },
    /// Serve the APIs of all providers on this machine from a simulated model, with limits and faults, to try things without keys or
    /// network.
    MockServer(Mock),
    /// Print the JSON Schema of a scenario, for editors.
    Schema,
    /// Check what runs need: cores, memory, disk, a writable folder.
    Doctor {
        /// Folder that will hold the runs.
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Print one JSON object as the last line on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Print shell completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all commands into a folder.
    Man {
        /// Output folder; created if it is missing.
        folder: Option<PathBuf>,
    },
    /// Print the chapter of the book that describes scenarios, the one on tables or on flags, or the keys of a leaf.
    #[command(hide = true)]
    Reference {
        /// `tables`, `flags`, or a leaf, for instance worlds/opinion.
        leaf: Option<String>,
    },
}

impl Verb {
    /// Returns whether the last line of standard output is to be JSON.
    #[must_use]
    pub fn json(&self) -> bool {
        match self {
            Verb::Validate { json, .. }
            | Verb::List { json, .. }
            | Verb::Calls { json, .. }
            | Verb::Agreement { json, .. }
            | Verb::Calibrate { json, .. }
            | Verb::Diagnose { json, .. }
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
            | Verb::Interview { common, .. }
            | Verb::Serve { common, .. } => common.json,
            Verb::Import(Import::Recorded { json, .. }) => *json,
            Verb::Systems(systems) => match systems {
                Systems::List { json, .. } | Systems::Show { json, .. } => *json,
                Systems::Check { common, .. } => common.json,
                Systems::Schema => false,
            },
            Verb::Export { .. }
            | Verb::Ctl { .. }
            | Verb::Prompts { .. }
            | Verb::Report { .. }
            | Verb::View { .. }
            | Verb::New { .. }
            | Verb::Migrate { .. }
            | Verb::MockServer(_)
            | Verb::Schema
            | Verb::Completions { .. }
            | Verb::Man { .. }
            | Verb::Reference { .. } => false,
        }
    }
}

/// The unit in which budgets are made equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Equal {
    /// Tokens of requests and replies.
    Tokens,
    /// Model calls.
    Calls,
    /// US dollars.
    Usd,
    /// Do not make budgets equal: each method has its usual team.
    None,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// What agents live in, including environments.
    Worlds,
    /// Where work is done step by step: tools, games.
    Environments,
    /// How a team works on a task.
    Methods,
    /// How an agent behaves.
    Policies,
    /// Numbers that describe a round.
    Metrics,
    /// Who can hear whom.
    Topologies,
    /// Models that can be asked.
    Models,
    /// Systems of agents to start from, with their known failures and what helps.
    Templates,
}

/// Kinds of leaves for a crate of your own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Own {
    /// What agents live in.
    World,
    /// How an agent behaves.
    Policy,
    /// How a team works on a task.
    Method,
}

/// Export formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// One JSON object per line.
    Jsonl,
}
