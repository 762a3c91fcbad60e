//! The polity command.
fn main() {}
