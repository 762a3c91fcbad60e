//! People in place of models: `human/ann` is a person. A run writes her requests to its folder and waits (`people` of the driver). She costs
//! nothing and uses no connection. `docs/decisions/a-person-is-a-model.md`.

use super::provider::{Answering, Provider, ProviderError};
use polity_kernel::ask::{Effect, Request, Usage};

/// The provider's name.
const NAME: &str = "human";

/// Maximum characters of a person's name.
const LONGEST: usize = 64;

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
                "`{model}`: a person's name may contain letters, digits, `-`, `_` and `.`, with spaces between them, \
                 for instance `human/ann`"
            )),
        }
    }

    fn most(&self, _: &Request) -> Usage {
        Usage::default()
    }

    fn simulated(&self) -> bool {
        false
    }

    /// Not called by a run: the driver handles people. Without a run there is no folder for requests.
    fn answer<'a>(&'a self, effect: &'a Effect, _: u64) -> Answering<'a> {
        let why = format!("`{}` is a person, whom only a run can ask", effect.request.model);
        Box::pin(async move { Err(ProviderError::Fatal { why }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::ask::TargetKind;

    #[test]
    fn names_are_plain() {
        for good in ["human/ann", "human/Ann B.", "human/π-2"] {
            assert_eq!(Human.check(good), Ok(()), "{good}");
        }
        for bad in ["human/", "human/ ann", "human/a/b", "human/a\u{1b}[2J", "human/a\nb"] {
            assert!(Human.check(bad).is_err(), "{bad}");
        }
        let kinds = ["human/ann", "humanoid/ann", "sim/human"].map(TargetKind::of);
        assert_eq!(kinds, [TargetKind::Human, TargetKind::Model, TargetKind::Model]);
    }
}
