//! From values to positions: ranges with padding, nice ticks, a linear scale.

use super::text;

/// Values beyond this are treated as missing: differences of larger ones overflow.
const LARGEST: f64 = 1e300;

/// A constant smaller than this is drawn as zero: a part of it may have no digits left.
const LEAST: f64 = 1e-300;

/// Whether a value can be drawn; everything else leaves a gap.
pub(super) fn drawable(value: f64) -> bool {
    value.abs() <= LARGEST
}

/// Smallest and largest drawable value, if there is one.
pub(super) fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|v| drawable(*v)).fold(None, |extent, v| match extent {
        None => Some((v, v)),
        Some((low, high)) => Some((low.min(v), high.max(v))),
    })
}

/// An axis range around data: 5 % of air, zero where the data come near it, and room around a constant.
pub(super) fn padded((low, high): (f64, f64)) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    let span = high - low;
    if span <= size * 1e-9 {
        return if size < LEAST { (0.0, 1.0) } else { (low - size * 0.1, high + size * 0.1) };
    }
    let air = span * 0.05;
    let bottom = if low >= 0.0 && low <= span * 0.5 { 0.0 } else { low - air };
    let top = if high <= 0.0 && -high <= span * 0.5 { 0.0 } else { high + air };
    (bottom, top)
}

/// An axis range for positions such as rounds: the data's own, widened when it is a single point.
pub(super) fn snug((low, high): (f64, f64)) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    if high - low > size * 1e-9 {
        return (low, high);
    }
    let half = (size * 1e-6).max(0.5);
    (low - half, high + half)
}

/// A linear map from values to pixels.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub low: f64,
    pub high: f64,
    pub start: f64,
    pub end: f64,
}

impl Scale {
    /// The pixel of a value.
    pub fn at(&self, value: f64) -> f64 {
        self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)
    }
}

/// A tick: its value and how it is written.
pub(super) type Tick = (f64, String);

/// Ticks at round numbers within `low..=high`, about `target` of them (1, 2, 2.5 or 5 times a power of ten apart).
///
/// With `whole`, the step is a whole number, as rounds need. Values are read back from decimal text, so that 0.3 is
/// 0.3 and not three times 0.1.
pub(super) fn ticks(low: f64, high: f64, target: usize, whole: bool) -> Vec<Tick> {
    let raw = (high - low) / target.max(1) as f64;
    if !(raw > 0.0 && raw.is_finite()) {
        return Vec::new();
    }
    let (mantissa, exponent) = text::parts(raw, 6);
    let mantissa: f64 = mantissa.parse().unwrap_or(1.0);
    // A step is `digits` times ten to `exponent`.
    let (mut digits, mut exponent) = match mantissa {
        m if m <= 1.0 => (1, exponent),
        m if m <= 2.0 => (2, exponent),
        m if m <= 2.5 => (25, exponent - 1),
        m if m <= 5.0 => (5, exponent),
        _ => (1, exponent + 1),
    };
    if whole && exponent < 0 {
        (digits, exponent) = if digits == 25 && exponent == -1 { (5, 0) } else { (1, 0) };
    }
    let step = decimal(digits, exponent);
    let first = (low / step - 1e-6).ceil();
    let last = (high / step + 1e-6).floor();
    if last - first > 4.0 * target.max(1) as f64 || first.abs().max(last.abs()) > 1e12 {
        return Vec::new();
    }
    let values: Vec<f64> = (first as i64..=last as i64).map(|i| decimal(i * digits, exponent)).collect();
    let largest = values.iter().fold(0.0_f64, |size, v| size.max(v.abs()));
    let decimals = usize::try_from(-exponent).unwrap_or(0);
    values
        .into_iter()
        .map(|v| {
            let label =
                if decimals > 5 || largest >= 1e7 { text::shown(v) } else { text::fixed(v, decimals, largest >= 1e4) };
            (v, label)
        })
        .collect()
}

fn decimal(digits: i64, exponent: i32) -> f64 {
    format!("{digits}e{exponent}").parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, target: usize, whole: bool) -> String {
        ticks(low, high, target, whole).into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_numbers() {
        let cases = [
            (0.0, 10.0, 5, false, "0 2 4 6 8 10"),
            (0.0, 1.0, 5, false, "0.0 0.2 0.4 0.6 0.8 1.0"),
            (0.0, 52.5, 5, false, "0 20 40"),
            (-1.0, 1.0, 4, false, "−1.0 −0.5 0.0 0.5 1.0"),
            (0.5, 7.5, 8, false, "1 2 3 4 5 6 7"),
            (0.0, 10.0, 4, false, "0.0 2.5 5.0 7.5 10.0"),
            (0.0, 10.0, 4, true, "0 5 10"),
            (0.0, 2.0, 8, true, "0 1 2"),
            (2.5, 3.5, 8, true, "3"),
            (1990.0, 2000.0, 2, true, "1990 1995 2000"),
            (0.0, 10_000.0, 2, true, "0 5,000 10,000"),
            (0.0, 1_000_000.0, 4, false, "0 250,000 500,000 750,000 1,000,000"),
            (0.0, 4e9, 4, false, "0 1×10⁹ 2×10⁹ 3×10⁹ 4×10⁹"),
            (0.0, 3e-9, 3, false, "0 1×10⁻⁹ 2×10⁻⁹ 3×10⁻⁹"),
            (101.0, 101.9, 3, false, "101.0 101.5"),
            (1.0, 1.0, 5, false, ""),
            (f64::NAN, 1.0, 5, false, ""),
            (0.0, f64::INFINITY, 5, false, ""),
        ];
        for (low, high, target, whole, expected) in cases {
            assert_eq!(labels(low, high, target, whole), expected, "{low}..{high} by {target}, whole {whole}");
        }
    }

    #[test]
    fn tick_values_are_the_decimals_they_show() {
        let values: Vec<f64> = ticks(0.0, 0.7, 7, false).into_iter().map(|(v, _)| v).collect();
        assert_eq!(values, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]);
    }

    #[test]
    fn ticks_stay_few_and_inside() {
        for exponent in -300..300 {
            let size = decimal(1, exponent);
            for (low, high) in [(0.0, size), (-size, size), (size, size * 1.7), (size * 3.0, size * 97.0)] {
                for target in 2..10 {
                    let ticks = ticks(low, high, target, false);
                    assert!(!ticks.is_empty() && ticks.len() <= 2 * target + 2, "{low} {high} {target} {ticks:?}");
                    let air = (high - low) * 1e-5;
                    assert!(ticks.iter().all(|(v, _)| *v >= low - air && *v <= high + air), "{low} {high} {ticks:?}");
                }
            }
        }
    }

    #[test]
    fn ranges_have_air_and_reach_zero_when_near() {
        assert_eq!(padded((0.0, 0.0)), (0.0, 1.0));
        assert_eq!(padded((5.0, 5.0)), (4.5, 5.5));
        assert_eq!(padded((-5.0, -5.0)), (-5.5, -4.5));
        assert_eq!(padded((1.0, 51.0)), (0.0, 53.5));
        assert_eq!(padded((100.0, 110.0)), (99.5, 110.5));
        assert_eq!(padded((-51.0, -1.0)), (-53.5, 0.0));
        assert_eq!(snug((3.0, 3.0)), (2.5, 3.5));
        assert_eq!(extent([f64::NAN, 2.0, f64::INFINITY, -1.0, f64::MAX]), Some((-1.0, 2.0)));
        assert_eq!(extent([f64::NAN]), None);
    }
}
