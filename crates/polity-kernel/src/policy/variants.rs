//! Parameters that differ by agent: `epsilon: {column: openness}` or `epsilon: {formula: "0.1 + 0.02 * age"}`.
//!
//! A policy holds one set of parameters. If some of them depend on the agent, the policy is opened once for every different set, and
//! each agent has its own.

use super::{Policy, PolicySetup, SharedContext};
use crate::formula::{Formula, Kind};
use crate::population::names::Attributes;
use crate::rng::{Draws, Stream};
use crate::tree::{Invalid, Node, TreeError, Value, child};
use crate::{AgentId, EXACT};
use std::collections::BTreeMap;

/// The keys of a parameter that differs by agent.
const FORMULA: &str = "formula";
const COLUMN: &str = "column";
/// No variant yet.
const NONE: u32 = u32::MAX;

/// The policies of a cohort, which differ in their parameters alone.
#[derive(Debug)]
pub(crate) struct Variants<P> {
    policies: Vec<P>,
    which: Which,
}

/// Which policy an agent has.
#[derive(Debug)]
enum Which {
    /// There is one.
    One,
    /// By its row of the population.
    ByRow(Vec<u32>),
    /// By its number in the cohort, which begins with agent `first`. An agent born later has that of a member at random.
    ByAgent { first: AgentId, of: Vec<u32> },
}

impl<P> Variants<P> {
    /// One policy for all.
    pub fn one(policy: P) -> Self {
        Variants { policies: vec![policy], which: Which::One }
    }

    /// Returns the policy that stands for all: the first one.
    #[inline]
    pub fn any(&self) -> &P {
        &self.policies[0]
    }

    /// Returns all policies.
    pub fn all(&self) -> &[P] {
        &self.policies
    }

    /// Returns an agent's policy.
    #[inline]
    pub fn of(&self, who: AgentId, shared_context: &SharedContext) -> &P {
        match &self.which {
            Which::One => &self.policies[0],
            which => self.varied(which, who, shared_context),
        }
    }

    #[inline(never)]
    fn varied(&self, which: &Which, who: AgentId, shared_context: &SharedContext) -> &P {
        let variant = match which {
            Which::One => None,
            Which::ByRow(of) => of.get(shared_context.population.row(who) as usize),
            Which::ByAgent { first, of } => match of.get((who - first) as usize) {
                Some(variant) => Some(variant),
                None => {
                    let mut draws = Draws::new(shared_context.seed, Stream::Parameter, u32::MAX, who);
                    of.get(draws.below(of.len() as u64) as usize)
                }
            },
        };
        variant.and_then(|variant| self.policies.get(*variant as usize)).unwrap_or(&self.policies[0])
    }
}

/// A parameter that differs by agent.
struct Varying {
    /// Its path below the policy.
    path: String,
    formula: Formula,
    /// Where it is written.
    node: Node,
}

impl Varying {
    /// Returns a number for the draws of this parameter, which other parameters do not change.
    fn stream(&self) -> u32 {
        // FNV-1a, whose highest bit is left to the draws of agents born later.
        let hash =
            self.path.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        hash & (u32::MAX >> 1)
    }

    /// Returns the parameter's value as it would stand in the scenario.
    fn written(&self, value: f64) -> Value {
        match self.formula.kind() {
            Kind::Number if value.fract() == 0.0 && value.abs() < EXACT => Value::Int(value as i64),
            Kind::Number => Value::Float(value),
            Kind::Truth => Value::Bool(value == 1.0),
            Kind::Text => Value::Text(self.formula.texts().get(value as usize).cloned().unwrap_or_default()),
        }
    }
}

/// Opens a policy with its parameters.
pub(crate) type Opener<'a, P> = dyn Fn(<P as Policy>::Params, &PolicySetup<'_>) -> Result<P, Invalid> + 'a;

/// Opens the policies of a cohort. `node`: its parameters. `whole`: whether its agents act on something that they compute together.
///
/// # Errors
/// Those of the policy; a formula that cannot be read, or has no finite value for some agent.
pub(crate) fn open<P: Policy>(
    node: &Node,
    path: &str,
    setup: &PolicySetup<'_>,
    whole: bool,
    open: &Opener<'_, P>,
) -> Result<Variants<P>, TreeError> {
    let one = |node: &Node| open(node.read(path)?, setup).map_err(|invalid| node.blame(path, invalid));
    let mut varying = Vec::new();
    collect(node, "", path, setup, &mut varying)?;
    let Some(first) = varying.first() else { return Ok(Variants::one(one(node)?)) };
    if whole {
        let message = format!(
            "the agents of a cohort of `{}` act on something that they compute together, so its parameters cannot differ by agent",
            P::NAME
        );
        let help = "make several cohorts with `where`";
        return Err(wrong(first, path, message, Some(help)));
    }
    let people = &setup.shared_context.population;
    let attributes = Attributes { table: people.table(), draw: true };
    let draws = varying.iter().any(|varying| varying.formula.draws());
    let mut opened = Opened { variants: Vec::new(), known: BTreeMap::new() };
    let mut variant = |who: AgentId, row: usize| -> Result<u32, TreeError> {
        let mut values = Vec::with_capacity(varying.len());
        for varying in &varying {
            let mut draws = Draws::new(setup.shared_context.seed, Stream::Parameter, varying.stream(), who);
            let value = attributes.value(&varying.formula, row, Some(&mut draws));
            if !value.is_finite() {
                let reads = attributes.described(&varying.formula, row);
                let place = people.table().place(row);
                let message = format!("there is no finite value for {place} ({reads})");
                let missing = varying.formula.names().into_iter().find(|column| attributes.lacks(*column, row));
                let named = missing.and_then(|column| Some((column, people.table().columns().nth(column as usize)?.0)));
                let help = match named {
                    Some((column, name)) => {
                        let all = people.table().rows();
                        let rows = (0..all).filter(|row| attributes.lacks(column, *row)).count();
                        format!(
                            "`{name}` is missing in {rows} of {all} rows: leave them out with `population: {{missing: {{{name}: drop}}}}`, or give \
                             their agents another value with `x if missing({name}) else y`"
                        )
                    }
                    None => "`x if CONDITION else y` can give these agents another value".into(),
                };
                return Err(wrong(varying, path, message, Some(&help)));
            }
            values.push(value);
        }
        opened.variant(&values, |values| {
            let mut node = node.clone();
            for (varying, value) in varying.iter().zip(values) {
                let value = Node { value: varying.written(*value), origin: varying.node.origin.clone() };
                node.edit(&varying.path, value)?;
            }
            one(&node).map_err(|mut error| {
                let place = people.table().place(row);
                error.message = format!("{} (agent {who}, {place})", error.message);
                error
            })
        })
    };
    let which = if draws {
        let of =
            setup.cohort.clone().map(|who| variant(who, people.row(who) as usize)).collect::<Result<Vec<u32>, _>>()?;
        Which::ByAgent { first: setup.cohort.start, of }
    } else {
        let mut of = vec![NONE; people.table().rows()];
        for who in setup.cohort.clone() {
            let row = people.row(who) as usize;
            if of[row] == NONE {
                of[row] = variant(who, row)?;
            }
        }
        Which::ByRow(of)
    };
    match opened.variants.is_empty() {
        // A cohort has agents; this is for one that has none.
        true => Err(wrong(first, path, "the cohort has no agents".into(), None)),
        false => Ok(Variants { policies: opened.variants, which }),
    }
}

/// The variants so far, by their values.
struct Opened<P> {
    variants: Vec<P>,
    known: BTreeMap<Vec<u64>, u32>,
}

impl<P> Opened<P> {
    fn variant(&mut self, values: &[f64], open: impl FnOnce(&[f64]) -> Result<P, TreeError>) -> Result<u32, TreeError> {
        // Adding zero makes -0 and 0 one value.
        let key: Vec<u64> = values.iter().map(|value| (value + 0.0).to_bits()).collect();
        if let Some(variant) = self.known.get(&key) {
            return Ok(*variant);
        }
        self.variants.push(open(values)?);
        let variant = self.variants.len() as u32 - 1;
        self.known.insert(key, variant);
        Ok(variant)
    }
}

fn wrong(varying: &Varying, path: &str, message: String, help: Option<&str>) -> TreeError {
    TreeError {
        message,
        path: format!("{path}.{}", varying.path),
        origin: varying.node.origin.clone(),
        help: help.map(String::from),
    }
}

/// Finds the parameters that differ by agent: maps with the single key `formula` or `column`.
fn collect(
    node: &Node,
    below: &str,
    path: &str,
    setup: &PolicySetup<'_>,
    found: &mut Vec<Varying>,
) -> Result<(), TreeError> {
    let Value::Map(entries) = &node.value else { return Ok(()) };
    for (key, node) in entries {
        let here = child(below, &key.name);
        let single = match &node.value {
            Value::Map(entries) if entries.len() == 1 => Some((entries[0].0.name.as_str(), &entries[0].1)),
            _ => None,
        };
        match single {
            Some((kind @ (FORMULA | COLUMN), Node { value: Value::Text(text), .. })) => {
                let attributes = Attributes { table: setup.shared_context.population.table(), draw: true };
                let text = if kind == COLUMN { format!("`{text}`") } else { text.clone() };
                let formula = Formula::of_any_kind(&text, &attributes).map_err(|error| TreeError {
                    message: if kind == COLUMN { error.message } else { error.to_string() },
                    path: format!("{path}.{here}.{kind}"),
                    origin: node.origin.clone(),
                    help: None,
                })?;
                found.push(Varying { path: here, formula, node: node.clone() });
            }
            _ => collect(node, &here, path, setup, found)?,
        }
    }
    Ok(())
}
