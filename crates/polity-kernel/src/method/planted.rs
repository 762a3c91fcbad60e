//! Planted faults: a team works as always, but something goes wrong in what a member is asked, what it says, or what the team makes of it.
//! A diagnosis of the record is measured on them: what it names is compared with what was planted.

mod mode;

pub use mode::PlantedMode;

use super::{Brief, TeamContext};
use crate::ask::{Hidden, Part, Recorded, Reply, Request, ResponseFormat, Role, Task, Value};
use crate::failure::{DiscussionFault, FailureMode};
use crate::tree::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A fault that is planted in the work of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlantedFault {
    /// What goes wrong. `fail-to-ask-for-clarification` cannot be planted, because no method has a step for such a question.
    pub mode: PlantedMode,
    /// The member with the fault, from 0. Default: every member.
    #[serde(default)]
    pub member: Option<u32>,
    /// The items in which it occurs, by their place from 0. Default: all.
    #[serde(default)]
    pub items: Vec<u32>,
    /// The round from which on it occurs, from 0. Default: the first.
    #[serde(default)]
    pub turn: u32,
    /// Makes the fault of a discussion a placebo: from that round on each reply is replaced as always, but by what the member said before.
    #[serde(default)]
    pub placebo: bool,
}

/// What a member with a derailed task is asked instead.
const ELSEWHERE: &str = "What is the usual colour of a school bus, and why?";
/// What a member that disobeys the specification of a task answers.
const UNFIT: &str = "It depends on what is meant.";
/// What all members say in a discussion that collapses.
const ALIKE: &str = "All of us see this in the same way, and there is nothing to add to what the others have said. Every step has been \
                     gone through, no doubt is left, and so I repeat the words of the group as they stand, from the first to the last.";
/// How often a member that monopolises a discussion says the same.
const OFTEN: usize = 40;

impl PlantedFault {
    /// Checks that the fault can occur in a team of these models, working on so many items in so many rounds.
    pub(crate) fn check(&self, models: &[&str], items: usize, rounds: u32) -> Result<(), Invalid> {
        let invalid = |key: &str, message: String| Err(Invalid { key: key.into(), message });
        let PlantedFault { mode, member, items: hit, turn, placebo } = self;
        if *mode == PlantedMode::Failure(FailureMode::FailToAskForClarification) {
            return invalid("mode", format!("`{mode}` cannot be planted: no method has a step for such a question"));
        }
        if let Some(member) = member.filter(|member| *member as usize >= models.len()) {
            return invalid("member", format!("there is no member {member}; the team has {}", models.len()));
        }
        if let Some(item) = hit.iter().find(|item| **item as usize >= items) {
            return invalid("items", format!("there is no item {item}; the data set has {items}, numbered from 0"));
        }
        if *turn > 0 && *turn >= rounds {
            return invalid("turn", format!("there is no round {turn}; the scenario has {rounds}, numbered from 0"));
        }
        if *placebo && !matches!(mode, PlantedMode::Discussion(_)) {
            return invalid("placebo", format!("`{mode}` has no placebo; only the faults of a discussion have one"));
        }
        let real = models.iter().enumerate().find(|(i, model)| self.of(*i) && !model.starts_with("sim/"));
        match real.filter(|_| self.changes_replies()) {
            Some((i, model)) => {
                let message = format!(
                    "`{mode}` changes what a member says, so it needs a simulated model, but member {i} is `{model}`; \
                     choose members with `member`"
                );
                invalid("mode", message)
            }
            None => Ok(()),
        }
    }

    /// Whether the fault is in the reply of the member's model.
    fn changes_replies(&self) -> bool {
        use FailureMode::{
            DisobeyTaskSpecification, IgnoredOtherAgentsInput, IncorrectVerification, ReasoningActionMismatch,
        };
        match self.mode {
            PlantedMode::Failure(mode) => matches!(
                mode,
                DisobeyTaskSpecification | IgnoredOtherAgentsInput | IncorrectVerification | ReasoningActionMismatch
            ),
            PlantedMode::Discussion(_) => true,
        }
    }

    fn of(&self, member: usize) -> bool {
        self.member.is_none_or(|it| it as usize == member)
    }

    fn on(&self, item: u32) -> bool {
        self.items.is_empty() || self.items.contains(&item)
    }
}

/// What becomes of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// It is asked.
    Once,
    /// It is asked twice; the second reply counts.
    Twice,
    /// It is not asked: the work passes.
    Skipped,
}

impl TeamContext<'_> {
    /// Whether a fault of this mode occurs with a member on this item.
    pub(super) fn fails(&self, mode: FailureMode, member: usize) -> bool {
        self.faults_of(member).any(|fault| fault.mode == PlantedMode::Failure(mode))
    }

    /// The faults that occur with a member on this item in this round.
    fn faults_of(&self, member: usize) -> impl Iterator<Item = &PlantedFault> {
        let now =
            move |fault: &&PlantedFault| fault.of(member) && fault.on(self.item.index) && fault.turn <= self.round;
        self.faults.iter().filter(now)
    }

    /// What a member says under the fault of a discussion: (field of its reply, text). `None`: what it says anyway.
    fn swayed(&self, member: usize, request: &Request) -> Option<(&'static str, String)> {
        let (fault, placebo) = self.faults_of(member).find_map(|fault| match fault.mode {
            PlantedMode::Discussion(mode) => Some((mode, fault.placebo)),
            PlantedMode::Failure(_) => None,
        })?;
        let own = request.messages.iter().rev().filter(|message| message.role == Role::Assistant);
        let before = own.flat_map(|message| &message.parts).find_map(|part| match part {
            Part::Said { answer, reasons, .. } => Some((answer, reasons)),
            _ => None,
        });
        let text = match fault {
            DiscussionFault::ProblemDrift if placebo => before?.0.clone(),
            DiscussionFault::ProblemDrift => self.elsewise(),
            _ if placebo => before?.1.clone(),
            DiscussionFault::AlignmentCollapse => ALIKE.into(),
            DiscussionFault::Monopolisation => {
                vec!["Let me go through all of it once more, word for word."; OFTEN].join(" ")
            }
        };
        Some((if fault == DiscussionFault::ProblemDrift { "answer" } else { "reasons" }, text))
    }

    /// Returns the question as it is put under the planted faults, and what becomes of it.
    pub(super) fn misled(&self, mut brief: Brief) -> (Brief, Course) {
        if self.faults.is_empty() {
            return (brief, Course::Once);
        }
        let member = brief.member;
        let solves = matches!(brief.task, Task::Solve | Task::Mislead);
        if solves && self.fails(FailureMode::LossOfConversationHistory, member) {
            brief.messages.retain(|message| message.role != Role::Assistant);
        }
        if solves && self.fails(FailureMode::ConversationReset, member) {
            reset(&mut brief);
        }
        if solves && self.fails(FailureMode::TaskDerailment, member) {
            derail(&mut brief, &self.item.question);
        }
        for (other, speaker) in self.team.iter().enumerate().filter(|(other, _)| *other != member) {
            if self.fails(FailureMode::InformationWithholding, other) {
                forget(&mut brief, &speaker.name);
            }
        }
        let course = match brief.task {
            Task::Check if self.fails(FailureMode::NoOrIncompleteVerification, member) => Course::Skipped,
            _ if self.fails(FailureMode::StepRepetition, member) => Course::Twice,
            _ => Course::Once,
        };
        let judges = matches!(brief.task, Task::Check | Task::Choose | Task::Rate);
        if judges && self.fails(FailureMode::DisobeyRoleSpecification, member) {
            // The work of a role is done by a member that works on the items.
            brief.member = self.workers().into_iter().find(|worker| *worker != member).unwrap_or(member);
        }
        (brief, course)
    }

    /// Changes what a simulated model knows, so that its reply shows the planted faults.
    pub(super) fn deluded(
        &self,
        member: usize,
        task: Task,
        request: &Request,
        hidden: Option<Hidden>,
    ) -> Option<Hidden> {
        let mut hidden = hidden?;
        if self.faults.is_empty() {
            return Some(hidden);
        }
        let says = |field: &str, text: String| {
            Some(Ok(Recorded { fields: BTreeMap::from([(field.to_owned(), text)]), ..Recorded::default() }))
        };
        if task == Task::Solve
            && let Some((field, text)) = self.swayed(member, request)
        {
            hidden.recorded = says(field, text);
            return Some(hidden);
        }
        match task {
            Task::Solve if self.fails(FailureMode::DisobeyTaskSpecification, member) => {
                hidden.recorded = says("answer", UNFIT.into());
            }
            Task::Solve if self.fails(FailureMode::ReasoningActionMismatch, member) => {
                hidden.recorded =
                    says("reasons", format!("All of this adds up. So the answer is {}.", self.elsewise()));
            }
            Task::Solve
                if self.fails(FailureMode::IgnoredOtherAgentsInput, member)
                    && request.messages.iter().any(|message| message.role == Role::Assistant) =>
            {
                // Whoever misleads keeps to what it said.
                hidden.task = Task::Mislead;
            }
            Task::Check if self.fails(FailureMode::IncorrectVerification, member) => {
                let parts = request.messages.iter().flat_map(|message| &message.parts).rev();
                let shown = parts.filter_map(|part| match part {
                    Part::Said { answer, .. } => Some(answer.clone()),
                    _ => None,
                });
                hidden.gold = shown.into_iter().next().unwrap_or(hidden.gold);
            }
            _ => {}
        }
        Some(hidden)
    }

    /// An answer that nobody gives: the conclusion of reasons that the action does not follow, or of a discussion that drifts.
    fn elsewise(&self) -> String {
        match self.item.letters().last() {
            Some(letter) if self.item.gold.as_deref() != Some(letter) => letter.clone(),
            Some(_) => self.item.letters().first().cloned().unwrap_or_default(),
            None => "987654".into(),
        }
    }

    /// Returns the reply as the team understands it under the planted faults.
    pub(super) fn misheard(&self, member: usize, task: Task, reply: Reply) -> Reply {
        match (task, reply) {
            (Task::Check, Ok(value)) if self.fails(FailureMode::UnawareOfTerminationConditions, member) => {
                Ok(rejected(value))
            }
            (_, reply) => reply,
        }
    }

    /// Whether the team stops at the end of this round, although its method goes on.
    pub(super) fn stops_here(&self) -> bool {
        let ends = |fault: &PlantedFault| {
            fault.mode == PlantedMode::Failure(FailureMode::PrematureTermination)
                && fault.turn == self.round
                && fault.on(self.item.index)
        };
        self.faults.iter().any(ends)
    }

    /// Returns the most common of the answers that stand in this round; ties go to the first.
    pub(super) fn standing(&self) -> Option<String> {
        let acts = &self.log.acts;
        let answers: Vec<&str> = (0..acts.rows.len())
            .filter(|n| acts.rows.get(*n).is_some_and(|act| act.kind == 0))
            .filter_map(|n| acts.text(n))
            .collect();
        let supporters = |answer: &str| answers.iter().filter(|other| self.item.same(other, answer)).count();
        answers.iter().rev().max_by_key(|answer| supporters(answer)).map(|answer| (*answer).to_owned())
    }
}

/// Takes out all that was said before: the question is put as if nobody had spoken.
fn reset(brief: &mut Brief) {
    brief.messages.retain(|message| message.role != Role::Assistant);
    for message in brief.messages.iter_mut().filter(|message| message.role == Role::User) {
        message.parts.retain(|part| matches!(part, Part::Text(_)));
    }
}

/// Takes out what one speaker said.
fn forget(brief: &mut Brief, speaker: &str) {
    for message in brief.messages.iter_mut().filter(|message| message.role == Role::User) {
        message.parts.retain(|part| !matches!(part, Part::Said { by, .. } if by == speaker));
    }
}

/// Puts another question in the place of the item's.
fn derail(brief: &mut Brief, question: &str) {
    for part in brief.messages.iter_mut().flat_map(|message| message.parts.iter_mut()) {
        if let Part::Text(text) = part {
            *text = text.replace(question, ELSEWHERE);
        }
    }
}

/// Returns the reply to a check that accepts the answer: the first of two options.
pub(super) fn passing(form: &ResponseFormat) -> Value {
    match form {
        ResponseFormat::Choice(_) => Value::Choice(0),
        ResponseFormat::Record(fields) => Value::Record(fields.iter().map(|(_, form)| passing(form)).collect()),
        ResponseFormat::Number { high, .. } => Value::Number(*high),
        ResponseFormat::List { of, least, .. } => Value::List(vec![passing(of); *least as usize]),
        ResponseFormat::Calls(_) => Value::Calls { text: String::new(), calls: Vec::new() },
        ResponseFormat::Text | ResponseFormat::Vector => Value::Text(String::new()),
    }
}

/// Returns the reply to a check as if it did not accept the answer.
fn rejected(value: Value) -> Value {
    match value {
        Value::Choice(_) => Value::Choice(1),
        Value::Record(values) => Value::Record(values.into_iter().map(rejected).collect()),
        value => value,
    }
}
