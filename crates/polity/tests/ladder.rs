//! Questions with retries and defaults, against a model that answers in every way but the right one.
//!
//! The long form: `bash scripts/campaigns.sh malformed`.

use crate::harness;

use crate::harness::{answers, assert_same_tables, engine, events, from_env, prepared, replay, run, scratch, tables};
use polity_driver::drive::Resolutions;
use polity_driver::run::{Engine, RunStatus, Summary};
use polity_driver::source::Faults;
use polity_kernel::Invalid;
use polity_kernel::ask::{
    Answer, AskError, ChatMessage, Effect, EffectId, Outcome, Question, Request, ResponseFormat, Role, Usage, Value,
};
use polity_kernel::method::{Brief, Method, Records, TeamContext, Verdict};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_models::models::openai::{Received, outcome, read_completion};
use polity_models::models::{Answering, Exchange, Provider, ProviderError, Providers};
use polity_store::disk::{Disk, SimDisk};
use polity_store::tables::ColumnData;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

const OUT: &str = "run";
const ROUNDS: u32 = 5;
const SEED: u64 = 21;
/// Number of retries.
const AGAIN: u8 = 2;

// ------------------------------------------------------------------ the questions

/// The questions of each turn: a name, the form, and the default, which no reply has.
fn questions() -> [(&'static str, ResponseFormat, Value); 4] {
    let options = ["left", "right", "neither of them", "undecided"].map(String::from).to_vec();
    let number = || ResponseFormat::number(0.0, 60.0);
    let whole = ResponseFormat::Number { low: 1.0, high: 9.0, whole: true };
    let record = vec![
        ("why".into(), ResponseFormat::Text),
        ("sure".into(), number()),
        ("vote".into(), ResponseFormat::Choice(options.clone())),
    ];
    let list = ResponseFormat::List { of: Box::new(whole), least: 1, most: 4 };
    let nobody = Value::Record(vec![Value::Text("default".into()), Value::Number(59.875), Value::Choice(3)]);
    [
        ("choice", ResponseFormat::Choice(options), Value::Choice(3)),
        ("number", number(), Value::Number(59.875)),
        ("record", ResponseFormat::Record(record), nobody),
        ("list", list, Value::List(vec![Value::Number(9.0); 4])),
    ]
}

/// Converts a value to a number that an act can carry.
fn shown(value: &Value) -> f64 {
    match value {
        Value::Text(text) => text.len() as f64,
        Value::Choice(i) => f64::from(*i),
        Value::Number(x) => *x,
        Value::Record(values) => values.get(1).map_or(0.0, shown),
        Value::List(values) => values.iter().map(shown).sum(),
        Value::Vector(numbers) => numbers.len() as f64,
        Value::Calls { calls, .. } => calls.len() as f64,
    }
}

/// A policy that asks all questions at once and acts on the results.
struct Climber(u16);

impl Policy for Climber {
    const NAME: &'static str = "climber";
    const SUMMARY: &'static str = "Ask questions with ladders";
    type Params = harness::Nothing;
    /// Questions that ended in their defaults.
    type State = u32;

    fn open(_: harness::Nothing, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Ok(Climber(setup.number_act()?.0))
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> u32 {
        0
    }

    async fn act(&self, state: &mut u32, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let question = |(name, response_format, default): (&str, ResponseFormat, Value)| {
            let words = format!("Agent {}, round {}: which {name}?", turn.who, turn.round);
            let messages = vec![ChatMessage::text(Role::User, words)];
            let request =
                Request { purpose: name.into(), ..Request::new("malformed/model", messages, response_format) };
            Question::new(request).retries(AGAIN).default(default)
        };
        let asked = questions().map(question).to_vec();
        let defaults: Vec<Value> = asked.iter().filter_map(|question| question.default.clone()).collect();
        for (heard, default) in turn.ask_all(asked).await.into_iter().zip(defaults) {
            *state += u32::from(heard.is_err());
            turn.act(self.0, shown(&heard.unwrap_or(default)));
        }
        Ok(())
    }
}

/// An answer as a Rust type.
#[derive(Debug, Deserialize, JsonSchema)]
struct Ballot {
    whom: Whom,
    sure: bool,
    #[schemars(range(min = 1, max = 5))]
    rank: u8,
    #[schemars(length(min = 1, max = 2))]
    reasons: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Whom {
    OldHand,
    NewFace,
}

impl Ballot {
    fn number(&self) -> f64 {
        assert!((1..=5).contains(&self.rank) && (1..=2).contains(&self.reasons.len()), "{self:?}");
        let whom = match self.whom {
            Whom::OldHand => 20.0,
            Whom::NewFace => 10.0,
        };
        whom + f64::from(self.rank) + if self.sure { 0.5 } else { 0.0 }
    }
}

/// A policy that asks for ballots; with `odd`, for types that cannot be asked for.
struct Voter {
    act: u16,
    odd: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VoterParams {
    odd: bool,
}

impl Policy for Voter {
    const NAME: &'static str = "voter";
    const SUMMARY: &'static str = "Ask for ballots";
    type Params = VoterParams;
    type State = ();

    fn open(params: VoterParams, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Ok(Voter { act: setup.number_act()?.0, odd: params.odd })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let messages = vec![ChatMessage::text(Role::User, format!("Agent {}, round {}: whom?", turn.who, turn.round))];
        let request = Request::new("sim/perfect", messages, ResponseFormat::Text);
        if self.odd {
            turn.ask_as::<Option<Ballot>>(request.clone()).await?.ok();
        }
        let heard: Result<Ballot, AskError> = turn.ask_as(request).await?;
        turn.act(self.act, heard.map_or(0.0, |ballot| ballot.number()));
        Ok(())
    }
}

/// A method whose members hand in ballots.
struct Jury;

impl Method for Jury {
    const NAME: &'static str = "jury";
    const SUMMARY: &'static str = "Ask everybody for a ballot";
    const RECORDS: &'static [Records] = &[Records { name: "ballot", doc: "the number of a ballot" }];
    type Params = harness::Nothing;

    fn open(_: harness::Nothing, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(Jury)
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        for member in 0..context.team.len() {
            let ballot: Result<Ballot, _> = context
                .ask_as(Brief::new(member, vec![ChatMessage::text(Role::User, "Whom?")], ResponseFormat::Text))
                .await?;
            context.record(member, 0, ballot.map_or("none".into(), |ballot| ballot.number().to_string()));
        }
        Ok(Verdict::default())
    }
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = polity::registry();
        registry.policy::<Climber>(LeafFiles::default());
        registry.policy::<Voter>(LeafFiles::default());
        registry.method::<Jury>(LeafFiles::default());
        registry
    })
}

// ------------------------------------------------------------------ the answers

/// The expected result of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Comes {
    /// A valid reply with the intended value.
    Fit,
    /// A repaired reply with the intended value.
    Mended,
    /// Never a reply.
    Invalid,
    Refused,
    Failed,
    /// Cut off somewhere: no reply, or the intended value.
    Either,
}

use Comes::{Either, Failed, Fit, Invalid as Bad, Mended, Refused};

/// Every way to answer, and the expected result.
const WAYS: &[(&str, Comes)] = &[
    ("fit", Fit),
    ("in-its-envelope", Fit),
    ("spaces-around", Fit),
    ("fenced", Mended),
    ("fenced-json", Mended),
    ("prose-around", Mended),
    ("trailing-comma", Mended),
    ("single-quotes", Mended),
    ("curly-quotes", Mended),
    ("bare-names", Mended),
    ("a-comment", Mended),
    ("last-brace-missing", Mended),
    ("number-as-text", Mended),
    ("python", Mended),
    ("cut-anywhere", Either),
    ("cut-in-a-value", Bad),
    ("length", Bad),
    ("empty", Bad),
    ("white-space", Bad),
    ("null-content", Bad),
    ("no-choices", Bad),
    ("empty-body", Failed),
    ("null", Bad),
    ("tool-call", Bad),
    ("refused", Refused),
    ("filtered", Refused),
    ("filtered-400", Refused),
    ("status-400", Failed),
    ("web-page", Failed),
    ("web-page-inside", Bad),
    ("no-json", Bad),
    ("half-a-body", Failed),
    ("error-in-body", Bad),
    ("error-as-content", Bad),
    ("wrong-types", Bad),
    ("wrong-names", Bad),
    ("out-of-bounds", Bad),
    ("not-finite", Bad),
    ("number-in-prose", Bad),
    ("two-objects", Bad),
    ("two-values", Bad),
    ("not-utf-8", Bad),
    ("control-messages", Bad),
    ("deep", Bad),
    ("huge", Bad),
];

/// A model behind the wire of the real ones, whose answers are generated from the seed.
struct Malformed;

/// A value as a model would write it in an object, and its meaning.
fn meant(response_format: &ResponseFormat, draws: &mut Draws) -> Value {
    match response_format {
        ResponseFormat::Text => {
            Value::Text(["because", "it's \"so\", {really}", "ü🦀\n[1]"][draws.below(3) as usize].into())
        }
        // Not the last, which is the default.
        ResponseFormat::Choice(options) => Value::Choice(draws.below(options.len() as u64 - 1) as u32),
        ResponseFormat::Number { low, high, whole: true } => {
            Value::Number(low + draws.below((high - low) as u64) as f64)
        }
        ResponseFormat::Number { low, high, .. } => {
            Value::Number((draws.range(*low, high - 1.0) * 100.0).round() / 100.0)
        }
        ResponseFormat::List { of, least, most } => {
            let n = u64::from(*least) + draws.below(u64::from(most - least) + 1);
            Value::List((0..n).map(|_| meant(of, draws)).collect())
        }
        ResponseFormat::Record(fields) => {
            Value::Record(fields.iter().map(|(_, response_format)| meant(response_format, draws)).collect())
        }
        ResponseFormat::Vector | ResponseFormat::Calls(_) => unreachable!("no ladder asks for vectors or calls"),
    }
}

/// Returns a reply with numbers or words that the response format does not allow.
fn out_of_bounds(response_format: &ResponseFormat, draws: &mut Draws) -> String {
    match response_format {
        ResponseFormat::List { .. } => json!([1, 2, 10]).to_string(),
        ResponseFormat::Choice(_) => "centre".into(),
        ResponseFormat::Record(_) => json!({"why": "x", "sure": 60.5, "vote": "left"}).to_string(),
        _ => ["-1", "60.01", "1e9"][draws.below(3) as usize].into(),
    }
}

/// Returns a reply with a number that is not finite.
fn not_finite(response_format: &ResponseFormat, draws: &mut Draws) -> String {
    let none = ["NaN", "Infinity", "-Infinity", "1e999", "nan"][draws.below(5) as usize];
    match response_format {
        ResponseFormat::Record(_) => format!("{{\"why\": \"x\", \"sure\": {none}, \"vote\": \"left\"}}"),
        ResponseFormat::List { .. } => format!("[1, {none}]"),
        _ => none.into(),
    }
}

/// Returns the JSON of a reply with each of its numbers written as a text.
fn numbers_as_text(mut json: Json) -> Json {
    let as_text = |json: &Json| if json.is_number() { json!(json.to_string()) } else { json.clone() };
    for value in json.as_object_mut().unwrap().values_mut() {
        *value = match value.as_array() {
            Some(items) => items.iter().map(as_text).collect(),
            None => as_text(value),
        };
    }
    json
}

/// Returns the text with typographic or other quotes in place of its own.
fn quoted(text: &str, open: &str, close: &str) -> String {
    // Texts with these kinds of quotes contain none of them.
    let plain = text.replace("it's \\\"so\\\"", "it is so");
    plain.split('"').enumerate().map(|(i, part)| [part, [open, close][i % 2]].concat()).collect()
}

/// Returns the status, the type and, if it is no completion, the body of a response given in this way.
fn no_completion(way: &str) -> (u16, &'static str, Option<String>) {
    let json = "application/json";
    let error = |error: Json| Some(json!({"error": error}).to_string());
    match way {
        "no-choices" => (200, json, Some(json!({"id": "x", "choices": []}).to_string())),
        "empty-body" => (200, json, Some(" ".into())),
        "filtered-400" => (400, json, error(json!({"message": "filtered", "code": "content_filter"}))),
        "status-400" => (400, json, error(json!({"message": "too long"}))),
        "web-page" => {
            let page = "<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>";
            (200, "text/html; charset=utf-8", Some(page.into()))
        }
        "no-json" => (200, json, Some("upstream connect error or disconnect/reset before headers".into())),
        "error-in-body" => (200, json, error(json!({"message": "overloaded", "answer": 7}))),
        _ => (200, json, None),
    }
}

/// Returns the value as the object on the wire, and as bare text.
fn on_the_wire(value: &Value, response_format: &ResponseFormat) -> (Json, String) {
    let bare = match value.to_json(response_format) {
        Json::String(text) => text,
        other => other.to_string(),
    };
    // Records are objects already; other values are wrapped in one as `answer`.
    let json = match response_format {
        ResponseFormat::Record(_) => value.to_json(response_format),
        _ => {
            let whole = ResponseFormat::Record(vec![("answer".into(), response_format.clone())]);
            Value::Record(vec![value.clone()]).to_json(&whole)
        }
    };
    (json, bare)
}

/// Returns the intended value of an answer, the way it is given in, and the HTTP response.
fn answered(id: EffectId, response_format: &ResponseFormat) -> (Value, usize, Received) {
    let mut draws = Draws::new(SEED, Stream::Driver, id.round, id.item.wrapping_mul(1 << 16) + id.actor * 64 + id.n);
    let mut way = draws.below(WAYS.len() as u64) as usize;
    if WAYS[way].0 == "huge" && draws.unit() > 0.1 {
        way = 0; // They take their time.
    }
    let value = meant(response_format, &mut draws);
    let (json, bare) = on_the_wire(&value, response_format);
    let text = json.to_string();
    let open = text.strip_suffix('}').unwrap();
    let mut content = Some(text.clone());
    let mut finish = "stop";
    let (status, kind, body) = no_completion(WAYS[way].0);
    let mut message = json!({"role": "assistant"});
    match WAYS[way].0 {
        "fit" => content = Some(bare),
        "in-its-envelope" => {}
        "spaces-around" => content = Some(format!("\n\n  {text}\t\n")),
        "fenced" => content = Some(format!("```\n{text}\n```")),
        "fenced-json" => content = Some(format!("Sure!\n```json\n{text}\n```\n")),
        "prose-around" => content = Some(format!("Here it is (it's \"mine\"):\n{text}\nIs that fine?")),
        "trailing-comma" => content = Some(format!("{open},}}")),
        "single-quotes" => content = Some(quoted(&text, "'", "'").trim_end_matches('\'').to_owned()),
        "curly-quotes" => {
            content = Some(quoted(&text, "\u{201c}", "\u{201d}").trim_end_matches(['\u{201c}', '\u{201d}']).to_owned())
        }
        "bare-names" => content = Some(text.replace("\"answer\":", "answer:").replace("\"why\":", "why: ")),
        "a-comment" => content = Some(format!("{open} // that's {{it}}, \"I\" think\n}}")),
        // A number at the end of the reply may have been cut; a space shows that it was not.
        "last-brace-missing" => content = Some(format!("{open}\n")),
        "number-as-text" => {
            // A choice has no number.
            let choice = matches!(response_format, ResponseFormat::Choice(_));
            content =
                Some(if choice { format!("**{}**.", bare.to_uppercase()) } else { numbers_as_text(json).to_string() });
        }
        "python" => content = Some(format!("{open}, \"sure_of_it\": True, \"else\": None}}")),
        "cut-anywhere" => {
            let messages = draws.below(text.chars().count() as u64) as usize;
            content = Some(text.chars().take(messages).collect());
        }
        "cut-in-a-value" => content = Some(open.trim_end_matches(['"', ']']).to_owned()),
        "length" => finish = "length",
        "empty" => content = Some(String::new()),
        "white-space" => content = Some(" \n\t \u{a0}".into()),
        "null-content" => content = None,
        "null" => content = Some("null".into()),
        "tool-call" => {
            message["tool_calls"] = json!([{"id": "1", "function": {"name": "look_up", "arguments": text}}]);
        }
        "refused" => message["refusal"] = json!("I cannot help with that."),
        "filtered" => finish = "content_filter",
        "web-page-inside" => content = Some("<html><body style='{}'>7 left</body></html>".into()),
        "half-a-body" => {}
        "error-as-content" => {
            content = Some("Error: rate limit reached for 7 requests. {\"error\": {\"code\": 7}}".into())
        }
        "wrong-types" => content = Some(json!({"answer": {"x": 7}, "why": 1, "sure": [7], "vote": 2}).to_string()),
        "wrong-names" => content = Some(json!({"Answer": bare, "reason": "left", "sure ": 7}).to_string()),
        "out-of-bounds" => content = Some(out_of_bounds(response_format, &mut draws)),
        "not-finite" => content = Some(not_finite(response_format, &mut draws)),
        "number-in-prose" => content = Some("I would say 5 or 6, so neither left nor right.".into()),
        "two-values" => {
            let name = if text.contains("\"vote\"") { "vote" } else { "answer" };
            content = Some(format!("{open},\"{name}\":\"another\"}}"));
        }
        "two-objects" => content = Some(format!("{text}\n{text}")),
        "not-utf-8" => {}
        "control-messages" => {
            content = Some((0..200).map(|_| char::from_u32(draws.below(0x300) as u32).unwrap_or(' ')).collect());
        }
        "deep" => content = Some(["[", "{\"answer\":", "[{'a':"][draws.below(3) as usize].repeat(20_000)),
        "huge" => content = Some("word ".repeat(2_100_000)),
        _ if body.is_some() => {}
        other => panic!("there is no way `{other}`"),
    }
    message["content"] = json!(content);
    let completion = json!({
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 10},
    });
    let mut bytes = body.unwrap_or_else(|| completion.to_string()).into_bytes();
    match WAYS[way].0 {
        "half-a-body" => bytes.truncate(bytes.len() / 2),
        "not-utf-8" => bytes.extend([b'{', 0xff, 0xfe, b'}']),
        _ => {}
    }
    let mut received = Received::new("http://model/v1", "model", status, Default::default(), bytes);
    received.headers.insert("content-type", kind.parse().unwrap());
    (value, way, received)
}

impl Provider for Malformed {
    fn name(&self) -> &'static str {
        "malformed"
    }

    fn models(&self) -> Vec<String> {
        vec!["malformed/model".into()]
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn most(&self, _: &Request) -> Usage {
        Usage { tokens_in: 1000, tokens_out: 1000, ..Usage::default() }
    }

    fn simulated(&self) -> bool {
        true
    }

    fn answer<'a>(&'a self, effect: &'a Effect, _: u64) -> Answering<'a> {
        Box::pin(async move {
            let response_format = &effect.request.response_format;
            let (_, _, received) = answered(effect.id, response_format);
            let outcome = match read_completion(&received) {
                Ok(Ok(completion)) => outcome(response_format, &completion, &received.body),
                Ok(Err(outcome)) => outcome,
                // A run retries such a call, with pauses; here the retries have failed.
                Err(ProviderError::Retry { why, .. }) => Outcome::Failed { why },
                Err(trouble) => return Err(trouble),
            };
            Ok(Exchange {
                outcome,
                usage: Usage { tokens_in: 30, tokens_out: 10, ..Usage::default() },
                reasoning: None,
            })
        })
    }
}

// ------------------------------------------------------------------ the campaign

fn whole(scenario: &Json, folder: &Path, shards: usize, faults: Option<Faults>) -> (Summary, Arc<dyn Disk>) {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
    let summary = run(&with(disk.clone(), shards, faults), &prepared(scenario, folder), Path::new(OUT)).unwrap();
    (summary, disk)
}

fn with(disk: Arc<dyn Disk>, shards: usize, faults: Option<Faults>) -> Engine<'static> {
    let providers = Arc::new(Providers::of(vec![Box::new(Malformed)]));
    Engine { registry: registry(), providers, ..engine(disk, shards, faults) }
}

/// Returns the expected values of the acts and counts of resolutions, recomputed from the journal alone.
fn counted(answers: &[Answer]) -> (Vec<f64>, Resolutions) {
    let mut tries: BTreeMap<(u32, u32, String), Vec<&Answer>> = BTreeMap::new();
    for answer in answers {
        let question = (answer.id.round, answer.id.actor, answer.request.purpose.clone());
        tries.entry(question).or_default().push(answer);
    }
    let (mut resolutions, mut acts) = (Resolutions::default(), BTreeMap::new());
    for ((round, actor, purpose), tries) in tries {
        let place = questions().iter().position(|(name, ..)| *name == purpose).unwrap();
        let (_, _, default) = &questions()[place];
        assert!(tries.len() <= usize::from(AGAIN) + 1 && tries.windows(2).all(|two| two[0].id.n < two[1].id.n));
        let last = tries.len() - 1;
        let mut value = default;
        for (nth, answer) in tries.iter().enumerate() {
            assert_eq!(answer.request.messages.len() > 1, nth > 0, "it is told what was wrong");
            match &answer.outcome {
                Outcome::Reply { value: found, repaired, .. } => {
                    assert_eq!(nth, last, "nothing is asked after a reply");
                    value = found;
                    match (repaired, nth) {
                        (true, _) => resolutions.repaired += 1,
                        (false, 0) => resolutions.fit += 1,
                        (false, _) => resolutions.reasked += 1,
                    }
                }
                Outcome::Invalid { .. } | Outcome::Refused { .. } if nth < last => resolutions.again += 1,
                Outcome::Invalid { .. } | Outcome::Refused { .. } => {
                    assert_eq!(nth, usize::from(AGAIN), "it is put again as often as declared");
                    resolutions.default += 1;
                }
                Outcome::Failed { .. } => {
                    assert_eq!(nth, last);
                    resolutions.default += 1;
                }
                Outcome::Denied { why } => panic!("{why}"),
            }
        }
        acts.insert((round, actor, place), shown(value));
    }
    (acts.into_values().collect(), resolutions)
}

#[test]
fn every_answer_comes_to_what_it_is_and_every_question_to_a_value() {
    let folder = scratch("ladder");
    let questions = from_env("POLITY_MALFORMED", 400);
    let agents = questions.div_ceil(4 * ROUNDS).max(10);
    let scenario = json!({
        "name": "malformed", "seed": SEED, "rounds": ROUNDS, "agents": agents,
        "world": {"kind": "guess-average"},
        "cohorts": [{"name": "climbers", "share": 1.0, "policy": {"kind": "climber"}}],
        "snapshot": {"rounds": 2},
    });
    let (summary, disk) = whole(&scenario, &folder, 1, None);
    assert_eq!((summary.status, summary.rounds), (RunStatus::Done, ROUNDS));
    let journal = events(disk.clone(), Path::new(OUT)).unwrap().0;
    let all: Vec<Answer> = answers(&journal).into_values().flatten().collect();
    assert_eq!(summary.totals.answers, all.len() as u64);

    // Every answer is as generated, and no reply has an unintended value.
    let mut ways: BTreeMap<&str, [u64; 5]> = BTreeMap::new();
    for answer in &all {
        let (value, way, received) = answered(answer.id, &answer.request.response_format);
        let (name, comes) = WAYS[way];
        let found = match &answer.outcome {
            Outcome::Reply { repaired, value: found, .. } => {
                assert_eq!(*found, alike(&value, name), "{name}: {:.300}", received.body);
                if *repaired { Mended } else { Fit }
            }
            Outcome::Invalid { .. } => Bad,
            Outcome::Refused { .. } => Refused,
            Outcome::Failed { .. } | Outcome::Denied { .. } => Failed,
        };
        let allowed = comes == found || comes == Either && [Bad, Mended].contains(&found);
        assert!(allowed, "{name} comes to {found:?}: {:.300}\n{:.300}", received.body, format!("{:?}", answer.outcome));
        let column = [Fit, Mended, Bad, Refused, Failed].iter().position(|comes| *comes == found).unwrap();
        ways.entry(name).or_default()[column] += 1;
    }
    // Every resolution is counted, and questions without a reply end in their declared defaults.
    let (expected, resolutions) = counted(&all);
    assert_eq!(summary.totals.resolutions, resolutions);
    assert!(
        resolutions.fit > 0
            && resolutions.repaired > 0
            && resolutions.reasked > 0
            && resolutions.again > 0
            && resolutions.default > 0
            && resolutions.none == 0
    );
    let tables = tables(disk.as_ref(), Path::new(OUT));
    let values = tables["acts"].iter().find(|(name, _)| name == "value").map(|(_, values)| values).unwrap();
    assert!(
        matches!(values, ColumnData::F64(found) if found.iter().copied().eq(expected.into_iter().map(Some))),
        "{values:?}"
    );

    println!("{:<20}{:>8}{:>8}{:>8}{:>8}{:>8}", "answers", "fit", "mended", "invalid", "refused", "failed");
    for (name, counts) in &ways {
        println!("{name:<20}{}", counts.iter().map(|n| format!("{n:>8}")).collect::<String>());
    }
    println!("{} questions, {} answers, {resolutions:?}", agents * ROUNDS * 4, all.len());

    // Neither shards nor the order of arrival affect it, and it can be replayed.
    for (shards, faults) in [(3, None), (1, Some(1)), (3, Some(2))] {
        let faults = faults.map(|seed| Faults { seed, failure: 0.2, repeat: 0.2 });
        let (again, other) = whole(&scenario, &folder, shards, faults);
        assert_eq!((&again.digest, again.totals.resolutions), (&summary.digest, resolutions));
        assert_same_tables(&harness::tables(other.as_ref(), Path::new(OUT)), &tables, "shards and arrival");
    }
    assert_eq!(replay(&with(disk, 2, None), Path::new(OUT)).unwrap().status, RunStatus::Same);
}

/// Returns the intended value as the given way writes it; one changes a text so that it can be quoted differently.
fn alike(value: &Value, way: &str) -> Value {
    match value {
        Value::Text(text) if way.ends_with("-quotes") => Value::Text(text.replace("it's \"so\"", "it is so")),
        Value::Record(values) => Value::Record(values.iter().map(|value| alike(value, way)).collect()),
        value => value.clone(),
    }
}

/// Members of a team are asked again as often as the scenario says, each try recounted from the journal.
#[test]
fn members_of_teams_are_asked_again() {
    let folder = scratch("ladder-team");
    let ran = |retries: u8| {
        let mut team = harness::team(&folder, "debate", 40, 2);
        team["model"] = json!("malformed/model");
        team["max_retries"] = json!(retries);
        let (summary, disk) = whole(&team, &folder, 1, None);
        assert_eq!(summary.status, RunStatus::Done);
        let late = whole(&team, &folder, 1, Some(Faults { seed: 3, failure: 0.0, repeat: 0.2 })).0;
        assert_eq!(late.digest, summary.digest, "when answers come changes nothing");
        let replayed = replay(&with(disk.clone(), 1, None), Path::new(OUT)).unwrap();
        assert_eq!(replayed.status, RunStatus::Same);
        let journal = events(disk, Path::new(OUT)).unwrap().0;
        let all: Vec<Answer> = answers(&journal).into_values().flatten().collect();
        (summary.totals.resolutions, all)
    };

    let (once, all) = ran(0);
    assert!(all.iter().all(|answer| answer.request.step.is_none()), "a question that is put once is as it was");
    assert_eq!((once.again, once.reasked, once.default), (0, 0, 0));
    assert!(once.none > 40 && once.fit > 10, "{once:?}");

    let (again, all) = ran(2);
    let mut expected = Resolutions::default();
    for answer in &all {
        let step = answer.request.step.unwrap();
        assert_eq!((step.last, step.default), (step.nth == 2, false));
        let words = answer.request.messages.iter().flat_map(|message| &message.parts).filter(|part| {
            matches!(part, polity_kernel::ask::Part::Text(text) if text.starts_with("That reply cannot be used"))
        });
        assert_eq!(words.count(), usize::from(step.nth), "it is told what was wrong, each time");
        match (&answer.outcome, step.nth) {
            (Outcome::Reply { repaired: true, .. }, _) => expected.repaired += 1,
            (Outcome::Reply { .. }, 0) => expected.fit += 1,
            (Outcome::Reply { .. }, _) => expected.reasked += 1,
            (Outcome::Invalid { .. } | Outcome::Refused { .. }, 0 | 1) => expected.again += 1,
            _ => expected.none += 1,
        }
    }
    assert_eq!(again, expected);
    let tries = |nth: u8| all.iter().filter(|answer| answer.request.step.is_some_and(|step| step.nth == nth)).count();
    assert_eq!((tries(1) + tries(2)) as u64, again.again, "every try that may be made again is");
    let share = |resolutions: &Resolutions| resolutions.none as f64 / resolutions.ended() as f64;
    assert!(again.reasked > 20 && share(&again) < 0.8 * share(&once), "{once:?}, {again:?}");

    let mut team = harness::team(&folder, "debate", 3, 2);
    team["max_retries"] = json!(11);
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
    let why = run(&with(disk, 1, None), &prepared(&team, &folder), Path::new(OUT)).unwrap_err().to_string();
    assert!(why.contains("max_retries") && why.contains("at most 10"), "{why}");
}

#[test]
fn answers_come_as_rust_types() {
    let folder = scratch("ladder-types");
    let society = |odd: bool| {
        json!({
            "name": "ballots", "seed": SEED, "rounds": 3, "agents": 20,
            "world": {"kind": "guess-average"},
            "cohorts": [{"name": "voters", "share": 1.0, "policy": {"kind": "voter", "odd": odd}}],
        })
    };
    let mut team = harness::team(&folder, "jury", 4, 1);
    team["model"] = json!("sim/perfect");
    // The right answer must be a possible answer.
    let items = r#"{"question": "Whom?", "answer": "new-face", "difficulty": 0}"#.to_string() + "\n";
    std::fs::write(folder.join("items.jsonl"), items.repeat(4)).unwrap();
    let engine = |disk: &Arc<dyn Disk>| Engine { registry: registry(), ..engine(disk.clone(), 2, None) };
    let disk = || -> Arc<dyn Disk> { Arc::new(SimDisk::default()) };
    for scenario in [society(false), team] {
        let disk = disk();
        let summary = run(&engine(&disk), &prepared(&scenario, &folder), Path::new(OUT)).unwrap();
        assert_eq!((summary.status, summary.totals.resolutions.fit), (RunStatus::Done, summary.totals.answers));
        let tables = tables(disk.as_ref(), Path::new(OUT));
        let values: Vec<f64> = match tables["acts"].iter().find(|(name, _)| name == "value" || name == "text") {
            Some((_, ColumnData::F64(values))) => values.iter().flatten().copied().collect(),
            Some((_, ColumnData::Text(values))) => values.iter().flatten().map(|text| text.parse().unwrap()).collect(),
            other => panic!("{other:?}"),
        };
        assert!(values.len() >= 12 && values.iter().all(|x| (11.0..=25.5).contains(x)), "{values:?}");
        assert_eq!(replay(&engine(&disk), Path::new(OUT)).unwrap().status, RunStatus::Same);
    }
    let why = run(&engine(&disk()), &prepared(&society(true), &folder), Path::new(OUT)).unwrap_err().to_string();
    assert!(why.contains("agent 0, round 0") && why.contains("it may be absent (Option)"), "{why}");
}
