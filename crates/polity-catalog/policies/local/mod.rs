//! Distributed algorithms for colouring, covers, matching, leaders and consensus, by one message a round to all neighbours. See README.md.

use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, philox};
use polity_kernel::{AgentId, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Local>(files);
}

/// Where messages go, and what they say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Messages {
    /// To all neighbours.
    #[default]
    Neighbours,
    /// To as many agents as there are neighbours, drawn at random (a placebo).
    Strangers,
    /// To all neighbours, but blank: who reads one takes it for what it said itself (a placebo).
    Blank,
}

/// Parameters of the algorithms.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Where messages go, and what they say.
    messages: Messages,
}

/// A problem, in the order of the number that the world shows.
#[derive(Clone, Copy)]
enum Problem {
    Coloring,
    VertexCover,
    Matching,
    LeaderElection,
    Consensus,
}

/// Solves the problem that the world shows.
pub struct Local {
    messages: Messages,
    agents: u32,
    problem: NumberSlot,
    left: NumberSlot,
    lot: NumberSlot,
    value: NumberSlot,
    act: u16,
}

/// What an agent has reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Colouring: the colour tried or taken. Cover: not used. Matching: the neighbour asked or paired with. Leader: the greatest lot
    /// known. Consensus: the least value known.
    value: f64,
    /// Whether the value, or the part in the cover, is settled.
    settled: bool,
    /// Cover: whether the agent is in it.
    covers: bool,
}

/// The message of an agent that has left the cover, and of one that is in it for good.
const OUT: f64 = -1.0;
const IN: f64 = -2.0;
/// The message of an agent with a partner, and of one without anybody to ask.
const TAKEN: f64 = -1.0;
const NOBODY: f64 = -2.0;

/// Returns the rank of a tie: a number that both of its agents compute from their ids.
fn rank(one: AgentId, other: AgentId) -> [u64; 2] {
    philox([u64::from(one.min(other)), u64::from(one.max(other))], 0)
}

/// What an agent has heard: pairs of the sender and the number.
type Heard = [(AgentId, f64)];

impl Node {
    /// Returns the state of an agent that has heard nothing yet.
    fn start(&mut self, problem: Problem, lot: f64, value: f64, turn: &mut Turn<'_>) {
        self.value = match problem {
            Problem::Coloring => 1.0 + turn.draws.below(u64::from(turn.topology().degree(turn.who)) + 1) as f64,
            Problem::Matching => favourite(turn.who, turn.topology().neighbours(turn.who)),
            Problem::LeaderElection => lot,
            Problem::VertexCover | Problem::Consensus => value,
        };
        // Until it knows better, an agent covers its ties.
        self.covers = true;
    }

    /// Returns what the agent tells all neighbours. A settled colour is negative.
    fn message(&self, problem: Problem, lot: f64) -> f64 {
        match (problem, self.settled) {
            (Problem::Coloring, true) => -self.value,
            (Problem::VertexCover, true) => {
                if self.covers {
                    IN
                } else {
                    OUT
                }
            }
            (Problem::VertexCover, false) => lot,
            (Problem::Matching, true) => TAKEN,
            _ => self.value,
        }
    }

    /// Takes a step by what all neighbours have said.
    fn step(&mut self, problem: Problem, lot: f64, heard: &Heard, turn: &mut Turn<'_>) {
        if self.settled {
            return;
        }
        match problem {
            Problem::Coloring => self.colour(heard, turn),
            Problem::VertexCover => self.cover(lot, heard),
            Problem::Matching => self.pair(turn.who, heard),
            Problem::LeaderElection => self.value = heard.iter().map(|(_, lot)| *lot).fold(self.value, f64::max),
            Problem::Consensus => self.value = heard.iter().map(|(_, value)| *value).fold(self.value, f64::min),
        }
    }

    /// Keeps the colour unless a neighbour has taken it, or one with a greater id tries it, too. Otherwise it tries one of the free
    /// colours, drawn at random.
    fn colour(&mut self, heard: &Heard, turn: &mut Turn<'_>) {
        let own = self.value;
        self.settled = !heard.iter().any(|(from, said)| *said == -own || *said == own && *from > turn.who);
        if self.settled {
            return;
        }
        let colours = turn.topology().degree(turn.who) + 1;
        let mut free = vec![true; colours as usize];
        for (_, said) in heard.iter().filter(|(_, said)| *said < 0.0) {
            if let Some(colour) = free.get_mut(-said as usize - 1) {
                *colour = false;
            }
        }
        let left = free.iter().filter(|free| **free).count() as u64;
        let pick = turn.draws.below(left) as usize;
        let colour = free.iter().enumerate().filter(|(_, free)| **free).nth(pick).map_or(0, |(colour, _)| colour);
        self.value = 1.0 + colour as f64;
    }

    /// Leaves the cover if no undecided neighbour has a greater lot; is in it for good if a neighbour has left it, so that those who
    /// have left are a maximal independent set.
    fn cover(&mut self, lot: f64, heard: &Heard) {
        if heard.iter().any(|(_, said)| *said == OUT) {
            self.settled = true;
        } else if heard.iter().all(|(_, said)| *said == IN || *said < lot) {
            (self.settled, self.covers) = (true, false);
        }
    }

    /// Pairs up with the neighbour asked if that one asked it, too; else asks the free neighbour whose tie ranks highest.
    fn pair(&mut self, who: AgentId, heard: &Heard) {
        let asked = self.value;
        if heard.iter().any(|(from, said)| f64::from(*from) == asked && *said == f64::from(who)) {
            self.settled = true;
        } else {
            self.value = favourite(who, heard.iter().filter(|(_, said)| *said != TAKEN).map(|(from, _)| *from));
        }
    }

    /// Returns the answer.
    fn answer(&self, problem: Problem, lot: f64) -> f64 {
        match problem {
            Problem::Coloring | Problem::Consensus => self.value,
            Problem::VertexCover => f64::from(u8::from(self.covers)),
            Problem::Matching => {
                if self.settled {
                    self.value
                } else {
                    -1.0
                }
            }
            Problem::LeaderElection => f64::from(u8::from(self.value == lot)),
        }
    }
}

/// Returns the agent whose tie with `who` ranks highest, or [`NOBODY`].
fn favourite(who: AgentId, among: impl Iterator<Item = AgentId>) -> f64 {
    among.max_by_key(|other| rank(who, *other)).map_or(NOBODY, f64::from)
}

impl Local {
    fn send(&self, said: f64, turn: &mut Turn<'_>) {
        if self.messages != Messages::Strangers {
            turn.tell_neighbours(0, said);
            return;
        }
        for _ in 0..turn.topology().degree(turn.who) {
            let to = turn.draws.below(u64::from(self.agents)) as AgentId;
            turn.send(to, 0, said);
        }
    }
}

impl Policy for Local {
    const NAME: &'static str = "local";
    const SUMMARY: &'static str =
        "Distributed algorithms: colour, cover, pair up, elect or agree by telling neighbours a number";
    type Params = Params;
    type State = Node;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Ok(Local {
            messages: params.messages,
            agents: setup.agents,
            problem: setup.number("problem")?,
            left: setup.number("left")?,
            lot: setup.number("lot")?,
            value: setup.number("value")?,
            act: setup.act("answer")?.0,
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Node {
        Node::default()
    }

    fn tells_neighbours(&self) -> bool {
        true
    }

    async fn act(&self, node: &mut Node, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let problem = match turn.observation.number(self.problem) as u8 {
            0 => Problem::Coloring,
            1 => Problem::VertexCover,
            2 => Problem::Matching,
            3 => Problem::LeaderElection,
            _ => Problem::Consensus,
        };
        let (lot, value) = (turn.observation.number(self.lot), turn.observation.number(self.value));
        if turn.round == 0 {
            node.start(problem, lot, value, turn);
        } else {
            let own = node.message(problem, lot);
            let blank = self.messages == Messages::Blank;
            let heard: Vec<(AgentId, f64)> =
                turn.inbox().numbers().map(|(from, said)| (from, if blank { own } else { said })).collect();
            node.step(problem, lot, &heard, turn);
        }
        match turn.observation.number(self.left) > 0.0 {
            true => self.send(node.message(problem, lot), turn),
            false => turn.act(self.act, node.answer(problem, lot)),
        }
        Ok(())
    }
}
