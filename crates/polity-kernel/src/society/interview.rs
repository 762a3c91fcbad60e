//! A question from outside to one agent, in its state between two rounds. It changes nothing.

use super::plan::in_force;
use super::state::Society;
use crate::ask::Request;
use crate::interface::Observations;
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
        let at = block_of(who);
        let shard = self.shards.iter().find(|shard| shard.range.contains(&at)).ok_or_else(missing)?;
        let block = shard.blocks().nth(at - shard.range.start).ok_or_else(missing)?;
        let row = (who - block.first) as usize;
        let observations = match self.split {
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
        };
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
}
