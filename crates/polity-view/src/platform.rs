//! Social platforms: posts, and feeds as their users saw them.

use super::App;
use super::problem::{Answer, Problem};
use super::rows::{Rows, page};
use polity_driver::drive::Unwatched;
use polity_driver::results;
use polity_driver::run::Engine;
use polity_kernel::machine::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Which posts.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PostsWanted {
    pub author: Option<u32>,
    /// The post whose cascade is wanted.
    pub tree_of: Option<u32>,
    /// `round`, `likes`, `shares` or `comments`; the newest or the most first.
    pub sort: Option<String>,
    pub limit: Option<usize>,
    pub offset: Option<usize>,
}

/// A post.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Post {
    pub post: u32,
    pub round: u32,
    pub author: u32,
    /// The post that it shares or quotes.
    pub parent: Option<u32>,
    pub root: u32,
    pub text: Option<String>,
    pub stance: Option<f64>,
    pub likes: u32,
    pub shares: u32,
    pub comments: u32,
    pub depth: u32,
}

/// A page of posts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Posts {
    pub total: usize,
    pub posts: Vec<Post>,
}

/// All posts with what was done with them until `round`.
fn all(run: &results::Run<'_>, until: Option<u32>) -> Answer<Vec<Post>> {
    let rounds = until.map(|round| 0..=round);
    let Some(rows) = Rows::read(&run.tables, "posts", &[], rounds.clone())? else {
        return Err(Problem::absent("this run has no posts, or has recorded none yet"));
    };
    let at = |name: &str| rows.column(name);
    let (post, round, author, of, root, depth, stance, text) =
        (at("post")?, at("round")?, at("author")?, at("of")?, at("root")?, at("depth")?, at("stance")?, at("text")?);
    let mut counts: BTreeMap<u32, [u32; 3]> = BTreeMap::new();
    if let Some(acts) = Rows::read(&run.tables, "influence", &["round", "act", "post"], rounds)? {
        let (act, on) = (acts.column("act")?, acts.column("post")?);
        for row in 0..acts.len() {
            let Some(post) = acts.number(row, on) else { continue };
            let kind = match acts.cell(row, act).as_str() {
                Some("like") => 0,
                Some("share" | "quote") => 1,
                Some("comment") => 2,
                _ => continue,
            };
            counts.entry(post as u32).or_default()[kind] += 1;
        }
    }
    let whole = |row: usize, column: usize| rows.number(row, column).map(|n| n as u32);
    let posts = (0..rows.len()).filter_map(|row| {
        let id = whole(row, post)?;
        let [likes, shares, comments] = counts.get(&id).copied().unwrap_or_default();
        Some(Post {
            post: id,
            round: whole(row, round)?,
            author: whole(row, author)?,
            parent: whole(row, of),
            root: whole(row, root)?,
            text: rows.cell(row, text).as_str().map(str::to_string),
            stance: rows.number(row, stance),
            likes,
            shares,
            comments,
            depth: whole(row, depth)?,
        })
    });
    Ok(posts.collect())
}

pub(crate) fn posts(app: &App, folder: &Path, wanted: &PostsWanted) -> Answer<Posts> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let mut posts = all(&run, None)?;
    if let Some(of) = wanted.tree_of {
        let root = posts.iter().find(|post| post.post == of).map(|post| post.root);
        let root = root.ok_or_else(|| Problem::absent(format!("there is no post {of}")))?;
        posts.retain(|post| post.root == root);
    }
    posts.retain(|post| wanted.author.is_none_or(|author| post.author == author));
    let key: fn(&Post) -> u32 = match wanted.sort.as_deref() {
        None | Some("round") => |post| post.round,
        Some("likes") => |post| post.likes,
        Some("shares") => |post| post.shares,
        Some("comments") => |post| post.comments,
        Some(other) => {
            return Err(Problem::bad(format!(
                "posts are sorted by round, likes, shares or comments, not by `{other}`"
            )));
        }
    };
    posts.sort_by_key(|post| (std::cmp::Reverse(key(post)), post.post));
    let every: Vec<usize> = (0..posts.len()).collect();
    let standard = if wanted.tree_of.is_some() { 5_000 } else { 50 };
    let page = page(&every, wanted.offset, wanted.limit, standard);
    Ok(Posts { total: posts.len(), posts: page.iter().map(|i| posts[*i].clone()).collect() })
}

/// Whose feed, and when.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FeedWanted {
    pub agent: u32,
    /// The round in which it was read; without it, the last one.
    pub round: Option<u32>,
}

/// A feed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Feed {
    pub agent: u32,
    pub round: u32,
    pub posts: Vec<Post>,
    /// Whether these are the posts that the user saw.
    pub known: bool,
    pub note: String,
}

pub(crate) fn feed(app: &App, folder: &Path, wanted: &FeedWanted) -> Answer<Feed> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let last = run.rounds.saturating_sub(1);
    let round = wanted.round.unwrap_or(last).min(last);
    let seen = observed(app, folder, wanted.agent, Some(round))?;
    let table = seen.pointer("/tables/feed").and_then(Json::as_array);
    let ids: Vec<u32> = table
        .map(|rows| rows.iter().filter_map(|row| row.get("post")?.as_f64()).map(|post| post as u32).collect())
        .ok_or_else(|| Problem::absent("agents of this world see no feed"))?;
    let by_id: BTreeMap<u32, Post> = all(&run, Some(round))?.into_iter().map(|post| (post.post, post)).collect();
    let posts = ids.iter().filter_map(|id| by_id.get(id).cloned()).collect();
    let note = "computed again from the record, in the order in which the user saw it".into();
    Ok(Feed { agent: wanted.agent, round, posts, known: true, note })
}

/// What an agent observed in a round: the run is computed again up to there.
pub(crate) fn observed(app: &App, folder: &Path, agent: u32, round: Option<u32>) -> Answer<Json> {
    let engine = Engine { disk: app.disk.clone(), ..Engine::new(&app.registry) };
    let society = engine.society_at(folder, round, &mut Unwatched)?;
    let seen = society.observed(agent).map_err(|bug| Problem::bad(bug.to_string()))?;
    let seen = seen.ok_or_else(|| Problem::absent(format!("agent {agent} is not alive in this round")))?;
    let tables = seen.tables.into_iter().map(|table| {
        let row =
            |row: Vec<f64>| Json::Object(table.columns.iter().cloned().zip(row.into_iter().map(Json::from)).collect());
        let rows: Vec<Json> = table.rows.into_iter().map(row).collect();
        (table.name, Json::Array(rows))
    });
    Ok(json!({
        "agent": agent,
        "round": society.next_round(),
        "numbers": seen.numbers.into_iter().map(|(name, value)| (name, Json::from(value))).collect::<serde_json::Map<_, _>>(),
        "texts": seen.texts.into_iter().map(|(name, text)| (name, Json::from(text))).collect::<serde_json::Map<_, _>>(),
        "tables": tables.collect::<serde_json::Map<_, _>>(),
    }))
}
