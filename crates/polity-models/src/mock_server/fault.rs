//! The faults of the mock server.

use polity_kernel::rng::{Draws, Stream};
use polity_kernel::tree::nearest;
use std::fmt;
use std::str::FromStr;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A way in which the server fails.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// All faults.
            pub const ALL: &[Fault] = &[$(Fault::$name,)*];

            /// Its name in options.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Fault::$name => $text,)*
                }
            }
        }
    };
}

faults! {
    /// Status 429 with Retry-After.
    RateLimit = "429",
    /// Status 429 without Retry-After.
    RateLimitBare = "429-no-retry-after",
    /// Status 429: the quota is used up.
    Quota = "quota",
    /// Status 500.
    Server = "500",
    /// Status 401: wrong key; the message repeats the key, as some servers do.
    Key = "401",
    /// Status 404: unknown model.
    Model = "404",
    /// No answer at all.
    Hang = "hang",
    /// An answer sent one byte at a time.
    Drip = "slow-drip",
    /// The connection closes in the middle of the answer.
    Cut = "cut-stream",
    /// Half of the JSON, presented as complete.
    Truncated = "truncated-json",
    /// A web page.
    WebPage = "wrong-content-type",
    /// JSON in another form than requested.
    Schema = "wrong-schema",
    /// A text cut at the token limit.
    Length = "length",
    /// An empty text.
    Empty = "empty",
    /// No text field.
    Null = "null",
    /// The model declines.
    Refusal = "refusal",
    /// An answer of more than 10 MB.
    Huge = "huge",
    /// Status 400 if the request asks for a form of the reply.
    NoSchema = "no-schema",
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Faults with their probabilities; at most one occurs per call.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<(Fault, f64)>);

impl Faults {
    /// Parses a list of `KIND=PROBABILITY`.
    pub fn read<T: AsRef<str>>(texts: &[T]) -> Result<Self, String> {
        let faults: Vec<_> = texts.iter().map(|text| one(text.as_ref())).collect::<Result<_, _>>()?;
        let sum: f64 = faults.iter().map(|(_, probability)| probability).sum();
        match sum > 1.0 + 1e-9 {
            true => {
                Err(format!("faults exclude each other, so their probabilities must add up to at most 1, not {sum}"))
            }
            false => Ok(Faults(faults)),
        }
    }

    /// The fault of the `n`-th call.
    pub(super) fn of(&self, seed: u64, n: u64) -> Option<Fault> {
        let mut u = Draws::new(seed, Stream::Driver, (n >> 32) as u32, n as u32).unit();
        self.0.iter().find_map(|(fault, probability)| {
            u -= probability;
            (u < 0.0).then_some(*fault)
        })
    }
}

fn one(text: &str) -> Result<(Fault, f64), String> {
    let (kind, number) = text
        .split_once('=')
        .ok_or_else(|| format!("a fault is written KIND=PROBABILITY, for instance 500=0.1, not `{text}`"))?;
    let probability = f64::from_str(number).ok().filter(|p| (0.0..=1.0).contains(p));
    let probability =
        probability.ok_or_else(|| format!("the probability of `{kind}` must lie in 0 to 1, not `{number}`"))?;
    let fault = Fault::ALL.iter().find(|fault| fault.name() == kind).ok_or_else(|| {
        let names = || Fault::ALL.iter().map(|fault| fault.name());
        let meant = nearest(kind, names()).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        format!("there is no fault `{kind}`{meant} (known: {})", names().collect::<Vec<_>>().join(", "))
    })?;
    Ok((*fault, probability))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn faults_are_read_and_drawn_as_often_as_said() {
        let faults = Faults::read(&["500=0.2", "hang=0.1"]).unwrap();
        let count = |fault| (0..10_000).filter(|n| faults.of(1, *n) == fault).count();
        assert!(count(Some(Fault::Server)).abs_diff(2_000) < 150);
        assert!(count(Some(Fault::Hang)).abs_diff(1_000) < 150);
        assert!(count(None).abs_diff(7_000) < 200);
        assert!((0..100).all(|n| Faults::read(&["null=1"]).unwrap().of(n, n) == Some(Fault::Null)));
        assert!(Faults::read(&["hagn=1"]).unwrap_err().contains("did you mean `hang`?"));
        assert!(Faults::read(&["hang=2"]).unwrap_err().contains("0 to 1"));
        assert!(Faults::read(&["hang"]).unwrap_err().contains("KIND=PROBABILITY"));
        assert!(Faults::read(&["hang=0.6", "500=0.6"]).unwrap_err().contains("at most 1"));
    }
}
