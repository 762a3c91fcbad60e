//! A question from outside to one agent, as it is between two rounds. It changes nothing.

use super::{Society, in_force};
use crate::ask::Request;
use crate::mail::block_of;
use crate::policy::Letters;
use crate::sight::Sights;
use crate::world::Split;
use crate::{AgentId, Bug};

/// What comes of the wish to ask an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Interview {
    /// What its model is to be asked.
    Ask(Box<Request>),
    /// There is no such agent (yet).
    Unborn,
    /// It has died.
    Dead,
    /// Agents of its cohort follow rules: there is nobody to ask. The cohort's name.
    Mute(String),
}

impl Society {
    /// Puts a question to an agent, which sees what it would see in the next round and remembers what it remembers now.
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
        let sights = match self.split {
            Split::None => self.shards[0].sights_of(block.first, block.len as usize, &self.commons, &self.interface),
            Split::Rows => {
                let mut sights = Sights::new(&self.interface, block.len as usize);
                shard.world.observe(&block.rows, block.first, block.len as usize, &self.commons, &mut sights);
                sights
            }
        };
        let held =
            |segment: &&super::block::Segment| (segment.start..segment.start + segment.len).contains(&(row as u32));
        let segment = block.segments.iter().find(held).ok_or_else(missing)?;
        let policies = in_force(&self.policies, self.round);
        let policy = policies.get(segment.cohort as usize).ok_or_else(missing)?;
        let mail = Letters::OfBlock(&block.mail);
        let index = row - segment.start as usize;
        let request = policy.interview(
            &segment.states,
            index,
            sights.row(row),
            mail,
            (who, self.round),
            &self.commons,
            shard.shared.get(segment.cohort as usize).and_then(Option::as_ref),
            question,
        )?;
        let name = || self.plan.names.get(segment.cohort as usize).cloned().unwrap_or_default();
        Ok(request.map_or_else(|| Interview::Mute(name()), |request| Interview::Ask(Box::new(request))))
    }
}
