//! Prompts of groups: their own templates, and the names that these may use.

use crate::minds::cells::Cells;
use crate::minds::prompts::{Fields, QUESTION, RULES, SYSTEM, Slot, common, fields};
use crate::minds::templates::{Names, Template, Templates, Value, map, merge_maps, number, snake};
use polity_kernel::Invalid;
use polity_kernel::interface::{FieldKind, Name, TableSlot};
use polity_kernel::policy::{Fault, PolicySetup};
use polity_kernel::scenario::TextSource;
use std::collections::BTreeMap;

/// The policy's own templates, by name.
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

/// Names that a template may use besides the common ones.
fn names(template: &str) -> &'static [&'static str] {
    match template {
        "system" => &["persona", "rules"],
        "turn" => &["situation"],
        "memory" => &["situation", "did"],
        "shares" => &["question", "asked"],
        _ => &[],
    }
}

/// The data of a group in a round.
pub struct Known<'a> {
    /// Its cell.
    pub cell: usize,
    /// Number of its agents.
    pub people: u64,
    /// The round, from 0.
    pub round: u32,
    /// Means of the observed numbers, by slot.
    pub means: &'a [f64],
    /// Observed tables, by slot.
    pub tables: &'a [Seen],
    /// Memories of earlier rounds, oldest first.
    pub past: &'a [String],
}

/// A table, as the agents of a group see it on average.
pub struct Seen {
    /// Mean number of rows per agent.
    pub rows: f64,
    /// Mean of each column, over all rows that they see; 0 without rows.
    pub means: Vec<f64>,
}

/// Returns the tables that agents see.
pub fn tables(setup: &PolicySetup<'_>) -> Result<Vec<TableSlot>, Invalid> {
    let tables = setup.interface.observation.iter().filter(|field| field.kind == FieldKind::Table);
    tables.map(|field| setup.table(&field.name, []).map(|(slot, _)| slot)).collect()
}

/// The template name for the mean number of rows of a table.
const ROWS: &str = "rows";

/// The templates of groups.
pub struct Prompts {
    templates: Templates,
    /// The same for all groups.
    common: Value,
    fields: Fields,
}

/// The values for a group's templates in a round.
pub struct Context(Value);

impl Prompts {
    /// Reads the scenario's templates, else the world's, else the policy's own, each checked for unknown names.
    pub fn open(
        given: &BTreeMap<String, TextSource>,
        setup: &PolicySetup<'_>,
        cells: &Cells,
        asked: &[(String, String)],
    ) -> Result<Self, Invalid> {
        // Texts have no mean.
        let mut fields = fields(setup)?;
        fields.retain(|(_, _, slot)| !matches!(slot, Slot::Text(_)));
        let mut common = common(setup);
        let choice = |(act, option): &(String, String)| {
            map([("act", Value::from(act.as_str())), ("option", Value::from(option.as_str()))])
        };
        common.insert("asked", asked.iter().map(choice).collect());
        common.insert("alternatives", Value::from(setup.interface.alternatives));
        let own =
            |(name, own): &(&'static str, &'static str)| Template { name, own, names: names(name), of_turn: true };
        let names = Names {
            of_turn: &["round", "person", "attributes", "people", "obs", "seen", "memory"],
            common: &["world", "agents", "rounds", "acts", "alternatives"],
            columns: &cells.names().map(snake).collect::<Vec<_>>(),
            fields: &fields.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(),
        };
        let all: Vec<Template> = OWN.iter().map(own).collect();
        let templates = Templates::open(&all, given, setup, &names)?;
        let prompts = Prompts { templates, common: Value::from(common), fields };
        prompts.try_all(setup, cells).map_err(|fault| Invalid { key: "prompts".into(), message: fault.0 })?;
        Ok(prompts)
    }

    /// Fills in every template once, for a group that sees nothing, so that errors appear before the run.
    fn try_all(&self, setup: &PolicySetup<'_>, cells: &Cells) -> Result<(), Fault> {
        let means = vec![0.0; setup.interface.observation.len()];
        let past = ["nothing".to_owned()];
        let widths: Vec<usize> =
            tables(setup).map_err(|error| Fault(error.message))?.iter().map(|slot| slot.1).collect();
        // Templates have other words for empty tables.
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

    /// Returns the values for a group's templates.
    pub fn context(&self, cells: &Cells, known: &Known<'_>) -> Context {
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
        let attribute = |(name, level): (&str, &str)| map([("name", Value::from(name)), ("value", Value::from(level))]);
        let seen = |(name, doc, slot): &(String, Name, Slot)| {
            map([("name", Value::from(name.as_str())), ("doc", Value::from(doc.as_ref())), ("value", mean(slot))])
        };
        let numbers = self.fields.iter().filter(|(_, _, slot)| matches!(slot, Slot::Number(_)));
        Context(map([
            // People count from one.
            ("round", Value::from(known.round + 1)),
            ("people", Value::from(known.people)),
            ("person", map(traits.iter().map(|(name, level)| (name.as_str(), Value::from(*level))))),
            ("attributes", cells.traits(known.cell).map(attribute).collect()),
            ("obs", map(self.fields.iter().map(|(name, _, slot)| (name.as_str(), mean(slot))))),
            ("seen", numbers.map(seen).collect()),
            ("memory", known.past.iter().map(|entry| Value::from(entry.as_str())).collect()),
        ]))
    }

    /// Fills in a template, with other texts that are parts of it.
    fn fill(&self, name: &'static str, context: &Context, parts: &[(&'static str, &str)]) -> Result<String, Fault> {
        let parts = map(parts.iter().map(|(name, text)| (*name, Value::from(*text))));
        self.templates.fill(name, merge_maps([parts, context.0.clone(), self.common.clone()]))
    }

    /// Returns the system prompt.
    pub fn system(&self, context: &Context) -> Result<String, Fault> {
        let (persona, rules) = (self.fill("persona", context, &[])?, self.fill("rules", context, &[])?);
        self.fill("system", context, &[("persona", &persona), ("rules", &rules)])
    }

    /// Returns the prompt of a group: for `shares` of it, or for the decision of one of its agents.
    pub fn told(&self, context: &Context, shares: bool) -> Result<(String, String), Fault> {
        let situation = self.fill("situation", context, &[])?;
        let turn = self.fill("turn", context, &[("situation", &situation)])?;
        let question = self.fill("question", context, &[])?;
        match shares {
            true => Ok((turn, self.fill("shares", context, &[("question", &question)])?)),
            false => Ok((turn, question)),
        }
    }

    /// Returns the memory of a round.
    pub fn remember(&self, context: &Context, did: &str) -> Result<String, Fault> {
        let situation = self.fill("situation", context, &[])?;
        self.fill("memory", context, &[("situation", &situation), ("did", did)])
    }
}
