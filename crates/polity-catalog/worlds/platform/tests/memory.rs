//! Checks that `platform` drops old posts without visible effects: against a plain platform that keeps all of them for ever, over
//! hundreds of rounds in which a post is live for two or three. What it holds is counted.

use super::plain::{By, COMMENT, DISLIKE, LIKE, POST, Plain, QUOTE, REPORT, SEED, SHARE};
use crate::testing::metric;
use polity_kernel::Invalid;
use polity_kernel::ask::{Answer, ChatMessage, Effect, Outcome, Request, ResponseFormat, Role, Usage, Value as Said};
use polity_kernel::interface::{Cells, NumberSlot, TableSlot};
use polity_kernel::layout::Layout;
use polity_kernel::machine::{Machine, RoundReport, Then};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::LeafFiles;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::society::Society;
use polity_kernel::tree::Node;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const PEOPLE: u32 = 150;
const ROUNDS: u32 = 300;
const LIVE: usize = 120;
/// Probability that a person looks at its feed in a round.
const ACTIVE: f64 = 0.3;

#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Reports every post that it is shown, with all observed fields; then performs all possible actions, also on posts that it is not shown.
struct Diarist {
    active: NumberSlot,
    feed: TableSlot,
}

impl Policy for Diarist {
    const NAME: &'static str = "diarist";
    const SUMMARY: &'static str = "";
    type Params = Nothing;
    type State = ();

    fn open(_: Nothing, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Ok(Diarist { active: setup.number("active")?, feed: setup.table("feed", [])?.0 })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, (): &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        if turn.observation.number(self.active) == 0.0 {
            return Ok(());
        }
        let (observation, who, round) = (turn.observation, turn.who, turn.round);
        for (i, row) in observation.table(self.feed).enumerate() {
            let text = observation.table_texts(self.feed).find(|(row, _)| *row == i).map_or("", |(_, text)| text);
            turn.act_saying(REPORT, row[0], written(row, text));
        }
        for row in observation.table(self.feed) {
            match turn.draws.below(16) {
                0 | 1 => turn.act(LIKE, row[0]),
                2 => turn.act(DISLIKE, row[0]),
                3 | 4 => turn.act(SHARE, row[0]),
                5 => turn.act_saying(QUOTE, row[0], format!("{who} quotes in {round}")),
                6 => turn.act_saying(COMMENT, row[0], format!("{who} in {round}")),
                _ => {}
            }
            if turn.draws.chance(0.05) {
                let other = turn.draws.below(row[0] as u64 + 2) as f64;
                let kind = [LIKE, SHARE, QUOTE, COMMENT][turn.draws.below(4) as usize];
                turn.act(kind, other);
            }
        }
        if turn.draws.chance(0.5) {
            match turn.draws.chance(0.5) {
                true => turn.act_text(POST, format!("{who} writes in {round}")),
                false => turn.act(POST, 0.0),
            }
        }
        Ok(())
    }
}

/// Formats what is observed of a post, without what the plain platform does not compute.
fn written(row: &[f64], text: &str) -> String {
    let &[post, author, root, stance, _, likes, dislikes, shares, age, _, seed, ..] = row else { panic!("{row:?}") };
    format!(
        "{post} by {author} from {root} for {stance}: +{likes} -{dislikes} {shares} shares, {age} hours, seed {seed}. {text}"
    )
}

/// Asks what to do with the first post that it sees; names it when it has an answer, and once more later.
struct Ponderer {
    active: NumberSlot,
    feed: TableSlot,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Remembered(Option<(u32, f64)>);

/// Rounds that a [`Ponderer`] remembers a post.
const LATER: u32 = 8;

impl Policy for Ponderer {
    const NAME: &'static str = "ponderer";
    const SUMMARY: &'static str = "";
    type Params = Nothing;
    type State = Remembered;

    fn open(_: Nothing, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Ok(Ponderer { active: setup.number("active")?, feed: setup.table("feed", [])?.0 })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Remembered {
        Remembered::default()
    }

    fn models(&self) -> Vec<String> {
        vec!["sim/medium".into()]
    }

    async fn act(&self, last: &mut Remembered, turn: &mut Turn<'_>) -> Result<(), Fault> {
        if let Some((round, post)) = last.0
            && turn.round >= round + LATER
        {
            last.0 = None;
            turn.act(DISLIKE, post);
        }
        let observation = turn.observation;
        if observation.number(self.active) == 1.0
            && let Some(row) = observation.table(self.feed).next()
        {
            let messages = vec![ChatMessage::text(Role::User, "What now?")];
            if turn.ask(Request::new("sim/medium", messages, ResponseFormat::Text)).await.is_ok() {
                turn.act(LIKE, row[0]);
            }
            last.0.get_or_insert((turn.round, row[0]));
        }
        Ok(())
    }
}

fn opened(scenario: &Value, shards: usize) -> Society {
    let mut registry = crate::testing::registry();
    registry.policy::<Diarist>(LeafFiles::default());
    registry.policy::<Ponderer>(LeafFiles::default());
    match assemble(&Node::from_json(scenario), &registry, &Inputs::default(), Layout::shards(shards)) {
        Ok(Assembled::Society(society)) => *society,
        Ok(_) => panic!("a society was asked for"),
        Err(error) => panic!("{error}"),
    }
}

/// Posts from outside: (first round, author, votes, words).
const SEEDS: [(u32, u32, i64, Option<&str>); 4] =
    [(0, 3, 5, Some("the first")), (40, 4, -2, None), (41, 5, 0, Some("the third")), (170, 6, 1, None)];

fn scenario(by: By) -> Value {
    let weights = match by {
        By::Followed => json!({"followed": 1, "interest": 0, "hot": 0, "recent": 0.5}),
        By::Hot => json!({"followed": 0, "interest": 0, "hot": 1, "recent": 0}),
        By::Others => json!({"followed": 1, "interest": 0, "collaborative": 1, "hot": 0, "recent": 0}),
    };
    let seed = |&(at, author, score, text): &(u32, u32, i64, Option<&str>)| json!({"at": at, "author": author, "score": score, "text": text, "stance": 0});
    json!({
        "seed": SEED, "rounds": ROUNDS, "agents": PEOPLE, "topology": {"kind": "erdos-renyi", "mean_degree": 12},
        "world": {
            "kind": "platform", "live": LIVE, "candidates": 60, "feed": 10, "weights": weights, "hours": vec![ACTIVE; 24],
            "influence": true, "credit": 0.3, "seeds": SEEDS.iter().map(seed).collect::<Vec<_>>()
        },
        "cohorts": [{"policy": {"kind": "diarist"}}]
    })
}

/// Returns the last round's values in a column of one of the world's tables.
fn whole(cells: &Cells) -> Vec<Option<u32>> {
    match cells {
        Cells::Whole(values) => values.clone(),
        Cells::Word(values) => values.iter().map(|value| Some(u32::from(*value))).collect(),
        _ => panic!("no whole numbers"),
    }
}

/// Results of a run beside a plain platform.
#[derive(Debug, Default)]
struct Seen {
    /// Feeds compared, posts in them, and those of these whose content or quotation was no longer live.
    feeds: usize,
    posts: usize,
    of_old: usize,
    quoting_old: usize,
    refused: usize,
    /// Bytes of the state after each round.
    bytes: Vec<usize>,
}

/// Runs a society beside a plain platform that keeps everything, and compares all observations and records. `changes`: rounds from which
/// on other numbers of posts are live.
fn beside(by: By, shards: usize, changes: &[(u32, usize)]) -> Seen {
    let mut scenario = scenario(by);
    let change = |(at, live): &(u32, usize)| json!({"at": at, "set": {"world.live": live}});
    scenario["changes"] = changes.iter().map(change).collect();
    let (mut society, mut stopped) = (opened(&scenario, shards), opened(&scenario, 5 - shards));
    let mut plain = Plain::new(&society.shared_context().topology, PEOPLE);
    (plain.live, plain.most, plain.length, plain.credit) = (LIVE, 60, 10, 0.3);
    plain.stances = society.column(0).iter().map(|stance| *stance as f32).collect();
    let mut seen = Seen::default();
    for round in 0..ROUNDS {
        for (i, (_, author, score, words)) in SEEDS.iter().enumerate().filter(|(_, seed)| seed.0 == round) {
            plain.sow(*author, i as u32 + 1, round, *score, *words);
        }
        if let Some((_, live)) = changes.iter().find(|change| change.0 == round) {
            // Posts that are no longer live do not come back.
            plain.gone = plain.first();
            plain.live = *live;
        }
        plain.oldest = plain.first();
        let Then::Round(report) = society.poll(Vec::new()).unwrap().then else { panic!("it ends in round {round}") };
        let Then::Round(other) = stopped.poll(Vec::new()).unwrap().then else { panic!("it ends in round {round}") };
        assert_eq!(report.chain, other.chain, "round {round}: stopped and gone on with");
        let mut acts: Vec<(u32, u16, f64, Option<String>)> = Vec::new();
        for block in society.acts() {
            let of = block.rows.iter().enumerate();
            acts.extend(of.map(|(i, act)| (act.who, act.kind, act.value, block.text(i).map(str::to_owned))));
        }
        for who in 0..PEOPLE {
            let told = acts.iter().filter(|act| act.0 == who && act.1 == REPORT);
            let told: Vec<&str> = told.map(|act| act.3.as_deref().unwrap()).collect();
            let active = Draws::new(plain.seed, Stream::World, round, who).chance(ACTIVE);
            let feed = if active { plain.feed(who, by) } else { Vec::new() };
            let expected: Vec<String> = feed.iter().map(|post| row_of(&plain, *post, round)).collect();
            assert_eq!(told, expected, "round {round}, user {who}, by {by:?}, {} posts", plain.posts.len());
            seen.feeds += usize::from(active);
            seen.posts += feed.len();
            seen.of_old += feed.iter().filter(|post| plain.posts[**post].origin < plain.oldest).count();
            let quotes_old = |post: &&usize| plain.posts[**post].of.is_some_and(|of| of < plain.oldest);
            seen.quoting_old +=
                feed.iter().filter(|post| plain.posts[**post].origin == **post).filter(quotes_old).count();
        }
        let before = plain.refused;
        let written = plain.posts.iter().rposition(|post| post.round < round).map_or(0, |last| last + 1);
        let mut dealt: Vec<[u32; 7]> = Vec::new();
        for (who, kind, value, words) in &acts {
            let (refused, post) = (plain.refused, *value as usize);
            plain.apply_saying(*who, *kind, *value, words.as_deref().filter(|_| *kind != REPORT), round);
            if *kind != POST && plain.refused == refused {
                let (of, origin) = (&plain.posts[post], plain.posts[post].origin);
                let writer = plain.posts[origin].author;
                let numbers = [post as u32, of.author, origin as u32, writer, round - of.round];
                let [number, by, origin, writer, age] = numbers;
                dealt.push([*who, u32::from(*kind - SHARE), number, by, origin, writer, age]);
            }
        }
        seen.refused += plain.refused - before;
        compare(&society, &report, &plain, (before, written, &dealt));
        seen.bytes.push(society.snapshot().unwrap().len());
        if round % 5 == 2 {
            let saved = stopped.snapshot().unwrap();
            stopped = opened(&scenario, 1 + round as usize % 4);
            stopped.restore(&saved).unwrap();
            assert_eq!(stopped.snapshot().unwrap(), saved, "round {round}: what is restored is what was saved");
        }
    }
    seen
}

/// Returns the expected row of a post for a reader.
fn row_of(plain: &Plain, post: usize, round: u32) -> String {
    let of = &plain.posts[post];
    let origin = &plain.posts[of.origin];
    let [number, root] = [post as f64, of.root as f64];
    let row = [
        number,
        f64::from(of.author),
        root,
        f64::from(of.stance),
        0.0,
        origin.likes as f64,
        origin.dislikes as f64,
        origin.shares as f64,
        f64::from(round - of.round),
        0.0,
        f64::from(of.seed),
    ];
    written(&row, &plain.text(post))
}

/// Compares the records of a round. `round`: refused acts before it, its first post, and its reactions.
fn compare(society: &Society, report: &RoundReport, plain: &Plain, round: (usize, usize, &[[u32; 7]])) {
    let (refused, first, dealt) = round;
    assert_eq!(metric(report, "refused"), (plain.refused - refused) as f64, "round {}", report.round);
    let votes = SEEDS.iter().filter(|seed| seed.0 <= report.round).map(|seed| seed.2).sum();
    let [mut scale, depth, breadth, virality, score] = plain.cascades(votes);
    // The next round's seeds already exist.
    scale += SEEDS.iter().filter(|seed| seed.0 == report.round + 1).count() as f64;
    for (name, expected) in [
        ("cascade-scale", scale),
        ("cascade-depth", depth),
        ("cascade-breadth", breadth),
        ("cascade-virality", virality),
        ("seed-score", score),
    ] {
        let got = metric(report, name);
        assert!(
            (got - expected).abs() < 1e-9 * expected.abs().max(1.0),
            "round {}: {name} {got} {expected}",
            report.round
        );
    }
    let posts = society.rows(0);
    let column =
        |value: &dyn Fn(usize) -> Option<u32>| -> Vec<Option<u32>> { (first..plain.posts.len()).map(value).collect() };
    let number = |number: usize| Some(number as u32);
    for (i, expected) in [
        column(&number),
        column(&|post| Some(plain.posts[post].author)),
        column(&|post| plain.posts[post].of.and_then(number)),
        column(&|post| number(plain.posts[post].origin)),
        column(&|post| number(plain.posts[post].root)),
        column(&|post| Some(plain.posts[post].depth)),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(whole(&posts[i]), expected, "round {}, column {i} of the posts", report.round);
    }
    let Some(Cells::Text(texts)) = posts.last() else { panic!("no texts") };
    let words: Vec<Option<String>> = plain.posts[first..].iter().map(|post| post.words.clone()).collect();
    assert_eq!(*texts, words);
    let influence = society.rows(1);
    for (i, cells) in influence.iter().enumerate() {
        let expected: Vec<Option<u32>> = dealt.iter().map(|row| Some(row[i])).collect();
        assert_eq!(whole(cells), expected, "round {}, column {i} of the influence", report.round);
    }
}

#[test]
fn old_posts_leave_memory_and_results_stay_the_same() {
    for (by, shards) in [(By::Followed, 1), (By::Hot, 4), (By::Others, 1), (By::Followed, 4)] {
        let seen = beside(by, shards, &[]);
        let Seen { feeds, posts, of_old, quoting_old, refused, bytes } = &seen;
        assert!(*feeds > 10_000 && *posts > 60_000 && *refused > 1_000, "there was something to compare: {seen:?}");
        if by != By::Hot {
            assert!(*of_old > 1_000 && *quoting_old > 100, "old posts were shown through newer ones: {seen:?}");
        }
        // Memory use by count: no more in the last hundred rounds than in the hundred before.
        let most = |of: std::ops::Range<usize>| bytes[of].iter().max().copied().unwrap();
        let (middle, last) = (most(100..200), most(200..300));
        assert!(last < middle + middle / 10, "{middle} bytes, then {last}, by {by:?}");
    }
}

#[test]
fn what_has_left_does_not_come_back_when_more_are_live() {
    let seen = beside(By::Followed, 1, &[(60, 2_000), (200, 60)]);
    let bytes = |round: usize| seen.bytes[round] as f64;
    // It grows while more posts may be live than exist, and shrinks when fewer may.
    assert!(bytes(190) > 2.0 * bytes(59) && bytes(290) < bytes(59), "{seen:?}");
}

/// A round of a society whose questions are answered at once; answers are used as late as allowed.
fn answered(society: &mut Society) -> Box<RoundReport> {
    let answer = |Effect { id, request, .. }: Effect| {
        let outcome = Outcome::Reply { value: Said::Text("Like it.".into()), raw: String::new(), repaired: false };
        Answer { id, request, outcome, usage: Usage::default(), reasoning: None }
    };
    let mut asked = society.open_effects();
    for _ in 0..1000 {
        let step = society.poll(asked.into_iter().map(answer).collect()).unwrap();
        if let Then::Round(report) = step.then {
            return report;
        }
        asked = step.start;
    }
    panic!("a round without an end")
}

#[test]
fn late_answers_may_name_what_was_shown_and_nothing_older() {
    const LAG: usize = 3;
    const LIVE: usize = 30;
    let mut scenario = scenario(By::Followed);
    scenario["answers"] = json!({"lag": LAG});
    scenario["world"]["live"] = json!(LIVE);
    scenario["world"]["candidates"] = json!(30);
    scenario["world"]["seeds"] = json!([]);
    scenario["cohorts"] = json!([
        {"count": 50, "policy": {"kind": "ponderer"}}, {"count": 100, "policy": {"kind": "diarist"}}
    ]);
    let mut whole = opened(&scenario, 1);
    let mut stopped = opened(&scenario, 3);
    // Authors by post, and by round the oldest post of its feeds.
    let (mut authors, mut firsts): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
    let (mut late, mut later) = (0, 0);
    for round in 0..60 {
        firsts.push(authors.len().saturating_sub(LIVE));
        let (report, other) = (answered(&mut whole), answered(&mut stopped));
        assert_eq!(report.chain, other.chain, "round {round}");
        let saved = stopped.snapshot().unwrap();
        stopped = opened(&scenario, 1 + round % 3);
        stopped.restore(&saved).unwrap();
        let (now, oldest) = (firsts[round], firsts[round.saturating_sub(LAG)]);
        let mut refused = 0;
        for act in whole.acts().flat_map(|block| &block.rows) {
            if act.kind == POST {
                authors.push(act.who);
                continue;
            }
            let post = act.value as usize;
            let accepted = post >= oldest && authors.get(post).is_some_and(|author| *author != act.who);
            refused += u32::from(!accepted);
            if accepted && [SHARE, QUOTE].contains(&act.kind) {
                authors.push(act.who);
            }
            match act.kind {
                // Posts in the feed at the time of the question are accepted, live or not.
                LIKE if act.who < 50 => {
                    assert!(accepted, "round {round}: {act:?}, {oldest}");
                    late += usize::from(post < now);
                }
                DISLIKE if act.who < 50 => later += usize::from(!accepted),
                _ => {}
            }
        }
        assert_eq!(metric(&report, "refused"), f64::from(refused), "round {round}");
        assert_eq!(whole.rows(0)[0].rows() as f64, metric(&report, "posts") + metric(&report, "shares"));
    }
    assert!(late > 100 && later > 50, "{late} late, {later} later");
}
