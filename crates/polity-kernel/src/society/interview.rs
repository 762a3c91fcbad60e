//! A question from outside to one agent, in its state between two rounds. It changes nothing.

use super::block::Block;
use super::plan::in_force;
use super::shard::Shard;
use super::state::Society;
use crate::ask::Request;
use crate::interface::{FieldKind, NumberSlot, Observations, TableSlot, TextSlot};
use crate::messages::block_of;
use crate::policy::Messages;
use crate::world::Split;
use crate::{AgentId, Bug};

/// The result of a request to interview an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Interview {
    /// The request to its model.
    Ask(Box<Request>),
    /// There is no such agent (yet).
    Unborn,
    /// It has died.
    Dead,
    /// Agents of its cohort follow rules and cannot be asked. The cohort's name.
    Mute(String),
}

impl Society {
    /// Puts a question to an agent, with the observation of the next round and its current memory.
    pub fn interview(&self, who: AgentId, question: &str) -> Result<Interview, Bug> {
        if who >= self.born {
            return Ok(Interview::Unborn);
        }
        if self.is_dead(who) {
            return Ok(Interview::Dead);
        }
        let missing = || Bug::internal("an agent is in no block");
        let (shard, block) = self.place(who)?;
        let row = (who - block.first) as usize;
        let observations = self.observations(shard, block);
        let held =
            |segment: &&super::block::Segment| (segment.start..segment.start + segment.len).contains(&(row as u32));
        let segment = block.segments.iter().find(held).ok_or_else(missing)?;
        let policies = in_force(&self.policies, self.round);
        let policy = policies.get(segment.cohort as usize).ok_or_else(missing)?;
        let inbox = Messages::OfBlock(&block.inbox);
        let index = row - segment.start as usize;
        let request = policy.interview(
            &segment.states,
            index,
            observations.row(row),
            inbox,
            (who, self.round),
            &self.shared_context,
            shard.shared.get(segment.cohort as usize).and_then(Option::as_ref),
            question,
        )?;
        let name = || self.plan.names.get(segment.cohort as usize).cloned().unwrap_or_default();
        Ok(request.map_or_else(|| Interview::Mute(name()), |request| Interview::Ask(Box::new(request))))
    }

    /// Returns what an agent observes before the next round, by the names that its world declared; `None` for an agent that is not
    /// alive.
    pub fn observed(&self, who: AgentId) -> Result<Option<Observed>, Bug> {
        if who >= self.born || self.is_dead(who) {
            return Ok(None);
        }
        let (shard, block) = self.place(who)?;
        let observations = self.observations(shard, block);
        let seen = observations.row((who - block.first) as usize);
        let mut observed = Observed::default();
        let (mut numbers, mut texts, mut tables) = (0.., 0.., 0..);
        for field in &self.interface.observation {
            let name = field.name.to_string();
            match field.kind {
                FieldKind::Number => {
                    observed.numbers.push((name, seen.number(NumberSlot(numbers.next().unwrap_or_default()))));
                }
                FieldKind::Text => {
                    let text = seen.text(TextSlot(texts.next().unwrap_or_default())).to_string();
                    observed.texts.push((name, text));
                }
                FieldKind::Table => {
                    let slot = TableSlot(tables.next().unwrap_or_default(), field.columns.len());
                    let columns = field.columns.iter().map(ToString::to_string).collect();
                    let rows = seen.table(slot).map(<[f64]>::to_vec).collect();
                    observed.tables.push(ObservedTable { name, columns, rows });
                }
            }
        }
        Ok(Some(observed))
    }

    /// The shard and the block of an agent that was born.
    fn place(&self, who: AgentId) -> Result<(&Shard, &Block), Bug> {
        let missing = || Bug::internal("an agent is in no block");
        let at = block_of(who);
        let shard = self.shards.iter().find(|shard| shard.range.contains(&at)).ok_or_else(missing)?;
        let block = shard.blocks().nth(at - shard.range.start).ok_or_else(missing)?;
        Ok((shard, block))
    }

    /// The observations of the agents of a block.
    fn observations(&self, shard: &Shard, block: &Block) -> Observations {
        match self.split {
            Split::None => {
                self.shards[0].observations_of(block.first, block.len as usize, &self.shared_context, &self.interface)
            }
            Split::Rows => {
                let mut observations = Observations::new(&self.interface, block.len as usize);
                shard.world.observe(
                    &block.rows,
                    block.first,
                    block.len as usize,
                    &self.shared_context,
                    &mut observations,
                );
                observations
            }
        }
    }
}

/// What an agent observes, with names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Numbers.
    pub numbers: Vec<(String, f64)>,
    /// Texts.
    pub texts: Vec<(String, String)>,
    /// Tables.
    pub tables: Vec<ObservedTable>,
}

/// A table that an agent observes.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedTable {
    /// Its name.
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<f64>>,
}
