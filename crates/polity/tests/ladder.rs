//! Questions with ladders against a model that answers in every way but the right one.
//!
//! The long form: `bash scripts/campaigns.sh malformed`.

use crate::harness;

use crate::harness::{answers, assert_same_tables, engine, events, from_env, prepared, replay, run, scratch, tables};
use polity_driver::disk::{Disk, SimDisk};
use polity_driver::drive::Rungs;
use polity_driver::models::openai::{Received, outcome, read_completion};
use polity_driver::models::{Answering, Exchange, Provider, Providers, Trouble};
use polity_driver::run::{Engine, RunStatus, Summary};
use polity_driver::source::Faults;
use polity_driver::tables::ColumnData;
use polity_kernel::Invalid;
use polity_kernel::ask::{Answer, Effect, EffectId, Message, Outcome, Request, Role, Unanswered, Usage, Value, Want};
use polity_kernel::ladder::Question;
use polity_kernel::method::{Brief, Desk, Method, Records, Verdict};
use polity_kernel::policy::{Binding, Fault, Person, Policy, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

const OUT: &str = "run";
const ROUNDS: u32 = 5;
const SEED: u64 = 21;
/// How often a question is put again.
const AGAIN: u8 = 2;

// ------------------------------------------------------------------ the questions

/// What is asked each turn: a name, the form, and the value that holds when nothing helps, which no reply has.
fn questions() -> [(&'static str, Want, Value); 4] {
    let options = ["left", "right", "neither of them", "undecided"].map(String::from).to_vec();
    let number = || Want::number(0.0, 60.0);
    let whole = Want::Number { low: 1.0, high: 9.0, whole: true };
    let record =
        vec![("why".into(), Want::Text), ("sure".into(), number()), ("vote".into(), Want::Choice(options.clone()))];
    let list = Want::List { of: Box::new(whole), least: 1, most: 4 };
    let nobody = Value::Record(vec![Value::Text("default".into()), Value::Number(59.875), Value::Choice(3)]);
    [
        ("choice", Want::Choice(options), Value::Choice(3)),
        ("number", number(), Value::Number(59.875)),
        ("record", Want::Record(record), nobody),
        ("list", list, Value::List(vec![Value::Number(9.0); 4])),
    ]
}

/// A number of a value, which an act can carry.
fn shown(value: &Value) -> f64 {
    match value {
        Value::Text(text) => text.len() as f64,
        Value::Choice(i) => f64::from(*i),
        Value::Number(x) => *x,
        Value::Record(values) => values.get(1).map_or(0.0, shown),
        Value::List(values) => values.iter().map(shown).sum(),
        Value::Vector(numbers) => numbers.len() as f64,
    }
}

/// A policy that puts all questions at once and does what they end in.
struct Climber(u16);

impl Policy for Climber {
    const NAME: &'static str = "climber";
    const SUMMARY: &'static str = "Ask questions with ladders";
    type Params = harness::Nothing;
    /// Questions that ended in their defaults.
    type State = u32;

    fn open(_: harness::Nothing, binding: &Binding<'_>) -> Result<Self, Invalid> {
        Ok(Climber(binding.number_act()?.0))
    }

    fn born(&self, _: Person<'_>, _: &mut Draws) -> u32 {
        0
    }

    async fn act(&self, state: &mut u32, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let question = |(name, want, default): (&str, Want, Value)| {
            let words = format!("Agent {}, round {}: which {name}?", turn.who, turn.round);
            let messages = vec![Message::text(Role::User, words)];
            let request = Request { purpose: name.into(), ..Request::new("malformed/model", messages, want) };
            Question { request, hidden: None, again: AGAIN, default }
        };
        let asked = questions().map(question).to_vec();
        for settled in turn.settle_all(asked).await {
            *state += u32::from(settled.defaulted.is_some());
            turn.act(self.0, shown(&settled.value));
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

/// A policy that asks for ballots; with `odd` for what can not be asked for.
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

    fn open(params: VoterParams, binding: &Binding<'_>) -> Result<Self, Invalid> {
        Ok(Voter { act: binding.number_act()?.0, odd: params.odd })
    }

    fn born(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let messages = vec![Message::text(Role::User, format!("Agent {}, round {}: whom?", turn.who, turn.round))];
        let request = Request::new("sim/perfect", messages, Want::Text);
        if self.odd {
            turn.ask_as::<Option<Ballot>>(request.clone()).await?.ok();
        }
        let heard: Result<Ballot, Unanswered> = turn.ask_as(request).await?;
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

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        for member in 0..desk.team.len() {
            let ballot: Result<Ballot, _> =
                desk.ask_as(Brief::new(member, vec![Message::text(Role::User, "Whom?")], Want::Text)).await?;
            desk.record(member, 0, ballot.map_or("none".into(), |ballot| ballot.number().to_string()));
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

/// What must come of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Comes {
    /// A reply as it came, with the value that was meant.
    Fit,
    /// A reply that was mended, with the value that was meant.
    Mended,
    /// Never a reply.
    Invalid,
    Refused,
    Failed,
    /// Cut somewhere: no reply, or the value that was meant.
    Either,
}

use Comes::{Either, Failed, Fit, Invalid as Bad, Mended, Refused};

/// Every way to answer, and what must come of it.
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
    ("control-letters", Bad),
    ("deep", Bad),
    ("huge", Bad),
];

/// A model behind the wire of the real ones, of which every answer is made by the seed.
struct Malformed;

/// A value as a model would write it in an object, and what it means.
fn meant(want: &Want, draws: &mut Draws) -> Value {
    match want {
        Want::Text => Value::Text(["because", "it's \"so\", {really}", "ü🦀\n[1]"][draws.below(3) as usize].into()),
        // Not the last, which is the default.
        Want::Choice(options) => Value::Choice(draws.below(options.len() as u64 - 1) as u32),
        Want::Number { low, high, whole: true } => Value::Number(low + draws.below((high - low) as u64) as f64),
        Want::Number { low, high, .. } => Value::Number((draws.range(*low, high - 1.0) * 100.0).round() / 100.0),
        Want::List { of, least, most } => {
            let n = u64::from(*least) + draws.below(u64::from(most - least) + 1);
            Value::List((0..n).map(|_| meant(of, draws)).collect())
        }
        Want::Record(fields) => Value::Record(fields.iter().map(|(_, want)| meant(want, draws)).collect()),
        Want::Vector => unreachable!("no ladder asks for a vector"),
    }
}

/// What an answer means, the way it is given in, and the HTTP response.
fn answered(id: EffectId, want: &Want) -> (Value, usize, Received) {
    let mut draws = Draws::new(SEED, Stream::Driver, id.round, id.actor * 64 + id.n);
    let mut way = draws.below(WAYS.len() as u64) as usize;
    if WAYS[way].0 == "huge" && draws.unit() > 0.1 {
        way = 0; // They take their time.
    }
    let value = meant(want, &mut draws);
    // Objects as the wire has them: what is none stands in one as `answer`.
    let whole = match want {
        Want::Record(_) => want.clone(),
        _ => Want::Record(vec![("answer".into(), want.clone())]),
    };
    let inside = match want {
        Want::Record(_) => value.clone(),
        _ => Value::Record(vec![value.clone()]),
    };
    let json = inside.to_json(&whole);
    let text = json.to_string();
    let bare = match value.to_json(want) {
        Json::String(text) => text,
        other => other.to_string(),
    };
    let open = text.strip_suffix('}').unwrap();
    let quoted = |open: &str, close: &str| {
        // Texts of these kinds of quotes hold none of them.
        let plain = text.replace("it's \\\"so\\\"", "it is so");
        plain.split('"').enumerate().map(|(i, part)| [part, [open, close][i % 2]].concat()).collect::<String>()
    };
    let mut content = Some(text.clone());
    let mut finish = "stop";
    let (mut status, mut kind, mut body) = (200, "application/json", None);
    let mut message = json!({"role": "assistant"});
    match WAYS[way].0 {
        "fit" => content = Some(bare),
        "in-its-envelope" => {}
        "spaces-around" => content = Some(format!("\n\n  {text}\t\n")),
        "fenced" => content = Some(format!("```\n{text}\n```")),
        "fenced-json" => content = Some(format!("Sure!\n```json\n{text}\n```\n")),
        "prose-around" => content = Some(format!("Here it is (it's \"mine\"):\n{text}\nIs that fine?")),
        "trailing-comma" => content = Some(format!("{open},}}")),
        "single-quotes" => content = Some(quoted("'", "'").trim_end_matches('\'').to_owned()),
        "curly-quotes" => {
            content = Some(quoted("\u{201c}", "\u{201d}").trim_end_matches(['\u{201c}', '\u{201d}']).to_owned())
        }
        "bare-names" => content = Some(text.replace("\"answer\":", "answer:").replace("\"why\":", "why: ")),
        "a-comment" => content = Some(format!("{open} // that's {{it}}, \"I\" think\n}}")),
        // A number that ends the reply may have been cut; a space shows that it was not.
        "last-brace-missing" => content = Some(format!("{open}\n")),
        "number-as-text" => {
            let as_text = |json: &Json| if json.is_number() { json!(json.to_string()) } else { json.clone() };
            let mut json = json.clone();
            for value in json.as_object_mut().unwrap().values_mut() {
                *value = match value.as_array() {
                    Some(items) => items.iter().map(as_text).collect(),
                    None => as_text(value),
                };
            }
            // A choice has no number.
            let choice = matches!(want, Want::Choice(_));
            content = Some(if choice { format!("**{}**.", bare.to_uppercase()) } else { json.to_string() });
        }
        "python" => content = Some(format!("{open}, \"sure_of_it\": True, \"else\": None}}")),
        "cut-anywhere" => {
            let letters = draws.below(text.chars().count() as u64) as usize;
            content = Some(text.chars().take(letters).collect());
        }
        "cut-in-a-value" => content = Some(open.trim_end_matches(['"', ']']).to_owned()),
        "length" => finish = "length",
        "empty" => content = Some(String::new()),
        "white-space" => content = Some(" \n\t \u{a0}".into()),
        "null-content" => content = None,
        "no-choices" => body = Some(json!({"id": "x", "choices": []}).to_string()),
        "empty-body" => body = Some(" ".into()),
        "null" => content = Some("null".into()),
        "tool-call" => {
            message["tool_calls"] = json!([{"id": "1", "function": {"name": "look_up", "arguments": text}}]);
        }
        "refused" => message["refusal"] = json!("I can not help with that."),
        "filtered" => finish = "content_filter",
        "filtered-400" => {
            status = 400;
            body = Some(json!({"error": {"message": "filtered", "code": "content_filter"}}).to_string());
        }
        "status-400" => {
            status = 400;
            body = Some(json!({"error": {"message": "too long"}}).to_string());
        }
        "web-page" => {
            kind = "text/html; charset=utf-8";
            body = Some("<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>".into());
        }
        "web-page-inside" => content = Some("<html><body style='{}'>7 left</body></html>".into()),
        "no-json" => body = Some("upstream connect error or disconnect/reset before headers".into()),
        "half-a-body" => {}
        "error-in-body" => body = Some(json!({"error": {"message": "overloaded", "answer": 7}}).to_string()),
        "error-as-content" => {
            content = Some("Error: rate limit reached for 7 requests. {\"error\": {\"code\": 7}}".into())
        }
        "wrong-types" => content = Some(json!({"answer": {"x": 7}, "why": 1, "sure": [7], "vote": 2}).to_string()),
        "wrong-names" => content = Some(json!({"Answer": bare, "reason": "left", "sure ": 7}).to_string()),
        "out-of-bounds" => {
            content = Some(match want {
                Want::List { .. } => json!([1, 2, 10]).to_string(),
                Want::Choice(_) => "centre".into(),
                Want::Record(_) => json!({"why": "x", "sure": 60.5, "vote": "left"}).to_string(),
                _ => ["-1", "60.01", "1e9"][draws.below(3) as usize].into(),
            });
        }
        "not-finite" => {
            let none = ["NaN", "Infinity", "-Infinity", "1e999", "nan"][draws.below(5) as usize];
            content = Some(match want {
                Want::Record(_) => format!("{{\"why\": \"x\", \"sure\": {none}, \"vote\": \"left\"}}"),
                Want::List { .. } => format!("[1, {none}]"),
                _ => none.into(),
            });
        }
        "number-in-prose" => content = Some("I would say 5 or 6, so neither left nor right.".into()),
        "two-values" => {
            let name = if text.contains("\"vote\"") { "vote" } else { "answer" };
            content = Some(format!("{open},\"{name}\":\"another\"}}"));
        }
        "two-objects" => content = Some(format!("{text}\n{text}")),
        "not-utf-8" => {}
        "control-letters" => {
            content = Some((0..200).map(|_| char::from_u32(draws.below(0x300) as u32).unwrap_or(' ')).collect());
        }
        "deep" => content = Some(["[", "{\"answer\":", "[{'a':"][draws.below(3) as usize].repeat(20_000)),
        "huge" => content = Some("word ".repeat(2_100_000)),
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
            let want = &effect.request.want;
            let (_, _, received) = answered(effect.id, want);
            let outcome = match read_completion(&received) {
                Ok(Ok(completion)) => outcome(want, &completion, &received.body),
                Ok(Err(outcome)) => outcome,
                // A run tries such a call again, with pauses; here it has been tried in vain.
                Err(Trouble::Retry { why, .. }) => Outcome::Failed { why },
                Err(trouble) => return Err(trouble),
            };
            Ok(Exchange { outcome, usage: Usage { tokens_in: 30, tokens_out: 10, ..Usage::default() } })
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

/// What the values of the acts must be and how many answers came to what, counted anew from the journal alone.
fn counted(answers: &[Answer]) -> (Vec<f64>, Rungs) {
    let mut tries: BTreeMap<(u32, u32, String), Vec<&Answer>> = BTreeMap::new();
    for answer in answers {
        let question = (answer.id.round, answer.id.actor, answer.request.purpose.clone());
        tries.entry(question).or_default().push(answer);
    }
    let (mut rungs, mut acts) = (Rungs::default(), BTreeMap::new());
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
                        (true, _) => rungs.repaired += 1,
                        (false, 0) => rungs.fit += 1,
                        (false, _) => rungs.reasked += 1,
                    }
                }
                Outcome::Invalid { .. } | Outcome::Refused { .. } if nth < last => rungs.again += 1,
                Outcome::Invalid { .. } | Outcome::Refused { .. } => {
                    assert_eq!(nth, usize::from(AGAIN), "it is put again as often as declared");
                    rungs.default += 1;
                }
                Outcome::Failed { .. } => {
                    assert_eq!(nth, last);
                    rungs.default += 1;
                }
                Outcome::Denied { why } => panic!("{why}"),
            }
        }
        acts.insert((round, actor, place), shown(value));
    }
    (acts.into_values().collect(), rungs)
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

    // Every answer is what it was made to be, and no reply says what was not meant.
    let mut ways: BTreeMap<&str, [u64; 5]> = BTreeMap::new();
    for answer in &all {
        let (value, way, received) = answered(answer.id, &answer.request.want);
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
    // Every rung is counted, and questions without a reply end in their declared defaults.
    let (expected, rungs) = counted(&all);
    assert_eq!(summary.totals.rungs, rungs);
    assert!(
        rungs.fit > 0
            && rungs.repaired > 0
            && rungs.reasked > 0
            && rungs.again > 0
            && rungs.default > 0
            && rungs.none == 0
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
    println!("{} questions, {} answers, {rungs:?}", agents * ROUNDS * 4, all.len());

    // Neither shards nor the order of arrival reach it, and it can be replayed.
    for (shards, faults) in [(3, None), (1, Some(1)), (3, Some(2))] {
        let faults = faults.map(|seed| Faults { seed, failure: 0.2, repeat: 0.2 });
        let (again, other) = whole(&scenario, &folder, shards, faults);
        assert_eq!((&again.digest, again.totals.rungs), (&summary.digest, rungs));
        assert_same_tables(&harness::tables(other.as_ref(), Path::new(OUT)), &tables, "shards and arrival");
    }
    assert_eq!(replay(&with(disk, 2, None), Path::new(OUT)).unwrap().status, RunStatus::Same);
}

/// The value that was meant, in the words of the way: one changes a text so that it can be quoted otherwise.
fn alike(value: &Value, way: &str) -> Value {
    match value {
        Value::Text(text) if way.ends_with("-quotes") => Value::Text(text.replace("it's \"so\"", "it is so")),
        Value::Record(values) => Value::Record(values.iter().map(|value| alike(value, way)).collect()),
        value => value.clone(),
    }
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
    // What is right must be something that can be said.
    let items = r#"{"question": "Whom?", "answer": "new-face", "difficulty": 0}"#.to_string() + "\n";
    std::fs::write(folder.join("items.jsonl"), items.repeat(4)).unwrap();
    let engine = |disk: &Arc<dyn Disk>| Engine { registry: registry(), ..engine(disk.clone(), 2, None) };
    let disk = || -> Arc<dyn Disk> { Arc::new(SimDisk::default()) };
    for scenario in [society(false), team] {
        let disk = disk();
        let summary = run(&engine(&disk), &prepared(&scenario, &folder), Path::new(OUT)).unwrap();
        assert_eq!((summary.status, summary.totals.rungs.fit), (RunStatus::Done, summary.totals.answers));
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
