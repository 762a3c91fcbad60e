//! Groups (Holland, Laskey and Leinhardt, "Stochastic blockmodels: first steps", Social Networks 5, 1983).

use super::skips::{rectangle, triangle};
use super::{Csr, Plan, TopologyError, affordable, within};
use crate::population::Population;
use crate::population::fit::apportion;
use crate::population::groups::{By, Groups};
use crate::rng::{Draws, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Agents fall into blocks; whether two are tied depends on their blocks alone, pair by pair.
///
/// The blocks come from exactly one of `by`, `sizes`, `shares`. The ties come either from `within` and `between`, mean numbers
/// of ties of an agent, which a larger society keeps, or from `matrix`, probabilities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StochasticBlock {
    /// A column of the population, or a list of columns; each of their values is a block (numbers ascending, words in order of first
    /// appearance in the table).
    #[serde(default)]
    pub by: Option<By>,
    /// The sizes of the blocks; the first block takes the first agents, and so on.
    #[serde(default)]
    pub sizes: Option<Vec<u32>>,
    /// The relative sizes of the blocks, rounded by largest remainder; the first block takes the first agents, and so on.
    #[serde(default)]
    pub shares: Option<Vec<f64>>,
    /// The mean number of ties of an agent inside its own block; an agent of a block too small for so many is tied to all
    /// of it.
    #[serde(default)]
    pub within: Option<f64>,
    /// The mean number of ties of an agent outside its own block, over all agents; every such pair is equally likely.
    #[serde(default)]
    pub between: Option<f64>,
    /// The probability of a tie between an agent of one block (row) and one of another (column); symmetric.
    #[serde(default)]
    pub matrix: Option<Vec<Vec<f64>>>,
}

/// The most blocks; each pair of blocks costs a draw.
const MAX_BLOCKS: usize = 4096;

impl StochasticBlock {
    pub(super) fn plan<'a>(
        &'a self,
        n: u32,
        population: &'a Population,
        seed: u64,
        left: f64,
    ) -> Result<Plan<'a>, TopologyError> {
        StochasticBlock::planned(Cow::Borrowed(self), n, population, seed, left)
    }

    pub(super) fn planned<'a>(
        spec: Cow<'a, StochasticBlock>,
        n: u32,
        population: &'a Population,
        seed: u64,
        left: f64,
    ) -> Result<Plan<'a>, TopologyError> {
        let blocks = spec.blocks(n, population)?;
        let sizes = blocks.sizes();
        let p = spec.probabilities(n, &sizes)?;
        // A block without agents costs nothing, however many there are in the table.
        let some: Vec<usize> = (0..sizes.len()).filter(|block| sizes[*block] > 0).collect();
        let mut ties = 0.0;
        for (i, a) in some.iter().enumerate() {
            let size = f64::from(sizes[*a]);
            ties += p(*a, *a) * size * (size - 1.0) / 2.0;
            ties += some[..i].iter().map(|b| p(*a, *b) * size * f64::from(sizes[*b])).sum::<f64>();
        }
        let key = if spec.matrix.is_some() { "matrix" } else { "within" };
        affordable(key, ties, left, "use smaller `within` and `between`, which do not grow with the society")?;
        drop(p);
        Ok(Plan::that_may_fail(n, 2.0 * ties, move || {
            let p = spec.probabilities(n, &sizes)?;
            let members = blocks.members(population);
            Ok(Csr::undirected(n, |edge| {
                for (i, a) in some.iter().enumerate() {
                    // Each pair of blocks has draws of its own.
                    let draws = |b: usize| Draws::new(seed, Stream::Topology, *a as u32, b as u32);
                    let block = &members[*a];
                    triangle(sizes[*a], p(*a, *a), draws(*a), |v, w| edge(block[v as usize], block[w as usize]));
                    for b in &some[..i] {
                        let other = &members[*b];
                        rectangle(sizes[*a], sizes[*b], p(*a, *b), draws(*b), |v, w| {
                            edge(block[v as usize], other[w as usize]);
                        });
                    }
                }
            }))
        }))
    }

    /// Who is in which block.
    fn blocks(&self, n: u32, population: &Population) -> Result<Blocks, TopologyError> {
        match (&self.by, &self.sizes, &self.shares) {
            (Some(by), None, None) => blocks_by(by, n, population),
            (None, Some(sizes), None) => {
                few("sizes", sizes.len())?;
                let sum: u64 = sizes.iter().map(|s| u64::from(*s)).sum();
                if sum != u64::from(n) {
                    let message = format!(
                        "the blocks have {sum} agents in total, but the society has {n}; `shares` fits any number of \
                         agents"
                    );
                    return Err(TopologyError::at("sizes", message));
                }
                Ok(Blocks::Consecutive(sizes.clone()))
            }
            (None, None, Some(shares)) => {
                few("shares", shares.len())?;
                largest_remainder(shares, n).map(Blocks::Consecutive)
            }
            _ => Err(TopologyError::general("give exactly one of `by`, `sizes` and `shares`")),
        }
    }

    /// The probability of a tie by the numbers of two blocks.
    fn probabilities<'s>(
        &'s self,
        n: u32,
        blocks: &'s [u32],
    ) -> Result<impl Fn(usize, usize) -> f64 + 's, TopologyError> {
        let sizes: Vec<f64> = blocks.iter().map(|size| f64::from(*size)).collect();
        let (inside, outside) = match (self.within, self.between, &self.matrix) {
            (Some(inside), Some(outside), None) => {
                let n = f64::from(n);
                within("within", inside, (n - 1.0).max(0.0), " (the other agents)")?;
                let arcs: f64 = sizes.iter().map(|size| size * (n - size)).sum();
                let most = if n > 0.0 { arcs / n } else { 0.0 };
                within("between", outside, most, " (the mean number of agents outside an agent's block)")?;
                (inside, if most > 0.0 { (outside / most).min(1.0) } else { 0.0 })
            }
            (None, None, Some(matrix)) => {
                check_matrix(matrix, blocks.len())?;
                (0.0, 0.0)
            }
            _ => return Err(TopologyError::general("give either `within` and `between`, or `matrix`")),
        };
        Ok(move |a: usize, b: usize| match &self.matrix {
            Some(matrix) => matrix[a][b],
            None if a != b => outside,
            None if sizes[a] > 1.0 => (inside / (sizes[a] - 1.0)).min(1.0),
            None => 0.0,
        })
    }
}

/// Who is in which block.
pub(super) enum Blocks {
    /// The first so many agents, the next so many, and so on.
    Consecutive(Vec<u32>),
    /// Agents by the row of the population's table that they are.
    ByRow {
        /// The block of each row.
        of_row: Vec<u32>,
        /// Agents of each block.
        sizes: Vec<u32>,
    },
}

impl Blocks {
    /// The number of agents of each block.
    pub(super) fn sizes(&self) -> Vec<u32> {
        match self {
            Blocks::Consecutive(sizes) | Blocks::ByRow { sizes, .. } => sizes.clone(),
        }
    }

    /// The agents of each block, ascending.
    fn members(&self, population: &Population) -> Vec<Vec<u32>> {
        match self {
            Blocks::Consecutive(sizes) => {
                let mut next = 0;
                let mut block = |size: &u32| {
                    let begin = next;
                    next += size;
                    (begin..next).collect()
                };
                sizes.iter().map(&mut block).collect()
            }
            Blocks::ByRow { of_row, sizes } => {
                let mut members: Vec<Vec<u32>> = sizes.iter().map(|size| Vec::with_capacity(*size as usize)).collect();
                for agent in 0..population.len() {
                    members[of_row[population.row(agent) as usize] as usize].push(agent);
                }
                members
            }
        }
    }
}

fn few(key: &str, blocks: usize) -> Result<(), TopologyError> {
    if (1..=MAX_BLOCKS).contains(&blocks) {
        return Ok(());
    }
    Err(TopologyError::at(key, format!("{blocks} blocks are not possible; allowed: 1 to {MAX_BLOCKS}")))
}

/// Blocks of agents with the same value in a column.
pub(super) fn blocks_by(by: &By, n: u32, population: &Population) -> Result<Blocks, TopologyError> {
    if population.len() != n {
        return Err(TopologyError::at(
            "by",
            format!("the population has {} agents, but the topology has {n}", population.len()),
        ));
    }
    let Groups { of_row, labels } =
        population.table().groups(by).map_err(|error| TopologyError::at("by", error.to_string()))?;
    let mut sizes = vec![0; labels.len()];
    of_row.iter().zip(population.counts()).for_each(|(block, count)| sizes[*block as usize] += count);
    few("by", sizes.iter().filter(|size| **size > 0).count().max(1)).map_err(|error| TopologyError {
        message: format!("column `{by}`: {}; group its values first", error.message),
        ..error
    })?;
    Ok(Blocks::ByRow { of_row, sizes })
}

/// Returns whole sizes as near to the shares as possible: each is rounded down, and the largest remainders get the agents left over
/// (ties go to the first).
fn largest_remainder(shares: &[f64], n: u32) -> Result<Vec<u32>, TopologyError> {
    let total: f64 = shares.iter().sum();
    if let Some(bad) = shares.iter().find(|share| !(**share >= 0.0 && share.is_finite())) {
        return Err(TopologyError::range("shares", bad, "a number of 0 or more"));
    }
    if !(total > 0.0 && total.is_finite()) {
        return Err(TopologyError::at("shares", format!("they add up to {total}; give at least one above 0")));
    }
    Ok(apportion(shares, n))
}

fn check_matrix(matrix: &[Vec<f64>], blocks: usize) -> Result<(), TopologyError> {
    if matrix.len() != blocks || matrix.iter().any(|row| row.len() != blocks) {
        return Err(TopologyError::at(
            "matrix",
            format!("there are {blocks} blocks, so {blocks} rows of {blocks} probabilities are needed"),
        ));
    }
    for (a, row) in matrix.iter().enumerate() {
        for (b, p) in row.iter().enumerate() {
            within(&format!("matrix[{a}][{b}]"), *p, 1.0, "")?;
            if *p != matrix[b][a] {
                let message = format!(
                    "{p} differs from matrix[{b}][{a}], {}; ties go both ways, so the matrix must be symmetric",
                    matrix[b][a]
                );
                return Err(TopologyError::at(&format!("matrix[{a}][{b}]"), message));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::{Column, Table, TextBuilder};
    use std::sync::Arc;

    fn by_shares(shares: &[f64], within: f64, between: f64) -> StochasticBlock {
        let shares = Some(shares.to_vec());
        StochasticBlock { shares, within: Some(within), between: Some(between), ..StochasticBlock::default() }
    }

    /// 3,000 people: 500 of party -1, 1,000 of party 2 and 1,500 of party 0, mixed; also in words.
    fn people() -> Population {
        let party: Vec<f64> = (0..3000).map(|i| [-1.0, 2.0, 0.0, 0.0, 2.0, -0.0][i % 6]).collect();
        let mut words = TextBuilder::default();
        party.iter().for_each(|value| words.push(["none", "left", "", "right"][(value + 1.0) as usize]));
        Population::from_table(Arc::new(
            Table::new(vec![("party".into(), Column::Number(party)), ("word".into(), words.finish())]).unwrap(),
        ))
    }

    /// Mean ties inside and outside the own block, by `block` of an agent.
    fn means(csr: &Csr, block: impl Fn(u32) -> u32) -> (f64, f64) {
        let (mut inside, mut outside) = (0u32, 0u32);
        for i in 0..csr.n() {
            for j in csr.neighbours(i) {
                *(if block(i) == block(*j) { &mut inside } else { &mut outside }) += 1;
            }
        }
        (f64::from(inside) / f64::from(csr.n()), f64::from(outside) / f64::from(csr.n()))
    }

    /// The count of ties is nearly Poisson: 4 sigma of a mean degree over `n` agents.
    fn near(found: f64, expected: f64, n: u32) -> bool {
        (found - expected).abs() < 4.0 * (2.0 * expected / f64::from(n)).sqrt()
    }

    #[test]
    fn means_by_a_column() {
        let population = people();
        let spec = StochasticBlock {
            by: Some("party".into()),
            within: Some(8.0),
            between: Some(3.0),
            ..StochasticBlock::default()
        };
        let blocks = spec.blocks(3000, &population).unwrap();
        assert_eq!(blocks.sizes(), [500, 1500, 1000]);
        let blocks = blocks.members(&population);
        assert_eq!(blocks.iter().map(Vec::len).collect::<Vec<_>>(), [500, 1500, 1000]);
        assert_eq!(blocks[2][..3], [1, 4, 7]);
        for seed in 0..5 {
            let csr = spec.plan(3000, &population, seed, f64::INFINITY).and_then(Plan::csr).unwrap();
            let block = |i: u32| [0, 1, 2, 2, 1, 2][i as usize % 6];
            let (inside, outside) = means(&csr, block);
            assert!(near(inside, 8.0, 3000) && near(outside, 3.0, 3000), "seed {seed}: {inside} {outside}");
            // Each block on its own has the asked mean inside; outside it depends on how many others there are.
            for (number, size) in [(0, 500), (1, 1000), (2, 1500)] {
                let ties = |same| {
                    let of = |i: &u32| csr.neighbours(*i).iter().filter(|j| (block(**j) == number) == same).count();
                    (0..3000).filter(|i| block(*i) == number).map(|i| of(&i)).sum::<usize>() as f64 / f64::from(size)
                };
                let away = 3.0 * 3000.0 * f64::from(3000 - size) / (500.0 * 2500.0 + 1000.0 * 2000.0 + 1500.0 * 1500.0);
                assert!(
                    near(ties(true), 8.0, size) && near(ties(false), away, size),
                    "block {number}: {} {}",
                    ties(true),
                    ties(false)
                );
            }
        }
    }

    #[test]
    fn words_are_blocks_too_and_scale_by_resampling() {
        let spec = StochasticBlock {
            by: Some("word".into()),
            within: Some(5.0),
            between: Some(2.0),
            ..StochasticBlock::default()
        };
        let table = people().table().clone();
        let word = table.text_column("word").unwrap();
        let many = Population::resample(table, 20_000, 5);
        let csr = spec.plan(20_000, &many, 1, f64::INFINITY).and_then(Plan::csr).unwrap();
        let (inside, outside) =
            means(&csr, |i| ["none", "left", "right"].iter().position(|w| *w == many.text(word, i)).unwrap() as u32);
        assert!(near(inside, 5.0, 20_000) && near(outside, 2.0, 20_000), "{inside} {outside}");
    }

    #[test]
    fn small_blocks_are_tied_to_all_of_themselves() {
        let csr = by_shares(&[3.0, 97.0], 10.0, 0.0)
            .plan(100, &Population::empty(100), 1, f64::INFINITY)
            .and_then(Plan::csr)
            .unwrap();
        assert_eq!(csr.neighbours(0), [1, 2]);
        assert_eq!(csr.neighbours(2), [0, 1]);
        let inside = (3..100).map(|i| csr.neighbours(i).len() as f64).sum::<f64>() / 97.0;
        assert!(near(inside, 10.0, 97), "{inside}");
    }

    #[test]
    fn a_matrix_of_certainties() {
        let matrix = Some(vec![vec![0.0, 1.0, 0.0], vec![1.0, 1.0, 0.0], vec![0.0, 0.0, 0.0]]);
        let spec = StochasticBlock { sizes: Some(vec![2, 3, 2]), matrix, ..StochasticBlock::default() };
        let csr = spec.plan(7, &Population::empty(7), 1, f64::INFINITY).and_then(Plan::csr).unwrap();
        let lists: Vec<&[u32]> = (0..7).map(|i| csr.neighbours(i)).collect();
        assert_eq!(lists, [&[2, 3, 4][..], &[2, 3, 4], &[0, 1, 3, 4], &[0, 1, 2, 4], &[0, 1, 2, 3], &[], &[]]);
    }

    #[test]
    fn shares_become_whole_agents() {
        assert_eq!(largest_remainder(&[1.0, 1.0, 1.0], 10), Ok(vec![4, 3, 3]));
        assert_eq!(largest_remainder(&[0.5, 0.3, 0.2], 11), Ok(vec![6, 3, 2]));
        assert_eq!(largest_remainder(&[0.0, 2.0], 5), Ok(vec![0, 5]));
        for n in 0..200 {
            assert_eq!(largest_remainder(&[0.1, 0.7, 0.2, 0.3], n).unwrap().iter().sum::<u32>(), n);
        }
    }

    #[test]
    fn out_of_range() {
        let population = people();
        let error = |spec: StochasticBlock| {
            spec.plan(3000, &population, 0, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string()
        };
        let base = || by_shares(&[1.0, 1.0], 4.0, 1.0);
        let by = |name: &str| StochasticBlock { by: Some(name.into()), shares: None, ..base() };
        let matrix = |matrix: &[&[f64]]| {
            let matrix = Some(matrix.iter().map(|row| row.to_vec()).collect());
            StochasticBlock { matrix, within: None, between: None, ..base() }
        };
        assert_eq!(
            error(StochasticBlock { sizes: Some(vec![1]), ..base() }),
            "give exactly one of `by`, `sizes` and `shares`"
        );
        assert_eq!(
            error(StochasticBlock { within: None, ..base() }),
            "give either `within` and `between`, or `matrix`"
        );
        assert_eq!(
            error(by("partys")),
            "by: column `partys`: there is no such column; did you mean `party`? the columns are: party, word"
        );
        assert_eq!(
            error(StochasticBlock { sizes: Some(vec![1, 2]), shares: None, ..base() }),
            "sizes: the blocks have 3 agents in total, but the society has 3000; `shares` fits any number of agents"
        );
        assert_eq!(
            error(by_shares(&[1.0, -1.0], 1.0, 1.0)),
            "shares: -1 is not possible; allowed: a number of 0 or more"
        );
        assert_eq!(error(by_shares(&[0.0], 1.0, 1.0)), "shares: they add up to 0; give at least one above 0");
        assert_eq!(error(by_shares(&[], 1.0, 1.0)), "shares: 0 blocks are not possible; allowed: 1 to 4096");
        assert_eq!(
            error(by_shares(&[1.0, 1.0], 4.0, 1501.0)),
            "between: 1501 is not possible; allowed: 0 to 1500 (the mean number of agents outside an agent's block)"
        );
        assert_eq!(
            error(by_shares(&[1.0, 1.0], f64::NAN, 1.0)),
            "within: NaN is not possible; allowed: 0 to 2999 (the other agents)"
        );
        assert_eq!(error(matrix(&[&[0.5]])), "matrix: there are 2 blocks, so 2 rows of 2 probabilities are needed");
        assert_eq!(
            error(matrix(&[&[0.5, 0.1], &[0.2, 0.5]])),
            "matrix[0][1]: 0.1 differs from matrix[1][0], 0.2; ties go both ways, so the matrix must be symmetric"
        );
        assert_eq!(error(matrix(&[&[0.5, 1.1], &[1.1, 0.5]])), "matrix[0][1]: 1.1 is not possible; allowed: 0 to 1");
        let crowd = by_shares(&[1.0], 5_000.0, 0.0)
            .plan(1_000_000, &Population::empty(0), 0, f64::INFINITY)
            .and_then(Plan::csr)
            .unwrap_err()
            .to_string();
        assert!(crowd.starts_with("within: this would make about 2.500e9 ties"), "{crowd}");
        let ids = Column::Number((0..5000).map(f64::from).collect());
        let everyone_else = Population::from_table(Arc::new(Table::new(vec![("id".into(), ids)]).unwrap()));
        assert_eq!(
            by("id").plan(5000, &everyone_else, 0, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string(),
            "by: column `id`: 5000 blocks are not possible; allowed: 1 to 4096; group its values first"
        );
        // What counts is the values that agents have, not those of the table.
        let few = Population::resample(everyone_else.table().clone(), 300, 1);
        let by_id = StochasticBlock { within: Some(0.0), ..by("id") };
        assert_eq!(by_id.plan(300, &few, 0, f64::INFINITY).and_then(Plan::csr).unwrap().n(), 300);
        let mut ages = TextBuilder::default();
        ["30", "40", "old"].iter().for_each(|word| ages.push(word));
        let mixed = Population::from_table(Arc::new(Table::new(vec![("age".into(), ages.finish())]).unwrap()));
        assert_eq!(
            by("age").plan(3, &mixed, 0, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string(),
            "by: column `age`: it mixes numbers and words: row 2 (counted from 0) has `old` (1 of 3 values are not numbers); correct it, or write words in all rows"
        );
    }
}
