//! Batches: many requests sent together, answered within a day at a lower price. This is the part shared by all wires; the differences
//! are in a wire's [`BatchWire`].

use super::line::Payload;
use super::provider::{Batching, Doing, Found, Results, Standing, State};
use super::provider::{Exchange, ProviderError};
use super::received::Received;
use super::remote::{Remote, agrees};
use super::wire::{BatchWire, LineResult, Lines};
use super::wire::{Settings, Wire};
use http::header::HeaderMap;
use polity_kernel::ask::{Constrain, Effect, Request};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::time::Instant;

/// Maximum pages to read of a list of batches; newest first.
const PAGES: usize = 50;
/// Tolerated clock difference between a provider and this machine, in milliseconds.
const CLOCKS: u64 = 3_600_000;

/// A wire's batches, or an error if it has none.
fn wire<W: Wire>() -> Result<&'static dyn BatchWire, ProviderError> {
    W::batches().ok_or_else(|| ProviderError::Fatal { why: format!("`{}` does not support batches", W::HOME.name) })
}

impl<W: Wire> Remote<W> {
    /// Converts an error of a batch operation.
    fn batch_error(&self, received: &Received) -> ProviderError {
        match received.status {
            404 | 405 | 501 => ProviderError::Fatal {
                why: format!(
                    "{} does not support batches, or does not know this one (status {}): it has no batch endpoint, or \
                     what was sent was deleted there; with --batch=false, questions are asked one by one",
                    received.url, received.status
                ),
            },
            _ => match received.error(&W::HOME) {
                // The refusal concerns the batch with all its lines.
                ProviderError::Never { why } => {
                    ProviderError::Fatal { why: format!("{why}. With --batch=false, questions are asked one by one") }
                }
                // The operation may have been done before the failure.
                ProviderError::Retry { why, after_ms, .. } => ProviderError::Retry { why, after_ms, charged: true },
                trouble => trouble,
            },
        }
    }

    async fn told(
        &self,
        path: &[String],
        query: &[(&str, &str)],
        payload: Payload,
    ) -> Result<(Json, Option<u64>), ProviderError> {
        let received = self.line.first(path, query, payload).await?;
        if !received.is_answer() {
            return Err(self.line.scrubbed(self.batch_error(&received)));
        }
        let json = serde_json::from_str(&received.body).map_err(|error| ProviderError::Retry {
            why: format!("{}: its answer about batches is not valid JSON: {error}", received.url),
            after_ms: None,
            charged: true,
        })?;
        Ok((self.line.scrubbed_json(json), received.asks_to_wait()))
    }
}

/// An unexpected response.
fn strange(what: &str, told: &Json) -> ProviderError {
    let told: String = told.to_string().chars().take(300).collect();
    ProviderError::Retry { why: format!("the answer contains no {what}: {told}"), after_ms: None, charged: true }
}

/// An error before anything was ordered.
fn before_the_order(trouble: ProviderError) -> ProviderError {
    match trouble {
        ProviderError::Retry { why, after_ms, .. } => ProviderError::Retry { why, after_ms, charged: false },
        other => other,
    }
}

impl<W: Wire> Batching for Remote<W> {
    fn holds(&self) -> (usize, usize) {
        W::batches().map_or((0, 0), BatchWire::holds)
    }

    fn line(&self, name: &str, effect: &Effect) -> Result<String, ProviderError> {
        let wire = wire::<W>()?;
        // Batches do not stream.
        let settings = Settings { stream: false, ..self.settings.clone() };
        let mut question = self.put(&effect.request, self.way(&effect.request)?);
        question.settings = &settings;
        agrees::<W>(&question)?;
        let body = serde_json::value::to_raw_value(&W::body(&question));
        let body = body
            .map_err(|error| ProviderError::Never { why: format!("the request cannot be written as JSON: {error}") })?;
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
            let mut found = Found::Absent;
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
                        // If names are not kept, the line names tell, once there are results.
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
    async fn read(&self, place: &[String], each: &mut (dyn FnMut(&str) + Send)) -> Result<(), ProviderError> {
        match self.line.lines(place, each).await? {
            None => Ok(()),
            Some(received) => Err(self.line.scrubbed(self.batch_error(&received))),
        }
    }

    /// The result of a request, as if it had been sent alone.
    fn of_line(&self, effect: &Effect, result: LineResult, began: Instant) -> Result<Exchange, ProviderError> {
        let again = |why: String| ProviderError::Retry { why, after_ms: None, charged: false };
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
            // As for single requests, except that nothing has yet shown whether the next mode is accepted.
            self.refuses(model, way, self.line.hidden(received.said()));
            return Err(again(format!(
                "{shown} does not accept `constrain: {}` for `{model}`: replies are constrained in another way",
                way.name()
            )));
        }
        // Draws among letters depend on the request alone, since another run may collect the batch.
        self.exchange(asked, way, &received, began, 0)
    }

    /// The constraint mode tried first.
    fn way(&self, asked: &Request) -> Result<Constrain, ProviderError> {
        Ok(self.ways(asked)?.first().copied().unwrap_or(Constrain::Words))
    }
}
