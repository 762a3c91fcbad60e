//! Who answers: model providers, tools, and a mock server that speaks the providers' protocols.
//!
//! Start reading at [`models::Provider`].

pub mod bucket;
pub mod http;
pub mod mock_server;
pub mod models;
pub mod toolkits;
pub mod tools;
