//! Multiagent debate: answer alone, then read the others and think again. See README.md for the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::{ANSWER, ANSWERS, DECEIVE, FORM, LENGTH, Stand, judge, solve, to_solve, verdict, vote};
use polity_kernel::Invalid;
use polity_kernel::ask::{ChatMessage, Part, Role};
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
    registry.method::<Debate>(files);
}

/// How the team's answer follows from the members' last answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// The most common answer; ties go to the one whose first supporter comes first in the team.
    #[default]
    Majority,
    /// The answer that a judge finds best. The judge is the member with the role `judge`, else the first.
    Judge,
}

/// Parameters of a debate.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Stop as soon as every member has the same answer, instead of working all rounds.
    stop_when_agreed: bool,
    /// Show the others' reasons with their answers.
    show_reasons: bool,
    /// How the team's answer follows from the members' last answers.
    aggregate: Aggregate,
}

impl Default for Params {
    fn default() -> Self {
        Params { stop_when_agreed: false, show_reasons: true, aggregate: Aggregate::Majority }
    }
}

/// Multiagent debate.
pub struct Debate {
    params: Params,
    rounds: u32,
}

const ALONE: Prompt = Prompt::new("alone", "asks every member in the first round", include_str!("prompts/alone.md"));
const OTHERS: Prompt = Prompt::new("others", "comes before the answers of others", include_str!("prompts/others.md"));
const NOBODY: Prompt =
    Prompt::new("nobody", "comes instead if nobody else has an answer", include_str!("prompts/nobody.md"));
const AGAIN: Prompt = Prompt::new(
    "again",
    "tells a member to answer again after the answers of others",
    include_str!("prompts/again.md"),
);

impl Method for Debate {
    const NAME: &'static str = "debate";
    const SUMMARY: &'static str =
        "Everybody answers alone, then reads the others' answers and answers again (multiagent debate)";
    const RECORDS: &'static [Records] = &ANSWERS;
    const ROLES: &'static [&'static str] = &["judge"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 3, rounds: 2 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Coopetition,
        structure: Structure::Decentralised,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[ALONE, OTHERS, NOBODY, AGAIN, judge::CHOOSE, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Ok(Debate { params, rounds })
    }

    fn unused_role(&self) -> Option<(&'static str, &'static str)> {
        (self.params.aggregate == Aggregate::Majority)
            .then_some(("judge", "`aggregate: majority` asks no judge, `aggregate: judge` does"))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let members = context.workers();
        let mut stands: Vec<Option<Stand>> = context.restore()?.unwrap_or_else(|| vec![None; members.len()]);
        while context.round() < self.rounds && !(self.params.stop_when_agreed && vote::unanimous(context.item, &stands))
        {
            let briefs = (0..members.len()).map(|place| self.brief(context, &members, &stands, place)).collect();
            for (place, said) in solve(context, briefs).await.into_iter().enumerate() {
                match (said, &stands[place]) {
                    (Some(said), _) => stands[place] = Some(said),
                    // A member without an answer keeps its last one.
                    (None, Some(held)) => context.record(members[place], ANSWER, &held.answer),
                    (None, None) => {}
                }
            }
            context.end_round(&stands).await?;
        }
        let held: Vec<Stand> = stands.iter().flatten().cloned().collect();
        let judged = match self.params.aggregate {
            Aggregate::Majority => None,
            Aggregate::Judge => {
                let by = context.cast("judge");
                judge::best(context, by, &held).await
            }
        };
        let judged = judged.and_then(|i| held.get(i)).map(|stand| stand.answer.clone());
        Ok(verdict(judged.or_else(|| vote::plurality(context.item, &stands))))
    }
}

impl Debate {
    /// Builds a member's question, and records whose answers it is shown.
    fn brief(&self, context: &mut TeamContext<'_>, members: &[usize], stands: &[Option<Stand>], place: usize) -> Brief {
        let member = members[place];
        let mut brief = to_solve(context, member, &[], ALONE);
        if context.round() == 0 {
            return brief;
        }
        if let Some(before) = &stands[place] {
            brief.messages.push(before.own());
        }
        let mut parts = vec![Part::Text(context.prompt(&OTHERS).to_owned())];
        for other in context.hears(member) {
            let Some(stand) = members.iter().position(|m| *m == other).and_then(|place| stands[place].as_ref()) else {
                continue;
            };
            let reasons = if self.params.show_reasons { stand.reasons.clone() } else { String::new() };
            context.tell(other, member, stand.answer.clone());
            parts.push(Stand { reasons, ..stand.clone() }.said());
        }
        if parts.len() == 1 {
            parts = vec![Part::Text(context.prompt(&NOBODY).to_owned())];
        }
        parts.push(Part::Text(context.prompt(&AGAIN).to_owned()));
        brief.messages.push(ChatMessage { role: Role::User, parts });
        brief
    }
}
