//! Homophily: people are mostly tied to people like themselves (McPherson, Smith-Lovin and Cook, "Birds of a feather", Annual
//! Review of Sociology 27, 2001).

use super::stochastic_block::blocks_by;
use super::{Plan, StochasticBlock, TopologyError, affordable, within};
use crate::population::Population;
use crate::population::groups::By;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Agents with the same value of an attribute form a group; `same` of all ties lie inside groups. A stochastic block model: an
/// agent has on average `mean_degree * same` ties in its group, whatever the group's size, and every pair of two groups is
/// equally likely to be tied, so that members of small groups have more ties outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Homophily {
    /// A column of the population, each of whose values is a group; or a list of columns, with a group for each combination.
    pub by: By,
    /// The mean number of ties of an agent.
    pub mean_degree: f64,
    /// The share of ties between two agents of one group, 0 to 1.
    pub same: f64,
}

/// Ties inside groups that fall short by more than this part of them are refused: groups are too small for their ties.
const SHORT: f64 = 0.01;

impl Homophily {
    pub(super) fn plan<'a>(
        &'a self,
        n: u32,
        population: &'a Population,
        seed: u64,
        left: f64,
    ) -> Result<Plan<'a>, TopologyError> {
        within("same", self.same, 1.0, " (a share of the ties)")?;
        within("mean_degree", self.mean_degree, f64::from(n.saturating_sub(1)), &format!(" with {n} agents"))?;
        // In words of this kind, not of the blocks below.
        affordable("mean_degree", self.mean_degree * f64::from(n) / 2.0, left, "use a smaller `mean_degree`")?;
        let (inside, outside) = (self.mean_degree * self.same, self.mean_degree * (1.0 - self.same));
        let sizes: Vec<f64> = blocks_by(&self.by, n, population)?.sizes().into_iter().map(f64::from).collect();
        let possible =
            sizes.iter().map(|size| size * inside.min((size - 1.0).max(0.0))).sum::<f64>() / f64::from(n.max(1));
        if possible < inside * (1.0 - SHORT) {
            let smallest = sizes.iter().copied().filter(|size| *size > 0.0).fold(f64::INFINITY, f64::min);
            let message = format!(
                "each agent should have {inside} ties inside its group, but the groups of `{}` are too small (the \
                 smallest has {smallest}): only {possible:.3} are possible on average; use a smaller `mean_degree` or \
                 `same`, or fewer groups",
                self.by
            );
            return Err(TopologyError::at("same", message));
        }
        let blocks = StochasticBlock {
            by: Some(self.by.clone()),
            within: Some(inside),
            between: Some(outside),
            ..StochasticBlock::default()
        };
        StochasticBlock::planned(Cow::Owned(blocks), n, population, seed, left).map_err(|error| {
            match error.key.as_deref() {
                Some("between") => TopologyError::at(
                    "same",
                    format!(
                        "each agent should have {outside} ties outside its group, but there are not that many other \
                         agents"
                    ),
                ),
                Some("within") => TopologyError { key: Some("mean_degree".into()), ..error },
                _ => error,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::{Column, Table};
    use std::sync::Arc;

    /// 8,000 people in groups of 10%, 30% and 60%.
    fn people() -> Population {
        let party = (0..8000).map(|i| [0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0][i % 10]).collect();
        Population::from_table(Arc::new(Table::new(vec![("party".into(), Column::Number(party))]).unwrap()))
    }

    fn homophily(mean_degree: f64, same: f64) -> Homophily {
        Homophily { by: "party".into(), mean_degree, same }
    }

    #[test]
    fn the_share_of_ties_inside_is_within_binomial_error() {
        let population = people();
        let party = population.table().number_column("party").unwrap();
        for (seed, mean_degree, same) in [(1, 10.0, 0.8), (2, 10.0, 0.5), (3, 4.0, 0.1), (4, 6.0, 1.0), (5, 6.0, 0.0)] {
            let csr =
                homophily(mean_degree, same).plan(8000, &population, seed, f64::INFINITY).and_then(Plan::csr).unwrap();
            let arcs = || (0..8000).flat_map(|i| csr.neighbours(i).iter().map(move |j| (i, *j)));
            let ties = csr.arcs() as f64 / 2.0;
            let inside = arcs().filter(|(i, j)| population.number(party, *i) == population.number(party, *j)).count();
            let share = inside as f64 / 2.0 / ties;
            let sigma = (same * (1.0 - same) / ties).sqrt();
            assert!((share - same).abs() <= 4.0 * sigma, "{share} for {same}, sigma {sigma}");
            let expected = 4000.0 * mean_degree;
            assert!((ties - expected).abs() < 4.0 * expected.sqrt(), "{ties} for {expected}");
        }
    }

    #[test]
    fn what_can_not_be_is_named() {
        let error =
            |spec: Homophily| spec.plan(8000, &people(), 1, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string();
        assert_eq!(error(homophily(10.0, 1.5)), "same: 1.5 is not possible; allowed: 0 to 1 (a share of the ties)");
        assert_eq!(error(homophily(-1.0, 0.5)), "mean_degree: -1 is not possible; allowed: 0 to 7999 with 8000 agents");
        assert!(error(homophily(6000.0, 0.9)).starts_with("same: each agent should have 5400 ties inside its group"));
        assert!(error(Homophily { by: "partys".into(), ..homophily(1.0, 0.5) }).contains("did you mean `party`?"));
        let alike = |group: fn(usize) -> usize, n: usize, spec: Homophily| {
            let column = Column::Number((0..n).map(|i| group(i) as f64).collect());
            let people = Population::from_table(Arc::new(Table::new(vec![("party".into(), column)]).unwrap()));
            spec.plan(n as u32, &people, 1, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string()
        };
        // Everybody differs; twos; sixes, of which each could have 5 of 9.9 ties.
        let message = alike(|i| i, 400, homophily(10.0, 1.0));
        assert!(message.contains("(the smallest has 1): only 0.000 are possible on average"), "{message}");
        assert!(alike(|i| i / 2, 400, homophily(10.0, 1.0)).contains("(the smallest has 2): only 1.000 are possible"));
        assert!(alike(|i| i / 6, 600, homophily(10.0, 0.99)).contains("(the smallest has 6): only 5.000 are possible"));
        let crowd = Population::resample(people().table().clone(), 1_000_000, 1);
        let message = homophily(5000.0, 0.5)
            .plan(1_000_000, &crowd, 1, f64::INFINITY)
            .and_then(Plan::csr)
            .unwrap_err()
            .to_string();
        assert!(message.starts_with("mean_degree: this would make about 2.500e9 ties"), "{message}");
        assert!(message.ends_with("use a smaller `mean_degree`"), "{message}");
        let few = Population::resample(people().table().clone(), 20, 1);
        assert!(
            homophily(19.0, 0.1)
                .plan(20, &few, 1, f64::INFINITY)
                .and_then(Plan::csr)
                .unwrap_err()
                .message
                .contains("not that many other agents")
        );
    }
}
