//! Collaborative filtering: who engaged with what, and random walks over it.

use super::store::Store;

/// End points of a reader's walks: three steps on the graph of people and the posts with which they engaged, each with the same
/// probability along every tie (P3; Cooper et al., "Random walks in recommender systems: exact computation and simulations", WWW 2014).
/// All walks are computed, over the newest ties, in whole numbers, so that their order does not matter.
#[derive(Default)]
pub struct Walks {
    /// Posts and their probability times [`Walks::ONE`], in order of the posts.
    ends: Vec<(u32, u64)>,
    /// The highest.
    most: u64,
}

impl Walks {
    /// Probability 1.
    const ONE: u64 = 1 << 40;

    /// Computes all walks of a reader; none if engagement is not recorded.
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

    /// Returns the posts at which most walks end, highest first; ties go to the newer.
    pub fn first(&self, most: usize) -> impl Iterator<Item = u32> {
        let mut ends: Vec<(u64, u32)> = self.ends.iter().map(|(post, walks)| (*walks, *post)).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends.into_iter().take(most).map(|(_, post)| post)
    }

    /// Returns a post's score as a share of the highest.
    pub fn share(&self, post: u32) -> f64 {
        let found =
            self.ends.binary_search_by_key(&post, |(post, _)| *post).ok().and_then(|place| self.ends.get(place));
        found.map_or(0.0, |(_, walks)| *walks as f64 / self.most as f64)
    }
}
