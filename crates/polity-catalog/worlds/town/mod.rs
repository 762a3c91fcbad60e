//! A town: people meet where they happen to be, get to know each other and tell news. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::interface::{ActionArgument, TableSlot, named};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use polity_kernel::{AgentId, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Town>(files);
}

/// A piece of news.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct News {
    /// The person who has it from the start.
    holder: AgentId,
}

/// Parameters of the town.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Number of people per place.
    people_per_place: f64,
    /// Probability of being out in a round, at one of the places; others are at home, alone.
    out: f64,
    /// Probability that a person who is out is at its usual place; otherwise it is at a random one.
    habit: f64,
    /// The pieces of news.
    news: Vec<News>,
}

impl Default for Params {
    fn default() -> Self {
        Params { people_per_place: 5.0, out: 0.5, habit: 0.5, news: vec![News { holder: 0 }] }
    }
}

/// People who meet and talk.
pub struct Town {
    params: Params,
    places: u32,
    slots: Slots,
}

/// At home.
const HOME: u32 = u32::MAX;

/// A person in the town.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Inhabitant {
    usual: u32,
    /// Its place in this round.
    place: u32,
    /// Its acquaintances, ascending.
    known: Vec<AgentId>,
    /// News that it had from the start or has been told, ascending.
    told: Vec<u32>,
    /// News told to it in the last round: by whom, which news.
    heard: Vec<(AgentId, u32)>,
    /// Its claims in this round, and in the last.
    says: Claims,
    said: Claims,
}

/// News that a person claims to know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Claims {
    /// News that it was told or had from the start, ascending.
    founded: Vec<u32>,
    /// Number of other claims.
    unfounded: u32,
}

/// Counts of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Counts {
    talks: u32,
    told: u32,
    refused: u32,
}

/// The state of the town.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    people: Vec<Inhabitant>,
    /// News told in this round and heard in the next: to whom, by whom, which news.
    told: Vec<(AgentId, AgentId, u32)>,
    counts: Counts,
    last: Counts,
    /// The people at each place, ascending.
    #[serde(skip)]
    there: Vec<Vec<AgentId>>,
}

/// Observations, and two of the three actions.
struct Slots {
    present: TableSlot,
    own: TableSlot,
    heard: TableSlot,
    talk: u16,
    tell: u16,
}

/// Inserts into an ascending list.
fn insert(list: &mut Vec<u32>, one: u32) {
    if let Err(at) = list.binary_search(&one) {
        list.insert(at, one);
    }
}

impl Town {
    fn declare(declare: &mut DeclareWorld<Self>, news: usize) -> Slots {
        let doc = "how many pieces of news there are, numbered from 0 on";
        declare.shared_number("news", doc, move |_, _| news as f64);
        let doc = "who else is there, and whether the agent knows them";
        let present = declare.table_slot("present", ["person", "known"], doc);
        let own = declare.table_slot("own", ["news"], "news that the agent has from the start");
        let doc = "what it was told in the last round, and by whom";
        let heard = declare.table_slot("heard", ["person", "news"], doc);
        let of_news = || ActionArgument::Number { low: 0.0, high: news.max(1) as f64 - 1.0 };
        let anybody = ActionArgument::Number { low: 0.0, high: f64::from(u32::MAX) };
        let doc = "talk with somebody who is there; from then on both know each other";
        let talk = declare.action("talk", anybody, doc);
        let doc = "tell news to whom one talks with: the last that this turn has named";
        let tell = declare.action("tell", of_news(), doc);
        declare.action("know", of_news(), "say that one knows of news, when asked after the round");
        let doc = "how many people the agent knows";
        declare.column("acquaintances", doc, None, |_, state, who| state.people[*who as usize].known.len() as f64);
        let doc = "pieces of news that the agent says it knows, and that it was told or had from the start";
        declare.column("knows", doc, None, |_, state, who| state.people[*who as usize].said.founded.len() as f64);
        let doc = "number of agents who know a piece of news, averaged over all pieces";
        declare.scalar("informed", doc, move |_, state| {
            state.people.iter().map(|person| person.said.founded.len()).sum::<usize>() as f64 / news.max(1) as f64
        });
        let doc = "pieces of news that agents say they know although nobody told them";
        declare.scalar("unfounded", doc, |_, state| {
            state.people.iter().map(|person| f64::from(person.said.unfounded)).sum()
        });
        declare.scalar("density", "share of all pairs who know each other", |_, state| {
            let n = state.people.len() as f64;
            state.people.iter().map(|person| person.known.len()).sum::<usize>() as f64 / (n * (n - 1.0)).max(1.0)
        });
        declare.scalar("talks", "talks in the round", |_, state| f64::from(state.last.talks));
        declare
            .scalar("told", "number of times that news was told in the round", |_, state| f64::from(state.last.told));
        let doc = "acts in the round on people who are not there or on news that does not exist";
        declare.scalar("refused", doc, |_, state| f64::from(state.last.refused));
        Slots { present, own, heard, talk, tell }
    }

    /// Moves everybody to the place of the next round.
    fn move_all(&self, state: &mut State, draws: &mut Draws) {
        let key = draws.u64();
        for (who, person) in (0..).zip(&mut state.people) {
            let mut own = Draws::new(key, Stream::World, 0, who);
            person.place = match own.chance(self.params.out) {
                false => HOME,
                true if own.chance(self.params.habit) => person.usual,
                true => own.below(u64::from(self.places)) as u32,
            };
        }
        self.restore(state);
    }
}

impl World for Town {
    const NAME: &'static str = "town";
    const SUMMARY: &'static str = "A town: people meet, get to know each other and exchange news";
    type Params = Params;
    type State = State;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let invalid = |key: &str, message: String| Err(Invalid { key: key.into(), message });
        if !(params.people_per_place >= 1.0 && params.people_per_place.is_finite()) {
            let given = params.people_per_place;
            return invalid("people_per_place", format!("must be 1 or more, is {given}"));
        }
        for (key, part) in [("out", params.out), ("habit", params.habit)] {
            Invalid::within(0.0..=1.0, key, part)?;
        }
        if let Some(i) = params.news.iter().position(|news| news.holder >= setup.agents) {
            let (holder, agents) = (params.news[i].holder, setup.agents);
            return invalid(
                &format!("news[{i}].holder"),
                format!("there is no agent {holder}; there are {agents}, numbered from 0"),
            );
        }
        let places = (f64::from(setup.agents) / params.people_per_place).ceil().max(1.0) as u32;
        let slots = Town::declare(declare, params.news.len());
        Ok(Town { params, places, slots })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> State {
        let inhabitant = |who: AgentId, usual: u32| {
            let news = (0..).zip(&self.params.news);
            let told = news.filter(|(_, news)| news.holder == who).map(|(i, _)| i).collect();
            let known = setup.topology.neighbours(who).collect();
            Inhabitant { usual, place: HOME, known, told, ..Inhabitant::default() }
        };
        let places = u64::from(self.places);
        let people = (0..setup.agents).map(|who| inhabitant(who, draws.below(places) as u32)).collect();
        let mut state =
            State { people, told: Vec::new(), counts: Counts::default(), last: Counts::default(), there: Vec::new() };
        // A directed tie is an acquaintance of both.
        for who in 0..setup.agents {
            for other in setup.topology.neighbours(who) {
                insert(&mut state.people[other as usize].known, who);
            }
        }
        self.move_all(&mut state, draws);
        state
    }

    fn observe(&self, state: &State, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let me = &state.people[person.id as usize];
        let own = (0..).zip(&self.params.news).filter(|(_, news)| news.holder == person.id);
        observation.table(self.slots.own, |rows| rows.extend(own.map(|(i, _)| f64::from(i))));
        observation.table(self.slots.heard, |rows| {
            rows.extend(me.heard.iter().flat_map(|(from, news)| [f64::from(*from), f64::from(*news)]));
        });
        // Nobody else is at home.
        if let Some(there) = state.there.get(me.place as usize) {
            let others = there.iter().filter(|other| **other != person.id);
            let known = |other| f64::from(u8::from(me.known.binary_search(other).is_ok()));
            observation.table(self.slots.present, |rows| {
                rows.extend(others.flat_map(|other| [f64::from(*other), known(other)]))
            });
        }
    }

    fn apply(&self, state: &mut State, actions: &AgentActions<'_>, _: &mut Future) {
        let (who, all) = (actions.person.id, state.people.len());
        let Slots { talk, tell, .. } = self.slots;
        let mut partner = None;
        for act in actions.acts() {
            let place = state.people[who as usize].place;
            let named = named(act.value, if act.kind == talk { all } else { self.params.news.len() });
            match named {
                Some(other)
                    if act.kind == talk
                        && other != who
                        && place != HOME
                        && state.people[other as usize].place == place =>
                {
                    partner = Some(other);
                    state.counts.talks += 1;
                    insert(&mut state.people[who as usize].known, other);
                    insert(&mut state.people[other as usize].known, who);
                }
                Some(news) if act.kind == tell && partner.is_some() => {
                    state.counts.told += 1;
                    state.told.extend(partner.map(|to| (to, who, news)));
                }
                Some(news) if act.kind != talk && act.kind != tell => {
                    let me = &mut state.people[who as usize];
                    match me.told.contains(&news) {
                        true => insert(&mut me.says.founded, news),
                        false => me.says.unfounded += 1,
                    }
                }
                _ => state.counts.refused += 1,
            }
        }
    }

    fn end_round(&self, state: &mut State, draws: &mut Draws) -> Option<String> {
        for person in &mut state.people {
            person.heard.clear();
            person.said = std::mem::take(&mut person.says);
        }
        for (to, from, news) in std::mem::take(&mut state.told) {
            let hearer = &mut state.people[to as usize];
            hearer.heard.push((from, news));
            insert(&mut hearer.told, news);
        }
        state.last = std::mem::take(&mut state.counts);
        self.move_all(state, draws);
        None
    }

    fn restore(&self, state: &mut State) {
        state.there = vec![Vec::new(); self.places as usize];
        for (who, person) in (0..).zip(&state.people) {
            if let Some(there) = state.there.get_mut(person.place as usize) {
                there.push(who);
            }
        }
    }
}
