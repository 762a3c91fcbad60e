//! Commands and flags of the command line. The groups of flags that commands share are in `groups.rs`, those of servers in
//! `servers.rs`, those of games in `games.rs`.

mod games;
mod groups;
mod servers;

pub use games::*;
pub use groups::*;
pub use servers::*;

use super::numbers::{decimal, few, whole};
use super::output::LogFormat;
use super::spread::Spreading;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use polity_driver::workers::Part;
use std::num::NonZeroUsize;
use std::path::PathBuf;

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
        #[arg(default_value = "1", value_parser = whole::<u32>, allow_negative_numbers = true)]
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
    #[arg(long, env = "POLITY_JOBS", value_parser = few, allow_negative_numbers = true)]
    pub jobs: Option<NonZeroUsize>,
}

/// Commands on published systems.
#[derive(Debug, Subcommand)]
pub enum Systems {
    /// List all known systems, with what is implemented of each.
    List {
        /// Only those of a group, such as safety, survey or games.
        #[arg(long)]
        group: Option<String>,
        #[command(flatten)]
        systems: SystemsFolder,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show systems: their papers, their components, their claims.
    Show {
        /// Names of systems, or numbers of their rows.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        names: Vec<String>,
        /// Show all implemented systems.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        systems: SystemsFolder,
        /// Print JSON: one line per system.
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
        /// With --all, leave out the entry of this name, or entries that need this (tool/python: the sandbox; consent:
        /// --allow-tools) or use this leaf (policies/hasac); repeatable.
        #[arg(long, value_name = "NAME", requires = "all")]
        without: Vec<String>,
        /// Let scenarios start programs (MCP servers) and ask the hosts that they list.
        #[arg(long)]
        allow_tools: bool,
        /// Run nothing: check that every arm can be run, and print the number of runs.
        #[arg(long)]
        dry_run: bool,
        /// Write the folder and make no run: `polity work` makes them, in any number of processes on machines that see the folder.
        #[arg(long, conflicts_with = "dry_run")]
        plan: bool,
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
        /// Continue the run if the folder of --out holds one of this very scenario, so that a scheduler can repeat the command.
        #[arg(long, requires = "out")]
        go_on: bool,
        #[command(flatten)]
        spreading: Spreading,
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
        /// Estimate instead what the society would need and gain over this many processes (`polity run --spread`).
        #[arg(long, value_name = "N", conflicts_with_all = ["max_cost", "from", "no_ask"], value_parser = few)]
        processes: Option<NonZeroUsize>,
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
        /// Write the sweep folder and make no run: `polity work` makes them, in any number of processes on machines that see the folder.
        #[arg(long)]
        plan: bool,
        #[command(flatten)]
        answering: Answering,
    },
    /// Make runs of a sweep, a planned comparison or a planned check beside other processes, on this or on other machines that see its
    /// folder. Runs that others are working on are left to them. Repeat the command to make what a lost process left; then `polity resume`
    /// writes the tables and the report. --max-cost and the like raise the budget of all runs together.
    Work {
        /// Folder of the sweep, the comparison or the check.
        folder: PathBuf,
        /// Make only part I of N, from 0/N to (N-1)/N (default: whatever nobody has made). Each part has its share of every arm.
        #[arg(long, value_name = "I/N", value_parser = clap::value_parser!(Part))]
        part: Option<Part>,
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        limits: SweepLimits,
        #[command(flatten)]
        spending: Spending,
        #[command(flatten)]
        answering: Answering,
    },
    /// Put one question or task to a team, and print its answer. It is an ordinary run, in a folder of its own.
    Ask {
        #[command(flatten)]
        asked: Asking,
        #[command(flatten)]
        work: Work,
    },
    /// Run a method on the items of a file, and report how many it solves and at what cost. `polity resume`, or the same command with the
    /// same --out, continues an interrupted run. Or let a model play the games of a suite, and report its scores; the same command with
    /// the same --out continues.
    Eval {
        /// Name of the method (polity list methods), optionally with the size of its team and parameters of the method: debate, sc@8,
        /// debate:show_reasons=false
        #[arg(
            long,
            value_name = "NAME[@MEMBERS][:KEY=VALUE,...]",
            required_unless_present = "suite",
            conflicts_with = "suite"
        )]
        method: Option<String>,
        /// File with the items.
        #[arg(long, value_name = "FILE", required_unless_present = "suite", conflicts_with = "suite")]
        task: Option<PathBuf>,
        /// Name of a published system with games that score a model, in place of a method and a task: gama-bench
        #[arg(long, value_name = "SYSTEM", conflicts_with = "limit")]
        suite: Option<String>,
        #[command(flatten)]
        systems: SystemsFolder,
        #[command(flatten)]
        trying: Trying,
        /// Run folder; with --repeats, a folder of runs (default: runs/eval-METHOD-SEED).
        #[arg(long, env = "POLITY_OUT")]
        out: Option<PathBuf>,
        #[command(flatten)]
        work: Work,
    },
    /// Compare methods on the same items (with --task), with one or several models and tasks: accuracy against cost, with intervals, and
    /// which differences are real. `polity resume`, or the same command with the same --out, continues an interrupted one. Or compare
    /// runs: parameters that differ, metrics side by side, methods as chains of conditional probabilities, the first round with different
    /// digests.
    Compare {
        /// Methods, as for eval, optionally with a label: single sc@8 plain=debate:show_reasons=false; `all` means all that can work on
        /// the items. Or run folders.
        #[arg(required = true, value_name = "METHOD|RUN")]
        what: Vec<String>,
        #[command(flatten)]
        comparing: Comparing,
        #[command(flatten)]
        trying: Trying,
        /// Folder of the comparison (default: runs/compare-TASK-SEED).
        #[arg(long, env = "POLITY_OUT")]
        out: Option<PathBuf>,
        #[command(flatten)]
        keys: Keys,
        #[command(flatten)]
        spending: Spending,
        #[command(flatten)]
        answering: Answering,
        #[command(flatten)]
        common: Common,
    },
    /// Continue a run, a sweep, a comparison or a planned check that was killed or stopped. For a sweep, --max-cost and the like raise its
    /// budget (`design.budget`).
    Resume {
        /// Folder of the run, the sweep, the comparison or the check.
        run: PathBuf,
        /// Print the command that continues the run beyond its planned end, up to this number of rounds: a fork.
        #[arg(long, value_parser = whole::<u32>, allow_negative_numbers = true)]
        rounds: Option<u32>,
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
    /// Show the prompts of a method, and what an agent of a scenario would be sent in the first round, without sending it; or write the
    /// prompts to files.
    Prompts {
        /// Name of a method (polity list methods), or a scenario file (YAML).
        #[arg(value_name = "METHOD|FILE")]
        file: PathBuf,
        /// Agent whose prompt is shown (default: the first that asks a model); in an evaluation, the team member.
        #[arg(long, value_name = "ID", value_parser = whole::<u32>, allow_negative_numbers = true)]
        agent: Option<u32>,
        /// Write the prompts into this folder for editing, and print how to use them in the scenario.
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
    /// List the worlds, methods, policies, metrics, topologies or models of this build, games and strategies, or templates of systems of
    /// agents.
    List {
        /// What to list.
        #[arg(value_name = "worlds|methods|policies|metrics|topologies|models|templates|games|strategies")]
        what: Listed,
        /// List only methods with this value of a dimension: actors, type, structure, strategy or coordination; or templates, by kind,
        /// tools, memory or decomposition. May be given several times.
        #[arg(long = "where", value_name = "DIMENSION=VALUE")]
        filters: Vec<String>,
        /// Print JSON, with the schema of every leaf's parameters.
        #[arg(long)]
        json: bool,
    },
    /// Describe a world, policy, method, metric, topology or toolkit: its parameters, what agents see and do, what it measures, and what
    /// it can be combined with. Without a name: which policies fit which worlds.
    Explain {
        /// Its name (`polity list worlds`).
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Find equilibria of a game: a file in Gambit's format (.nfg, .efg) or in YAML, or a known game such as prisoners-dilemma, chicken,
    /// kuhn or leduc.
    Solve(Solving),
    /// Let strategies of a repeated two-player game play each other, and rank them; --json adds all moves. With --evolve, a population of
    /// these strategies evolves according to their payoffs.
    Tournament(Playing),
    /// Show the progress of the runs in a folder: running, paused, stopped, done or damaged; rounds, rate, time left, spending, and what
    /// they wait for. It changes nothing, and works while they run.
    #[command(visible_alias = "ps")]
    Status {
        /// Folder of a run, a sweep or a comparison, or one that holds runs, at any depth up to six.
        #[arg(default_value = "runs")]
        folder: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Published systems: list them, show the claims of their papers, and check whether these hold here.
    #[command(subcommand)]
    Systems(Systems),
    /// Take over what other programs recorded.
    #[command(subcommand)]
    Import(Import),
    /// Print a table of a run as CSV or JSON lines. A comparison prints the tables of all its runs, with columns that tell the runs apart;
    /// so does a sweep, if only its runs have the table.
    Export {
        /// Folder of the run, the sweep or the comparison.
        run: PathBuf,
        /// Name of the table (acts, agents, metrics, rounds, ...; default: metrics; of a sweep: summary; of a comparison: items).
        #[arg(long)]
        table: Option<String>,
        /// Instead of a table, export the ties between agents, with the attributes and the first and last states of agents.
        #[arg(long, value_enum, conflicts_with_all = ["table", "format", "raw", "limit"])]
        network: Option<NetworkFormat>,
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
        #[arg(long, value_name = "N", value_parser = whole::<usize>, allow_negative_numbers = true)]
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
    /// Name the ways in which teams failed, with the calls that show them. For a sweep or a comparison, count how often each planted fault
    /// is named.
    Diagnose(Diagnosing),
    /// Fit the parameters of simulated models to the answers of a recorded evaluation, show how far they fit, and write them to a file.
    Calibrate(Calibrating),
    /// Show the requests to models and their answers, also of a run that is in progress or was killed. For a sweep or a comparison: those
    /// of all its runs.
    Calls {
        /// Folder of the run, the sweep or the comparison.
        run: PathBuf,
        /// In a sweep or a comparison, only the runs of this method, or those whose name contains this: sc@8, gsm8k/
        #[arg(long = "run", value_name = "NAME")]
        of: Option<String>,
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
        #[arg(long, value_name = "N", value_parser = whole::<usize>, allow_negative_numbers = true)]
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
    /// Rewrite the report of a run, a sweep or a comparison. Or write its figures and tables as files for a paper.
    Report {
        /// Folder of the run, the sweep or the comparison.
        run: PathBuf,
        /// Write every figure into this folder as SVG, PDF and CSV, instead of the report.
        #[arg(long, value_name = "FOLDER")]
        figures: Option<PathBuf>,
        /// Write every table of the report into this folder as CSV, LaTeX and Markdown, instead of the report. The figures may have the same
        /// folder.
        #[arg(long, value_name = "FOLDER")]
        tables: Option<PathBuf>,
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
        work: Work,
    },
    /// Create a crate with your own world, policy or method, in a new folder here; or an experiment: a guide leads from a question to a
    /// scenario with control arm, seeds and validation, and to a protocol.
    New {
        /// What is created.
        #[arg(value_name = "world|policy|method|experiment")]
        kind: Own,
        /// Name of the leaf, as used in scenarios and by Cargo, for instance rock-pool; or folder of the experiment.
        name: String,
        /// Source of Polity: the folder of a checkout, or the URL of a git repository (default: the checkout that this program was built
        /// from).
        #[arg(long, value_name = "PATH-OR-URL", env = "POLITY_SOURCE")]
        polity: Option<String>,
        #[command(flatten)]
        guided: Guided,
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
    /// Serve runs, agents and teams as tools of the Model Context Protocol (MCP).
    #[command(subcommand)]
    Mcp(Mcp),
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
        /// `tables`, `flags`, `fits`, or a leaf, for instance worlds/opinion.
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
            | Verb::Explain { json, .. }
            | Verb::Status { json, .. }
            | Verb::Calls { json, .. }
            | Verb::Agreement { json, .. }
            | Verb::Calibrate(Calibrating { json, .. })
            | Verb::Solve(Solving { json, .. })
            | Verb::Tournament(Playing { json, .. })
            | Verb::Verify { json, .. }
            | Verb::Answer { json, .. }
            | Verb::Doctor { json, .. } => *json,
            Verb::Run { common, .. }
            | Verb::Ask { work: Work { common, .. }, .. }
            | Verb::Eval { work: Work { common, .. }, .. }
            | Verb::Compare { common, .. }
            | Verb::Estimate { common, .. }
            | Verb::Sweep { common, .. }
            | Verb::Work { common, .. }
            | Verb::Resume { common, .. }
            | Verb::Replay { common, .. }
            | Verb::Fork { common, .. }
            | Verb::Interview { common, .. }
            | Verb::Diagnose(Diagnosing { common, .. })
            | Verb::Serve { work: Work { common, .. }, .. } => common.json,
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
            | Verb::Mcp(_)
            | Verb::Schema
            | Verb::Completions { .. }
            | Verb::Man { .. }
            | Verb::Reference { .. } => false,
        }
    }
}

/// What `polity ask` asks, and whom.
#[derive(Debug, ClapArgs)]
pub struct Asking {
    /// The question or task; `-` reads it from standard input.
    #[arg(value_name = "QUESTION", required_unless_present = "file")]
    pub question: Option<String>,
    /// Read the question from this file.
    #[arg(long, value_name = "FILE", conflicts_with = "question")]
    pub file: Option<PathBuf>,
    /// Who answers: the name of a method (polity list methods), optionally with the size of its team, or a scenario file (.yaml) with a
    /// method and a team.
    #[arg(long, value_name = "NAME[@MEMBERS]|FILE", default_value = "single")]
    pub method: String,
    /// Run folder (default: runs/ask-METHOD-SEED).
    #[arg(long, env = "POLITY_OUT")]
    pub out: Option<PathBuf>,
}

/// What `polity calibrate` fits, and where the models go.
#[derive(Debug, ClapArgs)]
pub struct Calibrating {
    /// Run folder of an evaluation.
    pub run: PathBuf,
    /// Write the fitted models to this new file. A scenario uses them with the key `simulated`.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Fit nothing, and compare the answers with the models of this file, for instance on items that were not used to fit them.
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    pub against: Option<PathBuf>,
    /// The simulated model that has the parameters about which the answers say nothing.
    #[arg(long, default_value = "sim/medium", value_name = "MODEL")]
    pub like: String,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// What `polity diagnose` diagnoses, and who else is asked.
#[derive(Debug, ClapArgs)]
pub struct Diagnosing {
    /// Folder of the run, the sweep or the comparison.
    pub run: PathBuf,
    /// Also ask this model which failure modes each item shows, and print how far it agrees with the rules. Of a society, it is asked about each
    /// agent. The limits of --max-cost and
    /// similar flags hold for all its answers together. The run is not changed.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub judge: Option<String>,
    /// Compare with the labels in this file (CSV, TSV, JSON lines, or a JSON list: `item`, `modes`, in a sweep also `run`), and print
    /// Cohen's kappa.
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    #[command(flatten)]
    pub spending: Spending,
    #[command(flatten)]
    pub answering: Answering,
    #[command(flatten)]
    pub common: Common,
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
    /// Tools that agents call.
    Toolkits,
    /// Who can hear whom.
    Topologies,
    /// Models that can be asked.
    Models,
    /// Systems of agents to start from, with their known failures and what helps.
    Templates,
    /// Games that `polity solve` and `polity tournament` know by name.
    Games,
    /// Strategies of repeated games.
    Strategies,
}

/// Answers to the guide of an experiment.
#[derive(Clone, Debug, ClapArgs)]
pub struct Guided {
    /// Take the answers for an experiment from this file (YAML) instead of asking for them.
    #[arg(long, value_name = "FILE", conflicts_with = "write_answers")]
    pub answers: Option<PathBuf>,
    /// Write an example of all answers for an experiment into this file, and create nothing else.
    #[arg(long, value_name = "FILE")]
    pub write_answers: Option<PathBuf>,
}

/// What can be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Own {
    /// What agents live in.
    World,
    /// How an agent behaves.
    Policy,
    /// How a team works on a task.
    Method,
    /// A scenario with a design, and a protocol.
    Experiment,
}

/// Export formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// One JSON object per line.
    Jsonl,
}
