//! polity

pub mod report;
