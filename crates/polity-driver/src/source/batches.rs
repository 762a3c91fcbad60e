//! Requests that may wait for a day: sent together in batches, at a lower price.
//!
//! A batch has a file in the folder `batches/` of its run, `NAME.json`: written before it is sent (without an id), and again once the
//! provider has assigned an id. So a restarted process knows what is in progress: a repeated request is not sent again, but awaited in
//! its batch. A batch about to be sent when the process ended is looked up at its provider, by its name or its line names. Reasons and
//! remaining risks: `docs/decisions/batches-have-a-file-each.md`.

use super::Notes;
use super::scheduler::Call;
use polity_kernel::ask::{Effect, EffectId, Request};
use polity_models::models::{Batching, Exchange, Found, ProviderError, Providers, Standing, State};
use polity_store::clock::now_ms;
use polity_store::disk::{Disk, create_dir_durably, write_atomically};
use polity_store::{DriveError, digest_of};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The folder within a run's.
const FOLDER: &str = "batches";
/// Default wait before a batch is first polled.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// Growth factor of the wait, and its maximum relative to the first.
const GROWTH: f64 = 1.5;
const LONGEST: u32 = 30;
/// How often a batch that may have been sent is looked up before it counts as never sent.
const LOOKS: u32 = 3;
/// Consecutive failed polls before the run stops.
const FAILURES: u32 = 10;

/// The status of batches in words, by name.
pub(super) type Words = Arc<Mutex<BTreeMap<String, String>>>;

/// The result of a request.
pub(super) type Asked = (Call, Result<Exchange, ProviderError>);

/// A batch file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    /// Its name; line names consist of it and a number.
    name: String,
    /// The model, in full.
    model: String,
    /// The time just before sending, in milliseconds since 1970.
    since_ms: u64,
    /// The provider's id, once known.
    id: Option<String>,
    lines: Vec<Line>,
}

/// A request of a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    /// The effects that share its answer.
    effects: Vec<EffectId>,
    /// Digest of the request.
    request: String,
}

impl Note {
    fn line(&self, n: usize) -> String {
        format!("{}-{n}", self.name)
    }
}

fn digest(request: &Request) -> String {
    // A request without bytes (which does not happen) matches none.
    postcard::to_allocvec(request).map_or(String::new(), |bytes| digest_of(&bytes).to_string())
}

/// Shared by all batches of a run.
struct BatchContext {
    providers: Arc<Providers>,
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    run: String,
    pause: Duration,
    notes: Notes,
}

impl BatchContext {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    fn fatal(&self, error: &io::Error) -> ProviderError {
        ProviderError::Fatal {
            why: format!("the records of sent batches in {} cannot be kept: {error}", self.folder.display()),
        }
    }

    fn keep(&self, note: &Note) -> Result<(), ProviderError> {
        let write = || {
            create_dir_durably(self.disk.as_ref(), &self.folder)?;
            let text = serde_json::to_vec(note).map_err(io::Error::other)?;
            write_atomically(self.disk.as_ref(), &self.path(&note.name), &text)
        };
        write().map_err(|error| self.fatal(&error))
    }

    /// Deletes the file of a batch that has no answers and will have none.
    fn forget(&self, note: &Note) -> Result<(), ProviderError> {
        let remove = || {
            self.disk.remove_file(&self.path(&note.name))?;
            self.disk.sync_dir(&self.folder)
        };
        remove().map_err(|error| self.fatal(&error))
    }
}

/// The batches of a run. Sending is done by [`Batch::ask`].
pub(crate) struct Batches {
    context: Arc<BatchContext>,
    /// The models for which new batches are made.
    gathered: BTreeSet<String>,
    /// Batches with files.
    noted: Vec<Note>,
    /// The location of every effect in them: the last one that holds it.
    known: BTreeMap<EffectId, (usize, usize)>,
    /// Repeated requests that are in one of these batches.
    claimed: BTreeMap<usize, Vec<(usize, Call)>>,
    made: usize,
    held: watch::Sender<bool>,
}

impl Batches {
    /// Opens the batches of the run in this folder, including those sent by earlier processes. `gathered`: the models for which new ones
    /// are made; `run`: the folder's name in words; `pause`: the wait before a batch is first polled.
    pub(crate) fn open(
        providers: Arc<Providers>,
        disk: Arc<dyn Disk>,
        folder: &Path,
        gathered: BTreeSet<String>,
        pause: Option<Duration>,
        notes: Notes,
    ) -> Result<Self, DriveError> {
        let (run, folder) = (folder.display().to_string(), folder.join(FOLDER));
        let names = match disk.list(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names.map_err(DriveError::disk(&folder))?,
        };
        // Leftovers of a process killed while writing: an order not sent yet, or one that its file also describes.
        for name in names.iter().filter(|name| name.ends_with(".tmp")) {
            let path = folder.join(name);
            disk.remove_file(&path).map_err(DriveError::disk(&path))?;
        }
        let (mut noted, mut known, mut made) = (Vec::<Note>::new(), BTreeMap::new(), 0);
        for name in names.iter().filter(|name| name.ends_with(".json")) {
            let path = folder.join(name);
            let bytes = disk.read(&path).map_err(DriveError::disk(&path))?;
            let note: Note = serde_json::from_slice(&bytes).map_err(|error| {
                DriveError::Folder(format!(
                    "{} cannot be read: {error}. It records what was sent to a provider. Put it back as it was, or \
                     delete it; its questions are then asked, and paid for, again",
                    path.display()
                ))
            })?;
            let number = name.split('-').next().and_then(|number| number.parse().ok());
            made = made.max(number.unwrap_or(0));
            for (n, line) in note.lines.iter().enumerate() {
                known.extend(line.effects.iter().map(|id| (*id, (noted.len(), n))));
            }
            noted.push(note);
        }
        let pause = pause.unwrap_or(FIRST_PAUSE);
        let context = Arc::new(BatchContext { providers, disk, folder, run, pause, notes });
        let (held, _) = watch::channel(false);
        Ok(Batches { context, gathered, noted, known, claimed: BTreeMap::new(), made, held })
    }

    /// Whether requests to this model are batched.
    pub(super) fn gathers(&self, model: &str) -> bool {
        self.gathered.contains(model)
    }

    /// The location of a request sent by an earlier process.
    pub(super) fn sent(&mut self, effect: &Effect) -> Option<(usize, usize)> {
        if self.known.is_empty() {
            return None;
        }
        let (note, line) = self.known.remove(&effect.id)?;
        let noted = self.noted.get(note)?.lines.get(line)?;
        (noted.request == digest(&effect.request)).then_some((note, line))
    }

    /// Claims a request at that location.
    pub(super) fn claim(&mut self, (note, line): (usize, usize), call: Call) {
        self.claimed.entry(note).or_default().push((line, call));
    }

    /// The batches of earlier processes with claimed requests.
    pub(super) fn take_sent(&mut self) -> Vec<Batch> {
        let claimed = std::mem::take(&mut self.claimed);
        let batch = |(note, calls): (usize, Vec<(usize, Call)>)| {
            let note = self.noted.get(note)?.clone();
            Some(self.batch(note, calls, Vec::new()))
        };
        claimed.into_iter().filter_map(batch).collect()
    }

    /// Claimed requests in batches that are not awaited yet.
    pub(super) fn claims(&self) -> impl Iterator<Item = EffectId> {
        self.claimed.values().flatten().map(|(_, call)| call.effect.id)
    }

    /// Drops the claims on batches that are not awaited yet; returns their calls.
    pub(super) fn drop_claims(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.claimed).into_values().flatten().map(|(_, call)| call).collect()
    }

    fn batch(&self, note: Note, calls: Vec<(usize, Call)>, lines: Vec<String>) -> Batch {
        Batch { context: self.context.clone(), held: self.held.subscribe(), note, calls, lines }
    }

    /// Makes as few batches as possible from requests to one model, each request with those that share its answer; also returns what
    /// cannot be sent.
    pub(super) fn make(&mut self, questions: Vec<(Call, Vec<EffectId>)>) -> (Vec<Batch>, Vec<Asked>) {
        let (mut batches, mut refused) = (Vec::new(), Vec::new());
        let Some(model) = questions.first().map(|(call, _)| call.effect.request.model.clone()) else {
            return (batches, refused);
        };
        let context = self.context.clone();
        let Some(batching) = context.providers.for_model(&model).ok().and_then(|provider| provider.batching()) else {
            let none = || ProviderError::Fatal { why: format!("`{model}` does not support batches") };
            return (batches, questions.into_iter().map(|(call, _)| (call, Err(none()))).collect());
        };
        let (most, most_bytes) = batching.holds();
        let mut bytes = 0;
        let mut open = self.empty(&model);
        for (call, others) in questions {
            let mut line = batching.line(&open.note.line(open.calls.len()), &call.effect);
            // A comma or line break, and some characters for a longer number.
            let with = |line: &Result<String, ProviderError>| line.as_ref().map_or(0, String::len) + 16;
            if !open.calls.is_empty() && (open.calls.len() >= most || bytes + with(&line) > most_bytes) {
                batches.push(std::mem::replace(&mut open, self.empty(&model)));
                bytes = 0;
                line = batching.line(&open.note.line(0), &call.effect);
            }
            bytes += with(&line);
            let line = match line {
                Ok(line) => line,
                Err(trouble) => {
                    refused.push((call, Err(trouble)));
                    continue;
                }
            };
            let effects = std::iter::once(call.effect.id).chain(others).collect();
            open.note.lines.push(Line { effects, request: digest(&call.effect.request) });
            open.lines.push(line);
            open.calls.push((open.calls.len(), call));
        }
        if !open.calls.is_empty() {
            batches.push(open);
        }
        (batches, refused)
    }

    fn empty(&mut self, model: &str) -> Batch {
        self.made += 1;
        let since_ms = now_ms();
        // A unique name, even among users of the same key.
        let who = format!("{} {} {since_ms} {}", self.context.folder.display(), std::process::id(), self.made);
        let unique: String = digest_of(who.as_bytes()).to_string().chars().take(16).collect();
        let name = format!("{:06}-{unique}", self.made);
        let note = Note { name, model: model.to_owned(), since_ms, id: None, lines: Vec::new() };
        self.batch(note, Vec::new(), Vec::new())
    }

    /// Sends nothing more and stops waiting: batches stay where they are.
    pub(super) fn hold(&self) {
        self.held.send_replace(true);
    }
}

/// The results of a batch's requests.
#[derive(Default)]
pub(super) struct Done {
    pub asked: Vec<Asked>,
    /// Requests that were never sent.
    pub unsent: Vec<Call>,
    /// Requests that stay in their batch.
    pub left: Vec<Call>,
}

/// Why a batch gave no results.
enum Short {
    Held,
    NeverSent,
    ProviderError(ProviderError),
}

impl From<ProviderError> for Short {
    fn from(trouble: ProviderError) -> Self {
        Short::ProviderError(trouble)
    }
}

/// A batch to be sent or awaited.
pub(super) struct Batch {
    context: Arc<BatchContext>,
    held: watch::Receiver<bool>,
    note: Note,
    /// Awaited requests by line.
    calls: Vec<(usize, Call)>,
    /// Lines to send; empty for a batch of an earlier process.
    lines: Vec<String>,
}

/// Increasing waits.
struct Pauses {
    first: Duration,
    next: Duration,
}

impl Pauses {
    fn new(first: Duration) -> Self {
        Pauses { first, next: first }
    }

    fn next(&mut self, after_ms: Option<u64>) -> Duration {
        let pause = self.next;
        self.next = pause.mul_f64(GROWTH).min(self.first * LONGEST);
        pause.max(Duration::from_millis(after_ms.unwrap_or(0)))
    }
}

impl Batch {
    /// The awaited requests.
    pub(super) fn effects(&self) -> impl Iterator<Item = EffectId> {
        self.calls.iter().map(|(_, call)| call.effect.id)
    }

    /// Sends it if needed, and waits for its results.
    pub(super) async fn ask(mut self, words: Words) -> Done {
        let began = Instant::now();
        let since_ms = now_ms().saturating_sub(self.note.since_ms) as f64;
        let results = self.results(&words).await;
        words.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.note.name);
        let mut done = Done::default();
        match results {
            Ok(mut results) => {
                let latency_ms = since_ms + began.elapsed().as_secs_f64() * 1e3;
                for (n, call) in self.calls {
                    let missing = || ProviderError::Retry {
                        why: "a batch has ended without a result for this question".into(),
                        after_ms: None,
                        charged: false,
                    };
                    let result = results.remove(&self.note.line(n)).unwrap_or_else(|| Err(missing()));
                    let result = result.map(|mut exchange| {
                        exchange.usage.latency_ms = latency_ms;
                        exchange
                    });
                    done.asked.push((call, result));
                }
            }
            Err(short) => {
                let calls: Vec<Call> = std::mem::take(&mut self.calls).into_iter().map(|(_, call)| call).collect();
                match short {
                    Short::Held => {
                        if let Some(id) = &self.note.id {
                            self.context.notes.tell(&format!(
                                "batch {id} with {} questions to {} stays with its provider; `polity resume {}` \
                                 collects its answers",
                                calls.len(),
                                self.note.model,
                                self.context.run
                            ));
                        }
                        done.left = calls;
                    }
                    Short::NeverSent => done.unsent = calls,
                    Short::ProviderError(trouble) => {
                        done.asked = calls.into_iter().map(|call| (call, Err(trouble.clone()))).collect();
                    }
                }
            }
        }
        done
    }

    async fn results(&mut self, words: &Words) -> Result<polity_models::models::Results, Short> {
        let context = self.context.clone();
        let provider = context.providers.for_model(&self.note.model);
        let provider = provider.map_err(|why| ProviderError::Fatal { why })?;
        let batching = provider.batching();
        let batching = batching
            .ok_or_else(|| ProviderError::Fatal { why: format!("`{}` does not support batches", self.note.model) })?;
        let say = |what: String| {
            let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
            words.insert(self.note.name.clone(), what);
        };
        let model = self.note.model.clone();
        say(format!("{} questions to {model} are being sent as a batch", self.note.lines.len()));
        let id = match self.note.id.clone() {
            Some(id) => id,
            None => {
                let id = sent(&context, &mut self.held, batching, &self.note, &self.lines).await?;
                self.note.id = Some(id.clone());
                context.keep(&self.note)?;
                id
            }
        };
        self.lines = Vec::new();
        context.notes.tell(&format!(
            "{} questions to {model} are with its provider as a batch, which may take up to a day; if this process ends, `polity resume \
             {}` collects the answers",
            self.note.lines.len(),
            context.run
        ));
        let shown = |n: usize, of: usize| format!("batch {id} to {model}: {n} of {of} answered");
        let (mut pauses, mut failures) = (Pauses::new(context.pause), 0);
        loop {
            let trouble = match batching.standing(&id).await {
                Ok(Standing { state: State::Failed { why, crowded }, .. }) => {
                    context.forget(&self.note)?;
                    let why = format!("the provider did not accept batch {id} to {model}: {why}");
                    return Err(Short::ProviderError(match crowded {
                        true => {
                            ProviderError::RateLimited { why, after_ms: Some(pauses.next(None).as_millis() as u64) }
                        }
                        false => ProviderError::Fatal {
                            why: format!(
                                "{why}. Nothing was charged; with --batch=false questions are asked one by one"
                            ),
                        },
                    }));
                }
                Ok(Standing { state: State::Ended(from), .. }) => {
                    let wanted = self.calls.iter().map(|(n, call)| (self.note.line(*n), &call.effect)).collect();
                    match batching.results(&from, &wanted).await {
                        Ok(results) => return Ok(results),
                        Err(trouble) => trouble,
                    }
                }
                Ok(Standing { state: State::Working, ended, after_ms, .. }) => {
                    (failures, _) = (0, say(shown(ended, self.note.lines.len())));
                    pause(&mut self.held, pauses.next(after_ms)).await?;
                    continue;
                }
                Err(trouble) => trouble,
            };
            let after_ms = match trouble {
                ProviderError::Retry { ref why, after_ms, .. } | ProviderError::RateLimited { ref why, after_ms } => {
                    context.notes.tell(&format!("the state of batch {id} cannot be read: {why}; trying again"));
                    after_ms
                }
                trouble => {
                    let file = context.path(&self.note.name);
                    let why = format!(
                        "batch {id}: {trouble}. If the batch is gone for good, delete {}; its questions are then \
                         asked, and paid for, again",
                        file.display()
                    );
                    return Err(Short::ProviderError(ProviderError::Fatal { why }));
                }
            };
            failures += 1;
            if failures >= FAILURES {
                let why = trouble.to_string();
                return Err(Short::ProviderError(ProviderError::Fatal {
                    why: format!("the state of batch {id} cannot be read: {why}"),
                }));
            }
            pause(&mut self.held, pauses.next(after_ms)).await?;
        }
    }
}

/// The id of a batch: sends it, or looks it up if an earlier process may have sent it.
async fn sent(
    context: &BatchContext,
    held: &mut watch::Receiver<bool>,
    batching: &dyn Batching,
    note: &Note,
    lines: &[String],
) -> Result<String, Short> {
    if lines.is_empty() {
        return match found(context, held, batching, note).await? {
            Some(id) => Ok(id),
            None => {
                context.forget(note)?;
                Err(Short::NeverSent)
            }
        };
    }
    if *held.borrow() {
        return Err(Short::Held);
    }
    context.keep(note)?;
    let trouble = match batching.send(&note.name, &note.model, lines).await {
        Ok(id) => return Ok(id),
        Err(ProviderError::Retry { why, after_ms, charged: true }) => {
            context.notes.tell(&format!("{why}; checking whether the batch was created anyway"));
            if let Some(id) = found(context, held, batching, note).await? {
                return Ok(id);
            }
            ProviderError::Retry { why, after_ms, charged: false }
        }
        Err(trouble) => trouble,
    };
    context.forget(note)?;
    Err(trouble.into())
}

/// Looks up a batch that may have been sent, several times, since a list may be outdated.
async fn found(
    context: &BatchContext,
    held: &mut watch::Receiver<bool>,
    batching: &dyn Batching,
    note: &Note,
) -> Result<Option<String>, Short> {
    let mut pauses = Pauses::new(context.pause);
    let (mut looks, mut failures) = (0, 0);
    loop {
        let after_ms = match batching.find(&note.name, note.lines.len(), note.since_ms).await {
            Ok(Found::There(id)) => return Ok(Some(id)),
            Ok(Found::Absent) => {
                looks += 1;
                if looks >= LOOKS {
                    return Ok(None);
                }
                None
            }
            Ok(Found::Unsure) => {
                context.notes.tell(
                    "a batch may have been sent before this run was stopped; it can be identified only when it has ended",
                );
                None
            }
            Err(ProviderError::Retry { after_ms, .. } | ProviderError::RateLimited { after_ms, .. })
                if failures < FAILURES =>
            {
                failures += 1;
                after_ms
            }
            Err(trouble) => {
                let why = format!("cannot find out whether a batch was sent: {trouble}");
                return Err(Short::ProviderError(ProviderError::Fatal { why }));
            }
        };
        pause(held, pauses.next(after_ms)).await?;
    }
}

/// Waits, unless the run is stopping.
async fn pause(held: &mut watch::Receiver<bool>, time: Duration) -> Result<(), Short> {
    tokio::select! {
        _ = held.wait_for(|held| *held) => Err(Short::Held),
        () = tokio::time::sleep(time) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::source::scheduler::{Rules, Scheduler};
    use polity_kernel::ask::{Asker, ResponseFormat, Usage};
    use polity_models::models::{Answering, Provider};
    use polity_models::models::{Doing, Results};
    use polity_store::disk::SimDisk;

    /// A mock with at most four lines or sixty bytes per batch; lines consist of their names.
    struct Small;

    impl Provider for Small {
        fn name(&self) -> &'static str {
            "small"
        }
        fn check(&self, _: &str) -> Result<(), String> {
            Ok(())
        }
        fn most(&self, _: &Request) -> Usage {
            Usage::default()
        }
        fn simulated(&self) -> bool {
            false
        }
        fn batching(&self) -> Option<&dyn Batching> {
            Some(self)
        }
        fn answer<'a>(&'a self, _: &'a Effect, _: u64) -> Answering<'a> {
            Box::pin(std::future::ready(Err(ProviderError::Never { why: "in batches only".into() })))
        }
    }

    fn no<T: Send + 'static>() -> Doing<'static, T> {
        Box::pin(std::future::ready(Err(ProviderError::Never { why: "not here".into() })))
    }

    impl Batching for Small {
        fn holds(&self) -> (usize, usize) {
            (4, 400)
        }
        fn line(&self, name: &str, effect: &Effect) -> Result<String, ProviderError> {
            match effect.id.actor {
                7 => Err(ProviderError::Never { why: "no".into() }),
                actor => Ok(format!("{name}{}", " ".repeat(if actor > 20 { 200 } else { 1 }))),
            }
        }
        fn send<'a>(&'a self, _: &'a str, _: &'a str, _: &'a [String]) -> Doing<'a, String> {
            no()
        }
        fn find<'a>(&'a self, _: &'a str, _: usize, _: u64) -> Doing<'a, Found> {
            no()
        }
        fn standing<'a>(&'a self, _: &'a str) -> Doing<'a, Standing> {
            no()
        }
        fn results<'a>(&'a self, _: &'a [Vec<String>], _: &'a BTreeMap<String, &'a Effect>) -> Doing<'a, Results> {
            no()
        }
    }

    fn effect(actor: u32) -> Effect {
        let request = Request::new("small/m", Vec::new(), ResponseFormat::Text);
        Effect {
            id: EffectId { item: 0, round: 0, actor, asker: Asker::Agent, n: 0 },
            request,
            hidden: None,
            default: None,
        }
    }

    #[test]
    fn questions_are_parted_into_as_many_batches_as_hold_them_and_known_again() {
        let providers = Arc::new(Providers::of(vec![Box::new(Small)]));
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        let open = || {
            let notes = Notes::default();
            Batches::open(providers.clone(), disk.clone(), Path::new("run"), ["small/m".into()].into(), None, notes)
                .unwrap()
        };
        let mut batches = open();
        assert!(batches.gathers("small/m") && !batches.gathers("other/m"));
        let now = Instant::now();
        let mut scheduler = Scheduler::new(Rules { connections: 1, ..Rules::default() });
        scheduler.gathers("small/m");
        // Ten short ones, one of them invalid, and three long ones.
        (0..10).chain(30..33).for_each(|actor| scheduler.begin(effect(actor), None, 0, now));
        assert!(scheduler.next(now).is_none() && scheduler.next_due(now).is_none());
        let gathered = scheduler.gathered(now);
        assert_eq!((gathered.len(), scheduler.gathered(now).len(), scheduler.asking()), (1, 0, 0));
        let (made, refused) = gathered.into_iter().map(|questions| batches.make(questions)).next().unwrap();
        assert_eq!(refused.iter().map(|(call, _)| call.effect.id.actor).collect::<Vec<_>>(), [7]);
        assert_eq!(made.iter().map(|batch| batch.calls.len()).collect::<Vec<_>>(), [4, 4, 2, 1, 1]);
        for batch in &made {
            for (n, line) in batch.lines.iter().enumerate() {
                assert_eq!(line.trim(), batch.note.line(n));
            }
            batch.context.keep(&batch.note).unwrap();
        }
        // Another process knows the location of each, but not of a different request with the same name. It removes what the first left
        // half written.
        let half = made[0].context.path(&made[0].note.name).with_extension("json.tmp");
        disk.create(&half).unwrap().write_all(b"{\"name\":").unwrap();
        let mut again = open();
        assert!(!disk.exists(&half).unwrap());
        assert_eq!(again.sent(&effect(5)), Some((1, 1)));
        assert_eq!(again.sent(&effect(5)), None);
        let other = Effect { request: Request { sample: 1, ..effect(0).request }, ..effect(0) };
        assert_eq!((again.sent(&other), again.sent(&effect(7))), (None, None));
        let (more, _) = again.make(vec![(scheduler.begin_sent(effect(50), None, now).unwrap(), Vec::new())]);
        assert!(more[0].note.name > made[4].note.name, "later ones have later names");
    }

    #[test]
    fn pauses_grow_to_a_longest_one_and_obey() {
        let mut pauses = Pauses::new(Duration::from_secs(10));
        let first: Vec<u64> = (0..3).map(|_| pauses.next(None).as_millis() as u64).collect();
        assert_eq!(first, [10_000, 15_000, 22_500]);
        assert_eq!(pauses.next(Some(60_000)), Duration::from_secs(60));
        let last = (0..100).map(|_| pauses.next(None)).last();
        assert_eq!(last, Some(Duration::from_secs(300)));
    }
}
