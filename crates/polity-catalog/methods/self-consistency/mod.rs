//! Many answers to the same question; the most frequent wins. See README.md for the source and what is reproduced.

use crate::team::{ANSWERS, propose, verdict, vote};
use polity_kernel::Invalid;
use polity_kernel::method::{Coordination, Desk, Form, Kind, Method, Records, Strategy, Structure, Usual, Verdict};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<SelfConsistency>(files);
}

/// It has no parameters.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {}

/// Many answers, and the most frequent.
pub struct SelfConsistency;

const STEPS: &str = include_str!("prompts/steps.md");

impl Method for SelfConsistency {
    const NAME: &'static str = "self-consistency";
    const SUMMARY: &'static str = "Many answers, each alone; the most frequent wins";
    const SHORT: Option<&'static str> = Some("sc");
    const RECORDS: &'static [Records] = &ANSWERS;
    const USUAL: Usual = Usual { members: 8, rounds: 1 };
    const FORM: Option<Form> = Some(Form {
        kind: Kind::Cooperation,
        structure: Structure::Decentralised,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    type Params = Params;

    fn open(_: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(SelfConsistency)
    }

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        let stands = propose(desk, STEPS).await;
        Ok(verdict(vote::plurality(desk.item, &stands)))
    }
}
