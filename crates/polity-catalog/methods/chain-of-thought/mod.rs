//! One member reasons, then answers. See README.md for the source and what is reproduced.

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, propose, verdict};
use polity_kernel::Invalid;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, NoParams, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<ChainOfThought>(files);
}

/// Reasons, then an answer.
pub struct ChainOfThought;

const STEPS: Prompt =
    Prompt::new("steps", "tells a member to work the question out step by step", include_str!("prompts/steps.md"));

impl Method for ChainOfThought {
    const NAME: &'static str = "chain-of-thought";
    const SUMMARY: &'static str = "One member reasons step by step, then answers";
    const SHORT: Option<&'static str> = Some("single");
    const RECORDS: &'static [Records] = &ANSWERS;
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[STEPS, FORM, LENGTH, DECEIVE];
    type Params = NoParams;

    fn open(_: NoParams, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(ChainOfThought)
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let stands = propose(context, STEPS).await;
        Ok(verdict(stands.into_iter().next().flatten().map(|stand| stand.answer)))
    }
}
