//! The hypervolume of the points of groups of agents. See README.md.

use polity_kernel::Invalid;
use polity_kernel::metric::{Metric, Source};
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// The most quantities of a point. The time grows with the number of points to this power.
const MOST: usize = 4;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.metric::<Hypervolume>(files);
}

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The reference point, with one number for each quantity. Only what lies above all of them counts.
    pub reference: Vec<f64>,
}

/// The hypervolume.
pub struct Hypervolume {
    reference: Vec<f64>,
    groups: usize,
}

impl Metric for Hypervolume {
    const NAME: &'static str = "hypervolume";
    const SUMMARY: &'static str = "Hypervolume of the mean values of groups, by several objectives";
    const JOINT: bool = true;
    type Params = Params;
    /// By group: the sum of each quantity, and the number of agents.
    type Fold = Vec<(Vec<f64>, u64)>;

    fn open(Params { reference }: Params, source: &Source<'_>) -> Result<Self, Invalid> {
        let quantities = 1 + source.others.len();
        Invalid::unless((2..=MOST).contains(&quantities), "of", format!("must be 2 to {MOST} quantities"))?;
        let message = format!("must be {quantities} finite numbers, one for each quantity");
        let fits = reference.len() == quantities && reference.iter().all(|number| number.is_finite());
        Invalid::unless(fits, "reference", message)?;
        let message = "name what groups agents, such as `cohort`; the mean of each group is a point";
        Invalid::unless(!source.groups.is_empty(), "by", message)?;
        Ok(Hypervolume { reference, groups: source.groups.len() })
    }

    fn fold(&self, rows: &[f64]) -> Self::Fold {
        let quantities = self.reference.len();
        let mut folded = vec![(vec![0.0; quantities], 0); self.groups];
        for row in rows.chunks_exact(quantities + 1) {
            if let Some((sums, n)) = folded.get_mut(row[quantities] as usize) {
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                *n += 1;
            }
        }
        folded
    }

    fn merge(&self, mut left: Self::Fold, right: Self::Fold) -> Self::Fold {
        for ((sums, n), (more, others)) in left.iter_mut().zip(right) {
            sums.iter_mut().zip(more).for_each(|(sum, value)| *sum += value);
            *n += others;
        }
        left
    }

    fn finish(&self, fold: Self::Fold, write: &mut dyn FnMut(&str, f64)) {
        let above = |(sums, n): &(Vec<f64>, u64)| -> Vec<f64> {
            sums.iter().zip(&self.reference).map(|(sum, reference)| sum / *n as f64 - reference).collect()
        };
        let points: Vec<Vec<f64>> = fold.iter().filter(|(_, n)| *n > 0).map(above).collect();
        let points: Vec<&[f64]> =
            points.iter().map(Vec::as_slice).filter(|point| point.iter().all(|number| *number > 0.0)).collect();
        let dominated = |point: &&&[f64]| points.iter().any(|other| dominates(other, point));
        write("", hypervolume(points.clone()));
        write("front", points.iter().filter(|point| !dominated(point)).count() as f64);
    }
}

/// Returns whether a point is nowhere below another one, and somewhere above it.
fn dominates(point: &[f64], other: &[f64]) -> bool {
    point.iter().zip(other).all(|(a, b)| a >= b) && point.iter().zip(other).any(|(a, b)| a > b)
}

/// Returns the volume of the union of all boxes between 0 and a point, all of whose numbers are above 0. It is cut into slices along the last
/// axis: between a point and the next lower one lies what the points from there upwards cover of the other axes.
fn hypervolume(mut points: Vec<&[f64]>) -> f64 {
    let last = |point: &[f64]| point.last().copied().unwrap_or_default();
    points.sort_by(|a, b| last(b).total_cmp(&last(a)));
    if points.first().is_none_or(|point| point.len() == 1) {
        return points.first().map_or(0.0, |point| last(point));
    }
    let mut sum = 0.0;
    for (i, point) in points.iter().enumerate() {
        let height = last(point) - points.get(i + 1).map_or(0.0, |next| last(next));
        if height > 0.0 {
            sum += height * hypervolume(points[..=i].iter().map(|point| &point[..point.len() - 1]).collect());
        }
    }
    sum
}
