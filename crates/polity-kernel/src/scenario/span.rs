//! Durations as people write them: `90s`, `30m`, `24h`, `7d`.

use serde::{Deserialize, Deserializer};

/// The pattern of a duration.
pub(super) const PATTERN: &str = r"^[0-9]+(\.[0-9]+)?[smhd]$";
/// Units, and their seconds.
const UNITS: [(char, f64); 4] = [('s', 1.0), ('m', 60.0), ('h', 3_600.0), ('d', 86_400.0)];
/// A hundred years; anything longer is a mistake.
const LONGEST: f64 = 100.0 * 365.25 * 86_400.0;

/// A duration, above 0 s and up to 100 years.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    seconds: f64,
}

impl Span {
    /// Reads a number with its unit. The error says what was expected.
    pub fn read(text: &str) -> Result<Span, String> {
        let wanted = || {
            format!("`{text}` is not a length of time; write a number with its unit, for instance 90s, 30m, 24h or 7d")
        };
        let unit = text.chars().last().ok_or_else(wanted)?;
        let (_, seconds) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(wanted)?;
        let number = text.strip_suffix(unit).unwrap_or_default();
        let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let seconds = seconds * number.parse::<f64>().ok().filter(|_| plain).ok_or_else(wanted)?;
        match seconds > 0.0 && seconds <= LONGEST {
            true => Ok(Span { seconds }),
            false => Err(format!("`{text}` must be above 0 s and at most a hundred years")),
        }
    }

    /// Returns its seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.seconds
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Span::read(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_number_with_its_unit_and_nothing_else() {
        let seconds = |text| Span::read(text).unwrap().seconds();
        assert_eq!(["90s", "0.5m", "24h", "7d"].map(seconds), [90.0, 30.0, 86_400.0, 604_800.0]);
        for wrong in ["", "s", "5", "5 h", "5hh", "-5s", "1e3s", "infs", "nans", "0s", "40000d", "5µ"] {
            assert!(Span::read(wrong).is_err(), "{wrong}");
        }
    }
}
