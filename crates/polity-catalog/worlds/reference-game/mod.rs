//! A reference game: a describer sees an object, and a listener names it by what it was told. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot, named};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, philox};
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use polity_kernel::{AgentId, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<ReferenceGame>(files);
}

/// Maximum facts of an object.
const MOST_FACTS: u32 = 15;

/// Parameters of the game.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Facts of an object, each 0 or 1; 1 to 15. There are 2^`facts` objects.
    facts: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { facts: 7 }
    }
}

/// Pairs of a describer and a listener. An object is a number; its bits are its facts.
pub struct ReferenceGame {
    facts: u32,
    pairs: u32,
    seen: Seen,
}

/// Observations of agents.
struct Seen {
    describes: NumberSlot,
    partner: NumberSlot,
    object: TableSlot,
}

/// How often a fact was so and was named so: (0, 0), (0, 1), (1, 0), (1, 1).
type Counts = [u64; 4];

/// What was named so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Game {
    /// The key from which objects are derived.
    key: u64,
    round: u32,
    /// What the listener of each pair names in this round.
    named: Vec<Option<u32>>,
    /// Facts of each pair's last object that were lost.
    lost: Vec<u32>,
    /// By fact.
    counts: Vec<Counts>,
    /// Objects whose turn to be named has come.
    due: u64,
    right: u64,
    silent: u64,
    lost_facts: u64,
}

/// Returns the mutual information of two bits in bits, by the counts alone. Counts of independent bits give some 0.7 / n.
fn information(counts: &Counts) -> f64 {
    let n = counts.iter().sum::<u64>() as f64;
    let share = |cells: [usize; 2]| (counts[cells[0]] + counts[cells[1]]) as f64 / n;
    let (was, said) = ([share([0, 1]), share([2, 3])], [share([0, 2]), share([1, 3])]);
    let cell = |(i, count): (usize, &u64)| match *count as f64 / n {
        p if p > 0.0 => p * libm::log2(p / (was[i / 2] * said[i % 2])),
        _ => 0.0,
    };
    counts.iter().enumerate().map(cell).sum()
}

impl ReferenceGame {
    fn declare(declare: &mut DeclareWorld<Self>, facts: u32) -> Seen {
        let describes = declare.number_slot("describes", "1 for a describer, 0 for a listener");
        let partner = declare.number_slot("partner", "the other agent of the pair");
        declare.shared_number("facts", "how many facts an object has", move |_, _| f64::from(facts));
        let doc = "the object to be described: its facts, each 0 or 1; empty for a listener";
        let object = declare.table_slot("object", ["fact", "value"], doc);
        let argument = ActionArgument::Number { low: 0.0, high: f64::from((1u32 << facts) - 1) };
        let doc = "name the object of the last round: the sum of 2^fact over the facts that are 1; only listeners can";
        declare.action("name", argument, doc);
        let doc = "facts of the pair's last object that the listener named wrongly, or did not name";
        declare.column("lost", doc, Some((0.0, f64::from(facts))), |game, state, who| {
            f64::from(state.lost[game.pair(*who) as usize])
        });
        let share = |of: u64, all: u64| of as f64 / all.max(1) as f64;
        let doc = "share of the facts of all objects so far that listeners named wrongly, or did not name";
        declare
            .scalar("facts-lost", doc, move |game, state| share(state.lost_facts, state.due * u64::from(game.facts)));
        declare.scalar("right", "share of the objects so far that were named", move |_, state| {
            share(state.right, state.due)
        });
        let doc = "share of the objects so far for which the listener named none";
        declare.scalar("silent", doc, move |_, state| share(state.silent, state.due));
        let doc = "bits of an object that what is named tells, fact by fact: the sum of the facts' mutual information";
        declare.scalar("bits-told", doc, |_, state| state.told());
        let doc = "bits of an object that what is named does not tell: `facts` less `bits-told`";
        declare.scalar("bits-lost", doc, |game, state| f64::from(game.facts) - state.told());
        Seen { describes, partner, object }
    }

    /// Returns the pair of an agent.
    fn pair(&self, who: AgentId) -> u32 {
        who % self.pairs
    }

    /// Returns whether an agent describes objects.
    fn describes(&self, who: AgentId) -> bool {
        who < self.pairs
    }

    /// Returns the object that a pair's describer sees in a round.
    fn object(&self, key: u64, pair: u32, round: u32) -> u32 {
        philox([u64::from(pair), u64::from(round)], key)[0] as u32 & ((1 << self.facts) - 1)
    }
}

impl Game {
    fn told(&self) -> f64 {
        self.counts.iter().filter(|counts| counts.iter().any(|count| *count > 0)).map(information).sum()
    }
}

impl World for ReferenceGame {
    const NAME: &'static str = "reference-game";
    const SUMMARY: &'static str = "Describers see an object, and listeners name it by what they are told";
    type Params = Params;
    type State = Game;

    fn open(
        Params { facts }: Params,
        setup: &WorldSetup<'_>,
        declare: &mut DeclareWorld<Self>,
    ) -> Result<Self, Invalid> {
        Invalid::within(1..=MOST_FACTS, "facts", facts)?;
        let even = setup.agents >= 2 && setup.agents.is_multiple_of(2);
        let message = format!("agents play in pairs: their number must be even, is {}", setup.agents);
        Invalid::unless(even, "kind", message)?;
        Invalid::unless(
            setup.lag == 0,
            "kind",
            "the game has no answers of later rounds; leave out `answers: {lag: ...}`",
        )?;
        Ok(ReferenceGame { facts, pairs: setup.agents / 2, seen: ReferenceGame::declare(declare, facts) })
    }

    fn memory_bytes(&self) -> usize {
        16
    }

    fn init_state(&self, _: &WorldSetup<'_>, draws: &mut Draws) -> Game {
        let pairs = self.pairs as usize;
        Game {
            key: draws.u64(),
            round: 0,
            named: vec![None; pairs],
            lost: vec![0; pairs],
            counts: vec![[0; 4]; self.facts as usize],
            due: 0,
            right: 0,
            silent: 0,
            lost_facts: 0,
        }
    }

    fn observe(&self, game: &Game, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let (who, pair) = (person.id, self.pair(person.id));
        if !self.describes(who) {
            observation.number(self.seen.partner, f64::from(pair));
            return;
        }
        observation.number(self.seen.describes, 1.0);
        observation.number(self.seen.partner, f64::from(pair + self.pairs));
        let object = self.object(game.key, pair, game.round);
        let facts = (0..self.facts).flat_map(|fact| [f64::from(fact), f64::from(object >> fact & 1)]);
        observation.table(self.seen.object, |rows| rows.extend(facts));
    }

    fn apply(&self, game: &mut Game, actions: &AgentActions<'_>, _: &mut Future) {
        let who = actions.person.id;
        if let Some(act) = actions.acts().first()
            && !self.describes(who)
        {
            game.named[self.pair(who) as usize] = named(act.value, 1 << self.facts);
        }
    }

    fn end_round(&self, game: &mut Game, _: &mut Draws) -> Option<String> {
        // No message has arrived in the first round.
        let before = game.round.checked_sub(1);
        game.round += 1;
        let all = game.named.iter_mut().map(Option::take).collect::<Vec<_>>();
        let round = before?;
        for (pair, said) in all.into_iter().enumerate() {
            let object = self.object(game.key, pair as u32, round);
            game.due += 1;
            game.lost[pair] = match said {
                None => {
                    game.silent += 1;
                    self.facts
                }
                Some(said) => {
                    game.right += u64::from(said == object);
                    for (fact, counts) in game.counts.iter_mut().enumerate() {
                        counts[((object >> fact & 1) * 2 + (said >> fact & 1)) as usize] += 1;
                    }
                    (said ^ object).count_ones()
                }
            };
            game.lost_facts += u64::from(game.lost[pair]);
        }
        None
    }
}
