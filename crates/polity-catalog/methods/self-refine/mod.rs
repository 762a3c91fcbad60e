//! One member answers, criticises itself and tries again. See README.md for the source and what is reproduced.

use crate::team::{ANSWERS, propose, refine, verdict};
use polity_kernel::Invalid;
use polity_kernel::method::{Coordination, Desk, Form, Kind, Method, Records, Strategy, Structure, Usual, Verdict};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<SelfRefine>(files);
}

/// It has no parameters.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {}

/// An answer, feedback on it, another one.
pub struct SelfRefine {
    most: u32,
}

const STEPS: &str = include_str!("prompts/steps.md");

impl Method for SelfRefine {
    const NAME: &'static str = "self-refine";
    const SUMMARY: &'static str = "One member answers, looks for its own mistakes and tries again";
    const RECORDS: &'static [Records] = &ANSWERS;
    const USUAL: Usual = Usual { members: 1, rounds: 4 };
    const FORM: Option<Form> = Some(Form {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    type Params = Params;

    fn open(_: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Ok(SelfRefine { most: rounds })
    }

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        let critic = desk.cast("critic");
        let Some(first) = propose(desk, STEPS).await.into_iter().next().flatten() else {
            return Ok(Verdict::default());
        };
        let (held, _) = refine::until_it_passes(desk, 0, critic, first, self.most).await;
        Ok(verdict(Some(held.answer)))
    }
}
