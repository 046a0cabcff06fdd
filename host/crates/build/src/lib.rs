//! Builds a plugin's project into its component, in four languages, and writes new projects.
//!
//! The further needs of a language are fetched through that language's ordinary package client, in a pinned version,
//! into a cache outside the tree; one line reports each such step. The component is checked against the world that the
//! project names. This crate runs compilers and never a plugin, installs nothing for the whole machine (except for the
//! wasm target, which rustup may add to its tool chain), and knows neither the engine nor a data directory.
//!
//! ```text
//! plugin.toml -> PluginProject -> PluginBuilder::build -> the component's bytes, plugin.toml in them
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

/// A command of Node.js: the one on PATH if it is recent enough, else one that is fetched into the cache.
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

/// The program `zig`, in the version that plugins in C are built with.
///
/// # Errors
/// [`BuildError`] when it has to be fetched and cannot.
pub fn zig(cache: &cache::Cache) -> Result<std::path::PathBuf, BuildError> {
    c::zig(cache)
}

/// The folder of a package of PyPI in that version, and of nothing that it depends on.
///
/// # Errors
/// As [`zig`].
pub fn python_package(cache: &cache::Cache, name: &str, version: &str) -> Result<std::path::PathBuf, BuildError> {
    pypi::package(cache, name, version)
}
