//! The connection to a server: how it is made, made again, and asked.

use super::child::{self, Group};
use super::definition::{Definition, clean};
use super::host::{Host, Sampler};
use super::http::{Http, HttpError, headers};
use super::{Limits, Params};
use crate::limited::Watch;
use polity_kernel::tool::ToolOutput;
use polity_models::http::{Client, uri};
use polity_models::models::ProviderError;
use rmcp::model::{PaginatedRequestParams, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::{RoleClient, transport::DynamicTransportError};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use url::Url;

/// Requests in a row without an answer in time, after which a server is started again.
const SILENT: u32 = 3;

/// Definitions by the names that the server gives.
pub(super) type Listed = BTreeMap<String, Definition>;

/// A connection that is or was alive.
pub(super) struct Connection {
    pub service: RunningService<RoleClient, Host>,
    /// The tools when it was made.
    pub listed: Listed,
    pub has_resources: bool,
    pub has_prompts: bool,
    pub revision: String,
    watch: Arc<Watch>,
    changed: Arc<AtomicBool>,
    /// The tools when they were last listed, and when that was.
    latest: Mutex<(Listed, Instant)>,
    child: Mutex<Option<Group>>,
    /// How many requests in a row had no answer in time.
    silent: AtomicU32,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The service closes stdin, and a server ends then.
        if let Some(group) = self.child.get_mut().take() {
            group.leave();
        }
    }
}

/// Why there is no result.
pub(super) enum Failure {
    /// The model can go on.
    Told(String),
    /// The server did not get the request.
    Unreached(String),
}

impl Failure {
    pub fn into_output(self) -> Result<ToolOutput, ProviderError> {
        match self {
            Failure::Told(why) => Ok(ToolOutput::error(why)),
            Failure::Unreached(why) => Err(ProviderError::Retry { why, after_ms: None, charged: false }),
        }
    }

    pub fn into_error(self) -> ProviderError {
        match self {
            Failure::Told(why) => ProviderError::Never { why },
            Failure::Unreached(why) => ProviderError::Retry { why, after_ms: None, charged: false },
        }
    }
}

/// Where a server is.
enum Place {
    Command(Vec<String>, BTreeMap<String, String>),
    Url(Arc<Client>, Url),
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// How often the server was started again without an answer to a call.
    restarts: u32,
}

/// See the module docs.
pub(super) struct Link {
    name: String,
    place: Place,
    limits: Limits,
    sampler: Option<Arc<dyn Sampler>>,
    state: Mutex<State>,
}

impl Link {
    pub fn new(params: Params, limits: Limits, sampler: Option<Arc<dyn Sampler>>) -> Result<Self, String> {
        let (name, place) = match (params.command, params.url) {
            (Some(command), None) if params.headers.is_empty() => {
                (command.join(" "), Place::Command(command, params.env))
            }
            (None, Some(url)) if params.env.is_empty() => {
                let url = Url::parse(&url).map_err(|error| format!("`url` is no URL: {error}"))?;
                if !matches!(url.scheme(), "http" | "https") {
                    return Err("`url` must begin with http:// or https://".into());
                }
                let client = Client::new(&url, &headers(&params.headers)?, limits.call)?;
                (uri(&url)?.to_string(), Place::Url(Arc::new(client), url))
            }
            (Some(_), None) => return Err("`headers` belong to `url`; a program gets `env`".into()),
            (None, Some(_)) => return Err("`env` belongs to `command`; a URL gets `headers`".into()),
            _ => return Err("an MCP server needs either `command` or `url`".into()),
        };
        let name = format!("`{}`", clean(&name, 100));
        Ok(Link { name, place, limits, sampler, state: Mutex::default() })
    }

    /// The server, for errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Makes the first connection.
    pub async fn first(&self) -> Result<Arc<Connection>, String> {
        let connection = Arc::new(self.connect().await?);
        self.state.lock().await.connection = Some(connection.clone());
        Ok(connection)
    }

    /// The connection; made again if it is gone.
    pub async fn connection(&self) -> Result<Arc<Connection>, ProviderError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection
            && !connection.service.is_transport_closed()
        {
            return Ok(connection.clone());
        }
        state.connection = None;
        if state.restarts >= self.limits.restarts {
            let why = format!(
                "the MCP server {} was started again {} times and is gone again: no more calls are made to it",
                self.name, state.restarts
            );
            return Err(ProviderError::Never { why });
        }
        state.restarts += 1;
        match self.connect().await {
            Ok(connection) => Ok(state.connection.insert(Arc::new(connection)).clone()),
            Err(why) => Err(ProviderError::Retry { why, after_ms: None, charged: false }),
        }
    }

    async fn connect(&self) -> Result<Connection, String> {
        let watch = Watch::new(self.limits.message, self.limits.traffic);
        let changed = Arc::new(AtomicBool::new(false));
        let samples = self.limits.samples;
        let host = Host { sampler: self.sampler.clone(), changed: changed.clone(), watch: watch.clone(), samples };
        let (start, deadline) = (self.limits.start, tokio::time::Instant::now() + self.limits.start);
        let told = |why: String| format!("the MCP server {} cannot be used: {why}.{}", self.name, watch.words());
        let late = |_| told(format!("it was not ready within {} s", start.as_secs_f64()));
        let begin = async |lifecycle: ClientLifecycleMode| {
            let host = host.clone();
            let (begun, group) = match &self.place {
                Place::Command(command, env) => {
                    let (pipes, child) = child::start(command, env, &watch).map_err(|why| (Gone::Said(why), None))?;
                    (host.serve_with_lifecycle(pipes, lifecycle).await, Some(child))
                }
                Place::Url(client, url) => {
                    let transport = self.http(client, url, &watch).map_err(|why| (Gone::Said(why), None))?;
                    (host.serve_with_lifecycle(transport, lifecycle).await, None)
                }
            };
            match begun {
                Ok(service) => Ok((service, group)),
                Err(error) => Err((unready(&error), group)),
            }
        };
        let begun = async {
            match begin(auto()).await {
                // It knows nothing of the newest revision, and says so in a way of its own.
                Err((Gone::Odd(_), _)) => begin(ClientLifecycleMode::Initialize).await,
                begun => begun,
            }
        };
        let (service, mut group) = match tokio::time::timeout_at(deadline, begun).await.map_err(late)? {
            Ok(begun) => begun,
            Err((gone, mut group)) => return Err(told(self.why_not(&watch, group.as_mut(), gone).await)),
        };
        service.set_response_cache_config(rmcp::service::ClientCacheConfig::disabled()).await;
        let info = service.peer_info();
        let has = |what: fn(&rmcp::model::ServerCapabilities) -> bool| {
            info.as_ref().is_some_and(|info| what(&info.capabilities))
        };
        let has_tools = has(|can| can.tools.is_some());
        let listing = async { if has_tools { self.list(&service).await } else { Ok(Listed::new()) } };
        let listed = match tokio::time::timeout_at(deadline, listing).await.map_err(late)? {
            Ok(listed) => listed,
            Err(error) => {
                let why = self.why_not(&watch, group.as_mut(), error).await;
                return Err(told(why));
            }
        };
        Ok(Connection {
            has_resources: has(|can| can.resources.is_some()),
            has_prompts: has(|can| can.prompts.is_some()),
            revision: info.map(|info| info.protocol_version.to_string()).unwrap_or_default(),
            latest: Mutex::new((listed.clone(), Instant::now())),
            child: Mutex::new(group),
            silent: AtomicU32::new(0),
            service,
            listed,
            watch,
            changed,
        })
    }

    /// The transport of a server with a URL.
    fn http(
        &self,
        client: &Arc<Client>,
        url: &Url,
        watch: &Arc<Watch>,
    ) -> Result<StreamableHttpClientTransport<Http>, String> {
        let address = uri(url)?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(address.to_string());
        config.max_sse_event_size = self.limits.message;
        config.max_json_response_size = self.limits.message;
        config.max_error_response_size = 1000;
        let http = Http::new(client.clone(), address, watch.clone());
        Ok(StreamableHttpClientTransport::with_client(http, config))
    }

    /// Why a connection ended: what was found to be wrong, how the server ended, or the given reason.
    async fn why_not(&self, watch: &Watch, group: Option<&mut Group>, why: Gone) -> String {
        match (watch.why_cut(), why, group) {
            (Some(cut), ..) => cut,
            (None, Gone::Closed, Some(group)) => group.ended().await,
            (None, Gone::Closed, None) => "it closed the connection".into(),
            (None, Gone::Said(why) | Gone::Odd(why), _) => why,
            (None, Gone::Unreached(why), _) => format!("there is no connection to it: {why}"),
        }
    }

    /// Lists the tools.
    async fn list(&self, service: &RunningService<RoleClient, Host>) -> Result<Listed, Gone> {
        let (mut listed, mut size) = (Listed::new(), 0);
        let mut pages = self.pages();
        while let Some(page) = pages.next() {
            let result = service.list_tools(page).await.map_err(|error| unasked(&error))?;
            for tool in &result.tools {
                let definition = Definition::new(tool);
                size += definition.size();
                let name = definition.name.clone();
                if size > self.limits.definitions {
                    let most = self.limits.definitions;
                    return Err(Gone::Said(format!("the definitions of its tools have more than {most} bytes")));
                }
                if listed.insert(name.clone(), definition).is_some() {
                    return Err(Gone::Said(format!("it lists the tool `{}` twice", clean(&name, 100))));
                }
            }
            pages.came(result.tools.len(), result.next_cursor)?;
        }
        Ok(listed)
    }

    /// The pages of a list.
    pub fn pages(&self) -> Pages {
        Pages { most: self.limits.entries, entries: 0, pages: 0, next: Some(None) }
    }

    /// The tools as the server lists them, asked for anew if they may have changed.
    pub async fn listed(&self, connection: &Arc<Connection>) -> Result<Listed, Failure> {
        let mut latest = connection.latest.lock().await;
        let said = connection.changed.swap(false, Ordering::Relaxed);
        if !said && latest.1.elapsed() < self.limits.compare {
            return Ok(latest.0.clone());
        }
        let asked = self.answered(connection, self.limits.start, self.list(&connection.service)).await;
        match asked {
            Ok(listed) => {
                *latest = (listed.clone(), Instant::now());
                Ok(listed)
            }
            Err(failure) => {
                connection.changed.store(true, Ordering::Relaxed);
                Err(failure)
            }
        }
    }

    /// Asks the server, with a time limit.
    pub async fn ask<T>(
        &self,
        connection: &Arc<Connection>,
        patience: Duration,
        asked: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, Failure> {
        self.answered(connection, patience, async { asked.await.map_err(|error| unasked(&error)) }).await
    }

    /// As [`Link::ask`], for several requests that may fail otherwise.
    pub async fn answered<T>(
        &self,
        connection: &Arc<Connection>,
        patience: Duration,
        asked: impl Future<Output = Result<T, Gone>>,
    ) -> Result<T, Failure> {
        connection.watch.begin();
        let gone = match tokio::time::timeout(patience, asked).await {
            Ok(Ok(answer)) => {
                self.alive(connection).await;
                return Ok(answer);
            }
            Ok(Err(Gone::Unreached(why))) => {
                return Err(Failure::Unreached(format!("the MCP server {} is not reached: {why}", self.name)));
            }
            Ok(Err(Gone::Said(why) | Gone::Odd(why))) if connection.watch.why_cut().is_none() => {
                self.alive(connection).await;
                return Err(Failure::Told(clean(&why, 4000)));
            }
            Ok(Err(gone)) => gone,
            Err(_) => {
                if connection.silent.fetch_add(1, Ordering::Relaxed) + 1 >= SILENT {
                    self.leave(connection).await;
                }
                let seconds = patience.as_secs_f64();
                let why = format!("no answer within {seconds} s: the call was given up, and may have had an effect");
                return Err(Failure::Told(why));
            }
        };
        let why = self.why_not(&connection.watch, connection.child.lock().await.as_mut(), gone).await;
        self.leave(connection).await;
        let words = connection.watch.words();
        Err(Failure::Told(format!("the server is gone: {why}. The call may have had an effect.{words}")))
    }

    /// The server answered.
    async fn alive(&self, connection: &Connection) {
        connection.silent.store(0, Ordering::Relaxed);
        self.state.lock().await.restarts = 0;
    }

    /// Lets a connection go, so that the next call makes another one.
    async fn leave(&self, connection: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|known| Arc::ptr_eq(known, connection)) {
            state.connection = None;
        }
    }
}

/// The pages of a list, as they are asked for.
pub(super) struct Pages {
    most: usize,
    entries: usize,
    pages: usize,
    next: Option<Option<PaginatedRequestParams>>,
}

impl Pages {
    /// What to ask for the next page; nothing after the last one.
    pub fn next(&mut self) -> Option<Option<PaginatedRequestParams>> {
        self.next.take()
    }

    /// A page came with some entries, and the cursor of the next page.
    pub fn came(&mut self, entries: usize, cursor: Option<String>) -> Result<(), Gone> {
        (self.entries, self.pages) = (self.entries + entries, self.pages + 1);
        if self.entries > self.most || self.pages > self.most {
            return Err(Gone::Said(format!("it lists more than {} entries or pages", self.most)));
        }
        self.next = cursor.map(|cursor| Some(PaginatedRequestParams::default().with_cursor(Some(cursor))));
        Ok(())
    }
}

/// Why an answer did not come.
pub(super) enum Gone {
    Closed,
    Unreached(String),
    Said(String),
    /// An answer of another kind.
    Odd(String),
}

fn auto() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// Why a connection could not be made.
fn unready(error: &ClientInitializeError) -> Gone {
    match error {
        ClientInitializeError::ConnectionClosed(_) => Gone::Closed,
        ClientInitializeError::TransportError { error, .. } => unsent(error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => unready(fallback),
        ClientInitializeError::JsonRpcError(said) => Gone::Said(format!("it refuses: {}", clean(&said.message, 500))),
        ClientInitializeError::ExpectedInitResult(_) => {
            Gone::Odd("it answers the first request with something else".into())
        }
        // A slow server answers the first request after it was given up, which spoils the next one.
        ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            Gone::Odd("it answers the first request too late".into())
        }
        error => Gone::Said(clean(&error.to_string(), 500)),
    }
}

/// Why a request was not answered.
pub(super) fn unasked(error: &ServiceError) -> Gone {
    match error {
        ServiceError::TransportClosed => Gone::Closed,
        ServiceError::TransportSend(error) => unsent(error),
        ServiceError::McpError(said) => Gone::Said(format!("the server refuses: {}", said.message)),
        ServiceError::UnexpectedResponse => Gone::Odd("the server answered with a message of another kind".into()),
        error => Gone::Said(error.to_string()),
    }
}

/// Why a request could not be sent.
fn unsent(error: &DynamicTransportError) -> Gone {
    match error.error.downcast_ref::<StreamableHttpError<HttpError>>() {
        Some(StreamableHttpError::Client(HttpError::Unreached(why))) => Gone::Unreached(why.clone()),
        Some(StreamableHttpError::AuthRequired(_)) => {
            Gone::Said("it asks for a login: give a token in `headers`, such as `Authorization: Bearer TOKEN`".into())
        }
        Some(StreamableHttpError::TransportChannelClosed) | None => Gone::Closed,
        Some(error) => Gone::Said(clean(&error.to_string(), 500)),
    }
}
