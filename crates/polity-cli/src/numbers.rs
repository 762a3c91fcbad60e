//! Numbers on the command line, with errors that say what to write.

use polity_kernel::EXACT;
use std::net::{IpAddr, Ipv4Addr};
use std::num::{NonZeroU32, NonZeroUsize};

/// The most threads, shards or jobs. More than the number of cores are no faster, and each shard holds its own world.
const MOST_THREADS: usize = 1024;

/// Parses a whole number, `10000` or `1e4`.
pub(crate) fn whole<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err("it must be a whole number, 0 or more".into());
    }
    let Some(number) = text.parse().ok().or_else(|| scientific(text)) else {
        return Err(match in_short(text) {
            Some(meant) => format!("it must be a whole number; write {meant}"),
            None if !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit()) => "it is too large".into(),
            None => "it must be a whole number, for instance 10000 or 1e4".into(),
        });
    };
    T::try_from(number).map_err(|_| "it is too large".into())
}

/// Parses a whole number from 1.
pub(crate) fn positive(text: &str) -> Result<NonZeroU32, String> {
    NonZeroU32::new(whole(text)?).ok_or_else(|| "it must be at least 1".into())
}

/// Parses a number of connections, from 1.
pub(crate) fn connections(text: &str) -> Result<NonZeroUsize, String> {
    NonZeroUsize::new(whole(text)?).ok_or_else(|| "it must be at least 1".into())
}

/// Parses a number of threads, shards or jobs.
pub(crate) fn few(text: &str) -> Result<NonZeroUsize, String> {
    let number = whole(text).ok().filter(|n| *n <= MOST_THREADS).and_then(NonZeroUsize::new);
    number.ok_or_else(|| format!("it must be a whole number, 1 to {MOST_THREADS}"))
}

/// Parses a port.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    whole(text).map_err(|_| format!("a port is a whole number, 0 to {}; 0 chooses a free one", u16::MAX))
}

/// Parses an address to listen at: an IP address, or `localhost`.
pub(crate) fn address(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        _ => text.parse().map_err(|_| {
            "it must be an IP address of this machine: 127.0.0.1 (only this machine), or 0.0.0.0 (also others)".into()
        }),
    }
}

/// Parses a seed: 0 to 2^63 - 1, as in a scenario.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    whole::<u64>(text)
        .ok()
        .filter(|seed| *seed <= i64::MAX as u64)
        .ok_or_else(|| format!("it must be a whole number, 0 to {}", i64::MAX))
}

/// Parses a number, `0.5` or `20`.
pub(crate) fn decimal(text: &str) -> Result<f64, String> {
    let finite = |text: &str| text.parse().ok().filter(|x: &f64| x.is_finite());
    finite(text.trim()).ok_or_else(|| {
        let plain = text.trim().trim_start_matches(['$', '€']);
        match finite(plain) {
            Some(_) => format!("it must be a number; write {plain}"),
            None => "it must be a number, for instance 0.5".into(),
        }
    })
}

/// Reads `1e6` and `2.5e3`.
fn scientific(text: &str) -> Option<u64> {
    let number: f64 = text.parse().ok().filter(|_| text.contains(['e', 'E']))?;
    (number.fract() == 0.0 && (0.0..=EXACT).contains(&number)).then_some(number as u64)
}

/// The whole number that was probably meant by `10k`, `1.5m`, `1_000`, `1,000` or `3.0`.
fn in_short(text: &str) -> Option<u64> {
    // What separates anything but thousands may be a decimal comma.
    if text.split(['_', ',']).skip(1).any(|group| group.len() != 3) {
        return None;
    }
    let plain = text.to_ascii_lowercase().replace(['_', ','], "");
    let (digits, factor) = match plain.strip_suffix('k').map(|digits| (digits, 1e3)) {
        Some(thousands) => thousands,
        None => plain.strip_suffix('m').map_or((plain.as_str(), 1.0), |digits| (digits, 1e6)),
    };
    let number = digits.parse::<f64>().ok()? * factor;
    (number.fract() == 0.0 && (0.0..=EXACT).contains(&number)).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_be_written_as_in_a_scenario_and_errors_say_what_to_write() {
        assert_eq!((whole("10000"), whole("1e4"), whole("2.5E3")), (Ok(10_000_u32), Ok(10_000_u32), Ok(2_500_u32)));
        for (text, error) in [
            ("10k", "it must be a whole number; write 10000"),
            ("1_000", "it must be a whole number; write 1000"),
            ("1,000,000", "it must be a whole number; write 1000000"),
            ("3.0", "it must be a whole number; write 3"),
            ("1.5m", "it must be a whole number; write 1500000"),
            ("1,5", "it must be a whole number, for instance 10000 or 1e4"),
            ("1_0", "it must be a whole number, for instance 10000 or 1e4"),
            ("abc", "it must be a whole number, for instance 10000 or 1e4"),
            ("2.5", "it must be a whole number, for instance 10000 or 1e4"),
            ("", "it must be a whole number, for instance 10000 or 1e4"),
            ("-1", "it must be a whole number, 0 or more"),
            ("4294967296", "it is too large"),
            ("99999999999999999999999", "it is too large"),
            ("1e300", "it must be a whole number, for instance 10000 or 1e4"),
            ("inf", "it must be a whole number, for instance 10000 or 1e4"),
        ] {
            assert_eq!(whole::<u32>(text), Err(error.to_string()), "{text}");
        }
        assert_eq!(positive("0"), Err("it must be at least 1".into()));
        assert_eq!(connections("0"), Err("it must be at least 1".into()));
        for text in ["0", "-1", "1025", "x"] {
            assert_eq!(few(text), Err("it must be a whole number, 1 to 1024".into()), "{text}");
        }
        assert_eq!((few("1e3").map(NonZeroUsize::get), port("8080"), port("0")), (Ok(1000), Ok(8080), Ok(0)));
        assert!(port("99999").is_err() && port("-1").is_err());
        assert_eq!(address("localhost"), address("127.0.0.1"));
        assert!(address("here").is_err_and(|why| why.contains("127.0.0.1")));
        assert_eq!(seed("9223372036854775807"), Ok(i64::MAX as u64));
        assert_eq!(seed("9223372036854775808"), seed("-1"));
        assert_eq!(seed("-1"), Err("it must be a whole number, 0 to 9223372036854775807".into()));
    }

    #[test]
    fn numbers_have_no_currency() {
        assert_eq!((decimal("0.5"), decimal("20")), (Ok(0.5), Ok(20.0)));
        for (text, error) in [
            ("$1", "it must be a number; write 1"),
            ("1,000", "it must be a number, for instance 0.5"),
            ("much", "it must be a number, for instance 0.5"),
            ("nan", "it must be a number, for instance 0.5"),
            ("inf", "it must be a number, for instance 0.5"),
        ] {
            assert_eq!(decimal(text), Err(error.to_string()), "{text}");
        }
    }
}
