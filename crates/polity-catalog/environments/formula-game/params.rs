//! What a scenario writes about a game.

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A formula, or a value.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a formula, a number, or true or false")]
pub enum Expression {
    /// A number.
    Number(f64),
    /// True or false.
    Truth(bool),
    /// A formula.
    Formula(String),
}

impl Expression {
    /// Returns its text as a formula.
    pub fn text(&self) -> String {
        match self {
            Expression::Number(value) => value.to_string(),
            Expression::Truth(value) => value.to_string(),
            Expression::Formula(text) => text.clone(),
        }
    }
}

/// A game.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The rules of the game in words, for minds: {file: NAME}, or the text itself.
    pub(super) rules: polity_kernel::scenario::TextSource,
    /// Players of a game, 1 to 1000. Agents are seated in order of id.
    pub(super) players: u32,
    /// Rounds of a game, 1 to 10000. A round goes through all phases.
    pub(super) rounds: u32,
    /// Play one game only: when it is over, nobody acts any more. Otherwise the next game begins at once.
    pub(super) once: bool,
    /// Numbers with a name, which formulas may use. Agents see them.
    pub(super) constants: BTreeMap<String, Expression>,
    /// Roles of the players, with the number of players of each. Without roles all players are alike.
    pub(super) roles: Vec<Role>,
    /// Draw by lot who has which role in each game. Otherwise roles go to the seats in order.
    pub(super) lot: bool,
    /// What players choose.
    pub(super) actions: BTreeMap<String, Choosing>,
    /// Numbers or truths of each player that last, such as private values, stocks or who is still in the game.
    pub(super) quantities: BTreeMap<String, Quantity>,
    /// The phases of a round, in order.
    pub(super) phases: Vec<Phase>,
    /// What a player gets at the end of a round.
    pub(super) payoff: Expression,
    /// When the game is over before its last round; checked whenever something has been worked out.
    pub(super) end: Option<Expression>,
    /// The largest total of payoffs that is possible in a round, for the scalar `efficiency`.
    pub(super) best: Option<Expression>,
    /// What a player sees besides the constants, its seat and the time: private values, results of the last round.
    pub(super) sees: BTreeMap<String, Sight>,
    /// Numbers that describe a game, worked out at the end of each round. They are scalars.
    pub(super) measures: BTreeMap<String, Measure>,
    /// The score of a game, from measures and constants: the scalar `score`.
    pub(super) score: Option<Expression>,
}

/// A role.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Its name. Formulas compare it, as in `role == "seller"`.
    pub(super) name: String,
    /// How many players have it.
    pub(super) players: u32,
}

/// What players choose: a number (`low`, `high`), one of some `options`, or, with neither, whether they do it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Choosing {
    /// What it is, for minds.
    pub(super) doc: String,
    /// The smallest number, from constants.
    pub(super) low: Option<Expression>,
    /// The largest number, from constants.
    pub(super) high: Option<Expression>,
    /// Round the number to a whole one.
    pub(super) whole: bool,
    /// The options.
    pub(super) options: Vec<String>,
    /// What the other players see of it.
    pub(super) shown: Shown,
    /// The best choice of a player, for simulated models: a number, or the place of an option from 0.
    pub(super) right: Option<Expression>,
}

/// What others see of an act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// Nothing by itself; `sees` may tell something of it.
    #[default]
    No,
    /// Who chose what, after the round.
    Round,
    /// Who chose what, at once and after the round.
    Step,
}

/// A lasting number or truth of each player.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quantity {
    /// Its value when a game begins, from constants, the role, the seat and draws.
    pub(super) start: Option<Expression>,
    /// Its value when a round begins.
    pub(super) each_round: Option<Expression>,
}

/// A phase of a round.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Phase {
    /// The actions, of which a player chooses one. A phase without actions takes no time: it only works something out.
    pub(super) actions: Vec<String>,
    /// Which players act, a condition on each. Default: all. If nobody acts, the phase is left out.
    pub(super) who: Option<Expression>,
    /// Whether they act together or one after the other.
    pub(super) order: Order,
    /// How often the phase comes in a round, if all act together. `turn` counts from 0.
    pub(super) repeat: Option<Expression>,
    /// What is worked out after each step, in this order, for all players.
    pub(super) then: Vec<Assignment>,
}

/// The order in which the players of a phase act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All at once.
    #[default]
    Together,
    /// One after the other, in order of seat.
    InTurn,
}

/// A quantity gets a new value for every player, all from the values before.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// The quantity. One that `quantities` does not list is missing when a round begins.
    pub(super) set: String,
    /// Its new value.
    pub(super) to: Expression,
}

/// Something that a player sees.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sight {
    /// The number.
    pub(super) is: Expression,
    /// What it is, for minds.
    #[serde(default)]
    pub(super) doc: String,
    /// What is shown if there is no value.
    #[serde(default, rename = "or")]
    pub(super) otherwise: f64,
}

/// A number that describes a game.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The number of a round, from quantities of the whole group. Rounds without a value do not count.
    pub(super) of: Expression,
    /// How the rounds so far become one number.
    #[serde(default)]
    pub(super) take: Take,
}

/// How the numbers of rounds become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The last.
    Last,
}

fn number(value: f64) -> Option<Expression> {
    Some(Expression::Number(value))
}

/// A public good of four players.
impl Default for Params {
    fn default() -> Self {
        let give = Choosing {
            doc: "give this many of your 20 tokens to the common project".into(),
            low: number(0.0),
            high: number(20.0),
            shown: Shown::Round,
            ..Choosing::default()
        };
        Params {
            rules: polity_kernel::scenario::TextSource::Here(String::new()),
            players: 4,
            rounds: 10,
            once: false,
            constants: BTreeMap::new(),
            roles: Vec::new(),
            lot: false,
            actions: BTreeMap::from([("give".to_owned(), give)]),
            quantities: BTreeMap::new(),
            phases: vec![Phase { actions: vec!["give".into()], ..Phase::default() }],
            payoff: Expression::Formula("20 - give + 1.6 * give.sum / players".into()),
            end: None,
            best: None,
            sees: BTreeMap::new(),
            measures: BTreeMap::new(),
            score: None,
        }
    }
}
