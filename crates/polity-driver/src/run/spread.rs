//! A run over several processes: process 0 leads and writes the run folder, the others help.

use super::claim;
use super::engine::{Engine, summarised};
use super::journal_summary::read_journal;
use super::manifest::{Build, Manifest};
use super::prepare::Prepared;
use super::summary::Summary;
use crate::budget::Gate;
use crate::drive::{Drive, Driven, Ending, GRACE, Past, Watch, append, append_answers};
use crate::recorder::Recorder;
use crate::source::{Declared, Outside};
use crate::spread::{Logged, Others, Spread, Start};
use polity_kernel::BLOCK;
use polity_kernel::ask::EffectId;
use polity_kernel::digest::FileHash;
use polity_kernel::event::Event;
use polity_kernel::journal::FormatError;
use polity_kernel::layout::Layout;
use polity_kernel::machine::{Machine, Outcome};
use polity_kernel::scenario::{Assembled, Budget, MemoryBudget, Scenario, assemble_within};
use polity_peers::Peers;
use polity_store::DriveError;
use polity_store::disk::create_dir_durably;
use polity_store::journal::{Journal, JournalError, JournalReader, JournalWriter};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// The folder in a run folder with the logs of the processes that helped.
const PEERS: &str = "peers";
/// The log in the folder of one of them.
const JOURNAL: &str = "journal";

impl Prepared {
    /// What the processes of a run must agree about: the scenario and the contents of its files.
    pub(super) fn digest(&self) -> String {
        let mut hash = FileHash::default();
        hash.take(self.tree.to_json().to_string().as_bytes());
        for file in &self.files {
            hash.take(file.entry.path.as_bytes());
            hash.take(file.entry.digest.as_bytes());
        }
        hash.digest().to_string()
    }
}

/// Processor time of a message that stays in its process, and what one that crosses adds to it, in nanoseconds; measured by
/// `scripts/spread.sh bench`.
const MESSAGE_NS: f64 = 78.0;
const CROSSING_NS: f64 = 36.0;

/// What a society over several processes would need and gain.
#[derive(Clone, Debug, Serialize)]
pub struct SpreadForecast {
    /// Number of processes.
    pub processes: usize,
    /// The share of ties between agents of different processes; `None` without ties.
    pub crossing: Option<f64>,
    /// Estimated memory of a run in one process, and of each of several, in MB (10^6 bytes).
    pub memory_mb: (f64, f64),
    /// How many times faster the rounds are than on one core, at least, if each process has one; `None` if models are asked, which
    /// decide on the time.
    pub gain: Option<f64>,
    /// What to do, in words.
    pub advice: String,
}

/// How long process 0 of a run that has ended waits for the others, to tell them.
const DISMISSAL: Duration = Duration::from_secs(5);

/// Describes the program itself, so that processes of different builds find out before they compute different things.
fn build() -> String {
    let Build { version, target } = Build::this();
    let program = std::env::current_exe().and_then(std::fs::read).map(|bytes| FileHash::of(&bytes).to_string());
    format!("polity {version} {target} {}", program.unwrap_or_default())
}

impl Engine<'_> {
    /// Runs a scenario together with the other processes of [`Engine::spread`], which are started with the same scenario and folder.
    /// Process 0 leads: it begins the run, or goes on with it, and writes its folder. The others compute their agents and ask their
    /// models. If any process is lost, all end with [`DriveError::Peers`]; started again, in any number, they go on.
    ///
    /// # Errors
    /// Those of [`Engine::run_or_resume`], a scenario that cannot be spread, and processes that are lost.
    pub fn run_spread(&self, prepared: &Prepared, out: &Path, watch: &mut dyn Watch) -> Result<Summary, DriveError> {
        let Some(spread) = &self.spread else { return self.run_or_resume(prepared, out, watch) };
        let scenario = Scenario::read(&prepared.tree)?;
        if scenario.world.is_none() {
            return Err(DriveError::Input("an evaluation runs in one process: only societies have parts".into()));
        }
        let n = spread.layout().count();
        let share = |flag: &str, limit: Option<u32>| match limit {
            Some(limit) if (limit as usize) < n => Err(DriveError::Input(format!(
                "{flag} {limit}: the {n} processes divide this limit, and each needs at least 1; start at most {limit}, or raise the \
                 limit if the provider allows it"
            ))),
            limit => Ok(limit.map(|limit| limit / n as u32)),
        };
        let Declared { requests_per_minute, tokens_per_minute } = self.outside.declared;
        let declared = Declared {
            requests_per_minute: share("--requests-per-minute", requests_per_minute)?,
            tokens_per_minute: share("--tokens-per-minute", tokens_per_minute)?,
        };
        let engine = Engine {
            connections: (self.connections / n).max(1),
            outside: Outside { declared, ..self.outside.clone() },
            ..self.clone()
        };
        if spread.index() > 0 {
            return engine.help(spread, prepared, out, watch);
        }
        let manifest = out.join("manifest.json");
        let begun = self.disk.exists(&manifest).map_err(DriveError::disk(&manifest))?;
        let ended = if begun { self.ended(out)? } else { None };
        let summary = engine.run_or_resume(prepared, out, watch)?;
        if let Some((outcome, _)) = ended {
            // The others may not have been started again. If they have, they need not wait.
            drop(engine.dismiss(spread, prepared, outcome));
        }
        Ok(summary)
    }

    /// Tells the other processes that the run has ended.
    fn dismiss(&self, spread: &Spread, prepared: &Prepared, outcome: Outcome) -> Result<(), DriveError> {
        let spread = spread.clone().waiting(DISMISSAL, Spread::SILENCE);
        let mut peers = self.join(&spread, &prepared.digest())?;
        let mut go_on = || self.stop.may_wait();
        Others::ask_all(&mut peers, &mut go_on)?;
        let start = Start { ended: Some(outcome), ..Start::default() };
        Others::lead(peers, &start, &mut go_on).map(drop)
    }

    /// Estimates what the society of a scenario would need and gain over `n` processes.
    ///
    /// # Errors
    /// A scenario that is wrong, that is no society, or whose world cannot be spread.
    pub fn forecast_spread(&self, prepared: &Prepared, n: usize) -> Result<SpreadForecast, DriveError> {
        let Prepared { tree, inputs, .. } = prepared;
        let memory_of = |layout: Layout| -> Result<(f64, Assembled), DriveError> {
            let mut memory = MemoryBudget::unlimited();
            let machine = assemble_within(tree, self.registry, inputs, layout, &mut memory)?;
            Ok((memory.reserved() as f64 / 1e6, machine))
        };
        let (each, part) = memory_of(Layout::process(0, n))?;
        drop(part);
        let (alone, machine) = memory_of(Layout::default())?;
        let Some(society) = machine.society() else {
            return Err(DriveError::Input("an evaluation runs in one process: only societies have parts".into()));
        };
        let topology = &society.shared_context().topology;
        let (agents, layout) = (topology.n(), Layout::process(0, n));
        let inner: u64 = (0..n)
            .map(|process| {
                let ids = layout.agents(process, agents);
                ids.clone().map(|agent| topology.neighbours_in(agent, ids.clone()).count() as u64).sum::<u64>()
            })
            .sum();
        let crossing = (topology.arcs() > 0).then(|| 1.0 - inner as f64 / topology.arcs() as f64);
        let gain = machine.models().is_empty().then(|| {
            let crossing = crossing.unwrap_or(0.0);
            n as f64 / (1.0 + crossing * CROSSING_NS / MESSAGE_NS)
        });
        let saves = each < 0.8 * alone;
        let advice = match gain {
            None => {
                "models answer outside, so more processes save no time: spread it only to survive the loss of a machine"
                    .into()
            }
            Some(_) if agents as usize <= BLOCK * n => {
                format!("too few agents: processes get whole blocks of {BLOCK}, so run it in one")
            }
            Some(gain) if gain < 0.75 * n as f64 && saves => {
                "many messages cross: spread it only for memory; with threads one process is faster".into()
            }
            Some(gain) if gain < 0.75 * n as f64 => "many messages cross: run it in one process, with threads".into(),
            Some(_) => "messages that cross cost little: spread it if one machine has no more cores".into(),
        };
        Ok(SpreadForecast { processes: n, crossing, memory_mb: (alone, each), gain, advice })
    }

    fn join(&self, spread: &Spread, run: &str) -> Result<Peers, DriveError> {
        spread.join(&build(), run, |note| self.outside.notes.tell(note))
    }

    /// Meets the processes that help, and tells them where to go on from: the saved state, and what is recorded. What only they have
    /// recorded is added to the journal. `begins`: whether the run has just begun.
    #[expect(clippy::too_many_arguments, reason = "the parts of a run that the others have a part in")]
    pub(super) fn lead(
        &self,
        spread: &Spread,
        run: &str,
        out: &Path,
        state: Option<Vec<u8>>,
        begins: bool,
        budget: &Budget,
        journal: &Journal,
        past: &mut Past,
        recorder: &mut Recorder,
    ) -> Result<Others, DriveError> {
        let mut peers = self.join(spread, run)?;
        let mut go_on = || self.stop.may_wait();
        let logs = Others::ask_all(&mut peers, &mut go_on)?;
        // At the beginning, logs are of an older run in the same folder.
        if !begins {
            self.adopt(logs, out, journal, past, recorder)?;
        }
        let start = Start { state, begins, budget: budget.clone(), logged: Logged::of(past), ended: None };
        Others::lead(peers, &start, &mut go_on)
    }

    /// Adds to the journal what other processes have logged and process 0 was not told: in `told`, and in the logs that lie in the run
    /// folder, also of processes that are not started again. Then these logs are not needed any more.
    pub(super) fn adopt(
        &self,
        told: Vec<Logged>,
        out: &Path,
        journal: &Journal,
        past: &mut Past,
        recorder: &mut Recorder,
    ) -> Result<(), DriveError> {
        let (names, mut logs) = self.logs(out)?;
        // On one disk, both have read the same logs.
        let elsewhere: Vec<Logged> = told.into_iter().filter(|log| !logs.contains(log)).collect();
        logs.extend(elsewhere);
        for Logged { answers, broken, waves, waved } in logs {
            let new: Vec<_> = answers.into_iter().filter(|answer| !past.answers.contains_key(&answer.id)).collect();
            let new = append_answers(journal, new)?;
            recorder.heard(&new);
            past.answers.extend(new.into_iter().map(|answer| (answer.id, answer)));
            for (id, charged) in broken {
                append(journal, &Event::Broke { id, charged })?;
                past.broke(id, charged);
            }
            let waves: Vec<EffectId> = waves.difference(&past.waves).copied().collect();
            if !waves.is_empty() {
                append(journal, &Event::Wave(waves.clone()))?;
            }
            past.waves.extend(waves);
            past.waved.extend(waved);
        }
        journal.commit()?;
        names.iter().try_for_each(|name| self.clear(&out.join(PEERS).join(name)))
    }

    /// Computes the agents of this process until the run ends.
    fn help(
        &self,
        spread: &Spread,
        prepared: &Prepared,
        out: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Summary, DriveError> {
        let began = Instant::now();
        let scenario = Scenario::read(&prepared.tree)?;
        let prepared = &*self.with_listed(prepared, &scenario)?;
        let engine = self.with_models_of(prepared, &scenario, Some(out))?;
        let mut machine = self.assemble_part(prepared)?;
        let asked = engine.check_models_of(&machine, &scenario)?;
        let capabilities = engine.capabilities(&asked.models);
        let manifest = Manifest::new(prepared, &scenario, &machine, asked, capabilities, None);
        let own = spread.index().to_string();
        let dir = out.join(PEERS).join(&own);
        let (names, logs) = self.logs(out)?;
        let peers = engine.join(spread, &prepared.digest())?;
        let mut go_on = || self.stop.may_wait();
        let (mut others, Start { state, begins: _, budget, logged, ended }) = Others::follow(peers, &logs, &mut go_on)?;
        if let Some(outcome) = ended {
            let driven = Driven {
                ending: Ending::Done(outcome),
                totals: Default::default(),
                first_difference: None,
                chain: None,
                commits: 0,
                round_ms: Vec::new(),
                parts: Default::default(),
            };
            return Ok(summarised(driven, out, (machine.agents(), 0), &manifest, Vec::new(), began));
        }
        if let Some(state) = state {
            machine.restore(&state).map_err(|bug| DriveError::Bug { seed: scenario.seed, bug })?;
        }
        if self.budget != Budget::default() && scenario.budget.with(&self.budget) != budget {
            return Err(DriveError::Input(
                "process 0 was started with another budget; start all processes with the same command".into(),
            ));
        }
        // Process 0 has made the run folder by now, if both see the same disk.
        let _lock = claim::claim(self.disk.as_ref(), &dir, &|_, _| true, &|| Ok(()))?;
        // Process 0 has recorded what these logs held. It has cleared those on its own disk; the log of a process that has been started
        // again is its own affair.
        let is_running = |name: &String| name.parse::<usize>().is_ok_and(|index| index < spread.layout().count());
        for name in names.iter().filter(|name| **name == own || !is_running(name)) {
            self.clear(&out.join(PEERS).join(name))?;
        }
        let journal_dir = dir.join(JOURNAL);
        create_dir_durably(self.disk.as_ref(), &journal_dir).map_err(DriveError::disk(&journal_dir))?;
        let log = Journal::from(JournalWriter::create(self.disk.clone(), &journal_dir)?);
        others.log = Some(log.clone());
        let past = logged.into_past();
        let (mut source, prices) = engine.asking(&scenario, &manifest, &machine, &dir, &log, past.in_doubt())?;
        engine.check_prices(&machine, &budget, &prices)?;
        let gate = Gate::new(&budget, &machine, engine.providers.clone(), prices, &past);
        let agents = machine.agents();
        let drive = Drive {
            machine: &mut machine,
            past,
            source: &mut source,
            gate: Some(gate).filter(Gate::bounded),
            orders: None,
            deadline: budget.seconds.map(|seconds| began + Duration::from_secs_f64(seconds)),
            grace: self.outside.grace.unwrap_or(GRACE),
            stopping_since: None,
            told: Instant::now(),
            writing: None,
            others: Some(others),
            saves: scenario.snapshot.rounds,
            seed: scenario.seed,
            planned: scenario.rounds,
            stop: self.stop.clone(),
            watch,
            tolerate: false,
            strict: false,
        };
        let driven = drive.run()?;
        log.close()?;
        Ok(summarised(driven, out, (agents, machine.next_round()), &manifest, Vec::new(), began))
    }

    /// Reads the logs of processes that helped, as far as they lie in a run folder on this disk. Returns their names, and what they hold.
    fn logs(&self, out: &Path) -> Result<(Vec<String>, Vec<Logged>), DriveError> {
        let dir = out.join(PEERS);
        let mut names = Vec::new();
        let mut logs = Vec::new();
        if self.disk.exists(&dir).map_err(DriveError::disk(&dir))? {
            names = self.disk.list(&dir).map_err(DriveError::disk(&dir))?;
            names.sort();
        }
        for name in &names {
            let journal = dir.join(name).join(JOURNAL);
            if !self.disk.exists(&journal).map_err(DriveError::disk(&journal))? {
                continue;
            }
            let reader = JournalReader::open(self.disk.as_ref(), &journal).map_err(DriveError::from);
            match reader.and_then(|mut reader| read_journal(&mut reader)) {
                Ok(summary) => logs.push(Logged::of(&summary.past)),
                Err(DriveError::Journal(JournalError::Format { source: FormatError::NeverStarted, .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((names, logs))
    }

    /// Removes the log of a process that helped.
    fn clear(&self, dir: &Path) -> Result<(), DriveError> {
        let journal = dir.join(JOURNAL);
        if !self.disk.exists(&journal).map_err(DriveError::disk(&journal))? {
            return Ok(());
        }
        // The newest segments first: if this is interrupted, the rest can be read.
        for name in self.disk.list(&journal).map_err(DriveError::disk(&journal))?.iter().rev() {
            let file = journal.join(name);
            self.disk.remove_file(&file).map_err(DriveError::disk(&file))?;
        }
        Ok(())
    }
}
