//! Ways in which teams fail: the 14 modes of Cemri et al., "Why Do Multi-Agent LLM Systems Fail?", 2025, in three categories; and ways in
//! which discussions go wrong from a turn on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A failure mode. The order and the numbers are those of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureMode {
    /// A member does not keep to the constraints of the task.
    DisobeyTaskSpecification,
    /// A member does what belongs to the role of another.
    DisobeyRoleSpecification,
    /// A completed step is done again without need.
    StepRepetition,
    /// A member lacks what it said or heard before, although the method shows it.
    LossOfConversationHistory,
    /// The work goes on after the condition for its end.
    UnawareOfTerminationConditions,
    /// The conversation begins again without reason.
    ConversationReset,
    /// A member goes on without asking although something is unclear.
    FailToAskForClarification,
    /// The work departs from the task.
    TaskDerailment,
    /// What a member knows does not reach the others.
    InformationWithholding,
    /// A member does not consider what others said.
    IgnoredOtherAgentsInput,
    /// A member reasons one way and acts another way.
    ReasoningActionMismatch,
    /// The work ends before its condition for the end.
    PrematureTermination,
    /// An answer is not checked, or not completely.
    NoOrIncompleteVerification,
    /// A check passes what is wrong.
    IncorrectVerification,
}

/// A category of failure modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureCategory {
    /// Specification and design of the system.
    Specification,
    /// Between the agents.
    InterAgentMisalignment,
    /// Verification of the task and its end.
    Verification,
}

impl FailureMode {
    /// All of them, in order.
    pub const ALL: [FailureMode; 14] = [
        FailureMode::DisobeyTaskSpecification,
        FailureMode::DisobeyRoleSpecification,
        FailureMode::StepRepetition,
        FailureMode::LossOfConversationHistory,
        FailureMode::UnawareOfTerminationConditions,
        FailureMode::ConversationReset,
        FailureMode::FailToAskForClarification,
        FailureMode::TaskDerailment,
        FailureMode::InformationWithholding,
        FailureMode::IgnoredOtherAgentsInput,
        FailureMode::ReasoningActionMismatch,
        FailureMode::PrematureTermination,
        FailureMode::NoOrIncompleteVerification,
        FailureMode::IncorrectVerification,
    ];

    /// Returns its number in the paper, e.g. `1.3`.
    #[must_use]
    pub fn number(self) -> &'static str {
        self.facts().0
    }

    /// Returns its name in scenarios and output.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().1
    }

    /// Returns what it means, in our own words, for whoever labels a record.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.facts().2
    }

    /// Returns its category, the first part of its number.
    #[must_use]
    pub fn category(self) -> FailureCategory {
        match self.number().as_bytes().first() {
            Some(b'1') => FailureCategory::Specification,
            Some(b'2') => FailureCategory::InterAgentMisalignment,
            _ => FailureCategory::Verification,
        }
    }

    fn facts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            FailureMode::DisobeyTaskSpecification => {
                ("1.1", "disobey-task-specification", "the work or the answer breaks a rule that the task states")
            }
            FailureMode::DisobeyRoleSpecification => {
                ("1.2", "disobey-role-specification", "a member does what belongs to the role of another")
            }
            FailureMode::StepRepetition => {
                ("1.3", "step-repetition", "a step that was completed is done again without need")
            }
            FailureMode::LossOfConversationHistory => (
                "1.4",
                "loss-of-conversation-history",
                "a member has lost what was said before, and falls back on an earlier state",
            ),
            FailureMode::UnawareOfTerminationConditions => (
                "1.5",
                "unaware-of-termination-conditions",
                "the team continues although its condition for stopping is met",
            ),
            FailureMode::ConversationReset => (
                "2.1",
                "conversation-reset",
                "the conversation begins again without reason, and what was reached is lost",
            ),
            FailureMode::FailToAskForClarification => (
                "2.2",
                "fail-to-ask-for-clarification",
                "a member does not ask although what it was told is unclear or incomplete",
            ),
            FailureMode::TaskDerailment => ("2.3", "task-derailment", "the work leaves the task for something else"),
            FailureMode::InformationWithholding => {
                ("2.4", "information-withholding", "a member knows what others need, and does not tell it")
            }
            FailureMode::IgnoredOtherAgentsInput => {
                ("2.5", "ignored-other-agents-input", "a member does not take up what others told it")
            }
            FailureMode::ReasoningActionMismatch => {
                ("2.6", "reasoning-action-mismatch", "a member does or answers something else than its own reasons say")
            }
            FailureMode::PrematureTermination => (
                "3.1",
                "premature-termination",
                "the work ends before its aim is reached or all that is needed was said",
            ),
            FailureMode::NoOrIncompleteVerification => {
                ("3.2", "no-or-incomplete-verification", "a result is not checked, or not completely")
            }
            FailureMode::IncorrectVerification => {
                ("3.3", "incorrect-verification", "a result is checked, but the check is wrong")
            }
        }
    }
}

impl fmt::Display for FailureMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A way in which a discussion goes wrong from a turn on: the three of Becker, "Multi-Agent Large Language Models for Conversational
/// Task-Solving", 2024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiscussionFault {
    /// A right answer that most members gave is lost, and does not come back.
    ProblemDrift,
    /// The messages of all members become nearly the same.
    AlignmentCollapse,
    /// One member says much more than all the others.
    Monopolisation,
}

impl DiscussionFault {
    /// All of them, in order.
    pub const ALL: [DiscussionFault; 3] =
        [DiscussionFault::ProblemDrift, DiscussionFault::AlignmentCollapse, DiscussionFault::Monopolisation];

    /// Returns its name in scenarios and output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DiscussionFault::ProblemDrift => "problem-drift",
            DiscussionFault::AlignmentCollapse => "alignment-collapse",
            DiscussionFault::Monopolisation => "monopolisation",
        }
    }
}

impl fmt::Display for DiscussionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_scenarios_and_numbers_ascend() {
        let names = FailureMode::ALL.map(|mode| serde_json::to_value(mode).unwrap());
        assert_eq!(names, FailureMode::ALL.map(|mode| serde_json::Value::from(mode.name())));
        assert!(FailureMode::ALL.is_sorted_by(|a, b| a.number() < b.number() && a < b));
        let names = DiscussionFault::ALL.map(|fault| serde_json::to_value(fault).unwrap());
        assert_eq!(names, DiscussionFault::ALL.map(|fault| serde_json::Value::from(fault.name())));
    }
}
