//! The line to a provider: where it is, the key that it takes, and bytes there and back within limits.

use super::Trouble;
use super::keys::{Secret, from_environment};
use super::received::Received;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde::Serialize;
use std::error::Error;
use std::future::Future;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes of an answer at most; what is longer is cut off while it is read. (A streamed answer takes 20 to 50 times its text.)
pub const LONGEST_ANSWER: usize = 10_000_000;
/// Bytes of a line of a batch's results at most.
const LONGEST_LINE: usize = 4 * LONGEST_ANSWER;
const CONNECT: Duration = Duration::from_secs(10);
/// How long a file of a batch may take, there or back.
const TRANSFER: Duration = Duration::from_secs(1800);

/// Where a provider is found, and how it is told who asks: in the words that a user knows.
#[derive(Clone, Copy, Debug)]
pub struct Home {
    /// The part of a model's name before the slash.
    pub name: &'static str,
    /// Others that mean the same.
    pub aliases: &'static [&'static str],
    /// A model's full name, as an example.
    pub model: &'static str,
    /// The variable that holds the address.
    pub base_variable: &'static str,
    /// The address that is asked where no other is named.
    pub base_url: &'static str,
    /// What an address may look like, as an example.
    pub base_example: &'static str,
    /// What an address usually ends in, if in anything of note.
    pub base_end: &'static str,
    /// What an address that leaves things out means.
    pub base_of: fn(&str) -> String,
    /// The variables that hold the key; the first one that is set counts.
    pub key_variables: &'static [&'static str],
    /// Whether a key must be given.
    pub needs_key: bool,
    /// The header that a key is sent in, and what stands before it there.
    pub key_header: (&'static str, &'static str),
    /// Headers of every request.
    pub headers: &'static [(&'static str, &'static str)],
    /// The part before the slash under which `prices.json` lists its models.
    pub listed_as: &'static str,
}

impl Home {
    /// The variable of the key, as messages name it.
    pub(super) fn key_variable(&self) -> &'static str {
        self.key_variables.first().copied().unwrap_or_default()
    }

    /// What addresses usually end in, as a part of a sentence.
    pub(super) fn usual_end(&self) -> String {
        match self.base_end {
            "" => String::new(),
            end => format!(", which usually ends in {end}"),
        }
    }
}

/// Whom to ask, and as whom.
pub(super) struct Place {
    home: &'static Home,
    base: Url,
    /// As it may be shown: without name, password and query.
    pub shown: String,
    /// `None`: the base has a name and a password, or no key is needed.
    key: Option<(HeaderName, HeaderValue)>,
    secret: Secret,
}

impl Place {
    /// All that the variables name. Several addresses or keys stand with commas between them, first what is asked first; one address goes
    /// with all keys, and one key with all addresses.
    fn from_environment(home: &'static Home) -> Result<Vec<Self>, String> {
        let base = from_environment(home.base_variable)?.filter(|base| !base.is_empty());
        let mut key = None;
        for name in home.key_variables {
            // One that is set to nothing says that there is no key.
            if key.is_none() {
                key = from_environment(name)?;
            }
        }
        let (base, key) = (base.unwrap_or_else(|| home.base_url.to_owned()), key.unwrap_or_default());
        let parts = |text: &str| text.split(',').map(|part| part.trim().to_owned()).collect::<Vec<String>>();
        let (bases, keys) = (parts(&base), parts(&key));
        if bases.len() != keys.len() && bases.len() > 1 && keys.len() > 1 {
            return Err(format!(
                "{} names {} addresses and {} {} keys: give as many of both, or one of either",
                home.base_variable,
                bases.len(),
                home.key_variable(),
                keys.len()
            ));
        }
        let place = |i: usize| {
            let of = |all: &[String]| all.get(i).or(all.first()).cloned().unwrap_or_default();
            Place::new(home, &of(&bases), Secret::new(of(&keys)))
        };
        (0..bases.len().max(keys.len())).map(place).collect()
    }

    fn new(home: &'static Home, base: &str, key: Secret) -> Result<Self, String> {
        let no_address = || {
            // What stands before an @ may be a password.
            let shown = base.rsplit('@').next().unwrap_or_default().split('?').next().unwrap_or_default();
            let end = if home.base_end.is_empty() { "" } else { " and usually ends in " };
            format!(
                "{} is `{shown}`, which is no address: it begins with http:// or https://{end}{}, for instance {}",
                home.base_variable, home.base_end, home.base_example
            )
        };
        let base = Url::parse(&(home.base_of)(base))
            .ok()
            .filter(|url| ["http", "https"].contains(&url.scheme()))
            .ok_or_else(no_address)?;
        // The address may bring a name and a password, for a gateway: they are sent in place of a key.
        let (key, secret) = match (base.username().is_empty() && base.password().is_none(), key.expose()) {
            (false, _) => (None, Secret::new(base.password().unwrap_or_default())),
            (true, "") if home.needs_key => {
                return Err(format!(
                    "no key: set {} in the environment or in a file `.env` here or above (a server that needs none takes any \
                     text), or use a simulated model, for instance `sim/medium`",
                    home.key_variables.join(" or ")
                ));
            }
            (true, "") => (None, key),
            (true, text) => {
                let (name, before) = home.key_header;
                let mut value = HeaderValue::from_str(&format!("{before}{text}")).map_err(|_| {
                    format!("{} holds characters that no key has; is there a line break in it?", home.key_variable())
                })?;
                value.set_sensitive(true);
                (Some((HeaderName::from_static(name), value)), key)
            }
        };
        let mut shown = base.clone();
        // Neither can fail for an address with a host, which http and https have.
        let _ = shown.set_username("").and_then(|()| shown.set_password(None));
        shown.set_query(None);
        shown.set_fragment(None);
        Ok(Place { home, shown: shown.as_str().trim_end_matches('/').to_owned(), base, key, secret })
    }

    /// The address of a path. Where the base ends as the path begins (`/v1`), it is not said twice.
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

    /// Whether it is the provider itself, and no other server that speaks its wire.
    pub fn is_own(&self) -> bool {
        let own = Url::parse(self.home.base_url).ok();
        own.is_some_and(|own| own.host_str() == self.base.host_str())
    }

    /// Whether it is this machine, which is not reached through a proxy.
    fn is_here(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }

    /// The same without the key.
    pub fn scrubbed(&self, trouble: Trouble) -> Trouble {
        let hidden = |text| self.secret.hidden_in(text);
        match trouble {
            Trouble::Retry { why, after_ms, charged } => Trouble::Retry { why: hidden(why), after_ms, charged },
            Trouble::Crowded { why, after_ms } => Trouble::Crowded { why: hidden(why), after_ms },
            Trouble::Never { why } => Trouble::Never { why: hidden(why) },
            Trouble::Fatal { why } => Trouble::Fatal { why: hidden(why) },
        }
    }
}

/// A place, or several for the same, and the connections to them; made when first needed. One is asked, as long as it can be.
pub(super) struct Line {
    home: &'static Home,
    pub timeout: Duration,
    places: OnceLock<Result<Vec<Place>, String>>,
    /// Of each place.
    clients: OnceLock<Result<Vec<Client>, String>>,
    /// Counts up whenever the place that is asked could not be: which is asked is this modulo their number.
    turn: AtomicUsize,
}

impl Line {
    /// To whom the variables name, in the environment or in a `.env`.
    pub fn standard(home: &'static Home, timeout: Duration) -> Self {
        Line { home, timeout, places: OnceLock::new(), clients: OnceLock::new(), turn: AtomicUsize::new(0) }
    }

    /// To a server of your own choice.
    pub fn to(home: &'static Home, base: &str, key: Secret, timeout: Duration) -> Result<Self, String> {
        Line::to_all(home, vec![(base.to_owned(), key)], timeout)
    }

    /// To several servers, first the one that is asked first.
    pub fn to_all(home: &'static Home, places: Vec<(String, Secret)>, timeout: Duration) -> Result<Self, String> {
        let places: Vec<Place> =
            places.into_iter().map(|(base, key)| Place::new(home, &base, key)).collect::<Result<_, _>>()?;
        Ok(Line { places: OnceLock::from(Ok(places)), ..Line::standard(home, timeout) })
    }

    /// Whom it leads to, if that is known already.
    pub fn known(&self) -> Option<&Place> {
        self.places.get()?.as_ref().ok()?.first()
    }

    fn places(&self) -> Result<&[Place], String> {
        let places = self.places.get_or_init(|| Place::from_environment(self.home));
        places.as_ref().map(Vec::as_slice).map_err(Clone::clone)
    }

    /// The first of its places; the others stand for the same.
    pub fn place(&self) -> Result<&Place, String> {
        self.places()?.first().ok_or_else(|| "there is nobody to ask".into())
    }

    /// Whom to ask, and the connections to each.
    pub fn open(&self) -> Result<(&[Place], &[Client]), String> {
        let places = self.places()?;
        let open = || places.iter().map(|place| client(place, self.timeout)).collect();
        let clients = self.clients.get_or_init(open).as_ref().map_err(Clone::clone)?;
        Ok((places, clients))
    }

    /// The same without any key.
    pub fn scrubbed(&self, trouble: Trouble) -> Trouble {
        let places = self.places().unwrap_or_default();
        places.iter().fold(trouble, |trouble, place| place.scrubbed(trouble))
    }

    /// Sends a request (without a body it asks for what is there) and reads all of what comes back; what it says is not looked at. Where
    /// there are several places and one can not be asked, the next one is, from then on.
    pub async fn send(&self, path: &[String], model: &str, body: Option<&impl Serialize>) -> Result<Received, Trouble> {
        let fatal = |why| Trouble::Fatal { why };
        let body = body.map(serde_json::to_vec).transpose();
        let body = body.map_err(|error| fatal(format!("the request is no JSON: {error}")))?;
        let (places, clients) = self.open().map_err(fatal)?;
        let mut tried = 1;
        loop {
            let turn = self.turn.load(Ordering::Relaxed);
            let at = turn % places.len().max(1);
            let (Some(place), Some(client)) = (places.get(at), clients.get(at)) else {
                return Err(fatal("there is nobody to ask".into()));
            };
            let result = self.send_to(place, client, path, model, body.clone()).await;
            let (out, for_nothing) = match &result {
                Ok(received) => (turns_away(received.status), true),
                Err(Trouble::Retry { charged, .. }) => (true, !charged),
                Err(_) => (false, false),
            };
            if out {
                // Who finds the same at the same time does not pass over the next one.
                let _ = self.turn.compare_exchange(turn, turn + 1, Ordering::Relaxed, Ordering::Relaxed);
            }
            // What may have cost something is asked again by those who know what there is to spend.
            if !out || !for_nothing || tried >= places.len() {
                return result;
            }
            tried += 1;
        }
    }

    async fn send_to(
        &self,
        place: &Place,
        client: &Client,
        path: &[String],
        model: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Received, Trouble> {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let mut request = self.request(place, client, method, place.url(path));
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        self.received(place, model, self.timeout, async { receive(request.send().await?).await }).await
    }

    /// A request as the one whose key the place has.
    fn request(&self, place: &Place, client: &Client, method: Method, url: Url) -> RequestBuilder {
        let mut request = client.request(method, url);
        for (name, value) in self.home.headers {
            request = request.header(*name, *value);
        }
        if let Some((name, value)) = &place.key {
            request = request.header(name, value.clone());
        }
        request
    }

    async fn received(
        &self,
        place: &Place,
        model: &str,
        timeout: Duration,
        received: impl Future<Output = Result<(u16, HeaderMap, Vec<u8>), reqwest::Error>>,
    ) -> Result<Received, Trouble> {
        let (status, headers, bytes) =
            received.await.map_err(|error| place.scrubbed(unreachable(place, timeout, &error)))?;
        let mut received = Received::new(&place.shown, model, status, headers, bytes);
        received.body = place.secret.hidden_in(received.body);
        Ok(received)
    }

    fn first_place(&self) -> Result<(&Place, &Client), Trouble> {
        let (places, clients) = self.open().map_err(|why| Trouble::Fatal { why })?;
        let first = places.first().zip(clients.first());
        first.ok_or_else(|| Trouble::Fatal { why: "there is nobody to ask".into() })
    }

    /// Sends something to the first place, whatever others there are: what is kept there is kept nowhere else.
    pub async fn first(&self, path: &[String], query: &[(&str, &str)], payload: Payload) -> Result<Received, Trouble> {
        let (place, client) = self.first_place()?;
        let mut url = place.url(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let method = if matches!(payload, Payload::None) { Method::GET } else { Method::POST };
        let mut request = self.request(place, client, method, url);
        let mut timeout = self.timeout;
        if let Some((kind, body)) = payload.into_body() {
            timeout = timeout.max(TRANSFER);
            request = request.header(CONTENT_TYPE, kind).body(body).timeout(timeout);
        }
        self.received(place, "", timeout, async { receive(request.send().await?).await }).await
    }

    /// Reads a file at the first place line by line. What came in place of it, if something did.
    pub async fn lines(
        &self,
        path: &[String],
        each: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Option<Received>, Trouble> {
        let (place, client) = self.first_place()?;
        let request = self.request(place, client, Method::GET, place.url(path)).timeout(TRANSFER);
        let broken = |error: reqwest::Error| place.scrubbed(unreachable(place, TRANSFER, &error));
        let mut response = request.send().await.map_err(broken)?;
        if !response.status().is_success() {
            return self.received(place, "", TRANSFER, receive(response)).await.map(Some);
        }
        let mut rest: Vec<u8> = Vec::new();
        let mut tell = |line: &[u8]| each(&place.secret.hidden_in(String::from_utf8_lossy(line).into_owned()));
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            rest.extend_from_slice(&chunk);
            if let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') {
                let after = rest.split_off(end + 1);
                rest.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).for_each(&mut tell);
                rest = after;
            }
            if rest.len() > LONGEST_LINE {
                let most = LONGEST_LINE / 1_000_000;
                let why = format!("{} sends a line of results that is longer than {most} MB", place.shown);
                return Err(Trouble::Fatal { why });
            }
        }
        if !rest.is_empty() {
            tell(&rest);
        }
        Ok(None)
    }
}

/// What is sent to a place.
pub(super) enum Payload {
    /// Nothing: it is asked for what is there.
    None,
    /// JSON.
    Json(String),
    /// A file of lines for a batch (RFC 7578).
    File { name: String, text: String },
}

impl Payload {
    /// Its type, and itself.
    fn into_body(self) -> Option<(String, String)> {
        match self {
            Payload::None => None,
            Payload::Json(text) => Some(("application/json".into(), text)),
            Payload::File { name, text } => {
                // JSON has no line that begins with two hyphens.
                let border = "polity-lines-of-a-batch";
                let head = "Content-Disposition: form-data; name=";
                let body = format!(
                    "--{border}\r\n{head}\"purpose\"\r\n\r\nbatch\r\n--{border}\r\n{head}\"file\"; filename=\"{name}\"\r\n\
                     Content-Type: application/jsonl\r\n\r\n{text}\r\n--{border}--\r\n"
                );
                Some((format!("multipart/form-data; boundary={border}"), body))
            }
        }
    }
}

/// Whether a server turns the one who asks away, whatever is asked: no room, no more for this key, a key that it does not take.
fn turns_away(status: u16) -> bool {
    matches!(status, 401 | 402 | 403 | 429 | 500..=599)
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

/// Status, headers and body; of a body that is too long not much more than may be.
async fn receive(mut response: Response) -> Result<(u16, HeaderMap, Vec<u8>), reqwest::Error> {
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
fn unreachable(place: &Place, timeout: Duration, error: &reqwest::Error) -> Trouble {
    let Place { shown, home: Home { base_variable, .. }, .. } = place;
    let cause = innermost(error);
    let why = if error.is_connect() {
        // What TLS calls its errors says nothing to those who do not know it.
        let hint = if cause.contains("InvalidContentType") || cause.contains("wrong version number") {
            format!(
                "The server there does not speak HTTPS: check {base_variable}, which may have to begin with http://"
            )
        } else if cause.contains("lookup") || cause.contains("dns") {
            format!("No machine has that name: check {base_variable} for a slip, and the network")
        } else if shown.starts_with("https://") && cause.contains("ertificate") {
            format!(
                "Its certificate is not trusted here: check {base_variable}, the clock of this machine, and its certificates \
                 (SSL_CERT_FILE)"
            )
        } else {
            format!("Is a server running there? Check {base_variable} and the network")
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
