//! Errors as Python's exceptions, which `python/polity/_errors.py` defines.

use polity::cli::{Exit, Failure};
use polity::driver::run::RunStatus;
use polity::{Error, StopHandle};
use pyo3::prelude::*;

/// The exception of a class of `polity._errors`.
pub fn exception(py: Python<'_>, class: &str, message: &str, path: Option<&str>) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("polity._errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call1((message, path))?))
    };
    made().unwrap_or_else(|broken| broken)
}

/// The class of an exit code's errors.
fn class_of(exit: Exit) -> &'static str {
    match exit {
        Exit::Input => "InputError",
        Exit::Folder => "FolderError",
        Exit::Disk => "DiskError",
        Exit::Differs => "ReplayError",
        Exit::Budget => "BudgetError",
        Exit::Lost => "ModelError",
        _ => "RunError",
    }
}

/// An error of the library.
pub fn of(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::File(_) | Error::Scenario { .. } | Error::Value(_) | Error::NoMetric(_) | Error::NoExample(_) => {
            "InputError"
        }
        Error::Halted { status: RunStatus::Budget, .. } => "BudgetError",
        Error::Run(error) => class_of(polity::cli::exit_of(error)),
        _ => "RunError",
    };
    exception(py, class, &error.to_string(), error.path())
}

/// An error of the command line.
pub fn failure(py: Python<'_>, failure: &Failure) -> PyErr {
    exception(py, class_of(failure.exit()), failure.message(), None)
}

/// An exception in a sentence: its kind, its message, and where it was raised.
pub fn described(py: Python<'_>, error: &PyErr) -> String {
    let told =
        || py.import("polity._errors")?.call_method1("described", (error.clone_ref(py).into_value(py),))?.extract();
    told().unwrap_or_else(|_: PyErr| error.to_string())
}

/// How work is stopped, if it can be.
pub type Stopper = Option<StopHandle>;
