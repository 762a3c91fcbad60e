//! Reads formulas, by recursive descent.

use super::{DEEPEST, Formula, Function, Kind, MISSING, Name, Names, Op, Wrong};
use crate::expression::{number_end, wrong};
use crate::tree::nearest;

/// Maximum length of a formula, in characters.
const LONGEST: usize = 2_000;
/// Maximum nesting of parentheses, signs and powers.
const NESTED: usize = 50;
/// The names of all functions, with those that draw at the end.
const FUNCTIONS: [&str; 18] = [
    "sqrt", "abs", "min", "max", "clamp", "round", "floor", "ceil", "ln", "log10", "exp", "sin", "cos", "tan",
    "missing", "uniform", "normal", "chance",
];
/// The functions that draw.
const DRAWING: [&str; 3] = ["uniform", "normal", "chance"];
/// Reserved words, which cannot be names.
const RESERVED: [&str; 8] = ["and", "or", "not", "in", "if", "else", "true", "false"];

/// A part that has been read: its kind, and if it is a single quantity of texts, the texts that it may be.
struct Part {
    kind: Kind,
    at: usize,
    /// The texts of a column, as positions in the formula's texts.
    of: Option<Vec<u32>>,
    /// The position of a text that is written in the formula.
    written: Option<u32>,
}

impl Part {
    fn new(kind: Kind, at: usize) -> Self {
        Part { kind, at, of: None, written: None }
    }
}

/// A formula while it is read.
pub(super) struct Parser<'a> {
    characters: Vec<char>,
    /// The next character.
    at: usize,
    names: &'a dyn Names,
    ops: Vec<Op>,
    texts: Vec<String>,
    /// Values that are kept at this point of the evaluation.
    kept: usize,
    nested: usize,
    draws: bool,
}

impl<'a> Parser<'a> {
    pub fn new(text: &str, names: &'a dyn Names) -> Result<Self, Wrong> {
        let characters: Vec<char> = text.chars().collect();
        if characters.len() > LONGEST {
            let message = format!("a formula has at most {LONGEST} characters, this one {}", characters.len());
            return wrong(LONGEST, message);
        }
        Ok(Parser { characters, at: 0, names, ops: Vec::new(), texts: Vec::new(), kept: 0, nested: 0, draws: false })
    }

    pub fn formula(mut self) -> Result<Formula, Wrong> {
        let whole = self.choice()?;
        match self.next() {
            None => {}
            Some('=') => return wrong(self.at, "write `==` to compare"),
            Some('&') => return wrong(self.at, "write `and`"),
            Some('|') => return wrong(self.at, "write `or`"),
            Some('!') => return wrong(self.at, "write `not`, or `!=` for unequal"),
            Some('<' | '>') => return wrong(self.at, "a comparison has two sides; write `18 <= age and age < 30`"),
            Some(')') => return wrong(self.at, "there is no `(` for this `)`"),
            Some(',') => return wrong(self.at, "a `,` only separates arguments; write decimals with a point, 0.5"),
            Some(_) => return wrong(self.at, "an operator is missing here"),
        }
        let Parser { ops, texts, draws, .. } = self;
        Ok(Formula { ops: ops.into(), texts, kind: whole.kind, draws })
    }

    /// Returns the next character after spaces, which stays the next one.
    fn next(&mut self) -> Option<char> {
        while self.characters.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.characters.get(self.at).copied()
    }

    /// Takes one of these signs. Longer ones come first.
    fn sign_of(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        self.next();
        let rest = &self.characters[self.at..];
        let found = signs.iter().find(|sign| sign.chars().eq(rest.iter().copied().take(sign.chars().count())))?;
        self.at += found.chars().count();
        Some(found)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.next() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// Returns the word that stands next, without taking it.
    fn word(&mut self) -> String {
        self.next();
        let rest = &self.characters[self.at..];
        rest.iter().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.')).collect()
    }

    fn eat_word(&mut self, wanted: &str) -> bool {
        let found = self.word() == wanted;
        self.at += if found { wanted.chars().count() } else { 0 };
        found
    }

    /// Adds a step that takes `takes` values and puts one.
    fn step(&mut self, op: Op, takes: usize) -> Result<(), Wrong> {
        self.ops.push(op);
        self.kept = self.kept + 1 - takes;
        match self.kept > DEEPEST {
            true => wrong(self.at, "the formula is too deep; write it in several steps"),
            false => Ok(()),
        }
    }

    fn nest<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Wrong>) -> Result<T, Wrong> {
        self.nested += 1;
        if self.nested > NESTED {
            return wrong(self.at, format!("parentheses, signs and powers are nested deeper than {NESTED} levels"));
        }
        let read = read(self)?;
        self.nested -= 1;
        Ok(read)
    }

    fn choice(&mut self) -> Result<Part, Wrong> {
        let value = self.either()?;
        if !self.eat_word("if") {
            return Ok(value);
        }
        let condition = self.either()?;
        needs(&condition, Kind::Truth, "the condition after `if`")?;
        if !self.eat_word("else") {
            return wrong(self.at, "an `else` is missing; write `A if CONDITION else B`");
        }
        let otherwise = self.nest(Self::choice)?;
        if otherwise.kind != value.kind {
            let message = format!(
                "both sides of `if … else` must be of one kind, but these are {} and {}",
                value.kind, otherwise.kind
            );
            return wrong(otherwise.at, message);
        }
        self.step(Op::Choose, 3)?;
        Ok(Part::new(value.kind, value.at))
    }

    fn either(&mut self) -> Result<Part, Wrong> {
        self.joined("or", Op::Or, Self::both)
    }

    fn both(&mut self) -> Result<Part, Wrong> {
        self.joined("and", Op::And, Self::negation)
    }

    fn joined(&mut self, word: &str, op: Op, part: fn(&mut Self) -> Result<Part, Wrong>) -> Result<Part, Wrong> {
        let first = part(self)?;
        while self.eat_word(word) {
            needs(&first, Kind::Truth, &format!("the left of `{word}`"))?;
            let next = part(self)?;
            needs(&next, Kind::Truth, &format!("the right of `{word}`"))?;
            self.step(op.clone(), 2)?;
        }
        Ok(first)
    }

    fn negation(&mut self) -> Result<Part, Wrong> {
        if !self.eat_word("not") {
            return self.comparison();
        }
        let part = self.nest(Self::negation)?;
        needs(&part, Kind::Truth, "what follows `not`")?;
        self.step(Op::Not, 1)?;
        Ok(Part::new(Kind::Truth, part.at))
    }

    fn comparison(&mut self) -> Result<Part, Wrong> {
        let left = self.sum()?;
        let start = self.at;
        if let Some(sign) = self.sign_of(&["==", "!=", "<=", ">=", "<", ">"]) {
            let right = self.sum()?;
            let equality = matches!(sign, "==" | "!=");
            if left.kind != right.kind {
                let message = format!("{} cannot be compared with {}", left.kind, right.kind);
                return wrong(start, message);
            }
            if !equality {
                needs(&left, Kind::Number, &format!("the left of `{sign}`"))?;
            }
            self.known(&left, &right)?;
            self.known(&right, &left)?;
            let op = match sign {
                "==" => Op::Equal,
                "!=" => Op::Unequal,
                "<" => Op::Less,
                "<=" => Op::AtMost,
                ">" => Op::Greater,
                _ => Op::AtLeast,
            };
            self.step(op, 2)?;
            return Ok(Part::new(Kind::Truth, left.at));
        }
        let negated = self.word() == "not";
        let before = self.at;
        if negated {
            self.eat_word("not");
        }
        if self.eat_word("in") {
            return self.membership(&left, negated);
        }
        self.at = before;
        Ok(left)
    }

    /// Checks that a text that is compared with a quantity is one that it can be.
    fn known(&self, quantity: &Part, written: &Part) -> Result<(), Wrong> {
        let (Some(of), Some(text)) = (&quantity.of, written.written) else { return Ok(()) };
        if of.contains(&text) {
            return Ok(());
        }
        let shown = |code: &u32| self.texts.get(*code as usize).map_or("", String::as_str);
        let known: Vec<&str> = of.iter().map(shown).collect();
        let text = shown(&text);
        let near =
            nearest(text, known.iter().copied()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        wrong(written.at, format!("it is never `{text}`{near} (it is {})", listed(&known)))
    }

    fn membership(&mut self, left: &Part, negated: bool) -> Result<Part, Wrong> {
        if !self.eat('(') {
            return wrong(self.at, "a list is missing after `in`: (\"a\", \"b\")");
        }
        let mut list = Vec::new();
        loop {
            let (start, kept) = (self.ops.len(), self.kept);
            let part = self.sum()?;
            needs(&part, left.kind, "an entry of the list after `in`")?;
            self.known(left, &part)?;
            let op = self.ops.pop();
            let (Some(Op::Constant(value)), true) = (op, self.ops.len() == start) else {
                return wrong(part.at, "the list after `in` holds numbers or texts");
            };
            self.kept = kept;
            list.push(value);
            if !self.eat(',') {
                break;
            }
        }
        if !self.eat(')') {
            return wrong(self.at, "a `)` is missing after the list");
        }
        self.step(if negated { Op::NotIn(list.into()) } else { Op::In(list.into()) }, 1)?;
        Ok(Part::new(Kind::Truth, left.at))
    }

    fn sum(&mut self) -> Result<Part, Wrong> {
        self.arithmetic(&["+", "-"], Self::product)
    }

    fn product(&mut self) -> Result<Part, Wrong> {
        self.arithmetic(&["*", "/", "%"], Self::signed)
    }

    fn arithmetic(
        &mut self,
        signs: &[&'static str],
        part: fn(&mut Self) -> Result<Part, Wrong>,
    ) -> Result<Part, Wrong> {
        let mut first = part(self)?;
        while let Some(sign) = self.sign_of(signs) {
            needs(&first, Kind::Number, &format!("the left of `{sign}`"))?;
            let next = part(self)?;
            needs(&next, Kind::Number, &format!("the right of `{sign}`"))?;
            let op = match sign {
                "+" => Op::Add,
                "-" => Op::Subtract,
                "*" => Op::Multiply,
                "/" => Op::Divide,
                _ => Op::Remainder,
            };
            self.step(op, 2)?;
            first = Part::new(Kind::Number, first.at);
        }
        Ok(first)
    }

    fn signed(&mut self) -> Result<Part, Wrong> {
        match self.sign_of(&["-", "+"]) {
            None => self.power(),
            Some(sign) => {
                let part = self.nest(Self::signed)?;
                needs(&part, Kind::Number, &format!("what follows `{sign}`"))?;
                match (sign, self.ops.last_mut()) {
                    ("+", _) => {}
                    (_, Some(Op::Constant(value))) => *value = -*value,
                    _ => self.step(Op::Negate, 1)?,
                }
                Ok(Part::new(Kind::Number, part.at))
            }
        }
    }

    fn power(&mut self) -> Result<Part, Wrong> {
        let base = self.operand()?;
        if self.sign_of(&["**", "^"]).is_none() {
            return Ok(base);
        }
        needs(&base, Kind::Number, "the base of a power")?;
        let exponent = self.nest(Self::signed)?;
        needs(&exponent, Kind::Number, "the exponent of a power")?;
        self.step(Op::Power, 2)?;
        Ok(Part::new(Kind::Number, base.at))
    }

    fn operand(&mut self) -> Result<Part, Wrong> {
        let next = self.next();
        let at = self.at;
        match next {
            Some('(') => {
                self.at += 1;
                let part = self.nest(Self::choice)?;
                match self.eat(')') {
                    true => Ok(Part { at, ..part }),
                    false => wrong(self.at, "a `)` is missing"),
                }
            }
            Some(quote @ ('"' | '\'')) => {
                let text = self.quoted(quote)?;
                let code = self.intern(&text);
                self.step(Op::Constant(f64::from(code)), 0)?;
                Ok(Part { written: Some(code), ..Part::new(Kind::Text, at) })
            }
            Some('`') => {
                let name = self.quoted('`')?;
                self.quantity(&name, at)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.named(),
            Some(c) => wrong(at, format!("`{c}` is unexpected; a number, a name, a text or `(` is needed here")),
            None => wrong(at, "the formula ends too early; a number, a name, a text or `(` is needed here"),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, Wrong> {
        let start = self.at;
        self.at += 1;
        let rest = &self.characters[self.at..];
        match rest.iter().position(|c| *c == quote) {
            Some(length) => {
                let text = rest[..length].iter().collect();
                self.at += length + 1;
                Ok(text)
            }
            None => wrong(start, format!("the closing {quote} is missing")),
        }
    }

    fn number(&mut self) -> Result<Part, Wrong> {
        let start = self.at;
        self.at = number_end(&self.characters, start);
        let digits: String = self.characters[start..self.at].iter().collect();
        match digits.parse::<f64>().ok().filter(|value| value.is_finite()) {
            Some(value) => {
                self.step(Op::Constant(value), 0)?;
                Ok(Part::new(Kind::Number, start))
            }
            None => wrong(start, format!("`{digits}` is not a number")),
        }
    }

    fn named(&mut self) -> Result<Part, Wrong> {
        let (name, at) = (self.word(), self.at);
        match name.as_str() {
            "true" | "false" => {
                self.at += name.len();
                self.step(Op::Constant(f64::from(u8::from(name == "true"))), 0)?;
                return Ok(Part::new(Kind::Truth, at));
            }
            word if RESERVED.contains(&word) => {
                return wrong(at, format!("a number, a name, a text or `(` is needed before `{word}`"));
            }
            _ => self.at += name.chars().count(),
        }
        match self.next() == Some('(') {
            true => self.call(&name, at),
            false => self.quantity(&name, at),
        }
    }

    fn quantity(&mut self, name: &str, at: usize) -> Result<Part, Wrong> {
        match self.names.find(name) {
            Some(Name::Number(number)) => {
                self.step(Op::Load(number), 0)?;
                Ok(Part::new(Kind::Number, at))
            }
            Some(Name::Truth(number)) => {
                self.step(Op::Load(number), 0)?;
                Ok(Part::new(Kind::Truth, at))
            }
            Some(Name::Text(number, texts)) => {
                let code = |text: &String| if self.names.is_missing(text) { MISSING } else { self.intern(text) };
                let mut own: Vec<u32> = texts.iter().map(code).collect();
                self.step(Op::LoadText(number, own.clone().into()), 0)?;
                own.retain(|code| *code != MISSING);
                Ok(Part { of: Some(own), ..Part::new(Kind::Text, at) })
            }
            None => {
                let known = self.names.known();
                let mut all = known.iter().map(String::as_str).chain(FUNCTIONS);
                let near = match FUNCTIONS.contains(&name) {
                    true => format!("; a `(` is missing after the function `{name}`"),
                    false => nearest(name, &mut all).map_or(String::new(), |near| format!("; did you mean `{near}`?")),
                };
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let known = if known.is_empty() {
                    "there are none here".into()
                } else {
                    format!("there are {}", listed(&known))
                };
                wrong(at, format!("there is no quantity `{name}`{near} ({known})"))
            }
        }
    }

    fn intern(&mut self, text: &str) -> u32 {
        let found = self.texts.iter().position(|known| known == text);
        let place = found.unwrap_or_else(|| {
            self.texts.push(text.to_owned());
            self.texts.len() - 1
        });
        place as u32
    }

    fn call(&mut self, name: &str, at: usize) -> Result<Part, Wrong> {
        if !FUNCTIONS.contains(&name) {
            let near = nearest(name, FUNCTIONS).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return wrong(at, format!("there is no function `{name}`{near} (there are {})", FUNCTIONS.join(", ")));
        }
        if DRAWING.contains(&name) && !self.names.may_draw() {
            return wrong(at, format!("`{name}` draws a random number, which is not possible here"));
        }
        self.eat('(');
        let mut count = 0;
        if self.next() != Some(')') {
            loop {
                let part = self.nest(Self::choice)?;
                if name != "missing" {
                    needs(&part, Kind::Number, &format!("an argument of {name}"))?;
                }
                count += 1;
                // Of many arguments, two are kept at once.
                if count >= 2 && matches!(name, "min" | "max") {
                    self.step(if name == "min" { Op::Min } else { Op::Max }, 2)?;
                }
                if !self.eat(',') {
                    break;
                }
            }
        }
        if !self.eat(')') {
            return wrong(self.at, format!("a `)` is missing after the arguments of {name}"));
        }
        self.apply(name, count, at)
    }

    /// Adds the step of a function whose arguments have been read.
    fn apply(&mut self, name: &str, count: usize, at: usize) -> Result<Part, Wrong> {
        let takes = |least: usize, most: usize| match (least..=most).contains(&count) {
            true => Ok(()),
            false if least == most => {
                wrong(at, format!("{name} needs {least} argument{}, not {count}", if least == 1 { "" } else { "s" }))
            }
            false => wrong(at, format!("{name} needs at least {least} argument, not {count}")),
        };
        let function = |of: Function| takes(1, 1).map(|()| Op::Apply(of));
        let op = match name {
            "min" | "max" => {
                takes(1, usize::MAX)?;
                return Ok(Part::new(Kind::Number, at));
            }
            "clamp" => takes(3, 3).map(|()| Op::Clamp)?,
            "uniform" | "normal" if count == 0 => {
                self.step(Op::Constant(0.0), 0)?;
                self.step(Op::Constant(1.0), 0)?;
                if name == "uniform" { Op::Uniform } else { Op::Normal }
            }
            "uniform" => takes(2, 2).map(|()| Op::Uniform)?,
            "normal" => takes(2, 2).map(|()| Op::Normal)?,
            "chance" => takes(1, 1).map(|()| Op::Chance)?,
            "missing" => takes(1, 1).map(|()| Op::Missing)?,
            "sqrt" => function(Function::Sqrt)?,
            "abs" => function(Function::Abs)?,
            "round" => function(Function::Round)?,
            "floor" => function(Function::Floor)?,
            "ceil" => function(Function::Ceil)?,
            "ln" => function(Function::Ln)?,
            "log10" => function(Function::Log10)?,
            "exp" => function(Function::Exp)?,
            "sin" => function(Function::Sin)?,
            "cos" => function(Function::Cos)?,
            _ => function(Function::Tan)?,
        };
        self.draws |= DRAWING.contains(&name);
        let takes = match op {
            Op::Clamp => 3,
            Op::Uniform | Op::Normal => 2,
            _ => 1,
        };
        self.step(op, takes)?;
        Ok(Part::new(if matches!(name, "chance" | "missing") { Kind::Truth } else { Kind::Number }, at))
    }
}

fn needs(part: &Part, kind: Kind, what: &str) -> Result<(), Wrong> {
    match part.kind == kind {
        true => Ok(()),
        false => wrong(part.at, format!("{what} must be {kind}, but it is {}", part.kind)),
    }
}

/// Lists some names, for a message.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
