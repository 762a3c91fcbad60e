//! Runs: beginning, resuming, replaying and forking them.

mod calls;
mod claim;
mod derived;
mod estimate;
mod folder;
mod interview;
mod inventory;
mod manifest;
mod prepare;
mod whole;

pub use calls::{Shown, Texts, Wanted, calls};
pub use claim::claim_shared;
pub(crate) use claim::{LOCK, claim, irregular, is_marked, lock, only_regular};
pub use estimate::{Basis, COVERAGE, Forecast};
pub use folder::Folder;
pub(crate) use folder::{inventory, manifest_file};
pub use interview::Interviewed;
pub(crate) use inventory::Inventory;
pub use manifest::{Build, InputEntry, Manifest, Origin};
pub(crate) use prepare::within;
pub use prepare::{Planned, Prepared, SetKey, prepare};
pub(crate) use whole::Whole;

use crate::DriveError;
use crate::budget::Gate;
use crate::control::Control;
use crate::disk::Disk;
use crate::drive::{
    Drive, Driven, Ending, GRACE, Orders, Past, Stop, TIME_UP, Totals, Watch, Writing, append, append_answers, ledger,
};
use crate::health::{Alarm, alarms};
use crate::journal::{End, Journal, JournalReader, JournalWriter};
use crate::memory;
use crate::models::prices::{self, Prices};
use crate::models::{Capabilities, Providers};
use crate::people::Mailbox;
use crate::recorder::Recorder;
use crate::snapshots::Snapshots;
use crate::source::{Batches, Faults, Ledger, Live, Nowhere, Outside, Ranks, Simulated, Source, WithPeople};
use crate::tables::{Reader, settle};
use crate::traces::{Trace, Traced};
use polity_kernel::ask::{Answer, Asker, Effect, EffectId, Usage};
use polity_kernel::event::{Event, Order, Sent};
use polity_kernel::machine::{Machine, Outcome};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Assembled, Budget, Check, Limits, MemoryBudget, Scenario, assemble_within, checks};
use polity_kernel::transport::InMemory;
use polity_kernel::tree::{Node, TreeError, Value};
use polity_kernel::world::Activation;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// What every verb needs.
pub struct Engine<'a> {
    /// The leaves.
    pub registry: &'a Registry,
    /// The models.
    pub providers: Arc<Providers>,
    /// The disk that holds run folders.
    pub disk: Arc<dyn Disk>,
    /// Shards of a society.
    pub shards: usize,
    /// Calls in flight at most.
    pub connections: usize,
    /// Memory that a run may take, in MB (10^6 bytes); `None`: as much as there is. One whose estimate is greater does not begin.
    pub memory: Option<u64>,
    /// Limits in place of the scenario's.
    pub budget: Budget,
    /// How providers are asked.
    pub outside: Outside,
    /// A misbehaving driver instead of a live one, for tests.
    pub faults: Option<Faults>,
    /// What a person asks for.
    pub stop: Stop,
}

/// How a run, a sweep or a check of systems ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// It ran to its end.
    Done,
    /// Somebody stopped it; it can be resumed.
    Stopped,
    /// A limit stopped it; it can be resumed with a higher one.
    Budget,
    /// A replay came to the recorded digest.
    Same,
    /// A replay came to another digest.
    Different,
    /// Only its design was wanted.
    #[serde(rename = "not run")]
    NotRun,
}

impl RunStatus {
    /// Its name, in the output of commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Done => "done",
            RunStatus::Stopped => "stopped",
            RunStatus::Budget => "budget",
            RunStatus::Same => "same",
            RunStatus::Different => "different",
            RunStatus::NotRun => "not run",
        }
    }
}

impl std::fmt::Display for RunStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What a run came to: the last line of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// How it ended.
    pub status: RunStatus,
    /// The run folder.
    pub run: String,
    /// Digest of the run; of the rounds so far when it was stopped, empty if this process completed none.
    pub digest: String,
    /// Agents at the start (members of the team in an evaluation).
    pub agents: u32,
    /// Rounds completed.
    pub rounds: u32,
    /// Seconds this process took.
    pub wall_seconds: f64,
    /// What the answers of the run came to, whichever process asked for them.
    #[serde(flatten)]
    pub totals: Totals,
    /// Whether answers came from simulated models.
    pub simulated: bool,
    /// Commits of the journal in this process.
    pub commits: u64,
    /// In a replay: the first round that differs from the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<Option<u32>>,
    /// Why the run ended before the planned number of rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Signs that the run shows nothing; of the rounds that are in its tables.
    pub health: Vec<Alarm>,
    /// Median milliseconds a round.
    pub round_ms: f64,
    /// The most memory this process held so far, in MB (10^6 bytes); 0 where the system does not tell.
    pub peak_memory_mb: f64,
}

/// Linux tells in `/proc`; other systems would need unsafe calls.
fn peak_memory_mb() -> f64 {
    memory::entry_mb("/proc/self/status", "VmHWM:").unwrap_or(0.0)
}

fn checks_of(scenario: &Scenario, prepared: &Prepared, machine: &Assembled) -> Result<Vec<Check>, TreeError> {
    match machine {
        Assembled::Society(society) => checks(scenario, &prepared.inputs, society),
        Assembled::Evaluation(_) => Ok(Vec::new()),
    }
}

fn activation_of(machine: &Assembled) -> Option<Activation> {
    match machine {
        Assembled::Society(society) => Some(society.activation()),
        Assembled::Evaluation(_) => None,
    }
}

fn agents_of(machine: &Assembled) -> u32 {
    match machine {
        Assembled::Society(society) => society.born(),
        Assembled::Evaluation(evaluation) => evaluation.team().len() as u32,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// What a journal says of a run.
#[derive(Debug, Default)]
struct Story {
    past: Past,
    /// What its folder must hold.
    inventory: Inventory,
    /// Why it stopped, if its budget was used up and it has not gone on since.
    exhausted: Option<String>,
    /// Limits that were set while it was under way.
    set: Limits,
    /// Requests that were in flight when the process was killed. They are among those of [`Past::broken`], and in no record yet.
    in_flight: Vec<(EffectId, Usage)>,
}

pub(crate) fn unreadable(why: String) -> DriveError {
    DriveError::Differs(format!("a journal record can not be read ({why}); it was written by another build"))
}

fn tell(reader: &mut JournalReader<'_>) -> Result<Story, DriveError> {
    let mut story = Story::default();
    let mut in_flight = BTreeMap::new();
    while let Some(segment) = reader.next_segment()? {
        for record in segment.records() {
            let event = Event::decode(record.kind, record.payload).map_err(unreadable)?;
            story.inventory.take(&event);
            match event {
                Event::Answers(answers) => {
                    for answer in &answers {
                        in_flight.remove(&answer.id);
                    }
                    story.past.answers.extend(answers.into_iter().map(|answer| (answer.id, answer)));
                }
                Event::Round { round, sum, chain } => {
                    story.past.rounds.insert(round, (sum, chain));
                }
                Event::Stopped { .. } => story.exhausted = None,
                Event::Wave(ids) => {
                    story.past.waved.extend(ids.iter().map(|id| id.round));
                    story.past.waves.extend(ids);
                }
                Event::Sent(sent) => in_flight.extend(sent.into_iter().map(|Sent { id, most }| (id, most))),
                Event::Broke { id, charged } => {
                    in_flight.remove(&id);
                    story.past.broke(id, charged);
                }
                Event::Form { .. } => {}
                Event::Exhausted { reason } => story.exhausted = Some(reason),
                Event::Ordered { order: Order::Set { limits, .. }, .. } => story.set = story.set.with(&limits),
                Event::Ordered { .. }
                | Event::Manifest(_)
                | Event::Snapshot { .. }
                | Event::Ended { .. }
                | Event::Rewound { .. } => {}
            }
        }
    }
    in_flight.iter().for_each(|(id, most)| story.past.broke(*id, Some(*most)));
    story.in_flight = in_flight.into_iter().collect();
    story.inventory.end = reader.end();
    Ok(story)
}

/// What is known of a scenario's runs before they begin.
pub(crate) struct Survey {
    /// Agents at the start.
    pub agents: u32,
    /// Bytes of memory that a run takes, by estimate.
    pub memory: u64,
    /// The models it asks.
    pub models: Vec<String>,
    /// Whether some of them are simulated.
    pub simulated: bool,
}

/// The models that a run asks.
pub(crate) struct Asked {
    /// Their names.
    pub models: Vec<String>,
    /// Whether some of them are simulated.
    pub simulated: bool,
    /// What they cost, as far as it is known.
    pub prices: Prices,
    /// Whether they are asked in batches, where there are any.
    pub batch: bool,
}

/// What a run folder holds of its run.
struct Recorded {
    /// The text of the manifest's file.
    file: String,
    manifest: Manifest,
    prepared: Prepared,
    story: Story,
    end: End,
}

/// The priorities of agents by their cohorts; those born later have none.
fn ranks(scenario: &Scenario, machine: &Assembled) -> Option<Ranks> {
    let cohorts = scenario.cohorts.as_ref().filter(|cohorts| cohorts.iter().any(|cohort| cohort.priority != 0))?;
    let Assembled::Society(society) = machine else { return None };
    let rank = |cohort: u16| cohorts.get(usize::from(cohort)).map_or(0, |cohort| cohort.priority);
    let ranks: Vec<i32> = society.cohort_of_each().into_iter().map(rank).collect();
    Some(Arc::new(move |effect| ranks.get(effect.id.actor as usize).copied().unwrap_or(0)))
}

impl Engine<'_> {
    /// Reads a run back, and checks that its parts belong together.
    fn recorded(&self, folder: &Folder) -> Result<Recorded, DriveError> {
        let file = manifest_file(self.disk.as_ref(), folder.path())?;
        let mut reader = JournalReader::open(self.disk.as_ref(), &folder.journal())?;
        let story = tell(&mut reader)?;
        let Some(end) = reader.end() else {
            return Err(DriveError::Folder(format!("{} has no end", folder.journal().display())));
        };
        let manifest = story.inventory.verified(folder.path(), &file)?;
        let prepared = folder.prepared(&manifest)?;
        Ok(Recorded { file, manifest, prepared, story, end })
    }

    /// The machine that a scenario describes, at its start.
    pub fn assemble(&self, prepared: &Prepared) -> Result<Assembled, TreeError> {
        self.assemble_within(prepared, &mut self.memory_budget())
    }

    /// What there is for a run.
    fn memory_budget(&self) -> MemoryBudget {
        MemoryBudget::of(self.memory.map(|mb| mb.saturating_mul(1_000_000)).or_else(memory::available))
    }

    fn assemble_within(&self, prepared: &Prepared, memory: &mut MemoryBudget) -> Result<Assembled, TreeError> {
        let Prepared { tree, inputs, .. } = prepared;
        assemble_within(tree, self.registry, inputs, self.shards, Box::new(InMemory::default()), memory)
    }

    /// Bytes of memory that a run of a scenario takes, by estimate.
    pub(crate) fn memory_of(&self, prepared: &Prepared) -> Result<u64, TreeError> {
        let mut memory = MemoryBudget::unlimited();
        self.assemble_within(prepared, &mut memory)?;
        Ok(memory.reserved())
    }

    /// Checks a scenario without running it.
    pub fn validate(&self, prepared: &Prepared) -> Result<(), DriveError> {
        self.survey(prepared).map(|_| ())
    }

    /// What a scenario's first turns ask, without asking it.
    pub fn first_questions(&self, prepared: &Prepared) -> Result<Vec<Effect>, DriveError> {
        let seed = Scenario::read(&prepared.tree)?.seed;
        let bug = |bug| DriveError::Bug { seed, bug };
        let mut machine = self.assemble(prepared)?;
        let mut poll = |answers: Vec<Answer>| match &mut machine {
            Assembled::Society(society) => society.poll(answers),
            Assembled::Evaluation(evaluation) => evaluation.poll(answers),
        };
        let asked = poll(Vec::new()).map_err(bug)?.start;
        if asked.is_empty() || !asked.iter().all(|effect| effect.id.asker == Asker::World) {
            return Ok(asked);
        }
        // The world asks first; here it gets no answer.
        let unasked = |effect: Effect| Answer {
            id: effect.id,
            request: effect.request,
            outcome: polity_kernel::ask::Outcome::Denied { why: "nobody is asked here".into() },
            usage: Usage::default(),
        };
        Ok(poll(asked.into_iter().map(unasked).collect()).map_err(bug)?.start)
    }

    /// Checks a scenario without running it, and says what is known of its runs.
    pub(crate) fn survey(&self, prepared: &Prepared) -> Result<Survey, DriveError> {
        let mut memory = self.memory_budget();
        let machine = self.assemble_within(prepared, &mut memory)?;
        let scenario = Scenario::read(&prepared.tree)?;
        let Asked { models, simulated, .. } = self.check_models(&machine, &scenario)?;
        Ok(Survey { agents: agents_of(&machine), memory: memory.reserved(), models, simulated })
    }

    /// How a recorded run ended, and what its answers came to; `None` while there is anything left to do.
    pub(crate) fn ended(&self, dir: &Path) -> Result<Option<(Outcome, Totals)>, DriveError> {
        let Recorded { story, .. } = self.recorded(&Folder::read(self.disk.clone(), dir)?)?;
        // One that was killed at its very end has still to be closed.
        let ended = story.inventory.closed().then(|| story.inventory.ended.clone()).flatten();
        Ok(ended.map(|outcome| (outcome, story.past.totals())))
    }

    fn check_models(&self, machine: &Assembled, scenario: &Scenario) -> Result<Asked, DriveError> {
        let models = machine.models();
        let mut simulated = false;
        for model in &models {
            let provider = self.providers.for_model(model).map_err(DriveError::Model)?;
            provider.check(model).map_err(DriveError::Model)?;
            simulated |= provider.simulated();
            if provider.tells_costs() && scenario.prices.contains_key(model) {
                return Err(DriveError::Model(format!(
                    "`prices` names `{model}`, whose provider tells itself what calls cost; take it out"
                )));
            }
        }
        for model in machine.models_of_vectors() {
            let provider = self.providers.for_model(&model).map_err(DriveError::Model)?;
            provider.makes_vectors(&model).map_err(DriveError::Model)?;
        }
        if let Some(name) = scenario.prices.keys().find(|name| !name.contains('/')) {
            return Err(DriveError::Model(format!(
                "`prices` names `{name}`; a model is named `provider/model`, for instance `openai/{name}`"
            )));
        }
        self.tell_notices(&models);
        let prices = Prices::of(&models, &scenario.prices, &self.providers);
        Ok(Asked { models, simulated, prices, batch: self.outside.batch == Some(true) })
    }

    /// Tells what a person is to know before these models are asked.
    fn tell_notices(&self, models: &[String]) {
        let providers = models.iter().filter_map(|model| self.providers.for_model(model).ok());
        providers.flat_map(|provider| provider.notices()).for_each(|notice| self.outside.notes.tell(&notice));
    }

    /// A wall of dollars needs to know what calls cost.
    fn check_prices(&self, machine: &Assembled, budget: &Budget, prices: &Prices) -> Result<(), DriveError> {
        if !budget.bounds_dollars() {
            return Ok(());
        }
        for model in machine.models() {
            let provider = self.providers.for_model(&model).map_err(DriveError::Model)?;
            if provider.tells_costs() || prices.know(&model) {
                continue;
            }
            let at = provider.address(&model).map_or(String::new(), |address| format!(" at {address}"));
            let hint = match prices::listed(&model) {
                Some(price) => format!(
                    "--price {model}={} is what it costs at its own provider; whether this address asks the same nobody here knows",
                    prices::words(&price)
                ),
                None => {
                    format!("--price {model}=0.15,0.60, in US dollars for a million tokens of requests and of replies")
                }
            };
            return Err(DriveError::Model(format!(
                "`{model}`{at}: no price of it is known, so that a budget of dollars can not be kept. Say it ({hint}), or limit tokens \
                 or calls, for instance --max-tokens 100000"
            )));
        }
        Ok(())
    }

    /// What models offer, as their servers tell it; all are asked at once, and wait no longer than a provider's probe does. What goes wrong
    /// on the way shows when questions are put.
    fn capabilities(&self, models: &[String]) -> BTreeMap<String, Capabilities> {
        let outside = |model: &&String| self.providers.for_model(model).is_ok_and(|provider| !provider.simulated());
        let models: Vec<String> = models.iter().filter(outside).cloned().collect();
        if models.is_empty() || self.faults.is_some() {
            return BTreeMap::new();
        }
        let (tells, told) = mpsc::channel();
        if let Ok(runtime) = self.providers.runtime() {
            for model in models {
                let (providers, tells) = (self.providers.clone(), tells.clone());
                runtime.spawn(async move {
                    if let Ok(provider) = providers.for_model(&model)
                        && let Some(capabilities) = provider.probe(&model).await
                    {
                        // Nobody who listens has gone: they wait for this.
                        let _ = tells.send((model, capabilities));
                    }
                });
            }
        }
        drop(tells);
        told.iter().collect()
    }

    /// `recorded`: what is sent in batches, and where requests are entered; nothing for what is no part of a run.
    fn source(
        &self,
        scenario: &Scenario,
        prices: &Prices,
        ranks: Option<Ranks>,
        recorded: Option<(Batches, Ledger)>,
    ) -> Box<dyn Source> {
        let seed = scenario.seed;
        match self.faults {
            None => {
                let of_scenario = scenario.patience.map(|patience| Duration::from_secs_f64(patience.seconds()));
                let outside = Outside { patience: self.outside.patience.or(of_scenario), ..self.outside.clone() };
                let live = Live::new(self.providers.clone(), seed, self.connections, &outside);
                let mut live = live.with_prices(prices.clone());
                if let Some((batches, ledger)) = recorded {
                    live = live.with_batches(batches).with_ledger(ledger);
                }
                if let Some(ranks) = ranks {
                    live = live.with_ranks(ranks);
                }
                Box::new(live)
            }
            Some(faults) => Box::new(Simulated::new(self.providers.clone(), seed, faults)),
        }
    }

    /// Of these models those that are asked in batches; it says which are not.
    fn batched(&self, machine: &Assembled, manifest: &Manifest) -> BTreeSet<String> {
        if !manifest.batch {
            return BTreeSet::new();
        }
        // Batches are of conversations.
        let of_vectors = machine.models_of_vectors();
        let has = |model: &&String| {
            let provider = self.providers.for_model(model);
            !of_vectors.contains(model) && provider.is_ok_and(|provider| provider.batching().is_some())
        };
        let (batched, not): (Vec<&String>, Vec<&String>) = manifest.models.iter().partition(has);
        if !not.is_empty() {
            let not: Vec<&str> = not.into_iter().map(String::as_str).collect();
            self.outside.notes.tell(&format!("there are no batches of {}: asked as ever", not.join(", ")));
        }
        batched.into_iter().cloned().collect()
    }

    /// Runs a scenario in a new folder.
    pub fn run(&self, prepared: &Prepared, out: &Path, watch: &mut dyn Watch) -> Result<Summary, DriveError> {
        self.begin(prepared, out, None, Past::default(), watch)
    }

    /// `origin` and `past`: what a fork brings along.
    fn begin(
        &self,
        prepared: &Prepared,
        out: &Path,
        origin: Option<Origin>,
        past: Past,
        watch: &mut dyn Watch,
    ) -> Result<Summary, DriveError> {
        let began = Instant::now();
        let scenario = Scenario::read(&prepared.tree)?;
        let mut machine = self.assemble(prepared)?;
        let asked = self.check_models(&machine, &scenario)?;
        let budget = scenario.budget.with(&self.budget);
        self.check_prices(&machine, &budget, &asked.prices)?;
        let folder = Folder::create(self.disk.clone(), out)?;
        let capabilities = self.capabilities(&asked.models);
        let manifest = Manifest::new(prepared, &scenario, &machine, asked, capabilities, origin);
        folder.write_inputs(prepared)?;
        let journal = Journal::from(JournalWriter::create(self.disk.clone(), &folder.journal())?);
        let text = manifest.text()?;
        append(&journal, &Event::Manifest(text.clone()))?;
        append_answers(&journal, past.answers.values().cloned().collect())?;
        journal.commit()?;
        // The manifest comes last: a folder that has one can be resumed.
        folder.write_manifest(&text)?;
        let checks = checks_of(&scenario, prepared, &machine)?;
        let (disk, simulated) = (self.disk.clone(), manifest.simulated);
        let nothing = Reader::of_parts(self.disk.as_ref(), &folder.tables(), Default::default());
        let mut recorder = Recorder::open(disk, &folder.tables(), &machine, &scenario, checks, simulated, 0, &nothing)?;
        recorder.heard(past.answers.values());
        // What the run it comes from has paid for broken tries is that run's.
        let past = Past { rounds: Default::default(), broken: Vec::new(), ..past };
        let saved = Snapshots::new(self.disk.clone(), folder.journal());
        self.drive(&mut machine, &scenario, &folder, journal, recorder, saved, past, &budget, &manifest, began, watch)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a run, each made by one of the callers")]
    fn drive(
        &self,
        machine: &mut Assembled,
        scenario: &Scenario,
        folder: &Folder,
        journal: Journal,
        recorder: Recorder,
        saved: Snapshots,
        past: Past,
        budget: &Budget,
        manifest: &Manifest,
        began: Instant,
        watch: &mut dyn Watch,
    ) -> Result<Summary, DriveError> {
        let agents = agents_of(machine);
        let batched = self.batched(machine, manifest);
        let prices = Prices::from(manifest.prices.clone()).in_batches(batched.clone());
        let mailbox = Mailbox::of(self.disk.clone(), folder.path());
        let timeout = scenario.people.timeout.map(|timeout| Duration::from_secs_f64(timeout.seconds()));
        let named = folder.path().display().to_string();
        let batches = Batches::open(
            self.providers.clone(),
            self.disk.clone(),
            folder.path(),
            batched,
            self.outside.batch_pause,
            self.outside.notes.clone(),
        )?;
        let asked = self.source(scenario, &prices, ranks(scenario, machine), Some((batches, ledger(&journal))));
        let mut source = WithPeople::new(asked, mailbox, named, timeout, self.outside.notes.clone());
        let control = Control::open(self.disk.clone(), folder.path())?;
        let writing = Writing { journal, recorder, saved, snapshots: scenario.snapshot };
        self.check_prices(machine, budget, &prices)?;
        let gate = Gate::new(budget, machine, self.providers.clone(), prices, &past);
        let lag = scenario.answers.lag() > 0;
        let mut watch = Traced::new(watch, self.trace(manifest, folder));
        let drive = Drive {
            machine,
            past,
            source: &mut source,
            gate: Some(gate),
            orders: Some(Orders::new(control, self.connections, lag)),
            deadline: budget.seconds.map(|seconds| began + Duration::from_secs_f64(seconds)),
            grace: self.outside.grace.unwrap_or(GRACE),
            stopping_since: None,
            writing: Some(writing),
            seed: scenario.seed,
            planned: scenario.rounds,
            stop: self.stop.clone(),
            watch: &mut watch,
            tolerate: false,
            strict: false,
        };
        let driven = drive.run();
        let summary = driven.and_then(|mut driven| {
            let parts = std::mem::take(&mut driven.parts);
            let tables = Reader::of_parts(self.disk.as_ref(), &folder.tables(), parts);
            self.summary(folder, &tables, driven, agents, machine_round(machine), manifest.simulated, began)
        });
        if let Some(trace) = watch.into_trace() {
            match &summary {
                Ok(summary) => trace.end(summary.status.name(), Some(&summary.totals)),
                Err(_) => trace.end("error", None),
            }
        }
        summary
    }

    /// The trace of what this process does on a run, where that was asked for.
    fn trace(&self, manifest: &Manifest, folder: &Folder) -> Option<Trace> {
        let to = self.outside.traces.as_ref()?;
        let run = folder.path().display().to_string();
        Some(Trace::new(to, &manifest.name, run, &manifest.models, &self.providers))
    }

    #[expect(clippy::too_many_arguments, reason = "what a summary tells, each from one of the callers")]
    fn summary(
        &self,
        folder: &Folder,
        tables: &Reader<'_>,
        driven: Driven,
        agents: u32,
        round: u32,
        simulated: bool,
        began: Instant,
    ) -> Result<Summary, DriveError> {
        let (status, rounds, digest, reason) = match driven.ending {
            Ending::Done(outcome) => (RunStatus::Done, outcome.rounds, outcome.digest.to_string(), outcome.reason),
            Ending::Stopped => (RunStatus::Stopped, round, driven.chain.map_or(String::new(), |d| d.to_string()), None),
            Ending::TimeUp => {
                (RunStatus::Budget, round, driven.chain.map_or(String::new(), |d| d.to_string()), Some(TIME_UP.into()))
            }
            Ending::Exhausted(reason) => {
                (RunStatus::Budget, round, driven.chain.map_or(String::new(), |d| d.to_string()), Some(reason))
            }
        };
        Ok(Summary {
            status,
            run: folder.path().display().to_string(),
            digest,
            agents,
            rounds,
            wall_seconds: began.elapsed().as_secs_f64(),
            totals: driven.totals,
            simulated,
            commits: driven.commits,
            first_difference: None,
            reason,
            health: alarms(tables)?,
            round_ms: median(driven.round_ms),
            peak_memory_mb: peak_memory_mb(),
        })
    }

    /// Goes on with a run that was killed or stopped. A run that has ended is only summed up.
    pub fn resume(&self, dir: &Path, watch: &mut dyn Watch) -> Result<Summary, DriveError> {
        let began = Instant::now();
        let folder = Folder::open(self.disk.clone(), dir)?;
        let Recorded { file, mut manifest, prepared, mut story, end } = self.recorded(&folder)?;
        let scenario = Scenario::read(&prepared.tree)?;
        let mut machine = self.assemble(&prepared)?;
        self.check_derived(&folder, &manifest, &machine)?;
        let tables = story.inventory.results(self.disk.as_ref(), folder.path());
        if let Some(outcome) = story.inventory.ended.clone() {
            if !story.inventory.closed() {
                self.settle(&folder, &story.inventory)?;
                folder.tidy(&story.inventory)?;
                JournalWriter::open_at_end(self.disk.clone(), &folder.journal(), end)?.close()?;
            }
            let driven = Driven {
                ending: Ending::Done(outcome),
                totals: story.past.totals(),
                first_difference: None,
                chain: None,
                commits: 0,
                round_ms: Vec::new(),
                parts: Default::default(),
            };
            let agents = agents_of(&machine);
            return self.summary(&folder, &tables, driven, agents, 0, manifest.simulated, began);
        }
        // Before anything is spent on going on: what it goes on with is what was written.
        tables.check()?;
        // What was set while it was under way holds on: a wall that somebody has put up must not fall with the process.
        let set = Budget {
            cost_usd: story.set.cost_usd,
            tokens: story.set.tokens,
            calls: story.set.calls,
            requests: story.set.requests,
            ..Budget::default()
        };
        let before = scenario.budget.with(&set);
        let budget = before.with(&self.budget);
        if let Some(reason) = &story.exhausted
            && budget == before
        {
            return Err(DriveError::Input(format!(
                "{} has used its budget up: {reason}; go on with a greater one (--max-cost, --max-tokens, --max-calls, \
                 --max-requests or --max-tool-calls)",
                dir.display()
            )));
        }
        // The newest snapshot that is there and whole; else the start.
        let mut from = 0;
        // For a while it is there besides; only what a run takes is estimated.
        let fresh = self.assemble_within(&prepared, &mut MemoryBudget::unlimited())?;
        let mut saved = Snapshots::new(self.disk.clone(), folder.journal());
        if let Some((round, bytes)) = saved.newest(&story.inventory.named())? {
            let restored = match &mut machine {
                Assembled::Society(society) => society.restore(&bytes),
                Assembled::Evaluation(evaluation) => evaluation.restore(&bytes),
            };
            restored.map_err(|bug| DriveError::Bug { seed: scenario.seed, bug })?;
            from = round;
        }
        folder.tidy(&story.inventory)?;
        let journal = Journal::from(JournalWriter::open_at_end(self.disk.clone(), &folder.journal(), end)?);
        if story.inventory.snapshots.last_key_value().is_some_and(|(newest, _)| *newest > from) {
            // What is newer than the state it goes on from is made again; until then it is as if it had never been.
            let rewound = Event::Rewound { round: from };
            append(&journal, &rewound)?;
            journal.commit()?;
            story.inventory.take(&rewound);
        }
        self.settle(&folder, &story.inventory)?;
        let checks = checks_of(&scenario, &prepared, &fresh)?;
        let (disk, simulated) = (self.disk.clone(), manifest.simulated);
        let before = story.inventory.results(self.disk.as_ref(), folder.path());
        let mut recorder = Recorder::open(disk, &folder.tables(), &fresh, &scenario, checks, simulated, from, &before)?;
        recorder.heard(story.past.answers.values());
        drop(fresh);
        // Prices are no part of what determines a run: others may be given to go on with, and are recorded. Neither is whether questions
        // go in batches.
        let before = (manifest.prices.clone(), manifest.batch);
        if !self.outside.prices.is_empty() {
            let given = Prices::of(&manifest.models, &self.outside.prices, &self.providers);
            manifest.prices = Prices::from(manifest.prices).with(&given).by_name().clone();
        }
        manifest.batch = self.outside.batch.unwrap_or(manifest.batch);
        let mut text = story.inventory.manifest().unwrap_or_default().to_string();
        if before != (manifest.prices.clone(), manifest.batch) {
            text = manifest.text()?;
            append(&journal, &Event::Manifest(text.clone()))?;
            journal.commit()?;
        }
        if file != text {
            // Also where a kill came between the record of a change and the file.
            folder.write_manifest(&text)?;
        }
        // What was in flight when the process was killed may have been answered, and paid.
        for (id, most) in story.in_flight {
            append(&journal, &Event::Broke { id, charged: Some(most) })?;
        }
        let past = story.past;
        self.tell_notices(&manifest.models);
        self.drive(&mut machine, &scenario, &folder, journal, recorder, saved, past, &budget, &manifest, began, watch)
    }

    /// Makes the names of recorded parts durable, where a kill has come before that.
    fn settle(&self, folder: &Folder, inventory: &Inventory) -> Result<(), DriveError> {
        let mut newest = inventory.parts.values().filter_map(|parts| parts.last());
        newest.try_for_each(|part| Ok(settle(self.disk.as_ref(), &folder.tables(), part)?))
    }

    /// Recomputes a run from its journal, asking nobody, and compares every round's digest.
    pub fn replay(&self, dir: &Path, watch: &mut dyn Watch) -> Result<Summary, DriveError> {
        let began = Instant::now();
        let folder = Folder::read(self.disk.clone(), dir)?;
        let Recorded { manifest, prepared, story, .. } = self.recorded(&folder)?;
        let scenario = Scenario::read(&prepared.tree)?;
        let mut machine = self.assemble(&prepared)?;
        self.check_derived(&folder, &manifest, &machine)?;
        // What was recomputed is what was written: that is said of the tables, too.
        let tables = story.inventory.results(self.disk.as_ref(), folder.path());
        tables.check()?;
        let recorded = story.past.rounds.len() as u32;
        let ended = story.inventory.ended.clone();
        let agents = agents_of(&machine);
        // A run that was stopped is replayed as far as it came.
        let planned = if ended.is_some() { scenario.rounds } else { recorded };
        if ended.is_none() && recorded == 0 {
            return Err(DriveError::Folder(format!("{} has no complete round to replay", dir.display())));
        }
        let until = ended.is_none().then_some(recorded);
        let driven = play_back(&mut machine, story.past, scenario.seed, planned, until, true, watch)?;
        let mut first = driven.first_difference;
        let digest = match &driven.ending {
            Ending::Done(outcome) => {
                if let Some(ended) = &ended
                    && (ended.digest != outcome.digest || ended.rounds != outcome.rounds)
                {
                    first.get_or_insert(ended.rounds.min(outcome.rounds));
                }
                outcome.digest
            }
            _ => driven.chain.unwrap_or_default(),
        };
        let round = machine_round(&machine);
        let mut summary = self.summary(&folder, &tables, driven, agents, round, manifest.simulated, began)?;
        summary.status = if first.is_none() { RunStatus::Same } else { RunStatus::Different };
        summary.digest = digest.to_string();
        summary.first_difference = Some(first);
        Ok(summary)
    }

    /// Runs a recorded run again up to round `at`, with its recorded answers, and goes on from there with other parameters. `whole`: edits
    /// that hold for the run as a whole, of flags (`--rounds`, `--price`).
    pub fn fork(
        &self,
        dir: &Path,
        at: u32,
        edits: Vec<(String, Node)>,
        whole: Vec<SetKey>,
        out: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Summary, DriveError> {
        let folder = Folder::read(self.disk.clone(), dir)?;
        let Recorded { manifest, mut prepared, mut story, .. } = self.recorded(&folder)?;
        if at as usize > story.past.rounds.len() {
            return Err(DriveError::Input(format!(
                "{} has {} complete rounds; it can be forked at round 0 to {}",
                dir.display(),
                story.past.rounds.len(),
                story.past.rounds.len()
            )));
        }
        story.past.answers.retain(|id, _| id.round < at);
        prepared.edits = prepare::words(&edits);
        prepared.edits.extend(prepare::flags(&whole));
        for (path, value) in whole {
            if let ("rounds", Value::Int(rounds)) = (path.as_str(), &value.value)
                && *rounds < i64::from(at)
            {
                return Err(DriveError::Input(format!("a fork at round {at} runs at least {at} rounds, not {rounds}")));
            }
            prepared.tree.edit(&path, value)?;
        }
        prepared.change_at(at, edits)?;
        let origin = Origin { run: manifest.name.clone(), folder: dir.display().to_string(), at };
        self.begin(&prepared, out, Some(origin), story.past, watch)
    }
}

/// Drives a machine from a record alone, at most up to round `until`. `tolerate`: whether a round that differs from the record is only noted.
fn play_back(
    machine: &mut Assembled,
    past: Past,
    seed: u64,
    planned: u32,
    until: Option<u32>,
    tolerate: bool,
    watch: &mut dyn Watch,
) -> Result<Driven, DriveError> {
    let stop = Stop::default();
    let mut until = Until { rounds: until.unwrap_or(u32::MAX), stop: stop.clone(), inner: watch };
    let drive = Drive {
        machine,
        past,
        source: &mut Nowhere,
        gate: None,
        orders: None,
        deadline: None,
        grace: GRACE,
        stopping_since: None,
        writing: None,
        seed,
        planned,
        stop,
        watch: &mut until,
        tolerate,
        strict: true,
    };
    drive.run()
}

/// Stops a replay where the record ends.
struct Until<'a> {
    rounds: u32,
    stop: Stop,
    inner: &'a mut dyn Watch,
}

impl Watch for Until<'_> {
    fn progress(&mut self, progress: &crate::drive::Progress) {
        if progress.rounds >= self.rounds && progress.waiting.is_none() {
            self.stop.ask();
        }
        self.inner.progress(progress);
    }
}

fn machine_round(machine: &Assembled) -> u32 {
    match machine {
        Assembled::Society(society) => society.next_round(),
        Assembled::Evaluation(evaluation) => evaluation.next_round(),
    }
}

/// A run folder that is not there yet: `runs/NAME-SEED`, or that with a number.
pub fn new_folder(disk: &dyn Disk, name: &str, seed: u64) -> Result<PathBuf, DriveError> {
    let base: String = name.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '-' }).collect();
    for i in 1..10_000 {
        let suffix = if i == 1 { String::new() } else { format!("-{i}") };
        let path = PathBuf::from("runs").join(format!("{base}-{seed}{suffix}"));
        if !disk.exists(&path).map_err(DriveError::disk(&path))? {
            return Ok(path);
        }
    }
    Err(DriveError::Folder(format!("runs/ holds ten thousand runs named {base}-{seed}; name a folder with --out")))
}
