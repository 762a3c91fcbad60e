//! Where the agents of a small network are drawn: tied ones near each other, all apart (Fruchterman and Reingold 1991).
//!
//! Only sums, products and square roots are taken, which are the same on every platform.

/// Steps of the layout.
const STEPS: usize = 150;

/// Places of `agents` in a unit square, given their ties. The work grows with the square of their number.
pub fn layout(agents: usize, ties: &[(usize, usize)]) -> Vec<(f64, f64)> {
    // Evenly spread first places: multiples of two irrational numbers, without their whole parts.
    let first = |i: usize| ((i as f64 * 0.754_877_666_246_693).fract(), (i as f64 * 0.569_840_290_998_053).fract());
    let mut places: Vec<(f64, f64)> = (0..agents).map(first).collect();
    let ideal = (1.0 / agents.max(1) as f64).sqrt();
    for step in 0..STEPS {
        let mut moves = pushes(&places, ideal);
        for (a, b) in ties.iter().filter(|(a, b)| a != b && *a < agents && *b < agents) {
            let (dx, dy) = (places[*a].0 - places[*b].0, places[*a].1 - places[*b].1);
            let pull = (dx * dx + dy * dy).sqrt() / ideal;
            moves[*a] = (moves[*a].0 - dx * pull, moves[*a].1 - dy * pull);
            moves[*b] = (moves[*b].0 + dx * pull, moves[*b].1 + dy * pull);
        }
        let most = 0.1 * (1.0 - step as f64 / STEPS as f64);
        for (place, (dx, dy)) in places.iter_mut().zip(moves) {
            // What is not tied to the rest stays near it.
            let (dx, dy) = (dx + (0.5 - place.0) * ideal, dy + (0.5 - place.1) * ideal);
            let length = (dx * dx + dy * dy).sqrt().max(1e-9);
            let part = length.min(most) / length;
            *place = (place.0 + dx * part, place.1 + dy * part);
        }
    }
    filled(places)
}

/// How far each is pushed away by all others.
fn pushes(places: &[(f64, f64)], ideal: f64) -> Vec<(f64, f64)> {
    let mut moves = vec![(0.0, 0.0); places.len()];
    for a in 0..places.len() {
        for b in 0..a {
            let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
            let push = ideal * ideal / (dx * dx + dy * dy).max(1e-9);
            moves[a] = (moves[a].0 + dx * push, moves[a].1 + dy * push);
            moves[b] = (moves[b].0 - dx * push, moves[b].1 - dy * push);
        }
    }
    moves
}

/// The same places, stretched to the unit square.
fn filled(mut places: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let (xs, ys) = (places.iter().map(|p| p.0), places.iter().map(|p| p.1));
    let (Some((left, right)), Some((top, bottom))) = (super::scale::extent(xs), super::scale::extent(ys)) else {
        return places;
    };
    let span = (right - left).max(bottom - top).max(1e-9);
    let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
    for place in &mut places {
        *place = ((place.0 - middle.0) / span + 0.5, (place.1 - middle.1) / span + 0.5);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: (f64, f64), b: (f64, f64)) -> f64 {
        ((a.0 - b.0).powi(2) + (a.1 - b.1).powi(2)).sqrt()
    }

    #[test]
    fn the_tied_are_near_and_the_places_are_the_same_every_time() {
        // Two groups of five, each all tied, and one tie between them.
        let mut ties: Vec<(usize, usize)> = Vec::new();
        for group in [0, 5] {
            (0..5).for_each(|a| (0..a).for_each(|b| ties.push((group + a, group + b))));
        }
        ties.push((0, 5));
        let places = layout(10, &ties);
        assert_eq!(places, layout(10, &ties));
        assert!(places.iter().all(|(x, y)| (-1e-9..=1.0 + 1e-9).contains(x) && (-1e-9..=1.0 + 1e-9).contains(y)));
        let mean = |pairs: &[(usize, usize)]| {
            pairs.iter().map(|(a, b)| distance(places[*a], places[*b])).sum::<f64>() / pairs.len() as f64
        };
        let across: Vec<(usize, usize)> = (1..5).flat_map(|a| (6..10).map(move |b| (a, b))).collect();
        assert!(mean(&ties[..20]) < 0.6 * mean(&across), "{places:?}");
    }

    #[test]
    fn few_agents_and_odd_ties_are_no_problem() {
        assert!(layout(0, &[(0, 1)]).is_empty());
        assert_eq!(layout(1, &[(0, 0)]), [(0.5, 0.5)]);
        assert!(layout(3, &[(0, 9)]).iter().all(|(x, y)| x.is_finite() && y.is_finite()));
    }
}
