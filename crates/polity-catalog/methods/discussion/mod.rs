//! A discussion in one of four paradigms, ended by agreement, a vote or a judge. See README.md for the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::discuss::{Paradigm, Table, Words, speak};
use crate::team::{ANSWER, ANSWERS, DECEIVE, FORM, LENGTH, Stand, discuss, judge, verdict, vote};
use polity_kernel::Invalid;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Discussion>(files);
}

/// How a discussion reaches an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// When all agree, in the first four turns or with at most three members; otherwise when three quarters agree.
    #[default]
    HybridConsensus,
    /// When half of all agree.
    MajorityConsensus,
    /// When 66 % agree.
    SupermajorityConsensus,
    /// When all agree.
    UnanimityConsensus,
    /// After three turns each names the best final answer.
    SimpleVoting,
    /// After three turns each ranks the final answers; ranks are points (Borda).
    RankedVoting,
    /// After three turns each spreads its points over the final answers.
    CumulativeVoting,
    /// After three turns each approves of as many final answers as it likes.
    ApprovalVoting,
    /// After three turns a judge names the best final answer.
    Judge,
}

/// Turns before a vote.
const VOTE_TURN: u32 = 3;
/// Range of marks for ballots.
const MARKS: (f64, f64) = (0.0, 10.0);

/// Parameters of a discussion.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The order of speakers and hearers.
    paradigm: Paradigm,
    /// How the discussion reaches an answer.
    decision: Decision,
    /// Number of rounds of the ring per turn in the paradigm `debate`.
    debate_rounds: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { paradigm: Paradigm::default(), decision: Decision::default(), debate_rounds: 2 }
    }
}

/// A discussion.
pub struct Discussion {
    params: Params,
    turns: u32,
}

/// Index of [`Method::RECORDS`].
const DRAFT: u16 = 2;

impl Method for Discussion {
    const NAME: &'static str = "discussion";
    const SUMMARY: &'static str =
        "A discussion in turns (memory, report, relay, debate) until agreement, a vote or a judge (MALLM)";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "draft", doc: "the current proposal at the end of a turn, under the member who made it" },
    ];
    const ROLES: &'static [&'static str] = &["judge"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 3, rounds: 10 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Decentralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] =
        &[discuss::OPEN, discuss::JOIN, judge::CHOOSE, judge::MARK, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, turns: u32) -> Result<Self, Invalid> {
        Invalid::within(1..=20, "debate_rounds", params.debate_rounds)?;
        Ok(Discussion { params, turns })
    }

    fn unused_role(&self) -> Option<(&'static str, &'static str)> {
        (self.params.decision != Decision::Judge).then_some(("judge", "a judge is asked with `decision: judge` alone"))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let members = context.workers();
        let mut table: Table = context.restore()?.unwrap_or_else(|| Table::of(members.len()));
        let slots = self.params.paradigm.slots(members.len(), self.params.debate_rounds);
        let voting = self.share(1, members.len()).is_none();
        let mut until = if voting { self.turns.min(VOTE_TURN).max(context.round()) } else { self.turns };
        loop {
            while context.round() < until {
                for (n, slot) in slots.iter().enumerate() {
                    speak(context, &members, slot, &mut table, Words::default()).await;
                    // A debate is decided when its ring is through.
                    let due = self.params.paradigm != Paradigm::Debate || n + 1 == slots.len();
                    let share = self.share(context.round() + 1, members.len()).filter(|_| due);
                    if share.is_some_and(|share| table.agreed(share)) {
                        return Ok(verdict(table.draft.map(|draft| draft.answer)));
                    }
                }
                if let Some(draft) = &table.draft {
                    let by = context.team.iter().position(|member| member.name == draft.by).unwrap_or(0);
                    context.record(by, DRAFT, &draft.answer);
                }
                context.end_round(&table).await?;
            }
            let stands: Vec<Stand> = table.stands.iter().flatten().cloned().collect();
            let decided = match self.params.decision {
                Decision::Judge => {
                    let by = context.cast("judge");
                    judge::best(context, by, &stands).await
                }
                _ if voting => {
                    let leaders = self.voted(context, &members, &stands).await;
                    // A tie is talked over for another turn.
                    if leaders.len() > 1 && context.round() < self.turns {
                        until += 1;
                        continue;
                    }
                    leaders.first().copied()
                }
                // The last draft, as in the paper's code.
                _ => return Ok(verdict(table.draft.map(|draft| draft.answer))),
            };
            if let Some(winner) = decided.filter(|_| self.params.decision != Decision::Judge) {
                context.record(members[winner.min(members.len() - 1)], ANSWER, &stands[winner].answer);
            }
            let answer = decided.and_then(|i| stands.get(i)).map(|stand| stand.answer.clone());
            return Ok(verdict(answer.or_else(|| vote::plurality(context.item, &table.stands))));
        }
    }
}

impl Discussion {
    /// Returns the share that must agree in a turn (from 1) to end the discussion; `None` if a vote or a judge decides.
    fn share(&self, turn: u32, members: usize) -> Option<f64> {
        match self.params.decision {
            Decision::HybridConsensus if turn < 5 || members <= 3 => Some(1.0),
            Decision::HybridConsensus => Some(0.75),
            Decision::MajorityConsensus => Some(0.5),
            Decision::SupermajorityConsensus => Some(0.66),
            Decision::UnanimityConsensus => Some(1.0),
            _ => None,
        }
    }

    /// Everybody marks all final answers; the decision protocol converts the marks to votes. Returns those with most votes.
    async fn voted(&self, context: &mut TeamContext<'_>, members: &[usize], stands: &[Stand]) -> Vec<usize> {
        if stands.is_empty() {
            return Vec::new();
        }
        let briefs = members.iter().map(|voter| judge::to_mark(context, *voter, stands, MARKS.0, MARKS.1)).collect();
        let marks = context.ask_all(briefs).await.into_iter().filter_map(|heard| judge::marked(&heard.ok()?));
        let ballot = |marks: Vec<f64>| match self.params.decision {
            Decision::RankedVoting => vote::ranks(&marks),
            Decision::CumulativeVoting => vote::shares(&marks),
            Decision::ApprovalVoting => vote::approvals(&marks, (MARKS.0 + MARKS.1) / 2.0),
            _ => vote::voice(&marks),
        };
        let ballots: Vec<Vec<f64>> = marks.map(ballot).collect();
        vote::leaders(&ballots, stands.len())
    }
}
