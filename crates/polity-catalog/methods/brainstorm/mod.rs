//! Members list ideas, together or each alone. See README.md for the source and what is measured.

#[cfg(test)]
mod tests;

use crate::team::{ANSWERS, DECEIVE, NO_ANSWER, talk, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::{Part, ResponseFormat, Task, Value};
use polity_kernel::method::{
    Brief, Coordination, DefaultTeam, Kind, Method, Prompt, Quantity, Records, Strategy, Structure, Taxonomy,
    TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Brainstorm>(files);
}

/// Parameters of a brainstorming.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Maximum number of ideas of a member in a round.
    ideas: u32,
    /// Show the ideas of all members from earlier rounds; otherwise each member sees its own alone (a nominal group).
    shared: bool,
    /// An idea whose similarity to an earlier one is at least this, 0 to 1, counts as a repetition: the share of common words.
    similarity_threshold: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { ideas: 5, shared: true, similarity_threshold: 0.5 }
    }
}

/// Ideas of a group.
pub struct Brainstorm {
    params: Params,
    rounds: u32,
}

const ASK: Prompt = Prompt::new("ideas", "asks for ideas", include_str!("prompts/ideas.md")).may_hold(&["most"]);
/// Index of [`Method::RECORDS`].
const IDEA: u16 = 2;
/// Indices of [`Method::QUANTITIES`].
const IDEAS: u16 = 0;
const DISTINCT: u16 = 1;
const DIVERSITY: u16 = 2;

impl Method for Brainstorm {
    const NAME: &'static str = "brainstorm";
    const SUMMARY: &'static str = "Members list ideas, seeing those of the others or not; distinct ideas are counted";
    const RECORDS: &'static [Records] = &[ANSWERS[0], ANSWERS[1], Records { name: "idea", doc: "an idea of a member" }];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "ideas", doc: "ideas of all members" },
        Quantity { name: "distinct-ideas", doc: "ideas that do not repeat an earlier one" },
        Quantity {
            name: "diversity",
            doc: "mean distance of pairs of ideas: the share of words that only one of the two has",
        },
    ];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 3, rounds: 2 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Decentralised,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[ASK, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Invalid::within(1..=50, "ideas", params.ideas)?;
        Invalid::within(0.0..=1.0, "similarity_threshold", params.similarity_threshold)?;
        Ok(Brainstorm { params, rounds })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        // All ideas so far, each with its member, in the order of rounds and members.
        let mut said: Vec<(usize, String)> = context.restore()?.unwrap_or_default();
        while context.round() < self.rounds {
            let members = context.workers();
            let briefs = members.iter().map(|member| self.to_list(context, *member, &said)).collect::<Vec<_>>();
            for (member, heard) in members.into_iter().zip(context.ask_all(briefs).await) {
                match heard {
                    Ok(value) => {
                        for idea in listed(&value) {
                            context.record(member, IDEA, &idea);
                            said.push((member, idea));
                        }
                    }
                    Err(why) => context.record(member, NO_ANSWER, why.to_string()),
                }
            }
            context.end_round(&said).await?;
        }
        let words: Vec<BTreeSet<String>> = said.iter().map(|(_, idea)| words(idea)).collect();
        let distinct = (0..words.len()).filter(|n| {
            let earlier = &words[..*n];
            earlier.iter().all(|other| similarity(other, &words[*n]) < self.params.similarity_threshold)
        });
        context.measure(IDEAS, said.len() as f64);
        context.measure(DISTINCT, distinct.count() as f64);
        if let Some(diversity) = diversity(&words) {
            context.measure(DIVERSITY, diversity);
        }
        let text: Vec<&str> = said.iter().map(|(_, idea)| idea.as_str()).collect();
        Ok(verdict((!text.is_empty()).then(|| text.join("\n"))))
    }
}

impl Brainstorm {
    /// Builds a question to a member for more ideas, and records whose ideas it is shown.
    fn to_list(&self, context: &mut TeamContext<'_>, member: usize, said: &[(usize, String)]) -> Brief {
        let Params { ideas, shared, .. } = self.params;
        let mut shown = Vec::new();
        for (by, idea) in said.iter().filter(|(by, _)| shared || *by == member) {
            if *by != member {
                context.tell(*by, member, idea.clone());
            }
            let by = context.team[*by].name.clone();
            shown.push(Part::Said { by, answer: idea.clone(), reasons: String::new() });
        }
        let list = ResponseFormat::List { of: Box::new(ResponseFormat::Text), least: 0, most: ideas };
        let form = ResponseFormat::Record(vec![("ideas".into(), list)]);
        let instruction = context.filled(&ASK, &[("most", &ideas.to_string())]);
        Brief::new(member, talk(context, member, &shown, &instruction), form).task(Task::Write)
    }
}

/// Returns the ideas in a reply, without empty ones.
fn listed(value: &Value) -> Vec<String> {
    let Some(Value::List(ideas)) = value.field(0) else { return Vec::new() };
    let text = |idea: &Value| idea.as_text().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    ideas.iter().filter_map(text).filter(|idea| !idea.is_empty()).collect()
}

/// Returns the words of a text, in lower case.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Returns the share of common words among all words of two texts (Jaccard's index); two texts without words are the same.
fn similarity(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let all = a.union(b).count();
    if all == 0 { 1.0 } else { a.intersection(b).count() as f64 / all as f64 }
}

/// Returns the mean distance of two ideas; `None` for less than two.
fn diversity(ideas: &[BTreeSet<String>]) -> Option<f64> {
    let pairs =
        || ideas.iter().enumerate().flat_map(|(n, a)| ideas[n + 1..].iter().map(move |b| 1.0 - similarity(a, b)));
    let n = pairs().count();
    (n > 0).then(|| pairs().sum::<f64>() / n as f64)
}
