//! Events of an active run.

use super::App;
use super::overview::{self, RunHead};
use super::problem::Problem;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value as Json, json};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How often a run is asked how far it is.
const BETWEEN: Duration = Duration::from_secs(1);

/// Where the stream is.
struct Watching {
    app: Arc<App>,
    id: String,
    folder: PathBuf,
    /// First round whose metrics were not sent.
    next: u32,
    last: Option<Json>,
    ended: bool,
}

/// What is sent next; `None` if nothing changed.
fn look(watching: &mut Watching) -> Result<Option<(Json, bool)>, Problem> {
    let Watching { app, id, folder, .. } = &*watching;
    let head: RunHead = overview::head(app, id, folder)?;
    let active = overview::active(app, folder, watching.next);
    let mut recent: Vec<Json> = Vec::new();
    let mut latest = serde_json::Map::new();
    for (round, metrics) in active.iter().flat_map(|status| &status.metrics) {
        let values: serde_json::Map<_, _> =
            metrics.iter().map(|(name, value)| (name.clone(), Json::from(*value))).collect();
        latest = values.clone();
        watching.next = watching.next.max(round + 1);
        recent.push(json!([round, values]));
    }
    let ended = !matches!(head.status, "running" | "paused");
    let status = json!({
        "status": head.status, "round": head.rounds, "rounds_planned": head.rounds_planned, "calls": head.calls,
        "cost_usd": head.cost_usd, "tokens": head.tokens, "waiting": head.waiting, "metrics": latest, "recent": recent,
    });
    let changed = watching.last.as_ref() != Some(&status);
    watching.last = Some(status.clone());
    Ok((changed || ended).then_some((status, ended)))
}

/// The stream of a run's status: at once, then when something changes, at most once a second; `end` when nobody works on it.
pub(crate) fn events(app: Arc<App>, id: String, folder: PathBuf) -> Response {
    let start = Watching { app, id, folder, next: 0, last: None, ended: false };
    let stream = stream::unfold(start, |mut watching| async move {
        if watching.ended {
            return None;
        }
        loop {
            if watching.last.is_some() {
                sleep(BETWEEN).await;
            }
            let (back, found) = spawn_blocking(move || {
                let found = look(&mut watching);
                (watching, found)
            })
            .await
            .ok()?;
            watching = back;
            let event = match found {
                Ok(None) => continue,
                Ok(Some((status, ended))) => {
                    watching.ended = ended;
                    Event::default().event(if ended { "end" } else { "status" }).data(status.to_string())
                }
                Err(problem) => {
                    watching.ended = true;
                    Event::default().event("error").data(json!({ "error": problem.error }).to_string())
                }
            };
            return Some((Ok::<_, Infallible>(event), watching));
        }
    });
    Sse::new(stream).keep_alive(KeepAlive::default()).into_response()
}
