//! The shared parts of builds: the cache, the contract, and the compiler for Rust, chosen at the first need.

use crate::cache::{Cache, read};
use crate::carry::with_manifest;
use crate::component::{Contract, GuestRuntime};
use crate::error::BuildError;
use crate::project::PluginProject;
use crate::recipe::Recipe;
use crate::rust::{Module, Toolchain, ToolchainChoice};
use crate::say::ProgressLine;
use crate::{c, javascript, python, rust, sources};
use longhaul_core::Digest;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, BuildError>;

/// The version of this crate's way to make components; part of each digest.
const THIS_VERSION: &[u8] = b"2";

/// Builds projects against one contract.
pub struct PluginBuilder {
    cache: Cache,
    /// The tree of sources with the contract and the SDKs.
    top: PathBuf,
    contract: Contract,
    wanted: ToolchainChoice,
    toolchain: OnceCell<Toolchain>,
}

impl PluginBuilder {
    /// A builder with the contract that this program embeds.
    ///
    /// # Errors
    /// When there is no directory for the cache.
    pub fn embedded(say: ProgressLine) -> Result<Self> {
        let cache = Cache::open(say)?;
        let top = sources::unpack(&cache)?;
        Self::of(cache, top, ToolchainChoice::Auto)
    }

    /// A builder with the contract of the tree of sources at `top`.
    ///
    /// # Errors
    /// When there is no directory for the cache, or no contract.
    pub fn of_tree(top: &Path, wanted: ToolchainChoice, say: ProgressLine) -> Result<Self> {
        Self::of(Cache::open(say)?, top.to_owned(), wanted)
    }

    fn of(cache: Cache, top: PathBuf, wanted: ToolchainChoice) -> Result<Self> {
        let contract = Contract::load(&top)?;
        Ok(Self { cache, top, contract, wanted, toolchain: OnceCell::new() })
    }

    /// The cache.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The tree of sources with the contract, the SDKs and the interpreters.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// The component of a project, checked against its world, with its manifest in it.
    ///
    /// # Errors
    /// When a tool is missing, when the language's compiler refuses the sources (its own output is in the error, or for
    /// Rust on the terminal), or when the component does not match the world.
    pub fn build(&self, project: &PluginProject) -> Result<Vec<u8>> {
        // The languages' tools report an unknown world at more length, or not at all.
        self.contract.world(project.name(), project.world())?;
        let component = match self.inputs(project)? {
            Some(inputs) => self.cache.component(project.name(), inputs, |output| self.make(project, output))?,
            None => rust::component(&self.cache, self.toolchain()?, &self.contract, project)?,
        };
        with_manifest(component, project.manifest())
    }

    /// A digest that changes when the component would; none for Rust, whose inputs only cargo knows.
    ///
    /// # Errors
    /// When the sources cannot be read.
    pub fn inputs(&self, project: &PluginProject) -> Result<Option<Digest>> {
        let inputs = match &project.recipe {
            Recipe::Rust => return Ok(None),
            Recipe::Python(recipe) => python::inputs(&self.contract, project, recipe)?,
            Recipe::Javascript(recipe) => javascript::inputs(&self.top, &self.contract, project, recipe)?,
            Recipe::C(recipe) => c::inputs(&self.contract, project, recipe)?,
        };
        Ok(Some(Digest::of_parts(&[THIS_VERSION, inputs.as_bytes()])))
    }

    fn make(&self, project: &PluginProject, output: &Path) -> Result<()> {
        let (cache, contract) = (&self.cache, &self.contract);
        let runtime = match &project.recipe {
            Recipe::Rust => GuestRuntime::None,
            Recipe::Python(recipe) => {
                python::make(cache, contract, project, recipe, output)?;
                GuestRuntime::Wasi
            }
            Recipe::Javascript(recipe) => {
                javascript::make(cache, &self.top, contract, project, recipe, output)?;
                GuestRuntime::Wasi
            }
            Recipe::C(recipe) => {
                c::make(cache, contract, project, recipe, output)?;
                GuestRuntime::None
            }
        };
        contract.check(project.name(), project.world(), &read(output)?, runtime)
    }

    /// Builds the whole workspace in `folder` with cargo, into `target_dir`, and returns its modules.
    ///
    /// # Errors
    /// When cargo fails; the compiler's output is on the terminal.
    pub fn modules(&self, folder: &Path, target_dir: &Path, top: &Path) -> Result<Vec<Module>> {
        rust::modules(self.toolchain()?, folder, target_dir, top, &["--workspace"])
    }

    /// The component of a module that cargo made for this project, with its manifest in it.
    ///
    /// # Errors
    /// When it does not match its world.
    pub fn encode(&self, project: &PluginProject, module: &Module) -> Result<Vec<u8>> {
        let component = self.contract.encode(project.name(), project.world(), &read(&module.path)?)?;
        with_manifest(component, project.manifest())
    }

    fn toolchain(&self) -> Result<&Toolchain> {
        if let Some(chosen) = self.toolchain.get() {
            return Ok(chosen);
        }
        let chosen = Toolchain::choose(&self.cache, self.wanted)?;
        self.cache.say(&chosen.describe());
        Ok(self.toolchain.get_or_init(|| chosen))
    }
}
