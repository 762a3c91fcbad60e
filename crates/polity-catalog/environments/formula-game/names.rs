//! Names that the formulas of a game may use.
//!
//! A name stands for a value of the player (`guess`), a statistic of all players (`guess.mean`), or either of them in the last round (`last.guess`).
//! Its code holds all of that, so a value is read without a table.

use super::params::Expression;
use polity_kernel::Invalid;
use polity_kernel::formula::{Formula, Kind, Name, Names};

/// The type of a quantity.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sort {
    Number,
    Truth,
    /// One of some options, by index.
    Options(Vec<String>),
}

/// What a name reads from a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Own,
    /// How many players have chosen this player's seat.
    Received,
    /// 1 plus the number of players with a larger value.
    Rank,
    Mean,
    Sum,
    Min,
    Max,
    Second,
    Count,
    /// How many players have the largest value.
    MaxCount,
    /// How many players have the smallest value.
    MinCount,
    /// How many players have chosen this option.
    Option,
    /// The value of the player at this seat.
    Player,
}

const SUFFIXES: [(&str, Of); 10] = [
    ("received", Of::Received),
    ("rank", Of::Rank),
    ("mean", Of::Mean),
    ("sum", Of::Sum),
    ("min", Of::Min),
    ("max", Of::Max),
    ("second", Of::Second),
    ("count", Of::Count),
    ("max_count", Of::MaxCount),
    ("min_count", Of::MinCount),
];

const ALL: [Of; 13] = [
    Of::Own,
    Of::Received,
    Of::Rank,
    Of::Mean,
    Of::Sum,
    Of::Min,
    Of::Max,
    Of::Second,
    Of::Count,
    Of::MaxCount,
    Of::MinCount,
    Of::Option,
    Of::Player,
];

impl Of {
    /// Returns whether it is the same for all players.
    pub fn is_of_group(self) -> bool {
        !matches!(self, Of::Own | Of::Received | Of::Rank)
    }
}

/// Values that every game has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fixed {
    Round,
    Rounds,
    Players,
    Iteration,
    Seat,
    Role,
    Acted,
    Total,
}

const FIXED: [(&str, Fixed); 8] = [
    ("round", Fixed::Round),
    ("rounds", Fixed::Rounds),
    ("players", Fixed::Players),
    ("iteration", Fixed::Iteration),
    ("seat", Fixed::Seat),
    ("role", Fixed::Role),
    ("acted", Fixed::Acted),
    ("total", Fixed::Total),
];

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Fixed(Fixed),
    Constant(usize),
    Measure(usize),
    Quantity { last: bool, place: usize, of: Of, argument: u32 },
}

const LAST: u32 = 1 << 31;
const SPECIAL: u32 = 0x1FF << 22;
/// The largest number of quantities in a game: actions and variables.
pub(super) const MOST: usize = 0x1FF;

impl Meaning {
    /// Returns its code.
    fn code(self) -> u32 {
        match self {
            Meaning::Fixed(fixed) => SPECIAL | fixed as u32,
            Meaning::Constant(place) => SPECIAL | 1 << 16 | place as u32,
            Meaning::Measure(place) => SPECIAL | 2 << 16 | place as u32,
            Meaning::Quantity { last, place, of, argument } => {
                (if last { LAST } else { 0 }) | (place as u32) << 22 | (of as u32) << 16 | argument & 0xFFFF
            }
        }
    }

    /// Returns the meaning of a code.
    pub fn of(code: u32) -> Meaning {
        let (argument, middle) = (code & 0xFFFF, code >> 16 & 0x3F);
        if code & SPECIAL == SPECIAL {
            return match middle {
                0 => Meaning::Fixed(FIXED[argument as usize].1),
                1 => Meaning::Constant(argument as usize),
                _ => Meaning::Measure(argument as usize),
            };
        }
        let place = (code >> 22 & 0x1FF) as usize;
        Meaning::Quantity { last: code & LAST != 0, place, of: ALL[middle as usize], argument }
    }
}

/// The names of a game that have been read so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Vocabulary {
    pub constants: Vec<(String, f64)>,
    pub quantities: Vec<(String, Sort)>,
    pub measures: Vec<String>,
    pub roles: Vec<String>,
    pub players: u32,
}

/// Which names a formula may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Only constants.
    Constants,
    /// Constants, the seat and the role. Random draws are allowed.
    Start,
    /// Values of a player and of the group. Random draws are allowed.
    Player,
    /// Values of a player and of the group, without random draws.
    Observation,
    /// Only values of the group. Random draws are allowed.
    Group,
    /// Measures and constants.
    Measures,
}

struct At<'a>(&'a Vocabulary, Scope);

fn same(written: &str, name: &str) -> bool {
    written == name || written.replace('_', "-") == name.replace('_', "-")
}

impl Vocabulary {
    /// Returns the place of a quantity.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.quantities.iter().position(|(known, _)| same(name, known))
    }

    /// Adds a quantity.
    pub fn add(&mut self, key: &str, name: &str, sort: Sort) -> Result<usize, Invalid> {
        check_name(key, name)?;
        let taken = FIXED.iter().any(|(fixed, _)| same(name, fixed)) || same(name, "last");
        let taken = taken || self.constants.iter().any(|(constant, _)| same(name, constant));
        if taken || self.place(name).is_some() {
            return Err(invalid(key, format!("the name `{name}` is already in use; choose another")));
        }
        if self.quantities.len() >= MOST {
            return Err(invalid(key, format!("a game has at most {MOST} actions and variables together")));
        }
        self.quantities.push((name.to_owned(), sort));
        Ok(self.quantities.len() - 1)
    }

    /// Reads a formula of any type.
    pub fn read(&self, key: &str, source: &Expression, scope: Scope) -> Result<Formula, Invalid> {
        Formula::of_any_kind(&source.text(), &At(self, scope)).map_err(|wrong| invalid(key, wrong.to_string()))
    }

    /// Reads a condition.
    pub fn truth(&self, key: &str, source: &Expression, scope: Scope) -> Result<Formula, Invalid> {
        Formula::read(&source.text(), &At(self, scope), Kind::Truth).map_err(|wrong| invalid(key, wrong.to_string()))
    }

    /// Reads a formula that gives a number; true counts as 1, false as 0.
    pub fn number(&self, key: &str, source: &Expression, scope: Scope) -> Result<Formula, Invalid> {
        let formula = self.read(key, source, scope)?;
        match formula.kind() {
            Kind::Number | Kind::Truth => Ok(formula),
            Kind::Text => Err(invalid(key, "the formula gives a text; a number is needed")),
        }
    }

    fn quantity(&self, written: &str, scope: Scope) -> Option<Name<'_>> {
        let (last, rest) = match written.strip_prefix("last.") {
            Some(rest) => (true, rest),
            None => (false, written),
        };
        let (name, suffix) = rest.split_once('.').map_or((rest, None), |(name, suffix)| (name, Some(suffix)));
        let place = self.place(name)?;
        let sort = &self.quantities[place].1;
        let (of, argument) = match suffix {
            None => (Of::Own, 0),
            Some(suffix) => match SUFFIXES.iter().find(|(known, _)| *known == suffix) {
                Some((_, of)) => (*of, 0),
                None => match sort {
                    Sort::Options(options) if options.iter().any(|option| same(suffix, option)) => {
                        (Of::Option, options.iter().position(|option| same(suffix, option))? as u32)
                    }
                    _ => {
                        let seat = suffix.strip_prefix('p')?.parse().ok()?;
                        ((1..=self.players).contains(&seat)).then_some((Of::Player, seat - 1))?
                    }
                },
            },
        };
        if matches!(scope, Scope::Group) && !of.is_of_group() {
            return None;
        }
        let code = Meaning::Quantity { last, place, of, argument }.code();
        Some(match (sort, of) {
            (Sort::Truth, Of::Own | Of::Player) => Name::Truth(code),
            (Sort::Options(options), Of::Own | Of::Player) => Name::Text(code, options),
            _ => Name::Number(code),
        })
    }
}

impl Names for At<'_> {
    fn find(&self, name: &str) -> Option<Name<'_>> {
        let At(vocabulary, scope) = self;
        if let Some(place) = vocabulary.constants.iter().position(|(constant, _)| same(name, constant)) {
            return Some(Name::Number(Meaning::Constant(place).code()));
        }
        if *scope == Scope::Measures {
            let place = vocabulary.measures.iter().position(|measure| same(name, measure));
            if let Some(place) = place {
                return Some(Name::Number(Meaning::Measure(place).code()));
            }
        }
        if let Some((_, fixed)) = FIXED.iter().find(|(fixed, _)| same(name, fixed)) {
            let code = Meaning::Fixed(*fixed).code();
            let allowed = match fixed {
                Fixed::Rounds | Fixed::Players => *scope != Scope::Constants,
                Fixed::Round => !matches!(scope, Scope::Constants),
                Fixed::Iteration => matches!(scope, Scope::Player | Scope::Observation | Scope::Group),
                Fixed::Seat => matches!(scope, Scope::Start | Scope::Player | Scope::Observation),
                Fixed::Role => {
                    matches!(scope, Scope::Start | Scope::Player | Scope::Observation) && !vocabulary.roles.is_empty()
                }
                Fixed::Acted | Fixed::Total => matches!(scope, Scope::Player | Scope::Observation),
            };
            return allowed.then_some(match fixed {
                Fixed::Role => Name::Text(code, &vocabulary.roles),
                Fixed::Acted => Name::Truth(code),
                _ => Name::Number(code),
            });
        }
        match scope {
            Scope::Player | Scope::Observation | Scope::Group => vocabulary.quantity(name, *scope),
            Scope::Constants | Scope::Start | Scope::Measures => None,
        }
    }

    fn known(&self) -> Vec<String> {
        let At(vocabulary, scope) = self;
        let mut known: Vec<String> = vocabulary.constants.iter().map(|(name, _)| name.clone()).collect();
        if *scope == Scope::Measures {
            known.extend(vocabulary.measures.iter().cloned());
        }
        for (name, _) in &vocabulary.quantities {
            match scope {
                Scope::Player | Scope::Observation => known.push(name.clone()),
                Scope::Group => known.push(format!("{name}.mean")),
                Scope::Constants | Scope::Start | Scope::Measures => {}
            }
        }
        known.extend(FIXED.iter().map(|(name, _)| (*name).to_owned()).filter(|name| self.find(name).is_some()));
        known.into_iter().map(|name| name.replace('-', "_")).collect()
    }

    fn may_draw(&self) -> bool {
        matches!(self.1, Scope::Start | Scope::Player | Scope::Group)
    }
}

/// Refuses a name that could not be written in a formula.
pub(super) fn check_name(key: &str, name: &str) -> Result<(), Invalid> {
    let fits = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let starts = name.starts_with(|c: char| c.is_alphabetic());
    Invalid::unless(fits && starts, key, "a name consists of letters, digits, `_` and `-`, and begins with a letter")
}

pub(super) fn invalid(key: &str, message: impl Into<String>) -> Invalid {
    Invalid { key: key.into(), message: message.into() }
}
