//! A team behind the OpenAI wire: clients of the OpenAI API ask it as they ask a model.
//!
//! This side only translates. A question goes through a channel to the threads that own the team, with a place for its answer; so a
//! slow team blocks no other request.

mod failure;
mod reply;
mod request;

pub(crate) use failure::Failure;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use polity_kernel::ask::Settings;
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use tokio::sync::oneshot;

/// The path below which clients ask.
pub(crate) const PREFIX: &str = "/v1/";

/// A team that is offered as a model.
#[derive(Clone, Debug)]
pub struct Team {
    /// The name of the model.
    pub name: String,
    /// Takes questions to the team. A question that finds it full is refused.
    pub questions: SyncSender<Question>,
}

/// A question to the team, and where its answer goes. If it is dropped, the client is told that the server is ending.
#[derive(Debug)]
pub struct Question {
    /// Everything that the members are to know.
    pub text: String,
    /// The seed of the run.
    pub seed: Option<u64>,
    /// Sampling settings.
    pub settings: Settings,
    answer: oneshot::Sender<Result<Answered, Unanswered>>,
}

impl Question {
    /// Whether the client has gone.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    /// Hands over the answer.
    pub fn settle(self, answer: Result<Answered, Unanswered>) {
        // A client that has gone needs none; the run is recorded all the same.
        drop(self.answer.send(answer));
    }
}

/// The team's answer.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The name of its run.
    pub id: String,
    /// The answer.
    pub text: String,
    /// The run's digest.
    pub digest: String,
    /// Model calls of the team.
    pub calls: u64,
    /// Tokens of their requests.
    pub tokens_in: u64,
    /// Tokens of their replies.
    pub tokens_out: u64,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

/// Why there is no answer. The texts say what happened.
#[derive(Clone, Debug)]
pub enum Unanswered {
    /// The budget is used up.
    Budget(String),
    /// The server is ending.
    Ending(String),
    /// The members came to no answer.
    Silent(String),
    /// A model cannot be reached.
    Unreachable(String),
    /// An error.
    Failed(String),
}

/// The routes of a team.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(team: Team) -> Router<S> {
    Router::new()
        .route("/v1/chat/completions", post(completions))
        .route("/v1/models", get(models))
        .route("/v1/models/{*name}", get(model))
        .route("/v1/{*other}", any(nowhere))
        .with_state(Arc::new(team))
}

async fn completions(State(team): State<Arc<Team>>, body: Result<Bytes, BytesRejection>) -> Result<Response, Failure> {
    let body = body.map_err(|refused| Failure::of_body(refused.status(), refused.body_text()))?;
    let request = request::read(&body)?;
    check_name(&team, &request.model)?;
    let (answer, answered) = oneshot::channel();
    let question = Question { text: request.text, seed: request.seed, settings: request.settings, answer };
    team.questions.try_send(question).map_err(|refused| match refused {
        TrySendError::Full(_) => Failure::busy(),
        TrySendError::Disconnected(_) => Failure::ending(),
    })?;
    let answered = answered.await.map_err(|_| Failure::ending())??;
    Ok(reply::reply(&team.name, &answered, request.delivery))
}

async fn models(State(team): State<Arc<Team>>) -> Response {
    reply::json_response(&json!({ "object": "list", "data": [reply::model(&team.name)] }))
}

async fn model(State(team): State<Arc<Team>>, Path(name): Path<String>) -> Result<Response, Failure> {
    check_name(&team, &name)?;
    Ok(reply::json_response(&reply::model(&team.name)))
}

fn check_name(team: &Team, name: &str) -> Result<(), Failure> {
    match name == team.name {
        true => Ok(()),
        false => Err(Failure::no_model(name, &team.name)),
    }
}

async fn nowhere() -> Response {
    Failure::no_path().into_response()
}
