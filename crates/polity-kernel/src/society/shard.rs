//! A shard: a run of consecutive blocks, in lanes that threads take.

use super::block::{Block, Segment, Span};
use super::{Measure, Policies, Reads, first_of, in_force};
use crate::ask::{Answer, Effect};
use crate::council::{Members, SharedBox, TallyBox};
use crate::digest::{Digest, Kind, RowHash};
use crate::mail::{Bucket, block_of};
use crate::metric::Fold;
use crate::policy::{Commons, Lane, Letters, PolicyHost, Round, Rows};
use crate::sight::{Acts, Interface, Sights};
use crate::world::{Birth, Future, Planned, Split, Tally, WorldHost};
use crate::{AgentId, BLOCK, Bug};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Lanes of a shard. More lanes than threads even the load out; the number can not reach a result.
const LANES: usize = 64;

#[derive(Default)]
struct Group {
    blocks: Vec<Block>,
    lane: Lane,
}

pub(crate) struct Shard {
    pub index: usize,
    /// What the cohorts that hold council share, by cohort.
    pub shared: Vec<Option<SharedBox>>,
    /// Its blocks, counted over the whole society. The last shard's grows with births.
    pub range: Range<usize>,
    pub world: Box<dyn WorldHost>,
    groups: Vec<Group>,
    /// Blocks of a lane; the last may have more.
    per: usize,
    /// Births and deaths that an unsplit world decided.
    pub future: Future,
}

/// How the turn of one agent went.
pub(crate) enum Turned {
    /// It waits for the answers to these questions.
    Waits(Vec<Effect>),
    /// It has acted.
    Acted,
    /// It did nothing that anybody could see.
    Done,
}

fn deads(dead: &BTreeSet<AgentId>, block: &Block) -> Vec<u32> {
    let end = block.first + block.len;
    dead.range(block.first..end).map(|who| who - block.first).collect()
}

/// Where an agent's acts stand at the end of its block's.
fn last_acts(acts: &Acts, who: AgentId) -> Range<usize> {
    let n = acts.rows.iter().rev().take_while(|act| act.who == who).count();
    acts.rows.len() - n..acts.rows.len()
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

    /// Takes blocks over, in lanes.
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
        commons: &Commons,
    ) -> Result<(), Bug> {
        let world = self.world.as_ref();
        let blocks: Vec<Block> = self
            .range
            .clone()
            .into_par_iter()
            .map(|i| Block::new(first_of(i), spans, agents, world, policies, commons))
            .collect::<Result<_, _>>()?;
        self.fill(blocks);
        Ok(())
    }

    pub fn sights_of(&self, first: AgentId, n: usize, commons: &Commons, interface: &Interface) -> Sights {
        let mut sights = Sights::new(interface, n);
        let none: crate::world::RowsBox = Box::new(());
        self.world.observe(&none, first, n, commons, &mut sights);
        sights
    }

    pub fn take_sights(&mut self, sights: Vec<Sights>) -> Result<(), Bug> {
        let mut given = sights.into_iter();
        for block in self.blocks_mut() {
            block.sights = given.next().ok_or_else(|| Bug::Transport("a block got no sights".into()))?;
        }
        Ok(())
    }

    /// Counts the agents of the cohorts that hold council, with what they see: of each run of them a tally, in order. Their sights
    /// stay for their turns.
    pub fn count(
        &mut self,
        round: u32,
        dead: &BTreeSet<AgentId>,
        policies: &[Arc<dyn PolicyHost>],
        commons: &Commons,
        interface: &Interface,
        split: Split,
    ) -> Result<Vec<(u16, TallyBox)>, Bug> {
        let world = self.world.as_ref();
        let observe_here = split == Split::Rows || self.index == 0;
        let count = |group: &mut Group| -> Result<Vec<(u16, TallyBox)>, Bug> {
            let mut tallies = Vec::new();
            for block in &mut group.blocks {
                block.observe(world, observe_here, commons, interface);
                let gone = deads(dead, block);
                for segment in &block.segments {
                    let Some(council) = policies.get(segment.cohort as usize).and_then(|policy| policy.council())
                    else {
                        continue;
                    };
                    let members = Members {
                        round,
                        first: block.first + segment.start,
                        states: &segment.states,
                        base: segment.start as usize,
                        len: segment.len as usize,
                        sights: &block.sights,
                        gone: &gone,
                        commons,
                    };
                    tallies.push((segment.cohort, council.count(&members)?));
                }
            }
            Ok(tallies)
        };
        let of_groups: Vec<_> = self.groups.par_iter_mut().map(count).collect::<Result<_, Bug>>()?;
        Ok(of_groups.into_iter().flatten().collect())
    }

    /// How many lanes it has.
    pub fn lanes(&self) -> usize {
        self.groups.len()
    }

    /// Begins the turns of some of its lanes. `observed`: whether the agents' sights of the round are there already.
    #[expect(clippy::too_many_arguments, reason = "the parts of the society that a round reads")]
    pub fn act(
        &mut self,
        lanes: Range<usize>,
        round: u32,
        lag: u32,
        blocks: usize,
        dead: &BTreeSet<AgentId>,
        policies: &[Arc<dyn PolicyHost>],
        commons: &Commons,
        interface: &Interface,
        split: Split,
        events: bool,
        observed: bool,
    ) -> Result<Vec<Effect>, Bug> {
        let world = self.world.as_ref();
        let observe_here = split == Split::Rows || self.index == 0;
        let round = Round { round, lag, commons, shared: &self.shared };
        let end = lanes.end.min(self.groups.len());
        let groups = self.groups.get_mut(lanes.start..end).unwrap_or_default();
        groups.par_iter_mut().try_for_each(|Group { blocks: group, lane }| {
            lane.reset(blocks);
            for block in group {
                if !observed {
                    block.observe(world, observe_here, commons, interface);
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
                        sights: &block.sights,
                        mail: Letters::OfBlock(&block.mail),
                        awake: if all { None } else { Some(&awake) },
                        acts: &mut block.acts,
                        suspended: &mut block.suspended,
                    };
                    policy.run(&mut segment.states, rows, &round, lane)?;
                }
                block.sights.release_tables();
                block.tally = None;
                if split == Split::Rows && block.suspended.is_empty() {
                    // Nobody's act is still to come: apply them while they lie in the cache.
                    block.apply(world, round.round, &gone, commons)?;
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
        commons: &Commons,
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
        // A turn that began earlier keeps its own round; this one is the round whose barrier it reaches.
        let round = Round { round: now, lag: 0, commons, shared: &self.shared };
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
                // Turns whose barrier has come and that have every answer complete now, also those whose answers came earlier.
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
                    // All at once: one by one they would move the rest each time.
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

    /// Begins a round in which agents act one after the other.
    pub fn begin_order(&mut self, blocks: usize) {
        for group in &mut self.groups {
            group.lane.reset(blocks);
            // Letters leave in the order of turns.
            group.lane.late = true;
            for block in &mut group.blocks {
                block.begin_acting();
                block.late = true;
            }
        }
    }

    /// Where an agent's block is: (lane, block of the lane).
    fn place(&self, who: AgentId) -> Result<(usize, usize), Bug> {
        let number = block_of(who).wrapping_sub(self.range.start);
        // A division a turn is worth stepping around.
        let group = if self.per == 1 { number } else { number / self.per };
        // Newborns' blocks stand with the last lane.
        let group = group.min(self.groups.len().saturating_sub(1));
        let block = number.wrapping_sub(group * self.per);
        match self.groups.get(group) {
            Some(lane) if block < lane.blocks.len() => Ok((group, block)),
            _ => Err(Bug::internal(format!("agent {who} is looked for on a shard where it does not live"))),
        }
    }

    /// Tries the turns of all agents out, as things stand before anybody has acted: which would leave no trace, by agent.
    pub fn try_out(
        &mut self,
        policies: &[Arc<dyn PolicyHost>],
        interface: &Interface,
        round: u32,
        commons: &Commons,
    ) -> Result<Vec<bool>, Bug> {
        let round = &Round { round, lag: 0, commons, shared: &self.shared };
        let world = self.world.as_ref();
        let try_out = |Group { blocks, lane }: &mut Group| -> Result<Vec<bool>, Bug> {
            let mut quiet = Vec::new();
            for block in blocks {
                let start = quiet.len();
                quiet.resize(start + block.len as usize, true);
                block.sights.reset(interface, block.len as usize);
                world.observe(&block.rows, block.first, block.len as usize, round.commons, &mut block.sights);
                for Segment { cohort, start: base, len, states } in &mut block.segments {
                    let policy =
                        policies.get(*cohort as usize).ok_or_else(|| Bug::internal("a cohort without a policy"))?;
                    let rows = Rows {
                        cohort: *cohort,
                        first: block.first + *base,
                        states: 0..*len as usize,
                        base: *base as usize,
                        sights: &block.sights,
                        mail: Letters::OfBlock(&block.mail),
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

    /// Runs the turn of one agent. What it asks goes out; what it does stands at the end of its block's acts.
    pub fn turn(
        &mut self,
        who: AgentId,
        sights: &Sights,
        policies: &[Arc<dyn PolicyHost>],
        (round, commons): (u32, &Commons),
    ) -> Result<Turned, Bug> {
        let (group, block) = self.place(who)?;
        let round = &Round { round, lag: 0, commons, shared: &self.shared };
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
            sights,
            mail: Letters::OfTurn(block.mail.inbox(row as usize)),
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

    /// Whether an agent's turn waits for answers.
    pub fn is_suspended(&self, who: AgentId) -> Result<bool, Bug> {
        let (group, block) = self.place(who)?;
        Ok(self.groups[group].blocks[block].suspended.binary_search_by_key(&who, |s| s.who).is_ok())
    }

    /// Applies the last acts of an agent to an unsplit state that lives here.
    pub fn apply_own(&mut self, who: AgentId, (round, commons): (u32, &Commons)) -> Result<(), Bug> {
        let (group, block) = self.place(who)?;
        let acts = &self.groups[group].blocks[block].acts;
        self.world.apply_acts(acts, last_acts(acts, who), round, commons, &mut self.future)
    }

    /// The last acts of an agent, to be applied elsewhere.
    pub fn last_acts(&self, who: AgentId) -> Result<Acts, Bug> {
        let (group, block) = self.place(who)?;
        let all = &self.groups[group].blocks[block].acts;
        let mut acts = Acts::default();
        for i in last_acts(all, who) {
            acts.push(all.rows[i], all.text(i).map(str::to_string));
        }
        Ok(acts)
    }

    /// Whether its world has planned events.
    pub fn plans_events(&self) -> bool {
        !self.future.events.is_empty() || self.blocks().any(|block| !block.future.events.is_empty())
    }

    /// Plans the first events of all agents.
    pub fn start(&mut self, commons: &Commons) {
        let world = self.world.as_ref();
        self.groups.par_iter_mut().for_each(|group| {
            for block in &mut group.blocks {
                world.start(&block.rows, block.first, commons, &mut block.future);
            }
        });
    }

    /// Sorts the events that were planned by destination; their digest. `next`: the first window that is still to come.
    pub fn sort_events(&mut self, blocks: usize, window: f64, next: u32, rounds: u32) -> Result<Digest, Bug> {
        let (begin, end) = (window * f64::from(next), window * f64::from(rounds));
        // Where windows meet, sums and products may be rounded apart.
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

    /// Takes planned events in. `frames`: from other shards, sorted by shard.
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

    /// Puts late acts into order; the digest of acts and letters of the round.
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

    /// The letters (or the events) of this shard's agents to the blocks of another shard, one bucket a block.
    pub fn buckets_for(&self, range: &Range<usize>, of: impl Fn(&Lane) -> &Vec<Bucket>) -> Vec<Bucket> {
        range
            .clone()
            .map(|block| {
                let mut out = Bucket::default();
                for bucket in self.groups.iter().filter_map(|g| of(&g.lane).get(block)) {
                    out.extend(bucket.inbox());
                }
                out
            })
            .collect()
    }

    /// Sorts the mail of all blocks; returns the number of letters. `frames`: from other shards, sorted by shard.
    pub fn deliver(&mut self, frames: &[(usize, Vec<Bucket>)], late: bool) -> u64 {
        let lanes: Vec<Vec<Bucket>> = self.groups.iter_mut().map(|g| std::mem::take(&mut g.lane.buckets)).collect();
        let (index, start) = (self.index, self.range.start);
        let letters = self
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
                        block.mail.fill(sources, late);
                    } else {
                        block.mail.fill(std::iter::once(&kept).chain(sources), true);
                    }
                    block.keep_mail();
                }
                sum
            })
            .sum();
        for (group, buckets) in self.groups.iter_mut().zip(lanes) {
            group.lane.buckets = buckets;
        }
        letters
    }

    /// Applies the acts of the blocks of a split world that are not applied yet; one tally a block, in order.
    pub fn apply(&mut self, round: u32, dead: &BTreeSet<AgentId>, commons: &Commons) -> Result<Vec<Tally>, Bug> {
        let world = self.world.as_ref();
        self.groups.par_iter_mut().try_for_each(|group| {
            group.blocks.iter_mut().filter(|block| block.tally.is_none()).try_for_each(|block| {
                let gone = deads(dead, block);
                block.apply(world, round, &gone, commons)
            })
        })?;
        Ok(self.blocks_mut().filter_map(|block| block.tally.take()).collect())
    }

    /// The digests of its agents' states and of its rows of the world.
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

    /// Folds a block for metrics that read the same values. `values` is scratch.
    pub fn fold(
        &self,
        measures: &[&Measure],
        block: &Block,
        dead: &BTreeSet<AgentId>,
        policies: &[Arc<dyn PolicyHost>],
        values: &mut Vec<f64>,
    ) -> Vec<Fold> {
        values.clear();
        match measures.first().map(|measure| &measure.reads) {
            Some(Reads::Act(kind)) => {
                values.reserve(block.acts.rows.len());
                values.extend(block.acts.rows.iter().filter(|act| act.kind == *kind).map(|act| act.value));
            }
            Some(Reads::Column(column)) => {
                self.world.column(&block.rows, block.first, block.len as usize, *column, values);
                let gone = deads(dead, block);
                if !gone.is_empty() {
                    let mut row = 0;
                    values.retain(|_| {
                        row += 1;
                        gone.binary_search(&(row - 1)).is_err()
                    });
                }
            }
            Some(Reads::State(name)) => {
                let gone = deads(dead, block);
                block.shown(name, policies, |row, value| {
                    if !value.is_nan() && gone.binary_search(&row).is_err() {
                        values.push(value);
                    }
                });
            }
            None => {}
        }
        measures.iter().map(|measure| measure.host.fold(values)).collect()
    }

    /// The folds of all blocks in order: of each block one a metric.
    pub fn folds(
        &self,
        measures: &[&Measure],
        dead: &BTreeSet<AgentId>,
        policies: &[Arc<dyn PolicyHost>],
    ) -> Vec<Vec<Fold>> {
        let of_group = |group: &Group| -> Vec<Vec<Fold>> {
            let mut values = Vec::new();
            group.blocks.iter().map(|block| self.fold(measures, block, dead, policies, &mut values)).collect()
        };
        let of_groups: Vec<_> = self.groups.par_iter().map(of_group).collect();
        of_groups.into_iter().flatten().collect()
    }

    /// Births with the cohort of the parent, and deaths, in order of agent.
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

    /// A dead agent waits for nothing.
    pub fn forget(&mut self, who: AgentId) {
        for block in self.blocks_mut() {
            block.suspended.retain(|s| s.who != who);
        }
    }

    pub fn join(&mut self, who: AgentId, cohort: u16, policies: &[Arc<dyn PolicyHost>], commons: &Commons, round: u32) {
        let full = self.groups.last().and_then(|g| g.blocks.last()).is_none_or(|b| b.len as usize == BLOCK);
        if full {
            let block = Block::empty(who, 0, self.world.seat(who..who, commons, round));
            match self.groups.last_mut() {
                Some(group) => group.blocks.push(block),
                None => self.groups.push(Group { blocks: vec![block], lane: Lane::default() }),
            }
            self.range.end = block_of(who) + 1;
        }
        let world = self.world.as_ref();
        if let Some(block) = self.groups.last_mut().and_then(|g| g.blocks.last_mut()) {
            block.join(who, cohort, world, policies, commons, round);
        }
    }

    /// Gives the blocks up, in order.
    pub fn empty_out(&mut self) {
        self.groups.clear();
    }
}
