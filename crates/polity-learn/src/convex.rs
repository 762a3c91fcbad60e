//! A small convex solver: quadratic cost, linear equations, second-order cones; by a log barrier and Newton's method (Boyd and Vandenberghe,
//! "Convex Optimization", 2004, chapters 10 and 11). For some hundred variables; matrices are dense.

use crate::linear::{cholesky, dot, solve};

/// The cone |F x + f| <= g x + h.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cone {
    /// The rows of F, each with its entry of f.
    pub rows: Vec<(Vec<f64>, f64)>,
    /// The vector g.
    pub slope: Vec<f64>,
    /// The number h.
    pub level: f64,
}

/// Minimise sum w x^2 / 2 + c x under A x = b and cones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The weights w, all above 0.
    pub weights: Vec<f64>,
    /// The vector c.
    pub linear: Vec<f64>,
    /// The rows of A, independent of each other, each with its entry of b.
    pub equations: Vec<(Vec<f64>, f64)>,
    /// The cones.
    pub cones: Vec<Cone>,
}

/// A solution.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The variables.
    pub x: Vec<f64>,
    /// The cost.
    pub cost: f64,
    /// An upper bound of how far the cost is above the least one.
    pub gap: f64,
}

impl Cone {
    /// Returns g x + h and F x + f.
    fn sides(&self, x: &[f64]) -> (f64, Vec<f64>) {
        (dot(&self.slope, x) + self.level, self.rows.iter().map(|(row, f)| dot(row, x) + f).collect())
    }

    /// Returns how far x is within the cone: the right side less the left.
    #[must_use]
    pub fn room(&self, x: &[f64]) -> f64 {
        let (right, left) = self.sides(x);
        right - dot(&left, &left).sqrt()
    }
}

impl Program {
    /// Returns the cost.
    #[must_use]
    pub fn cost(&self, x: &[f64]) -> f64 {
        0.5 * self.weights.iter().zip(x).map(|(w, x)| w * x * x).sum::<f64>() + dot(&self.linear, x)
    }

    /// Finds the best point, up to `gap` in cost.
    ///
    /// # Errors
    /// The equations have no solution or depend on each other, or no point lies within all cones.
    pub fn minimise(&self, gap: f64) -> Result<Solution, String> {
        let start = self.project(&vec![0.0; self.weights.len()])?;
        let least = |x: &[f64]| self.cones.iter().map(|cone| cone.room(x)).fold(f64::INFINITY, f64::min);
        let room = least(&start);
        let start = if room > 1e-6 { start } else { self.feasible(start, room)? };
        let x = self.follow(start, gap, &|_| false)?;
        Ok(Solution { cost: self.cost(&x), gap: 2.0 * self.cones.len() as f64 / self.sharpest(gap), x })
    }

    /// Returns the point of the equations that is nearest to `x` in the weights of the cost.
    fn project(&self, x: &[f64]) -> Result<Vec<f64>, String> {
        let m = self.equations.len();
        let over = |row: &[f64]| -> Vec<f64> { row.iter().zip(&self.weights).map(|(a, w)| a / w).collect() };
        let scaled: Vec<Vec<f64>> = self.equations.iter().map(|(row, _)| over(row)).collect();
        let gram: Vec<f64> = (0..m * m).map(|p| dot(&self.equations[p / m].0, &scaled[p % m])).collect();
        let lower = cholesky(&gram, m).ok_or("the equations depend on each other")?;
        let mut miss: Vec<f64> = self.equations.iter().map(|(row, b)| b - dot(row, x)).collect();
        solve(&lower, &mut miss);
        let mut x = x.to_vec();
        for (row, by) in scaled.iter().zip(&miss) {
            x.iter_mut().zip(row).for_each(|(x, a)| *x += by * a);
        }
        Ok(x)
    }

    /// Finds a point within all cones: minimises a number by which every cone is widened.
    fn feasible(&self, start: Vec<f64>, room: f64) -> Result<Vec<f64>, String> {
        let n = self.weights.len();
        let wide = |row: &[f64], last: f64| -> Vec<f64> { row.iter().copied().chain([last]).collect() };
        let cones = self.cones.iter().map(|cone| Cone {
            rows: cone.rows.iter().map(|(row, f)| (wide(row, 0.0), *f)).collect(),
            slope: wide(&cone.slope, 1.0),
            level: cone.level,
        });
        let wider = Program {
            // Hardly any cost of the variables themselves.
            weights: vec![1e-6; n + 1],
            linear: wide(&vec![0.0; n], 1.0),
            equations: self.equations.iter().map(|(row, b)| (wide(row, 0.0), *b)).collect(),
            cones: cones.collect(),
        };
        let from = start.iter().copied().chain([1.0 - room]).collect();
        let enough = |x: &[f64]| x[n] < -1e-3;
        let mut x = wider.follow(from, 1e-6, &enough)?;
        let widened = x.pop().unwrap_or(0.0);
        if widened < 0.0 { Ok(x) } else { Err(format!("no point lies within all cones: {widened:.3} is missing")) }
    }

    /// The weight of the cost at which the barrier's gap is small enough.
    fn sharpest(&self, gap: f64) -> f64 {
        (2.0 * self.cones.len() as f64 / gap).max(1.0)
    }

    /// Follows the central path from a point within all cones that satisfies the equations.
    fn follow(&self, mut x: Vec<f64>, gap: f64, enough: &dyn Fn(&[f64]) -> bool) -> Result<Vec<f64>, String> {
        let last = self.sharpest(gap);
        let mut sharpness = f64::min(1.0, last);
        loop {
            for _ in 0..60 {
                if enough(&x) {
                    return Ok(x);
                }
                let (step, decrement) = self.newton(&x, sharpness)?;
                if decrement < 1e-9 {
                    break;
                }
                // Backtracking.
                let value = self.barrier(&x, sharpness);
                let mut length = 1.0;
                loop {
                    let moved: Vec<f64> = x.iter().zip(&step).map(|(x, d)| x + length * d).collect();
                    if self.barrier(&moved, sharpness) <= value - 0.1 * length * decrement {
                        x = moved;
                        break;
                    }
                    length *= 0.5;
                    if length < 1e-10 {
                        break;
                    }
                }
                if length < 1e-10 {
                    break;
                }
            }
            if sharpness >= last {
                return Ok(x);
            }
            sharpness = (sharpness * 8.0).min(last);
        }
    }

    /// The cost times the sharpness less the logarithms of the room; infinite outside.
    fn barrier(&self, x: &[f64], sharpness: f64) -> f64 {
        let mut value = sharpness * self.cost(x);
        for cone in &self.cones {
            let (right, left) = cone.sides(x);
            let inside = right * right - dot(&left, &left);
            if !(right > 0.0 && inside > 0.0) {
                return f64::INFINITY;
            }
            value -= libm::log(inside);
        }
        value
    }

    /// Returns Newton's step within the equations, and how steeply the barrier falls along it.
    fn newton(&self, x: &[f64], sharpness: f64) -> Result<(Vec<f64>, f64), String> {
        let n = x.len();
        let mut gradient: Vec<f64> = (0..n).map(|i| sharpness * (self.weights[i] * x[i] + self.linear[i])).collect();
        let mut hessian = vec![0.0; n * n];
        for i in 0..n {
            hessian[i * n + i] = sharpness * self.weights[i];
        }
        // Adds `factor * v v'`, skipping zeros: most entries are.
        let mut add = |v: &[f64], factor: f64| {
            let entries: Vec<(usize, f64)> = v.iter().copied().enumerate().filter(|(_, x)| *x != 0.0).collect();
            for (i, a) in &entries {
                for (j, b) in &entries {
                    hessian[i * n + j] += factor * a * b;
                }
            }
        };
        for cone in &self.cones {
            let (right, left) = cone.sides(x);
            let inside = right * right - dot(&left, &left);
            let mut normal: Vec<f64> = cone.slope.iter().map(|g| right * g).collect();
            for ((row, _), y) in cone.rows.iter().zip(&left) {
                normal.iter_mut().zip(row).for_each(|(v, a)| *v -= y * a);
                add(row, 2.0 / inside);
            }
            add(&cone.slope, -2.0 / inside);
            add(&normal, 4.0 / (inside * inside));
            gradient.iter_mut().zip(&normal).for_each(|(g, v)| *g -= 2.0 / inside * v);
        }
        let lower = cholesky(&hessian, n).ok_or("the barrier is not convex here: numbers are too far apart")?;
        let mut step: Vec<f64> = gradient.iter().map(|g| -g).collect();
        solve(&lower, &mut step);
        let m = self.equations.len();
        let images: Vec<Vec<f64>> = self
            .equations
            .iter()
            .map(|(row, _)| {
                let mut image = row.clone();
                solve(&lower, &mut image);
                image
            })
            .collect();
        let gram: Vec<f64> = (0..m * m).map(|p| dot(&self.equations[p / m].0, &images[p % m])).collect();
        let factor = cholesky(&gram, m).ok_or("the equations depend on each other")?;
        let mut forces: Vec<f64> = self.equations.iter().map(|(row, _)| dot(row, &step)).collect();
        solve(&factor, &mut forces);
        for (image, force) in images.iter().zip(&forces) {
            step.iter_mut().zip(image).for_each(|(s, i)| *s -= force * i);
        }
        let decrement = -dot(&gradient, &step);
        Ok((step, decrement))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ball(n: usize, radius: f64) -> Cone {
        let unit = |i: usize| (0..n).map(|j| f64::from(u8::from(i == j))).collect();
        Cone { rows: (0..n).map(|i| (unit(i), 0.0)).collect(), slope: vec![0.0; n], level: radius }
    }

    #[test]
    fn the_lowest_point_of_a_ball_lies_against_the_slope() {
        // With almost no quadratic part: x = -r c / |c|.
        let program = Program {
            weights: vec![1e-9; 3],
            linear: vec![1.0, -2.0, 2.0],
            equations: vec![],
            cones: vec![ball(3, 3.0)],
        };
        let found = program.minimise(1e-7).unwrap();
        for (x, expected) in found.x.iter().zip([-1.0, 2.0, -2.0]) {
            assert!((x - expected).abs() < 1e-4, "{:?}", found.x);
        }
    }

    #[test]
    fn a_projection_on_a_line_and_a_half_space_is_the_closed_form() {
        // The least norm under x + y = 4 and x >= 3 is (3, 1).
        let half = Cone { rows: vec![], slope: vec![1.0, 0.0], level: -3.0 };
        let program = Program {
            weights: vec![1.0; 2],
            linear: vec![0.0; 2],
            equations: vec![(vec![1.0, 1.0], 4.0)],
            cones: vec![half],
        };
        let found = program.minimise(1e-8).unwrap();
        assert!((found.x[0] - 3.0).abs() < 1e-4 && (found.x[1] - 1.0).abs() < 1e-4, "{:?}", found.x);
    }

    #[test]
    fn what_has_no_point_is_refused() {
        let far = Cone { rows: vec![], slope: vec![1.0, 0.0], level: -9.0 };
        let program =
            Program { weights: vec![1.0; 2], linear: vec![0.0; 2], equations: vec![], cones: vec![ball(2, 1.0), far] };
        assert!(program.minimise(1e-6).is_err());
    }
}
