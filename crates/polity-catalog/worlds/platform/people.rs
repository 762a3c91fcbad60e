//! People: what the platform knows of each, and whom they follow and mute.

use super::store::NOWHERE;
use super::vectors::{TOPICS, Vector, around, unit};
use polity_kernel::digest::{DigestMap, DigestVec};
use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};

/// Posts that somebody has dealt with lately, and is not shown again.
const LATELY: usize = 16;

/// People, a row each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct People {
    pub stance: DigestVec<f32>,
    pub activity: DigestVec<f32>,
    interests: DigestVec<Vector>,
    /// Communities, a bit a topic.
    pub groups: DigestVec<u32>,
    pub followers: DigestVec<u32>,
    pub posts: DigestVec<u32>,
    pub attention: DigestVec<u32>,
    /// The newest post of each.
    pub latest: DigestVec<u32>,
    /// [`LATELY`] each, as a ring; with which of these they engaged, a bit a place; and where the ring goes on.
    lately: DigestVec<u32>,
    engaged: DigestVec<u16>,
    next: DigestVec<u8>,
    /// Followees added to those of the graph, and removed from them; sorted.
    pub more: Ties,
    pub fewer: Ties,
    pub muted: Ties,
    /// Topics that are looked for.
    pub query: DigestMap<u32, u8>,
}

/// Some of the users that somebody has to do with, sorted, by who it is.
pub type Ties = DigestMap<u32, Vec<u32>>;

impl People {
    /// Nobody yet, with room for so many.
    pub fn with_room(n: usize) -> Self {
        let mut people = People::default();
        people.interests.reserve_exact(n);
        people.lately.reserve_exact(n * LATELY);
        people.engaged.reserve_exact(n);
        people
    }

    pub fn join(&mut self, stance: f32, activity: f32, topic: u8, draws: &mut Draws) {
        self.stance.push(stance);
        self.activity.push(activity);
        self.interests.push(around(topic, draws));
        self.groups.push(1 << topic | 1 << draws.below(TOPICS as u64));
        self.followers.push(0);
        self.posts.push(0);
        self.attention.push(0);
        self.latest.push(NOWHERE);
        (0..LATELY).for_each(|_| self.lately.push(NOWHERE));
        self.engaged.push(0);
        self.next.push(0);
    }

    /// Whom somebody follows: those of the graph that it has not left, then those that it has come to follow.
    pub fn follows(&self, who: u32, graph: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
        let (more, fewer) = (of(&self.more, who), of(&self.fewer, who));
        graph.filter(move |whom| fewer.binary_search(whom).is_err()).chain(more.iter().copied())
    }

    pub fn interests(&self, who: u32) -> &Vector {
        self.interests.get(who as usize).unwrap_or(&[0.0; TOPICS])
    }

    /// Posts that somebody has dealt with lately.
    pub fn lately(&self, who: u32) -> &[u32] {
        let start = who as usize * LATELY;
        self.lately.get(start..start + LATELY).unwrap_or_default()
    }

    /// Posts that somebody has liked, commented on or passed on lately, the oldest first; one for each time.
    pub fn engaged(&self, who: u32) -> impl Iterator<Item = u32> + Clone {
        let of = |bits: &[u16]| bits.get(who as usize).copied().unwrap_or_default();
        let (lately, bits) = (self.lately(who), of(&self.engaged));
        let next = self.next.get(who as usize).map_or(0, |next| usize::from(*next));
        let places = (next..LATELY).chain(0..next).filter(move |place| bits >> place & 1 == 1);
        places.filter_map(|place| lately.get(place).copied())
    }

    pub fn dealt_with(&mut self, who: u32, post: u32, engaged: bool) {
        let who = who as usize;
        let next = self.next.change(who, |next| std::mem::replace(next, (*next + 1) % LATELY as u8));
        self.lately.set(who * LATELY + usize::from(next), post);
        self.engaged.change(who, |bits| *bits = *bits & !(1 << next) | u16::from(engaged) << next);
    }

    pub fn learns(&mut self, who: u32, of: &Vector, rate: f32) {
        if (who as usize) < self.interests.len() {
            self.interests.change(who as usize, |own| {
                own.iter_mut().zip(of).for_each(|(own, of)| *own += rate * (of - *own));
                unit(own);
            });
        }
    }
}

/// The ties of a user, sorted.
pub fn of(ties: &Ties, who: u32) -> &[u32] {
    ties.get(&who).map_or(&[], Vec::as_slice)
}

/// Adds a tie.
pub fn tied(ties: &mut Ties, who: u32, whom: u32) {
    if let Err(place) = of(ties, who).binary_search(&whom) {
        ties.change_or_insert(who, |of| of.insert(place, whom));
    }
}

/// Removes a tie.
pub fn cut(ties: &mut Ties, who: u32, whom: u32) {
    if let Ok(place) = of(ties, who).binary_search(&whom) {
        ties.change(&who, |of| of.remove(place));
        if of(ties, who).is_empty() {
            ties.remove(&who);
        }
    }
}
