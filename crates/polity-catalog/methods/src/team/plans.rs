//! Search over calls of tools: a tree whose nodes are states of the episode and of the tools, and whose edges are calls.

use super::talk;
use polity_kernel::ask::{ChatMessage, ResponseFormat, Role, Task, Value};
use polity_kernel::method::{Brief, Prompt, TeamContext, ToolMark};
use polity_kernel::policy::Fault;
use polity_kernel::rng::Draws;
use polity_kernel::tool::{Arguments, ToolCall};
use std::collections::BTreeSet;

/// A node of the tree.
#[derive(Clone, Debug)]
struct Node {
    mark: ToolMark,
    /// The calls from the root.
    calls: Vec<ToolCall>,
    /// Their cost: minus the reward.
    cost: f64,
    /// The estimated cost that remains.
    remains: f64,
    done: bool,
    solved: bool,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The calls of the cheapest plan that was found, and its cost.
    pub plan: Option<(Vec<ToolCall>, f64)>,
    /// Nodes that were expanded.
    pub expanded: u32,
}

/// Which calls lead from a node to its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branching {
    /// Every offered tool that needs no arguments.
    All,
    /// The distinct calls in so many replies of a member.
    Proposed {
        /// The member.
        member: usize,
        /// Replies.
        replies: u32,
    },
}

/// The instruction to a member that proposes calls.
pub const PROPOSE: Prompt =
    Prompt::new("propose-call", "asks a member for the next calls of tools", include_str!("prompts/propose-call.md"));

/// The calls that were made before.
pub const SO_FAR: Prompt = Prompt::new(
    "calls-so-far",
    "shows a member the calls that lead to where things stand, before it proposes the next",
    "Calls so far: {{ calls }}.",
)
.must_hold(&["calls"]);

/// Expands the node with the least cost plus weighted estimate first (A*); with a weight of 0, the least cost first. Stops at the first
/// solution that it takes up, or after `most` nodes. States that were reached before are not entered again.
///
/// # Errors
/// A fault of the environment.
pub async fn best_first(
    context: &mut TeamContext<'_>,
    branching: Branching,
    weight: f64,
    most: u32,
) -> Result<Found, Fault> {
    let root = node(context, Vec::new(), 0.0)?;
    let (mut open, mut known) = (vec![root.clone()], BTreeSet::from([root.mark.key()?]));
    let mut found = Found::default();
    // The node with the least sum; of equal ones the one nearest to the goal, then the oldest.
    let rank = |node: &Node| {
        // Without weight the estimate decides nothing, not even between equals.
        let near = if weight > 0.0 { node.remains } else { f64::from(u8::from(!node.solved)) };
        (node.cost + weight * node.remains, near)
    };
    let first = |open: &[Node]| {
        let order = |a: &usize, b: &usize| {
            let ((sum, near), (other_sum, other_near)) = (rank(&open[*a]), rank(&open[*b]));
            sum.total_cmp(&other_sum).then(near.total_cmp(&other_near)).then(a.cmp(b))
        };
        (0..open.len()).min_by(order)
    };
    while let Some(at) = first(&open) {
        let node = open.remove(at);
        if node.solved {
            found.plan = Some((node.calls, node.cost));
            break;
        }
        if found.expanded >= most {
            break;
        }
        if node.done || node.remains.is_infinite() {
            continue;
        }
        found.expanded += 1;
        for child in children(context, &node, branching).await? {
            if known.insert(child.mark.key()?) {
                open.push(child);
            }
        }
    }
    context.go_back(&root.mark)?;
    Ok(found)
}

/// Monte Carlo tree search (UCT; Kocsis and Szepesvari 2006): descends by upper confidence bounds, expands one node, plays on at random,
/// and hands the result up. Returns the cheapest solution seen in `most` expansions.
///
/// # Errors
/// A fault of the environment.
pub async fn monte_carlo(
    context: &mut TeamContext<'_>,
    branching: Branching,
    exploration: f64,
    most: u32,
) -> Result<Found, Fault> {
    struct Branch {
        node: Node,
        parent: Option<usize>,
        children: Option<Vec<usize>>,
        visits: f64,
        value: f64,
    }
    let root = node(context, Vec::new(), 0.0)?;
    let start = root.mark.clone();
    let mut tree = vec![Branch { node: root, parent: None, children: None, visits: 0.0, value: 0.0 }];
    let (mut found, mut draws) = (Found::default(), context.draws());
    // Descents that end at a finished node expand nothing, so they are counted apart.
    for _ in 0..10 * most {
        if found.expanded >= most {
            break;
        }
        let mut at = 0;
        while let Some(children) = tree[at].children.as_ref().filter(|children| !children.is_empty()) {
            let parent = tree[at].visits.max(1.0);
            let bound = |i: &usize| match &tree[*i] {
                branch if branch.visits == 0.0 => f64::INFINITY,
                branch => branch.value / branch.visits + exploration * libm::sqrt(libm::log(parent) / branch.visits),
            };
            let best = children.iter().copied().max_by(|a, b| bound(a).total_cmp(&bound(b)).then(b.cmp(a)));
            at = best.unwrap_or(0);
        }
        if !tree[at].node.done && tree[at].children.is_none() {
            found.expanded += 1;
            let nodes = children(context, &tree[at].node.clone(), branching).await?;
            let first = tree.len();
            for node in nodes {
                tree.push(Branch { node, parent: Some(at), children: None, visits: 0.0, value: 0.0 });
            }
            tree[at].children = Some((first..tree.len()).collect());
            at = if tree.len() > first { first + draws.below((tree.len() - first) as u64) as usize } else { at };
        }
        let end = rollout(context, &tree[at].node, &mut draws).await?;
        // Cheap solutions are worth most, and no solution nothing.
        let value = if end.solved { 1.0 / (1.0 + end.cost) } else { 0.0 };
        if end.solved && found.plan.as_ref().is_none_or(|(_, cost)| end.cost < *cost) {
            found.plan = Some((end.calls, end.cost));
        }
        let mut up = Some(at);
        while let Some(branch) = up.and_then(|i| tree.get_mut(i)) {
            branch.visits += 1.0;
            branch.value += value;
            up = branch.parent;
        }
    }
    context.go_back(&start)?;
    Ok(found)
}

/// Plays on from a node with random calls until the episode ends.
async fn rollout(context: &mut TeamContext<'_>, from: &Node, draws: &mut Draws) -> Result<Node, Fault> {
    let mut at = from.clone();
    context.go_back(&at.mark)?;
    while !at.done {
        let calls = bare_calls(context)?;
        let Some(call) = calls.get(draws.below(calls.len().max(1) as u64) as usize) else { break };
        at = called(context, &at, call).await?;
    }
    Ok(at)
}

/// Returns the children of a node.
async fn children(context: &mut TeamContext<'_>, node: &Node, branching: Branching) -> Result<Vec<Node>, Fault> {
    context.go_back(&node.mark)?;
    let calls = match branching {
        Branching::All => bare_calls(context)?,
        Branching::Proposed { member, replies } => proposed(context, member, replies, &node.calls).await?,
    };
    let mut children = Vec::with_capacity(calls.len());
    for call in calls {
        context.go_back(&node.mark)?;
        children.push(called(context, node, &call).await?);
    }
    Ok(children)
}

/// Returns a call of every offered tool that needs no arguments.
fn bare_calls(context: &TeamContext<'_>) -> Result<Vec<ToolCall>, Fault> {
    let bare = |schema: &serde_json::Value| schema["required"].as_array().is_none_or(Vec::is_empty);
    let tools = context.tools(0)?;
    let tools = tools.iter().filter(|tool| bare(&tool.schema()));
    Ok(tools.map(|tool| ToolCall::new(&*tool.name, &Arguments::new())).collect())
}

/// A member proposes calls: the distinct ones of several replies, in order of first mention.
async fn proposed(
    context: &mut TeamContext<'_>,
    member: usize,
    replies: u32,
    made: &[ToolCall],
) -> Result<Vec<ToolCall>, Fault> {
    let tools = ResponseFormat::Calls(context.tools(member)?.into());
    let so_far: Vec<String> = made.iter().map(|call| format!("{}({})", call.tool, call.arguments)).collect();
    let shown = if so_far.is_empty() { "none".to_owned() } else { so_far.join("; ") };
    let mut messages: Vec<ChatMessage> = talk(context, member, &[], PROPOSE);
    messages.push(ChatMessage::text(Role::User, context.filled(&SO_FAR, &[("calls", &shown)])));
    let brief = Brief::new(member, messages, tools).task(Task::Solve);
    let briefs = (0..replies).map(|k| brief.clone().sample(k)).collect();
    let mut calls: Vec<ToolCall> = Vec::new();
    for reply in context.ask_all(briefs).await {
        let Ok(Value::Calls { calls: said, .. }) = reply else { continue };
        for call in said {
            if !calls.contains(&call) {
                calls.push(call);
            }
        }
    }
    Ok(calls)
}

/// Makes a call from a node, at whose mark the tools are.
async fn called(context: &mut TeamContext<'_>, from: &Node, call: &ToolCall) -> Result<Node, Fault> {
    context.call(0, vec![call.clone()]).await?;
    let mut calls = from.calls.clone();
    calls.push(call.clone());
    node(context, calls, from.cost)
}

/// Returns the present state as a node. `cost`: that of its parent.
fn node(context: &mut TeamContext<'_>, calls: Vec<ToolCall>, cost: f64) -> Result<Node, Fault> {
    let mark = context.mark()?;
    let Some(episode) = context.episode_ref() else {
        return Ok(Node { mark, calls, cost: cost + 1.0, remains: 0.0, done: false, solved: false });
    };
    Ok(Node {
        mark,
        calls,
        cost: 0.0 - episode.total_reward(0),
        remains: episode.estimate()?.unwrap_or(0.0),
        done: episode.is_done(),
        solved: episode.is_done() && episode.solved(None)? != Some(false),
    })
}

/// Makes the calls of a plan, one after the other.
///
/// # Errors
/// A fault of the environment.
pub async fn carry_out(context: &mut TeamContext<'_>, plan: &[ToolCall]) -> Result<(), Fault> {
    for call in plan {
        context.call(0, vec![call.clone()]).await?;
    }
    Ok(())
}
