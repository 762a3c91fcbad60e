//! What a group is told: its own templates, and the names that they may use.

use crate::minds::cells::Cells;
use crate::minds::prompts::{Fields, QUESTION, RULES, SYSTEM, Slot, common, fields};
use crate::minds::templates::{Names, Template, Templates, Value, map, number, snake};
use polity_kernel::Invalid;
use polity_kernel::policy::{Binding, Fault};
use polity_kernel::scenario::TextSource;
use polity_kernel::sight::{FieldKind, Name, TableSlot};
use std::collections::BTreeMap;

/// The policy's own words, by name.
pub const OWN: &[(&str, &str)] = &[
    ("memory", include_str!("prompts/memory.md")),
    ("persona", include_str!("prompts/persona.md")),
    ("question", QUESTION),
    ("rules", RULES),
    ("shares", include_str!("prompts/shares.md")),
    ("situation", include_str!("prompts/situation.md")),
    ("system", SYSTEM),
    ("turn", include_str!("prompts/turn.md")),
];

/// Names that a template may use beside those of all.
fn names(template: &str) -> &'static [&'static str] {
    match template {
        "system" => &["persona", "rules"],
        "turn" => &["situation"],
        "memory" => &["situation", "did"],
        "shares" => &["question", "asked"],
        _ => &[],
    }
}

/// What is known of a group in a round.
pub struct Known<'a> {
    /// Its cell.
    pub cell: usize,
    /// How many they are.
    pub people: u64,
    /// The round, from 0.
    pub round: u32,
    /// Means of the numbers that they see, by slot.
    pub means: &'a [f64],
    /// What they see in tables, by slot.
    pub tables: &'a [Seen],
    /// What is remembered of earlier rounds, oldest first.
    pub past: &'a [String],
}

/// A table, as the agents of a group see it on average.
pub struct Seen {
    /// Rows that each sees.
    pub rows: f64,
    /// Mean of each column, over all rows that they see; 0 where there are none.
    pub means: Vec<f64>,
}

/// The tables that agents see.
pub fn tables(binding: &Binding<'_>) -> Result<Vec<TableSlot>, Invalid> {
    let tables = binding.interface.sight.iter().filter(|field| field.kind == FieldKind::Table);
    tables.map(|field| binding.table(&field.name, []).map(|(slot, _)| slot)).collect()
}

/// What templates call the mean number of rows of a table.
const ROWS: &str = "rows";

/// The templates of groups.
pub struct Prompts {
    templates: Templates,
    common: BTreeMap<&'static str, Value>,
    fields: Fields,
}

/// What templates may use for a group in a round.
pub struct Context(BTreeMap<&'static str, Value>);

impl Prompts {
    /// The scenario's templates, else the world's, else the policy's own, each checked for names that do not exist.
    pub fn open(
        given: &BTreeMap<String, TextSource>,
        binding: &Binding<'_>,
        cells: &Cells,
        asked: &[(String, String)],
    ) -> Result<Self, Invalid> {
        // Texts have no mean.
        let mut fields = fields(binding)?;
        fields.retain(|(_, _, slot)| !matches!(slot, Slot::Text(_)));
        let mut common = common(binding);
        let choice = |(act, option): &(String, String)| {
            map([("act", Value::from(act.as_str())), ("option", Value::from(option.as_str()))])
        };
        common.insert("asked", asked.iter().map(choice).collect());
        common.insert("alternatives", Value::from(binding.interface.alternatives));
        let own =
            |(name, own): &(&'static str, &'static str)| Template { name, own, names: names(name), of_turn: true };
        let names = Names {
            of_turn: &["round", "person", "attributes", "people", "sight", "seen", "memory"],
            common: &["world", "agents", "rounds", "acts", "alternatives"],
            columns: &cells.names().map(snake).collect::<Vec<_>>(),
            fields: &fields.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(),
        };
        let all: Vec<Template> = OWN.iter().map(own).collect();
        let templates = Templates::open(&all, given, binding, &names)?;
        let prompts = Prompts { templates, common, fields };
        prompts.try_all(binding, cells).map_err(|fault| Invalid { key: "prompts".into(), message: fault.0 })?;
        Ok(prompts)
    }

    /// Fills every template in once, for a group that sees nothing: what then goes wrong goes wrong before the run.
    fn try_all(&self, binding: &Binding<'_>, cells: &Cells) -> Result<(), Fault> {
        let means = vec![0.0; binding.interface.sight.len()];
        let past = ["nothing".to_owned()];
        let widths: Vec<usize> =
            tables(binding).map_err(|error| Fault(error.message))?.iter().map(|slot| slot.1).collect();
        // Templates say something else of tables that are empty.
        for rows in [0.0, 1.0] {
            let tables: Vec<Seen> = widths.iter().map(|width| Seen { rows, means: vec![0.0; *width] }).collect();
            let known = Known { cell: 0, people: 1, round: 0, means: &means, tables: &tables, past: &past };
            let context = self.context(cells, &known);
            self.system(&context)?;
            self.told(&context, true)?;
            self.remember(&context, "nothing")?;
        }
        Ok(())
    }

    /// What templates may use for a group.
    pub fn context(&self, cells: &Cells, known: &Known<'_>) -> Context {
        let mut all = self.common.clone();
        let mean = |slot: &Slot| match slot {
            Slot::Number(slot) => number(known.means.get(slot.0).copied().unwrap_or(0.0)),
            Slot::Table(slot, columns) => match known.tables.get(slot.0) {
                Some(Seen { rows, means }) => {
                    let means = columns.iter().zip(means).map(|(name, mean)| (name.as_ref(), number(*mean)));
                    map(means.chain([(ROWS, number(*rows))]))
                }
                None => Value::from(()),
            },
            Slot::Text(_) => Value::from(""),
        };
        let traits: Vec<(String, &str)> = cells.traits(known.cell).map(|(name, level)| (snake(name), level)).collect();
        // People count from one.
        all.insert("round", Value::from(known.round + 1));
        all.insert("people", Value::from(known.people));
        all.insert("person", map(traits.iter().map(|(name, level)| (name.as_str(), Value::from(*level)))));
        let attribute = |(name, level): (&str, &str)| map([("name", Value::from(name)), ("value", Value::from(level))]);
        all.insert("attributes", cells.traits(known.cell).map(attribute).collect());
        all.insert("sight", map(self.fields.iter().map(|(name, _, slot)| (name.as_str(), mean(slot)))));
        let seen = |(name, doc, slot): &(String, Name, Slot)| {
            map([("name", Value::from(name.as_str())), ("doc", Value::from(doc.as_ref())), ("value", mean(slot))])
        };
        let numbers = self.fields.iter().filter(|(_, _, slot)| matches!(slot, Slot::Number(_)));
        all.insert("seen", numbers.map(seen).collect());
        all.insert("memory", known.past.iter().map(|entry| Value::from(entry.as_str())).collect());
        Context(all)
    }

    /// A template filled in, with other texts that are parts of it.
    fn fill(&self, name: &'static str, context: &Context, parts: &[(&'static str, &str)]) -> Result<String, Fault> {
        let mut all = context.0.clone();
        all.extend(parts.iter().map(|(name, text)| (*name, Value::from(*text))));
        self.templates.fill(name, Value::from(all))
    }

    /// The standing instructions.
    pub fn system(&self, context: &Context) -> Result<String, Fault> {
        let (persona, rules) = (self.fill("persona", context, &[])?, self.fill("rules", context, &[])?);
        self.fill("system", context, &[("persona", &persona), ("rules", &rules)])
    }

    /// What the group is told and asked: for `shares` of it, or what one of them decides.
    pub fn told(&self, context: &Context, shares: bool) -> Result<(String, String), Fault> {
        let situation = self.fill("situation", context, &[])?;
        let turn = self.fill("turn", context, &[("situation", &situation)])?;
        let question = self.fill("question", context, &[])?;
        match shares {
            true => Ok((turn, self.fill("shares", context, &[("question", &question)])?)),
            false => Ok((turn, question)),
        }
    }

    /// What is remembered of the round.
    pub fn remember(&self, context: &Context, did: &str) -> Result<String, Fault> {
        let situation = self.fill("situation", context, &[])?;
        self.fill("memory", context, &[("situation", &situation), ("did", did)])
    }
}
