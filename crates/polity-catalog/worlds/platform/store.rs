//! What the platform holds, in columns: people, posts, ties, and what was done in the round.

use super::collaborative::Fans;
use super::feed::Near;
use super::people::{People, cut, tied};
use super::polarisation::Exposed;
use super::vectors::{Coarse, Code, NONE, TOPICS, Vector, around, coarse, code, decode, hashed, projected, unit};
use super::{Params, Seed};
use polity_kernel::digest::{Digest, Kind as Hashed, RowHash};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::sight::named;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// No post.
pub const NOWHERE: u32 = u32::MAX;
/// What is noted, beside kinds of acts, when a model has read a post.
const EMBEDDED: u8 = u8::MAX - 2;
/// Letters of a post that are kept.
const LONGEST: usize = 5_000;
/// Comments with words that are kept of a post: the newest.
const COMMENTS: usize = 3;

/// What can be done, in the order of the world's acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Post,
    Share,
    Quote,
    Comment,
    Like,
    Dislike,
    Report,
    Follow,
    Unfollow,
    Mute,
    Search,
    Join,
    Leave,
    Think,
}

impl Kind {
    pub const ALL: [Kind; 14] = [
        Kind::Post,
        Kind::Share,
        Kind::Quote,
        Kind::Comment,
        Kind::Like,
        Kind::Dislike,
        Kind::Report,
        Kind::Follow,
        Kind::Unfollow,
        Kind::Mute,
        Kind::Search,
        Kind::Join,
        Kind::Leave,
        Kind::Think,
    ];
}

/// Something that somebody did.
pub struct Did<'a> {
    pub who: u32,
    pub value: f64,
    pub text: Option<&'a str>,
}

/// A post. What is shared and what is shared again are posts, too. A row fills a line of the processor's cache: feeds look at hundreds of
/// posts that lie anywhere, and at several things of each.
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
    /// The post of the same author before it.
    pub before: u32,
    pub likes: u32,
    pub dislikes: u32,
    pub shares: u32,
    /// The seed that it is or comes from, from 1; 0: none.
    pub seed: u32,
    pub stance: f32,
    pub depth: u16,
    pub topic: u8,
    /// The hot score, as of the round's beginning.
    pub hot: f64,
}

/// A post to be added.
struct New<'a> {
    author: u32,
    topic: u8,
    stance: f32,
    /// The post that it shares, quotes or comments on, and whether it shows its content.
    of: Option<(u32, bool)>,
    seed: u32,
    /// Its words, as they came.
    text: Option<&'a str>,
}

/// How the seeds have spread, all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Cascade {
    users: BTreeSet<(u32, u32)>,
    /// Shares by depth.
    at: Vec<u32>,
    /// Likes less dislikes that they have had, without those that they began with.
    score: i64,
    /// The seeds and all their shares.
    posts: Vec<u32>,
}

impl Cascade {
    /// Structural virality: the mean number of steps between two posts of the same tree of shares (Goel et al., "The structural virality
    /// of online diffusion", 2016, equation 1), over all trees; 0 where no tree has two.
    fn virality(&self, posts: &[Post]) -> f64 {
        let mut below: Vec<f64> = vec![1.0; self.posts.len()];
        let mut roots: Vec<usize> = (0..self.posts.len()).collect();
        let parent = |i: usize| self.posts.binary_search(&posts.get(self.posts[i] as usize)?.of).ok();
        for i in 0..roots.len() {
            if let Some(of) = parent(i) {
                roots[i] = roots[of];
            }
        }
        let (mut steps, mut pairs) = (0.0, 0.0);
        // Shares come after what they share.
        for i in (0..below.len()).rev() {
            match parent(i) {
                Some(of) => below[of] += below[i],
                None => pairs += below[i] * (below[i] - 1.0) / 2.0,
            }
        }
        for i in 0..below.len() {
            // The step from a post to what it shares lies between all that is below it and all that is not.
            steps += below[i] * (below[roots[i]] - below[i]);
        }
        if pairs == 0.0 { 0.0 } else { steps / pairs }
    }
}

/// What was done in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Done {
    active: u32,
    posts: u32,
    shares: u32,
    comments: u32,
    likes: u32,
    dislikes: u32,
    follows: i32,
    refused: u32,
    /// Sum of differences of stance, and their number.
    distance: f64,
    engaged: u32,
}

/// Live posts of a topic, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topic {
    posts: Vec<u32>,
    /// Their vectors, a column for each number: a whole topic is multiplied at once.
    columns: Vec<Vec<i16>>,
    /// How many at the beginning are no longer live.
    gone: usize,
}

impl Topic {
    /// Adds the newest; those before `first` are gone.
    fn push(&mut self, post: u32, code: &Coarse, first: u32) {
        self.posts.push(post);
        self.columns.resize(TOPICS, Vec::new());
        self.columns.iter_mut().zip(code).for_each(|(column, x)| column.push(*x));
        self.gone += self.posts[self.gone..].partition_point(|post| *post < first);
        if self.gone > self.posts.len() / 2 {
            self.posts.drain(..self.gone);
            self.columns.iter_mut().for_each(|column| drop(column.drain(..self.gone)));
            self.gone = 0;
        }
    }

    /// Changes the vector of one of them.
    fn replace(&mut self, post: u32, code: &Coarse) {
        if let Ok(place) = self.posts.binary_search(&post) {
            self.columns.iter_mut().zip(code).for_each(|(column, x)| column[place] = *x);
        }
    }

    /// Those that are not before `first`.
    pub fn live(&self, first: u32) -> &[u32] {
        let start = self.gone + self.posts[self.gone..].partition_point(|post| *post < first);
        &self.posts[start..]
    }

    /// The products of a vector with those of the newest `most` posts, in the order of the posts.
    pub fn products(&self, own: &Coarse, most: usize) -> Vec<i16> {
        const AT_ONCE: usize = 8;
        let start = self.posts.len() - most.min(self.posts.len());
        let mut products = vec![0i16; self.posts.len() - start];
        let (own, _) = own.as_chunks::<AT_ONCE>();
        let (columns, _) = self.columns.as_chunks::<AT_ONCE>();
        for (own, columns) in own.iter().zip(columns) {
            add(&mut products, own, columns.each_ref().map(|column| &column[start..]));
        }
        products
    }
}

/// Adds to each sum the products of some numbers with those in its place in as many columns. A function of its own, without a branch:
/// compilers take eight posts in a step.
#[inline(never)]
fn add<const N: usize>(sums: &mut [i16], own: &[i16; N], columns: [&[i16]; N]) {
    let n = sums.len();
    let columns = columns.map(|column| &column[..n]);
    for (i, sum) in sums.iter_mut().enumerate() {
        let mut more = 0i16;
        for (own, column) in own.iter().zip(columns) {
            more = more.wrapping_add(own.wrapping_mul(column[i]));
        }
        *sum = sum.wrapping_add(more);
    }
}

/// Candidates, found anew from the posts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// The oldest post that is a candidate.
    pub first: u32,
    /// How much of a post's vector is that of its words.
    wording: f32,
    /// Vectors of live posts, as a ring by number of the post.
    codes: Vec<Code>,
    /// Live posts by topic.
    pub by_topic: Vec<Topic>,
    /// By age in rounds: what a post has for being new.
    pub recent: Vec<f64>,
    /// The hottest, from the top.
    pub hot: Vec<u32>,
    /// Minutes a round and length for which the hottest were found; `None`: they were not.
    pub found_for: Option<(f64, u32)>,
    /// Posts that came or were voted on since then.
    pub touched: Vec<u32>,
    /// What the readers of the next round are nearest to; until somebody does something.
    pub near: Near,
}

/// All that changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Store {
    pub seed: u64,
    pub round: u32,
    pub people: People,
    pub posts: Vec<Post>,
    /// Words, of the posts that have some.
    words: BTreeMap<u32, String>,
    /// Vectors of words that a model has made, coded, by post.
    embeddings: BTreeMap<u32, Code>,
    /// The model, and the first post for whose words it has not been asked yet.
    embedder: Option<String>,
    asked: u32,
    /// The newest comments with words, by the post that they stand below: (who, words).
    said: BTreeMap<u32, VecDeque<(u32, String)>>,
    /// Who engaged with what, where feeds are made of it.
    pub fans: Option<Fans>,
    cascade: Cascade,
    now: Done,
    last: Done,
    /// Kept up with every act.
    pub digest: Digest,
    #[serde(skip)]
    pub live: Live,
    /// Who dealt with which post in the round: (who, kind of act, post), if that is recorded; and in the round before.
    #[serde(skip)]
    influence: Vec<(u32, Kind, u32)>,
    #[serde(skip)]
    pub influenced: Vec<(u32, Kind, u32)>,
    /// What feeds expose their readers to in the round under way, and did in the round before, if that is measured. The first follows from the
    /// rest, the second is read before it could be lost.
    #[serde(skip)]
    pub coming: Exposed,
    #[serde(skip)]
    pub exposed: Exposed,
}

impl Store {
    pub fn new(agents: u32, seed: u64) -> Self {
        Store { seed, people: People::with_room(agents as usize), ..Store::default() }
    }

    /// The vector of a live post, coded.
    pub fn code(&self, post: u32) -> &Code {
        let ring = self.live.codes.len().max(1);
        self.live.codes.get(post as usize % ring).unwrap_or(&NONE)
    }

    /// The vector of a post: of its topic, and in part of its words. A share looks like what it shares.
    pub fn vector(&self, post: u32) -> Vector {
        let Post { origin, topic, .. } = self.posts[post as usize];
        let mut vector = around(topic, &mut Draws::new(self.seed, Stream::Seat, 1, origin));
        if let Some(words) = self.words.get(&origin).filter(|_| self.live.wording > 0.0) {
            let (part, meaning) = (self.live.wording, self.embeddings.get(&origin).map(decode));
            let words = meaning.unwrap_or_else(|| hashed(words));
            vector.iter_mut().zip(words).for_each(|(x, word)| *x += part * (word - *x));
            unit(&mut vector);
        }
        vector
    }

    fn note(&mut self, kind: u8, who: u32, what: u64, value: f64) {
        let hash = RowHash::new(Hashed::Row, self.round).words(u64::from(who) << 8 | u64::from(kind), what);
        self.digest.add(hash.number(value).finish());
    }

    /// Names the model that reads words from now on. What another one has read is forgotten: their vectors have nothing to do with each other.
    pub fn embed_by(&mut self, model: Option<&str>) {
        if self.embedder.as_deref() != model {
            self.embedder = model.map(str::to_owned);
            self.embeddings.clear();
            self.asked = 0;
        }
    }

    /// Live posts with words for which no model has been asked yet: number, author, words.
    pub fn unembedded(&self) -> impl Iterator<Item = (u32, u32, &str)> {
        let words = self.words.range(self.asked.max(self.live.first)..);
        words.filter_map(|(post, words)| Some((*post, self.posts.get(*post as usize)?.author, words.as_str())))
    }

    /// Takes in what a model made of all of these, in their order; nothing where it made nothing. Whether any vector has changed.
    pub fn embed(&mut self, vectors: Vec<Vec<f32>>) -> bool {
        let posts: Vec<(u32, u32)> = self.unembedded().map(|(post, author, _)| (post, author)).collect();
        self.asked = self.posts.len() as u32;
        let mut first = self.asked;
        for ((post, author), vector) in posts.into_iter().zip(vectors) {
            let Some(meaning) = projected(&vector) else { continue };
            let meaning = code(&meaning);
            let hash = meaning.iter().fold(RowHash::new(Hashed::Row, self.round), |hash, x| hash.word(*x as u64));
            self.digest.add(hash.words(u64::from(author) << 8 | u64::from(EMBEDDED), u64::from(post)).finish());
            self.embeddings.insert(post, meaning);
            first = first.min(post);
        }
        for post in first.max(self.live.first)..self.asked {
            if self.embeddings.contains_key(&self.posts[post as usize].origin) {
                self.reenter(post);
            }
        }
        first < self.asked
    }

    /// Gives a candidate its vector anew.
    fn reenter(&mut self, post: u32) {
        let (topic, vector) = (self.posts[post as usize].topic, self.vector(post));
        let ring = self.live.codes.len().max(1);
        if let Some(place) = self.live.codes.get_mut(post as usize % ring) {
            *place = code(&vector);
        }
        if let Some(topic) = self.live.by_topic.get_mut(usize::from(topic)) {
            topic.replace(post, &coarse(&vector));
        }
    }

    /// Finds anew what follows from the posts.
    pub fn index(&mut self, live: u32, wording: f32) {
        let n = self.posts.len() as u32;
        let ring = live as usize;
        self.live = Live {
            first: n.saturating_sub(live),
            wording,
            codes: vec![NONE; ring],
            by_topic: vec![Topic::default(); TOPICS],
            ..Live::default()
        };
        for post in self.live.first..n {
            self.enter(post, ring);
        }
    }

    /// Keeps from now on who engaged with what, if that is wanted.
    pub fn keep_fans(&mut self, wanted: bool) {
        let live = self.live.first..self.posts.len() as u32;
        self.fans = wanted.then(|| Fans::kept(self.fans.take(), &self.people, live));
    }

    /// Makes a post a candidate, in the place of the oldest.
    fn enter(&mut self, post: u32, ring: usize) {
        let (topic, vector) = (self.posts[post as usize].topic, self.vector(post));
        if let Some(place) = self.live.codes.get_mut(post as usize % ring) {
            *place = code(&vector);
        }
        let live = &mut self.live;
        live.first = (post + 1).saturating_sub(ring as u32);
        live.touched.push(post);
        if let Some(topic) = live.by_topic.get_mut(usize::from(topic)) {
            topic.push(post, &coarse(&vector), live.first);
        }
    }

    fn add(&mut self, new: &New<'_>, live: u32) -> u32 {
        let post = self.posts.len() as u32;
        let (origin, root, depth) = match new.of.map(|(of, shows)| (self.posts[of as usize], shows)) {
            None => (post, post, 0),
            Some((of, shows)) => (if shows { of.origin } else { post }, of.root, of.depth.saturating_add(1)),
        };
        let author = new.author as usize;
        let before = std::mem::replace(&mut self.people.latest[author], post);
        self.posts.push(Post {
            author: new.author,
            origin,
            root,
            of: new.of.map_or(NOWHERE, |(of, _)| of),
            round: self.round,
            before,
            likes: 0,
            dislikes: 0,
            shares: 0,
            seed: new.seed,
            stance: new.stance,
            depth,
            topic: new.topic,
            hot: 0.0,
        });
        if let Some(words) = new.text.and_then(kept) {
            self.words.insert(post, words);
        }
        self.people.posts[author] += 1;
        if new.seed > 0 {
            self.cascade.posts.push(post);
        }
        if new.seed > 0 && self.cascade.users.insert((new.seed, new.author)) {
            let depth = usize::from(depth);
            self.cascade.at.resize(self.cascade.at.len().max(depth + 1), 0);
            self.cascade.at[depth] += 1;
        }
        if !self.live.codes.is_empty() {
            self.enter(post, live as usize);
        }
        if let Some(fans) = &mut self.fans {
            fans.fit(self.live.first..post + 1);
        }
        post
    }

    /// A post from outside.
    pub fn sow(&mut self, seed: &Seed, number: u32, live: u32) {
        let &Seed { author, stance, topic, score, .. } = seed;
        let new = New { author, topic, stance, of: None, seed: number, text: seed.text.as_deref() };
        let post = self.add(&new, live) as usize;
        let votes = score.unsigned_abs();
        if score > 0 {
            self.posts[post].likes = votes
        } else {
            self.posts[post].dislikes = votes
        }
        self.note(u8::MAX, author, post as u64, f64::from(score));
    }

    /// Does what somebody did; what names nobody and nothing is counted as refused.
    pub fn apply<N: Iterator<Item = u32>>(
        &mut self,
        kind: Kind,
        did: &Did<'_>,
        params: &Params,
        follows: &mut dyn FnMut() -> N,
    ) {
        let done = match kind {
            Kind::Post => self.write(did, params),
            Kind::Share | Kind::Quote | Kind::Comment => self.answer(kind, did, params),
            Kind::Like | Kind::Dislike | Kind::Report => self.react(kind, did, params),
            Kind::Follow | Kind::Unfollow | Kind::Mute => self.tie(kind, did, follows),
            Kind::Search | Kind::Join | Kind::Leave => self.turn_to(kind, did),
            Kind::Think => {
                let fits = (-1.0..=1.0).contains(&did.value);
                if fits {
                    self.people.stance[did.who as usize] = did.value as f32;
                }
                fits.then_some(())
            }
        };
        match done {
            Some(()) => self.note(kind as u8, did.who, self.posts.len() as u64, did.value),
            None => self.now.refused += 1,
        }
    }

    /// The words of a post.
    pub fn words(&self, post: u32) -> Option<&str> {
        self.words.get(&post).map(String::as_str)
    }

    /// What a post and its newest comments say, for readers of words; `None` where nobody has said anything.
    pub fn text(&self, post: u32) -> Option<String> {
        if self.words.is_empty() && self.said.is_empty() {
            return None;
        }
        let row = self.posts.get(post as usize)?;
        let quoted = self.posts.get(row.of as usize).filter(|_| row.origin == post);
        let own = self.words(row.origin).map(str::to_owned);
        let of = quoted.and_then(|of| self.words(of.origin).map(|words| format!("(on user {}: {words})", of.author)));
        let said = self.said.get(&row.origin).into_iter().flatten();
        let said = said.map(|(who, words)| format!("User {who} comments: {words}"));
        let lines: Vec<String> = own.into_iter().chain(of).chain(said).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Notes who dealt with which post.
    fn met(&mut self, kind: Kind, did: &Did<'_>, post: u32, params: &Params) {
        if params.influence {
            self.influence.push((did.who, kind, post));
        }
    }

    /// Posts of the round that has ended.
    pub fn of_last_round(&self) -> Range<usize> {
        let (now, n) = (self.round, self.posts.len());
        let first = |round: u32| self.posts.partition_point(|post| post.round < round);
        // What stood there before the first round belongs to it.
        (if now <= 1 { 0 } else { first(now - 1) })..if now == 0 { n } else { first(now) }
    }

    fn write(&mut self, did: &Did<'_>, params: &Params) -> Option<()> {
        let author = did.who;
        // What it is about is a draw by its author's interests.
        let mut draws = Draws::new(self.seed, Stream::World, self.round, author);
        let (_, topic) = (draws.unit(), self.topic_of(author, &mut draws));
        let stance = self.people.stance[author as usize];
        self.add(&New { author, topic, stance, of: None, seed: 0, text: did.text }, params.live);
        self.now.posts += 1;
        Some(())
    }

    fn topic_of(&self, who: u32, draws: &mut Draws) -> u8 {
        let weights: Vec<f64> = self.people.interests(who).iter().map(|x| f64::from(x.max(0.0)).powi(2)).collect();
        draws.weighted(&weights).unwrap_or(0) as u8
    }

    /// A post, by its number, that is somebody else's.
    fn other(&self, did: &Did<'_>) -> Option<usize> {
        let post = named(did.value, self.posts.len())? as usize;
        (self.posts[post].author != did.who).then_some(post)
    }

    fn engages(&mut self, did: &Did<'_>, origin: usize, params: &Params) {
        let author = self.posts[origin].author as usize;
        self.people.attention[author] += 1;
        self.now.distance += f64::from((self.people.stance[did.who as usize] - self.posts[origin].stance).abs());
        self.now.engaged += 1;
        if let Some(fans) = &mut self.fans {
            fans.add(origin as u32, did.who);
        }
        if params.learning > 0.0 && origin as u32 >= self.live.first {
            let vector = decode(self.code(origin as u32));
            self.people.learns(did.who, &vector, params.learning);
        }
    }

    fn answer(&mut self, kind: Kind, did: &Did<'_>, params: &Params) -> Option<()> {
        let mut of = self.other(did)?;
        let origin = self.posts[of].origin as usize;
        self.engages(did, origin, params);
        self.met(kind, did, of as u32, params);
        self.people.dealt_with(did.who, origin as u32, true);
        let share = kind == Kind::Share;
        let stance = if share { self.posts[origin].stance } else { self.people.stance[did.who as usize] };
        if kind == Kind::Comment {
            self.now.comments += 1;
            if let Some(words) = did.text.and_then(kept) {
                let said = self.said.entry(origin as u32).or_default();
                said.push_back((did.who, words));
                said.drain(..said.len().saturating_sub(COMMENTS));
            }
            return Some(());
        }
        self.posts[origin].shares += 1;
        self.now.shares += 1;
        // A draw of each user and post.
        let number = self.seed ^ (origin as u64) << 32;
        if params.credit > 0.0 && Draws::new(number, Stream::World, self.round, did.who).chance(params.credit) {
            of = origin;
        }
        let (topic, seed) = (self.posts[origin].topic, self.posts[of].seed);
        let text = did.text.filter(|_| !share);
        self.add(&New { author: did.who, topic, stance, of: Some((of as u32, share)), seed, text }, params.live);
        Some(())
    }

    fn react(&mut self, kind: Kind, did: &Did<'_>, params: &Params) -> Option<()> {
        let post = self.other(did)?;
        let origin = self.posts[post].origin as usize;
        self.met(kind, did, post as u32, params);
        self.people.dealt_with(did.who, origin as u32, kind == Kind::Like);
        if kind != Kind::Report {
            self.live.touched.push(origin as u32);
        }
        let Post { seed, root, .. } = self.posts[origin];
        let of_seed = i64::from(seed > 0 && root as usize == origin);
        match kind {
            Kind::Like => {
                self.posts[origin].likes += 1;
                self.now.likes += 1;
                self.cascade.score += of_seed;
                self.engages(did, origin, params);
            }
            Kind::Dislike => {
                self.posts[origin].dislikes += 1;
                self.now.dislikes += 1;
                self.cascade.score -= of_seed;
                let author = self.posts[origin].author as usize;
                self.people.attention[author] += 1;
            }
            _ => {}
        }
        Some(())
    }

    fn tie<N: Iterator<Item = u32>>(
        &mut self,
        kind: Kind,
        did: &Did<'_>,
        follows: &mut dyn FnMut() -> N,
    ) -> Option<()> {
        let whom = named(did.value, self.people.stance.len()).filter(|whom| *whom != did.who)?;
        let of_graph = follows().any(|followed| followed == whom);
        let has = |ties: &BTreeMap<u32, Vec<u32>>| ties.get(&did.who).is_some_and(|of| of.binary_search(&whom).is_ok());
        let people = &mut self.people;
        let does = has(&people.more) || of_graph && !has(&people.fewer);
        match kind {
            Kind::Follow if !does => {
                if of_graph {
                    cut(&mut people.fewer, did.who, whom)
                } else {
                    tied(&mut people.more, did.who, whom)
                }
                people.followers[whom as usize] += 1;
                self.now.follows += 1;
            }
            Kind::Unfollow if does => {
                if of_graph {
                    tied(&mut people.fewer, did.who, whom)
                } else {
                    cut(&mut people.more, did.who, whom)
                }
                people.followers[whom as usize] -= 1;
                self.now.follows -= 1;
            }
            Kind::Mute => tied(&mut people.muted, did.who, whom),
            // Once is enough.
            _ => {}
        }
        Some(())
    }

    fn turn_to(&mut self, kind: Kind, did: &Did<'_>) -> Option<()> {
        let topic = named(did.value, TOPICS)?;
        let groups = &mut self.people.groups[did.who as usize];
        match kind {
            Kind::Join => *groups |= 1 << topic,
            Kind::Leave => *groups &= !(1 << topic),
            _ => drop(self.people.query.insert(did.who, topic as u8)),
        }
        Some(())
    }

    pub fn end_round(&mut self, active: u32) {
        self.now.active = active;
        self.last = std::mem::take(&mut self.now);
        self.note(u8::MAX - 1, active, self.posts.len() as u64, self.last.distance);
        self.round += 1;
        self.influenced = std::mem::take(&mut self.influence);
        self.exposed = std::mem::take(&mut self.coming);
    }

    /// A scalar, in the order of the interface.
    pub fn scalar(&self, i: usize) -> f64 {
        let last = &self.last;
        let of = f64::from;
        match i {
            0 => of(last.active),
            1 => of(last.posts),
            2 => of(last.shares),
            3 => of(last.comments),
            4 => of(last.likes),
            5 => of(last.dislikes),
            6 => f64::from(last.follows),
            7 => of(last.refused),
            8 => last.distance / f64::from(last.engaged.max(1)),
            9 => self.cascade.users.len() as f64,
            10 => self.cascade.at.len().saturating_sub(1) as f64,
            11 => of(self.cascade.at.get(1..).unwrap_or_default().iter().copied().max().unwrap_or(0)),
            12 => self.cascade.virality(&self.posts),
            _ => self.cascade.score as f64,
        }
    }
}

/// What is kept of words; `None` where there are none.
fn kept(text: &str) -> Option<String> {
    // Control characters would be orders to a terminal; those that turn the direction of writing make text look like another.
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let kept: String = text.chars().filter(|c| *c == '\n' || !c.is_control() && !turns(*c)).take(LONGEST).collect();
    (!kept.trim().is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::super::vectors::dot;
    use super::*;

    #[test]
    fn embeddings_that_come_late_are_found_as_if_they_had_always_been_there() {
        const LIVE: u32 = 40;
        let mut store = Store::new(9, 1);
        (0..9).for_each(|who| store.people.join(0.0, 1.0, 0, &mut Draws::new(1, Stream::Seat, 0, who)));
        store.index(LIVE, 0.5);
        let texts = ["close the library", "shut the reading room", "a dog barks", "reading rooms, shut for ever"];
        let add = |store: &mut Store, i: u32| {
            let text = (i % 3 != 2).then(|| texts[i as usize % 4]);
            // Some share what stands before them.
            let of = (i % 7 == 6).then(|| (i - 2, true));
            let text = text.filter(|_| of.is_none());
            store.add(&New { author: i % 9, topic: (i % 5) as u8, stance: 0.0, of, seed: 0, text }, LIVE);
        };
        (0..100).for_each(|i| add(&mut store, i));
        let asked: Vec<u32> = store.unembedded().map(|(post, ..)| post).collect();
        assert!(asked.len() > 10 && asked.iter().all(|post| (60..100).contains(post)), "{asked:?}");
        // Of libraries the model knows one meaning, of the rest another; once it knows none.
        let (digest, meanings) =
            (store.digest, |text: &str| if text.contains("dog") { [1.0, 0.0] } else { [0.0, 1.0] });
        let vectors: Vec<Vec<f32>> = store.unembedded().map(|(.., text)| meanings(text).to_vec()).collect();
        let none = vectors.iter().enumerate().map(|(i, vector)| if i == 3 { Vec::new() } else { vector.clone() });
        assert!(store.embed(none.collect()) && store.digest != digest);
        assert_eq!((store.unembedded().count(), store.embeddings.len()), (0, asked.len() - 1));
        for i in 100..110 {
            add(&mut store, i);
        }
        assert!(store.unembedded().all(|(post, ..)| post >= 100) && store.unembedded().count() > 0);
        let mut anew = store.clone();
        anew.index(LIVE, 0.5);
        for post in store.live.first..110 {
            assert_eq!(store.code(post), anew.code(post), "{post}");
        }
        let columns = |store: &Store| -> Vec<Vec<i16>> {
            let of_topic = |topic: &Topic| {
                topic.products(&coarse(&around(3, &mut Draws::new(5, Stream::World, 0, 0))), topic.live(70).len())
            };
            store.live.by_topic.iter().map(of_topic).collect()
        };
        assert_eq!(columns(&store), columns(&anew));
        // Other words, the same meaning, the same topic; and a meaning of its own.
        let words = |post: &u32| store.words(*post).unwrap_or_default();
        let of = |text: &str| asked.iter().copied().find(|post| words(post) == text && *post != asked[3]).unwrap();
        let part = |post: u32| {
            let mut vector = store.vector(post);
            let topic = around(store.posts[post as usize].topic, &mut Draws::new(1, Stream::Seat, 1, post));
            vector.iter_mut().zip(topic).for_each(|(x, topic)| *x -= 0.5 * topic);
            unit(&mut vector);
            vector
        };
        let (close, shut, dog) = (part(of(texts[0])), part(of(texts[1])), part(of(texts[2])));
        let (alike, other) = (dot(&close, &shut), dot(&close, &dog));
        assert!(alike > 0.9 && alike > other + 0.3, "{alike} {other}");
        // Another model is asked for all live ones anew, none for nothing.
        let mut other = store.clone();
        other.embed_by(Some("b"));
        assert_eq!(
            (other.embeddings.len(), other.unembedded().next().map(|(post, ..)| post >= other.live.first)),
            (0, Some(true))
        );
        assert!(other.unembedded().count() > store.unembedded().count());
        other.embed_by(None);
        other.index(LIVE, 0.5);
        assert!((other.live.first..110).any(|post| other.code(post) != store.code(post)));
        // With nothing learnt nothing changes.
        let digest = store.digest;
        assert!(!store.embed(Vec::new()) && store.digest == digest);
    }

    #[test]
    fn virality_is_the_mean_way_between_two_posts() {
        let mut store = Store::new(9, 1);
        (0..9).for_each(|who| store.people.join(0.0, 1.0, 0, &mut Draws::new(1, Stream::Seat, 0, who)));
        let mut share = |author: u32, of: Option<u32>| {
            let of = of.map(|of| (of, true));
            store.add(&New { author, topic: 0, stance: 0.0, of, seed: 1, text: None }, 10)
        };
        // A star of four: three pairs at one step, three at two.
        let root = share(0, None);
        for who in 1..4 {
            share(who, Some(root));
        }
        let star = store.scalar(12);
        assert!((star - 1.5).abs() < 1e-12, "{star}");
        // A second tree, a chain of three: two pairs at one step, one at two.
        let mut share = |author: u32, of: Option<u32>| {
            let of = of.map(|of| (of, true));
            store.add(&New { author, topic: 0, stance: 0.0, of, seed: 2, text: None }, 10)
        };
        let root = share(4, None);
        let next = share(5, Some(root));
        share(6, Some(next));
        let both = store.scalar(12);
        assert!((both - (3.0 + 6.0 + 2.0 + 2.0) / 9.0).abs() < 1e-12, "{both}");
        assert_eq!(Store::new(1, 1).scalar(12), 0.0);
    }
}
