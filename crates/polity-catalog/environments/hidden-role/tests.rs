//! Games of hidden roles: beliefs against enumeration and against how often they are right, outcomes, measures, what is refused.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::belief::{Clue, Lexicon};
use super::*;
use crate::testing::refused;
use polity_kernel::population::Population;
use polity_kernel::rng::Stream;
use polity_kernel::topology::Topology;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

fn game(params: Json) -> HiddenRole {
    let (population, topology, texts) = (Population::empty(1), Topology::Complete { n: 1 }, BTreeMap::new());
    let setup =
        WorldSetup { agents: 3, population: &population, topology: &topology, lag: 0, seats: &[], texts: &texts };
    HiddenRole::open(serde_json::from_value(params).unwrap(), &setup, &mut DeclareEnvironment::default()).unwrap()
}

/// Plays one game: `choose` names a number for a seat.
fn played(game: &HiddenRole, seed: u32, choose: impl Fn(&Table, usize) -> u32) -> Table {
    let mut draws = Draws::new(11, Stream::World, 0, seed);
    let mut table = game.reset(&Item::default(), &mut draws);
    for _ in 0..1_000 {
        let seats = (0..game.players()).filter(|seat| game.offers(&table, *seat as u32, table.stage));
        let number = |seat: usize| match table.stage {
            ROLE => Value::Choice(choose(&table, seat)),
            _ => Value::Number(f64::from(choose(&table, seat))),
        };
        let moves: Vec<Move> =
            seats.map(|seat| Move { seat: seat as u32, action: table.stage, argument: number(seat) }).collect();
        if game.step(&mut table, &moves, &mut draws).done {
            return table;
        }
    }
    panic!("the game does not end")
}

/// Gives apt clues, and chooses 1 of everything else.
fn apt(table: &Table, seat: usize) -> u32 {
    if table.stage == CLUE { apt_clue(table, seat) } else { 1 }
}

fn apt_clue(table: &Table, seat: usize) -> u32 {
    number(table, seat, "apt") as u32
}

/// What a player sees, by name.
fn number(table: &Table, seat: usize, name: &str) -> f64 {
    let (.., of) = advice::NUMBERS.iter().find(|(known, ..)| *known == name).unwrap();
    of(&table.advice[seat])
}

/// Draws a lexicon and clues.
fn drawn(n: u32) -> (Vec<u32>, Vec<Clue>) {
    let mut draws = Draws::new(5, Stream::World, 1, n);
    let fits = (0..5).map(|_| 0b11 << draws.below(5) | 1 << draws.below(7)).collect();
    let clues = (0..6).map(|_| draws.chance(0.9).then(|| draws.below(7) as u32)).collect();
    (fits, clues)
}

#[test]
fn beliefs_are_those_of_an_enumeration() {
    for n in 0..50 {
        let (fits, clues) = drawn(n);
        let lexicon = Lexicon { fits: &fits, clues: 7, slip: 0.1 };
        let chance = |word: usize, clue: Clue| match clue {
            None => 1.0,
            Some(clue) => {
                let fitting = (0..7).filter(|c| fits[word] & 1 << c != 0).count() as f64;
                if fits[word] & 1 << clue != 0 { 0.9 / fitting } else { 0.1 / (7.0 - fitting) }
            }
        };
        let (players, own, word) = (3, 1, 2);
        // Chameleon: all hidden players, with all words that they may have imagined for each of their clues.
        let mut weights = [0.0; 3];
        for hidden in [0, 2] {
            for imagined in 0..25 {
                let imagined = [imagined % 5, imagined / 5];
                let mut weight = 1.0;
                for (place, clue) in clues.iter().enumerate() {
                    if place % players != hidden {
                        weight *= chance(word, *clue);
                        continue;
                    }
                    let belief = |word: usize| {
                        let mut product = 1.0;
                        for (other, clue) in clues.iter().enumerate().take(place) {
                            if other % players != hidden {
                                product *= chance(word, *clue);
                            }
                        }
                        product
                    };
                    let all: f64 = (0..5).map(belief).sum();
                    let imagined = imagined[place / players];
                    weight *= belief(imagined) / all * chance(imagined, *clue);
                }
                weights[hidden] += weight;
            }
        }
        let total: f64 = weights.iter().sum();
        let found = lexicon.without_a_word(&clues, players, own, word);
        assert!(found.iter().zip(weights).all(|(a, b)| (a - b / total).abs() < 1e-12), "{found:?} {weights:?}");
        // Undercover: all hidden players and all other words.
        let mut weights = [0.0; 3];
        for (hidden, weight) in weights.iter_mut().enumerate() {
            for another in (0..5).filter(|another| *another != word) {
                let mut product = 1.0;
                for (place, clue) in clues.iter().enumerate() {
                    let who = place % players;
                    if who != own {
                        let has = match (hidden == own, who == hidden) {
                            (true, _) | (_, true) => another,
                            _ => word,
                        };
                        product *= chance(has, *clue);
                    }
                }
                *weight += product;
            }
        }
        let total: f64 = weights.iter().sum();
        let found = lexicon.with_another_word(&clues, players, own, word);
        assert!(found.iter().zip(weights).all(|(a, b)| (a - b / total).abs() < 1e-12), "{found:?} {weights:?}");
    }
}

/// Plays many games of players who give apt clues. Returns the mean probability that the aid gives to its choice, how often that is
/// right, and how often somebody who notices a clue that does not fit is right.
fn accuracy(game: &HiddenRole, games: u32) -> (f64, f64) {
    let (mut claimed, mut right, mut all) = (0.0, 0.0, 0.0);
    for seed in 0..games {
        let table = played(game, seed, apt);
        for seat in (0..game.players()).filter(|seat| *seat != table.hidden as usize) {
            let (lexicon, clues) = game.fed(&table);
            let view = match game.params.game {
                Kind::Chameleon => lexicon.without_a_word(clues, game.players(), seat, table.word as usize),
                Kind::Undercover => lexicon.with_another_word(clues, game.players(), seat, table.word as usize),
            };
            let most = view.iter().copied().fold(0.0, f64::max);
            let who = view.iter().position(|p| *p == most).unwrap();
            claimed += most;
            right += f64::from(u8::from(who == table.hidden as usize));
            all += 1.0;
        }
    }
    (claimed / all, right / all)
}

#[test]
fn beliefs_are_right_as_often_as_they_say() {
    for (kind, rounds) in [("chameleon", 1), ("chameleon", 2), ("undercover", 2)] {
        let params = json!({"game": kind, "clue_rounds": rounds, "slip": 1e-9, "players": 4});
        // Beliefs of an undercover's place are of another kind, so ordinary players alone are counted, whose own chance to be the odd
        // one is known to be 0.
        let (claimed, right) = accuracy(&game(params), 3_000);
        println!("{kind} with {rounds} clues: {right} right, {claimed} claimed");
        assert!(right > 0.5, "{right}");
        if kind == "chameleon" {
            assert!((claimed - right).abs() < 4.0 * 0.5 / 9_000f64.sqrt(), "{claimed} {right}");
        }
    }
    // On clues drawn by lot the beliefs are right as often as a guess among the other three.
    let params = json!({"game": "chameleon", "players": 4, "aid": "noise"});
    let (_, right) = accuracy(&game(params), 3_000);
    assert!((right - 1.0 / 3.0).abs() < 4.0 * 0.5 / 9_000f64.sqrt(), "{right}");
}

#[test]
fn in_undercover_ones_own_chance_to_be_the_odd_one_is_right_on_average() {
    let undercover = game(json!({"game": "undercover", "clue_rounds": 2, "slip": 1e-9}));
    let (mut claimed, mut hidden) = ([0.0; 10], [[0.0; 2]; 10]);
    for seed in 0..4_000 {
        let table = played(&undercover, seed, apt);
        let lexicon = undercover.lexicon(&table);
        for seat in 0..3 {
            let word = undercover.told(&table, seat).unwrap();
            let p = lexicon.with_another_word(&table.clues, 3, seat, word)[seat];
            let bin = ((p * 10.0) as usize).min(9);
            claimed[bin] += p;
            hidden[bin][0] += 1.0;
            hidden[bin][1] += truth(seat == table.hidden as usize);
        }
    }
    for (claimed, [all, hidden]) in claimed.iter().zip(hidden).filter(|(_, [all, _])| *all > 200.0) {
        assert!((claimed - hidden).abs() < 4.0 * (all * 0.25f64).sqrt(), "{hidden} of {all}, {claimed} expected");
    }
}

#[test]
fn votes_and_guesses_decide_as_published() {
    for (kind, votes, guess, outcome, hidden) in [
        ("chameleon", [1, 0, 1], 3, Outcome::Found, 0.0),
        ("chameleon", [1, 0, 1], 2, Outcome::Guessed, 0.5),
        ("chameleon", [2, 0, 0], 2, Outcome::Wrong, 1.0),
        ("chameleon", [1, 2, 0], 2, Outcome::Even, 0.5),
        ("undercover", [1, 0, 1], 0, Outcome::Found, 0.0),
        ("undercover", [2, 2, 1], 0, Outcome::Wrong, 1.0),
        ("undercover", [1, 2, 0], 0, Outcome::Even, 2.0 / 3.0),
    ] {
        let game = game(json!({"game": kind}));
        let mut table = played(&game, 1, apt);
        (table.hidden, table.word) = (1, 2);
        table.votes = votes.iter().map(|who| Some(*who)).collect();
        table.guess = (kind == "chameleon").then_some(guess);
        table.outcome = Some(game.outcome(&table));
        assert_eq!(table.outcome, Some(outcome));
        assert_eq!(game.points(&table, 1), hidden, "{kind} {votes:?}");
        assert_eq!(game.points(&table, 0), 1.0 - hidden);
    }
}

#[test]
fn abilities_are_shares_of_what_the_tested_player_has_said() {
    let game = game(json!({"tested": 1, "tested_as": "ordinary"}));
    // The tested player votes for 2, suspects 3, expects 1 and 2 of the second and the third.
    let say = |table: &Table, seat: usize| match (table.stage, seat) {
        (CLUE, _) => apt(table, seat),
        (ROLE, _) => 0,
        (SUSPECT, 0) => 3,
        (SUSPECT, _) => 1,
        (EXPECT, 0) => table.turn + 1,
        (VOTE, 0) => 2,
        _ => 1,
    };
    let mut seen = [false; 2];
    for seed in 0..20 {
        let table = played(&game, seed, say);
        assert!(table.hidden != 0);
        let second = table.hidden == 1;
        seen[usize::from(second)] = true;
        assert_eq!(game.judgement(&table), truth(second));
        assert_eq!(game.knows_who(&table), truth(!second));
        // Both others suspect 1; it expected 1 of the second and 2 of the third.
        assert_eq!(game.knows_views(&table), 0.5);
        assert_eq!(game.share(|seat| Some(table.roles[seat] == Some(seat == table.hidden as usize))), 1.0);
        // Two votes are for the first, one of which is its own only in name.
        assert_eq!(table.votes[1..], [Some(0), Some(0)]);
        assert_eq!(table.outcome, Some(Outcome::Wrong));
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn what_is_noticed_is_what_a_plain_look_finds() {
    let game = game(json!({"players": 4, "clue_rounds": 2, "game": "undercover"}));
    for seed in 0..40 {
        // All name a clue at random, so that many do not fit.
        let table = played(&game, seed, |table, seat| {
            if table.stage == VOTE {
                let word = game.told(table, seat).unwrap();
                let odd: Vec<usize> = (0..4)
                    .filter(|who| *who != seat)
                    .filter(|who| {
                        [*who, who + 4].iter().any(|at| table.fits[word] & 1 << table.clues[*at].unwrap() == 0)
                    })
                    .collect();
                assert_eq!(number(table, seat, "misfits"), odd.len() as f64);
                assert_eq!(number(table, seat, "misfit"), odd.first().map_or(0.0, |who| (who + 1) as f64));
            }
            1 + (table.turn * 7 + seed) % if table.stage == CLUE { 16 } else { 4 }
        });
        assert_eq!(table.clues.len(), 8);
    }
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    for (world, says) in [
        (json!({"players": 2}), "world.players"),
        (json!({"words": 1}), "world.words"),
        (json!({"clues": 40}), "world.clues"),
        (json!({"slip": 0}), "world.slip: must be above 0"),
        (json!({"tested": 4}), "world.tested"),
        (json!({"overlap": 2}), "world.overlap"),
    ] {
        let mut world = world;
        world["kind"] = json!("hidden-role");
        let found = refused(&json!({"rounds": 1, "agents": 3, "topology": {"kind": "none"}, "world": world,
            "cohorts": [{"policy": {"kind": "noise"}}]}));
        assert!(found.contains(says), "{found}");
    }
}
