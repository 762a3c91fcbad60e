//! A common stock that agents harvest, month after month, and talk about. See README.md.

mod params;
mod share;
#[cfg(test)]
mod tests;

pub use params::{Params, Setting, Speech};

use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot, TextSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use polity_kernel::{AgentId, Invalid};
use serde::{Deserialize, Serialize};
use share::{gini, share};

/// Maximum number of rows of a table that an agent is shown.
const MOST_ROWS: usize = 50;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Commons>(files);
}

/// A common stock.
pub struct Commons {
    params: Params,
    agents: u32,
    slots: Slots,
}

/// An agent and what it has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Member {
    /// The harvest that it names in this round.
    demand: f64,
    /// What it proposes in this round, and says.
    proposes: Option<f64>,
    says: String,
    /// Its last harvest, and all of them.
    took: f64,
    gain: f64,
    /// Its last proposal since the last harvest, and its words in the last round of talk.
    proposal: Option<f64>,
    said: String,
    /// Months in which it has harvested, and those in which it took more than is sustainable (of a burden: less).
    months: u32,
    over: u32,
}

/// The stock and its members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    stock: f64,
    /// The month, from 0, and the round within it: 0 is the harvest, others are talk.
    month: u32,
    phase: u32,
    /// Whether it is the talk before the first harvest.
    opening: bool,
    members: Vec<Member>,
    /// Units harvested in the last month.
    harvest: f64,
    /// Months that the stock has survived.
    survived: u32,
    collapsed: bool,
    /// Whether the round that has just ended was one of harvest.
    harvested: bool,
    refused: u32,
    refused_last: u32,
}

/// What `observe` writes, and the actions.
struct Slots {
    mean_harvest: NumberSlot,
    proposals: NumberSlot,
    lowest: NumberSlot,
    mean: NumberSlot,
    highest: NumberSlot,
    harvests: TableSlot,
    proposed: TableSlot,
    conversation: TextSlot,
    harvest: u16,
    propose: u16,
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl State {
    fn member(&self, who: AgentId) -> Option<&Member> {
        self.members.get(who as usize)
    }
}

impl Commons {
    /// Returns the number of agents who are there in a month. Newcomers have the highest ids.
    fn present(&self, month: u32) -> u32 {
        match month < self.params.arrival {
            true => self.agents - self.params.newcomers,
            false => self.agents,
        }
    }

    fn is_present(&self, state: &State, who: AgentId) -> bool {
        who < self.present(state.month)
    }

    /// Returns the stock of the next month, if this is left of it.
    fn regrown(&self, left: f64) -> f64 {
        let Params { inverse, refill, growth, capacity, .. } = self.params;
        (if inverse { left + refill } else { left * growth }).min(capacity).floor()
    }

    /// Returns whether the next harvest is in the next month.
    fn is_after_harvest(state: &State) -> bool {
        state.phase > 0 && !state.opening
    }

    /// Returns the stock at the next harvest, which may be that of this round.
    fn coming_stock(&self, state: &State) -> f64 {
        if Self::is_after_harvest(state) { self.regrown(state.stock) } else { state.stock }
    }

    /// Returns the number of agents at the next harvest.
    fn coming_members(&self, state: &State) -> u32 {
        self.present(state.month + u32::from(Self::is_after_harvest(state)))
    }

    /// Returns how many units all may take together so that the stock of the next month is the same; of a burden, how many they must
    /// carry away.
    fn sustainable_total(&self, stock: f64) -> f64 {
        let Params { inverse, refill, growth, .. } = self.params;
        if inverse { refill } else { stock * (1.0 - 1.0 / growth) }
    }

    /// Returns the whole units of it for each of `present` agents.
    fn sustainable(&self, stock: f64, present: u32) -> f64 {
        // A share such as 10.0 may come out as 9.999999999.
        (self.sustainable_total(stock) / f64::from(present.max(1)) + 1e-9).floor()
    }

    /// Returns the sustainable amount at the next harvest.
    fn sustainable_next(&self, state: &State) -> f64 {
        self.sustainable(self.coming_stock(state), self.coming_members(state))
    }

    fn declare_rules(declare: &mut DeclareWorld<Self>, params: &Params) {
        let Params { capacity, months, talk, inverse, growth, refill, universalize, setting, .. } = *params;
        let limit = params.limit();
        let mut fixed = |name: &'static str, doc: &'static str, value: f64| {
            declare.shared_number(name, doc, move |_, _| value);
        };
        fixed("setting", "the resource: 0 fish, 1 grass, 2 clean water, 3 trash", f64::from(setting as u8));
        fixed("capacity", "largest possible stock, in units", capacity);
        fixed("months", "months that are played", f64::from(months));
        fixed("talks", "rounds of talk after each harvest", f64::from(talk));
        fixed("inverse", "1 if the stock is a burden to be carried away, else 0", truth(inverse));
        fixed("growth", "what is left of the stock is multiplied by this every month (a burden is not)", growth);
        fixed("refill", "units that are added to a burden every month", if inverse { refill } else { 0.0 });
        fixed("limit", "the stock collapses if less than this is left (a burden: more)", limit);
        fixed("universalized", "1 if agents are told what would come of it if all took as much", truth(universalize));
        declare.shared_number("month", "the month, from 0", |_, state| f64::from(state.month));
        let doc = "0 in the round of the harvest; in those of talk, the number of the round";
        declare.shared_number("phase", doc, |_, state| f64::from(state.phase));
        declare.shared_number("may-harvest", "1 in the round of the harvest", |_, state| truth(state.phase == 0));
        declare.shared_number("may-propose", "1 in rounds of talk", |_, state| truth(state.phase > 0));
        declare.shared_number("may-say", "1 in rounds of talk", |_, state| truth(state.phase > 0));
        declare.shared_number("stock", "units there are now", |_, state| state.stock);
        let doc = "units that there will be at the next harvest: now, or, in a round of talk, in the next month";
        declare.shared_number("coming-stock", doc, Self::coming_stock);
        declare.shared_number("members", "agents at the next harvest", |world, state| {
            f64::from(world.coming_members(state))
        });
        let doc = "if agents are told: the most that each may take at the next harvest without loss to the next month (of a burden: the least); else 0";
        declare.shared_number(
            "sustainable",
            doc,
            move |world, state| {
                if universalize { world.sustainable_next(state) } else { 0.0 }
            },
        );
        for name in ["right-harvest", "right-propose"] {
            declare.shared_number(name, "the sustainable amount, for simulated models", Self::sustainable_next);
        }
    }

    fn declare_agents(declare: &mut DeclareWorld<Self>, capacity: f64) -> Slots {
        declare.number("active", "1 if the agent is there, 0 before a newcomer has arrived", |world, state, who| {
            truth(world.is_present(state, *who))
        });
        declare.number("own-harvest", "units that the agent took at the last harvest", |_, state, who| {
            state.member(*who).map_or(0.0, |member| member.took)
        });
        declare.number("own-gain", "units that it has taken so far", |_, state, who| {
            state.member(*who).map_or(0.0, |member| member.gain)
        });
        let doc = "mean harvest of those whom it hears, in the last month; the own harvest if harvests are not shown";
        let mean_harvest = declare.number_slot("mean-harvest", doc);
        let proposals = declare.number_slot("proposals", "proposals that it has heard since the last harvest");
        let lowest = declare.number_slot("lowest-proposal", "the smallest of them; 0 without any");
        let mean = declare.number_slot("mean-proposal", "their mean; 0 without any");
        let highest = declare.number_slot("highest-proposal", "the largest of them; 0 without any");
        let doc =
            "what those whom it hears took at the last harvest, at most 50 of them; empty if harvests are not shown";
        let harvests = declare.table_slot("harvests", ["person", "amount"], doc);
        let doc = "what those whom it hears have proposed since the last harvest, at most 50 of them";
        let proposed = declare.table_slot("proposed", ["person", "amount"], doc);
        let conversation =
            declare.text_slot("conversation", "what those whom it hears said in the last round of talk, line by line");
        let amount = || ActionArgument::Number { low: 0.0, high: capacity };
        let doc = "take this many units, in the round of the harvest; the last number of a turn counts, in whole units";
        let harvest = declare.action("harvest", amount(), doc);
        let doc = "propose how many units each should take in the next month, in a round of talk";
        let propose = declare.action("propose", amount(), doc);
        declare.action("say", ActionArgument::Text, "say something to all who hear the agent, in a round of talk");
        declare.alternatives();
        Slots { mean_harvest, proposals, lowest, mean, highest, harvests, proposed, conversation, harvest, propose }
    }

    fn declare_results(declare: &mut DeclareWorld<Self>, capacity: f64) {
        let doc = "units that the agent took at the last harvest";
        declare.column("harvest", doc, Some((0.0, capacity)), |_, state, who| {
            state.member(*who).map_or(0.0, |member| member.took)
        });
        declare.column("gain", "units that it has taken so far", None, |_, state, who| {
            state.member(*who).map_or(0.0, |member| member.gain)
        });
        let doc = "share of its harvests that were above the sustainable amount (of a burden: below)";
        declare.column("over", doc, Some((0.0, 1.0)), |_, state, who| {
            state.member(*who).map_or(0.0, |member| f64::from(member.over) / f64::from(member.months.max(1)))
        });
        let doc = "the harvest of the round, minus it for a burden; 0 in rounds of talk";
        declare.reward(doc, |world, state, who| {
            let took = state.member(*who).map_or(0.0, |member| member.took);
            match (state.harvested, world.params.inverse) {
                (false, _) => 0.0,
                (true, false) => took,
                (true, true) => -took,
            }
        });
        declare.scalar("stock", "units left, or, after the last round of a month, those of the next", |_, s| s.stock);
        declare.scalar("harvest", "units taken at the last harvest", |_, state| state.harvest);
        declare.scalar("survived", "months that the stock has survived", |_, state| f64::from(state.survived));
        declare.scalar("sustained", "1 once all months are over without a collapse", |world, state| {
            truth(!state.collapsed && state.survived >= world.params.months)
        });
        let doc = "share of all harvests above the sustainable amount (of a burden: below)";
        declare.scalar("over-use", doc, |_, state| {
            let sum = |of: fn(&Member) -> u32| state.members.iter().map(|member| u64::from(of(member))).sum::<u64>();
            sum(|member| member.over) as f64 / sum(|member| member.months).max(1) as f64
        });
        let doc = "1 minus the Gini index of what each has taken so far";
        declare.scalar("equality", doc, |_, state| {
            1.0 - gini(state.members.iter().filter(|member| member.months > 0).map(|member| member.gain).collect())
        });
        let doc = "all that has been taken, as a share of what a sustainable harvest takes in all months; at most 1";
        declare.scalar("efficiency", doc, |world, state| {
            let most = world.sustainable_total(world.params.stock()).floor() * f64::from(world.params.months);
            (state.members.iter().map(|member| member.gain).sum::<f64>() / most.max(1.0)).min(1.0)
        });
        let doc = "acts of the round that did not count: at the wrong time, or of agents who are not there";
        declare.scalar("refused", doc, |_, state| f64::from(state.refused_last));
    }

    /// Shares out the harvest. Returns why the run ends, if it does.
    fn settle(&self, state: &mut State, draws: &mut Draws) -> Option<String> {
        let present = self.present(state.month) as usize;
        let demands: Vec<f64> = state.members.iter().take(present).map(|member| member.demand).collect();
        let taken = share(&demands, state.stock, draws);
        let sustainable = self.sustainable(state.stock, present as u32);
        for (member, took) in state.members.iter_mut().zip(&taken) {
            let beyond = if self.params.inverse { *took < sustainable } else { *took > sustainable };
            member.took = *took;
            member.gain += took;
            member.months += 1;
            member.over += u32::from(beyond);
        }
        for member in &mut state.members {
            member.demand = 0.0;
            member.proposal = None;
            member.said.clear();
        }
        state.harvest = taken.iter().sum();
        state.stock -= state.harvest;
        let limit = self.params.limit();
        state.collapsed = if self.params.inverse { state.stock > limit } else { state.stock < limit };
        if state.collapsed {
            let what = if self.params.inverse { "the burden is too large" } else { "the stock has collapsed" };
            return Some(format!("{what}: {} units are left in month {}", state.stock, state.month + 1));
        }
        state.survived += 1;
        (state.survived >= self.params.months).then(|| format!("{} months are over", self.params.months))
    }
}

impl World for Commons {
    const NAME: &'static str = "commons";
    const SUMMARY: &'static str =
        "A common stock that agents harvest and talk about (fishery, pasture, pollution; GovSim)";
    type Params = Params;
    type State = State;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        params.check(setup.agents)?;
        Commons::declare_rules(declare, &params);
        let slots = Commons::declare_agents(declare, params.capacity);
        Commons::declare_results(declare, params.capacity);
        Ok(Commons { params, agents: setup.agents, slots })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, _: &mut Draws) -> State {
        let opening = self.params.opening && self.params.talk > 0;
        State {
            stock: self.params.stock(),
            month: 0,
            phase: u32::from(opening),
            opening,
            members: vec![Member::default(); setup.agents as usize],
            harvest: 0.0,
            survived: 0,
            collapsed: false,
            harvested: false,
            refused: 0,
            refused_last: 0,
        }
    }

    fn observe(&self, state: &State, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let me = person.id;
        let Some(own) = state.member(me) else { return };
        let heard: Vec<(AgentId, &Member)> = observation
            .neighbours()
            .filter(|who| *who != me && self.is_present(state, *who))
            .filter_map(|who| Some((who, state.member(who)?)))
            .collect();
        let pick = |of: &dyn Fn(&Member) -> Option<f64>| -> Vec<(AgentId, f64)> {
            heard.iter().filter_map(|(who, other)| Some((*who, of(other)?))).collect()
        };
        let show = self.params.show_harvests;
        let harvests = pick(&|other| (show && other.months > 0).then_some(other.took));
        let proposals = match self.params.speech {
            Speech::Heard => pick(&|other| other.proposal),
            Speech::Echo => pick(&|other| other.proposal.and(own.proposal)),
            Speech::Blank => Vec::new(),
        };
        let words: String = match self.params.speech {
            Speech::Heard => {
                let spoke = heard.iter().filter(|(_, other)| !other.said.is_empty());
                spoke.map(|(who, other)| format!("Person {who}: {}\n", other.said)).collect()
            }
            Speech::Echo | Speech::Blank => String::new(),
        };
        let mean = |amounts: &[(AgentId, f64)]| amounts.iter().map(|(_, x)| x).sum::<f64>() / amounts.len() as f64;
        observation.number(self.slots.mean_harvest, if harvests.is_empty() { own.took } else { mean(&harvests) });
        if !proposals.is_empty() {
            let amounts = || proposals.iter().map(|(_, amount)| *amount);
            observation.number(self.slots.proposals, proposals.len() as f64);
            observation.number(self.slots.lowest, amounts().fold(f64::INFINITY, f64::min));
            observation.number(self.slots.mean, mean(&proposals));
            observation.number(self.slots.highest, amounts().fold(0.0, f64::max));
        }
        for (slot, amounts) in [(self.slots.harvests, &harvests), (self.slots.proposed, &proposals)] {
            observation.table(slot, |rows| {
                rows.extend(amounts.iter().take(MOST_ROWS).flat_map(|(who, amount)| [f64::from(*who), *amount]));
            });
        }
        observation.text(self.slots.conversation, words);
    }

    fn apply(&self, state: &mut State, actions: &AgentActions<'_>, _: &mut Future) {
        let (there, talk) = (self.is_present(state, actions.person.id), state.phase > 0);
        let Some(member) = state.members.get_mut(actions.person.id as usize) else { return };
        for (i, act) in actions.acts().iter().enumerate() {
            let amount = act.value.clamp(0.0, self.params.capacity).round();
            match (act.kind == self.slots.harvest, act.kind == self.slots.propose) {
                _ if !there || talk == (act.kind == self.slots.harvest) => state.refused += 1,
                (true, _) => member.demand = amount,
                (_, true) => member.proposes = Some(amount),
                (false, false) => member.says = actions.text(i).unwrap_or_default().replace('\n', " "),
            }
        }
    }

    fn end_round(&self, state: &mut State, draws: &mut Draws) -> Option<String> {
        state.refused_last = std::mem::take(&mut state.refused);
        state.harvested = state.phase == 0;
        if state.harvested {
            if let Some(reason) = self.settle(state, draws) {
                return Some(reason);
            }
        } else {
            for member in &mut state.members {
                member.proposal = member.proposes.take().or(member.proposal);
                member.said = std::mem::take(&mut member.says);
            }
        }
        if state.phase < self.params.talk {
            state.phase += 1;
            return None;
        }
        state.phase = 0;
        if !std::mem::take(&mut state.opening) {
            state.month += 1;
            state.stock = self.regrown(state.stock);
        }
        None
    }
}
