//! Ways to choose one answer out of many.

use super::Stand;
use polity_kernel::items::Item;
use std::ops::AddAssign;

/// Groups equal answers with the number of their supporters: each in the words of its first supporter, in order of first support.
#[must_use]
pub fn camps<'a>(item: &Item, stands: &'a [Option<Stand>]) -> Vec<(&'a str, usize)> {
    camps_by(item, stands, |_| 1)
}

/// The same with the weight of their supporters, where each place has one.
fn camps_by<'a, W: AddAssign>(
    item: &Item,
    stands: &'a [Option<Stand>],
    weight: impl Fn(usize) -> W,
) -> Vec<(&'a str, W)> {
    let mut camps: Vec<(&str, W)> = Vec::new();
    for (place, stand) in stands.iter().enumerate() {
        let Some(Stand { answer, .. }) = stand else { continue };
        match camps.iter_mut().find(|(camp, _)| item.same(camp, answer)) {
            Some((_, sum)) => *sum += weight(place),
            None => camps.push((answer, weight(place))),
        }
    }
    camps
}

/// Returns the most common answer; ties go to the one supported first.
#[must_use]
pub fn plurality(item: &Item, stands: &[Option<Stand>]) -> Option<String> {
    // `max_by_key` keeps the last of equals; reversed, that is the first.
    camps(item, stands).into_iter().rev().max_by_key(|(_, size)| *size).map(|(answer, _)| answer.to_owned())
}

/// Returns the answer with the greatest weight, where the vote of each place has a weight; ties go to the one supported first.
#[must_use]
pub fn weighted(item: &Item, stands: &[Option<Stand>], weight: impl Fn(usize) -> f64) -> Option<String> {
    let camps = camps_by(item, stands, weight).into_iter().rev();
    camps.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(answer, _)| answer.to_owned())
}

/// Returns the answer that more than `share` of all members give (counting those without one), if any.
#[must_use]
pub fn consensus(item: &Item, stands: &[Option<Stand>], share: f64) -> Option<String> {
    let needed = share * stands.len() as f64;
    camps(item, stands).into_iter().find(|(_, size)| *size as f64 > needed).map(|(answer, _)| answer.to_owned())
}

/// Returns whether all have an answer and all answers are the same.
#[must_use]
pub fn unanimous(item: &Item, stands: &[Option<Stand>]) -> bool {
    stands.iter().all(Option::is_some) && camps(item, stands).len() == 1
}

/// Returns the candidate with the highest sum of points over all ballots (one number per candidate); ties go to the first. Ballots of
/// another length are ignored.
#[must_use]
pub fn most_points(ballots: &[Vec<f64>], candidates: usize) -> Option<usize> {
    leaders(ballots, candidates).first().copied()
}

/// Returns all candidates with the highest sum of points over all ballots, as [`most_points`] counts them.
#[must_use]
pub fn leaders(ballots: &[Vec<f64>], candidates: usize) -> Vec<usize> {
    let mut sums = vec![0.0; candidates];
    for ballot in ballots.iter().filter(|ballot| ballot.len() == candidates) {
        sums.iter_mut().zip(ballot).for_each(|(sum, points)| *sum += points);
    }
    let most = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (0..candidates).filter(|candidate| sums[*candidate] >= most).collect()
}

/// Converts a ballot of marks to Borda's ranks: the best of n candidates gets n - 1 points, the worst 0; equal marks share theirs.
#[must_use]
pub fn ranks(marks: &[f64]) -> Vec<f64> {
    let below = |x: f64| marks.iter().filter(|y| **y < x).count() as f64;
    let equal = |x: f64| marks.iter().filter(|y| **y == x).count() as f64;
    marks.iter().map(|x| below(*x) + (equal(*x) - 1.0) / 2.0).collect()
}

/// Converts a ballot of marks to approval: one point for every candidate above the middle of the scale.
#[must_use]
pub fn approvals(marks: &[f64], middle: f64) -> Vec<f64> {
    marks.iter().map(|mark| f64::from(u8::from(*mark > middle))).collect()
}

/// Converts a ballot of marks to shares of one point.
#[must_use]
pub fn shares(marks: &[f64]) -> Vec<f64> {
    let sum: f64 = marks.iter().sum();
    marks.iter().map(|mark| if sum > 0.0 { mark / sum } else { 1.0 / marks.len() as f64 }).collect()
}

/// Converts a ballot of marks to one vote for the best; ties go to the first.
#[must_use]
pub fn voice(marks: &[f64]) -> Vec<f64> {
    let best = (0..marks.len()).rev().max_by(|a, b| marks[*a].total_cmp(&marks[*b]));
    (0..marks.len()).map(|i| f64::from(u8::from(Some(i) == best))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stands(answers: &[&str]) -> Vec<Option<Stand>> {
        let stand = |answer: &&str| {
            (!answer.is_empty()).then(|| Stand { by: "x".into(), answer: (*answer).into(), reasons: String::new() })
        };
        answers.iter().map(stand).collect()
    }

    #[test]
    fn weights_outweigh_numbers() {
        let (item, stands) = (Item::default(), stands(&["4", "5", "5", ""]));
        let won = |weights: [f64; 4]| weighted(&item, &stands, |place| weights[place]);
        assert_eq!(won([1.0; 4]).as_deref(), Some("5"));
        assert_eq!(won([3.0, 1.0, 1.0, 9.0]).as_deref(), Some("4"));
        assert_eq!(won([2.0, 1.0, 1.0, 1.0]).as_deref(), Some("4"), "the first of equals");
    }

    #[test]
    fn most_win_and_the_first_of_equals() {
        let item = Item::default();
        assert_eq!(plurality(&item, &stands(&["1", "2", "2.0"])).as_deref(), Some("2"));
        assert_eq!(plurality(&item, &stands(&["b", "A", "a", "B"])).as_deref(), Some("b"));
        assert_eq!(plurality(&item, &stands(&["", ""])), None);
        assert_eq!(
            consensus(&item, &stands(&["1", "1", ""]), 2.0 / 3.0),
            None,
            "two of three are not more than two thirds"
        );
        assert_eq!(consensus(&item, &stands(&["1", "1", "2"]), 0.5).as_deref(), Some("1"));
        assert!(unanimous(&item, &stands(&["1", "1.0"])) && !unanimous(&item, &stands(&["1", ""])));
    }

    #[test]
    fn ballots_of_all_kinds() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0]), [1.5, 0.0, 1.5]);
        assert_eq!(approvals(&[3.0, 2.5, 1.0], 2.0), [1.0, 1.0, 0.0]);
        assert_eq!(shares(&[3.0, 1.0]), [0.75, 0.25]);
        assert_eq!(shares(&[0.0, 0.0]), [0.5, 0.5]);
        assert_eq!(voice(&[2.0, 2.0, 1.0]), [1.0, 0.0, 0.0]);
        assert_eq!(most_points(&[vec![1.0, 2.0], vec![2.0, 1.0], vec![9.0]], 2), Some(0));
        assert_eq!(most_points(&[], 0), None);
    }
}
