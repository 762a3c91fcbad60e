//! Values with whiskers at named levels, one colour per series: side by side where the names fit, else a row for each level.

use super::lines;
use super::page::Series;
use super::scale::{drawable, extent, padded, ticks};
use super::svg::{Anchor, Area, Canvas, SMALL, Svg, colour, label_room};
use super::text;

/// Height of a level's row, in pixels, and the maximum part of a chart's width for names.
const ROW: f64 = 18.0;
const NAME_SHARE: f64 = 0.45;
/// Size of the names, in pixels.
const FONT: f64 = 12.0;

/// The chart as SVG. `joined`: the levels have an order, so lines join them.
pub(super) fn draw(names: &[String], series: &[Series], joined: bool, id: &str) -> String {
    match are_rows(names, series) {
        true => rows(names, series, joined, id),
        false => columns(names, series, joined, id),
    }
}

/// Whether the names of the levels do not fit side by side.
pub(super) fn are_rows(names: &[String], series: &[Series]) -> bool {
    let (area, _) = upright(series);
    let slot = area.width() / names.len().max(1) as f64;
    names.iter().any(|name| text::width(name, FONT) > slot - 2.0)
}

fn canvas() -> Canvas {
    Canvas { height: 180.0, ..SMALL }
}

/// The range of all values and intervals, with some air.
fn range(series: &[Series]) -> (f64, f64) {
    let ends = |s: &Series| s.band.iter().flatten().flat_map(|b| [b.1, b.2]).collect::<Vec<f64>>();
    let values = series.iter().flat_map(|s| s.points.iter().map(|p| p.1).chain(ends(s)));
    let (low, high) = extent(values).unwrap_or((0.0, 1.0));
    // Differences matter here, so the axis need not begin at zero.
    let air = (high - low) * 0.08;
    if air > 0.0 { (low - air, high + air) } else { padded((low, high)) }
}

/// The area of a chart with its levels side by side, and its range.
fn upright(series: &[Series]) -> (Area, (f64, f64)) {
    let (canvas, range) = (canvas(), range(series));
    let widest = series.iter().map(|s| text::width(&s.name, FONT)).fold(0.0, f64::max);
    let room = if series.len() > 1 { widest.min(canvas.name_room) + 12.0 } else { 14.0 };
    (canvas.area(label_room(&ticks(range.0, range.1, canvas.levels, false)), room), range)
}

fn columns(names: &[String], series: &[Series], joined: bool, id: &str) -> String {
    let canvas = canvas();
    let mut svg = Svg::new();
    let (area, range) = upright(series);
    let y = area.y(range);
    svg.value_axis(area, &y, &ticks(range.0, range.1, canvas.levels, false), "", &canvas);
    svg.line("axis", (area.left, area.bottom), (area.right, area.bottom));
    let slot = area.width() / names.len().max(1) as f64;
    let middle = |level: f64| area.left + (level + 0.5) * slot;
    for (i, name) in names.iter().enumerate() {
        svg.text("tick", (middle(i as f64), area.bottom + 17.0), Anchor::Middle, name, slot - 2.0);
    }
    values(&mut svg, series, joined, |level, aside, value| (middle(level) + aside, y.at(value)));
    name_series(&mut svg, &canvas, area, series, |value| y.at(value));
    svg.finish(&canvas, canvas.height, id, &summary(names, series))
}

fn rows(names: &[String], series: &[Series], joined: bool, id: &str) -> String {
    let mut svg = Svg::new();
    let range = range(series);
    let widest = names.iter().map(|name| text::width(name, FONT)).fold(0.0, f64::max);
    let left = widest.min(SMALL.width * NAME_SHARE) + 12.0;
    let bottom = SMALL.top + ROW * names.len() as f64;
    let canvas = Canvas { height: bottom + SMALL.below, ..SMALL };
    let area = Area { left, top: SMALL.top, right: SMALL.width - 14.0, bottom };
    let x = area.x(range);
    for (value, label) in ticks(range.0, range.1, 3, false) {
        svg.line("grid", (x.at(value), area.top), (x.at(value), area.bottom));
        svg.text("tick", (x.at(value), area.bottom + 17.0), Anchor::Middle, &label, area.width());
    }
    svg.line("axis", (area.left, area.bottom), (area.right, area.bottom));
    let middle = |level: f64| area.top + (level + 0.5) * ROW;
    for (i, name) in names.iter().enumerate() {
        svg.text("tick", (area.left - 8.0, middle(i as f64) + 4.0), Anchor::End, name, area.left - 10.0);
    }
    values(&mut svg, series, joined, |level, aside, value| (x.at(value), middle(level) + aside));
    svg.finish(&canvas, canvas.height, id, &summary(names, series))
}

/// Draws the values of all series. `at`: the place of a value at a level, moved aside by so many pixels.
fn values(svg: &mut Svg, series: &[Series], joined: bool, at: impl Fn(f64, f64, f64) -> (f64, f64)) {
    for (i, series) in series.iter().enumerate() {
        let class = colour(i);
        // Whiskers of several series do not lie on each other.
        let aside = (i as f64 - 0.5) * 4.0;
        let shown = series.points.iter().filter(|p| drawable(p.0) && drawable(p.1));
        if joined {
            svg.path(&format!("line {class}"), shown.clone().map(|p| at(p.0, aside, p.1)), false);
        }
        for (level, low, high) in
            series.band.iter().flatten().filter(|b| drawable(b.0) && drawable(b.1) && drawable(b.2))
        {
            svg.line(&format!("stem {class}"), at(*level, aside, *low), at(*level, aside, *high));
        }
        shown.clone().for_each(|p| svg.circle(&format!("dot {class}"), at(p.0, aside, p.1)));
    }
}

fn summary(names: &[String], series: &[Series]) -> String {
    let words = series.iter().map(|s| text::first(&s.name, 80)).collect::<Vec<_>>().join(", ");
    format!("Means with intervals at {} levels: {words}.", names.len())
}

/// Names at the ends of lines over levels.
fn name_series(svg: &mut Svg, canvas: &Canvas, area: Area, series: &[Series], y: impl Fn(f64) -> f64) {
    if series.len() < 2 {
        return;
    }
    let last = |s: &Series| s.points.iter().rev().find(|p| drawable(p.1)).map(|p| y(p.1));
    let mut ends: Vec<(usize, f64)> = series.iter().enumerate().filter_map(|(i, s)| last(s).map(|y| (i, y))).collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let places = lines::apart(ends.iter().map(|end| end.1).collect(), area.top, area.bottom);
    for ((i, _), place) in ends.into_iter().zip(places) {
        let class = format!("direct {}", colour(i));
        svg.text(&class, (area.right + 6.0, place + 4.0), Anchor::Start, &series[i].name, canvas.name_room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_get_rows_of_their_own_and_are_whole() {
        let series = |n: usize| Series {
            points: (0..n).map(|i| (i as f64, i as f64)).collect(),
            band: Some((0..n).map(|i| (i as f64, i as f64 - 1.0, i as f64 + 1.0)).collect()),
            ..Series::default()
        };
        let short = ["a", "b"].map(String::from);
        assert!(!are_rows(&short, &[series(2)]));
        let long: Vec<String> = (0..12).map(|i| format!("conscientious {i}")).collect();
        assert!(are_rows(&long, &[series(12)]));
        let chart = draw(&long, &[series(12)], false, "figure-1");
        assert!(long.iter().all(|name| chart.contains(&format!(">{name}<"))), "{chart}");
    }
}
