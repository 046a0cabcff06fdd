//! Finds a plugin's file by its name, and reads it.
//!
//! A project's own plugin is used only where `longhaul.toml` names it by a path, `./plugins/x.wasm`: agents write the
//! files of a project, so a name never leads to one of them.

use crate::installed::{self, InstalledPlugins};
use crate::manifest::PluginManifest;
use crate::verdict;
use longhaul_config::toml_text;
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_engine::Engine;
use longhaul_home::{Home, PLUGINS_VARIABLE, carried_plugins, plugin_directories};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A plugin's bytes and requested grants, as a run pins them.
pub struct FoundPlugin {
    /// The component.
    pub bytes: Vec<u8>,
    /// Its manifest, whose name and version are valid; without one it requests nothing.
    pub manifest: Option<PluginManifest>,
}

/// The file of a plugin that is named in a configuration.
pub fn find(name: &str, project: Option<&Path>, home: &Home) -> fault::Result<PathBuf> {
    if name.starts_with(['.', '/']) {
        let path = project.map_or_else(|| PathBuf::from(name), |project| project.join(name));
        if !path.is_file() {
            bail!("there is no plugin at `{}`", path.display());
        }
        return Ok(path);
    }
    if name.contains('/') {
        bail!("`{name}` is no plugin's name; a path starts with `./` or `/`");
    }
    if name.contains('@') {
        let (path, _) = InstalledPlugins::of(home).find(&name.parse()?)?;
        return Ok(path);
    }
    let searched = plugin_directories(home);
    let found = searched.iter().map(|directory| directory.join(format!("{name}.wasm"))).find(|path| path.is_file());
    let Some(found) = found else {
        let own = format!("plugins/{name}.wasm");
        if project.is_some_and(|project| project.join(&own).is_file()) {
            bail!("there is no plugin `{name}`; a plugin of the project is named by its path: plugin = \"./{own}\"");
        }
        carried_plugins().with_context(|| format!("there is no plugin `{name}` among those that are installed"))?;
        let there = names_in(&searched);
        if let Some(near) = toml_text::nearest(name, there.iter().map(String::as_str)) {
            bail!("there is no plugin `{name}`; did you mean `{near}`?");
        }
        let places: Vec<String> = searched.iter().map(|path| path.display().to_string()).collect();
        bail!(
            "there is no plugin `{name}`; looked for {name}.wasm in {}. Build the shipped ones with `cargo xtask plugins`, install one with `longhaul plugin install FILE`, or name a directory with {PLUGINS_VARIABLE}",
            places.join(", ")
        );
    };
    Ok(found)
}

/// The component that a run takes for each name.
pub fn components_of(home: &Home) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for directory in plugin_directories(home) {
        for path in directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "wasm")
                && let Some(stem) = path.file_stem()
            {
                found.entry(stem.to_string_lossy().into_owned()).or_insert(path);
            }
        }
    }
    found
}

/// Reads the plugin of that name.
pub fn read(name: &str, project: Option<&Path>, home: &Home, engine: &Engine) -> fault::Result<FoundPlugin> {
    let path = find(name, project, home)?;
    let bytes = engine.read(name, &path)?;
    check_digest(&path, &bytes)?;
    let manifest = PluginManifest::of(&path, &bytes)?;
    manifest.as_ref().map_or(Ok(()), verdict::check_names)?;
    Ok(FoundPlugin { bytes, manifest })
}

/// The plugins in these directories, by name.
fn names_in(directories: &[PathBuf]) -> Vec<String> {
    let entries = directories.iter().filter_map(|directory| directory.read_dir().ok()).flatten().flatten();
    let name = |path: PathBuf| {
        let is_component = path.extension().is_some_and(|extension| extension == "wasm");
        is_component.then(|| path.file_stem()?.to_str().map(str::to_owned))?
    };
    entries.filter_map(|entry| name(entry.path())).collect()
}

/// Refuses an installed component whose digest has changed.
fn check_digest(path: &Path, bytes: &[u8]) -> fault::Result<()> {
    match installed::digest_of(path) {
        Some(digest) if digest != Digest::of(bytes) => {
            bail!("`{}` was changed after it was installed; install it again", path.display())
        }
        _ => Ok(()),
    }
}
