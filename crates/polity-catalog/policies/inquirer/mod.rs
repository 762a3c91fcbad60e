//! Asks acquaintances for the facts that a question needs, with or without a plan, and answers or relays questions. See README.md for the
//! source.

mod memory;

use memory::{Known, Memory, Size};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::interface::{NumberSlot, TableSlot};
use polity_kernel::messages::Body;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::topology::Topology;
use polity_kernel::{AgentId, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Inquirer>(files);
}

/// Parameters of asking.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Keep a plan: a list of the needed facts and what is known of each. Then it asks for missing facts, from people likely to hold or
    /// reach them, and nobody twice before all were asked. Otherwise it asks anybody for any of them.
    plan: bool,
    /// Maximum number of times a question is passed on by people who do not hold the fact.
    relays: u32,
    /// Number of facts in clear memory: the latest, word for word.
    clear: usize,
    /// Number of facts in fuzzy memory, which summarises those that no longer fit into clear memory.
    fuzzy: usize,
    /// Probability that a summary gets a fact wrong.
    blur: f64,
    /// Ask, and pass questions on to, agents that are drawn at random among those not yet asked (the placebo of knowing who knows what).
    ask_by_lot: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { plan: true, relays: 1, clear: 10, fuzzy: 1000, blur: 0.3, ask_by_lot: false }
    }
}

/// Asks and answers.
pub struct Inquirer {
    params: Params,
    rounds: u32,
    open: NumberSlot,
    facts: NumberSlot,
    values: NumberSlot,
    own: TableSlot,
    own_columns: [usize; 2],
    question: TableSlot,
    question_columns: [usize; 2],
    act: u16,
}

/// A person waiting to be told a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    fact: u32,
    who: AgentId,
    since: u32,
}

/// A fact of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    known: Option<u32>,
    /// People asked for it since the last time that all had been.
    asked: Vec<AgentId>,
}

/// A person's state between turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mind {
    memory: Memory,
    plan: Vec<Step>,
    waiting: Vec<Waiting>,
}

/// A question for a fact; the number encodes the fact, and how many times it may still be passed on.
const ASK: u16 = 0;
/// A fact; the number encodes the fact and its value.
const TELL: u16 = 1;

/// Packs two numbers into one; exact for the second below 2^21.
fn pack(fact: u32, other: u32) -> f64 {
    f64::from(fact) + f64::from(other) * 4_294_967_296.0
}

fn unpack(packed: f64) -> (u32, u32) {
    let packed = packed as u64;
    (packed as u32, (packed >> 32) as u32)
}

/// Returns the acquaintance of `who`, except `spared`, most likely to hold or reach the facts `of` somebody: that person, else one who
/// knows it, else the one who knows most people. Ties go to the first. With a lot, it decides alone.
fn likely(
    topology: &Topology,
    who: AgentId,
    of: AgentId,
    lot: Option<u64>,
    spared: impl Fn(AgentId) -> bool,
) -> Option<AgentId> {
    let promise = |other: AgentId| match (lot, other == of) {
        (Some(lot), _) => (RowHash::new(Kind::Row, 0).word(lot).word(u64::from(other)).finish() as u32, 0),
        (None, true) => (2, 0),
        (None, false) => (u32::from(topology.hears(other, of)), topology.degree(other)),
    };
    let known = topology.neighbours(who).filter(|other| !spared(*other));
    known.max_by_key(|other| (promise(*other), std::cmp::Reverse(*other)))
}

impl Inquirer {
    /// Draws a lot, if whom to ask is decided that way.
    fn lot(&self, turn: &mut Turn<'_>) -> Option<u64> {
        self.params.ask_by_lot.then(|| turn.draws.below(u64::MAX))
    }

    fn size(&self, turn: &Turn<'_>) -> Size {
        let Params { clear, fuzzy, blur, .. } = self.params;
        Size { clear, fuzzy, blur, values: turn.observation.number(self.values) as u32 }
    }

    /// Reads the messages: answers known facts, passes on the other questions.
    fn read(&self, mind: &mut Mind, turn: &mut Turn<'_>, size: &Size) {
        let per_person = turn.observation.number(self.facts).max(1.0) as u32;
        // Nobody waits longer than an answer may take.
        mind.waiting.retain(|waiting| turn.round - waiting.since <= 2 * self.params.relays + 2);
        for inbox in turn.inbox() {
            let Body::Number(packed) = inbox.body else { continue };
            let (fact, other) = unpack(packed);
            if inbox.channel == TELL {
                mind.memory.take(Known { fact, value: other }, size, &mut turn.draws);
                mind.waiting.retain(|waiting| {
                    if waiting.fact == fact {
                        turn.send(waiting.who, TELL, packed);
                    }
                    waiting.fact != fact
                });
                self.note(mind, turn, fact, other);
            } else if let Some(value) = mind.memory.find(fact) {
                turn.send(inbox.from, TELL, pack(fact, value));
            // Nobody can tell it its own forgotten facts.
            } else if other > 0 && fact / per_person != turn.who {
                let lot = self.lot(turn);
                let next = likely(turn.topology(), turn.who, fact / per_person, lot, |third| third == inbox.from);
                if let Some(next) = next {
                    turn.send(next, ASK, pack(fact, other - 1));
                    mind.waiting.push(Waiting { fact, who: inbox.from, since: turn.round });
                }
            }
        }
    }

    /// Writes a fact into the plan.
    fn note(&self, mind: &mut Mind, turn: &Turn<'_>, fact: u32, value: u32) {
        let lines = turn.observation.table(self.question);
        for (step, line) in mind.plan.iter_mut().zip(lines) {
            if line[self.question_columns[0]] as u32 == fact {
                step.known.get_or_insert(value);
            }
        }
    }

    /// Answers, or asks for one more fact.
    fn query(&self, mind: &mut Mind, turn: &mut Turn<'_>, size: &Size) {
        let [fact, person] = self.question_columns;
        let lines = || turn.observation.table(self.question).map(|line| (line[fact] as u32, line[person] as u32));
        let needed: Vec<(u32, u32)> = lines().collect();
        let sum = |values: Option<Vec<u32>>| {
            let sum: Option<u64> = values.map(|all| all.into_iter().map(u64::from).sum());
            sum.map(|sum| (sum % u64::from(size.values.max(1))) as f64)
        };
        let answer = if self.params.plan {
            sum(mind.plan.iter().map(|step| step.known).collect())
        } else if turn.round + 1 == self.rounds {
            // Without a plan, it cannot know before the end that nothing is missing.
            sum(needed.iter().map(|(fact, _)| mind.memory.find(*fact)).collect())
        } else {
            None
        };
        if let Some(answer) = answer {
            turn.act(self.act, answer);
            return;
        }
        let asks = if self.params.plan {
            let lot = self.lot(turn);
            let lacking = mind.plan.iter_mut().zip(&needed).filter(|(step, _)| step.known.is_none());
            // The fact for which the fewest people were asked.
            lacking.min_by_key(|(step, _)| step.asked.len()).and_then(|(step, (fact, person))| {
                let contact =
                    |asked: &[AgentId]| likely(turn.topology(), turn.who, *person, lot, |who| asked.contains(&who));
                let whom = contact(&step.asked).or_else(|| {
                    step.asked.clear();
                    contact(&[])
                });
                step.asked.extend(whom);
                whom.map(|whom| (whom, *fact))
            })
        } else {
            let (i, degree) = (turn.draws.below(needed.len() as u64), turn.topology().degree(turn.who));
            let pick = turn.draws.below(u64::from(degree)) as usize;
            turn.topology().neighbours(turn.who).nth(pick).zip(needed.get(i as usize).map(|(fact, _)| *fact))
        };
        if let Some((whom, fact)) = asks {
            turn.send(whom, ASK, pack(fact, self.params.relays));
        }
    }
}

impl Policy for Inquirer {
    const NAME: &'static str = "inquirer";
    const SUMMARY: &'static str = "Ask acquaintances for the facts that a question needs, with or without a plan";
    type Params = Params;
    type State = Mind;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0.0..=1.0, "blur", params.blur)?;
        if params.relays > 100 {
            return Err(Invalid {
                key: "relays".into(),
                message: format!("must be at most 100, is {}", params.relays),
            });
        }
        let (own, own_columns) = setup.table("own", ["fact", "value"])?;
        let (question, question_columns) = setup.table("question", ["fact", "person"])?;
        Ok(Inquirer {
            params,
            rounds: setup.rounds,
            open: setup.number("open")?,
            facts: setup.number("facts")?,
            values: setup.number("values")?,
            own,
            own_columns,
            question,
            question_columns,
            act: setup.act("answer")?.0,
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Mind {
        Mind::default()
    }

    async fn act(&self, mind: &mut Mind, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let size = self.size(turn);
        if turn.round == 0 {
            let [fact, value] = self.own_columns;
            for line in turn.observation.table(self.own) {
                let known = Known { fact: line[fact] as u32, value: line[value] as u32 };
                mind.memory.take(known, &size, &mut turn.draws);
            }
            if self.params.plan {
                mind.plan = vec![Step::default(); turn.observation.table(self.question).count()];
            }
        }
        self.read(mind, turn, &size);
        if turn.observation.number(self.open) > 0.0 {
            self.query(mind, turn, &size);
        }
        Ok(())
    }
}
