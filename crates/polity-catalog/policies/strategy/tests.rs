//! Societies of strategies play the same matches as `polity_games::iterated::play`.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{open, refused};
use polity_games::iterated::{Conditions, Length, Move, Payoffs, parse, play};
use polity_games::normal;
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use serde_json::{Value as Json, json};

const STAG: &str =
    "NFG 1 R \"stag hunt\" { \"1\" \"2\" } { { \"stag\" \"hare\" } { \"stag\" \"hare\" } } \"\" 4 4 3 0 0 3 3 3";

/// Deterministic strategies that meet; `adaptive` and `downing` use the payoffs.
const PAIRS: [(&str, &str); 4] = [
    ("tit-for-tat", "suspicious-tit-for-tat"),
    ("gradual", "prober-4"),
    ("adaptive", "downing"),
    ("cycler-ccd", "win-stay-lose-shift"),
];

/// Two agents with a policy each.
fn game(first: Json, second: Json, repeat: u32, rounds: u32) -> Json {
    json!({"rounds": rounds, "agents": 2, "world": {"kind": "matrix-game", "repeat": repeat}, "topology": {"kind": "none"},
        "cohorts": [{"count": 1, "policy": first}, {"count": 1, "policy": second}]})
}

fn strategy(play: &str) -> Json {
    json!({"kind": "strategy", "play": play})
}

/// The moves of both agents, round by round.
fn moves(scenario: &Json) -> [Vec<Move>; 2] {
    let mut society = open(scenario, &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    let mut made = [Vec::new(), Vec::new()];
    loop {
        match society.poll(Vec::new()).unwrap().then {
            Then::Round(_) => {
                for act in society.acts().flat_map(|block| block.rows.iter()) {
                    made[act.who as usize].push(if act.kind == 0 { Move::Cooperate } else { Move::Defect });
                }
            }
            Then::Done(_) => return made,
            Then::More | Then::Wait | Then::Exchange(_) => panic!("no model is asked"),
        }
    }
}

#[test]
fn a_society_plays_the_same_matches() {
    let stag = Payoffs::of(&normal::read(STAG).unwrap()).unwrap();
    let games = [Payoffs::PRISONERS_DILEMMA, stag];
    for (payoffs, (one, two)) in games.into_iter().flat_map(|payoffs| PAIRS.map(|pair| (payoffs, pair))) {
        let conditions = Conditions { payoffs, length: Length::Turns(60), ..Conditions::default() };
        let [first, second] = [one, two].map(|name| parse(name, &payoffs).unwrap());
        let mut expected = [Vec::new(), Vec::new()];
        let _ = play([&first, &second], &conditions, 1, 0, Some(&mut expected));
        // Two episodes: the second begins anew.
        let mut scenario = game(strategy(one), strategy(two), 60, 120);
        if payoffs == stag {
            scenario["world"]["game"] = json!(STAG);
        }
        let made = moves(&scenario);
        for (made, expected) in made.iter().zip(&expected) {
            assert_eq!(made.len(), 120, "{one} {two}");
            assert_eq!((&made[..60], &made[60..]), (&expected[..], &expected[..]), "{one} {two}");
        }
    }
}

#[test]
fn a_strategy_plays_a_learner() {
    let [strategy, learner] = moves(&game(strategy("grudger"), json!("fictitious-play"), 30, 30));
    // The best reply to every frequency is to defect, and grudger never forgives.
    assert!(learner.iter().all(|made| *made == Move::Defect));
    assert!(strategy[0] == Move::Cooperate && strategy[1..].iter().all(|made| *made == Move::Defect));
}

#[test]
fn what_cannot_be_played_is_refused() {
    let told = refused(&game(strategy("tit-for-tot"), strategy("joss"), 5, 5));
    assert!(told.contains("did you mean `tit-for-tat`"), "{told}");
    let told = refused(&game(strategy("joss:p=7"), strategy("joss"), 5, 5));
    assert!(told.contains("`p` is 0 to 1, not 7"), "{told}");
    let failed = |play: &str, nfg: &str| {
        let mut scenario = game(strategy(play), strategy("tit-for-tat"), 5, 5);
        scenario["world"]["game"] = json!(nfg);
        let mut society = open(&scenario, &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
        society.poll(Vec::new()).map(|_| ()).unwrap_err().to_string()
    };
    // Zero-determinant strategies exist only for some payoffs, and these are known in the first turn.
    let told = failed("zd-set-2", STAG);
    assert!(told.contains("does not exist for these payoffs"), "{told}");
    let pennies = "NFG 1 R \"pennies\" { \"1\" \"2\" } { { \"a\" \"b\" } { \"a\" \"b\" } } \"\" 1 -1 -1 1 -1 1 1 -1";
    let told = failed("tit-for-tat", pennies);
    assert!(told.contains("the game is not symmetric"), "{told}");
    let three = "NFG 1 R \"3\" { \"1\" \"2\" } { { \"a\" \"b\" \"c\" } { \"a\" \"b\" } } \"\" 0 0 0 0 0 0 0 0 0 0 0 0";
    let told = failed("tit-for-tat", three);
    assert!(told.contains("two moves each"), "{told}");
}

#[test]
fn a_strategy_may_exist_only_for_the_payoffs_of_its_game() {
    // Ten times the payoffs of the usual prisoner's dilemma, for which this strategy does not exist.
    let play = "zd-set-2:phi=0.025:l=20";
    assert!(parse(play, &Payoffs::PRISONERS_DILEMMA).is_err());
    let mut scenario = game(strategy(play), strategy("defector"), 5, 5);
    scenario["world"]["game"] =
        json!("NFG 1 R \"pd\" { \"1\" \"2\" } { { \"c\" \"d\" } { \"c\" \"d\" } } \"\" 30 30 50 0 0 50 10 10");
    assert_eq!(moves(&scenario)[1], [Move::Defect; 5]);
}
