//! Random graphs (Erdős and Rényi 1959; Gilbert 1959).

use super::skips::triangle;
use super::{Csr, Plan, TopologyError, affordable, within};
use crate::rng::{Draws, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each pair of agents is tied with the same probability, independently. Exactly one of the two parameters is given; with
/// `mean_degree` a larger society keeps its number of ties an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErdosRenyi {
    /// The mean number of ties of an agent.
    #[serde(default)]
    pub mean_degree: Option<f64>,
    /// The probability of a tie.
    #[serde(default)]
    pub probability: Option<f64>,
}

impl ErdosRenyi {
    pub(super) fn plan(&self, n: u32, seed: u64, left: f64) -> Result<Plan<'_>, TopologyError> {
        let others = f64::from(n.saturating_sub(1));
        let p = match (self.mean_degree, self.probability) {
            (Some(mean), None) => {
                within("mean_degree", mean, others, &format!(" with {n} agents"))?;
                affordable("mean_degree", f64::from(n) * mean / 2.0, left, "use a smaller `mean_degree`")?;
                if others > 0.0 { mean / others } else { 0.0 }
            }
            (None, Some(p)) => {
                within("probability", p, 1.0, "")?;
                affordable(
                    "probability",
                    f64::from(n) * others / 2.0 * p,
                    left,
                    "give a `mean_degree` instead, which does not grow with the society",
                )?;
                p
            }
            _ => return Err(TopologyError::general("give either `mean_degree` or `probability`")),
        };
        Ok(Plan::of(n, f64::from(n) * others * p, move || {
            Csr::undirected(n, |edge| triangle(n, p, Draws::new(seed, Stream::Topology, 0, 0), edge))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(mean_degree: f64) -> ErdosRenyi {
        ErdosRenyi { mean_degree: Some(mean_degree), probability: None }
    }

    fn probability(p: f64) -> ErdosRenyi {
        ErdosRenyi { mean_degree: None, probability: Some(p) }
    }

    #[test]
    fn ties_are_binomial() {
        for seed in 0..5 {
            let (n, p) = (3000, 8.0 / 2999.0);
            let csr = mean(8.0).plan(n, seed, f64::INFINITY).and_then(Plan::csr).unwrap();
            assert_eq!(csr, probability(p).plan(n, seed, f64::INFINITY).and_then(Plan::csr).unwrap());
            let pairs = f64::from(n) * f64::from(n - 1) / 2.0;
            let (expected, sigma) = (pairs * p, (pairs * p * (1.0 - p)).sqrt());
            assert!((csr.arcs() as f64 / 2.0 - expected).abs() < 4.0 * sigma, "seed {seed}: {} arcs", csr.arcs());
            // The degrees scatter as a binomial does: variance (n - 1) p (1 - p), about 8.
            let squares: f64 = (0..n).map(|i| (csr.neighbours(i).len() as f64 - 8.0).powi(2)).sum();
            assert!((squares / f64::from(n) - 8.0).abs() < 1.0, "seed {seed}: {squares}");
        }
    }

    #[test]
    fn empty_and_full() {
        assert_eq!(probability(0.0).plan(50, 1, f64::INFINITY).and_then(Plan::csr).unwrap().arcs(), 0);
        assert_eq!(probability(1.0).plan(50, 1, f64::INFINITY).and_then(Plan::csr).unwrap().arcs(), 50 * 49);
        assert_eq!(mean(49.0).plan(50, 1, f64::INFINITY).and_then(Plan::csr).unwrap().arcs(), 50 * 49);
    }

    #[test]
    fn out_of_range() {
        let error = |parameters: ErdosRenyi, n| {
            parameters.plan(n, 0, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string()
        };
        assert_eq!(error(mean(10.0), 10), "mean_degree: 10 is not possible; allowed: 0 to 9 with 10 agents");
        assert_eq!(error(mean(f64::NAN), 10), "mean_degree: NaN is not possible; allowed: 0 to 9 with 10 agents");
        assert_eq!(error(probability(-0.5), 10), "probability: -0.5 is not possible; allowed: 0 to 1");
        assert_eq!(error(ErdosRenyi::default(), 10), "give either `mean_degree` or `probability`");
        assert_eq!(
            error(probability(0.5), 1_000_000),
            "probability: this would make about 2.500e11 ties, but at most 2.000e9 are allowed; give a `mean_degree` instead, which does not grow with the society"
        );
    }
}
