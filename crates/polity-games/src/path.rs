//! The path of logit responses from equal probabilities (no rationality) to the limit (full rationality), by predictor and corrector
//! along its arc length (Turocy 2005), and the refinement of its end by Newton's method.
//!
//! The players respond to the gradients of their objectives: expected payoffs, less a multiple of the variance that the others'
//! play causes. Payoffs here are in units of the greatest range of a player's payoffs.

use crate::equilibrium::normalised;
use crate::linear;
use crate::normal::Game;

/// The most combinations of strategies.
const MOST_COMBINATIONS: usize = 5_000;
/// The most strategies of all players together.
const MOST_STRATEGIES: usize = 150;
/// The most steps along a path.
const STEPS: usize = 5_000;
/// Where the limit is taken.
const END: f64 = 1e11;
/// From where on the limit can be refined, if the path is lost before its end.
const NEAR_END: f64 = 1e3;

/// The objectives of a game's players.
pub(crate) struct Responses<'a> {
    game: &'a Game,
    /// The greatest range of a player's payoffs; 1 if it is 0.
    pub(crate) scale: f64,
    aversion: f64,
    tremble: f64,
    /// The place of each player's first strategy among all strategies, and the number of all.
    starts: Vec<usize>,
}

/// Gradients at a profile, and their derivatives.
struct Gradients {
    /// The derivative of each player's objective by the probability of its strategy.
    own: Vec<f64>,
    /// The derivative of each of these numbers by each probability.
    by: Vec<Vec<f64>>,
}

impl<'a> Responses<'a> {
    /// `aversion`: the weight of the variance, per unit of payoff. `tremble`: the part of the others' play that is uniform.
    pub(crate) fn new(game: &'a Game, aversion: f64, tremble: f64) -> Result<Self, String> {
        let sizes = game.sizes();
        let (size, all) = (game.size(), sizes.iter().sum::<usize>());
        if size > MOST_COMBINATIONS || all > MOST_STRATEGIES {
            return Err(format!(
                "the game is too large for following quantal responses: it has {size} combinations of strategies and {all} \
                 strategies; at most {MOST_COMBINATIONS} and {MOST_STRATEGIES} are allowed"
            ));
        }
        let ranges = (0..sizes.len()).map(|player| game.range(player)).map(|(low, high)| high - low);
        let most = ranges.fold(0.0, f64::max);
        let scale = if most > 0.0 { most } else { 1.0 };
        let mut starts = vec![0];
        starts.extend(sizes.iter().scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        }));
        Ok(Responses { game, scale, aversion: aversion * scale, tremble, starts })
    }

    fn players(&self) -> usize {
        self.starts.len() - 1
    }

    fn count(&self) -> usize {
        self.starts[self.players()]
    }

    /// Splits numbers of all strategies by player.
    fn split(&self, all: &[f64]) -> Vec<Vec<f64>> {
        self.starts.windows(2).map(|two| all[two[0]..two[1]].to_vec()).collect()
    }

    fn gradients(&self, x: &[f64]) -> Gradients {
        let n = self.count();
        let mut all = Gradients { own: vec![0.0; n], by: vec![vec![0.0; n]; n] };
        for player in 0..self.players() {
            self.gradient(player, x, &mut all);
        }
        all
    }

    /// One player's gradient: its payoffs' mean less 2 · aversion · (covariances · its own strategy).
    fn gradient(&self, player: usize, x: &[f64], all: &mut Gradients) {
        let (first, size) = (self.starts[player], self.starts[player + 1] - self.starts[player]);
        let (players, n) = (self.players(), self.count());
        let stride: usize = (0..player).map(|j| self.starts[j + 1] - self.starts[j]).product();
        let own = &x[first..first + size];
        // Sums over the others' combinations: payoffs, their products with the mixture's payoff, and their products in pairs;
        // and the derivatives of the first two by the others' probabilities. Only the payoffs count without aversion.
        let averse = self.aversion != 0.0;
        let (mut mean, mut with_mix, mut pairs) = (vec![0.0; size], vec![0.0; size], vec![0.0; size * size]);
        let (mut by_mean, mut by_with_mix) = (vec![0.0; n * size], vec![0.0; n * size]);
        let mut weights = vec![1.0; players];
        // By player: the product of its weight and all later ones.
        let mut later = vec![1.0; players + 1];
        let mut payoffs = vec![0.0; size];
        self.game.each(|profile, place| {
            if profile[player] != 0 {
                return;
            }
            for (j, strategy) in profile.iter().enumerate().rev() {
                if j != player {
                    let uniform = 1.0 / (self.starts[j + 1] - self.starts[j]) as f64;
                    weights[j] = (1.0 - self.tremble) * x[self.starts[j] + strategy] + self.tremble * uniform;
                }
                later[j] = weights[j] * later[j + 1];
            }
            for (a, payoff) in payoffs.iter_mut().enumerate() {
                *payoff = self.game.payoff_at(place + a * stride, player) / self.scale;
            }
            let mix: f64 = own.iter().zip(&payoffs).map(|(p, payoff)| p * payoff).sum();
            let weight = later[0];
            for a in 0..size {
                mean[a] += weight * payoffs[a];
                if averse {
                    with_mix[a] += weight * payoffs[a] * mix;
                    for c in 0..size {
                        pairs[a * size + c] += weight * payoffs[a] * payoffs[c];
                    }
                }
            }
            let mut earlier = 1.0;
            for j in 0..players {
                if j != player {
                    let rest = earlier * later[j + 1];
                    let begin = (self.starts[j] + profile[j]) * size;
                    for a in 0..size {
                        by_mean[begin + a] += rest * payoffs[a];
                        if averse {
                            by_with_mix[begin + a] += rest * payoffs[a] * mix;
                        }
                    }
                }
                earlier *= weights[j];
            }
        });
        let mean_mix: f64 = own.iter().zip(&mean).map(|(p, mean)| p * mean).sum();
        for a in 0..size {
            all.own[first + a] = mean[a] - 2.0 * self.aversion * (with_mix[a] - mean[a] * mean_mix);
            for c in 0..size {
                all.by[first + a][first + c] = -2.0 * self.aversion * (pairs[a * size + c] - mean[a] * mean[c]);
            }
            for place in (0..n).filter(|place| !(first..first + size).contains(place)) {
                let by_mean = &by_mean[place * size..(place + 1) * size];
                let by_mix: f64 = own.iter().zip(by_mean).map(|(p, by)| p * by).sum();
                let covariance = by_with_mix[place * size + a] - by_mean[a] * mean_mix - mean[a] * by_mix;
                all.by[first + a][place] = (1.0 - self.tremble) * (by_mean[a] - 2.0 * self.aversion * covariance);
            }
        }
    }

    /// The most that a player's objective could rise (an upper bound, exact without aversion): the best gradient less the mean one.
    pub(crate) fn gap(&self, strategies: &[Vec<f64>]) -> f64 {
        let x: Vec<f64> = strategies.concat();
        let own = self.gradients(&x).own;
        let gap = |two: &[usize]| {
            let (own, x) = (&own[two[0]..two[1]], &x[two[0]..two[1]]);
            let mean: f64 = own.iter().zip(x).map(|(gradient, p)| gradient * p).sum();
            own.iter().copied().fold(f64::NEG_INFINITY, f64::max) - mean
        };
        self.starts.windows(2).map(gap).fold(0.0, f64::max)
    }

    /// The equations of the path at a point (logarithms of the probabilities, then lambda), and their derivatives.
    fn equations(&self, point: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let n = self.count();
        let (logs, lambda) = (&point[..n], point[n]);
        let x: Vec<f64> = logs.iter().map(|log| libm::exp(*log)).collect();
        let Gradients { own, by } = self.gradients(&x);
        let mut values = vec![0.0; n];
        let mut matrix = vec![vec![0.0; n + 1]; n];
        for two in self.starts.windows(2) {
            let likely = (two[0]..two[1]).fold(two[0], |best, a| if logs[a] > logs[best] { a } else { best });
            for a in two[0]..two[1] {
                if a == likely {
                    values[a] = x[two[0]..two[1]].iter().sum::<f64>() - 1.0;
                    matrix[a][two[0]..two[1]].copy_from_slice(&x[two[0]..two[1]]);
                    continue;
                }
                let better = own[a] - own[likely];
                values[a] = logs[a] - logs[likely] - lambda * better;
                for b in 0..n {
                    matrix[a][b] = -lambda * (by[a][b] - by[likely][b]) * x[b];
                }
                matrix[a][a] += 1.0;
                matrix[a][likely] -= 1.0;
                matrix[a][n] = -better;
            }
        }
        (values, matrix)
    }

    /// Newton's method for the equations, and a last one: `direction · (point - start) = 0`.
    fn correct(&self, start: &[f64], direction: &[f64]) -> Option<Vec<f64>> {
        let mut point = start.to_vec();
        let mut before = f64::INFINITY;
        // Rounding of the gradients, times lambda, keeps steps from becoming shorter than this.
        let rounding = 1e-8 + 1e-15 * start[self.count()].abs();
        for _ in 0..12 {
            let (mut values, mut matrix) = self.equations(&point);
            values.push(dot(direction, &point) - dot(direction, start));
            matrix.push(direction.to_vec());
            let step = linear::solve(matrix, values, 0.0)?;
            let mut most = 0.0f64;
            for (z, step) in point.iter_mut().zip(&step) {
                most = most.max(step.abs() / (1.0 + z.abs()));
                *z -= step;
            }
            if most < 1e-11 || most < rounding && most > 0.5 * before {
                return Some(point);
            }
            if most > 1e3 {
                return None;
            }
            before = most;
        }
        None
    }

    /// The direction of the path at a point, of length 1, on the same side as `before`, and the path's orientation: a
    /// sign that stays the same along a path without branches, and tells when a step has jumped to another part of it.
    fn direction(&self, point: &[f64], before: &[f64]) -> Option<(Vec<f64>, bool)> {
        let (values, mut matrix) = self.equations(point);
        let mut right = vec![0.0; values.len()];
        right.push(1.0);
        matrix.push(before.to_vec());
        let (mut direction, sign) = linear::solve_with_sign(matrix, right, 0.0)?;
        let length = dot(&direction, &direction).sqrt();
        direction.iter_mut().for_each(|d| *d /= length);
        Some((direction, sign))
    }

    /// Follows the path from equal probabilities to where lambda, per unit of payoff, first is `lambda`, and returns each player's
    /// strategy there.
    pub(crate) fn at(&self, lambda: f64) -> Result<Vec<Vec<f64>>, String> {
        let (point, reached) = self.follow(lambda * self.scale);
        if reached { Ok(self.strategies(&point)) } else { Err(self.lost(&point)) }
    }

    /// The strategies of a point of the path.
    fn strategies(&self, point: &[f64]) -> Vec<Vec<f64>> {
        let probabilities: Vec<f64> = point[..self.count()].iter().map(|log| libm::exp(*log)).collect();
        self.split(&probabilities).into_iter().map(normalised).collect()
    }

    fn lost(&self, point: &[f64]) -> String {
        let lambda = point[self.count()] / self.scale;
        format!("the branch of quantal responses could not be followed beyond lambda {lambda:.6}")
    }

    /// Follows the path from equal probabilities to where lambda first is `target`. Returns the last point (the logarithms of all
    /// probabilities, then lambda), and whether it is the target.
    fn follow(&self, target: f64) -> (Vec<f64>, bool) {
        let n = self.count();
        let mut point: Vec<f64> = self
            .starts
            .windows(2)
            .flat_map(|two| vec![-libm::log((two[1] - two[0]) as f64); two[1] - two[0]])
            .collect();
        point.push(0.0);
        let mut lambda_only = vec![0.0; n + 1];
        lambda_only[n] = 1.0;
        let Some((mut direction, mut sign)) = self.direction(&point, &lambda_only) else { return (point, false) };
        let mut length = 0.1;
        for _ in 0..STEPS {
            let last = direction[n] > 0.0 && point[n] + length * direction[n] >= target;
            let step = if last { (target - point[n]) / direction[n] } else { length };
            let guess: Vec<f64> = point.iter().zip(&direction).map(|(z, d)| z + step * d).collect();
            let near = |new: &Vec<f64>| {
                new.iter().zip(&guess).all(|(z, guess)| (z - guess).abs() <= 0.3 * step + 1e-9 * (1.0 + guess.abs()))
            };
            let new = self.correct(&guess, if last { &lambda_only } else { &direction }).filter(near);
            if last && let Some(new) = new {
                return (new, true);
            }
            let turned = new
                .filter(|new| (0.0..=target).contains(&new[n]))
                .and_then(|new| Some((self.direction(&new, &direction)?, new)));
            match turned.map(|((turned, side), new)| (dot(&turned, &direction), side, turned, new)) {
                // The sign also changes where the path of a symmetric game meets another one; short steps go straight on.
                Some((cosine, side, turned, new)) if cosine > 0.95 && (side == sign || length < 1e-3) => {
                    (point, direction, sign) = (new, turned, side);
                    length *= if cosine > 0.995 { 2.0 } else { 1.0 };
                }
                _ => length *= 0.5,
            }
            if length < 1e-9 {
                break;
            }
        }
        (point, false)
    }

    /// Newton's method for strategies on given supports whose gradients are equal within each support, from a start. `None` if it
    /// does not converge to probabilities.
    pub(crate) fn refine(&self, supports: &[Vec<usize>], start: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
        let places: Vec<usize> =
            supports.iter().zip(&self.starts).flat_map(|(own, first)| own.iter().map(move |a| first + a)).collect();
        let owners: Vec<usize> =
            supports.iter().enumerate().flat_map(|(player, own)| own.iter().map(move |_| player)).collect();
        let (strategies, players) = (places.len(), supports.len());
        let mut x = vec![0.0; self.count()];
        let flat: Vec<f64> = start.concat();
        places.iter().for_each(|place| x[*place] = flat[*place]);
        let mut levels: Option<Vec<f64>> = None;
        let mut before = f64::INFINITY;
        for _ in 0..40 {
            let Gradients { own, by } = self.gradients(&x);
            let first =
                |player: usize| owners.iter().position(|owner| *owner == player).map_or(0.0, |k| own[places[k]]);
            let level = levels.get_or_insert_with(|| (0..players).map(first).collect());
            let mut values = vec![-1.0; strategies + players];
            let mut matrix = vec![vec![0.0; strategies + players]; strategies + players];
            for (k, (place, owner)) in places.iter().zip(&owners).enumerate() {
                values[k] = own[*place] - level[*owner];
                matrix[k][strategies + owner] = -1.0;
                for (l, other) in places.iter().enumerate() {
                    matrix[k][l] = by[*place][*other];
                }
                values[strategies + owner] += x[*place];
                matrix[strategies + owner][k] = 1.0;
            }
            let step = linear::solve(matrix, values, 1e-12)?;
            let most = step[..strategies].iter().fold(0.0f64, |most, step| most.max(step.abs()));
            let part = if most > 0.5 { 0.5 / most } else { 1.0 };
            places.iter().zip(&step).for_each(|(place, step)| x[*place] -= part * step);
            level.iter_mut().zip(&step[strategies..]).for_each(|(level, step)| *level -= part * step);
            // Converged, and steps do not get shorter any more.
            if most < 1e-12 && (most >= before || most < 1e-16) {
                let fits = x.iter().all(|p| *p > -1e-10);
                return fits.then(|| self.split(&x).into_iter().map(normalised).collect());
            }
            before = most;
        }
        None
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Follows the path to its limit and refines the end. What comes out has the least gap of the end and its refinements.
pub(crate) fn limit(responses: &Responses<'_>) -> Result<Vec<Vec<f64>>, String> {
    let (last, reached) = responses.follow(END);
    if !reached && last[responses.count()] < NEAR_END {
        return Err(responses.lost(&last));
    }
    let end = responses.strategies(&last);
    let mut best = (responses.gap(&end), end.clone());
    for least in [1e-3, 1e-5, 1e-8] {
        let support = |own: &Vec<f64>| (0..own.len()).filter(|i| own[*i] > least).collect();
        let supports: Vec<Vec<usize>> = end.iter().map(support).collect();
        if let Some(refined) = responses.refine(&supports, &end) {
            let gap = responses.gap(&refined);
            if gap < best.0 {
                best = (gap, refined);
            }
        }
    }
    Ok(best.1)
}
