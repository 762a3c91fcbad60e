//! Models inside this process: those that speak, from GGUF files (`local/models/tiny.gguf`), and those that make vectors of texts, from
//! folders (`local/models/all-MiniLM-L6-v2`). See README.md.

mod chat;
mod header;
mod model;
mod sentence;
mod vocabulary;

use super::choice::{draws, listed};
use super::form::{Forms, in_words};
use super::received::{End, Told};
use super::remote::{LONGEST_REPLY, Turn, embedded, text_of};
use super::{Answering, Capabilities, Exchange, LOCAL, Probing, Provider, Trouble};
use model::{Model, Sampling, pick};
use polity_kernel::ask::{Constrain, Effect, Outcome, Request, Role, Usage, Value, Want};
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

/// Bytes of a file that are hashed at a time.
const PIECE: usize = 1 << 20;

/// The provider `local`.
pub struct Local {
    paths: Mutex<BTreeMap<PathBuf, Arc<OfPath>>>,
    /// Models computed at once: more would only take each other's processors and memory.
    room: Semaphore,
}

/// A file or a folder, each part of it read when it is first needed, and once.
struct OfPath {
    path: PathBuf,
    usable: OnceLock<Result<(), String>>,
    digest: OnceLock<Option<String>>,
    model: OnceLock<Result<Behind, String>>,
    forms: Forms,
}

/// What lies behind a path.
enum Behind {
    /// Of a file: it speaks.
    Chat(Box<Model>),
    /// Of a folder: it makes vectors of texts.
    Sentences(Box<Sentences>),
}

impl Local {
    /// No file is read before a model is named.
    #[must_use]
    pub fn standard() -> Self {
        let at_once = available_parallelism().map_or(1, NonZero::get);
        Local { paths: Mutex::default(), room: Semaphore::new(at_once) }
    }

    fn of(&self, model: &str) -> Arc<OfPath> {
        let path = Path::new(model.split_once('/').map_or("", |(_, path)| path));
        // Names and what was read are behind it: they are as good after a panic as before.
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
    /// What is wrong with it, as far as can be told without the weights.
    fn usable(&self) -> Result<(), String> {
        let look = || {
            if self.path.is_dir() {
                return Layout::open(&self.path).map(|_| ());
            }
            let (metadata, _) = header::Metadata::open(&self.path)?;
            let lacks = |why: String| format!("{} can not be used: {why}", self.path.display());
            vocabulary::Vocabulary::of(&metadata).map(|_| ()).map_err(lacks)
        };
        self.usable.get_or_init(look).clone()
    }

    /// The SHA-256 of its bytes, in hexadecimal, as `sha256sum` tells it; of a folder that of what `sha256sum` tells of its files.
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

    /// What is known of it, if it can be used.
    fn capabilities(&self) -> Option<Capabilities> {
        let (speaks, context) = match self.path.is_dir() {
            true => (false, Layout::open(&self.path).ok()?.longest),
            false => (true, header::Metadata::open(&self.path).ok()?.0.context()),
        };
        Some(Capabilities {
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

    /// Answers, on a thread that may take its time.
    fn exchange(&self, asked: &Request, seed: u64) -> Result<Exchange, Trouble> {
        let began = Instant::now();
        let fatal = |why: String| Err(Trouble::Fatal { why });
        let (outcome, usage) = match (self.model.get_or_init(|| self.read()), &asked.want) {
            (Err(why), _) => return fatal(why.clone()),
            (Ok(Behind::Chat(_)), Want::Vector) => {
                return fatal(only_speaks(&asked.model));
            }
            (Ok(Behind::Chat(model)), _) => self.say(model, asked, seed)?,
            (Ok(Behind::Sentences(model)), Want::Vector) => {
                let (vector, tokens) = model.vector(&text_of(asked)).map_err(|why| self.never(&why))?;
                (embedded(vector), Usage { tokens_in: tokens as u64, ..Usage::default() })
            }
            (Ok(Behind::Sentences(_)), _) => {
                return fatal(format!(
                    "`{}` makes vectors of texts only; a mind needs a GGUF file (`local/models/tiny.gguf`), or a model of another provider",
                    asked.model
                ));
            }
        };
        let latency_ms = began.elapsed().as_secs_f64() * 1e3;
        Ok(Exchange { outcome, usage: Usage { latency_ms, ..usage } })
    }

    fn never(&self, why: &str) -> Trouble {
        Trouble::Never { why: format!("{}: {why}", self.path.display()) }
    }

    /// What a model says, and what it took.
    fn say(&self, model: &Model, asked: &Request, seed: u64) -> Result<(Outcome, Usage), Trouble> {
        let never = |why: String| self.never(&why);
        let way = way(asked)?;
        let prompt = model.prompt(&turns(asked, way)).map_err(never)?;
        let sampling = Sampling {
            temperature: asked.settings.temperature.unwrap_or(0.0),
            top_p: asked.settings.top_p.unwrap_or(1.0),
        };
        // Who asks must not count: the same request may share an answer.
        let mut draws = draws(asked, seed);
        let (outcome, tokens_out) = match (way, &asked.want) {
            (Constrain::Choice, Want::Choice(options)) => {
                let (weights, weighed) = model.weigh(&prompt, options).map_err(never)?;
                (chosen(options, &weights, sampling, &mut draws), weighed)
            }
            (_, want) => {
                let form = (way == Constrain::Schema).then(|| self.forms.of(want, true)).flatten();
                let schema = form.as_ref().map(|form| form.schema.as_ref());
                let longest = longest(asked) as usize;
                let written = model.write(&prompt, schema, longest, sampling, &mut draws).map_err(never)?;
                let end = match written.whole {
                    true => End::Whole,
                    false => End::Cut("max_tokens, or all that its context holds".into()),
                };
                let text = model.vocabulary.text(&written.tokens).map_err(never)?;
                let told = Told { text: Some(text.clone()), end, ..Told::default() };
                (told.outcome(want, &text), written.tokens.len())
            }
        };
        let (tokens_in, tokens_out) = (prompt.len() as u64, tokens_out as u64);
        Ok((outcome, Usage { tokens_in, tokens_out, ..Usage::default() }))
    }
}

/// What is said of a file where a folder is needed.
fn only_speaks(model: &str) -> String {
    format!(
        "`{model}` speaks, and makes no vectors of texts (embeddings): name a folder with a sentence-embedding model \
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

/// What is said, and in which form the reply is wanted.
fn turns(asked: &Request, way: Constrain) -> Vec<Turn> {
    let said = asked.messages.iter().map(|message| Turn { role: message.role, text: message.rendered() });
    let form = match &asked.want {
        Want::Choice(options) if way == Constrain::Choice => Some(listed(options)),
        want => in_words(want),
    };
    said.chain(form.map(|text| Turn { role: Role::User, text })).collect()
}

/// The option of the highest weight, the first of equals; or drawn by their weights.
fn chosen(options: &[String], weights: &[f64], sampling: Sampling, draws: &mut Draws) -> Outcome {
    let shown = |(option, weight): (&String, &f64)| format!("{option:?} {weight:.4}");
    let raw = options.iter().zip(weights).map(shown).collect::<Vec<_>>().join(", ");
    match pick(weights, Sampling { top_p: 1.0, ..sampling }, draws) {
        Some(i) => Outcome::Reply { value: Value::Choice(i), raw, repaired: false },
        None => Outcome::Invalid { raw, why: "the model gives no option a probability".into() },
    }
}

/// How a request is held to its form: choices by their options, all else that is no text by its schema; or as it is set.
fn way(asked: &Request) -> Result<Constrain, Trouble> {
    let choice = matches!(asked.want, Want::Choice(_));
    match asked.settings.constrain {
        None | Some(Constrain::Choice) if choice => Ok(Constrain::Choice),
        Some(Constrain::Words) => Ok(Constrain::Words),
        Some(way @ (Constrain::Grammar | Constrain::Logprobs)) if choice => Err(Trouble::Fatal {
            why: format!(
                "`constrain: {}` is nothing that `local/...` has: leave it out (each option is weighed by the model's own probability), or \
                 set one of choice, schema, words",
                way.name()
            ),
        }),
        _ => Ok(Constrain::Schema),
    }
}

/// Tokens of a reply at most.
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
        // A token has a byte at least; a template puts some around each message.
        let messages: usize = request.messages.iter().map(|message| message.rendered().len() + 64).sum();
        let form = in_words(&request.want).map_or(0, |form| form.len() + 64);
        let options = match &request.want {
            Want::Choice(options) => options.iter().map(|option| option.len() + 2).sum(),
            _ => 0,
        };
        let tokens_out = if request.want == Want::Vector { 0 } else { longest(request).max(options as u64) };
        Usage { tokens_in: (messages + form + 64) as u64, tokens_out, ..Usage::default() }
    }

    fn tells_costs(&self) -> bool {
        false
    }

    fn list_price(&self, _: &str) -> Option<Price> {
        Some(Price { input: 0.0, output: 0.0, cached: None })
    }

    /// The bytes of the file or folder, wherever it lies.
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
            let broken = |why: String| Trouble::Fatal {
                why: format!("`{}` broke off, as it may when a file of it is damaged: {why}", effect.request.model),
            };
            let _room = self.room.acquire().await.map_err(|error| broken(error.to_string()))?;
            let answering = tokio::task::spawn_blocking(move || behind.exchange(&asked, seed));
            answering.await.map_err(|error| broken(error.to_string()))?
        })
    }
}
