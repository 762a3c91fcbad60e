//! Strong Stackelberg equilibria of games of two players: the leader commits to a mixed strategy, the follower sees it and replies.

use crate::equilibrium::{Equilibrium, Play, normalised, scaled, transposed, two_players};
use crate::normal::Game;
use crate::simplex::{self, Trouble};
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
/// The game does not have two players, or no such leader; or rounding kept the solver from ending.
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
    // By the follower's strategies, then by the leader's.
    let by_reply = |player: usize| {
        let matrix = scaled(game, player);
        if leader == 0 { transposed(&matrix) } else { matrix }
    };
    let (objectives, worths) = (by_reply(leader), by_reply(1 - leader));
    let mut best: Option<Commitment> = None;
    for (reply, objective) in objectives.iter().enumerate() {
        let gain = |other: &Vec<f64>| other.iter().zip(&worths[reply]).map(|(other, own)| other - own).collect();
        let others = worths.iter().enumerate().filter(|(other, _)| *other != reply);
        let rows: Vec<Vec<f64>> = others.map(|(_, other)| gain(other)).collect();
        let mixture = match simplex::mixture(objective, &rows) {
            Ok(mixture) => normalised(mixture),
            // No commitment makes this reply a best one.
            Err(Trouble::Infeasible) => continue,
            Err(trouble) => return Err(trouble.to_string()),
        };
        let mut pure = vec![0.0; worths.len()];
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
