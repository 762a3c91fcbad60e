//! The connection to a provider: its address, its key, and bounded transfers in both directions.

use super::home::{Home, LONGEST_ANSWER};
use super::keys::{Secret, Stands, Variables};
use super::provider::{Exchange, ProviderError};
use super::received::{Received, encoding, not_asked_for};
use super::secret::{in_exchange, in_json, in_trouble};
use crate::http::{Answered, Client, Failure, is_here, piece, uri, whole, within};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};
use hyper::body::{Bytes, Incoming};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use url::Url;

/// Maximum bytes of a line of batch results.
const LONGEST_LINE: usize = 4 * LONGEST_ANSWER;
/// Timeout of a batch file transfer, in either direction.
const TRANSFER: Duration = Duration::from_secs(1800);

/// A server and its credentials.
pub(super) struct Place {
    home: &'static Home,
    base: Url,
    /// Safe to show: without user name, password and query.
    pub shown: String,
    /// Whether it is the provider itself rather than another server that speaks its wire.
    pub is_own: bool,
    /// Headers of every request. They contain no key if the base has a user name and password, or if none is needed.
    headers: HeaderMap,
    secret: Secret,
    /// Warnings for a person before anything is sent.
    notices: Vec<String>,
    /// Request addresses by path: most requests use the same few.
    addresses: Mutex<BTreeMap<Vec<String>, Uri>>,
}

impl Place {
    /// All servers named by the variables. Several addresses or keys are separated by commas, in order of preference; one address is used
    /// with all keys, and one key with all addresses.
    fn from_environment(home: &'static Home) -> Result<Vec<Self>, String> {
        let variables = Variables::here()?;
        // A skipped file may hold the missing variable.
        let with_ignored = |why: String| match variables.ignored.is_empty() {
            true => why,
            false => format!("{why}. {}", variables.ignored.join(". ")),
        };
        let found = variables.together(&[home.base_variable], home.key_variables);
        let (base, key) = found.map_err(with_ignored)?;
        let stands = base.as_ref().map(|base| base.stands.clone());
        let base = base.map_or_else(|| home.base_url.to_owned(), |base| base.value);
        let key = key.map(|key| key.value).unwrap_or_default();
        let parts = |text: &str| text.split(',').map(|part| part.trim().to_owned()).collect::<Vec<String>>();
        let (bases, keys) = (parts(&base), parts(&key));
        if bases.len() != keys.len() && bases.len() > 1 && keys.len() > 1 {
            return Err(format!(
                "{} has {} addresses, but {} has {} keys: give the same number of both, or exactly one of either",
                home.base_variable,
                bases.len(),
                home.key_variable(),
                keys.len()
            ));
        }
        let place = |i: usize| {
            let of = |all: &[String]| all.get(i).or(all.first()).cloned().unwrap_or_default();
            Place::new(home, &of(&bases), Secret::new(of(&keys))).map_err(with_ignored)
        };
        let mut places = (0..bases.len().max(keys.len())).map(place).collect::<Result<Vec<_>, _>>()?;
        for place in &mut places {
            let strange = stands.as_ref().and_then(|stands| place.strangeness(stands));
            place.notices.extend(strange);
        }
        if let Some(first) = places.first_mut() {
            first.notices.extend(variables.ignored);
        }
        Ok(places)
    }

    /// Whether the variables name no server but the provider's own, with or without a key.
    fn is_own_by_address(home: &Home) -> bool {
        let found =
            Variables::here().and_then(|variables| variables.together(&[home.base_variable], home.key_variables));
        let host = |address: &str| Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
        match found {
            Ok((None, _)) => true,
            Ok((Some(base), _)) => base.value.split(',').all(|base| host(base.trim()) == host(home.base_url)),
            Err(_) => false,
        }
    }

    /// A warning for an address that is not the provider's own.
    fn strangeness(&self, stands: &Stands) -> Option<String> {
        let Home { name, base_variable, .. } = self.home;
        (!self.is_own).then(|| {
            format!(
                "`{name}/...` uses the address {}, which is set by {base_variable} in {stands}, not the provider's own",
                self.shown
            )
        })
    }

    fn new(home: &'static Home, base: &str, key: Secret) -> Result<Self, String> {
        let no_address = || {
            // The text before an @ may be a password.
            let shown = base.rsplit('@').next().unwrap_or_default().split('?').next().unwrap_or_default();
            let end = if home.base_end.is_empty() { "" } else { " and usually ends in " };
            format!(
                "{} is `{shown}`, which is not an address: an address begins with http:// or https://{end}{}, for \
                 instance {}",
                home.base_variable, home.base_end, home.base_example
            )
        };
        let base = Url::parse(&(home.base_of)(base))
            .ok()
            .filter(|url| ["http", "https"].contains(&url.scheme()))
            .ok_or_else(no_address)?;
        // The address may contain a user name and password for a gateway; they replace the key.
        let (key, secret) = match (base.username().is_empty() && base.password().is_none(), key.expose()) {
            (false, _) => {
                let said = base.password().unwrap_or(base.username());
                (None, Secret::new(percent_encoding::percent_decode_str(said).decode_utf8_lossy()))
            }
            (true, "") if home.needs_key => {
                return Err(format!(
                    "no key: set {} in the environment or in a file `.env` here or above (any text will do for a \
                     server that needs none), or use a simulated model, for instance `sim/medium`",
                    home.key_variables.join(" or ")
                ));
            }
            (true, "") => (None, key),
            (true, text) => {
                let (name, before) = home.key_header;
                let mut value = HeaderValue::from_str(&format!("{before}{text}")).map_err(|_| {
                    format!(
                        "{} contains characters that a key cannot have; is there a line break in it?",
                        home.key_variable()
                    )
                })?;
                value.set_sensitive(true);
                (Some((HeaderName::from_static(name), value)), key)
            }
        };
        let mut headers: HeaderMap = home
            .headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        headers.extend(key);
        let mut shown = base.clone();
        // Neither fails for an address with a host, which http and https have.
        let _ = shown.set_username("").and_then(|()| shown.set_password(None));
        shown.set_query(None);
        shown.set_fragment(None);
        let shown = shown.as_str().trim_end_matches('/').to_owned();
        let is_own = Url::parse(home.base_url).is_ok_and(|own| own.host_str() == base.host_str());
        let mut notices = Vec::new();
        if base.scheme() == "http" && !is_here(&base) {
            notices.push(format!(
                "{shown} is on another machine and not encrypted (http://): everything that is sent, including the \
                 key, can be read on the way. Use https://, or a tunnel (ssh -L)"
            ));
        }
        Ok(Place { home, shown, is_own, headers, secret, base, notices, addresses: Mutex::default() })
    }

    /// The address of a path. If the base ends with the path's start (`/v1`), it is not repeated.
    fn url(&self, path: &[String]) -> Url {
        let mut url = self.base.clone();
        let said = url.path_segments().and_then(|mut segments| segments.rfind(|segment| !segment.is_empty()));
        let path = match path.split_first() {
            Some((first, rest)) if said == Some(first) => rest,
            _ => path,
        };
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// The same as a URI, cached.
    fn address(&self, path: &[String]) -> Result<Uri, String> {
        // The guarded addresses are valid even after a panic.
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = addresses.get(path) {
            return Ok(address.clone());
        }
        let address = uri(&self.url(path))?;
        addresses.insert(path.to_vec(), address.clone());
        Ok(address)
    }

    /// The answer, without the key.
    fn received(&self, model: &str, answered: Answered) -> Received {
        let Answered { status, headers, body } = answered;
        let mut received = Received::new(&self.shown, model, status, headers, body);
        received.body = self.secret.hidden_in(received.body);
        received
    }

    /// Reads an answer line by line. Returns what is wrong with it, if anything.
    async fn lines(&self, mut from: Incoming, each: &mut (dyn FnMut(&str) + Send)) -> Result<Option<String>, Failure> {
        let mut rest: Vec<u8> = Vec::new();
        let mut tell = |line: &[u8]| each(&self.secret.hidden_in(String::from_utf8_lossy(line).into_owned()));
        while let Some(piece) = piece(&mut from).await? {
            rest.extend_from_slice(&piece);
            if let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') {
                let after = rest.split_off(end + 1);
                rest.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).for_each(&mut tell);
                rest = after;
            }
            if rest.len() > LONGEST_LINE {
                let most = LONGEST_LINE / 1_000_000;
                return Ok(Some(format!("{} sent a line of results that is longer than {most} MB", self.shown)));
            }
        }
        if !rest.is_empty() {
            tell(&rest);
        }
        Ok(None)
    }
}

/// The result of a request.
pub(super) enum Sent {
    /// An answer arrived.
    Received(Received),
    /// No answer arrived.
    ProviderError(ProviderError),
    /// The server was unavailable; the next one is used from now on. Its answer counts only if all `places` fail.
    PassedOver { places: usize, left: Result<Received, ProviderError> },
}

/// One or more equivalent servers, and the connections to them, made when first needed. One is used while it is available.
pub(super) struct Line {
    home: &'static Home,
    pub timeout: Duration,
    places: OnceLock<Result<Vec<Place>, String>>,
    /// One per server.
    clients: OnceLock<Result<Vec<Client>, String>>,
    /// Incremented whenever the current server is unavailable; the current one is this modulo their number.
    turn: AtomicUsize,
}

impl Line {
    /// Connects to the servers named by variables, in the environment or a `.env`.
    pub fn standard(home: &'static Home, timeout: Duration) -> Self {
        Line { home, timeout, places: OnceLock::new(), clients: OnceLock::new(), turn: AtomicUsize::new(0) }
    }

    /// Connects to a server of your own choice.
    pub fn to(home: &'static Home, base: &str, key: Secret, timeout: Duration) -> Result<Self, String> {
        Line::to_all(home, vec![(base.to_owned(), key)], timeout)
    }

    /// Connects to several servers, in order of preference.
    pub fn to_all(home: &'static Home, places: Vec<(String, Secret)>, timeout: Duration) -> Result<Self, String> {
        let places: Vec<Place> =
            places.into_iter().map(|(base, key)| Place::new(home, &base, key)).collect::<Result<_, _>>()?;
        Ok(Line { places: OnceLock::from(Ok(places)), ..Line::standard(home, timeout) })
    }

    /// The server it leads to, if already known.
    pub fn known(&self) -> Option<&Place> {
        self.places.get()?.as_ref().ok()?.first()
    }

    fn places(&self) -> Result<&[Place], String> {
        let places = self.places.get_or_init(|| Place::from_environment(self.home));
        places.as_ref().map(Vec::as_slice).map_err(Clone::clone)
    }

    /// The first server; the others are equivalent.
    pub fn place(&self) -> Result<&Place, String> {
        self.places()?.first().ok_or_else(|| "no server is configured".into())
    }

    /// Whether it leads to the provider itself. Needs no key.
    pub fn is_own(&self) -> bool {
        self.place().map_or_else(|_| Place::is_own_by_address(self.home), |place| place.is_own)
    }

    /// Warnings before anything is sent: addresses that are not the provider's own, keys sent unencrypted, ignored files.
    pub fn notices(&self) -> Vec<String> {
        self.places().unwrap_or_default().iter().flat_map(|place| place.notices.clone()).collect()
    }

    /// The servers, and the connections to each.
    pub fn open(&self) -> Result<(&[Place], &[Client]), String> {
        let places = self.places()?;
        let open = || places.iter().map(|place| Client::new(&place.base, &place.headers, self.timeout)).collect();
        let clients = self.clients.get_or_init(open).as_ref().map_err(Clone::clone)?;
        Ok((places, clients))
    }

    /// The error without any key.
    pub fn scrubbed(&self, trouble: ProviderError) -> ProviderError {
        in_trouble(trouble, &|text| self.hidden(text))
    }

    /// The result of a request without any key: bodies come without them, but parsed text may contain an escaped one.
    pub fn scrubbed_end(&self, ended: Result<Exchange, ProviderError>) -> Result<Exchange, ProviderError> {
        match ended {
            Ok(exchange) => Ok(in_exchange(exchange, &|text| self.hidden(text))),
            Err(trouble) => Err(self.scrubbed(trouble)),
        }
    }

    /// Parsed JSON, likewise.
    pub fn scrubbed_json(&self, json: Json) -> Json {
        in_json(json, &|text| self.hidden(text))
    }

    /// A text from outside without any key.
    pub fn hidden(&self, text: String) -> String {
        let places = self.places().unwrap_or_default();
        places.iter().fold(text, |text, place| place.secret.hidden_in(text))
    }

    /// Sends one request (a GET if it has no body) and reads the whole answer without interpreting it. If this server is unavailable and
    /// there are others, the next one is used from then on.
    pub async fn send(&self, path: &[String], model: &str, body: Option<&impl Serialize>) -> Sent {
        let fatal = |why| Sent::ProviderError(ProviderError::Fatal { why });
        let body = match body.map(serde_json::to_vec).transpose() {
            Ok(body) => body.map(|body| (JSON, Bytes::from(body))),
            Err(error) => return fatal(format!("the request cannot be written as JSON: {error}")),
        };
        let (places, clients) = match self.open() {
            Ok(open) => open,
            Err(why) => return fatal(why),
        };
        let turn = self.turn.load(Ordering::Relaxed);
        let at = turn % places.len().max(1);
        let (Some(place), Some(client)) = (places.get(at), clients.get(at)) else {
            return fatal("no server is configured".into());
        };
        let address = match place.address(path) {
            Ok(address) => address,
            Err(why) => return fatal(why),
        };
        let result = ask(place, client, address, model, body, client.patience).await;
        let (out, for_nothing) = match &result {
            Ok(received) => (turns_away(received.status), true),
            Err(ProviderError::Retry { charged, .. }) => (true, !charged),
            Err(_) => (false, false),
        };
        if out {
            // Concurrent failures must not skip more than one server.
            let _ = self.turn.compare_exchange(turn, turn + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
        match result {
            // A call that may have cost something is retried by the code that knows the budget.
            left if out && for_nothing && places.len() > 1 => Sent::PassedOver { places: places.len(), left },
            Ok(received) => Sent::Received(received),
            Err(trouble) => Sent::ProviderError(trouble),
        }
    }

    /// The same without trying the next server: the answer, or why there is none.
    pub async fn send_once(
        &self,
        path: &[String],
        model: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Received, ProviderError> {
        match self.send(path, model, body).await {
            Sent::Received(received) | Sent::PassedOver { left: Ok(received), .. } => Ok(received),
            Sent::ProviderError(trouble) | Sent::PassedOver { left: Err(trouble), .. } => Err(trouble),
        }
    }

    fn first_place(&self) -> Result<(&Place, &Client), ProviderError> {
        let (places, clients) = self.open().map_err(|why| ProviderError::Fatal { why })?;
        let first = places.first().zip(clients.first());
        first.ok_or_else(|| ProviderError::Fatal { why: "no server is configured".into() })
    }

    /// Sends something always to the first server, since stored data exists only there.
    pub async fn first(
        &self,
        path: &[String],
        query: &[(&str, &str)],
        payload: Payload,
    ) -> Result<Received, ProviderError> {
        let (place, client) = self.first_place()?;
        let mut url = place.url(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let address = uri(&url).map_err(|why| ProviderError::Fatal { why })?;
        let body = payload.into_body();
        let patience = if body.is_some() { client.patience.max(TRANSFER) } else { client.patience };
        ask(place, client, address, "", body, patience).await
    }

    /// Reads a file at the first server line by line. Returns the error answer, if any.
    pub async fn lines(
        &self,
        path: &[String],
        each: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Option<Received>, ProviderError> {
        let (place, client) = self.first_place()?;
        let address = uri(&place.url(path)).map_err(|why| ProviderError::Fatal { why })?;
        let request = client.request(Method::GET, address, Bytes::new());
        let broken = |failure| scrubbed_at(place, unreachable(place, TRANSFER, failure));
        let read = async {
            let answer = client.send(request).await?;
            match (answer.status().is_success(), encoding(answer.headers())) {
                (true, Some(encoding)) => Ok(Some(Err(format!("{} {}", place.shown, not_asked_for(&encoding))))),
                (true, None) => place.lines(answer.into_body(), each).await.map(|line| line.map(Err)),
                (false, _) => Ok(Some(Ok(whole(answer, LONGEST_ANSWER).await?))),
            }
        };
        match within(TRANSFER, read).await.map_err(broken)? {
            None => Ok(None),
            Some(Ok(answered)) => Ok(Some(place.received("", answered))),
            Some(Err(why)) => Err(ProviderError::Fatal { why }),
        }
    }
}

/// An error at a server, without its key.
fn scrubbed_at(place: &Place, trouble: ProviderError) -> ProviderError {
    in_trouble(trouble, &|text| place.secret.hidden_in(text))
}

/// The type of a question's body.
const JSON: &str = "application/json";

/// Sends something to a server (a GET if it has no body), and reads the whole answer.
async fn ask(
    place: &Place,
    client: &Client,
    address: Uri,
    model: &str,
    body: Option<(&'static str, Bytes)>,
    patience: Duration,
) -> Result<Received, ProviderError> {
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let (kind, body) = body.unzip();
    let mut request = client.request(method, address, body.unwrap_or_default());
    if let Some(kind) = kind {
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    let answered = client.ask(request, patience, LONGEST_ANSWER).await;
    let answered = answered.map_err(|failure| scrubbed_at(place, unreachable(place, patience, failure)))?;
    Ok(place.received(model, answered))
}

/// The body sent to a server.
pub(super) enum Payload {
    /// Nothing: a GET.
    None,
    /// JSON.
    Json(String),
    /// A file of lines for a batch (RFC 7578).
    File { name: String, text: String },
}

impl Payload {
    /// Its content type and bytes.
    fn into_body(self) -> Option<(&'static str, Bytes)> {
        match self {
            Payload::None => None,
            Payload::Json(text) => Some((JSON, text.into())),
            Payload::File { name, text } => {
                // No JSON line starts with two hyphens.
                let border = "polity-lines-of-a-batch";
                let kind = "multipart/form-data; boundary=polity-lines-of-a-batch";
                let head = "Content-Disposition: form-data; name=";
                let body = format!(
                    "--{border}\r\n{head}\"purpose\"\r\n\r\nbatch\r\n--{border}\r\n{head}\"file\"; filename=\"{name}\"\r\n\
                     Content-Type: application/jsonl\r\n\r\n{text}\r\n--{border}--\r\n"
                );
                Some((kind, body.into()))
            }
        }
    }
}

/// Whether a server rejects the caller regardless of the request: overloaded, quota used up, key rejected.
fn turns_away(status: u16) -> bool {
    matches!(status, 401 | 402 | 403 | 429 | 500..=599)
}

/// The error for a call without an answer.
fn unreachable(place: &Place, patience: Duration, failure: Failure) -> ProviderError {
    let Place { shown, home: Home { base_variable, .. }, .. } = place;
    // A server that received the request may answer and charge for it, even if the answer is lost.
    let charged = !matches!(failure, Failure::Unreached(_));
    let why = match failure {
        Failure::Unreached(cause) => {
            // TLS error names are hard to understand.
            let hint = if cause.contains("InvalidContentType") || cause.contains("wrong version number") {
                format!(
                    "The server there does not speak HTTPS: check {base_variable}, which may have to begin with http://"
                )
            } else if cause.contains("lookup") || cause.contains("dns") {
                format!("There is no machine with that name: check {base_variable} for a typo, and check the network")
            } else if shown.starts_with("https://") && cause.contains("ertificate") {
                format!(
                    "This machine does not trust its certificate: check {base_variable}, and the clock and the \
                     certificates of this machine (SSL_CERT_FILE)"
                )
            } else {
                format!("Is a server running there? Check {base_variable} and the network")
            };
            format!("{shown} cannot be reached: {cause}. {hint}")
        }
        Failure::Late => format!("{shown} gave no complete answer within {} s", patience.as_secs_f64()),
        Failure::Broken(cause) => format!("{shown} broke off its answer: {cause}"),
    };
    ProviderError::Retry { why, after_ms: None, charged }
}
