//! `http`: requests to hosts on a list. README.md says what is checked.

mod fetch;
mod hosts;
#[cfg(test)]
mod tests;

pub(super) use fetch::{Asked, Fetched, Fetcher};

use super::marks::between_marks;
use super::{Calling, Toolkit};
use crate::models::ProviderError;
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use polity_kernel::Invalid;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::tool::{Arguments, EffectClass, OutsideToolkit, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

/// The toolkit's name.
pub const NAME: &str = "http";
/// Methods of `http_request`.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
/// Headers that the client sets, or that steer proxies and connections.
const OWN: [&str; 10] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
    "keep-alive",
];

/// What a scenario may set.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpParams {
    /// The hosts that may be asked: `example.org`, `*.example.org` for all hosts below it, each at the standard ports; or with a port,
    /// `127.0.0.1:8080`. Hosts on this machine or in its network must be listed with their port.
    pub hosts: Vec<String>,
    /// Bytes of a body that are read, 100 to 10,000,000.
    #[serde(default = "default_bytes")]
    pub bytes: usize,
    /// Seconds that a call may take, redirects included, 1 to 600.
    #[serde(default = "default_seconds")]
    pub seconds: u64,
}

fn default_bytes() -> usize {
    50_000
}

fn default_seconds() -> u64 {
    20
}

/// Adds the declaration.
pub(super) fn register(registry: &mut Registry) {
    registry.outside_toolkit::<Http>(LeafFiles { readme: include_str!("README.md"), ..LeafFiles::default() });
}

impl OutsideToolkit for Http {
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "Requests to listed hosts";
    type Params = HttpParams;

    fn tools(params: HttpParams, _: Option<&[ToolSpec]>) -> Result<Vec<ToolSpec>, Invalid> {
        Http::open(&params).map(|_| specs())
    }
}

/// The toolkit.
pub struct Http {
    fetcher: Fetcher,
    bytes: usize,
}

impl Http {
    /// Checks the parameters; nothing is asked yet.
    ///
    /// # Errors
    /// The parameter that does not fit.
    pub fn open(params: &HttpParams) -> Result<Self, Invalid> {
        Invalid::within(100..=10_000_000, "bytes", params.bytes)?;
        Invalid::within(1..=600, "seconds", params.seconds)?;
        Invalid::unless(!params.hosts.is_empty(), "hosts", "must name at least one host")?;
        let fetcher = Fetcher::new(&params.hosts, params.seconds);
        let fetcher = fetcher.map_err(|message| Invalid { key: "hosts".into(), message })?;
        Ok(Http { fetcher, bytes: params.bytes })
    }

    async fn ask(&self, asked: Result<Asked, String>) -> ToolOutput {
        let asked = match asked {
            Ok(asked) => asked,
            Err(why) => return ToolOutput::error(why),
        };
        match self.fetcher.fetch(asked, self.bytes).await {
            Ok(fetched) => ToolOutput { error: fetched.status.as_u16() >= 400, ..ToolOutput::text(fetched.shown()) },
            Err(why) => ToolOutput::error(polity_store::printable::printable(&why).into_owned()),
        }
    }
}

fn specs() -> Vec<ToolSpec> {
    let url = json!({"type": "string", "description": "an http or https address"});
    let get = json!({
        "type": "object", "properties": {"url": url}, "required": ["url"], "additionalProperties": false,
    });
    let request = json!({
        "type": "object",
        "properties": {
            "method": {"type": "string", "enum": METHODS},
            "url": url,
            "body": {"type": "string"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["method", "url"],
        "additionalProperties": false,
    });
    let (gets, requests) = ("Gets the text at an address.", "Sends a request to an address and shows the answer.");
    vec![
        ToolSpec::new("http_get", gets, &get, EffectClass::Reads),
        ToolSpec::new("http_request", requests, &request, EffectClass::Outside),
    ]
}

impl Toolkit for Http {
    fn tools(&self) -> Vec<ToolSpec> {
        specs()
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Arguments, _: &'a str) -> Calling<'a> {
        Box::pin(async move {
            let asked = match tool {
                "http_get" => address(arguments).map(Asked::get),
                "http_request" => request(arguments),
                other => {
                    return Err(ProviderError::Never { why: format!("the toolkit `{NAME}` has no tool `{other}`") });
                }
            };
            Ok(self.ask(asked).await)
        })
    }
}

fn text<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn address(arguments: &Arguments) -> Result<Url, String> {
    let url = text(arguments, "url");
    Url::parse(url.trim()).map_err(|error| format!("`url` is no address ({error}): write `https://host/path`"))
}

fn request(arguments: &Arguments) -> Result<Asked, String> {
    let url = address(arguments)?;
    let method = text(arguments, "method");
    let known = METHODS.contains(&method).then(|| Method::from_bytes(method.as_bytes()).ok()).flatten();
    let method = known.ok_or_else(|| format!("`method` must be one of {}", METHODS.join(", ")))?;
    let mut headers = HeaderMap::new();
    for (name, value) in arguments.get("headers").and_then(Value::as_object).into_iter().flatten() {
        let wrong =
            |why: &str| format!("the header `{}` is refused: {why}", polity_store::printable::on_one_line(name));
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("this is no name of a header"))?;
        if OWN.contains(&parsed.as_str()) || parsed.as_str().starts_with("proxy-") {
            return Err(wrong("the client sets it itself"));
        }
        let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
        headers.insert(parsed, value.ok_or_else(|| wrong("its value must be a text without line breaks"))?);
    }
    Ok(Asked { method, url, headers, body: text(arguments, "body").to_string() })
}

impl Fetched {
    /// Status, address and type, and the body between marks.
    fn shown(&self) -> String {
        let kind = match self.content_type.as_str() {
            "" => "no type given",
            kind => &polity_store::printable::on_one_line(kind),
        };
        let reason = self.status.canonical_reason().unwrap_or_default();
        let head = format!("{} {reason}, {kind}, from {}", self.status.as_u16(), self.url);
        if self.body.is_empty() {
            return format!("{head}\nThe body is empty.");
        }
        let Some((body, note)) = self.text() else {
            return format!("{head}\nThe body is no text, so it is not shown ({} bytes were read).", self.body.len());
        };
        let mut out = format!("{head}\n{}", between_marks("body", &polity_store::printable::printable(&body)));
        out.push_str(note);
        if self.cut {
            let of = self.length.map(|length| format!(" of {length}")).unwrap_or_default();
            out.push_str(&format!("\nThe body is cut: these are its first {}{of} bytes.", self.body.len()));
        }
        out
    }

    /// The body as a text, and a note on how it was read; `None` if it is none.
    pub(super) fn text(&self) -> Option<(String, &'static str)> {
        if self.body.contains(&0)
            || ["image/", "audio/", "video/", "font/"].iter().any(|kind| self.content_type.starts_with(kind))
        {
            return None;
        }
        if let Ok(text) = std::str::from_utf8(&self.body) {
            return Some((text.into(), ""));
        }
        if ["iso-8859-1", "latin1", "us-ascii"].iter().any(|name| self.content_type.contains(name)) {
            return Some((self.body.iter().map(|&byte| char::from(byte)).collect(), ""));
        }
        // The end may be in the middle of a character.
        let whole = match std::str::from_utf8(&self.body) {
            Err(error) if self.cut && error.error_len().is_none() => &self.body[..error.valid_up_to()],
            _ => &self.body[..],
        };
        match String::from_utf8_lossy(whole) {
            std::borrow::Cow::Borrowed(text) => Some((text.into(), "")),
            std::borrow::Cow::Owned(text) => Some((text, "\nBytes that are no UTF-8 are shown as U+FFFD.")),
        }
    }
}
