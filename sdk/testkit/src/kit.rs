//! Loading components for tests, with the host's own engine.

use crate::error::KitError;
use crate::scene::Scene;
use longhaul_engine::{CompileLimits, Engine, EngineOptions, Jail, Plugin};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names the program that compiles.
const PROGRAM_VARIABLE: &str = "LONGHAUL_PROGRAM";

/// Compiles and loads components. Clones share the engine and its cache.
#[derive(Clone)]
pub struct Kit {
    engine: Engine,
}

impl Kit {
    /// A kit that compiles with the `longhaul` named by `LONGHAUL_PROGRAM`, or above this program, as
    /// cargo places it, or on `PATH`; and keeps compiled code where that does: in `LONGHAUL_CACHE`, or
    /// in `longhaul` of the user's cache directory.
    ///
    /// # Errors
    /// [`KitError::NoProgram`], [`KitError::NoCache`], [`KitError::Load`].
    pub fn new() -> Result<Self, KitError> {
        Self::with_program(program().ok_or(KitError::NoProgram)?, cache().ok_or(KitError::NoCache)?)
    }

    /// A kit that compiles with this `longhaul`, and keeps compiled code in a directory that no
    /// other user can reach.
    ///
    /// # Errors
    /// [`KitError::Load`], for example of a directory that others can reach.
    pub fn with_program(program: PathBuf, cache: PathBuf) -> Result<Self, KitError> {
        let jail = Jail { program, arguments: vec!["compile-child".to_owned()], limits: CompileLimits::default() };
        // A test has few instances; a pool takes terabytes of address space.
        Ok(Self { engine: Engine::new(cache, jail, &EngineOptions { on_demand: true, ..EngineOptions::default() })? })
    }

    /// A kit over an engine that is there already.
    #[must_use]
    pub fn with_engine(engine: Engine) -> Self {
        Self { engine }
    }

    /// Loads a component, whose name is that of its file, into a scene without a script. The first time
    /// it is compiled, which takes about 10 seconds for an interpreter.
    ///
    /// # Errors
    /// [`KitError::Load`].
    pub async fn load(&self, path: impl AsRef<Path>) -> Result<Scene, KitError> {
        let path = path.as_ref();
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let bytes = self.engine.read(&name, path)?;
        self.load_bytes(&name, &bytes).await
    }

    /// The same for bytes.
    ///
    /// # Errors
    /// [`KitError::Load`].
    pub async fn load_bytes(&self, name: &str, bytes: &[u8]) -> Result<Scene, KitError> {
        let plugin: Plugin = self.engine.load(name, bytes).await?;
        Ok(Scene::new(Arc::new(plugin), self.engine.fingerprint().to_owned()))
    }
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os(PROGRAM_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    let beside = || {
        let own = std::env::current_exe().ok()?;
        // A test of cargo is in target/PROFILE/deps.
        own.ancestors().skip(1).take(2).map(|directory| directory.join("longhaul")).find(|path| path.is_file())
    };
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|directory| directory.join("longhaul")).find(|path| path.is_file())
    };
    named.or_else(beside).or_else(on_path)
}

fn cache() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = directory("LONGHAUL_CACHE")
        .or_else(|| Some(directory("XDG_CACHE_HOME")?.join("longhaul")))
        .or_else(|| Some(directory("HOME")?.join(".cache/longhaul")));
    own.map(|cache| cache.join("compiled"))
}
