//! The Model Context Protocol, both ends: [`client`] makes the tools of a server a toolkit of a run, and [`server`] serves tools to other
//! programs. Both speak the revisions 2026-07-28 and 2025-11-25, and older ones that the peer asks for, over stdio and over HTTP.

#![allow(deprecated)] // Sampling is deprecated in the newest revision, and asked for by servers of older ones.

pub mod client;
mod limited;
pub mod server;
