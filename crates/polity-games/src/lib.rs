//! Games and their theory: games in normal and extensive form from files, equilibria, learners without regret, and strategies of
//! repeated games. Everything here is pure.

pub mod backward;
pub mod best_response;
pub mod cfr;
pub mod correlated;
pub mod equilibrium;
pub mod extensive;
mod gambit;
pub mod hiring;
pub mod iterated;
pub mod learn;
pub mod library;
mod linear;
pub mod nash;
pub mod normal;
mod path;
pub mod quantal;
pub mod risk;
mod several;
mod simplex;
pub mod stackelberg;
#[cfg(test)]
mod tests;
pub mod written;
