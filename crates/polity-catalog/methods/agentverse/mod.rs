//! Recruitment, discussion, action and evaluation; the evaluator's advice changes the group. See README.md for the source and what is
//! reproduced.

#[cfg(test)]
mod tests;

use crate::team::refine::Finding;
use crate::team::{
    ANSWERS, DECEIVE, FORM, LENGTH, NO_ANSWER, Stand, judge, layers, refine, repair, solve_one, talk, tell_all,
    to_solve, verdict,
};
use polity_kernel::Invalid;
use polity_kernel::ask::tool::Ran;
use polity_kernel::ask::{ChatMessage, Part, ResponseFormat, Role, Task, Value};
use polity_kernel::items::judged;
use polity_kernel::method::{
    Brief, Coordination, DefaultTeam, Kind, Method, Prompt, Quantity, Records, Strategy, Structure, Taxonomy,
    TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<AgentVerse>(files);
}

/// How the group comes to a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Discussion {
    /// The first answers, the others review, and it answers again until all agree.
    #[default]
    Vertical,
    /// The others answer in turn, each hearing those before it, and the first sums up.
    Horizontal,
}

/// Parameters of AgentVerse.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Number of experts that are recruited.
    experts: u32,
    /// How they come to a decision.
    discussion: Discussion,
    /// Maximum number of reviews per decision, in a vertical discussion.
    reviews: u32,
    /// Show the evaluator's advice and the last answer to the recruiter and the group. If `false`, each round starts from scratch (the
    /// placebo).
    feedback: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { experts: 2, discussion: Discussion::Vertical, reviews: 3, feedback: true }
    }
}

/// Four stages, repeated until the evaluator is content.
pub struct AgentVerse {
    params: Params,
    rounds: u32,
}

/// The state between rounds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    /// The experts of the last round, as they were described.
    experts: Vec<String>,
    held: Option<Stand>,
    /// The evaluator's advice on the last answer.
    advice: String,
    accepted: bool,
    /// Rounds in which the group changed.
    changes: u32,
}

/// Indices of [`Method::QUANTITIES`].
const ROUNDS: u16 = 0;
const CHANGES: u16 = 1;
const ACCEPTED: u16 = 2;
/// Index of [`Method::RECORDS`].
const EXPERT: u16 = 2;
const RECRUIT: Prompt =
    Prompt::new("recruit", "asks for descriptions of the experts", include_str!("prompts/recruit.md")).may_hold(&["n"]);
const WORK: Prompt = Prompt::new("work", "tells an expert to answer", include_str!("prompts/work.md"));
const REVIEW: Prompt =
    Prompt::new("review", "tells an expert how to review, after the prompt `check`", include_str!("prompts/review.md"));
const EVALUATE: Prompt = Prompt::new(
    "evaluate",
    "tells the evaluator what to judge, after the prompt `check`",
    include_str!("prompts/evaluate.md"),
);

const LAST_GROUP: Prompt = Prompt::new(
    "last-group",
    "shows the recruiter the last group and what became of it",
    "The last group:\n{{ experts }}\n\nWhat the evaluator said:\n{{ advice }}",
)
.may_hold(&["experts", "advice"]);
const ADVICE: Prompt = Prompt::new(
    "advice",
    "shows the experts what the evaluator said of the last answer",
    "What an evaluator said of the last answer:\n{{ advice }}",
)
.must_hold(&["advice"]);
const EXPERT_PERSONA: Prompt =
    Prompt::new("expert", "tells a member which expert it is", "In this group you are: {{ expert }}")
        .must_hold(&["expert"]);
const GROUP: Prompt = Prompt::new(
    "group",
    "shows the evaluator the group that gave the answer",
    "The group that gave it:\n{{ experts }}",
)
.may_hold(&["experts"]);
const RESULT: Prompt = Prompt::new(
    "result",
    "shows the evaluator what came of carrying the answer out",
    "What came of carrying it out:\n{{ result }}",
)
.must_hold(&["result"]);

impl Method for AgentVerse {
    const NAME: &'static str = "agentverse";
    const SUMMARY: &'static str =
        "Recruitment, discussion, action and evaluation, whose advice changes the group (AgentVerse)";
    const RECORDS: &'static [Records] =
        &[ANSWERS[0], ANSWERS[1], Records { name: "expert", doc: "the expert that the member is in this round" }];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "recruitments", doc: "number of groups that were recruited" },
        Quantity { name: "changes", doc: "number of groups that differ from the one before" },
        Quantity { name: "accepted", doc: "1 if the evaluator accepted an answer, 0 if the rounds ended first" },
    ];
    const ROLES: &'static [&'static str] = &["recruiter", "executor", "evaluator"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 2, rounds: 3 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Hierarchical,
        strategy: Strategy::Role,
        coordination: Coordination::Dynamic,
    });
    const TOOLS: &'static [&'static str] = &[Ran::PYTHON];
    const PROMPTS: &'static [Prompt] = &[
        RECRUIT,
        WORK,
        REVIEW,
        EVALUATE,
        LAST_GROUP,
        ADVICE,
        EXPERT_PERSONA,
        GROUP,
        RESULT,
        judge::CHECK,
        layers::SYNTHESISE,
        layers::ALONE,
        refine::AGAIN,
        repair::TESTS,
        FORM,
        LENGTH,
        DECEIVE,
    ];
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Invalid::within(1..=20, "experts", params.experts)?;
        Invalid::within(0..=20, "reviews", params.reviews)?;
        Ok(AgentVerse { params, rounds })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let mut state: State = context.restore()?.unwrap_or_default();
        while context.round() < self.rounds && !state.accepted {
            let advice = if self.params.feedback { state.advice.clone() } else { String::new() };
            let experts = self.recruited(context, &state.experts, &advice).await;
            state.changes += u32::from(context.round() > 0 && experts != state.experts);
            state.experts = experts;
            let before = state.held.clone().filter(|_| self.params.feedback);
            let decided = self.decided(context, &state.experts, before, &advice).await;
            // Without a decision the last one stays.
            state.held = decided.or(state.held);
            let Some(held) = &state.held else { break };
            let executed = executed(context, held).await;
            let judgement = evaluated(context, &state.experts, held, &executed).await;
            let judged = judgement.is_some();
            (state.accepted, state.advice) = judgement.unwrap_or_default();
            context.measure(ROUNDS, f64::from(context.round() + 1));
            context.measure(CHANGES, f64::from(state.changes));
            context.measure(ACCEPTED, f64::from(u8::from(state.accepted)));
            if !judged {
                // Without a judgement there is no basis for another round.
                break;
            }
            context.end_round(&state).await?;
        }
        Ok(verdict(state.held.map(|stand| stand.answer)))
    }
}

impl AgentVerse {
    /// The recruiter describes the experts for this round. Without a reply the last ones stay.
    async fn recruited(&self, context: &mut TeamContext<'_>, before: &[String], advice: &str) -> Vec<String> {
        let (by, n) = (context.cast("recruiter"), self.params.experts);
        let mut shown = Vec::new();
        if !advice.is_empty() {
            let values = [("experts", before.join("\n")), ("advice", advice.to_owned())];
            let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
            shown.push(Part::Text(context.filled(&LAST_GROUP, &values)));
        }
        let list = ResponseFormat::List { of: Box::new(ResponseFormat::Text), least: n, most: n };
        let format = ResponseFormat::Record(vec![("experts".into(), list)]);
        let order = context.filled(&RECRUIT, &[("n", &n.to_string())]);
        let experts = match context
            .ask(Brief::new(by, talk(context, by, &shown, &order), format).task(Task::Write))
            .await
        {
            Ok(value) => match value.field(0) {
                Some(Value::List(experts)) => experts.iter().filter_map(Value::as_text).map(str::to_owned).collect(),
                _ => before.to_vec(),
            },
            Err(why) => {
                context.record(by, NO_ANSWER, why.to_string());
                before.to_vec()
            }
        };
        for (n, expert) in experts.iter().enumerate() {
            context.record(member(context, n), EXPERT, expert);
        }
        experts
    }

    /// The experts come to a decision.
    async fn decided(
        &self,
        context: &mut TeamContext<'_>,
        experts: &[String],
        before: Option<Stand>,
        advice: &str,
    ) -> Option<Stand> {
        let n = self.params.experts as usize;
        let solver = member(context, 0);
        let advice: Vec<Part> = (!advice.is_empty())
            .then(|| Part::Text(context.filled(&ADVICE, &[("advice", advice)])))
            .into_iter()
            .collect();
        if self.params.discussion == Discussion::Horizontal {
            let mut said: Vec<Stand> = before.into_iter().collect();
            for place in 1..n {
                let shown: Vec<Part> = advice.iter().cloned().chain(said.iter().map(Stand::said)).collect();
                tell_all(context, member(context, place), &said);
                let brief = to_solve(context, member(context, place), &shown, WORK);
                let brief = as_expert(context, brief, experts, place);
                said.extend(solve_one(context, brief.sample(place as u32)).await);
            }
            tell_all(context, solver, &said);
            let shown: Vec<Part> = advice.into_iter().chain(said.iter().map(Stand::said)).collect();
            let brief = to_solve(context, solver, &shown, layers::instruction(&said));
            let brief = as_expert(context, brief, experts, 0);
            return solve_one(context, brief).await.or_else(|| said.pop());
        }
        let brief = match &before {
            Some(before) => {
                let words = advice
                    .iter()
                    .filter_map(|part| if let Part::Text(text) = part { Some(text.clone()) } else { None });
                let finding = Finding { by: "The evaluator".into(), right: false, words: words.collect() };
                refine::to_revise(context, solver, before, &finding)
            }
            None => to_solve(context, solver, &[], WORK),
        };
        let brief = as_expert(context, brief, experts, 0);
        let mut held = solve_one(context, brief).await.or(before)?;
        for _ in 0..self.params.reviews {
            let Some(finding) = reviewed(context, experts, n, &held).await else { break };
            let brief = refine::to_revise(context, solver, &held, &finding);
            let brief = as_expert(context, brief, experts, 0);
            held = solve_one(context, brief).await.unwrap_or(held);
        }
        Some(held)
    }
}

/// Returns the member that plays the expert at this place. Members without a role take turns.
fn member(context: &TeamContext<'_>, place: usize) -> usize {
    let workers = context.workers();
    workers.get(place % workers.len().max(1)).copied().unwrap_or(0)
}

/// Tells a member which expert it is.
fn as_expert(context: &TeamContext<'_>, mut brief: Brief, experts: &[String], place: usize) -> Brief {
    if let Some(expert) = experts.get(place) {
        brief
            .messages
            .insert(0, ChatMessage::text(Role::System, context.filled(&EXPERT_PERSONA, &[("expert", expert)])));
    }
    brief
}

/// The other experts review an answer. Returns their objections, if any.
async fn reviewed(context: &mut TeamContext<'_>, experts: &[String], n: usize, held: &Stand) -> Option<Finding> {
    let mut briefs = Vec::new();
    for place in 1..n {
        let reviewer = member(context, place);
        tell_all(context, reviewer, std::slice::from_ref(held));
        let brief = judge::to_check(context, reviewer, held, REVIEW).sample(place as u32);
        briefs.push(as_expert(context, brief, experts, place));
    }
    let heard = context.ask_all(briefs).await;
    let objections = heard.iter().enumerate().filter_map(|(n, heard)| {
        let (right, words) = judged(heard.as_ref().ok()?)?;
        (!right).then(|| format!("{}: {words}", experts.get(n + 1).map_or("A reviewer", String::as_str)))
    });
    let words: Vec<String> = objections.collect();
    (!words.is_empty()).then(|| Finding { by: "The group".into(), right: false, words: words.join("\n") })
}

/// Carries an answer out: a program runs with tests that the executor wrote without seeing it. Other answers have nothing to carry out.
async fn executed(context: &mut TeamContext<'_>, held: &Stand) -> String {
    if context.item.program.is_none() {
        return String::new();
    }
    let executor = context.cast("executor");
    let Some(tests) = repair::tests(context, executor).await else { return String::new() };
    repair::tried(context, executor, held, &tests).await.map_or_else(String::new, |finding| finding.words)
}

/// The evaluator says whether an answer is accepted, and what it advises; `None` without a judgement.
async fn evaluated(
    context: &mut TeamContext<'_>,
    experts: &[String],
    held: &Stand,
    executed: &str,
) -> Option<(bool, String)> {
    let by = context.cast("evaluator");
    tell_all(context, by, std::slice::from_ref(held));
    let mut order = vec![context.filled(&GROUP, &[("experts", &experts.join("\n"))])];
    if !executed.is_empty() {
        order.push(context.filled(&RESULT, &[("result", executed)]));
    }
    order.push(context.prompt(&EVALUATE).to_owned());
    let order = order.join("\n");
    judge::check(context, by, held, &order).await
}
