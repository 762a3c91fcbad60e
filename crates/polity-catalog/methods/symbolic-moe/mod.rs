//! Experts recruited for each question by their strength in the skills that it needs; each answers once, and an aggregator merges. See
//! README.md for the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, layers, solve, talk, to_solve, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::{ResponseFormat, Task, Value};
use polity_kernel::method::{
    Brief, Coordination, DefaultTeam, Kind, Method, Prompt, Quantity, Records, Strategy, Structure, Taxonomy,
    TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<SymbolicMoe>(files);
}

/// Where the skills of a question come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Skills {
    /// An annotator names them several times, and those named more than once count.
    #[default]
    Annotated,
    /// The topic of the item, separated by commas: annotated before.
    Topic,
}

/// How experts are recruited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recruit {
    /// By strength in the question's skills times overall strength.
    #[default]
    Strength,
    /// At random, each model with the same chance (the placebo).
    Lot,
}

/// The skills of a model, and its strength in each: in the paper, how many more questions with that skill it answered rightly than wrongly.
type Profile = BTreeMap<String, f64>;

/// Parameters of Symbolic-MoE.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The strengths of each model, by `provider/model` and skill.
    profiles: BTreeMap<String, Profile>,
    /// Where the skills of a question come from.
    skills: Skills,
    /// How often an annotator names skills.
    annotations: u32,
    /// How experts are recruited.
    recruit: Recruit,
    /// Number of experts per question.
    experts: u32,
}

impl Default for Params {
    fn default() -> Self {
        let (skills, recruit) = (Skills::default(), Recruit::default());
        Params { profiles: BTreeMap::new(), skills, annotations: 5, recruit, experts: 3 }
    }
}

/// Experts by skill.
pub struct SymbolicMoe {
    params: Params,
    /// The skills of all profiles.
    known: Vec<String>,
}

/// Indices of [`Method::QUANTITIES`].
const DISTINCT: u16 = 0;
const FIT: u16 = 1;
/// Indices of [`Method::RECORDS`].
const NEEDED: u16 = 2;
const RECRUITED: u16 = 3;
const KEYWORDS: Prompt =
    Prompt::new("keywords", "asks which skills the question needs", include_str!("prompts/keywords.md"));
const STEPS: Prompt =
    Prompt::new("steps", "tells a member to work the question out step by step", include_str!("prompts/steps.md"));
/// Most skills that an annotator names at a time.
const MOST_SKILLS: u32 = 5;

impl Method for SymbolicMoe {
    const NAME: &'static str = "symbolic-moe";
    const SUMMARY: &'static str =
        "Experts recruited per question by skill, one answer each, merged by an aggregator (Symbolic-MoE)";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "skills", doc: "the skills that the question needs" },
        Records { name: "recruited", doc: "the member was recruited, with the number of answers asked of it" },
    ];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "distinct-experts", doc: "number of different members among the recruited" },
        Quantity { name: "fit", doc: "strength of the recruited in the question's skills, their mean" },
    ];
    const ROLES: &'static [&'static str] = &["annotator", "aggregator"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 16, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Centralised,
        strategy: Strategy::Role,
        coordination: Coordination::Dynamic,
    });
    const PROMPTS: &'static [Prompt] = &[STEPS, KEYWORDS, layers::SYNTHESISE, layers::ALONE, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Invalid::within(1..=100, "experts", params.experts)?;
        Invalid::within(1..=100, "annotations", params.annotations)?;
        let known: BTreeSet<String> = params.profiles.values().flat_map(|profile| profile.keys().cloned()).collect();
        Ok(SymbolicMoe { params, known: known.into_iter().collect() })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let (members, aggregator) = (context.workers(), context.cast("aggregator"));
        let skills = self.skills(context).await;
        let (weights, fits) = self.weights(context, &members, &skills);
        let mut recruits = drawn(&weights, self.params.experts, &mut context.draws());
        recruits.sort_unstable();
        let mut briefs = Vec::new();
        for place in recruits.iter().collect::<BTreeSet<_>>() {
            let times = recruits.iter().filter(|other| *other == place).count();
            context.record(members[*place], RECRUITED, times.to_string());
            briefs.extend((0..times as u32).map(|n| to_solve(context, members[*place], &[], STEPS).sample(n)));
        }
        let distinct = recruits.iter().collect::<BTreeSet<_>>().len();
        context.measure(DISTINCT, distinct as f64);
        if !recruits.is_empty() {
            context.measure(FIT, recruits.iter().map(|place| fits[*place]).sum::<f64>() / recruits.len() as f64);
        }
        let answers: Vec<Stand> = solve(context, briefs).await.into_iter().flatten().collect();
        Ok(verdict(layers::aggregate(context, aggregator, &answers).await.map(|stand| stand.answer)))
    }
}

impl SymbolicMoe {
    /// Returns the skills that the question needs, among those of the profiles.
    async fn skills(&self, context: &mut TeamContext<'_>) -> Vec<String> {
        let by = context.cast("annotator");
        let skills: Vec<String> = match self.params.skills {
            Skills::Topic => {
                let topics = context.item.topic.clone().unwrap_or_default();
                let named: Vec<&str> = topics.split(',').map(str::trim).collect();
                self.known.iter().filter(|known| named.contains(&known.as_str())).cloned().collect()
            }
            Skills::Annotated if self.known.is_empty() => Vec::new(),
            Skills::Annotated => {
                let skill = Box::new(ResponseFormat::Choice(self.known.clone()));
                let list = ResponseFormat::List { of: skill, least: 1, most: MOST_SKILLS };
                let format = || ResponseFormat::Record(vec![("skills".into(), list.clone())]);
                let brief = |n| Brief::new(by, talk(context, by, &[], KEYWORDS), format()).task(Task::Write).sample(n);
                let briefs = (0..self.params.annotations).map(brief).collect();
                let heard: Vec<BTreeSet<u32>> =
                    context.ask_all(briefs).await.into_iter().filter_map(|heard| named(&heard.ok()?)).collect();
                let times = |i: usize| heard.iter().filter(|named| named.contains(&(i as u32))).count();
                let counted = |i: &usize| times(*i) > 1 || self.params.annotations == 1 && times(*i) == 1;
                (0..self.known.len()).filter(counted).map(|i| self.known[i].clone()).collect()
            }
        };
        context.record(by, NEEDED, skills.join(", "));
        skills
    }

    /// Returns the chances of each member to be recruited, up to a factor, and its strength in the skills. Members whose models have none
    /// of the skills in their profiles have no chance, unless nobody has: then all have the same.
    fn weights(&self, context: &TeamContext<'_>, members: &[usize], skills: &[String]) -> (Vec<f64>, Vec<f64>) {
        let none = Profile::new();
        let profiles: Vec<&Profile> =
            members.iter().map(|i| self.params.profiles.get(&context.team[*i].model).unwrap_or(&none)).collect();
        let local: Vec<Option<f64>> = profiles.iter().map(|profile| strength(profile, skills)).collect();
        let fits: Vec<f64> = local.iter().map(|local| local.unwrap_or(0.0)).collect();
        if self.params.recruit == Recruit::Lot || local.iter().all(Option::is_none) {
            return (vec![1.0; members.len()], fits);
        }
        let overall: Vec<f64> =
            above_zero(&profiles.iter().map(|profile| profile.values().sum()).collect::<Vec<f64>>());
        let local = suitable(&local);
        // The square is the repository's temperature of 0.5; a common factor does not matter.
        (local.iter().zip(overall).map(|(local, overall)| local * overall * overall).collect(), fits)
    }
}

/// Returns a model's strength in these skills; `None` if its profile has none of them.
fn strength(profile: &Profile, skills: &[String]) -> Option<f64> {
    let found: Vec<f64> = skills.iter().filter_map(|skill| profile.get(skill).copied()).collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

/// Returns values shifted so that the lowest is 1, if any is below 0.
fn above_zero(values: &[f64]) -> Vec<f64> {
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    values.iter().map(|x| if lowest < 0.0 { x - lowest + 1.0 } else { *x }).collect()
}

/// Returns strengths as weights: those above 0 alone, if there are any; else all, shifted so that the lowest is 1.
fn suitable(local: &[Option<f64>]) -> Vec<f64> {
    let lowest = local.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let some = local.iter().flatten().any(|x| *x > 0.0);
    let weight = |x: f64| if some { x.max(0.0) } else { x - lowest + 1.0 };
    local.iter().map(|x| x.map_or(0.0, weight)).collect()
}

/// Draws `n` places by their weights, with replacement; if all weights are 0, with equal chances.
fn drawn(weights: &[f64], n: u32, draws: &mut Draws) -> Vec<usize> {
    if weights.is_empty() {
        return Vec::new();
    }
    let any = |draws: &mut Draws| draws.below(weights.len() as u64) as usize;
    (0..n).map(|_| draws.weighted(weights).unwrap_or_else(|| any(draws))).collect()
}

/// Returns the indices of the skills in a reply, each once.
fn named(value: &Value) -> Option<BTreeSet<u32>> {
    let Some(Value::List(skills)) = value.field(0) else { return None };
    Some(skills.iter().filter_map(|skill| if let Value::Choice(i) = skill { Some(*i) } else { None }).collect())
}
