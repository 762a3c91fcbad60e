//! What minds are told: templates, checked before a run, and the names that they may use.

use super::memory::Memory;
use super::templates::{Names, Template, Templates, Value, acts, cell, map, merge_maps, number, snake};
use super::{RIGHT, invalid};
use polity_kernel::Invalid;
use polity_kernel::policy::{Binding, Fault, Turn};
use polity_kernel::population::Cell;
use polity_kernel::scenario::TextSource;
use polity_kernel::sight::{FieldKind, Name, NumberSlot, Sight, Sights, TableSlot, TextSlot};
use std::collections::BTreeMap;

/// The templates that lie beside this file, by name, for lists.
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
/// What is asked where the world has no words for it.
pub const QUESTION: &str = include_str!("prompts/question.md");
/// What a world is that has no words for it.
pub const RULES: &str = include_str!("prompts/rules.md");
/// Persona and rules together.
pub const SYSTEM: &str = include_str!("prompts/system.md");
/// What templates call the text of a table's row; empty where it has none.
const TEXT: &str = "text";
/// The persona of people who have one as an attribute.
const PERSONA: &str = "{{ person.persona }}\n";

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
            Text::Persona if has_persona => PERSONA,
            _ => OWN.iter().find(|(name, _)| *name == self.name()).map_or("", |(_, words)| words),
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
    /// What is known of the turn before its texts are.
    base: Value,
    /// Texts that are parts of others, as they come about.
    parts: BTreeMap<&'static str, Value>,
}

/// The templates of a policy whose agents are told of themselves.
pub struct Prompts {
    templates: Templates,
    /// What is the same for all: the world, its acts, numbers of agents and rounds.
    common: Value,
    /// Columns of the population: as templates name them.
    columns: Vec<String>,
    fields: Fields,
}

/// Sight fields that may be shown: (as templates name it, meaning, slot).
pub type Fields = Vec<(String, Name, Slot)>;

/// What may be shown of a sight.
pub fn fields(binding: &Binding<'_>) -> Result<Fields, Invalid> {
    let mut fields = Vec::new();
    for field in binding.interface.sight.iter().filter(|field| !field.name.starts_with(RIGHT)) {
        let slot = match field.kind {
            FieldKind::Number => Slot::Number(binding.number(&field.name)?),
            FieldKind::Text => Slot::Text(binding.text(&field.name)?),
            FieldKind::Table => Slot::Table(binding.table(&field.name, [])?.0, field.columns.clone()),
        };
        fields.push((snake(&field.name), field.doc.clone(), slot));
    }
    Ok(fields)
}

/// What is the same for all who are told: the world, its acts, numbers of agents and rounds.
pub fn common(binding: &Binding<'_>) -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("world", Value::from(binding.world)),
        ("agents", Value::from(binding.agents)),
        ("rounds", Value::from(binding.rounds)),
        ("acts", acts(binding.interface)),
    ])
}

/// Where a field of a sight stands.
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
    /// The scenario's templates, else the world's, else the policy's own, each checked for names that do not exist.
    pub fn open(given: &BTreeMap<String, TextSource>, binding: &Binding<'_>) -> Result<Self, Invalid> {
        let table = binding.commons.population.table();
        let columns: Vec<String> = table.columns().map(|(name, _)| name.to_owned()).collect();
        let has_persona = columns.iter().any(|name| name == "persona");
        let (fields, common) = (fields(binding)?, common(binding));
        let template = |text: Text| Template {
            name: text.name(),
            own: text.own(has_persona),
            names: text.names(),
            // A summary is asked for before the turn has begun.
            of_turn: text != Text::Summary,
        };
        let names = Names {
            of_turn: &["agent", "round", "person", "attributes", "sight", "seen", "letters", "memory", "summary"],
            common: &common.keys().copied().collect::<Vec<_>>(),
            columns: &columns,
            fields: &fields.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(),
        };
        let templates = Templates::open(&Text::ALL.map(template), given, binding, &names)?;
        let prompts = Prompts { templates, common: Value::from(common), columns, fields };
        prompts.try_all(binding)?;
        Ok(prompts)
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
        all().map_err(|error| invalid("prompts", error.0))
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
            Slot::Number(slot) => number(sight.number(*slot)),
            Slot::Text(slot) => Value::from(sight.text(*slot)),
            Slot::Table(slot, columns) => {
                let mut texts = sight.table_texts(*slot).peekable();
                let row = |(i, row): (usize, &[f64])| {
                    let text = texts.next_if(|(of, _)| *of == i).map_or("", |(_, text)| text);
                    let values = columns.iter().zip(row).map(|(name, value)| (name.as_ref(), number(*value)));
                    map(values.chain([(TEXT, Value::from(text))]))
                };
                sight.table(*slot).enumerate().map(row).collect()
            }
        };
        put("sight", &|| map(self.fields.iter().map(|(name, _, slot)| (name.as_str(), shown(slot)))));
        let seen = |(name, doc, slot): &(String, Name, Slot)| {
            map([("name", Value::from(name.as_str())), ("doc", Value::from(doc.as_ref())), ("value", shown(slot))])
        };
        put("seen", &|| self.fields.iter().map(seen).collect());
        put("letters", &|| Value::from(letters));
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
        self.fill(Text::Summary, &Context { base: map([]), parts })
    }
}
