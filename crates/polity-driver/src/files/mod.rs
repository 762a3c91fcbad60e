//! Files that people write: read them, parse them, say what is wrong with them.

mod data;
pub mod edges;
pub mod table;

pub use data::{DataError, MAX_DATA_BYTES};
