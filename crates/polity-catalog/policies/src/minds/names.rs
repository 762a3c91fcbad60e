//! Names and limits that all parts of a mind share.

use polity_kernel::Invalid;

/// Name of the observation field that is 0 if an agent has nothing to decide in a round.
pub const ACTIVE: &str = "active";
/// Prefix of observation fields with right answers, for simulated models: no prompt may show them.
pub const RIGHT: &str = "right-";
/// Prefix of observation fields that are 0 if the action of that name is not offered to the agent.
pub const MAY: &str = "may-";
/// Bounds beyond this count as none.
pub const FAR: f64 = 1e15;
/// Bytes of an open question with its prompts, for estimates of memory.
pub const OPEN_QUESTION: usize = 10_000;
/// Bytes of an agent's share of its group's counts, for estimates of memory.
pub const COUNTS: usize = 300;
/// The field of a reply with the decision, if there is only one.
pub const ANSWER: &str = "answer";
/// The field of a reply with thoughts.
pub const THOUGHTS: &str = "thoughts";

/// An error at a key of the policy's parameters.
pub fn invalid(key: &str, message: impl Into<String>) -> Invalid {
    Invalid { key: key.into(), message: message.into() }
}
