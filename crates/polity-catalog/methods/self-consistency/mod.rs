//! Many answers to the same question; the most frequent wins. See README.md for the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::{ANSWERS, propose, verdict, vote};
use polity_kernel::Invalid;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, NoParams, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<SelfConsistency>(files);
}

/// Many answers, and the most frequent.
pub struct SelfConsistency;

const STEPS: &str = include_str!("prompts/steps.md");

impl Method for SelfConsistency {
    const NAME: &'static str = "self-consistency";
    const SUMMARY: &'static str = "Many independent answers; the most frequent wins";
    const SHORT: Option<&'static str> = Some("sc");
    const RECORDS: &'static [Records] = &ANSWERS;
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 8, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Decentralised,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    type Params = NoParams;

    fn open(_: NoParams, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(SelfConsistency)
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let stands = propose(context, STEPS).await;
        Ok(verdict(vote::plurality(context.item, &stands)))
    }
}
