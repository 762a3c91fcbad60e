//! A network of members over rounds: weak members are dropped, agreement ends the work, and importance is propagated back. See README.md
//! for the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, form, judge, stand, talk, verdict, vote};
use polity_kernel::Invalid;
use polity_kernel::ask::{Part, ResponseFormat, Value};
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
    registry.method::<Dylan>(files);
}

/// Parameters of DyLAN.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Number of members kept from the third round on, chosen by a ranker; by default, all.
    keep: Option<u32>,
    /// Stop when more than two thirds have the same answer.
    stop_early: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { keep: Some(2), stop_early: true }
    }
}

/// A network of members over rounds.
pub struct Dylan {
    params: Params,
    rounds: u32,
}

/// A member's work of one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Node {
    member: usize,
    stand: Stand,
    /// Its marks for members of the previous round: (index among them, share of 1).
    edges: Vec<(usize, f64)>,
}

/// Index of [`Method::RECORDS`].
const IMPORTANCE: u16 = 2;
const STEPS: Prompt =
    Prompt::new("steps", "tells a member to work the question out step by step", include_str!("prompts/steps.md"));
const WEIGH: Prompt = Prompt::new(
    "weigh",
    "tells a member to mark the answers of others and to answer again",
    include_str!("prompts/weigh.md"),
);

impl Method for Dylan {
    const NAME: &'static str = "dylan";
    const SUMMARY: &'static str = "A network over rounds: marks for the previous round, weak members dropped, early consensus, importance scores (DyLAN)";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "importance", doc: "the member's importance for the answer, summed over rounds" },
    ];
    const ROLES: &'static [&'static str] = &["ranker"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 4, rounds: 3 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Decentralised,
        strategy: Strategy::Role,
        coordination: Coordination::Dynamic,
    });
    const PROMPTS: &'static [Prompt] = &[STEPS, WEIGH, judge::MARK, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, members: usize, rounds: u32) -> Result<Self, Invalid> {
        match params.keep {
            Some(k) if k == 0 || k as usize > members => {
                Err(Invalid { key: "keep".into(), message: format!("1 to {members} members can be kept, not {k}") })
            }
            _ => Ok(Dylan { params, rounds }),
        }
    }

    fn unused_role(&self) -> Option<(&'static str, &'static str)> {
        self.params.keep.is_none().then_some(("ranker", "a ranker is asked if `keep` is set"))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let members = context.workers();
        let mut layers: Vec<Vec<Node>> = context.restore()?.unwrap_or_default();
        while context.round() < self.rounds {
            let before: Vec<Stand> = layers.last().into_iter().flatten().map(|node| node.stand.clone()).collect();
            let active = self.active(context, &members, &layers).await;
            let mut layer: Vec<Node> = Vec::new();
            for member in shuffled(context, &active) {
                layer.extend(node(context, member, &before).await);
                if let Some(answer) = self.consensus(context, &layer, active.len()) {
                    layers.push(layer);
                    record_importance(context, &layers, &answer);
                    return Ok(verdict(Some(answer)));
                }
            }
            layers.push(layer);
            context.end_round(&layers).await?;
        }
        let last: Vec<Option<Stand>> =
            layers.last().into_iter().flatten().map(|node| Some(node.stand.clone())).collect();
        let answer = vote::plurality(context.item, &last);
        if let Some(answer) = &answer {
            record_importance(context, &layers, answer);
        }
        Ok(verdict(answer))
    }
}

impl Dylan {
    /// Returns the members that work in this round: all in the first two, then those a ranker finds best. Who was dropped stays out.
    async fn active(&self, context: &mut TeamContext<'_>, members: &[usize], layers: &[Vec<Node>]) -> Vec<usize> {
        let (Some(last), Some(keep)) = (layers.last().filter(|_| context.round() >= 2), self.params.keep) else {
            return members.to_vec();
        };
        if last.len() <= 3 {
            return kept_before(members, layers);
        }
        let stands: Vec<Stand> = last.iter().map(|node| node.stand.clone()).collect();
        let ranker = context.cast("ranker");
        let Some(marks) = judge::marks(context, ranker, &stands, 1.0, 5.0).await else { return members.to_vec() };
        let mut order: Vec<usize> = (0..last.len()).collect();
        order.sort_by(|a, b| marks[*b].total_cmp(&marks[*a]));
        order.into_iter().take(keep as usize).map(|i| last[i].member).collect()
    }

    /// Returns the answer that more than two thirds of this round's members have already given.
    fn consensus(&self, context: &TeamContext<'_>, layer: &[Node], active: usize) -> Option<String> {
        let stands: Vec<Option<Stand>> = layer.iter().map(|node| Some(node.stand.clone())).collect();
        let enough = active * 2 / 3;
        let camps = vote::camps(context.item, &stands);
        let found = camps.into_iter().find(|(_, size)| *size > enough).map(|(answer, _)| answer.to_owned());
        found.filter(|_| self.params.stop_early)
    }
}

/// Returns the members that have answered since the ranker last chose; all, if it never did.
fn kept_before(members: &[usize], layers: &[Vec<Node>]) -> Vec<usize> {
    // The ranker reads the second and later rounds that have more than three answers.
    let ranked = (1..layers.len() - 1).rfind(|round| layers[*round].len() > 3);
    let since = ranked.map_or(&[][..], |round| &layers[round + 1..]);
    let kept: Vec<usize> =
        members.iter().copied().filter(|member| since.iter().flatten().any(|node| node.member == *member)).collect();
    if kept.is_empty() { members.to_vec() } else { kept }
}

/// A member answers after reading the previous round, and marks it.
async fn node(context: &mut TeamContext<'_>, member: usize, before: &[Stand]) -> Option<Node> {
    let mut fields = vec![("reasons".into(), ResponseFormat::Text), ("answer".into(), ResponseFormat::Text)];
    let n = before.len() as u32;
    if n > 0 {
        let mark = ResponseFormat::Number { low: 1.0, high: 5.0, whole: true };
        fields.push(("marks".into(), ResponseFormat::List { of: Box::new(mark), least: n, most: n }));
    }
    let shown: Vec<Part> = before.iter().map(Stand::said).collect();
    let instruction = format!("{}\n{}", context.prompt(if n > 0 { &WEIGH } else { &STEPS }), form(context));
    crate::team::tell_all(context, member, before);
    let heard = context
        .ask(Brief::new(member, talk(context, member, &shown, &instruction), ResponseFormat::Record(fields)))
        .await;
    let marks: Vec<f64> = match heard.as_ref().ok().and_then(|value| value.field(2)) {
        Some(Value::List(marks)) => {
            marks.iter().map(|mark| if let Value::Number(x) = mark { *x } else { 0.0 }).collect()
        }
        _ => Vec::new(),
    };
    let stand = stand(context, member, heard)?;
    let edges = vote::shares(&if marks.len() == before.len() { marks } else { vec![0.0; before.len()] });
    Some(Node { member, stand, edges: edges.into_iter().enumerate().collect() })
}

fn shuffled(context: &TeamContext<'_>, members: &[usize]) -> Vec<usize> {
    let mut draws = context.draws();
    let mut order = members.to_vec();
    for i in (1..order.len()).rev() {
        order.swap(i, draws.below(i as u64 + 1) as usize);
    }
    order
}

/// Records Agent Importance Scores: the members with the final answer in the last round share 1, and each round passes its scores to the
/// previous one by the marks it gave.
fn record_importance(context: &mut TeamContext<'_>, layers: &[Vec<Node>], answer: &str) {
    let mut scores = vec![0.0; context.team.len()];
    let Some(last) = layers.last() else { return };
    let right: Vec<bool> = last.iter().map(|node| context.item.same(&node.stand.answer, answer)).collect();
    let share = 1.0 / right.iter().filter(|right| **right).count().max(1) as f64;
    let mut importance: Vec<f64> = right.iter().map(|right| if *right { share } else { 0.0 }).collect();
    for (depth, layer) in layers.iter().enumerate().rev() {
        layer.iter().zip(&importance).for_each(|(node, score)| scores[node.member] += score);
        let below = depth.checked_sub(1).and_then(|depth| layers.get(depth)).map_or(0, Vec::len);
        let mut handed = vec![0.0; below];
        for (node, score) in layer.iter().zip(&importance) {
            node.edges.iter().filter(|(to, _)| *to < below).for_each(|(to, weight)| handed[*to] += weight * score);
        }
        importance = handed;
    }
    for (member, score) in scores.into_iter().enumerate() {
        context.record(member, IMPORTANCE, format!("{score:.4}"));
    }
}
