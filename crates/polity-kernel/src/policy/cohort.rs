//! Policies that take a step for their whole cohort, as the society sees them.

use super::host::Host;
use crate::ask::{Answer, Ask, Asker, Book, MOST_QUESTIONS, poll_once};
use crate::cohort::{CohortContext, CohortHost, CohortPolicy, CohortProgress, Members, SharedBox, TallyBox};
use crate::digest::{DigestVec, Kind, RowHash, hash_value};
use crate::policy::{Fault, Person, SharedContext};
use crate::{AgentId, Bug, tree_reduce};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;

fn typed<T: 'static>(value: &(dyn Any + Send + Sync)) -> Result<&T, Bug> {
    value.downcast_ref().ok_or_else(|| Bug::internal("a cohort step's data are of another policy's type"))
}

fn encode<T: Serialize>(value: &T, name: &str) -> Result<Vec<u8>, Bug> {
    postcard::to_allocvec(value).map_err(|e| Bug::internal(format!("the cohort step of `{name}`: {e}")))
}

fn decode<T: DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T, Bug> {
    postcard::from_bytes(bytes)
        .map_err(|e| Bug::Snapshot { what: format!("the cohort step of policy `{name}`"), why: e.to_string() })
}

impl<P: CohortPolicy> CohortHost for Host<P> {
    fn init_shared(&self) -> SharedBox {
        Box::new(self.policies.any().init_shared())
    }

    fn count(&self, members: &Members<'_>) -> Result<TallyBox, Bug> {
        let Members { round, first, states, base, len, observations, gone, shared_context } = *members;
        let states: &DigestVec<P::State> = typed(states.as_ref())?;
        let mut tally = self.policies.any().tally();
        for (i, state) in states.iter().take(len).enumerate() {
            if !gone.is_empty() && gone.binary_search(&((base + i) as u32)).is_ok() {
                continue;
            }
            let person = Person { id: first + i as AgentId, population: &shared_context.population };
            self.policies.any().count(&mut tally, round, state, person, observations.row(base + i));
        }
        Ok(Box::new(tally))
    }

    fn merge(&self, tallies: Vec<TallyBox>) -> Result<TallyBox, Bug> {
        let mut own = Vec::with_capacity(tallies.len());
        for tally in tallies {
            own.push(*tally.downcast().map_err(|_| Bug::internal("a tally is of another policy's type"))?);
        }
        let merged = tree_reduce(own, |left, right| self.policies.any().merge(left, right));
        Ok(Box::new(merged.unwrap_or_else(|| self.policies.any().tally())))
    }

    fn encode_tally(&self, tally: &TallyBox) -> Result<Vec<u8>, Bug> {
        encode(typed::<P::Tally>(tally.as_ref())?, P::NAME)
    }

    fn decode_tally(&self, bytes: &[u8]) -> Result<TallyBox, Bug> {
        Ok(Box::new(decode::<P::Tally>(bytes, P::NAME)?))
    }

    fn cohort_step(
        &self,
        shared: &SharedBox,
        tally: &TallyBox,
        answers: &[Answer],
        (cohort, round): (u16, u32),
        shared_context: &SharedContext,
    ) -> Result<CohortProgress, Bug> {
        let mut next = typed::<P::Shared>(shared.as_ref())?.clone();
        let mut book = Book::default();
        let mut context =
            CohortContext { round, shared_context, ask: Ask::new(Asker::Cohort, 0, round, answers, &mut book) };
        let polled = poll_once(self.policies.any().cohort_step(&mut next, typed(tally.as_ref())?, &mut context));
        let open = context.ask.close()?;
        let bug = |message: String| Bug::Cohort { cohort, round, message };
        match polled {
            Some(Ok(())) => Ok(CohortProgress::Done(Box::new(next))),
            Some(Err(Fault(message))) => Err(bug(message)),
            None if open.is_empty() => Err(bug("it awaits something other than its context".into())),
            None if open.iter().any(|effect| effect.id.n >= MOST_QUESTIONS) => {
                Err(bug(format!("it asks more than {MOST_QUESTIONS} questions in the name of one agent")))
            }
            None => Ok(CohortProgress::Asks(open)),
        }
    }

    fn hash(&self, shared: &SharedBox, cohort: u16) -> Result<u128, Bug> {
        let head = RowHash::new(Kind::Cohort, 0);
        Ok(hash_value(head, u64::from(cohort), typed::<P::Shared>(shared.as_ref())?))
    }

    fn save(&self, shared: &SharedBox) -> Result<Vec<u8>, Bug> {
        encode(typed::<P::Shared>(shared.as_ref())?, P::NAME)
    }

    fn load(&self, bytes: &[u8]) -> Result<SharedBox, Bug> {
        Ok(Box::new(decode::<P::Shared>(bytes, P::NAME)?))
    }

    fn weights(&self, shared: &SharedBox) -> Result<Option<Vec<u8>>, Bug> {
        let weights = self.policies.any().weights(typed(shared.as_ref())?);
        weights.map_err(|Fault(why)| Bug::internal(format!("the weights of `{}`: {why}", P::NAME)))
    }
}
