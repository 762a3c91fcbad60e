//! The protocol of a method, as most items of a run show it.

use super::trace::{Kind, Step, Trace};
use polity_kernel::items::Item;
use std::collections::{BTreeMap, BTreeSet};

/// The share of items from which on something counts as the protocol.
const MOST: f64 = 0.6;

/// What a member is shown in one of its solving steps, counted over items.
#[derive(Debug, Default)]
struct Shown {
    items: usize,
    own: usize,
    anything: usize,
    task: usize,
    speakers: BTreeMap<String, usize>,
}

/// What happens in most items.
#[derive(Debug, Default)]
pub(super) struct Protocol {
    items: usize,
    /// By member and number of its solving step.
    shown: BTreeMap<(u32, u32), Shown>,
    /// By judging member and purpose: the number of items.
    judged: BTreeMap<(String, u32), usize>,
    /// By purpose: how many items have this set of judges.
    judges: BTreeMap<String, BTreeMap<BTreeSet<u32>, usize>>,
    /// Number of items by rounds.
    rounds: BTreeMap<u32, usize>,
}

fn most(part: usize, of: usize) -> bool {
    of >= super::FEWEST && part as f64 >= MOST * of as f64
}

/// Returns who judges in a trace, by purpose.
pub(super) fn judges(trace: &Trace) -> BTreeMap<&str, BTreeSet<u32>> {
    let mut judges: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for step in trace.steps.iter().filter(|step| step.kind == Kind::Judges) {
        judges.entry(&step.request.purpose).or_default().insert(step.id.actor);
    }
    judges
}

impl Protocol {
    pub(super) fn of(items: &[Item], traces: &[Trace]) -> Self {
        let mut protocol = Protocol { items: traces.len(), ..Protocol::default() };
        for trace in traces {
            let Some(item) = items.get(trace.item as usize) else { continue };
            for step in trace.solving() {
                let shown = protocol.shown.entry((step.id.actor, step.nth.unwrap_or(0))).or_default();
                shown.items += 1;
                shown.own += usize::from(step.continues());
                shown.anything += usize::from(step.remembers());
                shown.task += usize::from(step.mentions(&item.question));
                let speakers: BTreeSet<&str> = step.heard().map(|(by, _)| by).collect();
                for by in speakers {
                    *shown.speakers.entry(by.to_owned()).or_default() += 1;
                }
            }
            for (purpose, members) in judges(trace) {
                for member in &members {
                    *protocol.judged.entry((purpose.to_owned(), *member)).or_default() += 1;
                }
                *protocol.judges.entry(purpose.to_owned()).or_default().entry(members).or_default() += 1;
            }
            *protocol.rounds.entry(trace.ended.rounds).or_default() += 1;
        }
        protocol
    }

    fn shown(&self, step: &Step) -> Option<&Shown> {
        self.shown.get(&(step.id.actor, step.nth?))
    }

    /// Whether such a step shows the member's own earlier answers.
    pub(super) fn shows_own(&self, step: &Step) -> bool {
        self.shown(step).is_some_and(|shown| most(shown.own, shown.items))
    }

    /// Whether such a step shows anything that was said before.
    pub(super) fn remembers(&self, step: &Step) -> bool {
        self.shown(step).is_some_and(|shown| most(shown.anything, shown.items))
    }

    /// Whether such a step shows the question of the item.
    pub(super) fn shows_task(&self, step: &Step) -> bool {
        self.shown(step).is_some_and(|shown| most(shown.task, shown.items))
    }

    /// Whether such a step shows what this speaker said.
    pub(super) fn shows(&self, step: &Step, speaker: &str) -> bool {
        self.shown(step).is_some_and(|shown| shown.speakers.get(speaker).is_some_and(|items| most(*items, shown.items)))
    }

    /// Returns the members that judge for this purpose, if they are the same in most items that have such a step.
    pub(super) fn judges(&self, purpose: &str) -> Option<&BTreeSet<u32>> {
        let sets = self.judges.get(purpose)?;
        let all = sets.values().sum();
        sets.iter().find(|(_, items)| most(**items, all)).map(|(members, _)| members)
    }

    /// Returns the purposes and members of the judgements that most items have.
    pub(super) fn required(&self) -> impl Iterator<Item = (&str, u32)> {
        let most = |(_, items): &(&(String, u32), &usize)| most(**items, self.items);
        self.judged.iter().filter(most).map(|((purpose, member), _)| (purpose.as_str(), *member))
    }

    /// Returns the largest number of rounds of an item.
    pub(super) fn rounds(&self) -> u32 {
        self.rounds.last_key_value().map_or(0, |(rounds, _)| *rounds)
    }

    /// Whether most items take the largest number of rounds.
    pub(super) fn takes_all_rounds(&self) -> bool {
        self.rounds.last_key_value().is_some_and(|(_, items)| most(*items, self.items))
    }

    pub(super) fn has_fixed_roles(&self) -> bool {
        self.judges.keys().any(|purpose| self.judges(purpose).is_some())
    }

    pub(super) fn verifies(&self) -> bool {
        self.required().next().is_some()
    }

    pub(super) fn shows_history(&self) -> bool {
        self.shown.values().any(|shown| most(shown.own, shown.items))
    }

    pub(super) fn shows_anything(&self) -> bool {
        self.shown.values().any(|shown| most(shown.anything, shown.items))
    }

    pub(super) fn shows_others(&self) -> bool {
        self.shown.values().any(|shown| shown.speakers.values().any(|items| most(*items, shown.items)))
    }
}
