//! Finding a plugin's file by its name, and loading plugins, each digest once a process.
//!
//! A project's own plugin is used only where `longhaul.toml` names it by a path, `./plugins/x.wasm`: agents write the
//! files of a project, so a name never leads to one of them.

pub mod installed;
pub mod verdict;

use crate::check::text;
use crate::home::Home;
use crate::manifest::Manifest;
use installed::Installed;
use longhaul_core::Digest;
use longhaul_core::fault::{self, bail};
use longhaul_engine::{Engine, LoadError, Plugin};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Directories with plugins, beside the usual ones; separated by `:`.
pub const VARIABLE: &str = "LONGHAUL_PLUGINS";

/// Where plugins are looked for by name, in order: the environment's directories, the installed ones, the ones that
/// came with this program.
pub fn directories(home: &Home) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(named) = std::env::var_os(VARIABLE) {
        found.extend(std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()));
    }
    found.push(home.plugins());
    if let Some(directory) = std::env::current_exe().ok().as_deref().and_then(Path::parent) {
        found.push(directory.join("plugins"));
        if let Some(above) = directory.parent() {
            found.push(above.join("plugins"));
            found.push(above.join("lib/longhaul/plugins"));
        }
    }
    found
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
        let (path, _) = Installed::of(home).find(&name.parse()?)?;
        return Ok(path);
    }
    let searched = directories(home);
    let found = searched.iter().map(|directory| directory.join(format!("{name}.wasm"))).find(|path| path.is_file());
    let Some(found) = found else {
        let own = format!("plugins/{name}.wasm");
        if project.is_some_and(|project| project.join(&own).is_file()) {
            bail!("there is no plugin `{name}`; a plugin of the project is named by its path: plugin = \"./{own}\"");
        }
        let there = names_in(&searched);
        if let Some(near) = text::nearest(name, there.iter().map(String::as_str)) {
            bail!("there is no plugin `{name}`; did you mean `{near}`?");
        }
        let places: Vec<String> = searched.iter().map(|path| path.display().to_string()).collect();
        bail!(
            "there is no plugin `{name}`; looked for {name}.wasm in {}. Build the shipped ones with `cargo xtask plugins`, install one with `longhaul plugin install FILE`, or name a directory with {VARIABLE}",
            places.join(", ")
        );
    };
    Ok(found)
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

/// A plugin's bytes and what it asks for, as a run pins them.
pub struct Found {
    /// The component.
    pub bytes: Vec<u8>,
    /// Its manifest, whose name and version are some; without one it asks for nothing.
    pub manifest: Option<Manifest>,
}

/// Reads the plugin of that name.
pub fn read(name: &str, project: Option<&Path>, home: &Home, engine: &Engine) -> fault::Result<Found> {
    let path = find(name, project, home)?;
    let bytes = engine.read(name, &path)?;
    check_digest(&path, &bytes)?;
    let manifest = Manifest::of(&path, &bytes)?;
    manifest.as_ref().map_or(Ok(()), verdict::check_names)?;
    Ok(Found { bytes, manifest })
}

/// Refuses an installed component that is not what was installed.
fn check_digest(path: &Path, bytes: &[u8]) -> fault::Result<()> {
    match installed::digest_of(path) {
        Some(digest) if digest != Digest::of(bytes) => {
            bail!("`{}` was changed after it was installed; install it again", path.display())
        }
        _ => Ok(()),
    }
}

/// Plugins that were loaded, by name and digest.
#[derive(Default)]
pub struct Loaded {
    plugins: Mutex<HashMap<(String, Digest), Arc<Plugin>>>,
    described: Mutex<HashSet<Digest>>,
}

impl Loaded {
    /// The plugin of these bytes, loaded now if it was not before.
    pub async fn get(&self, engine: &Engine, name: &str, bytes: &[u8]) -> Result<Arc<Plugin>, LoadError> {
        let key = (name.to_owned(), Digest::of(bytes));
        if let Some(plugin) = self.lock().get(&key) {
            return Ok(Arc::clone(plugin));
        }
        let plugin = Arc::new(engine.load(name, bytes).await?);
        Ok(Arc::clone(self.lock().entry(key).or_insert(plugin)))
    }

    /// Whether the tool of that digest has described itself as the contract says, in this process.
    pub fn is_described(&self, digest: Digest) -> bool {
        self.described.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest)
    }

    /// Notes that it has.
    pub fn note_described(&self, digest: Digest) {
        self.described.lock().unwrap_or_else(PoisonError::into_inner).insert(digest);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, Digest), Arc<Plugin>>> {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
