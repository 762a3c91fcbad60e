//! Groups of processes that are threads here, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::join::{Group, JoinError};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Addresses that are free now.
fn addresses(n: usize) -> Vec<String> {
    let listeners: Vec<TcpListener> = (0..n).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

fn group(addresses: &[String], index: usize) -> Group {
    Group {
        addresses: addresses.to_vec(),
        index,
        token: "a secret".into(),
        build: "build 1".into(),
        run: "run 1".into(),
        patience: Duration::from_secs(30),
        silence: Duration::from_secs(10),
    }
}

/// Runs every process of a group in a thread.
fn each<T: Send + 'static>(n: usize, run: impl Fn(Peers) -> T + Clone + Send + 'static) -> Vec<T> {
    let addresses = addresses(n);
    let join = |index: usize| {
        let (group, run) = (group(&addresses, index), run.clone());
        thread::spawn(move || run(group.join(|_| {}).unwrap()))
    };
    // The last ones first: they have to wait for the others.
    let threads: Vec<_> = (0..n).rev().map(join).collect();
    let mut results: Vec<T> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    results.reverse();
    results
}

#[test]
fn everyone_gets_the_frame_of_everyone_in_every_exchange() {
    let run = |mut peers: Peers| {
        let own = peers.index();
        let others: Vec<usize> = (0..peers.count()).filter(|other| *other != own).collect();
        for round in 0..200usize {
            // Sometimes nothing, sometimes more than a socket holds.
            let frame =
                |from: usize, to: usize| vec![(from * 16 + to) as u8; (round * 7919 + from) % 3 * round * 5_000];
            let sent = others.iter().map(|to| frame(own, *to)).collect();
            let expected: Vec<Vec<u8>> = others.iter().map(|from| frame(*from, own)).collect();
            assert!(peers.exchange(sent, || true).unwrap() == expected, "round {round}");
        }
        peers.carried()
    };
    assert!(each(4, run).iter().all(|carried| *carried > 0));
}

#[test]
fn a_process_that_ends_is_missed() {
    let run = |mut peers: Peers| {
        let empty = vec![Vec::new(); peers.count() - 1];
        peers.exchange(empty.clone(), || true).unwrap();
        if peers.index() == 1 {
            return None;
        }
        // One of the others may notice the goodbye of the other one first.
        match peers.exchange(empty, || true) {
            Err(Broken::Lost(lost)) => Some(lost.why),
            other => panic!("{other:?}"),
        }
    };
    let why = each(3, run);
    assert_eq!(why, [Some(wire::LEFT.to_string()), None, Some(wire::LEFT.to_string())]);
}

#[test]
fn a_process_that_is_busy_for_long_is_waited_for() {
    let addresses = addresses(2);
    let mut quick = group(&addresses, 0);
    quick.silence = Duration::from_secs(2);
    let other = group(&addresses, 1);
    let busy = thread::spawn(move || {
        let mut peers = other.join(|_| {}).unwrap();
        // Longer than the limit, with signs of life.
        thread::sleep(Duration::from_secs(3));
        peers.exchange(vec![b"done".to_vec()], || true)
    });
    let mut peers = quick.join(|_| {}).unwrap();
    assert_eq!(peers.exchange(vec![Vec::new()], || true), Ok(vec![b"done".to_vec()]));
    assert_eq!(busy.join().unwrap(), Ok(vec![Vec::new()]));
    assert!(matches!(peers.exchange(vec![Vec::new()], || false), Err(Broken::Lost(_) | Broken::GivenUp)));
}

/// A socket that was accepted and then says nothing.
#[test]
fn an_open_connection_without_signs_of_life_is_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let socket = TcpStream::connect(address).unwrap();
    let (mut silent, _) = listener.accept().unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let (events, received) = std::sync::mpsc::channel();
    silent.write_all(&3u64.to_le_bytes()).unwrap();
    silent.write_all(b"abc").unwrap();
    wire::read(socket, 7, &events);
    assert!(matches!(received.recv().unwrap(), Event::Frame(7, frame) if frame == b"abc"));
    let Event::Gone(7, why) = received.recv().unwrap() else { panic!("not gone") };
    assert!(why.contains("no sign of life for 0.3 s"), "{why}");
}

#[test]
fn strangers_are_turned_away_and_the_group_still_meets() {
    let addresses = addresses(2);
    let first = group(&addresses, 0);
    let waits = thread::spawn(move || {
        let mut notes = Vec::new();
        let mut peers = first.join(|note| notes.push(note.to_string())).unwrap();
        assert_eq!(peers.exchange(vec![b"well met".to_vec()], || true), Ok(vec![b"you too".to_vec()]));
        notes
    });
    let refused = |change: &dyn Fn(&mut Group)| {
        let mut stranger = group(&addresses, 1);
        change(&mut stranger);
        match stranger.join(|_| {}) {
            Err(JoinError::Refused { why, .. }) => why,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("a stranger has joined"),
        }
    };
    assert!(refused(&|group| group.token = "a guess".into()).contains("token"));
    let build = refused(&|group| group.build = "build 2".into());
    assert!(build.contains("this process has build 2, the other has build 1"), "{build}");
    assert!(refused(&|group| group.run = "run 2".into()).contains("another run"));
    assert!(refused(&|group| group.addresses.push("127.0.0.1:1".into())).contains("number of processes"));
    // Something else altogether.
    let mut browser = TcpStream::connect(&addresses[0]).unwrap();
    browser.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    drop(browser.read_to_end(&mut answer));
    let mut peers = group(&addresses, 1).join(|_| {}).unwrap();
    assert_eq!(peers.exchange(vec![b"you too".to_vec()], || true), Ok(vec![b"well met".to_vec()]));
    let notes = waits.join().unwrap();
    assert_eq!(notes.len(), 5, "{notes:?}");
    assert!(notes[4].contains("no process of a Polity run"), "{notes:?}");
}

#[test]
fn a_process_of_an_older_start_cannot_join() {
    let (listener, terms) = (TcpListener::bind("127.0.0.1:0").unwrap(), crate::handshake::Terms::new("b", "r", 3));
    let address = listener.local_addr().unwrap();
    let there = terms.clone();
    let accepts = thread::spawn(move || {
        let side = crate::handshake::Side { terms: &there, token: "t", index: 1 };
        let (mut socket, _) = listener.accept().unwrap();
        crate::handshake::accept(&mut socket, &side, [2; 16], |_| true).is_ok()
    });
    let side = crate::handshake::Side { terms: &terms, token: "t", index: 2 };
    let mut socket = TcpStream::connect(address).unwrap();
    let Err(crate::handshake::Failed::Refused(why)) = crate::handshake::connect(&mut socket, &side, Some([1; 16]))
    else {
        panic!("it has joined")
    };
    assert!(why.contains("older start"), "{why}");
    assert!(!accepts.join().unwrap());
}

#[test]
fn who_does_not_come_is_named() {
    let addresses = addresses(2);
    let mut first = group(&addresses, 0);
    first.patience = Duration::from_millis(200);
    let error = first.join(|_| {}).err().unwrap().to_string();
    assert!(error.contains("process 1") && error.contains(&addresses[1]), "{error}");
    let mut second = group(&addresses, 1);
    second.patience = Duration::from_millis(200);
    let error = second.join(|_| {}).err().unwrap().to_string();
    assert!(error.contains("process 0") && error.contains("refused"), "{error}");
}
