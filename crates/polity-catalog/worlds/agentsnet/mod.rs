//! Five problems of distributed computing on a network, each to be solved by messages between neighbours. See README.md.

mod score;
#[cfg(test)]
mod tests;

use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::topology::Topology;
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use polity_kernel::{AgentId, Invalid};
use schemars::JsonSchema;
use score::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<AgentsNet>(files);
}

/// Most steps of the search for the diameter.
const MOST_STEPS: u64 = 500_000_000;

/// What the agents have to solve together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Problem {
    /// Every agent takes one of Δ + 1 colours, and no two neighbours take the same. Δ is the highest number of neighbours.
    #[default]
    Coloring,
    /// Every tie has an agent in the cover, and no agent could leave it.
    VertexCover,
    /// Agents form pairs of neighbours, and no two neighbours remain single.
    Matching,
    /// Exactly one agent is the leader.
    LeaderElection,
    /// All agents agree on 0 or 1; the value is one that some agent began with.
    Consensus,
}

/// Parameters of the world.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What the agents have to solve together.
    problem: Problem,
    /// Rounds of messages before the answers; by default, twice the diameter of the network plus one.
    rounds: Option<u32>,
    /// Consensus: number of agents that begin with 0, drawn by the seed; the others begin with 1. By default, half of them.
    zeros: Option<u32>,
}

/// Agents on a network that exchange messages and then answer.
pub struct AgentsNet {
    problem: Problem,
    /// Rounds of messages.
    rounds: u32,
    zeros: u32,
    /// Δ + 1.
    colours: u32,
    topology: Topology,
    seen: Seen,
}

/// Observations of agents.
struct Seen {
    lot: NumberSlot,
    value: NumberSlot,
    neighbours: TableSlot,
}

/// The lots, the answers, and how good they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// By agent: all numbers from 0 on, in an order drawn by the seed.
    lots: Vec<u32>,
    /// Valid answers; a single agent of a matching answers -1.
    answers: Vec<Option<i64>>,
    round: u32,
    verdict: Verdict,
}

/// Returns the largest distance between two agents that messages connect.
fn diameter(topology: &Topology) -> u32 {
    if let Topology::Complete { n } = topology {
        return u32::from(*n > 1);
    }
    let n = topology.n();
    let (mut found_from, mut queue) = (vec![u32::MAX; n as usize], VecDeque::new());
    let mut largest = 0;
    for start in 0..n {
        found_from[start as usize] = start;
        queue.push_back((start, 0));
        while let Some((agent, distance)) = queue.pop_front() {
            largest = largest.max(distance);
            topology.neighbours(agent).for_each(|other| {
                if found_from[other as usize] != start {
                    found_from[other as usize] = start;
                    queue.push_back((other, distance + 1));
                }
            });
        }
    }
    largest
}

impl AgentsNet {
    fn declare(declare: &mut DeclareWorld<Self>, problem: Problem, colours: u32, agents: u32) -> Seen {
        let doc = "0: coloring, 1: vertex cover, 2: matching, 3: leader election, 4: consensus";
        declare.shared_number("problem", doc, move |_, _| f64::from(problem as u8));
        let doc = "rounds of messages to come before the answers; 0: answer now";
        declare.shared_number("left", doc, |world, network| f64::from(world.rounds.saturating_sub(network.round)));
        declare.shared_number("colours", "the colours, from 1 to this", move |_, _| f64::from(colours));
        let lot = declare.number_slot("lot", "a number that no other agent has, drawn by lot");
        let value = declare.number_slot("value", "consensus: the value that the agent begins with, 0 or 1; else 0");
        let neighbours = declare.table_slot("neighbours", ["agent"], "the agents that the agent hears");
        let words = |words: [&str; 2]| ActionArgument::Choice(words.map(String::from).into());
        let (argument, doc) = match problem {
            Problem::Coloring => {
                (ActionArgument::Number { low: 1.0, high: f64::from(colours) }, "the colour that the agent takes")
            }
            Problem::VertexCover => (words(["no", "yes"]), "whether the agent is in the cover"),
            Problem::Matching => {
                let argument = ActionArgument::Number { low: -1.0, high: f64::from(agents.saturating_sub(1)) };
                (argument, "the neighbour with whom the agent forms a pair; -1: it stays single")
            }
            Problem::LeaderElection => (words(["no", "yes"]), "whether the agent is the leader"),
            Problem::Consensus => (words(["0", "1"]), "the value agreed on"),
        };
        declare.action("answer", argument, format!("{doc}; counts after the last round of messages"));
        declare.action("say", ActionArgument::Text, "tell all neighbours something; they read it in the next round");
        let doc = "the agent's answer, as a number; -1 if it stays single, or gave no valid answer";
        declare.column("answer", doc, None, |_, network, who| {
            network.answers[*who as usize].map_or(-1.0, |answer| answer as f64)
        });
        let doc = "the agent's lot: a number that no other agent has";
        declare.column("lot", doc, None, |_, network, who| f64::from(network.lots[*who as usize]));
        let doc = "how far the answers solve the problem, from 0 to 1; 0 before they are given";
        declare.scalar("score", doc, |_, network| network.verdict.score);
        let doc = "1 if the answers solve the problem, else 0";
        declare.scalar("solved", doc, |_, network| f64::from(u8::from(network.verdict.score >= 1.0)));
        declare
            .scalar("rounds", "rounds of messages so far", |world, network| f64::from(network.round.min(world.rounds)));
        let (name, doc) = match problem {
            Problem::Coloring => ("colours", "number of different colours taken"),
            Problem::VertexCover => ("cover", "number of agents in the cover"),
            Problem::Matching => ("pairs", "number of pairs of neighbours that name each other"),
            Problem::LeaderElection => ("leaders", "number of agents that say they are the leader"),
            Problem::Consensus => ("ones", "number of agents that answer 1"),
        };
        declare.scalar(name, doc, |_, network| f64::from(network.verdict.count));
        Seen { lot, value, neighbours }
    }

    /// Returns the value that an agent begins with.
    fn value(&self, network: &Network, who: AgentId) -> i64 {
        i64::from(network.lots[who as usize] >= self.zeros)
    }

    /// Returns an answer that the problem allows; `None` for others.
    fn valid(&self, value: f64) -> Option<i64> {
        let (low, high) = match self.problem {
            Problem::Coloring => (1.0, f64::from(self.colours)),
            Problem::Matching => (-1.0, f64::from(self.topology.n()) - 1.0),
            Problem::VertexCover | Problem::LeaderElection | Problem::Consensus => (0.0, 1.0),
        };
        ((low..=high).contains(&value) && value.fract() == 0.0).then_some(value as i64)
    }
}

impl World for AgentsNet {
    const NAME: &'static str = "agentsnet";
    const SUMMARY: &'static str =
        "Colour a network, cover it, pair up, elect a leader or agree, by messages to neighbours";
    type Params = Params;
    type State = Network;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let (agents, topology) = (setup.agents, setup.topology);
        let late = "the world has no answers of later rounds; leave out `answers: {lag: ...}`";
        Invalid::unless(setup.lag == 0, "kind", late)?;
        let zeros = params.zeros.unwrap_or(agents / 2);
        Invalid::within(0..=agents, "zeros", zeros)?;
        let rounds = match params.rounds {
            Some(rounds) => rounds,
            None => {
                let steps = u64::from(agents).saturating_mul(topology.arcs());
                let small = matches!(topology, Topology::Complete { .. }) || steps <= MOST_STEPS;
                let message = format!("the diameter of so large a network ({agents} agents) takes long: set `rounds`");
                Invalid::unless(small, "rounds", message)?;
                2 * diameter(topology) + 1
            }
        };
        let colours = (0..topology.n()).map(|i| topology.degree(i)).max().unwrap_or(0) + 1;
        let seen = AgentsNet::declare(declare, params.problem, colours, agents);
        Ok(AgentsNet { problem: params.problem, rounds, zeros, colours, topology: topology.clone(), seen })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> Network {
        let mut lots: Vec<u32> = (0..setup.agents).collect();
        draws.shuffle(&mut lots);
        Network { lots, answers: vec![None; setup.agents as usize], round: 0, verdict: Verdict::default() }
    }

    fn observe(&self, network: &Network, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        observation.number(self.seen.lot, f64::from(network.lots[person.id as usize]));
        if self.problem == Problem::Consensus {
            observation.number(self.seen.value, self.value(network, person.id) as f64);
        }
        let neighbours = observation.neighbours();
        observation.table(self.seen.neighbours, |rows| rows.extend(neighbours.map(f64::from)));
    }

    fn apply(&self, network: &mut Network, actions: &AgentActions<'_>, _: &mut Future) {
        // The last answer of the last turn counts. Texts travel as messages, which the world does not read.
        if network.round == self.rounds
            && let Some(act) = actions.acts().iter().rfind(|act| act.kind == 0)
        {
            network.answers[actions.person.id as usize] = self.valid(act.value);
        }
    }

    fn end_round(&self, network: &mut Network, _: &mut Draws) -> Option<String> {
        if network.round < self.rounds {
            network.round += 1;
            return None;
        }
        network.verdict = self.verdict(network);
        Some("all have answered".into())
    }
}
