//! The mailbox: questions to people, and their answers, in the folder of a run.

use super::form::{self, Words, form};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use polity_kernel::ask::{Asker, Effect, EffectId, Outcome, Request, ResponseFormat, Role, Value};
use polity_store::clock::now_ms;
use polity_store::disk::{Disk, create_dir_durably, write_atomically};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The folder within a run's.
const FOLDER: &str = "people";
const QUESTION: &str = ".question.json";
const ANSWER: &str = ".answer.json";
/// Tries for the lock, and the wait between them. It is held for one small file.
const LOCK_TRIES: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The name of a question: the numbers of its effect, and the asker unless it is an agent in its turn or a member of a team.
#[must_use]
pub fn name(id: EffectId) -> String {
    let EffectId { item, round, actor, asker, n } = id;
    let whose = match asker {
        Asker::Agent | Asker::Member => String::new(),
        other => format!("{}-", other.name()),
    };
    format!("{whose}{item}-{round}-{actor}-{n}")
}

/// A question file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its name, used to answer it: item, round, agent (or member of the team), number.
    pub id: String,
    /// Who is asked: `human/NAME`.
    pub who: String,
    /// The purpose in a word; may be empty.
    pub purpose: String,
    /// The text that the person reads.
    pub prompt: String,
    /// The answers that fit, in words.
    pub form: String,
    /// The default without an answer, in words.
    pub default: String,
    /// When it was first written, in milliseconds since 1970.
    pub put_ms: u64,
    /// How long it waits from then on; forever if `None`.
    pub timeout_ms: Option<u64>,
    /// The request in the journal's form, for identification.
    request: String,
}

/// An answer file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// How the question ended.
    pub outcome: Outcome,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// How it arrived.
    pub by: String,
}

/// Why an answer was refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The question does not exist.
    #[error("there is no open question `{0}`; `polity answer RUN` without an id lists the open questions")]
    Unknown(String),
    /// It has been answered.
    #[error("{0}")]
    Already(String),
    /// It does not answer this question.
    #[error("the answer does not fit: {why}. Wanted: {form}")]
    Unfit {
        /// What is wrong.
        why: String,
        /// What fits.
        form: String,
    },
    /// The folder cannot be read or written.
    #[error("{0}")]
    Disk(#[from] io::Error),
}

/// The questions and answers of a run.
#[derive(Clone)]
pub struct Mailbox {
    disk: Arc<dyn Disk>,
    run: PathBuf,
}

impl Question {
    fn request(&self) -> Result<Request, String> {
        let bytes = BASE64_STANDARD.decode(&self.request).map_err(|why| why.to_string())?;
        postcard::from_bytes(&bytes).map_err(|why| why.to_string())
    }

    /// The form of the answer.
    ///
    /// # Errors
    /// A question of another build.
    pub fn format(&self) -> Result<ResponseFormat, String> {
        self.request().map(|request| request.response_format)
    }

    /// The values to ask one by one, each with its name (empty if there is only one) and the answers that fit.
    pub fn fields(&self) -> Result<Vec<(String, String)>, String> {
        self.request().map(|request| form::fields(&request.response_format))
    }
}

fn damaged(path: &Path, why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} cannot be read: {why}", path.display()))
}

impl Mailbox {
    /// Those of the run in this folder, which may not exist yet.
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

    /// Writes a question durably; an existing one stays unchanged, including its first time.
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
                false => Err(damaged(&path, "the run now asks a different question under this name")),
            };
        }
        let question = Question {
            id: name.clone(),
            who: request.model.to_string(),
            purpose: request.purpose.clone(),
            prompt: prompt(request),
            form: form(&request.response_format),
            default: in_words(default.as_ref(), request),
            put_ms: now_ms(),
            timeout_ms: timeout.map(|timeout| timeout.as_millis() as u64),
            request: request_text,
        };
        create_dir_durably(self.disk.as_ref(), &self.folder())?;
        self.write(&name, QUESTION, &question)?;
        Ok(question)
    }

    /// The answer, if any.
    pub fn given(&self, id: EffectId) -> io::Result<Option<Given>> {
        self.read(&name(id), ANSWER)
    }

    /// Unanswered questions, oldest first.
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

    /// Accepts a person's answer if it fits: durable when this returns. `by`: how it arrived.
    pub fn answer(&self, name: &str, words: &Words<'_>, by: &str) -> Result<(Question, Value), Refused> {
        let question = self.question(name)?;
        let path = self.folder().join(format!("{name}{QUESTION}"));
        let request = question.request().map_err(|why| damaged(&path, why))?;
        let unfit = |why: String| Refused::Unfit { why, form: question.form.clone() };
        let outcome = form::read(&request.response_format, words).map_err(unfit)?;
        let Outcome::Reply { value, .. } = &outcome else { return Err(unfit("it cannot be read".into())) };
        let value = value.clone();
        self.settle(name, Given { outcome, at_ms: now_ms(), by: by.to_owned() })?;
        Ok((question, value))
    }

    /// Ends a question on timeout, unless a person has just answered it.
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
                Outcome::Reply { .. } => format!("`{name}` was already answered (by {}): {words}", before.by),
                _ => format!("`{name}` has ended: {words}"),
            }));
        }
        self.write(name, ANSWER, &given)?;
        Ok(given)
    }
}

/// A conversation as shown to a person.
fn prompt(request: &Request) -> String {
    let message = |message: &polity_kernel::ask::ChatMessage| match message.role {
        Role::System | Role::User => message.rendered(),
        Role::Assistant => format!("You said:\n{}", message.rendered()),
    };
    request.messages.iter().map(message).collect::<Vec<_>>().join("\n\n")
}

/// Describes the default.
fn in_words(default: Option<&Value>, request: &Request) -> String {
    match default {
        None => "no default is declared; the agent continues without an answer".into(),
        Some(Value::Record(fields)) if fields.is_empty() => "nothing is done".into(),
        Some(Value::Number(x)) => x.to_string(),
        Some(value) => match value.to_json(&request.response_format) {
            serde_json::Value::String(text) => text,
            json => json.to_string(),
        },
    }
}

/// Counts how often each person is asked, for a line that names who is awaited.
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
    use polity_kernel::ask::{ChatMessage, ResponseFormat};
    use polity_store::disk::SimDisk;

    fn effect(response_format: ResponseFormat) -> Effect {
        let id = EffectId { item: 0, round: 3, actor: 17, asker: Asker::Agent, n: 0 };
        let request = Request::new("human/ann", vec![ChatMessage::text(Role::User, "How many?")], response_format);
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
        let put = mailbox.put(&effect(ResponseFormat::number(0.0, 100.0)), None).unwrap();
        assert_eq!((put.default.as_str(), put.prompt.as_str()), ("50", "How many?"));
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(mailbox.put(&effect(ResponseFormat::number(0.0, 100.0)), None).unwrap(), put);
        assert_eq!(mailbox.pending().unwrap(), std::slice::from_ref(&put));
        let unfit = typed(&mailbox, "101").unwrap_err().to_string();
        assert!(unfit.contains("101 lies outside 0 to 100") && unfit.contains("a number from 0 to 100"), "{unfit}");
        assert_eq!(typed(&mailbox, " 42 ").unwrap(), Value::Number(42.0));
        let twice = typed(&mailbox, "43").unwrap_err().to_string();
        assert!(twice.contains("already") && twice.contains("42"), "{twice}");
        assert!(mailbox.pending().unwrap().is_empty());
        // Too late: the run has already ended it.
        let held = mailbox.time_up(effect(ResponseFormat::Text).id, "late".into()).unwrap();
        assert!(matches!(held.outcome, Outcome::Reply { .. }));
        // Another question of the same name is not confused with it.
        assert!(mailbox.put(&effect(ResponseFormat::number(0.0, 99.0)), None).is_err());
    }

    #[test]
    fn bounds_without_end_survive_the_folder() {
        let mailbox = Mailbox::of(Arc::new(SimDisk::default()), Path::new("run"));
        mailbox.put(&effect(ResponseFormat::number(f64::NEG_INFINITY, f64::INFINITY)), None).unwrap();
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
