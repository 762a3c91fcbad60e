//! The keys of a game in a scenario.

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A formula or a constant value.
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
    /// Number of players in a game, 1 to 1000. Agents take seats in order of id.
    pub(super) players: u32,
    /// Rounds of a game, 1 to 10000. In each round the game goes through all phases.
    pub(super) rounds: u32,
    /// Play a single game (episode): after its end no player can act. By default the next game begins at once.
    pub(super) single_episode: bool,
    /// Named numbers for use in formulas. Agents see them.
    pub(super) constants: BTreeMap<String, Expression>,
    /// Roles of players, and how many players have each. Without roles all players are alike.
    pub(super) roles: Vec<Role>,
    /// Assign the roles at random in each game. By default they go to the seats in the order given.
    pub(super) random_roles: bool,
    /// The actions that players can choose.
    pub(super) actions: BTreeMap<String, Action>,
    /// State variables of each player, numbers or truth values that keep their value from round to round: private values, stocks, whether a
    /// player is still in the game.
    pub(super) variables: BTreeMap<String, Variable>,
    /// The phases of a round, in order.
    pub(super) phases: Vec<Phase>,
    /// A player's payoff at the end of a round.
    pub(super) payoff: Expression,
    /// Parts of a vector reward, for games with several objectives. Players see what the last round gave them of each as `last-reward-NAME`.
    pub(super) objectives: BTreeMap<String, Objective>,
    /// Ends the game before its last round as soon as this condition holds. It is checked after every update.
    pub(super) end_if: Option<Expression>,
    /// The largest possible sum of all players' payoffs in a round. The scalar `efficiency` is measured against it.
    pub(super) max_welfare: Option<Expression>,
    /// What a player observes besides the constants, its seat, its role and the time: private values, results of the last round.
    pub(super) observations: BTreeMap<String, Observed>,
    /// Statistics of a game, updated at the end of each round. Each is a scalar.
    pub(super) measures: BTreeMap<String, Measure>,
    /// The score of a game, computed from measures and constants: the scalar `score`.
    pub(super) score: Option<Expression>,
}

/// One of several objectives.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// What a player gets of it at the end of a round.
    pub(super) value: Expression,
    /// What it means, in words for minds.
    #[serde(default)]
    pub(super) doc: String,
}

/// A role.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Its name. Formulas compare it, as in `role == "seller"`.
    pub(super) name: String,
    /// Number of players with this role.
    pub(super) players: u32,
}

/// An action: choose a number (`low` and `high`), choose one of some `options`, or, with neither, act or not.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Action {
    /// What the action does, in words for minds.
    pub(super) doc: String,
    /// The smallest number; may use constants.
    pub(super) low: Option<Expression>,
    /// The largest number; may use constants.
    pub(super) high: Option<Expression>,
    /// Round the number to an integer.
    pub(super) integer: bool,
    /// The options.
    pub(super) options: Vec<String>,
    /// When the other players learn who chose what.
    pub(super) revealed: Revealed,
    /// A player's best choice, for simulated models: a number, or the index of an option, from 0.
    pub(super) right: Option<Expression>,
}

/// When the other players learn who chose what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Revealed {
    /// Never, except through `observations`.
    #[default]
    Never,
    /// After the round.
    AfterRound,
    /// Immediately, and after the round.
    Immediately,
}

/// A state variable of each player.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Variable {
    /// Its value when a game begins. It may use constants, the role, the seat and random draws.
    pub(super) initial: Option<Expression>,
    /// Its value when a round begins.
    pub(super) each_round: Option<Expression>,
}

/// A phase of a round.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Phase {
    /// The actions of this phase, of which a player chooses one. A phase without actions only updates variables and takes no time.
    pub(super) actions: Vec<String>,
    /// Condition for a player to act in this phase. By default all players act. If it holds for no player, the phase is skipped.
    pub(super) active_players: Option<Expression>,
    /// Whether the players move simultaneously or one after the other.
    pub(super) order: Order,
    /// How many times a simultaneous phase is played in a round. `iteration` counts them, from 0.
    pub(super) repeat: Option<Expression>,
    /// What changes after each move, in this order, for all players.
    pub(super) update: Vec<Assignment>,
}

/// The order of moves in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All players move at the same time.
    #[default]
    Simultaneous,
    /// Players move one after the other, in order of seat.
    Sequential,
}

/// A variable gets a new value for every player. All new values are computed from the old ones.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// The variable. One that is not listed under `variables` has no value when a round begins.
    pub(super) set: String,
    /// Its new value.
    pub(super) to: Expression,
}

/// A number that a player observes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// The number.
    pub(super) value: Expression,
    /// What it means, in words for minds.
    #[serde(default)]
    pub(super) doc: String,
    /// The number shown while there is no value.
    #[serde(default)]
    pub(super) default: f64,
}

/// A statistic of a game.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Its value in one round, from quantities of the whole group. Rounds without a value are left out.
    pub(super) value: Expression,
    /// How the values of all rounds so far are combined.
    #[serde(default)]
    pub(super) aggregate: Aggregate,
}

/// How the values of several rounds are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// Mean.
    #[default]
    Mean,
    /// Sum.
    Sum,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Last value.
    Last,
}

fn number(value: f64) -> Option<Expression> {
    Some(Expression::Number(value))
}

/// A public good of four players.
impl Default for Params {
    fn default() -> Self {
        let give = Action {
            doc: "give this many of your 20 tokens to the common project".into(),
            low: number(0.0),
            high: number(20.0),
            revealed: Revealed::AfterRound,
            ..Action::default()
        };
        Params {
            rules: polity_kernel::scenario::TextSource::Here(String::new()),
            players: 4,
            rounds: 10,
            single_episode: false,
            constants: BTreeMap::new(),
            roles: Vec::new(),
            random_roles: false,
            actions: BTreeMap::from([("give".to_owned(), give)]),
            variables: BTreeMap::new(),
            phases: vec![Phase { actions: vec!["give".into()], ..Phase::default() }],
            payoff: Expression::Formula("20 - give + 1.6 * give.sum / players".into()),
            objectives: BTreeMap::new(),
            end_if: None,
            max_welfare: None,
            observations: BTreeMap::new(),
            measures: BTreeMap::new(),
            score: None,
        }
    }
}
