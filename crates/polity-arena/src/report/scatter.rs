//! Named points with intervals, and the frontier of those that no other point beats.

use super::page::Point;
use super::scale::{drawable, extent, padded, ticks};
use super::svg::{Anchor, Area, Canvas, FONT, LINE, Svg, label_room};
use super::text;

/// A chart of points, ready to be drawn at either size.
pub(super) struct Scatter<'a> {
    pub x_label: &'a str,
    pub y_label: &'a str,
    pub points: &'a [Point],
}

/// Returns the points that no other beats, by `x`: none has more `y` at no more `x`, or as much `y` at less `x`.
pub fn frontier(points: &[Point]) -> Vec<usize> {
    let beats = |a: &Point, b: &Point| a.x <= b.x && a.y >= b.y && (a.x < b.x || a.y > b.y);
    let shown = |point: &Point| drawable(point.x) && drawable(point.y);
    let best = |i: &usize| shown(&points[*i]) && !points.iter().any(|other| shown(other) && beats(other, &points[*i]));
    let mut all: Vec<usize> = (0..points.len()).filter(best).collect();
    all.sort_by(|a, b| points[*a].x.total_cmp(&points[*b].x));
    all
}

impl Scatter<'_> {
    /// Whether there is a point to draw.
    pub fn has_points(&self) -> bool {
        self.points.iter().any(|point| drawable(point.x) && drawable(point.y))
    }

    /// Columns and rows of the data behind the chart.
    pub fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let best = frontier(self.points);
        let columns = ["", self.x_label, self.y_label, "low", "high", "frontier"].map(str::to_owned).to_vec();
        let row = |(i, point): (usize, &Point)| {
            let (low, high) = point.interval.unwrap_or((f64::NAN, f64::NAN));
            let on = if best.contains(&i) { "yes" } else { "" };
            let mut row = vec![point.label.clone()];
            row.extend([point.x, point.y, low, high].map(text::plain));
            row.push(on.to_owned());
            row
        };
        (columns, self.points.iter().enumerate().map(row).collect())
    }

    fn summary(&self) -> String {
        let mut words = format!("{} against {}.", self.y_label, self.x_label);
        for point in self.points.iter().take(20) {
            let name = text::first(&point.label, 80);
            words.push_str(&format!(" {name}: {} at {}.", text::shown(point.y), text::shown(point.x)));
        }
        words
    }

    pub fn draw(&self, canvas: &Canvas, figure: &str) -> String {
        let mut svg = Svg::new();
        let ends = |point: &Point| point.interval.map_or([point.y; 2], |(low, high)| [low, high]);
        let y_range = padded(extent(self.points.iter().flat_map(ends)).unwrap_or((0.0, 1.0)));
        let x_range = padded(extent(self.points.iter().map(|point| point.x).chain([0.0])).unwrap_or((0.0, 1.0)));
        let y_ticks = ticks(y_range.0, y_range.1, canvas.levels, false);
        let area = canvas.area(label_room(&y_ticks), 14.0);
        let (x, y) = (area.x(x_range), area.y(y_range));
        svg.value_axis(area, &y, &y_ticks, self.y_label, canvas);
        svg.base_axis(area, &x, &ticks(x_range.0, x_range.1, canvas.ticks / 2 + 1, false), self.x_label);
        let best = frontier(self.points);
        let at = |i: usize| (x.at(self.points[i].x), y.at(self.points[i].y));
        if best.len() > 1 {
            svg.path("line c0", best.iter().map(|i| at(*i)), false);
        }
        let mut taken: Vec<Area> = Vec::new();
        let shown = (0..self.points.len()).filter(|i| drawable(self.points[*i].x) && drawable(self.points[*i].y));
        for i in shown.clone() {
            let (left, top) = at(i);
            if let Some((low, high)) = self.points[i].interval {
                svg.line("whisker", (left, y.at(low)), (left, y.at(high)));
            }
            svg.circle(if best.contains(&i) { "dot c0" } else { "dot c6" }, (left, top));
            taken.push(Area { left: left - 3.0, right: left + 3.0, top: top - 3.0, bottom: top + 3.0 });
        }
        for i in shown {
            let label = text::first(&self.points[i].label, 40);
            let place = free(at(i), text::width(&label, FONT), area, &taken);
            svg.text("direct value", (place.left, place.bottom - 4.0), Anchor::Start, &label, area.width());
            taken.push(place);
        }
        svg.finish(canvas, canvas.height, figure, &self.summary())
    }
}

/// Finds a free place for a name near its point.
fn free((x, y): (f64, f64), width: f64, area: Area, taken: &[Area]) -> Area {
    let place = |left: f64, top: f64| Area { left, right: left + width, top, bottom: top + LINE };
    let right = |down: f64| place(x + 6.0, y - LINE / 2.0 + down);
    let left = |down: f64| place(x - 6.0 - width, y - LINE / 2.0 + down);
    let all: Vec<Area> =
        [0.0, -LINE, LINE, -2.0 * LINE, 2.0 * LINE].into_iter().flat_map(|d| [right(d), left(d)]).collect();
    let apart = |a: &Area, b: &Area| a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
    let inside =
        |a: &Area| a.left >= area.left && a.right <= area.right && a.top >= area.top - LINE && a.bottom <= area.bottom;
    let found = all.iter().find(|place| inside(place) && taken.iter().all(|other| apart(place, other)));
    found.or_else(|| all.iter().find(|place| inside(place))).copied().unwrap_or(right(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frontier_is_what_nothing_beats() {
        let point = |x: f64, y: f64| Point { label: String::new(), x, y, interval: None };
        let points =
            [point(3.0, 0.9), point(1.0, 0.5), point(2.0, 0.5), point(4.0, 0.9), point(2.5, 0.4), point(1.0, f64::NAN)];
        assert_eq!(frontier(&points), [1, 0]);
        // Equal points do not beat each other.
        assert_eq!(frontier(&[point(1.0, 0.5), point(1.0, 0.5)]), [0, 1]);
    }
}
