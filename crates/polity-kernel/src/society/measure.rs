//! The inputs of metrics and tables: columns of the world, columns of policies' agent states, and acts.

use super::plan::{Measure, Reads, in_force};
use super::shard::{Shard, Values};
use super::state::{Society, decode, encode};
use crate::Bug;
use crate::interface::Interface;
use crate::machine::RoundReport;
use crate::metric::Fold;
use crate::policy::PolicyHost;
use crate::transport::Frame;
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
    /// value is NaN for agents of other policies.
    #[must_use]
    pub fn column(&self, column: usize) -> Vec<f64> {
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

    pub(super) fn measure(&mut self, round: u32, report: &mut RoundReport) -> Result<(), Bug> {
        for (i, scalar) in self.interface.scalars.iter().enumerate() {
            report.metrics.push((scalar.name.to_string(), self.shards[0].world.scalar(i)));
        }
        let last = round + 1 >= self.plan.rounds;
        let policies = in_force(&self.policies, round);
        let mut due: Vec<&Measure> = Vec::new();
        due.extend(self.measures.iter().filter(|m| last || (round + 1).is_multiple_of(m.every)));
        // Adjacent metrics with the same input share one pass over the agents.
        for measures in due.chunk_by(|a, b| a.reads == b.reads) {
            let mut folds: Vec<Vec<Fold>> = measures.iter().map(|_| Vec::new()).collect();
            let mut take = |of_block: Vec<Fold>| folds.iter_mut().zip(of_block).for_each(|(all, fold)| all.push(fold));
            if self.split == Split::None && matches!(measures[0].reads, Reads::Column(_)) {
                // The state is on shard 0, and so is this reduction.
                let mut values = Values::default();
                for block in self.shards.iter().flat_map(Shard::blocks) {
                    take(self.shards[0].fold(measures, block, &self.dead, policies, &self.shared_context, &mut values));
                }
            } else {
                let mut frames = Vec::new();
                for shard in &self.shards {
                    let of_blocks = shard.folds(measures, &self.dead, policies, &self.shared_context);
                    if shard.index == 0 {
                        of_blocks.into_iter().for_each(&mut take);
                        continue;
                    }
                    let encode_block = |folds: &Vec<Fold>| -> Result<Vec<Vec<u8>>, Bug> {
                        folds.iter().zip(measures).map(|(fold, measure)| measure.host.encode(fold)).collect()
                    };
                    let bytes: Vec<Vec<Vec<u8>>> = of_blocks.iter().map(encode_block).collect::<Result<_, _>>()?;
                    frames.push(Frame { from: shard.index, to: 0, bytes: encode(&bytes)? });
                }
                for frame in self.transport.exchange(frames)? {
                    let blocks: Vec<Vec<Vec<u8>>> = decode(&frame.bytes)?;
                    for bytes in blocks {
                        let decoded = bytes.iter().zip(measures).map(|(bytes, measure)| measure.host.decode(bytes));
                        take(decoded.collect::<Result<_, _>>()?);
                    }
                }
            }
            for (measure, folds) in measures.iter().zip(folds) {
                measure.host.finish(folds, &mut |suffix, value| {
                    let name =
                        if suffix.is_empty() { measure.name.clone() } else { format!("{}.{suffix}", measure.name) };
                    report.metrics.push((name, value));
                })?;
            }
        }
        Ok(())
    }
}
