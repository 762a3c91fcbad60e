//! Small dense linear algebra: Cholesky factors, symmetric eigenvectors, the leading eigenvectors of large symmetric matrices.
//!
//! Matrices are slices in row order. All loops run in a fixed order, so results are equal on every machine.

use polity_base::rng::Draws;

/// Returns the scalar product of two vectors, up to the shorter one's length.
#[must_use]
pub fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// Returns the lower factor L of a symmetric positive definite matrix `L L'` with `n` rows; `None` if it is not positive definite.
///
/// ```
/// use polity_learn::linear::cholesky;
///
/// assert_eq!(cholesky(&[4.0, 2.0, 2.0, 5.0], 2), Some(vec![2.0, 0.0, 1.0, 2.0]));
/// assert_eq!(cholesky(&[1.0, 2.0, 2.0, 1.0], 2), None);
/// ```
#[must_use]
pub fn cholesky(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut lower = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let rest = matrix[i * n + j] - dot(&lower[i * n..i * n + j], &lower[j * n..j * n + j]);
            if i > j {
                lower[i * n + j] = rest / lower[j * n + j];
            } else if rest > 0.0 && rest.is_finite() {
                lower[i * n + i] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(lower)
}

/// Solves `L y = b` for a lower factor.
pub fn forward(lower: &[f64], b: &mut [f64]) {
    let n = b.len();
    for i in 0..n {
        b[i] = (b[i] - dot(&lower[i * n..i * n + i], &b[..i])) / lower[i * n + i];
    }
}

/// Solves `L' x = y` for a lower factor.
pub fn backward(lower: &[f64], y: &mut [f64]) {
    let n = y.len();
    for i in (0..n).rev() {
        y[i] /= lower[i * n + i];
        let x = y[i];
        for j in 0..i {
            y[j] -= lower[i * n + j] * x;
        }
    }
}

/// Solves `L L' x = b` in place.
pub fn solve(lower: &[f64], b: &mut [f64]) {
    forward(lower, b);
    backward(lower, b);
}

/// Returns the logarithm of the determinant of `L L'`.
#[must_use]
pub fn log_determinant(lower: &[f64], n: usize) -> f64 {
    (0..n).map(|i| 2.0 * libm::log(lower[i * n + i])).sum()
}

/// Returns the eigenvalues of a symmetric matrix with `n` rows, smallest first, and the eigenvectors, one a row in the same order, by
/// Jacobi's rotations.
#[must_use]
pub fn symmetric_eigen(matrix: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = matrix.to_vec();
    let mut vectors = vec![0.0; n * n];
    for i in 0..n {
        vectors[i * n + i] = 1.0;
    }
    let scale: f64 = a.iter().map(|x| x * x).sum();
    for _ in 0..60 {
        let off: f64 = (0..n).map(|i| (0..i).map(|j| a[i * n + j] * a[i * n + j]).sum::<f64>()).sum();
        if off <= 1e-30 * scale {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let apq = a[p * n + q];
                if apq == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    (a[k * n + p], a[k * n + q]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..n {
                    let (x, y) = (a[p * n + k], a[q * n + k]);
                    (a[p * n + k], a[q * n + k]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..n {
                    let (x, y) = (vectors[p * n + k], vectors[q * n + k]);
                    (vectors[p * n + k], vectors[q * n + k]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| a[i * n + i].total_cmp(&a[j * n + j]));
    let values = order.iter().map(|i| a[i * n + i]).collect();
    let rows = order.iter().flat_map(|i| vectors[i * n..(i + 1) * n].to_vec()).collect();
    (values, rows)
}

/// Makes the rows of a matrix with `n` columns orthonormal, in order (Gram and Schmidt, twice). Rows that depend on earlier ones become 0.
fn orthonormalise(rows: &mut [f64], n: usize) {
    for i in 0..rows.len() / n {
        let (before, rest) = rows.split_at_mut(i * n);
        let row = &mut rest[..n];
        for _ in 0..2 {
            for earlier in before.chunks(n) {
                let along = dot(earlier, row);
                row.iter_mut().zip(earlier).for_each(|(x, e)| *x -= along * e);
            }
        }
        let length = dot(row, row).sqrt();
        let inverse = if length > 1e-150 { 1.0 / length } else { 0.0 };
        row.iter_mut().for_each(|x| *x *= inverse);
    }
}

/// Returns the eigenvectors of the `count` largest eigenvalues of a symmetric matrix whose eigenvalues lie in -1 to 1, largest first, one a
/// row: orthogonal iteration with `(matrix + 1) / 2`, from drawn vectors, then the eigenvectors within the space that was found.
#[must_use]
pub fn leading(matrix: &[f64], n: usize, count: usize, rounds: usize, draws: &mut Draws) -> Vec<f64> {
    // Two more vectors speed the convergence of those that are asked for.
    let block = (count + 2).min(n);
    let mut rows: Vec<f64> = (0..block * n).map(|_| draws.normal()).collect();
    let mut images = vec![0.0; block * n];
    let multiply = |rows: &[f64], images: &mut [f64]| {
        for (i, line) in matrix.chunks(n).enumerate() {
            for k in 0..block {
                images[k * n + i] = 0.5 * (dot(line, &rows[k * n..(k + 1) * n]) + rows[k * n + i]);
            }
        }
    };
    orthonormalise(&mut rows, n);
    for _ in 0..rounds {
        multiply(&rows, &mut images);
        std::mem::swap(&mut rows, &mut images);
        orthonormalise(&mut rows, n);
    }
    multiply(&rows, &mut images);
    let small: Vec<f64> = (0..block * block)
        .map(|place| (place / block, place % block))
        .map(|(i, j)| {
            let along = |i: usize, j: usize| dot(&rows[i * n..(i + 1) * n], &images[j * n..(j + 1) * n]);
            0.5 * (along(i, j) + along(j, i))
        })
        .collect();
    let (_, turns) = symmetric_eigen(&small, block);
    let mut found = vec![0.0; count.min(block) * n];
    for (k, vector) in found.chunks_mut(n).enumerate() {
        for (i, weight) in turns[(block - 1 - k) * block..(block - k) * block].iter().enumerate() {
            vector.iter_mut().zip(&rows[i * n..(i + 1) * n]).for_each(|(x, row)| *x += weight * row);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_base::rng::Stream;

    fn draws(n: u32) -> Draws {
        Draws::new(1, Stream::World, 0, n)
    }

    /// `B B'` plus a little, for a drawn B.
    fn positive(n: usize, draws: &mut Draws) -> Vec<f64> {
        let b: Vec<f64> = (0..n * n).map(|_| draws.normal()).collect();
        let at = |i: usize, j: usize| dot(&b[i * n..(i + 1) * n], &b[j * n..(j + 1) * n]) + f64::from(i == j) * 0.1;
        (0..n * n).map(|place| at(place / n, place % n)).collect()
    }

    #[test]
    fn factors_solve_and_give_the_product_of_eigenvalues() {
        for n in 1..12 {
            let mut draws = draws(n as u32);
            let matrix = positive(n, &mut draws);
            let x: Vec<f64> = (0..n).map(|_| draws.normal()).collect();
            let mut b: Vec<f64> = matrix.chunks(n).map(|row| dot(row, &x)).collect();
            let lower = cholesky(&matrix, n).unwrap();
            solve(&lower, &mut b);
            assert!(b.iter().zip(&x).all(|(got, x)| (got - x).abs() < 1e-7), "{n}");
            let (values, _) = symmetric_eigen(&matrix, n);
            let product: f64 = values.iter().map(|value| libm::log(*value)).sum();
            assert!((log_determinant(&lower, n) - product).abs() < 1e-8, "{n}");
        }
    }

    #[test]
    fn eigenvectors_are_orthonormal_and_rebuild_the_matrix() {
        let mut draws = draws(50);
        let n = 9;
        let matrix = positive(n, &mut draws);
        let (values, vectors) = symmetric_eigen(&matrix, n);
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1]));
        for i in 0..n {
            for j in 0..n {
                let product = dot(&vectors[i * n..(i + 1) * n], &vectors[j * n..(j + 1) * n]);
                assert!((product - f64::from(i == j)).abs() < 1e-12);
                let rebuilt: f64 = (0..n).map(|k| values[k] * vectors[k * n + i] * vectors[k * n + j]).sum();
                assert!((rebuilt - matrix[i * n + j]).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn leading_vectors_are_those_of_the_whole_decomposition() {
        let mut draws = draws(60);
        let n = 30;
        let matrix = positive(n, &mut draws);
        let trace: f64 = (0..n).map(|i| matrix[i * n + i]).sum();
        let scaled: Vec<f64> = matrix.iter().map(|x| x / trace).collect();
        let found = leading(&scaled, n, 2, 3000, &mut draws);
        let (_, vectors) = symmetric_eigen(&scaled, n);
        for k in 0..2 {
            let along = dot(&found[k * n..(k + 1) * n], &vectors[(n - 1 - k) * n..(n - k) * n]);
            assert!(along.abs() > 1.0 - 1e-9, "{along}");
        }
    }
}
