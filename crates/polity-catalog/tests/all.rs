//! All tests of this crate that need it from outside, in one program: one is linked in the place of 17, and a test is found by its
//! module, `cargo nextest run -E 'test(/^MODULE::/)'`.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod archetype;
mod asymmetry;
mod auction;
mod common;
mod debate;
mod epidemic;
mod flock;
mod guess_average;
mod metrics;
mod mind;
mod opinion;
mod opinions;
mod plain_platform;
mod platform;
mod platform_memory;
mod schelling;
mod town;
