#![allow(clippy::unwrap_used)]

use super::*;
use polity_base::rng::{Draws, Stream};
use std::collections::BTreeSet;

const PD: Payoffs = Payoffs::PRISONERS_DILEMMA;

fn named(name: &str) -> Strategy {
    parse(name, &PD).unwrap()
}

fn conditions(turns: u32, noise: f64) -> Conditions {
    Conditions { length: Length::Turns(turns), noise, ..Conditions::default() }
}

fn letters(moves: &[Move]) -> String {
    moves.iter().map(|made| made.letter()).collect()
}

/// The deterministic strategies, and what each of them gets in 200 turns against each of them, itself included: by the library
/// Axelrod 4.13.1 (`scripts/axelrod.sh` compares every move).
const TOTALS: [(&str, u32); 66] = [
    ("cooperator", 28722),
    ("defector", 23524),
    ("alternator", 27159),
    ("cycler-ccd", 24742),
    ("cycler-ddc", 25282),
    ("cycler-dc", 25218),
    ("cycler-cccd", 23502),
    ("cycler-cccccd", 23630),
    ("cycler-cccdcd", 23922),
    ("tit-for-tat", 36671),
    ("tit-for-2-tats", 33166),
    ("two-tits-for-tat", 34166),
    ("suspicious-tit-for-tat", 28831),
    ("anti-tit-for-tat", 22439),
    ("bully", 22967),
    ("hard-tit-for-tat", 34199),
    ("hard-tit-for-2-tats", 33362),
    ("sneaky-tit-for-tat", 29114),
    ("forgiving-tit-for-tat", 36671),
    ("contrite-tit-for-tat", 36671),
    ("omega-tft", 38942),
    ("gradual", 38200),
    ("original-gradual", 37762),
    ("adaptive-pavlov-2006", 35236),
    ("adaptive-pavlov-2011", 35362),
    ("capri", 36552),
    ("win-stay-lose-shift", 34571),
    ("win-shift-lose-stay", 25804),
    ("memory-one", 34571),
    ("reactive", 36671),
    ("grudger", 36591),
    ("forgetful-grudger", 34803),
    ("soft-grudger", 36359),
    ("opposite-grudger", 27375),
    ("aggravater", 23437),
    ("easy-go", 27527),
    ("grudger-alternator", 35738),
    ("spiteful-cc", 35780),
    ("fool-me-once", 37294),
    ("once-bitten", 33661),
    ("punisher", 34458),
    ("davis", 34831),
    ("shubik", 36950),
    ("go-by-majority", 34649),
    ("hard-go-by-majority", 27228),
    ("forgiver", 35217),
    ("level-punisher", 34571),
    ("doubler", 36439),
    ("short-mem", 34171),
    ("retaliate", 34886),
    ("limited-retaliate", 35036),
    ("appeaser", 34571),
    ("adaptive", 30460),
    ("prober", 27871),
    ("prober-2", 29489),
    ("prober-3", 27714),
    ("prober-4", 28666),
    ("hard-prober", 32207),
    ("handshake", 25041),
    ("collective-strategy", 26311),
    ("detective", 30659),
    ("tester", 29620),
    ("gladstein", 29620),
    ("nydegger", 32167),
    ("downing", 28452),
    ("revised-downing", 34749),
];

#[test]
fn deterministic_strategies_score_as_in_the_library_axelrod() {
    let strategies: Vec<Strategy> = TOTALS.iter().map(|(name, _)| named(name)).collect();
    let deterministic: Vec<Strategy> = all(&PD).0.into_iter().filter(|strategy| !strategy.is_random()).collect();
    assert_eq!(deterministic.iter().map(Strategy::label).collect::<Vec<_>>(), TOTALS.map(|(name, _)| name));
    for (strategy, (name, total)) in strategies.iter().zip(TOTALS) {
        let scores = strategies.iter().map(|other| play([strategy, other], &conditions(200, 0.0), 1, 0, None));
        let sum: f64 = scores.map(|outcome| outcome.scores(&PD)[0]).sum();
        assert_eq!(sum, f64::from(total), "{name}");
    }
}

#[test]
fn matches_go_move_by_move_as_in_the_library_axelrod() {
    for (names, moves, scores) in [
        (["tit-for-tat", "suspicious-tit-for-tat"], ["CDCDCDCDCD", "DCDCDCDCDC"], [500.0, 500.0]),
        (["sneaky-tit-for-tat", "nydegger"], ["CCDDDDDDDD", "CCCCCCCCCC"], [996.0, 6.0]),
        (
            ["gradual", "prober-4"],
            ["CCCDCCDDDCCCDDDDDDCCDDDDDDDDDDCCDDDDDDDD", "CCDCDDDCCDCDCCDCDDCDDDDDDDDDDDDDDDDDDDDD"],
            [218.0, 258.0],
        ),
        (["original-gradual", "tester"], ["CDCCCCCCCC", "DCCCCCCCCC"], [599.0, 599.0]),
        (["win-stay-lose-shift", "downing"], ["CDCCDDCCDCDC", "DDCDCDCDDDDD"], [109.0, 599.0]),
        (["hard-go-by-majority", "nydegger"], ["DCDDDDDDDCCC", "CDDDDCCCCCCC"], [601.0, 581.0]),
    ] {
        let strategies = names.map(named);
        let mut played = [Vec::new(), Vec::new()];
        let outcome = play([&strategies[0], &strategies[1]], &conditions(200, 0.0), 1, 0, Some(&mut played));
        assert_eq!(outcome.scores(&PD), scores, "{names:?}");
        for (own, expected) in played.iter().zip(moves) {
            assert_eq!((own.len(), &letters(own)[..expected.len()]), (200, expected), "{names:?}");
        }
    }
}

#[test]
fn counting_cycles_gives_what_playing_every_turn_gives() {
    let (strategies, _) = all(&PD);
    let mut moves = [Vec::new(), Vec::new()];
    for turns in [1, 2, 3, 7, 64, 65, 301] {
        for one in &strategies {
            for two in &strategies {
                let counted = play([one, two], &conditions(turns, 0.0), 3, 1, None);
                let played = play([one, two], &conditions(turns, 0.0), 3, 1, Some(&mut moves));
                assert_eq!(counted, played, "{} against {} for {turns} turns", one.label(), two.label());
                assert_eq!(counted.turns(), u64::from(turns));
            }
        }
    }
    // Would take minutes if it were played.
    let outcome = play([&named("tit-for-tat"), &named("cycler-ccd")], &conditions(u32::MAX, 0.0), 1, 0, None);
    assert_eq!(outcome.turns(), u64::from(u32::MAX));
    assert_eq!((outcome.cd, outcome.dd), (u64::from(u32::MAX) / 3, 0));
}

#[test]
fn names_are_unique_and_wrong_ones_are_refused() {
    let known: Vec<&str> = names().collect();
    assert!(known.len() >= 80, "{}", known.len());
    assert_eq!(known.iter().collect::<BTreeSet<_>>().len(), known.len());
    for name in &known {
        let strategy = named(name);
        assert_eq!(strategy.label(), *name);
        assert!(strategy.source().contains(['1', '2']) && strategy.about().ends_with('.'), "{name}");
    }
    let told = |text: &str| parse(text, &PD).unwrap_err().to_string();
    assert_eq!(told("tit-for-tot"), "there is no strategy `tit-for-tot`; did you mean `tit-for-tat`?");
    assert_eq!(told("xyzzy-plugh"), "there is no strategy `xyzzy-plugh`");
    assert_eq!(told("grudger:p=1"), "strategy `grudger`: it has no parameters, so not `p`");
    assert_eq!(told("joss:q=1"), "strategy `joss`: there is no parameter `q`; it has p");
    assert_eq!(told("joss:p=1.5"), "strategy `joss`: `p` is 0 to 1, not 1.5");
    assert_eq!(told("joss:p=NaN"), "strategy `joss`: `p` is 0 to 1, not NaN");
    assert_eq!(told("joss:p=0.5:p=0.6"), "strategy `joss`: `p` is given twice");
    assert_eq!(told("go-by-majority:memory=1.5"), "strategy `go-by-majority`: `memory` is a whole number, not 1.5");
    assert_eq!(told("zd-set-2:phi=-1"), "strategy `zd-set-2`: `phi` is a finite number of at least 0, not -1");
    assert_eq!(told("zd-set-2:l=inf"), "strategy `zd-set-2`: `l` is a finite number, not inf");
    assert_eq!(told("joss:p"), "strategy `joss`: `p` is not a parameter: write `KEY=NUMBER`");
    assert!(told("cycler-cxd").contains("1 to 32 letters"));
    assert!(told("cycler-").contains("1 to 32 letters"));
    let label = "memory-one:cc=0.9:cd=0.25:first=0";
    assert_eq!(named(label).label(), label);
    assert_eq!(named("memory-one:first=0:cd=0.25:cc=0.9").label(), label);
    assert_eq!(named("cycler-ccdd").label(), "cycler-ccdd");
    // In a game without temptation there is nothing to extort.
    let (found, missing) = all(&Payoffs::of(&crate::library::named("coordination").unwrap()).unwrap());
    assert!(
        found.len() + missing.len() == known.len()
            && missing.iter().any(|error| error.to_string().contains("zd-extort-2"))
    );
}

#[test]
fn only_random_strategies_draw() {
    for strategy in all(&PD).0 {
        let mut others = Draws::new(5, Stream::World, 0, 0);
        let mut draws = Draws::new(6, Stream::Turn, 0, 0);
        let mut memory = Memory::default();
        let mut own = strategy.first(&mut memory, &mut draws);
        for _ in 0..400 {
            // Noise on the own move, too.
            let played = if others.chance(0.1) { own.flipped() } else { own };
            let other = if others.chance(0.6) { Move::Cooperate } else { Move::Defect };
            own = strategy.next(&mut memory, played, other, &mut draws);
        }
        assert_eq!(draws.used(), strategy.is_random(), "{}", strategy.label());
    }
    assert!(!named("random:p=1").is_random() && named("random").is_random());
}

#[test]
fn a_match_depends_on_neither_order_nor_other_players_nor_threads() {
    let noisy = conditions(150, 0.03);
    for (one, two) in [("joss", "tit-for-tat"), ("random", "zd-extort-2"), ("average-copier", "feld")] {
        let [one, two] = [one, two].map(named);
        let (there, back) = (play([&one, &two], &noisy, 9, 4, None), play([&two, &one], &noisy, 9, 4, None));
        assert_eq!(there, Outcome { cd: back.dc, dc: back.cd, ..back });
        assert_ne!(there, play([&one, &two], &noisy, 10, 4, None), "seed");
        assert_ne!(there, play([&one, &two], &noisy, 9, 5, None), "repetition");
    }
    let tournament = |names: &[&str]| Tournament {
        strategies: names.iter().map(|name| named(name)).collect(),
        conditions: noisy,
        repetitions: 3,
        self_play: true,
        seed: 9,
    };
    let names = ["joss", "tit-for-tat", "random", "zd-extort-2", "feld", "win-stay-lose-shift"];
    let turned: Vec<&str> = names.into_iter().rev().collect();
    let within = |threads: usize, names: &[&str]| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| tournament(names).run(true))
    };
    let (one, three, turned) = (within(1, &names), within(3, &names), within(2, &turned));
    assert_eq!(one, three);
    let ranking = |results: &Results| -> Vec<_> {
        results.ranking.iter().map(|rank| (rank.name.clone(), rank.score, rank.cooperation, rank.wins)).collect()
    };
    assert_eq!(ranking(&one), ranking(&turned));
}

#[test]
fn with_noise_of_one_half_all_moves_are_random() {
    for (one, two) in [("gradual", "defector"), ("win-stay-lose-shift", "tit-for-tat"), ("cooperator", "random")] {
        let n = 40_000;
        let Outcome { cc, cd, dc, dd } = play([&named(one), &named(two)], &conditions(n, 0.5), 2, 0, None);
        for count in [cc, cd, dc, dd] {
            // Four standard deviations of a share of one quarter.
            assert!(
                (count as f64 / f64::from(n) - 0.25).abs() < 4.0 * (0.1875 / f64::from(n)).sqrt(),
                "{one} {two}: {count}"
            );
        }
    }
}

/// Mean payoffs of a long match.
fn means(one: &str, two: &str, noise: f64) -> [f64; 2] {
    let n = 300_000;
    play([&named(one), &named(two)], &conditions(n, noise), 4, 0, None).scores(&PD).map(|sum| sum / f64::from(n))
}

#[test]
fn zero_determinant_strategies_enforce_their_relations() {
    for other in ["random", "random:p=0.9", "joss", "memory-one:cc=0.7:cd=0.2:dc=0.9:dd=0.4", "stochastic-wsls:p=0.2"] {
        let [own, others] = means("zd-extort-2", other, 0.0);
        assert!((0.5 * (own - 1.0) - (others - 1.0)).abs() < 0.02, "extort-2 against {other}: {own} {others}");
        let [own, others] = means("zd-gtft-2", other, 0.0);
        assert!((0.5 * (own - 3.0) - (others - 3.0)).abs() < 0.02, "gtft-2 against {other}: {own} {others}");
        let [_, others] = means("zd-set-2", other, 0.0);
        assert!((others - 2.0).abs() < 0.02, "set-2 against {other}: {others}");
    }
}

#[test]
fn some_strategies_recover_from_errors() {
    let cooperation = |name: &str, noise| {
        let outcome = play([&named(name), &named(name)], &conditions(300_000, noise), 8, 0, None);
        outcome.cooperations()[0] as f64 / outcome.turns() as f64
    };
    // Two turns after an error both cooperate again (Nowak and Sigmund 1993), or accept the punishment (Wu and Axelrod 1995). Tit for tat
    // wanders through all four outcomes alike.
    assert!(cooperation("win-stay-lose-shift", 0.01) > 0.95);
    assert!(cooperation("contrite-tit-for-tat", 0.01) > 0.95);
    assert!((cooperation("tit-for-tat", 0.01) - 0.5).abs() < 0.03);
    assert!(cooperation("grudger", 0.01) < 0.02);
}

#[test]
fn lengths_follow_the_probability_of_another_turn() {
    let conditions = Conditions { length: Length::Continues { probability: 0.9, most: 1000 }, ..Conditions::default() };
    let n = 20_000;
    let turns = (0..n).map(|repetition| play([&named("cooperator"); 2], &conditions, 1, repetition, None).turns());
    let turns: Vec<u64> = turns.collect();
    let mean = turns.iter().sum::<u64>() as f64 / f64::from(n);
    // The standard deviation of one length is 9.5.
    assert!((mean - 10.0).abs() < 0.3 && turns.contains(&1), "{mean}");
    for (length, noise, told) in [
        (Length::Turns(0), 0.0, "at least 1 turn"),
        (Length::Continues { probability: 1.0, most: 5 }, 0.0, "below 1, not 1"),
        (Length::Turns(1), 1.5, "0 to 1, not 1.5"),
        (Length::Turns(1), f64::NAN, "not NaN"),
    ] {
        let refused = Conditions { length, noise, payoffs: PD }.check().unwrap_err();
        assert!(refused.contains(told), "{refused}");
    }
}

#[test]
fn a_small_tournament_counts_right() {
    let strategies: Vec<Strategy> = ["cooperator", "defector", "tit-for-tat"].map(named).into();
    let tournament =
        Tournament { strategies, conditions: conditions(10, 0.0), repetitions: 2, self_play: true, seed: 1 };
    let results = tournament.run(false);
    assert_eq!(results.payoffs, [[3.0, 0.0, 3.0], [5.0, 1.0, 1.4], [3.0, 0.9, 3.0]]);
    let names: Vec<&str> = results.ranking.iter().map(|rank| rank.name.as_str()).collect();
    assert_eq!(names, ["defector", "tit-for-tat", "cooperator"]);
    let wins: Vec<u32> = results.ranking.iter().map(|rank| rank.wins).collect();
    assert_eq!(wins, [4, 0, 0]);
    assert!((results.ranking[0].score - 7.4 / 3.0).abs() < 1e-12);
    // 10 of 10 and 1 of 10 moves against the others, and all 20 against its copy.
    assert_eq!(results.ranking[1].cooperation, 31.0 / 40.0);
    let alone = Tournament { self_play: false, ..tournament }.run(false);
    assert!(alone.pairs.len() == 3 && (alone.ranking[1].score - 1.95).abs() < 1e-12);
}
