//! Loading: bytes become a plugin that is compiled, linked and ready to be instantiated.

use crate::cache::{Cache, CrashHook};
use crate::callee::Callee;
use crate::config::{EngineOptions, compile_config, fingerprint, host_config};
use crate::error::LoadError;
use crate::inspect::{Inspection, inspect};
use crate::jail::{CompileLimits, Jail};
use crate::role::Role;
use longhaul_bindings::exports;
use longhaul_capabilities::Ctx;
use longhaul_core::{Digest, LimitHit};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wasmtime::component::{Component, InstancePre, Linker};

/// Loads plugins. Clones share everything.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    engine: wasmtime::Engine,
    fingerprint: String,
    cache: Cache,
    jail: Jail,
}

impl Engine {
    /// An engine whose compiled code is kept in `cache`, a private directory.
    ///
    /// # Errors
    /// [`LoadError::Cache`] when the directory is not ours alone.
    pub fn new(cache: PathBuf, jail: Jail, options: &EngineOptions) -> Result<Self, LoadError> {
        let engine = wasmtime_engine(options).map_err(|error| LoadError::Compile {
            name: "engine".into(),
            reason: format!("wasmtime does not start on this machine: {error:#}"),
        })?;
        let fingerprint = fingerprint(&engine);
        let cache = Cache::open(cache, fingerprint.clone())?;
        Ok(Self { inner: Arc::new(Inner { engine, fingerprint, cache, jail }) })
    }

    /// Tells `hook` before a compiler starts, and before and after what it wrote gets its name.
    #[must_use]
    pub fn with_crash_hook(self, hook: Option<CrashHook>) -> Self {
        if let Some(hook) = hook {
            self.inner.cache.set_crash_hook(hook);
        }
        self
    }

    /// What equal fuel and equal results are promised within.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.inner.fingerprint
    }

    /// Where compiled code is kept.
    #[must_use]
    pub fn cache_directory(&self) -> &Path {
        self.inner.cache.directory()
    }

    /// Reads a plugin's file within the cap on bytes.
    ///
    /// # Errors
    /// [`LoadError::Unreadable`] or [`LoadError::Limit`].
    pub fn read(&self, name: &str, path: &Path) -> Result<Vec<u8>, LoadError> {
        let unreadable = |source| LoadError::Unreadable { name: name.to_owned(), path: path.to_owned(), source };
        let max = self.inner.jail.limits.bytes_max;
        let capped = |size: u64| {
            let hit = LimitHit::new("bytes_max", size, max);
            if size > max { Err(LoadError::Limit { name: name.to_owned(), hit }) } else { Ok(()) }
        };
        // A pipe would hang, and a device has no end.
        let found = std::fs::metadata(path).map_err(unreadable)?;
        if !found.is_file() {
            return Err(unreadable(std::io::Error::other("it is no file")));
        }
        capped(found.len())?;
        // It may grow in the meantime, so what was measured bounds nothing.
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
        capped(bytes.len() as u64)?;
        Ok(bytes)
    }

    /// Makes a plugin of a component's bytes: compiled at most once for each engine and digest.
    ///
    /// # Errors
    /// Every [`LoadError`].
    pub async fn load(&self, name: &str, bytes: &[u8]) -> Result<Plugin, LoadError> {
        let inspection = inspect(name, bytes, &self.inner.jail.limits)?;
        let component = self.component(name, &inspection.digest, bytes).await?;
        let pre = self.link(name, inspection.role, &component)?;
        let exports = Exports::of(inspection.role, &pre)
            .map_err(|error| LoadError::WrongWorld { name: name.to_owned(), reason: format!("{error:#}") })?;
        let callee = Callee { name: name.into(), engine: self.inner.engine.clone(), pre };
        Ok(Plugin { inspection, callee, exports })
    }

    /// The caps on what is compiled.
    pub(crate) fn compile_limits(&self) -> &CompileLimits {
        &self.inner.jail.limits
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.inner.engine
    }

    pub(crate) async fn component(&self, name: &str, digest: &Digest, bytes: &[u8]) -> Result<Component, LoadError> {
        let Inner { engine, cache, jail, .. } = &*self.inner;
        let path = cache.compiled(name, digest, bytes, jail).await?;
        // SAFETY: the file was written by our own compiling child into a directory that belongs to us
        // and that nobody else can write; see `cache`.
        let loaded = unsafe { Component::deserialize_file(engine, &path) };
        if let Ok(component) = loaded {
            return Ok(component);
        }
        // A file that wasmtime refuses is cut off or of other settings: compile once more.
        cache.forget(digest);
        let path = cache.compiled(name, digest, bytes, jail).await?;
        // SAFETY: as above.
        let loaded = unsafe { Component::deserialize_file(engine, &path) };
        loaded.map_err(|error| LoadError::Compile { name: name.to_owned(), reason: format!("{error:#}") })
    }

    fn link(&self, name: &str, role: Role, component: &Component) -> Result<InstancePre<Ctx>, LoadError> {
        let wrong = |error: wasmtime::Error| LoadError::WrongWorld {
            name: name.to_owned(),
            reason: format!("a {} may not import what it imports: {error:#}", role.name()),
        };
        let mut linker = Linker::new(&self.inner.engine);
        longhaul_capabilities::wasi::add_to_linker(&mut linker, role.is_pure()).map_err(wrong)?;
        if !role.is_pure() {
            longhaul_capabilities::http::add_to_linker(&mut linker).map_err(wrong)?;
        }
        for capability in role.capabilities() {
            capability.add_to_linker(&mut linker).map_err(wrong)?;
        }
        linker.instantiate_pre(component).map_err(wrong)
    }
}

/// The pool where the machine gives the address space for it, otherwise one by one.
fn wasmtime_engine(options: &EngineOptions) -> wasmtime::Result<wasmtime::Engine> {
    match wasmtime::Engine::new(&host_config(options)) {
        Ok(engine) => Ok(engine),
        Err(error) => {
            tracing::info!("instances are allocated one by one: {error:#}");
            wasmtime::Engine::new(&compile_config())
        }
    }
}

/// Where a role's functions are in the component, found once.
pub(crate) enum Exports {
    Planner(exports::planner::GuestIndices),
    Agent(exports::agent::GuestIndices),
    Evaluator(exports::evaluator::GuestIndices),
    Tool(exports::tool::GuestIndices),
    Memory(exports::memory::GuestIndices),
}

impl Exports {
    fn of(role: Role, pre: &InstancePre<Ctx>) -> wasmtime::Result<Self> {
        Ok(match role {
            Role::Planner => Self::Planner(exports::planner::GuestIndices::new(pre)?),
            Role::Agent => Self::Agent(exports::agent::GuestIndices::new(pre)?),
            Role::Evaluator => Self::Evaluator(exports::evaluator::GuestIndices::new(pre)?),
            Role::Tool => Self::Tool(exports::tool::GuestIndices::new(pre)?),
            Role::Memory => Self::Memory(exports::memory::GuestIndices::new(pre)?),
        })
    }
}

/// A plugin that can be called.
pub struct Plugin {
    pub(crate) inspection: Inspection,
    pub(crate) callee: Callee,
    pub(crate) exports: Exports,
}

impl Plugin {
    /// Its name, as the operator gave it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.callee.name
    }

    /// What it is.
    #[must_use]
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// Its bytes' digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.inspection.digest
    }

    /// Its role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.inspection.role
    }

    /// This plugin, if it has the role.
    ///
    /// # Errors
    /// [`LoadError::WrongRole`].
    pub fn expect(&self, wanted: Role) -> Result<&Self, LoadError> {
        if self.role() == wanted {
            return Ok(self);
        }
        Err(LoadError::WrongRole { name: self.callee.name.clone(), found: self.role().name(), wanted: wanted.name() })
    }
}
