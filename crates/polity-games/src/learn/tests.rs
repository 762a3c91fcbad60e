#![allow(clippy::unwrap_used)]
use super::*;
use crate::correlated::regret;
use crate::normal::{Game, read};
use polity_base::rng::Stream;

/// Streams of losses: the number says which.
fn losses(kind: u32, seed: u64) -> impl FnMut(u32, &[f64], &mut [f64]) {
    let moves_of_most =
        |played: &[f64]| (0..played.len()).fold(0, |most, at| if played[at] > played[most] { at } else { most });
    move |round, played, losses| {
        let mut draws = Draws::new(seed, Stream::World, round, kind);
        let k = losses.len();
        match kind {
            // Uniform; coins of different bias; one move good for a time, then another.
            0 => losses.iter_mut().for_each(|loss| *loss = draws.unit()),
            1 => losses.iter_mut().enumerate().for_each(|(at, loss)| {
                *loss = f64::from(u8::from(draws.chance(0.3 + 0.4 * at as f64 / k as f64)));
            }),
            2 => losses
                .iter_mut()
                .enumerate()
                .for_each(|(at, loss)| *loss = f64::from(u8::from(round as usize / 50 % k != at))),
            // Adversaries: against the most probable move; the likelier the worse; in turn.
            3 => {
                losses.fill(0.0);
                losses[moves_of_most(played)] = 1.0;
            }
            4 => losses.iter_mut().zip(played).for_each(|(loss, p)| *loss = f64::from(u8::from(*p >= 1.0 / k as f64))),
            _ => losses
                .iter_mut()
                .enumerate()
                .for_each(|(at, loss)| *loss = f64::from(u8::from(round as usize % k == at))),
        }
    }
}

fn below(points: &[Point]) -> Result<(), String> {
    match points.iter().find(|point| point.regret > point.bound + 1e-9) {
        Some(point) => Err(format!("{point:?}")),
        None => Ok(()),
    }
}

/// 200 random sequences and 120 adversarial ones: regret never exceeds the theorem's bound.
#[test]
fn hedge_stays_below_its_bound() {
    for seed in 0..320u64 {
        let kind = if seed < 200 { seed % 3 } else { 3 + seed % 3 } as u32;
        let (moves, rounds) = (2 + (seed % 9) as usize, 100 + 7 * seed as u32);
        let step = Step::hedge(moves, rounds);
        let Step::Fixed(fixed) = step else { panic!("the tuned step is fixed") };
        let points = curve(&mut hedge(moves, step), moves, rounds, 10, losses(kind, seed), |rounds| {
            hedge_step_bound(moves, rounds, fixed)
        });
        below(&points).unwrap();
        let last = points.last().unwrap();
        assert!(last.regret <= hedge_bound(moves, rounds), "{seed}: {last:?}");
        assert!((last.bound - hedge_bound(moves, rounds)).abs() < 1e-9);
        let mut anytime = hedge(moves, Step::hedge_anytime(moves));
        let bound = |rounds| hedge_anytime_bound(moves, rounds);
        below(&curve(&mut anytime, moves, rounds, 10, losses(kind, seed), bound)).unwrap();
    }
}

#[test]
fn the_others_stay_below_their_bounds() {
    for seed in 0..120u64 {
        let kind = (seed % 6) as u32;
        let (moves, rounds) = (2 + (seed % 7) as usize, 200 + 10 * seed as u32);
        for plus in [false, true] {
            let bound = |rounds| matching_bound(moves, rounds);
            below(&curve(&mut RegretMatching::new(moves, plus), moves, rounds, 10, losses(kind, seed), bound)).unwrap();
        }
        let mut euclidean = Ftrl::new(moves, Regulariser::Euclidean, Step::euclidean(moves, rounds));
        let points =
            curve(&mut euclidean, moves, rounds, rounds, losses(kind, seed), |rounds| euclidean_bound(moves, rounds));
        below(&points).unwrap();
        let mut internal = InternalRegretMatching::new(moves);
        let mut regret = Regret::new(moves);
        let mut stream = losses(kind, seed);
        let mut lost = vec![0.0; moves];
        for round in 0..rounds {
            stream(round, internal.probabilities(), &mut lost);
            regret.add(internal.probabilities(), &lost);
            internal.update(&lost);
            assert!(regret.internal() <= internal_bound(moves, regret.rounds()) + 1e-9);
            assert!(regret.external() <= regret.swap() + 1e-9);
        }
    }
}

/// The bound holds in expectation and for losses fixed beforehand: the mean of 40 seeds.
#[test]
fn the_perturbed_leader_stays_below_its_bound() {
    let (moves, rounds) = (5, 1_000);
    for kind in [0, 1, 2, 5] {
        let regret = |seed| {
            let mut learner = PerturbedLeader::tuned(moves, rounds, seed);
            curve(&mut learner, moves, rounds, rounds, losses(kind, 3), |_| 0.0)[0].regret
        };
        let mean = (0..40).map(regret).sum::<f64>() / 40.0;
        assert!(mean <= perturbed_bound(moves, rounds), "{kind}: {mean}");
    }
    // Without perturbation to speak of, an adversary makes the leader wrong in nearly every round.
    let mut leader = PerturbedLeader::new(2, 1e9, 1);
    assert!(curve(&mut leader, 2, rounds, rounds, losses(3, 0), |_| 0.0)[0].regret > 0.49 * f64::from(rounds));
}

/// What each kind of regret is, by hand: three rounds, moves 0, 1, 1.
#[test]
fn regrets_are_exact() {
    let mut regret = Regret::new(2);
    regret.add(&[1.0, 0.0], &[1.0, 0.0]);
    regret.add(&[0.0, 1.0], &[0.25, 1.0]);
    regret.add(&[0.0, 1.0], &[0.5, 0.25]);
    // Lost: 1 + 1 + 0.25; always 0: 1.75; always 1: 1.25.
    assert_eq!((regret.suffered(), regret.external()), (2.25, 1.0));
    // 0 to 1 saves 1; 1 to 0 saves 0.75 - 0.25.
    assert_eq!((regret.internal(), regret.swap(), regret.rounds()), (1.0, 1.5, 3));
}

#[test]
fn projections_are_the_nearest_probabilities() {
    for (point, expected) in [
        (vec![0.2, 0.8], vec![0.2, 0.8]),
        (vec![2.0, 0.0, 0.0], vec![1.0, 0.0, 0.0]),
        (vec![0.0, 0.0, 0.0, 0.0], vec![0.25; 4]),
        (vec![1.0, 0.5, -3.0], vec![0.75, 0.25, 0.0]),
    ] {
        let mut found = point.clone();
        project(&mut found);
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{point:?}: {found:?}");
    }
}

/// UCB1 below the bound of its theorem at every point, and logarithmic: ten times the rounds add about ln 10 times a constant.
#[test]
fn ucb1_has_logarithmic_regret() {
    let means = [0.9, 0.6, 0.5, 0.3];
    let seeds = 20;
    let mut mean = [0.0; 30];
    for seed in 0..seeds {
        let points =
            bernoulli_curve(&mut Ucb1::new(4), &means, 30_000, 1_000, seed, |rounds| ucb1_bound(&means, rounds));
        mean.iter_mut().zip(&points).for_each(|(sum, point)| *sum += point.regret / seeds as f64);
    }
    for (i, regret) in mean.iter().enumerate() {
        assert!(*regret <= ucb1_bound(&means, 1_000 * (i as u32 + 1)), "{i}: {regret}");
    }
    // From 3,000 to 30,000 rounds the same is added as from 1,000 to 10,000, up to noise; linear regret would add ten times as much.
    let (early, late) = (mean[9] - mean[0], mean[29] - mean[2]);
    assert!(late < 1.5 * early && early > 10.0, "{early} {late}");
}

#[test]
fn bandits_find_the_best_arm() {
    let means = [0.4, 0.5, 0.7];
    let regret = |bandit: &mut dyn Bandit, rounds: u32| {
        (0..10).map(|seed| bernoulli_curve(bandit, &means, rounds, rounds, seed, |_| 0.0)[0].regret).sum::<f64>() / 10.0
    };
    let each = |make: &dyn Fn() -> Box<dyn Bandit>| {
        let of = |rounds: u32| {
            (0..10)
                .map(|seed| bernoulli_curve(make().as_mut(), &means, rounds, rounds, seed, |_| 0.0)[0].regret)
                .sum::<f64>()
                / 10.0
        };
        (of(2_000), of(20_000))
    };
    // Choosing at random costs a sixth a round.
    let blind = each(&|| Box::new(EpsilonGreedy::new(3, Exploration::Fixed(1.0))));
    assert!((blind.1 / 20_000.0 - 0.5 / 3.0).abs() < 0.01, "{blind:?}");
    // A fixed share of exploration costs that share for ever.
    let fixed = each(&|| Box::new(EpsilonGreedy::new(3, Exploration::Fixed(0.1))));
    assert!(fixed.1 > 0.8 * 0.1 * 20_000.0 * 0.5 / 3.0 && fixed.1 < 0.3 * blind.1, "{fixed:?}");
    let decreasing = each(&|| Box::new(EpsilonGreedy::new(3, Exploration::Decreasing(100.0))));
    assert!(decreasing.1 < 0.5 * fixed.1 && decreasing.1 < 3.0 * decreasing.0, "{decreasing:?}");
    let ucb = each(&|| Box::new(Ucb1::new(3)));
    let thompson = each(&|| Box::new(Thompson::new(3)));
    assert!(thompson.1 < 0.5 * ucb.1 && ucb.1 < 0.15 * blind.1, "{thompson:?} {ucb:?}");
    // What is known is kept: a second run of the same bandit costs less.
    let mut again = Thompson::new(3);
    let first = regret(&mut again, 500);
    assert!(regret(&mut again, 500) < first);
}

/// Against rewards fixed beforehand, which change sides: the mean of 20 seeds.
#[test]
fn exp3_stays_below_its_bound() {
    let (arms, rounds) = (4, 4_000);
    for kind in [0, 1, 2, 5] {
        let mut mean = 0.0;
        for seed in 0..20 {
            let mut stream = losses(kind, 8);
            let rewards = |round: u32, rewards: &mut [f64]| stream(round, &[], rewards);
            let points = bandit_curve(&mut Exp3::tuned(arms, rounds), arms, rounds, rounds, seed, rewards, |_| 0.0);
            mean += points[0].regret / 20.0;
        }
        assert!(mean <= exp3_bound(arms, rounds), "{kind}: {mean}");
    }
    let mut bandit = Exp3::new(2, 0.1);
    (0..200).for_each(|_| bandit.update(0, 1.0));
    assert!((bandit.probabilities()[0] - 0.95).abs() < 1e-3);
}

fn game(payoffs: &str, moves: &str) -> Game {
    read(&format!("NFG 1 R \"g\" {{ \"A\" \"B\" }} {{ {{ {moves} }} {{ {moves} }} }} {payoffs}")).unwrap()
}

fn learners(moves: usize, rounds: u32, which: &str) -> [Box<dyn Learner>; 2] {
    let one = |seed: u64| -> Box<dyn Learner> {
        match which {
            "hedge" => Box::new(hedge(moves, Step::hedge(moves, rounds))),
            "hedge, anytime" => Box::new(hedge(moves, Step::hedge_anytime(moves))),
            "euclidean" => Box::new(Ftrl::new(moves, Regulariser::Euclidean, Step::euclidean(moves, rounds))),
            "matching" => Box::new(RegretMatching::new(moves, false)),
            "matching+" => Box::new(RegretMatching::new(moves, true)),
            "internal" => Box::new(InternalRegretMatching::new(moves)),
            _ => Box::new(PerturbedLeader::tuned(moves, rounds, seed)),
        }
    };
    [one(1), one(2)]
}

const ALL: [&str; 7] = ["hedge", "hedge, anytime", "euclidean", "matching", "matching+", "internal", "perturbed"];

/// Rock, paper, scissors, where a rock's win counts 2: the value is 0, the only equilibrium plays 1/4, 1/2, 1/4.
#[test]
fn average_play_of_a_zero_sum_game_goes_to_the_equilibrium() {
    let game = game("0 0 1 -1 -2 2 -1 1 0 0 1 -1 2 -2 -1 1 0 0", "\"r\" \"p\" \"s\"");
    let rounds = 40_000;
    for which in ALL {
        for play in [Play::Expected, Play::Drawn(4)] {
            let mut pair = learners(3, rounds, which);
            let meeting = meet(&game, &mut pair, rounds, play).unwrap();
            assert!(
                meeting.payoffs[0].abs() < 0.03 && (meeting.payoffs[0] + meeting.payoffs[1]).abs() < 1e-9,
                "{which}"
            );
            for own in &meeting.averages {
                let far = own.iter().zip([0.25, 0.5, 0.25]).map(|(p, q)| (p - q).abs()).fold(0.0, f64::max);
                assert!(far < 0.05, "{which} {play:?}: {own:?}");
            }
            let first: f64 = (0..9).filter(|at| at % 3 == 0).map(|at| meeting.joint[at]).sum();
            assert!((first - meeting.averages[0][0]).abs() < 1e-9);
        }
    }
}

/// Shapley's game (1964), in which play need not settle, and chicken: the joint play is as far from the coarse-correlated equilibria as
/// the largest external regret, and from the correlated ones as the largest swap regret. Only learners on pairs bring the latter down
/// for sure.
#[test]
fn regret_is_the_distance_from_correlated_equilibria() {
    let shapley = game("0 0 0 1 1 0 1 0 0 0 0 1 0 1 1 0 0 0", "\"a\" \"b\" \"c\"");
    let chicken = game("6 6 7 2 2 7 0 0", "\"dare\" \"yield\"");
    let rounds = 40_000;
    for (game, moves) in [(&shapley, 3), (&chicken, 2)] {
        for which in ALL {
            let mut pair = learners(moves, rounds, which);
            let meeting = meet(game, &mut pair, rounds, Play::Drawn(11)).unwrap();
            let most = |regrets: &[f64]| regrets.iter().copied().fold(0.0, f64::max);
            let (coarse, fine) = (regret(game, &meeting.joint, true), regret(game, &meeting.joint, false));
            assert!((coarse - most(&meeting.external)).abs() < 1e-9, "{which}");
            assert!((fine - most(&meeting.swap)).abs() < 1e-9, "{which}");
            assert!(coarse < 0.04 && coarse <= fine + 1e-12, "{which}: {coarse}");
            if which == "internal" {
                assert!(fine < 0.03, "{fine}");
            }
        }
    }
    // A mean over the pure coordination outcomes of chicken is a correlated equilibrium; the worst outcome is not.
    assert_eq!(regret(&chicken, &[0.0, 0.5, 0.5, 0.0], false), 0.0);
    assert_eq!(regret(&chicken, &[0.0, 0.0, 0.0, 1.0], true), 2.0);
}

#[test]
fn what_does_not_fit_a_game_is_refused() {
    let chicken = game("6 6 7 2 2 7 0 0", "\"dare\" \"yield\"");
    let mut wrong = learners(3, 10, "hedge");
    assert!(
        meet(&chicken, &mut wrong, 10, Play::Expected).unwrap_err().contains("A has 2 strategies, and the learner")
    );
    let mut right = learners(2, 10, "hedge");
    assert!(meet(&chicken, &mut right[..1], 10, Play::Expected).unwrap_err().contains("2 players need 2 learners"));
    assert!(meet(&chicken, &mut right, 0, Play::Expected).unwrap_err().contains("at least one round"));
}

/// Three players: each wants to differ from the next one in a circle; external regret vanishes for all.
#[test]
fn three_learners_have_no_regret_either() {
    let mut payoffs = String::new();
    for at in 0..8usize {
        let moves = [at & 1, at >> 1 & 1, at >> 2];
        (0..3).for_each(|i| payoffs.push_str(if moves[i] == moves[(i + 1) % 3] { "0 " } else { "1 " }));
    }
    let text = format!(
        "NFG 1 R \"c\" {{ \"A\" \"B\" \"C\" }} {{ {{ \"x\" \"y\" }} {{ \"x\" \"y\" }} {{ \"x\" \"y\" }} }} {payoffs}"
    );
    let game = read(&text).unwrap();
    let mut all: Vec<Box<dyn Learner>> =
        (0..3).map(|_| Box::new(RegretMatching::new(2, true)) as Box<dyn Learner>).collect();
    let meeting = meet(&game, &mut all, 5_000, Play::Drawn(2)).unwrap();
    assert!(meeting.external.iter().all(|regret| *regret < 0.03), "{:?}", meeting.external);
    assert!(regret(&game, &meeting.joint, true) < 0.03);
}

#[test]
fn the_same_seed_gives_the_same_play() {
    let chicken = game("6 6 7 2 2 7 0 0", "\"dare\" \"yield\"");
    let played = |seed| meet(&chicken, &mut learners(2, 500, "perturbed"), 500, Play::Drawn(seed)).unwrap();
    assert_eq!(played(1), played(1));
    let drawn = |seed| meet(&chicken, &mut learners(2, 500, "hedge"), 500, Play::Drawn(seed)).unwrap();
    assert_ne!(drawn(1), drawn(2));
}
