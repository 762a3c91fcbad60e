//! Matrices of `f32` and their products.

use serde::{Deserialize, Serialize};

/// A matrix, row by row. A row is a case of a batch, or the inputs of a layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Array {
    rows: usize,
    columns: usize,
    data: Vec<f32>,
}

/// Rows and columns of the part of a product that is kept in registers.
const TALL: usize = 4;
const WIDE: usize = 16;

/// Runs a loop compiled for the widest vectors of this machine. Numbers are the same for every width.
#[inline(always)]
pub(crate) fn vectorised<R>(run: impl FnOnce() -> R) -> R {
    struct Run<F>(F);
    impl<R, F: FnOnce() -> R> pulp::NullaryFnOnce for Run<F> {
        type Output = R;
        #[inline(always)]
        fn call(self) -> R {
            (self.0)()
        }
    }
    pulp::Arch::new().dispatch(Run(run))
}

/// Returns the hyperbolic tangent, by a rational approximation (error below 4e-7) that vectorises.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    // The coefficients are those of Eigen and XLA.
    let x = x.clamp(-7.905_311, 7.905_311);
    let y = x * x;
    let mut p = y * -2.760_768_5e-16 + 2.000_188e-13;
    p = y * p - 8.604_672e-11;
    p = y * p + 5.122_297e-8;
    p = y * p + 1.485_722_4e-5;
    p = y * p + 6.372_619_5e-4;
    p = y * p + 4.893_524_6e-3;
    let mut q = y * 1.198_258_4e-6 + 1.185_347_1e-4;
    q = y * q + 2.268_434_6e-3;
    q = y * q + 4.893_525e-3;
    x * p / q
}

/// Returns the place of the largest number, the first of several; 0 if there are none.
#[must_use]
pub fn argmax(numbers: &[f32]) -> usize {
    (0..numbers.len()).fold(0, |best, i| if numbers[i] > numbers[best] { i } else { best })
}

impl Array {
    /// A matrix without rows.
    pub const EMPTY: Array = Array { rows: 0, columns: 0, data: Vec::new() };

    /// Makes a matrix of zeros.
    #[must_use]
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Array { rows, columns, data: vec![0.0; rows * columns] }
    }

    /// Makes a matrix from its numbers, row by row. Missing numbers are 0, those that are too many are dropped.
    #[must_use]
    pub fn new(rows: usize, columns: usize, mut data: Vec<f32>) -> Self {
        data.resize(rows * columns, 0.0);
        Array { rows, columns, data }
    }

    /// Makes a column.
    #[must_use]
    pub fn column(data: Vec<f32>) -> Self {
        Array { rows: data.len(), columns: 1, data }
    }

    /// Returns the numbers of rows and of columns.
    #[must_use]
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns all numbers, row by row.
    #[must_use]
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// Returns all numbers, row by row.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// Returns a row.
    ///
    /// # Panics
    /// If there is no such row, as slices do.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.columns..(row + 1) * self.columns]
    }

    /// Appends a row. The first one sets the number of columns of an empty matrix.
    pub fn push(&mut self, row: &[f32]) {
        if self.rows == 0 {
            self.columns = row.len();
        }
        self.rows += 1;
        self.data.extend_from_slice(row);
        self.data.resize(self.rows * self.columns, 0.0);
    }

    /// Appends the rows of another matrix. The first one sets the number of columns of an empty matrix.
    pub fn append(&mut self, other: &Array) {
        if self.rows == 0 {
            self.columns = other.columns;
        }
        self.rows += other.rows;
        self.data.extend_from_slice(&other.data);
        self.data.resize(self.rows * self.columns, 0.0);
    }

    /// Returns consecutive rows.
    ///
    /// # Panics
    /// If there are no such rows, as slices do.
    #[must_use]
    pub fn part(&self, rows: std::ops::Range<usize>) -> Self {
        let data = self.data[rows.start * self.columns..rows.end * self.columns].to_vec();
        Array { rows: rows.len(), columns: self.columns, data }
    }

    /// Returns these columns of all rows.
    ///
    /// # Panics
    /// If there are no such columns, as slices do.
    #[must_use]
    pub fn columns_of(&self, columns: std::ops::Range<usize>) -> Self {
        let data = (0..self.rows).flat_map(|row| self.row(row)[columns.clone()].iter().copied()).collect();
        Array { rows: self.rows, columns: columns.len(), data }
    }

    /// Returns the chosen rows, in that order.
    #[must_use]
    pub fn pick(&self, rows: &[u32]) -> Self {
        let mut data = Vec::with_capacity(rows.len() * self.columns);
        rows.iter().for_each(|row| data.extend_from_slice(self.row(*row as usize)));
        Array { rows: rows.len(), columns: self.columns, data }
    }

    /// Returns the chosen columns, in that order.
    #[must_use]
    pub fn select(&self, columns: &[u32]) -> Self {
        let mut data = Vec::with_capacity(self.rows * columns.len());
        (0..self.rows).for_each(|row| data.extend(columns.iter().map(|column| self.row(row)[*column as usize])));
        Array { rows: self.rows, columns: columns.len(), data }
    }

    /// Returns the matrix of `f` of every number.
    #[must_use]
    #[inline(always)]
    pub fn map(&self, f: impl Fn(f32) -> f32) -> Self {
        let mut data = self.data.clone();
        vectorised(
            #[inline(always)]
            || data.iter_mut().for_each(|x| *x = f(*x)),
        );
        Array { data, ..*self }
    }

    /// Returns the matrix of `f` of the numbers at each place. Both have the same shape.
    #[must_use]
    #[inline(always)]
    pub fn zip(&self, other: &Array, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut data = self.data.clone();
        vectorised(
            #[inline(always)]
            || data.iter_mut().zip(&other.data).for_each(|(x, y)| *x = f(*x, *y)),
        );
        Array { data, ..*self }
    }

    /// Adds another matrix of the same shape.
    pub fn add(&mut self, other: &Array) {
        vectorised(
            #[inline(always)]
            || self.data.iter_mut().zip(&other.data).for_each(|(x, y)| *x += *y),
        );
    }

    /// Returns the sum of each column.
    #[must_use]
    pub fn column_sums(&self) -> Self {
        let mut sums = Array::zeros(1, self.columns);
        vectorised(
            #[inline(always)]
            || {
                for row in self.data.chunks_exact(self.columns.max(1)) {
                    sums.data.iter_mut().zip(row).for_each(|(sum, x)| *sum += *x);
                }
            },
        );
        sums
    }

    /// Returns rows for columns.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let mut data = Vec::with_capacity(self.data.len());
        for column in 0..self.columns {
            data.extend((0..self.rows).map(|row| self.data[row * self.columns + column]));
        }
        Array { rows: self.columns, columns: self.rows, data }
    }

    /// Returns the product with another matrix, plus a row that is added to every row of it.
    #[must_use]
    pub fn times(&self, other: &Array, plus: Option<&Array>) -> Self {
        let mut out = Array::zeros(self.rows, other.columns);
        let sizes = [self.rows, self.columns, other.columns];
        product(sizes, &self.data, [self.columns, 1], &other.data, &mut out.data);
        if let Some(Array { data: plus, .. }) = plus {
            vectorised(
                #[inline(always)]
                || {
                    for row in out.data.chunks_exact_mut(plus.len().max(1)) {
                        row.iter_mut().zip(plus).for_each(|(x, y)| *x += *y);
                    }
                },
            );
        }
        out
    }

    /// Returns the product of this matrix, with rows for columns, with another matrix.
    #[must_use]
    pub fn transposed_times(&self, other: &Array) -> Self {
        let mut out = Array::zeros(self.columns, other.columns);
        let sizes = [self.columns, self.rows, other.columns];
        product(sizes, &self.data, [1, self.columns], &other.data, &mut out.data);
        out
    }
}

/// Writes the product of an m by k matrix and a k by n matrix. The first has these distances from row to row and from column to
/// column; the second is packed. Every number is the sum of its k terms from the first to the last, whatever is in registers.
fn product([m, k, n]: [usize; 3], a: &[f32], [down, right]: [usize; 2], b: &[f32], out: &mut [f32]) {
    if k == 0 || n == 0 {
        return;
    }
    let mut panels = vec![[0.0f32; WIDE]; k * n.div_ceil(WIDE)];
    let mut tall = vec![[0.0f32; TALL]; k];
    vectorised(
        #[inline(always)]
        || {
            for (i, row) in b.chunks_exact(n).enumerate() {
                for (panel, part) in row.chunks(WIDE).enumerate() {
                    panels[panel * k + i][..part.len()].copy_from_slice(part);
                }
            }
            for top in (0..m).step_by(TALL) {
                let rows = TALL.min(m - top);
                for row in 0..rows {
                    let of_row = a[(top + row) * down..].iter().step_by(right);
                    tall.iter_mut().zip(of_row).for_each(|(tall, a)| tall[row] = *a);
                }
                for (panel, left) in panels.chunks_exact(k).zip((0..n).step_by(WIDE)) {
                    let sums = tile(&tall, panel);
                    let width = WIDE.min(n - left);
                    for (row, sums) in sums.iter().enumerate().take(rows) {
                        let at = (top + row) * n + left;
                        out[at..at + width].copy_from_slice(&sums[..width]);
                    }
                }
            }
        },
    );
}

/// Returns some rows of a product, as wide as a panel.
#[inline(always)]
fn tile(tall: &[[f32; TALL]], panel: &[[f32; WIDE]]) -> [[f32; WIDE]; TALL] {
    let mut sums = [[0.0f32; WIDE]; TALL];
    for (a, b) in tall.iter().zip(panel) {
        for (sums, a) in sums.iter_mut().zip(a) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
    }
    sums
}
