//! Flags of the servers: the mock server, and the one of MCP.

use crate::numbers::{decimal, port, positive, seed, whole};
use clap::{Args as ClapArgs, Subcommand};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Settings of the mock server.
#[derive(Debug, ClapArgs)]
pub struct Mock {
    /// Port on 127.0.0.1 (0: a free port, which is printed).
    #[arg(long, default_value = "0", value_parser = port, allow_negative_numbers = true)]
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
    /// Constraints on answers that the models support: tools, schema, choice, grammar, logprobs. Others are refused with a 400.
    #[arg(long, value_name = "WAYS", value_delimiter = ',', default_value = "tools,schema,logprobs")]
    pub offers: Vec<String>,
}

/// Verbs of `polity mcp`.
#[derive(Debug, Subcommand)]
pub enum Mcp {
    /// Serve tools over standard input and output, or over HTTP: list and run scenarios, ask an agent of a run, ask a team. Every run is
    /// recorded as usual.
    Serve(McpServe),
}

/// Options of `polity mcp serve`.
#[derive(Debug, ClapArgs)]
pub struct McpServe {
    /// Folder with the scenarios that may be run.
    #[arg(default_value = ".")]
    pub scenarios: PathBuf,
    /// Folder for the runs.
    #[arg(long, default_value = "runs")]
    pub runs: PathBuf,
    /// Use this model for all team members and minds, whatever the scenarios say.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub model: Option<String>,
    /// Limit of all calls together, in US dollars. Without it each scenario has its own budget.
    #[arg(long, value_name = "USD", value_parser = decimal, allow_negative_numbers = true)]
    pub max_cost: Option<f64>,
    /// Serve over HTTP at this address, for instance 127.0.0.1:8931, and not over standard input and output.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<std::net::SocketAddr>,
    /// Token that every request over HTTP must give, at least 16 characters; needed unless only this machine can reach the address.
    #[arg(long, env = "POLITY_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}
