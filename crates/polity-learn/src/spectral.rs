//! Spectral clustering: groups of items that are similar to each other.

use crate::linear::leading;
use polity_base::rng::Draws;

/// Rounds of the iteration that finds the eigenvectors.
const ROUNDS: usize = 100;
/// Starts of k-means.
const STARTS: usize = 10;

/// Returns a group, from 0, for each of `n` items with these similarities (a symmetric matrix of numbers that are 0 or more): k-means on the
/// eigenvectors of the `groups` largest eigenvalues of the similarities, normalised by degrees (Shi and Malik 2000; von Luxburg 2007).
#[must_use]
pub fn cluster(similarity: &[f64], n: usize, groups: usize, draws: &mut Draws) -> Vec<usize> {
    let scale: Vec<f64> = similarity
        .chunks(n)
        .map(|row| row.iter().sum::<f64>())
        .map(|degree| if degree > 0.0 { 1.0 / degree.sqrt() } else { 0.0 })
        .collect();
    let normal: Vec<f64> = (0..n * n).map(|place| similarity[place] * scale[place / n] * scale[place % n]).collect();
    let vectors = leading(&normal, n, groups, ROUNDS, draws);
    let points: Vec<f64> =
        (0..n).flat_map(|i| vectors.chunks(n).map(move |v| (i, v)).map(|(i, v)| v[i] * scale[i])).collect();
    k_means(&points, vectors.len() / n.max(1), groups, draws)
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// Returns the nearest centre of a point and the squared distance.
fn nearest(point: &[f64], centres: &[f64], dimensions: usize) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (k, centre) in centres.chunks(dimensions).enumerate() {
        let far = distance(point, centre);
        if far < best.1 {
            best = (k, far);
        }
    }
    best
}

/// Returns a group, from 0, for each point: the best of ten runs of Lloyd's algorithm from centres drawn as in k-means++ (Arthur and
/// Vassilvitskii 2007).
#[must_use]
pub fn k_means(points: &[f64], dimensions: usize, groups: usize, draws: &mut Draws) -> Vec<usize> {
    let mut best = (f64::INFINITY, Vec::new());
    if dimensions == 0 || points.is_empty() {
        return vec![0; points.len()];
    }
    let n = points.len() / dimensions;
    for _ in 0..STARTS {
        let first = draws.below(n as u64) as usize;
        let mut centres = points[first * dimensions..(first + 1) * dimensions].to_vec();
        while centres.len() < groups * dimensions {
            let far: Vec<f64> = points.chunks(dimensions).map(|point| nearest(point, &centres, dimensions).1).collect();
            let next = draws.weighted(&far).unwrap_or_else(|| draws.below(n as u64) as usize);
            centres.extend_from_slice(&points[next * dimensions..(next + 1) * dimensions]);
        }
        let mut labels = vec![usize::MAX; n];
        let mut spread = 0.0;
        for _ in 0..100 {
            spread = 0.0;
            let mut changed = false;
            let mut sums = vec![0.0; groups * dimensions];
            let mut sizes = vec![0.0; groups];
            for (point, label) in points.chunks(dimensions).zip(&mut labels) {
                let (k, far) = nearest(point, &centres, dimensions);
                changed |= *label != k;
                *label = k;
                spread += far;
                sizes[k] += 1.0;
                sums[k * dimensions..(k + 1) * dimensions].iter_mut().zip(point).for_each(|(sum, x)| *sum += x);
            }
            let of_groups = centres.chunks_mut(dimensions.max(1)).zip(sums.chunks(dimensions.max(1))).zip(&sizes);
            for ((centre, sum), size) in of_groups.filter(|(_, size)| **size > 0.0) {
                centre.iter_mut().zip(sum).for_each(|(x, sum)| *x = sum / size);
            }
            if !changed {
                break;
            }
        }
        if spread < best.0 {
            best = (spread, labels);
        }
    }
    best.1
}

/// Returns the share of items whose group is that of their label, under the better of the two ways to match two groups with two labels.
#[must_use]
pub fn two_group_accuracy(groups: &[usize], labels: &[usize]) -> f64 {
    let same = groups.iter().zip(labels).filter(|(group, label)| group == label).count() as f64;
    let share = same / groups.len().max(1) as f64;
    share.max(1.0 - share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_base::rng::Stream;

    #[test]
    fn rings_that_no_line_divides_are_found_apart() {
        // Two rings, one within the other: k-means on the points fails, neighbourhoods do not.
        let mut draws = Draws::new(3, Stream::World, 0, 0);
        let n = 160;
        let labels: Vec<usize> = (0..n).map(|i| i % 2).collect();
        let points: Vec<f64> = labels
            .iter()
            .enumerate()
            .flat_map(|(i, label)| {
                let angle = std::f64::consts::TAU * i as f64 / n as f64;
                let radius = if *label == 0 { 1.0 } else { 3.0 } + 0.1 * draws.normal();
                [radius * libm::cos(angle), radius * libm::sin(angle)]
            })
            .collect();
        let near = |i: usize, j: usize| {
            libm::exp(-distance(&points[i * 2..i * 2 + 2], &points[j * 2..j * 2 + 2]) / (2.0 * 0.5 * 0.5))
        };
        let similarity: Vec<f64> = (0..n * n).map(|place| near(place / n, place % n)).collect();
        let spectral = two_group_accuracy(&cluster(&similarity, n, 2, &mut draws), &labels);
        let plain = two_group_accuracy(&k_means(&points, 2, 2, &mut draws), &labels);
        assert!(spectral > 0.99, "{spectral}");
        assert!(plain < 0.8, "{plain}");
    }

    #[test]
    fn blocks_of_similarity_are_the_groups() {
        let mut draws = Draws::new(4, Stream::World, 0, 0);
        let labels: Vec<usize> = (0..40).map(|i| usize::from(i >= 15)).collect();
        let similarity: Vec<f64> =
            (0..1600).map(|p| if labels[p / 40] == labels[p % 40] { 1.0 } else { 0.05 }).collect();
        assert_eq!(two_group_accuracy(&cluster(&similarity, 40, 2, &mut draws), &labels), 1.0);
    }
}
