//! A game with parsed formulas.

use super::names::{Scope, Sort, Vocabulary, check_name, invalid};
use super::params::{Action, Aggregate, Assignment, Observed, Order, Params, Variable};
use polity_kernel::Invalid;
use polity_kernel::ask::Value;
use polity_kernel::environment::Move;
use polity_kernel::formula::{Formula, Kind};
use polity_kernel::interface::ActionArgument;

/// Largest number of players, and of rounds, of a game.
const PLAYERS: u32 = 1_000;
const ROUNDS: u32 = 10_000;

/// A phase.
pub(super) struct Step {
    /// Its actions, by number.
    pub acts: Vec<u16>,
    pub active_players: Option<Formula>,
    pub order: Order,
    pub repeat: Option<Formula>,
    pub update: Vec<Assign>,
}

/// A new value of a variable, which is named by its index.
pub(super) struct Assign {
    pub place: usize,
    pub to: Formula,
}

/// A game. The first quantities are the choices of the actions, in order; the variables follow.
pub(super) struct Game {
    pub vocabulary: Vocabulary,
    pub rounds: u32,
    pub random_roles: bool,
    /// The role of each seat, before roles are assigned at random.
    pub roles: Vec<u16>,
    /// For each action: its argument, and whether numbers are rounded to integers.
    pub actions: Vec<(ActionArgument, bool)>,
    /// State variables: index, value when a game begins, and when a round begins.
    pub variables: Vec<(usize, Option<Formula>, Option<Formula>)>,
    pub phases: Vec<Step>,
    pub payoff: Formula,
    pub objectives: Vec<Formula>,
    pub end_if: Option<Formula>,
    pub max_welfare: Option<Formula>,
    /// Observations: name, formula, default.
    pub observations: Vec<(String, Formula, f64)>,
    pub measures: Vec<(String, Aggregate, Formula)>,
    pub score: Option<Formula>,
    /// The best choices, by number of action.
    pub rights: Vec<(u16, Formula)>,
}

impl Game {
    pub fn seats(&self) -> usize {
        self.vocabulary.players as usize
    }

    /// Returns the choice of a move as a number.
    pub fn choice(&self, made: &Move) -> f64 {
        let integer = self.actions.get(usize::from(made.action)).is_some_and(|(_, integer)| *integer);
        match &made.argument {
            Value::Number(value) if integer => value.round(),
            Value::Number(value) => *value,
            Value::Choice(option) => f64::from(*option),
            _ => 1.0,
        }
    }

    /// Reads the formulas of a game.
    ///
    /// # Errors
    /// A value that does not fit, with its key.
    pub fn read(params: &Params) -> Result<Game, Invalid> {
        Invalid::within(1..=PLAYERS, "players", params.players)?;
        Invalid::within(1..=ROUNDS, "rounds", params.rounds)?;
        let mut vocabulary = Vocabulary { players: params.players, ..Vocabulary::default() };
        for (name, source) in &params.constants {
            let key = format!("constants.{name}");
            check_name(&key, name)?;
            let value = constant(&vocabulary, &key, source)?;
            vocabulary.constants.push((name.clone(), value));
        }
        let roles = roles(params, &mut vocabulary)?;
        let mut actions = Vec::new();
        for (name, action) in &params.actions {
            let key = format!("actions.{name}");
            let (argument, sort) = argument(&vocabulary, &key, action)?;
            vocabulary.add(&key, name, sort)?;
            actions.push((argument, action.integer));
        }
        Invalid::unless(!actions.is_empty(), "actions", "a game needs at least one action")?;
        let variables = variables(params, &mut vocabulary)?;
        let phases = phases(params, &mut vocabulary)?;
        let payoff = vocabulary.number("payoff", &params.payoff, Scope::Player)?;
        let mut objectives = Vec::new();
        for (name, objective) in &params.objectives {
            check_name(&format!("objectives.{name}"), name)?;
            objectives.push(vocabulary.number(&format!("objectives.{name}.value"), &objective.value, Scope::Player)?);
        }
        let end_if = params.end_if.as_ref();
        let end_if = end_if.map(|end| vocabulary.truth("end_if", end, Scope::Group)).transpose()?;
        let max_welfare = params.max_welfare.as_ref();
        let max_welfare = max_welfare.map(|most| vocabulary.number("max_welfare", most, Scope::Group)).transpose()?;
        let mut observations = Vec::new();
        for (name, Observed { value, default, .. }) in &params.observations {
            let key = format!("observations.{name}.value");
            observations.push((name.clone(), vocabulary.number(&key, value, Scope::Observation)?, *default));
        }
        let mut measures = Vec::new();
        for (name, measure) in &params.measures {
            check_name(&format!("measures.{name}"), name)?;
            let formula = vocabulary.number(&format!("measures.{name}.value"), &measure.value, Scope::Group)?;
            measures.push((name.clone(), measure.aggregate, formula));
        }
        vocabulary.measures = measures.iter().map(|(name, ..)| name.clone()).collect();
        let score = params.score.as_ref();
        let score = score.map(|score| vocabulary.number("score", score, Scope::Measures)).transpose()?;
        let mut rights = Vec::new();
        for (number, (name, action)) in (0u16..).zip(&params.actions) {
            if let Some(right) = &action.right {
                let key = format!("actions.{name}.right");
                rights.push((number, vocabulary.number(&key, right, Scope::Observation)?));
            }
        }
        Ok(Game {
            vocabulary,
            rounds: params.rounds,
            random_roles: params.random_roles,
            roles,
            actions,
            variables,
            phases,
            payoff,
            objectives,
            end_if,
            max_welfare,
            observations,
            measures,
            score,
            rights,
        })
    }
}

fn constant(vocabulary: &Vocabulary, key: &str, source: &super::params::Expression) -> Result<f64, Invalid> {
    let formula = vocabulary.number(key, source, Scope::Constants)?;
    let read = |code: u32| match super::names::Meaning::of(code) {
        super::names::Meaning::Constant(place) => vocabulary.constants[place].1,
        _ => f64::NAN,
    };
    let value = formula.value(&read, None);
    Invalid::unless(value.is_finite(), key, format!("the value is not a finite number ({value})"))?;
    Ok(value)
}

fn roles(params: &Params, vocabulary: &mut Vocabulary) -> Result<Vec<u16>, Invalid> {
    let mut roles = Vec::new();
    for (number, role) in (0u16..).zip(&params.roles) {
        let twice = vocabulary.roles.contains(&role.name);
        Invalid::unless(!twice, "roles", format!("the role `{}` appears twice", role.name))?;
        vocabulary.roles.push(role.name.clone());
        Invalid::within(0..=PLAYERS, &format!("roles[{number}].players"), role.players)?;
        roles.extend(std::iter::repeat_n(number, role.players as usize));
    }
    if roles.is_empty() && params.roles.is_empty() {
        roles = vec![0; params.players as usize];
    }
    let message = format!("the roles are for {} players, but the game has {}", roles.len(), params.players);
    Invalid::unless(roles.len() == params.players as usize, "roles", message)?;
    Ok(roles)
}

fn argument(vocabulary: &Vocabulary, key: &str, action: &Action) -> Result<(ActionArgument, Sort), Invalid> {
    match (&action.low, &action.high) {
        (Some(low), Some(high)) => {
            Invalid::unless(action.options.is_empty(), key, "give either bounds or options, not both")?;
            let low = constant(vocabulary, &format!("{key}.low"), low)?;
            let high = constant(vocabulary, &format!("{key}.high"), high)?;
            Invalid::unless(low < high, &format!("{key}.high"), format!("must be above `low` ({low}), is {high}"))?;
            Ok((ActionArgument::Number { low, high }, Sort::Number))
        }
        (None, None) if action.options.is_empty() => Ok((ActionArgument::Nothing, Sort::Number)),
        (None, None) => {
            Invalid::unless(action.options.len() > 1, key, "give at least two options")?;
            Ok((ActionArgument::Choice(action.options.clone()), Sort::Options(action.options.clone())))
        }
        _ => Err(invalid(key, "give both `low` and `high`, or neither")),
    }
}

fn sort_of(key: &str, formula: &Formula) -> Result<Sort, Invalid> {
    match formula.kind() {
        Kind::Number => Ok(Sort::Number),
        Kind::Truth => Ok(Sort::Truth),
        Kind::Text => Err(invalid(key, "a variable is a number or a truth value, not a text")),
    }
}

/// Refuses a value of another type than the variable's.
fn agree(key: &str, name: &str, sort: &Sort, formula: &Formula) -> Result<(), Invalid> {
    let found = sort_of(key, formula)?;
    let shown = |sort: &Sort| if *sort == Sort::Truth { "a truth value" } else { "a number" };
    let message = format!("`{name}` is {}, but the formula gives {}", shown(sort), shown(&found));
    Invalid::unless(found == *sort, key, message)
}

type Variables = Vec<(usize, Option<Formula>, Option<Formula>)>;

fn variables(params: &Params, vocabulary: &mut Vocabulary) -> Result<Variables, Invalid> {
    let mut variables = Vec::new();
    for (name, Variable { initial, each_round }) in &params.variables {
        let read = |of: &str, source: &Option<super::params::Expression>| {
            let key = format!("variables.{name}.{of}");
            source.as_ref().map(|source| vocabulary.read(&key, source, Scope::Start)).transpose()
        };
        let (initial, each_round) = (read("initial", initial)?, read("each_round", each_round)?);
        let key = format!("variables.{name}");
        let Some(first) = initial.as_ref().or(each_round.as_ref()) else {
            return Err(invalid(&key, "give `initial`, `each_round`, or both"));
        };
        let sort = sort_of(&key, first)?;
        if let Some(each_round) = &each_round {
            agree(&key, name, &sort, each_round)?;
        }
        let place = vocabulary.add(&key, name, sort)?;
        variables.push((place, initial, each_round));
    }
    Ok(variables)
}

fn phases(params: &Params, vocabulary: &mut Vocabulary) -> Result<Vec<Step>, Invalid> {
    let mut phases = Vec::new();
    for (i, phase) in params.phases.iter().enumerate() {
        let key = |part: &str| format!("phases[{i}].{part}");
        let mut acts = Vec::new();
        for name in &phase.actions {
            let number = params.actions.keys().position(|known| known == name);
            let Some(number) = number else {
                let known: Vec<&str> = params.actions.keys().map(String::as_str).collect();
                let message = format!("there is no action `{name}`; known actions: {}", known.join(", "));
                return Err(invalid(&key("actions"), message));
            };
            acts.push(number as u16);
        }
        let repeated = phase.repeat.is_some() && (phase.order == Order::Sequential || acts.is_empty());
        let message = "only a phase with simultaneous moves can be repeated";
        Invalid::unless(!repeated, &key("repeat"), message)?;
        let active = phase.active_players.as_ref();
        let active_players =
            active.map(|active| vocabulary.truth(&key("active_players"), active, Scope::Player)).transpose()?;
        let repeat = phase.repeat.as_ref();
        let repeat = repeat.map(|repeat| vocabulary.number(&key("repeat"), repeat, Scope::Group)).transpose()?;
        let mut update = Vec::new();
        for (j, Assignment { set, to }) in phase.update.iter().enumerate() {
            let key = |part: &str| format!("phases[{i}].update[{j}].{part}");
            let formula = vocabulary.read(&key("to"), to, Scope::Player)?;
            let place = match vocabulary.place(set) {
                Some(place) if place < params.actions.len() => {
                    return Err(invalid(&key("set"), format!("`{set}` is an action; only players choose its value")));
                }
                Some(place) => {
                    agree(&key("to"), set, &vocabulary.quantities[place].1, &formula)?;
                    place
                }
                None => vocabulary.add(&key("set"), set, sort_of(&key("to"), &formula)?)?,
            };
            update.push(Assign { place, to: formula });
        }
        phases.push(Step { acts, active_players, order: phase.order, repeat, update });
    }
    let acts = phases.iter().any(|phase| !phase.acts.is_empty());
    Invalid::unless(acts, "phases", "at least one phase needs an action")?;
    Ok(phases)
}
