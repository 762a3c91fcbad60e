//! Every environment is a world: agents sit in episodes, and a round is a step of every episode.

use super::seating::Seating;
use super::{DeclareEnvironment, Environment, Move};
use crate::AgentId;
use crate::ask::Value;
use crate::digest::DigestVec;
use crate::interface::{ActionArgument, FieldKind, NumberSlot};
use crate::items::Item;
use crate::policy::Person;
use crate::rng::{Draws, Stream};
use crate::tree::Invalid;
use crate::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use serde::{Deserialize, Serialize};

/// An environment as a world. Agents `k * seats .. (k + 1) * seats` sit in episode `k`, unless cohorts take seats of their own. When an
/// episode ends, the next begins at once: agents see its start in the next round.
pub(crate) struct AsWorld<E: Environment> {
    environment: E,
    declared: DeclareEnvironment<E>,
    seating: Seating,
    active: NumberSlot,
}

/// The episodes and the rewards of their seats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "S: crate::Plain")]
pub(crate) struct Episodes<S> {
    episodes: DigestVec<S>,
    /// Moves of the current round, in the order of turns.
    moves: Vec<(AgentId, u16, Value)>,
    /// The reward of each agent in the last round.
    rewards: DigestVec<f64>,
    /// The total reward of each agent in its episode so far, followed by that of each objective. After the end, and until the next step, it
    /// is that of the whole episode.
    returns: DigestVec<f64>,
    /// The final state of each episode that ended in the last round. Columns show it, while agents see the start of the next one.
    ends: DigestVec<Option<S>>,
    /// Episodes that have ended so far.
    ended: u64,
    /// The sum of all rewards in the last round.
    total: f64,
    /// Moves that were not offered, in the current round and in the last.
    refused: u32,
    refused_last: u32,
}

impl<S: crate::Plain> Episodes<S> {
    /// Returns the state of an episode at the end of the last round.
    fn shown(&self, episode: usize) -> &S {
        self.ends[episode].as_ref().unwrap_or(&self.episodes[episode])
    }
}

impl<E: Environment> AsWorld<E> {
    fn episode_of(&self, who: AgentId) -> (usize, u32) {
        self.seating.place(who)
    }

    /// Returns where the returns of an agent begin.
    fn returns_of(&self, who: AgentId) -> usize {
        who as usize * (1 + self.declared.objectives.len())
    }

    /// Returns what the last step gave a seat of an objective.
    fn gained(&self, objective: usize, state: &E::State, seat: u32) -> f64 {
        (self.declared.objectives[objective].value)(&self.environment, state, &seat)
    }

    fn has_turn(&self, state: &E::State, seat: u32) -> bool {
        (0..self.declared.interface.acts.len() as u16).any(|action| self.environment.offers(state, seat, action))
    }

    fn declare(environment: &DeclareEnvironment<E>, declare: &mut DeclareWorld<Self>) -> NumberSlot {
        for field in &environment.interface.observation {
            let (name, doc) = (field.name.clone(), field.doc.clone());
            // Slots count each kind of field separately, in order: they match the environment's own.
            match field.kind {
                FieldKind::Number => {
                    declare.number_slot(name, doc);
                }
                FieldKind::Text => {
                    declare.text_slot(name, doc);
                }
                FieldKind::Table => {
                    declare.table_slot(name, field.columns.iter().cloned(), doc);
                }
            }
        }
        let active = declare.number_slot("active", "1 when it is the agent's turn");
        declare.number("last-reward", "what the agent got in the last round", |_, state, who| {
            state.rewards[*who as usize]
        });
        for (i, objective) in environment.objectives.iter().enumerate() {
            let doc = format!("{}, in the last round", objective.doc);
            declare.number(format!("last-reward-{}", objective.name), doc, move |world, state, who| {
                let (episode, seat) = world.episode_of(*who);
                world.gained(i, state.shown(episode), seat)
            });
        }
        let doc = "1 when the last round ended the agent's episode, and it sees the start of the next one";
        declare.number("episode-ended", doc, |world: &AsWorld<E>, state: &Episodes<E::State>, who| {
            let (episode, _) = world.episode_of(*who);
            f64::from(u8::from(state.ends[episode].is_some()))
        });
        let doc = "1 when that episode was only cut off, by a limit of steps";
        declare.number("episode-cut", doc, |world: &AsWorld<E>, state: &Episodes<E::State>, who| {
            let (episode, _) = world.episode_of(*who);
            let cut = state.ends[episode].as_ref().is_some_and(|end| world.environment.cut(end));
            f64::from(u8::from(cut))
        });
        for (action, act) in (0u16..).zip(&environment.interface.acts) {
            declare.number(format!("may-{}", act.name), "1 when the action is offered", move |world, state, who| {
                let (episode, seat) = world.episode_of(*who);
                f64::from(u8::from(world.environment.offers(&state.episodes[episode], seat, action)))
            });
            declare.action(act.name.clone(), act.argument.clone(), act.doc.clone());
        }
        declare.alternatives();
        declare.reward("what the agent got in the last round", |_, state, who| state.rewards[*who as usize]);
        let doc = "the agent's total reward in its episode so far, undiscounted";
        declare.column("return", doc, None, |world, state, who| state.returns[world.returns_of(*who)]);
        for (i, objective) in (1..).zip(&environment.objectives) {
            let doc = format!("{}, in the agent's episode so far", objective.doc);
            declare.column(format!("return-{}", objective.name), doc, None, move |world, state, who| {
                state.returns[world.returns_of(*who) + i]
            });
        }
        for (i, column) in environment.interface.columns.iter().enumerate() {
            declare.column(column.name.clone(), column.doc.clone(), column.range, move |world, state, who| {
                let (episode, seat) = world.episode_of(*who);
                world.declared.columns[i].of(&world.environment, state.shown(episode), &seat)
            });
        }
        declare.scalar("mean-reward", "mean reward of an agent in the round", |_, state| {
            state.total / state.rewards.len().max(1) as f64
        });
        declare.scalar("episodes", "episodes that have ended so far", |_, state| state.ended as f64);
        declare.scalar("refused", "moves of the round that were not offered", |_, state| f64::from(state.refused_last));
        for (i, scalar) in environment.interface.scalars.iter().enumerate() {
            let doc = format!("{}, averaged over the episodes", scalar.doc);
            declare.scalar(scalar.name.clone(), doc, move |world, state| {
                let of = |episode| world.declared.scalars[i](&world.environment, state.shown(episode));
                (0..state.episodes.len()).map(of).sum::<f64>() / state.episodes.len().max(1) as f64
            });
        }
        active
    }

    /// Returns a move in the declared format; `None` if it has none.
    fn read(&self, action: u16, value: f64, text: Option<&str>) -> Option<Value> {
        match &self.declared.interface.acts.get(usize::from(action))?.argument {
            ActionArgument::Nothing => Some(Value::Record(Vec::new())),
            ActionArgument::Number { low, high } => (*low..=*high).contains(&value).then_some(Value::Number(value)),
            ActionArgument::Choice(options) => crate::interface::named(value, options.len()).map(Value::Choice),
            ActionArgument::Text => Some(Value::Text(text?.to_owned())),
            ActionArgument::Record(want) => Value::from_json(&serde_json::from_str(text?).ok()?, want),
            ActionArgument::Seen { .. } => None,
        }
    }
}

impl<E: Environment> World for AsWorld<E> {
    const NAME: &'static str = E::NAME;
    const SUMMARY: &'static str = E::SUMMARY;
    type Params = E::Params;
    type State = Episodes<E::State>;

    fn open(params: E::Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let mut declared = DeclareEnvironment::<E>::default();
        let environment = E::open(params, setup, &mut declared)?;
        declared.check()?;
        let seats = environment.seats().max(1);
        let message =
            format!("an episode has {seats} seats, and {} agents do not fill a whole number of episodes", setup.agents);
        Invalid::unless(setup.agents.is_multiple_of(seats), "kind", message)?;
        let taken: u32 = setup.seats.iter().sum();
        let message = format!("an episode has {seats} seats, and the cohorts take {taken}");
        Invalid::unless(setup.seats.is_empty() || taken == seats, "kind", message)?;
        if let Some(act) =
            declared.interface.acts.iter().find(|act| matches!(act.argument, ActionArgument::Seen { .. }))
        {
            let message = format!(
                "the action `{}` refers to a row of a table, which an action of an environment cannot do",
                act.name
            );
            return Err(Invalid { key: "kind".into(), message });
        }
        let active = AsWorld::<E>::declare(&declared, declare);
        declare.seats(seats);
        Ok(AsWorld { environment, declared, seating: Seating::new(setup.agents, seats, setup.seats), active })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> Episodes<E::State> {
        let n = setup.agents as usize;
        let begin = |index: u32| self.environment.reset(&Item { index, ..Item::default() }, draws);
        let episodes: Vec<E::State> = (0..self.seating.episodes()).map(begin).collect();
        Episodes {
            ends: vec![None; episodes.len()].into(),
            episodes: episodes.into(),
            moves: Vec::new(),
            rewards: vec![0.0; n].into(),
            returns: vec![0.0; self.returns_of(setup.agents)].into(),
            ended: 0,
            total: 0.0,
            refused: 0,
            refused_last: 0,
        }
    }

    fn observe(&self, state: &Episodes<E::State>, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let (episode, seat) = self.episode_of(person.id);
        let Some(episode) = state.episodes.get(episode) else { return };
        for (slot, value) in &self.declared.shared {
            observation.number(*slot, value(&self.environment, episode));
        }
        for (slot, value) in &self.declared.numbers {
            observation.number(*slot, value(&self.environment, episode, &seat));
        }
        observation.number(self.active, f64::from(u8::from(self.has_turn(episode, seat))));
        self.environment.observe(episode, seat, observation);
    }

    fn apply(&self, state: &mut Episodes<E::State>, actions: &AgentActions<'_>, _: &mut Future) {
        let who = actions.person.id;
        let (episode, seat) = self.episode_of(who);
        // The first act of a turn counts.
        let Some(act) = actions.acts().first() else { return };
        let value = self.read(act.kind, act.value, actions.text(0));
        let offered = state.episodes.get(episode).is_some_and(|of| self.environment.offers(of, seat, act.kind));
        match value.filter(|_| offered) {
            Some(value) => state.moves.push((who, act.kind, value)),
            None => state.refused += 1,
        }
    }

    fn end_round(&self, state: &mut Episodes<E::State>, draws: &mut Draws) -> Option<String> {
        let mut moves = std::mem::take(&mut state.moves);
        moves.sort_by_key(|(who, ..)| self.episode_of(*who));
        let seed = draws.below(u64::MAX);
        let (mut rest, mut total) = (moves.as_slice(), 0.0);
        for index in 0..state.episodes.len() {
            let n = rest.iter().take_while(|(who, ..)| self.episode_of(*who).0 == index).count();
            let (own, later) = rest.split_at(n);
            rest = later;
            let own: Vec<Move> = own
                .iter()
                .map(|(who, action, argument)| Move {
                    seat: self.episode_of(*who).1,
                    action: *action,
                    argument: argument.clone(),
                })
                .collect();
            let mut draws = Draws::new(seed, Stream::Episode, 0, index as u32);
            if state.ends[index].is_some() {
                state.ends.set(index, None);
                for seat in 0..self.seating.seats() {
                    let first = self.returns_of(self.seating.agent(index, seat));
                    for i in first..=first + self.declared.objectives.len() {
                        state.returns.set(i, 0.0);
                    }
                }
            }
            let mut result = super::StepResult::default();
            state.episodes.change(index, |episode| result = self.environment.step(episode, &own, &mut draws));
            for seat in 0..self.seating.seats() {
                let reward = result.rewards.get(seat as usize).copied().unwrap_or_default();
                let who = self.seating.agent(index, seat);
                state.rewards.set(who as usize, reward);
                let first = self.returns_of(who);
                state.returns.change(first, |sum| *sum += reward);
                for i in 0..self.declared.objectives.len() {
                    let gained = self.gained(i, &state.episodes[index], seat);
                    state.returns.change(first + 1 + i, |sum| *sum += gained);
                }
                total += reward;
            }
            if result.done {
                let task = Item { index: index as u32, ..Item::default() };
                let end = state.episodes.set(index, self.environment.reset(&task, &mut draws));
                state.ends.set(index, Some(end));
                state.ended += 1;
            }
        }
        state.total = total;
        state.refused_last = std::mem::take(&mut state.refused);
        None
    }
}
