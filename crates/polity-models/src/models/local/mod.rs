//! Models inside this process: language models from GGUF files (`local/models/tiny.gguf`), and embedding models from folders
//! (`local/models/all-MiniLM-L6-v2`). See README.md.

mod chat;
mod header;
mod model;
mod sentence;
mod vocabulary;

use super::capabilities::Capabilities;
use super::choice::{draws, listed};
use super::form::{Forms, in_words};
use super::provider::{Answering, Exchange, LOCAL, Probing, Provider, ProviderError};
use super::received::{End, Told};
use super::wire::{LONGEST_REPLY, Turn, embedded, text_of};
use model::{Model, Sampling, pick};
use polity_kernel::ask::{Constrain, Effect, Outcome, Request, ResponseFormat, Role, Usage, Value};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::Price;
use ring::digest::{Context, Digest, SHA256};
use sentence::{Layout, Sentences};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;
use std::time::Instant;
use tokio::sync::Semaphore;

/// Bytes hashed at a time.
const PIECE: usize = 1 << 20;

/// The provider `local`.
pub struct Local {
    paths: Mutex<BTreeMap<PathBuf, Arc<OfPath>>>,
    /// Concurrently computed models: more would only compete for processors and memory.
    room: Semaphore,
}

/// A file or folder; each part is read once, when first needed.
struct OfPath {
    path: PathBuf,
    usable: OnceLock<Result<(), String>>,
    digest: OnceLock<Option<String>>,
    model: OnceLock<Result<Behind, String>>,
    forms: Forms,
}

/// What a path holds.
enum Behind {
    /// A file: a language model.
    Chat(Box<Model>),
    /// A folder: an embedding model.
    Sentences(Box<Sentences>),
}

impl Local {
    /// Reads no file before a model is named.
    #[must_use]
    pub fn standard() -> Self {
        let at_once = available_parallelism().map_or(1, NonZero::get);
        Local { paths: Mutex::default(), room: Semaphore::new(at_once) }
    }

    fn of(&self, model: &str) -> Arc<OfPath> {
        let path = Path::new(model.split_once('/').map_or("", |(_, path)| path));
        // The guarded data is valid even after a panic.
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let path = path.to_owned();
            Arc::new(OfPath {
                path,
                usable: OnceLock::new(),
                digest: OnceLock::new(),
                model: OnceLock::new(),
                forms: Forms::default(),
            })
        };
        paths.entry(path.to_owned()).or_insert_with(new).clone()
    }
}

impl OfPath {
    /// Checks it as far as possible without the weights.
    fn usable(&self) -> Result<(), String> {
        let look = || {
            if self.path.is_dir() {
                return Layout::open(&self.path).map(|_| ());
            }
            let (metadata, _) = header::Metadata::open(&self.path)?;
            let lacks = |why: String| format!("{} cannot be used: {why}", self.path.display());
            vocabulary::Vocabulary::of(&metadata).map(|_| ()).map_err(lacks)
        };
        self.usable.get_or_init(look).clone()
    }

    /// The SHA-256 of its bytes in hexadecimal, as from `sha256sum`; for a folder, that of the `sha256sum` output for its files.
    fn digest(&self) -> Option<&str> {
        let hash = || {
            if !self.path.is_dir() {
                return Some(shown(&hashed(&self.path)?));
            }
            let mut hash = Context::new(&SHA256);
            for name in sentence::FILES {
                let path = self.path.join(name);
                if path.exists() {
                    hash.update(format!("{}  {name}\n", shown(&hashed(&path)?)).as_bytes());
                }
            }
            Some(shown(&hash.finish()))
        };
        self.digest.get_or_init(hash).as_deref()
    }

    /// Its capabilities, if it can be used.
    fn capabilities(&self) -> Option<Capabilities> {
        let (speaks, context) = match self.path.is_dir() {
            true => (false, Layout::open(&self.path).ok()?.longest),
            false => (true, header::Metadata::open(&self.path).ok()?.0.context()),
        };
        Some(Capabilities {
            tools: Some(false),
            known: true,
            schema: Some(speaks),
            choice: Some(speaks),
            grammar: Some(false),
            logprobs: Some(false),
            logit_bias: Some(false),
            seed: Some(speaks),
            context: Some(context as u64),
            weights: Some(self.digest()?.to_owned()),
        })
    }

    fn read(&self) -> Result<Behind, String> {
        match self.path.is_dir() {
            true => Ok(Behind::Sentences(Box::new(Sentences::read(&self.path)?))),
            false => Ok(Behind::Chat(Box::new(Model::read(&self.path)?))),
        }
    }

    /// Answers, on a thread that may block.
    fn exchange(&self, asked: &Request, seed: u64) -> Result<Exchange, ProviderError> {
        let began = Instant::now();
        let fatal = |why: String| Err(ProviderError::Fatal { why });
        let (outcome, usage) = match (self.model.get_or_init(|| self.read()), &asked.response_format) {
            (Err(why), _) => return fatal(why.clone()),
            (Ok(Behind::Chat(_)), ResponseFormat::Vector) => {
                return fatal(only_speaks(&asked.model));
            }
            (Ok(Behind::Chat(model)), _) => self.say(model, asked, seed)?,
            (Ok(Behind::Sentences(model)), ResponseFormat::Vector) => {
                let (vector, tokens) = model.vector(&text_of(asked)).map_err(|why| self.never(&why))?;
                (embedded(vector), Usage { tokens_in: tokens as u64, ..Usage::default() })
            }
            (Ok(Behind::Sentences(_)), _) => {
                return fatal(format!(
                    "`{}` makes only embeddings of texts; for replies, name a GGUF file (`local/models/tiny.gguf`), or \
                     a model of another provider",
                    asked.model
                ));
            }
        };
        let latency_ms = began.elapsed().as_secs_f64() * 1e3;
        Ok(Exchange { outcome, usage: Usage { latency_ms, ..usage }, reasoning: None })
    }

    fn never(&self, why: &str) -> ProviderError {
        ProviderError::Never { why: format!("{}: {why}", self.path.display()) }
    }

    /// A model's reply and its usage.
    fn say(&self, model: &Model, asked: &Request, seed: u64) -> Result<(Outcome, Usage), ProviderError> {
        let never = |why: String| self.never(&why);
        let way = way(asked)?;
        let prompt = model.prompt(&turns(asked, way)).map_err(never)?;
        let sampling = Sampling {
            temperature: asked.settings.temperature.unwrap_or(0.0),
            top_p: asked.settings.top_p.unwrap_or(1.0),
        };
        // Depends only on the request, since equal requests may share an answer.
        let mut draws = draws(asked, seed);
        let (outcome, tokens_out) = match (way, &asked.response_format) {
            (Constrain::Choice, ResponseFormat::Choice(options)) => {
                let (weights, weighed) = model.weigh(&prompt, options).map_err(never)?;
                (chosen(options, &weights, sampling, &mut draws), weighed)
            }
            (_, response_format) => {
                let form = (way == Constrain::Schema).then(|| self.forms.of(response_format, true)).flatten();
                let schema = form.as_ref().map(|form| form.schema.as_ref());
                let longest = longest(asked) as usize;
                let written = model.write(&prompt, schema, longest, sampling, &mut draws).map_err(never)?;
                let end = match written.whole {
                    true => End::Whole,
                    false => End::Cut("max_tokens, or all that its context holds".into()),
                };
                let text = model.vocabulary.text(&written.tokens).map_err(never)?;
                let told = Told { text: Some(text.clone()), end, ..Told::default() };
                (told.outcome(response_format, &text), written.tokens.len())
            }
        };
        let (tokens_in, tokens_out) = (prompt.len() as u64, tokens_out as u64);
        Ok((outcome, Usage { tokens_in, tokens_out, ..Usage::default() }))
    }
}

/// The error for a file where a folder is needed.
fn only_speaks(model: &str) -> String {
    format!(
        "`{model}` is a language model and makes no embeddings of texts: name a folder with a sentence-embedding model \
         (`local/models/all-MiniLM-L6-v2`), or a model of another provider"
    )
}

/// The SHA-256 of a file's bytes.
fn hashed(path: &Path) -> Option<Digest> {
    let mut file = File::open(path).ok()?;
    let mut hash = Context::new(&SHA256);
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).ok()? {
            0 => return Some(hash.finish()),
            bytes => hash.update(piece.get(..bytes)?),
        }
    }
}

/// In hexadecimal.
fn shown(digest: &Digest) -> String {
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The conversation, with the required form of the reply.
fn turns(asked: &Request, way: Constrain) -> Vec<Turn> {
    let said = asked.messages.iter().map(|message| Turn::of(message, false));
    let form = match &asked.response_format {
        ResponseFormat::Choice(options) if way == Constrain::Choice => Some(listed(options)),
        response_format => in_words(response_format),
    };
    said.chain(form.map(|text| Turn::said(Role::User, text))).collect()
}

/// The option of the highest weight (ties go to the first), or one drawn by weight.
fn chosen(options: &[String], weights: &[f64], sampling: Sampling, draws: &mut Draws) -> Outcome {
    let shown = |(option, weight): (&String, &f64)| format!("{option:?} {weight:.4}");
    let raw = options.iter().zip(weights).map(shown).collect::<Vec<_>>().join(", ");
    match pick(weights, Sampling { top_p: 1.0, ..sampling }, draws) {
        Some(i) => Outcome::Reply { value: Value::Choice(i), raw, repaired: false },
        None => Outcome::Invalid { raw, why: "the model gives no option a probability".into() },
    }
}

/// The constraint mode of a request: as configured, else by options for choices and by schema for everything but text.
fn way(asked: &Request) -> Result<Constrain, ProviderError> {
    let choice = matches!(asked.response_format, ResponseFormat::Choice(_));
    match asked.settings.constrain {
        None | Some(Constrain::Choice) if choice => Ok(Constrain::Choice),
        Some(Constrain::Words) => Ok(Constrain::Words),
        Some(way @ (Constrain::Grammar | Constrain::Logprobs)) if choice => Err(ProviderError::Fatal {
            why: format!(
                "`constrain: {}` is not supported by `local/...`: leave it out (each option is weighed by the model's \
                 own probability), or set it to one of choice, schema, words",
                way.name()
            ),
        }),
        _ => Ok(Constrain::Schema),
    }
}

/// Maximum tokens of a reply.
fn longest(asked: &Request) -> u64 {
    asked.settings.max_tokens.unwrap_or(LONGEST_REPLY)
}

impl Provider for Local {
    fn name(&self) -> &'static str {
        LOCAL
    }

    fn check(&self, model: &str) -> Result<(), String> {
        self.of(model).usable().map_err(|why| format!("`{model}`: {why}"))
    }

    fn makes_vectors(&self, model: &str) -> Result<(), String> {
        if self.of(model).path.is_dir() { Ok(()) } else { Err(only_speaks(model)) }
    }

    fn most(&self, request: &Request) -> Usage {
        // A token has at least one byte; a template adds some around each message.
        let messages: usize = request.messages.iter().map(|message| message.rendered().len() + 64).sum();
        let form = in_words(&request.response_format).map_or(0, |form| form.len() + 64);
        let options = match &request.response_format {
            ResponseFormat::Choice(options) => options.iter().map(|option| option.len() + 2).sum(),
            _ => 0,
        };
        let tokens_out =
            if request.response_format == ResponseFormat::Vector { 0 } else { longest(request).max(options as u64) };
        Usage { tokens_in: (messages + form + 64) as u64, tokens_out, ..Usage::default() }
    }

    fn tells_costs(&self) -> bool {
        false
    }

    fn list_price(&self, _: &str) -> Option<Price> {
        Some(Price { input: 0.0, output: 0.0, cached: None })
    }

    /// The digest of the file or folder, wherever it is.
    fn address(&self, model: &str) -> Option<String> {
        let behind = self.of(model);
        Some(format!("{LOCAL} {}", behind.digest()?))
    }

    fn simulated(&self) -> bool {
        false
    }

    fn probe<'a>(&'a self, model: &'a str) -> Probing<'a> {
        let behind = self.of(model);
        Box::pin(async move { tokio::task::spawn_blocking(move || behind.capabilities()).await.ok().flatten() })
    }

    fn answer<'a>(&'a self, effect: &'a Effect, seed: u64) -> Answering<'a> {
        Box::pin(async move {
            let (behind, asked) = (self.of(&effect.request.model), effect.request.clone());
            let broken = |why: String| ProviderError::Fatal {
                why: format!(
                    "`{}` stopped unexpectedly, perhaps because one of its files is damaged: {why}",
                    effect.request.model
                ),
            };
            let _room = self.room.acquire().await.map_err(|error| broken(error.to_string()))?;
            let answering = tokio::task::spawn_blocking(move || behind.exchange(&asked, seed));
            answering.await.map_err(|error| broken(error.to_string()))?
        })
    }
}
