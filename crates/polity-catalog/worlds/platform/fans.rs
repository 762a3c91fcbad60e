//! Who engaged with each live post.

use super::people::People;
use super::posts::NOWHERE;
use polity_kernel::digest::DigestVec;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How many of the last users to engage with a post are kept.
const FANS: usize = 8;

/// The row of a post that nobody has engaged with.
const NO_FANS: [u32; FANS] = [NOWHERE; FANS];

/// The last users to engage with each live post.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fans {
    /// Posts that have a row.
    pub(super) live: Range<u32>,
    /// Number of rows: a post has the row of its number modulo this.
    ring: u32,
    /// The newest [`FANS`] of each post, newest first; [`NOWHERE`] in unused places.
    rows: DigestVec<[u32; FANS]>,
}

impl Fans {
    /// Returns the existing table, or one made from what users remember. `ring`: the maximum number of live posts.
    pub fn kept(known: Option<Fans>, people: &People, live: Range<u32>, ring: u32) -> Fans {
        let is_new = known.is_none();
        let mut fans = match known {
            Some(known) if known.ring == ring => known,
            known => {
                let mut fans = Fans { live: live.start..live.start, ring, rows: DigestVec::default() };
                for post in live.clone() {
                    fans.fit(live.start..post + 1);
                    let row = known.as_ref().and_then(|known| known.row(post)).unwrap_or(&NO_FANS);
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

    /// Returns the users who engaged with a post, once for each time.
    pub fn of(&self, post: u32) -> impl Iterator<Item = u32> + Clone {
        self.row(post).into_iter().flatten().copied().take_while(|who| *who != NOWHERE)
    }

    /// Adds a user to a post, if that is live.
    pub fn add(&mut self, post: u32, who: u32) {
        if self.live.contains(&post) {
            self.rows.change(self.place(post), |row| {
                row.copy_within(..FANS - 1, 1);
                row[0] = who;
            });
        }
    }

    /// Fits the rows to these posts. They are not more than the ring holds, and none is older than those before.
    pub fn fit(&mut self, live: Range<u32>) {
        for post in self.live.end.max(live.start)..live.end {
            let place = self.place(post);
            if place < self.rows.len() {
                self.rows.set(place, NO_FANS);
            } else {
                self.rows.resize(place + 1, NO_FANS);
            }
        }
        self.live = live;
    }
}
