//! `polity ctl`: send commands to a running run.

use super::args::Ordered;
use super::failure::{Exit, Failure};
use super::output::note;
use polity_driver::control::{Status, order, status};
use polity_kernel::event::Order;
use polity_kernel::scenario::Limits;
use polity_store::disk::RealDisk;
use polity_store::printable::on_one_line;
use std::path::Path;
use std::sync::Arc;

pub fn ctl(run: &Path, ordered: &Ordered) -> Result<Exit, Failure> {
    let wanted = match ordered {
        Ordered::Pause => Order::Pause,
        Ordered::Resume => Order::Resume,
        Ordered::Stop => Order::Stop,
        Ordered::Step { rounds } => Order::Step { rounds: *rounds },
        Ordered::Change { edits } => Order::Change { edits: edits.clone() },
        Ordered::Message { from, to, text } => Order::message(*from, to.as_deref(), text),
        Ordered::Status => return tell(run),
        Ordered::Set { limits } => set(limits).map_err(|why| Failure::new(Exit::Input, why))?,
    };
    let said = order(Arc::new(RealDisk), run, wanted)?;
    if said.refused {
        return Err(Failure::new(Exit::Input, format!("{} refused the command: {}", run.display(), said.words)));
    }
    note(&format!("{}: {}", run.display(), said.words));
    Ok(Exit::Done)
}

/// Tells how far a run is, and what it waits for.
fn tell(run: &Path) -> Result<Exit, Failure> {
    let Status { rounds, planned, items, totals, waiting, paused, .. } = status(Arc::new(RealDisk), run, u32::MAX)?;
    let mut words = format!("{}: round {rounds} of {planned}", run.display());
    if items.1 > 0 {
        words.push_str(&format!(", {} of {} items", items.0, items.1));
    }
    if totals.answers > 0 {
        words.push_str(&format!(", {} answers", totals.answers));
        if let Some(usd) = totals.known_usd(false) {
            words.push_str(&format!(", {usd:.4} USD"));
        }
    }
    match (waiting, paused) {
        (Some(reason), _) => words.push_str(&format!("; {}", on_one_line(&reason))),
        (None, true) => words.push_str("; paused"),
        (None, false) => {}
    }
    note(&words);
    Ok(Exit::Done)
}

/// Reads `max-connections=8 max-cost=0.5`.
fn set(words: &[String]) -> Result<Order, String> {
    let (mut connections, mut limits) = (None, Limits::default());
    for word in words {
        let keys = "max-connections, max-cost, max-tokens, max-calls, max-requests and max-tool-calls";
        let (key, value) = word.split_once('=').ok_or(format!("`{word}`: write KEY=VALUE; the keys are {keys}"))?;
        let wrong = |what: &str| format!("`{word}`: {key} must be {what}, for instance {key}=8");
        let whole = || value.parse::<u64>().map_err(|_| wrong("a whole number"));
        let given_twice = match key {
            "max-connections" => {
                let most = value.parse().ok().filter(|n| *n > 0).ok_or_else(|| wrong("a whole number of 1 or more"))?;
                connections.replace(most).is_some()
            }
            "max-cost" => {
                let usd = value.parse().map_err(|_| wrong("a number of US dollars"))?;
                limits.cost_usd.replace(usd).is_some()
            }
            "max-tokens" => limits.tokens.replace(whole()?).is_some(),
            "max-calls" => limits.calls.replace(whole()?).is_some(),
            "max-requests" => limits.requests.replace(whole()?).is_some(),
            "max-tool-calls" => limits.tool_calls.replace(whole()?).is_some(),
            _ => return Err(format!("`{word}`: there is no limit `{key}`; the limits are {keys}")),
        };
        if given_twice {
            return Err(format!("{key} is given twice"));
        }
    }
    limits.check()?;
    Ok(Order::Set { connections, limits })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn limits_are_read_or_refused_in_words() {
        let read = |words: &[&str]| set(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let order = read(&["max-cost=0.5", "max-connections=8"]).unwrap();
        assert_eq!(order.to_string(), "set max-connections=8 max-cost=0.5");
        for (word, why) in [
            ("max-cost", "KEY=VALUE"),
            ("max-cost=-1", "must lie in 0"),
            ("max-cost=nan", "must lie in 0"),
            ("max-connections=0", "1 or more"),
            ("max-calls=1.5", "a whole number"),
            ("max-time=5", "there is no limit `max-time`"),
        ] {
            assert!(read(&[word]).unwrap_err().contains(why), "{word}: {:?}", read(&[word]));
        }
        assert!(read(&["max-calls=1", "max-calls=2"]).unwrap_err().contains("twice"));
    }
}
