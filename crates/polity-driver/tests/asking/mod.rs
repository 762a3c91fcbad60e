//! Questions to providers behind the stand-in, for the tests of all wires.

use polity_driver::models::{Exchange, Provider, Trouble};
use polity_driver::standin::{Faults, Options, Standin};
use polity_kernel::ask::{Asker, Effect, EffectId, Message, Request, Role, Value, Want};
use std::sync::LazyLock;
use tokio::runtime::Runtime;

pub const CANARY: &str = "sk-canary-5ecre7-0123456789abcdef";

pub fn standin(faults: &[&str]) -> Standin {
    Standin::start(Options { faults: Faults::read(faults).unwrap(), ..Options::default() }).unwrap()
}

/// In one runtime for all, as a process has one for all its runs: connections live in it.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    RUNTIME.block_on(work)
}

/// Asks until there is an answer or trouble; a question that is to be put anew is, as a run would.
pub fn ask(provider: &dyn Provider, effect: &Effect) -> Result<Exchange, Trouble> {
    loop {
        match block_on(provider.answer(effect, 1)) {
            Err(Trouble::Anew { .. }) => {}
            ended => return ended,
        }
    }
}

pub fn effect_to(model: &str, want: Want, text: &str) -> Effect {
    let messages = vec![Message::text(Role::System, "You are brief."), Message::text(Role::User, text)];
    Effect {
        id: EffectId { item: 0, round: 0, actor: 0, asker: Asker::Agent, n: 0 },
        request: Request::new(model, messages, want),
        hidden: None,
        default: None,
    }
}

pub fn effect(want: Want, text: &str) -> Effect {
    effect_to("openai/medium", want, text)
}

pub fn record() -> Want {
    Want::Record(vec![("answer".into(), Want::Text), ("mood".into(), choice()), ("sure".into(), percent())])
}

pub fn choice() -> Want {
    Want::Choice(vec!["calm".into(), " angry ".into(), "{sad}".into()])
}

pub fn percent() -> Want {
    Want::number(0.0, 100.0)
}

pub fn wants() -> [Want; 4] {
    [Want::Text, choice(), percent(), record()]
}

/// A second reading of what fits.
pub fn fits(want: &Want, value: &Value) -> bool {
    match (want, value) {
        (Want::Text, Value::Text(_)) => true,
        (Want::Choice(options), Value::Choice(i)) => (*i as usize) < options.len(),
        (Want::Number { low, high, .. }, Value::Number(x)) => low <= x && x <= high,
        (Want::Record(fields), Value::Record(values)) => {
            fields.len() == values.len() && fields.iter().zip(values).all(|((_, want), value)| fits(want, value))
        }
        _ => false,
    }
}
