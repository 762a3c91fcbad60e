//! The arms of a design: combinations of named arms, levels and points.

use super::factors::Written;
use super::{Arm, Factor, Fraction, Level, NAMED};

/// What is combined.
pub(super) struct Crossing<'a> {
    /// The named arms, if there are some.
    pub named: Option<&'a [Level]>,
    /// The part of all combinations of listed levels that is run.
    pub fraction: Option<&'a Fraction>,
    /// The number of points of ranges, at most.
    pub points: Option<u64>,
}

impl Crossing<'_> {
    /// Returns the number of arms.
    pub fn count(&self, written: &[Written]) -> u64 {
        let named = self.named.map_or(1, |named| named.len() as u64);
        let listed = written.iter().filter(|written| written.factor.range.is_none());
        let levels = listed.fold(1_u64, |n, written| n.saturating_mul(written.levels.len() as u64));
        let run = levels / self.fraction.map_or(1, |fraction| u64::from(fraction.one_in));
        named.saturating_mul(run).saturating_mul(self.points.unwrap_or(1))
    }

    /// Returns the factors, and all arms with so many points: the named arms vary slowest, points fastest, and of the listed factors the last. Their seeds are
    /// still missing.
    pub fn cross(&self, written: Vec<Written>, drawn: usize) -> (Vec<Factor>, Vec<Arm>) {
        let mut arms = vec![Arm { name: String::new(), levels: Vec::new(), set: Vec::new(), seeds: Vec::new() }];
        let mut factors = Vec::new();
        if let Some(named) = self.named {
            arms = named.iter().map(|(label, set)| arms[0].with(label.clone(), set)).collect();
            // With named arms only, the arm's name says all, and every arm is compared with the baseline anyway.
            if !written.is_empty() {
                let levels = named.iter().map(|(label, _)| label.clone()).collect();
                factors.push(Factor { name: NAMED.into(), path: None, levels, range: None });
                arms.iter_mut().enumerate().for_each(|(at, arm)| arm.levels.push(at));
            }
        }
        let first = factors.len();
        for Written { factor, levels, .. } in written.iter().filter(|written| written.factor.range.is_none()) {
            let with = |arm: &Arm| {
                let one = |(at, (label, set)): (usize, &Level)| {
                    let mut arm = arm.with(format!("{}={label}", factor.name), set);
                    arm.levels.push(at);
                    arm
                };
                levels.iter().enumerate().map(one).collect::<Vec<_>>()
            };
            arms = arms.iter().flat_map(with).collect();
        }
        if let Some(fraction) = self.fraction {
            let names: Vec<&str> =
                written.iter().filter(|of| of.factor.range.is_none()).map(|of| of.factor.name.as_str()).collect();
            let second = |arm: &Arm, name: &str| {
                let at = names.iter().position(|own| *own == name);
                at.is_some_and(|at| arm.levels.get(first + at) == Some(&1))
            };
            arms.retain(|arm| fraction.has(&|name| second(arm, name)));
        }
        if let Some(most) = self.points {
            let width = most.to_string().len();
            let ranges: Vec<&Written> = written.iter().filter(|written| written.factor.range.is_some()).collect();
            let with = |arm: &Arm| {
                let at_point = |point: usize| {
                    let set = ranges.iter().filter_map(|of| of.levels.get(point)).flat_map(|(_, set)| set.clone());
                    arm.with(format!("point-{:0width$}", point + 1), &set.collect::<Vec<_>>())
                };
                (0..drawn).map(at_point).collect::<Vec<_>>()
            };
            arms = arms.iter().flat_map(with).collect();
            // Each arm's levels, in the order in which the factors are written.
            for (at, arm) in arms.iter_mut().enumerate() {
                let mut listed = arm.levels.split_off(first).into_iter();
                let level = |of: &Written| if of.factor.range.is_some() { Some(at % drawn) } else { listed.next() };
                arm.levels.extend(written.iter().filter_map(level));
            }
        }
        if self.named.is_none() && written.is_empty() {
            arms.iter_mut().for_each(|arm| arm.name = "base".into());
        }
        factors.extend(written.into_iter().map(|written| written.factor));
        (factors, arms)
    }
}

impl Arm {
    /// Returns the arm with another part of its name, and further settings.
    fn with(&self, part: String, set: &[(String, crate::tree::Node)]) -> Arm {
        let mut arm = self.clone();
        let comma = if arm.name.is_empty() { "" } else { "," };
        arm.name.push_str(&format!("{comma}{part}"));
        arm.set.extend(set.iter().cloned());
        arm
    }
}
