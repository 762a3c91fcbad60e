//! Memories, networks under turns, latent states, perturbations and pictures.
#![allow(clippy::panic, clippy::unwrap_used)]

use super::contrast::Pairs;
use super::convolution::picture;
use super::latent::{Latent, LatentSource};
use super::memory::{LearnsFrom, Lived, MemorySource, Recurrent, Sequences};
use super::perturb::{Candidates, Perturb, PerturbSource, Ranked};
use super::turns::{Symmetry, Turns};
use crate::learning::{Decisions, Model, NONE, Rollout, Seen, Step, Teams, Together};
use polity_kernel::AgentId;
use polity_kernel::rng::{Draws, Stream};
use polity_nn::{Activation, Array, Dense, Gru, Mlp, Tape, Weights, gradients, outputs};

/// A round of some agents. An episode of agent 3 ends in every third round, one of agent 5 in round 4.
fn seen(round: u32, agents: &[AgentId]) -> Seen {
    let n = agents.len();
    let input = |who: &AgentId| [(round * who) as f32 / 10.0, (round as f32 - *who as f32).sin()];
    Seen {
        agents: agents.to_vec(),
        inputs: Array::new(n, 2, agents.iter().flat_map(input).collect()),
        rewards: vec![0.0; n],
        ended: agents.iter().map(|who| *who == 3 && round % 3 == 2 || *who == 5 && round == 4).collect(),
        cut: vec![false; n],
        active: vec![true; n],
        mask: Array::zeros(n, 2),
    }
}

#[test]
fn rounds_gone_through_again_leave_the_same_memories() {
    for forgets in [false, true] {
        let (mut weights, mut draws) = (Weights::default(), Draws::new(2, Stream::Learner, 0, 0));
        let gru = Gru::new(&mut weights, "memory", [2, 4], &mut draws);
        let memory = Recurrent::new(gru, &MemorySource { gru: 4, forgets, learns_from: LearnsFrom::Rewards });
        let mut lived = Lived::default();
        let mut left_by_round = Vec::new();
        for round in 0..10u32 {
            if round == 3 {
                // An update: the rounds are dropped, what is remembered is not.
                lived.clear();
                left_by_round.clear();
            }
            // Agent 8 is not there in rounds 5 and 6, and has no turn in round 8.
            let seen = seen(round, if round == 5 || round == 6 { &[3, 5] } else { &[3, 5, 8] });
            let entered = memory.entering(&lived, &seen);
            let [left] = outputs(&weights, seen.agents.len(), |tape, rows| {
                let (x, before) = (tape.input(seen.inputs.part(rows.clone())), tape.input(entered.part(rows)));
                [memory.on(tape, x, before)]
            });
            let choices = seen.agents.iter().map(|who| if *who == 8 && round == 8 { NONE } else { 0 }).collect();
            let numbers = vec![0.0; seen.agents.len()];
            lived.rollout.push(Step { seen: seen.clone(), choices, logs: numbers.clone(), values: numbers });
            lived.remember(&seen, entered, left.clone());
            left_by_round.push((seen, left));
        }
        let last = seen(10, &[3, 5, 8]);
        let decisions = lived.rollout.decisions(&last, &[0.0; 3], None, |_| true);
        let sequences = Sequences::of(&decisions);
        assert_eq!(sequences.len(), 3);
        let mut tape = Tape::new(&weights);
        let which = [2, 0, 1];
        let again = memory.again(&mut tape, &lived, &sequences, &which, None);
        let again = tape.value(again);
        let all: Vec<u32> = which.iter().flat_map(|agent| sequences.decisions(*agent).iter().copied()).collect();
        assert_eq!((again.rows(), all.len()), (4 + 7 + 7, decisions.len()));
        let mut differ = false;
        for (row, decision) in all.iter().enumerate() {
            let (who, round) = decisions.of[*decision as usize];
            let (seen, left) = &left_by_round[round as usize];
            assert_eq!(again.row(row), left.row(seen.row(who).unwrap()), "agent {who}, round {round}");
            // Without a memory, what is left is made of the round alone.
            let [alone] = outputs(&weights, 1, |tape, _| {
                let x = tape.input(seen.inputs.part(seen.row(who).unwrap()..seen.row(who).unwrap() + 1));
                let nothing = tape.input(Array::zeros(1, 4));
                [memory.on(tape, x, nothing)]
            });
            differ |= alone.row(0) != again.row(row);
            assert!(!forgets || alone.row(0) == again.row(row));
        }
        assert_eq!(differ, !forgets);
    }
}

#[test]
fn what_is_turned_gets_the_turned_choices_and_the_same_value() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let numbers = names(&["x", "y", "goal-0-y", "goal-0-x", "time", "energy"]);
    let choices = names(&["stay", "left", "right", "down", "up"]);
    let turns = Turns::of(Symmetry::QuarterTurns, &numbers, &choices).unwrap();
    let plain = Turns::of(Symmetry::Identity, &numbers, &choices).unwrap();
    let (mut weights, mut draws) = (Weights::default(), Draws::new(3, Stream::Learner, 0, 0));
    let policy = Mlp::new(&mut weights, "policy", &[6, 8, 5], Activation::Tanh, 1.0, &mut draws);
    let value = Mlp::new(&mut weights, "value", &[12, 8, 1], Activation::Tanh, 1.0, &mut draws);
    let view = Array::new(3, 12, (0..36).map(|_| draws.normal() as f32).collect());
    let of = |turns: &Turns, view: &Array| {
        let mut tape = Tape::new(&weights);
        let view = tape.input(view.clone());
        let [logits, values] = turns.mean(&mut tape, [view], |tape, [view]| {
            let own = tape.columns(view, 0, 6);
            [policy.on(tape, own), value.on(tape, view)]
        });
        (tape.value(logits).clone(), tape.value(values).clone())
    };
    let turned = turns.seen(&view);
    // A vector (x, y) becomes (-y, x), wherever its numbers are; what is no vector stays.
    let (before, after) = (view.row(0), turned.row(0));
    assert_eq!([after[0], after[1], after[3], after[2]], [-before[1], before[0], -before[2], before[3]]);
    assert_eq!((after[4], after[5]), (before[4], before[5]));
    let ((logits, values), (turned_logits, turned_values)) = (of(&turns, &view), of(&turns, &turned));
    for row in 0..3 {
        // Left becomes down, right up, down right, up left.
        for (choice, becomes) in [(0, 0), (1, 3), (2, 4), (3, 2), (4, 1)] {
            assert!((logits.row(row)[choice] - turned_logits.row(row)[becomes]).abs() < 1e-6);
        }
        assert!((values.row(row)[0] - turned_values.row(row)[0]).abs() < 1e-6);
        assert!((of(&plain, &view).0.row(row)[1] - of(&plain, &turned).0.row(row)[3]).abs() > 1e-3);
    }
    let why = Turns::of(Symmetry::QuarterTurns, &names(&["x"]), &choices).unwrap_err();
    assert!(why.to_string().contains("`y`"), "{why}");
    let why = Turns::of(Symmetry::QuarterTurns, &numbers, &names(&["push"])).unwrap_err();
    assert!(why.to_string().contains("`up`"), "{why}");
}

#[test]
fn a_team_begins_with_the_agent_itself() {
    for together in [Together::Episode, Together::Strangers] {
        let teams = Teams::new(10, 12, 3, together);
        let agents: Vec<AgentId> = (10..22).collect();
        let numbers = agents.iter().map(|who| *who as f32).collect();
        let seen = Seen { inputs: Array::new(12, 1, numbers), ..seen(0, &agents) };
        let views = teams.views(&seen);
        for (row, who) in agents.iter().enumerate() {
            let team: Vec<f32> = teams.from(*who).into_iter().map(|who| who as f32).collect();
            assert_eq!(views.row(row), team);
        }
    }
}

/// The decisions of agents 3, 5 and 8 in rounds 0 to 9. The last decision of agent 8 is an episode of its own.
fn decisions() -> Decisions {
    let agents = [3, 5, 8];
    let mut rollout = Rollout::default();
    for round in 0..10 {
        let mut seen = seen(round, &agents);
        seen.ended[2] = round == 9;
        let choices = agents.iter().map(|who| ((round + who) % 2) as u16).collect();
        rollout.push(Step { seen, choices, logs: vec![0.0; 3], values: vec![0.0; 3] });
    }
    rollout.decisions(&seen(10, &agents), &[0.0; 3], None, |_| true)
}

#[test]
fn memories_are_compared_across_the_cuts_of_episodes_and_with_other_agents() {
    let decisions = decisions();
    let sequences = Sequences::of(&decisions);
    let (mut batch, mut ends) = (Vec::new(), vec![0]);
    for agent in 0..3 {
        batch.extend_from_slice(sequences.decisions(agent));
        ends.push(batch.len());
    }
    // An episode that is seen to have ended in a round ended with the decision before it.
    let episode = |who: AgentId, round: u32| match who {
        3 => (round + 1) / 3,
        5 => u32::from(round >= 4),
        _ => u32::from(round == 9),
    };
    let of = |at: u32| decisions.of[batch[at as usize] as usize];
    let mut draws = Draws::new(3, Stream::Learner, 0, 0);
    let (mut alone, mut others) = (0, [0; 9]);
    for _ in 0..50 {
        let pairs = Pairs::draw(&decisions, &batch, &ends, &mut draws);
        for at in 0..batch.len() as u32 {
            let ((who, round), (partner, then)) = (of(at), of(pairs.with[0][at as usize]));
            assert_eq!((who, episode(who, round)), (partner, episode(who, then)));
            let known = pairs.known[at as usize] > 0.0;
            assert_eq!(known, (who, round) != (8, 9), "agent {who}, round {round}");
            alone += u32::from(!known);
            // The one cut of the episode is between the two.
            let own = (0..batch.len() as u32).filter(|other| of(*other).0 == who);
            let cuts: Vec<u32> = own
                .filter(|other| episode(who, of(*other).1) == episode(who, round))
                .filter(|other| pairs.cuts(batch[*other as usize]))
                .map(|other| of(other).1)
                .collect();
            assert_eq!(cuts.len(), usize::from(known));
            assert!(cuts.iter().all(|cut| (round < *cut) != (then < *cut)), "{round} {then} {cuts:?}");
            for with in &pairs.with[1..] {
                assert_ne!(of(with[at as usize]).0, who);
                others[of(with[at as usize]).0 as usize] += 1;
            }
        }
    }
    assert_eq!(alone, 50);
    // Each of 20 decisions in 50 batches has 8 negative samples, half of them of each other agent.
    assert!([3, 5, 8].iter().all(|who| (3_700..4_300).contains(&others[*who])), "{others:?}");
}

#[test]
fn latent_states_learn_what_comes_next_but_not_from_others() {
    let source = LatentSource { size: 8, reconstruct: 1.0, predict: 0.0, shuffled: false };
    let mut left = Vec::new();
    for shuffled in [false, true] {
        let (mut weights, mut draws) = (Weights::default(), Draws::new(5, Stream::Learner, 0, 0));
        let mut net = |name: &str, sizes: [usize; 2]| {
            Mlp::new(&mut weights, name, &[sizes[0], 16, sizes[1]], Activation::Tanh, 1.0, &mut draws)
        };
        let nets = [net("latent", [2, 8]), net("dynamics", [10, 8]), net("decoder", [8, 3])];
        let latent = Latent::new(LatentSource { shuffled, ..source }, nets, None, 2);
        // The choice moves the first number, and the reward is the second.
        let mut decisions = Decisions::default();
        for i in 0..200u32 {
            let (x, y) = (draws.normal() as f32, draws.normal() as f32);
            let choice = draws.below(2) as u32;
            decisions.inputs.push(&[x, y]);
            decisions.inputs.push(&[y, if choice == 1 { x } else { -x }]);
            decisions.choices.extend([choice, 0]);
            decisions.rewards.extend([y, 0.0]);
            decisions.next.extend([Some(2 * i + 1), None]);
            decisions.of.extend([(i, 0), (i, 1)]);
        }
        let next = latent.next(&decisions, &mut draws);
        let moved = (0..400).filter(|i| next.after[*i] != decisions.next[*i].unwrap_or(*i as u32)).count();
        assert_eq!(moved > 150, shuffled, "{moved} were moved");
        let batch: Vec<u32> = (0..400).collect();
        let mut model = Model::new(&weights);
        let mut error = 0.0;
        for _ in 0..400 {
            let found = gradients(&model.weights, 400, ["the loss"], |tape, rows| {
                let x = tape.input(decisions.inputs.part(rows.clone()));
                let states = latent.of(tape, x);
                let loss = latent.loss(tape, states, &next, &decisions, &batch[rows]);
                [tape.scale(loss, 1.0 / 200.0)]
            });
            let found = found.unwrap();
            error = found.losses[0];
            model.descend(found, 0.01, 1.0).unwrap();
        }
        left.push(error);
    }
    assert!(left[0] < 0.05 && left[1] > 0.3, "{left:?}");
}

#[test]
fn memories_that_are_compared_learn_who_is_there() {
    // Forty agents see signs. The favourite of each is one of three.
    let (agents, rounds) = (40u32, 20u32);
    let mut draws = Draws::new(7, Stream::Learner, 0, 0);
    let n = agents as usize;
    let lived = |draws: &mut Draws| {
        let mut lived = Lived::default();
        for round in 0..rounds {
            let mut inputs = Array::EMPTY;
            for who in 0..agents {
                let sign = if draws.below(2) == 0 { who % 3 } else { draws.below(3) as u32 };
                inputs.push(&[0, 1, 2].map(|one| if one == sign { 1.0 } else { 0.0 }));
            }
            let ended = vec![round == 0; n];
            let seen = Seen { inputs, ended, mask: Array::zeros(n, 2), ..seen(0, &(0..agents).collect::<Vec<_>>()) };
            lived.rollout.push(Step { seen, choices: vec![0; n], logs: vec![0.0; n], values: vec![0.0; n] });
        }
        lived
    };
    let (known, fresh) = (lived(&mut draws), lived(&mut draws));
    let last = Seen { ended: vec![true; n], ..seen(0, &(0..agents).collect::<Vec<_>>()) };
    let decisions = known.rollout.decisions(&last, &vec![0.0; n], None, |_| true);
    let sequences = Sequences::of(&decisions);
    let mut weights = Weights::default();
    let gru = Gru::new(&mut weights, "memory", [3, 16], &mut draws);
    let layer = Dense::new(&mut weights, "compared", [16, 16], 1.0, &mut draws);
    let memory = Recurrent::new(gru, &MemorySource { gru: 16, forgets: false, learns_from: LearnsFrom::Contrast });
    let (mut batch, mut ends) = (Vec::new(), vec![0]);
    for agent in 0..agents {
        batch.extend_from_slice(sequences.decisions(agent));
        ends.push(batch.len());
    }
    let which: Vec<u32> = (0..agents).collect();
    // How many agents are nearest to those with the same favourite in another episode, by their last memories.
    let others = lived(&mut draws);
    let told = |weights: &Weights| {
        let mut tape = Tape::new(weights);
        let [seen, known] = [&fresh, &others].map(|lived| {
            let state = memory.again(&mut tape, lived, &sequences, &which, None);
            let to = layer.on(&mut tape, state);
            let to = tape.value(to);
            let last = |who: u32| to.row((who * rounds + rounds - 1) as usize);
            let length = |of: &[f32]| of.iter().map(|x| x * x).sum::<f32>().sqrt();
            (0..agents).map(|who| last(who).iter().map(|x| x / length(last(who))).collect()).collect::<Vec<Vec<f32>>>()
        });
        let mean = |sign: usize| -> Vec<f32> {
            let own: Vec<&Vec<f32>> = known.iter().skip(sign).step_by(3).collect();
            (0..16).map(|i| own.iter().map(|of| of[i]).sum::<f32>() / own.len() as f32).collect()
        };
        let means = [mean(0), mean(1), mean(2)];
        let far = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        let nearest = |of: &[f32]| (0..3).min_by(|a, b| far(of, &means[*a]).total_cmp(&far(of, &means[*b]))).unwrap();
        seen.iter().enumerate().filter(|(who, of)| nearest(of) == who % 3).count()
    };
    let before = told(&weights);
    let mut model = Model::new(&weights);
    for _ in 0..150 {
        // The rounds of every update are new.
        let known = lived(&mut draws);
        let pairs = Pairs::draw(&decisions, &batch, &ends, &mut draws);
        let found = gradients(&model.weights, which.len(), ["the loss"], |tape, rows| {
            let state = memory.again(tape, &known, &sequences, &which[rows.clone()], Some(&pairs));
            let loss = pairs.loss(tape, &layer, state, ends[rows.start]..ends[rows.end]);
            [tape.scale(loss, 1.0 / batch.len() as f32)]
        });
        model.descend(found.unwrap(), 0.003, 0.5).unwrap();
    }
    let after = told(&model.weights);
    assert!(before < 32 && after >= 38, "{before} before, {after} after");
}

#[test]
fn perturbed_weights_move_towards_the_best_ones_of_the_past() {
    let mut draws = Draws::new(9, Stream::Learner, 0, 0);
    let weights = |value: f32| {
        let mut weights = Weights::default();
        weights.push("a", Array::new(1, 2, vec![value, -value]));
        weights.push("b", Array::new(100, 100, vec![value; 10_000]));
        weights
    };
    let source = |from| PerturbSource { every: 3, share: 0.5, from, keep: 2 };
    let of = |weights: &Weights| -> Vec<f32> { weights.iter().map(|tensor| tensor.array.data()[0]).collect() };
    // Of four weights those with the rewards 5 and 4 are kept.
    let perturb = Perturb::open(source(Candidates::Best), &weights(7.0)).unwrap();
    let mut kept = Ranked::default();
    for (value, reward) in [(1.0, 2.0), (2.0, 5.0), (9.0, -1.0), (2.0, 4.0)] {
        perturb.keep(&mut kept, &weights(value), &[reward, reward], &mut draws);
    }
    let mut present = weights(0.0);
    perturb.perturb(&kept, &mut present, 4, &mut draws);
    assert_eq!(of(&present), [0.0, 0.0], "every third update");
    perturb.perturb(&kept, &mut present, 6, &mut draws);
    assert_eq!(of(&present), [1.0, 1.0], "half of the way to 2, from which nothing deviates");
    // Noise has the size of the first weights: 7 on average over both matrices, and half of it is added.
    let perturb = Perturb::open(source(Candidates::Noise), &weights(7.0)).unwrap();
    let mut present = weights(0.0);
    perturb.perturb(&Ranked::default(), &mut present, 3, &mut draws);
    let data = present[1].array.data();
    let mean = data.iter().sum::<f32>() / 1e4;
    let deviation = (data.iter().map(|x| x * x).sum::<f32>() / 1e4).sqrt();
    assert!(mean.abs() < 0.15 && (deviation - 3.5).abs() < 0.1, "{mean} and {deviation}");
}

#[test]
fn numbers_about_cells_are_pixels_side_by_side() {
    let cells = |channel: &str| {
        let cells = (0..3).flat_map(|x| (0..2).map(move |y| (x, y)));
        cells.map(|(x, y)| format!("{channel}-{x}-{y}")).collect::<Vec<_>>()
    };
    let mut numbers = vec!["age".to_owned()];
    numbers.extend(cells("food"));
    numbers.push("level-1".into());
    numbers.extend(cells("item-2"));
    let (size, columns) = picture(&numbers).unwrap();
    assert_eq!(size, [2, 3, 2]);
    let names: Vec<&str> = columns.iter().map(|column| numbers[*column as usize].as_str()).collect();
    let rows = [
        ["food-0-0", "item-2-0-0", "food-1-0", "item-2-1-0", "food-2-0", "item-2-2-0"],
        ["food-0-1", "item-2-0-1", "food-1-1", "item-2-1-1", "food-2-1", "item-2-2-1"],
    ];
    assert_eq!(names, rows.concat());
    numbers.retain(|name| name != "food-1-1");
    assert!(picture(&numbers).unwrap_err().to_string().contains("`food-1-1` is not seen"));
}
