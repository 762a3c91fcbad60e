//! A shard: a run of consecutive blocks, in lanes that threads process.

use super::block::{Block, Segment, Span};
use super::plan::{Grouping, Measure, PlannedMessage, Policies, Reads, Subset, first_of, in_force};
use crate::ask::{Answer, Effect};
use crate::cohort::{Members, SharedBox, TallyBox};
use crate::digest::{Digest, Kind, RowHash};
use crate::interface::{Actions, Interface, Observations};
use crate::messages::{Broadcast, Bucket, block_of};
use crate::metric::Fold;
use crate::policy::{Lane, Messages, PolicyHost, Round, Rows, SharedContext};
use crate::population::{Cell, Population};
use crate::world::{Birth, Future, Planned, Split, Tally, WorldHost};
use crate::{AgentId, BLOCK, Bug};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Lanes of a shard. More lanes than threads balance the load; the number does not affect results.
const LANES: usize = 64;

#[derive(Default)]
struct Group {
    blocks: Vec<Block>,
    lane: Lane,
}

pub(crate) struct Shard {
    pub index: usize,
    /// The shared state of the cohorts with a cohort step, by cohort.
    pub shared: Vec<Option<SharedBox>>,
    /// Its blocks, numbered over the whole society. That of the last shard grows with births.
    pub range: Range<usize>,
    pub world: Box<dyn WorldHost>,
    groups: Vec<Group>,
    /// Blocks per lane; the last lane may have more.
    per: usize,
    /// Births and deaths that an unsplit world decided.
    pub future: Future,
}

/// The result of one agent's turn.
pub(crate) enum Turned {
    /// It waits for the answers to these questions.
    Waits(Vec<Effect>),
    /// It has acted.
    Acted,
    /// It did nothing observable.
    Done,
}

/// The ids of the agents of some blocks.
fn ids_of(blocks: &Range<usize>) -> Range<AgentId> {
    let id = |block: usize| u32::try_from(block * BLOCK).unwrap_or(AgentId::MAX);
    id(blocks.start)..id(blocks.end)
}

fn deads(dead: &BTreeSet<AgentId>, block: &Block) -> Vec<u32> {
    let end = block.first + block.len;
    dead.range(block.first..end).map(|who| who - block.first).collect()
}

/// Returns the range of an agent's acts at the end of its block's.
fn last_acts(acts: &Actions, who: AgentId) -> Range<usize> {
    let n = acts.rows.iter().rev().take_while(|act| act.who == who).count();
    acts.rows.len() - n..acts.rows.len()
}

/// Scratch for folds.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// The values of a block.
    all: Vec<f64>,
    /// The agents that they belong to, if some metric counts a group only.
    whos: Vec<AgentId>,
    /// The values of each group.
    groups: Vec<Vec<f64>>,
}

/// Returns the group of an agent.
fn group_of(by: &Grouping, who: AgentId, block: &Block, people: &Population) -> Option<u32> {
    match by {
        Grouping::Rows(of_row) => of_row.get(people.row(who) as usize).copied(),
        Grouping::Cohorts => block.cohort_of(who).map(u32::from),
    }
}

impl Shard {
    pub fn new(index: usize, world: Box<dyn WorldHost>, range: Range<usize>) -> Self {
        Shard { index, shared: Vec::new(), range, world, groups: Vec::new(), future: Future::default(), per: 1 }
    }

    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.groups.iter().flat_map(|g| g.blocks.iter())
    }

    fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.groups.iter_mut().flat_map(|g| g.blocks.iter_mut())
    }

    /// Takes over blocks, in lanes.
    pub fn fill(&mut self, blocks: Vec<Block>) {
        let per = blocks.len().div_ceil(LANES).max(1);
        self.per = per;
        self.groups.clear();
        for block in blocks {
            match self.groups.last_mut() {
                Some(group) if group.blocks.len() < per => group.blocks.push(block),
                _ => self.groups.push(Group { blocks: vec![block], lane: Lane::default() }),
            }
        }
    }

    pub fn settle_in(
        &mut self,
        spans: &[Span],
        agents: u32,
        policies: &[Arc<dyn PolicyHost>],
        shared_context: &SharedContext,
    ) -> Result<(), Bug> {
        let world = self.world.as_ref();
        let blocks: Vec<Block> = self
            .range
            .clone()
            .into_par_iter()
            .map(|i| Block::new(first_of(i), spans, agents, world, policies, shared_context))
            .collect::<Result<_, _>>()?;
        self.fill(blocks);
        Ok(())
    }

    pub fn observations_of(
        &self,
        first: AgentId,
        n: usize,
        shared_context: &SharedContext,
        interface: &Interface,
    ) -> Observations {
        let mut observations = Observations::new(interface, n);
        let none: crate::world::RowsBox = Box::new(());
        self.world.observe(&none, first, n, shared_context, &mut observations);
        observations
    }

    pub fn take_observations(&mut self, observations: Vec<Observations>) -> Result<(), Bug> {
        let mut given = observations.into_iter();
        for block in self.blocks_mut() {
            block.observations = given.next().ok_or_else(|| Bug::Transport("a block got no observations".into()))?;
        }
        Ok(())
    }

    /// Counts the agents of the cohorts with a cohort step, with their observations. Returns one tally per run of them, in order.
    /// Their observations are kept for their turns.
    pub fn count(
        &mut self,
        round: u32,
        dead: &BTreeSet<AgentId>,
        policies: &[Arc<dyn PolicyHost>],
        shared_context: &SharedContext,
        interface: &Interface,
        split: Split,
    ) -> Result<Vec<(u16, TallyBox)>, Bug> {
        let world = self.world.as_ref();
        let observe_here = split == Split::Rows || self.index == 0;
        let count = |group: &mut Group| -> Result<Vec<(u16, TallyBox)>, Bug> {
            let mut tallies = Vec::new();
            for block in &mut group.blocks {
                block.observe(world, observe_here, shared_context, interface);
                let gone = deads(dead, block);
                for segment in &block.segments {
                    let Some(cohort_host) =
                        policies.get(segment.cohort as usize).and_then(|policy| policy.cohort_host())
                    else {
                        continue;
                    };
                    let members = Members {
                        round,
                        first: block.first + segment.start,
                        states: &segment.states,
                        base: segment.start as usize,
                        len: segment.len as usize,
                        observations: &block.observations,
                        gone: &gone,
                        shared_context,
                    };
                    tallies.push((segment.cohort, cohort_host.count(&members)?));
                }
            }
            Ok(tallies)
        };
        let of_groups: Vec<_> = self.groups.par_iter_mut().map(count).collect::<Result<_, Bug>>()?;
        Ok(of_groups.into_iter().flatten().collect())
    }

    /// Returns the number of lanes.
    pub fn lanes(&self) -> usize {
        self.groups.len()
    }

    /// Begins the turns of some of its lanes. `observed`: whether the agents' observations of the round exist already.
    #[expect(clippy::too_many_arguments, reason = "the parts of the society that a round reads")]
    pub fn act(
        &mut self,
        lanes: Range<usize>,
        round: u32,
        lag: u32,
        blocks: usize,
        dead: &BTreeSet<AgentId>,
        policies: &[Arc<dyn PolicyHost>],
        shared_context: &SharedContext,
        interface: &Interface,
        split: Split,
        events: bool,
        observed: bool,
    ) -> Result<Vec<Effect>, Bug> {
        let world = self.world.as_ref();
        let observe_here = split == Split::Rows || self.index == 0;
        let round = Round { round, lag, shared_context, shared: &self.shared };
        let own = self.own_agents(blocks);
        let end = lanes.end.min(self.groups.len());
        let groups = self.groups.get_mut(lanes.start..end).unwrap_or_default();
        groups.par_iter_mut().try_for_each(|Group { blocks: group, lane }| {
            lane.reset(blocks, own.clone());
            for block in group {
                if !observed {
                    block.observe(world, observe_here, shared_context, interface);
                }
                block.begin_acting();
                if events {
                    block.begin_window();
                }
                let happens = block.events.as_ref();
                let gone = deads(dead, block);
                let waiting: Vec<u32> = block.suspended.iter().map(|s| s.who - block.first).collect();
                let awake = |row: usize| {
                    happens.is_none_or(|events| !events.inbox(row).is_empty())
                        && gone.binary_search(&(row as u32)).is_err()
                        && waiting.binary_search(&(row as u32)).is_err()
                };
                let all = gone.is_empty() && waiting.is_empty() && happens.is_none();
                for segment in &mut block.segments {
                    let policy = policies
                        .get(segment.cohort as usize)
                        .ok_or_else(|| Bug::internal("a cohort without a policy"))?;
                    let rows = Rows {
                        cohort: segment.cohort,
                        first: block.first + segment.start,
                        states: 0..segment.len as usize,
                        base: segment.start as usize,
                        observations: &block.observations,
                        inbox: Messages::OfBlock(&block.inbox),
                        awake: if all { None } else { Some(&awake) },
                        acts: &mut block.acts,
                        suspended: &mut block.suspended,
                    };
                    policy.run(&mut segment.states, rows, &round, lane)?;
                }
                block.observations.release_tables();
                block.tally = None;
                if split == Split::Rows && block.suspended.is_empty() {
                    // No agent's act is still to come: apply the acts while they are in the cache.
                    block.apply(world, round.round, &gone, shared_context)?;
                }
            }
            Ok(())
        })?;
        Ok(groups.iter_mut().flat_map(|g| std::mem::take(&mut g.lane.effects)).collect())
    }

    pub fn hear(
        &mut self,
        answers: Vec<Answer>,
        now: u32,
        policies: &Policies,
        shared_context: &SharedContext,
    ) -> Result<Vec<Effect>, Bug> {
        let mut of_block: Vec<Vec<Answer>> = Vec::new();
        let blocks = self.range.len();
        of_block.resize_with(blocks, Vec::new);
        for answer in answers {
            of_block[block_of(answer.id.actor) - self.range.start].push(answer);
        }
        let mut rest = of_block.into_iter();
        let mut work: Vec<(&mut Group, Vec<Vec<Answer>>)> = Vec::with_capacity(self.groups.len());
        for group in &mut self.groups {
            let n = group.blocks.len();
            work.push((group, rest.by_ref().take(n).collect()));
        }
        // A turn that began earlier keeps its own round; this is the round whose barrier it reaches.
        let round = Round { round: now, lag: 0, shared_context, shared: &self.shared };
        work.par_iter_mut().try_for_each(|(group, answers)| {
            for (block, answers) in group.blocks.iter_mut().zip(answers) {
                if block.suspended.is_empty() {
                    continue;
                }
                let mut ready: BTreeSet<AgentId> = BTreeSet::new();
                for answer in std::mem::take(answers) {
                    let who = answer.id.actor;
                    if let Ok(i) = block.suspended.binary_search_by_key(&who, |s| s.who)
                        && block.suspended[i].began == answer.id.round
                        && block.suspended[i].hear(answer)
                    {
                        ready.insert(who);
                    }
                }
                // Turns at their barrier with all answers complete now, including those whose answers arrived earlier.
                if block.looked.replace(now) != Some(now) {
                    ready.extend(block.suspended.iter().filter(|s| s.due <= now && s.open().is_empty()).map(|s| s.who));
                }
                let mut done = Vec::new();
                for who in ready {
                    let Ok(i) = block.suspended.binary_search_by_key(&who, |s| s.who) else { continue };
                    let row = who - block.first;
                    let Some(segment) = block.segments.iter_mut().find(|s| (s.start..s.start + s.len).contains(&row))
                    else {
                        continue;
                    };
                    let policy = in_force(policies, block.suspended[i].began)
                        .get(segment.cohort as usize)
                        .ok_or_else(|| Bug::internal("a cohort without a policy"))?;
                    let at = ((row - segment.start) as usize, segment.cohort);
                    let waiting = &mut block.suspended[i];
                    if policy.rerun(&mut segment.states, at, waiting, &round, &mut block.acts, &mut group.lane)? {
                        done.push(who);
                    }
                }
                if !done.is_empty() {
                    block.late = true;
                    // All at once: one by one, each would move the rest.
                    let (suspended, kept) = (&mut block.suspended, &mut block.kept);
                    suspended.retain(|turn| {
                        let complete = done.binary_search(&turn.who).is_ok();
                        if complete {
                            kept.extend(turn.held.inbox());
                        }
                        !complete
                    });
                }
            }
            Ok(())
        })?;
        Ok(self.groups.iter_mut().flat_map(|g| std::mem::take(&mut g.lane.effects)).collect())
    }

    /// Begins a round in which agents act sequentially.
    pub fn begin_order(&mut self, blocks: usize) {
        let own = self.own_agents(blocks);
        for group in &mut self.groups {
            group.lane.reset(blocks, own.clone());
            // Messages are sent in the order of turns.
            group.lane.late = true;
            for block in &mut group.blocks {
                block.begin_acting();
                block.late = true;
            }
        }
    }

    /// Returns the position of an agent's block: (lane, block of the lane).
    fn place(&self, who: AgentId) -> Result<(usize, usize), Bug> {
        let number = block_of(who).wrapping_sub(self.range.start);
        // Avoid a division per turn if possible.
        let group = if self.per == 1 { number } else { number / self.per };
        // Blocks of newborns are in the last lane.
        let group = group.min(self.groups.len().saturating_sub(1));
        let block = number.wrapping_sub(group * self.per);
        match self.groups.get(group) {
            Some(lane) if block < lane.blocks.len() => Ok((group, block)),
            _ => Err(Bug::internal(format!("agent {who} is looked for on a shard where it does not live"))),
        }
    }

    /// Tries out the turns of all agents in the state before any has acted; returns which would leave no trace, by agent.
    pub fn try_out(
        &mut self,
        policies: &[Arc<dyn PolicyHost>],
        interface: &Interface,
        round: u32,
        shared_context: &SharedContext,
    ) -> Result<Vec<bool>, Bug> {
        let round = &Round { round, lag: 0, shared_context, shared: &self.shared };
        let world = self.world.as_ref();
        let try_out = |Group { blocks, lane }: &mut Group| -> Result<Vec<bool>, Bug> {
            let mut quiet = Vec::new();
            for block in blocks {
                let start = quiet.len();
                quiet.resize(start + block.len as usize, true);
                block.observations.reset(interface, block.len as usize);
                world.observe(
                    &block.rows,
                    block.first,
                    block.len as usize,
                    round.shared_context,
                    &mut block.observations,
                );
                for Segment { cohort, start: base, len, states } in &mut block.segments {
                    let policy =
                        policies.get(*cohort as usize).ok_or_else(|| Bug::internal("a cohort without a policy"))?;
                    let rows = Rows {
                        cohort: *cohort,
                        first: block.first + *base,
                        states: 0..*len as usize,
                        base: *base as usize,
                        observations: &block.observations,
                        inbox: Messages::OfBlock(&block.inbox),
                        awake: None,
                        acts: &mut block.acts,
                        suspended: &mut block.suspended,
                    };
                    for who in policy.try_out(states, rows, round, lane)? {
                        quiet[start + (who - block.first) as usize] = false;
                    }
                }
            }
            Ok(quiet)
        };
        let of_groups: Vec<Vec<bool>> = self.groups.par_iter_mut().map(try_out).collect::<Result<_, _>>()?;
        Ok(of_groups.concat())
    }

    /// Runs the turn of one agent. Its questions go out; its acts are appended to its block's.
    pub fn turn(
        &mut self,
        who: AgentId,
        observations: &Observations,
        policies: &[Arc<dyn PolicyHost>],
        (round, shared_context): (u32, &SharedContext),
    ) -> Result<Turned, Bug> {
        let (group, block) = self.place(who)?;
        let round = &Round { round, lag: 0, shared_context, shared: &self.shared };
        let Group { blocks, lane } = &mut self.groups[group];
        let block = &mut blocks[block];
        let row = who - block.first;
        let segment = block
            .segments
            .iter_mut()
            .find(|s| (s.start..s.start + s.len).contains(&row))
            .ok_or_else(|| Bug::internal("an agent without a cohort"))?;
        let policy = policies.get(segment.cohort as usize).ok_or_else(|| Bug::internal("a cohort without a policy"))?;
        let index = (row - segment.start) as usize;
        let before = block.acts.rows.len();
        let waiting = block.suspended.len();
        let rows = Rows {
            cohort: segment.cohort,
            first: who,
            states: index..index + 1,
            base: 0,
            observations,
            inbox: Messages::OfTurn(block.inbox.inbox(row as usize)),
            awake: None,
            acts: &mut block.acts,
            suspended: &mut block.suspended,
        };
        policy.run(&mut segment.states, rows, round, lane)?;
        Ok(if block.suspended.len() > waiting {
            Turned::Waits(std::mem::take(&mut lane.effects))
        } else if block.acts.rows.len() > before {
            Turned::Acted
        } else {
            Turned::Done
        })
    }

    /// Returns whether an agent's turn waits for answers.
    pub fn is_suspended(&self, who: AgentId) -> Result<bool, Bug> {
        let (group, block) = self.place(who)?;
        Ok(self.groups[group].blocks[block].suspended.binary_search_by_key(&who, |s| s.who).is_ok())
    }

    /// Applies the last acts of an agent to an unsplit state on this shard.
    pub fn apply_own(&mut self, who: AgentId, (round, shared_context): (u32, &SharedContext)) -> Result<(), Bug> {
        let (group, block) = self.place(who)?;
        let acts = &self.groups[group].blocks[block].acts;
        self.world.apply_acts(acts, last_acts(acts, who), round, shared_context, &mut self.future)
    }

    /// Returns the last acts of an agent, to be applied on another shard.
    pub fn last_acts(&self, who: AgentId) -> Result<Actions, Bug> {
        let (group, block) = self.place(who)?;
        let all = &self.groups[group].blocks[block].acts;
        let mut acts = Actions::default();
        for i in last_acts(all, who) {
            acts.push(all.rows[i], all.text(i).map(str::to_string));
        }
        Ok(acts)
    }

    /// Returns whether its world has planned events.
    pub fn plans_events(&self) -> bool {
        !self.future.events.is_empty() || self.blocks().any(|block| !block.future.events.is_empty())
    }

    /// Plans the first events of all agents.
    pub fn start(&mut self, shared_context: &SharedContext) {
        let world = self.world.as_ref();
        self.groups.par_iter_mut().for_each(|group| {
            for block in &mut group.blocks {
                world.start(&block.rows, block.first, shared_context, &mut block.future);
            }
        });
    }

    /// Sorts planned events by destination; returns their digest. `next`: the first future window.
    pub fn sort_events(&mut self, blocks: usize, window: f64, next: u32, rounds: u32) -> Result<Digest, Bug> {
        let (begin, end) = (window * f64::from(next), window * f64::from(rounds));
        // Where windows meet, sums and products may be rounded differently.
        let earliest = begin - window * 1e-6;
        let digests: Vec<Digest> = self
            .groups
            .par_iter_mut()
            .map(|Group { blocks: group, lane }| {
                lane.events.resize_with(blocks, Bucket::default);
                lane.events.iter_mut().for_each(Bucket::clear);
                let mut digest = Digest::default();
                let head = RowHash::new(Kind::Event, next);
                for block in group {
                    for Planned { from, to, kind, at } in block.future.events.drain(..) {
                        if !(at >= earliest && at.is_finite()) {
                            let message = format!(
                                "the world planned an event at time {at}, before the end of the window at {begin}"
                            );
                            return Err(Bug::Turn { agent: from, round: next.saturating_sub(1), message });
                        }
                        let ends = u64::from(from) << 32 | u64::from(to);
                        digest.add(head.words(ends, at.to_bits()).word(u64::from(kind)).finish());
                        if at < end
                            && let Some(bucket) = lane.events.get_mut(block_of(to))
                        {
                            bucket.number(from, to, kind, at);
                        }
                    }
                }
                Ok(digest)
            })
            .collect::<Result<_, Bug>>()?;
        let mut sum = Digest::default();
        digests.into_iter().for_each(|digest| sum.merge(digest));
        Ok(sum)
    }

    /// Takes planned events. `frames`: from other shards, sorted by shard.
    pub fn plan(&mut self, frames: &[(usize, Vec<Bucket>)], window: f64, next: u32) {
        let lanes: Vec<Vec<Bucket>> = self.groups.iter_mut().map(|g| std::mem::take(&mut g.lane.events)).collect();
        let (index, start) = (self.index, self.range.start);
        self.groups.par_iter_mut().for_each(|group| {
            for block in &mut group.blocks {
                let number = block_of(block.first);
                let before = frames.iter().filter(|f| f.0 < index).filter_map(|f| f.1.get(number - start));
                let after = frames.iter().filter(|f| f.0 > index).filter_map(|f| f.1.get(number - start));
                let own = lanes.iter().filter_map(|l| l.get(number));
                before.chain(own).chain(after).for_each(|planned| block.plan(planned, window, next));
            }
        });
        for (group, events) in self.groups.iter_mut().zip(lanes) {
            group.lane.events = events;
        }
    }

    /// Sends a message of the scenario, after those that its sender sent itself.
    pub fn send_planned(&mut self, planned: &PlannedMessage, shared_context: &SharedContext) {
        let block = block_of(planned.from);
        let owner = |group: &&mut Group| group.blocks.iter().any(|own| block_of(own.first) == block);
        if let Some(group) = self.groups.iter_mut().find(owner) {
            let to = planned.to.as_deref();
            group.lane.send_text(planned.from, to, &planned.text, planned.round, shared_context);
        }
    }

    /// Sorts late acts into order; returns the digest of acts and messages of the round.
    pub fn close_acting(&mut self) -> Digest {
        let mut sum = Digest::default();
        for group in &mut self.groups {
            sum.merge(group.lane.digest);
            for block in &mut group.blocks {
                if block.late {
                    block.acts.sort();
                }
            }
        }
        sum
    }

    pub fn any_late(&self) -> bool {
        self.groups.iter().any(|g| g.lane.late)
    }

    /// The ids of its agents, if there are other shards. `blocks`: those of all shards.
    fn own_agents(&self, blocks: usize) -> Option<Range<AgentId>> {
        (self.range.len() < blocks).then(|| ids_of(&self.range))
    }

    /// Appends what its agents told all neighbours, as far as some are on blocks of another shard.
    pub fn pack_broadcasts(&self, blocks: &Range<usize>, shared_context: &SharedContext, to: &mut Vec<u8>) {
        let (ids, audience) = (ids_of(blocks), shared_context.audience());
        let is_heard = |broadcast: &&Broadcast| audience.neighbours_in(broadcast.from, ids.clone()).next().is_some();
        let length = to.len();
        to.extend([0; 8]);
        let broadcasts = self.groups.iter().flat_map(|group| &group.lane.broadcasts);
        let mut count = 0u64;
        broadcasts.filter(is_heard).for_each(|broadcast| {
            broadcast.pack(to);
            count += 1;
        });
        to[length..length + 8].copy_from_slice(&count.to_le_bytes());
    }

    /// Tells its agents what agents of another shard told all neighbours, as [`Shard::pack_broadcasts`] has packed it. Returns buckets
    /// for its blocks, in order, several for each, and the digest of these messages.
    pub fn hear_broadcasts(
        &self,
        packed: &[u8],
        round: u32,
        shared_context: &SharedContext,
    ) -> (Vec<Vec<Bucket>>, Digest) {
        let (ids, blocks) = (ids_of(&self.range), self.range.len());
        let (packed, _) = packed.as_chunks::<{ Broadcast::PACKED }>();
        let runs = packed.par_chunks(packed.len().div_ceil(LANES).max(1024));
        let told = runs.map(|run| {
            let (mut buckets, mut digest) = (vec![Bucket::default(); blocks], Digest::default());
            for bytes in run {
                let broadcast = Broadcast::unpack(bytes);
                broadcast.tell(shared_context.audience(), &ids, round, &mut buckets, self.range.start, &mut digest);
            }
            (buckets, digest)
        });
        let told: Vec<(Vec<Bucket>, Digest)> = told.collect();
        let mut sum = Digest::default();
        told.iter().for_each(|(_, digest)| sum.merge(*digest));
        (told.into_iter().map(|(buckets, _)| buckets).collect(), sum)
    }

    /// Appends the messages (or the events) of this shard's agents to the blocks of another shard to a frame, one bucket per block.
    pub fn pack_for(&self, blocks: &Range<usize>, of: impl Fn(&Lane) -> &Vec<Bucket> + Copy, to: &mut Vec<u8>) {
        for block in blocks.clone() {
            Bucket::pack(self.groups.iter().filter_map(|group| of(&group.lane).get(block)), to);
        }
    }

    /// Sorts the inboxes of all blocks; returns the number of messages. `frames`: from other shards, sorted by shard.
    pub fn deliver(&mut self, frames: &[(usize, Vec<Bucket>)], late: bool) -> u64 {
        let lanes: Vec<Vec<Bucket>> = self.groups.iter_mut().map(|g| std::mem::take(&mut g.lane.buckets)).collect();
        let (index, start) = (self.index, self.range.start);
        let messages = self
            .groups
            .par_iter_mut()
            .map(|group| {
                let mut sum = 0;
                for block in &mut group.blocks {
                    let number = block_of(block.first);
                    let kept = std::mem::take(&mut block.kept);
                    let before = frames.iter().filter(|f| f.0 < index).filter_map(|f| f.1.get(number - start));
                    let after = frames.iter().filter(|f| f.0 > index).filter_map(|f| f.1.get(number - start));
                    let own = lanes.iter().filter_map(|l| l.get(number));
                    let sources = before.chain(own).chain(after);
                    sum += sources.clone().map(|b| b.len() as u64).sum::<u64>();
                    if kept.is_empty() {
                        block.inbox.fill(sources, late);
                    } else {
                        block.inbox.fill(std::iter::once(&kept).chain(sources), true);
                    }
                    block.keep_mail();
                }
                sum
            })
            .sum();
        for (group, buckets) in self.groups.iter_mut().zip(lanes) {
            group.lane.buckets = buckets;
        }
        messages
    }

    /// Applies the acts of the blocks of a split world that are not applied yet; returns one tally per block, in order.
    pub fn apply(
        &mut self,
        round: u32,
        dead: &BTreeSet<AgentId>,
        shared_context: &SharedContext,
    ) -> Result<Vec<Tally>, Bug> {
        let world = self.world.as_ref();
        self.groups.par_iter_mut().try_for_each(|group| {
            group.blocks.iter_mut().filter(|block| block.tally.is_none()).try_for_each(|block| {
                let gone = deads(dead, block);
                block.apply(world, round, &gone, shared_context)
            })
        })?;
        Ok(self.blocks_mut().filter_map(|block| block.tally.take()).collect())
    }

    /// Returns the digests of its agents' states and of its rows of the world.
    pub fn digests(&self, policies: &[Arc<dyn PolicyHost>]) -> Result<(Digest, Digest), Bug> {
        let (mut agents, mut rows) = (Digest::default(), Digest::default());
        for block in self.blocks() {
            for segment in &block.segments {
                let policy =
                    policies.get(segment.cohort as usize).ok_or_else(|| Bug::internal("a cohort without a policy"))?;
                agents.merge(policy.digest(&segment.states)?);
            }
            rows.merge(self.world.digest_rows(&block.rows)?);
        }
        Ok((agents, rows))
    }

    /// Folds a block for metrics with the same input. `values` is scratch.
    pub fn fold(
        &self,
        measures: &[&Measure],
        block: &Block,
        dead: &BTreeSet<AgentId>,
        policies: &[Arc<dyn PolicyHost>],
        shared_context: &SharedContext,
        values: &mut Values,
    ) -> Vec<Fold> {
        let people = &shared_context.population;
        let gone = deads(dead, block);
        let alive = |row: u32| gone.is_empty() || gone.binary_search(&row).is_err();
        let last_group = measures.iter().filter_map(|measure| measure.subset.as_ref()).map(|subset| subset.group).max();
        let grouped = last_group.is_some();
        let Values { all, whos, groups } = values;
        all.clear();
        whos.clear();
        match measures.first().map(|measure| &measure.reads) {
            Some(Reads::Action(kind)) => {
                let acts = || block.acts.rows.iter().filter(|act| act.kind == *kind);
                all.reserve(block.acts.rows.len());
                all.extend(acts().map(|act| act.value));
                whos.extend(acts().filter(|_| grouped).map(|act| act.who));
            }
            Some(Reads::Column(column)) => {
                self.world.column(&block.rows, block.first, block.len as usize, *column, all);
                if !gone.is_empty() {
                    let mut row = 0;
                    all.retain(|_| {
                        row += 1;
                        alive(row - 1)
                    });
                }
                whos.extend((0..block.len).filter(|row| grouped && alive(*row)).map(|row| block.first + row));
            }
            Some(Reads::State(name)) => block.shown(name, policies, shared_context, |row, value| {
                if !value.is_nan() && alive(row) {
                    all.push(value);
                    whos.extend(grouped.then_some(block.first + row));
                }
            }),
            Some(Reads::Attribute(column)) => {
                for row in (0..block.len).filter(|row| alive(*row)) {
                    if let Cell::Number(value) = people.cell(*column, block.first + row)
                        && !value.is_nan()
                    {
                        all.push(value);
                        whos.extend(grouped.then_some(block.first + row));
                    }
                }
            }
            Some(Reads::Rows(parts)) => {
                let parts: Vec<Vec<f64>> = parts.iter().map(|part| self.each(part, block, people)).collect();
                let whole = |row: &usize| alive(*row as u32) && parts.iter().all(|part| !part[*row].is_nan());
                let rows = (0..block.len as usize).filter(whole);
                all.extend(rows.flat_map(|row| parts.iter().map(move |part| part[row])));
            }
            // Groups are read only in rows.
            Some(Reads::Group(_)) | None => {}
        }
        groups.resize_with(last_group.map_or(0, |group| group as usize + 1), Vec::new);
        let mut folds = Vec::with_capacity(measures.len());
        // The groups that values are split by. Metrics of the same groups follow one another.
        let mut split_by: Option<&Grouping> = None;
        for measure in measures {
            let Some(Subset { by, group }) = &measure.subset else {
                folds.push(measure.host.fold(all));
                continue;
            };
            if split_by != Some(by) {
                split_by = Some(by);
                groups.iter_mut().for_each(Vec::clear);
                for (who, value) in whos.iter().zip(all.iter()) {
                    let place = group_of(by, *who, block, people);
                    if let Some(values) = place.and_then(|place| groups.get_mut(place as usize)) {
                        values.push(*value);
                    }
                }
            }
            folds.push(measure.host.fold(groups.get(*group as usize).map(Vec::as_slice).unwrap_or_default()));
        }
        folds
    }

    /// Returns a number of each agent of a block; NaN for an agent that has none.
    fn each(&self, reads: &Reads, block: &Block, people: &Population) -> Vec<f64> {
        let who = block.first..block.first + block.len;
        match reads {
            Reads::Column(column) => {
                let mut all = Vec::new();
                self.world.column(&block.rows, block.first, block.len as usize, *column, &mut all);
                all
            }
            Reads::Attribute(column) => who
                .map(|who| match people.cell(*column, who) {
                    Cell::Number(value) => value,
                    Cell::Text(_) => f64::NAN,
                })
                .collect(),
            Reads::Group(by) => who.map(|who| group_of(by, who, block, people).map_or(f64::NAN, f64::from)).collect(),
            // Rows have none of these.
            Reads::Action(_) | Reads::State(_) | Reads::Rows(_) => vec![f64::NAN; block.len as usize],
        }
    }

    /// Returns the folds of all blocks in order, one per metric for each block.
    pub fn folds(
        &self,
        measures: &[&Measure],
        dead: &BTreeSet<AgentId>,
        policies: &[Arc<dyn PolicyHost>],
        shared_context: &SharedContext,
    ) -> Vec<Vec<Fold>> {
        let of_group = |group: &Group| -> Vec<Vec<Fold>> {
            let mut values = Values::default();
            group
                .blocks
                .iter()
                .map(|block| self.fold(measures, block, dead, policies, shared_context, &mut values))
                .collect()
        };
        let of_groups: Vec<_> = self.groups.par_iter().map(of_group).collect();
        of_groups.into_iter().flatten().collect()
    }

    /// Returns births with the cohort of the parent, and deaths, in order of agent.
    pub fn take_life(&mut self) -> (Vec<(Birth, u16)>, Vec<AgentId>) {
        let whole = std::mem::take(&mut self.future);
        let mut births: Vec<(Birth, u16)> = whole.births.into_iter().map(|b| (b, u16::MAX)).collect();
        let mut deaths = whole.deaths;
        for block in self.blocks_mut() {
            deaths.append(&mut block.future.deaths);
            births.extend(std::mem::take(&mut block.future.births).into_iter().map(|b| {
                let cohort = block.cohort_of(b.parent).unwrap_or(u16::MAX);
                (b, cohort)
            }));
        }
        (births, deaths)
    }

    /// Removes a dead agent's waiting turn.
    pub fn forget(&mut self, who: AgentId) {
        for block in self.blocks_mut() {
            block.suspended.retain(|s| s.who != who);
        }
    }

    pub fn spawn(
        &mut self,
        who: AgentId,
        cohort: u16,
        policies: &[Arc<dyn PolicyHost>],
        shared_context: &SharedContext,
        round: u32,
    ) {
        let full = self.groups.last().and_then(|g| g.blocks.last()).is_none_or(|b| b.len as usize == BLOCK);
        if full {
            let block = Block::empty(who, 0, self.world.init_rows(who..who, shared_context, round));
            match self.groups.last_mut() {
                Some(group) => group.blocks.push(block),
                None => self.groups.push(Group { blocks: vec![block], lane: Lane::default() }),
            }
            self.range.end = block_of(who) + 1;
        }
        let world = self.world.as_ref();
        if let Some(block) = self.groups.last_mut().and_then(|g| g.blocks.last_mut()) {
            block.spawn(who, cohort, world, policies, shared_context, round);
        }
    }

    /// Releases the blocks, in order.
    pub fn empty_out(&mut self) {
        self.groups.clear();
    }
}
