//! How large a file of a user may be.

/// The deepest nesting of lists and maps.
pub const MAX_DEPTH: usize = 64;
/// The most values in one file, including copies by aliases.
pub const MAX_NODES: usize = 200_000;
/// The most bytes of text in one tree, including copies by aliases.
pub const MAX_TEXT: usize = 4 * MAX_BYTES;

/// The largest scenario file, in bytes.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;
