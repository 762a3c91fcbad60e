//! Nash equilibria of games of more than two players, support by support.

use crate::equilibrium::Equilibrium;
use crate::normal::Game;
use crate::path::Responses;
use polity_base::rng::{Draws, Stream};

/// The most combinations of supports.
const MOST: usize = 20_000;
/// The points from which Newton's method starts on each combination: the centre, and random ones.
const STARTS: u32 = 8;

/// Finds equilibria on all combinations of supports in which no strategy is strictly dominated (Porter, Nudelman and Shoham 2008).
pub(crate) fn supports(game: &Game) -> Result<Vec<Equilibrium>, String> {
    let sizes = game.sizes();
    if sizes.len() < 2 {
        return Err("an equilibrium needs at least two players".into());
    }
    // Counts that are too large for a number end at the largest one.
    let subsets =
        |size: &usize| 1usize.checked_shl(u32::try_from(*size).unwrap_or(u32::MAX)).map_or(usize::MAX, |n| n - 1);
    let count = sizes.iter().map(subsets).fold(1usize, usize::saturating_mul);
    if count > MOST {
        return Err(format!(
            "the game is too large for an enumeration of supports: it has at least {count} combinations of them, and at most {MOST} \
             are tried"
        ));
    }
    let mut all: Vec<Vec<Vec<usize>>> = (0..count)
        .map(|number| {
            let mut rest = number;
            let support = |size: &usize| {
                let (mask, subsets) = (rest % subsets(size) + 1, subsets(size));
                rest /= subsets;
                (0..*size).filter(|i| mask >> i & 1 == 1).collect()
            };
            sizes.iter().map(support).collect()
        })
        .collect();
    // Small supports first.
    all.sort_by_key(|supports| supports.iter().map(Vec::len).sum::<usize>());
    let ranges: Vec<f64> = (0..sizes.len()).map(|player| game.range(player)).map(|(low, high)| high - low).collect();
    let mut found: Vec<Equilibrium> = Vec::new();
    for (number, supports) in all.iter().enumerate() {
        if !conditionally_undominated(game, supports) {
            continue;
        }
        let small = restricted(game, supports)?;
        let responses = Responses::new(&small, 0.0, 0.0)?;
        let whole: Vec<Vec<usize>> = supports.iter().map(|own| (0..own.len()).collect()).collect();
        let starts = if supports.iter().all(|own| own.len() == 1) { 1 } else { STARTS };
        for start in 0..starts {
            let Some(refined) = responses.refine(&whole, &first_point(supports, number, start)) else { continue };
            let strategies = widened(&refined, supports, &sizes);
            if found.iter().any(|known| close(known.strategies(), &strategies)) {
                continue;
            }
            let (_, gains) = game.payoffs_and_gains(&strategies);
            if gains.iter().zip(&ranges).all(|(gain, range)| *gain <= 1e-9 * range) {
                found.push(Equilibrium::of(game, strategies));
            }
        }
    }
    Ok(found)
}

/// The game in which each player has only the strategies of its support.
fn restricted(game: &Game, supports: &[Vec<usize>]) -> Result<Game, String> {
    let names = |(own, names): (&Vec<usize>, &Vec<String>)| own.iter().map(|i| names[*i].clone()).collect();
    let strategies = supports.iter().zip(&game.strategies).map(names).collect();
    Game::from_fn(game.title.clone(), game.players.clone(), strategies, |profile| {
        let whole: Vec<usize> = profile.iter().zip(supports).map(|(i, own)| own[*i]).collect();
        (0..supports.len()).map(|player| game.payoff(&whole, player)).collect()
    })
}

/// Whether, as long as the others keep to their supports, no strategy of a support is strictly worse than another one.
fn conditionally_undominated(game: &Game, supports: &[Vec<usize>]) -> bool {
    let sizes = game.sizes();
    for player in 0..sizes.len() {
        let mut others = supports.to_vec();
        others[player] = vec![0];
        let mut profiles: Vec<Vec<usize>> = vec![Vec::new()];
        for own in &others {
            profiles = profiles.iter().flat_map(|one| own.iter().map(|i| [&one[..], &[*i]].concat())).collect();
        }
        let at = |profile: &[usize], strategy: usize| {
            let mut profile = profile.to_vec();
            profile[player] = strategy;
            game.payoff(&profile, player)
        };
        let beaten = |a: &usize| {
            (0..sizes[player]).any(|other| profiles.iter().all(|profile| at(profile, other) > at(profile, *a)))
        };
        if supports[player].iter().any(beaten) {
            return false;
        }
    }
    true
}

/// The centre of the supports, or a random point of them.
fn first_point(supports: &[Vec<usize>], number: usize, start: u32) -> Vec<Vec<f64>> {
    let mut draws = Draws::new(0, Stream::Design, u32::try_from(number).unwrap_or(u32::MAX), start);
    let point = |own: &Vec<usize>| {
        let weights: Vec<f64> = own.iter().map(|_| if start == 0 { 1.0 } else { draws.exponential(1.0) }).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / sum).collect()
    };
    supports.iter().map(point).collect()
}

fn widened(refined: &[Vec<f64>], supports: &[Vec<usize>], sizes: &[usize]) -> Vec<Vec<f64>> {
    let wide = |((own, support), size): ((&Vec<f64>, &Vec<usize>), &usize)| {
        let mut all = vec![0.0; *size];
        support.iter().zip(own).for_each(|(i, p)| all[*i] = *p);
        all
    };
    refined.iter().zip(supports).zip(sizes).map(wide).collect()
}

fn close(a: &[Vec<f64>], b: &[Vec<f64>]) -> bool {
    a.iter().flatten().zip(b.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-6)
}
