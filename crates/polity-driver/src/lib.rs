//! polity-driver
pub mod disk;
pub mod journal;
