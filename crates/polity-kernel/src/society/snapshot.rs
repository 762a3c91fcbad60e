//! Snapshots: everything a society needs to go on from the border between two rounds, whatever the number of shards.

use super::block::{Block, Segment};
use super::{Society, Stage, decode, encode, first_of, in_force};
use crate::digest::Digest;
use crate::machine::Outcome;
use crate::mail::{Arena, Bucket};
use crate::policy::Waiting;
use crate::{AgentId, Bug};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

#[derive(Serialize, Deserialize)]
struct SegmentData {
    cohort: u16,
    start: u32,
    len: u32,
    states: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct BlockData {
    len: u32,
    segments: Vec<SegmentData>,
    rows: Vec<u8>,
    mail: Arena,
    suspended: Waiting,
    kept: Bucket,
    /// Events to come, by window; the next one first.
    agenda: VecDeque<Bucket>,
}

#[derive(Serialize, Deserialize)]
struct Data {
    round: u32,
    chain: Digest,
    born: u32,
    dead: BTreeSet<AgentId>,
    /// Parents of the agents born during the run, in order of birth: the population follows from them.
    parents: Vec<u32>,
    /// State of the world on shard 0, and the common state that all shards share.
    world: Vec<u8>,
    blocks: Vec<BlockData>,
    /// What cohorts share, by cohort; empty for those that hold no council.
    shared: Vec<Vec<u8>>,
    /// How the run ended, if this is the border after its last round.
    ended: Option<Outcome>,
}

pub(super) fn save(society: &Society) -> Result<Vec<u8>, Bug> {
    let mut blocks = Vec::new();
    for shard in &society.shards {
        for block in shard.blocks() {
            let mut segments = Vec::new();
            for segment in &block.segments {
                let policy = in_force(&society.policies, society.round)
                    .get(segment.cohort as usize)
                    .ok_or_else(|| Bug::internal("a cohort without a policy"))?;
                segments.push(SegmentData {
                    cohort: segment.cohort,
                    start: segment.start,
                    len: segment.len,
                    states: policy.save(&segment.states)?,
                });
            }
            blocks.push(BlockData {
                len: block.len,
                segments,
                rows: shard.world.save_rows(&block.rows)?,
                mail: block.mail.clone(),
                suspended: block.suspended.clone(),
                kept: block.kept.clone(),
                agenda: block.agenda.clone(),
            });
        }
    }
    let ended = match &society.stage {
        Stage::Ended(outcome) => Some(outcome.clone()),
        _ => None,
    };
    encode(&Data {
        round: society.round,
        chain: society.chain,
        born: society.born,
        dead: society.dead.clone(),
        parents: society.parents.clone(),
        world: society.shards[0].world.save()?,
        blocks,
        shared: society.save_shared()?,
        ended,
    })
}

pub(super) fn load(society: &mut Society, bytes: &[u8]) -> Result<(), Bug> {
    let data: Data = decode(bytes)?;
    // Parameters that changed before the snapshot are in force after it.
    while society.changes.first().is_some_and(|(at, _)| *at < data.round) {
        let (at, leaves) = society.changes.remove(0);
        society.policies.push((at, leaves.policies));
        society.measures = leaves.measures;
        for (shard, world) in society.shards.iter_mut().zip(leaves.worlds) {
            society.interface = super::interface_of(&*world, super::in_force(&society.policies, at));
            shard.world = world;
        }
    }
    let at_start: u32 = society.plan.cohorts.iter().sum();
    let unfit = |why: &str| Bug::Snapshot { what: "the society".into(), why: why.into() };
    if society.born != at_start || data.born < at_start || data.parents.len() != (data.born - at_start) as usize {
        return Err(unfit("it was made with another number of agents"));
    }
    for parent in &data.parents {
        society.commons.population.push_like(*parent);
    }
    let whole = society.split == crate::world::Split::None;
    for shard in &mut society.shards {
        shard.empty_out();
        if shard.index == 0 || !whole {
            shard.world.load(&data.world)?;
        }
    }
    for shard in 0..society.shards.len() {
        society.load_shared(&data.shared, shard, data.round)?;
    }
    let (n, total) = (society.shards.len(), data.blocks.len());
    let mut blocks = data.blocks.into_iter().enumerate();
    for (i, shard) in society.shards.iter_mut().enumerate() {
        shard.range = total * i / n..total * (i + 1) / n;
        let mut own = Vec::new();
        for (number, block) in blocks.by_ref().take(shard.range.len()) {
            let rows = shard.world.load_rows(&block.rows)?;
            let mut segments = Vec::new();
            for segment in block.segments {
                let policy = in_force(&society.policies, data.round)
                    .get(segment.cohort as usize)
                    .ok_or_else(|| unfit("an unknown cohort"))?;
                segments.push(Segment {
                    cohort: segment.cohort,
                    start: segment.start,
                    len: segment.len,
                    states: policy.load(&segment.states)?,
                });
            }
            own.push(Block {
                segments,
                mail: block.mail,
                suspended: block.suspended,
                kept: block.kept,
                agenda: block.agenda,
                ..Block::empty(first_of(number), block.len, rows)
            });
        }
        shard.fill(own);
    }
    society.round = data.round;
    society.chain = data.chain;
    society.born = data.born;
    society.parents = data.parents;
    society.dead = data.dead;
    society.stage = data.ended.map_or(Stage::Border, Stage::Ended);
    Ok(())
}
