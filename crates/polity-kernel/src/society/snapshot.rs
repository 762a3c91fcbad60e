//! Snapshots: everything a society needs to continue between two rounds, whatever the number of shards.

use super::block::{Block, Segment};
use super::plan::{first_of, in_force};
use super::state::{Society, Stage};
use crate::digest::Digest;
use crate::machine::Outcome;
use crate::messages::{Arena, Bucket};
use crate::policy::Waiting;
use crate::saved::{Part, Reader, Sink, Writer};
use crate::society::state::{birth, death};
use crate::{AgentId, Bug};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// Whose state it is, in errors.
const WHAT: &str = "the society";

/// Written first. Then comes the world's state (that on shard 0, and what all shards share), then each block: its [`BlockHead`],
/// the states of its segments, its rows of the world, its [`Pending`].
#[derive(Serialize, Deserialize)]
struct Head {
    round: u32,
    chain: Digest,
    born: u32,
    dead: BTreeSet<AgentId>,
    /// Parents of the agents born during the run, in order of birth: the population follows from them.
    parents: Vec<u32>,
    /// What cohorts share, by cohort; empty for those without a cohort step.
    shared: Vec<Vec<u8>>,
    /// How the run ended, if the snapshot is from after its last round.
    ended: Option<Outcome>,
    blocks: usize,
}

#[derive(Serialize, Deserialize)]
struct BlockHead {
    len: u32,
    /// Its segments: cohort, first row, number of rows.
    segments: Vec<(u16, u32, u32)>,
}

/// Delivered messages, waiting turns, messages they have not read, and planned events by window (the next first).
type Pending = (Arena, Waiting, Bucket, VecDeque<Bucket>);

pub(super) fn save(society: &Society, to: &mut dyn Sink) -> Result<(), Bug> {
    let mut to = Writer::new(to);
    let ended = match &society.stage {
        Stage::Ended(outcome) => Some(outcome.clone()),
        _ => None,
    };
    let head = Head {
        round: society.round,
        chain: society.chain,
        born: society.born,
        dead: society.dead.clone(),
        parents: society.parents.clone(),
        shared: society.save_shared()?,
        ended,
        blocks: society.blocks_in_all(),
    };
    // Of a society over several processes each saves its own blocks, in their order the same bytes as those of one process.
    if society.layout.leads() {
        to.begin(Part::Head);
        to.value(&head, WHAT)?;
        to.begin(Part::World);
        society.shards[0].world.save(&mut to)?;
    }
    let policies = in_force(&society.policies, society.round);
    for shard in &society.shards {
        for block in shard.blocks() {
            let segments = block.segments.iter().map(|segment| (segment.cohort, segment.start, segment.len)).collect();
            to.begin(Part::Block);
            to.value(&BlockHead { len: block.len, segments }, WHAT)?;
            to.begin(Part::Agents);
            for segment in &block.segments {
                let policy =
                    policies.get(segment.cohort as usize).ok_or_else(|| Bug::internal("a cohort without a policy"))?;
                policy.save(&segment.states, &mut to)?;
            }
            to.begin(Part::Rows);
            shard.world.save_rows(&block.rows, &mut to)?;
            to.begin(Part::Pending);
            to.value(&(&block.inbox, &block.suspended, &block.kept, &block.agenda), WHAT)?;
        }
    }
    Ok(())
}

pub(super) fn load(society: &mut Society, bytes: &[u8]) -> Result<(), Bug> {
    let mut from = Reader::new(bytes);
    let data: Head = from.value(WHAT)?;
    // Parameters that changed before the snapshot are in force after it.
    while society.changes.first().is_some_and(|(at, _)| *at < data.round) {
        let (at, leaves) = society.changes.remove(0);
        society.policies.push((at, leaves.policies));
        society.measures = leaves.measures;
        for (shard, world) in society.shards.iter_mut().zip(leaves.worlds) {
            society.interface = super::measure::interface_of(&*world, in_force(&society.policies, at));
            shard.world = world;
        }
    }
    let at_start: u32 = society.plan.cohorts.iter().sum();
    let unfit = |why: &str| Bug::Snapshot { what: WHAT.into(), why: why.into() };
    if society.born != at_start || data.born < at_start || data.parents.len() != (data.born - at_start) as usize {
        return Err(unfit("it was made with another number of agents"));
    }
    for parent in &data.parents {
        society.shared_context.population.push_like(*parent);
    }
    let whole = society.split == crate::world::Split::None;
    let of_world = from;
    for shard in &mut society.shards {
        shard.empty_out();
        if shard.index == 0 || !whole {
            from = of_world;
            shard.world.load(&mut from)?;
        }
    }
    for shard in 0..society.shards.len() {
        society.load_shared(&data.shared, shard, data.round)?;
    }
    let (layout, total) = (society.layout, data.blocks);
    let policies = in_force(&society.policies, data.round);
    let mut newborns = Vec::with_capacity(data.parents.len());
    for index in 0..layout.count() {
        let range = layout.range(index, total);
        let here = society.shards.iter().position(|shard| shard.index == index);
        let mut own = Vec::new();
        for number in range.clone() {
            let BlockHead { len, segments: runs } = from.value(WHAT)?;
            let mut segments = Vec::new();
            for (cohort, start, len) in &runs {
                let ids = first_of(number) + start..first_of(number) + start + len;
                newborns.extend(ids.filter(|id| *id >= at_start).map(|_| *cohort));
            }
            for (cohort, start, len) in runs {
                let policy = policies.get(cohort as usize).ok_or_else(|| unfit("an unknown cohort"))?;
                segments.push(Segment { cohort, start, len, states: policy.load(&mut from)? });
            }
            // The blocks of other processes are read to get past them.
            let rows = society.shards[here.unwrap_or(0)].world.load_rows(&mut from)?;
            let (inbox, suspended, kept, agenda): Pending = from.value(WHAT)?;
            if here.is_some() {
                own.push(Block {
                    segments,
                    inbox,
                    suspended,
                    kept,
                    agenda,
                    ..Block::empty(first_of(number), len, rows)
                });
            }
        }
        if let Some(shard) = here.map(|here| &mut society.shards[here]) {
            shard.range = range;
            shard.fill(own);
        }
    }
    from.end(WHAT)?;
    society.round = data.round;
    society.chain = data.chain;
    society.born = data.born;
    society.parents = data.parents;
    society.newborns = newborns;
    society.cut = total;
    (society.outgoing, society.arrived) = (Vec::new(), None);
    society.dead = data.dead;
    society.stage = data.ended.map_or(Stage::Border, Stage::Ended);
    society.life = Digest::default();
    society.dead.iter().for_each(|who| society.life.add(death(0, *who)));
    for (child, parent) in (at_start..).zip(&society.parents) {
        society.life.add(birth(0, child, *parent));
    }
    society.state = society.outset()?;
    Ok(())
}
