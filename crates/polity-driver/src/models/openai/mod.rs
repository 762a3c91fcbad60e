//! Models behind the OpenAI wire: OpenAI itself, and every server and gateway that speaks it. See README.md.

mod read;
mod stream;
pub mod wire;

pub use read::{Completion, Received, outcome, read_completion};

use super::keys::{Secret, from_environment};
use super::{Answering, Exchange, Provider, Told, Trouble, prices};
use polity_kernel::ask::{Effect, Outcome, Request, Role, Usage, Want};
use polity_kernel::scenario::Price;
use read::{ANSWER, enveloped, read_embeddings, refuses_schema};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response, Url};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use wire::{ChatMessage, ChatRequest, EmbeddingRequest, NamedSchema, ResponseFormat, StreamOptions};

/// The address that is asked where no other is named.
pub const BASE_URL: &str = "https://api.openai.com/v1";
/// Bytes of an answer at most; what is longer is cut off while it is read. (A streamed answer takes 20 to 50 times its text.)
pub const LONGEST_ANSWER: usize = 10_000_000;
/// Tokens of a reply at most, unless the settings say otherwise. It is sent along: budgets set that much aside.
pub const LONGEST_REPLY: u64 = 8192;
/// How long an answer may take by default, in milliseconds.
const PATIENCE_MS: u64 = 300_000;
const CONNECT: Duration = Duration::from_secs(10);
/// Forms of replies that are kept as schemas.
const FORMS: usize = 16;

/// What every call of a model is sent besides the question. By default nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How freely the model samples.
    pub temperature: Option<f64>,
    /// Tokens of a reply at most, under the name that most servers know.
    pub max_tokens: Option<u64>,
    /// The same under the name that OpenAI's thinking models know; thinking counts.
    pub max_completion_tokens: Option<u64>,
    /// Seed of the model's sampling; the number of the sample is added to it. Few servers promise anything.
    pub seed: Option<u64>,
    /// Log-probabilities of the tokens, with so many alternatives each.
    pub logprobs: Option<u8>,
    /// Whether replies come in pieces, which keeps long ones from being cut by gateways.
    pub stream: bool,
    /// How long an answer may take, in milliseconds (five minutes).
    pub timeout_ms: Option<u64>,
}

/// Vectors of texts, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    /// One a text.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens.
    pub usage: wire::Usage,
}

/// The provider `openai`. Its calls are made in a tokio runtime with I/O and time; connections live as long as that.
pub struct OpenAi {
    settings: Settings,
    place: OnceLock<Result<Place, String>>,
    line: OnceLock<Result<Client, String>>,
    /// The last forms of replies, as schemas with or without bounds: most questions of a run have the same few.
    forms: Mutex<VecDeque<(Want, bool, Arc<Json>)>>,
    /// By model, what was told of its limits and is not passed on yet.
    told: Mutex<BTreeMap<String, Told>>,
    /// Models that turned out to take no schema.
    without_schema: Mutex<BTreeSet<String>>,
}

/// Whom to ask, and as whom.
struct Place {
    base: Url,
    /// As it may be shown: without name, password and query.
    shown: String,
    /// `None`: the base has a name and a password.
    authorization: Option<HeaderValue>,
    secret: Secret,
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.get().and_then(|place| place.as_ref().ok());
        let shown = place.map(|place| place.shown.as_str());
        f.debug_struct("OpenAi").field("base_url", &shown).field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Place {
    fn from_environment() -> Result<Self, String> {
        let base = from_environment("OPENAI_BASE_URL")?.filter(|base| !base.is_empty());
        Place::new(
            base.as_deref().unwrap_or(BASE_URL),
            Secret::new(from_environment("OPENAI_API_KEY")?.unwrap_or_default()),
        )
    }

    fn new(base: &str, key: Secret) -> Result<Self, String> {
        let no_address = || {
            // What stands before an @ may be a password.
            let shown = base.rsplit('@').next().unwrap_or_default().split('?').next().unwrap_or_default();
            format!(
                "OPENAI_BASE_URL is `{shown}`, which is no address: it begins with http:// or https:// and usually ends in /v1, for \
                 instance http://127.0.0.1:8000/v1"
            )
        };
        let base =
            Url::parse(base).ok().filter(|url| ["http", "https"].contains(&url.scheme())).ok_or_else(no_address)?;
        // The address may bring a name and a password, for a gateway: they are sent in place of a key.
        let (authorization, secret) = match (base.username().is_empty() && base.password().is_none(), key.expose()) {
            (false, _) => (None, Secret::new(base.password().unwrap_or_default())),
            (true, "") => {
                return Err("no key: set OPENAI_API_KEY in the environment or in a file `.env` here or above (a server that needs \
                            none takes any text), or use a simulated model, for instance `sim/medium`"
                    .into());
            }
            (true, text) => {
                let mut bearer = HeaderValue::from_str(&format!("Bearer {text}"))
                    .map_err(|_| "OPENAI_API_KEY holds characters that no key has; is there a line break in it?")?;
                bearer.set_sensitive(true);
                (Some(bearer), key)
            }
        };
        let mut shown = base.clone();
        // Neither can fail for an address with a host, which http and https have.
        let _ = shown.set_username("").and_then(|()| shown.set_password(None));
        shown.set_query(None);
        shown.set_fragment(None);
        Ok(Place { shown: shown.as_str().trim_end_matches('/').to_owned(), base, authorization, secret })
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// Whether it is OpenAI itself.
    fn is_openai(&self) -> bool {
        self.base.host_str() == Some("api.openai.com")
    }

    /// Whether it is this machine, which is not reached through a proxy.
    fn is_here(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }

    fn scrubbed(&self, trouble: Trouble) -> Trouble {
        let hidden = |text| self.secret.hidden_in(text);
        match trouble {
            Trouble::Retry { why, after_ms, charged } => Trouble::Retry { why: hidden(why), after_ms, charged },
            Trouble::Crowded { why, after_ms } => Trouble::Crowded { why: hidden(why), after_ms },
            Trouble::Never { why } => Trouble::Never { why: hidden(why) },
            Trouble::Fatal { why } => Trouble::Fatal { why: hidden(why) },
        }
    }
}

/// The connections to a place.
fn client(place: &Place, timeout: Duration) -> Result<Client, String> {
    // Fails only where a provider is there already, which then does.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("polity/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .timeout(timeout)
        .redirect(reqwest::redirect::Policy::none());
    let builder = if place.is_here() { builder.no_proxy() } else { builder };
    // Without TLS it must work where the system has no certificates, too: in a small container, for instance.
    let builder = if place.base.scheme() == "http" { builder.tls_certs_only([]) } else { builder };
    builder.build().map_err(|error| {
        format!(
            "no client for HTTPS can be made: {}. The certificates are the system's: install its package `ca-certificates`, or \
             set SSL_CERT_FILE",
            innermost(&error)
        )
    })
}

impl OpenAi {
    /// Whom OPENAI_BASE_URL and OPENAI_API_KEY name, in the environment or in a `.env`; they are read when first needed.
    #[must_use]
    pub fn standard() -> Self {
        OpenAi {
            settings: Settings::default(),
            place: OnceLock::new(),
            line: OnceLock::new(),
            forms: Mutex::default(),
            told: Mutex::default(),
            without_schema: Mutex::default(),
        }
    }

    /// A server of your own choice.
    pub fn new(base_url: &str, key: Secret) -> Result<Self, String> {
        let place = Place::new(base_url, key)?;
        Ok(OpenAi { place: OnceLock::from(Ok(place)), ..Self::standard() })
    }

    /// With settings for every call.
    #[must_use]
    pub fn with(self, settings: Settings) -> Self {
        OpenAi { settings, ..self }
    }

    fn place(&self) -> Result<&Place, String> {
        self.place.get_or_init(Place::from_environment).as_ref().map_err(Clone::clone)
    }

    /// Whom to ask, and the connections to them.
    fn line(&self) -> Result<(&Place, &Client), String> {
        let place = self.place()?;
        let line = self.line.get_or_init(|| client(place, self.timeout()));
        Ok((place, line.as_ref().map_err(Clone::clone)?))
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.settings.timeout_ms.unwrap_or(PATIENCE_MS))
    }

    /// A request of a run in the words of the wire.
    #[must_use]
    pub fn request(&self, effect: &Effect) -> ChatRequest {
        let asked = &effect.request;
        let message = |message: &polity_kernel::ask::Message| ChatMessage {
            role: match message.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "assistant",
            },
            content: Some(message.rendered()),
            ..ChatMessage::default()
        };
        let Settings { temperature, max_tokens, max_completion_tokens, seed, logprobs, stream, timeout_ms: _ } =
            self.settings;
        let own = asked.settings;
        let seed = own.seed.or(seed);
        ChatRequest {
            model: short(&asked.model).to_owned(),
            messages: asked.messages.iter().map(message).collect(),
            response_format: self.response_format(short(&asked.model), &asked.want),
            temperature: own.temperature.or(temperature),
            top_p: own.top_p,
            // The wire's integers are signed.
            seed: seed.map(|seed| seed.wrapping_add(u64::from(asked.sample)) & i64::MAX as u64),
            max_tokens,
            max_completion_tokens,
            logprobs: logprobs.map(|_| true),
            top_logprobs: logprobs.filter(|alternatives| *alternatives > 0),
            stream: stream.then_some(true),
            stream_options: stream.then_some(StreamOptions { include_usage: true }),
            ..ChatRequest::default()
        }
    }

    /// The form of a reply, as a strict schema; free text has none. OpenAI's fine-tuned models refuse bounds in it.
    fn response_format(&self, model: &str, want: &Want) -> Option<ResponseFormat> {
        let bounds = !model.starts_with("ft:");
        // What is behind it is as good after a panic as before.
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        let known = forms.iter().find(|(of, with, _)| of == want && *with == bounds).map(|(.., schema)| schema.clone());
        let schema = match known {
            Some(schema) => schema,
            None => {
                let schema = Arc::new(form(want, bounds)?);
                forms.truncate(FORMS - 1);
                forms.push_front((want.clone(), bounds, schema.clone()));
                schema
            }
        };
        Some(ResponseFormat { r#type: "json_schema", json_schema: NamedSchema { name: ANSWER, strict: true, schema } })
    }

    /// Asks for a completion, with all that the wire has: tools, log-probabilities. Without trouble there is a completion, or the
    /// outcome in its place.
    pub async fn complete(&self, request: &ChatRequest) -> Result<Result<Completion, Outcome>, Trouble> {
        let received = self.post(&["chat", "completions"], &request.model, request).await?;
        let place = self.place().map_err(|why| Trouble::Fatal { why })?;
        read_completion(&received).map_err(|trouble| place.scrubbed(trouble))
    }

    /// Asks for a completion in the form that is wanted: by a schema, or in words where the server takes none.
    async fn ask_in_form(&self, request: &ChatRequest, want: &Want) -> Result<Received, Trouble> {
        const PATH: &[&str] = &["chat", "completions"];
        let model = &request.model;
        if request.response_format.is_none() {
            return self.post(PATH, model, request).await;
        }
        if self.without_schema().contains(model) {
            return self.post(PATH, model, &in_words(request, want)).await;
        }
        let first = self.post(PATH, model, request).await?;
        let Some(names_it) = refuses_schema(&first) else {
            return Ok(first);
        };
        // What was refused was not answered, and costs nothing.
        let second = self.post(PATH, model, &in_words(request, want)).await?;
        let answered = (200..300).contains(&second.status);
        if answered {
            self.without_schema().insert(model.clone());
        }
        Ok(if answered || names_it { second } else { first })
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<String, Told>> {
        // Numbers alone are behind it: they are as good after a panic as before.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn without_schema(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // Names alone are behind it: they are as good after a panic as before.
        self.without_schema.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Vectors for texts.
    pub async fn embed(&self, model: &str, texts: &[String]) -> Result<Embeddings, Trouble> {
        let model = short(model);
        let request = EmbeddingRequest { model, input: texts, encoding_format: "float" };
        let received = self.post(&["embeddings"], model, &request).await?;
        let place = self.place().map_err(|why| Trouble::Fatal { why })?;
        read_embeddings(&received, texts.len()).map_err(|trouble| place.scrubbed(trouble))
    }

    /// Sends a request and reads all of what comes back; what it says is not looked at.
    async fn post(&self, path: &[&str], model: &str, body: &impl Serialize) -> Result<Received, Trouble> {
        let fatal = |why| Trouble::Fatal { why };
        let (place, line) = self.line().map_err(fatal)?;
        let body = serde_json::to_vec(body).map_err(|error| fatal(format!("the request is no JSON: {error}")))?;
        let mut request = line.post(place.url(path)).header(CONTENT_TYPE, "application/json").body(body);
        if let Some(authorization) = &place.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let received = async { receive(request.send().await?).await };
        let (status, headers, bytes) =
            received.await.map_err(|error| place.scrubbed(unreachable(&place.shown, self.timeout(), &error)))?;
        let told = read::told(&headers);
        if told != Told::default() {
            self.told().insert(model.to_owned(), told);
        }
        let mut received = Received::new(&place.shown, model, status, headers, bytes);
        received.body = place.secret.hidden_in(received.body);
        Ok(received)
    }
}

/// Status, headers and body; of a body that is too long not much more than may be.
async fn receive(mut response: Response) -> Result<(u16, reqwest::header::HeaderMap, Vec<u8>), reqwest::Error> {
    let mut body = Vec::new();
    while body.len() <= LONGEST_ANSWER
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok((response.status().as_u16(), std::mem::take(response.headers_mut()), body))
}

/// What to tell of a call that brought no answer. The error's own words may hold the address with all that is in it: only its cause is
/// used.
fn unreachable(shown: &str, timeout: Duration, error: &reqwest::Error) -> Trouble {
    let cause = innermost(error);
    let why = if error.is_connect() {
        // What TLS calls its errors says nothing to those who do not know it.
        let hint = if cause.contains("InvalidContentType") || cause.contains("wrong version number") {
            "The server there does not speak HTTPS: check OPENAI_BASE_URL, which may have to begin with http://"
        } else if cause.contains("lookup") || cause.contains("dns") {
            "No machine has that name: check OPENAI_BASE_URL for a slip, and the network"
        } else if shown.starts_with("https://") && cause.contains("ertificate") {
            "Its certificate is not trusted here: check OPENAI_BASE_URL, the clock of this machine, and its certificates (SSL_CERT_FILE)"
        } else {
            "Is a server running there? Check OPENAI_BASE_URL and the network"
        };
        format!("{shown} can not be reached: {cause}. {hint}")
    } else if error.is_timeout() {
        format!("{shown} gave no whole answer within {} s", timeout.as_secs_f64())
    } else {
        format!("{shown} broke off its answer: {cause}")
    };
    // Whoever has the question may answer it, and count it, though nobody hears that.
    Trouble::Retry { why, after_ms: None, charged: !error.is_connect() }
}

fn innermost(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn Error> = error.source();
    while let Some(deeper) = cause.and_then(Error::source) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| "no cause is known".into(), ToString::to_string)
}

/// The name of a model as its server knows it.
fn short(model: &str) -> &str {
    model.strip_prefix("openai/").unwrap_or(model)
}

/// The schema of a reply; free text has none.
fn form(want: &Want, bounds: bool) -> Option<Json> {
    let envelope = enveloped(want);
    let want = envelope.as_ref().unwrap_or(want);
    matches!(want, Want::Record(_)).then(|| want.to_schema(bounds))
}

/// The form of a reply in words, for servers that take no schema; free text has none.
fn form_in_words(want: &Want) -> Option<String> {
    let schema = form(want, true)?;
    Some(format!(
        "Reply with one JSON object that fits this JSON Schema, and with nothing else, neither words nor a fence around it:\n{schema}"
    ))
}

/// The same request with the form of its reply in words.
fn in_words(request: &ChatRequest, want: &Want) -> ChatRequest {
    let mut request = ChatRequest { response_format: None, ..request.clone() };
    let Some(words) = form_in_words(want) else {
        return request;
    };
    // Some servers refuse two messages of one speaker in a row.
    match request.messages.last_mut() {
        Some(ChatMessage { role: "user", content: Some(content), .. }) => {
            content.push_str("\n\n");
            content.push_str(&words);
        }
        _ => request.messages.push(ChatMessage { role: "user", content: Some(words), ..ChatMessage::default() }),
    }
    request
}

impl Provider for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    /// None by name: which there are only the server knows.
    fn models(&self) -> Vec<String> {
        Vec::new()
    }

    fn check(&self, model: &str) -> Result<(), String> {
        if short(model).trim().is_empty() {
            return Err(format!(
                "`{model}` names no model: write it as the server knows it, for instance `openai/gpt-4o-mini`"
            ));
        }
        self.line().map(|_| ()).map_err(|why| format!("`{model}`: {why}"))
    }

    fn most(&self, request: &Request) -> Usage {
        // A token has a byte at least. A schema is counted, and what a server puts around a message.
        let messages: usize = request.messages.iter().map(|message| message.rendered().len() + 32).sum();
        // In words a form is longer than as a schema.
        let form = form_in_words(&request.want).map_or(0, |form| form.len() + 32);
        Usage {
            tokens_in: (messages + form) as u64,
            tokens_out: request
                .settings
                .max_tokens
                .or(self.settings.max_tokens)
                .or(self.settings.max_completion_tokens)
                .unwrap_or(LONGEST_REPLY),
            ..Usage::default()
        }
    }

    /// The wire tells tokens only.
    fn tells_costs(&self) -> bool {
        false
    }

    /// OpenAI's own prices hold at OpenAI. What a server elsewhere asks for a model of the same name nobody here knows.
    fn list_price(&self, model: &str) -> Option<Price> {
        self.place().ok().filter(|place| place.is_openai()).and_then(|_| prices::listed(model))
    }

    fn address(&self) -> Option<String> {
        let place = self.place().ok()?;
        let settings = serde_json::to_string(&self.settings).ok()?;
        Some(match self.settings == Settings::default() {
            true => place.shown.clone(),
            false => format!("{} {settings}", place.shown),
        })
    }

    fn limits(&self, model: &str) -> Option<Told> {
        self.told().remove(short(model))
    }

    fn simulated(&self) -> bool {
        false
    }

    fn answer<'a>(&'a self, effect: &'a Effect, _: u64) -> Answering<'a> {
        Box::pin(async move {
            let began = Instant::now();
            let mut request = self.request(effect);
            let place = self.place().map_err(|why| Trouble::Fatal { why })?;
            let longest = effect.request.settings.max_tokens;
            if longest.is_some() || request.max_tokens.is_none() && request.max_completion_tokens.is_none() {
                (request.max_tokens, request.max_completion_tokens) = (None, None);
                // OpenAI's own newer models know the one name only, most other servers the other.
                match place.is_openai() {
                    true => request.max_completion_tokens = longest.or(Some(LONGEST_REPLY)),
                    false => request.max_tokens = longest.or(Some(LONGEST_REPLY)),
                }
            }
            let received = self.ask_in_form(&request, &effect.request.want).await?;
            let latency_ms = began.elapsed().as_secs_f64() * 1e3;
            let read = read_completion(&received).map_err(|trouble| place.scrubbed(trouble))?;
            let told = read.as_ref().ok().and_then(|completion| completion.usage);
            let usage = match told {
                Some(told) => Usage {
                    tokens_in: told.prompt_tokens,
                    tokens_out: told.completion_tokens,
                    tokens_cached: told.cached_in(),
                    tokens_thinking: told.reasoning_out(),
                    ..Usage::default()
                },
                // An answer of any kind was made, and counted there: what is not told is counted from above.
                None if (200..300).contains(&received.status) => self.most(&effect.request),
                None => Usage::default(),
            };
            let outcome = match read {
                Ok(completion) => outcome(&effect.request.want, &completion, &received.body),
                Err(outcome) => outcome,
            };
            Ok(Exchange { outcome, usage: Usage { latency_ms, ..usage } })
        })
    }
}
