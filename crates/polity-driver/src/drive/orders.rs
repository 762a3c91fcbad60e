//! What is ordered of a run that is under way, and what becomes of it.

use super::{Drive, Driven, Ending, Open, PAUSED, Progress, TICK, Totals};
use crate::DriveError;
use crate::control::Control;
use crate::people::now_ms;
use polity_kernel::ask::Answer;
use polity_kernel::event::{Event, Order};

/// Where orders come from, and what they have made of the run.
pub(crate) struct Orders {
    control: Control,
    /// Calls in flight at most.
    connections: usize,
    /// Whether answers may come rounds later.
    lag: bool,
    paused: bool,
    /// How the run is to end, if it is to end.
    ending: Option<Ending>,
}

impl Orders {
    pub fn new(control: Control, connections: usize, lag: bool) -> Self {
        Orders { control, connections, lag, paused: false, ending: None }
    }
}

impl Drive<'_> {
    /// Whether the run is to stop, for whatever reason.
    pub(super) fn stopping(&self, driven: &mut Driven) -> bool {
        if let Some(ending) = self.orders.as_ref().and_then(|orders| orders.ending.clone()) {
            driven.ending = ending;
            return true;
        }
        self.stop.asked() || self.out_of_time(driven)
    }

    pub(super) fn paused(&self) -> bool {
        self.orders.as_ref().is_some_and(|orders| orders.paused)
    }

    /// Does what is ordered, if anything is: journaled before it is done, and done before it is told.
    pub(super) fn obey(&mut self, totals: &Totals) -> Result<(), DriveError> {
        let Some(order) = self.orders.as_mut().and_then(|orders| orders.control.next()) else { return Ok(()) };
        let refused = self.refusal(&order);
        let words = match &refused {
            Some(why) => why.clone(),
            None => {
                if let Some(writing) = &mut self.writing {
                    writing.append(&Event::Ordered { order: order.clone(), at_ms: now_ms() })?;
                    writing.journal.commit()?;
                }
                self.carry_out(&order, totals)
            }
        };
        match &mut self.orders {
            Some(orders) => orders.control.say(refused.is_some(), words),
            None => Ok(()),
        }
    }

    /// Why an order can not be done.
    fn refusal(&self, order: &Order) -> Option<String> {
        let Order::Set { limits, .. } = order else { return None };
        if !limits.any() {
            return None;
        }
        if self.orders.as_ref().is_some_and(|orders| orders.lag) {
            return Some("calls of this run are answered rounds later, and can not be counted against a limit when they are decided".into());
        }
        let models = self.machine.models();
        let known = self.gate.as_ref().is_some_and(|gate| gate.knows_costs(&models));
        (limits.cost_usd.is_some() && !known).then(|| {
            "no price is known of a model that the run asks, so that a budget of dollars can not be kept; limit tokens or calls, or stop the \
             run and resume it with --price".into()
        })
    }

    /// Does it, and says what became of it.
    fn carry_out(&mut self, order: &Order, totals: &Totals) -> String {
        let Some(orders) = &mut self.orders else { return String::new() };
        match order {
            Order::Pause => {
                orders.paused = true;
                self.source.connections(0);
                "paused: nothing new is asked, what is in flight is recorded, and no round begins".into()
            }
            Order::Resume => {
                orders.paused = false;
                self.source.connections(orders.connections);
                "it goes on".into()
            }
            Order::Stop => {
                orders.ending = Some(Ending::Stopped);
                "it finishes what is in flight, saves and stops; `polity resume` goes on".into()
            }
            Order::Set { connections, limits } => {
                if let Some(connections) = connections {
                    orders.connections = (*connections as usize).max(1);
                    if !orders.paused {
                        self.source.connections(orders.connections);
                    }
                }
                if let Some(gate) = self.gate.as_mut().filter(|_| limits.any()) {
                    let (allowed, over) = gate.limit(limits, self.source.take_back(), self.machine);
                    self.source.start(allowed);
                    if let Some(reason) = over {
                        let words = format!("{order}: it stops, since {reason}");
                        orders.ending = Some(Ending::Exhausted(reason));
                        return words;
                    }
                }
                format!("{order}: from now on, with {} calls made and {:.4} USD spent", totals.calls, totals.cost_usd)
            }
        }
    }

    /// Between two rounds: takes orders, and waits while the run is paused. What comes meanwhile is recorded.
    pub(super) fn stand_still(
        &mut self,
        ready: &mut Vec<Answer>,
        open: &mut Open,
        driven: &mut Driven,
        progress: &mut Progress,
    ) -> Result<(), DriveError> {
        self.obey(&driven.totals)?;
        while self.paused() && !self.stopping(driven) {
            if self.source.in_flight() > 0 {
                let answers = self.listen(TICK, &mut driven.totals)?;
                self.hear(answers, ready, open, &mut driven.totals)?;
                self.commit(ready)?;
            } else {
                std::thread::sleep(TICK);
            }
            self.tell(progress, driven.totals, Some(PAUSED.into()));
            self.obey(&driven.totals)?;
        }
        Ok(())
    }
}
