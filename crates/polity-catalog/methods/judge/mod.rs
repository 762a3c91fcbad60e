//! Judges of pairs of answers: alone, by marks, as a jury, in a debate, with a critic. See README.md for the sources and what is reproduced.

use crate::team::{NO_ANSWER, Stand, talk, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::{Heard, Message, Part, Role, Task, Value, Want};
use polity_kernel::method::{
    Brief, Coordination, Desk, Form, Kind, Method, Records, Strategy, Structure, Usual, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Judge>(files);
}

/// How a verdict comes about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The first member names the better answer.
    #[default]
    Pairwise,
    /// The first member marks each answer by itself, by the rubric; the higher mark wins.
    Rubric,
    /// All members name the better answer; most win.
    Jury,
    /// The same, over rounds in which each reads the others' verdicts.
    Debate,
    /// A member marks the answers, a critic looks at the marks and marks anew; the higher sum wins.
    Critic,
}

/// Parameters of judges.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How the verdict comes about.
    way: Way,
    /// Whether each judge is asked in both orders; one who changes with the order has no verdict.
    both_orders: bool,
    /// What answers are marked by.
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
const BETTER: &str = include_str!("prompts/better.md");
const RUBRIC: &str = include_str!("prompts/rubric.md");
const OTHERS: &str = include_str!("prompts/others.md");
const CRITIC: &str = include_str!("prompts/critic.md");
const NAMES: [&str; 2] = ["A", "B"];
const MARKS: (f64, f64) = (1.0, 10.0);

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
    const USUAL: Usual = Usual { members: 3, rounds: 2 };
    const FORM: Option<Form> = Some(Form {
        kind: Kind::Cooperation,
        structure: Structure::Decentralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        match params.rubric.len() {
            1..=20 => Ok(Judge { params, rounds }),
            n => Err(Invalid { key: "rubric".into(), message: format!("has 1 to 20 criteria, not {n}") }),
        }
    }

    fn suits(item: &polity_kernel::items::Item) -> Result<(), &'static str> {
        if item.pair { Ok(()) } else { Err("judges compare pairs of answers, items of the shape `preference`") }
    }

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        let members = desk.workers();
        let first = members.first().copied().unwrap_or(0);
        let better = match self.params.way {
            Way::Pairwise => self.opinions(desk, &[first], &[]).await.pop().flatten().map(|opinion| opinion.better),
            Way::Jury => most(&self.opinions(desk, &members, &[]).await),
            Way::Debate => {
                let mut held: Vec<Option<Opinion>> = desk.restore()?.unwrap_or_default();
                while desk.round() < self.rounds {
                    let new = self.opinions(desk, &members, &held).await;
                    held.resize(members.len(), None);
                    held = new.into_iter().zip(held).map(|(new, old)| new.or(old)).collect();
                    desk.end_round(&held).await?;
                }
                most(&held)
            }
            Way::Rubric => higher(&self.marks(desk, first, RUBRIC, &[]).await),
            Way::Critic => {
                let marks = self.marks(desk, first, RUBRIC, &[]).await;
                let critic = desk.cast("critic");
                let words = format!("An evaluator has given A {} and B {} of {}.", marks[0], marks[1], MARKS.1);
                let again = self.marks(desk, critic, CRITIC, &[Part::Text(words)]).await;
                higher(&[marks[0] + again[0], marks[1] + again[1]])
            }
        };
        if let (Way::Rubric | Way::Critic, Some(better)) = (self.params.way, better) {
            desk.record(first, VERDICT, NAMES[better]);
        }
        Ok(verdict(better.map(|better| NAMES[better].to_owned())))
    }
}

impl Judge {
    /// What members find better, one after the other's first verdicts if there are some.
    async fn opinions(&self, desk: &mut Desk<'_>, members: &[usize], held: &[Option<Opinion>]) -> Vec<Option<Opinion>> {
        let orders: &[[usize; 2]] = if self.params.both_orders { &[[0, 1], [1, 0]] } else { &[[0, 1]] };
        let mut briefs = Vec::new();
        for (place, member) in members.iter().enumerate() {
            for (n, order) in orders.iter().enumerate() {
                briefs.push(brief(desk, *member, place, *order, held).sample(n as u32));
            }
        }
        let heard = desk.ask_all(briefs).await;
        let mut opinions = Vec::new();
        for (member, heard) in members.iter().zip(heard.chunks(orders.len())) {
            let read: Vec<Option<Opinion>> = heard.iter().map(|heard| opinion(desk, *member, heard)).collect();
            if let [Some(given), Some(swapped)] = &read[..] {
                desk.record(*member, GIVEN_ORDER, NAMES[given.better]);
                desk.record(*member, SWAPPED_ORDER, NAMES[swapped.better]);
            }
            let agreed = read.iter().flatten().map(|opinion| opinion.better).collect::<Vec<_>>();
            let stands = agreed.len() == orders.len() && agreed.iter().all(|better| *better == agreed[0]);
            match (stands, read.into_iter().next().flatten()) {
                (true, Some(opinion)) => {
                    desk.record(*member, VERDICT, NAMES[opinion.better]);
                    opinions.push(Some(opinion));
                }
                (_, found) => {
                    if found.is_some() {
                        desk.record(*member, NO_ANSWER, "the verdict changes with the order of the answers");
                    }
                    opinions.push(None);
                }
            }
        }
        opinions
    }

    /// A member's marks for both answers, each by itself; one without a mark has none of the scale.
    async fn marks(&self, desk: &mut Desk<'_>, member: usize, instruction: &str, shown: &[Part]) -> [f64; 2] {
        let rubric = self.params.rubric.join(", ");
        let instruction = instruction.trim_end().replace("RUBRIC", &rubric);
        let mut briefs = Vec::new();
        for (i, stand) in pair(desk).into_iter().enumerate() {
            let mut parts = shown.to_vec();
            parts.push(stand.said());
            let mark = Want::Number { low: MARKS.0, high: MARKS.1, whole: false };
            let want = Want::Record(vec![("reasons".into(), Want::Text), ("answer".into(), mark)]);
            briefs.push(
                Brief::new(member, talk(desk, member, &parts, &instruction), want).task(Task::Rate).sample(i as u32),
            );
        }
        let heard = desk.ask_all(briefs).await;
        let mark = |heard: Option<&Heard>| match heard {
            Some(Ok(value)) => match value.field(1) {
                Some(Value::Number(mark)) => *mark,
                _ => 0.0,
            },
            _ => 0.0,
        };
        [mark(heard.first()), mark(heard.get(1))]
    }
}

/// Both answers, under their letters.
fn pair(desk: &Desk<'_>) -> [Stand; 2] {
    let stand = |i: usize| Stand {
        by: NAMES[i].into(),
        answer: desk.item.options.get(i).cloned().unwrap_or_default(),
        reasons: String::new(),
    };
    [stand(0), stand(1)]
}

fn brief(desk: &Desk<'_>, member: usize, place: usize, order: [usize; 2], held: &[Option<Opinion>]) -> Brief {
    let stands = pair(desk);
    let shown: Vec<Part> = order.iter().map(|i| stands[*i].said()).collect();
    let options = NAMES.map(String::from).to_vec();
    let want = Want::Record(vec![("reasons".into(), Want::Text), ("answer".into(), Want::Choice(options))]);
    let mut messages = talk(desk, member, &shown, BETTER);
    let others: Vec<String> = held
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != place)
        .filter_map(|(_, opinion)| opinion.as_ref())
        .map(|opinion| format!("{}: {}", NAMES[opinion.better], opinion.why))
        .collect();
    if !others.is_empty() {
        messages.push(Message::text(Role::User, format!("{}\n{}", OTHERS.trim_end(), others.join("\n"))));
    }
    Brief::new(member, messages, want).task(Task::Choose)
}

fn opinion(desk: &mut Desk<'_>, member: usize, heard: &Heard) -> Option<Opinion> {
    match heard {
        Ok(value) => match (value.field(1), value.field(0).and_then(Value::as_text)) {
            (Some(Value::Choice(i)), Some(why)) if *i < 2 => Some(Opinion { better: *i as usize, why: why.to_owned() }),
            _ => None,
        },
        Err(why) => {
            desk.record(member, NO_ANSWER, why.to_string());
            None
        }
    }
}

/// What most find; of equally many the answer shown first. `None`: nobody has a verdict.
fn most(opinions: &[Option<Opinion>]) -> Option<usize> {
    let votes = |i: usize| opinions.iter().flatten().filter(|opinion| opinion.better == i).count();
    (votes(0) + votes(1) > 0).then(|| usize::from(votes(1) > votes(0)))
}

/// The higher mark; equal ones decide nothing.
fn higher(marks: &[f64; 2]) -> Option<usize> {
    (marks[0] != marks[1]).then(|| usize::from(marks[1] > marks[0]))
}
