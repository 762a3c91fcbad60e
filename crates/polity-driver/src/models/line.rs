//! The line to a provider: where it is, the key that it takes, and bytes there and back within limits.

use super::keys::{Secret, Stands, Variables};
use super::received::{Received, encoding, not_asked_for};
use super::secret::{in_exchange, in_json, in_trouble};
use super::{Exchange, Trouble};
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

/// Bytes of an answer at most; what is longer is cut off while it is read. (A streamed answer takes 20 to 50 times its text.)
pub const LONGEST_ANSWER: usize = 10_000_000;
/// Bytes of a line of a batch's results at most.
const LONGEST_LINE: usize = 4 * LONGEST_ANSWER;
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
    /// Whether it is the provider itself, and no other server that speaks its wire.
    pub is_own: bool,
    /// Of every request. No key is among them where the base has a name and a password, or none is needed.
    headers: HeaderMap,
    secret: Secret,
    /// What a person is to know before anything is sent there.
    notices: Vec<String>,
    /// Where questions are put, by path: most are put in the same few places.
    addresses: Mutex<BTreeMap<Vec<String>, Uri>>,
}

impl Place {
    /// All that the variables name. Several addresses or keys stand with commas between them, first what is asked first; one address goes
    /// with all keys, and one key with all addresses.
    fn from_environment(home: &'static Home) -> Result<Vec<Self>, String> {
        let variables = Variables::here()?;
        // What was passed over may be what is missing.
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
                "{} names {} addresses and {} {} keys: give as many of both, or one of either",
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

    /// What a person is to know of an address that is not the provider's own.
    fn strangeness(&self, stands: &Stands) -> Option<String> {
        let Home { name, base_variable, .. } = self.home;
        (!self.is_own).then(|| {
            format!(
                "`{name}/...` is asked at {}, which {base_variable} in {stands} names, not at its own address",
                self.shown
            )
        })
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
            (false, _) => {
                let said = base.password().unwrap_or(base.username());
                (None, Secret::new(percent_encoding::percent_decode_str(said).decode_utf8_lossy()))
            }
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
        let mut headers: HeaderMap = home
            .headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        headers.extend(key);
        let mut shown = base.clone();
        // Neither can fail for an address with a host, which http and https have.
        let _ = shown.set_username("").and_then(|()| shown.set_password(None));
        shown.set_query(None);
        shown.set_fragment(None);
        let shown = shown.as_str().trim_end_matches('/').to_owned();
        let is_own = Url::parse(home.base_url).is_ok_and(|own| own.host_str() == base.host_str());
        let mut notices = Vec::new();
        if base.scheme() == "http" && !is_here(&base) {
            notices.push(format!(
                "{shown} is another machine and not encrypted (http://): all that is sent, the key included, can be read on the way. Use \
                 https://, or a tunnel (ssh -L)"
            ));
        }
        Ok(Place { home, shown, is_own, headers, secret, base, notices, addresses: Mutex::default() })
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

    /// The same as it is asked for. It is kept.
    fn address(&self, path: &[String]) -> Result<Uri, String> {
        // Addresses alone are behind it: they are as good after a panic as before.
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = addresses.get(path) {
            return Ok(address.clone());
        }
        let address = uri(&self.url(path))?;
        addresses.insert(path.to_vec(), address.clone());
        Ok(address)
    }

    /// What it answered, without the key.
    fn received(&self, model: &str, answered: Answered) -> Received {
        let Answered { status, headers, body } = answered;
        let mut received = Received::new(&self.shown, model, status, headers, body);
        received.body = self.secret.hidden_in(received.body);
        received
    }

    /// Reads an answer line by line. What is wrong with it, if something is.
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
                return Ok(Some(format!("{} sends a line of results that is longer than {most} MB", self.shown)));
            }
        }
        if !rest.is_empty() {
            tell(&rest);
        }
        Ok(None)
    }
}

/// What came of a request.
pub(super) enum Sent {
    /// Something came back.
    Received(Received),
    /// Nothing did.
    Trouble(Trouble),
    /// The place could not be asked, and the next one is from now on. What it said counts if all `places` say so.
    PassedOver { places: usize, left: Result<Received, Trouble> },
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

    /// What a person is to know before anything is sent: addresses that are not the provider's own, keys that can be read on the way, files
    /// that are ignored.
    pub fn notices(&self) -> Vec<String> {
        self.places().unwrap_or_default().iter().flat_map(|place| place.notices.clone()).collect()
    }

    /// Whom to ask, and the connections to each.
    pub fn open(&self) -> Result<(&[Place], &[Client]), String> {
        let places = self.places()?;
        let open = || places.iter().map(|place| Client::new(&place.base, &place.headers, self.timeout)).collect();
        let clients = self.clients.get_or_init(open).as_ref().map_err(Clone::clone)?;
        Ok((places, clients))
    }

    /// The same without any key.
    pub fn scrubbed(&self, trouble: Trouble) -> Trouble {
        in_trouble(trouble, &|text| self.hidden(text))
    }

    /// What came of a question, without any key: bodies come without them, but what is read in them may spell one otherwise.
    pub fn scrubbed_end(&self, ended: Result<Exchange, Trouble>) -> Result<Exchange, Trouble> {
        match ended {
            Ok(exchange) => Ok(in_exchange(exchange, &|text| self.hidden(text))),
            Err(trouble) => Err(self.scrubbed(trouble)),
        }
    }

    /// JSON that was read, likewise.
    pub fn scrubbed_json(&self, json: Json) -> Json {
        in_json(json, &|text| self.hidden(text))
    }

    /// A text from outside without any key.
    pub fn hidden(&self, text: String) -> String {
        let places = self.places().unwrap_or_default();
        places.iter().fold(text, |text, place| place.secret.hidden_in(text))
    }

    /// Sends one request (without a body it asks for what is there) and reads all of what comes back; what it says is not looked at. Where
    /// there are several places and this one cannot be asked, the next one is asked from then on.
    pub async fn send(&self, path: &[String], model: &str, body: Option<&impl Serialize>) -> Sent {
        let fatal = |why| Sent::Trouble(Trouble::Fatal { why });
        let body = match body.map(serde_json::to_vec).transpose() {
            Ok(body) => body.map(|body| (JSON, Bytes::from(body))),
            Err(error) => return fatal(format!("the request is no JSON: {error}")),
        };
        let (places, clients) = match self.open() {
            Ok(open) => open,
            Err(why) => return fatal(why),
        };
        let turn = self.turn.load(Ordering::Relaxed);
        let at = turn % places.len().max(1);
        let (Some(place), Some(client)) = (places.get(at), clients.get(at)) else {
            return fatal("there is nobody to ask".into());
        };
        let address = match place.address(path) {
            Ok(address) => address,
            Err(why) => return fatal(why),
        };
        let result = ask(place, client, address, model, body, client.patience).await;
        let (out, for_nothing) = match &result {
            Ok(received) => (turns_away(received.status), true),
            Err(Trouble::Retry { charged, .. }) => (true, !charged),
            Err(_) => (false, false),
        };
        if out {
            // Who finds the same at the same time does not pass over the next one.
            let _ = self.turn.compare_exchange(turn, turn + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
        match result {
            // What may have cost something is asked again by those who know what there is to spend.
            left if out && for_nothing && places.len() > 1 => Sent::PassedOver { places: places.len(), left },
            Ok(received) => Sent::Received(received),
            Err(trouble) => Sent::Trouble(trouble),
        }
    }

    /// The same where nobody asks the next place: what came, or why nothing did.
    pub async fn send_once(
        &self,
        path: &[String],
        model: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Received, Trouble> {
        match self.send(path, model, body).await {
            Sent::Received(received) | Sent::PassedOver { left: Ok(received), .. } => Ok(received),
            Sent::Trouble(trouble) | Sent::PassedOver { left: Err(trouble), .. } => Err(trouble),
        }
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
        let address = uri(&url).map_err(|why| Trouble::Fatal { why })?;
        let body = payload.into_body();
        let patience = if body.is_some() { client.patience.max(TRANSFER) } else { client.patience };
        ask(place, client, address, "", body, patience).await
    }

    /// Reads a file at the first place line by line. What came in place of it, if something did.
    pub async fn lines(
        &self,
        path: &[String],
        each: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Option<Received>, Trouble> {
        let (place, client) = self.first_place()?;
        let address = uri(&place.url(path)).map_err(|why| Trouble::Fatal { why })?;
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
            Some(Err(why)) => Err(Trouble::Fatal { why }),
        }
    }
}

/// A trouble at a place, without its key.
fn scrubbed_at(place: &Place, trouble: Trouble) -> Trouble {
    in_trouble(trouble, &|text| place.secret.hidden_in(text))
}

/// The type of a question's body.
const JSON: &str = "application/json";

/// Puts something to a place (without a body: asks for what is there), and reads all of what comes back.
async fn ask(
    place: &Place,
    client: &Client,
    address: Uri,
    model: &str,
    body: Option<(&'static str, Bytes)>,
    patience: Duration,
) -> Result<Received, Trouble> {
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
    fn into_body(self) -> Option<(&'static str, Bytes)> {
        match self {
            Payload::None => None,
            Payload::Json(text) => Some((JSON, text.into())),
            Payload::File { name, text } => {
                // JSON has no line that begins with two hyphens.
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

/// Whether a server turns the one who asks away, whatever is asked: no room, no more for this key, a key that it does not take.
fn turns_away(status: u16) -> bool {
    matches!(status, 401 | 402 | 403 | 429 | 500..=599)
}

/// What to tell of a call that brought no answer.
fn unreachable(place: &Place, patience: Duration, failure: Failure) -> Trouble {
    let Place { shown, home: Home { base_variable, .. }, .. } = place;
    // Whoever has the question may answer it, and count it, though nobody hears that.
    let charged = !matches!(failure, Failure::Unreached(_));
    let why = match failure {
        Failure::Unreached(cause) => {
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
        }
        Failure::Late => format!("{shown} gave no whole answer within {} s", patience.as_secs_f64()),
        Failure::Broken(cause) => format!("{shown} broke off its answer: {cause}"),
    };
    Trouble::Retry { why, after_ms: None, charged }
}
