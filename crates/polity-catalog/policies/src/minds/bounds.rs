//! Limits on the output of templates.
//!
//! Templates come with scenarios, from anybody. The engine counts steps (fuel), but one step may double a text. So templates are
//! rewritten before they are rendered: every step that creates a text or a list is charged. The match over instructions has no default
//! arm, so a new instruction does not compile until someone decides about it.

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

/// Maximum bytes that one rendering may create: all texts and lists together.
pub const MOST_BYTES: usize = 16_000_000;
/// Maximum steps of a template, so that none runs for ever.
const FUEL: u64 = 3_000_000;
/// Maximum tokens between `{{` and `}}`, or `{%` and `%}`: the engine's recursion is as deep as an expression is long.
const MOST_TOKENS: usize = 1_000;
/// Maximum number of `elif`s in a template, for the same reason.
const MOST_BRANCHES: usize = 200;
/// Maximum nesting of lists.
const DEEPEST: usize = 32;
/// Bytes of a list entry.
const ENTRY: usize = 32;

fn wrong(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, why.into())
}

fn too_much() -> Error {
    wrong(format!(
        "it creates more than {} MB of text and lists, which is the limit for one prompt",
        MOST_BYTES / 1_000_000
    ))
}

thread_local! {
    /// Bytes that this thread's rendering may still create. Looking them up in the engine's state would cost time at every step.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

fn spend(bytes: usize) -> Result<(), Error> {
    LEFT.set(LEFT.get().checked_sub(bytes).ok_or_else(too_much)?);
    Ok(())
}

/// Returns the bytes of a value with its contents, counted at each occurrence; an error if they exceed `most`.
fn weight(value: &Value, most: usize) -> Result<usize, Error> {
    fn count(value: &Value, depth: usize, left: &mut usize) -> Result<(), Error> {
        if depth > DEEPEST {
            return Err(wrong(format!("lists are nested more than {DEEPEST} levels deep")));
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

/// Charges a value that was created. A number costs nothing.
fn charge(made: Value) -> Result<Value, Error> {
    if !made.is_number() {
        spend(weight(&made, LEFT.get())?)?;
    }
    Ok(made)
}

/// Charges the result of `a * b` before the engine creates it.
fn charge_product(factors: Value) -> Result<Value, Error> {
    let (a, b) = (factors.get_item_by_index(0)?, factors.get_item_by_index(1)?);
    let is_list = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    let (what, times) = if b.as_str().is_some() || is_list(&b) { (&b, &a) } else { (&a, &b) };
    let bytes = match what.as_str() {
        Some(words) => words.len(),
        None if is_list(what) => weight(what, LEFT.get())?,
        None => return Ok(factors),
    };
    // The engine refuses other factors than whole numbers.
    spend(bytes.saturating_mul(times.as_usize().unwrap_or(0)))?;
    Ok(factors)
}

/// A result whose bytes are charged as they are written.
struct Charged<'a, 'o>(&'a mut Output<'o>);

impl fmt::Write for Charged<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        spend(text.len()).map_err(|_| fmt::Error)?;
        self.0.write_str(text)
    }
}

/// Checks a value for a namespace. A namespace that held lists could contain itself.
fn scalar(value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable | ValueKind::Plain => {
            Err(wrong("a namespace can hold texts and numbers, but no lists or maps"))
        }
        _ => Ok(value),
    }
}

/// Writes a value to the output.
fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    if !matches!(state.auto_escape(), AutoEscape::None) {
        // A character becomes six at most.
        spend(weight(value, LEFT.get())?.saturating_mul(6))?;
        return escape_formatter(out, state, value);
    }
    let mut out = Charged(out);
    match value.as_str() {
        Some(words) => out.write_str(words),
        None => write!(out, "{value}"),
    }
    .map_err(|_| too_much())
}

/// An upper bound, in bytes, of a filter's result. The second argument is the maximum that counts.
type SizeBound = fn(&[Value], usize) -> Result<usize, Error>;

fn length(value: Option<&Value>) -> usize {
    value.map_or(0, |value| value.as_str().map_or_else(|| value.to_string().len(), str::len))
}

/// Returns an argument by position or name.
fn argument(args: &[Value], place: usize, name: &str) -> Option<Value> {
    let named = args.last().filter(|last| last.is_kwargs()).and_then(|last| last.get_attr(name).ok());
    let placed = args.get(place).filter(|value| !value.is_kwargs()).cloned();
    placed.or(named).filter(|value| !value.is_undefined())
}

fn bound_replace(args: &[Value], _: usize) -> Result<usize, Error> {
    let Some(words) = args.first().and_then(Value::as_str) else { return Ok(0) };
    let from = args.get(1).and_then(Value::as_str).unwrap_or_default();
    Ok(words.len().saturating_add(words.matches(from).count().saturating_mul(length(args.get(2)))))
}

fn bound_indent(args: &[Value], _: usize) -> Result<usize, Error> {
    let width = argument(args, 1, "width").map_or(Some(4), |width| width.as_usize()).unwrap_or(usize::MAX);
    let lines = args.first().and_then(Value::as_str).map_or(1, |words| words.split('\n').count());
    Ok(lines.saturating_mul(width))
}

/// Widths and precisions of a format are part of it, or are arguments.
fn bound_format(args: &[Value], most: usize) -> Result<usize, Error> {
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

fn bound_join(args: &[Value], most: usize) -> Result<usize, Error> {
    let Some(list) = args.first() else { return Ok(0) };
    let entries = match list.as_str() {
        Some(words) => words.len(),
        None => list.try_iter().map_or(0, Iterator::count),
    };
    let between = length(argument(args, 1, "d").as_ref());
    Ok(weight(list, most)?.saturating_add(entries.saturating_mul(between)))
}

/// The number of columns bounds the fill values.
fn bound_columns(args: &[Value], _: usize) -> Result<usize, Error> {
    Ok(args.get(1).and_then(Value::as_usize).unwrap_or(0).saturating_mul(ENTRY))
}

/// Each entry is on its own line, indented by four spaces per level.
fn bound_pprint(args: &[Value], most: usize) -> Result<usize, Error> {
    Ok(args.first().map_or(Ok(0), |value| weight(value, most))?.saturating_mul(8))
}

/// Adds an engine filter that is refused if its result would be too large, and charged for it otherwise.
fn add_bounded_filter<F, Rv, Args>(
    environment: &mut Environment<'static>,
    name: &'static str,
    filter: F,
    bound: SizeBound,
) where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> minijinja::value::FunctionArgs<'a>,
{
    let filter = Value::from_function(filter);
    environment.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| -> Result<Value, Error> {
        let args = args.into_values();
        let most = LEFT.get();
        if bound(&args, most)? > most {
            return Err(too_much());
        }
        // Here and not after the step, since other filters call it, too: `map('indent', 9)`.
        charge(filter.call(state, &args)?)
    });
}

/// Names of our own steps. Templates cannot contain them.
const CHARGE: &str = "#charge";
const CHARGE_PRODUCT: &str = "#charge_product";
const SPEND: &str = "#spend";
const COUNT: &str = "#count";
const SCALAR: &str = "#scalar";

/// Creates an environment for [`BoundedTemplate`]s.
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(format);
    // It exposes the engine's internals.
    environment.remove_global("debug");
    environment.add_filter(CHARGE, charge);
    environment.add_filter(CHARGE_PRODUCT, charge_product);
    environment.add_filter(SPEND, |bytes: usize| spend(bytes).map(|()| bytes));
    environment.add_filter(COUNT, |entries: usize| spend(entries.saturating_mul(ENTRY)).map(|()| entries));
    environment.add_filter(SCALAR, scalar);
    // The results of these can be so much larger than their arguments that they are bounded in advance.
    let of = &mut environment;
    add_bounded_filter(of, "replace", filters::replace, bound_replace);
    add_bounded_filter(of, "indent", filters::indent, bound_indent);
    add_bounded_filter(of, "format", filters::format, bound_format);
    add_bounded_filter(of, "join", filters::join, bound_join);
    add_bounded_filter(of, "batch", filters::batch, bound_columns);
    add_bounded_filter(of, "slice", filters::slice, bound_columns);
    add_bounded_filter(of, "pprint", filters::pprint, bound_pprint);
    environment
}

/// Checks a template before the engine reads it. The engine evaluates constant expressions while reading, and its recursion is as deep as
/// an expression is long.
///
/// # Errors
/// A message with the line.
fn check(source: &str, syntax: &SyntaxConfig) -> Result<(), String> {
    let (mut tokens, mut branches, mut computed) = (0, 0, 0.0);
    // Per block: bytes of texts and entries of lists; the product of its numbers; whether it multiplies, perhaps by a power.
    let (mut made, mut times, mut multiplies, mut powers) = (0, 1.0, false, false);
    for token in tokenize(source, false, syntax.clone()) {
        // Syntax errors are reported when it is read.
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
                    return Err(format!(
                        "line {line}: it repeats a text or a list too often; the result would be too long"
                    ));
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
            return Err(format!("line {line}: an expression has more than {MOST_TOKENS} tokens"));
        }
        if branches > MOST_BRANCHES {
            return Err(format!(
                "line {line}: there are more than {MOST_BRANCHES} `elif`; use a list or a map instead"
            ));
        }
    }
    Ok(())
}

/// How an instruction is charged.
#[derive(Clone, Copy)]
enum Guard {
    /// Not charged: it creates nothing, or a number.
    Free,
    /// Charged for the value that it leaves.
    Result,
    /// Charged for this many bytes, in advance.
    Before(usize),
    /// Charged for the product, in advance.
    Product,
    /// Charged for the number of entries that it leaves.
    Entries,
    /// Not charged, but the value that is set must not be a list.
    Scalar,
}

/// Creates a call of one of our own steps.
fn filter_call(name: &'static str, args: u16) -> Instruction<'static> {
    Instruction::ApplyFilter(name, Some(args), !0)
}

/// Returns how an instruction is charged, or why prompt templates may not use it.
fn guard(instruction: &Instruction<'_>) -> Result<Guard, &'static str> {
    use Instruction as I;
    Ok(match instruction {
        // The bytes of the template itself, written to the result or to a name.
        I::EmitRaw(words) => Guard::Before(words.len()),
        I::Mul => Guard::Product,
        I::SetAttr(_) => Guard::Scalar,
        I::UnpackLists(_) => Guard::Entries,
        // It takes no memory until it is written.
        I::CallFunction("range", _) => Guard::Free,
        // These create a number, or return an existing value.
        I::ApplyFilter(
            "length" | "count" | "round" | "int" | "float" | "abs" | "first" | "last" | "default" | "d",
            ..,
        ) => Guard::Free,
        // These are charged separately.
        I::ApplyFilter("replace" | "indent" | "format" | "join" | "batch" | "slice" | "pprint", ..) => Guard::Free,
        I::ApplyFilter(..)
        | I::Add
        | I::StringConcat
        | I::Slice
        | I::BuildMap(_)
        | I::BuildKwargs(_)
        | I::MergeKwargs(_)
        | I::BuildList(_)
        | I::BuildTuple(_)
        | I::CallFunction(..)
        | I::CallMethod(..)
        | I::CallObject(_) => Guard::Result,
        // Emitted text is charged as it is written; captured text was emitted.
        I::Emit | I::BeginCapture(_) | I::EndCapture => Guard::Free,
        // Other names for existing values, and numbers.
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
        | I::IsUndefined => Guard::Free,
        // Control flow.
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
        | I::GetClosure => Guard::Free,
        // They run other templates from the engine.
        I::LoadBlocks => return Err("prompts cannot use `extends`: every template stands alone"),
        I::Include(_) | I::ExportLocals => {
            return Err("prompts cannot use `include` or `import`: every template stands alone");
        }
    })
}

impl Guard {
    /// Number of instructions, with the guards and the guarded one.
    fn width(self) -> u32 {
        match self {
            Guard::Free => 1,
            Guard::Result => 2,
            Guard::Scalar | Guard::Before(_) | Guard::Entries => 4,
            Guard::Product => 5,
        }
    }
}

/// Returns a jump with another target.
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

/// Returns which instructions can run more than once: those of loops, and all if there are macros.
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

/// Returns the same instructions with guards. `once`: they run once, except those in loops.
fn with_guards<'s>(from: &Instructions<'s>, once: bool) -> Result<Instructions<'s>, Error> {
    let mut all = Vec::new();
    let mut places = Vec::new();
    let mut at = 0;
    let repeated = repeated(from);
    while let Some(instruction) = from.get(all.len() as u32) {
        let guard = match guard(instruction).map_err(wrong)? {
            // Text written once is no longer than the template.
            Guard::Before(_) if once && !repeated[all.len()] => Guard::Free,
            guard => guard,
        };
        places.push(at);
        at += guard.width();
        all.push((instruction, guard));
    }
    places.push(at);
    // A jump goes to the guards before an instruction.
    let to = |target: u32| places.get(target as usize).copied().unwrap_or(at);
    let mut made = Instructions::new(from.name(), from.source());
    for (i, (instruction, guard)) in all.into_iter().enumerate() {
        let line = from.get_line(i as u32).unwrap_or(1).try_into().unwrap_or(u16::MAX);
        let mut put = |instruction: Instruction<'s>| {
            match from.get_span(i as u32) {
                Some(span) => made.add_with_span(instruction, span),
                None => made.add_with_line(instruction, line),
            };
        };
        match guard {
            Guard::Free => put(moved(instruction, to)),
            Guard::Result => {
                put(instruction.clone());
                put(filter_call(CHARGE, 1));
            }
            Guard::Before(bytes) => {
                put(Instruction::LoadConst(Value::from(bytes)));
                put(filter_call(SPEND, 1));
                put(Instruction::DiscardTop);
                put(instruction.clone());
            }
            Guard::Entries => {
                put(instruction.clone());
                put(Instruction::DupTop);
                put(filter_call(COUNT, 1));
                put(Instruction::DiscardTop);
            }
            Guard::Product => {
                put(Instruction::BuildList(Some(2)));
                put(filter_call(CHARGE_PRODUCT, 1));
                // It leaves the first factor on top.
                put(Instruction::UnpackList(2));
                put(Instruction::Swap);
                put(instruction.clone());
            }
            Guard::Scalar => {
                put(Instruction::Swap);
                put(filter_call(SCALAR, 1));
                put(Instruction::Swap);
                put(instruction.clone());
            }
        }
    }
    Ok(made)
}

/// Returns a text that lives as long as the process, for compiled templates to refer to. Equal texts are stored once.
fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    // It holds complete texts only, so it is valid after a panic.
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = all.get(text) {
        return kept;
    }
    let kept = String::leak(text.to_owned());
    all.insert(kept);
    kept
}

/// A compiled template whose rendering cannot create more than [`MOST_BYTES`].
pub struct BoundedTemplate {
    main: Instructions<'static>,
    blocks: BTreeMap<&'static str, Instructions<'static>>,
    escape: AutoEscape,
    capacity: usize,
}

impl BoundedTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// Errors in the template, and features that prompt templates do not have.
    pub fn new(name: &str, source: &str, syntax: &SyntaxConfig) -> Result<Self, Error> {
        check(source, syntax).map_err(wrong)?;
        let config =
            TemplateConfig { syntax_config: syntax.clone(), default_auto_escape: Arc::new(|_| AutoEscape::None) };
        let compiled = CompiledTemplate::new(kept(name), kept(source), &config)?;
        let blocks = compiled.blocks.iter().map(|(name, block)| Ok((*name, with_guards(block, false)?)));
        Ok(BoundedTemplate {
            main: with_guards(&compiled.instructions, compiled.blocks.is_empty())?,
            blocks: blocks.collect::<Result<_, Error>>()?,
            escape: compiled.initial_auto_escape,
            capacity: compiled.buffer_size_hint,
        })
    }

    /// Renders it in an environment made by [`environment`].
    ///
    /// # Errors
    /// Errors in the template; [`MOST_BYTES`] reached.
    pub fn render(&self, environment: &Environment<'_>, values: Value) -> Result<String, Error> {
        LEFT.set(MOST_BYTES);
        let mut out = String::with_capacity(self.capacity);
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

    /// Renders a template within the bounds.
    fn bounded(source: &str) -> Result<String, String> {
        let mut environment = environment();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_syntax(syntax());
        let template = BoundedTemplate::new("t", source, &syntax()).map_err(|error| error.to_string())?;
        template.render(&environment, values()).map_err(|error| error.to_string())
    }

    /// Renders it by the engine alone.
    fn by_engine(source: &str) -> Result<String, String> {
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
            match (by_engine(source), bounded(source)) {
                (Ok(engine), bounded) => assert_eq!(bounded, Ok(engine), "{source}"),
                (Err(_), bounded) => assert!(bounded.is_err(), "{source}: {bounded:?}"),
            }
        }
    }

    #[test]
    fn what_would_be_too_much_is_told() {
        let thousand = "x".repeat(1000);
        let doubled = |n: usize| (0..n).map(|_| "{% set a = a ~ a %}").collect::<String>();
        let branches = (0..300).map(|i| format!("{{% elif n == {i} %}}{i}")).collect::<String>();
        let cases = [
            // Templates that used to end the process.
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
            "{{ (['a'] * 100000)|map('indent', 1000000, true)|list|length }}".to_owned(),
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
            let ended = bounded(&source);
            assert!(ended.is_err(), "{start}: {} bytes", ended.unwrap_or_default().len());
        }
        let told = bounded("{{ 'x\ny'|indent(10000000000) }}").unwrap_err();
        assert!(told.contains("more than 16 MB of text and lists"), "{told}");
    }

    #[test]
    fn long_texts_within_the_bounds_are_whole() {
        let long = format!("{{% for i in range(1000) %}}{}{{% endfor %}}", "y".repeat(10_000));
        assert_eq!(bounded(&long).map(|text| text.len()), Ok(10_000_000));
        assert_eq!(bounded("{{ '-' * 1000000 }}").map(|text| text.len()), Ok(1_000_000));
    }
}
