//! Ways in which teams fail: the 14 modes of Cemri et al., "Why Do Multi-Agent LLM Systems Fail?", 2025, in three categories.

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

    /// Returns its category, the first part of its number.
    #[must_use]
    pub fn category(self) -> FailureCategory {
        match self.number().as_bytes().first() {
            Some(b'1') => FailureCategory::Specification,
            Some(b'2') => FailureCategory::InterAgentMisalignment,
            _ => FailureCategory::Verification,
        }
    }

    fn facts(self) -> (&'static str, &'static str) {
        match self {
            FailureMode::DisobeyTaskSpecification => ("1.1", "disobey-task-specification"),
            FailureMode::DisobeyRoleSpecification => ("1.2", "disobey-role-specification"),
            FailureMode::StepRepetition => ("1.3", "step-repetition"),
            FailureMode::LossOfConversationHistory => ("1.4", "loss-of-conversation-history"),
            FailureMode::UnawareOfTerminationConditions => ("1.5", "unaware-of-termination-conditions"),
            FailureMode::ConversationReset => ("2.1", "conversation-reset"),
            FailureMode::FailToAskForClarification => ("2.2", "fail-to-ask-for-clarification"),
            FailureMode::TaskDerailment => ("2.3", "task-derailment"),
            FailureMode::InformationWithholding => ("2.4", "information-withholding"),
            FailureMode::IgnoredOtherAgentsInput => ("2.5", "ignored-other-agents-input"),
            FailureMode::ReasoningActionMismatch => ("2.6", "reasoning-action-mismatch"),
            FailureMode::PrematureTermination => ("3.1", "premature-termination"),
            FailureMode::NoOrIncompleteVerification => ("3.2", "no-or-incomplete-verification"),
            FailureMode::IncorrectVerification => ("3.3", "incorrect-verification"),
        }
    }
}

impl fmt::Display for FailureMode {
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
    }
}
