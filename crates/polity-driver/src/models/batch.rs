//! Batches: many questions sent together, answered within a day, for a part of the price. What is the same on every wire; what differs is
//! a wire's [`BatchWire`].

use super::line::Payload;
use super::received::Received;
use super::remote::{Remote, Settings, Wire};
use super::{Exchange, Trouble};
use http::header::HeaderMap;
use polity_kernel::ask::{Constrain, Effect, Request};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

/// Pages of a list of batches at most; the newest come first.
const PAGES: usize = 50;
/// How far the clocks of a provider and of this machine may be apart, in milliseconds.
const CLOCKS: u64 = 3_600_000;

/// A future of something that a provider is asked for.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, Trouble>> + Send + 'a>>;

/// What of each question came: an exchange, or why there is none, by the name of its line.
pub type Results = BTreeMap<String, Result<Exchange, Trouble>>;

/// A provider's batches.
pub trait Batching: Send + Sync {
    /// Questions of a batch at most, and bytes of its lines.
    fn holds(&self) -> (usize, usize);
    /// A question as a line of a batch. `name`: letters, digits and hyphens, 64 at most; none twice in a batch.
    fn line(&self, name: &str, effect: &Effect) -> Result<String, Trouble>;
    /// Sends lines, all of one model (full name), as a batch of this name; its id. [`Trouble::Retry`] with `charged`: it may be there all
    /// the same.
    fn send<'a>(&'a self, name: &'a str, model: &'a str, lines: &'a [String]) -> Doing<'a, String>;
    /// Looks for a batch that may have been sent, by its name, the number of its lines, and when it was (in milliseconds since 1970). The
    /// names of its lines begin with its own.
    fn find<'a>(&'a self, name: &'a str, lines: usize, since_ms: u64) -> Doing<'a, Found>;
    /// How a batch stands.
    fn standing<'a>(&'a self, id: &'a str) -> Doing<'a, Standing>;
    /// What came of the questions of a batch that has ended; `asked` are those that are looked at, by the names of their lines.
    fn results<'a>(&'a self, from: &'a [Vec<String>], asked: &'a BTreeMap<String, &'a Effect>) -> Doing<'a, Results>;
}

/// Whether a batch is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is, under this id.
    There(String),
    /// It is not.
    Nowhere,
    /// One may be it, which shows when that one has ended.
    Unsure,
}

/// How a batch stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Its id.
    pub id: String,
    /// The name with which it was sent, where the wire keeps that.
    pub name: Option<String>,
    /// Questions, as far as they are counted yet.
    pub lines: usize,
    /// Of these, those that are answered or failed.
    pub ended: usize,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// How long the provider asks to wait before it is asked again, in milliseconds.
    pub after_ms: Option<u64>,
    /// Whether its results are there.
    pub state: State,
}

/// Whether a batch's results are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Not yet.
    Working,
    /// They are, at these places; of a question that is in none there is no result.
    Ended(Vec<Vec<String>>),
    /// There are none, and will be none; nothing was charged.
    Failed {
        /// In the provider's words.
        why: String,
        /// Whether it was only too much at once.
        crowded: bool,
    },
}

/// What a line of results says of its question.
pub enum LineResult {
    /// A status and a body, as if it had been asked alone.
    Answer(u16, String),
    /// It was not answered, and may be asked again.
    Lapsed(String),
}

/// What goes into the order of a batch.
pub enum Lines<'a> {
    /// The lines themselves.
    Here(&'a [String]),
    /// The id of the file into which they were put.
    File(&'a str),
}

/// A wire's batches: where they are, and what is said of them. Pure.
pub trait BatchWire: Sync {
    /// Questions of a batch at most, and bytes, as its provider publishes them.
    fn holds(&self) -> (usize, usize);
    /// A question as a line; it is put to `path` when it is asked alone.
    fn line(&self, name: &str, path: &[String], body: &RawValue) -> String;
    /// Where lines are put first as a file, if they are.
    fn files(&self) -> Option<Vec<String>>;
    /// Where batches are made and listed; one is below that, under its id.
    fn home(&self) -> Vec<String>;
    /// The order of a batch.
    fn order(&self, name: &str, path: &[String], lines: &Lines<'_>) -> String;
    /// What is told of a batch.
    fn standing(&self, told: &Json) -> Option<Standing>;
    /// The parameter of a list that names the last one of the page before.
    fn after(&self) -> &'static str;
    /// A line of results: its name, and what came.
    fn result(&self, line: &str) -> Option<(String, LineResult)>;
}

/// A wire's batches, or that it has none.
fn wire<W: Wire>() -> Result<&'static dyn BatchWire, Trouble> {
    W::batches().ok_or_else(|| Trouble::Fatal { why: format!("`{}` has no batches", W::HOME.name) })
}

impl<W: Wire> Remote<W> {
    /// An error of what is asked about batches.
    fn batch_error(&self, received: &Received) -> Trouble {
        match received.status {
            404 | 405 | 501 => Trouble::Fatal {
                why: format!(
                    "{} has no batches, or not this one (status {}): its batch endpoint is none, or what was sent was deleted there; \
                     with --batch=false questions are asked one by one",
                    received.url, received.status
                ),
            },
            _ => match received.error(&W::HOME) {
                // What is refused is the batch, with all that is in it.
                Trouble::Never { why } => {
                    Trouble::Fatal { why: format!("{why}. With --batch=false questions are asked one by one") }
                }
                // What was sent may have been done before something went wrong.
                Trouble::Retry { why, after_ms, .. } => Trouble::Retry { why, after_ms, charged: true },
                trouble => trouble,
            },
        }
    }

    async fn told(
        &self,
        path: &[String],
        query: &[(&str, &str)],
        payload: Payload,
    ) -> Result<(Json, Option<u64>), Trouble> {
        let received = self.line.first(path, query, payload).await?;
        if !received.is_answer() {
            return Err(self.line.scrubbed(self.batch_error(&received)));
        }
        let json = serde_json::from_str(&received.body).map_err(|error| Trouble::Retry {
            why: format!("{}: what it tells of batches is no JSON: {error}", received.url),
            after_ms: None,
            charged: true,
        })?;
        Ok((self.line.scrubbed_json(json), received.asks_to_wait()))
    }
}

/// Something else than was expected.
fn strange(what: &str, told: &Json) -> Trouble {
    let told: String = told.to_string().chars().take(300).collect();
    Trouble::Retry { why: format!("the answer names no {what}: {told}"), after_ms: None, charged: true }
}

/// A trouble that came before anything was ordered.
fn before_the_order(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Retry { why, after_ms, .. } => Trouble::Retry { why, after_ms, charged: false },
        other => other,
    }
}

impl<W: Wire> Batching for Remote<W> {
    fn holds(&self) -> (usize, usize) {
        W::batches().map_or((0, 0), BatchWire::holds)
    }

    fn line(&self, name: &str, effect: &Effect) -> Result<String, Trouble> {
        let wire = wire::<W>()?;
        // A batch has no streams.
        let settings = Settings { stream: false, ..self.settings.clone() };
        let mut question = self.put(&effect.request, self.way(&effect.request)?);
        question.settings = &settings;
        let body = serde_json::value::to_raw_value(&W::body(&question));
        let body = body.map_err(|error| Trouble::Never { why: format!("the request is no JSON: {error}") })?;
        Ok(wire.line(name, &W::path(question.model), &body))
    }

    fn send<'a>(&'a self, name: &'a str, model: &'a str, lines: &'a [String]) -> Doing<'a, String> {
        Box::pin(async move {
            let wire = wire::<W>()?;
            let path = W::path(self.short(model));
            let order = match wire.files() {
                None => wire.order(name, &path, &Lines::Here(lines)),
                Some(files) => {
                    let payload = Payload::File { name: format!("{name}.jsonl"), text: lines.join("\n") + "\n" };
                    let (told, _) = self.told(&files, &[], payload).await.map_err(before_the_order)?;
                    let file = told["id"].as_str().ok_or_else(|| before_the_order(strange("file", &told)))?;
                    wire.order(name, &path, &Lines::File(file))
                }
            };
            let (told, _) = self.told(&wire.home(), &[], Payload::Json(order)).await?;
            wire.standing(&told).map(|standing| standing.id).ok_or_else(|| strange("batch", &told))
        })
    }

    fn find<'a>(&'a self, name: &'a str, lines: usize, since_ms: u64) -> Doing<'a, Found> {
        Box::pin(async move {
            let wire = wire::<W>()?;
            let mut last = String::new();
            let mut found = Found::Nowhere;
            for _ in 0..PAGES {
                let mut query = vec![("limit", "100")];
                if !last.is_empty() {
                    query.push((wire.after(), last.as_str()));
                }
                let (told, _) = self.told(&wire.home(), &query, Payload::None).await?;
                let page: Vec<Standing> =
                    told["data"].as_array().into_iter().flatten().filter_map(|entry| wire.standing(entry)).collect();
                for standing in &page {
                    match (&standing.name, &standing.state) {
                        (Some(named), _) if named == name => return Ok(Found::There(standing.id.clone())),
                        (Some(_), _) => {}
                        // Where names are not kept, those of the lines tell, once there are results.
                        (None, _) if standing.lines != lines || standing.made_ms + CLOCKS < since_ms => {}
                        (None, State::Ended(from)) => {
                            let mut ours = false;
                            for place in from {
                                let mut look =
                                    |line: &str| ours |= wire.result(line).is_some_and(|(of, _)| of.starts_with(name));
                                self.read(place, &mut look).await?;
                            }
                            if ours {
                                return Ok(Found::There(standing.id.clone()));
                            }
                        }
                        (None, _) => found = Found::Unsure,
                    }
                }
                match page.last() {
                    Some(end) if told["has_more"] == true && end.made_ms + CLOCKS >= since_ms => last = end.id.clone(),
                    _ => break,
                }
            }
            Ok(found)
        })
    }

    fn standing<'a>(&'a self, id: &'a str) -> Doing<'a, Standing> {
        Box::pin(async move {
            let wire = wire::<W>()?;
            let mut path = wire.home();
            path.push(id.to_owned());
            let (told, after_ms) = self.told(&path, &[], Payload::None).await?;
            let standing = wire.standing(&told).ok_or_else(|| strange("state of a batch", &told))?;
            Ok(Standing { after_ms, ..standing })
        })
    }

    fn results<'a>(&'a self, from: &'a [Vec<String>], asked: &'a BTreeMap<String, &'a Effect>) -> Doing<'a, Results> {
        Box::pin(async move {
            let wire = wire::<W>()?;
            let mut results = Results::new();
            let began = Instant::now();
            for place in from {
                let mut take = |line: &str| {
                    let Some((name, result)) = wire.result(line) else { return };
                    let Some(effect) = asked.get(&name) else { return };
                    let result = self.line.scrubbed_end(self.of_line(effect, result, began));
                    results.insert(name, result);
                };
                self.read(place, &mut take).await?;
            }
            Ok(results)
        })
    }
}

impl<W: Wire> Remote<W> {
    /// Reads a file of results line by line.
    async fn read(&self, place: &[String], each: &mut (dyn FnMut(&str) + Send)) -> Result<(), Trouble> {
        match self.line.lines(place, each).await? {
            None => Ok(()),
            Some(received) => Err(self.line.scrubbed(self.batch_error(&received))),
        }
    }

    /// What came of a question, as if it had been asked alone.
    fn of_line(&self, effect: &Effect, result: LineResult, began: Instant) -> Result<Exchange, Trouble> {
        let again = |why: String| Trouble::Retry { why, after_ms: None, charged: false };
        let (status, body) = match result {
            LineResult::Answer(status, body) => (status, body),
            LineResult::Lapsed(why) => return Err(again(why)),
        };
        let asked = &effect.request;
        let shown = self.line.known().map_or("the batch", |place| place.shown.as_str());
        let model = self.short(&asked.model);
        let received = Received::new(shown, model, status, HeaderMap::new(), body.into_bytes());
        let way = self.way(asked)?;
        if way != Constrain::Words
            && asked.settings.constrain.is_none()
            && received.refuses_form(&W::HOME) == Some(true)
        {
            // As where it is asked alone, except that nothing shows first whether the next way is taken.
            self.refuses(model, way, self.line.hidden(received.said()));
            return Err(again(format!(
                "{shown} takes no {} for `{model}`: the form of replies is put otherwise",
                way.name()
            )));
        }
        // What is drawn among letters is drawn by the request alone: whoever collects a batch need not be the run that sent it.
        self.exchange(asked, way, &received, began, 0)
    }

    /// The way in which a question is put first.
    fn way(&self, asked: &Request) -> Result<Constrain, Trouble> {
        Ok(self.ways(asked)?.first().copied().unwrap_or(Constrain::Words))
    }
}
