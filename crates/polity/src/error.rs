//! Errors of a simulation that cannot start or continue.

use polity_driver::run::RunStatus;
use polity_kernel::tree::{Origin, TreeError};
use polity_store::DriveError;
use polity_store::files::{FileError, position};
use polity_store::tables::TableError;
use std::fmt;

/// Why a simulation could not start or continue.
///
/// The text says what happened, where, and what to do.
///
/// ```
/// use serde_json::json;
/// let wrong = polity::Simulation::from_value(json!({
///     "rounds": 3, "agents": 5,
///     "world": {"kind": "guess-average"},
///     "cohorts": [{"policy": {"kind": "level-k", "mean": "much"}}]
/// }))?;
/// let error = wrong.in_memory().run().unwrap_err();
/// assert_eq!(error.path(), Some("cohorts[0].policy.mean"));
/// assert!(error.to_string().starts_with("cohorts[0].policy.mean: "));
/// # Ok::<(), polity::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The scenario's file cannot be read, or its text is not YAML.
    #[error(transparent)]
    File(#[from] FileError),
    /// The scenario is wrong.
    #[error("{}", in_words(.error, .place.as_deref()))]
    Scenario {
        /// The error, with its path in the scenario.
        error: Box<TreeError>,
        /// File, line and column, if the scenario was written as text.
        place: Option<String>,
    },
    /// The run could not start or continue: its folder, its models, the disk.
    #[error(transparent)]
    Run(DriveError),
    /// A value cannot be written as JSON.
    #[error("a scenario cannot be made from this value: {0}")]
    Value(#[from] serde_json::Error),
    /// The run has no such metric.
    #[error("{0}")]
    NoMetric(String),
    /// No leaf in the box has that name.
    #[error("{0}")]
    NoExample(String),
    /// A comparison was stopped, or its budget is used up. The same comparison with the same folder continues.
    #[error("{message}")]
    Halted {
        /// [`RunStatus::Stopped`](crate::RunStatus::Stopped) or [`RunStatus::Budget`](crate::RunStatus::Budget).
        status: RunStatus,
        /// What happened, and how it continues.
        message: String,
    },
    /// The run's thread panicked, in a function of the embedding program or due to a defect of Polity.
    #[error("the run's thread panicked: {0}")]
    Panicked(String),
}

/// The result of a library call, or an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

fn in_words(error: &TreeError, place: Option<&str>) -> String {
    struct Help<'a>(&'a TreeError);
    impl fmt::Display for Help<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.help.as_ref().map_or(Ok(()), |help| write!(f, " ({help})"))
        }
    }
    match place {
        Some(place) => format!("{place}: {error}{}", Help(error)),
        None => format!("{error}{}", Help(error)),
    }
}

impl Error {
    /// Returns the path of the error within the scenario, `cohorts[0].policy.mean`; `None` for other errors.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Error::Scenario { error, .. } => Some(&error.path),
            _ => None,
        }
    }

    pub(crate) fn scenario(error: TreeError, written: Option<&Written>) -> Error {
        let place = match (&error.origin, written) {
            (Origin::File { start, .. }, Some(Written { name, text })) => {
                let (line, column) = position(text, *start);
                Some(format!("{name}:{line}:{column}"))
            }
            _ => None,
        };
        Error::Scenario { error: Box::new(error), place }
    }

    pub(crate) fn of(error: DriveError, written: Option<&Written>) -> Error {
        match error {
            DriveError::Scenario(error) => Error::scenario(error, written),
            other => Error::Run(other),
        }
    }
}

impl From<DriveError> for Error {
    fn from(error: DriveError) -> Self {
        Error::of(error, None)
    }
}

impl From<TableError> for Error {
    fn from(error: TableError) -> Self {
        Error::Run(error.into())
    }
}

/// The source text of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub name: String,
    pub text: String,
}
