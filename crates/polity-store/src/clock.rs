//! The time of day.

use std::time::SystemTime;

/// Milliseconds since 1970, by the system clock.
#[must_use]
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
