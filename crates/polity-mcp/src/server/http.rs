//! Streamable HTTP: who may ask, and how much.

use super::{Handler, REQUEST, Served};
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Minimum characters of a token.
const SHORTEST: usize = 16;

/// Where and to whom tools are served.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// The address to listen at; port 0 takes a free one. Without a token, it must be an address of this machine only.
    pub bind: SocketAddr,
    /// The origins of pages that may ask, such as `https://app.example:443`, besides the server's own. A request of a page of another
    /// origin is refused; programs that are no browsers send no origin.
    pub origins: Vec<String>,
    /// The names that requests may give this server in `Host`, besides `localhost`, `127.0.0.1`, `[::1]` and the address that it listens
    /// at.
    pub hosts: Vec<String>,
    /// What every request must give as `Authorization: Bearer TOKEN`, if anything: at least 16 ASCII characters.
    pub token: Option<String>,
}

impl Default for Http {
    fn default() -> Self {
        Http { bind: (Ipv4Addr::LOCALHOST, 0).into(), origins: Vec::new(), hosts: Vec::new(), token: None }
    }
}

/// Tools that are served over HTTP, until it is dropped.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    task: JoinHandle<()>,
    /// Ends the sessions when it is dropped.
    _stop: tokio_util::sync::DropGuard,
}

impl Serving {
    /// The URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Waits until it ends, which it does not by itself.
    pub async fn wait(mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves tools over HTTP at the path `/mcp`.
///
/// # Errors
/// The address cannot be listened at or is open to others without a token, or the schema of a tool is not valid.
pub async fn serve_http(served: impl Served, http: Http) -> Result<Serving, String> {
    serve_handler(Handler::new(served)?, http).await
}

/// Serves a handler of the crate `rmcp` as [`serve_http`] serves tools, for a server that offers more than tools.
///
/// # Errors
/// The address cannot be listened at or is open to others without a token.
pub async fn serve_handler(handler: impl ServerHandler + Clone, http: Http) -> Result<Serving, String> {
    if let Some(token) = &http.token
        && (token.len() < SHORTEST || !token.chars().all(|c| c.is_ascii_graphic()))
    {
        return Err(format!("a token needs at least {SHORTEST} ASCII characters, without spaces"));
    }
    if !http.bind.ip().is_loopback() && http.token.is_none() {
        return Err(format!(
            "{} can be reached from other machines: give a token, and serve it behind a proxy that encrypts; or listen at 127.0.0.1",
            http.bind
        ));
    }
    let listener = TcpListener::bind(http.bind).await;
    let listener = listener.map_err(|error| format!("{} cannot be listened at: {error}", http.bind))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].iter().map(|&host| host.into()).collect();
    hosts.push(address.to_string());
    hosts.extend(http.hosts);
    // A page that this machine serves at the same address is no stranger.
    let mut origins =
        ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:{}", address.port())).to_vec();
    origins.extend(http.origins);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(REQUEST);
    let stop = config.cancellation_token.clone().drop_guard();
    let service =
        StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(LocalSessionManager::default()), config);
    let token: Arc<Option<String>> = Arc::new(http.token);
    let routes = Router::new().route_service("/mcp", service).layer(from_fn_with_state(token, guard));
    let task = tokio::spawn(async move {
        // It ends only when it is aborted.
        let _ = axum::serve(listener, routes).await;
    });
    Ok(Serving { address, task, _stop: stop })
}

/// Refuses a request without the token.
async fn guard(State(token): State<Arc<Option<String>>>, request: Request, next: Next) -> Response {
    if let Some(token) = token.as_ref() {
        let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|given| given.strip_prefix("Bearer ")).unwrap_or_default();
        if !same(given.as_bytes(), token.as_bytes()) {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            let words = "a token is required: send `Authorization: Bearer TOKEN`";
            return (StatusCode::UNAUTHORIZED, challenge, words).into_response();
        }
    }
    next.run(request).await
}

/// Compares in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
