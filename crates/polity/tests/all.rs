//! All integration tests of this crate in one program, which links once instead of 38 times. Find a test by its module, `cargo nextest
//! run -E 'test(/^MODULE::/)'`.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod activation;
mod archetypes;
mod arena;
mod ask;
mod attributes;
mod batch;
mod behaviours;
#[cfg(feature = "local")]
#[allow(dead_code)] // The tests of the driver use the rest.
#[path = "../../polity-models/tests/bert/mod.rs"]
mod bert;
mod book;
mod budget;
mod calibration;
mod calls;
mod chain;
mod comparisons;
mod constrain;
mod damage;
mod designs;
mod diagnose;
mod embedding;
mod estimate;
mod experiment;
mod explain;
mod faults;
#[cfg(feature = "local")]
#[path = "../../polity-models/tests/gguf/mod.rs"]
mod gguf;
mod harness;
mod hostile;
mod hostile_provider;
mod import;
mod inquiry;
mod judge;
mod kill;
mod ladder;
#[cfg(feature = "local")]
mod local;
mod manners;
#[cfg(target_os = "linux")]
mod mcp_serve;
mod memory;
mod messages;
mod minds;
mod mock_server;
mod momaland;
mod money;
mod network;
mod people;
mod people_in_the_loop;
mod personality;
mod platform;
mod power_loss;
mod raters;
mod report;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod scores;
mod serve;
mod spread;
mod status;
mod steering;
mod steps;
mod sweep;
mod systems;
mod templates;
mod tidy;
mod tools;
mod traces;
mod validation;
mod view;
mod wire;
mod workers;

/// As in the program `polity`.
#[global_allocator]
static MEMORY: polity::cli::Allocator = polity::cli::Allocator;
