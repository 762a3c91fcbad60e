//! Small dense systems of linear equations.

/// Solves `matrix · x = right` by elimination with partial pivoting; rows are scaled to a largest entry of 1 first. `None` if a
/// pivot is at most `smallest` then, or a number is not finite.
pub(crate) fn solve(matrix: Vec<Vec<f64>>, right: Vec<f64>, smallest: f64) -> Option<Vec<f64>> {
    solve_with_sign(matrix, right, smallest).map(|(x, _)| x)
}

/// As [`solve`], with whether the determinant is positive.
pub(crate) fn solve_with_sign(
    mut matrix: Vec<Vec<f64>>,
    mut right: Vec<f64>,
    smallest: f64,
) -> Option<(Vec<f64>, bool)> {
    let n = right.len();
    let mut positive = true;
    for (row, b) in matrix.iter_mut().zip(&mut right) {
        let most = row.iter().fold(0.0f64, |most, a| most.max(a.abs()));
        if !(most > 0.0 && most.is_finite()) {
            return None;
        }
        row.iter_mut().for_each(|a| *a /= most);
        *b /= most;
    }
    for k in 0..n {
        let pivot = (k..n).fold(k, |best, i| if matrix[i][k].abs() > matrix[best][k].abs() { i } else { best });
        if matrix[pivot][k].abs() <= smallest || !matrix[pivot][k].is_finite() {
            return None;
        }
        positive ^= (pivot != k) ^ (matrix[pivot][k] < 0.0);
        matrix.swap(k, pivot);
        right.swap(k, pivot);
        let (above, below) = matrix.split_at_mut(k + 1);
        let first = &above[k];
        for (i, row) in below.iter_mut().enumerate() {
            let factor = row[k] / first[k];
            if factor != 0.0 {
                for (a, b) in row[k..].iter_mut().zip(&first[k..]) {
                    *a -= factor * b;
                }
                right[k + 1 + i] -= factor * right[k];
            }
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| matrix[k][j] * right[j]).sum();
        right[k] = (right[k] - known) / matrix[k][k];
    }
    right.iter().all(|x| x.is_finite()).then_some((right, positive))
}

#[cfg(test)]
mod tests {
    use super::{solve, solve_with_sign};

    #[test]
    fn systems_are_solved_and_singular_ones_refused() {
        let matrix = vec![vec![0.0, 2.0, 1.0], vec![1e6, 0.0, 1e6], vec![3.0, 1.0, 0.0]];
        // x = (1, -2, 3)
        let x = solve(matrix, vec![-1.0, 4e6, 1.0], 1e-12);
        assert!(x.is_some_and(|x| x.iter().zip([1.0, -2.0, 3.0]).all(|(x, known)| (x - known).abs() < 1e-12)));
        for (matrix, positive) in [([[0.0, 1.0], [1.0, 0.0]], false), ([[1.0, 2.0], [-3.0, 1.0]], true)] {
            let matrix = matrix.map(|row| row.to_vec()).to_vec();
            assert_eq!(solve_with_sign(matrix, vec![1.0; 2], 1e-12).map(|(_, positive)| positive), Some(positive));
        }
        assert_eq!(solve(vec![vec![1.0, 2.0], vec![2.0, 4.0]], vec![1.0, 2.0], 1e-12), None);
    }
}
