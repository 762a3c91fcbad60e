//! All tests of this crate that need it from outside, in one program: one is linked in the place of 8, and a test is found by its
//! module, `cargo nextest run -E 'test(/^MODULE::/)'`.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod asking;
#[cfg(feature = "local")]
mod bert;
#[cfg(feature = "local")]
mod gguf;
#[cfg(feature = "local")]
mod local;
mod openai;
mod read_reply;
mod sim_models;
mod wires;
