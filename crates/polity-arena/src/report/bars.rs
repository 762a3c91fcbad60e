//! Bars of named values, one or two per name: vertical where the names fit, else horizontal.

use super::scale::{Scale, drawable, extent, padded, ticks};
use super::svg::{Anchor, Area, Canvas, FONT, LINE, Svg, label_room};
use super::text;

/// Fewer bars than this carry their value.
const LABELLED_BARS: usize = 12;

/// The maximum width of a bar, in pixels.
const WIDEST: f64 = 80.0;

/// The height of one horizontal bar, and the maximum part of a chart's width for names beside horizontal bars.
const LYING: f64 = 14.0;
const NAME_SHARE: f64 = 0.4;

/// Bars of one colour, a value per name; a value that cannot be drawn leaves its place empty.
pub(super) struct BarSet {
    /// What the bars show, for tips; empty when there is only one set.
    pub name: String,
    pub class: &'static str,
    pub values: Vec<f64>,
    /// Lower and upper ends of whiskers; shorter than `values` if some are missing.
    pub intervals: Vec<Option<(f64, f64)>>,
}

/// A bar chart, ready to be drawn at either size.
pub(super) struct BarChart<'a> {
    pub x_label: &'a str,
    pub y_label: &'a str,
    pub names: Vec<String>,
    pub sets: Vec<BarSet>,
    /// How a value is formatted.
    pub written: fn(f64) -> String,
    pub summary: String,
}

/// Positions in a chart whose names run along one side and whose values along the other.
struct Plan {
    area: Area,
    lying: bool,
    values: Scale,
    slot: f64,
}

impl Plan {
    /// The area of slot `i` between two fractions of its width and two values.
    fn place(&self, i: usize, across: (f64, f64), from: f64, to: f64) -> Area {
        let side = |part: f64| (i as f64 + part) * self.slot;
        let (low, high) = (self.values.at(from), self.values.at(to));
        let (low, high) = (low.min(high), low.max(high));
        if self.lying {
            let top = self.area.top;
            Area { left: low, right: high, top: top + side(across.0), bottom: top + side(across.1) }
        } else {
            let left = self.area.left;
            Area { left: left + side(across.0), right: left + side(across.1), top: low, bottom: high }
        }
    }
}

impl BarChart<'_> {
    /// Whether there is a bar to draw.
    pub fn has_bars(&self) -> bool {
        self.sets.iter().any(|set| set.values.iter().any(|v| drawable(*v)))
    }

    /// The chart at one size.
    pub fn draw(&self, canvas: &Canvas, figure: &str) -> String {
        let mut svg = Svg::new();
        let whiskers =
            self.sets.iter().flat_map(|s| s.intervals.iter().flatten().flat_map(|(low, high)| [*low, *high]));
        let values = self.sets.iter().flat_map(|s| s.values.iter().copied());
        // Bars start at zero: their length is what is compared.
        let range = padded(extent(values.chain(whiskers).chain([0.0])).unwrap_or((0.0, 1.0)));
        let count = self.names.len().max(1);
        let numbered = self.names.iter().all(|name| name.parse::<f64>().is_ok());
        let upright = canvas.area(label_room(&ticks(range.0, range.1, canvas.levels, false)), 14.0);
        let slot = upright.width() / count as f64;
        let wrapped: Vec<Option<Vec<String>>> = self.names.iter().map(|name| wrap(name, slot - 6.0)).collect();
        let lying = !numbered && wrapped.iter().any(Option::is_none);
        let two_lines = !lying && !numbered && wrapped.iter().flatten().any(|lines| lines.len() > 1);
        let plan = if lying {
            self.lying(canvas, range)
        } else {
            let bottom = upright.bottom - if two_lines { LINE } else { 0.0 };
            let area = Area { bottom, ..upright };
            Plan { area, lying, values: area.y(range), slot }
        };
        self.axes(&mut svg, canvas, &plan, range);
        self.names(&mut svg, &plan, &wrapped, numbered);
        for i in 0..self.names.len() {
            self.slot(&mut svg, &plan, i);
        }
        let zero = plan.values.at(0.0);
        let Area { left, right, top, bottom } = plan.area;
        let (from, to) = if lying { ((zero, top), (zero, bottom)) } else { ((left, zero), (right, zero)) };
        svg.line("axis", from, to);
        if canvas.roomy {
            for i in 0..self.names.len() {
                self.tip(&mut svg, canvas, &plan, i);
            }
        }
        let height = if lying { plan.area.bottom + canvas.below } else { canvas.height };
        svg.finish(canvas, height, figure, &self.summary)
    }

    fn lying(&self, canvas: &Canvas, range: (f64, f64)) -> Plan {
        let widest = self.names.iter().map(|name| text::width(name, FONT)).fold(0.0, f64::max);
        let left = widest.min(canvas.width * NAME_SHARE) + 12.0;
        let slot = LYING * self.sets.len() as f64 + 10.0;
        let bottom = canvas.top + slot * self.names.len() as f64;
        let area = Area { left, top: canvas.top, right: canvas.width - 46.0, bottom };
        Plan { area, lying: true, values: area.x(range), slot }
    }

    fn axes(&self, svg: &mut Svg, canvas: &Canvas, plan: &Plan, range: (f64, f64)) {
        let area = plan.area;
        let (x_label, y_label) = canvas.titles(self.x_label, self.y_label);
        if !plan.lying {
            let y_ticks = ticks(range.0, range.1, canvas.levels, false);
            svg.value_axis(area, &plan.values, &y_ticks, y_label, canvas);
            // Where names take two lines, the axis name is below them.
            let bottom = canvas.height - canvas.below;
            svg.base_name(Area { bottom, ..area }, x_label);
            return;
        }
        for (value, label) in ticks(range.0, range.1, canvas.ticks / 2 + 2, false) {
            let x = plan.values.at(value);
            svg.line("grid", (x, area.top), (x, area.bottom));
            svg.text("tick", (x, area.bottom + LINE + 2.0), Anchor::Middle, &label, area.width());
        }
        svg.text("name", (2.0, area.top - 14.0), Anchor::Start, x_label, canvas.width - 4.0);
        svg.base_name(area, y_label);
    }

    fn names(&self, svg: &mut Svg, plan: &Plan, wrapped: &[Option<Vec<String>>], numbered: bool) {
        let area = plan.area;
        let widest = self.names.iter().map(|name| text::width(name, FONT)).fold(1.0, f64::max);
        let every = if numbered { thinning(widest + 8.0, plan.slot) } else { 1 };
        for (i, name) in self.names.iter().enumerate().step_by(every) {
            let middle = (i as f64 + 0.5) * plan.slot;
            if plan.lying {
                let at = (area.left - 8.0, area.top + middle + 4.0);
                svg.text("tick", at, Anchor::End, name, area.left - 10.0);
                continue;
            }
            let one = [name.clone()];
            let lines = wrapped.get(i).and_then(Option::as_deref).unwrap_or(&one);
            for (k, line) in lines.iter().enumerate() {
                let at = (area.left + middle, area.bottom + LINE * (k + 1) as f64 + 2.0);
                svg.text("tick", at, Anchor::Middle, line, area.width());
            }
        }
    }

    fn slot(&self, svg: &mut Svg, plan: &Plan, i: usize) {
        let sets = self.sets.len() as f64;
        let labelled = self.names.len() <= LABELLED_BARS && self.sets.len() == 1;
        for (s, set) in self.sets.iter().enumerate() {
            let Some(value) = set.values.get(i).copied().filter(|v| drawable(*v)) else {
                continue;
            };
            let breadth = (WIDEST / plan.slot).min(0.72 / sets);
            let from = 0.5 + breadth * (s as f64 - sets / 2.0);
            let to = from + breadth;
            svg.rect(&format!("bar {}", set.class), plan.place(i, (from, to), 0.0, value));
            let middle = (from + to) / 2.0;
            let interval = set.intervals.get(i).copied().flatten().filter(|(l, h)| drawable(*l) && drawable(*h));
            if let Some((low, high)) = interval {
                let stem = plan.place(i, (middle, middle), low, high);
                svg.line("whisker", (stem.left, stem.top), (stem.right, stem.bottom));
                let half = (4.0 / plan.slot).min(0.2);
                for end in [low, high] {
                    let cap = plan.place(i, (middle - half, middle + half), end, end);
                    svg.line("whisker", (cap.left, cap.top), (cap.right, cap.bottom));
                }
            }
            let label = (self.written)(value);
            if labelled && (plan.lying || text::width(&label, FONT) < plan.slot) {
                let ends = interval.map_or((value, value), |(low, high)| (value.min(low), value.max(high)));
                let end = plan.place(i, (middle, middle), ends.0.min(0.0), ends.1.max(0.0));
                let (at, anchor) = match (plan.lying, value < 0.0) {
                    (true, false) => ((end.right + 6.0, end.bottom + 4.0), Anchor::Start),
                    (true, true) => ((end.left - 6.0, end.bottom + 4.0), Anchor::End),
                    (false, false) => ((end.left, end.top - 6.0), Anchor::Middle),
                    (false, true) => ((end.left, end.bottom + 14.0), Anchor::Middle),
                };
                svg.text("value", at, anchor, &label, plan.area.width());
            }
        }
    }

    fn tip(&self, svg: &mut Svg, canvas: &Canvas, plan: &Plan, i: usize) {
        let zone = plan.place(i, (0.0, 1.0), plan.values.low, plan.values.high);
        let rows: Vec<(String, String)> = self
            .sets
            .iter()
            .map(|set| {
                let value = set.values.get(i).copied().unwrap_or(f64::NAN);
                let mut row = if set.name.is_empty() { String::new() } else { format!("{}: ", set.name) };
                row.push_str(&(self.written)(value));
                if let Some((low, high)) = set.intervals.get(i).copied().flatten() {
                    row.push_str(&format!(" ({} to {})", (self.written)(low), (self.written)(high)));
                }
                (format!("dot {}", set.class), row)
            })
            .collect();
        let heading = if plan.lying || self.names[i].parse::<f64>().is_err() {
            text::first(&self.names[i], 60).into_owned()
        } else {
            format!("{} {}", text::first(self.x_label, 40), self.names[i])
        };
        let at =
            if plan.lying { (canvas.width * 0.5, zone.top) } else { ((zone.left + zone.right) / 2.0, zone.top + 60.0) };
        svg.tip(zone, None, at, canvas.width, &heading, &rows);
    }
}

/// A name in one or two lines of at most `room` pixels, or nothing when it does not fit.
fn wrap(name: &str, room: f64) -> Option<Vec<String>> {
    let fits = |line: &str| text::width(line, FONT) <= room;
    if fits(name) {
        return Some(vec![name.to_owned()]);
    }
    name.match_indices(' ')
        .map(|(at, _)| (&name[..at], &name[at + 1..]))
        .find(|(first, second)| fits(first) && fits(second))
        .map(|(first, second)| vec![first.to_owned(), second.to_owned()])
}

/// Returns the interval between slots with a label of `width`: 1, 2, 5, 10, 20, 50 and so on.
fn thinning(width: f64, slot: f64) -> usize {
    let mut step = 1_usize;
    for factor in [2, 5, 10].iter().cycle().take(12) {
        if slot * step as f64 >= width {
            break;
        }
        step = match factor {
            2 => step * 2,
            5 => step / 2 * 5,
            _ => step * 2,
        };
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_thinned_to_round_steps() {
        let steps: Vec<usize> = [40.0, 20.0, 10.0, 5.0, 2.0, 1.0].iter().map(|slot| thinning(20.0, *slot)).collect();
        assert_eq!(steps, [1, 1, 2, 5, 10, 20]);
    }

    #[test]
    fn names_wrap_into_two_lines_or_not_at_all() {
        assert_eq!(wrap("left", 50.0), Some(vec!["left".to_owned()]));
        assert_eq!(wrap("very liberal", 50.0), Some(vec!["very".to_owned(), "liberal".to_owned()]));
        assert_eq!(wrap("incomprehensibilities", 50.0), None);
    }
}
