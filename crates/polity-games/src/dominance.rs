//! Strictly dominated strategies and their elimination.

use crate::normal::Game;
use crate::simplex::{self, MOST};

/// Which strategies can dominate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Pure strategies only.
    Pure,
    /// Mixed strategies, too, found by linear programming.
    Mixed,
}

/// Eliminates strictly dominated strategies until none is left, and returns each player's remaining strategies, by index.
///
/// A strategy is strictly dominated if another one gives its player more, by over `1e-9` of the range of its payoffs, whatever the
/// others play. The order of elimination does not matter.
///
/// # Errors
/// With [`By::Mixed`]: the game is too large for the linear programs, or rounding kept one from ending.
///
/// ```
/// use polity_games::{dominance, library};
///
/// let game = library::named("prisoners-dilemma").unwrap();
/// // Only defection is left to both.
/// assert_eq!(dominance::undominated(&game, dominance::By::Pure).unwrap(), [[1], [1]]);
/// ```
pub fn undominated(game: &Game, by: By) -> Result<Vec<Vec<usize>>, String> {
    let mut kept: Vec<Vec<usize>> = game.sizes().into_iter().map(|size| (0..size).collect()).collect();
    loop {
        let mut eliminated = false;
        for player in 0..kept.len() {
            while let Some(place) = dominated(game, &kept, player, by)? {
                kept[player].remove(place);
                eliminated = true;
            }
        }
        if !eliminated {
            return Ok(kept);
        }
    }
}

/// Returns the game in which each player has only some strategies, by index, as [`undominated`] returns them.
///
/// # Errors
/// As [`Game::new`]; an index that does not exist.
pub fn restricted(game: &Game, kept: &[Vec<usize>]) -> Result<Game, String> {
    if kept.len() != game.players.len()
        || kept.iter().zip(game.sizes()).any(|(own, size)| own.iter().any(|i| *i >= size))
    {
        return Err("the strategies to keep are not those of this game".into());
    }
    let names = |(own, names): (&Vec<usize>, &Vec<String>)| own.iter().map(|i| names[*i].clone()).collect();
    let strategies = kept.iter().zip(&game.strategies).map(names).collect();
    Game::from_fn(game.title.clone(), game.players.clone(), strategies, |profile| {
        let whole: Vec<usize> = profile.iter().zip(kept).map(|(i, own)| own[*i]).collect();
        (0..kept.len()).map(|player| game.payoff(&whole, player)).collect()
    })
}

/// The place of a strategy of a player that is strictly dominated.
fn dominated(game: &Game, kept: &[Vec<usize>], player: usize, by: By) -> Result<Option<usize>, String> {
    let own = &kept[player];
    if own.len() < 2 {
        return Ok(None);
    }
    let (low, high) = game.range(player);
    if high <= low {
        return Ok(None);
    }
    // One row of payoffs for each own strategy, one entry for each combination of the others.
    let mut others = kept.to_vec();
    others[player] = vec![0];
    let mut payoffs = vec![Vec::new(); own.len()];
    let mut places = vec![0; others.len()];
    let combinations: usize = others.iter().map(Vec::len).product();
    for _ in 0..combinations {
        let mut profile: Vec<usize> = places.iter().zip(&others).map(|(place, own)| own[*place]).collect();
        for (row, strategy) in payoffs.iter_mut().zip(own) {
            profile[player] = *strategy;
            row.push((game.payoff(&profile, player) - low) / (high - low));
        }
        for (place, own) in places.iter_mut().zip(&others) {
            *place += 1;
            if *place < own.len() {
                break;
            }
            *place = 0;
        }
    }
    let pure = |i: &usize| {
        payoffs.iter().any(|other: &Vec<f64>| other.iter().zip(&payoffs[*i]).all(|(more, less)| *more > less + 1e-9))
    };
    if let Some(place) = (0..own.len()).find(pure) {
        return Ok(Some(place));
    }
    if by == By::Pure {
        return Ok(None);
    }
    let numbers = simplex::numbers(combinations, own.len());
    if numbers > MOST {
        return Err(format!(
            "the game is too large for dominance by mixed strategies: {combinations} combinations of the others need a linear \
             program of {numbers} numbers, and at most {MOST} are allowed"
        ));
    }
    for place in 0..own.len() {
        if margin(&payoffs, place)? > 1e-9 {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// The most by which a mixture beats a strategy in the worst case (0 if the strategy itself is the best one): the value of the
/// zero-sum game for the difference.
fn margin(payoffs: &[Vec<f64>], place: usize) -> Result<f64, String> {
    // Two is added, so that all payoffs of the zero-sum game are positive.
    let row = |own: &Vec<f64>| own.iter().zip(&payoffs[place]).map(|(own, beaten)| own - beaten + 2.0).collect();
    let rows: Vec<Vec<f64>> = payoffs.iter().map(row).collect();
    let loads = simplex::packing(&vec![1.0; payoffs[place].len()], &rows);
    let loads = loads.map_err(|trouble| format!("a linear program of dominance has no solution: {trouble:?}"))?;
    Ok(1.0 / loads.iter().sum::<f64>() - 2.0)
}
