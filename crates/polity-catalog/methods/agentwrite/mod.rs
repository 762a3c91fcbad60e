//! A long text from a plan of paragraphs with word counts, written one after another. See README.md for the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::line::{DOCUMENT, Document, NOT_ACCEPTED, document};
use crate::team::{ANSWER, ANSWERS, DECEIVE, Stand, judge, to_write, verdict, write, written};
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
use serde_json::json;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<AgentWrite>(files);
}

/// How the text is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// One paragraph after another, each with the plan and all that is written so far in view.
    #[default]
    Sequential,
    /// All paragraphs from the plan alone, none with what others wrote in view (the paper's `+Parallel`).
    Parallel,
    /// The whole text in one call, without a plan (the baseline).
    Whole,
}

/// Parameters of AgentWrite.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How the text is written.
    order: Order,
    /// Whether the judge marks every paragraph, too.
    judge_paragraphs: bool,
}

/// Plan, then paragraphs.
pub struct AgentWrite(Params);

/// A paragraph of the plan.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Paragraph {
    point: String,
    #[schemars(range(min = 200, max = 1000))]
    words: u32,
}

/// The plan of a text.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Plan {
    #[schemars(length(min = 1, max = 50))]
    paragraphs: Vec<Paragraph>,
}

impl Document for Plan {
    const TITLE: &'static str = "Plan";
}

/// Indices of [`Method::QUANTITIES`].
const WORDS: u16 = 0;
const PLANNED_WORDS: u16 = 1;
const PARAGRAPHS: u16 = 2;
const LENGTH_SCORE: u16 = 3;
const QUALITY: u16 = 4;
/// Indices of [`Method::RECORDS`].
const PLAN: u16 = 2;
const PARAGRAPH: u16 = 3;
const SCORES: u16 = 4;
const PLANNER: Prompt = Prompt::new("plan", "asks for the plan", include_str!("prompts/plan.md"));
const NEXT: Prompt =
    Prompt::new("paragraph", "asks for the next paragraph", include_str!("prompts/paragraph.md")).must_hold(&["step"]);
const WHOLE: Prompt = Prompt::new("whole", "asks for the whole text at once", include_str!("prompts/whole.md"));
/// The dimensions of quality, in the order of LongBench-Write.
const CRITERIA: [&str; 6] =
    ["relevance", "accuracy", "coherence", "clarity", "breadth and depth", "reading experience"];
const MARKS: (f64, f64) = (1.0, 5.0);

const SHOWN_PLAN: Prompt =
    Prompt::new("shown-plan", "shows the writer the plan", "The plan:\n{{ plan }}").must_hold(&["plan"]);
const SO_FAR: Prompt =
    Prompt::new("so-far", "shows the writer what is written", "Written so far:\n{{ text }}").must_hold(&["text"]);
const STEP: Prompt = Prompt::new(
    "step",
    "describes a paragraph of the plan; it is put for `{{ step }}` in `paragraph`",
    "Paragraph {{ n }}: {{ point }} ({{ words }} words)",
)
.must_hold(&["point"])
.may_hold(&["n", "words"]);

impl Method for AgentWrite {
    const NAME: &'static str = "agentwrite";
    const SUMMARY: &'static str = "A long text is planned into paragraphs with word counts and written one after another (LongWriter's AgentWrite)";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "plan", doc: "the plan, a paragraph a line" },
        Records { name: "paragraph", doc: "a paragraph as it was written" },
        Records { name: "paragraph-scores", doc: "planned and written words of a paragraph and its scores, as JSON" },
    ];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "words", doc: "words of the finished text" },
        Quantity { name: "planned-words", doc: "words that the plan asks for" },
        Quantity { name: "paragraphs", doc: "paragraphs of the plan" },
        Quantity {
            name: "length-score",
            doc: "how near the paragraphs come to their planned lengths, 0 to 100, the mean over paragraphs",
        },
        Quantity {
            name: "quality",
            doc: "the judge's marks in six dimensions, 0 to 100, their mean; only with a member of the role `judge`",
        },
    ];
    const ROLES: &'static [&'static str] = &["planner", "judge"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Role,
        coordination: Coordination::Dynamic,
    });
    const PROMPTS: &'static [Prompt] =
        &[PLANNER, NEXT, WHOLE, SHOWN_PLAN, SO_FAR, STEP, DOCUMENT, NOT_ACCEPTED, judge::RATE, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(AgentWrite(params))
    }

    fn unused_role(&self) -> Option<(&'static str, &'static str)> {
        (self.0.order == Order::Whole).then_some(("planner", "`order: whole` has no plan"))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let writer = context.workers().first().copied().unwrap_or(0);
        let written = match self.0.order {
            Order::Whole => write(context, writer, &[], WHOLE).await,
            Order::Sequential | Order::Parallel => self.written(context, writer).await?,
        };
        let Some(text) = written else { return Ok(Verdict::default()) };
        context.measure(WORDS, words(&text) as f64);
        context.record(writer, ANSWER, &text);
        if let Some(judge) = judge_of(context)
            && let Some(quality) = quality(context, judge, writer, &text).await
        {
            context.measure(QUALITY, quality);
        }
        Ok(verdict(Some(text)))
    }
}

/// The member that marks texts.
fn judge_of(context: &TeamContext<'_>) -> Option<usize> {
    context.team.iter().position(|member| member.role.as_deref() == Some("judge"))
}

/// Asks a judge for marks in all dimensions. Returns their mean on a scale of 0 to 100; `None` without a mark.
async fn quality(context: &mut TeamContext<'_>, judge: usize, writer: usize, text: &str) -> Option<f64> {
    let stand = Stand { by: context.team[writer].name.clone(), answer: text.to_owned(), reasons: String::new() };
    let ratings = judge::rated(context, judge, &stand, &CRITERIA, MARKS).await;
    let marks: Vec<f64> = ratings.into_iter().flatten().map(|rating| rating.mark).collect();
    let mean = marks.iter().sum::<f64>() / marks.len() as f64;
    (!marks.is_empty()).then(|| 100.0 * (mean - MARKS.0) / (MARKS.1 - MARKS.0))
}

impl AgentWrite {
    /// Plans the text and writes its paragraphs. `None`: there is no plan, or a paragraph is missing.
    async fn written(&self, context: &mut TeamContext<'_>, writer: usize) -> Result<Option<String>, Fault> {
        let planner = context.cast("planner");
        let Some(plan) = document::<Plan>(context, planner, &[], PLANNER).await? else { return Ok(None) };
        let steps: Vec<String> = plan.paragraphs.iter().enumerate().map(|(n, step)| step.line(context, n)).collect();
        let lines = steps.join("\n");
        context.record(planner, PLAN, &lines);
        context.measure(PLANNED_WORDS, plan.paragraphs.iter().map(|step| f64::from(step.words)).sum());
        context.measure(PARAGRAPHS, steps.len() as f64);
        let plan_shown = Part::Text(context.filled(&SHOWN_PLAN, &[("plan", &lines)]));
        let orders: Vec<String> = steps.iter().map(|step| context.filled(&NEXT, &[("step", step)])).collect();
        let texts = match self.0.order {
            Order::Parallel => {
                let shown = [plan_shown];
                let brief = |order| to_write(context, writer, &shown, order);
                let briefs = orders.iter().map(brief).collect();
                written(context, briefs, |value| value.as_text()).await
            }
            Order::Sequential | Order::Whole => {
                let mut texts: Vec<String> = Vec::new();
                for order in &orders {
                    let mut shown = vec![plan_shown.clone()];
                    if !texts.is_empty() {
                        shown.push(Part::Text(context.filled(&SO_FAR, &[("text", &texts.join("\n\n"))])));
                    }
                    let Some(text) = write(context, writer, &shown, order).await else { break };
                    texts.push(text.trim().to_owned());
                }
                texts
            }
        };
        texts.iter().for_each(|text| context.record(writer, PARAGRAPH, text));
        if texts.len() < steps.len() {
            return Ok(None);
        }
        let judge = judge_of(context).filter(|_| self.0.judge_paragraphs);
        let mut sum = 0.0;
        for (n, (text, paragraph)) in texts.iter().zip(&plan.paragraphs).enumerate() {
            let found = words(text);
            let score = length_score(f64::from(paragraph.words), found as f64);
            sum += score;
            let mut scores =
                json!({"paragraph": n + 1, "planned-words": paragraph.words, "words": found, "length-score": score});
            if let Some(judge) = judge {
                scores["quality"] = json!(quality(context, judge, writer, text).await);
            }
            context.record(writer, SCORES, scores.to_string());
        }
        context.measure(LENGTH_SCORE, sum / steps.len() as f64);
        Ok(Some(texts.join("\n\n")))
    }
}

impl Paragraph {
    /// Returns the paragraph as a line of the plan.
    fn line(&self, context: &TeamContext<'_>, n: usize) -> String {
        let (n, words) = ((n + 1).to_string(), self.words.to_string());
        context.filled(&STEP, &[("n", &n), ("point", self.point.trim()), ("words", &words)])
    }
}

/// Returns the number of words of a text. A character of a script without spaces is a word.
fn words(text: &str) -> usize {
    let unspaced = |c: &char| matches!(*c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}');
    let spaced =
        text.split(|c: char| c.is_whitespace() || unspaced(&c)).filter(|word| word.contains(char::is_alphanumeric));
    spaced.count() + text.chars().filter(unspaced).count()
}

/// Returns LongBench-Write's score of a length, 0 to 100: 0 from four times the wanted length on, and down to a third of it.
fn length_score(wanted: f64, found: f64) -> f64 {
    let off = match found > wanted {
        true => (found / wanted - 1.0) / 3.0,
        false if found > 0.0 => (wanted / found - 1.0) / 2.0,
        false => 1.0,
    };
    100.0 * (1.0 - off).max(0.0)
}
