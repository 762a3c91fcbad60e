//! polity-catalog
