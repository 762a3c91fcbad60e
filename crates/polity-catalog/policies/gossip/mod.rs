//! Talk with people nearby, and pass on remembered news. See README.md for the source.

use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Gossip>(files);
}

/// Parameters of talking.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Probability of talking with somebody nearby, per round; 0 to 1.
    talk: f64,
    /// Probability that news comes up in a talk; 0 to 1.
    tell: f64,
    /// Rounds for which news is remembered after it was last heard or told; 0: not at all. News known from the start is never forgotten.
    memory: u32,
    /// Probability of claiming, when asked, to know news that one does not remember; 0 to 1.
    invent: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { talk: 0.5, tell: 0.25, memory: 1000, invent: 0.0 }
    }
}

/// Talks and tells.
pub struct Gossip {
    params: Params,
    news: NumberSlot,
    present: (TableSlot, usize),
    own: (TableSlot, usize),
    heard: (TableSlot, usize),
    talk: u16,
    tell: u16,
    know: u16,
}

/// A remembered piece of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    news: u32,
    /// The round in which it was last heard or told.
    last: u32,
}

impl Policy for Gossip {
    const NAME: &'static str = "gossip";
    const SUMMARY: &'static str = "Talk with whoever is there, and pass on the news that one remembers";
    type Params = Params;
    /// Ascending by news.
    type State = Vec<Remembered>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        for (key, part) in [("talk", params.talk), ("tell", params.tell), ("invent", params.invent)] {
            Invalid::within(0.0..=1.0, key, part)?;
        }
        let table = |name, column| setup.table(name, [column]).map(|(slot, [column])| (slot, column));
        let act = |name| setup.act(name).map(|(kind, _)| kind);
        Ok(Gossip {
            params,
            news: setup.number("news")?,
            present: table("present", "person")?,
            own: table("own", "news")?,
            heard: table("heard", "news")?,
            talk: act("talk")?,
            tell: act("tell")?,
            know: act("know")?,
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Vec<Remembered> {
        Vec::new()
    }

    async fn act(&self, remembered: &mut Vec<Remembered>, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let Params { talk, tell, memory, invent } = self.params;
        let (observation, round) = (turn.observation, turn.round);
        if memory > 0 {
            for row in observation.table(self.heard.0) {
                let news = row[self.heard.1] as u32;
                match remembered.binary_search_by_key(&news, |one| one.news) {
                    Ok(at) => remembered[at].last = round,
                    Err(at) => remembered.insert(at, Remembered { news, last: round }),
                }
            }
        }
        remembered.retain(|one| round - one.last <= memory);
        let mut known: Vec<u32> = observation.table(self.own.0).map(|row| row[self.own.1] as u32).collect();
        known.extend(remembered.iter().map(|one| one.news));
        known.sort_unstable();
        known.dedup();
        let there = observation.table(self.present.0);
        if there.len() > 0 && turn.draws.chance(talk) {
            let pick = turn.draws.below(there.len() as u64) as usize;
            if let Some(row) = observation.table(self.present.0).nth(pick) {
                turn.act(self.talk, row[self.present.1]);
                for news in &known {
                    if turn.draws.chance(tell) {
                        turn.act(self.tell, f64::from(*news));
                        let own = remembered.iter_mut().find(|one| one.news == *news);
                        own.into_iter().for_each(|one| one.last = round);
                    }
                }
            }
        }
        for news in 0..turn.observation.number(self.news) as u32 {
            let knows = known.binary_search(&news).is_ok();
            if knows || invent > 0.0 && turn.draws.chance(invent) {
                turn.act(self.know, f64::from(news));
            }
        }
        Ok(())
    }
}
