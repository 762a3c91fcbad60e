//! What a tool is.

use crate::models::ProviderError;
use polity_kernel::ask::{ResponseFormat, Value};
use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;

/// The future of a tool's work.
pub type Working<'a> = Pin<Box<dyn Future<Output = Result<Value, ProviderError>> + Send + 'a>>;

/// A tool that works on texts.
pub trait Tool: Send + Sync {
    /// The part of its model's name after the slash.
    fn name(&self) -> &'static str;
    /// The only form of reply it gives.
    fn gives(&self) -> ResponseFormat;
    /// Checks before a run that this machine has it; the error says what is missing and how to get it. Fast after the first call.
    fn check(&self) -> Result<(), String>;
    /// The number of texts it accepts.
    fn takes(&self) -> RangeInclusive<usize>;
    /// Does the work. Errors in the texts are answers; only failures of the tool itself are errors.
    fn work<'a>(&'a self, texts: Vec<&'a str>) -> Working<'a>;
}
