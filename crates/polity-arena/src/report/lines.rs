//! Line charts: metrics over rounds, with bands.

use super::decimate::{MOST_POINTS, decimate};
use super::page::Series;
use super::scale::{drawable, extent, padded, snug, ticks};
use super::svg::{Anchor, Area, Canvas, FONT, LINE, Svg, colour, label_room};
use super::text;

/// The most series drawn in one chart.
pub(super) const MOST_SERIES: usize = 24;

/// Lines with at most this many points show each as a dot.
const DOTTED_POINTS: usize = 24;

/// Width of a place along the horizontal axis that responds to the pointer, and series that it lists.
const PIXELS_PER_TIP: usize = 7;
const MOST_TIP_ROWS: usize = 8;

/// A line chart's parts, ready to be drawn at either size.
#[derive(Default)]
pub(super) struct Lines<'a> {
    pub x_label: &'a str,
    pub y_label: &'a str,
    pub series: &'a [Series],
    /// Positions of vertical lines, with a letter each.
    pub marks: Vec<(f64, String)>,
    /// The range of the horizontal axis, if it is not the series' own.
    pub x_range: Option<(f64, f64)>,
}

/// A series' values by position, for tips and tables: exact, not decimated.
struct Lookup {
    values: Vec<(f64, f64)>,
    bands: Vec<(f64, (f64, f64))>,
}

impl Lookup {
    fn new(series: &Series) -> Self {
        let mut values: Vec<_> = series.points.iter().filter(|p| p.0.is_finite()).map(|p| (p.0 + 0.0, p.1)).collect();
        let band = series.band.iter().flatten();
        let mut bands: Vec<_> = band.filter(|b| b.0.is_finite()).map(|b| (b.0 + 0.0, (b.1, b.2))).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        bands.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { values, bands }
    }

    fn value(&self, x: f64) -> f64 {
        find(&self.values, x).unwrap_or(f64::NAN)
    }

    fn band(&self, x: f64) -> Option<(f64, f64)> {
        find(&self.bands, x)
    }
}

fn find<T: Copy>(sorted: &[(f64, T)], x: f64) -> Option<T> {
    let at = sorted.partition_point(|(other, _)| *other < x);
    sorted.get(at).filter(|(other, _)| *other == x).map(|(_, value)| *value)
}

impl Lines<'_> {
    fn drawn(&self) -> &[Series] {
        &self.series[..self.series.len().min(MOST_SERIES)]
    }

    /// Whether the chart names its series itself; a single one has its last value there.
    pub fn names_itself(&self, canvas: &Canvas) -> bool {
        let fits = |series: &Series| text::width(&series.name, FONT) <= canvas.name_room;
        self.series.len() == 1 && canvas.named > 0 || self.series.len() <= canvas.named && self.series.iter().all(fits)
    }

    /// Whether there is a point to draw.
    pub fn has_points(&self) -> bool {
        self.drawn().iter().any(|s| s.points.iter().any(|p| drawable(p.0) && drawable(p.1)) || has_band(s))
    }

    /// Notes for the text under the chart on what the chart cannot show.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.series.len() > MOST_SERIES {
            notes.push(format!("Only the first {MOST_SERIES} of {} series are drawn.", self.series.len()));
        }
        for series in self.drawn() {
            if !series.points.iter().any(|p| drawable(p.0) && drawable(p.1)) {
                notes.push(format!("“{}” has no values.", text::first(&series.name, 80)));
            }
        }
        notes
    }

    /// The chart in words, for readers who do not see it.
    pub fn summary(&self) -> String {
        let mut words = format!("Line chart of {} against {}.", self.y_label, self.x_label);
        for series in self.drawn().iter().take(6) {
            let mut points = series.points.iter().filter(|p| drawable(p.0) && drawable(p.1));
            let Some(first) = points.next() else { continue };
            let last = points.next_back().unwrap_or(first);
            words.push_str(&format!(
                " {}: {} at {}, {} at {}.",
                text::first(&series.name, 80),
                text::shown(first.1),
                text::shown(first.0),
                text::shown(last.1),
                text::shown(last.0)
            ));
        }
        words
    }

    /// Returns columns and rows of the data behind the chart, at most `most` rows, and the total number of rows.
    pub fn table(&self, most: usize) -> (Vec<String>, Vec<Vec<String>>, usize) {
        let named: Vec<(String, &Series)> = self.drawn().iter().map(|s| (s.name.clone(), s)).collect();
        table(self.x_label, &named, most)
    }

    /// Ranges of both axes.
    fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        let xs = self.drawn().iter().flat_map(|s| {
            let band = s.band.iter().flatten().map(|b| b.0);
            s.points.iter().map(|p| p.0).chain(band)
        });
        let ys = self.drawn().iter().flat_map(|s| {
            let band = s.band.iter().flatten().flat_map(|b| [b.1, b.2]);
            s.points.iter().map(|p| p.1).chain(band)
        });
        let x_range = self.x_range.or_else(|| extent(xs)).unwrap_or((0.0, 1.0));
        (snug(x_range), padded(extent(ys).unwrap_or((0.0, 1.0))))
    }

    /// Whether all positions are whole numbers, as rounds are.
    fn is_whole(&self) -> bool {
        self.drawn().iter().flat_map(|s| &s.points).all(|p| !drawable(p.0) || p.0.fract() == 0.0)
    }

    /// The chart at one size.
    pub fn draw(&self, canvas: &Canvas, figure: &str) -> String {
        let mut svg = Svg::new();
        let (x_range, y_range) = self.ranges();
        let y_ticks = ticks(y_range.0, y_range.1, canvas.levels, false);
        let named = self.names_itself(canvas);
        let area = canvas.area(label_room(&y_ticks), if named { self.name_room(canvas) } else { 14.0 });
        let (x, y) = (area.x(x_range), area.y(y_range));
        let (x_label, y_label) = canvas.titles(self.x_label, self.y_label);
        svg.value_axis(area, &y, &y_ticks, y_label, canvas);
        svg.base_axis(area, &x, &ticks(x_range.0, x_range.1, canvas.ticks, self.is_whole()), x_label);
        for (at, letter) in self.marks.iter().filter(|(at, _)| (x_range.0..=x_range.1).contains(at)) {
            svg.line("change", (x.at(*at), area.top), (x.at(*at), area.bottom));
            svg.text("letter", (x.at(*at), area.top - 4.0), Anchor::Middle, letter, area.width());
        }
        let colours = colours(self.drawn());
        for (series, class) in self.drawn().iter().zip(&colours) {
            let band = series.band.as_deref().unwrap_or_default();
            for run in runs(band, |b| (drawable(b.0) && drawable(b.1) && drawable(b.2)).then_some((b.1, b.2))) {
                let upper = run.iter().map(|b| (x.at(b.0), y.at(b.2)));
                let lower = run.iter().rev().map(|b| (x.at(b.0), y.at(b.1)));
                svg.path(&format!("band {class}"), upper.chain(lower), true);
            }
        }
        for (series, class) in self.drawn().iter().zip(&colours) {
            let dots = series.points.len() <= DOTTED_POINTS && !series.reference;
            for run in runs(&series.points, |p| (drawable(p.0) && drawable(p.1)).then_some((p.1, p.1))) {
                let points = run.iter().map(|p| (x.at(p.0), y.at(p.1)));
                if run.len() > 1 {
                    svg.path(&format!("line {class}"), points.clone(), false);
                }
                // A point between two gaps has no line and would be lost without its dot.
                if dots || run.len() == 1 {
                    points.for_each(|point| svg.circle(&format!("dot {class}"), point));
                }
            }
        }
        if named {
            self.name_lines(&mut svg, canvas, area, &colours, |value| y.at(value));
        }
        if canvas.roomy {
            self.tips(&mut svg, canvas, area, &colours, |at| x.at(at), |value| y.at(value));
        }
        svg.finish(canvas, canvas.height, figure, &self.summary())
    }

    /// What is written at the end of a line: the name, or the last value of a single series.
    fn end_label(&self, series: &Series) -> String {
        match self.drawn() {
            [_] => series.points.iter().rev().find(|p| drawable(p.1)).map_or(String::new(), |p| text::short(p.1)),
            _ => series.name.clone(),
        }
    }

    fn name_room(&self, canvas: &Canvas) -> f64 {
        let widest = self.drawn().iter().map(|s| text::width(&self.end_label(s), FONT)).fold(0.0, f64::max);
        widest.min(canvas.name_room) + if self.drawn().len() == 1 { 10.0 } else { 22.0 }
    }

    /// Writes names at the ends of the lines, moved apart where they would overlap.
    fn name_lines(&self, svg: &mut Svg, canvas: &Canvas, area: Area, colours: &[String], y: impl Fn(f64) -> f64) {
        let alone = self.drawn().len() == 1;
        let mut ends: Vec<(usize, f64)> = Vec::new();
        for (i, series) in self.drawn().iter().enumerate() {
            if let Some(last) = series.points.iter().rev().find(|p| drawable(p.0) && drawable(p.1)) {
                ends.push((i, y(last.1)));
            }
        }
        ends.sort_by(|a, b| a.1.total_cmp(&b.1));
        let places = apart(ends.iter().map(|(_, y)| *y).collect(), area.top, area.bottom);
        for ((i, end), place) in ends.into_iter().zip(places) {
            if !alone {
                svg.line(&format!("leader {}", colours[i]), (area.right + 2.0, end), (area.right + 14.0, place));
            }
            let left = area.right + if alone { 6.0 } else { 18.0 };
            let label = self.end_label(&self.series[i]);
            svg.text(&format!("direct {}", colours[i]), (left, place + 4.0), Anchor::Start, &label, canvas.name_room);
        }
    }

    fn tips(
        &self,
        svg: &mut Svg,
        canvas: &Canvas,
        area: Area,
        colours: &[String],
        x: impl Fn(f64) -> f64,
        y: impl Fn(f64) -> f64,
    ) {
        let lookups: Vec<Lookup> = self.drawn().iter().map(Lookup::new).collect();
        let all: Vec<f64> = positions(&lookups).into_iter().filter(|x| drawable(*x)).collect();
        let count = all.len().min(canvas.width as usize / PIXELS_PER_TIP);
        let chosen: Vec<f64> = (0..count).map(|i| all[i * (all.len() - 1) / (count - 1).max(1)]).collect();
        for (i, at) in chosen.iter().enumerate() {
            let middle = x(*at);
            let left = i.checked_sub(1).map_or(area.left - 8.0, |before| (x(chosen[before]) + middle) / 2.0);
            let right = chosen.get(i + 1).map_or(area.right + 8.0, |after| (x(*after) + middle) / 2.0);
            let mut rows = Vec::new();
            let mut highest = area.bottom;
            for (i, (series, lookup)) in self.drawn().iter().zip(&lookups).enumerate().take(MOST_TIP_ROWS) {
                let value = lookup.value(*at);
                let mut row = format!("{}: {}", text::first(&series.name, 40), text::shown(value));
                if let Some((low, high)) = lookup.band(*at) {
                    row.push_str(&format!(" ({} to {})", text::shown(low), text::shown(high)));
                }
                rows.push((format!("dot {}", colours[i]), row));
                if drawable(value) {
                    highest = highest.min(y(value));
                }
            }
            let zone = Area { left, right, ..area };
            let heading = format!("{} {}", text::first(self.x_label, 40), text::shown(*at));
            svg.tip(zone, Some(middle), (middle, highest), canvas.width, &heading, &rows);
        }
    }
}

/// Places for labels that want to be at rising `wanted` heights: at least a line apart, and inside if they fit.
pub(super) fn apart(mut wanted: Vec<f64>, top: f64, bottom: f64) -> Vec<f64> {
    let mut free = top;
    for place in &mut wanted {
        *place = place.max(free);
        free = *place + LINE;
    }
    let mut free = bottom;
    for place in wanted.iter_mut().rev() {
        *place = place.min(free);
        free = *place - LINE;
    }
    wanted
}

/// Returns columns and rows of series with their names, at most `most` rows, and the total number of rows.
pub(super) fn table(
    x_label: &str,
    series: &[(String, &Series)],
    most: usize,
) -> (Vec<String>, Vec<Vec<String>>, usize) {
    let mut columns = vec![x_label.to_owned()];
    for (name, series) in series {
        columns.push(name.clone());
        if series.band.is_some() {
            columns.push(format!("{name} (low)"));
            columns.push(format!("{name} (high)"));
        }
    }
    let lookups: Vec<Lookup> = series.iter().map(|(_, series)| Lookup::new(series)).collect();
    let positions = positions(&lookups);
    let rows = positions.iter().take(most).map(|x| {
        let mut row = vec![text::plain(*x)];
        for ((_, series), lookup) in series.iter().zip(&lookups) {
            row.push(text::plain(lookup.value(*x)));
            if series.band.is_some() {
                let (low, high) = lookup.band(*x).unwrap_or((f64::NAN, f64::NAN));
                row.extend([text::plain(low), text::plain(high)]);
            }
        }
        row
    });
    (columns, rows.collect(), positions.len())
}

/// The colour of each series: a reference is grey and dashed, the others follow the palette.
pub(super) fn colours(series: &[Series]) -> Vec<String> {
    let mut next = 0;
    let mut class = |series: &Series| match series.reference {
        true => "before dashed".to_owned(),
        false => {
            next += 1;
            colour(next - 1)
        }
    };
    series.iter().map(&mut class).collect()
}

fn has_band(series: &Series) -> bool {
    series.band.iter().flatten().any(|b| drawable(b.0) && drawable(b.1) && drawable(b.2))
}

/// The points to draw, decimated, in pieces without a gap.
fn runs<T: Copy>(points: &[T], bounds: impl Fn(&T) -> Option<(f64, f64)>) -> Vec<Vec<T>> {
    let mut runs = vec![Vec::new()];
    for i in decimate(points.len(), MOST_POINTS, |i| bounds(&points[i])) {
        if bounds(&points[i]).is_none() {
            runs.push(Vec::new());
        } else if let Some(run) = runs.last_mut() {
            run.push(points[i]);
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// Every position at which some series has a value or a gap, rising.
fn positions(lookups: &[Lookup]) -> Vec<f64> {
    let mut all: Vec<f64> =
        lookups.iter().flat_map(|l| l.values.iter().map(|v| v.0).chain(l.bands.iter().map(|b| b.0))).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart_and_inside() {
        let places = apart(vec![100.0, 101.0, 102.0, 298.0, 299.0], 30.0, 300.0);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LINE - 1e-9), "{places:?}");
        assert!(places.iter().all(|place| (30.0..=300.0).contains(place)), "{places:?}");
        assert_eq!(apart(vec![50.0, 200.0], 30.0, 300.0), [50.0, 200.0]);
    }

    #[test]
    fn gaps_split_a_line() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 4.0), (4.0, f64::INFINITY), (5.0, 1.0)];
        let runs = runs(&points, |p| drawable(p.1).then_some((p.1, p.1)));
        assert_eq!(runs, [vec![(0.0, 1.0), (1.0, 2.0)], vec![(3.0, 4.0)], vec![(5.0, 1.0)]]);
    }
}
