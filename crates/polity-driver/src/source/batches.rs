//! Questions that wait for a day: sent together as batches of their providers, which answer them for a part of the price.
//!
//! A batch has a file in the folder `batches/` of its run, `NAME.json`: written before it is sent (without an id), and again once its
//! provider has given it an id. So a process that was killed knows what is under way: a question that is asked again is not sent again,
//! but waited for in the batch that has it. A batch that was about to be sent when the process ended is looked for at its provider, by
//! its name or by the names of its lines. `docs/decisions/batches-have-a-file-each.md` has the reasons, and what can still go wrong.

use super::Notes;
use super::traffic::Call;
use crate::DriveError;
use crate::disk::{Disk, create_dir_durably, write_atomically};
use crate::drive::digest_of;
use crate::models::batch::{Batching, Found, Standing, State};
use crate::models::{Exchange, Providers, Trouble};
use crate::people::now_ms;
use polity_kernel::ask::{Effect, EffectId, Request};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The folder within a run's.
const FOLDER: &str = "batches";
/// How long a batch is left alone before it is looked at, unless it is said otherwise.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The pause grows by this, up to so many times the first one.
const GROWTH: f64 = 1.5;
const LONGEST: u32 = 30;
/// How often a batch that may have been sent is looked for before it counts as never sent.
const LOOKS: u32 = 3;
/// How often on end it may fail to look at a batch before the run stops.
const FAILURES: u32 = 10;

/// How batches stand, in words, by their names.
pub(super) type Words = Arc<Mutex<BTreeMap<String, String>>>;

/// What came of asking.
pub(super) type Asked = (Call, Result<Exchange, Trouble>);

/// A batch in its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    /// Its name; its lines are named by it and their number.
    name: String,
    /// The model, in full.
    model: String,
    /// When it was about to be sent, in milliseconds since 1970.
    since_ms: u64,
    /// What its provider calls it, once that is known.
    id: Option<String>,
    lines: Vec<Line>,
}

/// A question of a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    /// The effects that its answer is for.
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
    // A request that has no bytes, which none is, matches none.
    postcard::to_allocvec(request).map_or(String::new(), |bytes| digest_of(&bytes).to_string())
}

/// What all batches of a run share.
struct Desk {
    providers: Arc<Providers>,
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    run: String,
    pause: Duration,
    notes: Notes,
}

impl Desk {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    fn fatal(&self, error: &io::Error) -> Trouble {
        Trouble::Fatal {
            why: format!("what is sent in batches is kept in {}, and that fails: {error}", self.folder.display()),
        }
    }

    fn keep(&self, note: &Note) -> Result<(), Trouble> {
        let write = || {
            create_dir_durably(self.disk.as_ref(), &self.folder)?;
            let text = serde_json::to_vec(note).map_err(io::Error::other)?;
            write_atomically(self.disk.as_ref(), &self.path(&note.name), &text)
        };
        write().map_err(|error| self.fatal(&error))
    }

    /// Forgets a batch of which nothing was answered and nothing will be.
    fn forget(&self, note: &Note) -> Result<(), Trouble> {
        let remove = || {
            self.disk.remove_file(&self.path(&note.name))?;
            self.disk.sync_dir(&self.folder)
        };
        remove().map_err(|error| self.fatal(&error))
    }
}

/// The batches of a run. Nothing is sent here: [`Batch::ask`] does.
pub(crate) struct Batches {
    desk: Arc<Desk>,
    /// The models of which new ones are made.
    gathered: BTreeSet<String>,
    /// Those in files.
    noted: Vec<Note>,
    /// Of every effect in one of these, where it stands: the last one that holds it.
    known: BTreeMap<EffectId, (usize, usize)>,
    /// Questions that have been asked again and stand in one of these.
    claimed: BTreeMap<usize, Vec<(usize, Call)>>,
    made: usize,
    held: watch::Sender<bool>,
}

impl Batches {
    /// Of the run in this folder, with those that earlier processes have sent. `gathered`: the models of which new ones are made; `run`: how the folder is
    /// named in words; `pause`: before a batch is first looked at.
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
        // What a process left that was killed while it wrote: of an order that was not sent yet, or that its file tells of as well.
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
                    "{} can not be read: {error}. It says what was sent to a provider: put it back as it was, or delete it, and \
                     its questions are asked and paid again",
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
        let desk = Arc::new(Desk { providers, disk, folder, run, pause, notes });
        let (held, _) = watch::channel(false);
        Ok(Batches { desk, gathered, noted, known, claimed: BTreeMap::new(), made, held })
    }

    /// Whether questions of this model are gathered.
    pub(super) fn gathers(&self, model: &str) -> bool {
        self.gathered.contains(model)
    }

    /// Where a question stands that an earlier process has sent.
    pub(super) fn sent(&mut self, effect: &Effect) -> Option<(usize, usize)> {
        if self.known.is_empty() {
            return None;
        }
        let (note, line) = self.known.remove(&effect.id)?;
        let noted = self.noted.get(note)?.lines.get(line)?;
        (noted.request == digest(&effect.request)).then_some((note, line))
    }

    /// Takes a question that stands there.
    pub(super) fn claim(&mut self, (note, line): (usize, usize), call: Call) {
        self.claimed.entry(note).or_default().push((line, call));
    }

    /// The batches of earlier processes that hold claimed questions.
    pub(super) fn take_sent(&mut self) -> Vec<Batch> {
        let claimed = std::mem::take(&mut self.claimed);
        let batch = |(note, calls): (usize, Vec<(usize, Call)>)| {
            let note = self.noted.get(note)?.clone();
            Some(self.batch(note, calls, Vec::new()))
        };
        claimed.into_iter().filter_map(batch).collect()
    }

    /// The questions that have been asked again and stand in a batch that is not asked yet.
    pub(super) fn claims(&self) -> impl Iterator<Item = EffectId> {
        self.claimed.values().flatten().map(|(_, call)| call.effect.id)
    }

    /// Drops claims: what holds nothing more is asked.
    pub(super) fn drop_claims(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.claimed).into_values().flatten().map(|(_, call)| call).collect()
    }

    fn batch(&self, note: Note, calls: Vec<(usize, Call)>, lines: Vec<String>) -> Batch {
        Batch { desk: self.desk.clone(), held: self.held.subscribe(), note, calls, lines }
    }

    /// Makes batches of questions of one model, each with those that share its answer, as few as hold them; and what can not be asked.
    pub(super) fn make(&mut self, questions: Vec<(Call, Vec<EffectId>)>) -> (Vec<Batch>, Vec<Asked>) {
        let (mut batches, mut refused) = (Vec::new(), Vec::new());
        let Some(model) = questions.first().map(|(call, _)| call.effect.request.model.clone()) else {
            return (batches, refused);
        };
        let desk = self.desk.clone();
        let Some(batching) = desk.providers.for_model(&model).ok().and_then(|provider| provider.batching()) else {
            let none = || Trouble::Fatal { why: format!("`{model}` has no batches") };
            return (batches, questions.into_iter().map(|(call, _)| (call, Err(none()))).collect());
        };
        let (most, most_bytes) = batching.holds();
        let mut bytes = 0;
        let mut open = self.empty(&model);
        for (call, others) in questions {
            let mut line = batching.line(&open.note.line(open.calls.len()), &call.effect);
            // A comma or a line break, and some letters for a longer number.
            let with = |line: &Result<String, Trouble>| line.as_ref().map_or(0, String::len) + 16;
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
        // Nobody else's batch has this name, whoever uses the same key.
        let who = format!("{} {} {since_ms} {}", self.desk.folder.display(), std::process::id(), self.made);
        let unique: String = digest_of(who.as_bytes()).to_string().chars().take(16).collect();
        let name = format!("{:06}-{unique}", self.made);
        let note = Note { name, model: model.to_owned(), since_ms, id: None, lines: Vec::new() };
        self.batch(note, Vec::new(), Vec::new())
    }

    /// Sends nothing more and waits for nothing more: batches stay where they are.
    pub(super) fn hold(&self) {
        self.held.send_replace(true);
    }
}

/// What became of the questions of a batch.
#[derive(Default)]
pub(super) struct Done {
    pub asked: Vec<Asked>,
    /// What turned out never to have been sent.
    pub unsent: Vec<Call>,
    /// What stays in its batch.
    pub left: Vec<Call>,
}

/// Why a batch brought no results.
enum Short {
    Held,
    NeverSent,
    Trouble(Trouble),
}

impl From<Trouble> for Short {
    fn from(trouble: Trouble) -> Self {
        Short::Trouble(trouble)
    }
}

/// A batch, to be sent or to be waited for.
pub(super) struct Batch {
    desk: Arc<Desk>,
    held: watch::Receiver<bool>,
    note: Note,
    /// The questions whose answers are wanted, by their lines.
    calls: Vec<(usize, Call)>,
    /// What is to be sent; nothing for one that an earlier process has made.
    lines: Vec<String>,
}

/// Pauses that grow.
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
    /// The questions whose answers are wanted.
    pub(super) fn effects(&self) -> impl Iterator<Item = EffectId> {
        self.calls.iter().map(|(_, call)| call.effect.id)
    }

    /// Sends it if it is not sent yet, and waits for its results.
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
                    let missing = || Trouble::Retry {
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
                            self.desk.notes.tell(&format!(
                                "batch {id} with {} questions to {} stays where it is; `polity resume {}` collects its answers",
                                calls.len(),
                                self.note.model,
                                self.desk.run
                            ));
                        }
                        done.left = calls;
                    }
                    Short::NeverSent => done.unsent = calls,
                    Short::Trouble(trouble) => {
                        done.asked = calls.into_iter().map(|call| (call, Err(trouble.clone()))).collect();
                    }
                }
            }
        }
        done
    }

    async fn results(&mut self, words: &Words) -> Result<crate::models::batch::Results, Short> {
        let desk = self.desk.clone();
        let provider = desk.providers.for_model(&self.note.model);
        let provider = provider.map_err(|why| Trouble::Fatal { why })?;
        let batching = provider.batching();
        let batching =
            batching.ok_or_else(|| Trouble::Fatal { why: format!("`{}` has no batches", self.note.model) })?;
        let say = |what: String| {
            let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
            words.insert(self.note.name.clone(), what);
        };
        let model = self.note.model.clone();
        say(format!("{} questions to {model} are being sent as a batch", self.note.lines.len()));
        let id = match self.note.id.clone() {
            Some(id) => id,
            None => {
                let id = sent(&desk, &mut self.held, batching, &self.note, &self.lines).await?;
                self.note.id = Some(id.clone());
                desk.keep(&self.note)?;
                id
            }
        };
        self.lines = Vec::new();
        desk.notes.tell(&format!(
            "{} questions to {model} are with its provider as a batch, which may take up to a day; if this process ends, `polity resume \
             {}` collects the answers",
            self.note.lines.len(),
            desk.run
        ));
        let shown = |n: usize, of: usize| format!("batch {id} to {model}: {n} of {of} answered");
        let (mut pauses, mut failures) = (Pauses::new(desk.pause), 0);
        loop {
            let trouble = match batching.standing(&id).await {
                Ok(Standing { state: State::Failed { why, crowded }, .. }) => {
                    desk.forget(&self.note)?;
                    let why = format!("the provider did not take batch {id} to {model}: {why}");
                    return Err(Short::Trouble(match crowded {
                        true => Trouble::Crowded { why, after_ms: Some(pauses.next(None).as_millis() as u64) },
                        false => Trouble::Fatal {
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
                Trouble::Retry { ref why, after_ms, .. } | Trouble::Crowded { ref why, after_ms } => {
                    desk.notes.tell(&format!("batch {id} can not be looked at: {why}; it is tried again"));
                    after_ms
                }
                trouble => {
                    let file = desk.path(&self.note.name);
                    let why = format!(
                        "batch {id}: {trouble}. If it is gone for good, delete {}: its questions are asked, and paid, again",
                        file.display()
                    );
                    return Err(Short::Trouble(Trouble::Fatal { why }));
                }
            };
            failures += 1;
            if failures >= FAILURES {
                let why = trouble.to_string();
                return Err(Short::Trouble(Trouble::Fatal { why: format!("batch {id} can not be looked at: {why}") }));
            }
            pause(&mut self.held, pauses.next(after_ms)).await?;
        }
    }
}

/// The id of a batch: sends it, or looks for it where an earlier process may have sent it.
async fn sent(
    desk: &Desk,
    held: &mut watch::Receiver<bool>,
    batching: &dyn Batching,
    note: &Note,
    lines: &[String],
) -> Result<String, Short> {
    if lines.is_empty() {
        return match found(desk, held, batching, note).await? {
            Some(id) => Ok(id),
            None => {
                desk.forget(note)?;
                Err(Short::NeverSent)
            }
        };
    }
    if *held.borrow() {
        return Err(Short::Held);
    }
    desk.keep(note)?;
    let trouble = match batching.send(&note.name, &note.model, lines).await {
        Ok(id) => return Ok(id),
        Err(Trouble::Retry { why, after_ms, charged: true }) => {
            desk.notes.tell(&format!("{why}; it is looked for whether the batch is there all the same"));
            if let Some(id) = found(desk, held, batching, note).await? {
                return Ok(id);
            }
            Trouble::Retry { why, after_ms, charged: false }
        }
        Err(trouble) => trouble,
    };
    desk.forget(note)?;
    Err(trouble.into())
}

/// Looks for a batch that may have been sent, some times, since a list may be behind.
async fn found(
    desk: &Desk,
    held: &mut watch::Receiver<bool>,
    batching: &dyn Batching,
    note: &Note,
) -> Result<Option<String>, Short> {
    let mut pauses = Pauses::new(desk.pause);
    let (mut looks, mut failures) = (0, 0);
    loop {
        let after_ms = match batching.find(&note.name, note.lines.len(), note.since_ms).await {
            Ok(Found::There(id)) => return Ok(Some(id)),
            Ok(Found::Nowhere) => {
                looks += 1;
                if looks >= LOOKS {
                    return Ok(None);
                }
                None
            }
            Ok(Found::Unsure) => {
                desk.notes
                    .tell("a batch may have been sent before this run was stopped; which one shows when it has ended");
                None
            }
            Err(Trouble::Retry { after_ms, .. } | Trouble::Crowded { after_ms, .. }) if failures < FAILURES => {
                failures += 1;
                after_ms
            }
            Err(trouble) => {
                let why = format!("whether a batch was sent can not be found out: {trouble}");
                return Err(Short::Trouble(Trouble::Fatal { why }));
            }
        };
        pause(held, pauses.next(after_ms)).await?;
    }
}

/// Waits, unless nothing more is waited for.
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
    use crate::disk::SimDisk;
    use crate::models::batch::{Doing, Results};
    use crate::models::{Answering, Provider};
    use crate::source::traffic::{Rules, Traffic};
    use polity_kernel::ask::{Asker, Usage, Want};

    /// Takes four lines of a batch, or sixty bytes; lines are their names.
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
            Box::pin(std::future::ready(Err(Trouble::Never { why: "in batches only".into() })))
        }
    }

    fn no<T: Send + 'static>() -> Doing<'static, T> {
        Box::pin(std::future::ready(Err(Trouble::Never { why: "not here".into() })))
    }

    impl Batching for Small {
        fn holds(&self) -> (usize, usize) {
            (4, 400)
        }
        fn line(&self, name: &str, effect: &Effect) -> Result<String, Trouble> {
            match effect.id.actor {
                7 => Err(Trouble::Never { why: "no".into() }),
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
        let request = Request::new("small/m", Vec::new(), Want::Text);
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
        let mut traffic = Traffic::new(Rules { connections: 1, ..Rules::default() });
        traffic.gathers("small/m", now);
        // Ten short ones, of which one can not be asked, and three long ones.
        (0..10).chain(30..33).for_each(|actor| traffic.begin(effect(actor), None, 0, now));
        assert!(traffic.next(now).is_none() && traffic.next_due(now).is_none());
        let gathered = traffic.gathered(now);
        assert_eq!((gathered.len(), traffic.gathered(now).len(), traffic.asking()), (1, 0, 0));
        let (made, refused) = gathered.into_iter().map(|questions| batches.make(questions)).next().unwrap();
        assert_eq!(refused.iter().map(|(call, _)| call.effect.id.actor).collect::<Vec<_>>(), [7]);
        assert_eq!(made.iter().map(|batch| batch.calls.len()).collect::<Vec<_>>(), [4, 4, 2, 1, 1]);
        for batch in &made {
            for (n, line) in batch.lines.iter().enumerate() {
                assert_eq!(line.trim(), batch.note.line(n));
            }
            batch.desk.keep(&batch.note).unwrap();
        }
        // Another process knows them, each where it is; but not another question of the same name. It clears away what the first left
        // half written.
        let half = made[0].desk.path(&made[0].note.name).with_extension("json.tmp");
        disk.create(&half).unwrap().write_all(b"{\"name\":").unwrap();
        let mut again = open();
        assert!(!disk.exists(&half).unwrap());
        assert_eq!(again.sent(&effect(5)), Some((1, 1)));
        assert_eq!(again.sent(&effect(5)), None);
        let other = Effect { request: Request { sample: 1, ..effect(0).request }, ..effect(0) };
        assert_eq!((again.sent(&other), again.sent(&effect(7))), (None, None));
        let (more, _) = again.make(vec![(traffic.begin_sent(effect(50), None, now).unwrap(), Vec::new())]);
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
