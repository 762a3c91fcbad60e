//! Formulas: typed expressions over named quantities. They are checked once and evaluated many times, without allocation.
//!
//! ```text
//! formula    = choice
//! choice     = either [ "if" either "else" choice ]
//! either     = both { "or" both }
//! both       = negation { "and" negation }
//! negation   = "not" negation | comparison
//! comparison = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum | [ "not" ] "in" "(" text { "," text } ")" ]
//! sum        = product { ("+" | "-") product }
//! product    = sign { ("*" | "/" | "%") sign }
//! sign       = { "-" | "+" } power
//! power      = operand [ ("^" | "**") sign ]
//! operand    = number | text | "true" | "false" | name | function "(" [ choice { "," choice } ] ")" | "(" choice ")"
//! ```
//!
//! A text stands in single or double quotes. A name with other characters than letters, digits, `_` and `.` stands in backquotes.
//! A formula has a kind: number, truth or text. Both sides of `if … else …` are evaluated, so a formula takes the same draws in
//! every case. A comparison with a missing value (NaN) is missing, and so is what depends on it: `false and` a missing truth is false,
//! `true or` one is true, as in R and SQL.
//!
//! ```
//! use polity_base::formula::{Formula, Kind, Name, Names};
//!
//! struct People;
//! impl Names for People {
//!     fn find(&self, name: &str) -> Option<Name<'_>> {
//!         (name == "age").then_some(Name::Number(0))
//!     }
//!     fn known(&self) -> Vec<String> {
//!         vec!["age".into()]
//!     }
//! }
//!
//! let formula = Formula::read("0.1 if age < 30 else 0.2", &People, Kind::Number)?;
//! assert_eq!(formula.value(&|_| 25.0, None), 0.1);
//! let wrong = Formula::read("aeg < 30", &People, Kind::Truth).unwrap_err();
//! assert_eq!(wrong.to_string(), "character 1: there is no quantity `aeg`; did you mean `age`? (there are age)");
//! # Ok::<(), polity_base::formula::Wrong>(())
//! ```

mod parser;
#[cfg(test)]
mod tests;

pub use crate::expression::Wrong;

use crate::expression::remainder;
use crate::rng::Draws;
use parser::Parser;
use std::fmt;

/// The position of a text that stands for a missing value.
const MISSING: u32 = u32::MAX;
/// Maximum number of values that are kept at once while a formula is evaluated.
const DEEPEST: usize = 32;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// True or false; as a number, 1 or 0.
    Truth,
    /// A text: one of a formula's [`Formula::texts`].
    Text,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Number => "a number",
            Kind::Truth => "true or false",
            Kind::Text => "a text",
        })
    }
}

/// What a name stands for. The number is passed on when the value is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Name<'a> {
    /// A number.
    Number(u32),
    /// True or false, read as 1 or 0.
    Truth(u32),
    /// A text, read as a position in this list.
    Text(u32, &'a [String]),
}

/// The quantities that a formula may name.
pub trait Names {
    /// Returns what a name stands for.
    fn find(&self, name: &str) -> Option<Name<'_>>;
    /// Returns all names, for messages.
    fn known(&self) -> Vec<String>;
    /// Returns whether a formula may draw random numbers.
    fn may_draw(&self) -> bool {
        false
    }
    /// Returns whether a text stands for a missing value.
    fn is_missing(&self, _text: &str) -> bool {
        false
    }
}

/// A function of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Function {
    Sqrt,
    Abs,
    Round,
    Floor,
    Ceil,
    Ln,
    Log10,
    Exp,
    Sin,
    Cos,
    Tan,
}

/// A step of a formula. It takes its inputs from the top of a stack of values, and puts its result there.
#[derive(Clone, Debug, PartialEq)]
enum Op {
    Constant(f64),
    Load(u32),
    /// A text, whose position in its own list becomes one in the formula's list, or [`MISSING`].
    LoadText(u32, Box<[u32]>),
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Not,
    And,
    Or,
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    /// Whether the value is one of these.
    In(Box<[f64]>),
    /// Whether the value is none of these.
    NotIn(Box<[f64]>),
    /// Chooses the first of three if the second is true, else the third.
    Choose,
    Missing,
    Min,
    Max,
    /// Limits the first of three values to the range between the other two.
    Clamp,
    Apply(Function),
    Uniform,
    Normal,
    Chance,
}

/// An expression that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    ops: Box<[Op]>,
    texts: Vec<String>,
    kind: Kind,
    draws: bool,
}

impl Formula {
    /// Reads a formula that must have this kind.
    ///
    /// # Errors
    /// Unreadable text, unknown names (with the nearest known one), operands of the wrong kind, a text that a compared quantity
    /// never has, and formulas that are too long or too deep.
    pub fn read(text: &str, names: &dyn Names, kind: Kind) -> Result<Formula, Wrong> {
        let formula = Formula::of_any_kind(text, names)?;
        if formula.kind != kind {
            let hint = match (formula.kind, kind) {
                (Kind::Truth, Kind::Number) => "; write `1 if … else 0`",
                (Kind::Number, Kind::Truth) => "; compare it with something, as in `age < 30`",
                _ => "",
            };
            let message = format!("the formula gives {}, but {kind} is needed{hint}", formula.kind);
            return Err(Wrong { character: 1, message });
        }
        Ok(formula)
    }

    /// Reads a formula of any kind.
    ///
    /// # Errors
    /// Those of [`Formula::read`].
    pub fn of_any_kind(text: &str, names: &dyn Names) -> Result<Formula, Wrong> {
        Parser::new(text, names)?.formula()
    }

    /// Returns the kind of its value.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the texts that its value may be, if it is a text: a value is a position in this list.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns the numbers of the names that it reads, each once, ascending.
    #[must_use]
    pub fn names(&self) -> Vec<u32> {
        let name = |op: &Op| match op {
            Op::Load(name) | Op::LoadText(name, _) => Some(*name),
            _ => None,
        };
        let mut names: Vec<u32> = self.ops.iter().filter_map(name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns whether it draws random numbers.
    #[must_use]
    pub fn draws(&self) -> bool {
        self.draws
    }

    /// Returns its value: a number, 1 or 0 for a truth, or the position of a text. It is NaN if it depends on a missing value, and not
    /// finite if an operation has no finite result, such as a division by 0. `read` gives the value of a name; draws need `draws`.
    #[must_use]
    pub fn value<F: Fn(u32) -> f64 + ?Sized>(&self, read: &F, mut draws: Option<&mut Draws>) -> f64 {
        let mut stack = Stack { values: [0.0; DEEPEST], len: 0 };
        for op in &self.ops {
            match op {
                Op::Constant(value) => stack.push(*value),
                Op::Load(name) => stack.push(read(*name)),
                Op::LoadText(name, texts) => {
                    let text = texts.get(read(*name) as usize).filter(|text| **text != MISSING);
                    stack.push(text.map_or(f64::NAN, |text| f64::from(*text)));
                }
                Op::Negate => stack.unary(|a| -a),
                Op::Add => stack.binary(|a, b| a + b),
                Op::Subtract => stack.binary(|a, b| a - b),
                Op::Multiply => stack.binary(|a, b| a * b),
                Op::Divide => stack.binary(|a, b| a / b),
                Op::Remainder => stack.binary(remainder),
                Op::Power => stack.binary(libm::pow),
                Op::Not => stack.unary(|a| truth_of(a.is_nan(), a == 0.0)),
                Op::And => stack.binary(|a, b| if a == 0.0 || b == 0.0 { 0.0 } else { a * b }),
                Op::Or => stack.binary(|a, b| if a == 1.0 || b == 1.0 { 1.0 } else { a + b }),
                Op::Equal => stack.compare(|a, b| a == b),
                Op::Unequal => stack.compare(|a, b| a != b),
                Op::Less => stack.compare(|a, b| a < b),
                Op::AtMost => stack.compare(|a, b| a <= b),
                Op::Greater => stack.compare(|a, b| a > b),
                Op::AtLeast => stack.compare(|a, b| a >= b),
                Op::In(list) => stack.unary(|a| truth_of(a.is_nan(), list.contains(&a))),
                Op::NotIn(list) => stack.unary(|a| truth_of(a.is_nan(), !list.contains(&a))),
                Op::Choose => {
                    let (otherwise, condition) = (stack.pop(), stack.pop());
                    stack.unary(|value| match condition {
                        condition if condition.is_nan() => f64::NAN,
                        0.0 => otherwise,
                        _ => value,
                    });
                }
                Op::Missing => stack.unary(|a| truth_of(false, a.is_nan())),
                Op::Min => stack.binary(least),
                Op::Max => stack.binary(most),
                Op::Clamp => {
                    let (high, low) = (stack.pop(), stack.pop());
                    stack.unary(|a| least(most(a, low), high));
                }
                Op::Apply(function) => stack.unary(|a| function.of(a)),
                Op::Uniform => {
                    let unit = draws.as_deref_mut().map_or(f64::NAN, Draws::unit);
                    stack.binary(|low, high| low + (high - low) * unit);
                }
                Op::Normal => {
                    let normal = draws.as_deref_mut().map_or(f64::NAN, Draws::normal);
                    stack.binary(|mean, deviation| mean + deviation * normal);
                }
                Op::Chance => {
                    let unit = draws.as_deref_mut().map_or(f64::NAN, Draws::unit);
                    stack.unary(|p| truth_of(p.is_nan(), unit < p));
                }
            }
        }
        stack.pop()
    }

    /// Returns whether a truth holds. A missing one does not.
    #[must_use]
    pub fn holds<F: Fn(u32) -> f64 + ?Sized>(&self, read: &F, draws: Option<&mut Draws>) -> bool {
        self.value(read, draws) == 1.0
    }
}

impl Function {
    fn of(self, x: f64) -> f64 {
        match self {
            Function::Sqrt => x.sqrt(),
            Function::Abs => x.abs(),
            Function::Round => x.round(),
            Function::Floor => x.floor(),
            Function::Ceil => x.ceil(),
            Function::Ln => libm::log(x),
            Function::Log10 => libm::log10(x),
            Function::Exp => libm::exp(x),
            Function::Sin => libm::sin(x),
            Function::Cos => libm::cos(x),
            Function::Tan => libm::tan(x),
        }
    }
}

/// The stack of values during an evaluation. The parser has checked that it never overflows or runs empty.
struct Stack {
    values: [f64; DEEPEST],
    len: usize,
}

impl Stack {
    #[inline]
    fn push(&mut self, value: f64) {
        self.values[self.len] = value;
        self.len += 1;
    }

    #[inline]
    fn pop(&mut self) -> f64 {
        self.len -= 1;
        self.values[self.len]
    }

    #[inline]
    fn unary(&mut self, of: impl FnOnce(f64) -> f64) {
        let last = &mut self.values[self.len - 1];
        *last = of(*last);
    }

    #[inline]
    fn binary(&mut self, of: impl FnOnce(f64, f64) -> f64) {
        let right = self.pop();
        self.unary(|left| of(left, right));
    }

    /// Compares two values. A comparison with a missing one is missing.
    #[inline]
    fn compare(&mut self, of: impl FnOnce(f64, f64) -> bool) {
        self.binary(|a, b| truth_of(a.is_nan() || b.is_nan(), of(a, b)));
    }
}

/// A truth as a number: NaN if it is missing.
#[inline]
fn truth_of(missing: bool, holds: bool) -> f64 {
    if missing { f64::NAN } else { f64::from(u8::from(holds)) }
}

/// Returns the smaller of two numbers, or NaN if one is missing.
#[inline]
#[must_use]
pub fn least(a: f64, b: f64) -> f64 {
    if b < a || b.is_nan() { b } else { a }
}

/// Returns the larger of two numbers, or NaN if one is missing.
#[inline]
#[must_use]
pub fn most(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}
