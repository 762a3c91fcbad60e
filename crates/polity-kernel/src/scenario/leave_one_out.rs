//! Leave-one-out designs: an arm with the whole team, and one without each member, or without each role.

use super::design::{Level, placed, wrong};
use crate::method::ABSENT;
use crate::tree::{Node, TreeError, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who is left out of the team, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeaveOneOut {
    /// Each member.
    Members,
    /// Each role, with all members who have it. Members without a role stay.
    Roles,
}

/// The name of the arm with the whole team.
const WHOLE: &str = "whole";

impl LeaveOneOut {
    /// Returns the arms, the whole team first. `node` is the design.
    pub(super) fn arms(self, node: &Node, scenario: &Node) -> Result<Vec<Level>, TreeError> {
        let place = node.get("leave_one_out").unwrap_or(node);
        let fault = |message: &str, help: &str| Err(wrong("design.leave_one_out", &place.origin, message, Some(help)));
        let Some(Value::List(team)) = scenario.get("team").map(|team| &team.value) else {
            return fault(
                "the scenario lists no `team`",
                "list its members: `team: [{name: solver}, {name: checker}]`",
            );
        };
        let word = |member: &Node, key: &str| match member.get(key).map(|node| &node.value) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let mut left_out: Vec<(String, Vec<usize>)> = Vec::new();
        for (i, member) in team.iter().enumerate() {
            let role = word(member, "role");
            let named = match self {
                _ if role.as_deref() == Some(ABSENT) => None,
                LeaveOneOut::Members => Some(word(member, "name").unwrap_or_else(|| format!("member-{}", i + 1))),
                LeaveOneOut::Roles => role,
            };
            let Some(name) = named else { continue };
            match left_out.iter_mut().find(|(other, _)| *other == name) {
                Some((_, members)) if self == LeaveOneOut::Roles => members.push(i),
                Some(_) => {
                    return fault(&format!("two members are named `{name}`"), "give each member a `name` of its own");
                }
                None => left_out.push((name, vec![i])),
            }
        }
        match (self, left_out.is_empty()) {
            (LeaveOneOut::Members, true) => {
                return fault("all members of the team are absent", "give `role: absent` to fewer members");
            }
            (LeaveOneOut::Roles, true) => {
                return fault(
                    "no member of the team has a role",
                    "leave out members instead: `leave_one_out: members`",
                );
            }
            _ => {}
        }
        let absent = |i: usize| {
            let path = format!("team[{i}].role");
            let value = Node { origin: place.origin.clone(), ..Node::built(Value::Text(ABSENT.into())) };
            let value = placed(&value, &path, &place.origin, scenario);
            (path, value)
        };
        let mut arms = vec![(WHOLE.to_owned(), Vec::new())];
        let without = |(name, members): (String, Vec<usize>)| {
            (format!("without-{name}"), members.into_iter().map(absent).collect())
        };
        arms.extend(left_out.into_iter().map(without));
        Ok(arms)
    }
}
