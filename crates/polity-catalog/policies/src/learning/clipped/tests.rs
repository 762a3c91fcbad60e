//! What agents remember when their rounds are gone through again, and networks under turns.
#![allow(clippy::panic, clippy::unwrap_used)]

use super::memory::{Lived, MemorySource, Recurrent, Sequences};
use super::turns::{Symmetry, Turns};
use crate::learning::{NONE, Seen, Step};
use polity_kernel::AgentId;
use polity_kernel::rng::{Draws, Stream};
use polity_nn::{Activation, Array, Gru, Mlp, Tape, Weights, outputs};

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
        let memory = Recurrent::new(gru, &MemorySource { gru: 4, forgets });
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
        let again = memory.again(&mut tape, &lived, &sequences, &which);
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
