//! polity-driver
pub mod files;
