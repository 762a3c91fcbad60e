//! A tree of thoughts, searched step by step: thoughts on every state kept, votes or values, and the best states. See README.md for the
//! source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, judge, solve, to_solve, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::Part;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<TreeOfThoughts>(files);
}

/// How thoughts are evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Evaluate {
    /// Each vote names the best of all.
    #[default]
    Vote,
    /// Each is given marks on its own.
    Value,
}

/// Parameters of the search.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Number of thoughts on each state.
    thoughts: u32,
    /// Number of votes on all thoughts of a step, or of values for each.
    evaluations: u32,
    /// Number of states kept after a step.
    keep: u32,
    /// How thoughts are evaluated.
    evaluate: Evaluate,
}

impl Default for Params {
    fn default() -> Self {
        Params { thoughts: 5, evaluations: 5, keep: 1, evaluate: Evaluate::Vote }
    }
}

/// A search of some steps.
pub struct TreeOfThoughts {
    params: Params,
    steps: u32,
}

const THINK: Prompt = Prompt::new("think", "asks for the next step of thought", include_str!("prompts/think.md"));
/// Range of values.
const MARKS: (f64, f64) = (0.0, 10.0);

impl Method for TreeOfThoughts {
    const NAME: &'static str = "tree-of-thoughts";
    const SUMMARY: &'static str = "Steps of thoughts; votes or values decide which are thought on (Tree of Thoughts)";
    const SHORT: Option<&'static str> = Some("tot");
    const RECORDS: &'static [Records] = &ANSWERS;
    const ROLES: &'static [&'static str] = &["judge"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 2 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Competition,
        structure: Structure::Centralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[THINK, judge::CHOOSE, judge::MARK, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, steps: u32) -> Result<Self, Invalid> {
        for (key, n) in [("thoughts", params.thoughts), ("evaluations", params.evaluations), ("keep", params.keep)] {
            Invalid::within(1..=100, key, n)?;
        }
        Ok(TreeOfThoughts { params, steps })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        // A state is its last answer with the reasons of all its steps.
        let mut states: Vec<Stand> = context.restore()?.unwrap_or_default();
        while context.round() < self.steps {
            let thoughts = self.thoughts(context, &states).await;
            let values = self.values(context, &thoughts).await;
            let mut order: Vec<usize> = (0..thoughts.len()).collect();
            // Of equals the first is kept.
            order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
            let best: Vec<Stand> = order.iter().take(self.params.keep as usize).map(|i| thoughts[*i].clone()).collect();
            // Without a thought the states stand.
            states = if best.is_empty() { states } else { best };
            context.end_round(&states).await?;
        }
        Ok(verdict(states.into_iter().next().map(|state| state.answer)))
    }
}

impl TreeOfThoughts {
    /// Thinks on from every state, or begins.
    async fn thoughts(&self, context: &mut TeamContext<'_>, states: &[Stand]) -> Vec<Stand> {
        let from = if states.is_empty() { vec![None] } else { states.iter().map(Some).collect() };
        let from: Vec<Option<&Stand>> =
            from.into_iter().flat_map(|s| (0..self.params.thoughts).map(move |_| s)).collect();
        let briefs = from.iter().enumerate().map(|(n, state)| {
            let shown: Vec<Part> = state.iter().map(|state| state.said()).collect();
            to_solve(context, context.workers().first().copied().unwrap_or(0), &shown, THINK).sample(n as u32)
        });
        let briefs = briefs.collect();
        let grown = |(state, thought): (Option<&Stand>, Option<Stand>)| {
            let thought = thought?;
            let reasons =
                state.map_or(thought.reasons.clone(), |state| format!("{}\n{}", state.reasons, thought.reasons));
            Some(Stand { reasons, ..thought })
        };
        from.iter().copied().zip(solve(context, briefs).await).filter_map(grown).collect()
    }

    /// Returns the votes for each thought, or its values. A thought that has come before is worth nothing.
    async fn values(&self, context: &mut TeamContext<'_>, thoughts: &[Stand]) -> Vec<f64> {
        let by = context.cast("judge");
        let mut values = vec![0.0; thoughts.len()];
        let rounds = 0..self.params.evaluations;
        match self.params.evaluate {
            Evaluate::Vote if thoughts.len() > 1 => {
                let briefs = rounds.map(|n| judge::to_choose(context, by, thoughts, n)).collect();
                let votes = context.ask_all(briefs).await.into_iter().filter_map(|heard| judge::choice(&heard.ok()?));
                votes.filter(|vote| *vote < thoughts.len()).for_each(|vote| values[vote] += 1.0);
            }
            Evaluate::Vote => {}
            Evaluate::Value => {
                let new = (0..thoughts.len()).filter(|i| !thoughts[..*i].contains(&thoughts[*i]));
                let asked: Vec<(usize, u32)> = new.flat_map(|i| rounds.clone().map(move |n| (i, n))).collect();
                let brief = |(i, n): &(usize, u32)| {
                    judge::to_mark(context, by, &thoughts[*i..=*i], MARKS.0, MARKS.1).sample(*n)
                };
                let briefs = asked.iter().map(brief).collect();
                for ((i, _), heard) in asked.iter().zip(context.ask_all(briefs).await) {
                    values[*i] += heard.ok().as_ref().and_then(judge::marked).map_or(0.0, |marks| marks.iter().sum());
                }
            }
        }
        values
    }
}
