//! Nash equilibria: all of a game of two players, pure ones of any game, one by Lemke and Howson's method, one of a zero-sum game
//! by linear programming, and those of more players that Newton's method finds support by support.

use crate::equilibrium::{Equilibrium, normalised, scaled, transposed, two_players};
use crate::normal::Game;
use crate::simplex::{self, Tableau, point};
use crate::{linear, path, several};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most pairs of supports that are tried: those of 11 by 11 strategies.
const MOST_PAIRS: u64 = 800_000;
/// The most pivots of Lemke and Howson's method.
const PIVOTS: usize = 100_000;
/// What counts as zero, for payoffs between 1 and 2.
const TINY: f64 = 1e-9;

/// The Nash equilibria that a solver found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Solved {
    /// How they were found.
    pub method: String,
    /// The equilibria. Of two players: all extreme ones, of which every other equilibrium is a mixture.
    pub equilibria: Vec<Equilibrium>,
    /// Whether these are known to be all (all extreme ones, where there is a continuum).
    pub complete: bool,
    /// Whether the game is degenerate so that mixtures of some of these equilibria are equilibria, too: there are infinitely many.
    pub continuum: bool,
}

/// Finds Nash equilibria of a game with the strongest method that its size allows: [`all`], else [`zero_sum`] or
/// [`lemke_howson`] for two players, and [`traced`] for more. If these fail, too, the first 20 equilibria in pure strategies.
///
/// # Errors
/// The game is too large for every method, or none found an equilibrium.
///
/// ```
/// use polity_games::{library, nash};
///
/// let solved = nash::solve(&library::named("chicken").unwrap()).unwrap();
/// // One swerves, the other does not; or both randomise.
/// assert_eq!((solved.equilibria.len(), solved.complete, solved.continuum), (3, true, false));
/// ```
pub fn solve(game: &Game) -> Result<Solved, String> {
    let refused = match all(game) {
        Ok(solved) if !solved.equilibria.is_empty() => return Ok(solved),
        Ok(_) => "no support led to an equilibrium".into(),
        Err(refused) => refused,
    };
    let (method, found) = match game.players.len() {
        2 if is_zero_sum(game) => ("linear programming", zero_sum(game)),
        2 => ("Lemke-Howson", lemke_howson(game, 0)),
        _ => ("following quantal responses to their limit", traced(game)),
    };
    let (method, equilibria) = match found {
        Ok(one) => (method, vec![one]),
        Err(error) => match some_pure(game) {
            equilibria if equilibria.is_empty() => {
                return Err(format!("{refused}; {error}; and it has no equilibrium in pure strategies"));
            }
            equilibria => ("enumeration of pure strategies", equilibria),
        },
    };
    Ok(Solved { method: method.into(), equilibria, complete: false, continuum: false })
}

/// Returns the first few pure equilibria of a game.
fn some_pure(game: &Game) -> Vec<Equilibrium> {
    const MOST: usize = 20;
    let strategies = |profile: Vec<usize>| {
        let certain = |(own, size): (&usize, usize)| (0..size).map(|i| f64::from(u8::from(i == *own))).collect();
        profile.iter().zip(game.sizes()).map(certain).collect()
    };
    pure(game).into_iter().take(MOST).map(|profile| Equilibrium::of(game, strategies(profile))).collect()
}

/// Finds all Nash equilibria.
///
/// Two players: every pair of supports of equal size is solved; this gives all vertices of both best-response polytopes, and
/// those that fit each other are all extreme equilibria, also of degenerate games (Avis, Rosenberg, Savani and von Stengel 2010).
/// In a game that is not degenerate these are all equilibria. More players: supports are solved by Newton's method from several
/// points, and some equilibria may be missed. The regret is that of [`Game::regret`].
///
/// # Errors
/// The game is too large: more than 800,000 pairs of supports (11 by 11 strategies have 705,431), or for more players 20,000
/// combinations of supports; or fewer than two players.
pub fn all(game: &Game) -> Result<Solved, String> {
    if game.players.len() != 2 {
        let equilibria = several::supports(game)?;
        let method = "enumeration of supports with Newton's method".into();
        return Ok(Solved { method, equilibria, complete: false, continuum: false });
    }
    let sizes = game.sizes();
    let pairs = pairs(sizes[0] as u64, sizes[1] as u64);
    if pairs > MOST_PAIRS {
        return Err(format!(
            "{} by {} strategies are too many for all equilibria: they have at least {pairs} pairs of supports, and at most \
             {MOST_PAIRS} are tried",
            sizes[0], sizes[1]
        ));
    }
    let (rows, columns) = vertices(game);
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (i, x) in rows.iter().enumerate() {
        for (j, y) in columns.iter().enumerate() {
            if x.support & !y.best == 0 && y.support & !x.best == 0 {
                found.push((i, j));
            }
        }
    }
    let twice = |of: fn(&(usize, usize)) -> usize| {
        let mut seen: Vec<usize> = found.iter().map(of).collect();
        seen.sort_unstable();
        seen.windows(2).any(|two| two[0] == two[1])
    };
    let continuum = twice(|pair| pair.0) || twice(|pair| pair.1);
    let one = |(i, j): &(usize, usize)| Equilibrium::of(game, vec![rows[*i].point.clone(), columns[*j].point.clone()]);
    let equilibria: Vec<Equilibrium> = found.iter().map(one).collect();
    // Every game has an equilibrium; if none was found, rounding hid it.
    let complete = !equilibria.is_empty();
    Ok(Solved { method: "enumeration of supports".into(), equilibria, complete, continuum })
}

/// The number of pairs of supports of equal size: the sum of C(m, k) C(n, k); at most `u64::MAX`.
fn pairs(m: u64, n: u64) -> u64 {
    let (mut sum, mut term) = (0u64, 1u128);
    for k in 1..=m.min(n) {
        term = term * u128::from(m - k + 1) * u128::from(n - k + 1) / u128::from(k * k);
        sum = sum.saturating_add(u64::try_from(term).unwrap_or(u64::MAX));
        if sum == u64::MAX {
            break;
        }
    }
    sum
}

/// A vertex of a best-response polytope: a mixed strategy that cannot be written as a mixture of others with the same replies.
struct Vertex {
    point: Vec<f64>,
    /// The strategies with positive probability, as bits.
    support: u128,
    /// The other player's best replies, as bits.
    best: u128,
}

/// The vertices of both players' best-response polytopes.
fn vertices(game: &Game) -> (Vec<Vertex>, Vec<Vertex>) {
    // The payoffs of each player, by the other's strategies, then by its own.
    let (first, second) = (transposed(&scaled(game, 0)), scaled(game, 1));
    let (m, n) = (second.len(), first.len());
    let (mut rows, mut columns) = (BTreeMap::new(), BTreeMap::new());
    for size in 1..=m.min(n) {
        let mut own: Vec<usize> = (0..size).collect();
        loop {
            let mut other: Vec<usize> = (0..size).collect();
            loop {
                vertex(&second, &own, &other, &mut rows);
                vertex(&first, &other, &own, &mut columns);
                if !next_subset(&mut other, n) {
                    break;
                }
            }
            if !next_subset(&mut own, m) {
                break;
            }
        }
    }
    (rows.into_values().collect(), columns.into_values().collect())
}

/// Adds the point with weights on `support` at which each of `replies` pays the other player 1, unless another strategy pays more.
fn vertex(payoffs: &[Vec<f64>], support: &[usize], replies: &[usize], found: &mut BTreeMap<(u128, u128), Vertex>) {
    let matrix = replies.iter().map(|j| support.iter().map(|i| payoffs[*i][*j]).collect()).collect();
    let Some(weights) = linear::solve(matrix, vec![1.0; support.len()], 1e-11) else { return };
    if weights.iter().any(|w| *w < -TINY) {
        return;
    }
    let (mut best, mut bits) = (0u128, 0u128);
    let mut values = vec![0.0; payoffs[0].len()];
    for (i, weight) in support.iter().zip(&weights) {
        values.iter_mut().zip(&payoffs[*i]).for_each(|(value, payoff)| *value += weight * payoff);
    }
    for (j, value) in values.into_iter().enumerate() {
        if value > 1.0 + TINY {
            return;
        }
        best |= u128::from(value > 1.0 - TINY) << j;
    }
    let mut point = vec![0.0; payoffs.len()];
    for (i, w) in support.iter().zip(weights) {
        if w > TINY {
            point[*i] = w;
            bits |= 1 << i;
        }
    }
    found.entry((bits, best)).or_insert_with(|| Vertex { point: normalised(point), support: bits, best });
}

/// Advances to the next subset of `0..n` of the same size, in lexicographic order; false after the last one.
pub(crate) fn next_subset(subset: &mut [usize], n: usize) -> bool {
    let size = subset.len();
    let Some(place) = (0..size).rev().find(|place| subset[*place] < n - size + place) else { return false };
    subset[place] += 1;
    for later in place + 1..size {
        subset[later] = subset[later - 1] + 1;
    }
    true
}

/// Finds all pure Nash equilibria of a game, as combinations: one index for each player. A strategy counts as a best reply within
/// `1e-9` of the best one, as a part of the range of the player's payoffs.
#[must_use]
pub fn pure(game: &Game) -> Vec<Vec<usize>> {
    let sizes = game.sizes();
    let mut stable = vec![true; game.size()];
    let mut stride = 1;
    for (player, size) in sizes.iter().enumerate() {
        let (low, high) = game.range(player);
        for first in (0..game.size()).filter(|place| place / stride % size == 0) {
            let value = |i: usize| game.payoff_at(first + i * stride, player);
            let best = (0..*size).map(value).fold(f64::NEG_INFINITY, f64::max);
            for i in 0..*size {
                stable[first + i * stride] &= value(i) >= best - 1e-9 * (high - low);
            }
        }
        stride *= size;
    }
    game.profiles().zip(stable).filter_map(|(profile, stable)| stable.then_some(profile)).collect()
}

/// Finds one Nash equilibrium of a game of two players by the method of Lemke and Howson (1964), with lexicographic pivoting, which
/// also ends on degenerate games.
///
/// `label` is the strategy whose label is dropped first: 0 to m - 1 are the first player's, m to m + n - 1 the second's. Different
/// labels may lead to different equilibria. The regret is that of [`Game::regret`].
///
/// # Errors
/// The game does not have two players, or no such label; or rounding kept the method from ending.
pub fn lemke_howson(game: &Game, label: usize) -> Result<Equilibrium, String> {
    two_players(game, "the method of Lemke and Howson")?;
    let (a, b) = (scaled(game, 0), scaled(game, 1));
    let (m, n) = (a.len(), b[0].len());
    if label >= m + n {
        return Err(format!("there is no label {label}: {m} by {n} strategies have the labels 0 to {}", m + n - 1));
    }
    // Variable `l` is the strategy with that label, and `m + n + l` the slack with it. The first tableau has the first player's
    // strategies and the second's slacks; the second one the others.
    let width = 2 * (m + n) + 1;
    let row = |slack: usize, weights: &mut dyn Iterator<Item = (usize, f64)>| {
        let mut row = vec![0.0; width];
        weights.for_each(|(place, weight)| row[place] = weight);
        row[m + n + slack] = 1.0;
        row[width - 1] = 1.0;
        row
    };
    let given: [Vec<Vec<f64>>; 2] = [
        (0..n).map(|j| row(m + j, &mut (0..m).map(|i| (i, b[i][j])))).collect(),
        (0..m).map(|i| row(i, &mut (0..n).map(|j| (m + j, a[i][j])))).collect(),
    ];
    let mut tableaux = [
        Tableau::new(given[0].clone(), (0..n).map(|j| m + n + m + j).collect()),
        Tableau::new(given[1].clone(), (0..m).map(|i| m + n + i).collect()),
    ];
    let (mut entering, mut side) = (label, usize::from(label >= m));
    for _ in 0..PIVOTS {
        let tableau = &mut tableaux[side];
        let row = tableau
            .leaving(entering)
            .ok_or("the method of Lemke and Howson met a ray: payoffs too close to each other")?;
        let left = tableau.pivot(row, entering);
        if left % (m + n) == label {
            let points = [point(&tableaux[0], &given[0], m + n), point(&tableaux[1], &given[1], m + n)];
            let strategies = vec![normalised(points[0][..m].to_vec()), normalised(points[1][m..].to_vec())];
            return Ok(Equilibrium::of(game, strategies));
        }
        entering = if left < m + n { left + m + n } else { left - m - n };
        side = 1 - side;
    }
    Err(format!("the method of Lemke and Howson did not end after {PIVOTS} pivots"))
}

/// Returns whether a game has two players whose payoffs sum to the same number in all combinations, up to rounding.
#[must_use]
pub fn is_zero_sum(game: &Game) -> bool {
    if game.players.len() != 2 {
        return false;
    }
    let sum = |place: usize| game.payoff_at(place, 0) + game.payoff_at(place, 1);
    let (low, high) = game.range(0);
    (0..game.size()).all(|place| (sum(place) - sum(0)).abs() <= 1e-12 * ((high - low) + sum(0).abs()))
}

/// Finds an equilibrium of a zero-sum (or constant-sum) game of two players: both play a strategy that secures the most in the
/// worst case, by linear programming (von Neumann 1928; Dantzig 1951). The first payoff is the game's value.
///
/// # Errors
/// The game does not have two players, or its payoffs do not have a constant sum; or rounding kept the solver from ending.
pub fn zero_sum(game: &Game) -> Result<Equilibrium, String> {
    two_players(game, "a zero-sum solution")?;
    if !is_zero_sum(game) {
        return Err("the payoffs of the two players do not have the same sum in all combinations".into());
    }
    // The greatest sum of weights on the own strategies with which no strategy of the opponent gets more than 1. Scaled to a sum of 1,
    // they keep the opponent's payoff lowest.
    let secured = |payoffs: Vec<Vec<f64>>| {
        let loads = simplex::packing(&vec![1.0; payoffs[0].len()], &payoffs);
        loads.map(normalised).map_err(|trouble| trouble.to_string())
    };
    let second = secured(scaled(game, 0))?;
    let first = secured(transposed(&scaled(game, 1)))?;
    Ok(Equilibrium::of(game, vec![first, second]))
}

/// Finds one Nash equilibrium of any game as the limit of its logit quantal-response equilibria: the principal branch is followed
/// from equal probabilities until the noise is negligible, and the end is refined by Newton's method (McKelvey and Palfrey 1995;
/// Turocy 2005). The regret is that of [`Game::regret`]; it may stay above rounding in degenerate games.
///
/// # Errors
/// The game is too large (see [`crate::quantal::logit`]), or the branch could not be followed.
pub fn traced(game: &Game) -> Result<Equilibrium, String> {
    let strategies = path::limit(&path::Responses::new(game, 0.0, 0.0)?)?;
    Ok(Equilibrium::of(game, strategies))
}
