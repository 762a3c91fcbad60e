//! A prisoner's dilemma in a population, with partner selection, punishment and reputation as switches. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::AgentId;
use polity_kernel::digest::DigestVec;
use polity_kernel::interface::NumberSlot;
use polity_kernel::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Dilemma>(files);
}

/// Parameters of a dilemma.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What both get if both cooperate.
    both_cooperate: f64,
    /// What a defector gets from a cooperator; more than if both cooperate.
    temptation: f64,
    /// What a cooperator gets from a defector; less than if both defect.
    sucker: f64,
    /// What both get if both defect; less than if both cooperate.
    both_defect: f64,
    /// Whether agents choose to keep or to leave their partners. Otherwise all are paired by lot in every cycle.
    selection: bool,
    /// Whether agents may punish their partners.
    direct: bool,
    /// Whether agents may punish somebody whose play with another they have watched.
    third_party: bool,
    /// Whether agents are shown what a new partner did last.
    reputation: bool,
    /// What it costs to punish; at least 0.
    cost: f64,
    /// What a punished agent loses; at least 0.
    impact: f64,
    /// Whether punishment does anything. Otherwise it costs as much, and nobody loses or learns of it (a placebo).
    effect: bool,
    /// Cycles, after which the run ends.
    cycles: u32,
    /// The first cycle, from 0, that counts for `cooperation-rate`, `punishment-rate` and `welfare`, and in which `final` is 1.
    count_from: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            both_cooperate: 3.0,
            temptation: 4.0,
            sucker: 0.0,
            both_defect: 1.0,
            selection: false,
            direct: false,
            third_party: false,
            reputation: false,
            cost: 0.1,
            impact: 6.0,
            effect: true,
            cycles: 1_000,
            count_from: 0,
        }
    }
}

/// A stage of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// Agents keep or leave their partners.
    Select = 0,
    /// They play.
    Play = 1,
    /// They may punish their partners.
    Direct = 2,
    /// They may punish somebody else.
    ThirdParty = 3,
}

/// What an agent did when it played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Played {
    /// It has not played.
    #[default]
    Nothing = 0,
    Cooperate = 1,
    Defect = 2,
}

/// An agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Player {
    partner: AgentId,
    /// Whether the partner is that of the last cycle.
    same: bool,
    /// Whom it watches in this cycle.
    watched: AgentId,
    played: Played,
    /// Whether it has been punished since it last played.
    punished: bool,
    /// Its act of this round: 0 none, or the number of the action plus 1.
    act: u16,
    /// Its reward in the last round.
    reward: f64,
}

/// All agents, and the stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    players: DigestVec<Player>,
    stage: Stage,
    cycle: u32,
    /// The share of cooperators in the last play, and of agents who punished in the last stage of punishment.
    cooperation: f64,
    punishers: f64,
    /// Sums over the cycles that count: plays, cooperation, acts of punishment, payoffs.
    counted: [f64; 4],
    refused: u32,
    refused_last: u32,
}

/// A dilemma.
pub struct Dilemma {
    params: Params,
    slots: Slots,
}

struct Slots {
    stage: NumberSlot,
    first: NumberSlot,
    second: NumberSlot,
    punished: NumberSlot,
    reward: NumberSlot,
}

/// The actions, in the order of their declaration, with the stages that offer them.
const ACTS: [(&str, &str, [Stage; 2]); 6] = [
    ("keep", "keep the partner, if it keeps you", [Stage::Select, Stage::Select]),
    ("leave", "leave the partner", [Stage::Select, Stage::Select]),
    ("cooperate", "cooperate with the partner", [Stage::Play, Stage::Play]),
    ("defect", "defect", [Stage::Play, Stage::Play]),
    ("punish", "punish the one who is seen, at a cost", [Stage::Direct, Stage::ThirdParty]),
    ("spare", "do not punish", [Stage::Direct, Stage::ThirdParty]),
];
const KEEP: u16 = 1;
const COOPERATE: u16 = 3;
const PUNISH: u16 = 5;

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl Dilemma {
    /// Returns what the first of two gets.
    fn payoff(&self, own: Played, other: Played) -> f64 {
        let Params { both_cooperate, temptation, sucker, both_defect, .. } = self.params;
        match (own, other) {
            (Played::Cooperate, Played::Cooperate) => both_cooperate,
            (Played::Cooperate, _) => sucker,
            (_, Played::Cooperate) => temptation,
            _ => both_defect,
        }
    }

    fn after(&self, stage: Stage) -> Option<Stage> {
        let Params { direct, third_party, .. } = self.params;
        match stage {
            Stage::Select => Some(Stage::Play),
            Stage::Play if direct => Some(Stage::Direct),
            Stage::Play | Stage::Direct if third_party => Some(Stage::ThirdParty),
            _ => None,
        }
    }

    /// Returns what an agent sees of the one that it decides about, and of a second one.
    fn sees(&self, state: &State, own: &Player) -> (Played, Played) {
        let played = |who: AgentId| state.players.get(who as usize).map_or(Played::Nothing, |player| player.played);
        match state.stage {
            Stage::Select => (played(own.partner), Played::Nothing),
            Stage::Play if self.params.reputation || own.same => (played(own.partner), Played::Nothing),
            Stage::Play => (Played::Nothing, Played::Nothing),
            Stage::Direct => (played(own.partner), own.played),
            Stage::ThirdParty => {
                let watched = state.players.get(own.watched as usize);
                watched.map_or((Played::Nothing, Played::Nothing), |watched| (watched.played, played(watched.partner)))
            }
        }
    }

    fn counts(&self, state: &State) -> bool {
        state.cycle >= self.params.count_from
    }

    /// Pairs those who have no partner, by lot.
    fn pair(players: &mut DigestVec<Player>, mut free: Vec<AgentId>, draws: &mut Draws) {
        draws.shuffle(&mut free);
        for two in free.chunks_exact(2) {
            for (own, other) in [(two[0], two[1]), (two[1], two[0])] {
                players.change(own as usize, |player| (player.partner, player.same) = (other, false));
            }
        }
    }

    /// Begins the next cycle: those whom both want to keep stay together, if agents choose.
    fn meet(&self, state: &mut State, draws: &mut Draws) {
        let kept = |who: usize| {
            let player = &state.players[who];
            player.act == KEEP && state.players[player.partner as usize].act == KEEP
        };
        let kept: Vec<bool> = (0..state.players.len()).map(|who| self.params.selection && kept(who)).collect();
        for who in (0..kept.len()).filter(|who| kept[*who]) {
            state.players.change(who, |player| player.same = true);
        }
        let free = (0u32..).zip(&kept).filter(|(_, kept)| !**kept).map(|(who, _)| who).collect();
        Dilemma::pair(&mut state.players, free, draws);
    }

    fn play(&self, state: &mut State, draws: &mut Draws) {
        let n = state.players.len();
        let played: Vec<Played> = (0..n)
            .map(|who| if state.players[who].act == COOPERATE { Played::Cooperate } else { Played::Defect })
            .collect();
        let mut all = 0.0;
        for who in 0..n {
            let partner = state.players[who].partner;
            let reward = self.payoff(played[who], played[partner as usize]);
            // Somebody who is neither oneself nor the partner: those two are skipped.
            let (low, high) = (partner.min(who as u32), partner.max(who as u32));
            let mut watched = draws.below(n as u64 - 2) as u32;
            watched += u32::from(watched >= low);
            watched += u32::from(watched >= high);
            state.players.change(who, |player| {
                (player.played, player.reward, player.watched, player.punished) = (played[who], reward, watched, false);
            });
            all += reward;
        }
        let cooperators = played.iter().filter(|played| **played == Played::Cooperate).count() as f64;
        state.cooperation = cooperators / n as f64;
        state.punishers = 0.0;
        if self.counts(state) {
            let [plays, cooperation, _, payoffs] = &mut state.counted;
            *plays += n as f64;
            *cooperation += cooperators;
            *payoffs += all;
        }
    }

    fn punish(&self, state: &mut State) {
        let third = state.stage == Stage::ThirdParty;
        let punishers: Vec<usize> = (0..state.players.len()).filter(|who| state.players[*who].act == PUNISH).collect();
        for who in &punishers {
            let player = &state.players[*who];
            let target = if third { player.watched } else { player.partner };
            state.players.change(*who, |player| player.reward -= self.params.cost);
            if self.params.effect {
                state.players.change(target as usize, |player| {
                    player.reward -= self.params.impact;
                    player.punished = true;
                });
            }
        }
        state.punishers = punishers.len() as f64 / state.players.len() as f64;
        if self.counts(state) {
            let lost = self.params.cost + truth(self.params.effect) * self.params.impact;
            state.counted[2] += punishers.len() as f64;
            state.counted[3] -= punishers.len() as f64 * lost;
        }
    }
}

impl World for Dilemma {
    const NAME: &'static str = "dilemma";
    const SUMMARY: &'static str =
        "A prisoner's dilemma in a population, with partner selection, punishment and reputation as switches";
    type Params = Params;
    type State = State;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let Params { both_cooperate, temptation, sucker, both_defect, cost, impact, .. } = params;
        let order = temptation > both_cooperate && both_cooperate > both_defect && both_defect > sucker;
        let message = format!(
            "temptation > both_cooperate > both_defect > sucker makes a dilemma; they are {temptation}, {both_cooperate}, {both_defect}, {sucker}"
        );
        Invalid::unless(order && temptation.is_finite() && sucker.is_finite(), "temptation", message)?;
        Invalid::within(0.0..=1e6, "cost", cost)?;
        Invalid::within(0.0..=1e6, "impact", impact)?;
        Invalid::unless(params.cycles > params.count_from, "count_from", "must be less than the number of cycles")?;
        let message = format!(
            "agents play in pairs and watch others: an even number from 4 on is needed, there are {}",
            setup.agents
        );
        Invalid::unless(setup.agents >= 4 && setup.agents.is_multiple_of(2), "kind", message)?;
        let doc = "the stage: 0 keep or leave the partner, 1 play, 2 punish the partner, 3 punish the one watched";
        let stage = declare.shared_number("stage", doc, |_, state| f64::from(state.stage as u8));
        let doc = "what the one who is decided about did last: 1 cooperate, 2 defect, 0 not known";
        let first = declare.number_slot("seen", doc);
        let doc = "what the other one of that pair did, in stages of punishment: 1 cooperate, 2 defect, 0 not known";
        let second = declare.number_slot("seen-other", doc);
        let doc = "1 if the agent was punished after its last play; 0 in stages of punishment";
        let punished = declare.number_slot("punished", doc);
        let reward = declare.number_slot("last-reward", "what the agent got in the last round");
        declare
            .shared_number("final", "1 in the cycles that count", |world: &Dilemma, state| truth(world.counts(state)));
        let mut fixed = |name: &'static str, doc: &'static str, value: f64| {
            declare.shared_number(name, doc, move |_, _| value);
        };
        fixed("both-cooperate", "what both get if both cooperate", both_cooperate);
        fixed("temptation", "what a defector gets from a cooperator", temptation);
        fixed("sucker", "what a cooperator gets from a defector", sucker);
        fixed("both-defect", "what both get if both defect", both_defect);
        fixed("cost", "what it costs to punish", cost);
        fixed("impact", "what a punished agent loses", impact);
        for (name, doc, stages) in ACTS {
            declare.shared_number(format!("may-{name}"), "1 when the action is offered", move |_, state| {
                truth(stages.contains(&state.stage))
            });
            declare.action(name, ActionArgument::Nothing, doc);
        }
        declare.alternatives();
        declare.reward("what the agent got in the last round", |_, state, who| {
            state.players.get(*who as usize).map_or(0.0, |player| player.reward)
        });
        declare.column(
            "cooperated",
            "1 if the agent cooperated when it played last",
            Some((0.0, 1.0)),
            |_, state, who| {
                truth(state.players.get(*who as usize).is_some_and(|player| player.played == Played::Cooperate))
            },
        );
        declare.column("partner", "the agent's partner", None, |_, state, who| {
            state.players.get(*who as usize).map_or(0.0, |player| f64::from(player.partner))
        });
        declare.scalar("cooperation", "share of agents who cooperated in the last play", |_, state| state.cooperation);
        declare.scalar(
            "punishers",
            "share of agents who punished in the last stage of punishment since then",
            |_, state| state.punishers,
        );
        let share = |of: usize| move |_: &Dilemma, state: &State| state.counted[of] / state.counted[0].max(1.0);
        declare.scalar("cooperation-rate", "share of cooperation in the cycles that count", share(1));
        declare.scalar("punishment-rate", "acts of punishment a play, in the cycles that count", share(2));
        declare.scalar(
            "welfare",
            "mean payoff of a play, less punishment and its cost, in the cycles that count",
            share(3),
        );
        declare.scalar("refused", "acts of the round that its stage does not offer", |_, state| {
            f64::from(state.refused_last)
        });
        Ok(Dilemma { params, slots: Slots { stage, first, second, punished, reward } })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> State {
        let mut players: DigestVec<Player> = vec![Player::default(); setup.agents as usize].into();
        Dilemma::pair(&mut players, (0..setup.agents).collect(), draws);
        State {
            players,
            stage: Stage::Play,
            cycle: 0,
            cooperation: 0.0,
            punishers: 0.0,
            counted: [0.0; 4],
            refused: 0,
            refused_last: 0,
        }
    }

    fn observe(&self, state: &State, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let Some(own) = state.players.get(person.id as usize) else { return };
        let (first, second) = self.sees(state, own);
        observation.number(self.slots.stage, f64::from(state.stage as u8));
        observation.number(self.slots.first, f64::from(first as u8));
        observation.number(self.slots.second, f64::from(second as u8));
        let before = matches!(state.stage, Stage::Select | Stage::Play);
        observation.number(self.slots.punished, truth(before && own.punished));
        observation.number(self.slots.reward, own.reward);
    }

    fn apply(&self, state: &mut State, actions: &AgentActions<'_>, _: &mut Future) {
        let Some(act) = actions.acts().last() else { return };
        let offered = ACTS.get(usize::from(act.kind)).is_some_and(|(.., stages)| stages.contains(&state.stage));
        match offered && (actions.person.id as usize) < state.players.len() {
            true => state.players.change(actions.person.id as usize, |player| player.act = act.kind + 1),
            false => state.refused += 1,
        }
    }

    /// Who does nothing leaves its partner, defects, and spares.
    fn end_round(&self, state: &mut State, draws: &mut Draws) -> Option<String> {
        state.refused_last = std::mem::take(&mut state.refused);
        for who in 0..state.players.len() {
            if state.players[who].reward != 0.0 {
                state.players.change(who, |player| player.reward = 0.0);
            }
        }
        match state.stage {
            Stage::Select => self.meet(state, draws),
            Stage::Play => self.play(state, draws),
            Stage::Direct | Stage::ThirdParty => self.punish(state),
        }
        for who in 0..state.players.len() {
            if state.players[who].act != 0 {
                state.players.change(who, |player| player.act = 0);
            }
        }
        if let Some(next) = self.after(state.stage) {
            state.stage = next;
            return None;
        }
        state.cycle += 1;
        if state.cycle >= self.params.cycles {
            return Some(format!("{} cycles are over", self.params.cycles));
        }
        state.stage = if self.params.selection { Stage::Select } else { Stage::Play };
        if !self.params.selection {
            self.meet(state, draws);
        }
        None
    }
}
