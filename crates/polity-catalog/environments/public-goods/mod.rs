//! A public good to which players contribute one after the other. See README.md.

#[cfg(test)]
mod tests;

use polity_games::public_goods::{PublicGoods, Solved};
use polity_kernel::Invalid;
use polity_kernel::ask::Value;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Sequential>(files);
}

/// Parameters of public goods.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Players, in the order of their turns; 2 to 16.
    players: u32,
    /// Contributions that each can choose from: 0, 1, and as many in between; 2 to 100.
    levels: u32,
    /// All contributions are multiplied by this and shared out.
    factor: f64,
    /// What a contribution of 1 costs.
    cost: f64,
    /// What a contribution of 1 gains for each unit that was contributed before; 0: the usual game.
    bonus: f64,
    /// The sum of contributions below which all lose `penalty`. Default: as many as there are players.
    threshold: Option<f64>,
    /// What each loses then; 0: the usual game.
    penalty: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { players: 3, levels: 3, factor: 2.0, cost: 1.0, bonus: 0.8, threshold: None, penalty: 1.0 }
    }
}

/// A public good.
pub struct Sequential {
    game: PublicGoods,
    solved: Solved,
    before: NumberSlot,
    best: NumberSlot,
    given: TableSlot,
}

/// What was contributed, by level, in turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Given(Vec<u8>);

impl Given {
    fn levels(&self) -> Vec<usize> {
        self.0.iter().map(|level| usize::from(*level)).collect()
    }
}

impl Sequential {
    fn share(&self, given: &Given, of: impl Fn(f64) -> f64) -> f64 {
        let sum: f64 = given.levels().into_iter().map(|level| of(self.game.contribution(level))).sum();
        sum / self.game.players as f64
    }
}

impl Environment for Sequential {
    const NAME: &'static str = "public-goods";
    const SUMMARY: &'static str =
        "Players contribute to a public good one after the other; solved by backward induction";
    type Params = Params;
    type State = Given;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(2..=16, "players", params.players)?;
        Invalid::within(2..=100, "levels", params.levels)?;
        let threshold = params.threshold.unwrap_or(f64::from(params.players));
        for (key, value) in [
            ("factor", params.factor),
            ("cost", params.cost),
            ("bonus", params.bonus),
            ("threshold", threshold),
            ("penalty", params.penalty),
        ] {
            Invalid::within(0.0..=1e6, key, value)?;
        }
        let game = PublicGoods {
            players: params.players as usize,
            levels: params.levels as usize,
            factor: params.factor,
            cost: params.cost,
            bonus: params.bonus,
            threshold,
            penalty: params.penalty,
        };
        let solved = game.solve().map_err(|message| Invalid { key: "levels".into(), message })?;
        declare.number("seat", "the agent's place in the order of turns, from 0", |_, _, seat| f64::from(*seat));
        let mut fixed = |name: &'static str, doc: &'static str, value: f64| {
            declare.shared_number(name, doc, move |_, _| value);
        };
        fixed("players", "players of a game", f64::from(params.players));
        fixed("levels", "contributions to choose from", f64::from(params.levels));
        fixed("factor", "contributions are multiplied by this and shared out", params.factor);
        fixed("cost", "what a contribution of 1 costs", params.cost);
        fixed("bonus", "what a contribution of 1 gains for each unit contributed before", params.bonus);
        fixed("threshold", "sum of contributions below which all lose the penalty", threshold);
        fixed("penalty", "what each loses then", params.penalty);
        declare.shared_number("moved", "players who have had their turn", |_, given: &Given| given.0.len() as f64);
        let before = declare.number_slot("before", "sum of the levels chosen before, in whole numbers");
        let doc = "the level that backward induction advises to the one whose turn it is; -1 if it is nobody's";
        let best = declare.number_slot("best", doc);
        let given = declare.table_slot("given", ["player", "amount"], "what those before have contributed, in turn");
        let levels = (0..params.levels as usize).map(|level| format!("{:.2}", game.contribution(level))).collect();
        declare.action("contribute", ActionArgument::Choice(levels), "contribute this share of one's endowment");
        let doc = "contributed so far, as a share of all endowments";
        declare.scalar("effort", doc, |game: &Sequential, given| game.share(given, |contribution| contribution));
        declare.scalar("free-riders", "share of players who have contributed nothing", |game: &Sequential, given| {
            game.share(given, |contribution| f64::from(u8::from(contribution == 0.0)))
        });
        let path: f64 = solved.path.iter().map(|level| game.contribution(*level)).sum();
        let (effort, unique) = (path / f64::from(params.players), f64::from(u8::from(solved.is_unique)));
        let doc = "contributions, as a share of all endowments, in the subgame-perfect equilibrium that backward induction finds";
        declare.scalar("equilibrium-effort", doc, move |_, _| effort);
        declare.scalar("equilibrium-unique", "1 if it is the only one", move |_, _| unique);
        let doc = "what the agent has contributed in the game";
        declare.column("contributed", doc, Some((0.0, 1.0)), |game: &Sequential, given: &Given, seat| {
            given.0.get(*seat as usize).map_or(0.0, |level| game.game.contribution(usize::from(*level)))
        });
        Ok(Sequential { game, solved, before, best, given })
    }

    fn seats(&self) -> u32 {
        self.game.players as u32
    }

    fn reset(&self, _: &Item, _: &mut Draws) -> Given {
        Given::default()
    }

    fn observe(&self, given: &Given, _: Seat, observation: &mut ObservationRow<'_>) {
        let levels = given.levels();
        observation.number(self.before, levels.iter().sum::<usize>() as f64);
        observation.number(self.best, self.solved.advice.get(&levels).map_or(-1.0, |level| *level as f64));
        observation.table(self.given, |rows| {
            for (player, level) in levels.iter().enumerate() {
                rows.extend([player as f64, self.game.contribution(*level)]);
            }
        });
    }

    fn offers(&self, given: &Given, seat: Seat, _: u16) -> bool {
        given.0.len() == seat as usize
    }

    /// A player who makes no move contributes nothing.
    fn step(&self, given: &mut Given, moves: &[Move], _: &mut Draws) -> StepResult {
        let level = match moves.first().map(|made| &made.argument) {
            Some(Value::Choice(level)) => (*level as usize).min(self.game.levels - 1),
            _ => 0,
        };
        given.0.push(level as u8);
        let done = given.0.len() >= self.game.players;
        let rewards = if done { self.game.payoffs(&given.levels()) } else { vec![0.0; self.game.players] };
        StepResult { rewards, results: vec![String::new(); moves.len()], done }
    }
}
