//! What the formulas of a game may name.
//!
//! A name stands for a quantity of the player (`guess`), of the group (`guess.mean`), or for one of the last round (`last.guess`).
//! Its number holds all of that, so that a value is read without a table.

use super::params::Expression;
use polity_kernel::Invalid;
use polity_kernel::formula::{Formula, Kind, Name, Names};

/// The kind of a quantity.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sort {
    Number,
    Truth,
    /// One of some options, by place.
    Options(Vec<String>),
}

/// What is made of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Own,
    /// How many players have named this one, by seat.
    Named,
    /// 1 and the number of players with more.
    Rank,
    Mean,
    Sum,
    Min,
    Max,
    Second,
    Count,
    /// How many have the largest value.
    Highest,
    /// How many have the smallest value.
    Lowest,
    /// How many have chosen this option.
    Option,
    /// The value of the player at this seat.
    Player,
}

const SUFFIXES: [(&str, Of); 10] = [
    ("named", Of::Named),
    ("rank", Of::Rank),
    ("mean", Of::Mean),
    ("sum", Of::Sum),
    ("min", Of::Min),
    ("max", Of::Max),
    ("second", Of::Second),
    ("count", Of::Count),
    ("highest", Of::Highest),
    ("lowest", Of::Lowest),
];

const ALL: [Of; 13] = [
    Of::Own,
    Of::Named,
    Of::Rank,
    Of::Mean,
    Of::Sum,
    Of::Min,
    Of::Max,
    Of::Second,
    Of::Count,
    Of::Highest,
    Of::Lowest,
    Of::Option,
    Of::Player,
];

impl Of {
    /// Returns whether it is the same for all players.
    pub fn is_of_group(self) -> bool {
        !matches!(self, Of::Own | Of::Named | Of::Rank)
    }
}

/// Quantities that every game has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fixed {
    Round,
    Rounds,
    Players,
    Turn,
    Seat,
    Role,
    Acting,
    Total,
}

const FIXED: [(&str, Fixed); 8] = [
    ("round", Fixed::Round),
    ("rounds", Fixed::Rounds),
    ("players", Fixed::Players),
    ("turn", Fixed::Turn),
    ("seat", Fixed::Seat),
    ("role", Fixed::Role),
    ("acting", Fixed::Acting),
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
/// The largest number of quantities of a game, acts included.
pub(super) const MOST: usize = 0x1FF;

impl Meaning {
    /// Returns its number.
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

    /// Returns what a number stands for.
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

/// All names of a game, as far as they have been read.
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
    /// Constants alone.
    Constants,
    /// What a player is when a game begins. Draws.
    Start,
    /// All of a player. Draws.
    Player,
    /// All of a player, without draws.
    Sight,
    /// The group alone. Draws.
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
            return Err(invalid(key, format!("the name `{name}` is taken; choose another")));
        }
        if self.quantities.len() >= MOST {
            return Err(invalid(key, format!("a game has at most {MOST} actions and quantities")));
        }
        self.quantities.push((name.to_owned(), sort));
        Ok(self.quantities.len() - 1)
    }

    /// Reads a formula of any kind.
    pub fn read(&self, key: &str, source: &Expression, scope: Scope) -> Result<Formula, Invalid> {
        Formula::of_any_kind(&source.text(), &At(self, scope)).map_err(|wrong| invalid(key, wrong.to_string()))
    }

    /// Reads a formula of a truth.
    pub fn truth(&self, key: &str, source: &Expression, scope: Scope) -> Result<Formula, Invalid> {
        Formula::read(&source.text(), &At(self, scope), Kind::Truth).map_err(|wrong| invalid(key, wrong.to_string()))
    }

    /// Reads a formula of a number. A truth is 1 or 0.
    pub fn number(&self, key: &str, source: &Expression, scope: Scope) -> Result<Formula, Invalid> {
        let formula = self.read(key, source, scope)?;
        match formula.kind() {
            Kind::Number | Kind::Truth => Ok(formula),
            Kind::Text => Err(invalid(key, "the formula gives a text, but a number is needed")),
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
                Fixed::Turn => matches!(scope, Scope::Player | Scope::Sight | Scope::Group),
                Fixed::Seat => matches!(scope, Scope::Start | Scope::Player | Scope::Sight),
                Fixed::Role => {
                    matches!(scope, Scope::Start | Scope::Player | Scope::Sight) && !vocabulary.roles.is_empty()
                }
                Fixed::Acting | Fixed::Total => matches!(scope, Scope::Player | Scope::Sight),
            };
            return allowed.then_some(match fixed {
                Fixed::Role => Name::Text(code, &vocabulary.roles),
                Fixed::Acting => Name::Truth(code),
                _ => Name::Number(code),
            });
        }
        match scope {
            Scope::Player | Scope::Sight | Scope::Group => vocabulary.quantity(name, *scope),
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
                Scope::Player | Scope::Sight => known.push(name.clone()),
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

/// Refuses a name that formulas could not use.
pub(super) fn check_name(key: &str, name: &str) -> Result<(), Invalid> {
    let fits = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let starts = name.starts_with(|c: char| c.is_alphabetic());
    Invalid::unless(fits && starts, key, "a name has letters, digits, `_` and `-`, and begins with a letter")
}

pub(super) fn invalid(key: &str, message: impl Into<String>) -> Invalid {
    Invalid { key: key.into(), message: message.into() }
}
