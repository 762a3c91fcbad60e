//! Societies that debate or reflect, round by round; conformity and agreement are measured. See README.md for the source and what is
//! reproduced.

#[cfg(test)]
mod tests;

use crate::team::{ANSWER, ANSWERS, DECEIVE, FORM, LENGTH, Stand, solve, tell_all, to_solve, verdict, vote};
use polity_kernel::Invalid;
use polity_kernel::ask::{ChatMessage, Part, Role};
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
    registry.method::<MachineSom>(files);
}

/// What all members do in a round after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Read the others' answers and answer again.
    Debate,
    /// Check the own answer, without reading others.
    Reflection,
}

/// Parameters of MachineSoM.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The thinking patterns of the rounds after the first, in order; the last one goes on.
    patterns: Vec<Pattern>,
}

impl Default for Params {
    fn default() -> Self {
        Params { patterns: vec![Pattern::Debate] }
    }
}

/// A society of members with traits.
pub struct MachineSom {
    params: Params,
    rounds: u32,
}

/// The state between rounds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    /// Each member's conversation after the question.
    talks: Vec<Vec<ChatMessage>>,
    stands: Vec<Option<Stand>>,
    counts: Counts,
}

/// Counts over all debates so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Counts {
    /// Answers in debates.
    answers: usize,
    /// Of these, those that the majority of the round before gave.
    conforming: usize,
    /// Answers of members who were outside the majority before.
    outside: usize,
    /// Of these, those that took the majority's answer over.
    swayed: usize,
    /// Conforming answers that turned from right to wrong, and from wrong to right.
    turned: [usize; 2],
}

/// Indices of [`Method::QUANTITIES`].
const CONFORMITY: u16 = 0;
const SWAYED: u16 = 1;
const RIGHT_TO_WRONG: u16 = 2;
const WRONG_TO_RIGHT: u16 = 3;
const DISTINCT: u16 = 4;
const MAJORITY: u16 = 5;
const ALONE: Prompt = Prompt::new("alone", "asks every member in the first round", include_str!("prompts/alone.md"));
const DEBATE: Prompt = Prompt::new(
    "debate",
    "tells a member to answer again after the answers of others",
    include_str!("prompts/debate.md"),
);
const REFLECT: Prompt =
    Prompt::new("reflect", "tells a member to check its own answer", include_str!("prompts/reflect.md"));

impl Method for MachineSom {
    const NAME: &'static str = "machine-som";
    const SUMMARY: &'static str =
        "A society debates or reflects, round by round; conformity and agreement are measured (MachineSoM)";
    const RECORDS: &'static [Records] = &ANSWERS;
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "conformity", doc: "share of answers in debates that the majority of the round before gave" },
        Quantity {
            name: "swayed",
            doc: "share of answers in debates, of members outside the majority before, that take its answer over",
        },
        Quantity {
            name: "right-to-wrong",
            doc: "share of answers in debates that conform to the majority and turn from right to wrong",
        },
        Quantity {
            name: "wrong-to-right",
            doc: "share of answers in debates that conform to the majority and turn from wrong to right",
        },
        Quantity { name: "distinct-answers", doc: "number of different answers at the end of the round" },
        Quantity { name: "majority", doc: "1 if more than half of the members end with one answer, else 0" },
    ];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 3, rounds: 4 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Coopetition,
        structure: Structure::Decentralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[ALONE, DEBATE, REFLECT, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Invalid::unless(!params.patterns.is_empty(), "patterns", "a society needs at least one pattern")?;
        Ok(MachineSom { params, rounds })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let members = context.workers();
        let n = members.len();
        let mut state: State = context.restore()?.unwrap_or_else(|| State {
            talks: vec![Vec::new(); n],
            stands: vec![None; n],
            counts: Counts::default(),
        });
        while context.round() < self.rounds {
            let pattern = self.pattern(context.round());
            let briefs = (0..n).map(|place| brief(context, &members, &mut state, place, pattern)).collect();
            let before = state.stands.clone();
            for (place, said) in solve(context, briefs).await.into_iter().enumerate() {
                match (said, &state.stands[place]) {
                    (Some(said), _) => {
                        state.talks[place].push(said.own());
                        state.stands[place] = Some(said);
                    }
                    // A member without an answer keeps its last one.
                    (None, Some(held)) => {
                        state.talks[place].push(held.own());
                        context.record(members[place], ANSWER, &held.answer);
                    }
                    (None, None) => state.talks[place].clear(),
                }
            }
            if pattern == Some(Pattern::Debate) {
                state.counts.add(context, &before, &state.stands);
            }
            state.counts.measure(context);
            context.measure(DISTINCT, vote::camps(context.item, &state.stands).len() as f64);
            let majority = vote::consensus(context.item, &state.stands, 0.5).is_some();
            context.measure(MAJORITY, f64::from(u8::from(majority)));
            context.end_round(&state).await?;
        }
        Ok(verdict(vote::plurality(context.item, &state.stands)))
    }
}

impl MachineSom {
    /// Returns what members do in a round; nothing in the first, in which they answer alone.
    fn pattern(&self, round: u32) -> Option<Pattern> {
        let place = round.checked_sub(1)? as usize;
        self.params.patterns.get(place).or(self.params.patterns.last()).copied()
    }
}

/// Builds a member's next question, with its whole conversation so far.
fn brief(
    context: &mut TeamContext<'_>,
    members: &[usize],
    state: &mut State,
    place: usize,
    pattern: Option<Pattern>,
) -> Brief {
    let mut brief = to_solve(context, members[place], &[], ALONE);
    let mut parts: Vec<Part> = Vec::new();
    if pattern == Some(Pattern::Debate) {
        let heard = context.hears(members[place]);
        let heard = heard.iter().filter_map(|other| members.iter().position(|member| member == other));
        let others: Vec<Stand> = heard.filter_map(|other| state.stands[other].clone()).collect();
        tell_all(context, members[place], &others);
        parts.extend(others.iter().map(Stand::said));
    }
    // A member that has never answered is asked as in the first round, with what it hears.
    let order = match (pattern, &state.stands[place]) {
        (Some(Pattern::Debate), _) => Some(DEBATE),
        (Some(Pattern::Reflection), Some(_)) => Some(REFLECT),
        _ => None,
    };
    if let Some(order) = order {
        parts.push(Part::Text(context.prompt(&order).to_owned()));
        state.talks[place].push(ChatMessage { role: Role::User, parts });
    }
    brief.messages.extend(state.talks[place].iter().cloned());
    brief
}

impl Counts {
    /// Adds a debate. The majority is the most common answer of the round before, if two gave it; of several, any.
    fn add(&mut self, context: &TeamContext<'_>, before: &[Option<Stand>], after: &[Option<Stand>]) {
        let camps = vote::camps(context.item, before);
        let most = camps.iter().map(|(_, size)| *size).max().filter(|most| *most > 1);
        let leading =
            |answer: &str| camps.iter().any(|(camp, size)| Some(*size) == most && context.item.same(camp, answer));
        for (old, new) in before.iter().zip(after) {
            let (Some(old), Some(new)) = (old, new) else { continue };
            self.answers += 1;
            let conforms = leading(&new.answer);
            self.conforming += usize::from(conforms);
            if most.is_some() && !leading(&old.answer) {
                self.outside += 1;
                self.swayed += usize::from(conforms);
            }
            let right = [old, new].map(|stand| context.item.is_right(&stand.answer));
            self.turned[0] += usize::from(conforms && right == [Some(true), Some(false)]);
            self.turned[1] += usize::from(conforms && right == [Some(false), Some(true)]);
        }
    }

    fn measure(&self, context: &mut TeamContext<'_>) {
        context.measure_share(CONFORMITY, self.conforming, self.answers);
        context.measure_share(SWAYED, self.swayed, self.outside);
        context.measure_share(RIGHT_TO_WRONG, self.turned[0], self.answers);
        context.measure_share(WRONG_TO_RIGHT, self.turned[1], self.answers);
    }
}
