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
    /// The rules in words, for each seat; none if the game is too large for words.
    told: Vec<String>,
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
    /// How often each player has played each strategy in this episode, and what each has got.
    played: Vec<Vec<u32>>,
    gained: Vec<f64>,
}

impl MatrixGame {
    /// Returns the strategy of a player for an action.
    fn strategy(&self, seat: Seat, action: u16) -> Option<usize> {
        let name = self.game.moves.get(usize::from(action))?;
        self.game.strategies.get(seat as usize)?.iter().position(|strategy| strategy == name)
    }
}

/// Returns the rules in words for a seat.
fn told(game: &Game, own: usize) -> String {
    let Game { title, players, strategies, .. } = game;
    let mut text = format!("The game is \"{title}\". You are {}. ", players[own]);
    let row = |profile: &[usize]| {
        let named = |(player, strategy): (usize, &usize)| {
            let who = if player == own { "you".to_owned() } else { players[player].clone() };
            format!("{who} play{} {}", if player == own { "" } else { "s" }, strategies[player][*strategy])
        };
        let all: Vec<String> = profile.iter().enumerate().map(named).collect();
        format!("- if {}: you get {}", all.join(" and "), game.payoff(profile, own))
    };
    let rows: Vec<String> = game.profiles().map(|profile| row(&profile)).collect();
    text.push_str(&format!("What you get in a round:\n{}", rows.join("\n")));
    text
}

/// The maximum number of profiles of a game whose payoffs are described in words and shown in the table.
const SHOWN: usize = 64;
/// The maximum number of profiles of a game whose exploitability is measured in every round.
const MEASURED: usize = 1_000;

/// Returns the lowest and the highest of some numbers.
fn bounds(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
}

/// Measures of cooperation in an episode.
impl MatrixGame {
    fn declare_measures(game: &Game, declare: &mut DeclareEnvironment<Self>) {
        let doc = "what all players together got in a round, on average over the episode";
        declare.scalar("welfare", doc, |_, play: &Play| play.welfare());
        let all = |profile: &Vec<usize>| (0..game.players.len()).map(|player| game.payoff(profile, player)).sum();
        let (low, high) = bounds(game.profiles().map(|profile| all(&profile)));
        let doc = "the welfare as a part of the way from the worst combination of moves to the best; 1 if all are equally good";
        declare.scalar(
            "efficiency",
            doc,
            move |_, play: &Play| {
                if high > low { (play.welfare() - low) / (high - low) } else { 1.0 }
            },
        );
        let payoffs = game.profiles().flat_map(|profile| {
            (0..game.players.len()).map(move |player| game.payoff(&profile, player)).collect::<Vec<_>>()
        });
        let (least, _) = bounds(payoffs);
        let doc = "1 minus the Gini index of what players got in the episode above the game's lowest payoff";
        declare.scalar("equality", doc, move |_, play: &Play| play.equality(least));
        if game.size() <= MEASURED {
            let doc = "what a player could gain in a round by another strategy against the frequencies of the others' moves in the episode, on average over players";
            declare.scalar("exploitability", doc, |world: &MatrixGame, play| world.exploitability(play));
        }
    }

    /// Returns the mean gain of the players' best replies to the frequencies of the others' moves; 0 before the first round, and if
    /// somebody has made no move.
    fn exploitability(&self, play: &Play) -> f64 {
        let frequencies = |counts: &Vec<u32>| {
            let all = f64::from(counts.iter().sum::<u32>());
            (all > 0.0).then(|| counts.iter().map(|count| f64::from(*count) / all).collect::<Vec<f64>>())
        };
        let Some(mixed) = play.played.iter().map(frequencies).collect::<Option<Vec<_>>>() else { return 0.0 };
        let (_, gains) = self.game.payoffs_and_gains(&mixed);
        gains.iter().sum::<f64>() / gains.len() as f64
    }
}

impl Play {
    fn welfare(&self) -> f64 {
        self.gained.iter().sum::<f64>() / f64::from(self.rounds.max(1))
    }

    fn equality(&self, least: f64) -> f64 {
        let mut above: Vec<f64> =
            self.gained.iter().map(|gained| (gained - least * f64::from(self.rounds)).max(0.0)).collect();
        above.sort_by(f64::total_cmp);
        let (n, all) = (above.len() as f64, above.iter().sum::<f64>());
        let ranked: f64 = (1u32..).zip(&above).map(|(rank, x)| f64::from(rank) * x).sum();
        if all > 0.0 { 1.0 - (2.0 * ranked / (n * all) - (n + 1.0) / n) } else { 1.0 }
    }
}

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
        MatrixGame::declare_measures(&game, declare);
        let repeat = params.repeat;
        let shown = if game.size() > SHOWN { 0 } else { game.players.len() };
        let told = (0..shown).map(|seat| told(&game, seat)).collect();
        Ok(MatrixGame { game, repeat, rules, told, payoffs, own_last, others_last })
    }

    fn seats(&self) -> u32 {
        self.game.players.len() as u32
    }

    fn reset(&self, _: &Item, _: &mut Draws) -> Play {
        Play {
            last: vec![None; self.game.players.len()],
            rounds: 0,
            played: self.game.strategies.iter().map(|strategies| vec![0; strategies.len()]).collect(),
            gained: vec![0.0; self.game.players.len()],
        }
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
        let Some(told) = self.told.get(own) else { return };
        observation.text(self.rules, told.as_str());
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
                play.played[made.seat as usize][strategy] += 1;
            }
        }
        play.rounds += 1;
        let profile: Option<Vec<usize>> = play.last.iter().map(|last| last.map(usize::from)).collect();
        let seats = 0..self.game.players.len();
        let rewards: Vec<f64> = match &profile {
            Some(profile) => seats.map(|seat| self.game.payoff(profile, seat)).collect(),
            None => seats.map(|_| 0.0).collect(),
        };
        play.gained.iter_mut().zip(&rewards).for_each(|(sum, reward)| *sum += reward);
        StepResult { rewards, results: vec![String::new(); moves.len()], done: play.rounds >= self.repeat }
    }
}
