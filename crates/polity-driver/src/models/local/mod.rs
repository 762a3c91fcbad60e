//! Models inside this process, from GGUF files: `local/models/tiny.gguf`. See README.md.

mod chat;
mod header;
mod model;
mod vocabulary;

use super::choice::{draws, listed};
use super::form::{Forms, in_words};
use super::received::{End, Told};
use super::remote::{LONGEST_REPLY, Turn};
use super::{Answering, Capabilities, Exchange, LOCAL, Probing, Provider, Trouble};
use model::{Model, Sampling, pick};
use polity_kernel::ask::{Constrain, Effect, Outcome, Request, Role, Usage, Value, Want};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::Price;
use ring::digest::{Context, SHA256};
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
    files: Mutex<BTreeMap<PathBuf, Arc<OfFile>>>,
    /// Models computed at once: more would only take each other's processors and memory.
    room: Semaphore,
}

/// A file, each part of it read when it is first needed, and once.
struct OfFile {
    path: PathBuf,
    usable: OnceLock<Result<(), String>>,
    digest: OnceLock<Option<String>>,
    model: OnceLock<Result<Model, String>>,
    forms: Forms,
}

impl Local {
    /// No file is read before a model is named.
    #[must_use]
    pub fn standard() -> Self {
        let at_once = available_parallelism().map_or(1, NonZero::get);
        Local { files: Mutex::default(), room: Semaphore::new(at_once) }
    }

    fn of(&self, model: &str) -> Arc<OfFile> {
        let path = Path::new(model.split_once('/').map_or("", |(_, path)| path));
        // Names and what was read are behind it: they are as good after a panic as before.
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let path = path.to_owned();
            Arc::new(OfFile {
                path,
                usable: OnceLock::new(),
                digest: OnceLock::new(),
                model: OnceLock::new(),
                forms: Forms::default(),
            })
        };
        files.entry(path.to_owned()).or_insert_with(new).clone()
    }
}

impl OfFile {
    /// What is wrong with the file, as far as its head tells.
    fn usable(&self) -> Result<(), String> {
        let look = || {
            let (metadata, _) = header::Metadata::open(&self.path)?;
            let lacks = |why: String| format!("{} can not be used: {why}", self.path.display());
            vocabulary::Vocabulary::of(&metadata).map(|_| ()).map_err(lacks)
        };
        self.usable.get_or_init(look).clone()
    }

    /// The SHA-256 of its bytes, in hexadecimal, as `sha256sum` tells it.
    fn digest(&self) -> Option<&str> {
        let hash = || {
            let mut file = File::open(&self.path).ok()?;
            let mut hash = Context::new(&SHA256);
            let mut piece = vec![0; PIECE];
            loop {
                match file.read(&mut piece).ok()? {
                    0 => break,
                    bytes => hash.update(piece.get(..bytes)?),
                }
            }
            Some(hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
        };
        self.digest.get_or_init(hash).as_deref()
    }

    /// Answers, on a thread that may take its time.
    fn exchange(&self, asked: &Request, seed: u64) -> Result<Exchange, Trouble> {
        let began = Instant::now();
        let model = self.model.get_or_init(|| Model::read(&self.path));
        let model = model.as_ref().map_err(|why| Trouble::Fatal { why: why.clone() })?;
        let way = way(asked)?;
        let never = |why: String| Trouble::Never { why: format!("{}: {why}", self.path.display()) };
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
                let schema = (way == Constrain::Schema).then(|| self.forms.of(want, true)).flatten();
                let longest = longest(asked) as usize;
                let written = model.write(&prompt, schema.as_deref(), longest, sampling, &mut draws).map_err(never)?;
                let end = match written.whole {
                    true => End::Whole,
                    false => End::Cut("max_tokens, or all that its context holds".into()),
                };
                let text = model.vocabulary.text(&written.tokens).map_err(never)?;
                let told = Told { text: Some(text.clone()), end, ..Told::default() };
                (told.outcome(want, &text), written.tokens.len())
            }
        };
        let latency_ms = began.elapsed().as_secs_f64() * 1e3;
        let (tokens_in, tokens_out) = (prompt.len() as u64, tokens_out as u64);
        Ok(Exchange { outcome, usage: Usage { tokens_in, tokens_out, latency_ms, ..Usage::default() } })
    }
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

    fn most(&self, request: &Request) -> Usage {
        // A token has a byte at least; a template puts some around each message.
        let messages: usize = request.messages.iter().map(|message| message.rendered().len() + 64).sum();
        let form = in_words(&request.want).map_or(0, |form| form.len() + 64);
        let options = match &request.want {
            Want::Choice(options) => options.iter().map(|option| option.len() + 2).sum(),
            _ => 0,
        };
        Usage {
            tokens_in: (messages + form + 64) as u64,
            tokens_out: longest(request).max(options as u64),
            ..Usage::default()
        }
    }

    fn tells_costs(&self) -> bool {
        false
    }

    fn list_price(&self, _: &str) -> Option<Price> {
        Some(Price { input: 0.0, output: 0.0, cached: None })
    }

    /// The file's bytes, wherever it lies.
    fn address(&self, model: &str) -> Option<String> {
        let file = self.of(model);
        Some(format!("{LOCAL} {}", file.digest()?))
    }

    fn simulated(&self) -> bool {
        false
    }

    fn probe<'a>(&'a self, model: &'a str) -> Probing<'a> {
        let file = self.of(model);
        Box::pin(async move {
            let look = move || {
                let (metadata, _) = header::Metadata::open(&file.path).ok()?;
                Some(Capabilities {
                    known: true,
                    schema: Some(true),
                    choice: Some(true),
                    grammar: Some(false),
                    logprobs: Some(false),
                    logit_bias: Some(false),
                    seed: Some(true),
                    context: Some(metadata.context() as u64),
                    weights: Some(file.digest()?.to_owned()),
                })
            };
            tokio::task::spawn_blocking(look).await.ok().flatten()
        })
    }

    fn answer<'a>(&'a self, effect: &'a Effect, seed: u64) -> Answering<'a> {
        Box::pin(async move {
            let (file, asked) = (self.of(&effect.request.model), effect.request.clone());
            let broken = |why: String| Trouble::Fatal {
                why: format!("`{}` broke off, as it may when its file is damaged: {why}", effect.request.model),
            };
            let _room = self.room.acquire().await.map_err(|error| broken(error.to_string()))?;
            let answering = tokio::task::spawn_blocking(move || file.exchange(&asked, seed));
            answering.await.map_err(|error| broken(error.to_string()))?
        })
    }
}
