//! Equal budgets: the size of a method's team at another one's use. For the reasons see docs/decisions/what-equal-budget-means.md.

use super::sheet::Spent;
use serde::Serialize;
use std::collections::BTreeMap;

/// Sizes tried for one method, not counting the usual one.
const TRIES: usize = 5;
/// Maximum size of a fitted team.
const MOST: u32 = 512;
/// A use that changes by less than this share with the size of the team does not depend on it.
const SAME: f64 = 0.02;

/// The unit in which budgets are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Tokens of requests and replies.
    Tokens,
    /// Calls of models.
    Calls,
    /// US dollars.
    Usd,
}

impl Unit {
    /// The amount of it; `None` for dollars that are not known.
    #[must_use]
    pub fn of(self, spent: &Spent) -> Option<f64> {
        match self {
            Unit::Tokens => Some(spent.tokens() as f64),
            Unit::Calls => Some(spent.calls as f64),
            Unit::Usd => spent.cost_usd,
        }
    }

    /// The value of `--equal`.
    #[must_use]
    pub fn flag(self) -> &'static str {
        match self {
            Unit::Tokens => "tokens",
            Unit::Calls => "calls",
            Unit::Usd => "usd",
        }
    }

    /// The word for tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Unit::Tokens => "tokens",
            Unit::Calls => "calls",
            Unit::Usd => "dollars",
        }
    }
}

/// What each method may use per item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// The unit.
    pub unit: Unit,
    /// The amount; if `None`, what the most expensive method uses.
    pub per_item: Option<f64>,
}

impl Allowance {
    /// Reads `UNIT` or `UNIT=AMOUNT`: `tokens`, `tokens=3000`, `calls=12`, `usd=0.01`.
    ///
    /// # Errors
    /// What to write instead.
    pub fn read(text: &str) -> Result<Allowance, String> {
        let how = "write tokens, calls or usd, or an amount per item, for instance tokens=3000, calls=12 or usd=0.01";
        let (name, amount) = match text.split_once('=') {
            Some((name, amount)) => (name, Some(amount)),
            None => (text, None),
        };
        let unit = [Unit::Tokens, Unit::Calls, Unit::Usd].into_iter().find(|unit| unit.flag() == name.trim());
        let unit = unit.ok_or_else(|| format!("there is no unit `{name}`; {how}"))?;
        let read = |amount: &str| {
            let number = amount.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0);
            number.ok_or_else(|| format!("`{amount}` is no amount above 0; {how}"))
        };
        Ok(Allowance { unit, per_item: amount.map(read).transpose()? })
    }

    /// Returns it as [`Allowance::read`] reads it.
    #[must_use]
    pub fn flag(self) -> String {
        let amount = self.per_item.map_or(String::new(), |amount| format!("={amount}"));
        format!("{}{amount}", self.unit.flag())
    }
}

impl From<Unit> for Allowance {
    fn from(unit: Unit) -> Allowance {
        Allowance { unit, per_item: None }
    }
}

/// A team of some size on the pilot's items.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The method, as it was named.
    pub method: String,
    /// Members.
    pub members: u32,
    /// Use per item.
    pub per_item: f64,
    /// Its run, from the comparison's folder.
    pub run: String,
    /// Its digest.
    #[serde(skip)]
    pub digest: String,
}

/// The measurements made to choose sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pilot {
    /// The task.
    pub task: String,
    /// The model of all members.
    pub model: String,
    /// The unit in which budgets are equal.
    pub unit: Unit,
    /// Items of the pilot: the first ones.
    pub items: u32,
    /// Use per item allowed to each method: the amount that was stated, else that of the most expensive one.
    pub allowance: f64,
    /// The method that sets it; `None` if it was stated.
    pub set_by: Option<String>,
    /// All trials, in order.
    pub trials: Vec<Trial>,
    /// The pilot's own use, which is not part of the methods' use.
    pub spent: Spent,
}

/// Returns the number of members whose use comes closest to `target`, starting from the usual number and its use. `measure` returns the
/// use of a team size, or `None` if the method does not accept it; it is called a few times.
pub(super) fn fit<E>(
    usual: (u32, f64),
    target: f64,
    mut measure: impl FnMut(u32) -> Result<Option<f64>, E>,
) -> Result<u32, E> {
    let mut known = BTreeMap::from([usual]);
    for _ in 0..TRIES {
        let Some(size) = next(&known, target) else { break };
        match measure(size)? {
            Some(used) if (used - usual.1).abs() <= SAME * usual.1 => return Ok(usual.0),
            Some(used) => drop(known.insert(size, used)),
            // Do not try sizes beyond a refused one.
            None => break,
        }
    }
    let distance = |used: f64| (used - target).abs();
    let best = known.into_iter().reduce(|best, other| if distance(other.1) < distance(best.1) { other } else { best });
    Ok(best.map_or(usual.0, |(size, _)| size))
}

/// Returns the next size to try, or `None` when those around the target are known. Assumes that use grows with size.
fn next(known: &BTreeMap<u32, f64>, target: f64) -> Option<u32> {
    let below = known.iter().rfind(|(_, used)| **used <= target);
    let above = known.iter().find(|(_, used)| **used > target);
    let guess = match (below, above) {
        (Some((_, used)), _) if *used == target => return None,
        (Some((low, used)), Some((high, more))) => {
            // Use grows roughly as a power of the size: linearly if members work alone, faster if all read all.
            let part = libm::log(target / used) / libm::log(more / used);
            let guess = f64::from(*low) * libm::pow(f64::from(*high) / f64::from(*low), part);
            let (least, most) = (low + 1, high.checked_sub(1)?);
            if least > most {
                return None;
            }
            (guess.round() as u32).clamp(least, most)
        }
        (Some((low, used)), None) => {
            let guess = if *used > 0.0 { f64::from(*low) * target / used } else { f64::from(MOST) };
            (guess.round().min(f64::from(MOST)) as u32).max(low + 1)
        }
        (None, Some((high, used))) => ((f64::from(*high) * target / used).round() as u32).clamp(1, high.max(&2) - 1),
        (None, None) => return None,
    };
    (guess <= MOST && !known.contains_key(&guess)).then_some(guess)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sizes that a search asks for, and the one it ends with.
    fn search(usual: u32, target: f64, cost: impl Fn(u32) -> f64) -> (Vec<u32>, u32) {
        let mut asked = Vec::new();
        let found = fit((usual, cost(usual)), target, |size| {
            asked.push(size);
            Ok::<_, ()>(Some(cost(size)))
        });
        (asked, found.unwrap())
    }

    #[test]
    fn the_closest_size_is_found_in_a_few_trials() {
        for usual in [1_u32, 2, 3, 8] {
            for size in 1..=60_u32 {
                let linear = |k: u32| f64::from(k) * 300.0;
                let (asked, found) = search(usual, linear(size) + 40.0, linear);
                assert_eq!(found, size, "from {usual}: {asked:?}");
                assert!(asked.len() <= 2, "{asked:?}");
                // As in a debate: each member reads all others.
                let square = |k: u32| f64::from(k) * 200.0 + f64::from(k * k) * 60.0;
                let (asked, found) = search(usual, square(size) + 1.0, square);
                let off = (square(found) - square(size)).abs() / square(size);
                assert!(off < 0.25 && asked.len() <= TRIES, "from {usual} to {size}: {found} by {asked:?}");
            }
        }
    }

    #[test]
    fn an_allowance_is_a_unit_with_or_without_an_amount() {
        for text in ["tokens", "calls", "usd", "tokens=3000", "usd=0.01"] {
            assert_eq!(Allowance::read(text).unwrap().flag(), text);
        }
        assert_eq!(Allowance::read("calls=12").unwrap(), Allowance { unit: Unit::Calls, per_item: Some(12.0) });
        for (text, words) in [
            ("dollars", "there is no unit `dollars`"),
            ("tokens=0", "`0` is no amount above 0"),
            ("tokens=3k", "`3k` is no amount"),
            ("usd=nan", "`nan` is no amount"),
            ("", "there is no unit ``"),
        ] {
            let why = Allowance::read(text).unwrap_err();
            assert!(why.contains(words) && why.contains("tokens=3000"), "{text}: {why}");
        }
    }

    #[test]
    fn what_does_not_depend_on_the_size_keeps_it() {
        let (asked, found) = search(5, 9_000.0, |_| 1_000.0);
        assert_eq!((asked.len(), found), (1, 5));
        // The method that sets the allowance has it.
        assert_eq!(search(4, 800.0, |k| f64::from(k) * 200.0), (vec![], 4));
        // A team has at least one member, however small the allowance.
        assert_eq!(search(3, 1.0, |k| f64::from(k) * 200.0).1, 1);
        // A size that the method refuses ends the search.
        let found = fit((4, 400.0), 100.0, |_| Ok::<_, ()>(None));
        assert_eq!(found, Ok(4));
    }
}
