//! A social platform: people on a follow graph read ranked feeds, post and react. See README.md.

mod cascade;
mod collaborative;
mod exposed;
mod fans;
mod feed;
mod near;
mod params;
mod people;
mod polarisation;
mod posts;
mod store;
mod tables;
#[cfg(test)]
mod tests;
mod vectors;

use exposed::Exposed;
use feed::Feeds;
use params::Measure;
use params::Params;
use polarisation::{PART, camp};
use polity_kernel::Invalid;
use polity_kernel::ask::{Ask, ChatMessage, Question, Request, ResponseFormat, Role, Target, Value};
use polity_kernel::interface::{NumberSlot, Rows, TableSlot};
use polity_kernel::policy::Person;
use polity_kernel::population::NumberColumn;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::topology::Topology;
use polity_kernel::world::{AgentActions, AskingWorld, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use rayon::prelude::*;
use store::{Did, Kind, Store};
use vectors::TOPICS;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.asking_world::<Platform>(files);
}

/// A social platform.
pub struct Platform {
    params: Params,
    activity: Option<NumberColumn>,
    stance: Option<NumberColumn>,
    topic: Option<NumberColumn>,
    /// How many rounds after its feed a turn may still act.
    lag: u32,
    /// The initial follow graph, for the measures of polarisation.
    graph: Topology,
    seen: Seen,
    /// Kinds of actions, by action number.
    kinds: Vec<Kind>,
}

/// Observations of agents.
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
/// Position of a post's stance among them.
const OF: usize = 3;
impl Platform {
    /// Returns the stances in the feeds of the coming round. Worlds are not told which feeds were read, so each feed is built a second
    /// time. If people act one after the other, it is the feed at the beginning of the round.
    fn exposed(&self, store: &Store) -> Exposed {
        let n = store.people.stance.len() as u32;
        let part = |part: u32| {
            let (mut values, mut texts) = (Vec::new(), Vec::new());
            let mut exposed = Exposed::default();
            for who in (part * PART..n.min((part + 1) * PART)).filter(|who| self.is_active(store, *who)) {
                values.clear();
                texts.clear();
                let graph = self.graph.neighbours(who);
                self.feeds().write(store, who, graph, &mut Rows::new(&mut values, &mut texts));
                let own = camp(store.people.stance[who as usize]);
                for row in values.chunks_exact(COLUMNS.len()) {
                    let post = camp(row[OF] as f32);
                    let sides = own != 1 && post != 1;
                    exposed.all += u64::from(sides);
                    exposed.own += u64::from(sides && own == post);
                }
            }
            exposed
        };
        (0..n.div_ceil(PART)).into_par_iter().map(part).reduce(Exposed::default, Exposed::with)
    }

    fn declare(declare: &mut DeclareWorld<Self>, params: &Params) -> (Seen, Vec<Kind>) {
        let doc = "1 in rounds in which the agent looks at its feed, else 0";
        let active = declare.number_slot("active", doc);
        let stance = declare.number_slot("stance", "what the agent has said to think, -1 to 1");
        let doc = "posts from the best down: number, author, the post that it shares, stance, likeness to the reader's interests (-1 to \
                   1), likes, dislikes, shares, hours since it appeared, whether the reader follows its author, number of the seed that it \
                   is or comes from (0: none), how rousing that is, how many of the reader's followees wrote it or passed it on, by their newest posts";
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
        declare.column("followers", "number of the agent's followers", None, followers);
        let posts = column(|store, who| f64::from(store.people.posts[who]));
        declare.column("posts", "posts that the agent has written or passed on", None, posts);
        let attention = column(|store, who| f64::from(store.people.attention[who]));
        let doc = "likes, dislikes, comments and shares that the agent's posts have received";
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

    /// Returns whether a person looks at the feed in a round: a separate draw, so that it can be repeated.
    fn is_active(&self, store: &Store, who: u32) -> bool {
        if self.params.banned.binary_search(&who).is_ok() {
            return false;
        }
        let hour = self.params.hour + f64::from(store.round) * self.params.minutes / 60.0;
        let usual = self.params.hours.get(hour.rem_euclid(24.0) as usize).copied().unwrap_or(0.0);
        let own = store.people.activity.get(who as usize).map_or(1.0, |own| f64::from(*own));
        Draws::new(store.seed, Stream::World, store.round, who).chance(usual * own)
    }

    /// Returns who looks at the feed in the round, in order.
    fn active<'a>(&'a self, store: &'a Store) -> impl ParallelIterator<Item = u32> + 'a {
        let people = 0..store.people.stance.len() as u32;
        people.into_par_iter().filter(|who| self.is_active(store, *who))
    }

    fn check(params: &Params, setup: &WorldSetup<'_>) -> Result<(), Invalid> {
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
            return invalid("hours", format!("needs 24 probabilities, one per hour, has {}", params.hours.len()));
        }
        if let Some(p) = params.hours.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            return invalid("hours", format!("probabilities must lie in 0..=1, not {p}"));
        }
        if !(params.minutes > 0.0 && params.minutes <= 10_080.0) {
            return invalid("minutes", format!("must be above 0 and at most a week (10,080), is {}", params.minutes));
        }
        Invalid::within(0.0..=1.0, "learning", params.learning)?;
        Invalid::within(0.0..=1.0, "wording", params.wording)?;
        Invalid::within(0.0..=1.0, "credit", params.credit)?;
        if params.embedding.is_some() && params.wording == 0.0 {
            let message = "word vectors have no effect while `wording` is 0: leave one of the two out";
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
            return invalid(&format!("polarisation[{i}]"), format!("`{name}` appears twice"));
        }
        if let Some(who) = params.banned.iter().find(|who| **who >= setup.agents) {
            return invalid("banned", format!("there is no agent {who}; there are {}", setup.agents));
        }
        Ok(())
    }

    /// Prepares the feeds of the coming round, and measures what readers will be shown, if requested.
    fn prepare(&self, store: &mut Store) {
        self.feeds().refresh(store);
        self.feeds().find_nearest(store, |store| self.active(store).collect());
        if self.params.polarisation.contains(&Measure::Exposure) {
            store.coming = self.exposed(store);
        }
    }

    /// Adds the posts from outside whose time has come.
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

    fn open(mut params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        Platform::check(&params, setup)?;
        // It is looked up for everybody in every round.
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

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> Store {
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
            // Nobody follows anybody; no run has an outline.
            Topology::None { .. } | Topology::Outline { .. } => {}
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

    fn observe(&self, store: &Store, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        if !self.is_active(store, person.id) {
            return;
        }
        observation.number(self.seen.active, 1.0);
        observation.number(self.seen.stance, f64::from(store.people.stance[person.id as usize]));
        let follows = observation.neighbours();
        observation.table(self.seen.feed, |rows| self.feeds().write(store, person.id, follows, rows));
    }

    fn apply(&self, store: &mut Store, actions: &AgentActions<'_>, _: &mut Future) {
        let who = actions.person.id;
        if who as usize >= store.people.stance.len() || self.params.banned.binary_search(&who).is_ok() {
            return;
        }
        // Any action may change what others are near to.
        store.live.near = near::Near::default();
        store.people.query.remove(&who);
        for (i, act) in actions.acts().iter().enumerate() {
            let did = Did { who, value: act.value, text: actions.text(i) };
            if let Some(kind) = self.kinds.get(usize::from(act.kind)) {
                store.apply(*kind, &did, &self.params, &mut || actions.neighbours());
            }
        }
    }

    fn end_round(&self, store: &mut Store, _: &mut Draws) -> Option<String> {
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

/// Vectors of words come from an embedding model, if the scenario names one.
impl AskingWorld for Platform {
    /// Vectors of new posts with words, in order; an empty one where no answer came.
    type Learnt = Vec<Vec<f32>>;

    fn models(&self) -> Vec<(String, ResponseFormat)> {
        self.params.embedding.iter().map(|model| (model.clone(), ResponseFormat::Vector)).collect()
    }

    async fn query(&self, store: &Store, ask: &mut Ask<'_>) -> Vec<Vec<f32>> {
        let Some(model) = self.params.embedding.as_ref().map(Target::from) else { return Vec::new() };
        let question = |(author, words): (u32, &str)| {
            let messages = vec![ChatMessage::text(Role::User, words)];
            let request =
                Request { purpose: "embedding".into(), ..Request::new(&model, messages, ResponseFormat::Vector) };
            (author, Question::new(request).default(Value::Vector(Vec::new())))
        };
        let questions = store.unembedded().map(|(_, author, words)| question((author, words))).collect();
        let vector = |heard| match heard {
            Ok(Value::Vector(vector)) => vector,
            _ => Vec::new(),
        };
        ask.ask_all(questions).await.into_iter().map(vector).collect()
    }

    fn on_answers(&self, store: &mut Store, vectors: Vec<Vec<f32>>) {
        if !vectors.is_empty() && store.embed(vectors) {
            self.prepare(store);
        }
    }
}
