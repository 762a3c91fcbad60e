//! Distributions: one, or one before and one after, on the same bins.

use super::bars::{BarChart, BarSet};
use super::bins::Bins;
use super::scale::{padded, ticks};
use super::svg::{Area, Canvas, Svg, label_room};
use super::text;

/// The most bins drawn; longer axes are joined.
const MOST_NUMERIC: usize = 120;
const MOST_CATEGORIES: usize = 30;

/// Up to this many numeric bins are drawn side by side, before and after; more are overlaid.
const SIDE_BY_SIDE: usize = 12;

/// Classes of the style sheet.
const BEFORE: &str = "before";
const AFTER: &str = "c0";

/// A histogram's parts, ready to be drawn at either size.
pub(super) struct Distribution<'a> {
    x_label: &'a str,
    y_label: &'a str,
    before: Bins,
    after: Option<Bins>,
    notes: Vec<String>,
}

impl<'a> Distribution<'a> {
    pub fn new(x_label: &'a str, y_label: &'a str, before: &Bins, after: Option<&Bins>) -> Self {
        let most = if before.axis.edges().is_some() { MOST_NUMERIC } else { MOST_CATEGORIES };
        let mut notes = Vec::new();
        let same = after.filter(|after| after.axis == before.axis);
        if after.is_some() && same.is_none() {
            notes.push("The second distribution (after) has other bins and is not drawn.".to_owned());
        }
        let both = same.is_some();
        for (bins, when) in [(Some(before), " before"), (same, " after")] {
            let left_out = bins.map_or(0, |bins| bins.left_out);
            if left_out > 0 {
                let when = if both { when } else { "" };
                let count = text::shown(left_out as f64);
                notes.push(format!("Values{when} that are missing or outside the axis, not drawn: {count}."));
            }
        }
        if before.axis.len() > most {
            notes.push(format!("{} bins are joined for drawing.", before.axis.len()));
        }
        Self { x_label, y_label, before: before.limited(most), after: same.map(|bins| bins.limited(most)), notes }
    }

    /// Whether any value lies in a bin.
    pub fn has_values(&self) -> bool {
        [Some(&self.before), self.after.as_ref()].into_iter().flatten().any(|b| b.counts.iter().any(|n| *n > 0))
    }

    /// Names and classes for a legend; none for a single distribution.
    pub fn legend(&self) -> Vec<(String, String)> {
        let names = [(BEFORE, "before"), (AFTER, "after")];
        let shown = if self.after.is_some() { names.len() } else { 0 };
        names.iter().take(shown).map(|(class, name)| ((*class).to_owned(), (*name).to_owned())).collect()
    }

    /// Notes for the text under the chart on what the chart cannot show.
    pub fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Returns columns and rows of the data behind the chart, at most `most` rows, and the total number of rows.
    pub fn table(&self, most: usize) -> (Vec<String>, Vec<Vec<String>>, usize) {
        let sets = self.sets();
        let mut columns = vec![self.x_label.to_owned()];
        let when = |name: &str| {
            if name.is_empty() { String::new() } else { format!(", {name}") }
        };
        columns.extend(sets.iter().flat_map(|s| [format!("count{}", when(&s.name)), format!("%{}", when(&s.name))]));
        let counts = [Some(&self.before), self.after.as_ref()];
        let total = self.before.axis.len();
        let rows = (0..total.min(most)).map(|i| {
            let mut row = vec![self.before.axis.label(i)];
            for (bins, set) in counts.iter().flatten().zip(&sets) {
                let count = bins.counts.get(i).copied().unwrap_or(0);
                let share = set.values.get(i).copied().unwrap_or(0.0);
                row.extend([count.to_string(), text::fixed(share, 2, false)]);
            }
            row
        });
        (columns, rows.collect(), total)
    }

    /// The chart at one size.
    pub fn draw(&self, canvas: &Canvas, figure: &str) -> String {
        match self.before.axis.edges() {
            Some(edges) => self.draw_numbers(canvas, figure, edges),
            None => self.bars().draw(canvas, figure),
        }
    }

    fn sets(&self) -> Vec<BarSet> {
        let set = |name: &str, class, bins: &Bins| BarSet {
            name: name.to_owned(),
            class,
            values: bins.shares(),
            intervals: Vec::new(),
        };
        match &self.after {
            None => vec![set("", AFTER, &self.before)],
            Some(after) => vec![set("before", BEFORE, &self.before), set("after", AFTER, after)],
        }
    }

    fn bars(&self) -> BarChart<'_> {
        BarChart {
            x_label: self.x_label,
            y_label: self.y_label,
            names: (0..self.before.axis.len()).map(|i| self.before.axis.label(i)).collect(),
            sets: self.sets(),
            written: text::percent,
            summary: self.summary(),
        }
    }

    fn summary(&self) -> String {
        let mut words = format!("Histogram of {} in {} bins.", self.x_label, self.before.axis.len());
        for set in self.sets() {
            // The first of equal shares, so that the words do not depend on how a maximum breaks ties.
            let mut most: Option<(usize, f64)> = None;
            for (i, share) in set.values.iter().enumerate() {
                most = most.filter(|(_, best)| best >= share).or(Some((i, *share)));
            }
            if let Some((bin, share)) = most {
                let name = self.before.axis.label(bin);
                let when = if set.name.is_empty() { "Most frequent" } else { set.name.as_str() };
                words.push_str(&format!(" {when}: {} with {}.", text::first(&name, 80), text::percent(share)));
            }
        }
        words
    }

    fn draw_numbers(&self, canvas: &Canvas, figure: &str, edges: &[f64]) -> String {
        let mut svg = Svg::new();
        let sets = self.sets();
        let highest = sets.iter().flat_map(|s| s.values.iter().copied()).fold(0.0, f64::max);
        let range = padded((0.0, highest));
        let y_ticks = ticks(range.0, range.1, canvas.levels, false);
        let area = canvas.area(label_room(&y_ticks), 14.0);
        let reach = (edges[0], edges[edges.len() - 1]);
        let (x, y) = (area.x(reach), area.y(range));
        let (x_label, y_label) = canvas.titles(self.x_label, self.y_label);
        svg.value_axis(area, &y, &y_ticks, y_label, canvas);
        let beside = edges.len() <= SIDE_BY_SIDE + 1;
        for (s, set) in sets.iter().enumerate() {
            for (pair, share) in edges.windows(2).zip(&set.values) {
                let (left, right) = (x.at(pair[0]), x.at(pair[1]));
                let (from, to) = match (beside, sets.len()) {
                    (true, 2) => (0.1 + 0.4 * s as f64, 0.5 + 0.4 * s as f64),
                    (true, _) => (0.06, 0.94),
                    (false, _) => (0.0, 1.0),
                };
                let bar = Area {
                    left: left + (right - left) * from,
                    right: left + (right - left) * to,
                    top: y.at(*share),
                    bottom: area.bottom,
                };
                // Laid over another, the later distribution is an outline with a light tint.
                let style = if !beside && s == 1 { "wash" } else { "bar" };
                if *share > 0.0 {
                    svg.rect(&format!("{style} {}", set.class), bar);
                }
            }
            if !beside && (s == 1 || sets.len() == 1) {
                let steps = edges
                    .windows(2)
                    .zip(&set.values)
                    .flat_map(|(pair, share)| [(x.at(pair[0]), y.at(*share)), (x.at(pair[1]), y.at(*share))]);
                let ends = [(area.left, area.bottom), (area.right, area.bottom)];
                let outline = ends[..1].iter().copied().chain(steps).chain(ends[1..].iter().copied());
                svg.path(&format!("line {}", set.class), outline, false);
            }
        }
        svg.base_axis(area, &x, &ticks(reach.0, reach.1, canvas.ticks, false), x_label);
        if canvas.roomy {
            for (i, pair) in edges.windows(2).enumerate() {
                let zone = Area { left: x.at(pair[0]), right: x.at(pair[1]), ..area };
                let rows: Vec<(String, String)> = sets
                    .iter()
                    .map(|set| {
                        let share = text::percent(set.values.get(i).copied().unwrap_or(0.0));
                        let row = if set.name.is_empty() { share } else { format!("{}: {share}", set.name) };
                        (format!("dot {}", set.class), row)
                    })
                    .collect();
                let heading = self.before.axis.label(i);
                svg.tip(zone, None, (zone.right - 6.0, area.top + 50.0), canvas.width, &heading, &rows);
            }
        }
        svg.finish(canvas, canvas.height, figure, &self.summary())
    }
}
