//! Questions and answers over HTTP, for a page or program on this machine: `GET /questions`, `POST /questions/ID`.
//!
//! Other programs and browser pages can also reach a local port. So every request must carry this process's token in `Authorization:
//! Bearer TOKEN`: a page of another origin cannot send that header, and the token is in no address. It keeps others from reading and
//! answering questions, but not those who can read this user's files or processes.
//!
//! Nor can they exhaust a run: the token is checked before a body is read, a connection is one request with a timeout, and the number of
//! connections is limited. Beyond it, the oldest is closed.

use super::{LONGEST_ANSWER, Mailbox, Refused, Words};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::{Value as Json, json};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Minimum characters of a token chosen by the caller.
const SHORTEST: usize = 16;

/// Maximum concurrent connections.
const MOST: usize = 64;
/// Timeouts of a connection: for the head of its request, and in total.
const HEAD: Duration = Duration::from_secs(10);
const WHOLE: Duration = Duration::from_secs(30);
/// Timeout of a connection while others wait for its place.
const CROWDED: Duration = Duration::from_secs(1);
/// Pause after a failed accept, such as when no more files can be opened.
const PAUSE: Duration = Duration::from_millis(200);

/// A server that runs until dropped.
pub struct Serving {
    address: SocketAddr,
    token: String,
    /// Keeps its thread alive.
    _runtime: Runtime,
}

struct Shared {
    mailbox: Mailbox,
    token: String,
}

impl Serving {
    /// Starts to serve the questions of a run. `token`: the caller's, else a random one.
    ///
    /// # Errors
    /// A non-local address, a port in use, a short token.
    pub fn start(mailbox: Mailbox, address: SocketAddr, token: Option<String>) -> Result<Self, String> {
        if !address.ip().is_loopback() {
            return Err(format!(
                "{address} can be reached from other machines, but the connection is not encrypted; listen on \
                 127.0.0.1 and reach it through a tunnel (ssh -L)"
            ));
        }
        let token = match token {
            Some(token) if token.len() < SHORTEST || !token.chars().all(|c| c.is_ascii_graphic()) => {
                return Err(format!("a token needs at least {SHORTEST} ASCII characters, without spaces"));
            }
            Some(token) => token,
            None => drawn()?,
        };
        let refused = |error: io::Error| format!("cannot listen on {address}: {error}; port 0 chooses a free port");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(refused)?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let shared = Arc::new(Shared { mailbox, token: token.clone() });
        let router = Router::new()
            .route("/questions", get(questions))
            .route("/questions/{id}", post(answer))
            .fallback(nowhere)
            .layer(DefaultBodyLimit::max(LONGEST_ANSWER))
            .layer(from_fn_with_state(shared.clone(), admitted))
            .with_state(shared);
        runtime.spawn(serve(listener, router));
        Ok(Serving { address, token, _runtime: runtime })
    }

    /// Its address, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The token that requests must carry.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

/// Serves forever, whatever happens.
async fn serve(listener: TcpListener, router: Router) {
    let mut tasks = JoinSet::new();
    // Active connections, oldest first.
    let mut open: VecDeque<(Instant, AbortHandle)> = VecDeque::new();
    loop {
        while tasks.try_join_next().is_some() {}
        open.retain(|(_, task)| !task.is_finished());
        if let Some((began, oldest)) = open.front().filter(|_| open.len() >= MOST) {
            tokio::select! {
                () = sleep_until(*began + CROWDED) => {
                    oldest.abort();
                    tasks.join_next().await;
                }
                _ = tasks.join_next() => {}
            }
            continue;
        }
        match listener.accept().await {
            Ok((tcp, _)) => open.push_back((Instant::now(), tasks.spawn(exchange(tcp, router.clone())))),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// One request and its answer.
async fn exchange(tcp: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(tcp), TowerToHyperService::new(router));
    // A client that breaks off or is too slow has had its time.
    let _ = timeout(WHOLE, connection).await;
}

/// A token of 128 random bits.
fn drawn() -> Result<String, String> {
    let mut bytes = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| "the system provides no random numbers for a token".to_string())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Shared {
    /// Whether a request carries the token; compared in constant time.
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
        "a token is required: send `Authorization: Bearer TOKEN` with the token that the run printed",
    )
}

/// Admits requests with the token, before anything else of them is read.
async fn admitted(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    match shared.admits(request.headers()) {
        true => next.run(request).await,
        false => stranger(),
    }
}

async fn nowhere() -> Response {
    error(StatusCode::NOT_FOUND, "there is no such path; use GET /questions or POST /questions/ID")
}

async fn questions(State(shared): State<Arc<Shared>>) -> Response {
    match shared.mailbox.pending() {
        Ok(pending) => reply(StatusCode::OK, &json!(pending)),
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, why),
    }
}

/// The body is `{"answer": VALUE}`.
async fn answer(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Bytes) -> Response {
    let body: Json = serde_json::from_slice(&body).unwrap_or_default();
    let Some(value) = body.get("answer") else {
        return error(
            StatusCode::BAD_REQUEST,
            "send {\"answer\": VALUE}: a number, a text, or an object with the requested fields",
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use polity_store::disk::SimDisk;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn serving() -> Serving {
        let mailbox = Mailbox::of(Arc::new(SimDisk::default()), std::path::Path::new("run"));
        Serving::start(mailbox, "127.0.0.1:0".parse().unwrap(), None).unwrap()
    }

    /// A connection that has sent this text; reads from it time out.
    fn sent(serving: &Serving, text: &str) -> TcpStream {
        let mut tcp = TcpStream::connect(serving.address).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        tcp.write_all(text.as_bytes()).unwrap();
        tcp
    }

    fn answer(mut tcp: TcpStream) -> String {
        let mut text = String::new();
        tcp.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn who_says_nothing_makes_room_for_who_does() {
        let serving = serving();
        let silent: Vec<TcpStream> = (0..200)
            .map(|i| sent(&serving, if i % 2 == 0 { "" } else { "GET /questions HTTP/1.1\r\nAutho" }))
            .collect();
        let head = format!("GET /questions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", serving.token());
        let heard = answer(sent(&serving, &head));
        assert!(heard.starts_with("HTTP/1.1 200 OK") && heard.ends_with("[]\n"), "{heard}");
        // The oldest are closed; none may stay as long as it likes.
        for (i, mut tcp) in silent.into_iter().enumerate() {
            let ended = tcp.read(&mut [0; 1]);
            let late = ended.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
            assert!(!late && !matches!(ended, Ok(1..) if i < 100), "{i}: {ended:?}");
        }
    }

    #[test]
    fn without_the_token_no_body_is_read() {
        let serving = serving();
        // The body never arrives.
        let head = "POST /questions/0-0-0-0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\nContent-Length: 900000\r\n\r\n";
        let heard = answer(sent(&serving, head));
        assert!(heard.starts_with("HTTP/1.1 401"), "{heard}");
        let heard = answer(sent(&serving, "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert!(heard.starts_with("HTTP/1.1 401"), "{heard}");
    }
}
