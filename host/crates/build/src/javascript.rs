//! Plugins in JavaScript and TypeScript: esbuild bundles them, and the pinned `componentize-qjs`, which puts QuickJS
//! into the image, makes them into components.
//!
//! The driver and the lock file of its tools are part of the SDK, in `sdk/js/build`. Types of TypeScript are removed
//! and not checked. A build takes a few seconds and is not reproducible byte for byte.

mod node;

use crate::cache::{Cache, create_dir, digest, digest_tree, entries, read};
use crate::component::Contract;
use crate::error::{AtPath, BuildError};
use crate::process::capture;
use crate::project::PluginProject;
use crate::recipe::JavascriptRecipe as Recipe;
use longhaul_core::Digest;
use node::Node;
use std::fs;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, BuildError>;

/// The driver and the list of its tools, from the top of a tree of sources.
const TOOLS: &str = "sdk/js/build";

/// The lock files of the author's own packages. The packages are not hashed file by file, since they can be thousands;
/// these files hold their versions.
const LOCKS: [&str; 3] = ["package-lock.json", "pnpm-lock.yaml", "yarn.lock"];

/// A command of Node.js; see [`crate::node`].
pub(crate) fn node(cache: &Cache) -> Result<std::process::Command> {
    Ok(Node::find(cache)?.command())
}

/// A command of npm; see [`crate::npm`].
pub(crate) fn npm(cache: &Cache) -> Result<std::process::Command> {
    Ok(Node::find(cache)?.npm())
}

/// A digest that changes when the component would: sources, contract and tools.
pub(crate) fn inputs(top: &Path, contract: &Contract, project: &PluginProject, recipe: &Recipe) -> Result<Digest> {
    let mut parts = vec![
        digest_tree(&top.join(TOOLS), &[])?.to_string().into_bytes(),
        contract.digest().to_string().into_bytes(),
        project.world().as_bytes().to_vec(),
        recipe.entry.as_os_str().as_encoded_bytes().to_vec(),
        project.sources_digest()?.to_string().into_bytes(),
        project.imports_digest(&recipe.paths)?.to_string().into_bytes(),
    ];
    // Packages may be installed above the plugin, as in a workspace of npm.
    for folder in project.dir().ancestors().skip(1).filter(|folder| folder.join("node_modules").is_dir()) {
        for lock in LOCKS.iter().map(|lock| folder.join(lock)).filter(|lock| lock.is_file()) {
            parts.push(read(&lock)?);
        }
    }
    Ok(digest(parts.iter().map(Vec::as_slice)))
}

/// Writes the component to `output`.
pub(crate) fn make(
    cache: &Cache,
    top: &Path,
    contract: &Contract,
    project: &PluginProject,
    recipe: &Recipe,
    output: &Path,
) -> Result<()> {
    let entry = project.dir().join(&recipe.entry);
    if !entry.is_file() {
        return Err(BuildError::project(format!(
            "plugin `{}` has no `{}`; write it, or mend `entry` under [build] in its plugin.toml",
            project.name(),
            recipe.entry.display()
        )));
    }
    let folders = project.folders(&recipe.paths)?;
    let node = Node::find(cache)?;
    let tools = tools(cache, &node, &top.join(TOOLS))?;
    cache.say(&format!("building `{}` with componentize-qjs (about 4 s)", project.name()));
    let mut build = node.command();
    build
        .current_dir(project.dir())
        .arg(tools.join("build.mjs"))
        .arg("--wit")
        .arg(contract.dir())
        .args(["--world", project.world(), "--entry"])
        .arg(&entry)
        .arg("--output")
        .arg(output);
    for folder in &folders {
        build.arg("--path").arg(folder);
    }
    capture(&format!("build the JavaScript plugin `{}`", project.name()), &mut build)?;
    Ok(())
}

/// The folder with the driver and the packages that its lock file pins.
fn tools(cache: &Cache, node: &Node, driver: &Path) -> Result<PathBuf> {
    let name = format!("javascript-tools-{}", digest_tree(driver, &[])?.short());
    cache.folder(&name, |folder| {
        cache.say("fetching componentize-qjs and esbuild with npm, once (50 MB)");
        create_dir(folder)?;
        for file in entries(driver)?.into_iter().filter(|file| file.is_file()) {
            let place = folder.join(file.file_name().unwrap_or_default());
            fs::copy(&file, &place).at("write", &place)?;
        }
        let mut npm = node.npm();
        // `npm ci` would refuse packages for other platforms that the tool names and that do not exist. `install`
        // checks its downloads against the sums of the lock file as well.
        npm.args(["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        npm.current_dir(folder);
        if std::env::var_os("HOME").is_none() {
            npm.env("HOME", folder);
        }
        capture("fetch componentize-qjs and esbuild with npm", &mut npm)?;
        Ok(())
    })
}
