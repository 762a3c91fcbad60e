//! Tests of `platform` against a plain platform that keeps lists and sorts all posts for every reader; refused actions; interventions.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod archetypes;
mod memory;
mod plain;
mod polarisation;

use crate::testing;

use crate::testing::{metric, open, refused};
use plain::{By, DISLIKE, LIKE, POST, Plain, SEED, SHARE};
use polity_kernel::Invalid;
use polity_kernel::ask::{Effect, Outcome, ResponseFormat, Value as Said};
use polity_kernel::interface::{Cells, NumberSlot, TableSlot};
use polity_kernel::layout::Layout;
use polity_kernel::machine::{Machine, Then};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::LeafFiles;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::society::Society;
use polity_kernel::tree::Node;
use serde::Deserialize;
use serde_json::{Value, json};

const SHOWN: u16 = 6;
const FOLLOW: u16 = 7;
const UNFOLLOW: u16 = 8;
const MUTE: u16 = 9;
const SEARCH: u16 = 10;
const JOIN: u16 = 11;
const THINK: u16 = 13;

/// Reports every post that it is shown, so that a test sees its feed, and performs random actions.
struct ArenaObserver {
    active: NumberSlot,
    feed: TableSlot,
    restless: bool,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Watching {
    /// Whether it also follows and unfollows others and changes its stance.
    #[serde(default)]
    restless: bool,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

impl Policy for ArenaObserver {
    const NAME: &'static str = "witness";
    const SUMMARY: &'static str = "";
    type Params = Watching;
    type State = ();

    fn open(params: Watching, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let (active, feed) = (setup.number("active")?, setup.table("feed", [])?.0);
        Ok(ArenaObserver { active, feed, restless: params.restless })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, (): &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        if turn.observation.number(self.active) == 0.0 {
            return Ok(());
        }
        let observation = turn.observation;
        for row in observation.table(self.feed) {
            turn.act(SHOWN, row[0]);
        }
        for row in observation.table(self.feed) {
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
        if self.restless {
            for kind in [FOLLOW, FOLLOW, UNFOLLOW] {
                let whom = turn.draws.below(200) as f64;
                turn.act(kind, whom);
            }
            // A third has no side.
            let stance = [-0.5, 0.0, 0.5][turn.draws.below(3) as usize] * turn.draws.unit();
            turn.act(THINK, stance);
        }
        Ok(())
    }
}

/// Performs invalid actions: on missing targets, on itself, twice, with words of a megabyte.
struct Clumsy {
    active: NumberSlot,
}

/// What every agent of [`Clumsy`] does in a visit: (act, value). (The engine accepts no value that is not a number from any policy.)
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

    fn open(_: Nothing, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Ok(Clumsy { active: setup.number("active")? })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, (): &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        if turn.observation.number(self.active) == 0.0 {
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
        // Agent 3 cannot follow itself; everybody else follows it twice, which counts once, and unfollows it again.
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
    // A small window of live posts, so that whole topics become empty, and hot posts fall.
    let weights = json!({"followed": 0, "interest": 1, "collaborative": 1, "hot": 0.5, "recent": 0.5, "random": 0.1});
    let world = json!({"live": 60, "candidates": 30, "feed": 10, "depth": 60, "weights": weights, "hours": vec![0.2; 24],
        "polarisation": ["exposure", "modularity"]});
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
fn feeds_by_what_others_did_can_begin_in_the_middle_of_a_run() {
    let weights = |collaborative: f64| json!({"followed": 1, "interest": 0, "collaborative": collaborative, "hot": 0, "recent": 0});
    let scenario =
        |collaborative: f64| scenario(200, 14, json!({"weights": weights(collaborative), "hours": vec![0.3; 24]}));
    let mut society = witnessed(&scenario(0.0), 1);
    let follows: Vec<Vec<u32>> =
        (0..200).map(|who| society.shared_context().topology.neighbours(who).collect()).collect();
    let mut authors: Vec<u32> = Vec::new();
    let mut write_down = |society: &Society| {
        let Some(Cells::Whole(new)) = society.rows(0).into_iter().nth(1) else { panic!("no authors") };
        authors.extend(new.into_iter().flatten());
        authors.clone()
    };
    for _ in 0..7 {
        assert!(matches!(society.poll(Vec::new()).unwrap().then, Then::Round(_)));
        write_down(&society);
    }
    let changed = society.snapshot().unwrap();
    let [mut whole, mut stopped] = [1, 3].map(|shards| {
        let mut society = witnessed(&scenario(1.0), shards);
        society.restore(&changed).unwrap();
        society
    });
    let mut of_others = Vec::new();
    while let (Then::Round(a), Then::Round(b)) =
        (whole.poll(Vec::new()).unwrap().then, stopped.poll(Vec::new()).unwrap().then)
    {
        assert_eq!(a.chain, b.chain, "round {}", a.round);
        let authors = write_down(&whole);
        let shown = whole.acts().flat_map(|block| block.rows.iter().filter(|act| act.kind == SHOWN));
        let strangers = shown.filter(|act| !follows[act.who as usize].contains(&authors[act.value as usize]));
        of_others.push(strangers.count());
        let saved = stopped.snapshot().unwrap();
        stopped = witnessed(&scenario(1.0), 2);
        stopped.restore(&saved).unwrap();
    }
    // From the first round on, by what people remember.
    assert!(of_others.len() == 7 && of_others[0] > 100 && of_others.iter().all(|n| *n > 10), "{of_others:?}");
}

#[test]
fn what_others_engage_with_leads_to_posts_that_no_vector_tells() {
    // Likes depend on stances alone, which vectors do not contain.
    let likes = |weights: Value| {
        let world = json!({"learning": 0, "live": 2000, "hours": vec![0.3; 24], "weights": weights});
        let policy =
            json!({"like": 0.3, "tolerance": 0.3, "pull": 0, "share": 0, "comment": 0, "dislike": 0, "post": 0.05});
        let mut scenario = by_rules(2000, 20, world, policy);
        scenario["topology"] = json!({"kind": "none"});
        let found = last(&scenario);
        found("likes") / found("active")
    };
    let by_chance = likes(json!({"followed": 0, "interest": 0, "hot": 0, "recent": 0, "random": 1}));
    let by_likeness = likes(json!({"followed": 0, "interest": 1, "hot": 0, "recent": 0, "random": 0.1}));
    let by_others =
        likes(json!({"followed": 0, "interest": 0, "collaborative": 1, "hot": 0, "recent": 0, "random": 0.1}));
    assert!(by_others > 2.0 * by_chance && by_others > 1.2 * by_likeness, "{by_others} {by_likeness} {by_chance}");
}

#[test]
fn a_feed_without_candidates_is_empty() {
    // Nobody writes.
    let world = json!({"shape": "community", "hours": vec![1; 24]});
    let found = last(&by_rules(20, 3, world, json!({"post": 0})));
    assert_eq!([found("active"), found("likes"), found("posts"), found("refused")], [20.0, 0.0, 0.0, 0.0]);
}

fn witnessed(scenario: &Value, shards: usize) -> Society {
    let mut registry = crate::testing::registry();
    registry.policy::<ArenaObserver>(LeafFiles::default());
    registry.policy::<Clumsy>(LeafFiles::default());
    match assemble(&Node::from_json(scenario), &registry, &Inputs::default(), Layout::shards(shards)) {
        Ok(Assembled::Society(society)) => *society,
        Ok(_) => panic!("a society was asked for"),
        Err(error) => panic!("{error}"),
    }
}

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
    for (by, shards) in [By::Followed, By::Hot, By::Others].into_iter().flat_map(|by| [(by, 1), (by, 4)]) {
        let mut weights = none.clone();
        weights[if by == By::Hot { "hot" } else { "followed" }] = json!(1);
        match by {
            By::Followed => weights["recent"] = json!(0.5),
            By::Hot => {}
            By::Others => weights["collaborative"] = json!(1),
        }
        let hours = vec![0.2; 24];
        let scenario = scenario(1000, 20, json!({"weights": weights, "hours": hours}));
        let mut society = witnessed(&scenario, shards);
        let mut plain = Plain::new(&society.shared_context().topology, 1000);
        let (mut feeds, mut full, mut walked) = (0, 0, 0);
        for round in 0.. {
            let before = plain.posts.len();
            let Then::Round(_) = society.poll(Vec::new()).unwrap().then else { break };
            let all: Vec<(u32, u16, f64)> =
                society.acts().flat_map(|block| block.rows.iter().map(|act| (act.who, act.kind, act.value))).collect();
            for who in 0..1000u32 {
                let of = |kind: u16| all.iter().filter(move |act| act.0 == who && act.1 == kind);
                let shown: Vec<usize> = of(SHOWN).map(|act| act.2 as usize).collect();
                let active = Draws::new(plain.seed, Stream::World, round, who).chance(0.2);
                let expected = if active { plain.feed(who, by) } else { Vec::new() };
                assert_eq!(shown, expected, "round {round}, user {who}, by {by:?}, {before} posts");
                let follows = &plain.follows[who as usize];
                walked += shown.iter().filter(|post| !follows.contains(&plain.posts[**post].author)).count();
                feeds += usize::from(active);
                full += usize::from(shown.len() == 20);
            }
            all.iter().for_each(|(who, kind, value)| plain.apply(*who, *kind, *value, round));
        }
        assert!(feeds > 3000 && full > 1000, "there was something to compare: {feeds} feeds, {full} full");
        assert!(by != By::Others || walked > 1000, "others brought something: {walked}");
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
    // With a threshold of two, users wait until others have shared it: less than without, but still something.
    assert_eq!(spread(0.3, json!({"threshold": 2})), [2.0, 0.0, 0.0]);
    let among_others = |others: Value| {
        let mut scenario = by_rules(800, 24, world.clone(), json!({}));
        let simple = json!({"kind": "user", "share": 0.3, "tolerance": 2, "post": 0.02});
        let mut policy = simple.clone();
        policy.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        scenario["cohorts"] = json!([{"count": 300, "policy": simple}, {"count": 500, "policy": policy}]);
        last(&scenario)("cascade-scale")
    };
    let [none, complex, all] = [json!({"share": 0}), json!({"threshold": 2}), json!({})].map(among_others);
    assert!(complex > none + 50.0 && complex < all - 50.0, "{none} {complex} {all}");
    // Imitation adds to it, most where many have shared it.
    let imitated = spread(0.05, json!({"imitation": 0.2}))[0];
    assert!(imitated > 1.5 * scale, "{imitated} {scale}");
    assert!(spread(0.0, json!({"imitation": 0.2}))[0] > 20.0);
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
    // If emotion has no effect, only the draws differ.
    assert!(spread(0.8, 1.0) < 1.5 * calm);
}

#[test]
fn the_score_of_seeds_is_what_was_given_to_them_alone() {
    // Nobody writes: only the seeds can be liked and shared.
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
    // Likes of others' posts do not count.
    let amid = last(&by_rules(300, 12, json!({"hours": vec![0.3; 24]}), json!({"post": 0.5})));
    assert_eq!(amid("seed-score"), 0.0);
    assert!(of(json!({"post": 0, "tolerance": 0, "dislike": 0.5})) < -5.0);
}

#[test]
fn what_policies_show_of_their_agents_is_measured_where_there_is_some() {
    // Users have emotions; observers have none.
    let mut scenario = scenario(3000, 6, json!({"hours": vec![0.5; 24]}));
    scenario["cohorts"] = json!([
        {"count": 1000, "policy": {"kind": "witness"}},
        {"count": 1500, "policy": {"kind": "user", "arousal": 0.3, "tolerance": 0.5}},
        {"count": 500, "policy": {"kind": "user", "arousal": 0}},
    ]);
    let metrics = json!([{"kind": "mean", "of": "emotion"}, {"kind": "histogram", "of": "emotion", "bins": 3},
        {"kind": "mean", "of": "stance"}]);
    scenario["metrics"] = metrics;
    let mut told = Vec::new();
    for shards in [1, 3] {
        let mut society = witnessed(&scenario, shards);
        let column = society.interface().columns.iter().position(|column| column.name == "emotion").unwrap();
        assert!(society.is_of_policies(column) && !society.is_of_policies(column - 1));
        while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
            let emotions = society.column(column);
            assert!(emotions.len() == 3000 && emotions[..1000].iter().all(|emotion| emotion.is_nan()));
            assert!(emotions[2500..].iter().all(|emotion| *emotion == 0.0), "nothing rouses them");
            let users = &emotions[1000..];
            let mean = users.iter().sum::<f64>() / 2000.0;
            assert!((metric(&report, "emotion.mean") - mean).abs() < 1e-12);
            for (bin, level) in [("b00", 0.0), ("b01", 1.0), ("b02", 2.0)] {
                let share = users.iter().filter(|emotion| **emotion == level).count() as f64 / 2000.0;
                assert!((metric(&report, &format!("emotion.histogram.{bin}")) - share).abs() < 1e-12);
            }
            told.push((mean, report.chain));
            let saved = society.snapshot().unwrap();
            society = witnessed(&scenario, shards);
            society.restore(&saved).unwrap();
        }
    }
    let last = told.split_off(6);
    assert!(told == last && told[5].0 > 0.2, "the same by shards: {told:?}");
    // Without users there is no emotion.
    scenario["cohorts"] = json!([{"policy": {"kind": "witness"}}]);
    let mut registry = crate::testing::registry();
    registry.policy::<ArenaObserver>(LeafFiles::default());
    let inputs = Inputs::default();
    let Err(error) = assemble(&Node::from_json(&scenario), &registry, &inputs, Layout::default()) else {
        panic!("nobody has emotions")
    };
    assert!(error.to_string().contains("no quantity `emotion`"), "{error}");
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

/// 2,000 people, one third introverts by a standard deviation, and one third extraverts.
fn people_with_traits(traits: Value) -> (Value, Inputs) {
    let world = json!({"hours": vec![1; 24]});
    let policy = json!({"traits": traits, "post": 0.2, "tolerance": 2, "pull": 0});
    let mut scenario = by_rules(2000, 8, world, policy);
    scenario["population"] = json!({"file": "people"});
    let scores = (0..2000).map(|who| f64::from(who % 3) - 1.0).collect();
    (scenario, testing::people("extraversion", scores))
}

#[test]
fn traits_multiply_what_people_do_by_a_rate_to_the_power_of_their_score() {
    let traits = json!([{"column": "extraversion", "rates": {"post": 2, "like": 3}}]);
    let (scenario, inputs) = people_with_traits(traits);
    let mut society = open(&scenario, &inputs, 1).unwrap_or_else(|error| panic!("{error}"));
    let (mut likes, mut posts) = ([0.0f64; 3], 0);
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        let acts: Vec<_> = society.acts().flat_map(|block| block.rows.clone()).collect();
        if report.round == 0 {
            // Nobody has anything to read: the only draw is that of writing.
            for who in 0..2000u32 {
                let p = 0.2 * [0.5, 1.0, 2.0][who as usize % 3];
                let writes = Draws::new(SEED, Stream::Turn, 0, who).unit() < p;
                assert_eq!(acts.iter().any(|act| act.who == who && act.kind == POST), writes, "{who}");
                posts += u32::from(writes);
            }
        }
        acts.iter().filter(|act| act.kind == LIKE).for_each(|act| likes[act.who as usize % 3] += 1.0);
    }
    assert!((300..700).contains(&posts), "{posts}");
    let [few, some, many] = likes;
    assert!(few > 200.0 && (some / few - 3.0).abs() < 0.6 && (many / some - 3.0).abs() < 0.6, "{likes:?}");
}

#[test]
fn words_are_traits_by_their_levels_and_traits_without_rates_change_nothing() {
    let chain = |scenario: &Value, inputs: &Inputs| {
        let mut society = open(scenario, inputs, 1).unwrap_or_else(|error| panic!("{error}"));
        loop {
            if let Then::Done(outcome) = society.poll(Vec::new()).unwrap().then {
                return outcome.digest;
            }
        }
    };
    let of = |traits: Value| {
        let (scenario, inputs) = people_with_traits(traits);
        chain(&scenario, &inputs)
    };
    let without = of(json!([]));
    assert_eq!(of(json!([{"column": "extraversion", "rates": {}}])), without);
    assert_ne!(of(json!([{"column": "extraversion", "rates": {"share": 1.5}}])), without);
    // The same people in words.
    let by = |traits: Value, shares: Value| {
        let mut scenario = by_rules(900, 4, json!({"hours": vec![1; 24]}), json!({"traits": traits}));
        scenario["population"] = json!({"marginals": [{"column": "outgoing", "shares": shares}]});
        scenario
    };
    let levels = json!({"reserved": -1, "usual": 0, "outgoing": 1});
    let rates = json!({"post": 2, "calm": 0.5});
    let words = by(
        json!([{"column": "outgoing", "levels": levels, "rates": rates}]),
        json!({"reserved": 0.3, "usual": 0.4, "outgoing": 0.3}),
    );
    let numbers = by(json!([{"column": "outgoing", "rates": rates}]), json!({"-1": 0.3, "0": 0.4, "1": 0.3}));
    assert_eq!(chain(&words, &Inputs::default()), chain(&numbers, &Inputs::default()));
    // Errors.
    let told = |traits: Value| refused(&by(traits, json!({"reserved": 0.3, "usual": 0.4, "outgoing": 0.3})));
    for (traits, expected) in [
        (json!([{"column": "outgong", "rates": {}}]), "outgoing"),
        (json!([{"column": "outgoing", "rates": {}}]), "give a score for each of"),
        (json!([{"column": "outgoing", "levels": {"usual": 0}, "rates": {}}]), "there is no score for `"),
        (
            json!([{"column": "outgoing", "levels": {"reserved": -20, "usual": 0, "outgoing": 1}, "rates": {}}]),
            "is -20",
        ),
        (json!([{"column": "outgoing", "levels": levels, "rates": {"post": 0}}]), "rates.post"),
        (json!([{"column": "outgoing", "levels": levels, "rates": {"poast": 2}}]), "post"),
    ] {
        let told = told(traits);
        assert!(told.contains(expected), "{told}\nnot: {expected}");
    }
    let ages = by(json!([{"column": "outgoing", "rates": {}}]), json!({"18": 0.5, "65": 0.5}));
    assert!(refused(&ages).contains("expected standard scores"), "{}", refused(&ages));
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
    let mut groups = by_rules(20, 2, json!({}), json!({}));
    let mut of = |policy: Value| {
        groups["cohorts"] = json!([{"policy": policy}]);
        refused(&groups)
    };
    let sampled = of(json!({"kind": "sampled", "model": "sim/medium"}));
    assert!(sampled.contains("use `archetype`, `mind` or a rule-based policy"), "{sampled}");
    let think = of(json!({"kind": "archetype", "model": "sim/medium", "acts": ["like", "think"]}));
    assert!(think.contains("`think` carries a value that shares of a group cannot give"), "{think}");
    let none = of(json!({"kind": "archetype", "model": "sim/medium", "default": {"like": "yes"}}));
    assert!(none.contains("without a usable reply, none is performed"), "{none}");
    let words =
        of(json!({"kind": "archetype", "model": "sim/medium", "prompts": {"situation": "{{ obs.feed.stnce }}"}}));
    assert!(words.contains("situation"), "{words}");
    assert!(told(json!({"polarisation": ["exposure", "exposure"]})).contains("`exposure` appears twice"));
    assert!(told(json!({"polarisation": ["modularty"]})).contains("modularity"));
    assert!(told(json!({"minutes": 0})).contains("minutes"));
    assert!(refused(&by_rules(20, 2, json!({}), json!({"like": 2}))).contains("like"));
    assert!(refused(&by_rules(20, 2, json!({}), json!({"threshold": 0}))).contains("threshold"));
}
