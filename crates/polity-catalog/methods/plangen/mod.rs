//! Constraints, verification against them, and a choice between ways to search. See README.md for the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::search::Tree;
use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, refine, samples, solve, talk, verdict, write};
use polity_kernel::Invalid;
use polity_kernel::ask::{Part, ResponseFormat, Task, Value};
use polity_kernel::method::{
    Brief, Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext,
    Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<PlanGen>(files);
}

/// A way to search for an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// Chosen by the selection agent, by upper confidence bounds.
    #[default]
    Selected,
    /// Samples; the highest mark wins.
    BestOfN,
    /// A tree: the best answer so far is always developed further.
    TreeOfThought,
    /// Reward-balanced search: answers are developed further in proportion to their marks.
    Rebase,
}

const WAYS: [Search; 3] = [Search::BestOfN, Search::TreeOfThought, Search::Rebase];

/// Parameters of PlanGEN.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The way to search.
    search: Search,
    /// Number of answers per pass of a search.
    samples: u32,
    /// Write constraints first and verify answers against them; otherwise they are verified against the question.
    constraints: bool,
    /// Accept an answer with this mark (of 100) at once.
    accept: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { search: Search::Selected, samples: 5, constraints: true, accept: 95.0 }
    }
}

/// Constraint, verification and selection agents.
pub struct PlanGen {
    params: Params,
    rounds: u32,
}

/// The state between rounds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    constraints: String,
    /// How well each search suits the question, 0 to 1, as the selection agent sees it.
    suits: [f64; 3],
    best: Option<(Stand, f64)>,
    /// For each search: its passes, and the sum of their best marks, as shares of the scale.
    tried: [(u32, f64); 3],
}

const CONSTRAINTS: Prompt =
    Prompt::new("constraints", "asks what every right answer must keep", include_str!("prompts/constraints.md"));
const VERIFY: Prompt = Prompt::new("verify", "asks for a mark of an answer", include_str!("prompts/verify.md"));
const STEPS: Prompt =
    Prompt::new("steps", "tells a member to work the question out step by step", include_str!("prompts/steps.md"));
const SELECT: Prompt =
    Prompt::new("select", "asks how well each way of searching suits the question", include_str!("prompts/select.md"));

const SHOWN: Prompt = Prompt::new(
    "shown-constraints",
    "shows the constraints to whoever selects or verifies",
    "Constraints:\n{{ constraints }}",
)
.must_hold(&["constraints"]);

impl Method for PlanGen {
    const NAME: &'static str = "plangen";
    const SUMMARY: &'static str =
        "Constraints, verification against them, and a search method chosen per instance (PlanGEN)";
    const RECORDS: &'static [Records] = &ANSWERS;
    const ROLES: &'static [&'static str] = &["constraint", "verification", "selection"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 3 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Centralised,
        strategy: Strategy::Role,
        coordination: Coordination::Dynamic,
    });
    const PROMPTS: &'static [Prompt] =
        &[STEPS, CONSTRAINTS, VERIFY, SELECT, SHOWN, refine::AGAIN, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Invalid::within(1..=100, "samples", params.samples)?;
        Invalid::within(-100.0..=100.0, "accept", params.accept)?;
        Ok(PlanGen { params, rounds })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let mut state: State = context.restore()?.unwrap_or_default();
        while context.round() < self.rounds && state.best.as_ref().is_none_or(|(_, mark)| *mark < self.params.accept) {
            if context.round() == 0 && self.params.constraints {
                let by = context.cast("constraint");
                state.constraints = write(context, by, &[], CONSTRAINTS).await.unwrap_or_default();
            }
            if context.round() == 0 && self.params.search == Search::Selected {
                state.suits = suited(context, &state.constraints).await;
            }
            let way = self.way(&state, context.round());
            let found = match WAYS[way] {
                Search::TreeOfThought => self.tree(context, &state.constraints).await,
                Search::Rebase => self.rebase(context, &state.constraints).await,
                _ => self.best_of_n(context, &state.constraints).await,
            };
            if let Some((stand, mark)) = found {
                state.tried[way].0 += 1;
                state.tried[way].1 += (mark + 100.0) / 200.0;
                if state.best.as_ref().is_none_or(|(_, best)| mark > *best) {
                    state.best = Some((stand, mark));
                }
            }
            context.end_round(&state).await?;
        }
        Ok(verdict(state.best.map(|(stand, _)| stand.answer)))
    }
}

impl PlanGen {
    /// Returns the next search: the configured one, or the one with the highest upper confidence bound. The bound adds the selection
    /// agent's mark to the mean reward; an untried search has the reward 0 once, so that the mark decides which comes first.
    fn way(&self, state: &State, round: u32) -> usize {
        if let Some(way) = WAYS.iter().position(|way| *way == self.params.search) {
            return way;
        }
        let bound = |way: usize| {
            let (n, sum) = state.tried[way];
            let n = f64::from(n.max(1));
            sum / n + libm::sqrt(2.0 * libm::log(f64::from(round + 1)) / n) + state.suits[way]
        };
        (0..WAYS.len()).rev().max_by(|a, b| bound(*a).total_cmp(&bound(*b))).unwrap_or(0)
    }

    async fn best_of_n(&self, context: &mut TeamContext<'_>, constraints: &str) -> Option<(Stand, f64)> {
        let stands: Vec<Stand> = samples(context, 0, self.params.samples, STEPS).await.into_iter().flatten().collect();
        let marks = verified(context, constraints, &stands).await;
        best(stands, marks)
    }

    /// Generates as many answers as samples: three at first, then always one developed from the most promising.
    async fn tree(&self, context: &mut TeamContext<'_>, constraints: &str) -> Option<(Stand, f64)> {
        let mut tree = Tree::default();
        let first: Vec<Stand> =
            samples(context, 0, self.params.samples.min(3), STEPS).await.into_iter().flatten().collect();
        let marks = verified(context, constraints, &first).await;
        for (stand, (mark, _)) in first.into_iter().zip(marks) {
            tree.add(None, stand, (mark + 100.0) / 200.0);
        }
        for _ in 3..self.params.samples {
            let Some(from) = tree.promising(0.0, 2, 3) else { break };
            let stand = self.next(context, constraints, &tree.nodes[from].stand).await?;
            let mark = verified(context, constraints, std::slice::from_ref(&stand))
                .await
                .first()
                .map_or(0.0, |(mark, _)| *mark);
            tree.add(Some(from), stand, (mark + 100.0) / 200.0);
        }
        tree.best().map(|i| (tree.nodes[i].stand.clone(), tree.nodes[i].reward * 200.0 - 100.0))
    }

    /// Generates half of the samples first; the others develop these, distributed by softmax of their marks.
    async fn rebase(&self, context: &mut TeamContext<'_>, constraints: &str) -> Option<(Stand, f64)> {
        let half = self.params.samples.div_ceil(2);
        let mut stands: Vec<Stand> = samples(context, 0, half, STEPS).await.into_iter().flatten().collect();
        let mut marks = verified(context, constraints, &stands).await;
        let weights: Vec<f64> = marks.iter().map(|(mark, _)| libm::exp(mark / 20.0)).collect();
        let sum: f64 = weights.iter().sum();
        let budget = self.params.samples - half;
        let mut more = Vec::new();
        let mut due = 0.0;
        for (stand, weight) in stands.iter().zip(&weights) {
            due += weight / sum * f64::from(budget);
            while due >= 0.5 && (more.len() as u32) < budget {
                due -= 1.0;
                more.push(stand.clone());
            }
        }
        for stand in more {
            if let Some(next) = self.next(context, constraints, &stand).await {
                marks.extend(verified(context, constraints, std::slice::from_ref(&next)).await);
                stands.push(next);
            }
        }
        best(stands, marks)
    }

    /// Returns an answer developed from another and its verification.
    async fn next(&self, context: &mut TeamContext<'_>, constraints: &str, from: &Stand) -> Option<Stand> {
        let (mark, words) = verified(context, constraints, std::slice::from_ref(from)).await.into_iter().next()?;
        let finding = refine::Finding { by: "Verification".into(), right: mark > 0.0, words };
        let brief = refine::to_revise(context, 0, from, &finding).sample(context.round());
        solve(context, vec![brief]).await.into_iter().next().flatten()
    }
}

fn best(stands: Vec<Stand>, marks: Vec<(f64, String)>) -> Option<(Stand, f64)> {
    let marked = stands.into_iter().zip(marks).map(|(stand, (mark, _))| (stand, mark));
    marked.fold(None, |best: Option<(Stand, f64)>, next| match best {
        Some(best) if best.1 >= next.1 => Some(best),
        _ => Some(next),
    })
}

/// Returns the selection agent's mark for each search, 0 to 1; without a reply, 0 for all.
async fn suited(context: &mut TeamContext<'_>, constraints: &str) -> [f64; 3] {
    let by = context.cast("selection");
    let mark = ResponseFormat::Number { low: 0.0, high: 1.0, whole: false };
    let n = WAYS.len() as u32;
    let marks = ResponseFormat::List { of: Box::new(mark), least: n, most: n };
    let shown: Vec<Part> = match constraints {
        "" => Vec::new(),
        text => vec![Part::Text(context.filled(&SHOWN, &[("constraints", text)]))],
    };
    let format = ResponseFormat::Record(vec![("marks".into(), marks)]);
    let heard = context.ask(Brief::new(by, talk(context, by, &shown, SELECT), format).task(Task::Rate)).await;
    let mut suits = [0.0; 3];
    if let Some(Value::List(marks)) = heard.ok().as_ref().and_then(|value| value.field(0)) {
        for (suit, mark) in suits.iter_mut().zip(marks) {
            if let Value::Number(mark) = mark {
                *suit = *mark;
            }
        }
    }
    suits
}

/// Returns the verification agent's mark for each answer, -100 to 100, and its findings; a missing mark counts as 0.
async fn verified(context: &mut TeamContext<'_>, constraints: &str, stands: &[Stand]) -> Vec<(f64, String)> {
    let by = context.cast("verification");
    let mark = ResponseFormat::Number { low: -100.0, high: 100.0, whole: true };
    let response_format =
        || ResponseFormat::Record(vec![("answer".into(), mark.clone()), ("reasons".into(), ResponseFormat::Text)]);
    let briefs = stands
        .iter()
        .enumerate()
        .map(|(n, stand)| {
            let mut shown = Vec::new();
            if !constraints.is_empty() {
                shown.push(Part::Text(context.filled(&SHOWN, &[("constraints", constraints)])));
            }
            shown.push(stand.named("Somebody").said());
            Brief::new(by, talk(context, by, &shown, VERIFY), response_format()).task(Task::Rate).sample(n as u32)
        })
        .collect();
    let heard = context.ask_all(briefs).await;
    let read = |value: Value| match (value.field(0), value.field(1).and_then(Value::as_text)) {
        (Some(Value::Number(mark)), Some(words)) => Some((*mark, words.to_owned())),
        _ => None,
    };
    heard.into_iter().map(|heard| heard.ok().and_then(read).unwrap_or_default()).collect()
}
