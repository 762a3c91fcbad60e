//! A block: 4,096 consecutive agents and everything that is theirs.

use crate::mail::{Arena, Bucket};
use crate::policy::{Commons, PolicyHost, States, Waiting};
use crate::sight::{Acts, Interface, Sights};
use crate::world::{BlockDeeds, Future, RowsBox, Tally, WorldHost};
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

/// The ids of the cohorts at the start: one run each, in order.
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
    pub mail: Arena,
    /// Turns that wait, sorted by agent.
    pub suspended: Waiting,
    /// The round in which it was last looked which of them have all answers: from then on that is known of those who hear.
    pub looked: Option<u32>,
    /// Letters that came to agents while they waited and that they have not read yet.
    pub kept: Bucket,
    /// Events to come, by window; the next one first.
    pub agenda: VecDeque<Bucket>,
    /// What happens in the window under way, in event time.
    pub events: Option<Arena>,
    /// Acts of the round under way.
    pub acts: Acts,
    /// Whether some acts stand out of order.
    pub late: bool,
    /// Scratch: what the agents see.
    pub sights: Sights,
    pub future: Future,
    /// What the acts of the round under way come to, once they are applied; of a split world.
    pub tally: Option<Tally>,
}

impl Block {
    pub fn new(
        first: AgentId,
        spans: &[Span],
        agents: u32,
        world: &dyn WorldHost,
        policies: &[Arc<dyn PolicyHost>],
        commons: &Commons,
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
                    states: policy.born(ids, commons, 0),
                });
            }
        }
        Ok(Block { segments, ..Block::empty(first, end - first, world.seat(first..end, commons, 0)) })
    }

    pub fn empty(first: AgentId, len: u32, rows: RowsBox) -> Self {
        Block {
            first,
            len,
            segments: Vec::new(),
            rows,
            mail: Arena::default(),
            suspended: Vec::new(),
            looked: None,
            kept: Bucket::default(),
            agenda: VecDeque::new(),
            events: None,
            acts: Acts::default(),
            late: false,
            sights: Sights::default(),
            future: Future::default(),
            tally: None,
        }
    }

    pub fn cohort_of(&self, agent: AgentId) -> Option<u16> {
        let row = agent.checked_sub(self.first)?;
        self.segments.iter().find(|s| (s.start..s.start + s.len).contains(&row)).map(|s| s.cohort)
    }

    /// Calls `see` with every agent, by its row, and what the policy in force shows of its state by this name; not a number where it shows
    /// nothing.
    pub fn shown(&self, name: &str, policies: &[Arc<dyn PolicyHost>], mut see: impl FnMut(u32, f64)) {
        for segment in &self.segments {
            let policy = policies.get(segment.cohort as usize);
            let shown = policy.and_then(|policy| policy.column(&segment.states, name)).unwrap_or_default();
            for i in 0..segment.len {
                see(segment.start + i, shown.get(i as usize).copied().unwrap_or(f64::NAN));
            }
        }
    }

    /// Writes what its agents see. `here`: where the world's state is; elsewhere sights have been carried.
    pub fn observe(&mut self, world: &dyn WorldHost, here: bool, commons: &Commons, interface: &Interface) {
        if here {
            world.observe(&self.rows, self.first, self.len as usize, commons, &mut self.sights);
        } else if self.len == 0 {
            self.sights.reset(interface, 0);
        }
    }

    /// Begins a round.
    pub fn begin_acting(&mut self) {
        self.acts.rows.clear();
        self.acts.texts.clear();
        self.acts.rows.reserve(self.len as usize);
        self.late = false;
    }

    /// Begins a window: what happens in it is sorted by agent, time, who planned it, and number.
    pub fn begin_window(&mut self) {
        let due = self.agenda.pop_front().unwrap_or_default();
        let events = self.events.get_or_insert_default();
        events.fill(std::iter::once(&due), false);
        events.sort_by_number();
    }

    /// Takes planned events in. `next`: the first window that is still to come; none of them is due earlier.
    pub fn plan(&mut self, planned: &Bucket, window: f64, next: u32) {
        for (at, from, kind, row) in planned.stamped() {
            // A time at the border of a window can be rounded into the one before.
            let ahead = ((at / window) as u32).saturating_sub(next) as usize;
            if self.agenda.len() <= ahead {
                self.agenda.resize_with(ahead + 1, Bucket::default);
            }
            self.agenda[ahead].number(from, row, kind, at);
        }
    }

    /// Applies the acts of the round to the rows of a split world. `gone`: the rows of the dead.
    pub fn apply(&mut self, world: &dyn WorldHost, round: u32, gone: &[u32], commons: &Commons) -> Result<(), Bug> {
        let alive = |row: usize| gone.binary_search(&(row as u32)).is_err();
        let deeds = BlockDeeds {
            first: self.first,
            alive: if gone.is_empty() { None } else { Some(&alive) },
            acts: &self.acts,
            events: self.events.as_ref(),
            round,
        };
        self.tally = Some(world.apply_block(&mut self.rows, &deeds, commons, &mut self.future)?);
        Ok(())
    }

    /// Where the mail of the round goes besides the arena: to agents whose turn waits, and from those who have just completed.
    pub fn keep_mail(&mut self) {
        for waiting in &mut self.suspended {
            let row = (waiting.who - self.first) as usize;
            waiting.held.extend(self.mail.inbox(row));
        }
    }

    /// Adds a newborn to the end.
    pub fn join(
        &mut self,
        who: AgentId,
        cohort: u16,
        world: &dyn WorldHost,
        policies: &[Arc<dyn PolicyHost>],
        commons: &Commons,
        round: u32,
    ) {
        world.join(&mut self.rows, who, commons, round);
        let Some(policy) = policies.get(cohort as usize) else { return };
        match self.segments.last_mut() {
            Some(last) if last.cohort == cohort => {
                policy.join(&mut last.states, who, commons, round);
                last.len += 1;
            }
            _ => self.segments.push(Segment {
                cohort,
                start: self.len,
                len: 1,
                states: policy.born(who..who + 1, commons, round),
            }),
        }
        self.len += 1;
    }
}
