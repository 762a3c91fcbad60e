//! Measures of polarisation. They take a pass over all ties or all feeds, and are computed only if a scenario asks for them.

use super::store::Store;
use polity_kernel::topology::Topology;
use rayon::prelude::*;

/// Number of readers whose feeds one thread processes at a time.
pub(super) const PART: u32 = 256;

/// Returns the camp of a stance: against, neither, for.
pub(super) fn camp(stance: f32) -> usize {
    match stance {
        stance if stance < 0.0 => 0,
        stance if stance > 0.0 => 2,
        _ => 1,
    }
}

/// Returns the modularity of the follow graph, with people grouped by the sign of their stance: over camps c, the share of ties that
/// begin and end in c minus the product of the shares that begin there and that end there (Leicht and Newman, 2008, equation 3, summed
/// over camps; if all ties are mutual it is that of Newman, 2006). 0 without ties.
pub fn modularity(store: &Store, graph: &Topology) -> f64 {
    /// Ties within each camp, from each and to each.
    type Ties = [[u64; 3]; 3];
    let add = |mut all: Ties, more: Ties| {
        all.iter_mut().flatten().zip(more.as_flattened()).for_each(|(all, more)| *all += more);
        all
    };
    let n = store.people.stance.len() as u32;
    let of = |who: u32| store.people.stance.get(who as usize).map_or(1, |stance| camp(*stance));
    let ties = |who: u32| {
        let (own, mut ties) = (of(who), Ties::default());
        store.people.follows(who, graph.neighbours(who)).map(of).for_each(|other| {
            ties[0][own] += u64::from(own == other);
            ties[1][own] += 1;
            ties[2][other] += 1;
        });
        ties
    };
    // Whole numbers: their sum is the same in any order.
    let [within, from, to] = (0..n).into_par_iter().map(ties).reduce(Ties::default, add);
    let all = from.iter().sum::<u64>() as f64;
    if all == 0.0 {
        return 0.0;
    }
    (0..3).map(|camp| within[camp] as f64 / all - (from[camp] as f64 / all) * (to[camp] as f64 / all)).sum()
}

/// Returns Pearson's correlation, over all who follow somebody, between their own stance and the mean stance of their followees, as in
/// the joint distribution of Cinelli et al. (2021). 0 if one of the two is constant.
pub fn echo_chambers(store: &Store, graph: &Topology) -> f64 {
    let stance = |who: u32| store.people.stance.get(who as usize).map_or(0.0, |stance| f64::from(*stance));
    let pair = |who: u32| {
        let (mut sum, mut n) = (0.0, 0u32);
        store
            .people
            .follows(who, graph.neighbours(who))
            .for_each(|followed| (sum, n) = (sum + stance(followed), n + 1));
        (n > 0).then(|| (stance(who), sum / f64::from(n)))
    };
    // Computed on all threads, summed in the order of people.
    let all: Vec<Option<(f64, f64)>> = (0..store.people.stance.len() as u32).into_par_iter().map(pair).collect();
    let pairs = || all.iter().flatten();
    let n = pairs().count().max(1) as f64;
    let (x, y) = pairs().fold((0.0, 0.0), |(x, y), pair| (x + pair.0, y + pair.1));
    let (x, y) = (x / n, y / n);
    let (both, xx, yy) = pairs().fold((0.0, 0.0, 0.0), |(both, xx, yy), pair| {
        let (a, b) = (pair.0 - x, pair.1 - y);
        (both + a * b, xx + a * a, yy + b * b)
    });
    let spread = (xx * yy).sqrt();
    if spread > 0.0 { (both / spread).clamp(-1.0, 1.0) } else { 0.0 }
}
