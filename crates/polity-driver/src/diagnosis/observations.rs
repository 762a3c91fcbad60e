//! What a run shows as a whole: drift, collapse and monopoly of answers.

use super::trace::{Step, Trace, same};
use polity_kernel::items::Item;
use serde::Serialize;
use std::collections::BTreeMap;

/// How often the first majority and the team's answer differ in being right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Turned {
    /// Items whose first majority is right.
    pub first_right: usize,
    /// How many of these end wrong.
    pub lost: usize,
    /// Items whose first majority is wrong, but which end right.
    pub gained: usize,
}

/// Items whose members' first answers differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Contested {
    /// Their number.
    pub items: usize,
    /// How many of these end with one answer of all members.
    pub united: usize,
    /// How many of those end right.
    pub united_right: usize,
    /// How many of those had a right first majority.
    pub united_first_right: usize,
    /// By member: how many items end with its first answer.
    pub decided_by: BTreeMap<u32, usize>,
}

/// What a run shows as a whole. Each flag is `None` if there are too few items for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Observations {
    /// Items that turn from right to wrong, and from wrong to right.
    pub turned: Turned,
    /// Items on which members differ at first.
    pub contested: Contested,
    /// More items are lost than gained, and at least a tenth of those that begin right are lost.
    pub drift: Option<bool>,
    /// At least nine in ten contested items end in one answer of all, and these are right no more often than at first.
    pub collapse: Option<bool>,
    /// The member whose first answer decides at least nine in ten contested items, if no other comes within three in ten of it.
    pub monopoly: Option<u32>,
}

/// Fewest items for a flag.
const FEWEST: usize = 5;

impl Contested {
    /// Whether there are enough items to say anything.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.items >= FEWEST
    }
}

impl Observations {
    pub(super) fn of(items: &[Item], traces: &[Trace]) -> Self {
        let mut seen = Observations::default();
        for trace in traces {
            if let Some(item) = items.get(trace.item as usize) {
                seen.take(item, trace);
            }
        }
        let Observations { turned: Turned { first_right, lost, gained }, contested, .. } = &seen;
        let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
        let drift = (*first_right >= FEWEST).then(|| lost > gained && share(*lost, *first_right) >= 0.1);
        let enough = contested.is_enough();
        let collapse = enough.then(|| {
            share(contested.united, contested.items) >= 0.9 && contested.united_right <= contested.united_first_right
        });
        let mut deciding: Vec<(usize, u32)> = contested.decided_by.iter().map(|(who, n)| (*n, *who)).collect();
        deciding.sort_unstable_by(|a, b| b.cmp(a));
        let monopoly = match deciding.as_slice() {
            [(first, who), rest @ ..] if enough => {
                let next = rest.first().map_or(0, |(n, _)| *n);
                let alone = share(*first, contested.items) - share(next, contested.items) >= 0.3;
                (share(*first, contested.items) >= 0.9 && alone).then_some(*who)
            }
            _ => None,
        };
        Observations { drift, collapse, monopoly, ..seen }
    }

    fn take(&mut self, item: &Item, trace: &Trace) {
        let (mut first, mut last): (BTreeMap<u32, &str>, BTreeMap<u32, &str>) = Default::default();
        let answer = |step: &'_ Step| -> Option<u32> { step.answer.as_ref().map(|_| step.id.actor) };
        for step in trace.solving() {
            if let (Some(who), Some(answer)) = (answer(step), step.answer.as_deref()) {
                first.entry(who).or_insert(answer);
                last.insert(who, answer);
            }
        }
        let answers: Vec<&str> = first.values().copied().collect();
        let supporters = |it: &str| answers.iter().filter(|other| same(item, other, it)).count();
        let Some(majority) = answers.iter().rev().copied().max_by_key(|it| supporters(it)) else { return };
        let began = item.is_right(majority);
        let turned = &mut self.turned;
        match (began, trace.ended.correct) {
            (Some(true), Some(ended)) => {
                turned.first_right += 1;
                turned.lost += usize::from(!ended);
            }
            (Some(false), Some(true)) => turned.gained += 1,
            _ => {}
        }
        if supporters(majority) == answers.len() {
            return;
        }
        let contested = &mut self.contested;
        contested.items += 1;
        let mut stands = last.values();
        let one = stands.next().copied().unwrap_or_default();
        if stands.all(|other| same(item, one, other)) {
            contested.united += 1;
            contested.united_right += usize::from(item.is_right(one) == Some(true));
            contested.united_first_right += usize::from(began == Some(true));
        }
        let Some(ended) = trace.ended.answer.as_deref() else { return };
        for (who, answer) in first {
            let decided = contested.decided_by.entry(who).or_default();
            *decided += usize::from(same(item, answer, ended));
        }
    }
}
