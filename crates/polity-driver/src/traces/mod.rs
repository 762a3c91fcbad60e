//! Optional OpenTelemetry spans of a run: the run, its rounds, and every answer from a model.
//!
//! Spans are named by the GenAI semantic conventions (<https://github.com/open-telemetry/semantic-conventions-genai>, status:
//! development, as of November 2026) and by OpenInference (<https://arize-ai.github.io/openinference/spec/>); other names are `polity.*`.
//! They are sent as OTLP/HTTP in protobuf, in the background: `export.rs`, `otlp.rs`. Spans affect no result.

mod export;
mod otlp;

pub use export::Traces;

use crate::drive::{Progress, Totals, Watch};
use otlp::{Attributes, Kind, Span};
use polity_kernel::ask::{Answer, Outcome, Request, ResponseFormat, Usage};
use polity_kernel::machine::RoundReport;
use polity_kernel::scenario::Assembled;
use polity_models::models::Providers;
use serde_json::json;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, SystemTime};
use url::Url;

/// Inputs of span ids, besides the trace: the subject of the span.
const RUN: u64 = 0;
const ROUND: u64 = 1 << 62;
const CALL: u64 = 2 << 62;

/// A model, as spans name it.
#[derive(Debug)]
struct Model {
    provider: String,
    /// The server's name for it.
    name: String,
    simulated: bool,
    server: Option<(String, u16)>,
}

impl Model {
    fn of(full: &str, providers: &Providers) -> Model {
        let (provider, name) = full.split_once('/').unwrap_or(("", full));
        let found = providers.for_model(full).ok();
        let address = found.and_then(|provider| provider.address(full));
        // After the address there may be other parts that an answer depends on.
        let url = address.and_then(|address| Url::parse(address.split(' ').next()?).ok());
        Model {
            // The well-known names of the conventions.
            provider: match provider {
                "google" => "gcp.gemini",
                other => other,
            }
            .into(),
            name: name.into(),
            simulated: found.is_some_and(|provider| provider.simulated()),
            server: url.and_then(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?))),
        }
    }
}

/// The trace of one process's work on a run.
pub(crate) struct Trace {
    to: Traces,
    id: u128,
    /// Distinguishes this trace's spans from others'.
    salt: u64,
    name: String,
    /// The run's folder: processes that work on the same run form one session.
    run: String,
    models: BTreeMap<String, Model>,
    began: SystemTime,
    /// When the last round was completed.
    since: SystemTime,
    /// Rounds complete.
    complete: u32,
    /// Rounds in progress, and their start times.
    open: BTreeMap<u32, SystemTime>,
    calls: u64,
}

fn random() -> u64 {
    // The standard library's keys are the system's random numbers.
    RandomState::new().build_hasher().finish()
}

/// SplitMix64's finalizer (Stafford's mix 13): a bijection, so that a trace's spans have different ids.
fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

impl Trace {
    /// Starts a trace. `name`: the scenario's; `run`: the folder of the run.
    pub(crate) fn new(to: &Traces, name: &str, run: String, models: &[String], providers: &Providers) -> Trace {
        let now = SystemTime::now();
        Trace {
            to: to.clone(),
            id: (u128::from(random()) << 64 | u128::from(random())).max(1),
            salt: random(),
            name: name.into(),
            run,
            models: models.iter().map(|model| (model.clone(), Model::of(model, providers))).collect(),
            began: now,
            since: now,
            complete: 0,
            open: BTreeMap::new(),
            calls: 0,
        }
    }

    fn span_id(&self, of: u64) -> u64 {
        // Spans cannot have the id 0.
        mixed(self.salt ^ of).max(1)
    }

    fn attributes(&self, kind: &'static str) -> Attributes {
        Attributes::default().text("openinference.span.kind", kind).text("session.id", &*self.run)
    }

    fn round(&mut self, round: u32, start: SystemTime, attributes: Attributes) {
        let span = Span {
            trace: self.id,
            id: self.span_id(ROUND | u64::from(round)),
            parent: Some(self.span_id(RUN)),
            name: "round".into(),
            kind: Kind::Internal,
            start,
            end: SystemTime::now(),
            attributes: attributes.int("polity.round", round),
            error: None,
        };
        self.to.send(span);
    }

    /// Adds an answer under the round in which its turn began.
    fn under_its_round(&mut self, answer: &Answer, machine: &Assembled) {
        let round = answer.id.round;
        let asker = match machine {
            Assembled::Society(society) => {
                let cohort = society.cohort(answer.id.actor);
                let cohort = cohort.and_then(|cohort| society.cohorts().get(usize::from(cohort)));
                Attributes::default().text("polity.cohort", cohort.map_or("", String::as_str))
            }
            Assembled::Evaluation(evaluation) => {
                let member = evaluation.team().get(answer.id.actor as usize);
                Attributes::default()
                    .int("polity.item", answer.id.item)
                    .text("gen_ai.agent.name", member.map_or("", |member| &*member.name))
            }
        };
        let start = self.call(answer, self.span_id(ROUND | u64::from(round)), asker);
        // With a lag, answers arrive after their round, whose span already exists.
        if let Some(start) = start
            && round >= self.complete
        {
            self.open.entry(round).and_modify(|began| *began = start.min(*began)).or_insert(start);
        }
    }

    /// Adds an answer; returns when it was requested, or `None` if no one was to be called.
    fn call(&mut self, answer: &Answer, parent: u64, asker: Attributes) -> Option<SystemTime> {
        let Answer { id, request, outcome, usage, .. } = answer;
        if matches!(outcome, Outcome::Denied { .. }) {
            return None;
        }
        let model = self.models.get(request.model.name())?;
        let end = SystemTime::now();
        // Span times are real. A simulated model's declared time is not, and a shared answer took none.
        let took = if model.simulated || usage.shared { 0.0 } else { usage.latency_ms.max(0.0) / 1000.0 };
        let start = Duration::try_from_secs_f64(took).ok().and_then(|took| end.checked_sub(took)).unwrap_or(end);
        let mut attributes = self
            .attributes("LLM")
            .text(
                "gen_ai.operation.name",
                if matches!(request.response_format, ResponseFormat::Vector) { "embeddings" } else { "chat" },
            )
            .text("gen_ai.provider.name", &*model.provider)
            .text("gen_ai.request.model", &*model.name)
            .text(
                "gen_ai.output.type",
                if matches!(request.response_format, ResponseFormat::Text) { "text" } else { "json" },
            )
            .text("gen_ai.agent.id", id.actor.to_string())
            .text("llm.system", &*model.provider)
            .text("llm.provider", &*model.provider)
            .text("llm.model_name", &*model.name)
            .int("polity.agent", id.actor)
            .int("polity.round", id.round)
            .int("polity.n", id.n)
            .text("polity.purpose", &*request.purpose)
            .text("polity.outcome", outcome.name())
            .text("polity.resolution", answer.resolution().name())
            .int("polity.attempt", request.step.map_or(0, |step| step.nth))
            .int("polity.retries", usage.retries)
            .float("polity.latency_ms", usage.latency_ms)
            .float("polity.waited_ms", usage.waited_ms)
            .flag("polity.shared", usage.shared)
            .flag("polity.simulated", model.simulated)
            .and(asker);
        if let Some((host, port)) = &model.server {
            attributes = attributes.text("server.address", &**host).int("server.port", *port);
        }
        attributes = with_settings(attributes, request);
        if !usage.shared {
            attributes = with_usage(attributes, usage);
        }
        let failed = matches!(outcome, Outcome::Failed { .. });
        if failed {
            attributes = attributes.text("error.type", outcome.name());
        }
        if self.to.holds_content() {
            attributes = with_content(attributes, request, outcome);
        }
        self.calls += 1;
        let span = Span {
            trace: self.id,
            id: self.span_id(CALL | self.calls),
            parent: Some(parent),
            name: format!("chat {}", model.name),
            kind: if model.simulated { Kind::Internal } else { Kind::Client },
            start,
            end,
            attributes,
            // An error message may repeat the prompt.
            error: failed.then(|| if self.to.holds_content() { outcome.words().to_owned() } else { String::new() }),
        };
        self.to.send(span);
        Some(start)
    }

    /// Adds an answer that belongs to no round of this process.
    pub(crate) fn alone(&mut self, answer: &Answer) {
        let parent = self.span_id(RUN);
        self.call(answer, parent, Attributes::default());
    }

    /// Ends the trace: `status` as in the run's summary, or `error`.
    pub(crate) fn end(mut self, status: &str, totals: Option<&Totals>) {
        for (round, start) in std::mem::take(&mut self.open) {
            let attributes = self.attributes("CHAIN").flag("polity.complete", false);
            self.round(round, start, attributes);
        }
        let failed = status == "error";
        let mut attributes = self
            .attributes("CHAIN")
            .text("gen_ai.operation.name", "invoke_workflow")
            .text("gen_ai.workflow.name", &*self.name)
            .text("polity.run", &*self.run)
            .text("polity.status", status);
        if let Some(totals) = totals {
            attributes = attributes
                .int("polity.answers", totals.answers)
                .int("polity.calls", totals.calls)
                .int("polity.shared", totals.cache_hits)
                .int("polity.denied", totals.denied)
                .int("polity.tokens_in", totals.tokens_in)
                .int("polity.tokens_out", totals.tokens_out)
                .float("polity.cost_usd", totals.cost_usd);
        }
        if failed {
            attributes = attributes.text("error.type", "error");
        }
        let span = Span {
            trace: self.id,
            id: self.span_id(RUN),
            parent: None,
            name: format!("invoke_workflow {}", self.name),
            kind: Kind::Internal,
            start: self.began,
            end: SystemTime::now(),
            attributes,
            error: failed.then(String::new),
        };
        self.to.send(span);
    }
}

/// The sampling settings of the model, as far as the run sets them.
fn with_settings(attributes: Attributes, request: &Request) -> Attributes {
    let settings = request.settings;
    let mut all = serde_json::Map::new();
    let mut attributes = attributes;
    let reals = [
        ("temperature", "gen_ai.request.temperature", settings.temperature),
        ("top_p", "gen_ai.request.top_p", settings.top_p),
    ];
    for (key, name, value) in reals {
        if let Some(value) = value {
            all.insert(key.into(), json!(value));
            attributes = attributes.float(name, value);
        }
    }
    let seed = settings.seed.map(|seed| seed.wrapping_add(u64::from(request.sample)));
    let whole =
        [("max_tokens", "gen_ai.request.max_tokens", settings.max_tokens), ("seed", "gen_ai.request.seed", seed)];
    for (key, name, value) in whole {
        if let Some(value) = value {
            all.insert(key.into(), json!(value));
            attributes = attributes.int(name, value);
        }
    }
    match all.is_empty() {
        true => attributes,
        false => attributes.text("llm.invocation_parameters", serde_json::Value::Object(all).to_string()),
    }
}

/// The usage of an answer. A shared answer has its usage only at the original request, so that sums over spans are what was paid.
fn with_usage(attributes: Attributes, usage: &Usage) -> Attributes {
    let mut attributes = attributes
        .int("gen_ai.usage.input_tokens", usage.tokens_in)
        .int("gen_ai.usage.output_tokens", usage.tokens_out)
        .int("llm.token_count.prompt", usage.tokens_in)
        .int("llm.token_count.completion", usage.tokens_out)
        .int("llm.token_count.total", usage.tokens_in + usage.tokens_out)
        .float("polity.cost_usd", usage.cost_usd);
    // An unknown price is omitted.
    if usage.cost_usd > 0.0 {
        attributes = attributes.float("llm.cost.total", usage.cost_usd);
    }
    if usage.tokens_cached > 0 {
        attributes = attributes
            .int("gen_ai.usage.cache_read.input_tokens", usage.tokens_cached)
            .int("llm.token_count.prompt_details.cache_read", usage.tokens_cached);
    }
    if usage.tokens_thinking > 0 {
        attributes = attributes
            .int("gen_ai.usage.reasoning.output_tokens", usage.tokens_thinking)
            .int("llm.token_count.completion_details.reasoning", usage.tokens_thinking);
    }
    attributes
}

/// The prompt and the reply.
fn with_content(attributes: Attributes, request: &Request, outcome: &Outcome) -> Attributes {
    let mut attributes = attributes;
    let mut said = Vec::new();
    for (i, message) in request.messages.iter().enumerate() {
        let text = message.rendered();
        said.push(json!({ "role": message.role.name(), "parts": [{ "type": "text", "content": text }] }));
        attributes = attributes
            .text(format!("llm.input_messages.{i}.message.role"), message.role.name())
            .text(format!("llm.input_messages.{i}.message.content"), text);
    }
    attributes = attributes
        .text("gen_ai.input.messages", serde_json::Value::Array(said).to_string())
        .text("input.value", request.rendered())
        .text("input.mime_type", "text/plain");
    // An error message is not a message of the model.
    if matches!(outcome, Outcome::Failed { .. } | Outcome::Denied { .. }) {
        return attributes;
    }
    let words = outcome.words();
    let reply =
        json!([{ "role": "assistant", "parts": [{ "type": "text", "content": words }], "finish_reason": "stop" }]);
    attributes
        .text("gen_ai.output.messages", reply.to_string())
        .text("llm.output_messages.0.message.role", "assistant")
        .text("llm.output_messages.0.message.content", words)
        .text("output.value", words)
        .text("output.mime_type", "text/plain")
}

/// A watcher that also traces, if requested.
pub(crate) struct Traced<'a> {
    inner: &'a mut dyn Watch,
    trace: Option<Trace>,
}

impl<'a> Traced<'a> {
    pub(crate) fn new(inner: &'a mut dyn Watch, trace: Option<Trace>) -> Self {
        Traced { inner, trace }
    }

    /// Returns the trace, to be ended.
    pub(crate) fn into_trace(self) -> Option<Trace> {
        self.trace
    }
}

impl Watch for Traced<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.inner.progress(progress);
    }

    fn heard(&mut self, answer: &Answer, machine: &Assembled) {
        if let Some(trace) = &mut self.trace {
            trace.under_its_round(answer, machine);
        }
        self.inner.heard(answer, machine);
    }

    fn round(&mut self, report: &RoundReport) {
        if let Some(trace) = &mut self.trace {
            let first = trace.open.remove(&report.round);
            let start = first.map_or(trace.since, |first| first.min(trace.since));
            let attributes = trace
                .attributes("CHAIN")
                .flag("polity.complete", true)
                .int("polity.agents", report.agents)
                .int("polity.acts", report.acts)
                .int("polity.messages", report.messages);
            trace.round(report.round, start, attributes);
            trace.complete = report.round + 1;
            trace.since = SystemTime::now();
        }
        self.inner.round(report);
    }
}
