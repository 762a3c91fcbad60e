//! Collaborative filtering: who engaged with what, and where that leads.

use super::people::People;
use super::store::{NOWHERE, Store};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Range;

/// Those who engaged with a post last that are kept.
const FANS: usize = 8;

/// Of each live post, who engaged with it last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fans {
    /// The post of the first row.
    first: u32,
    /// The newest [`FANS`] of each post, the newest first; [`NOWHERE`] in the places of those who are not there.
    rows: VecDeque<[u32; FANS]>,
}

impl Fans {
    /// Those that are kept already; where there are none yet, those that people remember.
    pub fn kept(known: Option<Fans>, people: &People, live: Range<u32>) -> Fans {
        let everybody = if known.is_some() { 0..0 } else { 0..people.stance.len() as u32 };
        let mut fans = known.unwrap_or_default();
        fans.fit(live);
        for who in everybody {
            people.engaged(who).for_each(|post| fans.add(post, who));
        }
        fans
    }

    /// Those of a post, one for each time.
    pub fn of(&self, post: u32) -> impl Iterator<Item = u32> + Clone {
        let row = post.checked_sub(self.first).and_then(|place| self.rows.get(place as usize));
        row.into_iter().flatten().copied().take_while(|who| *who != NOWHERE)
    }

    /// Adds one to a post, if that is live.
    pub fn add(&mut self, post: u32, who: u32) {
        if let Some(row) = post.checked_sub(self.first).and_then(|place| self.rows.get_mut(place as usize)) {
            row.copy_within(..FANS - 1, 1);
            row[0] = who;
        }
    }

    /// Has rows for these posts and no others.
    pub fn fit(&mut self, live: Range<u32>) {
        while self.first < live.start && self.rows.pop_front().is_some() {
            self.first += 1;
        }
        if self.rows.is_empty() {
            self.first = live.start;
        }
        while self.first > live.start {
            self.rows.push_front([NOWHERE; FANS]);
            self.first -= 1;
        }
        self.rows.resize(live.len(), [NOWHERE; FANS]);
    }
}

/// Where the walks of a reader end: three steps on the graph of people and the posts with which they engaged, each with the same
/// probability along every tie (P3; Cooper et al., "Random walks in recommender systems: exact computation and simulations", WWW 2014). They
/// are all walked, over the newest ties; in whole numbers, so that no order of them shows.
#[derive(Default)]
pub struct Walks {
    /// Posts and their probability times [`Walks::ONE`], in order of the posts.
    ends: Vec<(u32, u64)>,
    /// The highest.
    most: u64,
}

impl Walks {
    /// Certainty.
    const ONE: u64 = 1 << 40;

    /// All walks of somebody; none where nobody keeps who engaged with what.
    pub fn of(store: &Store, who: u32) -> Walks {
        let Some(fans) = &store.fans else { return Walks::default() };
        let (lately, first) = (store.people.lately(who), store.live.first);
        let engaged = |who: u32| store.people.engaged(who).filter(move |post| *post >= first);
        let mut ends: Vec<(u32, u64)> = Vec::new();
        let own = engaged(who).count() as u64;
        for post in engaged(who) {
            let others = fans.of(post).filter(|other| *other != who);
            let fans = others.clone().count() as u64;
            for other in others {
                let theirs = engaged(other);
                let each = Walks::ONE / (own * fans * theirs.clone().count().max(1) as u64);
                let may_be_shown = |post: &u32| store.posts[*post].author != who && !lately.contains(post);
                ends.extend(theirs.filter(may_be_shown).map(|post| (post, each)));
            }
        }
        ends.sort_unstable_by_key(|(post, _)| *post);
        ends.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        let most = ends.iter().map(|(_, walks)| *walks).max().unwrap_or(0);
        Walks { ends, most }
    }

    /// The posts at which most end, from the top; of equals the newer.
    pub fn first(&self, most: usize) -> impl Iterator<Item = u32> {
        let mut ends: Vec<(u64, u32)> = self.ends.iter().map(|(post, walks)| (*walks, *post)).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends.into_iter().take(most).map(|(_, post)| post)
    }

    /// What a post has of the highest.
    pub fn share(&self, post: u32) -> f64 {
        let found =
            self.ends.binary_search_by_key(&post, |(post, _)| *post).ok().and_then(|place| self.ends.get(place));
        found.map_or(0.0, |(_, walks)| *walks as f64 / self.most as f64)
    }
}
