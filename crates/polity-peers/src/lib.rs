//! Connections between the processes that compute one society.
//!
//! Every process has a connection to every other one. All take part in the same exchanges in the same order: each gives every other
//! process one frame of bytes, and waits for one from each. There is no leader to elect and nothing to reconnect: if a process is
//! lost, the others end, and all of them are started again (see `docs/decisions/one-society-over-processes.md`).

mod handshake;
mod join;
mod wire;

pub use join::{Group, JoinError};

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a process that has nothing to say gives a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How often a waiting process looks whether it should stop.
const TICK: Duration = Duration::from_millis(100);

/// A process that the others cannot go on without.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("process {process} ({name}) is lost: {why}; start all processes again, they go on from what is recorded")]
pub struct Lost {
    /// Its number.
    pub process: usize,
    /// Its address.
    pub name: String,
    /// What happened to it.
    pub why: String,
}

/// Why an exchange did not take place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A process is lost.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// This process no longer wants to wait.
    #[error("the exchange was given up")]
    GivenUp,
}

/// What a connection brings.
enum Event {
    Frame(usize, Vec<u8>),
    Gone(usize, String),
}

/// The way to another process.
enum Link {
    /// To a thread that writes to a socket. It ends when the sender is dropped.
    Socket(Option<Sender<Vec<u8>>>, Option<JoinHandle<()>>),
    /// To a process that is a thread of this one.
    Memory(Sender<Event>),
}

/// This process's connections to the others.
pub struct Peers {
    index: usize,
    names: Vec<String>,
    /// By process; `None` for this one.
    links: Vec<Option<Link>>,
    events: Receiver<Event>,
    /// Frames that are here before this process waits for them, by process.
    early: Vec<VecDeque<Vec<u8>>>,
    gone: Vec<Option<String>>,
    carried: u64,
}

impl Peers {
    /// Makes `n` groups of connections between threads of one process, for tests.
    ///
    /// ```
    /// let mut peers = polity_peers::Peers::in_memory(2);
    /// let (mut second, mut first) = (peers.pop().unwrap(), peers.pop().unwrap());
    /// let other = std::thread::spawn(move || second.exchange(vec![b"to 0".to_vec()], || true));
    /// assert_eq!(first.exchange(vec![b"to 1".to_vec()], || true), Ok(vec![b"to 0".to_vec()]));
    /// assert_eq!(other.join().unwrap(), Ok(vec![b"to 1".to_vec()]));
    /// ```
    #[must_use]
    pub fn in_memory(n: usize) -> Vec<Peers> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..n).map(|_| std::sync::mpsc::channel()).unzip();
        let names: Vec<String> = (0..n).map(|i| format!("thread {i}")).collect();
        let links = |index: usize| -> Vec<Option<Link>> {
            let all = senders.iter().enumerate();
            all.map(|(to, sender)| (to != index).then(|| Link::Memory(sender.clone()))).collect()
        };
        let all = receivers.into_iter().enumerate();
        all.map(|(index, events)| Peers::new(index, names.clone(), links(index), events)).collect()
    }

    fn new(index: usize, names: Vec<String>, links: Vec<Option<Link>>, events: Receiver<Event>) -> Self {
        let n = links.len();
        let early = (0..n).map(|_| VecDeque::new()).collect();
        Peers { index, names, links, events, early, gone: vec![None; n], carried: 0 }
    }

    /// Returns the number of this process, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns how many processes there are, with this one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// Returns the bytes given to others so far.
    #[must_use]
    pub fn carried(&self) -> u64 {
        self.carried
    }

    /// Gives each other process a frame, in order of their numbers, and returns theirs in the same order. `go_on` is asked now and
    /// then whether to wait longer.
    ///
    /// # Errors
    /// A process is lost, or `go_on` says no. The connections are of no more use then.
    ///
    /// # Panics
    /// If there is not one frame for each other process.
    pub fn exchange(&mut self, frames: Vec<Vec<u8>>, mut go_on: impl FnMut() -> bool) -> Result<Vec<Vec<u8>>, Broken> {
        assert_eq!(frames.len() + 1, self.links.len(), "one frame for each other process");
        for (link, frame) in self.links.iter().flatten().zip(frames) {
            self.carried += frame.len() as u64;
            // If the other end is gone, the wait below says so.
            match link {
                Link::Socket(sender, _) => drop(sender.as_ref().map(|sender| sender.send(frame))),
                Link::Memory(sender) => drop(sender.send(Event::Frame(self.index, frame))),
            }
        }
        let others: Vec<usize> = (0..self.links.len()).filter(|process| *process != self.index).collect();
        loop {
            while let Ok(event) = self.events.try_recv() {
                self.take(event);
            }
            if others.iter().all(|process| !self.early[*process].is_empty()) {
                return Ok(others.iter().filter_map(|process| self.early[*process].pop_front()).collect());
            }
            let missing =
                others.iter().find(|process| self.early[**process].is_empty() && self.gone[**process].is_some());
            if let Some(process) = missing.copied() {
                let why = self.gone[process].clone().unwrap_or_default();
                return Err(Lost { process, name: self.names[process].clone(), why }.into());
            }
            match self.events.recv_timeout(TICK) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) if go_on() => {}
                Err(RecvTimeoutError::Timeout) => return Err(Broken::GivenUp),
                Err(RecvTimeoutError::Disconnected) => {
                    let process = others[0];
                    let why = "its connection ended".into();
                    return Err(Lost { process, name: self.names[process].clone(), why }.into());
                }
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Frame(from, bytes) => self.early[from].push_back(bytes),
            Event::Gone(from, why) => drop(self.gone[from].get_or_insert(why)),
        }
    }
}

/// Says goodbye: the others then know that this process has not died.
impl Drop for Peers {
    fn drop(&mut self) {
        for link in self.links.iter_mut().flatten() {
            match link {
                Link::Socket(sender, _) => drop(sender.take()),
                Link::Memory(sender) => {
                    drop(sender.send(Event::Gone(self.index, wire::LEFT.into())));
                }
            }
        }
        for link in self.links.iter_mut().flatten() {
            if let Link::Socket(_, writer) = link
                && let Some(writer) = writer.take()
            {
                // What was given to it still goes out, or fails because the other end is gone.
                drop(writer.join());
            }
        }
    }
}

#[cfg(test)]
mod tests;
