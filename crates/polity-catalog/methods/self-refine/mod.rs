//! One member answers, criticises itself and tries again. See README.md for the source and what is reproduced.

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, judge, propose, refine, verdict};
use polity_kernel::Invalid;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, NoParams, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<SelfRefine>(files);
}

/// An answer, feedback on it, another one.
pub struct SelfRefine {
    most: u32,
}

const STEPS: Prompt =
    Prompt::new("steps", "tells a member to work the question out step by step", include_str!("prompts/steps.md"));

impl Method for SelfRefine {
    const NAME: &'static str = "self-refine";
    const SUMMARY: &'static str = "One member answers, looks for its own mistakes and tries again";
    const RECORDS: &'static [Records] = &ANSWERS;
    const ROLES: &'static [&'static str] = &["critic"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 4 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[STEPS, judge::CHECK, refine::AGAIN, FORM, LENGTH, DECEIVE];
    type Params = NoParams;

    fn open(_: NoParams, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Ok(SelfRefine { most: rounds })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let critic = context.cast("critic");
        let Some(first) = propose(context, STEPS).await.into_iter().next().flatten() else {
            return Ok(Verdict::default());
        };
        let question = refine::question(context, 0);
        let held = refine::until_it_passes(context, &question, first, (critic, ""), self.most).await;
        Ok(verdict(Some(held.answer)))
    }
}
