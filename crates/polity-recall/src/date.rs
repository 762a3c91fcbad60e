//! Days, as documents state them.

use std::fmt;
use std::str::FromStr;

/// A day of the Gregorian calendar, in the years 0 to 9999.
///
/// It is read from `YEAR-MONTH-DAY`. A time may follow, after `T` or a space; it is ignored, and so is its offset from UTC: the day counts
/// as written.
///
/// ```
/// use polity_recall::Date;
///
/// let day: Date = "2024-02-29".parse().unwrap();
/// assert_eq!(day, "2024-02-29T18:30:00Z".parse().unwrap());
/// assert!(day < "2024-03-01".parse().unwrap());
/// assert_eq!(day.to_string(), "2024-02-29");
/// assert!("2023-02-29".parse::<Date>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// A text that is no date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a date; write YEAR-MONTH-DAY, such as 2024-05-31")]
pub struct DateError(String);

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        parse(text.trim()).ok_or_else(|| DateError(text.chars().take(40).collect()))
    }
}

fn parse(text: &str) -> Option<Date> {
    let (day, time) = text.split_at_checked("YYYY-MM-DD".len())?;
    let is_time = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || ":.+-Z".contains(c));
    if !time.is_empty() && !time.strip_prefix(['T', ' ']).is_some_and(|rest| !rest.is_empty() && is_time(rest)) {
        return None;
    }
    let bytes = day.as_bytes();
    let shape = |(i, byte): (usize, &u8)| if matches!(i, 4 | 7) { *byte == b'-' } else { byte.is_ascii_digit() };
    if !bytes.iter().enumerate().all(shape) {
        return None;
    }
    let date = Date { year: day[..4].parse().ok()?, month: day[5..7].parse().ok()?, day: day[8..].parse().ok()? };
    let leap = date.year.is_multiple_of(4) && !date.year.is_multiple_of(100) || date.year.is_multiple_of(400);
    let last = match date.month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    (1..=last).contains(&date.day).then_some(date)
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_that_exist() {
        for text in ["2024-01-31", "2000-02-29", "1900-02-28", "0001-12-01", "2024-12-31 23:59:59.5+02:00"] {
            assert_eq!(text.parse::<Date>().unwrap().to_string(), text[..10]);
        }
        for text in [
            "",
            "2024",
            "2024-1-1",
            "2024-13-01",
            "2024-00-10",
            "2024-04-31",
            "1900-02-29",
            "2024-01-00",
            "24-01-01-01",
            "2024/01/01",
            "2024-01-01x",
            "2024-01-01T",
            "2024-01-01 noon",
            "2024-01-0é",
            "+024-01-01",
        ] {
            let error = text.parse::<Date>().unwrap_err().to_string();
            assert_eq!(error, format!("`{text}` is not a date; write YEAR-MONTH-DAY, such as 2024-05-31"));
        }
    }

    #[test]
    fn dates_are_in_order_of_time() {
        let days = ["1999-12-31", "2000-01-01", "2000-01-02", "2000-02-01", "2001-01-01"];
        let days: Vec<Date> = days.iter().map(|day| day.parse().unwrap()).collect();
        assert!(days.is_sorted_by(|a, b| a < b));
    }
}
