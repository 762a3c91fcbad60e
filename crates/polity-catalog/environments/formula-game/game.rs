//! A game whose formulas have been read.

use super::names::{Scope, Sort, Vocabulary, check_name, invalid};
use super::params::{Assignment, Choosing, Order, Params, Quantity, Take};
use polity_kernel::Invalid;
use polity_kernel::ask::Value;
use polity_kernel::environment::Move;
use polity_kernel::formula::{Formula, Kind};
use polity_kernel::interface::ActionArgument;

/// The most players and the most rounds of a game.
const PLAYERS: u32 = 1_000;
const ROUNDS: u32 = 10_000;

/// A phase.
pub(super) struct Step {
    /// Actions, by number.
    pub acts: Vec<u16>,
    pub who: Option<Formula>,
    pub order: Order,
    pub repeat: Option<Formula>,
    pub then: Vec<Assign>,
}

/// A quantity, by place, gets a value.
pub(super) struct Assign {
    pub place: usize,
    pub to: Formula,
}

/// A game. The first quantities are the acts, in the order of the actions.
pub(super) struct Game {
    pub vocabulary: Vocabulary,
    pub rounds: u32,
    pub lot: bool,
    /// The role of each seat, before lots are drawn.
    pub roles: Vec<u16>,
    /// The arguments of the actions, and whether numbers are whole.
    pub actions: Vec<(ActionArgument, bool)>,
    /// Lasting quantities: place, value at the start and in each round.
    pub lasting: Vec<(usize, Option<Formula>, Option<Formula>)>,
    pub phases: Vec<Step>,
    pub payoff: Formula,
    pub end: Option<Formula>,
    pub best: Option<Formula>,
    /// What players see: name, formula, value if there is none.
    pub sights: Vec<(String, Formula, f64)>,
    pub measures: Vec<(String, Take, Formula)>,
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
        let whole = self.actions.get(usize::from(made.action)).is_some_and(|(_, whole)| *whole);
        match &made.argument {
            Value::Number(value) if whole => value.round(),
            Value::Number(value) => *value,
            Value::Choice(option) => f64::from(*option),
            _ => 1.0,
        }
    }

    /// Reads the formulas of a game.
    ///
    /// # Errors
    /// What does not fit, with its key.
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
        for (name, choosing) in &params.actions {
            let key = format!("actions.{name}");
            let (argument, sort) = argument(&vocabulary, &key, choosing)?;
            vocabulary.add(&key, name, sort)?;
            actions.push((argument, choosing.whole));
        }
        Invalid::unless(!actions.is_empty(), "actions", "a game needs at least one action")?;
        let lasting = lasting(params, &mut vocabulary)?;
        let phases = phases(params, &mut vocabulary)?;
        let payoff = vocabulary.number("payoff", &params.payoff, Scope::Player)?;
        let end = params.end.as_ref().map(|end| vocabulary.truth("end", end, Scope::Group)).transpose()?;
        let best = params.best.as_ref().map(|best| vocabulary.number("best", best, Scope::Group)).transpose()?;
        let mut sights = Vec::new();
        for (name, sight) in &params.sees {
            let key = format!("sees.{name}.is");
            sights.push((name.clone(), vocabulary.number(&key, &sight.is, Scope::Sight)?, sight.otherwise));
        }
        let mut measures = Vec::new();
        for (name, measure) in &params.measures {
            check_name(&format!("measures.{name}"), name)?;
            let formula = vocabulary.number(&format!("measures.{name}.of"), &measure.of, Scope::Group)?;
            measures.push((name.clone(), measure.take, formula));
        }
        vocabulary.measures = measures.iter().map(|(name, ..)| name.clone()).collect();
        let score = params.score.as_ref();
        let score = score.map(|score| vocabulary.number("score", score, Scope::Measures)).transpose()?;
        let mut rights = Vec::new();
        for (number, (name, choosing)) in (0u16..).zip(&params.actions) {
            if let Some(right) = &choosing.right {
                let key = format!("actions.{name}.right");
                rights.push((number, vocabulary.number(&key, right, Scope::Sight)?));
            }
        }
        Ok(Game {
            vocabulary,
            rounds: params.rounds,
            lot: params.lot,
            roles,
            actions,
            lasting,
            phases,
            payoff,
            end,
            best,
            sights,
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
    Invalid::unless(value.is_finite(), key, format!("the value would be {value}"))?;
    Ok(value)
}

fn roles(params: &Params, vocabulary: &mut Vocabulary) -> Result<Vec<u16>, Invalid> {
    let mut roles = Vec::new();
    for (number, role) in (0u16..).zip(&params.roles) {
        let twice = vocabulary.roles.contains(&role.name);
        Invalid::unless(!twice, "roles", format!("the role `{}` is there twice", role.name))?;
        vocabulary.roles.push(role.name.clone());
        Invalid::within(0..=PLAYERS, &format!("roles[{number}].players"), role.players)?;
        roles.extend(std::iter::repeat_n(number, role.players as usize));
    }
    if roles.is_empty() && params.roles.is_empty() {
        roles = vec![0; params.players as usize];
    }
    let message = format!("{} players have roles, but a game has {}", roles.len(), params.players);
    Invalid::unless(roles.len() == params.players as usize, "roles", message)?;
    Ok(roles)
}

fn argument(vocabulary: &Vocabulary, key: &str, choosing: &Choosing) -> Result<(ActionArgument, Sort), Invalid> {
    match (&choosing.low, &choosing.high) {
        (Some(low), Some(high)) => {
            Invalid::unless(choosing.options.is_empty(), key, "it has either bounds or options")?;
            let low = constant(vocabulary, &format!("{key}.low"), low)?;
            let high = constant(vocabulary, &format!("{key}.high"), high)?;
            Invalid::unless(low < high, &format!("{key}.high"), format!("must be above low ({low}), is {high}"))?;
            Ok((ActionArgument::Number { low, high }, Sort::Number))
        }
        (None, None) if choosing.options.is_empty() => Ok((ActionArgument::Nothing, Sort::Number)),
        (None, None) => {
            Invalid::unless(choosing.options.len() > 1, key, "there must be at least two options")?;
            Ok((ActionArgument::Choice(choosing.options.clone()), Sort::Options(choosing.options.clone())))
        }
        _ => Err(invalid(key, "it needs both `low` and `high`, or neither")),
    }
}

fn sort_of(key: &str, formula: &Formula) -> Result<Sort, Invalid> {
    match formula.kind() {
        Kind::Number => Ok(Sort::Number),
        Kind::Truth => Ok(Sort::Truth),
        Kind::Text => Err(invalid(key, "a quantity is a number, or true or false, not a text")),
    }
}

/// Refuses another kind of value than the quantity has.
fn agree(key: &str, name: &str, sort: &Sort, formula: &Formula) -> Result<(), Invalid> {
    let found = sort_of(key, formula)?;
    let shown = |sort: &Sort| if *sort == Sort::Truth { "true or false" } else { "a number" };
    let message = format!("`{name}` is {}, but the formula gives {}", shown(sort), shown(&found));
    Invalid::unless(found == *sort, key, message)
}

type Lasting = Vec<(usize, Option<Formula>, Option<Formula>)>;

fn lasting(params: &Params, vocabulary: &mut Vocabulary) -> Result<Lasting, Invalid> {
    let mut lasting = Vec::new();
    for (name, Quantity { start, each_round }) in &params.quantities {
        let read = |of: &str, source: &Option<super::params::Expression>| {
            let key = format!("quantities.{name}.{of}");
            source.as_ref().map(|source| vocabulary.read(&key, source, Scope::Start)).transpose()
        };
        let (start, each_round) = (read("start", start)?, read("each_round", each_round)?);
        let key = format!("quantities.{name}");
        let Some(first) = start.as_ref().or(each_round.as_ref()) else {
            return Err(invalid(&key, "it needs `start`, `each_round` or both"));
        };
        let sort = sort_of(&key, first)?;
        if let Some(each_round) = &each_round {
            agree(&key, name, &sort, each_round)?;
        }
        let place = vocabulary.add(&key, name, sort)?;
        lasting.push((place, start, each_round));
    }
    Ok(lasting)
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
                let message = format!("there is no action `{name}` (there are {})", known.join(", "));
                return Err(invalid(&key("actions"), message));
            };
            acts.push(number as u16);
        }
        let repeated = phase.repeat.is_some() && (phase.order == Order::InTurn || acts.is_empty());
        let message = "only a phase in which players act together can come more than once in a round";
        Invalid::unless(!repeated, &key("repeat"), message)?;
        let who = phase.who.as_ref().map(|who| vocabulary.truth(&key("who"), who, Scope::Player)).transpose()?;
        let repeat = phase.repeat.as_ref();
        let repeat = repeat.map(|repeat| vocabulary.number(&key("repeat"), repeat, Scope::Group)).transpose()?;
        let mut then = Vec::new();
        for (j, Assignment { set, to }) in phase.then.iter().enumerate() {
            let key = |part: &str| format!("phases[{i}].then[{j}].{part}");
            let formula = vocabulary.read(&key("to"), to, Scope::Player)?;
            let place = match vocabulary.place(set) {
                Some(place) if place < params.actions.len() => {
                    return Err(invalid(&key("set"), format!("`{set}` is an action, which only players choose")));
                }
                Some(place) => {
                    agree(&key("to"), set, &vocabulary.quantities[place].1, &formula)?;
                    place
                }
                None => vocabulary.add(&key("set"), set, sort_of(&key("to"), &formula)?)?,
            };
            then.push(Assign { place, to: formula });
        }
        phases.push(Step { acts, who, order: phase.order, repeat, then });
    }
    let acts = phases.iter().any(|phase| !phase.acts.is_empty());
    Invalid::unless(acts, "phases", "at least one phase needs an action")?;
    Ok(phases)
}
