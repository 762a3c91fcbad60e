//! polity-driver

pub mod models;
