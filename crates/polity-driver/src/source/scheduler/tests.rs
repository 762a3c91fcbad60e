//! The scheduler against a clock of its own.

#![allow(clippy::unwrap_used)]
use super::*;
use polity_kernel::ask::{Asker, Outcome, ResponseFormat, Value};

fn open(connections: usize) -> Scheduler {
    Scheduler::new(Rules { connections: 4 * connections, ..Rules::default() })
}

fn effect(actor: u32) -> Effect {
    let request = Request::new("openai/m", Vec::new(), ResponseFormat::Text);
    Effect {
        id: EffectId { item: 0, round: 0, actor, asker: Asker::Agent, n: 0 },
        request,
        hidden: None,
        default: None,
    }
}

fn key() -> Option<Key> {
    Key::of("here", &effect(0).request)
}

fn exchange() -> Exchange {
    let outcome = Outcome::Reply { value: Value::Text("x".into()), raw: "x".into(), repaired: false };
    Exchange { outcome, usage: Usage { cost_usd: 0.5, ..Usage::default() }, reasoning: None }
}

fn who(call: &Call) -> u32 {
    call.effect.id.actor
}

#[test]
fn the_same_question_is_asked_once_while_it_is_under_way() {
    let now = Instant::now();
    let mut scheduler = open(10);
    (0..5).for_each(|actor| scheduler.begin(effect(actor), key(), 0, now));
    scheduler.begin(effect(9), None, 0, now);
    let first = scheduler.next(now).unwrap();
    let alone = scheduler.next(now).unwrap();
    assert!(scheduler.next(now).is_none());
    assert_eq!((who(&first), who(&alone), scheduler.following()), (0, 9, 4));
    let answers = scheduler.answered(first, exchange(), now);
    assert_eq!(
        answers.iter().map(|a| (a.id.actor, a.usage.shared)).collect::<Vec<_>>(),
        [(0, false), (1, true), (2, true), (3, true), (4, true)]
    );
    // Their would-be cost is reported, for the budget.
    assert!(answers.iter().all(|answer| answer.usage.cost_usd == 0.5) && scheduler.following() == 0);
    // Afterwards it is sent again.
    scheduler.begin(effect(7), key(), 0, now);
    assert_eq!(who(&scheduler.next(now).unwrap()), 7);
}

/// Retries them, as a budget that allows it does.
fn return_all(scheduler: &mut Scheduler, now: Instant) -> Vec<Broken> {
    let broken = scheduler.take_broken();
    broken.iter().filter(|broken| broken.again).for_each(|b| scheduler.begin(b.effect.clone(), None, 0, now));
    broken
}

#[test]
fn a_request_without_an_answer_is_handed_out_and_those_that_share_it_go_on() {
    let now = Instant::now();
    let mut scheduler = open(10);
    (0..3).for_each(|actor| scheduler.begin(effect(actor), key(), 0, now));
    let first = scheduler.next(now).unwrap();
    let most = Usage { cost_usd: 2.0, ..Usage::default() };
    assert!(matches!(scheduler.retry(first, "cut", None, Some(most), now), After::Again));
    let broken = scheduler.take_broken();
    assert_eq!((broken.len(), broken[0].charged, broken[0].effect.id.actor), (1, Some(most), 0));
    // The second is sent now, when the pause is over, and counts the tries of the first.
    assert!(scheduler.next(now).is_none());
    let due = scheduler.next_due(now).unwrap();
    let second = scheduler.next(due).unwrap();
    assert_eq!((who(&second), scheduler.following()), (1, 1));
    // The first comes back, and shares.
    scheduler.begin(broken.into_iter().next().unwrap().effect, key(), 0, now);
    assert_eq!(scheduler.following(), 2);
    let answers = scheduler.answered(second, exchange(), now);
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0].usage.retries, 1);
}

#[test]
fn who_is_told_to_wait_while_others_are_answered_waits_for_its_turn() {
    let mut now = Instant::now();
    let mut scheduler = open(10);
    scheduler.begin(effect(0), None, 0, now);
    for _ in 0..1000 {
        let call = scheduler.next(now).unwrap();
        scheduler.begin(effect(1), None, 0, now);
        let other = scheduler.next(now).unwrap();
        let _ = scheduler.answered(other, exchange(), now);
        assert!(matches!(scheduler.retry(call, "429", Some(20_000), None, now), After::Again));
        assert!(return_all(&mut scheduler, now).iter().all(|broken| broken.charged.is_none()));
        let due = scheduler.next_due(now).unwrap();
        assert!(due >= now + Duration::from_secs(20) && due <= now + Duration::from_secs(25));
        now = due;
    }
}

/// Lets a request fail until the run is lost: tries, and the time since the first.
fn fails(scheduler: &mut Scheduler, mut now: Instant, others: bool) -> (u32, Duration) {
    scheduler.begin(effect(0), None, 0, now);
    let began = now;
    for tries in 1..10_000 {
        let call = scheduler.next(now).unwrap();
        if others {
            scheduler.begin(effect(1), None, 0, now);
            let other = scheduler.next(now).unwrap();
            let _ = scheduler.answered(other, exchange(), now);
        }
        match scheduler.retry(call, "500", None, None, now) {
            After::Again => {
                return_all(scheduler, now);
                let due = scheduler.next_due(now).unwrap();
                assert!(due - now <= LONGEST_PAUSE && due > now);
                now = due;
            }
            After::Lost(why) => {
                assert!(why.contains("500"), "{why}");
                assert!(scheduler.take_broken().iter().all(|broken| !broken.again));
                return (tries, now - began);
            }
        }
    }
    panic!("it must end");
}

#[test]
fn trouble_is_waited_for_as_long_as_the_run_has_patience_and_no_longer() {
    let now = Instant::now();
    let with = |patience| Scheduler::new(Rules { connections: 40, patience, ..Rules::default() });
    // A wrong address shows soon, unless patience is set explicitly.
    assert_eq!(fails(&mut with(None), now, false).0, FIRST_TRIES);
    for patience in [90, 3600] {
        let patience = Duration::from_secs(patience);
        for others in [false, true] {
            let (tries, time) = fails(&mut with(Some(patience)), now, others);
            assert!(time <= patience && time + LONGEST_PAUSE >= patience, "{time:?} {tries}");
        }
    }
    // After a first answer an outage counts as one, however long it was quiet before.
    let mut scheduler = with(None);
    scheduler.begin(effect(7), None, 0, now);
    let call = scheduler.next(now).unwrap();
    let _ = scheduler.answered(call, exchange(), now);
    let (_, time) = fails(&mut scheduler, now + 2 * PATIENCE, false);
    assert!(time <= PATIENCE && time + LONGEST_PAUSE >= PATIENCE, "{time:?}");
}

#[test]
fn when_an_outage_is_over_all_that_wait_are_tried_at_once() {
    let began = Instant::now();
    let mut now = began;
    let mut scheduler = Scheduler::new(Rules { connections: 8, patience: Some(PATIENCE), ..Rules::default() });
    (0..2).for_each(|actor| scheduler.begin(effect(actor), None, 0, now));
    let mut calls: Vec<Call> = (0..2).map(|_| scheduler.next(now).unwrap()).collect();
    for _ in 0..8 {
        for call in calls.drain(..) {
            assert!(matches!(scheduler.retry(call, "refused", None, None, now), After::Again));
        }
        return_all(&mut scheduler, now);
        while calls.len() < 2 {
            now = now.max(scheduler.next_due(now).unwrap());
            calls.push(scheduler.next(now).unwrap());
        }
    }
    let last = calls.pop().unwrap();
    assert!(matches!(scheduler.retry(last, "refused", None, None, now), After::Again));
    return_all(&mut scheduler, now);
    assert!(scheduler.next_due(now).unwrap() > now + Duration::from_secs(10));
    let answers = scheduler.answered(calls.pop().unwrap(), exchange(), now);
    // It waited from its arrival until it was last sent, including all tries: more than the maximum pause.
    let (waited, all) = (answers[0].usage.waited_ms, now.duration_since(began).as_secs_f64() * 1e3);
    assert!(waited > 2.0 * LONGEST_PAUSE.as_secs_f64() * 1e3 && waited <= all, "{waited} of {all} ms");
    assert!(scheduler.next(now).is_some());
}

#[test]
fn a_wait_of_nothing_says_nothing_and_one_that_was_too_short_is_not_believed_again() {
    let id = effect(3).id;
    let mut now = Instant::now();
    let mut scheduler = Scheduler::new(Rules { connections: 8, patience: Some(PATIENCE), ..Rules::default() });
    scheduler.begin(effect(0), None, 0, now);
    let mut pauses = Vec::new();
    for _ in 0..6 {
        let call = scheduler.next(now).unwrap();
        assert!(matches!(scheduler.retry(call, "429", Some(0), None, now), After::Again));
        return_all(&mut scheduler, now);
        let due = scheduler.next_due(now).unwrap();
        pauses.push(due - now);
        now = due;
    }
    assert!(pauses[0] >= FIRST_PAUSE / 2 && pauses[5] >= FIRST_PAUSE * 16, "{pauses:?}");
    assert!(pause(id, 1, 1, Some(20)) < Duration::from_millis(26));
    assert!(pause(id, 5, 5, Some(20)) >= FIRST_PAUSE * 8);
}

#[test]
fn pauses_are_spread_and_grow_and_are_the_same_each_time() {
    let id = |actor| effect(actor).id;
    for n in 1..12 {
        let whole = (FIRST_PAUSE * (1 << (n - 1))).min(LONGEST_PAUSE);
        let pauses: Vec<Duration> = (0..100).map(|actor| pause(id(actor), n, n, None)).collect();
        assert!(pauses.iter().all(|pause| *pause >= whole / 2 && *pause <= whole), "{n}");
        assert!(pauses.iter().collect::<std::collections::BTreeSet<_>>().len() > 90);
        assert_eq!(pauses[7], pause(id(7), n, n, None));
    }
    assert!((0..100).all(|actor| pause(id(actor), 1, 1, Some(1000)) >= Duration::from_secs(1)));
}

#[test]
fn one_model_at_a_time_is_served_until_nothing_of_it_is_left() {
    let now = Instant::now();
    let to = |actor: u32, model: &str| {
        let mut effect = effect(actor);
        effect.request.model = model.into();
        effect
    };
    let by_model = Rules { connections: 12, schedule: Schedule::ByModel, ..Rules::default() };
    let mut scheduler = Scheduler::new(by_model);
    for (actor, model) in ["openai/a", "openai/b", "openai/a", "openai/b", "openai/a"].iter().enumerate() {
        scheduler.begin(to(actor as u32, model), None, 0, now);
    }
    let mut sent: Vec<Call> = std::iter::from_fn(|| scheduler.next(now)).collect();
    assert_eq!(sent.iter().map(who).collect::<Vec<_>>(), [0, 2, 4]);
    // The other model waits for the last answer, and nothing is due before.
    let last = sent.pop().unwrap();
    for call in sent {
        let _ = scheduler.answered(call, exchange(), now);
    }
    assert!(scheduler.next(now).is_none() && scheduler.next_due(now).is_none());
    // A request that waits for a retry does not delay other models.
    assert!(matches!(scheduler.retry(last, "500", None, None, now), After::Again));
    return_all(&mut scheduler, now);
    assert_eq!(scheduler.next_due(now), Some(now));
    let sent: Vec<Call> = std::iter::from_fn(|| scheduler.next(now)).collect();
    assert_eq!(sent.iter().map(who).collect::<Vec<_>>(), [1, 3]);
    for call in sent {
        let _ = scheduler.answered(call, exchange(), now);
    }
    let due = scheduler.next_due(now).unwrap();
    assert!(due > now && scheduler.next(now).is_none());
    assert_eq!(who(&scheduler.next(due).unwrap()), 4);
}

#[test]
fn what_was_never_asked_is_handed_back_with_what_shares_it() {
    let now = Instant::now();
    let mut scheduler = open(1);
    scheduler.begin(effect(0), key(), 0, now);
    let asked = scheduler.next(now).unwrap();
    scheduler.begin(effect(1), key(), 0, now);
    let other = Key::of("there", &effect(2).request);
    (2..5).for_each(|actor| scheduler.begin(effect(actor), other.clone(), 0, now));
    scheduler.begin(effect(5), None, 0, now);
    let back: Vec<u32> = scheduler.take_back().iter().map(|effect| effect.id.actor).collect();
    assert_eq!((back, scheduler.queued(), scheduler.following()), (vec![2, 3, 4, 5], 0, 1));
    // Started again they are sent, but not during a pause, and calls in progress continue.
    scheduler.begin(effect(3), other, 0, now);
    scheduler.connections(0);
    assert!(scheduler.next(now).is_none() && scheduler.next_due(now).is_none());
    scheduler.connections(8);
    assert_eq!(scheduler.answered(asked, exchange(), now).len(), 2);
    assert_eq!(who(&scheduler.next(now).unwrap()), 3);
}

#[test]
fn a_stop_drops_what_is_not_being_asked() {
    let now = Instant::now();
    let mut scheduler = open(10);
    scheduler.begin(effect(0), key(), 0, now);
    let asked = scheduler.next(now).unwrap();
    scheduler.begin(effect(1), key(), 0, now);
    let other = Key::of("there", &effect(2).request);
    scheduler.begin(effect(2), other.clone(), 0, now);
    scheduler.begin(effect(3), other, 0, now);
    assert_eq!((scheduler.following(), scheduler.queued()), (2, 1));
    assert_eq!(scheduler.drop_waiting().iter().map(|id| id.actor).collect::<Vec<_>>(), [2, 3]);
    assert_eq!((scheduler.following(), scheduler.queued(), scheduler.pausing()), (1, 0, 0));
    assert_eq!(scheduler.answered(asked, exchange(), now).len(), 2);
}
