//! Archetypes on the platform: people act as a model says of their group.

use super::*;

fn says(value: Said) -> Outcome {
    Outcome::Reply { value, raw: String::new(), repaired: false }
}

/// Groups by side, with distinctive shares; every agent counted.
fn archetypes(agents: u32, by_hot: bool, changes: Value) -> Value {
    let mut weights = json!({"followed": 0, "interest": 0, "hot": 0, "recent": 0, "random": 0});
    weights[if by_hot { "hot" } else { "followed" }] = json!(1);
    if !by_hot {
        weights["recent"] = json!(0.5);
    }
    let mut all = scenario(agents, 12, json!({"weights": weights, "hours": vec![0.3; 24]}));
    let mut policy = json!({
        "kind": "archetype", "model": "sim/medium", "by": [{"observation": "stance", "bins": [0], "labels": ["against", "for"]}],
        "acts": ["post", "share", "like", "dislike", "follow", "unfollow"], "memory": 0,
        "prompts": {"situation": "ROWS {{ obs.feed.rows }} AGE {{ obs.feed.age }} STANCE {{ obs.stance }} END"}
    });
    policy.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    all["cohorts"] = json!([{"policy": policy}]);
    all
}

/// Shares of acts in the order asked for, and of no act, by side.
const SHARES: [[f64; 7]; 2] = [[20.0, 10.0, 30.0, 5.0, 10.0, 5.0, 20.0], [5.0, 20.0, 10.0, 40.0, 10.0, 5.0, 110.0]];
const ACTS: [u16; 6] = [POST, SHARE, LIKE, DISLIKE, FOLLOW, UNFOLLOW];

fn side(effect: &Effect) -> usize {
    usize::from(effect.request.rendered().contains("stance: for"))
}

fn shares(effect: &Effect) -> Outcome {
    says(Said::Record(SHARES[side(effect)].iter().map(|n| Said::Number(*n)).collect()))
}

/// Returns the number between two words.
fn told(words: &str, from: &str, to: &str) -> f64 {
    words.split(from).nth(1).and_then(|rest| rest.split(to).next()).unwrap().trim().parse().unwrap()
}

#[test]
fn archetypes_draw_their_acts_and_find_their_posts_as_a_plain_platform_has_it() {
    for (by_hot, shards) in [(false, 1), (true, 1), (false, 3), (true, 4)] {
        let by = if by_hot { By::Hot } else { By::Followed };
        let mut society = witnessed(&archetypes(700, by_hot, json!({})), shards);
        let mut plain = Plain::new(&society.shared_context().topology, 700);
        let mut done = [0; 6];
        for now in 0.. {
            let Ok((asked, _)) = testing::round(&mut society, &mut shares) else { break };
            let stances = society.column(0);
            let seed = plain.seed;
            let looks = |who: &u32| Draws::new(seed, Stream::World, now, *who).chance(0.3);
            let of_side = |side: usize| -> Vec<u32> {
                let is_of = |who: &u32| usize::from(stances[*who as usize] >= 0.0) == side;
                (0..700).filter(is_of).filter(looks).collect()
            };
            // One question per side, of active agents, in the name of the first.
            assert_eq!(asked.len(), 2, "round {now}");
            for effect in &asked {
                let (words, readers) = (effect.request.rendered(), of_side(side(effect)));
                assert_eq!(effect.id.actor, readers[0]);
                let feeds: Vec<Vec<usize>> = readers.iter().map(|who| plain.feed(*who, by)).collect();
                let ages: Vec<f64> =
                    feeds.iter().flatten().map(|post| f64::from(now - plain.posts[*post].round)).collect();
                let mean = |sum: f64, n: usize| sum / n.max(1) as f64;
                let sum = readers.iter().map(|who| stances[*who as usize]).sum();
                for (from, to, expected) in [
                    ("a group of ", " people", readers.len() as f64),
                    ("ROWS", "AGE", mean(ages.len() as f64, readers.len())),
                    ("AGE", "STANCE", mean(ages.iter().sum(), ages.len())),
                    ("STANCE", "END", mean(sum, readers.len())),
                ] {
                    let got = told(&words, from, to);
                    assert!((got - expected).abs() <= 1e-5 * expected.abs().max(1e-3), "{from} {got} {expected}");
                }
            }
            let mut expected: Vec<(u32, u16, f64)> = Vec::new();
            for who in (0..700).filter(looks) {
                let shares = SHARES[usize::from(stances[who as usize] >= 0.0)];
                let mut draw = Draws::new(SEED, Stream::Turn, now, who).unit() * shares.iter().sum::<f64>();
                let picked = shares.iter().position(|share| {
                    draw -= share;
                    draw < 0.0
                });
                let Some(kind) = ACTS.get(picked.unwrap_or(6)).copied() else { continue };
                let first = plain.feed(who, by).first().copied();
                let value = match kind {
                    POST => Some(0.0),
                    // Ranked by hot score, the feed shows only users who are not followed; otherwise only followed ones.
                    FOLLOW => first.filter(|_| by_hot).map(|post| f64::from(plain.posts[post].author)),
                    UNFOLLOW => first.filter(|_| !by_hot).map(|post| f64::from(plain.posts[post].author)),
                    _ => first.map(|post| post as f64),
                };
                expected.extend(value.map(|value| (who, kind, value)));
            }
            let acts = society.acts().flat_map(|block| block.rows.iter().map(|act| (act.who, act.kind, act.value)));
            assert_eq!(acts.collect::<Vec<_>>(), expected, "round {now}, hot {by_hot}");
            assert!(society.acts().all(|block| block.texts.is_empty()));
            for (who, kind, value) in expected {
                done[ACTS.iter().position(|act| *act == kind).unwrap()] += 1;
                match kind {
                    FOLLOW | UNFOLLOW => plain.follows[who as usize].retain(|followed| *followed != value as u32),
                    _ => plain.apply(who, kind, value, now),
                }
            }
        }
        let [.., follows, unfollows] = done;
        assert!(
            done[..4].iter().all(|n| *n > 50) && (follows > 50) == by_hot && (unfollows > 50) != by_hot,
            "{done:?}"
        );
    }
}

#[test]
fn archetypes_ask_for_groups_and_not_for_people() {
    let calls = |agents: u32| {
        let mut society = witnessed(&archetypes(agents, true, json!({})), 1);
        let mut asked = Vec::new();
        while let Ok((of_round, _)) = testing::round(&mut society, &mut shares) {
            asked.push(of_round.len());
        }
        asked
    };
    assert_eq!((calls(400), calls(4000)), (vec![2; 12], vec![2; 12]));
    // If nobody is active, nobody is asked.
    let mut night = archetypes(400, true, json!({}));
    night["world"]["hours"] = json!(vec![0; 24]);
    let mut society = witnessed(&night, 1);
    while let Ok((asked, report)) = testing::round(&mut society, &mut shares) {
        assert_eq!((asked.len(), report.acts), (0, 0));
    }
}

#[test]
fn archetypes_that_are_stopped_go_on_as_they_were() {
    let scenario = archetypes(400, true, json!({"every": 2, "memory": 2}));
    let (mut whole, mut stopped) = (witnessed(&scenario, 1), witnessed(&scenario, 3));
    let mut acts = 0;
    while let (Ok((asked, a)), Ok((other, b))) =
        (testing::round(&mut whole, &mut shares), testing::round(&mut stopped, &mut shares))
    {
        assert_eq!((a.chain, asked.len()), (b.chain, other.len()), "round {}", a.round);
        assert_eq!(asked.len(), if a.round % 2 == 0 { 2 } else { 0 });
        acts += a.acts;
        let saved = stopped.snapshot().unwrap();
        stopped = witnessed(&scenario, 1 + a.round as usize % 3);
        stopped.restore(&saved).unwrap();
    }
    assert!(acts > 300, "{acts}");
}

#[test]
fn archetypes_may_be_asked_what_one_of_them_does() {
    // All acts of the platform: those that carry numbers and choices, too.
    let changes = json!({"samples": 3, "acts": null, "by": []});
    let mut society = witnessed(&archetypes(300, true, changes), 2);
    let mut answer = |effect: &Effect| {
        let ResponseFormat::Record(fields) = &effect.request.response_format else { panic!("no record") };
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["act", "words", "search", "join", "leave", "think"]);
        // A comment with words, a stance, nothing.
        let act = [3, 13, 14][effect.request.sample as usize % 3];
        let choice = || Said::Choice(5);
        let words = Said::Text("I see.".into());
        says(Said::Record(vec![Said::Choice(act), words, choice(), choice(), choice(), Said::Number(0.25)]))
    };
    let (mut comments, mut thoughts) = (0, 0);
    while let Ok((asked, report)) = testing::round(&mut society, &mut answer) {
        assert_eq!(asked.len(), 3);
        for block in society.acts() {
            for (i, act) in block.rows.iter().enumerate() {
                match act.kind {
                    3 => assert_eq!(block.text(i), Some("I see.")),
                    kind => assert_eq!((kind, act.value), (THINK, 0.25)),
                }
                comments += u32::from(act.kind == 3);
                thoughts += u32::from(act.kind == THINK);
            }
        }
        assert_eq!(metric(&report, "refused"), 0.0);
    }
    // Nobody posts, so there is nothing to comment on.
    assert!(comments == 0 && thoughts > 200, "{comments} {thoughts}");
}

#[test]
fn archetypes_without_an_answer_do_nothing() {
    for outcome in [
        Outcome::Invalid { raw: "many".into(), why: "no record".into() },
        says(Said::Record(vec![Said::Number(0.0); 7])),
    ] {
        let mut society = witnessed(&archetypes(200, true, json!({"max_retries": 1})), 1);
        while let Ok((asked, report)) = testing::round(&mut society, &mut |_| outcome.clone()) {
            assert!(asked.len() >= 2 && report.acts == 0);
        }
    }
}
