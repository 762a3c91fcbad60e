//! Games in normal form, from a file or inline, once or repeated. See README.md.

#[cfg(test)]
mod tests;

use polity_games::normal::{self, Game};
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot, TextSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::TextSource;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<MatrixGame>(files);
}

/// Parameters of a game.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The game, in Gambit's format `.nfg` (strategies and payoffs): {file: NAME}, or the text itself.
    game: TextSource,
    /// Rounds of an episode.
    repeat: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { game: TextSource::Here(include_str!("prisoners-dilemma.nfg").into()), repeat: 1 }
    }
}

/// A game in normal form.
pub struct MatrixGame {
    game: Game,
    repeat: u32,
    rules: TextSlot,
    payoffs: TableSlot,
    own_last: NumberSlot,
    others_last: TableSlot,
}

/// A play of the game, with the last moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Play {
    /// Each player's strategy in the last round; `None` before the first, and for a player who made no move.
    last: Vec<Option<u16>>,
    rounds: u32,
}

impl MatrixGame {
    /// Returns the strategy of a player for an action.
    fn strategy(&self, seat: Seat, action: u16) -> Option<usize> {
        let name = self.game.moves.get(usize::from(action))?;
        self.game.strategies.get(seat as usize)?.iter().position(|strategy| strategy == name)
    }

    fn told(&self, seat: Seat) -> String {
        let Game { title, players, strategies, .. } = &self.game;
        let own = seat as usize;
        let mut text = format!("The game is \"{title}\". You are {}. ", players[own]);
        let row = |profile: &[usize]| {
            let named = |(player, strategy): (usize, &usize)| {
                let who = if player == own { "you".to_owned() } else { players[player].clone() };
                format!("{who} play{} {}", if player == own { "" } else { "s" }, strategies[player][*strategy])
            };
            let all: Vec<String> = profile.iter().enumerate().map(named).collect();
            format!("- if {}: you get {}", all.join(" and "), self.game.payoff(profile, own))
        };
        let rows: Vec<String> = self.game.profiles().map(|profile| row(&profile)).collect();
        text.push_str(&format!("What you get in a round:\n{}", rows.join("\n")));
        text
    }
}

/// The maximum number of profiles of a game whose payoffs are described in words and shown in the table.
const SHOWN: usize = 64;

impl Environment for MatrixGame {
    const NAME: &'static str = "matrix-game";
    const SUMMARY: &'static str = "A normal-form game from a payoff file, played once or repeatedly";
    type Params = Params;
    type State = Play;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        let within = |error: String| Invalid { key: "game".into(), message: error };
        Invalid::unless(params.repeat > 0, "repeat", "must be at least 1 round")?;
        let (text, _) = setup.words(&params.game)?;
        let game = normal::read(text).map_err(within)?;
        for name in &game.moves {
            declare.action(name.clone(), ActionArgument::Nothing, format!("play `{name}`"));
        }
        let rules = declare.text_slot("rules", "the game, and what the agent gets for each combination of moves");
        let doc = "of a game of two, by own move and the other's: what the agent gets, and what the other gets";
        let payoffs = declare.table_slot("payoffs", ["own", "other", "reward", "others-reward"], doc);
        declare.number("round", "rounds played in this episode", |_, play, _| f64::from(play.rounds));
        let own_last = declare.number_slot("own-last", "number of the agent's last move, -1 for none");
        let doc = "the last moves of the others, in order of seat, by number; -1 for none";
        let others_last = declare.table_slot("others-last", ["move"], doc);
        for (action, name) in (0u16..).zip(&game.moves) {
            let doc = format!("1 when the agent's last move was `{name}`");
            declare.column(format!("played-{name}"), doc, Some((0.0, 1.0)), move |game: &MatrixGame, play, seat| {
                let last = play.last.get(*seat as usize).copied().flatten();
                f64::from(u8::from(last.is_some() && last.map(usize::from) == game.strategy(*seat, action)))
            });
        }
        let repeat = params.repeat;
        Ok(MatrixGame { game, repeat, rules, payoffs, own_last, others_last })
    }

    fn seats(&self) -> u32 {
        self.game.players.len() as u32
    }

    fn reset(&self, _: &Item, _: &mut Draws) -> Play {
        Play { last: vec![None; self.game.players.len()], rounds: 0 }
    }

    fn observe(&self, play: &Play, seat: Seat, observation: &mut ObservationRow<'_>) {
        let own = seat as usize;
        let number = |seat: usize, last: Option<u16>| {
            let name = last.and_then(|strategy| self.game.strategies[seat].get(usize::from(strategy)));
            let place = name.and_then(|name| self.game.moves.iter().position(|known| known == name));
            place.map_or(-1.0, |place| place as f64)
        };
        observation.number(self.own_last, number(own, play.last[own]));
        observation.table(self.others_last, |rows| {
            for (other, last) in play.last.iter().enumerate().filter(|(other, _)| *other != own) {
                rows.extend([number(other, *last)]);
            }
        });
        if self.game.size() > SHOWN {
            return;
        }
        observation.text(self.rules, self.told(seat));
        if self.game.players.len() == 2 {
            let other = 1 - own;
            let place = |player: usize, strategy: usize| {
                let name = &self.game.strategies[player][strategy];
                self.game.moves.iter().position(|known| known == name).unwrap_or_default() as f64
            };
            observation.table(self.payoffs, |rows| {
                for profile in self.game.profiles() {
                    let (mine, theirs) = (self.game.payoff(&profile, own), self.game.payoff(&profile, other));
                    rows.extend([place(own, profile[own]), place(other, profile[other]), mine, theirs]);
                }
            });
        }
    }

    fn offers(&self, _: &Play, seat: Seat, action: u16) -> bool {
        self.strategy(seat, action).is_some()
    }

    /// If a player makes no move, the rewards of all are 0. The round still counts.
    fn step(&self, play: &mut Play, moves: &[Move], _: &mut Draws) -> StepResult {
        play.last.fill(None);
        for made in moves {
            if let Some(strategy) = self.strategy(made.seat, made.action) {
                play.last[made.seat as usize] = Some(strategy as u16);
            }
        }
        play.rounds += 1;
        let profile: Option<Vec<usize>> = play.last.iter().map(|last| last.map(usize::from)).collect();
        let seats = 0..self.game.players.len();
        let rewards = match &profile {
            Some(profile) => seats.map(|seat| self.game.payoff(profile, seat)).collect(),
            None => seats.map(|_| 0.0).collect(),
        };
        StepResult { rewards, results: vec![String::new(); moves.len()], done: play.rounds >= self.repeat }
    }
}
