//! A second platform, which keeps every post for ever in lists, and sorts all of them for every reader.
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};

/// The seed of its scenarios.
pub const SEED: u64 = 5;

pub const POST: u16 = 0;
pub const SHARE: u16 = 1;
pub const QUOTE: u16 = 2;
pub const COMMENT: u16 = 3;
pub const LIKE: u16 = 4;
pub const DISLIKE: u16 = 5;
pub const REPORT: u16 = 6;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainPost {
    pub author: u32,
    pub origin: usize,
    pub of: Option<usize>,
    pub root: usize,
    pub depth: u32,
    /// The seed that it is or descends from, from 1.
    pub seed: u32,
    pub stance: f32,
    pub round: u32,
    pub likes: i64,
    pub dislikes: i64,
    pub shares: i64,
    pub words: Option<String>,
    /// Its comments, oldest first.
    said: Vec<(u32, String)>,
    /// Users who liked, shared or commented on it, oldest first.
    fans: Vec<u32>,
}

/// A platform of lists, without state between feeds.
pub struct Plain {
    pub follows: Vec<Vec<u32>>,
    pub posts: Vec<PlainPost>,
    /// Origins that each user has reacted to, oldest first, and whether it engaged with them.
    dealt: Vec<Vec<(usize, bool)>>,
    pub seed: u64,
    /// Each user's stance.
    pub stances: Vec<f32>,
    /// Number of posts that are candidates: the newest, from the oldest possible one on.
    pub live: usize,
    pub gone: usize,
    /// Maximum numbers of candidates and posts of a feed.
    pub most: usize,
    pub length: usize,
    /// Share of the shares that are credited to the post itself.
    pub credit: f64,
    /// The oldest post that acts may name.
    pub oldest: usize,
    /// Number of actions with invalid targets.
    pub refused: usize,
}

/// The sources of a feed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    Followed,
    Hot,
    /// Followees, and others' engagement.
    Others,
}

impl Plain {
    pub fn new(topology: &Topology, agents: u32) -> Self {
        let seed = Draws::new(SEED, Stream::Seat, 0, u32::MAX).u64();
        let follows = (0..agents).map(|who| topology.neighbours(who).collect()).collect();
        Plain {
            follows,
            posts: Vec::new(),
            dealt: vec![Vec::new(); agents as usize],
            seed,
            stances: vec![0.0; agents as usize],
            live: usize::MAX,
            gone: 0,
            most: 200,
            length: 20,
            credit: 0.0,
            oldest: 0,
            refused: 0,
        }
    }

    /// Returns the oldest current candidate.
    pub fn first(&self) -> usize {
        self.posts.len().saturating_sub(self.live).max(self.gone)
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

    /// Returns the share of all walks of three steps from a user that end at each post: to one of the posts that it engaged with lately,
    /// to another one of the last eight who did so, to one of the posts which that user engaged with.
    fn walks(&self, who: u32) -> BTreeMap<usize, u64> {
        let first = self.first();
        let liked = |who: u32| -> Vec<usize> {
            self.lately(who).iter().filter(|it| it.1 && it.0 >= first).map(|it| it.0).collect()
        };
        let mut ends = BTreeMap::new();
        let own = liked(who);
        for post in &own {
            let fans = self.posts[*post].fans.iter().rev().take(8);
            let fans: Vec<u32> = fans.copied().filter(|fan| *fan != who).collect();
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

    /// Returns the live posts by a user's followees, newest first.
    fn of_followed(&self, who: u32) -> impl Iterator<Item = usize> {
        let follows = &self.follows[who as usize];
        (self.first()..self.posts.len()).rev().filter(|post| follows.contains(&self.posts[*post].author))
    }

    /// Returns the candidates of both kinds, in the order of a feed.
    fn by_others(&self, who: u32) -> Vec<usize> {
        let walks = self.walks(who);
        let most = walks.values().copied().max().unwrap_or(1) as f64;
        let share = |post: usize| walks.get(&self.posts[post].origin).map_or(0.0, |walks| *walks as f64 / most);
        let mut ends: Vec<(u64, usize)> = walks.iter().map(|(post, walks)| (*walks, *post)).collect();
        ends.sort_by(|a, b| b.cmp(a));
        let near: Vec<(f64, bool, usize)> = self
            .of_followed(who)
            .take(self.most / 2)
            .map(|post| (1.0 + share(post), self.posts[post].origin == post, post))
            .collect();
        let far = ends.into_iter().take(self.most - near.len()).map(|(_, post)| (share(post), true, post));
        let mut all: Vec<(f64, bool, usize)> = near.iter().copied().chain(far).collect();
        all.sort_by(|a, b| b.partial_cmp(a).unwrap());
        all.into_iter().map(|(_, _, post)| post).collect()
    }

    pub fn feed(&self, who: u32, by: By) -> Vec<usize> {
        let mut candidates: Vec<usize> = match by {
            By::Hot => (self.first()..self.posts.len()).filter(|post| self.posts[*post].origin == *post).collect(),
            By::Followed => self.of_followed(who).collect(),
            By::Others => self.by_others(who),
        };
        if by != By::Others {
            let key = |post: usize| if by == By::Hot { self.hot(post) } else { 0.0 };
            candidates.sort_by(|a, b| key(*b).partial_cmp(&key(*a)).unwrap().then(b.cmp(a)));
            candidates.truncate(self.most);
        }
        if by == By::Followed {
            // The newest round first; within it originals before shares, and the newer first.
            let key = |post: usize| (self.posts[post].round, self.posts[post].origin == post, post);
            candidates.sort_by_key(|post| std::cmp::Reverse(key(*post)));
        }
        let own = |post: usize| self.posts[post].author == who || self.posts[self.posts[post].origin].author == who;
        let lately: Vec<usize> = self.lately(who).iter().map(|it| it.0).collect();
        let mut shown: Vec<usize> = Vec::new();
        for post in candidates {
            let origin = self.posts[post].origin;
            let again = shown.iter().any(|shown| self.posts[*shown].origin == origin);
            if !own(post) && !lately.contains(&origin) && !again && shown.len() < self.length {
                shown.push(post);
            }
        }
        shown
    }

    /// Returns the text of a post and its newest comments.
    pub fn text(&self, post: usize) -> String {
        let PlainPost { origin, of, .. } = self.posts[post];
        let words = |post: usize| self.posts[post].words.as_deref();
        let mut lines: Vec<String> = words(origin).map(str::to_owned).into_iter().collect();
        if let Some(quoted) = of.filter(|_| origin == post).map(|of| &self.posts[of])
            && let Some(words) = words(quoted.origin)
        {
            lines.push(format!("(on user {}: {words})", quoted.author));
        }
        let said = &self.posts[origin].said;
        let newest = &said[said.len().saturating_sub(3)..];
        lines.extend(newest.iter().map(|(who, words)| format!("User {who} comments: {words}")));
        lines.join("\n")
    }

    /// Adds a post from outside.
    pub fn sow(&mut self, author: u32, seed: u32, round: u32, score: i64, words: Option<&str>) {
        let origin = self.posts.len();
        let (likes, dislikes) = (score.max(0), (-score).max(0));
        let words = words.map(str::to_owned);
        let post =
            PlainPost { author, origin, root: origin, seed, round, likes, dislikes, words, ..PlainPost::default() };
        self.posts.push(post);
    }

    pub fn apply(&mut self, who: u32, kind: u16, value: f64, round: u32) {
        self.apply_saying(who, kind, value, None, round);
    }

    pub fn apply_saying(&mut self, who: u32, kind: u16, value: f64, words: Option<&str>, round: u32) {
        let words = words.map(str::to_owned);
        let stance = self.stances[who as usize];
        let number = self.posts.len();
        if kind == POST {
            let post =
                PlainPost { author: who, origin: number, root: number, stance, round, words, ..PlainPost::default() };
            self.posts.push(post);
            return;
        }
        let post = value as usize;
        if value < self.oldest as f64 || post >= self.posts.len() || self.posts[post].author == who {
            self.refused += 1;
            return;
        }
        let origin = self.posts[post].origin;
        let engages = [LIKE, SHARE, QUOTE, COMMENT].contains(&kind);
        self.dealt[who as usize].push((origin, engages));
        if engages {
            self.posts[origin].fans.push(who);
        }
        match kind {
            LIKE => self.posts[origin].likes += 1,
            DISLIKE => self.posts[origin].dislikes += 1,
            COMMENT => self.posts[origin].said.extend(words.map(|words| (who, words))),
            SHARE | QUOTE => {
                self.posts[origin].shares += 1;
                let mut draws = Draws::new(self.seed ^ (origin as u64) << 32, Stream::World, round, who);
                let of = if self.credit > 0.0 && draws.chance(self.credit) { origin } else { post };
                let share = kind == SHARE;
                let PlainPost { root, depth, seed, .. } = self.posts[of];
                self.posts.push(PlainPost {
                    author: who,
                    origin: if share { self.posts[of].origin } else { number },
                    of: Some(of),
                    root,
                    depth: depth + 1,
                    seed,
                    stance: if share { self.posts[origin].stance } else { stance },
                    round,
                    words: words.filter(|_| !share),
                    ..PlainPost::default()
                });
            }
            _ => {}
        }
    }

    /// Returns, of the cascades of all seeds: users, depth, breadth, structural virality by the definition, likes minus dislikes of the
    /// seeds themselves.
    pub fn cascades(&self, scores: i64) -> [f64; 5] {
        let of_seeds: Vec<usize> = (0..self.posts.len()).filter(|post| self.posts[*post].seed > 0).collect();
        let (mut users, mut at) = (BTreeSet::new(), BTreeMap::new());
        for post in of_seeds.iter().map(|post| &self.posts[*post]) {
            if users.insert((post.seed, post.author)) {
                *at.entry(post.depth).or_insert(0u32) += 1;
            }
        }
        let depth = at.keys().max().copied().unwrap_or(0);
        let breadth = at.iter().filter(|(depth, _)| **depth > 0).map(|(_, n)| *n).max().unwrap_or(0);
        let mut below: BTreeMap<usize, f64> = of_seeds.iter().map(|post| (*post, 1.0)).collect();
        for post in of_seeds.iter().rev() {
            if let Some(of) = self.posts[*post].of {
                *below.get_mut(&of).unwrap() += below[post];
            }
        }
        let (mut steps, mut pairs) = (0.0, 0.0);
        for post in &of_seeds {
            let all = below[&self.posts[*post].root];
            match self.posts[*post].of {
                None => pairs += all * (all - 1.0) / 2.0,
                Some(_) => steps += below[post] * (all - below[post]),
            }
        }
        let seeds = of_seeds.iter().map(|post| &self.posts[*post]).filter(|post| post.depth == 0);
        let score = seeds.map(|post| post.likes - post.dislikes).sum::<i64>() - scores;
        let virality = if pairs == 0.0 { 0.0 } else { steps / pairs };
        [users.len() as f64, f64::from(depth), f64::from(breadth), virality, score as f64]
    }
}
