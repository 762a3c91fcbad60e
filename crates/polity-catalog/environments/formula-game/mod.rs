//! Games that a scenario writes: players, phases, actions, what is seen, and payoffs as formulas. See README.md.

mod game;
mod names;
mod params;
mod play;
#[cfg(test)]
mod tests;

pub use params::{Assignment, Choosing, Expression, Measure, Order, Params, Phase, Quantity, Role, Shown, Sight, Take};
pub use play::Play;

use game::Game;
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{TableSlot, TextSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<FormulaGame>(files);
}

/// A game that a scenario writes.
pub struct FormulaGame {
    game: Game,
    once: bool,
    words: String,
    rules: TextSlot,
    /// Tables of acts: the action, and whether the acts are those of the last round.
    shown: Vec<(usize, bool, TableSlot)>,
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl FormulaGame {
    fn declare_sights(declare: &mut DeclareEnvironment<Self>, params: &Params, game: &Game) {
        for (name, value) in game.vocabulary.constants.clone() {
            let doc = format!("the constant `{name}`");
            declare.shared_number(name, doc, move |_, _| value);
        }
        let seats = params.players as usize;
        for (i, (name, sight)) in params.sees.iter().enumerate() {
            let doc = if sight.doc.is_empty() { name.clone() } else { sight.doc.clone() };
            declare.number(name.clone(), doc, move |_, play, seat| play.seen[i * seats + *seat as usize]);
        }
        declare.number("seat", "the agent's place in the game, from 1", |_, _, seat| f64::from(*seat + 1));
        let (players, rounds) = (f64::from(params.players), f64::from(params.rounds));
        declare.shared_number("players", "players of the game", move |_, _| players);
        declare.shared_number("rounds-of-game", "rounds of the game", move |_, _| rounds);
        declare.shared_number("played", "rounds of the game that are over", |_, play| f64::from(play.round));
        declare.shared_number("phase", "the phase of the round, from 0", |_, play| f64::from(play.phase));
        declare.shared_number("turn", "how often the phase has come in this round", |_, play| f64::from(play.turn));
        declare.shared_number("over", "1 when the game is over", |_, play| truth(play.over));
        if !game.vocabulary.roles.is_empty() {
            let doc = format!("the agent's role, by number: {}", game.vocabulary.roles.join(", "));
            declare.number("role", doc, |_, play, seat| f64::from(play.roles[*seat as usize]));
        }
        for (i, (number, _)) in game.rights.iter().enumerate() {
            let name = params.actions.keys().nth(usize::from(*number)).cloned().unwrap_or_default();
            let doc = "the best choice, for simulated models";
            declare.number(format!("right-{name}"), doc, move |_, play, seat| play.right[i * seats + *seat as usize]);
        }
    }

    fn declare_results(declare: &mut DeclareEnvironment<Self>, params: &Params, game: &Game) {
        let seats = params.players as usize;
        for (place, (name, _)) in game.vocabulary.quantities.iter().enumerate() {
            let doc = match place < params.actions.len() {
                true => "the agent's choice in this round, or, when a round is over, in the last one; 0 without one",
                false => "a quantity of the agent in this round; 0 if it is missing",
            };
            declare.column(name.clone(), doc, None, move |_, play, seat| {
                let cell = |of: &[play::Cell]| of[place * seats + *seat as usize].0;
                let now = cell(&play.now);
                let value = if now.is_nan() { cell(&play.last) } else { now };
                if value.is_nan() { 0.0 } else { value }
            });
        }
        declare.column("gain", "what the agent has got in this game so far", None, |_, play, seat| {
            play.gains[*seat as usize]
        });
        declare.scalar("welfare", "sum of what all players of a game got in its last round", |_, play| {
            play.payoffs.iter().sum()
        });
        let doc = "1 minus the Gini index of what the players of a game have got so far (of losses: see the README)";
        declare.scalar("equality", doc, |_, play| play.equality());
        if params.best.is_some() {
            let doc = "what all players have got so far, as a share of the largest possible total";
            declare.scalar("efficiency", doc, |_, play| match play.best {
                0.0 => 0.0,
                best => play.gains.iter().sum::<f64>() / best,
            });
        }
        declare.scalar("rounds-played", "rounds of the game that are over", |_, play| f64::from(play.round));
        declare.scalar("without-value", "payoffs so far that had no finite value and count as 0", |_, play| {
            f64::from(play.without_value)
        });
        for (i, (name, measure)) in params.measures.iter().enumerate() {
            let take = measure.take;
            declare.scalar(name.clone(), "a measure of the game so far", move |_, play| play.measured[i].value(take));
        }
        if params.score.is_some() {
            declare.scalar("score", "the score of the game so far", |world, play| play.score(&world.game));
        }
    }
}

impl Environment for FormulaGame {
    const NAME: &'static str = "formula-game";
    const SUMMARY: &'static str = "A game that the scenario writes: phases, actions, information, payoffs as formulas";
    type Params = Params;
    type State = Play;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        let game = Game::read(&params)?;
        let (words, _) = setup.words(&params.rules)?;
        let words = words.to_owned();
        let rules = declare.text_slot("rules", "the rules of the game");
        FormulaGame::declare_sights(declare, &params, &game);
        let mut shown = Vec::new();
        for (place, (name, choosing)) in params.actions.iter().enumerate() {
            let last = format!("`{name}` of the other players in the last round, by seat");
            if choosing.shown != Shown::No {
                shown.push((place, true, declare.table_slot(format!("last-{name}"), ["player", "choice"], last)));
            }
            if choosing.shown == Shown::Step {
                let now = format!("`{name}` of the other players in this round so far, by seat");
                shown.push((place, false, declare.table_slot(format!("now-{name}"), ["player", "choice"], now)));
            }
            let doc = if choosing.doc.is_empty() { format!("choose `{name}`") } else { choosing.doc.clone() };
            declare.action(name.clone(), game.actions[place].0.clone(), doc);
        }
        FormulaGame::declare_results(declare, &params, &game);
        Ok(FormulaGame { game, once: params.once, words, rules, shown })
    }

    fn seats(&self) -> u32 {
        self.game.vocabulary.players
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Play {
        Play::begin(&self.game, draws)
    }

    fn observe(&self, play: &Play, seat: Seat, observation: &mut ObservationRow<'_>) {
        observation.text(self.rules, self.words.clone());
        let seats = self.game.seats();
        for (place, last, slot) in &self.shown {
            let of = if *last { &play.last } else { &play.now };
            observation.table(*slot, |rows| {
                for (other, cell) in of[place * seats..(place + 1) * seats].iter().enumerate() {
                    if other != seat as usize && !cell.0.is_nan() {
                        rows.extend([(other + 1) as f64, cell.0]);
                    }
                }
            });
        }
    }

    fn offers(&self, play: &Play, seat: Seat, action: u16) -> bool {
        let phase = self.game.phases.get(play.phase as usize);
        play.acting.get(seat as usize).is_some_and(|acts| *acts)
            && phase.is_some_and(|phase| phase.acts.contains(&action))
    }

    fn step(&self, play: &mut Play, moves: &[Move], draws: &mut Draws) -> StepResult {
        let rewards = play.step(&self.game, moves, draws);
        StepResult { rewards, results: vec![String::new(); moves.len()], done: play.over && !self.once }
    }
}
