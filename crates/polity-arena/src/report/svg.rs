//! A small SVG writer: shapes by class (colours live in the style sheet), axes, and hover tips without a script.

use super::scale::{Scale, Tick};
use super::text;

/// The font size of everything written in a chart, in pixels; the style sheet says the same.
pub(super) const FONT: f64 = 12.0;

/// Space between lines of text.
pub(super) const LINE: f64 = 16.0;

/// Series colours in the style sheet; a further series repeats them dashed.
const COLOURS: usize = 7;

/// A size of a chart. A chart that stands alone has two: the page shows the one that fits, so text never shrinks with it.
#[derive(Clone, Copy)]
pub(super) struct Canvas {
    /// The class under which the style sheet shows it.
    pub class: &'static str,
    pub width: f64,
    /// Height of a chart that needs no height of its own.
    pub height: f64,
    /// Approximate number of ticks that fit on the horizontal axis, and on the vertical one.
    pub ticks: usize,
    pub levels: usize,
    /// Room above the drawing area, and below it.
    pub top: f64,
    pub below: f64,
    /// Up to this many series are named at the end of their lines; more need a legend.
    pub named: usize,
    /// Room for such names at most.
    pub name_room: f64,
    /// Whether values are shown on hover.
    pub roomy: bool,
    /// Whether axes have their names in the chart.
    pub titled: bool,
}

impl Canvas {
    /// The names of axes as they stand in the chart.
    pub fn titles<'a>(&self, x_label: &'a str, y_label: &'a str) -> (&'a str, &'a str) {
        if self.titled { (x_label, y_label) } else { ("", "") }
    }

    /// The drawing area, with this much room on the left and on the right.
    pub fn area(&self, left: f64, right: f64) -> Area {
        Area { left, top: self.top, right: self.width - right, bottom: self.height - self.below }
    }
}

/// For pages of at least 600 pixels and for paper.
pub(super) const WIDE: Canvas = Canvas {
    class: "wide",
    width: 860.0,
    height: 340.0,
    ticks: 12,
    levels: 5,
    top: 30.0,
    below: 46.0,
    named: 6,
    name_room: 150.0,
    roomy: true,
    titled: true,
};

/// For phones.
pub(super) const NARROW: Canvas = Canvas {
    class: "narrow",
    width: 360.0,
    height: 260.0,
    ticks: 7,
    levels: 5,
    top: 30.0,
    below: 46.0,
    named: 0,
    name_room: 0.0,
    roomy: false,
    titled: true,
};

/// For one of several charts side by side; its title and the name of its axis are on the page.
pub(super) const SMALL: Canvas = Canvas {
    class: "small",
    width: 280.0,
    height: 160.0,
    ticks: 5,
    levels: 4,
    top: 16.0,
    below: 22.0,
    named: 8,
    name_room: 84.0,
    roomy: true,
    titled: false,
};

/// A rectangle in pixels; `bottom` is larger than `top`.
#[derive(Clone, Copy)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub fn x(&self, (low, high): (f64, f64)) -> Scale {
        Scale { low, high, start: self.left, end: self.right }
    }

    pub fn y(&self, (low, high): (f64, f64)) -> Scale {
        Scale { low, high, start: self.bottom, end: self.top }
    }
}

/// How text is aligned to its position.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The class of a series' colour and dash.
pub(super) fn colour(series: usize) -> String {
    let dash = if series < COLOURS { "" } else { " dashed" };
    format!("c{}{dash}", series % COLOURS)
}

/// The room that tick labels need to the left of a vertical axis.
pub(super) fn label_room(ticks: &[Tick]) -> f64 {
    ticks.iter().map(|(_, label)| text::width(label, FONT)).fold(12.0, f64::max) + 12.0
}

/// The content of an SVG element under construction.
pub(super) struct Svg {
    body: String,
}

impl Svg {
    pub fn new() -> Self {
        Self { body: String::new() }
    }

    /// Returns the finished element. `figure` is the id of the figure, whose heading names the chart; `summary` describes it.
    pub fn finish(self, canvas: &Canvas, height: f64, figure: &str, summary: &str) -> String {
        let (class, width, height) = (canvas.class, px(canvas.width), px(height));
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{figure}-title\" \
             aria-describedby=\"{figure}-{class}\"><desc id=\"{figure}-{class}\">{}</desc>\n{}</svg>\n",
            text::escape(summary),
            self.body
        )
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (px(from.0), px(from.1), px(to.0), px(to.1));
        self.body.push_str(&format!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>\n"));
    }

    pub fn rect(&mut self, class: &str, area: Area) {
        self.body.push_str(&format!("<rect class=\"{class}\" {}/>\n", place(area)));
    }

    /// A rectangle of some opacity (0 to 1) with a native hover title.
    pub fn cell(&mut self, area: Area, opacity: f64, title: &str) {
        let title = text::full(title);
        self.body.push_str(&format!(
            "<rect class=\"cell\" {} fill-opacity=\"{opacity:.3}\"><title>{title}</title></rect>\n",
            place(area)
        ));
    }

    pub fn circle(&mut self, class: &str, (x, y): (f64, f64)) {
        self.body.push_str(&format!("<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"2.5\"/>\n", px(x), px(y)));
    }

    /// A path through points; `closed` makes it an area.
    pub fn path(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>, closed: bool) {
        let mut data = String::new();
        for (x, y) in points {
            data.push_str(&format!("{}{} {}", if data.is_empty() { 'M' } else { 'L' }, px(x), px(y)));
        }
        if closed {
            data.push('Z');
        }
        self.body.push_str(&format!("<path class=\"{class}\" d=\"{data}\"/>\n"));
    }

    /// Shapes of one look as one path, written by the caller from [`px`] coordinates.
    pub fn shapes(&mut self, class: &str, data: &str) {
        if !data.is_empty() {
            self.body.push_str(&format!("<path class=\"{class}\" d=\"{data}\"/>\n"));
        }
    }

    /// Text cut to `room` pixels; when cut, the whole text is its hover title.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, words: &str, room: f64) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " middle",
            Anchor::End => " end",
        };
        let short = text::cut(words, room, FONT);
        let title = if short == words { String::new() } else { format!("<title>{}</title>", text::full(words)) };
        self.body.push_str(&format!(
            "<text class=\"{class}{anchor}\" x=\"{}\" y=\"{}\">{title}{}</text>\n",
            px(x),
            px(y),
            text::escape(&short)
        ));
    }

    /// Grid lines and labels of a vertical value axis, and its name above it.
    pub fn value_axis(&mut self, area: Area, scale: &Scale, ticks: &[Tick], name: &str, canvas: &Canvas) {
        for (value, label) in ticks {
            let y = scale.at(*value);
            self.line("grid", (area.left, y), (area.right, y));
            self.text("tick", (area.left - 8.0, y + 4.0), Anchor::End, label, area.left);
        }
        if !name.is_empty() {
            self.text("name", (2.0, area.top - 14.0), Anchor::Start, name, canvas.width - 4.0);
        }
    }

    /// The base line, tick marks and labels of a horizontal axis, and its name below it.
    pub fn base_axis(&mut self, area: Area, scale: &Scale, ticks: &[Tick], name: &str) {
        self.line("axis", (area.left, area.bottom), (area.right, area.bottom));
        for (value, label) in ticks {
            let x = scale.at(*value);
            self.line("axis", (x, area.bottom), (x, area.bottom + 4.0));
            self.text("tick", (x, area.bottom + LINE + 1.0), Anchor::Middle, label, area.width());
        }
        self.base_name(area, name);
    }

    /// The name of a horizontal axis, below its labels.
    pub fn base_name(&mut self, area: Area, name: &str) {
        let middle = (area.left + area.right) / 2.0;
        if !name.is_empty() {
            self.text("name", (middle, area.bottom + LINE * 2.0 + 6.0), Anchor::Middle, name, area.width());
        }
    }

    /// A zone that shows exact values while the pointer is on it: a heading and rows, each with its series' colour class.
    pub fn tip(
        &mut self,
        zone: Area,
        mark: Option<f64>,
        at: (f64, f64),
        edge: f64,
        heading: &str,
        rows: &[(String, String)],
    ) {
        // A tenth more than estimated, since some readers' fonts are wide.
        let room = |words: &str, besides: f64| text::width(words, FONT) * 1.1 + besides;
        let widest = rows.iter().map(|(_, row)| room(row, 28.0)).fold(room(heading, 16.0), f64::max);
        let (width, height) = (widest.min(edge), LINE * (rows.len() + 1) as f64 + 12.0);
        let left = if at.0 + 12.0 + width <= edge { at.0 + 12.0 } else { (at.0 - 12.0 - width).max(0.0) };
        let top = (at.1 - height / 2.0).clamp(0.0, (zone.bottom - height).max(0.0));
        self.body.push_str("<g class=\"hit\">");
        self.rect("zone", zone);
        self.body.push_str("<g class=\"tip\">");
        if let Some(x) = mark {
            self.line("mark", (x, zone.top), (x, zone.bottom));
        }
        self.rect("box", Area { left, top, right: left + width, bottom: top + height });
        self.text("head", (left + 8.0, top + LINE + 2.0), Anchor::Start, heading, edge);
        for (i, (class, row)) in rows.iter().enumerate() {
            let y = top + LINE * (i + 2) as f64 + 2.0;
            if !class.is_empty() {
                self.circle(class, (left + 11.0, y - 4.0));
            }
            self.text("row", (left + 20.0, y), Anchor::Start, row, edge);
        }
        self.body.push_str("</g></g>\n");
    }
}

fn place(area: Area) -> String {
    // Sizes of rounded places, so that neighbours touch.
    let tenth = |value: f64| (value * 10.0).round() / 10.0;
    let (left, top) = (tenth(area.left), tenth(area.top));
    let (width, height) = (tenth(area.right) - left, tenth(area.bottom) - top);
    format!("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", px(left), px(top), px(width.max(0.0)), px(height.max(0.0)))
}

/// A coordinate with a tenth of a pixel: more precision is invisible and makes the page larger.
pub(super) fn px(value: f64) -> String {
    let text = format!("{:.1}", value + 0.0);
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}
