//! Measures exchanges between processes: `exchange [PROCESSES]` prints the time of an exchange, and the processor time of a process, for
//! frames of several sizes. Every process gives the others an equal share of the bytes.

#![allow(clippy::print_stdout, clippy::expect_used, clippy::unwrap_used)]

use polity_peers::{Group, Peers};
use std::env;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

/// Bytes that a process gives in an exchange, and how often it is repeated.
const CASES: [(usize, usize); 3] = [(24, 2_000), (1_000_000, 100), (64_000_000, 5)];

/// Processor time of this process so far, in seconds.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: Vec<f64> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().filter_map(|n| n.parse().ok()).collect();
    // User and system time, in hundredths of a second; the state before them is no number.
    (ticks.get(10).copied().unwrap_or(0.0) + ticks.get(11).copied().unwrap_or(0.0)) / 100.0
}

fn measure(mut peers: Peers) {
    let others = peers.count() - 1;
    for (bytes, times) in CASES {
        let frames = || vec![vec![7; bytes / others]; others];
        for _ in 0..3 {
            peers.exchange(frames(), || true).expect("an exchange");
        }
        let (mut wall, before) = (Vec::new(), processor());
        for _ in 0..times {
            let frames = frames();
            let began = Instant::now();
            peers.exchange(frames, || true).expect("an exchange");
            wall.push(began.elapsed().as_secs_f64() * 1e3);
        }
        let processor_ms = (processor() - before) * 1e3 / times as f64;
        wall.sort_by(f64::total_cmp);
        if peers.index() == 0 {
            let (median, late) = (wall[times / 2], wall[times * 95 / 100]);
            println!("| {bytes} | {median:.3} | {late:.3} | {processor_ms:.3} |");
        }
    }
}

fn main() {
    let words: Vec<String> = env::args().collect();
    if let [_, index, addresses] = words.as_slice() {
        let group = Group {
            addresses: addresses.split(',').map(str::to_string).collect(),
            index: index.parse().unwrap(),
            token: String::new(),
            build: String::new(),
            run: String::new(),
            patience: Duration::from_secs(30),
            silence: Duration::from_secs(10),
        };
        return measure(group.join(|_| {}).expect("a group"));
    }
    let n: usize = words.get(1).and_then(|n| n.parse().ok()).unwrap_or(4);
    let listeners: Vec<TcpListener> = (0..n).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<String> = listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect();
    drop(listeners);
    println!("{n} processes on this machine\n");
    println!("| bytes a process and exchange | median, ms | 95 %, ms | processor time of a process, ms |");
    println!("|---|---|---|---|");
    let own = env::current_exe().unwrap();
    let start = |index: usize| Command::new(&own).args([index.to_string(), addresses.join(",")]).spawn().unwrap();
    let processes: Vec<_> = (0..n).map(start).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
}
