//! OTLP encoding of spans: the messages of `opentelemetry/proto/trace/v1/trace.proto` and `collector/trace/v1`, in protobuf
//! (<https://protobuf.dev/programming-guides/encoding/>). Every receiver accepts this one of OTLP's two encodings; Arize Phoenix, for
//! one, refuses JSON.

use serde_json::Value as Json;
use std::borrow::Cow;
use std::time::SystemTime;

/// The side of a call that a span is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Within this process.
    Internal = 1,
    /// A call to another process.
    Client = 3,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(String),
    /// Signed and as wide as in the protocol.
    Int(i64),
    Float(f64),
    Flag(bool),
}

/// Attributes of a span, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Attributes(Vec<(Cow<'static, str>, Value)>);

impl Attributes {
    /// Adds a text; an empty one is omitted.
    pub(super) fn text(mut self, name: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.0.push((name.into(), Value::Text(text)));
        }
        self
    }

    pub(super) fn int(mut self, name: &'static str, value: impl Into<u64>) -> Self {
        self.0.push((name.into(), Value::Int(i64::try_from(value.into()).unwrap_or(i64::MAX))));
        self
    }

    /// Adds a number; non-finite ones are omitted, since JSON cannot hold them.
    pub(super) fn float(mut self, name: &'static str, value: f64) -> Self {
        if value.is_finite() {
            self.0.push((name.into(), Value::Float(value)));
        }
        self
    }

    pub(super) fn flag(mut self, name: &'static str, value: bool) -> Self {
        self.0.push((name.into(), Value::Flag(value)));
        self
    }

    /// Appends others.
    pub(super) fn and(mut self, others: Attributes) -> Self {
        self.0.extend(others.0);
        self
    }
}

/// A finished span.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    pub trace: u128,
    pub id: u64,
    pub parent: Option<u64>,
    pub name: String,
    pub kind: Kind,
    pub start: SystemTime,
    pub end: SystemTime,
    pub attributes: Attributes,
    /// An error and its message, which may be empty.
    pub error: Option<String>,
}

impl Span {
    /// Its approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let attribute = |(name, value): &(Cow<'static, str>, Value)| {
            let text = if let Value::Text(text) = value { text.len() } else { 0 };
            name.len() + text + 48
        };
        size_of::<Span>() + self.name.len() + self.attributes.0.iter().map(attribute).sum::<usize>()
    }
}

/// A message being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n > 0x7f {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    /// A field's number and wire type.
    fn tag(&mut self, field: u32, wire: u64) {
        self.varint(u64::from(field) << 3 | wire);
    }

    fn number(&mut self, field: u32, n: u64) {
        self.tag(field, 0);
        self.varint(n);
    }

    fn fixed(&mut self, field: u32, n: u64) {
        self.tag(field, 1);
        self.0.extend(n.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// Writes a nested message.
    fn within(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        let mut message = Message::default();
        write(&mut message);
        self.bytes(field, &message.0);
    }

    /// `repeated KeyValue`.
    fn attributes(&mut self, field: u32, attributes: &Attributes) {
        for (name, value) in &attributes.0 {
            self.within(field, |pair| {
                pair.bytes(1, name.as_bytes());
                pair.within(2, |any| match value {
                    Value::Text(text) => any.bytes(1, text.as_bytes()),
                    Value::Flag(flag) => any.number(2, u64::from(*flag)),
                    Value::Int(n) => any.number(3, *n as u64),
                    Value::Float(x) => any.fixed(4, x.to_bits()),
                });
            });
        }
    }

    fn span(&mut self, span: &Span) {
        self.bytes(1, &span.trace.to_be_bytes());
        self.bytes(2, &span.id.to_be_bytes());
        if let Some(parent) = span.parent {
            self.bytes(4, &parent.to_be_bytes());
        }
        self.bytes(5, span.name.as_bytes());
        self.number(6, span.kind as u64);
        self.fixed(7, nanos(span.start));
        self.fixed(8, nanos(span.end));
        self.attributes(9, &span.attributes);
        if let Some(words) = &span.error {
            self.within(15, |status| {
                status.bytes(2, words.as_bytes());
                // STATUS_CODE_ERROR
                status.number(3, 2);
            });
        }
    }
}

fn nanos(time: SystemTime) -> u64 {
    // A clock before 1970 is wrong anyway; the number is valid until 2554.
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// An `ExportTraceServiceRequest`.
pub(super) fn request(spans: &[Span]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let resource = Attributes::default().text("service.name", "polity").text("service.version", version);
    let mut request = Message::default();
    request.within(1, |resource_spans| {
        resource_spans.within(1, |message| message.attributes(1, &resource));
        resource_spans.within(2, |scope_spans| {
            scope_spans.within(1, |scope| {
                scope.bytes(1, b"polity");
                scope.bytes(2, version.as_bytes());
            });
            spans.iter().for_each(|span| scope_spans.within(2, |message| message.span(span)));
        });
    });
    request.0
}

/// A field of a message being read.
enum Read<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The first field of this number; `None` if it is missing or the message is invalid.
fn field(mut bytes: &[u8], number: u64) -> Option<Read<'_>> {
    fn varint(bytes: &mut &[u8]) -> Option<u64> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = bytes.split_first()?;
            *bytes = rest;
            n |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Some(n);
            }
        }
        None
    }
    loop {
        let tag = varint(&mut bytes)?;
        let (read, rest) = match tag & 7 {
            0 => (Read::Number(varint(&mut bytes)?), bytes),
            wire => {
                let length = match wire {
                    1 => 8,
                    2 => usize::try_from(varint(&mut bytes)?).ok()?,
                    5 => 4,
                    _ => return None,
                };
                let (read, rest) = bytes.split_at_checked(length)?;
                (Read::Bytes(read), rest)
            }
        };
        if tag >> 3 == number {
            return Some(read);
        }
        bytes = rest;
    }
}

/// A receiver's report on an accepted request: how many spans it rejected anyway, and why. Some answer in JSON whatever they are sent.
pub(super) fn rejected(body: &[u8]) -> Option<(u64, String)> {
    if let Ok(Json::Object(body)) = serde_json::from_slice(body) {
        let partial = body.get("partialSuccess")?;
        // A 64-bit number is a text in JSON; many write it as a number.
        let count = partial.get("rejectedSpans")?;
        let count = count.as_u64().or_else(|| count.as_str()?.parse().ok()).filter(|count| *count > 0)?;
        return Some((count, partial.get("errorMessage").and_then(Json::as_str).unwrap_or_default().to_owned()));
    }
    let Read::Bytes(partial) = field(body, 1)? else { return None };
    let Read::Number(count) = field(partial, 1)? else { return None };
    let words = match field(partial, 2) {
        Some(Read::Bytes(words)) => String::from_utf8_lossy(words).into_owned(),
        _ => String::new(),
    };
    (count > 0).then_some((count, words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn bytes_are_those_of_the_official_library() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let attributes = Attributes::default()
            .text("a", "x")
            .text("nothing", "")
            .int("n", u64::MAX)
            .float("f", 0.5)
            .float("none", f64::NAN)
            .flag("b", true);
        let span = Span {
            trace: 0xab,
            id: 1,
            parent: Some(2),
            name: "s".repeat(200),
            kind: Kind::Client,
            start: at(1),
            end: at(2),
            attributes,
            error: Some("bad".into()),
        };
        let mut message = Message::default();
        message.span(&span);
        let hex: String = message.0.iter().map(|byte| format!("{byte:02x}")).collect();
        // By Python's opentelemetry-proto 1.45.2: Span(trace_id=..., ...).SerializeToString().hex()
        let name = "73".repeat(200);
        assert_eq!(
            hex,
            format!(
                "0a10000000000000000000000000000000ab12080000000000000001220800000000000000022ac801{name}\
             30033900ca9a3b000000004100943577000000004a080a016112030a01784a0f0a016e120a18ffffffffffffffff7f4a0e0a\
             0166120921000000000000e03f4a070a0162120210017a0712036261641802"
            )
        );
    }

    #[test]
    fn what_a_receiver_left_out_is_read_however_it_says_it() {
        let said = |body: &[u8]| rejected(body).map(|(count, _)| count);
        assert_eq!(said(br#"{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "no"}}"#), Some(3));
        assert_eq!(said(br#"{"partialSuccess": {"rejectedSpans": 2}}"#), Some(2));
        assert_eq!(said(br#"{"partialSuccess": {"errorMessage": "old"}}"#), None);
        // ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess(rejected_spans=300, error_message="old"))
        assert_eq!(rejected(b"\x0a\x08\x08\xac\x02\x12\x03old"), Some((300, "old".into())));
        for body in [&b"{}"[..], b"", b"\x0a", b"\x0a\xff", b"no", &[0xff; 40]] {
            assert_eq!(said(body), None);
        }
    }
}
