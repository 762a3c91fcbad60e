//! Repeated games between two players with two moves each: strategies, matches, tournaments and evolution.
//!
//! A [`Strategy`] is a state machine. [`play`] runs a match of two of them, [`Tournament`] a round robin. The mean payoffs of a
//! tournament are a game between strategies; [`evolution`] and [`lattice`] let populations evolve in it.
//!
//! The behaviour of the strategies is that of the library Axelrod (Knight et al. 2016, version 4.13), which `scripts/axelrod.sh`
//! compares move by move. The code is our own.
//!
//! ```
//! use polity_games::iterated::{Conditions, Length, Payoffs, play, strategy};
//!
//! let payoffs = Payoffs::PRISONERS_DILEMMA;
//! let [patient, greedy] = ["tit-for-tat", "defector"].map(|name| strategy(name, &[], &payoffs));
//! let conditions = Conditions { length: Length::Turns(5), ..Conditions::default() };
//! let mut moves = [Vec::new(), Vec::new()];
//! let result = play([&patient?, &greedy?], &conditions, 1, 0, Some(&mut moves));
//! assert_eq!(moves.map(|own| own.into_iter().map(|made| made.letter()).collect::<String>()), ["CDDDD", "DDDDD"]);
//! assert_eq!(result.scores(&payoffs), [4.0, 9.0]);
//! # Ok::<(), polity_games::iterated::StrategyError>(())
//! ```

pub mod evolution;
pub mod lattice;
mod matches;
mod payoffs;
mod rules;
mod strategy;
#[cfg(test)]
mod tests;
mod tournament;

pub use matches::{Conditions, Length, Outcome, play};
pub use payoffs::Payoffs;
pub use strategy::{Memory, Move, Strategy, StrategyError, all, names, parse, strategy};
pub use tournament::{Pair, Rank, Results, Tournament};
