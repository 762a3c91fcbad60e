//! The society: the round machine over shards.
//!
//! A round is: observe, cohort steps, act, apply, deliver, record. All agents see the same frozen round (simultaneous activation).
//! The society runs as n shards, each with a run of consecutive blocks, in one process or one in each of n. They exchange frames at
//! the barrier and nothing else, so results do not depend on n.

mod answers;
mod barrier;
mod block;
mod cohort;
mod gather;
mod inquiry;
mod interview;
mod measure;
mod plan;
mod shard;
mod snapshot;
mod state;
mod steps;

pub use block::Segment;
pub use gather::Gather;
pub use interview::{Interview, Observed, ObservedTable};

use crate::ask::{Answer, Effect, ResponseFormat};
use crate::digest::Digest;
use crate::interface::{Actions, Cells, Interface, Observations};
use crate::layout::{Frame, Layout, decode, encode};
use crate::machine::{Machine, Outcome, Step, Then};
use crate::messages::{Message, block_of};
use crate::policy::SharedContext;
use crate::rng::{Draws, Stream};
use crate::saved::{Reader, Sink, Writer};
use crate::world::{Activation, Split, WorldHost, WorldSetup};
use crate::{AgentId, BLOCK, Bug};
use answers::Answers;
pub(crate) use measure::interface_of;
use plan::in_force;
pub(crate) use plan::{Grouping, Leaves, Measure, Plan, PlannedMessage, Reads, Subset, models_of};
use shard::{Shard, Turned};
pub use state::Society;
use state::{Order, Outset, SLICE, Slice, Stage};
use std::collections::{BTreeMap, BTreeSet};
pub use steps::Steps;

impl Society {
    pub(crate) fn new(
        plan: Plan,
        shared_context: SharedContext,
        leaves: Leaves,
        changes: Vec<(u32, Leaves)>,
        layout: Layout,
    ) -> Result<Self, Bug> {
        let agents: u32 = plan.cohorts.iter().sum();
        let Leaves { worlds, policies, measures } = leaves;
        let Some(first) = worlds.first() else { return Err(Bug::internal("a society without shards")) };
        let (interface, split) = (interface_of(&**first, &policies), first.split());
        let blocks = (agents as usize).div_ceil(BLOCK).max(1);
        let mut shards = Vec::with_capacity(worlds.len());
        let SharedContext { seed, population, topology, .. } = &shared_context;
        let texts = BTreeMap::new();
        let setup = WorldSetup { agents, population, topology, lag: plan.lag, seats: &[], texts: &texts };
        for (index, mut world) in layout.own().zip(worlds) {
            world.begin(&setup, *seed, index == 0);
            shards.push(Shard::new(index, world, layout.range(index, blocks)));
        }
        let mut society = Society {
            plan,
            shared_context,
            policies: vec![(0, policies)],
            measures,
            interface,
            split,
            shards,
            layout,
            cut: blocks,
            elsewhere: Vec::new(),
            outgoing: Vec::new(),
            arrived: None,
            carried: 0,
            changes,
            dead: BTreeSet::new(),
            born: agents,
            parents: Vec::new(),
            newborns: Vec::new(),
            life: Digest::default(),
            round: 0,
            chain: Digest::default(),
            stage: Stage::Border,
            state: Outset::Known(Digest::default()),
            calm: false,
        };
        let spans = block::spans(&society.plan.cohorts);
        for shard in &mut society.shards {
            shard.settle_in(&spans, agents, in_force(&society.policies, 0), &society.shared_context)?;
        }
        society.share_first();
        if let Some(window) = society.plan.window {
            let frames = society.first_events(window)?;
            society.send(frames);
            society.stage = Stage::Planning;
            society.plan_first()?;
        }
        society.state = society.outset()?;
        Ok(society)
    }

    /// Takes the first planned events, if they are here.
    fn plan_first(&mut self) -> Result<(), Bug> {
        if let (Stage::Planning, Some(window)) = (&self.stage, self.plan.window)
            && let Some(frames) = self.arrived.take()
        {
            self.take_first_events(window, frames)?;
            self.stage = Stage::Border;
        }
        Ok(())
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
        let own = self.shards.iter().flat_map(Shard::blocks).map(|block| &block.acts);
        own.chain(self.elsewhere.iter().flat_map(|shown| &shown.acts))
    }

    /// Returns the number of bytes that shards of this process have given others.
    #[must_use]
    pub fn carried(&self) -> u64 {
        self.carried
    }

    /// Returns the cohort of every agent ever born, by id.
    #[must_use]
    pub fn cohort_of_each(&self) -> Vec<u16> {
        let at_start = block::spans(&self.plan.cohorts).into_iter();
        let at_start = at_start.flat_map(|(cohort, ids)| std::iter::repeat_n(cohort, ids.len()));
        at_start.chain(self.newborns.iter().copied()).collect()
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
        for (first, inbox) in self.elsewhere.iter().flat_map(|shown| &shown.inboxes) {
            for (row, message) in inbox.all() {
                see(first + row as u32, message);
            }
        }
    }

    /// Begins turns (observe and act) up to the next slice that asks something, at least one.
    fn act(&mut self) -> Result<Vec<Effect>, Bug> {
        let blocks = self.blocks_in_all();
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
        let blocks = self.blocks_in_all();
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
        let Society { stage, shards, shared_context, policies, carried, .. } = self;
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
            apply_turn(shards, at, who, carried, now)?;
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
                *carried += bytes.len() as u64;
                observations = decode(&bytes)?;
            }
            match shards[at].turn(who, &observations, policies, now)? {
                Turned::Done => {}
                Turned::Acted => {
                    order.loud += 1;
                    apply_turn(shards, at, who, carried, now)?;
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
        for frame in self.exchange(frames) {
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

    /// Returns the cohort of an agent.
    #[must_use]
    pub fn cohort(&self, agent: AgentId) -> Option<u16> {
        let at_start = self.began_with();
        if let Some(newborn) = agent.checked_sub(at_start) {
            return self.newborns.get(newborn as usize).copied();
        }
        let mut end = 0;
        let is_in = |agents: &u32| {
            end += agents;
            agent < end
        };
        self.plan.cohorts.iter().position(is_in).map(|cohort| cohort as u16)
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
            return self.begin_cohort_steps();
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
    carried: &mut u64,
    now: (u32, &SharedContext),
) -> Result<(), Bug> {
    if at == 0 {
        return shards[0].apply_own(who, now);
    }
    let bytes = encode(&shards[at].last_acts(who)?)?;
    *carried += bytes.len() as u64;
    let acts: Actions = decode(&bytes)?;
    let Shard { world, future, .. } = &mut shards[0];
    world.apply_acts(&acts, 0..acts.rows.len(), now.0, now.1, future)
}

impl Machine for Society {
    fn poll(&mut self, mut answers: Vec<Answer>) -> Result<Step, Bug> {
        let mut start = Vec::new();
        if let Stage::Ended(outcome) = &self.stage {
            return Ok(Step { start, then: Then::Done(outcome.clone()) });
        }
        self.plan_first()?;
        if matches!(self.stage, Stage::Planning) {
            return self.carry(start);
        }
        if matches!(self.stage, Stage::Border) {
            if self.plan.rounds == 0 {
                self.stage = Stage::Ended(Outcome { rounds: 0, reason: None, digest: self.chain });
                return self.poll(answers);
            }
            self.elsewhere.clear();
            self.begin_round()?;
        }
        start.extend(self.query(&answers)?);
        if matches!(self.stage, Stage::Inquiring(_)) {
            return Ok(Step { start, then: Then::Wait });
        }
        if let Stage::Counting(own) = &mut self.stage {
            let Some(frames) = self.arrived.take() else { return self.carry(start) };
            let own = std::mem::take(own);
            self.merge_tallies(own, frames)?;
        }
        start.extend(self.cohort_step(&answers)?);
        if matches!(self.stage, Stage::CohortStep(_)) {
            return Ok(Step { start, then: Then::Wait });
        }
        if matches!(self.stage, Stage::Sharing) {
            let Some(frames) = self.arrived.take() else { return self.carry(start) };
            self.take_shared(frames)?;
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
        if matches!(self.stage, Stage::Acting | Stage::InOrder(_)) {
            start.extend(self.hear(answers)?);
            start.extend(self.go_on()?);
            if self.waits() {
                return Ok(Step { start, then: Then::Wait });
            }
            let (closing, frames) = self.close_acting()?;
            self.send(frames);
            self.stage = Stage::Delivering(Box::new(closing));
        }
        if let Stage::Delivering(closing) = &mut self.stage {
            let Some(frames) = self.arrived.take() else { return self.carry(start) };
            let mut closing = std::mem::take(closing);
            let frames = self.deliver(&mut closing, frames)?;
            self.send(frames);
            self.stage = Stage::Reducing(closing);
        }
        let Stage::Reducing(closing) = &mut self.stage else {
            return Err(Bug::internal("a round that is at no known stage"));
        };
        let Some(frames) = self.arrived.take() else { return self.carry(start) };
        let closing = std::mem::take(closing);
        let report = self.reduce(*closing, frames)?;
        Ok(Step { start, then: Then::Round(Box::new(report)) })
    }

    fn receive(&mut self, frames: Vec<Frame>) -> Result<(), Bug> {
        self.take_frames(frames)
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
    /// Waits for the other processes; the frames for them go out once.
    fn carry(&mut self, start: Vec<Effect>) -> Result<Step, Bug> {
        match std::mem::take(&mut self.outgoing) {
            frames if frames.is_empty() => Err(Bug::internal("polled while the frames of other processes are awaited")),
            frames => Ok(Step { start, then: Then::Exchange(frames) }),
        }
    }

    /// Restores a new society of the same scenario from a snapshot. The number of shards may differ.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), Bug> {
        snapshot::load(self, bytes)
    }
}
