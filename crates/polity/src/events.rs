//! Events of a run, for the program that runs it.

use polity_driver::calls::Call;
use polity_driver::drive::{Progress, Stop, Watch};
use polity_driver::health::Alarm;
use polity_kernel::ask::{Answer, TargetKind};
use polity_kernel::machine::{ItemReport, RoundReport};
use polity_kernel::scenario::Assembled;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// An event of a run. As JSON, its name is under `event`: `round`, `call`, `alarm`, `waiting`, `note`.
///
/// ```
/// # use polity::{Event, Simulation};
/// # let scenario = "{rounds: 3, agents: 5, world: {kind: guess-average}, cohorts: [{policy: {kind: noise}}]}";
/// let (lines, log) = std::sync::mpsc::channel();
/// let simulation = Simulation::from_yaml(scenario)?.in_memory();
/// simulation.on_event(move |event| _ = lines.send(serde_json::to_string(&event))).run()?;
/// let first = log.recv().unwrap().unwrap();
/// assert!(first.starts_with(r#"{"event":"round","round":0,"planned":3,"agents":5,"#), "{first}");
/// # Ok::<(), polity::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// A round is complete. A resumed run reports the rounds that it recomputes again.
    Round {
        /// The round, from 0.
        round: u32,
        /// Number of planned rounds.
        planned: u32,
        /// Agents alive at its start; in an evaluation, items in progress.
        agents: u32,
        /// Number of actions of agents.
        acts: u64,
        /// Number of messages sent.
        messages: u64,
        /// Metrics and the world's numbers, by name.
        metrics: BTreeMap<String, f64>,
        /// Items of a data set that the team answered.
        verdicts: Vec<ItemReport>,
        /// The digest of the run up to and including this round.
        digest: String,
    },
    /// A model, a tool or a person has answered, or failed to. Answers come in any order. Recorded answers are not reported again.
    Call(Box<Call>),
    /// A sign that the run is meaningless. Alarms are sent once the run has ended or stopped.
    Alarm(Alarm),
    /// The run is waiting. Sent about ten times a second while it waits.
    Waiting {
        /// What it waits for.
        why: String,
    },
    /// External trouble that a person may want to know about, such as a rate limit or a foreign address for a provider.
    Note {
        /// The message.
        text: String,
    },
}

/// Whether a run continues after an event: the result of a handler, which is `()` or a [`ControlFlow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It continues.
    Continue,
    /// It stops: what is in flight is finished, everything is saved, and the run can be resumed.
    Stop,
}

impl From<()> for Flow {
    fn from((): ()) -> Self {
        Flow::Continue
    }
}

impl From<ControlFlow<()>> for Flow {
    fn from(flow: ControlFlow<()>) -> Self {
        if flow.is_break() { Flow::Stop } else { Flow::Continue }
    }
}

/// Stops a run from anywhere in the program. Clones stop the same run.
///
/// ```
/// # use polity::Simulation;
/// # let scenario = "{rounds: 100, agents: 5, world: {kind: guess-average}, cohorts: [{policy: {kind: noise}}]}";
/// let simulation = Simulation::from_yaml(scenario)?.in_memory();
/// let handle = simulation.stop_handle();
/// handle.stop();
/// let run = simulation.run()?;
/// assert!(!run.is_done());
/// assert!(run.resume().run()?.is_done());
/// # Ok::<(), polity::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StopHandle(pub(crate) Stop);

impl StopHandle {
    /// Stops the run: it finishes what is in flight and saves, within thirty seconds. It can be resumed.
    pub fn stop(&self) {
        self.0.ask();
    }
}

pub(crate) type Handler = Arc<Mutex<dyn FnMut(Event) -> Flow + Send>>;

/// Converts the driver's reports into events.
pub(crate) struct Observer {
    pub handler: Option<Handler>,
    pub stream: Option<Sender<Event>>,
    pub notes: Receiver<String>,
    pub stop: Stop,
    pub planned: u32,
}

impl Observer {
    fn listens(&self) -> bool {
        self.handler.is_some() || self.stream.is_some()
    }

    pub fn tell(&mut self, event: Event) {
        if let Some(stream) = &self.stream {
            // A closed receiver is no error.
            let _ = stream.send(event.clone());
        }
        if let Some(handler) = &self.handler {
            let mut handler = handler.lock().unwrap_or_else(PoisonError::into_inner);
            if handler(event) == Flow::Stop {
                self.stop.ask();
            }
        }
    }

    pub fn tell_notes(&mut self) {
        while let Ok(text) = self.notes.try_recv() {
            self.tell(Event::Note { text });
        }
    }
}

impl Watch for Observer {
    fn progress(&mut self, progress: &Progress) {
        self.planned = progress.planned;
        self.tell_notes();
        if let Some(why) = &progress.waiting
            && self.listens()
        {
            self.tell(Event::Waiting { why: why.clone() });
        }
    }

    fn heard(&mut self, answer: &Answer, machine: &Assembled) {
        if self.listens() {
            // While it runs, a model's answer without a cost may be one whose price is not known.
            let priced = TargetKind::of(&answer.request.model) != TargetKind::Model;
            let call = Call::of(answer, machine.evaluation().is_some(), true, priced);
            self.tell(Event::Call(Box::new(call)));
        }
    }

    fn round(&mut self, report: &RoundReport) {
        if self.listens() {
            self.tell(Event::Round {
                round: report.round,
                planned: self.planned,
                agents: report.agents,
                acts: report.acts,
                messages: report.messages,
                metrics: report.metrics.iter().cloned().collect(),
                verdicts: report.items.clone(),
                digest: report.chain.to_string(),
            });
        }
    }
}
