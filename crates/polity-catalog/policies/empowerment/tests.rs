//! Predictions against a world that is known, and skills against the number of states that can be reached.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::Empowerment;
use super::episodes::{Played, Recorded, joined};
use super::latent::Latent;
use super::params::{LatentSource, Learns};
use crate::learning::{Model, NONE, Parts, Rollout, Seen, Step, one_hot};
use crate::testing::{metric, play, refused};
use polity_kernel::rng::{Draws, Stream};
use polity_nn::{Activation, Array, Mlp, Weights};
use serde_json::{Value, json};

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
    let expected = Played {
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
    let rows = joined(&one_hot([1, 0].into_iter(), 2), &Array::column(vec![5.0, 6.0]));
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
fn learned(encoder: Learns, shuffled: bool) -> (Latent, Weights, f64) {
    let mut draws = Draws::new(3, Stream::Learner, 0, 0);
    let mut weights = Weights::default();
    let mut net = |name: &str, sizes: &[usize]| Mlp::new(&mut weights, name, sizes, Activation::Tanh, 1.0, &mut draws);
    let nets = [net("encoder", &[13, 16, 6]), net("predictor", &[9, 16, 6])];
    let decoder = (encoder == Learns::Reconstruction).then(|| net("decoder", &[6, 13]));
    let latent = Latent::new(LatentSource { size: 6, encoder, shuffled }, nets, decoder, 3);
    let (mut model, mut losses) = (Model::new(&weights), Vec::new());
    for _ in 0..600 {
        let (recorded, _) = walk(512, &mut draws);
        let found = latent.learn(&model.weights, &recorded, &mut draws).unwrap();
        losses.push(found.losses[0]);
        model.descend(found, 0.01, 10.0).unwrap();
    }
    (latent, model.weights.clone(), losses[550..].iter().sum::<f64>() / 50.0)
}

/// The probability of a place after a place and a choice.
fn truth(place: u32, choice: u32, then: u32) -> f64 {
    let goal = (place + [0, 1, 8][choice as usize]) % 9;
    0.8 * f64::from(u8::from(then == goal)) + 0.2 * f64::from(u8::from(then == place))
}

#[test]
fn the_model_predicts_as_the_world_does() {
    let (latent, weights, loss) = learned(Learns::Prediction, false);
    let mut draws = Draws::new(4, Stream::Learner, 0, 0);
    let (recorded, steps) = walk(4_096, &mut draws);
    // The same loss with the probabilities of the world, each step among the next 31.
    let least = (0..steps.len()).map(|i| {
        let (place, choice, _) = steps[i];
        let ratio = |k: usize| truth(place, choice, steps[(i + k) % steps.len()].2);
        libm::log((0..32).map(ratio).sum::<f64>() / ratio(0))
    });
    let least = least.sum::<f64>() / steps.len() as f64;
    assert!(loss > 0.95 * least && loss < 1.1 * least, "{loss} {least}");
    let candidates = latent.candidates(&weights, &recorded, &mut Draws::new(5, Stream::Learner, 0, 0));
    let mut draws = Draws::new(5, Stream::Learner, 0, 0);
    let places: Vec<u32> = (0..512).map(|_| steps[draws.below(4_096) as usize].2).collect();
    let states = latent.encoded(&weights, &recorded.episodes.states);
    for (place, choice, goal) in [(0, 0, 0), (3, 1, 4), (7, 2, 6)] {
        let rows: Vec<u32> =
            (0..4_096).filter(|i| (steps[*i as usize].0, steps[*i as usize].1) == (place, choice)).collect();
        let choices = vec![choice; rows.len()];
        let next = latent.next(&weights, &candidates, &states.pick(&rows), &choices, &mut draws);
        let place_of = |row: usize| (0..512).find(|i| candidates.row(*i) == next.row(row)).map(|i| places[i]);
        let went = (0..rows.len()).filter(|row| place_of(*row) == Some(goal)).count() as f64 / rows.len() as f64;
        assert!((went - truth(place, choice, goal)).abs() < 0.15, "{place} {choice}: {went}");
    }
}

#[test]
fn nothing_is_known_after_other_decisions_and_less_from_what_reconstructs() {
    let loss = |encoder, shuffled| learned(encoder, shuffled).2;
    let shuffled = loss(Learns::Prediction, true);
    assert!((shuffled - 32f64.ln()).abs() < 0.05, "{shuffled}");
    let [predicts, reconstructs] = [Learns::Prediction, Learns::Reconstruction].map(|encoder| loss(encoder, false));
    assert!(reconstructs > predicts + 0.1, "{predicts} {reconstructs}");
}

#[test]
fn rewards_are_a_lower_bound_of_the_information() {
    let mut draws = Draws::new(6, Stream::Learner, 0, 0);
    let mut weights = Weights::default();
    let mut net = |name: &str, sizes: &[usize]| Mlp::new(&mut weights, name, sizes, Activation::Tanh, 0.01, &mut draws);
    let (policy, posterior) = (net("policy", &[12, 2]), net("posterior", &[4, 8]));
    let params = serde_json::from_value(json!({})).unwrap();
    let learner = Empowerment { params, skills: 8, choices: 2, observed: 4, policy, posterior, latent: None };
    // Eight skills end in four states: each state tells a pair of them.
    let skills: Vec<u32> = (0..64).map(|i| i % 8).collect();
    let ends: Vec<u32> = skills.iter().map(|skill| skill % 4).collect();
    let episodes = Played {
        states: one_hot(ends.iter().map(|end| *end as usize), 4),
        masks: Array::zeros(64, 2),
        choices: vec![0; 64],
        of: (0..64).collect(),
        ends: one_hot(ends.iter().map(|end| *end as usize), 4),
        skills,
    };
    let mut model = Model::new(&weights);
    let bound = |weights: &Weights| {
        let rewards = learner.rewards(weights, &episodes);
        let above = learner.advantages(&rewards, &episodes.skills);
        assert!(above.iter().all(|above| above.abs() < 1e-5), "{above:?}");
        f64::from(rewards.iter().sum::<f32>()) / 64.0
    };
    assert!(bound(&model.weights).abs() < 0.01);
    for _ in 0..300 {
        let found = learner.learn(&model.weights, &episodes).unwrap();
        model.descend(found, 0.03, 10.0).unwrap();
        assert!(bound(&model.weights) < 4f64.ln() + 1e-5);
    }
    assert!(bound(&model.weights) > 0.98 * 4f64.ln());
}

/// Skills in a corridor without noise, of five places whose ends are two steps from the start. `more`: further keys of the policy.
fn corridor(rounds: u32, more: &Value) -> Value {
    let mut policy = json!({"kind": "empowerment", "skills": 8, "observe": ["place"], "latent": {"size": 4}});
    more.as_object().unwrap().iter().for_each(|(key, value)| policy[key] = value.clone());
    json!({"seed": 1, "rounds": rounds, "agents": 256, "topology": {"kind": "none"},
        "world": {"kind": "formula-game", "players": 8, "rounds": 5, "payoff": 0,
            "actions": {"go": {"options": ["left", "right", "stay"]}},
            "variables": {"x": {"initial": 0}, "skill": {"initial": "seat - 1"}},
            "phases": [{"actions": ["go"], "update": [{"set": "x",
                "to": "clamp(x + (1 if go == \"right\" else -1 if go == \"left\" else 0), -2, 2)"}]}],
            "observations": {"place": {"value": "x / 2"}}},
        "cohorts": [{"policy": policy}],
        "metrics": [{"kind": "mutual-information", "of": ["skill", "x"]}]})
}

#[test]
fn skills_end_in_different_places() {
    let count = |more: Value| {
        let mut all = json!({"stop": 1_495, "entropy_weight": 0.05, "choose": "sampled"});
        more.as_object().unwrap().iter().for_each(|(key, value)| all[key] = value.clone());
        let played = play(&corridor(5 * 300 - 1, &all));
        metric(played.rounds.last().unwrap(), "skill+x.mutual-information.count")
    };
    // There are five places.
    for more in [json!({}), json!({"latent": null})] {
        let found = count(more);
        assert!(found > 2.5 && found < 5.1, "{found}");
    }
    let shuffled = count(json!({"latent": {"size": 4, "shuffled": true}}));
    assert!(shuffled < 1.5, "{shuffled}");
}

#[test]
fn what_cannot_be_learned_is_refused() {
    for (more, key) in [
        (json!({"skills": 1}), "skills"),
        (json!({"latent": {"size": 0}}), "size"),
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
