//! What a policy may bind to.

use super::Commons;
use crate::ask::Settings;
use crate::registry::Prompts;
use crate::scenario::TextSource;
use crate::sight::{ActArgument, Interface, NumberSlot, TableSlot, TextSlot};
use crate::tree::Invalid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a policy may bind to when the society is built.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// Name of the world.
    pub world: &'a str,
    /// What the world shows and understands.
    pub interface: &'a Interface,
    /// Seed, population and topology.
    pub commons: &'a Commons,
    /// Number of agents at the start.
    pub agents: u32,
    /// Rounds planned.
    pub rounds: u32,
    /// What the world says to minds: templates by name, as they lie in its folder.
    pub prompts: Prompts,
    /// The scenario's model, for policies that name none.
    pub model: Option<&'a str>,
    /// How models are to sample, where the policy does not say.
    pub settings: Settings,
    /// The texts that the scenario's files hold, by path.
    pub texts: &'a BTreeMap<String, Arc<str>>,
}

impl Binding<'_> {
    /// A text of the scenario, and the name of the file it stands in.
    pub fn words<'b>(&'b self, source: &'b TextSource) -> Result<(&'b str, Option<&'b str>), Invalid> {
        match source {
            TextSource::Here(text) => Ok((text, None)),
            TextSource::In { file } => match self.texts.get(file) {
                Some(text) => Ok((text, Some(file))),
                None => Err(Invalid { key: "file".into(), message: format!("`{file}` was not read") }),
            },
        }
    }

    /// The slot of a number that the policy needs to see.
    pub fn number(&self, name: &str) -> Result<NumberSlot, Invalid> {
        self.interface.number(self.world, name).map_err(unfit)
    }

    /// The slot of a text that the policy needs to see.
    pub fn text(&self, name: &str) -> Result<TextSlot, Invalid> {
        self.interface.text(self.world, name).map_err(unfit)
    }

    /// The slot of a table that the policy needs to see, and where these of its columns stand in a row.
    pub fn table<const N: usize>(&self, name: &str, columns: [&str; N]) -> Result<(TableSlot, [usize; N]), Invalid> {
        self.interface.table(self.world, name, columns).map_err(unfit)
    }

    /// The act of that name, and what it carries.
    pub fn act(&self, name: &str) -> Result<(u16, ActArgument), Invalid> {
        self.interface.act(self.world, name).map(|(i, a)| (i, a.clone())).map_err(unfit)
    }

    /// The first act that carries a number, with its bounds: what a policy that "names a number" performs.
    pub fn number_act(&self) -> Result<(u16, f64, f64), Invalid> {
        self.interface
            .acts
            .iter()
            .enumerate()
            .find_map(|(i, act)| match act.argument {
                ActArgument::Number { low, high } => Some((i as u16, low, high)),
                _ => None,
            })
            .ok_or_else(|| unfit(format!("the world `{}` understands no act that carries a number", self.world)))
    }
}

fn unfit(message: String) -> Invalid {
    Invalid { key: "kind".into(), message }
}
