//! People in place of models: `human/ann` is a person. A run puts her questions into its folder and waits ([`crate::people`]); she costs
//! nothing and takes no connection. `docs/decisions/a-person-is-a-model.md`.

use super::{Answering, Provider, Trouble};
use polity_kernel::ask::{Effect, Request, Usage};

/// The provider's name.
const NAME: &str = "human";

/// Letters of a person's name at most.
const LONGEST: usize = 64;

/// Whether a model (full name) is a person.
#[must_use]
pub fn is_person(model: &str) -> bool {
    model.split_once('/').is_some_and(|(provider, _)| provider == NAME)
}

/// The provider `human`.
pub struct Human;

impl Provider for Human {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, model: &str) -> Result<(), String> {
        let name = model.split_once('/').map_or("", |(_, name)| name);
        let plain = name.chars().all(|c| c.is_alphanumeric() || "-_. ".contains(c)) && name.trim() == name;
        match plain && !name.is_empty() && name.chars().count() <= LONGEST {
            true => Ok(()),
            false => Err(format!(
                "`{model}`: a person is named with letters, digits, `-`, `_`, `.` and spaces between them, for instance `human/ann`"
            )),
        }
    }

    fn most(&self, _: &Request) -> Usage {
        Usage::default()
    }

    fn simulated(&self) -> bool {
        false
    }

    /// A run never comes here: [`crate::source::WithPeople`] takes what is for people. Without a run there is no folder to ask in.
    fn answer<'a>(&'a self, effect: &'a Effect, _: u64) -> Answering<'a> {
        let why = format!("`{}` is a person, who is asked by a run alone", effect.request.model);
        Box::pin(async move { Err(Trouble::Fatal { why }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["human/ann", "human/Ann B.", "human/π-2"] {
            assert_eq!(Human.check(good), Ok(()), "{good}");
        }
        for bad in ["human/", "human/ ann", "human/a/b", "human/a\u{1b}[2J", "human/a\nb"] {
            assert!(Human.check(bad).is_err(), "{bad}");
        }
        assert!(is_person("human/ann") && !is_person("humanoid/ann") && !is_person("sim/human"));
    }
}
