//! Toolkits whose calls reach outside of the machine, one folder each: their tools are called by agents, with arguments that fit a schema.
//! Toolkits whose results follow from the scenario alone are leaves of the catalogue.

pub mod browse;
pub mod http;
mod marks;
pub mod sql;
mod toolkit;

pub use toolkit::{Calling, Toolkit};
