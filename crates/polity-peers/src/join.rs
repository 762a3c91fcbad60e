//! How the processes of a group find each other: each connects to those before it and waits for those after it.

use super::handshake::{self, Failed, Nonce, Side, Terms};
use super::{Event, Link, Peers, wire};
use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How often an absent process is looked for.
const AGAIN: Duration = Duration::from_millis(50);

/// A group of processes that compute one run, and this one's place in it.
#[derive(Clone, Debug)]
pub struct Group {
    /// The address of each process, `HOST:PORT`, in the order of their numbers.
    pub addresses: Vec<String>,
    /// The number of this process, from 0.
    pub index: usize,
    /// What only the processes of the group know. It is proved, not sent; frames are not encrypted.
    pub token: String,
    /// The build of the program.
    pub build: String,
    /// The digest of the run.
    pub run: String,
    /// How long to wait for the others to start.
    pub patience: Duration,
    /// How long a silent process is waited for; at least 2 s.
    pub silence: Duration,
}

/// Why a process could not join its group.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Its own address is not usable.
    #[error("this process cannot listen on {address}: {source}; is another one using the port?")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// A process did not come.
    #[error("process {process} ({address}) has not come within {seconds} s{last}; start it with the same command")]
    Absent {
        /// Its number.
        process: usize,
        /// Its address.
        address: String,
        /// How long it was waited for.
        seconds: u64,
        /// The last error, with a colon in front; empty if there was none.
        last: String,
    },
    /// A process refuses this one.
    #[error("process {process} ({address}) refuses this one: {why}")]
    Refused {
        /// Its number.
        process: usize,
        /// Its address.
        address: String,
        /// Why.
        why: String,
    },
    /// The operating system refuses something else.
    #[error("the processes cannot be connected: {0}")]
    Io(#[from] io::Error),
}

impl Group {
    /// Connects this process to all others. `note` is told about strangers that were turned away.
    ///
    /// # Errors
    /// Another process refuses this one, or does not come in time.
    pub fn join(&self, mut note: impl FnMut(&str)) -> Result<Peers, JoinError> {
        let (count, index) = (self.addresses.len(), self.index);
        let terms = Terms::new(&self.build, &self.run, count);
        let side = Side { terms: &terms, token: &self.token, index };
        let until = Instant::now() + self.patience;
        let own = &self.addresses[index];
        let listen = |source| JoinError::Listen { address: own.clone(), source };
        let listener = if index + 1 < count {
            let listener = TcpListener::bind(own).map_err(listen)?;
            listener.set_nonblocking(true).map_err(listen)?;
            Some(listener)
        } else {
            None
        };
        let mut sockets: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
        let mut generation = if index == 0 { Some(handshake::nonce()?) } else { None };
        for (process, place) in sockets.iter_mut().enumerate().take(index) {
            let (socket, told) = self.connect(process, &side, generation, until)?;
            generation = Some(told);
            *place = Some(socket);
        }
        let generation = generation.unwrap_or_default();
        if let Some(listener) = listener {
            self.accept_all(&listener, &side, generation, &mut sockets, until, &mut note)?;
        }
        let (events, received) = channel();
        let mut links = Vec::with_capacity(count);
        for (process, socket) in sockets.into_iter().enumerate() {
            links.push(match socket {
                Some(socket) => Some(self.link(socket, process, &events)?),
                None => None,
            });
        }
        Ok(Peers::new(index, self.addresses.clone(), links, received))
    }

    /// Connects to a process that has a smaller number, as soon as it is there.
    fn connect(
        &self,
        process: usize,
        side: &Side<'_>,
        generation: Option<Nonce>,
        until: Instant,
    ) -> Result<(TcpStream, Nonce), JoinError> {
        let address = &self.addresses[process];
        let mut last = String::new();
        while Instant::now() < until {
            let attempt = || -> Result<(TcpStream, Nonce), Failed> {
                let resolved = address.to_socket_addrs()?.next();
                let resolved = resolved.ok_or_else(|| io::Error::other("the name has no address"))?;
                let mut socket = TcpStream::connect_timeout(&resolved, HANDSHAKE)?;
                prepare(&socket, HANDSHAKE)?;
                let told = handshake::connect(&mut socket, side, generation)?;
                Ok((socket, told))
            };
            match attempt() {
                Ok(connected) => return Ok(connected),
                Err(Failed::Refused(why)) => {
                    return Err(JoinError::Refused { process, address: address.clone(), why });
                }
                Err(Failed::Io(error)) => last = format!(": {error}"),
            }
            std::thread::sleep(AGAIN);
        }
        Err(self.absent(process, last))
    }

    fn absent(&self, process: usize, last: String) -> JoinError {
        let address = self.addresses[process].clone();
        JoinError::Absent { process, address, seconds: self.patience.as_secs(), last }
    }

    /// Waits for all processes with greater numbers.
    fn accept_all(
        &self,
        listener: &TcpListener,
        side: &Side<'_>,
        generation: Nonce,
        sockets: &mut [Option<TcpStream>],
        until: Instant,
        note: &mut dyn FnMut(&str),
    ) -> Result<(), JoinError> {
        loop {
            let missing = (self.index + 1..sockets.len()).find(|process| sockets[*process].is_none());
            let Some(missing) = missing else { return Ok(()) };
            if Instant::now() >= until {
                return Err(self.absent(missing, String::new()));
            }
            match listener.accept() {
                Ok((mut socket, from)) => {
                    let is_missing =
                        |process: usize| process > self.index && sockets.get(process).is_some_and(Option::is_none);
                    let joined = socket
                        .set_nonblocking(false)
                        .and_then(|()| prepare(&socket, HANDSHAKE))
                        .map_err(Failed::Io)
                        .and_then(|()| handshake::accept(&mut socket, side, generation, is_missing));
                    match joined {
                        Ok(process) => sockets[process] = Some(socket),
                        Err(Failed::Refused(why)) => note(&format!("a process at {from} was turned away: {why}")),
                        Err(Failed::Io(error)) => note(&format!("a connection from {from} came to nothing: {error}")),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(AGAIN / 10),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Starts the threads that write to and read from another process.
    fn link(&self, socket: TcpStream, process: usize, events: &Sender<Event>) -> io::Result<Link> {
        prepare(&socket, self.silence.max(Duration::from_secs(2)))?;
        let (reader, events_of_reader) = (socket.try_clone()?, events.clone());
        let thread = || std::thread::Builder::new().name(format!("peer {process}"));
        thread().spawn(move || wire::read(reader, process, &events_of_reader))?;
        let (sender, frames) = channel();
        let events = events.clone();
        let writer = thread().spawn(move || {
            if let Err(error) = wire::write(socket, &frames) {
                drop(events.send(Event::Gone(process, error.to_string())));
            }
        })?;
        Ok(Link::Socket(Some(sender), Some(writer)))
    }
}

/// Sends at once, and waits `patience` for the other end.
fn prepare(socket: &TcpStream, patience: Duration) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(patience))?;
    socket.set_write_timeout(Some(patience))
}
