//! Games defined in a scenario: players, phases, actions, observations, and payoffs as formulas. See README.md.

mod game;
mod names;
mod params;
mod play;
#[cfg(test)]
mod tests;

pub use params::{
    Action, Aggregate, Assignment, Expression, Measure, Objective, Observed, Order, Params, Phase, Revealed, Role,
    Variable,
};
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

/// A game defined in a scenario.
pub struct FormulaGame {
    game: Game,
    single_episode: bool,
    words: String,
    rules: TextSlot,
    /// Tables of revealed choices: the action, and whether the choices are those of the last round.
    revealed: Vec<(usize, bool, TableSlot)>,
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl FormulaGame {
    fn declare_observations(declare: &mut DeclareEnvironment<Self>, params: &Params, game: &Game) {
        for (name, value) in game.vocabulary.constants.clone() {
            let doc = format!("the constant `{name}`");
            declare.shared_number(name, doc, move |_, _| value);
        }
        let seats = params.players as usize;
        for (i, (name, observed)) in params.observations.iter().enumerate() {
            let doc = if observed.doc.is_empty() { name.clone() } else { observed.doc.clone() };
            declare.number(name.clone(), doc, move |_, play, seat| play.observed[i * seats + *seat as usize]);
        }
        for (i, (name, objective)) in (game.observations.len()..).zip(&params.objectives) {
            let doc = if objective.doc.is_empty() { name.clone() } else { objective.doc.clone() };
            declare.objective(name.clone(), doc, move |_, play, seat| play.observed[i * seats + *seat as usize]);
        }
        declare.number("seat", "the agent's seat in the game, from 1", |_, _, seat| f64::from(*seat + 1));
        let (players, rounds) = (f64::from(params.players), f64::from(params.rounds));
        declare.shared_number("players", "players of the game", move |_, _| players);
        declare.shared_number("rounds-of-game", "rounds of the game", move |_, _| rounds);
        declare.shared_number("played", "rounds of the game that are over", |_, play| f64::from(play.round));
        declare.shared_number("phase", "the phase of the round, from 0", |_, play| f64::from(play.phase));
        let doc = "how many times the phase has been played in this round";
        declare.shared_number("iteration", doc, |_, play| f64::from(play.iteration));
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
                true => {
                    "the agent's choice in this round, or in the last round if it has not yet chosen; 0 if there is none"
                }
                false => {
                    "a variable of the agent, in this round or, if it has no value yet, in the last; 0 if there is none"
                }
            };
            declare.column(name.clone(), doc, None, move |_, play, seat| {
                let cell = |of: &[play::Cell]| of[place * seats + *seat as usize].0;
                let now = cell(&play.now);
                let value = if now.is_nan() { cell(&play.last) } else { now };
                if value.is_nan() { 0.0 } else { value }
            });
        }
        declare.column("gain", "the agent's total payoff in this game so far", None, |_, play, seat| {
            play.gains[*seat as usize]
        });
        declare.scalar("welfare", "sum of all players' payoffs in the last round of a game", |_, play| {
            play.payoffs.iter().sum()
        });
        let doc = "1 minus the Gini index of the players' total payoffs so far (for losses see the README)";
        declare.scalar("equality", doc, |_, play| play.equality());
        if params.max_welfare.is_some() {
            let doc = "sum of all payoffs so far, as a share of the largest possible sum";
            declare.scalar("efficiency", doc, |_, play| match play.max_welfare {
                0.0 => 0.0,
                most => play.gains.iter().sum::<f64>() / most,
            });
        }
        declare.scalar("rounds-played", "rounds of the game that are over", |_, play| f64::from(play.round));
        declare.scalar(
            "without-value",
            "number of payoffs and objectives so far that were not finite numbers and count as 0",
            |_, play| f64::from(play.without_value),
        );
        for (i, (name, measure)) in params.measures.iter().enumerate() {
            let aggregate = measure.aggregate;
            declare
                .scalar(name.clone(), "a measure of the game so far", move |_, play| play.measured[i].value(aggregate));
        }
        if params.score.is_some() {
            declare.scalar("score", "the score of the game so far", |world, play| play.score(&world.game));
        }
    }
}

impl Environment for FormulaGame {
    const NAME: &'static str = "formula-game";
    const SUMMARY: &'static str = "A game defined in the scenario: phases, actions, observations, payoffs as formulas";
    type Params = Params;
    type State = Play;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        let game = Game::read(&params)?;
        let (words, _) = setup.words(&params.rules)?;
        let words = words.to_owned();
        let rules = declare.text_slot("rules", "the rules of the game");
        FormulaGame::declare_observations(declare, &params, &game);
        let mut revealed = Vec::new();
        for (place, (name, action)) in params.actions.iter().enumerate() {
            let last = format!("`{name}` of the other players in the last round, by seat");
            if action.revealed != Revealed::Never {
                revealed.push((place, true, declare.table_slot(format!("last-{name}"), ["player", "choice"], last)));
            }
            if action.revealed == Revealed::Immediately {
                let now = format!("`{name}` of the other players in this round so far, by seat");
                revealed.push((place, false, declare.table_slot(format!("now-{name}"), ["player", "choice"], now)));
            }
            let doc = if action.doc.is_empty() { format!("choose `{name}`") } else { action.doc.clone() };
            declare.action(name.clone(), game.actions[place].0.clone(), doc);
        }
        FormulaGame::declare_results(declare, &params, &game);
        Ok(FormulaGame { game, single_episode: params.single_episode, words, rules, revealed })
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
        for (place, last, slot) in &self.revealed {
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
        play.active.get(seat as usize).is_some_and(|active| *active)
            && phase.is_some_and(|phase| phase.acts.contains(&action))
    }

    fn step(&self, play: &mut Play, moves: &[Move], draws: &mut Draws) -> StepResult {
        let rewards = play.step(&self.game, moves, draws);
        StepResult { rewards, results: vec![String::new(); moves.len()], done: play.over && !self.single_episode }
    }
}
