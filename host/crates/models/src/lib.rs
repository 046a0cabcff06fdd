//! Model providers: the one place that knows how a model is reached.
//!
//! [`ModelConfig`] is a table `[models.NAME]` of `longhaul.toml`; [`ModelConfig::build`] makes a
//! [`longhaul_core::model::Model`] of it. This crate counts no budget, keeps no conversation and
//! decides no policy: it asks once, tries again where trying again can help, and bounds everything
//! that comes back. A key never leaves [`Secret`] except in the header of its own endpoint.

pub mod config;
pub mod discover;
mod error;
mod http;
pub mod local;
pub mod openai;
pub mod pull;
pub mod recorded;
pub mod retry;
mod secret;
mod tool_names;

#[cfg(test)]
mod fake_server;

pub use config::{ModelConfig, Surroundings};
pub use discover::{Discovery, discover};
pub use error::ModelsError;
pub use pull::pull;
pub use recorded::{Recorded, Recording};
pub use secret::Secret;
