//! polity
