//! The list of plugins that runs of any project find, installed and shipped.
//!
//! A component that cannot be read is listed with the reason. This module loads nothing and grants nothing.

use crate::installed::{InstalledPlugins, PluginVersion};
use crate::{InspectedPlugin, components_of};
use longhaul_api::wire::plugins::{InstalledVersion, PluginView};
use longhaul_core::fault;
use longhaul_home::Home;
use std::path::Path;

/// All plugins by name. `look` reads the component of one; it is [`inspect`], or a cache of it.
///
/// # Errors
/// When the directory of installed plugins cannot be read.
pub fn listed(home: &Home, look: impl Fn(String, &Path) -> PluginView) -> fault::Result<Vec<PluginView>> {
    let installed = InstalledPlugins::of(home);
    let mut found = components_of(home);
    for name in installed.names()? {
        // A plugin whose link is missing is still listed.
        if let Some(newest) = installed.versions(&name)?.last() {
            found.entry(name.clone()).or_insert_with(|| installed.component(&name, newest.digest));
        }
    }
    let version =
        |PluginVersion { version, digest, bytes, .. }| InstalledVersion { version, digest: digest.to_string(), bytes };
    let mut plugins = Vec::with_capacity(found.len());
    for (name, path) in found {
        let versions = installed.versions(&name)?.into_iter().map(version).collect();
        plugins.push(PluginView { installed: versions, ..look(name, &path) });
    }
    Ok(plugins)
}

/// A plugin by its component, without its installed versions.
#[must_use]
pub fn inspect(name: String, path: &Path) -> PluginView {
    let (role, version, description, digest, requested_grants, error) = match InspectedPlugin::read(path) {
        Ok(InspectedPlugin { inspection, manifest, .. }) => {
            let role = inspection.role.name().to_owned();
            let requested_grants = manifest.asks.lines();
            (
                Some(role),
                manifest.version,
                manifest.description,
                Some(inspection.digest.to_string()),
                requested_grants,
                None,
            )
        }
        Err(error) => (None, String::new(), String::new(), None, Vec::new(), Some(format!("{error:#}"))),
    };
    let path = path.display().to_string();
    PluginView { name, path, role, version, description, digest, requested_grants, error, installed: Vec::new() }
}
