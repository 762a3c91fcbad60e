#![allow(clippy::unwrap_used)]
use super::library::{centipede, ultimatum};
use super::*;
use crate::best_response::{best_response, exploitability};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn counts(tree: &Tree) -> (usize, usize, usize) {
    (tree.len(), tree.sets().len(), tree.terminals())
}

/// Kuhn 1950: 12 sets. Leduc: 936 sets and 9,457 histories (Lanctot et al. 2019; OpenSpiel 2.0.2 counts the same).
#[test]
fn games_have_their_published_sizes() {
    assert_eq!(counts(&kuhn()), (58, 12, 30));
    assert_eq!(counts(&leduc()), (9_457, 936, 5_520));
    assert_eq!(counts(&game("kuhn-3").unwrap()), (617, 48, 312));
    assert_eq!(counts(&centipede(6)), (13, 6, 7));
    assert_eq!(counts(&ultimatum(10)), (34, 12, 22));
    assert_eq!(counts(&entry()), (5, 2, 3));
}

#[test]
fn games_by_name_are_without_fault_and_survive_a_file() {
    for (name, _) in GAMES {
        let tree = game(name).unwrap();
        assert!(tree.perfect_recall().is_ok(), "{name}");
        // Reading checks everything that a builder checks.
        let again = read(&write(&tree)).unwrap();
        assert!(again == tree, "{name}");
        let names: BTreeSet<(usize, &str)> = tree.sets().iter().map(|set| (set.player, set.name.as_str())).collect();
        assert_eq!(names.len(), tree.sets().len(), "{name}");
    }
    assert!(kuhn().constant_sum() && leduc().constant_sum() && !entry().constant_sum());
}

/// A set's name shows the player's own card, so its nodes differ only in the card of the other player.
#[test]
fn a_set_holds_what_its_player_cannot_tell_apart() {
    let tree = kuhn();
    for set in tree.sets() {
        assert_eq!(set.nodes().count(), 2, "{}", set.name);
    }
    let tree = leduc();
    // Five cards may be the other's before a card lies on the table, four after.
    for set in tree.sets() {
        assert_eq!(set.nodes().count(), if set.name.contains(',') { 4 } else { 5 }, "{}", set.name);
    }
}

/// Kuhn's equilibria are a family: the first player bets the jack with probability a in [0, 1/3] and the king with 3 a.
fn equilibrium_of_kuhn(tree: &Tree, a: f64) -> Profile {
    let second = [("J", 0.0, 1.0 / 3.0), ("Q", 1.0 / 3.0, 0.0), ("K", 1.0, 1.0)];
    let first = [("J", a, 0.0), ("Q", 0.0, a + 1.0 / 3.0), ("K", 3.0 * a, 1.0)];
    let mut all = vec![Vec::new(); tree.sets().len()];
    let mut put = |player: usize, name: String, p: f64| {
        all[tree.set(player, &name).unwrap()] = vec![1.0 - p, p];
    };
    for (card, bet, call) in first {
        put(0, card.into(), bet);
        put(0, format!("{card} check-bet"), call);
    }
    for (card, call, bet) in second {
        put(1, format!("{card} bet"), call);
        put(1, format!("{card} check"), bet);
    }
    Profile::new(tree, &all).unwrap()
}

#[test]
fn kuhn_has_its_family_of_equilibria() {
    let tree = kuhn();
    for a in [0.0, 0.1, 0.2, 1.0 / 3.0] {
        let profile = equilibrium_of_kuhn(&tree, a);
        let found = exploitability(&tree, &profile).unwrap();
        assert!(found.nash_conv < 1e-12, "{a}: {found:?}");
        assert!(
            (found.payoffs[0] + 1.0 / 18.0).abs() < 1e-12 && (tree.payoffs(&profile)[0] + 1.0 / 18.0).abs() < 1e-12
        );
    }
    let off = equilibrium_of_kuhn(&tree, 0.1);
    let mut strategies: Vec<Vec<f64>> = (0..12).map(|set| off.at(set).to_vec()).collect();
    strategies[tree.set(0, "K").unwrap()] = vec![0.0, 1.0];
    assert!(exploitability(&tree, &Profile::new(&tree, &strategies).unwrap()).unwrap().nash_conv > 0.01);
}

/// The best of all pure strategies, one by one, is what the fast pass finds.
#[test]
fn best_responses_are_those_of_brute_force() {
    let tree = kuhn();
    let mut weights = (1..).map(|n: u32| f64::from(n * 7 % 11 + 1));
    let strategies: Vec<Vec<f64>> = (0..12)
        .map(|_| {
            let p = weights.next().unwrap() / 12.0;
            vec![p, 1.0 - p]
        })
        .collect();
    for player in 0..2 {
        let mine: Vec<usize> = (0..12).filter(|set| tree.sets()[*set].player == player).collect();
        let mut best = f64::NEG_INFINITY;
        for pure in 0..1u32 << mine.len() {
            let mut tried = strategies.clone();
            for (bit, set) in mine.iter().enumerate() {
                let p = f64::from(pure >> bit & 1);
                tried[*set] = vec![p, 1.0 - p];
            }
            best = best.max(tree.payoffs(&Profile::new(&tree, &tried).unwrap())[player]);
        }
        let found = best_response(&tree, &Profile::new(&tree, &strategies).unwrap(), player).unwrap();
        assert!((found.value - best).abs() < 1e-12, "{} {best}", found.value);
        let mut played = strategies.clone();
        for (set, chosen) in found.moves {
            played[set] = (0..2).map(|i| f64::from(u8::from(i == chosen))).collect();
        }
        assert!((tree.payoffs(&Profile::new(&tree, &played).unwrap())[player] - best).abs() < 1e-12);
    }
    assert!(best_response(&tree, &Profile::uniform(&tree), 2).unwrap_err().contains("no player 2"));
}

/// The player forgets the own first move.
#[test]
fn imperfect_recall_is_told_by_name() {
    let mut builder = Builder::new("forgetful", &["A"]);
    builder.decision(0, "first", &["l", "r"]);
    for _ in 0..2 {
        builder.decision(0, "second", &["l", "r"]);
        builder.terminal(&[1.0]);
        builder.terminal(&[0.0]);
    }
    let tree = builder.finish().unwrap();
    let told = tree.perfect_recall().unwrap_err();
    assert!(told.contains("information set `second` of A") && told.contains("imperfect recall"), "{told}");
    assert_eq!(exploitability(&tree, &Profile::uniform(&tree)).unwrap_err(), told);
    // Payoffs need no recall.
    assert_eq!(tree.payoffs(&Profile::uniform(&tree)), [0.5]);
    // The absent-minded driver (Piccione and Rubinstein 1997) comes to the same set twice.
    let driver = "EFG 2 R \"driver\" { \"D\" } p \"\" 1 1 \"\" { \"go\" \"exit\" } 0 p \"\" 1 1 0 t \"\" 1 { 1 } t \"\" 2 { 4 } t \"\" 3 { 0 }";
    assert!(read(driver).unwrap().perfect_recall().is_err());
}

#[test]
fn profiles_are_checked() {
    let tree = entry();
    for (strategies, told) in [
        (vec![vec![1.0, 0.0]], "2 information sets; 1 strategies"),
        (vec![vec![1.0], vec![1.0, 0.0]], "`entry` of entrant has 2 moves; 1 prob"),
        (vec![vec![0.5, 0.4], vec![1.0, 0.0]], "add up to 1"),
        (vec![vec![1.5, -0.5], vec![1.0, 0.0]], "not be negative"),
        (vec![vec![f64::NAN, 0.5], vec![1.0, 0.0]], "add up to 1"),
    ] {
        let error = Profile::new(&tree, &strategies).unwrap_err();
        assert!(error.contains(told), "{error}");
    }
}

/// Outcomes at inner nodes, names left out, sets and outcomes used again, fractions and commas.
#[test]
fn gambits_ways_of_writing_are_read() {
    let text = r#"EFG 2 R "say \"hi\"" { "A" "B" } "a comment"
        c "deal" 1 "" { "" 1/3 "rest" 2/3 } 5 "ante" { -1, -1 }
        p "" 1 7 "same" { "x" "y" } 0
        t "" 1 "won" { 2, 1/2 }
        t "" 0
        p "" 1 8 "same" { "x" "x" } 0
        t "" 1
        c "again" 1 0
        t "" 1
        t "" 1 "won"
    "#;
    let tree = read(text).unwrap();
    assert_eq!(tree.title, "say \"hi\"");
    let names: Vec<&str> = tree.sets().iter().map(|set| set.name.as_str()).collect();
    assert_eq!(names, ["same", "same (8)"]);
    assert_eq!(tree.sets()[1].moves, ["x", "x (2)"]);
    let Node::Chance { moves, probabilities, .. } = tree.node(0) else { panic!("chance begins") };
    assert_eq!((moves.join(" ").as_str(), probabilities[0]), ("1 rest", 1.0 / 3.0));
    assert_eq!(tree.node(2), Node::Terminal { payoffs: &[1.0, -0.5] });
    assert_eq!(tree.node(3), Node::Terminal { payoffs: &[-1.0, -1.0] });
    assert!(read(&write(&tree)).unwrap() == tree);
}

#[test]
fn what_is_no_game_is_refused_with_its_line() {
    let head = "EFG 2 R \"x\" { \"A\" \"B\" } ";
    let whole = [
        ("", "line 1: a game begins with `EFG 2 R`"),
        ("NFG 1 R", "begins with `EFG 2 R`"),
        ("EFG 1 R \"x\"", "begins with `EFG 2 R`"),
        ("EFG 2 X \"x\"", "begins with `EFG 2 R`"),
        ("EFG 2 R", "expected the title in quotes"),
        ("EFG 2 R x", "expected the title in quotes"),
        ("EFG 2 R \"x", "line 1: a `\"` is not closed"),
        ("EFG 2 R \"x\"", "expected the players, in"),
        ("EFG 2 R \"x\" { }", "1 to 20 players; this one has 0"),
        ("EFG 2 R \"x\" { A }", "expected a player in quotes"),
        ("EFG 2 R \"x\" { \"A\"", "a `{` is not closed"),
    ];
    let nodes = [
        ("", "expected a node, which begins with"),
        ("x \"\" 1", "a node begins with `c`, `p` or `t`, and not with `x`"),
        ("\"\"  { }", "expected a node, which begins with"),
        ("t \"\"", "the number of an outcome"),
        ("t \"\" one", "the number of an outcome (0 for none) must be a whole number, and is `one`"),
        ("t \"\" -1 { 1 2 }", "must be a whole number, and is `-1`"),
        ("t \"\" 1", "the payoffs of outcome 1 are missing"),
        ("t \"\" 1 { 1 }", "2 players need 2 payoffs; there are 1"),
        ("t \"\" 1 { 1 2 3 }", "2 players need 2 payoffs; there are 3"),
        ("t \"\" 1 { 1 two }", "a payoff must be a number or a fraction, and is `two`"),
        ("t \"\" 1 { 1 1/0 }", "and is `1/0`"),
        ("t \"\" 1 { 1 NaN }", "and is `NaN`"),
        ("t \"\" 1 { 1 1e999 }", "and is `1e999`"),
        ("t \"\" 1 { 1 2", "a `{` is not closed"),
        ("t \"\" 0 { 1 2 }", "outcome 0 means no outcome"),
        ("t \"\" 1 { 1 2 } t \"\" 1", "the tree is complete, but more text follows"),
        ("p \"\" 3 1 \"\" { \"a\" } 0", "player 3 decides, but there are 2 players"),
        ("p \"\" 0 1 \"\" { \"a\" } 0", "players are numbered from 1"),
        ("p \"\" 1 1 0", "the moves of information set 1 of player 1 are missing"),
        ("p \"\" 1 1 \"\" { } 0", "there are no moves"),
        ("p \"\" 1 1 \"\" { a } 0", "expected a move in quotes"),
        ("p \"\" 1 1 \"\" { \"a\" \"b\" } 0 t \"\" 0", "expected a node, which begins with"),
        (
            "p \"\" 1 1 \"\" { \"a\" } 0\np \"\" 1 1 \"\" { \"b\" } 0",
            "line 2: node 2 (`a`): information set `1` of A has the moves b",
        ),
        (
            "p \"\" 1 1 \"\" { \"a\" } 0 p \"\" 1 1 \"\" { \"a\" \"b\" } 0",
            "has the moves a, b here, and the moves a at an earlier",
        ),
        ("c \"\" 1 \"\" { \"a\" 0.5 \"b\" 0.6 } 0", "add up to 1.1, and must add up to 1"),
        ("c \"\" 1 \"\" { \"a\" 1.5 \"b\" -0.5 } 0", "a probability is 1.5"),
        ("c \"\" 1 \"\" { \"a\" \"b\" } 0", "expected a probability"),
        ("c \"\" 1 \"\" { \"a\" x } 0", "a probability must be a number or a fraction, and is `x`"),
        ("c \"\" 1 \"\" { } 0", "there are no moves"),
        ("c \"\" 1 0", "the moves of chance set 1 are missing"),
        ("c \"\" 1 \"\" { \"a\" 1 } 0 c \"\" 1 \"\" { \"b\" 1 } 0", "other moves or probabilities than before"),
        ("c \"\" 1 \"\" { \"a\" 1 } 1 { 1 1 } t \"\" 1 { 1 2 }", "outcome 1 has other payoffs than before"),
        ("c \"\" 1 \"\" { \"a\" 1 } 1 { 1e308 1 } t \"\" 2 { 1e308 2 }", "a payoff is inf, and must be finite"),
    ];
    let nodes = nodes.map(|(nodes, told)| (format!("{head}{nodes}"), told));
    for (text, told) in whole.map(|(text, told)| (text.to_owned(), told)).into_iter().chain(nodes) {
        let error = read(&text).unwrap_err();
        assert!(error.contains(told) && error.starts_with("line "), "{text}: {error}");
    }
}

/// A fault is named with the moves that lead to its node: at each depth the one that is taken, and not the one after it.
#[test]
fn faults_name_the_path_to_their_node() {
    let mut builder = Builder::new("far", &["A"]);
    for name in ["s", "t", "u"] {
        builder.decision(0, name, &[format!("{name}1"), format!("{name}2")]);
    }
    builder.terminal(&[0.0]);
    let mut missing = builder.clone();
    missing.terminal(&[0.0]);
    assert!(missing.finish().unwrap_err().ends_with("no node follows `s1`, `t2`"));
    for faulty in [&[][..], &["l", "l"], &[""]] {
        let mut builder = builder.clone();
        builder.decision(0, "v", faulty);
        let told = builder.finish().unwrap_err();
        assert!(told.starts_with("node 5 (`s1`, `t1`, `u2`): "), "{told}");
    }
}

#[test]
fn sizes_above_the_limits_are_refused() {
    let chain = |moves: u32| {
        let mut builder = Builder::new("deep", &["A"]);
        (0..moves).for_each(|at| builder.decision(0, &at.to_string(), &["on"]));
        builder.terminal(&[0.0]);
        builder.finish()
    };
    assert_eq!(chain(1_000).unwrap().len(), 1_001);
    for moves in [1_001, 2_000] {
        assert!(chain(moves).unwrap_err().contains("1000 moves deep"));
    }
    let players: Vec<String> = (0..21).map(|player| player.to_string()).collect();
    assert!(Builder::new("many", &players).finish().unwrap_err().contains("1 to 20 players"));
    assert!(Builder::new("none", &["A"]).finish().unwrap_err().contains("no nodes"));
    let mut builder = Builder::new("twice", &["A"]);
    builder.decision(0, "s", &["l", "l"]);
    assert!(builder.finish().unwrap_err().contains("two moves have the name `l`"));
    let mut builder = Builder::new("early", &["A"]);
    builder.decision(0, "s", &["l", "r"]);
    builder.terminal(&[0.0]);
    assert!(!builder.is_complete());
    assert!(builder.finish().unwrap_err().contains("no node follows `r`"));
    let mut builder = Builder::new("late", &["A"]);
    builder.terminal(&[0.0]);
    builder.terminal(&[0.0]);
    assert!(builder.finish().unwrap_err().contains("more nodes follow"));
}

/// Makes a tree out of numbers: each says what the next node is.
fn grown(players: usize, numbers: &[u8]) -> Tree {
    let mut builder = Builder::new("grown \\ \"up\"", &["A", "B \"b\"", "C\\"][..players]);
    let mut numbers = numbers.iter().map(|n| usize::from(*n));
    while !builder.is_complete() {
        let n = numbers.next().unwrap_or(0);
        let names: Vec<String> = (0..n % 3 + 1).map(|i| format!("m{i}")).collect();
        match n % 4 {
            0 => builder.terminal(&(0..players).map(|i| (n as f64 - 99.0) / (i + 3) as f64).collect::<Vec<f64>>()),
            1 => builder.chance(&names.iter().map(|name| (name, 1.0 / names.len() as f64)).collect::<Vec<_>>()),
            _ => builder.decision(n / 5 % players, &format!("s{} of {}", n % 7, names.len()), &names),
        }
    }
    builder.finish().unwrap()
}

proptest! {
    #[test]
    fn any_tree_survives_a_file(players in 1usize..=3, numbers in proptest::collection::vec(any::<u8>(), 0..300)) {
        let tree = grown(players, &numbers);
        prop_assert!(read(&write(&tree)).unwrap() == tree);
    }

    /// The pass over sequences and the walk over nodes agree; no one does better than the best response.
    #[test]
    fn payoffs_by_sequences_are_those_of_the_walk(players in 1usize..=3, numbers in proptest::collection::vec(any::<u8>(), 0..300)) {
        let tree = grown(players, &numbers);
        let profile = Profile::uniform(&tree);
        if tree.perfect_recall().is_ok() {
            let found = exploitability(&tree, &profile).unwrap();
            for (player, payoff) in tree.payoffs(&profile).into_iter().enumerate() {
                prop_assert!((payoff - found.payoffs[player]).abs() < 1e-9);
                let best = best_response(&tree, &profile, player).unwrap();
                prop_assert!((best.value - payoff - found.gains[player]).abs() < 1e-9);
                let mut played: Vec<Vec<f64>> = (0..tree.sets().len()).map(|set| profile.at(set).to_vec()).collect();
                for (set, chosen) in best.moves {
                    played[set] = (0..played[set].len()).map(|i| f64::from(u8::from(i == chosen))).collect();
                }
                let reached = tree.payoffs(&Profile::new(&tree, &played).unwrap())[player];
                prop_assert!((reached - best.value).abs() < 1e-9);
            }
        }
    }

    /// A damaged file is read or refused, and never ends the program.
    #[test]
    fn damage_is_read_or_refused(at in any::<prop::sample::Index>(), cut in 0usize..12, put in "[ -~\\n]{0,6}") {
        let text = write(&entry());
        let from = at.index(text.len());
        let damaged = format!("{}{put}{}", &text[..from], &text[(from + cut).min(text.len())..]);
        if let Ok(tree) = read(&damaged) {
            prop_assert!(read(&write(&tree)).unwrap() == tree);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(EFG 2 R \"t\" \\{ \"A\" \\} )?([cpt{}0-9\",./ -]|\"\"|\\PC){0,60}") {
        let _ = read(&text);
    }
}
