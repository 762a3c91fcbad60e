//! How far people are parted: measures that take a pass over all ties, or over all feeds, and are taken only where a scenario asks for them.

use super::store::Store;
use super::{COLUMNS, Platform};
use polity_kernel::sight::Rows;
use polity_kernel::topology::Topology;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

/// A measure of polarisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Modularity of who follows whom, with people parted by the sign of their stance (Newman, 2006; directed: Leicht and Newman, 2008).
    Modularity,
    /// Correlation between people's stances and the mean stance of whom they follow (Cinelli et al., 2021).
    EchoChambers,
    /// Share of the posts in the round's feeds that stand on the reader's side (one less the cross-cutting share of Bakshy et al., 2015).
    Exposure,
}

impl Measure {
    /// The name of the scalar that it is recorded as, and what that is.
    pub fn named(self) -> (&'static str, &'static str) {
        match self {
            Measure::Modularity => (
                "modularity",
                "modularity of who follows whom, with people parted by the sign of their stance; below 1, 0: as by chance, or nobody follows anybody",
            ),
            Measure::EchoChambers => (
                "echo-chambers",
                "correlation between people's stances and the mean stance of whom they follow, -1 to 1; 0 where either is the same for all",
            ),
            Measure::Exposure => (
                "exposure",
                "share of the posts shown in the round's feeds that stand on the reader's side, of those that stand on either; 0 where there are none",
            ),
        }
    }
}

/// Posts in feeds that stand on their reader's side, and on either side. Whole numbers: no order of readers can reach their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposed {
    pub own: u64,
    pub all: u64,
}

impl Exposed {
    /// The share of one's own side.
    pub fn share(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.own as f64 / self.all as f64 }
    }

    fn with(self, other: Self) -> Self {
        Exposed { own: self.own + other.own, all: self.all + other.all }
    }
}

/// Readers whose feeds are one thread's work.
const PART: u32 = 256;

/// The camp of a stance: against, neither, for.
fn camp(stance: f32) -> usize {
    match stance {
        stance if stance < 0.0 => 0,
        stance if stance > 0.0 => 2,
        _ => 1,
    }
}

/// Modularity of who follows whom with people parted by the sign of their stance: over camps c, the share of ties that begin and end in c less
/// the product of the shares that begin there and that end there (Leicht and Newman, 2008, equation 3, summed over camps; where all ties are
/// mutual it is that of Newman, 2006). 0 where there are no ties.
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

/// Pearson's correlation, over all who follow somebody, of their own stance and the mean stance of whom they follow: how far leaning and
/// neighbourhood agree in the joint distribution of Cinelli et al. (2021). 0 where one of the two is the same for all.
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
    // Found on all threads, summed up in the order of people.
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

impl Platform {
    /// What the feeds of the round that now begins expose their readers to. Worlds are told of no feed that was read, so each is made a second
    /// time; where people act one after the other it is what they would see at the round's beginning.
    pub(super) fn exposed(&self, store: &Store) -> Exposed {
        let n = store.people.stance.len() as u32;
        let part = |part: u32| {
            let (mut values, mut texts) = (Vec::new(), Vec::new());
            let mut exposed = Exposed::default();
            for who in (part * PART..n.min((part + 1) * PART)).filter(|who| self.is_active(store, *who)) {
                values.clear();
                texts.clear();
                let graph = self.graph.neighbours(who);
                self.feeds().write(store, who, graph, &mut Rows::new(&mut values, &mut texts));
                let own = camp(store.people.stance[who as usize]);
                for row in values.chunks_exact(COLUMNS.len()) {
                    let post = camp(row[super::OF] as f32);
                    let sides = own != 1 && post != 1;
                    exposed.all += u64::from(sides);
                    exposed.own += u64::from(sides && own == post);
                }
            }
            exposed
        };
        (0..n.div_ceil(PART)).into_par_iter().map(part).reduce(Exposed::default, Exposed::with)
    }
}
