//! Reverse-mode gradients: a tape records what is computed from weights, and then goes back over it.

use crate::array::{Array, tanh};
use crate::weights::Weights;
use std::borrow::Cow;

/// A value on a tape: a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Var(usize);

/// How a value was computed.
enum Op {
    Input,
    Weight(usize),
    /// x·w + b
    Affine(Var, Var, Var),
    Tanh(Var),
    Relu(Var),
    Sigmoid(Var),
    Exp(Var),
    Softplus(Var),
    LogSoftmax(Var),
    Pick(Var, Vec<u32>),
    Add(Var, Var),
    Subtract(Var, Var),
    Multiply(Var, Var),
    Least(Var, Var),
    Most(Var, Var),
    Clamp(Var, f32, f32),
    Scale(Var, f32),
    RowSums(Var),
    Sum(Var),
    Columns(Var, usize),
    Select(Var, Vec<u32>),
    Join(Vec<Var>),
    Rows(Var, Vec<u32>),
    Stack(Vec<Var>),
    Reshape(Var),
    Abs(Var),
    Elu(Var),
    RowTimes(Var, Var),
    Power(Var, f32),
}

struct Node<'w> {
    value: Cow<'w, Array>,
    op: Op,
}

/// A tape over the weights of a network.
pub struct Tape<'w> {
    weights: &'w Weights,
    of_weights: Vec<Option<Var>>,
    nodes: Vec<Node<'w>>,
}

/// The sum of numbers, from the first to the last, rounded once.
fn sum(numbers: &[f32]) -> f32 {
    numbers.iter().map(|x| f64::from(*x)).sum::<f64>() as f32
}

impl<'w> Tape<'w> {
    /// Begins a tape.
    #[must_use]
    pub fn new(weights: &'w Weights) -> Self {
        Tape { weights, of_weights: vec![None; weights.len()], nodes: Vec::new() }
    }

    fn put(&mut self, value: Array, op: Op) -> Var {
        self.nodes.push(Node { value: Cow::Owned(value), op });
        Var(self.nodes.len() - 1)
    }

    /// Returns a value.
    #[must_use]
    pub fn value(&self, of: Var) -> &Array {
        &self.nodes[of.0].value
    }

    /// Adds a constant.
    pub fn input(&mut self, value: Array) -> Var {
        self.put(value, Op::Input)
    }

    /// Returns the weights with this number.
    pub fn weight(&mut self, number: usize) -> Var {
        if let Some(known) = self.of_weights[number] {
            return known;
        }
        self.nodes.push(Node { value: Cow::Borrowed(&self.weights[number].array), op: Op::Weight(number) });
        let var = Var(self.nodes.len() - 1);
        self.of_weights[number] = Some(var);
        var
    }

    /// Returns the weights with this number as a constant, through which gradients flow without moving them.
    pub fn frozen(&mut self, number: usize) -> Var {
        self.nodes.push(Node { value: Cow::Borrowed(&self.weights[number].array), op: Op::Input });
        Var(self.nodes.len() - 1)
    }

    /// Returns `x·w + b`, with the row `b` added to every row.
    pub fn affine(&mut self, x: Var, w: Var, b: Var) -> Var {
        let value = self.value(x).times(self.value(w), Some(self.value(b)));
        self.put(value, Op::Affine(x, w, b))
    }

    /// Returns hyperbolic tangents.
    pub fn tanh(&mut self, x: Var) -> Var {
        self.put(self.value(x).map(tanh), Op::Tanh(x))
    }

    /// Returns the positive parts.
    pub fn relu(&mut self, x: Var) -> Var {
        self.put(self.value(x).map(|x| if x < 0.0 { 0.0 } else { x }), Op::Relu(x))
    }

    /// Returns logistic functions.
    pub fn sigmoid(&mut self, x: Var) -> Var {
        self.put(self.value(x).map(|x| 0.5 + 0.5 * tanh(0.5 * x)), Op::Sigmoid(x))
    }

    /// Returns exponentials.
    pub fn exp(&mut self, x: Var) -> Var {
        let mut value = self.value(x).clone();
        value.data_mut().iter_mut().for_each(|x| *x = libm::expf(*x));
        self.put(value, Op::Exp(x))
    }

    /// Returns log (1 + exp x).
    pub fn softplus(&mut self, x: Var) -> Var {
        let softplus = |x: f32| x.max(0.0) + libm::log1pf(libm::expf(-x.abs()));
        self.put(self.value(x).map(softplus), Op::Softplus(x))
    }

    /// Returns the logarithms of the probabilities that each row of logits stands for.
    pub fn log_softmax(&mut self, x: Var) -> Var {
        let mut value = self.value(x).clone();
        let columns = value.columns().max(1);
        for row in value.data_mut().chunks_exact_mut(columns) {
            let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let all: f32 = row.iter().map(|x| libm::expf(x - top)).sum();
            let log = top + libm::logf(all);
            row.iter_mut().for_each(|x| *x -= log);
        }
        self.put(value, Op::LogSoftmax(x))
    }

    /// Returns one number of each row as a column: the one in that column.
    pub fn pick(&mut self, x: Var, columns: Vec<u32>) -> Var {
        let of = self.value(x);
        let data = columns.iter().enumerate().map(|(row, column)| of.row(row)[*column as usize]).collect();
        self.put(Array::column(data), Op::Pick(x, columns))
    }

    /// Returns `x + y`.
    pub fn add(&mut self, x: Var, y: Var) -> Var {
        self.put(self.value(x).zip(self.value(y), |x, y| x + y), Op::Add(x, y))
    }

    /// Returns `x - y`.
    pub fn subtract(&mut self, x: Var, y: Var) -> Var {
        self.put(self.value(x).zip(self.value(y), |x, y| x - y), Op::Subtract(x, y))
    }

    /// Returns the product of the numbers at each place.
    pub fn multiply(&mut self, x: Var, y: Var) -> Var {
        self.put(self.value(x).zip(self.value(y), |x, y| x * y), Op::Multiply(x, y))
    }

    /// Returns the squares.
    pub fn square(&mut self, x: Var) -> Var {
        self.multiply(x, x)
    }

    /// Returns the lesser number at each place.
    pub fn least(&mut self, x: Var, y: Var) -> Var {
        self.put(self.value(x).zip(self.value(y), |x, y| if y < x { y } else { x }), Op::Least(x, y))
    }

    /// Returns the greater number at each place.
    pub fn most(&mut self, x: Var, y: Var) -> Var {
        self.put(self.value(x).zip(self.value(y), |x, y| if y > x { y } else { x }), Op::Most(x, y))
    }

    /// Returns the numbers, moved into bounds.
    pub fn clamp(&mut self, x: Var, low: f32, high: f32) -> Var {
        self.put(self.value(x).map(|x| x.clamp(low, high)), Op::Clamp(x, low, high))
    }

    /// Returns `by · x`.
    pub fn scale(&mut self, x: Var, by: f32) -> Var {
        self.put(self.value(x).map(|x| by * x), Op::Scale(x, by))
    }

    /// Returns the sum of each row as a column.
    pub fn row_sums(&mut self, x: Var) -> Var {
        let of = self.value(x);
        let sums = (0..of.rows()).map(|row| sum(of.row(row))).collect();
        self.put(Array::column(sums), Op::RowSums(x))
    }

    /// Returns the sum of all numbers, as a 1 by 1 matrix.
    pub fn sum(&mut self, x: Var) -> Var {
        let all = sum(self.value(x).data());
        self.put(Array::column(vec![all]), Op::Sum(x))
    }

    /// Returns `n` columns from column `first` on.
    pub fn columns(&mut self, x: Var, first: usize, n: usize) -> Var {
        let value = self.value(x).columns_of(first..first + n);
        self.put(value, Op::Columns(x, first))
    }

    /// Returns the chosen columns, in that order. A column may be chosen several times.
    pub fn select(&mut self, x: Var, columns: Vec<u32>) -> Var {
        self.put(self.value(x).select(&columns), Op::Select(x, columns))
    }

    /// Returns the columns of several matrices with the same number of rows, side by side.
    pub fn join(&mut self, parts: &[Var]) -> Var {
        let rows = parts.first().map_or(0, |first| self.value(*first).rows());
        let columns = parts.iter().map(|part| self.value(*part).columns()).sum();
        let mut data = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            parts.iter().for_each(|part| data.extend_from_slice(self.value(*part).row(row)));
        }
        self.put(Array::new(rows, columns, data), Op::Join(parts.to_vec()))
    }

    /// Returns the chosen rows, in that order.
    pub fn rows(&mut self, x: Var, rows: Vec<u32>) -> Var {
        self.put(self.value(x).pick(&rows), Op::Rows(x, rows))
    }

    /// Returns the rows of several matrices with the same number of columns, one below the other.
    pub fn stack(&mut self, parts: &[Var]) -> Var {
        let mut value = Array::EMPTY;
        parts.iter().for_each(|part| value.append(self.value(*part)));
        self.put(value, Op::Stack(parts.to_vec()))
    }

    /// Returns the same numbers, in rows of `columns` numbers each.
    pub fn reshape(&mut self, x: Var, columns: usize) -> Var {
        let of = self.value(x);
        let value = Array::new(of.data().len() / columns.max(1), columns, of.data().to_vec());
        self.put(value, Op::Reshape(x))
    }

    /// Returns the absolute values.
    pub fn abs(&mut self, x: Var) -> Var {
        self.put(self.value(x).map(f32::abs), Op::Abs(x))
    }

    /// Returns `x` where it is positive, and `exp(x) - 1` elsewhere.
    pub fn elu(&mut self, x: Var) -> Var {
        let mut value = self.value(x).clone();
        value.data_mut().iter_mut().filter(|x| **x < 0.0).for_each(|x| *x = libm::expm1f(*x));
        self.put(value, Op::Elu(x))
    }

    /// Returns the product of each row of `x` with a matrix of its own: that in the same row of `w`, row by row.
    pub fn row_times(&mut self, x: Var, w: Var) -> Var {
        let (of, by) = (self.value(x), self.value(w));
        let (n, m) = (of.columns(), by.columns() / of.columns().max(1));
        let mut value = Array::zeros(of.rows(), m);
        for (row, out) in value.data_mut().chunks_exact_mut(m.max(1)).enumerate() {
            for (x, w) in of.row(row).iter().zip(by.row(row)[..n * m].chunks_exact(m.max(1))) {
                out.iter_mut().zip(w).for_each(|(out, w)| *out += x * w);
            }
        }
        self.put(value, Op::RowTimes(x, w))
    }

    /// Returns `x` to this power; `x` must be above 0.
    pub fn power(&mut self, x: Var, by: f32) -> Var {
        let mut value = self.value(x).clone();
        value.data_mut().iter_mut().for_each(|x| *x = libm::powf(*x, by));
        self.put(value, Op::Power(x, by))
    }

    /// Returns other numbers in place of `x`, through which gradients flow as if they were `x` (the straight-through estimator: Bengio et
    /// al. 2013).
    pub fn replaced(&mut self, x: Var, by: &Array) -> Var {
        let difference = by.zip(self.value(x), |by, x| by - x);
        let difference = self.input(difference);
        self.add(x, difference)
    }

    /// Returns the gradient of the sum of a value for every weight, in their order.
    #[must_use]
    pub fn backward(self, of: Var) -> Vec<Array> {
        let mut weights: Vec<Array> = self.weights.iter().map(|tensor| zeros(&tensor.array)).collect();
        let mut open: Vec<Option<Array>> = self.nodes.iter().map(|_| None).collect();
        open[of.0] = Some(self.value(of).map(|_| 1.0));
        for at in (0..=of.0).rev() {
            let Some(g) = open[at].take() else { continue };
            let node = &self.nodes[at];
            let y = &node.value;
            let of = |var: Var| self.value(var);
            let mut give = |to: Var, gradient: Array| match &mut open[to.0] {
                Some(sum) => sum.add(&gradient),
                none => *none = Some(gradient),
            };
            match &node.op {
                Op::Input => {}
                Op::Weight(number) => weights[*number] = g,
                Op::Affine(x, w, b) => {
                    if self.depends(*w) {
                        give(*w, of(*x).transposed_times(&g));
                        give(*b, g.column_sums());
                    }
                    if self.depends(*x) {
                        give(*x, g.times(&of(*w).transposed(), None));
                    }
                }
                Op::Tanh(x) => give(*x, g.zip(y, |g, y| g * (1.0 - y * y))),
                Op::Relu(x) => give(*x, g.zip(y, |g, y| if y > 0.0 { g } else { 0.0 })),
                Op::Sigmoid(x) => give(*x, g.zip(y, |g, y| g * y * (1.0 - y))),
                Op::Exp(x) => give(*x, g.zip(y, |g, y| g * y)),
                Op::Softplus(x) => give(*x, g.zip(of(*x), |g, x| g * (0.5 + 0.5 * tanh(0.5 * x)))),
                Op::LogSoftmax(x) => {
                    let mut to = g.clone();
                    let columns = g.columns().max(1);
                    let rows = to.data_mut().chunks_exact_mut(columns).zip(y.data().chunks_exact(columns));
                    for (g, y) in rows {
                        let all = sum(g);
                        g.iter_mut().zip(y).for_each(|(g, y)| *g -= libm::expf(*y) * all);
                    }
                    give(*x, to);
                }
                Op::Pick(x, columns) => {
                    let mut to = zeros(of(*x));
                    let width = to.columns();
                    for (row, (column, g)) in columns.iter().zip(g.data()).enumerate() {
                        to.data_mut()[row * width + *column as usize] = *g;
                    }
                    give(*x, to);
                }
                Op::Add(x, y) => {
                    give(*x, g.clone());
                    give(*y, g);
                }
                Op::Subtract(x, y) => {
                    give(*x, g.clone());
                    give(*y, g.map(|g| -g));
                }
                Op::Multiply(x, y) => {
                    give(*x, g.zip(of(*y), |g, y| g * y));
                    give(*y, g.zip(of(*x), |g, x| g * x));
                }
                Op::Least(x, y) => {
                    let second = of(*x).zip(of(*y), |x, y| if y < x { 1.0 } else { 0.0 });
                    give(*x, g.zip(&second, |g, second| g * (1.0 - second)));
                    give(*y, g.zip(&second, |g, second| g * second));
                }
                Op::Most(x, y) => {
                    let second = of(*x).zip(of(*y), |x, y| if y > x { 1.0 } else { 0.0 });
                    give(*x, g.zip(&second, |g, second| g * (1.0 - second)));
                    give(*y, g.zip(&second, |g, second| g * second));
                }
                Op::Clamp(x, low, high) => {
                    let (low, high) = (*low, *high);
                    give(*x, g.zip(of(*x), |g, x| if x >= low && x <= high { g } else { 0.0 }));
                }
                Op::Scale(x, by) => give(*x, g.map(|g| by * g)),
                Op::RowSums(x) => {
                    let mut to = zeros(of(*x));
                    let columns = to.columns().max(1);
                    let rows = to.data_mut().chunks_exact_mut(columns).zip(g.data());
                    rows.for_each(|(row, g)| row.fill(*g));
                    give(*x, to);
                }
                Op::Sum(x) => {
                    let all = g.data().first().copied().unwrap_or_default();
                    give(*x, of(*x).map(|_| all));
                }
                Op::Columns(x, first) => {
                    let mut to = zeros(of(*x));
                    let columns = to.columns().max(1);
                    for (row, to) in to.data_mut().chunks_exact_mut(columns).enumerate() {
                        to[*first..*first + g.columns()].copy_from_slice(g.row(row));
                    }
                    give(*x, to);
                }
                Op::Select(x, columns) => {
                    if self.depends(*x) {
                        let mut to = zeros(of(*x));
                        let width = to.columns().max(1);
                        for (row, to) in to.data_mut().chunks_exact_mut(width).enumerate() {
                            columns.iter().zip(g.row(row)).for_each(|(column, g)| to[*column as usize] += g);
                        }
                        give(*x, to);
                    }
                }
                Op::Join(parts) => {
                    let mut first = 0;
                    for part in parts {
                        let n = of(*part).columns();
                        let data = (0..g.rows()).flat_map(|row| g.row(row)[first..first + n].iter().copied());
                        give(*part, Array::new(g.rows(), n, data.collect()));
                        first += n;
                    }
                }
                Op::Rows(x, rows) => {
                    let mut to = zeros(of(*x));
                    let columns = to.columns();
                    for (g, row) in (0..g.rows()).map(|row| g.row(row)).zip(rows) {
                        let to = &mut to.data_mut()[*row as usize * columns..][..columns];
                        to.iter_mut().zip(g).for_each(|(to, g)| *to += g);
                    }
                    give(*x, to);
                }
                Op::Stack(parts) => {
                    let mut first = 0;
                    for part in parts {
                        let n = of(*part).rows();
                        give(*part, g.part(first..first + n));
                        first += n;
                    }
                }
                Op::Reshape(x) => {
                    let [rows, columns] = of(*x).shape();
                    give(*x, Array::new(rows, columns, g.data().to_vec()));
                }
                Op::Power(x, by) => {
                    let mut slope = of(*x).clone();
                    slope.data_mut().iter_mut().for_each(|x| *x = by * libm::powf(*x, by - 1.0));
                    give(*x, g.zip(&slope, |g, slope| g * slope));
                }
                Op::Abs(x) => give(*x, g.zip(of(*x), |g, x| if x < 0.0 { -g } else { g })),
                Op::Elu(x) => give(*x, g.zip(y, |g, y| if y < 0.0 { g * (y + 1.0) } else { g })),
                Op::RowTimes(x, w) => {
                    let (from, by) = (of(*x), of(*w));
                    let (mut to_x, mut to_w) = (zeros(from), zeros(by));
                    let (n, m) = (from.columns(), g.columns());
                    for row in 0..g.rows() {
                        for i in 0..n {
                            let (x, at) = (from.row(row)[i], row * by.columns() + i * m);
                            let (w, g) = (&by.data()[at..at + m], g.row(row));
                            to_x.data_mut()[row * n + i] = w.iter().zip(g).map(|(w, g)| w * g).sum();
                            to_w.data_mut()[at..at + m].iter_mut().zip(g).for_each(|(to, g)| *to = x * g);
                        }
                    }
                    give(*x, to_x);
                    give(*w, to_w);
                }
            }
        }
        weights
    }

    /// Returns whether a value may depend on weights.
    fn depends(&self, var: Var) -> bool {
        !matches!(self.nodes[var.0].op, Op::Input)
    }
}

fn zeros(like: &Array) -> Array {
    Array::zeros(like.rows(), like.columns())
}
