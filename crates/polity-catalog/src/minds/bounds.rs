//! What a template may make: so many bytes of text and lists, whatever it does.
//!
//! Templates come with scenarios, from anybody. The engine counts their steps (fuel), and one step may double a text. So a template is
//! rewritten before it is rendered: every step that makes a text or a list is charged for what it makes, or is ours. The match over all
//! instructions is without a default: a version of the engine with another one does not compile before somebody has decided about it.

use minijinja::functions::Function;
use minijinja::machinery::{
    CompiledTemplate, Instruction, Instructions, TemplateConfig, Token, eval, make_string_output, tokenize,
};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{FunctionResult, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, escape_formatter, filters};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that the rendering of one template may make, all texts and lists on the way together.
pub const MOST_BYTES: usize = 16 << 20;
/// Steps of a template at most, so that none runs for ever.
const FUEL: u64 = 3_000_000;
/// Words and signs between `{{` and `}}`, or `{%` and `%}`, at most: the engine goes as deep as an expression is long.
const MOST_TOKENS: usize = 1_000;
/// `elif`s of a template at most, for the same reason.
const MOST_BRANCHES: usize = 200;
/// How deep lists may lie in lists.
const DEEPEST: usize = 32;
/// What an entry of a list takes.
const ENTRY: usize = 32;

fn wrong(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, why.into())
}

fn too_much() -> Error {
    wrong(format!("it makes more than {} MB of text and lists; what a model is told is far shorter", MOST_BYTES >> 20))
}

thread_local! {
    /// Bytes that the rendering under way on this thread may still make. A cell of the engine's state would be looked up at each step.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

fn spend(bytes: usize) -> Result<(), Error> {
    LEFT.set(LEFT.get().checked_sub(bytes).ok_or_else(too_much)?);
    Ok(())
}

/// The bytes of a value with all that lies in it, counted as often as it lies there; an error where they are more than `most`.
fn weight(value: &Value, most: usize) -> Result<usize, Error> {
    fn count(value: &Value, depth: usize, left: &mut usize) -> Result<(), Error> {
        if depth > DEEPEST {
            return Err(wrong(format!("lists lie more than {DEEPEST} deep in each other")));
        }
        let own = ENTRY + value.as_str().map_or(0, str::len) + value.as_bytes().map_or(0, <[u8]>::len);
        *left = left.checked_sub(own).ok_or_else(too_much)?;
        if !matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) {
            return Ok(());
        }
        for item in value.try_iter()? {
            if value.kind() == ValueKind::Map {
                count(&value.get_item(&item)?, depth + 1, left)?;
            }
            count(&item, depth + 1, left)?;
        }
        Ok(())
    }
    let mut left = most;
    count(value, 0, &mut left)?;
    Ok(most - left)
}

/// Charges a value that was made.
fn charge(made: Value) -> Result<Value, Error> {
    spend(weight(&made, LEFT.get())?)?;
    Ok(made)
}

/// A text of so many bytes at most.
struct Bounded {
    text: String,
    most: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len() + text.len() > self.most {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// A text that is charged.
fn text(write: impl FnOnce(&mut Bounded) -> fmt::Result) -> Result<String, Error> {
    let mut bounded = Bounded { text: String::new(), most: LEFT.get() };
    write(&mut bounded).map_err(|_| too_much())?;
    spend(bounded.text.len())?;
    Ok(bounded.text)
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn defined(values: [&Value; 2]) -> Result<(), Error> {
    match values.into_iter().any(Value::is_undefined) {
        true => Err(Error::from(ErrorKind::UndefinedError)),
        false => Ok(()),
    }
}

/// `a ~ b`
fn concatenated(a: Value, b: Value) -> Result<Value, Error> {
    defined([&a, &b])?;
    text(|out| write!(out, "{a}{b}")).map(Value::from)
}

/// `a + b`
fn sum(a: Value, b: Value) -> Result<Value, Error> {
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        return text(|out| write!(out, "{a}{b}")).map(Value::from);
    }
    if is_list(&a) && is_list(&b) {
        spend(a.len().unwrap_or(0).saturating_add(b.len().unwrap_or(0)).saturating_mul(ENTRY))?;
        let made = a.try_iter()?.chain(b.try_iter()?).collect::<Vec<Value>>();
        return charge(Value::from(made));
    }
    arithmetic(&a, &b, "+", i128::checked_add, |a, b| a + b)
}

/// `a * b`
fn product(a: Value, b: Value) -> Result<Value, Error> {
    let (what, times) = if b.as_str().is_some() || is_list(&b) { (&b, &a) } else { (&a, &b) };
    let times = || times.as_usize().ok_or_else(|| wrong("texts and lists are repeated by whole numbers"));
    if let Some(what) = what.as_str() {
        let times = times()?;
        spend(what.len().saturating_mul(times))?;
        return Ok(Value::from(what.repeat(times)));
    }
    if is_list(what) {
        let times = times()?;
        spend(weight(what, LEFT.get())?.saturating_mul(times))?;
        let items: Vec<Value> = what.try_iter()?.collect();
        return Ok((0..times).flat_map(|_| items.iter().cloned()).collect());
    }
    arithmetic(&a, &b, "*", i128::checked_mul, |a, b| a * b)
}

/// What the engine does with numbers.
fn arithmetic(
    a: &Value,
    b: &Value,
    sign: &str,
    whole: fn(i128, i128) -> Option<i128>,
    real: fn(f64, f64) -> f64,
) -> Result<Value, Error> {
    let is_real = |value: &Value| value.is_number() && !value.is_integer();
    let integer = |value: &Value| i128::try_from(value.clone()).ok().filter(|_| !is_real(value));
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        let made = whole(a, b).ok_or_else(|| wrong(format!("unable to calculate {a} {sign} {b}")))?;
        return Ok(i64::try_from(made).map_or_else(|_| Value::from(made), Value::from));
    }
    match (is_real(a) || is_real(b), f64::try_from(a.clone()), f64::try_from(b.clone())) {
        (true, Ok(a), Ok(b)) => Ok(Value::from(real(a, b))),
        _ => Err(wrong(format!("tried to use {sign} operator on unsupported types {} and {}", a.kind(), b.kind()))),
    }
}

/// Puts a value into a namespace. One that held lists could hold itself.
fn scalar(value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable | ValueKind::Plain => {
            Err(wrong("a namespace holds texts and numbers, no lists or maps"))
        }
        _ => Ok(value),
    }
}

/// What a value is written as where it stands.
fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    if !matches!(state.auto_escape(), AutoEscape::None) {
        // A character becomes six at most.
        spend(weight(value, LEFT.get())?.saturating_mul(6))?;
        return escape_formatter(out, state, value);
    }
    let written = match value.as_str() {
        Some(words) => {
            spend(words.len())?;
            out.write_str(words)
        }
        None => {
            let words = text(|out| write!(out, "{value}"))?;
            out.write_str(&words)
        }
    };
    written.map_err(Error::from)
}

/// What a filter will make of its arguments, as far as that can be much more than they are; in bytes, from above.
type Foreseen = fn(&[Value], usize) -> Result<usize, Error>;

fn nothing(_: &[Value], _: usize) -> Result<usize, Error> {
    Ok(0)
}

fn length(value: Option<&Value>) -> usize {
    value.map_or(0, |value| value.as_str().map_or_else(|| value.to_string().len(), str::len))
}

/// An argument by its place or its name.
fn argument(args: &[Value], place: usize, name: &str) -> Option<Value> {
    let named = args.last().filter(|last| last.is_kwargs()).and_then(|last| last.get_attr(name).ok());
    let placed = args.get(place).filter(|value| !value.is_kwargs()).cloned();
    placed.or(named).filter(|value| !value.is_undefined())
}

fn replaced(args: &[Value], _: usize) -> Result<usize, Error> {
    let Some(words) = args.first().and_then(Value::as_str) else { return Ok(0) };
    let from = args.get(1).and_then(Value::as_str).unwrap_or_default();
    Ok(words.len().saturating_add(words.matches(from).count().saturating_mul(length(args.get(2)))))
}

fn indented(args: &[Value], _: usize) -> Result<usize, Error> {
    let width = argument(args, 1, "width").map_or(Some(4), |width| width.as_usize()).unwrap_or(usize::MAX);
    let lines = args.first().and_then(Value::as_str).map_or(1, |words| words.split('\n').count());
    Ok(lines.saturating_mul(width))
}

/// Widths and precisions of a format are written in it, or are arguments.
fn formatted(args: &[Value], most: usize) -> Result<usize, Error> {
    let words = args.first().and_then(Value::as_str).unwrap_or_default();
    let number = |digits: &str| digits.parse::<usize>().unwrap_or(if digits.is_empty() { 0 } else { usize::MAX });
    let mut sum = words.split(|c: char| !c.is_ascii_digit()).map(number).fold(0, usize::saturating_add);
    if words.contains('*') {
        let widths = args.iter().filter_map(|value| value.as_i64().map(|n| n.unsigned_abs() as usize));
        sum = widths.fold(sum, usize::saturating_add);
    }
    let given = args.iter().skip(1).map(|value| weight(value, most)).sum::<Result<usize, Error>>()?;
    Ok(sum.saturating_add(given.saturating_mul(1 + words.matches('%').count() / args.len().max(1))))
}

fn joined(args: &[Value], most: usize) -> Result<usize, Error> {
    let Some(list) = args.first() else { return Ok(0) };
    let entries = match list.as_str() {
        Some(words) => words.len(),
        None => list.try_iter().map_or(0, Iterator::count),
    };
    let between = length(argument(args, 1, "d").as_ref());
    Ok(weight(list, most)?.saturating_add(entries.saturating_mul(between)))
}

/// Columns of a table: they are filled up.
fn filled(args: &[Value], _: usize) -> Result<usize, Error> {
    Ok(args.get(1).and_then(Value::as_usize).unwrap_or(0).saturating_mul(ENTRY))
}

/// Every entry stands on a line of its own, behind four spaces a level.
fn spread(args: &[Value], most: usize) -> Result<usize, Error> {
    Ok(args.first().map_or(Ok(0), |value| weight(value, most))?.saturating_mul(8))
}

/// A filter of the engine, of which is foreseen what it makes, and which is charged for it.
fn guarded<F, Rv, Args>(environment: &mut Environment<'static>, name: &'static str, filter: F, foreseen: Foreseen)
where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> minijinja::value::FunctionArgs<'a>,
{
    let filter = Value::from_function(filter);
    environment.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| -> Result<Value, Error> {
        let args = args.into_values();
        let most = LEFT.get();
        if foreseen(&args, most)? > most {
            return Err(too_much());
        }
        let made = filter.call(state, &args)?;
        charge(made)
    });
}

/// Names of our own steps: none can be written in a template.
const CHARGE: &str = "#charge";
const SPEND: &str = "#spend";
const COUNT: &str = "#count";
const SCALAR: &str = "#scalar";
const CONCATENATE: &str = "#~";
const ADD: &str = "#+";
const MULTIPLY: &str = "#*";

/// An environment whose templates are held to what they may make.
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(format);
    // It shows the inside of the engine.
    environment.remove_global("debug");
    environment.add_filter(CHARGE, charge);
    environment.add_filter(SPEND, |bytes: usize| spend(bytes).map(|()| bytes));
    environment.add_filter(COUNT, |entries: usize| spend(entries.saturating_mul(ENTRY)).map(|()| entries));
    environment.add_filter(SCALAR, scalar);
    environment.add_filter(CONCATENATE, concatenated);
    environment.add_filter(ADD, sum);
    environment.add_filter(MULTIPLY, product);
    let of = &mut environment;
    guarded(of, "replace", filters::replace, replaced);
    guarded(of, "indent", filters::indent, indented);
    guarded(of, "format", filters::format, formatted);
    guarded(of, "join", filters::join, joined);
    guarded(of, "batch", filters::batch, filled);
    guarded(of, "slice", filters::slice, filled);
    guarded(of, "pprint", filters::pprint, spread);
    guarded(of, "safe", filters::safe, nothing);
    guarded(of, "escape", filters::escape, nothing);
    guarded(of, "e", filters::escape, nothing);
    guarded(of, "lower", filters::lower, nothing);
    guarded(of, "upper", filters::upper, nothing);
    guarded(of, "title", filters::title, nothing);
    guarded(of, "capitalize", filters::capitalize, nothing);
    guarded(of, "trim", filters::trim, nothing);
    guarded(of, "string", filters::string, nothing);
    guarded(of, "dictsort", filters::dictsort, nothing);
    guarded(of, "items", filters::items, nothing);
    guarded(of, "reverse", filters::reverse, nothing);
    guarded(of, "split", filters::split, nothing);
    guarded(of, "lines", filters::lines, nothing);
    guarded(of, "sort", filters::sort, nothing);
    guarded(of, "list", filters::list, nothing);
    guarded(of, "sum", filters::sum, nothing);
    guarded(of, "select", filters::select, nothing);
    guarded(of, "reject", filters::reject, nothing);
    guarded(of, "selectattr", filters::selectattr, nothing);
    guarded(of, "rejectattr", filters::rejectattr, nothing);
    guarded(of, "map", filters::map, nothing);
    guarded(of, "groupby", filters::groupby, nothing);
    guarded(of, "unique", filters::unique, nothing);
    guarded(of, "chain", filters::chain, nothing);
    guarded(of, "zip", filters::zip, nothing);
    environment
}

/// What must be known before a template is read: the engine computes what does not change while it reads, and goes as deep as an
/// expression is long.
///
/// # Errors
/// A sentence with the line.
pub fn check(source: &str, syntax: &SyntaxConfig) -> Result<(), String> {
    let (mut tokens, mut branches, mut computed) = (0, 0, 0.0);
    // Of a block: bytes of texts and entries of lists; the product of its numbers; whether something is multiplied, by a power perhaps.
    let (mut made, mut times, mut multiplies, mut powers) = (0, 1.0, false, false);
    for token in tokenize(source, false, syntax.clone()) {
        // What can not be read is told when it is read.
        let Ok((token, span)) = token else { return Ok(()) };
        let line = span.start_line;
        tokens += 1;
        match &token {
            Token::VariableStart | Token::BlockStart => {
                (tokens, made, times, multiplies, powers) = (0, 0, 1.0, false, false);
            }
            Token::VariableEnd | Token::BlockEnd => {
                if multiplies && made > 0 {
                    computed += if powers { f64::INFINITY } else { made as f64 * times * tokens as f64 };
                }
                if computed > MOST_BYTES as f64 {
                    return Err(format!("line {line}: it repeats a text or a list so often that it would be too long"));
                }
            }
            Token::Str(words) => made += words.len().max(1),
            Token::String(words) => made += words.len().max(1),
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen | Token::Comma => made += ENTRY,
            Token::Int(n) => times *= (*n as f64).max(1.0),
            Token::Int128(n) => times *= (**n as f64).max(1.0),
            Token::Mul => multiplies = true,
            Token::Pow => powers = true,
            Token::Ident("elif") => branches += 1,
            _ => {}
        }
        if tokens > MOST_TOKENS {
            return Err(format!("line {line}: an expression has more than {MOST_TOKENS} words and signs"));
        }
        if branches > MOST_BRANCHES {
            return Err(format!("line {line}: there are more than {MOST_BRANCHES} `elif`; a list or a map is shorter"));
        }
    }
    Ok(())
}

/// What is put around an instruction.
enum Around<'s> {
    /// Nothing: it makes nothing, or no more than a number.
    Nothing,
    /// Another one stands in its place.
    InPlace(Instruction<'s>),
    /// What it leaves is charged.
    Charged,
    /// So many bytes are spent before.
    Before(usize),
    /// The number of entries that it leaves is charged.
    Counted,
    /// What lies below the namespace that is set may be no list.
    Scalar,
}

fn ours(name: &'static str, args: u16) -> Instruction<'static> {
    Instruction::ApplyFilter(name, Some(args), !0)
}

/// What to do about an instruction; an error for what templates of prompts do not have.
fn around<'s>(instruction: &Instruction<'s>) -> Result<Around<'s>, &'static str> {
    use Instruction as I;
    Ok(match instruction {
        // The bytes of the template itself, written to the result or to a name.
        I::EmitRaw(words) => Around::Before(words.len()),
        I::StringConcat => Around::InPlace(ours(CONCATENATE, 2)),
        I::Add => Around::InPlace(ours(ADD, 2)),
        I::Mul => Around::InPlace(ours(MULTIPLY, 2)),
        I::SetAttr(_) => Around::Scalar,
        I::UnpackLists(_) => Around::Counted,
        // It takes no memory before it is written down.
        I::CallFunction("range", _) => Around::Nothing,
        I::Slice
        | I::BuildMap(_)
        | I::BuildKwargs(_)
        | I::MergeKwargs(_)
        | I::BuildList(_)
        | I::BuildTuple(_)
        | I::CallFunction(..)
        | I::CallMethod(..)
        | I::CallObject(_) => Around::Charged,
        // Filters and what is emitted are charged by themselves; what is captured was emitted.
        I::ApplyFilter(..) | I::Emit | I::BeginCapture(_) | I::EndCapture => Around::Nothing,
        // Other names for what is there, and numbers.
        I::StoreLocal(_)
        | I::Lookup(_)
        | I::GetAttr(_)
        | I::GetItem
        | I::LoadConst(_)
        | I::UnpackList(_)
        | I::DupTop
        | I::DiscardTop
        | I::Swap
        | I::Sub
        | I::Div
        | I::IntDiv
        | I::Rem
        | I::Pow
        | I::Neg
        | I::Eq
        | I::Ne
        | I::Gt
        | I::Gte
        | I::Lt
        | I::Lte
        | I::Not
        | I::In
        | I::CompareAndPreserve(_)
        | I::PerformTest(..)
        | I::IsUndefined => Around::Nothing,
        // Where it goes on.
        I::PushLoop(_)
        | I::PushWith
        | I::Iterate(_)
        | I::PushDidNotIterate
        | I::PopFrame
        | I::PopLoopFrame
        | I::Jump(_)
        | I::JumpIfFalse(_)
        | I::JumpIfFalseOrPop(_)
        | I::JumpIfTrueOrPop(_)
        | I::PushAutoEscape
        | I::PopAutoEscape
        | I::FastSuper
        | I::FastRecurse
        | I::CallBlock(_)
        | I::BuildMacro(..)
        | I::Return
        | I::Enclose(_)
        | I::GetClosure => Around::Nothing,
        // They run other templates, as the engine has them.
        I::LoadBlocks => return Err("`extends` is not for prompts: every template stands for itself"),
        I::Include(_) | I::ExportLocals => {
            return Err("`include` and `import` are not for prompts: every template stands for itself");
        }
    })
}

impl Around<'_> {
    /// Instructions that it puts before, and all.
    fn width(&self) -> u32 {
        match self {
            Around::Nothing | Around::InPlace(_) => 1,
            Around::Charged => 2,
            Around::Scalar | Around::Before(_) | Around::Counted => 4,
        }
    }
}

/// A jump with another target.
fn moved<'s>(instruction: &Instruction<'s>, to: impl Fn(u32) -> u32) -> Instruction<'s> {
    match instruction {
        Instruction::Iterate(target) => Instruction::Iterate(to(*target)),
        Instruction::Jump(target) => Instruction::Jump(to(*target)),
        Instruction::JumpIfFalse(target) => Instruction::JumpIfFalse(to(*target)),
        Instruction::JumpIfFalseOrPop(target) => Instruction::JumpIfFalseOrPop(to(*target)),
        Instruction::JumpIfTrueOrPop(target) => Instruction::JumpIfTrueOrPop(to(*target)),
        Instruction::BuildMacro(name, offset, flags) => Instruction::BuildMacro(name, to(*offset), *flags),
        other => other.clone(),
    }
}

/// Which instructions can be run more than once: those of loops, and all where there are macros.
fn repeated(from: &Instructions<'_>) -> Vec<bool> {
    let all: Vec<&Instruction<'_>> = (0..).map_while(|i| from.get(i)).collect();
    let mut repeated =
        vec![all.iter().any(|instruction| matches!(instruction, Instruction::BuildMacro(..))); all.len()];
    for (i, instruction) in all.iter().enumerate() {
        let (Instruction::Jump(target)
        | Instruction::JumpIfFalse(target)
        | Instruction::JumpIfFalseOrPop(target)
        | Instruction::JumpIfTrueOrPop(target)
        | Instruction::Iterate(target)) = instruction
        else {
            continue;
        };
        if let Some(looped) = repeated.get_mut(*target as usize..=i) {
            looped.fill(true);
        }
    }
    repeated
}

/// The same instructions, with what they make charged. `once`: they are run once, but for those in loops.
fn charged<'s>(from: &Instructions<'s>, once: bool) -> Result<Instructions<'s>, Error> {
    let mut all = Vec::new();
    let mut places = Vec::new();
    let mut at = 0;
    let repeated = repeated(from);
    while let Some(instruction) = from.get(all.len() as u32) {
        let around = match around(instruction).map_err(wrong)? {
            // What is written once is no longer than the template.
            Around::Before(_) if once && !repeated[all.len()] => Around::Nothing,
            around => around,
        };
        places.push(at);
        at += around.width();
        all.push((instruction, around));
    }
    places.push(at);
    // A jump goes to what stands before an instruction.
    let to = |target: u32| places.get(target as usize).copied().unwrap_or(at);
    let mut made = Instructions::new(from.name(), from.source());
    for (i, (instruction, around)) in all.into_iter().enumerate() {
        let line = from.get_line(i as u32).unwrap_or(1).try_into().unwrap_or(u16::MAX);
        let mut put = |instruction: Instruction<'s>| {
            match from.get_span(i as u32) {
                Some(span) => made.add_with_span(instruction, span),
                None => made.add_with_line(instruction, line),
            };
        };
        match around {
            Around::Nothing => put(moved(instruction, to)),
            Around::InPlace(other) => put(other),
            Around::Charged => {
                put(instruction.clone());
                put(ours(CHARGE, 1));
            }
            Around::Before(bytes) => {
                put(Instruction::LoadConst(Value::from(bytes)));
                put(ours(SPEND, 1));
                put(Instruction::DiscardTop);
                put(instruction.clone());
            }
            Around::Counted => {
                put(instruction.clone());
                put(Instruction::DupTop);
                put(ours(COUNT, 1));
                put(Instruction::DiscardTop);
            }
            Around::Scalar => {
                put(Instruction::Swap);
                put(ours(SCALAR, 1));
                put(Instruction::Swap);
                put(instruction.clone());
            }
        }
    }
    Ok(made)
}

/// A text for as long as the process lives, which what is compiled of it refers to. The same text is kept once.
fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    // Whole texts alone are behind it: they are as good after a panic as before.
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = all.get(text) {
        return kept;
    }
    let kept = String::leak(text.to_owned());
    all.insert(kept);
    kept
}

/// A template that is held to what it may make.
pub struct Held {
    main: Instructions<'static>,
    blocks: BTreeMap<&'static str, Instructions<'static>>,
    escape: AutoEscape,
}

impl Held {
    /// Compiles a template.
    ///
    /// # Errors
    /// What is wrong with it, and what templates of prompts do not have.
    pub fn new(name: &str, source: &str, syntax: &SyntaxConfig) -> Result<Self, Error> {
        let config =
            TemplateConfig { syntax_config: syntax.clone(), default_auto_escape: Arc::new(|_| AutoEscape::None) };
        let compiled = CompiledTemplate::new(kept(name), kept(source), &config)?;
        let blocks = compiled.blocks.iter().map(|(name, block)| Ok((*name, charged(block, false)?)));
        Ok(Held {
            main: charged(&compiled.instructions, compiled.blocks.is_empty())?,
            blocks: blocks.collect::<Result<_, Error>>()?,
            escape: compiled.initial_auto_escape,
        })
    }

    /// Renders it in an environment that [`environment`] has made, within what it may make.
    ///
    /// # Errors
    /// What goes wrong in it, too much among it.
    pub fn render(&self, environment: &Environment<'_>, values: Value) -> Result<String, Error> {
        LEFT.set(MOST_BYTES);
        let mut out = String::new();
        eval(environment, &self.main, values, &self.blocks, &mut make_string_output(&mut out), self.escape.clone())?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use minijinja::{UndefinedBehavior, context};

    fn values() -> Value {
        let posts: Vec<Value> = (0..5)
            .map(|i| context!(text => format!("post <{i}>"), likes => i * 3, who => ["ann", "ben"][i % 2]))
            .collect();
        context!(name => "Anna", n => 7, x => 2.5, words => vec!["b", "a", "c"], posts => posts, empty => Vec::<i32>::new())
    }

    fn syntax() -> SyntaxConfig {
        SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().unwrap()
    }

    /// What comes of a template, held to the bounds.
    fn held(source: &str) -> Result<String, String> {
        check(source, &syntax())?;
        let mut environment = environment();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_syntax(syntax());
        let template = Held::new("t", source, &syntax()).map_err(|error| error.to_string())?;
        template.render(&environment, values()).map_err(|error| error.to_string())
    }

    /// The same by the engine alone.
    fn free(source: &str) -> Result<String, String> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_syntax(syntax());
        environment.add_template_owned("t", source.to_owned()).map_err(|error| error.to_string())?;
        let rendered = environment.get_template("t").and_then(|template| template.render(values()));
        rendered.map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_template_says_is_what_the_engine_says() {
        for source in [
            "Hello {{ name }}, {{ n }} and {{ x }} {{ 3.0 }} {{ true }} {{ none }} {{ words }} {{ {'a': 1} }}",
            "{{ name ~ '-' ~ n ~ x ~ words }} {{ 'a' + 'b' }} {{ [1] + [2, 3] }} {{ 1 + 2 }} {{ 1 + 2.5 }} {{ true + 1 }}",
            "{{ '-' * 5 }} {{ 3 * 'ab' }} {{ [1, 2] * 2 }} {{ 6 * 7 }} {{ 2.0 * 3 }} {{ 7 // 2 }} {{ 7 % 4 }} {{ 2 ** 10 }}",
            "{{ 10 - 3 }} {{ 7 / 2 }} {{ -n }} {{ 1 < 2 <= n }} {{ n in [1, 7] }} {{ 'n' in name }} {{ not n }} {{ n is odd }}",
            "{% for post in posts if post.likes > 3 %}{{ loop.index }}/{{ loop.length }} {{ post.text }}\n{% else %}none{% endfor %}",
            "{% for post in empty %}x{% else %}none{% endfor %}{% if n > 9 %}a{% elif n > 5 %}b{% else %}c{% endif %}",
            "{% set a = name ~ '!' %}{{ a }}{% set b %}<{{ a }}>{% endset %}{{ b }}{% with c = b ~ b %}{{ c }}{% endwith %}",
            "{% set ns = namespace(sum=0) %}{% for p in posts %}{% set ns.sum = ns.sum + p.likes %}{% endfor %}{{ ns.sum }}",
            "{% macro m(a, b='z') %}[{{ a }}{{ b }}]{% endmacro %}{{ m('x') }}{{ m(b='y', a=n) }}{% call m(1) %}{% endcall %}",
            "{% filter upper %}shout {{ name }}{% endfilter %}{% block c %}in {{ n }}{% endblock %}{{ self.c() }}",
            "{% for i in range(3) recursive %}{{ i }}{% if i > 0 %}{{ loop(range(i)) }}{% endif %},{% endfor %}",
            "{{ words|join(', ') }} {{ posts|join(d='+', attribute='likes') }} {{ words|sort|list }} {{ words|reverse|list }}",
            "{{ posts|map(attribute='who')|unique|join(',') }} {{ posts|selectattr('likes', 'gt', 3)|list|length }} {{ words|first }}",
            "{{ 'a\nb'|indent(2) }} {{ 'a\n\nb'|indent(width=3, first=true, blank=true) }} {{ 'aXbX'|replace('X', '--') }}",
            "{{ '%s has %5.1f %03d'|format(name, x, n) }} {{ '%-6s|'|format('ab') }} {{ name|upper|lower|title }} {{ ' x '|trim }}",
            "{{ words|batch(2)|list }} {{ words|slice(2)|list }} {{ [3, 1]|sum }} {{ x|round }} {{ n|string ~ 'x' }} {{ 'a,b'|split(',') }}",
            "{{ {'b': 1, 'a': 2}|dictsort }} {{ {'b': 1}|items }} {{ dict(a=1)|list }} {{ words|zip([1, 2, 3])|list }} {{ words[1:] }}",
            "{{ posts|groupby('who')|length }} {{ words|pprint }} {{ name|e }} {{ words|last|default('x') }} {{ 'abc'[::-1] }}",
            "{% autoescape 'html' %}{{ posts[0].text }}{{ '<b>'|safe }}{{ words }}{% endautoescape %} {{ name if n else 'no' }}",
            "{{ missing }}",
            "{{ name + 1 }}",
            "{{ words * 'x' }}",
            "{{ none + 1 }}",
            "{% for a, b in [[1, 2], [3, 4]] %}{{ a * b }}{{ loop.cycle('x', 'y') }}{% endfor %} {{ [*words, 'd']|join }}",
        ] {
            match (free(source), held(source)) {
                (Ok(free), held) => assert_eq!(held, Ok(free), "{source}"),
                (Err(_), held) => assert!(held.is_err(), "{source}: {held:?}"),
            }
        }
    }

    #[test]
    fn what_would_be_too_much_is_told() {
        let thousand = "x".repeat(1000);
        let doubled = |n: usize| (0..n).map(|_| "{% set a = a ~ a %}").collect::<String>();
        let branches = (0..300).map(|i| format!("{{% elif n == {i} %}}{i}")).collect::<String>();
        let cases = [
            // Those that ended the process.
            "{{ 'x\ny'|indent(10000000000) }}".to_owned(),
            "{{ '%99999999999s'|format('x') }}".to_owned(),
            "{{ range(100000)|join('x'*100000) }}".to_owned(),
            format!("{{% set a = '{thousand}' %}}{{{{ a|replace('x', a)|replace('x', a)|replace('x', a) }}}}"),
            format!("{{% set a = 'xxxxxxxx' %}}{}{{{{ a|length }}}}", doubled(40)),
            // Others like them.
            "{% set ns = namespace(a='xxxxxxxx') %}{% for i in range(60) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}".to_owned(),
            "{% set ns = namespace(a='xxxxxxxx') %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}{% endfor %}".to_owned(),
            "{% set ns = namespace(a='xxxxxxxx') %}{% for i in range(60) %}{% set ns.a = ns.a * 1000 %}{% endfor %}".to_owned(),
            "{% set ns = namespace(a='x') %}{% for i in range(60) %}{% set b %}{{ ns.a }}{{ ns.a }}{% endset %}{% set ns.a = b %}{% endfor %}".to_owned(),
            "{% macro f(s) %}{{ s }}{{ s }}{% endmacro %}{% set ns = namespace(a='xx') %}{% for i in range(60) %}{% set ns.a = f(ns.a) %}{% endfor %}".to_owned(),
            format!("{{% for i in range(100000) %}}{}{{% endfor %}}", "y".repeat(1000)),
            format!("{{% set b %}}{{% for i in range(100000) %}}{}{{% endfor %}}{{% endset %}}", "y".repeat(1000)),
            "{% set a = 'x' %}{{ '%*s'|format(99999999999, a) }}".to_owned(),
            "{{ [1]|batch(10000000000, 'fill')|list }}".to_owned(),
            "{{ [1]|slice(10000000000, 'fill')|list }}".to_owned(),
            "{{ 'x' * 100000000 ~ 'x' * 100000000 }}".to_owned(),
            "{{ ('a',) * 100000000 }}".to_owned(),
            "{{ 'x' * 10 ** 9 }}".to_owned(),
            "{% set m = 10000000 %}{{ name * (m * 100) }}".to_owned(),
            "{{ [words] * 99999999 }}".to_owned(),
            format!("{{% set l = words %}}{}{{{{ l|string|length }}}}", "{% set l = [l, l] %}".repeat(40)),
            format!("{{% set l = words %}}{}{{{{ n }}}}", "{% set l = [l] %}".repeat(20_000)),
            "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}".to_owned(),
            "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}".to_owned(),
            "{% set ns = namespace(a='x') %}{% for i in range(90000) %}{% set ns.a = (ns.a ~ name)|upper|title|lower %}{% endfor %}".to_owned(),
            "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}".to_owned(),
            format!("{{{{ 1{} }}}}", " + 1".repeat(100_000)),
            format!("{{{{ name{} }}}}", "|upper".repeat(100_000)),
            format!("{{% if n %}}{branches}{{% endif %}}"),
            format!("{}{}", "{% if n %}".repeat(5_000), "{% endif %}".repeat(5_000)),
            format!("{{{{ {}1{} }}}}", "(".repeat(400), ")".repeat(400)),
            "{% include 't' %}".to_owned(),
            "{% import 't' as t %}".to_owned(),
            "{% extends 't' %}".to_owned(),
            "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}".to_owned(),
            "{{ debug() }}".to_owned(),
        ];
        for source in cases {
            let start: String = source.chars().take(150).collect();
            let ended = held(&source);
            assert!(ended.is_err(), "{start}: {} bytes", ended.unwrap_or_default().len());
        }
        let told = held("{{ 'x\ny'|indent(10000000000) }}").unwrap_err();
        assert!(told.contains("more than 16 MB of text and lists"), "{told}");
    }

    #[test]
    fn long_texts_within_the_bounds_are_whole() {
        let long = format!("{{% for i in range(1000) %}}{}{{% endfor %}}", "y".repeat(10_000));
        assert_eq!(held(&long).map(|text| text.len()), Ok(10_000_000));
        assert_eq!(held("{{ '-' * 1000000 }}").map(|text| text.len()), Ok(1_000_000));
    }
}
