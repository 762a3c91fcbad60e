//! `polity mcp serve`: runs, agents and teams as tools of the Model Context Protocol.
//!
//! Every call is a process of this program, so that standard output belongs to the protocol alone, and a call that its client gives up
//! ends with its process.

use super::args::McpServe;
use super::failure::{Exit, Failure};
use super::output::note;
use polity_kernel::tool::{Arguments, EffectClass, ToolOutput, ToolSpec};
use polity_mcp::server::{Http, Progress, Served, ServedTool, serve_http, serve_stdio};
use serde_json::{Value as Json, json};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use tokio::process::Command;
use tokio::sync::Semaphore;

/// Calls that are worked on at the same time; others wait.
const AT_ONCE: usize = 2;
/// Characters shown of what a process says on standard error.
const TOLD: usize = 2_000;
/// Characters shown of the head of a scenario.
const HEAD: usize = 300;

/// What is served.
struct Office {
    program: PathBuf,
    scenarios: PathBuf,
    runs: PathBuf,
    model: Option<String>,
    /// What may still be spent, in US dollars, if there is a limit.
    left: Mutex<Option<f64>>,
    turns: Semaphore,
}

/// Serves until standard input ends, or, over HTTP, until it is stopped.
pub fn serve(asked: McpServe) -> Result<Exit, Failure> {
    let refused = |why: String| Failure::new(Exit::Input, why);
    let McpServe { scenarios, runs, model, max_cost, listen, token } = asked;
    let scenarios = std::fs::canonicalize(&scenarios)
        .map_err(|error| refused(format!("the folder of scenarios {} cannot be read: {error}", scenarios.display())))?;
    let program = std::env::current_exe().map_err(|error| refused(format!("this program is not found: {error}")))?;
    let office = Office {
        program,
        scenarios,
        runs,
        model,
        left: Mutex::new(max_cost),
        // Calls under a limit are made one after the other, so that together they stay below it.
        turns: Semaphore::new(if max_cost.is_some() { 1 } else { AT_ONCE }),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| refused(error.to_string()))?;
    let served = runtime.block_on(async {
        match listen {
            None => serve_stdio(office).await,
            Some(bind) => {
                let serving = serve_http(office, Http { bind, token, ..Http::default() }).await?;
                note(&format!("tools are served at {}; Ctrl-C stops it", serving.url()));
                serving.wait().await;
                Ok(())
            }
        }
    });
    served.map(|()| Exit::Done).map_err(refused)
}

fn tool(name: &str, title: &str, doc: &str, properties: &Json, required: &[&str], effect: EffectClass) -> ServedTool {
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    ServedTool { spec: ToolSpec::new(name, doc, &schema, effect), title: title.into() }
}

impl Served for Office {
    fn tools(&self) -> Vec<ServedTool> {
        let scenario = json!({"type": "string", "description": "a name that `list_scenarios` gives"});
        let run = json!({"type": "string", "description": "a name that `list_runs` or another tool gives"});
        let parameters = json!({
            "type": "object", "additionalProperties": {"type": ["number", "boolean"]},
            "description": "values of the scenario by their paths, such as {\"world.fraction\": 0.5}",
        });
        let number = |doc: &str| json!({"type": "integer", "minimum": 0, "description": doc});
        vec![
            tool(
                "list_scenarios",
                "Scenarios",
                "Lists the scenarios that can be run",
                &json!({}),
                &[],
                EffectClass::Reads,
            ),
            tool("list_runs", "Runs", "Lists the runs that were made", &json!({}), &[], EffectClass::Reads),
            tool(
                "run_scenario",
                "Run a scenario",
                "Runs a society or an evaluation, and returns its metrics, its digest and the name of the run",
                &json!({"scenario": scenario, "seed": number("seed of all random numbers"),
                    "agents": number("number of agents"), "rounds": number("number of rounds"), "parameters": parameters}),
                &["scenario"],
                EffectClass::Outside,
            ),
            tool(
                "ask_agent",
                "Ask an agent",
                "Asks an agent of a run a question, as it was before a round; the run does not change",
                &json!({"run": run, "agent": number("id of the agent"), "question": {"type": "string"},
                    "at": number("the round; default: the end")}),
                &["run", "agent", "question"],
                EffectClass::Outside,
            ),
            tool(
                "ask_team",
                "Ask a team",
                "Gives a question to the team of a scenario, and returns its answer",
                &json!({"scenario": scenario, "question": {"type": "string"}, "seed": number("seed of all random numbers")}),
                &["scenario", "question"],
                EffectClass::Outside,
            ),
        ]
    }

    async fn call(&self, tool: &str, arguments: &Arguments, progress: &Progress) -> ToolOutput {
        let Ok(_turn) = self.turns.acquire().await else { return ToolOutput::error("the server is ending") };
        progress.report(0.0, None, "started").await;
        let done = match tool {
            "list_scenarios" => self.list_scenarios(),
            "list_runs" => Ok(names(&self.runs, &|path| path.join("manifest.json").is_file()).join("\n")),
            "run_scenario" => self.run_scenario(arguments).await,
            "ask_agent" => self.ask_agent(arguments).await,
            _ => self.ask_team(arguments).await,
        };
        match done {
            Ok(text) => ToolOutput::text(text),
            Err(why) => ToolOutput::error(why),
        }
    }
}

impl Office {
    fn list_scenarios(&self) -> Result<String, String> {
        let is_scenario = |path: &Path| path.extension().is_some_and(|end| end == "yaml");
        let described = |name: String| {
            let text = std::fs::read_to_string(self.scenarios.join(&name)).unwrap_or_default();
            let key = text.lines().find_map(|line| line.strip_prefix("description:"));
            let head = key.or_else(|| text.lines().find_map(|line| line.strip_prefix('#'))).unwrap_or_default();
            format!("{name}: {}", head.trim().chars().take(HEAD).collect::<String>())
        };
        Ok(names(&self.scenarios, &is_scenario).into_iter().map(described).collect::<Vec<_>>().join("\n"))
    }

    async fn run_scenario(&self, arguments: &Arguments) -> Result<String, String> {
        let run = self.run(arguments, Vec::new()).await?;
        let (name, summary) = run;
        let metrics = self.table(&name, "metrics").await?;
        Ok(json!({"run": name, "summary": summary, "metrics": last_values(&metrics)}).to_string())
    }

    async fn ask_agent(&self, arguments: &Arguments) -> Result<String, String> {
        let run = inside(&self.runs, text(arguments, "run"))?;
        if self.left.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|left| left <= 0.0) {
            return Err("the limit of all calls (--max-cost) is used up".into());
        }
        let agent = arguments.get("agent").map(Json::to_string).unwrap_or_default();
        let mut words = vec!["interview".into(), run.display().to_string(), text(arguments, "question").into()];
        words.extend(["--agent".into(), agent, "--json".into()]);
        if let Some(at) = arguments.get("at") {
            words.extend(["--at".into(), at.to_string()]);
        }
        let said = self.process(&words).await?;
        let line = said.lines().last().unwrap_or_default();
        let reply: Json =
            serde_json::from_str(line).map_err(|_| format!("the interview ended without an answer: {line}"))?;
        self.spend(reply["cost_usd"].as_f64().unwrap_or_default());
        match reply["outcome"].as_str() {
            Some("reply") => Ok(reply["answer"].as_str().unwrap_or_default().to_owned()),
            _ => Err(format!("the agent gave no answer: {}", reply["answer"].as_str().unwrap_or_default())),
        }
    }

    async fn ask_team(&self, arguments: &Arguments) -> Result<String, String> {
        // The question is a data set of one item.
        let folder = self.new_run("question")?;
        let file = folder.with_extension("jsonl");
        std::fs::create_dir_all(&self.runs).map_err(|error| error.to_string())?;
        let row = json!({"question": text(arguments, "question")}).to_string();
        std::fs::write(&file, row + "\n").map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
        let file = std::fs::canonicalize(&file).map_err(|error| error.to_string())?;
        let items = format!("items={{file: {}}}", json!(file.display().to_string()));
        let (name, summary) = self.run(arguments, vec!["-P".into(), items]).await?;
        let items = self.table(&name, "items").await?;
        let answer = items.first().and_then(|item| item["answer"].as_str()).map(str::to_owned);
        match answer {
            Some(answer) => Ok(json!({"answer": answer, "run": name, "cost_usd": summary["cost_usd"]}).to_string()),
            None => Err(format!("the team gave no answer; see the run {name}")),
        }
    }

    /// Runs a scenario with the arguments of a call; the name of the run and its summary.
    async fn run(&self, arguments: &Arguments, more: Vec<String>) -> Result<(String, Json), String> {
        let scenario = inside(&self.scenarios, text(arguments, "scenario"))?;
        let stem = scenario.file_stem().map_or_else(|| "run".into(), |stem| stem.to_string_lossy().into_owned());
        let folder = self.new_run(&stem)?;
        let mut words = vec!["run".into(), scenario.display().to_string()];
        words.extend(["--json".into(), "--out".into(), folder.display().to_string()]);
        for name in ["seed", "agents", "rounds"] {
            if let Some(value) = arguments.get(name) {
                words.extend([format!("--{name}"), value.to_string()]);
            }
        }
        for (path, value) in arguments.get("parameters").and_then(Json::as_object).into_iter().flatten() {
            words.extend(["-P".into(), format!("{path}={value}")]);
        }
        if let Some(model) = &self.model {
            words.extend(["--model".into(), model.clone()]);
        }
        let left = *self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = left {
            words.extend(["--max-cost".into(), left.to_string()]);
        }
        words.extend(more);
        let said = self.process(&words).await?;
        let line = said.lines().last().unwrap_or_default();
        let summary: Json =
            serde_json::from_str(line).map_err(|_| format!("the run ended without a summary: {line}"))?;
        self.spend(summary["cost_usd"].as_f64().unwrap_or_default());
        let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok((name, summary))
    }

    fn new_run(&self, name: &str) -> Result<PathBuf, String> {
        let all = 1..=1_000_000u32;
        let free = all.map(|n| self.runs.join(format!("{name}-{n}"))).find(|folder| !folder.exists());
        free.ok_or_else(|| format!("{} has too many runs", self.runs.display()))
    }

    /// The rows of a table of a run.
    async fn table(&self, run: &str, table: &str) -> Result<Vec<Json>, String> {
        let folder = inside(&self.runs, run)?.display().to_string();
        let words = ["export", &folder, "--table", table, "--format", "jsonl"].map(str::to_owned);
        let said = self.process(&words).await?;
        Ok(said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Takes the cost of a call off the limit of all calls.
    fn spend(&self, cost: f64) {
        if let Some(left) = self.left.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *left = (*left - cost).max(0.0);
        }
    }

    /// What this program prints with these arguments, or why it failed.
    async fn process(&self, words: &[String]) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let done = command.output().await.map_err(|error| format!("`polity {}` did not start: {error}", words[0]))?;
        let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().chars().take(TOLD).collect::<String>();
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
            false => Err(told(if done.stderr.is_empty() { &done.stdout } else { &done.stderr })),
        }
    }
}

fn text<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// A file or folder in `folder`, by a name that does not lead out of it.
fn inside(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let path = Path::new(name);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let whole = folder.join(path);
    let real = std::fs::canonicalize(&whole).ok().zip(std::fs::canonicalize(folder).ok());
    match real {
        Some((real, folder)) if plain && !name.is_empty() && real.starts_with(&folder) => Ok(whole),
        _ => Err(format!("there is no `{name}`")),
    }
}

/// The names of what a folder holds, sorted.
fn names(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut names: Vec<String> = entries
        .filter(|path| wanted(path))
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

/// The last value of every metric.
fn last_values(rows: &[Json]) -> Json {
    let mut last = serde_json::Map::new();
    for row in rows {
        if let Some(name) = row["name"].as_str() {
            last.insert(name.to_owned(), row["value"].clone());
        }
    }
    Json::Object(last)
}
