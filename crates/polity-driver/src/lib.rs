//! polity-driver
