//! The parameters of a platform.

use schemars::JsonSchema;
use serde::Deserialize;

/// The kind of platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// People follow people: candidates come from followees, interests, hot posts, and chance.
    #[default]
    Follow,
    /// People join communities, one per topic: candidates come from these alone.
    Community,
}

/// A post that is added to the platform from outside.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// The round at whose end it appears; it is visible in the next.
    #[serde(default)]
    pub(super) at: u32,
    /// Its author.
    pub(super) author: u32,
    /// Its stance, -1 to 1.
    #[serde(default)]
    pub(super) stance: f32,
    /// Its topic, 0 to 31.
    #[serde(default)]
    pub(super) topic: u8,
    /// Initial likes minus dislikes, as in experiments on herding (Muchnik et al., 2013).
    #[serde(default)]
    pub(super) score: i32,
    /// Probability that it raises a reader's emotion by a step, as novel and provocative posts do.
    #[serde(default)]
    pub(super) rousing: f32,
    /// Its text, for minds.
    pub(super) text: Option<String>,
}

/// Parameters of the platform.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The kind of platform.
    pub(super) shape: Shape,
    /// Number of posts in a feed.
    pub(super) feed: u32,
    /// Number of candidates from which a feed shows the best.
    pub(super) candidates: u32,
    /// Number of posts per main topic that are searched for the nearest ones. If it is no larger than the number wanted, the newest are
    /// taken; if it covers all live posts, the search is exact.
    pub(super) depth: u32,
    /// Number of live posts, the newest, which can be candidates.
    pub(super) live: u32,
    /// Weights of the ranking.
    pub(super) weights: Weights,
    /// Length of a round in minutes.
    pub(super) minutes: f64,
    /// Hour of day at the start of the run.
    pub(super) hour: f64,
    /// Probability that a person of usual activity looks at the feed in a round, by hour of day from midnight on.
    pub(super) hours: Vec<f64>,
    /// Share of the way that a person's interests move towards a liked post.
    pub(super) learning: f32,
    /// Weight of the words in a post's vector, 0 to 1, if it has words; the rest is its topic.
    pub(super) wording: f32,
    /// An embedding model, for instance `openai/text-embedding-3-small`. It is asked once for each post with words, in its author's name,
    /// at the beginning of the round after it was written. Without one, or if it gives no vector, words are hashed, and synonyms are not
    /// similar.
    pub(super) embedding: Option<String>,
    /// Share of reshares that are credited to the original post, as X does, and not to the share where it was seen. It affects the depth
    /// of cascades, not who sees what.
    pub(super) credit: f64,
    /// A column of the population: activity as a multiple of the usual.
    pub(super) activity: Option<String>,
    /// A column of the population: initial stances, -1 to 1. Without one they are drawn uniformly.
    pub(super) stance: Option<String>,
    /// A column of the population: each person's main topic, 0 to 31. Without one it is drawn uniformly.
    pub(super) topic: Option<String>,
    /// Posts from outside. The scalars `cascade-...` count their shares, all together.
    pub(super) seeds: Vec<Seed>,
    /// People who cannot post or react any more.
    pub(super) banned: Vec<u32>,
    /// Record the table `influence`: who reacted to whose post, one row per reaction.
    pub(super) influence: bool,
    /// Measures of polarisation, recorded as scalars of these names. They cost a pass over all ties in every round; `exposure` builds
    /// every feed twice.
    pub(super) polarisation: Vec<Measure>,
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

/// Weights of the ranking, which is a weighted sum. A source with weight 0 brings no candidates.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Weights {
    /// 1 for posts by the reader's followees. Candidates: the newest of these.
    pub(super) followed: f64,
    /// Similarity of the post to the reader's interests, -1 to 1. Candidates: the newest of the reader's two main topics.
    pub(super) interest: f64,
    /// Collaborative filtering: random walks from posts that the reader engaged with (liked, commented on or shared), over others who
    /// engaged with them, to their other posts. Score: the share of walks that end at the post, scaled to 1 for the highest. Candidates:
    /// the highest scores.
    pub(super) collaborative: f64,
    /// Reddit's hot score, minus that of a new post without votes. Candidates: the hottest.
    pub(super) hot: f64,
    /// Recency: 1 for a post of this round, halved every 24 hours.
    pub(super) recent: f64,
    /// A random number from 0 to 1, for each reader, post and round. Candidates: drawn from all live posts.
    pub(super) random: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Weights { followed: 1.0, interest: 1.0, collaborative: 0.0, hot: 0.1, recent: 0.5, random: 0.0 }
    }
}

impl Weights {
    pub fn are_finite(&self) -> bool {
        let Weights { followed, interest, collaborative, hot, recent, random } = *self;
        [followed, interest, collaborative, hot, recent, random].iter().all(|weight| weight.is_finite())
    }

    /// Returns whether feeds use others' engagement.
    pub fn is_collaborative(&self) -> bool {
        self.collaborative != 0.0
    }
}

/// A measure of polarisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Modularity of the follow graph, with people grouped by the sign of their stance (Newman, 2006; directed: Leicht and Newman, 2008).
    Modularity,
    /// Correlation between people's stances and the mean stance of their followees (Cinelli et al., 2021).
    EchoChambers,
    /// Share of the posts in the round's feeds on the reader's side (one minus the cross-cutting share of Bakshy et al., 2015).
    Exposure,
}

impl Measure {
    /// Returns the name and the description of its scalar.
    pub fn named(self) -> (&'static str, &'static str) {
        match self {
            Measure::Modularity => (
                "modularity",
                "modularity of the follow graph, with people grouped by the sign of their stance: below 1; 0 if \
                 ties are as by chance or if there are none",
            ),
            Measure::EchoChambers => (
                "echo-chambers",
                "correlation between people's stances and the mean stance of their followees, -1 to 1; 0 if \
                 either is the same for everybody",
            ),
            Measure::Exposure => (
                "exposure",
                "share of posts on the reader's side, among the posts in the round's feeds that take a side; \
                 0 if there are none",
            ),
        }
    }
}

/// Few people at night, most in the evening; the mean is 0.1.
const HOURS: [f64; 24] = [
    0.06, 0.04, 0.02, 0.02, 0.02, 0.03, 0.06, 0.09, 0.11, 0.11, 0.11, 0.12, 0.13, 0.12, 0.11, 0.11, 0.12, 0.13, 0.15,
    0.16, 0.17, 0.17, 0.14, 0.10,
];
