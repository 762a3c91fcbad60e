//! polity-driver
pub mod disk;
