//! One member reasons, then answers. See README.md for the source and what is reproduced.

use crate::team::{ANSWERS, propose, verdict};
use polity_kernel::Invalid;
use polity_kernel::method::{Coordination, Desk, Form, Kind, Method, Records, Strategy, Structure, Usual, Verdict};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<ChainOfThought>(files);
}

/// It has no parameters.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {}

/// Reasons, then an answer.
pub struct ChainOfThought;

const STEPS: &str = include_str!("prompts/steps.md");

impl Method for ChainOfThought {
    const NAME: &'static str = "chain-of-thought";
    const SUMMARY: &'static str = "One member reasons step by step, then answers";
    const SHORT: Option<&'static str> = Some("single");
    const RECORDS: &'static [Records] = &ANSWERS;
    const USUAL: Usual = Usual { members: 1, rounds: 1 };
    const FORM: Option<Form> = Some(Form {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    type Params = Params;

    fn open(_: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(ChainOfThought)
    }

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        let stands = propose(desk, STEPS).await;
        Ok(verdict(stands.into_iter().next().flatten().map(|stand| stand.answer)))
    }
}
