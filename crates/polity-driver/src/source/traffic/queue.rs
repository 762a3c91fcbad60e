//! Whose turn it is among questions that wait for a connection. It decides who waits how long, and no result.

use super::Call;
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::tree::nearest;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Whose turn it is (the schedules of AIOS, Mei et al. 2024, section 3.2, for whole calls).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Who came first.
    #[default]
    Fifo,
    /// Each asker in turn: who has asked less since the queue was empty comes first (round robin).
    Fair,
    /// Who has the higher priority (`priority` of a cohort), then who came first.
    Priority,
    /// There is none: everybody asks at once and tries again by itself, whatever limits there are. The baseline that schedules are compared
    /// with.
    None,
}

impl Schedule {
    /// All that there are, by name.
    pub const ALL: [(&str, Schedule); 4] = [
        ("fifo", Schedule::Fifo),
        ("fair", Schedule::Fair),
        ("priority", Schedule::Priority),
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
            format!("there is no schedule `{text}`{meant} (there are {})", names().collect::<Vec<_>>().join(", "))
        })
    }
}

/// Where a question stands: what is smaller comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    urgency: Reverse<i32>,
    turn: u64,
    batch: u64,
    /// Of how it begins: providers keep what many requests begin with, for a while.
    prefix: u64,
    n: u64,
}

/// See the module.
pub(super) struct Queue {
    schedule: Schedule,
    calls: BTreeMap<Place, Call>,
    batch: u64,
    n: u64,
    /// By asker (item, actor), the turn of its last question.
    turns: BTreeMap<(u32, u32), u64>,
    /// The turn that is served.
    turn: u64,
}

impl Queue {
    pub fn new(schedule: Schedule) -> Self {
        Queue { schedule, calls: BTreeMap::new(), batch: 0, n: 0, turns: BTreeMap::new(), turn: 0 }
    }

    /// What comes from here on came later.
    pub fn batch(&mut self) {
        self.batch += 1;
    }

    pub fn push(&mut self, call: Call) {
        let id = call.effect.id;
        let (mut urgency, mut turn) = (0, 0);
        match self.schedule {
            Schedule::Fifo | Schedule::None => {}
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
            // Nobody waits: what was had before counts no more.
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
