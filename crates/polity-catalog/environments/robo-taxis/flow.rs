//! Which empty vehicles go where, if it is known how many regions have too many and how many need more.

/// From which region, to which, and how many.
pub(super) type Trip = (usize, usize, u32);

/// Returns trips that take all that is too much to where it is needed, at the least total cost. Both have the same sum.
///
/// This is a minimum-cost flow, found by successive shortest paths: each path begins in a region that still has too many and ends in one that
/// still needs more, and may take trips back on its way. Of equally short paths the first is taken, in order of regions.
pub(super) fn cheapest(surplus: &[u32], need: &[u32], cost: impl Fn(usize, usize) -> u32) -> Vec<Trip> {
    let n = surplus.len();
    let (mut surplus, mut need) = (surplus.to_vec(), need.to_vec());
    let mut flow = vec![vec![0; n]; n];
    loop {
        // The cost of the shortest path to each region as an origin and as a destination, and the region before it.
        let mut origins: Vec<Option<i64>> = surplus.iter().map(|left| (*left > 0).then_some(0)).collect();
        let (mut destinations, mut before, mut back) = (vec![None; n], vec![0; n], vec![None; n]);
        let mut changes = true;
        while changes {
            changes = false;
            for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
                let by = i64::from(cost(from, to));
                if let Some(path) = origins[from].map(|path| path + by)
                    && destinations[to].is_none_or(|known| path < known)
                {
                    (destinations[to], before[to], changes) = (Some(path), from, true);
                }
                if let Some(path) = destinations[to].map(|path| path - by)
                    && flow[from][to] > 0
                    && origins[from].is_none_or(|known| path < known)
                {
                    (origins[from], back[from], changes) = (Some(path), Some(to), true);
                }
            }
        }
        let reached = (0..n).filter(|to| need[*to] > 0).filter_map(|to| Some((destinations[to]?, to))).min();
        let Some((_, end)) = reached else { break };
        let mut path = vec![(before[end], end)];
        let (mut first, mut amount) = (before[end], need[end]);
        while let Some(to) = back[first] {
            amount = amount.min(flow[first][to]);
            first = before[to];
            path.push((first, to));
        }
        amount = amount.min(surplus[first]);
        (surplus[first], need[end]) = (surplus[first] - amount, need[end] - amount);
        path.iter().for_each(|(from, to)| flow[*from][*to] += amount);
        path.windows(2).for_each(|pair| flow[pair[0].0][pair[1].1] -= amount);
    }
    let trips =
        flow.iter().enumerate().flat_map(|(from, row)| row.iter().enumerate().map(move |(to, n)| (from, to, *n)));
    trips.filter(|(.., n)| *n > 0).collect()
}

/// Returns such trips without regard to costs: the first region sends to the first that needs more.
pub(super) fn in_order(surplus: &[u32], need: &[u32]) -> Vec<Trip> {
    let mut need = need.to_vec();
    let mut trips = Vec::new();
    for (from, surplus) in surplus.iter().enumerate() {
        let mut left = *surplus;
        for (to, need) in need.iter_mut().enumerate() {
            let n = left.min(*need);
            (left, *need) = (left - n, *need - n);
            if n > 0 {
                trips.push((from, to, n));
            }
        }
    }
    trips
}
