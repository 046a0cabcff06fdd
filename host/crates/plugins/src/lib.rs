//! Plugins as files: finding them by their names, installing them, reading what they are and what they ask for.
//!
//! | module | holds |
//! |---|---|
//! | `search` | the file of a name, and its bytes as a run pins them |
//! | [`installed`] | installed plugins, by name, version and digest |
//! | [`manifest`] | `plugin.toml`, and the settings that it declares |
//! | [`verdict`] | the rules for names, versions and worlds |
//! | `known` | what is known of a component before it runs, and what changed since another version |
//! | `loaded` | the plugins that this process has compiled |
//!
//! Everything that a plugin says of itself is a claim. This crate refuses to grant anything of it, which `longhaul.toml`
//! does, to call an export, and to ask a person.

pub mod installed;
mod known;
mod loaded;
pub mod manifest;
mod search;
pub mod verdict;

pub use known::{InspectedPlugin, PluginChanges, read_bounded};
pub use loaded::LoadedPlugins;
pub use search::{FoundPlugin, components_of, find, read};
