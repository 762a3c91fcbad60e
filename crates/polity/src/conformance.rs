//! The conformance suite: guarantees of every leaf, checked on its own scenario.
//!
//! The same seed twice; every activation that the world allows; 1, 2 and 5 threads; 1, 3 and 7 shards; 2 and 3 processes, where the world
//! can be split; answers shuffled, repeated and
//! failing; replay; resume in the middle; a fork without changes; a changed number in a snapshot; the golden. A world with prompts is also
//! played by minds, alone and beside the policies of its scenario. Every new leaf is checked, also those of your own crate: call
//! [`own_leaves`] with its registry.

use polity_driver::drive::{Progress, Stop, Unwatched, Watch};
use polity_driver::results;
use polity_driver::run::{Engine, Extent, Prepared, RunStatus, Summary, prepare};
use polity_driver::source::Faults;
use polity_driver::spread::Spread;
use polity_driver::systems::QUANTITIES;
use polity_kernel::layout::Layout;
use polity_kernel::machine::Machine;
use polity_kernel::registry::{LeafInfo, Registry};
use polity_kernel::saved::{Part, Sink};
use polity_kernel::scenario::{Assembled, assemble};
use polity_kernel::society::Society;
use polity_kernel::tree::{Node, Value};
use polity_store::disk::{Disk, SimDisk};
use polity_store::files::yaml;
use polity_store::tables::ColumnData;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Agents of the check over shards: eight blocks, so that all of seven shards have work.
const MANY: i64 = 30_000;
/// Agents of the same check where all agents hear each other, or models are asked: two blocks.
const MANY_COSTLY: i64 = 4_200;
/// The most agents and rounds of the checks with minds, where minds are asked in so small a society.
const WITH_MINDS: (i64, i64) = (60, 12);

/// Bits that are flipped in each kind of state.
const FLIPS: usize = 100;

/// The expected results of a leaf's scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Golden {
    /// Digest of the run.
    pub digest: String,
    /// Last value of every metric, for people who review a change.
    pub metrics: BTreeMap<String, f64>,
}

/// A leaf that was checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// `worlds/guess-average`.
    pub leaf: String,
    /// Digest of its scenario.
    pub digest: String,
    /// Its current results, for writing a new golden.
    pub golden: Golden,
    /// Guarantees that it violates; empty when it conforms.
    pub failures: Vec<String>,
}

/// Returns the leaves of a registry with their kinds.
fn leaves(registry: &Registry) -> Vec<(&'static str, &LeafInfo)> {
    registry.leaves().into_iter().flat_map(|(kind, cards)| cards.into_iter().map(move |card| (kind, card))).collect()
}

/// Returns the names of a registry's leaves, such as `worlds/opinion`, each with its folder.
#[must_use]
pub fn names(registry: &Registry) -> Vec<(String, &'static str)> {
    leaves(registry).into_iter().map(|(kind, card)| (format!("{kind}/{}", card.name), card.files.folder)).collect()
}

/// Checks a leaf by its name, such as `worlds/opinion`. Returns `None` if the registry has no such leaf. A leaf without a scenario fails.
#[must_use]
pub fn check(registry: &Registry, name: &str) -> Option<Checked> {
    let (kind, name) = name.split_once('/')?;
    let (kind, card) = leaves(registry).into_iter().find(|(of, card)| *of == kind && card.name == name)?;
    Some(check_leaf(registry, kind, card))
}

/// Checks the leaves of a registry that are not built in, and returns their violations. For the tests of a crate with leaves of its own.
/// With `POLITY_BLESS` in the environment, writes their goldens anew instead of comparing them.
#[must_use]
pub fn own_leaves(registry: &Registry) -> Vec<String> {
    let built_in = crate::registry();
    let built_in = leaves(&built_in);
    let is_built_in = |kind: &str, card: &LeafInfo, same_folder: bool| {
        built_in
            .iter()
            .any(|(k, c)| *k == kind && c.name == card.name && (c.files.folder == card.files.folder) == same_folder)
    };
    let own: Vec<_> = leaves(registry).into_iter().filter(|(kind, card)| !is_built_in(kind, card, true)).collect();
    if own.is_empty() {
        return vec!["the registry has no leaf of its own".into()];
    }
    let bless = std::env::var_os("POLITY_BLESS").is_some();
    let mut failures = Vec::new();
    for (kind, card) in own {
        let checked = check_leaf(registry, kind, card);
        if is_built_in(kind, card, false) {
            failures.push(format!("{}: Polity already has a leaf of this name; choose another", checked.leaf));
        }
        let fails = checked.failures.iter().filter(|failure| !(bless && failure.contains("golden")));
        failures.extend(fails.map(|failure| format!("{}: {failure}", checked.leaf)));
        if bless && let Err(error) = checked.write_golden(Path::new(card.files.folder)) {
            failures.push(format!("{}: golden.json cannot be written: {error}", checked.leaf));
        }
    }
    failures
}

impl Checked {
    /// Writes the golden into the leaf's folder. Writes nothing for a leaf whose scenario did not run.
    pub fn write_golden(&self, folder: &Path) -> std::io::Result<()> {
        if self.digest.is_empty() {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&self.golden).map_err(std::io::Error::other)?;
        fs::write(folder.join("golden.json"), text + "\n")
    }
}

/// The settings of one run of the suite, which must not affect its results.
#[derive(Clone, Copy)]
struct Setting {
    threads: usize,
    shards: usize,
    faults: Option<u64>,
}

const PLAIN: Setting = Setting { threads: 2, shards: 1, faults: None };

struct Suite<'a> {
    registry: &'a Registry,
    prepared: Prepared,
    failures: Vec<String>,
}

/// A finished run and the disk it is on.
struct Ran {
    disk: Arc<dyn Disk>,
    summary: Summary,
}

/// Stops a run after some rounds.
struct StopAfter(u32, Stop);

impl Watch for StopAfter {
    fn progress(&mut self, progress: &Progress) {
        if progress.rounds >= self.0 && progress.waiting.is_none() {
            self.1.ask();
        }
    }
}

const RUN: &str = "run";

impl<'a> Suite<'a> {
    fn engine(&self, disk: Arc<dyn Disk>, setting: Setting, stop: Stop) -> Engine<'a> {
        Engine {
            disk,
            shards: setting.shards,
            connections: 100,
            faults: setting.faults.map(|seed| Faults { seed, failure: 0.3, repeat: 0.3 }),
            stop,
            ..Engine::new(self.registry)
        }
    }

    /// Runs in a pool with this many threads, from which the machine takes its threads.
    fn within<T: Send>(&self, setting: Setting, work: impl FnOnce() -> T + Send) -> Result<T, String> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(setting.threads)
            .build()
            .map_err(|e| format!("no threads can be started: {e}"))?;
        Ok(pool.install(work))
    }

    fn run(&self, prepared: &Prepared, setting: Setting) -> Result<Ran, String> {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        let summary = self.within(setting, || {
            self.engine(disk.clone(), setting, Stop::default()).run(prepared, Path::new(RUN), &mut Unwatched)
        })?;
        Ok(Ran { summary: summary.map_err(|e| e.to_string())?, disk })
    }

    fn expect(&mut self, what: &str, expected: &Ran, got: Result<Ran, String>) {
        match got {
            Err(error) => self.failures.push(format!("{what}: {error}")),
            Ok(got) if got.summary.digest != expected.summary.digest => self
                .failures
                .push(format!("{what}: digest {} instead of {}", got.summary.digest, expected.summary.digest)),
            Ok(got) => match (tables(expected.disk.as_ref()), tables(got.disk.as_ref())) {
                (Ok(a), Ok(b)) if a == b => match (weights(expected.disk.as_ref()), weights(got.disk.as_ref())) {
                    (Ok(a), Ok(b)) if a == b => {}
                    (Ok(_), Ok(_)) => self.failures.push(format!("{what}: same digest, different weights")),
                    (Err(e), _) | (_, Err(e)) => self.failures.push(format!("{what}: {e}")),
                },
                (Ok(a), Ok(b)) => {
                    let differ: Vec<&String> = a.iter().filter(|(k, v)| b.get(*k) != Some(v)).map(|(k, _)| k).collect();
                    self.failures.push(format!("{what}: same digest, different tables: {differ:?}"));
                }
                (Err(e), _) | (_, Err(e)) => self.failures.push(format!("{what}: {e}")),
            },
        }
    }

    fn settings(&mut self, base: &Ran) {
        for threads in [1, 5] {
            let got = self.run(&self.prepared, Setting { threads, ..PLAIN });
            self.expect(&format!("{threads} threads"), base, got);
        }
        let got = self.run(&self.prepared, PLAIN);
        self.expect("the same again", base, got);
        for seed in 1..=3 {
            let got = self.run(&self.prepared, Setting { faults: Some(seed), ..PLAIN });
            self.expect(&format!("answers shuffled, repeated and failing (seed {seed})"), base, got);
        }
        for shards in [3, 7] {
            let got = self.run(&self.prepared, Setting { shards, ..PLAIN });
            self.expect(&format!("{shards} shards"), base, got);
        }
    }

    /// Repeats the check over shards, with enough agents that every shard has some.
    fn many(&mut self, base: &Ran) {
        let tree = &self.prepared.tree;
        if tree.get("world").is_none() {
            return;
        }
        let complete =
            tree.get("topology").and_then(|t| t.split_kind("").ok()).is_some_and(|(k, _)| k.name == "complete");
        let most = if complete || base.summary.totals.answers > 0 { MANY_COSTLY } else { MANY };
        // As many times the scenario's own number, which fills whole episodes.
        let agents = match tree.get("agents").map(|node| &node.value) {
            Some(Value::Int(own)) if (1..=most).contains(own) => most - most % own,
            _ => most,
        };
        let mut many = self.prepared.clone();
        let edits = [("agents", agents), ("rounds", 3)];
        for (key, value) in edits {
            if many.tree.edit(key, Node::built(Value::Int(value))).is_err() {
                return;
            }
        }
        let base = match self.run(&many, PLAIN) {
            Ok(base) => base,
            Err(error) => {
                self.failures.push(format!("{agents} agents: {error}"));
                return;
            }
        };
        for (shards, threads) in [(3, 1), (7, 5)] {
            let got = self.run(&many, Setting { shards, threads, faults: None });
            self.expect(&format!("{agents} agents on {shards} shards"), &base, got);
        }
        if self.can_spread(&many) {
            for (n, faults) in [(2, None), (3, Some(4))] {
                let got = self.over_processes(&many, n, Setting { faults, ..PLAIN });
                self.expect(&format!("{agents} agents on {n} processes"), &base, got);
            }
        }
    }

    /// Runs the other activations that the scenario's world allows, each over threads, shards, a replay and a stop.
    fn modes(&mut self) {
        if self.prepared.tree.get("world").is_none() || self.prepared.tree.get("activation").is_some() {
            return;
        }
        let plain = self.prepared.clone();
        for mode in ["simultaneous", "random-order", "event-time"] {
            self.prepared = plain.clone();
            if self.prepared.tree.edit("activation", Node::built(Value::Text(mode.into()))).is_err() {
                continue;
            }
            let failures = std::mem::take(&mut self.failures);
            // A mode that the world lacks is refused before anything runs; an accepted one must run.
            let engine = self.engine(Arc::new(SimDisk::default()), PLAIN, Stop::default());
            if engine.validate(&self.prepared, Extent::Whole).is_err() {
                self.failures = failures;
                continue;
            }
            let ran = self.run(&self.prepared, PLAIN);
            if let Err(error) = &ran {
                self.failures.push(error.clone());
            }
            if let Ok(base) = ran {
                for setting in [Setting { threads: 5, ..PLAIN }, Setting { shards: 3, ..PLAIN }] {
                    let got = self.run(&self.prepared, setting);
                    self.expect(&format!("{} threads, {} shards", setting.threads, setting.shards), &base, got);
                }
                self.replay(&base);
                self.resume(&base);
            }
            let found = std::mem::replace(&mut self.failures, failures);
            self.failures.extend(found.into_iter().map(|failure| format!("activation {mode}: {failure}")));
        }
        self.prepared = plain;
    }

    /// Plays a world that has prompts with simulated minds, alone and beside the policies of its scenario.
    fn minds(&mut self) {
        let plain = self.prepared.clone();
        for alone in [true, false] {
            let what = if alone { "minds alone" } else { "minds beside the scenario's policies" };
            let failures = std::mem::take(&mut self.failures);
            let mut ran = Err("its scenario has no cohorts that can be split".to_string());
            // An epidemic may die out in a small society before anybody is asked.
            for limits in [WITH_MINDS, (i64::MAX, i64::MAX)] {
                let Some(prepared) = with_minds(&plain, alone, limits) else { break };
                self.prepared = prepared;
                ran = self.run(&self.prepared, PLAIN);
                if !ran.as_ref().is_ok_and(|base| base.summary.totals.answers == 0) {
                    break;
                }
            }
            match ran {
                Ok(base) if base.summary.totals.answers == 0 => self.failures.push("no mind was asked".into()),
                Ok(base) => {
                    let got = self.run(&self.prepared, Setting { shards: 3, threads: 5, faults: Some(9) });
                    self.expect("3 shards, 5 threads and faults", &base, got);
                    let plain = self.prepared.clone();
                    if self.can_spread(&plain) {
                        let got = self.over_processes(&plain, 2, Setting { faults: Some(5), ..PLAIN });
                        self.expect("2 processes and faults", &base, got);
                    }
                    self.replay(&base);
                }
                Err(error) => self.failures.push(error),
            }
            let found = std::mem::replace(&mut self.failures, failures);
            self.failures.extend(found.into_iter().map(|failure| format!("{what}: {failure}")));
        }
        self.prepared = plain;
    }

    /// Whether the society runs on several processes. A world in one piece says so.
    fn can_spread(&mut self, prepared: &Prepared) -> bool {
        if prepared.tree.get("world").is_none() {
            return false;
        }
        match assemble(&prepared.tree, self.registry, &prepared.inputs, Layout::process(0, 2)) {
            Ok(_) => true,
            Err(error) if error.to_string().contains("in one piece") => false,
            Err(error) => {
                self.failures.push(format!("over two processes: {error}"));
                false
            }
        }
    }

    /// Runs over several processes, which are threads here. The folder that process 0 writes is that of one process.
    fn over_processes(&self, prepared: &Prepared, n: usize, setting: Setting) -> Result<Ran, String> {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        let run = |spread: Spread| -> Result<Summary, String> {
            self.within(setting, || {
                let engine = Engine { spread: Some(spread), ..self.engine(disk.clone(), setting, Stop::default()) };
                engine.run_spread(prepared, Path::new(RUN), &mut Unwatched).map_err(|error| error.to_string())
            })?
        };
        let summaries: Vec<Result<Summary, String>> = std::thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> =
                Spread::threads(n).into_iter().map(|spread| scope.spawn(move || run(spread))).collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended.map(|ended| ended.unwrap_or_else(|_| Err("a process panicked".into()))).collect()
        });
        let mut first = None;
        for summary in summaries {
            let summary = summary?;
            let digest = &first.get_or_insert_with(|| summary.clone()).digest;
            if summary.digest != *digest {
                return Err(format!("a process that helps has the digest {} instead of {digest}", summary.digest));
            }
        }
        first.map(|summary| Ran { disk, summary }).ok_or_else(|| "no process ran".to_string())
    }

    fn replay(&mut self, base: &Ran) {
        for shards in [1, 3] {
            let setting = Setting { shards, ..PLAIN };
            let engine = self.engine(base.disk.clone(), setting, Stop::default());
            match engine.replay(Path::new(RUN), &mut Unwatched) {
                Ok(summary) if summary.status == RunStatus::Same && summary.digest == base.summary.digest => {}
                Ok(summary) => self.failures.push(format!("replay: {summary:?}")),
                Err(error) => self.failures.push(format!("replay: {error}")),
            }
        }
    }

    /// Stops in the middle and resumes with other threads, shards and faults.
    fn resume(&mut self, base: &Ran) {
        let rounds = base.summary.rounds;
        let mut stops: Vec<u32> = vec![1, rounds / 2, rounds.saturating_sub(1)];
        stops.retain(|r| *r > 0 && *r < rounds);
        stops.dedup();
        for after in stops {
            for (first, second) in
                [(PLAIN, Setting { shards: 3, threads: 5, faults: Some(9) }), (Setting { shards: 3, ..PLAIN }, PLAIN)]
            {
                let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
                let what =
                    format!("stopped after {after} rounds and resumed ({} to {} shards)", first.shards, second.shards);
                let stop = Stop::default();
                let stopped = self.within(first, || {
                    self.engine(disk.clone(), first, stop.clone()).run(
                        &self.prepared,
                        Path::new(RUN),
                        &mut StopAfter(after, stop),
                    )
                });
                match stopped {
                    Ok(Ok(summary)) if summary.status == RunStatus::Stopped => {}
                    Ok(Ok(summary)) => self.failures.push(format!("{what}: it did not stop: {summary:?}")),
                    Ok(Err(error)) => self.failures.push(format!("{what}: {error}")),
                    Err(error) => self.failures.push(format!("{what}: {error}")),
                }
                let got = self
                    .within(second, || {
                        self.engine(disk.clone(), second, Stop::default()).resume(Path::new(RUN), &mut Unwatched)
                    })
                    .and_then(|r| r.map_err(|e| e.to_string()))
                    .map(|summary| Ran { disk, summary });
                self.expect(&what, base, got);
            }
        }
    }

    /// Checks that every change of a number in a state changes the digest of the state; see `docs/decisions/the-digest-covers-state.md`.
    fn mutate(&mut self, base: &Ran) {
        if self.prepared.tree.get("world").is_none() {
            return;
        }
        match self.mutations(base) {
            Ok(unnoticed) => self.failures.extend(unnoticed),
            Err(error) => self.failures.push(format!("a changed number in a snapshot: {error}")),
        }
    }

    /// Flips bits of a snapshot from the middle of the run. Each flip must be rejected on reading, or change the digest.
    fn mutations(&self, base: &Ran) -> Result<Vec<String>, String> {
        let engine = self.engine(base.disk.clone(), PLAIN, Stop::default());
        let middle = Some(base.summary.rounds / 2);
        let society = engine.society_at(Path::new(RUN), middle, &mut Unwatched).map_err(|e| e.to_string())?;
        let saved = saved(&society)?;
        let digest = society.state_digest().map_err(|e| e.to_string())?;
        let read = |bytes: &[u8]| -> Result<Option<Society>, String> {
            let Assembled::Society(mut society) = engine.assemble(&self.prepared).map_err(|e| e.to_string())? else {
                return Err("it is not a society".into());
            };
            Ok(society.restore(bytes).is_ok().then_some(*society))
        };
        let whole = read(&saved.bytes)?.ok_or("it cannot be read back")?;
        if whole.state_digest() != Ok(digest) {
            return Err("the society that was read back has another digest".into());
        }
        let mut unnoticed = Vec::new();
        for at in saved.places() {
            let mut bytes = saved.bytes.clone();
            bytes[at] ^= 1;
            if let Some(other) = read(&bytes)?
                && other.state_digest() == Ok(digest)
                && self::saved(&other)?.bytes != saved.bytes
            {
                unnoticed.push(format!(
                    "byte {at} of a snapshot ({:?}) can change without a change of the digest",
                    saved.part(at)
                ));
            }
        }
        Ok(unnoticed)
    }

    /// Checks that a fork without changes equals the run.
    fn fork(&mut self, base: &Ran) {
        let at = base.summary.rounds / 2;
        let engine = self.engine(base.disk.clone(), PLAIN, Stop::default());
        match engine.fork(Path::new(RUN), at, Vec::new(), Vec::new(), Path::new("fork"), &mut Unwatched) {
            Ok(summary) if summary.digest == base.summary.digest => {}
            Ok(summary) => self.failures.push(format!("a fork without changes: {summary:?}")),
            Err(error) => self.failures.push(format!("a fork without changes: {error}")),
        }
    }
}

/// Returns a smaller society of the same world in which minds replace the agents of each cohort, or half of them.
fn with_minds(prepared: &Prepared, alone: bool, limits: (i64, i64)) -> Option<Prepared> {
    let mut prepared = prepared.clone();
    for (key, most) in [("agents", limits.0), ("rounds", limits.1)] {
        if let Value::Int(value) = prepared.tree.get(key)?.value
            && value > most
        {
            prepared.tree.edit(key, Node::built(Value::Int(most))).ok()?;
        }
    }
    // Metrics of the scenario may be of its policies.
    prepared.tree.edit("metrics", Node::built(Value::List(Vec::new()))).ok()?;
    let mind = json!({"kind": "mind", "model": "sim/medium", "memory": {"tokens": 0}});
    let source = prepared.tree.get("cohorts")?.to_json();
    let mut cohorts = Vec::new();
    for cohort in source.as_array()? {
        let mut minds = cohort.clone();
        minds["policy"] = mind.clone();
        if alone {
            cohorts.push(minds);
            continue;
        }
        let mut rules = cohort.clone();
        if let Some(name) = cohort.get("name").and_then(Json::as_str) {
            minds["name"] = json!(format!("{name}-minds"));
        }
        let counted = ["count", "seats"].into_iter().find_map(|key| Some((key, cohort.get(key)?.as_i64()?)));
        if let Some((key, count)) = counted {
            (rules[key], minds[key]) = (json!(count - count / 2), json!(count / 2));
        } else {
            let share = cohort.get("share").and_then(Json::as_f64).unwrap_or(1.0);
            (rules["share"], minds["share"]) = (json!(share / 2.0), json!(share / 2.0));
        }
        let is_one = counted.is_some_and(|(_, count)| count == 1);
        cohorts.extend(if is_one { vec![rules] } else { vec![rules, minds] });
    }
    prepared.tree.edit("cohorts", Node::from_json(&Json::Array(cohorts))).ok()?;
    Some(prepared)
}

/// A saved society, and where its parts begin.
#[derive(Default)]
struct Saved {
    bytes: Vec<u8>,
    parts: Vec<(Part, usize)>,
}

impl Sink for Saved {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes.take(bytes);
    }

    fn begin(&mut self, part: Part, at: u64) {
        self.parts.push((part, at as usize));
    }
}

impl Saved {
    /// Returns the part that a byte belongs to.
    fn part(&self, at: usize) -> Part {
        self.parts[self.parts.partition_point(|(_, begin)| *begin <= at) - 1].0
    }

    /// Returns positions of bytes of states, up to [`FLIPS`] for each kind of state, evenly spread.
    fn places(&self) -> Vec<usize> {
        let mut places = Vec::new();
        for kind in [Part::World, Part::Agents, Part::Rows] {
            let of_kind: Vec<usize> = (0..self.bytes.len()).filter(|at| self.part(*at) == kind).collect();
            places.extend(of_kind.iter().step_by(of_kind.len().div_ceil(FLIPS).max(1)));
        }
        places
    }
}

fn saved(society: &Society) -> Result<Saved, String> {
    let mut saved = Saved::default();
    society.save(&mut saved).map_err(|e| e.to_string())?;
    Ok(saved)
}

/// Returns the columns of all tables but the volatile ones, by `table.column`.
fn tables(disk: &dyn Disk) -> Result<BTreeMap<String, ColumnData>, String> {
    let tables = results::open(disk, Path::new(RUN)).map_err(|e| e.to_string())?;
    let mut all = BTreeMap::new();
    for table in tables.names() {
        for (name, data) in tables.stable(&table).map_err(|e| e.to_string())? {
            all.insert(format!("{table}.{name}"), data);
        }
    }
    Ok(all)
}

/// The files of weights that a run has written.
fn weights(disk: &dyn Disk) -> Result<Vec<(String, Vec<u8>)>, String> {
    let folder = Path::new(RUN).join("weights");
    let read = || {
        if !disk.exists(&folder)? {
            return Ok(Vec::new());
        }
        disk.list(&folder)?.into_iter().map(|name| Ok((name.clone(), disk.read(&folder.join(name))?))).collect()
    };
    read().map_err(|error: std::io::Error| error.to_string())
}

fn last_metrics(disk: &dyn Disk) -> Result<BTreeMap<String, f64>, String> {
    let tables = results::open(disk, Path::new(RUN)).map_err(|e| e.to_string())?;
    let metrics = tables.metrics().map_err(|e| e.to_string())?;
    Ok(metrics.into_iter().filter_map(|(name, values)| Some((name, values.last()?.1))).collect())
}

fn check_leaf(registry: &Registry, kind: &str, card: &LeafInfo) -> Checked {
    let leaf = format!("{kind}/{}", card.name);
    let nothing = Golden { digest: String::new(), metrics: BTreeMap::new() };
    let failed = |why: String| Checked {
        leaf: leaf.clone(),
        digest: String::new(),
        golden: nothing.clone(),
        failures: vec![why],
    };
    if card.files.scenario.is_empty() {
        return failed("it has no scenario.yaml".into());
    }
    let tree = match yaml::parse(card.files.scenario) {
        Ok(tree) => tree,
        Err(error) => return failed(format!("scenario.yaml: {error}")),
    };
    // Snapshots at every other round, so that a resumed run starts from one and also recomputes a round.
    let snapshots = json!({ "rounds": 2, "seconds": 1e9 });
    let edits = vec![("snapshot".to_string(), Node::from_json(&snapshots))];
    let prepared = match prepare(tree, "scenario.yaml", Path::new(card.files.folder), card.name, edits) {
        Ok(prepared) => prepared,
        Err(error) => return failed(format!("scenario.yaml: {error}")),
    };
    let mut suite = Suite { registry, prepared, failures: Vec::new() };
    // The names of columns are checked where tables are made.
    let facts = registry.facts(card.name).filter(|_| kind == "methods");
    let taken = facts.iter().flat_map(|facts| facts.quantities).filter(|own| QUANTITIES.contains(&own.name));
    suite.failures.extend(
        taken.map(|own| format!("its quantity `{}` has the name of one that is measured for every method", own.name)),
    );
    let base = match suite.run(&suite.prepared, PLAIN) {
        Ok(base) => base,
        Err(error) => return failed(error),
    };
    suite.settings(&base);
    suite.many(&base);
    suite.replay(&base);
    suite.resume(&base);
    suite.fork(&base);
    suite.mutate(&base);
    suite.modes();
    if ["worlds", "environments"].contains(&kind) && !card.files.prompts.is_empty() {
        suite.minds();
    }
    let metrics = match last_metrics(base.disk.as_ref()) {
        Ok(metrics) => metrics,
        Err(why) => {
            suite.failures.push(format!("its metrics cannot be read: {why}"));
            BTreeMap::new()
        }
    };
    let golden = Golden { digest: base.summary.digest.clone(), metrics };
    match serde_json::from_str::<Golden>(card.files.golden) {
        Ok(expected) if expected == golden => {}
        Ok(expected) => suite.failures.push(format!(
            "golden: {golden:?} instead of {expected:?}; if the change is meant, run the test with POLITY_BLESS=1 and read the difference"
        )),
        Err(_) if card.files.golden.is_empty() => suite.failures.push("it has no golden.json".into()),
        Err(error) => suite.failures.push(format!("golden.json cannot be read: {error}")),
    }
    Checked { leaf, digest: base.summary.digest, golden, failures: suite.failures }
}
