//! Reads a chat request: the question that its messages make, or why a team cannot answer it.

use super::Failure;
use polity_kernel::ask::Settings;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

/// Parameters without effect on a team. The book lists them.
const IGNORED: [&str; 16] = [
    "frequency_penalty",
    "logit_bias",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
    "verbosity",
];

/// How an answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// As one object.
    Whole,
    /// As server-sent chunks.
    Stream {
        /// With usage in the last chunk.
        usage: bool,
    },
}

/// A request that a team can answer.
#[derive(Debug)]
pub(crate) struct ChatRequest {
    pub model: String,
    pub text: String,
    pub seed: Option<u64>,
    pub settings: Settings,
    pub delivery: Delivery,
}

#[derive(Deserialize)]
struct Body {
    model: String,
    messages: Vec<Message>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    seed: Option<i64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    #[serde(flatten)]
    rest: Map<String, Json>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Option<Content>,
    tool_calls: Option<Json>,
    function_call: Option<Json>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    r#type: String,
    text: Option<String>,
}

/// Reads the body of a request.
pub(crate) fn read(body: &[u8]) -> Result<ChatRequest, Failure> {
    let body: Body = serde_json::from_slice(body)
        .map_err(|error| Failure::invalid(format!("the body is not a chat request: {error}")))?;
    for (name, value) in &body.rest {
        check_parameter(name, value)?;
    }
    let settings = Settings { temperature: body.temperature, top_p: body.top_p, ..Settings::default() };
    settings.check().map_err(|invalid| Failure::param(&invalid.key, invalid.message))?;
    let seed = body
        .seed
        .map(|seed| u64::try_from(seed).map_err(|_| Failure::param("seed", format!("must be at least 0, is {seed}"))));
    let usage = body.stream_options.and_then(|options| options.include_usage) == Some(true);
    Ok(ChatRequest {
        model: body.model,
        text: question(&body.messages)?,
        seed: seed.transpose()?,
        settings,
        delivery: if body.stream == Some(true) { Delivery::Stream { usage } } else { Delivery::Whole },
    })
}

/// Refuses a parameter that a team does not support, unless its value changes nothing.
fn check_parameter(name: &str, value: &Json) -> Result<(), Failure> {
    let is_one_of = |neutral: &[Json]| value.is_null() || neutral.contains(value);
    let (neutral, why) = match name {
        name if IGNORED.contains(&name) => return Ok(()),
        "tools" | "functions" => (is_one_of(&[json!([])]), "a team answers in text; it calls no tools of its client"),
        "tool_choice" | "function_call" => {
            (is_one_of(&[json!("none"), json!("auto")]), "a team answers in text; it calls no tools of its client")
        }
        "n" => (is_one_of(&[json!(1)]), "a request is one run with one answer; for more answers, send more requests"),
        "response_format" => (is_one_of(&[json!({ "type": "text" })]), "a team answers in text, not in a given form"),
        "modalities" => (is_one_of(&[json!(["text"])]), "a team answers in text only"),
        "logprobs" => (is_one_of(&[json!(false)]), "the answer of a team has no log-probabilities"),
        "top_logprobs" => (is_one_of(&[json!(0)]), "the answer of a team has no log-probabilities"),
        "stop" => (is_one_of(&[json!([])]), "the answer of a team cannot be cut at a text"),
        _ => (is_one_of(&[]), "a team does not support this parameter; leave it out"),
    };
    if neutral { Ok(()) } else { Err(Failure::unsupported(name, why)) }
}

/// Makes one question of a conversation. A single message is the question as it is. Otherwise instructions come first, then the
/// earlier messages, then the last one, each under a heading.
fn question(messages: &[Message]) -> Result<String, Failure> {
    let (mut instructions, mut earlier) = (Vec::new(), Vec::new());
    let Some((last, before)) = messages.split_last() else {
        return Err(Failure::param("messages", "must hold at least one message"));
    };
    for (i, message) in before.iter().enumerate() {
        let text = text_of(message, i)?;
        match message.role.as_str() {
            "system" | "developer" => instructions.push(text),
            "user" => earlier.push(format!("User: {text}")),
            "assistant" => earlier.push(format!("Assistant: {text}")),
            other => return Err(wrong_role(i, other)),
        }
    }
    if last.role != "user" {
        return match last.role.as_str() {
            "system" | "developer" | "assistant" => {
                Err(Failure::param("messages", "the last message must be from the user; it is the question"))
            }
            other => Err(wrong_role(before.len(), other)),
        };
    }
    let text = text_of(last, before.len())?;
    if text.trim().is_empty() {
        return Err(Failure::param("messages", "the last message is empty; it is the question"));
    }
    let section = |heading: &str, parts: Vec<String>, between: &str| {
        (!parts.is_empty()).then(|| format!("{heading}\n{}\n\n", parts.join(between)))
    };
    let head = [section("Instructions:", instructions, "\n\n"), section("The conversation so far:", earlier, "\n\n")];
    let head: String = head.into_iter().flatten().collect();
    Ok(if head.is_empty() { text } else { format!("{head}The user's message to answer:\n{text}") })
}

fn wrong_role(i: usize, role: &str) -> Failure {
    let why = format!("the role of message {i} is `{role}`; a team understands system, developer, user and assistant");
    Failure::param("messages", why)
}

fn text_of(message: &Message, i: usize) -> Result<String, Failure> {
    let calls = [&message.tool_calls, &message.function_call].into_iter().flatten();
    if calls.into_iter().any(|calls| *calls != json!([])) {
        return Err(Failure::param("messages", format!("message {i} calls a tool; a team understands text only")));
    }
    let parts = match &message.content {
        None => return Err(Failure::param("messages", format!("message {i} has no content"))),
        Some(Content::Text(text)) => return Ok(text.clone()),
        Some(Content::Parts(parts)) => parts,
    };
    let text = |part: &Part| match (part.r#type.as_str(), &part.text) {
        ("text", Some(text)) => Ok(text.clone()),
        (kind, _) => Err(Failure::param(
            "messages",
            format!("message {i} has a part of the type `{kind}`; a team understands text only"),
        )),
    };
    Ok(parts.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn asked(messages: Json, more: Json) -> Result<ChatRequest, String> {
        let mut body = json!({ "model": "polity/moa", "messages": messages });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        read(body.to_string().as_bytes()).map_err(|failure| format!("{failure:?}"))
    }

    fn user(content: Json) -> Json {
        json!([{ "role": "user", "content": content }])
    }

    #[test]
    fn every_message_is_part_of_the_question() {
        let text = |messages| asked(messages, json!({})).unwrap().text;
        assert_eq!(text(user("What is 6 times 7?".into())), "What is 6 times 7?");
        let parts = json!([{ "type": "text", "text": "What is" }, { "type": "text", "text": "6 times 7?" }]);
        assert_eq!(text(user(parts)), "What is\n6 times 7?");
        let long = json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "Hello" },
            { "role": "assistant", "content": "Good day" },
            { "role": "developer", "content": "Use words." },
            { "role": "user", "content": "What is 6 times 7?" },
        ]);
        assert_eq!(
            text(long),
            "Instructions:\nBe brief.\n\nUse words.\n\nThe conversation so far:\nUser: Hello\n\nAssistant: Good day\n\nThe \
             user's message to answer:\nWhat is 6 times 7?"
        );
    }

    #[test]
    fn messages_that_a_team_does_not_understand_are_refused() {
        let image = json!([{ "type": "image_url", "image_url": { "url": "http://127.0.0.1/a.png" } }]);
        let tool =
            json!([{ "role": "tool", "tool_call_id": "a", "content": "sunny" }, { "role": "user", "content": "So?" }]);
        let call =
            json!([{ "role": "assistant", "content": "", "tool_calls": [{}] }, { "role": "user", "content": "So?" }]);
        let own = json!([{ "role": "user", "content": "a" }, { "role": "assistant", "content": "b" }]);
        for (messages, why) in [
            (json!([]), "at least one message"),
            (user(image), "image_url"),
            (tool, "`tool`"),
            (call, "calls a tool"),
            (own, "the last message must be from the user"),
            (user("  ".into()), "is empty"),
            (user(Json::Null), "no content"),
        ] {
            let refused = asked(messages.clone(), json!({})).unwrap_err();
            assert!(refused.contains(why) && refused.contains("400"), "{messages}: {refused}");
        }
    }

    #[test]
    fn parameters_are_honoured_ignored_or_refused() {
        let more = |more| asked(user("a".into()), more);
        let honoured = more(json!({ "seed": 7, "temperature": 0.5, "top_p": 0.9, "stream": true })).unwrap();
        assert_eq!(
            (honoured.seed, honoured.settings.temperature, honoured.settings.top_p),
            (Some(7), Some(0.5), Some(0.9))
        );
        assert_eq!(honoured.delivery, Delivery::Stream { usage: false });
        let ignored = json!({ "max_tokens": 5, "user": "u", "n": 1, "tools": [], "tool_choice": "auto", "stop": null });
        assert_eq!(more(ignored).unwrap().delivery, Delivery::Whole);
        for (refused, param) in [
            (json!({ "n": 2 }), "n"),
            (json!({ "tools": [{ "type": "function" }] }), "tools"),
            (json!({ "response_format": { "type": "json_object" } }), "response_format"),
            (json!({ "logprobs": true }), "logprobs"),
            (json!({ "stop": "." }), "stop"),
            (json!({ "temperature": 3 }), "temperature"),
            (json!({ "top_p": 0 }), "top_p"),
            (json!({ "seed": -1 }), "seed"),
            (json!({ "temprature": 0.5 }), "temprature"),
        ] {
            let why = more(refused.clone()).unwrap_err();
            assert!(why.contains(&format!("param: Some({param:?})")) && why.contains("400"), "{refused}: {why}");
        }
    }
}
