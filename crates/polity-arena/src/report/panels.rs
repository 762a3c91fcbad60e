//! Several small charts side by side: small multiples, places of agents, trees.

use super::histogram::Distribution;
use super::levels;
use super::lines::{self, Lines, MOST_SERIES};
use super::page::{Agents, Chart, Mark, Node, Panel, Place, Series, Shape};
use super::scale::{drawable, extent, snug, ticks};
use super::shades::Shades;
use super::svg::{Area, Canvas, SMALL, Svg, px};
use super::text;

/// The most panels of a figure.
const MOST_PANELS: usize = 60;

/// The width of a picture of agents, in pixels, and the greatest height.
const PICTURE: f64 = 410.0;
const TALLEST: f64 = 600.0;

/// Grids with more cells on a side than this have no lines between their cells.
const LINED: f64 = 70.0;

/// The length of an agent's arrow, in pixels.
const ARROW: f64 = 11.0;

/// A figure of panels, ready to be drawn.
pub(super) struct Panels<'a> {
    pub x_label: &'a str,
    pub panels: &'a [Panel],
    pub marks: &'a [Mark],
    pub shade: &'a str,
    shades: Shades,
}

/// What a page shows of the panels: the charts, notes, and the data behind them.
type Data = (Vec<String>, Vec<Vec<String>>, usize);

/// Letters of marks: `A` to `Z`, then numbers.
fn letter(i: usize) -> String {
    u8::try_from(i).ok().filter(|i| *i < 26).map_or_else(|| i.to_string(), |i| char::from(b'A' + i).to_string())
}

impl<'a> Panels<'a> {
    pub fn new(x_label: &'a str, panels: &'a [Panel], marks: &'a [Mark], shade: &'a str) -> Self {
        let panels = &panels[..panels.len().min(MOST_PANELS)];
        let values = panels.iter().flat_map(|panel| match &panel.chart {
            Chart::Agents(agents) => agents.places.iter().map(|place| place.value).collect::<Vec<f64>>(),
            Chart::Tree(nodes) => nodes.iter().map(|node| node.value).collect(),
            _ => Vec::new(),
        });
        let values: Vec<f64> = values.collect();
        Self { x_label, panels, marks, shade, shades: Shades::of(values.iter().copied()) }
    }

    /// Whether there is anything to draw.
    pub fn has_charts(&self) -> bool {
        self.panels.iter().any(|panel| match &panel.chart {
            Chart::Lines(series) | Chart::Levels { series, .. } => Lines { series, ..Lines::default() }.has_points(),
            Chart::Distribution { before, after } => Distribution::new("", "", before, after.as_ref()).has_values(),
            Chart::Agents(agents) => agents.places.iter().any(|place| is_inside(place, range(agents))),
            Chart::Tree(nodes) => nodes.iter().any(|node| drawable(node.x)),
        })
    }

    /// The legend above the panels.
    pub fn legend(&self) -> String {
        let mut out = String::new();
        if !self.shade.is_empty() {
            out.push_str(&self.shades.key(self.shade));
        }
        let both = |panel: &Panel| matches!(&panel.chart, Chart::Distribution { after: Some(_), .. });
        if self.panels.iter().any(both) {
            out.push_str(
                "<ul class=\"legend\">\n<li><span class=\"key before\"></span>before</li>\n<li><span class=\"key c0\">\
                 </span>after</li>\n</ul>\n",
            );
        }
        out.push_str(&self.names());
        if !self.marks.is_empty() {
            out.push_str("<ul class=\"legend marks\">\n");
            for (i, mark) in self.marks.iter().enumerate() {
                let (at, label) = (text::short(mark.at), text::escape(&text::first(&mark.label, 160)));
                let x_label = text::escape(self.x_label);
                out.push_str(&format!("<li><b>{}</b> {x_label} {at}: {label}</li>\n", letter(i)));
            }
            out.push_str("</ul>\n");
        }
        out
    }

    /// The names of series that have no place at the ends of their lines.
    fn names(&self) -> String {
        let unnamed = self.panels.iter().filter_map(|panel| match &panel.chart {
            Chart::Lines(series) if !(Lines { series, ..Lines::default() }).names_itself(&SMALL) => Some(series),
            Chart::Levels { names, series, .. } if series.len() > 1 && levels::are_rows(names, series) => Some(series),
            _ => None,
        });
        let Some(series) = unnamed.max_by_key(|series| series.len()) else { return String::new() };
        let classes = lines::colours(series);
        let item = |(series, class): (&Series, &String)| {
            format!("<li><span class=\"key {class}\"></span>{}</li>\n", text::escape(&text::first(&series.name, 48)))
        };
        let items: String = series.iter().zip(&classes).take(MOST_SERIES).map(item).collect();
        format!("<ul class=\"legend\">\n{items}</ul>\n")
    }

    /// All panels as HTML. `figure` is the id of the figure.
    pub fn draw(&self, figure: &str) -> String {
        let wide = self.panels.iter().any(|panel| matches!(panel.chart, Chart::Agents(_)));
        let mut out = format!("<div class=\"panels{}\">\n", if wide { " two" } else { "" });
        for (i, panel) in self.panels.iter().enumerate() {
            let id = format!("{figure}-{}", i + 1);
            out.push_str(&format!(
                "<div class=\"panel\">\n<h4 id=\"{id}-title\">{}</h4>\n",
                text::escape(&text::first(&panel.title, 120))
            ));
            if !panel.note.is_empty() {
                out.push_str(&format!("<p class=\"note\">{}</p>\n", text::escape(&text::first(&panel.note, 240))));
            }
            out.push_str(&self.chart(panel, &id));
            out.push_str("</div>\n");
        }
        out.push_str("</div>\n");
        out
    }

    fn chart(&self, panel: &Panel, id: &str) -> String {
        match &panel.chart {
            Chart::Lines(series) => {
                let marks = self.marks.iter().enumerate().map(|(i, mark)| (mark.at, letter(i))).collect();
                Lines { x_label: self.x_label, y_label: &panel.title, series, marks, x_range: self.x_range() }
                    .draw(&SMALL, id)
            }
            Chart::Levels { names, series, joined } => levels::draw(names, series, *joined, id),
            Chart::Distribution { before, after } => {
                Distribution::new(&panel.title, "share, %", before, after.as_ref()).draw(&SMALL, id)
            }
            Chart::Agents(agents) => self.agents(agents, id),
            Chart::Tree(nodes) => self.tree(nodes, id),
        }
    }

    /// The horizontal axis that all charts of lines share, and all trees.
    fn x_range(&self) -> Option<(f64, f64)> {
        let places = self.panels.iter().flat_map(|panel| match &panel.chart {
            Chart::Lines(series) => series.iter().flat_map(|s| s.points.iter().map(|point| point.0)).collect(),
            Chart::Tree(nodes) => nodes.iter().map(|node| node.x).collect::<Vec<f64>>(),
            _ => Vec::new(),
        });
        extent(places)
    }

    fn agents(&self, agents: &Agents, id: &str) -> String {
        let range = range(agents);
        let ((left, right), (low, high)) = range;
        let is_cell = agents.shape == Shape::Cell;
        let more = if is_cell { 1.0 } else { 0.0 };
        let (wide, tall) = ((right - left + more).max(1e-9), (high - low + more).max(1e-9));
        // A grid is drawn in its own cells, which makes for short numbers.
        let scale = if is_cell { 1.0 } else { PICTURE / wide };
        let height = if is_cell { tall } else { (tall * scale).min(TALLEST) };
        let canvas = Canvas { class: "picture", width: wide * scale, height, ..SMALL };
        let at = |place: &Place| ((place.x - left) * scale, height - (place.y - low + more) / tall * height);
        let mut svg = Svg::new();
        svg.rect("ground", Area { left: 0.0, top: 0.0, right: canvas.width, bottom: height });
        let mut ties = String::new();
        for (a, b) in &agents.ties {
            let ends = agents.places.get(*a).zip(agents.places.get(*b));
            if let Some((a, b)) = ends.filter(|(a, b)| is_inside(a, range) && is_inside(b, range)) {
                let (a, b) = (at(a), at(b));
                ties.push_str(&format!("M{} {}L{} {}", px(a.0), px(a.1), px(b.0), px(b.1)));
            }
        }
        svg.shapes("ties", &ties);
        let classes = self.shades.classes();
        let mut shapes = vec![String::new(); classes.len() + 1];
        let side = if wide.max(tall) > LINED { 1.0 } else { 0.9 };
        for place in agents.places.iter().filter(|place| is_inside(place, range)) {
            let class = self.shades.class(place.value).unwrap_or(classes.len());
            let (x, y) = at(place);
            match (is_cell, place.heading) {
                (true, _) => shapes[class].push_str(&format!("M{} {}h{side}v{side}h-{side}z", px(x), px(y))),
                (false, Some(heading)) => shapes[class].push_str(&arrow((x, y), heading)),
                (false, None) => shapes[class].push_str(&format!("M{} {}h0", px(x), px(y))),
            }
        }
        let has_arrows = agents.places.iter().any(|place| place.heading.is_some());
        let kind = if is_cell || has_arrows { "area" } else { "dots" };
        let none = "c6".to_owned();
        for (class, shapes) in classes.iter().chain([&none]).zip(&shapes) {
            svg.shapes(&format!("{kind} {class}"), shapes);
        }
        let placed = agents.places.iter().filter(|place| is_inside(place, range)).count();
        let summary = match agents.ties.len() {
            0 => format!("{placed} agents at their places, coloured by {}.", self.shade),
            ties => format!("{placed} agents and {ties} ties between them, coloured by {}.", self.shade),
        };
        svg.finish(&canvas, height, id, &summary)
    }

    fn tree(&self, nodes: &[Node], id: &str) -> String {
        let canvas = Canvas { height: 190.0, ..SMALL };
        let x_range = snug(self.x_range().unwrap_or((0.0, 1.0)));
        let area = canvas.area(10.0, 12.0);
        let x = area.x(x_range);
        let mut svg = Svg::new();
        svg.base_axis(area, &x, &ticks(x_range.0, x_range.1, canvas.ticks, true), "");
        let heights = heights(nodes);
        let at = |i: usize| (x.at(nodes[i].x), area.top + heights[i] * (area.height() - 8.0));
        let mut ties = String::new();
        let is_placed = |i: usize| drawable(nodes[i].x);
        for (i, node) in nodes.iter().enumerate().filter(|(i, _)| is_placed(*i)) {
            if let Some(parent) = node.parent.filter(|parent| *parent < i && is_placed(*parent)) {
                let (a, b) = (at(parent), at(i));
                ties.push_str(&format!("M{} {}L{} {}", px(a.0), px(a.1), px(b.0), px(b.1)));
            }
        }
        svg.shapes("ties", &ties);
        let classes = self.shades.classes();
        let mut shapes = vec![String::new(); classes.len()];
        for (i, node) in nodes.iter().enumerate().filter(|(i, _)| is_placed(*i)) {
            let (x, y) = at(i);
            if let Some(class) = self.shades.class(node.value) {
                shapes[class].push_str(&format!("M{} {}h0", px(x), px(y)));
            }
        }
        classes.iter().zip(&shapes).for_each(|(class, shapes)| svg.shapes(&format!("dots {class}"), shapes));
        svg.finish(&canvas, canvas.height, id, &format!("A tree of {} nodes.", nodes.len()))
    }

    /// Columns and rows of the data behind the panels, at most `most` of each chart, and the total number of rows; pictures and trees have
    /// none.
    pub fn table(&self, most: usize) -> Data {
        let mut named: Vec<(String, &Series)> = Vec::new();
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        for panel in self.panels {
            match &panel.chart {
                Chart::Lines(series) => {
                    named.extend(series.iter().map(|series| (joined_name(&panel.title, &series.name), series)));
                }
                Chart::Levels { names, series, .. } => {
                    columns = ["", self.x_label, "", "value", "low", "high"].map(str::to_owned).to_vec();
                    rows.extend(level_rows(&panel.title, names, series));
                }
                Chart::Distribution { before, after } => {
                    let (own, own_rows, _) = Distribution::new("from, to", "", before, after.as_ref()).table(most);
                    columns = [String::new()].into_iter().chain(own).collect();
                    rows.extend(own_rows.into_iter().map(|row| [vec![panel.title.clone()], row].concat()));
                }
                Chart::Agents(_) | Chart::Tree(_) => {}
            }
        }
        if !named.is_empty() {
            return lines::table(self.x_label, &named, most);
        }
        let total = rows.len();
        (columns, rows, total)
    }
}

/// What pictures and trees show, as columns and rows.
pub(super) fn places(x_label: &str, panels: &[Panel]) -> (Vec<String>, Vec<Vec<String>>) {
    let (mut pictures, mut trees) = (Vec::new(), Vec::new());
    for panel in panels {
        let start = |i: usize| vec![panel.title.clone(), i.to_string()];
        match &panel.chart {
            Chart::Agents(agents) => {
                let row = |(i, place): (usize, &Place)| {
                    [start(i), [place.x, place.y, place.value].map(text::plain).to_vec()].concat()
                };
                pictures.extend(agents.places.iter().enumerate().map(row));
            }
            Chart::Tree(nodes) => {
                let row = |(i, node): (usize, &Node)| {
                    let parent = node.parent.map_or(String::new(), |parent| parent.to_string());
                    [start(i), vec![parent, text::plain(node.x), text::plain(node.value)]].concat()
                };
                trees.extend(nodes.iter().enumerate().map(row));
            }
            _ => {}
        }
    }
    let columns = |names: [&str; 5]| names.map(str::to_owned).to_vec();
    match (pictures.is_empty(), trees.is_empty()) {
        (false, _) => (columns(["chart", "place", "x", "y", "value"]), pictures),
        (true, false) => (columns(["chart", "node", "parent", x_label, "value"]), trees),
        (true, true) => (Vec::new(), Vec::new()),
    }
}

/// The ranges of both axes of a picture.
type Ranges = ((f64, f64), (f64, f64));

/// The ranges that a picture declares; those of the agents if they are none.
fn range(agents: &Agents) -> Ranges {
    let declared = |(low, high): (f64, f64)| (drawable(low) && drawable(high) && low <= high).then_some((low, high));
    let of = |own: (f64, f64), value: fn(&Place) -> f64| {
        let found = || snug(extent(agents.places.iter().map(value)).unwrap_or((0.0, 1.0)));
        declared(own).unwrap_or_else(found)
    };
    (of(agents.range.0, |place| place.x), of(agents.range.1, |place| place.y))
}

fn is_inside(place: &Place, (x, y): Ranges) -> bool {
    (x.0..=x.1).contains(&place.x) && (y.0..=y.1).contains(&place.y)
}

fn joined_name(title: &str, name: &str) -> String {
    if name.is_empty() || name == title { title.to_owned() } else { format!("{title}: {name}") }
}

fn level_rows(title: &str, names: &[String], series: &[Series]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for series in series {
        for (x, y) in &series.points {
            let ends = series.band.iter().flatten().find(|band| band.0 == *x);
            let (low, high) = ends.map_or((f64::NAN, f64::NAN), |band| (band.1, band.2));
            let level = names.get(*x as usize).cloned().unwrap_or_default();
            let mut row = vec![title.to_owned(), level, series.name.clone()];
            row.extend([*y, low, high].map(text::plain));
            rows.push(row);
        }
    }
    rows
}

/// A slim triangle that points where the agent is going.
fn arrow((x, y): (f64, f64), (dx, dy): (f64, f64)) -> String {
    let length = (dx * dx + dy * dy).sqrt();
    if !(length > 0.0 && length.is_finite()) {
        return format!("M{} {}h2v2h-2z", px(x - 1.0), px(y - 1.0));
    }
    // The picture's vertical axis points down.
    let (dx, dy) = (dx / length * ARROW, -dy / length * ARROW);
    let (tail, side) = ((x - dx * 0.5, y - dy * 0.5), (-dy * 0.25, dx * 0.25));
    let points = [(x + dx * 0.5, y + dy * 0.5), (tail.0 + side.0, tail.1 + side.1), (tail.0 - side.0, tail.1 - side.1)];
    let [a, b, c] = points.map(|(x, y)| format!("{} {}", px(x), px(y)));
    format!("M{a}L{b}L{c}z")
}

/// The height of each node in 0..1: leaves in the order of a walk through the tree, every other node amid its children.
fn heights(nodes: &[Node]) -> Vec<f64> {
    let parent = |i: usize| nodes[i].parent.filter(|parent| *parent < i);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    (0..nodes.len()).for_each(|i| parent(i).into_iter().for_each(|p| children[p].push(i)));
    let mut walk: Vec<usize> = (0..nodes.len()).rev().filter(|i| parent(*i).is_none()).collect();
    let mut heights = vec![0.0; nodes.len()];
    let leaves = children.iter().filter(|own| own.is_empty()).count().max(1) as f64;
    let mut placed = 0.0;
    while let Some(i) = walk.pop() {
        if children[i].is_empty() {
            heights[i] = (placed + 0.5) / leaves;
            placed += 1.0;
        }
        walk.extend(children[i].iter().rev());
    }
    // Children stand behind their parents.
    for i in (0..nodes.len()).rev() {
        if let (Some(first), Some(last)) = (children[i].first(), children[i].last()) {
            heights[i] = (heights[*first] + heights[*last]) / 2.0;
        }
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_stands_amid_its_children() {
        let node = |parent: Option<usize>| Node { parent, x: 0.0, value: 0.0 };
        // A root with two children, the first of which has two.
        let heights = heights(&[node(None), node(Some(0)), node(Some(0)), node(Some(1)), node(Some(1))]);
        assert_eq!(heights[3..], [0.5 / 3.0, 0.5]);
        assert_eq!(heights[1], (0.5 / 3.0 + 0.5) / 2.0);
        assert_eq!(heights[2], 2.5 / 3.0);
        assert!(heights[1] < heights[0] && heights[0] < heights[2]);
    }

    #[test]
    fn an_arrow_points_upwards_for_a_heading_upwards() {
        assert_eq!(arrow((10.0, 10.0), (0.0, 2.0)), "M10 4.5L12.8 15.5L7.2 15.5z");
        assert_eq!(arrow((10.0, 10.0), (0.0, 0.0)), "M9 9h2v2h-2z");
    }
}
