//! Orders to an active run, and their effects.

use super::{Drive, Driven, Ending, Open, PAUSED, Pace, Paced, Progress, TICK, Totals};
use crate::control::{Control, Status, Wish};
use polity_kernel::ask::Answer;
use polity_kernel::event::{Event, Order};
use polity_store::DriveError;
use polity_store::clock::now_ms;
use std::collections::VecDeque;

/// Rounds whose metrics are remembered for whoever asks.
const KEPT: usize = 1000;

/// Whether a run could go on with edits of its scenario.
type Possible<'a> = Box<dyn Fn(&[String]) -> Result<(), DriveError> + 'a>;

/// The source of orders, and their effects on the run.
pub(crate) struct Orders<'a> {
    control: Control,
    /// Whether a run could go on with these edits.
    possible: Possible<'a>,
    /// Whether edits wait for the end of the round.
    changes: bool,
    /// Maximum calls in flight.
    connections: usize,
    /// Whether answers may arrive rounds later.
    lag: bool,
    paused: bool,
    /// Rounds until it pauses again, if so.
    steps: Option<u32>,
    /// What was told last.
    progress: Progress,
    pace: Pace,
    paced: Option<Paced>,
    /// Metrics of the last rounds.
    metrics: VecDeque<(u32, Vec<(String, f64)>)>,
    /// How the run is to end, if so.
    ending: Option<Ending>,
}

impl<'a> Orders<'a> {
    /// `possible`: whether a run could go on with edits of its scenario.
    pub fn new(
        control: Control,
        connections: usize,
        lag: bool,
        possible: impl Fn(&[String]) -> Result<(), DriveError> + 'a,
    ) -> Self {
        Orders {
            control,
            possible: Box::new(possible),
            changes: false,
            connections,
            lag,
            paused: false,
            steps: None,
            progress: Progress::default(),
            pace: Pace::default(),
            paced: None,
            metrics: VecDeque::new(),
            ending: None,
        }
    }

    /// Whether the run is to go on with other parameters.
    pub fn changes(&self) -> bool {
        self.changes
    }

    /// Remembers what is told to watchers.
    pub fn note(&mut self, progress: &Progress) {
        self.progress = progress.clone();
        self.paced = self.pace.note(progress);
    }

    /// Remembers the metrics of a complete round, and pauses after the last of its steps.
    pub fn round(&mut self, round: u32, metrics: &[(String, f64)]) {
        if self.metrics.len() == KEPT {
            self.metrics.pop_front();
        }
        self.metrics.push_back((round, metrics.to_vec()));
        self.steps = self.steps.map(|steps| steps.saturating_sub(1));
        if self.steps == Some(0) {
            (self.steps, self.paused) = (None, true);
        }
    }

    fn status(&self, since: u32, totals: &Totals) -> Status {
        let Progress { rounds, planned, agents, items, .. } = self.progress;
        Status {
            rounds,
            planned,
            agents,
            items,
            totals: *totals,
            waiting: self.progress.waiting.clone(),
            paused: self.paused,
            steps_per_s: self.paced.map(|paced| paced.steps_per_s),
            seconds_left: self.paced.map(|paced| paced.seconds_left),
            metrics: self.metrics.iter().filter(|(round, _)| *round >= since).cloned().collect(),
        }
    }
}

impl Drive<'_> {
    /// Whether the run is to stop, for any reason.
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

    /// Answers a pending letter. An order is journaled first, and replied to afterwards.
    pub(super) fn obey(&mut self, totals: &Totals) -> Result<(), DriveError> {
        let Some(orders) = &mut self.orders else { return Ok(()) };
        let order = match orders.control.next() {
            None => return Ok(()),
            Some(Wish::Status { since }) => {
                let status = orders.status(since, totals);
                return orders.control.tell(status);
            }
            Some(Wish::Order(order)) => order,
        };
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

    /// Why an order cannot be carried out.
    fn refusal(&self, order: &Order) -> Option<String> {
        if let (Order::Change { edits }, Some(orders)) = (order, &self.orders) {
            return (orders.possible)(edits).err().map(|error| error.to_string());
        }
        let Order::Set { limits, .. } = order else { return None };
        if !limits.any() {
            return None;
        }
        if self.others.is_some() {
            return Some(
                "a run over several processes cannot change its limits; stop it, and start it again with others".into(),
            );
        }
        if self.orders.as_ref().is_some_and(|orders| orders.lag) {
            return Some(
                "this run cannot have limits: its calls are answered in later rounds, so they cannot be counted \
                 against a limit in time"
                    .into(),
            );
        }
        let models = self.machine.models();
        let known = self.gate.as_ref().is_some_and(|gate| gate.knows_costs(&models));
        (limits.cost_usd.is_some() && !known).then(|| {
            "the price of a model of this run is unknown, so a budget in dollars cannot be enforced; limit tokens or \
             calls, or stop the run and resume it with --price"
                .into()
        })
    }

    /// Carries out an order; returns the result in words.
    fn carry_out(&mut self, order: &Order, totals: &Totals) -> String {
        let Some(orders) = &mut self.orders else { return String::new() };
        match order {
            Order::Pause => {
                orders.paused = true;
                self.source.connections(0);
                "paused: no new calls are made, calls in flight are recorded, and no round begins".into()
            }
            Order::Resume => {
                (orders.paused, orders.steps) = (false, None);
                self.source.connections(orders.connections);
                "resumed".into()
            }
            Order::Change { edits } => {
                (orders.changes, orders.paused) = (true, false);
                self.source.connections(orders.connections);
                match edits.iter().all(|edit| edit.starts_with("messages=")) {
                    true => "the message is sent in the next round".into(),
                    false => format!("{}: from the next round on", edits.join(" ")),
                }
            }
            Order::Step { rounds } => {
                (orders.paused, orders.steps) = (*rounds == 0, (*rounds > 0).then_some(*rounds));
                self.source.connections(if orders.paused { 0 } else { orders.connections });
                format!("goes on for {rounds} round(s), then pauses")
            }
            Order::Stop => {
                orders.ending = Some(Ending::Stopped);
                "the run finishes the calls in flight, saves and stops; `polity resume` continues it".into()
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
                        let words = format!("{order}: the run stops because {reason}");
                        orders.ending = Some(Ending::Exhausted(reason));
                        return words;
                    }
                }
                let spent = totals.known_usd(false).map_or(String::new(), |usd| format!(" and {usd:.4} USD spent"));
                format!("{order}: in force from now on; {} calls made{spent} so far", totals.calls)
            }
        }
    }

    /// Between two rounds: takes orders, and waits while the run is paused. Meanwhile arrivals are recorded.
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
