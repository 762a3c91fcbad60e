//! `platform` against a plain platform that keeps lists and sorts all posts for every reader; what is refused; interventions.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{metric, open, refused};
use polity_kernel::Invalid;
use polity_kernel::machine::{Machine, Then};
use polity_kernel::policy::{Binding, Fault, Person, Policy, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::sight::{Cells, NumberSlot, TableSlot};
use polity_kernel::society::Society;
use polity_kernel::topology::Topology;
use polity_kernel::transport::InMemory;
use polity_kernel::tree::Node;
use serde::Deserialize;
use serde_json::{Value, json};

const POST: u16 = 0;
const SHARE: u16 = 1;
const LIKE: u16 = 4;
const DISLIKE: u16 = 5;
const SHOWN: u16 = 6;
const FOLLOW: u16 = 7;
const UNFOLLOW: u16 = 8;
const MUTE: u16 = 9;
const SEARCH: u16 = 10;
const JOIN: u16 = 11;
const THINK: u16 = 13;

/// Reports every post that it is shown, so that a test sees its feed, and does this and that at random.
struct Witness {
    active: NumberSlot,
    feed: TableSlot,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

impl Policy for Witness {
    const NAME: &'static str = "witness";
    const SUMMARY: &'static str = "";
    type Params = Nothing;
    type State = ();

    fn open(_: Nothing, binding: &Binding<'_>) -> Result<Self, Invalid> {
        Ok(Witness { active: binding.number("active")?, feed: binding.table("feed", [])?.0 })
    }

    fn born(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, (): &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        if turn.sight.number(self.active) == 0.0 {
            return Ok(());
        }
        let sight = turn.sight;
        for row in sight.table(self.feed) {
            turn.act(SHOWN, row[0]);
        }
        for row in sight.table(self.feed) {
            match turn.draws.below(12) {
                0 => turn.act(LIKE, row[0]),
                1 => turn.act(DISLIKE, row[0]),
                2 => turn.act(SHARE, row[0]),
                _ => {}
            }
        }
        if turn.draws.chance(0.5) {
            turn.act(POST, 0.0);
        }
        Ok(())
    }
}

/// Does what nobody should: acts on what is not there, on itself, twice, with words of a megabyte.
struct Clumsy {
    active: NumberSlot,
}

/// What every agent of [`Clumsy`] does in a visit: (act, value). (A value that is no number the engine takes from no policy.)
const CLUMSY: [(u16, f64); 14] = [
    (SHARE, 4e9),
    (SHARE, -1.0),
    (SHARE, 0.5),
    (LIKE, f64::INFINITY),
    (FOLLOW, 3.0),
    (FOLLOW, 3.0),
    (FOLLOW, 1e9),
    (UNFOLLOW, 4.0),
    (UNFOLLOW, 3.0),
    (UNFOLLOW, 3.0),
    (MUTE, -5.0),
    (JOIN, 32.0),
    (SEARCH, 99.0),
    (THINK, 7.0),
];

impl Policy for Clumsy {
    const NAME: &'static str = "clumsy";
    const SUMMARY: &'static str = "";
    type Params = Nothing;
    type State = ();

    fn open(_: Nothing, binding: &Binding<'_>) -> Result<Self, Invalid> {
        Ok(Clumsy { active: binding.number("active")? })
    }

    fn born(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, (): &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        if turn.sight.number(self.active) == 0.0 {
            return Ok(());
        }
        CLUMSY.iter().for_each(|(kind, value)| turn.act(*kind, *value));
        turn.act(FOLLOW, f64::from(turn.who));
        turn.act_text(POST, "\u{1b}[31mrot \u{202e}abc\0 ünïcödé 漢字 🙂\n".repeat(40_000));
        turn.act_text(POST, "\u{7}\u{1b} \n");
        Ok(())
    }
}

#[test]
fn what_can_not_be_is_refused_and_nothing_is_lost() {
    let mut scenario = scenario(30, 4, json!({"hours": vec![1; 24], "influence": true}));
    scenario["cohorts"] = json!([{"policy": {"kind": "clumsy"}}]);
    scenario["topology"] = json!({"kind": "none"});
    let mut society = witnessed(&scenario, 1);
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        // Agent 3 can not follow itself; everybody else follows it twice, which is once, and unfollows it again.
        let each =
            CLUMSY.iter().filter(|(kind, value)| *value != 3.0 && (*kind, *value) != (UNFOLLOW, 4.0)).count() + 1;
        let expected = 30 * each + 4 + 1;
        assert_eq!(metric(&report, "refused"), expected as f64);
        assert_eq!((metric(&report, "posts"), metric(&report, "follows")), (60.0, 0.0));
        let posts = society.rows(0);
        let Some(Cells::Text(texts)) = posts.last() else { panic!("no texts") };
        assert_eq!(texts.len(), 60);
        let words = texts[0].as_ref().unwrap();
        assert_eq!(words.chars().count(), 5000);
        assert!(words.contains("漢字 🙂\n") && !words.contains(['\u{1b}', '\0', '\u{202e}']), "{words}");
        assert_eq!(texts[1], None, "nothing but control characters is no words");
        assert_eq!(society.rows(1).first().map(Cells::rows), Some(0));
    }
    assert!(society.column(1).iter().all(|followers| *followers == 0.0));
}

#[test]
fn what_is_rebuilt_after_a_stop_is_what_was_kept_up() {
    // A small window of live posts, so that whole topics have none any more, and hot ones fall.
    let weights = json!({"followed": 0, "interest": 1, "hot": 0.5, "recent": 0.5, "random": 0.1});
    let world =
        json!({"live": 60, "candidates": 30, "feed": 10, "depth": 60, "weights": weights, "hours": vec![0.2; 24]});
    let scenario = by_rules(100, 30, world, json!({"post": 0.3, "share": 0.1}));
    let mut whole = open(&scenario, &Inputs::default(), 1).unwrap();
    let mut stopped = open(&scenario, &Inputs::default(), 1).unwrap();
    let mut acts = 0;
    while let (Then::Round(a), Then::Round(b)) =
        (whole.poll(Vec::new()).unwrap().then, stopped.poll(Vec::new()).unwrap().then)
    {
        assert_eq!(a.chain, b.chain, "round {}", a.round);
        acts += a.acts;
        let saved = stopped.snapshot().unwrap();
        stopped = open(&scenario, &Inputs::default(), 1).unwrap();
        stopped.restore(&saved).unwrap();
    }
    assert!(acts > 500, "{acts}");
}

#[test]
fn a_feed_without_candidates_is_empty() {
    // Nobody writes.
    let world = json!({"shape": "community", "hours": vec![1; 24]});
    let found = last(&by_rules(20, 3, world, json!({"post": 0})));
    assert_eq!([found("active"), found("likes"), found("posts"), found("refused")], [20.0, 0.0, 0.0, 0.0]);
}

fn witnessed(scenario: &Value, shards: usize) -> Society {
    let mut registry = Registry::new();
    polity_catalog::register_all(&mut registry);
    registry.policy::<Witness>(LeafFiles::default());
    registry.policy::<Clumsy>(LeafFiles::default());
    match assemble(&Node::from_json(scenario), &registry, &Inputs::default(), shards, Box::new(InMemory::default())) {
        Ok(Assembled::Society(society)) => *society,
        Ok(_) => panic!("a society was asked for"),
        Err(error) => panic!("{error}"),
    }
}

struct PlainPost {
    author: u32,
    origin: usize,
    round: u32,
    likes: i64,
    dislikes: i64,
}

/// Lists, and nothing kept between feeds.
struct Plain {
    follows: Vec<Vec<u32>>,
    posts: Vec<PlainPost>,
    /// Origins that each has dealt with, oldest first.
    dealt: Vec<Vec<usize>>,
    seed: u64,
}

impl Plain {
    fn new(topology: &Topology, agents: u32) -> Self {
        let seed = Draws::new(SEED, Stream::Seat, 0, u32::MAX).u64();
        let follows = (0..agents).map(|who| topology.neighbours(who).collect()).collect();
        Plain { follows, posts: Vec::new(), dealt: vec![Vec::new(); agents as usize], seed }
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

    fn feed(&self, who: u32, by_hot: bool) -> Vec<usize> {
        let mut candidates: Vec<usize> = match by_hot {
            true => (0..self.posts.len()).filter(|post| self.posts[*post].origin == *post).collect(),
            false => {
                let followed = |post: &usize| self.follows[who as usize].contains(&self.posts[*post].author);
                (0..self.posts.len()).filter(followed).collect()
            }
        };
        let key = |post: usize| if by_hot { self.hot(post) } else { 0.0 };
        candidates.sort_by(|a, b| key(*b).partial_cmp(&key(*a)).unwrap().then(b.cmp(a)));
        candidates.truncate(200);
        if !by_hot {
            // The newest round first; within it posts before shares, and the newer first.
            let key = |post: usize| (self.posts[post].round, self.posts[post].origin == post, post);
            candidates.sort_by_key(|post| std::cmp::Reverse(key(*post)));
        }
        let own = |post: usize| self.posts[post].author == who || self.posts[self.posts[post].origin].author == who;
        let lately: Vec<usize> = self.dealt[who as usize].iter().rev().take(16).copied().collect();
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

    fn apply(&mut self, who: u32, kind: u16, value: f64, round: u32) {
        let post = value as usize;
        if kind == POST {
            let origin = self.posts.len();
            self.posts.push(PlainPost { author: who, origin, round, likes: 0, dislikes: 0 });
            return;
        }
        let origin = self.posts[post].origin;
        self.dealt[who as usize].push(origin);
        match kind {
            LIKE => self.posts[origin].likes += 1,
            DISLIKE => self.posts[origin].dislikes += 1,
            SHARE => self.posts.push(PlainPost { author: who, origin, round, likes: 0, dislikes: 0 }),
            _ => {}
        }
    }
}

const SEED: u64 = 5;

fn scenario(agents: u32, rounds: u32, world: Value) -> Value {
    let mut all = json!({"kind": "platform"});
    all.as_object_mut().unwrap().extend(world.as_object().unwrap().clone());
    json!({
        "seed": SEED, "rounds": rounds, "agents": agents, "topology": {"kind": "erdos-renyi", "mean_degree": 12},
        "world": all, "cohorts": [{"policy": {"kind": "witness"}}]
    })
}

#[test]
fn feeds_agree_with_a_plain_platform_post_by_post() {
    let none = json!({"followed": 0, "interest": 0, "hot": 0, "recent": 0, "random": 0});
    for (by_hot, shards) in [(false, 1), (true, 1), (false, 4), (true, 4)] {
        let mut weights = none.clone();
        weights[if by_hot { "hot" } else { "followed" }] = json!(1);
        if !by_hot {
            weights["recent"] = json!(0.5);
        }
        let hours = vec![0.2; 24];
        let scenario = scenario(1000, 20, json!({"weights": weights, "hours": hours}));
        let mut society = witnessed(&scenario, shards);
        let mut plain = Plain::new(&society.commons().topology, 1000);
        let (mut feeds, mut full) = (0, 0);
        for round in 0.. {
            let before = plain.posts.len();
            let Then::Round(_) = society.poll(Vec::new()).unwrap().then else { break };
            let all: Vec<(u32, u16, f64)> =
                society.acts().flat_map(|block| block.rows.iter().map(|act| (act.who, act.kind, act.value))).collect();
            for who in 0..1000u32 {
                let of = |kind: u16| all.iter().filter(move |act| act.0 == who && act.1 == kind);
                let shown: Vec<usize> = of(SHOWN).map(|act| act.2 as usize).collect();
                let active = Draws::new(plain.seed, Stream::World, round, who).chance(0.2);
                let expected = if active { plain.feed(who, by_hot) } else { Vec::new() };
                assert_eq!(shown, expected, "round {round}, user {who}, hot {by_hot}, {before} posts");
                feeds += usize::from(active);
                full += usize::from(shown.len() == 20);
            }
            all.iter().for_each(|(who, kind, value)| plain.apply(*who, *kind, *value, round));
        }
        assert!(feeds > 3000 && full > 1000, "there was something to compare: {feeds} feeds, {full} full");
    }
}

fn by_rules(agents: u32, rounds: u32, world: Value, policy: Value) -> Value {
    let mut scenario = scenario(agents, rounds, world);
    let mut user = json!({"kind": "user"});
    user.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
    scenario["cohorts"] = json!([{"policy": user}]);
    scenario
}

fn last(scenario: &Value) -> impl Fn(&str) -> f64 + use<> {
    let mut society = open(scenario, &Inputs::default(), 1).unwrap();
    let mut reports = Vec::new();
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        reports.push(*report);
    }
    move |name: &str| reports.iter().map(|report| metric(report, name)).next_back().unwrap()
}

#[test]
fn a_seed_spreads_as_far_as_people_pass_it_on() {
    let world = json!({"seeds": [{"author": 7}, {"author": 8}], "hours": vec![0.3; 24]});
    let spread = |share: f64, more: Value| {
        let mut policy = json!({"share": share, "tolerance": 2, "post": 0.02});
        policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let found = last(&by_rules(800, 24, world.clone(), policy));
        [found("cascade-scale"), found("cascade-depth"), found("cascade-breadth")]
    };
    let [scale, depth, breadth] = spread(0.05, json!({}));
    assert!(scale > 30.0 && depth >= 2.0 && breadth >= 5.0 && breadth < scale, "{scale} {depth} {breadth}");
    assert_eq!(spread(0.0, json!({})), [2.0, 0.0, 0.0]);
    // Who wants to hear it from several passes less on.
    assert!(spread(0.05, json!({"threshold": 3}))[0] < scale / 2.0);
}

#[test]
fn a_rousing_seed_is_passed_on_by_who_is_roused() {
    let spread = |rousing: f64, heat: f64| {
        let seeds = json!([{"author": 7, "rousing": rousing}, {"author": 8, "rousing": rousing}]);
        let policy = json!({"share": 0.03, "tolerance": 2, "post": 0.02, "heat": heat});
        last(&by_rules(800, 24, json!({"seeds": seeds, "hours": vec![0.3; 24]}), policy))("cascade-scale")
    };
    let calm = spread(0.0, 3.0);
    assert!(spread(0.8, 3.0) > 1.5 * calm, "{calm}");
    // Where emotion moves nobody it makes no difference beyond other draws.
    assert!(spread(0.8, 1.0) < 1.5 * calm);
}

#[test]
fn the_score_of_seeds_is_what_was_given_to_them_alone() {
    // Nobody writes: the seeds are all that there is to like, and to share.
    let of = |policy: Value| {
        let seeds = json!([{"author": 7, "score": 5}, {"author": 8, "score": -9}]);
        let mut society =
            open(&by_rules(300, 12, json!({"seeds": seeds, "hours": vec![0.3; 24]}), policy), &Inputs::default(), 1)
                .unwrap();
        let (mut given, mut score) = (0.0, 0.0);
        while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
            given += metric(&report, "likes") - metric(&report, "dislikes");
            score = metric(&report, "seed-score");
            assert_eq!(score, given);
        }
        score
    };
    let liked = of(json!({"post": 0, "tolerance": 2}));
    assert!(liked > 5.0, "{liked}");
    // Likes of what others write do not count.
    let amid = last(&by_rules(300, 12, json!({"hours": vec![0.3; 24]}), json!({"post": 0.5})));
    assert_eq!(amid("seed-score"), 0.0);
    assert!(of(json!({"post": 0, "tolerance": 0, "dislike": 0.5})) < -5.0);
}

#[test]
fn who_is_banned_does_nothing_and_sees_nothing() {
    let all: Vec<u32> = (0..200).collect();
    let found = last(&by_rules(200, 6, json!({"banned": all}), json!({})));
    assert_eq!([found("active"), found("posts")], [0.0, 0.0]);
    // A change of the scenario bans at a round.
    let mut scenario = by_rules(200, 6, json!({"hours": vec![0.5; 24]}), json!({}));
    scenario["changes"] = json!([{"at": 4, "set": {"world.banned": all}}]);
    let found = last(&scenario);
    assert_eq!([found("active"), found("likes")], [0.0, 0.0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let told = |world: Value| refused(&by_rules(20, 2, world, json!({})));
    assert!(told(json!({"feed": 300})).contains("at most `candidates` (200)"));
    assert!(told(json!({"hours": [0.5]})).contains("24 probabilities"));
    assert!(told(json!({"seeds": [{"author": 20}]})).contains("there is no agent 20; there are 20"));
    assert!(told(json!({"seeds": [{"author": 1, "topic": 32}]})).contains("topics are 0 to 31"));
    assert!(told(json!({"seeds": [{"author": 1, "rousing": 2}]})).contains("must lie in 0..=1, is 2"));
    assert!(told(json!({"stance": "opinion"})).contains("opinion"));
    assert!(told(json!({"topic": "subject"})).contains("subject"));
    let asked = json!({"kind": "archetype", "model": "sim/medium"});
    let mut groups = by_rules(20, 2, json!({}), json!({}));
    groups["cohorts"] = json!([{"policy": asked}]);
    assert!(refused(&groups).contains("take `mind` or a policy by rules"), "{}", refused(&groups));
    assert!(told(json!({"minutes": 0})).contains("minutes"));
    assert!(refused(&by_rules(20, 2, json!({}), json!({"like": 2}))).contains("like"));
    assert!(refused(&by_rules(20, 2, json!({}), json!({"threshold": 0}))).contains("threshold"));
}
