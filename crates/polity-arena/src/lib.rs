//! Methods compared on the same items ([`arena`]), logs whose answers can be played ([`recordings`]), and the pages that show results
//! ([`report`]).

pub mod arena;
pub mod recordings;
pub mod report;
mod verify;

pub use verify::verify;
