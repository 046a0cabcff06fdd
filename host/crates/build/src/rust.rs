//! Plugins in Rust: cargo makes a core module, and that becomes the component.
//!
//! The slow parts of a first build are in the cache: compiler and `std` if rustup does not have them, and the macros
//! and build scripts of dependencies, which cargo tells apart by version. The modules stay in the plugin's own
//! `target`, since their names have no hash.

mod cargo;
mod debian;
mod toolchain;

pub(crate) use toolchain::Toolchain;
pub use toolchain::ToolchainChoice;

use self::cargo::TARGET;
use crate::cache::{Cache, create_dir, read};
use crate::component::Contract;
use crate::error::{AtPath, BuildError};
use crate::process::capture_stdout;
use crate::project::PluginProject;
use serde::Deserialize;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, BuildError>;

/// Bytes of heap at the start of a module's memory. The growth of a memory is undone when its instance ends, which
/// costs two changes of the process's address space a call, and those wait for each other on all threads: two threads
/// start 72,000 to 91,000 instances a second that do not grow, and 19,000 to 26,000 that do (`--bench spine`).
const HEAP_BYTES: u32 = 4 * (64 << 10);

/// A core module that cargo made.
#[derive(Debug)]
pub struct Module {
    /// The folder of its crate.
    pub dir: PathBuf,
    /// The path of the module.
    pub path: PathBuf,
}

/// The component of one project.
pub(crate) fn component(
    cache: &Cache,
    toolchain: &Toolchain,
    contract: &Contract,
    project: &PluginProject,
) -> Result<Vec<u8>> {
    let dir = project.dir();
    // Separate from the author's own cargo builds.
    let target_dir = dir.join("target/longhaul");
    share_macros(cache, &target_dir)?;
    let modules = modules(toolchain, dir, &target_dir, dir, &[])?;
    let module = modules.iter().find(|module| module.dir == dir).ok_or_else(|| {
        BuildError::project(format!(
            "plugin `{}` makes no module; add to its Cargo.toml: [lib] crate-type = [\"cdylib\"]",
            project.name()
        ))
    })?;
    contract.encode(project.name(), project.world(), &read(&module.path)?)
}

/// Builds the macros and build scripts of dependencies in the cache, once for all projects: three quarters of a first
/// build.
///
/// Cargo keeps the programs for this machine in `release`, apart from the files for the target, and every file of it
/// has a hash in its name.
fn share_macros(cache: &Cache, target_dir: &Path) -> Result<()> {
    let (link, shared) = (target_dir.join("release"), cache.path("cargo-macros"));
    create_dir(&shared)?;
    create_dir(target_dir)?;
    match fs::read_link(&link) {
        Ok(place) if place == shared => return Ok(()),
        // A link to an earlier place of the cache.
        Ok(_) => fs::remove_file(&link).at("remove", &link)?,
        Err(_) => {}
    }
    symlink(&shared, &link).at("link to the cache", &link)
}

/// Builds in `folder` with cargo and further arguments, and returns the modules of crates below it.
///
/// The modules do not contain the path `top`, nor that of cargo's own folder, so that two machines make the same.
pub(crate) fn modules(
    toolchain: &Toolchain,
    folder: &Path,
    target_dir: &Path,
    top: &Path,
    arguments: &[&str],
) -> Result<Vec<Module>> {
    let mut cargo = toolchain.cargo();
    cargo
        .args(["build", "--quiet", "--release", "--target", TARGET])
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .arg("--target-dir")
        .arg(target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", flags(top)?)
        .current_dir(folder);
    let messages = capture_stdout(&format!("build `{}`", folder.display()), &mut cargo)?;
    let mut modules = Vec::new();
    for line in messages.lines() {
        modules.extend(module_of_message(folder, line)?);
    }
    Ok(modules)
}

/// One line of `cargo build --message-format=json`, with the fields that we read.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: ArtifactTarget,
    filenames: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct ArtifactTarget {
    crate_types: Vec<String>,
}

/// The module that a message of cargo's announces, if it is of a crate in `folder`.
fn module_of_message(folder: &Path, line: &str) -> Result<Option<Module>> {
    let unreadable = |error| BuildError::toolchain(format!("cargo's message `{line}` cannot be read: {error}"));
    let message: serde_json::Value = serde_json::from_str(line).map_err(unreadable)?;
    if message["reason"] != "compiler-artifact" {
        return Ok(None);
    }
    let artifact: Artifact = serde_json::from_value(message).map_err(unreadable)?;
    let is_plugin =
        artifact.target.crate_types.iter().any(|kind| kind == "cdylib") && artifact.manifest_path.starts_with(folder);
    let module = artifact.filenames.into_iter().find(|name| name.extension() == Some("wasm".as_ref()));
    let (true, Some(path), Some(dir)) = (is_plugin, module, artifact.manifest_path.parent()) else {
        return Ok(None);
    };
    Ok(Some(Module { dir: dir.to_owned(), path }))
}

/// Flags that keep this machine's folders out of the modules, and set their initial heap.
fn flags(top: &Path) -> Result<String> {
    let cargo_home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
        .ok_or_else(|| BuildError::toolchain("neither CARGO_HOME nor HOME is set, and cargo needs one"))?;
    Ok([
        format!("--remap-path-prefix={}=/cargo", cargo_home.display()),
        format!("--remap-path-prefix={}=.", top.display()),
        format!("-Clink-arg=--initial-heap={HEAP_BYTES}"),
    ]
    .join("\x1f"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_read_from_the_messages_of_cargo_and_others_crates_are_not() {
        let message = |dir: &str, kind: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"{dir}/Cargo.toml","target":{{"crate_types":["{kind}"]}},"filenames":["/t/a.wasm"]}}"#
            )
        };
        let found = |line: &str| module_of_message(Path::new("/p"), line).unwrap().map(|module| module.dir);
        assert_eq!(found(&message("/p/a", "cdylib")), Some("/p/a".into()));
        assert_eq!(found(&message("/p/a", "lib")), None);
        assert_eq!(found(&message("/other", "cdylib")), None);
        assert_eq!(found(r#"{"reason":"build-finished","success":true}"#), None);
        assert!(module_of_message(Path::new("/p"), "hello").is_err());
    }
}
