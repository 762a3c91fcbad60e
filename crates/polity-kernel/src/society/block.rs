//! A block: 4,096 consecutive agents and all their data.

use crate::cohort::States;
use crate::interface::{Actions, Interface, Observations};
use crate::messages::{Arena, Bucket};
use crate::policy::{PolicyHost, SharedContext, Waiting};
use crate::world::{BlockActions, Future, RowsBox, Tally, WorldHost};
use crate::{AgentId, BLOCK, Bug};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Consecutive rows of one cohort.
pub struct Segment {
    /// Which cohort.
    pub cohort: u16,
    /// First row, relative to the block.
    pub start: u32,
    /// Number of rows.
    pub len: u32,
    pub(crate) states: States,
}

/// A run of agents of one cohort: (cohort, ids).
pub(crate) type Span = (u16, Range<AgentId>);

/// Returns the ids of the cohorts at the start: one run each, in order.
pub(crate) fn spans(cohorts: &[u32]) -> Vec<Span> {
    let mut start = 0;
    let mut spans = Vec::new();
    for (i, n) in cohorts.iter().enumerate() {
        spans.push((i as u16, start..start + n));
        start += n;
    }
    spans
}

pub(crate) struct Block {
    pub first: AgentId,
    pub len: u32,
    pub segments: Vec<Segment>,
    pub rows: RowsBox,
    pub inbox: Arena,
    /// Turns that wait, sorted by agent.
    pub suspended: Waiting,
    /// The round in which waiting turns were last checked for all answers. From then on, turns that get answers are tracked.
    pub looked: Option<u32>,
    /// Messages that arrived for waiting agents and that they have not read yet.
    pub kept: Bucket,
    /// Planned events, by window; the next window first.
    pub agenda: VecDeque<Bucket>,
    /// The events of the current window, in event time.
    pub events: Option<Arena>,
    /// Actions of the current round.
    pub acts: Actions,
    /// Whether some acts are out of order.
    pub late: bool,
    /// Scratch: the agents' observations.
    pub observations: Observations,
    pub future: Future,
    /// The tally of the acts of the current round, once applied; only in a split world.
    pub tally: Option<Tally>,
}

impl Block {
    pub fn new(
        first: AgentId,
        spans: &[Span],
        agents: u32,
        world: &dyn WorldHost,
        policies: &[Arc<dyn PolicyHost>],
        shared_context: &SharedContext,
    ) -> Result<Self, Bug> {
        let end = agents.min(first.saturating_add(BLOCK as u32)).max(first);
        let mut segments = Vec::new();
        for (cohort, ids) in spans {
            let ids = ids.start.max(first)..ids.end.min(end);
            if ids.start < ids.end {
                let policy =
                    policies.get(*cohort as usize).ok_or_else(|| Bug::internal("a cohort without a policy"))?;
                segments.push(Segment {
                    cohort: *cohort,
                    start: ids.start - first,
                    len: ids.end - ids.start,
                    states: policy.init_state(ids, shared_context, 0),
                });
            }
        }
        Ok(Block { segments, ..Block::empty(first, end - first, world.init_rows(first..end, shared_context, 0)) })
    }

    pub fn empty(first: AgentId, len: u32, rows: RowsBox) -> Self {
        Block {
            first,
            len,
            segments: Vec::new(),
            rows,
            inbox: Arena::default(),
            suspended: Vec::new(),
            looked: None,
            kept: Bucket::default(),
            agenda: VecDeque::new(),
            events: None,
            acts: Actions::default(),
            late: false,
            observations: Observations::default(),
            future: Future::default(),
            tally: None,
        }
    }

    pub fn cohort_of(&self, agent: AgentId) -> Option<u16> {
        let row = agent.checked_sub(self.first)?;
        self.segments.iter().find(|s| (s.start..s.start + s.len).contains(&row)).map(|s| s.cohort)
    }

    /// Calls `see` with every agent, by its row, and the column `name` of its state by the policy in force; NaN if there is no such
    /// column.
    pub fn shown(
        &self,
        name: &str,
        policies: &[Arc<dyn PolicyHost>],
        shared_context: &SharedContext,
        mut see: impl FnMut(u32, f64),
    ) {
        for segment in &self.segments {
            let policy = policies.get(segment.cohort as usize);
            let shown = policy
                .and_then(|policy| policy.column(&segment.states, self.first + segment.start, name, shared_context));
            let shown = shown.unwrap_or_default();
            for i in 0..segment.len {
                see(segment.start + i, shown.get(i as usize).copied().unwrap_or(f64::NAN));
            }
        }
    }

    /// Writes the observations of its agents. `here`: this shard has the world's state; on others, observations have been carried.
    pub fn observe(
        &mut self,
        world: &dyn WorldHost,
        here: bool,
        shared_context: &SharedContext,
        interface: &Interface,
    ) {
        if here {
            world.observe(&self.rows, self.first, self.len as usize, shared_context, &mut self.observations);
        } else if self.len == 0 {
            self.observations.reset(interface, 0);
        }
    }

    /// Begins a round.
    pub fn begin_acting(&mut self) {
        self.acts.rows.clear();
        self.acts.texts.clear();
        self.acts.rows.reserve(self.len as usize);
        self.late = false;
    }

    /// Begins a window: its events are sorted by agent, time, planner and number.
    pub fn begin_window(&mut self) {
        let due = self.agenda.pop_front().unwrap_or_default();
        let events = self.events.get_or_insert_default();
        events.fill(std::iter::once(&due), false);
        events.sort_by_number();
    }

    /// Takes planned events. `next`: the first future window; no event is due earlier.
    pub fn plan(&mut self, planned: &Bucket, window: f64, next: u32) {
        for (at, from, kind, row) in planned.stamped() {
            // A time at the end of a window can be rounded into the window before.
            let ahead = ((at / window) as u32).saturating_sub(next) as usize;
            if self.agenda.len() <= ahead {
                self.agenda.resize_with(ahead + 1, Bucket::default);
            }
            self.agenda[ahead].number(from, row, kind, at);
        }
    }

    /// Applies the acts of the round to the rows of a split world. `gone`: the rows of dead agents.
    pub fn apply(
        &mut self,
        world: &dyn WorldHost,
        round: u32,
        gone: &[u32],
        shared_context: &SharedContext,
    ) -> Result<(), Bug> {
        let alive = |row: usize| gone.binary_search(&(row as u32)).is_err();
        let actions = BlockActions {
            first: self.first,
            alive: if gone.is_empty() { None } else { Some(&alive) },
            acts: &self.acts,
            events: self.events.as_ref(),
            round,
        };
        self.tally = Some(world.apply_block(&mut self.rows, &actions, shared_context, &mut self.future)?);
        Ok(())
    }

    /// Keeps the inbox messages of agents whose turn waits.
    pub fn keep_mail(&mut self) {
        for waiting in &mut self.suspended {
            let row = (waiting.who - self.first) as usize;
            waiting.held.extend(self.inbox.inbox(row));
        }
    }

    /// Appends a newborn.
    pub fn spawn(
        &mut self,
        who: AgentId,
        cohort: u16,
        world: &dyn WorldHost,
        policies: &[Arc<dyn PolicyHost>],
        shared_context: &SharedContext,
        round: u32,
    ) {
        world.spawn(&mut self.rows, who, shared_context, round);
        let Some(policy) = policies.get(cohort as usize) else { return };
        match self.segments.last_mut() {
            Some(last) if last.cohort == cohort => {
                policy.spawn(&mut last.states, who, shared_context, round);
                last.len += 1;
            }
            _ => self.segments.push(Segment {
                cohort,
                start: self.len,
                len: 1,
                states: policy.init_state(who..who + 1, shared_context, round),
            }),
        }
        self.len += 1;
    }
}
