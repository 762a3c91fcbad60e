//! A strategy of repeated games, such as tit for tat. See README.md.

#[cfg(test)]
mod tests;

use polity_games::iterated::{Memory, Move, Payoffs, Strategy, parse};
use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The strategy in the prisoner's dilemma of Axelrod's tournaments; in a game with these payoffs it is ready.
    usual: Option<Strategy>,
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
        let (payoffs, [own, other, reward, others_reward]) = self.payoffs;
        let mut rows = Vec::new();
        for row in turn.observation.table(payoffs) {
            let [own, other] = [own, other].map(|place| row[place] as u16);
            rows.push((own, other, row[reward], row[others_reward]));
        }
        let two = |numbers: &mut dyn Iterator<Item = u16>| -> Option<[u16; 2]> {
            let mut different = Vec::new();
            for number in numbers {
                if !different.contains(&number) {
                    different.push(number);
                }
            }
            different.try_into().ok()
        };
        let own = two(&mut rows.iter().map(|row| row.0));
        let others = two(&mut rows.iter().map(|row| row.1));
        let (Some(own), Some(others)) = (own, others) else {
            return Err(Fault(
                "`strategy` plays games of two players with two moves each; this is another game".into(),
            ));
        };
        let found = |mine: usize, theirs: usize| {
            let row = rows.iter().find(|row| (row.0, row.1) == (own[mine], others[theirs]));
            row.map_or((0.0, 0.0), |row| (row.2, row.3))
        };
        // In a symmetric game the other would get the same in this place.
        if [(0, 0), (0, 1), (1, 0), (1, 1)]
            .into_iter()
            .any(|(mine, theirs)| found(mine, theirs).0 != found(theirs, mine).1)
        {
            return Err(Fault(
                "`strategy` plays symmetric games; in this one the two players have different payoffs".into(),
            ));
        }
        let of = |mine, theirs| found(mine, theirs).0;
        Ok(Seen { payoffs: Payoffs { cc: of(0, 0), cd: of(0, 1), dc: of(1, 0), dd: of(1, 1) }, own, others })
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
        let usual = parse(&params.play, &Payoffs::PRISONERS_DILEMMA);
        // Without the payoffs of the game only names and parameters can be checked: these do not depend on payoffs.
        if let Err(error) = &usual
            && Payoffs::names().filter_map(Payoffs::named).all(|payoffs| parse(&params.play, &payoffs).is_err())
        {
            return Err(Invalid { key: "play".into(), message: error.to_string() });
        }
        Ok(PlayStrategy {
            play: params.play,
            usual: usual.ok(),
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
        let made_here;
        let strategy = match &self.usual {
            Some(usual) if payoffs == Payoffs::PRISONERS_DILEMMA => usual,
            _ => {
                made_here = parse(&self.play, &payoffs).map_err(|error| Fault(error.to_string()))?;
                &made_here
            }
        };
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
