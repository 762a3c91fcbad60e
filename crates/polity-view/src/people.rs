//! Steering an active run: orders, questions to people, interviews.

use super::App;
use super::problem::{Answer, Problem};
use axum::http::StatusCode;
use polity_driver::control;
use polity_driver::drive::{Stop, Unwatched};
use polity_driver::people::{self, Refused, Words};
use polity_driver::run::Engine;
use polity_driver::source::{Notes, Outside};
use polity_kernel::ask::ResponseFormat;
use polity_kernel::event::Order;
use polity_kernel::scenario::Limits;
use polity_models::models::Providers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// Calls in flight of a run that is continued here, as of the command.
const CONNECTIONS: usize = 100;

/// What a run is to do.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ordered {
    /// `pause`, `resume`, `stop`, `step`, `limits`, `message` or `set`.
    pub order: String,
    /// Of `step`: how many rounds.
    pub rounds: Option<u32>,
    /// Of `set`: the key of the scenario, for instance `world.fraction`.
    pub path: Option<String>,
    /// Of `set`: its value from the next round on.
    pub value: Option<Json>,
    /// Of `limits`: US dollars in total.
    pub max_cost: Option<f64>,
    /// Of `limits`: calls in total.
    pub max_calls: Option<u64>,
    /// Of `limits`: calls in flight.
    pub max_connections: Option<u32>,
    /// Of `message`: the agent in whose name it is sent.
    pub from: Option<u32>,
    /// Of `message`: its readers; without it, the neighbours of the sender.
    pub to: Option<Vec<u32>>,
    /// Of `message`: its text.
    pub text: Option<String>,
}

/// A run's reply.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Replied {
    pub words: String,
    pub refused: bool,
}

pub(crate) fn order(app: &App, folder: &Path, ordered: &Ordered) -> Answer<Replied> {
    let order = match ordered.order.as_str() {
        "pause" => Order::Pause,
        "resume" => Order::Resume,
        "stop" => Order::Stop,
        "step" => Order::Step { rounds: ordered.rounds.unwrap_or(1) },
        "set" => {
            let (Some(path), Some(value)) = (&ordered.path, &ordered.value) else {
                return Err(Problem::bad("`set` needs `path` and `value`, for instance world.fraction and 0.5"));
            };
            Order::Change { edits: vec![format!("{path}={value}")] }
        }
        "message" => {
            let (Some(from), Some(text)) = (ordered.from, &ordered.text) else {
                return Err(Problem::bad("`message` needs `from`, the number of an agent, and `text`"));
            };
            Order::message(from, ordered.to.as_deref(), text)
        }
        "limits" => {
            let limits = Limits { cost_usd: ordered.max_cost, calls: ordered.max_calls, ..Limits::default() };
            limits.check().map_err(Problem::bad)?;
            Order::Set { connections: ordered.max_connections, limits }
        }
        other => {
            let words = format!("there is no order `{other}`; use pause, resume, stop, step, limits, message or set");
            return Err(Problem::bad(words));
        }
    };
    if !control::under_way(app.disk.as_ref(), folder) {
        return Err(Problem::new(StatusCode::CONFLICT, control::not_under_way(app.disk.as_ref(), folder)));
    }
    let said = control::order(app.disk.clone(), folder, order)?;
    Ok(Replied { words: said.words, refused: said.refused })
}

/// Continues a stopped run in this process. The viewer waits for it when it ends.
pub(crate) fn go(app: &Arc<App>, folder: &Path) -> Answer<Replied> {
    if control::under_way(app.disk.as_ref(), folder) {
        return Err(Problem::new(StatusCode::CONFLICT, format!("{} is under way already", folder.display())));
    }
    let (stop, folder) = (Stop::default(), folder.to_path_buf());
    let (shared, asked, notes) = (app.clone(), stop.clone(), Notes::default());
    let work = std::thread::spawn(move || {
        let providers = Arc::new(Providers::standard());
        let outside = Outside { notes, ..Outside::default() };
        let (disk, connections) = (shared.disk.clone(), CONNECTIONS);
        let engine = Engine { disk, providers, connections, outside, stop: asked, ..Engine::new(&shared.registry) };
        // What goes wrong is in the run's folder, or will be told when it is resumed again.
        drop(engine.resume(&folder, &mut Unwatched));
    });
    app.resumed.lock().unwrap_or_else(PoisonError::into_inner).push((stop, work));
    Ok(Replied { words: "the run continues in the viewer's process".into(), refused: false })
}

/// Questions that wait for a person.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Questions {
    pub questions: Vec<Json>,
}

fn form(format: &ResponseFormat) -> Json {
    match format {
        ResponseFormat::Number { low, high, whole } => {
            json!({ "kind": "number", "low": low, "high": high, "whole": whole })
        }
        ResponseFormat::Choice(options) => json!({ "kind": "choice", "options": options }),
        ResponseFormat::Record(fields) => {
            let fields: Vec<Json> = fields.iter().map(|(name, of)| json!({ "name": name, "form": form(of) })).collect();
            json!({ "kind": "record", "fields": fields })
        }
        ResponseFormat::List { of, least, most } => {
            json!({ "kind": "list", "of": form(of), "least": least, "most": most })
        }
        ResponseFormat::Text | ResponseFormat::Calls(_) | ResponseFormat::Vector => json!({ "kind": "text" }),
    }
}

pub(crate) fn questions(app: &App, folder: &Path) -> Answer<Questions> {
    let mailbox = match people::of_run(app.disk.clone(), folder) {
        Ok(mailbox) => mailbox,
        // An ended run asks nobody.
        Err(polity_store::DriveError::Input(_)) => return Ok(Questions { questions: Vec::new() }),
        Err(error) => return Err(error.into()),
    };
    let pending =
        mailbox.pending().map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let shown = pending.into_iter().map(|question| {
        let agent = question.id.split('-').nth(2).and_then(|agent| agent.parse::<u32>().ok());
        let format = question.format().map_or_else(|_| json!({ "kind": "text" }), |format| form(&format));
        let until = question.timeout_ms.map(|timeout| question.put_ms + timeout);
        json!({
            "id": question.id, "agent": agent, "who": question.who, "text": question.prompt, "form": format,
            "form_words": question.form, "default": question.default, "asked_ms": question.put_ms, "until_ms": until,
        })
    });
    Ok(Questions { questions: shown.collect() })
}

/// A person's answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    /// A number, a text, or an object with the requested fields.
    pub answer: Json,
}

pub(crate) fn answer(app: &App, folder: &Path, id: &str, given: &Given) -> Answer<Json> {
    let mailbox = people::of_run(app.disk.clone(), folder)?;
    match mailbox.answer(id, &Words::Json(&given.answer), "the viewer") {
        Ok((question, _)) => Ok(json!({ "id": question.id, "taken": given.answer })),
        Err(why) => {
            let status = match why {
                Refused::Unknown(_) => StatusCode::NOT_FOUND,
                Refused::Already(_) => StatusCode::CONFLICT,
                Refused::Unfit { .. } => StatusCode::UNPROCESSABLE_ENTITY,
                Refused::Disk(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            Err(Problem::new(status, why.to_string()))
        }
    }
}

/// A question to an agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Interview {
    pub agent: u32,
    /// Before which round; without it, after the last complete one.
    #[serde(default)]
    pub at: Option<u32>,
    pub question: String,
}

pub(crate) fn interview(app: &App, folder: &Path, asked: &Interview) -> Answer<Json> {
    if asked.question.trim().is_empty() {
        return Err(Problem::bad("the question is empty; write the question that the agent is to answer"));
    }
    let providers = Arc::new(Providers::standard());
    let engine = Engine { disk: app.disk.clone(), providers, ..Engine::new(&app.registry) };
    let said = engine.interview(folder, &[asked.agent], asked.at, &asked.question, &mut Unwatched)?;
    let said = said.into_iter().next().ok_or_else(|| Problem::bad("the agent did not answer"))?;
    let usage = &said.answer.usage;
    Ok(json!({
        "answer": said.answer.outcome.words(), "outcome": said.answer.outcome.name(), "round": said.round,
        "model": said.answer.request.model.to_string(), "simulated": said.simulated, "cost_usd": usage.cost_usd,
    }))
}
