//! Flags of `polity solve` and `polity tournament`.

use crate::numbers::{decimal, few, positive, seed, whole};
use clap::{Args as ClapArgs, ValueEnum};
use std::num::{NonZeroU32, NonZeroUsize};

/// What `polity solve` solves.
#[derive(Debug, ClapArgs)]
pub struct Solving {
    /// A file in Gambit's format (.nfg for normal form, .efg for extensive form) or in YAML (.yaml: players, moves and payoffs, or a tree),
    /// or the name of a known game.
    #[arg(value_name = "GAME")]
    pub game: String,
    /// Solution concept: nash, correlated, coarse-correlated, quantal, stackelberg or risk-averse for a game in normal form (default: nash);
    /// subgame-perfect or cfr for one in extensive form (default: subgame-perfect, or cfr where players do not see all moves).
    #[arg(long, value_enum)]
    pub concept: Option<Concept>,
    /// Precision of quantal responses, per unit of payoff: at 0 all strategies are equally likely (default: 1).
    #[arg(long, value_parser = decimal, allow_negative_numbers = true)]
    pub lambda: Option<f64>,
    /// Player who commits in a Stackelberg equilibrium, from 1 (default: 1).
    #[arg(long, value_name = "N", value_parser = few, allow_negative_numbers = true)]
    pub leader: Option<NonZeroUsize>,
    /// Weight of the variance for players who avoid risk, per unit of payoff (default: 1).
    #[arg(long, value_parser = decimal, allow_negative_numbers = true)]
    pub aversion: Option<f64>,
    /// Probability with which such players expect any move of the others (default: 0.1).
    #[arg(long, value_name = "PROBABILITY", value_parser = decimal, allow_negative_numbers = true)]
    pub tremble: Option<f64>,
    /// Iterations of CFR (default: 1000).
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    pub iterations: Option<NonZeroU32>,
    /// Sample moves in CFR (external sampling), with this seed.
    #[arg(long, value_parser = seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Print one JSON object as the last line on standard output.
    #[arg(long)]
    pub json: bool,
}

/// A solution concept of games.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Concept {
    /// No player gains by deviating alone.
    Nash,
    /// A mediator recommends a strategy to each player, and none gains by deviating; the one with the greatest sum of payoffs.
    Correlated,
    /// No player gains by ignoring the mediator; the one with the greatest sum of payoffs.
    CoarseCorrelated,
    /// Better strategies are played more often (logit).
    Quantal,
    /// One player commits to a strategy, and the other replies to it.
    Stackelberg,
    /// Players weigh their mean payoff against its variance.
    RiskAverse,
    /// An equilibrium in every subgame of a tree with perfect information.
    SubgamePerfect,
    /// Counterfactual regret minimisation (CFR+) on a tree.
    Cfr,
}

/// What `polity tournament` plays.
#[derive(Debug, ClapArgs)]
pub struct Playing {
    /// A symmetric game of two players with two moves: prisoners-dilemma, donation, stag-hunt, chicken, snowdrift, hawk-dove, deadlock,
    /// coordination, or a file (.nfg, .yaml). The first move of the game is C, the second D.
    #[arg(value_name = "GAME")]
    pub game: String,
    /// Strategies, separated by commas, such as tit-for-tat,joss:p=0.8; all: every known strategy.
    #[arg(long, value_name = "NAMES", default_value = "all")]
    pub strategies: String,
    /// Turns of a match; with --continuation, the maximum.
    #[arg(long, default_value_t = 200, value_parser = whole::<u32>, allow_negative_numbers = true)]
    pub turns: u32,
    /// Probability that another turn follows. Strategies do not know when a match ends.
    #[arg(long, value_name = "PROBABILITY", value_parser = decimal, allow_negative_numbers = true)]
    pub continuation: Option<f64>,
    /// Matches of each pair.
    #[arg(long, default_value = "1", value_parser = positive, allow_negative_numbers = true)]
    pub repetitions: NonZeroU32,
    /// Probability that a move is flipped.
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.0, value_parser = decimal, allow_negative_numbers = true)]
    pub noise: f64,
    /// Seed of random strategies, of noise and of evolution.
    #[arg(long, default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
    pub seed: u64,
    /// Do not let strategies play against copies of themselves.
    #[arg(long, conflicts_with = "evolve")]
    pub no_self_play: bool,
    /// Let a population evolve from equal shares of the strategies: replicator, moran or spatial.
    #[arg(long, value_enum, value_name = "DYNAMICS")]
    pub evolve: Option<Evolving>,
    /// Print one JSON object as the last line on standard output.
    #[arg(long)]
    pub json: bool,
}

/// How a population of strategies evolves.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Evolving {
    /// By the replicator equation: an infinite, mixed population.
    Replicator,
    /// By a Moran process: a finite, mixed population.
    Moran,
    /// On a lattice, by imitation of the best neighbour.
    Spatial,
}
