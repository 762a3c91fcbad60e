//! A tree search whose nodes are agents, with rewards from models. See README.md for the source and what is reproduced.

use crate::team::search::Tree;
use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, judge, refine, samples, solve, talk, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::{Part, ResponseFormat, Task, Value};
use polity_kernel::method::{
    Brief, Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext,
    Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Master>(files);
}

/// Parameters of MASTER.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Agents recruited below each agent.
    width: u32,
    /// Maximum depth below the first agent.
    depth: u32,
    /// Exploration weight of rarely visited nodes.
    exploration: f64,
    /// Validate promising answers; the search ends when one passes.
    validate: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { width: 2, depth: 3, exploration: 1.0, validate: true }
    }
}

/// A tree of agents.
pub struct Master {
    params: Params,
    most: u32,
}

/// Index of [`Method::RECORDS`].
const REWARD: u16 = 2;
const STEPS: Prompt =
    Prompt::new("steps", "tells a member to work the question out step by step", include_str!("prompts/steps.md"));
const ASSESS: Prompt =
    Prompt::new("assess", "asks the assessor how promising an answer is", include_str!("prompts/assess.md"));

const GIVEN: Prompt =
    Prompt::new("reward", "tells a member how its last answer was assessed", "It was given {{ reward }} of 1.")
        .may_hold(&["reward"]);

impl Method for Master {
    const NAME: &'static str = "master";
    const SUMMARY: &'static str =
        "Monte Carlo tree search that recruits agents as nodes, with rewards from a model (MASTER)";
    const RECORDS: &'static [Records] =
        &[ANSWERS[0], ANSWERS[1], Records { name: "reward", doc: "the reward given to an agent's answer, 0 to 1" }];
    const ROLES: &'static [&'static str] = &["assessor", "validator"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 8 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Hierarchical,
        strategy: Strategy::Model,
        coordination: Coordination::Dynamic,
    });
    const PROMPTS: &'static [Prompt] = &[STEPS, ASSESS, GIVEN, judge::CHECK, refine::AGAIN, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, most: u32) -> Result<Self, Invalid> {
        Invalid::within(1..=20, "width", params.width)?;
        Invalid::within(0.0..=100.0, "exploration", params.exploration)?;
        Ok(Master { params, most })
    }

    fn unused_role(&self) -> Option<(&'static str, &'static str)> {
        (!self.params.validate).then_some(("validator", "`validate: false` asks no validator"))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let mut tree: Tree = context.restore()?.unwrap_or_default();
        // Each round expands one agent by `width` others.
        while context.round() < self.most {
            let width = self.params.width;
            let from = match tree.nodes.is_empty() {
                true => None,
                false => match tree.promising(self.params.exploration, width as usize, self.params.depth) {
                    Some(from) => Some(from),
                    None => break,
                },
            };
            let new: Vec<Stand> = match from {
                None => samples(context, 0, width, STEPS).await.into_iter().flatten().collect(),
                Some(from) => {
                    let before = tree.nodes[from].stand.clone();
                    let reward = format!("{:.2}", tree.nodes[from].reward);
                    let words = context.filled(&GIVEN, &[("reward", &reward)]);
                    let finding = refine::Finding { by: "Assessment".into(), right: false, words };
                    let brief = refine::to_revise(context, 0, &before, &finding);
                    solve(context, (0..width).map(|n| brief.clone().sample(n)).collect())
                        .await
                        .into_iter()
                        .flatten()
                        .collect()
                }
            };
            for stand in new {
                let reward = reward(context, &stand).await;
                context.record(0, REWARD, format!("{reward:.3}"));
                let node = tree.add(from, stand, reward);
                let validator = context.cast("validator");
                let best = tree.best() == Some(node);
                if self.params.validate
                    && best
                    && judge::check(context, validator, &tree.nodes[node].stand, "")
                        .await
                        .is_some_and(|(right, _)| right)
                {
                    return Ok(verdict(Some(tree.nodes[node].stand.answer.clone())));
                }
            }
            context.end_round(&tree).await?;
        }
        Ok(verdict(tree.best().map(|i| tree.nodes[i].stand.answer.clone())))
    }
}

/// Returns the reward of an answer, 0 to 1: a model's mark, moved towards the middle by the model's uncertainty (the paper's equation of
/// initial rewards, without simulation).
async fn reward(context: &mut TeamContext<'_>, stand: &Stand) -> f64 {
    let by = context.cast("assessor");
    let unit = || ResponseFormat::Number { low: 0.0, high: 1.0, whole: false };
    let response_format = ResponseFormat::Record(vec![("answer".into(), unit()), ("confidence".into(), unit())]);
    let shown = [Part::Said { by: "Somebody".into(), answer: stand.answer.clone(), reasons: stand.reasons.clone() }];
    let brief = Brief::new(by, talk(context, by, &shown, ASSESS), response_format).task(Task::Rate);
    match context.ask(brief).await {
        Ok(value) => match (value.field(0), value.field(1)) {
            (Some(Value::Number(mark)), Some(Value::Number(sure))) => 0.5 + (mark - 0.5) * sure,
            _ => 0.5,
        },
        Err(_) => 0.5,
    }
}
