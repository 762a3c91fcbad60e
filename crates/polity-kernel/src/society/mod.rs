//! The society: the round machine over shards.
//!
//! A round is: observe, cohort steps, act, apply, deliver, record. All agents see the same frozen round (simultaneous activation).
//! The society runs as n shards, each with a run of consecutive blocks. They exchange frames at the barrier and nothing else, so
//! results do not depend on n.

mod answers;
mod block;
mod cohort;
mod inquiry;
mod interview;
mod measure;
mod plan;
mod shard;
mod snapshot;
mod state;

pub use block::Segment;
pub use interview::{Interview, Observed, ObservedTable};

use crate::ask::{Answer, Effect, ResponseFormat};
use crate::digest::{Digest, Kind, RowHash};
use crate::interface::{Actions, Cells, Interface, Observations};
use crate::machine::{Machine, Outcome, RoundReport, Step, Then};
use crate::messages::{Bucket, Message, block_of};
use crate::policy::{Lane, SharedContext};
use crate::rng::{Draws, Stream};
use crate::saved::{Reader, Sink, Writer};
use crate::transport::{Frame, Transport};
use crate::world::{Activation, Birth, Split, Tally, WorldHost, WorldSetup};
use crate::{AgentId, BLOCK, Bug};
use answers::Answers;
pub(crate) use measure::interface_of;
use plan::in_force;
pub(crate) use plan::{Leaves, Measure, Plan, PlannedMessage, Reads, Subset, models_of};
use shard::{Shard, Turned};
pub use state::Society;
use state::{Incoming, Order, SLICE, Slice, Stage, birth, death, decode, encode};
use std::collections::{BTreeMap, BTreeSet};

impl Society {
    pub(crate) fn new(
        plan: Plan,
        shared_context: SharedContext,
        leaves: Leaves,
        changes: Vec<(u32, Leaves)>,
        transport: Box<dyn Transport>,
    ) -> Result<Self, Bug> {
        let agents: u32 = plan.cohorts.iter().sum();
        let Leaves { worlds, policies, measures } = leaves;
        let Some(first) = worlds.first() else { return Err(Bug::internal("a society without shards")) };
        let (interface, split) = (interface_of(&**first, &policies), first.split());
        let blocks = (agents as usize).div_ceil(BLOCK).max(1);
        let n = worlds.len();
        let mut shards = Vec::with_capacity(n);
        let SharedContext { seed, population, topology, .. } = &shared_context;
        let texts = BTreeMap::new();
        let setup = WorldSetup { agents, population, topology, lag: plan.lag, texts: &texts };
        for (i, mut world) in worlds.into_iter().enumerate() {
            world.begin(&setup, *seed, i == 0);
            shards.push(Shard::new(i, world, blocks * i / n..blocks * (i + 1) / n));
        }
        let mut society = Society {
            plan,
            shared_context,
            policies: vec![(0, policies)],
            measures,
            interface,
            split,
            shards,
            transport,
            changes,
            dead: BTreeSet::new(),
            born: agents,
            parents: Vec::new(),
            life: Digest::default(),
            round: 0,
            chain: Digest::default(),
            stage: Stage::Border,
            state: Digest::default(),
            calm: false,
        };
        let spans = block::spans(&society.plan.cohorts);
        for shard in &mut society.shards {
            shard.settle_in(&spans, agents, in_force(&society.policies, 0), &society.shared_context)?;
        }
        society.share_first();
        if let Some(window) = society.plan.window {
            for shard in &mut society.shards {
                shard.start(&society.shared_context);
            }
            // Nothing has happened yet: planned events belong to the start, not to a round.
            society.plan_events(window, 0)?;
        }
        society.state = society.state_digest()?;
        Ok(society)
    }

    /// Returns what the world shows and understands. Its columns are followed by those of policies' agent states.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// When its agents act.
    #[must_use]
    pub fn activation(&self) -> Activation {
        self.plan.activation
    }

    /// Returns the names of the cohorts.
    #[must_use]
    pub fn cohorts(&self) -> &[String] {
        &self.plan.names
    }

    /// Seed, population and topology.
    #[must_use]
    pub fn shared_context(&self) -> &SharedContext {
        &self.shared_context
    }

    /// Returns the number of ids assigned so far: agents are `0..born`, including dead ones.
    #[must_use]
    pub fn ids_assigned(&self) -> u32 {
        self.born
    }

    /// Returns the number of agents with which the society began.
    #[must_use]
    pub fn began_with(&self) -> u32 {
        self.plan.cohorts.iter().sum()
    }

    /// Returns the number of living agents.
    #[must_use]
    pub fn alive(&self) -> u32 {
        self.born - self.dead.len() as u32
    }

    /// Returns the models that its agents may ask, now or after a change of the scenario.
    pub(crate) fn models(&self) -> Vec<String> {
        let later = self.changes.iter().map(|(_, leaves)| &leaves.policies);
        let policies = self.policies.iter().map(|(_, policies)| policies).chain(later);
        models_of(policies.flatten(), self.worlds())
    }

    /// Returns the models that the world itself may ask, with their answer formats.
    pub(crate) fn models_of_world(&self) -> Vec<(String, ResponseFormat)> {
        self.worlds().flat_map(|world| world.models()).collect()
    }

    /// Iterates over its world, and the world after each change.
    fn worlds(&self) -> impl Iterator<Item = &dyn WorldHost> {
        let changed = self.changes.iter().filter_map(|(_, leaves)| leaves.world());
        self.shards.first().map(|shard| &*shard.world).into_iter().chain(changed)
    }

    /// Returns whether an agent is dead.
    #[must_use]
    pub fn is_dead(&self, agent: AgentId) -> bool {
        self.dead.contains(&agent)
    }

    /// Iterates over the acts of the last complete round by block, in order of agent.
    pub fn acts(&self) -> impl Iterator<Item = &Actions> {
        self.shards.iter().flat_map(Shard::blocks).map(|block| &block.acts)
    }

    /// Returns the number of bytes exchanged between shards.
    #[must_use]
    pub fn carried(&self) -> u64 {
        self.transport.carried()
    }

    /// Returns the cohort of every agent ever born, by id.
    #[must_use]
    pub fn cohort_of_each(&self) -> Vec<u16> {
        let mut out = Vec::with_capacity(self.born as usize);
        for block in self.shards.iter().flat_map(Shard::blocks) {
            for segment in &block.segments {
                out.extend(std::iter::repeat_n(segment.cohort, segment.len as usize));
            }
        }
        out
    }

    /// Returns what the last round adds to table `i` of the world's own, one entry per column.
    #[must_use]
    pub fn rows(&self, i: usize) -> Vec<Cells> {
        self.shards.first().map_or(Vec::new(), |shard| shard.world.rows(i))
    }

    /// Calls `see` with every message delivered at the end of the last round: (recipient, inbox), sorted by (recipient, sender, n).
    pub fn each_message(&self, mut see: impl FnMut(AgentId, Message<'_>)) {
        for block in self.shards.iter().flat_map(Shard::blocks) {
            for (row, inbox) in block.inbox.all() {
                see(block.first + row as u32, inbox);
            }
        }
    }

    /// Begins turns (observe and act) up to the next slice that asks something, at least one.
    fn act(&mut self) -> Result<Vec<Effect>, Bug> {
        let blocks = (self.born as usize).div_ceil(BLOCK).max(1);
        let mut effects = Vec::new();
        while let Stage::Beginning { slice, .. } = &mut self.stage
            && let Some(shard) = self.shards.get_mut(slice.shard)
            && effects.is_empty()
        {
            let (first, n, observed) = (slice.lane, slice.lanes, slice.observed);
            slice.lane = first.saturating_add(n);
            if slice.lane >= shard.lanes() {
                (slice.shard, slice.lane) = (slice.shard + 1, 0);
            }
            effects = shard.act(
                first..first.saturating_add(n),
                self.round,
                self.plan.lag,
                blocks,
                &self.dead,
                in_force(&self.policies, self.round),
                &self.shared_context,
                &self.interface,
                self.split,
                self.plan.window.is_some(),
                observed,
            )?;
            // The driver gets no calls while a slice is begun.
            if effects.len() < SLICE {
                slice.lanes = n.saturating_mul(2);
            }
        }
        Ok(effects)
    }

    /// Draws the order of this round's turns.
    ///
    /// In a calm round most turns leave no trace. These are found on all threads before the first turn. A turn is a function of the
    /// agent's state, messages and draws, which no other agent changes, and of its observation, which changes only for agents that
    /// the world names.
    fn begin_order(&mut self) -> Result<(), Bug> {
        let blocks = (self.born as usize).div_ceil(BLOCK).max(1);
        for shard in &mut self.shards {
            shard.begin_order(blocks);
        }
        let mut agents: Vec<AgentId> = (0..self.born).filter(|who| !self.dead.contains(who)).collect();
        Draws::new(self.shared_context.seed, Stream::Order, self.round, AgentId::MAX).shuffle(&mut agents);
        let mut quiet = Vec::new();
        if let [shard] = self.shards.as_mut_slice()
            && self.calm
            && shard.world.disturbs()
        {
            quiet = shard.try_out(
                in_force(&self.policies, self.round),
                &self.interface,
                self.round,
                &self.shared_context,
            )?;
            // If trying out was of no use, skip it in the next round.
            let traces = quiet.iter().filter(|quiet| !**quiet).count();
            self.calm = traces < agents.len() / 4;
        }
        self.stage = Stage::InOrder(Order { agents, next: 0, waits: None, quiet, loud: 0 });
        Ok(())
    }

    /// Continues sequential turns: each agent observes, acts, and its acts are applied before the next one observes. Stops at a
    /// turn that waits.
    fn go_on(&mut self) -> Result<Vec<Effect>, Bug> {
        let Society { stage, shards, shared_context, policies, transport, .. } = self;
        let Stage::InOrder(order) = stage else { return Ok(Vec::new()) };
        let now = (self.round, &*shared_context);
        let policies = in_force(policies, self.round);
        let home = |who: AgentId, shards: &[Shard]| {
            if shards.len() == 1 {
                return 0;
            }
            let block = block_of(who);
            shards.iter().position(|shard| shard.range.contains(&block)).unwrap_or(0)
        };
        if let Some(who) = order.waits {
            let at = home(who, shards);
            if shards[at].is_suspended(who)? {
                return Ok(Vec::new());
            }
            order.waits = None;
            order.loud += 1;
            apply_turn(shards, at, who, transport.as_mut(), now)?;
            order.wake(&mut shards[0].future);
        }
        let mut observations = Observations::new(&self.interface, 1);
        while let Some(who) = order.agents.get(order.next).copied() {
            order.next += 1;
            if order.quiet.get(who as usize).is_some_and(|quiet| *quiet) {
                continue;
            }
            let at = home(who, shards);
            shards[0].world.observe_one(who, shared_context, &mut observations);
            if at > 0 {
                let bytes = encode(&observations)?;
                for frame in transport.exchange(vec![Frame { from: 0, to: at, bytes }])? {
                    observations = decode(&frame.bytes)?;
                }
            }
            match shards[at].turn(who, &observations, policies, now)? {
                Turned::Done => {}
                Turned::Acted => {
                    order.loud += 1;
                    apply_turn(shards, at, who, transport.as_mut(), now)?;
                    order.wake(&mut shards[0].future);
                }
                Turned::Waits(asked) => {
                    order.waits = Some(who);
                    return Ok(asked);
                }
            }
        }
        if order.quiet.is_empty() {
            self.calm = order.loud < order.agents.len() / 4;
        }
        Ok(Vec::new())
    }

    /// Sends planned events to the agents that they will happen to. `next`: the first future window.
    fn plan_events(&mut self, window: f64, next: u32) -> Result<Digest, Bug> {
        let blocks = (self.born as usize).div_ceil(BLOCK).max(1);
        let mut sum = Digest::default();
        for shard in &mut self.shards {
            sum.merge(shard.sort_events(blocks, window, next, self.plan.rounds)?);
        }
        let frames = self.exchange_buckets(|lane| &lane.events)?;
        for (shard, frames) in self.shards.iter_mut().zip(frames) {
            shard.plan(&frames, window, next);
        }
        Ok(sum)
    }

    /// Sends the lanes' data for blocks of other shards; returns them by destination, sorted by origin.
    fn exchange_buckets(&mut self, of: impl Fn(&Lane) -> &Vec<Bucket> + Copy) -> Result<Vec<Incoming>, Bug> {
        let mut frames = Vec::new();
        for shard in &self.shards {
            for other in &self.shards {
                if shard.index != other.index {
                    let buckets = shard.buckets_for(&other.range, of);
                    if buckets.iter().any(|b| !b.is_empty()) {
                        frames.push(Frame { from: shard.index, to: other.index, bytes: encode(&buckets)? });
                    }
                }
            }
        }
        let mut incoming: Vec<Incoming> = vec![Vec::new(); self.shards.len()];
        for frame in self.transport.exchange(frames)? {
            incoming[frame.to].push((frame.from, decode(&frame.bytes)?));
        }
        Ok(incoming)
    }

    /// Shard 0 observes for all agents, and sends the observations.
    fn carry_observations(&mut self) -> Result<(), Bug> {
        let mut frames = Vec::new();
        for to in 1..self.shards.len() {
            let observations = self.shards[to]
                .blocks()
                .map(|block| {
                    self.shards[0].observations_of(
                        block.first,
                        block.len as usize,
                        &self.shared_context,
                        &self.interface,
                    )
                })
                .collect::<Vec<_>>();
            frames.push(Frame { from: 0, to, bytes: encode(&observations)? });
        }
        for frame in self.transport.exchange(frames)? {
            let observations = decode(&frame.bytes)?;
            self.shards[frame.to].take_observations(observations)?;
        }
        Ok(())
    }

    /// Gives answers to the turns that wait for them, and runs turns that have all of theirs again.
    fn hear(&mut self, answers: Vec<Answer>) -> Result<Vec<Effect>, Bug> {
        let mut by_shard: Vec<Vec<Answer>> = vec![Vec::new(); self.shards.len()];
        for answer in answers {
            let block = block_of(answer.id.actor);
            if let Some(shard) = self.shards.iter().position(|s| s.range.contains(&block)) {
                by_shard[shard].push(answer);
            }
        }
        let mut effects = Vec::new();
        for (shard, answers) in self.shards.iter_mut().zip(by_shard) {
            effects.extend(shard.hear(answers, self.round, &self.policies, &self.shared_context)?);
        }
        Ok(effects)
    }

    /// The barrier: deliver, apply, measure, births and deaths, digest.
    fn close_round(&mut self) -> Result<RoundReport, Bug> {
        let round = self.round;
        let mut report = RoundReport { round, agents: self.alive(), ..RoundReport::default() };
        // Include the state at the beginning and end of the round, so that a changed snapshot cannot pass.
        report.sum.add(RowHash::new(Kind::State, round).digest(self.state).finish());
        for planned in self.plan.messages.iter().filter(|planned| planned.round == round) {
            let owner = self.shards.iter_mut().find(|shard| shard.range.contains(&block_of(planned.from)));
            if let Some(shard) = owner {
                shard.send_planned(planned, &self.shared_context);
            }
        }
        for shard in &mut self.shards {
            report.sum.merge(shard.close_acting());
        }
        report.messages = self.deliver()?;
        let reason = self.apply(round)?;
        if let Some(window) = self.plan.window {
            report.sum.merge(self.plan_events(window, round + 1)?);
        } else if self.shards.iter().any(Shard::plans_events) {
            return Err(Bug::internal("a world without a least delay has planned an event"));
        }
        self.measure(round, &mut report)?;
        report.acts = self.acts().map(|acts| acts.rows.len() as u64).sum();
        self.live_and_die(round, &mut report)?;
        for (name, value) in &report.metrics {
            report.sum.add(RowHash::new(Kind::Metric, round).bytes(name.as_bytes()).number(*value).finish());
        }
        self.state = self.state_digest()?;
        report.sum.add(RowHash::new(Kind::State, round + 1).digest(self.state).finish());
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

    /// Returns the digest of all state. Two societies of a scenario have the same one only if agents, world, cohorts and the set of
    /// living agents are the same. Messages to be read, waiting turns and planned events are not part of it: they are hashed in the
    /// round that makes them.
    pub fn state_digest(&self) -> Result<Digest, Bug> {
        let policies = in_force(&self.policies, self.round);
        let (mut agents, mut rows) = (Digest::default(), Digest::default());
        for shard in &self.shards {
            let (of_agents, of_rows) = shard.digests(policies)?;
            agents.merge(of_agents);
            rows.merge(of_rows);
        }
        let mut all = Digest::default();
        all.add(RowHash::new(Kind::Agent, 0).digest(agents).finish());
        all.add(RowHash::new(Kind::Row, 0).digest(rows).finish());
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

    fn deliver(&mut self) -> Result<u64, Bug> {
        let late = self.shards.iter().any(Shard::any_late);
        let incoming = self.exchange_buckets(|lane| &lane.buckets)?;
        Ok(self.shards.iter_mut().zip(incoming).map(|(shard, frames)| shard.deliver(&frames, late)).sum())
    }

    fn apply(&mut self, round: u32) -> Result<Option<String>, Bug> {
        if self.split == Split::None {
            return self.apply_whole(round);
        }
        // Tallies of blocks go to shard 0, and the merged tally goes back to all shards.
        let mut frames = Vec::new();
        let mut tallies: Vec<Tally> = Vec::new();
        for shard in &mut self.shards {
            let of_blocks = shard.apply(round, &self.dead, &self.shared_context)?;
            if shard.index == 0 {
                tallies = of_blocks;
            } else {
                let bytes: Vec<Vec<u8>> =
                    of_blocks.iter().map(|t| shard.world.encode_tally(t)).collect::<Result<_, _>>()?;
                frames.push(Frame { from: shard.index, to: 0, bytes: encode(&bytes)? });
            }
        }
        for frame in self.transport.exchange(frames)? {
            let bytes: Vec<Vec<u8>> = decode(&frame.bytes)?;
            for tally in bytes {
                tallies.push(self.shards[0].world.decode_tally(&tally)?);
            }
        }
        let merged = self.shards[0].world.merge(tallies)?;
        let bytes = if self.shards.len() > 1 { self.shards[0].world.encode_tally(&merged)? } else { Vec::new() };
        let frames = (1..self.shards.len()).map(|to| Frame { from: 0, to, bytes: bytes.clone() }).collect();
        for frame in self.transport.exchange(frames)? {
            let world = &mut self.shards[frame.to].world;
            let tally = world.decode_tally(&frame.bytes)?;
            world.end_round(tally, round, &self.shared_context)?;
        }
        self.shards[0].world.end_round(merged, round, &self.shared_context)
    }

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
        for frame in self.transport.exchange(frames)? {
            all.append(&decode(&frame.bytes)?);
        }
        let Shard { world, future, .. } = &mut self.shards[0];
        world.apply_acts(&all, 0..all.rows.len(), round, &self.shared_context, future)?;
        world.settle_whole(round, &self.shared_context)
    }

    /// Births and deaths happen between rounds, in the order of the agents that caused them.
    fn live_and_die(&mut self, round: u32, report: &mut RoundReport) -> Result<(), Bug> {
        let mut frames = Vec::new();
        let mut births: Vec<(Birth, u16)> = Vec::new();
        let mut deaths: Vec<AgentId> = Vec::new();
        for shard in &mut self.shards {
            let (of_shard, gone) = shard.take_life();
            if shard.index == 0 {
                (births, deaths) = (of_shard, gone);
            } else if !of_shard.is_empty() || !gone.is_empty() {
                frames.push(Frame { from: shard.index, to: 0, bytes: encode(&(of_shard, gone))? });
            }
        }
        for frame in self.transport.exchange(frames)? {
            let (more, gone): (Vec<(Birth, u16)>, Vec<AgentId>) = decode(&frame.bytes)?;
            births.extend(more);
            deaths.extend(gone);
        }
        if births.is_empty() && deaths.is_empty() {
            return Ok(());
        }
        // An unsplit world's births carry no cohort: shard 0 may not hold the parent.
        for (birth, cohort) in &mut births {
            if *cohort == u16::MAX {
                *cohort = self.cohort(birth.parent).ok_or_else(|| {
                    Bug::internal(format!("a world gave birth to a child of agent {}, who never lived", birth.parent))
                })?;
            }
        }
        let frames = (1..self.shards.len())
            .map(|to| Ok(Frame { from: 0, to, bytes: encode(&(&births, &deaths))? }))
            .collect::<Result<_, Bug>>()?;
        self.transport.exchange(frames)?;
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
            self.born += 1;
            if let Some(last) = self.shards.last_mut() {
                last.spawn(child, cohort, in_force(&self.policies, round), &self.shared_context, round + 1);
            }
        }
        Ok(())
    }

    /// Returns the cohort of an agent.
    #[must_use]
    pub fn cohort(&self, agent: AgentId) -> Option<u16> {
        let block = block_of(agent);
        let shard = self.shards.iter().find(|s| s.range.contains(&block))?;
        shard.blocks().nth(block - shard.range.start)?.cohort_of(agent)
    }

    fn begin_round(&mut self) -> Result<(), Bug> {
        while let Some((at, _)) = self.changes.first()
            && *at <= self.round
        {
            let (at, leaves) = self.changes.remove(0);
            self.policies.push((at, leaves.policies));
            self.measures = leaves.measures;
            for (shard, mut world) in self.shards.iter_mut().zip(leaves.worlds) {
                let mut state = Vec::new();
                shard.world.save(&mut Writer::new(&mut state))?;
                world.load(&mut Reader::new(&state))?;
                self.interface = interface_of(&*world, in_force(&self.policies, at));
                shard.world = world;
            }
        }
        if self.world_asks() {
            self.stage = Stage::Inquiring(Answers::default());
            return Ok(());
        }
        self.look()
    }

    /// Starts the cohort steps if there are any, otherwise the turns.
    fn look(&mut self) -> Result<(), Bug> {
        if self.has_cohort_steps() {
            self.stage = Stage::CohortStep(self.begin_cohort_steps()?);
            return Ok(());
        }
        self.begin_turns(false)
    }

    /// Begins the turns. `observed`: whether the agents' observations of the round exist already.
    fn begin_turns(&mut self, observed: bool) -> Result<(), Bug> {
        if self.plan.activation == Activation::RandomOrder {
            return self.begin_order();
        }
        if self.split == Split::None && !observed {
            self.carry_observations()?;
        }
        // Policies that ask nothing do not benefit from slices.
        let asks = in_force(&self.policies, self.round).iter().any(|policy| !policy.models().is_empty());
        let slice = Slice { shard: 0, lane: 0, lanes: if asks { 1 } else { usize::MAX }, observed };
        self.stage = Stage::Beginning { slice, held: Vec::new() };
        Ok(())
    }

    /// Returns whether some turn must still complete in this round.
    fn waits(&self) -> bool {
        self.shards.iter().flat_map(Shard::blocks).any(|b| b.suspended.iter().any(|s| s.due <= self.round))
    }
}

/// Applies the last acts of an agent on shard `at` to the state on shard 0.
fn apply_turn(
    shards: &mut [Shard],
    at: usize,
    who: AgentId,
    transport: &mut dyn Transport,
    now: (u32, &SharedContext),
) -> Result<(), Bug> {
    if at == 0 {
        return shards[0].apply_own(who, now);
    }
    let bytes = encode(&shards[at].last_acts(who)?)?;
    for frame in transport.exchange(vec![Frame { from: at, to: 0, bytes }])? {
        let acts: Actions = decode(&frame.bytes)?;
        let Shard { world, future, .. } = &mut shards[0];
        world.apply_acts(&acts, 0..acts.rows.len(), now.0, now.1, future)?;
    }
    Ok(())
}

impl Machine for Society {
    fn poll(&mut self, mut answers: Vec<Answer>) -> Result<Step, Bug> {
        let mut start = Vec::new();
        if let Stage::Ended(outcome) = &self.stage {
            return Ok(Step { start, then: Then::Done(outcome.clone()) });
        }
        if matches!(self.stage, Stage::Border) {
            if self.plan.rounds == 0 {
                self.stage = Stage::Ended(Outcome { rounds: 0, reason: None, digest: self.chain });
                return self.poll(answers);
            }
            self.begin_round()?;
        }
        start.extend(self.query(&answers)?);
        if matches!(self.stage, Stage::Inquiring(_)) {
            return Ok(Step { start, then: Then::Wait });
        }
        start.extend(self.cohort_step(&answers)?);
        if matches!(self.stage, Stage::CohortStep(_)) {
            return Ok(Step { start, then: Then::Wait });
        }
        start.extend(self.act()?);
        if let Stage::Beginning { slice, held } = &mut self.stage {
            held.append(&mut answers);
            if slice.shard < self.shards.len() {
                return Ok(Step { start, then: Then::More });
            }
            answers = std::mem::take(held);
            self.stage = Stage::Acting;
        }
        start.extend(self.hear(answers)?);
        start.extend(self.go_on()?);
        if self.waits() {
            return Ok(Step { start, then: Then::Wait });
        }
        let report = self.close_round()?;
        Ok(Step { start, then: Then::Round(Box::new(report)) })
    }

    fn save(&self, to: &mut dyn Sink) -> Result<(), Bug> {
        snapshot::save(self, to)
    }

    fn next_round(&self) -> u32 {
        self.round
    }

    fn open_effects(&self) -> Vec<Effect> {
        let (cohort_rounds, of_world) = match &self.stage {
            Stage::CohortStep(cohort_rounds) => (cohort_rounds.as_slice(), None),
            Stage::Inquiring(answers) => ([].as_slice(), Some(answers)),
            _ => ([].as_slice(), None),
        };
        let of_round = cohort_rounds.iter().map(|cohort_round| &cohort_round.answers).chain(of_world);
        let of_round = of_round.flat_map(|answers| answers.open.values());
        let blocks = self.shards.iter().flat_map(Shard::blocks);
        let of_turns = blocks.flat_map(|block| block.suspended.iter().flat_map(|turn| turn.open()));
        of_round.chain(of_turns).cloned().collect()
    }
}

impl Society {
    /// Restores a new society of the same scenario from a snapshot. The number of shards may differ.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), Bug> {
        snapshot::load(self, bytes)
    }
}
