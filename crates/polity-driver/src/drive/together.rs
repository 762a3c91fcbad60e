//! What the driver of one of several processes does with the others.

use super::{Drive, Driven, append_answers};
use crate::budget::Gate;
use crate::spread::{Agreed, Joined, Told, Wanted};
use polity_kernel::ask::Effect;
use polity_kernel::layout::Frame;
use polity_kernel::machine::Machine;
use polity_kernel::society::{Gather, Society};
use polity_store::DriveError;
use std::time::Instant;

impl Drive<'_> {
    /// Whether several processes have one budget.
    pub(super) fn shares_budget(&self) -> bool {
        self.others.is_some() && self.gate.as_ref().is_some_and(Gate::bounded)
    }

    /// Computes shares of a budget or decides calls, together with all other processes, when none can go on alone. Returns whether
    /// nothing is left to decide in this part of the round, and the calls of this process to make.
    pub(super) fn agree(&mut self) -> Result<(bool, Vec<Effect>), DriveError> {
        let asked = self.stop.clone();
        let (Some(gate), Some(others)) = (&mut self.gate, &mut self.others) else { return Ok((true, Vec::new())) };
        let accounts = others.tell(&gate.account(self.machine), &mut || asked.may_wait())?;
        Ok(gate.agree(&accounts, self.machine))
    }

    /// Gives the frames of the society to the other processes, and it theirs. Process 0 takes the others' answers.
    pub(super) fn carry(&mut self, frames: Vec<Frame>, driven: &mut Driven, saved: Instant) -> Result<(), DriveError> {
        while self.shares_budget() && !self.agree()?.0 {}
        let stop = self.stopping(driven);
        let round = self.machine.next_round();
        let wanted = match &self.writing {
            Some(writing) => Wanted {
                stop,
                save: saved.elapsed().as_secs_f64() >= writing.snapshots.seconds,
                gather: writing.recorder.gathers(round),
            },
            None => Wanted { stop, ..Wanted::default() },
        };
        let asked = self.stop.clone();
        let Some(others) = &mut self.others else {
            return Err(DriveError::Peers("the society has frames for other processes, but there are none".into()));
        };
        // A second interrupt ends the process; the first one waits for the end of the round.
        let (frames, Told { answers, broken }) = others.carry(frames, wanted, &mut || asked.may_wait())?;
        broken.iter().for_each(|(_, charged)| driven.totals.broke(charged.as_ref()));
        if !answers.is_empty() {
            answers.iter().for_each(|answer| driven.totals.count(answer));
            if let Some(writing) = &mut self.writing {
                let answers = append_answers(&writing.journal, answers)?;
                writing.recorder.heard(&answers);
            }
        }
        let seed = self.seed;
        self.machine.receive(frames).map_err(|bug| DriveError::Bug { seed, bug })
    }

    /// What several processes agreed on for the end of the round; process 0 gets what it records of the others' agents.
    pub(super) fn gather(&mut self) -> Result<Agreed, DriveError> {
        let Some(others) = &mut self.others else { return Ok(Agreed::default()) };
        let agreed = others.agreed();
        let ended = self.machine.society().is_some_and(Society::has_ended);
        let what = if ended { agreed.gather.1 } else { agreed.gather.0 };
        if what.any() {
            let asked = self.stop.clone();
            others.gather(self.machine, what, self.seed, &mut || asked.may_wait())?;
        }
        Ok(agreed)
    }

    /// Gives process 0 what it writes at the end, where the rounds were complete before this start and only the end was not recorded.
    pub(super) fn gather_at_end(&mut self) -> Result<(), DriveError> {
        let Some(others) = &mut self.others else { return Ok(()) };
        let asked = self.stop.clone();
        let what = Gather { columns: true, ..Gather::default() };
        others.gather(self.machine, what, self.seed, &mut || asked.may_wait())
    }

    /// Saves the state between two rounds; several processes save it together.
    pub(super) fn save(&mut self) -> Result<(), DriveError> {
        let seed = self.seed;
        let asked = self.stop.clone();
        let others = match &mut self.others {
            Some(others) => Some(others.states(self.machine, seed, &mut || asked.may_wait())?),
            None => None,
        };
        match (&mut self.writing, others) {
            (Some(writing), Some(others)) => writing.save(&Joined { machine: self.machine, others }, seed),
            (Some(writing), None) => writing.save(self.machine, seed),
            (None, _) => Ok(()),
        }
    }
}
