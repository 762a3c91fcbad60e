//! Requests to providers behind the mock server, for the tests of all wires.

use polity_kernel::ask::{Asker, ChatMessage, Effect, EffectId, Request, ResponseFormat, Role, Value};
use polity_models::mock_server::{Faults, MockServer, Options};
use polity_models::models::{Exchange, Provider, ProviderError};
use std::sync::LazyLock;
use tokio::runtime::Runtime;

pub const CANARY: &str = "sk-canary-5ecre7-0123456789abcdef";

pub fn mock_server(faults: &[&str]) -> MockServer {
    MockServer::start(Options { faults: Faults::read(faults).unwrap(), ..Options::default() }).unwrap()
}

/// Uses one runtime for all tests, as a process does for all its runs: connections live in it.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    RUNTIME.block_on(work)
}

/// Calls until there is an answer or an error; requests to be sent again are, as in a run.
pub fn ask(provider: &dyn Provider, effect: &Effect) -> Result<Exchange, ProviderError> {
    loop {
        match block_on(provider.answer(effect, 1)) {
            Err(ProviderError::Anew { .. }) => {}
            ended => return ended,
        }
    }
}

pub fn effect_to(model: &str, response_format: ResponseFormat, text: &str) -> Effect {
    let messages = vec![ChatMessage::text(Role::System, "You are brief."), ChatMessage::text(Role::User, text)];
    Effect {
        id: EffectId { item: 0, round: 0, actor: 0, asker: Asker::Agent, n: 0 },
        request: Request::new(model, messages, response_format),
        hidden: None,
        default: None,
    }
}

pub fn effect(response_format: ResponseFormat, text: &str) -> Effect {
    effect_to("openai/medium", response_format, text)
}

pub fn record() -> ResponseFormat {
    ResponseFormat::Record(vec![
        ("answer".into(), ResponseFormat::Text),
        ("mood".into(), choice()),
        ("sure".into(), percent()),
    ])
}

pub fn choice() -> ResponseFormat {
    ResponseFormat::Choice(vec!["calm".into(), " angry ".into(), "{sad}".into()])
}

pub fn percent() -> ResponseFormat {
    ResponseFormat::number(0.0, 100.0)
}

pub fn formats() -> [ResponseFormat; 4] {
    [ResponseFormat::Text, choice(), percent(), record()]
}

/// An independent check of what fits.
pub fn fits(response_format: &ResponseFormat, value: &Value) -> bool {
    match (response_format, value) {
        (ResponseFormat::Text, Value::Text(_)) => true,
        (ResponseFormat::Choice(options), Value::Choice(i)) => (*i as usize) < options.len(),
        (ResponseFormat::Number { low, high, .. }, Value::Number(x)) => low <= x && x <= high,
        (ResponseFormat::Record(fields), Value::Record(values)) => {
            fields.len() == values.len()
                && fields.iter().zip(values).all(|((_, response_format), value)| fits(response_format, value))
        }
        _ => false,
    }
}
