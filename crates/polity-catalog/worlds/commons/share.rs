//! How a stock is shared out, and how unequal shares are.

use polity_kernel::rng::Draws;

/// Shares out whole units of a stock. If the demands are above it, each gets a part in proportion to its demand, rounded down. The units
/// that are left go one by one to agents whose part was rounded down, drawn with weights of what they still want.
pub(super) fn share(demands: &[f64], stock: f64, draws: &mut Draws) -> Vec<f64> {
    let total: f64 = demands.iter().sum();
    if total <= stock {
        return demands.to_vec();
    }
    let parts: Vec<f64> = demands.iter().map(|demand| stock * demand / total).collect();
    let mut got: Vec<f64> = parts.iter().map(|part| part.floor()).collect();
    let mut left = stock - got.iter().sum::<f64>();
    let mut wanted: Vec<f64> =
        (0..demands.len()).map(|i| if parts[i] > got[i] { (demands[i] - got[i]).max(0.0) } else { 0.0 }).collect();
    while left >= 1.0 {
        let Some(i) = draws.weighted(&wanted) else { break };
        got[i] += 1.0;
        wanted[i] -= 1.0;
        left -= 1.0;
    }
    got
}

/// Returns the Gini index; 0 if all is 0.
pub(super) fn gini(mut amounts: Vec<f64>) -> f64 {
    amounts.sort_by(f64::total_cmp);
    let (n, sum) = (amounts.len() as f64, amounts.iter().sum::<f64>());
    if sum <= 0.0 {
        return 0.0;
    }
    let weighted: f64 = (1..).zip(&amounts).map(|(i, x)| (2.0 * f64::from(i) - n - 1.0) * x).sum();
    weighted / (n * sum)
}
