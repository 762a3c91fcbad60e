//! A line of roles, each of which hands a document in a fixed form to the next, to a program that runs. See README.md for the source and what is reproduced.

use crate::team::line::{Document, document, shown};
use crate::team::{ANSWERS, refine, repair, solve, to_solve, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::Part;
use polity_kernel::ask::tool::Ran;
use polity_kernel::method::{Coordination, Desk, Form, Kind, Method, Records, Strategy, Structure, Usual, Verdict};
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
    /// How often a program that fails the engineer's tests is mended (executable feedback); 0 is the ablation.
    feedback: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { feedback: 3 }
    }
}

/// The line of roles.
pub struct MetaGpt(Params);

/// What the product manager hands over.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Requirements {
    goals: Vec<String>,
    user_stories: Vec<String>,
    requirements: Vec<String>,
}

/// What the architect hands over.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Design {
    approach: String,
    files: Vec<String>,
    interfaces: Vec<String>,
}

/// What the project manager hands over.
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
const PRODUCT: &str = include_str!("prompts/product-manager.md");
const ARCHITECT: &str = include_str!("prompts/architect.md");
const PROJECT: &str = include_str!("prompts/project-manager.md");
const ENGINEER: &str = include_str!("prompts/engineer.md");

impl Method for MetaGpt {
    const NAME: &'static str = "metagpt";
    const SUMMARY: &'static str = "Product manager, architect, project manager, engineer and QA hand on checked documents to a program that runs (MetaGPT)";
    const RECORDS: &'static [Records] =
        &[ANSWERS[0], ANSWERS[1], Records { name: "document", doc: "a document that was handed on, with its title" }];
    const USUAL: Usual = Usual { members: 5, rounds: 1 };
    const FORM: Option<Form> = Some(Form {
        kind: Kind::Cooperation,
        structure: Structure::Hierarchical,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const TOOLS: &'static [&'static str] = &[Ran::PYTHON];
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Invalid::within(0..=100, "feedback", params.feedback)?;
        Ok(MetaGpt(params))
    }

    fn suits(item: &polity_kernel::items::Item) -> Result<(), &'static str> {
        match item.program {
            Some(_) => Ok(()),
            None => Err("it writes programs; items of the shape `humaneval` want one"),
        }
    }

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        // Who takes which part: by role, else by place in the team.
        let part = |desk: &Desk<'_>, role: &str, place: usize| {
            let named = desk.team.iter().position(|member| member.role.as_deref() == Some(role));
            named.unwrap_or(place.min(desk.team.len() - 1))
        };
        let (product, architect) = (part(desk, "product manager", 0), part(desk, "architect", 1));
        let (project, engineer, qa) =
            (part(desk, "project manager", 2), part(desk, "engineer", 3), part(desk, "qa engineer", 4));
        let mut papers: Vec<Part> = Vec::new();
        if let Some(it) = document::<Requirements>(desk, product, &papers, PRODUCT).await? {
            publish(desk, product, &it, &mut papers);
        }
        if let Some(it) = document::<Design>(desk, architect, &papers, ARCHITECT).await? {
            publish(desk, architect, &it, &mut papers);
        }
        if let Some(it) = document::<Tasks>(desk, project, &papers, PROJECT).await? {
            publish(desk, project, &it, &mut papers);
        }
        let brief = to_solve(desk, engineer, &papers, ENGINEER);
        let Some(mut held) = solve(desk, vec![brief]).await.into_iter().next().flatten() else {
            return Ok(Verdict::default());
        };
        let tests = if self.0.feedback > 0 { repair::tests(desk, qa).await } else { None };
        for _ in 0..self.0.feedback {
            let Some(tests) = &tests else { break };
            match repair::tried(desk, qa, &held, tests).await {
                Some(finding) if !finding.right => held = refine::revise(desk, engineer, held, &finding).await,
                _ => break,
            }
        }
        Ok(verdict(Some(held.answer)))
    }
}

/// A document goes to the shared pool, where those who come later read it.
fn publish<D: Document>(desk: &mut Desk<'_>, by: usize, document: &D, papers: &mut Vec<Part>) {
    let part = shown(document);
    if let Part::Text(text) = &part {
        desk.record(by, DOCUMENT, text.clone());
    }
    papers.push(part);
}
