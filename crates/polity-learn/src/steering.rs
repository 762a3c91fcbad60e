//! Steers a linear system from a Gaussian mixture to a Gaussian under chance constraints, by one convex program.
//!
//! After Kumagai and Oguri, "Chance-Constrained Gaussian Mixture Steering to a Terminal Gaussian Distribution" (2024). Given the first state, a
//! component is drawn with its posterior probability; given the component, the first state is normal, and an affine control keeps it
//! so. With z the standardised first state, state and control of a component are `m + G z` and `v + L z`, and m and G are linear in v and L. So the
//! cost is a quadratic form, the terminal distribution a system of linear equations, and each chance constraint a second-order cone.

use crate::convex::{Cone, Program};
use crate::gaussian::{Gaussian, posterior};
use crate::linear::dot;
use polity_base::rng::{Draws, normal_quantile};

/// What is to be steered, from where to where, and what must not happen.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The matrix of states, n by n, in row order.
    pub a: Vec<f64>,
    /// The matrix of controls, n by m.
    pub b: Vec<f64>,
    /// Steps.
    pub steps: usize,
    /// The first distribution: weights and components.
    pub first: Vec<(f64, Gaussian)>,
    /// The last distribution.
    pub last: Gaussian,
    /// Walls (a, c): a x <= c at every step.
    pub walls: Vec<(Vec<f64>, f64)>,
    /// Largest size of each entry of a control.
    pub strongest: f64,
    /// Probability with which a state may be beyond any wall, at each step, and likewise an entry of a control be too large; above 0. With 0.5
    /// or more there are no chance constraints.
    pub risk: f64,
}

/// The control of a component at a step: `v + L z`.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// The mean.
    pub mean: Vec<f64>,
    /// The gain L, m by n.
    pub gain: Vec<f64>,
}

/// Controls by component and step.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// By component and step.
    pub controls: Vec<Vec<Control>>,
    /// Expected sum of squared controls.
    pub cost: f64,
}

impl Problem {
    fn sizes(&self) -> (usize, usize) {
        let n = self.last.mean.len();
        (n, self.b.len() / n)
    }

    /// Solves the program. The cost and all constraints are sums or sets over components, so each component's part is solved by itself.
    ///
    /// # Errors
    /// No plan satisfies the constraints.
    pub fn plan(&self) -> Result<Plan, String> {
        let mut cost = 0.0;
        let mut controls = Vec::new();
        for (k, (weight, component)) in self.first.iter().enumerate() {
            let (program, per) = self.program(component);
            let found = program.minimise(1e-4).map_err(|why| format!("component {k}: {why}"))?;
            let (n, m) = self.sizes();
            let of = |step: usize| {
                let part = &found.x[step * per..(step + 1) * per];
                Control { mean: part[..m].to_vec(), gain: part[m..m + m * n].to_vec() }
            };
            let plan: Vec<Control> = (0..self.steps).map(of).collect();
            let square = |control: &Control| dot(&control.mean, &control.mean) + dot(&control.gain, &control.gain);
            cost += weight * plan.iter().map(square).sum::<f64>();
            controls.push(plan);
        }
        Ok(Plan { controls, cost })
    }

    /// Returns the program of a component, and the number of its variables of a step: v, and L row by row.
    fn program(&self, first: &Gaussian) -> (Program, usize) {
        let (n, m) = self.sizes();
        let per = m + m * n;
        let variables = per * self.steps;
        // Each entry of the state is an affine form: a row over the variables and a number. Columns: the mean, then those of G.
        let columns = n + 1;
        let mut forms: Vec<(Vec<f64>, f64)> = Vec::new();
        for i in 0..n {
            for column in 0..columns {
                let value = if column == 0 { first.mean[i] } else { first.factor[i * n + column - 1] };
                forms.push((vec![0.0; variables], value));
            }
        }
        let mut program = Program { weights: vec![2.0; variables], linear: vec![0.0; variables], ..Program::default() };
        let walls = self.walls.len().max(1) as f64;
        let constrained = self.risk < 0.5;
        let reach = normal_quantile(1.0 - self.risk.min(0.5) / walls).max(0.0);
        // Each entry of a control has two sides.
        let push = normal_quantile(1.0 - self.risk.min(0.5) / (2.0 * m as f64)).max(0.0);
        for step in 0..self.steps {
            let base = step * per;
            if constrained {
                let unit = |place: usize, value: f64| {
                    let mut row = vec![0.0; variables];
                    row[place] = value;
                    row
                };
                for (j, side) in (0..m).flat_map(|j| [(j, 1.0), (j, -1.0)]) {
                    let rows = (0..n).map(|i| (unit(base + m + j * n + i, push), 0.0)).collect();
                    program.cones.push(Cone { rows, slope: unit(base + j, -side), level: self.strongest });
                }
            }
            forms = (0..n * columns)
                .map(|place| {
                    let (i, column) = (place / columns, place % columns);
                    let mut row = vec![0.0; variables];
                    let mut value = 0.0;
                    for k in 0..n {
                        let (other, number) = &forms[k * columns + column];
                        let a = self.a[i * n + k];
                        row.iter_mut().zip(other).for_each(|(x, y)| *x += a * y);
                        value += a * number;
                    }
                    for j in 0..m {
                        let variable = if column == 0 { base + j } else { base + m + j * n + column - 1 };
                        row[variable] += self.b[i * m + j];
                    }
                    (row, value)
                })
                .collect();
            if constrained && step + 1 < self.steps {
                for (normal, level) in &self.walls {
                    let along = |column: usize| {
                        let mut row = vec![0.0; variables];
                        let mut value = 0.0;
                        for (i, a) in normal.iter().enumerate() {
                            let (other, number) = &forms[i * columns + column];
                            row.iter_mut().zip(other).for_each(|(x, y)| *x += a * y);
                            value += a * number;
                        }
                        (row, value)
                    };
                    let (mean, value) = along(0);
                    let rows = (1..columns).map(|column| {
                        let (row, value) = along(column);
                        (row.iter().map(|x| reach * x).collect(), reach * value)
                    });
                    let slope = mean.iter().map(|x| -x).collect();
                    program.cones.push(Cone { rows: rows.collect(), slope, level: level - value });
                }
            }
        }
        for (place, (row, value)) in forms.into_iter().enumerate() {
            let (i, column) = (place / columns, place % columns);
            let target = if column == 0 { self.last.mean[i] } else { self.last.factor[i * n + column - 1] };
            program.equations.push((row, target - value));
        }
        (program, per)
    }

    /// Draws a first state.
    pub fn draw(&self, draws: &mut Draws) -> Vec<f64> {
        let weights: Vec<f64> = self.first.iter().map(|(weight, _)| *weight).collect();
        let chosen = draws.weighted(&weights).unwrap_or(0);
        self.first[chosen].1.draw(draws)
    }

    /// Returns the posterior probabilities of components, given the first state.
    #[must_use]
    pub fn posterior(&self, x: &[f64]) -> Vec<f64> {
        posterior(&self.first, x).0
    }

    /// Returns the next state.
    #[must_use]
    pub fn step(&self, x: &[f64], control: &[f64]) -> Vec<f64> {
        let (n, m) = self.sizes();
        (0..n).map(|i| dot(&self.a[i * n..(i + 1) * n], x) + dot(&self.b[i * m..(i + 1) * m], control)).collect()
    }

    /// Returns whether a control is weak enough.
    #[must_use]
    pub fn is_weak(&self, control: &[f64]) -> bool {
        control.iter().all(|u| u.abs() <= self.strongest)
    }

    /// Returns whether a state is within all walls.
    #[must_use]
    pub fn is_within(&self, x: &[f64]) -> bool {
        self.walls.iter().all(|(a, c)| dot(a, x) <= *c)
    }
}

impl Control {
    /// Returns the control for a standardised first state.
    #[must_use]
    pub fn at(&self, z: &[f64]) -> Vec<f64> {
        self.mean.iter().zip(self.gain.chunks(z.len())).map(|(v, row)| v + dot(row, z)).collect()
    }
}

/// A vehicle in the plane (position, velocity; acceleration as control) that starts in one of three places and must stop at the origin, between
/// two walls.
#[must_use]
pub fn vehicle(steps: usize, risk: f64) -> Problem {
    const DT: f64 = 0.4;
    let half = DT * DT / 2.0;
    let a = vec![1.0, 0.0, DT, 0.0, 0.0, 1.0, 0.0, DT, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];
    let b = vec![half, 0.0, 0.0, half, DT, 0.0, 0.0, DT];
    let place = |x: f64, y: f64, speed: f64| Gaussian::independent(&[x, y, 0.0, speed], &[0.4, 0.4, 0.1, 0.1]);
    Problem {
        a,
        b,
        steps,
        first: vec![(0.3, place(-12.0, 1.5, 1.4)), (0.4, place(-12.5, 0.8, 0.0)), (0.3, place(-12.0, -0.4, -0.6))],
        last: Gaussian::independent(&[0.0; 4], &[0.25, 0.25, 0.1, 0.1]),
        walls: vec![(vec![0.0, 1.0, 0.0, 0.0], 2.95), (vec![0.0, -1.0, 0.0, 0.0], 1.8)],
        strongest: 2.06,
        risk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_base::rng::Stream;

    #[test]
    fn without_walls_one_component_costs_the_least_energy_of_a_double_integrator() {
        // Along a line, from rest to rest, with the mean alone: the discrete least-norm control, by normal equations.
        let mut problem = vehicle(10, 0.9);
        let still = Gaussian::independent(&[-10.0, 0.0, 0.0, 0.0], &[0.25, 0.25, 0.1, 0.1]);
        problem.first = vec![(1.0, still)];
        let plan = problem.plan().unwrap();
        // A second way: controls are linear in time for the minimal energy, u = p + q k.
        let means: Vec<f64> = plan.controls[0].iter().map(|control| control.mean[0]).collect();
        for three in means.windows(3) {
            assert!((three[0] - 2.0 * three[1] + three[2]).abs() < 1e-6, "{means:?}");
        }
    }

    #[test]
    fn vehicles_arrive_as_they_should_and_keep_off_the_walls() {
        let limit = 0.02;
        let problem = vehicle(15, limit);
        let plan = problem.plan().unwrap();
        let free = vehicle(15, 0.9).plan().unwrap();
        assert!(plan.cost > free.cost);
        let mut draws = Draws::new(12, Stream::World, 0, 0);
        let n = 4000;
        // By plan and step: shares beyond a wall, and of controls that are too long.
        let mut beyond = [vec![0.0; 15], vec![0.0; 15]];
        let mut strong = beyond.clone();
        let (mut sums, mut squares) = (vec![0.0; 4], vec![0.0; 4]);
        for _ in 0..n {
            let first = problem.draw(&mut draws);
            let chosen = draws.weighted(&problem.posterior(&first)).unwrap();
            let z = problem.first[chosen].1.standardise(&first);
            for (way, plan) in [&plan, &free].into_iter().enumerate() {
                let mut x = first.clone();
                for step in 0..15 {
                    let control = plan.controls[chosen][step].at(&z);
                    x = problem.step(&x, &control);
                    let long = !problem.is_weak(&control);
                    beyond[way][step] += f64::from(u8::from(!problem.is_within(&x))) / f64::from(n);
                    strong[way][step] += f64::from(u8::from(long)) / f64::from(n);
                }
                if way == 0 {
                    let w = problem.last.standardise(&x);
                    (0..4).for_each(|i| sums[i] += w[i]);
                    (0..4).for_each(|i| squares[i] += w[i] * w[i]);
                }
            }
        }
        let worst = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
        println!("beyond {beyond:?} too long {strong:?} cost {} {}", plan.cost, free.cost);
        assert!(worst(&beyond[0]) <= limit && worst(&beyond[1]) > limit);
        assert!(worst(&strong[0]) <= limit && worst(&strong[1]) > limit);
        for i in 0..4 {
            assert!((sums[i] / f64::from(n)).abs() < 0.06 && (squares[i] / f64::from(n) - 1.0).abs() < 0.08);
        }
    }
}
