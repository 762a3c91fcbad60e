//! A second platform, which keeps lists and sorts all posts for every reader.

use polity_kernel::rng::{Draws, Stream};
use polity_kernel::topology::Topology;
use std::collections::BTreeMap;

/// The seed of its scenarios.
pub const SEED: u64 = 5;

pub const POST: u16 = 0;
pub const SHARE: u16 = 1;
pub const LIKE: u16 = 4;
pub const DISLIKE: u16 = 5;

pub struct PlainPost {
    pub author: u32,
    origin: usize,
    pub round: u32,
    likes: i64,
    dislikes: i64,
}

/// Lists, and nothing kept between feeds.
pub struct Plain {
    pub follows: Vec<Vec<u32>>,
    pub posts: Vec<PlainPost>,
    /// Origins that each has dealt with, oldest first, and whether it liked or passed them on.
    dealt: Vec<Vec<(usize, bool)>>,
    /// Who liked or passed on which origin, oldest first.
    engaged: Vec<(u32, usize)>,
    pub seed: u64,
}

/// What a feed is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    Followed,
    Hot,
    /// Whom the reader follows, and what others engaged with.
    Others,
}

impl Plain {
    pub fn new(topology: &Topology, agents: u32) -> Self {
        let seed = Draws::new(SEED, Stream::Seat, 0, u32::MAX).u64();
        let follows = (0..agents).map(|who| topology.neighbours(who).collect()).collect();
        Plain { follows, posts: Vec::new(), dealt: vec![Vec::new(); agents as usize], engaged: Vec::new(), seed }
    }

    fn hot(&self, post: usize) -> f64 {
        let PlainPost { likes, dislikes, round, .. } = self.posts[post];
        let score = (likes - dislikes) as f64;
        let order = score.abs().max(1.0).log10();
        let sign = if score > 0.0 {
            1.0
        } else if score < 0.0 {
            -1.0
        } else {
            0.0
        };
        sign * order + f64::from(round) * 3600.0 / 45_000.0
    }

    fn lately(&self, who: u32) -> &[(usize, bool)] {
        let dealt = &self.dealt[who as usize];
        &dealt[dealt.len().saturating_sub(16)..]
    }

    /// Of all walks of three steps from somebody, the share that ends at each post: to one of the posts that it engaged with lately, to one of
    /// the last eight who did so, if that is somebody else, to one of the posts that that one engaged with.
    fn walks(&self, who: u32) -> BTreeMap<usize, u64> {
        let liked = |who: u32| -> Vec<usize> { self.lately(who).iter().filter(|it| it.1).map(|it| it.0).collect() };
        let mut ends = BTreeMap::new();
        let own = liked(who);
        for post in &own {
            let fans = self.engaged.iter().rev().filter(|(_, of)| of == post).take(8).map(|(fan, _)| *fan);
            let fans: Vec<u32> = fans.filter(|fan| *fan != who).collect();
            for fan in &fans {
                let theirs = liked(*fan);
                for end in &theirs {
                    let known = self.lately(who).iter().any(|it| it.0 == *end) || self.posts[*end].author == who;
                    if !known {
                        *ends.entry(*end).or_insert(0) += (1 << 40) / (own.len() * fans.len() * theirs.len()) as u64;
                    }
                }
            }
        }
        ends
    }

    /// Candidates of both kinds, in the order of a feed.
    fn by_others(&self, who: u32) -> Vec<usize> {
        let walks = self.walks(who);
        let most = walks.values().copied().max().unwrap_or(1) as f64;
        let share = |post: usize| walks.get(&self.posts[post].origin).map_or(0.0, |walks| *walks as f64 / most);
        let mut ends: Vec<(u64, usize)> = walks.iter().map(|(post, walks)| (*walks, *post)).collect();
        ends.sort_by(|a, b| b.cmp(a));
        let followed = |post: &usize| self.follows[who as usize].contains(&self.posts[*post].author);
        let near = (0..self.posts.len()).rev().filter(followed).take(100);
        let near: Vec<(f64, bool, usize)> =
            near.map(|post| (1.0 + share(post), self.posts[post].origin == post, post)).collect();
        let far = ends.into_iter().take(200 - near.len()).map(|(_, post)| (share(post), true, post));
        let mut all: Vec<(f64, bool, usize)> = near.iter().copied().chain(far).collect();
        all.sort_by(|a, b| b.partial_cmp(a).unwrap());
        all.into_iter().map(|(_, _, post)| post).collect()
    }

    pub fn feed(&self, who: u32, by: By) -> Vec<usize> {
        let mut candidates: Vec<usize> = match by {
            By::Hot => (0..self.posts.len()).filter(|post| self.posts[*post].origin == *post).collect(),
            By::Followed => {
                let followed = |post: &usize| self.follows[who as usize].contains(&self.posts[*post].author);
                (0..self.posts.len()).filter(followed).collect()
            }
            By::Others => self.by_others(who),
        };
        if by != By::Others {
            let key = |post: usize| if by == By::Hot { self.hot(post) } else { 0.0 };
            candidates.sort_by(|a, b| key(*b).partial_cmp(&key(*a)).unwrap().then(b.cmp(a)));
            candidates.truncate(200);
        }
        if by == By::Followed {
            // The newest round first; within it posts before shares, and the newer first.
            let key = |post: usize| (self.posts[post].round, self.posts[post].origin == post, post);
            candidates.sort_by_key(|post| std::cmp::Reverse(key(*post)));
        }
        let own = |post: usize| self.posts[post].author == who || self.posts[self.posts[post].origin].author == who;
        let lately: Vec<usize> = self.lately(who).iter().map(|it| it.0).collect();
        let mut shown: Vec<usize> = Vec::new();
        for post in candidates {
            let origin = self.posts[post].origin;
            let again = shown.iter().any(|shown| self.posts[*shown].origin == origin);
            if !own(post) && !lately.contains(&origin) && !again && shown.len() < 20 {
                shown.push(post);
            }
        }
        shown
    }

    pub fn apply(&mut self, who: u32, kind: u16, value: f64, round: u32) {
        let post = value as usize;
        if kind == POST {
            let origin = self.posts.len();
            self.posts.push(PlainPost { author: who, origin, round, likes: 0, dislikes: 0 });
            return;
        }
        let origin = self.posts[post].origin;
        let engages = [LIKE, SHARE].contains(&kind);
        self.dealt[who as usize].push((origin, engages));
        if engages {
            self.engaged.push((who, origin));
        }
        match kind {
            LIKE => self.posts[origin].likes += 1,
            DISLIKE => self.posts[origin].dislikes += 1,
            SHARE => self.posts.push(PlainPost { author: who, origin, round, likes: 0, dislikes: 0 }),
            _ => {}
        }
    }
}
