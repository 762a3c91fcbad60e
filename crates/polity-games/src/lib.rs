//! Games and their theory: games in normal and extensive form from files, equilibria, learners without regret, and strategies of
//! repeated games. Everything here is pure.

pub mod backward;
pub mod best_response;
pub mod cfr;
pub mod correlated;
pub mod crossing;
pub mod drifting;
pub mod equilibrium;
pub mod extensive;
mod gambit;
pub mod halpern;
pub mod hiring;
pub mod iterated;
pub mod learn;
pub mod library;
mod linear;
pub mod markov;
pub mod mean_field;
pub mod nash;
pub mod normal;
mod path;
pub mod psro;
pub mod public_goods;
pub mod quantal;
pub mod risk;
mod several;
pub mod sharing;
mod simplex;
pub mod simulation;
pub mod stackelberg;
pub mod taxation;
#[cfg(test)]
mod tests;
pub mod written;
