//! How far a flock is from its shape.

/// The outline of a square, with about as many places as there are agents: its side is a quarter of them, plus one.
pub fn ring(agents: u32) -> Vec<(i32, i32)> {
    let last = (agents / 4) as i32;
    let border = |(x, y): &(i32, i32)| *x == 0 || *y == 0 || *x == last || *y == last;
    (0..=last).flat_map(|y| (0..=last).map(move |x| (x, y))).filter(border).collect()
}

/// The least total way (rows plus columns) from places to a shape: over all shifts of the shape, and over all ways to give each place of
/// the smaller of the two one of the larger (an earth mover's distance).
pub fn distance(places: &[(i32, i32)], shape: &[(i32, i32)]) -> u32 {
    let mut shifts: Vec<(i32, i32)> =
        places.iter().flat_map(|(x, y)| shape.iter().map(move |(u, v)| (x - u, y - v))).collect();
    shifts.sort_unstable();
    shifts.dedup();
    let cost = |(dx, dy): (i32, i32)| {
        let way = |(x, y): &(i32, i32), (u, v): &(i32, i32)| i64::from((x - u - dx).abs() + (y - v - dy).abs());
        let (few, many, turned) = match places.len() <= shape.len() {
            true => (places, shape, false),
            false => (shape, places, true),
        };
        let ways: Vec<Vec<i64>> = few
            .iter()
            .map(|one| many.iter().map(|other| if turned { way(other, one) } else { way(one, other) }).collect())
            .collect();
        assign(&ways)
    };
    shifts.into_iter().map(cost).min().unwrap_or(0) as u32
}

/// The least total cost of giving each row a column of its own (Kuhn 1955, with shortest augmenting paths). There are at least as many columns
/// as rows.
fn assign(costs: &[Vec<i64>]) -> i64 {
    let (rows, columns) = (costs.len(), costs.first().map_or(0, Vec::len));
    let (mut row_price, mut column_price) = (vec![0; rows + 1], vec![0; columns + 1]);
    // The row that has each column; row and column 0 are none.
    let mut holder = vec![0; columns + 1];
    for row in 1..=rows {
        holder[0] = row;
        let mut column = 0;
        let (mut least, mut done) = (vec![i64::MAX; columns + 1], vec![false; columns + 1]);
        let mut before = vec![0; columns + 1];
        while holder[column] != 0 {
            done[column] = true;
            let of = holder[column];
            let (mut next, mut step) = (0, i64::MAX);
            for other in 1..=columns {
                if done[other] {
                    continue;
                }
                let reduced = costs[of - 1][other - 1] - row_price[of] - column_price[other];
                if reduced < least[other] {
                    (least[other], before[other]) = (reduced, column);
                }
                if least[other] < step {
                    (step, next) = (least[other], other);
                }
            }
            for other in 0..=columns {
                if done[other] {
                    row_price[holder[other]] += step;
                    column_price[other] -= step;
                } else {
                    least[other] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            holder[column] = holder[before[column]];
            column = before[column];
        }
    }
    (1..=columns).filter(|column| holder[*column] != 0).map(|column| costs[holder[column] - 1][column - 1]).sum()
}
