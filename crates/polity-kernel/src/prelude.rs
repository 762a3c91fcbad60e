//! What nearly every policy, world, method and metric needs: `use polity_kernel::prelude::*`.

pub use crate::interface::{ActionArgument, NumberSlot, TableSlot, TextSlot};
pub use crate::method::{Method, Records, TeamContext, Verdict};
pub use crate::metric::{Metric, Source};
pub use crate::policy::{Fault, Person, Policy, PolicySetup, Turn};
pub use crate::registry::{LeafFiles, NoParams, Registry};
pub use crate::rng::Draws;
pub use crate::world::{
    AgentActions, DeclareSplit, DeclareWorld, Future, ObservationRow, SplitWorld, TimedWorld, World, WorldSetup,
};
pub use crate::{AgentId, Invalid};
