//! The state of the platform, in columns: people, posts, ties, and the round's actions.

use super::cascade::Cascade;
use super::exposed::Exposed;
use super::fans::Fans;
use super::near::Near;
use super::params::{Params, Seed};
use super::people::{People, Ties, add_tie, remove_tie, ties_of};
use super::posts::{Post, Posts};
use super::vectors::{Coarse, Code, NONE, TOPICS, Vector, around, coarse, code, decode, hashed, projected, unit};
use polity_kernel::digest::DigestMap;
use polity_kernel::interface::{ActionArgument, named};
use polity_kernel::rng::{Draws, Stream};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Range;

/// Maximum characters kept of a post.
const LONGEST: usize = 5_000;
/// Number of comments with words kept per post: the newest.
const COMMENTS: usize = 3;

/// Kinds of actions.
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

    /// Returns its name, argument and effect.
    pub fn action(self) -> (&'static str, ActionArgument, &'static str) {
        let seen = |column: &'static str, words, only: Option<bool>| ActionArgument::Seen {
            table: "feed".into(),
            column: column.into(),
            words,
            only: only.map(|followed| ("followed".into(), f64::from(u8::from(followed)))),
        };
        let (post, user) = (|words| seen("post", words, None), |followed| seen("author", false, followed));
        let topic = || ActionArgument::Choice((0..TOPICS).map(|topic| topic.to_string()).collect());
        match self {
            Kind::Post => ("post", ActionArgument::Text, "write a post; without words it says what its author thinks"),
            Kind::Share => ("share", post(false), "pass a post on to one's followers"),
            Kind::Quote => ("quote", post(true), "pass it on with words of one's own: its stance is the author's"),
            Kind::Comment => ("comment", post(true), "write below it"),
            Kind::Like => ("like", post(false), "like it"),
            Kind::Dislike => ("dislike", post(false), "dislike it"),
            Kind::Report => ("report", post(false), "report it; counted, and nothing else"),
            Kind::Follow => ("follow", user(Some(false)), "follow a user"),
            Kind::Unfollow => ("unfollow", user(Some(true)), "follow a user no longer"),
            Kind::Mute => ("mute", user(None), "see nothing of a user any more"),
            Kind::Search => ("search", topic(), "look for a topic: its newest posts are candidates of the next feed"),
            Kind::Join => ("join", topic(), "join the community of a topic"),
            Kind::Leave => ("leave", topic(), "leave it"),
            Kind::Think => ("think", ActionArgument::Number { low: -1.0, high: 1.0 }, "change one's stance"),
        }
    }
}

/// An action of a user.
pub struct Did<'a> {
    pub who: u32,
    pub value: f64,
    pub text: Option<&'a str>,
}

/// A post to be added.
struct New<'a> {
    author: u32,
    topic: u8,
    stance: f32,
    /// The post that it shares, quotes or comments on, and whether it shows its content.
    of: Option<(u32, bool)>,
    seed: u32,
    /// Its words, unchanged.
    text: Option<&'a str>,
}

/// Counts of a round's actions.
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
    /// Their vectors, a column per component: a whole topic is multiplied at once.
    columns: Vec<Vec<i16>>,
    /// Number of posts at the beginning that are no longer live.
    gone: usize,
}

impl Topic {
    /// Adds the newest post; those before `first` are gone.
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

    /// Changes the vector of a post.
    fn replace(&mut self, post: u32, code: &Coarse) {
        if let Ok(place) = self.posts.binary_search(&post) {
            self.columns.iter_mut().zip(code).for_each(|(column, x)| column[place] = *x);
        }
    }

    /// Returns the posts that are not before `first`.
    pub fn live(&self, first: u32) -> &[u32] {
        let start = self.gone + self.posts[self.gone..].partition_point(|post| *post < first);
        &self.posts[start..]
    }

    /// Returns the products of a vector with those of the newest `most` posts, in the order of the posts.
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

/// Adds to each sum the products of some components with those at its position in as many columns. A separate function without a branch,
/// which compilers vectorise to eight posts per step.
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

/// Candidates, derived from the posts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// The oldest post that is a candidate.
    pub first: u32,
    /// Weight of the words in a post's vector.
    wording: f32,
    /// Vectors of live posts, as a ring by number of the post.
    codes: Vec<Code>,
    /// Live posts by topic.
    pub by_topic: Vec<Topic>,
    /// Recency by age in rounds.
    pub recent: Vec<f64>,
    /// The hottest posts, best first.
    pub hot: Vec<u32>,
    /// Minutes per round and length for which the hottest were found; `None`: they were not.
    pub found_for: Option<(f64, u32)>,
    /// Posts that came or were voted on since then.
    pub touched: Vec<u32>,
    /// The nearest posts for the readers of the next round; valid until the next action.
    pub near: Near,
}

/// The mutable state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Store {
    pub seed: u64,
    pub round: u32,
    pub people: People,
    pub posts: Posts,
    /// The words of posts that have some.
    words: DigestMap<u32, String>,
    /// Vectors of words from a model, coded, by post.
    embeddings: DigestMap<u32, Code>,
    /// The model, and the first post for whose words it has not been asked yet.
    embedder: Option<String>,
    asked: u32,
    /// The newest comments with words, by the post they belong to: (who, words).
    said: DigestMap<u32, VecDeque<(u32, String)>>,
    /// Who engaged with what, if feeds use it.
    pub fans: Option<Fans>,
    cascade: Cascade,
    now: Done,
    last: Done,
    #[serde(skip)]
    pub live: Live,
    /// Reactions of the round: (who, kind of act, post), if recorded; and of the previous round.
    #[serde(skip)]
    influence: Vec<(u32, Kind, u32)>,
    #[serde(skip)]
    pub influenced: Vec<(u32, Kind, u32)>,
    /// Stances in the feeds of the current round and of the previous one, if measured. The first follows from the rest; the second is
    /// read before it could be lost.
    #[serde(skip)]
    pub coming: Exposed,
    #[serde(skip)]
    pub exposed: Exposed,
}

impl Store {
    pub fn new(agents: u32, seed: u64) -> Self {
        Store { seed, people: People::with_room(agents as usize), ..Store::default() }
    }

    /// Returns the vector of a live post, coded.
    pub fn code(&self, post: u32) -> &Code {
        let ring = self.live.codes.len().max(1);
        self.live.codes.get(post as usize % ring).unwrap_or(&NONE)
    }

    /// Returns the vector of a post: of its topic, and in part of its words. A share has the vector of its original.
    pub fn vector(&self, post: u32) -> Vector {
        let Post { origin, topic, .. } = self.posts[post];
        let mut vector = around(topic, &mut Draws::new(self.seed, Stream::Seat, 1, origin));
        if let Some(words) = self.words.get(&origin).filter(|_| self.live.wording > 0.0) {
            let (part, meaning) = (self.live.wording, self.embeddings.get(&origin).map(decode));
            let words = meaning.unwrap_or_else(|| hashed(words));
            vector.iter_mut().zip(words).for_each(|(x, word)| *x += part * (word - *x));
            unit(&mut vector);
        }
        vector
    }

    /// Sets the model that embeds words from now on. The vectors of another model are dropped, since they are not comparable.
    pub fn embed_by(&mut self, model: Option<&str>) {
        if self.embedder.as_deref() != model {
            self.embedder = model.map(str::to_owned);
            self.embeddings.clear();
            self.asked = 0;
        }
    }

    /// Returns the live posts with words for which no model has been asked yet: number, author, words.
    pub fn unembedded(&self) -> impl Iterator<Item = (u32, u32, &str)> {
        let words = self.words.range(self.asked.max(self.live.first)..);
        words.filter_map(|(post, words)| Some((*post, self.posts.get(*post)?.author, words.as_str())))
    }

    /// Stores a model's vectors of all of these, in order; empty ones are skipped. Returns whether any vector has changed.
    pub fn embed(&mut self, vectors: Vec<Vec<f32>>) -> bool {
        let posts: Vec<u32> = self.unembedded().map(|(post, ..)| post).collect();
        self.asked = self.posts.end();
        let mut first = self.asked;
        for (post, vector) in posts.into_iter().zip(vectors) {
            let Some(meaning) = projected(&vector) else { continue };
            self.embeddings.insert(post, code(&meaning));
            first = first.min(post);
        }
        for post in first.max(self.live.first)..self.asked {
            if self.embeddings.contains_key(&self.posts[post].origin) {
                self.reenter(post);
            }
        }
        first < self.asked
    }

    /// Updates the vector of a candidate.
    fn reenter(&mut self, post: u32) {
        let (topic, vector) = (self.posts[post].topic, self.vector(post));
        let ring = self.live.codes.len().max(1);
        if let Some(place) = self.live.codes.get_mut(post as usize % ring) {
            *place = code(&vector);
        }
        if let Some(topic) = self.live.by_topic.get_mut(usize::from(topic)) {
            topic.replace(post, &coarse(&vector));
        }
    }

    /// Rebuilds the indexes. Posts that feeds could no longer show stay out, even if more may be live now.
    pub fn index(&mut self, live: u32, wording: f32) {
        self.posts.find_old();
        let n = self.posts.end();
        let ring = live as usize;
        self.live = Live {
            first: n.saturating_sub(live).max(self.posts.oldest()),
            wording,
            codes: vec![NONE; ring],
            by_topic: vec![Topic::default(); TOPICS],
            ..Live::default()
        };
        for post in self.live.first..n {
            self.enter(post, ring);
        }
        self.posts.show_from(self.live.first);
    }

    /// Records who engaged with what from now on, if requested.
    pub fn keep_fans(&mut self, wanted: bool) {
        let live = self.live.first..self.posts.end();
        let ring = self.live.codes.len() as u32;
        self.fans = wanted.then(|| Fans::kept(self.fans.take(), &self.people, live, ring));
    }

    /// Makes a post a candidate, in the place of the oldest.
    fn enter(&mut self, post: u32, ring: usize) {
        let (topic, vector) = (self.posts[post].topic, self.vector(post));
        if let Some(place) = self.live.codes.get_mut(post as usize % ring) {
            *place = code(&vector);
        }
        let live = &mut self.live;
        live.first = (post + 1).saturating_sub(ring as u32).max(self.posts.oldest());
        live.touched.push(post);
        if let Some(topic) = live.by_topic.get_mut(usize::from(topic)) {
            topic.push(post, &coarse(&vector), live.first);
        }
    }

    fn add(&mut self, new: &New<'_>, live: u32) -> u32 {
        let (post, author) = (self.posts.end(), new.author as usize);
        let before = self.people.latest.set(author, post);
        let mut row = Post::new(&self.posts, new.author, new.of);
        let New { seed, stance, topic, .. } = *new;
        (row.round, row.before, row.seed, row.stance, row.topic) = (self.round, before, seed, stance, topic);
        self.posts.push(row);
        if let Some(words) = new.text.and_then(kept) {
            self.words.insert(post, words);
        }
        self.people.posts.change(author, |posts| *posts += 1);
        if seed > 0 {
            self.cascade.add(post, (seed, new.author), (row.of, row.depth));
        }
        if !self.live.codes.is_empty() {
            self.enter(post, live as usize);
        }
        if let Some(fans) = &mut self.fans {
            fans.fit(self.live.first..post + 1);
        }
        post
    }

    /// Adds a post from outside.
    pub fn sow(&mut self, seed: &Seed, number: u32, live: u32) {
        let &Seed { author, stance, topic, score, .. } = seed;
        let new = New { author, topic, stance, of: None, seed: number, text: seed.text.as_deref() };
        let post = self.add(&new, live);
        let votes = score.unsigned_abs();
        self.posts.change_origin_of(post, |row| if score > 0 { row.likes = votes } else { row.dislikes = votes });
    }

    /// Performs a user's action; an action with an invalid target is counted as refused.
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
                    self.people.stance.set(did.who as usize, did.value as f32);
                }
                fits.then_some(())
            }
        };
        if done.is_none() {
            self.now.refused += 1;
        }
    }

    /// Returns the words of a post.
    pub fn words(&self, post: u32) -> Option<&str> {
        self.words.get(&post).map(String::as_str)
    }

    /// Returns the text of a post and its newest comments, for readers of words; `None` without any words.
    pub fn text(&self, post: u32) -> Option<String> {
        if self.words.is_empty() && self.said.is_empty() {
            return None;
        }
        let row = self.posts.get(post)?;
        let quoted = self.posts.get(row.of).filter(|_| row.origin == post);
        let own = self.words(row.origin).map(str::to_owned);
        let of = quoted.and_then(|of| self.words(of.origin).map(|words| format!("(on user {}: {words})", of.author)));
        let said = self.said.get(&row.origin).into_iter().flatten();
        let said = said.map(|(who, words)| format!("User {who} comments: {words}"));
        let lines: Vec<String> = own.into_iter().chain(of).chain(said).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Records a reaction to a post.
    fn met(&mut self, kind: Kind, did: &Did<'_>, post: u32, params: &Params) {
        if params.influence {
            self.influence.push((did.who, kind, post));
        }
    }

    /// Returns the posts of the round that has ended.
    pub fn of_last_round(&self) -> Range<u32> {
        let (now, first) = (self.round, |round: u32| self.posts.first_of_round(round));
        // Posts from before the first round belong to it.
        (if now <= 1 { 0 } else { first(now - 1) })..if now == 0 { self.posts.end() } else { first(now) }
    }

    /// Drops posts, with words and comments, that can no longer affect a result: no act can name them, and no post that can be named
    /// shows or quotes them.
    pub fn forget(&mut self) {
        if !self.posts.forget(self.posts.oldest().min(self.of_last_round().start)) {
            return;
        }
        let is_read = self.posts.still_shown();
        self.words.retain(|post, _| is_read(*post));
        self.said.retain(|post, _| is_read(*post));
        self.embeddings.retain(|post, _| is_read(*post));
        self.cascade.forget(self.posts.first());
    }

    fn write(&mut self, did: &Did<'_>, params: &Params) -> Option<()> {
        let author = did.who;
        // Its topic is drawn by its author's interests.
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

    /// Returns a post, by its number, if it is somebody else's and can have been seen.
    fn other(&self, did: &Did<'_>) -> Option<u32> {
        let post = named(did.value, self.posts.end() as usize)?;
        (post >= self.posts.oldest() && self.posts[post].author != did.who).then_some(post)
    }

    /// Counts one more reaction to an author.
    fn draws_attention(&mut self, shown: &Post) {
        self.people.attention.change(shown.author as usize, |attention| *attention += 1);
    }

    /// Records engagement with the content of a post.
    fn engages(&mut self, did: &Did<'_>, shown: &Post, params: &Params) {
        self.draws_attention(shown);
        self.now.distance += f64::from((self.people.stance[did.who as usize] - shown.stance).abs());
        self.now.engaged += 1;
        if let Some(fans) = &mut self.fans {
            fans.add(shown.origin, did.who);
        }
        if params.learning > 0.0 && shown.origin >= self.live.first {
            let vector = decode(self.code(shown.origin));
            self.people.learns(did.who, &vector, params.learning);
        }
    }

    fn answer(&mut self, kind: Kind, did: &Did<'_>, params: &Params) -> Option<()> {
        let mut of = self.other(did)?;
        let shown = *self.posts.origin_of(&self.posts[of]);
        let origin = shown.origin;
        self.engages(did, &shown, params);
        self.met(kind, did, of, params);
        self.people.dealt_with(did.who, origin, true);
        let share = kind == Kind::Share;
        let stance = if share { shown.stance } else { self.people.stance[did.who as usize] };
        if kind == Kind::Comment {
            self.now.comments += 1;
            if let Some(words) = did.text.and_then(kept) {
                self.said.change_or_insert(origin, |said| {
                    said.push_back((did.who, words));
                    said.drain(..said.len().saturating_sub(COMMENTS));
                });
            }
            return Some(());
        }
        self.posts.change_origin_of(of, |post| post.shares += 1);
        self.now.shares += 1;
        // A draw per user and post.
        let number = self.seed ^ u64::from(origin) << 32;
        if params.credit > 0.0 && Draws::new(number, Stream::World, self.round, did.who).chance(params.credit) {
            of = origin;
        }
        let seed = self.posts.get(of).map_or(0, |post| post.seed);
        let text = did.text.filter(|_| !share);
        let new = New { author: did.who, topic: shown.topic, stance, of: Some((of, share)), seed, text };
        self.add(&new, params.live);
        Some(())
    }

    fn react(&mut self, kind: Kind, did: &Did<'_>, params: &Params) -> Option<()> {
        let post = self.other(did)?;
        let shown = *self.posts.origin_of(&self.posts[post]);
        self.met(kind, did, post, params);
        self.people.dealt_with(did.who, shown.origin, kind == Kind::Like);
        if kind != Kind::Report {
            self.live.touched.push(shown.origin);
        }
        let of_seed = i64::from(shown.seed > 0 && shown.root == shown.origin);
        match kind {
            Kind::Like => {
                self.posts.change_origin_of(post, |post| post.likes += 1);
                self.now.likes += 1;
                self.cascade.score += of_seed;
                self.engages(did, &shown, params);
            }
            Kind::Dislike => {
                self.posts.change_origin_of(post, |post| post.dislikes += 1);
                self.now.dislikes += 1;
                self.cascade.score -= of_seed;
                self.draws_attention(&shown);
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
        let has = |ties: &Ties| ties_of(ties, did.who).binary_search(&whom).is_ok();
        let people = &mut self.people;
        let does = has(&people.more) || of_graph && !has(&people.fewer);
        match kind {
            Kind::Follow if !does => {
                if of_graph {
                    remove_tie(&mut people.fewer, did.who, whom)
                } else {
                    add_tie(&mut people.more, did.who, whom)
                }
                people.followers.change(whom as usize, |followers| *followers += 1);
                self.now.follows += 1;
            }
            Kind::Unfollow if does => {
                if of_graph {
                    add_tie(&mut people.fewer, did.who, whom)
                } else {
                    remove_tie(&mut people.more, did.who, whom)
                }
                people.followers.change(whom as usize, |followers| *followers -= 1);
                self.now.follows -= 1;
            }
            Kind::Mute => add_tie(&mut people.muted, did.who, whom),
            // A repeated action has no effect.
            _ => {}
        }
        Some(())
    }

    fn turn_to(&mut self, kind: Kind, did: &Did<'_>) -> Option<()> {
        let topic = named(did.value, TOPICS)?;
        let (who, people) = (did.who as usize, &mut self.people);
        match kind {
            Kind::Join => people.groups.change(who, |groups| *groups |= 1 << topic),
            Kind::Leave => people.groups.change(who, |groups| *groups &= !(1 << topic)),
            _ => drop(people.query.insert(did.who, topic as u8)),
        }
        Some(())
    }

    pub fn end_round(&mut self, active: u32) {
        self.now.active = active;
        self.last = std::mem::take(&mut self.now);
        self.round += 1;
        self.influenced = std::mem::take(&mut self.influence);
        self.exposed = std::mem::take(&mut self.coming);
    }
}

/// A number per round: its name, its description, and its source.
type Scalar = (&'static str, &'static str, fn(&Store) -> f64);

/// Numbers of every round.
pub const SCALARS: [Scalar; 14] = [
    ("active", "agents that looked at their feed in the round", |store| f64::from(store.last.active)),
    ("posts", "posts written in the round", |store| f64::from(store.last.posts)),
    ("shares", "posts shared or quoted in the round", |store| f64::from(store.last.shares)),
    ("comments", "comments written in the round", |store| f64::from(store.last.comments)),
    ("likes", "likes given in the round", |store| f64::from(store.last.likes)),
    ("dislikes", "dislikes given in the round", |store| f64::from(store.last.dislikes)),
    ("follows", "ties that were made in the round, minus those that were cut", |store| f64::from(store.last.follows)),
    ("refused", "acts in the round on posts or users that do not exist, or on the agent's own", |store| {
        f64::from(store.last.refused)
    }),
    (
        "distance",
        "mean difference in stance between a post and those who shared, liked or commented on it in the round",
        |store| store.last.distance / f64::from(store.last.engaged.max(1)),
    ),
    ("cascade-scale", "users who have shared a seed, including the authors of seeds", |store| {
        store.cascade.scale() as f64
    }),
    ("cascade-depth", "largest number of shares from a seed to one of its shares", |store| {
        store.cascade.depth() as f64
    }),
    ("cascade-breadth", "largest number of shares at one depth", |store| f64::from(store.cascade.breadth())),
    (
        "cascade-virality",
        "mean number of shares between two posts of a seed's cascade (structural virality)",
        |store| store.cascade.virality(),
    ),
    ("seed-score", "likes minus dislikes that seeds have received, without those that they began with", |store| {
        store.cascade.score as f64
    }),
];

/// Returns the kept part of words; `None` if there are none.
fn kept(text: &str) -> Option<String> {
    // Control characters would be commands to a terminal; direction marks make text look different.
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
            // Some share the post before them.
            let of = (i % 7 == 6).then(|| (i - 2, true));
            let text = text.filter(|_| of.is_none());
            store.add(&New { author: i % 9, topic: (i % 5) as u8, stance: 0.0, of, seed: 0, text }, LIVE);
        };
        (0..100).for_each(|i| add(&mut store, i));
        let asked: Vec<u32> = store.unembedded().map(|(post, ..)| post).collect();
        assert!(asked.len() > 10 && asked.iter().all(|post| (60..100).contains(post)), "{asked:?}");
        // The model knows one meaning for libraries, another for the rest; once it knows none.
        let digest = |store: &Store| store.embeddings.digest();
        let (before, meanings) =
            (digest(&store), |text: &str| if text.contains("dog") { [1.0, 0.0] } else { [0.0, 1.0] });
        let vectors: Vec<Vec<f32>> = store.unembedded().map(|(.., text)| meanings(text).to_vec()).collect();
        let none = vectors.iter().enumerate().map(|(i, vector)| if i == 3 { Vec::new() } else { vector.clone() });
        assert!(store.embed(none.collect()) && digest(&store) != before);
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
        // Other words, the same meaning, the same topic; and a different meaning.
        let words = |post: &u32| store.words(*post).unwrap_or_default();
        let of = |text: &str| asked.iter().copied().find(|post| words(post) == text && *post != asked[3]).unwrap();
        let part = |post: u32| {
            let mut vector = store.vector(post);
            let topic = around(store.posts[post].topic, &mut Draws::new(1, Stream::Seat, 1, post));
            vector.iter_mut().zip(topic).for_each(|(x, topic)| *x -= 0.5 * topic);
            unit(&mut vector);
            vector
        };
        let (close, shut, dog) = (part(of(texts[0])), part(of(texts[1])), part(of(texts[2])));
        let (alike, other) = (dot(&close, &shut), dot(&close, &dog));
        assert!(alike > 0.9 && alike > other + 0.3, "{alike} {other}");
        // Another model is asked for all live ones again, none for nothing.
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
        // Without an answer nothing changes.
        let before = digest(&store);
        assert!(!store.embed(Vec::new()) && digest(&store) == before);
    }

    #[test]
    fn what_is_in_memory_is_bounded_by_what_is_live() {
        const LIVE: u32 = 50;
        let params = Params { live: LIVE, candidates: 10, credit: 0.1, ..Params::default() };
        let mut store = Store::new(40, 3);
        (0..40).for_each(|who| store.people.join(0.0, 1.0, 0, &mut Draws::new(3, Stream::Seat, 0, who)));
        store.index(LIVE, 0.5);
        store.sow(&Seed { author: 0, text: Some("the seed".into()), ..Seed::default() }, 1, LIVE);
        let mut draws = Draws::new(3, Stream::Driver, 0, 0);
        let (mut most, mut lines, mut words, mut old) = (0, 0, 0, 0);
        for round in 0..400 {
            // Every post is a share or quote of one before it, and so on back to the seed; others comment on it.
            for _ in 0..20 {
                let kind = [Kind::Share, Kind::Quote, Kind::Comment][draws.below(3) as usize];
                let post = store.live.first + draws.below(u64::from(store.posts.end() - store.live.first)) as u32;
                let did = Did { who: draws.below(40) as u32, value: f64::from(post), text: Some("said") };
                store.apply(kind, &did, &params, &mut || std::iter::empty());
            }
            store.end_round(40);
            store.forget();
            store.posts.begin_round(store.live.first, 0);
            if round >= 20 {
                most = most.max(store.posts.held());
                let live = store.posts.rows(store.live.first..store.posts.end());
                let depth = live.iter().map(|post| usize::from(post.depth)).max().unwrap();
                lines = lines.max(store.cascade.held() - depth);
                words = words.max(store.words.len() + store.said.len());
                old += usize::from(store.posts.get(0).is_some());
            }
        }
        assert!(store.posts.end() > 4_000, "{}", store.posts.end());
        // At most twice the live posts, two rounds of new ones, and what these show or quote. Cascades also keep the path to the seed,
        // which is as long as the tree is deep.
        assert!(most < 6 * LIVE as usize && words < 6 * LIVE as usize, "{most} posts, {words} texts");
        assert!(lines < 8 * LIVE as usize, "{lines}");
        assert!(old > 0, "the seed itself is shown for long");
    }
}
