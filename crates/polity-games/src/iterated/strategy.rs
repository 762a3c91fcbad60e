//! Strategies: a rule with its numbers, and the memory of one player who follows it.

use super::Payoffs;
use super::rules::{CYCLES, Key, Opening, Rule, Turn, rules};
use polity_base::rng::Draws;
use polity_base::tree::nearest;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A move. In a game other than the prisoner's dilemma `Cooperate` is its first move and `Defect` its second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Move {
    /// `C`, the first move of the game.
    Cooperate = 0,
    /// `D`, the second.
    Defect = 1,
}

impl Move {
    /// Returns the other move.
    #[inline]
    #[must_use]
    pub fn flipped(self) -> Self {
        if self == Move::Cooperate { Move::Defect } else { Move::Cooperate }
    }

    /// Returns `C` or `D`.
    #[must_use]
    pub fn letter(self) -> char {
        if self == Move::Cooperate { 'C' } else { 'D' }
    }
}

/// What a player remembers. It is the whole state of a player between two turns: equal memories behave alike from there on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The other's latest moves, the last in the lowest bit; 1 is a defection. No more than the rule looks at.
    pub(super) others: u64,
    /// The own latest moves, likewise.
    pub(super) own: u64,
    /// Counts of the rule.
    pub(super) count: [i64; 7],
    /// Turns so far, up to the number that the rule looks at.
    pub(super) turn: u32,
    /// The rule's mode; 0 at the beginning.
    pub(super) mode: u8,
}

/// Why there is no such strategy.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StrategyError {
    /// No strategy has this name.
    #[error("there is no strategy `{name}`{}", near.as_ref().map_or(String::new(), |near| format!("; did you mean `{near}`?")))]
    Unknown {
        /// The name.
        name: String,
        /// The nearest name.
        near: Option<String>,
    },
    /// A parameter is unknown, or has a wrong value.
    #[error("strategy `{name}`: {message}")]
    Parameter {
        /// The strategy.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// The name and the parameters are right, but the strategy does not exist for the payoffs of the game.
    #[error("strategy `{name}`: {message}")]
    Undefined {
        /// The strategy.
        name: String,
        /// What is wrong.
        message: String,
    },
}

/// A strategy of a repeated game, with its parameters.
///
/// A player calls [`Strategy::first`] once and [`Strategy::next`] in every further turn, with a memory of its own. Moves that were
/// flipped by noise are passed as they were played.
#[derive(Clone, Debug)]
pub struct Strategy {
    rule: &'static Rule,
    label: String,
    /// The numbers of the rule.
    pub(super) numbers: [f64; 5],
    /// The payoffs of the game, for rules that calculate.
    payoffs: Payoffs,
}

impl Strategy {
    /// Returns the name, with parameters that differ from their defaults: `joss:p=0.8`. [`parse`] reads it.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns who described it, and when.
    #[must_use]
    pub fn source(&self) -> &'static str {
        self.rule.source
    }

    /// Returns the payoffs of its game.
    #[must_use]
    pub fn payoffs(&self) -> &Payoffs {
        &self.payoffs
    }

    /// Returns what it does, in a sentence.
    #[must_use]
    pub fn about(&self) -> &'static str {
        self.rule.about
    }

    /// Returns whether it may draw random numbers.
    #[must_use]
    pub fn is_random(&self) -> bool {
        match self.rule.is_memory_one() {
            true => self.numbers.iter().any(|p| *p > 0.0 && *p < 1.0),
            false => self.rule.random,
        }
    }

    /// Makes the first move.
    #[inline]
    pub fn first(&self, memory: &mut Memory, draws: &mut Draws) -> Move {
        match self.rule.opening {
            Opening::Move(made) => made,
            Opening::Chance(place) => chance(self.numbers[place], draws),
            Opening::Cycle => {
                memory.count[0] = 0;
                if self.numbers[0] as u64 & 1 == 1 { Move::Defect } else { Move::Cooperate }
            }
        }
    }

    /// Makes the move after a turn in which this player played `own` and the other `other`.
    #[inline]
    pub fn next(&self, memory: &mut Memory, own: Move, other: Move, draws: &mut Draws) -> Move {
        (self.rule.next)(&mut Turn { numbers: &self.numbers, payoffs: &self.payoffs, memory, own, other, draws })
    }
}

/// Cooperates with probability `p`. Nothing is drawn where the move is certain.
#[inline]
pub(super) fn chance(p: f64, draws: &mut Draws) -> Move {
    let cooperates = p >= 1.0 || p > 0.0 && draws.chance(p);
    if cooperates { Move::Cooperate } else { Move::Defect }
}

/// Returns the names of all strategies, in a fixed order.
pub fn names() -> impl Iterator<Item = &'static str> {
    rules().map(|rule| rule.name)
}

/// Returns all strategies that are defined for a game, with their default parameters, and the errors of the others: zero-determinant
/// strategies, for instance, need payoffs for which their probabilities exist.
#[must_use]
pub fn all(payoffs: &Payoffs) -> (Vec<Strategy>, Vec<StrategyError>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in names() {
        match strategy(name, &[], payoffs) {
            Ok(strategy) => found.push(strategy),
            Err(error) => missing.push(error),
        }
    }
    (found, missing)
}

/// Returns a strategy by its name or another name of it. `parameters` are numbers by key; the others have their defaults. The payoffs
/// are those of the game, for strategies that are defined by them.
///
/// `cycler-` with any cycle of up to 32 moves, such as `cycler-ccdd`, repeats it.
///
/// # Errors
/// There is no such strategy (the error names the nearest), no such parameter, a value is out of range, or the strategy does not exist
/// for these payoffs. Only the last depends on the payoffs.
///
/// ```
/// use polity_games::iterated::{Payoffs, strategy};
///
/// let payoffs = Payoffs::PRISONERS_DILEMMA;
/// assert_eq!(strategy("pavlov", &[], &payoffs)?.label(), "win-stay-lose-shift");
/// assert_eq!(strategy("joss", &[("p", 0.8)], &payoffs)?.label(), "joss:p=0.8");
/// let error = strategy("tit-for-tot", &[], &payoffs).map(|_| ()).map_err(|error| error.to_string());
/// assert_eq!(error, Err("there is no strategy `tit-for-tot`; did you mean `tit-for-tat`?".into()));
/// # Ok::<(), polity_games::iterated::StrategyError>(())
/// ```
pub fn strategy(name: &str, parameters: &[(&str, f64)], payoffs: &Payoffs) -> Result<Strategy, StrategyError> {
    let wrong = |message: String| StrategyError::Parameter { name: name.to_owned(), message };
    let known = |rule: &&Rule| rule.name == name || rule.aliases.contains(&name);
    let cycle = name.strip_prefix("cycler-");
    let Some(rule) = rules().find(known).or(cycle.map(|_| &CYCLES)) else {
        let near = nearest(name, rules().flat_map(|rule| rule.aliases.iter().copied().chain([rule.name])));
        return Err(StrategyError::Unknown { name: name.to_owned(), near: near.map(str::to_owned) });
    };
    let mut numbers = [0.0; 5];
    for (number, key) in numbers.iter_mut().zip(rule.keys) {
        *number = key.default;
    }
    let mut label = cycle.map_or(rule.name, |_| name).to_owned();
    if let Some(cycle) = cycle {
        let (bits, length) = bits(cycle).ok_or_else(|| wrong("the cycle has 1 to 32 letters `c` and `d`".into()))?;
        numbers[..2].copy_from_slice(&[bits, length]);
    }
    let mut given = [false; 5];
    for (key, value) in parameters {
        let Some(place) = rule.keys.iter().position(|known| known.name == *key) else {
            let keys: Vec<&str> = rule.keys.iter().map(|known| known.name).collect();
            return Err(wrong(match keys.is_empty() {
                true => format!("it has no parameters, so not `{key}`"),
                false => format!("there is no parameter `{key}`; it has {}", keys.join(", ")),
            }));
        };
        if std::mem::replace(&mut given[place], true) {
            return Err(wrong(format!("`{key}` is given twice")));
        }
        let Key { low, high, whole, .. } = rule.keys[place];
        if !(low..=high).contains(value) {
            return Err(wrong(match (low, high) {
                (f64::MIN, f64::MAX) => format!("`{key}` is a finite number, not {value}"),
                (_, f64::MAX) => format!("`{key}` is a finite number of at least {low}, not {value}"),
                _ => format!("`{key}` is {low} to {high}, not {value}"),
            }));
        }
        if whole && value.fract() != 0.0 {
            return Err(wrong(format!("`{key}` is a whole number, not {value}")));
        }
        numbers[place] = *value;
    }
    // In the order of the keys: a strategy has one label, however it is written.
    for (key, value) in rule.keys.iter().zip(numbers).filter(|(key, value)| *value != key.default) {
        label.push_str(&format!(":{}={value}", key.name));
    }
    if let Some(prepare) = rule.prepare {
        numbers =
            prepare(numbers, payoffs).map_err(|message| StrategyError::Undefined { name: name.to_owned(), message })?;
    }
    Ok(Strategy { rule, label, numbers, payoffs: *payoffs })
}

/// Reads a strategy with its parameters: `joss`, `joss:p=0.8`, `memory-one:cc=1:cd=0.2:dc=1:dd=0.2`.
///
/// # Errors
/// As for [`strategy`]; also a parameter that is not written as `KEY=NUMBER`.
pub fn parse(text: &str, payoffs: &Payoffs) -> Result<Strategy, StrategyError> {
    let mut pieces = text.split(':');
    let name = pieces.next().unwrap_or_default().trim();
    let mut parameters = Vec::new();
    for piece in pieces {
        let read = piece.split_once('=').and_then(|(key, value)| Some((key.trim(), value.trim().parse().ok()?)));
        let message = format!("`{piece}` is not a parameter: write `KEY=NUMBER`");
        parameters.push(read.ok_or(StrategyError::Parameter { name: name.to_owned(), message })?);
    }
    strategy(name, &parameters, payoffs)
}

/// The moves of a cycle as bits, the first in the lowest, and their number.
fn bits(cycle: &str) -> Option<(f64, f64)> {
    if cycle.is_empty() || cycle.len() > 32 {
        return None;
    }
    let mut bits = 0u64;
    for (place, letter) in cycle.bytes().enumerate() {
        match letter {
            b'c' => {}
            b'd' => bits |= 1 << place,
            _ => return None,
        }
    }
    Some((bits as f64, cycle.len() as f64))
}
