//! Learners against each other in games in normal form.

use super::{Learner, Regret};
use crate::normal::Game;
use polity_base::rng::{Draws, Stream};
use serde::Serialize;

/// What counts as played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// The probabilities themselves: each learner sees expected losses. Nothing is drawn.
    Expected,
    /// One move each, drawn with this seed.
    Drawn(u64),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Meeting {
    /// The number of rounds.
    pub rounds: u32,
    /// Each player's average strategy.
    pub averages: Vec<Vec<f64>>,
    /// How often each combination of moves was played, in the order of [`Game::profiles`]; adds up to 1.
    pub joint: Vec<f64>,
    /// Each player's mean payoff a round.
    pub payoffs: Vec<f64>,
    /// Each player's external regret a round, in units of payoff; can be negative.
    pub external: Vec<f64>,
    /// Each player's swap regret a round, in units of payoff.
    pub swap: Vec<f64>,
}

/// Lets learners play a game for a number of rounds. Losses are payoffs below the player's best one, divided by the player's range of
/// payoffs, so that they lie in [0, 1].
///
/// ```
/// use polity_games::learn::{Learner, Play, RegretMatching, meet};
///
/// let text = r#"NFG 1 R "pennies" { "A" "B" } { { "h" "t" } { "h" "t" } } 3 -3 -1 1 -1 1 1 -1"#;
/// let game = polity_games::normal::read(text)?;
/// let one = || Box::new(RegretMatching::new(2, true)) as Box<dyn Learner>;
/// let meeting = meet(&game, &mut [one(), one()], 20_000, Play::Expected)?;
/// // The value is 1/3, and each plays heads in a third of the rounds.
/// assert!((meeting.payoffs[0] - 1.0 / 3.0).abs() < 0.01);
/// assert!((meeting.averages[0][0] - 1.0 / 3.0).abs() < 0.01);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// A number of learners or moves that is not the game's; no rounds.
pub fn meet(game: &Game, learners: &mut [Box<dyn Learner>], rounds: u32, play: Play) -> Result<Meeting, String> {
    let players = game.players.len();
    if learners.len() != players || rounds == 0 {
        let given = learners.len();
        return Err(format!(
            "{players} players need {players} learners and at least one round; there are {given} and {rounds}"
        ));
    }
    for (player, learner) in learners.iter().enumerate() {
        let (moves, own) = (game.strategies[player].len(), learner.probabilities().len());
        if moves != own {
            return Err(format!(
                "{} has {moves} strategies, and the learner in this place is made for {own}",
                game.players[player]
            ));
        }
    }
    let table = Table::new(game);
    let mut books: Vec<Regret> = game.strategies.iter().map(|own| Regret::new(own.len())).collect();
    let mut averages: Vec<Vec<f64>> = game.strategies.iter().map(|own| vec![0.0; own.len()]).collect();
    let (mut played, mut losses) = (averages.clone(), averages.clone());
    let mut joint = vec![0.0; game.size()];
    let weight = 1.0 / f64::from(rounds);
    for round in 0..rounds {
        for (player, learner) in learners.iter().enumerate() {
            match play {
                Play::Expected => played[player].copy_from_slice(learner.probabilities()),
                Play::Drawn(seed) => {
                    played[player].fill(0.0);
                    let drawn = learner.choose(&mut Draws::new(seed, Stream::Method, round, player as u32));
                    played[player][drawn] = 1.0;
                }
            }
            averages[player].iter_mut().zip(&played[player]).for_each(|(sum, p)| *sum += weight * p);
        }
        table.losses(&played, &mut losses, &mut joint, weight);
        for (player, learner) in learners.iter_mut().enumerate() {
            books[player].add(&played[player], &losses[player]);
            learner.update(&losses[player]);
        }
    }
    let a_round = |player: usize, loss: f64| table.ranges[player] * weight * loss;
    Ok(Meeting {
        rounds,
        payoffs: (0..players).map(|i| table.best[i] - a_round(i, books[i].suffered())).collect(),
        external: (0..players).map(|i| a_round(i, books[i].external())).collect(),
        swap: (0..players).map(|i| a_round(i, books[i].swap())).collect(),
        averages,
        joint,
    })
}

/// A game's combinations and losses, laid out for passes.
struct Table {
    /// Combination by combination: each player's move, and each player's loss.
    moves: Vec<usize>,
    losses: Vec<f64>,
    /// Each player's best payoff, and range of payoffs.
    best: Vec<f64>,
    ranges: Vec<f64>,
}

impl Table {
    fn new(game: &Game) -> Self {
        let players = game.players.len();
        let profiles: Vec<Vec<usize>> = game.profiles().collect();
        let of = |player: usize| profiles.iter().map(move |profile| game.payoff(profile, player));
        let best: Vec<f64> = (0..players).map(|player| of(player).fold(f64::NEG_INFINITY, f64::max)).collect();
        let ranges: Vec<f64> =
            (0..players).map(|player| best[player] - of(player).fold(f64::INFINITY, f64::min)).collect();
        // A player to whom nothing matters loses nothing.
        let loss = |profile: &Vec<usize>, player: usize| match ranges[player] {
            0.0 => 0.0,
            range => (best[player] - game.payoff(profile, player)) / range,
        };
        let losses =
            profiles.iter().flat_map(|profile| (0..players).map(|player| loss(profile, player)).collect::<Vec<_>>());
        Table { losses: losses.collect(), moves: profiles.concat(), best, ranges }
    }

    /// Computes the expected loss of each move of each player, and adds the round to the joint distribution.
    fn losses(&self, played: &[Vec<f64>], losses: &mut [Vec<f64>], joint: &mut [f64], weight: f64) {
        let players = played.len();
        losses.iter_mut().for_each(|own| own.fill(0.0));
        let rows = self.moves.chunks(players).zip(self.losses.chunks(players));
        for ((moves, lost), joint) in rows.zip(joint) {
            let mut all = weight;
            for (player, at) in moves.iter().enumerate() {
                all *= played[player][*at];
                let others = moves.iter().enumerate().filter(|(other, _)| *other != player);
                let reach: f64 = others.map(|(other, at)| played[other][*at]).product();
                losses[player][*at] += reach * lost[player];
            }
            *joint += all;
        }
    }
}
