//! Judges of pairs of answers: alone, by marks, as a jury, in a debate, with a critic. See README.md for the sources and what is reproduced.

use crate::team::{DECEIVE, NO_ANSWER, Stand, talk, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::{ChatMessage, Part, Reply, ResponseFormat, Role, Task, Value};
use polity_kernel::method::{
    Brief, Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext,
    Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Judge>(files);
}

/// How a verdict is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The first member names the better answer.
    #[default]
    Pairwise,
    /// The first member marks each answer by itself, by the rubric; the higher mark wins.
    Rubric,
    /// All members name the better answer; the majority wins.
    Jury,
    /// The same over several rounds, in which each reads the others' verdicts.
    Debate,
    /// A member marks the answers, a critic reviews the marks and marks again; the higher sum wins.
    Critic,
}

/// Parameters of judges.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How the verdict is reached.
    way: Way,
    /// Ask each judge in both orders; a judge whose choice depends on the order has no verdict.
    both_orders: bool,
    /// Criteria for marks.
    rubric: Vec<String>,
}

impl Default for Params {
    fn default() -> Self {
        let rubric = ["correctness", "completeness", "clarity"].map(String::from).to_vec();
        Params { way: Way::Pairwise, both_orders: false, rubric }
    }
}

/// Judges of pairs.
pub struct Judge {
    params: Params,
    rounds: u32,
}

/// A judge's verdict: the index of the better answer, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Opinion {
    better: usize,
    why: String,
}

/// Indices of [`Method::RECORDS`].
const VERDICT: u16 = 0;
const GIVEN_ORDER: u16 = 2;
const SWAPPED_ORDER: u16 = 3;
const BETTER: Prompt =
    Prompt::new("better", "asks a judge for the better of two answers", include_str!("prompts/better.md"));
const RUBRIC: Prompt =
    Prompt::new("rubric", "asks for a mark by criteria", include_str!("prompts/rubric.md")).may_hold(&["rubric"]);
const OTHERS: Prompt = Prompt::new("others", "shows a judge the verdicts of others", include_str!("prompts/others.md"))
    .must_hold(&["verdicts"]);
const CRITIC: Prompt =
    Prompt::new("critic", "asks the critic for its own mark", include_str!("prompts/critic.md")).may_hold(&["rubric"]);
const NAMES: [&str; 2] = ["A", "B"];
const MARKS: (f64, f64) = (1.0, 10.0);

const MARKED: Prompt = Prompt::new(
    "marked",
    "shows the critic the marks of the evaluator",
    "An evaluator has given A {{ a }} and B {{ b }} of {{ most }}.",
)
.must_hold(&["a", "b"])
.may_hold(&["most"]);

impl Method for Judge {
    const NAME: &'static str = "judge";
    const SUMMARY: &'static str = "Judges of pairs of answers: pairwise, rubric, jury, debate, critic of the judge";
    const RECORDS: &'static [Records] = &[
        Records { name: "verdict", doc: "the letter of the answer that the judge finds better" },
        Records { name: "no-answer", doc: "why the judge has no verdict" },
        Records {
            name: "given-order",
            doc: "asked in both orders: the letter that the judge names when A is shown first",
        },
        Records { name: "swapped-order", doc: "asked in both orders: the letter that it names when B is shown first" },
    ];
    const ROLES: &'static [&'static str] = &["critic"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 3, rounds: 2 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Decentralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[BETTER, RUBRIC, OTHERS, CRITIC, MARKED, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        match params.rubric.len() {
            1..=20 => Ok(Judge { params, rounds }),
            n => Err(Invalid { key: "rubric".into(), message: format!("needs 1 to 20 criteria, has {n}") }),
        }
    }

    fn suits(item: &polity_kernel::items::Item) -> Result<(), &'static str> {
        if item.pair { Ok(()) } else { Err("it compares pairs of answers and needs items of the shape `preference`") }
    }

    fn unused_role(&self) -> Option<(&'static str, &'static str)> {
        (self.params.way != Way::Critic).then_some(("critic", "a critic is asked with `way: critic` alone"))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let members = context.workers();
        let first = members.first().copied().unwrap_or(0);
        let better = match self.params.way {
            Way::Pairwise => self.opinions(context, &[first], &[]).await.pop().flatten().map(|opinion| opinion.better),
            Way::Jury => most(&self.opinions(context, &members, &[]).await),
            Way::Debate => {
                let mut held: Vec<Option<Opinion>> = context.restore()?.unwrap_or_default();
                while context.round() < self.rounds {
                    let new = self.opinions(context, &members, &held).await;
                    held.resize(members.len(), None);
                    held = new.into_iter().zip(held).map(|(new, old)| new.or(old)).collect();
                    context.end_round(&held).await?;
                }
                most(&held)
            }
            Way::Rubric => higher(&self.marks(context, first, RUBRIC, &[]).await),
            Way::Critic => {
                let marks = self.marks(context, first, RUBRIC, &[]).await;
                let critic = context.cast("critic");
                let [a, b] = marks.map(|mark| mark.to_string());
                let words = context.filled(&MARKED, &[("a", &a), ("b", &b), ("most", &MARKS.1.to_string())]);
                let again = self.marks(context, critic, CRITIC, &[Part::Text(words)]).await;
                higher(&[marks[0] + again[0], marks[1] + again[1]])
            }
        };
        if let (Way::Rubric | Way::Critic, Some(better)) = (self.params.way, better) {
            context.record(first, VERDICT, NAMES[better]);
        }
        Ok(verdict(better.map(|better| NAMES[better].to_owned())))
    }
}

impl Judge {
    /// Returns the members' opinions on the better answer; if there are earlier verdicts, each reads the others'.
    async fn opinions(
        &self,
        context: &mut TeamContext<'_>,
        members: &[usize],
        held: &[Option<Opinion>],
    ) -> Vec<Option<Opinion>> {
        let orders: &[[usize; 2]] = if self.params.both_orders { &[[0, 1], [1, 0]] } else { &[[0, 1]] };
        let mut briefs = Vec::new();
        for (place, member) in members.iter().enumerate() {
            for (n, order) in orders.iter().enumerate() {
                briefs.push(brief(context, *member, place, *order, held).sample(n as u32));
            }
        }
        let heard = context.ask_all(briefs).await;
        let mut opinions = Vec::new();
        for (member, heard) in members.iter().zip(heard.chunks(orders.len())) {
            let read: Vec<Option<Opinion>> = heard.iter().map(|heard| opinion(context, *member, heard)).collect();
            if let [Some(given), Some(swapped)] = &read[..] {
                context.record(*member, GIVEN_ORDER, NAMES[given.better]);
                context.record(*member, SWAPPED_ORDER, NAMES[swapped.better]);
            }
            let agreed = read.iter().flatten().map(|opinion| opinion.better).collect::<Vec<_>>();
            let stands = agreed.len() == orders.len() && agreed.iter().all(|better| *better == agreed[0]);
            match (stands, read.into_iter().next().flatten()) {
                (true, Some(opinion)) => {
                    context.record(*member, VERDICT, NAMES[opinion.better]);
                    opinions.push(Some(opinion));
                }
                (_, found) => {
                    if found.is_some() {
                        context.record(*member, NO_ANSWER, "the verdict changes with the order of the answers");
                    }
                    opinions.push(None);
                }
            }
        }
        opinions
    }

    /// Returns a member's marks for both answers, each by itself; a missing mark counts as 0.
    async fn marks(
        &self,
        context: &mut TeamContext<'_>,
        member: usize,
        instruction: Prompt,
        shown: &[Part],
    ) -> [f64; 2] {
        let rubric = self.params.rubric.join(", ");
        let instruction = context.filled(&instruction, &[("rubric", &rubric)]);
        let mut briefs = Vec::new();
        for (i, stand) in pair(context).into_iter().enumerate() {
            let mut parts = shown.to_vec();
            parts.push(stand.said());
            let mark = ResponseFormat::Number { low: MARKS.0, high: MARKS.1, whole: false };
            let response_format =
                ResponseFormat::Record(vec![("reasons".into(), ResponseFormat::Text), ("answer".into(), mark)]);
            briefs.push(
                Brief::new(member, talk(context, member, &parts, &instruction), response_format)
                    .task(Task::Rate)
                    .sample(i as u32),
            );
        }
        let heard = context.ask_all(briefs).await;
        let mark = |heard: Option<&Reply>| match heard {
            Some(Ok(value)) => match value.field(1) {
                Some(Value::Number(mark)) => *mark,
                _ => 0.0,
            },
            _ => 0.0,
        };
        [mark(heard.first()), mark(heard.get(1))]
    }
}

/// Returns both answers, under their letters.
fn pair(context: &TeamContext<'_>) -> [Stand; 2] {
    let stand = |i: usize| Stand {
        by: NAMES[i].into(),
        answer: context.item.options.get(i).cloned().unwrap_or_default(),
        reasons: String::new(),
    };
    [stand(0), stand(1)]
}

fn brief(context: &TeamContext<'_>, member: usize, place: usize, order: [usize; 2], held: &[Option<Opinion>]) -> Brief {
    let stands = pair(context);
    let shown: Vec<Part> = order.iter().map(|i| stands[*i].said()).collect();
    let options = NAMES.map(String::from).to_vec();
    let response_format = ResponseFormat::Record(vec![
        ("reasons".into(), ResponseFormat::Text),
        ("answer".into(), ResponseFormat::Choice(options)),
    ]);
    let mut messages = talk(context, member, &shown, BETTER);
    let others: Vec<String> = held
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != place)
        .filter_map(|(_, opinion)| opinion.as_ref())
        .map(|opinion| format!("{}: {}", NAMES[opinion.better], opinion.why))
        .collect();
    if !others.is_empty() {
        messages.push(ChatMessage::text(Role::User, context.filled(&OTHERS, &[("verdicts", &others.join("\n"))])));
    }
    Brief::new(member, messages, response_format).task(Task::Choose)
}

fn opinion(context: &mut TeamContext<'_>, member: usize, heard: &Reply) -> Option<Opinion> {
    match heard {
        Ok(value) => match (value.field(1), value.field(0).and_then(Value::as_text)) {
            (Some(Value::Choice(i)), Some(why)) if *i < 2 => Some(Opinion { better: *i as usize, why: why.to_owned() }),
            _ => None,
        },
        Err(why) => {
            context.record(member, NO_ANSWER, why.to_string());
            None
        }
    }
}

/// Returns the majority's choice; ties go to the answer shown first. `None`: nobody has a verdict.
fn most(opinions: &[Option<Opinion>]) -> Option<usize> {
    let votes = |i: usize| opinions.iter().flatten().filter(|opinion| opinion.better == i).count();
    (votes(0) + votes(1) > 0).then(|| usize::from(votes(1) > votes(0)))
}

/// Returns the answer with the higher mark; equal marks decide nothing.
fn higher(marks: &[f64; 2]) -> Option<usize> {
    (marks[0] != marks[1]).then(|| usize::from(marks[1] > marks[0]))
}
