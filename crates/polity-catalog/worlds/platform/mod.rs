//! A social platform: people on a follow graph read ranked feeds, post and react. See README.md.

mod cascade;
mod collaborative;
mod feed;
mod people;
mod polarisation;
mod posts;
mod store;
mod tables;
mod vectors;

use feed::{Feeds, Weights};
use polarisation::Measure;
use polity_kernel::Invalid;
use polity_kernel::ask::{Message, Request, Role, Value, Want};
use polity_kernel::declare::DeclareWorld;
use polity_kernel::ladder::{Question, Settled};
use polity_kernel::policy::Person;
use polity_kernel::population::NumberColumn;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::sight::{NumberSlot, TableSlot};
use polity_kernel::topology::Topology;
use polity_kernel::world::{Deeds, Future, Setup, SightRow, World};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Did, Kind, Store};
use vectors::TOPICS;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Platform>(files);
}

/// Which platform it is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// People follow people: candidates come from whom one follows, from one's interests, from what is hot, and by chance.
    #[default]
    Follow,
    /// People join communities, one a topic: candidates come from these alone.
    Community,
}

/// A post that is put on the platform from outside.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// The round at whose end it appears; everybody may see it in the next.
    #[serde(default)]
    at: u32,
    /// Under whose name.
    author: u32,
    /// What it argues for, -1 to 1.
    #[serde(default)]
    stance: f32,
    /// Its topic, 0 to 31.
    #[serde(default)]
    topic: u8,
    /// Likes less dislikes that it has from the start, as in experiments on herding (Muchnik et al., 2013).
    #[serde(default)]
    score: i32,
    /// How probable it is that it raises the emotion of who reads it by a step, as what is novel and provocative does.
    #[serde(default)]
    rousing: f32,
    /// Its words, which minds read.
    text: Option<String>,
}

/// Parameters of the platform.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Which platform it is like.
    shape: Shape,
    /// Posts that a feed shows.
    feed: u32,
    /// Posts of which a feed shows the best.
    candidates: u32,
    /// Posts of each of the reader's main topics that are looked at for the nearest ones; where no more are looked at than are wanted, the
    /// newest are taken. All that are live: the nearest of all of these topics.
    depth: u32,
    /// Posts that are candidates at all: the newest so many.
    live: u32,
    /// What a post is ranked by.
    weights: Weights,
    /// Minutes that a round lasts.
    minutes: f64,
    /// The hour of day at which the run begins.
    hour: f64,
    /// By hour of day from midnight on: how probable it is that somebody of usual activity looks at the feed within a round.
    hours: Vec<f64>,
    /// Part of the way that somebody's interests move towards what it likes.
    learning: f32,
    /// How much of a post's vector is that of its words, 0 to 1, if it has some; the rest is that of its topic.
    wording: f32,
    /// A model that makes vectors of words, for instance `openai/text-embedding-3-small`: it is asked once for each post with words, in its
    /// author's name, at the beginning of the round after it was written. Without one, and where it gives no vector, words are hashed, and synonyms
    /// are not alike.
    embedding: Option<String>,
    /// Part of the shares of shares that are credited to the post itself, as X does, and not to the share by which it was met. It decides
    /// how deep cascades are, not who sees what.
    credit: f64,
    /// A column of the population: how many times as active as usual.
    activity: Option<String>,
    /// A column of the population: what people think at the start, -1 to 1. Without one it is drawn evenly.
    stance: Option<String>,
    /// A column of the population: the topic that somebody is most interested in, 0 to 31. Without one it is drawn evenly.
    topic: Option<String>,
    /// Posts from outside, by whose shares the scalars `cascade-...` are counted, all together.
    seeds: Vec<Seed>,
    /// Who can not post or react any more.
    banned: Vec<u32>,
    /// Whether the table `influence` is recorded: who dealt with whose post. A row a reaction.
    influence: bool,
    /// Measures of polarisation, which are scalars by these names. They cost a pass over all ties in every round; `exposure` makes every feed twice.
    polarisation: Vec<Measure>,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            shape: Shape::Follow,
            feed: 20,
            candidates: 200,
            depth: 0,
            live: 100_000,
            weights: Weights::default(),
            minutes: 60.0,
            hour: 8.0,
            hours: HOURS.to_vec(),
            learning: 0.02,
            wording: 0.5,
            embedding: None,
            credit: 0.0,
            activity: None,
            stance: None,
            topic: None,
            seeds: Vec::new(),
            banned: Vec::new(),
            influence: false,
            polarisation: Vec::new(),
        }
    }
}

/// Hardly anybody at night, most in the evening; the mean is 0.1.
const HOURS: [f64; 24] = [
    0.06, 0.04, 0.02, 0.02, 0.02, 0.03, 0.06, 0.09, 0.11, 0.11, 0.11, 0.12, 0.13, 0.12, 0.11, 0.11, 0.12, 0.13, 0.15,
    0.16, 0.17, 0.17, 0.14, 0.10,
];

/// A social platform.
pub struct Platform {
    params: Params,
    activity: Option<NumberColumn>,
    stance: Option<NumberColumn>,
    topic: Option<NumberColumn>,
    /// How many rounds after its feed a turn may still act.
    lag: u32,
    /// Who follows whom from the start, for the measures of polarisation.
    graph: Topology,
    seen: Seen,
    /// What is done, by the number of the action.
    kinds: Vec<Kind>,
}

/// What agents see.
struct Seen {
    active: NumberSlot,
    stance: NumberSlot,
    feed: TableSlot,
}

/// Columns of the feed.
const COLUMNS: &[&str] = &[
    "post", "author", "root", "stance", "interest", "likes", "dislikes", "shares", "age", "followed", "seed",
    "rousing", "friends",
];
/// Where the stance of a post stands among them.
const OF: usize = 3;
impl Platform {
    fn declare(declare: &mut DeclareWorld<Self>, params: &Params) -> (Seen, Vec<Kind>) {
        let doc = "1 in rounds in which the agent looks at its feed, else 0";
        let active = declare.number_slot("active", doc);
        let stance = declare.number_slot("stance", "what the agent has said to think, -1 to 1");
        let doc = "posts from the best down: number, author, the post that it shares, stance, likeness to the reader's interests (-1 to \
                   1), likes, dislikes, shares, hours since it appeared, whether the reader follows its author, number of the seed that it \
                   is or comes from (0: none), how rousing that is, how many of whom the reader follows wrote it or passed it on, of the newest posts by these";
        let feed = declare.table_slot("feed", COLUMNS.iter().copied(), doc);
        declare.alternatives();
        let kinds: Vec<Kind> = Kind::ALL.to_vec();
        for kind in &kinds {
            let (name, argument, doc) = kind.action();
            declare.action(name, argument, doc);
        }
        let column = |of: fn(&Store, usize) -> f64| move |_: &Self, store: &Store, who: &u32| of(store, *who as usize);
        let stances = column(|store, who| f64::from(store.people.stance[who]));
        declare.column("stance", "what the agent thinks", Some((-1.0, 1.0)), stances);
        let followers = column(|store, who| f64::from(store.people.followers[who]));
        declare.column("followers", "how many follow the agent", None, followers);
        let posts = column(|store, who| f64::from(store.people.posts[who]));
        declare.column("posts", "posts that it has written or passed on", None, posts);
        let attention = column(|store, who| f64::from(store.people.attention[who]));
        let doc = "likes, dislikes, comments and shares that its posts have had";
        declare.column("attention", doc, None, attention);
        for (name, doc, value) in store::SCALARS {
            declare.scalar(name, doc, move |_, store| value(store));
        }
        for measure in params.polarisation.clone() {
            let (name, doc) = measure.named();
            declare.scalar(name, doc, move |world, store| match measure {
                Measure::Modularity => polarisation::modularity(store, &world.graph),
                Measure::EchoChambers => polarisation::echo_chambers(store, &world.graph),
                Measure::Exposure => store.exposed.share(),
            });
        }
        declare.table(tables::posts_table(), |_, store| tables::posts(store));
        if params.influence {
            declare.table(tables::influence_table(), |_, store| tables::influence(store));
        }
        (Seen { active, stance, feed }, kinds)
    }

    fn feeds(&self) -> Feeds<'_> {
        Feeds { params: &self.params }
    }

    /// Whether somebody looks at the feed in a round: a draw of its own, so that it can be asked again.
    fn is_active(&self, store: &Store, who: u32) -> bool {
        if self.params.banned.binary_search(&who).is_ok() {
            return false;
        }
        let hour = self.params.hour + f64::from(store.round) * self.params.minutes / 60.0;
        let usual = self.params.hours.get(hour.rem_euclid(24.0) as usize).copied().unwrap_or(0.0);
        let own = store.people.activity.get(who as usize).map_or(1.0, |own| f64::from(*own));
        Draws::new(store.seed, Stream::World, store.round, who).chance(usual * own)
    }

    /// Who looks at the feed in the round, in order.
    fn active<'a>(&'a self, store: &'a Store) -> impl ParallelIterator<Item = u32> + 'a {
        let people = 0..store.people.stance.len() as u32;
        people.into_par_iter().filter(|who| self.is_active(store, *who))
    }

    fn check(params: &Params, setup: &Setup<'_>) -> Result<(), Invalid> {
        let invalid = |key: &str, message: String| Err(Invalid { key: key.into(), message });
        let (feed, candidates, live) = (params.feed, params.candidates, params.live);
        if feed == 0 || feed > candidates {
            return invalid("feed", format!("must be at least 1 and at most `candidates` ({candidates}), is {feed}"));
        }
        if candidates > 10_000 || candidates > live {
            return invalid(
                "candidates",
                format!("must be at most 10,000 and at most `live` ({live}), is {candidates}"),
            );
        }
        if live > 10_000_000 {
            return invalid("live", format!("must be at most 10,000,000, is {live}"));
        }
        if params.hours.len() != 24 {
            return invalid("hours", format!("has 24 probabilities, one an hour, not {}", params.hours.len()));
        }
        if let Some(p) = params.hours.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            return invalid("hours", format!("probabilities lie in 0..=1, not {p}"));
        }
        if !(params.minutes > 0.0 && params.minutes <= 10_080.0) {
            return invalid("minutes", format!("must be above 0 and at most a week (10,080), is {}", params.minutes));
        }
        Invalid::within(0.0..=1.0, "learning", params.learning)?;
        Invalid::within(0.0..=1.0, "wording", params.wording)?;
        Invalid::within(0.0..=1.0, "credit", params.credit)?;
        if params.embedding.is_some() && params.wording == 0.0 {
            let message = "vectors of words count for nothing while `wording` is 0: leave one of them out";
            return invalid("embedding", message.into());
        }
        if !params.weights.are_finite() {
            return invalid("weights", "must be finite numbers".into());
        }
        for (i, seed) in params.seeds.iter().enumerate() {
            let at = |key: &str| format!("seeds[{i}].{key}");
            if seed.author >= setup.agents {
                return invalid(
                    &at("author"),
                    format!("there is no agent {}; there are {}", seed.author, setup.agents),
                );
            }
            if usize::from(seed.topic) >= TOPICS {
                return invalid(&at("topic"), format!("topics are 0 to {}, not {}", TOPICS - 1, seed.topic));
            }
            Invalid::within(-1.0..=1.0, &at("stance"), seed.stance)?;
            Invalid::within(0.0..=1.0, &at("rousing"), seed.rousing)?;
        }
        let twice = |i: &usize| params.polarisation[..*i].contains(&params.polarisation[*i]);
        if let Some(i) = (0..params.polarisation.len()).find(twice) {
            let (name, _) = params.polarisation[i].named();
            return invalid(&format!("polarisation[{i}]"), format!("`{name}` stands here twice"));
        }
        if let Some(who) = params.banned.iter().find(|who| **who >= setup.agents) {
            return invalid("banned", format!("there is no agent {who}; there are {}", setup.agents));
        }
        Ok(())
    }

    /// Finds what feeds of the round that begins are made of, and what readers will be shown, if that is asked for.
    fn prepare(&self, store: &mut Store) {
        self.feeds().refresh(store);
        self.feeds().find_nearest(store, |store| self.active(store).collect());
        if self.params.polarisation.contains(&Measure::Exposure) {
            store.coming = self.exposed(store);
        }
    }

    /// Puts the posts from outside on the platform whose time has come.
    fn sow(&self, store: &mut Store, ended: Option<u32>) {
        for (i, seed) in self.params.seeds.iter().enumerate() {
            if seed.at.checked_sub(1) == ended {
                store.sow(seed, i as u32 + 1, self.params.live);
            }
        }
    }
}

impl World for Platform {
    const NAME: &'static str = "platform";
    const SUMMARY: &'static str = "A social platform: ranked feeds, posts, shares, reactions (X- or Reddit-like)";
    type Params = Params;
    type State = Store;

    fn open(mut params: Params, setup: &Setup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        Platform::check(&params, setup)?;
        // Everybody is looked up there in every round.
        params.banned.sort_unstable();
        let column = |key: &str, name: &Option<String>| {
            let found = name.as_ref().map(|name| setup.population.table().number_column(name)).transpose();
            found.map_err(|error| Invalid { key: key.into(), message: error.to_string() })
        };
        let (activity, stance) = (column("activity", &params.activity)?, column("stance", &params.stance)?);
        let topic = column("topic", &params.topic)?;
        let within = |key: &str, column: Option<NumberColumn>, low: f64, high: f64| {
            let Some(column) = column else { return Ok(()) };
            let value = |who: u32| setup.population.number(column, who);
            match (0..setup.agents).find(|who| !(low..=high).contains(&value(*who))) {
                None => Ok(()),
                Some(who) => Err(Invalid {
                    key: key.into(),
                    message: format!("must lie in {low}..={high}; agent {who} has {}", value(who)),
                }),
            }
        };
        within("activity", activity, 0.0, 1e6)?;
        within("stance", stance, -1.0, 1.0)?;
        within("topic", topic, 0.0, TOPICS as f64 - 1.0)?;
        let (seen, kinds) = Platform::declare(declare, &params);
        let (lag, graph) = (setup.lag, setup.topology.clone());
        Ok(Platform { params, activity, stance, topic, lag, graph, seen, kinds })
    }

    fn begin(&self, setup: &Setup<'_>, draws: &mut Draws) -> Store {
        let mut store = Store::new(setup.agents, draws.u64());
        for who in 0..setup.agents {
            let person = Person { id: who, population: setup.population };
            let mut own = Draws::new(store.seed, Stream::Seat, 0, who);
            let stance = self.stance.map_or_else(|| own.range(-1.0, 1.0), |column| person.number(column));
            let activity = self.activity.map_or(1.0, |column| person.number(column));
            let drawn = own.below(TOPICS as u64) as u8;
            let topic = self.topic.map_or(drawn, |column| person.number(column) as u8);
            store.people.join(stance as f32, activity as f32, topic, &mut own);
        }
        match setup.topology {
            Topology::None { .. } => {}
            // Everybody follows everybody else.
            Topology::Complete { n } => store.people.followers.fill(n.saturating_sub(1)),
            Topology::Graph(_) => {
                for followed in (0..setup.agents).flat_map(|who| setup.topology.neighbours(who)) {
                    store.people.followers.change(followed as usize, |followers| *followers += 1);
                }
            }
        }
        self.sow(&mut store, None);
        self.restore(&mut store);
        store
    }

    /// A user and the posts of the first rounds; `live` bounds the posts in memory.
    fn memory_bytes(&self) -> usize {
        500
    }

    fn models(&self) -> Vec<(String, Want)> {
        self.params.embedding.iter().map(|model| (model.clone(), Want::Vector)).collect()
    }

    fn inquire(&self, store: &Store) -> Vec<(u32, Question)> {
        let Some(model) = &self.params.embedding else { return Vec::new() };
        let question = |(author, words): (u32, &str)| {
            let messages = vec![Message::text(Role::User, words)];
            let request = Request { purpose: "embedding".into(), ..Request::new(model, messages, Want::Vector) };
            (author, Question { request, hidden: None, again: 0, default: Value::Vector(Vec::new()) })
        };
        store.unembedded().map(|(_, author, words)| question((author, words))).collect()
    }

    fn learn(&self, store: &mut Store, ends: Vec<Settled>) {
        let vectors = ends.into_iter().map(|end| match end.value {
            Value::Vector(vector) => vector,
            _ => Vec::new(),
        });
        if store.embed(vectors.collect()) {
            self.prepare(store);
        }
    }

    fn observe(&self, store: &Store, person: Person<'_>, sight: &mut SightRow<'_>) {
        if !self.is_active(store, person.id) {
            return;
        }
        sight.number(self.seen.active, 1.0);
        sight.number(self.seen.stance, f64::from(store.people.stance[person.id as usize]));
        let follows = sight.neighbours();
        sight.table(self.seen.feed, |rows| self.feeds().write(store, person.id, follows, rows));
    }

    fn apply(&self, store: &mut Store, deeds: &Deeds<'_>, _: &mut Future) {
        let who = deeds.person.id;
        if who as usize >= store.people.stance.len() || self.params.banned.binary_search(&who).is_ok() {
            return;
        }
        // What anybody does may change what others are near to.
        store.live.near = feed::Near::default();
        store.people.query.remove(&who);
        for (i, act) in deeds.acts().iter().enumerate() {
            let did = Did { who, value: act.value, text: deeds.text(i) };
            if let Some(kind) = self.kinds.get(usize::from(act.kind)) {
                store.apply(*kind, &did, &self.params, &mut || deeds.neighbours());
            }
        }
    }

    fn settle(&self, store: &mut Store, _: &mut Draws) -> Option<String> {
        let active = self.active(store).count();
        store.end_round(active as u32);
        self.sow(store, Some(store.round - 1));
        store.forget();
        self.prepare(store);
        store.posts.begin_round(store.live.first, self.lag);
        None
    }

    fn restore(&self, store: &mut Store) {
        store.embed_by(self.params.embedding.as_deref());
        store.index(self.params.live, self.params.wording);
        store.keep_fans(self.params.weights.is_collaborative());
        self.prepare(store);
    }
}
