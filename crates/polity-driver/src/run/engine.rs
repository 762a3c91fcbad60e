//! The engine: begins, resumes, replays and forks runs.

use super::folder::{Folder, manifest_file};
use super::inventory::Inventory;
use super::journal_summary::{JournalSummary, read_journal};
use super::manifest::{Asked, Manifest, Origin};
use super::prepare;
use super::prepare::{Prepared, SetKey};
use super::summary::{RunStatus, Summary, peak_memory_mb};
use crate::budget::Gate;
use crate::control::Control;
use crate::drive::{
    Drive, Driven, Ending, GRACE, Learned, Orders, Past, Stop, TIME_UP, Totals, Watch, Writing, append, append_answers,
    ledger,
};
use crate::health::{Alarm, alarms};
use crate::people::Mailbox;
use crate::recorder::Recorder;
use crate::source::{Batches, Faults, NullSource, Outside, Ranks, WithPeople};
use crate::spread::{Others, Spread};
use crate::traces::{Trace, Traced};
use polity_kernel::ask::{Answer, Asker, Effect, EffectId, TargetKind, Usage};
use polity_kernel::event::Event;
use polity_kernel::layout::Layout;
use polity_kernel::machine::{Machine, Outcome};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{
    Assembled, Budget, Check, MemoryBudget, Scenario, assemble_within, checks, outline_within,
};
use polity_kernel::topology::Unwanted;
use polity_kernel::tree::{Node, TreeError, Value};
use polity_models::models::Providers;
use polity_models::models::prices::Prices;
use polity_store::disk::{Disk, RealDisk};
use polity_store::files::parse_edit;
use polity_store::journal::{End, Journal, JournalReader, JournalWriter};
use polity_store::snapshots::Snapshots;
use polity_store::tables::{Reader, settle};
use polity_store::{DriveError, memory};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What every command needs. Clones stop together and share their providers.
#[derive(Clone)]
pub struct Engine<'a> {
    /// The leaves.
    pub registry: &'a Registry,
    /// The models.
    pub providers: Arc<Providers>,
    /// The disk that holds run folders.
    pub disk: Arc<dyn Disk>,
    /// Shards of a society.
    pub shards: usize,
    /// The processes that compute the society together; `None`: this one alone.
    pub spread: Option<Spread>,
    /// Maximum calls in flight.
    pub connections: usize,
    /// Memory limit of a run in MB (10^6 bytes); `None`: all available memory. A run with a higher estimate does not start.
    pub memory: Option<u64>,
    /// Limits that replace the scenario's.
    pub budget: Budget,
    /// How providers are called.
    pub outside: Outside,
    /// A misbehaving driver instead of a live one, for tests.
    pub faults: Option<Faults>,
    /// A person's stop request.
    pub stop: Stop,
    /// Whether models are called. If not, no key is needed: for checks of scenarios.
    pub asks: bool,
}

impl<'a> Engine<'a> {
    /// Creates an engine with the standard providers and the real disk: one shard, one call at a time, only the scenario's limits. Set
    /// its fields to change that, `Engine { connections: 50, ..Engine::new(&registry) }`.
    #[must_use]
    pub fn new(registry: &'a Registry) -> Self {
        Engine {
            registry,
            providers: Arc::new(Providers::standard()),
            disk: Arc::new(RealDisk),
            shards: 1,
            spread: None,
            connections: 1,
            memory: None,
            budget: Budget::default(),
            outside: Outside::default(),
            faults: None,
            stop: Stop::default(),
            asks: true,
        }
    }
}

pub(super) fn checks_of(
    scenario: &Scenario,
    prepared: &Prepared,
    machine: &Assembled,
) -> Result<Vec<Check>, TreeError> {
    machine.society().map_or(Ok(Vec::new()), |society| checks(scenario, &prepared.inputs, society))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// How much of a society a check builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Enough to reveal errors in the scenario: the people grouped, the size of the topology, and an empty world ([`outline_within`]).
    Outline,
    /// All of it, as in a run.
    Whole,
}

/// What is known about a scenario's runs in advance.
pub(crate) struct Survey {
    /// Agents at the start.
    pub agents: u32,
    /// Estimated memory of a run in bytes.
    pub memory: u64,
    /// The models it calls.
    pub models: Vec<String>,
    /// Whether some of them are simulated.
    pub simulated: bool,
}

/// What became of a run.
enum Step {
    /// It ended, or was stopped.
    Ended(Box<Summary>),
    /// Its parameters were changed, so it is to be resumed. The folder stays locked: it is under way all the time.
    Changed(Folder),
}

impl Step {
    fn ended(summary: Summary) -> Step {
        Step::Ended(Box::new(summary))
    }
}

/// The contents of a run folder.
pub(super) struct Recorded {
    /// The text of the manifest's file.
    file: String,
    pub(super) manifest: Manifest,
    pub(super) prepared: Prepared,
    pub(super) story: JournalSummary,
    end: End,
}

/// The priorities of agents by cohort; agents born later have none.
pub(super) fn ranks(scenario: &Scenario, machine: &Assembled) -> Option<Ranks> {
    let cohorts = scenario.cohorts.as_ref().filter(|cohorts| cohorts.iter().any(|cohort| cohort.priority != 0))?;
    let society = machine.society()?;
    let rank = |cohort: u16| cohorts.get(usize::from(cohort)).map_or(0, |cohort| cohort.priority);
    let ranks: Vec<i32> = society.cohort_of_each().into_iter().map(rank).collect();
    Some(Arc::new(move |effect| ranks.get(effect.id.actor as usize).copied().unwrap_or(0)))
}

impl Engine<'_> {
    /// Reads a run back, and checks that its parts match.
    pub(super) fn recorded(&self, folder: &Folder) -> Result<Recorded, DriveError> {
        let file = manifest_file(self.disk.as_ref(), folder.path())?;
        let mut reader = JournalReader::open(self.disk.as_ref(), &folder.journal())?;
        let story = read_journal(&mut reader)?;
        let Some(end) = reader.end() else {
            return Err(DriveError::Folder(format!("the end of {} cannot be found", folder.journal().display())));
        };
        let manifest = story.inventory.verified(folder.path(), &file)?;
        let prepared = folder.prepared(&manifest)?;
        Ok(Recorded { file, manifest, prepared, story, end })
    }

    /// Builds the machine of a scenario in its initial state.
    pub fn assemble(&self, prepared: &Prepared) -> Result<Assembled, TreeError> {
        self.assemble_within(prepared, &mut self.memory_budget())
    }

    /// The memory available to a run.
    fn memory_budget(&self) -> MemoryBudget {
        MemoryBudget::of(self.memory.map(|mb| mb.saturating_mul(1_000_000)).or_else(memory::available))
    }

    /// Builds the part of the machine that this process computes: all of it, unless the run is spread over several.
    pub(super) fn assemble_part(&self, prepared: &Prepared) -> Result<Assembled, DriveError> {
        let Some(spread) = &self.spread else { return Ok(self.assemble(prepared)?) };
        let Prepared { tree, inputs, .. } = prepared;
        let machine = assemble_within(tree, self.registry, inputs, spread.layout(), &mut self.memory_budget())?;
        match machine.models().iter().find(|model| TargetKind::of(model) == TargetKind::Human) {
            Some(person) => Err(DriveError::Input(format!(
                "`{person}` is asked by one process only, so a society with people runs in one process"
            ))),
            None => Ok(machine),
        }
    }

    fn assemble_within(&self, prepared: &Prepared, memory: &mut MemoryBudget) -> Result<Assembled, TreeError> {
        let Prepared { tree, inputs, .. } = prepared;
        assemble_within(tree, self.registry, inputs, Layout::shards(self.shards), memory)
    }

    /// Estimated memory of a run of a scenario, in bytes.
    pub(crate) fn memory_of(&self, prepared: &Prepared) -> Result<u64, TreeError> {
        let mut memory = MemoryBudget::unlimited();
        self.assemble_within(prepared, &mut memory)?;
        Ok(memory.reserved())
    }

    /// Checks a scenario without running it.
    pub fn validate(&self, prepared: &Prepared, extent: Extent) -> Result<(), DriveError> {
        self.survey(prepared, extent).map(|_| ())
    }

    /// The requests of a scenario's first turns, without sending them.
    pub fn first_questions(&self, prepared: &Prepared) -> Result<Vec<Effect>, DriveError> {
        let seed = Scenario::read(&prepared.tree)?.seed;
        let bug = |bug| DriveError::Bug { seed, bug };
        let mut machine = self.assemble(prepared)?;
        let mut poll = |answers: Vec<Answer>| machine.poll(answers);
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
            reasoning: None,
        };
        Ok(poll(asked.into_iter().map(unasked).collect()).map_err(bug)?.start)
    }

    /// Checks a scenario without running it, and returns what is known about its runs.
    pub(crate) fn survey(&self, prepared: &Prepared, extent: Extent) -> Result<Survey, DriveError> {
        let mut memory = self.memory_budget();
        let scenario = Scenario::read(&prepared.tree)?;
        let engine = self.with_models_of(prepared, &scenario, None)?;
        let (agents, asked) = match extent {
            Extent::Outline => {
                let Prepared { tree, inputs, .. } = prepared;
                let draft = outline_within(tree, self.registry, inputs, Layout::shards(self.shards), &mut memory)?;
                (draft.agents(), engine.check_models(draft.models(), draft.models_of_vectors(), &scenario)?)
            }
            Extent::Whole => {
                let machine = self.assemble_within(prepared, &mut memory)?;
                let asked = engine.check_models_of(&machine, &scenario)?;
                engine.check_prices(&machine, &self.budget, &asked.prices)?;
                (machine.agents(), asked)
            }
        };
        let Asked { models, simulated, .. } = asked;
        Ok(Survey { agents, memory: memory.reserved(), models, simulated })
    }

    /// How a recorded run ended, and the totals of its answers; `None` while anything is left to do.
    pub(crate) fn ended(&self, dir: &Path) -> Result<Option<(Outcome, Totals)>, DriveError> {
        let Recorded { story, .. } = self.recorded(&Folder::read(self.disk.clone(), dir)?)?;
        // A run killed at its very end must still be closed.
        let ended = story.inventory.closed().then(|| story.inventory.ended.clone()).flatten();
        Ok(ended.map(|outcome| (outcome, story.past.totals())))
    }

    /// Runs a scenario in a new folder.
    pub fn run(&self, prepared: &Prepared, out: &Path, watch: &mut dyn Watch) -> Result<Summary, DriveError> {
        let begun = self.begin(prepared, out, None, Past::default(), watch)?;
        self.continued(begun, watch)
    }

    /// Continues a run whose parameters were changed, until it ends.
    fn continued(&self, mut step: Step, watch: &mut dyn Watch) -> Result<Summary, DriveError> {
        loop {
            match step {
                Step::Ended(summary) => return Ok(*summary),
                Step::Changed(folder) => step = self.resume_once(folder, watch)?,
            }
        }
    }

    /// `origin` and `past`: provided by a fork.
    fn begin(
        &self,
        prepared: &Prepared,
        out: &Path,
        origin: Option<Origin>,
        past: Past,
        watch: &mut dyn Watch,
    ) -> Result<Step, DriveError> {
        let began = Instant::now();
        let scenario = Scenario::read(&prepared.tree)?;
        let prepared = &*self.with_listed(prepared, &scenario)?;
        let engine = self.with_models_of(prepared, &scenario, Some(out))?;
        let mut machine = self.assemble_part(prepared)?;
        let asked = engine.check_models_of(&machine, &scenario)?;
        if let Some((Unwanted { self_loops, duplicates }, file)) = scenario.dropped_edges(&prepared.inputs) {
            self.outside.notes.tell(&format!(
                "topology: edges of `{file}` that are left out: {self_loops} tie an agent to itself, {duplicates} repeat another"
            ));
        }
        let budget = scenario.budget.with(&self.budget);
        engine.check_prices(&machine, &budget, &asked.prices)?;
        let folder = Folder::create(self.disk.clone(), out)?;
        if let Some(origin) = &origin {
            // The journal names states of toolkits, which lie in the original's folder.
            folder.copy_tools(Path::new(&origin.folder))?;
        }
        let capabilities = engine.capabilities(&asked.models);
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
        // The first values of all agents: in a run over several processes no other process has been asked yet.
        let fresh = self.spread.as_ref().map(|_| self.assemble(prepared)).transpose()?;
        let first = fresh.as_ref().unwrap_or(&machine);
        let mut recorder = Recorder::open(disk, &folder.tables(), first, &scenario, checks, simulated, 0, &nothing)?;
        drop(fresh);
        recorder.unpriced(engine.unpriced(&manifest));
        recorder.heard(past.answers.values());
        // Broken tries paid by the original run stay with it.
        let mut past = Past { rounds: Default::default(), broken: Vec::new(), ..past };
        let saved = Snapshots::new(self.disk.clone(), folder.journal());
        let others = match &self.spread {
            Some(spread) => {
                let run = prepared.digest();
                Some(engine.lead(spread, &run, out, None, true, &budget, &journal, &mut past, &mut recorder)?)
            }
            None => None,
        };
        let parts = (journal, recorder, saved, others);
        engine.drive(&mut machine, &scenario, folder, parts, past, &budget, &manifest, began, watch)
    }

    /// Drives a run until it ends or its parameters are changed.
    #[expect(clippy::too_many_arguments, reason = "the parts of a run, each made by one of the callers")]
    fn drive(
        &self,
        machine: &mut Assembled,
        scenario: &Scenario,
        folder: Folder,
        (journal, recorder, saved, others): (Journal, Recorder, Snapshots, Option<Others>),
        past: Past,
        budget: &Budget,
        manifest: &Manifest,
        began: Instant,
        watch: &mut dyn Watch,
    ) -> Result<Step, DriveError> {
        let agents = machine.agents();
        let (mut source, prices) =
            self.asking(scenario, manifest, machine, folder.path(), &journal, past.in_doubt())?;
        let control = Control::open(self.disk.clone(), folder.path())?;
        let learned = Learned::new(self.disk.clone(), folder.path());
        let writing = Writing { journal, recorder, saved, snapshots: scenario.snapshot, learned };
        self.check_prices(machine, budget, &prices)?;
        let gate = Gate::new(budget, machine, self.providers.clone(), prices, &past);
        let lag = scenario.answers.lag() > 0;
        let possible = |edits: &[String]| self.possible(&folder, edits);
        let mut watch = Traced::new(watch, self.trace(manifest, &folder));
        let drive = Drive {
            machine,
            past,
            source: &mut source,
            gate: Some(gate),
            orders: Some(Orders::new(control, self.connections, lag, possible)),
            deadline: budget.seconds.map(|seconds| began + Duration::from_secs_f64(seconds)),
            grace: self.outside.grace.unwrap_or(GRACE),
            stopping_since: None,
            told: Instant::now(),
            writing: Some(writing),
            others,
            saves: scenario.snapshot.rounds,
            seed: scenario.seed,
            planned: scenario.rounds,
            stop: self.stop.clone(),
            watch: &mut watch,
            tolerate: false,
            strict: false,
        };
        let driven = drive.run();
        let summary = driven.and_then(|mut driven| {
            if driven.ending == Ending::Changed {
                return Ok(None);
            }
            let parts = std::mem::take(&mut driven.parts);
            let tables = Reader::of_parts(self.disk.as_ref(), &folder.tables(), parts);
            self.summary(&folder, &tables, driven, agents, machine.next_round(), manifest, began).map(Some)
        });
        if let Some(trace) = watch.into_trace() {
            match &summary {
                Ok(Some(summary)) => trace.end(summary.status.name(), Some(&summary.totals)),
                Ok(None) => trace.end("changed", None),
                Err(_) => trace.end("error", None),
            }
        }
        Ok(summary?.map_or(Step::Changed(folder), Step::ended))
    }

    /// Who answers the questions of a run, and what they take. `dir`: where batches and questions to people are kept; `in_doubt`: requests
    /// that may have been answered before.
    pub(super) fn asking(
        &self,
        scenario: &Scenario,
        manifest: &Manifest,
        machine: &Assembled,
        dir: &Path,
        journal: &Journal,
        in_doubt: BTreeSet<EffectId>,
    ) -> Result<(WithPeople, Prices), DriveError> {
        let batched = self.batched(machine, manifest);
        let prices = Prices::from(manifest.prices.clone()).in_batches(batched.clone());
        let mailbox = Mailbox::of(self.disk.clone(), dir);
        let timeout = scenario.humans.timeout.map(|timeout| Duration::from_secs_f64(timeout.seconds()));
        let (disk, notes) = (self.disk.clone(), self.outside.notes.clone());
        let batches =
            Batches::open(self.providers.clone(), disk, dir, batched, self.outside.batch_pause, notes.clone())?;
        let recorded = Some((batches, ledger(journal), in_doubt));
        let asked = self.source(scenario, &prices, ranks(scenario, machine), recorded);
        Ok((WithPeople::new(asked, mailbox, dir.display().to_string(), timeout, notes), prices))
    }

    /// The trace of this process's work on a run, if requested.
    pub(super) fn trace(&self, manifest: &Manifest, folder: &Folder) -> Option<Trace> {
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
        manifest: &Manifest,
        began: Instant,
    ) -> Result<Summary, DriveError> {
        Ok(summarised(driven, folder.path(), (agents, round), manifest, alarms(tables)?, began))
    }

    /// Continues a run that was killed or stopped. A finished run is only summarised.
    pub fn resume(&self, dir: &Path, watch: &mut dyn Watch) -> Result<Summary, DriveError> {
        let resumed = self.resume_once(Folder::open(self.disk.clone(), dir)?, watch)?;
        self.continued(resumed, watch)
    }

    /// Whether a run could go on with edits of its scenario.
    fn possible(&self, folder: &Folder, edits: &[String]) -> Result<(), DriveError> {
        if self.spread.is_some() {
            return Err(DriveError::Input(
                "a run over several processes cannot change its parameters; stop it, change it with `polity fork`"
                    .into(),
            ));
        }
        let Recorded { mut prepared, story, manifest, .. } = self.recorded(folder)?;
        // At a round that was not begun; round 0 would change the whole run.
        change(&mut prepared, &story, edits)?;
        let survey = self.survey(&prepared, Extent::Outline)?;
        match survey.models == manifest.models {
            true => Ok(()),
            false => Err(DriveError::Input(
                "an active run cannot change its models; fork it at a round instead (`polity fork`)".into(),
            )),
        }
    }

    /// The same, until the run ends or its parameters are changed.
    fn resume_once(&self, folder: Folder, watch: &mut dyn Watch) -> Result<Step, DriveError> {
        let began = Instant::now();
        let Recorded { file, mut manifest, mut prepared, mut story, end } = self.recorded(&folder)?;
        let ordered = story.inventory.ordered.clone();
        if !ordered.is_empty() && story.inventory.ended.is_none() {
            change(&mut prepared, &story, &ordered)?;
            manifest.scenario = prepared.tree.to_json();
        }
        let scenario = Scenario::read(&prepared.tree)?;
        let engine = self.with_models_of(&prepared, &scenario, Some(folder.path()))?;
        let mut machine = self.assemble_part(&prepared)?;
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
            let agents = machine.agents();
            return self.summary(&folder, &tables, driven, agents, 0, &manifest, began).map(Step::ended);
        }
        // Verify the stored data before spending anything on it.
        tables.check()?;
        // Limits set during the run persist: a person's limit must survive the process.
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
                "{} has used up its budget: {reason}; continue with a larger one (--max-cost, --max-tokens, \
                 --max-calls, --max-requests or --max-tool-calls)",
                folder.path().display()
            )));
        }
        // The newest complete snapshot; else the start.
        let mut from = 0;
        // It exists only for a while; the estimate covers the run alone.
        let fresh = self.assemble_within(&prepared, &mut MemoryBudget::unlimited())?;
        let mut saved = Snapshots::new(self.disk.clone(), folder.journal());
        let mut state = None;
        if let Some((round, bytes)) = saved.newest(&story.inventory.named())? {
            machine.restore(&bytes).map_err(|bug| DriveError::Bug { seed: scenario.seed, bug })?;
            from = round;
            state = self.spread.is_some().then_some(bytes);
        }
        folder.tidy(&story.inventory)?;
        let journal = Journal::from(JournalWriter::open_at_end(self.disk.clone(), &folder.journal(), end)?);
        if story.inventory.snapshots.last_key_value().is_some_and(|(newest, _)| *newest > from) {
            // Everything newer than the restored state is computed again; until then it does not count.
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
        recorder.unpriced(engine.unpriced(&manifest));
        recorder.heard(story.past.answers.values());
        drop(fresh);
        engine.record_outside(&folder, &file, &journal, &mut manifest, &story.inventory)?;
        // Requests in flight when the process was killed may have been answered, and paid.
        for (id, most) in story.in_flight {
            append(&journal, &Event::Broke { id, charged: Some(most) })?;
        }
        let mut past = story.past;
        engine.tell_notices(&manifest.models);
        let others = match &self.spread {
            Some(spread) => {
                let run = prepared.digest();
                let out = folder.path();
                Some(engine.lead(spread, &run, out, state, false, &budget, &journal, &mut past, &mut recorder)?)
            }
            None => {
                self.adopt(Vec::new(), folder.path(), &journal, &mut past, &mut recorder)?;
                None
            }
        };
        let parts = (journal, recorder, saved, others);
        engine.drive(&mut machine, &scenario, folder, parts, past, &budget, &manifest, began, watch)
    }

    /// Records the prices and the batching that this process was given, and ordered edits, where they differ from the run's.
    fn record_outside(
        &self,
        folder: &Folder,
        file: &str,
        journal: &Journal,
        manifest: &mut Manifest,
        inventory: &Inventory,
    ) -> Result<(), DriveError> {
        // Prices do not determine a run: new ones may be given on resume, and are recorded. The same holds for batching.
        if !self.outside.prices.is_empty() {
            let given = Prices::of(&manifest.models, &self.outside.prices, |model| self.providers.for_model(model));
            manifest.prices = Prices::from(manifest.prices.clone()).with(&given).by_name().clone();
        }
        manifest.batch = self.outside.batch.unwrap_or(manifest.batch);
        let recorded = inventory.manifest().unwrap_or_default();
        let text = manifest.text()?;
        if recorded != text {
            append(journal, &Event::Manifest(text.clone()))?;
            journal.commit()?;
        }
        if file != text {
            // Also if a kill came between the record of a change and the file.
            folder.write_manifest(&text)?;
        }
        Ok(())
    }

    /// Makes the names of recorded parts durable, if a kill prevented that.
    fn settle(&self, folder: &Folder, inventory: &Inventory) -> Result<(), DriveError> {
        let mut newest = inventory.parts.values().filter_map(|parts| parts.last());
        newest.try_for_each(|part| Ok(settle(self.disk.as_ref(), &folder.tables(), part)?))
    }

    /// Recomputes a run from its journal without calls, and compares every round's digest.
    pub fn replay(&self, dir: &Path, watch: &mut dyn Watch) -> Result<Summary, DriveError> {
        let began = Instant::now();
        let folder = Folder::read(self.disk.clone(), dir)?;
        let Recorded { manifest, prepared, story, .. } = self.recorded(&folder)?;
        let scenario = Scenario::read(&prepared.tree)?;
        let mut machine = self.assemble(&prepared)?;
        self.check_derived(&folder, &manifest, &machine)?;
        // What was recomputed was also written: verify the tables, too.
        let tables = story.inventory.results(self.disk.as_ref(), folder.path());
        tables.check()?;
        let recorded = story.past.rounds.len() as u32;
        let ended = story.inventory.ended.clone();
        let agents = machine.agents();
        // A stopped run is replayed as far as it got.
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
        let round = machine.next_round();
        let mut summary = self.summary(&folder, &tables, driven, agents, round, &manifest, began)?;
        summary.status = if first.is_none() { RunStatus::Same } else { RunStatus::Different };
        summary.digest = digest.to_string();
        summary.first_difference = Some(first);
        Ok(summary)
    }

    /// Repeats a recorded run up to round `at` with its recorded answers, and continues from there with other parameters. `whole`: edits
    /// for the whole run, from flags (`--rounds`, `--price`).
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
                "{} has {} complete rounds; it can be forked at rounds 0 to {}",
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
                return Err(DriveError::Input(format!(
                    "a fork at round {at} needs at least {at} rounds, not {rounds}"
                )));
            }
            prepared.tree.edit(&path, value)?;
        }
        prepared.change_at(at, edits)?;
        let origin = Origin { run: manifest.name.clone(), folder: dir.display().to_string(), at };
        let begun = self.begin(&prepared, out, Some(origin), story.past, watch)?;
        self.continued(begun, watch)
    }
}

/// What is told about a drive that has ended. `agents` at the start; `round`: the next one.
pub(super) fn summarised(
    driven: Driven,
    run: &Path,
    (agents, round): (u32, u32),
    manifest: &Manifest,
    health: Vec<Alarm>,
    began: Instant,
) -> Summary {
    let so_far = driven.chain.map_or(String::new(), |digest| digest.to_string());
    let (status, rounds, digest, reason) = match driven.ending {
        Ending::Done(outcome) => (RunStatus::Done, outcome.rounds, outcome.digest.to_string(), outcome.reason),
        Ending::Stopped | Ending::Changed => (RunStatus::Stopped, round, so_far, None),
        Ending::TimeUp => (RunStatus::Budget, round, so_far, Some(TIME_UP.into())),
        Ending::Exhausted(reason) => (RunStatus::Budget, round, so_far, Some(reason)),
    };
    Summary {
        status,
        run: run.display().to_string(),
        digest,
        agents,
        rounds,
        wall_seconds: began.elapsed().as_secs_f64(),
        totals: driven.totals,
        simulated: manifest.simulated,
        is_priced: manifest.is_priced(),
        commits: driven.commits,
        first_difference: None,
        reason,
        health,
        round_ms: median(driven.round_ms),
        peak_memory_mb: peak_memory_mb(),
    }
}

/// Applies edits from the next round on that has not begun.
fn change(prepared: &mut Prepared, story: &JournalSummary, edits: &[String]) -> Result<(), DriveError> {
    let begun = story.past.answers.keys().map(|id| id.round + 1).max().unwrap_or(0);
    let at = begun.max(story.past.rounds.len() as u32);
    let parsed =
        edits.iter().map(|edit| parse_edit(edit).map_err(|error| DriveError::Input(format!("{edit}: {error}"))));
    let parsed: Vec<SetKey> = parsed.collect::<Result<_, _>>()?;
    // Messages of several orders are all sent: each list is a change of its own.
    let (messages, edits): (Vec<SetKey>, Vec<SetKey>) = parsed.into_iter().partition(|(path, _)| path == "messages");
    prepared.change_at(at, edits)?;
    messages.into_iter().try_for_each(|messages| prepared.change_at(at, vec![messages]))
}

/// Drives a machine from a record alone, at most up to round `until`. `tolerate`: whether a round that differs from the record is only
/// noted.
pub(super) fn play_back(
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
        source: &mut NullSource,
        gate: None,
        orders: None,
        deadline: None,
        grace: GRACE,
        stopping_since: None,
        told: Instant::now(),
        writing: None,
        others: None,
        saves: None,
        seed,
        planned,
        stop,
        watch: &mut until,
        tolerate,
        strict: true,
    };
    drive.run()
}

/// Stops a replay at the end of the record.
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

/// A run folder that does not exist yet: `runs/NAME-SEED`, or that with a number.
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
