//! Plugins as files: search by name, installation, inspection, manifests and requested grants.
//!
//! | module | holds |
//! |---|---|
//! | `search` | the file of a name, and its bytes as a run pins them |
//! | [`installed`] | installed plugins, by name, version and digest |
//! | [`manifest`] | `plugin.toml`, and the settings that it declares |
//! | [`listing`] | the list of plugins that runs of any project find |
//! | [`verdict`] | the rules for names, versions and worlds |
//! | `known` | inspection of a component before it runs, and its changes since another version |
//! | `loaded` | the plugins that this process has compiled |
//!
//! All statements of a plugin about itself are claims. This crate refuses to grant any of them, which `longhaul.toml`
//! does, to call an export, and to ask a person.

pub mod installed;
mod known;
pub mod listing;
mod loaded;
pub mod manifest;
mod search;
pub mod verdict;

pub use known::{InspectedPlugin, PluginChanges, read_bounded};
pub use loaded::LoadedPlugins;
pub use search::{FoundPlugin, components_of, find, read};
