//! `longhaul plugin list`: lists the plugins that a run of this project would find, and all installed versions.

use crate::context::Context;
use crate::exit::Exit;
use crate::order::print_json;
use longhaul_api::wire::Page;
use longhaul_core::fault;
use longhaul_core::text::printable;
use longhaul_engine::Role;
use longhaul_home::carried_plugins;
use longhaul_plugins::installed::{InstalledPlugins, PluginVersion};
use longhaul_plugins::listing::{inspect, listed};
use longhaul_plugins::{InspectedPlugin, components_of};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Longest description that is shown, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 200;

/// Runs the command.
pub fn run(context: &Context) -> fault::Result<Exit> {
    if let Err(error) = carried_plugins() {
        errln!("the plugins of this program are not listed: {error:#}");
    }
    if context.json {
        print_json(&Page::whole(listed(&context.home, inspect)?, |plugin| plugin))?;
        return Ok(Exit::Done);
    }
    let installed = InstalledPlugins::of(&context.home);
    let mut found = components(context);
    for name in installed.names()? {
        // A plugin whose link is missing is still listed.
        if let Some(newest) = installed.versions(&name)?.last() {
            found.entry(name.clone()).or_insert_with(|| installed.component(&name, newest.digest));
        }
    }
    for (name, path) in found {
        show(&name, &path, &installed.versions(&name)?);
    }
    Ok(Exit::Done)
}

/// The components that are tools. A component that cannot be read is none.
pub(crate) fn tool_components(context: &Context) -> Vec<(String, PathBuf)> {
    let is_tool = |path: &Path| InspectedPlugin::read(path).is_ok_and(|known| known.inspection.role == Role::Tool);
    components(context).into_iter().filter(|(_, path)| is_tool(path)).collect()
}

fn components(context: &Context) -> BTreeMap<String, PathBuf> {
    components_of(&context.home)
}

fn show(name: &str, path: &Path, versions: &[PluginVersion]) {
    let known = InspectedPlugin::read(path);
    let words = match &known {
        Ok(InspectedPlugin { inspection, manifest, .. }) => {
            let version = printable(&manifest.version, DESCRIPTION_BYTES_MAX);
            let description = printable(&manifest.description, DESCRIPTION_BYTES_MAX);
            format!("{:<9} {version:<8} sha256:{} {description}", inspection.role.name(), inspection.digest.short())
        }
        Err(error) => printable(&format!("{error:#}"), DESCRIPTION_BYTES_MAX),
    };
    outln!("{name:<20} {words}\n{:<20} {}", "", path.display());
    let current = known.map(|known| known.inspection.digest).ok();
    for version in versions.iter().filter(|version| Some(version.digest) != current) {
        outln!("{:<20} also {name}@{} (sha256:{})", "", version.version, version.digest.short());
    }
}
