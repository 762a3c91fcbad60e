//! Tests of solvers against textbooks, against each other, and on random games. `scripts/solvers.sh` compares them with nashpy and HiGHS.
#![allow(clippy::unwrap_used)]

use crate::correlated::{Aim, coarse, correlated};
use crate::equilibrium::{Equilibrium, Play};
use crate::nash;
use crate::normal::{Game, read};
use crate::{library, quantal, risk, stackelberg};
use polity_base::rng::{Draws, Stream};

/// A game with payoffs that are uniform on [-1, 1), or small whole numbers, which make it degenerate.
fn random(sizes: &[usize], number: u32, whole: bool) -> Game {
    let mut draws = Draws::new(11, Stream::World, number, u32::from(whole));
    let names = |size: &usize| (0..*size).map(|i| format!("s{i}")).collect();
    let players = (0..sizes.len()).map(|i| format!("P{i}")).collect();
    let count = sizes.iter().product::<usize>() * sizes.len();
    let mut payoff = || if whole { draws.below(3) as f64 } else { draws.range(-1.0, 1.0) };
    let payoffs = (0..count).map(|_| payoff()).collect();
    Game::new("random", players, sizes.iter().map(names).collect(), payoffs).unwrap()
}

fn close(a: &[Vec<f64>], b: &[Vec<f64>], tolerance: f64) -> bool {
    a.len() == b.len() && a.iter().flatten().zip(b.iter().flatten()).all(|(a, b)| (a - b).abs() <= tolerance)
}

fn has(found: &[Equilibrium], strategies: &[Vec<f64>]) -> bool {
    found.iter().any(|one| close(one.strategies(), strategies, 1e-9))
}

#[test]
fn textbook_games_have_their_known_equilibria() {
    let third = 1.0 / 3.0;
    let thirds: &[f64] = &[third; 3];
    let mostly: &[f64] = &[2.0 / 3.0, third];
    let (a, b): (&[f64], &[f64]) = (&[1.0, 0.0], &[0.0, 1.0]);
    type Known<'a> = Vec<[&'a [f64]; 2]>;
    // All equilibria of each game, by hand; see the sources in the library.
    let known: [(&str, Known<'_>); 15] = [
        ("prisoners-dilemma", vec![[b, b]]),
        ("donation", vec![[b, b]]),
        ("stag-hunt", vec![[a, a], [b, b], [&[0.75, 0.25], &[0.75, 0.25]]]),
        ("chicken", vec![[a, b], [b, a], [mostly, mostly]]),
        // (b - c) / (b - c / 2) = 2 / 3 cooperate, where b = 2 and c = 1.
        ("snowdrift", vec![[a, b], [b, a], [mostly, mostly]]),
        // V / C = 2 / 3 fight.
        ("hawk-dove", vec![[a, b], [b, a], [mostly, mostly]]),
        ("battle-of-the-sexes", vec![[a, a], [b, b], [&[0.6, 0.4], &[0.4, 0.6]]]),
        ("matching-pennies", vec![[&[0.5, 0.5], &[0.5, 0.5]]]),
        // Only the other player's behaviour depends on the ninefold payoff.
        ("biased-pennies", vec![[&[0.5, 0.5], &[0.1, 0.9]]]),
        ("rock-paper-scissors", vec![[thirds, thirds]]),
        ("deadlock", vec![[b, b]]),
        ("coordination", vec![[a, a], [b, b], [&[0.5, 0.5], &[0.5, 0.5]]]),
        ("shapley", vec![[thirds, thirds]]),
        ("inspection", vec![[&[0.5, 0.5], &[0.75, 0.25]]]),
        ("travellers-dilemma-4", vec![[&[1.0, 0.0, 0.0], &[1.0, 0.0, 0.0]]]),
    ];
    for (name, all) in known {
        let solved = nash::solve(&library::named(name).unwrap()).unwrap();
        assert_eq!(solved.equilibria.len(), all.len(), "{name}: {:?}", solved.equilibria);
        assert!(solved.complete && !solved.continuum, "{name}");
        for strategies in all {
            let strategies: Vec<Vec<f64>> = strategies.iter().map(|own| own.to_vec()).collect();
            assert!(has(&solved.equilibria, &strategies), "{name}: {strategies:?}");
        }
    }
}

#[test]
fn every_game_of_the_library_is_made_and_read_back() {
    for entry in library::GAMES {
        let game = library::named(entry.name).unwrap();
        assert_eq!(read(&game.write()).unwrap(), game, "{}", entry.name);
    }
    assert!(library::named("prisoners").unwrap_err().contains("prisoners-dilemma"));
    assert!(library::named("prisoners-dilema").unwrap_err().contains("did you mean `prisoners-dilemma`?"));
    assert!(library::named("chicken-3").is_err());
}

#[test]
fn a_continuum_is_reported_with_its_ends() {
    // If the entrant stays out, the incumbent may fight with any probability from 1/2.
    let solved = nash::all(&library::named("market-entry").unwrap()).unwrap();
    assert!(solved.continuum && solved.equilibria.len() == 3, "{solved:?}");
    for (first, second) in [([0.0, 1.0], [1.0, 0.0]), ([1.0, 0.0], [0.0, 1.0]), ([1.0, 0.0], [0.5, 0.5])] {
        assert!(has(&solved.equilibria, &[first.to_vec(), second.to_vec()]), "{solved:?}");
    }
    // Every profile is an equilibrium of a game without stakes.
    let game =
        Game::from_fn("none", vec!["A".into(), "B".into()], vec![vec!["x".into(), "y".into()]; 2], |_| vec![7.0, 7.0]);
    let solved = nash::all(&game.unwrap()).unwrap();
    assert!(solved.continuum && solved.equilibria.len() == 4, "{solved:?}");
}

#[test]
fn random_games_of_two_players_are_solved_without_regret() {
    for number in 0..200 {
        let sizes = [2 + number as usize % 4, 2 + number as usize / 4 % 4];
        for whole in [false, true] {
            let game = random(&sizes, number, whole);
            let solved = nash::all(&game).unwrap();
            // A game that is not degenerate has an odd number of equilibria (Wilson 1971).
            assert!(
                whole || solved.equilibria.len() % 2 == 1 && !solved.continuum,
                "game {number}: {}",
                solved.equilibria.len()
            );
            assert!(solved.equilibria.iter().all(|one| one.regret < 1e-9), "game {number}");
            for profile in nash::pure(&game) {
                assert!(solved.equilibria.iter().any(|one| one.probability(&profile) > 1.0 - 1e-9), "game {number}");
            }
            for label in 0..sizes[0] + sizes[1] {
                let one = nash::lemke_howson(&game, label).unwrap();
                assert!(one.regret < 1e-9, "game {number}, label {label}: {one:?}");
                assert!(has(&solved.equilibria, one.strategies()), "game {number}, label {label}: {one:?} {solved:?}");
            }
        }
    }
}

#[test]
fn larger_games_are_solved_by_one_equilibrium_or_refused() {
    let game = random(&[40, 40], 1, false);
    assert!(nash::all(&game).unwrap_err().contains("40 by 40 strategies"));
    // C(22, 11) - 1, for 11 by 11 strategies; 12 by 12 have C(24, 12) - 1.
    assert!(nash::all(&random(&[12, 12], 1, false)).unwrap_err().contains("at least 2704155 pairs"));
    let solved = nash::solve(&game).unwrap();
    assert_eq!((solved.method.as_str(), solved.complete), ("Lemke-Howson", false));
    assert!(solved.equilibria[0].regret < 1e-9, "{}", solved.equilibria[0].regret);
    assert!(nash::lemke_howson(&game, 80).unwrap_err().contains("0 to 79"));
    assert!(quantal::logit(&random(&[80, 80], 1, false), 1.0).unwrap_err().contains("6400 combinations"));
    assert!(correlated(&random(&[60, 60], 1, false), Aim::Welfare).unwrap_err().contains("too large"));
    assert!(nash::all(&random(&[5, 5, 5], 1, false)).unwrap_err().contains("29791"));
}

#[test]
fn zero_sum_programs_give_the_value_of_nash_equilibria() {
    for number in 0..60 {
        let half = random(&[2 + number as usize % 5, 3 + number as usize % 3], number, number % 3 == 0);
        let game = Game::from_fn("zero", half.players.clone(), half.strategies.clone(), |profile| {
            let payoff = half.payoff(profile, 0);
            vec![payoff, 2.0 - payoff]
        });
        let game = game.unwrap();
        let secured = nash::zero_sum(&game).unwrap();
        assert!(secured.regret < 1e-9);
        for one in nash::all(&game).unwrap().equilibria {
            assert!((one.payoffs[0] - secured.payoffs[0]).abs() < 1e-9, "game {number}");
        }
    }
    let large = random(&[60, 50], 3, false);
    let large = Game::from_fn("zero", large.players.clone(), large.strategies.clone(), |profile| {
        vec![large.payoff(profile, 0), -large.payoff(profile, 0)]
    });
    let solved = nash::solve(&large.unwrap()).unwrap();
    assert!(
        solved.method == "linear programming" && solved.equilibria[0].regret < 1e-9,
        "{}",
        solved.equilibria[0].regret
    );
    let chicken = library::named("chicken").unwrap();
    let tiny = Game::from_fn("tiny", chicken.players.clone(), chicken.strategies.clone(), |profile| {
        vec![1e-14 * chicken.payoff(profile, 0), 1e-14 * chicken.payoff(profile, 1)]
    });
    for game in [chicken, tiny.unwrap()] {
        assert!(nash::zero_sum(&game).unwrap_err().contains("same sum"));
    }
}

#[test]
fn games_of_more_players_have_their_known_equilibria() {
    // Each pure volunteer; two who mix while one waits, with 1/2; and all three mix: they wait with (cost / gain)^(1/2).
    let solved = nash::solve(&library::named("volunteers-dilemma").unwrap()).unwrap();
    assert_eq!(solved.equilibria.len(), 7, "{solved:?}");
    let waits = 0.5f64.sqrt();
    assert!(has(&solved.equilibria, &vec![vec![1.0 - waits, waits]; 3]), "{solved:?}");
    assert!(has(&solved.equilibria, &[vec![0.5, 0.5], vec![0.0, 1.0], vec![0.5, 0.5]]));
    assert_eq!(nash::pure(&library::named("public-goods").unwrap()), [[1, 1, 1, 1]]);
    // The game with nine equilibria of McKelvey and McLennan (1997): the most that 2 by 2 by 2 strategies can have.
    let nine = "NFG 1 R \"nine\" { \"A\" \"B\" \"C\" } { { \"a\" \"b\" } { \"a\" \"b\" } { \"a\" \"b\" } }
        9 8 12  0 0 0  0 0 0  9 8 2  0 0 0  3 4 6  3 4 4  0 0 0";
    let solved = nash::solve(&read(nine).unwrap()).unwrap();
    assert_eq!(solved.equilibria.len(), 9, "{solved:?}");
    for number in 0..40 {
        let sizes: &[usize] = if number % 2 == 0 { &[2, 3, 2] } else { &[2, 2, 2, 2] };
        let game = random(sizes, number, false);
        let found = nash::all(&game).unwrap();
        assert!(found.equilibria.iter().all(|one| one.regret < 1e-9));
        let traced = nash::traced(&game).unwrap();
        assert!(traced.regret < 1e-9, "game {number}: {traced:?}");
        assert!(has(&found.equilibria, traced.strategies()), "game {number}: {traced:?} {found:?}");
    }
}

#[test]
fn correlated_equilibria_are_at_least_as_good_as_nash_equilibria() {
    // The best one of Aumann's game: 1/2, 1/4, 1/4, with 5.25 for each (Papadimitriou and Roughgarden 2008).
    let game = library::named("chicken").unwrap();
    let best = correlated(&game, Aim::Welfare).unwrap();
    assert!((best.welfare() - 10.5).abs() < 1e-9 && (best.probability(&[0, 0]) - 0.5).abs() < 1e-9, "{best:?}");
    let own = correlated(&game, Aim::Player(1)).unwrap();
    assert!((own.payoffs[1] - 7.0).abs() < 1e-9);
    assert!(correlated(&game, Aim::Player(2)).is_err());
    for number in 0..100 {
        let sizes: &[usize] = [&[3, 3][..], &[4, 2], &[2, 2, 2], &[3, 2, 2]][number as usize % 4];
        let game = random(sizes, number, number % 3 == 0);
        let (best, coarse) = (correlated(&game, Aim::Welfare).unwrap(), coarse(&game, Aim::Welfare).unwrap());
        assert!(best.regret < 1e-9 && coarse.regret < 1e-9, "game {number}: {} {}", best.regret, coarse.regret);
        let nash =
            nash::all(&game).unwrap().equilibria.iter().map(Equilibrium::welfare).fold(f64::NEG_INFINITY, f64::max);
        assert!(best.welfare() > nash - 1e-9 && coarse.welfare() > best.welfare() - 1e-9, "game {number}");
        let Play::Joint(outcomes) = &best.play else { panic!("not joint") };
        assert!((outcomes.iter().map(|one| one.probability).sum::<f64>() - 1.0).abs() < 1e-12);
    }
    let large = correlated(&random(&[4, 4, 4, 4], 5, false), Aim::Welfare).unwrap();
    assert!(large.regret < 1e-9, "{}", large.regret);
    // The primal simplex method stalls on this one.
    for whole in [false, true] {
        let large = correlated(&random(&[11, 11], 5, whole), Aim::Welfare).unwrap();
        assert!(large.regret < 1e-9, "{}", large.regret);
    }
}

#[test]
fn quantal_responses_fulfil_their_equations() {
    // In a symmetric 2 by 2 game p solves p = 1 / (1 + exp(lambda (value of defection - value of cooperation))).
    let game = library::named("prisoners-dilemma").unwrap();
    for lambda in [0.0, 0.1, 0.7, 3.0, 20.0] {
        let found = quantal::logit(&game, lambda).unwrap();
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..200 {
            let p = (low + high) / 2.0;
            let better = 2.0 * p + 1.0 - p;
            if p > 1.0 / (1.0 + f64::exp(lambda * better)) { high = p } else { low = p }
        }
        assert!((found.equilibrium.strategies()[1][0] - low).abs() < 1e-10, "{lambda}: {found:?}");
        assert!(found.residual < 1e-10 && (found.lambda - lambda).abs() < 1e-12);
    }
    // Own payoffs matter: more than half choose heads, where nine can be gained (Goeree, Holt and Palfrey 2003).
    let game = library::named("biased-pennies").unwrap();
    let found = quantal::logit(&game, 1.0).unwrap();
    assert!(found.equilibrium.strategies()[0][0] > 0.6);
    for lambda in [0.0, 0.3, 3.0, 10.0, 50.0] {
        assert!(quantal::logit(&game, lambda).unwrap().residual < 1e-9, "{lambda}");
    }
    for number in 0..30 {
        let game = random(&[3, 2, 2], number, number % 2 == 0);
        let found = quantal::logit(&game, 8.0).unwrap();
        assert!(found.residual < 1e-9, "game {number}: {}", found.residual);
    }
    assert!(quantal::logit(&game, -1.0).unwrap_err().contains("lambda"));
}

#[test]
fn commitments_are_the_known_ones_and_never_hurt() {
    // Conitzer and Sandholm (2006): 2 in the only Nash equilibrium, 3 by committing to down, 3.5 by an even mixture.
    let game = library::named("commitment").unwrap();
    let best = stackelberg::strong(&game, 0).unwrap();
    assert!((best.equilibrium.payoffs[0] - 3.5).abs() < 1e-9 && best.reply == 1, "{best:?}");
    assert!(close(best.equilibrium.strategies(), &[vec![0.5, 0.5], vec![0.0, 1.0]], 1e-9));
    // By hand: the inspector inspects just often enough, and gains 3.5 instead of 2.
    let best = stackelberg::strong(&library::named("inspection").unwrap(), 0).unwrap();
    assert!((best.equilibrium.payoffs[0] - 3.5).abs() < 1e-9);
    for number in 0..60 {
        let game = random(&[3, 4], number, number % 2 == 0);
        for leader in 0..2 {
            let best = stackelberg::strong(&game, leader).unwrap();
            assert!(best.equilibrium.regret < 1e-9, "game {number}");
            // Commitment never hurts a leader (von Stengel and Zamir 2010).
            let nash =
                nash::all(&game).unwrap().equilibria.iter().map(|one| one.payoffs[leader]).fold(f64::MIN, f64::max);
            assert!(best.equilibrium.payoffs[leader] > nash - 1e-9, "game {number}");
        }
    }
}

#[test]
fn risk_aversion_chooses_the_safe_outcome() {
    // Trust is risk-dominant here, but one in ten hunts for stags would fail.
    let text = "NFG 1 R \"trust\" { \"A\" \"B\" } { { \"stag\" \"hare\" } { \"stag\" \"hare\" } } 10 10  4 0  0 4  4 4";
    let game = read(text).unwrap();
    let attitude = |aversion| risk::Attitude { aversion, tremble: 0.2 };
    let neutral = risk::equilibrium(&game, attitude(0.0)).unwrap();
    let averse = risk::equilibrium(&game, attitude(1.0)).unwrap();
    assert!(close(neutral.equilibrium.strategies(), &[vec![1.0, 0.0], vec![1.0, 0.0]], 1e-6), "{neutral:?}");
    assert!(close(averse.equilibrium.strategies(), &[vec![0.0, 1.0], vec![0.0, 1.0]], 1e-6), "{averse:?}");
    assert!(averse.variances[0] < 1e-9 && neutral.variances[0] > 5.0 && averse.equilibrium.regret < 1e-7);
    // Without aversion and tremble it is a Nash equilibrium; risk-averse players have no regret in their own objective.
    let none = risk::Attitude { aversion: 0.0, tremble: 0.0 };
    for number in 0..30 {
        let game = random(&[3, 3], number, false);
        assert!(risk::equilibrium(&game, none).unwrap().neutral_regret < 1e-9, "game {number}");
        let averse = risk::equilibrium(&game, attitude(1.0)).unwrap();
        assert!(averse.equilibrium.regret < 1e-7, "game {number}: {averse:?}");
    }
    assert!(risk::equilibrium(&game, attitude(-1.0)).is_err());
    assert!(risk::equilibrium(&game, risk::Attitude { aversion: 1.0, tremble: 2.0 }).is_err());
}

#[test]
fn profiles_are_evaluated() {
    let game = library::named("battle-of-the-sexes").unwrap();
    let mixed = [vec![0.6, 0.4], vec![0.4, 0.6]];
    let (payoffs, gains) = game.payoffs_and_gains(&mixed);
    assert!(payoffs.iter().all(|payoff| (payoff - 1.2).abs() < 1e-12) && gains.iter().all(|gain| *gain < 1e-12));
    assert_eq!(game.payoffs_and_gains(&[vec![1.0, 0.0], vec![0.0, 1.0]]), (vec![0.0, 0.0], vec![2.0, 2.0]));
    let names = || vec![vec!["a".to_owned(), "b".to_owned()]];
    assert!(Game::new("x", vec!["A".into()], names(), vec![1.0, f64::NAN]).unwrap_err().contains("finite"));
    assert!(Game::new("x", vec!["A".into(), "B".into()], names(), vec![]).unwrap_err().contains("lists"));
}

/// Fourteen players who all gain by doing the same: too many combinations for the other methods.
#[test]
fn large_games_are_searched_for_pure_equilibria() {
    let players: Vec<String> = (0..14).map(|i| format!("player {i}")).collect();
    let same = |profile: &[usize]| vec![f64::from(u8::from(profile.iter().all(|own| *own == profile[0]))); 14];
    let game = Game::from_fn("assembly", players, vec![vec!["a".into(), "b".into()]; 14], same).unwrap();
    let solved = nash::solve(&game).unwrap();
    assert_eq!((solved.method.as_str(), solved.complete), ("enumeration of pure strategies", false));
    assert!(solved.equilibria.iter().all(|one| one.regret == 0.0));
    assert_eq!(solved.equilibria[0].payoffs, [1.0; 14]);
}
