//! Degree sequences: the configuration model (Molloy and Reed 1995; Newman, Strogatz and Watts, "Random graphs with arbitrary
//! degree distributions", Physical Review E 64, 2001).

use super::{Csr, Plan, TopologyError, affordable};
use crate::population::fit::apportion;
use crate::population::{Column, Population};
use crate::rng::{Draws, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Every agent has a given number of ties, to random agents. The numbers come from exactly one of `by`, `degrees`, `distribution`.
///
/// Ends of ties are paired at random. A pair of an agent with itself, or a repeated pair, is repaired by exchanging partners with
/// another random tie, so every number is kept (switching; erasing such pairs would change the numbers). If this does not terminate
/// because the sequence is very uneven, the graph of Havel (1955) and Hakimi (1962) is used, which ties the agents with most ties
/// to each other. If more than half of all pairs are to be tied, the untied pairs are drawn in this way instead.
///
/// The sum of all numbers must be even. If that of a column or distribution is odd, one agent drawn at random has one more tie,
/// among those for which a graph exists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// A column of the population with each agent's number of ties.
    #[serde(default)]
    pub by: Option<String>,
    /// The number of ties of each agent, by id.
    #[serde(default)]
    pub degrees: Option<Vec<u32>>,
    /// Shares of agents by number of ties, `{2: 0.5, 10: 0.5}`: whole agents by largest remainder, who has which is random.
    #[serde(default)]
    pub distribution: Option<BTreeMap<String, f64>>,
}

impl Configuration {
    pub(super) fn plan<'a>(
        &'a self,
        n: u32,
        population: &Population,
        seed: u64,
        left: f64,
    ) -> Result<Plan<'a>, TopologyError> {
        let mut draws = Draws::new(seed, Stream::Topology, 0, 0);
        let (key, degrees) = self.degrees(n, population, &mut draws)?;
        let most = n.saturating_sub(1);
        if let Some(agent) = degrees.iter().position(|degree| *degree > most) {
            let message =
                format!("agent {agent} should have {} ties, but there are only {most} other agents", degrees[agent]);
            return Err(TopologyError::at(key, message));
        }
        affordable(key, ends(&degrees) as f64 / 2.0, left, "use smaller numbers of ties")?;
        Ok(Plan::that_may_fail(n, ends(&degrees) as f64, move || self.tied(key, degrees, draws)))
    }

    /// Returns a graph in which agents have these numbers of ties, if there is one.
    fn tied(&self, key: &str, mut degrees: Vec<u32>, mut draws: Draws) -> Result<Csr, TopologyError> {
        let n = degrees.len() as u32;
        let most = n.saturating_sub(1);
        if ends(&degrees) % 2 == 1 {
            if self.degrees.is_some() {
                let message = "the sum of the numbers is odd, but every tie has two ends; change one number by 1";
                return Err(TopologyError::at(key, message));
            }
            degrees = with_one_more(degrees, &mut draws).ok_or_else(|| {
                let message = "the sum of the numbers is odd, but every tie has two ends, and no agent can have one \
                               tie more; change one number by 1";
                TopologyError::at(key, message)
            })?;
        }
        if !graphical(&degrees) {
            let message = "no graph has these numbers of ties: the agents with the most ties need more partners than \
                           the other agents can provide";
            return Err(TopologyError::at(key, message));
        }
        let tie = |degrees: &[u32], draws: &mut Draws| {
            let edges = paired(degrees, draws).unwrap_or_else(|| havel_hakimi(degrees));
            Csr::undirected(n, |edge| edges.iter().for_each(|(a, b)| edge(*a, *b)))
        };
        // If most pairs are tied, hardly any exchange repairs anything, so find the untied pairs instead.
        if ends(&degrees) > u64::from(n) * u64::from(most) / 2 {
            let untied: Vec<u32> = degrees.iter().map(|degree| most - degree).collect();
            return Ok(complement(&tie(&untied, &mut draws)));
        }
        Ok(tie(&degrees, &mut draws))
    }

    /// The parameter in use, and the number of ties of each agent.
    fn degrees(
        &self,
        n: u32,
        population: &Population,
        draws: &mut Draws,
    ) -> Result<(&'static str, Vec<u32>), TopologyError> {
        match (&self.by, &self.degrees, &self.distribution) {
            (Some(by), None, None) => Ok(("by", column(by, n, population)?)),
            (None, Some(degrees), None) if degrees.len() != n as usize => Err(TopologyError::at(
                "degrees",
                format!("there are {} numbers for {n} agents; `distribution` fits any number of agents", degrees.len()),
            )),
            (None, Some(degrees), None) => Ok(("degrees", degrees.clone())),
            (None, None, Some(distribution)) => {
                let mut each = Vec::new();
                for (text, share) in distribution {
                    let key = crate::tree::child("distribution", text);
                    let degree: u32 = text.trim().parse().map_err(|_| {
                        TopologyError::at(
                            &key,
                            format!("`{text}` is not a number of ties; write a whole number, 0 or more"),
                        )
                    })?;
                    if !(0.0..=1.0).contains(share) {
                        return Err(TopologyError::range(&key, share, "a share between 0 and 1"));
                    }
                    each.push((degree, *share));
                }
                let sum: f64 = each.iter().map(|(_, share)| share).sum();
                if (sum - 1.0).abs() > crate::population::fit::ROUNDED {
                    return Err(TopologyError::at("distribution", format!("the shares add up to {sum}, not to 1")));
                }
                // In order of degree, not of the text.
                each.sort_by_key(|(degree, _)| *degree);
                let shares: Vec<f64> = each.iter().map(|(_, share)| *share).collect();
                let parts = each.iter().zip(apportion(&shares, n));
                let mut degrees: Vec<u32> =
                    parts.flat_map(|((degree, _), part)| std::iter::repeat_n(*degree, part as usize)).collect();
                draws.shuffle(&mut degrees);
                Ok(("distribution", degrees))
            }
            _ => Err(TopologyError::general("give exactly one of `by`, `degrees` and `distribution`")),
        }
    }
}

/// The ends of all ties.
fn ends(degrees: &[u32]) -> u64 {
    degrees.iter().map(|degree| u64::from(*degree)).sum()
}

/// The numbers of a column, which must be whole and not negative.
fn column(by: &str, n: u32, population: &Population) -> Result<Vec<u32>, TopologyError> {
    if population.len() != n {
        let message = format!("the population has {} agents, but the topology has {n}", population.len());
        return Err(TopologyError::at("by", message));
    }
    let table = population.table();
    table.number_column(by).map_err(|error| TopologyError::at("by", error.to_string()))?;
    let Some((_, Column::Number(values))) = table.columns().find(|(name, _)| *name == by) else {
        return Ok(Vec::new());
    };
    let whole = |value: f64| value >= 0.0 && value.fract() == 0.0 && value <= f64::from(u32::MAX);
    let degree = |agent| {
        let value = values[population.row(agent) as usize];
        if whole(value) {
            return Ok(value as u32);
        }
        let message =
            format!("column `{by}`: agent {agent} has {value}; a number of ties must be whole and not negative");
        Err(TopologyError::at("by", message))
    };
    (0..n).map(degree).collect()
}

/// Returns the degrees with one more for a random agent, among those for which a graph exists; `None` if there is none.
fn with_one_more(mut degrees: Vec<u32>, draws: &mut Draws) -> Option<Vec<u32>> {
    let most = degrees.len().saturating_sub(1) as u32;
    let mut free: Vec<u32> = (0..degrees.len() as u32).filter(|agent| degrees[*agent as usize] < most).collect();
    if free.is_empty() {
        return None;
    }
    let first = draws.below(free.len() as u64) as usize;
    free.swap(0, first);
    // Whether there is a graph depends on the agent's number of ties alone.
    let mut tried = BTreeSet::new();
    for i in 0..free.len() {
        let agent = free[i] as usize;
        if tried.insert(degrees[agent]) {
            degrees[agent] += 1;
            if graphical(&degrees) {
                return Some(degrees);
            }
            degrees[agent] -= 1;
        }
        if i == 0 {
            draws.shuffle(&mut free[1..]);
        }
    }
    None
}

/// The graph of all pairs that are not tied.
fn complement(csr: &Csr) -> Csr {
    Csr::undirected(csr.n(), |edge| {
        for agent in 0..csr.n() {
            let mut tied = csr.neighbours(agent).iter().copied().peekable();
            for other in 0..agent {
                if tied.next_if_eq(&other).is_none() {
                    edge(agent, other);
                }
            }
        }
    })
}

/// Whether some graph has these degrees (Erdős and Gallai 1960). Their sum is even.
fn graphical(degrees: &[u32]) -> bool {
    let mut sorted: Vec<u64> = degrees.iter().map(|degree| u64::from(*degree)).collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let mut tail = vec![0; sorted.len() + 1];
    for i in (0..sorted.len()).rev() {
        tail[i] = tail[i + 1] + sorted[i];
    }
    let total = tail[0];
    // Of those after the first k, the ones above k count k, the others in full.
    (1..=sorted.len()).take_while(|k| sorted[k - 1] + 1 >= *k as u64).all(|k| {
        let above = sorted.partition_point(|degree| *degree > k as u64).max(k);
        let (first, k64) = (total - tail[k], k as u64);
        first <= k64 * (k64 - 1) + (above - k) as u64 * k64 + tail[above]
    })
}

fn key(a: u32, b: u32) -> u64 {
    u64::from(a.min(b)) << 32 | u64::from(a.max(b))
}

/// Pairs ends at random and repairs the result; `None` if the repair does not terminate.
fn paired(degrees: &[u32], draws: &mut Draws) -> Option<Vec<(u32, u32)>> {
    let each = |(agent, degree): (usize, &u32)| std::iter::repeat_n(agent as u32, *degree as usize);
    let mut ends: Vec<u32> = degrees.iter().enumerate().flat_map(each).collect();
    draws.shuffle(&mut ends);
    let mut keys: Vec<u64> = ends.as_chunks::<2>().0.iter().map(|[a, b]| key(*a, *b)).collect();
    drop(ends);
    keys.sort_unstable();
    let agents = |key: u64| ((key >> 32) as u32, key as u32);
    let mut bad = Vec::new();
    let mut last = None;
    keys.retain(|key| {
        let (a, b) = agents(*key);
        let good = a != b && last != Some(*key);
        last = Some(*key);
        if !good {
            bad.push((a, b));
        }
        good
    });
    let mut edges: Vec<(u32, u32)> = keys.iter().map(|key| agents(*key)).collect();
    // Few ties change: the current ties are `keys`, less `gone`, plus `new`.
    let (mut gone, mut new) = (BTreeSet::new(), BTreeSet::new());
    let mut tries = 50 * (edges.len() + bad.len() + 100);
    while let Some((u, v)) = bad.pop() {
        loop {
            tries = tries.checked_sub(1)?;
            if edges.is_empty() {
                return None;
            }
            let place = draws.below(edges.len() as u64) as usize;
            let old = edges[place];
            let (x, y) = if draws.u32() & 1 == 0 { old } else { (old.1, old.0) };
            let there = |key: u64| new.contains(&key) || keys.binary_search(&key).is_ok() && !gone.contains(&key);
            let (first, second) = (key(u, x), key(v, y));
            if u == x || v == y || first == second || there(first) || there(second) {
                continue;
            }
            if !new.remove(&key(x, y)) {
                gone.insert(key(x, y));
            }
            new.extend([first, second]);
            edges[place] = (u, x);
            edges.push((v, y));
            break;
        }
    }
    Some(edges)
}

/// The agent with most open ties is tied to those with next most, again and again.
fn havel_hakimi(degrees: &[u32]) -> Vec<(u32, u32)> {
    let mut open: BTreeSet<(u32, u32)> =
        degrees.iter().enumerate().filter(|(_, degree)| **degree > 0).map(|(a, degree)| (*degree, a as u32)).collect();
    let mut edges = Vec::new();
    while let Some((degree, agent)) = open.pop_last() {
        let partners: Vec<(u32, u32)> = open.iter().rev().take(degree as usize).copied().collect();
        for (left, partner) in partners {
            open.remove(&(left, partner));
            edges.push((agent, partner));
            if left > 1 {
                open.insert((left - 1, partner));
            }
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::{Table, TextBuilder};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn of(csr: &Csr) -> Vec<u32> {
        (0..csr.n()).map(|i| csr.neighbours(i).len() as u32).collect()
    }

    fn exactly(degrees: &[u32]) -> Result<Csr, TopologyError> {
        let spec = Configuration { degrees: Some(degrees.to_vec()), ..Configuration::default() };
        spec.plan(degrees.len() as u32, &Population::empty(degrees.len() as u32), 7, f64::INFINITY).and_then(Plan::csr)
    }

    #[test]
    fn sequences_are_kept() {
        let mut star = vec![1; 200];
        star[3] = 199;
        let uneven: Vec<u32> = (0..400).map(|i| 1 + 300 / (i + 1)).map(|d| d + d % 2).collect();
        for degrees in [vec![], vec![0], vec![1, 1], vec![5; 6], vec![2; 3], star, uneven, vec![9; 1000]] {
            let csr = exactly(&degrees).unwrap();
            assert_eq!(of(&csr), degrees);
            assert!((0..csr.n()).all(|i| !csr.neighbours(i).contains(&i)));
        }
    }

    #[test]
    fn distributions_and_columns() {
        let distribution = Some([("2".to_owned(), 0.5), ("10".to_owned(), 0.3), ("1".to_owned(), 0.2)].into());
        let spec = Configuration { distribution, ..Configuration::default() };
        let csr = spec.plan(1000, &Population::empty(1000), 3, f64::INFINITY).and_then(Plan::csr).unwrap();
        let count = |degree| of(&csr).iter().filter(|d| **d == degree).count();
        assert_eq!((count(1), count(2), count(10)), (200, 500, 300));
        // Who is tied is mixed: ends of the same degree meet as often as their share of ends says.
        let degrees = of(&csr);
        let ends = (0..1000u32).flat_map(|i| csr.neighbours(i).iter().map(move |j| (i, *j)));
        let alike = ends.filter(|(i, j)| degrees[*i as usize] == 10 && degrees[*j as usize] == 10).count() as f64;
        let expected = 3000.0 * 3000.0 / 4200.0;
        assert!((alike - expected).abs() < 5.0 * f64::sqrt(2.0 * expected), "{alike} {expected}");
        let ties = Column::Number(vec![1.0, 3.0, 2.0, 2.0, 1.0]);
        let mut words = TextBuilder::default();
        (0..5).for_each(|_| words.push("x"));
        let table = Arc::new(Table::new(vec![("ties".into(), ties), ("word".into(), words.finish())]).unwrap());
        let by = |name: &str| Configuration { by: Some(name.into()), ..Configuration::default() };
        // The sum is 9: one agent has one more.
        let csr =
            by("ties").plan(5, &Population::from_table(table.clone()), 3, f64::INFINITY).and_then(Plan::csr).unwrap();
        let more: u32 = of(&csr).iter().zip([1, 3, 2, 2, 1]).map(|(d, asked)| d - asked).sum();
        assert_eq!(more, 1);
        let many = Population::resample(table.clone(), 3001, 9);
        let column = many.table().number_column("ties").unwrap();
        let csr = by("ties").plan(3001, &many, 3, f64::INFINITY).and_then(Plan::csr).unwrap();
        let more: u32 = of(&csr).iter().zip(0..).map(|(d, i)| d - many.number(column, i) as u32).sum();
        assert!(more <= 1);
        let error = by("word")
            .plan(5, &Population::from_table(table), 3, f64::INFINITY)
            .and_then(Plan::csr)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "by: column `word`: holds words (x), but numbers are needed");
    }

    fn by(ties: &[f64], seed: u64) -> Result<Csr, TopologyError> {
        let table = Table::new(vec![("ties".into(), Column::Number(ties.to_vec()))]).unwrap();
        let spec = Configuration { by: Some("ties".into()), ..Configuration::default() };
        spec.plan(ties.len() as u32, &Population::from_table(Arc::new(table)), seed, f64::INFINITY).and_then(Plan::csr)
    }

    /// One tie more for the agent who has one would need two partners who have none.
    #[test]
    fn an_odd_sum_is_mended_where_it_can_be_whatever_the_seed() {
        let mut seen = BTreeSet::new();
        for seed in 0..40 {
            seen.insert(of(&by(&[0.0, 0.0, 1.0], seed).unwrap()));
        }
        assert_eq!(seen, [vec![0, 1, 1], vec![1, 0, 1]].into());
        for seed in 0..10 {
            let message = by(&[3.0, 3.0, 1.0, 0.0], seed).unwrap_err().to_string();
            assert!(message.starts_with("by: the sum of the numbers is odd"), "{message}");
        }
    }

    #[test]
    fn dense_sequences_are_kept() {
        let uneven: Vec<u32> = (0..600).map(|i| 300 + 2 * (i % 140)).collect();
        for degrees in [vec![900; 1000], vec![2000; 2001], vec![501; 1000], vec![500; 1000], uneven] {
            let csr = exactly(&degrees).unwrap();
            assert_eq!(of(&csr), degrees);
            assert!((0..csr.n()).all(|i| !csr.neighbours(i).contains(&i)));
        }
    }

    #[test]
    fn what_can_not_be_is_named() {
        let error = |degrees: &[u32]| exactly(degrees).unwrap_err().to_string();
        assert!(error(&[1, 1, 1]).starts_with("degrees: the sum of the numbers is odd"));
        assert_eq!(error(&[3, 1, 0]), "degrees: agent 0 should have 3 ties, but there are only 2 other agents");
        assert!(error(&[3, 3, 1, 1]).starts_with("degrees: no graph has these numbers of ties"));
        let distribution = |of: &[(&str, f64)]| {
            let distribution = Some(of.iter().map(|(d, s)| ((*d).to_owned(), *s)).collect());
            let spec = Configuration { distribution, ..Configuration::default() };
            spec.plan(10, &Population::empty(10), 1, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string()
        };
        assert_eq!(distribution(&[("2", 0.4)]), "distribution: the shares add up to 0.4, not to 1");
        assert!(distribution(&[("few", 1.0)]).starts_with("distribution.few: `few` is not a number of ties"));
        assert!(distribution(&[("2", 1.4)]).starts_with("distribution.2: 1.4 is not possible"));
        let none = Configuration::default()
            .plan(10, &Population::empty(10), 1, f64::INFINITY)
            .and_then(Plan::csr)
            .unwrap_err()
            .to_string();
        assert_eq!(none, "give exactly one of `by`, `degrees` and `distribution`");
        let short = Configuration { degrees: Some(vec![2; 3]), ..Configuration::default() };
        let message =
            short.plan(10, &Population::empty(10), 1, f64::INFINITY).and_then(Plan::csr).unwrap_err().to_string();
        assert_eq!(message, "degrees: there are 3 numbers for 10 agents; `distribution` fits any number of agents");
    }

    /// Whether a graph with these degrees exists, by Havel and Hakimi's theorem.
    fn can_be(degrees: &[u32]) -> bool {
        let mut left = degrees.to_vec();
        loop {
            left.sort_unstable_by(|a, b| b.cmp(a));
            let Some(most) = left.first().copied().filter(|d| *d > 0) else { return true };
            left.remove(0);
            if most as usize > left.len() || left[..most as usize].contains(&0) {
                return false;
            }
            left[..most as usize].iter_mut().for_each(|d| *d -= 1);
        }
    }

    proptest! {
        #[test]
        fn any_sequence_is_kept_or_refused(mut degrees in prop::collection::vec(0u32..9, 1..12)) {
            if degrees.iter().sum::<u32>() % 2 == 1 {
                degrees[0] += 1;
            }
            let made = exactly(&degrees);
            prop_assert_eq!(made.is_ok(), can_be(&degrees), "{:?}: {:?}", &degrees, made);
            if let Ok(csr) = made {
                prop_assert_eq!(of(&csr), degrees.clone());
                let plain = havel_hakimi(&degrees);
                let n = degrees.len() as u32;
                prop_assert_eq!(of(&Csr::from_edges(n, &plain, false).unwrap()), degrees);
            }
        }
    }
}
