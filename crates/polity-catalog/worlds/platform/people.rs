//! People: the state of each, and whom they follow and mute.

use super::posts::NOWHERE;
use super::vectors::{TOPICS, Vector, around, unit};
use polity_kernel::digest::{DigestMap, DigestVec};
use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};

/// Number of recent posts that a person has reacted to, which are not shown again.
const LATELY: usize = 16;

/// People, one row each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct People {
    pub stance: DigestVec<f32>,
    pub activity: DigestVec<f32>,
    interests: DigestVec<Vector>,
    /// Communities, one bit per topic.
    pub groups: DigestVec<u32>,
    pub followers: DigestVec<u32>,
    pub posts: DigestVec<u32>,
    pub attention: DigestVec<u32>,
    /// The newest post of each.
    pub latest: DigestVec<u32>,
    /// [`LATELY`] each, as a ring; which of these they engaged with, one bit per position; and the next position of the ring.
    lately: DigestVec<u32>,
    engaged: DigestVec<u16>,
    next: DigestVec<u8>,
    /// Followees added to those of the graph, and removed from them; sorted.
    pub more: Ties,
    pub fewer: Ties,
    pub muted: Ties,
    /// Searched topics.
    pub query: DigestMap<u32, u8>,
}

/// Ties of users to others, sorted, by user.
pub type Ties = DigestMap<u32, Vec<u32>>;

impl People {
    /// Creates an empty table with room for `n` people.
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

    /// Returns a user's followees: those of the graph that are not unfollowed, then the added ones.
    pub fn follows(&self, who: u32, graph: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
        let (more, fewer) = (ties_of(&self.more, who), ties_of(&self.fewer, who));
        graph.filter(move |whom| fewer.binary_search(whom).is_err()).chain(more.iter().copied())
    }

    pub fn interests(&self, who: u32) -> &Vector {
        self.interests.get(who as usize).unwrap_or(&[0.0; TOPICS])
    }

    /// Returns the posts that a user has recently reacted to.
    pub fn lately(&self, who: u32) -> &[u32] {
        let start = who as usize * LATELY;
        self.lately.get(start..start + LATELY).unwrap_or_default()
    }

    /// Returns the posts that a user has recently liked, commented on or shared, oldest first; one for each time.
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

/// Returns those whom a user follows or mutes by these ties, sorted.
pub fn ties_of(ties: &Ties, user: u32) -> &[u32] {
    ties.get(&user).map_or(&[], Vec::as_slice)
}

/// Adds a tie.
pub fn add_tie(ties: &mut Ties, user: u32, other: u32) {
    if let Err(place) = ties_of(ties, user).binary_search(&other) {
        ties.change_or_insert(user, |of| of.insert(place, other));
    }
}

/// Removes a tie.
pub fn remove_tie(ties: &mut Ties, user: u32, other: u32) {
    if let Ok(place) = ties_of(ties, user).binary_search(&other) {
        ties.change(&user, |of| of.remove(place));
        if ties_of(ties, user).is_empty() {
            ties.remove(&user);
        }
    }
}
