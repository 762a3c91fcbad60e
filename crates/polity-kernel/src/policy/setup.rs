//! What a policy can bind to.

use super::SharedContext;
use crate::AgentId;
use crate::ask::Settings;
use crate::interface::{ActionArgument, Interface, NumberSlot, TableSlot, TextSlot};
use crate::method::{Methods, Team, TeamSource};
use crate::population::Table;
use crate::scenario::{StepsSource, TextSource, WEIGHTS, WeightsSource};
use crate::toolbox::Toolbox;
use crate::tree::Invalid;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What a policy can bind to when the society is built.
#[derive(Clone, Copy, Debug)]
pub struct PolicySetup<'a> {
    /// Name of the world.
    pub world: &'a str,
    /// What the world shows and which actions it understands.
    pub interface: &'a Interface,
    /// Seed, population and topology.
    pub shared_context: &'a SharedContext,
    /// Number of agents at the start.
    pub agents: u32,
    /// The agents of the policy's cohort at the start.
    pub cohort: &'a Range<AgentId>,
    /// Which agents share an episode, if the world has episodes.
    pub seating: Option<Seating>,
    /// Rounds planned.
    pub rounds: u32,
    /// The world's prompts for model-driven agents: templates by name, from its folder.
    pub prompts: Prompts,
    /// The scenario's model, for policies without their own.
    pub model: Option<&'a str>,
    /// Sampling settings of models, unless the policy has its own.
    pub settings: Settings,
    /// The texts of the scenario's files, by path.
    pub texts: &'a BTreeMap<String, Arc<str>>,
    /// The bytes of its files of weights, by path.
    pub bytes: &'a BTreeMap<String, Arc<[u8]>>,
    /// The tables among its files, by path.
    pub tables: &'a BTreeMap<String, Arc<Table>>,
    /// The methods of this build.
    pub(crate) methods: &'a dyn Methods,
    /// The tools of the scenario.
    pub(crate) toolbox: &'a Arc<Toolbox>,
}

/// Which agents of a cohort share an episode: `first + k * seats .. first + (k + 1) * seats` for each `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seating {
    /// The first agent of the first episode.
    pub first: AgentId,
    /// How many agents share an episode.
    pub seats: u32,
}

impl Seating {
    /// Returns the episode of an agent of the cohort, from 0.
    #[must_use]
    pub fn episode(self, who: AgentId) -> AgentId {
        (who - self.first) / self.seats
    }

    /// Returns the seat of an agent, from 0. Recorded agents may have lower numbers than the cohort's.
    #[must_use]
    pub fn seat(self, who: AgentId) -> AgentId {
        (i64::from(who) - i64::from(self.first)).rem_euclid(i64::from(self.seats.max(1))) as AgentId
    }

    /// Returns whether a cohort holds whole episodes, as far as its agents share them.
    #[must_use]
    pub fn fills(self, cohort: &Range<AgentId>) -> bool {
        [cohort.start, cohort.end].iter().all(|at| (at - self.first).is_multiple_of(self.seats))
    }
}

impl PolicySetup<'_> {
    /// Returns a text of the scenario, and the name of its file.
    pub fn words<'b>(&'b self, source: &'b TextSource) -> Result<(&'b str, Option<&'b str>), Invalid> {
        source.words(self.texts)
    }

    /// Returns the bytes of a file of weights.
    ///
    /// # Errors
    /// A file with another ending than `.safetensors`: it was read as a text.
    pub fn weights(&self, source: &WeightsSource) -> Result<&[u8], Invalid> {
        let message = || format!("`{}` is no file of weights; their names end in `.{WEIGHTS}`", source.file);
        let found = self.bytes.get(&source.file).map(AsRef::as_ref);
        found.ok_or_else(|| Invalid { key: "file".into(), message: message() })
    }

    /// Returns a table of steps.
    ///
    /// # Errors
    /// A file that was not read: it stands under another key than `steps`.
    pub fn steps(&self, source: &StepsSource) -> Result<&Table, Invalid> {
        let found = self.tables.get(&source.file).map(AsRef::as_ref);
        found.ok_or_else(|| Invalid { key: "file".into(), message: format!("`{}` was not read", source.file) })
    }

    /// Opens a team that acts as one agent, by any method of this build.
    ///
    /// # Errors
    /// An unknown method, or parameters or members that do not fit.
    pub fn team(&self, source: &TeamSource<'_>) -> Result<Team, Invalid> {
        let (model, settings) = (source.model.or(self.model), self.settings.with(source.settings));
        TeamSource { model, settings, ..*source }.open(self.methods, self.toolbox, self.texts)
    }

    /// Returns the slot of a number that the policy needs to see.
    pub fn number(&self, name: &str) -> Result<NumberSlot, Invalid> {
        self.interface.number(self.world, name).map_err(unfit)
    }

    /// Returns the slot of a text that the policy needs to see.
    pub fn text(&self, name: &str) -> Result<TextSlot, Invalid> {
        self.interface.text(self.world, name).map_err(unfit)
    }

    /// Returns the slot of a table that the policy needs to see, and the positions of these columns in a row.
    pub fn table<const N: usize>(&self, name: &str, columns: [&str; N]) -> Result<(TableSlot, [usize; N]), Invalid> {
        self.interface.table(self.world, name, columns).map_err(unfit)
    }

    /// Returns the number of the act of that name, and its argument.
    pub fn act(&self, name: &str) -> Result<(u16, ActionArgument), Invalid> {
        self.interface.act(self.world, name).map(|(i, a)| (i, a.clone())).map_err(unfit)
    }

    /// Returns the first act with a number, and its bounds: what a policy that "names a number" performs.
    pub fn number_act(&self) -> Result<(u16, f64, f64), Invalid> {
        self.interface
            .acts
            .iter()
            .enumerate()
            .find_map(|(i, act)| match act.argument {
                ActionArgument::Number { low, high } => Some((i as u16, low, high)),
                _ => None,
            })
            .ok_or_else(|| unfit(format!("the world `{}` has no act that carries a number", self.world)))
    }
}

fn unfit(message: String) -> Invalid {
    Invalid { key: "kind".into(), message }
}

/// Templates by name: `rules`, `observation`, `question`.
pub type Prompts = &'static [(&'static str, &'static str)];
