//! Prompts of minds: templates, checked before a run, and the names that they may use.

use super::memory::Memory;
use super::names::{MAY, RIGHT, invalid};
use super::templates::{Names, Template, Templates, Value, acts, cell, map, merge_maps, number, snake};
use polity_kernel::Invalid;
use polity_kernel::interface::{FieldKind, Name, NumberSlot, Observation, Observations, TableSlot, TextSlot};
use polity_kernel::policy::{Fault, PolicySetup, Turn};
use polity_kernel::population::Cell;
use polity_kernel::scenario::TextSource;
use std::collections::BTreeMap;

/// The built-in templates in this folder, by name, for lists.
pub const OWN: &[(&str, &str)] = &[
    ("memory", include_str!("prompts/memory.md")),
    ("observation", include_str!("prompts/observation.md")),
    ("persona", include_str!("prompts/persona.md")),
    ("question", QUESTION),
    ("rules", RULES),
    ("summary", include_str!("prompts/summary.md")),
    ("system", SYSTEM),
    ("think", include_str!("prompts/think.md")),
    ("turn", include_str!("prompts/turn.md")),
];
/// The question of a world that has none.
pub const QUESTION: &str = include_str!("prompts/question.md");
/// The rules of a world that has none.
pub const RULES: &str = include_str!("prompts/rules.md");
/// Persona and rules together.
pub const SYSTEM: &str = include_str!("prompts/system.md");
/// The template name for the text of a table's row; empty if it has none.
const TEXT: &str = "text";
/// The persona of people who have one as an attribute.
const PERSONA: &str = "{{ person.persona }}\n";

/// A template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// Persona of the agent.
    Persona,
    /// Rules of the world.
    Rules,
    /// System prompt: persona and rules.
    System,
    /// Observation of the agent.
    Observation,
    /// The question.
    Question,
    /// Request to think first.
    Think,
    /// Text before the question in a round: memories and observation.
    Turn,
    /// Memory of a round.
    Memory,
    /// Request for a summary of old memories.
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

    /// Returns the policy's own template, used if neither the scenario nor the world has one.
    fn own(self, has_persona: bool) -> &'static str {
        match self {
            Text::Persona if has_persona => PERSONA,
            _ => OWN.iter().find(|(name, _)| *name == self.name()).map_or("", |(_, words)| words),
        }
    }

    /// Names besides those that every template may use.
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

/// The values for the templates of a turn.
pub struct Context {
    /// Values known before its texts are.
    base: Value,
    /// Texts that are parts of others, as they are rendered.
    parts: BTreeMap<&'static str, Value>,
}

/// The templates of a policy whose agents get prompts of their own.
pub struct Prompts {
    templates: Templates,
    /// Common values: the world, its acts, numbers of agents and rounds.
    common: Value,
    /// Columns of the population, under their template names.
    columns: Vec<String>,
    fields: Fields,
}

/// Observation fields that may be shown: (template name, meaning, slot).
pub type Fields = Vec<(String, Name, Slot)>;

/// Returns the observation fields that may be shown.
pub fn fields(setup: &PolicySetup<'_>) -> Result<Fields, Invalid> {
    let mut fields = Vec::new();
    for field in setup
        .interface
        .observation
        .iter()
        .filter(|field| ![RIGHT, MAY].iter().any(|hidden| field.name.starts_with(hidden)))
    {
        let slot = match field.kind {
            FieldKind::Number => Slot::Number(setup.number(&field.name)?),
            FieldKind::Text => Slot::Text(setup.text(&field.name)?),
            FieldKind::Table => Slot::Table(setup.table(&field.name, [])?.0, field.columns.clone()),
        };
        fields.push((snake(&field.name), field.doc.clone(), slot));
    }
    Ok(fields)
}

/// Returns the common values: the world, its acts, numbers of agents and rounds.
pub fn common(setup: &PolicySetup<'_>) -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("world", Value::from(setup.world)),
        ("agents", Value::from(setup.agents)),
        ("rounds", Value::from(setup.rounds)),
        ("acts", acts(setup.interface)),
    ])
}

/// The location of an observation field.
#[derive(Clone)]
pub enum Slot {
    /// A number.
    Number(NumberSlot),
    /// A text.
    Text(TextSlot),
    /// A table with these columns.
    Table(TableSlot, Vec<Name>),
}

impl Prompts {
    /// Reads the scenario's templates, else the world's, else the policy's own, each checked for unknown names.
    pub fn open(given: &BTreeMap<String, TextSource>, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let table = setup.shared_context.population.table();
        let columns: Vec<String> = table.columns().map(|(name, _)| name.to_owned()).collect();
        let has_persona = columns.iter().any(|name| name == "persona");
        let (fields, common) = (fields(setup)?, common(setup));
        let template = |text: Text| Template {
            name: text.name(),
            own: text.own(has_persona),
            names: text.names(),
            // A summary is requested before the turn has begun.
            of_turn: text != Text::Summary,
        };
        let names = Names {
            of_turn: &["agent", "round", "person", "attributes", "obs", "seen", "messages", "memory", "summary"],
            common: &common.keys().copied().collect::<Vec<_>>(),
            columns: &columns,
            fields: &fields.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(),
        };
        let templates = Templates::open(&Text::ALL.map(template), given, setup, &names)?;
        let prompts = Prompts { templates, common: Value::from(common), columns, fields };
        prompts.try_all(setup)?;
        Ok(prompts)
    }

    /// Renders every template once, for the first agent with nothing to see, so that errors appear before the run.
    fn try_all(&self, setup: &PolicySetup<'_>) -> Result<(), Invalid> {
        if setup.agents == 0 {
            return Ok(());
        }
        let observations = Observations::new(setup.interface, 1);
        let mut context = self.context_of(0, 0, observations.row(0), 0, &Memory::default(), |column| {
            setup.shared_context.population.cell(column, 0)
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
        all().map_err(|error| invalid("prompts", error.0))
    }

    /// Returns the values for the templates of a turn.
    pub fn context(&self, turn: &Turn<'_>, memory: &Memory) -> Context {
        let person = turn.person();
        self.context_of(turn.who, turn.round, turn.observation, turn.inbox().len(), memory, |column| {
            person.population.cell(column, turn.who)
        })
    }

    fn context_of<'c>(
        &self,
        agent: u32,
        round: u32,
        observation: Observation<'_>,
        messages: usize,
        memory: &Memory,
        attribute: impl Fn(usize) -> Cell<'c>,
    ) -> Context {
        let mut all = BTreeMap::new();
        let mut put = |name: &'static str, value: &dyn Fn() -> Value| {
            if self.templates.use_name(name) {
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
        let shown = |slot: &Slot| match slot {
            Slot::Number(slot) => number(observation.number(*slot)),
            Slot::Text(slot) => Value::from(observation.text(*slot)),
            Slot::Table(slot, columns) => {
                let mut texts = observation.table_texts(*slot).peekable();
                let row = |(i, row): (usize, &[f64])| {
                    let text = texts.next_if(|(of, _)| *of == i).map_or("", |(_, text)| text);
                    let values = columns.iter().zip(row).map(|(name, value)| (name.as_ref(), number(*value)));
                    map(values.chain([(TEXT, Value::from(text))]))
                };
                observation.table(*slot).enumerate().map(row).collect()
            }
        };
        put("obs", &|| map(self.fields.iter().map(|(name, _, slot)| (name.as_str(), shown(slot)))));
        let seen = |(name, doc, slot): &(String, Name, Slot)| {
            map([("name", Value::from(name.as_str())), ("doc", Value::from(doc.as_ref())), ("value", shown(slot))])
        };
        put("seen", &|| self.fields.iter().map(seen).collect());
        put("messages", &|| Value::from(messages));
        put("memory", &|| memory.window.iter().map(|(_, text)| Value::from(text.as_str())).collect());
        put("summary", &|| Value::from(memory.summary.as_str()));
        Context { base: Value::from(all), parts: BTreeMap::new() }
    }

    fn fill(&self, text: Text, context: &Context) -> Result<String, Fault> {
        self.templates.fill(
            text.name(),
            merge_maps([Value::from(context.parts.clone()), context.base.clone(), self.common.clone()]),
        )
    }

    /// Fills in a template.
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

    /// Returns the request to think: `first`, in a call of its own, or in its reply.
    pub fn think(&self, context: &Context, first: bool) -> Result<String, Fault> {
        let mut context = context.with();
        context.parts.insert("first", Value::from(first));
        self.fill(Text::Think, &context)
    }

    /// Returns the agent's prompt in its turn, before messages and question.
    pub fn turn(&self, context: &mut Context) -> Result<String, Fault> {
        let observation = self.fill(Text::Observation, context)?;
        context.parts.insert("observation", Value::from(observation));
        self.fill(Text::Turn, context)
    }

    /// Returns the agent's memory of a round.
    pub fn remember(&self, context: &mut Context, did: &str, thoughts: Option<&str>) -> Result<String, Fault> {
        context.parts.insert("did", Value::from(did));
        context.parts.insert("thoughts", Value::from(thoughts.unwrap_or_default()));
        self.fill(Text::Memory, context)
    }

    /// Returns the request for a summary of about this many tokens.
    pub fn sum_up(&self, summary: &str, old: &[&str], tokens: u32) -> Result<String, Fault> {
        let parts = BTreeMap::from([
            ("summary", Value::from(summary)),
            ("old", old.iter().map(|text| Value::from(*text)).collect()),
            // A word is about a token and a third.
            ("words", Value::from(u64::from(tokens) * 3 / 4)),
        ]);
        self.fill(Text::Summary, &Context { base: map([]), parts })
    }
}
