//! Why a team failed: the failure modes that the record of a run shows, with the calls that show them.
//!
//! The rules read the record alone: who was asked what, what was shown, what was replied, and how each item ended. Some rules compare an
//! item with the others of the run: what happens in most of them is the protocol of the method (`Protocol`). A mode that the record
//! cannot decide is reported as such ([`Diagnosis::undecided`]).

mod behaviours;
mod misalignment;
mod observations;
mod protocol;
mod ratings;
mod specification;
mod tally;
mod trace;
mod turns;
mod verification;

pub use behaviours::{Behaviour, Social, UndecidedBehaviour};
pub use observations::{Contested, Observations, Turned};
pub use ratings::{Agreement, ModeAgreement, Ratings, Subject, read_labels};
pub use tally::{Diagnosed, ModeTally, Tally, TurnTally};
pub use trace::{Ended, Step, Trace};
pub use turns::Turning;

use polity_kernel::ask::EffectId;
use polity_kernel::failure::FailureMode;
use polity_kernel::items::{Item, Scorer};
use polity_kernel::method::Member;
use protocol::Protocol;
use serde::Serialize;

/// A failure mode that an item shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Symptom {
    /// The item.
    pub item: u32,
    /// The failure mode.
    pub mode: FailureMode,
    /// What the record shows, in a sentence.
    pub why: String,
    /// The calls that show it, in the order of the table `calls`.
    pub calls: Vec<CallId>,
}

/// The place of a call in the table `calls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CallId {
    /// The round.
    pub round: u32,
    /// The member of the team.
    pub agent: u32,
    /// The number of its question in the round.
    pub n: u32,
}

impl From<EffectId> for CallId {
    fn from(id: EffectId) -> Self {
        CallId { round: id.round, agent: id.actor, n: id.n }
    }
}

/// A failure mode that the rules cannot decide for a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Undecided {
    /// The failure mode.
    pub mode: FailureMode,
    /// Why.
    pub why: &'static str,
}

/// What is found in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Number of items that have ended.
    pub items: usize,
    /// Number of calls of members.
    pub calls: usize,
    /// The symptoms, by item and mode. A mode is named at most once for an item.
    pub symptoms: Vec<Symptom>,
    /// Modes that the rules do not decide for this run.
    pub undecided: Vec<Undecided>,
    /// Turns from which on a discussion goes wrong, by item.
    pub turnings: Vec<Turning>,
    /// Social behaviours of members, by item.
    pub behaviours: Vec<Behaviour>,
    /// Behaviours that the rules do not decide for this run.
    pub undecided_behaviours: Vec<UndecidedBehaviour>,
    /// What the run shows as a whole.
    pub observations: Observations,
}

/// Fewest items from which the protocol of a method can be told.
const FEWEST: usize = 3;

/// Finds failure modes in the traces of a run.
#[must_use]
pub fn diagnose(team: &[Member], items: &[Item], traces: &[Trace]) -> Diagnosis {
    let protocol = Protocol::of(items, traces);
    let (mut symptoms, mut turnings, mut tagged) = (Vec::new(), Vec::new(), Vec::new());
    for trace in traces {
        let Some(item) = items.get(trace.item as usize) else { continue };
        let case = Case { item, team, trace, protocol: &protocol };
        symptoms.extend(specification::symptoms(&case));
        symptoms.extend(misalignment::symptoms(&case));
        symptoms.extend(verification::symptoms(&case));
        turnings.extend(turns::turnings(&case));
        tagged.extend(behaviours::behaviours(&case));
    }
    // The first evidence of a mode stands for the others.
    symptoms.sort_by_key(|symptom| (symptom.item, symptom.mode));
    symptoms.dedup_by_key(|symptom| (symptom.item, symptom.mode));
    Diagnosis {
        items: traces.len(),
        calls: traces.iter().map(|trace| trace.steps.len()).sum(),
        symptoms,
        undecided: undecided(team, items, traces, &protocol),
        turnings,
        behaviours: tagged,
        undecided_behaviours: behaviours::undecided(items, traces),
        observations: Observations::of(items, traces),
    }
}

/// An item's trace, with all that the rules may know besides.
struct Case<'a> {
    item: &'a Item,
    team: &'a [Member],
    trace: &'a Trace,
    protocol: &'a Protocol,
}

impl Case<'_> {
    fn symptom(&self, mode: FailureMode, why: String, steps: &[&Step]) -> Symptom {
        Symptom { item: self.trace.item, mode, why, calls: steps.iter().map(|step| CallId::from(step.id)).collect() }
    }

    fn name(&self, member: u32) -> &str {
        self.team.get(member as usize).map_or("the method", |member| member.name.as_str())
    }
}

/// Lists what the record of this run cannot decide.
fn undecided(team: &[Member], items: &[Item], traces: &[Trace], protocol: &Protocol) -> Vec<Undecided> {
    use FailureMode as Mode;
    let steps = || traces.iter().flat_map(|trace| &trace.steps);
    let few = traces.len() < FEWEST;
    let form = |item: &Item| matches!(item.scorer, Scorer::Number | Scorer::Math | Scorer::Choice);
    let reasons = [
        (Mode::FailToAskForClarification, true, "whether something is unclear is not in the record"),
        (Mode::DisobeyTaskSpecification, !items.iter().any(form), "the items do not prescribe the form of an answer"),
        (
            Mode::DisobeyRoleSpecification,
            few || !protocol.has_fixed_roles(),
            "no judging step belongs to the same members in most items",
        ),
        (
            Mode::LossOfConversationHistory,
            few || !protocol.shows_history(),
            "in most items nobody is shown its own earlier answer",
        ),
        (
            Mode::ConversationReset,
            few || !protocol.shows_anything(),
            "in most items nobody is shown what was said before",
        ),
        (
            Mode::InformationWithholding,
            few || team.len() < 2 || !protocol.shows_others(),
            "in most items nobody who answers is shown answers of others by name",
        ),
        (Mode::TaskDerailment, few, "there are too few items to compare"),
        (Mode::IgnoredOtherAgentsInput, !steps().any(Step::is_opposed), "nobody who answered again was contradicted"),
        (
            Mode::UnawareOfTerminationConditions,
            !steps().any(|step| step.accepts == Some(true)),
            "no check accepts an answer",
        ),
        (Mode::PrematureTermination, few || protocol.rounds() < 2, "no item takes more than one round"),
        (Mode::NoOrIncompleteVerification, few || !protocol.verifies(), "most items have no step that checks answers"),
        (
            Mode::IncorrectVerification,
            !steps().any(|step| step.accepts.is_some()),
            "no check accepts or rejects an answer",
        ),
    ];
    let mut undecided: Vec<Undecided> =
        reasons.into_iter().filter(|(_, holds, _)| *holds).map(|(mode, _, why)| Undecided { mode, why }).collect();
    undecided.sort_by_key(|undecided| undecided.mode);
    undecided
}
