//! Heat maps: how the distribution of a quantity moves over rounds.

use super::bins::BinAxis;
use super::scale::{drawable, snug, ticks};
use super::svg::{Anchor, Area, Canvas, FONT, LINE, Svg};
use super::text;

/// The most columns and rows drawn; longer ones are joined.
const MOST_COLUMNS: usize = 120;
const MOST_ROWS: usize = 40;

/// Steps of the colour key, from the palest to the darkest.
const KEY: [f64; 4] = [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0];

/// If the smallest share is more than this part of the largest, colours begin at the smallest: else all would look alike.
const ALIKE: f64 = 0.4;

/// The opacity of the palest cell.
const PALEST: f64 = 0.08;

/// The shares of the palest and the darkest colour.
#[derive(Clone, Copy)]
struct Tones {
    low: f64,
    high: f64,
}

impl Tones {
    /// The opacity of a share: small differences near the palest colour are seen.
    fn of(self, share: f64) -> f64 {
        let part = if self.high > self.low { (share - self.low) / (self.high - self.low) } else { 1.0 };
        PALEST + (1.0 - PALEST) * part.clamp(0.0, 1.0).sqrt()
    }

    /// The share at a step of the key.
    fn at(self, step: f64) -> f64 {
        self.low + (self.high - self.low) * step * step
    }
}

/// Rounds drawn as one column: its start and end, its first and last round, its shares in per cent (NaN: none).
struct Column {
    from: f64,
    to: f64,
    rounds: (u64, u64),
    shares: Vec<f64>,
}

/// A heat map's parts, ready to be drawn at either size.
pub(super) struct Heat<'a> {
    x_label: &'a str,
    y_label: &'a str,
    bins: BinAxis,
    columns: Vec<Column>,
    /// Shares of each round, not joined, for the table.
    exact: Vec<(u64, Vec<f64>)>,
    axis: BinAxis,
}

impl<'a> Heat<'a> {
    pub fn new(x_label: &'a str, y_label: &'a str, rounds: &[u64], axis: &BinAxis, cells: &[Vec<f64>]) -> Self {
        let mut exact: Vec<(u64, Vec<f64>)> =
            rounds.iter().zip(cells).map(|(round, cells)| (*round, shares(cells, axis.len()))).collect();
        exact.sort_by_key(|(round, _)| *round);
        exact.dedup_by_key(|(round, _)| *round);
        let bins = axis.limited(MOST_ROWS);
        let groups = axis.groups(MOST_ROWS);
        let size = exact.len().div_ceil(MOST_COLUMNS).max(1);
        let columns = (0..exact.len())
            .step_by(size)
            .map(|start| {
                let end = (start + size).min(exact.len());
                let shares = groups
                    .iter()
                    .map(|group| {
                        let sums = exact[start..end].iter().map(|(_, s)| s[group.clone()].iter().sum::<f64>());
                        let (sum, count) = sums.filter(|s| drawable(*s)).fold((0.0, 0), |(s, n), v| (s + v, n + 1));
                        if count == 0 { f64::NAN } else { sum / f64::from(count) }
                    })
                    .collect();
                Column {
                    from: border(&exact, start),
                    to: border(&exact, end),
                    rounds: (exact[start].0, exact[end - 1].0),
                    shares,
                }
            })
            .collect();
        Self { x_label, y_label, bins, columns, exact, axis: axis.clone() }
    }

    /// Whether there is a cell to draw.
    pub fn has_cells(&self) -> bool {
        self.highest() > 0.0
    }

    fn highest(&self) -> f64 {
        self.columns.iter().flat_map(|c| c.shares.iter().copied()).filter(|s| drawable(*s)).fold(0.0, f64::max)
    }

    fn tones(&self) -> Tones {
        let high = self.highest();
        let all = self.columns.iter().flat_map(|c| c.shares.iter().copied()).filter(|s| drawable(*s));
        let low = all.fold(high, f64::min);
        Tones { low: if low > high * ALIKE && low < high { low } else { 0.0 }, high }
    }

    /// Notes for the text under the chart on what the chart cannot show.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.columns.len() < self.exact.len() {
            let (rounds, columns) = (self.exact.len(), self.columns.len());
            notes.push(format!("{rounds} rounds are drawn in {columns} columns; each shows the mean of its rounds."));
        }
        if self.bins.len() < self.axis.len() {
            notes.push(format!("{} bins are joined for drawing.", self.axis.len()));
        }
        notes
    }

    /// Returns columns and rows of the data behind the chart, at most `most` rows, and the total number of rows.
    pub fn table(&self, most: usize) -> (Vec<String>, Vec<Vec<String>>, usize) {
        let mut columns = vec![self.x_label.to_owned()];
        columns.extend((0..self.bins.len()).map(|i| format!("{} (%)", self.bins.label(i))));
        let groups = self.axis.groups(MOST_ROWS);
        let rows = self.exact.iter().take(most).map(|(round, shares)| {
            let mut row = vec![round.to_string()];
            row.extend(groups.iter().map(|group| {
                let share = shares[group.clone()].iter().sum::<f64>();
                if drawable(share) { text::fixed(share, 2, false) } else { String::new() }
            }));
            row
        });
        (columns, rows.collect(), self.exact.len())
    }

    fn summary(&self) -> String {
        let mut words = format!("Heat map of the distribution of {} against {}.", self.y_label, self.x_label);
        for (round, shares) in self.exact.first().into_iter().chain(self.exact.last()) {
            let used = shares.iter().filter(|s| **s > 0.0).count();
            words.push_str(&format!(" At {round}: {used} of {} values occupied.", self.axis.len()));
        }
        words
    }

    /// The chart at one size.
    pub fn draw(&self, canvas: &Canvas, figure: &str) -> String {
        let mut svg = Svg::new();
        let rows = self.bins.len().max(1);
        let area = {
            let widest = match self.bins.edges() {
                Some(edges) => edges.iter().map(|e| text::width(&text::shown(*e), FONT)).fold(12.0, f64::max),
                None => (0..rows).map(|i| text::width(&self.bins.label(i), FONT)).fold(12.0, f64::max),
            };
            let left = widest.min(canvas.width * 0.35) + 14.0;
            Area { left, top: 38.0, right: canvas.width - 14.0, bottom: canvas.height - 46.0 }
        };
        let (first, last) = match (self.columns.first(), self.columns.last()) {
            (Some(first), Some(last)) => (first.from, last.to),
            _ => (0.0, 1.0),
        };
        let x = area.x(snug((first, last)));
        svg.rect("ground", area);
        let tones = self.tones();
        let row = area.height() / rows as f64;
        for column in &self.columns {
            for (i, share) in column.shares.iter().enumerate() {
                if !(drawable(*share) && *share > 0.0) {
                    continue;
                }
                let bottom = area.bottom - row * i as f64;
                let cell = Area { left: x.at(column.from), right: x.at(column.to), top: bottom - row, bottom };
                let rounds = match column.rounds {
                    (first, last) if first == last => format!("{first}"),
                    (first, last) => format!("{first} to {last}"),
                };
                let (name, share_text) = (self.bins.label(i), text::percent(*share));
                let x_label = text::first(self.x_label, 40);
                let title = format!("{x_label} {rounds}, {}: {share_text}", text::first(&name, 60));
                svg.cell(cell, tones.of(*share), &title);
            }
        }
        self.row_labels(&mut svg, area, row);
        svg.base_axis(area, &x, &ticks(first, last, canvas.ticks, true), self.x_label);
        svg.text("name", (2.0, area.top - 22.0), Anchor::Start, self.y_label, canvas.width * 0.4);
        key(&mut svg, area, tones);
        svg.finish(canvas, canvas.height, figure, &self.summary())
    }

    fn row_labels(&self, svg: &mut Svg, area: Area, row: f64) {
        let room = area.left - 10.0;
        let centred = self
            .bins
            .edges()
            .is_none_or(|edges| edges.windows(2).all(|e| e[1] - e[0] == 1.0 && (e[0] + 0.5).fract() == 0.0));
        if let Some(edges) = self.bins.edges().filter(|_| !centred) {
            let rows = edges.len() - 1;
            let even = Area { top: area.top, ..area };
            let equal =
                edges.windows(2).all(|e| ((e[1] - e[0]) * rows as f64 / (edges[rows] - edges[0]) - 1.0).abs() < 1e-6);
            let y = even.y((edges[0], edges[rows]));
            // Rows have one height, so only equal bins may carry a linear axis; others are named at their edges.
            let labels: Vec<(f64, String)> = if equal {
                ticks(edges[0], edges[rows], 6, false).into_iter().map(|(v, label)| (y.at(v), label)).collect()
            } else {
                let every = (LINE / row).ceil().max(1.0) as usize;
                let at = |i: usize| area.bottom - row * i as f64;
                edges.iter().enumerate().step_by(every).map(|(i, e)| (at(i), text::shown(*e))).collect()
            };
            for (y, label) in labels {
                svg.line("axis", (area.left - 4.0, y), (area.left, y));
                svg.text("tick", (area.left - 8.0, y + 4.0), Anchor::End, &label, room);
            }
            return;
        }
        let every = (LINE / row).ceil().max(1.0) as usize;
        for i in (0..self.bins.len()).step_by(every) {
            let y = area.bottom - row * (i as f64 + 0.5) + 4.0;
            svg.text("tick", (area.left - 8.0, y), Anchor::End, &self.bins.label(i), room);
        }
    }
}

/// The colour key: four shares at the top right.
fn key(svg: &mut Svg, area: Area, tones: Tones) {
    const STEP: f64 = 50.0;
    let left = area.right - STEP * KEY.len() as f64;
    for (i, step) in KEY.iter().enumerate() {
        let from = left + STEP * i as f64;
        let swatch = Area { left: from, right: from + STEP, top: area.top - 30.0, bottom: area.top - 22.0 };
        let share = tones.at(*step);
        svg.rect("ground", swatch);
        svg.cell(swatch, tones.of(share), &text::percent(share));
        svg.text("tick", (from + STEP / 2.0, area.top - 8.0), Anchor::Middle, &text::percent(share), STEP);
    }
}

/// A round's cells as shares in per cent, one for each bin; a missing, negative or infinite cell is a gap.
fn shares(cells: &[f64], bins: usize) -> Vec<f64> {
    let usable = |v: f64| drawable(v) && v >= 0.0;
    let total: f64 = cells.iter().take(bins).copied().filter(|v| usable(*v)).sum();
    let share = |v: f64| {
        if usable(v) && total > 0.0 && drawable(total) { v / total * 100.0 } else { f64::NAN }
    };
    (0..bins).map(|i| share(cells.get(i).copied().unwrap_or(f64::NAN))).collect()
}

/// Where the column of round number `at` begins: half way from the one before it.
fn border(columns: &[(u64, Vec<f64>)], at: usize) -> f64 {
    let round = |i: usize| columns.get(i).map(|(round, _)| *round as f64);
    let before = at.checked_sub(1).and_then(round);
    match (before, round(at)) {
        (Some(before), Some(next)) => (before + next) / 2.0,
        (None, Some(first)) => first - round(1).map_or(0.5, |second| (second - first) / 2.0),
        (Some(last), None) => last + columns.len().checked_sub(2).and_then(round).map_or(0.5, |one| (last - one) / 2.0),
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_shares_and_bad_ones_gaps() {
        let shares = shares(&[1.0, 3.0, f64::NAN, -1.0], 5);
        assert_eq!(shares[..2], [25.0, 75.0]);
        assert!(shares[2..].iter().all(|s| s.is_nan()));
    }

    #[test]
    fn columns_lie_around_their_rounds() {
        let columns = |rounds: &[u64]| {
            let cells = vec![vec![1.0]; rounds.len()];
            let axis = BinAxis::Categories(vec!["a".to_owned()]);
            let heat = Heat::new("round", "value", rounds, &axis, &cells);
            heat.columns.iter().map(|c| (c.from, c.to)).collect::<Vec<_>>()
        };
        assert_eq!(columns(&[0, 1, 2]), [(-0.5, 0.5), (0.5, 1.5), (1.5, 2.5)]);
        assert_eq!(columns(&[5]), [(4.5, 5.5)]);
        assert_eq!(columns(&[10, 0]), [(-5.0, 5.0), (5.0, 15.0)]);
        assert_eq!(columns(&[]), []);
    }

    #[test]
    fn many_rounds_are_joined_by_their_mean() {
        let rounds: Vec<u64> = (0..1000).collect();
        let cells: Vec<Vec<f64>> = rounds.iter().map(|r| vec![(r % 2) as f64, ((r + 1) % 2) as f64]).collect();
        let axis = BinAxis::Edges(vec![0.0, 1.0, 2.0]);
        let heat = Heat::new("round", "value", &rounds, &axis, &cells);
        assert!(heat.columns.len() <= MOST_COLUMNS);
        assert_eq!(heat.columns[0].shares.iter().sum::<f64>(), 100.0);
        assert_eq!(heat.exact.len(), 1000);
        assert_eq!(heat.notes().len(), 1);
    }
}
