//! Sends spans in the background: those that do not fit into the queue are dropped and counted, and only the end of the process waits for
//! a receiver, for a limited time.

use super::otlp::{Span, rejected, request};
use crate::source::Notes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Method, Uri};
use hyper::body::Bytes;
use polity_models::http::{Client, Failure, uri, whole, within};
use polity_models::models::keys::{Stands, Variables};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, Sender};
use url::Url;

/// Default address of a receiver on this machine.
const HERE: &str = "http://127.0.0.1:4318";
/// Maximum waiting spans, and their bytes.
const QUEUE: usize = 1 << 14;
const QUEUE_BYTES: usize = 64 << 20;
/// Maximum bytes of an answer.
const LONGEST_ANSWER: usize = 1 << 20;
/// Maximum spans per request; its bytes are limited, too.
const BATCH: usize = 512;
const BATCH_BYTES: usize = 2 << 20;
/// How long spans are collected.
const LINGER: Duration = Duration::from_millis(500);
/// Timeout of a request, number of tries, and the first pause between them.
const PATIENCE: Duration = Duration::from_secs(10);
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);
/// Maximum wait a receiver may request.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long the end of the process waits for remaining spans.
const AT_THE_END: Duration = Duration::from_secs(5);

/// Where traces go. Clones share one queue.
#[derive(Clone)]
pub struct Traces(Arc<Queue>);

struct Queue {
    /// Safe to show.
    shown: String,
    content: bool,
    spans: Mutex<Option<Sender<Span>>>,
    counts: Arc<Counts>,
    ended: Mutex<mpsc::Receiver<()>>,
}

#[derive(Default)]
struct Counts {
    made: AtomicU64,
    delivered: AtomicU64,
    /// Bytes of waiting spans.
    bytes: AtomicUsize,
    /// The last error.
    trouble: Mutex<Option<String>>,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("to", &self.0.shown).finish_non_exhaustive()
    }
}

/// The receiver.
struct Place {
    url: Url,
    shown: String,
    headers: HeaderMap,
}

impl Place {
    /// From the address of a receiver, to which the path of traces is added; or from OpenTelemetry's variables, if it is `env`.
    fn of(address: &str, notes: &Notes) -> Result<Place, String> {
        if address != "env" {
            return Place::new(address, false, "");
        }
        let [whole, base] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
        let headers = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
        let variables = Variables::here()?;
        let (address, headers) = variables.together(&[whole, base], &headers)?;
        variables.ignored.iter().for_each(|ignored| notes.tell(ignored));
        let headers = headers.map(|headers| headers.value).unwrap_or_default();
        let Some(address) = address else { return Place::new(HERE, false, &headers) };
        let place = Place::new(&address.value, address.name == whole, &headers)?;
        if let Stands::File(_) = address.stands {
            notes.tell(&format!("traces go to {}, as set by {} in {}", place.shown, address.name, address.stands));
        }
        Ok(place)
    }

    /// `whole`: whether the address includes the path. `headers`: `name=value,...`.
    fn new(address: &str, whole: bool, headers: &str) -> Result<Place, String> {
        // The text before an @ may be a password, and the text after a ? a key.
        let shown = |text: &str| text.rsplit('@').next().and_then(|text| text.split('?').next().map(str::to_owned));
        let no_address = || {
            format!(
                "--otlp: `{}` is not the address of a receiver, which begins with http:// or https://, for instance \
                 {HERE}; `env` uses OTEL_EXPORTER_OTLP_ENDPOINT",
                shown(address).unwrap_or_default()
            )
        };
        let mut url =
            Url::parse(address).ok().filter(|url| ["http", "https"].contains(&url.scheme())).ok_or_else(no_address)?;
        if !whole && let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["v1", "traces"]);
        }
        let mut map = HeaderMap::new();
        for header in headers.split(',').map(str::trim).filter(|header| !header.is_empty()) {
            let wrong = || "OTEL_EXPORTER_OTLP_HEADERS: it must be NAME=VALUE,NAME=VALUE".to_owned();
            let (name, value) = header.split_once('=').ok_or_else(wrong)?;
            let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
            let mut value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
            value.set_sensitive(true);
            map.insert(name, value);
        }
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        Ok(Place { shown: shown(url.as_str()).unwrap_or_default(), url, headers: map })
    }
}

impl Traces {
    /// Creates traces for a receiver of OTLP over HTTP: its address (`http://127.0.0.1:4318`), or `env` for OpenTelemetry's variables.
    /// `content`: whether to include prompts and answers. `notes` receives errors.
    pub fn new(address: &str, content: bool, notes: Notes) -> Result<Traces, String> {
        let place = Place::of(address, &notes)?;
        let client = Client::new(&place.url, &place.headers, PATIENCE).map_err(|why| format!("--otlp: {why}"))?;
        let address = uri(&place.url).map_err(|why| format!("--otlp: {why}"))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("--otlp: traces cannot be sent: {error}"))?;
        let (spans, queue) = tokio::sync::mpsc::channel(QUEUE);
        let (tell, ended) = mpsc::channel();
        let counts: Arc<Counts> = Arc::default();
        let shown = place.shown.clone();
        let export = Export { place, address, client, notes, counts: counts.clone() };
        let work = move || {
            runtime.block_on(export.serve(queue));
            // The receiver may be gone.
            let _ = tell.send(());
        };
        std::thread::Builder::new()
            .name("polity-traces".into())
            .spawn(work)
            .map_err(|error| format!("--otlp: a thread for traces cannot be started: {error}"))?;
        Ok(Traces(Arc::new(Queue { shown, content, spans: Mutex::new(Some(spans)), counts, ended: Mutex::new(ended) })))
    }

    pub(super) fn holds_content(&self) -> bool {
        self.0.content
    }

    /// Queues a span if there is space; never waits.
    pub(super) fn send(&self, span: Span) {
        let counts = &self.0.counts;
        counts.made.fetch_add(1, Ordering::SeqCst);
        let bytes = span.bytes();
        // The guarded data is valid even after a panic.
        let spans = self.0.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.bytes.load(Ordering::SeqCst) + bytes > QUEUE_BYTES {
            return;
        }
        counts.bytes.fetch_add(bytes, Ordering::SeqCst);
        // A span that does not fit is counted as undelivered.
        if spans.as_ref().is_none_or(|spans| spans.try_send(span).is_err()) {
            counts.bytes.fetch_sub(bytes, Ordering::SeqCst);
        }
    }

    /// Sends remaining spans, for five seconds at most. Returns a message about undelivered spans, if any.
    #[must_use]
    pub fn finish(&self) -> Option<String> {
        let Queue { shown, spans, counts, ended, .. } = &*self.0;
        drop(spans.lock().unwrap_or_else(PoisonError::into_inner).take());
        let waited = ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(AT_THE_END);
        let late = matches!(waited, Err(RecvTimeoutError::Timeout));
        let (made, delivered) = (counts.made.load(Ordering::SeqCst), counts.delivered.load(Ordering::SeqCst));
        (delivered < made).then(|| {
            let trouble = counts.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let why = trouble.unwrap_or_else(|| match late {
                true => format!("it took longer than {} s at the end", AT_THE_END.as_secs()),
                false => "they came faster than it accepted them".into(),
            });
            format!(
                "traces: {} of {made} spans did not reach {shown}: {why}. The run is not affected",
                made - delivered
            )
        })
    }
}

struct Export {
    place: Place,
    /// The request address.
    address: Uri,
    client: Client,
    notes: Notes,
    counts: Arc<Counts>,
}

impl Export {
    async fn serve(self, mut queue: Receiver<Span>) {
        while let Some(first) = queue.recv().await {
            let mut bytes = first.bytes();
            let mut batch = vec![first];
            let closes = tokio::time::Instant::now() + LINGER;
            while batch.len() < BATCH && bytes < BATCH_BYTES {
                let next = match queue.try_recv() {
                    Ok(span) => Some(span),
                    Err(TryRecvError::Disconnected) => None,
                    Err(TryRecvError::Empty) => tokio::time::timeout_at(closes, queue.recv()).await.ok().flatten(),
                };
                let Some(span) = next else { break };
                bytes += span.bytes();
                batch.push(span);
            }
            self.deliver(&batch).await;
            self.counts.bytes.fetch_sub(bytes, Ordering::SeqCst);
        }
    }

    /// Sends spans, with retries if needed (OTLP: 429, 502, 503 and 504 are retried, and no other answer).
    async fn deliver(&self, batch: &[Span]) {
        let body = Bytes::from(request(batch));
        for nth in 0..TRIES {
            let request = self.client.request(Method::POST, self.address.clone(), body.clone());
            let pause = PAUSE * 2u32.pow(nth);
            let (why, pause) = match within(PATIENCE, self.client.send(request)).await {
                Ok(answer) if answer.status().is_success() => {
                    // The receiver has them, whatever its message: a retry would duplicate them.
                    let told = within(PATIENCE, whole(answer, LONGEST_ANSWER)).await.ok();
                    let (count, words) = told.and_then(|told| rejected(&told.body)).unwrap_or_default();
                    self.counts.delivered.fetch_add((batch.len() as u64).saturating_sub(count), Ordering::SeqCst);
                    if count > 0 {
                        self.trouble(format!("it rejected {count} spans: {words}"));
                    }
                    return;
                }
                Ok(answer) => {
                    let status = answer.status();
                    let asked = answer.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
                    let why = format!("it answered {status}");
                    if ![429, 502, 503, 504].contains(&status.as_u16()) {
                        return self.trouble(why);
                    }
                    (why, asked.map_or(pause, Duration::from_secs).min(LONGEST_PAUSE))
                }
                Err(Failure::Late) => (format!("it did not answer within {} s", PATIENCE.as_secs()), pause),
                Err(Failure::Unreached(cause) | Failure::Broken(cause)) => {
                    (format!("it cannot be reached: {cause}"), pause)
                }
            };
            self.trouble(why);
            if nth + 1 < TRIES {
                tokio::time::sleep(pause).await;
            }
        }
    }

    fn trouble(&self, why: String) {
        self.notes.tell(&format!("traces: {}: {why}; the run continues without them", self.place.shown));
        *self.counts.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::otlp::{Attributes, Kind};
    use super::*;
    use std::net::TcpListener;
    use std::time::SystemTime;

    fn span(bytes: usize) -> Span {
        let now = SystemTime::now();
        let attributes = Attributes::default().text("text", "x".repeat(bytes));
        let name = "s".into();
        Span {
            trace: 1,
            id: 1,
            parent: None,
            name,
            kind: Kind::Internal,
            start: now,
            end: now,
            attributes,
            error: None,
        }
    }

    #[test]
    fn what_was_taken_is_not_sent_again_though_the_answer_breaks_off() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = std::thread::spawn(move || {
            let (mut tcp, _) = listener.accept().unwrap();
            // An answer before its request is ignored.
            assert!(std::io::Read::read(&mut tcp, &mut [0; 4096]).unwrap() > 0);
            std::io::Write::write_all(&mut tcp, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx").unwrap();
            tcp.shutdown(std::net::Shutdown::Write).unwrap();
            std::io::Read::read_to_end(&mut tcp, &mut Vec::new()).unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        });
        let traces = Traces::new(&format!("http://{address}"), false, Notes::default()).unwrap();
        traces.send(span(0));
        assert_eq!(traces.finish(), None);
        assert!(heard.join().unwrap().accept().is_err(), "it was sent again");
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        // Accepts connections and never answers.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let traces = Traces::new(&format!("http://{}", silent.local_addr().unwrap()), false, Notes::default()).unwrap();
        let waiting = |traces: &Traces| traces.0.counts.bytes.load(Ordering::SeqCst);
        (0..100).for_each(|_| traces.send(span(1 << 20)));
        assert!(waiting(&traces) <= QUEUE_BYTES && waiting(&traces) > QUEUE_BYTES - (2 << 20));
        (0..2 * QUEUE).for_each(|_| traces.send(span(0)));
        assert!(waiting(&traces) <= QUEUE_BYTES);
        let told = traces.finish().unwrap();
        let all = 2 * QUEUE + 100;
        assert!(told.starts_with(&format!("traces: {all} of {all} spans did not reach http://127.0.0.1:")), "{told}");
    }

    #[test]
    fn addresses_are_shown_without_secrets_and_keep_their_paths() {
        let shown = |address, whole| Place::new(address, whole, "").map(|place| (place.url.to_string(), place.shown));
        let (url, told) = shown("https://me:pass@collector.example/otlp/?key=k", false).unwrap();
        assert_eq!(url, "https://me:pass@collector.example/otlp/v1/traces?key=k");
        assert_eq!(told, "collector.example/otlp/v1/traces");
        assert_eq!(shown("http://a:1/x", true).unwrap().1, "http://a:1/x");
        assert!(!shown("me:pass@here?k=secret", false).unwrap_err().contains("pass"));
        assert!(Place::new(HERE, false, "a=1, b = 2").is_ok_and(|place| place.headers.len() == 3));
        assert!(Place::new(HERE, false, "a").is_err());
    }
}
