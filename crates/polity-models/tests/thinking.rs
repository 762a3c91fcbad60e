//! How much a model thinks, on every wire: what is sent, and what does not go together.

use crate::asking::{ask, choice, effect_to, mock_server};
use crate::wires::WAYS;
use polity_kernel::ask::{ChatMessage, Constrain, Effect, Outcome, Part, ResponseFormat, Role, Settings, Thinking};
use polity_kernel::tool::{Arguments, ToolCall};
use polity_models::mock_server::{MockServer, OFFERS, Options};
use polity_models::models::anthropic::{Anthropic, Messages};
use polity_models::models::google::{GenerateContent, Google};
use polity_models::models::keys::Secret;
use polity_models::models::ollama::{self, Ollama};
use polity_models::models::openai::{Chat, OpenAi};
use polity_models::models::openai_responses::{OpenAiResponses, Responses};
use polity_models::models::{Provider, ProviderError, Remote, Wire};
use serde_json::{Value as Json, json};
use std::sync::Arc;

fn thoughtful(model: &str, thinking: Thinking) -> Effect {
    let mut effect = effect_to(model, ResponseFormat::Text, "Why?");
    effect.request.settings.thinking = Some(thinking);
    effect
}

/// The requests at every level.
fn sent<W: Wire>(provider: &Remote<W>, model: &str) -> [Json; 4] {
    Thinking::ALL.map(|thinking| json!(provider.request(&thoughtful(model, thinking))))
}

fn fields(all: &[Json; 4], path: &str) -> [Json; 4] {
    [0, 1, 2, 3].map(|i| all[i].pointer(path).cloned().unwrap_or_default())
}

#[test]
fn every_wire_has_its_own_words_for_it() {
    let near = "http://127.0.0.1:1";
    let key = || Secret::new("none");
    let efforts = ["none", "low", "medium", "high"].map(Json::from);
    let own = OpenAi::new("https://api.openai.com/v1", key()).unwrap();
    let all = sent::<Chat>(&own, "openai/m");
    assert_eq!(fields(&all, "/reasoning_effort"), efforts);
    assert!(all.iter().all(|body| body.get("chat_template_kwargs").is_none() && body.get("thinking").is_none()));
    let other = OpenAi::new(&format!("{near}/v1"), key()).unwrap();
    let all = sent::<Chat>(&other, "openai/m");
    assert_eq!(fields(&all, "/reasoning_effort"), [json!(null), json!("low"), json!("medium"), json!("high")]);
    let switched = [false, true, true, true].map(Json::from);
    assert_eq!(fields(&all, "/chat_template_kwargs/enable_thinking"), switched);
    assert_eq!(fields(&all, "/chat_template_kwargs/thinking"), switched);
    assert_eq!(fields(&all, "/thinking/type"), ["disabled", "enabled", "enabled", "enabled"].map(Json::from));
    let responses = OpenAiResponses::new(&format!("{near}/v1"), key()).unwrap();
    assert_eq!(fields(&sent::<Responses>(&responses, "openai-responses/m"), "/reasoning/effort"), efforts);
    let anthropic = Anthropic::new(near, key()).unwrap();
    let enabled = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
    let all = sent::<Messages>(&anthropic, "anthropic/m");
    assert_eq!(fields(&all, "/thinking"), [json!({"type": "disabled"}), enabled(1024), enabled(4096), enabled(6144)]);
    let google = Google::new(near, key()).unwrap();
    let config = "/generationConfig/thinkingConfig";
    let budget = |budget: u64| json!({"thinkingBudget": budget, "includeThoughts": true});
    let all = sent::<GenerateContent>(&google, "google/gemini-2.5-flash");
    assert_eq!(fields(&all, config), [json!({"thinkingBudget": 0}), budget(1024), budget(4096), budget(6144)]);
    let level = |level: &str| json!({"thinkingLevel": level, "includeThoughts": true});
    let all = sent::<GenerateContent>(&google, "google/gemini-3-pro");
    let levels = [json!({"thinkingLevel": "minimal"}), level("low"), level("medium"), level("high")];
    assert_eq!(fields(&all, config), levels);
    let ollama = Ollama::new(near, Secret::new("")).unwrap();
    let levels = [json!(false), json!("low"), json!("medium"), json!("high")];
    assert_eq!(fields(&sent::<ollama::Chat>(&ollama, "ollama/m"), "/think"), levels);
}

#[test]
fn what_does_not_go_together_is_refused_before_it_is_sent() {
    let refusal = |provider: &dyn Provider, effect: &Effect| match ask(provider, effect) {
        Err(ProviderError::Fatal { why }) => why,
        other => panic!("{other:?}"),
    };
    let with = |model: &str, settings: Settings| {
        let mut effect = effect_to(model, choice(), "Why?");
        effect.request.settings = settings;
        effect
    };
    let low = Settings { thinking: Some(Thinking::Low), ..Settings::default() };
    let mock_server = MockServer::start(Options { offers: OFFERS.to_vec(), ..Options::default() }).unwrap();
    let key = || Secret::new("none");
    let anthropic = Anthropic::new(&mock_server.root(), key()).unwrap();
    for (settings, words) in [
        (
            Settings { max_tokens: Some(1024), ..low },
            "`thinking: low` of `anthropic/m`: the thoughts have at least 1024",
        ),
        (Settings { temperature: Some(0.5), ..low }, "`temperature`"),
        (Settings { top_p: Some(0.5), ..low }, "`top_p`"),
    ] {
        let why = refusal(&anthropic, &with("anthropic/m", settings));
        assert!(why.contains(words), "{why}");
        // Without thoughts, each of them is fine.
        let settings = Settings { thinking: Some(Thinking::Off), ..settings };
        assert!(ask(&anthropic, &with("anthropic/m", settings)).is_ok());
    }
    let openai = OpenAi::new(&mock_server.url(), key()).unwrap();
    let why = refusal(&openai, &with("openai/m", Settings { constrain: Some(Constrain::Logprobs), ..low }));
    assert!(why.contains("no room for thoughts"), "{why}");
    // OpenAI itself; nothing is sent.
    let own = OpenAi::new("https://api.openai.com/v1", key()).unwrap();
    let why = refusal(&own, &with("openai/m", Settings { temperature: Some(0.5), ..low }));
    assert!(why.contains("`temperature`"), "{why}");
    assert_eq!(mock_server.stats().calls, 3);
}

#[test]
fn a_thinking_model_is_answered_on_every_wire() {
    let mock_server = mock_server(&[]);
    for way in WAYS {
        let exchange = ask(&*way.to(&mock_server, None), &thoughtful(way.model, Thinking::High)).unwrap();
        assert!(matches!(exchange.outcome, Outcome::Reply { .. }), "{}", way.name);
    }
}

#[test]
fn claude_does_not_think_between_calls() {
    let mut effect = thoughtful("anthropic/m", Thinking::High);
    let anthropic = Anthropic::new("http://127.0.0.1:1", Secret::new("none")).unwrap();
    effect.request.response_format = ResponseFormat::Calls(Arc::default());
    let thinks = |effect: &Effect| json!(anthropic.request(effect)).get("thinking").is_some();
    assert!(thinks(&effect));
    let calls = vec![ToolCall::new("now", &Arguments::new())];
    Arc::make_mut(&mut effect.request.messages)
        .push(ChatMessage { role: Role::Assistant, parts: vec![Part::Calls(calls)] });
    assert!(!thinks(&effect));
    Arc::make_mut(&mut effect.request.messages).push(ChatMessage::text(Role::Assistant, "It is noon."));
    assert!(thinks(&effect));
}

#[test]
fn levels_have_names() {
    for thinking in Thinking::ALL {
        let settings: Settings = serde_json::from_value(json!({"thinking": thinking.name()})).unwrap();
        assert_eq!(settings.thinking, Some(thinking));
        assert_eq!(Settings::default().with(settings), settings);
    }
    let unknown = serde_json::from_value::<Settings>(json!({"thinking": "deep"})).unwrap_err().to_string();
    assert!(unknown.contains("medium"), "{unknown}");
}
