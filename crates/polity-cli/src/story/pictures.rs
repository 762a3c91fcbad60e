//! Pictures of agents: their places before and after, a small network, the distribution of what matters, cascades.

use super::curves;
use super::finding::ranked;
use super::{Lines, shared_edges};
use polity_arena::report::{
    Agents, BinAxis, Chart, Figure, Node, Panel, Place, Section, Shape, automatic_edges, histogram, layout, short,
};
use polity_driver::results::Run;
use polity_kernel::interface::Axis;
use polity_store::tables::{ColumnData, ColumnSpec, Reader, TableError, TableSpec};
use std::collections::{BTreeMap, BTreeSet};

/// The most agents read for pictures and distributions.
const MOST_AGENTS: usize = 2_000_000;

/// The most cells of a grid on a side, and the most agents on a plane.
const MOST_CELLS: f64 = 200.0;
const MOST_PLACES: usize = 5_000;

/// The most agents and ties of a network that is drawn.
const MOST_NODES: usize = 300;
const MOST_TIES: usize = 3_000;

/// Cascades that are drawn, and posts of each.
const MOST_CASCADES: usize = 6;
const MOST_POSTS: usize = 400;

/// The least posts of a cascade that is worth a picture.
const LEAST_POSTS: usize = 3;

/// The columns of a table with their values, by name.
type Columns = Vec<(String, ColumnData)>;

fn numbers(columns: &Columns, name: &str) -> Vec<Option<f64>> {
    columns.iter().find(|(n, _)| n == name).map(|(_, data)| data.numbers()).unwrap_or_default()
}

/// What a table declares, if the run has it.
fn spec(tables: &Reader<'_>, name: &str) -> Result<Option<(TableSpec, u64)>, TableError> {
    match tables.names().iter().any(|n| n == name) {
        true => tables.describe(name).map(Some),
        false => Ok(None),
    }
}

/// The world's columns that are known before the first and after the last round.
fn measured(spec: &TableSpec) -> Vec<(String, &ColumnSpec)> {
    spec.columns.iter().filter_map(|column| Some((column.name.strip_suffix(".first")?.to_owned(), column))).collect()
}

/// The column that colours agents: a group, else the first that is no coordinate.
fn best(measured: &[(String, &ColumnSpec)]) -> Option<String> {
    let own: Vec<&String> = measured.iter().filter(|(_, column)| column.axis.is_none()).map(|(name, _)| name).collect();
    own.iter().find(|name| **name == "group").or_else(|| own.first()).map(|name| (*name).clone())
}

/// Two pictures, before the first round and after the last one.
fn pair(before: Agents, after: Agents) -> Vec<Panel> {
    let panel =
        |title: &str, agents: Agents| Panel { title: title.into(), note: String::new(), chart: Chart::Agents(agents) };
    vec![panel("before the first round", before), panel("after the last round", after)]
}

/// The lowest and highest x, and y.
type Ranges = ((f64, f64), (f64, f64));

/// Where agents are on a grid or a plane.
struct Space {
    shape: Shape,
    x: String,
    y: String,
    heading: Option<(String, String)>,
    range: Ranges,
}

impl Space {
    fn of(measured: &[(String, &ColumnSpec)]) -> Option<Space> {
        let on = |axis: Axis| measured.iter().find(|(_, column)| column.axis == Some(axis));
        let (shape, x, y) = match (on(Axis::CellX).zip(on(Axis::CellY)), on(Axis::X).zip(on(Axis::Y))) {
            (Some((x, y)), _) => (Shape::Cell, x, y),
            (None, Some((x, y))) => (Shape::Dot, x, y),
            (None, None) => return None,
        };
        let heading = on(Axis::HeadingX).zip(on(Axis::HeadingY)).map(|(x, y)| (x.0.clone(), y.0.clone()));
        let range = (x.1.range.unwrap_or((0.0, 1.0)), y.1.range.unwrap_or((0.0, 1.0)));
        Some(Space { shape, x: x.0.clone(), y: y.0.clone(), heading, range })
    }

    /// The part of the space that is drawn, and whether that is all of it.
    fn drawn(&self) -> (Ranges, bool) {
        let cut = |(low, high): (f64, f64)| match self.shape {
            Shape::Cell => (low, high.min(low + MOST_CELLS - 1.0)),
            Shape::Dot => (low, high),
        };
        let drawn = (cut(self.range.0), cut(self.range.1));
        (drawn, drawn == self.range)
    }

    /// The agents at one moment.
    fn places(&self, columns: &Columns, moment: &str, colour: Option<&str>) -> Agents {
        let at = |name: &str| numbers(columns, &format!("{name}.{moment}"));
        let (xs, ys) = (at(&self.x), at(&self.y));
        let values = colour.map(at).unwrap_or_default();
        let headings = self.heading.as_ref().map(|(x, y)| (at(x), at(y)));
        let (range, _) = self.drawn();
        let is_drawn =
            |(x, y): (f64, f64)| (range.0.0..=range.0.1).contains(&x) && (range.1.0..=range.1.1).contains(&y);
        let step = if self.shape == Shape::Dot { xs.len().div_ceil(MOST_PLACES).max(1) } else { 1 };
        let place = |i: usize| {
            let (x, y) = (xs.get(i).copied()??, ys.get(i).copied()??);
            let heading = headings.as_ref().and_then(|(hx, hy)| Some((hx.get(i).copied()??, hy.get(i).copied()??)));
            let value = values.get(i).copied().flatten().unwrap_or(f64::NAN);
            is_drawn((x, y)).then_some(Place { x, y, heading, value })
        };
        let places = (0..xs.len()).step_by(step).filter_map(place).collect();
        Agents { shape: self.shape, range, places, ties: Vec::new() }
    }

    fn figure(&self, tables: &Reader<'_>, colour: Option<String>) -> Result<Figure, TableError> {
        let mut bases = vec![self.x.clone(), self.y.clone()];
        bases.extend(self.heading.iter().flat_map(|(x, y)| [x.clone(), y.clone()]));
        bases.extend(colour.clone());
        let names: Vec<String> =
            bases.iter().flat_map(|base| [format!("{base}.first"), format!("{base}.last")]).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let columns = tables.table("agents", &names, MOST_AGENTS)?;
        let rows = columns.first().map_or(0, |(_, data)| data.rows());
        let [before, after] = ["first", "last"].map(|moment| self.places(&columns, moment, colour.as_deref()));
        let part = match (self.shape, self.drawn().1) {
            (Shape::Cell, false) => {
                format!(" The picture shows a corner of {} by {} cells.", MOST_CELLS, MOST_CELLS)
            }
            (Shape::Dot, _) if rows > MOST_PLACES => {
                format!(" It shows {} of {rows} agents.", before.places.len())
            }
            _ => String::new(),
        };
        let what = if self.shape == Shape::Cell { "A cell is an agent." } else { "A mark is an agent." };
        Ok(Figure::Panels {
            title: "Where the agents are".into(),
            x_label: String::new(),
            panels: pair(before, after),
            marks: Vec::new(),
            shade: colour.unwrap_or_default(),
            caption: format!("{what}{part}"),
        })
    }
}

/// The ties of a small society; `None` if it is not small.
fn ties(tables: &Reader<'_>, agents: usize) -> Result<Option<Vec<(usize, usize)>>, TableError> {
    if agents > MOST_NODES {
        return Ok(None);
    }
    let Some((_, rows)) = spec(tables, "ties")? else { return Ok(None) };
    if rows as usize > 2 * MOST_TIES {
        return Ok(None);
    }
    let columns = tables.closed("ties", &["agent", "hears"], usize::MAX)?;
    let (from, to) = (numbers(&columns, "agent"), numbers(&columns, "hears"));
    let pairs = from.into_iter().zip(to).filter_map(|(a, b)| Some((a? as usize, b? as usize)));
    // A tie that goes both ways is drawn once.
    let once: BTreeSet<(usize, usize)> = pairs.filter(|(a, b)| a != b).map(|(a, b)| (a.min(b), a.max(b))).collect();
    Ok((!once.is_empty() && once.len() <= MOST_TIES).then(|| once.into_iter().collect()))
}

fn network(tables: &Reader<'_>, agents: usize, colour: Option<String>) -> Result<Option<Figure>, TableError> {
    let Some(ties) = ties(tables, agents)? else { return Ok(None) };
    let columns = match &colour {
        Some(colour) => {
            tables.table("agents", &[&format!("{colour}.first"), &format!("{colour}.last")], MOST_AGENTS)?
        }
        None => Columns::new(),
    };
    let places = layout(agents, &ties);
    let at = |moment: &str| {
        let values = colour.as_ref().map(|colour| numbers(&columns, &format!("{colour}.{moment}"))).unwrap_or_default();
        let place = |(i, (x, y)): (usize, &(f64, f64))| {
            let value = values.get(i).copied().flatten().unwrap_or(f64::NAN);
            Place { x: *x, y: *y, heading: None, value }
        };
        let places = places.iter().enumerate().map(place).collect();
        Agents { shape: Shape::Dot, range: ((-0.03, 1.03), (-0.03, 1.03)), places, ties: ties.clone() }
    };
    Ok(Some(Figure::Panels {
        title: "Who is tied to whom".into(),
        x_label: String::new(),
        panels: pair(at("first"), at("last")),
        marks: Vec::new(),
        shade: colour.unwrap_or_default(),
        caption: format!(
            "A dot is an agent, a line a tie at the start ({} ties). Agents that are tied are drawn near each other.",
            ties.len()
        ),
    }))
}

/// The distribution of a column over the recorded rounds.
fn distribution(tables: &Reader<'_>, columns: &[String]) -> Result<Option<Figure>, TableError> {
    let Some((states, _)) = spec(tables, "states")? else { return Ok(None) };
    let Some(name) = columns.iter().find(|name| states.columns.iter().any(|column| column.name == **name)) else {
        return Ok(None);
    };
    let data = tables.closed("states", &["round", name], MOST_AGENTS)?;
    let mut by_round: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (round, value) in numbers(&data, "round").into_iter().zip(numbers(&data, name)) {
        if let (Some(round), Some(value)) = (round, value) {
            by_round.entry(round as u64).or_default().push(value);
        }
    }
    let all = || by_round.values().flatten().copied();
    if by_round.len() < 2 || all().next().is_none_or(|first| all().all(|value| value == first)) {
        return Ok(None);
    }
    let (low, high, bins) = automatic_edges(all());
    let counts = by_round.values().map(|values| histogram(values, low, high, bins));
    let cells = counts.map(|bins| bins.counts.iter().map(|n| *n as f64).collect()).collect();
    Ok(Some(Figure::Heat {
        title: format!("How {name} is distributed"),
        x_label: "round".into(),
        y_label: name.clone(),
        rounds: by_round.keys().copied().collect(),
        bins: BinAxis::Edges((0..=bins).map(|i| low + (high - low) * i as f64 / bins as f64).collect()),
        cells,
        caption: format!(
            "Each column is a round; the stronger the colour of a cell, the more agents have this {name}."
        ),
    }))
}

/// The one picture that matters first: a map, a small network, or a distribution; and the columns that it shows.
pub fn first(run: &Run<'_>, lines: &Lines) -> Result<(Option<Section>, Vec<String>), TableError> {
    let tables = &run.tables;
    // A figure that stands alone gives its section the title.
    let section = |title: &str, figures: Vec<Figure>| {
        let title = match figures.as_slice() {
            [] => return None,
            [Figure::Panels { title, .. } | Figure::Heat { title, .. }] => title.clone(),
            _ => title.to_owned(),
        };
        Some(Section { title, figures, ..Section::default() })
    };
    let agents = spec(tables, "agents")?;
    let known = agents.as_ref().map(|(spec, _)| measured(spec)).unwrap_or_default();
    let colour = best(&known);
    if let Some(space) = Space::of(&known) {
        let mut shown = vec![space.x.clone(), space.y.clone()];
        shown.extend(space.heading.iter().flat_map(|(x, y)| [x.clone(), y.clone()]));
        return Ok((section("Where the agents are", vec![space.figure(tables, colour)?]), shown));
    }
    let heats = curves::heats(run, lines)?;
    let count = agents.as_ref().map_or(0, |(_, rows)| *rows as usize);
    if let Some(figure) = network(tables, count, colour.clone())? {
        return Ok((section("The society", [figure].into_iter().chain(heats).collect()), Vec::new()));
    }
    if !heats.is_empty() {
        return Ok((section("The agents over the rounds", heats), Vec::new()));
    }
    // The quantities of metrics, by importance, then the best column.
    let quantities = ranked(lines, &run.manifest.scenario).into_iter();
    let quantities = quantities.map(|name| name.split('.').next().unwrap_or_default().to_owned());
    let columns: Vec<String> = quantities.chain(colour).collect();
    let figure = distribution(tables, &columns)?;
    Ok((section("The agents over the rounds", figure.into_iter().collect()), Vec::new()))
}

/// Distributions of the world's columns before the first and after the last round, without those in `shown`.
pub fn before_and_after(run: &Run<'_>, shown: &[String]) -> Result<Option<Section>, TableError> {
    let tables = &run.tables;
    let Some((spec, _)) = spec(tables, "agents")? else { return Ok(None) };
    let bases: Vec<String> =
        measured(&spec).into_iter().map(|(name, _)| name).filter(|name| !shown.contains(name)).collect();
    let names: Vec<String> = bases.iter().flat_map(|base| [format!("{base}.first"), format!("{base}.last")]).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let data = tables.table("agents", &names.iter().map(String::as_str).collect::<Vec<_>>(), MOST_AGENTS)?;
    let (mut panels, mut same, mut agents) = (Vec::new(), Vec::new(), 0);
    for base in bases {
        let [first, last] = ["first", "last"].map(|moment| numbers(&data, &format!("{base}.{moment}")));
        if first == last {
            same.push(base);
            continue;
        }
        let before: Vec<f64> = first.into_iter().flatten().collect();
        let after: Vec<f64> = last.into_iter().flatten().collect();
        agents = agents.max(after.len());
        let (low, high, bins) = shared_edges(&before, &after);
        let chart = Chart::Distribution {
            before: histogram(&before, low, high, bins),
            after: Some(histogram(&after, low, high, bins)),
        };
        panels.push(Panel { title: base, note: String::new(), chart });
    }
    let text = (!same.is_empty()).then(|| format!("The same before and after for every agent: {}.", same.join(", ")));
    if panels.is_empty() {
        return Ok(None);
    }
    let figure = Figure::Panels {
        title: "Before and after".into(),
        x_label: String::new(),
        panels,
        marks: Vec::new(),
        shade: String::new(),
        caption: format!("Shares of {agents} agents, %, before the first and after the last round."),
    };
    Ok(Some(Section { title: "Before and after".into(), text, figures: vec![figure], table: None }))
}

/// A post of a platform.
struct Post {
    id: u64,
    of: Option<u64>,
    round: f64,
    author: u64,
    stance: f64,
    text: Option<String>,
}

/// The posts by the beginning of their chain of shares.
fn chains(tables: &Reader<'_>) -> Result<BTreeMap<u64, Vec<Post>>, TableError> {
    let wanted = ["round", "post", "author", "of", "root", "stance", "text"];
    let Some((spec, _)) = spec(tables, "posts")? else { return Ok(BTreeMap::new()) };
    if !wanted.iter().all(|name| spec.columns.iter().any(|column| column.name == *name)) {
        return Ok(BTreeMap::new());
    }
    let data = tables.closed("posts", &wanted, MOST_AGENTS)?;
    let [round, post, author, of, root, stance] =
        ["round", "post", "author", "of", "root", "stance"].map(|name| numbers(&data, name));
    let texts = data.iter().find(|(name, _)| name == "text").map(|(_, data)| data.texts()).unwrap_or_default();
    let mut chains: BTreeMap<u64, Vec<Post>> = BTreeMap::new();
    for (i, id) in post.iter().enumerate() {
        let at = |column: &[Option<f64>]| column.get(i).copied().flatten();
        let (Some(id), Some(root), Some(round)) = (*id, at(&root), at(&round)) else { continue };
        chains.entry(root as u64).or_default().push(Post {
            id: id as u64,
            of: at(&of).map(|of| of as u64),
            round,
            author: at(&author).unwrap_or(0.0) as u64,
            stance: at(&stance).unwrap_or(f64::NAN),
            text: texts.get(i).cloned().flatten(),
        });
    }
    Ok(chains)
}

/// The largest cascades of shares, as trees.
pub fn cascades(tables: &Reader<'_>) -> Result<Option<Section>, TableError> {
    let mut chains: Vec<(u64, Vec<Post>)> = chains(tables)?.into_iter().collect();
    let all = chains.iter().filter(|(_, posts)| posts.len() > 1).count();
    chains.retain(|(_, posts)| posts.len() >= LEAST_POSTS);
    chains.sort_by_key(|(root, posts)| (std::cmp::Reverse(posts.len()), *root));
    let panels: Vec<Panel> = chains.iter().take(MOST_CASCADES).map(|(root, posts)| cascade(*root, posts)).collect();
    if panels.is_empty() {
        return Ok(None);
    }
    let cut = chains.iter().take(MOST_CASCADES).any(|(_, posts)| posts.len() > MOST_POSTS);
    let more = if cut { format!(" Of larger ones the first {MOST_POSTS} posts are drawn.") } else { String::new() };
    let figure = Figure::Panels {
        title: "The largest cascades".into(),
        x_label: "round".into(),
        shade: "stance of the post".into(),
        caption: format!(
            "A dot is a post, a share or a quote; a line leads to what was shared from it. The horizontal axis is the \
             round. {all} posts were shared or quoted at least once.{more}"
        ),
        panels,
        marks: Vec::new(),
    };
    Ok(Some(Section { title: "The largest cascades".into(), figures: vec![figure], ..Section::default() }))
}

fn cascade(root: u64, posts: &[Post]) -> Panel {
    let drawn = &posts[..posts.len().min(MOST_POSTS)];
    let place: BTreeMap<u64, usize> = drawn.iter().enumerate().map(|(i, post)| (post.id, i)).collect();
    let node = |post: &Post| Node {
        parent: post.of.and_then(|of| place.get(&of).copied()),
        x: post.round,
        value: post.stance,
    };
    let last = posts.iter().map(|post| post.round).fold(0.0, f64::max);
    let first = posts.first();
    let author = first.map_or(String::new(), |post| format!(" by agent {}", post.author));
    let words = first.and_then(|post| post.text.as_deref()).map_or(String::new(), |text| format!(" “{text}”"));
    Panel {
        title: format!("post {root}{author}"),
        note: format!("{} shares and quotes, until round {}.{words}", posts.len() - 1, short(last)),
        chart: Chart::Tree(drawn.iter().map(node).collect()),
    }
}
