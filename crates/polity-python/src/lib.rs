//! The extension module of the Python package: `polity._polity`. It passes on; what users see is in `python/polity/`.
//!
//! Texts and numbers in columns cross as bytes (little-endian) or as Arrow streams, everything else as JSON. Long work runs on a thread
//! of its own without the interpreter's lock, while the calling thread listens to signals.

mod bytes;
mod call;
mod contest;
mod environment;
mod error;
mod handle;
mod leaves;
mod policy;
mod setup;
mod simulation;
mod sweep;
mod table;
mod world;

/// Like the program's: rounds allocate and free the same blocks of memory again and again.
#[global_allocator]
static MEMORY: polity::cli::Allocator = polity::cli::Allocator;

#[pyo3::pymodule]
mod _polity {
    #[pymodule_export]
    use super::contest::compare;
    #[pymodule_export]
    use super::environment::{Environment, Episode};
    #[pymodule_export]
    use super::leaves::Leaves;
    #[pymodule_export]
    use super::setup::Setup;
    #[pymodule_export]
    use super::simulation::{Run, Simulation};
    #[pymodule_export]
    use super::sweep::{Sweep, is_sweep};
    #[pymodule_export]
    use super::table::Table;
    use pyo3::prelude::*;
    use std::ffi::OsString;

    /// Runs the command line with these words after the program's name; returns the exit code.
    #[pyfunction]
    fn command(py: Python<'_>, words: Vec<OsString>) -> u8 {
        let words = std::iter::once(OsString::from("polity")).chain(words);
        py.detach(|| polity::cli::run_words(words, polity::registry().into()) as u8)
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
