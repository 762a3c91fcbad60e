//! A hostile endpoint that speaks the wire of OpenAI: a proxy of an honest mock server that disconnects, lies, stalls and sends invalid
//! data as configured, and keeps its own counts.
use polity_kernel::rng::{Draws, Stream};
use polity_models::mock_server::{MockServer, Options};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// The reaction to a request.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Closes the connection without reading the request, which resets it.
    Reset,
    /// Reads the request, and closes the connection.
    Close,
    /// Sends these bytes as an answer and closes the connection.
    Raw(&'static [u8]),
    /// Sends an honest answer of which only so many thousandths arrive.
    Cut(usize),
    /// The same in chunks.
    CutChunks,
    /// Sends nothing, for longer than any timeout.
    Hang,
    /// Sends an honest answer byte by byte, and never its end.
    Drip,
    /// An error: status, headers, body.
    Status(&'static str, &'static str, &'static str),
    /// This body in place of an answer, with a success status.
    Body(&'static str, &'static [u8]),
    /// A body that is longer than any answer.
    Huge,
    /// An answer with this text and finish reason.
    Says(&'static str, &'static str),
    /// A field of the answer is replaced: path in it, value.
    With(&'static str, &'static str),
    /// An honest answer with other counts of tokens.
    Usage(&'static str),
    /// An honest answer with these headers.
    Headers(&'static str),
    /// An error that repeats the key, in its header and escaped.
    Echo,
}

/// The effect on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No answer: the run has the same result as without it.
    Trouble,
    /// An answer of some kind, possibly a bad one.
    Answer,
    /// The run stops, and can be resumed.
    Stops,
}
use Kind::{Answer, Stops, Trouble};

/// All behaviours.
pub const BEHAVIOURS: &[(&str, Kind, Act)] = &[
    // Connections.
    ("reset", Trouble, Act::Reset),
    ("close", Trouble, Act::Close),
    ("garbage", Trouble, Act::Raw(b"\x00\xff\x16\x03\x01 nothing of this is HTTP\r\n\r\n")),
    ("half-status-line", Trouble, Act::Raw(b"HTTP/1.1 20")),
    ("status-abc", Trouble, Act::Raw(b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n")),
    ("http-9.9", Trouble, Act::Raw(b"HTTP/9.9 200 OK\r\nContent-Length: 2\r\n\r\n{}")),
    ("http-0.9", Trouble, Act::Raw(b"{\"choices\": []}")),
    ("http-2-preface", Trouble, Act::Raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
    ("tls-alert", Trouble, Act::Raw(b"\x15\x03\x01\x00\x02\x02\x28")),
    ("cut-headers", Trouble, Act::Raw(b"HTTP/1.1 200 OK\r\nContent-Ty")),
    ("header-without-colon", Trouble, Act::Raw(b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n{}")),
    ("header-with-nul", Trouble, Act::Raw(b"HTTP/1.1 200 OK\r\nX-A: \x00\r\nContent-Length: 2\r\n\r\n{}")),
    ("two-lengths", Trouble, Act::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 90\r\n\r\n{}")),
    ("length-of-words", Trouble, Act::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}")),
    ("length-too-long", Trouble, Act::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{\"choices\": [")),
    ("chunk-of-words", Trouble, Act::Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n")),
    ("chunk-without-end", Trouble, Act::Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"cho\r\n")),
    ("continue-and-close", Trouble, Act::Raw(b"HTTP/1.1 100 Continue\r\n\r\n")),
    ("upgrade", Stops, Act::Raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")),
    ("cut-at-the-start", Trouble, Act::Cut(0)),
    ("cut-in-the-middle", Trouble, Act::Cut(500)),
    ("cut-at-the-end", Trouble, Act::Cut(995)),
    ("cut-chunks", Trouble, Act::CutChunks),
    ("hang", Trouble, Act::Hang),
    ("drip", Trouble, Act::Drip),
    // Statuses.
    ("408", Trouble, Act::Status("408 Request Timeout", "", "")),
    ("409", Trouble, Act::Status("409 Conflict", "", "{\"error\": {\"message\": \"conflict\"}}")),
    ("429", Trouble, Act::Status("429 Too Many Requests", "", "{\"error\": {\"message\": \"slow down\"}}")),
    ("429-now", Trouble, Act::Status("429 Too Many Requests", "Retry-After: 0\r\n", "")),
    ("429-negative", Trouble, Act::Status("429 Too Many Requests", "Retry-After: -5\r\n", "")),
    ("429-past", Trouble, Act::Status("429 Slow", "Retry-After: Sat, 21 Nov 2015 07:00:00 GMT\r\n", "")),
    ("429-words", Trouble, Act::Status("429 Slow", "Retry-After: in a while\r\n", "")),
    ("429-soon", Trouble, Act::Status("429 Slow", "Retry-After-Ms: 20\r\n", "")),
    ("500", Trouble, Act::Status("500 Internal Server Error", "", "{\"error\": \"oops\"}")),
    ("500-page", Trouble, Act::Status("500 Internal Server Error", "Content-Type: text/html\r\n", "<html>oops</html>")),
    ("501", Trouble, Act::Status("501 Not Implemented", "", "")),
    ("502-page", Trouble, Act::Status("502 Bad Gateway", "Content-Type: text/html\r\n", "<html>Bad Gateway</html>")),
    ("503", Trouble, Act::Status("503 Service Unavailable", "", "down")),
    ("503-now", Trouble, Act::Status("503 Service Unavailable", "Retry-After: 0\r\n", "")),
    ("504", Trouble, Act::Status("504 Gateway Timeout", "", "")),
    ("520", Trouble, Act::Status("520 Unknown", "", "")),
    ("529", Trouble, Act::Status("529 Overloaded", "", "{\"error\": {\"type\": \"overloaded_error\"}}")),
    ("599", Trouble, Act::Status("599 Odd", "", "\u{0}\u{1}\u{2}")),
    ("400-of-schemas", Answer, Act::Status("400 Bad Request", "", "{\"error\": {\"message\": \"response_format?\"}}")),
    ("400-stray", Answer, Act::Status("400 Bad Request", "", "{\"error\": {\"message\": \"stray\"}}")),
    ("400-plain", Answer, Act::Status("400 Bad Request", "", "no")),
    ("422-stray", Answer, Act::Status("422 Unprocessable", "", "{\"detail\": [{\"loc\": [\"body\"], \"msg\": \"odd\"}]}")),
    ("413", Answer, Act::Status("413 Too Large", "", "")),
    ("418", Answer, Act::Status("418 I'm a teapot", "", "short and stout")),
    ("425", Answer, Act::Status("425 Too Early", "", "")),
    ("451", Answer, Act::Status("451 Unavailable For Legal Reasons", "", "")),
    ("400-filter", Answer, Act::Status("400 No", "", "{\"error\": {\"message\": \"no!\", \"code\": \"content_filter\"}}")),
    ("401", Stops, Act::Status("401 Unauthorized", "", "{\"error\": \"who are you\"}")),
    ("402", Stops, Act::Status("402 Payment Required", "", "")),
    ("403", Stops, Act::Status("403 Forbidden", "", "<html>")),
    ("404", Stops, Act::Status("404 Not Found", "", "nothing here")),
    ("429-quota", Stops, Act::Status("429 No", "", "{\"error\": {\"message\": \"x\", \"type\": \"insufficient_quota\"}}")),
    ("301", Stops, Act::Status("301 Moved Permanently", "Location: http://127.0.0.1:1/v1\r\n", "")),
    ("302", Stops, Act::Status("302 Found", "Location: http://127.0.0.1:1/v1\r\n", "")),
    ("304", Stops, Act::Status("304 Not Modified", "", "")),
    ("307", Stops, Act::Status("307 Temporary Redirect", "Location: http://127.0.0.1:1/v1\r\n", "")),
    ("308", Stops, Act::Status("308 Permanent Redirect", "Location: http://127.0.0.1:1/v1\r\n", "")),
    ("700", Stops, Act::Status("700 What", "", "")),
    ("echo-of-the-key", Stops, Act::Echo),
    (
        "escapes-for-the-terminal",
        Stops,
        Act::Status("401 No", "", "{\"error\": {\"message\": \"\\u001b]52;c;aGk=\\u0007\\u001b[2J\\u202e\"}}"),
    ),
    // Bodies.
    ("204", Trouble, Act::Status("204 No Content", "", "")),
    ("empty", Trouble, Act::Body("application/json", b"")),
    ("page", Trouble, Act::Body("text/html", b"<!doctype html><p>Sign in")),
    ("page-as-json", Trouble, Act::Body("application/json", b"<html>Sign in")),
    ("truncated", Trouble, Act::Body("application/json", b"{\"choices\": [{\"message\": {\"content\": \"{\\\"answ")),
    ("error-503-inside", Trouble, Act::Body("application/json", b"{\"error\": {\"message\": \"busy\", \"code\": 503}}")),
    ("error-server-inside", Trouble, Act::Body("application/json", b"{\"error\": {\"type\": \"server_error\"}}")),
    ("error-rate-inside", Trouble, Act::Body("application/json", b"{\"error\": {\"type\": \"rate_limit_exceeded\"}}")),
    ("error-odd-inside", Answer, Act::Body("application/json", b"{\"error\": {\"message\": \"odd\", \"code\": \"odd\"}}")),
    ("words", Answer, Act::Body("text/plain", b"Internal error")),
    ("null-body", Answer, Act::Body("application/json", b"null")),
    ("list-body", Answer, Act::Body("application/json", b"[1, 2]")),
    ("number-body", Answer, Act::Body("application/json", b"7")),
    ("no-choices", Answer, Act::Body("application/json", b"{}")),
    ("choices-null", Answer, Act::Body("application/json", b"{\"choices\": null}")),
    ("choices-empty", Answer, Act::Body("application/json", b"{\"choices\": []}")),
    ("choices-number", Answer, Act::Body("application/json", b"{\"choices\": 3}")),
    ("not-utf-8", Answer, Act::Body("application/json", b"{\"choices\": \"\xff\xfe\"}")),
    ("byte-order-mark", Answer, Act::Body("application/json", b"\xef\xbb\xbf{\"choices\": []}")),
    ("nan", Answer, Act::Body("application/json", b"{\"choices\": NaN}")),
    ("deep", Answer, Act::Body("application/json", &[b'['; 100_000])),
    ("huge", Answer, Act::Huge),
    ("content-null", Answer, Act::With("/choices/0/message/content", "null")),
    ("content-number", Answer, Act::With("/choices/0/message/content", "7")),
    ("content-list", Answer, Act::With("/choices/0/message/content", "[{\"type\": \"text\", \"text\": \"7\"}]")),
    ("content-empty", Answer, Act::Says("", "stop")),
    ("content-spaces", Answer, Act::Says(" \n\t ", "stop")),
    ("cut-by-length", Answer, Act::Says("{\"answer\": 4", "length")),
    ("filtered", Answer, Act::Says("{\"answer\": 4}", "content_filter")),
    ("not-json", Answer, Act::Says("I would guess about 40 or so.", "stop")),
    ("out-of-bounds", Answer, Act::Says("{\"answer\": 1e300}", "stop")),
    ("not-a-number", Answer, Act::Says("{\"answer\": NaN}", "stop")),
    ("other-field", Answer, Act::Says("{\"guess\": 4}", "stop")),
    ("fields-twice", Answer, Act::Says("{\"answer\": 4, \"answer\": 5}", "stop")),
    ("escapes", Answer, Act::Says("\u{1b}[2J\u{202e}{\"answer\": 4}", "stop")),
    ("refusal", Answer, Act::With("/choices/0/message/refusal", "\"I cannot help with that.\"")),
    ("tool-call", Answer, Act::With("/choices/0/message/tool_calls", "[{\"id\": \"a\", \"function\": {\"name\": \"x\"}}]")),
    ("stream-unasked", Answer, Act::Body("text/event-stream", b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"4\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")),
    // Honest answers with strange company.
    ("usage-missing", Answer, Act::Usage("null")),
    ("usage-empty", Answer, Act::Usage("{}")),
    ("usage-total-only", Answer, Act::Usage("{\"total_tokens\": 9}")),
    ("usage-zeros", Answer, Act::Usage("{\"prompt_tokens\": 0, \"completion_tokens\": 0, \"total_tokens\": 0}")),
    ("usage-ones", Answer, Act::Usage("{\"prompt_tokens\": 1, \"completion_tokens\": 1}")),
    ("usage-negative", Answer, Act::Usage("{\"prompt_tokens\": -3, \"completion_tokens\": -9}")),
    ("usage-floats", Answer, Act::Usage("{\"prompt_tokens\": 1.5, \"completion_tokens\": 2.5}")),
    ("usage-words", Answer, Act::Usage("{\"prompt_tokens\": \"12\", \"completion_tokens\": \"9\"}")),
    ("usage-prompt-only", Answer, Act::Usage("{\"prompt_tokens\": 9}")),
    ("usage-reply-only", Answer, Act::Usage("{\"completion_tokens\": 9}")),
    ("header-of-100-kb", Answer, Act::Headers("long")),
    ("headers-by-the-hundred", Answer, Act::Headers("many")),
    ("set-cookie", Answer, Act::Headers("Set-Cookie: a=b\r\nAlt-Svc: h2=\"evil:443\"\r\nRefresh: 0; url=http://127.0.0.1:1/\r\n")),
    ("limits-of-nonsense", Answer, Act::Headers("x-ratelimit-limit-requests: nan\r\nx-ratelimit-remaining-requests: -4\r\n")),
];

/// When it misbehaves.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// With this probability, drawn by this seed and the number of the request.
    Drawn(f64, u64),
    /// With this request alone.
    Once(u64),
    /// With requests that want a schema, among the first ones.
    Schemas(u64),
}

/// Its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Books {
    /// Questions received, in whole or in part.
    pub requests: u64,
    /// Questions with an honest answer, whether it arrived or not.
    pub answered: u64,
    /// Tokens of these.
    pub tokens: u64,
    /// Requests with `response_format`.
    pub with_schema: u64,
}

/// See the module. Serves until dropped.
pub struct Hostile {
    address: SocketAddr,
    inside: Arc<Inside>,
    accepting: Arc<AtomicBool>,
}

struct Inside {
    honest: MockServer,
    acts: Vec<Act>,
    when: When,
    latency: Duration,
    count: AtomicU64,
    books: Mutex<Books>,
}

impl Hostile {
    /// Performs one of `acts` when it misbehaves; otherwise honest, after `latency`.
    pub fn start(acts: Vec<Act>, when: When, latency: Duration) -> Self {
        let honest = MockServer::start(Options::default()).unwrap();
        let books = Mutex::default();
        let inside = Inside { honest, acts, when, latency, count: AtomicU64::new(0), books };
        let mut hostile =
            Hostile { address: ([127, 0, 0, 1], 0).into(), inside: Arc::new(inside), accepting: Arc::default() };
        hostile.open();
        hostile
    }

    /// Performs this with a probability.
    pub fn named(name: &str, probability: f64, seed: u64) -> Self {
        Hostile::start(vec![act(name)], When::Drawn(probability, seed), Duration::ZERO)
    }

    /// Always honest.
    pub fn honest() -> Self {
        Hostile::named("reset", 0.0, 0)
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn books(&self) -> Books {
        *self.inside.books.lock().unwrap()
    }

    /// Starts to serve, at the same address as before.
    pub fn open(&mut self) {
        let listener = loop {
            // A recently closed address may still be held by the system.
            match TcpListener::bind(self.address) {
                Ok(listener) => break listener,
                Err(_) => sleep(Duration::from_millis(20)),
            }
        };
        self.address = listener.local_addr().unwrap();
        let accepting = Arc::new(AtomicBool::new(true));
        self.accepting = accepting.clone();
        let inside = self.inside.clone();
        spawn(move || {
            for tcp in listener.incoming() {
                if !accepting.load(SeqCst) {
                    return;
                }
                let inside = inside.clone();
                spawn(move || drop(tcp.and_then(|tcp| inside.serve(tcp))));
            }
        });
    }

    /// Stops serving: the address is unreachable.
    pub fn close(&mut self) {
        self.accepting.store(false, SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        while TcpStream::connect(self.address).is_ok() {
            sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.accepting.store(false, SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// Returns the behaviour of this name.
pub fn act(name: &str) -> Act {
    BEHAVIOURS.iter().find(|(of, ..)| *of == name).unwrap_or_else(|| panic!("no behaviour {name}")).2
}

struct Request {
    path: String,
    key: String,
    body: Vec<u8>,
}

fn read(tcp: &TcpStream) -> Option<Request> {
    let mut from = BufReader::new(tcp);
    let mut line = String::new();
    from.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (mut length, mut key) = (0, String::new());
    loop {
        let mut header = String::new();
        from.read_line(&mut header).ok()?;
        let header = header.trim();
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':')?;
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => key = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    Some(Request { path, key, body })
}

impl Inside {
    fn serve(&self, mut tcp: TcpStream) -> std::io::Result<()> {
        let mut first = [0u8; 1];
        if tcp.peek(&mut first)? == 0 {
            return Ok(());
        }
        // Requests about models, which are not questions, are answered honestly.
        if first[0] == b'G' {
            if let Some(request) = read(&tcp) {
                let (status, body) = self.honest("GET", &request);
                return respond(&mut tcp, &status, "", &body);
            }
            return Ok(());
        }
        let number = self.count.fetch_add(1, SeqCst);
        self.books.lock().unwrap().requests += 1;
        let (probability, seed) = match self.when {
            When::Drawn(probability, seed) => (probability, seed),
            When::Once(_) | When::Schemas(_) => (0.0, 0),
        };
        let mut draws = Draws::new(seed, Stream::Driver, 0, number as u32);
        let mut hostile = draws.chance(probability) || matches!(self.when, When::Once(n) if n == number);
        let act = self.acts[draws.below(self.acts.len() as u64) as usize];
        if hostile && matches!(act, Act::Reset) {
            // Unread bytes make the system reset the connection.
            return Ok(());
        }
        let Some(request) = read(&tcp) else { return Ok(()) };
        let question: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let schema = question.get("response_format").is_some();
        self.books.lock().unwrap().with_schema += u64::from(schema);
        hostile |= schema && matches!(self.when, When::Schemas(n) if number < n);
        sleep(self.latency);
        if !hostile {
            let (status, body) = self.answer(&request);
            return respond(&mut tcp, &status, "", &body);
        }
        self.misbehave(act, &request, tcp)
    }

    /// Returns an honest answer and counts it.
    fn answer(&self, request: &Request) -> (String, Vec<u8>) {
        let (status, body) = self.honest("POST", request);
        let mut books = self.books.lock().unwrap();
        if status.starts_with("200") {
            let usage = serde_json::from_slice::<Value>(&body).unwrap()["usage"].clone();
            books.answered += 1;
            books.tokens += usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
        }
        (status, body)
    }

    fn honest(&self, method: &str, request: &Request) -> (String, Vec<u8>) {
        let root = self.honest.root();
        let mut tcp = TcpStream::connect(root.trim_start_matches("http://")).unwrap();
        let Request { path, key, body } = request;
        write!(
            tcp,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        )
        .unwrap();
        tcp.write_all(body).unwrap();
        let mut all = Vec::new();
        tcp.read_to_end(&mut all).unwrap();
        let end = all.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&all[..end]).into_owned();
        let status = head.lines().next().unwrap().trim_start_matches("HTTP/1.1 ").to_owned();
        (status, all[end + 4..].to_vec())
    }

    /// Returns an honest answer with something replaced.
    fn altered(&self, request: &Request, alter: impl FnOnce(&mut Value)) -> Vec<u8> {
        let (_, body) = self.answer(request);
        let mut body: Value = serde_json::from_slice(&body).unwrap();
        alter(&mut body);
        body.to_string().into_bytes()
    }

    fn misbehave(&self, act: Act, request: &Request, mut tcp: TcpStream) -> std::io::Result<()> {
        let json = "Content-Type: application/json\r\n";
        match act {
            Act::Reset | Act::Close => Ok(()),
            Act::Raw(bytes) => tcp.write_all(bytes),
            Act::Cut(thousandths) => {
                let (_, body) = self.answer(request);
                let head = format!("HTTP/1.1 200 OK\r\n{json}Content-Length: {}\r\n\r\n", body.len());
                tcp.write_all(head.as_bytes())?;
                tcp.write_all(&body[..body.len() * thousandths / 1000])
            }
            Act::CutChunks => {
                let (_, body) = self.answer(request);
                write!(tcp, "HTTP/1.1 200 OK\r\n{json}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len())?;
                tcp.write_all(&body)?;
                tcp.write_all(b"\r\n")
            }
            Act::Hang => {
                sleep(Duration::from_secs(20));
                Ok(())
            }
            Act::Drip => {
                let (_, body) = self.answer(request);
                write!(tcp, "HTTP/1.1 200 OK\r\n{json}Content-Length: {}\r\n\r\n", body.len() + 1)?;
                for byte in body {
                    tcp.write_all(&[byte])?;
                    sleep(Duration::from_millis(50));
                }
                sleep(Duration::from_secs(20));
                Ok(())
            }
            Act::Status(status, headers, body) => respond(&mut tcp, status, headers, body.as_bytes()),
            Act::Body(kind, body) => respond(&mut tcp, "200 OK", &format!("Content-Type: {kind}\r\n"), body),
            Act::Huge => respond(&mut tcp, "200 OK", json, &vec![b' '; 11_000_000]),
            Act::Says(words, reason) => {
                let body = self.altered(request, |body| {
                    body["choices"][0]["message"]["content"] = json!(words);
                    body["choices"][0]["finish_reason"] = json!(reason);
                });
                respond(&mut tcp, "200 OK", json, &body)
            }
            Act::With(path, value) => {
                let value: Value = serde_json::from_str(value).unwrap();
                let body = self.altered(request, |body| {
                    let (parent, name) = path.rsplit_once('/').unwrap();
                    body.pointer_mut(parent).unwrap()[name] = value;
                });
                respond(&mut tcp, "200 OK", json, &body)
            }
            Act::Usage(usage) => {
                let usage: Value = serde_json::from_str(usage).unwrap();
                let body = self.altered(request, |body| body["usage"] = usage);
                respond(&mut tcp, "200 OK", json, &body)
            }
            Act::Headers(headers) => {
                let (_, body) = self.answer(request);
                let headers = match headers {
                    "long" => format!("X-Long: {}\r\n", "a".repeat(100_000)),
                    "many" => (0..90).map(|i| format!("X-{i}: {i}\r\n")).collect(),
                    headers => headers.to_owned(),
                };
                respond(&mut tcp, "200 OK", &format!("{json}{headers}"), &body)
            }
            Act::Echo => {
                let escaped: String = request.key.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
                let body = format!("{{\"error\": {{\"message\": \"not {} and not {escaped}\"}}}}", request.key);
                respond(&mut tcp, "401 Unauthorized", json, body.as_bytes())
            }
        }
    }
}

fn respond(tcp: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let length = match status.starts_with("204") || status.starts_with("304") {
        true => String::new(),
        false => format!("Content-Length: {}\r\n", body.len()),
    };
    tcp.write_all(format!("HTTP/1.1 {status}\r\n{headers}{length}Connection: close\r\n\r\n").as_bytes())?;
    tcp.write_all(body)
}
