//! All routes, each declared once: its path, what it is for, its types, and its function.

use super::agents::{self, OneColumn};
use super::answers;
use super::diff::{self, Pair};
use super::openapi::Description;
use super::overview::{self, RunDetail};
use super::people::{self, Given};
use super::platform;
use super::problem::{Answer, Problem};
use super::reports;
use super::rows::{Rows, page};
use super::systems;
use super::ties;
use super::{App, arrow, chat, live};
use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header, request::Parts};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use polity_driver::results;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Bytes of a request's body.
const LONGEST_BODY: usize = 1 << 20;

/// The page may load its own files, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: \
                      blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// No parameters.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Rows of a table.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct TableWanted {
    /// First round.
    from: Option<u32>,
    /// Last round.
    to: Option<u32>,
    /// The agent, in the column `agent`.
    agent: Option<u32>,
    limit: Option<usize>,
    offset: Option<usize>,
}

/// A page of rows.
#[derive(Debug, Serialize, JsonSchema)]
struct TableRows {
    total: usize,
    columns: Vec<String>,
    rows: Vec<Vec<Json>>,
}

/// A query, refused with words. Keys may repeat; their values are joined by line breaks.
struct Asked<Q>(Q);

impl<S: Send + Sync, Q: DeserializeOwned> FromRequestParts<S> for Asked<Q> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let pairs = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Query(pairs) = pairs.map_err(|error| Problem::bad(error.to_string()))?;
        let mut joined: BTreeMap<String, String> = BTreeMap::new();
        for (key, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()) {
            let entry = joined.entry(key).or_default();
            if !entry.is_empty() {
                entry.push('\n');
            }
            entry.push_str(&value);
        }
        let values = joined.into_iter().map(|(key, value)| (key, Text(value)));
        let read = Q::deserialize(serde::de::value::MapDeserializer::new(values));
        read.map(Asked).map_err(|error: serde::de::value::Error| Problem::bad(format!("the query: {error}")))
    }
}

/// A value of a query, which becomes the type that is asked for.
struct Text(String);

impl<'de> serde::de::IntoDeserializer<'de> for Text {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident => $visit:ident: $type:ty),*) => {$(
        fn $method<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            let wrong = |_| serde::de::Error::custom(format!("`{}` is not what is wanted here", self.0));
            visitor.$visit(self.0.parse::<$type>().map_err(wrong)?)
        }
    )*};
}

impl<'de> serde::Deserializer<'de> for Text {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    parsed!(
        deserialize_bool => visit_bool: bool, deserialize_u32 => visit_u32: u32, deserialize_u64 => visit_u64: u64,
        deserialize_i64 => visit_i64: i64, deserialize_f64 => visit_f64: f64
    );

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u128 f32 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

type Shared = Arc<App>;

/// Collects routes and their description.
struct Routes {
    router: Router<Shared>,
    description: Description,
}

/// Work that reads files, on a thread that may wait.
async fn work<T: Serialize + Send + 'static>(make: impl FnOnce() -> Answer<T> + Send + 'static) -> Answer<Response> {
    let made = spawn_blocking(make).await;
    let made =
        made.map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "this request failed inside the viewer"));
    let text = serde_json::to_string(&made??).map_err(|error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the result cannot be written: {error}"))
    })?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

impl Routes {
    fn route(mut self, path: &str, to: MethodRouter<Shared>) -> Self {
        self.router = self.router.route(path, to);
        self
    }

    /// A route that concerns no run.
    fn plain<Q, T>(mut self, path: &str, doc: &str, f: fn(&App, &Q) -> Answer<T>) -> Self
    where
        Q: DeserializeOwned + JsonSchema + Send + Sync + 'static,
        T: Serialize + JsonSchema + Send + 'static,
    {
        self.description.add::<Q, (), T>("get", path, doc);
        self.route(
            path,
            get(async move |State(app): State<Shared>, Asked(query): Asked<Q>| work(move || f(&app, &query)).await),
        )
    }

    /// A route that concerns a run, below `/api/runs/{id}`.
    fn run<Q, T>(mut self, path: &str, doc: &str, f: fn(&App, &std::path::Path, &Q) -> Answer<T>) -> Self
    where
        Q: DeserializeOwned + JsonSchema + Send + Sync + 'static,
        T: Serialize + JsonSchema + Send + 'static,
    {
        let path = format!("/api/runs/{{id}}{path}");
        self.description.add::<Q, (), T>("get", &path, doc);
        self.route(
            &path,
            get(async move |State(app): State<Shared>, Path(id): Path<String>, Asked(query): Asked<Q>| {
                work(move || f(&app, &app.catalog.run(&id)?, &query)).await
            }),
        )
    }

    /// A route that concerns something of a run with a name of its own: an agent, an item, a table.
    fn part<N, Q, T>(mut self, path: &str, doc: &str, f: fn(&App, &std::path::Path, N, &Q) -> Answer<T>) -> Self
    where
        N: DeserializeOwned + Send + 'static,
        Q: DeserializeOwned + JsonSchema + Send + Sync + 'static,
        T: Serialize + JsonSchema + Send + 'static,
    {
        let path = format!("/api/runs/{{id}}{path}");
        self.description.add::<Q, (), T>("get", &path, doc);
        self.route(
            &path,
            get(async move |State(app): State<Shared>, Path((id, name)): Path<(String, N)>, Asked(query): Asked<Q>| {
                work(move || f(&app, &app.catalog.run(&id)?, name, &query)).await
            }),
        )
    }

    /// A route that changes something.
    fn change<B, T>(mut self, path: &str, doc: &str, f: fn(&App, &std::path::Path, &B) -> Answer<T>) -> Self
    where
        B: DeserializeOwned + JsonSchema + Send + Sync + 'static,
        T: Serialize + JsonSchema + Send + 'static,
    {
        let path = format!("/api/runs/{{id}}{path}");
        self.description.add::<Nothing, B, T>("post", &path, doc);
        self.route(
            &path,
            post(async move |State(app): State<Shared>, Path(id): Path<String>, body: String| {
                let body: B = read(&body)?;
                work(move || f(&app, &app.catalog.run(&id)?, &body)).await
            }),
        )
    }
}

/// The body of a request.
fn read<B: DeserializeOwned>(body: &str) -> Answer<B> {
    serde_json::from_str(body).map_err(|error| Problem::bad(format!("the body is not what is wanted here: {error}")))
}

fn table(app: &App, folder: &std::path::Path, name: String, wanted: &TableWanted) -> Answer<TableRows> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let Some(rows) = Rows::read(&run.tables, &name, &[], rounds(wanted))? else {
        return Ok(TableRows { total: 0, columns: Vec::new(), rows: Vec::new() });
    };
    let all: Vec<usize> = match wanted.agent {
        None => (0..rows.len()).collect(),
        Some(agent) => {
            let at = rows.column("agent")?;
            (0..rows.len()).filter(|row| rows.number(*row, at) == Some(f64::from(agent))).collect()
        }
    };
    let page = page(&all, wanted.offset, wanted.limit, 100);
    let columns = rows.columns().map(|column| column.name.clone()).collect();
    Ok(TableRows { total: all.len(), columns, rows: page.iter().map(|row| rows.row(*row)).collect() })
}

fn rounds(wanted: &TableWanted) -> Option<std::ops::RangeInclusive<u32>> {
    (wanted.from.is_some() || wanted.to.is_some()).then(|| wanted.from.unwrap_or(0)..=wanted.to.unwrap_or(u32::MAX))
}

/// What an agent observed in a round.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct AtRound {
    /// The round; without it, the one that would be next.
    round: Option<u32>,
}

/// Rows as Arrow, for requests that ask for it.
async fn rows_as_arrow(
    State(app): State<Shared>,
    headers: HeaderMap,
    parts: axum::extract::MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    if !arrow::wanted(&headers) {
        return next.run(request).await;
    }
    let (mut of_request, _) = request.into_parts();
    let path = parts.as_str().to_string();
    let made = async {
        let named = Path::<BTreeMap<String, String>>::from_request_parts(&mut of_request, &()).await;
        let Path(names) = named.map_err(|error| Problem::bad(error.to_string()))?;
        let id = names.get("id").cloned().unwrap_or_default();
        match path.as_str() {
            "/api/runs/{id}/agents" => {
                let Asked(wanted) = Asked::<agents::Wanted>::from_request_parts(&mut of_request, &()).await?;
                blocking(move || arrow::stream(&agents::as_arrow(&app, &app.catalog.run(&id)?, &wanted)?)).await
            }
            "/api/runs/{id}/metrics" => of_table(app, id, "metrics".into(), None).await,
            "/api/runs/{id}/tables/{name}" => {
                let Asked(wanted) = Asked::<TableWanted>::from_request_parts(&mut of_request, &()).await?;
                let name = names.get("name").cloned().unwrap_or_default();
                of_table(app, id, name, rounds(&wanted)).await
            }
            _ => Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "this is sent as JSON only")),
        }
    };
    made.await.unwrap_or_else(IntoResponse::into_response)
}

async fn blocking(make: impl FnOnce() -> Answer<Response> + Send + 'static) -> Answer<Response> {
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "this request failed inside the viewer");
    spawn_blocking(make).await.map_err(failed)?
}

async fn of_table(
    app: Shared,
    id: String,
    name: String,
    rounds: Option<std::ops::RangeInclusive<u32>>,
) -> Answer<Response> {
    blocking(move || {
        let folder = app.catalog.run(&id)?;
        let run = results::of_run(app.disk.as_ref(), &folder)?;
        let rows = Rows::read(&run.tables, &name, &[], rounds)?;
        arrow::stream(&rows.map(|rows| rows.selected.batches).unwrap_or_default())
    })
    .await
}

/// Values for pictures, as bytes.
async fn column(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Asked(wanted): Asked<OneColumn>,
) -> Answer<Response> {
    blocking(move || {
        let (bytes, round) = agents::column(&app, &app.catalog.run(&id)?, &wanted)?;
        let headers = [(header::CONTENT_TYPE, "application/octet-stream".to_string())];
        Ok((headers, [("x-state-round", round.to_string())], bytes).into_response())
    })
    .await
}

async fn events(State(app): State<Shared>, Path(id): Path<String>) -> Answer<Response> {
    let looked = app.clone();
    let (id, folder) = spawn_blocking(move || looked.catalog.run(&id).map(|folder: PathBuf| (id, folder)))
        .await
        .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "this request failed inside the viewer"))??;
    Ok(live::events(app, id, folder))
}

async fn go(State(app): State<Shared>, Path(id): Path<String>) -> Answer<Response> {
    work(move || people::go(&app, &app.catalog.run(&id)?)).await
}

async fn answer_question(
    State(app): State<Shared>,
    Path((id, question)): Path<(String, String)>,
    body: String,
) -> Answer<Response> {
    let given: Given = read(&body)?;
    work(move || people::answer(&app, &app.catalog.run(&id)?, &question, &given)).await
}

/// Admits a request, and tells browsers what the page may do.
async fn guarded(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let mut response = match app.guard.check(request.method(), request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) if request.uri().path().starts_with(chat::PREFIX) => chat::Failure::from(problem).into_response(),
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, header::HeaderValue::from_static(value));
    }
    response
}

/// A file of the page.
fn file(kind: &'static str, text: &'static str) -> MethodRouter<Shared> {
    get(async move || ([(header::CONTENT_TYPE, kind)], text))
}

async fn nowhere() -> Problem {
    Problem::absent("there is no such path; /api/openapi.json lists all")
}

fn described() -> Routes {
    Routes { router: Router::new(), description: Description::new() }
        .plain("/api/runs", "All runs in the folder, newest first", |app, _: &Nothing| overview::list(app))
        .plain("/api/systems", "Claims of published systems, if the folder holds a check", |app, _: &Nothing| {
            systems::systems(app)
        })
        .plain("/api/reports", "Sweeps and comparisons with a report", |app, _: &Nothing| reports::reports(app))
        .plain("/api/reports/page", "The report of a sweep or comparison", |app, wanted: &reports::Wanted| {
            reports::page(app, wanted)
        })
        .plain("/api/diff", "What differs between two runs", |app, pair: &Pair| diff::diff(app, pair))
        .part("/agents/{agent}", "One agent's life", |app, folder, agent, _: &Nothing| agents::life(app, folder, agent))
        .part("/agents/{agent}/observation", "What an agent observed in a round", |app, folder, agent, at: &AtRound| {
            platform::observed(app, folder, agent, at.round)
        })
        .run("/agents", "Agents as they were after a round", agents::agents)
        .run("/metrics", "Metrics by round", |app, folder, _: &Nothing| overview::metrics(app, folder))
        .run("/network", "Agents and the ties between them", ties::network)
        .run("/messages", "Messages", ties::messages)
        .run("/calls", "Questions to models and their answers", answers::calls)
        .run("/items", "The items of an evaluation", answers::items)
        .part("/items/{item}", "An item as a conversation", |app, folder, item, _: &Nothing| {
            answers::conversation(app, folder, item)
        })
        .run("/posts", "Posts of a social platform", platform::posts)
        .run("/feed", "A feed as its user saw it", platform::feed)
        .run("/influence", "Who influenced an agent, and whom it influenced", |app, folder, of: &OneAgent| {
            agents::influence(app, folder, of.agent)
        })
        .part("/tables/{name}", "Rows of a table", table)
        .run("/questions", "Questions that wait for a person", |app, folder, _: &Nothing| {
            people::questions(app, folder)
        })
        .change("/orders", "Steer an active run", people::order)
        .change("/interview", "Ask an agent a question; the run is not changed", people::interview)
}

/// An agent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct OneAgent {
    /// Without it, all together.
    agent: Option<u32>,
}

/// The whole interface, with that of a team, if there is one.
pub(crate) fn router(app: Shared, team: Option<chat::Team>) -> Router {
    let routes = described().route_of_run();
    let Routes { router, mut description } = routes;
    description.add::<Nothing, Given, Json>(
        "post",
        "/api/runs/{id}/questions/{question}",
        "Answer a question of a run",
    );
    description.add::<Nothing, Nothing, people::Replied>("post", "/api/runs/{id}/go", "Continue a stopped run");
    description.add::<OneColumn, (), ()>("get", "/api/runs/{id}/column", "A column of all agents, as 32-bit floats");
    description.add::<Nothing, (), ()>(
        "get",
        "/api/runs/{id}/events",
        "The status of an active run, as server-sent events",
    );
    let text = description.finish().to_string();
    router
        .route_layer(from_fn_with_state(app.clone(), rows_as_arrow))
        .route("/api/runs/{id}/questions/{question}", post(answer_question))
        .route("/api/runs/{id}/go", post(go))
        .route("/api/runs/{id}/column", get(column))
        .route("/api/runs/{id}/events", get(events))
        .route("/api/openapi.json", get(async move || ([(header::CONTENT_TYPE, "application/json")], text.clone())))
        .route("/healthz", get(async || "ok"))
        .route("/", file("text/html; charset=utf-8", include_str!("../../../web/dist/index.html")))
        .route("/app.js", file("text/javascript; charset=utf-8", include_str!("../../../web/dist/app.js")))
        .route("/app.css", file("text/css; charset=utf-8", include_str!("../../../web/dist/app.css")))
        .merge(team.map_or_else(Router::new, chat::routes))
        .fallback(nowhere)
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(from_fn_with_state(app.clone(), guarded))
        .with_state(app)
}

impl Routes {
    /// What is known of one run.
    fn route_of_run(mut self) -> Self {
        const PATH: &str = "/api/runs/{id}";
        self.description.add::<Nothing, (), RunDetail>("get", PATH, "One run");
        self.route(
            PATH,
            get(async |State(app): State<Shared>, Path(id): Path<String>| {
                work(move || overview::detail(&app, &id, &app.catalog.run(&id)?)).await
            }),
        )
    }
}
