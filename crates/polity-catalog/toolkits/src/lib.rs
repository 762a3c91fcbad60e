//! Toolkits of the catalogue, one folder each. Leaves do not name each other; scenarios compose them.
//!
//! How toolkits read the files of a scenario and the arguments of calls is in [`sources`] and [`arguments`].
//! `leaves.rs` beside it collects the folders, so there is no list to maintain. The tests of a leaf are in its folder.

pub mod arguments;
pub mod sources;
#[cfg(test)]
mod tests;

include!(concat!(env!("OUT_DIR"), "/leaves.rs"));
