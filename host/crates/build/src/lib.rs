//! From a plugin's project to its component, in four languages, and a new project from nothing.
//!
//! What a language needs beyond itself is fetched through that language's ordinary package client, in
//! a pinned version, into a cache outside the tree; each such step is said in one line. What comes out
//! is checked against the world that the project names. This crate runs compilers and never a plugin,
//! installs nothing for the whole machine (but for the wasm target, which rustup may add to its tool
//! chain), and knows neither the engine nor a data directory.
//!
//! ```text
//! plugin.toml -> Project -> Workshop::build -> the component's bytes, plugin.toml in them
//! Draft { name, kind, language } -> write -> a folder that builds at once
//! ```

mod c;
pub mod cache;
mod carry;
mod component;
pub mod debian_packages;
mod draft;
mod error;
mod go;
mod javascript;
mod language;
mod merge;
mod names;
mod plugin_builder;
pub mod process;
mod project;
mod pypi;
mod python;
mod recipe;
pub mod rust;
mod say;
pub mod sources;

pub use carry::{with_manifest, without_manifest};
pub use component::{CONTRACT_DIR, Contract, GuestRuntime};
pub use draft::{Draft, PluginKind};
pub use error::BuildError;
pub use go::go;
pub use language::PluginLanguage;
pub use names::{check_form, check_name};
pub use plugin_builder::PluginBuilder;
pub use project::{MANIFEST, PluginProject, toml_error};
pub use say::ProgressLine;

/// A command of Node.js: the one on PATH where it will do, else one that is fetched into the cache.
///
/// # Errors
/// [`BuildError`] when it has to be fetched and cannot.
pub fn node(cache: &cache::Cache) -> Result<std::process::Command, BuildError> {
    javascript::node(cache)
}

/// A command of npm, of the same Node.js.
///
/// # Errors
/// As [`node`].
pub fn npm(cache: &cache::Cache) -> Result<std::process::Command, BuildError> {
    javascript::npm(cache)
}
