//! The step from core module to component, and the check of the component against its world.
//!
//! A guest that imports more than its world offers, or exports another role, is refused here, when its author can still
//! see the reason, and not by the host at load time. This module never adds to a world and never edits a component to
//! make it fit.

use crate::cache::digest_tree;
use crate::error::BuildError;
use longhaul_core::Digest;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use wit_component::{ComponentEncoder, DecodedWasm};
use wit_parser::{PackageId, Resolve, WorldId, WorldItem, WorldKey};

type Result<T> = std::result::Result<T, BuildError>;

/// The contract that guests are built against, from the top of a tree of sources.
pub const CONTRACT_DIR: &str = "wit/v0.1";

/// The WIT of [`CONTRACT_DIR`], parsed.
pub struct Contract {
    dir: PathBuf,
    digest: Digest,
    resolve: Resolve,
    package: PackageId,
}

/// The imports that a guest may have beside those of its world.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum GuestRuntime {
    /// Nothing: the guest is only its author's code.
    None,
    /// The interfaces of `wasi:`, since an interpreter in the image asks for clocks, files and sockets in general. The
    /// host serves those deterministically, and empty without a grant. The tool may also export a helper of its own
    /// beside the role; the host does not call it.
    Wasi,
}

impl Contract {
    /// The contract in the tree of sources at `top`.
    ///
    /// # Errors
    /// When it cannot be read or does not parse.
    pub fn load(top: &Path) -> Result<Self> {
        let dir = top.join(CONTRACT_DIR);
        let mut resolve = Resolve::new();
        let (package, _) = resolve.push_dir(&dir).map_err(|error| {
            BuildError::component(format!("the contract `{}` cannot be read: {error:#}", dir.display()))
        })?;
        let digest = digest_tree(&dir, &[])?;
        Ok(Self { dir, digest, resolve, package })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The packages of the contract, for the generation of bindings.
    pub(crate) fn resolve(&self) -> &Resolve {
        &self.resolve
    }

    /// A digest that changes with any file of the contract.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Makes the component of a core module, and checks it.
    ///
    /// # Errors
    /// When the module cannot become a component, or does not match its world.
    pub fn encode(&self, plugin: &str, world: &str, core: &[u8]) -> Result<Vec<u8>> {
        let component = ComponentEncoder::default()
            .module(core)
            .and_then(|encoder| encoder.validate(true).encode())
            .map_err(|error| {
                BuildError::component(format!(
                    "no component comes of plugin `{plugin}`, whose world is `{world}`: {error:#}"
                ))
            })?;
        self.check(plugin, world, &component, GuestRuntime::None)?;
        Ok(component)
    }

    /// Refuses `component` unless it has the exports of `world` and no import from outside.
    ///
    /// # Errors
    /// The missing and the excess imports and exports.
    pub fn check(&self, plugin: &str, world: &str, component: &[u8], runtime: GuestRuntime) -> Result<()> {
        let target = self.world(plugin, world)?;
        let decoded = wit_component::decode(component).map_err(|error| {
            BuildError::component(format!("the types of plugin `{plugin}` cannot be read: {error:#}"))
        })?;
        let DecodedWasm::Component(found, found_world) = decoded else {
            return Err(BuildError::component(format!("plugin `{plugin}` is a WIT package, not a component")));
        };
        self.check_imports(plugin, target, &imports(&found, found_world), runtime)?;
        self.check_exports(plugin, target, &exports(&found, found_world), runtime)?;
        match runtime {
            // Equal names are not equal types: the guest may have been built from an old copy of the contract.
            GuestRuntime::None => wit_component::targets(&self.resolve, target, component).map_err(|error| {
                BuildError::component(format!(
                    "plugin `{plugin}` has the names of world `{world}` but other types; \
                     build it from {CONTRACT_DIR}: {error:#}"
                ))
            }),
            // The WASI imports from outside the world would fail that test, and the tool that makes these components
            // has just read the types from the same folder.
            GuestRuntime::Wasi => Ok(()),
        }
    }

    fn check_imports(
        &self,
        plugin: &str,
        world: WorldId,
        found: &BTreeSet<String>,
        runtime: GuestRuntime,
    ) -> Result<()> {
        let offered = imports(&self.resolve, world);
        let outside =
            |name: &&String| !(offered.contains(*name) || runtime == GuestRuntime::Wasi && name.starts_with("wasi:"));
        let outside: BTreeSet<String> = found.iter().filter(outside).cloned().collect();
        if !outside.is_empty() {
            return Err(BuildError::component(format!(
                "plugin `{plugin}` imports {}, which its world `{}` does not offer; it may import: {}",
                list(&outside),
                self.resolve.worlds[world].name,
                list(&offered),
            )));
        }
        Ok(())
    }

    fn check_exports(
        &self,
        plugin: &str,
        world: WorldId,
        found: &BTreeSet<String>,
        runtime: GuestRuntime,
    ) -> Result<()> {
        let asked = exports(&self.resolve, world);
        // A helper has a bare name; another role would be an interface, with its package's name.
        let is_helper = |name: &String| runtime == GuestRuntime::Wasi && !name.contains(':');
        let found: BTreeSet<String> = found.iter().filter(|name| !is_helper(name)).cloned().collect();
        if found != asked {
            return Err(BuildError::component(format!(
                "plugin `{plugin}` exports {}, but its world `{}` asks for {}",
                list(&found),
                self.resolve.worlds[world].name,
                list(&asked),
            )));
        }
        Ok(())
    }

    pub(crate) fn world(&self, plugin: &str, name: &str) -> Result<WorldId> {
        let worlds = &self.resolve.packages[self.package].worlds;
        worlds.get(name).copied().ok_or_else(|| {
            let known = worlds.keys().cloned().collect();
            BuildError::project(format!(
                "plugin `{plugin}` asks for the world `{name}`, which is not in {CONTRACT_DIR}; it has: {}",
                list(&known)
            ))
        })
    }
}

fn imports(resolve: &Resolve, world: WorldId) -> BTreeSet<String> {
    names(resolve, resolve.worlds[world].imports.iter())
}

fn exports(resolve: &Resolve, world: WorldId) -> BTreeSet<String> {
    names(resolve, resolve.worlds[world].exports.iter())
}

/// Names with versions reduced to their compatible part: `wasi:io/poll@0.2.9` and `@0.2.6` are one.
fn names<'a>(resolve: &Resolve, items: impl Iterator<Item = (&'a WorldKey, &'a WorldItem)>) -> BTreeSet<String> {
    items.map(|(key, _)| resolve.name_canonicalized_world_key(key)).collect()
}

fn list(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
