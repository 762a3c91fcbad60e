//! Bidders of different personas compete for houses in ascending auctions. See README.md.

mod params;
mod table;
#[cfg(test)]
mod tests;

pub use params::{FEATURES, Params, Persona};
pub use table::Table;

use polity_kernel::AgentId;
use polity_kernel::Invalid;
use polity_kernel::ask::ResponseFormat;
use polity_kernel::digest::DigestVec;
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<HouseAuction>(files);
}

/// Auctions of houses.
pub struct HouseAuction {
    params: Params,
    slots: Slots,
}

/// What `observe` writes, and the actions.
struct Slots {
    seat: NumberSlot,
    active: NumberSlot,
    season: NumberSlot,
    price: NumberSlot,
    value: NumberSlot,
    budget: NumberSlot,
    news: NumberSlot,
    houses: TableSlot,
    others: TableSlot,
    memory: TableSlot,
    personas: TableSlot,
    stay: u16,
    profile: u16,
}

/// A bidder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bidder {
    persona: u32,
    /// What its houses are worth to it, less what it paid.
    profit: f64,
    won: u32,
    /// By seat: the persona that it believes another to have.
    guesses: Vec<Option<u32>>,
}

/// The state of all tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    tables: DigestVec<Table>,
    bidders: DigestVec<Bidder>,
}

/// A guess of an agent.
#[derive(Debug, Deserialize)]
struct Guess {
    seat: f64,
    persona: String,
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl HouseAuction {
    fn place(&self, who: AgentId) -> (usize, usize) {
        ((who / self.params.seats) as usize, (who % self.params.seats) as usize)
    }

    fn personas(&self, state: &State, table: usize) -> Vec<u32> {
        let seats = self.params.seats as usize;
        let own = state.bidders.iter().skip(table * seats).take(seats);
        own.map(|bidder| bidder.persona).collect()
    }

    /// The share of a bidder's guesses that are right, and their number.
    fn right(&self, state: &State, who: usize) -> (u32, u32) {
        let (Some(bidder), first) = (state.bidders.get(who), who - who % self.params.seats as usize) else {
            return (0, 0);
        };
        let guesses = bidder.guesses.iter().enumerate().filter_map(|(seat, guess)| Some((seat, (*guess)?)));
        let right = |(seat, guess): (usize, u32)| {
            u32::from(state.bidders.get(first + seat).is_some_and(|other| other.persona == guess))
        };
        guesses.fold((0, 0), |(sum, all), guess| (sum + right(guess), all + 1))
    }

    fn mean_profit(state: &State, of: impl Fn(usize, &Bidder) -> bool) -> f64 {
        let those = || state.bidders.iter().enumerate().filter(|(who, bidder)| of(*who, bidder));
        those().map(|(_, bidder)| bidder.profit).sum::<f64>() / those().count().max(1) as f64
    }

    fn declare(declare: &mut DeclareWorld<Self>, params: &Params) -> Slots {
        let step = params.step;
        declare.shared_number("step", "by how much the price rises in a round", move |_, _| step);
        let seat = declare.number_slot("seat", "the agent's seat at its table, from 0");
        let active = declare.number_slot("active", "1 while the agent is in the auction of the house");
        let season = declare.number_slot("season", "the season, from 0");
        let price = declare.number_slot("price", "the price that is called");
        let value = declare.number_slot("value", "what the house is worth to the agent");
        let budget = declare.number_slot("budget", "the most that it can pay");
        let news =
            declare.number_slot("news", "1 in the first round after a sale, whose record is the last of `memory`");
        let houses = ["size", "location", "condition", "value"];
        let doc = "the house that is sold, and those that will be sold after it in this season: features from 0 to 1, and what each is worth to the agent";
        let houses = declare.table_slot("houses", houses, doc);
        let doc = "the others at the table: seat, whether it is in the auction, whether it has bought in this season";
        let others = declare.table_slot("others", ["seat", "within", "bought"], doc);
        let doc = "the last sales at the table, at most 20: the house, and by seat the price that it did not pay any more (-1: it bought, -2: it took no part); price, and the buyer's seat (-1: none)";
        let columns = ["size", "location", "condition", "seat", "left", "price", "buyer"];
        let memory = declare.table_slot("memory", columns, doc);
        let doc =
            "the personas, by name: how much size, location and condition count, the budget, the share of bidders";
        let personas = declare.table_slot("personas", ["size", "location", "condition", "budget", "share"], doc);
        let doc = "agree to the price; who does not leaves the auction of the house";
        let stay = declare.action("stay", ActionArgument::Nothing, doc);
        let names = params.personas.iter().map(|persona| persona.name.clone()).collect();
        let guess = [
            ("seat".to_owned(), ResponseFormat::number(0.0, f64::from(params.seats - 1))),
            ("persona".to_owned(), ResponseFormat::Choice(names)),
        ];
        let doc = "say which persona another at the table has; the last word on each counts";
        let profile = declare.action("profile", ActionArgument::Record(ResponseFormat::Record(guess.into())), doc);
        Slots { seat, active, season, price, value, budget, news, houses, others, memory, personas, stay, profile }
    }

    fn declare_results(declare: &mut DeclareWorld<Self>, params: &Params) {
        declare.column("profit", "what its houses are worth to the agent, less what it paid", None, |_, state, who| {
            state.bidders.get(*who as usize).map_or(0.0, |bidder| bidder.profit)
        });
        declare.column("won", "houses that it has bought", None, |_, state, who| {
            state.bidders.get(*who as usize).map_or(0.0, |bidder| f64::from(bidder.won))
        });
        let doc = "share of its guesses of others' personas that are right; 0 without any";
        declare.column("accuracy", doc, Some((0.0, 1.0)), |world, state, who| {
            let (right, all) = world.right(state, *who as usize);
            f64::from(right) / f64::from(all.max(1))
        });
        declare.scalar("profit", "mean profit of a bidder", |_, state| Self::mean_profit(state, |_, _| true));
        let seats = params.seats as usize;
        let doc = "mean profit of the bidders in the first seats of tables";
        declare.scalar("first-profit", doc, move |_, state| Self::mean_profit(state, |who, _| who % seats == 0));
        for (i, persona) in params.personas.iter().enumerate() {
            let doc = format!("mean profit of a bidder with the persona {}", persona.name);
            declare.scalar(format!("profit-{}", persona.name), doc, move |_, state| {
                Self::mean_profit(state, |_, bidder| bidder.persona as usize == i)
            });
        }
        let doc = "share of all guesses of others' personas that are right; 0 without any";
        declare.scalar("accuracy", doc, |world, state| {
            let add = |sum: (u32, u32), own: (u32, u32)| (sum.0 + own.0, sum.1 + own.1);
            let (right, all) = (0..state.bidders.len()).map(|who| world.right(state, who)).fold((0, 0), add);
            f64::from(right) / f64::from(all.max(1))
        });
        declare.scalar("tables-done", "share of tables whose seasons are over", |world, state| {
            let done = state.tables.iter().filter(|table| table.is_over(&world.params)).count();
            done as f64 / state.tables.len().max(1) as f64
        });
    }
}

impl World for HouseAuction {
    const NAME: &'static str = "house-auction";
    const SUMMARY: &'static str = "Bidders of different personas compete for houses in ascending auctions (HARBOR)";
    type Params = Params;
    type State = State;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        params.check(setup.agents)?;
        let slots = HouseAuction::declare(declare, &params);
        HouseAuction::declare_results(declare, &params);
        Ok(HouseAuction { params, slots })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> State {
        let seats = self.params.seats as usize;
        let shares: Vec<f64> = self.params.personas.iter().map(|persona| persona.share).collect();
        let mut bidder = || Bidder {
            persona: draws.weighted(&shares).unwrap_or_default() as u32,
            profit: 0.0,
            won: 0,
            guesses: vec![None; seats],
        };
        let bidders: Vec<Bidder> = (0..setup.agents).map(|_| bidder()).collect();
        let personas: Vec<u32> = bidders.iter().map(|bidder| bidder.persona).collect();
        let tables: Vec<Table> = personas.chunks(seats).map(|own| Table::new(&self.params, own, draws)).collect();
        State { tables: tables.into(), bidders: bidders.into() }
    }

    fn observe(&self, state: &State, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let (table, seat) = self.place(person.id);
        let (Some(table), Some(bidder)) = (state.tables.get(table), state.bidders.get(person.id as usize)) else {
            return;
        };
        let slots = &self.slots;
        observation.number(slots.seat, seat as f64);
        if table.is_over(&self.params) {
            return;
        }
        let coming = &table.houses[table.house as usize..];
        observation.number(slots.active, truth(table.within[seat]));
        observation.number(slots.season, f64::from(table.season));
        observation.number(slots.price, table.price);
        observation.number(slots.value, coming.first().map_or(0.0, |house| house.worth[seat]));
        observation.number(slots.budget, self.params.personas[bidder.persona as usize].budget);
        observation.number(slots.news, truth(table.opens && !table.sales.is_empty()));
        observation.table(slots.houses, |rows| {
            for house in coming {
                rows.extend(house.features.iter().copied().chain([house.worth[seat]]));
            }
        });
        observation.table(slots.others, |rows| {
            for other in (0..table.within.len()).filter(|other| *other != seat) {
                rows.extend([other as f64, truth(table.within[other]), truth(table.bought[other])]);
            }
        });
        // What does not change while the price rises is shown once.
        if !table.opens {
            return;
        }
        observation.table(slots.memory, |rows| {
            for sale in &table.sales {
                let buyer = sale.buyer.map_or(-1.0, f64::from);
                for (other, left) in sale.left.iter().enumerate().filter(|(other, _)| *other != seat) {
                    let left = left.unwrap_or(if buyer == other as f64 { -1.0 } else { -2.0 });
                    rows.extend(sale.features.iter().copied().chain([other as f64, left, sale.price, buyer]));
                }
            }
        });
        observation.table(slots.personas, |rows| {
            for persona in &self.params.personas {
                rows.extend(persona.weights.iter().copied().chain([persona.budget, persona.share]));
                rows.text(persona.name.clone());
            }
        });
    }

    fn apply(&self, state: &mut State, actions: &AgentActions<'_>, _: &mut Future) {
        let who = actions.person.id as usize;
        let (table, seat) = self.place(actions.person.id);
        for (i, act) in actions.acts().iter().enumerate() {
            if act.kind == self.slots.stay && state.tables.get(table).is_some() {
                state.tables.change(table, |table| table.stays[seat] = true);
            } else if act.kind == self.slots.profile {
                let Some(guess) = actions.record::<Guess>(i) else { continue };
                let other = guess.seat as usize;
                let persona = self.params.personas.iter().position(|persona| persona.name == guess.persona);
                if let Some(persona) = persona.filter(|_| other != seat && other < self.params.seats as usize) {
                    state.bidders.change(who, |bidder| bidder.guesses[other] = Some(persona as u32));
                }
            }
        }
    }

    fn end_round(&self, state: &mut State, draws: &mut Draws) -> Option<String> {
        let mut over = true;
        for table in 0..state.tables.len() {
            if state.tables[table].is_over(&self.params) {
                continue;
            }
            let personas = self.personas(state, table);
            let sold = state.tables.change(table, |table| table.call(&self.params, &personas, draws));
            if let Some((seat, gain)) = sold {
                state.bidders.change(table * self.params.seats as usize + seat, |bidder| {
                    bidder.profit += gain;
                    bidder.won += 1;
                });
            }
            over &= state.tables[table].is_over(&self.params);
        }
        over.then(|| format!("{} seasons are over", self.params.seasons))
    }
}
