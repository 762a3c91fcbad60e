//! polity-driver
pub mod tables;
