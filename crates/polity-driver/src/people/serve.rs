//! Questions and answers over HTTP, for a page or a program on this machine: `GET /questions`, `POST /questions/ID`.
//!
//! Other programs, and pages in a browser, can reach a port of this machine, too. So every request must carry the token of this process in
//! `Authorization: Bearer TOKEN`: a page of another origin can not send that header, and the token stands in no address. It keeps
//! others from reading and answering questions; it is no protection from who can read this user's files or processes.

use super::{LONGEST_ANSWER, Mailbox, Refused, Words};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value as Json, json};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Letters of a token that somebody chose, at least.
const SHORTEST: usize = 16;

/// A server that serves until it is dropped.
pub struct Serving {
    address: SocketAddr,
    token: String,
    /// Held for its thread.
    _runtime: Runtime,
}

struct Shared {
    mailbox: Mailbox,
    token: String,
}

impl Serving {
    /// Begins to serve the questions of a run. `token`: one of the caller's, else one is drawn.
    ///
    /// # Errors
    /// An address that is not of this machine alone, a port that is taken, a token that is short.
    pub fn start(mailbox: Mailbox, address: SocketAddr, token: Option<String>) -> Result<Self, String> {
        if !address.ip().is_loopback() {
            return Err(format!(
                "{address} can be reached from other machines, and nothing here is encrypted; listen on 127.0.0.1 and reach it through a \
                 tunnel (ssh -L)"
            ));
        }
        let token = match token {
            Some(token) if token.len() < SHORTEST || !token.chars().all(|c| c.is_ascii_graphic()) => {
                return Err(format!("a token has {SHORTEST} letters or more, without spaces"));
            }
            Some(token) => token,
            None => drawn()?,
        };
        let refused = |error: io::Error| format!("{address} can not be served: {error}; port 0 takes a free one");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(refused)?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let router = Router::new()
            .route("/questions", get(questions))
            .route("/questions/{id}", post(answer))
            .fallback(nowhere)
            .layer(DefaultBodyLimit::max(LONGEST_ANSWER))
            .with_state(Arc::new(Shared { mailbox, token: token.clone() }));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Ok(Serving { address, token, _runtime: runtime })
    }

    /// Where it listens, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What requests must carry.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

/// A token of 128 random bits.
fn drawn() -> Result<String, String> {
    let mut bytes = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| "the system gives no random numbers for a token".to_string())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Shared {
    /// Whether a request carries the token; looked at to the end, so that time does not tell how much of it is right.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().as_bytes();
        let own = self.token.as_bytes();
        given.len() == own.len() && given.iter().zip(own).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

fn reply(status: StatusCode, body: &Json) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}

fn error(status: StatusCode, why: impl std::fmt::Display) -> Response {
    reply(status, &json!({ "error": why.to_string() }))
}

fn stranger() -> Response {
    error(
        StatusCode::UNAUTHORIZED,
        "say who you are: Authorization: Bearer TOKEN, with the token that the run has printed",
    )
}

async fn nowhere() -> Response {
    error(StatusCode::NOT_FOUND, "there are GET /questions and POST /questions/ID")
}

async fn questions(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if !shared.admits(&headers) {
        return stranger();
    }
    match shared.mailbox.pending() {
        Ok(pending) => reply(StatusCode::OK, &json!(pending)),
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, why),
    }
}

/// The body is `{"answer": VALUE}`.
async fn answer(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !shared.admits(&headers) {
        return stranger();
    }
    let body: Json = serde_json::from_slice(&body).unwrap_or_default();
    let Some(value) = body.get("answer") else {
        return error(
            StatusCode::BAD_REQUEST,
            "send {\"answer\": VALUE}: a number, a text, or an object with the fields that are asked for",
        );
    };
    match shared.mailbox.answer(&id, &Words::Json(value), "HTTP") {
        Ok((question, _)) => reply(StatusCode::OK, &json!({ "id": question.id, "taken": value })),
        Err(why) => {
            let status = match why {
                Refused::Unknown(_) => StatusCode::NOT_FOUND,
                Refused::Already(_) => StatusCode::CONFLICT,
                Refused::Unfit { .. } => StatusCode::UNPROCESSABLE_ENTITY,
                Refused::Disk(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            error(status, why)
        }
    }
}
