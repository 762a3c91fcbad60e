//! No-regret learners: rules that do about as well, over many rounds, as the best fixed choice in hindsight, whatever the others do.
//!
//! A [`Learner`] sees the loss of every move after each round ([`Ftrl`], of which Hedge is one; [`RegretMatching`];
//! [`InternalRegretMatching`]). [`Ucb1`] sees only the reward of what it chose. [`Regret`] measures regret, [`curve`] and
//! [`bernoulli_curve`] give it beside its bound, and [`meet`] lets learners play a game in normal form.
//!
//! Losses and rewards lie in [0, 1]; all bounds are for this scale.
//!
//! ```
//! use polity_games::learn::{Regret, Learner, hedge, hedge_bound, Step};
//!
//! // Two experts who take turns at being wrong.
//! let rounds = 1_000;
//! let mut learner = hedge(2, Step::hedge(2, rounds));
//! let mut regret = Regret::new(2);
//! for round in 0..rounds {
//!     let losses = if round % 2 == 0 { [1.0, 0.0] } else { [0.0, 1.0] };
//!     regret.add(learner.probabilities(), &losses);
//!     learner.update(&losses);
//! }
//! assert!(regret.external() <= hedge_bound(2, rounds));
//! ```

mod bandits;
mod ftrl;
mod matching;
mod play;
mod regret;
#[cfg(test)]
mod tests;

pub use bandits::{Ucb1, bernoulli_curve, ucb1_bound};
pub(crate) use ftrl::project;
pub use ftrl::{Ftrl, Regulariser, Step, euclidean_bound, hedge, hedge_anytime_bound, hedge_bound, hedge_step_bound};
pub(crate) use matching::match_regrets;
pub use matching::{InternalRegretMatching, RegretMatching, internal_bound, matching_bound};
pub use play::{Meeting, Play, meet};
pub use regret::{Point, Regret, curve};

use polity_base::rng::Draws;

/// A rule that sees the losses of all moves.
pub trait Learner {
    /// Returns the probability of each move in the next round.
    fn probabilities(&self) -> &[f64];

    /// Learns the loss of each move in the round that was played. Losses lie in [0, 1]; missing ones count as 0.
    fn update(&mut self, losses: &[f64]);

    /// Draws the next round's move.
    fn choose(&self, draws: &mut Draws) -> usize {
        draws.weighted(self.probabilities()).unwrap_or_default()
    }
}
