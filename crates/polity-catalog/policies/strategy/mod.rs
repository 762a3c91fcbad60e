//! A strategy of repeated games, such as tit for tat. See README.md.

#[cfg(test)]
mod tests;

use polity_games::iterated::{Memory, Move, Payoffs, Strategy, StrategyError, parse};
use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::OnceLock;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<PlayStrategy>(files);
}

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The strategy, with parameters that differ from its defaults: `tit-for-tat`, `joss:p=0.8`, `cycler-ccd`.
    play: String,
}

impl Default for Params {
    fn default() -> Self {
        Params { play: "tit-for-tat".into() }
    }
}

/// Plays a strategy.
pub struct PlayStrategy {
    play: String,
    /// The strategy for the payoffs of the first turn; for other payoffs it is made in each turn.
    first: OnceLock<Strategy>,
    payoffs: (TableSlot, [usize; 4]),
    others: (TableSlot, [usize; 1]),
    own: NumberSlot,
    round: NumberSlot,
    active: NumberSlot,
}

/// What a player remembers of an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    memory: Memory,
    /// The last move that the strategy chose in this episode.
    chosen: Option<Move>,
}

/// The game from a player's side: its payoffs, and the numbers of each side's two actions, C first.
struct Seen {
    payoffs: Payoffs,
    own: [u16; 2],
    others: [u16; 2],
}

impl PlayStrategy {
    /// Reads the game from the table of payoffs.
    fn seen(&self, turn: &Turn<'_>) -> Result<Seen, Fault> {
        let (table, places) = self.payoffs;
        let rows: Vec<[f64; 4]> = turn.observation.table(table).map(|row| places.map(|place| row[place])).collect();
        let actions = |side: usize| {
            let mut different: Vec<u16> = Vec::new();
            for row in &rows {
                let action = row[side] as u16;
                if !different.contains(&action) {
                    different.push(action);
                }
            }
            <[u16; 2]>::try_from(different).ok()
        };
        let another =
            || Fault("`strategy` plays games of two players with two moves each; this is another game".into());
        let (own, others) = (actions(0).ok_or_else(another)?, actions(1).ok_or_else(another)?);
        let mut both = [[None; 2]; 2];
        for [mine, theirs, reward, others_reward] in rows {
            let place = |action: f64, actions: [u16; 2]| usize::from(action as u16 == actions[1]);
            both[place(mine, own)][place(theirs, others)] = Some([reward, others_reward]);
        }
        let [[Some(cc), Some(cd)], [Some(dc), Some(dd)]] = both else { return Err(another()) };
        let both = [[cc, cd], [dc, dd]];
        let payoffs = Payoffs::symmetric(|mine, theirs| both[mine][theirs]);
        let payoffs = payoffs.map_err(|error| Fault(format!("`strategy` plays symmetric games: {error}")))?;
        Ok(Seen { payoffs, own, others })
    }

    /// Returns the strategy for the payoffs of a game.
    fn strategy(&self, payoffs: &Payoffs) -> Result<Cow<'_, Strategy>, Fault> {
        if let Some(first) = self.first.get().filter(|first| first.payoffs() == payoffs) {
            return Ok(Cow::Borrowed(first));
        }
        let made = parse(&self.play, payoffs).map_err(|error| Fault(error.to_string()))?;
        if self.first.get().is_none() {
            // If another turn was faster, its strategy stays: both serve any turn alike.
            let _ = self.first.set(made.clone());
        }
        Ok(Cow::Owned(made))
    }
}

/// Converts an action's number to a move; `None` if there was none.
fn made(number: f64, actions: [u16; 2]) -> Option<Move> {
    let place = actions.iter().position(|action| f64::from(*action) == number)?;
    Some(if place == 0 { Move::Cooperate } else { Move::Defect })
}

impl Policy for PlayStrategy {
    const NAME: &'static str = "strategy";
    const SUMMARY: &'static str =
        "A strategy of repeated games of two players with two moves, such as tit for tat (Axelrod 1984)";
    type Params = Params;
    type State = Remembered;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        // Whether the strategy exists for the payoffs of the game shows in the first turn; all else is checked here.
        match parse(&params.play, &Payoffs::PRISONERS_DILEMMA) {
            Ok(_) | Err(StrategyError::Undefined { .. }) => {}
            Err(error) => return Err(Invalid { key: "play".into(), message: error.to_string() }),
        }
        Ok(PlayStrategy {
            play: params.play,
            first: OnceLock::new(),
            payoffs: setup.table("payoffs", ["own", "other", "reward", "others-reward"])?,
            others: setup.table("others-last", ["move"])?,
            own: setup.number("own-last")?,
            round: setup.number("round")?,
            active: setup.number("active")?,
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Remembered {
        Remembered::default()
    }

    async fn act(&self, state: &mut Remembered, turn: &mut Turn<'_>) -> Result<(), Fault> {
        if turn.observation.number(self.active) == 0.0 {
            return Ok(());
        }
        let Seen { payoffs, own: actions, others } = self.seen(turn)?;
        let strategy = self.strategy(&payoffs)?;
        if turn.observation.number(self.round) == 0.0 {
            *state = Remembered::default();
        }
        let own = made(turn.observation.number(self.own), actions);
        let (table, [place]) = self.others;
        let other = turn.observation.table(table).next().and_then(|row| made(row[place], others));
        let next = match (state.chosen, own, other) {
            (None, ..) => strategy.first(&mut state.memory, &mut turn.draws),
            (Some(_), Some(own), Some(other)) => strategy.next(&mut state.memory, own, other, &mut turn.draws),
            // A round in which somebody made no move was not played.
            (Some(chosen), ..) => chosen,
        };
        state.chosen = Some(next);
        turn.act(actions[next as usize], 0.0);
        Ok(())
    }
}
