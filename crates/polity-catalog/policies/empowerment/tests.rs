//! Codes and predictions against a world that is known, and skills against the number of states that can be reached.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::episodes::{Episodes, Recorded, joined, one_hot};
use super::latent::Latent;
use super::params::{LatentSource, Learns};
use crate::learning::{Model, NONE, Parts, Rollout, Seen, Step};
use crate::testing::{metric, play, refused};
use polity_kernel::rng::{Draws, Stream};
use polity_nn::{Activation, Array, Mlp, Weights};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn seen(inputs: [f32; 2], ended: [bool; 2]) -> Seen {
    // Numbers of a state are followed by those of two skills.
    let rows = [[inputs[0], 0.0, 1.0], [inputs[1], 1.0, 0.0]];
    Seen {
        agents: vec![3, 4],
        inputs: Array::new(2, 3, rows.concat()),
        rewards: vec![0.0; 2],
        ended: ended.to_vec(),
        cut: vec![false; 2],
        active: vec![true; 2],
        mask: Array::zeros(2, 4),
    }
}

#[test]
fn the_state_of_the_last_decision_is_the_end() {
    let (mut rollout, mut parts) = (Rollout::default(), Parts::default());
    // The episode of agent 3 has three decisions. That of agent 4 has two, and it has no turn in between.
    let rounds = [([10.0, 20.0], [0, 1]), ([11.0, 21.0], [2, NONE]), ([12.0, 22.0], [3, 3])];
    for (now, (inputs, choices)) in (0u32..).zip(rounds) {
        let seen = seen(inputs, [false; 2]);
        assert!(!parts.note(&seen, now, now == 0));
        rollout.push(Step { seen, choices: choices.to_vec(), ..Step::default() });
    }
    assert!(parts.note(&seen([0.0; 2], [true; 2]), 3, false));
    let recorded = Recorded::gather(&rollout, &parts, 1);
    let expected = Episodes {
        states: Array::column(vec![10.0, 11.0, 20.0]),
        masks: Array::zeros(3, 4),
        choices: vec![0, 2, 1],
        of: vec![0, 0, 1],
        ends: Array::column(vec![12.0, 22.0]),
        skills: vec![1, 0],
    };
    assert_eq!(recorded.episodes, expected);
    assert_eq!((recorded.then.data(), recorded.starts.data()), (&[11.0, 12.0, 22.0][..], &[10.0, 20.0][..]));
    assert_eq!(recorded.longest, 2);
    let rows = joined(&one_hot(&[1, 0], 2), &Array::column(vec![5.0, 6.0]));
    assert_eq!(rows, Array::new(2, 3, vec![0.0, 1.0, 5.0, 1.0, 0.0, 6.0]));
}

/// A walk on nine places in a circle, up, down or not at all, which fails with probability 0.2. The place is seen in nine numbers, among four
/// numbers without meaning.
fn walk(n: usize, draws: &mut Draws) -> (Recorded, Vec<(u32, u32, u32)>) {
    let (mut recorded, mut steps) = (Recorded::default(), Vec::new());
    let see = |place: u32, draws: &mut Draws| {
        let mut row = vec![0.0; 13];
        row[place as usize] = 1.0;
        row[9..].iter_mut().for_each(|x| *x = 2.0 * draws.unit() as f32 - 1.0);
        row
    };
    for _ in 0..n {
        let [place, choice] = [9, 3].map(|of| draws.below(of) as u32);
        let then = if draws.chance(0.2) { place } else { (place + [0, 1, 8][choice as usize]) % 9 };
        recorded.episodes.states.push(&see(place, draws));
        recorded.episodes.choices.push(choice);
        recorded.then.push(&see(then, draws));
        steps.push((place, choice, then));
    }
    (recorded, steps)
}

/// Learns a latent model of the walk. Returns it with its weights, and its last loss.
fn learned(source: LatentSource, updates: usize) -> (Latent, Weights, f64) {
    let mut draws = Draws::new(3, Stream::Learner, 0, 0);
    let mut weights = Weights::default();
    let mut net = |name: &str, sizes: &[usize]| Mlp::new(&mut weights, name, sizes, Activation::Tanh, 1.0, &mut draws);
    let codes = source.codes;
    let [encoder, dynamics] = [net("encoder", &[13, 16, codes]), net("dynamics", &[codes, 3 * codes])];
    let decoder = (source.encoder == Learns::Reconstruction).then(|| net("decoder", &[codes, 13]));
    let latent = Latent::new(source, [encoder, dynamics], decoder, 3);
    let (mut model, mut loss) = (Model::new(&weights), 0.0);
    for _ in 0..updates {
        let (recorded, _) = walk(512, &mut draws);
        let found = latent.learn(&model.weights, &recorded, &mut draws).unwrap();
        loss = found.losses[0];
        model.descend(found, 0.01, 10.0).unwrap();
    }
    (latent, model.weights.clone(), loss)
}

#[test]
fn codes_hold_all_that_can_be_predicted() {
    let source = LatentSource { codes: 24, encoder: Learns::Prediction, shuffled: false };
    let (latent, weights, loss) = learned(source, 400);
    // The information of place and choice about the next place: log 9 less the entropy of whether the walk fails, in two of three choices.
    let noise = -(0.8f64 * 0.8f64.ln() + 0.2 * 0.2f64.ln());
    let all = 9f64.ln() - 2.0 / 3.0 * noise;
    assert!(-loss > 0.93 * all && -loss < 1.07 * all, "{loss} {all}");
    // Different places have different codes, and the model predicts as the world does.
    let mut draws = Draws::new(4, Stream::Learner, 0, 0);
    let (recorded, steps) = walk(4_000, &mut draws);
    let [codes, then] = [&recorded.episodes.states, &recorded.then].map(|of| latent.encoded(&weights, of));
    let mut places: BTreeMap<u32, u32> = BTreeMap::new();
    let same = steps.iter().zip(&codes).filter(|((place, ..), code)| places.entry(**code).or_insert(*place) == place);
    let same = same.count();
    assert!(same > 3_900, "{same}");
    let table = latent.table(&weights);
    for (place, choice) in [(0, 0), (3, 1), (7, 2)] {
        let rows: Vec<usize> = (0..steps.len()).filter(|i| (steps[*i].0, steps[*i].1) == (place, choice)).collect();
        let goal = (place + [0, 1, 8][choice as usize]) % 9;
        let went = rows.iter().filter(|i| steps[**i].2 == goal).count() as f64 / rows.len() as f64;
        let likely = |i: &usize| {
            let next = table.next(codes[*i], choice as u16);
            next.iter()
                .zip(0u32..)
                .filter(|(_, code)| places.get(code) == Some(&goal))
                .map(|(log, _)| f64::from(log.exp()))
                .sum::<f64>()
        };
        let told = rows.iter().map(likely).sum::<f64>() / rows.len() as f64;
        assert!((told - went).abs() < 0.1, "{place} {choice}: {told}, not {went}");
    }
    assert!(then.iter().all(|code| places.contains_key(code)));
}

#[test]
fn nothing_is_known_after_other_decisions_or_from_codes_of_noise() {
    let source = LatentSource { codes: 24, encoder: Learns::Prediction, shuffled: true };
    let (.., loss) = learned(source, 200);
    assert!(loss > -0.3, "{loss}");
    let places = |encoder: Learns| {
        let (latent, weights, _) = learned(LatentSource { codes: 24, encoder, shuffled: false }, 200);
        let (recorded, steps) = walk(4_000, &mut Draws::new(4, Stream::Learner, 0, 0));
        let codes = latent.encoded(&weights, &recorded.episodes.states);
        let mut pairs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        steps.iter().zip(codes).for_each(|((place, ..), code)| *pairs.entry((code, *place)).or_default() += 1);
        // The share of states whose place is the most frequent one of their code.
        let most = |code: u32| (0..9).map(|place| pairs.get(&(code, place)).copied().unwrap_or(0)).max().unwrap();
        (0..24).map(most).sum::<usize>() as f64 / steps.len() as f64
    };
    let (predicted, reconstructed) = (places(Learns::Prediction), places(Learns::Reconstruction));
    assert!(predicted > 0.95 && reconstructed < predicted, "{predicted} {reconstructed}");
}

/// Skills in a corridor without noise, of five places whose ends are two steps from the start. `more`: further keys of the policy.
fn corridor(rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "empowerment", "skills": 8, "observe": ["place"], "latent": {"codes": 12}});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": 256, "topology": {"kind": "none"},
        "world": {"kind": "formula-game", "players": 8, "rounds": 5, "payoff": 0,
            "actions": {"go": {"options": ["left", "right", "stay"]}},
            "variables": {"x": {"initial": 0}, "ended": {"initial": 0}},
            "phases": [
                {"actions": ["go"], "update": [{"set": "x", "to": "clamp(x + (1 if go == \"right\" else -1 if go == \"left\" else 0), -2, 2)"}]},
                {"update": [{"set": "ended", "to": "(x + 2) * 8 + seat - 1"}]}],
            "observations": {"place": {"value": "x / 2"}}},
        "cohorts": [{"policy": policy}],
        "metrics": [{"kind": "mutual-information", "of": "ended", "second": 8}]})
}

#[test]
fn skills_reach_as_many_states_as_there_are() {
    let count =
        |more| metric(play(&corridor(5 * 200 - 1, &more)).rounds.last().unwrap(), "ended.mutual-information.count");
    // There are five places. With eight skills, of which some end in the same place, at least four should be told apart.
    for more in [json!({"stop": 995}), json!({"stop": 995, "latent": null})] {
        let found = count(more);
        assert!(found > 4.0 && found < 5.1, "{found}");
    }
    let shuffled = count(json!({"stop": 995, "latent": {"codes": 12, "shuffled": true}}));
    assert!(shuffled < 3.5, "{shuffled}");
}

#[test]
fn what_cannot_be_learned_is_refused() {
    for (more, key) in [
        (json!({"skills": 1}), "skills"),
        (json!({"latent": {"codes": 1}}), "codes"),
        (json!({"learning_rate": 0.0}), "learning_rate"),
    ] {
        let why = refused(&corridor(1, &more));
        assert!(why.contains(key), "{why}");
    }
    let mut scenario = corridor(1, &json!({"observe": null}));
    scenario["world"] = json!({"kind": "dilemma"});
    let why = refused(&scenario);
    assert!(why.contains("dilemma"), "{why}");
}
