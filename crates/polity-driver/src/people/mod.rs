//! What people are asked, in the folder of a run: `people/ID.question.json`, and beside it, once there is one, `people/ID.answer.json`.
//!
//! A question is put by the run, once; an answer is given by whoever comes first: a command, the terminal, HTTP, or the run itself when
//! the time is up. The file of the answer is where that is decided: it is made under a lock, checked and durable, and never changed.
//! Both stay, so that a process that was killed finds what was answered meanwhile, and who comes late is told. What counts in the end
//! is the journal, where the run writes an answer before it uses it.

mod form;
mod serve;

pub use form::form;
pub use serve::Serving;

use crate::DriveError;
use crate::control::under_way;
use crate::disk::{Disk, create_dir_durably, write_atomically};
use crate::journal::JournalReader;
use crate::run::Folder;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use polity_kernel::ask::{Asker, Effect, EffectId, Outcome, Request, Role, Value};
use polity_kernel::event::Event;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The folder within a run's.
const FOLDER: &str = "people";
const QUESTION: &str = ".question.json";
const ANSWER: &str = ".answer.json";
/// Bytes of an answer at most.
pub const LONGEST_ANSWER: usize = 1_000_000;
/// How often the lock is tried for, and how long is waited before the next time. It is held for one small file.
const LOCK_TRIES: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The name of a question: the numbers of its effect, and who asks if that is no agent in its turn and no member of a team.
#[must_use]
pub fn name(id: EffectId) -> String {
    let EffectId { item, round, actor, asker, n } = id;
    let whose = match asker {
        Asker::Agent | Asker::Member => String::new(),
        other => format!("{}-", other.name()),
    };
    format!("{whose}{item}-{round}-{actor}-{n}")
}

/// A question as it stands in the folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its name, by which it is answered: item, round, agent (or member of the team), number.
    pub id: String,
    /// Who is asked: `human/NAME`.
    pub who: String,
    /// What for, in a word; may be empty.
    pub purpose: String,
    /// What the person reads.
    pub prompt: String,
    /// What answers fit, in words.
    pub form: String,
    /// What holds without an answer, in words.
    pub default: String,
    /// When it was first put, in milliseconds since 1970.
    pub put_ms: u64,
    /// How long it waits from then on; without end if there is none.
    pub timeout_ms: Option<u64>,
    /// The request in the journal's form, by which it is recognised.
    request: String,
}

/// An answer as it stands in the folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// How the question ended.
    pub outcome: Outcome,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// On what way it came.
    pub by: String,
}

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// There is no such question.
    #[error("nobody is asked `{0}`; without an id, `polity answer` lists what is asked")]
    Unknown(String),
    /// It has been answered.
    #[error("{0}")]
    Already(String),
    /// It is no answer to this question.
    #[error("this does not fit: {why}. Wanted: {form}")]
    Unfit {
        /// What is wrong.
        why: String,
        /// What fits.
        form: String,
    },
    /// The folder can not be read or written.
    #[error("{0}")]
    Disk(#[from] io::Error),
}

/// An answer on its way in.
#[derive(Clone, Debug, PartialEq)]
pub enum Words<'a> {
    /// What a person typed: one text, or one for each field of a record.
    Typed(&'a [String]),
    /// A JSON value.
    Json(&'a serde_json::Value),
}

/// The questions and answers of a run.
#[derive(Clone)]
pub struct Mailbox {
    disk: Arc<dyn Disk>,
    run: PathBuf,
}

/// The clock of the wall, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Question {
    fn request(&self) -> Result<Request, String> {
        let bytes = BASE64_STANDARD.decode(&self.request).map_err(|why| why.to_string())?;
        postcard::from_bytes(&bytes).map_err(|why| why.to_string())
    }

    /// The values that are wanted one after the other, each with its name (empty where there is but one) and what fits.
    pub fn fields(&self) -> Result<Vec<(String, String)>, String> {
        self.request().map(|request| form::fields(&request.want))
    }
}

fn damaged(path: &Path, why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} can not be read: {why}", path.display()))
}

impl Mailbox {
    /// Of the run in this folder, which need not be there yet.
    #[must_use]
    pub fn of(disk: Arc<dyn Disk>, run: &Path) -> Self {
        Mailbox { disk, run: run.to_path_buf() }
    }

    fn folder(&self) -> PathBuf {
        self.run.join(FOLDER)
    }

    fn read<T: for<'de> Deserialize<'de>>(&self, name: &str, ending: &str) -> io::Result<Option<T>> {
        let path = self.folder().join(format!("{name}{ending}"));
        let bytes = match self.disk.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|why| damaged(&path, why))
    }

    fn write<T: Serialize>(&self, name: &str, ending: &str, what: &T) -> io::Result<()> {
        let path = self.folder().join(format!("{name}{ending}"));
        let mut text = serde_json::to_string_pretty(what).map_err(io::Error::other)?;
        text.push('\n');
        write_atomically(self.disk.as_ref(), &path, text.as_bytes())
    }

    fn lock(&self) -> io::Result<Box<dyn Send>> {
        let path = self.folder().join("lock");
        for _ in 1..LOCK_TRIES {
            match self.disk.lock(&path) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOCK_PAUSE),
                held => return held,
            }
        }
        self.disk.lock(&path)
    }

    /// Puts a question, durably; one that is there already stays as it is, with the time at which it was first put.
    ///
    /// # Errors
    /// Those of the disk, and [`io::ErrorKind::InvalidData`] for another question of the same name.
    pub fn put(&self, effect: &Effect, timeout: Option<Duration>) -> io::Result<Question> {
        let Effect { id, request, default, .. } = effect;
        let name = name(*id);
        let bytes = postcard::to_allocvec(request).map_err(io::Error::other)?;
        let request_text = BASE64_STANDARD.encode(bytes);
        if let Some(known) = self.read::<Question>(&name, QUESTION)? {
            let path = self.folder().join(format!("{name}{QUESTION}"));
            return match known.request == request_text {
                true => Ok(known),
                false => Err(damaged(&path, "the run asks something else now than it did under this name")),
            };
        }
        let question = Question {
            id: name.clone(),
            who: request.model.clone(),
            purpose: request.purpose.clone(),
            prompt: prompt(request),
            form: form(&request.want),
            default: in_words(default.as_ref(), request),
            put_ms: now_ms(),
            timeout_ms: timeout.map(|timeout| timeout.as_millis() as u64),
            request: request_text,
        };
        create_dir_durably(self.disk.as_ref(), &self.folder())?;
        self.write(&name, QUESTION, &question)?;
        Ok(question)
    }

    /// What was answered, if anything was.
    pub fn given(&self, id: EffectId) -> io::Result<Option<Given>> {
        self.read(&name(id), ANSWER)
    }

    /// Questions without an answer, in the order in which they were put.
    pub fn pending(&self) -> io::Result<Vec<Question>> {
        let names = match self.disk.list(&self.folder()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            names => names?,
        };
        let answered: BTreeSet<&str> = names.iter().filter_map(|name| name.strip_suffix(ANSWER)).collect();
        let mut open = Vec::new();
        for name in names.iter().filter_map(|name| name.strip_suffix(QUESTION)) {
            if !answered.contains(name) {
                open.extend(self.read::<Question>(name, QUESTION)?);
            }
        }
        open.sort_by(|a, b| (a.put_ms, &a.id).cmp(&(b.put_ms, &b.id)));
        Ok(open)
    }

    /// A question by its name, answered or not.
    pub fn question(&self, name: &str) -> Result<Question, Refused> {
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_digit() || c == '-');
        let found = if plain { self.read(name, QUESTION)? } else { None };
        found.ok_or_else(|| Refused::Unknown(name.to_owned()))
    }

    /// Takes a person's answer, once it fits: durable when this returns. `by`: on what way it came.
    pub fn answer(&self, name: &str, words: &Words<'_>, by: &str) -> Result<(Question, Value), Refused> {
        let question = self.question(name)?;
        let path = self.folder().join(format!("{name}{QUESTION}"));
        let request = question.request().map_err(|why| damaged(&path, why))?;
        let unfit = |why: String| Refused::Unfit { why, form: question.form.clone() };
        let outcome = form::read(&request.want, words).map_err(unfit)?;
        let Outcome::Reply { value, .. } = &outcome else { return Err(unfit("it can not be read".into())) };
        let value = value.clone();
        self.settle(name, Given { outcome, at_ms: now_ms(), by: by.to_owned() })?;
        Ok((question, value))
    }

    /// Ends a question by itself, because its time is up; what a person has answered just before holds.
    pub(crate) fn time_up(&self, id: EffectId, why: String) -> io::Result<Given> {
        let name = name(id);
        let outcome = Outcome::Failed { why };
        match self.settle(&name, Given { outcome, at_ms: now_ms(), by: "the run".into() }) {
            Ok(given) => Ok(given),
            Err(Refused::Already(_)) => {
                self.given(id)?.ok_or_else(|| io::Error::other(format!("the answer {name} has vanished")))
            }
            Err(Refused::Disk(error)) => Err(error),
            Err(other) => Err(io::Error::other(other.to_string())),
        }
    }

    fn settle(&self, name: &str, given: Given) -> Result<Given, Refused> {
        let _lock = self.lock()?;
        if let Some(before) = self.read::<Given>(name, ANSWER)? {
            let words = before.outcome.words();
            return Err(Refused::Already(match before.outcome {
                Outcome::Reply { .. } => format!("`{name}` has its answer already, by {}: {words}", before.by),
                _ => format!("`{name}` has ended: {words}"),
            }));
        }
        self.write(name, ANSWER, &given)?;
        Ok(given)
    }
}

/// The questions of a run that is or was, for whoever wants to answer them.
///
/// # Errors
/// [`DriveError::Folder`] for a folder that is no run, [`DriveError::Input`] for a run that has ended.
pub fn of_run(disk: Arc<dyn Disk>, run: &Path) -> Result<Mailbox, DriveError> {
    let folder = Folder::read(disk.clone(), run)?;
    if !under_way(disk.as_ref(), run) {
        let mut reader = JournalReader::open(disk.as_ref(), &folder.journal())?;
        while let Some(segment) = reader.next_segment()? {
            if segment.records().any(|record| record.kind == Event::ENDED) {
                return Err(DriveError::Input(format!("{} has ended; nobody is asked any more", run.display())));
            }
        }
    }
    Ok(Mailbox::of(disk, run))
}

/// A conversation as a person reads it.
fn prompt(request: &Request) -> String {
    let message = |message: &polity_kernel::ask::Message| match message.role {
        Role::System | Role::User => message.rendered(),
        Role::Assistant => format!("You said:\n{}", message.rendered()),
    };
    request.messages.iter().map(message).collect::<Vec<_>>().join("\n\n")
}

/// What holds without an answer.
fn in_words(default: Option<&Value>, request: &Request) -> String {
    match default {
        None => "none is declared; who asked goes on without one".into(),
        Some(Value::Record(fields)) if fields.is_empty() => "nothing is done".into(),
        Some(Value::Number(x)) => x.to_string(),
        Some(value) => match value.to_json(&request.want) {
            serde_json::Value::String(text) => text,
            json => json.to_string(),
        },
    }
}

/// Counts who is asked how often, for a line that says who is waited for.
pub(crate) fn tally<'a>(who: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    who.for_each(|name| *counts.entry(name).or_default() += 1);
    let each =
        |(name, n): (&&str, &usize)| if *n == 1 { (*name).to_owned() } else { format!("{name} ({n} questions)") };
    counts.iter().map(each).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::disk::SimDisk;
    use polity_kernel::ask::{Message, Want};

    fn effect(want: Want) -> Effect {
        let id = EffectId { item: 0, round: 3, actor: 17, asker: Asker::Agent, n: 0 };
        let request = Request::new("human/ann", vec![Message::text(Role::User, "How many?")], want);
        Effect { id, request, hidden: None, default: Some(Value::Number(50.0)) }
    }

    fn typed(mailbox: &Mailbox, words: &str) -> Result<Value, Refused> {
        mailbox.answer("0-3-17-0", &Words::Typed(&[words.to_owned()]), "a test").map(|(_, value)| value)
    }

    #[test]
    fn a_question_is_put_once_and_answered_once() {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        let mailbox = Mailbox::of(disk.clone(), Path::new("run"));
        assert!(mailbox.pending().unwrap().is_empty());
        assert!(matches!(typed(&mailbox, "5"), Err(Refused::Unknown(_))));
        let put = mailbox.put(&effect(Want::number(0.0, 100.0)), None).unwrap();
        assert_eq!((put.default.as_str(), put.prompt.as_str()), ("50", "How many?"));
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(mailbox.put(&effect(Want::number(0.0, 100.0)), None).unwrap(), put);
        assert_eq!(mailbox.pending().unwrap(), std::slice::from_ref(&put));
        let unfit = typed(&mailbox, "101").unwrap_err().to_string();
        assert!(unfit.contains("101 lies outside 0 to 100") && unfit.contains("a number from 0 to 100"), "{unfit}");
        assert_eq!(typed(&mailbox, " 42 ").unwrap(), Value::Number(42.0));
        let twice = typed(&mailbox, "43").unwrap_err().to_string();
        assert!(twice.contains("already") && twice.contains("42"), "{twice}");
        assert!(mailbox.pending().unwrap().is_empty());
        // Too late for the run's own end of it.
        let held = mailbox.time_up(effect(Want::Text).id, "late".into()).unwrap();
        assert!(matches!(held.outcome, Outcome::Reply { .. }));
        // Another question of the same name is not taken for it.
        assert!(mailbox.put(&effect(Want::number(0.0, 99.0)), None).is_err());
    }

    #[test]
    fn bounds_without_end_survive_the_folder() {
        let mailbox = Mailbox::of(Arc::new(SimDisk::default()), Path::new("run"));
        mailbox.put(&effect(Want::number(f64::NEG_INFINITY, f64::INFINITY)), None).unwrap();
        assert_eq!(typed(&mailbox, "-1e9").unwrap(), Value::Number(-1e9));
    }

    #[test]
    fn names_are_no_paths() {
        let mailbox = Mailbox::of(Arc::new(SimDisk::default()), Path::new("run"));
        for name in ["", "../x", "a", "0-3-17-0/..", "lock"] {
            assert!(matches!(mailbox.question(name), Err(Refused::Unknown(_))), "{name}");
        }
    }
}
