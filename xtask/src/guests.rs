//! `cargo xtask plugins`: every guest of this repository, built and checked.
//!
//! A guest is a folder of `plugins` (shipped) or `tests/guests` (for tests, only with `--tests`) and
//! is called by its folder's name. Rust guests are members of that folder's cargo workspace; others
//! say in the `[build]` table of their `plugin.toml` how they are made. What comes out is a checked
//! component `NAME.wasm`, with `plugin.toml` beside it as `NAME.toml`, or nothing.
//!
//! Guests are compiled into `target/guests` of the clone and not into the cache: two clones in one
//! folder would overwrite each other's modules, which carry no hash in their names. What is slow
//! about a fresh clone, the compiler and `std`, is in the cache.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use crate::cache::{Cache, create_dir, digest, entries, lock, read, write_whole};
use crate::component::Contract;
use crate::process::capture_stdout;
use crate::python;
use crate::toolchain::{TARGET, Toolchain, Wanted};

#[derive(clap::Args)]
pub(crate) struct PluginsArgs {
    /// Build the guests of the tests too, into `target/plugins/tests`
    #[arg(long)]
    tests: bool,

    /// Which compiler to build Rust guests with
    #[arg(long, value_enum, default_value_t)]
    toolchain: Wanted,
}

impl PluginsArgs {
    /// The plugins that are shipped.
    pub(crate) fn shipped() -> Self {
        Self { tests: false, toolchain: Wanted::default() }
    }

    /// These and the guests of the tests.
    pub(crate) fn all() -> Self {
        Self { tests: true, ..Self::shipped() }
    }
}

/// Builds the guests of the repository at `root`.
///
/// An error of a compiler ends the run. What compiles is tried to the last: the output names each
/// guest that is not what its world says.
pub(crate) fn plugins(root: &Path, args: &PluginsArgs) -> Result<()> {
    let target = root.join("target");
    let _lock = lock(&target.join("guests/.lock"))?;
    let cache = Cache::open()?;
    let build =
        Build { root, contract: Contract::load(root)?, toolchain: Toolchain::choose(&cache, args.toolchain)?, cache };
    eprintln!("guests: {}", build.toolchain.describe());

    let mut tally = Tally::default();
    build.folder(&root.join("plugins"), &target.join("plugins"), &mut tally)?;
    if args.tests {
        build.folder(&root.join("tests/guests"), &target.join("plugins/tests"), &mut tally)?;
    }
    tally.report()
}

/// What all guests of one run share.
struct Build<'a> {
    root: &'a Path,
    cache: Cache,
    contract: Contract,
    toolchain: Toolchain,
}

/// A guest that is ready to become a component.
struct Guest {
    name: String,
    /// The folder with its manifest.
    dir: PathBuf,
    source: Source,
}

enum Source {
    /// Cargo has made this core module.
    Rust {
        module: PathBuf,
    },
    Python(python::Build),
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
        let mut guests = self.cargo_build(folder)?;
        for guest in described_guests(folder)? {
            if let Some(other) = guests.insert(guest.name.clone(), guest) {
                bail!("two guests are called `{}` in `{}`", other.name, folder.display());
            }
        }
        create_dir(out)?;
        for guest in guests.values() {
            match self.guest(guest, out) {
                Ok(true) => tally.made += 1,
                Ok(false) => tally.fresh += 1,
                Err(error) => {
                    // Its last good component must not be taken for this one.
                    let _ = fs::remove_file(out.join(format!("{}.wasm", guest.name)));
                    tally.failed.push(error);
                }
            }
        }
        remove_stale(out, &guests)
    }

    /// Makes one component, if anything it is made of has changed. True when it was made.
    fn guest(&self, guest: &Guest, out: &Path) -> Result<bool> {
        let component = out.join(format!("{}.wasm", guest.name));
        copy_manifest(guest, out)?;
        let made_of = self.made_of(guest)?;
        let stamp = stamp(out, &guest.name);
        let is_fresh = component.is_file() && fs::read(&stamp).is_ok_and(|stamped| stamped == made_of.as_bytes());
        if is_fresh {
            return Ok(false);
        }
        let bytes = self.component(guest)?;
        write_whole(&component, &bytes)?;
        write_whole(&stamp, made_of.as_bytes())?;
        eprintln!("guests: {} ({} KiB)", shown(self.root, &component), bytes.len() / 1024);
        Ok(true)
    }

    fn component(&self, guest: &Guest) -> Result<Vec<u8>> {
        match &guest.source {
            Source::Rust { module } => {
                let world = world_of_crate(&guest.name, &guest.dir.join("Cargo.toml"))?;
                self.contract.encode(&guest.name, &world, &read(module)?)
            }
            Source::Python(build) => python::component(&self.cache, &self.contract, &guest.name, &guest.dir, build),
        }
    }

    /// A digest of all that decides what the component is, this program's version among it.
    fn made_of(&self, guest: &Guest) -> Result<String> {
        match &guest.source {
            Source::Rust { module } => {
                let world = world_of_crate(&guest.name, &guest.dir.join("Cargo.toml"))?;
                Ok(digest([
                    THIS_VERSION.as_bytes(),
                    self.contract.digest().as_bytes(),
                    world.as_bytes(),
                    &read(module)?,
                ]))
            }
            Source::Python(build) => {
                let inputs = python::inputs(&self.contract, &guest.name, &guest.dir, build)?;
                Ok(digest([THIS_VERSION.as_bytes(), inputs.as_bytes()]))
            }
        }
    }

    /// Has cargo build the workspace in `folder`, and gives its guests by name.
    fn cargo_build(&self, folder: &Path) -> Result<BTreeMap<String, Guest>> {
        if !folder.join("Cargo.toml").is_file() {
            return Ok(BTreeMap::new());
        }
        let mut cargo = self.toolchain.cargo();
        cargo
            .args(["build", "--quiet", "--release", "--workspace", "--target", TARGET])
            .arg("--message-format=json-render-diagnostics")
            .arg("--target-dir")
            .arg(self.root.join("target/guests"))
            .env("CARGO_ENCODED_RUSTFLAGS", remapped_paths(self.root)?)
            .current_dir(folder);
        let messages = capture_stdout(&format!("build `{}`", folder.display()), &mut cargo)?;

        let mut guests = BTreeMap::new();
        for line in messages.lines() {
            let Some(guest) = guest_of_message(folder, line)? else {
                continue;
            };
            if let Some(other) = guests.insert(guest.name.clone(), guest) {
                bail!("two guests are called `{}` in `{}`", other.name, folder.display());
            }
        }
        Ok(guests)
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
        eprintln!("guests: {} built, {} unchanged", self.made, self.fresh);
        Ok(())
    }
}

/// Part of each digest, since how components are made may change with this program.
const THIS_VERSION: &str = "1";

/// One line of `cargo build --message-format=json`, of the kind that we read.
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

/// The guest that a message of cargo's announces, if it is about a guest of `folder`.
fn guest_of_message(folder: &Path, line: &str) -> Result<Option<Guest>> {
    let message: serde_json::Value =
        serde_json::from_str(line).with_context(|| format!("read cargo's message `{line}`"))?;
    if message["reason"] != "compiler-artifact" {
        return Ok(None);
    }
    let artifact: Artifact =
        serde_json::from_value(message).with_context(|| format!("read cargo's message `{line}`"))?;
    let is_guest =
        artifact.target.crate_types.iter().any(|kind| kind == "cdylib") && artifact.manifest_path.starts_with(folder);
    let module = artifact.filenames.into_iter().find(|name| name.extension() == Some("wasm".as_ref()));
    let (true, Some(module), Some(dir)) = (is_guest, module, artifact.manifest_path.parent()) else {
        return Ok(None);
    };
    let name = folder_name(dir);
    Ok(Some(Guest { name, dir: dir.to_owned(), source: Source::Rust { module } }))
}

/// The guests in `folder` that no cargo builds.
fn described_guests(folder: &Path) -> Result<Vec<Guest>> {
    let mut guests = Vec::new();
    for dir in entries(folder)? {
        let manifest = dir.join("plugin.toml");
        if dir.join("Cargo.toml").is_file() || !manifest.is_file() {
            continue;
        }
        let name = folder_name(&dir);
        let build = build_table(&name, &manifest)?;
        guests.push(Guest { name, dir, source: Source::Python(build) });
    }
    Ok(guests)
}

fn build_table(plugin: &str, manifest: &Path) -> Result<python::Build> {
    #[derive(Deserialize)]
    struct Manifest {
        build: Option<python::Build>,
    }
    let manifest: Manifest = read_toml(manifest)?;
    let build = manifest.build.ok_or_else(|| {
        anyhow!(
            "plugin `{plugin}` has no Cargo.toml, so its plugin.toml must say how it is built: \
             [build] language = \"python\", world = \"tool-plugin\", module = \"app\""
        )
    })?;
    if build.language != "python" {
        bail!("plugin `{plugin}` is written in `{}`, which is not built here; known: `python`", build.language);
    }
    Ok(build)
}

/// The `world` under `[package.metadata.longhaul]`.
fn world_of_crate(plugin: &str, manifest: &Path) -> Result<String> {
    let table: toml::Table = read_toml(manifest)?;
    let world = ["package", "metadata", "longhaul", "world"]
        .iter()
        .try_fold(&toml::Value::Table(table), |value, key| value.get(key))
        .and_then(|world| world.as_str().map(str::to_owned));
    world.ok_or_else(|| {
        anyhow!(
            "plugin `{plugin}` does not say its world; to {} add: \
             [package.metadata.longhaul] world = \"tool-plugin\"",
            manifest.display()
        )
    })
}

fn read_toml<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("read `{}`", path.display()))?;
    toml::from_str(&text).with_context(|| format!("read `{}`", path.display()))
}

/// Flags that keep this machine's folders out of the modules, so that two machines make the same.
fn remapped_paths(root: &Path) -> Result<String> {
    let cargo_home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
        .ok_or_else(|| anyhow!("neither CARGO_HOME nor HOME is set"))?;
    Ok([
        format!("--remap-path-prefix={}=/cargo", cargo_home.display()),
        format!("--remap-path-prefix={}=.", root.display()),
    ]
    .join("\x1f"))
}

fn copy_manifest(guest: &Guest, out: &Path) -> Result<()> {
    let manifest = guest.dir.join("plugin.toml");
    let copy = out.join(format!("{}.toml", guest.name));
    if manifest.is_file() {
        let text = read(&manifest)?;
        if fs::read(&copy).is_ok_and(|old| old == text) {
            return Ok(());
        }
        return write_whole(&copy, &text);
    }
    if copy.is_file() {
        fs::remove_file(&copy).with_context(|| format!("remove `{}`", copy.display()))?;
    }
    Ok(())
}

/// Removes the components of guests that are gone, so that no host loads them.
///
/// Only what has a stamp is ours to remove.
fn remove_stale(out: &Path, guests: &BTreeMap<String, Guest>) -> Result<()> {
    let stamps = out.join(STAMPS);
    if !stamps.is_dir() {
        return Ok(());
    }
    for stamp in entries(&stamps)? {
        let name = folder_name(&stamp);
        if guests.contains_key(&name) {
            continue;
        }
        for file in [out.join(format!("{name}.wasm")), out.join(format!("{name}.toml")), stamp] {
            if file.is_file() {
                fs::remove_file(&file).with_context(|| format!("remove `{}`", file.display()))?;
            }
        }
    }
    Ok(())
}

/// The folder of the digests that components were made of.
const STAMPS: &str = ".made-of";

fn stamp(out: &Path, name: &str) -> PathBuf {
    let stamps = out.join(STAMPS);
    // Its absence shows when the stamp is written.
    let _ = fs::create_dir_all(&stamps);
    stamps.join(name)
}

fn folder_name(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
