//! The cost of writing the acts of a large society: `tables_bench [agents] [rounds] [chunks per round] [noise] [folder]`.
//!
//! `noise` is the share of values that are random doubles (0.6); the rest repeat four values. Prints rows per second,
//! CPU seconds, bytes on disk, memory above the rows' own, and what each column became. Linux only.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parquet::file::reader::{FileReader, SerializedFileReader};
use polity_kernel::rng::philox;
use polity_store::disk::RealDisk;
use polity_store::memory::entry_mb;
use polity_store::tables::{Batch, Column, ColumnSpec, Kind, TableSpec, Tables, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or(default.into());
    let (agents, rounds, chunks): (u32, u32, u32) = (next("1000000").parse()?, next("10").parse()?, next("1").parse()?);
    let noise: f64 = next("0.6").parse()?;
    let folder = PathBuf::from(next("/tmp/tables_bench"));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }

    let words = ["none", "post", "repost", "like", "follow", "vote"].map(String::from).to_vec();
    let acts = TableSpec {
        name: "acts".into(),
        doc: "One act of one agent in one round.".into(),
        columns: vec![
            ColumnSpec::new("agent", Kind::U32, "Who acted."),
            ColumnSpec::new("round", Kind::U32, "When."),
            ColumnSpec::new("value", Kind::F64, "How strongly."),
            ColumnSpec::new("kind", Kind::Category(words), "What it was."),
        ],
        volatile: false,
        only_with_rows: false,
    };
    let batches: Vec<Batch> = (0..rounds)
        .flat_map(|round| {
            let each = agents.div_ceil(chunks);
            (0..chunks).map(move |chunk| batch(chunk * each..agents.min((chunk + 1) * each), round, noise))
        })
        .collect();
    let rows: usize = batches.iter().map(|batch| batch.rows).sum();

    fs::write("/proc/self/clear_refs", "5")?;
    let (held, cpu, start) = (memory("VmRSS:")?, cpu()?, Instant::now());
    let mut tables = Tables::open(Arc::new(RealDisk), &folder, vec![acts])?;
    for batch in batches {
        tables.push(0, batch)?;
    }
    let pushed = start.elapsed();
    tables.close_parts(0, rounds - 1)?;
    tables.publish(true)?;
    tables.finish()?;
    let (wall, cpu, peak) = (start.elapsed(), self::cpu()? - cpu, memory("VmHWM:")?);

    println!(
        "{rows} rows in {:.3} s ({:.3} s until all were handed over), {:.1} million rows/s",
        wall.as_secs_f64(),
        pushed.as_secs_f64(),
        rows as f64 / wall.as_secs_f64() / 1e6
    );
    println!("{cpu:.2} s CPU, {:.0} MB above the rows' own {held:.0} MB", peak - held);
    columns(&folder.join("acts"))
}

fn batch(agents: std::ops::Range<u32>, round: u32, noise: f64) -> Batch {
    let (mut values, mut codes) = (Vec::with_capacity(agents.len()), Vec::with_capacity(agents.len()));
    for agent in agents.clone() {
        let [ab, cd] = philox([u64::from(agent), u64::from(round)], 1);
        let (c, d) = (cd as u32, (cd >> 32) as u32);
        let random = (ab >> 11) as f64 / (1u64 << 53) as f64;
        let noisy = f64::from(c) < noise * f64::from(u32::MAX);
        values.push(if noisy { random } else { f64::from(d % 4) / 4.0 });
        codes.push((d >> 8) as u16 % 6);
    }
    let columns = vec![
        Column::U32(agents.clone().collect()),
        Column::Same(Value::U32(round)),
        Column::F64(values),
        Column::Code(codes),
    ];
    Batch { rows: agents.len(), columns }
}

fn columns(folder: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        println!("{}: {:.1} MB", path.display(), fs::metadata(&path)?.len() as f64 / 1e6);
        let reader = SerializedFileReader::new(fs::File::open(&path)?)?;
        let groups = reader.metadata().row_groups();
        for (index, column) in groups[0].columns().iter().enumerate() {
            let bytes: i64 = groups.iter().map(|group| group.column(index).compressed_size()).sum();
            let encodings: Vec<_> = column.encodings().collect();
            println!(
                "  {:8} {:9.3} MB  {:?} {:?}",
                column.column_path().string(),
                bytes as f64 / 1e6,
                column.compression(),
                encodings
            );
        }
        println!("  {} row groups", groups.len());
    }
    Ok(())
}

/// In MB, of this process.
fn memory(entry: &str) -> Result<f64, Box<dyn Error>> {
    entry_mb("/proc/self/status", entry).ok_or("no such entry".into())
}

/// CPU seconds of this process, in hundredths.
fn cpu() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().ok_or("no such field")?;
    let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(ticks as f64 / 100.0)
}
