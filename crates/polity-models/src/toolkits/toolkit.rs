//! What a toolkit is whose calls reach outside of the machine.

use crate::models::ProviderError;
use polity_kernel::tool::{Arguments, ToolOutput, ToolSpec};
use std::future::Future;
use std::pin::Pin;

/// The future of a call.
pub type Calling<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ProviderError>> + Send + 'a>>;

/// A toolkit of a run, with the parameters that its scenario gives it. Calls come from many tasks at once.
pub trait Toolkit: Send + Sync {
    /// Returns its tools. The list does not change while the run lasts.
    fn tools(&self) -> Vec<ToolSpec>;
    /// Checks before a run that this machine has what it needs; the error says what is missing and how to get it. Fast after the first
    /// call.
    ///
    /// # Errors
    /// What is missing.
    fn check(&self) -> Result<(), String>;
    /// What it would do that a scenario may do only if its user allows it: start a program, ask hosts. In words after "it would".
    fn needs_consent(&self) -> Option<String> {
        None
    }
    /// Calls a tool. `arguments` fit its schema. `state` is the state of the session that the last call left, empty at first, and always
    /// empty for tools without a session. A call on an older state works on that older state.
    ///
    /// What is wrong with the arguments or with the world outside is an output with `error` set, which the model sees. Only failures of the
    /// toolkit itself are errors.
    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Arguments, state: &'a str) -> Calling<'a>;
}
