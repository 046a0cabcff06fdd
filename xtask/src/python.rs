//! Guests written in Python, made into components by the pinned `componentize-py`.
//!
//! They are built against the host's deterministic WASI, never with `--stub-wasi`: a stubbed guest
//! dies at its first print. A build takes ten seconds and is not reproducible byte for byte, so
//! what was built once from the same sources, contract and tool is kept in the cache and used again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::cache::{Cache, create_dir, digest, digest_tree, entries, read};
use crate::component::{Contract, Runtime};
use crate::process::{capture, run};

/// The version whose output the host's WASI was tried with.
const TOOL_VERSION: &str = "0.25.1";

/// How many built components stay in the cache, at 18 MB each: enough for a few clones.
const KEPT_MAX: usize = 16;

/// The script that the package would install, minus its first line, which names an interpreter.
const TOOL_SCRIPT: &str = "import sys; sys.argv[0] = 'componentize-py'; \
                           from componentize_py import script; sys.exit(script())";

/// The `[build]` table of a `plugin.toml`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Build {
    pub(crate) language: String,
    pub(crate) world: String,
    /// The module that has the classes the world asks for.
    pub(crate) module: String,
    /// Further folders to import from, relative to the plugin's; the SDK, for one.
    #[serde(default)]
    pub(crate) paths: Vec<PathBuf>,
}

/// The component of the plugin in `dir`, built or from the cache, and checked.
pub(crate) fn component(
    cache: &Cache,
    contract: &Contract,
    plugin: &str,
    dir: &Path,
    build: &Build,
) -> Result<Vec<u8>> {
    let folders = source_folders(plugin, dir, build)?;
    let built = cache.path("python").join(format!("{plugin}-{}.wasm", build_digest(contract, build, &folders)?));
    if !built.is_file() {
        componentize(cache, contract, plugin, build, &folders, &built)?;
        prune(&cache.path("python"))?;
    }
    let component = read(&built)?;
    contract.check(plugin, &build.world, &component, Runtime::Wasi)?;
    Ok(component)
}

/// Changes when the component of `dir` would, sources and contract and tool.
pub(crate) fn inputs(contract: &Contract, plugin: &str, dir: &Path, build: &Build) -> Result<String> {
    build_digest(contract, build, &source_folders(plugin, dir, build)?)
}

fn build_digest(contract: &Contract, build: &Build, folders: &[PathBuf]) -> Result<String> {
    let mut parts =
        vec![TOOL_VERSION.to_owned(), contract.digest().to_owned(), build.world.clone(), build.module.clone()];
    for folder in folders {
        parts.push(digest_tree(folder)?);
    }
    Ok(digest(parts.iter().map(String::as_bytes)))
}

fn source_folders(plugin: &str, dir: &Path, build: &Build) -> Result<Vec<PathBuf>> {
    let mut folders = vec![dir.to_owned()];
    for path in &build.paths {
        let folder = dir.join(path);
        if !folder.is_dir() {
            bail!(
                "plugin `{plugin}` imports from `{}`, which is no folder; \
                 mend `paths` under [build] in its plugin.toml",
                folder.display()
            );
        }
        folders.push(folder);
    }
    Ok(folders)
}

fn componentize(
    cache: &Cache,
    contract: &Contract,
    plugin: &str,
    build: &Build,
    folders: &[PathBuf],
    built: &Path,
) -> Result<()> {
    eprintln!("guests: building `{plugin}` with componentize-py {TOOL_VERSION}");
    let tool = tool(cache)?;
    if let Some(parent) = built.parent() {
        create_dir(parent)?;
    }
    let partial = built.with_extension(format!("{}.tmp", std::process::id()));
    let mut python = python();
    python.env("PYTHONPATH", tool).args(["-c", TOOL_SCRIPT, "--wit-path"]).arg(contract.dir()).args([
        "--world",
        &build.world,
        "componentize",
    ]);
    for folder in folders {
        python.arg("--python-path").arg(folder);
    }
    python.arg(&build.module).arg("--output").arg(&partial);
    capture(&format!("build the Python plugin `{plugin}`"), &mut python)?;
    fs::rename(&partial, built).with_context(|| format!("write `{}`", built.display()))
}

/// The folder that holds the tool's package and nothing else.
fn tool(cache: &Cache) -> Result<PathBuf> {
    cache.folder(&format!("componentize-py-{TOOL_VERSION}"), |dir| {
        let mut pip = python();
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
            .arg(dir)
            .arg(format!("componentize-py=={TOOL_VERSION}"))
            .env("PIP_ROOT_USER_ACTION", "ignore");
        run("fetch componentize-py (needs python3 with pip; on Debian: apt install python3-pip)", &mut pip)
    })
}

/// Python on its own: no virtual environment, whose packages would land in the image, and no
/// compiled files left among the sources.
fn python() -> Command {
    let mut python = Command::new("python3");
    python
        .env_remove("VIRTUAL_ENV")
        .env_remove("PYTHONHOME")
        .env_remove("PYTHONPATH")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

/// Removes all but the youngest [`KEPT_MAX`] components.
fn prune(dir: &Path) -> Result<()> {
    let mut built: Vec<(SystemTime, PathBuf)> = entries(dir)?
        .into_iter()
        .filter(|path| path.extension() == Some("wasm".as_ref()))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    built.sort();
    for (_, path) in built.iter().rev().skip(KEPT_MAX) {
        // Another clone may have removed it first, which is as good.
        let _ = fs::remove_file(path);
    }
    Ok(())
}
