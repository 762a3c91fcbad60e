//! A game of two steps: the first player chooses which matrix both then play. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::ActionArgument;
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::WorldSetup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<TwoStepGame>(files);
}

/// Parameters of a game.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What both get in the second step if the first player chose `a`: a row for each choice of the first player, a column for each of the
    /// second.
    after_a: [[f64; 2]; 2],
    /// The same if it chose `b`.
    after_b: [[f64; 2]; 2],
}

impl Default for Params {
    fn default() -> Self {
        Params { after_a: [[7.0, 7.0], [7.0, 7.0]], after_b: [[0.0, 1.0], [1.0, 8.0]] }
    }
}

/// A game of two steps.
pub struct TwoStepGame {
    params: Params,
}

/// Where an episode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// Before the first step.
    Start,
    /// After it; `true`: the first player chose `b`.
    After(bool),
    /// After the second step of a game whose first player chose `b` or not.
    End(bool),
}

impl Environment for TwoStepGame {
    const NAME: &'static str = "two-step-game";
    const SUMMARY: &'static str =
        "The first of two players chooses the matrix that both then play (Rashid et al. 2018)";
    type Params = Params;
    type State = Place;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        for (key, payoffs) in [("after_a", &params.after_a), ("after_b", &params.after_b)] {
            let finite = payoffs.iter().flatten().all(|payoff| payoff.is_finite());
            Invalid::unless(finite, key, "must be finite numbers")?;
        }
        let shown = [
            ("at-start", "1 in the first step", Place::Start),
            ("after-a", "1 in the second step, if the first player chose `a`", Place::After(false)),
            ("after-b", "1 in the second step, if the first player chose `b`", Place::After(true)),
        ];
        for (name, doc, place) in shown {
            declare.number(name, doc, move |_, at, _| f64::from(u8::from(*at == place)));
        }
        declare.action("a", ActionArgument::Nothing, "choose `a`");
        declare.action("b", ActionArgument::Nothing, "choose `b`");
        let doc = "share of games that are, or have been, played with the matrix after `b`";
        declare
            .scalar("chose-b", doc, |_, at| f64::from(u8::from(matches!(at, Place::After(true) | Place::End(true)))));
        Ok(TwoStepGame { params })
    }

    fn seats(&self) -> u32 {
        2
    }

    fn reset(&self, _: &Item, _: &mut Draws) -> Place {
        Place::Start
    }

    /// In the first step, the choice of the second player counts for nothing. A player without a move plays `a`.
    fn step(&self, at: &mut Place, moves: &[Move], _: &mut Draws) -> StepResult {
        let chose = |seat: Seat| moves.iter().any(|made| made.seat == seat && made.action == 1);
        let (own, other) = (usize::from(chose(0)), usize::from(chose(1)));
        let reward;
        (*at, reward) = match *at {
            Place::Start => (Place::After(chose(0)), 0.0),
            Place::After(b) | Place::End(b) => {
                let payoffs = if b { &self.params.after_b } else { &self.params.after_a };
                (Place::End(b), payoffs[own][other])
            }
        };
        let done = matches!(at, Place::End(_));
        StepResult { rewards: vec![reward; 2], results: vec![String::new(); moves.len()], done }
    }
}
