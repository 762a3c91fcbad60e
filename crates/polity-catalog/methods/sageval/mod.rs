//! An evaluator scores a text by aspects without a reference, and a critic reviews and corrects its scores. See README.md for the source
//! and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::judge::{self, Rating};
use crate::team::{ANSWER, DECEIVE, NO_ANSWER, Stand, talk, tell_all, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::{Part, Reply, ResponseFormat};
use polity_kernel::method::{
    Brief, Coordination, DefaultTeam, Kind, Method, Prompt, Quantity, Records, Strategy, Structure, Taxonomy,
    TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<SageEval>(files);
}

/// What the critic does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Critic {
    /// It reads the evaluator's scores and reasons, and corrects them.
    #[default]
    Reviews,
    /// It is shown the scores of other aspects in place of those that it reviews (the placebo).
    Shuffled,
    /// It is shown no scores, and scores the text itself (another placebo).
    Blind,
    /// There is none; the evaluator's scores count (the baseline).
    None,
}

/// Parameters of SAGEval.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The aspects that are scored, each with its own question.
    aspects: Vec<String>,
    /// What the critic does.
    critic: Critic,
}

impl Default for Params {
    fn default() -> Self {
        let aspects = [
            "accuracy",
            "semantic diversity",
            "coherence",
            "relevance",
            "understandability for its audience",
            "engagement of its audience",
            "fairness",
            "tone",
        ];
        Params { aspects: aspects.map(String::from).to_vec(), critic: Critic::default() }
    }
}

/// An evaluator and its critic.
pub struct SageEval(Params);

/// Indices of [`Method::QUANTITIES`].
const FIRST: u16 = 0;
const FINAL: u16 = 1;
const FIRST_ERROR: u16 = 2;
const FINAL_ERROR: u16 = 3;
const CORRECTED: u16 = 4;
/// Index of [`Method::RECORDS`].
const SCORE: u16 = 2;
const EVALUATE: Prompt =
    Prompt::new("evaluate", "asks the evaluator for a score of one aspect", include_str!("prompts/evaluate.md"))
        .must_hold(&["aspect"]);
const REVIEW: Prompt = Prompt::new("review", "asks the critic to review a score", include_str!("prompts/review.md"))
    .must_hold(&["aspect"]);
const SCALE: (f64, f64) = (1.0, 5.0);

impl Method for SageEval {
    const NAME: &'static str = "sageval";
    const SUMMARY: &'static str =
        "An evaluator scores a text by aspects without a reference; a critic corrects its scores (SAGEval)";
    const RECORDS: &'static [Records] = &[
        Records { name: "answer", doc: "the mean of the member's scores, 1 to 5" },
        Records { name: "no-answer", doc: "why the member has no score for an aspect" },
        Records { name: "score", doc: "an aspect, and the member's score and reasons for it" },
    ];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "first-score", doc: "the evaluator's scores, their mean" },
        Quantity { name: "final-score", doc: "the scores after the critic, their mean" },
        Quantity { name: "first-error", doc: "distance of the evaluator's mean score from the item's known score" },
        Quantity { name: "final-error", doc: "distance of the final mean score from the item's known score" },
        Quantity { name: "corrected", doc: "share of the evaluator's scores that the critic changed" },
    ];
    const ROLES: &'static [&'static str] = &["critic"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Hierarchical,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[EVALUATE, REVIEW, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Invalid::within(1..=50, "aspects", params.aspects.len())?;
        Ok(SageEval(params))
    }

    fn unused_role(&self) -> Option<(&'static str, &'static str)> {
        (self.0.critic == Critic::None).then_some(("critic", "`critic: none` asks no critic"))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let evaluator = context.workers().first().copied().unwrap_or(0);
        let first = self.scored(context, evaluator, &[]).await;
        let Some(mean) = concluded(context, evaluator, &first) else { return Ok(Verdict::default()) };
        measure(context, (FIRST, FIRST_ERROR), mean);
        if self.0.critic == Critic::None {
            measure(context, (FINAL, FINAL_ERROR), mean);
            return Ok(verdict(Some(told(mean))));
        }
        let critic = context.cast("critic");
        let by = context.team[evaluator].name.clone();
        let stands: Vec<Option<Stand>> = first.iter().map(|rating| Some(stand(rating.as_ref()?, &by))).collect();
        let shown = match self.0.critic {
            Critic::Shuffled => rotated(&stands, &mut context.draws()),
            Critic::Blind => Vec::new(),
            _ => stands,
        };
        tell_all(context, critic, &shown.iter().flatten().cloned().collect::<Vec<_>>());
        let second = self.scored(context, critic, &shown).await;
        let both = first.iter().zip(&second).filter_map(|(first, second)| Some((first.as_ref()?, second.as_ref()?)));
        let changed = both.clone().filter(|(first, second)| first.mark != second.mark).count();
        context.measure_share(CORRECTED, changed, both.count());
        // Where the critic has no score the evaluator's stays.
        let last: Vec<Option<Rating>> = second.into_iter().zip(first).map(|(second, first)| second.or(first)).collect();
        let mean = concluded(context, critic, &last).unwrap_or(mean);
        measure(context, (FINAL, FINAL_ERROR), mean);
        Ok(verdict(Some(told(mean))))
    }
}

impl SageEval {
    /// Returns a member's scores for all aspects; with others' scores in view it reviews them.
    async fn scored(
        &self,
        context: &mut TeamContext<'_>,
        member: usize,
        shown: &[Option<Stand>],
    ) -> Vec<Option<Rating>> {
        let score = ResponseFormat::Number { low: SCALE.0, high: SCALE.1, whole: true };
        let format =
            || ResponseFormat::Record(vec![("reasons".into(), ResponseFormat::Text), ("answer".into(), score.clone())]);
        let brief = |(n, aspect): (usize, &String)| {
            let parts: Vec<Part> = shown.get(n).into_iter().flatten().map(Stand::said).collect();
            let order = context.filled(if parts.is_empty() { &EVALUATE } else { &REVIEW }, &[("aspect", aspect)]);
            Brief::new(member, talk(context, member, &parts, &order), format()).sample(n as u32)
        };
        let briefs = self.0.aspects.iter().enumerate().map(brief).collect();
        let heard = context.ask_all(briefs).await;
        self.0.aspects.iter().zip(heard).map(|(aspect, heard)| rating(context, member, aspect, heard)).collect()
    }
}

/// Reads and records a score.
fn rating(context: &mut TeamContext<'_>, member: usize, aspect: &str, heard: Reply) -> Option<Rating> {
    let unread = || String::from("the reply has no score and reasons");
    let read = heard.map_err(|why| why.to_string()).and_then(|value| judge::rating(&value).ok_or_else(unread));
    match read {
        Ok(rating) => {
            context.record(member, SCORE, format!("{aspect}: {}: {}", rating.mark, rating.why));
            Some(rating)
        }
        Err(why) => {
            context.record(member, NO_ANSWER, format!("{aspect}: {why}"));
            None
        }
    }
}

/// Returns a score as its author's answer.
fn stand(rating: &Rating, by: &str) -> Stand {
    Stand { by: by.to_owned(), answer: rating.mark.to_string(), reasons: rating.why.clone() }
}

/// Returns scores that stand at other aspects: all moved on by the same number of places, by lot.
fn rotated(stands: &[Option<Stand>], draws: &mut Draws) -> Vec<Option<Stand>> {
    let mut moved = stands.to_vec();
    if moved.len() > 1 {
        moved.rotate_left(1 + draws.below(stands.len() as u64 - 1) as usize);
    }
    moved
}

/// Returns the mean of a member's scores and records it; `None` without any.
fn concluded(context: &mut TeamContext<'_>, member: usize, ratings: &[Option<Rating>]) -> Option<f64> {
    let marks: Vec<f64> = ratings.iter().flatten().map(|rating| rating.mark).collect();
    let mean = (!marks.is_empty()).then(|| marks.iter().sum::<f64>() / marks.len() as f64)?;
    context.record(member, ANSWER, told(mean));
    Some(mean)
}

fn told(mean: f64) -> String {
    format!("{mean:.3}")
}

/// Measures a mean score, and its error if the item's score is known.
fn measure(context: &mut TeamContext<'_>, (score, error): (u16, u16), mean: f64) {
    context.measure(score, mean);
    if let Some(known) = context.item.gold.as_ref().and_then(|gold| gold.trim().parse::<f64>().ok()) {
        context.measure(error, (mean - known).abs());
    }
}
