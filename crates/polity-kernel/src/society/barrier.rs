//! The barrier of a round, in two exchanges between shards. First every shard gives the others its messages, its planned events, its
//! tallies, births and deaths. Then it gives them the folds of its metrics and the digests of its state. Every process merges the same
//! parts in the order of shards, so all have the same report, and none depends on the number of shards.

use super::plan::{Measure, in_force};
use super::shard::{Shard, Values};
use super::state::{Closing, Incoming, Outset, Reduced, Society, Stage, Told, birth, death};
use crate::digest::{Digest, Kind, RowHash};
use crate::interface::Actions;
use crate::layout::{Frame, decode, encode};
use crate::machine::{Outcome, RoundReport};
use crate::messages::{Broadcast, Bucket, block_of};
use crate::metric::Fold;
use crate::policy::Lane;
use crate::world::{Birth, Split, Tally};
use crate::{AgentId, BLOCK, Bug};

/// By metrics with the same input, by block: the fold of each metric.
type FoldsOfShard = Vec<Vec<Vec<Fold>>>;

/// Splits the first part, with its length in front, off the bytes of a frame.
fn split_off<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Bug> {
    let cut = || {
        let (length, rest) = bytes.split_first_chunk::<8>()?;
        rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
    };
    let (part, rest) = cut().ok_or_else(cut_short)?;
    *bytes = rest;
    Ok(part)
}

fn cut_short() -> Bug {
    Bug::Transport("a frame is cut short".into())
}

/// Splits the messages to all neighbours off the bytes of a frame.
fn split_broadcasts<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Bug> {
    let cut = || {
        let (count, rest) = bytes.split_first_chunk::<8>()?;
        rest.split_at_checked(usize::try_from(u64::from_le_bytes(*count)).ok()?.checked_mul(Broadcast::PACKED)?)
    };
    let (part, rest) = cut().ok_or_else(cut_short)?;
    *bytes = rest;
    Ok(part)
}

/// Reads a bucket for each block of a shard.
fn buckets(blocks: usize, from: &mut &[u8]) -> Result<Vec<Bucket>, Bug> {
    (0..blocks).map(|_| Bucket::unpack(from).ok_or_else(cut_short)).collect()
}

impl Society {
    /// Gives frames to the shards of this process at once. Those for other processes wait to be carried; there is one for each of
    /// them, even if it is empty, so that a process knows what to wait for.
    pub(super) fn send(&mut self, mut frames: Vec<Frame>) {
        if !self.layout.is_spread() {
            self.arrived = Some(self.exchange(frames));
            return;
        }
        let from = self.layout.own().start;
        for to in (0..self.layout.count()).filter(|to| *to != from) {
            if frames.iter().all(|frame| frame.to != to) {
                frames.push(Frame { from, to, bytes: Vec::new() });
            }
        }
        frames.sort_by_key(|frame| frame.to);
        self.carried += frames.iter().map(|frame| frame.bytes.len() as u64).sum::<u64>();
        self.outgoing = frames;
        self.arrived = None;
    }

    /// Carries frames between the shards of this process. Returns them by destination, whatever the order of sending.
    pub(super) fn exchange(&mut self, mut frames: Vec<Frame>) -> Vec<Frame> {
        self.carried += frames.iter().map(|frame| frame.bytes.len() as u64).sum::<u64>();
        // A network would not keep order: reverse, then sort, so that no caller relies on the order of sending.
        frames.reverse();
        frames.sort_by_key(|frame| (frame.to, frame.from));
        frames
    }

    /// Takes the frames of the other processes.
    pub(super) fn take_frames(&mut self, mut frames: Vec<Frame>) -> Result<(), Bug> {
        let own = self.layout.own().start;
        frames.sort_by_key(|frame| frame.from);
        let others = (0..self.layout.count()).filter(|shard| *shard != own);
        if self.arrived.is_some()
            || !self.layout.is_spread()
            || !frames.iter().map(|frame| (frame.from, frame.to)).eq(others.map(|from| (from, own)))
        {
            return Err(Bug::Transport("one frame from each other process is expected".into()));
        }
        self.arrived = Some(frames);
        Ok(())
    }

    /// Returns the number of blocks in all shards.
    pub(super) fn blocks_in_all(&self) -> usize {
        (self.born as usize).div_ceil(BLOCK).max(1)
    }

    /// Returns the blocks of a shard, of whatever process. Agents born during the run live on the last shard.
    pub(super) fn range_of(&self, shard: usize) -> std::ops::Range<usize> {
        let mut range = self.layout.range(shard, self.cut);
        if shard + 1 == self.layout.count() {
            range.end = range.end.max(self.blocks_in_all());
        }
        range
    }

    /// Ends the turns of the round. Returns what each shard gives the others.
    pub(super) fn close_acting(&mut self) -> Result<(Closing, Vec<Frame>), Bug> {
        let round = self.round;
        let mut closing = Closing {
            report: RoundReport { round, agents: self.alive(), ..RoundReport::default() },
            ..Closing::default()
        };
        for planned in self.plan.messages.iter().filter(|planned| planned.round == round) {
            let owner = self.shards.iter_mut().find(|shard| shard.range.contains(&block_of(planned.from)));
            if let Some(shard) = owner {
                shard.send_planned(planned, &self.shared_context);
            }
        }
        let sums: Vec<Digest> = self.shards.iter_mut().map(Shard::close_acting).collect();
        if self.split == Split::None {
            closing.reason = self.apply_whole(round)?;
        }
        let blocks = self.blocks_in_all();
        let alone = self.layout.count() == 1;
        for (shard, mut sum) in self.shards.iter_mut().zip(sums) {
            let tallies = match self.split {
                Split::Rows => shard.apply(round, &self.dead, &self.shared_context)?,
                Split::None => Vec::new(),
            };
            match self.plan.window {
                Some(window) => sum.merge(shard.sort_events(blocks, window, round + 1, self.plan.rounds)?),
                None if shard.plans_events() => {
                    return Err(Bug::internal("a world without a least delay has planned an event"));
                }
                None => {}
            }
            let encode_tally = |tally: &Tally| shard.world.encode_tally(tally);
            let encoded: Vec<Vec<u8>> =
                if alone { Vec::new() } else { tallies.iter().map(encode_tally).collect::<Result<_, _>>()? };
            let acts = shard.blocks().map(|block| block.acts.rows.len() as u64).sum();
            let (births, deaths) = shard.take_life();
            let outset = match (&self.state, shard.index) {
                (Outset::OfShard(agents, rows, _), _) => Some((*agents, *rows)),
                (Outset::Known(_), _) => None,
            };
            closing.told.push(Told { sum, late: shard.any_late(), acts, tallies: encoded, births, deaths, outset });
            closing.tallies.push(tallies);
        }
        let mut frames = Vec::new();
        for (shard, told) in self.shards.iter().zip(&closing.told) {
            let common = if alone { Vec::new() } else { encode(told)? };
            for to in (0..self.layout.count()).filter(|to| *to != shard.index) {
                let mut bytes = (common.len() as u64).to_le_bytes().to_vec();
                bytes.extend_from_slice(&common);
                shard.pack_broadcasts(&self.range_of(to), &self.shared_context, &mut bytes);
                shard.pack_for(&self.range_of(to), |lane| &lane.buckets, &mut bytes);
                if self.plan.window.is_some() {
                    shard.pack_for(&self.range_of(to), |lane| &lane.events, &mut bytes);
                }
                frames.push(Frame { from: shard.index, to, bytes });
            }
        }
        Ok((closing, frames))
    }

    /// Delivers, ends the round of the world, measures, lets agents be born and die. Returns what each shard gives the others then.
    pub(super) fn deliver(&mut self, closing: &mut Closing, frames: Vec<Frame>) -> Result<Vec<Frame>, Bug> {
        let (round, own) = (self.round, self.layout.own());
        let mut told: Vec<Option<Told>> = (0..self.layout.count()).map(|_| None).collect();
        let mut letters: Vec<Incoming> = own.clone().map(|_| Vec::new()).collect();
        let mut events: Vec<Incoming> = own.clone().map(|_| Vec::new()).collect();
        // Of the messages that are told here, and whether such messages and others came from the same shard.
        let (mut sum, mut mixed) = (Digest::default(), false);
        for Frame { from, to, bytes } in frames {
            let mut rest = bytes.as_slice();
            let common = split_off(&mut rest)?;
            if !own.contains(&from) {
                told[from] = Some(decode(common)?);
            } else if to == own.start {
                // Another shard of this process: what would be lost on the way is lost here, too.
                closing.told[from - own.start] = decode(common)?;
            }
            let blocks = self.range_of(to).len();
            let (shard, letters) = (&self.shards[to - own.start], &mut letters[to - own.start]);
            let packed = split_broadcasts(&mut rest)?;
            let (told, heard) = shard.hear_broadcasts(packed, round, &self.shared_context);
            sum.merge(heard);
            // What a sender told all neighbours comes before the messages of the scenario in its name.
            let is_told = !told.is_empty();
            letters.extend(told.into_iter().map(|told| (from, told)));
            let direct = buckets(blocks, &mut rest)?;
            mixed |= is_told && direct.iter().any(|bucket| !bucket.is_empty());
            letters.push((from, direct));
            if self.plan.window.is_some() {
                events[to - own.start].push((from, buckets(blocks, &mut rest)?));
            }
        }
        for (shard, own) in own.clone().zip(std::mem::take(&mut closing.told)) {
            told[shard] = Some(own);
        }
        let told: Vec<Told> = told.into_iter().collect::<Option<_>>().ok_or_else(cut_short)?;
        let report = &mut closing.report;
        // Include the state at the beginning and end of the round, so that a changed snapshot cannot pass.
        let outset = match &self.state {
            Outset::Known(state) => *state,
            Outset::OfShard(_, _, rest) => {
                let (mut agents, mut rows) = (Digest::default(), Digest::default());
                for (of_agents, of_rows) in told.iter().filter_map(|told| told.outset) {
                    agents.merge(of_agents);
                    rows.merge(of_rows);
                }
                of_parts(agents, rows, *rest)
            }
        };
        report.sum.add(RowHash::new(Kind::State, round).digest(outset).finish());
        told.iter().for_each(|told| report.sum.merge(told.sum));
        report.acts = told.iter().map(|told| told.acts).sum();
        closing.told_here = sum;
        let late = mixed || told.iter().any(|told| told.late);
        closing.messages =
            self.shards.iter_mut().zip(&letters).map(|(shard, frames)| shard.deliver(frames, late)).collect();
        if self.split == Split::Rows {
            for (shard, mut own) in self.shards.iter_mut().zip(std::mem::take(&mut closing.tallies)) {
                let mut tallies: Vec<Tally> = Vec::new();
                for (from, told) in told.iter().enumerate() {
                    match from == shard.index {
                        true => tallies.append(&mut own),
                        false => {
                            for tally in &told.tallies {
                                tallies.push(shard.world.decode_tally(tally)?);
                            }
                        }
                    }
                }
                let merged = shard.world.merge(tallies)?;
                closing.reason = shard.world.end_round(merged, round, &self.shared_context)?;
            }
        }
        if let Some(window) = self.plan.window {
            self.shards.iter_mut().zip(&events).for_each(|(shard, frames)| shard.plan(frames, window, round + 1));
        }
        closing.folds = self.folds(round)?;
        let mut births = Vec::new();
        let mut deaths = Vec::new();
        for told in told {
            births.extend(told.births);
            deaths.extend(told.deaths);
        }
        self.live_and_die(round, births, deaths, &mut closing.report)?;
        self.give_reduced(closing)
    }

    /// The folds and digests of its shards, for the first shard of every process.
    fn give_reduced(&self, closing: &mut Closing) -> Result<Vec<Frame>, Bug> {
        let policies = in_force(&self.policies, self.round);
        let measures = self.due(self.round);
        let mut frames = Vec::new();
        for ((shard, folds), messages) in self.shards.iter().zip(&closing.folds).zip(&closing.messages) {
            let (agents, rows) = shard.digests(policies)?;
            let sum = if shard.index == self.layout.own().start { closing.told_here } else { Digest::default() };
            let mut reduced = Reduced { sum, messages: *messages, agents, rows, folds: Vec::new() };
            let others: Vec<usize> = self.layout.leaders().filter(|to| *to != shard.index).collect();
            if !others.is_empty() {
                for (measures, folds) in measures.chunk_by(|a, b| a.reads == b.reads).zip(folds) {
                    let encode_block = |folds: &Vec<Fold>| -> Result<Vec<Vec<u8>>, Bug> {
                        folds.iter().zip(measures).map(|(fold, measure)| measure.host.encode(fold)).collect()
                    };
                    reduced.folds.push(folds.iter().map(encode_block).collect::<Result<_, _>>()?);
                }
            }
            for to in others {
                frames.push(Frame { from: shard.index, to, bytes: encode(&reduced)? });
            }
            closing.reduced.push(reduced);
        }
        Ok(frames)
    }

    /// Ends the round with the folds and digests of all shards.
    pub(super) fn reduce(&mut self, closing: Closing, frames: Vec<Frame>) -> Result<RoundReport, Bug> {
        let Closing { mut report, folds, reduced, reason, .. } = closing;
        let (round, own) = (self.round, self.layout.own());
        let due = self.due(round);
        let groups: Vec<&[&Measure]> = due.chunk_by(|a, b| a.reads == b.reads).collect();
        let (mut agents, mut rows) = (Digest::default(), Digest::default());
        // The shards of this process come first among the own ones; others in order around them.
        let mut parts: Vec<Option<(Reduced, Option<FoldsOfShard>)>> = (0..self.layout.count()).map(|_| None).collect();
        for ((shard, reduced), folds) in own.clone().zip(reduced).zip(folds) {
            parts[shard] = Some((reduced, Some(folds)));
        }
        for frame in frames.into_iter().filter(|frame| frame.to == own.start) {
            parts[frame.from] = Some((decode(&frame.bytes)?, None));
        }
        let mut all: Vec<Vec<Vec<Fold>>> =
            groups.iter().map(|group| group.iter().map(|_| Vec::new()).collect()).collect();
        for part in parts {
            let (reduced, folds) = part.ok_or_else(cut_short)?;
            agents.merge(reduced.agents);
            rows.merge(reduced.rows);
            report.sum.merge(reduced.sum);
            report.messages += reduced.messages;
            let folds = match folds {
                Some(folds) => folds,
                None => {
                    let mut decoded = Vec::with_capacity(groups.len());
                    for (group, blocks) in groups.iter().zip(reduced.folds) {
                        let decode_block = |block: Vec<Vec<u8>>| -> Result<Vec<Fold>, Bug> {
                            block.iter().zip(*group).map(|(bytes, measure)| measure.host.decode(bytes)).collect()
                        };
                        decoded.push(blocks.into_iter().map(decode_block).collect::<Result<_, _>>()?);
                    }
                    decoded
                }
            };
            for (of_group, blocks) in all.iter_mut().zip(folds) {
                for block in blocks {
                    of_group.iter_mut().zip(block).for_each(|(all, fold)| all.push(fold));
                }
            }
        }
        for (i, scalar) in self.interface.scalars.iter().enumerate() {
            report.metrics.push((scalar.name.to_string(), self.shards[0].world.scalar(i)));
        }
        for (measure, folds) in groups.iter().flat_map(|group| group.iter()).zip(all.into_iter().flatten()) {
            measure.host.finish(folds, &mut |suffix, value| {
                let name = if suffix.is_empty() { measure.name.clone() } else { format!("{}.{suffix}", measure.name) };
                report.metrics.push((name, value));
            })?;
        }
        for (name, value) in &report.metrics {
            report.sum.add(RowHash::new(Kind::Metric, round).bytes(name.as_bytes()).number(*value).finish());
        }
        let state = of_parts(agents, rows, self.digest_in_common()?);
        self.state = Outset::Known(state);
        report.sum.add(RowHash::new(Kind::State, round + 1).digest(state).finish());
        self.chain = self.chain.chain(round, report.sum);
        report.chain = self.chain;
        self.round += 1;
        self.stage = if reason.is_some() || self.round >= self.plan.rounds {
            Stage::Ended(Outcome { rounds: self.round, reason, digest: self.chain })
        } else {
            Stage::Border
        };
        Ok(report)
    }

    /// Returns the metrics due in a round.
    fn due(&self, round: u32) -> Vec<&Measure> {
        let last = round + 1 >= self.plan.rounds;
        self.measures.iter().filter(|m| last || (round + 1).is_multiple_of(m.every)).collect()
    }

    /// Folds the blocks of each shard for the metrics due: by shard, by metrics with the same input, by block. Adjacent metrics with
    /// the same input share one pass over the agents.
    fn folds(&self, round: u32) -> Result<Vec<Vec<Vec<Vec<Fold>>>>, Bug> {
        let policies = in_force(&self.policies, round);
        let due = self.due(round);
        let mut by_shard: Vec<Vec<Vec<Vec<Fold>>>> = self.shards.iter().map(|_| Vec::new()).collect();
        for measures in due.chunk_by(|a, b| a.reads == b.reads) {
            let on_first = self.split == Split::None && measures[0].reads.is_of_world();
            for (i, (shard, all)) in self.shards.iter().zip(&mut by_shard).enumerate() {
                all.push(match (on_first, i) {
                    (false, _) => shard.folds(measures, &self.dead, policies, &self.shared_context),
                    // The state is on shard 0, and so is this reduction.
                    (true, 0) => {
                        let mut values = Values::default();
                        let blocks = self.shards.iter().flat_map(Shard::blocks);
                        let fold = |block| {
                            shard.fold(measures, block, &self.dead, policies, &self.shared_context, &mut values)
                        };
                        blocks.map(fold).collect()
                    }
                    (true, _) => Vec::new(),
                });
            }
        }
        Ok(by_shard)
    }

    /// Returns the digest of all state. Two societies of a scenario have the same one only if agents, world, cohorts and the set of
    /// living agents are the same. Messages to be read, waiting turns and planned events are not part of it: they are hashed in the
    /// round that makes them.
    ///
    /// # Errors
    /// A society of which this process computes only a part: no process has all of it.
    pub fn state_digest(&self) -> Result<Digest, Bug> {
        match self.outset()? {
            Outset::Known(state) => Ok(state),
            Outset::OfShard(..) => Err(Bug::internal("no process has all of a society that is spread over several")),
        }
    }

    /// Returns the digest of the state, or the parts of it that this process can compute.
    pub(super) fn outset(&self) -> Result<Outset, Bug> {
        let policies = in_force(&self.policies, self.round);
        let (mut agents, mut rows) = (Digest::default(), Digest::default());
        for shard in &self.shards {
            let (of_agents, of_rows) = shard.digests(policies)?;
            agents.merge(of_agents);
            rows.merge(of_rows);
        }
        let rest = self.digest_in_common()?;
        Ok(match self.layout.is_spread() {
            true => Outset::OfShard(agents, rows, rest),
            false => Outset::Known(of_parts(agents, rows, rest)),
        })
    }

    /// Returns the digest of the state that every process has: the common state of the world, what cohorts share, births and deaths.
    fn digest_in_common(&self) -> Result<Digest, Bug> {
        let policies = in_force(&self.policies, self.round);
        let mut all = Digest::default();
        if let Some(Shard { world, shared, .. }) = self.shards.first() {
            all.add(world.hash());
            for (cohort, (policy, shared)) in policies.iter().zip(shared).enumerate() {
                if let (Some(cohort_host), Some(shared)) = (policy.cohort_host(), shared) {
                    all.add(cohort_host.hash(shared, cohort as u16)?);
                }
            }
        }
        all.add(RowHash::new(Kind::Life, 0).word(u64::from(self.born)).digest(self.life).finish());
        Ok(all)
    }

    /// Applies the acts of a round to a world whose state is in one piece.
    fn apply_whole(&mut self, round: u32) -> Result<Option<String>, Bug> {
        if matches!(self.stage, Stage::InOrder(_)) {
            // Every act was applied before the next agent observed.
            return self.shards[0].world.settle_whole(round, &self.shared_context);
        }
        let mut all = Actions::default();
        let mut frames = Vec::new();
        for shard in &self.shards {
            if shard.index == 0 {
                shard.blocks().for_each(|block| all.append(&block.acts));
            } else {
                let mut acts = Actions::default();
                shard.blocks().for_each(|block| acts.append(&block.acts));
                frames.push(Frame { from: shard.index, to: 0, bytes: encode(&acts)? });
            }
        }
        for frame in self.exchange(frames) {
            all.append(&decode(&frame.bytes)?);
        }
        let Shard { world, future, .. } = &mut self.shards[0];
        world.apply_acts(&all, 0..all.rows.len(), round, &self.shared_context, future)?;
        world.settle_whole(round, &self.shared_context)
    }

    /// Births and deaths happen between rounds, in the order of the agents that caused them.
    fn live_and_die(
        &mut self,
        round: u32,
        mut births: Vec<(Birth, u16)>,
        deaths: Vec<AgentId>,
        report: &mut RoundReport,
    ) -> Result<(), Bug> {
        // The births of a world in one piece carry no cohort: shard 0 may not hold the parent.
        for (birth, cohort) in &mut births {
            if *cohort == u16::MAX {
                *cohort = self.cohort(birth.parent).ok_or_else(|| {
                    Bug::internal(format!("a world gave birth to a child of agent {}, who never lived", birth.parent))
                })?;
            }
        }
        for who in deaths {
            if who < self.born && self.dead.insert(who) {
                report.sum.add(death(round, who));
                self.life.add(death(0, who));
                report.deaths.push(who);
                for shard in &mut self.shards {
                    shard.forget(who);
                }
            }
        }
        let holds_last = self.layout.own().end == self.layout.count();
        for (Birth { parent }, cohort) in births {
            let child = self.born;
            if child == AgentId::MAX {
                return Err(Bug::Turn { agent: parent, round, message: "no ids are left for more births".into() });
            }
            report.sum.add(birth(round, child, parent));
            self.life.add(birth(0, child, parent));
            report.births.push((child, parent));
            self.shared_context.population.push_like(parent);
            self.parents.push(parent);
            self.newborns.push(cohort);
            self.born += 1;
            if let Some(last) = self.shards.last_mut().filter(|_| holds_last) {
                last.spawn(child, cohort, in_force(&self.policies, round), &self.shared_context, round + 1);
            }
        }
        Ok(())
    }

    /// Gives the first planned events of all agents to the shards of those that they will happen to.
    pub(super) fn first_events(&mut self, window: f64) -> Result<Vec<Frame>, Bug> {
        let blocks = self.blocks_in_all();
        for shard in &mut self.shards {
            shard.start(&self.shared_context);
            // Nothing has happened yet: the digest of these events belongs to no round.
            shard.sort_events(blocks, window, 0, self.plan.rounds)?;
        }
        let mut frames = Vec::new();
        for shard in &self.shards {
            for to in (0..self.layout.count()).filter(|to| *to != shard.index) {
                let mut bytes = Vec::new();
                shard.pack_for(&self.range_of(to), |lane: &Lane| &lane.events, &mut bytes);
                frames.push(Frame { from: shard.index, to, bytes });
            }
        }
        Ok(frames)
    }

    /// Takes the first planned events.
    pub(super) fn take_first_events(&mut self, window: f64, frames: Vec<Frame>) -> Result<(), Bug> {
        let own = self.layout.own();
        let mut events: Vec<Incoming> = own.clone().map(|_| Vec::new()).collect();
        for Frame { from, to, bytes } in frames {
            events[to - own.start].push((from, buckets(self.range_of(to).len(), &mut bytes.as_slice())?));
        }
        self.shards.iter_mut().zip(&events).for_each(|(shard, frames)| shard.plan(frames, window, 0));
        Ok(())
    }
}

fn of_parts(agents: Digest, rows: Digest, rest: Digest) -> Digest {
    let mut all = rest;
    all.add(RowHash::new(Kind::Agent, 0).digest(agents).finish());
    all.add(RowHash::new(Kind::Row, 0).digest(rows).finish());
    all
}
