//! Model providers: the only crate that knows how a model is reached.
//!
//! [`ModelConfig`] is a table `[models.NAME]` of `longhaul.toml`; [`config::build`] makes a
//! [`longhaul_core::model::Model`] of it. This crate counts no budget, keeps no conversation and decides no policy: it
//! asks once, retries when a retry can help, asks another model if the operator named one, and bounds every answer. A
//! key never leaves [`ApiKey`] except in the header of its own endpoint.

mod adaptation;
pub mod anthropic;
mod cache;
mod calls;
pub mod config;
pub mod discover;
mod endpoint_account;
mod error;
#[doc(hidden)]
pub mod hostile;
mod http;
mod http_exchange;
pub mod local;
pub mod openai;
mod picture;
pub mod prefill;
mod prices;
pub mod probe;
mod problem;
pub mod pull;
mod queue;
pub mod recorded;
pub mod retry;
pub mod route;
pub mod schema;
mod secret;
pub mod set;
mod sse;
mod tool_names;

#[cfg(test)]
mod fake_server;

pub use adaptation::Adaptations;
pub use config::{ModelConfig, ModelEnvironment, Provider};
pub use discover::{Discovery, discover};
pub use error::ModelsError;
pub use pull::pull;
pub use queue::Queues;
pub use recorded::{Recorded, Recording};
pub use secret::ApiKey;
