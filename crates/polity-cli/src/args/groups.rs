//! Groups of flags that several commands share.

use crate::numbers::{address, connections, decimal, few, port, positive, seed, whole};
use clap::{Args as ClapArgs, ValueEnum};
use polity_arena::arena::Allowance;
use polity_driver::source::Schedule;
use polity_kernel::scenario::Span;
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// Flags shared by run, resume, replay and fork.
#[derive(Debug, ClapArgs)]
pub struct Common {
    /// Print one JSON object as the last line on standard output.
    #[arg(long)]
    pub json: bool,
    /// Number of threads (default: all cores). Does not affect results.
    #[arg(long, env = "POLITY_THREADS", value_parser = few, allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,
    /// Number of shards of a society in this process: a device for tests, which only costs time, since threads share the work of one
    /// shard. Does not affect results.
    #[arg(long, env = "POLITY_SHARDS", default_value = "1", value_parser = few, allow_negative_numbers = true)]
    pub shards: NonZeroUsize,
    /// Memory limit in MB for a run, or for all runs of a sweep together (default: free memory; half of it for a sweep). A run whose
    /// estimate is larger does not start. Does not affect results.
    #[arg(long, value_name = "MB", env = "POLITY_MEMORY", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub memory: Option<u64>,
    /// Maximum number of model calls in flight.
    #[arg(long, env = "POLITY_MAX_CONNECTIONS", default_value = "100", value_parser = connections, allow_negative_numbers = true)]
    pub max_connections: NonZeroUsize,
    /// Do not write report.html.
    #[arg(long, env = "POLITY_NO_REPORT", value_parser = clap::builder::BoolishValueParser::new())]
    pub no_report: bool,
}

/// What each method may use per item, if budgets are made equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equal(pub Option<Allowance>);

impl Equal {
    fn read(text: &str) -> Result<Equal, String> {
        match text {
            "none" => Ok(Equal(None)),
            text => Allowance::read(text).map(|allowance| Equal(Some(allowance))),
        }
    }
}

/// How methods are compared.
#[derive(Clone, Debug, ClapArgs)]
pub struct Comparing {
    /// File with the items that the methods work on; may be given several times.
    #[arg(long = "task", value_name = "FILE")]
    pub tasks: Vec<PathBuf>,
    /// Model of all team members; may be given several times.
    #[arg(long = "model", value_name = "PROVIDER/MODEL", env = "POLITY_MODEL")]
    pub models: Vec<String>,
    /// Give all methods the same budget per item: that of the most expensive one (tokens, calls or usd), or a stated amount (tokens=3000,
    /// calls=12, usd=0.01). Methods named without a team size get the size that comes closest to it, measured in a pilot on a tenth of
    /// the items. `none`: each method has its usual team.
    #[arg(long, value_name = "UNIT[=AMOUNT]", default_value = "none", value_parser = Equal::read, requires = "tasks")]
    pub equal: Equal,
    /// Number of items in that pilot (default: a tenth, but at least five). Methods that stop early need more.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pilot: Option<u32>,
    /// Recompute each run from its journal before it counts: every request to a model and every digest must be those recorded.
    #[arg(long, requires = "tasks")]
    pub replay: bool,
    /// Write the folder of the comparison and make no run: `polity work` makes them, in any number of processes on machines that see the
    /// folder.
    #[arg(long, requires = "tasks")]
    pub plan: bool,
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
    #[command(flatten)]
    pub keys: Keys,
    /// Use this model for all team members and minds, whatever the scenario says.
    #[arg(long, value_name = "PROVIDER/MODEL", env = "POLITY_MODEL")]
    pub model: Option<String>,
}

/// Flags of commands that put a method to work: its scenario, its limits, its models, and those of all runs.
#[derive(Debug, ClapArgs)]
pub struct Work {
    #[command(flatten)]
    pub edits: Edits,
    #[command(flatten)]
    pub spending: Spending,
    #[command(flatten)]
    pub answering: Answering,
    #[command(flatten)]
    pub common: Common,
}

/// Changes of keys of a scenario.
#[derive(Debug, ClapArgs)]
pub struct Keys {
    /// Set a value of the scenario (in a sweep: in every arm, or in the design): -P world.fraction=0.5
    #[arg(short = 'P', value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Number of agents. The population is resampled and generated topologies are regenerated.
    #[arg(long, env = "POLITY_AGENTS", value_parser = whole::<u32>, allow_negative_numbers = true)]
    pub agents: Option<u32>,
    /// Number of rounds.
    #[arg(long, env = "POLITY_ROUNDS", value_parser = whole::<u32>, allow_negative_numbers = true)]
    pub rounds: Option<u32>,
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
    /// Let the scenario's tools start programs (MCP servers) and ask the hosts that they list. Without it such a scenario is refused, and
    /// the error says what it would start or ask.
    #[arg(long)]
    pub allow_tools: bool,
    /// How long a stopping run (Ctrl-C, --max-time, ctl stop) waits for requests in flight (default: 30s). Requests still in flight after
    /// that are counted at their maximum cost.
    #[arg(long, value_name = "TIME", env = "POLITY_GRACE", value_parser = span)]
    pub grace: Option<Duration>,
    /// Timeout of one request (default: 5m).
    #[arg(long, value_name = "TIME", env = "POLITY_REQUEST_TIMEOUT", value_parser = span)]
    pub request_timeout: Option<Duration>,
    /// Order of calls when limits make them wait: fifo, fair (each asker in turn), priority (`priority` of cohorts), by-model (all that wait
    /// for a model before those for the next, for a server that holds one model at a time), or none (all at once, ignoring the limits; a
    /// baseline). Does not affect results.
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
    #[arg(long, default_value = "0", value_parser = port, allow_negative_numbers = true)]
    pub port: u16,
    /// Address of this machine to listen at. One that other machines can reach needs --token.
    #[arg(long, default_value = "127.0.0.1", value_parser = address)]
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
    #[arg(long, value_name = "N", default_value = "8", value_parser = few, allow_negative_numbers = true)]
    pub jobs: NonZeroUsize,
}

/// Formats of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NetworkFormat {
    /// GraphML (for NetworkX, igraph, Gephi, yEd).
    Graphml,
    /// GEXF (for Gephi).
    Gexf,
    /// Comma-separated values without attributes: who hears, who is heard.
    Edges,
}
