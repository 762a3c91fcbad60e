//! Posts in memory: those that feeds can show or acts can name, and older posts that these show or quote.
//!
//! Every post has a row in the table `posts` from the round in which it appeared. Here it stays only as long as it can affect a result.

use polity_kernel::digest::DigestVec;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::{Index, Range};

/// A post. Shares are posts, too, as are shares of shares. A row fills a cache line of the processor, since feeds look at several fields
/// of hundreds of posts all over memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[repr(align(64))]
pub struct Post {
    pub author: u32,
    /// The post whose content it shows: itself, unless it is a share.
    pub origin: u32,
    /// The post at the beginning of its chain of shares and quotes.
    pub root: u32,
    /// The post that it shares or quotes.
    pub of: u32,
    pub round: u32,
    /// The author's previous post.
    pub before: u32,
    pub likes: u32,
    pub dislikes: u32,
    pub shares: u32,
    /// The seed that it is or descends from, from 1; 0: none.
    pub seed: u32,
    pub stance: f32,
    pub depth: u16,
    pub topic: u8,
    /// The hot score at the start of the round; recomputed when posts are read back.
    #[serde(skip)]
    pub hot: f64,
    /// Index in `old` of the post that it shows or quotes, if that is old; recomputed when posts are read back.
    #[serde(skip)]
    old_index: u32,
}

impl Post {
    /// Creates the next post of `posts`, without reactions. `of`: the post that it shares or quotes, and whether it shows that post's
    /// content.
    pub fn new(posts: &Posts, author: u32, of: Option<(u32, bool)>) -> Post {
        let number = posts.end();
        let (origin, root, depth) = match of.and_then(|(of, shows)| Some((posts.get(of)?, shows))) {
            None => (number, number, 0),
            Some((of, shows)) => (if shows { of.origin } else { number }, of.root, of.depth.saturating_add(1)),
        };
        Post {
            author,
            origin,
            root,
            of: of.map_or(NOWHERE, |(of, _)| of),
            round: 0,
            before: NOWHERE,
            likes: 0,
            dislikes: 0,
            shares: 0,
            seed: 0,
            stance: 0.0,
            depth,
            topic: 0,
            hot: 0.0,
            old_index: 0,
        }
    }

    /// Returns the post that readers of this one, number `number`, must also see: the one it shows, or else the one it quotes.
    fn needs(&self, number: u32) -> u32 {
        if self.origin == number { self.of } else { self.origin }
    }
}

/// Posts by number, from 0 in order of appearance. All of the newest are here; of the earlier (old) ones, only those that a newer one
/// needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Posts {
    /// The number of the first row.
    first: u32,
    rows: DigestVec<Post>,
    /// Numbers of the old ones, ascending, and the posts.
    numbers: Vec<u32>,
    old: DigestVec<Post>,
    /// The oldest post that feeds may show: for this round (last entry) and for as many earlier rounds as turns may wait for answers.
    oldest_shown: VecDeque<u32>,
}

/// Returns one of the newest; feeds look at no others.
impl Index<u32> for Posts {
    type Output = Post;

    #[inline]
    fn index(&self, number: u32) -> &Post {
        &self.rows[(number - self.first) as usize]
    }
}

impl Posts {
    /// Returns the number of posts ever made, which is the number of the next.
    pub fn end(&self) -> u32 {
        self.first + self.rows.len() as u32
    }

    /// Returns the number of posts in memory.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.rows.len() + self.old.len()
    }

    /// Adds the next post.
    pub fn push(&mut self, mut post: Post) {
        let needs = post.needs(self.end());
        if needs < self.first {
            post.old_index = self.place(needs).map_or(NOWHERE, |place| place as u32);
        }
        self.rows.push(post);
    }

    fn place(&self, number: u32) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// Returns a post that is in memory.
    pub fn get(&self, number: u32) -> Option<&Post> {
        match number.checked_sub(self.first) {
            Some(row) => self.rows.get(row as usize),
            None => self.place(number).map(|place| &self.old[place]),
        }
    }

    /// Returns the numbers of all posts in memory.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        self.numbers.clone().into_iter().chain(self.first..self.end())
    }

    /// Sets the hot score of a post, if it is in memory.
    pub fn heat(&mut self, number: u32, score: impl FnOnce(&Post) -> f64) {
        let heat = |post: &mut Post| post.hot = score(post);
        match number.checked_sub(self.first) {
            Some(row) if (row as usize) < self.rows.len() => self.rows.change_unsaved(row as usize, heat),
            Some(_) => {}
            None => {
                if let Some(place) = self.place(number) {
                    self.old.change_unsaved(place, heat);
                }
            }
        }
    }

    /// Returns the post whose content one of the newest shows.
    #[inline]
    pub fn origin_of(&self, post: &Post) -> &Post {
        match post.origin.checked_sub(self.first) {
            Some(row) => &self.rows[row as usize],
            None => &self.old[post.old_index as usize],
        }
    }

    /// Changes the post whose content one of the newest shows.
    pub fn change_origin_of(&mut self, number: u32, change: impl FnOnce(&mut Post)) {
        let post = self[number];
        match post.origin.checked_sub(self.first) {
            Some(row) => self.rows.change(row as usize, change),
            None => self.old.change(post.old_index as usize, change),
        }
    }

    /// Returns a range of the newest.
    pub fn rows(&self, range: Range<u32>) -> &[Post] {
        &self.rows[(range.start - self.first) as usize..(range.end - self.first) as usize]
    }

    /// Returns the first of the newest that is of this round or a later one.
    pub fn first_of_round(&self, round: u32) -> u32 {
        self.first + self.rows.partition_point(|post| post.round < round) as u32
    }

    /// Returns the oldest post that an act may name: no feed that its turn can have seen shows an older one.
    pub fn oldest(&self) -> u32 {
        self.oldest_shown.front().copied().unwrap_or_default()
    }

    /// Makes feeds of the current round show this post and newer ones, whatever they showed before.
    pub fn show_from(&mut self, oldest: u32) {
        match self.oldest_shown.back_mut() {
            Some(last) => *last = oldest,
            None => self.oldest_shown.push_back(oldest),
        }
    }

    /// Begins a round in which feeds show this post and newer ones. Turns may be up to `lag` rounds late.
    pub fn begin_round(&mut self, oldest: u32, lag: u32) {
        self.oldest_shown.push_back(oldest);
        self.oldest_shown.drain(..self.oldest_shown.len().saturating_sub(lag as usize + 1));
    }

    /// Drops posts before this one that no newer post needs. Acts only when more than half of the rows go, because the rest must be
    /// moved; returns whether it did.
    pub fn forget(&mut self, before: u32) -> bool {
        let gone = before.saturating_sub(self.first) as usize;
        if gone <= self.rows.len() / 2 {
            return false;
        }
        let needs = |row: &(usize, &Post)| Some(row.1.needs(self.first + row.0 as u32)).filter(|needs| *needs < before);
        let mut numbers: Vec<u32> = self.rows.iter().enumerate().skip(gone).filter_map(|row| needs(&row)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        // Every old post that is needed was kept until now.
        let old: Vec<Post> = numbers.iter().filter_map(|number| self.get(*number).copied()).collect();
        (self.old, self.numbers) = (DigestVec::from(old), numbers);
        self.rows.drop_first(gone);
        self.first = before;
        self.find_old();
        true
    }

    /// Recomputes the indices of old posts that newer ones show or quote.
    pub fn find_old(&mut self) {
        for i in 0..self.rows.len() {
            let needs = self.rows[i].needs(self.first + i as u32);
            if needs < self.first {
                let place = self.place(needs).map_or(NOWHERE, |place| place as u32);
                self.rows.change_unsaved(i, |row| row.old_index = place);
            }
        }
    }

    /// Returns a test of whether a post's words can still be read.
    pub fn still_shown(&self) -> impl Fn(u32) -> bool + use<> {
        let mut old: Vec<u32> = self.old.iter().map(|post| post.origin).collect();
        old.sort_unstable();
        let first = self.first;
        move |number| number >= first || old.binary_search(&number).is_ok()
    }

    /// Returns the oldest of the newest.
    pub fn first(&self) -> u32 {
        self.first
    }
}

/// No post.
pub const NOWHERE: u32 = u32::MAX;
