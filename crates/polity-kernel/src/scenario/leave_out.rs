//! Leave-one-out designs: an arm with the whole team, and one without each member, or without each role.

use super::design::{Level, placed, wrong};
use crate::method::ABSENT;
use crate::tree::{Node, TreeError, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who is left out of the team, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeaveOut {
    /// Each member.
    Members,
    /// Each role, with all members who have it. Members without a role stay.
    Roles,
}

/// The name of the arm with the whole team.
const WHOLE: &str = "whole";

impl LeaveOut {
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
        let role = |member: &Node| word(member, "role").filter(|role| role != ABSENT);
        let mut left_out: Vec<(String, Vec<usize>)> = Vec::new();
        match self {
            LeaveOut::Members => {
                let here = |(_, member): &(usize, &Node)| word(member, "role").is_none_or(|role| role != ABSENT);
                for (i, member) in team.iter().enumerate().filter(here) {
                    let name = word(member, "name").unwrap_or_else(|| format!("member-{}", i + 1));
                    left_out.push((name, vec![i]));
                }
            }
            LeaveOut::Roles => {
                let mut roles: BTreeMap<String, Vec<usize>> = BTreeMap::new();
                for (i, member) in team.iter().enumerate() {
                    role(member).into_iter().for_each(|role| roles.entry(role).or_default().push(i));
                }
                left_out.extend(roles);
            }
        }
        if left_out.is_empty() {
            return fault("no member of the team has a role", "leave out members instead: `leave_one_out: members`");
        }
        let mut arms = vec![(WHOLE.to_owned(), Vec::new())];
        for (name, members) in left_out {
            let absent = |i: usize| {
                let path = format!("team[{i}].role");
                let value = Node { origin: place.origin.clone(), ..Node::built(Value::Text(ABSENT.into())) };
                (path.clone(), placed(&value, &path, &place.origin, scenario))
            };
            let arm = format!("without-{name}");
            if arms.iter().any(|(other, _)| *other == arm) {
                return fault(&format!("two members are named `{name}`"), "give each member a `name` of its own");
            }
            arms.push((arm, members.into_iter().map(absent).collect()));
        }
        Ok(arms)
    }
}
