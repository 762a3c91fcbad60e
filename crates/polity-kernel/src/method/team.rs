//! A team that works inside a society: a method, its members, and who hears whom among them.

use super::{ABSENT, Facts, Member, MethodHost, TeamContext, Verdict};
use crate::AgentId;
use crate::ask::{Ask, Settings};
use crate::items::Item;
use crate::policy::Fault;
use crate::scenario::MemberSource;
use crate::toolbox::Toolbox;
use crate::topology::Topology;
use crate::tree::{Invalid, Node, TreeError, nearest};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Maximum number of members of a team.
pub(crate) const MOST_MEMBERS: usize = 10_000;
/// Maximum number of retries per question to a member.
pub(crate) const MOST_RETRIES: u8 = 10;

/// The methods of a build, by name.
pub(crate) trait Methods: fmt::Debug {
    /// Returns what is known of a method before it is opened.
    fn facts(&self, method: &str) -> Option<&Facts>;
    /// Opens a method. `path` is the path of its node, for errors.
    ///
    /// # Errors
    /// An unknown method, or parameters that do not fit.
    fn open_method(&self, node: &Node, path: &str, setup: &TeamSetup<'_>) -> Result<Box<dyn MethodHost>, TreeError>;
}

/// What a method is opened with, besides its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TeamSetup<'a> {
    /// Number of members.
    pub members: usize,
    /// Number of rounds.
    pub rounds: u32,
    /// The texts of the scenario's files, by path.
    pub texts: &'a BTreeMap<String, Arc<str>>,
}

/// A policy's description of a team, from its parameters.
#[derive(Clone, Copy, Debug)]
pub struct TeamSource<'a> {
    /// The method: a name, or `{kind: ...}` with its parameters.
    pub method: &'a Node,
    /// Number of members. Default: as many as are listed, or the method's default.
    pub members: Option<u32>,
    /// The members. If empty, all are alike.
    pub listed: &'a [MemberSource],
    /// The model of members that name none. Default: the scenario's.
    pub model: Option<&'a str>,
    /// Sampling settings of models, unless a member has its own.
    pub settings: Settings,
    /// Rounds that the method works in a turn. Default: the method's.
    pub rounds: Option<u32>,
    /// How often a member is asked again when its reply is unusable.
    pub retries: u8,
}

impl TeamSource<'_> {
    pub(crate) fn open(
        &self,
        methods: &dyn Methods,
        toolbox: &Arc<Toolbox>,
        texts: &BTreeMap<String, Arc<str>>,
    ) -> Result<Team, Invalid> {
        let TeamSource { method, members: n, listed, model, settings, rounds, retries } = *self;
        let invalid = |key: &str, message: String| Invalid { key: key.into(), message };
        let of_tree = |error: TreeError| invalid(&error.path, error.to_string());
        let (kind, _) = method.split_kind("method").map_err(of_tree)?;
        let facts = methods.facts(&kind.name);
        let usual = facts.map(|facts| facts.usual);
        let n = n.map(|n| n as usize).or((!listed.is_empty()).then_some(listed.len()));
        let n = n.or(usual.map(|usual| usual.members as usize)).unwrap_or(1);
        Invalid::within(1..=MOST_MEMBERS, "members", n)?;
        let rounds = rounds.or(usual.map(|usual| usual.rounds)).unwrap_or(1);
        Invalid::unless(rounds > 0, "rounds", "a method needs at least one round")?;
        Invalid::within(0..=MOST_RETRIES, "max_retries", retries)?;
        let members = members(n, listed, model, settings)?;
        if let Some(facts) = facts {
            roles_exist(listed, &kind.name, facts.roles)?;
        }
        tools_exist(listed, toolbox, &[])?;
        let method =
            methods.open_method(method, "method", &TeamSetup { members: n, rounds, texts }).map_err(of_tree)?;
        all_act(&[method.as_ref()], &members, listed.len())?;
        let (topology, toolbox) = (Topology::Complete { n: n as u32 }, toolbox.clone());
        Ok(Team { method, members, topology, retries, toolbox })
    }
}

/// A team that acts as one agent of a society ([`crate::policy::Turn::deliberate`]). A policy opens it with
/// [`crate::policy::PolicySetup::team`].
pub struct Team {
    pub(crate) method: Box<dyn MethodHost>,
    pub(crate) members: Vec<Member>,
    pub(crate) topology: Topology,
    pub(crate) retries: u8,
    pub(crate) toolbox: Arc<Toolbox>,
}

impl Team {
    /// Returns the members.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Checks whether the method can work on such an item.
    ///
    /// # Errors
    /// What is missing.
    pub fn suits(&self, item: &Item) -> Result<(), &'static str> {
        self.method.suits(item)
    }

    /// Returns the models and tools that the team may ask.
    #[must_use]
    pub fn models(&self) -> Vec<String> {
        let tools = self.method.tools().iter().map(|tool| (*tool).to_owned());
        let members = self.members.iter().map(|member| member.model.clone());
        let mut models: Vec<String> = members.chain(tools).chain(self.toolbox.targets()).collect();
        models.sort_unstable();
        models.dedup();
        models
    }

    /// Works on an item on behalf of an agent.
    pub(crate) async fn work(&self, item: &Item, agent: AgentId, seed: u64, ask: Ask<'_>) -> Result<Verdict, Fault> {
        let mut context = TeamContext::of_agent(self, item, agent, seed, ask);
        self.method.work(&mut context).await
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("members", &self.members).finish_non_exhaustive()
    }
}

/// Returns the `n` members of a team: the listed ones, repeated in order, each with the team's model and settings unless it has its
/// own.
pub(crate) fn members(
    n: usize,
    listed: &[MemberSource],
    model: Option<&str>,
    settings: Settings,
) -> Result<Vec<Member>, Invalid> {
    let invalid = |key: &str, message: String| Invalid { key: key.into(), message };
    let member = |i: usize| {
        let source = listed.get(i % listed.len().max(1));
        let Some(model) = source.and_then(|source| source.model.as_deref()).or(model) else {
            return Err(invalid("team", format!("member {i} has no model; add `model: sim/medium`")));
        };
        if !model.contains('/') {
            let message = format!("write a model as `provider/model`, for instance `sim/medium`, not as `{model}`");
            return Err(invalid("model", message));
        }
        let time = i / listed.len().max(1);
        let name = match source.and_then(|source| source.name.clone()) {
            Some(name) if time == 0 => name,
            Some(name) => format!("{name} {}", time + 1),
            None => format!("Agent {}", i + 1),
        };
        let settings = source.map_or(settings, |source| settings.with(source.settings));
        settings.check().map_err(|error| invalid(&format!("team.{}", error.key), error.message))?;
        let MemberSource { persona, role, adversarial, tools, .. } = source.cloned().unwrap_or_default();
        Ok(Member { name, model: model.to_owned(), persona, role, adversarial, settings, tools })
    };
    (0..n).map(member).collect()
}

/// Checks that every tool that a member is allowed exists, in the toolbox or among the actions of the environment.
pub(crate) fn tools_exist(listed: &[MemberSource], toolbox: &Toolbox, actions: &[&str]) -> Result<(), Invalid> {
    for (i, member) in listed.iter().enumerate() {
        let named = member.tools.iter().flatten();
        let action = |name: &str| actions.contains(&name) || !actions.is_empty() && name == super::ENVIRONMENT;
        let others: Vec<String> = named.filter(|name| !action(name)).cloned().collect();
        let checked = toolbox.check(&others);
        checked.map_err(|message| Invalid { key: format!("team[{i}].tools"), message })?;
    }
    Ok(())
}

/// Checks that the method has every role that a member is given: a member with any other role would never be asked.
pub(crate) fn roles_exist(listed: &[MemberSource], method: &str, roles: &[&str]) -> Result<(), Invalid> {
    let unknown = |role: &&str| *role != ABSENT && !roles.contains(role);
    let Some((i, role)) =
        listed.iter().enumerate().find_map(|(i, member)| Some((i, member.role.as_deref().filter(unknown)?)))
    else {
        return Ok(());
    };
    let near = nearest(role, roles.iter().copied()).map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
    let known = match roles {
        [] => format!("`{method}` has no roles"),
        roles => format!("`{method}` has no role `{role}`{near}; it has {}", roles.join(", ")),
    };
    let message = format!(
        "{known}. A job title is not a role: leave `role` out, and write `persona: You are a {role}.` Members without a role work on the \
         items; `role: {ABSENT}` takes a member out"
    );
    Err(Invalid { key: format!("team[{i}].role"), message })
}

/// Returns why a member never acts if methods ask the first member of each role alone; `None` if it does. `method`: its name.
pub(crate) fn second_of_role(method: &str, team: &[Member], member: usize) -> Option<String> {
    let role = team.get(member)?.role.as_deref()?;
    let first = team.get(..member)?.iter().find(|other| other.role.as_deref() == Some(role))?;
    Some(format!("`{method}` has one `{role}`, and `{}` is it already", first.name))
}

/// Checks that the method can work with the team, and that each of its `listed` members can act, unless it is absent. `methods`: the
/// method at first, and after each change of the scenario. It is enough that a member can act with one of them.
pub(crate) fn all_act(methods: &[&dyn MethodHost], team: &[Member], listed: usize) -> Result<(), Invalid> {
    for method in methods {
        method.check_team(team).map_err(|invalid| Invalid { key: format!("method.{}", invalid.key), ..invalid })?;
    }
    let idle = |i: usize| {
        let reasons: Option<Vec<String>> = methods.iter().map(|method| method.idle(team, i)).collect();
        Some((i, reasons?.into_iter().next()?))
    };
    let mut present = (0..listed.min(team.len())).filter(|i| !team[*i].is_absent());
    let Some((i, why)) = present.find_map(idle) else { return Ok(()) };
    let message = format!(
        "`{}` can never act: {why}. Leave it out of the team, or take it out of this run with `role: {ABSENT}`",
        team[i].name
    );
    Err(Invalid { key: format!("team[{i}]"), message })
}
