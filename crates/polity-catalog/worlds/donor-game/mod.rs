//! The donor game over generations: who gives, who is seen to have given, and whose way is handed down. See README.md.

mod game;
mod params;
#[cfg(test)]
mod tests;

pub use game::Game;
pub use params::{History, Params, Selection};

use game::{Choice, Player};
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareSplit, Future, ObservationRow, SplitWorld, WorldSetup};
use polity_kernel::{AgentId, Invalid};

/// Maximum number of steps back that a donor sees.
const DEEPEST: usize = 3;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.split_world::<DonorGame>(files);
}

/// The donor game.
pub struct DonorGame {
    params: Params,
    agents: u32,
    slots: Slots,
}

/// What `observe` writes, and the actions.
struct Slots {
    donor: NumberSlot,
    active: NumberSlot,
    resources: NumberSlot,
    punished: NumberSlot,
    recipient: NumberSlot,
    recipient_resources: NumberSlot,
    trace: NumberSlot,
    shares: [NumberSlot; DEEPEST],
    history: TableSlot,
    punish: Option<u16>,
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl DonorGame {
    fn declare(declare: &mut DeclareSplit<Self>, params: &Params) -> Slots {
        let Params { factor, punishment, rounds, generations, .. } = *params;
        for (name, doc, value) in [
            ("factor", "a recipient gets what the donor gives up, times this", factor),
            (
                "punishment",
                "a recipient loses what the donor spends on it, times this; 0: donors cannot punish",
                punishment,
            ),
            ("rounds", "rounds of a generation", f64::from(rounds)),
            ("generations", "generations", f64::from(generations)),
        ] {
            declare.shared_number(name, doc, move |_, _| value);
        }
        declare.shared_number("generation", "the generation, from 0", |_, game| f64::from(game.generation));
        let doc = "the round of the generation, from 1; 0 while a generation is born";
        declare.shared_number("game-round", doc, |_, game| f64::from(game.round));
        let active = declare.number_slot("active", "1 if the agent is a donor in this round");
        let donor = declare.number_slot("donor", "1 if the agent is a donor in this round");
        let resources = declare.number_slot("resources", "what the agent has");
        let punished = declare.number_slot("punished", "how often it has been punished in this generation");
        let recipient = declare.number_slot("recipient", "to whom it may give");
        let recipient_resources = declare.number_slot("recipient-resources", "what the recipient has");
        let doc = "how many steps of the history are known: what the recipient did last as a donor, what the one whom it then met had done before, and so on";
        let trace = declare.number_slot("trace", doc);
        let shares = [
            ("last-share", "share of its resources that the recipient gave when it was last a donor; 0 if unknown"),
            ("second-share", "share that the one whom it then met had given last before; 0 if unknown"),
            ("third-share", "share that the one whom that one met had given last before; 0 if unknown"),
        ]
        .map(|(name, doc)| declare.number_slot(name, doc));
        let doc = "these steps: who, to whom, which share, and whether the donor punished instead of giving";
        let history = declare.table_slot("history", ["person", "to", "share", "punished"], doc);
        let share = || ActionArgument::Number { low: 0.0, high: 1.0 };
        declare.action("give", share(), "give up this share of one's resources; without an act, nothing is given");
        let punish = (punishment > 0.0).then(|| {
            declare.alternatives();
            declare.action("punish", share(), "spend this share of one's resources on punishing the recipient")
        });
        Slots { donor, active, resources, punished, recipient, recipient_resources, trace, shares, history, punish }
    }

    fn declare_results(declare: &mut DeclareSplit<Self>) {
        let of = |game: &Game, who: AgentId, value: fn(&Player) -> f64| game.player(who).map_or(0.0, value);
        let doc = "what the agent has; 0 for those who die in this round";
        declare.column("score", doc, None, move |_, game, who| of(game, *who, |player| player.resources));
        let doc = "mean share that it has given as a donor in this generation; 0 if it was none";
        declare.column("given", doc, Some((0.0, 1.0)), move |_, game, who| of(game, *who, Player::mean_share));
        let doc = "what the agent got in the round, less what it gave, spent or lost";
        declare.reward(doc, move |_, game, who| of(game, *who, |player| player.change));
        declare.scalar("generation", "the generation, from 0", |_, game| f64::from(game.generation));
        declare.scalar("score", "mean of what agents have", |_, game| game.mean_score());
        let doc = "mean score at the end of the last generation that is over; 0 before";
        declare.scalar("final-score", doc, |_, game| game.final_score);
        declare.scalar("given", "mean share that donors gave in the round", |_, game| game.given);
        declare.scalar("punishments", "donors who punished in the round", |_, game| f64::from(game.punishments));
    }
}

impl SplitWorld for DonorGame {
    const NAME: &'static str = "donor-game";
    const SUMMARY: &'static str = "The donor game over generations, with visible histories and inherited strategies";
    type Params = Params;
    /// The agent.
    type Row = AgentId;
    type Common = Game;
    type Tally = Vec<Choice>;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        params.check(setup.agents)?;
        let slots = DonorGame::declare(declare, &params);
        DonorGame::declare_results(declare);
        Ok(DonorGame { params, agents: setup.agents, slots })
    }

    fn init_common(&self) -> Game {
        Game::new(self.agents, self.params.endowment)
    }

    fn init_row(&self, person: Person<'_>, _: &mut Draws) -> AgentId {
        person.id
    }

    fn observe(&self, game: &Game, who: &AgentId, _: Person<'_>, observation: &mut ObservationRow<'_>) {
        let slots = &self.slots;
        let Some(me) = game.place(*who) else { return };
        observation.number(slots.resources, game.players[me].resources);
        observation.number(slots.punished, f64::from(game.players[me].punished));
        let Some(recipient) = game.recipient(me) else { return };
        observation.number(slots.donor, truth(true));
        observation.number(slots.active, truth(true));
        observation.number(slots.recipient, f64::from(game.players[recipient].id));
        observation.number(slots.recipient_resources, game.players[recipient].resources);
        let seen = match self.params.history {
            History::Shown => Some(recipient),
            History::Random => game.stand_in(me),
            History::Hidden => None,
        };
        let steps = seen.map(|seen| game.trace(seen, self.params.trace as usize)).unwrap_or_default();
        observation.number(slots.trace, steps.len() as f64);
        for (slot, (_, gift)) in slots.shares.iter().zip(&steps) {
            observation.number(*slot, gift.share);
        }
        observation.table(slots.history, |rows| {
            rows.extend(
                steps.iter().flat_map(|(person, gift)| {
                    [f64::from(*person), f64::from(gift.to), gift.share, truth(gift.punished)]
                }),
            );
        });
    }

    fn tally(&self) -> Vec<Choice> {
        Vec::new()
    }

    fn apply(
        &self,
        game: &Game,
        who: &mut AgentId,
        actions: &AgentActions<'_>,
        tally: &mut Vec<Choice>,
        future: &mut Future,
    ) {
        if game.round == 0 {
            if game.dying.binary_search(who).is_ok() {
                future.death(*who);
            }
            let from = game.parents.partition_point(|parent| parent < who);
            game.parents[from..].iter().take_while(|parent| *parent == who).for_each(|parent| future.birth(*parent));
        } else if let Some(act) = actions.acts().last() {
            let punishes = Some(act.kind) == self.slots.punish;
            tally.push(Choice { who: *who, share: act.value.clamp(0.0, 1.0), punishes });
        }
    }

    fn merge(&self, mut left: Vec<Choice>, right: Vec<Choice>) -> Vec<Choice> {
        left.extend(right);
        left
    }

    fn end_round(&self, game: &mut Game, tally: Vec<Choice>, draws: &mut Draws) -> Option<String> {
        let Params { rounds, generations, endowment, factor, punishment, .. } = self.params;
        if game.round == 0 {
            game.succeed(endowment);
            game.seat(draws);
        } else {
            game.play(&tally, factor, punishment);
            if game.round == rounds {
                game.final_score = game.mean_score();
                if game.generation + 1 == generations {
                    return Some(format!("{generations} generations are over"));
                }
                game.select(self.params.selection, self.params.mutation, draws);
                return None;
            }
        }
        game.round += 1;
        if self.params.history == History::Random {
            game.draw_stand_ins(draws);
        }
        None
    }
}
