//! What a report shows.

use super::bins::{BinAxis, Bins};

/// Everything a report shows. Text is plain text: it is escaped when rendered; blank lines separate paragraphs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is reported on, above the title; if empty, a run.
    pub kind: String,
    /// The name of the run or its scenario.
    pub title: String,
    /// What the scenario is about.
    pub description: Option<String>,
    /// Whether answers came from simulated models: a banner says so.
    pub simulated: bool,
    /// The status of the run: finished, stopped, running.
    pub status: String,
    /// What the report shows, in a sentence or two: the first thing that is read.
    pub finding: Vec<String>,
    /// Names and values: short ones stand in the head of the page, long ones near its end.
    pub facts: Vec<(String, String)>,
    /// The results, in reading order.
    pub sections: Vec<Section>,
    /// The resolved scenario as YAML or JSON.
    pub scenario_yaml_or_json: String,
    /// The exact commands that repeat the run, one each.
    pub reproduce: Vec<String>,
    /// A paragraph for the methods section of a paper.
    pub methods: String,
}

/// A part of the results.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// What the reader should know before the figures.
    pub text: Option<String>,
    /// Figures, numbered over the whole report.
    pub figures: Vec<Figure>,
    /// A table after the figures.
    pub table: Option<DataTable>,
}

/// A figure. Units belong into the axis labels: `guess (0 to 100)`, `share of agents (%)`.
#[derive(Clone, Debug)]
pub enum Figure {
    /// Values over rounds (or any other number), one line per series.
    Lines {
        /// Heading.
        title: String,
        /// Name and unit of the horizontal axis.
        x_label: String,
        /// Name and unit of the vertical axis.
        y_label: String,
        /// At most 24 are drawn.
        series: Vec<Series>,
        /// What the figure shows, as under a figure in a paper.
        caption: String,
    },
    /// Several small charts side by side, on the same horizontal axis if they have one.
    Panels {
        /// Heading.
        title: String,
        /// Name and unit of the horizontal axis; empty if there is none.
        x_label: String,
        /// The charts.
        panels: Vec<Panel>,
        /// What happened on the horizontal axis; drawn in charts of lines.
        marks: Vec<Mark>,
        /// What the colours of agents stand for.
        shade: String,
        /// What is seen.
        caption: String,
    },
    /// A distribution, or two on the same bins; drawn as shares in per cent.
    Histogram {
        /// Heading.
        title: String,
        /// Name and unit of the binned quantity.
        x_label: String,
        /// Name of the shares, such as `share of agents (%)`.
        y_label: String,
        /// The distribution, or the first of two.
        before: Bins,
        /// The second distribution. With other bins than the first it is not drawn, and a note says so.
        after: Option<Bins>,
        /// What the figure shows.
        caption: String,
    },
    /// One value per name.
    Bars {
        /// Heading.
        title: String,
        /// What the names are.
        x_label: String,
        /// Name and unit of the values.
        y_label: String,
        /// At most 60 are drawn.
        bars: Vec<Bar>,
        /// What is seen.
        caption: String,
    },
    /// Named points, with the frontier of those that no other beats: less of the one, more of the other.
    Scatter {
        /// Heading.
        title: String,
        /// Name and unit of what there should be little of.
        x_label: String,
        /// Name and unit of what there should be much of.
        y_label: String,
        /// The points.
        points: Vec<Point>,
        /// What is seen.
        caption: String,
    },
    /// The distribution of a quantity over rounds, each round as shares in per cent.
    Heat {
        /// Heading.
        title: String,
        /// Name of the rounds.
        x_label: String,
        /// Name and unit of the binned quantity.
        y_label: String,
        /// Round numbers; gaps between them are drawn to scale.
        rounds: Vec<u64>,
        /// What the rows stand for, from the bottom up.
        bins: BinAxis,
        /// For each round, a count or weight for each bin; what is not finite or negative leaves a gap.
        cells: Vec<Vec<f64>>,
        /// What is seen.
        caption: String,
    },
}

/// One of several charts.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// A line below the title; may be empty.
    pub note: String,
    /// What is drawn.
    pub chart: Chart,
}

/// What a panel shows.
#[derive(Clone, Debug)]
pub enum Chart {
    /// Values over rounds.
    Lines(Vec<Series>),
    /// Values at named levels: the positions of points are indices of the names, bands are intervals.
    Levels {
        /// Names of the levels.
        names: Vec<String>,
        /// The values.
        series: Vec<Series>,
        /// Whether the levels have an order, so that points are joined by lines.
        joined: bool,
    },
    /// A distribution, or two on the same bins.
    Distribution {
        /// The distribution, or the first of two.
        before: Bins,
        /// The second one.
        after: Option<Bins>,
    },
    /// Agents at their places.
    Agents(Agents),
    /// What came of what, from the left to the right. A node's parent stands before it.
    Tree(Vec<Node>),
}

/// Agents on a grid, on a plane, or in a network.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    /// How they are drawn.
    pub shape: Shape,
    /// The lowest and highest x, and y.
    pub range: ((f64, f64), (f64, f64)),
    /// The agents.
    pub places: Vec<Place>,
    /// Pairs of agents, by their positions in `places`, that are joined by a line.
    pub ties: Vec<(usize, usize)>,
}

/// How an agent is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// A cell of a grid.
    Cell,
    /// A dot; an arrow if it has a heading.
    #[default]
    Dot,
}

/// An agent at its place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// On the horizontal axis.
    pub x: f64,
    /// On the vertical axis.
    pub y: f64,
    /// Where it is going.
    pub heading: Option<(f64, f64)>,
    /// The value that colours it; NaN if it has none.
    pub value: f64,
}

/// A node of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// The position of the node that it came from.
    pub parent: Option<usize>,
    /// Its place on the horizontal axis.
    pub x: f64,
    /// The value that colours it; NaN if it has none.
    pub value: f64,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// Where on the horizontal axis.
    pub at: f64,
    /// What.
    pub label: String,
}

/// A line of a line chart.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Name, as in the legend.
    pub name: String,
    /// Positions and values in drawing order. A value that is not finite, or beyond 1e300, leaves a gap.
    ///
    /// Long series are drawn with at most 400 points: of each of 80 equal stretches the first, lowest, highest and
    /// last point, and a gap if it has one, so that no extreme is lost.
    pub points: Vec<(f64, f64)>,
    /// Position, lower and upper value of a band around the line, such as quantiles; the caption says which.
    pub band: Option<Vec<(f64, f64, f64)>>,
    /// Whether the others are compared with it; drawn grey and dashed.
    pub reference: bool,
}

/// A bar of a bar chart.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// Name. When all names are numbers, such as rounds, they are thinned like ticks.
    pub label: String,
    /// Value; one that is not finite leaves the place empty.
    pub value: f64,
    /// Lower and upper end of an interval around the value; the caption says which.
    pub interval: Option<(f64, f64)>,
}

/// A point of a scatter chart. One that is not finite is not drawn.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// Name.
    pub label: String,
    /// Place on the horizontal axis.
    pub x: f64,
    /// Place on the vertical axis.
    pub y: f64,
    /// Lower and upper end of an interval around `y`.
    pub interval: Option<(f64, f64)>,
}

/// A table; the page shows its first 200 rows.
#[derive(Clone, Debug, Default)]
pub struct DataTable {
    /// Column names.
    pub columns: Vec<String>,
    /// Rows of cells in the order of the columns; missing cells are blank.
    pub rows: Vec<Vec<String>>,
    /// What the table holds.
    pub caption: String,
    /// The address to which the first cell of a row leads, relative to the page; fewer than rows if some lead nowhere.
    pub links: Vec<String>,
}
