//! Methods compared on the same items ([`arena`]), and the pages that show results ([`report`]).

pub mod arena;
pub mod report;
mod verify;

pub use verify::verify;
