//! What minds are told: templates, checked before a run, and the names that they may use.

use super::memory::Memory;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, merge_maps};
use minijinja::{Environment, UndefinedBehavior};
use polity_kernel::Invalid;
use polity_kernel::policy::{Binding, Fault, Turn};
use polity_kernel::population::Cell;
use polity_kernel::scenario::TextSource;
use polity_kernel::sight::{ActArgument, FieldKind, Interface, NumberSlot, Sight, Sights, TextSlot};
use polity_kernel::tree::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// Sight fields that begin so hold right answers, for simulated models: no prompt may show them.
pub const RIGHT: &str = "right-";
/// Steps of a template at most, so that none runs for ever.
const FUEL: u64 = 1_000_000;

/// A template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// Who the agent is.
    Persona,
    /// What the world is: how one lives in it, what counts.
    Rules,
    /// The standing instructions: persona and rules.
    System,
    /// What the agent sees.
    Observation,
    /// What it is asked.
    Question,
    /// What asks it to think first.
    Think,
    /// What comes before the question in a round: memories and observation.
    Turn,
    /// What it remembers of a round.
    Memory,
    /// What asks for a summary of old memories.
    Summary,
}

impl Context {
    /// The same, for parts that stay here.
    fn with(&self) -> Context {
        Context { base: self.base.clone(), parts: self.parts.clone() }
    }
}

impl Text {
    const ALL: [Text; 9] = [
        Text::Persona,
        Text::Rules,
        Text::System,
        Text::Observation,
        Text::Question,
        Text::Think,
        Text::Turn,
        Text::Memory,
        Text::Summary,
    ];

    fn name(self) -> &'static str {
        match self {
            Text::Persona => "persona",
            Text::Rules => "rules",
            Text::System => "system",
            Text::Observation => "observation",
            Text::Question => "question",
            Text::Think => "think",
            Text::Turn => "turn",
            Text::Memory => "memory",
            Text::Summary => "summary",
        }
    }

    /// The policy's own, which holds where neither the scenario nor the world has one.
    fn own(self, has_persona: bool) -> &'static str {
        match self {
            Text::Persona if has_persona => "{{ person.persona }}\n",
            Text::Persona => include_str!("prompts/persona.md"),
            Text::Rules => include_str!("prompts/rules.md"),
            Text::System => include_str!("prompts/system.md"),
            Text::Observation => include_str!("prompts/observation.md"),
            Text::Question => include_str!("prompts/question.md"),
            Text::Think => include_str!("prompts/think.md"),
            Text::Turn => include_str!("prompts/turn.md"),
            Text::Memory => include_str!("prompts/memory.md"),
            Text::Summary => include_str!("prompts/summary.md"),
        }
    }

    /// Names beside those that every template may use.
    fn names(self) -> &'static [&'static str] {
        match self {
            Text::System => &["persona", "rules"],
            Text::Turn => &["observation"],
            Text::Think => &["first"],
            Text::Memory => &["did", "thoughts"],
            Text::Summary => &["old", "summary", "words"],
            _ => &[],
        }
    }
}

/// What the templates of a turn may use.
pub struct Context {
    /// What is known before the turn's texts are.
    base: Value,
    /// Texts that are parts of others, as they come about.
    parts: BTreeMap<&'static str, Value>,
}

/// The templates of a policy.
pub struct Prompts {
    templates: Environment<'static>,
    /// What is the same for all: the world, its acts, numbers of agents and rounds.
    common: BTreeMap<&'static str, Value>,
    /// Names that some template uses; nothing else is made.
    used: BTreeSet<String>,
    /// Columns of the population: as templates name them.
    columns: Vec<String>,
    /// Sight fields that may be shown: (as templates name it, meaning, slot).
    fields: Vec<(String, &'static str, Slot)>,
}

#[derive(Clone, Copy)]
enum Slot {
    Number(NumberSlot),
    Text(TextSlot),
}

/// A number as people write it: six digits, no point behind a whole one.
pub fn plain(x: f64) -> String {
    rounded(x).to_string()
}

/// To six digits.
fn rounded(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() || x.fract() == 0.0 && x.abs() < 1e6 {
        return x;
    }
    let digits = 5 - libm::floor(libm::log10(x.abs())) as i32;
    let scale = libm::pow(10.0, f64::from(digits.abs()));
    if !scale.is_finite() {
        return x;
    }
    // By a power of ten that is whole, so that the result is the number that is written so.
    if digits >= 0 { (x * scale).round() / scale } else { (x / scale).round() * scale }
}

fn number(x: f64) -> Value {
    let rounded = rounded(x);
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 { Value::from(rounded as i64) } else { Value::from(rounded) }
}

/// A name as templates write it: `last-mean` would be a subtraction.
fn snake(name: &str) -> String {
    name.replace('-', "_")
}

fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::from(entries.into_iter().map(|(name, value)| (Value::from(name), value)).collect::<BTreeMap<_, _>>())
}

fn cell(cell: Cell<'_>) -> Value {
    match cell {
        Cell::Number(x) => number(x),
        Cell::Text(text) => Value::from(text),
    }
}

/// The acts of a world: (name, doc, low, high, options).
fn acts(interface: &Interface) -> Value {
    let act = |act: &polity_kernel::sight::ActKind| {
        let mut map: BTreeMap<&str, Value> = BTreeMap::new();
        map.insert("name", Value::from(act.name));
        map.insert("doc", Value::from(act.doc));
        let bounds = match &act.argument {
            ActArgument::Number { low, high } if low.abs() < super::FAR && high.abs() < super::FAR => {
                Some((*low, *high))
            }
            _ => None,
        };
        let options = match &act.argument {
            ActArgument::Choice(options) => Value::from(options.clone()),
            _ => Value::from(Vec::<String>::new()),
        };
        map.insert("low", bounds.map_or(Value::from(()), |(low, _)| number(low)));
        map.insert("high", bounds.map_or(Value::from(()), |(_, high)| number(high)));
        map.insert("options", options);
        self::map(map)
    };
    interface.acts.iter().map(act).collect()
}

/// Where and why a template can not be used.
fn fault(key: &str, file: Option<&str>, error: &minijinja::Error) -> String {
    let place = match (file, error.line()) {
        (Some(file), Some(line)) => format!("{file}, line {line}"),
        (Some(file), None) => file.to_owned(),
        (None, Some(line)) => format!("the template `{key}`, line {line}"),
        (None, None) => format!("the template `{key}`"),
    };
    match error.detail() {
        Some(detail) => format!("{place}: {}: {detail}", error.kind()),
        None => format!("{place}: {}", error.kind()),
    }
}

impl Prompts {
    /// The scenario's templates, else the world's, else the policy's own, each checked for names that do not exist.
    pub fn open(given: &BTreeMap<String, TextSource>, binding: &Binding<'_>) -> Result<Self, Invalid> {
        let known: Vec<&str> = Text::ALL.iter().map(|text| text.name()).collect();
        if let Some(name) = given.keys().find(|name| !known.contains(&name.as_str())) {
            let near = nearest(name, known.iter().copied()).map_or(String::new(), |n| format!(", did you mean `{n}`?"));
            let message = format!("there is no template `{name}`{near} (there are {})", known.join(", "));
            return Err(super::invalid(&format!("prompts.{name}"), message));
        }
        let table = binding.commons.population.table();
        let columns: Vec<String> = table.columns().map(|(name, _)| name.to_owned()).collect();
        let has_persona = columns.iter().any(|name| name == "persona");
        let interface = binding.interface;
        let mut fields = Vec::new();
        for field in interface.sight.iter().filter(|field| !field.name.starts_with(RIGHT)) {
            let slot = match field.kind {
                FieldKind::Number => Slot::Number(binding.number(field.name)?),
                FieldKind::Text => Slot::Text(binding.text(field.name)?),
            };
            fields.push((snake(field.name), field.doc, slot));
        }
        let common = BTreeMap::from([
            ("world", Value::from(binding.world)),
            ("agents", Value::from(binding.agents)),
            ("rounds", Value::from(binding.rounds)),
            ("acts", acts(interface)),
        ]);
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.set_fuel(Some(FUEL));
        // A template is prose: a line that holds nothing but a tag is no line of it.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        templates.set_syntax(syntax.map_err(|error| super::invalid("", error.to_string()))?);
        let mut prompts = Prompts { templates, common, used: BTreeSet::new(), columns, fields };
        for text in Text::ALL {
            let name = text.name();
            let source = given.get(name).map(|source| binding.words(source)).transpose();
            let source = source.map_err(|error| super::invalid(&format!("prompts.{name}.file"), error.message))?;
            let world = binding.prompts.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
            let (words, file) = source.unwrap_or((world.unwrap_or(text.own(has_persona)), None));
            let key = if given.contains_key(name) { format!("prompts.{name}") } else { String::new() };
            let blame = |message: String| super::invalid(&key, message);
            prompts
                .templates
                .add_template_owned(name, words.to_owned())
                .map_err(|error| blame(fault(name, file, &error)))?;
            let used = prompts.check_names(text, file).map_err(blame)?;
            prompts.used.extend(used);
        }
        prompts.try_all(binding)?;
        Ok(prompts)
    }

    /// The names that a template uses, whatever branch they stand in; an error for one that nobody gives.
    fn check_names(&self, text: Text, file: Option<&str>) -> Result<Vec<String>, String> {
        let place = file.map_or(format!("the template `{}`", text.name()), str::to_owned);
        let template = self.templates.get_template(text.name()).map_err(|error| fault(text.name(), file, &error))?;
        let of_turns: &[&str] = match text {
            // It is asked for before the turn has begun.
            Text::Summary => &[],
            _ => &["agent", "round", "person", "attributes", "sight", "seen", "letters", "memory", "summary"],
        };
        let roots: Vec<&str> =
            of_turns.iter().copied().chain(self.common.keys().copied()).chain(text.names().iter().copied()).collect();
        let globals: Vec<&str> = self.templates.globals().map(|(name, _)| name).collect();
        let mut used: Vec<String> = template.undeclared_variables(true).into_iter().collect();
        used.sort();
        for name in &used {
            let (root, field) = name.split_once('.').map_or((name.as_str(), None), |(root, rest)| (root, Some(rest)));
            if globals.contains(&root) {
                continue;
            }
            if !roots.contains(&root) {
                let near =
                    nearest(root, roots.iter().copied()).map_or(String::new(), |n| format!(", did you mean `{n}`?"));
                return Err(format!(
                    "{place} uses `{root}`, which is not there{near} (there are {})",
                    roots.join(", ")
                ));
            }
            let Some(field) = field.map(|field| field.split('.').next().unwrap_or(field)) else { continue };
            let known: Vec<&str> = match root {
                "person" => self.columns.iter().map(String::as_str).collect(),
                "sight" => self.fields.iter().map(|(name, ..)| name.as_str()).collect(),
                _ => continue,
            };
            if !known.contains(&field) {
                let near = nearest(field, known.iter().copied())
                    .map_or(String::new(), |n| format!(", did you mean `{root}.{n}`?"));
                let there = match (root, known.is_empty()) {
                    ("person", true) => "the scenario has no population with columns".to_owned(),
                    _ => format!("there are {}", known.join(", ")),
                };
                return Err(format!("{place} uses `{root}.{field}`, which is not there{near} ({there})"));
            }
        }
        Ok(used.iter().map(|name| name.split('.').next().unwrap_or(name).to_owned()).collect())
    }

    /// Renders every template once, for the first agent with nothing to see: what then goes wrong goes wrong before the run.
    fn try_all(&self, binding: &Binding<'_>) -> Result<(), Invalid> {
        if binding.agents == 0 {
            return Ok(());
        }
        let sights = Sights::new(binding.interface, 1);
        let mut context = self.context_of(0, 0, sights.row(0), 0, &Memory::default(), |column| {
            binding.commons.population.cell(column, 0)
        });
        let mut all = || -> Result<(), Fault> {
            self.render(Text::System, &context)?;
            self.think(&context, true)?;
            self.think(&context, false)?;
            self.render(Text::Question, &context)?;
            self.turn(&mut context)?;
            self.remember(&mut context, "nothing", None)?;
            self.sum_up("", &[], 100)?;
            Ok(())
        };
        all().map_err(|error| super::invalid("prompts", error.0))
    }

    /// What the templates of a turn may use.
    pub fn context(&self, turn: &Turn<'_>, memory: &Memory) -> Context {
        let person = turn.person();
        self.context_of(turn.who, turn.round, turn.sight, turn.inbox().len(), memory, |column| {
            person.population.cell(column, turn.who)
        })
    }

    fn context_of<'c>(
        &self,
        agent: u32,
        round: u32,
        sight: Sight<'_>,
        letters: usize,
        memory: &Memory,
        attribute: impl Fn(usize) -> Cell<'c>,
    ) -> Context {
        let mut all = self.common.clone();
        let mut put = |name: &'static str, value: &dyn Fn() -> Value| {
            if self.used.contains(name) {
                all.insert(name, value());
            }
        };
        put("agent", &|| Value::from(agent));
        // People count from one.
        put("round", &|| Value::from(round + 1));
        put("person", &|| map(self.columns.iter().enumerate().map(|(i, name)| (name.as_str(), cell(attribute(i))))));
        put("attributes", &|| {
            let named = |(i, name): (usize, &String)| {
                map([("name", Value::from(name.as_str())), ("value", cell(attribute(i)))])
            };
            self.columns.iter().enumerate().map(named).collect()
        });
        let shown = |slot: Slot| match slot {
            Slot::Number(slot) => number(sight.number(slot)),
            Slot::Text(slot) => Value::from(sight.text(slot)),
        };
        put("sight", &|| map(self.fields.iter().map(|(name, _, slot)| (name.as_str(), shown(*slot)))));
        let seen = |(name, doc, slot): &(String, &'static str, Slot)| {
            map([("name", Value::from(name.as_str())), ("doc", Value::from(*doc)), ("value", shown(*slot))])
        };
        put("seen", &|| self.fields.iter().map(seen).collect());
        put("letters", &|| Value::from(letters));
        put("memory", &|| memory.window.iter().map(|(_, text)| Value::from(text.as_str())).collect());
        put("summary", &|| Value::from(memory.summary.as_str()));
        Context { base: Value::from(all), parts: BTreeMap::new() }
    }

    fn fill(&self, text: Text, context: &Context) -> Result<String, Fault> {
        let template = self.templates.get_template(text.name());
        let filled = template.and_then(|template| {
            template.render(merge_maps([Value::from(context.parts.clone()), context.base.clone()]))
        });
        match filled {
            Ok(words) => Ok(words.trim().to_owned()),
            Err(error) => Err(Fault(fault(text.name(), None, &error))),
        }
    }

    /// A template filled in.
    pub fn render(&self, text: Text, context: &Context) -> Result<String, Fault> {
        match text {
            Text::System => {
                let mut context = context.with();
                for part in [Text::Persona, Text::Rules] {
                    let filled = self.fill(part, &context)?;
                    context.parts.insert(part.name(), Value::from(filled));
                }
                self.fill(text, &context)
            }
            _ => self.fill(text, context),
        }
    }

    /// What asks the agent to think: `first`, in a call of its own, or in its reply.
    pub fn think(&self, context: &Context, first: bool) -> Result<String, Fault> {
        let mut context = context.with();
        context.parts.insert("first", Value::from(first));
        self.fill(Text::Think, &context)
    }

    /// What the agent is told in its turn, before letters and question.
    pub fn turn(&self, context: &mut Context) -> Result<String, Fault> {
        let observation = self.fill(Text::Observation, context)?;
        context.parts.insert("observation", Value::from(observation));
        self.fill(Text::Turn, context)
    }

    /// What the agent remembers of a round.
    pub fn remember(&self, context: &mut Context, did: &str, thoughts: Option<&str>) -> Result<String, Fault> {
        context.parts.insert("did", Value::from(did));
        context.parts.insert("thoughts", Value::from(thoughts.unwrap_or_default()));
        self.fill(Text::Memory, context)
    }

    /// The request for a summary of about so many tokens.
    pub fn sum_up(&self, summary: &str, old: &[&str], tokens: u32) -> Result<String, Fault> {
        let parts = BTreeMap::from([
            ("summary", Value::from(summary)),
            ("old", old.iter().map(|text| Value::from(*text)).collect()),
            // A word is a token and a third.
            ("words", Value::from(u64::from(tokens) * 3 / 4)),
        ]);
        self.fill(Text::Summary, &Context { base: Value::from(self.common.clone()), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_do() {
        for (x, text) in
            [(33.333_333_333_333_336, "33.3333"), (50.0, "50"), (0.000_001_25, "0.00000125"), (-0.5, "-0.5")]
        {
            assert_eq!(plain(x), text);
        }
        // Too small to be scaled.
        assert_eq!(rounded(5e-324), 5e-324);
        assert_eq!(number(3.0).to_string(), "3");
    }
}
