//! Subgame-perfect equilibrium of games with perfect information, by backward induction (Zermelo 1913; Selten 1965).

use crate::extensive::{Node, Profile, Tree};
use serde::Serialize;

/// Payoffs nearer than this, times the largest payoff that they are made of, are a tie.
const TIE: f64 = 1e-12;

/// Moves among which a player is indifferent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tie {
    /// The information set: a place in [`Tree::sets`].
    pub set: usize,
    /// The moves that are best, given what is played below; the first one is played.
    pub moves: Vec<usize>,
}

/// A subgame-perfect equilibrium in pure strategies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Solution {
    /// The move at each information set: a place in its moves.
    pub moves: Vec<usize>,
    /// The same as probabilities.
    pub profile: Profile,
    /// Each player's expected payoff.
    pub payoffs: Vec<f64>,
    /// All ties. The first move of a tie is played; each other one belongs to another equilibrium.
    pub ties: Vec<Tie>,
}

impl Solution {
    /// Returns whether this is the only subgame-perfect equilibrium: there are no ties.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.ties.is_empty()
    }
}

/// Finds a subgame-perfect equilibrium by backward induction. Among moves that are equally good, the first one is played, and the tie
/// is listed.
///
/// ```
/// use polity_games::{backward::subgame_perfect, extensive::entry};
///
/// let solution = subgame_perfect(&entry())?;
/// // The entrant enters and the incumbent accommodates: the threat to fight is empty.
/// assert_eq!((solution.moves.as_slice(), solution.payoffs.as_slice()), (&[1, 1][..], &[1.0, 1.0][..]));
/// assert!(solution.is_unique());
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// A game of imperfect information: names an information set of several nodes.
pub fn subgame_perfect(tree: &Tree) -> Result<Solution, String> {
    if let Some(set) = tree.sets().iter().position(|set| set.nodes().count() > 1) {
        return Err(format!(
            "backward induction needs perfect information, but {} has {} nodes that the player cannot tell apart; use counterfactual \
             regret minimisation (cfr)",
            tree.describe(set),
            tree.sets()[set].nodes().count()
        ));
    }
    let players = tree.players.len();
    // The largest payoff that each node's values are made of: rounding is in proportion to it.
    let mut scales = vec![0.0f64; tree.len()];
    let mut values = vec![0.0; tree.len() * players];
    let mut moves = vec![0; tree.sets().len()];
    let mut ties = Vec::new();
    // Children come after their parents.
    for at in (0..tree.len()).rev() {
        let (own, below) = values[at * players..].split_at_mut(players);
        let of = |child: u32| {
            let first = (child as usize - at - 1) * players;
            &below[first..first + players]
        };
        match tree.node(at) {
            Node::Terminal { payoffs } => {
                own.copy_from_slice(payoffs);
                scales[at] = payoffs.iter().fold(0.0, |most, payoff| most.max(payoff.abs()));
            }
            Node::Chance { probabilities, children, .. } => {
                scales[at] = children.iter().map(|child| scales[*child as usize]).fold(0.0, f64::max);
                for (child, p) in children.iter().zip(probabilities) {
                    own.iter_mut().zip(of(*child)).for_each(|(sum, value)| *sum += p * value);
                }
            }
            Node::Decision { set, children } => {
                let player = tree.sets()[set].player;
                let gain = |i: usize| of(children[i])[player];
                let scale = |i: usize| scales[children[i] as usize];
                let all = 0..children.len();
                let best = all.clone().fold(0, |best, i| if gain(i) > gain(best) { i } else { best });
                let near = |i: &usize| gain(best) - gain(*i) <= TIE * scale(*i).max(scale(best));
                let good: Vec<usize> = all.filter(near).collect();
                scales[at] = scale(good[0]);
                moves[set] = good[0];
                own.copy_from_slice(of(children[good[0]]));
                if good.len() > 1 {
                    ties.push(Tie { set, moves: good });
                }
            }
        }
    }
    ties.sort_by_key(|tie| tie.set);
    let mut probabilities = vec![0.0; tree.moves()];
    moves.iter().enumerate().for_each(|(set, chosen)| probabilities[tree.offset(set) + chosen] = 1.0);
    let profile = Profile::raw(tree, probabilities);
    Ok(Solution { profile, payoffs: values[..players].to_vec(), moves, ties })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::subgame_perfect;
    use crate::best_response::exploitability;
    use crate::extensive::library::{centipede, ultimatum};
    use crate::extensive::{Builder, Profile, kuhn};

    /// Taking at once is the only equilibrium at any length (Rosenthal 1981).
    #[test]
    fn the_centipede_is_taken_at_once() {
        for moves in [1, 2, 6, 99] {
            let solution = subgame_perfect(&centipede(moves)).unwrap();
            assert!(solution.moves.iter().all(|chosen| *chosen == 0) && solution.is_unique(), "{moves}");
            assert_eq!(solution.payoffs, [4.0, 1.0]);
        }
    }

    /// The responder is indifferent at an offer of 0 only. Accepting leads to an offer of 0, rejecting to an offer of 1.
    #[test]
    fn the_ultimatum_has_two_equilibria() {
        let tree = ultimatum(10);
        let solution = subgame_perfect(&tree).unwrap();
        assert_eq!((solution.moves[0], solution.payoffs.as_slice()), (0, &[10.0, 0.0][..]));
        assert!(!solution.is_unique());
        let indifferent = tree.set(1, "offer-0").unwrap();
        let ties: Vec<_> = solution.ties.iter().map(|tie| (tie.set, tie.moves.as_slice())).collect();
        assert_eq!(ties, [(indifferent, &[0, 1][..])]);
        // The other one: reject 0, offer 1. No one gains by deviating from either.
        let mut other: Vec<Vec<f64>> = (0..tree.sets().len()).map(|set| solution.profile.at(set).to_vec()).collect();
        other[indifferent] = vec![0.0, 1.0];
        other[0] = (0..11).map(|offer| f64::from(u8::from(offer == 1))).collect();
        for profile in [solution.profile.clone(), Profile::new(&tree, &other).unwrap()] {
            assert_eq!(exploitability(&tree, &profile).unwrap().nash_conv, 0.0);
        }
    }

    #[test]
    fn chance_is_averaged_and_each_of_three_players_chooses() {
        let mut builder = Builder::new("three", &["A", "B", "C"]);
        builder.decision(0, "a", &["safe", "risky"]);
        builder.terminal(&[1.0, 0.0, 0.0]);
        builder.chance(&[("b", 0.25), ("c", 0.75)]);
        for (player, name) in [(1, "b"), (2, "c")] {
            builder.decision(player, name, &["x", "y"]);
            builder.terminal(&[0.0, 2.0, 1.0]);
            builder.terminal(&[8.0, 1.0, 2.0]);
        }
        let solution = subgame_perfect(&builder.finish().unwrap()).unwrap();
        // B takes x, C takes y: the risk is worth 6 to A.
        assert_eq!((solution.moves.as_slice(), solution.payoffs.as_slice()), (&[1, 0, 1][..], &[6.0, 1.25, 1.75][..]));
    }

    #[test]
    fn hidden_information_is_refused_by_name() {
        let error = subgame_perfect(&kuhn()).unwrap_err();
        assert!(error.contains("information set `J` of player-1 has 2 nodes"), "{error}");
    }
}
