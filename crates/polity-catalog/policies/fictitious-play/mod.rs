//! Fictitious play: the best reply to the other player's move frequencies. See README.md.

use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<FictitiousPlay>(files);
}

/// Parameters.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Forgetting rate of past moves: 0 weighs all moves equally, 0.1 forgets a tenth in every round; 0 to 1.
    forget: f64,
}

/// Best replies to frequencies.
pub struct FictitiousPlay {
    forget: f64,
    payoffs: (TableSlot, [usize; 3]),
    others: (TableSlot, [usize; 1]),
    active: NumberSlot,
}

/// Weighted count of each of the other player's moves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts(Vec<f64>);

impl Policy for FictitiousPlay {
    const NAME: &'static str = "fictitious-play";
    const SUMMARY: &'static str =
        "Best reply to the frequencies of the other's moves in a two-player game (Brown 1951)";
    type Params = Params;
    type State = Counts;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0.0..=1.0, "forget", params.forget)?;
        Ok(FictitiousPlay {
            forget: params.forget,
            payoffs: setup.table("payoffs", ["own", "other", "reward"])?,
            others: setup.table("others-last", ["move"])?,
            active: setup.number("active")?,
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Counts {
        Counts::default()
    }

    async fn act(&self, Counts(counts): &mut Counts, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let (others, [place]) = self.others;
        let last = turn.observation.table(others).next().and_then(|row| row.get(place)).copied().unwrap_or(-1.0);
        if last >= 0.0 {
            counts.iter_mut().for_each(|count| *count *= 1.0 - self.forget);
            if counts.len() <= last as usize {
                counts.resize(last as usize + 1, 0.0);
            }
            counts[last as usize] += 1.0;
        }
        if turn.observation.number(self.active) == 0.0 {
            return Ok(());
        }
        // Expected payoffs of the own moves, in order of first row; before the first move all moves of the other have equal weight.
        let (payoffs, [own, other, reward]) = self.payoffs;
        let known = counts.iter().any(|count| *count > 0.0);
        let mut expected: Vec<(u16, f64)> = Vec::new();
        for row in turn.observation.table(payoffs) {
            let (&[own, other, reward], weight) = (&[own, other, reward].map(|place| row[place]), 1.0);
            let weight = if known { counts.get(other as usize).copied().unwrap_or_default() } else { weight };
            match expected.iter_mut().find(|(action, _)| *action == own as u16) {
                Some((_, sum)) => *sum += weight * reward,
                None => expected.push((own as u16, weight * reward)),
            }
        }
        let best = expected.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best });
        if let Some((action, _)) = best {
            turn.act(action, 0.0);
        }
        Ok(())
    }
}
