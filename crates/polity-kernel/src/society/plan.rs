//! What a society is made of: its plan, its leaves and its measures.

use crate::interface::Name;
use crate::metric::MetricHost;
use crate::policy::PolicyHost;
use crate::world::{Activation, WorldHost};
use crate::{AgentId, BLOCK};
use std::sync::Arc;

/// The input of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// The values of acts of one kind.
    Action(u16),
    /// A column of the world.
    Column(usize),
    /// The column of this name of policies' agent states. Agents of other policies do not count.
    State(Name),
    /// A column of numbers of the population. Agents without a value do not count.
    Attribute(usize),
    /// The number of an agent's group.
    Group(Grouping),
    /// Several of these of each agent, as a row: columns of the world, attributes and groups. Agents without one of them do not count.
    Rows(Vec<Reads>),
}

/// What puts agents into groups.
#[derive(Clone, Debug)]
pub(crate) enum Grouping {
    /// The group of each row of the population; `u32::MAX` for a row that no agent has.
    Rows(Arc<[u32]>),
    /// Their cohort.
    Cohorts,
}

/// Two are equal if they are the same grouping, and not only alike.
impl PartialEq for Grouping {
    fn eq(&self, other: &Grouping) -> bool {
        match (self, other) {
            (Grouping::Rows(rows), Grouping::Rows(others)) => Arc::ptr_eq(rows, others),
            (Grouping::Cohorts, Grouping::Cohorts) => true,
            _ => false,
        }
    }
}

impl Eq for Grouping {}

/// Some of the agents: a group.
#[derive(Clone, Debug)]
pub(crate) struct Subset {
    pub by: Grouping,
    pub group: u32,
}

/// A metric and when it is measured.
pub(crate) struct Measure {
    pub host: Box<dyn MetricHost>,
    pub reads: Reads,
    /// `of.metric`; results append `.suffix`.
    pub name: String,
    /// Measured every this many rounds, and in the last.
    pub every: u32,
    /// The agents that count. `None`: all.
    pub subset: Option<Subset>,
}

/// The leaves of a society, bound to it. A scenario's changes replace them between rounds; state is kept.
pub(crate) struct Leaves {
    /// One per shard.
    pub worlds: Vec<Box<dyn WorldHost>>,
    /// One per cohort.
    pub policies: Vec<Arc<dyn PolicyHost>>,
    pub measures: Vec<Measure>,
}

impl Reads {
    /// Returns whether it needs the state of the world.
    pub fn is_of_world(&self) -> bool {
        match self {
            Reads::Column(_) => true,
            Reads::Rows(parts) => parts.iter().any(Reads::is_of_world),
            Reads::Action(_) | Reads::State(_) | Reads::Attribute(_) | Reads::Group(_) => false,
        }
    }
}

impl Leaves {
    /// Returns the world, as one of the shards has it.
    pub fn world(&self) -> Option<&dyn WorldHost> {
        self.worlds.first().map(|world| &**world)
    }
}

/// Returns the models that policies may ask, and those that worlds may ask.
pub(crate) fn models_of<'a>(
    policies: impl Iterator<Item = &'a Arc<dyn PolicyHost>>,
    worlds: impl Iterator<Item = &'a dyn WorldHost>,
) -> Vec<String> {
    let of_worlds = worlds.flat_map(|world| world.models()).map(|(model, _)| model);
    policies.flat_map(|policy| policy.models()).chain(of_worlds).collect()
}

/// The policies of all cohorts, and the round from which they hold.
pub(crate) type Policies = Vec<(u32, Vec<Arc<dyn PolicyHost>>)>;

/// Returns the policies in force for turns that begin in a round.
pub(crate) fn in_force(policies: &Policies, round: u32) -> &[Arc<dyn PolicyHost>] {
    policies.iter().rev().find(|(from, _)| *from <= round).map_or(&[], |(_, policies)| policies)
}

/// The plan of a society, made by its builder.
pub(crate) struct Plan {
    pub rounds: u32,
    /// 0: the barrier waits for answers; k: a turn that asks completes k rounds later.
    pub lag: u32,
    pub activation: Activation,
    /// The length of a round, in event time.
    pub window: Option<f64>,
    /// Agents of each cohort, in order of id.
    pub cohorts: Vec<u32>,
    pub names: Vec<String>,
    /// Messages that the scenario sends.
    pub messages: Vec<PlannedMessage>,
}

/// A text that the scenario sends in the name of an agent.
pub(crate) struct PlannedMessage {
    /// The round in which it is sent, as if the agent had sent it last.
    pub round: u32,
    pub from: AgentId,
    /// The recipients; `None`: the neighbours.
    pub to: Option<Vec<AgentId>>,
    pub text: String,
}

/// Returns the first agent of a block. All blocks of a run of rows start at multiples of [`BLOCK`].
pub(crate) fn first_of(block: usize) -> AgentId {
    (block * BLOCK) as AgentId
}
