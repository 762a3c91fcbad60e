//! Streamable HTTP over the tree's own HTTP client.

use crate::limited::Watch;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use polity_models::http::{Client, Failure, piece};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::{Sse, SseStream};
use std::collections::HashMap;
use std::sync::Arc;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Why no complete answer arrived.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// The server never saw the request.
    #[error("no connection: {0}")]
    Unreached(String),
    #[error("the answer broke off: {0}")]
    Broken(String),
    #[error("{0}")]
    Cut(String),
    #[error("a message cannot be sent: {0}")]
    Unsendable(String),
}

impl From<Failure> for HttpError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unreached(why) => HttpError::Unreached(why),
            Failure::Late => HttpError::Broken("it timed out".into()),
            Failure::Broken(why) => HttpError::Broken(why),
        }
    }
}

type Answer<T> = Result<T, StreamableHttpError<HttpError>>;
type Events = BoxStream<'static, Result<Sse, SseError>>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// The HTTP side of a client.
#[derive(Clone)]
pub(crate) struct Http {
    client: Arc<Client>,
    address: Uri,
    watch: Arc<Watch>,
}

impl Http {
    pub fn new(client: Arc<Client>, address: Uri, watch: Arc<Watch>) -> Self {
        Http { client, address, watch }
    }

    fn request(
        &self,
        method: Method,
        body: Vec<u8>,
        session: Option<&str>,
        token: Option<String>,
        headers: Headers,
    ) -> Answer<Request<Full<Bytes>>> {
        let mut request = self.client.request(method, self.address.clone(), body);
        let map = request.headers_mut();
        map.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        map.extend(headers);
        if let Some(session) = session {
            map.insert(SESSION, header(session)?);
        }
        if let Some(token) = token {
            map.insert(AUTHORIZATION, header(&format!("Bearer {token}"))?);
        }
        Ok(request)
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Answer<Response<Incoming>> {
        let answer = self.client.send(request).await.map_err(|failure| StreamableHttpError::Client(failure.into()))?;
        let challenge = answer.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        if answer.status() == StatusCode::UNAUTHORIZED {
            let challenge = challenge.unwrap_or_default().to_owned();
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        Ok(answer)
    }

    /// Reads a body of at most `most` bytes; `whole`: more is an error, else it is cut.
    async fn body(&self, answer: Response<Incoming>, most: usize, whole: bool) -> Answer<Vec<u8>> {
        let mut from = answer.into_body();
        let mut body = Vec::new();
        while let Some(bytes) = piece(&mut from).await.map_err(|failure| StreamableHttpError::Client(failure.into()))? {
            self.watch.count(bytes.len()).map_err(|why| StreamableHttpError::Client(HttpError::Cut(why)))?;
            body.extend_from_slice(&bytes);
            if body.len() > most {
                if whole {
                    let why = self.watch.cut(format!("it sent a message of more than {most} bytes"));
                    return Err(StreamableHttpError::Client(HttpError::Cut(why)));
                }
                body.truncate(most);
                break;
            }
        }
        Ok(body)
    }

    /// The events of an answer. They end with an error when the answer breaks off, and when an event or all of them are too long.
    fn events(&self, answer: Response<Incoming>, most: usize) -> Events {
        let pending = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let bytes = self.clone().bytes(answer.into_body(), most, pending.clone());
        let events = SseStream::from_bytes_stream(Box::pin(bytes));
        events.inspect(move |_| pending.store(0, std::sync::atomic::Ordering::Relaxed)).boxed()
    }

    fn bytes(
        self,
        body: Incoming,
        most: usize,
        pending: Arc<std::sync::atomic::AtomicUsize>,
    ) -> impl Stream<Item = Result<Bytes, HttpError>> + Send {
        futures_util::stream::unfold(Some(body), move |body| {
            let (watch, pending) = (self.watch.clone(), pending.clone());
            async move {
                let mut body = body?;
                let bytes = match piece(&mut body).await {
                    Ok(bytes) => bytes?,
                    Err(failure) => return Some((Err(failure.into()), None)),
                };
                let held = pending.fetch_add(bytes.len(), std::sync::atomic::Ordering::Relaxed) + bytes.len();
                if held > most {
                    let why = watch.cut(format!("it sent a message of more than {most} bytes"));
                    return Some((Err(HttpError::Cut(why)), None));
                }
                match watch.count(bytes.len()) {
                    Ok(()) => Some((Ok(bytes), Some(body))),
                    Err(why) => Some((Err(HttpError::Cut(why)), None)),
                }
            }
        })
    }

    /// What an answer means that refuses a request.
    async fn refused(
        &self,
        message: &ClientJsonRpcMessage,
        in_session: bool,
        answer: Response<Incoming>,
        limits: StreamableHttpResponseLimits,
    ) -> Answer<StreamableHttpPostResponse> {
        let status = answer.status();
        let json = is(&answer, JSON) && status != StatusCode::FORBIDDEN;
        let session = session_of(&answer);
        let most = if json { limits.max_json_response_size } else { limits.max_error_response_size };
        let body = self.body(answer, most, json).await?;
        let said = serde_json::from_slice::<ServerJsonRpcMessage>(&body).ok();
        let said = said.filter(|said| json && matches!(said, JsonRpcMessage::Error(_)));
        let words = String::from_utf8_lossy(&body[..body.len().min(limits.max_error_response_size)]).into_owned();
        // A server of an older revision does not know `server/discover`; its error need not name the request.
        if let ClientJsonRpcMessage::Request(request) = message
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
            && !in_session
            && status.is_client_error()
            && status != StatusCode::FORBIDDEN
        {
            let error = match said {
                Some(JsonRpcMessage::Error(said)) => said.error,
                _ => ErrorData::invalid_request(format!("HTTP {status}: {words}"), None),
            };
            let error = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
        match said {
            Some(said) => Ok(StreamableHttpPostResponse::Json(said, session)),
            None if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
                Err(StreamableHttpError::HttpStatus(HttpStatusError::new(status.as_u16(), None)))
            }
            None => Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}: {words}").into())),
        }
    }
}

impl StreamableHttpClient for Http {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Answer<StreamableHttpPostResponse> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, token, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Answer<StreamableHttpPostResponse> {
        let body = serde_json::to_vec(&message)?;
        let mut request = self.request(Method::POST, body, session.as_deref(), token, headers)?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let answer = self.send(request).await?;
        let status = answer.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return self.refused(&message, session.is_some(), answer, limits).await;
        }
        let session = session_of(&answer);
        if is(&answer, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(answer, limits.max_sse_event_size), session));
        }
        // What needs no answer needs no body either: some servers answer `200` with whatever.
        if !matches!(message, ClientJsonRpcMessage::Request(_)) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !is(&answer, JSON) {
            let kind = answer.headers().get(CONTENT_TYPE);
            let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        let body = self.body(answer, limits.max_json_response_size, true).await?;
        match serde_json::from_slice(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(error) => {
                let start = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
                let why = format!("it answered what is no message ({error}): `{start}`");
                Err(StreamableHttpError::UnexpectedServerResponse(why.into()))
            }
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Answer<()> {
        let request = self.request(Method::DELETE, Vec::new(), Some(&session), token, headers)?;
        // A server may not support it (405), and no one waits for it.
        self.send(request).await.map(|_| ())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Answer<Events> {
        let most = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, most).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        _uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Answer<Events> {
        let mut request = self.request(Method::GET, Vec::new(), session.as_deref(), token, headers)?;
        if let Some(last) = last {
            request.headers_mut().insert(LAST_EVENT, header(&last)?);
        }
        let answer = self.send(request).await?;
        let status = answer.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !status.is_success() || !is(&answer, EVENTS) {
            let why = format!("it answered HTTP {status} when asked for a stream");
            return Err(StreamableHttpError::UnexpectedServerResponse(why.into()));
        }
        Ok(self.events(answer, most))
    }
}

fn header(text: &str) -> Answer<HeaderValue> {
    HeaderValue::from_str(text).map_err(|error| StreamableHttpError::Client(HttpError::Unsendable(error.to_string())))
}

/// Whether the body is of a media type.
fn is(answer: &Response<Incoming>, media: &str) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(media))
}

fn session_of(answer: &Response<Incoming>) -> Option<String> {
    answer.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The headers that a scenario gives; or which of them cannot be sent.
pub(crate) fn headers(given: &std::collections::BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let lower = name.to_ascii_lowercase();
        let own =
            ["accept", "content-type", "content-length", "host", "last-event-id", "transfer-encoding", "connection"];
        if own.contains(&lower.as_str()) || lower.starts_with("mcp-") {
            return Err(format!("`headers` may not set `{name}`, which the protocol sets"));
        }
        let name: HeaderName = lower.parse().map_err(|_| format!("`{name}` is no name of a header"))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of the header `{name}` has characters that cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
