//! A mock server for model providers. It serves their wires (`wires/`) on this machine, replies from a simulated model, and fails as
//! configured. Everything that calls a real endpoint can be tried with it without a key, a network or money.

mod answer;
mod batch_store;
mod batches;
mod fault;
mod response;
mod state;
mod wires;

pub use fault::{Fault, Faults};
pub use state::{OFFERS, Options, Stats};

use crate::bucket::Bucket;
use crate::models::sim::{DIMENSIONS, Sim, embedding};
use answer::{Asked, Forms, answer, hash};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use futures_util::stream;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use polity_kernel::ask::Constrain;
use response::{add, failed, invalid, json_response, now_seconds, spoil};
use serde_json::{Value as Json, json};
use state::{Books, Shared};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower_service::Service;
use wires::{Anthropic, Failure, Google, Head, Ollama, OpenAi, Responses, Wire};

/// Maximum bytes of a request.
const LONGEST_REQUEST: usize = 64_000_000;
/// Pause after a failed accept.
const FULL: Duration = Duration::from_secs(1);
/// Pause between bytes of a slow-drip answer.
const DRIP: Duration = Duration::from_millis(100);
/// Reported context length of a model.
const CONTEXT: u64 = 200_000;

/// A mock server that runs until dropped.
pub struct MockServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Keeps its threads alive.
    _runtime: Runtime,
}

impl MockServer {
    /// Starts the server. The error says what is wrong with the options or the port.
    pub fn start(options: Options) -> Result<Self, String> {
        let sim = Sim::standard();
        sim.model(&options.model)?;
        let port = options.port;
        let refused = |error: io::Error| {
            format!("cannot listen on port {port} of 127.0.0.1: {error}. If no port is given, a free one is used")
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(refused)?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, port))).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let now = Instant::now();
        let limits = [("requests", options.requests_per_minute), ("tokens", options.tokens_per_minute)];
        let limits =
            limits.into_iter().filter_map(|(name, limit)| Some((name, Bucket::full(f64::from(limit?), now)))).collect();
        let books = Mutex::new(Books { stats: Stats::default(), held: None, answered: BTreeSet::new(), limits });
        let shared = Arc::new(Shared { sim, forms: Forms::default(), options, books, batches: Mutex::default() });
        let router = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/models/{model}", get(model).post(generate))
            .route("/v1/embeddings", post(embeddings))
            .route("/v1beta/models", get(models))
            .route("/v1beta/models/{model}", get(model).post(generate))
            .route("/api/tags", get(ollama_models))
            .route("/api/show", post(ollama_model))
            .route("/stats", get(stats))
            .layer(DefaultBodyLimit::max(LONGEST_REQUEST))
            .merge(batches::routes())
            .fallback(nowhere)
            .with_state(shared.clone());
        runtime.spawn(accept(listener, shared.clone(), router));
        Ok(MockServer { address, shared, _runtime: runtime })
    }

    /// The value for OPENAI_BASE_URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/v1", self.root())
    }

    /// The value for the variables of other providers.
    #[must_use]
    pub fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was served so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.books().stats.clone()
    }
}

/// A call in progress. It ends with its answer, or when the client disconnects.
struct Call {
    shared: Arc<Shared>,
    wire: &'static dyn Wire,
    fault: Option<Fault>,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.shared.books().stats.in_flight -= 1;
    }
}

impl Call {
    fn begin(shared: Arc<Shared>, wire: &'static dyn Wire) -> Self {
        let mut books = shared.books();
        let fault = shared.options.faults.of(shared.options.seed, books.stats.calls);
        books.stats.calls += 1;
        books.stats.in_flight += 1;
        books.stats.most_in_flight = books.stats.most_in_flight.max(books.stats.in_flight);
        drop(books);
        Call { shared, wire, fault }
    }

    /// What is sent instead of an answer, if anything: a limit, or an early fault.
    async fn turned_away(&self, headers: &HeaderMap, tokens: f64) -> Option<Response> {
        if let Some(response) = self.limited(tokens) {
            return Some(response);
        }
        let fault = self.fault?;
        *self.shared.books().stats.faults.entry(fault.name()).or_default() += 1;
        let said = |failure, message: &str| Some(failed(self.wire, failure, message));
        let limited = "Rate limit reached for requests: a fault of the mock server";
        match fault {
            Fault::RateLimit => said(Failure::Limit("requests", Some(Duration::from_secs(1))), limited),
            Fault::RateLimitBare => said(Failure::Limit("requests", None), limited),
            Fault::Quota => {
                said(Failure::Quota, "You exceeded your current quota, please check your plan and billing details.")
            }
            Fault::Server => said(Failure::Server, "The server had an error while processing your request."),
            Fault::Key => {
                let key = headers.get(self.wire.key()).and_then(|key| key.to_str().ok()).unwrap_or_default();
                let message = format!("Incorrect API key provided: {}.", key.trim_start_matches("Bearer "));
                said(Failure::Key, &message)
            }
            Fault::Model => said(Failure::Model, "The model does not exist or you do not have access to it."),
            Fault::Hang => std::future::pending().await,
            _ => None,
        }
    }

    fn limited(&self, tokens: f64) -> Option<Response> {
        let mut books = self.shared.books();
        let now = Instant::now();
        if self.shared.options.at_once.is_some_and(|most| books.stats.in_flight > u64::from(most)) {
            books.stats.limited += 1;
            let message = "The server is overloaded. Please try again later.";
            return Some(failed(self.wire, Failure::Full, message));
        }
        let amounts = [("requests", 1.0), ("tokens", tokens)];
        let amount = |name: &str| amounts.iter().find(|(of, _)| *of == name).map_or(0.0, |(_, amount)| *amount);
        let waits = books.limits.iter_mut().filter_map(|(name, bucket)| Some((bucket.wait(amount(name), now)?, *name)));
        match waits.max() {
            None => {
                books.limits.iter_mut().for_each(|(name, bucket)| bucket.take(amount(name)));
                None
            }
            Some((wait, name)) => {
                books.stats.limited += 1;
                let message = format!("Rate limit reached for {name}. Please try again in {:.3}s.", wait.as_secs_f64());
                drop(books);
                Some(failed(self.wire, Failure::Limit(name, Some(wait)), &message))
            }
        }
    }

    /// Records that a model is needed.
    fn load(&self, model: &str) {
        let mut books = self.shared.books();
        if books.held.as_deref() != Some(model) {
            books.held = Some(model.to_owned());
            books.stats.loads += 1;
        }
    }

    /// Records the answer to a request whose bytes have the key `body`.
    fn settle(&self, body: u128, tokens_in: u64, tokens_out: u64, cost_usd: f64) {
        let mut books = self.shared.books();
        books.answer(body, tokens_in, tokens_out, cost_usd);
        // The request's own tokens have already been taken.
        books
            .limits
            .iter_mut()
            .filter(|(name, _)| *name == "tokens")
            .for_each(|(_, bucket)| bucket.take(tokens_out as f64));
    }

    /// Sends an answer, or what a fault makes of it. The call lasts until the last byte is sent.
    fn deliver(self, kind: &'static str, pieces: Vec<String>) -> Response {
        let whole = pieces.concat();
        let half = whole.floor_char_boundary(whole.len() / 2);
        let books = self.shared.books();
        let headers: Vec<_> = books.limits.iter().flat_map(|(name, bucket)| self.wire.limit(name, bucket)).collect();
        drop(books);
        let body = match self.fault {
            Some(Fault::WebPage) => {
                let page = "<!DOCTYPE html>\n<html><body><h1>502 Bad Gateway</h1></body></html>";
                return ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response();
            }
            Some(Fault::Truncated) => Body::from(whole[..half].to_owned()),
            Some(Fault::Cut) => in_pieces(self, vec![whole[..half].to_owned()], None, true),
            Some(Fault::Drip) => {
                let letters = whole.chars().map(String::from).collect();
                in_pieces(self, letters, Some(DRIP), false)
            }
            _ if pieces.len() > 1 => in_pieces(self, pieces, None, false),
            _ => Body::from(whole),
        };
        let mut response = ([(header::CONTENT_TYPE, kind)], body).into_response();
        add(&mut response, headers);
        response
    }
}

/// A body sent piece by piece; breaks the connection at its end if it is cut.
fn in_pieces(call: Call, pieces: Vec<String>, pause: Option<Duration>, cut: bool) -> Body {
    let state = (call, pieces.into_iter(), cut);
    Body::from_stream(stream::unfold(state, move |(call, mut pieces, cut)| async move {
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
        match pieces.next() {
            Some(piece) => Some((Ok(Bytes::from(piece)), (call, pieces, cut))),
            None if cut => {
                // Let the sent bytes arrive before the connection breaks.
                tokio::time::sleep(DRIP).await;
                let broken = io::Error::new(io::ErrorKind::ConnectionAborted, "cut: a fault of the mock server");
                Some((Err(broken), (call, pieces, false)))
            }
            None => None,
        }
    }))
}

/// Completion paths, except Google's, whose addresses name the model.
const COMPLETIONS: [(&str, &dyn Wire); 4] = [
    ("/v1/chat/completions", &OpenAi),
    ("/v1/messages", &Anthropic),
    ("/v1/responses", &Responses),
    ("/api/chat", &Ollama),
];

/// Serves all clients.
async fn accept(listener: TcpListener, shared: Arc<Shared>, router: Router) {
    loop {
        let Ok((tcp, _)) = listener.accept().await else {
            // Too many connections, for instance: wait for some to end.
            tokio::time::sleep(FULL).await;
            continue;
        };
        // Send small pieces at once. A socket that refuses this works anyway.
        let _ = tcp.set_nodelay(true);
        let (shared, router) = (shared.clone(), router.clone());
        let serve = service_fn(move |request| serve(request, shared.clone(), router.clone()));
        // A broken connection is the client's problem.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(tcp), serve));
    }
}

/// Serves a request: completions directly, since they are frequent, everything else by the router.
async fn serve(request: Request<Incoming>, shared: Arc<Shared>, mut router: Router) -> Result<Response, Infallible> {
    let wire = COMPLETIONS.iter().find(|(path, _)| *path == request.uri().path());
    let Some((_, wire)) = wire else { return router.call(request.map(Body::new)).await };
    if request.method() != Method::POST {
        return Ok((StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")]).into_response());
    }
    let (head, body) = request.into_parts();
    Ok(match axum::body::to_bytes(Body::new(body), LONGEST_REQUEST).await {
        Ok(body) => complete(*wire, "", shared, head.headers, body).await,
        Err(error) => (StatusCode::PAYLOAD_TOO_LARGE, error.to_string()).into_response(),
    })
}

fn parsed(body: &[u8]) -> Result<Json, String> {
    let request: Json =
        serde_json::from_slice(body).map_err(|error| format!("the request is not valid JSON: {error}"))?;
    match request["model"].as_str().is_some_and(|model| !model.is_empty()) {
        true => Ok(request),
        false => Err("you must provide a model parameter".into()),
    }
}

/// Tokens as simulated models count them: four characters each.
fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}

/// The models by their names here.
fn names(shared: &Shared) -> Vec<String> {
    use crate::models::Provider;
    shared.sim.models().iter().map(|name| name.strip_prefix("sim/").unwrap_or(name).to_owned()).collect()
}

/// Describes a model. Several providers share the address; the headers tell which one is meant.
fn told(shared: &Shared, headers: &HeaderMap, id: &str) -> Json {
    let offers = |way: Constrain| json!({"supported": shared.options.offers.contains(&way)});
    if headers.contains_key(Google.key()) {
        return json!({
            "name": format!("models/{id}"), "version": "1", "displayName": id, "inputTokenLimit": CONTEXT,
            "outputTokenLimit": CONTEXT, "supportedGenerationMethods": ["generateContent"],
        });
    }
    // Its clients can send a key in more than one way.
    if headers.contains_key("anthropic-version") {
        return json!({
            "type": "model", "id": id, "display_name": id, "created_at": "1970-01-01T00:00:00Z", "lifecycle": "active",
            "max_input_tokens": CONTEXT, "max_tokens": CONTEXT, "capabilities": {"structured_outputs": offers(Constrain::Schema)},
        });
    }
    json!({
        "id": id, "object": "model", "created": 0, "owned_by": "polity",
        "capabilities": {
            "tools": offers(Constrain::Tools), "structured_outputs": offers(Constrain::Schema), "choice": offers(Constrain::Choice),
            "grammar": offers(Constrain::Grammar), "logprobs": offers(Constrain::Logprobs),
        },
    })
}

async fn models(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let models: Vec<Json> = names(&shared).iter().map(|id| told(&shared, &headers, id)).collect();
    let body = match headers.contains_key(Google.key()) {
        true => json!({"models": models}),
        false => json!({"object": "list", "data": models, "has_more": false, "first_id": null, "last_id": null}),
    };
    json_response(200, &body)
}

/// Any name is accepted.
async fn model(State(shared): State<Arc<Shared>>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    json_response(200, &told(&shared, &headers, &id))
}

/// `MODEL:generateContent`.
async fn generate(
    State(shared): State<Arc<Shared>>,
    Path(what): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match what.rsplit_once(':') {
        Some((model, "generateContent")) => complete(&Google, model, shared, headers, body).await,
        _ => {
            failed(&Google, Failure::NotFound, &format!("{what}: the mock server supports only MODEL:generateContent"))
        }
    }
}

async fn ollama_models(State(shared): State<Arc<Shared>>) -> Response {
    let model = |id: &String| json!({"name": id, "model": id, "modified_at": "2026-01-01T00:00:00Z", "size": 0, "digest": "", "details": {}});
    json_response(200, &json!({"models": names(&shared).iter().map(model).collect::<Vec<_>>()}))
}

async fn ollama_model() -> Response {
    let info = json!({"general.architecture": "polity", "polity.context_length": CONTEXT});
    json_response(200, &json!({"details": {"family": "polity"}, "model_info": info, "capabilities": ["completion"]}))
}

async fn stats(State(shared): State<Arc<Shared>>) -> Response {
    let stats = shared.books().stats.clone();
    json_response(200, &json!(stats))
}

async fn nowhere(uri: axum::http::Uri) -> Response {
    let message = format!(
        "Unknown request URL: {}. The mock server has /v1/models, /v1/chat/completions, /v1/embeddings, /v1/responses, /v1/messages, \
         /v1/files, /v1/batches, /v1/messages/batches, /v1beta/models, /api/chat, /api/tags, /api/show and /stats",
        uri.path()
    );
    failed(&OpenAi, Failure::NotFound, &message)
}

/// Answers a completion request; `model` is the name in the address, if any.
async fn complete(
    wire: &'static dyn Wire,
    model: &str,
    shared: Arc<Shared>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut asked = match wire.asked(model, &body) {
        Ok(asked) => asked,
        Err(why) => return invalid(wire, &why),
    };
    let call = Call::begin(shared.clone(), wire);
    if let Some(response) = call.turned_away(&headers, asked.letters.div_ceil(4) as f64).await {
        return response;
    }
    if call.fault == Some(Fault::NoSchema) && asked.in_form {
        return failed(wire, Failure::Schema, "");
    }
    if let Some((failure, why)) = shared.not_offered(&asked) {
        return failed(wire, failure, &why);
    }
    call.load(&asked.model);
    tokio::time::sleep(shared.options.latency).await;
    let (model, seed, key) = (shared.model_for(&asked.model), shared.options.seed, hash(&body));
    let mut said = match answer(&shared.sim, &shared.forms, &model, seed, key, &mut asked) {
        Ok(said) => said,
        Err(why) => return invalid(wire, &why),
    };
    call.settle(key, said.usage.tokens_in, said.usage.tokens_out, said.usage.cost_usd);
    let structured = !said.calls.is_empty() || asked.in_form;
    spoil(&mut said, call.fault, structured);
    let created = now_seconds();
    let Asked { model, logprobs, include_usage, .. } = asked;
    let head = Head { key, created, model: model.into_owned(), logprobs, include_usage };
    let in_pieces = if asked.stream { wire.pieces(&head, &said) } else { None };
    let (kind, pieces) = match (call.fault, in_pieces) {
        // JSON, but not a completion: for free text there is no schema to violate.
        (Some(Fault::Schema), streamed) if !structured => {
            let kind = streamed.map_or("application/json", |(kind, _)| kind);
            (kind, vec![json!({"object": "something.else", "result": "ok"}).to_string()])
        }
        (_, Some(streamed)) => streamed,
        (_, None) => ("application/json", vec![wire.whole(&head, &said)]),
    };
    call.deliver(kind, pieces)
}

async fn embeddings(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let request = match parsed(&body) {
        Ok(request) => request,
        Err(why) => return invalid(&OpenAi, &why),
    };
    // A text, tokens, or a list of either.
    let texts: Vec<String> = match &request["input"] {
        Json::Array(items) if items.iter().all(|item| item.is_string() || item.is_array()) => {
            items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
        }
        Json::String(text) => vec![text.clone()],
        Json::Array(tokens) => vec![json!(tokens).to_string()],
        _ => return invalid(&OpenAi, "`input` must be a text or a list of texts"),
    };
    let dimensions = request["dimensions"].as_u64().map_or(DIMENSIONS, |d| d as usize);
    if texts.is_empty() || !(1..=10_000).contains(&dimensions) {
        return invalid(&OpenAi, "`input` must not be empty, and `dimensions` must lie in 1 to 10,000");
    }
    let call = Call::begin(shared.clone(), &OpenAi);
    let count: u64 = texts.iter().map(|text| tokens(text)).sum();
    if let Some(response) = call.turned_away(&headers, count as f64).await {
        return response;
    }
    tokio::time::sleep(shared.options.latency).await;
    let name = request["model"].as_str().unwrap_or_default();
    let price = shared.sim.model(&shared.model_for(name)).map_or(0.0, |model| model.price.input);
    call.settle(hash(&body), count, 0, count as f64 * price / 1e6);
    let as_bytes = request["encoding_format"] == "base64";
    let item = |(index, text): (usize, &String)| {
        let vector = embedding(text, dimensions);
        let embedding = match as_bytes {
            true => {
                let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
                json!(base64::prelude::BASE64_STANDARD.encode(bytes))
            }
            false => json!(vector),
        };
        json!({"object": "embedding", "index": index, "embedding": embedding})
    };
    let data: Vec<Json> = texts.iter().enumerate().map(item).collect();
    let whole = match call.fault {
        Some(Fault::Schema | Fault::Empty | Fault::Null | Fault::Refusal | Fault::Length) => {
            json!({"object": "something.else", "result": "ok"})
        }
        _ => json!({
            "object": "list", "data": data, "model": name, "usage": {"prompt_tokens": count, "total_tokens": count},
        }),
    };
    call.deliver("application/json", vec![whole.to_string()])
}
