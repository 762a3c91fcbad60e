//! The inputs of metrics and tables: columns of the world, and columns of policies' agent states.

use super::plan::in_force;
use super::shard::Shard;
use super::state::Society;
use crate::interface::{Interface, NumberSlot};
use crate::policy::PolicyHost;
use crate::world::{Split, WorldHost};
use std::sync::Arc;

/// Returns what a world shows and understands, with the columns that policies add.
pub(crate) fn interface_of(world: &dyn WorldHost, policies: &[Arc<dyn PolicyHost>]) -> Interface {
    let mut interface = world.interface().clone();
    for column in policies.iter().flat_map(|policy| policy.columns()) {
        if interface.columns.iter().all(|known| known.name != column.name) {
            interface.columns.push(column);
        }
    }
    interface
}

impl Society {
    /// Returns whether a column of the interface belongs to policies and not to the world.
    #[must_use]
    pub fn is_of_policies(&self, column: usize) -> bool {
        self.shards.first().is_none_or(|shard| column >= shard.world.interface().columns.len())
    }

    /// Returns a column of the interface for every agent ever born, by id (the last value, for dead agents). In a policy column the
    /// value is NaN for agents of other policies. Of a society over several processes, the process of shard 0 has all values only if
    /// they were gathered since the last round ([`super::Gather::columns`]); without, the agents of other processes are missing.
    #[must_use]
    pub fn column(&self, column: usize) -> Vec<f64> {
        let mut out = self.own_column(column);
        out.extend(self.elsewhere.iter().filter_map(|shown| shown.columns.get(column)).flatten());
        out
    }

    /// The same, for the agents of this process.
    pub(super) fn own_column(&self, column: usize) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.born as usize);
        if self.is_of_policies(column) {
            let Some(column) = self.interface.columns.get(column) else { return vec![f64::NAN; self.born as usize] };
            let policies = in_force(&self.policies, self.round);
            let blocks = self.shards.iter().flat_map(Shard::blocks);
            blocks.for_each(|block| {
                block.shown(&column.name, policies, &self.shared_context, |_, value| out.push(value))
            });
            return out;
        }
        for shard in &self.shards {
            for block in shard.blocks() {
                let world = if self.split == Split::None { &self.shards[0].world } else { &shard.world };
                world.column(&block.rows, block.first, block.len as usize, column, &mut out);
            }
        }
        out
    }

    /// Returns a number that agents saw in the last round, by id; NaN for those born at its end.
    #[must_use]
    pub fn seen(&self, slot: NumberSlot) -> Vec<f64> {
        let mut out = self.own_seen(slot);
        out.extend(self.elsewhere.iter().filter_map(|shown| shown.seen.get(slot.0)).flatten());
        out
    }

    /// The same, for the agents of this process.
    pub(super) fn own_seen(&self, slot: NumberSlot) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.born as usize);
        for block in self.shards.iter().flat_map(Shard::blocks) {
            let seen = block.observations.rows();
            out.extend((0..block.len as usize).map(|row| match row < seen {
                true => block.observations.row(row).number(slot),
                false => f64::NAN,
            }));
        }
        out
    }
}
