//! A planner invents the roles and the plan, observers criticise both, and the roles then work step by step. See README.md for the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::line::{DOCUMENT, Document, NOT_ACCEPTED, document, shown};
use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, judge, refine, solve_one, to_solve, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::Part;
use polity_kernel::items::judged;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<AutoAgents>(files);
}

/// Parameters of AutoAgents.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Maximum number of drafts of roles and plan, each after the observers' remarks.
    drafts: u32,
    /// Maximum number of tries per step, each after a check of the previous one.
    tries: u32,
    /// Maximum number of roles.
    roles: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { drafts: 3, tries: 2, roles: 4 }
    }
}

/// Roles created for the question.
pub struct AutoAgents {
    params: Params,
    rounds: u32,
}

/// A role invented by the planner.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Expert {
    name: String,
    expertise: String,
}

/// A step of the plan.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Step {
    role: String,
    task: String,
}

/// Roles and plan.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct Draft {
    roles: Vec<Expert>,
    steps: Vec<Step>,
}

impl Document for Draft {
    const TITLE: &'static str = "Roles and plan";
}

/// The state between steps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    draft: Option<Draft>,
    done: Vec<Stand>,
    step: u32,
}

/// Indices of [`Method::RECORDS`].
const ROLES: u16 = 2;
const PLANNER: Prompt =
    Prompt::new("planner", "asks for roles and a plan", include_str!("prompts/planner.md")).may_hold(&["most"]);
const OBSERVER: Prompt = Prompt::new(
    "observer",
    "tells an observer which part of the draft to look at, after the prompt `check`",
    include_str!("prompts/observer.md"),
)
.must_hold(&["part"]);
const WORK: Prompt = Prompt::new("work", "tells a member to do its step", include_str!("prompts/work.md"));
const CHECK: Prompt = Prompt::new(
    "check-step",
    "tells the observer of a step what is right, after the prompt `check`",
    include_str!("prompts/check.md"),
)
.must_hold(&["step"]);

const ROLE: Prompt = Prompt::new("role", "tells a member its role", "You are {{ name }}: {{ expertise }}")
    .may_hold(&["name", "expertise"]);
const STEP: Prompt = Prompt::new("step", "tells a member its step", "Your step: {{ task }}").must_hold(&["task"]);
const REMARKS: Prompt =
    Prompt::new("remarks", "shows the planner the remarks of an observer", "Remarks on the {{ part }}: {{ remarks }}")
        .must_hold(&["remarks"])
        .may_hold(&["part"]);

impl Method for AutoAgents {
    const NAME: &'static str = "autoagents";
    const SUMMARY: &'static str =
        "A planner invents roles and a plan, observers criticise them, then the roles work step by step (AutoAgents)";
    const RECORDS: &'static [Records] =
        &[ANSWERS[0], ANSWERS[1], Records { name: "roles", doc: "the roles and the plan for the question" }];
    const ROLES: &'static [&'static str] = &["planner", "agent observer", "plan observer", "action observer"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 5 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Hierarchical,
        strategy: Strategy::Model,
        coordination: Coordination::Dynamic,
    });
    const PROMPTS: &'static [Prompt] = &[
        PLANNER,
        OBSERVER,
        WORK,
        CHECK,
        ROLE,
        STEP,
        REMARKS,
        DOCUMENT,
        NOT_ACCEPTED,
        judge::CHECK,
        refine::AGAIN,
        FORM,
        LENGTH,
        DECEIVE,
    ];
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        for (key, n) in [("drafts", params.drafts), ("tries", params.tries), ("roles", params.roles)] {
            Invalid::within(1..=50, key, n)?;
        }
        Ok(AutoAgents { params, rounds })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let mut state: State = context.restore()?.unwrap_or_default();
        if state.draft.is_none() {
            // Without a draft there is an empty one, so that none is asked for again after a checkpoint.
            state.draft = Some(self.drafted(context).await?.unwrap_or_default());
            context.end_round(&state).await?;
        }
        let draft = state.draft.clone().unwrap_or_default();
        // A plan without steps is one step.
        let steps =
            if draft.steps.is_empty() { vec![Step { role: String::new(), task: String::new() }] } else { draft.steps };
        for (n, step) in steps.iter().enumerate().skip(state.step as usize) {
            let role = draft.roles.iter().find(|role| role.name == step.role).or(draft.roles.first());
            let values = |role: &Expert| context.filled(&ROLE, &[("name", &role.name), ("expertise", &role.expertise)]);
            let told = role.map_or(String::new(), |role| format!("{}\n", values(role)));
            let mut shown: Vec<Part> = state.done.iter().map(Stand::said).collect();
            shown.push(Part::Text(format!("{told}{}", context.filled(&STEP, &[("task", &step.task)]))));
            let question = to_solve(context, 0, &shown, WORK).sample(state.step);
            if let Some(first) = solve_one(context, question.clone()).await {
                let (observer, check) =
                    (context.cast("action observer"), context.filled(&CHECK, &[("step", &step.task)]));
                let tries = self.params.tries - 1;
                state.done.push(refine::until_it_passes(context, &question, first, (observer, &check), tries).await);
            }
            state.step += 1;
            // All steps are done. Those that no round is left for are done in the last one.
            if n + 1 < steps.len() && context.round() + 1 < self.rounds || n + 1 == steps.len() {
                context.end_round(&state).await?;
            }
        }
        Ok(verdict(state.done.last().map(|stand| stand.answer.clone())))
    }
}

impl AutoAgents {
    /// Drafts roles and plan, again after the remarks of the two observers until both accept or no more drafts are allowed.
    async fn drafted(&self, context: &mut TeamContext<'_>) -> Result<Option<Draft>, Fault> {
        let planner = context.cast("planner");
        let observers = [context.cast("agent observer"), context.cast("plan observer")];
        let (mut remarks, mut held): (Vec<Part>, Option<Draft>) = (Vec::new(), None);
        for n in 0..self.params.drafts {
            let order = context.filled(&PLANNER, &[("most", &self.params.roles.to_string())]);
            let Some(draft) = document::<Draft>(context, planner, &remarks, &order).await? else { break };
            remarks = vec![shown(&draft)];
            if let Some(Part::Text(text)) = remarks.first() {
                context.record(planner, ROLES, text.clone());
            }
            held = Some(draft);
            if n + 1 == self.params.drafts {
                break;
            }
            let mut passed = 0;
            for (observer, of) in observers.into_iter().zip(["roles", "steps"]) {
                let text = serde_json::to_string(&held).unwrap_or_default();
                let proposal = Stand { by: "Planner".into(), answer: text, reasons: String::new() };
                let order = context.filled(&OBSERVER, &[("part", of)]);
                let brief = judge::to_check(context, observer, &proposal, &order).sample(n);
                match context.ask(brief).await.ok().as_ref().and_then(judged) {
                    Some((false, words)) => {
                        let values = [("part", of), ("remarks", words)];
                        remarks.push(Part::Text(context.filled(&REMARKS, &values)));
                    }
                    // Without a judgement there is no basis for a revision.
                    _ => passed += 1,
                }
            }
            if passed == observers.len() {
                break;
            }
        }
        Ok(held)
    }
}
