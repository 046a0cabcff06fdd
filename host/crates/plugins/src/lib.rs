//! Plugins: search by name, installation, inspection and manifests, and the plugins of a run with their grants.
//!
//! | module | holds |
//! |---|---|
//! | `search` | the file of a name, and its bytes as a run pins them |
//! | [`installed`] | installed plugins, by name, version and digest |
//! | [`manifest`] | `plugin.toml`, and the settings that it declares |
//! | [`listing`] | the list of plugins that runs of any project find |
//! | [`verdict`] | the rules for names, versions and worlds |
//! | `known` | inspection of a component before it runs, and its changes since another version |
//! | `loaded`, `bounded_cache` | the plugins that this process has compiled, of unused ones the last |
//! | [`plugin_host`] | the store, clock, engine and secrets with which plugins are loaded, confined and served |
//! | [`plugin_set`] | the plugins of a run, pinned by digest, with their grants and limits |
//! | [`python_packages`] | the packages that tools of a project import, as its lock has them |
//! | `component_caller` | calls of the plugins that are tools of a run |
//!
//! All statements of a plugin about itself are claims. This crate refuses to grant any of them, which `longhaul.toml`
//! does, and to ask a person. Only tools are called from here.

mod bounded_cache;
mod component_caller;
pub mod installed;
mod known;
pub mod listing;
mod loaded;
pub mod manifest;
pub mod plugin_host;
pub mod plugin_set;
pub mod python_packages;
mod search;
pub mod verdict;

pub use component_caller::ComponentCaller;
pub use known::{InspectedPlugin, PluginChanges, read_bounded};
pub use loaded::LoadedPlugins;
pub use search::{FoundPlugin, components_of, find, read};
