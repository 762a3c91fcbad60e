//! Charts as shapes with their looks, for files that stand alone: what `svg.rs` wrote for the page, without its style sheet and its hover
//! tips.

use super::svg::Anchor;
use super::text;

/// A colour: red, green, blue.
pub(super) type Colour = (u8, u8, u8);

pub(super) const INK: Colour = (0x1b, 0x1d, 0x20);
pub(super) const SOFT: Colour = (0x5c, 0x61, 0x67);
pub(super) const PAPER: Colour = (0xff, 0xff, 0xff);

/// The colours of the style sheet on light paper, by class.
const COLOURS: [(&str, u32); 26] = [
    ("c0", 0x0072b2),
    ("c1", 0xd55e00),
    ("c2", 0x009068),
    ("c3", 0xb9558c),
    ("c4", 0xa87400),
    ("c5", 0x4a9fd0),
    ("c6", 0x555a60),
    ("s0", 0xb4d4e8),
    ("s1", 0x8fbedc),
    ("s2", 0x66a5cd),
    ("s3", 0x3f8abb),
    ("s4", 0x206fa4),
    ("s5", 0x0d5488),
    ("s6", 0x06365f),
    ("d0", 0xa84a00),
    ("d1", 0xd97a2b),
    ("d2", 0xedb583),
    ("d3", 0xb5b9bd),
    ("d4", 0x8fbedc),
    ("d5", 0x3f8abb),
    ("d6", 0x0d5488),
    ("before", 0xa9adb1),
    ("heat", 0x08426e),
    ("grid", 0xe9e9e4),
    ("panel", 0xf6f6f3),
    ("rule", 0xdcdcd6),
];

/// The colour of a class of the style sheet; that of ink if it has none.
pub(super) fn colour(class: &str) -> Colour {
    let known = COLOURS.iter().find(|(name, _)| *name == class);
    known.map_or(INK, |(_, hex)| ((hex >> 16) as u8, (hex >> 8) as u8, *hex as u8))
}

/// A colour and its opacity, 0 to 1.
pub(super) type Paint = (Colour, f64);

/// How a shape is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Look {
    pub fill: Option<Paint>,
    pub stroke: Option<Paint>,
    /// Width of the stroke, in pixels.
    pub width: f64,
    /// Lengths of a dash and of the gap behind it.
    pub dash: Option<(f64, f64)>,
    /// Whether the ends of lines are round.
    pub round: bool,
}

/// A part of an outline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Move(f64, f64),
    Line(f64, f64),
    /// A cubic Bézier curve: two control points and its end.
    Curve([(f64, f64); 3]),
    Close,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Path { steps: Vec<Step>, look: Look },
    Text(Words),
}

/// A line of text.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub at: (f64, f64),
    pub anchor: Anchor,
    pub bold: bool,
    /// Font size, in pixels.
    pub size: f64,
    pub colour: Colour,
    /// Whether it has a white outline, since it stands on lines.
    pub halo: bool,
    pub text: String,
}

/// A picture of some size, in pixels, from the top left.
#[derive(Clone, Debug, Default)]
pub(super) struct Drawing {
    pub width: f64,
    pub height: f64,
    pub shapes: Vec<Shape>,
}

impl Drawing {
    /// Adds another drawing at a place, at a scale.
    pub fn place(&mut self, other: Drawing, (left, top): (f64, f64), scale: f64) {
        let at = |(x, y): (f64, f64)| (left + x * scale, top + y * scale);
        for shape in other.shapes {
            self.shapes.push(match shape {
                Shape::Text(words) => Shape::Text(Words { at: at(words.at), ..words }),
                Shape::Path { steps, look } => {
                    let step = |step: Step| match step {
                        Step::Move(x, y) => Step::Move(at((x, y)).0, at((x, y)).1),
                        Step::Line(x, y) => Step::Line(at((x, y)).0, at((x, y)).1),
                        Step::Curve(points) => Step::Curve(points.map(at)),
                        Step::Close => Step::Close,
                    };
                    Shape::Path { steps: steps.into_iter().map(step).collect(), look }
                }
            });
        }
    }

    pub fn rect(&mut self, (left, top): (f64, f64), (width, height): (f64, f64), fill: Colour) {
        let look = Look { fill: Some((fill, 1.0)), ..Look::default() };
        self.shapes.push(Shape::Path { steps: rectangle(left, top, width, height), look });
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Colour, width: f64, dashed: bool) {
        let dash = dashed.then_some((5.0, 4.0));
        let look = Look { stroke: Some((stroke, 1.0)), width, dash, ..Look::default() };
        self.shapes.push(Shape::Path { steps: vec![Step::Move(from.0, from.1), Step::Line(to.0, to.1)], look });
    }

    pub fn text(&mut self, at: (f64, f64), size: f64, bold: bool, colour: Colour, text: &str) {
        let text = text.to_owned();
        let words = Words { at, anchor: Anchor::Start, bold, size, colour, halo: false, text };
        self.shapes.push(Shape::Text(words));
    }

    /// The charts in a part of the page, in order.
    pub fn read_all(html: &str) -> Vec<Drawing> {
        let charts = html.split("<svg ").skip(1).filter_map(|rest| rest.split("</svg>").next());
        charts.filter_map(Drawing::read).collect()
    }

    /// A chart as the page has it: the element's text behind `<svg `.
    fn read(chart: &str) -> Option<Drawing> {
        let (head, body) = chart.split_once('>')?;
        let size: Vec<f64> = attribute(head, "viewBox")?.split(' ').filter_map(|part| part.parse().ok()).collect();
        let [_, _, width, height] = size[..] else { return None };
        let mut drawing = Drawing { width, height, shapes: Vec::new() };
        for (tag, content) in elements(body) {
            drawing.shapes.extend(shape(tag, content));
        }
        Some(drawing)
    }

    /// The drawing as an SVG file: shapes with their own looks, as programs that draw expect them.
    pub fn svg(&self) -> String {
        let (width, height) = (number(self.width), number(self.height));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"Helvetica, Arial, sans-serif\">\n"
        );
        for shape in &self.shapes {
            match shape {
                Shape::Path { steps, look } => {
                    out.push_str(&format!("<path d=\"{}\"{}/>\n", data(steps), attributes(look)));
                }
                Shape::Text(words) => out.push_str(&svg_text(words)),
            }
        }
        out + "</svg>\n"
    }
}

fn rectangle(left: f64, top: f64, width: f64, height: f64) -> Vec<Step> {
    vec![
        Step::Move(left, top),
        Step::Line(left + width, top),
        Step::Line(left + width, top + height),
        Step::Line(left, top + height),
        Step::Close,
    ]
}

/// Four curves; their control points are 0.5523 of the radius away, which is within 0.03 % of a circle.
fn circle(x: f64, y: f64, r: f64) -> Vec<Step> {
    let k = 0.552_284_75 * r;
    vec![
        Step::Move(x + r, y),
        Step::Curve([(x + r, y + k), (x + k, y + r), (x, y + r)]),
        Step::Curve([(x - k, y + r), (x - r, y + k), (x - r, y)]),
        Step::Curve([(x - r, y - k), (x - k, y - r), (x, y - r)]),
        Step::Curve([(x + k, y - r), (x + r, y - k), (x + r, y)]),
        Step::Close,
    ]
}

/// The value of an attribute.
pub(super) fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!("{name}=\"")).filter(|at| *at == 0 || tag.as_bytes()[at - 1] == b' ')?;
    tag[start + name.len() + 2..].split('"').next()
}

/// The shapes in the body of a chart, each with its tag and its text; without what only hovering shows.
fn elements(body: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = body;
    while let Some((_, after)) = rest.split_once('<') {
        let Some((tag, content)) = after.split_once('>') else { break };
        if tag.starts_with("g class=\"hit\"") {
            // Its tip is a group within it.
            rest = content.split_once("</g></g>").map_or("", |(_, behind)| behind);
            continue;
        }
        rest = content;
        let text = match tag.split(' ').next() {
            Some("text") => content.split("</text>").next().unwrap_or_default(),
            Some("line" | "rect" | "circle" | "path") => "",
            _ => continue,
        };
        found.push((tag, text));
    }
    found
}

fn shape(tag: &str, content: &str) -> Option<Shape> {
    let value = |name: &str| attribute(tag, name).and_then(|text| text.parse::<f64>().ok());
    let classes = attribute(tag, "class").unwrap_or_default();
    let steps = match tag.split(' ').next()? {
        "line" => vec![Step::Move(value("x1")?, value("y1")?), Step::Line(value("x2")?, value("y2")?)],
        "rect" => rectangle(value("x")?, value("y")?, value("width")?, value("height")?),
        "circle" => circle(value("cx")?, value("cy")?, value("r")?),
        "path" => outline(attribute(tag, "d")?),
        _ => return Some(Shape::Text(words(classes, (value("x")?, value("y")?), content))),
    };
    let mut look = look(classes)?;
    if let (Some(opacity), Some(fill)) = (value("fill-opacity"), look.fill.as_mut()) {
        fill.1 = opacity;
    }
    Some(Shape::Path { steps, look })
}

/// The look of a shape by its classes, as in the style sheet; `None` for what is never seen.
pub(super) fn look(classes: &str) -> Option<Look> {
    let mut names = classes.split(' ');
    let kind = names.next().unwrap_or_default();
    let own = names.find(|name| COLOURS.iter().any(|(known, _)| known == name)).map_or(INK, colour);
    let dashed = classes.split(' ').any(|name| name == "dashed");
    let stroke = |colour: Colour, width: f64| Look { stroke: Some((colour, 1.0)), width, ..Look::default() };
    let fill = |colour: Colour, opacity: f64| Look { fill: Some((colour, opacity)), ..Look::default() };
    Some(match kind {
        "grid" => stroke(colour("grid"), 1.0),
        "axis" => stroke(SOFT, 1.0),
        "line" => Look { round: true, dash: dashed.then_some((5.0, 4.0)), ..stroke(own, 2.0) },
        "stem" => stroke(own, 1.5),
        "change" => Look { dash: Some((3.0, 3.0)), ..stroke(colour("c1"), 1.0) },
        "whisker" => stroke(INK, 1.25),
        "leader" => Look { stroke: Some((own, 0.6)), ..stroke(own, 1.0) },
        "ties" => Look { stroke: Some((SOFT, 0.5)), ..stroke(SOFT, 0.8) },
        "dots" => Look { round: true, ..stroke(own, 5.0) },
        "dot" | "bar" | "area" => fill(own, 1.0),
        "band" => fill(own, 0.16),
        "wash" => fill(own, 0.22),
        "ground" => fill(colour("panel"), 1.0),
        "cell" => fill(colour("heat"), 1.0),
        _ => return None,
    })
}

fn words(classes: &str, at: (f64, f64), content: &str) -> Words {
    let has = |name: &str| classes.split(' ').any(|class| class == name);
    let own = classes.split(' ').find(|name| COLOURS.iter().any(|(known, _)| known == name)).map_or(INK, colour);
    let anchor = match () {
        () if has("middle") => Anchor::Middle,
        () if has("end") => Anchor::End,
        () => Anchor::Start,
    };
    let colour = match () {
        () if has("tick") => SOFT,
        () if has("letter") => colour("c1"),
        () if has("direct") && !has("value") => own,
        () => INK,
    };
    // A hover title stands before the words.
    let content = content.rsplit("</title>").next().unwrap_or_default();
    Words {
        at,
        anchor,
        bold: has("letter"),
        size: super::svg::FONT,
        colour,
        halo: has("value"),
        text: unescape(content),
    }
}

/// Text as it was before [`text::escape`].
pub(super) fn unescape(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

/// The outline that path data describes: `M`, `L`, `h`, `v` and `z`.
fn outline(data: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut start, mut here) = ((0.0, 0.0), (0.0, 0.0));
    let letters = data.char_indices().filter(|(_, c)| c.is_ascii_alphabetic());
    let letters: Vec<(usize, char)> = letters.collect();
    for (i, (at, letter)) in letters.iter().enumerate() {
        let end = letters.get(i + 1).map_or(data.len(), |(next, _)| *next);
        let numbers: Vec<f64> = data[at + 1..end].split(' ').filter_map(|part| part.parse().ok()).collect();
        match (letter, numbers.as_slice()) {
            ('M', [x, y]) => {
                (start, here) = ((*x, *y), (*x, *y));
                steps.push(Step::Move(*x, *y));
                continue;
            }
            ('L', [x, y]) => here = (*x, *y),
            ('h', [x]) => here.0 += x,
            ('v', [y]) => here.1 += y,
            ('z' | 'Z', _) => {
                here = start;
                steps.push(Step::Close);
                continue;
            }
            _ => continue,
        }
        steps.push(Step::Line(here.0, here.1));
    }
    steps
}

/// A number with at most two decimals.
pub(super) fn number(value: f64) -> String {
    let text = format!("{:.2}", value + 0.0);
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".into(),
        short => short.into(),
    }
}

fn data(steps: &[Step]) -> String {
    let pair = |(x, y): (f64, f64)| format!("{} {}", number(x), number(y));
    let step = |step: &Step| match *step {
        Step::Move(x, y) => format!("M{}", pair((x, y))),
        Step::Line(x, y) => format!("L{}", pair((x, y))),
        Step::Curve([a, b, c]) => format!("C{} {} {}", pair(a), pair(b), pair(c)),
        Step::Close => "Z".into(),
    };
    steps.iter().map(step).collect()
}

fn hex((red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn attributes(look: &Look) -> String {
    let opacity = |name: &str, opacity: f64| match opacity < 1.0 {
        true => format!(" {name}-opacity=\"{opacity}\""),
        false => String::new(),
    };
    let mut out = match look.fill {
        Some((colour, part)) => format!(" fill=\"{}\"{}", hex(colour), opacity("fill", part)),
        None => " fill=\"none\"".to_owned(),
    };
    if let Some((colour, part)) = look.stroke {
        let width = number(look.width);
        out.push_str(&format!(" stroke=\"{}\"{} stroke-width=\"{width}\"", hex(colour), opacity("stroke", part)));
    }
    if let Some((dash, gap)) = look.dash {
        out.push_str(&format!(" stroke-dasharray=\"{dash} {gap}\""));
    }
    if look.round {
        out.push_str(" stroke-linecap=\"round\" stroke-linejoin=\"round\"");
    }
    out
}

fn svg_text(words: &Words) -> String {
    let anchor = match words.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let bold = if words.bold { " font-weight=\"bold\"" } else { "" };
    let halo = if words.halo { " paint-order=\"stroke\" stroke=\"#ffffff\" stroke-width=\"3\"" } else { "" };
    format!(
        "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{anchor}{bold}{halo}>{}</text>\n",
        number(words.at.0),
        number(words.at.1),
        number(words.size),
        hex(words.colour),
        text::escape(&words.text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_style_sheet() {
        let sheet = include_str!("style.css");
        for (name, hex) in COLOURS {
            assert!(sheet.contains(&format!("--{name}: #{hex:06x}")), "{name}");
        }
        for (name, own) in [("ink", INK), ("soft", SOFT), ("paper", PAPER)] {
            assert!(sheet.contains(&format!("--{name}: {}", hex(own))), "{name}");
        }
    }

    #[test]
    fn charts_are_read_back_without_their_tips() {
        let chart = "<svg class=\"wide\" viewBox=\"0 0 80 40\" role=\"img\"><desc id=\"a\">text &lt;</desc>\n\
                     <line class=\"grid\" x1=\"1\" y1=\"2\" x2=\"3\" y2=\"4\"/>\n<path class=\"area c1\" d=\"M1 2h0.5v-1z\"/>\n\
                     <g class=\"hit\"><rect class=\"zone\" x=\"0\" y=\"0\" width=\"1\" height=\"1\"/><g class=\"tip\">\
                     <text class=\"head\" x=\"1\" y=\"1\">tip</text></g></g>\n\
                     <text class=\"tick end\" x=\"5\" y=\"6\"><title>a &amp; b and more</title>a &amp; b</text>\n\
                     <rect class=\"cell\" x=\"0\" y=\"0\" width=\"2\" height=\"2\" fill-opacity=\"0.250\"><title>x</title></rect></svg>\n";
        let read = Drawing::read_all(chart);
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].width, read[0].height, read[0].shapes.len()), (80.0, 40.0, 4));
        let svg = read[0].svg();
        for part in [
            "<path d=\"M1 2L3 4\" fill=\"none\" stroke=\"#e9e9e4\" stroke-width=\"1\"/>",
            "<path d=\"M1 2L1.5 2L1.5 1Z\" fill=\"#d55e00\"/>",
            "fill=\"#08426e\" fill-opacity=\"0.25\"",
            "text-anchor=\"end\">a &amp; b</text>",
        ] {
            assert!(svg.contains(part), "{part}\n{svg}");
        }
        assert!(!svg.contains("tip") && !svg.contains("class="));
    }
}
