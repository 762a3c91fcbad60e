//! What goes over a socket after the handshake: frames, signs of life, and a goodbye. Each begins with a length of 8 bytes.

use super::{Event, HEARTBEAT};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

/// A length that no frame has: a sign of life.
const ALIVE: u64 = u64::MAX;
/// A length that no frame has: the process ends by itself.
const BYE: u64 = u64::MAX - 1;
/// Why a process is gone that said goodbye.
pub(crate) const LEFT: &str = "it has stopped";

/// Writes frames until there are no more, then says goodbye.
pub(crate) fn write(mut to: TcpStream, frames: &Receiver<Vec<u8>>) -> io::Result<()> {
    loop {
        match frames.recv_timeout(HEARTBEAT) {
            Ok(frame) => {
                to.write_all(&(frame.len() as u64).to_le_bytes())?;
                to.write_all(&frame)?;
            }
            Err(RecvTimeoutError::Timeout) => to.write_all(&ALIVE.to_le_bytes())?,
            Err(RecvTimeoutError::Disconnected) => {
                to.write_all(&BYE.to_le_bytes())?;
                return to.shutdown(Shutdown::Write);
            }
        }
    }
}

/// Reads frames until the other process is gone, and says why.
pub(crate) fn read(mut from: TcpStream, process: usize, events: &Sender<Event>) {
    let why = loop {
        match next(&mut from) {
            Ok(Some(frame)) => {
                if events.send(Event::Frame(process, frame)).is_err() {
                    return;
                }
            }
            Ok(None) => break LEFT.to_string(),
            Err(error) => {
                break match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        let limit = from.read_timeout().ok().flatten().unwrap_or_default();
                        format!("it has given no sign of life for {} s", limit.as_secs_f64())
                    }
                    io::ErrorKind::UnexpectedEof => "its connection ended".to_string(),
                    _ => error.to_string(),
                };
            }
        }
    };
    drop(events.send(Event::Gone(process, why)));
}

/// The next frame; `None` after a goodbye.
fn next(from: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    loop {
        let mut length = [0; 8];
        from.read_exact(&mut length)?;
        match u64::from_le_bytes(length) {
            ALIVE => {}
            BYE => return Ok(None),
            length => {
                let mut frame = Vec::new();
                // In pieces: a length alone takes no memory.
                from.take(length).read_to_end(&mut frame)?;
                return match frame.len() as u64 == length {
                    true => Ok(Some(frame)),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }
}
