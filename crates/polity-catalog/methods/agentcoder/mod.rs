//! A programmer, a test designer who never sees the program, and an executor, until the tests pass. See README.md for the source and what
//! is reproduced.

#[cfg(test)]
mod tests;

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, propose, refine, repair, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::tool::Ran;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<AgentCoder>(files);
}

/// Parameters of AgentCoder.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Repair a program that fails; otherwise the first one is final (the ablation).
    repair: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { repair: true }
    }
}

/// Programs, tests, and runs.
pub struct AgentCoder {
    params: Params,
    most: u32,
}

const PROGRAM: Prompt = Prompt::new("program", "asks for the program", include_str!("prompts/program.md"));

impl Method for AgentCoder {
    const NAME: &'static str = "agentcoder";
    const SUMMARY: &'static str =
        "Programmer, independent test designer and executor loop until the tests pass (AgentCoder)";
    const RECORDS: &'static [Records] = &ANSWERS;
    const ROLES: &'static [&'static str] = &["test designer", "test executor"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 5 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Centralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const TOOLS: &'static [&'static str] = &[Ran::PYTHON];
    const PROMPTS: &'static [Prompt] = &[PROGRAM, repair::TESTS, refine::AGAIN, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, most: u32) -> Result<Self, Invalid> {
        Ok(AgentCoder { params, most })
    }

    fn suits(item: &polity_kernel::items::Item) -> Result<(), &'static str> {
        match item.program {
            Some(_) => Ok(()),
            None => Err("it writes programs and needs items of the shape `humaneval`"),
        }
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let (designer, executor) = (context.cast("test designer"), context.cast("test executor"));
        let Some(mut held) = propose(context, PROGRAM).await.into_iter().next().flatten() else {
            return Ok(Verdict::default());
        };
        if !self.params.repair {
            return Ok(verdict(Some(held.answer)));
        }
        let Some(tests) = repair::tests(context, designer).await else { return Ok(verdict(Some(held.answer))) };
        for _ in 0..self.most {
            match repair::tried(context, executor, &held, &tests).await {
                Some(finding) if !finding.right => held = refine::revise(context, 0, held, &finding).await,
                _ => break,
            }
        }
        Ok(verdict(Some(held.answer)))
    }
}
