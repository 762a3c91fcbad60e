//! The order of requests that wait for a connection. It affects waiting times, but no result.

use super::call::Call;
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::tree::nearest;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::str::FromStr;

/// The order of requests (the schedules of AIOS, Mei et al. 2024, section 3.2, for whole calls).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// First come, first served.
    #[default]
    Fifo,
    /// Round robin over askers: those with fewer requests since the queue was empty come first.
    Fair,
    /// Higher priority (`priority` of a cohort) first, then first come.
    Priority,
    /// One model at a time: all requests to a model before those to the next one, for a server that holds one model and loads another
    /// when it is asked for it (as the batches of Symbolic-MoE, Chen et al. 2025).
    ByModel,
    /// No schedule: everyone sends at once and retries separately, regardless of limits. The baseline for comparing schedules.
    None,
}

impl Schedule {
    /// All schedules, by name.
    pub const ALL: [(&str, Schedule); 5] = [
        ("fifo", Schedule::Fifo),
        ("fair", Schedule::Fair),
        ("priority", Schedule::Priority),
        ("by-model", Schedule::ByModel),
        ("none", Schedule::None),
    ];
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, schedule)| schedule);
        found.ok_or_else(|| {
            let names = || Self::ALL.into_iter().map(|(name, _)| name);
            let meant = nearest(text, names()).map_or(String::new(), |name| format!(", did you mean `{name}`?"));
            format!(
                "there is no schedule `{text}`{meant} (the schedules are {})",
                names().collect::<Vec<_>>().join(", ")
            )
        })
    }
}

/// The sort key of a request: smaller comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    urgency: Reverse<i32>,
    turn: u64,
    batch: u64,
    /// Of its beginning: providers cache common prefixes for a while.
    prefix: u64,
    n: u64,
}

/// See the module docs.
pub(super) struct Queue {
    schedule: Schedule,
    calls: BTreeMap<Place, Call>,
    batch: u64,
    n: u64,
    /// The turn of each asker's last request, by (item, actor).
    turns: BTreeMap<(u32, u32), u64>,
    /// The turn being served.
    turn: u64,
}

impl Queue {
    pub fn new(schedule: Schedule) -> Self {
        Queue { schedule, calls: BTreeMap::new(), batch: 0, n: 0, turns: BTreeMap::new(), turn: 0 }
    }

    /// Requests from here on arrived later.
    pub fn batch(&mut self) {
        self.batch += 1;
    }

    pub fn push(&mut self, call: Call) {
        let id = call.effect.id;
        let (mut urgency, mut turn) = (0, 0);
        match self.schedule {
            Schedule::Fifo | Schedule::ByModel | Schedule::None => {}
            Schedule::Fair => {
                let last = self.turns.entry((id.item, id.actor)).or_default();
                *last = (*last + 1).max(self.turn);
                turn = *last;
            }
            Schedule::Priority => urgency = call.rank,
        }
        let first = call.effect.request.messages.first();
        let prefix = first.map_or(0, |message| {
            let hash = RowHash::new(Kind::Request, 0).bytes(message.rendered().as_bytes());
            hash.finish() as u64
        });
        self.n += 1;
        self.calls.insert(Place { urgency: Reverse(urgency), turn, batch: self.batch, prefix, n: self.n }, call);
    }

    pub fn first(&self) -> Option<&Call> {
        self.calls.first_key_value().map(|(_, call)| call)
    }

    pub fn pop(&mut self) -> Option<Call> {
        let (place, call) = self.calls.pop_first()?;
        self.turn = place.turn;
        if self.calls.is_empty() {
            // No one waits: earlier turns no longer count.
            self.turns.clear();
            self.turn = 0;
        }
        Some(call)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Call> {
        self.calls.values()
    }

    pub fn len(&self) -> usize {
        self.calls.len()
    }

    pub fn drain(&mut self) -> impl Iterator<Item = Call> + use<> {
        self.turns.clear();
        std::mem::take(&mut self.calls).into_values()
    }
}
