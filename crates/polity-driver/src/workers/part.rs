//! The share of a worker.

/// A share of the runs. Each part gets some of every group, and no part more than one run more than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 0.
    pub index: usize,
    /// Number of parts; at least 1.
    pub of: usize,
}

impl Part {
    /// All runs.
    pub const WHOLE: Part = Part { index: 0, of: 1 };

    /// Its runs, in their order: those of every group are dealt out in turn, each group where the one before it ended.
    pub(super) fn of<T: Copy>(self, order: &[T], group: &dyn Fn(T) -> usize) -> Vec<T> {
        let mut dealt: Vec<usize> = (0..order.len()).collect();
        dealt.sort_by_key(|at| group(order[*at]));
        let of = self.of.max(1);
        let mut own: Vec<usize> = dealt.into_iter().skip(self.index).step_by(of).collect();
        own.sort_unstable();
        own.into_iter().map(|at| order[at]).collect()
    }
}

impl std::str::FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if index < of => Ok(Part { index, of }),
            _ => Err("it must be I/N: part I of N parts, from 0/N to (N-1)/N".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Arms and seeds, each arm's first seed first, as a sweep begins them.
    fn order(arms: usize, seeds: usize) -> Vec<(usize, usize)> {
        (0..seeds).flat_map(|seed| (0..arms).map(move |arm| (arm, seed))).collect()
    }

    #[test]
    fn every_part_has_its_share_of_every_arm() {
        for (arms, seeds, parts) in [(4, 8, 2), (4, 8, 4), (6, 5, 3), (3, 7, 5), (2, 3, 4), (5, 1, 3), (1, 9, 2)] {
            let order = order(arms, seeds);
            let mut all = Vec::new();
            for index in 0..parts {
                let own = Part { index, of: parts }.of(&order, &|(arm, _)| arm);
                assert!(own.is_sorted_by_key(|run| order.iter().position(|other| other == run)));
                let even = |n: usize, whole: usize| n == whole / parts || n == whole.div_ceil(parts);
                assert!(even(own.len(), order.len()), "{} of {arms} by {seeds} in part {index}/{parts}", own.len());
                let mut of_arm = BTreeMap::from_iter((0..arms).map(|arm| (arm, 0)));
                own.iter().for_each(|(arm, _)| *of_arm.entry(*arm).or_default() += 1);
                for (arm, n) in of_arm {
                    assert!(even(n, seeds), "{n} of {seeds} runs of arm {arm} in part {index}/{parts}");
                }
                all.extend(own);
            }
            all.sort_by_key(|run| order.iter().position(|other| other == run));
            assert_eq!(all, order);
        }
    }
}
