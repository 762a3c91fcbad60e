//! An optional cache of answers across runs: one file each, named by request and server.
//!
//! The key is the text of a request ([`Key`]); the entry repeats it, so that requests cannot be confused. Entries are written to a
//! temporary file and renamed, so several processes may share a folder. An unreadable entry is reported, requested again and overwritten;
//! a failing cache never stops a run.

use super::Notes;
use polity_kernel::ask::{Outcome, Request, Usage};
use polity_kernel::digest::Digest;
use polity_models::models::Exchange;
use polity_store::digest_of;
use polity_store::disk::{Disk, create_dir_durably};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The start of an entry; the number is its format version.
const MAGIC: &[u8] = b"polity answer 2\n";
/// Maximum bytes of an entry: an answer has ten million, and a request need not be longer.
const LONGEST: u64 = 64_000_000;

/// What an answer depends on: the server, the request and the sample number, but not the asker or the purpose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Compared first: most requests begin alike.
    pub(super) digest: Digest,
    words: Arc<[u8]>,
}

impl Key {
    /// `None` if the request has no bytes, which does not happen.
    pub(super) fn of(address: &str, request: &Request) -> Option<Key> {
        let Request { model, messages, response_format, settings, sample, purpose: _, step: _ } = request;
        let words = postcard::to_allocvec(&(address, model, messages, response_format, settings, sample)).ok()?;
        Some(Key { digest: digest_of(&words), words: words.into() })
    }

    fn name(&self) -> String {
        self.digest.to_string()
    }
}

/// A folder of cached answers.
pub(super) struct Cache {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    notes: Notes,
}

impl Cache {
    pub(super) fn new(disk: Arc<dyn Disk>, folder: &Path, notes: Notes) -> Self {
        Cache { disk, folder: folder.to_path_buf(), notes }
    }

    fn path(&self, key: &Key) -> PathBuf {
        let name = key.name();
        let part: String = name.chars().take(2).collect();
        self.folder.join(part).join(name)
    }

    /// The cached answer to a request.
    pub(super) fn get(&self, key: &Key) -> Option<Exchange> {
        let path = self.path(key);
        let bytes = match self.disk.len(&path) {
            Ok(bytes) if bytes <= LONGEST => self.disk.read(&path),
            Ok(_) => Err(ErrorKind::FileTooLarge.into()),
            Err(error) => Err(error),
        };
        let read = match bytes {
            Ok(bytes) => read(&bytes, key).map_err(str::to_owned),
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => Err(error.to_string()),
        };
        read.map_err(|why| {
            self.notes.tell(&format!("entries of the cache {} cannot be used: {why}", self.folder.display()));
        })
        .ok()
    }

    /// Stores a reply; nothing else is cached.
    pub(super) fn put(&self, key: &Key, exchange: &Exchange) {
        if !matches!(exchange.outcome, Outcome::Reply { .. }) {
            return;
        }
        if let Err(error) = self.write(key, exchange) {
            self.notes.tell(&format!("answers cannot be saved in the cache {}: {error}", self.folder.display()));
        }
    }

    fn write(&self, key: &Key, exchange: &Exchange) -> std::io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Exchange { outcome, usage, reasoning } = exchange;
        let payload = (key.words.as_ref(), outcome, usage, reasoning);
        let payload = postcard::to_allocvec(&payload).map_err(std::io::Error::other)?;
        let path = self.path(key);
        create_dir_durably(self.disk.as_ref(), path.parent().unwrap_or(&self.folder))?;
        // A unique name: another process may be writing the same entry.
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{}-{n}.tmp", std::process::id()));
        let write = || {
            let mut file = self.disk.create(&temporary)?;
            file.write_all(MAGIC)?;
            file.write_all(format!("{}\n", digest_of(&payload)).as_bytes())?;
            file.write_all(&payload)?;
            drop(file);
            // Not synced: the digest reveals an entry damaged by a power loss.
            self.disk.rename(&temporary, &path)
        };
        write().inspect_err(|_| {
            // Free the space on a full disk.
            let _ = self.disk.remove_file(&temporary);
        })
    }
}

fn read(bytes: &[u8], key: &Key) -> Result<Exchange, &'static str> {
    let damaged = "they are damaged";
    let rest = bytes.strip_prefix(MAGIC).ok_or("they are damaged, or of another version")?;
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or(damaged)?;
    let (digest, payload) = rest.split_at(end);
    let payload = payload.get(1..).ok_or(damaged)?;
    if digest != digest_of(payload).to_string().as_bytes() {
        return Err(damaged);
    }
    let (asked, outcome, usage, reasoning): (Vec<u8>, Outcome, Usage, Option<String>) =
        postcard::from_bytes(payload).map_err(|_| damaged)?;
    match (asked == *key.words, &outcome) {
        (true, Outcome::Reply { .. }) => Ok(Exchange { outcome, usage, reasoning }),
        _ => Err("they belong to other questions"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use polity_kernel::ask::{ChatMessage, ResponseFormat, Role, Settings, Step, Value};
    use polity_store::disk::SimDisk;

    fn request() -> Request {
        Request::new("openai/m", vec![ChatMessage::text(Role::User, "How many?")], ResponseFormat::number(0.0, 10.0))
    }

    #[test]
    fn a_key_is_of_all_that_an_answer_depends_on() {
        let key = |request: &Request| Key::of("http://here/v1", request).unwrap();
        let same =
            Request { purpose: "guess".into(), step: Some(Step { nth: 0, last: false, default: true }), ..request() };
        assert_eq!(key(&request()), key(&same));
        let others = [
            Request { sample: 1, ..request() },
            Request { model: "openai/n".into(), ..request() },
            Request { response_format: ResponseFormat::number(0.0, 11.0), ..request() },
            Request { settings: Settings { temperature: Some(0.0), ..Settings::default() }, ..request() },
            Request { messages: vec![ChatMessage::text(Role::System, "How many?")].into(), ..request() },
        ];
        for other in others {
            assert_ne!(key(&request()), key(&other));
        }
        assert_ne!(key(&request()), Key::of("http://there/v1", &request()).unwrap());
    }

    #[test]
    fn replies_come_back_and_nothing_else_is_kept() {
        let cache = Cache::new(Arc::new(SimDisk::default()), Path::new("kept"), Notes::default());
        let key = Key::of("http://here/v1", &request()).unwrap();
        assert_eq!(cache.get(&key), None);
        let usage = Usage { tokens_in: 7, cost_usd: 0.1 + 0.2, ..Usage::default() };
        let exchange = |outcome| Exchange { outcome, usage, reasoning: Some("I count.".into()) };
        cache.put(&key, &exchange(Outcome::Invalid { raw: "x".into(), why: "no".into() }));
        assert_eq!(cache.get(&key), None);
        let reply = Outcome::Reply { value: Value::Number(0.1 + 0.2), raw: "0.3".into(), repaired: false };
        let reply = exchange(reply);
        cache.put(&key, &reply);
        assert_eq!(cache.get(&key), Some(reply.clone()));
        // Damaged at any byte, it is not used, and the next answer repairs it.
        let whole = cache.disk.read(&cache.path(&key)).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            cache.disk.create(&cache.path(&key)).unwrap().write_all(&bytes).unwrap();
            assert_eq!(cache.get(&key), None, "byte {at}");
        }
        cache.put(&key, &reply);
        assert!(cache.get(&key).is_some());
        // In another entry's place, it is not confused with that one.
        let other = Key::of("http://here/v1", &Request { sample: 1, ..request() }).unwrap();
        cache.disk.create_dir_all(cache.path(&other).parent().unwrap()).unwrap();
        cache.disk.create(&cache.path(&other)).unwrap().write_all(&whole).unwrap();
        assert_eq!(cache.get(&other), None);
    }
}
