//! Codes against the counting bound, messages against the bits that they were made from, and losses of whole games.

use super::code::Code;
use super::signal::{Signal, WORDS, heard};
use super::{Channel, Coding};
use crate::testing::{metric, open, play, play_with, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::messages::{Body, Bucket};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const CHANNELS: [Channel; 3] = [Channel::Text, Channel::Record, Channel::Vector];

fn game(agents: u32, facts: u32, policy: Value) -> Value {
    let mut policy = policy;
    policy["kind"] = "signaller".into();
    json!({
        "seed": 5, "rounds": 21, "agents": agents, "topology": {"kind": "none"},
        "world": {"kind": "reference-game", "facts": facts}, "cohorts": [{"policy": policy}],
        "metrics": [{"kind": "mean", "of": "tokens"}],
    })
}

/// The facts that any code with this many messages loses at least, summed over all objects: each message is understood as one object, and at
/// most C(facts, d) objects differ from that in d facts.
fn least_loss(facts: u32, messages: u64) -> u64 {
    let (mut left, mut ball, mut lost) = (1u64 << facts, 1u64, 0);
    for distance in 0..=u64::from(facts) {
        let taken = left.min(messages * ball);
        (left, lost) = (left - taken, lost + taken * distance);
        ball = ball * (u64::from(facts) - distance) / (distance + 1);
    }
    lost
}

fn loss(code: Code, facts: u32) -> u64 {
    (0..1u32 << facts).map(|object| u64::from((code.decode(code.encode(object)) ^ object).count_ones())).sum()
}

#[test]
fn the_counting_bound_is_what_trying_all_codes_gives() {
    // All ways to understand two messages of three facts, each object sent as the nearer one.
    let of = |a: u32, b: u32| (0..8u32).map(|x| u64::from((x ^ a).count_ones().min((x ^ b).count_ones()))).sum::<u64>();
    let best = (0..8).flat_map(|a| (0..8).map(move |b| of(a, b))).min();
    assert_eq!(best, Some(least_loss(3, 2)));
    // Textbook values of seven facts: nothing is said, a majority, Hamming's code, everything is said.
    assert_eq!([1, 2, 16, 128].map(|messages| least_loss(7, messages)), [448, 308, 112, 0]);
}

#[test]
fn perfect_codes_lose_as_few_facts_as_any_code_can() {
    for (facts, amount) in [(3, 1), (7, 1), (7, 4), (15, 1), (15, 11), (5, 1), (7, 7)] {
        let code = Code::of(Coding::Perfect, facts, amount).unwrap();
        let sent: BTreeSet<u32> = (0..1 << facts).map(|object| code.encode(object)).collect();
        assert_eq!(sent.len(), 1 << amount, "{facts} {amount}");
        assert_eq!(sent.last(), Some(&((1 << amount) - 1)));
        assert_eq!(loss(code, facts), least_loss(facts, 1 << amount), "{facts} {amount}");
    }
    // Facts that are not sent are guessed: half of them are wrong, which no code undercuts and Hamming's beats.
    for facts in 1..=9 {
        for amount in 1..=facts {
            let found = loss(Code::of(Coding::Facts, facts, amount).unwrap(), facts);
            assert_eq!(found, u64::from(facts - amount) << (facts - 1));
            assert!(found >= least_loss(facts, 1 << amount), "{facts} {amount}");
        }
    }
    assert_eq!(loss(Code::of(Coding::Facts, 7, 4).unwrap(), 7), 192);
}

#[test]
fn every_channel_carries_the_bits_that_it_was_given() {
    let words: BTreeSet<&str> = WORDS.iter().flat_map(|(name, words)| [*name, words[0], words[1]]).collect();
    assert_eq!(words.len(), 3 * WORDS.len(), "no word says two things");
    for channel in CHANNELS {
        for (amount, bits) in [(1, 1), (4, 4), (7, 8), (11, 4), (15, 16), (15, 1), (15, 4)] {
            for sent in (0..1u32 << amount).step_by(1 + (1 << amount) / 500) {
                let mut kept = Bucket::default();
                let signal = Signal::of(channel, sent, amount, bits);
                match &signal {
                    Signal::Text(text) => kept.text(0, 1, 0, text),
                    Signal::Record(fields) => kept.record(0, 1, 0, &serde_json::to_string(fields).unwrap()),
                    Signal::Vector(numbers) => {
                        assert_eq!(numbers.len(), amount.div_ceil(bits) as usize);
                        kept.vector(0, 1, 0, numbers);
                    }
                }
                let body = kept.inbox().get(0).unwrap().body;
                assert_eq!(heard(&body, bits), sent, "{channel:?} {amount} {bits}: {body}");
                assert_eq!(signal.tokens(), body.tokens());
            }
        }
    }
    // What has no meaning is taken for 0.
    for body in [Body::Text("a large grue"), Body::Record(r#"{"size":"large","taste":7}"#), Body::Number(3.0)] {
        assert!([0, 2].contains(&heard(&body, 8)), "{body}");
    }
}

/// (channel, code, bits of a message, the expected share of lost facts)
const LOSSES: [(&str, &str, u32, f64); 8] = [
    ("text", "facts", 7, 0.0),
    ("record", "facts", 7, 0.0),
    ("vector", "facts", 7, 0.0),
    ("text", "facts", 4, 3.0 / 14.0),
    ("record", "facts", 4, 3.0 / 14.0),
    ("vector", "perfect", 4, 1.0 / 8.0),
    ("text", "perfect", 4, 1.0 / 8.0),
    ("vector", "perfect", 1, 11.0 / 32.0),
];

#[test]
fn whole_games_lose_what_theory_says() {
    for (channel, code, amount, expected) in LOSSES {
        let policy = json!({"channel": channel, "code": code, "amount": amount});
        let played = play(&game(1000, 7, policy.clone()));
        let end = played.rounds.last().unwrap();
        // 20 rounds of 500 objects; a share of seven facts varies by at most 1/2.
        let five_sigma = 5.0 * 0.5 / 10_000f64.sqrt();
        let lost = metric(end, "facts-lost");
        let exact = expected == 0.0 && lost == 0.0;
        assert!(exact || expected > 0.0 && (lost - expected).abs() < five_sigma, "{policy}: {lost}");
        // The information bound; the estimate is too high by 7 / (2 n ln 2) = 0.0005 bits.
        assert!(metric(end, "bits-told") < f64::from(amount) + 0.01, "{policy}: {}", metric(end, "bits-told"));
        assert_eq!(metric(end, "silent"), 0.0);
        // The placebo says as much and tells nothing.
        let mut policy = policy;
        policy["placebo"] = true.into();
        let end = play(&game(1000, 7, policy.clone())).rounds.pop().unwrap();
        let (lost, told) = (metric(&end, "facts-lost"), metric(&end, "bits-told"));
        assert!((lost - 0.5).abs() < five_sigma && told < 0.01, "{policy}: {lost} {told}");
    }
}

/// Messages of 4,500 pairs cross from block to block, and so from shard to shard.
#[test]
fn records_and_vectors_cross_shards() {
    for channel in ["text", "record", "vector"] {
        let mut scenario = game(9000, 7, json!({"channel": channel}));
        scenario["rounds"] = 3.into();
        let ends = [1, 3].map(|shards| {
            let played = play_with(&scenario, &Inputs::default(), shards);
            let end = played.rounds.last().unwrap();
            (format!("{:?}", end.chain), metric(end, "right"), played.society.carried() > 0)
        });
        assert_eq!(ends[0].0, ends[1].0, "{channel}");
        assert_eq!((ends[0].1, ends[1].1), (1.0, 1.0), "{channel}");
        assert!(ends[1].2, "{channel}");
    }
}

/// The digest of a round has the content of its messages, and their form.
#[test]
fn the_digest_tells_messages_apart() {
    let first = |policy: Value| {
        let mut scenario = game(2, 7, policy);
        scenario["rounds"] = 1.into();
        scenario["metrics"] = json!([]);
        let mut society = open(&scenario, &Inputs::default(), 1).unwrap();
        let Then::Round(report) = society.poll(Vec::new()).unwrap().then else { panic!("no round") };
        let mut shown = Vec::new();
        society.each_message(|to, message| shown.push((to, message.from, message.body.to_string())));
        assert_eq!((shown.len(), shown[0].0, shown[0].1), (1, 1, 0), "{shown:?}");
        (format!("{:?}", report.chain), shown.pop().unwrap().2)
    };
    let texts = CHANNELS.map(|channel| format!("{channel:?}").to_lowercase());
    let all: Vec<(String, String)> = texts
        .iter()
        .flat_map(|channel| [false, true].map(|placebo| first(json!({"channel": channel, "placebo": placebo}))))
        .collect();
    let digests: BTreeSet<&String> = all.iter().map(|(digest, _)| digest).collect();
    assert_eq!(digests.len(), all.len(), "{all:?}");
    assert!(all[2].1.starts_with("{\"age\":\"") && all[4].1.starts_with("[0."), "{all:?}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let cases = [
        (7, json!({"amount": 8}), "amount"),
        (7, json!({"amount": 0}), "amount"),
        (7, json!({"amount": 3, "code": "perfect"}), "no perfect code sends 3 bits of 7"),
        (6, json!({"amount": 1, "code": "perfect"}), "no perfect code sends 1 bits of 6"),
        (7, json!({"bits": 17}), "bits"),
        (7, json!({"bits": 0}), "bits"),
    ];
    for (facts, policy, word) in cases {
        let error = refused(&game(10, facts, policy));
        assert!(error.contains(word), "{word}: {error}");
    }
}
