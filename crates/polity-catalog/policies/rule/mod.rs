//! Behaviour written in the scenario, as formulas over what an agent is, sees and hears. See README.md.

mod names;
#[cfg(test)]
mod tests;

use names::{Stage, View, Vocabulary};
use polity_kernel::formula::{Formula, Kind, least, most};
use polity_kernel::interface::{ActionArgument, WorldColumn, named};
use polity_kernel::population::Population;
use polity_kernel::prelude::*;
use schemars::JsonSchema;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The most quantities of a state, and the most that are gathered from what is heard.
const MOST: usize = 8;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Rule>(files);
}

/// Parameters of the rule. Formulas may name the state, what is gathered in `heard`, what the world shows, the attributes of the agent
/// (also as `attribute.NAME`) and `round`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The quantities of an agent's state and their values at birth, from attributes and draws. At most 8. They are columns of the run.
    state: BTreeMap<String, Expression>,
    /// What an agent gathers from the numbers that it hears, by name. At most 8.
    heard: BTreeMap<String, Gather>,
    /// New values of quantities of the state. All of them are computed from the state before the turn.
    update: BTreeMap<String, Expression>,
    /// What the agent does, in this order, after the update.
    actions: Vec<Act>,
    /// The number that it tells those who hear it, after the update. They hear it in the next round.
    tell: Option<Expression>,
}

/// A formula, or a value.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// True or false.
    Truth(bool),
    /// A formula.
    Formula(String),
}

// By hand: an untagged enum would not say what is expected.
impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Expression;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a formula, a number, or true or false")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Expression, E> {
                Ok(Expression::Truth(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Expression, E> {
                Ok(Expression::Number(value as f64))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Expression, E> {
                Ok(Expression::Number(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Expression, E> {
                Ok(Expression::Number(value))
            }

            fn visit_str<E>(self, text: &str) -> Result<Expression, E> {
                Ok(Expression::Formula(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl Expression {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Expression::Number(value) => value.to_string().into(),
            Expression::Truth(value) => value.to_string().into(),
            Expression::Formula(text) => text.into(),
        }
    }
}

/// A quantity that is gathered from the numbers heard since the last turn.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gather {
    /// How the numbers become one.
    take: Take,
    /// What is taken of each number, a formula in which `heard` is the number. Default: the number itself.
    #[serde(default)]
    of: Option<Expression>,
    /// Which numbers count, a condition in which `heard` is the number. Default: all.
    #[serde(default, rename = "where")]
    filter: Option<Expression>,
}

/// How the numbers heard become one. Without a number, `count`, `share` and `sum` are 0, and `mean`, `min`, `max` and `one` are missing (`missing(NAME)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// How many count.
    Count,
    /// The share of all numbers that count.
    Share,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// One of them, drawn at random.
    One,
}

/// An action.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// An action of the world.
    act: String,
    /// When it is done, a condition. Default: always.
    #[serde(default)]
    when: Option<Expression>,
    /// Its number, which is brought within its bounds; or its option, by name or by number from 0.
    #[serde(default)]
    value: Option<Expression>,
}

/// The quantities of an agent's state; those that the rule does not have are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Values([f64; MOST]);

/// A quantity gathered from what is heard.
struct Gathered {
    take: Take,
    of: Option<Formula>,
    filter: Option<Formula>,
}

/// An action, bound to the world.
struct Bound {
    act: u16,
    when: Option<Formula>,
    value: Option<Value>,
}

/// The value of an action.
struct Value {
    formula: Formula,
    range: Range,
    /// The text, for messages.
    text: String,
}

/// What a value may be.
enum Range {
    Bounds(f64, f64),
    /// Options by the positions of a formula's texts.
    Texts(Box<[f64]>),
    /// The number of options.
    Options(usize),
}

/// A formula, with its text.
type Written = (Formula, String);

/// An agent that follows formulas.
pub struct Rule {
    vocabulary: Vocabulary,
    /// By quantity of the state: its name, its value at birth, its new value with its text.
    state: Vec<(String, Formula, Option<Written>)>,
    gathered: Vec<Gathered>,
    actions: Vec<Bound>,
    tell: Option<Written>,
}

impl Policy for Rule {
    const NAME: &'static str = "rule";
    const SUMMARY: &'static str = "Follow formulas that the scenario writes: state, update, actions";
    type Params = Params;
    type State = Values;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let Params { state, heard, update, actions, tell } = &params;
        if update.is_empty() && actions.is_empty() && tell.is_none() {
            return Err(invalid("actions", "a rule needs `actions`, `update` or `tell`; without them it does nothing"));
        }
        for (key, len) in [("state", state.len()), ("heard", heard.len())] {
            if len > MOST {
                return Err(invalid(key, format!("at most {MOST} quantities are possible, not {len}")));
            }
        }
        let mut vocabulary = Vocabulary::new(setup)?;
        let births: Vec<(String, Formula)> = state
            .iter()
            .map(|(name, source)| {
                let formula = vocabulary.read(Stage::Birth, &format!("state.{name}"), source)?;
                Ok((name.clone(), formula))
            })
            .collect::<Result<_, Invalid>>()?;
        for (i, (name, birth)) in births.iter().enumerate() {
            vocabulary.add_state(i, name, birth.kind())?;
            check_births(&vocabulary, name, birth, &setup.shared_context.population)?;
        }
        let gathered: Vec<Gathered> =
            heard.iter().map(|(name, source)| gather(&vocabulary, name, source)).collect::<Result<_, _>>()?;
        for (i, name) in heard.keys().enumerate() {
            vocabulary.add_gathered(i, name)?;
        }
        if let Some(name) = update.keys().find(|name| !state.contains_key(*name)) {
            let known: Vec<&str> = state.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "it has none".into() } else { format!("it has {}", known.join(", ")) };
            return Err(invalid(&format!("update.{name}"), format!("the state has no quantity `{name}` ({known})")));
        }
        let mut updates = Vec::new();
        for (name, birth) in births {
            let key = format!("update.{name}");
            let update = match update.get(&name) {
                Some(source) => {
                    Some((vocabulary.read_as(Stage::Turn, &key, source, birth.kind())?, source.text().into()))
                }
                None => None,
            };
            updates.push((name, birth, update));
        }
        let bind = |(i, act): (usize, &Act)| bind(&vocabulary, &format!("actions[{i}]"), act, setup);
        let actions = actions.iter().enumerate().map(bind).collect::<Result<_, _>>()?;
        let tell = match tell {
            Some(source) => Some((vocabulary.read_number(Stage::Turn, "tell", source)?, source.text().into())),
            None => None,
        };
        Ok(Rule { vocabulary, state: updates, gathered, actions, tell })
    }

    fn init_state(&self, person: Person<'_>, draws: &mut Draws) -> Values {
        let mut values = Values::default();
        let view = View { person: Some(person), ..View::default() };
        for (value, (_, birth, _)) in values.0.iter_mut().zip(&self.state) {
            *value = birth.value(&|name| self.vocabulary.value(name, &view), Some(draws));
        }
        values
    }

    fn tells_neighbours(&self) -> bool {
        self.tell.is_some()
    }

    fn state_columns(&self) -> Vec<WorldColumn> {
        let column = |(name, birth, _): &(String, Formula, _)| WorldColumn {
            name: name.clone().into(),
            doc: "quantity of a rule's state".into(),
            range: (birth.kind() == Kind::Truth).then_some((0.0, 1.0)),
            axis: None,
        };
        self.state.iter().map(column).collect()
    }

    fn state_value(&self, state: &Values, column: usize) -> f64 {
        state.0.get(column).copied().unwrap_or(f64::NAN)
    }

    async fn act(&self, state: &mut Values, turn: &mut Turn<'_>) -> Result<(), Fault> {
        // A draw can be one that the check at the start did not see.
        if let Some((value, (name, ..))) = state.0.iter().zip(&self.state).find(|(value, _)| !value.is_finite()) {
            return Err(Fault(format!("the state `{name}` is {value} from birth")));
        }
        let mut draws = turn.draws.clone();
        let mut gathered = [f64::NAN; MOST];
        for (value, gather) in gathered.iter_mut().zip(&self.gathered) {
            *value = self.gather(gather, state, turn, &mut draws);
        }
        let before = *state;
        for (value, (name, _, update)) in state.0.iter_mut().zip(&self.state) {
            if let Some((formula, text)) = update {
                *value = self.value(formula, &before, &gathered, turn, &mut draws);
                if !value.is_finite() {
                    return Err(Fault(format!("the state `{name}` would become {value}, by `{text}`")));
                }
            }
        }
        for Bound { act, when, value } in &self.actions {
            if when.as_ref().is_none_or(|when| self.value(when, state, &gathered, turn, &mut draws) == 1.0) {
                let value = match value {
                    Some(value) => value.of(self.value(&value.formula, state, &gathered, turn, &mut draws))?,
                    None => 0.0,
                };
                turn.act(*act, value);
            }
        }
        if let Some((formula, text)) = &self.tell {
            let value = self.value(formula, state, &gathered, turn, &mut draws);
            if !value.is_finite() {
                return Err(Fault(format!("the agent would tell {value}, by `{text}`")));
            }
            turn.tell_neighbours(0, value);
        }
        turn.draws = draws;
        Ok(())
    }
}

impl Rule {
    #[inline]
    fn value(
        &self,
        formula: &Formula,
        state: &Values,
        gathered: &[f64; MOST],
        turn: &Turn<'_>,
        draws: &mut Draws,
    ) -> f64 {
        let view = View::of(turn, &state.0, gathered);
        formula.value(&|name| self.vocabulary.value(name, &view), Some(draws))
    }

    /// Reduces the numbers heard to one.
    fn gather(&self, gather: &Gathered, state: &Values, turn: &Turn<'_>, draws: &mut Draws) -> f64 {
        let mut view = View::of(turn, &state.0, &[f64::NAN; MOST]);
        let mut all = 0u32;
        let numbers = turn.inbox().numbers().filter_map(|(_, heard)| {
            all += 1;
            view.heard = heard;
            let read = |name: u32| self.vocabulary.value(name, &view);
            let counts = gather.filter.as_ref().is_none_or(|filter| filter.holds(&read, None));
            counts.then(|| gather.of.as_ref().map_or(heard, |of| of.value(&read, None)))
        });
        match gather.take {
            Take::Count => numbers.count() as f64,
            Take::Share => {
                let count = numbers.count() as f64;
                count / f64::from(all.max(1))
            }
            Take::Sum => numbers.fold(0.0, |sum, number| sum + number),
            Take::Mean => {
                let (sum, count) = numbers.fold((0.0, 0u32), |(sum, count), number| (sum + number, count + 1));
                sum / f64::from(count)
            }
            Take::Min => numbers.reduce(least).unwrap_or(f64::NAN),
            Take::Max => numbers.reduce(most).unwrap_or(f64::NAN),
            Take::One => {
                // Each replaces those before it with the probability that makes all equally likely.
                let (mut chosen, mut seen) = (f64::NAN, 0u64);
                for number in numbers {
                    seen += 1;
                    if draws.below(seen) == 0 {
                        chosen = number;
                    }
                }
                chosen
            }
        }
    }
}

impl Value {
    /// The value of an act, from that of its formula.
    fn of(&self, value: f64) -> Result<f64, Fault> {
        let wrong =
            |what: &str| Err(Fault(format!("the value of an action would be {value}, {what}, by `{}`", self.text)));
        match &self.range {
            Range::Bounds(..) if !value.is_finite() => wrong("which is not a finite number"),
            Range::Bounds(low, high) => Ok(value.clamp(*low, *high)),
            Range::Texts(options) => match named(value, options.len()) {
                Some(text) => Ok(options[text as usize]),
                None => wrong("which is not an option"),
            },
            Range::Options(count) => match named(value, *count) {
                Some(option) => Ok(f64::from(option)),
                None => wrong(&format!("but there are options 0 to {}", count - 1)),
            },
        }
    }
}

fn invalid(key: &str, message: impl Into<String>) -> Invalid {
    Invalid { key: key.into(), message: message.into() }
}

/// Refuses a value at birth that is not finite for some row of the population. Each row is tried with one draw.
fn check_births(vocabulary: &Vocabulary, name: &str, birth: &Formula, population: &Population) -> Result<(), Invalid> {
    let rows = Population::from_table(population.table().clone());
    for id in 0..rows.len().max(1) {
        let view = View { person: Some(Person { id, population: &rows }), ..View::default() };
        let mut draws = Draws::new(0, polity_kernel::rng::Stream::Birth, 0, id);
        let value = birth.value(&|name| vocabulary.value(name, &view), Some(&mut draws));
        if !value.is_finite() {
            let message = format!("the value would be {value} for row {id} of the population, counted from 0");
            return Err(invalid(&format!("state.{name}"), message));
        }
    }
    Ok(())
}

fn gather(vocabulary: &Vocabulary, name: &str, source: &Gather) -> Result<Gathered, Invalid> {
    let Gather { take, of, filter } = source;
    let key = |part: &str| format!("heard.{name}.{part}");
    match (take, of, filter) {
        (Take::Count | Take::Share, Some(_), _) => {
            return Err(invalid(&key("of"), "numbers are only counted; `where` says which of them count"));
        }
        (Take::Share, _, None) => return Err(invalid(&key("take"), "a share needs `where`, which says what counts")),
        _ => {}
    }
    let of = of.as_ref().map(|of| vocabulary.read_number(Stage::Heard, &key("of"), of)).transpose()?;
    let filter = filter.as_ref();
    let filter =
        filter.map(|filter| vocabulary.read_as(Stage::Heard, &key("where"), filter, Kind::Truth)).transpose()?;
    Ok(Gathered { take: *take, of, filter })
}

fn bind(vocabulary: &Vocabulary, key: &str, act: &Act, setup: &PolicySetup<'_>) -> Result<Bound, Invalid> {
    let at = |part: &str| format!("{key}.{part}");
    let (number, argument) = setup.act(&act.act).map_err(|error| invalid(&at("act"), error.message))?;
    let when = act.when.as_ref();
    let when = when.map(|when| vocabulary.read_as(Stage::Turn, &at("when"), when, Kind::Truth)).transpose()?;
    let value = match (&argument, &act.value) {
        (ActionArgument::Nothing, None) => None,
        (ActionArgument::Nothing, Some(_)) => {
            return Err(invalid(&at("value"), format!("the action `{}` has no value", act.act)));
        }
        (ActionArgument::Number { .. } | ActionArgument::Choice(_), None) => {
            return Err(invalid(&at("act"), format!("the action `{}` needs a `value`", act.act)));
        }
        (ActionArgument::Number { low, high }, Some(source)) => {
            let formula = vocabulary.read_number(Stage::Turn, &at("value"), source)?;
            Some(Value { formula, range: Range::Bounds(*low, *high), text: source.text().into() })
        }
        (ActionArgument::Choice(options), Some(source)) => {
            let formula = vocabulary.read_option(&at("value"), source, options)?;
            let range = match formula.kind() {
                Kind::Text => {
                    let place = |text: &String| options.iter().position(|option| option == text).map(|i| i as f64);
                    Range::Texts(formula.texts().iter().map(|text| place(text).unwrap_or(f64::NAN)).collect())
                }
                Kind::Number | Kind::Truth => Range::Options(options.len()),
            };
            Some(Value { formula, range, text: source.text().into() })
        }
        (ActionArgument::Text | ActionArgument::Record(_) | ActionArgument::Seen { .. }, _) => {
            let message = format!("a rule cannot do `{}`: it names only numbers and options", act.act);
            return Err(invalid(&at("act"), message));
        }
    };
    Ok(Bound { act: number, when, value })
}
