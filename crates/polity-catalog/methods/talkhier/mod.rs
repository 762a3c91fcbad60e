//! Structured messages in a hierarchy: a generator, a team of evaluators under its own supervisor, and a reviser. See README.md for the
//! source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::judge::{rating, to_rate};
use crate::team::line::{DOCUMENT, Document, NOT_ACCEPTED, document};
use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, refine, solve_one, tell_all, to_solve, verdict, write};
use polity_kernel::Invalid;
use polity_kernel::ask::Part;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Quantity, Records, Strategy, Structure, Taxonomy, TeamContext,
    Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<TalkHier>(files);
}

/// Parameters of TalkHier.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What the evaluators look at, one criterion each.
    criteria: Vec<String>,
    /// Accept an answer whose mean mark, 0 to 10, is at least this.
    accept: f64,
    /// Pass the background on in messages; otherwise that field is left out (an ablation).
    background: bool,
    /// Pass the intermediate output on in messages to evaluators; otherwise they see no answer (an ablation).
    intermediate: bool,
    /// Have the evaluators' feedback summarised by their supervisor; otherwise it is passed on as it is (an ablation).
    summarise: bool,
}

impl Default for Params {
    fn default() -> Self {
        let criteria = ["whether each step of the reasoning is right", "whether the answer follows from the reasoning"];
        Params {
            criteria: criteria.map(String::from).to_vec(),
            accept: 8.0,
            background: true,
            intermediate: true,
            summarise: true,
        }
    }
}

/// Supervisors, a generator, evaluators and a reviser.
pub struct TalkHier {
    params: Params,
    rounds: u32,
}

/// The written part of a message; the intermediate output goes with it as it is.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Message {
    content: String,
    background: String,
}

impl Document for Message {
    const TITLE: &'static str = "Message";
}

/// The state between rounds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    held: Option<Stand>,
    feedback: String,
    accepted: bool,
}

/// Indices of [`Method::QUANTITIES`].
const EVALUATIONS: u16 = 0;
const ACCEPTED: u16 = 1;
const MARK: u16 = 2;
/// Index of [`Method::RECORDS`].
const MESSAGE: u16 = 2;
const TO_GENERATOR: Prompt =
    Prompt::new("to-generator", "asks for a message to the generator", include_str!("prompts/to-generator.md"));
const TO_EVALUATORS: Prompt =
    Prompt::new("to-evaluators", "asks for a message to the evaluators", include_str!("prompts/to-evaluators.md"));
const TO_REVISER: Prompt =
    Prompt::new("to-reviser", "asks for a message to the reviser", include_str!("prompts/to-reviser.md"));
const GENERATE: Prompt = Prompt::new("generate", "tells the generator to answer", include_str!("prompts/generate.md"));
const EVALUATE: Prompt =
    Prompt::new("evaluate", "asks an evaluator for a mark by one criterion", include_str!("prompts/evaluate.md"))
        .must_hold(&["criterion"])
        .may_hold(&["low", "high"]);
const SUMMARISE: Prompt =
    Prompt::new("summarise", "asks for a summary of what the evaluators found", include_str!("prompts/summarise.md"));
const SCALE: (f64, f64) = (0.0, 10.0);

const TOLD: Prompt =
    Prompt::new("message", "shows a member a message", "A message to you from {{ from }}.\n\n{{ message }}")
        .must_hold(&["message"])
        .may_hold(&["from"]);
const CONTENT: Prompt =
    Prompt::new("content", "shows the content of a message", "Content:\n{{ content }}").must_hold(&["content"]);
const BACKGROUND: Prompt =
    Prompt::new("background", "shows the background of a message", "Background:\n{{ background }}")
        .must_hold(&["background"]);
const FOUND: Prompt = Prompt::new(
    "found",
    "shows their supervisor what the evaluators found",
    "What the evaluators found:\n{{ feedback }}",
)
.must_hold(&["feedback"]);
const FEEDBACK: Prompt =
    Prompt::new("feedback", "shows the supervisor the feedback", "The evaluators' feedback:\n{{ feedback }}")
        .must_hold(&["feedback"]);

impl Method for TalkHier {
    const NAME: &'static str = "talkhier";
    const SUMMARY: &'static str =
        "Structured messages in a hierarchy: a generator, a supervised team of evaluators, a reviser (TalkHier)";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "message", doc: "content and background of a message, under the member who gets it" },
    ];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "evaluations", doc: "number of answers that the evaluators marked" },
        Quantity { name: "accepted", doc: "1 if an answer was accepted, 0 if the rounds ended first" },
        Quantity { name: "mark", doc: "mean of the evaluators' marks for the last answer that they marked, 0 to 10" },
    ];
    const ROLES: &'static [&'static str] = &["supervisor", "generator", "evaluation supervisor", "reviser"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 2, rounds: 3 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Hierarchical,
        strategy: Strategy::Role,
        coordination: Coordination::Dynamic,
    });
    const PROMPTS: &'static [Prompt] = &[
        TO_GENERATOR,
        TO_EVALUATORS,
        TO_REVISER,
        GENERATE,
        EVALUATE,
        SUMMARISE,
        TOLD,
        CONTENT,
        BACKGROUND,
        FOUND,
        FEEDBACK,
        DOCUMENT,
        NOT_ACCEPTED,
        refine::AGAIN,
        FORM,
        LENGTH,
        DECEIVE,
    ];
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Invalid::within(1..=20, "criteria", params.criteria.len())?;
        Invalid::within(SCALE.0..=SCALE.1, "accept", params.accept)?;
        Ok(TalkHier { params, rounds })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let supervisor = context.cast("supervisor");
        let mut state: State = context.restore()?.unwrap_or_default();
        while context.round() < self.rounds && !state.accepted {
            let next = match state.held.take() {
                None => {
                    let generator = context.cast("generator");
                    let message = self.message(context, (supervisor, generator), &[], TO_GENERATOR).await?;
                    let brief = to_solve(context, generator, &message, GENERATE);
                    solve_one(context, brief).await
                }
                Some(held) => Some(self.revised(context, supervisor, held, &state.feedback).await?),
            };
            let Some(stand) = next else { return Ok(Verdict::default()) };
            let evaluation = self.evaluated(context, supervisor, &stand).await?;
            state.held = Some(stand);
            // Without a mark there is no basis for a revision.
            let Some((accepted, feedback)) = evaluation else { break };
            (state.accepted, state.feedback) = (accepted, feedback);
            context.measure(EVALUATIONS, f64::from(context.round() + 1));
            context.measure(ACCEPTED, f64::from(u8::from(state.accepted)));
            context.end_round(&state).await?;
        }
        Ok(verdict(state.held.map(|stand| stand.answer)))
    }
}

impl TalkHier {
    /// One member writes a message to another, of what it knows. Without a message the receiver has the question alone.
    async fn message(
        &self,
        context: &mut TeamContext<'_>,
        (from, to): (usize, usize),
        known: &[Part],
        instruction: Prompt,
    ) -> Result<Vec<Part>, Fault> {
        let Some(message) = document::<Message>(context, from, known, instruction).await? else {
            return Ok(Vec::new());
        };
        let mut fields = vec![context.filled(&CONTENT, &[("content", &message.content)])];
        if self.params.background {
            fields.push(context.filled(&BACKGROUND, &[("background", &message.background)]));
        }
        let text = fields.join("\n\n");
        context.record(to, MESSAGE, &text);
        context.tell(from, to, text.clone());
        let values = [("from", context.team[from].name.as_str()), ("message", text.as_str())];
        Ok(vec![Part::Text(context.filled(&TOLD, &values))])
    }

    /// Evaluators mark an answer under their supervisor. Returns whether it is accepted, and the feedback; `None` without a mark.
    async fn evaluated(
        &self,
        context: &mut TeamContext<'_>,
        supervisor: usize,
        stand: &Stand,
    ) -> Result<Option<(bool, String)>, Fault> {
        let (leader, members) = (context.cast("evaluation supervisor"), context.workers());
        let evaluator = |n: usize| members.get(n % members.len().max(1)).copied().unwrap_or(0);
        let order = self.message(context, (supervisor, leader), &[stand.said()], TO_EVALUATORS).await?;
        // The supervisor of the evaluators passes on what it was told, and the answer.
        let known: Vec<Part> = order.iter().cloned().chain([stand.said()]).collect();
        let shown = self.message(context, (leader, evaluator(0)), &known, TO_EVALUATORS).await?;
        let none = Stand { answer: String::new(), reasons: String::new(), ..stand.clone() };
        let output = if self.params.intermediate { stand } else { &none };
        let mut briefs = Vec::new();
        for (n, criterion) in self.params.criteria.iter().enumerate() {
            tell_all(context, evaluator(n), std::slice::from_ref(output));
            let brief = to_rate(context, evaluator(n), output, criterion, SCALE, (&shown, EVALUATE));
            briefs.push(brief.sample(n as u32));
        }
        let heard = context.ask_all(briefs).await;
        let (mut marks, mut words) = (Vec::new(), Vec::new());
        for (criterion, heard) in self.params.criteria.iter().zip(heard) {
            if let Some(rating) = heard.ok().as_ref().and_then(rating) {
                marks.push(rating.mark);
                words.push(format!("{criterion}: {} of {}. {}", rating.mark, SCALE.1, rating.why));
            }
        }
        if marks.is_empty() {
            return Ok(None);
        }
        let mean = marks.iter().sum::<f64>() / marks.len() as f64;
        context.measure(MARK, mean);
        let mut feedback = words.join("\n");
        if self.params.summarise {
            let parts = [stand.said(), Part::Text(context.filled(&FOUND, &[("feedback", &feedback)]))];
            feedback = write(context, leader, &parts, SUMMARISE).await.unwrap_or(feedback);
        }
        context.tell(leader, supervisor, feedback.clone());
        Ok(Some((mean >= self.params.accept, feedback)))
    }

    /// The reviser mends an answer by the feedback; without a reply it stays.
    async fn revised(
        &self,
        context: &mut TeamContext<'_>,
        supervisor: usize,
        held: Stand,
        feedback: &str,
    ) -> Result<Stand, Fault> {
        let reviser = context.cast("reviser");
        let known = [held.said(), Part::Text(context.filled(&FEEDBACK, &[("feedback", feedback)]))];
        let message = self.message(context, (supervisor, reviser), &known, TO_REVISER).await?;
        let words =
            message.iter().filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None });
        let words: Vec<&str> = words.chain([feedback]).collect();
        let by = context.team[supervisor].name.clone();
        let finding = refine::Finding { by, right: false, words: words.join("\n\n") };
        Ok(refine::revise(context, reviser, held, &finding).await)
    }
}
