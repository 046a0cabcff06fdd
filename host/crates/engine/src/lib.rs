//! From the bytes of a component to a typed, bounded call.
//!
//! Bytes are compiled once, in a child process, and cached by digest; a plugin is linked once; every call gets a fresh
//! store with limits, and its instance is dropped when it returns, unless the process ends then. This crate keeps no
//! journal, reads no configuration and never trusts a plugin's statements about itself.

mod cache;
mod callee;
mod calls;
mod command;
mod compile_lock;
mod config;
mod contract;
mod cooperative;
mod deferred_drop;
pub mod edition;
mod error;
mod file_cache;
mod governor;
mod inspect;
mod instance;
mod jail;
mod linkers;
mod plugin;
mod role;
mod seal;
mod sections;
mod unfinished;
mod warmup;

pub use cache::{CrashHook, is_noexec};
pub use callee::{CallStart, Called, WarmInstance};
pub use command::CommandComponent;
pub use config::{EngineOptions, compile_config, fingerprint};
pub use edition::{Edition, Editions, MemorySpace};
pub use error::{CallError, LoadError};
pub use governor::{Cancel, HAND_OVER_MS_MAX, IN_FLIGHT_MS_MAX};
pub use inspect::{Inspection, inspect};
pub use jail::{Jail, compile_child};
pub use longhaul_core::tool::ToolAttempt;
pub use longhaul_sandbox::CompileLimits;
pub use plugin::{Engine, Plugin};
pub use role::Role;
pub use sections::{Sections, sections};
