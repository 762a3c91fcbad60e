//! The handshake: both ends show that they know the token, and that they compute the same run with the same build.

use hmac::{Hmac, KeyInit, Mac};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Changes when the handshake or the frames change.
const PROTOCOL: &str = "polity-peers 1";
/// The longest message of a handshake, in bytes.
const LONGEST: usize = 4096;

pub(crate) type Nonce = [u8; 16];

/// What all processes of a group must agree about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terms {
    protocol: String,
    /// The build of the program.
    pub build: String,
    /// The digest of the run.
    pub run: String,
    /// Number of processes.
    pub count: usize,
}

impl Terms {
    pub fn new(build: &str, run: &str, count: usize) -> Self {
        Terms { protocol: PROTOCOL.into(), build: build.into(), run: run.into(), count }
    }

    /// Says in what another process differs; `None` if it does not.
    pub fn differs(&self, other: &Terms) -> Option<String> {
        let differs = |what: &str, own: &dyn std::fmt::Display, others: &dyn std::fmt::Display| {
            Some(format!("{what}: this process has {own}, the other has {others}"))
        };
        if self.protocol != other.protocol {
            return differs("another protocol", &self.protocol, &other.protocol);
        }
        if self.build != other.build {
            return differs("another build of the program", &self.build, &other.build);
        }
        if self.count != other.count {
            return differs("another number of processes", &self.count, &other.count);
        }
        (self.run != other.run).then(|| {
            format!(
                "another run: the scenario, its files or its seed differ (digest {} here, {} there)",
                self.run, other.run
            )
        })
    }
}

/// The first message, of the process that connects.
#[derive(Serialize, Deserialize)]
struct Hello {
    terms: Terms,
    index: usize,
    nonce: Nonce,
}

/// The answer to it, and to [`Proof`].
#[derive(Serialize, Deserialize)]
enum Reply {
    /// Go on, and show that you know the token; here is the same from this end.
    Challenge { nonce: Nonce, proof: [u8; 32] },
    /// Welcome, to this generation.
    Welcome { generation: Nonce },
    /// Not welcome, and why.
    Refused(String),
}

/// The last message of the process that connects.
#[derive(Serialize, Deserialize)]
struct Proof {
    proof: [u8; 32],
    /// The generation that process 0 named; `None` when process 0 is asked.
    generation: Option<Nonce>,
}

pub(crate) fn nonce() -> io::Result<Nonce> {
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(nonce)
}

fn prove(token: &str, end: &str, first: &Nonce, second: &Nonce, index: usize) -> io::Result<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).map_err(io::Error::other)?;
    mac.update(end.as_bytes());
    mac.update(first);
    mac.update(second);
    mac.update(&(index as u64).to_le_bytes());
    Ok(mac)
}

fn say<T: Serialize>(to: &mut TcpStream, message: &T) -> io::Result<()> {
    let bytes = postcard::to_stdvec(message).map_err(io::Error::other)?;
    to.write_all(&(bytes.len() as u32).to_le_bytes())?;
    to.write_all(&bytes)
}

fn hear<T: DeserializeOwned>(from: &mut TcpStream) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(io::Error::other("this is no process of a Polity run"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    postcard::from_bytes(&bytes).map_err(|_| io::Error::other("this is no process of a Polity run"))
}

/// How a handshake ended without a connection.
pub(crate) enum Failed {
    /// The other process refuses this one: trying again is of no use.
    Refused(String),
    /// The connection failed.
    Io(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed::Io(error)
    }
}

/// Who takes part, and what they know.
pub(crate) struct Side<'a> {
    pub terms: &'a Terms,
    pub token: &'a str,
    pub index: usize,
}

/// The handshake of the process that connects. Returns the generation.
pub(crate) fn connect(socket: &mut TcpStream, side: &Side<'_>, generation: Option<Nonce>) -> Result<Nonce, Failed> {
    let first = nonce()?;
    say(socket, &Hello { terms: side.terms.clone(), index: side.index, nonce: first })?;
    let (second, proof) = match hear(socket)? {
        Reply::Challenge { nonce, proof } => (nonce, proof),
        Reply::Refused(why) => return Err(Failed::Refused(why)),
        Reply::Welcome { .. } => return Err(io::Error::other("an answer out of turn").into()),
    };
    if prove(side.token, "accepts", &first, &second, side.index)?.verify_slice(&proof).is_err() {
        return Err(Failed::Refused("its token is another one".into()));
    }
    let proof = prove(side.token, "connects", &first, &second, side.index)?.finalize().into_bytes().into();
    say(socket, &Proof { proof, generation })?;
    match hear(socket)? {
        Reply::Welcome { generation } => Ok(generation),
        Reply::Refused(why) => Err(Failed::Refused(why)),
        Reply::Challenge { .. } => Err(io::Error::other("an answer out of turn").into()),
    }
}

/// The handshake of the process that is connected to. Returns the number of the other process. `is_missing`: whether a process of this
/// number may still join.
pub(crate) fn accept(
    socket: &mut TcpStream,
    side: &Side<'_>,
    generation: Nonce,
    is_missing: impl Fn(usize) -> bool,
) -> Result<usize, Failed> {
    let Hello { terms, index, nonce: first } = hear(socket)?;
    let mut refuse = |why: String| {
        // The other end may be gone.
        drop(say(socket, &Reply::Refused(why.clone())));
        Err(Failed::Refused(why))
    };
    if let Some(why) = side.terms.differs(&terms) {
        // Seen from the other end.
        let why_there = terms.differs(side.terms).unwrap_or(why);
        return refuse(why_there);
    }
    if !is_missing(index) {
        return refuse(format!("there is a process {index} already, or there should be none"));
    }
    let second = nonce()?;
    let proof = prove(side.token, "accepts", &first, &second, index)?.finalize().into_bytes().into();
    say(socket, &Reply::Challenge { nonce: second, proof })?;
    let Proof { proof, generation: claimed } = hear(socket)?;
    let mut refuse = |why: &str| {
        drop(say(socket, &Reply::Refused(why.into())));
        Err(Failed::Refused(why.into()))
    };
    if prove(side.token, "connects", &first, &second, index)?.verify_slice(&proof).is_err() {
        return refuse("its token is another one");
    }
    // Process 0 gives every process that joins the generation of this start; a process of an older start has another one.
    if side.index != 0 && claimed != Some(generation) {
        return refuse("it belongs to an older start of the run");
    }
    say(socket, &Reply::Welcome { generation })?;
    Ok(index)
}
