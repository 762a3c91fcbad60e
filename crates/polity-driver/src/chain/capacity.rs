//! Reasoning capacity: how often the answers of a component of a team are right, and what they cost of the budget.
//!
//! A component is a member in one kind of work. After Pezeshkpour et al., "Reasoning Capacity in Multi-Agent Systems", 2024, it is seen
//! under the constraints of the run: tokens, time and dollars.

use super::{Record, is_scoring, kind, names};
use crate::run::Folder;
use polity_kernel::ask::{Answer, Asker, Outcome, Resolution, ResponseFormat, Task, Value};
use polity_kernel::items::Item;
use polity_kernel::layout::Layout;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::assemble;
use polity_store::DriveError;
use polity_store::disk::Disk;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A member in one kind of work, over all items that are read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Component {
    /// The number of the member.
    pub member: u32,
    /// Its name.
    pub name: String,
    /// What it is asked for: `solve`, `judge.choose`.
    pub kind: String,
    /// `provider/model`.
    pub model: String,
    /// Calls, with repeats.
    pub calls: u64,
    /// Tokens of requests and replies.
    pub tokens: u64,
    /// Seconds until the replies, added up.
    pub seconds: f64,
    /// US dollars.
    pub cost_usd: f64,
    /// Items on which its last answer can be scored by the item's own rule.
    pub scored: u64,
    /// Those of them on which it is right.
    pub right: u64,
}

impl Component {
    /// The share of items on which its last answer is right; `None` if it gives no answers that can be scored.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.scored > 0).then(|| self.right as f64 / self.scored as f64)
    }
}

/// The component with the smallest share of right answers, if any has a larger one.
#[must_use]
pub fn weakest(components: &[Component]) -> Option<&Component> {
    let shares = || components.iter().filter_map(|component| Some((component.share()?, component)));
    let (low, weakest) = shares().min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    shares().any(|(share, _)| share > low).then_some(weakest)
}

impl Record {
    /// Returns the components of the team.
    ///
    /// # Errors
    /// As for reading the run, and [`DriveError::Scenario`] if this build cannot assemble its scenario.
    pub fn components(&self, disk: Arc<dyn Disk>, registry: &Registry) -> Result<Vec<Component>, DriveError> {
        let prepared = Folder::read(disk, &self.dir)?.prepared(&self.manifest)?;
        let machine = assemble(&prepared.tree, registry, &prepared.inputs, Layout::default())?;
        Ok(machine.evaluation().map_or(Vec::new(), |evaluation| self.scored(evaluation.items())))
    }

    fn scored(&self, items: &[Item]) -> Vec<Component> {
        let members = self.answers.values().flatten().map(|answer| answer.id.actor + 1).max().unwrap_or(0);
        let names = names(&self.manifest.scenario, members);
        let mut components: BTreeMap<(u32, String), Component> = BTreeMap::new();
        for (item, answers) in &self.answers {
            let item = items.iter().find(|known| known.index == *item);
            let mut last: BTreeMap<(u32, String), ((u32, u32), bool)> = BTreeMap::new();
            for answer in answers.iter().filter(|answer| !is_scoring(answer) && answer.id.asker == Asker::Member) {
                let key = (answer.id.actor, kind(answer, &self.manifest.scenario));
                let component = components.entry(key.clone()).or_insert_with(|| Component {
                    member: key.0,
                    name: names.get(key.0 as usize).cloned().unwrap_or_default(),
                    kind: key.1.clone(),
                    model: answer.request.model.to_string(),
                    ..Component::default()
                });
                component.calls += 1;
                component.tokens += answer.usage.tokens_in + answer.usage.tokens_out;
                component.seconds += answer.usage.latency_ms / 1000.0;
                component.cost_usd += answer.usage.cost_usd;
                let at = (answer.id.round, answer.id.n);
                let newer = last.get(&key).is_none_or(|(before, _)| *before <= at);
                if newer && let Some(right) = item.and_then(|item| item.is_right(&answered(answer)?)) {
                    last.insert(key, (at, right));
                }
            }
            for (key, (_, right)) in last {
                if let Some(component) = components.get_mut(&key) {
                    component.scored += 1;
                    component.right += u64::from(right);
                }
            }
        }
        components.into_values().collect()
    }
}

/// The answer to the item in a reply: its field `answer`, or the whole of a reply without fields. Other kinds of work have none.
fn answered(answer: &Answer) -> Option<String> {
    let solves = [Task::Solve.name(), "reconsider"].contains(&answer.request.purpose.as_str());
    let Outcome::Reply { value, .. } = &answer.outcome else { return None };
    if !solves || answer.resolution() == Resolution::Again {
        return None;
    }
    let text = |value: &Value, form: &ResponseFormat| match (value, form) {
        (Value::Text(text), _) => Some(text.clone()),
        (Value::Choice(at), ResponseFormat::Choice(options)) => options.get(*at as usize).cloned(),
        (Value::Number(number), _) => Some(number.to_string()),
        _ => None,
    };
    match (value, &answer.request.response_format) {
        (Value::Record(values), ResponseFormat::Record(fields)) => {
            let at = fields.iter().position(|(name, _)| name == "answer")?;
            text(values.get(at)?, &fields.get(at)?.1)
        }
        (value, form) => text(value, form),
    }
}
