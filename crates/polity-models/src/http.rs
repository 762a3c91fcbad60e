//! The HTTP client, for models and for the receiver of traces. A client has one server address and keeps its connections.
//!
//! Proxies come from the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, also in lower case); local addresses use none.
//! Certificates are the system's. Redirects are not followed, since a key must not follow them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::FutureExt;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::builderstates::WantsProtocols1;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder as ConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::legacy::{Client as Pool, Error as AskError};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower_service::Service;
use url::Url;

/// Timeout for making a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Idle time after which the system probes whether the peer is alive.
const KEEPALIVE: Duration = Duration::from_secs(15);
const PRODUCT: &str = concat!("polity/", env!("CARGO_PKG_VERSION"));

type Boxed = Box<dyn Error + Send + Sync>;

/// Why no complete answer arrived.
#[derive(Debug)]
pub enum Failure {
    /// No connection: the server never saw the request. Holds the cause.
    Unreached(String),
    /// It timed out.
    Late,
    /// It broke off. Holds the cause.
    Broken(String),
}

/// A complete answer.
pub struct Answered {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Vec<u8>,
}

/// See the module docs.
pub struct Client {
    pool: Pool<Dial, Full<Bytes>>,
    /// Headers of every request.
    headers: HeaderMap,
    /// Timeout of a request, including its answer.
    pub patience: Duration,
}

impl Client {
    /// Creates a client for an address (http or https), with headers for every request. A user name and password in the address are sent.
    ///
    /// # Errors
    /// What is wrong with the system's certificates, or with the proxy that the environment names.
    pub fn new(base: &Url, own: &HeaderMap, patience: Duration) -> Result<Client, String> {
        let proxies = (!is_here(base)).then(Matcher::from_env);
        Client::through(base, own, patience, proxies.as_ref())
    }

    /// The same, but the name in the address is not looked up: connections go to these IP addresses, which the caller has checked. No proxy
    /// is used, since it would look the name up again.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn at(base: &Url, to: &[IpAddr], own: &HeaderMap, patience: Duration) -> Result<Client, String> {
        let secure = base.scheme() == "https";
        let hop = Hop::Checked(connector(HttpConnector::new_with_resolver(Fixed(to.into()))));
        Client::over(hop, secure, headers(base, own), patience)
    }

    fn through(base: &Url, own: &HeaderMap, patience: Duration, proxies: Option<&Matcher>) -> Result<Client, String> {
        let uri = uri(base)?;
        let secure = base.scheme() == "https";
        let http = connector(HttpConnector::new());
        let mut headers = headers(base, own);
        let hop = match proxies.and_then(|proxies| proxies.intercept(&uri)) {
            None => Hop::Straight(http),
            Some(proxy) => {
                let to = spoken_to(&proxy)?;
                let http = tls(to.scheme_str() == Some("https"))?.enable_http1().wrap_connector(http);
                match (secure, proxy.basic_auth()) {
                    (true, None) => Hop::Tunnel(Tunnel::new(to, http)),
                    (true, Some(value)) => Hop::Tunnel(Tunnel::new(to, http).with_auth(value.clone())),
                    (false, value) => {
                        headers.extend(value.map(|value| (PROXY_AUTHORIZATION, value.clone())));
                        Hop::Forward(http, to)
                    }
                }
            }
        };
        Client::over(hop, secure, headers, patience)
    }

    fn over(hop: Hop, secure: bool, headers: HeaderMap, patience: Duration) -> Result<Client, String> {
        let dial = Dial(tls(secure)?.enable_http1().wrap_connector(hop));
        let pool = Pool::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(dial);
        Ok(Client { pool, headers, patience })
    }

    /// Builds a request.
    pub fn request(&self, method: Method, uri: Uri, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body.into()));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        request.headers_mut().clone_from(&self.headers);
        request
    }

    /// Sends a request. The returned body is still to be read; the caller must limit how long it waits.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        self.pool.request(request).await.map_err(|error: AskError| match error.is_connect() {
            true => Failure::Unreached(innermost(&error)),
            false => Failure::Broken(innermost(&error)),
        })
    }

    /// Sends a request and reads the answer; stops soon after `most` bytes of its body.
    pub async fn ask(
        &self,
        request: Request<Full<Bytes>>,
        patience: Duration,
        most: usize,
    ) -> Result<Answered, Failure> {
        within(patience, async { whole(self.send(request).await?, most).await }).await
    }
}

/// Whether an address is on this machine.
pub fn is_here(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Runs a future with a timeout.
pub fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> impl Future<Output = Result<T, Failure>> {
    tokio::time::timeout(patience, work).map(|done| done.unwrap_or(Err(Failure::Late)))
}

/// The next piece of an answer's body.
pub async fn piece(body: &mut Incoming) -> Result<Option<Bytes>, Failure> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::Broken(innermost(&error)))?;
        // The other frames are trailers.
        if let Ok(piece) = frame.into_data() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

/// Reads an answer; stops soon after `most` bytes of its body.
pub async fn whole(answer: Response<Incoming>, most: usize) -> Result<Answered, Failure> {
    let (head, mut from) = answer.into_parts();
    let mut body = Vec::new();
    while body.len() <= most
        && let Some(piece) = piece(&mut from).await?
    {
        body.extend_from_slice(&piece);
    }
    Ok(Answered { status: head.status.as_u16(), headers: head.headers, body })
}

/// The address to request, without user name, password and fragment.
pub fn uri(url: &Url) -> Result<Uri, String> {
    let mut url = url.clone();
    // Neither fails for an address with a host, which http and https have.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url.set_fragment(None);
    url.as_str().parse().map_err(|error| format!("the address is not valid: {error}"))
}

/// The headers of every request.
fn headers(base: &Url, own: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(PRODUCT));
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    // Without it the server may use any encoding (RFC 9110, 12.5.3), and none is read here.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(value) = said_in(base) {
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in own {
        headers.insert(name, value.clone());
    }
    headers
}

fn connector<R>(mut http: HttpConnector<R>) -> HttpConnector<R> {
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_keepalive(Some(KEEPALIVE));
    http
}

/// TLS, for addresses that need it. For others, it must work without system certificates, such as in a small container.
fn tls(asked_for: bool) -> Result<ConnectorBuilder<WantsProtocols1>, String> {
    // Fails only if a provider is already installed, which will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = ConnectorBuilder::new();
    let builder = match asked_for {
        true => builder.try_with_platform_verifier().map_err(|error| {
            format!(
                "cannot make an HTTPS client: {error}. It uses the certificates of the system: install the package \
                 `ca-certificates`, or set SSL_CERT_FILE"
            )
        })?,
        false => builder.with_tls_config(
            rustls::ClientConfig::builder()
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth(),
        ),
    };
    Ok(builder.https_or_http())
}

/// The user name and password of an address, as they are sent (RFC 7617).
fn said_in(base: &Url) -> Option<HeaderValue> {
    if base.username().is_empty() && base.password().is_none() {
        return None;
    }
    let plain = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let mut both = plain(base.username());
    both.push(b':');
    both.extend(plain(base.password().unwrap_or_default()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(both))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The address of a proxy, if it is supported.
fn spoken_to(proxy: &Intercept) -> Result<Uri, String> {
    let to = proxy.uri();
    match to.scheme_str() {
        Some("http" | "https") => Ok(to.clone()),
        other => Err(format!(
            "the environment names a proxy with the scheme `{}`, but only `http://` and `https://` are supported: set \
             HTTP_PROXY, HTTPS_PROXY or ALL_PROXY to such a proxy, or list in NO_PROXY the hosts that need none",
            other.unwrap_or_default()
        )),
    }
}

/// The innermost cause; outer messages may contain the full address.
fn innermost(error: &dyn Error) -> String {
    let inner = std::iter::successors(error.source(), |&error| error.source()).last();
    inner.map_or_else(|| "unknown cause".into(), ToString::to_string)
}

/// Makes connections with a timeout.
#[derive(Clone)]
struct Dial(HttpsConnector<Hop>);

impl Service<Uri> for Dial {
    type Response = MaybeHttpsStream<Wire>;
    type Error = Boxed;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Boxed>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Boxed>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = self.0.call(to);
        Box::pin(async move {
            tokio::time::timeout(CONNECT, connecting).await.unwrap_or_else(|_| {
                let why = format!("no connection within {} s", CONNECT.as_secs());
                Err(io::Error::new(io::ErrorKind::TimedOut, why).into())
            })
        })
    }
}

/// The route to a server, below TLS.
#[derive(Clone)]
enum Hop {
    Straight(HttpConnector),
    /// To addresses that are known already.
    Checked(HttpConnector<Fixed>),
    /// Through a proxy that tunnels bytes (RFC 9110, 9.3.6).
    Tunnel(Tunnel<HttpsConnector<HttpConnector>>),
    /// Through a proxy that receives the full address (RFC 9112, 3.2.2).
    Forward(HttpsConnector<HttpConnector>, Uri),
}

impl Service<Uri> for Hop {
    type Response = Wire;
    type Error = Boxed;
    type Future = Pin<Box<dyn Future<Output = Result<Wire, Boxed>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Boxed>> {
        match self {
            Hop::Straight(http) => http.poll_ready(cx).map_err(Into::into),
            Hop::Checked(http) => http.poll_ready(cx).map_err(Into::into),
            Hop::Forward(http, _) => http.poll_ready(cx),
            Hop::Tunnel(tunnel) => tunnel.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        match self {
            Hop::Straight(http) => {
                let connecting = http.call(to);
                Box::pin(async move { Ok(Wire { near: MaybeHttpsStream::Http(connecting.await?), forwarded: false }) })
            }
            Hop::Checked(http) => {
                let connecting = http.call(to);
                Box::pin(async move { Ok(Wire { near: MaybeHttpsStream::Http(connecting.await?), forwarded: false }) })
            }
            Hop::Tunnel(tunnel) => {
                let connecting = tunnel.call(to);
                Box::pin(async move { Ok(Wire { near: connecting.await?, forwarded: false }) })
            }
            Hop::Forward(http, proxy) => {
                let connecting = http.call(proxy.clone());
                Box::pin(async move { Ok(Wire { near: connecting.await?, forwarded: true }) })
            }
        }
    }
}

/// Looks no name up: every name has these addresses.
#[derive(Clone)]
struct Fixed(std::sync::Arc<[IpAddr]>);

impl Service<Name> for Fixed {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        // The connector puts the port of the request in.
        let to: Vec<SocketAddr> = self.0.iter().map(|&address| SocketAddr::new(address, 0)).collect();
        std::future::ready(Ok(to.into_iter()))
    }
}

/// A connection, and whether requests on it use full addresses.
struct Wire {
    near: MaybeHttpsStream<TokioIo<TcpStream>>,
    forwarded: bool,
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        self.near.connected().proxy(self.forwarded)
    }
}

impl Read for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.near).poll_read(cx, into)
    }
}

impl Write for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.near).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.near).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.near).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.near.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.near).poll_write_vectored(cx, bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{BufRead, BufReader, Write as _};
    use std::net::TcpListener;

    /// A server for one request; returns its address and what it received.
    fn server(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = std::thread::spawn(move || {
            let (mut tcp, _) = listener.accept().unwrap();
            let lines = BufReader::new(tcp.try_clone().unwrap()).lines().map(Result::unwrap);
            let heard: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            tcp.write_all(answer.as_bytes()).unwrap();
            heard.join("\n").to_lowercase()
        });
        (address, heard)
    }

    fn ask(base: &str, proxies: Option<&Matcher>, most: usize) -> Result<Answered, Failure> {
        ask_within(Duration::from_secs(60), base, proxies, most)
    }

    fn ask_within(patience: Duration, base: &str, proxies: Option<&Matcher>, most: usize) -> Result<Answered, Failure> {
        let base = Url::parse(base).unwrap();
        let own = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let client = Client::through(&base, &own, patience, proxies).unwrap();
        let request = client.request(Method::GET, uri(&base).unwrap(), Bytes::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(client.ask(request, patience, most))
    }

    #[test]
    fn a_name_and_a_password_are_sent_and_are_no_part_of_the_address() {
        let (address, heard) =
            server("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 3\r\n\r\nabc");
        let answered = ask(&format!("http://me:p%40ss@{address}/v1/x?a=b#c"), None, 100).unwrap();
        assert_eq!((answered.status, answered.body.as_slice()), (302, b"abc".as_slice()));
        let heard = heard.join().unwrap();
        assert!(heard.starts_with("get /v1/x?a=b http/1.1\n"), "{heard}");
        let basic = format!("authorization: basic {}", BASE64_STANDARD.encode("me:p@ss")).to_lowercase();
        for line in [basic.as_str(), "user-agent: polity/", "accept: application/json", &format!("host: {address}")] {
            assert!(heard.contains(line), "{line} in {heard}");
        }
        assert!(!heard.contains("*/*"), "{heard}");
    }

    #[test]
    fn proxies_are_told_the_whole_address_or_let_bytes_through() {
        let proxies = |address: &str| Matcher::builder().all(format!("http://user:word@{address}")).build();
        let basic = format!("proxy-authorization: basic {}", BASE64_STANDARD.encode("user:word")).to_lowercase();
        let (address, heard) = server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        assert_eq!(ask("http://models.invalid/v1/x", Some(&proxies(&address)), 100).unwrap().body, b"ok");
        let heard = heard.join().unwrap();
        assert!(heard.starts_with("get http://models.invalid/v1/x http/1.1\n") && heard.contains(&basic), "{heard}");
        let (address, heard) = server("HTTP/1.1 403 Forbidden\r\n\r\n");
        let refused = ask("https://models.invalid/v1/x", Some(&proxies(&address)), 100);
        assert!(matches!(refused, Err(Failure::Unreached(_))));
        let heard = heard.join().unwrap();
        assert!(heard.starts_with("connect models.invalid:443 http/1.1\n") && heard.contains(&basic), "{heard}");
        let base = Url::parse("https://models.invalid").unwrap();
        let other = Matcher::builder().all("socks5://127.0.0.1:1").build();
        let why = Client::through(&base, &HeaderMap::new(), CONNECT, Some(&other)).err().unwrap();
        assert!(why.contains("socks5") && why.contains("NO_PROXY"), "{why}");
    }

    #[test]
    fn what_is_too_long_or_too_late_or_not_there_is_told_apart() {
        let (address, _) = server("HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\nabcdefghij");
        assert!(ask(&format!("http://{address}"), None, 5).unwrap().body.len() > 5);
        // The declared length exceeds the body.
        let (address, _) = server("HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\nabcdefghij");
        assert!(matches!(ask(&format!("http://{address}"), None, 100), Err(Failure::Broken(_))));
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let late = ask_within(Duration::from_millis(300), &format!("http://{address}"), None, 5);
        assert!(matches!(late, Err(Failure::Late)));
        drop(silent);
        let Err(Failure::Unreached(why)) = ask(&format!("http://{address}"), None, 5) else {
            panic!("somebody is there")
        };
        assert!(why.contains("refused"), "{why}");
    }
}
