//! Best responses in extensive form, and how far a profile is from equilibrium.

use crate::extensive::sequences::Sequences;
use crate::extensive::{Profile, Tree};
use serde::Serialize;

/// A best response to a profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestResponse {
    /// The player's payoff when they play it and the others keep to the profile.
    pub value: f64,
    /// The player's information sets, and the move at each of them. The first of several best moves.
    pub moves: Vec<(usize, usize)>,
}

/// How far a profile is from a Nash equilibrium.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exploitability {
    /// Each player's payoff under the profile.
    pub payoffs: Vec<f64>,
    /// What each player would gain by switching to a best response while the others keep to the profile; 0 or more.
    pub gains: Vec<f64>,
    /// The sum of these gains. 0 in equilibrium.
    pub nash_conv: f64,
    /// The mean of these gains: `nash_conv` divided by the number of players. For two players whose payoffs add up to a constant this is
    /// what the literature and OpenSpiel call exploitability.
    pub exploitability: f64,
}

/// Finds a player's best response to a profile, exactly.
///
/// # Errors
/// A tree of imperfect recall; no such player.
pub fn best_response(tree: &Tree, profile: &Profile, player: usize) -> Result<BestResponse, String> {
    if player >= tree.players.len() {
        return Err(format!("there is no player {player}: the game has {} players, from 0", tree.players.len()));
    }
    let sequences = Sequences::new(tree)?;
    let reply = sequences.reply(player, &sequences.all_reach(profile));
    Ok(BestResponse { value: reply.best, moves: sequences.sides[player].sets.clone().zip(reply.moves).collect() })
}

/// Measures how far a profile is from a Nash equilibrium, by every player's exact best response.
///
/// ```
/// use polity_games::{best_response::exploitability, extensive::{Profile, kuhn}};
///
/// let tree = kuhn();
/// let found = exploitability(&tree, &Profile::uniform(&tree))?;
/// assert!((found.nash_conv - 11.0 / 12.0).abs() < 1e-12);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// A tree of imperfect recall.
pub fn exploitability(tree: &Tree, profile: &Profile) -> Result<Exploitability, String> {
    Ok(measure(&Sequences::new(tree)?, profile))
}

pub(crate) fn measure(sequences: &Sequences, profile: &Profile) -> Exploitability {
    let reach = sequences.all_reach(profile);
    let replies: Vec<_> = (0..sequences.sides.len()).map(|player| sequences.reply(player, &reach)).collect();
    let payoffs: Vec<f64> = replies.iter().map(|reply| reply.payoff).collect();
    // Rounding must not make a gain negative.
    let gains: Vec<f64> = replies.iter().map(|reply| (reply.best - reply.payoff).max(0.0)).collect();
    let nash_conv: f64 = gains.iter().sum();
    Exploitability { exploitability: nash_conv / payoffs.len() as f64, payoffs, gains, nash_conv }
}
