//! Bounded confidence in pairs: two agents that meet and are close move towards each other. See README.md for the source, the equations
//! and how pairs are found.

use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream, philox};
use polity_kernel::topology::Topology;
use polity_kernel::{AgentId, Invalid};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<DeffuantWeisbuch>(files);
}

/// Parameters of bounded confidence in pairs.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Pairs farther apart than this do not listen to each other; in units of the scale, 0 or more.
    epsilon: f64,
    /// Share of their distance that each of the two moves; above 0, up to 0.5 (they meet in the middle).
    #[serde(default = "half")]
    mu: f64,
}

fn half() -> f64 {
    0.5
}

/// Meets one other agent per round and moves towards it if it is close.
pub struct DeffuantWeisbuch {
    epsilon: f64,
    mu: f64,
    opinion: NumberSlot,
    act: u16,
    low: f64,
    high: f64,
}

/// Returns the agent that an agent would meet in a round. Two meet if each is the other's choice.
///
/// If all hear each other, the choices are a random matching of all. On a graph every tie has a random priority, the same from both ends,
/// and each agent chooses its tie with the first priority. The pairs are the ties that come before all ties that they touch.
pub fn choice(topology: &Topology, seed: u64, round: u32, who: AgentId) -> Option<AgentId> {
    if let Some(matching) = topology.matching(seed, round) {
        return matching.partner(who);
    }
    let priority = |other: AgentId| {
        let tie = u64::from(who.max(other)) << 32 | u64::from(who.min(other));
        philox([tie, (Stream::Matching as u64) << 32 | u64::from(round)], seed)[0]
    };
    topology.neighbours(who).map(|other| (priority(other), other)).min().map(|(_, other)| other)
}

impl Policy for DeffuantWeisbuch {
    const NAME: &'static str = "deffuant-weisbuch";
    const SUMMARY: &'static str =
        "Meet one other agent per round and approach its opinion if it is near (bounded confidence)";
    type Params = Params;
    type State = ();

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let Params { epsilon, mu } = params;
        if !(epsilon >= 0.0 && epsilon.is_finite()) {
            return Err(Invalid { key: "epsilon".into(), message: format!("must be 0 or more, is {epsilon}") });
        }
        if !(mu > 0.0 && mu <= 0.5) {
            return Err(Invalid { key: "mu".into(), message: format!("must be above 0 and at most 0.5, is {mu}") });
        }
        let (act, low, high) = setup.number_act()?;
        Ok(DeffuantWeisbuch { epsilon, mu, opinion: setup.number("opinion")?, act, low, high })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let (who, seed, round) = (turn.who, turn.seed(), turn.round);
        let own = turn.observation.number(self.opinion);
        let mut new = own;
        // A message from the agent chosen in the last round means that the choice was mutual: it is sent to nobody else.
        if let Some(last) = round.checked_sub(1)
            && !turn.inbox().is_empty()
            && let Some(partner) = choice(turn.topology(), seed, last, who)
            && let Some((_, other)) = turn.inbox().numbers().find(|(from, _)| *from == partner)
            && (other - own).abs() <= self.epsilon
        {
            new = (own + self.mu * (other - own)).clamp(self.low, self.high);
        }
        turn.act(self.act, new);
        if let Some(partner) = choice(turn.topology(), seed, round, who) {
            turn.send(partner, 0, new);
        }
        Ok(())
    }
}
