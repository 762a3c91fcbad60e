//! Information asymmetry: everybody holds private facts, and is asked what takes the facts of several others. See README.md.

use polity_kernel::declare::DeclareWorld;
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream, philox};
use polity_kernel::sight::{ActArgument, NumberSlot, TableSlot};
use polity_kernel::world::{Deeds, Future, Setup, SightRow, World};
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
    /// Values that a fact may have: 0 to one less.
    values: u32,
    /// Facts that the answer to a question takes, each of another person.
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

/// What agents see.
struct Seen {
    open: NumberSlot,
    own: TableSlot,
    question: TableSlot,
}

/// A question and what was answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Question {
    /// The facts that it takes; none: the agent is asked nothing.
    facts: Vec<u32>,
    /// The turn in which it was answered, from 1 on; 0: not yet.
    turn: u32,
    right: bool,
}

/// What there is to know, and what was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exam {
    /// Of which facts' values are made.
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

    /// The share of the questions asked that these are.
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
        let argument = ActArgument::Number { low: 0.0, high: f64::from(values) - 1.0 };
        declare.action("answer", argument, "answer the question; the first answer counts");
        let doc = "1 when the agent has answered its question right";
        declare.column("right", doc, Some((0.0, 1.0)), |_, exam, who| {
            f64::from(u8::from(exam.questions[*who as usize].right))
        });
        let doc = "the turn in which it answered, from 1 on; 0: not yet";
        declare.column("turn", doc, None, |_, exam, who| f64::from(exam.questions[*who as usize].turn));
        declare.scalar("answered", "share of the questions that are answered", |_, exam| {
            exam.share(exam.asked().filter(|question| question.turn > 0))
        });
        declare.scalar("right", "share of the questions that are answered right", |_, exam| exam.share(exam.right()));
        let doc = "mean turn in which right answers were given, from 1 on; 0 without one";
        declare.scalar("turns", doc, |_, exam| {
            let turns: f64 = exam.right().map(|question| f64::from(question.turn)).sum();
            turns / (exam.right().count() as f64).max(1.0)
        });
        Seen { open, own, question }
    }

    /// The value of a fact.
    fn value(&self, key: u64, fact: u32) -> u32 {
        (philox([u64::from(fact), 0], key)[0] % u64::from(self.params.values)) as u32
    }

    /// A question about facts of different people, none of them the one who is asked.
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
    const SUMMARY: &'static str = "Private facts, and questions whose answers take the facts of several people";
    type Params = Params;
    type State = Exam;

    fn open(params: Params, setup: &Setup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let Params { facts, values, needs, asked } = params;
        let (agents, invalid) = (setup.agents, |key: &str, message| Err(Invalid { key: String::from(key), message }));
        if facts == 0 || facts.checked_mul(agents).is_none() {
            let most = u32::MAX / agents.max(1);
            return invalid("facts", format!("must lie in 1..={most} with {agents} agents, is {facts}"));
        }
        Invalid::within(2..=1_000_000, "values", values)?;
        // Others are drawn until there are enough: more than half of them would take long.
        let most = agents / 2;
        if !(1..=most).contains(&needs) {
            let message = format!("must lie in 1..={most}, half of the {agents} agents, is {needs}");
            return invalid("needs", message);
        }
        Invalid::within(0.0..=1.0, "asked", asked)?;
        Ok(Asymmetry { params, agents, seen: Asymmetry::declare(declare, params) })
    }

    fn begin(&self, setup: &Setup<'_>, draws: &mut Draws) -> Exam {
        let key = draws.u64();
        let ask = |who| {
            let mut own = Draws::new(key, Stream::Seat, 0, who);
            if own.chance(self.params.asked) { self.question(who, &mut own) } else { Question::default() }
        };
        Exam { key, questions: (0..setup.agents).map(ask).collect(), round: 0 }
    }

    fn observe(&self, exam: &Exam, person: Person<'_>, sight: &mut SightRow<'_>) {
        let own = self.params.facts;
        sight.table(self.seen.own, |rows| {
            let facts = person.id * own..(person.id + 1) * own;
            rows.extend(facts.flat_map(|fact| [f64::from(fact), f64::from(self.value(exam.key, fact))]));
        });
        let question = &exam.questions[person.id as usize];
        if question.facts.is_empty() || question.turn > 0 {
            return;
        }
        sight.number(self.seen.open, 1.0);
        let asked = question.facts.iter().flat_map(|fact| [f64::from(*fact), f64::from(fact / own)]);
        sight.table(self.seen.question, |rows| rows.extend(asked));
    }

    fn apply(&self, exam: &mut Exam, deeds: &Deeds<'_>, _: &mut Future) {
        let (key, turn) = (exam.key, exam.round + 1);
        let question = &mut exam.questions[deeds.person.id as usize];
        if let Some(act) = deeds.acts().first()
            && !question.facts.is_empty()
            && question.turn == 0
        {
            let sum: u64 = question.facts.iter().map(|fact| u64::from(self.value(key, *fact))).sum();
            question.right = act.value == (sum % u64::from(self.params.values)) as f64;
            question.turn = turn;
        }
    }

    fn settle(&self, exam: &mut Exam, _: &mut Draws) -> Option<String> {
        exam.round += 1;
        let open = exam.questions.iter().any(|question| !question.facts.is_empty() && question.turn == 0);
        (!open).then(|| "every question is answered".into())
    }
}
