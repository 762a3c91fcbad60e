//! Strong Stackelberg equilibria of games of two players: the leader commits to a mixed strategy, the follower sees it and replies.

use crate::equilibrium::{Equilibrium, Play, normalised, two_players};
use crate::normal::Game;
use crate::simplex::{self, MOST, Trouble};
use serde::{Deserialize, Serialize};

/// A leader's best commitment and the follower's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Commitment {
    /// The leader, by index.
    pub leader: usize,
    /// The follower's pure reply, by index.
    pub reply: usize,
    /// Both strategies and payoffs. The regret is the follower's only: the leader is bound by its commitment.
    #[serde(flatten)]
    pub equilibrium: Equilibrium,
}

/// Finds the mixed strategy to which player `leader` (0 or 1) best commits, if the follower plays a best reply and breaks ties in
/// the leader's favour: one linear program for each strategy of the follower (Conitzer and Sandholm 2006).
///
/// # Errors
/// The game does not have two players, or no such leader; a linear program would have more than 1,000,000 numbers; or rounding kept
/// the solver from ending.
///
/// ```
/// use polity_games::{library, stackelberg};
///
/// // The leader of the inspection game gains by commitment over the mixed Nash equilibrium.
/// let game = library::named("inspection").unwrap();
/// let best = stackelberg::strong(&game, 0).unwrap();
/// assert_eq!(best.reply, 0);
/// ```
pub fn strong(game: &Game, leader: usize) -> Result<Commitment, String> {
    two_players(game, "a Stackelberg equilibrium")?;
    if leader > 1 {
        return Err(format!("there is no player {}; the game has 2", leader + 1));
    }
    let sizes = game.sizes();
    let (own, others) = (sizes[leader], sizes[1 - leader]);
    let numbers = simplex::numbers(own, others);
    if numbers > MOST {
        return Err(format!(
            "{own} by {others} strategies need a linear program of {numbers} numbers; at most {MOST} are allowed"
        ));
    }
    let scaled = |player: usize, i: usize, j: usize| {
        let (low, high) = game.range(player);
        let payoff = game.payoff(&if leader == 0 { [i, j] } else { [j, i] }, player);
        if high > low { (payoff - low) / (high - low) } else { 0.0 }
    };
    let mut best: Option<Commitment> = None;
    for reply in 0..others {
        let objective: Vec<f64> = (0..own).map(|i| scaled(leader, i, reply)).collect();
        let gain =
            |other: usize| (0..own).map(|i| scaled(1 - leader, i, other) - scaled(1 - leader, i, reply)).collect();
        let rows: Vec<Vec<f64>> = (0..others).filter(|other| *other != reply).map(gain).collect();
        let mixture = match simplex::mixture(&objective, &rows) {
            Ok(mixture) => normalised(mixture),
            // No commitment makes this reply a best one.
            Err(Trouble::Infeasible) => continue,
            Err(trouble) => return Err(format!("a linear program of the commitment has no solution: {trouble:?}")),
        };
        let mut pure = vec![0.0; others];
        pure[reply] = 1.0;
        let strategies = if leader == 0 { vec![mixture, pure] } else { vec![pure, mixture] };
        let (payoffs, gains) = game.payoffs_and_gains(&strategies);
        let equilibrium = Equilibrium { play: Play::Strategies(strategies), payoffs, regret: gains[1 - leader] };
        if best.as_ref().is_none_or(|best| equilibrium.payoffs[leader] > best.equilibrium.payoffs[leader] + 1e-12) {
            best = Some(Commitment { leader, reply, equilibrium });
        }
    }
    best.ok_or_else(|| "no reply of the follower is a best one; the payoffs are too close to each other".into())
}
