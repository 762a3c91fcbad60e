//! Information asymmetry: everybody holds private facts, and questions need the facts of several people. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream, philox};
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use polity_kernel::{AgentId, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Asymmetry>(files);
}

/// Parameters of the world.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Private facts that each agent holds, from the oldest to the newest.
    facts: u32,
    /// Number of possible values of a fact, from 0.
    values: u32,
    /// Number of facts that a question needs, each of another person.
    needs: u32,
    /// Share of the agents that are asked a question, drawn by the seed.
    asked: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { facts: 20, values: 10, needs: 3, asked: 1.0 }
    }
}

/// Private facts, and questions that nobody can answer alone.
pub struct Asymmetry {
    params: Params,
    agents: u32,
    seen: Seen,
}

/// Observations of agents.
struct Seen {
    open: NumberSlot,
    own: TableSlot,
    question: TableSlot,
}

/// A question and its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Question {
    /// The facts that it needs; if empty, the agent has no question.
    facts: Vec<u32>,
    /// The turn in which it was answered, from 1 on; 0: not yet.
    turn: u32,
    right: bool,
}

/// The facts, and the questions with their answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exam {
    /// The key from which facts' values are derived.
    key: u64,
    questions: Vec<Question>,
    round: u32,
}

impl Exam {
    fn asked(&self) -> impl Iterator<Item = &Question> + Clone {
        self.questions.iter().filter(|question| !question.facts.is_empty())
    }

    fn right(&self) -> impl Iterator<Item = &Question> + Clone {
        self.asked().filter(|question| question.right)
    }

    /// Returns their share of the questions asked.
    fn share<'a>(&'a self, of: impl Iterator<Item = &'a Question>) -> f64 {
        of.count() as f64 / (self.asked().count() as f64).max(1.0)
    }
}

impl Asymmetry {
    fn declare(declare: &mut DeclareWorld<Self>, Params { facts, values, .. }: Params) -> Seen {
        let doc = "1 as long as the agent has a question and has not answered it, else 0";
        let open = declare.number_slot("open", doc);
        let doc = "facts that each person holds: fact f is one of person f div this";
        declare.shared_number("facts", doc, move |_, _| f64::from(facts));
        let doc = "how many values a fact may have, from 0 on";
        declare.shared_number("values", doc, move |_, _| f64::from(values));
        let doc = "the facts that the agent holds, from the oldest to the newest";
        let own = declare.table_slot("own", ["fact", "value"], doc);
        let doc = "the facts whose sum, modulo `values`, is the answer, and whose they are";
        let question = declare.table_slot("question", ["fact", "person"], doc);
        let argument = ActionArgument::Number { low: 0.0, high: f64::from(values) - 1.0 };
        declare.action("answer", argument, "answer the question; the first answer counts");
        let doc = "1 when the agent has answered its question correctly";
        declare.column("right", doc, Some((0.0, 1.0)), |_, exam, who| {
            f64::from(u8::from(exam.questions[*who as usize].right))
        });
        let doc = "the turn in which the agent answered, from 1 on; 0 if it has not";
        declare.column("turn", doc, None, |_, exam, who| f64::from(exam.questions[*who as usize].turn));
        declare.scalar("answered", "share of the questions that are answered", |_, exam| {
            exam.share(exam.asked().filter(|question| question.turn > 0))
        });
        declare
            .scalar("right", "share of the questions that are answered correctly", |_, exam| exam.share(exam.right()));
        let doc = "mean turn in which correct answers were given, from 1 on; 0 if there are none";
        declare.scalar("turns", doc, |_, exam| {
            let turns: f64 = exam.right().map(|question| f64::from(question.turn)).sum();
            turns / (exam.right().count() as f64).max(1.0)
        });
        Seen { open, own, question }
    }

    /// Returns the value of a fact.
    fn value(&self, key: u64, fact: u32) -> u32 {
        (philox([u64::from(fact), 0], key)[0] % u64::from(self.params.values)) as u32
    }

    /// Draws a question about facts of different people, other than the agent asked.
    fn question(&self, who: AgentId, draws: &mut Draws) -> Question {
        let mut people: Vec<u32> = Vec::with_capacity(self.params.needs as usize);
        while people.len() < self.params.needs as usize {
            let other = draws.below(u64::from(self.agents)) as u32;
            if other != who && !people.contains(&other) {
                people.push(other);
            }
        }
        let own = self.params.facts;
        let facts = people.iter().map(|other| other * own + draws.below(u64::from(own)) as u32).collect();
        Question { facts, ..Question::default() }
    }
}

impl World for Asymmetry {
    const NAME: &'static str = "asymmetry";
    const SUMMARY: &'static str = "Private facts, and questions whose answers need the facts of several people";
    type Params = Params;
    type State = Exam;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let Params { facts, values, needs, asked } = params;
        let (agents, invalid) = (setup.agents, |key: &str, message| Err(Invalid { key: String::from(key), message }));
        if facts == 0 || facts.checked_mul(agents).is_none() {
            let most = u32::MAX / agents.max(1);
            return invalid("facts", format!("must lie in 1..={most} with {agents} agents, is {facts}"));
        }
        Invalid::within(2..=1_000_000, "values", values)?;
        // Draw until there are enough others; more than half of them would take long.
        let most = agents / 2;
        if !(1..=most).contains(&needs) {
            let message = format!("must lie in 1..={most}, half of the {agents} agents, is {needs}");
            return invalid("needs", message);
        }
        Invalid::within(0.0..=1.0, "asked", asked)?;
        Ok(Asymmetry { params, agents, seen: Asymmetry::declare(declare, params) })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> Exam {
        let key = draws.u64();
        let ask = |who| {
            let mut own = Draws::new(key, Stream::Seat, 0, who);
            if own.chance(self.params.asked) { self.question(who, &mut own) } else { Question::default() }
        };
        Exam { key, questions: (0..setup.agents).map(ask).collect(), round: 0 }
    }

    fn observe(&self, exam: &Exam, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let own = self.params.facts;
        observation.table(self.seen.own, |rows| {
            let facts = person.id * own..(person.id + 1) * own;
            rows.extend(facts.flat_map(|fact| [f64::from(fact), f64::from(self.value(exam.key, fact))]));
        });
        let question = &exam.questions[person.id as usize];
        if question.facts.is_empty() || question.turn > 0 {
            return;
        }
        observation.number(self.seen.open, 1.0);
        let asked = question.facts.iter().flat_map(|fact| [f64::from(*fact), f64::from(fact / own)]);
        observation.table(self.seen.question, |rows| rows.extend(asked));
    }

    fn apply(&self, exam: &mut Exam, actions: &AgentActions<'_>, _: &mut Future) {
        let (key, turn) = (exam.key, exam.round + 1);
        let question = &mut exam.questions[actions.person.id as usize];
        if let Some(act) = actions.acts().first()
            && !question.facts.is_empty()
            && question.turn == 0
        {
            let sum: u64 = question.facts.iter().map(|fact| u64::from(self.value(key, *fact))).sum();
            question.right = act.value == (sum % u64::from(self.params.values)) as f64;
            question.turn = turn;
        }
    }

    fn end_round(&self, exam: &mut Exam, _: &mut Draws) -> Option<String> {
        exam.round += 1;
        let open = exam.questions.iter().any(|question| !question.facts.is_empty() && question.turn == 0);
        (!open).then(|| "every question is answered".into())
    }
}
