//! A league: opponents from the learner's own past.

use crate::learning::{Now, Seen};
use polity_kernel::digest::DigestVec;
use polity_kernel::policy::{PolicySetup, Seating};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::{AgentId, Invalid};
use polity_nn::Weights;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Opponents who play weights of the learner's past. They sit on the last seats of each episode, and nothing is learned from what they do.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeagueSource {
    /// How many seats of each episode opponents take; at least 1, and fewer than there are.
    pub seats: u32,
    /// Updates from one version that is kept to the next; at least 1.
    #[serde(default = "ten")]
    pub every: u32,
    /// The most versions that are kept, 0 to 1,000. They are a random sample of all that there were. With 0 opponents always play the
    /// present weights.
    #[serde(default = "twenty")]
    pub keep: u32,
    /// The probability that opponents play the present weights in an episode, and not a version that was kept; 0 to 1.
    #[serde(default = "half")]
    pub latest: f64,
}

fn ten() -> u32 {
    10
}

fn twenty() -> u32 {
    20
}

fn half() -> f64 {
    0.5
}

/// A league.
#[derive(Clone, Copy, Debug)]
pub struct League {
    source: LeagueSource,
    seating: Seating,
    first: AgentId,
}

/// The versions of a league.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    kept: DigestVec<Arc<Weights>>,
    /// How many there have been.
    made: u32,
    /// Which version opponents play in each episode; `None`: the present weights.
    plays: Vec<Option<u32>>,
}

impl League {
    /// Opens a league.
    ///
    /// # Errors
    /// A number out of range, or a cohort that does not hold whole episodes of several seats.
    pub fn open(source: &LeagueSource, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(1..=1_000_000, "league.every", source.every)?;
        Invalid::within(0..=1_000, "league.keep", source.keep)?;
        Invalid::within(0.0..=1.0, "league.latest", source.latest)?;
        let seating = setup.seating.filter(|seating| seating.fills(setup.cohort));
        let message = "needs a cohort that holds whole episodes of several agents";
        let seating = seating.ok_or_else(|| Invalid { key: "league".into(), message: message.into() })?;
        let message = format!("must be from 1 to below {}, the seats of an episode", seating.seats);
        Invalid::unless((1..seating.seats).contains(&source.seats), "league.seats", message)?;
        Ok(League { source: *source, seating, first: setup.cohort.start })
    }

    /// Returns whether an agent learns.
    pub fn learns(&self, who: AgentId) -> bool {
        self.seating.seat(who) < self.seating.seats - self.source.seats
    }

    fn episode(&self, who: AgentId) -> usize {
        (self.seating.episode(who) - self.seating.episode(self.first)) as usize
    }

    /// Keeps the weights before the first update, and then after every so many updates.
    pub fn keep(&self, versions: &mut Versions, weights: &Weights, updates: u32, now: &Now<'_>) {
        if !updates.is_multiple_of(self.source.every) {
            return;
        }
        let kept = versions.kept.len() as u32;
        versions.made += 1;
        let place = self.draws(now, 1).below(u64::from(versions.made)) as u32;
        if kept < self.source.keep {
            versions.kept.push(Arc::new(weights.clone()));
        } else if place < kept {
            versions.kept.set(place as usize, Arc::new(weights.clone()));
        }
    }

    /// Draws which version opponents play in episodes that begin.
    pub fn draw(&self, versions: &mut Versions, seen: &Seen, now: &Now<'_>) {
        let kept = versions.kept.len() as u64;
        let mut draws = self.draws(now, 0);
        for (row, who) in seen.agents.iter().enumerate().filter(|(_, who)| self.seating.seat(**who) == 0) {
            let episode = self.episode(*who);
            let begins = seen.ended[row] || episode >= versions.plays.len();
            if begins {
                versions.plays.resize(versions.plays.len().max(episode + 1), None);
                let latest = draws.chance(self.source.latest) || kept == 0;
                versions.plays[episode] = (!latest).then(|| draws.below(kept) as u32);
            }
        }
    }

    /// Returns the versions that are played, with the rows of the opponents who play them.
    pub fn played<'a>(&self, versions: &'a Versions, seen: &Seen) -> impl Iterator<Item = (&'a Weights, Vec<u32>)> {
        let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, who) in (0u32..).zip(&seen.agents).filter(|(_, who)| !self.learns(**who)) {
            if let Some(version) = versions.plays.get(self.episode(*who)).copied().flatten() {
                rows.entry(version).or_default().push(row);
            }
        }
        rows.into_iter().map(|(version, rows)| (&*versions.kept[version as usize], rows))
    }

    /// Returns random numbers of a round that the learner does not use otherwise.
    fn draws(&self, now: &Now<'_>, purpose: u32) -> Draws {
        Draws::new(now.draws().below(u64::MAX), Stream::Learner, now.round, purpose)
    }
}
