//! What formulas of a rule may name, and where its values come from.

use super::{Expression, MOST, invalid};
use polity_kernel::formula::{Formula, Kind, Name, Names};
use polity_kernel::interface::{FieldKind, NumberSlot, Observation};
use polity_kernel::population::names::Attributes;
use polity_kernel::population::{Column, Table, is_missing};
use polity_kernel::prelude::*;
use std::sync::Arc;

/// Where the value of a name comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The state.
    State(usize),
    /// What is gathered from what is heard.
    Gathered(usize),
    /// The number heard.
    Heard,
    /// What the world shows.
    Seen(NumberSlot),
    /// An attribute, by the place of its column.
    Attribute(u32),
    /// The round.
    Round,
}

/// When a formula is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before the first turn.
    Birth,
    /// For a number that is heard.
    Heard,
    /// In a turn.
    Turn,
}

/// A quantity that formulas may name.
struct Entry {
    name: String,
    source: Source,
    kind: Kind,
}

/// All quantities.
pub(super) struct Vocabulary {
    entries: Vec<Entry>,
    /// The attributes.
    table: Arc<Table>,
}

/// The prefix by which attributes can be named in any case.
const ATTRIBUTE: &str = "attribute.";

impl Vocabulary {
    /// The quantities besides those of the rule itself.
    pub fn new(setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let mut entries = Vec::new();
        let mut push = |name: String, source: Source, kind: Kind| entries.push(Entry { name, source, kind });
        push("heard".into(), Source::Heard, Kind::Number);
        push("round".into(), Source::Round, Kind::Number);
        for field in setup.interface.observation.iter().filter(|field| field.kind == FieldKind::Number) {
            push(field.name.to_string(), Source::Seen(setup.number(&field.name)?), Kind::Number);
        }
        let table = setup.shared_context.population.table();
        for (place, (name, column)) in (0..).zip(table.columns()) {
            let kind = match column {
                Column::Number(_) => Kind::Number,
                Column::Text { .. } => Kind::Text,
            };
            push(name.to_owned(), Source::Attribute(place), kind);
            push(format!("{ATTRIBUTE}{name}"), Source::Attribute(place), kind);
        }
        Ok(Vocabulary { entries, table: table.clone() })
    }

    /// The words of an attribute.
    fn words(&self, name: &str) -> &[String] {
        let name = name.strip_prefix(ATTRIBUTE).unwrap_or(name);
        match self.table.columns().find(|(other, _)| *other == name) {
            Some((_, Column::Text { words, .. })) => words,
            _ => &[],
        }
    }

    /// Adds a quantity of the state.
    pub fn add_state(&mut self, place: usize, name: &str, kind: Kind) -> Result<(), Invalid> {
        let key = format!("state.{name}");
        if kind == Kind::Text {
            return Err(invalid(&key, "a state is a number, or true or false, not a text"));
        }
        self.add(&key, name, Source::State(place), kind)
    }

    /// Adds a quantity that is gathered from what is heard.
    pub fn add_gathered(&mut self, place: usize, name: &str) -> Result<(), Invalid> {
        self.add(&format!("heard.{name}"), name, Source::Gathered(place), Kind::Number)
    }

    fn add(&mut self, key: &str, name: &str, source: Source, kind: Kind) -> Result<(), Invalid> {
        let fits = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        if name.is_empty() || !fits || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(invalid(key, "a name has letters, digits, `_` and `-`, and does not begin with a digit"));
        }
        // Attributes can still be named with their prefix.
        let taken = self.entries.iter().find(|entry| entry.name == name).map(|entry| match entry.source {
            Source::State(_) => "the state has a quantity of this name",
            Source::Gathered(_) => "something that is heard has this name",
            Source::Heard | Source::Round => "the name has a meaning of its own",
            Source::Seen(_) => "the world shows a quantity of this name",
            Source::Attribute(_) => "an attribute has this name",
        });
        match taken {
            Some(what) => Err(invalid(key, format!("{what}; choose another"))),
            None => {
                self.entries.push(Entry { name: name.to_owned(), source, kind });
                Ok(())
            }
        }
    }

    /// Reads a formula of any kind.
    pub fn read(&self, stage: Stage, key: &str, source: &Expression) -> Result<Formula, Invalid> {
        Formula::of_any_kind(&source.text(), &At { vocabulary: self, stage })
            .map_err(|wrong| invalid(key, wrong.to_string()))
    }

    /// Reads a formula of one kind.
    pub fn read_as(&self, stage: Stage, key: &str, source: &Expression, kind: Kind) -> Result<Formula, Invalid> {
        // 0 and 1 are truths, too.
        let text = match source {
            Expression::Number(value) if kind == Kind::Truth && (*value == 0.0 || *value == 1.0) => {
                (*value == 1.0).to_string().into()
            }
            _ => source.text(),
        };
        Formula::read(&text, &At { vocabulary: self, stage }, kind).map_err(|wrong| invalid(key, wrong.to_string()))
    }

    /// Reads a formula of a number. A truth is 1 or 0.
    pub fn read_number(&self, stage: Stage, key: &str, source: &Expression) -> Result<Formula, Invalid> {
        let formula = self.read(stage, key, source)?;
        match formula.kind() {
            Kind::Number | Kind::Truth => Ok(formula),
            Kind::Text => Err(invalid(key, "the formula gives a text, but a number is needed")),
        }
    }

    /// Reads a formula of one of these options.
    pub fn read_option(&self, key: &str, source: &Expression, options: &[String]) -> Result<Formula, Invalid> {
        // An option by itself needs no quotes.
        let quoted;
        let source = match source {
            Expression::Formula(text) if options.contains(text) && !text.contains('\'') => {
                quoted = Expression::Formula(format!("'{text}'"));
                &quoted
            }
            _ => source,
        };
        let formula = self.read(Stage::Turn, key, source)?;
        match formula.texts().iter().find(|text| formula.kind() == Kind::Text && !options.contains(*text)) {
            Some(other) => {
                let message = format!("`{other}` is not an option of the action, which has {}", options.join(", "));
                Err(invalid(key, message))
            }
            None => Ok(formula),
        }
    }

    /// The value of a name.
    #[inline]
    pub fn value(&self, name: u32, view: &View<'_>) -> f64 {
        match self.entries[name as usize].source {
            Source::State(place) => view.state[place],
            Source::Gathered(place) => view.gathered[place],
            Source::Heard => view.heard,
            Source::Seen(slot) => view.observation.map_or(f64::NAN, |observation| observation.number(slot)),
            Source::Attribute(column) => view.person.map_or(f64::NAN, |Person { id, population }| {
                let attributes = Attributes { table: population.table(), draw: false };
                attributes.cell(column, population.row(id) as usize)
            }),
            Source::Round => view.round,
        }
    }
}

/// The names of a vocabulary that have values at a stage.
struct At<'a> {
    vocabulary: &'a Vocabulary,
    stage: Stage,
}

impl At<'_> {
    fn has(&self, source: Source) -> bool {
        match (source, self.stage) {
            (Source::Attribute(_), _) => true,
            (Source::Heard, stage) => stage == Stage::Heard,
            (Source::Gathered(_), stage) => stage == Stage::Turn,
            (Source::State(_) | Source::Seen(_) | Source::Round, stage) => stage != Stage::Birth,
        }
    }
}

impl Names for At<'_> {
    fn find(&self, name: &str) -> Option<Name<'_>> {
        let place =
            |name: &str| self.vocabulary.entries.iter().position(|entry| entry.name == name && self.has(entry.source));
        // A minus is an operator; names with one can be written with `_`.
        let place = place(name).or_else(|| place(&name.replace('_', "-")))?;
        let entry = &self.vocabulary.entries[place];
        Some(match entry.kind {
            Kind::Number => Name::Number(place as u32),
            Kind::Truth => Name::Truth(place as u32),
            Kind::Text => Name::Text(place as u32, self.vocabulary.words(&entry.name)),
        })
    }

    fn known(&self) -> Vec<String> {
        let known =
            self.vocabulary.entries.iter().filter(|entry| self.has(entry.source) && !entry.name.starts_with(ATTRIBUTE));
        known.map(|entry| entry.name.replace('-', "_")).collect()
    }

    fn may_draw(&self) -> bool {
        self.stage != Stage::Heard
    }

    fn is_missing(&self, text: &str) -> bool {
        is_missing(text)
    }
}

/// What formulas read in a turn. At birth there are only attributes.
pub(super) struct View<'a> {
    pub state: &'a [f64; MOST],
    pub gathered: &'a [f64; MOST],
    pub heard: f64,
    pub round: f64,
    pub observation: Option<Observation<'a>>,
    pub person: Option<Person<'a>>,
}

impl<'a> View<'a> {
    #[inline]
    pub fn of(turn: &'a Turn<'_>, state: &'a [f64; MOST], gathered: &'a [f64; MOST]) -> Self {
        View {
            state,
            gathered,
            heard: f64::NAN,
            round: f64::from(turn.round),
            observation: Some(turn.observation),
            person: Some(turn.person()),
        }
    }
}

impl Default for View<'_> {
    fn default() -> Self {
        const NONE: &[f64; MOST] = &[f64::NAN; MOST];
        View { state: NONE, gathered: NONE, heard: f64::NAN, round: f64::NAN, observation: None, person: None }
    }
}
