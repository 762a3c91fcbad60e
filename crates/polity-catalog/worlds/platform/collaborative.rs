//! Collaborative filtering: who engaged with what, and where that leads.

use super::people::People;
use super::store::{NOWHERE, Store};
use polity_kernel::digest::DigestVec;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How many of the last users to engage with a post are kept.
const FANS: usize = 8;

/// The row of a post that nobody has engaged with.
const NOBODY: [u32; FANS] = [NOWHERE; FANS];

/// The last users to engage with each live post.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fans {
    /// Posts that have a row.
    live: Range<u32>,
    /// How many rows there can be: a post has the row of its number modulo this.
    ring: u32,
    /// The newest [`FANS`] of each post, the newest first; [`NOWHERE`] in the places of those who are not there.
    rows: DigestVec<[u32; FANS]>,
}

impl Fans {
    /// The table that is kept, or else one made from what users remember. `ring`: the most posts that can be live at once.
    pub fn kept(known: Option<Fans>, people: &People, live: Range<u32>, ring: u32) -> Fans {
        let is_new = known.is_none();
        let mut fans = match known {
            Some(known) if known.ring == ring => known,
            known => {
                let mut fans = Fans { live: live.start..live.start, ring, rows: DigestVec::default() };
                for post in live.clone() {
                    fans.fit(live.start..post + 1);
                    let row = known.as_ref().and_then(|known| known.row(post)).unwrap_or(&NOBODY);
                    fans.rows.set(fans.place(post), *row);
                }
                fans
            }
        };
        fans.fit(live);
        for who in 0..if is_new { people.stance.len() as u32 } else { 0 } {
            people.engaged(who).for_each(|post| fans.add(post, who));
        }
        fans
    }

    fn place(&self, post: u32) -> usize {
        (post % self.ring.max(1)) as usize
    }

    fn row(&self, post: u32) -> Option<&[u32; FANS]> {
        if self.live.contains(&post) { self.rows.get(self.place(post)) } else { None }
    }

    /// The users who engaged with a post, once for each time.
    pub fn of(&self, post: u32) -> impl Iterator<Item = u32> + Clone {
        self.row(post).into_iter().flatten().copied().take_while(|who| *who != NOWHERE)
    }

    /// Adds one to a post, if that is live.
    pub fn add(&mut self, post: u32, who: u32) {
        if self.live.contains(&post) {
            self.rows.change(self.place(post), |row| {
                row.copy_within(..FANS - 1, 1);
                row[0] = who;
            });
        }
    }

    /// Has rows for these posts and no others. They are not more than the ring holds, and none of them is older than those before.
    pub fn fit(&mut self, live: Range<u32>) {
        for post in self.live.end.max(live.start)..live.end {
            let place = self.place(post);
            if place < self.rows.len() {
                self.rows.set(place, NOBODY);
            } else {
                self.rows.resize(place + 1, NOBODY);
            }
        }
        self.live = live;
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
