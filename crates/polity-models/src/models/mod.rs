//! Models: the providers that answer requests, one folder per provider.
//!
//! A provider turns one effect into one outcome. Batches, retries, caches and budgets belong to the run.

pub mod anthropic;
mod batch;
mod calls;
mod capabilities;
mod choice;
mod form;
pub mod google;
mod home;
pub mod human;
mod in_process;
pub mod keys;
mod line;
#[cfg(feature = "local")]
pub mod local;
mod mend;
pub mod ollama;
pub mod openai;
pub mod openai_responses;
pub mod prices;
mod provider;
mod providers;
mod reader;
mod received;
mod recorded;
mod remote;
mod reply;
mod secret;
pub mod sim;
mod strict_json;
mod wire;

pub use capabilities::Capabilities;
pub use choice::Held;
pub use home::{Home, LONGEST_ANSWER};
pub use in_process::{InProcess, Reply};
pub use provider::{
    Answering, Batching, Doing, Exchange, Found, Probing, Provider, ProviderError, RateLimits, Results, Standing,
    State, Window,
};
pub use providers::Providers;
pub use received::{End, Ended, Received, Told};
pub use remote::Remote;
pub use reply::read_reply;
pub use wire::{LONGEST_REPLY, Question, Settings, Turn, Wire};
