//! A rule-based user of a social platform. See README.md for the sources and the equations.

mod traits;

use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traits::{Rates, Trait, Traits};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<User>(files);
}

/// Parameters of users. Probabilities are per post read, or per visit.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Probability of liking a post within `tolerance` that matches its interests exactly.
    like: f64,
    /// Probability of disliking a post outside `tolerance`.
    dislike: f64,
    /// Probability of sharing a post (independent cascade; Bass's innovation).
    share: f64,
    /// Additional probability of sharing a post for each followee who wrote or shared it (Bass's imitation), besides `share`.
    imitation: f64,
    /// Probability of commenting on a post.
    comment: f64,
    /// Probability of writing a post in a visit.
    post: f64,
    /// Probability of following the author of a liked post, if not yet followed.
    follow: f64,
    /// Maximum difference of stance at which a post still influences the user (bounded confidence).
    tolerance: f64,
    /// Share of the way that its stance moves towards the mean of the posts read within `tolerance`.
    pull: f64,
    /// Difference of stance beyond which a post repels the user (latitude of rejection); at least `tolerance`.
    rejection: f64,
    /// Share of the way that its stance moves away from the mean of the posts read beyond `rejection`.
    repulsion: f64,
    /// Influence of votes: the odds of a like are multiplied by e to this power for a post with more likes than dislikes, and divided by
    /// it for one with fewer. Vice versa for dislikes.
    herd: f64,
    /// Minimum number of followees who wrote or shared a post before the user shares it (complex contagion); 1: no threshold.
    threshold: u32,
    /// Probability that a post outside `tolerance` raises the user's emotion by one step, of three levels.
    arousal: f64,
    /// Probability that its emotion falls by a step in a visit without such a post.
    calm: f64,
    /// Factor by which each step of emotion multiplies the probabilities of sharing and commenting.
    heat: f64,
    /// Personality traits that multiply probabilities: columns of the population. Without them, all users are alike.
    traits: Vec<Trait>,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            like: 0.1,
            dislike: 0.02,
            share: 0.02,
            imitation: 0.0,
            comment: 0.02,
            post: 0.1,
            follow: 0.02,
            tolerance: 0.6,
            pull: 0.05,
            rejection: 1.0,
            repulsion: 0.0,
            herd: 0.0,
            threshold: 1,
            arousal: 0.05,
            calm: 0.3,
            heat: 1.5,
            traits: Vec::new(),
        }
    }
}

/// The highest emotion.
const MOST: u8 = 2;

/// A rule-based user.
pub struct User {
    params: Params,
    traits: Traits,
    active: NumberSlot,
    stance: NumberSlot,
    feed: TableSlot,
    columns: [usize; 9],
    acts: Actions,
}

struct Actions {
    post: u16,
    share: u16,
    comment: u16,
    like: u16,
    dislike: u16,
    follow: u16,
    think: u16,
}

/// The state of a user between visits: its emotion, 0 calm, 1 moved, 2 roused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mood {
    emotion: u8,
}

impl Policy for User {
    const NAME: &'static str = "user";
    const SUMMARY: &'static str =
        "A rule-based user of a social platform: cascades, bounded confidence, herding, emotion";
    type Params = Params;
    type State = Mood;

    const COLUMNS: &'static [StateColumn<Self>] = &[StateColumn {
        name: "emotion",
        doc: "how moved the agent is: 0 calm, 1 moved, 2 roused",
        range: Some((0.0, MOST as f64)),
        value: |_, mood| f64::from(mood.emotion),
    }];

    fn open(mut params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let Params { like, dislike, share, imitation, comment, post, follow, arousal, calm, pull, repulsion, .. } =
            params;
        let parts = [
            ("like", like),
            ("dislike", dislike),
            ("share", share),
            ("imitation", imitation),
            ("comment", comment),
            ("post", post),
            ("follow", follow),
            ("arousal", arousal),
            ("calm", calm),
            ("pull", pull),
            ("repulsion", repulsion),
        ];
        let invalid = |key: &str, message: String| Invalid { key: key.into(), message };
        for (key, part) in parts {
            Invalid::within(0.0..=1.0, key, part)?;
        }
        let positive = [("tolerance", params.tolerance), ("rejection", params.rejection), ("heat", params.heat)];
        if let Some((key, value)) = positive.into_iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0)) {
            return Err(invalid(key, format!("must be 0 or more, is {value}")));
        }
        Invalid::within(-50.0..=50.0, "herd", params.herd)?;
        if repulsion > 0.0 && params.rejection < params.tolerance {
            let within = format!("must be at least `tolerance`, {}: a post cannot attract and repel", params.tolerance);
            return Err(invalid("rejection", within));
        }
        if params.threshold == 0 {
            return Err(invalid("threshold", "must be at least 1".into()));
        }
        let traits = Traits::open(std::mem::take(&mut params.traits), setup)?;
        let names = ["post", "author", "friends", "stance", "interest", "likes", "dislikes", "followed", "rousing"];
        let (feed, columns) = setup.table("feed", names)?;
        let act = |name| setup.act(name).map(|(kind, _)| kind);
        Ok(User {
            params,
            traits,
            active: setup.number("active")?,
            stance: setup.number("stance")?,
            feed,
            columns,
            acts: Actions {
                post: act("post")?,
                share: act("share")?,
                comment: act("comment")?,
                like: act("like")?,
                dislike: act("dislike")?,
                follow: act("follow")?,
                think: act("think")?,
            },
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Mood {
        Mood::default()
    }

    async fn act(&self, mood: &mut Mood, turn: &mut Turn<'_>) -> Result<(), Fault> {
        if turn.observation.number(self.active) == 0.0 {
            return Ok(());
        }
        let Params { imitation, tolerance, pull, rejection, repulsion, herd, threshold, heat, .. } = self.params;
        let Rates { like, dislike, share, comment, post, follow, arousal, calm } = self.rates(turn.person());
        let stance = turn.observation.number(self.stance);
        let observation = turn.observation;
        let [number, author, friends, of, interest, likes, dislikes, followed, rousing] = self.columns;
        let (mut near, mut far, mut roused) = (Mean::default(), Mean::default(), false);
        for row in observation.table(self.feed) {
            let difference = row[of] - stance;
            let is_near = difference.abs() <= tolerance;
            if is_near {
                near.add(difference);
            } else if difference.abs() > rejection {
                far.add(difference);
            }
            // The post's own rousing effect comes before the decision what to do with it.
            let stirred = row[rousing] > 0.0 && turn.draws.chance(row[rousing]);
            roused |= stirred;
            let emotion = (mood.emotion + u8::from(stirred)).min(MOST);
            let heated = (0..emotion).fold(1.0, |all, _| all * heat);
            // One draw per post decides between the reactions.
            let mut draw = turn.draws.unit();
            let mut does = |p: f64| {
                let chosen = draw >= 0.0 && draw < p;
                draw -= p;
                chosen
            };
            let taste = (0.5 + row[interest] / 2.0).clamp(0.0, 1.0);
            let sway = herd * sign(row[likes] - row[dislikes]);
            if is_near {
                if does(odds(like * taste, sway)) {
                    turn.act(self.acts.like, row[number]);
                    if row[followed] == 0.0 && turn.draws.chance(follow) {
                        turn.act(self.acts.follow, row[author]);
                    }
                } else if does(urged(share, imitation, row[friends]) * taste * heated) {
                    if threshold <= 1 || row[friends] >= f64::from(threshold) {
                        turn.act(self.acts.share, row[number]);
                    }
                } else if does(comment * taste * heated) {
                    turn.act(self.acts.comment, row[number]);
                }
            } else if does(odds(dislike, -sway)) {
                turn.act(self.acts.dislike, row[number]);
            } else if does(comment * heated / 2.0) {
                turn.act(self.acts.comment, row[number]);
            } else {
                roused |= does(arousal);
            }
        }
        let (towards, away) = (near.share(pull), far.share(repulsion));
        if towards.is_some() || away.is_some() {
            let moved = stance + towards.unwrap_or_default() - away.unwrap_or_default();
            turn.act(self.acts.think, moved.clamp(-1.0, 1.0));
        }
        if turn.draws.chance(post) {
            turn.act(self.acts.post, 0.0);
        }
        if roused {
            mood.emotion = (mood.emotion + 1).min(MOST);
        } else if mood.emotion > 0 && turn.draws.chance(calm) {
            mood.emotion -= 1;
        }
        Ok(())
    }
}

impl User {
    /// Returns a user's probability of each action.
    fn rates(&self, person: Person<'_>) -> Rates {
        let Params { like, dislike, share, comment, post, follow, arousal, calm, .. } = self.params;
        let of = self.traits.of(person);
        let times = |p: f64, rate: f64| (p * rate).min(1.0);
        Rates {
            like: times(like, of.like),
            dislike: times(dislike, of.dislike),
            share: times(share, of.share),
            comment: times(comment, of.comment),
            post: times(post, of.post),
            follow: times(follow, of.follow),
            arousal: times(arousal, of.arousal),
            calm: times(calm, of.calm),
        }
    }
}

/// The mean difference of stance of the posts read so far.
#[derive(Default)]
struct Mean {
    count: u32,
    sum: f64,
}

impl Mean {
    fn add(&mut self, difference: f64) {
        self.count += 1;
        self.sum += difference;
    }

    /// Returns a share of the mean; `None` if there is no post, or no share.
    fn share(&self, share: f64) -> Option<f64> {
        (self.count > 0 && share > 0.0).then(|| share * self.sum / f64::from(self.count))
    }
}

/// Returns the probability of an action on its own or by imitation of `others` people.
fn urged(own: f64, imitation: f64, others: f64) -> f64 {
    if imitation == 0.0 {
        return own;
    }
    1.0 - (0..others as u32).fold(1.0 - own, |none, _| none * (1.0 - imitation))
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// Multiplies the odds of a probability by e to the power of `sway`.
fn odds(p: f64, sway: f64) -> f64 {
    if sway == 0.0 || p <= 0.0 || p >= 1.0 {
        return p;
    }
    let odds = p / (1.0 - p) * libm::exp(sway);
    odds / (1.0 + odds)
}
