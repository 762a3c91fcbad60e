//! Weak members answer; a strong one is asked where they are not enough. See README.md for the sources and what is reproduced.

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, propose, solve_one, to_solve, verdict, vote};
use polity_kernel::Invalid;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Quantity, Records, Strategy, Structure, Taxonomy, TeamContext,
    Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Cascade>(files);
}

/// What decides that the strong member is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The weak members answer first; without agreement the strong one decides.
    #[default]
    Agreement,
    /// The topic of the item: the strong member answers those in `topics`, the weak ones all others.
    Topic,
}

/// Parameters of a cascade.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What decides that the strong member is asked.
    by: By,
    /// With `by: agreement`, the share of the weak members that must agree.
    agree: f64,
    /// With `by: topic`, the topics of the strong member.
    topics: Vec<String>,
    /// Ask the strong member for this share of items, drawn at random (the placebo, at the same cost).
    lot: Option<f64>,
}

impl Default for Params {
    fn default() -> Self {
        Params { by: By::Agreement, agree: 1.0, topics: Vec::new(), lot: None }
    }
}

/// A cascade of weak and strong members.
pub struct Cascade(Params);

const STEPS: Prompt =
    Prompt::new("steps", "tells a member to work the question out step by step", include_str!("prompts/steps.md"));
/// Index of [`Method::QUANTITIES`].
const ESCALATED: u16 = 0;

impl Method for Cascade {
    const NAME: &'static str = "model-cascade";
    const SUMMARY: &'static str = "Weak members answer; a strong one is asked where they disagree, or on some topics";
    const RECORDS: &'static [Records] = &ANSWERS;
    const QUANTITIES: &'static [Quantity] =
        &[Quantity { name: "escalated", doc: "share of items for which the strong member was asked" }];
    const ROLES: &'static [&'static str] = &["strong"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 3, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Hierarchical,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[STEPS, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Invalid::within(0.0..=1.0, "agree", params.agree)?;
        Invalid::within(0.0..=1.0, "lot", params.lot.unwrap_or(0.0))?;
        let none = "routing by topic needs the topics of the strong member";
        Invalid::unless(params.by != By::Topic || !params.topics.is_empty(), "topics", none)?;
        Ok(Cascade(params))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let Params { by, agree, topics, lot } = &self.0;
        let drawn = lot.map(|share| context.draws().chance(share));
        let on_topic = || context.item.topic.as_ref().is_some_and(|topic| topics.contains(topic));
        let route = (*by == By::Topic).then(|| drawn.unwrap_or_else(on_topic));
        let weak = match route {
            Some(true) => Vec::new(),
            _ => propose(context, STEPS).await,
        };
        let majority = vote::plurality(context.item, &weak);
        let needed = agree * weak.len() as f64;
        let agreed = vote::camps(context.item, &weak).iter().any(|(_, size)| *size as f64 >= needed);
        let escalated = route.or(drawn).unwrap_or(!agreed);
        context.measure(ESCALATED, f64::from(u8::from(escalated)));
        if !escalated {
            return Ok(verdict(majority));
        }
        let strong = context.cast("strong");
        let brief = to_solve(context, strong, &[], STEPS);
        let answer = solve_one(context, brief).await.map(|Stand { answer, .. }| answer);
        Ok(verdict(answer.or(majority)))
    }
}

#[cfg(test)]
mod tests;
