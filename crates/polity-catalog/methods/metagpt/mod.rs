//! A line of roles, each handing a document in a fixed form to the next, up to a runnable program. See README.md for the source and what
//! is reproduced.

#[cfg(test)]
mod tests;

use crate::team::line::{self, Document, document, shown};
use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, refine, repair, solve, to_solve, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::Part;
use polity_kernel::ask::tool::Ran;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<MetaGpt>(files);
}

/// Parameters of the line.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How often a program that fails the engineer's tests is repaired (executable feedback); 0 is the ablation.
    feedback: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { feedback: 3 }
    }
}

/// The line of roles.
pub struct MetaGpt(Params);

/// The product manager's document.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Requirements {
    goals: Vec<String>,
    user_stories: Vec<String>,
    requirements: Vec<String>,
}

/// The architect's document.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Design {
    approach: String,
    files: Vec<String>,
    interfaces: Vec<String>,
}

/// The project manager's document.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Tasks {
    order: Vec<String>,
    shared_knowledge: String,
}

impl Document for Requirements {
    const TITLE: &'static str = "Requirements";
}

impl Document for Design {
    const TITLE: &'static str = "Design";
}

impl Document for Tasks {
    const TITLE: &'static str = "Tasks";
}

/// Indices of [`Method::RECORDS`].
const DOCUMENT: u16 = 2;
const PRODUCT: Prompt =
    Prompt::new("product-manager", "asks for the requirements", include_str!("prompts/product-manager.md"));
const ARCHITECT: Prompt = Prompt::new("architect", "asks for the design", include_str!("prompts/architect.md"));
const PROJECT: Prompt =
    Prompt::new("project-manager", "asks for the tasks", include_str!("prompts/project-manager.md"));
const ENGINEER: Prompt = Prompt::new("engineer", "asks for the program", include_str!("prompts/engineer.md"));

impl Method for MetaGpt {
    const NAME: &'static str = "metagpt";
    const SUMMARY: &'static str = "Product manager, architect, project manager, engineer and QA pass on checked documents and make a program that runs (MetaGPT)";
    const RECORDS: &'static [Records] =
        &[ANSWERS[0], ANSWERS[1], Records { name: "document", doc: "a document that was passed on, with its title" }];
    const ROLES: &'static [&'static str] =
        &["product manager", "architect", "project manager", "engineer", "qa engineer"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 5, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Hierarchical,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const TOOLS: &'static [&'static str] = &[Ran::PYTHON];
    const PROMPTS: &'static [Prompt] = &[
        PRODUCT,
        ARCHITECT,
        PROJECT,
        ENGINEER,
        line::DOCUMENT,
        line::NOT_ACCEPTED,
        repair::TESTS,
        refine::AGAIN,
        FORM,
        LENGTH,
        DECEIVE,
    ];
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Invalid::within(0..=100, "feedback", params.feedback)?;
        Ok(MetaGpt(params))
    }

    fn suits(item: &polity_kernel::items::Item) -> Result<(), &'static str> {
        match item.program {
            Some(_) => Ok(()),
            None => Err("it writes programs and needs items of the shape `humaneval`"),
        }
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        // Assign each part by role, else by position in the team.
        let part = |context: &TeamContext<'_>, role: &str, place: usize| {
            let named = context.team.iter().position(|member| member.role.as_deref() == Some(role));
            named.unwrap_or(place.min(context.team.len() - 1))
        };
        let (product, architect) = (part(context, "product manager", 0), part(context, "architect", 1));
        let (project, engineer, qa) =
            (part(context, "project manager", 2), part(context, "engineer", 3), part(context, "qa engineer", 4));
        let mut papers: Vec<Part> = Vec::new();
        if let Some(it) = document::<Requirements>(context, product, &papers, PRODUCT).await? {
            publish(context, product, &it, &mut papers);
        }
        if let Some(it) = document::<Design>(context, architect, &papers, ARCHITECT).await? {
            publish(context, architect, &it, &mut papers);
        }
        if let Some(it) = document::<Tasks>(context, project, &papers, PROJECT).await? {
            publish(context, project, &it, &mut papers);
        }
        let brief = to_solve(context, engineer, &papers, ENGINEER);
        let Some(mut held) = solve(context, vec![brief]).await.into_iter().next().flatten() else {
            return Ok(Verdict::default());
        };
        let tests = if self.0.feedback > 0 { repair::tests(context, qa).await } else { None };
        for _ in 0..self.0.feedback {
            let Some(tests) = &tests else { break };
            match repair::tried(context, qa, &held, tests).await {
                Some(finding) if !finding.right => held = refine::revise(context, engineer, held, &finding).await,
                _ => break,
            }
        }
        Ok(verdict(Some(held.answer)))
    }
}

/// Publishes a document to the shared pool, where later roles read it.
fn publish<D: Document>(context: &mut TeamContext<'_>, by: usize, document: &D, papers: &mut Vec<Part>) {
    let part = shown(document);
    if let Part::Text(text) = &part {
        context.record(by, DOCUMENT, text.clone());
    }
    papers.push(part);
}
