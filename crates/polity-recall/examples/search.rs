//! The cost of searching: `search [documents]` makes documents of about 100 words and prints, for each method in a process of its own, how
//! long indexing takes, how long 200 queries of 5 words take (k = 10; also before a day that half of the documents precede), and how much
//! memory a document takes with its text (on Linux only).
//!
//! `search scores DOCUMENTS QUERIES lucene|okapi` prints BM25 scores for `scripts/search-peers.sh`, after the seconds taken to index and to
//! score: a line per query, with the document of each score. Both files have a text in each line.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use polity_kernel::rng::{Draws, Stream};
use polity_recall::{Bm25, Bm25Settings, Document, Idf, Index, Method, Settings};
use std::error::Error;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// Different words, of which the one in place n is drawn in proportion to 1 / n.
const WORDS: usize = 100_000;
const QUERIES: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["scores", documents, queries, idf] => scores(documents, queries, idf),
        [documents, method] => figures(documents.parse()?, method),
        [] => table("100000"),
        [documents] => table(documents),
        _ => Err("usage: search [documents], or search scores DOCUMENTS QUERIES lucene|okapi".into()),
    }
}

fn table(documents: &str) -> Result<(), Box<dyn Error>> {
    println!(
        "| method | documents | indexed in | query, median | 95% | slowest | before a day, median | bytes a document |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for method in ["bm25", "dense", "hybrid"] {
        let status = Command::new(std::env::current_exe()?).args([documents, method]).status()?;
        if !status.success() {
            return Err(format!("the process for {method} failed: {status}").into());
        }
    }
    Ok(())
}

fn figures(count: usize, method: &str) -> Result<(), Box<dyn Error>> {
    let method = match method {
        "bm25" => Method::Bm25,
        "dense" => Method::Dense,
        "hybrid" => Method::Hybrid,
        _ => return Err(format!("`{method}` is none of bm25, dense and hybrid").into()),
    };
    let held = memory();
    let mut draws = Draws::new(1, Stream::Driver, 0, 0);
    let mut ends: Vec<f64> = (1..=WORDS).map(|n| 1.0 / n as f64).collect();
    for i in 1..WORDS {
        ends[i] += ends[i - 1];
    }
    let mut text = |words: u64| {
        let mut word = || {
            let at = draws.range(0.0, ends[WORDS - 1]);
            format!("w{}", ends.partition_point(|end| *end <= at))
        };
        (0..words).map(|_| word()).collect::<Vec<_>>().join(" ")
    };
    let documents: Vec<Document> = (0..count)
        .map(|i| Document {
            id: format!("doc-{i}"),
            title: text(5),
            text: text(75 + (i % 51) as u64),
            date: format!("{}-06-{:02}", 1990 + i % 35, 1 + i % 30).parse().ok(),
        })
        .collect();
    let queries: Vec<String> = (0..QUERIES).map(|_| text(5)).collect();
    let bytes: usize = documents.iter().map(|one| one.id.len() + one.title.len() + one.text.len()).sum();
    let (mean, start) = (bytes / count.max(1), Instant::now());
    let index = Index::new(documents, &Settings { method, ..Settings::default() })?;
    let indexed = start.elapsed();
    let grown = memory().zip(held).map(|(now, held)| (now - held) * 1e6 / count as f64);
    let day = "2010-01-01".parse()?;
    let all = times(&queries, |query| index.search(query, 10, None).len());
    let earlier = times(&queries, |query| index.search(query, 10, Some(day)).len());
    println!(
        "| {method:?} | {count} of {mean} bytes | {:.1} s | {:.2} ms | {:.2} ms | {:.2} ms | {:.2} ms | {} |",
        indexed.as_secs_f64(),
        ms(all[QUERIES / 2]),
        ms(all[QUERIES * 95 / 100]),
        ms(all[QUERIES - 1]),
        ms(earlier[QUERIES / 2]),
        grown.map_or("unknown".into(), |bytes| format!("{bytes:.0}")),
    );
    Ok(())
}

/// Times every query; returns the times in ascending order.
fn times(queries: &[String], search: impl Fn(&str) -> usize) -> Vec<Duration> {
    let mut times: Vec<Duration> = queries
        .iter()
        .map(|query| {
            let start = Instant::now();
            std::hint::black_box(search(query));
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The memory of this process, in MB.
fn memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kb = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().trim_end_matches(" kB").parse::<f64>();
    Some(kb.ok()? / 1e3)
}

fn scores(documents: &str, queries: &str, idf: &str) -> Result<(), Box<dyn Error>> {
    let idf = match idf {
        "lucene" => Idf::Lucene,
        "okapi" => Idf::Okapi,
        _ => return Err(format!("`{idf}` is neither lucene nor okapi").into()),
    };
    let (documents, queries) = (fs::read_to_string(documents)?, fs::read_to_string(queries)?);
    let start = Instant::now();
    let index = Bm25::new(documents.lines(), Bm25Settings { idf, ..Bm25Settings::default() });
    let indexed = start.elapsed();
    let start = Instant::now();
    let all: Vec<Vec<(u32, f64)>> = queries.lines().map(|query| index.scores(query, index.len())).collect();
    println!("{} {}", indexed.as_secs_f64(), start.elapsed().as_secs_f64());
    for scores in all {
        let shown: Vec<String> = scores.iter().map(|(document, score)| format!("{document}:{score}")).collect();
        println!("{}", shown.join(" "));
    }
    Ok(())
}
