//! Methods compared on the same items ([`arena`]), a method that answers single questions ([`team`]), logs whose answers can be played
//! ([`recordings`]), games that score a model ([`suite`]), and the pages that show results ([`report`]).

pub mod arena;
pub mod recordings;
pub mod report;
pub mod suite;
pub mod team;
mod verify;

pub use verify::verify;
