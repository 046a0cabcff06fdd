//! `cargo xtask plugins`: every guest of this repository, built and checked.
//!
//! A guest is a folder with a `plugin.toml` in `plugins` (shipped) or, only with `--tests`, in
//! `tests/guests` (for tests) and in the `examples` of each SDK; it is called by the name in there. How
//! one is built is the affair of `longhaul-build`. Rust guests that are members of a cargo workspace are
//! built by one run of cargo. What comes out is a checked component `NAME.wasm` that
//! carries its `plugin.toml`, or nothing.
//!
//! Rust is compiled into `target/guests` of the clone and not into the cache: two clones in one folder
//! would overwrite each other's modules, which carry no hash in their names.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use longhaul_build::cache::{create_dir, entries, lock, write_whole};
use longhaul_build::rust::{Module, ToolchainChoice};
use longhaul_build::{MANIFEST, PluginBuilder, PluginProject};

/// The names of what the last run made, in each folder of components.
const MADE: &str = ".made";

#[derive(clap::Args)]
pub(crate) struct PluginsArgs {
    /// Build the guests of the tests into `target/plugins/tests`, and the examples of the SDKs into
    /// `target/plugins/sdk/LANGUAGE`
    #[arg(long)]
    tests: bool,

    /// The compiler of Rust guests: `auto`, `rustup` or `debian`
    #[arg(long, default_value = "auto")]
    toolchain: ToolchainChoice,
}

impl PluginsArgs {
    /// The plugins that are shipped.
    pub(crate) fn shipped() -> Self {
        Self { tests: false, toolchain: ToolchainChoice::default() }
    }

    /// All of them, the guests of the tests and the examples.
    pub(crate) fn all() -> Self {
        Self { tests: true, ..Self::shipped() }
    }
}

/// Builds the guests of the repository at `root`.
///
/// An error of cargo's ends the run. Everything else is tried to the last: the output names each guest that is not what
/// its world says.
pub(crate) fn plugins(root: &Path, args: &PluginsArgs) -> Result<()> {
    let target = root.join("target");
    let _lock = lock(&target.join("guests/.lock"), say)?;
    let build = Build { root, shop: PluginBuilder::of_tree(root, args.toolchain, say)? };
    let mut tally = Tally::default();
    build.folder(&root.join("plugins"), &target.join("plugins"), &mut tally)?;
    if args.tests {
        build.folder(&root.join("tests/guests"), &target.join("plugins/tests"), &mut tally)?;
        for sdk in entries(&root.join("sdk"))? {
            let language = sdk.file_name().unwrap_or_default();
            build.folder(&sdk.join("examples"), &target.join("plugins/sdk").join(language), &mut tally)?;
        }
    }
    tally.report()
}

/// The names of the components that the last run made in a folder.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>> {
    let noted = folder.join(MADE);
    let text = fs::read_to_string(&noted).with_context(|| format!("read `{}`", noted.display()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Tells what a build does.
pub(crate) fn say(line: &str) {
    eprintln!("guests: {line}");
}

/// State that all guests of one run share.
struct Build<'a> {
    root: &'a Path,
    shop: PluginBuilder,
}

/// A guest that is ready to become a component.
struct Guest {
    project: PluginProject,
    /// Cargo has made it already.
    module: Option<Module>,
}

#[derive(Default)]
struct Tally {
    made: usize,
    fresh: usize,
    failed: Vec<anyhow::Error>,
}

impl Build<'_> {
    /// Builds every guest of `folder` into `out`, and removes what earlier runs made and this did not.
    fn folder(&self, folder: &Path, out: &Path, tally: &mut Tally) -> Result<()> {
        if !folder.is_dir() {
            return Ok(());
        }
        let guests = self.guests(folder)?;
        create_dir(out)?;
        for guest in guests.values() {
            match self.guest(guest, out) {
                Ok(true) => tally.made += 1,
                Ok(false) => tally.fresh += 1,
                Err(error) => {
                    // Its last good component must not be taken for this one.
                    let _ = fs::remove_file(out.join(format!("{}.wasm", guest.project.name())));
                    tally.failed.push(error);
                }
            }
        }
        remove_stale(out, &guests)
    }

    /// Every guest of `folder` by its name, those in Rust with the module that cargo makes here.
    fn guests(&self, folder: &Path) -> Result<BTreeMap<String, Guest>> {
        let mut modules = self.modules(folder)?;
        let mut guests = BTreeMap::new();
        for dir in entries(folder)?.into_iter().filter(|dir| dir.join(MANIFEST).is_file()) {
            let is_alone = dir.join("Cargo.toml").is_file() && modules.iter().all(|module| module.dir != dir);
            if is_alone {
                modules.extend(self.modules(&dir)?);
            }
            let module = modules.iter().position(|module| module.dir == dir).map(|at| modules.swap_remove(at));
            let guest = Guest { project: PluginProject::open(&dir)?, module };
            if let Some(other) = guests.insert(guest.project.name().to_owned(), guest) {
                bail!("two guests are called `{}` in `{}`", other.project.name(), folder.display());
            }
        }
        if let Some(module) = modules.first() {
            bail!("`{}` is a guest's crate and has no {MANIFEST}", module.dir.display());
        }
        Ok(guests)
    }

    fn modules(&self, folder: &Path) -> Result<Vec<Module>> {
        if !folder.join("Cargo.toml").is_file() {
            return Ok(Vec::new());
        }
        Ok(self.shop.modules(folder, &self.root.join("target/guests"), self.root)?)
    }

    /// Makes one component. True when it is another one than is there.
    fn guest(&self, guest: &Guest, out: &Path) -> Result<bool> {
        let name = guest.project.name();
        let bytes = match &guest.module {
            Some(module) => self.shop.encode(&guest.project, module)?,
            None => self.shop.build(&guest.project)?,
        };
        let component = out.join(format!("{name}.wasm"));
        let made = replace(&component, &bytes)?;
        if made {
            let shown = component.strip_prefix(self.root).unwrap_or(&component);
            say(&format!("{} ({} KiB)", shown.display(), bytes.len() / 1024));
        }
        Ok(made)
    }
}

impl Tally {
    fn report(self) -> Result<()> {
        for error in &self.failed {
            eprintln!("error: {error:#}");
        }
        if !self.failed.is_empty() {
            let all = self.made + self.fresh + self.failed.len();
            bail!("{} of {all} guests failed, see above", self.failed.len());
        }
        say(&format!("{} built, {} unchanged", self.made, self.fresh));
        Ok(())
    }
}

/// Writes a file unless it holds that already. True when it was written.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    write_whole(path, bytes)?;
    Ok(true)
}

/// Removes the components of guests that are gone, so that no host loads them.
///
/// Only what an earlier run has noted is ours to remove.
fn remove_stale(out: &Path, guests: &BTreeMap<String, Guest>) -> Result<()> {
    let noted = out.join(MADE);
    let before = fs::read_to_string(&noted).unwrap_or_default();
    for name in before.lines().filter(|name| !guests.contains_key(*name)) {
        let file = out.join(format!("{name}.wasm"));
        if file.is_file() {
            fs::remove_file(&file).with_context(|| format!("remove `{}`", file.display()))?;
        }
    }
    let names: String = guests.keys().map(|name| format!("{name}\n")).collect();
    replace(&noted, names.as_bytes())?;
    Ok(())
}
