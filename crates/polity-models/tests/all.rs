//! All integration tests of this crate in one program, which links one instead of 8. Find a test by its module: `cargo nextest run -E
//! 'test(/^MODULE::/)'`.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod asking;
#[cfg(feature = "local")]
mod bert;
mod calling;
#[cfg(feature = "local")]
mod gguf;
#[cfg(feature = "local")]
mod local;
mod openai;
mod read_reply;
mod replies;
mod sim_models;
mod thinking;
mod wires;
