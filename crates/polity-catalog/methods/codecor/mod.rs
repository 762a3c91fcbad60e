//! Prompts, tests, programs and advice, several of each and pruned; the program that passes most of the tests is the answer. See README.md
//! for the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::judge::{Prune, Pruning, kept};
use crate::team::repair::{self, Passed};
use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, drafts, judge, refine, solve, solve_one, to_solve, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::Part;
use polity_kernel::ask::tool::Ran;
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
    registry.method::<CodeCor>(files);
}

/// Parameters of CodeCoR.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Outputs of each agent: prompts, suites of tests, pieces of advice.
    outputs: u32,
    /// Outputs that are kept of them.
    keep: u32,
    /// What decides which are kept.
    prune: Prune,
}

impl Default for Params {
    fn default() -> Self {
        Params { outputs: 3, keep: 2, prune: Prune::Marks }
    }
}

/// Four agents that prune their own outputs.
pub struct CodeCor {
    params: Params,
    repairs: u32,
}

/// A program, and what became of it with the tests.
struct Candidate {
    stand: Stand,
    passed: Passed,
}

/// Indices of [`Method::QUANTITIES`].
const PASSED: u16 = 0;
const CASES: u16 = 1;
const PROGRAMS: u16 = 2;
/// Index of [`Method::RECORDS`].
const WRITTEN: u16 = 2;
const PROMPT: Prompt =
    Prompt::new("prompt", "asks the prompt agent for instructions", include_str!("prompts/prompt.md"));
const PROGRAM: Prompt = Prompt::new("program", "asks the coder for the program", include_str!("prompts/program.md"));
const ADVICE: Prompt = Prompt::new("advice", "asks the repair agent for advice", include_str!("prompts/advice.md"));
const MARK_PROMPTS: Prompt =
    Prompt::new("mark-prompts", "asks for marks of the instructions", include_str!("prompts/mark-prompts.md"))
        .may_hold(&["low", "high"]);
const MARK_TESTS: Prompt =
    Prompt::new("mark-tests", "asks for marks of the suites of tests", include_str!("prompts/mark-tests.md"))
        .may_hold(&["low", "high"]);
const MARK_ADVICE: Prompt =
    Prompt::new("mark-advice", "asks for marks of the advice", include_str!("prompts/mark-advice.md"))
        .may_hold(&["low", "high"]);

const HOW: Prompt = Prompt::new("how", "shows the coder the instructions", "How to go about it:\n{{ instructions }}")
    .must_hold(&["instructions"]);

impl Method for CodeCor {
    const NAME: &'static str = "codecor";
    const SUMMARY: &'static str =
        "Prompt, test, coding and repair agents prune their outputs; the program that passes most tests wins (CodeCoR)";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "kept", doc: "a prompt, a suite of tests or a piece of advice that was kept" },
    ];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "tests-passed", doc: "share of the generated test cases that the returned program passes" },
        Quantity { name: "test-cases", doc: "generated test cases that were kept" },
        Quantity { name: "programs", doc: "programs that ran with them" },
    ];
    const ROLES: &'static [&'static str] = &["prompt agent", "test agent", "repair agent"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 3 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Centralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const TOOLS: &'static [&'static str] = &[Ran::PYTHON];
    const PROMPTS: &'static [Prompt] = &[
        PROMPT,
        PROGRAM,
        ADVICE,
        MARK_PROMPTS,
        MARK_TESTS,
        MARK_ADVICE,
        HOW,
        judge::MARK,
        repair::TESTS,
        refine::AGAIN,
        FORM,
        LENGTH,
        DECEIVE,
    ];
    type Params = Params;

    fn open(params: Params, _: usize, repairs: u32) -> Result<Self, Invalid> {
        Invalid::within(1..=20, "outputs", params.outputs)?;
        Invalid::within(1..=params.outputs, "keep", params.keep)?;
        Ok(CodeCor { params, repairs })
    }

    fn suits(item: &polity_kernel::items::Item) -> Result<(), &'static str> {
        match item.program {
            Some(_) => Ok(()),
            None => Err("it writes programs and needs items of the shape `humaneval`"),
        }
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let coder = context.workers().first().copied().unwrap_or(0);
        let tester = context.cast("test agent");
        let prompts = self.prompts(context).await;
        let suites = repair::suites(context, tester, self.params.outputs).await;
        let suites = self.pruned(context, tester, suites, MARK_TESTS).await;
        let mut cases: Vec<String> = Vec::new();
        for case in suites.iter().flat_map(|suite| repair::cases(suite)) {
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
        context.measure(CASES, cases.len() as f64);
        let brief = |(n, prompt): (usize, &String)| {
            let how = (!prompt.is_empty()).then(|| Part::Text(context.filled(&HOW, &[("instructions", prompt)])));
            let shown: Vec<Part> = how.into_iter().collect();
            to_solve(context, coder, &shown, PROGRAM).sample(n as u32)
        };
        let briefs = prompts.iter().enumerate().map(brief).collect();
        let programs: Vec<Stand> = solve(context, briefs).await.into_iter().flatten().collect();
        let programs = kept(context, coder, programs, self.pruning(None)).await;
        let best = self.best(context, (coder, tester), programs, &cases).await;
        Ok(verdict(best.map(|stand| stand.answer)))
    }
}

impl CodeCor {
    fn pruning(&self, instruction: Option<Prompt>) -> Pruning {
        Pruning { prune: self.params.prune, keep: self.params.keep as usize, scale: (1.0, 10.0), instruction }
    }

    /// Returns the texts that their author keeps.
    async fn pruned(
        &self,
        context: &mut TeamContext<'_>,
        author: usize,
        texts: Vec<String>,
        instruction: Prompt,
    ) -> Vec<String> {
        let by = context.team[author].name.clone();
        let stand = |answer| Stand { by: by.clone(), answer, reasons: String::new() };
        let stands = texts.into_iter().map(stand).collect();
        let kept = kept(context, author, stands, self.pruning(Some(instruction))).await;
        kept.iter().for_each(|stand| context.record(author, WRITTEN, &stand.answer));
        kept.into_iter().map(|stand| stand.answer).collect()
    }

    /// The prompt agent's prompts. Without any the coder works from the description alone.
    async fn prompts(&self, context: &mut TeamContext<'_>) -> Vec<String> {
        let author = context.cast("prompt agent");
        let texts = drafts(context, author, self.params.outputs, &[], PROMPT).await;
        let kept = self.pruned(context, author, texts, MARK_PROMPTS).await;
        if kept.is_empty() { vec![String::new()] } else { kept }
    }

    /// Runs the programs, has those that fail repaired, and returns the one that passes most; ties go to the earlier.
    async fn best(
        &self,
        context: &mut TeamContext<'_>,
        (coder, tester): (usize, usize),
        programs: Vec<Stand>,
        cases: &[String],
    ) -> Option<Stand> {
        let (mut all, mut new): (Vec<Candidate>, Vec<Stand>) = (Vec::new(), programs);
        for round in 0..=self.repairs {
            let first = all.len();
            for stand in std::mem::take(&mut new) {
                let passed = repair::passed(context, tester, &stand, cases).await;
                all.push(Candidate { stand, passed });
            }
            if round == self.repairs || all.iter().any(|candidate| candidate.passed.failure.is_none()) {
                break;
            }
            for Candidate { stand, passed } in &all[first..] {
                let Some(failure) = &passed.failure else { continue };
                new.extend(self.repaired(context, coder, stand, failure).await);
            }
        }
        context.measure(PROGRAMS, all.len() as f64);
        let best = all.into_iter().rev().max_by_key(|candidate| candidate.passed.passed)?;
        context.measure_share(PASSED, best.passed.passed, cases.len());
        Some(best.stand)
    }

    /// Returns a program that the coder writes anew on the repair agent's advice.
    async fn repaired(
        &self,
        context: &mut TeamContext<'_>,
        coder: usize,
        stand: &Stand,
        failure: &refine::Finding,
    ) -> Option<Stand> {
        let author = context.cast("repair agent");
        let shown = [stand.said(), Part::Text(failure.words.clone())];
        let advice = drafts(context, author, self.params.outputs, &shown, ADVICE).await;
        let advice = self.pruned(context, author, advice, MARK_ADVICE).await.join("\n\n");
        let words = format!("{}\n\n{advice}", failure.words).trim_end().to_owned();
        let finding = refine::Finding { by: context.team[author].name.clone(), right: false, words };
        solve_one(context, refine::to_revise(context, coder, stand, &finding)).await
    }
}
